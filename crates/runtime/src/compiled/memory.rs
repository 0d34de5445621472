//! Memory of machine code: one range that is mapped twice, once executable and once writable, never
//! both.
//!
//! The range is below 2^31, so that an address in it fits into 32 bits. It is a file in memory
//! (`memfd_create(2)`), of which only written pages take memory.
//!
//! # Order of writing and running
//! Before anything leads to a piece, [`Memory::write`] has made its instructions those that every
//! processor fetches. On x86-64 a store suffices. On aarch64 the lines are cleaned from the data
//! cache and dropped from the instruction caches, and each thread of the process passes a context
//! synchronisation (`membarrier(2)`). No model shows this order: keep the write before the store of
//! return points and of the half word before an entry.
//!
//! If the system doesn't allow executing such a file or misses its changes, or with `+JMsingle
//! true`, the range is mapped once. Then each piece has pages of its own, which alternate between
//! writable and executable. No thread runs them before they are written or after they are freed.
//!
//! macOS has memory that is writable to one thread and executable to the others: `memory/apple.rs`.
//! Machine code is not made there: no call makes the other threads synchronise, so they would have
//! to do it when they enter code (`isb`), and the range would have to lie anywhere.

#[cfg(all(target_arch = "aarch64", target_os = "macos"))]
mod apple;

#[cfg(any(
    all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_os = "linux"
    ),
    all(target_arch = "aarch64", target_os = "macos")
))]
use purlin_term::sys::page_bytes;
use std::io;

/// Size of the range in bytes.
const RANGE: usize = 64 << 20;
/// Alignment of pieces, and of those that have pages of their own.
const ALIGN: usize = 32;

/// Returns a new mapping of the range if it lies below 2^31, else unmaps it.
///
/// # Errors
/// It lies elsewhere.
#[cfg(any(
    all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_os = "linux"
    ),
    all(target_arch = "aarch64", target_os = "macos")
))]
fn low(at: *mut libc::c_void) -> io::Result<*mut libc::c_void> {
    if at as usize + RANGE <= 1 << 31 {
        return Ok(at);
    }
    // SAFETY: a mapping of this size that was just made and is not in use.
    unsafe { libc::munmap(at, RANGE) };
    Err(io::Error::other("no memory below 2^31"))
}

/// Maps the range below 2^31.
///
/// # Errors
/// The system refuses it, or has no room there.
#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux"
))]
fn map_low(rights: i32, flags: i32, fd: i32) -> io::Result<*mut libc::c_void> {
    let map = |at: usize, flags: i32| {
        // SAFETY: a new mapping, which replaces none; the result is checked.
        let at = unsafe { libc::mmap(at as *mut libc::c_void, RANGE, rights, flags, fd, 0) };
        match at == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => low(at),
        }
    };
    // A flag of x86-64 that emulators ignore.
    #[cfg(target_arch = "x86_64")]
    if let Ok(at) = map(0, flags | libc::MAP_32BIT) {
        return Ok(at);
    }
    // The bytecode of modules lies from 1 GiB on.
    let mut made = Err(io::ErrorKind::AddrNotAvailable.into());
    for k in 1..8 {
        made = map(k << 27, flags | libc::MAP_FIXED_NOREPLACE);
        if made.is_ok() {
            break;
        }
    }
    made
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
    /// Size of a page of the system.
    page: usize,
}

// SAFETY: the addresses are those of memory that belongs to the value.
unsafe impl Send for Memory {}

impl Memory {
    /// Fails: machine code is only made for x86-64 and aarch64, and for the calling convention of
    /// Linux.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(any(
        all(
            any(target_arch = "x86_64", target_arch = "aarch64"),
            target_os = "linux"
        ),
        all(target_arch = "aarch64", target_os = "macos")
    )))]
    pub fn new(_limit: usize, _single: bool) -> io::Result<Memory> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Reserves the range.
    ///
    /// # Errors
    /// The system refuses executable memory, or has none below 2^31.
    #[cfg(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_os = "linux"
    ))]
    pub fn new(limit: usize, single: bool) -> io::Result<Memory> {
        if shadow_stack() {
            return Err(io::Error::other("a shadow stack"));
        }
        begin_synchronising()?;
        let made = match single {
            false => Memory::twice(limit),
            true => Err(io::ErrorKind::Unsupported.into()),
        };
        made.or_else(|_| Memory::once(limit))
    }
    /// Reserves the range in memory for machine code.
    ///
    /// # Errors
    /// Nothing makes other threads synchronise, or the system refuses such memory, or it lies above
    /// 2^31.
    #[cfg(all(target_arch = "aarch64", target_os = "macos"))]
    pub fn new(limit: usize, _single: bool) -> io::Result<Memory> {
        begin_synchronising()?;
        let at = low(apple::map(RANGE)?)?;
        Ok(Memory {
            execute: at.cast(),
            write: at.cast(),
            used: 0,
            free: Vec::new(),
            taken: 0,
            limit: limit.min(RANGE),
            page: page_bytes(),
        })
    }
    /// Maps the range twice.
    #[cfg(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_os = "linux"
    ))]
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
            let mut m = made?;
            match m.runs_changed_code() {
                true => Ok(m),
                false => {
                    libc::munmap(m.execute.cast(), RANGE);
                    libc::munmap(m.write.cast(), RANGE);
                    Err(io::ErrorKind::Unsupported.into())
                }
            }
        }
    }
    /// Whether code that is written a second time at the same address runs as it was written.
    /// Emulators that translate code miss what another mapping changes.
    #[cfg(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_os = "linux"
    ))]
    fn runs_changed_code(&mut self) -> bool {
        let at = self.execute as usize;
        [1u8, 2].into_iter().all(|n| {
            // Returns the number.
            #[cfg(target_arch = "x86_64")]
            let code = [0xB8, n, 0, 0, 0, 0xC3];
            #[cfg(target_arch = "aarch64")]
            let code = [n << 5, 0, 0x80, 0x52, 0xC0, 0x03, 0x5F, 0xD6];
            self.write(at, &code)
                // SAFETY: the address of that code.
                && unsafe { std::mem::transmute::<usize, extern "C" fn() -> u32>(at)() }
                    == u32::from(n)
        })
    }
    /// Maps the range once.
    #[cfg(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_os = "linux"
    ))]
    fn once(limit: usize) -> io::Result<Memory> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let at = map_low(libc::PROT_NONE, flags, -1)?;
        let m = Memory {
            execute: at.cast(),
            write: at.cast(),
            used: 0,
            free: Vec::new(),
            taken: 0,
            limit: limit.min(RANGE),
            page: page_bytes(),
        };
        // Tests whether a written page may be executed.
        m.allow(0, m.page, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: just made writable.
        unsafe { m.write.write(0xCC) };
        m.allow(0, m.page, libc::PROT_READ | libc::PROT_EXEC)?;
        Ok(m)
    }
    /// Lets pages of the range be read, and written or executed. Returns false if the system
    /// refuses it.
    fn allowed(&self, offset: usize, bytes: usize, right: i32) -> bool {
        // There it is a right of the thread.
        cfg!(target_os = "macos") || self.allow(offset, bytes, libc::PROT_READ | right).is_ok()
    }
    /// Sets the access rights to pages of the range.
    fn allow(&self, offset: usize, bytes: usize, rights: i32) -> io::Result<()> {
        let bytes = bytes.next_multiple_of(self.page);
        assert!(offset.is_multiple_of(self.page) && offset + bytes <= RANGE);
        // SAFETY: pages of the range, which no thread runs or writes now.
        match unsafe { libc::mprotect(self.write.add(offset).cast(), bytes, rights) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
    #[cfg(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_os = "linux"
    ))]
    /// Maps a new file twice.
    ///
    /// # Safety
    /// `fd` must be a file in memory that nothing else maps or writes.
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
            let rights = libc::PROT_READ | libc::PROT_EXEC;
            let execute = map_low(rights, libc::MAP_SHARED, fd)?;
            let write = libc::mmap(
                std::ptr::null_mut(),
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
                page: page_bytes(),
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
        bytes.next_multiple_of(if self.is_single() { self.page } else { ALIGN })
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
        #[cfg(all(target_arch = "aarch64", target_os = "macos"))]
        let writing = apple::Writing::begin();
        if single && !self.allowed(offset, bytes.len(), libc::PROT_WRITE) {
            return false;
        }
        // SAFETY: within the mapping; no thread runs a piece that is being written.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.write.add(offset), bytes.len())
        };
        #[cfg(all(target_arch = "aarch64", target_os = "macos"))]
        drop(writing);
        if single && !self.allowed(offset, bytes.len(), libc::PROT_EXEC) {
            return false;
        }
        // SAFETY: both ranges are mapped and may be read, and belong to the piece.
        unsafe {
            let (write, execute) = (self.write.add(offset), self.execute.add(offset));
            coherent(write, execute, bytes.len())
        }
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

/// Whether the processor keeps return addresses on a shadow stack: then frames can't be dropped.
#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
fn shadow_stack() -> bool {
    /// `PR_GET_SHADOW_STACK_STATUS`
    const STATUS: i32 = 74;
    const ENABLED: u64 = 1;
    let mut status = 0u64;
    // SAFETY: the call writes a word, if the system knows it.
    let known = unsafe { libc::prctl(STATUS, &mut status as *mut u64, 0, 0, 0) } == 0;
    known && status & ENABLED != 0
}

/// Prepares the context synchronisation of all threads.
///
/// # Errors
/// The system has none.
#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
fn begin_synchronising() -> io::Result<()> {
    const REGISTER: i32 = 1 << 6;
    // SAFETY: a plain system call.
    match unsafe { libc::syscall(libc::SYS_membarrier, REGISTER, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
/// Prepares nothing: processors see what is written.
///
/// # Errors
/// None.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn begin_synchronising() -> io::Result<()> {
    Ok(())
}

/// Refuses: the system has no call that makes all threads synchronise.
///
/// # Errors
/// Always.
#[cfg(all(target_arch = "aarch64", target_os = "macos"))]
fn begin_synchronising() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes all threads of the process run the instructions that were written at `write`, at the
/// address `execute` of the same bytes. Returns whether the system has done so.
///
/// # Safety
/// Both ranges must be mapped, and may be read.
#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
unsafe fn coherent(write: *const u8, execute: *const u8, bytes: usize) -> bool {
    use std::arch::asm;
    /// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE`
    const SYNCHRONISE: i32 = 1 << 5;
    let kinds: u64;
    // SAFETY: reads a register that Linux lets programs read.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) kinds, options(nomem, nostack)) };
    let (data, code) = (4usize << (kinds >> 16 & 15), 4usize << (kinds & 15));
    let lines = |start: *const u8, line: usize| {
        let first = start as usize & !(line - 1);
        (first..start as usize + bytes).step_by(line)
    };
    // SAFETY: as the caller promises.
    unsafe {
        // Bits IDC and DIC: caches that need no such care.
        if kinds >> 28 & 1 == 0 {
            for at in lines(write, data) {
                asm!("dc cvau, {}", in(reg) at, options(nostack));
            }
        }
        asm!("dsb ish", options(nostack));
        if kinds >> 29 & 1 == 0 {
            for at in lines(execute, code) {
                asm!("ic ivau, {}", in(reg) at, options(nostack));
            }
        }
        asm!("dsb ish", "isb", options(nostack));
        libc::syscall(libc::SYS_membarrier, SYNCHRONISE, 0, 0) == 0
    }
}
/// Drops the bytes from the instruction caches. Returns true.
///
/// # Safety
/// The range must be mapped.
#[cfg(all(target_arch = "aarch64", target_os = "macos"))]
unsafe fn coherent(_write: *const u8, execute: *const u8, bytes: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { apple::dropped_from_caches(execute.cast_mut(), bytes) };
    true
}
/// Does nothing: processors see what is written.
///
/// # Safety
/// None.
#[cfg(not(all(target_arch = "aarch64", any(target_os = "linux", target_os = "macos"))))]
unsafe fn coherent(_write: *const u8, _execute: *const u8, _bytes: usize) -> bool {
    true
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
