//! Chance, for tests: machine code that leaves before any instruction and drops the machine's stack at any return.
//!
//! The context has a number that is counted down at each instruction. Where it comes to 0 the instruction is left to the
//! interpreter, as any may be. What it is at a return says whether that goes by the table of return points. Who enters machine
//! code sets it anew. [`stubs`](crate::stubs) counts.
//!
//! Between two instructions X0 to X5 are in machine registers, and what the context has in their places is nobody's: it is made
//! what no term is, so that code which reads it there, or leaves without storing it, is found.

use crate::asm::*;
use crate::registers::CX;

/// Jumps where the instruction that begins is to be left.
pub(crate) fn leaves(a: &mut Asm, stub: u64, out: Label) {
    a.call_abs(stub);
    a.jcc(Cond::E, out);
}
/// Bits of the number that are all 0 once in four times.
const ONE_IN_FOUR: u8 = 3;

/// Jumps where the machine's stack is to be dropped. RCX is used.
pub(crate) fn drops(a: &mut Asm, chaos: i32, dropped: Label) {
    a.load(RCX, at(CX, chaos));
    a.test8_i(RCX, ONE_IN_FOUR);
    a.jcc(Cond::E, dropped);
}
