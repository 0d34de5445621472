//! A frame for `perf` to find, with the mark of the running Erlang function in the place of a
//! return address (see `purlin_kernel::code::perf`).
//!
//! # The frame
//! ```text
//! rbp + 24   return address of purlin_run_marked
//! rbp + 16   rbp of its caller
//! rbp +  8   the mark: handlers write it through `Context::running`
//! rbp        rbp + 16
//! ```
//! Handlers and natives without a frame pointer of their own keep `rbp` while they run handlers, or
//! save it. So `perf record --call-graph fp` finds the mark in samples of handlers. `--call-graph
//! dwarf` finds it in samples of natives too: according to the description of this frame
//! (`.cfi_offset rip`) its return address is the mark. The walk ends there, since nothing describes
//! the caller of a mark.
//!
//! A panic that is not caught within this frame can't unwind through it either, and ends the
//! emulator.

use super::{Exit, run};
use crate::cx::Cx;
use purlin_kernel::code;
use std::ffi::c_void;

std::arch::global_asm!(
    ".pushsection .text.purlin_run_marked,\"ax\",@progbits",
    ".p2align 4",
    ".globl purlin_run_marked",
    ".hidden purlin_run_marked",
    ".type purlin_run_marked,@function",
    "purlin_run_marked:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    "push rcx",
    "push rbp",
    "mov rbp, rsp",
    // rbp + 32 is the stack pointer before the call of this function.
    ".cfi_def_cfa rbp, 32",
    ".cfi_offset rip, -24",
    "lea rax, [rsp + 8]",
    "mov [rdx], rax",
    "call {run}",
    "lea rsp, [rbp + 16]",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    ".cfi_offset rip, -8",
    ".cfi_restore rbp",
    "ret",
    ".cfi_endproc",
    ".size purlin_run_marked, . - purlin_run_marked",
    ".popsection",
    run = sym enter,
);

unsafe extern "C" {
    /// Makes the frame with `mark` in it, writes the address of the mark to `*slot`, and calls
    /// [`enter`].
    fn purlin_run_marked(
        cx: *mut c_void,
        entry: *const u64,
        slot: *mut *mut u64,
        mark: u64,
    ) -> Exit;
}

/// The interpreter, by the calling convention of C. It uses no register but those of its arguments.
///
/// # Safety
/// `cx` must be a context, and the rest is as for [`run`].
unsafe extern "C" fn enter(cx: *mut c_void, entry: *const u64) -> Exit {
    run(&mut *cx.cast::<Cx>(), entry)
}

/// As [`run`], within the frame.
///
/// # Safety
/// As for [`run`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn run_marked(cx: &mut Cx, entry: *const u64) -> Exit {
    let mark = mark_of(cx, entry);
    let cx: *mut Cx = cx;
    let before = (*cx).running;
    let slot = &raw mut (*cx).running;
    let exit = purlin_run_marked(cx.cast(), entry, slot, mark);
    // The frame is gone.
    (*cx).running = before;
    exit
}

/// Returns the mark of the function at `entry`; if a native continues there, that of its caller; 0
/// if there is none.
///
/// # Safety
/// As for [`run`].
unsafe fn mark_of(cx: &Cx, entry: *const u64) -> u64 {
    let mark = code::mark_at(entry);
    if mark != 0 || cx.heap.stack_words() == 0 {
        return mark;
    }
    // The slot of a frame, which holds a return address or 0.
    code::mark_at((*cx.heap.stop).raw() as *const u64)
}
