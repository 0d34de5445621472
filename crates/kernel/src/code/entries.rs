//! The only owner of words of code that change while the code runs.
//!
//! Such a word is the first unit of an instruction: its number. A patch replaces the number and
//! leaves the operands, so that the original instruction can still be run. The states of a word at
//! the entry of a function, or in the stub of a native's export:
//!
//! ```text
//!           set_breakpoint ->                  publish ->
//! breakpoint                  original                       compiled
//!           <- clear_breakpoint                <- withdraw
//!
//!           set_breakpoint, which first has the compiled code dropped
//! breakpoint <---------------------------------------------- compiled
//! ```
//!
//! A line of a module that was loaded for a debugger has `debug_line`, or `line_breakpoint` in its
//! place.
//!
//! This file also owns the half word before the entry of a function
//! (`purlin_term::fun::lead_word`): the address of its compiled code, by which compiled callers
//! call it, or a stand-in if there is none. It leads to compiled code from `publish` on, and to the
//! stand-in again as soon as the word at the entry no longer enters compiled code.
//!
//! # Invariants
//! * Every store into running code is in this file, under the owner's lock.
//! * A word is patched if and only if it has a record. The record holds the original, which is
//!   never a patch itself.
//! * A function with a breakpoint has no compiled code that can be entered: [`Entries::publish`]
//!   refuses it.
//! * The half word before an entry changes only together with the state of the entry, under the
//!   same lock: before the word at the entry on the way to `compiled`, after it on the way back. A
//!   thread that reads the instruction that enters compiled code, and then acquires, finds either
//!   the code or the stand-in.
//! * Threads that run code read the number without the lock ([`stands_at`]). A thread that reads a
//!   patch and then finds no record reads the word again under the lock: the patch was cleared
//!   meanwhile. So nobody has to wait for threads that are about to run a patch.
//!
//! # Orderings
//! The owner stores the word of an entry and the half word before it with release. A thread reads
//! the word as an instruction, with no ordering of its own, and then loads the half word with
//! acquire: so it sees the code that the half word leads to. [`stands_at`] loads with acquire. The
//! model is `models/tests/entries.rs`.

use crate::sync::{AtomicU16, AtomicU32, Ordering, RwLock};
use purlin_isa::ops::{Form, Op};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

const fn number(op: Op, forms: &[Form]) -> u16 {
    match op.variant(forms) {
        Some(n) => n,
        None => panic!("the row has no such variant"),
    }
}
/// The number of the instruction that is a breakpoint of a function.
pub const BREAKPOINT: u16 = number(Op::Breakpoint, &[]);
/// The numbers of a line's instruction without and with a breakpoint.
const DEBUG_LINE: u16 = number(Op::DebugLine, &[Form::H]);
const LINE_BREAKPOINT: u16 = number(Op::LineBreakpoint, &[Form::H]);

/// The compiler. Without one, no entry is ever published.
pub trait Invalidated: Sync {
    /// Called when the compiled code of the function at `entry` must no longer be entered: its word
    /// holds the original again, and nothing leads to its code. The caller holds the owner's lock,
    /// so this must not call the owner.
    fn invalidated(&self, entry: *const u64);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Breakpoint,
    Compiled,
}

/// The compiler, and the values stored at entries with and without compiled code.
struct Maker {
    who: &'static dyn Invalidated,
    /// The number of the instruction that enters compiled code.
    enters: u16,
    /// The stand-in for the code of a function that has none.
    none: u32,
}

struct Patched {
    original: u16,
    state: State,
}

/// The owner of patched words.
#[derive(Default)]
pub struct Entries {
    patched: RwLock<HashMap<usize, Patched>>,
    maker: OnceLock<Maker>,
}

/// The first unit of an instruction.
///
/// # Safety
/// `pc` is an instruction of code that stays for `'a`.
#[inline(always)]
unsafe fn word<'a>(pc: *const u64) -> &'a AtomicU16 {
    // SAFETY: by the contract of this function; every access to such a word uses this type.
    unsafe { &*(pc as *const AtomicU16) }
}

/// The half word before an entry.
///
/// # Safety
/// `pc` is an instruction that a call may lead to, of code that stays for `'a`.
#[inline(always)]
unsafe fn lead<'a>(pc: *const u64) -> &'a AtomicU32 {
    // SAFETY: by the contract a word precedes it; every access to its upper half uses this type.
    unsafe { &*(pc as *const AtomicU32).sub(1) }
}

impl Entries {
    /// Installs the compiler, the number of the instruction that enters compiled code, and the
    /// stand-in for the code of a function that has none. Only the first call has an effect.
    pub fn install(&self, who: &'static dyn Invalidated, enters: u16, none: u32) {
        let _ = self.maker.set(Maker { who, enters, none });
    }
    fn is_patch(&self, number: u16) -> bool {
        number == BREAKPOINT
            || number == LINE_BREAKPOINT
            || self.maker.get().is_some_and(|m| m.enters == number)
    }
    /// Whether the instruction at `pc` is patched at this moment.
    ///
    /// # Safety
    /// `pc` is an instruction of loaded code.
    #[inline]
    pub unsafe fn is_patched(&self, pc: *const u64) -> bool {
        // SAFETY: by the contract of this function.
        unsafe { self.is_patch(stands_at(pc)) }
    }
    /// Returns the original number of the instruction at `pc`, whether patched or not.
    ///
    /// # Safety
    /// `pc` is an instruction of loaded code.
    #[inline]
    pub unsafe fn opcode_at(&self, pc: *const u64) -> u16 {
        // SAFETY: by the contract of this function.
        let n = unsafe { stands_at(pc) };
        if self.is_patch(n) {
            // SAFETY: by the contract of this function.
            return unsafe { self.original(pc, n) };
        }
        n
    }
    /// Returns the original of a patch whose number `found` was read at `pc`.
    ///
    /// # Safety
    /// The contract of [`Entries::opcode_at`] holds.
    #[cold]
    #[inline(never)]
    unsafe fn original(&self, pc: *const u64, found: u16) -> u16 {
        if found == LINE_BREAKPOINT {
            return DEBUG_LINE;
        }
        let all = self.patched.read();
        // Without a record it is no longer patched, or is a word of its own (see
        // `breakpoint::gate`).
        all.get(&(pc as usize))
            // SAFETY: by the contract of this function.
            .map_or_else(|| unsafe { stands_at(pc) }, |p| p.original)
    }
    /// Sets a breakpoint at the entry of a function.
    ///
    /// # Safety
    /// `pc` is an instruction of loaded code, which stays for the duration of the call.
    pub unsafe fn set_breakpoint(&self, pc: *const u64) {
        // SAFETY: by the contract of this function.
        let word = unsafe { word(pc) };
        let mut all = self.patched.write();
        let p = all.entry(pc as usize).or_insert_with(|| Patched {
            original: word.load(Ordering::Relaxed),
            state: State::Breakpoint,
        });
        if p.state == State::Compiled {
            word.store(p.original, Ordering::Release);
            p.state = State::Breakpoint;
            // SAFETY: only entries of functions are compiled.
            unsafe { self.invalidate(pc) };
        }
        debug_assert!(!self.is_patch(p.original));
        word.store(BREAKPOINT, Ordering::Release);
    }
    /// Clears the breakpoint, if there is one.
    ///
    /// # Safety
    /// The contract of [`Entries::set_breakpoint`] holds.
    pub unsafe fn clear_breakpoint(&self, pc: *const u64) {
        // SAFETY: by the contract of this function.
        unsafe { self.restore(pc, State::Breakpoint) };
    }
    /// Makes calls of the function at `pc` enter its compiled code at address `code`. Returns false
    /// if there is a breakpoint or other compiled code.
    ///
    /// # Safety
    /// The contract of [`Entries::set_breakpoint`] holds, and `pc` is the entry of a function. The
    /// code is complete.
    #[must_use]
    pub unsafe fn publish(&self, pc: *const u64, code: u32) -> bool {
        let Some(&Maker { enters, .. }) = self.maker.get() else {
            return false;
        };
        // SAFETY: by the contract of this function.
        let word = unsafe { word(pc) };
        let mut all = self.patched.write();
        if all.contains_key(&(pc as usize)) {
            return false;
        }
        let p = Patched {
            original: word.load(Ordering::Relaxed),
            state: State::Compiled,
        };
        debug_assert!(!self.is_patch(p.original));
        all.insert(pc as usize, p);
        // SAFETY: by the contract of this function.
        unsafe { lead(pc).store(code, Ordering::Release) };
        // Stored last: a thread that reads it and then acquires finds the code.
        word.store(enters, Ordering::Release);
        true
    }
    /// Makes calls of the function at `pc` run its own code again, if they enter compiled code.
    ///
    /// # Safety
    /// The contract of [`Entries::publish`] holds.
    pub unsafe fn withdraw(&self, pc: *const u64) {
        // SAFETY: by the contract of this function.
        unsafe { self.restore(pc, State::Compiled) };
    }
    /// Restores the original word if the entry is in state `from`.
    ///
    /// # Safety
    /// The contract of [`Entries::set_breakpoint`] holds.
    unsafe fn restore(&self, pc: *const u64, from: State) {
        let mut all = self.patched.write();
        if let Some(p) = all.get(&(pc as usize)).filter(|p| p.state == from) {
            // SAFETY: by the contract of this function.
            unsafe { word(pc).store(p.original, Ordering::Release) };
            all.remove(&(pc as usize));
            if from == State::Compiled {
                // SAFETY: only entries of functions are compiled.
                unsafe { self.clear_lead(pc) };
            }
        }
    }
    /// Makes the half word before the function at `pc`, which had compiled code, lead to the
    /// stand-in.
    ///
    /// # Safety
    /// The contract of [`Entries::publish`] holds.
    unsafe fn clear_lead(&self, pc: *const u64) {
        if let Some(m) = self.maker.get() {
            // SAFETY: by the contract of this function.
            unsafe { lead(pc).store(m.none, Ordering::Release) };
        }
    }
    /// Does the same, and notifies the compiler.
    ///
    /// # Safety
    /// The contract of [`Entries::publish`] holds.
    unsafe fn invalidate(&self, pc: *const u64) {
        // SAFETY: by the contract of this function.
        unsafe { self.clear_lead(pc) };
        if let Some(m) = self.maker.get() {
            m.who.invalidated(pc);
        }
    }
    /// Drops all records of the code at these addresses, which is about to be freed and which
    /// nobody runs.
    pub fn forget(&self, code: Range<usize>) {
        if self.patched.read().is_empty() {
            return;
        }
        self.patched.write().retain(|&at, p| {
            let goes = code.contains(&at);
            if goes && p.state == State::Compiled {
                // SAFETY: the code is not freed yet; only entries of functions are compiled.
                unsafe { self.invalidate(at as *const u64) };
            }
            !goes
        });
    }
    /// Sets or clears the breakpoint of a line that can have one.
    ///
    /// # Safety
    /// `pc` is the instruction of such a line, of code that stays for the duration of the call.
    pub unsafe fn set_line_breakpoint(&self, pc: *const u64, on: bool) {
        let _owned = self.patched.write();
        // SAFETY: by the contract of this function.
        let word = unsafe { word(pc) };
        debug_assert!([DEBUG_LINE, LINE_BREAKPOINT].contains(&word.load(Ordering::Relaxed)));
        let to = if on { LINE_BREAKPOINT } else { DEBUG_LINE };
        word.store(to, Ordering::Release);
    }
}

/// The owner of the patched words of this system.
#[inline]
pub fn entries() -> &'static Entries {
    static ENTRIES: OnceLock<Entries> = OnceLock::new();
    ENTRIES.get_or_init(Entries::default)
}

/// Returns the number at `pc` at this moment, patched or not: the one that a thread would run.
///
/// # Safety
/// `pc` is an instruction of loaded code.
#[inline(always)]
pub unsafe fn stands_at(pc: *const u64) -> u16 {
    // Relaxed: a patch that leads to newly made data takes care of the ordering itself.
    // SAFETY: by the contract of this function.
    unsafe { word(pc).load(Ordering::Relaxed) }
}

/// Does the same as [`stands_at`] in the interpreter's dispatch. An atomic load would cost one more
/// instruction; a volatile read is a single access too, to an aligned word, and returns one of the
/// numbers that were stored.
///
/// # Safety
/// `pc` is an instruction of loaded code.
#[inline(always)]
pub unsafe fn fetch(pc: *const u64) -> u16 {
    // SAFETY: by the contract of this function.
    unsafe { (pc as *const u16).read_volatile() }
}

/// Returns the address of the compiled code of the function at `pc`, or the stand-in, at this
/// moment.
///
/// # Safety
/// `pc` is an instruction that a call may lead to.
#[inline(always)]
pub unsafe fn leads_to(pc: *const u64) -> u32 {
    // SAFETY: by the contract of this function.
    unsafe { lead(pc).load(Ordering::Acquire) }
}

/// Returns the original number of the instruction at `pc`, even if a breakpoint or an entry to
/// compiled code stands there.
///
/// # Safety
/// `pc` is an instruction of loaded code.
#[inline]
pub unsafe fn opcode_at(pc: *const u64) -> u16 {
    // SAFETY: by the contract of this function.
    unsafe { entries().opcode_at(pc) }
}

/// Whether a breakpoint of a function stands at `pc`.
///
/// # Safety
/// `pc` is an instruction of loaded code.
#[inline]
pub unsafe fn is_breakpoint(pc: *const u64) -> bool {
    // SAFETY: by the contract of this function.
    unsafe { word(pc).load(Ordering::Acquire) == BREAKPOINT }
}

/// Whether the breakpoint of a line that can have one is set.
///
/// # Safety
/// `pc` is the instruction of such a line.
#[inline]
pub unsafe fn has_line_breakpoint(pc: *const u64) -> bool {
    // SAFETY: by the contract of this function.
    unsafe { stands_at(pc) == LINE_BREAKPOINT }
}
