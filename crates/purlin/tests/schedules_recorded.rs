//! A replay file records what a failing run got from outside. Its replay needs no other program, no
//! file and no server, and reports where it departs from the run. The programs are those of
//! `tests/schedules`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

fn purlin() -> PathBuf {
    std::env::var_os("PURLIN").map_or_else(|| env!("CARGO_BIN_EXE_purlin").into(), PathBuf::from)
}

/// A folder with one of the programs, in which commands run.
struct Place {
    dir: PathBuf,
    program: String,
    env: Vec<(&'static str, String)>,
}

impl Place {
    fn new(program: &str) -> Place {
        static PLACES: AtomicUsize = AtomicUsize::new(0);
        let n = PLACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("purlin-recorded-{}-{n}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).expect("makes a folder");
        let program = format!("{program}.erl");
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schedules");
        std::fs::copy(from.join(&program), dir.join(&program)).expect("copies");
        Place {
            dir,
            program,
            env: Vec::new(),
        }
    }
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.join(name), text).expect("writes");
    }
    fn remove(&self, name: &str) {
        std::fs::remove_file(self.dir.join(name)).expect("removes");
    }
    /// Replaces `old` with `new` in the program.
    fn change(&self, old: &str, new: &str) {
        let text = std::fs::read_to_string(self.dir.join(&self.program)).expect("reads");
        assert!(text.contains(old), "{text}");
        self.write(&self.program, &text.replace(old, new));
    }
    /// Status, standard output, standard error.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let o = Command::new(purlin())
            .args(args)
            .current_dir(&self.dir)
            .envs(self.env.iter().cloned())
            .output()
            .expect("runs");
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        (o.status.code(), text(&o.stdout), text(&o.stderr))
    }
    /// Finds the race. Returns the line about what was recorded, and the output of the run.
    fn finds(&self, options: &[&str]) -> (String, String) {
        let args = ["schedules", "--seed", "1", "--to", "it.psch"];
        let (status, out, err) =
            self.run(&[&args[..], options, &["--", "run", &self.program]].concat());
        assert_eq!(status, Some(1), "{out}{err}");
        assert!(out.contains("failed with status 1"), "{out}{err}");
        let mode = std::fs::metadata(self.dir.join("it.psch")).expect("a file");
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        let told = out.lines().find(|l| l.starts_with("Recorded, "));
        let told = told.unwrap_or_else(|| panic!("{out}")).to_owned();
        let output = out.split("\nIts output:\n").nth(1).expect("output");
        let lines: Vec<&str> = output.lines().map(str::trim).collect();
        (told, lines.join("\n"))
    }
    /// Repeats the run, which has that output.
    fn repeats(&self, output: &str) {
        for _ in 0..2 {
            let (status, out, err) = self.run(&["replay", "it.psch"]);
            assert_eq!(status, Some(1), "{out}{err}");
            assert!(err.contains("as recorded"), "{out}{err}");
            assert_eq!(out.trim_end(), output, "{err}");
        }
    }
    /// Repeats the run, which departs from the recorded one as `how` says.
    fn differs(&self, how: &str) {
        let (status, out, err) = self.run(&["replay", "it.psch"]);
        assert_eq!(status, Some(4), "{out}{err}");
        assert!(err.contains("the replay went another way: "), "{out}{err}");
        assert!(err.contains(how), "{out}{err}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn a_program_that_is_gone() {
    let p = Place::new("cmd_race");
    p.write("step.sh", "#!/bin/sh\nread a\necho 7\nexit 3\n");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(p.dir.join("step.sh"), mode).expect("a program");
    let (told, output) = p.finds(&[]);
    assert!(told.contains("2 programs, "), "{told}");
    assert_eq!(output, "7 3 [\"7\"]\n7 of 14");
    p.remove("step.sh");
    p.repeats(&output);
    let (status, out, err) = p.run(&["replay", "--live", "it.psch"]);
    assert_eq!(status, Some(4), "{out}{err}");
    p.change("how much?", "how many?");
    p.differs(", of other bytes; status 4");
    p.change("how many?", "how much");
    p.differs("expected a write of 10 bytes to program");
    p.differs(", got a write of 9 bytes to program");
}

#[test]
fn files_that_are_gone() {
    let p = Place::new("file_race");
    std::fs::create_dir(p.dir.join("steps")).expect("a folder");
    p.write("steps/one.txt", "7\n");
    let (told, output) = p.finds(&["--strict"]);
    assert!(told.contains(" calls about files"), "{told}");
    assert_eq!(output, "7 <<\"7\">> [\"one.txt\"]\n7 of 14");
    assert!(p.dir.join("sum.txt").exists());
    p.remove("sum.txt");
    std::fs::remove_dir_all(p.dir.join("steps")).expect("removes");
    p.repeats(&output);
    assert!(!p.dir.join("sum.txt").exists());
    p.change("\"status ", "\"staTus ");
    p.differs("expected prim_file:write_nif(");
    assert!(!p.dir.join("sum.txt").exists());
}

/// Starts a server that says 7 to each client, until one says `leave`.
fn server() -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        for s in listener.incoming() {
            let mut s = s.expect("a connection");
            let mut asked = [0; 5];
            match s.read_exact(&mut asked) {
                Ok(()) if &asked == b"leave" => return,
                Ok(()) => {
                    // The client may be a run that has ended.
                    let _ = s.write_all(b"7\nmore\n");
                }
                Err(_) => continue,
            }
            let _ = s.read_to_end(&mut Vec::new());
        }
    });
    (port, thread)
}

#[test]
fn a_server_that_is_gone() {
    let (port, thread) = server();
    let mut p = Place::new("tcp_race");
    p.env.push(("STEP_PORT", port.to_string()));
    let (told, output) = p.finds(&[]);
    let expected = format!("1 connection to 127.0.0.1:{port}, 7 bytes in, 6 bytes out");
    assert!(told.contains(&expected), "{told}");
    assert!(output.ends_with(" 7 \"more\\n\"\n7 of 14"), "{output}");
    let mut s = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    s.write_all(b"leave").expect("writes");
    thread.join().expect("ends");
    p.repeats(&output);
    p.change("\"step\\n\"", "\"steps\\n\"");
    p.differs("expected a write of 5 bytes to socket");
    p.differs(", got a write of 6 bytes to socket");
    p.change("ok = gen_tcp:send(S, \"steps\\n\"),", "");
    p.differs("another way: ");
}

#[test]
fn sockets_of_its_own() {
    let p = Place::new("net_race");
    let (told, output) = p.finds(&[]);
    assert!(told.contains("1 connection from outside"), "{told}");
    assert!(output.ends_with("12 of 24"), "{output}");
    p.repeats(&output);
}

/// A file without a recording is replayed with what comes from outside now. A file whose recorded
/// events have been changed is refused.
#[test]
fn files_without_a_recording_and_damaged_ones() {
    let p = Place::new("file_race");
    std::fs::create_dir(p.dir.join("steps")).expect("a folder");
    p.write("steps/one.txt", "7\n");
    let (_, output) = p.finds(&[]);
    let new = std::fs::read_to_string(p.dir.join("it.psch")).expect("a file");
    let sum = |text: &str| {
        let byte = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3);
        text.bytes().fold(0xCBF2_9CE4_8422_2325, byte)
    };
    let kept = |l: &&str| {
        !["outside ", "atoms ", "path ", "sum "]
            .iter()
            .any(|k| l.starts_with(k))
    };
    let without: Vec<&str> = new.lines().filter(kept).collect();
    let without = without.join("\n") + "\n";
    p.write("it.psch", &format!("{without}sum {}\n", sum(&without)));
    p.repeats(&output);
    assert!(p.dir.join("sum.txt").exists());
    let damaged = without + "outside read s1\n";
    p.write("it.psch", &format!("{damaged}sum {}\n", sum(&damaged)));
    let (status, out, err) = p.run(&["replay", "it.psch"]);
    assert_eq!(status, Some(66), "{out}{err}");
}
