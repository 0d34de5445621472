//! The interpreter of the race finder: before each visible operation it asks whether the process
//! continues ([`explore::before`]).
//!
//! # Invariant
//! Processes run step by step here, so nothing of this is in the code of the usual mode.

use crate::STEP;
use crate::collect::Also;
use crate::cx::{Cx, Exit};
use crate::instr;
use crate::room::collect_after;
use crate::threads::Engine;
use purlin_isa::ops::{self, Op};
use purlin_kernel::code;
use purlin_kernel::explore::{self, operations::What};
use purlin_kernel::process::TIMER;
use purlin_term::{Alloc, NIL, atom};
use std::sync::LazyLock;

/// The kinds of instructions that matter here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    No,
    Send,
    Native,
    Receive,
    /// A call of a function of a library in C.
    Library,
    /// The end of a receive in which no message came in time.
    Timeout,
    /// A look for a message. It is a scheduling point if there is none and the receive ends then.
    Look,
}

/// The classes, by the number of a variant.
static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let of = |n: usize| match u16::try_from(n).ok().and_then(ops::lookup) {
        Some(_) if ops::Op::of(n as u16) == Some(Op::Send) => Class::Send,
        Some(_) if ops::Op::of(n as u16) == Some(Op::WaitTimeout) => Class::Receive,
        Some(_) if ops::Op::of(n as u16) == Some(Op::Timeout) => Class::Timeout,
        Some(_) if ops::Op::of(n as u16) == Some(Op::Nif) => Class::Library,
        Some(_) if ops::Op::of(n as u16) == Some(Op::LoopRec) => Class::Look,
        Some(_)
            if matches!(
                Op::of(n as u16),
                Some(Op::CallBif | Op::CallBifLast | Op::CallBifOnly | Op::CallDirty)
            ) =>
        {
            Class::Native
        }
        _ => Class::No,
    };
    (0..STEP.len()).map(of).collect()
});

/// See the module's head.
pub struct Exploring;

/// Returns the operation of the instruction at `pc`, the place at which a process continues that
/// stops there, and the number of registers that are live then.
///
/// # Safety
/// `pc` is an instruction of that class, and the next of the process in `cx`.
unsafe fn operation(
    cx: &mut Cx,
    class: Class,
    pc: *const u64,
) -> Option<(What, *const u64, usize)> {
    match class {
        Class::No | Class::Look | Class::Library | Class::Timeout => None,
        Class::Send => Some((What::Send, pc, 2)),
        Class::Receive => {
            // The timer is set already.
            if cx.process().has(TIMER) {
                return None;
            }
            let op = instr::WaitTimeout::at(pc);
            op.time().value(cx).as_small()?;
            // It looks for messages and reads the time again then.
            let live = op.time().x_register().map_or(0, |x| x + 1);
            Some((What::Receive, op.to().to(), live))
        }
        Class::Native => {
            // All four begin with the same operands.
            let op = instr::CallBif::at(pc);
            let row = explore::operations::index(op.export())?;
            Some((What::Native(row), pc, op.export().arity as usize))
        }
    }
}

/// The number of `return`.
static RETURN: LazyLock<usize> = LazyLock::new(|| {
    let is = |n: &usize| u16::try_from(*n).ok().and_then(Op::of) == Some(Op::Return);
    (0..STEP.len()).find(is).expect("there is a return")
});

/// Maximum number of bytes that are drawn at once.
const MOST_BYTES: i64 = 1 << 20;

/// Returns random bytes in x0, drawn from the seed, if the function at `pc` is one that returns
/// such bytes.
///
/// # Safety
/// The function's first instruction is the next of the process in `cx`.
unsafe fn draw_bytes(cx: &mut Cx, pc: *const u64) -> bool {
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
    let bytes = explore::random_bytes(n as usize);
    cx.x[0] = cx.binary(&bytes);
    collect_after(cx, 1, Also::NONE);
    true
}

/// Stops the process, which continues at `pc`.
fn stop(cx: &mut Cx, pc: *const u64, live: usize) -> Exit {
    cx.interp.pc = pc;
    cx.interp.live = live;
    cx.interp.exit = Exit::Yield;
    Exit::Yield
}

impl Engine for Exploring {
    unsafe fn run(cx: &mut Cx, entry: *const u64) -> Exit {
        let table = &**CLASSES;
        let mut pc = entry;
        while !pc.is_null() {
            let number = code::fetch(pc) as usize;
            let class = table[number];
            if class == Class::Native {
                explore::recorded::calls(instr::CallBif::at(pc).export());
            }
            // For a native on a dirty thread this was asked before it went there.
            if class != Class::No
                && !cx.dirty
                && let Some((what, back, live)) = operation(cx, class, pc)
            {
                // Registers below the one with the time mean nothing in a receive.
                let time = match what {
                    What::Receive => instr::WaitTimeout::at(pc).time().value(cx),
                    _ => NIL,
                };
                if explore::before(cx, pc, what) {
                    if what == What::Receive {
                        cx.x[..live].fill(time);
                    }
                    return stop(cx, back, live);
                }
                if what.sends() {
                    explore::held::take(cx);
                }
            }
            if class == Class::Library && !instr::Nif::at(pc).slot().get().is_null() {
                explore::library_call(cx, pc);
                if draw_bytes(cx, pc) {
                    pc = STEP[*RETURN](cx, pc);
                    continue;
                }
            }
            if class == Class::Timeout {
                explore::timeout(cx, pc);
            }
            let at = pc;
            pc = STEP[number](cx, pc);
            if class == Class::Look
                && !pc.is_null()
                && Op::of(code::fetch(pc) as u16) == Some(Op::Timeout)
                && explore::before(cx, at, What::Receive)
            {
                return stop(cx, at, 0);
            }
        }
        cx.interp.exit
    }
}
