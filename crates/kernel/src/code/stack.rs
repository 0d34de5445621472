//! The stack of the process in a context, as a list of the functions that it returns to.

use super::{Place, find};
use crate::cx::Cx;
use purlin_term::word::is_header_word;
use purlin_term::{Alloc, NIL, Term, am};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of entries of a stack trace (`backtrace_depth`).
pub static DEPTH: AtomicUsize = AtomicUsize::new(8);

/// Iterates over the return addresses on the stack, innermost first. An address that repeats, as in
/// a recursion, or that follows `last`, counts once.
fn returns(cx: &Cx, mut last: u64) -> impl Iterator<Item = u64> + '_ {
    let mut p = cx.heap.stop;
    std::iter::from_fn(move || {
        while p < cx.heap.hend {
            // SAFETY: a word of the stack.
            let w = unsafe { (*p).raw() };
            // SAFETY: below `hend`.
            p = unsafe { p.add(1) };
            if is_header_word(w) && w != 0 && w != last {
                last = w;
                return Some(w);
            }
        }
        None
    })
}

/// Returns code addresses from `pc` outwards, at most `depth`: the running one, then return
/// addresses.
pub fn addresses(cx: &Cx, pc: *const u64, depth: usize) -> Vec<u64> {
    let pc = pc as u64;
    std::iter::once(pc)
        .chain(returns(cx, pc))
        .take(depth)
        .collect()
}

/// Returns the function of the `i`th of such addresses. All but the first lie behind a call.
pub fn place(i: usize, pc: u64) -> Option<Place> {
    find((if i == 0 { pc } else { pc - 8 }) as *const u64)
}

/// Whether a process that waits at `pc` does so for a message: in a receive, or hibernating.
///
/// # Safety
/// `pc` is an instruction of loaded code, or of a stub.
pub unsafe fn is_receive(pc: *const u64) -> bool {
    use purlin_isa::ops::Op;
    if std::ptr::eq(pc, super::stubs().hibernated.as_ptr()) {
        return true;
    }
    // SAFETY: by the contract.
    let op = Op::of(unsafe { super::opcode_at(pc) });
    matches!(op, Some(Op::LoopRec | Op::Wait | Op::WaitTimeout))
}

/// Builds an entry of a stack trace.
pub fn location<A: Alloc>(to: &mut A, p: &Place) -> Term {
    let loc = match &p.line {
        None => NIL,
        Some((file, line)) => {
            let s = to.string(file);
            let f = to.tuple(&[am::FILE, s]);
            let l = to.tuple(&[am::LINE, Term::small(i64::from(*line))]);
            to.list(&[f, l])
        }
    };
    to.tuple(&[p.module, p.function, Term::small(i64::from(p.arity)), loc])
}

/// Builds the stack trace that a match specification receives: the functions that the called
/// function returns to. `most` is the number of entries that it asks for, if it does; the maximum
/// is `backtrace_depth`.
pub fn stacktrace(cx: &mut Cx, most: Option<Term>) -> Term {
    let depth = DEPTH.load(Ordering::Relaxed);
    let asked = most.and_then(|n| n.as_small());
    let most = asked.map_or(depth, |n| usize::try_from(n).map_or(0, |n| n.min(depth)));
    let places: Vec<Place> = returns(cx, 0)
        .filter_map(|pc| place(1, pc))
        .take(most)
        .collect();
    let entries: Vec<Term> = places.iter().map(|p| location(cx, p)).collect();
    cx.list(&entries)
}
