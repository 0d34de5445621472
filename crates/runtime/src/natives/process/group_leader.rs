//! Natives of group leaders.
//!
//! # Invariant
//! A process's group leader is changed only by itself: others ask it to by a task.

use crate::bifs;
use crate::cx::{BifResult, Cx, Fail};
use crate::process;
use crate::process::group_leader_of;
use crate::signal::send;
use purlin_term::frag::OwnedTerm;
use purlin_term::{Term, am, copy};

fn group_leader_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Ok(group_leader_of(cx))
}

fn group_leader_2(cx: &mut Cx, [gl, pid]: [Term; 2]) -> BifResult {
    if !gl.is_pid() || !pid.is_pid() {
        return Ok(am::BADARG);
    }
    if !pid.is_local_pid() {
        return purlin_dist::signals::group_leader(cx, gl, pid);
    }
    if pid == cx.self_pid() {
        process::set_group_leader(cx.process(), gl);
        return Ok(am::TRUE);
    }
    Ok(am::FALSE)
}

fn group_leader_3(cx: &mut Cx, [gl, pid, r]: [Term; 3]) -> BifResult {
    if !gl.is_pid() || !pid.is_local_pid() || r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    let me = cx.self_pid();
    let (gl, r) = (OwnedTerm::copy_of(gl), OwnedTerm::copy_of(r));
    send::run_in(
        pid,
        Box::new(move |cx| {
            let res = match cx {
                Some(c) => {
                    process::set_group_leader(c.process(), gl.term());
                    am::TRUE
                }
                None => am::BADARG,
            };
            send::send_with(me, |b| {
                let r = copy::copy(r.term(), b);
                b.tuple(&[r, res])
            });
        }),
    );
    Ok(am::OK)
}

bifs! {
    Plain "erlang":"group_leader"/0 = group_leader_0;
    Plain "erts_internal":"group_leader"/2 = group_leader_2 [writes(Process)];
    Plain "erts_internal":"group_leader"/3 = group_leader_3 [writes(Process)];
}
