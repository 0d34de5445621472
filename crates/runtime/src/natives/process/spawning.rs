//! Natives that create processes.
//!
//! # Invariants
//! * Options are checked before anything is created: an invalid option has no effect.
//! * The link and the monitor of a new process exist before it runs.
//! * Arguments may be moved to a region while they are passed on, so terms that are needed
//!   afterwards are copied before.

use super::option_terms::{
    asked_collections, asked_heap, asked_vheap, erl_flag, max_heap, priority_of,
};
use super::process_flag::a_async_dist;
use super::process_flag::a_scheduler;
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::lifecycle::spawn::{self, Reply, SpawnError};
use crate::natives::signals::monitors;
use crate::process;
use crate::process::ext::{AliasMode, RefKey, Settings};
use crate::process::group_leader_of;
use crate::signal::send;
use crate::{bifs, ids};
use purlin_dist::input;
use purlin_kernel::budgets;
use purlin_term::frag::OwnedTerm;
use purlin_term::release::{self, ASYNC_DIST_TOLD, PRIORITY_MESSAGES};
use purlin_term::{Alloc, NIL, Term, am, copy};

lazy_atoms! {
    a_budget = "budget";
    a_thread = "thread";
    a_own = "own";
    a_reply = "reply";
    a_reply_tag = "reply_tag";
    a_yes = "yes";
    a_no = "no";
    a_error_only = "error_only";
    a_success_only = "success_only";
}

struct Parsed {
    o: spawn::Options,
    /// The monitor of the new process.
    monitor: Option<(AliasMode, Option<Box<OwnedTerm>>)>,
    monitor_ref: Option<Term>,
    /// Whether the link has priority, and whether the monitor has.
    urgent: (bool, bool),
    reply_tag: Term,
    reply: Term,
}

fn is_proper(l: Term) -> bool {
    let mut it = l.list_iter();
    it.by_ref().for_each(drop);
    it.tail().is_nil()
}

/// Reads the options of a link: whether it has priority.
fn link_options(l: Term) -> Option<bool> {
    let mut it = l.list_iter();
    let mut urgent = false;
    for o in it.by_ref() {
        if o != am::PRIORITY {
            return None;
        }
        urgent = true;
    }
    it.tail().is_nil().then_some(urgent)
}

fn new_monitor_ref(cx: &mut Cx, alias: AliasMode) -> (RefKey, Term) {
    let k = RefKey::new(ids::ref_bits());
    let t = if alias == AliasMode::None {
        cx.local_ref(k.numbers())
    } else {
        let me = cx.self_pid();
        cx.pid_ref(k.numbers(), me)
    };
    (k, t)
}

/// Reads spawn options; `None` if one is invalid.
fn spawn_options(cx: &mut Cx, l: Term, request: bool) -> Option<Parsed> {
    let mut p = parse_options(l, request)?;
    if let Some(b) = &p.o.budget
        && !budgets::is_within(b.index(), budgets::of(cx.proc.get()))
    {
        return None;
    }
    if let Some((alias, tag)) = p.monitor.take() {
        let (k, t) = new_monitor_ref(cx, alias);
        p.o.monitor = Some((k, alias, tag));
        p.monitor_ref = Some(t);
    }
    Some(p)
}

/// Reads the spawn options in a request of another node; `None` if one is invalid.
pub fn wanted_elsewhere(l: Term) -> Option<input::Wanted> {
    // A budget is a reference of this node, and not for others to give.
    let p = parse_options(l, false).filter(|p| p.o.budget.is_none())?;
    Some(input::Wanted {
        link: p.o.link,
        monitor: p.monitor.is_some(),
        options: p.o,
    })
}

fn parse_options(l: Term, request: bool) -> Option<Parsed> {
    let mut p = Parsed {
        o: spawn::Options::default(),
        monitor: None,
        monitor_ref: None,
        urgent: (false, false),
        reply_tag: am::SPAWN_REPLY,
        reply: a_yes(),
    };
    p.o.off_heap_queue = process::default_off_heap_queue();
    p.o.max_heap = process::default_max_heap();
    let mut set = Settings::default();
    // As on stock, the size of the virtual heap counts only beside one of these.
    let mut sized = false;
    let with_size = [
        am::PRIORITY,
        am::FULLSWEEP_AFTER,
        am::MIN_HEAP_SIZE,
        am::MAX_HEAP_SIZE,
        a_scheduler(),
    ];
    let mut it = l.list_iter();
    for o in it.by_ref() {
        if o == am::LINK {
            p.o.link = true;
        } else if o == am::MONITOR {
            p.monitor = Some((AliasMode::None, None));
        } else if let Some(&[k, v]) = o.as_tuple() {
            let n = v.as_small();
            sized |= with_size.contains(&k);
            if k == am::MONITOR {
                let o = monitors::monitor_options(v)?;
                p.urgent.1 |= o.urgent;
                p.monitor = Some((o.alias, o.tag));
            } else if k == am::LINK && release::has(PRIORITY_MESSAGES) {
                p.urgent.0 = link_options(v)?;
                p.o.link = true;
            } else if k == am::PRIORITY {
                p.o.priority = Some(priority_of(v)?);
            } else if k == am::FULLSWEEP_AFTER {
                set.fullsweep_after = Some(asked_collections(n?)?);
            } else if k == am::MIN_HEAP_SIZE {
                let n = n.filter(|&n| (0..1 << 31).contains(&n))?;
                set.min_heap_words = asked_heap(n as usize);
            } else if k == am::MIN_BIN_VHEAP_SIZE {
                let n = usize::try_from(n?).ok()?;
                set.min_vheap_words = Some(asked_vheap(n));
            } else if k == am::MAX_HEAP_SIZE {
                p.o.max_heap = Some(max_heap(v, p.o.max_heap)?);
            } else if k == am::MESSAGE_QUEUE_DATA {
                p.o.off_heap_queue = match v {
                    v if v == am::ON_HEAP => false,
                    v if v == am::OFF_HEAP => true,
                    _ => return None,
                };
            } else if k == a_scheduler() {
                let n = usize::try_from(n?).ok();
                p.o.scheduler = n.filter(|&n| n <= crate::sched::count())?;
            } else if k == a_budget() {
                // Stock does not know this option either.
                p.o.budget = Some(budgets::find(v)?);
            } else if k == a_thread() {
                // Stock does not know this option and rejects it as it does any unknown one.
                if v != a_own() {
                    return None;
                }
                p.o.own_thread = true;
            } else if k == a_async_dist() && release::has(ASYNC_DIST_TOLD) {
                p.o.async_dist = Some(erl_flag(v)?);
            } else if request && k == a_reply_tag() {
                p.reply_tag = v;
            } else if request && k == a_reply() {
                if ![a_yes(), a_no(), a_error_only(), a_success_only()].contains(&v) {
                    return None;
                }
                p.reply = v;
            } else {
                return None;
            }
        } else {
            return None;
        }
    }
    let least = process::least_heap(set.min_heap_words).max(process::least_heap(None));
    let most = p.o.max_heap.as_ref().map_or(0, |m| m.words);
    if !sized {
        set.min_vheap_words = None;
    }
    p.o.settings = set;
    (it.tail().is_nil() && (most == 0 || most >= least)).then_some(p)
}

fn spawn_with(cx: &mut Cx, m: Term, f: Term, args: Term, mut o: spawn::Options) -> BifResult {
    if cx.process().has(process::SEQUENTIAL) && o.request.is_none() {
        // Tracing reports a process made by a call as if messages had been exchanged.
        let options = if o.link {
            let l = cx.list(&[am::LINK]);
            Some(OwnedTerm::copy_of(l))
        } else {
            None
        };
        let reference = ids::make_ref(cx);
        o.request = Some(request(reference, am::SPAWN_REPLY, options, Reply::Call));
    }
    let (args, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Spawn, args);
    // SAFETY: the running process is owned by this thread.
    match unsafe { spawn::spawn(cx.proc.get(), m, f, args, o) } {
        Ok((pid, words)) => {
            crate::accounts::copied(cx, crate::accounts::Kind::Spawn, words, args);
            Ok(pid)
        }
        Err(SpawnError::Budget) => Err(Fail::SystemLimit),
        Err(SpawnError::SystemLimit) => {
            use crate::report::{Level, Text, send};
            let leader = group_leader_of(cx);
            send(
                Level::Error,
                leader,
                NIL,
                Text::Plain("Too many processes\n"),
            );
            Err(Fail::SystemLimit)
        }
    }
}

fn request(
    reference: Term,
    tag: Term,
    options: Option<OwnedTerm>,
    reply: Reply,
) -> Box<spawn::Request> {
    Box::new(spawn::Request {
        reference,
        tag: OwnedTerm::copy_of(tag),
        options,
        reply,
    })
}

fn default_options() -> spawn::Options {
    spawn::Options {
        off_heap_queue: process::default_off_heap_queue(),
        scheduler: 0,
        max_heap: process::default_max_heap(),
        ..Default::default()
    }
}

/// Gives the link with a new process and the monitor their priority, if requested.
fn prioritize(cx: &mut Cx, pid: Term, (link, monitor): (bool, bool), r: Option<Term>) {
    let e = cx.process().ext_mut();
    if link {
        e.prioritize_link(process::ext::Peer::of(pid), true);
    }
    if monitor && let Some(k) = r.and_then(RefKey::of) {
        e.prioritize(k);
    }
}

fn spawn_3(cx: &mut Cx, [m, f, a]: [Term; 3]) -> BifResult {
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Err(Fail::Badarg);
    }
    cx.bump(10);
    spawn_with(cx, m, f, a, default_options())
}

fn spawn_link_3(cx: &mut Cx, [m, f, a]: [Term; 3]) -> BifResult {
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Err(Fail::Badarg);
    }
    cx.bump(10);
    let o = spawn::Options {
        link: true,
        ..default_options()
    };
    spawn_with(cx, m, f, a, o)
}

fn spawn_opt_4(cx: &mut Cx, [m, f, a, opts]: [Term; 4]) -> BifResult {
    let Some(mut p) = spawn_options(cx, opts, false) else {
        return Err(cx.badarg_cause(am::BADOPT));
    };
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Err(Fail::Badarg);
    }
    cx.bump(10);
    let r = p.monitor_ref;
    if cx.process().has(process::SEQUENTIAL) {
        let reference = r.unwrap_or_else(|| ids::make_ref(cx));
        let options = Some(OwnedTerm::copy_of(opts));
        p.o.request = Some(request(reference, am::SPAWN_REPLY, options, Reply::Call));
    }
    let pid = spawn_with(cx, m, f, a, p.o)?;
    if p.urgent != (false, false) {
        prioritize(cx, pid, p.urgent, r);
    }
    Ok(match r {
        Some(r) => cx.tuple(&[pid, r]),
        None => pid,
    })
}

fn reply_spawn(to: Term, tag: &OwnedTerm, r: Term, result: Term, value: Term) {
    send::send_with(to, |b| {
        let tag = copy::copy(tag.term(), b);
        let r = copy::copy(r, b);
        b.tuple(&[tag, r, result, value])
    });
}

fn spawn_request_4(cx: &mut Cx, [m, f, a, opts]: [Term; 4]) -> BifResult {
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Ok(am::BADARG);
    }
    if !is_proper(opts) {
        return Ok(am::BADOPT);
    }
    let Some(mut p) = spawn_options(cx, opts, true) else {
        return Ok(refuse_spawn(cx, opts));
    };
    let r = match p.monitor_ref {
        Some(r) => r,
        None => ids::make_ref(cx),
    };
    // Sharing the arguments may move other terms that refer to their parts.
    let (tag, reply) = (OwnedTerm::copy_of(p.reply_tag), p.reply);
    let how = if reply == a_yes() || reply == a_success_only() {
        Reply::Message
    } else {
        Reply::Nothing
    };
    let traced = cx.process().has(process::SEQUENTIAL);
    let options = traced.then(|| OwnedTerm::copy_of(opts));
    p.o.request = Some(request(r, tag.term(), options, how));
    let me = cx.self_pid();
    let made = spawn_with(cx, m, f, a, p.o);
    if let (Ok(pid), true) = (&made, p.urgent != (false, false)) {
        prioritize(cx, *pid, p.urgent, Some(r));
    }
    if made.is_err() && (reply == a_yes() || reply == a_error_only()) {
        reply_spawn(me, &tag, r, am::ERROR, am::SYSTEM_LIMIT);
    }
    Ok(r)
}

/// Answers a request whose options are invalid, by a message if the options that say how ask for
/// one.
fn refuse_spawn(cx: &mut Cx, opts: Term) -> Term {
    let (mut tag, mut reply) = (am::SPAWN_REPLY, a_yes());
    for o in opts.list_iter() {
        match o.as_tuple() {
            Some(&[k, v]) if k == a_reply_tag() => tag = v,
            Some(&[k, v])
                if k == a_reply()
                    && [a_yes(), a_no(), a_error_only(), a_success_only()].contains(&v) =>
            {
                reply = v;
            }
            _ => {}
        }
    }
    let r = ids::make_ref(cx);
    if reply == a_yes() || reply == a_error_only() {
        let me = cx.self_pid();
        reply_spawn(me, &OwnedTerm::copy_of(tag), r, am::ERROR, am::BADOPT);
    }
    r
}

fn spawn_system_process_3(cx: &mut Cx, [m, f, a]: [Term; 3]) -> BifResult {
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Err(Fail::Badarg);
    }
    let o = spawn::Options {
        system: true,
        ..default_options()
    };
    spawn_with(cx, m, f, a, o)
}

bifs! {
    Plain "erlang":"spawn"/3 = spawn_3 [reads(All) makes];
    Plain "erlang":"spawn_link"/3 = spawn_link_3 [reads(All) makes];
    Plain "erlang":"spawn_opt"/4 = spawn_opt_4 [reads(All) makes];
    Plain "erts_internal":"spawn_request"/4 = spawn_request_4 [reads(All) makes];
    Plain "erts_internal":"spawn_system_process"/3 = spawn_system_process_3;
}
