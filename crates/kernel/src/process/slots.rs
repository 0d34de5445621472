//! Which pid leads to which cell: the protocol of the process table, apart from where its memory lies.
//!
//! The table has `size` slots, a power of two; pid data `d` sits in slot `d % size`, which holds the index of the
//! process's cell plus one. When more than seven eighths of the slots are taken the table doubles: under the lock every
//! live pid is entered at its new slot, then the new size is published, then the old slots are cleared. A look-up checks
//! the id in the cell, and tries again where the size has changed meanwhile; so it finds neither the wrong process nor,
//! while the table grows, none.
//!
//! A cell is made ready for its next process before its id is written, and its id before its slot: whoever is led to a
//! cell that has no process yet finds its queue of signals closed.

use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, Spin, SpinGuard};

/// Where slots and cells lie, and how many there can be.
pub trait Cells {
    /// Slots at the start, and at most: powers of two.
    const FIRST_SLOTS: usize;
    const MAX_SLOTS: usize;
    /// Pid data are the numbers that this covers.
    const DATA_MASK: u64;
    /// The id of a cell that has no process: no pid has this data.
    const NO_ID: u32;
    /// Slot `i`, 0 at first.
    fn slot(&self, i: usize) -> &AtomicU32;
    /// The id in a cell.
    fn id(&self, cell: u32) -> &AtomicU32;
    /// There are to be `n` slots; false: there can't be so many.
    fn make_slots(&self, _n: usize) -> bool {
        true
    }
    /// There is to be that cell, which is the next after those that there are; false: there can't be.
    fn make_cell(&self, _cell: u32) -> bool {
        true
    }
    /// A free cell is about to get an id.
    fn prepare(&self, cell: u32);
}

/// See the module head.
pub struct Slots<C> {
    pub cells: C,
    size: AtomicUsize,
    /// Pid data to try next.
    next: AtomicU64,
    live: AtomicUsize,
    limit: AtomicUsize,
    /// Guards growth, the choice of pids and the list of free cells.
    free: Spin<FreeCells>,
}

struct FreeCells {
    list: Vec<u32>,
    /// Cells never used start here.
    fresh: u32,
}

/// The table is full (`+P`), or there is no memory for more: `system_limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl<C: Cells> Slots<C> {
    /// An empty table for at most `limit` processes.
    pub fn new(cells: C, limit: usize) -> Slots<C> {
        // Without them the first process finds no place.
        let limit = match cells.make_slots(C::FIRST_SLOTS) {
            true => limit,
            false => 0,
        };
        Slots {
            cells,
            size: AtomicUsize::new(C::FIRST_SLOTS),
            next: AtomicU64::new(0),
            live: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            free: Spin::new(FreeCells {
                list: Vec::new(),
                fresh: 0,
            }),
        }
    }
    #[inline]
    fn lock(&self) -> SpinGuard<'_, FreeCells> {
        self.free.lock()
    }
    /// Cells that are or were in use: those with lower indices than this.
    #[inline]
    pub(crate) fn used_cells(&self) -> u32 {
        self.lock().fresh
    }
    /// Slots there are.
    #[inline]
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }
    /// Processes alive.
    #[inline]
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }
    /// Most processes there may be.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
    /// All free cells that were in use, for the caller alone: who wants a cell meanwhile gets one that was never used, or
    /// was freed since.
    #[inline]
    pub(crate) fn take_free(&self) -> Vec<u32> {
        std::mem::take(&mut self.lock().list)
    }
    /// Undoes [`Slots::take_free`]: the last are handed out first.
    #[inline]
    pub(crate) fn give_free(&self, mut list: Vec<u32>) {
        let mut free = self.lock();
        list.append(&mut free.list);
        free.list = list;
    }

    /// A cell and pid data for a new process. Look-ups lead to the cell at once. `mine`: a cell that the caller
    /// would else release, which is then the one.
    pub(crate) fn reserve(&self, mine: Option<u32>) -> Result<(u32, u32), Full> {
        let mut free = self.lock();
        let n = self.live.load(Ordering::Relaxed) + 1;
        if n > self.limit() {
            free.list.extend(mine);
            return Err(Full);
        }
        let size = self.size.load(Ordering::Relaxed);
        if n * 8 > size * 7 && size < C::MAX_SLOTS {
            self.grow(size);
        }
        let size = self.size.load(Ordering::Relaxed);
        // The last slot stays free: the look for one ends.
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
        self.live.store(n, Ordering::Relaxed);
        let data = loop {
            let next = self.next.load(Ordering::Relaxed);
            self.next.store(next.wrapping_add(1), Ordering::Relaxed);
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
    /// Doubles the table, under the lock, if there is memory for that.
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
    /// The cell that belongs to these pid data at this moment.
    #[inline]
    pub fn find(&self, data: u32) -> Option<u32> {
        let mut size = self.size.load(Ordering::Acquire);
        loop {
            let slot = self.cells.slot(data as usize & (size - 1));
            let c = slot.load(Ordering::Acquire);
            if c != 0 && self.cells.id(c - 1).load(Ordering::Acquire) == data {
                return Some(c - 1);
            }
            // Not there, or moved while the table grew: then the size has changed.
            let now = self.size.load(Ordering::Acquire);
            if now == size {
                return None;
            }
            size = now;
        }
    }
    /// The process in a cell ends: its pid leads nowhere from now on. To be called by its owner. `other`: a cell that is
    /// released at the same time.
    pub(crate) fn withdraw(&self, cell: u32, other: Option<u32>) {
        let mut free = self.lock();
        free.list.extend(other);
        let data = self.cells.id(cell).swap(C::NO_ID, Ordering::AcqRel);
        let size = self.size.load(Ordering::Relaxed);
        self.cells
            .slot(data as usize & (size - 1))
            .store(0, Ordering::Release);
        let n = self.live.load(Ordering::Relaxed);
        self.live.store(n - 1, Ordering::Relaxed);
    }
    /// The cell of a process that was withdrawn may be handed out again. To be called by its owner, who forgets it.
    #[inline]
    pub fn release(&self, cell: u32) {
        self.lock().list.push(cell);
    }
    /// Pid data of those that live in a range of cells from `from` on, and where the next range begins; None behind the last
    /// cell. A process that lives all the while that ranges are asked for one after the other is in one of them, for nobody
    /// changes cells.
    pub fn range(&self, from: u32, most: u32) -> Option<(Vec<u32>, u32)> {
        let end = self.used_cells();
        if from >= end {
            return None;
        }
        let next = from.saturating_add(most).min(end);
        let ids = (from..next).map(|c| self.cells.id(c).load(Ordering::Acquire));
        Some((ids.filter(|&data| data != C::NO_ID).collect(), next))
    }
    /// Pid data of all that live, in no particular order: of each that does so all the while, and none twice.
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
                // While the table grows a pid is in two slots.
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
