//! Functions of native libraries, as seen by the code that calls them.
//!
//! The code of a module has a slot for each function that a library may replace. Loading the
//! library fills the slots, and they stay as they are until the module is purged. The function in a
//! slot lives as long as the code that has the slot.
//!
//! # Orderings
//! A slot is stored with release once the library is loaded, and loaded with acquire by each call:
//! the call sees what loading has written.

use crate::cx::Env;
use purlin_term::Term;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The threads that call a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pool {
    /// Schedulers.
    Normal,
    /// Threads of the dirty CPU pool.
    DirtyCpu,
    /// Threads of the dirty I/O pool.
    DirtyIo,
}

/// A function of a native library. Its creator stores its own data after this structure.
#[repr(C)]
pub struct NifFunction {
    /// Calls it, with the arguments at that address and this structure. A result of
    /// [`Term::NON_VALUE`] means that there is no value, and
    /// [`Context::failed`](crate::cx::Context::failed) says why.
    pub call: unsafe fn(*mut Env, *const Term, *const NifFunction) -> Term,
    /// The Erlang function that it implements, or instead of which it is called.
    pub module: Term,
    pub function: Term,
    /// Number of arguments of the call.
    pub arity: u32,
    /// Number of registers before its arguments, which hold those of the Erlang function that it
    /// replaces.
    pub first: u32,
    pub pool: Pool,
    /// It replaces a function of a module, and schedulers call it: it lives as long as the code
    /// that leads to it.
    pub plain: bool,
}

/// A place for a function that replaces the code after it. If it is null, the code runs.
#[derive(Default)]
pub struct NifSlot(AtomicPtr<NifFunction>);

impl NifSlot {
    /// Makes an empty slot.
    pub const fn new() -> NifSlot {
        NifSlot(AtomicPtr::new(std::ptr::null_mut()))
    }
    /// Returns the function in the slot, or null.
    #[inline(always)]
    pub fn get(&self) -> *const NifFunction {
        self.0.load(Ordering::Acquire)
    }
    /// Stores a function in the slot.
    pub fn set(&self, f: *const NifFunction) {
        self.0.store(f as *mut NifFunction, Ordering::Release);
    }
}

/// A call that a function of a native library has requested instead of its own result
/// (`enif_schedule_nif`). It belongs to the process, which stays at [`Scheduled::code`] until the
/// call is made. The code that makes the call takes the structure.
pub struct Scheduled {
    /// The instruction that makes the call, and the words of its operands.
    pub code: [u64; 2],
    /// The slot in which the instruction finds the function.
    pub slot: NifSlot,
    /// The arguments; taken when the registers are filled.
    pub args: Vec<Term>,
    /// An address in the module that requested the call, which isn't purged before the call is
    /// made.
    pub module: *const u64,
    /// Owner of everything that must live until the call is made, including the function.
    pub owner: Option<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: it belongs to a process, which only one thread at a time runs.
unsafe impl Send for Scheduled {}
