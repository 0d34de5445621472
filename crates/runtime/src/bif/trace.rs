//! Natives of tracing: sequential tracing, and which processes and functions are traced.

use super::left::when_left;
use crate::cx::{BifResult, Cx, Fail};
use crate::trace::calls::{self, Spec, Wanted};
use crate::trace::messages::{self, Pattern};
use crate::trace::sessions::Session;
use crate::trace::{self, Which, flag, module, monitor, sequential, sessions};
use crate::tracer::Tracer;
use crate::{bifs, clock, code, ids, lazy_atoms, port, process, report, signal, timer};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::release::{
    self, CALL_MEMORY, MONITORS_OF_SESSIONS, NO_META_TRACER_FALSE, TRACE_ITEMS_FIRST,
    TRACE_OPTIONS_FIRST,
};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, atom, copy};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

lazy_atoms! {
    tracer_ = "tracer";
    global = "global";
    any = "any"; session = "session"; legacy = "legacy"; default = "default";
    trace_delivered = "trace_delivered"; a_match_spec = "match_spec"; a_call_count = "call_count";
    label = "label";
    serial = "serial";
}

/// Clears the trace tokens and counters of all processes.
pub(crate) fn reset_tokens(cx: &mut Cx) {
    let me = cx.self_pid();
    sequential::reset(cx.process());
    for pid in process::table().pids() {
        if pid != me {
            let task: signal::Task = Box::new(|cx| {
                if let Some(cx) = cx {
                    sequential::reset(cx.process());
                }
            });
            signal::send::run_in(pid, task);
        }
    }
}

fn seq_trace_2(cx: &mut Cx, [what, value]: [Term; 2]) -> BifResult {
    sequential::change(cx, what, value).ok_or(Fail::Badarg)
}

fn seq_trace_info_1(cx: &mut Cx, [what]: [Term; 1]) -> BifResult {
    let flag = sequential::named(what);
    let (is_label, is_serial) = (what == label(), what == serial());
    let token = sequential::token(cx.process());
    if token.is_none() && what.is_atom() && atom::name(what) == "spawn" {
        // As in stock, which does not know such a flag of a token.
        return Ok(cx.tuple(&[what, am::FALSE]));
    }
    if flag.is_none() && !is_label && !is_serial {
        return Err(Fail::Badarg);
    }
    let value = match token {
        None if flag.is_none() => return Ok(NIL),
        None => am::FALSE,
        Some(t) => match flag {
            Some(bit) => Term::bool(t.flags & bit != 0),
            None if is_label => {
                let l = OwnedTerm::copy_of(t.label.term());
                copy::copy(l.term(), cx)
            }
            None => {
                let pair = [Term::small(t.previous), Term::small(t.serial)];
                cx.tuple(&pair)
            }
        },
    };
    Ok(cx.tuple(&[what, value]))
}

fn seq_trace_print_1(cx: &mut Cx, [info]: [Term; 1]) -> BifResult {
    Ok(Term::bool(sequential::print(cx.process(), None, info)))
}
fn seq_trace_print_2(cx: &mut Cx, [label, info]: [Term; 2]) -> BifResult {
    Ok(Term::bool(sequential::print(
        cx.process(),
        Some(label),
        info,
    )))
}

/// The request in a call of `trace/3`.
struct Request {
    flags: u32,
    tracer: Tracer,
}

/// The session that a term names: the pair whose first element owns it, or the second element
/// alone.
fn session_of(cx: &mut Cx, t: Term) -> Result<Arc<Session>, Fail> {
    match sessions::named(t) {
        Some(s) if !s.is_over() => Ok(s),
        _ => Err(cx.badarg_cause(session())),
    }
}

/// The tracer of everything that a session traces, if it has one.
fn own_tracer(which: Which) -> Option<Tracer> {
    which.and_then(|s| s.tracer())
}

/// Flags and tracer from a list of options; `None` if it is invalid. The default tracer is the
/// caller.
fn flags(cx: &mut Cx, which: Which, list: Term) -> Option<Request> {
    let mut r = Request {
        flags: 0,
        tracer: own_tracer(which).unwrap_or(Tracer::Local(cx.self_pid())),
    };
    let mut it = list.list_iter();
    for o in it.by_ref() {
        if let Some(t) = o.as_tuple() {
            let chosen = match *t {
                [key, value] if key == tracer_() => {
                    // As in stock it may have ended; then nothing is traced.
                    let good = value.is_local_pid() || value.is_local_port();
                    good.then_some(Tracer::Local(value))
                }
                [key, m, state] if key == tracer_() && m.is_atom() => module::named(m, state),
                _ => None,
            };
            if own_tracer(which).is_some() {
                return None;
            }
            r.tracer = chosen?;
            continue;
        }
        if !o.is_atom() {
            return None;
        }
        r.flags |= match atom::name(o) {
            "all" => flag::ALL,
            name => flag::NAMES.iter().find(|n| n.0 == name)?.1,
        };
    }
    it.tail().is_nil().then_some(r)
}

/// A request to other processes that is in progress.
struct Pending {
    left: AtomicUsize,
    refused: AtomicBool,
    found: i64,
    since: i64,
}

/// Milliseconds to wait for processes in native code. They still carry out the request on return.
const PATIENCE_MS: u64 = 200;

fn trace_3(cx: &mut Cx, args: [Term; 3]) -> BifResult {
    trace_of(cx, |_| Ok(None), args)
}

fn trace_4(cx: &mut Cx, [which, whom, how, list]: [Term; 4]) -> BifResult {
    trace_of(cx, |cx| session_of(cx, which).map(Some), [whom, how, list])
}

fn trace_of(
    cx: &mut Cx,
    which: impl FnOnce(&mut Cx) -> Result<Option<Arc<Session>>, Fail>,
    [whom, how, list]: [Term; 3],
) -> BifResult {
    let under_way = cx
        .process()
        .ext()
        .and_then(|e| e.bif_state.as_ref())
        .and_then(|s| s.downcast_ref::<Arc<Pending>>())
        .cloned();
    let p = match under_way {
        Some(p) => p,
        None => {
            code::permission::wanted(cx)?;
            let which = which(cx)?;
            match ask(cx, which.as_ref(), whom, how, list)? {
                Ok(n) => return Ok(Term::small(n)),
                Err(p) => p,
            }
        }
    };
    let patient = clock::elapsed() - p.since < PATIENCE_MS as i64 * 1_000_000;
    if p.left.load(Ordering::Acquire) != 0 && patient {
        return Err(Fail::Wait);
    }
    if let Some(e) = cx.process().ext() {
        e.bif_state = None;
    }
    if p.refused.load(Ordering::Relaxed) && p.found == 1 {
        return Err(other_tracer(cx));
    }
    Ok(Term::small(p.found))
}

/// Another tracer traces it already.
fn other_tracer(cx: &mut Cx) -> Fail {
    let text = "** can only have one tracer per process\n";
    let by = cx.self_pid();
    report::send(report::Level::Error, NIL, by, report::Text::Plain(text));
    Fail::Badarg
}

/// Asks processes to change their trace flags. Returns their number at once if nobody has to be
/// waited for, otherwise waits.
fn ask(
    cx: &mut Cx,
    which: Which,
    whom: Term,
    how: Term,
    list: Term,
) -> Result<Result<i64, Arc<Pending>>, Fail> {
    let Some(r) = flags(cx, which, list) else {
        return Err(cx.badarg_cause(am::BADOPT));
    };
    let on = how.as_bool().ok_or(Fail::Badarg)?;
    let me = cx.self_pid();
    let mut ports = 0;
    let pids: Vec<Term> = if whom.is_local_pid() {
        if process::table().find(whom).is_none() {
            return Err(Fail::Badarg);
        }
        vec![whom]
    } else if whom.is_local_port() {
        return match port::traced::change(whom, which, on, r.flags, r.tracer.clone()) {
            Some(true) => Ok(Ok(1)),
            Some(false) => Err(other_tracer(cx)),
            None => Err(Fail::Badarg),
        };
    } else if whom.is_atom() {
        // The first argument selects processes, ports or both, and existing ones, new ones or all.
        let (both, processes, of_ports) = (true, "processes", "ports");
        let name = atom::name(whom);
        let (existing, new, kind) = match name {
            "all" => (true, true, (both, both)),
            "existing" => (true, false, (both, both)),
            "new" => (false, true, (both, false)),
            _ => {
                let (when, kind) = name.split_once('_').unwrap_or(("", name));
                let (existing, new) = match when {
                    "" => (true, true),
                    "existing" => (true, false),
                    "new" => (false, true),
                    _ => return Err(Fail::Badarg),
                };
                if kind != processes && kind != of_ports {
                    return Err(Fail::Badarg);
                }
                (existing, new, (kind == processes, kind == of_ports))
            }
        };
        let new_ports = kind.1 || name == "new";
        if new && kind.0 && r.flags & flag::OF_PROCESSES != 0 {
            let flags = r.flags & flag::OF_PROCESSES;
            match which {
                None => trace::NEW_PROCESSES.change(on, flags, r.tracer.clone()),
                Some(s) => s.change_new(sessions::Made::Process, on, flags, r.tracer.clone()),
            }
        }
        if new && new_ports && r.flags & flag::OF_PORTS != 0 {
            let flags = r.flags & flag::OF_PORTS;
            match which {
                None => trace::NEW_PORTS.change(on, flags, r.tracer.clone()),
                Some(s) => s.change_new(sessions::Made::Port, on, flags, r.tracer.clone()),
            }
        }
        // Flags that only the other kind has change nothing, and processes or ports with only these
        // do not count.
        let concerns = |all: u32| r.flags & (all & !flag::BOTH) != 0 || r.flags & flag::BOTH != 0;
        if existing && kind.1 && concerns(flag::OF_PORTS) {
            let changed = |&p: &Term| {
                port::traced::change(p, which, on, r.flags, r.tracer.clone()) == Some(true)
            };
            ports = port::all().iter().filter(|p| changed(p)).count() as i64;
        }
        if !existing || !kind.0 || !concerns(flag::OF_PROCESSES) {
            return Ok(Ok(ports));
        }
        process::table().pids()
    } else {
        return Err(Fail::Badarg);
    };
    let others: Vec<Term> = pids.iter().copied().filter(|&p| p != me).collect();
    let found = pids.len() as i64 + ports;
    let (flags, tracer) = (r.flags, r.tracer);
    if others.len() < pids.len() && !trace::change(cx.process(), which, on, flags, tracer.clone()) {
        return Err(other_tracer(cx));
    }
    if others.is_empty() {
        return Ok(Ok(found));
    }
    let p = Arc::new(Pending {
        left: AtomicUsize::new(others.len()),
        refused: AtomicBool::new(false),
        found,
        since: clock::elapsed(),
    });
    cx.process().ext_mut().bif_state = Some(Box::new(p.clone()));
    timer::after(PATIENCE_MS, move || signal::send::wake(me));
    for pid in others {
        let p = p.clone();
        let (which, tracer) = (which.cloned(), tracer.clone());
        signal::send::run_in(
            pid,
            Box::new(move |cx| {
                if let Some(cx) = cx
                    && !trace::change(cx.process(), which.as_ref(), on, flags, tracer)
                {
                    p.refused.store(true, Ordering::Relaxed);
                }
                if p.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    signal::send::wake(me);
                }
            }),
        );
    }
    Ok(Err(p))
}

/// The request made by the flags of `trace_pattern/3`.
#[derive(Default)]
struct Kinds {
    global: bool,
    local: bool,
    meta: Option<Tracer>,
    count: bool,
    time: bool,
    memory: bool,
}

fn kinds(cx: &mut Cx, which: Which, list: Term) -> Option<Kinds> {
    let mut k = Kinds::default();
    let mut it = list.list_iter();
    for o in it.by_ref() {
        if let Some(t) = o.as_tuple() {
            let chosen = match *t {
                [key, pid] if key == am::META => {
                    let good = pid.is_local_pid() || pid.is_local_port();
                    good.then_some(Tracer::Local(pid))
                }
                [key, m, state] if key == am::META && m.is_atom() => module::named(m, state),
                _ => None,
            };
            if own_tracer(which).is_some() {
                return None;
            }
            k.meta = Some(chosen?);
            continue;
        }
        if !o.is_atom() {
            return None;
        }
        match atom::name(o) {
            "global" => k.global = true,
            "local" => k.local = true,
            "meta" => {
                k.meta = Some(own_tracer(which).unwrap_or(Tracer::Local(cx.self_pid())));
            }
            "call_count" => k.count = true,
            "call_time" => k.time = true,
            "call_memory" if release::has(CALL_MEMORY) => k.memory = true,
            _ => return None,
        }
    }
    let other = k.local || k.meta.is_some() || k.count || k.time || k.memory;
    if !it.tail().is_nil() || k.global && other {
        return None;
    }
    k.global |= !other;
    Some(k)
}

/// Module, function and arity (`None`: any) from `{Module, Function, Arity}`, where the last may be
/// `'_'`; `None` if the term has another form.
fn functions(what: Term) -> Option<(Term, Term, Option<u32>)> {
    let &[m, f, a] = what.as_tuple()? else {
        return None;
    };
    let arity = match a.as_small() {
        // No function has that many arguments.
        Some(n) => Some(u32::try_from(n).unwrap_or(u32::MAX)),
        None if a == am::UNDERSCORE => None,
        None => return None,
    };
    let wild_after =
        m == am::UNDERSCORE && f != am::UNDERSCORE || f == am::UNDERSCORE && arity.is_some();
    (m.is_atom() && f.is_atom() && !wild_after).then_some((m, f, arity))
}

fn trace_pattern_3(cx: &mut Cx, args: [Term; 3]) -> BifResult {
    when_left(cx, |cx| pattern_of(cx, None, args))
}

fn trace_pattern_4(cx: &mut Cx, [which, what, spec, list]: [Term; 4]) -> BifResult {
    let which = session_of(cx, which)?;
    when_left(cx, |cx| pattern_of(cx, Some(&which), [what, spec, list]))
}

fn pattern_of(cx: &mut Cx, which: Which, [what, spec, list]: [Term; 3]) -> BifResult {
    code::permission::wanted(cx)?;
    if release::has(TRACE_OPTIONS_FIRST) && kinds(cx, which, list).is_none() {
        return Err(cx.badarg_cause(am::BADOPT));
    }
    let word = spec.is_atom().then(|| atom::name(spec));
    let program = match word {
        Some("false") => None,
        // These apply to counters; calls are traced as with `true`.
        Some("restart" | "pause") => Spec::new(am::TRUE),
        Some("true") | None => match Spec::new(spec) {
            Some(s) => Some(s),
            None => return Err(cx.badarg_cause(a_match_spec())),
        },
        Some(_) => return Err(cx.badarg_cause(a_match_spec())),
    };
    let Some(k) = kinds(cx, which, list) else {
        return Err(cx.badarg_cause(am::BADOPT));
    };
    let counts_only = !k.local && k.meta.is_none() && (k.count || k.time || k.memory);
    if word.is_none() && spec != NIL && counts_only {
        return Err(cx.badarg_cause(a_call_count()));
    }
    let refused = |cx: &mut Cx| Err(cx.badarg_cause(am::NONE));
    let on_load = what.is_atom() && atom::name(what) == "on_load";
    if what.is_atom() && !on_load {
        let receive = match atom::name(what) {
            "send" => false,
            "receive" => true,
            _ => return refused(cx),
        };
        let plain = list == NIL && !matches!(word, Some("restart" | "pause"));
        if !plain && list != NIL && which.is_some() {
            return Err(cx.badarg_cause(am::BADOPT));
        }
        if !plain || messages::set_pattern(which, receive, spec).is_none() {
            return refused(cx);
        }
        return Ok(Term::small(1));
    }
    let (m, f, arity) = match on_load {
        true => (am::UNDERSCORE, am::UNDERSCORE, None),
        false => match functions(what) {
            Some(f) => f,
            None => return refused(cx),
        },
    };
    let global = k.global;
    let word = word.map(str::to_string);
    let off = spec == am::FALSE;
    let how = move |w: &mut Wanted| {
        let word = word.as_deref();
        // A counter continues or pauses. Where there is a breakpoint of another kind it starts.
        let begins = w.local() || k.local || k.meta.is_some();
        if k.global && !off {
            // Calls from outside replace all other wishes.
            w.clear_trace();
        }
        if k.global || k.local {
            match &program {
                Some(s) => w.call = Some((s.clone(), k.local)),
                // A pattern of one kind does not clear the other.
                None if w.call.as_ref().is_some_and(|c| c.1 == k.local) => w.call = None,
                None => {}
            }
        }
        let local = k.local || k.meta.is_some() || k.count || k.time || k.memory;
        if local && word != Some("false") && w.call.as_ref().is_some_and(|c| !c.1) {
            // A breakpoint in the function replaces one before it.
            w.call = None;
        }
        if let Some(tracer) = &k.meta {
            w.meta = program.clone().map(|s| (tracer.clone(), s));
        }
        if k.count {
            w.count = match (word, w.count.take()) {
                (Some("false"), _) => None,
                (Some("pause"), Some(c)) => Some((c.0, false)),
                (Some("pause" | "restart"), None) if !begins => None,
                _ => Some((0, true)),
            };
        }
        let measured = |rows: &mut Option<(HashMap<u64, (u64, u64)>, bool)>| {
            *rows = match (word, rows.take()) {
                (Some("false"), _) => None,
                (Some("pause"), Some(t)) => Some((t.0, false)),
                (Some("pause" | "restart"), None) if !begins => None,
                _ => Some((Default::default(), true)),
            };
        };
        if k.time {
            measured(&mut w.time);
        }
        if k.memory {
            measured(&mut w.memory);
        }
    };
    if on_load {
        let how = (!off).then(|| {
            let how: Box<dyn Fn(&mut Wanted) + Send> = Box::new(how);
            (how, global)
        });
        calls::on_load(which, how);
        return Ok(Term::small(0));
    }
    if global && !off {
        // Functions that no other module can call lose what they had.
        calls::change(which, m, f, arity, false, &|w| w.clear_trace());
    }
    let n = calls::change(which, m, f, arity, global, &how);
    Ok(Term::small(n as i64))
}

/// `erts_debug:breakpoint({Module, Function, Arity}, OnOff)`: directs calls of the matching
/// functions to the debugger, or no longer. Returns the number of matches.
fn breakpoint_2(cx: &mut Cx, [what, on]: [Term; 2]) -> BifResult {
    let on = on.as_bool().ok_or(Fail::Badarg)?;
    if let Some(&[m, f, a]) = what.as_tuple()
        && m.is_atom()
        && f.is_atom()
        && a.as_small().is_some_and(|n| n < 0)
    {
        // No function has that arity; stock accepts it.
        return Ok(Term::small(0));
    }
    let (m, f, arity) = functions(what).ok_or(Fail::Badarg)?;
    when_left(cx, |_| {
        let n = calls::change(None, m, f, arity, false, &|w| w.debug = on);
        Ok(Term::small(n as i64))
    })
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

/// A session's name and number, which name the session without owning it.
fn weak(cx: &mut Cx, s: &Session) -> Term {
    cx.tuple(&[s.name, Term::small(s.number.into())])
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
        list.push(cx.tuple(&[legacy(), default()]));
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
            None => am::UNDEFINED,
        });
    }
    if what.is_local_pid() {
        if what == cx.self_pid() {
            let numbers = of_process(cx);
            return Ok(sessions_told(cx, &numbers));
        }
        let answer = super::process::ask_term(cx, what, |cx| {
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

/// `erts_internal:trace_session_create(Name, Tracer, Options)`: a pair of the reference that owns
/// the session, and of its name and number.
fn session_create_3(cx: &mut Cx, [name, tracer, options]: [Term; 3]) -> BifResult {
    let each_its_own = tracer == am::UNDEFINED;
    let tracer = match tracer.as_tuple() {
        _ if each_its_own => Some(Tracer::Nobody),
        Some(&[m, state]) if m.is_atom() => module::named(m, state),
        _ => (tracer.is_local_pid() || tracer.is_local_port()).then_some(Tracer::Local(tracer)),
    };
    let (true, Some(tracer), true) = (name.is_atom(), tracer, options == NIL) else {
        return Err(Fail::Badarg);
    };
    let s = Session::begin(name, tracer);
    let weak = weak(cx, &s);
    let strong = sessions::reference(cx, s);
    Ok(cx.tuple(&[strong, weak]))
}

/// `erts_internal:trace_session_destroy(Session)`: false if it is over already.
fn session_destroy_1(cx: &mut Cx, [s]: [Term; 1]) -> BifResult {
    match sessions::named(s) {
        Some(s) => Ok(Term::bool(sessions::end(&s))),
        None => Err(cx.badarg_cause(am::BADOPT)),
    }
}

/// `erts_trace_cleaner:check()`: whether to look for remains of sessions that are over. Always
/// false: each remainder is removed by the next code that finds it.
fn cleaner_check_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(am::FALSE)
}

/// `erts_trace_cleaner:send_trace_clean_signal(Process)`: makes a process remove the remains of
/// sessions that are over, and answer with its pid. Returns false if there is no such process.
fn cleaner_signal_1(cx: &mut Cx, [whom]: [Term; 1]) -> BifResult {
    let me = cx.self_pid();
    if whom.is_local_port() {
        // Ports check what there is each time.
        return Ok(am::FALSE);
    }
    if !whom.is_local_pid() {
        return Err(Fail::Badarg);
    }
    if process::table().find(whom).is_none() {
        return Ok(am::FALSE);
    }
    signal::send::run_in(
        whom,
        Box::new(move |cx| {
            if let Some(cx) = cx {
                trace::drop_over(cx.process());
            }
            signal::send(me, whom);
        }),
    );
    Ok(am::TRUE)
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
    if what.is_local_pid() {
        if what == cx.self_pid() {
            let s = trace::live_state(cx.process(), which);
            return tracing_info(cx, item, s);
        }
        let known = item.is_atom() && ["flags", "tracer"].contains(&atom::name(item));
        if !known {
            return Err(Fail::Badarg);
        }
        let of = which.cloned();
        let answer = super::process::ask_term(cx, what, move |cx| {
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
            let list = super::monitor_stats::list(cx, &monitor::wanted(by));
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

fn trace_delivered_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    if !pid.is_local_pid() && pid != am::ALL {
        return Err(Fail::Badarg);
    }
    let r = ids::make_ref(cx);
    let me = cx.self_pid();
    let msg = cx.tuple(&[trace_delivered(), pid, r]);
    // Trace messages go the same way as this message. So do effects of signals sent to a process
    // earlier that make it send trace messages: those come first.
    let delivered = Arc::new(Delivered {
        to: me,
        msg: Mutex::new(OwnedTerm::copy_of(msg)),
    });
    let whom = match pid == am::ALL {
        true => process::table().pids(),
        false => vec![pid],
    };
    for p in whom.into_iter().filter(|&p| p != me && is_busy(p)) {
        let delivered = delivered.clone();
        signal::send::run_in(p, Box::new(move |_| drop(delivered)));
    }
    Ok(r)
}

/// The flags and the tracer; neither if the tracer has ended.
fn of_living((flags, tracer): (u32, Tracer)) -> (u32, Tracer) {
    match tracer.lives(am::UNDEFINED) {
        true => (flags, tracer),
        false => (0, Tracer::Nobody),
    }
}

/// Whether a process has something to do.
fn is_busy(pid: Term) -> bool {
    let p = process::table().find(pid);
    // SAFETY: cells are never unmapped; the state word is an atomic.
    p.is_some_and(|p| unsafe { (*p).state.load() }.is_busy())
}

/// Sends a message when its last holder drops it.
struct Delivered {
    to: Term,
    msg: Mutex<OwnedTerm>,
}

impl Drop for Delivered {
    fn drop(&mut self) {
        signal::send(self.to, self.msg.lock().term());
    }
}

bifs! {
    Plain "erlang":"seq_trace"/2 = seq_trace_2;
    Plain "erlang":"seq_trace_info"/1 = seq_trace_info_1;
    Plain "erlang":"seq_trace_print"/1 = seq_trace_print_1;
    Plain "erlang":"seq_trace_print"/2 = seq_trace_print_2;
    Plain "erts_internal":"trace"/3 = trace_3 [changes_code];
    Plain "erts_internal":"trace_pattern"/3 = trace_pattern_3 [changes_code];
    Plain "erts_internal":"trace"/4 = trace_4 [changes_code since(27)];
    Plain "erts_internal":"trace_pattern"/4 = trace_pattern_4 [changes_code since(27)];
    Plain "erts_internal":"trace_info"/3 = trace_info_3 [since(27)];
    Plain "erts_internal":"trace_session_create"/3 = session_create_3 [since(27)];
    Plain "erts_internal":"trace_session_destroy"/1 = session_destroy_1 [changes_code since(27)];
    Plain "erts_trace_cleaner":"check"/0 = cleaner_check_0 [since(27)];
    Plain "erts_trace_cleaner":"send_trace_clean_signal"/1 = cleaner_signal_1 [since(27)];
    Plain "erts_debug":"breakpoint"/2 = breakpoint_2 [changes_code];
    Plain "erlang":"trace_info"/2 = trace_info_2;
    Plain "erlang":"trace_delivered"/1 = trace_delivered_1;
}
