//! The tables of handlers, and how a process runs by either of them.
//!
//! Optimised builds run by [`HANDLERS`], where each handler jumps to the next. Builds with debug
//! assertions run by [`STEP`] and check each instruction against its row. With `PURLIN_STEPS=1` in
//! the environment, other builds run by [`STEP`] too, without the check.

use crate::compiled::begin;
#[cfg(debug_assertions)]
use crate::contract;
use crate::cx::{Cx, Exit};
use crate::handler::{Flavour, Step};
use crate::threads::Engine;
use purlin_isa::ops::VARIANTS;
use purlin_kernel::code;
use purlin_term::Term;
#[cfg(not(debug_assertions))]
use std::sync::LazyLock;

/// Runs an instruction and those that follow.
#[cfg(not(debug_assertions))]
type Handler =
    unsafe fn(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit;

/// The flavour in which a handler ends by calling the next one. An optimised build compiles that to
/// a jump.
#[cfg(not(debug_assertions))]
pub(crate) struct Tail;

#[cfg(not(debug_assertions))]
impl Flavour for Tail {
    type Out = Exit;
    #[inline(always)]
    unsafe fn go(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit {
        let h = *HANDLERS.get_unchecked(code::fetch(pc) as usize);
        h(cx, pc, e, hp, reds)
    }
    #[inline(always)]
    unsafe fn run(
        number: u16,
        cx: *mut Cx,
        pc: *const u64,
        e: *mut Term,
        hp: *mut Term,
        reds: i64,
    ) -> Exit {
        HANDLERS[number as usize](cx, pc, e, hp, reds)
    }
    #[inline(always)]
    unsafe fn leave(_: *mut Cx, exit: Exit) -> Exit {
        exit
    }
}

/// The flavour in which a handler stores the registers and returns the next instruction.
pub(crate) struct Steps;

impl Flavour for Steps {
    type Out = *const u64;
    #[inline(always)]
    unsafe fn go(
        cx: *mut Cx,
        pc: *const u64,
        e: *mut Term,
        hp: *mut Term,
        reds: i64,
    ) -> *const u64 {
        (*cx).heap.htop = hp;
        (*cx).heap.stop = e;
        (*cx).reds = reds;
        pc
    }
    #[inline(always)]
    unsafe fn run(
        number: u16,
        cx: *mut Cx,
        pc: *const u64,
        e: *mut Term,
        hp: *mut Term,
        reds: i64,
    ) -> *const u64 {
        STEP[number as usize](cx, Self::go(cx, pc, e, hp, reds))
    }
    #[inline(always)]
    unsafe fn leave(cx: *mut Cx, exit: Exit) -> *const u64 {
        (*cx).interp.exit = exit;
        std::ptr::null()
    }
}

mod tables {
    use super::*;
    #[allow(unused_imports)]
    use crate::operands::{C, X, Y};
    use crate::{
        apply::*, arith::*, bits::*, bits_build::*, call::*, catch::*, compiled::op_enter_compiled,
        fast::*, floats::*, funs::*, hibernation::*, libraries::*, lines::*, maps::*, marks::*,
        messages::*, natives::*, records::*, shortcuts::*, traced::*,
    };

    #[cfg(not(debug_assertions))]
    pub(super) mod tail {
        use super::*;
        macro_rules! handler {
            ($name:ident $($kind:ident)*) => { $name::<Tail $(, $kind)*> };
        }
        /// A reference to a constant, so that its address is known in all units of the crate. If
        /// the array were a static itself, handlers in other units would load its address from
        /// memory before each jump.
        pub static HANDLERS: &[Handler] = &include!(concat!(env!("OUT_DIR"), "/handlers.rs"));
    }

    macro_rules! handler {
        ($name:ident $($kind:ident)*) => {{
            unsafe extern "C" fn step(cx: *mut Cx, pc: *const u64) -> *const u64 {
                let (e, hp, reds) = ((*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
                $name::<Steps $(, $kind)*>(cx, pc, e, hp, reds)
            }
            step
        }};
    }
    pub static STEP: [Step; VARIANTS] = include!(concat!(env!("OUT_DIR"), "/handlers.rs"));
}
/// The step of every variant, by its number. Compiled code calls these for instructions without a
/// template.
pub use tables::STEP;
#[cfg(not(debug_assertions))]
use tables::tail::HANDLERS;

/// Whether processes run step by step. Read once in a time slice.
#[cfg(not(debug_assertions))]
static STEPS: LazyLock<bool> =
    LazyLock::new(|| std::env::var("PURLIN_STEPS").is_ok_and(|v| v == "1"));

/// Runs the process in the context from `entry` on, until it yields, waits or ends.
///
/// # Safety
/// `cx.heap` must be the heap of a process whose stack is valid for the code at `entry`, and the
/// registers that this code reads must hold terms of the process.
pub unsafe fn run(cx: &mut Cx, entry: *const u64) -> Exit {
    #[cfg(not(debug_assertions))]
    if !*STEPS {
        return begin::<Tail>(cx, entry);
    }
    run_steps(cx, entry)
}

/// As [`run`], by [`STEP`].
///
/// # Safety
/// As for [`run`].
unsafe fn run_steps(cx: *mut Cx, pc: *const u64) -> Exit {
    run_table(cx, begin::<Steps>(cx, pc), &STEP)
}

/// As [`run`], by the steps of a table.
///
/// # Safety
/// As for [`run`]; each step must do what the instruction of its number does.
pub(crate) unsafe fn run_table(cx: *mut Cx, mut pc: *const u64, table: &[Step; VARIANTS]) -> Exit {
    while !pc.is_null() {
        let number = code::fetch(pc);
        #[cfg(debug_assertions)]
        let before = {
            purlin_native::coverage_counts::op(number);
            (*cx).interp.raised = false;
            contract::Before::of(&*cx, pc)
        };
        pc = table[number as usize](cx, pc);
        #[cfg(debug_assertions)]
        if let Err(what) = before.broken(&*cx, pc) {
            panic!("against its row: {what}");
        }
    }
    (*cx).interp.exit
}

/// The interpreter as an engine of the schedulers.
pub struct Interpreter;

impl Engine for Interpreter {
    #[inline(always)]
    unsafe fn run(cx: &mut Cx, entry: *const u64) -> Exit {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if code::perf::on() {
            return crate::perf::run_marked(cx, entry);
        }
        run(cx, entry)
    }
}
