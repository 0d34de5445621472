//! `erlang:trace_info/2` and its kin: how processes, ports, functions and messages are traced.

use super::trace_sessions::session;
use super::trace_sessions::{session_of, weak};
use crate::cx::{BifResult, Cx, Fail};
use crate::trace::calls::{self, Wanted};
use crate::trace::messages::{self, Pattern};
use crate::trace::{self, Which, flag, monitor, sessions};
use crate::tracer::Tracer;
use crate::{bifs, lazy_atoms, port, process};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::release::{
    self, CALL_MEMORY, MONITORS_OF_SESSIONS, NO_META_TRACER_FALSE, TRACE_ITEMS_FIRST,
};
use purlin_term::unassigned_ids::is_unassigned_id;
use purlin_term::{Alloc, NIL, Term, am, atom, copy};

lazy_atoms! {
    global = "global";
    any = "any";
    legacy = "legacy";
}

fn flag_list(cx: &mut Cx, flags: u32) -> Term {
    let names: Vec<Term> = flag::NAMES
        .iter()
        .rev()
        .filter(|n| flags & n.1 != 0)
        .map(|n| atom::intern(n.0))
        .collect();
    cx.list(&names)
}

/// As [`process_info`], for something with these flags and this tracer.
fn tracing_info(cx: &mut Cx, item: Term, (flags, tracer): (u32, Tracer)) -> BifResult {
    let tracer = tracer.term(cx);
    process_info(cx, item, (flags, tracer))
}

fn process_info(cx: &mut Cx, item: Term, (flags, tracer): (u32, Term)) -> BifResult {
    let value = match item.is_atom().then(|| atom::name(item)) {
        Some("flags") => flag_list(cx, flags),
        Some("tracer") => tracer,
        _ => return Err(Fail::Badarg),
    };
    Ok(cx.tuple(&[item, value]))
}

fn function_info(cx: &mut Cx, which: Which, [m, f, a]: [Term; 3], item: Term) -> BifResult {
    let (true, true, Some(arity)) = (m.is_atom(), f.is_atom(), a.as_small()) else {
        return Err(Fail::Badarg);
    };
    if release::has(TRACE_ITEMS_FIRST) && !is_item(item) {
        return Err(Fail::Badarg);
    }
    match calls::wanted(which, m, f, u32::try_from(arity).unwrap_or(u32::MAX)) {
        Some(w) => shown(cx, item, &w),
        None => Ok(cx.tuple(&[item, am::UNDEFINED])),
    }
}

/// The items that can be asked about a function, besides `all`.
const ITEMS: [&str; 7] = [
    "traced",
    "match_spec",
    "meta",
    "meta_match_spec",
    "call_memory",
    "call_time",
    "call_count",
];

/// Whether the emulated release knows the item.
fn is_told(item: &str) -> bool {
    item != "call_memory" || release::has(CALL_MEMORY)
}

fn is_item(item: Term) -> bool {
    let known = |name| ITEMS.iter().any(|&i| i == name && is_told(i));
    item.is_atom() && (atom::name(item) == "all" || known(atom::name(item)))
}

/// The answer for an item about calls; `false` for items about counters.
fn of_calls(cx: &mut Cx, name: &str, w: &Wanted) -> Term {
    match name {
        "traced" => match &w.call {
            Some((_, true)) => am::LOCAL,
            Some((_, false)) => global(),
            None => am::FALSE,
        },
        "match_spec" => match &w.call {
            Some((s, _)) => copy::copy(s.text.term(), cx),
            None => am::FALSE,
        },
        "meta" => w.meta.as_ref().map_or(am::FALSE, |m| m.0.term(cx)),
        "meta_match_spec" => match &w.meta {
            Some((_, s)) => copy::copy(s.text.term(), cx),
            None => am::FALSE,
        },
        _ => am::FALSE,
    }
}

/// The answer about the tracing of a function.
fn shown(cx: &mut Cx, item: Term, w: &Wanted) -> BifResult {
    let untraced = w.call.is_none()
        && w.meta.is_none()
        && w.count.is_none()
        && w.time.is_none()
        && w.memory.is_none();
    if untraced {
        return Ok(cx.tuple(&[item, am::FALSE]));
    }
    if !is_item(item) {
        return Err(Fail::Badarg);
    }
    let name = Some(atom::name(item));
    let values = ITEMS.map(|i| {
        let v = match i {
            "call_count" => w.count.map_or(am::FALSE, |c| Term::small(c.0 as i64)),
            "call_memory" => match &w.memory {
                None => am::FALSE,
                Some((all, _)) => {
                    let row = |(&pid, &(n, words)): (&u64, &(u64, u64))| {
                        // SAFETY: keys are words of local pids.
                        let pid = unsafe { Term::from_raw(pid) };
                        cx.tuple(&[pid, Term::small(n as i64), Term::small(words as i64)])
                    };
                    let rows: Vec<Term> = all.iter().map(row).collect();
                    cx.list(&rows)
                }
            },
            "call_time" => match &w.time {
                None => am::FALSE,
                Some((all, _)) => {
                    let rows: Vec<Term> = all
                        .iter()
                        .map(|(&pid, &(n, ns))| {
                            let us = ns / 1000;
                            let s = Term::small((us / 1_000_000) as i64);
                            let us = Term::small((us % 1_000_000) as i64);
                            // SAFETY: keys are words of local pids.
                            let pid = unsafe { Term::from_raw(pid) };
                            cx.tuple(&[pid, Term::small(n as i64), s, us])
                        })
                        .collect();
                    cx.list(&rows)
                }
            },
            _ => of_calls(cx, i, w),
        };
        (atom::intern(i), v)
    });
    let value = if name == Some("all") {
        let told = values.iter().filter(|v| is_told(atom::name(v.0)));
        let rows: Vec<Term> = told.map(|&(k, v)| cx.tuple(&[k, v])).collect();
        cx.list(&rows)
    } else {
        values
            .iter()
            .find(|v| v.0 == item)
            // As in stock, a traced function without a tracer of its own shows this on its own, and
            // `false` in the list of all items.
            .map(|v| {
                if name == Some("meta") && v.1 == am::FALSE && !release::has(NO_META_TRACER_FALSE) {
                    NIL
                } else {
                    v.1
                }
            })
            .unwrap_or(am::FALSE)
    };
    Ok(cx.tuple(&[item, value]))
}

/// The answer about functions of modules loaded from now on. Nothing is counted yet, so it only
/// shows what will be.
fn shown_of_loaded(cx: &mut Cx, item: Term, w: &Wanted) -> BifResult {
    if w.nothing() {
        return Ok(cx.tuple(&[item, am::FALSE]));
    }
    if !is_item(item) {
        return Err(Fail::Badarg);
    }
    let value = |cx: &mut Cx, name: &str| match name {
        "call_count" => Term::bool(w.count.is_some()),
        "call_time" => Term::bool(w.time.is_some()),
        "call_memory" => Term::bool(w.memory.is_some()),
        _ => of_calls(cx, name, w),
    };
    let answer = match atom::name(item) {
        "all" => {
            // Times and words are left out, as in stock.
            let told = ITEMS
                .iter()
                .filter(|i| !["call_time", "call_memory"].contains(i));
            let rows: Vec<Term> = told
                .map(|i| {
                    let v = value(cx, i);
                    cx.tuple(&[atom::intern(i), v])
                })
                .collect();
            cx.list(&rows)
        }
        name => value(cx, name),
    };
    Ok(cx.tuple(&[item, answer]))
}

/// `{session, Sessions}`: the sessions that trace something, by number. Tracing without a session
/// has the number -1 and comes last.
fn sessions_told(cx: &mut Cx, numbers: &[i64]) -> Term {
    let mut list: Vec<Term> = Vec::new();
    for s in sessions::all() {
        if numbers.contains(&s.number.into()) {
            list.push(weak(cx, &s));
        }
    }
    if numbers.contains(&-1) {
        list.push(cx.tuple(&[legacy(), am::DEFAULT]));
    }
    let list = cx.list(&list);
    cx.tuple(&[session(), list])
}

/// The sessions that trace it, for `trace_info(any, What, session)`.
fn sessions_of(cx: &mut Cx, what: Term) -> BifResult {
    /// The numbers of those for which `f` holds, tracing without a session included.
    fn those(f: impl Fn(Which) -> bool) -> Vec<i64> {
        let all = sessions::all();
        let mut numbers: Vec<i64> = Vec::new();
        let with = all.iter().filter(|s| f(Some(s)));
        numbers.extend(with.map(|s| i64::from(s.number)));
        numbers.extend(f(None).then_some(-1));
        numbers
    }
    /// The sessions that trace the process in the context.
    fn of_process(cx: &mut Cx) -> Vec<i64> {
        let p = cx.process();
        let all = sessions::all();
        let traced = |p: &mut process::Process, w: Which| trace::live_state(p, w).0 != 0;
        let mut numbers: Vec<i64> = Vec::new();
        for s in all.iter().filter(|s| traced(p, Some(s))) {
            numbers.push(s.number.into());
        }
        numbers.extend(traced(p, None).then_some(-1));
        numbers
    }
    if let Some(t) = what.as_tuple() {
        let &[m, f, a] = t else {
            return Err(Fail::Badarg);
        };
        let (true, true, Some(arity)) = (m.is_atom(), f.is_atom(), a.as_small()) else {
            return Err(Fail::Badarg);
        };
        let arity = u32::try_from(arity).unwrap_or(u32::MAX);
        return Ok(match calls::who_wants(m, f, arity) {
            Some(numbers) => sessions_told(cx, &numbers),
            None => cx.tuple(&[session(), am::UNDEFINED]),
        });
    }
    if what.is_local_pid() {
        if what == cx.self_pid() {
            let numbers = of_process(cx);
            return Ok(sessions_told(cx, &numbers));
        }
        let answer = crate::natives::process::ask::ask_term(cx, what, |cx| {
            let Some(cx) = cx else {
                return OwnedTerm::copy_of(am::UNDEFINED);
            };
            let numbers = of_process(cx);
            let mut f = Fragment::new();
            let numbers: Vec<Term> = numbers.into_iter().map(Term::small).collect();
            let t = f.list(&numbers);
            OwnedTerm::from_parts(t, f)
        })?;
        if answer == am::UNDEFINED {
            return Ok(answer);
        }
        let numbers: Vec<i64> = answer.list_iter().filter_map(|t| t.as_small()).collect();
        return Ok(sessions_told(cx, &numbers));
    }
    if is_unassigned_id(what) {
        return Ok(am::UNDEFINED);
    }
    if what.is_local_port() {
        if port::traced::state(what, None).is_none() {
            return Ok(am::UNDEFINED);
        }
        let traced = |w: Which| port::traced::state(what, w).is_some_and(|s| s.0 != 0);
        let numbers = those(traced);
        return Ok(sessions_told(cx, &numbers));
    }
    let new = |kind: sessions::Made, plain: bool| {
        those(move |w: Which| w.map_or(plain, |s| s.new_tracing(kind).0 != 0))
    };
    let numbers = match what.is_atom().then(|| atom::name(what)) {
        Some("any") => those(|_| true),
        Some("new" | "new_processes") => {
            new(sessions::Made::Process, trace::NEW_PROCESSES.get().0 != 0)
        }
        Some("new_ports") => new(sessions::Made::Port, trace::NEW_PORTS.get().0 != 0),
        Some("on_load") => those(calls::wants_loaded),
        Some(name @ ("send" | "receive")) => {
            let receive = name == "receive";
            those(|w| !matches!(messages::pattern(w, receive), Pattern::Nothing))
        }
        _ => return Err(cx.badarg_cause(am::BADOPT)),
    };
    Ok(sessions_told(cx, &numbers))
}

fn trace_info_3(cx: &mut Cx, [which, what, item]: [Term; 3]) -> BifResult {
    if which == any() {
        return match item == session() {
            true => sessions_of(cx, what),
            false => Err(Fail::Badarg),
        };
    }
    let which = session_of(cx, which)?;
    info_of(cx, Some(&which), what, item)
}

fn trace_info_2(cx: &mut Cx, [what, item]: [Term; 2]) -> BifResult {
    info_of(cx, None, what, item)
}

fn info_of(cx: &mut Cx, which: Which, what: Term, item: Term) -> BifResult {
    if let Some(t) = what.as_tuple() {
        return match t {
            &[m, f, a] => function_info(cx, which, [m, f, a], item),
            _ => Err(Fail::Badarg),
        };
    }
    let known = item.is_atom() && ["flags", "tracer"].contains(&atom::name(item));
    if known && is_unassigned_id(what) {
        return Ok(am::UNDEFINED);
    }
    if what.is_local_pid() {
        if what == cx.self_pid() {
            let s = trace::live_state(cx.process(), which);
            return tracing_info(cx, item, s);
        }
        if !known {
            return Err(Fail::Badarg);
        }
        let of = which.cloned();
        let answer = crate::natives::process::ask::ask_term(cx, what, move |cx| {
            let Some(cx) = cx else {
                return OwnedTerm::copy_of(am::UNDEFINED);
            };
            let (flags, tracer) = trace::live_state(cx.process(), of.as_ref());
            let mut f = Fragment::new();
            let tracer = tracer.term(&mut f);
            let t = f.tuple(&[Term::small(flags.into()), tracer]);
            OwnedTerm::from_parts(t, f)
        })?;
        return match answer.as_tuple() {
            Some(&[flags, tracer]) => {
                let flags = flags.as_small().unwrap_or(0) as u32;
                process_info(cx, item, (flags, tracer))
            }
            _ => Ok(am::UNDEFINED),
        };
    }
    if what.is_local_port() {
        return match port::traced::state(what, which) {
            Some(s) => tracing_info(cx, item, s),
            None => Ok(am::UNDEFINED),
        };
    }
    match what.is_atom().then(|| atom::name(what)) {
        Some("new" | "new_processes") => {
            let s = match which {
                None => trace::NEW_PROCESSES.get(),
                Some(s) => s.new_tracing(sessions::Made::Process),
            };
            tracing_info(cx, item, of_living(s))
        }
        Some("new_ports") => {
            let s = match which {
                None => trace::NEW_PORTS.get(),
                Some(s) => s.new_tracing(sessions::Made::Port),
            };
            tracing_info(cx, item, of_living(s))
        }
        Some("system") if release::has(MONITORS_OF_SESSIONS) && item == am::ALL => {
            let by = which.map_or(monitor::LEGACY, |s| s.number.into());
            let list = crate::natives::system::system_monitor::list(cx, &monitor::wanted(by));
            Ok(cx.tuple(&[what, list]))
        }
        Some("on_load") => shown_of_loaded(cx, item, &calls::wanted_of_loaded(which)),
        Some(name @ ("send" | "receive")) => {
            if !item.is_atom() || atom::name(item) != "match_spec" {
                return Err(Fail::Badarg);
            }
            let pattern = match messages::pattern(which, name == "receive") {
                Pattern::All => am::TRUE,
                Pattern::Nothing => am::FALSE,
                Pattern::Matching(s) => copy::copy(s.text.term(), cx),
            };
            Ok(cx.tuple(&[item, pattern]))
        }
        _ => Err(cx.badarg_cause(am::BADOPT)),
    }
}

/// The flags and the tracer; neither if the tracer has ended.
fn of_living((flags, tracer): (u32, Tracer)) -> (u32, Tracer) {
    match tracer.lives(am::UNDEFINED) {
        true => (flags, tracer),
        false => (0, Tracer::Nobody),
    }
}

bifs! {
    Plain "erts_internal":"trace_info"/3 = trace_info_3 [since(27)];
    Plain "erlang":"trace_info"/2 = trace_info_2;
}
