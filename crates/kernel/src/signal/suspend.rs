//! Suspended processes are let go on.

use super::send::run_in;
use purlin_term::Term;

/// Undoes one suspension of `pid` by `by`.
pub fn resume(by: Term, pid: Term) {
    run_in(
        pid,
        Box::new(move |cx| {
            let Some(cx) = cx else { return };
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
        }),
    );
}
