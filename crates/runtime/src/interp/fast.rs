//! Handlers of what is frequent and simple: registers, frames, tests, lists, tuples, small arithmetic, jumps.

use super::call::{call_to, used_up};
use super::operands::*;
use super::{Exit, collect, go};
use crate::cx::Cx;
use purlin_term::prefetch::prefetch;
use purlin_term::word::{Subtag, TAG_LIST, TAG_SMALL, header};
use purlin_term::{NIL, Term, am, arith, compare};
use std::cmp::Ordering;

/// Defines a handler; inside, `u` points at the first operand.
macro_rules! op {
    ($name:ident $(<$($g:ident : $b:ident),*>)? ($cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident, $u:ident) $body:block) => {
        #[allow(unused_mut, unused_variables)]
        pub unsafe fn $name $(<$($g: $b),*>)? (
            $cx: *mut Cx, $pc: *const u64, mut $e: *mut Term, mut $hp: *mut Term, mut $reds: i64,
        ) -> Exit {
            let $u = ($pc as *const u16).add(1);
            $body
        }
    };
}

#[inline(always)]
unsafe fn h(u: *const u16, at: usize) -> usize {
    *u.add(at) as usize
}
#[inline(always)]
unsafe fn w(u: *const u16, at: usize) -> usize {
    (u.add(at) as *const u32).read_unaligned() as usize
}
#[inline(always)]
unsafe fn label(pc: *const u64, u: *const u16, at: usize) -> *const u64 {
    pc.offset((u.add(at) as *const i32).read_unaligned() as isize)
}
#[inline(always)]
unsafe fn q(u: *const u16, at: usize) -> u64 {
    (u.add(at) as *const u64).read_unaligned()
}
#[inline(always)]
unsafe fn bytes(p: *mut Term, n: usize) -> *mut Term {
    (p as *mut u8).add(n) as *mut Term
}

op!(op_move<S: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    D::set(cx, e, u.add(S::U), S::get(cx, e, u));
    go!(cx, pc.add(words(S::U + D::U)), e, hp, reds)
});
op!(op_swap<A: Dst, B: Dst>(cx, pc, e, hp, reds, u) {
    let a = A::get(cx, e, u);
    let b = B::get(cx, e, u.add(1));
    A::set(cx, e, u, b);
    B::set(cx, e, u.add(1), a);
    go!(cx, pc.add(words(2)), e, hp, reds)
});
op!(op_init_y<D: Dst>(cx, pc, e, hp, reds, u) {
    D::set(cx, e, u, NIL);
    go!(cx, pc.add(words(1)), e, hp, reds)
});
op!(op_init_ys(cx, pc, e, hp, reds, u) {
    let n = (u as *const u32).read_unaligned() as usize;
    let list = pc.add(words(2));
    for i in 0..n {
        set_source(cx, e, *list.add(i), NIL);
    }
    go!(cx, list.add(n), e, hp, reds)
});

/// A list of objects is gone through: has the processor fetch the next one while this one is looked at.
#[inline(always)]
unsafe fn fetch_next(hd: Term, tl: Term) {
    if hd.is_boxed() && tl.is_list_ptr() {
        prefetch((*tl.ptr()).ptr());
    }
}

/// Makes room by a collection, and runs the instruction again. `what`: words needed, and in the upper half the
/// registers that are live.
#[cold]
#[inline(never)]
pub(super) unsafe fn make_room(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
    what: u64,
) -> Exit {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    collect(cx, what as u32 as usize, (what >> 32) as usize);
    if crate::trace::calls::is_breakpoint(pc) {
        // The instruction at the entry of a traced function, whose call has been told already.
        let h = super::HANDLERS[crate::trace::calls::original(pc) as usize];
        return h(cx, pc, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
    }
    go!(cx, pc, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
}

macro_rules! room {
    ($cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident, $need:expr, $live:expr) => {
        let need: usize = $need;
        if ($e as usize - $hp as usize) < need * 8 || (*$cx).heap.gc_wanted {
            let what = need as u64 | ($live as u64) << 32;
            return make_room($cx, $pc, $e, $hp, $reds, what);
        }
    };
}

op!(op_allocate(cx, pc, e, hp, reds, u) {
    let n = h(u, 0) + 1;
    room!(cx, pc, e, hp, reds, n, h(u, 1));
    e = e.sub(n);
    (e as *mut u64).write(0);
    go!(cx, pc.add(words(2)), e, hp, reds)
});
op!(op_allocate_zero(cx, pc, e, hp, reds, u) {
    let n = h(u, 0) + 1;
    room!(cx, pc, e, hp, reds, n, h(u, 1));
    e = e.sub(n);
    (e as *mut u64).write(0);
    for i in 1..n {
        e.add(i).write(NIL);
    }
    go!(cx, pc.add(words(2)), e, hp, reds)
});
op!(op_allocate_heap(cx, pc, e, hp, reds, u) {
    let n = h(u, 0) + 1;
    room!(cx, pc, e, hp, reds, n + (u.add(1) as *const u32).read_unaligned() as usize, h(u, 3));
    e = e.sub(n);
    (e as *mut u64).write(0);
    go!(cx, pc.add(words(4)), e, hp, reds)
});
op!(op_allocate_heap_zero(cx, pc, e, hp, reds, u) {
    let n = h(u, 0) + 1;
    room!(cx, pc, e, hp, reds, n + (u.add(1) as *const u32).read_unaligned() as usize, h(u, 3));
    e = e.sub(n);
    (e as *mut u64).write(0);
    for i in 1..n {
        e.add(i).write(NIL);
    }
    go!(cx, pc.add(words(4)), e, hp, reds)
});
op!(op_test_heap(cx, pc, e, hp, reds, u) {
    room!(cx, pc, e, hp, reds, (u as *const u32).read_unaligned() as usize, h(u, 2));
    go!(cx, pc.add(words(3)), e, hp, reds)
});
op!(op_deallocate(cx, pc, e, hp, reds, u) {
    go!(cx, pc.add(words(1)), e.add(h(u, 0) + 1), hp, reds)
});
op!(op_trim(cx, pc, e, hp, reds, u) {
    e = e.add(h(u, 0));
    (e as *mut u64).write(0);
    go!(cx, pc.add(words(1)), e, hp, reds)
});
op!(op_return(cx, pc, e, hp, reds, u) {
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, hp, reds)
});
op!(op_deallocate_return(cx, pc, e, hp, reds, u) {
    e = e.add(h(u, 0) + 1);
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, hp, reds)
});
op!(op_move_return<S: Src>(cx, pc, e, hp, reds, u) {
    (*cx).x[0] = S::get(cx, e, u);
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, hp, reds)
});
op!(op_move_deallocate<S: Src>(cx, pc, e, hp, reds, u) {
    (*cx).x[0] = S::get(cx, e, u);
    go!(cx, pc.add(words(S::U + 1)), e.add(h(u, S::U) + 1), hp, reds)
});
op!(op_move_deallocate_return<S: Src>(cx, pc, e, hp, reds, u) {
    (*cx).x[0] = S::get(cx, e, u);
    e = e.add(h(u, S::U) + 1);
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, hp, reds)
});
op!(op_move_jump<S: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    D::set(cx, e, u.add(S::U), S::get(cx, e, u));
    go!(cx, label(pc, u, S::U + 1), e, hp, reds)
});
op!(op_allocate_move<S: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    let n = h(u, 0) + 1;
    room!(cx, pc, e, hp, reds, n, h(u, 1));
    let t = S::get(cx, e, u.add(2));
    e = e.sub(n);
    (e as *mut u64).write(0);
    D::set(cx, e, u.add(3), t);
    go!(cx, pc.add(words(4)), e, hp, reds)
});
op!(op_allocate_get_list<S: Src, H: Dst, T: Dst>(cx, pc, e, hp, reds, u) {
    let n = h(u, 0) + 1;
    room!(cx, pc, e, hp, reds, n, h(u, 1));
    let p = S::get(cx, e, u.add(2)).ptr();
    e = e.sub(n);
    (e as *mut u64).write(0);
    let (hd, tl) = (*p, *p.add(1));
    fetch_next(hd, tl);
    H::set(cx, e, u.add(3), hd);
    T::set(cx, e, u.add(4), tl);
    go!(cx, pc.add(words(5)), e, hp, reds)
});
op!(op_move2<A: Src, B: Dst, C2: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    B::set(cx, e, u.add(A::U), A::get(cx, e, u));
    let u2 = u.add(A::U + 1);
    D::set(cx, e, u2.add(C2::U), C2::get(cx, e, u2));
    go!(cx, pc.add(words(A::U + C2::U + 2)), e, hp, reds)
});
op!(op_move3<A: Src, B: Dst, C2: Src, D: Dst, E2: Src, F: Dst>(cx, pc, e, hp, reds, u) {
    B::set(cx, e, u.add(1), A::get(cx, e, u));
    D::set(cx, e, u.add(3), C2::get(cx, e, u.add(2)));
    F::set(cx, e, u.add(5), E2::get(cx, e, u.add(4)));
    go!(cx, pc.add(words(6)), e, hp, reds)
});
op!(op_jump(cx, pc, e, hp, reds, u) {
    go!(cx, label(pc, u, 0), e, hp, reds)
});

// Lists and tuples.

op!(op_get_list<S: Src, H: Dst, T: Dst>(cx, pc, e, hp, reds, u) {
    let p = S::get(cx, e, u).ptr();
    let (hd, tl) = (*p, *p.add(1));
    fetch_next(hd, tl);
    H::set(cx, e, u.add(1), hd);
    T::set(cx, e, u.add(2), tl);
    go!(cx, pc.add(words(3)), e, hp, reds)
});
op!(op_is_nonempty_get_list<S: Src, H: Dst, T: Dst>(cx, pc, e, hp, reds, u) {
    let t = S::get(cx, e, u.add(2));
    if t.is_list_ptr() {
        let p = t.ptr();
        let (hd, tl) = (*p, *p.add(1));
    fetch_next(hd, tl);
        H::set(cx, e, u.add(3), hd);
        T::set(cx, e, u.add(4), tl);
        go!(cx, pc.add(words(5)), e, hp, reds)
    }
    go!(cx, label(pc, u, 0), e, hp, reds)
});
op!(op_test_heap_put_list<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    room!(cx, pc, e, hp, reds, 2, h(u, 0));
    hp.write(A::get(cx, e, u.add(1)));
    hp.add(1).write(B::get(cx, e, u.add(1 + A::U)));
    D::set(cx, e, u.add(1 + A::U + B::U), Term::from_raw(hp as u64 | TAG_LIST));
    go!(cx, pc.add(words(A::U + B::U + 2)), e, hp.add(2), reds)
});
op!(op_get_hd<S: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    D::set(cx, e, u.add(1), *S::get(cx, e, u).ptr());
    go!(cx, pc.add(words(2)), e, hp, reds)
});
op!(op_get_tl<S: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    D::set(cx, e, u.add(1), *S::get(cx, e, u).ptr().add(1));
    go!(cx, pc.add(words(2)), e, hp, reds)
});
op!(op_put_list<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    hp.write(A::get(cx, e, u));
    hp.add(1).write(B::get(cx, e, u.add(A::U)));
    D::set(cx, e, u.add(A::U + B::U), Term::from_raw(hp as u64 | TAG_LIST));
    go!(cx, pc.add(words(A::U + B::U + 1)), e, hp.add(2), reds)
});
op!(op_get_tuple_element<S: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    let t = S::get(cx, e, u).ptr();
    D::set(cx, e, u.add(2), *bytes(t, h(u, 1)));
    go!(cx, pc.add(words(3)), e, hp, reds)
});
op!(op_get_tuple_elements_2<S: Src, D: Dst, E2: Dst>(cx, pc, e, hp, reds, u) {
    let t = bytes(S::get(cx, e, u).ptr(), h(u, 1));
    let (a, b) = (*t, *t.add(1));
    D::set(cx, e, u.add(2), a);
    E2::set(cx, e, u.add(3), b);
    go!(cx, pc.add(words(4)), e, hp, reds)
});
op!(op_get_tuple_element_far<S: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    let t = S::get(cx, e, u).ptr();
    D::set(cx, e, u.add(1), *bytes(t, w(u, 2)));
    go!(cx, pc.add(words(4)), e, hp, reds)
});
op!(op_set_tuple_element(cx, pc, e, hp, reds, u) {
    let v = source(cx, e, q(u, 0));
    let t = source(cx, e, q(u, 4)).ptr();
    *bytes(t, w(u, 8)) = v;
    go!(cx, pc.add(words(10)), e, hp, reds)
});
op!(op_put_tuple<D: Dst>(cx, pc, e, hp, reds, u) {
    let n = w(u, 1);
    let list = pc.add(words(3));
    (hp as *mut u64).write(header(Subtag::Tuple, n));
    for i in 0..n {
        hp.add(1 + i).write(source(cx, e, *list.add(i)));
    }
    D::set(cx, e, u, Term::boxed_at(hp));
    go!(cx, list.add(n), e, hp.add(n + 1), reds)
});
op!(op_put_tuple_2<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    (hp as *mut u64).write(header(Subtag::Tuple, 2));
    hp.add(1).write(A::get(cx, e, u));
    hp.add(2).write(B::get(cx, e, u.add(A::U)));
    D::set(cx, e, u.add(A::U + B::U), Term::boxed_at(hp));
    go!(cx, pc.add(words(A::U + B::U + 1)), e, hp.add(3), reds)
});
op!(op_put_tuple_3<A: Src, B: Src, C2: Src, D: Dst>(cx, pc, e, hp, reds, u) {
    (hp as *mut u64).write(header(Subtag::Tuple, 3));
    hp.add(1).write(A::get(cx, e, u));
    hp.add(2).write(B::get(cx, e, u.add(A::U)));
    hp.add(3).write(C2::get(cx, e, u.add(A::U + B::U)));
    D::set(cx, e, u.add(A::U + B::U + C2::U), Term::boxed_at(hp));
    go!(cx, pc.add(words(A::U + B::U + C2::U + 1)), e, hp.add(4), reds)
});
op!(op_update_record(cx, pc, e, hp, reds, u) {
    let t = source(cx, e, q(u, 0)).ptr();
    let (d, size, n) = (*u.add(4), w(u, 5), w(u, 7));
    let list = pc.add(words(9));
    std::ptr::copy_nonoverlapping(t, hp, size + 1);
    for i in 0..n {
        *hp.add(*list.add(2 * i) as usize) = source(cx, e, *list.add(2 * i + 1));
    }
    set_dst(cx, e, d, Term::boxed_at(hp));
    go!(cx, list.add(2 * n), e, hp.add(size + 1), reds)
});

// Comparisons.

#[inline(never)]
fn cmp_slow(a: Term, b: Term) -> Ordering {
    compare::cmp(a, b)
}
#[inline(never)]
fn eq_slow(a: Term, b: Term) -> bool {
    compare::eq(a, b)
}
#[inline(never)]
fn eq_exact_slow(a: Term, b: Term) -> bool {
    compare::eq_exact(a, b)
}
#[inline(always)]
fn both_small(a: Term, b: Term) -> bool {
    a.raw() & b.raw() & 15 == TAG_SMALL
}
#[inline(always)]
fn same(a: Term, b: Term) -> bool {
    a == b || (!(a.is_immed() || b.is_immed()) && eq_exact_slow(a, b))
}

// An op that calls a function saves the registers of the machine whether it comes to the call or not. So what is
// frequent decides by itself in the simple cases, and hands the others on to a handler of the same operands.

macro_rules! compare_op {
    ($($name:ident $general:ident |$a:ident, $b:ident| $simple:expr, $cond:expr;)*) => {$(
        op!($name<A: Src, B: Src>(cx, pc, e, hp, reds, u) {
            let $a = A::get(cx, e, u.add(2));
            let $b = B::get(cx, e, u.add(2 + A::U));
            let holds: Option<bool> = $simple;
            match holds {
                Some(true) => go!(cx, pc.add(words(2 + A::U + B::U)), e, hp, reds),
                Some(false) => go!(cx, label(pc, u, 0), e, hp, reds),
                None => return $general::<A, B>(cx, pc, e, hp, reds),
            }
        });
        #[inline(never)]
        unsafe fn $general<A: Src, B: Src>(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit {
            let u = (pc as *const u16).add(1);
            let $a = A::get(cx, e, u.add(2));
            let $b = B::get(cx, e, u.add(2 + A::U));
            if $cond {
                go!(cx, pc.add(words(2 + A::U + B::U)), e, hp, reds)
            }
            go!(cx, label(pc, u, 0), e, hp, reds)
        }
    )*};
}
/// Whether `a < b`, of small integers.
#[inline(always)]
fn small_lt(a: Term, b: Term) -> Option<bool> {
    both_small(a, b).then(|| (a.raw() as i64) < b.raw() as i64)
}
/// Whether `a == b`, where that can be seen from the words.
#[inline(always)]
fn word_eq(a: Term, b: Term) -> Option<bool> {
    match a == b {
        true => Some(true),
        false if a.is_immed() && b.is_immed() => Some(false),
        false => None,
    }
}
/// Whether `a =:= b`, likewise.
#[inline(always)]
fn word_same(a: Term, b: Term) -> Option<bool> {
    match a == b {
        true => Some(true),
        false if a.is_immed() || b.is_immed() => Some(false),
        false => None,
    }
}
compare_op! {
    op_is_lt is_lt |a, b| small_lt(a, b), cmp_slow(a, b) == Ordering::Less;
    op_is_ge is_ge |a, b| small_lt(a, b).map(|l| !l), cmp_slow(a, b) != Ordering::Less;
    op_is_eq is_eq |a, b| word_eq(a, b), eq_slow(a, b);
    op_is_ne is_ne |a, b| word_eq(a, b).map(|s| !s), !eq_slow(a, b);
    op_is_eq_exact is_eq_exact |a, b| word_same(a, b), eq_exact_slow(a, b);
    op_is_ne_exact is_ne_exact |a, b| word_same(a, b).map(|s| !s), !eq_exact_slow(a, b);
}

op!(op_is_in_range<A: Src>(cx, pc, e, hp, reds, u) {
    let t = A::get(cx, e, u.add(2));
    if !t.is_small() {
        return is_in_range::<A>(cx, pc, e, hp, reds);
    }
    let v = t.raw() as i64;
    if v >= q(u, 3) as i64 && v <= q(u, 7) as i64 {
        go!(cx, pc.add(words(11)), e, hp, reds)
    }
    go!(cx, label(pc, u, 0), e, hp, reds)
});
#[cold]
#[inline(never)]
unsafe fn is_in_range<A: Src>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let u = (pc as *const u16).add(1);
    let t = A::get(cx, e, u.add(2));
    if in_range_slow(t, Term::from_raw(q(u, 3)), Term::from_raw(q(u, 7))) {
        go!(cx, pc.add(words(11)), e, hp, reds)
    }
    go!(cx, label(pc, u, 0), e, hp, reds)
}
#[cold]
#[inline(never)]
fn in_range_slow(t: Term, lo: Term, hi: Term) -> bool {
    compare::cmp(t, lo) != Ordering::Less && compare::cmp(hi, t) != Ordering::Less
}

// Type tests.

macro_rules! test_op {
    ($($name:ident |$t:ident| $cond:expr;)*) => {$(
        op!($name<A: Src>(cx, pc, e, hp, reds, u) {
            let $t = A::get(cx, e, u.add(2));
            if $cond {
                go!(cx, pc.add(words(3)), e, hp, reds)
            }
            go!(cx, label(pc, u, 0), e, hp, reds)
        });
    )*};
}
test_op! {
    op_is_integer |t| t.is_integer();
    op_is_float |t| t.is_float();
    op_is_number |t| t.is_number();
    op_is_atom |t| t.is_atom();
    op_is_pid |t| t.is_pid();
    op_is_reference |t| t.is_ref();
    op_is_port |t| t.is_port();
    op_is_nil |t| t.is_nil();
    op_is_bitstr |t| t.is_bitstring();
    op_is_list |t| t.is_list();
    op_is_nonempty_list |t| t.is_list_ptr();
    op_is_tuple |t| t.is_tuple();
    op_is_function |t| t.is_fun();
    op_is_boolean |t| t == am::TRUE || t == am::FALSE;
    op_is_map |t| t.is_map();
}

op!(op_is_binary<A: Src>(cx, pc, e, hp, reds, u) {
    let t = A::get(cx, e, u.add(2));
    // Parts of others only may end within a byte.
    let is = match t.subtag() {
        Some(Subtag::HeapBin | Subtag::RefcBin) => true,
        Some(Subtag::SubBin) => t.as_bits().is_some_and(|b| b.bit_len & 7 == 0),
        _ => false,
    };
    if is {
        go!(cx, pc.add(words(3)), e, hp, reds)
    }
    go!(cx, label(pc, u, 0), e, hp, reds)
});

macro_rules! immed_op {
    ($($name:ident |$t:ident, $w:ident| $cond:expr;)*) => {$(
        op!($name<A: Src>(cx, pc, e, hp, reds, u) {
            let $t = A::get(cx, e, u.add(2));
            let $w = q(u, 3);
            if $cond {
                go!(cx, pc.add(words(7)), e, hp, reds)
            }
            go!(cx, label(pc, u, 0), e, hp, reds)
        });
    )*};
}
immed_op! {
    op_is_eq_immed |t, w| t.raw() == w;
    op_is_ne_immed |t, w| t.raw() != w;
    op_is_tuple_of_arity |t, w| t.is_boxed() && (*t.ptr()).raw() == w;
    op_test_arity |t, w| (*t.ptr()).raw() == w;
}
op!(op_is_tagged_tuple<A: Src>(cx, pc, e, hp, reds, u) {
    let t = A::get(cx, e, u.add(2));
    if t.is_boxed() && (*t.ptr()).raw() == q(u, 3) && (*t.ptr().add(1)).raw() == q(u, 7) {
        go!(cx, pc.add(words(11)), e, hp, reds)
    }
    go!(cx, label(pc, u, 0), e, hp, reds)
});
op!(op_is_function2(cx, pc, e, hp, reds, u) {
    let f = source(cx, e, q(u, 2));
    let n = source(cx, e, q(u, 6));
    if f.is_fun() && n.is_small() && (*f.ptr().add(3)).raw() & 0xFF == n.small_value() as u64 {
        go!(cx, pc.add(words(10)), e, hp, reds)
    }
    go!(cx, label(pc, u, 0), e, hp, reds)
});

// Selection.

op!(op_select_val<A: Src>(cx, pc, e, hp, reds, u) {
    let t = A::get(cx, e, u).raw();
    let n = (u.add(3) as *const u32).read_unaligned() as usize;
    if n > 4 {
        return search::<A>(cx, pc, e, hp, reds);
    }
    let mut at = pc.add(words(5));
    let end = at.add(n);
    while at < end {
        if *at == t {
            go!(cx, pc.offset(*at.add(n) as isize), e, hp, reds)
        }
        at = at.add(1);
    }
    go!(cx, label(pc, u, 1), e, hp, reds)
});
/// `select_val` among many.
#[inline(never)]
unsafe fn search<A: Src>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let u = (pc as *const u16).add(1);
    let t = A::get(cx, e, u).raw();
    let n = (u.add(3) as *const u32).read_unaligned() as usize;
    let list = pc.add(words(5));
    let (mut lo, mut hi) = (0, n);
    while lo < hi {
        let mid = (lo + hi) / 2;
        let v = *list.add(mid);
        if v == t {
            go!(cx, pc.offset(*list.add(n + mid) as isize), e, hp, reds)
        }
        if v < t { lo = mid + 1 } else { hi = mid }
    }
    go!(cx, label(pc, u, 1), e, hp, reds)
}
op!(op_select_linear(cx, pc, e, hp, reds, u) {
    let t = source(cx, e, q(u, 0));
    let n = (u.add(6) as *const u32).read_unaligned() as usize;
    let list = pc.add(words(8));
    for i in (0..n).step_by(2) {
        if same(t, Term::from_raw(*list.add(i))) {
            go!(cx, pc.offset(*list.add(i + 1) as isize), e, hp, reds)
        }
    }
    go!(cx, label(pc, u, 4), e, hp, reds)
});
op!(op_jump_table<A: Src>(cx, pc, e, hp, reds, u) {
    let t = A::get(cx, e, u);
    let n = (u.add(7) as *const u32).read_unaligned() as u64;
    let i = (t.small_value() as u64).wrapping_sub(q(u, 3));
    if t.is_small() && i < n {
        let to = *pc.add(words(9)).add(i as usize) as isize;
        // The place of the label that is left is not computed from the value: the processor guesses it, and need not wait
        // for the value before it goes on.
        if to != 0 {
            go!(cx, pc.offset(to), e, hp, reds)
        }
    }
    go!(cx, label(pc, u, 1), e, hp, reds)
});
op!(op_type_switch<A: Src>(cx, pc, e, hp, reds, u) {
    let class = A::get(cx, e, u).type_class();
    let list = pc.add(words(3));
    go!(cx, pc.offset(*list.add(class) as isize), e, hp, reds)
});
op!(op_select_arity<A: Src>(cx, pc, e, hp, reds, u) {
    let t = A::get(cx, e, u);
    if t.is_boxed() {
        let w = (*t.ptr()).raw();
        let n = (u.add(3) as *const u32).read_unaligned() as usize;
        let list = pc.add(words(5));
        for i in (0..n).step_by(2) {
            if *list.add(i) == w {
                go!(cx, pc.offset(*list.add(i + 1) as isize), e, hp, reds)
            }
        }
    }
    go!(cx, label(pc, u, 1), e, hp, reds)
});

// Small arithmetic.

/// The general case of `+` and `-`; NON_VALUE where it fails.
#[inline(never)]
unsafe fn arith_slow(
    cx: *mut Cx,
    e: *mut Term,
    hp: *mut Term,
    a: Term,
    b: Term,
    sub: bool,
) -> Term {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    let r = if sub {
        arith::sub(&mut (*cx).heap, a, b)
    } else {
        arith::add(&mut (*cx).heap, a, b)
    };
    match r {
        Ok(t) => t,
        Err(err) => {
            (*cx).exc.class = crate::cx::Class::Error;
            (*cx).exc.value = match err {
                arith::ArithError::BadArith => am::BADARITH,
                arith::ArithError::SystemLimit => am::SYSTEM_LIMIT,
            };
            Term::NON_VALUE
        }
    }
}

macro_rules! add_op {
    ($($name:ident $general:ident $name_call:ident $general_call:ident $sub:literal |$a:ident, $b:ident| $fast:expr;)*) => {$(
        op!($name_call<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, u) {
            let $a = A::get(cx, e, u.add(2));
            let $b = B::get(cx, e, u.add(2 + A::U));
            if both_small($a, $b) {
                let (v, over) = $fast;
                if !over {
                    let u = u.add(2 + A::U + B::U);
                    D::set(cx, e, u, Term::from_raw(v as u64));
                    call_to!(cx, label(pc, u, 1), e, hp, reds, h(u, 3))
                }
            }
            return $general_call::<A, B, D>(cx, pc, e, hp, reds);
        });
        #[inline(never)]
        unsafe fn $general_call<A: Src, B: Src, D: Dst>(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit {
            let u = (pc as *const u16).add(1);
            let $a = A::get(cx, e, u.add(2));
            let $b = B::get(cx, e, u.add(2 + A::U));
            let t = arith_slow(cx, e, hp, $a, $b, $sub);
            if t == Term::NON_VALUE {
                return super::call::arith_failed(cx, pc, reds, $a, $b, $sub);
            }
            let u = u.add(2 + A::U + B::U);
            D::set(cx, e, u, t);
            let hp = (*cx).heap.htop;
            call_to!(cx, label(pc, u, 1), e, hp, reds, h(u, 3))
        }
        op!($name<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, u) {
            let $a = A::get(cx, e, u.add(2));
            let $b = B::get(cx, e, u.add(2 + A::U));
            if both_small($a, $b) {
                let (v, over) = $fast;
                if !over {
                    D::set(cx, e, u.add(2 + A::U + B::U), Term::from_raw(v as u64));
                    go!(cx, pc.add(words(4 + A::U + B::U)), e, hp, reds)
                }
            }
            return $general::<A, B, D>(cx, pc, e, hp, reds);
        });
        #[inline(never)]
        unsafe fn $general<A: Src, B: Src, D: Dst>(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit {
            let u = (pc as *const u16).add(1);
            let $a = A::get(cx, e, u.add(2));
            let $b = B::get(cx, e, u.add(2 + A::U));
            let t = arith_slow(cx, e, hp, $a, $b, $sub);
            if t == Term::NON_VALUE {
                let to = label(pc, u, 0);
                if to != pc {
                    go!(cx, to, e, hp, reds)
                }
                return super::call::arith_failed(cx, pc, reds, $a, $b, $sub);
            }
            D::set(cx, e, u.add(2 + A::U + B::U), t);
            go!(cx, pc.add(words(4 + A::U + B::U)), e, (*cx).heap.htop, reds)
        }
    )*};
}
add_op! {
    op_add add op_add_call_only add_call_only false |a, b| (a.raw() as i64).overflowing_add(b.raw() as i64 - TAG_SMALL as i64);
    op_sub sub op_sub_call_only sub_call_only true |a, b| (a.raw() as i64).overflowing_sub(b.raw() as i64 - TAG_SMALL as i64);
}

/// The general case of an operation on integers: leaves the result in the context. False where it fails.
#[inline(never)]
unsafe fn int_slow(cx: *mut Cx, e: *mut Term, hp: *mut Term, a: Term, b: Term, op: IntOp) -> Term {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    match op(&mut (*cx).heap, a, b) {
        Ok(t) => t,
        Err(err) => {
            (*cx).exc.class = crate::cx::Class::Error;
            (*cx).exc.value = match err {
                arith::ArithError::BadArith => am::BADARITH,
                arith::ArithError::SystemLimit => am::SYSTEM_LIMIT,
            };
            Term::NON_VALUE
        }
    }
}
type IntOp = fn(&mut purlin_term::heap::Heap, Term, Term) -> arith::Arith;

macro_rules! int_op {
    ($($name:ident $general:ident $n:literal $slow:path, |$a:ident, $b:ident| $fast:expr;)*) => {$(
        op!($name<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, u) {
            let $a = A::get(cx, e, u.add(2));
            let $b = B::get(cx, e, u.add(2 + A::U));
            if both_small($a, $b) {
                let v: Option<Term> = $fast;
                if let Some(v) = v {
                    D::set(cx, e, u.add(2 + A::U + B::U), v);
                    go!(cx, pc.add(words(4 + A::U + B::U)), e, hp, reds)
                }
            }
            return $general::<A, B, D>(cx, pc, e, hp, reds);
        });
        #[inline(never)]
        unsafe fn $general<A: Src, B: Src, D: Dst>(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit {
            let u = (pc as *const u16).add(1);
            let $a = A::get(cx, e, u.add(2));
            let $b = B::get(cx, e, u.add(2 + A::U));
            let t = int_slow(cx, e, hp, $a, $b, $slow);
            if t == Term::NON_VALUE {
                let to = label(pc, u, 0);
                if to != pc {
                    go!(cx, to, e, hp, reds)
                }
                return super::call::int_failed(cx, pc, reds, $a, $b, $n);
            }
            D::set(cx, e, u.add(2 + A::U + B::U), t);
            go!(cx, pc.add(words(4 + A::U + B::U)), e, (*cx).heap.htop, reds)
        }
    )*};
}
int_op! {
    op_mul mul 2 arith::mul, |a, b| {
        let (v, over) = (a.raw() as i64 >> 4).overflowing_mul(b.raw() as i64 & !15);
        (!over).then(|| Term::from_raw(v as u64 | TAG_SMALL))
    };
    op_int_div int_div 3 arith::int_div, |a, b| (b.small_value() != 0).then(|| a.small_value() / b.small_value()).and_then(Term::try_small);
    op_rem rem 4 arith::int_rem, |a, b| (b.small_value() != 0).then(|| Term::small(a.small_value() % b.small_value()));
    op_band band 5 arith::band, |a, b| Some(Term::from_raw(a.raw() & b.raw()));
    op_bor bor 6 arith::bor, |a, b| Some(Term::from_raw(a.raw() | b.raw()));
    op_bxor bxor 7 arith::bxor, |a, b| Some(Term::from_raw((a.raw() ^ b.raw()) | TAG_SMALL));
    op_bsl bsl 8 arith::bsl, |a, b| {
        let (v, n) = (a.small_value(), b.small_value());
        ((0..60).contains(&n) && (v << n) >> n == v).then(|| v << n).and_then(Term::try_small)
    };
    op_bsr bsr 9 arith::bsr, |a, b| {
        let n = b.small_value();
        (0..64).contains(&n).then(|| Term::small(a.small_value() >> n))
    };
}

// Floats. Results that are not finite raise badarith, in the slow op that follows them.

op!(op_fmove(cx, pc, e, hp, reds, u) {
    let f = &mut (*cx).fr;
    f[h(u, 1) / 8] = f[h(u, 0) / 8];
    go!(cx, pc.add(words(2)), e, hp, reds)
});
op!(op_fstore(cx, pc, e, hp, reds, u) {
    let v = (&(*cx).fr)[h(u, 0) / 8];
    (hp as *mut u64).write(header(Subtag::Float, 1));
    (hp.add(1) as *mut u64).write(v.to_bits());
    set_dst(cx, e, *u.add(1), Term::boxed_at(hp));
    go!(cx, pc.add(words(2)), e, hp.add(2), reds)
});
macro_rules! float_op {
    ($($name:ident $n:literal |$a:ident, $b:ident| $r:expr;)*) => {$(
        op!($name(cx, pc, e, hp, reds, u) {
            let f = &mut (*cx).fr;
            let $a = f[h(u, 0) / 8];
            #[allow(unused_variables)]
            let $b = f[h(u, $n - 2) / 8];
            let r: f64 = $r;
            if r.is_finite() {
                f[h(u, $n - 1) / 8] = r;
                go!(cx, pc.add(words($n)), e, hp, reds)
            }
            return super::call::badarith(cx, pc, e, hp, reds);
        });
    )*};
}
float_op! {
    op_fadd 3 |a, b| a + b;
    op_fsub 3 |a, b| a - b;
    op_fmul 3 |a, b| a * b;
    op_fdiv 3 |a, b| a / b;
    // As in stock, where -0.0 comes out of the native only.
    op_fnegate 2 |a, b| 0.0 - a;
}
