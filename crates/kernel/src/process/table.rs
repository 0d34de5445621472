//! The process cells, and the table that maps pids to them.
//!
//! # Cells
//! Cells lie in one reserved range of addresses. They are handed out by index and never unmapped: a
//! stale pointer to a cell always points at a cell, and the epoch in its signal queue (see
//! `message::queue`) tells whether it still is the intended process. Free cells are on a list.
//! Memory is only touched when a cell is first used.
//!
//! # Pids
//! A pid has 28 bits of data. A counter that skips occupied slots gives new pids, so a number
//! recurs only after all others have been tried. [`super::slots`] describes how the table is read
//! and how it grows.
//!
//! # Orderings
//! [`Table::is_alive`] and the exit of a process form a store-buffering pair. One thread enters a
//! resource of the process, then reads its state word; the exit sets `EXITING`, then looks for
//! resources. The `SeqCst` fence between store and load on either side ensures that at least one of
//! them sees the other: the thread finds the process exiting, or the exit finds the resource. The
//! second look-up follows an `Acquire` load of the state word, so it is not older than that word.
//! `GIVEN_BACK` is a statistic and `Relaxed`.

use super::Process;
use super::slots::{Cells, Slots};
use crate::sync::{AtomicU32, AtomicUsize, Mutex, Ordering};
use purlin_term::Term;
use purlin_term::sys::{self, Growing};
use std::cell::Cell;

pub use super::slots::Full;

/// Maximum number of processes: the number of pids with 28 bits of data, less a margin for
/// skipping.
pub const MAX_PROCESSES: usize = purlin_options::MAX_PROCESSES as usize;
const MAX_SLOTS: usize = 1 << 27;
/// Bytes of a cell. [`Process`] describes the content.
pub const CELL_BYTES: usize = 192;
/// Minimum number of bytes per process: its cell, the node of its receive timer, and one to two
/// slots of the table.
pub const BYTES_EACH: usize = CELL_BYTES + 16 + 8;

thread_local! {
    /// The spare cell of a process that has ended on this thread, plus one; 0 for none.
    static SPARE: Cell<u32> = const { Cell::new(0) };
}

/// Takes the spare cell of this thread, for [`Table::reserve`] or [`Table::withdraw`].
#[inline]
pub(crate) fn take_spare() -> Option<u32> {
    SPARE.with(|s| s.take()).checked_sub(1)
}
/// Number of free cells whose memory the last release gave back.
static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);

/// See the module docs.
pub struct Table {
    slots: Slots<Memory>,
    /// Whether it was opened. Locked while it is.
    opened: Mutex<bool>,
}

struct Memory {
    cells: Growing,
    slots: Growing,
}

impl Memory {
    #[inline]
    fn cell(&self, index: u32) -> *mut Process {
        (self.cells.at() + index as usize * CELL_BYTES) as *mut Process
    }
}

impl Cells for Memory {
    const FIRST_SLOTS: usize = 1 << 15;
    const MAX_SLOTS: usize = MAX_SLOTS;
    const DATA_MASK: u64 = (1 << 28) - 1;
    const NO_ID: u32 = super::NO_ID;
    #[inline]
    fn slot(&self, i: usize) -> &AtomicU32 {
        debug_assert!(i < MAX_SLOTS);
        // SAFETY: slots that the table has are mapped (`make_slots`) and start as zero, a valid
        // AtomicU32. Before that, slot 0 is in the zero bytes where unclaimed memory begins.
        unsafe { &*(self.slots.at() as *const AtomicU32).add(i) }
    }
    fn make_slots(&self, n: usize) -> bool {
        self.slots.try_ensure(n * size_of::<AtomicU32>())
    }
    #[inline]
    fn id(&self, cell: u32) -> &AtomicU32 {
        // SAFETY: cells are never unmapped; the id is an atomic.
        unsafe { &(*self.cell(cell)).id }
    }
    #[inline]
    fn make_cell(&self, cell: u32) -> bool {
        self.cells.try_ensure((cell as usize + 1) * CELL_BYTES)
    }
    #[inline]
    fn prepare(&self, cell: u32) {
        // SAFETY: cells are never unmapped; the word of the queue is an atomic.
        unsafe { (*self.cell(cell)).in_transit.close_if_zeroed() }
    }
}

impl Table {
    /// Returns a closed table, in which nothing is found.
    pub const fn closed() -> Table {
        let memory = Memory {
            cells: Growing::unclaimed(),
            slots: Growing::unclaimed(),
        };
        Table {
            slots: Slots::closed(memory),
            opened: Mutex::new(false),
        }
    }
    /// Makes room for at most `limit` processes, or `scarce` if there are too few addresses for the
    /// maximum, unless a thread has done so.
    pub fn open(&self, limit: usize, scarce: usize) {
        let mut opened = self.opened.lock();
        if !std::mem::replace(&mut *opened, true) {
            self.make_room(limit, scarce);
        }
    }
    fn make_room(&self, limit: usize, scarce: usize) {
        let Memory { cells, slots } = &self.slots.cells;
        // Where addresses are limited, others need some too.
        let all = MAX_SLOTS * CELL_BYTES;
        let plenty = sys::address_limit().is_none_or(|limit| limit / 16 > all);
        if plenty && cells.try_claim("process_cells", all) {
            slots.claim("process_slots", MAX_SLOTS * 4);
            return self.slots.open(limit.min(MAX_PROCESSES));
        }
        // A cell becomes free only some time after its process has ended.
        let limit = limit.min(scarce);
        let most = limit + limit / 8 + Memory::FIRST_SLOTS;
        let most_slots = most.next_power_of_two().min(MAX_SLOTS);
        cells.claim("process_cells", most.min(MAX_SLOTS) * CELL_BYTES);
        slots.claim("process_slots", most_slots * 4);
        self.slots.open(limit.min(MAX_PROCESSES));
    }
    /// Returns the cell with that index.
    #[inline]
    pub fn cell(&self, index: u32) -> *mut Process {
        self.slots.cells.cell(index)
    }
    /// Number of cells that there is room for. Opens a closed table.
    pub(crate) fn most_cells(&self) -> usize {
        self.open(MAX_PROCESSES, MAX_PROCESSES);
        self.slots.cells.cells.most() / CELL_BYTES
    }
    /// Returns the index of a cell.
    #[inline]
    pub fn index(&self, p: *const Process) -> u32 {
        ((p as usize - self.slots.cells.cells.at()) / CELL_BYTES) as u32
    }
    /// Bytes of cells that are in use or were and have not been given back, and bytes of the
    /// table's slots.
    #[inline]
    pub fn bytes(&self) -> (usize, usize) {
        let cells = self.used_cells() as usize - GIVEN_BACK.load(Ordering::Relaxed);
        // Some of the returned cells may be in use again.
        (cells.max(self.live()) * CELL_BYTES, self.slots.size() * 4)
    }
    /// Index limit of the cells that are or were in use.
    #[inline]
    pub fn used_cells(&self) -> u32 {
        self.slots.used_cells()
    }
    /// Gives the memory of free cells back to the system, in whole pages. Such cells read as zero
    /// from then on, which is a free cell to late readers: no pid has the data 0 but that of the
    /// very first process, whose cell is never free, and no signal goes to a cell without the right
    /// data. `also` is called for each run of cells (from, to).
    pub(crate) fn release_free_cells(&self, mut also: impl FnMut(u32, u32)) {
        let mut list = self.slots.take_free();
        crate::message::queue::forget_epochs();
        list.sort_unstable_by(|a, b| b.cmp(a));
        let page = purlin_term::sys::page_bytes();
        let mut bytes = 0;
        for run in list.chunk_by(|a, b| *a == *b + 1) {
            let (last, first) = (run[0], run[run.len() - 1]);
            let from = (self.cell(first) as usize).next_multiple_of(page);
            let to = self.cell(last + 1) as usize / page * page;
            if from < to {
                // SAFETY: whole pages of free cells, which were taken from the list.
                unsafe { purlin_term::sys::decommit(from, to - from) };
                bytes += to - from;
            }
            also(first, last + 1);
        }
        GIVEN_BACK.store(bytes / CELL_BYTES, Ordering::Relaxed);
        // The lowest are handed out first, so that live processes move together.
        self.slots.give_free(list);
    }
    /// Number of live processes.
    #[inline]
    pub fn live(&self) -> usize {
        self.slots.live()
    }
    /// Maximum number of processes.
    #[inline]
    pub fn limit(&self) -> usize {
        self.slots.limit()
    }

    /// Reserves a cell and a pid for a new process. Look-ups lead to the cell at once. Its signal
    /// queue is closed until the caller has filled the cell and opens it. `mine`: see
    /// [`Slots::reserve`].
    #[inline]
    pub fn reserve(&self, mine: Option<u32>) -> Result<(*mut Process, Term), Full> {
        let (cell, data) = self
            .slots
            .reserve(mine)
            .or_else(|full| self.reserve_first(full))?;
        Ok((self.cell(cell), Term::pid(data)))
    }
    /// Opens a closed table, and reserves again.
    #[cold]
    fn reserve_first(&self, full: Full) -> Result<(u32, u32), Full> {
        if *self.opened.lock() {
            return Err(full);
        }
        self.open(MAX_PROCESSES, MAX_PROCESSES);
        self.slots.reserve(None)
    }
    /// Returns the cell that a local pid leads to at this moment. It may change hands at any time:
    /// the caller may do only what `message::queue` and `state` allow.
    #[inline]
    pub fn find(&self, pid: Term) -> Option<*mut Process> {
        debug_assert!(pid.is_local_pid());
        self.slots.find(pid.pid_data()).map(|c| self.cell(c))
    }
    /// Whether a process has not begun to exit. A thread that enters a resource of a process, and
    /// then finds it alive by this, can rely on its exit ([`crate::outside::Outside::owner_exit`])
    /// to find the resource.
    pub fn is_alive(&self, pid: Term) -> bool {
        let Some(p) = self.find(pid) else {
            return false;
        };
        // Pairs with the fence in `lifecycle::exit`.
        crate::sync::fence(crate::sync::Ordering::SeqCst);
        // SAFETY: cells are never unmapped; the state word is an atomic.
        let ends = unsafe { (*p).state.load() }.is_exiting();
        // The word may belong to the next process of the cell.
        !ends && self.find(pid) == Some(p)
    }
    /// Returns one word for what a process does at this moment, as `process_info` names it.
    pub fn activity(&self, pid: Term) -> Option<&'static str> {
        let p = self.find(pid)?;
        // SAFETY: cells are never unmapped; the state word is an atomic.
        let s = unsafe { (*p).state.load() };
        Some(match () {
            () if s.is_exiting() => "exiting",
            () if s.is_suspended() => "suspended",
            () if s.is_running() => "running",
            () if s.is_queued() => "ready",
            () => "waiting",
        })
    }
    /// Makes the pid of an ending process lead nowhere. `other`: see [`Slots::withdraw`].
    ///
    /// # Safety
    /// The caller owns the process and has closed its queue.
    #[inline]
    pub(crate) unsafe fn withdraw(&self, p: *mut Process, other: Option<u32>) {
        self.slots.withdraw(self.index(p), other);
    }
    /// Frees the cell of a withdrawn process.
    ///
    /// # Safety
    /// The caller owns the process, has emptied the cell, and no longer uses it.
    #[inline]
    pub unsafe fn release(&self, p: *mut Process) {
        self.slots.release(self.index(p));
    }
    /// As [`Table::release`]. With `keep`, for schedulers, the thread keeps the cell for the
    /// process that it spawns next, which saves the lock that all threads share. The next exit on
    /// the thread releases a kept cell.
    ///
    /// # Safety
    /// As for [`Table::release`].
    #[inline]
    pub(crate) unsafe fn release_or_keep(&self, p: *mut Process, keep: bool) {
        if !keep {
            // SAFETY: the contract is the same.
            return unsafe { self.release(p) };
        }
        if let Some(other) = SPARE.with(|s| s.replace(self.index(p) + 1)).checked_sub(1) {
            self.slots.release(other);
        }
    }
    /// Returns the pids that are alive in a range of cells, and the start of the next range. See
    /// [`Slots::range`].
    pub fn range(&self, from: u32, most: u32) -> Option<(Vec<Term>, u32)> {
        let (data, next) = self.slots.range(from, most)?;
        Some((data.into_iter().map(Term::pid).collect(), next))
    }
    /// Returns every `step`th live pid in the order of cells.
    pub fn some_pids(&self, step: usize) -> Vec<Term> {
        let alive = |cell: u32| {
            // SAFETY: cells are never unmapped; the id and the state word are atomics.
            let (id, state) = unsafe {
                let p = self.cell(cell);
                ((*p).id.load(Ordering::Relaxed), (*p).state.load())
            };
            (state.is_alive() && id != super::NO_ID).then(|| Term::pid(id))
        };
        let all = (0..self.used_cells()).filter_map(alive);
        all.step_by(step.max(1)).collect()
    }
    /// Returns all live pids, in no particular order.
    #[inline]
    pub fn pids(&self) -> Vec<Term> {
        self.slots.all().into_iter().map(Term::pid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn spawn(t: &Table) -> (Term, *mut Process) {
        let Ok((p, pid)) = t.reserve(None) else {
            panic!("table full")
        };
        (pid, p)
    }

    #[test]
    fn pids_are_found_until_their_process_ends() {
        let t = Table::closed();
        assert_eq!(t.find(Term::pid(0)), None);
        assert_eq!(t.find(Term::pid(12345)), None);
        t.open(1 << 20, 1 << 20);
        let mut alive = vec![];
        let mut gone = vec![];
        for i in 0..100_000 {
            alive.push(spawn(&t));
            if i % 3 == 0 {
                let (pid, p) = alive.swap_remove(i * 7919 % alive.len());
                // SAFETY: nobody else uses the cell.
                unsafe {
                    t.withdraw(p, None);
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
        let t = Table::closed();
        t.open(10, 10);
        let first = spawn(&t);
        for _ in 1..10 {
            spawn(&t);
        }
        assert_eq!(t.reserve(None).err(), Some(Full));
        // SAFETY: nobody else uses the cell.
        unsafe {
            t.withdraw(first.1, None);
            t.release(first.1);
        }
        assert!(t.reserve(None).is_ok());
    }
}
