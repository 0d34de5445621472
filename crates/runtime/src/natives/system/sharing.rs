//! Natives that show which terms processes share, and with whom.
//!
//! `purlin:sharing()` returns counts for the whole runtime, `purlin:sharing(Pid)` those of a
//! process, and `purlin:regions(Pid)` the regions that its heap refers to. Another process counts
//! for itself, between two of its time slices.

use crate::bifs;
use crate::cx::{BifResult, Cx, Fail};
use crate::natives::process::ask::ask_term;
use crate::signal::share;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{Term, am};

fn sharing_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(share::info(cx))
}

/// The result of `f` in the process `pid`; `undefined` if that has ended.
fn of(cx: &mut Cx, pid: Term, f: fn(&mut Cx, &mut Fragment) -> Term) -> BifResult {
    if !pid.is_local_pid() {
        return Err(Fail::Badarg);
    }
    let made = move |cx: &mut Cx| {
        let mut to = Fragment::new();
        let t = f(cx, &mut to);
        OwnedTerm::from_parts(t, to)
    };
    if pid == cx.self_pid() {
        let t = made(cx);
        return Ok(purlin_term::copy::copy(t.term(), cx));
    }
    ask_term(cx, pid, move |cx| match cx {
        Some(cx) => made(cx),
        None => OwnedTerm::copy_of(am::UNDEFINED),
    })
}

fn sharing_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    of(cx, pid, share::process_info)
}

fn regions_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    of(cx, pid, share::process_regions)
}

bifs! {
    Plain "purlin":"sharing"/0 = sharing_0;
    Plain "purlin":"sharing"/1 = sharing_1;
    Plain "purlin":"regions"/1 = regions_1;
}
