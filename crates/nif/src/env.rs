//! Environments: the places where terms are made, and for whom.
//!
//! | environment | made by | its terms lie | it ends |
//! | --- | --- | --- | --- |
//! | of a process | a function call, `load`, `upgrade` | on the process's heap | with the call |
//! | of a callback | destructor, `down`, `stop`, tracer … | in its fragment | with the call |
//! | independent | `enif_alloc_env` | in its fragment | by `enif_free_env` |
//!
//! # Orderings
//! `priv_data` is loaded with acquire: see `library.rs`.

use crate::library::Library;
use crate::resource::Opening;
use purlin_kernel::cx::{Cx, Fail};
use purlin_kernel::threads::dirty_calls;
use purlin_native::nif::{NifSlot, Scheduled};
use purlin_term::bin::RcBin;
use purlin_term::frag::Fragment;
use purlin_term::off_heap::OffHeap;
use purlin_term::{Alloc, Term, am, copy};
use std::ffi::c_void;
use std::sync::Arc;

/// Memory that is freed together with an environment's terms.
pub enum Temporary {
    /// A copy of inspected bytes.
    Bytes(#[allow(dead_code)] Box<[u8]>),
    /// A count of a block.
    Block(*mut RcBin),
    /// A count of a resource.
    Resource(*mut c_void),
    /// A vector that `enif_inspect_iovec` made. The memory it refers to is kept separately.
    IoVec(#[allow(dead_code)] Box<crate::abi::IoVec>),
    /// The parts of such a vector that do not fit into the vector itself.
    Parts(
        #[allow(dead_code)] Box<[libc::iovec]>,
        #[allow(dead_code)] Box<[*mut RcBin]>,
    ),
}

impl Drop for Temporary {
    fn drop(&mut self) {
        match *self {
            Temporary::Bytes(_) | Temporary::IoVec(_) | Temporary::Parts(..) => {}
            // SAFETY: it owned the reference.
            Temporary::Resource(r) => unsafe { crate::resource::release(r) },
            // SAFETY: it owned the count.
            Temporary::Block(b) => unsafe { RcBin::release(b) },
        }
    }
}

/// An environment, see the module documentation. C code knows it only by its address.
pub struct ErlNifEnv {
    /// The context of the calling process; null if there is none.
    pub(crate) cx: *mut Cx,
    /// The place for terms if they are not made on the heap of that process.
    frag: *mut Fragment,
    /// The library that is called; null in an independent environment.
    pub(crate) library: *const Library,
    /// An address in the module whose function is called.
    pub(crate) module: *const u64,
    /// The function that is called; null in a callback.
    pub(crate) function: *const purlin_native::nif::NifFunction,
    /// The process during whose operation a callback is called, if known; else [`Term::NON_VALUE`].
    pub(crate) on_behalf: Term,
    /// Reason of the exception that was raised, or [`Term::NON_VALUE`].
    exception: Term,
    /// The call that was scheduled in place of the present one.
    scheduled: Option<Box<Scheduled>>,
    /// Resource types opened by `load` or `upgrade`; null in any other call.
    pub(crate) opening: *mut Opening,
    temporary: Vec<Temporary>,
    /// Whether the process is lent for the call: see [`hold`].
    pub(crate) lent: bool,
    /// Whether there may be an exception, a scheduled call, or memory to free.
    left: bool,
}

/// An environment with a fragment of its own.
#[repr(C)]
struct OwnEnv {
    env: ErlNifEnv,
    frag: Fragment,
}

impl ErlNifEnv {
    /// Makes the environment of a call by the process in the context.
    pub const fn of_process(cx: *mut Cx, library: *const Library, module: *const u64) -> ErlNifEnv {
        ErlNifEnv {
            cx,
            frag: std::ptr::null_mut(),
            library,
            module,
            function: std::ptr::null(),
            on_behalf: Term::NON_VALUE,
            exception: Term::NON_VALUE,
            scheduled: None,
            opening: std::ptr::null_mut(),
            temporary: Vec::new(),
            lent: false,
            left: false,
        }
    }
    /// Whether [`ErlNifEnv::finish`] must be called after the function returns.
    #[inline(always)]
    pub fn has_left(&self) -> bool {
        self.left
    }
    /// Frees something together with the environment's terms.
    pub fn keep(&mut self, t: Temporary) {
        self.left = true;
        self.temporary.push(t);
    }

    /// Returns the result of a library function that returned `value` and left something, see
    /// [`ErlNifEnv::left`]. Empties the environment.
    #[cold]
    #[inline(never)]
    pub fn finish(&mut self, value: Term) -> Term {
        self.left = false;
        let (exception, scheduled) = (
            std::mem::replace(&mut self.exception, Term::NON_VALUE),
            self.scheduled.take(),
        );
        // SAFETY: the environment belongs to a process that this thread runs.
        let cx = unsafe { &mut *self.cx };
        let failed = if exception != Term::NON_VALUE {
            Some(cx.error(exception))
        } else if value != Term::NON_VALUE {
            None
        } else if scheduled.is_some() {
            cx.process().ext_mut().scheduled = scheduled;
            Some(Fail::Scheduled)
        } else {
            Some(Fail::Badarg)
        };
        // Dropping these may hand work to others, but runs none here.
        drop(std::mem::take(&mut self.temporary));
        match failed {
            Some(f) => {
                cx.failed = f;
                Term::NON_VALUE
            }
            None => value,
        }
    }

    /// Raises `reason` when the call ends.
    pub fn raise(&mut self, reason: Term) -> Term {
        self.exception = reason;
        self.left = true;
        Term::NON_VALUE
    }
    /// Whether an exception was raised.
    pub fn has_exception(&self) -> bool {
        self.exception != Term::NON_VALUE
    }
    pub fn badarg(&mut self) -> Term {
        self.raise(am::BADARG)
    }
    /// Returns the calling process, if there is one.
    #[inline]
    pub fn process(&mut self) -> Option<&mut Cx> {
        // SAFETY: null, or the context of the thread that runs the call.
        unsafe { self.cx.as_mut() }
    }
    /// Keeps bytes as long as the environment's terms.
    pub fn keep_bytes(&mut self, bytes: Box<[u8]>) -> *mut u8 {
        let p = bytes.as_ptr() as *mut u8;
        self.keep(Temporary::Bytes(bytes));
        p
    }
    /// Takes the fragment, with all its terms, from an independent environment.
    pub fn take_fragment(&mut self) -> Option<Fragment> {
        // SAFETY: null, or the fragment behind this environment.
        unsafe { self.frag.as_mut() }.map(std::mem::take)
    }
    /// Allocates in its own fragment.
    ///
    /// # Safety
    /// The environment has a fragment.
    #[cold]
    #[inline(never)]
    unsafe fn alloc_apart(&mut self, words: usize) -> *mut Term {
        // SAFETY: by the contract there is one, which is this environment's.
        unsafe { (*self.frag).alloc(words) }
    }
    fn clear(&mut self) {
        self.temporary.clear();
        self.exception = Term::NON_VALUE;
        if let Some(f) = self.take_fragment() {
            // SAFETY: C code has promised not to use its terms any more.
            unsafe { f.destroy() };
        }
    }
}

impl ErlNifEnv {
    /// Allocates words if terms are made on the heap of a process and the heap has room.
    #[inline(always)]
    pub fn at_hand(&mut self, words: usize) -> Option<*mut Term> {
        if !self.frag.is_null() {
            return None;
        }
        // SAFETY: without a fragment there is a process.
        unsafe { (*self.cx).heap.alloc_at_hand(words) }
    }
}

impl Alloc for ErlNifEnv {
    #[inline(always)]
    fn alloc(&mut self, words: usize) -> *mut Term {
        if !self.frag.is_null() {
            // SAFETY: there is a fragment.
            return unsafe { self.alloc_apart(words) };
        }
        // SAFETY: without a fragment there is a process.
        unsafe { (*self.cx).heap.alloc(words) }
    }
    #[inline]
    fn off_heap(&mut self) -> &mut OffHeap {
        // SAFETY: without a fragment there is a process; otherwise the fragment is this
        // environment's.
        unsafe {
            match self.frag.is_null() {
                true => (*self.cx).heap.off_heap(),
                false => (*self.frag).off_heap(),
            }
        }
    }
    #[inline]
    fn off_heap_grew(&mut self) {
        if self.frag.is_null() {
            // SAFETY: without a fragment there is a process.
            unsafe { (*self.cx).heap.off_heap_grew() };
        }
    }
}

fn own(library: *const Library) -> Box<OwnEnv> {
    let mut e = Box::new(OwnEnv {
        env: ErlNifEnv::of_process(std::ptr::null_mut(), library, std::ptr::null()),
        frag: Fragment::new(),
    });
    e.env.frag = &raw mut e.frag;
    e
}

/// Calls `f` with the environment of a callback of that library.
pub fn callback<R>(library: *const Library, f: impl FnOnce(*mut ErlNifEnv) -> R) -> R {
    let mut own = OwnEnv {
        env: ErlNifEnv::of_process(std::ptr::null_mut(), library, std::ptr::null()),
        frag: Fragment::new(),
    };
    let e = &raw mut own;
    // SAFETY: it stays in place until the call is over; C code gets the address of its first part.
    unsafe {
        (*e).env.frag = &raw mut (*e).frag;
        let r = f(&raw mut (*e).env);
        (*e).env.clear();
        r
    }
}

/// Gives a function of the interface exclusive access to the process of `env` while the result
/// lives.
///
/// # Safety
/// `env` is null or an environment.
#[inline(always)]
pub unsafe fn hold(env: *const ErlNifEnv) -> Option<dirty_calls::Hold> {
    // SAFETY: null is checked first; otherwise it is an environment.
    unsafe { (!env.is_null() && (*env).lent).then(dirty_calls::hold) }
}

/// Schedules a call of `function` in place of the present call: see `enif_schedule_nif`.
pub fn schedule(
    env: &mut ErlNifEnv,
    function: Box<crate::library::Function>,
    args: Vec<Term>,
    keeps: Arc<Library>,
) {
    let mut s = Box::new(Scheduled {
        code: [0; 2],
        slot: NifSlot::new(),
        args,
        module: env.module,
        owner: None,
    });
    let held = Arc::new((function, keeps));
    s.slot.set(&raw const held.0.base);
    s.owner = Some(held);
    let slot = &raw const s.slot as u64;
    let words = purlin_native::exports::stub(purlin_isa::ops::Op::Nif, &[slot]);
    s.code.copy_from_slice(&words[..2]);
    env.scheduled = Some(s);
    env.left = true;
}

exported! {
    fn enif_alloc_env() -> *mut ErlNifEnv {
        Box::into_raw(own(std::ptr::null())) as *mut ErlNifEnv
    }
    fn enif_free_env(env: *mut ErlNifEnv) {
        if env.is_null() {
            return;
        }
        (*env).clear();
        drop(Box::from_raw(env as *mut OwnEnv));
    }
    fn enif_clear_env(env: *mut ErlNifEnv) {
        (*env).clear();
    }
    fn enif_make_copy(env: *mut ErlNifEnv, term: Term) -> Term {
        if term.is_immed() {
            return term;
        }
        copy::copy(term, &mut *env)
    }
    fn enif_priv_data(env: *mut ErlNifEnv) -> *mut c_void {
        match (*env).library.as_ref() {
            Some(l) => l.priv_data.load(std::sync::atomic::Ordering::Acquire),
            None => std::ptr::null_mut(),
        }
    }
    fn enif_make_badarg(env: *mut ErlNifEnv) -> Term {
        (*env).badarg()
    }
    fn enif_raise_exception(env: *mut ErlNifEnv, reason: Term) -> Term {
        (*env).raise(reason)
    }
    fn enif_has_pending_exception(env: *mut ErlNifEnv, reason: *mut Term) -> i32 {
        let e = (*env).exception;
        if e == Term::NON_VALUE {
            return 0;
        }
        if !reason.is_null() {
            *reason = e;
        }
        1
    }
    fn enif_is_exception(env: *mut ErlNifEnv, term: Term) -> i32 {
        i32::from(term == Term::NON_VALUE && (*env).exception != Term::NON_VALUE)
    }
}
