//! `erlang:trace/3` and its kin: the flags that processes and ports are traced with.
//!
//! # Invariant
//! Each process changes its own flags, asked by a task; the native returns when those that were
//! asked have done so, except those in native code, which do it on return.
//!
//! # Orderings
//! `left` counts the processes that have not answered. One that refuses stores `refused` before it
//! decrements with `AcqRel`; the native loads `left` with `Acquire`, so once it sees 0 it sees each
//! refusal.

use super::trace_sessions::{own_tracer, session_of};
use crate::cx::{BifResult, Cx, Fail};
use crate::trace::sessions::Session;
use crate::trace::{self, Which, flag, module, sessions};
use crate::tracer::Tracer;
use crate::{bifs, clock, code, lazy_atoms, port, process, report, signal, timer};
use purlin_term::{NIL, Term, am, atom};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

lazy_atoms! {
    tracer_ = "tracer";
}

/// The request in a call of `trace/3`.
struct Request {
    flags: u32,
    tracer: Tracer,
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

/// The processes and ports that an atom selects: existing ones, new ones or all.
struct Selected {
    existing: bool,
    new: bool,
    processes: bool,
    ports: bool,
}

impl Selected {
    fn named(name: &str) -> Option<Selected> {
        let (when, kind) = match name {
            "all" | "existing" | "new" => (name, None),
            _ => {
                let (when, kind) = name.split_once('_').unwrap_or(("", name));
                (when, Some(kind))
            }
        };
        let (existing, new) = match (when, kind) {
            ("all", None) | ("", Some(_)) => (true, true),
            ("existing", _) => (true, false),
            ("new", _) => (false, true),
            _ => return None,
        };
        let (processes, ports) = match kind {
            None => (true, true),
            Some("processes") => (true, false),
            Some("ports") => (false, true),
            Some(_) => return None,
        };
        Some(Selected {
            existing,
            new,
            processes,
            ports,
        })
    }

    /// Changes the flags that new processes and ports begin with.
    fn change_new(&self, which: Which, on: bool, r: &Request) {
        if self.new && self.processes && r.flags & flag::OF_PROCESSES != 0 {
            let flags = r.flags & flag::OF_PROCESSES;
            match which {
                None => trace::NEW_PROCESSES.change(on, flags, r.tracer.clone()),
                Some(s) => s.change_new(sessions::Made::Process, on, flags, r.tracer.clone()),
            }
        }
        if self.new && self.ports && r.flags & flag::OF_PORTS != 0 {
            let flags = r.flags & flag::OF_PORTS;
            match which {
                None => trace::NEW_PORTS.change(on, flags, r.tracer.clone()),
                Some(s) => s.change_new(sessions::Made::Port, on, flags, r.tracer.clone()),
            }
        }
    }
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
        let selected = Selected::named(atom::name(whom)).ok_or(Fail::Badarg)?;
        selected.change_new(which, on, &r);
        // Flags that only the other kind has change nothing, and processes or ports with only these
        // do not count.
        let concerns = |all: u32| r.flags & (all & !flag::BOTH) != 0 || r.flags & flag::BOTH != 0;
        if selected.existing && selected.ports && concerns(flag::OF_PORTS) {
            let changed = |&p: &Term| {
                port::traced::change(p, which, on, r.flags, r.tracer.clone()) == Some(true)
            };
            ports = port::all().iter().filter(|p| changed(p)).count() as i64;
        }
        if !selected.existing || !selected.processes || !concerns(flag::OF_PROCESSES) {
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

bifs! {
    Plain "erts_internal":"trace"/3 = trace_3 [changes_code];
    Plain "erts_internal":"trace"/4 = trace_4 [changes_code since(27)];
}
