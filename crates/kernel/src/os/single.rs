//! The mode in which one thread does everything (see `choice`), as those below it know it: whether it is on, virtual time, and what is
//! awaited from outside.

use purlin_term::Term;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

static ON: AtomicBool = AtomicBool::new(false);

/// Whether the mode is on. Settled before anything runs.
#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Nanoseconds of virtual time since the emulator started.
static NOW: AtomicI64 = AtomicI64::new(0);
/// The wall clock at the start, in nanoseconds since 1970: recorded, so that a replay starts at the same moment.
static STARTED: AtomicI64 = AtomicI64::new(0);
/// Virtual time that a reduction takes, in nanoseconds: loops that watch the clock end.
const NS_PER_REDUCTION: i64 = 100;

/// Calls that another thread makes for a process, since they may never return: the clock stands while there are any.
pub static OUTSIDE: AtomicUsize = AtomicUsize::new(0);

/// A program was started, or was sent something, and has not answered yet: the clock waits for it for a while.
pub static ASKED: AtomicBool = AtomicBool::new(false);

/// Is told of the end of the emulator with its exit status.
static ENDED: OnceLock<fn(i32)> = OnceLock::new();

/// Is told of the end of a process, before others are, with the data of its pid and the reason.
static PROCESS_ENDS: OnceLock<fn(u32, Term)> = OnceLock::new();

/// Is told of a timer that sends a message: to whom, and what.
static TIMER_SENDS: OnceLock<fn(Term, Term)> = OnceLock::new();

/// Puts the mode on. `started`: the wall clock at the start, in nanoseconds since 1970. `ended` is called last of all as the emulator
/// ends, with its exit status; `process_ends` as a process does, and `timer_sends` as a timer sends a message.
pub(crate) fn begin(
    started: i64,
    ended: fn(i32),
    process_ends: fn(u32, Term),
    timer_sends: fn(Term, Term),
) {
    STARTED.store(started, Ordering::Relaxed);
    let _ = ENDED.set(ended);
    let _ = PROCESS_ENDS.set(process_ends);
    let _ = TIMER_SENDS.set(timer_sends);
    ON.store(true, Ordering::Relaxed);
}

/// Nanoseconds of virtual time since the start.
#[inline]
pub fn now() -> i64 {
    NOW.load(Ordering::Relaxed)
}

/// The wall clock at the start of the emulator, in nanoseconds since 1970.
#[inline]
pub fn started() -> i64 {
    STARTED.load(Ordering::Relaxed)
}

/// Lets virtual time pass.
pub(crate) fn advance(reductions: i64) {
    NOW.fetch_add(reductions * NS_PER_REDUCTION, Ordering::Relaxed);
}

/// Has virtual time jump to `ns`, if it lies ahead.
pub(crate) fn jump(ns: i64) {
    NOW.fetch_max(ns, Ordering::Relaxed);
}

/// A process ends, whose pid has that data. Others have not been told.
pub(crate) fn process_ends(pid_data: u32, reason: Term) {
    if let Some(f) = PROCESS_ENDS.get() {
        f(pid_data, reason);
    }
}

/// A timer sends that to a process.
pub(crate) fn timer_sends(to: Term, message: Term) {
    if let Some(f) = TIMER_SENDS.get() {
        f(to, message);
    }
}

/// The emulator ends with that exit status.
pub(crate) fn ended(status: i32) {
    if let Some(f) = ENDED.get() {
        f(status);
    }
}
