//! The traits that strategies and samplers implement.

use crate::base::Base;
use crate::deviation::Schedule;
use crate::numbers::Numbers;
use crate::operation::Touch;

/// How a strategy mixes listed and drawn schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    /// It lists schedules, and draws none.
    Listed,
    /// It draws schedules, and lists none.
    Drawn,
    /// It lists schedules, each third schedule is drawn, and so are all after the last listed one.
    Both,
}

/// A rule by which schedules are chosen.
pub trait Strategy {
    /// Returns how listed and drawn schedules alternate.
    fn mix(&self) -> Mix;

    /// Lists the schedules that follow from the base, in the order in which they are tried.
    fn list(&self, base: &Base) -> Vec<Schedule> {
        let _ = base;
        Vec::new()
    }

    /// Draws a schedule. None: there is no point at which one could deviate.
    fn draw(&self, base: &Base, numbers: &mut Numbers) -> Option<Schedule> {
        let _ = (base, numbers);
        None
    }
}

/// Picks the process to run before each operation, by priorities: the highest runs.
///
/// A process that is at no operation runs in any case, until it reaches one.
pub trait Sampler: Send {
    /// Returns the priority of a process that begins, or that exists where the sampler begins.
    fn begin(&mut self, path: u64, numbers: &mut Numbers) -> u64 {
        let _ = (path, numbers);
        u64::MAX
    }

    /// Returns the priority of a process at an operation. `count`: the ordinal of the operation.
    /// None: the process continues in any case.
    fn priority(
        &mut self,
        path: u64,
        touch: &Touch,
        count: u32,
        numbers: &mut Numbers,
    ) -> Option<u64>;

    /// Whether all waiting processes draw new priorities before each operation.
    fn redraws_all(&self) -> bool {
        false
    }

    /// Whether a process waiting at `pending` draws a new priority, since `done` was done.
    fn redraws_after(&self, pending: &Touch, done: &Touch) -> bool {
        let _ = (pending, done);
        false
    }

    /// Notes that a process did an operation.
    fn done(&mut self, path: u64, touch: &Touch, numbers: &mut Numbers) {
        let _ = (path, touch, numbers);
    }
}

/// All priorities that are drawn lie above this one.
pub const LOW: u64 = 1 << 20;

/// Draws a priority above [`LOW`].
pub fn draw_priority(numbers: &mut Numbers) -> u64 {
    (numbers.draw() >> 1) + LOW
}

/// Merges lists by taking the next schedule of each in turn.
pub(super) fn interleave(lists: Vec<Vec<Schedule>>) -> Vec<Schedule> {
    let mut all: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut v = Vec::new();
    loop {
        let before = v.len();
        v.extend(all.iter_mut().filter_map(Iterator::next));
        if v.len() == before {
            return v;
        }
    }
}
