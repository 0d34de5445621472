//! Breakpoints at the entries of functions whose calls are traced or counted, and the stack frames
//! of such calls.
//!
//! A breakpoint replaces the number of the instruction at a function's entry ([`super::entries`]).
//! For calls from other modules only, it is a word of its own that the export leads to ([`gate`]).
//! [`Breakpoints`] knows who has set it and why.
//!
//! A call whose return is traced gets a frame between its own and its caller's. The code at the
//! return address of that frame reports the return and returns in turn. Layout: the address of that
//! code, module, function, arity, kind (see [`kind`]), and the receiver: the tracer of the process
//! (`[]`), that of a session (its number), or another tracer (as returned by [`Tracer::term`]).

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

/// The owner of breakpoints, who knows their purposes. Without one there are no breakpoints.
pub trait Breakpoints: Sync {
    /// Called before the code at these addresses is freed.
    #[inline]
    fn forget(&self, _code: std::ops::Range<usize>) {}
    /// Called when the code at these addresses no longer belongs to the current version of its
    /// module.
    #[inline]
    fn outdated(&self, _code: std::ops::Range<usize>) {}
    /// Called when a module has become current.
    #[inline]
    fn loaded(&self, _module: &Module) {}
    /// Returns the start address of a process that begins with `erlang:apply/2`, if calls of that
    /// function are traced or counted.
    #[inline]
    fn traced_apply(&self) -> Option<*const u64> {
        None
    }
    /// Handles a call that has reached the breakpoint at `pc`. Returns None if the breakpoint was
    /// cleared just before. The arguments are in the X registers. `caller` is the return address,
    /// with trace frames skipped.
    #[inline]
    fn passes(&self, _cx: &mut Cx, _pc: *const u64, _caller: *const u64) -> Option<Passed> {
        None
    }
}

struct Nobody;
impl Breakpoints for Nobody {}

static BREAKPOINTS: OnceLock<&'static dyn Breakpoints> = OnceLock::new();

/// Installs the owner of breakpoints. Only the first call has an effect.
#[inline]
pub fn set_breakpoints(who: &'static dyn Breakpoints) {
    let _ = BREAKPOINTS.set(who);
}

/// The installed owner of breakpoints.
#[cold]
pub fn breakpoints() -> &'static dyn Breakpoints {
    BREAKPOINTS.get().copied().unwrap_or(&Nobody)
}

/// Words of the frame of a call whose return is traced.
pub const FRAME_WORDS: usize = 6;
/// Words of the frame of a call whose time is measured: return address, entry of the function that
/// was charged before, in words, and the receiver. A function that recurses deeply has one frame
/// for each level.
pub const TIME_WORDS: usize = 3;

/// Returns the size of the frame that begins with `word`, in words, if it is a frame of tracing.
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

/// Returns the return address below the trace frames at the top of the stack.
///
/// # Safety
/// `at` is the top of a stack, at the beginning of a function or where a native is called through
/// its export.
pub unsafe fn return_address(mut at: *mut Term) -> *const u64 {
    // SAFETY: by the contract of this function; a trace frame has that many words.
    unsafe {
        while let Some(words) = frame_words(*(at as *const u64)) {
            at = at.add(words);
        }
        *(at as *const *const u64)
    }
}

/// Purposes of frames.
pub mod kind {
    /// Report the return.
    pub const RETURN: i64 = 1;
    /// Report the return, or the exception that ends the call.
    pub const EXCEPTION: i64 = 2;
    /// Report the place that the call returns to.
    pub const RETURN_TO: i64 = 3;
}

/// Words with breakpoints, by the addresses of their exports. They are never freed.
static GATES: Mutex<Option<HashMap<usize, &'static [u64; 2]>>> = Mutex::new(None);

/// Returns the word with a breakpoint that an export leads to while calls from other modules are
/// traced. It is never patched.
pub fn gate(e: &Export) -> *const u64 {
    let mut g = GATES.lock();
    let key = e as *const Export as usize;
    // The lead word for compiled code precedes it, as it precedes every callable instruction.
    let new = || {
        &*Box::leak(Box::new([
            lead_word(e.arity),
            u64::from(entries::BREAKPOINT),
        ]))
    };
    let words = g.get_or_insert_default().entry(key).or_insert_with(new);
    &raw const words[1]
}

/// Returns the present target of the export that led to the word at `pc`; None if no export ever
/// did.
#[cold]
pub fn behind_gate(pc: *const u64) -> Option<*const u64> {
    let g = GATES.lock();
    let (&e, _) = g
        .as_ref()?
        .iter()
        .find(|(_, w)| std::ptr::eq(&raw const w[1], pc))?;
    // SAFETY: the address of an export; exports are never freed.
    let e = unsafe { &*(e as *const Export) };
    Some(e.address())
}

/// Whether instructions that call natives directly may have to take breakpoints into account.
static NATIVES: AtomicBool = AtomicBool::new(false);

/// Whether any native has ever been traced.
#[inline(always)]
pub fn natives() -> bool {
    NATIVES.load(Ordering::Relaxed)
}

/// Returns the address of that flag, which is one byte.
pub fn natives_flag() -> u64 {
    NATIVES.as_ptr() as u64
}

/// Notes that a native is traced for the first time.
#[inline]
pub fn natives_are_traced() {
    NATIVES.store(true, Ordering::Relaxed);
}

/// Number of breakpoints ever made, so that unloading code that has none costs nothing.
pub static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether any function has ever been traced.
#[inline]
pub fn any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// Returns the code of the function `erlang:apply/2`, if its calls are traced or counted: a process
/// that is spawned with it begins there. (A call by that name runs other code.)
#[inline]
pub(crate) fn traced_apply() -> Option<*const u64> {
    if any() {
        breakpoints().traced_apply()
    } else {
        None
    }
}

/// The receiver of a report: the last word of a frame.
pub enum Whom {
    /// The tracer of the process, either without a session (`[]`) or in a session (its number).
    Own(Term),
    Tracer(Tracer),
}

/// A call that has passed a breakpoint.
pub struct Passed {
    /// The address at which to continue: the original instruction, behind the breakpoint.
    pub entry: *const u64,
    pub mfa: (Term, Term, u32),
    /// The tracers that receive the place that the call returns to.
    pub return_to: SmallVec<[Term; 2]>,
    /// Returns to report, in the order in which their frames are pushed: kind of frame and
    /// receiver.
    pub returns: SmallVec<[(i64, Whom); 2]>,
    /// Measurements of the call's time: the entry of the function that was charged before, or 0,
    /// and the receiver.
    pub time: SmallVec<[(usize, i64); 1]>,
    /// Whether the debugger runs the function.
    pub debug: bool,
}
