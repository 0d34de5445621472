//! Machine code of functions, as far as this crate knows it: who makes it, when a process runs it, and whose turn it is to get
//! some.
//!
//! # Invariants
//! * Before every instruction that a call may lead to stands a word whose upper half is the address of machine code: that of the
//!   function, or one that leaves to the interpreter (`purlin_term::fun::lead_word`). So compiled code calls any function in the
//!   same way.
//! * A function has machine code only while nothing else stands at its entry: no breakpoint. See `entries.rs`.
//! * Nothing is compiled, published or forgotten but by [`Compiled`].

use super::{Module, epochs};
use crate::cx::Cx;
use purlin_isa::ops::Op;
use purlin_loader::lower::LoweredFunction;
use purlin_native::cx::LEFT_PLACES;
use purlin_term::fun;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The maker and owner of machine code.
pub trait Compiled: Sync {
    /// The code at these addresses is about to go.
    fn forget(&self, code: std::ops::Range<usize>);
    /// A process is about to run: after how many reductions it is interrupted for a moment, if not by the rule.
    fn begins(&self) -> Option<i64>;
    /// Reductions that a scheduler takes before it has anything compiled, but for modules that are as they are loaded.
    fn starts(&self) -> u64;
    /// The function that was found running at `pc` is worth machine code, and so is that which it returns to at `caller`: whether one of
    /// them, or of what they call, got some.
    fn wanted(&self, pc: *const u64, caller: *const u64) -> bool;
    /// Machine code was left for the function at `pc` so often that it is worth some: whether it got some.
    fn called(&self, pc: *const u64) -> bool;
    /// Bytes of machine code.
    fn bytes(&self) -> usize;
    /// Nobody comes to code any more that was taken back for breakpoints, by whatever way: those who are within it may be waited for.
    fn settle(&self);
    /// A module has become current.
    fn loaded(&self, module: &Module);
}

static COMPILED: OnceLock<&'static dyn Compiled> = OnceLock::new();

/// Says who makes machine code. Only the first call does.
pub fn set_compiled(who: &'static dyn Compiled) {
    let _ = COMPILED.set(who);
}

/// The maker of machine code, if there is one.
#[inline]
pub fn compiled() -> Option<&'static dyn Compiled> {
    COMPILED.get().copied()
}

/// How often machine code was taken back for a breakpoint.
static TAKEN_BACK: AtomicU64 = AtomicU64::new(0);

/// A number that is another one after machine code was taken back for a breakpoint: other threads may still run it.
pub fn taken_back() -> u64 {
    TAKEN_BACK.load(Ordering::Acquire)
}
/// It was taken back for one.
pub fn takes_back() {
    TAKEN_BACK.fetch_add(1, Ordering::Release);
}

/// The number of the instruction at the entry of a function that has machine code.
#[inline]
pub fn number() -> u16 {
    const N: u16 = match Op::EnterCompiled.variant(&[]) {
        Some(n) => n,
        None => 0,
    };
    N
}

/// Has what stands before the entry of a function lead to the interpreter.
pub(super) fn leads_nowhere(words: &mut [u64], f: &LoweredFunction) {
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
/// Pieces of time slices are by so many reductions less than that shorter, in turn; and later one slice in so many has two: a loop
/// that takes as many reductions as divide a slice would always be met at the same place, and what it calls never.
const UNEVEN: i64 = 64;
const LATER: u32 = 16;
/// Reductions for which a scheduler is new.
const NEW: u64 = 4_000_000;

/// The table of return points.
static RETURNS: AtomicPtr<u64> = AtomicPtr::new(std::ptr::null_mut());

/// Says which is the table of return points. Threads that run code may read the former until they have passed: see [`epochs`].
pub fn set_returns(table: *const u64) {
    RETURNS.store(table as *mut u64, Ordering::Release);
}

/// The thread of that context is about to run code.
#[inline]
pub(crate) fn enter(cx: &mut Cx) {
    epochs::enter(&cx.epoch);
    cx.returns = RETURNS.load(Ordering::Acquire);
}

/// A time slice begins of a process that may run machine code.
#[inline]
pub(crate) fn begins(cx: &mut Cx) {
    let Some(c) = compiled() else { return };
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

/// A number of reductions below [`UNEVEN`] and above 0, another one each time, and how often it was asked for.
#[inline]
fn uneven(cx: &mut Cx) -> (i64, u32) {
    cx.pieces = cx.pieces.wrapping_add(1);
    // All of them, in an order without a pattern: the factor is odd.
    let n = i64::from(cx.pieces.wrapping_mul(37)) % UNEVEN;
    (n.max(1), cx.pieces)
}

/// Most reductions of a slice that is cut anywhere.
const ANYWHERE: u32 = 1024;

/// A number of reductions up to [`ANYWHERE`], another one for each `turn`. Who serves others waits long before a time slice ends, always
/// in the same function: only in the middle is it met at what it does for them.
fn anywhere(turn: u32) -> i64 {
    // The upper bits of a product by the golden ratio, which lie evenly.
    let evenly = u64::from(turn.wrapping_mul(0x9E37_79B9));
    let n = (evenly * u64::from(ANYWHERE)) >> 32;
    n as i64 + 1
}

/// A part of a time slice is over.
#[cold]
pub(crate) fn goes_on(cx: &mut Cx) {
    sample_at(cx, cx.interp.pc);
    let mut soon = SOON - uneven(cx).0;
    if let Some(c) = compiled() {
        soon = c.begins().unwrap_or(soon);
    }
    let n = cx.sampled_reds.min(soon - cx.reds.min(0));
    cx.sampled_reds -= n;
    cx.reds += n;
    cx.charged += n;
}

/// How often machine code calls a function that has none until it gets some: fewer than that are cheaper interpreted.
const CALLS: i16 = 24;
/// How often it calls one that can have none until that is asked again.
const IN_VAIN: i16 = 10_000;

/// Machine code was left for the instruction at `pc`, which has none: counts it. Samples meet a function that takes little time too
/// seldom, however often it is called.
///
/// # Safety
/// `pc` is an instruction of code that the process is about to run. Nothing is in registers of the machine alone.
#[inline(always)]
pub unsafe fn left_for(cx: *mut Cx, pc: *const u64) {
    // The upper bits of a product by the golden ratio, which lie evenly.
    let evenly = (pc as u64 >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let place = (evenly >> (64 - LEFT_PLACES.ilog2())) as usize;
    // SAFETY: by the contract; the place is one of that many.
    let n = unsafe { &mut (&mut (*cx).left)[place] };
    *n += 1;
    if *n == CALLS {
        let made = compiled().is_some_and(|c| c.called(pc));
        *n = if made { 0 } else { CALLS - IN_VAIN };
    }
}

/// The process that runs leaves its time slice, or waits.
#[inline]
pub(crate) fn sample(cx: &mut Cx, used: u64) {
    if !cx.compiled {
        return;
    }
    // What was kept back is given back.
    let n = std::mem::take(&mut cx.sampled_reds);
    cx.reds += n;
    cx.charged += n;
    cx.sampled = cx.sampled.wrapping_add(used);
    // One that gives way early is looked at as often as its time says.
    cx.until_sample -= used as i64;
    if cx.until_sample <= 0 && compiled().is_some_and(|c| cx.sampled >= c.starts()) {
        cx.until_sample = match cx.in_vain {
            _ if cx.sampled < NEW => SOON,
            0..SAMPLES_IN_VAIN => SAMPLED,
            _ => RARELY_SAMPLED,
        };
        sample_at(cx, cx.interp.pc);
    }
}

/// Reductions between samples of processes that leave their time slices early.
const SAMPLED: i64 = 4000;
/// The same once so many samples in a row have found nothing without machine code.
const RARELY_SAMPLED: i64 = 32_000;
const SAMPLES_IN_VAIN: u32 = 256;

fn sample_at(cx: &mut Cx, pc: *const u64) {
    let Some(c) = compiled() else { return };
    // SAFETY: the process was about to run what is at `pc`.
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
