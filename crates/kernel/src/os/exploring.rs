//! The mode of the race finder, in which one thread does everything, as the lower layers know it:
//! whether it is on, virtual time, and what is awaited from outside.
//!
//! # Invariants
//! * The mode is set before anything runs, and never changes.
//! * Virtual time never goes back.

use purlin_term::Term;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

static ON: AtomicBool = AtomicBool::new(false);

/// Whether the mode is on.
#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Nanoseconds of virtual time since the emulator started.
static NOW: AtomicI64 = AtomicI64::new(0);
/// The wall clock at the start, in nanoseconds since 1970. It is recorded, so that a replay starts
/// at the same time.
static STARTED: AtomicI64 = AtomicI64::new(0);
/// Nanoseconds of virtual time for each reduction, so that loops which watch the clock end.
const NS_PER_REDUCTION: i64 = 100;

/// Number of calls that another thread makes for a process, since they may never return. The clock
/// stands while there are any.
pub static OUTSIDE: AtomicUsize = AtomicUsize::new(0);

/// Whether a program was started or was sent something and has not answered yet. The clock waits
/// for it for a while.
pub static ASKED: AtomicBool = AtomicBool::new(false);

/// The functions that the race finder has called.
pub(crate) struct Hooks {
    /// The emulator ends with that exit status.
    pub ended: fn(i32),
    /// A process ends: its number and the reason. No other process knows yet.
    pub process_ends: fn(u32, Term),
    /// A timer sends a message: the receiver and the message.
    pub timer_sends: fn(Term, Term),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Turns the mode on. `started`: the wall clock at the start, in nanoseconds since 1970.
pub(crate) fn begin(started: i64, hooks: Hooks) {
    STARTED.store(started, Ordering::Relaxed);
    let _ = HOOKS.set(hooks);
    purlin_native::reschedule::stop_timing();
    ON.store(true, Ordering::Relaxed);
}

/// Returns the nanoseconds of virtual time since the start.
#[inline]
pub fn now() -> i64 {
    NOW.load(Ordering::Relaxed)
}

/// Steps the wall clock: sets what it showed at the start, in nanoseconds since 1970.
pub(crate) fn set_started(started: i64) {
    STARTED.store(started, Ordering::Relaxed);
}

/// Returns the wall clock at the start, in nanoseconds since 1970.
#[inline]
pub fn started() -> i64 {
    STARTED.load(Ordering::Relaxed)
}

/// Advances virtual time by that many reductions.
pub(crate) fn advance(reductions: i64) {
    NOW.fetch_add(reductions * NS_PER_REDUCTION, Ordering::Relaxed);
}

/// Moves virtual time to `ns`, if that lies ahead.
pub(crate) fn jump(ns: i64) {
    NOW.fetch_max(ns, Ordering::Relaxed);
}

/// The process with that number ends. No other process knows yet.
pub(crate) fn process_ends(pid_data: u32, reason: Term) {
    if let Some(h) = HOOKS.get() {
        (h.process_ends)(pid_data, reason);
    }
}

/// A timer sends a message to a process.
pub(crate) fn timer_sends(to: Term, message: Term) {
    if let Some(h) = HOOKS.get() {
        (h.timer_sends)(to, message);
    }
}

/// The emulator ends with that exit status.
pub(crate) fn ended(status: i32) {
    if let Some(h) = HOOKS.get() {
        (h.ended)(status);
    }
}
