//! The table of budgets, and the tree that they form.
//!
//! # Life
//! A budget is a row of [`ROWS`], with the number of what holds it: one until it is ended, and one
//! for each process, table, port and child. When nothing holds it, the row is free for another
//! budget, which gets another reference.
//!
//! # Orderings
//! [`end`] against a spawn ([`was_late`]) is the protocol of `ended.rs`. The last hold of a budget
//! is given up with `AcqRel`: whatever was done under the other holds comes before the row is free.

use super::ended::{after_opening, before_search};
use super::row::{Budget, Limits, NO_LIMIT, Over, ROOT};
use crate::budget_weights::{BELOW_ROOT, Common};
use crate::clock;
use crate::ids;
use crate::keys::RefKey;
use crate::sync::{Rows, RwLock};
use purlin_term::Term;
use purlin_term::cache_lines::OneLine;
use purlin_term::frag::OwnedTerm;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of budgets at a time.
const MOST_BUDGETS: usize = 1 << 16;

/// Maximum number of budgets from one up to the root.
const MOST_DEPTH: usize = 16;

/// The table of budgets. The first row is that of the root.
static ROWS: Rows<Budget, MOST_BUDGETS> = Rows::new();

/// Which rows are in use.
struct Directory {
    by_key: Option<HashMap<u64, u32>>,
    free: Vec<u32>,
    /// Number of rows that have been used.
    rows: u32,
}

static DIRECTORY: RwLock<Directory> = RwLock::new(Directory {
    by_key: None,
    free: Vec::new(),
    rows: 1,
});

/// Whether there has ever been a budget beside the root.
static ON: Switch = Switch {
    on: AtomicBool::new(false),
    _line: OneLine,
};

/// A switch that all threads read all the time, in a cache line of its own: no thread writes to its
/// neighbours.
struct Switch {
    on: AtomicBool,
    _line: OneLine,
}

/// Whether budgets are in use.
#[inline(always)]
pub fn on() -> bool {
    ON.on.load(Ordering::Relaxed)
}

/// Makes [`on`] return true from now on.
pub(super) fn set_on() {
    ON.on.store(true, Ordering::SeqCst);
}

/// Returns the budget with that index; `None` for the root.
#[inline]
pub fn get(index: u32) -> Option<&'static Budget> {
    if index == ROOT {
        return None;
    }
    ROWS.get(index as usize)
}

/// The budgets from `index` up to, and without, `to` or the root.
pub(super) fn upwards(index: u32, to: u32) -> impl Iterator<Item = &'static Budget> {
    let mut at = index;
    std::iter::from_fn(move || {
        if at == to {
            return None;
        }
        let b = get(at)?;
        at = b.parent();
        Some(b)
    })
}

/// Whether budget `index` is `of` or below it.
pub fn is_within(index: u32, of: u32) -> bool {
    let mut at = index;
    loop {
        if at == of {
            return true;
        }
        match get(at) {
            Some(b) => at = b.parent(),
            None => return false,
        }
    }
}

impl Budget {
    /// The common clock of the budgets with the same parent.
    pub(super) fn siblings(&self) -> &'static Common {
        match get(self.parent()) {
            Some(b) => &b.weighted.children,
            None => &BELOW_ROOT,
        }
    }
}

/// Mean time in nanoseconds between reports about a budget, and how many of them may follow each
/// other at once: a budget whose processes end all the time must not keep the logger busy.
const BETWEEN_REPORTS: i64 = 100_000_000;
const REPORTS_AT_ONCE: i64 = 10;

/// Whether a process that ends for a limit of a budget is reported.
pub fn may_report(index: u32) -> bool {
    get(index).is_some_and(|b| {
        let now = clock::elapsed();
        let next = b.next_report.load(Ordering::Relaxed).max(now);
        let may = next - now <= BETWEEN_REPORTS * (REPORTS_AT_ONCE - 1);
        if may {
            b.next_report
                .store(next + BETWEEN_REPORTS, Ordering::Relaxed);
        }
        may
    })
}

/// The process that is notified before one of budget `index` ends: that of the budget, or of the
/// nearest one above it that has one.
pub fn notified(index: u32) -> Option<Term> {
    upwards(index, ROOT).find_map(Budget::notify)
}

/// There can be no further budget, or none so deep in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMany;

/// Makes a budget below `parent`, which the caller belongs to. Returns its index and its key.
pub(super) fn insert(
    parent: u32,
    name: OwnedTerm,
    limits: &Limits,
) -> Result<(u32, RefKey), TooMany> {
    if upwards(parent, ROOT).count() >= MOST_DEPTH {
        return Err(TooMany);
    }
    let bits = ids::ref_bits();
    let mut d = DIRECTORY.write();
    let index = match d.free.pop() {
        Some(i) => i,
        None if (d.rows as usize) < MOST_BUDGETS => {
            d.rows += 1;
            d.rows - 1
        }
        None => return Err(TooMany),
    };
    let b = ROWS.get_or_make(index as usize, || Box::new(Budget::new()));
    b.begin(parent, name, limits);
    // The caller belongs to the parent, so this holds it once more.
    hold(parent);
    b.key.store(bits, Ordering::Release);
    d.by_key.get_or_insert_default().insert(bits, index);
    drop(d);
    Ok((index, RefKey::new(bits)))
}

/// A hold of a budget, which keeps its row from being used for another.
pub struct Held(pub(super) u32);

impl Held {
    /// The index of the budget.
    pub fn index(&self) -> u32 {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let_go(self.0);
    }
}

/// Returns the budget that a reference stands for.
pub fn find(reference: Term) -> Option<Held> {
    let bits = ids::bits_of(reference.as_ref_view()?.local_nums()?)?;
    let d = DIRECTORY.read();
    let &index = d.by_key.as_ref()?.get(&bits)?;
    // Not `then_some`, which would also release what was not held.
    hold(index).then(|| Held(index))
}

/// Holds a budget once more. Returns false if nothing holds it any more.
pub(super) fn hold(index: u32) -> bool {
    let more = |n: u32| n.checked_sub(1).map(|_| n + 1);
    get(index).is_some_and(|b| {
        let held = &b.holders;
        held.try_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    })
}

/// Gives up one hold of a budget. A budget that nothing holds leaves the table.
pub(super) fn let_go(index: u32) {
    let mut at = index;
    while let Some(b) = get(at) {
        let before = b.holders.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(
            before > 0,
            "a budget is let go by one that does not hold it"
        );
        if before != 1 {
            return;
        }
        let parent = b.parent();
        let mut d = DIRECTORY.write();
        let bits = b.key.swap(0, Ordering::AcqRel);
        if let Some(m) = &mut d.by_key {
            m.remove(&bits);
        }
        // Before the row is free: another budget may get it as soon as the lock is released.
        let name = b.name.lock().take();
        d.free.push(at);
        drop(d);
        drop(name);
        at = parent;
    }
}

/// Calls `f` with each budget, without waiting for a lock: for dumps and metrics.
pub fn each(mut f: impl FnMut(u32, &Budget)) {
    for (i, b) in (1..).zip(ROWS.made(1)) {
        if b.key().is_some() {
            f(i, b);
        }
    }
}

/// The indices of all budgets, in the order in which their rows were first used.
pub fn all() -> Vec<u32> {
    let d = DIRECTORY.read();
    let mut v: Vec<u32> = d.by_key.iter().flat_map(|m| m.values().copied()).collect();
    v.sort_unstable();
    v
}

/// The limit of unread messages of each process in a budget, what happens beyond it, and the
/// budget that sets it: the lowest limit up to the root. `None` if there is none.
pub fn bound(index: u32) -> Option<(i64, Over, u32)> {
    let mut at = index;
    let mut lowest: Option<(i64, Over, u32)> = None;
    while let Some(b) = get(at) {
        let (most, over) = b.messages();
        if most < lowest.map_or(NO_LIMIT, |l| l.0) {
            lowest = Some((most, over, at));
        }
        at = b.parent();
    }
    lowest
}

/// The lowest budget, from `index` on, whose processes have to wait because it has used up its
/// share of processor time, or is ahead of its siblings while others wait for a scheduler.
pub fn throttled(index: u32, others_wait: bool) -> Option<u32> {
    let mut at = index;
    while let Some(b) = get(at) {
        if b.cpu.has_to_wait() || others_wait && b.weighted.gives_way(b.siblings()) {
            return Some(at);
        }
        at = b.parent();
    }
    None
}

/// Closes a budget, and those below it: they take nothing more in. Returns their indices, without
/// those that had been ended before.
pub fn end(index: u32) -> Vec<u32> {
    let mut ended = Vec::new();
    for i in all() {
        // Held, its row goes to no other budget meanwhile, and neither do those above it.
        if !hold(i) {
            continue;
        }
        if is_within(i, index)
            && let Some(b) = get(i)
            && b.ended.set()
        {
            ended.push(i);
        }
        let_go(i);
    }
    before_search();
    ended
}

/// Gives up the hold that each budget has until it is ended. Called with the result of [`end`],
/// after the processes were found.
pub fn release_ended(ended: &[u32]) {
    ended.iter().for_each(|&i| let_go(i));
}

/// Whether the budget of a process ended while the process was made. Called after its queue has
/// been opened.
pub fn was_late(budget: u32) -> bool {
    after_opening();
    upwards(budget, ROOT).any(Budget::has_ended)
}
