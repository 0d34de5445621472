//! Structures and constants of `erl_driver.h`, as they lie in memory.

use crate::abi::Monitor;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// `ERL_DRV_EXTENDED_MARKER`
pub const MARKER: c_int = 0xfeee_eeed_u32 as c_int;
/// Version of the interface that is implemented, and the oldest major version that is accepted.
pub const MAJOR: c_int = 3;
/// See [`MAJOR`].
pub const MINOR: c_int = 3;
/// See [`MAJOR`].
pub const OLDEST: c_int = 2;

/// `ERL_DRV_FLAG_USE_PORT_LOCKING`
pub const PORT_LOCKING: c_int = 1;
/// `ERL_DRV_FLAG_SOFT_BUSY`
pub const SOFT_BUSY: c_int = 2;
/// `ERL_DRV_FLAG_NO_BUSY_MSGQ`
pub const NO_BUSY_MSGQ: c_int = 4;

/// `PORT_CONTROL_FLAG_BINARY`, and `PORT_FLAG_BINARY`
pub const BINARY: c_int = 1;
/// `PORT_FLAG_LINE`
pub const LINE: c_int = 2;

/// Modes of `driver_select`.
pub const READ: c_int = 1;
pub const WRITE: c_int = 2;
pub const USE: c_int = 4;
/// With [`USE`]: call no callback.
pub const NO_CALLBACK: c_int = 8;

/// `DRIVER_CALL_KEEP_BUFFER`
pub const KEEP_BUFFER: c_uint = 1;

/// `ErlDrvData`: the result of `start`.
pub type Data = *mut c_void;
/// `ErlDrvEvent`: a descriptor.
pub type Event = *mut c_void;
/// `ErlDrvPort`: the number of a port. Never 0.
pub type Handle = usize;

/// `ErlDrvBinary`: the last word of the head of a counted block ([`purlin_term::bin::RcBin`]),
/// followed by its bytes.
#[repr(C)]
pub struct Block {
    pub size: isize,
}

/// `ErlIOVec`
#[repr(C)]
pub struct IoVec {
    pub vsize: c_int,
    pub size: usize,
    pub iov: *mut libc::iovec,
    pub blocks: *mut *mut Block,
}

/// `ErlDrvNowData`
#[repr(C)]
pub struct Now {
    pub megasecs: u64,
    pub secs: u64,
    pub microsecs: u64,
}

pub type ControlFn =
    unsafe extern "C" fn(Data, c_uint, *mut c_char, usize, *mut *mut c_char, usize) -> isize;
pub type CallFn = unsafe extern "C" fn(
    Data,
    c_uint,
    *mut c_char,
    usize,
    *mut *mut c_char,
    usize,
    *mut c_uint,
) -> isize;

/// `ErlDrvEntry` without its last field, which is not used here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    pub init: Option<unsafe extern "C" fn() -> c_int>,
    pub start: Option<unsafe extern "C" fn(Handle, *mut c_char) -> Data>,
    pub stop: Option<unsafe extern "C" fn(Data)>,
    pub output: Option<unsafe extern "C" fn(Data, *mut c_char, usize)>,
    pub ready_input: Option<unsafe extern "C" fn(Data, Event)>,
    pub ready_output: Option<unsafe extern "C" fn(Data, Event)>,
    pub driver_name: *const c_char,
    pub finish: Option<unsafe extern "C" fn()>,
    pub handle: *mut c_void,
    pub control: Option<ControlFn>,
    pub timeout: Option<unsafe extern "C" fn(Data)>,
    pub outputv: Option<unsafe extern "C" fn(Data, *mut IoVec)>,
    pub ready_async: Option<unsafe extern "C" fn(Data, *mut c_void)>,
    pub flush: Option<unsafe extern "C" fn(Data)>,
    pub call: Option<CallFn>,
    pub unused: *mut c_void,
    pub extended_marker: c_int,
    pub major_version: c_int,
    pub minor_version: c_int,
    pub flags: c_int,
    pub handle2: *mut c_void,
    pub process_exit: Option<unsafe extern "C" fn(Data, *mut Monitor)>,
    pub stop_select: Option<unsafe extern "C" fn(Event, *mut c_void)>,
}
