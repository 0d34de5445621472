//! Literals of purged modules: when their memory goes.
//!
//! The literals of the first version of a module that is loaded lie in a region that nobody counts and that stays: most
//! modules are loaded once, and pointers to literals are frequent. Those of later versions lie in a counted region. Its
//! first count is the module's; a purge hands it to the queue of areas here. So who may point to a literal is this table:
//!
//! ```text
//! who                                       how it got the pointer         counts the region
//! registers, stack, heap, dictionary of     the code loaded it             at the next collection, of either kind: it
//!   a process; fragments that natives made                                 notes what it meets (`gc::Notes`)
//! old generation of a process               by a collection                that collection did (`seen_old`)
//!                                           by `set_tuple_element`: the    the instruction does (`Heap::write_to`)
//!                                           tuple had just become old
//! messages, signals, exit reasons, timers   by a copy: objects of heaps    the copy does (`copy::hold`), for any pointer
//!   spawn arguments, regions, objects of    move, so nobody outside of a   into a counted region; flat messages have none
//!   tables, terms that natives own          heap keeps a pointer into one
//! persistent terms                          by a copy, literals included   not at all, or by the copy
//! code of other modules                     never: each has its own. Those    as what it loaded itself
//!                                           that records are made of it has
//!                                           from the module that is current
//! ```
//!
//! So when the code is gone, only processes may have pointers that nobody counts, only in the first row, and nobody makes
//! any more of them: what is passed on is counted. Each process is then asked by `erts_literal_area_collector`, in
//! its messages with stock's form, to collect if a word of the first row's may point into the area. Processes that are
//! made meanwhile begin with copies. When all have answered, the area's count is given up: the region goes with the last
//! that holds it. A process that has ended for others, but is within a function of a library, can't be asked: while there
//! is one, no count is given up. Until then it is marked (`Region::set_code`), so that the verifier knows that it is held for all.

use crate::collect::{Also, Collect, Sweep};
use crate::cx::Cx;
use crate::sync::{Mutex, MutexGuard};
use purlin_term::gc;
use purlin_term::region::{self, Region};
use purlin_term::{Term, atom};

/// Counted regions of literals, one count each.
type Regions = Vec<&'static Region>;

struct Areas {
    /// Regions of modules whose code is gone, since the last switch.
    queued: Regions,
    /// Those that processes are asked about.
    asked: Regions,
    /// The process that asks.
    collector: Option<Term>,
    /// Processes that have ended within functions of libraries, which go on: nobody can ask them.
    within: usize,
    /// Those that all others have answered for meanwhile.
    held: Regions,
}

fn areas() -> MutexGuard<'static, Areas> {
    static A: Mutex<Areas> = Mutex::new(Areas {
        queued: Vec::new(),
        asked: Vec::new(),
        collector: None,
        within: 0,
        held: Vec::new(),
    });
    A.lock()
}

/// Literals of one version of a module.
#[derive(Default)]
pub(crate) struct Literals(Regions);

impl Literals {
    /// Takes over the count of a region that was just filled.
    pub(super) fn add(&mut self, r: &'static Region) {
        if region::is_counted_ptr(r.base) {
            r.set_literal(true);
            r.set_code(true);
            self.0.push(r);
        }
    }
    /// The code is gone: what processes have loaded from it stays until they have been asked.
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

/// Says which process asks the others.
pub fn set_collector(pid: Term) {
    areas().collector = Some(pid);
}

/// All processes have answered: gives up the areas that they were asked about, and takes those that have come since.
/// False: there are none.
pub fn switch() -> bool {
    let mut a = areas();
    let next = std::mem::take(&mut a.queued);
    let there = !next.is_empty();
    let mut done = std::mem::replace(&mut a.asked, next);
    if a.within > 0 {
        a.held.append(&mut done);
    }
    drop(a);
    // SAFETY: every process has collected since the code went, or had no pointer into it.
    unsafe { give_up(done) };
    there
}

/// Gives up areas.
///
/// # Safety
/// Nobody points into them who doesn't count them.
unsafe fn give_up(all: Regions) {
    for r in all {
        r.set_code(false);
        // A holder of a part of it has it as any other term.
        r.set_literal(false);
        r.release();
    }
}

/// A process ends within a function of a library, as far as others can tell: from now on it can't be asked, and what it may point
/// into stays.
pub(crate) fn ends_within() {
    areas().within += 1;
}

/// Such a process has given up what it had.
pub(crate) fn ended_within() {
    let mut a = areas();
    a.within -= 1;
    let held = match a.within {
        0 => std::mem::take(&mut a.held),
        _ => Vec::new(),
    };
    drop(a);
    // SAFETY: all processes had answered, save for those that ended within functions, and these have gone.
    unsafe { give_up(held) };
}

/// Has the running process count the areas that it may point into; `live` X registers are all there is.
///
/// # Safety
/// As for [`Cx::collect`].
pub unsafe fn count(cx: &mut Cx, live: usize) {
    let asked = areas().asked.clone();
    if gc::stress() {
        gc::stress_check_old_holds(&cx.heap, &asked);
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
    // Words of bytes and numbers may look like pointers: then it collects for nothing.
    let points = |w: &Term| {
        let at = (w.raw() & !7) as usize;
        (lo..hi).contains(&at) && ranges.iter().any(|&(from, to)| (from..to).contains(&at))
    };
    let found = cx.any_word(live, points);
    if found {
        cx.heap.keep_generations();
        cx.collect(0, live, Also::NONE, Sweep::Due);
    }
}
