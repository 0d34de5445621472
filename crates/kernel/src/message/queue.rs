//! The queue of signals in transit: many senders, one receiver, one word in the cell.
//!
//! The word holds the address of the newest signal (48 bits), or `closed`, and above it an epoch of
//! 16 bits that changes whenever the cell changes hands. Senders push with compare-and-swap; the
//! receiver takes everything with one swap and reverses it, so that signals of one sender come out
//! in the order in which they were sent.
//!
//! # Cells are reused
//! A sender looks a pid up, finds a cell, loads this word, then reads the cell's id. If the id
//! still is the intended one, the word belongs to the time of that process. Should the process end
//! before the push, the epoch in the word has changed and the compare-and-swap fails. So a signal
//! never reaches a process that it wasn't meant for, without locks and without a count of senders.
//! Cells are never unmapped.
//!
//! # Orderings
//! A push releases, and taking the chain acquires: the receiver sees what the senders wrote into
//! their signals. A push also acquires, since the epoch that it reads belongs to a cell made again
//! by a store with release: a sender that reads it then reads the id of that time. The model is
//! `models/tests/signals.rs`.

use crate::sync::{AtomicU64, Ordering};
use purlin_isa::cache_lines::CACHE_LINE;

/// First word of each signal, whatever its kind.
#[repr(C)]
pub struct Link {
    pub next: *mut Link,
}

const PTR_BITS: u32 = 48;
const PTR_MASK: u64 = (1 << PTR_BITS) - 1;
const EPOCH: u64 = 1 << PTR_BITS;
/// Stands in place of an address: nobody receives here.
const CLOSED: u64 = 1;

/// The epoch that zeroed cells start with, shifted into place.
static FIRST_EPOCH: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Changes the first epoch. Must be called before the memory of free cells is given back: cells
/// that start anew get epochs that they have not had lately, so that a sender which has slept since
/// then still fails.
#[inline]
pub(crate) fn forget_epochs() {
    // An odd number of epochs, far from the few that a cell goes through meanwhile.
    FIRST_EPOCH.fetch_add(EPOCH.wrapping_mul(0x2F35), Ordering::Relaxed);
}

/// See the module docs.
pub struct InTransit(AtomicU64);

/// The reason for which a push was refused: the process has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

impl InTransit {
    /// Returns a queue that nobody receives from yet.
    #[inline]
    pub fn closed() -> InTransit {
        InTransit(AtomicU64::new(CLOSED))
    }
    /// Returns a queue as it is in memory fresh from the system.
    #[inline]
    pub fn zeroed() -> InTransit {
        InTransit(AtomicU64::new(0))
    }
    /// Opens the queue for a new process in the cell. Called by the spawner.
    #[inline]
    pub fn open(&self) {
        let w = self.0.load(Ordering::Relaxed);
        debug_assert!(w & PTR_MASK == CLOSED);
        self.0
            .store((w & !PTR_MASK).wrapping_add(EPOCH), Ordering::Release);
    }
    /// Closes the queue of a zeroed cell. The spawner calls it before the cell has an id: a cell
    /// that was never used, or whose memory was given back, would look open to a thread that finds
    /// the id.
    #[inline]
    pub(crate) fn close_if_zeroed(&self) {
        if self.0.load(Ordering::Relaxed) == 0 {
            let epoch = FIRST_EPOCH.load(Ordering::Relaxed);
            self.0.store(epoch | CLOSED, Ordering::Relaxed);
        }
    }
    /// Pushes `sig`, provided that `is_target` (which reads the cell's id) holds in the epoch of
    /// the push. Called by senders. On success the queue owns the signal.
    ///
    /// # Safety
    /// `sig` is a signal's first word, owned by the caller, at an 8-aligned address below 2^48.
    pub unsafe fn push(&self, sig: *mut Link, is_target: impl Fn() -> bool) -> Result<(), Closed> {
        debug_assert!(sig as u64 & !PTR_MASK == 0 && sig as u64 & 7 == 0);
        let mut w = self.0.load(Ordering::Acquire);
        loop {
            if w & PTR_MASK == CLOSED || !is_target() {
                return Err(Closed);
            }
            // SAFETY: the signal is the caller's until the exchange succeeds.
            unsafe { (*sig).next = (w & PTR_MASK) as *mut Link };
            match self.0.compare_exchange_weak(
                w,
                (w & !PTR_MASK) | sig as u64,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => w = now,
            }
        }
    }
    /// Whether there is nothing to take.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) & PTR_MASK <= CLOSED
    }
    /// Returns the newest signal, which leads to the older ones; null if there is none. They stay
    /// there only until they are taken.
    pub(crate) fn newest(&self) -> *mut Link {
        match self.0.load(Ordering::Acquire) & PTR_MASK {
            CLOSED => std::ptr::null_mut(),
            p => p as *mut Link,
        }
    }
    /// Takes all signals, oldest first, as a chain. Called by the receiver.
    pub fn take(&self) -> *mut Link {
        // Only the receiver changes the epoch and closes the queue, so the word may be read first.
        // The exchange that follows is needed even if there seems to be nothing; see `State::wake`.
        let w = self.0.load(Ordering::Relaxed);
        if w & PTR_MASK == CLOSED {
            return std::ptr::null_mut();
        }
        let w = self.0.swap(w & !PTR_MASK, Ordering::AcqRel);
        // SAFETY: the chain was taken whole; its links were written by senders before their pushes.
        unsafe { reverse((w & PTR_MASK) as *mut Link) }
    }
    /// Closes the queue for good and takes what is left, oldest first. Called by the receiver.
    pub(crate) fn close(&self) -> *mut Link {
        let mut w = self.0.load(Ordering::Relaxed);
        loop {
            match self.0.compare_exchange_weak(
                w,
                (w & !PTR_MASK) | CLOSED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => w = now,
            }
        }
        let p = w & PTR_MASK;
        if p <= CLOSED {
            return std::ptr::null_mut();
        }
        // SAFETY: the chain was taken whole; its links were written by senders before their pushes.
        unsafe { reverse(p as *mut Link) }
    }
}

/// Prefetches two cache lines from `p` on. Any address may be given. `purlin_term` has the same for
/// one line; this file knows nothing of that crate, so that a model can run it.
#[inline]
pub(crate) fn prefetch(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(p.cast());
        _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(CACHE_LINE).cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint, which never faults.
    unsafe {
        for at in [p, p.wrapping_add(CACHE_LINE)] {
            std::arch::asm!(
                "prfm pldl1keep, [{}]",
                in(reg) at,
                options(nostack, preserves_flags, readonly)
            );
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = p;
}

/// Reverses a chain.
///
/// # Safety
/// The chain ends in null and belongs to the caller.
unsafe fn reverse(mut p: *mut Link) -> *mut Link {
    let mut out: *mut Link = std::ptr::null_mut();
    while !p.is_null() {
        // SAFETY: by the contract, `p` is a link of the chain.
        let next = unsafe { (*p).next };
        // Most signals lie in another processor's cache, adjacent if one sender made them.
        let stride = (next as isize).wrapping_sub(p as isize);
        if (-1024..=1024).contains(&stride) {
            prefetch((next as *const u8).wrapping_offset(stride * 8));
        }
        // SAFETY: by the contract, `p` is a link of the chain, which is the caller's.
        unsafe { (*p).next = out };
        out = p;
        p = next;
    }
    out
}
