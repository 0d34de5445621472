//! Handlers: their two flavours, and the macro that makes handlers of either.
//!
//! The body of a handler is written once. [`go!`] ends it, with the meaning that the flavour gives
//! it: [`Tail`](crate::dispatch) calls the next handler in tail position,
//! [`Steps`](crate::dispatch) stores the registers and returns the address of the next instruction.
//! The contract of all handlers is in the head of the crate.

use crate::code;
use crate::cx::{Cx, Exit};
use purlin_term::Term;

/// Runs one instruction. Stack, heap top and reductions are those of the context, before and after.
/// The result is where to continue, or null if the process stops with `interp.exit`.
pub type Step = unsafe extern "C" fn(cx: *mut Cx, pc: *const u64) -> *const u64;

/// How a handler continues.
pub(crate) trait Flavour {
    /// The result of a handler.
    type Out;
    /// Continues with the instruction at `pc`.
    unsafe fn go(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Self::Out;
    /// Runs the handler of variant `number` on the operands at `pc`, whatever number the code has
    /// there.
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
    /// Stops running the process. Stack, heap top and reductions must be stored in the context.
    ///
    /// # Safety
    /// `cx` must be the running context.
    unsafe fn leave(cx: *mut Cx, exit: Exit) -> Self::Out;
}

/// Continues with the instruction at `$pc`; the last thing a handler does.
macro_rules! go {
    ($cx:expr, $pc:expr, $e:expr, $hp:expr, $reds:expr) => {
        return F::go($cx, $pc, $e, $hp, $reds)
    };
}
pub(crate) use go;

/// Makes handlers. All have the flavour `F` as their first type parameter.
/// - `op_x = X<A: Src>(cx, pc, e, hp, reds, op) { .. }` is the handler of instruction `X`, or a
///   general case that such a handler leaves to it; `op` is the instruction.
/// - `fn x(cx, pc, e, hp, reds) { .. }` has no decoded instruction, and may take more parameters.
/// - `op_x => f;` stores the registers, runs `f(&mut Cx, pc) -> next pc` (null: stop with
///   `interp.exit`), and continues.
macro_rules! op {
    ($($(#[$a:meta])* fn $name:ident $(<$($g:ident: $b:path),*>)? ($cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident $(, $more:ident: $t:ty)*) $body:block)+) => {$(
        $(#[$a])*
        pub(crate) unsafe fn $name<F: $crate::handler::Flavour $($(, $g: $b)*)?>(
            $cx: *mut $crate::cx::Cx, $pc: *const u64, $e: *mut purlin_term::Term, $hp: *mut purlin_term::Term, $reds: i64 $(, $more: $t)*
        ) -> F::Out $body
    )+};
    ($($(#[$a:meta])* $name:ident => $f:path;)+) => {$(
        $(#[$a])*
        // Never inlined into a fast op that leaves the general case to it: see `fast`.
        #[inline(never)]
        pub(crate) unsafe fn $name<F: $crate::handler::Flavour>(
            cx: *mut $crate::cx::Cx, pc: *const u64, e: *mut purlin_term::Term, hp: *mut purlin_term::Term, reds: i64,
        ) -> F::Out {
            (*cx).heap.htop = hp;
            (*cx).heap.stop = e;
            (*cx).reds = reds;
            // For the accounts, if it collects.
            (*cx).bif_pc = pc;
            let pc = $crate::handler::out_of_line(&mut *cx, pc, |cx, pc| $f(cx, pc));
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

/// Calls `f` in a frame of its own. A handler whose frame has locals with an escaping address could
/// not end in a jump to the next handler, and each instruction would take native stack.
#[inline(never)]
pub(crate) fn out_of_line(
    cx: &mut Cx,
    pc: *const u64,
    f: impl FnOnce(&mut Cx, *const u64) -> *const u64,
) -> *const u64 {
    f(cx, pc)
}

/// Goes on at `next`, or stops if that is null, with the exit that is in the context. Stack, heap
/// and reductions are loaded from the context.
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

/// Runs the code's own instruction at `pc`: again, after it was made possible, or instead of a
/// breakpoint, which is not reported, or of machine code, which is not entered.
///
/// # Safety
/// As for the handler of the code's own instruction at `pc`.
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
