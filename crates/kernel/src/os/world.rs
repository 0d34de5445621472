//! The world of a cluster under one seed, as a node in it knows it. A coordinator owns the world
//! ([`purlin_world::protocol`]): its sockets, pipes and clock. The doors at the calls of the system
//! ask here instead.
//!
//! A descriptor that stands for a thing of the world is the end of a pipe of the system to which
//! nothing is ever written. So its number is given out as usual, it can be duplicated, and the end
//! of its last copy is noticed by the other end of the pipe, wherever it was closed.
//!
//! # Invariants
//! * While the node is in no world, a door costs one load of a static.
//! * One thread calls everything here.
//! * The node runs only while it has the turn.
//! * A copy of a node has pipes of its own behind its descriptors: the end of one in a copy is not
//!   that of the same one elsewhere.

use super::reopen;
use purlin_world::protocol::{
    self, Call, FileCall, Note, Point, Question, Reply, Switch, Thing, Turn, VERSION, Welcome,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard};

pub use purlin_world::net::{FAILED, HUP, IN, OUT};
pub use purlin_world::protocol as messages;

/// The environment variable with the place of the coordinator.
pub const VARIABLE: &str = "PURLIN_WORLD";
/// The environment variable with the word by which the coordinator knows an emulator.
pub const WORD: &str = "PURLIN_WORLD_WORD";
/// The name of the machine that all nodes of a world see. With a domain, OTP asks no resolver for
/// one when it starts.
pub const HOST: &str = "world.purlin";
static ON: AtomicBool = AtomicBool::new(false);
/// Whether the coordinator wants to know what this node does with files.
static FILES: AtomicBool = AtomicBool::new(false);

/// The time at which the turn ends.
static UNTIL: AtomicI64 = AtomicI64::new(i64::MAX);

/// Whether this node is in a world.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether calls on files are reported by [`file`].
#[inline(always)]
pub fn reports_files() -> bool {
    FILES.load(Ordering::Relaxed)
}

/// Reports a step with a file. An error is the result of the call that begins.
#[cold]
pub fn file(step: FileCall) -> Result<(), i32> {
    let answer = ask(Call::File(step))?;
    if let Some(now) = resumed(&answer) {
        super::exploring::jump(now);
    }
    Ok(())
}

/// Returns the time at which this node continues, if it was held while it waited for that answer.
/// The wall clock may have stepped meanwhile.
fn resumed(answer: &[u8]) -> Option<i64> {
    let number = |at| i64::try_from(protocol::number(answer, at)?).ok();
    if let Some(started) = number(1) {
        super::exploring::set_started(started);
    }
    number(0)
}

/// The answer to a note of a message.
pub(crate) struct Noted {
    /// The time at which this node continues, if it was held meanwhile.
    pub resumed: Option<i64>,
    /// The time for which the process stops that sends the message or gets it.
    pub pause: Option<i64>,
    /// The time by which the message arrives later than those of other processes.
    pub late: Option<i64>,
}

/// Tells the coordinator what passes between two nodes.
#[cold]
pub(crate) fn note(note: Note) -> Noted {
    let answer = ask(Call::Note(note)).unwrap_or_default();
    let time = |at| {
        i64::try_from(protocol::number(&answer, at)?)
            .ok()
            .filter(|ns| *ns > 0)
    };
    Noted {
        resumed: resumed(&answer),
        pause: time(2),
        late: time(3),
    }
}

/// Tells the coordinator in which order processes have done their operations.
#[cold]
pub(crate) fn tell_order(points: Vec<Point>) {
    let _ = ask(Call::Order { points });
}

/// Tells the coordinator of a switch of processes.
#[cold]
pub(crate) fn tell_switch(switch: Switch) {
    let _ = ask(Call::Switch(switch));
}

/// Whether the turn is over.
#[inline(always)]
pub fn is_over() -> bool {
    super::exploring::now() >= UNTIL.load(Ordering::Relaxed)
}

/// A thing that is open here.
struct Open {
    thing: Thing,
    /// Hung up when the last descriptor for the thing is closed.
    end: File,
}

struct Node {
    coordinator: UnixStream,
    /// The things of descriptors, each with the number of the system's pipe.
    things: BTreeMap<RawFd, (Thing, u64)>,
    open: Vec<Open>,
    /// Options of sockets that the world only keeps: by thing, level and name.
    options: BTreeMap<(Thing, i32, i32), Vec<u8>>,
    welcome: Welcome,
    place: String,
}

static NODE: Mutex<Option<Node>> = Mutex::new(None);

fn node() -> MutexGuard<'static, Option<Node>> {
    NODE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Ends this process as from outside: the coordinator ends a node by closing the connection.
fn left_alone() -> ! {
    // SAFETY: no return.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGKILL);
        libc::_exit(128 + libc::SIGKILL)
    }
}

impl Node {
    fn ask(&mut self, now: u64, call: Call) -> Result<Vec<u8>, i32> {
        let question = Question { now, call }.to_bytes();
        let sent = protocol::send(&mut self.coordinator, &question);
        let reply = sent.and_then(|()| protocol::receive_last(&mut self.coordinator));
        let Some(reply) = reply.ok().and_then(|r| Reply::from_bytes(&r)) else {
            left_alone()
        };
        let until = i64::try_from(reply.until).unwrap_or(i64::MAX);
        UNTIL.store(until, Ordering::Relaxed);
        reply.answer
    }
}

/// Joins the world that the environment names. `None` if the variable is not set.
pub fn join() -> Option<Result<Welcome, String>> {
    let place = std::env::var(VARIABLE).ok()?;
    let word = std::env::var(WORD).unwrap_or_default();
    Some(begin(place, word))
}

fn begin(place: String, word: String) -> Result<Welcome, String> {
    let coordinator = UnixStream::connect(&place).map_err(|e| format!("{place}: {e}"))?;
    let mut n = Node {
        coordinator,
        things: BTreeMap::new(),
        open: Vec::new(),
        options: BTreeMap::new(),
        welcome: Welcome::default(),
        place,
    };
    let hello = Call::Hello {
        version: VERSION,
        word,
        process: std::process::id().into(),
    };
    let welcome = n.ask(0, hello);
    let welcome = welcome.map_err(|e| format!("the coordinator refuses this node ({e})"))?;
    let Some(welcome) = Welcome::from_bytes(&welcome) else {
        return Err("the coordinator is of another build".into());
    };
    n.welcome = welcome.clone();
    *node() = Some(n);
    ON.store(true, Ordering::Relaxed);
    FILES.store(welcome.files, Ordering::Relaxed);
    if let Some((input, output)) = welcome.pipes {
        for (thing, number) in [(input, 0), (output, 1)] {
            let fd = placeholder(thing).map_err(|e| format!("error {e}"))?;
            // SAFETY: standard descriptors, which nothing owns and nothing has used yet.
            unsafe { libc::dup2(fd.as_raw_fd(), number) };
            also(fd.as_raw_fd(), number);
        }
    }
    Ok(welcome)
}

/// Returns the number that the program sees as that of its process.
pub fn process() -> u64 {
    node().as_ref().map_or(0, |n| n.welcome.process)
}

/// Returns the place of the coordinator, for programs that this node starts.
pub fn place() -> String {
    node().as_ref().map_or(String::new(), |n| n.place.clone())
}

fn now() -> u64 {
    u64::try_from(super::exploring::now()).unwrap_or(0)
}

/// Asks the coordinator.
#[cold]
pub fn ask(call: Call) -> Result<Vec<u8>, i32> {
    let Some(node) = &mut *node() else {
        return Err(libc::ENOTSUP);
    };
    node.ask(now(), call)
}

/// Tells the coordinator that the program does something that the world does not know.
#[cold]
pub fn left(how: impl Into<String>) {
    let _ = ask(Call::Left { how: how.into() });
}

/// Returns the error of a call that the world does not know, and tells the coordinator.
#[cold]
pub fn refused<T>(how: impl Into<String>) -> Result<T, i32> {
    left(how);
    Err(libc::EOPNOTSUPP)
}

/// The program opens a file for writing: tells the coordinator, unless it lies in a folder of the
/// node's own. Files are those of the real machine, which all nodes and all runs share.
#[cold]
pub fn note_written(path: &[u8]) {
    use std::os::unix::ffi::OsStrExt;
    let path = std::path::absolute(std::ffi::OsStr::from_bytes(path));
    let (Ok(path), place) = (path, place()) else {
        return;
    };
    let folder = std::path::Path::new(&place).parent();
    if folder.is_none_or(|f| !path.starts_with(f)) {
        let name = path.display();
        left(format!(
            "{name} was opened for writing: all nodes and runs share it"
        ));
    }
}

/// Tells the coordinator that this node ends.
pub fn ended(status: i32, hash: u64) {
    if is_on() {
        let status = status as u64 & 0xFF;
        let _ = ask(Call::Ended { status, hash });
    }
}

/// Returns the number of the file behind a descriptor.
fn file_number(fd: RawFd) -> Option<u64> {
    // SAFETY: an out parameter of the right type.
    unsafe {
        let mut st: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &mut st) == 0 && st.st_mode & libc::S_IFMT == libc::S_IFIFO)
            .then_some(st.st_ino as u64)
    }
}

/// Makes a descriptor for a thing.
pub fn placeholder(thing: Thing) -> Result<OwnedFd, i32> {
    let made = std::io::pipe();
    let (end, writer) = made.map_err(|e| e.raw_os_error().unwrap_or(libc::EMFILE))?;
    // The end that is kept gets a high number, so that the program's are as without.
    // SAFETY: duplicates an open descriptor; the new one is ours.
    let high = unsafe { libc::fcntl(end.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 500) };
    let end = match high >= 0 {
        // SAFETY: a fresh descriptor, which has no other owner.
        true => unsafe { File::from_raw_fd(high) },
        false => File::from(OwnedFd::from(end)),
    };
    let fd = OwnedFd::from(writer);
    let number = file_number(fd.as_raw_fd()).unwrap_or(0);
    if let Some(n) = &mut *node() {
        n.things.insert(fd.as_raw_fd(), (thing, number));
        n.open.push(Open { thing, end });
    }
    Ok(fd)
}

/// Notes that `copy` is a copy of a descriptor.
pub fn also(fd: RawFd, copy: RawFd) {
    if let Some(n) = &mut *node()
        && let Some(of) = n.things.get(&fd).copied()
    {
        n.things.insert(copy, of);
    }
}

/// Returns the thing behind a descriptor, if there is one.
#[inline(always)]
pub fn thing(fd: RawFd) -> Option<Thing> {
    match is_on() {
        false => None,
        true => thing_of(fd),
    }
}

/// Whether a descriptor stands for a thing of the world.
#[inline(always)]
pub fn knows(fd: RawFd) -> bool {
    thing(fd).is_some()
}

#[cold]
fn thing_of(fd: RawFd) -> Option<Thing> {
    let mut node = node();
    let n = node.as_mut()?;
    let (thing, number) = *n.things.get(&fd)?;
    // The number may have been given out again.
    if file_number(fd) == Some(number) {
        return Some(thing);
    }
    n.things.remove(&fd);
    None
}

/// Keeps an option of a socket.
pub fn keep_option(of: Thing, level: i32, name: i32, value: &[u8]) {
    if let Some(n) = &mut *node() {
        n.options.insert((of, level, name), value.to_vec());
    }
}

/// Returns an option that was kept.
pub fn kept_option(of: Thing, level: i32, name: i32) -> Option<Vec<u8>> {
    node().as_ref()?.options.get(&(of, level, name)).cloned()
}

/// Closes the things whose last descriptor is closed.
pub fn close_unused() {
    let closed: Vec<Thing> = {
        let mut node = node();
        let Some(n) = &mut *node else { return };
        let mut all: Vec<libc::pollfd> = (n.open.iter())
            .map(|o| libc::pollfd {
                fd: o.end.as_raw_fd(),
                events: 0,
                revents: 0,
            })
            .collect();
        // SAFETY: as many entries as there are.
        let some = unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, 0) };
        if some <= 0 {
            return;
        }
        let mut closed = Vec::new();
        let mut polled = all.iter();
        n.open.retain(|o| {
            let over = polled
                .next()
                .is_some_and(|p| p.revents & libc::POLLHUP != 0);
            closed.extend(over.then_some(o.thing));
            !over
        });
        n.things.retain(|_, (t, _)| !closed.contains(t));
        n.options.retain(|(t, ..), _| !closed.contains(t));
        closed
    };
    for of in closed {
        let _ = ask(Call::Close { of });
    }
}

/// Gives the turn back until the time `next`, or until something watched is ready; `over`: the time
/// of the turn is over, and nothing is waited for. Returns the next turn. Where the coordinator
/// wants a copy of this node the copy returns from here, too, with a turn of its own; it calls
/// `copied` first.
pub fn give_turn(next: Option<i64>, over: bool, watched: Vec<(Thing, u32)>, copied: fn()) -> Turn {
    close_unused();
    let next = next.map(|n| u64::try_from(n).unwrap_or(0));
    loop {
        let watched = watched.clone();
        let turn = ask(match over {
            true => Call::Over { watched },
            false => Call::Idle { next, watched },
        });
        match turn.ok().and_then(|t| Turn::from_bytes(&t)) {
            None => left_alone(),
            Some(t) if t.fork.is_empty() => return t,
            Some(t) => fork(t.fork, copied),
        }
    }
}

/// Makes a copy of this process, which joins the world by that word. Both return.
fn fork(word: String, copied: fn()) {
    // Copies that have ended are of no interest to anyone else.
    static COPIES: Mutex<Vec<libc::pid_t>> = Mutex::new(Vec::new());
    let mut copies = COPIES.lock().unwrap_or_else(|e| e.into_inner());
    // SAFETY: children of this process; the status goes nowhere.
    copies.retain(|c| unsafe { libc::waitpid(*c, std::ptr::null_mut(), libc::WNOHANG) } == 0);
    let files = reopen::open_files();
    // SAFETY: this is the only thread.
    match unsafe { libc::fork() } {
        -1 => left_alone(),
        0 => {
            copies.clear();
            copied();
            reopen::reopen(&files);
            if join_as_copy(word).is_err() {
                left_alone();
            }
        }
        pid => copies.push(pid),
    }
}

/// Connects a copy with the coordinator, and gives its things pipes of their own.
fn join_as_copy(word: String) -> std::io::Result<()> {
    let mut node = node();
    let Some(n) = &mut *node else { return Ok(()) };
    // Under the same number: programs see which are free.
    let new = UnixStream::connect(&n.place)?;
    replace(n.coordinator.as_raw_fd(), new.as_raw_fd())?;
    drop(new);
    let call = Call::Hello {
        version: VERSION,
        word,
        process: std::process::id().into(),
    };
    protocol::send(&mut n.coordinator, &Question { now: 0, call }.to_bytes())?;
    for o in &mut n.open {
        let (end, writer) = std::io::pipe()?;
        let number = file_number(writer.as_raw_fd()).unwrap_or(0);
        for (fd, (thing, old)) in &mut n.things {
            if *thing == o.thing && file_number(*fd) == Some(*old) {
                replace(*fd, writer.as_raw_fd())?;
                *old = number;
            }
        }
        replace(o.end.as_raw_fd(), end.as_raw_fd())?;
    }
    Ok(())
}

/// Makes a descriptor stand for what another one stands for, as `dup2(2)` does. Its flags stay.
fn replace(fd: RawFd, by: RawFd) -> std::io::Result<()> {
    // SAFETY: plain calls on open descriptors; the owner of `fd` keeps it.
    let done = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFD);
        libc::dup2(by, fd) == fd && libc::fcntl(fd, libc::F_SETFD, flags) == 0
    };
    match done {
        true => Ok(()),
        false => Err(std::io::Error::last_os_error()),
    }
}
