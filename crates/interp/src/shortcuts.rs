//! Shortcuts for natives that are called often. Each precedes the general call of the native. It
//! skips that call if the case is a simple one. Otherwise the call follows, and handles errors,
//! labels and large results.

use super::handler::{go, op};
use super::instr;
use super::operands::{Dst, Src};
use crate::code::breakpoint;
use purlin_isa::helpers::Room;
use purlin_isa::ops::comparison::{
    EQUAL, GREATER, LESS, NOT_EQUAL, NOT_GREATER, NOT_LESS, NOT_SAME, SAME,
};
use purlin_term::layout::{CONS_TAIL, TUPLE_FIRST};
use purlin_term::word::{Subtag, header, header_arity, header_kind};
use purlin_term::{Term, am, map};

/// Length in words of the calls that are skipped.
const BIF1: usize = instr::Bif1::WORDS;
const BIF2: usize = instr::Bif2::WORDS;
const CALL_BIF: usize = instr::CallBif::WORDS;

/// Returns the header of a boxed term; for others 1, which is no header.
///
/// # Safety
/// `t` must be a term of the process.
#[inline(always)]
unsafe fn header_of(t: Term) -> u64 {
    if t.is_boxed() { (*t.ptr()).raw() } else { 1 }
}
#[inline(always)]
fn is_tuple_header(w: u64) -> bool {
    header_kind(w) == header(Subtag::Tuple, 0)
}

macro_rules! shortcuts {
    ($($name:ident = $op:ident |$cx:ident, $t:ident| $value:expr;)*) => {$(
        op!($name = $op<A: Src, D: Dst>($cx, pc, e, hp, reds, op) {
            let $t = op.src().get($cx, e);
            let value: Option<Term> = $value;
            match value {
                Some(v) => {
                    op.dst().set($cx, e, v);
                    go!($cx, op.next().add(BIF1), e, hp, reds)
                }
                None => go!($cx, op.next(), e, hp, reds),
            }
        });
    )*};
}
shortcuts! {
    op_fast_hd = FastHd |cx, t| t.is_list_ptr().then(|| *t.ptr());
    op_fast_tl = FastTl |cx, t| t.is_list_ptr().then(|| *t.ptr().add(CONS_TAIL));
    op_fast_tuple_size = FastTupleSize |cx, t| {
        let w = header_of(t);
        is_tuple_header(w).then(|| Term::small(header_arity(w) as i64))
    };
    op_fast_byte_size = FastByteSize |cx, t| byte_size(t);
    op_fast_map_size = FastMapSize |cx, t| map_size(t);
    op_fast_length = FastLength |cx, t| length(t);
}

// None of this may be a call: see `fast`.

#[inline(always)]
fn byte_size(t: Term) -> Option<Term> {
    let b = t.as_bits()?;
    Some(Term::small(b.bit_len.div_ceil(8) as i64))
}
#[inline(always)]
fn map_size(t: Term) -> Option<Term> {
    t.is_map().then(|| Term::small(map::size(t) as i64))
}
/// # Safety
/// `t` must be a term of the process.
#[inline(always)]
unsafe fn length(mut t: Term) -> Option<Term> {
    let mut n = 0;
    // Long lists are counted by the native, which charges reductions.
    while t.is_list_ptr() && n < 256 {
        t = *t.ptr().add(CONS_TAIL);
        n += 1;
    }
    t.is_nil().then(|| Term::small(n))
}

op!(op_fast_element = FastElement<A: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    let t = op.tuple().get(cx, e);
    let at = op.offset();
    let w = header_of(t);
    if is_tuple_header(w) && header_arity(w) * 8 >= at {
        let v = *((t.ptr() as *const u8).add(at) as *const Term);
        op.dst().set(cx, e, v);
        go!(cx, op.next().add(BIF2), e, hp, reds)
    }
    go!(cx, op.next(), e, hp, reds)
});

op!(op_fast_element_of = FastElementOf<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    let t = op.tuple().get(cx, e);
    let i = op.index().get(cx, e);
    let w = header_of(t);
    if i.is_small() && is_tuple_header(w) {
        // Numbers below 1 are large unsigned ones.
        let i = (i.small_value() as usize).wrapping_sub(1);
        if i < header_arity(w) {
            op.dst().set(cx, e, *t.ptr().add(TUPLE_FIRST + i));
            go!(cx, op.next().add(BIF2), e, hp, reds)
        }
    }
    go!(cx, op.next(), e, hp, reds)
});

/// Returns the value of `key`, an immediate, in a flat map. The outer `None` means that the general
/// case must decide.
#[inline(always)]
fn known(m: Term, key: Term) -> Option<Option<Term>> {
    let (keys, values) = m.as_flatmap().filter(|_| key.is_immed())?;
    Some(super::maps::find(keys, key.raw()).map(|at| values[at]))
}
macro_rules! map_shortcuts {
    ($($name:ident = $op:ident $general:ident |$found:ident| $value:expr;)*) => {$(
        op!($name = $op<A: Src, D: Dst>(cx, pc, e, hp, reds, op) {
            let Some($found) = known(op.map().get(cx, e), op.key().get(cx, e)) else {
                return $general::<F, A, D>(cx, pc, e, hp, reds);
            };
            let value: Option<Term> = $value;
            match value {
                Some(v) => {
                    op.dst().set(cx, e, v);
                    go!(cx, op.next().add(BIF2), e, hp, reds)
                }
                None => go!(cx, op.next(), e, hp, reds),
            }
        });
        op!(
        #[inline(never)]
        $general = $op<A: Src, D: Dst>(cx, pc, e, hp, reds, op) {
            let m = op.map().get(cx, e);
            let $found = map::get(m, op.key().get(cx, e));
            let value: Option<Term> = $value;
            match value {
                Some(v) if m.is_map() => {
                    op.dst().set(cx, e, v);
                    go!(cx, op.next().add(BIF2), e, hp, reds)
                }
                _ => go!(cx, op.next(), e, hp, reds),
            }
        });
    )*};
}
map_shortcuts! {
    op_fast_map_get = FastMapGet map_get |found| found;
    op_fast_is_map_key = FastIsMapKey is_map_key |found| Some(if found.is_some() { am::TRUE } else { am::FALSE });
}

/// Returns how two terms compare, by the number of the comparison, if their words decide it.
#[inline(always)]
fn compared(a: Term, b: Term, n: usize) -> Option<bool> {
    let smalls = a.is_small() && b.is_small();
    let (x, y) = (a.small_value(), b.small_value());
    match n {
        SAME if a == b || a.is_immed() || b.is_immed() => Some(a == b),
        NOT_SAME if a == b || a.is_immed() || b.is_immed() => Some(a != b),
        EQUAL if a == b || a.is_immed() && b.is_immed() => Some(a == b),
        NOT_EQUAL if a == b || a.is_immed() && b.is_immed() => Some(a != b),
        LESS if smalls => Some(x < y),
        NOT_LESS if smalls => Some(x >= y),
        GREATER if smalls => Some(x > y),
        NOT_GREATER if smalls => Some(x <= y),
        _ => None,
    }
}
op!(op_fast_compare = FastCompare(cx, pc, e, hp, reds, op) {
    let (a, b) = (op.a().get(cx, e), op.b().get(cx, e));
    match compared(a, b, op.comparison()) {
        Some(is) => {
            op.dst().set(cx, e, if is { am::TRUE } else { am::FALSE });
            go!(cx, op.next().add(BIF2), e, hp, reds)
        }
        None => go!(cx, op.next(), e, hp, reds),
    }
});

op!(op_fast_setelement = FastSetelement(cx, pc, e, hp, reds, op) {
    let x = &mut (*cx).x;
    let w = header_of(x[1]);
    // The general call is the one that a trace of the native sees.
    if x[0].is_small() && is_tuple_header(w) && !breakpoint::natives() {
        let n = header_arity(w);
        let i = x[0].small_value();
        let room = (e as usize - hp as usize) >> 3;
        if i >= 1 && i as u64 <= n as u64 && n < 256 {
            if room <= n || (*cx).heap.gc_wanted {
                let words = n as u32 + 1;
                let what = Room { words, live: 3 }.pack();
                return super::fast::make_room::<F>(cx, pc, e, hp, reds, what);
            }
            std::ptr::copy_nonoverlapping(x[1].ptr(), hp, n + 1);
            *hp.add(i as usize) = x[2];
            x[0] = Term::boxed_at(hp);
            go!(cx, op.next().add(CALL_BIF), e, hp.add(n + 1), reds - 1)
        }
    }
    go!(cx, op.next(), e, hp, reds)
});
