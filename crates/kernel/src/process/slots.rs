//! The mapping from pids to cells: the protocol of the process table, independent of where its
//! memory lies.
//!
//! The table has `size` slots, a power of two. Pid data `d` sits in slot `d % size`, which holds
//! the index of the process's cell plus one. When more than seven eighths of the slots are taken,
//! the table doubles under the lock: every live pid is entered at its new slot, then the new size
//! is published, then the old slots are cleared. A look-up checks the id in the cell, and tries
//! again if the size has changed meanwhile. So it never finds the wrong process and, while the
//! table grows, never misses one.
//!
//! A cell is prepared for its next process before its id is written, and its id before its slot. A
//! thread that is led to a cell without a process finds its signal queue closed.
//!
//! # Orderings
//! - [`Slots::reserve`] prepares the cell, then stores its id, then its slot, both with `Release`.
//!   [`Slots::find`] loads slot and id with `Acquire`: a thread that finds the id sees the prepared
//!   cell.
//! - `grow` stores the new slots, then `size`, then the cleared slots, all with `Release`. A
//!   look-up that reads a cleared slot therefore reads the new size when it loads `size` again, and
//!   one that reads the new size reads the new slots.
//! - [`Slots::withdraw`] replaces the id by `NO_ID` with `AcqRel`, before it clears the slot. A
//!   look-up that reads the old slot and the new id finds nothing; one that reads the old id may
//!   find a process that has just ended, whose queue is closed.
//! - All stores happen under the lock of `free`. The loads of `size`, `next` and `live` under it
//!   are `Relaxed`; outside of it they are for information only.

use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, Spin, SpinGuard, constant};
use purlin_isa::cache_lines::OneLine;

/// The memory of slots and cells, and its limits.
pub trait Cells {
    /// Initial and maximum number of slots: powers of two.
    const FIRST_SLOTS: usize;
    const MAX_SLOTS: usize;
    /// Mask of pid data.
    const DATA_MASK: u64;
    /// The id of a cell without a process. No pid has this data.
    const NO_ID: u32;
    /// Returns slot `i`, which is 0 at first. Slot 0 exists before [`Cells::make_slots`].
    fn slot(&self, i: usize) -> &AtomicU32;
    fn id(&self, cell: u32) -> &AtomicU32;
    /// Makes memory for `n` slots; false if that is impossible.
    fn make_slots(&self, _n: usize) -> bool {
        true
    }
    /// Makes memory for a cell, the next after the existing ones; false if that is impossible.
    fn make_cell(&self, _cell: u32) -> bool {
        true
    }
    /// Prepares a free cell that is about to get an id.
    fn prepare(&self, cell: u32);
}

/// See the module docs.
pub struct Slots<C> {
    pub cells: C,
    size: AtomicUsize,
    limit: AtomicUsize,
    chosen: Chosen,
}

/// The words that each spawn and each exit writes. They have cache lines of their own, since every
/// look-up reads the other fields.
struct Chosen {
    _line: OneLine,
    /// The next pid data to try.
    next: AtomicU64,
    live: AtomicUsize,
    /// Lock of growth, of the choice of pids and of the list of free cells.
    free: Spin<FreeCells>,
}

struct FreeCells {
    list: Vec<u32>,
    /// Index of the first cell that was never used.
    fresh: u32,
}

/// The table is full (`+P`), or there is no memory for more: `system_limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl<C: Cells> Slots<C> {
    constant! {
        /// Returns a table in which nothing is found and that is full: its only slot stays empty.
        pub fn closed(cells: C) -> Slots<C> {
            let free = FreeCells {
                list: Vec::new(),
                fresh: 0,
            };
            Slots {
                cells,
                size: AtomicUsize::new(1),
                limit: AtomicUsize::new(0),
                chosen: Chosen {
                    _line: OneLine,
                    next: AtomicU64::new(0),
                    live: AtomicUsize::new(0),
                    free: Spin::new(free),
                },
            }
        }
    }
    /// Makes room in a closed table, for at most `limit` processes. It stays closed if there is no
    /// memory for slots.
    pub fn open(&self, limit: usize) {
        let _free = self.lock();
        if self.size() == 1 && self.cells.make_slots(C::FIRST_SLOTS) {
            // As in `grow`; there is nothing to move.
            self.size.store(C::FIRST_SLOTS, Ordering::Release);
            self.limit.store(limit, Ordering::Relaxed);
        }
    }
    #[inline]
    fn lock(&self) -> SpinGuard<'_, FreeCells> {
        self.chosen.free.lock()
    }
    /// Index limit of the cells that are or were in use.
    #[inline]
    pub(crate) fn used_cells(&self) -> u32 {
        self.lock().fresh
    }
    /// Number of slots.
    #[inline]
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }
    /// Number of live processes.
    #[inline]
    pub fn live(&self) -> usize {
        self.chosen.live.load(Ordering::Relaxed)
    }
    /// Maximum number of processes.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
    /// Takes all free cells that were in use, for the caller alone. A spawn meanwhile gets a cell
    /// that was never used, or that was freed since.
    #[inline]
    pub(crate) fn take_free(&self) -> Vec<u32> {
        std::mem::take(&mut self.lock().list)
    }
    /// Undoes [`Slots::take_free`]. The last cells are handed out first.
    #[inline]
    pub(crate) fn give_free(&self, mut list: Vec<u32>) {
        let mut free = self.lock();
        list.append(&mut free.list);
        free.list = list;
    }

    /// Reserves a cell and pid data for a new process. Look-ups lead to the cell at once. `mine` is
    /// a cell that the caller would otherwise release; it is used instead.
    pub(crate) fn reserve(&self, mine: Option<u32>) -> Result<(u32, u32), Full> {
        let mut free = self.lock();
        let n = self.chosen.live.load(Ordering::Relaxed) + 1;
        if n > self.limit() {
            free.list.extend(mine);
            return Err(Full);
        }
        let size = self.size.load(Ordering::Relaxed);
        if n * 8 > size * 7 && size < C::MAX_SLOTS {
            self.grow(size);
        }
        let size = self.size.load(Ordering::Relaxed);
        // The last slot stays free, so that the search for a free slot ends.
        if n >= size && size < C::MAX_SLOTS {
            free.list.extend(mine);
            return Err(Full);
        }
        let cell = match mine.or_else(|| free.list.pop()) {
            Some(cell) => cell,
            None => {
                let cell = free.fresh;
                if !self.cells.make_cell(cell) {
                    return Err(Full);
                }
                free.fresh += 1;
                cell
            }
        };
        self.chosen.live.store(n, Ordering::Relaxed);
        let data = loop {
            let next = self.chosen.next.load(Ordering::Relaxed);
            self.chosen
                .next
                .store(next.wrapping_add(1), Ordering::Relaxed);
            let d = next & C::DATA_MASK;
            let slot = self.cells.slot(d as usize & (size - 1));
            if slot.load(Ordering::Relaxed) == 0 {
                break d as u32;
            }
        };
        self.cells.prepare(cell);
        self.cells.id(cell).store(data, Ordering::Release);
        self.cells
            .slot(data as usize & (size - 1))
            .store(cell + 1, Ordering::Release);
        Ok((cell, data))
    }
    /// Doubles the table under the lock, if there is memory.
    fn grow(&self, size: usize) {
        if !self.cells.make_slots(2 * size) {
            return;
        }
        let moving = |i: usize| {
            let c = self.cells.slot(i).load(Ordering::Relaxed);
            if c == 0 {
                return None;
            }
            let data = self.cells.id(c - 1).load(Ordering::Acquire);
            let to = data as usize & (2 * size - 1);
            (to != i).then_some((to, c))
        };
        for i in 0..size {
            if let Some((to, c)) = moving(i) {
                self.cells.slot(to).store(c, Ordering::Release);
            }
        }
        self.size.store(2 * size, Ordering::Release);
        for i in 0..size {
            if moving(i).is_some() {
                self.cells.slot(i).store(0, Ordering::Release);
            }
        }
    }
    /// Returns the cell that these pid data lead to at this moment.
    #[inline]
    pub fn find(&self, data: u32) -> Option<u32> {
        let mut size = self.size.load(Ordering::Acquire);
        loop {
            let slot = self.cells.slot(data as usize & (size - 1));
            let c = slot.load(Ordering::Acquire);
            if c != 0 && self.cells.id(c - 1).load(Ordering::Acquire) == data {
                return Some(c - 1);
            }
            // It is not there, or has moved while the table grew. In that case the size has
            // changed.
            let now = self.size.load(Ordering::Acquire);
            if now == size {
                return None;
            }
            size = now;
        }
    }
    /// Makes the pid of an ending process lead nowhere. The owner of the process calls it. `other`
    /// is a cell that is released at the same time.
    pub(crate) fn withdraw(&self, cell: u32, other: Option<u32>) {
        let mut free = self.lock();
        free.list.extend(other);
        let data = self.cells.id(cell).swap(C::NO_ID, Ordering::AcqRel);
        let size = self.size.load(Ordering::Relaxed);
        self.cells
            .slot(data as usize & (size - 1))
            .store(0, Ordering::Release);
        let n = self.chosen.live.load(Ordering::Relaxed);
        self.chosen.live.store(n - 1, Ordering::Relaxed);
    }
    /// Frees the cell of a withdrawn process. Its owner calls it, and no longer uses the cell.
    #[inline]
    pub fn release(&self, cell: u32) {
        self.lock().list.push(cell);
    }
    /// Returns the pid data of the live processes in a range of cells from `from` on, and the start
    /// of the next range; `None` behind the last cell. A process that lives during a whole sequence
    /// of calls is in one of the ranges, since processes never move to another cell.
    pub fn range(&self, from: u32, most: u32) -> Option<(Vec<u32>, u32)> {
        let end = self.used_cells();
        if from >= end {
            return None;
        }
        let next = from.saturating_add(most).min(end);
        let ids = (from..next).map(|c| self.cells.id(c).load(Ordering::Acquire));
        Some((ids.filter(|&data| data != C::NO_ID).collect(), next))
    }
    /// Returns the pid data of all live processes, in no particular order: each one that lives
    /// throughout the call, and none twice.
    pub fn all(&self) -> Vec<u32> {
        let mut size = self.size.load(Ordering::Acquire);
        loop {
            let mut v = Vec::with_capacity(self.live());
            for i in 0..size {
                let c = self.cells.slot(i).load(Ordering::Acquire);
                if c == 0 {
                    continue;
                }
                let data = self.cells.id(c - 1).load(Ordering::Acquire);
                // While the table grows, a pid is in two slots.
                if data != C::NO_ID && data as usize & (size - 1) == i {
                    v.push(data);
                }
            }
            let now = self.size.load(Ordering::Acquire);
            if now == size {
                return v;
            }
            size = now;
        }
    }
}
