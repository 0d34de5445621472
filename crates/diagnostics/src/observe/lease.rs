//! Leases: things that are on only as long as somebody looks. Each has a time at which it goes off by itself.
//!
//! Whoever looks may be gone at any time without a word. So a thread of its own, which is there while anything is on, turns
//! off what nobody has asked for any more.

use purlin_term::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// A thing that is on for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thing {
    /// Samples of where schedulers spend their time.
    Samples,
    /// The trace of a function.
    Calls,
    /// The counts of the last look at processes, to be compared with the next.
    Processes,
}

const THINGS: [Thing; 3] = [Thing::Samples, Thing::Calls, Thing::Processes];

impl Thing {
    /// Its time is over. Does nothing where it was renewed meanwhile, or is off.
    fn end(self) {
        match self {
            Thing::Samples => purlin_kernel::profile::stop(),
            Thing::Calls => super::calls::time_is_over(),
            Thing::Processes => super::processes::forget(),
        }
    }
}

struct All {
    until: [Option<Instant>; THINGS.len()],
    /// There is a thread that looks to it.
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

/// A thing is on until then, unless this is called again. False: there can be no thread that turns it off, so it must not be on.
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

/// Ends when nothing is on.
fn watch() {
    let mut a = all();
    loop {
        let now = Instant::now();
        let due = |t: &Thing| a.until[*t as usize].is_some_and(|u| u <= now);
        if let Some(thing) = THINGS.into_iter().find(due) {
            a.until[thing as usize] = None;
            // It may take locks of others.
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
