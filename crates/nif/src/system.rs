//! Memory, time, environment variables, dynamic libraries opened by libraries, and information
//! about the emulator.

use crate::Exported;
use crate::abi::{MAJOR, SysInfo};
use crate::env::ErlNifEnv;
use purlin_kernel::{clock, later, options, osenv, posix, sched};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, Term, atom};
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

unsafe extern "C" {
    fn enif_make_tuple();
    fn enif_make_list();
    fn enif_set_option();
    fn enif_fprintf();
    fn enif_vfprintf();
    fn enif_snprintf();
    fn enif_vsnprintf();
    fn enif_thread_exit();
    fn erl_drv_thread_exit();
}

/// Functions that are written in C because of their variable arguments.
pub(crate) static OF_C: &[Exported] = &[
    Exported(enif_make_tuple as *const ()),
    Exported(enif_make_list as *const ()),
    Exported(enif_set_option as *const ()),
    Exported(enif_fprintf as *const ()),
    Exported(enif_vfprintf as *const ()),
    Exported(enif_snprintf as *const ()),
    Exported(enif_vsnprintf as *const ()),
    Exported(enif_thread_exit as *const ()),
    Exported(erl_drv_thread_exit as *const ()),
];

/// `ERL_NIF_TIME_ERROR`
const TIME_ERROR: i64 = i64::MIN;

/// Units per second of an `ErlNifTimeUnit`.
fn per_second(unit: c_int) -> Option<i64> {
    match unit {
        0 => Some(1),
        1 => Some(1000),
        2 => Some(1_000_000),
        3 => Some(1_000_000_000),
        _ => None,
    }
}

fn converted(t: i64, from: i64, to: i64) -> i64 {
    let v = (i128::from(t) * i128::from(to)).div_euclid(i128::from(from));
    v.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Returns a time of the runtime; only for threads that run processes.
fn time(t: fn() -> i64, unit: c_int) -> i64 {
    match per_second(unit) {
        Some(u) if thread_type() != 0 => converted(t(), clock::UNIT, u),
        _ => TIME_ERROR,
    }
}

/// `{MegaSeconds, Seconds, MicroSeconds}`
fn timestamp(env: &mut ErlNifEnv, micros: i64) -> Term {
    env.tuple(&[
        Term::small(micros.div_euclid(1_000_000_000_000)),
        Term::small(micros.div_euclid(1_000_000).rem_euclid(1_000_000)),
        Term::small(micros.rem_euclid(1_000_000)),
    ])
}

/// Returns 1 for a scheduler, 2 or 3 for a dirty thread, 0 for any other.
fn thread_type() -> c_int {
    match sched::dirty_kind() {
        Some(true) => 3,
        Some(false) => 2,
        None => c_int::from(later::is_worker()),
    }
}

/// Reports the system's error text to C code.
///
/// # Safety
/// `to` is the caller's function, which takes `arg` and a text.
unsafe fn tell(to: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>, arg: *mut c_void) {
    if let Some(f) = to {
        // SAFETY: by the contract of this function.
        unsafe { f(arg, libc::dlerror()) };
    }
}

exported! {
    fn enif_alloc(size: usize) -> *mut c_void {
        libc::malloc(size.max(1))
    }
    fn enif_realloc(p: *mut c_void, size: usize) -> *mut c_void {
        libc::realloc(p, size.max(1))
    }
    fn enif_free(p: *mut c_void) {
        libc::free(p);
    }
    fn enif_system_info(to: *mut SysInfo, size: usize) {
        static TEXTS: OnceLock<[CString; 2]> = OnceLock::new();
        let o = options::current();
        let release = o.otp.release.to_string();
        let [erts, otp] = TEXTS.get_or_init(|| {
            [o.otp.erts_version.clone(), release.clone()]
                .map(|s| CString::new(s).unwrap_or_default())
        });
        let info = SysInfo {
            driver_major_version: 3,
            driver_minor_version: 3,
            erts_version: erts.as_ptr(),
            otp_release: otp.as_ptr(),
            thread_support: 1,
            smp_support: 1,
            async_threads: 1,
            scheduler_threads: sched::count() as c_int,
            nif_major_version: MAJOR,
            nif_minor_version: crate::load::minor_of(o.otp.release),
            dirty_scheduler_support: 1,
        };
        // Only as many fields as the library's version has.
        let n = size.min(size_of::<SysInfo>());
        std::ptr::copy_nonoverlapping(&raw const info as *const u8, to as *mut u8, n);
    }
    /// Returns 0 if the variable exists and was stored, a positive number if the buffer is too
    /// small, a negative one if the variable does not exist.
    fn enif_getenv(name: *const c_char, to: *mut c_char, room: *mut usize) -> c_int {
        let Some(v) = osenv::get(crate::terms::c_bytes(name)) else {
            return -1;
        };
        if v.len() >= *room {
            room.write(v.len() + 1);
            return 1;
        }
        std::ptr::copy_nonoverlapping(v.as_ptr(), to as *mut u8, v.len());
        to.add(v.len()).write(0);
        room.write(v.len());
        0
    }
    /// Returns the name of an error number, such as `enoent`. It belongs to the driver interface,
    /// but NIF libraries call it too.
    fn erl_errno_id(error: c_int) -> *const c_char {
        static NAMES: Mutex<Vec<(c_int, CString)>> = Mutex::new(Vec::new());
        let mut names = NAMES.lock();
        let i = match names.iter().position(|n| n.0 == error) {
            Some(i) => i,
            None => {
                let name = atom::name(posix::errno_atom(error));
                let name = CString::new(name).unwrap_or_default();
                names.push((error, name));
                names.len() - 1
            }
        };
        // Entries stay, and their texts do not move.
        names[i].1.as_ptr()
    }
    /// Adds the extension to the file name.
    fn enif_dlopen(
        file: *const c_char,
        on_error: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
        arg: *mut c_void,
    ) -> *mut c_void {
        let h = crate::library::dl_open(crate::terms::c_bytes(file));
        if h.is_null() {
            tell(on_error, arg);
        }
        h
    }
    fn enif_dlsym(
        handle: *mut c_void, name: *const c_char,
        on_error: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>, arg: *mut c_void,
    ) -> *mut c_void {
        let p = libc::dlsym(handle, name);
        if p.is_null() {
            tell(on_error, arg);
        }
        p
    }
    /// Returns whether the time slice is used up.
    fn enif_consume_timeslice(env: *mut ErlNifEnv, percent: c_int) -> c_int {
        let Some(cx) = (*env).process() else {
            return 0;
        };
        if cx.dirty {
            // No other process waits for this thread.
            return 0;
        }
        let percent = i64::from(percent.clamp(1, 100));
        let used = purlin_kernel::threads::slice::SLICE / 100 * percent;
        // As in stock, no process uses more than its time slice.
        cx.reds = (cx.reds - used).max(cx.reds.min(0));
        c_int::from(cx.out_of_reds())
    }
    fn enif_monotonic_time(unit: c_int) -> i64 {
        time(clock::monotonic, unit)
    }
    fn enif_time_offset(unit: c_int) -> i64 {
        time(clock::offset, unit)
    }
    fn enif_convert_time_unit(t: i64, from: c_int, to: c_int) -> i64 {
        match (per_second(from), per_second(to)) {
            (Some(f), Some(u)) => converted(t, f, u),
            _ => TIME_ERROR,
        }
    }
    fn enif_now_time(env: *mut ErlNifEnv) -> Term {
        timestamp(&mut *env, clock::now_micros())
    }
    fn enif_cpu_time(env: *mut ErlNifEnv) -> Term {
        timestamp(&mut *env, clock::cpu_time() / 1000)
    }
    fn enif_thread_type() -> c_int {
        thread_type()
    }
}
