//! Memory from the operating system, for regions and process cells.

/// Reserves `bytes` of addresses without memory behind them.
pub fn reserve(bytes: usize) -> usize {
    map(bytes, libc::PROT_NONE)
}
/// Reserves `bytes` of zeroed memory that takes no room until it is touched.
pub fn reserve_rw(bytes: usize) -> usize {
    map(bytes, libc::PROT_READ | libc::PROT_WRITE)
}
fn map(bytes: usize, prot: i32) -> usize {
    // SAFETY: a fresh anonymous mapping.
    let p = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            prot,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if p == libc::MAP_FAILED {
        eprintln!(
            "purlin: cannot reserve {bytes} bytes of addresses: {}",
            std::io::Error::last_os_error()
        );
        std::process::exit(1);
    }
    p as usize
}
/// Makes reserved addresses usable.
pub fn commit(addr: usize, bytes: usize) {
    // SAFETY: inside a range made by `reserve`.
    if unsafe { libc::mprotect(addr as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
        eprintln!("purlin: out of memory: {}", std::io::Error::last_os_error());
        std::process::exit(1);
    }
}
/// Gives the memory behind committed addresses back; they stay usable and read as zero.
pub fn decommit(addr: usize, bytes: usize) {
    // SAFETY: inside a range made by `reserve` or `reserve_rw`.
    unsafe { libc::madvise(addr as *mut _, bytes, libc::MADV_DONTNEED) };
}
/// Gives a whole mapping made by `reserve` or `reserve_rw` back, addresses and all.
pub fn release(addr: usize, bytes: usize) {
    // SAFETY: the caller made the mapping and forgets it.
    unsafe { libc::munmap(addr as *mut _, bytes) };
}
