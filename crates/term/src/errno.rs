//! The number of the last error of a thread.

/// Returns the address of this thread's `errno`, which is valid as long as the thread.
pub fn place() -> *mut libc::c_int {
    // SAFETY: a function without preconditions.
    unsafe {
        #[cfg(target_vendor = "apple")]
        return libc::__error();
        #[cfg(not(target_vendor = "apple"))]
        return libc::__errno_location();
    }
}
