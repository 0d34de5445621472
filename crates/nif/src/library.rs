//! Libraries that are loaded, and the calls of their functions.
//!
//! # Who keeps a library
//! The module whose functions it replaces; each resource type that has callbacks in it, as long as there are resources of the
//! type; and calls under way that it has asked for. With the last of them `unload` is called, and it is closed.

use crate::abi::{NifFn, UnloadFn};
use crate::env::{self, ErlNifEnv};
use crate::resource::ResourceType;
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

/// The callbacks that `enif_set_option` has registered.
pub type Callback = unsafe extern "C" fn(*mut c_void);

/// A library.
pub struct Library {
    /// From `dlopen`.
    handle: *mut c_void,
    /// The module that it belongs to.
    pub module: Term,
    /// The name of its file, for reports.
    pub path: String,
    pub unload: Option<UnloadFn>,
    pub priv_data: AtomicPtr<c_void>,
    /// `load` or `upgrade` has accepted it.
    pub accepted: AtomicBool,
    /// It has opened resource types.
    pub owns_types: AtomicBool,
    /// They stay as long as it does.
    pub opened: Mutex<Vec<Arc<ResourceType>>>,
    /// Bytes of `ErlNifResourceTypeInit` as it knows it; 0: it knows no members.
    pub type_init_bytes: usize,
    /// Boxed: code has their addresses before all are there.
    #[allow(clippy::vec_box)]
    functions: Vec<Box<Function>>,
    /// `ERL_NIF_OPT_DELAY_HALT`
    pub delays_halt: AtomicBool,
    /// `ERL_NIF_OPT_ON_HALT`
    pub on_halt: Mutex<Option<Callback>>,
    /// `ERL_NIF_OPT_ON_UNLOAD_THREAD`
    pub on_unload_thread: Mutex<Option<Callback>>,
    /// The functions of a tracer module, if it is one's library.
    pub(crate) tracer: OnceLock<Option<crate::tracer::Functions>>,
    /// Calls under way, if halting has to wait for them.
    running: AtomicUsize,
}

// SAFETY: what is not atomic or locked is written before anybody else knows the library. The addresses are its own.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// A function of a library, in the place of an Erlang one or to be called in its place.
#[repr(C)]
pub struct Function {
    pub base: NifFunction,
    fptr: NifFn,
    library: *const Library,
}

// SAFETY: nothing of it changes.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// The pool that `flags` of a function, or of `enif_schedule_nif`, ask for. None: no such flags.
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

/// The libraries that there are.
pub fn loaded() -> Vec<Arc<Library>> {
    let l = LOADED.lock();
    l.iter().filter_map(Weak::upgrade).collect()
}

impl Library {
    /// `handle` is open, and closed with the library.
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
    /// Adds a function; only while nobody else knows the library.
    pub fn add(&mut self, mfa: (Term, Term, u32), pool: Pool, fptr: NifFn) {
        self.functions
            .push(Function::new(mfa, pool, fptr, std::ptr::null()));
    }
    /// Its functions, which know it from now on.
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
    /// Another count of a library that is in use.
    ///
    /// # Safety
    /// `l` is from [`Library::publish`], and somebody has a count.
    pub unsafe fn counted(l: *const Library) -> Arc<Library> {
        Arc::increment_strong_count(l);
        Arc::from_raw(l)
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
            // SAFETY: the library is open still, and nothing else of it is called any more.
            env::callback(self, |e| unsafe { f(e, data) });
        }
        let mut l = LOADED.lock();
        l.retain(|w| w.strong_count() > 0);
        drop(l);
        // SAFETY: nothing leads to its code any more.
        unsafe { libc::dlclose(self.handle) };
    }
}

/// The hold of a module on its library.
pub struct Attached(pub Arc<Library>);

impl Drop for Attached {
    fn drop(&mut self) {
        crate::resource::orphan(&self.0);
        let l = self.0.clone();
        let f = *l.on_unload_thread.lock();
        if let Some(f) = f {
            // SAFETY: the library is open as long as this holds it.
            purlin_kernel::later::on_each(Arc::new(move || unsafe {
                f(l.priv_data.load(Ordering::Acquire));
            }));
        }
    }
}

thread_local! {
    /// The environment of the calls that this thread makes for processes. Its function is null where there is none under way.
    static HERE: UnsafeCell<ManuallyDrop<ErlNifEnv>> =
        const { UnsafeCell::new(ManuallyDrop::new(ErlNifEnv::of_process(null_mut(), null(), null()))) };
}

thread_local! {
    /// This thread, a dirty one, has lent its context for a call.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// A call that this thread makes in a library.
pub struct UnderWay {
    pub module: &'static str,
    pub function: &'static str,
    pub arity: u32,
    /// File of the library.
    pub path: String,
    /// Null: it is a tracer's function, which knows nothing of the process that runs.
    pub cx: *mut Cx,
}

/// The call of this thread in a library, if it is in one.
pub fn under_way() -> Option<UnderWay> {
    // SAFETY: only this thread changes it, which is in the call; the call keeps the function and its library.
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

/// Calls the function that stands in a slot of a module.
///
/// # Safety
/// `f` is a function of a library, made here; `cx` is the context of this thread, and as many terms as its arity are at `args`.
unsafe fn call(cx: *mut Env, args: *const Term, f: *const NifFunction) -> Term {
    let env = HERE.with(UnsafeCell::get) as *mut ErlNifEnv;
    // SAFETY: functions of libraries are made here only; the context is of a thread that runs processes.
    let (f, cx): (&Function, &mut Cx) =
        unsafe { (&*(f as *const Function), known_as::<Process>(cx)) };
    if !(*env).function.is_null() || (*f.library).delays_halt.load(Ordering::Relaxed) {
        return call_apart(cx, args, f);
    }
    run(env, cx, args, f)
}

/// # Safety
/// As for [`call`]; nobody else uses the environment.
#[inline(always)]
unsafe fn run(env: *mut ErlNifEnv, cx: &mut Cx, args: *const Term, f: &Function) -> Term {
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

/// Calls the function on a dirty thread: what arrives at the process is acted on meanwhile. In the midst of another call the process
/// stays with that.
///
/// # Safety
/// As for [`run`].
#[inline(never)]
unsafe fn lending(env: *mut ErlNifEnv, cx: *mut Cx, args: *const Term, f: &Function) -> Term {
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

/// The same where halting waits for the call, or where another call of this thread is under way: that one has its environment again
/// afterwards.
///
/// # Safety
/// As for [`call`].
#[cold]
#[inline(never)]
unsafe fn call_apart(cx: &mut Cx, args: *const Term, f: &Function) -> Term {
    let library = &*f.library;
    let env = HERE.with(UnsafeCell::get) as *mut ErlNifEnv;
    let counted = library.delays_halt.load(Ordering::Relaxed);
    if counted {
        library.running.fetch_add(1, Ordering::SeqCst);
    }
    let outer = env.read();
    env.write(ErlNifEnv::of_process(cx, f.library, null()));
    let value = run(env, cx, args, f);
    // The library is still there: if the process has ended meanwhile, it keeps that.
    // What was there now is empty: see `finish`.
    env.write(outer);
    if counted {
        library.running.fetch_sub(1, Ordering::SeqCst);
    }
    value
}

/// Has a function of a library called by `how`, in the midst of whatever this thread is at: if it fails, the report names it.
///
/// # Safety
/// The library stays open meanwhile.
pub unsafe fn named_here(f: &Function, how: impl FnOnce(NifFn) -> Term) -> Term {
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

/// Makes a call that was asked for in the place of another.
///
/// # Safety
/// As for [`call`]; the process has asked for this call.
unsafe fn call_scheduled(cx: *mut Env, args: *const Term, f: *const NifFunction) -> Term {
    // SAFETY: as for `call`.
    let (f, cx): (&Function, &mut Cx) =
        unsafe { (&*(f as *const Function), known_as::<Process>(cx)) };
    // What it may ask for in turn takes the place of this one, which has to last until it is over.
    let mine = cx.process().ext_mut().scheduled.take();
    // Whoever asks meanwhile is told that the process is in the function in whose place this is called: its module isn't purged.
    if let Some(s) = &mine {
        cx.bif_pc = s.module;
    }
    let value = call_apart(cx, args, f);
    drop(mine);
    value
}

/// The emulator halts, and is to flush: libraries that asked for it are told, and waited for, for that long at most.
pub fn halting(limit: Option<std::time::Duration>) {
    let all = loaded();
    for l in &all {
        let f = *l.on_halt.lock();
        if let Some(f) = f {
            // SAFETY: the library is open.
            unsafe { f(l.priv_data.load(Ordering::Acquire)) };
        }
    }
    let started = std::time::Instant::now();
    let busy = |l: &Arc<Library>| l.running.load(Ordering::SeqCst) > 0;
    while all.iter().any(busy) && limit.is_none_or(|m| started.elapsed() < m) {
        std::thread::sleep(std::time::Duration::from_millis(1));
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
        // The name is for those who trace; it has to be one.
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
        // The Erlang function in whose place all is called: who fails later is told as that.
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
    /// The other options of `enif_set_option`; an error number or 0.
    fn purlin_nif_set_option(env: *mut ErlNifEnv, option: c_int, arg: *mut c_void) -> c_int {
        // SAFETY of the transmutations: the interface has C code give a function of that type, or null.
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

/// Opens the library whose file is called so, but for the end of its name; it may lie in the executable. Null where that fails, and
/// `dlerror` says why.
///
/// All that opens libraries comes here: the emulator, and libraries that open others by `enif_dlopen` and `driver_dl_open`.
pub(crate) fn dl_open(path: &[u8]) -> *mut std::ffi::c_void {
    let file = [path, b".so"].concat();
    let own = match purlin_io::embedded::system_path(&file) {
        Some(Ok(own)) => Some(own),
        // Names end at a zero.
        _ => file
            .split(|b| *b == 0)
            .next()
            .and_then(|f| std::ffi::CString::new(f).ok()),
    };
    let file = own.unwrap_or_default();
    // SAFETY: a string; what the library does as it is opened is its own business.
    unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW) }
}
