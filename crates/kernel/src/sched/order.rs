//! The order in which those that wait in one run queue have their turns.
//!
//! # Among processes of normal priority
//! Three classes share a scheduler by what they cost it, in reductions:
//! * **first**: those that were woken or just made, in the order in which they came;
//! * **recent**: those that have used up a time slice, and not many since they waited last: requests that take a little longer;
//! * **long**: those that have had [`TURN_SLICES`] and more, which compute.
//!
//! Those of the first class go before the others as long as they have not had more than half of what these have had, and
//! recent ones before long ones up to a third ([`Share`]). So a process that answers a message or a timer need not
//! wait until each of a thousand busy ones has had its slice: it is short, and its class owes nothing. Where a class has more to
//! do, it has what it would have if all went in turn: so a request that takes a little longer than others is no later than
//! if it waited for a turn of each, and a few that compute don't take half of a server's time. Nobody starves: a class has a
//! seventeenth at least.
//!
//! Only work counts that was done while the other class waited. What a class has not used while it had nothing to run is
//! forgotten beyond [`BURST`].
//!
//! A process with a large heap has several slices in a turn, so that its heap is still in the processor's caches. After such
//! a turn it owes the others that compute: those that have one slice in a turn have as many turns before its next one. Among
//! processes of its kind it waits for one turn of each.
//!
//! `order_tests.rs` has a model of a scheduler with its processes, and compares this order with others.

use crate::process::state::Priority;
use std::collections::VecDeque;

/// Levels of a run queue: low, recent ones of normal priority, high, max as in [`Priority`], then the others of normal
/// priority: those that were woken or made, those that have had several slices in a turn, and the rest of those that compute.
pub(super) const LEVELS: usize = 7;
pub(super) const RECENT: usize = Priority::Normal as usize;
pub(super) const WOKEN: usize = 4;
pub(super) const OWING: usize = 5;
pub(super) const LONG: usize = 6;
/// The levels of normal priority.
pub(super) const EQUAL: [usize; 4] = [RECENT, WOKEN, OWING, LONG];
/// Those of processes that have used up a slice.
const USED: [usize; 3] = [RECENT, OWING, LONG];
/// The order in which a scheduler without work takes from another's levels.
pub(super) const STEAL_ORDER: [usize; LEVELS] = [
    Priority::Max as usize,
    Priority::High as usize,
    WOKEN,
    RECENT,
    LONG,
    OWING,
    Priority::Low as usize,
];
/// Those of them at the front that go before all of normal priority.
pub(super) const URGENT_LEVELS: usize = 2;

/// Reductions in a time slice.
pub(crate) const SLICE: i64 = 4000;
/// The reductions that a scheduler counts for taking a process.
pub(crate) const PICK: i64 = 100;
/// Work that a class may catch up on, which it has not done while it had nothing to run.
const BURST: i64 = 4 * SLICE;
/// The most work that a class may be ahead: a process may have used much more than a slice in one native.
const AHEAD: i64 = TURN_SLICES as i64 * SLICE;
/// A class has at most so many times what the other has.
const MOST: i64 = 16;
/// The unit of shares: what the class that goes first has, at least, where the other has so much; first ones, and recent ones.
const WHOLE: i64 = 12;
const FIRST_LEAST: i64 = WHOLE / 2;
const RECENT_LEAST: i64 = WHOLE / 3;

/// Turns that each process of normal priority has while one of low priority has one, however many there are of both:
/// with each turn of a normal one every low one that waits gains a credit, and a turn of a low one costs so many for every
/// normal one.
const NORMAL_PER_LOW: usize = 8;
/// Slices of a long turn.
pub(crate) const TURN_SLICES: u16 = 16;
/// One slice in the unit of [`Queues::owed`], in which shares are counted.
const OWED_SLICE: isize = 256;

/// The bounds of [`Queues::pace`], and of its steps the part of what it is.
const PACES: std::ops::RangeInclusive<i64> = 10..=SLICE;
const PACE_STEP: i64 = 4;
/// One of so many that go first is timed for it: what writes to a socket takes much longer than its reductions say. The number is
/// odd, since makers and what they make often take turns.
const EVERY: u32 = 7;
/// Nanoseconds that count as a reduction.
const NANOSECONDS: i64 = 10;
/// Reductions of a process that does next to nothing: to move it costs as much.
const NEXT_TO_NOTHING: i64 = 50;

/// Why a process is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comes {
    /// Something that it waited for has come.
    Woken,
    /// It has just been made.
    New,
    /// It has used up a time slice, or goes on elsewhere.
    Spent,
    /// As [`Comes::Spent`], and it has had [`TURN_SLICES`] of them and more since it waited.
    Long,
    /// It has used up the slices of a long turn.
    Owing,
}

/// The classes of processes of normal priority: see the module head.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    First,
    Recent,
    Long,
}

/// How far one class is ahead of another, before which it goes.
#[derive(Default)]
struct Share {
    /// Reductions, of the one less those of the other times its price.
    ahead: i64,
}

impl Share {
    /// Whether one of the class that goes first is next, of which so many wait, as of the other; `None` where none waits.
    #[inline]
    fn first_is_next(&mut self, first: usize, other: usize) -> Option<bool> {
        if other == 0 {
            // Nobody has waited for what it has done.
            self.ahead = self.ahead.min(0);
            return (first != 0).then_some(true);
        }
        Some(first != 0 && self.ahead < SLICE)
    }
    #[inline]
    fn first_ran(&mut self, work: i64) {
        self.ahead = (self.ahead + work).min(AHEAD);
    }
    /// One of the other class ran. `fair`: the work of a turn of each that waits in the class that goes first, and in the other.
    /// The former has `least` where the other has [`WHOLE`], or what it would have if all went in turn.
    #[inline]
    fn other_ran(&mut self, work: i64, fair: (i64, i64), least: i64) {
        let price = (fair.0 * WHOLE / fair.1).clamp(least, MOST * WHOLE);
        let floor = match price > WHOLE {
            true => -AHEAD,
            false => -BURST,
        };
        let ahead = self.ahead - work * price / WHOLE;
        self.ahead = ahead.max(self.ahead.min(floor));
    }
}

/// Processes that wait, by priority.
pub(super) struct Queues {
    pub(super) levels: [VecDeque<u32>; LEVELS],
    /// The shares of those that go first and of all others of normal priority, and of the two classes among these.
    first: Share,
    recent: Share,
    /// The process that was taken last, where it was of normal priority.
    last: Option<Class>,
    /// The wait of processes of low priority: see [`NORMAL_PER_LOW`].
    low_credit: usize,
    /// The process that was taken last, of normal priority, had used up a time slice before.
    pub(super) used: bool,
    /// The long turn of the first of those that owe isn't over; it is of that class.
    turn_goes_on: Option<Class>,
    /// The debt to those that have had one slice in their last turn; below zero where they have had more than that.
    owed: isize,
    /// The process that was taken last from either of the two was one of these.
    spent: bool,
    /// The reductions that a process of the first class uses: the middle of the last ones that were timed.
    pace: i64,
    /// The process that was taken last is to be timed, and how many are left until the next.
    pub(super) timed: bool,
    until_timed: u32,
    pub(super) len: usize,
}

impl Default for Queues {
    fn default() -> Queues {
        Queues {
            levels: Default::default(),
            first: Share::default(),
            recent: Share::default(),
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
}

impl Queues {
    #[inline]
    pub(super) fn push(&mut self, cell: u32, p: Priority, comes: Comes) {
        let l = match (p, comes) {
            (Priority::Normal, Comes::Woken | Comes::New) => WOKEN,
            (Priority::Normal, Comes::Owing) => OWING,
            (Priority::Normal, Comes::Long) => LONG,
            _ => p as usize,
        };
        self.levels[l].push_back(cell);
        self.len += 1;
    }
    /// Puts a process before all others of that level; on [`OWING`] its long turn goes on.
    pub(super) fn push_first(&mut self, cell: u32, level: usize) {
        self.levels[level].push_front(cell);
        if level == OWING {
            self.turn_goes_on = self.last.or(Some(Class::Recent));
        }
        self.len += 1;
    }
    /// Moves a process up, if it is here at a lower priority.
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
    /// Takes a process away that waits here.
    pub(super) fn remove(&mut self, cell: u32) {
        for l in &mut self.levels {
            if let Some(i) = l.iter().position(|&c| c == cell) {
                l.remove(i);
                self.len -= 1;
                return;
            }
        }
    }
    /// Processes of high priority and above.
    #[inline]
    pub(super) fn urgent(&self) -> usize {
        self.levels[Priority::High as usize].len() + self.levels[Priority::Max as usize].len()
    }
    /// Processes of normal priority that have used up a slice.
    #[inline]
    fn used(&self) -> usize {
        USED.iter().map(|&l| self.levels[l].len()).sum()
    }
    /// The work of what waits here, as far as it can be known: half a slice for each, and for those that were woken or made what
    /// such ones have used before.
    #[inline]
    pub(super) fn work(&self) -> usize {
        let first = self.levels[WOKEN].len();
        (self.len - first) * SLICE as usize / 2 + first * self.pace()
    }
    /// The work of one that was woken or made, as far as others should know: two of them are as much as one that computes, and
    /// many of those that do next to nothing are done sooner here than moved.
    #[inline]
    pub(super) fn pace(&self) -> usize {
        match self.pace {
            ..NEXT_TO_NOTHING => self.pace as usize / 4,
            _ => self.pace.min(SLICE / 4) as usize,
        }
    }
    /// The process that was taken last has used so many reductions, and nanoseconds where it was timed.
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
        let first = self.first.first_is_next(self.levels[WOKEN].len(), used)?;
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
        if self.recent.first_is_next(recent, used - recent)? {
            self.last = Some(Class::Recent);
            return self.levels[RECENT].pop_front();
        }
        self.last = Some(Class::Long);
        self.pop_long()
    }
    /// Takes one of those that compute.
    fn pop_long(&mut self) -> Option<u32> {
        let (long, owing) = (self.levels[LONG].len(), self.levels[OWING].len());
        self.spent = owing == 0 || long != 0 && self.owed >= OWED_SLICE;
        if owing == 0 {
            self.owed = 0;
        } else if self.spent {
            self.owed -= OWED_SLICE;
        } else {
            // While each of these has such a turn, each of the others has as many slices.
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
