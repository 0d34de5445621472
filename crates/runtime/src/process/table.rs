//! Process cells and the table that leads from a pid to one.
//!
//! # Cells
//! Cells lie in one reserved range of addresses, are handed out by index and never unmapped: a stale pointer to a cell
//! always points at a cell, and the epoch in its signal queue (see `signal::queue`) tells whether it still is the
//! process that was meant. Free cells are kept on a list; memory is touched only as cells are first used.
//!
//! # Pids
//! A pid has 28 bits of data. The table has `size` slots, a power of two; pid data `d` sits in slot `d % size`, which
//! holds the index of the process's cell plus one. New pids are taken from a counter that skips occupied slots, so a
//! number comes again only after all others have had their turn. When more than seven eighths of the slots are taken
//! the table doubles: under the lock every live pid is entered at its new slot, then the new size is published, then
//! the old slots are cleared. A look-up checks the id in the cell, and tries again where the size has changed
//! meanwhile; so it finds neither the wrong process nor, while the table grows, none.

use super::Process;
use purlin_term::Term;
use purlin_term::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;

/// Most processes there can be: what 28 bits of pid data can name, less a margin for skipping.
pub const MAX_PROCESSES: usize = (1 << 27) - 1;
const MAX_SLOTS: usize = 1 << 27;
/// Slots at the start.
const FIRST_SLOTS: usize = 1 << 15;
const DATA_MASK: u64 = (1 << 28) - 1;
/// Bytes of a cell. See [`Process`] for what lies in it.
pub const CELL_BYTES: usize = 192;
/// Bytes that a process takes at least: its cell, the node of its receive timer, and slots of the table, of which there
/// are one to two for each.
pub const BYTES_EACH: usize = CELL_BYTES + 16 + 8;

/// See the module head.
pub struct Table {
    cells: usize,
    slots: *const AtomicU32,
    size: AtomicUsize,
    /// Pid data to try next.
    next: AtomicU64,
    live: AtomicUsize,
    limit: AtomicUsize,
    /// Guards growth, the choice of pids and the list of free cells.
    free: Mutex<FreeCells>,
}

struct FreeCells {
    list: Vec<u32>,
    /// Cells never used start here.
    fresh: u32,
}

// SAFETY: the pointers are to memory mapped for good, accessed as the module head says.
unsafe impl Send for Table {}
unsafe impl Sync for Table {}

/// The table is full (`+P`): `system_limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl Table {
    /// An empty table for at most `limit` processes.
    pub fn new(limit: usize) -> Table {
        Table {
            cells: purlin_term::sys::reserve_rw(MAX_SLOTS * CELL_BYTES),
            slots: purlin_term::sys::reserve_rw(MAX_SLOTS * 4) as *const AtomicU32,
            size: AtomicUsize::new(FIRST_SLOTS),
            next: AtomicU64::new(0),
            live: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit.min(MAX_PROCESSES)),
            free: Mutex::new(FreeCells {
                list: Vec::new(),
                fresh: 0,
            }),
        }
    }
    /// The cell with that index.
    #[inline]
    pub fn cell(&self, index: u32) -> *mut Process {
        (self.cells + index as usize * CELL_BYTES) as *mut Process
    }
    /// The index of a cell.
    #[inline]
    pub fn index(&self, p: *const Process) -> u32 {
        ((p as usize - self.cells) / CELL_BYTES) as u32
    }
    #[inline]
    fn slot(&self, i: usize) -> &AtomicU32 {
        debug_assert!(i < MAX_SLOTS);
        // SAFETY: all MAX_SLOTS slots are mapped and start as zero, a valid AtomicU32.
        unsafe { &*self.slots.add(i) }
    }
    /// Bytes of cells that are or were in use, and of the table's slots.
    pub fn bytes(&self) -> (usize, usize) {
        let fresh = self.free.lock().unwrap_or_else(|e| e.into_inner()).fresh as usize;
        (fresh * CELL_BYTES, self.size.load(Ordering::Relaxed) * 4)
    }
    /// Cells that are or were in use: those with lower indices than this.
    pub fn used_cells(&self) -> u32 {
        self.free.lock().unwrap_or_else(|e| e.into_inner()).fresh
    }
    /// Gives the memory behind free cells back to the system, where whole pages of them lie together. Those read as
    /// zero from then on, which is a free cell with a closed queue to anybody who comes late: no pid but that of the
    /// very first process, whose cell is never free, has the data 0.
    pub fn release_free_cells(&self) {
        // Whoever wants a cell meanwhile gets one that was never used, or was freed since.
        let mut list = {
            let mut free = self.free.lock().unwrap_or_else(|e| e.into_inner());
            std::mem::take(&mut free.list)
        };
        crate::signal::queue::forget_epochs();
        list.sort_unstable_by(|a, b| b.cmp(a));
        let page = purlin_term::sys::page_bytes();
        for run in list.chunk_by(|a, b| *a == *b + 1) {
            let (last, first) = (run[0], run[run.len() - 1]);
            let from = (self.cell(first) as usize).next_multiple_of(page);
            let to = self.cell(last + 1) as usize / page * page;
            if from < to {
                purlin_term::sys::decommit(from, to - from);
            }
            crate::timer::release_nodes(first, last + 1);
        }
        let mut free = self.free.lock().unwrap_or_else(|e| e.into_inner());
        // The lowest go first, so that living processes draw together.
        list.append(&mut free.list);
        free.list = list;
    }
    /// Processes alive.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }
    /// Most processes there may be.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// A cell and a pid for a new process. Look-ups lead to the cell at once; its queue of signals is closed until the
    /// caller has filled the rest of the cell and opens it.
    pub fn reserve(&self) -> Result<(*mut Process, Term), Full> {
        let n = self.live.fetch_add(1, Ordering::Relaxed) + 1;
        if n > self.limit() {
            self.live.fetch_sub(1, Ordering::Relaxed);
            return Err(Full);
        }
        let mut free = self.free.lock().unwrap_or_else(|e| e.into_inner());
        let size = self.size.load(Ordering::Relaxed);
        if n > size / 8 * 7 && size < MAX_SLOTS {
            self.grow(size);
        }
        let index = free.list.pop().unwrap_or_else(|| {
            free.fresh += 1;
            free.fresh - 1
        });
        let size = self.size.load(Ordering::Relaxed);
        let data = loop {
            let d = self.next.fetch_add(1, Ordering::Relaxed) & DATA_MASK;
            if self.slot(d as usize & (size - 1)).load(Ordering::Relaxed) == 0 {
                break d as u32;
            }
        };
        let p = self.cell(index);
        // SAFETY: the cell is free, so nobody else writes its id. Known before the slot is, for `grow` and `find`.
        unsafe { (*p).id.store(data, Ordering::Release) };
        self.slot(data as usize & (size - 1))
            .store(index + 1, Ordering::Release);
        Ok((p, Term::pid(data)))
    }
    /// Doubles the table, under the lock: enters every pid at its new slot, publishes the size, clears the old slots.
    fn grow(&self, size: usize) {
        let moving = |i: usize| {
            let c = self.slot(i).load(Ordering::Relaxed);
            if c == 0 {
                return None;
            }
            // SAFETY: occupied slots lead to cells; the id is an atomic.
            let data = unsafe { (*self.cell(c - 1)).id.load(Ordering::Acquire) };
            let to = data as usize & (2 * size - 1);
            (to != i).then_some((to, c))
        };
        for i in 0..size {
            if let Some((to, c)) = moving(i) {
                self.slot(to).store(c, Ordering::Release);
            }
        }
        self.size.store(2 * size, Ordering::Release);
        for i in 0..size {
            if moving(i).is_some() {
                self.slot(i).store(0, Ordering::Release);
            }
        }
    }
    /// The cell that belongs to a local pid at this moment. It may change hands any time: only what `signal::queue`
    /// and `state` allow may be done with it.
    #[inline]
    pub fn find(&self, pid: Term) -> Option<*mut Process> {
        debug_assert!(pid.is_local_pid());
        let data = pid.pid_data();
        let mut size = self.size.load(Ordering::Acquire);
        loop {
            let c = self
                .slot(data as usize & (size - 1))
                .load(Ordering::Acquire);
            if c != 0 {
                let p = self.cell(c - 1);
                // SAFETY: cells are never unmapped; the id is an atomic.
                if unsafe { (*p).id.load(Ordering::Acquire) } == data {
                    return Some(p);
                }
            }
            // Not there, or moved while the table grew: then the size has changed.
            let now = self.size.load(Ordering::Acquire);
            if now == size {
                return None;
            }
            size = now;
        }
    }
    /// A process ends: its pid leads nowhere from now on.
    ///
    /// # Safety
    /// The caller owns the process and has closed its queue.
    pub unsafe fn withdraw(&self, p: *mut Process) {
        let _free = self.free.lock().unwrap_or_else(|e| e.into_inner());
        let data = (*p).id.swap(super::NO_ID, Ordering::AcqRel) as usize;
        let size = self.size.load(Ordering::Relaxed);
        self.slot(data & (size - 1)).store(0, Ordering::Release);
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
    /// The cell of a process that was withdrawn may be handed out again.
    ///
    /// # Safety
    /// The caller owns the process, has emptied the cell, and forgets it.
    pub unsafe fn release(&self, p: *mut Process) {
        let mut free = self.free.lock().unwrap_or_else(|e| e.into_inner());
        let c = self.index(p);
        free.list.push(c);
    }
    /// All pids alive, in no particular order.
    pub fn pids(&self) -> Vec<Term> {
        let size = self.size.load(Ordering::Acquire);
        let mut v = Vec::with_capacity(self.live());
        for i in 0..size {
            let c = self.slot(i).load(Ordering::Acquire);
            if c != 0 {
                // SAFETY: as in `find`.
                let data = unsafe { (*self.cell(c - 1)).id.load(Ordering::Acquire) };
                if data != super::NO_ID {
                    v.push(Term::pid(data));
                }
            }
        }
        v
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn spawn(t: &Table) -> (Term, *mut Process) {
        let Ok((p, pid)) = t.reserve() else {
            panic!("table full")
        };
        (pid, p)
    }

    #[test]
    fn pids_are_found_until_their_process_ends() {
        let t = Table::new(1 << 20);
        let mut alive = vec![];
        let mut gone = vec![];
        for i in 0..100_000 {
            alive.push(spawn(&t));
            if i % 3 == 0 {
                let (pid, p) = alive.swap_remove(i * 7919 % alive.len());
                // SAFETY: nobody else uses the cell.
                unsafe {
                    t.withdraw(p);
                    t.release(p);
                }
                gone.push(pid);
            }
        }
        assert_eq!(t.live(), alive.len());
        for &(pid, p) in &alive {
            assert_eq!(t.find(pid), Some(p));
        }
        for pid in gone {
            assert_eq!(t.find(pid), None);
        }
        let want: HashSet<u64> = alive.iter().map(|a| a.0.raw()).collect();
        let got: Vec<Term> = t.pids();
        assert_eq!(got.len(), want.len());
        assert!(got.iter().all(|p| want.contains(&p.raw())));
    }

    #[test]
    fn a_full_table_refuses() {
        let t = Table::new(10);
        let first = spawn(&t);
        for _ in 1..10 {
            spawn(&t);
        }
        assert_eq!(t.reserve().err(), Some(Full));
        // SAFETY: nobody else uses the cell.
        unsafe {
            t.withdraw(first.1);
            t.release(first.1);
        }
        assert!(t.reserve().is_ok());
    }
}
