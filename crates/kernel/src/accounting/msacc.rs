//! Microstate accounting: the time that each thread of the runtime spends in each state
//! (`erlang:statistics(microstate_accounting)`, module `msacc`).
//!
//! While off, it costs one look at a flag at each change of state. The state of a sleeping thread
//! is recorded all the same, so that it is known when accounting begins.

use crate::clock;
use crate::sync::{Mutex, MutexGuard};
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The runtime's own work: compaction, returning memory to the system.
    Aux,
    /// Polling descriptors and notifying their owners.
    CheckIo,
    /// Running a process.
    Emulator,
    /// Collecting garbage.
    Gc,
    /// Anything else.
    Other,
    /// Running a port.
    Port,
    Sleep,
}

/// The names of the states, in the order of [`State`].
pub const NAMES: [&str; 7] = [
    "aux", "check_io", "emulator", "gc", "other", "port", "sleep",
];

/// Kinds of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Scheduler,
    DirtyCpu,
    DirtyIo,
    Poll,
    Aux,
}

impl Kind {
    /// The name that programs see.
    #[inline]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Scheduler => "scheduler",
            Kind::DirtyCpu => "dirty_cpu_scheduler",
            Kind::DirtyIo => "dirty_io_scheduler",
            Kind::Poll => "poll",
            Kind::Aux => "aux",
        }
    }
}

struct Times {
    state: State,
    /// Time in nanoseconds at which it entered that state or was last counted.
    since: i64,
    spent: [u64; NAMES.len()],
}

impl Times {
    #[inline]
    fn count(&mut self) {
        let now = clock::perf_counter();
        self.spent[self.state as usize] += (now - self.since).max(0) as u64;
        self.since = now;
    }
}

struct Thread {
    kind: Kind,
    id: usize,
    times: Mutex<Times>,
}

impl Thread {
    #[inline]
    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock()
    }
}

static ON: AtomicBool = AtomicBool::new(false);
static THREADS: Mutex<Vec<Arc<Thread>>> = Mutex::new(Vec::new());

thread_local! {
    static ME: OnceCell<Arc<Thread>> = const { OnceCell::new() };
}

#[inline]
fn threads() -> MutexGuard<'static, Vec<Arc<Thread>>> {
    THREADS.lock()
}

/// Registers the calling thread.
pub(crate) fn begin_thread(kind: Kind, id: usize) {
    let t = Arc::new(Thread {
        kind,
        id,
        times: Mutex::new(Times {
            state: State::Other,
            since: clock::perf_counter(),
            spent: [0; NAMES.len()],
        }),
    });
    ME.with(|m| {
        if m.set(t.clone()).is_ok() {
            threads().push(t);
        }
    });
}

/// Whether times are counted.
#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Changes the state of the calling thread. Records nothing while times are not counted.
#[inline(always)]
pub(crate) fn change(to: State) {
    if on() {
        note(to);
    }
}

/// Notes that the calling thread is about to sleep, or has woken (`false`).
#[inline]
pub(crate) fn asleep(sleeps: bool) {
    note(if sleeps { State::Sleep } else { State::Other });
}

#[cold]
fn note(to: State) -> State {
    ME.with(|m| {
        let Some(t) = m.get() else {
            return State::Other;
        };
        let mut t = t.times();
        if on() {
            t.count();
        }
        std::mem::replace(&mut t.state, to)
    })
}

/// A state that ends when this value is dropped.
pub struct Within(Option<State>);

/// Puts the calling thread into a state until the result is dropped.
#[inline(always)]
pub fn within(s: State) -> Within {
    Within(on().then(|| note(s)))
}

impl Drop for Within {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            note(before);
        }
    }
}

/// Turns counting on or off, at the request of a process that the calling thread runs. Returns
/// whether it was on.
pub fn set(on: bool) -> bool {
    let all = threads();
    let before = ON.load(Ordering::Relaxed);
    if before == on {
        return before;
    }
    for t in all.iter() {
        let mut t = t.times();
        match on {
            true => t.since = clock::perf_counter(),
            false => t.count(),
        }
    }
    ON.store(on, Ordering::Relaxed);
    drop(all);
    note(State::Emulator);
    before
}

/// Sets all counts to zero. Returns whether times are counted.
#[inline]
pub fn reset() -> bool {
    for t in threads().iter() {
        let mut t = t.times();
        t.since = clock::perf_counter();
        t.spent = [0; NAMES.len()];
    }
    on()
}

/// Returns kind, number and times of each thread; times are in nanoseconds, in the order of
/// [`NAMES`].
pub fn all() -> Vec<(Kind, usize, [u64; NAMES.len()])> {
    let on = on();
    let all = threads();
    all.iter()
        .map(|t| {
            let mut times = t.times();
            if on {
                times.count();
            }
            (t.kind, t.id, times.spent)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_to_the_state_it_is_spent_in() {
        let spent = |s: State| {
            let (.., t) = all()
                .into_iter()
                .find(|t| t.0 == Kind::Aux && t.1 == 7)
                .expect("this thread");
            t[s as usize]
        };
        let busy = || {
            let until = clock::perf_counter() + 1_000_000;
            while clock::perf_counter() < until {}
        };
        begin_thread(Kind::Aux, 7);
        busy();
        assert_eq!(spent(State::Other), 0);
        assert!(!set(true));
        change(State::Other);
        {
            let _port = within(State::Port);
            busy();
            change(State::Gc);
            busy();
        }
        assert!(set(false));
        busy();
        assert!(spent(State::Port) >= 1_000_000 && spent(State::Gc) >= 1_000_000);
        assert!(!reset());
        assert_eq!((spent(State::Port), spent(State::Other)), (0, 0));
    }
}
