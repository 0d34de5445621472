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

use crate::budgets::{self, Excess, ROOT};
use crate::cx::Cx;
use crate::lazy_atoms;
use crate::process::table::CELL_BYTES;
use crate::process::{self, EXIT_PENDING, table};
use crate::report::{self, Level, Text};
use purlin_term::frag::Fragment;
use purlin_term::off_heap;
use purlin_term::{Alloc, NIL, Term, pressure};

lazy_atoms! {
    budget = "budget";
    memory = "memory";
}

/// The fraction of the limit that a process must at least take to end as soon as it is exceeded.
const LARGEST_PART: i64 = 64;
/// The minimum size halves for each of so many parts of the limit in excess.
const STEPS: i64 = 160;
/// Number of the largest processes that a report names.
const NAMED: usize = 5;
/// Words up to which a block of a heap counts whole.
const WHOLE_WORDS: usize = 4096;
/// Maximum number of objects of an off-heap list whose holders are counted.
const MOST_COUNTED: usize = 256;

/// The size of a process in bytes.
struct Size {
    /// The bytes that it pays for itself.
    own: usize,
    /// Its part of the blocks outside of its heap, paid for by any budget.
    held: usize,
}

/// The size of the process in the context, of budget `index`.
fn size(cx: &mut Cx, index: u32) -> Size {
    let h = &cx.heap;
    let block = h.used_words() + h.stack_words();
    // Unused room of a large block takes no memory.
    let free = h.free_words();
    let room = if block + free <= WHOLE_WORDS { free } else { 0 };
    let words = block + room + h.old_words() + h.frag_words;
    let mut s = Size { own: 0, held: 0 };
    for o in [&h.off_heap, &h.old_off_heap] {
        for r in o.regions.iter() {
            let (payer, bytes) = r.bill();
            let holders = r.holders.count() as usize;
            s.own += budgets::part_of(index, payer, bytes, holders);
            s.held += bytes / holders.max(1);
        }
        s.held += off_heap::each_binary(o, MOST_COUNTED, |b, holders| {
            let bytes = b.billed_bytes();
            s.own += budgets::part_of(index, &b.payer, bytes, holders);
            s.held += bytes / holders.max(1);
        });
    }
    let p = cx.process();
    let ext = p.ext().map_or(0, |e| e.bytes());
    s.own += CELL_BYTES + words * 8 + p.queued_words() * 8 + ext;
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
pub(crate) fn is_over(cx: &mut Cx) -> bool {
    weigh(cx).is_some()
}

fn weigh(cx: &mut Cx) -> Option<Excess> {
    if cx.proc.is_null() {
        return None;
    }
    let s = budgets::seat(table().index(cx.proc))?;
    if s.budget() == ROOT {
        return None;
    }
    let size = size(cx, s.budget());
    let own = size.own as i64;
    let (made, grown, excess) = budgets::weigh(s, own);
    pressure::set_allowance(budgets::memory_left(s.budget()));
    let charged_with = made.max(own + size.held as i64);
    excess.filter(|e| grown && charged_with >= least(e) && !process::is_system(cx.self_pid()))
}

/// Ends the process in the context, which has collected, if the limit is still exceeded.
#[cold]
pub(crate) fn hold_against(cx: &mut Cx) {
    if let Some(e) = weigh(cx) {
        end(cx, &e, NIL);
    }
}

/// Called when the process in the context puts something into a table that exceeds the limit of
/// its budget and has that many bytes.
#[cold]
pub fn table_exceeds(cx: &mut Cx, e: &Excess, name: Term, bytes: usize) {
    if !cx.proc.is_null()
        && budgets::is_within(budgets::of(cx.proc), e.budget)
        && bytes as i64 >= least(e)
    {
        end(cx, e, name);
    }
}

/// Ends the process in the context with reason `{budget, memory}`.
fn end(cx: &mut Cx, e: &Excess, table_name: Term) {
    if cx.process().has(EXIT_PENDING) {
        return;
    }
    budgets::note_reached(e.budget);
    report(cx, e, table_name);
    end_here(cx, memory());
}

/// Marks the process in the context to end with reason `{budget, Why}`.
pub(crate) fn end_here(cx: &mut Cx, why: Term) {
    let mut f = Fragment::new();
    let reason = f.tuple(&[budget(), why]);
    cx.process().mark_to_exit(reason);
    cx.reds = 0;
}

fn report(cx: &mut Cx, e: &Excess, table_name: Term) {
    let me = cx.self_pid();
    let leader = match cx.process().group_leader {
        purlin_term::am::UNDEFINED => NIL,
        pid => pid,
    };
    let mut f = Fragment::new();
    let mut largest = budgets::sizes(e.budget);
    largest.sort_unstable_by_key(|x| std::cmp::Reverse(x.1));
    largest.truncate(NAMED);
    let pairs: Vec<Term> = largest
        .into_iter()
        .map(|(pid, bytes)| {
            let n = f.int(bytes);
            f.tuple(&[pid, n])
        })
        .collect();
    let pairs = f.list(&pairs);
    let name =
        budgets::get(e.budget).map_or(NIL, |b| b.with_name(|t| purlin_term::copy::copy(t, &mut f)));
    let (limit, used) = (f.int(e.limit), f.int(e.used));
    let (format, mut args) = match table_name {
        NIL => ("     Process:            ~p~n", vec![me]),
        t => (
            "     Process:            ~p~n     Table:              ~p~n",
            vec![me, t],
        ),
    };
    args.extend([name, limit, used, pairs]);
    let format = format!(
        "{format}     Context:            memory limit of a budget reached~n\
         \x20    Budget:             ~p~n     Limit:              ~p~n\
         \x20    In use:             ~p~n     Largest processes:  ~p~n"
    );
    report::send(Level::Error, leader, me, Text::Format(&format, &args));
    drop(purlin_term::frag::OwnedTerm::from_parts(pairs, f));
}
