//! Chance, for tests: machine code that leaves before any instruction and drops the machine's stack at any return.
//!
//! The context has a number that is counted down at each instruction. Where it comes to 0 the instruction is left to the
//! interpreter, as any may be. What it is at a return says whether that goes by the table of return points. Who enters machine
//! code sets it anew.
//!
//! Between two instructions X0 to X5 are in machine registers, and what the context has in their places is nobody's: it is made
//! what no term is, so that code which reads it there, or leaves without storing it, is found.

use crate::Fields;
use crate::asm::*;
use crate::stubs::{CX, X_REGS};

/// What stands in the context for a register whose value is in a machine register: it has the tag of a header.
pub const NOTHING: i32 = 0x0DEA_D000;

/// The stub that counts: what it leaves in the flags is `E` where code is to leave.
pub(crate) fn stub(a: &mut Asm, f: &Fields) -> Label {
    a.align(16);
    let l = a.here_label();
    for n in 0..X_REGS.len() as i32 {
        a.store_i(at(CX, n * 8), NOTHING);
    }
    a.alu_mi(Width::Q, Alu::Sub, at(CX, f.chaos), 1);
    a.ret();
    l
}
/// Jumps where the instruction that begins is to be left.
pub(crate) fn leaves(a: &mut Asm, stub: u64, out: Label) {
    a.call_abs(stub);
    a.jcc(Cond::E, out);
}
/// Jumps where the machine's stack is to be dropped. RCX is used.
pub(crate) fn drops(a: &mut Asm, chaos: i32, dropped: Label) {
    a.load(RCX, at(CX, chaos));
    a.test8_i(RCX, 3);
    a.jcc(Cond::E, dropped);
}
