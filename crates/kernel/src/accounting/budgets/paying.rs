//! Which budget pays for what a thread makes outside of heaps: blocks of binaries, of tables and of
//! messages, and atoms.
//!
//! # Invariant
//! A thread has a payer only while it runs a process with a budget, or until a [`Paying`] is
//! dropped.

use super::counts::{charge, count, memory_left};
use super::row::{Counted, ROOT};
use super::tree::{hold, is_within, let_go};
use purlin_term::payer::{self, Ledger, Payer};
use purlin_term::pressure;

/// Tells the allocator of this thread how much the process that it runs, of that budget, may still
/// make.
pub fn allow(index: u32) {
    let (left, limit) = memory_left(index);
    pressure::set_allowance(left, limit);
}

/// Lowers what the process that this thread runs, of that budget, may still make to what is left
/// now: something of the budget has been weighed.
pub fn lower_allowance(index: u32) {
    pressure::lower_allowance(memory_left(index).0);
}

/// Makes a budget pay for what this thread makes.
pub(super) fn set_payer(budget: u32) {
    settle_fragments();
    payer::set_current(budget);
    allow(budget);
}

/// Takes fragments of the process that this thread runs, which are billed until it is weighed, off
/// the bill.
pub(super) fn settle_fragments() {
    let bytes = payer::take_billed_fragments();
    if bytes != 0 {
        count(payer::current(), ROOT, Counted::Memory, -(bytes as i64));
    }
}

/// The time in which a budget pays for what a thread makes that runs no process of a budget. It
/// ends when this is dropped.
pub struct Paying(bool);

/// Makes budget `index` pay for what this thread makes, unless another one pays already.
#[inline]
pub fn pays(index: u32) -> Paying {
    let begins = index != ROOT && payer::current() == ROOT;
    if begins {
        set_payer(index);
    }
    Paying(begins)
}

impl Drop for Paying {
    #[inline]
    fn drop(&mut self) {
        if self.0 {
            set_payer(ROOT);
        }
    }
}

/// The account that the allocator has blocks outside of heaps billed to.
pub(super) const LEDGER: Ledger = Ledger {
    charge: bill,
    refund: unbill,
    change: rebill,
};

/// Bills a block outside of heaps. See [`Ledger`].
fn bill(index: u32, bytes: usize) -> bool {
    if !hold(index) {
        return false;
    }
    rebill(index, bytes as isize);
    true
}

fn unbill(index: u32, bytes: usize) {
    count(index, ROOT, Counted::Memory, -(bytes as i64));
    let_go(index);
}

fn rebill(index: u32, by: isize) {
    count(index, ROOT, Counted::Memory, by as i64);
    if index == payer::current() {
        pressure::lower_allowance(memory_left(index).0);
    }
}

/// The part of a block that a process of a budget pays for beside those who are billed for it:
/// nothing if the budget is billed itself, and an equal part otherwise. The only holder is billed
/// from now on.
pub fn part_of(index: u32, payer: &Payer, bytes: usize, holders: usize) -> usize {
    if is_within(payer.budget(), index) && payer.budget() != ROOT {
        return 0;
    }
    if holders <= 1 && (payer.budget() == ROOT || !is_within(index, payer.budget())) {
        payer.hand_to(index, bytes);
        return 0;
    }
    bytes / holders.max(1)
}

/// Charges a new atom to the budget of the process that this thread runs. Returns false if there
/// may be no more. Atoms stay, so they are never given back.
pub fn charge_atom() -> bool {
    let b = payer::current();
    b == ROOT || charge(b, ROOT, Counted::Atoms, 1)
}
