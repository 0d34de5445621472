//! Natives about the calling process itself: its pid, yielding, hibernation; and new references.

use crate::collect::compact;
use crate::cx::{BifResult, Cx, Fail};
use crate::signal::receive;
use crate::{bifs, ids};
use purlin_term::{Term, am};

fn self_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Ok(cx.self_pid())
}

/// Waits for a message with a small heap, and continues. Calls never reach the Erlang function,
/// which would call this again.
fn hibernate_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    cx.interp.live = 0;
    if receive::has_current(cx) {
        compact::cancel_hibernation(cx.process());
        return Ok(am::OK);
    }
    // SAFETY: as after any call of a native: it has no arguments, and all live terms are on the
    // stack.
    match unsafe { compact::hibernates(cx, 0) } {
        true => {
            crate::sched::mark_early_yield();
            Err(Fail::Again)
        }
        false => Err(Fail::Wait),
    }
}

fn make_ref_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Ok(ids::make_ref(cx))
}

/// Ends the time slice at the next call.
fn yield_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Err(cx.yield_with(am::TRUE))
}

bifs! {
    Plain "erlang":"yield"/0 = yield_0 [reads(All)];
    Plain "erlang":"self"/0 = self_0 [template(OwnPid)];
    Plain "erlang":"make_ref"/0 = make_ref_0;
    Plain "erlang":"hibernate"/0 = hibernate_0 [in_place since(28)];
}
