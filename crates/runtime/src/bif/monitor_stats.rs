//! `erlang:system_monitor/0,1,2` and `erlang:system_profile/0,2`.

use crate::cx::{BifResult, Cx, Fail};
use crate::process;
use crate::trace::flag;
use crate::trace::monitor::{self, Wanted};
use crate::trace::profile::{self, Profile};
use crate::{bifs, lazy_atoms};
use purlin_term::{Alloc, NIL, Term, am, arith, atom};

lazy_atoms! {
    busy_dist_port = "busy_dist_port";
    busy_port = "busy_port";
    large_heap = "large_heap";
    long_schedule = "long_schedule";
    long_gc = "long_gc";
    legacy = "legacy";
}

/// The least heap that is called large, in words.
const LARGE_HEAP: u64 = 16384;

fn term(cx: &mut Cx, w: Wanted) -> Term {
    if w.to == 0 {
        return am::UNDEFINED;
    }
    let mut v = Vec::new();
    if w.busy_dist_port {
        v.push(busy_dist_port());
    }
    if w.busy_port {
        v.push(busy_port());
    }
    for (key, n) in [
        (large_heap(), w.large_heap),
        (long_schedule(), w.long_schedule),
        (long_gc(), w.long_gc),
    ] {
        if n != 0 {
            let n = cx.uint(n);
            v.push(cx.tuple(&[key, n]));
        }
    }
    let list = cx.list(&v);
    // SAFETY: the word of a local pid.
    let pid = unsafe { Term::from_raw(w.to) };
    cx.tuple(&[pid, list])
}

fn set(cx: &mut Cx, pid: Term, list: Term) -> BifResult {
    if pid == am::UNDEFINED || list == NIL {
        // One whose process has ended isn't there any more.
        let before = monitor::wanted();
        monitor::set(Wanted::default());
        return Ok(term(cx, before));
    }
    if !pid.is_local_pid() || process::table().find(pid).is_none() || !list.is_list() {
        return Err(Fail::Badarg);
    }
    let mut w = Wanted {
        to: pid.raw(),
        ..Wanted::default()
    };
    let mut it = list.list_iter();
    for o in it.by_ref() {
        if let Some(&[key, n]) = o.as_tuple() {
            let n = arith::to_u64(n).ok_or(Fail::Badarg)?;
            if key == long_gc() {
                w.long_gc = n.max(1);
            } else if key == long_schedule() {
                w.long_schedule = n.max(1);
            } else if key == large_heap() {
                w.large_heap = n.max(LARGE_HEAP);
            } else {
                return Err(Fail::Badarg);
            }
        } else if o == busy_port() {
            w.busy_port = true;
        } else if o == busy_dist_port() {
            w.busy_dist_port = true;
        } else {
            return Err(Fail::Badarg);
        }
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    monitor::wanted();
    let before = monitor::set(w);
    Ok(term(cx, before))
}

fn system_monitor_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(term(cx, monitor::wanted()))
}
fn system_monitor_1(cx: &mut Cx, [spec]: [Term; 1]) -> BifResult {
    if spec == am::UNDEFINED {
        return set(cx, spec, NIL);
    }
    match spec.as_tuple() {
        Some(&[pid, list]) => set(cx, pid, list),
        _ => Err(Fail::Badarg),
    }
}
fn system_monitor_2(cx: &mut Cx, [pid, list]: [Term; 2]) -> BifResult {
    set(cx, pid, list)
}

/// Since OTP 28 it belongs to a session: `legacy` is the one of the functions above.
fn session_system_monitor_1(cx: &mut Cx, [session]: [Term; 1]) -> BifResult {
    if session != legacy() {
        return Err(Fail::Badarg);
    }
    system_monitor_0(cx, [])
}
fn session_system_monitor_3(cx: &mut Cx, [session, pid, list]: [Term; 3]) -> BifResult {
    if session != legacy() {
        return Err(Fail::Badarg);
    }
    set(cx, pid, list)
}

/// `{Pid, Options}`, or `undefined`.
fn profile_term(cx: &mut Cx, p: Profile) -> Term {
    if p.to == 0 {
        return am::UNDEFINED;
    }
    let names: Vec<Term> = profile::flag::NAMES
        .iter()
        .filter(|n| p.flags & n.1 != 0)
        .map(|n| atom::intern(n.0))
        .collect();
    let list = cx.list(&names);
    // SAFETY: the word of a local pid or port.
    let pid = unsafe { Term::from_raw(p.to) };
    cx.tuple(&[pid, list])
}

fn system_profile_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(profile_term(cx, profile::get()))
}
fn system_profile_2(cx: &mut Cx, [pid, list]: [Term; 2]) -> BifResult {
    if pid == am::UNDEFINED || list == NIL {
        let before = profile::get();
        profile::set(Profile::default());
        return Ok(profile_term(cx, before));
    }
    if !crate::trace::lives(pid) {
        return Err(Fail::Badarg);
    }
    let mut p = Profile {
        to: pid.raw(),
        flags: 0,
        time: flag::TIMESTAMP,
    };
    let mut it = list.list_iter();
    for o in it.by_ref() {
        let name = if o.is_atom() { atom::name(o) } else { "" };
        if let Some(n) = profile::flag::NAMES.iter().find(|n| n.0 == name) {
            p.flags |= n.1;
            continue;
        }
        p.time = match name {
            "timestamp" => flag::TIMESTAMP,
            "monotonic_timestamp" => flag::MONOTONIC,
            "strict_monotonic_timestamp" => flag::STRICT_MONOTONIC,
            _ => return Err(Fail::Badarg),
        };
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    let before = profile::get();
    profile::set(p);
    Ok(profile_term(cx, before))
}

bifs! {
    Plain "erlang":"system_monitor"/0 = system_monitor_0;
    Plain "erlang":"system_monitor"/1 = system_monitor_1;
    Plain "erlang":"system_monitor"/2 = system_monitor_2;
    Plain "erts_internal":"system_monitor"/1 = session_system_monitor_1;
    Plain "erts_internal":"system_monitor"/3 = session_system_monitor_3;
    Plain "erlang":"system_profile"/0 = system_profile_0;
    Plain "erlang":"system_profile"/2 = system_profile_2;
}
