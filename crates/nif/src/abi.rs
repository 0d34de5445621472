//! Structures and constants of `erl_nif.h` and `erl_drv_nif.h`, as they lie in memory.

use crate::env::ErlNifEnv;
use std::ffi::{c_char, c_int, c_uint, c_void};

pub use purlin_term::Term as ErlTerm;

/// Major version of the interface that is implemented.
pub const MAJOR: c_int = 2;
/// See [`MAJOR`].
pub const MINOR: c_int = 18;

pub const LATIN1: c_int = 1;
pub const UTF8: c_int = 2;

pub const RT_CREATE: c_int = 1;
pub const RT_TAKEOVER: c_int = 2;

pub const DIRTY_CPU: c_uint = 1;
pub const DIRTY_IO: c_uint = 2;

/// A function of a library.
pub type NifFn = unsafe extern "C" fn(*mut ErlNifEnv, c_int, *const ErlTerm) -> ErlTerm;
pub type LoadFn = unsafe extern "C" fn(*mut ErlNifEnv, *mut *mut c_void, ErlTerm) -> c_int;
pub type UpgradeFn =
    unsafe extern "C" fn(*mut ErlNifEnv, *mut *mut c_void, *mut *mut c_void, ErlTerm) -> c_int;
pub type UnloadFn = unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void);

/// `ErlNifFunc`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Func {
    pub name: *const c_char,
    pub arity: c_uint,
    pub fptr: Option<NifFn>,
    /// Since version 2.7.
    pub flags: c_uint,
}

/// `ErlNifFunc` before version 2.7.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OldFunc {
    pub name: *const c_char,
    pub arity: c_uint,
    pub fptr: Option<NifFn>,
}

/// `ErlNifEntry`
#[repr(C)]
pub struct Entry {
    pub major: c_int,
    pub minor: c_int,
    pub name: *const c_char,
    pub num_of_funcs: c_int,
    pub funcs: *const Func,
    pub load: Option<LoadFn>,
    pub reload: Option<LoadFn>,
    pub upgrade: Option<UpgradeFn>,
    pub unload: Option<UnloadFn>,
    /// Since version 2.1.
    pub vm_variant: *const c_char,
    /// Since version 2.7.
    pub options: c_uint,
    /// Since version 2.12.
    pub sizeof_resource_type_init: usize,
    /// Since version 2.14.
    pub min_erts: *const c_char,
}

/// `ErlNifBinary`, as far as this crate writes it. In C one or two words follow, depending on the
/// headers; libraries built with old headers keep something else in the second.
#[repr(C)]
pub struct Binary {
    pub size: usize,
    pub data: *mut u8,
    /// The block that it owns, or null.
    pub ref_bin: *mut purlin_term::bin::RcBin,
}

/// `ErlNifPid`, `ErlNifPort`: the word of a local pid or port.
pub type Pid = ErlTerm;

pub type DtorFn = unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void);
pub type StopFn = unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void, c_int, c_int);
pub type DownFn = unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void, *mut Pid, *mut Monitor);
pub type DynCallFn = unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void, *mut c_void);

/// `ErlNifResourceTypeInit`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct TypeInit {
    pub dtor: Option<DtorFn>,
    pub stop: Option<StopFn>,
    pub down: Option<DownFn>,
    /// Number of fields that are valid. Types opened by functions without this field use those
    /// above.
    pub members: c_int,
    pub dyncall: Option<DynCallFn>,
}

/// `ErlNifMonitor`: the numbers of a reference.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Monitor {
    pub num: [u32; 3],
    pub rest: [u32; 5],
}

/// `ErlNifMapIterator`
#[repr(C)]
pub struct MapIterator {
    pub map: ErlTerm,
    pub size: usize,
    /// 0 before the first pair; `size + 1` behind the last.
    pub at: usize,
    /// Keys and values; the current pair is number `at`.
    pub keys: *const ErlTerm,
    pub values: *const ErlTerm,
    pub spare: [*mut c_void; 2],
}

/// `ErlNifSysInfo`
#[repr(C)]
pub struct SysInfo {
    pub driver_major_version: c_int,
    pub driver_minor_version: c_int,
    pub erts_version: *const c_char,
    pub otp_release: *const c_char,
    pub thread_support: c_int,
    pub smp_support: c_int,
    pub async_threads: c_int,
    pub scheduler_threads: c_int,
    pub nif_major_version: c_int,
    pub nif_minor_version: c_int,
    pub dirty_scheduler_support: c_int,
}

/// Vectors that an [`IoVec`] holds in itself.
pub const IOVEC_SIZE: usize = 16;

/// `ErlNifIOVec`
#[repr(C)]
pub struct IoVec {
    pub iovcnt: c_int,
    pub size: usize,
    pub iov: *mut libc::iovec,
    pub ref_bins: *mut *mut purlin_term::bin::RcBin,
    pub flags: c_int,
    pub small_iov: [libc::iovec; IOVEC_SIZE],
    pub small_ref_bin: [*mut purlin_term::bin::RcBin; IOVEC_SIZE],
}
