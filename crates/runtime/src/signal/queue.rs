//! The queue of signals in transit: many senders, one receiver, one word in the cell.
//!
//! The word holds the newest signal (48 bits of address), and above it 16 bits that change whenever the cell changes
//! hands, or `closed`. Senders push with compare-and-swap; the receiver takes everything with one swap and reverses
//! it, so that signals of one sender come out in the order in which they were sent.
//!
//! # Cells are reused
//! A sender looks a pid up, finds a cell, loads this word, then reads the cell's id. If the id still is the one it
//! wants, the word belongs to that process's time; should the process end before the push, the epoch in the word has
//! changed and the compare-and-swap fails. So a signal never reaches a process it wasn't meant for, without locks and
//! without counting senders. Cells are never unmapped.

use purlin_term::sync::{AtomicU64, Ordering};

/// First word of each signal, whatever its kind.
#[repr(C)]
pub struct Link {
    pub next: *mut Link,
}

const PTR_BITS: u32 = 48;
const PTR_MASK: u64 = (1 << PTR_BITS) - 1;
const EPOCH: u64 = 1 << PTR_BITS;
/// In place of an address: nobody receives here.
const CLOSED: u64 = 1;

/// The epoch that zeroed cells start with, in its place in the word.
static FIRST_EPOCH: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// To be called before the memory of free cells is given back: cells that start anew get epochs that they have not
/// had lately, so that a sender which has slept since then fails as it would have before.
pub fn forget_epochs() {
    // An odd number of epochs, far from the few that a cell gets through in the meantime.
    FIRST_EPOCH.fetch_add(EPOCH.wrapping_mul(0x2F35), Ordering::Relaxed);
}

/// See the module head.
pub struct InTransit(AtomicU64);

/// Why a push was refused: the process has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

impl InTransit {
    /// A queue that nobody receives from yet.
    pub fn closed() -> InTransit {
        InTransit(AtomicU64::new(CLOSED))
    }
    /// Spawner: opens the queue for a new process in the cell.
    pub fn open(&self) {
        let mut w = self.0.load(Ordering::Relaxed);
        // A cell that was never used, or whose memory was given back, is zeroed.
        debug_assert!(w == 0 || w & PTR_MASK == CLOSED);
        if w == 0 {
            w = FIRST_EPOCH.load(Ordering::Relaxed);
        }
        self.0
            .store((w & !PTR_MASK).wrapping_add(EPOCH), Ordering::Release);
    }
    /// Sender: pushes `sig`, provided that `is_target` (which reads the cell's id) holds in the epoch of the push.
    /// On success the queue owns the signal.
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
            (*sig).next = (w & PTR_MASK) as *mut Link;
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
    /// Whether something is there to take.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) & PTR_MASK <= CLOSED
    }
    /// Receiver: takes all signals, oldest first, as a chain.
    pub fn take(&self) -> *mut Link {
        let mut w = self.0.load(Ordering::Relaxed);
        loop {
            if w & PTR_MASK <= CLOSED {
                return std::ptr::null_mut();
            }
            match self.0.compare_exchange_weak(
                w,
                w & !PTR_MASK,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => w = now,
            }
        }
        // SAFETY: the chain was taken whole; its links were written by senders before their pushes.
        unsafe { reverse((w & PTR_MASK) as *mut Link) }
    }
    /// Receiver: closes the queue for good and takes what is left, oldest first.
    pub fn close(&self) -> *mut Link {
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
        // SAFETY: as in `take`.
        unsafe { reverse(p as *mut Link) }
    }
}

unsafe fn reverse(mut p: *mut Link) -> *mut Link {
    let mut out = std::ptr::null_mut();
    while !p.is_null() {
        let next = (*p).next;
        (*p).next = out;
        out = p;
        p = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[repr(C)]
    struct Sig {
        link: Link,
        from: usize,
        n: usize,
    }
    fn sig(from: usize, n: usize) -> *mut Link {
        Box::into_raw(Box::new(Sig {
            link: Link {
                next: std::ptr::null_mut(),
            },
            from,
            n,
        })) as *mut Link
    }
    fn drain(mut p: *mut Link, mut f: impl FnMut(&Sig)) {
        while !p.is_null() {
            // SAFETY: made by `sig`, taken from the queue once.
            let b = unsafe { Box::from_raw(p as *mut Sig) };
            p = b.link.next;
            f(&b);
        }
    }

    #[test]
    fn signals_of_one_sender_keep_their_order() {
        let q = Arc::new(InTransit::closed());
        q.open();
        const N: usize = 20_000;
        let senders: Vec<_> = (0..3)
            .map(|from| {
                let q = q.clone();
                std::thread::spawn(move || {
                    for n in 0..N {
                        // SAFETY: a fresh signal.
                        assert!(unsafe { q.push(sig(from, n), || true) }.is_ok());
                    }
                })
            })
            .collect();
        let mut next = [0; 3];
        while next.iter().sum::<usize>() < 3 * N {
            drain(q.take(), |s| {
                assert_eq!(s.n, next[s.from]);
                next[s.from] += 1;
            });
        }
        for s in senders {
            assert!(s.join().is_ok());
        }
        assert!(q.is_empty());
    }

    #[test]
    fn a_closed_queue_refuses_and_gives_back_the_rest() {
        let q = InTransit::closed();
        let s = sig(0, 0);
        // SAFETY: `s` stays ours on refusal.
        unsafe {
            assert_eq!(q.push(s, || true), Err(Closed));
            q.open();
            assert_eq!(q.push(s, || false), Err(Closed));
            assert_eq!(q.push(s, || true), Ok(()));
            assert_eq!(q.push(sig(0, 1), || true), Ok(()));
        }
        let mut seen = vec![];
        drain(q.close(), |s| seen.push(s.n));
        assert_eq!(seen, [0, 1]);
        let s = sig(0, 2);
        // SAFETY: refused, so still ours.
        unsafe {
            assert_eq!(q.push(s, || true), Err(Closed));
            drop(Box::from_raw(s as *mut Sig));
        }
    }
}
