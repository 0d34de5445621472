//! Leases: functions that stay on only while someone looks. Each ends by itself at some time.
//!
//! Clients may go away at any time without notice. So a thread, which exists while any lease is on,
//! turns off what nobody has asked for.

use purlin_term::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// A function under lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thing {
    /// The trace of a function.
    Calls,
    /// The counts of the last look at processes, for comparison with the next.
    Processes,
}

const THINGS: [Thing; 2] = [Thing::Calls, Thing::Processes];

impl Thing {
    /// Turns it off. Has no effect if the lease was renewed meanwhile, or is off.
    fn end(self) {
        match self {
            Thing::Calls => super::calls::time_is_over(),
            Thing::Processes => super::process_list::forget(),
        }
    }
}

struct All {
    until: [Option<Instant>; THINGS.len()],
    /// Whether the thread exists.
    watched: bool,
}

static ALL: Mutex<All> = Mutex::new(All {
    until: [None; THINGS.len()],
    watched: false,
});
static CHANGED: Condvar = Condvar::new();

fn all() -> MutexGuard<'static, All> {
    ALL.lock()
}

/// Keeps a lease on until then, unless it is renewed. Returns false if there can be no thread to
/// turn it off, so it must not be turned on.
#[must_use]
pub fn keep(thing: Thing, until: Instant) -> bool {
    let mut a = all();
    if !a.watched {
        let made = std::thread::Builder::new()
            .name("observe".into())
            .stack_size(256 << 10)
            .spawn(watch);
        a.watched = made.is_ok();
    }
    if a.watched {
        a.until[thing as usize] = Some(until);
        CHANGED.notify_one();
    }
    a.watched
}

/// The body of the thread, which ends when no lease is on.
fn watch() {
    let mut a = all();
    loop {
        let now = Instant::now();
        let due = |t: &Thing| a.until[*t as usize].is_some_and(|u| u <= now);
        if let Some(thing) = THINGS.into_iter().find(due) {
            a.until[thing as usize] = None;
            // Ending may take other locks.
            drop(a);
            thing.end();
            a = all();
            continue;
        }
        let Some(next) = a.until.iter().flatten().min() else {
            a.watched = false;
            return;
        };
        let left = next.saturating_duration_since(now);
        a = CHANGED.wait_timeout(a, left);
    }
}
