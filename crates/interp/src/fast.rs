//! Handlers of frequent and simple ops: registers, frames, tests, lists, tuples, jumps.
//!
//! The row of each op lists its operands and effects (`purlin_isa::ops`). The code here relies on
//! these rules:
//! - An op that may need a collection makes room first (`room!`), and writes nothing before: after
//!   the collection it runs again.
//! - An op without `room!` that makes a term uses words which an `allocate_heap` or `test_heap`
//!   before it has reserved.
//! - `e` points at the slot of the return address; Y register n is n + 1 words above it. `hp` is
//!   the next free word.
//! - Sources are read before destinations are written, since they may be the same register.

use super::call::{call_to, used_up};
use super::handler::{again, go, op};
use super::operands::{Dst, Src, set_source, source};
use super::room::collect;
use purlin_isa::helpers::Room;
use purlin_term::layout::{CONS_TAIL, TUPLE_FIRST};
use purlin_term::prefetch::prefetch;
use purlin_term::region;
use purlin_term::word::{Subtag, TAG_LIST, TAG_SMALL, TAG4_MASK, header};
use purlin_term::{NIL, Term, am, compare};
use std::cmp::Ordering;

/// Returns the address `n` bytes after `p`. Offsets of elements are in bytes and include the
/// header, so nothing has to be computed.
///
/// # Safety
/// It must be within the object at `p`, or directly after it.
#[inline(always)]
unsafe fn bytes(p: *mut Term, n: usize) -> *mut Term {
    (p as *mut u8).add(n) as *mut Term
}

op!(op_move = Move<S: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    op.dst().set(cx, e, op.src().get(cx, e));
    go!(cx, op.next(), e, hp, reds)
});

op!(op_swap = Swap<A: Dst, B: Dst>(cx, pc, e, hp, reds, op) {
    // Both are read before either is written.
    let a = op.a().get(cx, e);
    let b = op.b().get(cx, e);
    op.a().set(cx, e, b);
    op.b().set(cx, e, a);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_init_y = InitY<D: Dst>(cx, pc, e, hp, reds, op) {
    op.dst().set(cx, e, NIL);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_init_ys = InitYs(cx, pc, e, hp, reds, op) {
    // The list follows the instruction, and the next instruction follows the list.
    let n = op.count();
    let list = op.ys();
    for i in 0..n {
        set_source(cx, e, *list.add(i), NIL);
    }
    go!(cx, list.add(n), e, hp, reds)
});

/// Prefetches the next object while a list of objects is traversed.
///
/// # Safety
/// `hd` and `tl` must be the head and tail of a cons cell.
#[inline(always)]
unsafe fn fetch_next(hd: Term, tl: Term) {
    // This reads the next cons cell, as the program will do in any case.
    if hd.is_boxed() && tl.is_list_ptr() {
        prefetch((*tl.ptr()).ptr());
    }
}

op!(
/// Makes room by a collection, and runs the instruction again. `what` is a packed [`Room`].
#[cold]
#[inline(never)]
fn make_room(cx, pc, e, hp, reds, what: u64) {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    (*cx).bif_pc = pc;
    let Room { words, live } = Room::unpack(what);
    collect(cx, words as usize, live as usize);
    again::<F>(cx, pc, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
});

/// Makes room for `$need` words, or collects with the first `$live` X registers as roots, after
/// which the op runs again. Need and registers share one word: a seventh argument would be in
/// memory, and the handler would need a frame.
macro_rules! room {
    ($cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident, $need:expr, $live:expr) => {
        let need: usize = $need;
        if ($e as usize - $hp as usize) < need * 8 || (*$cx).heap.gc_wanted {
            let what = Room {
                words: need as u32,
                live: $live as u32,
            }
            .pack();
            return make_room::<F>($cx, $pc, $e, $hp, $reds, what);
        }
    };
}

op!(op_allocate = Allocate(cx, pc, e, hp, reds, op) {
    let n = op.frame() + 1;
    room!(cx, pc, e, hp, reds, n, op.live());
    e = e.sub(n);
    // This frame has no active call: an address here would be taken for a return address.
    (e as *mut u64).write(0);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_allocate_zero = AllocateZero(cx, pc, e, hp, reds, op) {
    let n = op.frame() + 1;
    room!(cx, pc, e, hp, reds, n, op.live());
    e = e.sub(n);
    (e as *mut u64).write(0);
    // The collector reads every slot of a frame, so each must hold a term.
    for i in 1..n {
        e.add(i).write(NIL);
    }
    go!(cx, op.next(), e, hp, reds)
});

op!(op_allocate_heap = AllocateHeap(cx, pc, e, hp, reds, op) {
    let n = op.frame() + 1;
    room!(cx, pc, e, hp, reds, n + op.heap(), op.live());
    e = e.sub(n);
    (e as *mut u64).write(0);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_allocate_heap_zero = AllocateHeapZero(cx, pc, e, hp, reds, op) {
    let n = op.frame() + 1;
    room!(cx, pc, e, hp, reds, n + op.heap(), op.live());
    e = e.sub(n);
    (e as *mut u64).write(0);
    for i in 1..n {
        e.add(i).write(NIL);
    }
    go!(cx, op.next(), e, hp, reds)
});

op!(op_test_heap = TestHeap(cx, pc, e, hp, reds, op) {
    room!(cx, pc, e, hp, reds, op.heap(), op.live());
    go!(cx, op.next(), e, hp, reds)
});

op!(op_deallocate = Deallocate(cx, pc, e, hp, reds, op) {
    go!(cx, op.next(), e.add(op.frame() + 1), hp, reds)
});

op!(op_trim = Trim(cx, pc, e, hp, reds, op) {
    // Drops the first Y registers; the last of them becomes the slot of the return address.
    e = e.add(op.n());
    (e as *mut u64).write(0);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_return = Return(cx, pc, e, hp, reds, op) {
    // The call that led here has written it. The frame was dropped, so `e` is the caller's slot.
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, hp, reds)
});

op!(op_deallocate_return = DeallocateReturn(cx, pc, e, hp, reds, op) {
    e = e.add(op.frame() + 1);
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, hp, reds)
});

op!(op_move_return = MoveReturn<S: Src>(cx, pc, e, hp, reds, op) {
    (*cx).x[0] = op.src().get(cx, e);
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, hp, reds)
});

op!(op_move_deallocate = MoveDeallocate<S: Src>(cx, pc, e, hp, reds, op) {
    (*cx).x[0] = op.src().get(cx, e);
    go!(cx, op.next(), e.add(op.frame() + 1), hp, reds)
});

op!(op_move_deallocate_return = MoveDeallocateReturn<S: Src>(cx, pc, e, hp, reds, op) {
    (*cx).x[0] = op.src().get(cx, e);
    e = e.add(op.frame() + 1);
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, hp, reds)
});

op!(op_move_jump = MoveJump<S: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    op.dst().set(cx, e, op.src().get(cx, e));
    go!(cx, op.to().to(), e, hp, reds)
});

op!(op_allocate_move = AllocateMove<S: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    let n = op.frame() + 1;
    room!(cx, pc, e, hp, reds, n, op.live());
    // The source is read before the frame is made: a Y register belongs to the old frame.
    let t = op.src().get(cx, e);
    e = e.sub(n);
    (e as *mut u64).write(0);
    op.dst().set(cx, e, t);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_allocate_init_y = AllocateInitY<D: Dst>(cx, pc, e, hp, reds, op) {
    let n = op.frame() + 1;
    room!(cx, pc, e, hp, reds, n, op.live());
    e = e.sub(n);
    (e as *mut u64).write(0);
    op.dst().set(cx, e, NIL);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_allocate_get_list = AllocateGetList<S: Src, H: Dst, T: Dst>(cx, pc, e, hp, reds, op) {
    let n = op.frame() + 1;
    room!(cx, pc, e, hp, reds, n, op.live());
    // As in `allocate_move`: read before `e` changes.
    let p = op.src().get(cx, e).ptr();
    e = e.sub(n);
    (e as *mut u64).write(0);
    let (hd, tl) = (*p, *p.add(1));
    fetch_next(hd, tl);
    op.hd().set(cx, e, hd);
    op.tl().set(cx, e, tl);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_move2 = Move2<A: Src, B: Dst, C2: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    op.dst().set(cx, e, op.src().get(cx, e));
    op.dst2().set(cx, e, op.src2().get(cx, e));
    go!(cx, op.next(), e, hp, reds)
});

op!(op_move3 = Move3<A: Src, B: Dst, C2: Src, D: Dst, E2: Src, F2: Dst>(cx, pc, e, hp, reds, op) {
    op.dst().set(cx, e, op.src().get(cx, e));
    op.dst2().set(cx, e, op.src2().get(cx, e));
    op.dst3().set(cx, e, op.src3().get(cx, e));
    go!(cx, op.next(), e, hp, reds)
});

/// Several moves in order: a later one may read what an earlier one has written.
macro_rules! moves {
    ($cx:ident, $e:ident, $op:ident, $($src:ident $dst:ident),*) => {
        $($op.$dst().set($cx, $e, $op.$src().get($cx, $e));)*
    };
}

op!(op_move2_call = Move2Call<A: Src, B: Dst, C2: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    moves!(cx, e, op, src dst, src2 dst2);
    (e as *mut u64).write(op.next() as u64);
    call_to!(cx, op.to().to(), e, hp, reds, op.arity())
});

op!(op_move2_call_last = Move2CallLast<A: Src, B: Dst, C2: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    moves!(cx, e, op, src dst, src2 dst2);
    call_to!(cx, op.to().to(), e.add(op.frame() + 1), hp, reds, op.arity())
});

op!(op_move2_call_only = Move2CallOnly<A: Src, B: Dst, C2: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    moves!(cx, e, op, src dst, src2 dst2);
    call_to!(cx, op.to().to(), e, hp, reds, op.arity())
});

op!(op_move3_call = Move3Call<A: Src, B: Dst, C2: Src, D: Dst, E2: Src, F2: Dst>(cx, pc, e, hp, reds, op) {
    moves!(cx, e, op, src dst, src2 dst2, src3 dst3);
    (e as *mut u64).write(op.next() as u64);
    call_to!(cx, op.to().to(), e, hp, reds, op.arity())
});

op!(op_trim_call = TrimCall(cx, pc, e, hp, reds, op) {
    e = e.add(op.n());
    (e as *mut u64).write(op.next() as u64);
    call_to!(cx, op.to().to(), e, hp, reds, op.arity())
});

op!(op_jump = Jump(cx, pc, e, hp, reds, op) {
    go!(cx, op.to().to(), e, hp, reds)
});

// Lists and tuples.

op!(op_get_list = GetList<S: Src, H: Dst, T: Dst>(cx, pc, e, hp, reds, op) {
    let p = op.src().get(cx, e).ptr();
    let (hd, tl) = (*p, *p.add(1));
    fetch_next(hd, tl);
    op.hd().set(cx, e, hd);
    op.tl().set(cx, e, tl);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_is_nonempty_get_list = IsNonemptyGetList<S: Src, H: Dst, T: Dst>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e);
    if t.is_list_ptr() {
        let p = t.ptr();
        let (hd, tl) = (*p, *p.add(1));
    fetch_next(hd, tl);
        op.hd().set(cx, e, hd);
        op.tl().set(cx, e, tl);
        go!(cx, op.next(), e, hp, reds)
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

op!(op_test_heap_put_list = TestHeapPutList<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    room!(cx, pc, e, hp, reds, 2, op.live());
    hp.write(op.hd().get(cx, e));
    hp.add(1).write(op.tl().get(cx, e));
    op.dst().set(cx, e, Term::from_raw(hp as u64 | TAG_LIST));
    go!(cx, op.next(), e, hp.add(2), reds)
});

op!(op_test_heap_put_list_return = TestHeapPutListReturn<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    room!(cx, pc, e, hp, reds, 2, op.live());
    hp.write(op.hd().get(cx, e));
    hp.add(1).write(op.tl().get(cx, e));
    op.dst().set(cx, e, Term::from_raw(hp as u64 | TAG_LIST));
    e = e.add(op.frame() + 1);
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, hp.add(2), reds)
});

op!(op_get_hd = GetHd<S: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    op.dst().set(cx, e, *op.src().get(cx, e).ptr());
    go!(cx, op.next(), e, hp, reds)
});

op!(op_get_tl = GetTl<S: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    op.dst().set(cx, e, *op.src().get(cx, e).ptr().add(CONS_TAIL));
    go!(cx, op.next(), e, hp, reds)
});

op!(op_put_list = PutList<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    hp.write(op.hd().get(cx, e));
    hp.add(1).write(op.tl().get(cx, e));
    op.dst().set(cx, e, Term::from_raw(hp as u64 | TAG_LIST));
    go!(cx, op.next(), e, hp.add(2), reds)
});

op!(op_get_tuple_element = GetTupleElement<S: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e).ptr();
    op.dst().set(cx, e, *bytes(t, op.offset()));
    go!(cx, op.next(), e, hp, reds)
});

op!(op_get_tuple_elements_2 = GetTupleElements2<S: Src, D: Dst, E2: Dst>(cx, pc, e, hp, reds, op) {
    let t = bytes(op.src().get(cx, e).ptr(), op.offset());
    // Both are read before `dst` is written, which may be the tuple's own register.
    let (a, b) = (*t, *t.add(1));
    op.dst().set(cx, e, a);
    op.dst2().set(cx, e, b);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_get_tuple_element_far = GetTupleElementFar<S: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e).ptr();
    op.dst().set(cx, e, *bytes(t, op.offset()));
    go!(cx, op.next(), e, hp, reds)
});

op!(op_set_tuple_element = SetTupleElement(cx, pc, e, hp, reds, op) {
    let v = op.src().get(cx, e);
    // The compiler does this only to a tuple that `setelement/3` has just made and nothing else
    // refers to, so no old object comes to point to a younger one. But a collection may have made
    // the tuple old, like everything else, and the term may be a literal that the heap does not
    // hold yet.
    if region::needs_holder(v) {
        return set_tuple_element_held::<F>(cx, pc, e, hp, reds);
    }
    *bytes(op.tuple().get(cx, e).ptr(), op.offset()) = v;
    go!(cx, op.next(), e, hp, reds)
});
op!(
#[inline(never)]
set_tuple_element_held = SetTupleElement(cx, pc, e, hp, reds, op) {
    let at = bytes(op.tuple().get(cx, e).ptr(), op.offset());
    (*cx).heap.write_to(at, op.src().get(cx, e));
    go!(cx, op.next(), e, hp, reds)
});

op!(op_put_tuple = PutTuple<D: Dst>(cx, pc, e, hp, reds, op) {
    let n = op.count();
    let list = op.elements();
    // Room for header and elements was reserved before.
    (hp as *mut u64).write(header(Subtag::Tuple, n));
    for i in 0..n {
        hp.add(1 + i).write(source(cx, e, *list.add(i)));
    }
    op.dst().set(cx, e, Term::boxed_at(hp));
    go!(cx, list.add(n), e, hp.add(n + 1), reds)
});

op!(op_put_tuple_2 = PutTuple2<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    (hp as *mut u64).write(header(Subtag::Tuple, 2));
    hp.add(1).write(op.a().get(cx, e));
    hp.add(2).write(op.b().get(cx, e));
    op.dst().set(cx, e, Term::boxed_at(hp));
    go!(cx, op.next(), e, hp.add(3), reds)
});

op!(op_put_tuple_3 = PutTuple3<A: Src, B: Src, C2: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    (hp as *mut u64).write(header(Subtag::Tuple, 3));
    hp.add(1).write(op.a().get(cx, e));
    hp.add(2).write(op.b().get(cx, e));
    hp.add(3).write(op.c().get(cx, e));
    op.dst().set(cx, e, Term::boxed_at(hp));
    go!(cx, op.next(), e, hp.add(4), reds)
});

op!(op_update_record = UpdateRecord(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e).ptr();
    let (size, n) = (op.size(), op.count());
    let list = op.updates();
    // The header is copied too.
    std::ptr::copy_nonoverlapping(t, hp, size + 1);
    for i in 0..n {
        *hp.add(*list.add(2 * i) as usize) = source(cx, e, *list.add(2 * i + 1));
    }
    op.dst().set(cx, e, Term::boxed_at(hp));
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

/// Both have all four bits of the tag, and no other: bits that either lacks are missing in the
/// conjunction.
#[inline(always)]
pub(super) fn both_small(a: Term, b: Term) -> bool {
    a.raw() & b.raw() & TAG4_MASK == TAG_SMALL
}

/// Whether `a =:= b`. An immediate only equals itself.
#[inline(always)]
fn same(a: Term, b: Term) -> bool {
    a == b || (!(a.is_immed() || b.is_immed()) && eq_exact_slow(a, b))
}

// An op that contains a call of a function saves machine registers, whether it comes to the call or
// not. So frequent ops decide the simple cases themselves, and leave the others to a handler with
// the same operands.

macro_rules! compare_op {
    ($($name:ident = $op:ident $general:ident |$a:ident, $b:ident| $decided:expr => $holds:expr, $slow:expr;)*) => {$(
        op!($name = $op<A: Src, B: Src>(cx, pc, e, hp, reds, op) {
            let $a = op.a().get(cx, e);
            let $b = op.b().get(cx, e);
            if $decided {
                if $holds {
                    go!(cx, op.next(), e, hp, reds)
                }
                go!(cx, op.fail().to(), e, hp, reds)
            }
            return $general::<F, A, B>(cx, pc, e, hp, reds);
        });
        op!(
        #[inline(never)]
        $general = $op<A: Src, B: Src>(cx, pc, e, hp, reds, op) {
            let $a = op.a().get(cx, e);
            let $b = op.b().get(cx, e);
            if $slow {
                go!(cx, op.next(), e, hp, reds)
            }
            go!(cx, op.fail().to(), e, hp, reds)
        });
    )*};
}

/// Whether `a < b`, for small integers.
#[inline(always)]
// Both have the same tag in their low bits, so the words compare as their values do.
fn small_lt(a: Term, b: Term) -> bool {
    (a.raw() as i64) < b.raw() as i64
}

/// Whether the words alone decide `a == b`.
#[inline(always)]
fn words_tell_eq(a: Term, b: Term) -> bool {
    a == b || (a.is_immed() && b.is_immed())
}

/// Whether the words alone decide `a =:= b`.
#[inline(always)]
fn words_tell_same(a: Term, b: Term) -> bool {
    a == b || a.is_immed() || b.is_immed()
}

compare_op! {
    op_is_lt = IsLt is_lt |a, b| both_small(a, b) => small_lt(a, b), cmp_slow(a, b) == Ordering::Less;
    op_is_ge = IsGe is_ge |a, b| both_small(a, b) => !small_lt(a, b), cmp_slow(a, b) != Ordering::Less;
    op_is_eq = IsEq is_eq |a, b| words_tell_eq(a, b) => a == b, eq_slow(a, b);
    op_is_ne = IsNe is_ne |a, b| words_tell_eq(a, b) => a != b, !eq_slow(a, b);
    op_is_eq_exact = IsEqExact is_eq_exact |a, b| words_tell_same(a, b) => a == b, eq_exact_slow(a, b);
    op_is_ne_exact = IsNeExact is_ne_exact |a, b| words_tell_same(a, b) => a != b, !eq_exact_slow(a, b);
}

/// The end of a clause that consists of a test and a value.
macro_rules! compare_return_op {
    ($($name:ident = $op:ident $general:ident |$a:ident, $b:ident| $holds:expr, $slow:expr;)*) => {$(
        op!($name = $op<A: Src, B: Src, S: Src>(cx, pc, e, hp, reds, op) {
            let $a = op.a().get(cx, e);
            let $b = op.b().get(cx, e);
            if both_small($a, $b) {
                if $holds {
                    (*cx).x[0] = op.src().get(cx, e);
                    let to = (e as *const u64).read();
                    (e as *mut u64).write(0);
                    go!(cx, to as *const u64, e, hp, reds)
                }
                go!(cx, op.fail().to(), e, hp, reds)
            }
            return $general::<F, A, B, S>(cx, pc, e, hp, reds);
        });
        op!(
        #[inline(never)]
        $general = $op<A: Src, B: Src, S: Src>(cx, pc, e, hp, reds, op) {
            let $a = op.a().get(cx, e);
            let $b = op.b().get(cx, e);
            if $slow {
                (*cx).x[0] = op.src().get(cx, e);
                let to = (e as *const u64).read();
                (e as *mut u64).write(0);
                go!(cx, to as *const u64, e, hp, reds)
            }
            go!(cx, op.fail().to(), e, hp, reds)
        });
    )*};
}

compare_return_op! {
    op_is_lt_return = IsLtReturn is_lt_return |a, b| small_lt(a, b), cmp_slow(a, b) == Ordering::Less;
    op_is_ge_return = IsGeReturn is_ge_return |a, b| !small_lt(a, b), cmp_slow(a, b) != Ordering::Less;
}

op!(op_is_nil_return = IsNilReturn<A: Src, S: Src>(cx, pc, e, hp, reds, op) {
    if op.src().get(cx, e).is_nil() {
        (*cx).x[0] = op.value().get(cx, e);
        let to = (e as *const u64).read();
        (e as *mut u64).write(0);
        go!(cx, to as *const u64, e, hp, reds)
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

op!(op_is_eq_immed_return = IsEqImmedReturn<A: Src, S: Src>(cx, pc, e, hp, reds, op) {
    if op.src().get(cx, e) == op.immed() {
        (*cx).x[0] = op.value().get(cx, e);
        let to = (e as *const u64).read();
        (e as *mut u64).write(0);
        go!(cx, to as *const u64, e, hp, reds)
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

op!(op_is_in_range = IsInRange<A: Src>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e);
    if !t.is_small() {
        return is_in_range::<F, A>(cx, pc, e, hp, reds);
    }
    let v = t.raw() as i64;
    if v >= op.least().raw() as i64 && v <= op.most().raw() as i64 {
        go!(cx, op.next(), e, hp, reds)
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

op!(
#[cold]
#[inline(never)]
is_in_range = IsInRange<A: Src>(cx, pc, e, hp, reds, op) {
    if in_range_slow(op.src().get(cx, e), op.least(), op.most()) {
        go!(cx, op.next(), e, hp, reds)
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

#[cold]
#[inline(never)]
fn in_range_slow(t: Term, lo: Term, hi: Term) -> bool {
    compare::cmp(t, lo) != Ordering::Less && compare::cmp(hi, t) != Ordering::Less
}

// Type tests.

/// Type tests that only need the word and the header.
macro_rules! test_op {
    ($($name:ident = $op:ident |$t:ident| $cond:expr;)*) => {$(
        op!($name = $op<A: Src>(cx, pc, e, hp, reds, op) {
            let $t = op.src().get(cx, e);
            if $cond {
                go!(cx, op.next(), e, hp, reds)
            }
            go!(cx, op.fail().to(), e, hp, reds)
        });
    )*};
}

test_op! {
    op_is_integer = IsInteger |t| t.is_integer();
    op_is_float = IsFloat |t| t.is_float();
    op_is_number = IsNumber |t| t.is_number();
    op_is_atom = IsAtom |t| t.is_atom();
    op_is_pid = IsPid |t| t.is_pid();
    op_is_reference = IsReference |t| t.is_ref();
    op_is_port = IsPort |t| t.is_port();
    op_is_nil = IsNil |t| t.is_nil();
    // Since OTP 27 the compiler uses this test instead of the start of a match that cannot succeed.
    op_is_bitstr = IsBitstr |t| t.is_bitstring() || t.is_match_context();
    op_is_list = IsList |t| t.is_list();
    op_is_nonempty_list = IsNonemptyList |t| t.is_list_ptr();
    op_is_tuple = IsTuple |t| t.is_tuple();
    op_is_function = IsFunction |t| t.is_fun();
    op_is_boolean = IsBoolean |t| t == am::TRUE || t == am::FALSE;
    op_is_map = IsMap |t| t.is_map();
}

op!(op_is_binary = IsBinary<A: Src>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e);
    // Only sub-binaries may end within a byte.
    let is = match t.subtag() {
        Some(Subtag::HeapBin | Subtag::RefcBin) => true,
        Some(Subtag::SubBin) => t.as_bits().is_some_and(|b| b.bit_len & 7 == 0),
        _ => false,
    };
    if is {
        go!(cx, op.next(), e, hp, reds)
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

/// Comparisons with a word of the instruction: an immediate, or the header of a tuple, which holds
/// its arity.
macro_rules! immed_op {
    ($($name:ident = $op:ident . $word:ident |$t:ident, $w:ident| $cond:expr;)*) => {$(
        op!($name = $op<A: Src>(cx, pc, e, hp, reds, op) {
            let $t = op.src().get(cx, e);
            let $w = op.$word();
            if $cond {
                go!(cx, op.next(), e, hp, reds)
            }
            go!(cx, op.fail().to(), e, hp, reds)
        });
    )*};
}

immed_op! {
    op_is_eq_immed = IsEqImmed.immed |t, w| t == w;
    op_is_ne_immed = IsNeImmed.immed |t, w| t != w;
    op_is_tuple_of_arity = IsTupleOfArity.header |t, w| t.is_boxed() && (*t.ptr()).raw() == w;
    // The term is known to be a tuple: the loader puts this after a type test.
    op_test_arity = TestArity.header |t, w| (*t.ptr()).raw() == w;
}

op!(op_is_tagged_tuple = IsTaggedTuple<A: Src>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e);
    if t.is_boxed() && (*t.ptr()).raw() == op.header() && *t.ptr().add(TUPLE_FIRST) == op.tag() {
        go!(cx, op.next(), e, hp, reds)
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

op!(op_is_function2 = IsFunction2(cx, pc, e, hp, reds, op) {
    let f = op.fun().get(cx, e);
    let n = op.arity().get(cx, e);
    // A negative arity is a large number here, and is no arity.
    if f.fun_words().is_some_and(|f| n.is_small() && f.arity() as u64 == n.small_value() as u64) {
        go!(cx, op.next(), e, hp, reds)
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

// Selection.

op!(op_select_val = SelectVal<A: Src>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e).raw();
    let n = op.count();
    // A few are compared one after the other, which the processor predicts well.
    if n > 4 {
        return search::<F, A>(cx, pc, e, hp, reds);
    }
    let mut at = op.arms();
    let end = at.add(n);
    while at < end {
        if *at == t {
            go!(cx, pc.offset(*at.add(n) as isize), e, hp, reds)
        }
        at = at.add(1);
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

op!(
/// `select_val` with many values.
#[inline(never)]
search = SelectVal<A: Src>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e).raw();
    let n = op.count();
    let list = op.arms();
    // The loader has sorted the words as unsigned numbers.
    let (mut lo, mut hi) = (0, n);
    while lo < hi {
        let mid = (lo + hi) / 2;
        let v = *list.add(mid);
        if v == t {
            go!(cx, pc.offset(*list.add(n + mid) as isize), e, hp, reds)
        }
        if v < t { lo = mid + 1 } else { hi = mid }
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

op!(op_select_linear = SelectLinear(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e);
    let n = op.count();
    let list = op.arms();
    // The values need not be immediates: each needs a comparison.
    for i in (0..n).step_by(2) {
        if same(t, Term::from_raw(*list.add(i))) {
            go!(cx, pc.offset(*list.add(i + 1) as isize), e, hp, reds)
        }
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

op!(op_jump_table = JumpTable<A: Src>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e);
    let n = op.count();
    // A number below the first wraps round to a large one. For a term that is no small integer the
    // number is meaningless, and isn't used.
    let i = (t.small_value() as u64).wrapping_sub(op.first() as u64);
    if t.is_small() && i < n as u64 {
        let to = *op.table().add(i as usize) as isize;
        // The chosen label is a branch condition and not an offset to compute with: the processor
        // predicts it, and need not wait for the value.
        if to != 0 {
            go!(cx, pc.offset(to), e, hp, reds)
        }
    }
    go!(cx, op.fail().to(), e, hp, reds)
});

op!(op_type_switch = TypeSwitch<A: Src>(cx, pc, e, hp, reds, op) {
    // Every class of terms has a label, so there is no bound to check.
    let class = op.src().get(cx, e).type_class();
    let list = op.classes();
    go!(cx, pc.offset(*list.add(class) as isize), e, hp, reds)
});

op!(op_select_arity = SelectArity<A: Src>(cx, pc, e, hp, reds, op) {
    let t = op.src().get(cx, e);
    if t.is_boxed() {
        let w = (*t.ptr()).raw();
        let n = op.count();
        let list = op.arms();
        for i in (0..n).step_by(2) {
            if *list.add(i) == w {
                go!(cx, pc.offset(*list.add(i + 1) as isize), e, hp, reds)
            }
        }
    }
    go!(cx, op.fail().to(), e, hp, reds)
});
