//! Fixations: which process has fixed which table, and since when.
//!
//! A fixation belongs to a process, and ends with it. The store itself only counts.

use super::{REGISTRY, Store, Table};
use crate::clock;
use crate::process::ext::{Peer, Set};
use crate::process::resource_counts;
use purlin_term::Term;

/// The fixations of one table.
#[derive(Default)]
pub(crate) struct Fixation {
    /// How often each process has fixed the table.
    by: Set<Peer, usize>,
    /// When the table became fixed: monotonic time, and the offset to system time, in native units.
    pub since: (i64, i64),
}

fn store_fix(t: &Table) {
    match &t.store {
        Store::Hash(h) => h.fix(),
        Store::Tree(s) => s.fix(),
    }
}
fn store_unfix(t: &Table, n: usize) {
    match &t.store {
        Store::Hash(h) => h.unfix(n),
        Store::Tree(s) => s.unfix(n),
    }
}

impl Table {
    /// Fixes the table once more for that process.
    pub(crate) fn fix(&self, who: Term) {
        let new = {
            let mut f = self.fixation.lock();
            if f.by.is_empty() {
                f.since = (clock::monotonic(), clock::offset());
            }
            store_fix(self);
            match f.by.get_mut(&Peer::of(who)) {
                Some(times) => {
                    *times += 1;
                    false
                }
                None => {
                    f.by.insert(Peer::of(who), 1);
                    true
                }
            }
        };
        if new {
            let r = &REGISTRY;
            let me = r
                .all
                .shard(self.numbers[0] as u64)
                .read()
                .get(&self.numbers)
                .cloned();
            if let Some(me) = me {
                let mut all = r.fixed.shard(who.pid_data() as u64).write();
                let mine = all.entry(who.raw()).or_default();
                if !mine.contains(&place(self)) {
                    resource_counts::enter(who);
                    mine.insert(place(self), me);
                }
                drop(all);
                // A process that deletes the table meanwhile may not have found this fixation.
                if !self.is_alive() {
                    forget_in(who, self);
                }
            }
        }
    }

    /// Undoes one [`Table::fix`] of that process, if there is one.
    pub(crate) fn unfix(&self, who: Term) {
        self.unfix_times(who, 1);
    }

    fn unfix_times(&self, who: Term, times: usize) {
        let (n, last) = {
            let mut f = self.fixation.lock();
            let Some(left) = f.by.get_mut(&Peer::of(who)) else {
                return;
            };
            let n = times.min(*left);
            *left -= n;
            let last = *left == 0;
            if last {
                f.by.remove(&Peer::of(who));
            }
            (n, last)
        };
        if last {
            forget_in(who, self);
        }
        store_unfix(self, n);
    }

    /// Whether any process has fixed the table.
    pub(crate) fn is_fixed(&self) -> bool {
        match &self.store {
            Store::Hash(h) => h.fixations() > 0,
            Store::Tree(s) => s.fixations() > 0,
        }
    }

    /// The processes that have fixed the table, how often each, and since when.
    pub(crate) fn fixations(&self) -> (Vec<(Term, usize)>, (i64, i64)) {
        let f = self.fixation.lock();
        let by = f.by.iter().map(|(who, times)| (who.term(), *times));
        (by.collect(), f.since)
    }
}

/// The key of a table among those that a process has fixed.
fn place(t: &Table) -> usize {
    t as *const Table as usize
}

fn forget_in(who: Term, t: &Table) {
    let gone;
    let mut m = REGISTRY.fixed.shard(who.pid_data() as u64).write();
    if let Some(v) = m.get_mut(&who.raw()) {
        gone = v.remove(&place(t));
        if gone.is_some() {
            resource_counts::leave(who, 1);
        }
        if v.is_empty() {
            m.remove(&who.raw());
        }
    }
}

/// Removes all fixations of a deleted table.
pub(super) fn forget(t: &Table) {
    let by = t.fixation.lock().by.drain();
    for (who, _) in by {
        forget_in(who.term(), t);
    }
}

/// Removes the fixations of a process that has ended.
pub(super) fn owner_exit(who: Term) {
    let shard = REGISTRY.fixed.shard(who.pid_data() as u64);
    if !shard.read().contains_key(&who.raw()) {
        return;
    }
    let mut tables = shard.write().remove(&who.raw()).unwrap_or_default();
    resource_counts::leave(who, tables.len());
    for (_, t) in tables.drain() {
        t.unfix_times(who, usize::MAX);
    }
}
