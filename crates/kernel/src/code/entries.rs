//! Words of code that change while it runs, and their only owner.
//!
//! A word here is the first unit of an instruction, its number. What is put in the place of a number leaves the operands as they
//! are, so that the instruction can be run all the same. At the entry of a function, and in the stub of a native's export:
//!
//! ```text
//!           set_breakpoint ->                  publish ->
//! breakpoint                  original                       compiled
//!           <- clear_breakpoint                <- withdraw
//!
//!           set_breakpoint, which has the compiled code forgotten first
//! breakpoint <---------------------------------------------- compiled
//! ```
//!
//! At a line of a module that is loaded for a debugger: `debug_line`, or `line_breakpoint` in its place.
//!
//! The half of a word before the entry of a function (`purlin_term::fun::lead_word`) is owned here too: it is the address of its
//! compiled code, by which compiled callers come, or what stands for none. It leads to compiled code from `publish` on, and to
//! what stands for none again from the moment that the word at the entry does not enter compiled code any more.
//!
//! # Invariants
//! * Every store into code that runs is in this file, under the lock of the owner.
//! * A word is patched if and only if it has a record, which has its original: that is never a patch itself.
//! * A function with a breakpoint has no compiled code that anybody enters: [`Entries::publish`] refuses it.
//! * The half word before an entry changes with the state of the entry alone, under the same lock: before the word at the entry on
//!   the way to `compiled`, behind it on the way back. Who finds the instruction that enters compiled code, and acquires, finds
//!   either the code or that there is none.
//! * Those who run code read the number without the lock ([`stands_at`]). Who meets a patch and then finds no record reads the
//!   word again under the lock: it was cleared meanwhile. So nobody has to wait for those who are just about to run a patch.

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
/// The number of the instruction that a breakpoint of a function is.
pub const BREAKPOINT: u16 = number(Op::Breakpoint, &[]);
/// Those of a line without and with a breakpoint.
const DEBUG_LINE: u16 = number(Op::DebugLine, &[Form::H]);
const LINE_BREAKPOINT: u16 = number(Op::LineBreakpoint, &[Form::H]);

/// The one that makes compiled code. Where nobody does, no entry is ever published.
pub trait Compiled: Sync {
    /// Nobody is to enter the compiled code of the function at `entry` any more: its word has its original again, and nothing leads
    /// to its code. Called under the lock of the owner, which must not be asked for anything.
    fn forget(&self, entry: *const u64);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Breakpoint,
    Compiled,
}

/// Where compiled code comes from, and what is stored where there is some, or none.
struct Maker {
    who: &'static dyn Compiled,
    /// The number of the instruction that enters compiled code.
    enters: u16,
    /// What stands for the code of a function that has none.
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

/// The word that an instruction begins with.
///
/// # Safety
/// `pc` is an instruction of code that stays for `'a`.
#[inline(always)]
unsafe fn word<'a>(pc: *const u64) -> &'a AtomicU16 {
    // SAFETY: by the contract of this function; all look at such a word by this type.
    unsafe { &*(pc as *const AtomicU16) }
}

/// The half word before an entry.
///
/// # Safety
/// `pc` is an instruction that a call may lead to, of code that stays for `'a`.
#[inline(always)]
unsafe fn lead<'a>(pc: *const u64) -> &'a AtomicU32 {
    // SAFETY: by the contract of this function, a word stands before it; all look at its upper half by this type.
    unsafe { &*(pc as *const AtomicU32).sub(1) }
}

impl Entries {
    /// Says who makes compiled code, the number of the instruction that enters it, and what stands for the code of a function that
    /// has none. Only the first call does.
    pub fn install(&self, who: &'static dyn Compiled, enters: u16, none: u32) {
        let _ = self.maker.set(Maker { who, enters, none });
    }
    fn is_patch(&self, number: u16) -> bool {
        number == BREAKPOINT
            || number == LINE_BREAKPOINT
            || self.maker.get().is_some_and(|m| m.enters == number)
    }
    /// Whether another instruction stands at `pc` than the code's own, at this moment.
    ///
    /// # Safety
    /// `pc` is an instruction of loaded code.
    #[inline]
    pub unsafe fn is_patched(&self, pc: *const u64) -> bool {
        self.is_patch(stands_at(pc))
    }
    /// The number of the code's own instruction at `pc`, whatever stands there.
    ///
    /// # Safety
    /// `pc` is an instruction of loaded code.
    #[inline]
    pub unsafe fn opcode_at(&self, pc: *const u64) -> u16 {
        let n = stands_at(pc);
        if self.is_patch(n) {
            return self.original(pc, n);
        }
        n
    }
    /// The opcode that a patch, which was `found`, stands for.
    ///
    /// # Safety
    /// As for [`Entries::opcode_at`].
    #[cold]
    #[inline(never)]
    unsafe fn original(&self, pc: *const u64, found: u16) -> u16 {
        if found == LINE_BREAKPOINT {
            return DEBUG_LINE;
        }
        let all = self.patched.read();
        // Without a record it isn't patched any more, or is an instruction in a place of its own (see `breakpoint::gate`).
        all.get(&(pc as usize))
            .map_or_else(|| stands_at(pc), |p| p.original)
    }
    /// Puts a breakpoint at the entry of a function.
    ///
    /// # Safety
    /// `pc` is an instruction of loaded code, which stays for as long as this takes.
    pub unsafe fn set_breakpoint(&self, pc: *const u64) {
        let word = word(pc);
        let mut all = self.patched.write();
        let p = all.entry(pc as usize).or_insert_with(|| Patched {
            original: word.load(Ordering::Relaxed),
            state: State::Breakpoint,
        });
        if p.state == State::Compiled {
            word.store(p.original, Ordering::Release);
            p.state = State::Breakpoint;
            self.forget_compiled(pc);
        }
        debug_assert!(!self.is_patch(p.original));
        word.store(BREAKPOINT, Ordering::Release);
    }
    /// Takes the breakpoint away, if there is one.
    ///
    /// # Safety
    /// As for [`Entries::set_breakpoint`].
    pub unsafe fn clear_breakpoint(&self, pc: *const u64) {
        self.restore(pc, State::Breakpoint);
    }
    /// Has calls of the function at `pc` enter its compiled code, which lies at that address. False: there is a breakpoint or other
    /// compiled code.
    ///
    /// # Safety
    /// As for [`Entries::set_breakpoint`], and `pc` is the entry of a function. The code is complete.
    #[must_use]
    pub unsafe fn publish(&self, pc: *const u64, code: u32) -> bool {
        let Some(&Maker { enters, .. }) = self.maker.get() else {
            return false;
        };
        let word = word(pc);
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
        lead(pc).store(code, Ordering::Release);
        // Last: who finds it finds the code, if it acquires before it looks.
        word.store(enters, Ordering::Release);
        true
    }
    /// Has calls of the function at `pc` run its own code again, if they enter compiled code.
    ///
    /// # Safety
    /// As for [`Entries::publish`].
    pub unsafe fn withdraw(&self, pc: *const u64) {
        self.restore(pc, State::Compiled);
    }
    /// Puts the original word back where one of that state stands.
    ///
    /// # Safety
    /// As for [`Entries::set_breakpoint`].
    unsafe fn restore(&self, pc: *const u64, from: State) {
        let mut all = self.patched.write();
        if let Some(p) = all.get(&(pc as usize)).filter(|p| p.state == from) {
            word(pc).store(p.original, Ordering::Release);
            all.remove(&(pc as usize));
            if from == State::Compiled {
                self.lead_nowhere(pc);
            }
        }
    }
    /// Nothing leads to the compiled code of the function at `pc` any more, which had some.
    ///
    /// # Safety
    /// As for [`Entries::publish`].
    unsafe fn lead_nowhere(&self, pc: *const u64) {
        if let Some(m) = self.maker.get() {
            lead(pc).store(m.none, Ordering::Release);
        }
    }
    /// The same, and its maker is told.
    ///
    /// # Safety
    /// As for [`Entries::publish`].
    unsafe fn forget_compiled(&self, pc: *const u64) {
        self.lead_nowhere(pc);
        if let Some(m) = self.maker.get() {
            m.who.forget(pc);
        }
    }
    /// The code at these addresses is about to go; nobody runs it.
    pub fn forget(&self, code: Range<usize>) {
        if self.patched.read().is_empty() {
            return;
        }
        self.patched.write().retain(|&at, p| {
            let goes = code.contains(&at);
            if goes && p.state == State::Compiled {
                // SAFETY: the code has not gone yet; only entries of functions are compiled.
                unsafe { self.forget_compiled(at as *const u64) };
            }
            !goes
        });
    }
    /// Sets the breakpoint of a line that can have one, or clears it.
    ///
    /// # Safety
    /// `pc` is the instruction of such a line, of code that stays for as long as this takes.
    pub unsafe fn set_line_breakpoint(&self, pc: *const u64, on: bool) {
        let _owned = self.patched.write();
        let word = word(pc);
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

/// The number that stands at `pc` at this moment: what is run there.
///
/// # Safety
/// `pc` is an instruction of loaded code.
#[inline(always)]
pub unsafe fn stands_at(pc: *const u64) -> u16 {
    // Patches that lead to something that was made just before take care of the order themselves.
    word(pc).load(Ordering::Relaxed)
}

/// As [`stands_at`], for those who run each instruction: of an atomic load the compiler makes an instruction more. A volatile one is
/// one access too, of an aligned word, and finds one of the numbers that were stored.
///
/// # Safety
/// `pc` is an instruction of loaded code.
#[inline(always)]
pub unsafe fn fetch(pc: *const u64) -> u16 {
    (pc as *const u16).read_volatile()
}

/// The address of the compiled code of the function at `pc`, or what stands for none, at this moment.
///
/// # Safety
/// `pc` is an instruction that a call may lead to.
#[inline(always)]
pub unsafe fn leads_to(pc: *const u64) -> u32 {
    lead(pc).load(Ordering::Acquire)
}

/// The number of the code's own instruction at `pc`: what stands there, or what a breakpoint or the entry to compiled code
/// stands for.
///
/// # Safety
/// `pc` is an instruction of loaded code.
#[inline]
pub unsafe fn opcode_at(pc: *const u64) -> u16 {
    entries().opcode_at(pc)
}

/// Whether a breakpoint of a function stands at `pc`.
///
/// # Safety
/// `pc` is an instruction of loaded code.
#[inline]
pub unsafe fn is_breakpoint(pc: *const u64) -> bool {
    word(pc).load(Ordering::Acquire) == BREAKPOINT
}

/// Whether a line that can have a breakpoint has one.
///
/// # Safety
/// `pc` is the instruction of such a line.
#[inline]
pub unsafe fn has_line_breakpoint(pc: *const u64) -> bool {
    stands_at(pc) == LINE_BREAKPOINT
}
