//! Chaos mode, for tests: machine code that exits at random before any instruction, and drops the
//! machine's stack at random returns.
//!
//! The context has a number that is counted down at each instruction. When it reaches 0 the
//! instruction is left to the interpreter, as any may be. Its value at a return says whether the
//! return goes through the table of return points. The code that enters machine code resets it.
//! [`stubs`](crate::stubs) counts.
//!
//! Between two instructions X0 to X5 are in machine registers, and their words in the context are
//! undefined. They are overwritten with a word that is no term, so that code which reads them
//! there, or exits without storing them, is found.

use crate::asm::Label;
use crate::machine::{CX, Cond, Machine, R, at};

/// Jumps to `out` if the instruction that begins is to be left to the interpreter.
pub(crate) fn leaves(a: &mut impl Machine, stub: u64, out: Label) {
    a.if_chance(stub, out);
}
/// Bits of the number that are all 0 once in four times.
const ONE_IN_FOUR: u8 = 3;

/// Jumps to `dropped` if the machine's stack is to be dropped. Uses `R`.
pub(crate) fn drops(a: &mut impl Machine, chaos: i32, dropped: Label) {
    a.load(R, at(CX, chaos));
    a.if_bits(Cond::E, R, ONE_IN_FOUR, dropped);
}
