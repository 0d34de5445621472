//! The kernel's view of machine code: who compiles functions, and the tables that code reads. Which
//! functions are worth compiling is the subject of `sampling.rs`.
//!
//! # Invariants
//! * Every instruction that a call may lead to is preceded by a word whose upper half is the
//!   address of machine code: that of the function, or code that exits to the interpreter
//!   (`purlin_term::fun::lead_word`). So compiled code calls every function in the same way.
//! * A function has machine code only while nothing else, such as a breakpoint, stands at its
//!   entry. See `entries.rs`.
//! * Only [`Compiler`] compiles, publishes and drops machine code.
//!
//! # Orderings
//! * `RETURNS` is stored with release and loaded with acquire by each thread that enters code, so
//!   that the contents of the table are visible.
//! * An invalidation is counted with release. A thread that finds the same count before and after
//!   its look (acquire) has missed none that happened before the first.

use super::{Module, epochs};
use crate::cx::Cx;
use purlin_isa::ops::Op;
use purlin_loader::lower::LoweredFunction;
use purlin_term::fun;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The compiler and owner of machine code.
pub trait Compiler: Sync {
    /// Called before the code at these addresses is freed.
    fn forget(&self, code: std::ops::Range<usize>);
    /// Called before a process runs. Returns the number of reductions after which to interrupt it
    /// for a sample, if that differs from the rule.
    fn begins(&self) -> Option<i64>;
    /// Reductions that a scheduler runs before it has anything compiled, apart from modules that
    /// are compiled when they are loaded.
    fn starts(&self) -> u64;
    /// Reports that a sample found the function at `pc` running, called from `caller`. Returns
    /// whether one of these two functions, or a callee, was compiled.
    fn wanted(&self, pc: *const u64, caller: *const u64) -> bool;
    /// Reports that machine code has exited to the function at `pc` often enough to compile it.
    /// Returns whether it was compiled.
    fn called(&self, pc: *const u64) -> bool;
    /// Bytes of machine code.
    fn bytes(&self) -> usize;
    /// Makes machine code that was invalidated for breakpoints unreachable in every way. Afterwards
    /// the caller may wait for threads that still execute it.
    fn settle(&self);
    /// Called when a module has become current.
    fn loaded(&self, module: &Module);
}

static COMPILER: OnceLock<&'static dyn Compiler> = OnceLock::new();

/// Installs the compiler. Only the first call has an effect.
pub fn set_compiler(who: &'static dyn Compiler) {
    let _ = COMPILER.set(who);
}

/// The installed compiler, if there is one.
#[inline]
pub fn compiler() -> Option<&'static dyn Compiler> {
    COMPILER.get().copied()
}

/// Number of times that machine code was invalidated for a breakpoint.
static INVALIDATIONS: AtomicU64 = AtomicU64::new(0);

/// Returns a number that changes whenever machine code is invalidated for a breakpoint. Other
/// threads may still be running that code.
pub fn invalidations() -> u64 {
    INVALIDATIONS.load(Ordering::Acquire)
}
/// Counts such an invalidation.
pub fn count_invalidation() {
    INVALIDATIONS.fetch_add(1, Ordering::Release);
}

/// The number of the instruction at the entry of a compiled function.
#[inline]
pub fn number() -> u16 {
    const N: u16 = match Op::EnterCompiled.variant(&[]) {
        Some(n) => n,
        None => 0,
    };
    N
}

/// Makes the word before the entry of a function lead to the interpreter.
pub(super) fn clear_lead(words: &mut [u64], f: &LoweredFunction) {
    let Some(w) = (f.entry as usize)
        .checked_sub(1)
        .and_then(|i| words.get_mut(i))
    else {
        return;
    };
    *w = *w & 0xFFFF_FFFF | u64::from(fun::uncompiled()) << 32;
}

/// The table of return points.
static RETURNS: AtomicPtr<u64> = AtomicPtr::new(std::ptr::null_mut());

/// Publishes the table of return points. Threads that run code may read the previous table until
/// they have passed: see [`epochs`].
pub fn set_returns(table: *const u64) {
    RETURNS.store(table as *mut u64, Ordering::Release);
}

/// Called before the thread of that context runs code.
#[inline]
pub(crate) fn enter(cx: &mut Cx) {
    epochs::enter(&cx.epoch);
    cx.returns = RETURNS.load(Ordering::Acquire);
}
