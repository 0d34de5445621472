//! Snapshots of the memory of this process: what all threads had in memory and registers at one
//! moment.
//!
//! All other threads are stopped by a signal. The frame of its handler holds their registers, so
//! they are in memory. Then the process is copied (`clone(2)`, copy on write) and the threads
//! continue. The copy never runs; this process reads its memory through `/proc`, and ends it.
//!
//! # Invariants
//! - Between the first signal and the end of the stop, the stopping thread calls only the kernel: a
//!   stopped thread may hold any lock, that of the allocator included.
//! - A thread that does not stop in time ([`STOP_TIME_LIMIT`]) makes the snapshot fail. So does
//!   memory that cannot be read. A snapshot is complete or none. Where a thread blocks the signal,
//!   or sleeps so that none wakes it, no thread is stopped at all.
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
/// Maximum time for all threads to stop. They take as long only where they do not get a processor.
const STOP_TIME_LIMIT: Duration = Duration::from_secs(1);
/// Number of times that threads which cannot be stopped are looked at, and the time between.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes read at a time.
const BYTES_AT_ONCE: usize = 1 << 20;
/// Maximum number of ranges that the kernel lists at a time.
const RANGES: usize = 1 << 10;

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
    let errno = unsafe { *crate::errno::place() };
    let n = COUNT.fetch_add(1, SeqCst);
    if let Some(s) = STOPPED.get(n) {
        // SAFETY: always allowed.
        s.store(unsafe { libc::syscall(libc::SYS_gettid) } as i32, SeqCst);
    }
    while STOP.load(SeqCst) == stop {
        futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, stop);
    }
    // SAFETY: the address of this thread's `errno`, which is valid as long as the thread.
    unsafe { *crate::errno::place() = errno };
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
    /// Ranges that the kernel has listed.
    ranges: Vec<Listed>,
    /// Whether the kernel lists them; Linux does from 6.7 on.
    lists: bool,
}

/// A range of pages, as the kernel writes it (`struct page_region`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Listed {
    start: u64,
    end: u64,
    kinds: u64,
}

/// A request for such ranges (`struct pm_scan_arg`).
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    ranges: u64,
    most: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}
/// `PAGEMAP_SCAN`, and the kinds of pages that are in memory or swapped.
const SCAN: u32 = 0xC060_6610;
const PRESENT_OR_SWAPPED: u64 = 1 << 3 | 1 << 4;

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
            words: vec![0; BYTES_AT_ONCE / 8],
            ranges: vec![Listed::default(); RANGES],
            lists: true,
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
        let mut attempts = 1;
        while let Some(why) = unstoppable() {
            if attempts == ATTEMPTS {
                return Err(why);
            }
            attempts += 1;
            std::thread::sleep(PAUSE);
        }
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
        let error = unsafe { *crate::errno::place() };
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
        let until = Instant::now() + STOP_TIME_LIMIT;
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
        let mut total = 0;
        for line in maps.lines() {
            let Some(range) = looked_at(line) else {
                continue;
            };
            let before = range.start..range.end.min(skip.start);
            let behind = range.start.max(skip.end)..range.end;
            for Range { start: mut at, end } in [before, behind] {
                while at < end {
                    let (n, next) = self
                        .list(&pages, at..end)
                        .map_err(|e| failed("pagemap", e))?;
                    for i in 0..n {
                        let Listed { start, end, .. } = self.ranges[i];
                        total += self
                            .look_at(&memory, start..end, look)
                            .map_err(|e| failed("mem", e))?;
                    }
                    at = next;
                }
            }
        }
        Ok(total)
    }

    /// Lists ranges of pages that are in memory or swapped, from the beginning of `range` on.
    /// Returns their number, and the address up to which they were listed.
    fn list(&mut self, pages: &File, range: Range<usize>) -> std::io::Result<(usize, usize)> {
        if self.lists {
            match self.scan(pages, &range) {
                Some(listed) => return Ok(listed),
                None => self.lists = false,
            }
        }
        let size = page_bytes();
        let end = range.end.min(range.start + RANGES * size);
        let mut entries = [0u8; 8 * RANGES];
        let entries = &mut entries[..(end - range.start) / size * 8];
        pages.read_exact_at(entries, (range.start / size * 8) as u64)?;
        let mut n = 0;
        let mut last = 0;
        for (at, e) in (range.start..).step_by(size).zip(entries.chunks_exact(8)) {
            // The highest bits: in memory, or swapped.
            if e[7] & 0xC0 == 0 {
                continue;
            }
            if n == 0 || last != at {
                self.ranges[n].start = at as u64;
                n += 1;
            }
            last = at + size;
            self.ranges[n - 1].end = last as u64;
        }
        Ok((n, end))
    }

    /// The same by a call that skips what is not there. None if the kernel does not have it.
    fn scan(&mut self, pages: &File, range: &Range<usize>) -> Option<(usize, usize)> {
        let mut request = Scan {
            size: size_of::<Scan>() as u64,
            start: range.start as u64,
            end: range.end as u64,
            ranges: self.ranges.as_mut_ptr() as u64,
            most: self.ranges.len() as u64,
            any_of: PRESENT_OR_SWAPPED,
            returned: PRESENT_OR_SWAPPED,
            ..Scan::default()
        };
        // SAFETY: the kernel reads the request, and writes at most that many ranges.
        let n = unsafe { libc::ioctl(pages.as_raw_fd(), SCAN as _, &mut request) };
        let next = request.walk_end as usize;
        let n = usize::try_from(n).ok()?.min(self.ranges.len());
        (next > range.start && next <= range.end).then_some((n, next))
    }

    /// Reads a range of the copy's memory, and has it looked at. Returns its number of bytes.
    fn look_at(
        &mut self,
        memory: &File,
        range: Range<u64>,
        look: &mut dyn FnMut(&[u64]),
    ) -> std::io::Result<u64> {
        for at in range.clone().step_by(BYTES_AT_ONCE) {
            let len = (range.end - at).min(BYTES_AT_ONCE as u64) as usize;
            let words = &mut self.words[..len / 8];
            // SAFETY: words are bytes, and any bytes are words.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), len) };
            memory.read_exact_at(bytes, at)?;
            look(words);
        }
        Ok(range.end - range.start)
    }
}

/// Returns why a thread would not stop, if one would not. Those that cannot be looked at have
/// ended.
fn unstoppable() -> Option<String> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let statuses = tasks.filter_map(|t| read_to_string(t.ok()?.path().join("status")).ok());
    statuses.filter_map(|s| unstoppable_with(&s)).next()
}

/// The same for one thread, by the lines of its `status`.
fn unstoppable_with(status: &str) -> Option<String> {
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name));
    let name = field("Name:").unwrap_or_default().trim();
    let blocked = u64::from_str_radix(field("SigBlk:")?.trim(), 16).ok()?;
    if blocked >> (signal() - 1) & 1 != 0 {
        return Some(format!("thread {name} blocks signal {}", signal()));
    }
    let sleeps = field("State:")?.trim().starts_with('D');
    sleeps.then(|| format!("thread {name} sleeps in the system"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_memory_are_listed_in_both_ways() {
        let size = page_bytes();
        let most = 3 * RANGES;
        let start = crate::sys::try_reserve_rw(most * size).expect("reserves");
        let end = start + most * size;
        let there: Vec<usize> = (0..most)
            .filter(|n| n % 7 < 3 && n % 1000 > 100 || *n == most - 1)
            .map(|n| start + n * size)
            .collect();
        for &at in &there {
            // SAFETY: reserved above, and this test's own.
            unsafe { (at as *mut u64).write_volatile(1) };
        }
        let pages = File::open("/proc/self/pagemap").expect("opens");
        for lists in [true, false] {
            let mut s = Snapshots::prepare().expect("prepares");
            s.lists = lists;
            let mut listed = Vec::new();
            let mut at = start;
            while at < end {
                let (n, next) = s.list(&pages, at..end).expect("lists");
                let all = s.ranges[..n].iter();
                listed.extend(all.flat_map(|r| (r.start as usize..r.end as usize).step_by(size)));
                at = next;
            }
            assert!(
                listed == there,
                "{lists}: {} of {}",
                listed.len(),
                there.len()
            );
        }
        // SAFETY: the mapping is this test's, which has no references to it.
        unsafe { crate::sys::decommit(start, end - start) };
    }
    #[test]
    fn threads_that_would_not_stop_are_named() {
        let status = |state, blocked: u64| {
            format!("Name:\tdisk\nState:\t{state}\nSigPnd:\t0\nSigBlk:\t{blocked:016x}\n")
        };
        let bit = 1 << (signal() - 1);
        assert_eq!(unstoppable_with(&status("S (sleeping)", !bit)), None);
        let blocks = unstoppable_with(&status("S (sleeping)", bit));
        assert!(blocks.is_some_and(|w| w.starts_with("thread disk blocks signal")));
        let sleeps = unstoppable_with(&status("D (disk sleep)", 0));
        assert_eq!(sleeps.as_deref(), Some("thread disk sleeps in the system"));
    }
}
