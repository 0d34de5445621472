//! Literals of purged modules, and when their memory is freed.
//!
//! The literals of the first version of a module lie in a region that has no count and is never
//! freed: most modules are loaded once, and pointers to literals are frequent. The literals of
//! later versions lie in a counted region. The module holds the first count, and a purge hands it
//! to the queue of areas in this file. The table shows who may point to a literal:
//!
//! ```text
//! holder                           origin of the pointer         count of the region
//! registers, stack, heap, dict-    loaded by the code            at the next collection of
//!   ionary of a process; frag-                                   either kind, which notes the
//!   ments made by natives                                        regions it meets (`gc::Notes`)
//! old generation of a process      a collection                  by that collection (`seen_old`)
//!                                  `set_tuple_element`, when     by the instruction
//!                                  the tuple had just become     (`Heap::write_to`)
//!                                  old
//! messages, signals, exit rea-     a copy: heap objects move,    by the copy (`copy::hold`) for
//!   sons, timers, spawn argu-      so nobody outside a heap      each pointer into a counted
//!   ments, regions, objects of     keeps a pointer into it       region; flat messages have none
//!   tables, terms of natives
//! persistent terms                 a copy, literals included     not at all, or by the copy
//! code of other modules            never: each has its own.      like a literal loaded by the
//!                                  Record definitions are        code itself
//!                                  loaded from the current
//!                                  module
//! ```
//!
//! So once the code is gone, only processes may hold uncounted pointers, only in the places of the
//! first row, and no new ones appear: whatever is passed on is counted.
//! `erts_literal_area_collector` then asks each process, by messages in stock's format, to collect
//! if a word in those places may point into the area. A process that is spawned meanwhile starts
//! with copies. When all have answered, the area's count is released, and the last holder frees the
//! region.
//!
//! A process that has ended for others but still runs a function of a native library cannot be
//! asked. While there is such a process, no count is released. Until its release an area is marked
//! (`Region::set_code`), so that the verifier knows that everyone may point into it.

use crate::collect::{Also, Collect, Sweep};
use crate::cx::Cx;
use crate::sync::{Mutex, MutexGuard};
use purlin_term::gc;
use purlin_term::region::{self, Region};
use purlin_term::{Term, atom};

/// Counted regions of literals, with one count each.
type Regions = Vec<&'static Region>;

struct Areas {
    /// Regions of modules whose code is gone, collected since the last switch.
    queued: Regions,
    /// Regions that processes are being asked about.
    asked: Regions,
    /// The process that asks.
    collector: Option<Term>,
    /// Number of processes that have ended inside a function of a native library and still run it.
    /// Nobody can ask them.
    unaskable: usize,
    /// Regions that all other processes have answered for while `unaskable` was not 0.
    held: Regions,
}

fn areas() -> MutexGuard<'static, Areas> {
    static A: Mutex<Areas> = Mutex::new(Areas {
        queued: Vec::new(),
        asked: Vec::new(),
        collector: None,
        unaskable: 0,
        held: Vec::new(),
    });
    A.lock()
}

/// The literals of one version of a module.
#[derive(Default)]
pub(crate) struct Literals(Regions);

impl Literals {
    /// Takes over the count of a newly filled region.
    pub(super) fn add(&mut self, r: &'static Region) {
        if region::is_counted_ptr(r.base) {
            r.set_literal(true);
            r.set_code(true);
            self.0.push(r);
        }
    }
    /// Queues the regions after the code is gone: terms that processes loaded from it stay valid
    /// until all processes have been asked.
    pub(super) fn retire(&self) {
        let mut a = areas();
        for r in &self.0 {
            r.retain();
            a.queued.push(r);
        }
        let to = a.collector.filter(|_| !a.queued.is_empty());
        drop(a);
        if let Some(to) = to {
            crate::post::send(to, atom::intern("copy_literals"));
        }
    }
}

impl Drop for Literals {
    fn drop(&mut self) {
        for r in self.0.drain(..) {
            // SAFETY: the count was the module's. Either its code never ran, or it was retired.
            unsafe { r.release() };
        }
    }
}

/// Sets the process that asks the others.
pub fn set_collector(pid: Term) {
    areas().collector = Some(pid);
}

/// Releases the areas that all processes have just answered for, and starts with those queued
/// since. Returns false if there are none.
pub fn switch() -> bool {
    let mut a = areas();
    let next = std::mem::take(&mut a.queued);
    let there = !next.is_empty();
    let mut done = std::mem::replace(&mut a.asked, next);
    if a.unaskable > 0 {
        a.held.append(&mut done);
    }
    drop(a);
    // SAFETY: since the code went, every process has collected or had no pointer into the area.
    unsafe { give_up(done) };
    there
}

/// Releases the counts of areas.
///
/// # Safety
/// Nobody points into them without a count.
unsafe fn give_up(all: Regions) {
    for r in all {
        r.set_code(false);
        // Those who still hold part of it hold it like any other term.
        r.set_literal(false);
        // SAFETY: nobody points into the region without a count, and this is the queue's own.
        unsafe { r.release() };
    }
}

/// Notes that a process has ended for others inside a function of a native library. From now on it
/// cannot be asked, and everything it may point into stays.
pub(crate) fn add_unaskable() {
    areas().unaskable += 1;
}

/// Notes that such a process has freed its heap.
pub(crate) fn remove_unaskable() {
    let mut a = areas();
    a.unaskable -= 1;
    let held = match a.unaskable {
        0 => std::mem::take(&mut a.held),
        _ => Vec::new(),
    };
    drop(a);
    // SAFETY: all processes have answered except those that ended inside functions, and these are
    // gone.
    unsafe { give_up(held) };
}

/// Makes the running process count the areas that it may point into. Only `live` X registers are in
/// use.
///
/// # Safety
/// The contract of [`Cx::collect`] holds.
pub unsafe fn count(cx: &mut Cx, live: usize) {
    let asked = areas().asked.clone();
    if gc::stress() {
        // SAFETY: by the contract of this function.
        unsafe { gc::stress_check_old_holds(&cx.heap, &asked) };
    }
    let ranges: Vec<(usize, usize)> = asked
        .iter()
        .map(|r| r.area())
        .map(|(p, n)| (p as usize, p as usize + n * 8))
        .collect();
    if ranges.is_empty() {
        return;
    }
    let lo = ranges.iter().map(|r| r.0).min().unwrap_or(0);
    let hi = ranges.iter().map(|r| r.1).max().unwrap_or(0);
    // Bytes and numbers may look like pointers; then it collects for nothing.
    let points = |w: &Term| {
        let at = (w.raw() & !7) as usize;
        (lo..hi).contains(&at) && ranges.iter().any(|&(from, to)| (from..to).contains(&at))
    };
    // SAFETY: by the contract of this function.
    let found = unsafe { cx.any_word(live, points) };
    if found {
        cx.heap.keep_generations();
        // SAFETY: by the contract of this function.
        unsafe { cx.collect(0, live, Also::NONE, Sweep::Due) };
    }
}
