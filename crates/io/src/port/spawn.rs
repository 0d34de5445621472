//! Programs behind ports: starting them, and noticing that they have ended.
//!
//! # The reaper
//! A thread that waits for children, any child: no other part of the runtime has children. The list of children is
//! locked while one is started, so that none ends before it is on the list. A child whose port is gone is waited for all
//! the same: nothing is left behind in the kernel.

use super::open::{Options, Target};
use super::{Port, sys};
use purlin_term::sync::{Condvar, Mutex};
use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{OnceLock, Weak};

/// A program that was started.
pub(crate) struct Child {
    /// None: it did not come to be; `failed` says why.
    pub pid: Option<i32>,
    /// The end of the pipe that the program reads from.
    pub input: Option<OwnedFd>,
    /// The end of the pipe that the program writes to.
    pub output: Option<OwnedFd>,
    /// The status (as of wait(2)) of a program that could not be executed: the port learns of it as of any other exit.
    pub failed: Option<i32>,
}

struct Children {
    running: Mutex<HashMap<libc::pid_t, Weak<Port>>>,
    some: Condvar,
}

fn children() -> &'static Children {
    static CHILDREN: OnceLock<Children> = OnceLock::new();
    CHILDREN.get_or_init(|| {
        sys::close_inherited_on_exec();
        let t = std::thread::Builder::new()
            .name("children".into())
            .stack_size(256 * 1024)
            .spawn(|| {
                purlin_kernel::affinity::begin_unbound();
                reap()
            });
        if let Err(e) = t {
            eprintln!("purlin: cannot start the thread that waits for children: {e}");
            std::process::exit(1);
        }
        Children {
            running: Mutex::new(HashMap::new()),
            some: Condvar::new(),
        }
    })
}

fn reap() {
    let c = children();
    loop {
        {
            let mut r = c.running.lock();
            while r.is_empty() {
                r = c.some.wait(r);
            }
        }
        match sys::wait_any() {
            Ok((pid, status)) => {
                let port = {
                    let mut r = c.running.lock();
                    r.remove(&pid)
                };
                if let Some(p) = port.and_then(|p| p.upgrade()) {
                    p.child_exited(status);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Somebody else has waited for them: how they ended can't be known any more.
            Err(_) => {
                let lost: Vec<_> = {
                    let mut r = c.running.lock();
                    r.drain().collect()
                };
                for (_, port) in lost {
                    if let Some(p) = port.upgrade() {
                        p.child_exited(exited(UNKNOWN));
                    }
                }
            }
        }
    }
}

/// The environment of the runtime, with the changes that the port's options ask for.
fn environment(o: &Options) -> Vec<CString> {
    let mut env = crate::osenv::all();
    for (k, v) in &o.env {
        env.retain(|e| e.0 != *k);
        if let Some(v) = v {
            env.push((k.clone(), v.clone()));
        }
    }
    env.into_iter()
        .filter_map(|(mut k, v)| {
            k.push(b'=');
            k.extend_from_slice(&v);
            CString::new(k).ok()
        })
        .collect()
}

/// Exit code of a child whose own can't be known.
const UNKNOWN: i32 = 255;

/// Status of wait(2) of a program that exited with that code.
fn exited(code: i32) -> i32 {
    (code & 0xFF) << 8
}

/// Starts the program of a port. Fails where no process can be made, or a file that is to be executed can't be.
pub fn start(o: &Options, command: &[u8], port: Weak<Port>) -> io::Result<Child> {
    let (program, args) = match &o.target {
        Target::Executable { args } => {
            let path = CString::new(command)?;
            sys::check_executable(&path)?;
            let mut v = Vec::with_capacity(args.len() + 1);
            v.push(match &o.arg0 {
                Some(a) => a.clone(),
                None => path.clone(),
            });
            v.extend(args.iter().cloned());
            (path, v)
        }
        _ => {
            let mut line = b"exec ".to_vec();
            line.extend_from_slice(command);
            let args = vec![c"sh".into(), c"-c".into(), CString::new(line)?];
            (c"/bin/sh".into(), args)
        }
    };
    let c = sys::Command {
        program,
        args,
        env: environment(o),
        dir: o.dir.clone(),
    };
    // (what the child has, what we have)
    let input = if o.write { Some(sys::pipe()?) } else { None };
    let output = if o.read { Some(sys::pipe()?) } else { None };
    let (stdin, stdout) = if o.use_stdio { (0, 1) } else { (3, 4) };
    let mut wiring = sys::Wiring::new();
    if let Some((theirs, _)) = &input {
        wiring.push((theirs.as_raw_fd(), stdin));
    }
    if let Some((_, theirs)) = &output {
        wiring.push((theirs.as_raw_fd(), stdout));
        if o.stderr_to_stdout {
            wiring.push((theirs.as_raw_fd(), 2));
        }
    }
    let mut child = Child {
        pid: None,
        input: None,
        output: None,
        failed: None,
    };
    let bad_dir = c.dir.as_ref().and_then(|d| sys::check_dir(d).err());
    if let Some(e) = bad_dir {
        let dir = c.dir.as_deref().unwrap_or_default().to_string_lossy();
        eprint!("spawn: Could not cd to {dir}\r\n");
        child.failed = Some(exited(crate::posix::errno_of(&e)));
    } else {
        let list = children();
        let mut r = list.running.lock();
        match sys::spawn(&c, &wiring) {
            Ok(pid) => {
                child.pid = Some(pid);
                r.insert(pid, port);
                list.some.notify_one();
            }
            Err(e) => match crate::posix::errno_of(&e) {
                libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE => return Err(e),
                errno => child.failed = Some(exited(errno)),
            },
        }
    }
    child.input = input.map(|(_, ours)| ours);
    child.output = output.map(|(ours, _)| ours);
    Ok(child)
}
