//! Numbers that are given out only once: those of references, and unique integers.
//!
//! Each thread takes numbers in blocks, so making a reference mostly touches nothing shared.
//! Strictly monotonic integers come from one counter.

use purlin_term::word::MIN_SMALL;
use purlin_term::{Alloc, Term};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

const BLOCK: u64 = 1 << 12;
/// Number of bits of a reference's first number.
const FIRST_BITS: u32 = 18;
/// Number of bits of a reference's last number that differ within a run.
const LAST_BITS: u32 = 64 - 32 - FIRST_BITS;

static NEXT_REF: AtomicU64 = AtomicU64::new(0);
static NEXT_UNIQUE: AtomicU64 = AtomicU64::new(0);
static NEXT_MONOTONIC: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static REFS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    static UNIQUE: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The first number of references, which differs from run to run.
static FIRST: AtomicU64 = AtomicU64::new(0);
/// The bits of a reference's last number that all references of this run share.
static LAST: AtomicU32 = AtomicU32::new(0);

/// The seed of the first numbers of this run.
static BEGUN: OnceLock<u64> = OnceLock::new();

/// Derives the numbers of this run from `nanoseconds` instead of the clock. Must be called before
/// the first is given out.
pub fn begin_at(nanoseconds: u64) {
    let _ = BEGUN.set(nanoseconds);
}

/// Settles [`FIRST`] and [`LAST`], if no thread has. The runtime calls it when it starts. Each
/// thread calls it before its first number, so that making a reference need not check.
pub fn settle() {
    static SETTLED: Once = Once::new();
    SETTLED.call_once(|| {
        let t = *BEGUN.get_or_init(|| {
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |d| d.as_nanos() as u64)
        });
        let bits = t.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        FIRST.store((bits >> 4) & 0x0FFF_FFFF_FFFF_0000, Ordering::Relaxed);
        LAST.store((bits.swap_bytes() as u32) << LAST_BITS, Ordering::Relaxed);
    });
}

#[inline]
fn from_block(cell: &'static std::thread::LocalKey<Cell<(u64, u64)>>, next: &AtomicU64) -> u64 {
    cell.with(|c| {
        let (mut at, mut end) = c.get();
        if at == end {
            (at, end) = next_block(next);
        }
        c.set((at + 1, end));
        at
    })
}

#[cold]
fn next_block(next: &AtomicU64) -> (u64, u64) {
    settle();
    let at = next.fetch_add(BLOCK, Ordering::Relaxed);
    (at, at + BLOCK)
}

/// Returns the numbers of a new reference.
#[inline]
pub fn ref_numbers() -> [u32; 3] {
    numbers_of(ref_bits())
}

/// Returns a new reference, as the bits that [`numbers_of`] takes.
#[inline]
pub fn ref_bits() -> u64 {
    let n = from_block(&REFS, &NEXT_REF);
    FIRST.load(Ordering::Relaxed).wrapping_add(n)
}

/// Returns the numbers of a reference of this runtime, which has 64 bits, from [`ref_bits`].
#[inline]
pub fn numbers_of(bits: u64) -> [u32; 3] {
    [
        (bits & ((1 << FIRST_BITS) - 1)) as u32,
        (bits >> FIRST_BITS) as u32,
        (bits >> (FIRST_BITS + 32)) as u32 | LAST.load(Ordering::Relaxed),
    ]
}

/// Returns the bits of these numbers; `None` if no reference of this runtime has them.
#[inline]
pub fn bits_of(numbers: [u32; 3]) -> Option<u64> {
    let [a, b, c] = numbers.map(u64::from);
    let bits = a | b << FIRST_BITS | c << (FIRST_BITS + 32);
    (numbers_of(bits) == numbers).then_some(bits)
}

/// Whether a reference of these numbers may have been made in this run: a thread has the block of
/// numbers that they are in.
pub fn may_be_made(numbers: [u32; 3]) -> bool {
    bits_of(numbers).is_some_and(|bits| {
        bits.wrapping_sub(FIRST.load(Ordering::Relaxed)) < NEXT_REF.load(Ordering::Relaxed)
    })
}

/// `make_ref()`
#[inline]
pub fn make_ref<A: Alloc + ?Sized>(to: &mut A) -> Term {
    to.local_ref(ref_numbers())
}

/// Returns a unique integer, 0 or greater, in no particular order.
#[inline]
pub fn unique() -> u64 {
    from_block(&UNIQUE, &NEXT_UNIQUE)
}

/// Returns an integer greater than every one given before; the first is 0.
#[inline]
pub fn unique_monotonic() -> u64 {
    NEXT_MONOTONIC.fetch_add(1, Ordering::Relaxed)
}

/// Returns the last result of [`unique_monotonic`]; -1, modulo 2^64, before the first.
pub fn last_monotonic() -> u64 {
    NEXT_MONOTONIC.load(Ordering::Relaxed).wrapping_sub(1)
}

/// Sets the value of [`last_monotonic`]: the next one is greater by 1, modulo 2^64.
pub fn set_last_monotonic(n: u64) {
    NEXT_MONOTONIC.store(n.wrapping_add(1), Ordering::Relaxed);
}

/// Returns the value of `erlang:unique_integer/1` for a number. Positive ones begin with 1, others
/// with the least small integer.
pub fn unique_integer(a: &mut dyn Alloc, n: u64, positive: bool) -> Term {
    match positive {
        true => a.uint(n.wrapping_add(1)),
        false => {
            let below_zero = MIN_SMALL.unsigned_abs();
            match n.checked_sub(below_zero) {
                Some(n) => a.uint(n),
                None => Term::small(n as i64 + MIN_SMALL),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_are_unique_across_threads() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    (0..20_000)
                        .map(|_| (ref_numbers(), unique()))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let mut refs = HashSet::new();
        let mut ints = HashSet::new();
        for t in threads {
            for (r, u) in t.join().unwrap_or_default() {
                assert!(r[0] < 1 << FIRST_BITS);
                assert!(refs.insert(r) && ints.insert(u));
            }
        }
    }
}
