//! System tasks, which a process asks of another: garbage collection, and checks before code is
//! purged.
//!
//! # Invariants
//! * A task is answered exactly once, also if the process has ended.
//! * A task that looks at registers runs between two time slices, where all of them are known
//!   roots.

use super::option_terms::priority_of;
use crate::bifs;
use crate::collect::compact;
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::signal::send;
use purlin_term::frag::OwnedTerm;
use purlin_term::{NIL, Term, am, atom, copy};

lazy_atoms! {
    a_major = "major";
    a_garbage_collect = "garbage_collect";
    a_check_process_code = "check_process_code";
    a_copy_literals = "copy_literals";
}

/// Whether the running process refers to the old code of a module.
fn check_process_code(cx: &mut Cx, module: Term) -> bool {
    let pc = cx.process().pc;
    crate::code::purge::process_is_lingering(cx, module, pc)
}

fn garbage_collect_1(cx: &mut Cx, [mode]: [Term; 1]) -> BifResult {
    if mode != a_major() && mode != atom::intern("minor") {
        return Err(Fail::Badarg);
    }
    cx.heap.gc_wanted = true;
    if mode == a_major() {
        cx.heap.need_fullsweep = true;
    } else {
        cx.heap.keep_generations();
    }
    Ok(am::TRUE)
}

/// Handles a request of another process, at a point where the registers of this one are known
/// roots.
pub(crate) fn system_task(requester: Term, target: Term, prio: Term, request: Term) -> BifResult {
    if !target.is_pid() || (priority_of(prio).is_none() && prio != atom::intern("inherit")) {
        return Err(Fail::Badarg);
    }
    let (kind, id, arg) = match request.as_tuple() {
        Some(&[kind, id, arg]) => (kind, id, arg),
        // A task with no effect but its answer, for tests of the order of tasks.
        Some(&[kind, id]) if kind == atom::intern("system_task_test") => (kind, id, NIL),
        _ => return Err(Fail::Badarg),
    };
    let fits = match () {
        _ if kind == a_garbage_collect() => arg == a_major() || arg == atom::intern("minor"),
        _ if kind == a_check_process_code() => arg.is_atom(),
        _ => kind == a_copy_literals() || kind == atom::intern("system_task_test"),
    };
    if !fits || !target.is_local_pid() {
        return Err(Fail::Badarg);
    }
    let id = OwnedTerm::copy_of(id);
    let answer = move |res: Term| {
        send::send_with(requester, |b| {
            let id = copy::copy(id.term(), b);
            b.tuple(&[kind, id, res])
        });
    };
    let at = priority_of(prio).unwrap_or_else(crate::sched::running_priority);
    send::run_in_at(
        target,
        at,
        Box::new(move |cx| {
            let Some(cx) = cx else {
                let told = kind == a_garbage_collect() || kind == a_check_process_code();
                answer(if told { am::FALSE } else { am::OK });
                return;
            };
            // A native on a dirty thread may take long. Its caller's frame stays where it was
            // called.
            if cx.dirty && kind == a_check_process_code() {
                let pc = cx.bif_pc;
                let uses = crate::code::purge::process_is_lingering(cx, arg, pc);
                answer(Term::bool(uses));
                return;
            }
            let work: crate::signal::Task = Box::new(move |cx| {
                let Some(cx) = cx else {
                    answer(if kind == a_copy_literals() {
                        am::OK
                    } else {
                        am::FALSE
                    });
                    return;
                };
                let live = cx.interp.live;
                if kind == a_garbage_collect() {
                    // SAFETY: deferred tasks run between time slices, where the `live` registers
                    // are all there are.
                    unsafe { compact::collect_for_another(cx, live, arg == a_major()) };
                    answer(am::TRUE);
                } else if kind == a_check_process_code() {
                    answer(if check_process_code(cx, arg) {
                        am::TRUE
                    } else {
                        am::FALSE
                    });
                } else if kind == a_copy_literals() {
                    // SAFETY: deferred tasks run between time slices, where the `live` registers
                    // are all there are.
                    unsafe { crate::code::literal_areas::count(cx, live) };
                    answer(am::OK);
                } else {
                    answer(am::TRUE);
                }
            });
            let e = cx.process().ext_mut();
            match e.collections_held.as_mut() {
                Some(held) if kind == a_garbage_collect() => held.push((at, work)),
                _ => e.deferred.push((at, work)),
            }
        }),
    );
    Ok(am::OK)
}

fn request_system_task_3(cx: &mut Cx, [target, prio, request]: [Term; 3]) -> BifResult {
    let me = cx.self_pid();
    system_task(me, target, prio, request)
}

fn request_system_task_4(_: &mut Cx, [by, target, prio, request]: [Term; 4]) -> BifResult {
    system_task(by, target, prio, request)
}

bifs! {
    Plain "erts_internal":"garbage_collect"/1 = garbage_collect_1;
    Plain "erts_internal":"request_system_task"/3 = request_system_task_3;
    Plain "erts_internal":"request_system_task"/4 = request_system_task_4;
}
