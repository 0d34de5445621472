//! The order in which the processes of one run queue run.
//!
//! # Normal priority
//! Three classes share a scheduler by their cost, in reductions:
//! - **first**: woken and new processes, in the order of arrival;
//! - **recent**: processes that have used up a time slice, but not many since they waited last:
//!   requests that take a little longer;
//! - **long**: processes that have had [`TURN_SLICES`] and more, which compute.
//!
//! The first class goes before the others as long as it has had at most half of what they have had,
//! and recent ones go before long ones up to a third ([`Share`]). So a process that answers a
//! message or a timer need not wait until each of a thousand busy ones has had its slice: it is
//! short, and its class is not in debt. A class with more to do gets what it would get if all took
//! turns: a request that takes a little longer than others is no later than with round robin, and a
//! few computing processes don't take half of a server's time. Nobody starves: a class gets at
//! least a seventeenth.
//!
//! Only work that was done while the other class waited counts. A class that had nothing to run
//! keeps at most [`BURST`] of its unused share.
//!
//! A process with a large heap has several slices in a turn, so that its heap is still in the
//! processor's caches. After such a turn it is in debt to the others that compute: those with one
//! slice in a turn have as many turns before its next one. Among processes of its kind, it waits
//! for one turn of each.
//!
//! `order_tests.rs` has a model of a scheduler with its processes, and compares this order with
//! others.

use crate::process::state::Priority;
use std::collections::VecDeque;

/// Levels of a run queue: low, recent, high and max as in [`Priority`], then the others of normal
/// priority: woken and new processes, those that have had a long turn, and the other computing
/// ones.
pub(super) const LEVELS: usize = 7;
pub(super) const RECENT: usize = Priority::Normal as usize;
pub(super) const WOKEN: usize = 4;
pub(super) const OWING: usize = 5;
pub(super) const LONG: usize = 6;
/// The levels of normal priority.
pub(super) const EQUAL: [usize; 4] = [RECENT, WOKEN, OWING, LONG];
/// The levels of processes that have used up a slice.
const USED: [usize; 3] = [RECENT, OWING, LONG];
/// The order in which an idle scheduler steals from another's levels.
pub(super) const STEAL_ORDER: [usize; LEVELS] = [
    Priority::Max as usize,
    Priority::High as usize,
    WOKEN,
    RECENT,
    LONG,
    OWING,
    Priority::Low as usize,
];
/// Number of levels at the front of [`STEAL_ORDER`] that are above normal priority.
pub(super) const URGENT_LEVELS: usize = 2;

/// Reductions in a time slice.
pub(crate) const SLICE: i64 = 4000;
/// Reductions that taking a process counts for.
pub(crate) const PICK: i64 = 100;
/// Maximum credit, in reductions, of a class that had nothing to run.
const BURST: i64 = 4 * SLICE;
/// Maximum lead of a class: a process may use much more than a slice in one native.
const AHEAD: i64 = TURN_SLICES as i64 * SLICE;
/// Maximum ratio between the shares of two classes.
const MOST_RATIO: i64 = 16;
/// Unit of shares, and the minimum shares of first and of recent processes against it.
const WHOLE: i64 = 12;
const FIRST_LEAST: i64 = WHOLE / 2;
const RECENT_LEAST: i64 = WHOLE / 3;

/// Turns of each process of normal priority per turn of one of low priority, whatever their
/// numbers. With each turn of a normal process, each waiting low one gains a credit; a turn of a
/// low one costs this many per normal one.
const NORMAL_PER_LOW: usize = 8;
/// Slices of a long turn.
pub(crate) const TURN_SLICES: u16 = 16;
/// One slice, in the unit of [`Queues::owed`].
const OWED_SLICE: isize = 256;

/// Bounds of [`Queues::pace`], and the fraction of it that is one step.
const PACES: std::ops::RangeInclusive<i64> = 10..=SLICE;
const PACE_STEP: i64 = 4;
/// Sampling stride of timed processes of the first class: a process that writes to a socket takes
/// much longer than its reductions suggest. The number is odd because spawners and what they spawn
/// often alternate.
const EVERY: u32 = 7;
/// Nanoseconds that count as one reduction.
const NANOSECONDS: i64 = 10;
/// Maximum number of reductions of a trivial process: to move one to another scheduler costs as
/// much as to run it.
const NEXT_TO_NOTHING: i64 = 50;

/// Why a process is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// An event that it waited for has arrived.
    Woken,
    /// It is new.
    New,
    /// It has used up a time slice, or continues elsewhere.
    Spent,
    /// As [`Cause::Spent`], and it has had at least [`TURN_SLICES`] slices since it waited.
    Long,
    /// It has used up the slices of a long turn.
    Owing,
}

/// The classes of processes of normal priority; see the module docs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    First,
    Recent,
    Long,
}

/// The lead of one class over another, before which it goes.
struct Share {
    /// Reductions of the first class, less those of the other times its price.
    ahead: i64,
}

impl Share {
    /// Picks the class to run next, given the number waiting in each; `None` if none waits.
    #[inline]
    fn pick_first(&mut self, first: usize, other: usize) -> Option<bool> {
        if other == 0 {
            // No process waited for what the class has done.
            self.ahead = self.ahead.min(0);
            return (first != 0).then_some(true);
        }
        Some(first != 0 && self.ahead < SLICE)
    }
    #[inline]
    fn first_ran(&mut self, work: i64) {
        self.ahead = (self.ahead + work).min(AHEAD);
    }
    /// Records that one of the other class ran. `fair` is the work of one turn of each waiting
    /// process, of the first class and of the other. The first class gets `least` per [`WHOLE`] of
    /// the other, or more if it would get more with round robin.
    #[inline]
    fn other_ran(&mut self, work: i64, fair: (i64, i64), least: i64) {
        let price = (fair.0 * WHOLE / fair.1).clamp(least, MOST_RATIO * WHOLE);
        let floor = match price > WHOLE {
            true => -AHEAD,
            false => -BURST,
        };
        let ahead = self.ahead - work * price / WHOLE;
        self.ahead = ahead.max(self.ahead.min(floor));
    }
}

/// Waiting processes by level.
pub(super) struct Queues {
    pub(super) levels: [VecDeque<u32>; LEVELS],
    /// Shares of the first class against all others of normal priority, and of recent against long
    /// ones.
    first: Share,
    recent: Share,
    /// Class of the process taken last, if that was of normal priority.
    last: Option<Class>,
    /// Credit of waiting processes of low priority; see [`NORMAL_PER_LOW`].
    low_credit: usize,
    /// Whether the process taken last, of normal priority, had used up a time slice before.
    pub(super) used: bool,
    /// Class of the first process in `OWING`, if its long turn isn't over.
    turn_goes_on: Option<Class>,
    /// Debt to processes that have had one slice in their last turn; negative if those have had
    /// more.
    owed: isize,
    /// Whether the process of `LONG` and `OWING` that was taken last came from `LONG`.
    spent: bool,
    /// Estimated reductions of a process of the first class: a running median of the timed ones.
    pace: i64,
    /// Whether the process taken last is to be timed, and how many remain until the next one.
    pub(super) timed: bool,
    until_timed: u32,
    pub(super) len: usize,
}

impl Queues {
    /// Returns empty queues.
    pub(super) const fn new() -> Queues {
        Queues {
            levels: [const { VecDeque::new() }; LEVELS],
            first: Share { ahead: 0 },
            recent: Share { ahead: 0 },
            last: None,
            low_credit: 0,
            used: false,
            turn_goes_on: None,
            owed: 0,
            spent: false,
            pace: *PACES.end(),
            timed: false,
            until_timed: EVERY,
            len: 0,
        }
    }
    #[inline]
    pub(super) fn push(&mut self, cell: u32, p: Priority, cause: Cause) {
        let l = match (p, cause) {
            (Priority::Normal, Cause::Woken | Cause::New) => WOKEN,
            (Priority::Normal, Cause::Owing) => OWING,
            (Priority::Normal, Cause::Long) => LONG,
            _ => p as usize,
        };
        self.levels[l].push_back(cell);
        self.len += 1;
    }
    /// Puts a process before all others of that level. On [`OWING`], its long turn continues.
    pub(super) fn push_first(&mut self, cell: u32, level: usize) {
        self.levels[level].push_front(cell);
        if level == OWING {
            self.turn_goes_on = self.last.or(Some(Class::Recent));
        }
        self.len += 1;
    }
    /// Moves a process up, if it waits here at a lower priority.
    pub(super) fn raise(&mut self, cell: u32, to: Priority) -> bool {
        let above_normal = to > Priority::Normal;
        let equal = [WOKEN, OWING, LONG];
        let lower = (0..to as usize).chain(equal.into_iter().filter(|_| above_normal));
        for l in lower {
            if let Some(i) = self.levels[l].iter().position(|&c| c == cell) {
                self.levels[l].remove(i);
                self.levels[to as usize].push_back(cell);
                return true;
            }
        }
        false
    }
    /// Whether a process waits here.
    pub(super) fn holds(&self, cell: u32) -> bool {
        self.levels.iter().any(|l| l.contains(&cell))
    }
    /// Removes a waiting process.
    pub(super) fn remove(&mut self, cell: u32) {
        for l in &mut self.levels {
            if let Some(i) = l.iter().position(|&c| c == cell) {
                l.remove(i);
                self.len -= 1;
                return;
            }
        }
    }
    /// Number of processes of high priority and above.
    #[inline]
    pub(super) fn urgent(&self) -> usize {
        self.levels[Priority::High as usize].len() + self.levels[Priority::Max as usize].len()
    }
    /// Number of processes of normal priority that have used up a slice.
    #[inline]
    fn used(&self) -> usize {
        USED.iter().map(|&l| self.levels[l].len()).sum()
    }
    /// Estimated work of what waits here: half a slice for each, and the pace for woken and new
    /// processes.
    #[inline]
    pub(super) fn work(&self) -> usize {
        let first = self.levels[WOKEN].len();
        (self.len - first) * SLICE as usize / 2 + first * self.pace()
    }
    /// Estimated work of a woken or new process, as other schedulers should see it. Two of them
    /// count as much as one that computes; many trivial ones are done sooner here than moved.
    #[inline]
    pub(super) fn pace(&self) -> usize {
        match self.pace {
            ..NEXT_TO_NOTHING => self.pace as usize / 4,
            _ => self.pace.min(SLICE / 4) as usize,
        }
    }
    /// Records the reductions of the process taken last, and the nanoseconds if it was timed.
    #[inline]
    pub(super) fn ran(&mut self, reductions: i64, nanoseconds: i64) {
        let Some(class) = self.last.take() else {
            return;
        };
        let work = reductions + PICK;
        let first = self.levels[WOKEN].len();
        if class == Class::First {
            self.first.first_ran(work);
            if self.timed {
                let step = self.pace / PACE_STEP + 1;
                let to = match reductions.max(nanoseconds / NANOSECONDS) > self.pace {
                    true => self.pace + step,
                    false => self.pace - step,
                };
                self.pace = to.clamp(*PACES.start(), *PACES.end());
            }
            return;
        }
        let (recent, used) = (self.levels[RECENT].len(), self.used());
        let fair = (first as i64 * (self.pace + PICK), (used as i64 + 1) * SLICE);
        self.first.other_ran(work, fair, FIRST_LEAST);
        if class == Class::Recent {
            self.recent.first_ran(work);
        } else {
            let fair = (recent as i64, (used - recent) as i64 + 1);
            self.recent.other_ran(work, fair, RECENT_LEAST);
        }
    }
    fn pop_normal(&mut self) -> Option<u32> {
        let used = self.used();
        let first = self.first.pick_first(self.levels[WOKEN].len(), used)?;
        self.used = !first;
        if first {
            self.last = Some(Class::First);
            self.until_timed -= 1;
            if self.until_timed == 0 {
                (self.timed, self.until_timed) = (true, EVERY);
            }
            return self.levels[WOKEN].pop_front();
        }
        if let Some(class) = self.turn_goes_on.take()
            && let Some(c) = self.levels[OWING].pop_front()
        {
            self.spent = false;
            self.last = Some(class);
            return Some(c);
        }
        let recent = self.levels[RECENT].len();
        if self.recent.pick_first(recent, used - recent)? {
            self.last = Some(Class::Recent);
            return self.levels[RECENT].pop_front();
        }
        self.last = Some(Class::Long);
        self.pop_long()
    }
    /// Takes a process that computes.
    fn pop_long(&mut self) -> Option<u32> {
        let (long, owing) = (self.levels[LONG].len(), self.levels[OWING].len());
        self.spent = owing == 0 || long != 0 && self.owed >= OWED_SLICE;
        if owing == 0 {
            self.owed = 0;
        } else if self.spent {
            self.owed -= OWED_SLICE;
        } else {
            // While each of these has a long turn, each of the others has as many slices.
            let each = TURN_SLICES as isize * OWED_SLICE;
            self.owed += each * long as isize / owing as isize;
        }
        self.levels[if self.spent { LONG } else { OWING }].pop_front()
    }
    #[inline]
    fn pop_level(&mut self, p: Priority) -> Option<u32> {
        match p {
            Priority::Normal => self.pop_normal(),
            _ => self.levels[p as usize].pop_front(),
        }
    }
    pub(super) fn pop(&mut self) -> Option<u32> {
        (self.last, self.timed) = (None, false);
        if self.len == 0 {
            return None;
        }
        let l = |p: Priority| p as usize;
        let low_wait = self.levels[l(Priority::Low)].len();
        let normal = EQUAL.iter().map(|&l| self.levels[l].len()).sum::<usize>();
        let price = NORMAL_PER_LOW * normal.max(1);
        let low_first = low_wait != 0 && self.low_credit >= price;
        let order = if low_first {
            [
                Priority::Max,
                Priority::High,
                Priority::Low,
                Priority::Normal,
            ]
        } else {
            [
                Priority::Max,
                Priority::High,
                Priority::Normal,
                Priority::Low,
            ]
        };
        for p in order {
            if let Some(c) = self.pop_level(p) {
                match p {
                    Priority::Low => {
                        self.low_credit = match normal {
                            0 => 0,
                            _ => self.low_credit.saturating_sub(price),
                        };
                    }
                    Priority::Normal if low_wait != 0 => self.low_credit += low_wait,
                    Priority::Normal => self.low_credit = 0,
                    _ => {}
                }
                self.len -= 1;
                return Some(c);
            }
        }
        None
    }
}
