//! Accounts of selected processes, for some time: what [`crate::accounts`] records of these while
//! the selection is open.
//!
//! # Invariants
//! * While none is open, this costs a load where a place is recorded, which samples do rarely.
//! * There are at most [`MOST_SELECTIONS`] selections, each with a bounded table, and each ends by
//!   itself.

use super::accounts::{Entry, Table};
use crate::budgets;
use crate::clock;
use crate::process::Cx;
use crate::sync::Mutex;
use purlin_term::Term;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of selections at a time.
pub const MOST_SELECTIONS: usize = 8;

/// The selected processes.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// The process with that pid.
    Process(Term),
    /// The processes with that group leader, a local pid.
    Led(Term),
    /// The processes of the budget with that index, and of those below it.
    Budget(u32),
}

struct Selection {
    number: u64,
    who: Who,
    /// The end, as [`clock::elapsed`] has it.
    until: i64,
    table: Table,
}

struct All {
    open: Vec<Selection>,
    last: u64,
}

static OPEN: AtomicUsize = AtomicUsize::new(0);
static ALL: Mutex<All> = Mutex::new(All {
    open: Vec::new(),
    last: 0,
});

impl All {
    fn drop_old(&mut self) {
        let now = clock::elapsed();
        self.open.retain(|s| s.until > now);
    }
}

/// Opens a selection, and returns its number. `None` if there are too many.
pub fn open(who: Who, until: i64) -> Option<u64> {
    let mut all = ALL.lock();
    all.drop_old();
    if all.open.len() >= MOST_SELECTIONS {
        return None;
    }
    all.last += 1;
    let number = all.last;
    all.open.push(Selection {
        number,
        who,
        until,
        table: Table::default(),
    });
    OPEN.store(all.open.len(), Ordering::Relaxed);
    Some(number)
}

/// Closes a selection, and returns its places. `None` if there is none, or it is over.
pub fn close(number: u64) -> Option<Vec<Entry>> {
    let mut all = ALL.lock();
    all.drop_old();
    let i = all.open.iter().position(|s| s.number == number);
    let closed = i.map(|i| all.open.swap_remove(i));
    OPEN.store(all.open.len(), Ordering::Relaxed);
    closed.map(|s| s.table.entries().to_vec())
}

/// Whether there is any.
#[inline]
pub(super) fn any() -> bool {
    OPEN.load(Ordering::Relaxed) != 0
}

/// Calls `f` with the table of each selection that the process in the context is in.
#[cold]
#[inline(never)]
pub(super) fn record(cx: &mut Cx, mut f: impl FnMut(&mut Cx, &mut Table)) {
    let p = cx.process();
    let (pid, leader, budget) = (p.pid(), p.group_leader, budgets::of(p));
    let mut all = ALL.lock();
    let before = all.open.len();
    all.drop_old();
    if all.open.len() != before {
        OPEN.store(all.open.len(), Ordering::Relaxed);
    }
    for s in &mut all.open {
        let is_in = match s.who {
            Who::Process(of) => of == pid,
            Who::Led(by) => by == leader,
            Who::Budget(of) => budgets::is_within(budget, of),
        };
        if is_in {
            f(cx, &mut s.table);
        }
    }
}
