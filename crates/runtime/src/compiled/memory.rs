//! Memory of machine code: one range that is mapped twice, once executable and once writable, never
//! both.
//!
//! The range is below 2^31, so that an address in it fits into 32 bits. It is a file in memory
//! (`memfd_create(2)`), of which only written pages take memory.
//!
//! If the system doesn't allow executing such a file, or with `+JMsingle true`, the range is mapped
//! once. Then each piece has pages of its own, which alternate between writable and executable. No
//! thread runs them before they are written or after they are freed.

use std::io;

/// Size of the range in bytes.
const RANGE: usize = 64 << 20;
/// Alignment of pieces, and of those that have pages of their own.
const ALIGN: usize = 32;
const PAGE: usize = 4096;

/// Returns a new mapping of the range if it lies below 2^31, else unmaps it. `MAP_32BIT` is a wish
/// that some systems ignore, such as emulators of x86-64 on other processors.
///
/// # Errors
/// It lies elsewhere.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn low(at: *mut libc::c_void) -> io::Result<*mut libc::c_void> {
    if at as usize + RANGE <= 1 << 31 {
        return Ok(at);
    }
    // SAFETY: a mapping of this size that was just made and is not in use.
    unsafe { libc::munmap(at, RANGE) };
    Err(io::Error::other("no memory below 2^31"))
}

/// The range, and its free parts.
pub(super) struct Memory {
    /// Addresses of the executable and the writable mapping: equal if the range is mapped once.
    execute: *mut u8,
    write: *mut u8,
    /// Bytes in use at its start, with free parts.
    used: usize,
    /// Free parts before that: start and size, sorted by start.
    free: Vec<(usize, usize)>,
    /// Bytes in use, without free parts.
    taken: usize,
    limit: usize,
}

// SAFETY: the addresses are those of memory that belongs to the value.
unsafe impl Send for Memory {}

impl Memory {
    /// Fails: machine code is only made for x86-64 and the calling convention of Linux.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    pub fn new(_limit: usize, _single: bool) -> io::Result<Memory> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Reserves the range.
    ///
    /// # Errors
    /// The system refuses executable memory, or has none below 2^31.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub fn new(limit: usize, single: bool) -> io::Result<Memory> {
        if shadow_stack() {
            return Err(io::Error::other("a shadow stack"));
        }
        let made = match single {
            false => Memory::twice(limit),
            true => Err(io::ErrorKind::Unsupported.into()),
        };
        made.or_else(|_| Memory::once(limit))
    }
    /// Maps the range twice.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn twice(limit: usize) -> io::Result<Memory> {
        let name = c"purlin-code";
        // SAFETY: plain system calls; their results are checked.
        unsafe {
            // MFD_CLOEXEC | MFD_EXEC. Systems before Linux 6.3 don't know the latter, and don't
            // need it.
            let mut fd = libc::memfd_create(name.as_ptr(), 1 | 0x10);
            if fd < 0 {
                fd = libc::memfd_create(name.as_ptr(), 1);
            }
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let made = Memory::map(fd, limit);
            libc::close(fd);
            made
        }
    }
    /// Maps the range once.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn once(limit: usize) -> io::Result<Memory> {
        // SAFETY: a new mapping at an address that the system chooses; the result is checked.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                RANGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_32BIT,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = low(at)?;
        let m = Memory {
            execute: at.cast(),
            write: at.cast(),
            used: 0,
            free: Vec::new(),
            taken: 0,
            limit: limit.min(RANGE),
        };
        // Tests whether a written page may be executed.
        m.allow(0, PAGE, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: just made writable.
        unsafe { m.write.write(0xCC) };
        m.allow(0, PAGE, libc::PROT_READ | libc::PROT_EXEC)?;
        Ok(m)
    }
    /// Sets the access rights to pages of the range.
    fn allow(&self, offset: usize, bytes: usize, rights: i32) -> io::Result<()> {
        let bytes = bytes.next_multiple_of(PAGE);
        assert!(offset.is_multiple_of(PAGE) && offset + bytes <= RANGE);
        // SAFETY: pages of the range, which no thread runs or writes now.
        match unsafe { libc::mprotect(self.write.add(offset).cast(), bytes, rights) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
    /// Maps a new file twice.
    ///
    /// # Safety
    /// `fd` must be a file in memory that nothing else maps or writes.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    unsafe fn map(fd: i32, limit: usize) -> io::Result<Memory> {
        // The system would end the runtime with SIGXFSZ.
        if purlin_term::sys::file_limit().is_some_and(|most| most < RANGE) {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        // SAFETY: new mappings at addresses that the system chooses; each result is checked before
        // it is used.
        unsafe {
            if libc::ftruncate(fd, RANGE as i64) != 0 {
                return Err(io::Error::last_os_error());
            }
            let none = std::ptr::null_mut();
            let execute = libc::mmap(
                none,
                RANGE,
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_SHARED | libc::MAP_32BIT,
                fd,
                0,
            );
            if execute == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let execute = low(execute)?;
            let write = libc::mmap(
                none,
                RANGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd,
                0,
            );
            if write == libc::MAP_FAILED {
                let e = io::Error::last_os_error();
                libc::munmap(execute, RANGE);
                return Err(e);
            }
            Ok(Memory {
                execute: execute.cast(),
                write: write.cast(),
                used: 0,
                free: Vec::new(),
                taken: 0,
                limit: limit.min(RANGE),
            })
        }
    }
    /// Returns the executable range.
    pub fn range(&self) -> std::ops::Range<u64> {
        let start = self.execute as u64;
        start..start + RANGE as u64
    }
    /// Returns the maximum number of bytes in use.
    pub fn limit(&self) -> usize {
        self.limit
    }
    /// Returns the number of bytes in use.
    pub fn taken(&self) -> usize {
        self.taken
    }
    fn is_single(&self) -> bool {
        self.write == self.execute
    }
    fn rounded(&self, bytes: usize) -> usize {
        bytes.next_multiple_of(if self.is_single() { PAGE } else { ALIGN })
    }
    /// Allocates a piece and returns its executable address; `None` if the limit is reached.
    pub fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let n = self.rounded(bytes);
        if self.taken + n > self.limit {
            return None;
        }
        let at = match self.free.iter().position(|f| f.1 >= n) {
            Some(i) => {
                let (at, all) = self.free[i];
                match all - n {
                    0 => {
                        self.free.remove(i);
                    }
                    rest => self.free[i] = (at + n, rest),
                }
                at
            }
            None => {
                if self.used + n > RANGE {
                    return None;
                }
                self.used += n;
                self.used - n
            }
        };
        self.taken += n;
        Some(self.execute as usize + at)
    }
    /// Writes the bytes of a piece. Returns false if the system refuses it.
    #[must_use]
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        let offset = at - self.execute as usize;
        assert!(offset + bytes.len() <= RANGE);
        let single = self.is_single();
        let (write, execute) = (libc::PROT_WRITE, libc::PROT_EXEC);
        if single
            && self
                .allow(offset, bytes.len(), libc::PROT_READ | write)
                .is_err()
        {
            return false;
        }
        // SAFETY: within the mapping; no thread runs a piece that is being written.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.write.add(offset), bytes.len())
        };
        !single
            || self
                .allow(offset, bytes.len(), libc::PROT_READ | execute)
                .is_ok()
    }
    /// Frees a piece, which no thread runs any more.
    pub fn free(&mut self, at: usize, bytes: usize) {
        let (at, n) = (at - self.execute as usize, self.rounded(bytes));
        self.taken -= n;
        let i = self.free.partition_point(|f| f.0 < at);
        self.free.insert(i, (at, n));
        // Joins it with its neighbours.
        if i + 1 < self.free.len() && self.free[i].0 + self.free[i].1 == self.free[i + 1].0 {
            self.free[i].1 += self.free[i + 1].1;
            self.free.remove(i + 1);
        }
        if i > 0 && self.free[i - 1].0 + self.free[i - 1].1 == self.free[i].0 {
            self.free[i - 1].1 += self.free[i].1;
            self.free.remove(i);
        }
    }
}

/// Whether the processor keeps return addresses on a shadow stack: then frames can't be dropped.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn shadow_stack() -> bool {
    let at: u64;
    // SAFETY: `rdsspq` reads the address of the shadow stack; if there is none, it does nothing.
    unsafe { std::arch::asm!("rdsspq {0}", inout(reg) 0u64 => at, options(nomem, nostack)) };
    at != 0
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn memory_above_the_low_addresses_is_refused() {
        let map = |flags: i32| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flags;
            // SAFETY: a new mapping at an address that the system chooses.
            let at =
                unsafe { libc::mmap(std::ptr::null_mut(), RANGE, libc::PROT_NONE, flags, -1, 0) };
            assert_ne!(at, libc::MAP_FAILED);
            at
        };
        assert!(low(map(0)).is_err());
        let at = map(libc::MAP_32BIT);
        assert_eq!(low(at).ok(), Some(at));
        // SAFETY: mapped above, and not in use.
        unsafe { libc::munmap(at, RANGE) };
    }
}
