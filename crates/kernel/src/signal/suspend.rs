//! Suspending and resuming of processes.

use super::send::run_in;
use crate::cx::Cx;
use crate::process::Process;
use crate::process::ext::Peer;
use crate::process::state::Priority;
use purlin_term::Term;

/// Suspends the process once more for `by`. Called by the process itself.
pub fn suspend(p: &mut Process, by: Term) {
    let by = Peer::of(by);
    let all = &mut p.ext_mut().suspended;
    match all.get_mut(&by) {
        Some(n) => *n += 1,
        None => all.insert(by, 1),
    }
    p.state.suspend();
}

/// Undoes one suspension of `pid` by `by`.
pub fn resume(by: Term, pid: Term) {
    run_in(
        pid,
        Box::new(move |cx| {
            let Some(cx) = cx else { return };
            // Not before the suspension itself, which may wait for the end of a native.
            if let Some(e) = cx.process().ext()
                && !e.deferred.is_empty()
            {
                let task = move |cx: Option<&mut Cx>| cx.into_iter().for_each(|cx| undo(by, cx));
                e.deferred.push((Priority::Normal, Box::new(task)));
                return;
            }
            undo(by, cx);
        }),
    );
}

fn undo(by: Term, cx: &mut Cx) {
    let p = cx.process();
    let Some(e) = p.ext() else { return };
    let by = Peer::of(by);
    if let Some(n) = e.suspended.get_mut(&by) {
        *n -= 1;
        if *n == 0 {
            e.suspended.remove(&by);
        }
    }
    let none = e.suspended.is_empty();
    if none {
        p.state.resume();
    }
}
