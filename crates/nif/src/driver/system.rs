//! The rest of `erl_driver.h`: threads and locks, which are those of NIF libraries; time,
//! environment variables, dynamic libraries, system information.

use super::abi::Now;
use crate::abi::SysInfo;
use crate::threads::{self, Cond, Mutex, Options, RwLock, Thread};
use purlin_kernel::{clock, osenv};
use std::ffi::{c_char, c_int, c_void};

type ThreadFn = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

exported! {
    fn erl_drv_mutex_create(name: *const c_char) -> *mut Mutex { threads::enif_mutex_create(name) }
    fn erl_drv_mutex_destroy(m: *mut Mutex) { threads::enif_mutex_destroy(m) }
    fn erl_drv_mutex_trylock(m: *mut Mutex) -> c_int { threads::enif_mutex_trylock(m) }
    fn erl_drv_mutex_lock(m: *mut Mutex) { threads::enif_mutex_lock(m) }
    fn erl_drv_mutex_unlock(m: *mut Mutex) { threads::enif_mutex_unlock(m) }
    fn erl_drv_mutex_name(m: *mut Mutex) -> *mut c_char { threads::enif_mutex_name(m) }
    fn erl_drv_cond_create(name: *const c_char) -> *mut Cond { threads::enif_cond_create(name) }
    fn erl_drv_cond_destroy(c: *mut Cond) { threads::enif_cond_destroy(c) }
    fn erl_drv_cond_signal(c: *mut Cond) { threads::enif_cond_signal(c) }
    fn erl_drv_cond_broadcast(c: *mut Cond) { threads::enif_cond_broadcast(c) }
    fn erl_drv_cond_wait(c: *mut Cond, m: *mut Mutex) { threads::enif_cond_wait(c, m) }
    fn erl_drv_cond_name(c: *mut Cond) -> *mut c_char { threads::enif_cond_name(c) }
    fn erl_drv_rwlock_create(name: *const c_char) -> *mut RwLock {
        threads::enif_rwlock_create(name)
    }
    fn erl_drv_rwlock_destroy(l: *mut RwLock) { threads::enif_rwlock_destroy(l) }
    fn erl_drv_rwlock_tryrlock(l: *mut RwLock) -> c_int { threads::enif_rwlock_tryrlock(l) }
    fn erl_drv_rwlock_rlock(l: *mut RwLock) { threads::enif_rwlock_rlock(l) }
    fn erl_drv_rwlock_runlock(l: *mut RwLock) { threads::enif_rwlock_runlock(l) }
    fn erl_drv_rwlock_tryrwlock(l: *mut RwLock) -> c_int { threads::enif_rwlock_tryrwlock(l) }
    fn erl_drv_rwlock_rwlock(l: *mut RwLock) { threads::enif_rwlock_rwlock(l) }
    fn erl_drv_rwlock_rwunlock(l: *mut RwLock) { threads::enif_rwlock_rwunlock(l) }
    fn erl_drv_rwlock_name(l: *mut RwLock) -> *mut c_char { threads::enif_rwlock_name(l) }
    fn erl_drv_tsd_key_create(name: *const c_char, to: *mut c_int) -> c_int {
        threads::enif_tsd_key_create(name, to)
    }
    fn erl_drv_tsd_key_destroy(key: c_int) { threads::enif_tsd_key_destroy(key) }
    fn erl_drv_tsd_set(key: c_int, data: *mut c_void) { threads::enif_tsd_set(key, data) }
    fn erl_drv_tsd_get(key: c_int) -> *mut c_void { threads::enif_tsd_get(key) }
    fn erl_drv_thread_opts_create(name: *const c_char) -> *mut Options {
        threads::enif_thread_opts_create(name)
    }
    fn erl_drv_thread_opts_destroy(o: *mut Options) { threads::enif_thread_opts_destroy(o) }
    fn erl_drv_thread_create(
        name: *const c_char, to: *mut *mut Thread, run: Option<ThreadFn>,
        arg: *mut c_void, o: *const Options,
    ) -> c_int {
        threads::enif_thread_create(name, to, run, arg, o)
    }
    fn erl_drv_thread_self() -> *mut Thread { threads::enif_thread_self() }
    fn erl_drv_equal_tids(a: *mut Thread, b: *mut Thread) -> c_int {
        threads::enif_equal_tids(a, b)
    }
    fn erl_drv_thread_join(t: *mut Thread, to: *mut *mut c_void) -> c_int {
        threads::enif_thread_join(t, to)
    }
    fn erl_drv_thread_name(t: *mut Thread) -> *mut c_char { threads::enif_thread_name(t) }

    fn erl_drv_monotonic_time(unit: c_int) -> i64 { crate::system::enif_monotonic_time(unit) }
    fn erl_drv_time_offset(unit: c_int) -> i64 { crate::system::enif_time_offset(unit) }
    fn erl_drv_convert_time_unit(t: i64, from: c_int, to: c_int) -> i64 {
        crate::system::enif_convert_time_unit(t, from, to)
    }
    fn driver_get_now(to: *mut Now) -> c_int {
        if to.is_null() {
            return -1;
        }
        let micros = clock::now_micros();
        to.write(Now {
            megasecs: micros.div_euclid(1_000_000_000_000) as u64,
            secs: micros.div_euclid(1_000_000).rem_euclid(1_000_000) as u64,
            microsecs: micros.rem_euclid(1_000_000) as u64,
        });
        0
    }
    fn erl_drv_getenv(name: *const c_char, to: *mut c_char, room: *mut usize) -> c_int {
        crate::system::enif_getenv(name, to, room)
    }
    fn erl_drv_putenv(name: *const c_char, value: *const c_char) -> c_int {
        let name = crate::terms::c_bytes(name).to_vec();
        if name.is_empty() || name.contains(&b'=') {
            return -1;
        }
        osenv::set(name, Some(crate::terms::c_bytes(value).to_vec()));
        0
    }
    fn driver_system_info(to: *mut SysInfo, size: usize) {
        crate::system::enif_system_info(to, size);
    }
    fn driver_dl_open(file: *const c_char) -> *mut c_void {
        crate::library::dl_open(crate::terms::c_bytes(file))
    }
    fn driver_dl_sym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
        libc::dlsym(handle, name)
    }
    fn driver_dl_close(handle: *mut c_void) -> c_int {
        libc::dlclose(handle)
    }
    fn driver_dl_error() -> *mut c_char {
        libc::dlerror()
    }
    fn null_func() -> c_int {
        0
    }
}
