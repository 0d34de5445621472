//! Breakpoints: what stands at the entry of a function whose calls are told or counted, and the frames of such calls.
//!
//! A breakpoint takes the place of the number of the instruction at a function's entry ([`super::entries`]), or, for calls from
//! other modules only, stands in a word of its own that the export leads to ([`gate`]). Who has set it and why is known to
//! [`Breakpoints`].
//!
//! A call whose return is to be told gets a frame between its own and its caller's: the code that is returned to tells
//! it and returns in turn. Layout: address of that code, module, function, arity, kind (see [`kind`]), and who is
//! told: the tracer of the process (`[]`), that of a session (its number), or another tracer (as [`Tracer::term`] has it).

pub use super::entries::is_breakpoint;
use super::{Module, entries};
use crate::cx::Cx;
use crate::sync::Mutex;
use crate::tracer::Tracer;
use purlin_term::Term;
use purlin_term::fun::{Export, lead_word};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
    /// A call has come by the breakpoint at `pc`; None if it was cleared just now. The arguments stand in the X registers;
    /// `caller`: where it returns to, trace frames aside.
    #[inline]
    fn passes(&self, _cx: &mut Cx, _pc: *const u64, _caller: *const u64) -> Option<Passed> {
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
    if !any() {
        return None;
    }
    let stubs = purlin_native::exports::stubs();
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

/// Words with breakpoints, by the addresses of their exports. None ever goes.
static GATES: Mutex<Option<HashMap<usize, &'static [u64; 2]>>> = Mutex::new(None);

/// The word with a breakpoint that an export leads to while calls from other modules are traced. It is never patched.
pub fn gate(e: &Export) -> *const u64 {
    let mut g = GATES.lock();
    let key = e as *const Export as usize;
    // Before it, as before every instruction that is called, stands what leads compiled code there.
    let new = || {
        &*Box::leak(Box::new([
            lead_word(e.arity),
            u64::from(entries::BREAKPOINT),
        ]))
    };
    let words = g.get_or_insert_default().entry(key).or_insert_with(new);
    &raw const words[1]
}

/// Where the export leads now that led to the word at `pc`; None: no export ever did.
#[cold]
pub fn behind_gate(pc: *const u64) -> Option<*const u64> {
    let g = GATES.lock();
    let (&e, _) = g
        .as_ref()?
        .iter()
        .find(|(_, w)| std::ptr::eq(&raw const w[1], pc))?;
    // SAFETY: the address of an export, which are never freed.
    let e = unsafe { &*(e as *const Export) };
    Some(e.address())
}

/// Calls of natives by instructions of their own may have to go by breakpoints.
static NATIVES: AtomicBool = AtomicBool::new(false);

/// Whether any native has ever been traced.
#[inline(always)]
pub fn natives() -> bool {
    NATIVES.load(Ordering::Relaxed)
}

/// Where that is told, in a byte.
pub fn natives_flag() -> u64 {
    NATIVES.as_ptr() as u64
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

/// The last word of a frame, which says who is told.
pub enum Whom {
    /// The tracer that the process has, without a session (`[]`) or in one (its number).
    Own(Term),
    Tracer(Tracer),
}

/// A call that came by a breakpoint.
pub struct Passed {
    /// Where to go on: at the instruction that is the code's own there, past a breakpoint.
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
