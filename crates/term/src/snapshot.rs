//! Snapshots of the memory of this process: what all threads had in memory and registers at one
//! moment.
//!
//! All other threads are stopped by a signal. The frame of its handler holds their registers, so
//! they are in memory. Then the process is copied (`clone(2)`, copy on write) and the threads go
//! on. The copy never runs; this process reads its memory through `/proc`, and ends it.
//!
//! # Invariants
//! - Between the first signal and the end of the stop, the stopping thread calls only the kernel: a
//!   stopped thread may hold any lock, that of the allocator included.
//! - A thread that does not stop in time ([`PATIENCE`]) makes the snapshot fail. So does memory
//!   that cannot be read. A snapshot is complete or none.
//! - The copy shares the descriptors of the process, so a closed one is closed. It sends no signal
//!   when it ends, and nothing else waits for it (`__WCLONE`).
//!
//! # Orderings
//! All accesses of the handler and the stopping thread are `SeqCst`.

use crate::sys::page_bytes;
use std::ffi::c_int;
use std::fs::{File, read_to_string};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Number of the stop that is in force; 0 if threads run.
static STOP: AtomicU32 = AtomicU32::new(0);
/// Threads that have stopped.
static STOPPED: [AtomicI32; MOST_THREADS] = [const { AtomicI32::new(0) }; MOST_THREADS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Maximum number of threads.
const MOST_THREADS: usize = 8192;
/// Maximum time for all threads to stop.
const PATIENCE: Duration = Duration::from_millis(200);
/// Bytes read at a time.
const BYTES: usize = 1 << 20;

fn signal() -> c_int {
    libc::SIGRTMAX() - 2
}

fn futex(how: c_int, n: u32) {
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word is a static.
    unsafe { libc::syscall(libc::SYS_futex, STOP.as_ptr(), how, n, none) };
}

/// Stops the thread until the stop ends.
extern "C" fn stopped(_: c_int) {
    let stop = STOP.load(SeqCst);
    if stop == 0 {
        return;
    }
    // SAFETY: the thread's own; restored below.
    let errno = unsafe { *libc::__errno_location() };
    let n = COUNT.fetch_add(1, SeqCst);
    if let Some(s) = STOPPED.get(n) {
        // SAFETY: always allowed.
        s.store(unsafe { libc::syscall(libc::SYS_gettid) } as i32, SeqCst);
    }
    while STOP.load(SeqCst) == stop {
        futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, stop);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Takes snapshots. There is one, since stops have no other order.
pub(crate) struct Snapshots {
    stops: u32,
    tasks: File,
    /// Entries of the folder of threads, as the kernel writes them; aligned.
    entries: Vec<u64>,
    /// Threads that have been sent the signal.
    sent: Vec<i32>,
    /// Words that were read.
    words: Vec<u64>,
}

/// A copy of the process, which is ended when this is dropped.
struct Copy(i32);

impl Drop for Copy {
    fn drop(&mut self) {
        let mut status = 0;
        // SAFETY: a child of this process that nothing else waits for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            while libc::waitpid(self.0, &mut status, libc::__WALL) < 0
                && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
            {
            }
        }
    }
}

impl Snapshots {
    pub(crate) fn prepare() -> Result<Snapshots, String> {
        let tasks = File::open("/proc/self/task").map_err(|e| format!("/proc/self/task: {e}"))?;
        // SAFETY: a zeroed action is valid, and the handler calls only the kernel.
        let done = unsafe {
            let mut a: libc::sigaction = std::mem::zeroed();
            a.sa_sigaction = stopped as *const () as usize;
            a.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigfillset(&mut a.sa_mask);
            libc::sigaction(signal(), &a, std::ptr::null_mut())
        };
        if done != 0 {
            return Err(format!("a signal: {}", std::io::Error::last_os_error()));
        }
        Ok(Snapshots {
            stops: 0,
            tasks,
            entries: vec![0; 1 << 12],
            sent: Vec::with_capacity(MOST_THREADS),
            words: vec![0; BYTES / 8],
        })
    }

    /// Takes a snapshot, and calls `look` with all of its memory that may hold something, without
    /// what is in the range `skip`. Returns the number of bytes, and the time for which the threads
    /// were stopped.
    pub(crate) fn look(
        &mut self,
        skip: Range<usize>,
        look: &mut dyn FnMut(&[u64]),
    ) -> Result<(u64, Duration), String> {
        let begun = Instant::now();
        let copy = self.take()?;
        let stop = begun.elapsed();
        let bytes = self.read(&copy, skip, look);
        // What is left here would be in the next snapshot.
        self.words.fill(0);
        bytes.map(|n| (n, stop))
    }

    /// Stops the threads and copies the process.
    fn take(&mut self) -> Result<Copy, String> {
        self.stops = self.stops.wrapping_add(1).max(1);
        self.sent.clear();
        COUNT.store(0, SeqCst);
        STOP.store(self.stops, SeqCst);
        let stopped = self.stop_others();
        let copy = match stopped {
            true => copy_process(),
            false => 0,
        };
        // SAFETY: reads the error number of the last call.
        let error = unsafe { *libc::__errno_location() };
        STOP.store(0, SeqCst);
        futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX as u32);
        match copy {
            0 => Err("a thread does not stop".into()),
            n if n < 0 => Err(format!(
                "the process cannot be copied: {}",
                std::io::Error::from_raw_os_error(error)
            )),
            n => Ok(Copy(n)),
        }
    }

    /// Stops all other threads; false if one does not stop. Calls only the kernel.
    fn stop_others(&mut self) -> bool {
        // SAFETY: always allowed.
        let (process, own) = unsafe { (libc::getpid(), libc::syscall(libc::SYS_gettid) as i32) };
        let until = Instant::now() + PATIENCE;
        loop {
            let Some(all_stopped) = self.stop_listed(process, own) else {
                return false;
            };
            // No thread is left that could make another.
            if all_stopped {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            let rest = libc::timespec {
                tv_sec: 0,
                tv_nsec: 20_000,
            };
            // SAFETY: a valid time.
            unsafe { libc::nanosleep(&rest, std::ptr::null_mut()) };
        }
    }

    /// Sends the signal to the threads that have not got it. Returns whether all have stopped; None
    /// if they cannot be listed.
    fn stop_listed(&mut self, process: i32, own: i32) -> Option<bool> {
        let fd = self.tasks.as_raw_fd();
        let room = self.entries.len() * 8;
        let at = self.entries.as_mut_ptr().cast::<u8>();
        let mut all = true;
        // SAFETY: an open folder.
        unsafe { libc::lseek(fd, 0, libc::SEEK_SET) };
        loop {
            // SAFETY: the kernel writes at most that many bytes.
            let n = unsafe { libc::syscall(libc::SYS_getdents64, fd, at, room) };
            let n = usize::try_from(n).ok()?;
            if n == 0 {
                return Some(all);
            }
            // SAFETY: these were written.
            let mut bytes = unsafe { std::slice::from_raw_parts(at.cast_const(), n) };
            // Inode and offset, length, type, and the name with a zero at its end.
            while let Some(len) = bytes.get(16..18) {
                let len = usize::from(u16::from_ne_bytes([len[0], len[1]]));
                let (entry, rest) = bytes.split_at_checked(len.max(19))?;
                bytes = rest;
                let digits = entry[19..].iter().take_while(|c| **c != 0);
                let Some(thread) = number(digits) else {
                    continue;
                };
                if thread == own {
                    continue;
                }
                if !self.sent.contains(&thread) {
                    if self.sent.len() == MOST_THREADS {
                        return None;
                    }
                    self.sent.push(thread);
                    // SAFETY: the thread may have ended; then the call fails.
                    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal()) };
                }
                let stopped = COUNT.load(SeqCst).min(MOST_THREADS);
                all &= STOPPED[..stopped].iter().any(|s| s.load(SeqCst) == thread);
            }
        }
    }

    fn read(
        &mut self,
        copy: &Copy,
        skip: Range<usize>,
        look: &mut dyn FnMut(&[u64]),
    ) -> Result<u64, String> {
        let path = |name: &str| format!("/proc/{}/{name}", copy.0);
        let failed = |name: &str, e: std::io::Error| format!("{}: {e}", path(name));
        let maps = read_to_string(path("maps")).map_err(|e| failed("maps", e))?;
        let pages = File::open(path("pagemap")).map_err(|e| failed("pagemap", e))?;
        let memory = File::open(path("mem")).map_err(|e| failed("mem", e))?;
        let size = page_bytes();
        let mut total = 0;
        let mut entries = vec![0u8; 8 * (BYTES / size)];
        for line in maps.lines() {
            let Some(range) = looked_at(line) else {
                continue;
            };
            let mut at = range.start;
            while at < range.end {
                if skip.contains(&at) {
                    at = skip.end.min(range.end);
                    continue;
                }
                let end = match at < skip.start {
                    true => range.end.min(skip.start),
                    false => range.end,
                };
                let most = (end - at).min(BYTES);
                let entries = &mut entries[..8 * (most / size)];
                pages
                    .read_exact_at(entries, (at / size * 8) as u64)
                    .map_err(|e| failed("pagemap", e))?;
                // The highest bits: in memory, or swapped.
                let there = |e: &[u8]| e[7] & 0xC0 != 0;
                let mut first = 0;
                for (n, e) in entries
                    .chunks_exact(8)
                    .enumerate()
                    .chain([(most / size, &[0; 8][..])])
                {
                    if there(e) {
                        continue;
                    }
                    if n > first {
                        let words = &mut self.words[..(n - first) * size / 8];
                        let len = size_of_val(words);
                        // SAFETY: words are bytes, and any bytes are words.
                        let bytes = unsafe {
                            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), len)
                        };
                        memory
                            .read_exact_at(bytes, (at + first * size) as u64)
                            .map_err(|e| failed("mem", e))?;
                        look(words);
                        total += len as u64;
                    }
                    first = n + 1;
                }
                at += most;
            }
        }
        Ok(total)
    }
}

fn number<'a>(digits: impl Iterator<Item = &'a u8>) -> Option<i32> {
    let mut n = None;
    for &c in digits {
        let digit = c.is_ascii_digit().then(|| i32::from(c - b'0'))?;
        n = Some(n.unwrap_or(0i32).checked_mul(10)?.checked_add(digit)?);
    }
    n
}

/// Returns the range of a line of `/proc/PID/maps`, if terms may lie there: memory that can be
/// read, belongs to this process alone, and is no constant part of a file.
fn looked_at(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (range, rights) = (fields.next()?, fields.next()?.as_bytes());
    let inode = fields.nth(2)?;
    let name = fields.next().unwrap_or_default();
    let special = name.starts_with("[v");
    if rights[0] != b'r' || rights[3] == b's' || special || rights[1] != b'w' && inode != "0" {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let n = |text| usize::from_str_radix(text, 16).ok();
    Some(n(start)?..n(end)?)
}

/// Makes the copy, which waits to be ended. Returns its number, or a negative one.
fn copy_process() -> i32 {
    // All signals are blocked in the copy: it must run nothing of this process.
    // SAFETY: plain calls with valid arguments; the copy has its own stack, as after a fork.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
        let none = std::ptr::null_mut::<libc::c_void>();
        let made = libc::syscall(libc::SYS_clone, libc::CLONE_FILES, none, none, none, none);
        if made == 0 {
            libc::syscall(
                libc::SYS_prctl,
                libc::PR_SET_PDEATHSIG,
                libc::SIGKILL,
                0,
                0,
                0,
            );
            loop {
                libc::syscall(libc::SYS_ppoll, none, 0, none, none, 0);
            }
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        made as i32
    }
}
