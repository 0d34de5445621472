//! The budget that a table or a port belongs to.

use super::counts::{Excess, count, enter, excess, leave};
use super::row::{Counted, ROOT};
use super::seats::of_pid;
use super::tree::{get, hold, is_within};
use purlin_term::Term;
use std::sync::atomic::{AtomicI64, Ordering};

/// The budget that a table or port belongs to. It is counted there until this is dropped.
pub struct Charge {
    budget: u32,
    what: Counted,
    /// Bytes charged for it.
    bytes: AtomicI64,
}

impl Charge {
    /// Charges a table or port of that owner. `None` if there may be no more.
    pub fn new(owner: Term, what: Counted) -> Option<Charge> {
        let budget = match owner.is_local_pid() {
            true => of_pid(owner),
            false => ROOT,
        };
        enter(budget, what).then(|| Charge {
            budget,
            what,
            bytes: AtomicI64::new(0),
        })
    }
    /// Charges it to the budget of another owner, whatever that has left, if it is within the one
    /// that pays. A budget pays on for what leaves it, until it has ended: else a process would get
    /// rid of its bill by giving away what it has made.
    pub fn moved_to(self, owner: Term) -> Charge {
        let to = match owner.is_local_pid() {
            true => of_pid(owner),
            false => ROOT,
        };
        let leaves = self.budget != ROOT && !is_within(to, self.budget);
        let stays = leaves && get(self.budget).is_some_and(|b| !b.has_ended());
        if to == self.budget || stays || !(to == ROOT || hold(to)) {
            return self;
        }
        count(to, ROOT, self.what, 1);
        count(to, ROOT, Counted::Memory, self.bytes());
        Charge {
            budget: to,
            what: self.what,
            bytes: AtomicI64::new(self.bytes()),
        }
    }
    /// The budget that it is charged to.
    pub fn budget(&self) -> u32 {
        self.budget
    }
    /// Records its size. Returns the excess of a memory limit, if there is one.
    pub fn weigh(&self, bytes: i64) -> Option<Excess> {
        if self.budget == ROOT {
            return None;
        }
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        count(self.budget, ROOT, Counted::Memory, bytes - before);
        excess(self.budget)
    }
    /// Bytes charged for it.
    pub fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.budget != ROOT {
            count(self.budget, ROOT, Counted::Memory, -self.bytes());
            leave(self.budget, self.what);
        }
    }
}
