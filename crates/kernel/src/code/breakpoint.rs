//! Breakpoints: what stands at the entry of a function whose calls are told or counted, and the frames of such calls.
//!
//! A breakpoint takes the place of the number of the instruction at a function's entry; who set it, and what it stands
//! for, is known to [`Breakpoints`].
//!
//! A call whose return is to be told gets a frame between its own and its caller's: the code that is returned to tells
//! it and returns in turn. Layout: address of that code, module, function, arity, kind (see [`kind`]), and who is
//! told: the tracer of the process (`[]`), that of a session (its number), or another tracer (as [`Tracer::term`] has it).

use super::Module;
use crate::cx::Cx;
use crate::tracer::Tracer;
use purlin_isa::ops::Op;
use purlin_term::Term;
use smallvec::SmallVec;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};

/// The one that sets breakpoints, and knows what they stand for. Where nobody does, there are none.
pub trait Breakpoints: Sync {
    /// The code at these addresses is about to go.
    #[inline]
    fn forget(&self, _code: std::ops::Range<usize>) {}
    /// The code at these addresses is no longer that of its module's functions.
    #[inline]
    fn outdated(&self, _code: std::ops::Range<usize>) {}
    /// A module has become current.
    #[inline]
    fn loaded(&self, _module: &Module) {}
    /// Where a process that starts with `erlang:apply/2` arrives if calls of it are told or counted.
    #[inline]
    fn traced_apply(&self) -> Option<*const u64> {
        None
    }
    /// The number of the instruction that the breakpoint at `pc` stands for.
    ///
    /// # Safety
    /// `pc` is an instruction of loaded code.
    #[inline]
    unsafe fn original(&self, pc: *const u64) -> u16 {
        // SAFETY: by the contract of this function.
        unsafe { *(pc as *const u16) }
    }
    /// A call has come by the breakpoint at `pc`; None if it was cleared just now. The arguments stand in the X registers;
    /// `caller`: where it returns to, trace frames aside.
    #[inline]
    fn passes(&self, _cx: &mut Cx, _pc: *const u64, _caller: *const u64) -> Option<Passed> {
        None
    }
    /// Where the export leads now that led to the word at `pc`; None: no export ever did.
    #[inline]
    fn behind_gate(&self, _pc: *const u64) -> Option<*const u64> {
        None
    }
}

struct Nobody;
impl Breakpoints for Nobody {}

static BREAKPOINTS: OnceLock<&'static dyn Breakpoints> = OnceLock::new();

/// Says who sets breakpoints. Only the first call does.
#[inline]
pub fn set_breakpoints(who: &'static dyn Breakpoints) {
    let _ = BREAKPOINTS.set(who);
}

/// The installed setter of breakpoints.
#[cold]
pub fn breakpoints() -> &'static dyn Breakpoints {
    BREAKPOINTS.get().copied().unwrap_or(&Nobody)
}

/// Words of the frame of a call whose return is told.
pub const FRAME_WORDS: usize = 6;
/// Words of the frame of a call whose time is measured: the address that it returns to, the entry of the function whose
/// time was, in words, and for whom. Functions that recurse deeply have one for each level.
pub const TIME_WORDS: usize = 3;

/// The words of the frame that begins with `word`, if tracing has put it there.
#[inline]
pub fn frame_words(word: u64) -> Option<usize> {
    let stubs = super::stubs();
    if word == stubs.return_trace.as_ptr() as u64 {
        Some(FRAME_WORDS)
    } else if word == stubs.return_time.as_ptr() as u64 {
        Some(TIME_WORDS)
    } else {
        None
    }
}

/// The address that is returned to at last, the frames of trace at the top of the stack aside.
///
/// # Safety
/// `at` is the top of a stack, where a function begins or a native is called through its export.
pub unsafe fn beyond(mut at: *mut Term) -> *const u64 {
    // SAFETY: by the contract of this function; frames of trace have so many words.
    unsafe {
        while let Some(words) = frame_words(*(at as *const u64)) {
            at = at.add(words);
        }
        *(at as *const *const u64)
    }
}

/// The purpose of the frame of a call.
pub mod kind {
    /// Its return is told.
    pub const RETURN: i64 = 1;
    /// Its return is told, and the exception that ends it.
    pub const EXCEPTION: i64 = 2;
    /// Where it returns to is told.
    pub const RETURN_TO: i64 = 3;
}

/// Calls of natives by instructions of their own may have to go by breakpoints.
static NATIVES: AtomicBool = AtomicBool::new(false);

/// Whether any native has ever been traced.
#[inline(always)]
pub fn natives() -> bool {
    NATIVES.load(Ordering::Relaxed)
}

/// A native is traced for the first time.
#[inline]
pub fn natives_are_traced() {
    NATIVES.store(true, Ordering::Relaxed);
}

/// Breakpoints that were made, so that unloading code without any costs nothing.
pub static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether any function has ever been traced.
#[inline]
pub fn any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// Whether the code at `pc` begins with a breakpoint.
///
/// # Safety
/// `pc` is an instruction of loaded code.
#[inline]
pub unsafe fn is_breakpoint(pc: *const u64) -> bool {
    (*(pc as *const AtomicU16)).load(Ordering::Acquire) == number()
}

/// Where a process that starts with `erlang:apply/2` arrives if calls of it are told or counted: at the function's own code,
/// which is not what is called by that name.
#[inline]
pub(crate) fn traced_apply() -> Option<*const u64> {
    if any() {
        breakpoints().traced_apply()
    } else {
        None
    }
}

/// The number of the instruction that a breakpoint is.
#[inline]
pub fn number() -> u16 {
    static N: OnceLock<u16> = OnceLock::new();
    *N.get_or_init(|| Op::Breakpoint.variant(&[]).unwrap_or(0))
}

/// The last word of a frame, which says who is told.
pub enum Whom {
    /// The tracer that the process has, without a session (`[]`) or in one (its number).
    Own(Term),
    Tracer(Tracer),
}

/// A call that came by a breakpoint.
pub struct Passed {
    /// Number of the instruction to run in its place, and where.
    pub original: u16,
    pub entry: *const u64,
    pub mfa: (Term, Term, u32),
    /// The tracers that are told where the call returns to.
    pub return_to: SmallVec<[Term; 2]>,
    /// Returns to be told, in the order in which frames for them are made: kind of frame, and who is told.
    pub returns: SmallVec<[(i64, Whom); 2]>,
    /// The time of the call is measured: the entry of the function whose time was, or 0, and for whom.
    pub time: SmallVec<[(usize, i64); 1]>,
    /// The debugger runs it.
    pub debug: bool,
}
