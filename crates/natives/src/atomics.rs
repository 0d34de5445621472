//! Natives of modules `atomics` and `counters`: arrays of 64-bit integers behind magic references.
//!
//! A counter of `counters` with `write_concurrency` has several parts, each in cache lines of its
//! own. A thread adds to its part, and reading sums the parts up. So parts are only changed by
//! addition, and `put` adds the difference to one part.
//!
//! # Orderings
//! Operations of `atomics` are `SeqCst`, since OTP documents that they are mutually ordered.
//! `counters` with `write_concurrency` promises no order, so its operations are `Relaxed`.

use super::iolist::admit;
use crate::cx::{BifResult, Env, Fail};
use purlin_term::cache_lines::CACHE_LINE;
use purlin_term::layout::RefView;
use purlin_term::magic::MagicRef;
use purlin_term::payer::Billed;
use purlin_term::refusal::may_fail;
use purlin_term::{Alloc, Term, am, arith, atom, map};
use std::alloc::{Layout, alloc_zeroed};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};

/// An array of `atomics`.
struct Atomics {
    signed: bool,
    /// The bill for its memory.
    _billed: Billed,
    cells: Box<[AtomicU64]>,
}

/// Number of integers in a cache line.
const LINE: usize = CACHE_LINE / 8;

/// An array of `counters`. The lines of the first eight counters come first, one for each part.
/// There is a part for each scheduler, and one that `put` changes.
struct Counters {
    len: usize,
    parts: usize,
    /// The lines begin behind the first `skip` of these. Zeroed memory with the alignment of lines
    /// would be written at once, and so take time and memory before it is used.
    room: Box<[AtomicU64]>,
    skip: usize,
    /// The bill for its memory.
    _billed: Billed,
}

/// Returns the value behind a magic reference, if it has that type.
fn value<T: Any>(t: Term) -> Result<&'static T, Fail> {
    match t.as_ref_view() {
        Some(RefView::Magic(m)) => m.value.downcast_ref().ok_or(Fail::Badarg),
        _ => Err(Fail::Badarg),
    }
}

/// Returns the length of a new array.
fn length(t: Term, max: u64) -> Result<usize, Fail> {
    match (arith::to_u64(t), t.as_big()) {
        (Some(0), _) => Err(Fail::Badarg),
        (Some(n), _) if n <= max => Ok(n as usize),
        (Some(_), _) | (None, Some((false, _))) => Err(Fail::SystemLimit),
        _ => Err(Fail::Badarg),
    }
}

/// Returns `n` zeros; `None` if there is no memory for them. Pages of a long array take memory only
/// when they are written.
fn zeroed(n: usize) -> Option<Box<[AtomicU64]>> {
    let l = Layout::array::<AtomicU64>(n)
        .ok()
        .filter(|l| l.size() > 0)?;
    // SAFETY: the layout is not empty.
    let p = may_fail(|| unsafe { alloc_zeroed(l) }) as *mut AtomicU64;
    // SAFETY: `n` zeroed values, allocated like a box of them; any bits are a number.
    (!p.is_null()).then(|| unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(p, n)) })
}

fn reference(cx: &mut Env, value: Box<dyn Any + Send + Sync>) -> Term {
    let m = MagicRef::new(crate::ids::ref_numbers(), value);
    // SAFETY: it was made just now.
    unsafe { cx.magic_ref(m) }
}

/// Returns the cell for a one-based index.
fn cell(r: Term, i: Term) -> Result<(&'static Atomics, &'static AtomicU64), Fail> {
    let a: &Atomics = value(r)?;
    let i = arith::to_u64(i).ok_or(Fail::Badarg)?.wrapping_sub(1);
    match usize::try_from(i).ok().and_then(|i| a.cells.get(i)) {
        Some(c) => Ok((a, c)),
        None => Err(Fail::Badarg),
    }
}
/// Returns a value to store, as bits.
fn stored(a: &Atomics, t: Term) -> Result<u64, Fail> {
    match a.signed {
        true => arith::to_i64(t).map(|v| v as u64),
        false => arith::to_u64(t),
    }
    .ok_or(Fail::Badarg)
}
/// Returns a value to add, as bits: any that fits into 64 bits, signed or unsigned.
fn added(t: Term) -> Result<u64, Fail> {
    arith::to_i64(t)
        .map(|v| v as u64)
        .or_else(|| arith::to_u64(t))
        .ok_or(Fail::Badarg)
}
fn integer(cx: &mut Env, a: &Atomics, v: u64) -> Term {
    match a.signed {
        true => cx.int(v as i64),
        false => cx.uint(v),
    }
}

fn atomics_new_2(cx: &mut Env, [n, options]: [Term; 2]) -> BifResult {
    let n = length(n, u64::MAX / 8)?;
    let options = arith::to_u64(options).ok_or(Fail::Badarg)?;
    admit(n.saturating_mul(8))?;
    let cells = zeroed(n).ok_or(Fail::SystemLimit)?;
    Ok(reference(
        cx,
        Box::new(Atomics {
            signed: options & 1 != 0,
            cells,
            _billed: Billed::new(n.saturating_mul(8)),
        }),
    ))
}
fn put_3(_cx: &mut Env, [r, i, v]: [Term; 3]) -> BifResult {
    let (a, c) = cell(r, i)?;
    c.store(stored(a, v)?, Ordering::SeqCst);
    Ok(am::OK)
}
fn get_2(cx: &mut Env, [r, i]: [Term; 2]) -> BifResult {
    let (a, c) = cell(r, i)?;
    Ok(integer(cx, a, c.load(Ordering::SeqCst)))
}
fn add_3(_cx: &mut Env, [r, i, v]: [Term; 3]) -> BifResult {
    let (_, c) = cell(r, i)?;
    c.fetch_add(added(v)?, Ordering::SeqCst);
    Ok(am::OK)
}
fn add_get_3(cx: &mut Env, [r, i, v]: [Term; 3]) -> BifResult {
    let (a, c) = cell(r, i)?;
    let v = added(v)?;
    let sum = c.fetch_add(v, Ordering::SeqCst).wrapping_add(v);
    Ok(integer(cx, a, sum))
}
fn exchange_3(cx: &mut Env, [r, i, v]: [Term; 3]) -> BifResult {
    let (a, c) = cell(r, i)?;
    let was = c.swap(stored(a, v)?, Ordering::SeqCst);
    Ok(integer(cx, a, was))
}
fn compare_exchange_4(cx: &mut Env, [r, i, expected, desired]: [Term; 4]) -> BifResult {
    let (a, c) = cell(r, i)?;
    let (e, d) = (stored(a, expected)?, stored(a, desired)?);
    match c.compare_exchange(e, d, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => Ok(am::OK),
        Err(was) => Ok(integer(cx, a, was)),
    }
}
fn info_1(cx: &mut Env, [r]: [Term; 1]) -> BifResult {
    let a: &Atomics = value(r)?;
    let (min, max) = match a.signed {
        true => (cx.int(i64::MIN), cx.int(i64::MAX)),
        false => (Term::small(0), cx.uint(u64::MAX)),
    };
    let bytes = size_of::<MagicRef>() + size_of::<Atomics>() + size_of_val(&*a.cells);
    let pairs = [
        (am::MAX, max),
        (atom::intern("min"), min),
        (am::SIZE, Term::small(a.cells.len() as i64)),
        (am::MEMORY, Term::small(bytes as i64)),
    ];
    Ok(map::from_pairs(cx, &pairs))
}

fn counters_new_1(cx: &mut Env, [n]: [Term; 1]) -> BifResult {
    let parts = crate::bif::schedulers() + 1;
    let len = length(n, u64::MAX / (8 * 2 * parts as u64))?;
    let numbers = len.div_ceil(LINE).saturating_mul(parts * LINE);
    let bytes = numbers.saturating_mul(8);
    admit(bytes)?;
    let room = numbers.checked_add(LINE - 1).and_then(zeroed);
    let room = room.ok_or(Fail::SystemLimit)?;
    let skip = (room.as_ptr() as usize / 8).wrapping_neg() % LINE;
    let counters = Counters {
        len,
        parts,
        room,
        skip,
        _billed: Billed::new(bytes),
    };
    Ok(reference(cx, Box::new(counters)))
}
/// Returns all parts of the counter for a one-based index.
fn parts(r: Term, i: Term) -> Result<impl Iterator<Item = &'static AtomicU64>, Fail> {
    let c: &'static Counters = value(r)?;
    let i = arith::to_u64(i).ok_or(Fail::Badarg)?.wrapping_sub(1);
    if i >= c.len as u64 {
        return Err(Fail::Badarg);
    }
    let first = c.skip + i as usize / LINE * c.parts * LINE + i as usize % LINE;
    Ok(c.room[first..].iter().step_by(LINE).take(c.parts))
}
fn sum(parts: impl Iterator<Item = &'static AtomicU64>) -> u64 {
    parts.fold(0, |s, p| s.wrapping_add(p.load(Ordering::Relaxed)))
}
fn counters_get_2(cx: &mut Env, [r, i]: [Term; 2]) -> BifResult {
    let v = sum(parts(r, i)?);
    Ok(cx.int(v as i64))
}
fn counters_add_3(cx: &mut Env, [r, i, v]: [Term; 3]) -> BifResult {
    let c: &Counters = value(r)?;
    let mine = cx.sched % (c.parts - 1) + 1;
    let p = parts(r, i)?.nth(mine).ok_or(Fail::Badarg)?;
    p.fetch_add(added(v)?, Ordering::Relaxed);
    Ok(am::OK)
}
fn counters_put_3(_cx: &mut Env, [r, i, v]: [Term; 3]) -> BifResult {
    let v = arith::to_i64(v).ok_or(Fail::Badarg)? as u64;
    let mut all = parts(r, i)?;
    let first = all.next().ok_or(Fail::Badarg)?;
    first.store(v.wrapping_sub(sum(all)), Ordering::Relaxed);
    Ok(am::OK)
}
fn counters_info_1(cx: &mut Env, [r]: [Term; 1]) -> BifResult {
    let c: &Counters = value(r)?;
    let bytes = size_of::<MagicRef>() + size_of::<Counters>() + size_of_val(&*c.room);
    let pairs = [
        (am::MEMORY, Term::small(bytes as i64)),
        (am::SIZE, Term::small(c.len as i64)),
    ];
    Ok(map::from_pairs(cx, &pairs))
}

crate::bifs! {
    Plain "erts_internal":"atomics_new"/2 = atomics_new_2;
    Plain "atomics":"put"/3 = put_3 [writes(Cell)];
    Plain "atomics":"get"/2 = get_2 [reads(Cell)];
    Plain "atomics":"add"/3 = add_3 [writes(Cell)];
    Plain "atomics":"add_get"/3 = add_get_3 [writes(Cell)];
    Plain "atomics":"exchange"/3 = exchange_3 [writes(Cell) may_do_nothing];
    Plain "atomics":"compare_exchange"/4 = compare_exchange_4 [writes(Cell) may_do_nothing];
    Plain "atomics":"info"/1 = info_1;
    Plain "erts_internal":"counters_new"/1 = counters_new_1;
    Plain "erts_internal":"counters_get"/2 = counters_get_2 [reads(Cell)];
    Plain "erts_internal":"counters_add"/3 = counters_add_3 [writes(Cell)];
    Plain "erts_internal":"counters_put"/3 = counters_put_3 [writes(Cell)];
    Plain "erts_internal":"counters_info"/1 = counters_info_1;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn resident_pages() -> usize {
        let s = std::fs::read_to_string("/proc/self/statm").expect("what the system tells");
        let n = s.split(' ').nth(1).expect("the second number");
        n.parse().expect("a number")
    }

    #[test]
    fn a_long_array_takes_no_memory_before_it_is_used() {
        let before = resident_pages();
        let a = zeroed(1 << 27).expect("a gigabyte of addresses");
        assert_eq!(a[a.len() - 1].load(Ordering::Relaxed), 0);
        let grown = resident_pages().saturating_sub(before);
        assert!(
            grown < (1 << 30) / purlin_term::sys::page_bytes() / 8,
            "{grown} pages"
        );
        // The compiler must not leave out an allocation whose result is not used.
        assert!(std::hint::black_box(zeroed(usize::MAX / 16)).is_none());
    }
}
