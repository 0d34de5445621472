//! Natives that suspend and resume processes.
//!
//! # Invariants
//! * Both processes count the suspensions of one by the other. The suspended process changes its
//!   count itself, asked by tasks, and runs only while all its counts are zero.
//! * A caller that waits gets its answer when the other process has stopped, or has ended.

use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::process::ext::Peer;
pub use crate::process::group_leader_of;
use crate::process::state::Priority;
use crate::process::table;
use crate::signal::send::{self};
use crate::signal::suspend;
use crate::{bifs, ids};
use purlin_kernel::threads::lent;
use purlin_term::frag::OwnedTerm;
use purlin_term::release::{self, SUSPENDED_AFTER_NATIVES};
use purlin_term::{Term, am, atom, copy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

lazy_atoms! {
    a_unless_suspending = "unless_suspending";
    a_asynchronous = "asynchronous";
}

fn suspend_process_2(cx: &mut Cx, [pid, opts]: [Term; 2]) -> BifResult {
    // As in stock, the process is checked before the options.
    if !pid.is_local_pid() || pid == cx.self_pid() {
        return Ok(am::BADARG);
    }
    let (mut unless, mut asynchronous, mut reply) = (false, false, None);
    let mut it = opts.list_iter();
    for o in it.by_ref() {
        if o == a_unless_suspending() {
            unless = true;
        } else if o == a_asynchronous() {
            asynchronous = true;
        } else {
            match o.as_tuple() {
                Some(&[k, v]) if k == a_asynchronous() => {
                    asynchronous = true;
                    reply = Some(OwnedTerm::copy_of(v));
                }
                _ => return Ok(am::BADOPT),
            }
        }
    }
    if !it.tail().is_nil() {
        return Ok(am::BADOPT);
    }
    let me = cx.self_pid();
    let gone = table().find(pid).is_none();
    if gone && !asynchronous {
        return Ok(am::BADARG);
    }
    if gone {
        // A caller that does not wait is notified, if at all, by a message.
        if let Some(t) = &reply {
            send::send_with(me, |b| {
                let t = copy::copy(t.term(), b);
                b.tuple(&[t, am::BADARG])
            });
        }
        return Ok(am::TRUE);
    }
    let mine = &mut cx.process().ext_mut().suspending;
    let stopped = match mine.get_mut(&Peer::of(pid)) {
        Some((_, stopped)) if unless && (asynchronous || stopped.load(Ordering::Acquire)) => {
            return Ok(am::FALSE);
        }
        // The target has not handled the signal yet, so it is waited for.
        Some(_) if unless => {
            let r = ids::make_ref(cx);
            let told = OwnedTerm::copy_of(r);
            let task = move |cx: Option<&mut Cx>| {
                send::send_with(me, |b| {
                    let r = copy::copy(told.term(), b);
                    b.tuple(&[r, if cx.is_some() { am::FALSE } else { am::BADARG }])
                });
            };
            send::run_in(pid, Box::new(task));
            return Ok(r);
        }
        Some((n, stopped)) => {
            *n += 1;
            stopped.clone()
        }
        None => {
            let stopped = Arc::new(AtomicBool::new(false));
            mine.insert(Peer::of(pid), (1, stopped.clone()));
            stopped
        }
    };
    let r = if asynchronous {
        None
    } else {
        let r = ids::make_ref(cx);
        Some((r, OwnedTerm::copy_of(r)))
    };
    let (r_term, r_own) = match r {
        Some((t, o)) => (Some(t), Some(o)),
        None => (None, None),
    };
    let answer = move |there: bool| {
        stopped.store(true, Ordering::Release);
        if let Some(r) = &r_own {
            send::send_with(me, |b| {
                let r = copy::copy(r.term(), b);
                b.tuple(&[r, if there { am::TRUE } else { am::BADARG }])
            });
        }
        if let Some(t) = &reply {
            send::send_with(me, |b| {
                let t = copy::copy(t.term(), b);
                let what = atom::intern(if there { "suspended" } else { "exited" });
                b.tuple(&[t, what])
            });
        }
    };
    let stop = move |c: &mut Cx| {
        suspend::suspend(c.process(), me);
        // Shortens the time slice of the running process, so that it stops soon.
        c.reds = 0;
        crate::port::request_rest(c);
    };
    send::run_in(
        pid,
        Box::new(move |cx| {
            let Some(c) = cx else {
                return answer(false);
            };
            let native = c.dirty && lent::within_native(c).is_none();
            if native && release::has(SUSPENDED_AFTER_NATIVES) {
                // It runs until the native that it is in has returned.
                let task = move |cx: Option<&mut Cx>| {
                    let there = cx.is_some();
                    cx.into_iter().for_each(stop);
                    answer(there);
                };
                let deferred = &mut c.process().ext_mut().deferred;
                deferred.push((Priority::Normal, Box::new(task)));
                return;
            }
            stop(c);
            if c.dirty || lent::within_native(c).is_some() {
                return answer(true);
            }
            // A process in the middle of a time slice may still end; then it was not suspended.
            let task = move |cx: Option<&mut Cx>| answer(cx.is_some());
            let deferred = &mut c.process().ext_mut().deferred;
            deferred.push((Priority::Normal, Box::new(task)));
        }),
    );
    Ok(r_term.unwrap_or(am::TRUE))
}

fn resume_process_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    let me = cx.self_pid();
    if !pid.is_local_pid() || pid == me {
        return Err(Fail::Badarg);
    }
    let mine = &mut cx.process().ext_mut().suspending;
    let peer = Peer::of(pid);
    if table().find(pid).is_none() {
        // It has ended, and is no longer suspended.
        mine.remove(&peer);
    }
    let (n, _) = mine.get_mut(&peer).ok_or(Fail::Badarg)?;
    *n -= 1;
    if *n == 0 {
        mine.remove(&peer);
    }
    suspend::resume(me, pid);
    Ok(am::TRUE)
}

bifs! {
    Plain "erts_internal":"suspend_process"/2 = suspend_process_2 [writes(Process)];
    Plain "erlang":"resume_process"/1 = resume_process_1 [writes(Process)];
}
