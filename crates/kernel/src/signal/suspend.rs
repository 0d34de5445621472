//! Suspended processes are let go on.

use super::send::run_in;
use crate::cx::Cx;
use crate::process::state::Priority;
use purlin_term::Term;

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
    if let Some(i) = e.suspended.iter().position(|s| s.0 == by) {
        e.suspended[i].1 -= 1;
        if e.suspended[i].1 == 0 {
            e.suspended.remove(i);
        }
    }
    let none = e.suspended.is_empty();
    if none {
        p.state.resume();
    }
}
