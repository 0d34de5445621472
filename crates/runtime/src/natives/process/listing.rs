//! Natives that list processes, and that tell whether one is alive or a system process.

use super::ask::{ask, runs_undisturbed};
use crate::bifs;
use crate::cx::{BifResult, Cx, Fail};
use crate::process::{self, table};
use crate::signal::send;
use purlin_term::frag::OwnedTerm;
use purlin_term::{Alloc, Term, am, atom, copy, unassigned_ids};

fn is_process_alive_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    if pid.is_pid() && unassigned_ids::is_unassigned_id(pid) {
        return Ok(am::FALSE);
    }
    if !pid.is_local_pid() {
        return Err(Fail::Badarg);
    }
    if pid == cx.self_pid() {
        return Ok(am::TRUE);
    }
    if runs_undisturbed(cx, pid) {
        return Ok(am::TRUE);
    }
    // Signals that this process sent earlier may be about to end it, so it has to answer itself.
    ask(cx, pid, |p| {
        if p.is_some_and(|p| !p.has(process::EXIT_PENDING)) {
            am::TRUE
        } else {
            am::FALSE
        }
    })
}

fn is_process_alive_2(cx: &mut Cx, [pid, r]: [Term; 2]) -> BifResult {
    if !pid.is_local_pid() || r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    let me = cx.self_pid();
    let r = OwnedTerm::copy_of(r);
    send::run_in(
        pid,
        Box::new(move |cx| {
            let alive = cx.is_some_and(|c| !c.process().has(process::EXIT_PENDING));
            send::send_with(me, |b| {
                let r = copy::copy(r.term(), b);
                b.tuple(&[r, if alive { am::TRUE } else { am::FALSE }])
            });
        }),
    );
    Ok(am::OK)
}

fn processes_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    let mut v = table().pids();
    v.sort_unstable_by_key(|p| p.raw());
    cx.bump(v.len() / 8);
    Ok(cx.list(&v))
}

/// Cells of the process table examined in one call.
const CELLS_AT_ONCE: u32 = 1000;

/// The native behind `erlang:processes_next/1`: some pids, and where to continue; `none` after the
/// last.
fn processes_next_1(cx: &mut Cx, [from]: [Term; 1]) -> BifResult {
    let from = from.as_small().and_then(|n| u32::try_from(n).ok());
    let from = from.filter(|&n| (n as usize) <= table().limit());
    match table().range(from.ok_or(Fail::Badarg)?, CELLS_AT_ONCE) {
        Some((pids, next)) => {
            cx.bump(pids.len() / 8 + 1);
            let list = cx.list(&pids);
            Ok(cx.tuple(&[Term::small(next.into()), list]))
        }
        None => Ok(atom::intern("none")),
    }
}

fn is_system_process_1(_: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    if !pid.is_local_pid() {
        return Err(Fail::Badarg);
    }
    // `init` is not a system process, though nothing works without it.
    let is = pid.pid_data() != 0 && crate::process::is_system(pid);
    Ok(Term::bool(is))
}

bifs! {
    Plain "erlang":"is_process_alive"/1 = is_process_alive_1 [reads(Process)];
    Plain "erts_internal":"is_process_alive"/2 = is_process_alive_2 [reads(Process)];
    Plain "erlang":"processes"/0 = processes_0 [reads(All)];
    Plain "erts_internal":"processes_next"/1 = processes_next_1 [since(28) reads(All)];
    Plain "erts_internal":"is_system_process"/1 = is_system_process_1;
}
