//! Which threads poll. Usually the poll thread waits all the time, and a scheduler with nothing to
//! run waits beside it ([`super::place`]). While events are frequent, the schedulers poll instead:
//! between processes without waiting, and before they sleep. The poll thread naps meanwhile, and
//! polls once per nap if no scheduler has done so. So a process that answers what another has just
//! sent runs on the same scheduler, and no thread is woken for it.
//!
//! # Protocol
//! While events are frequent, a scheduler that finds nothing to run follows two rules:
//! 1. If another scheduler took the place last ([`Duty::leaves_to`]), is awake and has begun
//!    another process lately, that one will look for events. This one sleeps where events don't
//!    wake it.
//! 2. Otherwise it takes the place, and waits there for events.
//!
//! So no event waits for longer than a nap:
//! 1. The scheduler that took the place last never follows the first rule. When it finds nothing to
//!    run, it waits for events.
//! 2. Until then it runs processes, and polls between them.
//! 3. If it runs one process for so long that nobody polls, the poll thread sees that after a nap
//!    ([`Duty::after_nap`]), and polls itself.
//!
//! # Orderings
//! [`Duty::took`] is called by the thread in the place, so the stores to `last` are in the order in
//! which the place was taken. A scheduler marks itself as idle, passes a `SeqCst` fence and then
//! calls [`Duty::leaves_to`]; the one that it leaves the waiting to was not idle then, so it passes
//! such a fence later. Of all schedulers that rest, the one that took the place last sees its own
//! store, since there is none after it, and doesn't leave the waiting to another. All else is
//! statistics, and `Relaxed`.

use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Number of events within [`WINDOW`] from which on they are frequent.
pub const MANY: usize = 8;
/// Nanoseconds; as long as a nap.
const WINDOW: u64 = 1_000_000;
/// Number of events in a nap below which the nap was quiet.
pub const FEW: usize = 4;
/// Number of consecutive quiet naps after which events are no longer frequent.
pub const QUIET_NAPS: u32 = 8;
/// Number of consecutive naps without a poll by a scheduler, but with events, after which the poll
/// thread waits again.
pub const BUSY_NAPS: u32 = 4;

/// See the module docs.
pub struct Duty {
    /// Whether events are frequent.
    frequent: AtomicBool,
    /// Number of events found by any thread.
    events: AtomicUsize,
    /// Number of times that schedulers have polled.
    polls: AtomicUsize,
    /// The scheduler that took the place last, from 1; 0 for none.
    last: AtomicUsize,
    /// Start of the window, and `events` at that time.
    window: AtomicU64,
    at_window: AtomicUsize,
}

/// Observation of the poll thread after its last nap.
#[derive(Default)]
pub struct Naps {
    events: usize,
    polls: usize,
    quiet: u32,
    busy: u32,
}

/// Next step of the poll thread after a nap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    Nap,
    /// It polls without waiting, and calls [`Duty::found_itself`].
    Poll,
    Wait,
}

impl Duty {
    /// Returns the duty of a poll thread that waits.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Duty {
        Duty {
            frequent: AtomicBool::new(false),
            events: AtomicUsize::new(0),
            polls: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
            window: AtomicU64::new(0),
            at_window: AtomicUsize::new(0),
        }
    }
    /// Whether schedulers poll between processes, and the poll thread naps.
    #[inline]
    pub fn is_frequent(&self) -> bool {
        self.frequent.load(Ordering::Relaxed)
    }
    /// Sets whether they do.
    pub fn set_frequent(&self, on: bool) {
        self.frequent.store(on, Ordering::Relaxed);
    }
    /// Counts events that this thread has found. `now` returns the time in nanoseconds. `may`:
    /// events may count as frequent.
    pub fn found(&self, events: usize, may: bool, now: impl FnOnce() -> u64) {
        if events == 0 {
            return;
        }
        let before = self.events.fetch_add(events, Ordering::Relaxed);
        if !may || self.is_frequent() {
            return;
        }
        let now = now();
        if now.wrapping_sub(self.window.load(Ordering::Relaxed)) > WINDOW {
            self.window.store(now, Ordering::Relaxed);
            self.at_window.store(before, Ordering::Relaxed);
        }
        let all = (before + events).wrapping_sub(self.at_window.load(Ordering::Relaxed));
        if (MANY..usize::MAX / 2).contains(&all) {
            self.set_frequent(true);
        }
    }
    /// Notes that scheduler `me`, from 1, has taken the place.
    #[inline]
    pub fn took(&self, me: usize) {
        self.last.store(me, Ordering::Relaxed);
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls.wrapping_add(1), Ordering::Relaxed);
    }
    /// Returns the scheduler, from 1, to which `me` leaves the waiting for events if that one is
    /// awake.
    #[inline]
    pub fn leaves_to(&self, me: usize) -> Option<usize> {
        let last = self.last.load(Ordering::Relaxed);
        (self.is_frequent() && last != 0 && last != me).then_some(last)
    }
    /// Decides what the poll thread does after a nap. `waits`: a scheduler is in the place.
    pub fn after_nap(&self, seen: &mut Naps, waits: bool) -> Then {
        if !self.is_frequent() {
            *seen = Naps::default();
            return Then::Wait;
        }
        let events = self.events.load(Ordering::Relaxed);
        let found = events.wrapping_sub(std::mem::replace(&mut seen.events, events));
        seen.quiet = if found < FEW { seen.quiet + 1 } else { 0 };
        if seen.quiet >= QUIET_NAPS {
            return self.waits_again(seen);
        }
        let polls = self.polls.load(Ordering::Relaxed);
        if waits || std::mem::replace(&mut seen.polls, polls) != polls {
            seen.busy = 0;
            return Then::Nap;
        }
        Then::Poll
    }
    /// Notes whether the poll thread has found anything after [`Then::Poll`].
    pub fn found_itself(&self, seen: &mut Naps, any: bool) -> Then {
        seen.busy = if any { seen.busy + 1 } else { 0 };
        if seen.busy >= BUSY_NAPS {
            return self.waits_again(seen);
        }
        Then::Nap
    }
    fn waits_again(&self, seen: &mut Naps) -> Then {
        self.set_frequent(false);
        *seen = Naps::default();
        Then::Wait
    }
}
