//! Time and memory of calls, per function and process.
//!
//! # Invariant
//! A process measures at most one function at a time for each session and quantity. It adds to the
//! function's count when it moves on to another function, and for time when it stops running.

use super::table::breakpoint_at;
use crate::clock;
use crate::cx::Cx;
use crate::process;
use crate::process::ext::Timed;
use crate::trace::frames::{Measure, measure_of, number_of};
use purlin_term::Term;

/// Words in use of the heap in the context.
fn used_words(cx: &Cx) -> i64 {
    let h = &cx.heap;
    let old = h.old_words() - h.old_free_words();
    (h.used_words() + h.frag_words + old) as i64
}

/// The current reading of a measure; never 0, which stands for a pause.
fn reading(cx: &mut Cx, what: Measure) -> i64 {
    match what {
        Measure::Time => clock::elapsed().max(1),
        Measure::Memory => used_words(cx) + cx.process().ext().map_or(0, |e| e.words_made) + 1,
    }
}

/// A collection has left `after` of `before` words.
pub(crate) fn collected(p: &mut process::Process, before: i64, after: i64) {
    if let Some(e) = p.ext().filter(|e| !e.call_time.is_empty()) {
        // Words allocated earlier stay counted.
        e.words_made += before - after;
    }
}

/// Measures the function at entry `to` (0: none) from now on, in the process in the context. What
/// was measured so far goes to the previous function, whose entry is returned. `number` is the
/// quantity and the session.
pub(crate) fn switch(cx: &mut Cx, number: i64, to: usize) -> usize {
    let now = reading(cx, measure_of(number).0);
    let p = cx.process();
    let pid = p.pid();
    let all = &mut p.ext_mut().call_time;
    let before = all.iter().position(|t| t.number == number);
    let before = before.map(|at| all.swap_remove(at));
    if to != 0 {
        all.push(Timed {
            number,
            entry: to,
            since: now,
        });
    }
    let Some(before) = before else { return 0 };
    if before.since != 0 {
        account(before, pid, now);
    }
    before.entry
}

/// Adds the measure up to `now` to the function being measured.
fn account(of: Timed, pid: Term, now: i64) {
    let (what, whom) = measure_of(of.number);
    if let Some(b) = breakpoint_at(of.entry) {
        let mut w = b.wanted.lock();
        let part = w.each_mut().find(|(s, _)| number_of(*s) == whom);
        let rows = part.and_then(|(_, w)| match what {
            Measure::Time => w.time.as_mut(),
            Measure::Memory => w.memory.as_mut(),
        });
        if let Some((all, true)) = rows {
            all.entry(pid.raw()).or_default().1 += (now - of.since).max(0) as u64;
        }
    }
}

/// Pauses measuring for a process that the caller owns (`true`) or resumes it, so that waiting does
/// not count.
pub fn pause(p: &mut process::Process, stops: bool) {
    let pid = p.pid();
    let Some(e) = p.ext().filter(|e| !e.call_time.is_empty()) else {
        return;
    };
    let now = clock::elapsed().max(1);
    let timed = |t: &&mut Timed| measure_of(t.number).0 == Measure::Time;
    for t in e.call_time.iter_mut().filter(timed) {
        if stops && t.since != 0 {
            account(*t, pid, now);
        }
        t.since = if stops { 0 } else { now };
    }
}

/// Ends the measurement of a call; `frame` has the words behind the address.
#[cold]
pub(crate) fn measured(cx: &mut Cx, [before, number]: [Term; 2]) {
    let before = before.as_small().unwrap_or(0) as usize * 8;
    switch(cx, number.as_small().unwrap_or(0), before);
}
