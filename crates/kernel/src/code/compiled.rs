//! The kernel's view of machine code: who compiles functions, when a process may run machine code,
//! and which functions are worth compiling.
//!
//! # Invariants
//! * Every instruction that a call may lead to is preceded by a word whose upper half is the
//!   address of machine code: that of the function, or code that exits to the interpreter
//!   (`purlin_term::fun::lead_word`). So compiled code calls every function in the same way.
//! * A function has machine code only while nothing else, such as a breakpoint, stands at its
//!   entry. See `entries.rs`.
//! * Only [`Compiler`] compiles, publishes and drops machine code.

use super::{Module, epochs};
use crate::cx::Cx;
use purlin_isa::ops::Op;
use purlin_loader::lower::LoweredFunction;
use purlin_native::cx::LEFT_PLACES;
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
    /// Waits for the threads that still execute machine code invalidated by breakpoints. No new
    /// thread can reach that code.
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

/// Reductions between samples while a scheduler is new.
const SOON: i64 = 500;
/// Jitter: each sampling interval is shortened by up to this much, so that a loop whose reductions
/// divide a time slice is not always sampled at the same point. Once a scheduler is no longer new,
/// one time slice in `LATER` is split for a sample.
const UNEVEN: i64 = 64;
const LATER: u32 = 16;
/// Reductions during which a scheduler counts as new.
const NEW: u64 = 4_000_000;

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

/// Starts a time slice of a process that may run machine code.
#[inline]
pub(crate) fn begins(cx: &mut Cx) {
    let Some(c) = compiler() else { return };
    cx.compiled = true;
    let piece = c.begins();
    let (by, turn) = uneven(cx);
    let soon = match piece {
        Some(n) => n,
        None if cx.sampled < NEW && cx.sampled < c.starts() => return,
        None if cx.sampled < NEW => SOON - by,
        None if turn % (2 * LATER) == 0 => cx.reds - by,
        None if turn % LATER == 0 => anywhere(turn),
        None => return,
    };
    if soon > 0 && cx.reds > soon {
        cx.sampled_reds = cx.reds - soon;
        cx.reds = soon;
        cx.charged = soon;
    }
}

/// Returns a different number between 1 and [`UNEVEN`] each time, and the number of calls so far.
#[inline]
fn uneven(cx: &mut Cx) -> (i64, u32) {
    cx.pieces = cx.pieces.wrapping_add(1);
    // The factor is odd, so all numbers occur, in no simple order.
    let n = i64::from(cx.pieces.wrapping_mul(37)) % UNEVEN;
    (n.max(1), cx.pieces)
}

/// Upper bound of the reductions before a sample at an arbitrary point of a slice.
const ANYWHERE: u32 = 1024;

/// Returns a number of reductions up to [`ANYWHERE`], different for each `turn`. A server waits
/// long before its time slice ends, always in the same function; only a sample in the middle of the
/// slice finds the code that handles requests.
fn anywhere(turn: u32) -> i64 {
    // The upper bits of a product by the golden ratio are evenly distributed.
    let evenly = u64::from(turn.wrapping_mul(0x9E37_79B9));
    let n = (evenly * u64::from(ANYWHERE)) >> 32;
    n as i64 + 1
}

/// Continues a time slice after a sample.
#[cold]
pub(crate) fn goes_on(cx: &mut Cx) {
    sample_at(cx, cx.interp.pc);
    let mut soon = SOON - uneven(cx).0;
    if let Some(c) = compiler() {
        soon = c.begins().unwrap_or(soon);
    }
    let n = cx.sampled_reds.min(soon - cx.reds.min(0));
    cx.sampled_reds -= n;
    cx.reds += n;
    cx.charged += n;
}

/// Number of calls from machine code after which an interpreted function is compiled. Below that,
/// interpreting is cheaper.
const CALLS: i16 = 24;
/// Number of calls after which the question is asked again for a function that could not be
/// compiled.
const IN_VAIN: i16 = 10_000;

/// Counts an exit of machine code to the instruction at `pc`, which has no machine code. Samples
/// find a function that takes little time too rarely, however often it is called.
///
/// # Safety
/// `pc` is an instruction that the process is about to run. All live values are in memory, none in
/// machine registers alone.
#[inline(always)]
pub unsafe fn count_exit(cx: *mut Cx, pc: *const u64) {
    // The upper bits of a product by the golden ratio are evenly distributed.
    let evenly = (pc as u64 >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let place = (evenly >> (64 - LEFT_PLACES.ilog2())) as usize;
    // SAFETY: by the contract; the index is below the number of places.
    let n = unsafe { &mut (&mut (*cx).left)[place] };
    *n += 1;
    if *n == CALLS {
        let made = compiler().is_some_and(|c| c.called(pc));
        *n = if made { 0 } else { CALLS - IN_VAIN };
    }
}

/// Takes a sample, if one is due, when the running process gives up its time slice or waits.
#[inline]
pub(crate) fn sample(cx: &mut Cx, used: u64) {
    if !cx.compiled {
        return;
    }
    // Return the reductions that were held back for the rest of the slice.
    let n = std::mem::take(&mut cx.sampled_reds);
    cx.reds += n;
    cx.charged += n;
    cx.sampled = cx.sampled.wrapping_add(used);
    // A process that yields early is sampled as often as its running time warrants.
    cx.until_sample -= used as i64;
    if cx.until_sample <= 0 && compiler().is_some_and(|c| cx.sampled >= c.starts()) {
        cx.until_sample = match cx.in_vain {
            _ if cx.sampled < NEW => SOON,
            0..SAMPLES_IN_VAIN => SAMPLED,
            _ => RARELY_SAMPLED,
        };
        sample_at(cx, cx.interp.pc);
    }
}

/// Reductions between samples of processes that give up their time slices early.
const SAMPLED: i64 = 4000;
/// The same after `SAMPLES_IN_VAIN` samples in a row that found nothing to compile.
const RARELY_SAMPLED: i64 = 32_000;
const SAMPLES_IN_VAIN: u32 = 256;

fn sample_at(cx: &mut Cx, pc: *const u64) {
    let Some(c) = compiler() else { return };
    // SAFETY: the process was about to run the instruction at `pc`.
    if pc.is_null() {
        return;
    }
    let caller = match cx.heap.stop < cx.heap.hend {
        // SAFETY: the top of a stack that is not empty.
        true => unsafe { (cx.heap.stop as *const *const u64).read() },
        false => std::ptr::null(),
    };
    cx.in_vain = match c.wanted(pc, caller) {
        true => 0,
        false => cx.in_vain.saturating_add(1),
    };
}
