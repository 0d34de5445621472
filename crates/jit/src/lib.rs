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
pub mod decode;
pub mod quick;
pub mod stubs;

/// Places of the fields that compiled code reads and writes: bytes from the address of the context.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// The float registers; the X registers are at 0.
    pub fr: i32,
    pub htop: i32,
    pub stop: i32,
    /// A byte: a collection is wanted.
    pub gc_wanted: i32,
    pub reds: i32,
    /// The instruction that may collect or fail, for the accounts.
    pub bif_pc: i32,
    /// Where to resume, and with how many X registers.
    pub interp_pc: i32,
    pub interp_live: i32,
    /// A byte: why code stopped to run.
    pub interp_exit: i32,
    /// The machine's stack pointer where compiled code was entered.
    pub machine_base: i32,
    /// Address of the table of return points.
    pub returns: i32,
}

/// Addresses of the functions that compiled code calls: see `helpers` in the interpreter.
#[derive(Clone, Copy, Default, Debug)]
pub struct Helpers {
    /// `(cx, pc, words | live << 32)`: makes room.
    pub room: u64,
    /// `(cx, a, b, operation | live << 8)`: the general case of an operation on integers; no value where it fails.
    pub arith: u64,
    /// `(cx, a, b)`: whether `a < b`, `a == b`, `a =:= b`.
    pub less: u64,
    pub equal: u64,
    pub same: u64,
    /// `(cx, map, key)`: the value, or no value.
    pub map_get: u64,
    /// `(cx, pc, live)`: calls the native of a `call_bif` op; no value where anything but a value came of it.
    pub call_bif: u64,
}

/// Addresses of the stubs: see [`stubs`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Stubs {
    pub enter: u64,
    pub exit: u64,
    pub leave: u64,
    pub yields: u64,
    pub helper: u64,
    pub pure_helper: u64,
    pub local: u64,
    /// By the number of arguments.
    pub fun: [u64; FUN_STUBS],
}

/// Numbers of arguments for which there is a stub that calls a fun.
pub const FUN_STUBS: usize = 6;

/// What the driver has to be told of the runtime.
pub struct Env<'a> {
    pub fields: Fields,
    pub helpers: Helpers,
    pub stubs: Stubs,
    /// The step of each variant of an op.
    pub steps: &'a [u64],
    pub targets: stubs::Targets,
    /// Whether the native that an export leads to changes code: machine code leaves before it is called, so that nothing runs on
    /// behind it that it has taken back.
    pub changes_code: &'a dyn Fn(u64) -> bool,
    /// The word that stands for no value.
    /// Whether a collection may be wanted at any time.
    pub stressed: bool,
    pub no_value: u64,
    pub true_word: u64,
    pub false_word: u64,
}
