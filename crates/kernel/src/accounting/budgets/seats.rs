//! Seats: which process belongs to which budget.
//!
//! A process's budget is not in its cell but in a [`Seat`], found by the index of the cell. Seats
//! exist in blocks, made when a cell of the block first gets a budget. A cell without a seat, or
//! with an empty one, belongs to the root. Until the first budget is made ([`on`]), seats are not
//! looked at, and a spawn costs one more load.
//!
//! # Invariant
//! Only the thread that runs or makes a process changes its budget.

use super::counts::{charge, count, enter, leave, share};
use super::paying::{set_payer, settle_fragments};
use super::row::{Budget, Counted, NO_LIMIT, ROOT};
use super::tree::{Held, hold, is_within, let_go, on, upwards};
use crate::process::table::CELL_BYTES;
use crate::process::{Process, table};
use crate::sync::Rows;
use purlin_term::{Term, payer};
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// The state of the process in a cell that budgets need.
#[derive(Default)]
pub struct Seat {
    /// Its budget.
    budget: AtomicU32,
    /// The budget of what it spawns, if that is another; 0 for none.
    starts: AtomicU32,
    /// Bytes charged for it, and what they were when its budget was last below its limit.
    pub(super) bytes: AtomicI64,
    pub(super) calm: AtomicI64,
    /// Bytes among them for which another budget is billed, too.
    pub(super) shared: AtomicI64,
    /// Whether it has just collected all of its garbage for a block that its budget refused.
    pub(super) clean: AtomicBool,
    /// Bytes outside of its heap that it has made, without those that it has freed, since its
    /// budget was last below its limit.
    pub(super) made: AtomicI64,
    /// Number of messages in transit to it.
    pub transit: AtomicI32,
    /// Number of messages in its mailbox.
    pub queued: AtomicU32,
    /// The process whose mailbox has no room for its message, by the data of its pid plus one; 0
    /// for none.
    pub waits_for: AtomicU32,
    /// Whether it is in the list of that process: not from its wake-up until it has looked for room
    /// again.
    pub listed: AtomicBool,
    /// The process that it monitors and whose reply it waits for, in the same form, and the bits of
    /// the monitor's reference.
    pub awaits: AtomicU32,
    /// See `awaits`.
    pub awaits_key: AtomicU64,
    /// Number of senders that wait for room in its mailbox.
    pub waiting: AtomicU32,
    /// Set when it is to end because of its mailbox.
    pub ends: AtomicBool,
    pub(super) place: Place,
}

/// Frames that are kept of the place of a process.
pub(super) const PLACE_FRAMES: usize = 4;

/// Where a process was when it last grew by much.
#[derive(Default)]
pub(super) struct Place {
    /// Its size then, in bytes.
    pub(super) bytes: AtomicI64,
    /// Code addresses, innermost first; 0 for none. They are valid while `freed` is the number of
    /// modules freed so far.
    pub(super) addresses: [AtomicUsize; PLACE_FRAMES],
    pub(super) freed: AtomicUsize,
}

/// Number of seats in a block.
const BLOCK: usize = 1 << 12;

/// Number of blocks: enough for all cells.
const BLOCKS: usize = 1 << 15;

static SEATS: Rows<[Seat; BLOCK], BLOCKS> = Rows::new();

/// Returns the seat of a cell, if its block exists.
#[inline]
pub fn seat(cell: u32) -> Option<&'static Seat> {
    let block = SEATS.get(cell as usize / BLOCK)?;
    block.get(cell as usize % BLOCK)
}

/// Returns the seat of a cell, and makes its block if necessary.
pub fn seat_or_new(cell: u32) -> &'static Seat {
    let block = SEATS.get_or_make(cell as usize / BLOCK, || {
        // A block is too large for the stack.
        let seats: Vec<Seat> = (0..BLOCK).map(|_| Seat::default()).collect();
        let Ok(seats) = seats.try_into() else {
            unreachable!("there are {BLOCK}")
        };
        seats
    });
    &block[cell as usize % BLOCK]
}

impl Seat {
    /// The budget of the process.
    #[inline]
    pub fn budget(&self) -> u32 {
        self.budget.load(Ordering::Relaxed)
    }
}

/// Returns the budget of the process in a cell.
#[inline]
pub fn of_cell(cell: u32) -> u32 {
    seat(cell).map_or(ROOT, Seat::budget)
}

/// Whether the processor time of the process in a cell is limited to a share.
#[inline]
pub fn has_share(cell: u32) -> bool {
    on() && budget_has_share(of_cell(cell))
}

#[inline(never)]
fn budget_has_share(index: u32) -> bool {
    let limited = |b: &Budget| b.cpu.percent.load(Ordering::Relaxed) != NO_LIMIT;
    upwards(index, ROOT).any(limited)
}

/// Returns the budget of a process that the caller owns, or of a cell whose process may change.
#[inline]
pub fn of(p: *const Process) -> u32 {
    match on() {
        true => of_cell(table().index(p)),
        false => ROOT,
    }
}

/// Returns the budget of a local process; the root's if there is no such process.
pub fn of_pid(pid: Term) -> u32 {
    match on() {
        true => table()
            .find(pid)
            .map_or(ROOT, |p| of_cell(table().index(p))),
        false => ROOT,
    }
}

/// Holds the budget of a process that the caller owns; `None` for the root.
pub fn held_by(p: *const Process) -> Option<Held> {
    let index = of(p);
    (index != ROOT && hold(index)).then_some(Held(index))
}

/// The budget that a process which `parent` spawns belongs to: the one that was asked for, or that
/// of the parent. `parent` is null or owned by the caller.
#[inline]
pub fn inherited(parent: *const Process, asked: Option<u32>) -> u32 {
    if !on() || parent.is_null() {
        return ROOT;
    }
    if let Some(b) = asked {
        return b;
    }
    match seat(table().index(parent)) {
        None => ROOT,
        Some(s) => match s.starts.load(Ordering::Relaxed) {
            0 => s.budget(),
            b => b,
        },
    }
}

/// Charges a process that is about to be made. Returns false if there may be no more.
#[inline]
pub fn admit(budget: u32) -> bool {
    enter(budget, Counted::Processes)
}

/// Takes an admission back: no process was made.
pub fn dismiss(budget: u32) {
    leave(budget, Counted::Processes);
}

/// Seats a new process, which was admitted.
pub fn take_seat(cell: u32, budget: u32) {
    if budget != ROOT {
        let s = seat_or_new(cell);
        s.budget.store(budget, Ordering::Relaxed);
        s.bytes.store(CELL_BYTES as i64, Ordering::Relaxed);
        count(budget, ROOT, Counted::Memory, CELL_BYTES as i64);
    }
}

/// Empties the seat of a process that ends.
pub fn leave_seat(cell: u32) {
    let Some(s) = seat(cell) else { return };
    settle_fragments();
    s.transit.store(0, Ordering::Relaxed);
    s.queued.store(0, Ordering::Relaxed);
    s.calm.store(0, Ordering::Relaxed);
    s.made.store(0, Ordering::Relaxed);
    s.awaits.store(0, Ordering::Relaxed);
    s.awaits_key.store(0, Ordering::Relaxed);
    s.waiting.store(0, Ordering::Relaxed);
    s.ends.store(false, Ordering::Relaxed);
    s.place.bytes.store(0, Ordering::Relaxed);
    s.place.addresses[0].store(0, Ordering::Relaxed);
    let starts = s.starts.swap(0, Ordering::Relaxed);
    if starts != 0 {
        let_go(starts);
    }
    let b = s.budget.swap(ROOT, Ordering::Relaxed);
    let bytes = s.bytes.swap(0, Ordering::Relaxed);
    let shared = s.shared.swap(0, Ordering::Relaxed);
    if b != ROOT {
        share(b, -shared);
        count(b, ROOT, Counted::Memory, -bytes);
        leave(b, Counted::Processes);
    }
}

/// Moves a process that the caller owns to a budget below its own. Returns false, and moves
/// nothing, if there may be no more processes.
pub fn join(p: *const Process, to: u32) -> bool {
    let s = seat_or_new(table().index(p));
    let from = s.budget();
    if from == to {
        return true;
    }
    if !hold(to) {
        return false;
    }
    if !charge(to, from, Counted::Processes, 1) {
        let_go(to);
        return false;
    }
    settle_fragments();
    count(to, from, Counted::Memory, s.bytes.load(Ordering::Relaxed));
    let shared = s.shared.load(Ordering::Relaxed);
    share(from, -shared);
    share(to, shared);
    s.budget.store(to, Ordering::Relaxed);
    settle_net(s);
    set_payer(to);
    if from != ROOT {
        let_go(from);
    }
    true
}

/// Puts what a local process spawns from now on into a budget.
pub fn set_starts(pid: Term, budget: u32) {
    let Some(p) = table().find(pid).filter(|_| hold(budget)) else {
        return;
    };
    let s = seat_or_new(table().index(p));
    let before = s.starts.swap(budget, Ordering::Relaxed);
    if before != 0 {
        let_go(before);
    }
}

/// Notes what the process that this thread runs has made outside of its heap. Returns the bytes
/// since its budget was last below its limit.
pub(super) fn settle_net(s: &Seat) -> i64 {
    let net = payer::take_net() as i64;
    s.made.fetch_add(net, Ordering::Relaxed) + net
}

/// The pids of processes that belong to `index` or a budget below it.
pub fn members(index: u32) -> Vec<Term> {
    let all = table().pids();
    all.into_iter()
        .filter(|&p| {
            let b = of_pid(p);
            b != ROOT && is_within(b, index)
        })
        .collect()
}
