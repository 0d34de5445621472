//! Natives of `erts_debug` about terms with shared parts: their sizes, and copies that keep the
//! sharing.

use crate::cx::{BifResult, Cx, Fail};
use crate::natives::terms::inspect::shared_words;
use purlin_native::hashing::Hashing;
use purlin_native::long;
use purlin_native::reschedule::dirty_if_large;
use purlin_term::bits::BsWriter;
use purlin_term::graph::{Graph, Met};
use purlin_term::layout::{self, CONS_TAIL};
use purlin_term::word::Subtag;
use purlin_term::{Alloc, Term, copy, region};
use std::collections::{HashMap, HashSet};

/// Words of the boxed term `t`, and the terms in it.
///
/// # Safety
/// `t` is a live boxed term.
unsafe fn parts(t: Term) -> (usize, impl Iterator<Item = Term>) {
    // SAFETY: by the contract of this function.
    unsafe {
        let p = t.ptr();
        let (from, to) = layout::term_range(p);
        (layout::object_words(p), (from..to).map(move |i| *p.add(i)))
    }
}

fn is_empty_tuple(t: Term) -> bool {
    t.as_tuple().is_some_and(|e| e.is_empty())
}

/// Words of a sub-binary and its part of the original, as stock measures them. A sub-binary that
/// starts and ends at byte boundaries counts as the binary that a copy of it would be.
fn sub_binary_words(t: Term, original: Option<Term>) -> usize {
    let (odd, bytes) = t.as_bits().map_or((0, 0), |b| {
        (b.bit_offset as usize % 8 + b.bit_len % 8, b.bit_len / 8)
    });
    let own = if odd > 0 { layout::SUB_BIN_WORDS } else { 0 };
    own + match original.and_then(|o| o.subtag()) {
        Some(Subtag::RefcBin) => layout::REFC_BIN_WORDS,
        _ => layout::HEAP_BIN_HEAD_WORDS + (bytes + odd.div_ceil(8)).div_ceil(8),
    }
}

/// Words of a term. A subterm that is reached twice counts once. Literals, which belong to no
/// process, do not count.
fn size_shared_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    dirty_if_large(cx, long!("erts_debug":"size_shared"/1).call(&[t]), t)?;
    let mut met = Met::none(&cx.heap);
    let mut counts = |t: Term| {
        let literal = |p| region::is_region_ptr(p) && crate::natives::persistent::is_literal(p);
        // `first` goes before `literal`, which takes a lock, so each subterm is looked up once.
        met.first(t) && !literal(t.ptr())
    };
    // The binaries that large sub-binaries refer to.
    let mut wholes = HashSet::<_, Hashing>::default();
    let mut words = 0;
    let mut todo = vec![t];
    while let Some(mut t) = todo.pop() {
        while t.is_list_ptr() && counts(t) {
            words += 2;
            if let Some((h, tl)) = t.as_cons() {
                if !h.is_immed() {
                    todo.push(h);
                }
                t = tl;
            }
        }
        if t.is_boxed() && !is_empty_tuple(t) && counts(t) {
            // SAFETY: `t` is a live boxed term.
            let (n, mut inner) = unsafe { parts(t) };
            if let Some(n) = shared_words(t, |p| wholes.insert(p)) {
                words += n;
                if t.as_fun().is_some() {
                    todo.extend(inner);
                }
                continue;
            }
            if t.subtag() == Some(Subtag::SubBin) {
                words += sub_binary_words(t, inner.next());
                continue;
            }
            // Stock counts the nodes of tree maps twice.
            words += match t.is_map() && t.as_flatmap().is_none() {
                true => 2 * n,
                false => n,
            };
            todo.extend(inner);
        }
    }
    cx.bump(words / 16);
    Ok(Term::small(words as i64))
}

/// Whether no subterm is reached twice, and the term's words. With `SHARE`, regions are left out.
fn reached_once<const SHARE: bool>(cx: &Cx, t: Term) -> (bool, usize) {
    let g = Graph::<SHARE>::whole(t, Some(&cx.heap));
    (!g.any_twice(), g.words())
}

/// Copies a term and keeps its sharing. Literals are copied on request.
fn copy_shared_2(cx: &mut Cx, [t, literals]: [Term; 2]) -> BifResult {
    let literals = literals.as_bool().ok_or(Fail::Badarg)?;
    dirty_if_large(
        cx,
        long!("erts_debug":"copy_shared"/2).call(&[t, Term::bool(literals)]),
        t,
    )?;
    let (once, words) = match literals {
        true => reached_once::<false>(cx, t),
        false => reached_once::<true>(cx, t),
    };
    if once {
        cx.bump(words / 4);
        return Ok(match literals {
            true => copy::copy_whole(t, cx),
            false => copy::copy(t, cx),
        });
    }
    let stays = |t: Term| t.is_immed() || (!literals && region::is_region_ptr(t.ptr()));
    let mut root = t;
    let mut copies: HashMap<*mut Term, Term, Hashing> = HashMap::default();
    // Slots that still hold a term of the original.
    let mut todo: Vec<*mut Term> = vec![&mut root];
    while let Some(slot) = todo.pop() {
        // SAFETY: slots are words of copies made below, or `root`; originals are live terms.
        unsafe {
            let t = *slot;
            if stays(t) {
                continue;
            }
            if let Some(&c) = copies.get(&t.ptr()) {
                *slot = c;
                continue;
            }
            let c = if let Some((h, tl)) = t.as_cons() {
                let c = cx.cons(h, tl);
                todo.push(c.ptr());
                todo.push(c.ptr().add(CONS_TAIL));
                c
            } else if matches!(
                t.subtag(),
                Some(Subtag::Tuple | Subtag::Record | Subtag::Map)
            ) {
                let n = layout::object_words(t.ptr());
                let p = cx.alloc(n);
                std::ptr::copy_nonoverlapping(t.ptr(), p, n);
                let (from, to) = layout::term_range(p);
                todo.extend((from..to).map(|i| p.add(i)));
                Term::boxed_at(p)
            } else {
                // The terms in a fun or behind a sub-binary are copied with it.
                match literals {
                    true => copy::copy_whole(t, cx),
                    false => copy::copy(t, cx),
                }
            };
            copies.insert(t.ptr(), c);
            *slot = c;
        }
    }
    cx.bump(copies.len());
    Ok(root)
}

/// The same bits after `offset` others, so that readers find them off byte boundaries.
fn unaligned_bitstring_2(cx: &mut Cx, [bits, offset]: [Term; 2]) -> BifResult {
    let offset = offset
        .as_small()
        .filter(|n| (1..8).contains(n))
        .ok_or(Fail::Badarg)? as usize;
    let bits = bits.as_bits().ok_or(Fail::Badarg)?;
    let len = bits.bit_len;
    let mut whole = BsWriter::new(cx, offset + len);
    if !(whole.integer(Term::small(0), offset, false) && whole.bits(&bits, len)) {
        return Err(Fail::Badarg);
    }
    cx.bump(len / 8192 + 1);
    Ok(cx.sub_binary(whole.term, offset, len))
}

crate::bifs! {
    Plain "erts_debug":"size_shared"/1 = size_shared_1 [long];
    Plain "erts_debug":"copy_shared"/2 = copy_shared_2 [long];
    Plain "erts_debug":"unaligned_bitstring"/2 = unaligned_bitstring_2 [since(29)];
}
