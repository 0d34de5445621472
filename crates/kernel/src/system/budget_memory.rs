//! The memory limit of budgets: the size of processes, and which of them end.
//!
//! A process of a budget is weighed when it collects and when its time slice ends. Its size is that
//! of its cell, the used part of its heap, its messages and dictionary, and its part of what it
//! shares: a binary or region that several processes hold counts for each of them by the number of
//! its holders, so that the parts add up to no more than the whole. If the budget exceeds its
//! limit, a process that has grown since it was below it collects its garbage. If the limit is
//! still exceeded, the process ends with reason `{budget, memory}`, like one that exceeds its
//! `max_heap_size`.
//!
//! The size that a process must have to be ended ([`least`]) shrinks with the excess, so the larger
//! processes end first.
//!
//! A collection copies fragments, which may hold all that a native has made. A process for whose
//! fragments there is no room twice ends before they are copied ([`ends_before_copy`]).

use crate::accounts::Frame;
use crate::budgets::{self, Excess, ROOT};
use crate::cx::Cx;
use crate::lazy_atoms;
use crate::message::bytes_in_transit;
use crate::process::table::CELL_BYTES;
use crate::process::{self, EXIT_PENDING, table};
use crate::report::{self, Level, Text};
use crate::system::memory;
use purlin_term::am;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::off_heap;
use purlin_term::payer::Payer;
use purlin_term::{Alloc, NIL, Term, copy};

lazy_atoms! {
    budget = "budget";
    largest = "largest";
    limit = "limit";
}

/// The fraction of the limit that a process must at least take to end as soon as it is exceeded.
const LARGEST_PART: i64 = 64;
/// The minimum size halves for each excess of this fraction of the limit.
const STEPS: i64 = 160;
/// Number of the largest processes that a report names.
const NAMED: usize = 5;
/// Words up to which a block counts whole: its process fills it before each collection. Unused room
/// of a larger block takes no memory.
const WHOLE_WORDS: usize = 1 << 17;
/// The same for the block of an old generation, which fills slowly.
const WHOLE_OLD_WORDS: usize = 4096;
/// Maximum number of objects of an off-heap list whose holders are counted.
const MOST_COUNTED: usize = 256;

/// The size of a process in bytes.
#[derive(Default)]
struct Size {
    /// The bytes that it pays for itself.
    own: usize,
    /// Its part of the blocks outside of its heap, paid for by any budget.
    held: usize,
    /// Bytes of `own` for which another budget is billed, too.
    shared: usize,
}

impl Size {
    /// Adds a block outside of the heap of a process of budget `index`.
    fn add(&mut self, index: u32, payer: &Payer, bytes: usize, holders: usize) {
        let part = budgets::part_of(index, payer, bytes, holders);
        self.own += part;
        if payer.budget() != ROOT {
            self.shared += part;
        }
        self.held += bytes / holders.max(1);
    }
}

/// The size of the process in the context, of budget `index`.
fn size(cx: &mut Cx, index: u32) -> Size {
    let h = &cx.heap;
    let young = match h.block_words() {
        n if n <= WHOLE_WORDS => n,
        _ => h.used_words() + h.stack_words(),
    };
    let old = match h.old_block_words() {
        n if n <= WHOLE_OLD_WORDS => n,
        _ => h.old_words(),
    };
    let words = young + old + h.frag_words;
    let mut s = Size::default();
    for o in [&h.off_heap, &h.old_off_heap] {
        for r in o.regions.iter() {
            let (payer, bytes) = r.bill();
            s.add(index, payer, bytes, r.holders.count() as usize);
        }
        let rest = off_heap::each_binary(o, MOST_COUNTED, |b, holders| {
            s.add(index, &b.payer, b.billed_bytes(), holders);
        });
        s.held += rest;
    }
    let p = cx.process();
    let ext = p.ext().map_or(0, |e| e.bytes());
    s.own += CELL_BYTES + words * 8 + p.queued_words() * 8 + ext;
    s.own += bytes_in_transit(&p.in_transit);
    s
}

/// Minimum size in bytes of a process or table that is held responsible for an excess.
fn least(e: &Excess) -> i64 {
    let over = (e.used - e.limit).max(0);
    let steps = (over.saturating_mul(STEPS) / e.limit.max(1)).min(40);
    (e.limit / LARGEST_PART) >> steps
}

/// Weighs the process in the context. Whether it must collect or end, because it has grown beyond
/// the limit of its budget.
///
/// It is at `pc`, which is for reports only.
pub(crate) fn is_over(cx: &mut Cx, pc: *const u64) -> bool {
    weigh(cx, pc).is_some()
}

/// Weighs the process in the context, which goes on elsewhere.
pub(crate) fn note(cx: &mut Cx, pc: *const u64) {
    weigh(cx, pc);
}

/// Whether the process in the context ends instead of the collection that is due, which would copy
/// more than its budget has room for. It has `need` words of room then, as after a collection.
#[inline]
pub(crate) fn ends_before_copy(cx: &mut Cx, need: usize) -> bool {
    cx.heap.frag_words > WHOLE_FRAGMENTS && budgets::on() && cannot_copy(cx, need)
}

/// Words of fragments that are copied in any case.
const WHOLE_FRAGMENTS: usize = 1 << 15;

#[cold]
fn cannot_copy(cx: &mut Cx, need: usize) -> bool {
    if cx.proc.is_null() || cx.heap.free_words() < need + cx.heap.stack_reserve {
        return false;
    }
    let index = budgets::of(cx.proc.get());
    if index == ROOT || process::is_system(cx.self_pid()) {
        return false;
    }
    let pc = cx.bif_pc;
    weigh(cx, pc);
    let words = cx.heap.frag_words + cx.heap.used_words();
    let Some(e) = budgets::excess_of_copy(index, words as i64 * 8) else {
        return false;
    };
    end(cx, &e, NIL);
    cx.heap.gc_wanted = false;
    true
}

fn weigh(cx: &mut Cx, pc: *const u64) -> Option<Excess> {
    if cx.proc.is_null() {
        return None;
    }
    let s = budgets::seat(table().index(cx.proc.get()))?;
    if s.budget() == ROOT {
        return None;
    }
    let size = size(cx, s.budget());
    let own = size.own as i64;
    budgets::note_place(s, cx, pc, own);
    let (made, grown, excess) = budgets::weigh(s, own, size.shared as i64);
    budgets::allow(s.budget());
    if budgets::fills_up(s.budget()) {
        memory::give_back_kept();
    }
    let charged_with = made.max(own + size.held as i64);
    excess.filter(|e| grown && charged_with >= least(e) && !process::is_system(cx.self_pid()))
}

/// Ends the process in the context, which has collected, if the limit is still exceeded.
#[cold]
pub(crate) fn hold_against(cx: &mut Cx) {
    let pc = cx.bif_pc;
    if let Some(e) = weigh(cx, pc) {
        end(cx, &e, NIL);
    }
}

/// Called when the process in the context puts something into a table that exceeds the limit of
/// its budget and has that many bytes.
#[cold]
pub fn table_exceeds(cx: &mut Cx, e: &Excess, name: Term, bytes: usize) {
    if !cx.proc.is_null()
        && budgets::is_within(budgets::of(cx.proc.get()), e.budget)
        && bytes as i64 >= least(e)
    {
        end(cx, e, name);
    }
}

/// Ends the process in the context with reason `{budget, memory}`. The process that the
/// budget notifies learns it first.
fn end(cx: &mut Cx, e: &Excess, table_name: Term) {
    if cx.process().has(EXIT_PENDING) {
        return;
    }
    budgets::note_reached(e.budget);
    let (notified, reported) = (budgets::notified(e.budget), budgets::may_report(e.budget));
    if notified.is_some() || reported {
        let me = cx.self_pid();
        let mut f = Fragment::new();
        let largest = holders(&mut f, e.budget);
        tell(e.budget, am::MEMORY, me, e.limit, e.used, Some(largest));
        if reported {
            report(cx, &mut f, e, table_name, largest);
        }
        drop(OwnedTerm::from_parts(largest, f));
    }
    end_here(cx, am::MEMORY);
}

/// Marks the process in the context to end with reason `{budget, Why}`.
pub(crate) fn end_here(cx: &mut Cx, why: Term) {
    let mut f = Fragment::new();
    let reason = f.tuple(&[budget(), why]);
    cx.process().mark_to_exit(reason);
    cx.reds = 0;
}

/// Builds the list of the largest processes of a budget: `{Pid, Bytes, Stack}`, where the stack has
/// the form of a stack trace.
fn holders(f: &mut Fragment, index: u32) -> Term {
    let all: Vec<Term> = budgets::largest(index, NAMED)
        .into_iter()
        .map(|h| {
            let frames: Vec<Term> = h.frames.iter().map(|x| frame(f, x)).collect();
            let (bytes, stack) = (f.int(h.bytes), f.list(&frames));
            f.tuple(&[h.pid, bytes, stack])
        })
        .collect();
    f.list(&all)
}

/// Builds an entry of a stack trace.
fn frame(f: &mut Fragment, x: &Frame) -> Term {
    let place = match &x.line {
        None => NIL,
        Some((path, n)) => {
            let (path, n) = (f.string(path), f.uint(u64::from(*n)));
            let (path, n) = (f.tuple(&[am::FILE, path]), f.tuple(&[am::LINE, n]));
            f.list(&[path, n])
        }
    };
    let arity = f.uint(u64::from(x.arity));
    f.tuple(&[x.module, x.function, arity, place])
}

/// Sends `{budget, Budget, Why, Info}` to the process that a budget, or the nearest one above it,
/// notifies: `victim` is about to end.
#[cold]
pub(crate) fn tell(
    index: u32,
    why: Term,
    victim: Term,
    most: i64,
    used_now: i64,
    largest_ones: Option<Term>,
) {
    let Some(to) = budgets::notified(index) else {
        return;
    };
    let Some(key) = budgets::get(index).and_then(budgets::Budget::key) else {
        return;
    };
    let mut f = Fragment::new();
    let (most, used_now) = (f.int(most), f.int(used_now));
    // Keys of flat maps are in the order of their text.
    let info = match largest_ones {
        None => f.flatmap(&[limit(), am::PROCESS, am::USED], &[most, victim, used_now]),
        Some(l) => {
            let l = copy::copy(l, &mut f);
            f.flatmap(
                &[largest(), limit(), am::PROCESS, am::USED],
                &[l, most, victim, used_now],
            )
        }
    };
    let which = f.local_ref(key.numbers());
    let message = f.tuple(&[budget(), which, why, info]);
    report::notify(to, &OwnedTerm::from_parts(message, f));
}

fn report(cx: &mut Cx, f: &mut Fragment, e: &Excess, table_name: Term, largest: Term) {
    let me = cx.self_pid();
    let leader = match cx.process().group_leader {
        purlin_term::am::UNDEFINED => NIL,
        pid => pid,
    };
    let name = budgets::get(e.budget).map_or(NIL, |b| b.with_name(|t| copy::copy(t, f)));
    let (limit, used) = (f.int(e.limit), f.int(e.used));
    let (format, mut args) = match table_name {
        NIL => ("     Process:            ~p~n", vec![me]),
        t => (
            "     Process:            ~p~n     Table:              ~p~n",
            vec![me, t],
        ),
    };
    args.extend([name, limit, used, largest]);
    let format = format!(
        "{format}     Context:            memory limit of a budget reached~n\
         \x20    Budget:             ~p~n     Limit:              ~p~n\
         \x20    In use:             ~p~n     Largest processes:  ~p~n"
    );
    report::send(Level::Error, leader, me, Text::Format(&format, &args));
}
