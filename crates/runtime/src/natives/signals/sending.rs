//! Natives that send messages.

use crate::bifs;
use crate::cx::{BifResult, Cx};
use crate::lazy_atoms;
use crate::signal::send::{self, Sent};
use purlin_dist::signals::SendNatives;
use purlin_native::long;
use purlin_term::release::{self, PRIORITY_MESSAGES};
use purlin_term::{Term, am};

lazy_atoms! {
    a_noconnect = "noconnect";
}

/// The natives that are called again on a dirty thread with a large message to another node.
pub(crate) const LONG: SendNatives = SendNatives {
    send: long!("erlang":"send"/2),
    send_with_options: long!("erlang":"send"/3),
};

fn send_2(cx: &mut Cx, [to, msg]: [Term; 2]) -> BifResult {
    crate::signal::deliver(cx, to, msg)
}

fn send_3(cx: &mut Cx, [to, msg, opts]: [Term; 3]) -> BifResult {
    let mut how = send::How::default();
    let mut it = opts.list_iter();
    for o in it.by_ref() {
        if o == a_noconnect() {
            how.no_connect = true;
        } else if o == am::NOSUSPEND {
            how.no_suspend = true;
        } else if o == am::PRIORITY && release::has(PRIORITY_MESSAGES) {
            how.urgent = true;
        } else {
            return Err(cx.badarg_cause(am::BADOPT));
        }
    }
    if !it.tail().is_nil() {
        return Err(cx.badarg_cause(am::BADOPT));
    }
    let how = send::How {
        options: Some(opts),
        ..how
    };
    Ok(match send::deliver_as(cx, to, msg, how)? {
        Sent::Done | Sent::Nowhere => am::OK,
        Sent::NotConnected => a_noconnect(),
        Sent::Busy => am::NOSUSPEND,
    })
}

bifs! {
    Plain "erlang":"!"/2 = send_2 [writes(Process) sends];
    Plain "erlang":"send"/2 = send_2 [long writes(Process) sends];
    Plain "erlang":"send"/3 = send_3 [long writes(Process) sends];
}
