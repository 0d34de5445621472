//! `erlang:trace_delivered/1`: a message that comes after all trace messages sent before.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, ids, lazy_atoms, process, signal};
use purlin_term::frag::OwnedTerm;
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, Term, am};
use std::sync::Arc;

lazy_atoms! {
    trace_delivered = "trace_delivered";
}

fn trace_delivered_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    if !pid.is_local_pid() && pid != am::ALL {
        return Err(Fail::Badarg);
    }
    let r = ids::make_ref(cx);
    let me = cx.self_pid();
    let msg = cx.tuple(&[trace_delivered(), pid, r]);
    // Trace messages go the same way as this message. So do effects of signals sent to a process
    // earlier that make it send trace messages: those come first.
    let delivered = Arc::new(Delivered {
        to: me,
        msg: Mutex::new(OwnedTerm::copy_of(msg)),
    });
    let whom = match pid == am::ALL {
        true => process::table().pids(),
        false => vec![pid],
    };
    for p in whom.into_iter().filter(|&p| p != me && is_busy(p)) {
        let delivered = delivered.clone();
        signal::send::run_in(p, Box::new(move |_| drop(delivered)));
    }
    Ok(r)
}

/// Whether a process has something to do.
fn is_busy(pid: Term) -> bool {
    let p = process::table().find(pid);
    // SAFETY: cells are never unmapped; the state word is an atomic.
    p.is_some_and(|p| unsafe { (*p).state.load() }.is_busy())
}

/// Sends a message when its last holder drops it.
struct Delivered {
    to: Term,
    msg: Mutex<OwnedTerm>,
}

impl Drop for Delivered {
    fn drop(&mut self) {
        signal::send(self.to, self.msg.lock().term());
    }
}

bifs! {
    Plain "erlang":"trace_delivered"/1 = trace_delivered_1;
}
