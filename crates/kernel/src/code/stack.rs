//! The stack of the process in a context, as the functions that it returns to.

use super::{Place, find};
use crate::cx::Cx;
use purlin_term::word::is_header_word;
use purlin_term::{Alloc, NIL, Term, am};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most entries of a stack trace (`backtrace_depth`).
pub static DEPTH: AtomicUsize = AtomicUsize::new(8);

/// The addresses on the stack that the process returns to, the last call first. One that stands twice in a row, as in a recursion, or
/// right after `last`, counts once.
fn returns(cx: &Cx, mut last: u64) -> impl Iterator<Item = u64> + '_ {
    let mut p = cx.heap.stop;
    std::iter::from_fn(move || {
        while p < cx.heap.hend {
            // SAFETY: words of the stack.
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

/// Code addresses from `pc` outwards, at most `depth`: what runs, then what it returns to.
pub fn addresses(cx: &Cx, pc: *const u64, depth: usize) -> Vec<u64> {
    let pc = pc as u64;
    std::iter::once(pc)
        .chain(returns(cx, pc))
        .take(depth)
        .collect()
}

/// The function of the `i`th of such addresses. But for the first they lie behind the call.
pub fn place(i: usize, pc: u64) -> Option<Place> {
    find((if i == 0 { pc } else { pc - 8 }) as *const u64)
}

/// An entry of a stack trace.
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

/// The stack as a match specification is told it: what the function that was called returns to. `most` is the number of entries
/// that it asks for, if it does; there are `backtrace_depth` at most.
pub fn told(cx: &mut Cx, most: Option<Term>) -> Term {
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
