//! Memory from the operating system: pages for heaps, regions, cells of processes and tables of the
//! runtime.
//!
//! Addresses are reserved first and become usable later ([`Growing`], [`commit`]). All reserved
//! areas have a name, by which `purlin explain memory` shows them ([`areas`]).
//!
//! # Invariants
//! - No address is given back to the system while something may refer to it: [`release`] and
//!   [`decommit`] are unsafe for that reason.
//! - A refused request for memory that the runtime cannot do without ends the program with a
//!   message ([`refused`]). Functions whose names begin with `try_` return the failure.

use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// The function that ends the runtime when memory is refused. Arguments: kind of allocator, bytes,
/// purpose.
pub(crate) type OutOfMemory = fn(allocator: &str, bytes: usize, purpose: &str) -> !;

static OUT_OF_MEMORY: std::sync::OnceLock<OutOfMemory> = std::sync::OnceLock::new();

/// Sets that function. Called once, before programs run.
pub fn set_out_of_memory(f: OutOfMemory) {
    let _ = OUT_OF_MEMORY.set(f);
}

/// Ends the runtime because memory was refused.
#[cold]
pub fn out_of_memory(allocator: &str, bytes: usize, purpose: &str) -> ! {
    if let Some(f) = OUT_OF_MEMORY.get() {
        f(allocator, bytes, purpose)
    }
    crate::say!("{allocator}: Cannot allocate {bytes} bytes of memory (of type \"{purpose}\").");
    std::process::exit(1)
}

/// Returns free pages of the C library's allocator to the system, if it can do so.
pub(crate) fn trim_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Reserves `bytes` of zeroed memory that takes no room until it is touched.
pub fn reserve_rw(bytes: usize) -> usize {
    map(bytes, libc::PROT_READ | libc::PROT_WRITE).unwrap_or_else(|| refused(bytes))
}
/// Memory that grows at its end, in a range of addresses reserved for it: it is zeroed, and never
/// moves. Nothing can be written behind its end, so the range does not count as memory: not against
/// `RLIMIT_DATA`, nor if the system promises no more than it has (`vm.overcommit_memory`).
///
/// # Orderings
/// `grow` makes pages usable under its lock and then stores `usable` with `Release`; `try_ensure`
/// loads it with `Acquire`. A thread that sees a size therefore also sees the pages up to it as
/// writable. [`Growing::claim`] stores the address and the maximum before the first `usable`, under
/// the lock. A thread that learns by other means that there is memory has synchronised with the one
/// that claimed it.
pub struct Growing {
    at: AtomicPtr<u8>,
    most: AtomicUsize,
    /// Number of bytes that can be used.
    usable: AtomicUsize,
    grows: crate::sync::Mutex<()>,
}

/// Where such memory begins before it has addresses.
static NOTHING: AtomicU64 = AtomicU64::new(0);

/// Minimum number of bytes by which such memory grows.
const GROWS_BY: usize = 1 << 20;
/// It grows by at least this part of its size, so that large memory grows seldom.
const GROWS_BY_SHARE: usize = 16;

impl Growing {
    /// Returns memory that has no addresses yet, and no room. It begins at eight zero bytes, which
    /// may be read.
    pub const fn unclaimed() -> Growing {
        Growing {
            at: AtomicPtr::new((&raw const NOTHING).cast_mut().cast()),
            most: AtomicUsize::new(0),
            usable: AtomicUsize::new(0),
            grows: crate::sync::Mutex::new(()),
        }
    }
    /// Reserves addresses for `most` bytes, in an area that [`areas`] lists, unless there are some
    /// already. Returns false if the system has too few.
    pub fn try_claim(&self, name: &'static str, most: usize) -> bool {
        let _grows = self.grows.lock();
        if self.most() != 0 {
            return true;
        }
        let most = most.next_multiple_of(page_bytes());
        let Some(at) = map(most, libc::PROT_NONE) else {
            return false;
        };
        note_area(name, at, most);
        self.at.store(at as *mut u8, Ordering::Relaxed);
        self.most.store(most, Ordering::Relaxed);
        true
    }
    /// The same, but ends the runtime without the addresses, which it needs.
    pub fn claim(&self, name: &'static str, most: usize) {
        if !self.try_claim(name, most) {
            refused(most);
        }
    }
    /// Room for `most` bytes, in an area that [`areas`] lists. None if there are not enough
    /// addresses.
    pub fn reserve(name: &'static str, most: usize) -> Option<Growing> {
        let g = Growing::unclaimed();
        g.try_claim(name, most).then_some(g)
    }
    /// The same, but ends the runtime without the addresses, which it needs to start.
    pub fn new(name: &'static str, most: usize) -> Growing {
        Growing::reserve(name, most).unwrap_or_else(|| refused(most))
    }
    /// Address of its beginning.
    #[inline(always)]
    pub fn at(&self) -> usize {
        self.at.load(Ordering::Relaxed) as usize
    }
    /// Maximum number of bytes; 0 before there are addresses.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
    /// Makes at least the first `bytes` bytes usable. If the system refuses, the runtime ends as it
    /// does when memory is used up.
    #[inline(always)]
    pub fn ensure(&self, bytes: usize) {
        if !self.try_ensure(bytes) {
            out_of_memory("ll_alloc", bytes, "area");
        }
    }
    /// The same; returns false if the system refuses, or if there is not enough room.
    #[inline(always)]
    pub fn try_ensure(&self, bytes: usize) -> bool {
        bytes <= self.usable.load(Ordering::Acquire) || self.grow(bytes)
    }
    #[cold]
    fn grow(&self, bytes: usize) -> bool {
        let _grows = self.grows.lock();
        let usable = self.usable.load(Ordering::Relaxed);
        if bytes <= usable {
            return true;
        }
        if bytes > self.most() {
            return false;
        }
        let more = (usable / GROWS_BY_SHARE).max(GROWS_BY);
        let generous = bytes
            .max(usable + more)
            .next_multiple_of(page_bytes())
            .min(self.most());
        let exact = bytes.next_multiple_of(page_bytes());
        let to = [generous, exact]
            .into_iter()
            // SAFETY: inside the addresses that were reserved for this memory.
            .find(|to| unsafe { try_commit(self.at() + usable, to - usable) });
        if let Some(to) = to {
            self.usable.store(to, Ordering::Release);
        }
        to.is_some()
    }
}

/// Limit of the process's addresses in bytes (`RLIMIT_AS`), if there is one.
pub fn address_limit() -> Option<usize> {
    limit(libc::RLIMIT_AS as _)
}

/// Limit in bytes of files that this process writes (`RLIMIT_FSIZE`), if there is one. Exceeding it
/// raises a signal.
pub fn file_limit() -> Option<usize> {
    limit(libc::RLIMIT_FSIZE as _)
}

/// Limit in bytes of the main thread's stack (`RLIMIT_STACK`), if there is one.
pub fn stack_limit() -> Option<usize> {
    limit(libc::RLIMIT_STACK as _)
}

fn limit(which: i32) -> Option<usize> {
    let mut all = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: room for the result.
    let r = unsafe { libc::getrlimit(which as _, &mut all) };
    (r == 0 && all.rlim_cur != libc::RLIM_INFINITY).then_some(all.rlim_cur as usize)
}

/// If addresses are limited, has the allocator of the C library take few for itself: it would
/// reserve 64 MiB for each thread. Called before there is a second thread.
pub fn spare_addresses() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if address_limit().is_some() {
        // SAFETY: sets a parameter of the allocator.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
    }
}

/// Reserves addresses of an area that [`areas`] lists, without memory behind them: those at
/// `wanted` if they are free, otherwise others; `None` if the system refuses. What is made usable
/// ([`commit`]) comes in small pages.
pub fn reserve_near(wanted: usize, bytes: usize, name: &'static str) -> Option<usize> {
    let at = reserve_at(wanted, bytes).or_else(|| try_reserve(bytes))?;
    #[cfg(target_os = "linux")]
    // SAFETY: inside that range. A large page would hold memory most of which no code needs.
    unsafe {
        libc::madvise(at as *mut _, bytes, libc::MADV_NOHUGEPAGE)
    };
    note_area(name, at, bytes);
    Some(at)
}

/// Reserves the addresses at `wanted`, if they are free and the system can do that.
pub(crate) fn reserve_at(wanted: usize, bytes: usize) -> Option<usize> {
    #[cfg(target_os = "linux")]
    {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        let flags = flags | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a fresh anonymous mapping, which replaces no other.
        let p = unsafe { libc::mmap(wanted as *mut _, bytes, libc::PROT_NONE, flags, -1, 0) };
        if p as usize == wanted {
            return Some(wanted);
        }
        // Old systems treat the address as a hint.
        if p != libc::MAP_FAILED {
            // SAFETY: this mapping was made above, and no other code knows it.
            unsafe { release(p as usize, bytes) };
        }
        None
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (wanted, bytes);
        None
    }
}

static AREAS: crate::sync::Mutex<Vec<Area>> = crate::sync::Mutex::new(Vec::new());

/// Addresses reserved for one purpose, a part of which is in use.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub name: &'static str,
    pub at: usize,
    pub bytes: usize,
}

pub(crate) fn note_area(name: &'static str, at: usize, bytes: usize) {
    let mut all = AREAS.lock();
    all.push(Area { name, at, bytes });
}

/// The areas that are reserved permanently.
pub fn areas() -> Vec<Area> {
    AREAS.lock().clone()
}

/// Number of resident bytes in a mapped range of addresses; None if the system does not report it.
pub fn resident(at: usize, bytes: usize) -> Option<usize> {
    const PAGES: usize = 1 << 16;
    let page = page_bytes();
    let mut resident = vec![0u8; PAGES];
    let (mut from, end) = (at / page * page, (at + bytes).next_multiple_of(page));
    let mut pages = 0;
    while from < end {
        let n = ((end - from) / page).min(PAGES);
        // SAFETY: asks about a range of addresses, and writes a byte for each of its pages.
        let r = unsafe { libc::mincore(from as *mut _, n * page, resident.as_mut_ptr().cast()) };
        if r != 0 {
            return None;
        }
        pages += resident[..n].iter().filter(|b| **b & 1 != 0).count();
        from += n * page;
    }
    Some(pages * page)
}

/// Reserves `bytes` of addresses without memory behind them; None if the system refuses.
pub(crate) fn try_reserve(bytes: usize) -> Option<usize> {
    map(bytes, libc::PROT_NONE)
}
/// As [`reserve_rw`]; None if the system refuses.
pub(crate) fn try_reserve_rw(bytes: usize) -> Option<usize> {
    map(bytes, libc::PROT_READ | libc::PROT_WRITE)
}
/// As [`reserve_rw`], for what a program needs while it runs: the runtime ends if memory is used
/// up. The addresses behind a large mapping are free when it is made, so that it can probably grow
/// in place ([`extend`]).
pub(crate) fn heap_rw(bytes: usize) -> usize {
    if bytes >= ROOM_ABOVE_BYTES
        && let Some(at) = map_with_room(bytes)
    {
        // SAFETY: these addresses were reserved above, and no other code knows them.
        unsafe {
            if try_commit(at, bytes) {
                return at;
            }
            release(at, bytes);
        }
    }
    map(bytes, libc::PROT_READ | libc::PROT_WRITE)
        .unwrap_or_else(|| out_of_memory("eheap_alloc", bytes, "heap"))
}
/// Mappings of fewer bytes get no free addresses behind them.
const ROOM_ABOVE_BYTES: usize = 1 << 20;
/// Mappings of more bytes get addresses where the system puts no others.
const APART_ABOVE_BYTES: usize = 32 << 20;
/// Bytes of a large page, if a page has 4 KiB.
pub(crate) const LARGE_PAGE: usize = 2 << 20;
/// Asks for large pages for the whole pages of a range, if it has room for some: one fault instead
/// of 512, and one entry of the processor's page table instead of as many. If the system has none
/// or may not give any, small ones come. The request covers all of a mapping: it would otherwise
/// become two, which cannot be enlarged.
///
/// # Safety
/// The range belongs to the caller.
pub(crate) unsafe fn in_large_pages(addr: usize, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        let page = page_bytes();
        let from = addr.next_multiple_of(page);
        let to = (addr + bytes) / page * page;
        // SAFETY: by the contract, the range is the caller's. This affects how memory is provided,
        // not its contents.
        unsafe { libc::madvise(from as *mut _, to.saturating_sub(from), libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (addr, bytes);
}
/// Reserves addresses behind which twice as many are free; if large pages fit the mapping, it is
/// aligned to one.
fn map_with_room(bytes: usize) -> Option<usize> {
    let all = bytes.checked_mul(3)?;
    let apart = match bytes >= APART_ABOVE_BYTES {
        true => map_apart(all),
        false => None,
    };
    let at = match apart {
        Some(at) => at,
        None if bytes >= LARGE_PAGE => {
            let from = map(all.checked_add(LARGE_PAGE)?, libc::PROT_NONE)?;
            let at = from.next_multiple_of(LARGE_PAGE);
            // SAFETY: both ends belong to the mapping made above, and no other code knows them.
            unsafe {
                if from < at {
                    release(from, at - from);
                }
                if at + all < from + all + LARGE_PAGE {
                    release(at + all, from + LARGE_PAGE - at);
                }
            }
            at
        }
        None => map(all, libc::PROT_NONE)?,
    };
    // SAFETY: the end of the mapping made above, which no other code knows.
    unsafe { release(at + bytes, 2 * bytes) };
    Some(at)
}
/// Reserves addresses far below those that the system gives, lower ones each time, so that the
/// addresses behind an earlier mapping stay free. (The system fills the highest gap that is large
/// enough, so the room behind one large block would soon hold another.) After [`APART_BYTES`] it
/// starts again from the top. None if the addresses are in use or the system has none there.
fn map_apart(bytes: usize) -> Option<usize> {
    #[cfg(target_os = "linux")]
    {
        use std::sync::OnceLock;
        static TOP: OnceLock<Option<usize>> = OnceLock::new();
        static LOWEST: AtomicUsize = AtomicUsize::new(0);
        let top = (*TOP.get_or_init(|| {
            let at = map(page_bytes(), libc::PROT_NONE)?;
            // SAFETY: the mapping was made above, and no other code knows it.
            unsafe { release(at, page_bytes()) };
            at.checked_sub(APART_BYTES)
        }))?;
        let place = |lowest: usize| {
            let from = match lowest {
                0 => top,
                at => at,
            };
            let at = from.checked_sub(bytes)? / LARGE_PAGE * LARGE_PAGE;
            (at > top.saturating_sub(APART_BYTES)).then_some(at)
        };
        let lower = |lowest| place(lowest).or_else(|| place(0));
        let before = LOWEST
            .try_update(Ordering::Relaxed, Ordering::Relaxed, lower)
            .ok()?;
        let at = lower(before)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping, which takes no addresses that are in use.
        let p = unsafe {
            libc::mmap(
                at as *mut _,
                bytes,
                libc::PROT_NONE,
                flags | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if p == libc::MAP_FAILED {
            return None;
        }
        if p as usize != at {
            // A system that does not know the flag treats the address as a hint.
            // SAFETY: the mapping was made above, and no other code knows it.
            unsafe { release(p as usize, bytes) };
            return None;
        }
        Some(at)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = bytes;
        None
    }
}
/// Bytes between the addresses that the system gives and those of [`map_apart`], and number of the
/// latter.
#[cfg(target_os = "linux")]
const APART_BYTES: usize = 4 << 40;
/// Ends the runtime because the addresses that it needs to start were refused.
pub fn refused(bytes: usize) -> ! {
    crate::say!(
        "purlin: cannot reserve {bytes} bytes of addresses: {}",
        std::io::Error::last_os_error()
    );
    std::process::exit(1);
}
/// Reserves addresses that `perf` takes for code, because they are mapped as such. Nothing is
/// there. None if the system refuses.
pub fn reserve_marks(bytes: usize) -> Option<usize> {
    map(bytes, libc::PROT_READ | libc::PROT_EXEC)
}
fn map(bytes: usize, prot: i32) -> Option<usize> {
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
    (p != libc::MAP_FAILED).then_some(p as usize)
}
pub fn page_bytes() -> usize {
    static PAGE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    // SAFETY: reads a constant of the system.
    *PAGE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize)
}
/// Makes reserved addresses usable.
///
/// # Safety
/// The range belongs to the caller.
pub unsafe fn commit(addr: usize, bytes: usize) {
    // SAFETY: the contract is the same.
    if !unsafe { try_commit(addr, bytes) } {
        out_of_memory("eheap_alloc", bytes, "heap");
    }
}
/// The same; returns false if the system refuses.
///
/// # Safety
/// The range belongs to the caller.
pub(crate) unsafe fn try_commit(addr: usize, bytes: usize) -> bool {
    // SAFETY: by the contract, the range is the caller's.
    unsafe { libc::mprotect(addr as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}
/// Makes committed addresses read-only.
///
/// # Safety
/// The range belongs to the caller, and nothing writes to it afterwards.
pub(crate) unsafe fn seal(addr: usize, bytes: usize) {
    // SAFETY: by the contract, the range is the caller's.
    unsafe { libc::mprotect(addr as *mut _, bytes, libc::PROT_READ) };
}
/// Makes committed addresses reserved ones again: their contents are gone, and they are
/// inaccessible. They are mapped anew, so that they merge with reserved neighbours into one
/// mapping.
///
/// # Safety
/// The range belongs to the caller, and nothing uses its contents any more.
pub(crate) unsafe fn protect(addr: usize, bytes: usize) {
    // SAFETY: by the contract, nothing uses what is replaced.
    let p = unsafe {
        libc::mmap(
            addr as *mut _,
            bytes,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    debug_assert!(p != libc::MAP_FAILED);
}
/// Asks for the memory behind committed addresses that will be written now: one call costs less
/// than a fault for each page. If the system does not know the request, the faults come.
///
/// # Safety
/// The range belongs to the caller.
pub(crate) unsafe fn populate(addr: usize, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: by the contract, the range is the caller's. The contents stay as they are.
    unsafe {
        libc::madvise(addr as *mut _, bytes, libc::MADV_POPULATE_WRITE)
    };
    #[cfg(not(target_os = "linux"))]
    let _ = (addr, bytes);
}
/// Gives back the memory behind committed addresses; they stay usable and read as zero.
///
/// # Safety
/// The range belongs to the caller, and nothing uses its contents any more.
pub unsafe fn decommit(addr: usize, bytes: usize) {
    // SAFETY: by the contract, nothing uses what is lost.
    unsafe { libc::madvise(addr as *mut _, bytes, libc::MADV_DONTNEED) };
}
/// Resizes a whole mapping, which may move. The contents of the part that stays are kept. None if
/// the system cannot do it: the mapping is as it was.
///
/// # Safety
/// The whole mapping belongs to the caller. If there is a result, only that is used afterwards.
pub unsafe fn resize(addr: usize, bytes: usize, new: usize) -> Option<usize> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the contract is the same.
        if unsafe { extend(addr, bytes, new) } {
            return Some(addr);
        }
        if new >= ROOM_ABOVE_BYTES
            && let Some(at) = map_with_room(new)
        {
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            // SAFETY: by the contract, nothing uses the old addresses afterwards. The new ones were
            // reserved for it.
            let p = unsafe { libc::mremap(addr as *mut _, bytes, new, flags, at) };
            if p != libc::MAP_FAILED {
                return Some(p as usize);
            }
            // The system may have released the reserved addresses before it failed, and others may
            // have got them: leave them.
        }
        // SAFETY: by the contract, nothing uses the old addresses afterwards.
        let p = unsafe { libc::mremap(addr as *mut _, bytes, new, libc::MREMAP_MAYMOVE) };
        (p != libc::MAP_FAILED).then_some(p as usize)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (addr, bytes, new);
        None
    }
}
/// Resizes a whole mapping in place. False if the addresses behind it are not free, or if the
/// system cannot do it.
///
/// # Safety
/// The whole mapping belongs to the caller. If it shrinks, nothing uses what is cut off.
pub(crate) unsafe fn extend(addr: usize, bytes: usize, new: usize) -> bool {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: by the contract, nothing uses what is cut off. The rest is kept.
        let p = unsafe { libc::mremap(addr as *mut _, bytes, new, 0) };
        p != libc::MAP_FAILED
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (addr, bytes, new);
        false
    }
}
/// Gives back a mapping made by `reserve` or `reserve_rw`, or whole pages of it, with its
/// addresses.
///
/// # Safety
/// The range belongs to the caller, and nothing uses it afterwards.
pub unsafe fn release(addr: usize, bytes: usize) {
    // SAFETY: by the contract, nothing uses the range afterwards.
    unsafe { libc::munmap(addr as *mut _, bytes) };
}
