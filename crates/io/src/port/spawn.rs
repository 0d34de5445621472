//! Programs behind ports: starts them and notices when they end.
//!
//! # Children
//! Each child is waited for by its number, because a library may have children of its own to wait
//! for. The kernel reports the end of a child by a descriptor that is watched like any other. Where
//! it offers none, a thread polls. A child whose port is gone is reaped all the same, so nothing is
//! left behind in the kernel.
//!
//! # Starting one
//! The kernel takes a millisecond or more to start a program, and the calling thread sleeps
//! meanwhile. So dirty threads do it, several at a time. A child may end before it is on the list
//! of children. Code that finds an unknown child waits for the starts in progress ([`STARTING`])
//! before it takes the child for a stranger.

use super::Port;
use super::settings::{Options, Target};
use crate::os::{child, descriptor};
use crate::poll::{self, Id, Ready};
use purlin_kernel::os::world;
use purlin_kernel::os::world::messages::{Call, number};
use purlin_term::sync::{Condvar, Mutex, RwLock};
use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, LazyLock, Once, Weak};
use std::time::Duration;

/// A program that was started.
pub(crate) struct Child {
    /// None if it could not be started; `failed` says why.
    pub pid: Option<i32>,
    /// The end of the pipe that leads to the program's input.
    pub input: Option<OwnedFd>,
    /// The end of the pipe that leads from the program's output.
    pub output: Option<OwnedFd>,
    /// The status (as of wait(2)) of a program that could not be executed. The port learns of it as
    /// of any other exit.
    pub failed: Option<i32>,
}

/// The programs of ports.
struct Children {
    running: HashMap<libc::pid_t, Weak<Port>>,
    /// The children that ended last. The signal for a child's end may be handled after the child
    /// was reaped.
    ended: VecDeque<libc::pid_t>,
}

/// The children whose end the kernel does not report, and the signal that there are some.
static UNWATCHED: (Mutex<Vec<libc::pid_t>>, Condvar) = (Mutex::new(Vec::new()), Condvar::new());

/// Number of ended children that are remembered.
const REMEMBERED: usize = 256;
/// Interval at which children are polled whose end the kernel does not report.
const LOOK_EVERY: Duration = Duration::from_millis(20);

static CHILDREN: LazyLock<Mutex<Children>> = LazyLock::new(|| {
    child::close_inherited_on_exec();
    crate::os_signals::suppress_child_signals(is_program);
    Mutex::new(Children {
        running: HashMap::new(),
        ended: VecDeque::new(),
    })
});

/// Held for reading from before a program is started until it is on the list. It is locked before
/// the list.
static STARTING: RwLock<()> = RwLock::new(());

/// Whether `known` holds of the list of children, which includes all children started before the
/// call.
fn sure(known: impl Fn(&mut Children) -> bool) -> bool {
    if known(&mut CHILDREN.lock()) {
        return true;
    }
    let _none = STARTING.write();
    known(&mut CHILDREN.lock())
}

/// Whether the process with that number is or was the program of a port. A child that has ended is
/// reported once.
fn is_program(pid: libc::pid_t) -> bool {
    sure(|c| {
        if c.running.contains_key(&pid) {
            return true;
        }
        let at = c.ended.iter().position(|&p| p == pid);
        at.is_some_and(|at| c.ended.remove(at).is_some())
    })
}

/// Whether the process with that number is the program of a port, whose end is noticed here.
pub(super) fn is_running(pid: libc::pid_t) -> bool {
    sure(|c| c.running.contains_key(&pid))
}

/// Reaps an ended child, unless it is the program of a port.
pub(super) fn wait_for_stranger(pid: libc::pid_t) {
    // No program that could get the same number is started meanwhile.
    let _none = STARTING.write();
    let c = CHILDREN.lock();
    if !c.running.contains_key(&pid) {
        // It may have been reaped elsewhere.
        let _ = child::wait_for(pid);
    }
}

/// A child whose end the kernel reports.
struct Watched {
    pid: libc::pid_t,
    /// Readable when the child has ended.
    end: OwnedFd,
}

impl Ready for Watched {
    fn ready(&self, id: Id, _: bool, _: bool) {
        let status = world::thing(self.end.as_raw_fd()).and_then(child::end_in_world);
        match wait_for(self.pid, status) {
            true => poll::forget(id),
            false => poll::want(id, true, false),
        }
    }
}

/// Reaps a child if it has ended, and returns whether it has. `known`: its status, if it has ended
/// and need not be reaped.
fn wait_for(pid: libc::pid_t, known: Option<i32>) -> bool {
    // Locked first: once the child is reaped, its number may be reused.
    let mut c = CHILDREN.lock();
    let status = match known.map_or_else(|| child::wait_for(pid), |s| Ok(Some(s))) {
        Ok(Some(status)) => status,
        Ok(None) => return false,
        // It was reaped elsewhere, so its status cannot be known any more.
        Err(_) => exited(UNKNOWN),
    };
    if c.ended.len() >= REMEMBERED {
        c.ended.pop_front();
    }
    c.ended.push_back(pid);
    let port = c.running.remove(&pid);
    drop(c);
    if let Some(p) = port.and_then(|p| p.upgrade()) {
        p.child_exited(status);
    }
    true
}

/// Arranges that the end of a child is noticed.
fn watch(pid: libc::pid_t) {
    purlin_kernel::os::exploring::ASKED.store(true, std::sync::atomic::Ordering::Relaxed);
    let by_kernel = || {
        let end = child::end_of_child(pid)?;
        let fd = end.as_raw_fd();
        let id = poll::register(fd, Arc::new(Watched { pid, end })).ok()?;
        poll::want(id, true, false);
        Some(())
    };
    if by_kernel().is_none() {
        UNWATCHED.0.lock().push(pid);
        UNWATCHED.1.notify_one();
        look_at_times();
    }
}

/// Starts the thread that polls the children whose end the kernel does not report.
fn look_at_times() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        purlin_kernel::os::thread::start("children", 256 * 1024, || {
            purlin_kernel::affinity::begin_unbound();
            loop {
                let mut all = UNWATCHED.0.lock();
                while all.is_empty() {
                    all = UNWATCHED.1.wait(all);
                }
                let now = std::mem::take(&mut *all);
                drop(all);
                let left: Vec<_> = now
                    .into_iter()
                    .filter(|&pid| !wait_for(pid, None))
                    .collect();
                UNWATCHED.0.lock().extend(left);
                std::thread::sleep(LOOK_EVERY);
            }
        });
    });
}

/// The runtime's environment, with the changes from the port's options.
fn environment(o: &Options) -> Vec<CString> {
    let mut env = crate::osenv::all();
    // The last change of a name counts, and stands where that change does.
    let last: HashMap<&[u8], usize> = (o.env.iter().enumerate())
        .map(|(i, change)| (&change.0[..], i))
        .collect();
    env.retain(|e| !last.contains_key(&e.0[..]));
    let changes = o.env.iter().enumerate();
    env.extend(changes.filter_map(|(i, (k, v))| {
        let v = v.as_ref().filter(|_| last.get(&k[..]) == Some(&i))?;
        Some((k.clone(), v.clone()))
    }));
    env.into_iter()
        .filter_map(|(mut k, v)| {
            k.push(b'=');
            k.extend_from_slice(&v);
            CString::new(k).ok()
        })
        .collect()
}

/// Exit code of a child whose own code is unknown.
const UNKNOWN: i32 = 255;

/// Status of wait(2) of a program that exited with that code.
fn exited(code: i32) -> i32 {
    (code & 0xFF) << 8
}

/// Starts the program of a port. Fails if no process can be made or the file cannot be executed.
pub fn start(o: &Options, command: &[u8], port: Weak<Port>) -> io::Result<Child> {
    let (program, args) = match &o.target {
        Target::Executable { args } => {
            let path = CString::new(command)?;
            child::check_executable(&path)?;
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
    let c = child::Command {
        program,
        args,
        env: environment(o),
        dir: o.dir.clone(),
    };
    if world::is_on() {
        return start_in_world(o, c, port);
    }
    // (the child's end, our end)
    let input = if o.write {
        Some(descriptor::pipe()?)
    } else {
        None
    };
    let output = if o.read {
        Some(descriptor::pipe()?)
    } else {
        None
    };
    let (stdin, stdout) = if o.use_stdio { (0, 1) } else { (3, 4) };
    let mut wiring = child::Wiring::new();
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
    let bad_dir = c.dir.as_ref().and_then(|d| child::check_dir(d).err());
    if let Some(e) = bad_dir {
        let dir = c.dir.as_deref().unwrap_or_default().to_string_lossy();
        purlin_term::say::error(format_args!("spawn: Could not cd to {dir}\r\n"));
        child.failed = Some(exited(crate::posix::errno_of(&e)));
    } else {
        LazyLock::force(&CHILDREN);
        let _starting = STARTING.read();
        match child::spawn(&c, &wiring) {
            Ok(pid) => {
                child.pid = Some(pid);
                CHILDREN.lock().running.insert(pid, port);
                watch(pid);
            }
            Err(e) => match crate::posix::errno_of(&e) {
                libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE => return Err(e),
                errno => child.failed = Some(exited(errno)),
            },
        }
    }
    child.input = input.map(|(_, ours)| ours);
    child.output = output.map(|(ours, _)| ours);
    let ends = child.input.iter().chain(&child.output);
    let ends: Vec<_> = ends.map(|fd| fd.as_raw_fd()).collect();
    purlin_kernel::os::replay_log::name('p', &ends);
    Ok(child)
}

/// Starts a program that is to be a node of this node's world, with pipes of the world. A program
/// that is no emulator is refused: the world does not know what it does.
fn start_in_world(o: &Options, mut c: child::Command, port: Weak<Port>) -> io::Result<Child> {
    let failed = io::Error::from_raw_os_error;
    let thing = |b: &[u8], at| number(b, at).ok_or(failed(libc::EPROTO));
    let pipes = world::ask(Call::Pipes).map_err(failed)?;
    let (their_input, our_output) = (thing(&pipes, 0)?, thing(&pipes, 1)?);
    let (our_input, their_output) = (thing(&pipes, 2)?, thing(&pipes, 3)?);
    let word = world::ask(Call::Start {
        input: their_input,
        output: their_output,
    });
    let word = String::from_utf8_lossy(&word.map_err(failed)?).into_owned();
    for (name, value) in [
        (world::VARIABLE, world::place()),
        (world::WORD, word.clone()),
    ] {
        c.env.extend(CString::new(format!("{name}={value}")).ok());
    }
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    let wiring = [(null.as_raw_fd(), 0), (null.as_raw_fd(), 1)];
    let mut child = Child {
        pid: None,
        input: None,
        output: None,
        failed: None,
    };
    let ours = |is_open: bool, thing| match world::placeholder(thing).map_err(failed) {
        Ok(fd) if is_open => Ok(Some(fd)),
        // Closed at once.
        Ok(_) => Ok(None),
        Err(e) => Err(e),
    };
    child.input = ours(o.write, our_output)?;
    child.output = ours(o.read, our_input)?;
    LazyLock::force(&CHILDREN);
    let _starting = STARTING.read();
    match child::spawn(&c, &child::Wiring::from_slice(&wiring)) {
        Ok(pid) => {
            child.pid = Some(pid);
            CHILDREN.lock().running.insert(pid, port);
            let process = pid as u64;
            let end = world::ask(Call::Started { word, process }).map_err(failed)?;
            let end = world::placeholder(thing(&end, 0)?).map_err(failed)?;
            let fd = end.as_raw_fd();
            let id = poll::register(fd, Arc::new(Watched { pid, end }))?;
            poll::want(id, true, false);
        }
        Err(e) => child.failed = Some(exited(crate::posix::errno_of(&e))),
    }
    Ok(child)
}
