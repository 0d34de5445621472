//! Sweeps of system calls (`purlin schedules --fail-nth`). The programs are those of
//! `tests/schedules` and, as a sample of `make sweep`, a few of `tests/programs`. `SWEEPS=all`
//! compares the error of every kind of call with stock's, of which strace makes the call fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

fn purlin() -> PathBuf {
    std::env::var_os("PURLIN").map_or_else(|| env!("CARGO_BIN_EXE_purlin").into(), PathBuf::from)
}

/// Returns a path below `tests`.
fn tests(name: &str) -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    top.canonicalize().expect("a folder").join(name)
}

/// A new folder, in which commands run.
struct Dir(PathBuf);

/// Returns a seed that no other search has now: `--fresh-dir` names a folder by it.
fn seed() -> String {
    static SEEDS: AtomicUsize = AtomicUsize::new(0);
    let n = SEEDS.fetch_add(1, Ordering::Relaxed);
    (std::process::id() as usize * 1000 + n).to_string()
}

impl Dir {
    fn new() -> Dir {
        static DIRS: AtomicUsize = AtomicUsize::new(0);
        let n = DIRS.fetch_add(1, Ordering::Relaxed);
        let name = format!("purlin-sweeps-{}-{n}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).expect("makes a folder");
        Dir(dir)
    }

    /// Status and output of Purlin.
    fn run(&self, args: &[&str]) -> (i32, String) {
        let o = Command::new(purlin())
            .args(args)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .expect("runs");
        let both = [o.stdout, o.stderr].concat();
        (
            o.status.code().unwrap_or(-1),
            String::from_utf8_lossy(&both).into_owned(),
        )
    }

    /// Sweeps a program of `tests/schedules`.
    fn sweep(&self, options: &[&str], program: &str) -> (i32, String) {
        let path = tests("schedules").join(format!("{program}.erl"));
        let path = path.to_string_lossy();
        let before = ["schedules", "--seed", &seed(), "--to", "it.psch"];
        self.run(&[&before[..], options, &["--", "run", &path]].concat())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_write_whose_result_is_ignored() {
    let d = Dir::new();
    let (status, out) = d.sweep(&["--fail-nth", "write,sync"], "ack_fails");
    assert_eq!(status, 1, "{out}");
    assert!(
        out.contains("\nCalls that failed: write 5; not called: sync.\n"),
        "{out}"
    );
    let found = out
        .lines()
        .find(|l| l.starts_with("  write 1 fails with ENOSPC ("));
    let found = found.unwrap_or_else(|| panic!("{out}"));
    assert!(
        found.contains("ack_fails.erl:22  ack_fails:add/2): exits with 1"),
        "{out}"
    );
    assert!(!out.contains("Shrunk"), "{out}");
    for _ in 0..2 {
        let (status, out) = d.run(&["replay", "it.psch"]);
        assert_eq!(status, 1, "{out}");
        assert!(out.contains("no match of right hand side value"), "{out}");
    }
    let (status, out) = d.run(&["schedules", "show", "it.psch"]);
    assert_eq!(status, 0, "{out}");
    assert!(out.contains(" here write 1 fails with ENOSPC"), "{out}");
}

#[test]
fn a_write_whose_result_counts() {
    let d = Dir::new();
    let (status, out) = d.sweep(&["--fail-nth", "files"], "ack_holds");
    assert_eq!(status, 0, "{out}");
    let counts =
        "Calls that failed: open 2, read 1, write 5, sync 5, close 1, unlink 2; not called: ";
    assert!(out.contains(counts), "{out}");
}

#[test]
fn a_server_that_is_not_started_again() {
    let d = Dir::new();
    let once = ["--fail-nth", "open:EMFILE", "--fail-for", "once"];
    let (status, out) = d.sweep(&once, "store_fails");
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("  open 1 fails with EMFILE ("), "{out}");
    let (status, out) = d.sweep(&once, "store_holds");
    assert_eq!(status, 0, "{out}");
    // No server survives a disk that never has room again.
    let ever = ["--fail-nth", "open:EMFILE", "--fail-for", "ever"];
    let (status, out) = d.sweep(&ever, "store_holds");
    assert_eq!(status, 1, "{out}");
    assert!(
        out.contains("  open 1 and all later ones fail with EMFILE ("),
        "{out}"
    );
    // Statuses may be allowed.
    let (status, out) = d.sweep(&[&ever[..], &["--expect", "1"]].concat(), "store_holds");
    assert_eq!(status, 0, "{out}");
}

#[test]
fn each_kind_of_call_fails() {
    let (status, out) = Dir::new().sweep(&["--fail-nth", "all", "--fresh-dir"], "errors_right");
    assert_eq!(status, 0, "{out}");
    let counts = "Calls that failed: open 3, read 3, write 3, sync 1, close 2, rename 1, unlink 5, \
        mkdir 1, list 1, stat 1, chmod 3, socket 2, connect 1, accept 1, send 1, recv 1, spawn 1.";
    assert!(out.contains(counts), "{out}");
}

#[test]
fn a_call_before_the_first_process() {
    let (status, out) = Dir::new().sweep(&["--fail-nth", "stat"], "stat_first_right");
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("Calls that failed: stat 1.\n"), "{out}");
}

#[test]
fn runs_have_folders_of_their_own() {
    let fresh = [
        "--fail-nth",
        "close,unlink",
        "--fail-for",
        "once",
        "--fresh-dir",
    ];
    let (status, out) = Dir::new().sweep(&fresh, "leftover_fails");
    assert_eq!(status, 0, "{out}");
    // Without them a run finds what another could not delete.
    let (status, out) = Dir::new().sweep(&["--fail-nth", "unlink"], "leftover_fails");
    assert_eq!(status, 1, "{out}");
}

#[test]
fn wrong_words_are_refused() {
    let d = Dir::new();
    for (options, said) in [
        (
            &["--fail-nth", "fsync"][..],
            "'fsync' is no list of calls: open, read, ",
        ),
        (
            &["--fail-nth", "sync:ENOSPC"],
            "'sync:ENOSPC' is no list of calls: ",
        ),
        (
            &["--fail-nth", "sync", "--fail-for", "now"],
            "'now' is neither once nor ever nor both",
        ),
        (
            &["--fail-nth", "sync", "--expect", "x"],
            "'x' is no list of statuses",
        ),
        (&["--fail-for", "once"], "--fail-for is for --fail-nth"),
        (&["--expect", "any"], "--expect is for --fail-nth"),
    ] {
        let (status, out) = d.sweep(options, "ack_holds");
        assert_eq!(status, 2, "{options:?}: {out}");
        assert!(out.contains(said), "{options:?}: {out}");
    }
}

/// A program of `tests/programs`: some of its calls fail, and the runtime continues.
#[test]
fn the_runtime_survives() {
    let d = Dir::new();
    let program = "ports/files_and_directories";
    let path = tests("programs/erlang").join(format!("{program}.erl"));
    let path = path.to_string_lossy();
    let (status, out) = d.run(&[
        "schedules",
        "--seed",
        &seed(),
        "--fail-nth",
        "all",
        "--fail-for",
        "once",
        "--expect",
        "any",
        "--fresh-dir",
        "--keep-going",
        "--json",
        "--seeds",
        "40",
        "--",
        "run",
        &path,
    ]);
    assert!(status <= 1, "{program}: {status}: {out}");
    let runs = out.contains("\"runs\":");
    let faults = ["is ended by signal", "ends without a report"];
    let fault = faults.iter().any(|f| out.contains(f));
    assert!(runs && !fault, "{program}: {out}");
}

/// A kind of `tests/schedules/error_names.erl`, the call and errors of `--fail-nth`, and the calls
/// of the system that strace makes fail in stock.
type Case = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
);

const OPEN: &str = "open,openat";
const READ: &str = "read,readv,pread64,preadv";
const WRITE: &str = "write,writev,pwrite64,pwritev";
const STAT: &str = "stat,lstat,newfstatat,statx";
const RECV: &str = "recvfrom";
const SEND: &str = "writev";
const SOCKET: &str = "socket";

/// The kinds and errors that are compared without `SWEEPS=all`.
const SAMPLE: &[(&str, &str)] = &[("open", "EMFILE"), ("read", "EIO"), ("write", "ENOSPC")];

const CASES: &[Case] = &[
    ("open", "open", &["EMFILE", "EACCES"], OPEN),
    ("recv", "recv", &["ECONNRESET", "ETIMEDOUT"], RECV),
    ("write", "write", &["ENOSPC", "EIO"], WRITE),
    ("open_io_server", "open", &["EMFILE", "EACCES"], OPEN),
    ("read_file", "open", &["EMFILE", "EACCES"], OPEN),
    ("read_file", "read", &["EIO"], READ),
    ("write_file", "write", &["ENOSPC", "EIO"], WRITE),
    ("read", "read", &["EIO"], READ),
    ("pread", "read", &["EIO"], READ),
    ("read_line", "read", &["EIO"], READ),
    ("pwrite", "write", &["ENOSPC", "EIO"], WRITE),
    ("delayed_write", "write", &["ENOSPC", "EIO"], WRITE),
    ("truncate", "write", &["ENOSPC", "EIO"], "ftruncate"),
    ("sync", "sync", &["EIO"], "fsync"),
    ("datasync", "sync", &["EIO"], "fdatasync"),
    ("close", "close", &["EIO"], "close"),
    (
        "rename",
        "rename",
        &["ENOSPC", "EACCES"],
        "rename,renameat,renameat2",
    ),
    ("make_link", "rename", &["ENOSPC", "EACCES"], "link,linkat"),
    (
        "make_symlink",
        "rename",
        &["ENOSPC", "EACCES"],
        "symlink,symlinkat",
    ),
    ("delete", "unlink", &["EACCES"], "unlink,unlinkat"),
    ("del_dir", "unlink", &["EACCES"], "rmdir,unlinkat"),
    ("make_dir", "mkdir", &["ENOSPC", "EACCES"], "mkdir,mkdirat"),
    ("list_dir", "list", &["EMFILE", "EACCES"], OPEN),
    ("read_file_info", "stat", &["EACCES"], STAT),
    ("read_link_info", "stat", &["EACCES"], STAT),
    ("read_link", "stat", &["EACCES"], "readlink,readlinkat"),
    ("change_mode", "chmod", &["EPERM"], "chmod,fchmodat"),
    ("change_owner", "chmod", &["EPERM"], "chown,fchownat"),
    ("change_time", "chmod", &["EPERM"], "utime,utimes,utimensat"),
    ("listen", "socket", &["EMFILE", "ENOBUFS"], SOCKET),
    ("udp_open", "socket", &["EMFILE", "ENOBUFS"], SOCKET),
    ("socket_open", "socket", &["EMFILE", "ENOBUFS"], SOCKET),
    (
        "connect",
        "connect",
        &["ECONNREFUSED", "ETIMEDOUT"],
        "connect",
    ),
    (
        "socket_connect",
        "connect",
        &["ECONNREFUSED", "ETIMEDOUT"],
        "connect",
    ),
    (
        "accept",
        "accept",
        &["EMFILE", "ECONNABORTED"],
        "accept,accept4",
    ),
    ("send", "send", &["ECONNRESET"], SEND),
    ("recv_actively", "recv", &["ECONNRESET", "ETIMEDOUT"], RECV),
    ("udp_recv", "recv", &["ECONNRESET", "ETIMEDOUT"], RECV),
    ("udp_send", "send", &["ECONNRESET"], "sendto"),
];

/// Puts the files there that the program wants.
fn prepare(d: &Dir) {
    for name in ["file", "link", "renamed", "linked", "symlinked"] {
        let _ = std::fs::remove_file(d.0.join(name));
    }
    for name in ["dir", "made"] {
        let _ = std::fs::remove_dir(d.0.join(name));
    }
    std::fs::write(d.0.join("file"), "hello\n").expect("writes");
    std::fs::create_dir(d.0.join("dir")).expect("makes");
    std::os::unix::fs::symlink("file", d.0.join("link")).expect("links");
}

/// Returns what the program prints on stock if its first call fails.
fn stocks(d: &Dir, kind: &str, error: &str, calls: &str) -> String {
    prepare(d);
    let mut c = Command::new("timeout");
    c.args(["-k", "1", "120", "strace", "-f", "-qqq", "-o", "/dev/null"]);
    c.args(["--seccomp-bpf", "-e", &format!("trace={calls}")]);
    // A socket has no path, and the start of stock may make some before the program does.
    let mut when = ":when=1";
    match calls {
        SOCKET => when = "",
        RECV | SEND | "sendto" | "connect" | "accept,accept4" => {}
        _ => {
            for name in ["file", "dir", "made", "link"] {
                c.args(["-P", name]).arg("-P").arg(d.0.join(name));
            }
        }
    }
    c.args(["-e", &format!("inject={calls}:error={error}{when}")]);
    c.args(["erl", "-noshell", "-pa"])
        .arg(&d.0)
        .args(["-s", "error_names", "main"]);
    let o = c
        .env("KIND", kind)
        .current_dir(&d.0)
        .stdin(Stdio::null())
        .output();
    let o = o.expect("runs");
    String::from_utf8_lossy(&o.stdout).trim().to_owned()
}

/// Returns what the program prints on Purlin if its first call fails.
fn ours(d: &Dir, kind: &str, error: &str, call: &str) -> String {
    let path = tests("schedules/error_names.erl");
    let o = Command::new(purlin())
        .args([
            "schedules",
            "--seed",
            &seed(),
            "--to",
            "it.psch",
            "--fail-for",
            "once",
            "--fresh-dir",
        ])
        .args([
            "--fail-nth",
            &format!("{call}:{error}"),
            "--seeds",
            "2",
            "--",
            "run",
        ])
        .arg(&path)
        .env("KIND", kind)
        .current_dir(&d.0)
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    let out = String::from_utf8_lossy(&o.stdout);
    assert!(
        o.status.code().is_some_and(|s| s <= 1),
        "{kind} {error}: {out}"
    );
    let it = out
        .split("\nIts output:\n")
        .nth(1)
        .and_then(|o| o.lines().next());
    it.map_or_else(
        || match out.contains(&format!("Calls that failed: {call} ")) {
            true => "ok".into(),
            false => format!("no such call: {out}"),
        },
        |l| l.trim().to_owned(),
    )
}

#[test]
fn errors_are_those_of_stock() {
    let can = Command::new("strace")
        .args(["-qqq", "-o", "/dev/null", "true"])
        .status();
    if !can.is_ok_and(|s| s.success()) {
        eprintln!("strace cannot trace here: errors are not compared with stock's");
        return;
    }
    let all = std::env::var("SWEEPS").is_ok_and(|s| s == "all");
    let d = Dir::new();
    let compiled = Command::new("erlc")
        .arg("-o")
        .arg(&d.0)
        .arg(tests("schedules/error_names.erl"))
        .status();
    assert!(compiled.is_ok_and(|s| s.success()));
    let mut wrong = Vec::new();
    for (kind, call, errors, calls) in CASES {
        for error in *errors {
            if !all && !SAMPLE.contains(&(*kind, *error)) {
                continue;
            }
            prepare(&d);
            let (ours, stocks) = (ours(&d, kind, error, call), stocks(&d, kind, error, calls));
            if all {
                eprintln!("{kind}, {error}: {stocks}");
            }
            if ours != stocks {
                wrong.push(format!(
                    "{kind}, {call} fails with {error}: {ours}, stock: {stocks}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
