//! System calls that the race finder has fail. A call site, called a door, asks [`file`] or
//! [`call`] before the system, and gets an error of the system instead where the schedule says so.
//!
//! # Invariants
//! * While nothing is to fail, a door costs one load of a static.
//! * A call that fails does not reach the system, except `close`, which closes all the same. One
//!   that transfers half of its bytes does.
//! * Calls by which OTP loads code do not count: only the program's fail.

pub use purlin_explore::failing::Call;
use purlin_explore::failing::Reason;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether calls are counted in this run.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether calls on files are the program's: the native that runs is called by it or for it.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// Finds out whether the next call of a kind fails.
static FAILS: OnceLock<fn(Call) -> Option<Reason>> = OnceLock::new();

/// Lets `fails` decide whether each further call fails.
pub(crate) fn begin(fails: fn(Call) -> Option<Reason>) {
    let _ = FAILS.set(fails);
    ON.store(true, Ordering::Relaxed);
}

/// Whether calls are counted in this run.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Runs a native whose calls on files are the program's.
pub(crate) fn counting<T>(native: impl FnOnce() -> T) -> T {
    COUNTS.store(true, Ordering::Relaxed);
    let r = native();
    COUNTS.store(false, Ordering::Relaxed);
    r
}

/// Returns the number of an error.
fn number(r: Reason) -> Option<i32> {
    Some(match r {
        Reason::Eacces => libc::EACCES,
        Reason::Eagain => libc::EAGAIN,
        Reason::Econnaborted => libc::ECONNABORTED,
        Reason::Econnrefused => libc::ECONNREFUSED,
        Reason::Econnreset => libc::ECONNRESET,
        Reason::Eio => libc::EIO,
        Reason::Emfile => libc::EMFILE,
        Reason::Enobufs => libc::ENOBUFS,
        Reason::Enomem => libc::ENOMEM,
        Reason::Enospc => libc::ENOSPC,
        Reason::Eperm => libc::EPERM,
        Reason::Etimedout => libc::ETIMEDOUT,
        Reason::Short => return None,
    })
}

#[cold]
#[inline(never)]
fn decided(call: Call, bytes: usize) -> Result<usize, i32> {
    match FAILS.get().and_then(|fails| fails(call)) {
        None => Ok(bytes),
        Some(r) => match number(r) {
            Some(e) => Err(e),
            None => Ok(bytes.div_ceil(2)),
        },
    }
}

/// Returns how many of these bytes the next call may transfer, or why it fails.
#[inline(always)]
pub fn bytes(call: Call, bytes: usize) -> Result<usize, i32> {
    match is_on() {
        false => Ok(bytes),
        true => decided(call, bytes),
    }
}

/// Makes a call, unless it is to fail.
#[inline(always)]
pub fn call<T>(call: Call, real: impl FnOnce() -> Result<T, i32>) -> Result<T, i32> {
    bytes(call, 0)?;
    real()
}

/// Whether a call on a file counts.
#[inline(always)]
fn counts() -> bool {
    is_on() && COUNTS.load(Ordering::Relaxed)
}

/// Does what [`bytes`] does, for a call on a file.
#[inline(always)]
pub fn file_bytes(call: Call, n: usize) -> Result<usize, i32> {
    match counts() {
        false => Ok(n),
        true => decided(call, n),
    }
}

/// Makes a call on a file, unless it is to fail.
#[inline(always)]
pub fn file<T>(call: Call, real: impl FnOnce() -> Result<T, i32>) -> Result<T, i32> {
    file_bytes(call, 0)?;
    real()
}
