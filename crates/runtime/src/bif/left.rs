//! Waiting for threads that are still within code which was taken back.
//!
//! A breakpoint stops whoever comes to the entry of a function. Machine code of that function, which calls itself without a look
//! at the entry, is taken back before; but threads that are within it stay there until their time slices end. So what sets
//! breakpoints gives its value only when they have: the process waits in its run queue, and its scheduler runs others. Frames that such
//! code has left return to the interpreter from then on.

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

/// The waits that are not over, by number, and the next number.
static WAITING: Mutex<(Vec<(u64, Since)>, u64)> = Mutex::new((Vec::new(), 0));

/// Does something that may set breakpoints. Its value is given when nobody is within what was taken back for them.
pub(super) fn when_left(cx: &mut Cx, what: impl FnOnce(&mut Cx) -> BifResult) -> BifResult {
    let before = invalidations();
    let value = what(cx)?;
    if before == invalidations() {
        return Ok(value);
    }
    if let Some(c) = compiler() {
        c.settle();
    }
    let mut w = WAITING.lock();
    // Processes that ended meanwhile don't ask any more.
    w.0.retain_mut(|(_, s)| !s.passed());
    let n = w.1;
    w.1 += 1;
    w.0.push((n, epochs().since()));
    drop(w);
    let target = crate::code::export(purlin(), code_left(), 2);
    Err(cx.trap(target, &[value, Term::small(n as i64)]))
}

/// `value`, once nobody is there any more.
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
