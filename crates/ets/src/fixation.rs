//! Fixations: which process has fixed which table, and since when.
//!
//! A fixation belongs to a process, and ends with it. The store itself only counts.

use super::{Store, Table, registry};
use crate::clock;
use crate::process::resource_counts;
use purlin_term::Term;
use std::sync::Arc;

/// The fixations of one table.
#[derive(Default)]
pub(crate) struct Fixation {
    /// Process, and how often it has fixed the table.
    by: Vec<(Term, usize)>,
    /// When it was fixed while it was not: monotonic time, and the offset to system time, in native units.
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
            match f.by.iter_mut().find(|b| b.0 == who) {
                Some(b) => {
                    b.1 += 1;
                    false
                }
                None => {
                    f.by.push((who, 1));
                    true
                }
            }
        };
        if new {
            let r = registry();
            let me = r
                .all
                .shard(self.numbers[0] as u64)
                .read()
                .get(&self.numbers)
                .cloned();
            if let Some(me) = me {
                resource_counts::enter(who);
                r.fixed
                    .shard(who.pid_data() as u64)
                    .write()
                    .entry(who.raw())
                    .or_default()
                    .push(me);
                // A process that deletes it meanwhile may not have found this fixation.
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
            let Some(i) = f.by.iter().position(|b| b.0 == who) else {
                return;
            };
            let n = times.min(f.by[i].1);
            f.by[i].1 -= n;
            let last = f.by[i].1 == 0;
            if last {
                f.by.swap_remove(i);
            }
            (n, last)
        };
        if last {
            forget_in(who, self);
        }
        store_unfix(self, n);
    }

    /// Whether anybody has fixed it.
    pub(crate) fn is_fixed(&self) -> bool {
        match &self.store {
            Store::Hash(h) => h.fixations() > 0,
            Store::Tree(s) => s.fixations() > 0,
        }
    }

    /// The processes that have fixed it, how often each, and since when.
    pub(crate) fn fixations(&self) -> (Vec<(Term, usize)>, (i64, i64)) {
        let f = self.fixation.lock();
        (f.by.clone(), f.since)
    }
}

fn forget_in(who: Term, t: &Table) {
    let mut m = registry().fixed.shard(who.pid_data() as u64).write();
    if let Some(v) = m.get_mut(&who.raw()) {
        if let Some(i) = v.iter().position(|x| std::ptr::eq(&**x, t)) {
            v.swap_remove(i);
            resource_counts::leave(who, 1);
        }
        if v.is_empty() {
            m.remove(&who.raw());
        }
    }
}

/// A table is deleted: nobody has it fixed any more.
pub(super) fn forget(t: &Table) {
    let by = std::mem::take(&mut t.fixation.lock().by);
    for (who, _) in by {
        forget_in(who, t);
    }
}

/// A process has ended: what it fixed is free of it.
pub(super) fn owner_exit(who: Term) {
    let shard = registry().fixed.shard(who.pid_data() as u64);
    if !shard.read().contains_key(&who.raw()) {
        return;
    }
    let tables: Vec<Arc<Table>> = shard.write().remove(&who.raw()).unwrap_or_default();
    resource_counts::leave(who, tables.len());
    for t in tables {
        t.unfix_times(who, usize::MAX);
    }
}
