//! The interpreter of the race finder. Before each instruction by which a process touches something
//! that others see, it asks whether the process goes on ([`choice::asks`]).
//!
//! Processes run step by step, so the code of the usual mode has no trace of this.

use crate::STEP;
use crate::collect::Also;
use crate::cx::{Cx, Exit};
use crate::instr;
use crate::room::collect_after;
use crate::threads::Engine;
use purlin_isa::ops::{self, Op};
use purlin_kernel::choice::{self, ops::What};
use purlin_kernel::code;
use purlin_kernel::process::TIMER;
use purlin_term::{Alloc, NIL, atom};
use std::sync::LazyLock;

/// The kind of scheduling point that an instruction is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    No,
    Send,
    Native,
    Receive,
    /// A function of a native library.
    Library,
    /// A receive times out.
    Over,
    /// A receive looks for a message. It asks afterwards, if it has found no message and the
    /// receive then ends.
    Look,
}

/// The kinds, by the number of the variant.
static ASKS: LazyLock<Vec<Asks>> = LazyLock::new(|| {
    let of = |n: usize| match u16::try_from(n).ok().and_then(ops::lookup) {
        Some(_) if ops::Op::of(n as u16) == Some(Op::Send) => Asks::Send,
        Some(_) if ops::Op::of(n as u16) == Some(Op::WaitTimeout) => Asks::Receive,
        Some(_) if ops::Op::of(n as u16) == Some(Op::Timeout) => Asks::Over,
        Some(_) if ops::Op::of(n as u16) == Some(Op::Nif) => Asks::Library,
        Some(_) if ops::Op::of(n as u16) == Some(Op::LoopRec) => Asks::Look,
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

/// The engine of the race finder. See the head of this module.
pub struct Chosen;

/// Returns the operation of the instruction at `pc`, where the process goes on if it stops there,
/// and the registers that are live then.
///
/// # Safety
/// There must be an instruction at `pc`, of the kind that `asks` says, which is the next of the
/// process in `cx`.
unsafe fn asked(cx: &mut Cx, asks: Asks, pc: *const u64) -> Option<(What, *const u64, usize)> {
    match asks {
        Asks::No | Asks::Look | Asks::Library | Asks::Over => None,
        Asks::Send => Some((What::Send, pc, 2)),
        Asks::Receive => {
            // A timer that is already set keeps running.
            if cx.process().has(TIMER) {
                return None;
            }
            let op = instr::WaitTimeout::at(pc);
            op.time().value(cx).as_small()?;
            // It looks for messages again, and reads the time again then.
            let live = op.time().x_register().map_or(0, |x| x + 1);
            Some((What::Receive, op.to().to(), live))
        }
        Asks::Native => {
            // All four begin with the same operands.
            let op = instr::CallBif::at(pc);
            let row = choice::ops::row_of(op.export())?;
            Some((What::Native(row), pc, op.export().arity as usize))
        }
    }
}

static RETURN: LazyLock<usize> = LazyLock::new(|| {
    let is = |n: &usize| u16::try_from(*n).ok().and_then(Op::of) == Some(Op::Return);
    (0..STEP.len()).find(is).expect("there is a return")
});

/// Maximum number of bytes that are drawn at once.
const MOST_BYTES: i64 = 1 << 20;

/// Whether the function at `pc` is one that returns random bytes. They follow from the seed, and
/// are in x0 then.
///
/// # Safety
/// The function's first instruction must be the next of the process in `cx`.
unsafe fn draws(cx: &mut Cx, pc: *const u64) -> bool {
    let Some(p) = code::find(pc) else {
        return false;
    };
    let name = (atom::name(p.module), atom::name(p.function), p.arity);
    if !matches!(
        name,
        ("crypto", "strong_rand_bytes_nif" | "rand_bytes_nif", 1)
    ) {
        return false;
    }
    let n = cx.x[0].as_small().filter(|n| (0..=MOST_BYTES).contains(n));
    let Some(n) = n else { return false };
    let bytes = choice::random_bytes(n as usize);
    cx.x[0] = cx.binary(&bytes);
    collect_after(cx, 1, Also::NONE);
    true
}

/// Stops the process, to go on at `pc`.
fn stops(cx: &mut Cx, pc: *const u64, live: usize) -> Exit {
    cx.interp.pc = pc;
    cx.interp.live = live;
    cx.interp.exit = Exit::Yield;
    Exit::Yield
}

impl Engine for Chosen {
    unsafe fn run(cx: &mut Cx, entry: *const u64) -> Exit {
        let table = &**ASKS;
        let mut pc = entry;
        while !pc.is_null() {
            let number = code::fetch(pc) as usize;
            let asks = table[number];
            if asks == Asks::Native {
                choice::record::calls(instr::CallBif::at(pc).export());
            }
            // A native on a dirty thread was asked about before it went there.
            if asks != Asks::No
                && !cx.dirty
                && let Some((what, back, live)) = asked(cx, asks, pc)
            {
                // In a receive, the registers below the one with the time are not live.
                let time = match what {
                    What::Receive => instr::WaitTimeout::at(pc).time().value(cx),
                    _ => NIL,
                };
                if choice::asks(cx, pc, what) {
                    if what == What::Receive {
                        cx.x[..live].fill(time);
                    }
                    return stops(cx, back, live);
                }
                if what.sends() {
                    choice::back::takes(cx);
                }
            }
            if asks == Asks::Library && !instr::Nif::at(pc).slot().get().is_null() {
                choice::library(cx, pc);
                if draws(cx, pc) {
                    pc = STEP[*RETURN](cx, pc);
                    continue;
                }
            }
            if asks == Asks::Over {
                choice::time_is_over(cx, pc);
            }
            let at = pc;
            pc = STEP[number](cx, pc);
            if asks == Asks::Look
                && !pc.is_null()
                && Op::of(code::fetch(pc) as u16) == Some(Op::Timeout)
                && choice::asks(cx, at, What::Receive)
            {
                return stops(cx, at, 0);
            }
        }
        cx.interp.exit
    }
}
