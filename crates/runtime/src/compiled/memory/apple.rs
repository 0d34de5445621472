//! Memory of machine code on macOS: mapped once, and never writable and executable to one thread.
//! Whether it may be written or executed is a right of each thread, so a thread that writes
//! disturbs none that runs code. Nothing of this has ever run: only its types are checked.
//!
//! A program that the system hardens needs the entitlement `com.apple.security.cs.allow-jit`.

use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;

unsafe extern "C" {
    /// Makes instructions that were written there those that are fetched, on all processors.
    fn sys_icache_invalidate(start: *mut c_void, bytes: usize);
}

/// Maps memory for machine code, where the system likes: it replaces nothing, and `MAP_FIXED` is
/// refused together with `MAP_JIT`. Threads begin with the right to execute it.
///
/// # Errors
/// The system refuses it.
pub(super) fn map(bytes: usize) -> io::Result<*mut c_void> {
    let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_JIT;
    // SAFETY: a new mapping, which replaces none; the result is checked.
    match unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) } {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        at => Ok(at),
    }
}

/// While it lives its thread may write such memory, and not execute it. It stays on its thread.
pub(super) struct Writing(PhantomData<*mut ()>);

impl Writing {
    /// Gives the thread the right to write.
    pub(super) fn begin() -> Writing {
        // SAFETY: the thread runs no machine code until the value is dropped: the one who has the
        // value copies bytes.
        unsafe { libc::pthread_jit_write_protect_np(0) };
        Writing(PhantomData)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // SAFETY: nothing is written through this right any more.
        unsafe { libc::pthread_jit_write_protect_np(1) };
    }
}

/// Drops those bytes from the instruction caches of all processors. What another thread has
/// fetched already it may still run until it passes a context synchronisation.
///
/// # Safety
/// The bytes must be mapped.
pub(super) unsafe fn dropped_from_caches(at: *mut u8, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { sys_icache_invalidate(at.cast(), bytes) };
}
