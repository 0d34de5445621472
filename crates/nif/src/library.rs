//! Loaded libraries, and the calls of their functions.
//!
//! # References to a library
//! A library is kept by the module whose functions it replaces; by each resource type with
//! callbacks in it, as long as there are resources of the type; and by calls that it has scheduled.
//! When the last reference is gone, `unload` is called and the library is closed.
//!
//! # Orderings
//! * `running` counts calls of a library that delays halting. The halting thread calls `on_halt` of
//!   the library and then polls `running` until it is 0. The decrement releases and the load
//!   acquires, so the effects of finished calls are visible; the accesses are `SeqCst`, which is
//!   more than needed. A call that starts after the poll has read 0 is not waited for.
//! * `delays_halt` is relaxed: a library sets it while it is loaded, before the slots of the module
//!   lead to its functions ([`NifSlot::set`] releases, the call acquires).
//! * `priv_data` is read with acquire, and stored by C code: plainly by `load` and `upgrade`,
//!   before the slots are set. `upgrade` may also change that of the former library, whose
//!   functions may be running; by the interface their synchronization is the library's business.
//!
//! [`NifSlot::set`]: purlin_native::nif::NifSlot::set

use crate::abi::{NifFn, UnloadFn};
use crate::env::{self, ErlNifEnv};
use crate::resource::ResourceType;
use purlin_kernel::clock;
use purlin_kernel::cx::Cx;
use purlin_kernel::process::Process;
use purlin_kernel::threads::dirty_calls;
use purlin_native::bif::known_as;
use purlin_native::cx::Env;
use purlin_native::nif::{NifFunction, Pool};
use purlin_term::sync::Mutex;
use purlin_term::{Term, atom};
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// A callback registered by `enif_set_option`.
pub type Callback = unsafe extern "C" fn(*mut c_void);

/// A native library.
pub struct Library {
    /// From `dlopen`.
    handle: *mut c_void,
    /// The module that it belongs to.
    pub module: Term,
    /// The name of its file, for reports.
    pub path: String,
    pub unload: Option<UnloadFn>,
    pub priv_data: AtomicPtr<c_void>,
    /// Whether `load` or `upgrade` has accepted it.
    pub accepted: AtomicBool,
    /// Whether it has opened resource types.
    pub owns_types: AtomicBool,
    /// Resource types that live as long as the library.
    pub opened: Mutex<Vec<Arc<ResourceType>>>,
    /// Size in bytes of its version of `ErlNifResourceTypeInit`; 0 if that has no `members` field.
    pub type_init_bytes: usize,
    /// Boxed, since code has their addresses before all are added.
    #[allow(clippy::vec_box)]
    functions: Vec<Box<Function>>,
    /// `ERL_NIF_OPT_DELAY_HALT`
    pub delays_halt: AtomicBool,
    /// `ERL_NIF_OPT_ON_HALT`
    pub on_halt: Mutex<Option<Callback>>,
    /// `ERL_NIF_OPT_ON_UNLOAD_THREAD`
    pub on_unload_thread: Mutex<Option<Callback>>,
    /// The functions of a tracer module, if this is the library of one.
    pub(crate) tracer: OnceLock<Option<crate::tracer::Functions>>,
    /// Number of calls under way, if halting must wait for them.
    running: AtomicUsize,
}

// SAFETY: fields that are neither atomic nor locked are written before the library is published.
// The addresses are its own.
unsafe impl Send for Library {}
// SAFETY: fields that are neither atomic nor locked do not change once it is published.
unsafe impl Sync for Library {}

/// A function of a library that replaces an Erlang function, or is scheduled in place of one.
#[repr(C)]
pub struct Function {
    pub base: NifFunction,
    fptr: NifFn,
    library: *const Library,
}

// SAFETY: immutable.
unsafe impl Send for Function {}
// SAFETY: immutable.
unsafe impl Sync for Function {}

/// Returns the pool for the flags of a function, or of `enif_schedule_nif`. None for invalid flags.
pub fn pool(flags: c_uint) -> Option<Pool> {
    match flags {
        0 => Some(Pool::Normal),
        crate::abi::DIRTY_CPU => Some(Pool::DirtyCpu),
        crate::abi::DIRTY_IO => Some(Pool::DirtyIo),
        _ => None,
    }
}

impl Function {
    pub fn new(
        (module, function, arity): (Term, Term, u32),
        pool: Pool,
        fptr: NifFn,
        library: *const Library,
    ) -> Box<Function> {
        Box::new(Function {
            base: NifFunction {
                call,
                module,
                function,
                arity,
                first: 0,
                pool,
                plain: pool == Pool::Normal,
            },
            fptr,
            library,
        })
    }
}

/// All libraries.
static LOADED: Mutex<Vec<Weak<Library>>> = Mutex::new(Vec::new());

/// Returns all libraries that exist.
pub fn loaded() -> Vec<Arc<Library>> {
    let l = LOADED.lock();
    l.iter().filter_map(Weak::upgrade).collect()
}

impl Library {
    /// Makes a library from an open `handle`, which is closed with it.
    pub fn new(
        handle: *mut c_void,
        module: Term,
        path: String,
        unload: Option<UnloadFn>,
        type_init_bytes: usize,
    ) -> Library {
        Library {
            handle,
            module,
            path,
            unload,
            priv_data: AtomicPtr::new(std::ptr::null_mut()),
            accepted: AtomicBool::new(false),
            owns_types: AtomicBool::new(false),
            opened: Mutex::new(Vec::new()),
            type_init_bytes,
            functions: Vec::new(),
            delays_halt: AtomicBool::new(false),
            on_halt: Mutex::new(None),
            on_unload_thread: Mutex::new(None),
            tracer: OnceLock::new(),
            running: AtomicUsize::new(0),
        }
    }
    /// Adds a function. Only before the library is published.
    pub fn add(&mut self, mfa: (Term, Term, u32), pool: Pool, fptr: NifFn) {
        self.functions
            .push(Function::new(mfa, pool, fptr, std::ptr::null()));
    }
    /// Publishes the library; from now on its functions refer to it.
    pub fn publish(mut self) -> Arc<Library> {
        let mut functions = std::mem::take(&mut self.functions);
        Arc::new_cyclic(|me| {
            for f in &mut functions {
                f.library = me.as_ptr();
            }
            LOADED.lock().push(me.clone());
            self.functions = functions;
            self
        })
    }
    pub fn functions(&self) -> &[Box<Function>] {
        &self.functions
    }
    /// Returns another reference to a library.
    ///
    /// # Safety
    /// `l` is from [`Library::publish`], and a reference to it exists.
    pub unsafe fn counted(l: *const Library) -> Arc<Library> {
        // SAFETY: the pointer came from an `Arc`, of which a count exists.
        unsafe {
            Arc::increment_strong_count(l);
            Arc::from_raw(l)
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if self.handle.is_null() {
            return;
        }
        if let Some(f) = self
            .unload
            .filter(|_| self.accepted.load(Ordering::Acquire))
        {
            let data = self.priv_data.load(Ordering::Acquire);
            // SAFETY: the library is still open, and nothing else of it is called any more.
            env::callback(self, |e| unsafe { f(e, data) });
        }
        let mut l = LOADED.lock();
        l.retain(|w| w.strong_count() > 0);
        drop(l);
        // SAFETY: nothing leads to its code any more.
        unsafe { libc::dlclose(self.handle) };
    }
}

/// A module's reference to its library.
pub struct Attached(pub Arc<Library>);

impl Drop for Attached {
    fn drop(&mut self) {
        crate::resource::orphan(&self.0);
        let l = self.0.clone();
        let f = *l.on_unload_thread.lock();
        if let Some(f) = f {
            // SAFETY: the library is open as long as this reference lives.
            purlin_kernel::later::on_each(Arc::new(move || unsafe {
                f(l.priv_data.load(Ordering::Acquire));
            }));
        }
    }
}

thread_local! {
    /// The environment of the calls that this thread makes for processes. Its function is null
    /// while there is none.
    static HERE: UnsafeCell<ManuallyDrop<ErlNifEnv>> =
        const {
            UnsafeCell::new(ManuallyDrop::new(ErlNifEnv::of_process(
                null_mut(),
                null(),
                null(),
            )))
        };
}

thread_local! {
    /// Whether this thread, a dirty one, has lent its context for a call.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// A call of this thread in a library.
pub struct UnderWay {
    pub module: &'static str,
    pub function: &'static str,
    pub arity: u32,
    /// File of the library.
    pub path: String,
    /// Null for a function of a tracer, which does not know the running process.
    pub cx: *mut Cx,
}

/// Returns the library call of this thread, if there is one.
pub fn under_way() -> Option<UnderWay> {
    // SAFETY: only this thread changes it, and this thread is in the call, which keeps function and
    // library.
    unsafe {
        let env = &*HERE.with(UnsafeCell::get);
        let f = (env.function as *const Function).as_ref()?;
        Some(UnderWay {
            module: atom::name(f.base.module),
            function: atom::name(f.base.function),
            arity: f.base.arity,
            path: f.library.as_ref()?.path.clone(),
            cx: env.cx,
        })
    }
}

/// Calls the function in a slot of a module.
///
/// # Safety
/// `f` is a function of a library, made here; `cx` is the context of this thread, and `args` points
/// to as many terms as its arity.
unsafe fn call(cx: *mut Env, args: *const Term, f: *const NifFunction) -> Term {
    let env = HERE.with(UnsafeCell::get) as *mut ErlNifEnv;
    // SAFETY: functions of libraries are made only here; the context belongs to a thread that runs
    // processes.
    let (f, cx): (&Function, &mut Cx) =
        unsafe { (&*(f as *const Function), known_as::<Process>(cx)) };
    // SAFETY: the environment is this thread's, the slot keeps the library, and the rest is the
    // contract of this function. Where a function is under way its environment is not used.
    unsafe {
        if !(*env).function.is_null() || (*f.library).delays_halt.load(Ordering::Relaxed) {
            return call_apart(cx, args, f);
        }
        run(env, cx, args, f)
    }
}

/// Calls the function in an environment.
///
/// # Safety
/// The contract of [`call`] holds; nobody else uses the environment.
#[inline(always)]
unsafe fn run(env: *mut ErlNifEnv, cx: &mut Cx, args: *const Term, f: &Function) -> Term {
    // SAFETY: nobody else uses the environment; by the interface the function takes these
    // arguments.
    unsafe {
        (*env).cx = cx;
        (*env).library = f.library;
        (*env).module = cx.bif_pc;
        (*env).function = &raw const f.base;
        let value = match cx.dirty {
            true => lending(env, cx, args, f),
            false => (f.fptr)(env, f.base.arity as c_int, args),
        };
        (*env).function = null();
        if value == Term::NON_VALUE || (*env).has_left() {
            return (*env).finish(value);
        }
        value
    }
}

/// Calls the function on a dirty thread. Signals that arrive at the process are handled meanwhile.
/// A call inside another call does not lend the process again.
///
/// # Safety
/// The contract of [`run`] holds.
#[inline(never)]
unsafe fn lending(env: *mut ErlNifEnv, cx: *mut Cx, args: *const Term, f: &Function) -> Term {
    // SAFETY: by the contract of this function; the process is lent only while this thread waits.
    unsafe {
        if WITHIN.get() {
            return (f.fptr)(env, f.base.arity as c_int, args);
        }
        WITHIN.set(true);
        (*env).lent = true;
        let value = dirty_calls::lend(cx, || (f.fptr)(env, f.base.arity as c_int, args));
        (*env).lent = false;
        WITHIN.set(false);
        value
    }
}

/// Does the same as [`call`] if halting must wait for the call, or if this thread is inside another
/// call, whose environment is restored afterwards.
///
/// # Safety
/// The contract of [`call`] holds.
#[cold]
#[inline(never)]
unsafe fn call_apart(cx: &mut Cx, args: *const Term, f: &Function) -> Term {
    // SAFETY: the environment is this thread's; that of an outer call is put aside and restored.
    unsafe {
        let library = &*f.library;
        let env = HERE.with(UnsafeCell::get) as *mut ErlNifEnv;
        let counted = library.delays_halt.load(Ordering::Relaxed);
        if counted {
            library.running.fetch_add(1, Ordering::SeqCst);
        }
        let outer = env.read();
        env.write(ErlNifEnv::of_process(cx, f.library, null()));
        let value = run(env, cx, args, f);
        // The library still exists: if the process has ended meanwhile, it keeps the library. The
        // environment overwritten here is empty: see `finish`.
        env.write(outer);
        if counted {
            library.running.fetch_sub(1, Ordering::SeqCst);
        }
        value
    }
}

/// Calls a function of a library through `how`, in the middle of anything else that this thread
/// does. If it fails, the report names it.
///
/// # Safety
/// The library stays open meanwhile.
pub unsafe fn named_here(f: &Function, how: impl FnOnce(NifFn) -> Term) -> Term {
    // SAFETY: the library is open; the environment is this thread's, and what changes is restored.
    unsafe {
        let library = &*f.library;
        let env = HERE.with(UnsafeCell::get) as *mut ErlNifEnv;
        let counted = library.delays_halt.load(Ordering::Relaxed);
        if counted {
            library.running.fetch_add(1, Ordering::SeqCst);
        }
        let (function, cx) = ((*env).function, (*env).cx);
        (*env).function = &raw const f.base;
        (*env).cx = null_mut();
        let value = how(f.fptr);
        (*env).function = function;
        (*env).cx = cx;
        if counted {
            library.running.fetch_sub(1, Ordering::SeqCst);
        }
        value
    }
}

/// Makes a call that was scheduled in place of another.
///
/// # Safety
/// The contract of [`call`] holds; the process has scheduled this call.
unsafe fn call_scheduled(cx: *mut Env, args: *const Term, f: *const NifFunction) -> Term {
    // SAFETY: the contract of `call`.
    let (f, cx): (&Function, &mut Cx) =
        unsafe { (&*(f as *const Function), known_as::<Process>(cx)) };
    // A call that it schedules in turn replaces this one, which must live until it is over.
    let mine = cx.process().ext_mut().scheduled.take();
    // A purge that asks meanwhile finds the process in the function that this call replaces, so
    // that the module is not purged.
    if let Some(s) = &mine {
        cx.bif_pc = s.module;
    }
    // SAFETY: by the contract of this function.
    let value = unsafe { call_apart(cx, args, f) };
    drop(mine);
    value
}

/// Called when the emulator halts and is to flush: notifies the libraries that asked for it, and
/// waits for them up to `limit`.
pub fn halting(limit: Option<std::time::Duration>) {
    let all = loaded();
    for l in &all {
        let f = *l.on_halt.lock();
        if let Some(f) = f {
            // SAFETY: the library is open.
            unsafe { f(l.priv_data.load(Ordering::Acquire)) };
        }
    }
    let until = limit.map(clock::after);
    let busy = |l: &Arc<Library>| l.running.load(Ordering::SeqCst) > 0;
    while all.iter().any(busy) && until.is_none_or(|at| clock::elapsed() < at) {
        clock::pause(std::time::Duration::from_millis(1));
    }
}

exported! {
    fn enif_schedule_nif(
        env: *mut ErlNifEnv,
        name: *const std::ffi::c_char,
        flags: c_int,
        fptr: Option<NifFn>,
        argc: c_int,
        argv: *const Term,
    ) -> Term {
        let env = &mut *env;
        // The name is for tracing; it must be valid.
        let named = crate::terms::latin1_atom(crate::terms::c_bytes(name)).is_some();
        let (true, Some(fptr), Some(pool)) = (named, fptr, pool(flags as c_uint)) else {
            return env.badarg();
        };
        let most = purlin_kernel::cx::MAX_ARGS as c_int;
        if !(0..=most).contains(&argc) || env.library.is_null() || env.function.is_null() {
            return env.badarg();
        }
        let args = crate::terms::slice(argv, argc as usize);
        let library = Library::counted(env.library);
        let f = &*env.function;
        // The Erlang function that is replaced: a later failure is reported under its name.
        let mut later = Function::new((f.module, f.function, argc as u32), pool, fptr, env.library);
        let (n, more) = (f.arity as usize, f.first as usize);
        let first = if more > 0 { n..n + more } else { 0..n };
        later.base.call = call_scheduled;
        later.base.plain = false;
        later.base.first = first.len() as u32;
        let mut all = args.to_vec();
        all.extend_from_slice(&(&(*env.cx).x)[first]);
        env::schedule(env, later, all, library);
        Term::NON_VALUE
    }
    /// Handles the other options of `enif_set_option`; returns an error number or 0.
    fn purlin_nif_set_option(env: *mut ErlNifEnv, option: c_int, arg: *mut c_void) -> c_int {
        // SAFETY of the transmute: by the interface C code passes a function of that type, or null.
        let env = &*env;
        let Some(l) = env.library.as_ref().filter(|_| !env.opening.is_null()) else {
            return libc::EINVAL;
        };
        let f = std::mem::transmute::<*mut c_void, Option<Callback>>(arg);
        let set = |to: &Mutex<Option<Callback>>| {
            let mut to = to.lock();
            if f.is_none() || to.is_some() {
                return libc::EINVAL;
            }
            *to = f;
            0
        };
        match option {
            1 if l.delays_halt.swap(true, Ordering::Relaxed) => libc::EINVAL,
            1 => 0,
            2 => set(&l.on_halt),
            3 => set(&l.on_unload_thread),
            _ => libc::EINVAL,
        }
    }
}

/// Opens the library with the file name `path` plus extension; it may be part of the executable.
/// Returns null on failure, and `dlerror` says why.
///
/// All opening of libraries comes here: by the emulator, and by libraries (`enif_dlopen`,
/// `driver_dl_open`).
pub(crate) fn dl_open(path: &[u8]) -> *mut std::ffi::c_void {
    let file = [path, b".so"].concat();
    let own = match purlin_io::embedded::system_path(&file) {
        Some(Ok(own)) => Some(own),
        // Names end at a zero byte.
        _ => file
            .split(|b| *b == 0)
            .next()
            .and_then(|f| std::ffi::CString::new(f).ok()),
    };
    let file = own.unwrap_or_default();
    // SAFETY: a string; what the library does when it is opened is its own responsibility.
    unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW) }
}
