//! Tests of ports without processes: their messages are collected.

use super::outbox::{taken, wait_for};
use super::*;
use purlin_term::frag::Fragment;
use purlin_term::{Alloc, NIL};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// A distinct pid for each test.
fn owner() -> Term {
    static NEXT: AtomicU32 = AtomicU32::new(1000);
    Term::pid(NEXT.fetch_add(1, Ordering::Relaxed))
}

struct Maker(Fragment);
impl Maker {
    fn new() -> Maker {
        Maker(Fragment::new())
    }
    fn atom(&mut self, s: &str) -> Term {
        atom::intern(s)
    }
    fn pair(&mut self, k: &str, v: Term) -> Term {
        self.0.tuple(&[atom::intern(k), v])
    }
    fn spawn(&mut self, s: &str) -> Term {
        let s = self.0.string(s);
        self.pair("spawn", s)
    }
    fn options(&mut self, names: &str) -> Vec<Term> {
        names.split_whitespace().map(atom::intern).collect()
    }
    fn bytes(&mut self, b: &[u8]) -> Term {
        self.0.binary(b)
    }
}

fn open_port(m: &mut Maker, me: Term, name: Term, options: &[Term]) -> Arc<Port> {
    let l = m.0.list(options);
    match open::open(me, name, l) {
        Ok(p) => p,
        Err(e) => panic!("{e:?}"),
    }
}

fn shell(me: Term, command: &str, options: &str, more: &[(&str, i64)]) -> Arc<Port> {
    let mut m = Maker::new();
    let mut o = m.options(options);
    for &(k, v) in more {
        let t = m.pair(k, Term::small(v));
        o.push(t);
    }
    let name = m.spawn(command);
    open_port(&mut m, me, name, &o)
}

/// Messages without the port's name.
fn plain(p: &Port, v: Vec<String>) -> Vec<String> {
    let id = format!("#Port<0.{}>", p.id.pid_data());
    v.into_iter().map(|s| s.replace(&id, "P")).collect()
}

fn write(p: &Port, me: Term, data: &[u8]) -> Result<Outcome, Fail> {
    let mut m = Maker::new();
    let t = m.bytes(data);
    p.output(me, me, (Reference::None, t), How::default())
}

#[test]
fn output_of_a_program_then_its_end() {
    let me = owner();
    let p = shell(me, "printf 'one\\ntwo'", "exit_status eof binary line", &[]);
    assert_eq!(
        plain(&p, wait_for(me, 4)),
        [
            "{P,{data,{eol,<<\"one\">>}}}",
            "{P,{exit_status,0}}",
            "{P,{data,{noeol,<<\"two\">>}}}",
            "{P,eof}"
        ]
    );
    assert_eq!(exit(&p, me, am::NORMAL), Outcome::Done);
    assert_eq!(plain(&p, wait_for(me, 1)), ["{link_exit,P,normal}"]);
    assert!(find(p.id).is_none());
}

#[test]
fn statuses_of_programs() {
    for (command, status) in [
        ("sh -c 'exit 3'", "3"),
        ("sh -c 'kill -9 $$'", "137"),
        ("/nonesuch/program 2>/dev/null", "127"),
    ] {
        let me = owner();
        let p = shell(me, command, "exit_status stderr_to_stdout in", &[]);
        let got = plain(&p, wait_for(me, 2));
        let want = [
            format!("{{P,{{exit_status,{status}}}}}"),
            "{link_exit,P,normal}".into(),
        ];
        assert!(got.ends_with(&want), "{command}: {got:?}");
    }
}

#[test]
fn packets_go_to_cat_and_come_back() {
    let me = owner();
    let p = shell(me, "cat", "binary", &[("packet", 4)]);
    for _ in 0..3 {
        assert_eq!(write(&p, me, b"hello"), Ok(Outcome::Done));
    }
    let one = "{P,{data,<<\"hello\">>}}";
    assert_eq!(plain(&p, wait_for(me, 3)), [one, one, one]);
    assert_eq!(exit(&p, me, am::NORMAL), Outcome::Done);
    assert_eq!(write(&p, me, b"x"), Ok(Outcome::Gone));
}

#[test]
fn those_who_watch_writes_are_told_the_vector() {
    let (me, tracer) = (owner(), owner());
    // The end of its output, which comes at once, must not end the port.
    let p = shell(me, "cat >/dev/null", "binary eof", &[]);
    watch::set(p.id, Some(tracer));
    let mut m = Maker::new();
    // Small pieces are copied together, a counted block is referenced, and what lies between is
    // written in place.
    let (small, large) = (m.bytes(b"small"), m.bytes(&[1; 1000]));
    let list = m.0.list(&[Term::small(65), small, large, large, small]);
    assert_eq!(
        p.output(me, me, (Reference::None, list), How::default()),
        Ok(Outcome::Done)
    );
    watch::set(p.id, None);
    assert_eq!(write(&p, me, b"unseen"), Ok(Outcome::Done));
    let told = plain(&p, taken(tracer));
    let (head, parts) = told[0].split_at("{write,P,2011,[".len());
    assert_eq!((told.len(), head), (1, "{write,P,2011,["));
    let parts: Vec<Vec<&str>> = parts
        .trim_end_matches("}]}")
        .split("},")
        .map(|p| p.trim_start_matches('{').split(',').collect())
        .collect();
    let plain: Vec<(&str, &str)> = parts.iter().map(|p| (p[1], p[2])).collect();
    let reference = ("1000", "reference");
    assert_eq!(
        plain,
        [("6", "merged"), reference, reference, ("5", "merged")]
    );
    assert_eq!(parts[1][0], parts[2][0]);
    assert_eq!(exit(&p, me, am::NORMAL), Outcome::Done);
}

#[test]
fn a_busy_port_makes_its_sender_wait_and_wakes_it() {
    let me = owner();
    let p = shell(me, "sh -c 'sleep 0.2; cat | wc -c'", "binary", &[]);
    let block = vec![b'x'; 1 << 20];
    assert_eq!(write(&p, me, &block), Ok(Outcome::Done));
    assert_eq!(write(&p, me, &block), Err(Fail::Wait));
    let how = How {
        no_suspend: true,
        ..How::default()
    };
    let mut m = Maker::new();
    let t = m.bytes(b"x");
    assert_eq!(
        p.output(me, me, (Reference::None, t), how),
        Ok(Outcome::Busy)
    );
    assert!(info(&p).is_some_and(|i| i.queued > 0));
    assert_eq!(wait_for(me, 1), ["wake"]);
    assert_eq!(write(&p, me, b"1"), Ok(Outcome::Done));
    let _ = exit(&p, me, am::NORMAL);
    assert!(wait_for(me, 1).concat().contains("link_exit"));
}

#[test]
fn only_the_owner_commands_by_message() {
    let (me, other) = (owner(), owner());
    let p = shell(me, "cat", "", &[]);
    let mut m = Maker::new();
    let t = m.bytes(b"x");
    let how = How {
        message: true,
        ..How::default()
    };
    assert_eq!(
        p.output(other, other, (Reference::None, t), how),
        Ok(Outcome::Bad)
    );
    assert_eq!(plain(&p, taken(me)), ["{exit,P,badsig}"]);
    assert_eq!(p.connect(me, other, true, || false), Outcome::Done);
    assert_eq!(plain(&p, taken(me)), ["{P,connected}"]);
    assert_eq!(
        p.output(other, other, (Reference::None, t), how),
        Ok(Outcome::Done)
    );
    assert_eq!(plain(&p, wait_for(other, 1)), ["{P,{data,\"x\"}}"]);
    let numbers = crate::process::ext::RefKey::new(1).numbers();
    let reference = purlin_term::layout::RefWords::new(numbers);
    assert!(monitor(p.id, me, reference.term(), NIL));
    assert!(link(p.id, other));
    assert_eq!(p.exit(other, am::NORMAL, true), Outcome::Done);
    assert_eq!(
        plain(&p, wait_for(other, 2)),
        ["{link_exit,P,normal}", "{P,closed}"]
    );
    assert_eq!(
        plain(&p, taken(me)),
        ["{link_exit,P,normal}", "{down,port,P,normal}"]
    );
}

#[test]
fn what_is_queued_is_written_before_a_closed_port_goes() {
    let me = owner();
    let path = std::env::temp_dir().join(format!("purlin-port-{}", std::process::id()));
    let p = shell(
        me,
        &format!("sh -c 'sleep 0.1; cat > {}'", path.display()),
        "out",
        &[],
    );
    assert_eq!(write(&p, me, &vec![b'y'; 300_000]), Ok(Outcome::Done));
    assert_eq!(exit(&p, me, am::NORMAL), Outcome::Done);
    // It shows that it writes and that nobody is linked to it.
    assert!(!is_open(&p) && info(&p).is_some_and(|i| i.queued > 0 && i.links.is_empty()));
    for _ in 0..500 {
        if std::fs::metadata(&path).is_ok_and(|m| m.len() == 300_000) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(
        std::fs::metadata(&path).map(|m| m.len()).ok(),
        Some(300_000)
    );
    let _ = std::fs::remove_file(&path);
    for _ in 0..100 {
        if find(p.id).is_none() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the port is still there");
}

#[test]
fn descriptors_and_files() {
    let me = owner();
    let (r, w) = descriptor::pipe().expect("a pipe");
    let (r2, w2) = descriptor::pipe().expect("a pipe");
    let mut m = Maker::new();
    let (i, o) = (
        Term::small(r.as_raw_fd() as i64),
        Term::small(w2.as_raw_fd() as i64),
    );
    let name = {
        let fd = m.atom("fd");
        m.0.tuple(&[fd, i, o])
    };
    let options = m.options("eof");
    let p = open_port(&mut m, me, name, &options);
    assert_eq!(write(&p, me, b"out"), Ok(Outcome::Done));
    let mut buf = [0; 8];
    assert_eq!(descriptor::read(r2.as_raw_fd(), &mut buf).ok(), Some(3));
    descriptor::write(w.as_raw_fd(), [&b"in"[..]].into_iter(), 10).expect("written");
    assert_eq!(plain(&p, wait_for(me, 1)), ["{P,{data,\"in\"}}"]);
    drop(w);
    assert_eq!(plain(&p, wait_for(me, 1)), ["{P,eof}"]);
    let _ = exit(&p, me, am::NORMAL);
    // The descriptors stay open.
    descriptor::write(w2.as_raw_fd(), [&b"x"[..]].into_iter(), 10).expect("written");

    let me = owner();
    let name =
        m.0.string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    let options = m.options("in eof binary");
    let p = open_port(&mut m, me, name, &options);
    let got = plain(&p, wait_for(me, 2));
    assert_eq!(got.len(), 2);
    // The name of this crate, as a binary is displayed.
    let name: Vec<String> = b"purlin-io".iter().map(u8::to_string).collect();
    assert!(got[0].contains(&name.join(",")) && got[1] == "{P,eof}");
    let _ = exit(&p, me, am::NORMAL);
}

#[test]
fn bad_arguments_have_their_own_errors() {
    let mut m = Maker::new();
    let me = owner();
    let mut check = |name: Term, o: &[Term], want: settings::Error| {
        let l = m.0.list(o);
        assert_eq!(
            open::open(me, name, l).err().map(|e| e.term()),
            Some(want.term())
        );
    };
    let mut n = Maker::new();
    let cat = n.spawn("cat");
    let packet = n.pair("packet", Term::small(3));
    check(cat, &[packet], settings::Error::BadSettings);
    let nouse = n.options("nouse_stdio stderr_to_stdout");
    check(cat, &nouse, settings::Error::BadSettings);
    let empty = n.spawn("");
    check(empty, &[], settings::Error::BadArg);
    let name = n.0.string("nope");
    let driver = n.pair("spawn_driver", name);
    check(driver, &[], settings::Error::BadArg);
    let file = n.0.string("/etc/passwd");
    let exe = n.pair("spawn_executable", file);
    check(exe, &[], settings::Error::Errno(libc::EACCES));
    let fd = n.atom("fd");
    let fds = n.0.tuple(&[fd, Term::small(-1), Term::small(0)]);
    check(fds, &[], settings::Error::General);
    let file = n.0.string("/nonesuch/x");
    check(file, &[], settings::Error::General);
    let args = n.pair("args", NIL);
    check(cat, &[args], settings::Error::BadArg);
}

#[test]
fn many_programs_at_once_leave_nothing_behind() {
    let me = owner();
    let ports: Vec<_> = (0..200)
        .map(|_| shell(me, "true", "exit_status", &[]))
        .collect();
    let got = wait_for(me, 400);
    assert_eq!(
        got.iter().filter(|s| s.contains("{exit_status,0}")).count(),
        200
    );
    assert_eq!(got.iter().filter(|s| s.contains("link_exit")).count(), 200);
    for p in &ports {
        assert!(find(p.id).is_none());
    }
}
