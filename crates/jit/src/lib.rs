//! The compiler: from specific code of functions to machine code as bytes.
//!
//! It makes one pass over a function's instructions ([`compiler`]), without an intermediate form,
//! and writes a template for each, with X0 to X5 in machine registers. An op without a template
//! calls the interpreter's own handler as a function (a *step*).
//!
//! This crate knows the instruction set and the layout of terms, but neither processes nor
//! executable memory. It is given the addresses of everything that compiled code calls and the
//! offsets of the fields that it accesses ([`Env`]). It is safe code: it reads the words of a
//! module's code and returns bytes.
//!
//! # The contract of compiled code
//! - Erlang frames are those of the interpreter: slot 0 has the bytecode address to return to. The
//!   machine's stack contains only return addresses, one for each call from compiled code to
//!   compiled code in this time slice. An exit drops it.
//! - An instruction exits before it has changed anything, and the interpreter runs it again; or it
//!   is a step, and exits with the next instruction that the step returns.
//! - Before anything that may collect, look at the stack or run for long, all registers are stored.

#![forbid(unsafe_code)]

pub mod asm;
pub mod chaos;
mod commands;
pub mod compiler;
mod contexts;
pub mod decode;
pub mod machine;
mod numbers;
pub mod operands;
mod parts;
mod ranges;
mod searches;
pub mod stubs;
mod trees;

pub use purlin_isa::context::{Fields, Mail};
pub use purlin_isa::helpers::Helpers;

/// Addresses of the stubs: see [`stubs`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Stubs {
    pub enter: u64,
    pub exit: u64,
    pub leave: u64,
    pub yields: u64,
    pub waits: u64,
    pub helper: u64,
    pub leaf_helper: u64,
    pub local: u64,
    pub resume: u64,
    pub context: u64,
    /// See `numbers.rs`: `+`, `-`, `*` and `/` of floats, `<`.
    pub floats: [u64; 4],
    pub less: u64,
    /// See `parts.rs`.
    pub part: u64,
    /// See `trees.rs`.
    pub tree: u64,
    /// See `searches.rs`.
    pub find_key: u64,
    pub member: u64,
    /// Continues a function that has returned to a frame without a machine call.
    pub base: u64,
    /// See `chaos.rs`.
    pub chance: u64,
    /// By number of arguments.
    pub fun: [u64; FUN_STUBS],
    pub bif: [u64; BIF_STUBS],
    pub frames: Frames,
}

/// The parts of the stubs in which the return address does not lie where the stack pointer points,
/// as ranges of addresses. Empty on processors where it is not asked for.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// Behind the entry from C: a word for `leave`, the saved registers and the return address of C
    /// lie on the stack.
    pub entered: [(u64, u64); 2],
    /// Around calls of C on an aligned stack: R12 has the stack pointer of before.
    pub aligned: [(u64, u64); BIF_STUBS + 2],
    /// Numbers of pushed words from these addresses on; those at 0 mean nothing.
    pub depths: [(u64, u8); DEPTHS],
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            entered: [(0, 0); 2],
            aligned: [(0, 0); BIF_STUBS + 2],
            depths: [(0, 0); DEPTHS],
        }
    }
}

/// Maximum number of changes of the depth in the stubs that are described.
pub const DEPTHS: usize = 96;

/// Number of stubs that call a fun, for 0 arguments and more.
pub const FUN_STUBS: usize = 13;

/// Number of stubs that call a native, for 0 arguments and more; each stores a different number of
/// arguments.
pub const BIF_STUBS: usize = machine::X_REGS.len() + 1;

pub use purlin_isa::natives::Template;

/// Facts about the runtime that the compiler needs.
pub struct Env<'a> {
    pub fields: Fields,
    pub mail: Mail,
    pub helpers: Helpers,
    pub stubs: Stubs,
    /// The step of each variant of an op.
    pub steps: &'a [u64],
    pub targets: stubs::Targets,
    /// Whether the native that an export leads to changes code. Machine code exits before such a
    /// call, so that nothing returns to machine code that the native has taken back.
    pub changes_code: &'a dyn Fn(u64) -> bool,
    /// Returns the template of the native that an export leads to, if it has one.
    pub native: &'a dyn Fn(u64) -> Option<Template>,
    /// Address of the native with the template [`Template::OwnPid`].
    pub own_pid: u64,
    /// Address of a byte that says whether calls of natives may have to go through breakpoints.
    pub natives_traced: u64,
    /// Address and length of the memory of regions that the objects pointing into them must hold.
    pub counted: (u64, u64),
    /// Whether a collection may be wanted at any time.
    pub stressed: bool,
    /// Whether machine code gets remarks ([`compiler::Note`]).
    pub annotated: bool,
    /// Whether code exits and drops the machine's stack at random.
    pub chaos: bool,
    /// The word that stands for no value.
    pub no_value: u64,
    pub true_word: u64,
    pub false_word: u64,
}
