//! `catch` and `try`: the mark of a handler in a Y register, and what follows when an exception has
//! led to it. `exc` raises and throws.

use super::exc;
use super::handler::{go, op};
use super::operands::Dst;
use crate::cx::Cx;
use purlin_isa::ops::Op;
use purlin_term::{NIL, Term};

op! {
    caught => catch_value;
    op_badmatch => exc::badmatch;
    op_case_end => exc::case_end;
    op_try_case_end => exc::try_case_end;
    op_if_end => exc::if_end;
    op_badrecord => exc::badrecord;
    op_raise => exc::raise_again;
    op_raw_raise => exc::raw_raise;
    op_build_stacktrace => exc::build_stacktrace;
}

op!(op_catch = Catch<D: Dst>(cx, pc, e, hp, reds, op) {
    // Stores a mark with the address of the handler in a Y register. `exc::throw` finds it when it
    // walks the stack.
    op.dst().set(cx, e, Term::catch(op.to().to() as u64));
    go!(cx, op.next(), e, hp, reds)
});

op!(op_try_end = TryEnd<D: Dst>(cx, pc, e, hp, reds, op) {
    op.dst().set(cx, e, NIL);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_try_case = TryCase<D: Dst>(cx, pc, e, hp, reds, op) {
    // x0 is a mark by which `catch_end` knows that an exception led here; class, reason and trace
    // move down by one.
    op.dst().set(cx, e, NIL);
    let x = (*cx).x.as_mut_ptr();
    x.write(*x.add(1));
    x.add(1).write(*x.add(2));
    x.add(2).write(*x.add(3));
    go!(cx, op.next(), e, hp, reds)
});

op!(op_catch_end = CatchEnd<D: Dst>(cx, pc, e, hp, reds, op) {
    op.dst().set(cx, e, NIL);
    // `exc::throw` has left that in x0. Without an exception x0 is the value, and the op does
    // nothing more.
    if (&(*cx).x)[0] == Term::NON_VALUE {
        return caught::<F>(cx, pc, e, hp, reds);
    }
    go!(cx, op.next(), e, hp, reds)
});

/// Makes terms, then may collect with x0 live.
unsafe fn catch_value(cx: &mut Cx, pc: *const u64) -> *const u64 {
    exc::catch_value(cx);
    pc.add(Op::CatchEnd.row().words())
}
