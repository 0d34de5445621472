//! Functions of native libraries, as code knows them that calls them.
//!
//! The code of a module has a slot for each function that a library may replace. Loading the library fills the slots; they
//! stay as they are until the module is purged. The function in a slot lives as long as the code that has the slot.

use crate::cx::Env;
use purlin_term::Term;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Which threads call a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pool {
    /// Schedulers.
    Normal,
    /// Those of the dirty processor pool.
    DirtyCpu,
    /// Those of the dirty I/O pool.
    DirtyIo,
}

/// A function of a native library. Whoever makes one has its own data behind it.
#[repr(C)]
pub struct NifFunction {
    /// Calls it, with the arguments at that address and this structure. [`Term::NON_VALUE`]: there is no value, and
    /// [`Context::failed`](crate::cx::Context::failed) says why.
    pub call: unsafe fn(*mut Env, *const Term, *const NifFunction) -> Term,
    /// The Erlang function that it is, or in whose place it is called.
    pub module: Term,
    pub function: Term,
    /// How many arguments it is called with.
    pub arity: u32,
    /// Registers behind those that hold the arguments of the Erlang function, where it is called in the place of that one.
    pub first: u32,
    pub pool: Pool,
    /// It stands in the place of a function of a module, and schedulers call it: it is there as long as the code is that leads to it.
    pub plain: bool,
}

/// Where a function is put in the place of the code behind. Null: the code is run.
#[derive(Default)]
pub struct NifSlot(AtomicPtr<NifFunction>);

impl NifSlot {
    /// An empty one.
    pub const fn new() -> NifSlot {
        NifSlot(AtomicPtr::new(std::ptr::null_mut()))
    }
    /// The function in it, or null.
    #[inline(always)]
    pub fn get(&self) -> *const NifFunction {
        self.0.load(Ordering::Acquire)
    }
    /// Puts a function in it.
    pub fn set(&self, f: *const NifFunction) {
        self.0.store(f as *mut NifFunction, Ordering::Release);
    }
}

/// A call that a function of a native library has asked for in its own place (`enif_schedule_nif`). It belongs to the process,
/// which is at [`Scheduled::code`] until the call is made; whoever makes it takes the structure.
pub struct Scheduled {
    /// The instruction that makes the call, and the words that its operands need.
    pub code: [u64; 2],
    /// The slot by which the instruction finds the function.
    pub slot: NifSlot,
    /// Taken as the registers are filled.
    pub args: Vec<Term>,
    /// An address in the module that asked: it isn't purged before the call is made.
    pub module: *const u64,
    /// The things that live until the call was made: the function among them.
    pub owner: Option<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: it belongs to a process, which one thread at a time runs.
unsafe impl Send for Scheduled {}
