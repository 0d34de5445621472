//! Shortcuts for natives that are called often. Each stands in front of the general call of the native: it steps over
//! that call if the case is a simple one, and else goes into it, which sees to errors, labels and big results.

use super::operands::*;
use super::{Exit, go};
use crate::cx::Cx;
use crate::trace::calls;
use purlin_isa::ops::Op;
use purlin_term::word::{Subtag, header_arity};
use purlin_term::{Term, map};

/// Words of the calls that are stepped over.
const BIF1: usize = general(Op::Bif1);
const BIF2: usize = general(Op::Bif2);
const CALL_BIF: usize = general(Op::CallBif);

const fn general(op: Op) -> usize {
    let row = op.row();
    let mut units = 1;
    let mut i = 0;
    while i < row.operands.len() {
        units += row.operands[i].forms()[0].units();
        i += 1;
    }
    units.div_ceil(4)
}

/// The header of a boxed term; 1, which is none, for others.
#[inline(always)]
unsafe fn header_of(t: Term) -> u64 {
    if t.is_boxed() { (*t.ptr()).raw() } else { 1 }
}
#[inline(always)]
unsafe fn is_tuple_header(w: u64) -> bool {
    w & 0x3F == (Subtag::Tuple as u64) << 2
}

macro_rules! shortcuts {
    ($($name:ident |$cx:ident, $t:ident| $value:expr;)*) => {$(
        pub unsafe fn $name<A: Src, D: Dst>($cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit {
            let u = (pc as *const u16).add(1);
            let $t = A::get($cx, e, u);
            let value: Option<Term> = $value;
            match value {
                Some(v) => {
                    D::set($cx, e, u.add(1), v);
                    go!($cx, pc.add(words(2) + BIF1), e, hp, reds)
                }
                None => go!($cx, pc.add(words(2)), e, hp, reds),
            }
        }
    )*};
}
shortcuts! {
    op_fast_hd |cx, t| t.is_list_ptr().then(|| *t.ptr());
    op_fast_tl |cx, t| t.is_list_ptr().then(|| *t.ptr().add(1));
    op_fast_tuple_size |cx, t| {
        let w = header_of(t);
        is_tuple_header(w).then(|| Term::small(header_arity(w) as i64))
    };
    op_fast_byte_size |cx, t| byte_size(t);
    op_fast_map_size |cx, t| map_size(t);
    op_fast_length |cx, t| length(t);
}

// Nothing of this may be a call: see `fast`.

#[inline(always)]
fn byte_size(t: Term) -> Option<Term> {
    let b = t.as_bits()?;
    Some(Term::small(b.bit_len.div_ceil(8) as i64))
}
#[inline(always)]
fn map_size(t: Term) -> Option<Term> {
    t.is_map().then(|| Term::small(map::size(t) as i64))
}
#[inline(always)]
unsafe fn length(mut t: Term) -> Option<Term> {
    let mut n = 0;
    // Long lists are counted by the native, which counts reductions.
    while t.is_list_ptr() && n < 256 {
        t = *t.ptr().add(1);
        n += 1;
    }
    t.is_nil().then(|| Term::small(n))
}

pub unsafe fn op_fast_element<A: Src, D: Dst>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let u = (pc as *const u16).add(1);
    let t = A::get(cx, e, u);
    let at = *u.add(1) as usize;
    let w = header_of(t);
    if is_tuple_header(w) && header_arity(w) * 8 >= at {
        let v = *((t.ptr() as *const u8).add(at) as *const Term);
        D::set(cx, e, u.add(2), v);
        go!(cx, pc.add(words(3) + BIF2), e, hp, reds)
    }
    go!(cx, pc.add(words(3)), e, hp, reds)
}

pub unsafe fn op_fast_setelement(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let x = &mut (*cx).x;
    let w = header_of(x[1]);
    // The general call is the one that a trace of the native sees.
    if x[0].is_small() && is_tuple_header(w) && !calls::natives() {
        let n = header_arity(w);
        let i = x[0].small_value();
        let room = (e as usize - hp as usize) >> 3;
        if i >= 1 && i as u64 <= n as u64 && n < 256 {
            if room <= n || (*cx).heap.gc_wanted {
                return super::fast::make_room(cx, pc, e, hp, reds, (n as u64 + 1) | 3 << 32);
            }
            std::ptr::copy_nonoverlapping(x[1].ptr(), hp, n + 1);
            *hp.add(i as usize) = x[2];
            x[0] = Term::boxed_at(hp);
            go!(cx, pc.add(words(0) + CALL_BIF), e, hp.add(n + 1), reds - 1)
        }
    }
    go!(cx, pc.add(words(0)), e, hp, reds)
}
