//! The interpreter of the mode in which schedules are chosen: before each instruction by which a process touches what others see, it
//! asks whether the process goes on ([`choice::asks`]).
//!
//! Processes run step by step, so nothing of this stands in the code of the usual mode.

use crate::STEP;
use crate::cx::{Cx, Exit};
use crate::instr;
use crate::threads::Engine;
use purlin_isa::ops::{self, Op};
use purlin_kernel::choice::{self, ops::What};
use purlin_kernel::code;
use std::sync::LazyLock;

/// A question about an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    No,
    Send,
    Native,
}

/// By the number of a variant.
static ASKS: LazyLock<Vec<Asks>> = LazyLock::new(|| {
    let of = |n: usize| match u16::try_from(n).ok().and_then(ops::lookup) {
        Some(_) if ops::Op::of(n as u16) == Some(Op::Send) => Asks::Send,
        Some(_)
            if matches!(
                Op::of(n as u16),
                Some(Op::CallBif | Op::CallBifLast | Op::CallBifOnly | Op::CallDirty)
            ) =>
        {
            Asks::Native
        }
        _ => Asks::No,
    };
    (0..STEP.len()).map(of).collect()
});

/// See the module head.
pub struct Chosen;

/// The operation that the instruction at `pc` is, and the registers that are live there.
///
/// # Safety
/// There is an instruction at `pc`, of the kind that `asks` says.
unsafe fn asked(asks: Asks, pc: *const u64) -> Option<(What, usize)> {
    match asks {
        Asks::No => None,
        Asks::Send => Some((What::Send, 2)),
        Asks::Native => {
            // All four begin with the same operands.
            let op = instr::CallBif::at(pc);
            let row = choice::ops::row_of(op.export())?;
            Some((What::Native(row), op.export().arity as usize))
        }
    }
}

impl Engine for Chosen {
    unsafe fn run(cx: &mut Cx, entry: *const u64) -> Exit {
        let table = &**ASKS;
        let mut pc = entry;
        while !pc.is_null() {
            let number = code::fetch(pc) as usize;
            let asks = table[number];
            // A native on a dirty thread was asked about before it went there.
            if asks != Asks::No
                && let Some((what, live)) = asked(asks, pc)
                && choice::asks(cx, pc, what)
            {
                cx.interp.pc = pc;
                cx.interp.live = live;
                cx.interp.exit = Exit::Yield;
                return Exit::Yield;
            }
            pc = STEP[number](cx, pc);
        }
        cx.interp.exit
    }
}
