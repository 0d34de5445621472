//! Threads of libraries, their locks, and thread-specific data: those of the system, with names.
//!
//! # Invariants
//! * Misuse of a lock, which is undefined in C, ends the emulator with the name of the call
//!   ([`check`]).
//! * The key of destroyed thread-specific data is not reused, so no data appears under another key.

use purlin_term::sync::Mutex as Lock;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// A name given by C code.
struct Name(CString);

impl Name {
    fn of(p: *const c_char) -> Name {
        match p.is_null() {
            true => Name(CString::default()),
            // SAFETY: by the interface C code passes strings.
            false => Name(unsafe { CStr::from_ptr(p) }.to_owned()),
        }
    }
    fn ptr(&self) -> *mut c_char {
        self.0.as_ptr() as *mut c_char
    }
}

/// `ErlNifMutex`
pub struct Mutex {
    lock: libc::pthread_mutex_t,
    name: Name,
}

/// `ErlNifCond`
pub struct Cond {
    cond: libc::pthread_cond_t,
    name: Name,
}

/// `ErlNifRWLock`
pub struct RwLock {
    lock: libc::pthread_rwlock_t,
    name: Name,
}

/// `ErlNifThreadOpts`
#[repr(C)]
pub struct Options {
    /// In kilowords; below 0: as the system has it.
    suggested_stack_size: c_int,
}

/// The thread behind an `ErlNifTid`.
pub struct Thread {
    id: Cell<libc::pthread_t>,
    name: Name,
    /// Whether C code has created it, and joins it.
    joinable: bool,
}

thread_local! {
    static MINE: Cell<*mut Thread> = const { Cell::new(std::ptr::null_mut()) };
    /// Thread-specific data of this thread, by key.
    static KEPT: RefCell<HashMap<c_int, usize>> = RefCell::default();
}

/// Minimum and maximum size of a stack in kilowords.
const LEAST_STACK: c_int = 16;
const MOST_STACK: c_int = 1 << 20;

unsafe extern "C" {
    fn purlin_nif_thread_start(
        id: *mut libc::pthread_t,
        of_rust: *mut c_void,
        run: Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>,
        arg: *mut c_void,
        stack: usize,
    ) -> c_int;
}

/// Names of the keys of thread-specific data; None for destroyed keys. Keys are not reused, so that
/// no data appears under another key.
static KEYS: Lock<Vec<Option<Name>>> = Lock::new(Vec::new());

/// Ends the emulator if a call fails that can fail only because C code misuses a lock.
pub fn check(r: c_int, what: &str) {
    if r != 0 {
        let why = std::io::Error::from_raw_os_error(r);
        purlin_kernel::halt::fatal(&format!("A native library misuses a lock: {what}: {why}"));
    }
}

/// Does the same as [`check`] for attempts to lock. Returns whether another thread held the lock.
fn busy(r: c_int, what: &str) -> c_int {
    match r {
        libc::EBUSY | libc::EDEADLK => libc::EBUSY,
        r => {
            check(r, what);
            0
        }
    }
}

exported! {
    fn enif_mutex_create(name: *const c_char) -> *mut Mutex {
        Box::into_raw(Box::new(Mutex {
            lock: libc::PTHREAD_MUTEX_INITIALIZER,
            name: Name::of(name),
        }))
    }
    fn enif_mutex_destroy(m: *mut Mutex) {
        if !m.is_null() {
            check(libc::pthread_mutex_destroy(&raw mut (*m).lock), "enif_mutex_destroy");
            drop(Box::from_raw(m));
        }
    }
    fn enif_mutex_trylock(m: *mut Mutex) -> c_int {
        busy(libc::pthread_mutex_trylock(&raw mut (*m).lock), "enif_mutex_trylock")
    }
    fn enif_mutex_lock(m: *mut Mutex) {
        check(libc::pthread_mutex_lock(&raw mut (*m).lock), "enif_mutex_lock");
    }
    fn enif_mutex_unlock(m: *mut Mutex) {
        check(libc::pthread_mutex_unlock(&raw mut (*m).lock), "enif_mutex_unlock");
    }
    fn enif_mutex_name(m: *mut Mutex) -> *mut c_char {
        if m.is_null() { std::ptr::null_mut() } else { (*m).name.ptr() }
    }

    fn enif_cond_create(name: *const c_char) -> *mut Cond {
        Box::into_raw(Box::new(Cond {
            cond: libc::PTHREAD_COND_INITIALIZER,
            name: Name::of(name),
        }))
    }
    fn enif_cond_destroy(c: *mut Cond) {
        if !c.is_null() {
            check(libc::pthread_cond_destroy(&raw mut (*c).cond), "enif_cond_destroy");
            drop(Box::from_raw(c));
        }
    }
    fn enif_cond_signal(c: *mut Cond) {
        check(libc::pthread_cond_signal(&raw mut (*c).cond), "enif_cond_signal");
    }
    fn enif_cond_broadcast(c: *mut Cond) {
        check(libc::pthread_cond_broadcast(&raw mut (*c).cond), "enif_cond_broadcast");
    }
    fn enif_cond_wait(c: *mut Cond, m: *mut Mutex) {
        let r = libc::pthread_cond_wait(&raw mut (*c).cond, &raw mut (*m).lock);
        check(r, "enif_cond_wait");
    }
    fn enif_cond_name(c: *mut Cond) -> *mut c_char {
        if c.is_null() { std::ptr::null_mut() } else { (*c).name.ptr() }
    }

    fn enif_rwlock_create(name: *const c_char) -> *mut RwLock {
        Box::into_raw(Box::new(RwLock {
            lock: libc::PTHREAD_RWLOCK_INITIALIZER,
            name: Name::of(name),
        }))
    }
    fn enif_rwlock_destroy(l: *mut RwLock) {
        if !l.is_null() {
            check(libc::pthread_rwlock_destroy(&raw mut (*l).lock), "enif_rwlock_destroy");
            drop(Box::from_raw(l));
        }
    }
    fn enif_rwlock_tryrlock(l: *mut RwLock) -> c_int {
        busy(libc::pthread_rwlock_tryrdlock(&raw mut (*l).lock), "enif_rwlock_tryrlock")
    }
    fn enif_rwlock_rlock(l: *mut RwLock) {
        check(libc::pthread_rwlock_rdlock(&raw mut (*l).lock), "enif_rwlock_rlock");
    }
    fn enif_rwlock_runlock(l: *mut RwLock) {
        check(libc::pthread_rwlock_unlock(&raw mut (*l).lock), "enif_rwlock_runlock");
    }
    fn enif_rwlock_tryrwlock(l: *mut RwLock) -> c_int {
        busy(libc::pthread_rwlock_trywrlock(&raw mut (*l).lock), "enif_rwlock_tryrwlock")
    }
    fn enif_rwlock_rwlock(l: *mut RwLock) {
        check(libc::pthread_rwlock_wrlock(&raw mut (*l).lock), "enif_rwlock_rwlock");
    }
    fn enif_rwlock_rwunlock(l: *mut RwLock) {
        check(libc::pthread_rwlock_unlock(&raw mut (*l).lock), "enif_rwlock_rwunlock");
    }
    fn enif_rwlock_name(l: *mut RwLock) -> *mut c_char {
        if l.is_null() { std::ptr::null_mut() } else { (*l).name.ptr() }
    }

    fn enif_tsd_key_create(name: *const c_char, to: *mut c_int) -> c_int {
        let mut keys = KEYS.lock();
        let Ok(key) = c_int::try_from(keys.len()) else {
            return libc::EAGAIN;
        };
        keys.push(Some(Name::of(name)));
        to.write(key);
        0
    }
    fn enif_tsd_key_destroy(key: c_int) {
        let mut keys = KEYS.lock();
        if let Some(k) = keys.get_mut(key as usize) {
            *k = None;
        }
    }
    fn enif_tsd_set(key: c_int, data: *mut c_void) {
        // A thread that is ending has no place for it any more, though C code of it may still run.
        let _ = KEPT.try_with(|k| k.borrow_mut().insert(key, data as usize));
    }
    fn enif_tsd_get(key: c_int) -> *mut c_void {
        let kept = KEPT.try_with(|k| k.borrow().get(&key).copied());
        kept.ok().flatten().map_or(std::ptr::null_mut(), |p| p as *mut c_void)
    }

    fn enif_thread_opts_create(_name: *const c_char) -> *mut Options {
        Box::into_raw(Box::new(Options { suggested_stack_size: -1 }))
    }
    fn enif_thread_opts_destroy(o: *mut Options) {
        if !o.is_null() {
            drop(Box::from_raw(o));
        }
    }
    fn enif_thread_create(
        name: *const c_char,
        to: *mut *mut Thread,
        run: Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>,
        arg: *mut c_void,
        options: *const Options,
    ) -> c_int {
        let words = options.as_ref().map_or(-1, |o| o.suggested_stack_size);
        let stack = match words {
            ..0 => 0,
            n => n.clamp(LEAST_STACK, MOST_STACK) as usize * 1024 * size_of::<usize>(),
        };
        let t = Box::into_raw(Box::new(Thread {
            // A number in some C libraries, a pointer in others.
            id: Cell::new(0 as libc::pthread_t),
            name: Name::of(name),
            joinable: true,
        }));
        to.write(t);
        let r = purlin_nif_thread_start((*t).id.as_ptr(), t as *mut c_void, run, arg, stack);
        if r != 0 {
            to.write(std::ptr::null_mut());
            drop(Box::from_raw(t));
        }
        r
    }
    /// Called when a thread of a library has begun. There are no frames of Rust below its own.
    fn purlin_nif_thread_begins(t: *mut c_void) {
        MINE.set(t as *mut Thread);
        purlin_kernel::affinity::begin_unbound();
        let name = (*(t as *mut Thread)).name.0.to_bytes();
        // The system accepts fifteen bytes.
        let mut short = [0u8; 16];
        let n = name.len().min(15);
        short[..n].copy_from_slice(&name[..n]);
        #[cfg(target_os = "linux")]
        if n > 0 {
            libc::pthread_setname_np(libc::pthread_self(), short.as_ptr() as *const c_char);
        }
    }
    /// Also returns a handle for threads that no library made; it lives as long as the emulator.
    fn enif_thread_self() -> *mut Thread {
        if MINE.get().is_null() {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            MINE.set(Box::into_raw(Box::new(Thread {
                id: Cell::new(libc::pthread_self()),
                name: Name(CString::new(name).unwrap_or_default()),
                joinable: false,
            })));
        }
        MINE.get()
    }
    fn enif_equal_tids(a: *mut Thread, b: *mut Thread) -> c_int {
        c_int::from(std::ptr::eq(a, b))
    }
    fn enif_thread_join(t: *mut Thread, to: *mut *mut c_void) -> c_int {
        if t.is_null() || !(*t).joinable {
            return libc::EINVAL;
        }
        let mut value = std::ptr::null_mut();
        let r = libc::pthread_join((*t).id.get(), &mut value);
        if r == 0 {
            if !to.is_null() {
                to.write(value);
            }
            drop(Box::from_raw(t));
        }
        r
    }
    fn enif_thread_name(t: *mut Thread) -> *mut c_char {
        if t.is_null() { std::ptr::null_mut() } else { (*t).name.ptr() }
    }
}
