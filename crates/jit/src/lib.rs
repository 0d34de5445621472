//! Machine code of functions: from specific code to bytes.
//!
//! One pass over a function's instructions ([`quick`]): each is written as a template, with X0 to X5 in machine registers, and
//! without an intermediate form. What has no template calls the interpreter's own handler as a function (a *step*).
//!
//! This crate knows the instruction set and the layout of terms, and nothing of processes or of memory that runs: addresses of
//! what compiled code calls, and places of the fields that it reads, are given to it ([`Env`]). It is safe code: it reads the
//! words of a module's code and gives bytes.
//!
//! # The contract of compiled code
//! * Erlang frames are what the interpreter makes of them, slot 0 with the address in bytecode that is returned to. The
//!   machine's stack holds nothing but return addresses, one for each call that compiled code has made of compiled code in
//!   this time slice, and is dropped by whoever leaves.
//! * An instruction leaves before it has changed anything, and is run anew by the interpreter; or it is a step, and leaves
//!   with what that gives as the next one.
//! * Whatever may collect, look at the stack or run for long has all registers stored.

pub mod asm;
pub mod chaos;
mod commands;
pub mod decode;
mod numbers;
pub mod operands;
mod parts;
pub mod quick;
mod ranges;
mod registers;
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
    /// Where a function goes on that has returned to a frame without a machine call.
    pub base: u64,
    /// See `chaos.rs`.
    pub chance: u64,
    /// By the number of arguments.
    pub fun: [u64; FUN_STUBS],
    pub bif: [u64; BIF_STUBS],
}

/// Numbers of arguments, from none on, for which there is a stub that calls a fun.
pub const FUN_STUBS: usize = 13;

/// As many, from none on, as store a different number of arguments for a native.
pub const BIF_STUBS: usize = registers::X_REGS.len() + 1;

pub use purlin_isa::natives::Template as Native;

/// Facts about the runtime that the driver is told.
pub struct Env<'a> {
    pub fields: Fields,
    pub mail: Mail,
    pub helpers: Helpers,
    pub stubs: Stubs,
    /// The step of each variant of an op.
    pub steps: &'a [u64],
    pub targets: stubs::Targets,
    /// Whether the native that an export leads to changes code: machine code leaves before it is called, so that nothing runs on
    /// behind it that it has taken back.
    pub changes_code: &'a dyn Fn(u64) -> bool,
    /// The native that an export leads to, if it has a template.
    pub native: &'a dyn Fn(u64) -> Option<Native>,
    /// Where it says, in a byte, whether calls of natives may have to go by breakpoints.
    pub natives_traced: u64,
    /// Whether a collection may be wanted at any time.
    pub stressed: bool,
    /// Whether machine code gets remarks ([`quick::Note`]).
    pub annotated: bool,
    /// Whether code leaves and drops the machine's stack by chance.
    pub chaos: bool,
    /// The word that stands for no value.
    pub no_value: u64,
    pub true_word: u64,
    pub false_word: u64,
}
