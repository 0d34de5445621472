//! `erlang:trace_pattern/3` and its kin: the functions whose calls are traced, and breakpoints of
//! the debugger.

use super::trace_sessions::{own_tracer, session_of};
use crate::cx::{BifResult, Cx, Fail};
use crate::natives::code::quiescence::when_quiescent;
use crate::trace::calls::{self, Spec, Wanted};
use crate::trace::messages;
use crate::trace::{Which, module};
use crate::tracer::Tracer;
use crate::{bifs, code, lazy_atoms};
use purlin_term::release::{self, CALL_MEMORY, TRACE_OPTIONS_FIRST};
use purlin_term::{NIL, Term, am, atom};
use std::collections::HashMap;
use std::sync::Arc;

lazy_atoms! {
    a_match_spec = "match_spec";
    a_call_count = "call_count";
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
    when_quiescent(cx, |cx| pattern_of(cx, None, args))
}

fn trace_pattern_4(cx: &mut Cx, [which, what, spec, list]: [Term; 4]) -> BifResult {
    let which = session_of(cx, which)?;
    when_quiescent(cx, |cx| pattern_of(cx, Some(&which), [what, spec, list]))
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
        return pattern_of_messages(cx, which, [what, spec, list]);
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
    let change = Change {
        kinds: k,
        program,
        word,
        off,
    };
    let how = move |w: &mut Wanted| change.apply(w);
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

/// Sets the pattern of messages that are sent or received.
fn pattern_of_messages(cx: &mut Cx, which: Which, [what, spec, list]: [Term; 3]) -> BifResult {
    let receive = match atom::name(what) {
        "send" => false,
        "receive" => true,
        _ => return Err(cx.badarg_cause(am::NONE)),
    };
    let of_counters = spec.is_atom() && matches!(atom::name(spec), "restart" | "pause");
    let plain = list == NIL && !of_counters;
    if !plain && list != NIL && which.is_some() {
        return Err(cx.badarg_cause(am::BADOPT));
    }
    if !plain || messages::set_pattern(which, receive, spec).is_none() {
        return Err(cx.badarg_cause(am::NONE));
    }
    Ok(Term::small(1))
}

/// A change of what is wanted of functions.
struct Change {
    kinds: Kinds,
    /// The match specification, unless tracing ends.
    program: Option<Arc<Spec>>,
    /// The specification that is a word, such as `pause`.
    word: Option<String>,
    off: bool,
}

impl Change {
    fn apply(&self, w: &mut Wanted) {
        let (k, word) = (&self.kinds, self.word.as_deref());
        // A counter continues or pauses. Where there is a breakpoint of another kind it starts.
        let begins = w.local() || k.local || k.meta.is_some();
        if k.global && !self.off {
            // Calls from outside replace all other wishes.
            w.clear_trace();
        }
        if k.global || k.local {
            match &self.program {
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
            w.meta = self.program.clone().map(|s| (tracer.clone(), s));
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
    }
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
    when_quiescent(cx, |_| {
        let n = calls::change(None, m, f, arity, false, &|w| w.debug = on);
        Ok(Term::small(n as i64))
    })
}

bifs! {
    Plain "erts_internal":"trace_pattern"/3 = trace_pattern_3 [changes_code];
    Plain "erts_internal":"trace_pattern"/4 = trace_pattern_4 [changes_code since(27)];
    Plain "erts_debug":"breakpoint"/2 = breakpoint_2 [changes_code];
}
