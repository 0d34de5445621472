//! `erlang:system_monitor/0,1,2`, the natives behind `trace:system/3`, and
//! `erlang:system_profile/0,2`.

use crate::cx::{BifResult, Cx, Fail};
use crate::process;
use crate::trace::flag;
use crate::trace::monitor::{self, LEGACY, Wanted};
use crate::trace::profile::{self, Profile};
use crate::trace::sessions::{self, Session};
use crate::tracer::Tracer;
use crate::{bifs, lazy_atoms};
use purlin_term::release::{self, LONG_QUEUES_TOLD, MONITORS_OF_SESSIONS};
use purlin_term::{Alloc, NIL, Term, am, arith, atom};
use std::sync::Arc;

lazy_atoms! {
    busy_dist_port = "busy_dist_port";
    busy_port = "busy_port";
    large_heap = "large_heap";
    long_schedule = "long_schedule";
    long_gc = "long_gc";
    long_message_queue = "long_message_queue";
    legacy = "legacy";
}

/// Smallest heap that counts as large, in words.
const LARGE_HEAP: u64 = 16384;

/// The list of the monitored events.
pub(crate) fn list(cx: &mut Cx, w: &Wanted) -> Term {
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
    if let Some((long, short)) = w.long_queue {
        let (short, long) = (cx.uint(short as u64), cx.uint(long as u64));
        let limits = cx.tuple(&[short, long]);
        v.push(cx.tuple(&[long_message_queue(), limits]));
    }
    cx.list(&v)
}

fn term(cx: &mut Cx, w: Wanted) -> Term {
    if w.to == 0 {
        return am::UNDEFINED;
    }
    let list = list(cx, &w);
    // SAFETY: the word of a local pid.
    let pid = unsafe { Term::from_raw(w.to) };
    cx.tuple(&[pid, list])
}

/// A limit of at least `least`; 0, where allowed, is no limit.
fn limit(t: Term, least: u64) -> Option<u64> {
    if t == am::FALSE && release::has(MONITORS_OF_SESSIONS) {
        return Some(0);
    }
    arith::to_u64(t).map(|n| n.max(least))
}

/// Applies one item of an option list.
fn change(w: &mut Wanted, item: Term) -> Option<()> {
    let (key, value) = match item.as_tuple() {
        Some(&[key, value]) => (key, value),
        _ => (item, am::TRUE),
    };
    let switches = [busy_port(), busy_dist_port()];
    if switches.contains(&key) {
        if item.as_tuple().is_some() && !release::has(MONITORS_OF_SESSIONS) {
            return None;
        }
        let on = value.as_bool()?;
        match key == busy_port() {
            true => w.busy_port = on,
            false => w.busy_dist_port = on,
        }
    } else if key == long_gc() {
        w.long_gc = limit(value, 1)?;
    } else if key == long_schedule() {
        w.long_schedule = limit(value, 1)?;
    } else if key == large_heap() {
        w.large_heap = limit(value, LARGE_HEAP)?;
    } else if key == long_message_queue() && release::has(LONG_QUEUES_TOLD) {
        if value == am::FALSE && release::has(MONITORS_OF_SESSIONS) {
            w.long_queue = None;
            return Some(());
        }
        let &[short, long] = value.as_tuple()? else {
            return None;
        };
        let number = |t| arith::to_u64(t).filter(|&n| n < 1 << 63);
        let (short, long) = (number(short)?, number(long)?);
        w.long_queue = (short < long).then_some((long as usize, short as usize));
        w.long_queue?;
    } else {
        return None;
    }
    Some(())
}

/// Applies all items of an option list.
fn change_all(w: &mut Wanted, list: Term) -> Option<()> {
    let mut it = list.list_iter();
    for item in it.by_ref() {
        change(w, item)?;
    }
    it.tail().is_nil().then_some(())
}

/// Replaces the process that receives system monitor messages. `by` is the session, if it has no
/// tracer, or [`LEGACY`](crate::trace::monitor::LEGACY).
fn set(cx: &mut Cx, by: i64, pid: Term, list: Term) -> BifResult {
    if pid == am::UNDEFINED || list == NIL {
        // A process that has ended counts as none.
        let before = monitor::wanted(by);
        monitor::set(by, Wanted::default());
        return Ok(term(cx, before));
    }
    if !pid.is_local_pid() || process::table().find(pid).is_none() || !list.is_list() {
        return Err(Fail::Badarg);
    }
    let mut w = Wanted {
        to: pid.raw(),
        ..Wanted::default()
    };
    change_all(&mut w, list).ok_or(Fail::Badarg)?;
    monitor::wanted(by);
    let before = monitor::set(by, w);
    Ok(term(cx, before))
}

fn system_monitor_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(term(cx, monitor::wanted(LEGACY)))
}
fn system_monitor_1(cx: &mut Cx, [spec]: [Term; 1]) -> BifResult {
    if spec == am::UNDEFINED {
        return set(cx, LEGACY, spec, NIL);
    }
    match spec.as_tuple() {
        Some(&[pid, list]) => set(cx, LEGACY, pid, list),
        _ => Err(Fail::Badarg),
    }
}
fn system_monitor_2(cx: &mut Cx, [pid, list]: [Term; 2]) -> BifResult {
    set(cx, LEGACY, pid, list)
}

/// The session that a term names, if it is not over.
fn session(t: Term) -> Result<Arc<Session>, Fail> {
    let found = sessions::named(t).filter(|s| !s.is_over());
    found.ok_or(Fail::Badarg)
}

/// Since OTP 28 the monitor belongs to a session: `legacy` is that of the functions above.
fn session_system_monitor_1(cx: &mut Cx, [which]: [Term; 1]) -> BifResult {
    if which == legacy() {
        return system_monitor_0(cx, []);
    }
    let number = session(which)?.number;
    Ok(term(cx, monitor::wanted(number.into())))
}
/// Changes the events that the tracer of a session is notified of. The last argument but one is
/// `session` then.
fn session_system_monitor_3(cx: &mut Cx, [which, pid, list]: [Term; 3]) -> BifResult {
    if which == legacy() {
        return set(cx, LEGACY, pid, list);
    }
    let s = session(which)?;
    let by = s.number.into();
    let answer = match s.tracer() {
        None => set(cx, by, pid, list)?,
        Some(tracer) => {
            let to = match tracer {
                Tracer::Local(t) if t.is_local_pid() && pid == atom::intern("session") => t,
                _ => return Err(Fail::Badarg),
            };
            let mut w = Wanted {
                to: to.raw(),
                ..monitor::wanted(by)
            };
            change_all(&mut w, list).ok_or(Fail::Badarg)?;
            monitor::set(by, w);
            am::OK
        }
    };
    // The session may have ended meanwhile, and nothing else would remove this.
    if s.is_over() {
        monitor::end(s.number);
    }
    Ok(answer)
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
    Plain "erlang":"system_monitor"/0 = system_monitor_0 [before(28)];
    Plain "erlang":"system_monitor"/1 = system_monitor_1 [before(28)];
    Plain "erlang":"system_monitor"/2 = system_monitor_2 [before(28)];
    Plain "erts_internal":"system_monitor"/1 = session_system_monitor_1 [since(28)];
    Plain "erts_internal":"system_monitor"/3 = session_system_monitor_3 [since(28)];
    Plain "erlang":"system_profile"/0 = system_profile_0;
    Plain "erlang":"system_profile"/2 = system_profile_2;
}
