//! Handlers of maps. Most maps are flat, and most of their keys are atoms in the code. These are
//! searched for word by word, and the updated map is written to the place of the heap's next
//! object.

use super::handler::{go, op};
use super::operands::{set_source, source};
use super::room::collect_after;
use super::{exc, instr};
use crate::cx::Cx;
use purlin_term::layout::{FLATMAP_HEAD_WORDS, FLATMAP_LIMIT};
use purlin_term::{Alloc, NIL, Term, am, map};
use smallvec::SmallVec;

op! {
    op_new_map => new_map;
    put_assoc_any => put_map_assoc;
    put_exact_any => put_map_exact;
}

/// Whether a word of a list is a constant that only equals the same word.
#[inline(always)]
fn is_plain(word: u64) -> bool {
    purlin_term::word::is_immed_word(word)
}

/// Returns the index of that word among the keys of a flat map.
#[inline(always)]
pub(super) fn find(keys: &[Term], word: u64) -> Option<usize> {
    keys.iter().position(|k| k.raw() == word)
}

op!(op_get_map_elements = GetMapElements(cx, pc, e, hp, reds, op) {
    let m = op.map().get(cx, e);
    let (n, list) = (op.count(), op.pairs());
    let Some((keys, values)) = m.as_flatmap() else {
        return get_map_elements::<F>(cx, pc, e, hp, reds);
    };
    // Nothing is written before all keys are known to be plain: the destination may be a register
    // that is read.
    let mut i = 0;
    while i < n {
        if !is_plain(*list.add(i)) {
            return get_map_elements::<F>(cx, pc, e, hp, reds);
        }
        i += 2;
    }
    i = 0;
    while i < n {
        match find(keys, *list.add(i)) {
            Some(at) => set_source(cx, e, *list.add(i + 1), values[at]),
            None => go!(cx, op.fail().to(), e, hp, reds),
        }
        i += 2;
    }
    go!(cx, list.add(n), e, hp, reds)
});
op!(
/// As [`op_get_map_elements`], for any map and keys.
#[inline(never)]
get_map_elements = GetMapElements(cx, pc, e, hp, reds, op) {
    let m = op.map().get(cx, e);
    let (n, list) = (op.count(), op.pairs());
    let mut i = 0;
    while i < n {
        let k = source(cx, e, *list.add(i));
        match map::get(m, k) {
            Some(v) => set_source(cx, e, *list.add(i + 1), v),
            None => go!(cx, op.fail().to(), e, hp, reds),
        }
        i += 2;
    }
    go!(cx, list.add(n), e, hp, reds)
});

op!(op_has_map_fields = HasMapFields(cx, pc, e, hp, reds, op) {
    let m = op.map().get(cx, e);
    let (n, list) = (op.count(), op.keys());
    let mut i = 0;
    while i < n {
        let k = source(cx, e, *list.add(i));
        if map::get(m, k).is_none() {
            go!(cx, op.fail().to(), e, hp, reds)
        }
        i += 1;
    }
    go!(cx, list.add(n), e, hp, reds)
});

macro_rules! put_ops {
    ($($name:ident = $op:ident, $any:ident;)*) => {$(
        op!(
        /// Makes a flat map with other values for keys that it has; everything else is left to the
        /// general case.
        $name = $op(cx, pc, e, hp, reds, op) {
            let m = op.map().get(cx, e);
            let (n, list) = (op.count(), op.pairs());
            let Some((keys, values)) = m.as_flatmap() else {
                return $any::<F>(cx, pc, e, hp, reds);
            };
            let heap = &(*cx).heap;
            let words = FLATMAP_HEAD_WORDS + keys.len();
            let room = (e as usize - hp as usize) >> 3;
            if room < words + heap.stack_reserve || heap.gc_wanted {
                return $any::<F>(cx, pc, e, hp, reds);
            }
            std::ptr::copy_nonoverlapping(m.ptr(), hp, words);
            let mut changed = false;
            let mut i = 0;
            while i < n {
                let k = *list.add(i);
                let at = match find(keys, k) {
                    Some(at) if is_plain(k) => at,
                    _ => return $any::<F>(cx, pc, e, hp, reds),
                };
                let v = source(cx, e, *list.add(i + 1));
                changed |= v != values[at];
                hp.add(FLATMAP_HEAD_WORDS + at).write(v);
                i += 2;
            }
            if !changed {
                op.dst().set(cx, e, m);
                go!(cx, list.add(n), e, hp, reds)
            }
            op.dst().set(cx, e, Term::boxed_at(hp));
            go!(cx, list.add(n), e, hp.add(words), reds)
        });
    )*};
}
put_ops! {
    op_put_map_assoc = PutMapAssoc, put_assoc_any;
    op_put_map_exact = PutMapExact, put_exact_any;
}

unsafe fn new_map(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::NewMap::at(pc);
    let keys = op.keys().value(cx);
    let (n, list) = (op.count(), op.values());
    let e = cx.heap.stop;
    let mut values: [Term; FLATMAP_LIMIT] = [NIL; FLATMAP_LIMIT];
    for (i, v) in values.iter_mut().enumerate().take(n) {
        *v = source(cx, e, *list.add(i));
    }
    let m = cx.heap.flatmap_with_keys(keys, &values[..n]);
    op.dst().put(cx, m);
    collect_after(cx, op.live(), op.dst().also());
    op.next()
}
unsafe fn put_map(cx: &mut Cx, pc: *const u64, exact: bool) -> *const u64 {
    // Both ops have the same operands.
    let op = instr::PutMapAssoc::at(pc);
    let mut m = op.map().value(cx);
    let (n, list) = (op.count(), op.pairs());
    let e = cx.heap.stop;
    if !m.is_map() {
        if let Some(to) = op.fail().given() {
            return to;
        }
        let fail = cx.error2(am::BADMAP, m);
        return exc::raise(cx, pc, fail, exc::First::None);
    }
    // Flat maps are copied once, however many keys there are.
    let mut set = 0;
    if n > 2 {
        let mut pairs: SmallVec<[(Term, Term); 8]> = SmallVec::new();
        for i in (0..n).step_by(2) {
            let k = source(cx, e, *list.add(i));
            pairs.push((k, source(cx, e, *list.add(i + 1))));
        }
        if let Some(t) = map::put_all(&mut cx.heap, m, &pairs, exact) {
            m = t;
            set = n;
        }
    }
    for i in (set..n).step_by(2) {
        let k = source(cx, e, *list.add(i));
        let v = source(cx, e, *list.add(i + 1));
        if !exact {
            m = map::put(&mut cx.heap, m, k, v);
            continue;
        }
        match map::update(&mut cx.heap, m, k, v) {
            Some(t) => m = t,
            None => {
                if let Some(to) = op.fail().given() {
                    return to;
                }
                // If several keys are missing, the error names the first in the order of keys of
                // flat maps.
                let missing = (i..n)
                    .step_by(2)
                    .map(|i| source(cx, e, *list.add(i)))
                    .filter(|&k| !map::contains(m, k))
                    .min_by(|a, b| map::cmp_keys(*a, *b));
                let fail = cx.error2(am::BADKEY, missing.unwrap_or(k));
                return exc::raise(cx, pc, fail, exc::First::None);
            }
        }
    }
    op.dst().put(cx, m);
    collect_after(cx, op.live(), op.dst().also());
    op.next()
}
unsafe fn put_map_assoc(cx: &mut Cx, pc: *const u64) -> *const u64 {
    put_map(cx, pc, false)
}
unsafe fn put_map_exact(cx: &mut Cx, pc: *const u64) -> *const u64 {
    put_map(cx, pc, true)
}
