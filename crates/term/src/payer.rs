//! Budgets that pay for blocks outside of heaps: binaries, shared regions, kept messages.
//!
//! A block is billed to the budget of the process that makes it, wherever it goes: into a mailbox,
//! a table, a timer or the queue of a port. It is billed until it is freed, or until a process of
//! another budget is its only holder and takes the bill over. This file keeps the number of the
//! budget and calls the [`Ledger`], which knows what a budget is; 0 is the budget without limits.

use crate::pressure;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The functions that bill.
pub struct Ledger {
    /// Bills a new block of this many bytes to a budget, which stays until the block is refunded.
    /// Returns false if nothing was billed, because the budget is gone.
    pub charge: fn(u32, usize) -> bool,
    /// Takes the bill of a block back.
    pub refund: fn(u32, usize),
    /// Changes the size of a billed block, or bills what is never freed.
    pub change: fn(u32, isize),
}

static LEDGER: OnceLock<Ledger> = OnceLock::new();

/// Sets the ledger. Only the first call counts.
pub fn billed_by(l: Ledger) {
    let _ = LEDGER.set(l);
}

thread_local! {
    /// The budget that pays for what this thread makes.
    static CURRENT: Cell<u32> = const { Cell::new(0) };
    /// Bytes billed to it since [`take_net`], without those refunded to it by this thread.
    static NET: Cell<isize> = const { Cell::new(0) };
}

/// Sets the budget that pays for what this thread makes from now on.
pub fn set_current(budget: u32) {
    CURRENT.set(budget);
    NET.set(0);
}
/// The budget that pays for what this thread makes.
#[inline]
pub fn current() -> u32 {
    CURRENT.get()
}
/// Returns the bytes by which this thread has changed the bill of its current budget since the
/// last call.
pub fn take_net() -> isize {
    NET.take()
}

/// The budget that pays for a block; 0 for none.
pub struct Payer(AtomicU32);

impl Payer {
    /// Bills a new block of `bytes` bytes to the current budget.
    #[inline]
    pub fn of_new(bytes: usize) -> Payer {
        let budget = current();
        match budget {
            0 => Payer::nobody(),
            _ => charge(budget, bytes),
        }
    }
    /// No budget is billed.
    pub const fn nobody() -> Payer {
        Payer(AtomicU32::new(0))
    }
    /// The budget that is billed.
    #[inline]
    pub fn budget(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
    /// Takes the bill of a block back that no process holds any more.
    #[inline]
    pub fn refund(&self, bytes: usize) {
        let budget = self.budget();
        if budget != 0 {
            refund(budget, bytes);
        }
    }
    /// Bills a block of another size, which was `from` bytes.
    #[inline]
    pub fn resize(&self, from: usize, to: usize) {
        let budget = self.budget();
        if budget != 0 {
            change(budget, to.wrapping_sub(from) as isize);
        }
    }
    /// Bills a block of `bytes` bytes to `budget` instead. Called by a holder of the block.
    #[cold]
    pub fn hand_to(&self, budget: u32, bytes: usize) {
        let Some(l) = LEDGER.get() else { return };
        if self.budget() != budget && (budget == 0 || (l.charge)(budget, bytes)) {
            // Of several holders that do this at once, each takes back what another has billed.
            let before = self.0.swap(budget, Ordering::Relaxed);
            if before != 0 {
                (l.refund)(before, bytes);
            }
        }
    }
}

#[cold]
#[inline(never)]
fn charge(budget: u32, bytes: usize) -> Payer {
    let done = LEDGER.get().is_some_and(|l| (l.charge)(budget, bytes));
    if done {
        NET.set(NET.get().saturating_add(bytes as isize));
    }
    Payer(AtomicU32::new(if done { budget } else { 0 }))
}

#[cold]
#[inline(never)]
fn refund(budget: u32, bytes: usize) {
    if budget == current() {
        NET.set(NET.get().saturating_sub(bytes as isize));
    }
    if let Some(l) = LEDGER.get() {
        (l.refund)(budget, bytes);
    }
}

#[cold]
#[inline(never)]
fn change(budget: u32, by: isize) {
    if budget == current() {
        NET.set(NET.get().saturating_add(by));
    }
    if let Some(l) = LEDGER.get() {
        (l.change)(budget, by);
    }
}

/// Fragments of a heap of at least this many bytes are noted when they are made.
const NOTED_FRAGMENT: usize = 20 << 10;

thread_local! {
    /// The process that this thread runs has been billed for this many bytes of fragments of its
    /// heap since it was last weighed.
    static BILLED_FRAGMENTS: Cell<isize> = const { Cell::new(0) };
}

/// Notes that a heap gets a fragment of `bytes` bytes: its budget is billed for it before the
/// process is weighed, so that others of the budget see what is left.
#[inline]
pub(crate) fn note_fragment(bytes: usize) {
    if bytes >= NOTED_FRAGMENT && pressure::is_limited() {
        bill_fragment(bytes);
    }
}

#[cold]
#[inline(never)]
fn bill_fragment(bytes: usize) {
    pressure::use_allowance(bytes);
    let budget = current();
    if let Some(l) = LEDGER.get().filter(|_| budget != 0) {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX / 2);
        (l.change)(budget, bytes);
        BILLED_FRAGMENTS.set(BILLED_FRAGMENTS.get().saturating_add(bytes));
    }
}

/// Returns the bytes of fragments that are billed for now, to be taken off the bill.
pub fn take_billed_fragments() -> isize {
    BILLED_FRAGMENTS.take()
}

/// Bills bytes that are never freed to the current budget.
pub fn bill_for_good(bytes: usize) {
    let budget = current();
    if budget != 0 {
        change(budget, bytes as isize);
    }
}

/// Memory that is billed to the budget which made it, until this is dropped.
pub struct Billed {
    payer: Payer,
    bytes: usize,
}

impl Billed {
    /// Bills `bytes` bytes to the current budget.
    pub fn new(bytes: usize) -> Billed {
        Billed {
            payer: Payer::of_new(bytes),
            bytes,
        }
    }
}

impl Billed {
    /// Bills `bytes` bytes to `budget`.
    pub fn to(budget: u32, bytes: usize) -> Billed {
        let done = budget != 0 && LEDGER.get().is_some_and(|l| (l.charge)(budget, bytes));
        let payer = Payer(AtomicU32::new(if done { budget } else { 0 }));
        Billed { payer, bytes }
    }
}

impl Drop for Billed {
    fn drop(&mut self) {
        self.payer.refund(self.bytes);
    }
}
