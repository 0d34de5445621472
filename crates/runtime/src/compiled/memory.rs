//! Memory of machine code: one range that is mapped twice, once to be executed and once to be written, never both.
//!
//! The range lies below 2^31, so that an address in it takes 32 bits wherever one is kept. It is a file in memory
//! (`memfd_create(2)`), of which only pages that were written take any.
//!
//! Where the system has no such file to be executed, or `+JMsingle true` says so, the range is mapped once. A piece has pages of its
//! own then, which are made writable and executable in turn: nobody runs them before they are written or after they are free.

use std::io;

/// Bytes of the range.
const RANGE: usize = 64 << 20;
/// Pieces begin at multiples of this; of the second where they have pages of their own.
const ALIGN: usize = 32;
const PAGE: usize = 4096;

/// The range, and which parts of it are free.
pub(super) struct Memory {
    /// Where it is executed, and where it is written: the same where it is mapped once.
    execute: *mut u8,
    write: *mut u8,
    /// Bytes in use at its start.
    used: usize,
    /// Parts before that which are free: start and bytes, sorted by start.
    free: Vec<(usize, usize)>,
    /// Bytes of what is in use.
    taken: usize,
    limit: usize,
}

// SAFETY: the addresses are those of memory that belongs to the value.
unsafe impl Send for Memory {}

impl Memory {
    /// Machine code is made for x86-64 and the calling convention of Linux.
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
    /// The system refuses memory that is executed, or has none below 2^31.
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
    /// Mapped twice.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn twice(limit: usize) -> io::Result<Memory> {
        let name = c"purlin-code";
        // SAFETY: plain system calls; the results are looked at.
        unsafe {
            // MFD_CLOEXEC | MFD_EXEC; systems before Linux 6.3 don't know the latter, and need it not.
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
    /// Mapped once.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn once(limit: usize) -> io::Result<Memory> {
        // SAFETY: a new mapping at an address that the system chooses; the result is looked at.
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
        let m = Memory {
            execute: at.cast(),
            write: at.cast(),
            used: 0,
            free: Vec::new(),
            taken: 0,
            limit: limit.min(RANGE),
        };
        // Whether a page that was written may be executed.
        m.allow(0, PAGE, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: just made writable.
        unsafe { m.write.write(0xCC) };
        m.allow(0, PAGE, libc::PROT_READ | libc::PROT_EXEC)?;
        Ok(m)
    }
    /// The access to pages of the range.
    fn allow(&self, offset: usize, bytes: usize, rights: i32) -> io::Result<()> {
        let bytes = bytes.next_multiple_of(PAGE);
        assert!(offset.is_multiple_of(PAGE) && offset + bytes <= RANGE);
        // SAFETY: pages of the range, which nobody runs or writes now.
        match unsafe { libc::mprotect(self.write.add(offset).cast(), bytes, rights) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
    /// Maps a new file twice.
    ///
    /// # Safety
    /// `fd` is a file in memory that nobody else maps or writes.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    unsafe fn map(fd: i32, limit: usize) -> io::Result<Memory> {
        // The system would end the runtime, by SIGXFSZ.
        if purlin_term::sys::file_limit().is_some_and(|most| most < RANGE) {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        // SAFETY: new mappings at addresses that the system chooses; each result is looked at before it is used.
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
    /// Where it is executed.
    pub fn range(&self) -> std::ops::Range<u64> {
        let start = self.execute as u64;
        start..start + RANGE as u64
    }
    /// Bytes that may be in use.
    pub fn limit(&self) -> usize {
        self.limit
    }
    /// Bytes in use.
    pub fn taken(&self) -> usize {
        self.taken
    }
    fn is_single(&self) -> bool {
        self.write == self.execute
    }
    fn rounded(&self, bytes: usize) -> usize {
        bytes.next_multiple_of(if self.is_single() { PAGE } else { ALIGN })
    }
    /// A piece of that many bytes: its address where it is executed. None: the limit is reached.
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
    /// Writes the bytes of a piece. False: the system refuses it.
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
        // SAFETY: within the mapping; nobody runs a piece that is being written.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.write.add(offset), bytes.len())
        };
        !single
            || self
                .allow(offset, bytes.len(), libc::PROT_READ | execute)
                .is_ok()
    }
    /// Gives a piece back. Nobody runs it any more.
    pub fn free(&mut self, at: usize, bytes: usize) {
        let (at, n) = (at - self.execute as usize, self.rounded(bytes));
        self.taken -= n;
        let i = self.free.partition_point(|f| f.0 < at);
        self.free.insert(i, (at, n));
        // With its neighbours.
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

/// Whether the processor keeps return addresses a second time, out of reach: frames can't be dropped then.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn shadow_stack() -> bool {
    let at: u64;
    // SAFETY: `rdsspq` gives the address of the shadow stack; where there is none, it does nothing.
    unsafe { std::arch::asm!("rdsspq {0}", inout(reg) 0u64 => at, options(nomem, nostack)) };
    at != 0
}
