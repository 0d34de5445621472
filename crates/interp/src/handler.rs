//! Handlers: their two flavours, and the one macro that makes handlers of either.
//!
//! A handler's body is written once. [`go!`] ends it, and what that means is the flavour's: [`Tail`](crate::dispatch) calls the
//! next handler in tail position, [`Steps`](crate::dispatch) stores the registers and gives the address of the next instruction.
//! The contract that all of them keep is in the head of the crate.

use crate::code;
use crate::cx::{Cx, Exit};
use purlin_term::Term;

/// One instruction, run by itself. Stack, heap top and reductions are those of the context, before and after; the result is where
/// to go on, or null: the process leaves with `interp.exit`.
pub type Step = unsafe extern "C" fn(cx: *mut Cx, pc: *const u64) -> *const u64;

/// How a handler goes on.
pub(crate) trait Flavour {
    /// The result of a handler.
    type Out;
    /// Goes on with the instruction at `pc`.
    unsafe fn go(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Self::Out;
    /// Runs the handler of variant `number` on the operands at `pc`, whatever number stands there.
    ///
    /// # Safety
    /// As for the handler of that variant.
    unsafe fn run(
        number: u16,
        cx: *mut Cx,
        pc: *const u64,
        e: *mut Term,
        hp: *mut Term,
        reds: i64,
    ) -> Self::Out;
    /// The process leaves. Stack, heap top and reductions stand in the context.
    ///
    /// # Safety
    /// `cx` is the context that runs.
    unsafe fn leave(cx: *mut Cx, exit: Exit) -> Self::Out;
}

/// Goes on with the instruction at `$pc`: the last thing a handler does.
macro_rules! go {
    ($cx:expr, $pc:expr, $e:expr, $hp:expr, $reds:expr) => {
        return F::go($cx, $pc, $e, $hp, $reds)
    };
}
pub(crate) use go;

/// Makes handlers. All get the flavour `F` as their first type parameter.
/// * `op_x = X<A: Src>(cx, pc, e, hp, reds, op) { .. }` is the handler of instruction `X`, or a general case that such a handler
///   leaves to it; `op` is the instruction.
/// * `fn x(cx, pc, e, hp, reds) { .. }` has no instruction in hand, and may take more arguments.
/// * `op_x => f;` stores the registers, runs `f(&mut Cx, pc) -> next pc` (null: leave with `interp.exit`), and goes on.
macro_rules! op {
    ($($(#[$a:meta])* fn $name:ident $(<$($g:ident: $b:path),*>)? ($cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident $(, $more:ident: $t:ty)*) $body:block)+) => {$(
        $(#[$a])*
        pub(crate) unsafe fn $name<F: $crate::handler::Flavour $($(, $g: $b)*)?>(
            $cx: *mut $crate::cx::Cx, $pc: *const u64, $e: *mut purlin_term::Term, $hp: *mut purlin_term::Term, $reds: i64 $(, $more: $t)*
        ) -> F::Out $body
    )+};
    ($($(#[$a:meta])* $name:ident => $f:path;)+) => {$(
        $(#[$a])*
        // Not within a quick op that leaves the general case to it: see `fast`.
        #[inline(never)]
        pub(crate) unsafe fn $name<F: $crate::handler::Flavour>(
            cx: *mut $crate::cx::Cx, pc: *const u64, e: *mut purlin_term::Term, hp: *mut purlin_term::Term, reds: i64,
        ) -> F::Out {
            (*cx).heap.htop = hp;
            (*cx).heap.stop = e;
            (*cx).reds = reds;
            // For the accounts, if it collects.
            (*cx).bif_pc = pc;
            let pc = $crate::handler::outlined(&mut *cx, pc, |cx, pc| $f(cx, pc));
            $crate::handler::go_on::<F>(cx, pc)
        }
    )+};
    ($($(#[$a:meta])* $name:ident = $op:ident $(<$($g:ident: $b:ident),*>)? ($cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident, $i:ident) $body:block)+) => {$(
        $(#[$a])*
        #[allow(unused_mut, unused_variables)]
        pub(crate) unsafe fn $name<F: $crate::handler::Flavour $($(, $g: $b)*)?>(
            $cx: *mut $crate::cx::Cx, $pc: *const u64, mut $e: *mut purlin_term::Term, mut $hp: *mut purlin_term::Term, mut $reds: i64,
        ) -> F::Out {
            let $i = $crate::instr::$op $(::<$($g),*>)? ::at($pc);
            $body
        }
    )+};
}
pub(crate) use op;

/// Calls `f`, never within the frame of the caller: a handler whose frame holds locals that somebody has the address of
/// could not end in a jump to the next handler, and each instruction would take native stack.
#[inline(never)]
pub(crate) fn outlined(
    cx: &mut Cx,
    pc: *const u64,
    f: impl FnOnce(&mut Cx, *const u64) -> *const u64,
) -> *const u64 {
    f(cx, pc)
}

/// Goes on at `next`, or leaves with what the context says if that is null. Stack, heap and reductions are taken from the context,
/// where whoever chose `next` has left them.
///
/// # Safety
/// As for the handler of the instruction at `next`.
#[inline(always)]
pub(crate) unsafe fn go_on<F: Flavour>(cx: *mut Cx, next: *const u64) -> F::Out {
    if next.is_null() {
        return F::leave(cx, (*cx).interp.exit);
    }
    go!(cx, next, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
}

/// Runs the code's own instruction at `pc`: once more, after it was made possible, or in the place of a breakpoint or of machine
/// code, of which nothing is told or entered then.
///
/// # Safety
/// As for the handler of the instruction of the code at `pc`.
#[inline(always)]
pub(crate) unsafe fn again<F: Flavour>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> F::Out {
    F::run(code::opcode_at(pc), cx, pc, e, hp, reds)
}
