//! Sampling of what runs, to choose functions for compilation.
//!
//! A scheduler looks at the running function and its caller ([`super::compiled::Compiler::wanted`])
//! at the end of time slices, and at points inside them: it holds back a part of the slice's
//! reductions and samples when the rest is used up. While a scheduler is new it samples every
//! [`SOON`] reductions, later less often. Exits of machine code to functions without any are
//! counted as well ([`count_exit`]), since samples rarely find short functions.
//!
//! # Invariants
//! * Reductions that are held back are returned at the end of the slice: a process gets a whole
//!   slice in any case.
//! * Without a compiler this costs one look at its absence in a time slice.

use super::compiled::compiler;
use crate::cx::Cx;
use purlin_native::cx::EXIT_COUNTERS;

/// Reductions between samples while a scheduler is new.
const SOON: i64 = 500;
/// Jitter: each sampling interval is shortened by up to this much, so that a loop whose reductions
/// divide a time slice is not always sampled at the same point. Once a scheduler is no longer new,
/// one time slice in `LATER` is split for a sample.
const JITTER: i64 = 64;
const LATER: u32 = 16;
/// Reductions during which a scheduler counts as new.
const NEW: u64 = 4_000_000;

/// Starts a time slice of a process that may run machine code.
#[inline]
pub(crate) fn begins(cx: &mut Cx) {
    let Some(c) = compiler() else { return };
    cx.compiled = true;
    let piece = c.begins();
    let (by, turn) = jitter(cx);
    let soon = match piece {
        Some(n) => n,
        None if cx.sampling.used < NEW && cx.sampling.used < c.starts() => return,
        None if cx.sampling.used < NEW => SOON - by,
        None if turn % (2 * LATER) == 0 => cx.reds - by,
        None if turn % LATER == 0 => mid_slice(turn),
        None => return,
    };
    if soon > 0 && cx.reds > soon {
        cx.sampling.held_back = cx.reds - soon;
        cx.reds = soon;
        cx.charged = soon;
    }
}

/// Returns a different number between 1 and [`JITTER`] each time, and the number of calls so far.
#[inline]
fn jitter(cx: &mut Cx) -> (i64, u32) {
    cx.sampling.splits = cx.sampling.splits.wrapping_add(1);
    // The factor is odd, so all numbers occur, in no simple order.
    let n = i64::from(cx.sampling.splits.wrapping_mul(37)) % JITTER;
    (n.max(1), cx.sampling.splits)
}

/// Upper bound of the reductions before a sample at an arbitrary point of a slice.
const MID_SLICE: u32 = 1024;

/// Returns a number of reductions up to [`MID_SLICE`], different for each `turn`. A server waits
/// long before its time slice ends, always in the same function; only a sample in the middle of the
/// slice finds the code that handles requests.
fn mid_slice(turn: u32) -> i64 {
    // The upper bits of a product by the golden ratio are evenly distributed.
    let evenly = u64::from(turn.wrapping_mul(0x9E37_79B9));
    let n = (evenly * u64::from(MID_SLICE)) >> 32;
    n as i64 + 1
}

/// Continues a time slice after a sample.
#[cold]
pub(crate) fn resume(cx: &mut Cx) {
    sample_at(cx, cx.interp.pc);
    let mut soon = SOON - jitter(cx).0;
    if let Some(c) = compiler() {
        soon = c.begins().unwrap_or(soon);
    }
    let n = cx.sampling.held_back.min(soon - cx.reds.min(0));
    cx.sampling.held_back -= n;
    cx.reds += n;
    cx.charged += n;
}

/// Number of calls from machine code after which an interpreted function is compiled. Below that,
/// interpreting is cheaper.
const CALLS: i16 = 24;
/// Number of calls after which the question is asked again for a function that could not be
/// compiled.
const REFUSED: i16 = 10_000;

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
    let place = (evenly >> (64 - EXIT_COUNTERS.ilog2())) as usize;
    // SAFETY: by the contract; the index is below the number of places.
    let n = unsafe { &mut (&mut (*cx).sampling.exits)[place] };
    *n += 1;
    if *n == CALLS {
        let made = compiler().is_some_and(|c| c.called(pc));
        *n = if made { 0 } else { CALLS - REFUSED };
    }
}

/// Takes a sample, if one is due, when the running process gives up its time slice or waits.
#[inline]
pub(crate) fn sample(cx: &mut Cx, used: u64) {
    if !cx.compiled {
        return;
    }
    // Return the reductions that were held back for the rest of the slice.
    let n = std::mem::take(&mut cx.sampling.held_back);
    cx.reds += n;
    cx.charged += n;
    cx.sampling.used = cx.sampling.used.wrapping_add(used);
    // A process that yields early is sampled as often as its running time warrants.
    cx.sampling.until_next -= used as i64;
    if cx.sampling.until_next <= 0 && compiler().is_some_and(|c| cx.sampling.used >= c.starts()) {
        cx.sampling.until_next = match cx.sampling.fruitless {
            _ if cx.sampling.used < NEW => SOON,
            0..FRUITLESS => OFTEN,
            _ => RARELY,
        };
        sample_at(cx, cx.interp.pc);
    }
}

/// Reductions between samples of processes that give up their time slices early.
const OFTEN: i64 = 4000;
/// The same after `FRUITLESS` samples in a row that found nothing to compile.
const RARELY: i64 = 32_000;
const FRUITLESS: u32 = 256;

fn sample_at(cx: &mut Cx, pc: *const u64) {
    let Some(c) = compiler() else { return };
    if pc.is_null() {
        return;
    }
    let caller = match cx.heap.stop < cx.heap.hend {
        // SAFETY: the top of a stack that is not empty.
        true => unsafe { (cx.heap.stop as *const *const u64).read() },
        false => std::ptr::null(),
    };
    cx.sampling.fruitless = match c.wanted(pc, caller) {
        true => 0,
        false => cx.sampling.fruitless.saturating_add(1),
    };
}
