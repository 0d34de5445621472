//! Natives that suspend and resume processes.
//!
//! # Invariants
//! * Both processes count the suspensions of one by the other. The suspended process changes its
//!   count itself, asked by tasks, and runs only while all its counts are zero.
//! * A caller that waits gets its answer when the other process has stopped, or has ended.
//!
//! # Orderings
//! `stopped` is stored with release by the suspended process once it has stopped, and loaded with
//! acquire by the suspending one: that then sees what the other did before.

use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::process::ext::Peer;
use crate::process::state::Priority;
use crate::process::{SAVES, saved, table};
use crate::signal::send;
use crate::signal::suspend;
use crate::{bifs, ids};
use purlin_kernel::threads::dirty_calls;
use purlin_term::frag::OwnedTerm;
use purlin_term::release::{self, SUSPENDED_AFTER_NATIVES};
use purlin_term::{Term, am, atom, copy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

lazy_atoms! {
    a_unless_suspending = "unless_suspending";
    a_asynchronous = "asynchronous";
}

/// The options of `suspend_process`.
struct Options {
    /// Do nothing if this process has suspended the other one already.
    unless: bool,
    /// Do not wait until the other process has stopped.
    asynchronous: bool,
    /// The tag of the message that is sent when it has.
    reply: Option<OwnedTerm>,
}

/// Reads the options; `None` if one is invalid.
fn options(list: Term) -> Option<Options> {
    let mut o = Options {
        unless: false,
        asynchronous: false,
        reply: None,
    };
    let mut it = list.list_iter();
    for option in it.by_ref() {
        if option == a_unless_suspending() {
            o.unless = true;
        } else if option == a_asynchronous() {
            o.asynchronous = true;
        } else {
            match option.as_tuple() {
                Some(&[k, v]) if k == a_asynchronous() => {
                    o.asynchronous = true;
                    o.reply = Some(OwnedTerm::copy_of(v));
                }
                _ => return None,
            }
        }
    }
    it.tail().is_nil().then_some(o)
}

/// Makes the process `pid` send `{Reference, false}` when it has handled the signals sent before,
/// or `{Reference, badarg}` if it has ended. Returns the reference.
fn when_reached(cx: &mut Cx, pid: Term) -> Term {
    let me = cx.self_pid();
    let r = ids::make_ref(cx);
    let reference = OwnedTerm::copy_of(r);
    let task = move |cx: Option<&mut Cx>| {
        send::send_with(me, |b| {
            let r = copy::copy(reference.term(), b);
            b.tuple(&[r, if cx.is_some() { am::FALSE } else { am::BADARG }])
        });
    };
    send::run_in(pid, Box::new(task));
    r
}

/// Whether a thread runs the process at this moment.
fn runs(pid: Term) -> bool {
    // SAFETY: cells are never unmapped; the state word is an atomic.
    table()
        .find(pid)
        .is_some_and(|p| unsafe { (*p).state.load() }.is_running())
}

fn suspend_process_2(cx: &mut Cx, [pid, opts]: [Term; 2]) -> BifResult {
    // As in stock, the process is checked before the options.
    if !pid.is_local_pid() || pid == cx.self_pid() {
        return Ok(am::BADARG);
    }
    let Some(Options {
        unless,
        asynchronous,
        reply,
    }) = options(opts)
    else {
        return Ok(am::BADOPT);
    };
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
    let mut again = false;
    let stopped = match mine.get_mut(&Peer::of(pid)) {
        // The message is sent when the target has stopped, whichever suspension stopped it.
        Some((_, stopped)) if unless && reply.is_some() => {
            again = true;
            stopped.clone()
        }
        Some((_, stopped)) if unless && (asynchronous || stopped.load(Ordering::Acquire)) => {
            return Ok(am::FALSE);
        }
        // The target has not handled the signal yet, so it is waited for.
        Some(_) if unless => return Ok(when_reached(cx, pid)),
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
        // Stock suspends a process that does not run at once, and returns no reference.
        if cx.process().has(SAVES) && !runs(pid) {
            saved::returns_result(cx.process());
        }
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
    suspend_and_answer(pid, me, again, answer);
    Ok(r_term.unwrap_or(Term::bool(!again)))
}

/// Makes a process suspend itself for `me`; `again`: it has been suspended for `me` before. Calls
/// `answer` when it is suspended, or has ended.
fn suspend_and_answer(
    pid: Term,
    me: Term,
    again: bool,
    answer: impl FnOnce(bool) + Send + 'static,
) {
    let stop = move |c: &mut Cx| {
        if !again {
            suspend::suspend(c.process(), me);
        }
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
            let native = c.dirty && dirty_calls::within_native(c).is_none();
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
            if c.dirty || dirty_calls::within_native(c).is_some() {
                return answer(true);
            }
            // A process in the middle of a time slice may still end; then it was not suspended.
            let task = move |cx: Option<&mut Cx>| answer(cx.is_some());
            let deferred = &mut c.process().ext_mut().deferred;
            deferred.push((Priority::Normal, Box::new(task)));
        }),
    );
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
