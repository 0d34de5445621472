//! The system calls by which a program of the race finder reaches the outside, and the replay log
//! behind them. A recording run writes each answer of the system to a file as it comes. A replay
//! gets these answers in place of the system's; see [`purlin_explore::log`] for the entries.
//!
//! A call site, here called a *door*, asks [`ask`] first, whether the answer is known, and passes
//! its own to [`note`] otherwise; [`call`] does both. Nothing else enters a run, so a replay comes
//! to the same doors in the same order. Polls for ready descriptors are counted, and those that
//! found some are in the log.
//!
//! # Invariants
//! * While nothing is recorded or replayed, a door costs one load of a static, beside a system
//!   call.
//! * A replay opens, starts and writes nothing by a door: its descriptors are placeholders on
//!   `/dev/null`.
//! * The log has at most [`MOST_BYTES`]. A replay ends where the log was cut off.

pub use purlin_explore::log::{Asked, Entry, Verb};
use purlin_explore::log::{KINDS, Mismatch, Name, Playback, Poll};
use purlin_messages as messages;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Maximum number of bytes in a log.
pub const MOST_BYTES: usize = 64 << 20;

const OFF: u8 = 0;
const RECORDS: u8 = 1;
const REPLAYS: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(OFF);

/// Whether this run records or replays.
#[inline(always)]
pub fn is_on() -> bool {
    MODE.load(Ordering::Relaxed) != OFF
}

/// Whether answers come from the log.
#[inline(always)]
pub fn replays() -> bool {
    MODE.load(Ordering::Relaxed) == REPLAYS
}

struct Log {
    to: Option<File>,
    written: usize,
    /// The call whose result is to be recorded.
    asked: Option<(Verb, Option<Name>, Asked)>,
    /// Number of polls so far.
    polls: u64,
    playback: Playback,
    names: Option<HashMap<RawFd, Name>>,
    numbers: [u32; KINDS.len()],
    /// Ends a replay that differs from the recorded run.
    differs: fn(Mismatch) -> !,
}

static LOG: Mutex<Option<Log>> = Mutex::new(None);

/// The log of this process, behind its lock.
struct Locked(MutexGuard<'static, Option<Log>>);

impl std::ops::Deref for Locked {
    type Target = Log;
    fn deref(&self) -> &Log {
        self.0.as_ref().expect("made by `log`")
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Log {
        self.0.as_mut().expect("made by `log`")
    }
}

/// Ends a replay that differs before its end was set, which none does.
fn end_at_once(how: Mismatch) -> ! {
    let text = messages::REPLAY_FAILS.line(how);
    let _ = writeln!(std::io::stderr(), "{text}");
    std::process::exit(4)
}

fn log() -> Locked {
    let mut log = LOG.lock().unwrap_or_else(|e| e.into_inner());
    log.get_or_insert_with(|| Log {
        to: None,
        written: 0,
        asked: None,
        polls: 0,
        playback: Playback::default(),
        names: None,
        numbers: [0; KINDS.len()],
        differs: end_at_once,
    });
    Locked(log)
}

pub fn begin_recording(to: File) {
    log().to = Some(to);
    MODE.store(RECORDS, Ordering::Relaxed);
}

/// Begins to replay a log. `differs` ends a run that asks something else.
pub fn begin_replay(playback: Playback, differs: fn(Mismatch) -> !) {
    let mut l = log();
    l.playback = playback;
    l.differs = differs;
    MODE.store(REPLAYS, Ordering::Relaxed);
}

/// Stops recording, for that reason. A replay ends when it comes here.
pub fn cut(why: &str) {
    if MODE.load(Ordering::Relaxed) == RECORDS {
        log().push(Entry::Cut(why.into()));
        MODE.store(OFF, Ordering::Relaxed);
    }
}

impl Log {
    fn push(&mut self, e: Entry) {
        let Some(to) = &mut self.to else { return };
        let mut line = e.line();
        line.push('\n');
        if self.written + line.len() > MOST_BYTES && !matches!(e, Entry::Cut(_)) {
            let why = format!("more than {} MiB came from outside", MOST_BYTES >> 20);
            line = Entry::Cut(why).line();
            line.push('\n');
            MODE.store(OFF, Ordering::Relaxed);
        }
        self.written += line.len();
        if to.write_all(line.as_bytes()).is_err() {
            MODE.store(OFF, Ordering::Relaxed);
        }
    }
    fn name(&self, fd: RawFd) -> Option<Name> {
        self.names.as_ref()?.get(&fd).copied()
    }
}

/// Names descriptors of one kind (`s`, `p`, `f`). The two of a program have the same name.
pub fn name(kind: char, fds: &[RawFd]) {
    if !is_on() {
        return;
    }
    let mut l = log();
    let i = KINDS.iter().position(|k| k.0 == kind).unwrap_or(0);
    l.numbers[i] += 1;
    let n = l.numbers[i];
    let names = l.names.get_or_insert_default();
    for fd in fds {
        names.insert(*fd, (kind, n));
    }
}

/// Forgets the name of a descriptor.
pub fn unname(fd: RawFd) {
    if is_on()
        && let Some(names) = &mut log().names
    {
        names.remove(&fd);
    }
}

/// Whether the descriptor has a name in the log.
pub fn knows(fd: RawFd) -> bool {
    is_on() && log().name(fd).is_some()
}

/// Asks the log. Some: the answer that the run gets in place of the system's. None: the system is
/// to be asked, and its answer is passed to [`note`].
#[cold]
pub fn ask(verb: Verb, fd: Option<RawFd>, asked: Asked) -> Option<Result<Vec<u8>, i32>> {
    let mut l = log();
    let of = fd.and_then(|fd| l.name(fd));
    match MODE.load(Ordering::Relaxed) {
        RECORDS => l.asked = Some((verb, of, asked)),
        REPLAYS => {
            let answer = l.playback.answer(verb, of, &asked);
            return Some(answer.unwrap_or_else(|how| end(l, how)));
        }
        _ => {}
    }
    None
}

/// Ends a replay that differs. Nothing is locked while it does so.
fn end(l: Locked, how: Mismatch) -> ! {
    let differs = l.differs;
    drop(l);
    differs(how)
}

/// Records the system's answer to the last question, if this run records.
#[cold]
pub fn note(answer: Result<Vec<u8>, i32>) {
    let mut l = log();
    if let Some((verb, of, asked)) = l.asked.take() {
        l.push(Entry::Answer {
            verb,
            of,
            asked,
            answer,
        });
    }
}

/// Drops the last question, which has no answer that could be recorded.
pub fn no_answer() {
    log().asked = None;
}

/// Ends a replay whose log has an answer that cannot be read.
pub fn damaged() -> ! {
    let l = log();
    let at = l.playback.played();
    end(
        l,
        format!("outside, at event {at}: the file has an answer that means nothing"),
    )
}

/// An answer that can be recorded.
pub trait Answer: Sized {
    fn to_bytes(&self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

impl Answer for () {
    fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }
    fn from_bytes(_: &[u8]) -> Option<()> {
        Some(())
    }
}

impl Answer for bool {
    fn to_bytes(&self) -> Vec<u8> {
        vec![b'0' + u8::from(*self)]
    }
    fn from_bytes(bytes: &[u8]) -> Option<bool> {
        Some(bytes == b"1")
    }
}

impl Answer for Vec<u8> {
    fn to_bytes(&self) -> Vec<u8> {
        self.clone()
    }
    fn from_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Answer for $t {
            fn to_bytes(&self) -> Vec<u8> {
                self.to_string().into_bytes()
            }
            fn from_bytes(bytes: &[u8]) -> Option<$t> {
                std::str::from_utf8(bytes).ok()?.parse().ok()
            }
        }
    )*};
}
numbers! { usize i32 i64 }

impl<T: Answer> Answer for Option<T> {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_ref().map_or(Vec::new(), |t| {
            let mut v = vec![b'+'];
            v.extend(t.to_bytes());
            v
        })
    }
    fn from_bytes(bytes: &[u8]) -> Option<Option<T>> {
        match bytes {
            [] => Some(None),
            [_, rest @ ..] => Some(Some(T::from_bytes(rest)?)),
        }
    }
}

/// A descriptor: a replay gets a placeholder, which is to be [named](name) like the recorded one.
impl Answer for OwnedFd {
    fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }
    fn from_bytes(_: &[u8]) -> Option<OwnedFd> {
        placeholder().ok()
    }
}

/// Opens a descriptor from which nothing comes.
pub fn placeholder() -> std::io::Result<OwnedFd> {
    let f = File::options().read(true).write(true).open("/dev/null")?;
    Ok(f.into())
}

/// Asks the log, or else the system by `real`.
#[inline(always)]
pub fn call<T: Answer>(
    verb: Verb,
    fd: Option<RawFd>,
    asked: impl FnOnce() -> Asked,
    real: impl FnOnce() -> Result<T, i32>,
) -> Result<T, i32> {
    match is_on() {
        false => real(),
        true => logged(verb, fd, asked(), real),
    }
}

#[cold]
#[inline(never)]
fn logged<T: Answer>(
    verb: Verb,
    fd: Option<RawFd>,
    asked: Asked,
    real: impl FnOnce() -> Result<T, i32>,
) -> Result<T, i32> {
    if let Some(answer) = ask(verb, fd, asked) {
        return answer.map(|b| T::from_bytes(&b).unwrap_or_else(|| damaged()));
    }
    let r = real();
    note(r.as_ref().map(T::to_bytes).map_err(|e| *e));
    r
}

/// Does what [`call`] does, for a call that opens a descriptor of that kind.
#[inline(always)]
pub fn opens(
    verb: Verb,
    kind: char,
    asked: impl FnOnce() -> Asked,
    real: impl FnOnce() -> Result<OwnedFd, i32>,
) -> Result<OwnedFd, i32> {
    let r = call(verb, None, asked, real);
    if is_on()
        && let Ok(fd) = &r
    {
        name(kind, &[fd.as_raw_fd()]);
    }
    r
}

/// Fills `to` from the log, or else by `real`, which returns the number of bytes.
///
/// # Safety
/// `to` has room for `room` bytes.
#[inline(always)]
pub unsafe fn fills(
    verb: Verb,
    fd: RawFd,
    asked: impl FnOnce() -> Asked,
    to: *mut u8,
    room: usize,
    real: impl FnOnce() -> Result<usize, i32>,
) -> Result<usize, i32> {
    if !is_on() {
        return real();
    }
    if let Some(answer) = ask(verb, Some(fd), asked()) {
        return answer.map(|b| {
            let n = b.len().min(room);
            // SAFETY: by the contract of this function.
            unsafe { std::ptr::copy_nonoverlapping(b.as_ptr(), to, n) };
            n
        });
    }
    let r = real();
    // SAFETY: the call has filled as many bytes as it returns, up to `room`; a greater number
    // counts bytes that were cut off.
    let bytes = |n: &usize| unsafe { std::slice::from_raw_parts(to, (*n).min(room)).to_vec() };
    note(r.as_ref().map(bytes).map_err(|e| *e));
    r
}

/// Records a poll, and which descriptors it found ready.
pub fn polled(what: impl Iterator<Item = (usize, u8)>) {
    if MODE.load(Ordering::Relaxed) != RECORDS {
        return;
    }
    let mut l = log();
    l.polls += 1;
    let what: Vec<_> = what.collect();
    if !what.is_empty() {
        let poll = l.polls;
        l.push(Entry::Ready { poll, what });
    }
}

/// Returns what the poll of a replay finds. `for_ever`: nothing else can happen.
pub fn replayed_poll(for_ever: bool) -> Vec<(usize, u8)> {
    let mut l = log();
    match l.playback.poll(for_ever) {
        Ok(Poll::Ready(what)) => what,
        Ok(Poll::Ended(signal)) => {
            drop(l);
            // SAFETY: plain calls; this is the only thread, and the signal has its default action.
            unsafe {
                libc::raise(signal);
                libc::_exit(128 + signal)
            }
        }
        Err(how) => end(l, how),
    }
}
