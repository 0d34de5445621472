//! Waiting until no thread executes invalidated machine code.
//!
//! A breakpoint catches every call that goes through the entry of a function. Machine code of that
//! function may call itself without looking at the entry, so it is invalidated first. Threads that
//! are still executing it may stay there until the end of their time slices. A native that sets
//! breakpoints therefore returns only when they have left: the process waits in its run queue, and
//! its scheduler runs others. From then on, frames of the invalidated code return to the
//! interpreter.

use crate::code::compiled::{compiler, invalidations};
use crate::code::epochs::{Since, epochs};
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use purlin_term::Term;
use purlin_term::sync::Mutex;

lazy_atoms! {
    purlin = "purlin";
    code_left = "code_left";
}

/// The pending waits, by number, and the next number.
static WAITING: Mutex<(Vec<(u64, Since)>, u64)> = Mutex::new((Vec::new(), 0));

/// Runs `what`, which may set breakpoints, and returns its value once no thread executes the code
/// that was invalidated for them.
pub(crate) fn when_quiescent(cx: &mut Cx, what: impl FnOnce(&mut Cx) -> BifResult) -> BifResult {
    let before = invalidations();
    let value = what(cx)?;
    if before == invalidations() {
        return Ok(value);
    }
    if let Some(c) = compiler() {
        c.settle();
    }
    let mut w = WAITING.lock();
    // Drops waits that are over, among them those of processes that have ended.
    w.0.retain_mut(|(_, s)| !s.passed());
    let n = w.1;
    w.1 += 1;
    w.0.push((n, epochs().since()));
    drop(w);
    let target = crate::code::export(purlin(), code_left(), 2);
    Err(cx.trap(target, &[value, Term::small(n as i64)]))
}

/// Returns `value` once the wait `n` is over.
fn code_left_2(cx: &mut Cx, [value, n]: [Term; 2]) -> BifResult {
    let n = n.as_small().ok_or(Fail::Badarg)? as u64;
    let mut w = WAITING.lock();
    let Some(i) = w.0.iter().position(|(k, _)| *k == n) else {
        return Ok(value);
    };
    if !w.0[i].1.passed() {
        cx.bump(1);
        return Err(Fail::Again);
    }
    drop(w.0.swap_remove(i));
    Ok(value)
}

crate::bifs! {
    Plain "purlin":"code_left"/2 = code_left_2;
}
