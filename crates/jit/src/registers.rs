//! Machine registers with a fixed meaning throughout machine code.
//!
//! ```text
//! rbx  context                       rax rdx rsi rdi r8 r9   X0 to X5
//! r13  top of the Erlang stack (E)   rcx r10 r11 r12         scratch; a helper keeps r12
//! r15  top of the heap (HP)          xmm0 to xmm15           scratch
//! r14  reductions                    rbp                     not used: profilers walk frames by it
//! ```
//! The first four are saved by any function that follows the C calling convention of the system
//! (System V).

use crate::asm::x64::*;
use purlin_term::word::TAG_BOXED;

/// Machine registers of X0 to X5.
pub const X_REGS: [Reg; 6] = [RAX, RDX, RSI, RDI, R8, R9];
/// The context.
pub const CX: Reg = RBX;
/// Top of the Erlang stack.
pub const E: Reg = R13;
/// Top of the heap.
pub const HP: Reg = R15;
/// Reductions.
pub const REDS: Reg = R14;

/// Returns word `n` of the object that is made at the top of the heap; its header is word 0.
pub(crate) fn new(n: usize) -> Mem {
    at(HP, n as i32 * 8)
}

/// Returns word `n` of the object that a boxed term points at; its header is word 0.
pub(crate) fn boxed(r: Reg, n: usize) -> Mem {
    at(r, n as i32 * 8 - TAG_BOXED as i32)
}
