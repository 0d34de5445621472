//! The trace of a function, limited in calls and time.
//!
//! The client that requested it may go away, so the emulator itself ends the trace: after the last
//! call, at its time limit, or when nobody has asked for the calls for [`UNREAD_TIME_LIMIT`].

use super::lease::{self, Thing};
use super::query::Query;
use crate::explain::names;
use crate::json::Json;
use purlin_runtime::trace::watch::{self, Call, Watch, Wish};
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Term, am, atom};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limit of a trace in seconds, maximum and default.
const MOST_SECONDS: usize = 60;
const USUAL_SECONDS: usize = 10;
const USUAL_CALLS: usize = 100;
/// Time after which a trace ends if nobody asks for it.
const UNREAD_TIME_LIMIT: Duration = Duration::from_secs(10);

/// Time for which recorded calls are kept after the last request for them.
const KEPT: Duration = Duration::from_secs(60);

/// The last watch, which may be over, and the time of the last request for it.
static LAST: Mutex<Option<(Arc<Watch>, Instant)>> = Mutex::new(None);

fn last() -> MutexGuard<'static, Option<(Arc<Watch>, Instant)>> {
    LAST.lock()
}

/// Module, function and arity from a text: `m:f/1`, `'m':'f'/1`, `Mod.f/1`, or without arity.
/// Creates no atoms: code that is not loaded is never called.
fn function(text: &str) -> Option<(Term, Term, Option<u32>)> {
    let text = text.trim();
    // A function may have the name `/`, so the text behind the last one is an arity only if it is a
    // number.
    let (name, arity) = match text.rsplit_once('/') {
        Some((name, n)) if n.parse::<u32>().is_ok() => (name, n.parse().ok().filter(|n| *n < 256)),
        _ => (text, None),
    };
    if arity.is_none() && name.len() < text.len() {
        return None;
    }
    let plain = |t: &str| {
        let t = t.trim();
        let inner = t.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
        inner.unwrap_or(t).to_string()
    };
    let (m, f) = match name.split_once(':') {
        Some((m, f)) => (plain(m), plain(f)),
        None => {
            let (m, f) = name.rsplit_once('.')?;
            (format!("Elixir.{m}"), plain(f))
        }
    };
    let (m, f) = (atom::existing(&m)?, atom::existing(&f)?);
    // Stands for all functions where breakpoints are set.
    (m != am::UNDERSCORE && f != am::UNDERSCORE).then_some((m, f, arity))
}

pub(super) fn begin(q: &Query) -> Result<Vec<(String, Json)>, String> {
    let text = q.text("function");
    let none = || format!("there is no function '{text}' in the modules that are loaded");
    let (module, function, arity) = function(text).ok_or_else(none)?;
    let calls = q.number("calls", USUAL_CALLS)?;
    let seconds = q.number("seconds", USUAL_SECONDS)?;
    if !(1..=watch::CALLS).contains(&calls) || !(1..=MOST_SECONDS).contains(&seconds) {
        return Err(format!(
            "a trace takes 1 to {} calls and 1 to {MOST_SECONDS} seconds",
            watch::CALLS
        ));
    }
    let time = Duration::from_secs(seconds as u64);
    // What ends the trace is there before the trace begins.
    if !lease::keep(Thing::Calls, Instant::now() + time.min(UNREAD_TIME_LIMIT)) {
        return Err("no thread can be started that ends it".into());
    }
    let wish = Wish {
        module,
        function,
        arity,
        calls,
        time,
        patience: UNREAD_TIME_LIMIT,
    };
    let w = watch::begin(wish, full).ok_or_else(none)?;
    // The thread may have found the watch too early.
    let _ = lease::keep(Thing::Calls, w.ends());
    *last() = Some((w, Instant::now()));
    trace(q)
}

/// The last requested call has come: the thread of `lease` does the rest.
fn full() {
    let _ = lease::keep(Thing::Calls, Instant::now());
}

pub(super) fn end(q: &Query) -> Result<Vec<(String, Json)>, String> {
    if let Some(w) = watch::current() {
        watch::end(&w);
    }
    trace(q)
}

/// Ends a watch that is over, and forgets its calls some time later. A watch that was requested
/// since continues.
pub(super) fn time_is_over() {
    if let Some(w) = watch::current() {
        if !w.is_over() {
            let _ = lease::keep(Thing::Calls, w.ends());
            return;
        }
        watch::end(&w);
    }
    let mut last = last();
    if last.as_ref().is_some_and(|l| l.1.elapsed() >= KEPT) {
        *last = None;
    }
    if let Some((_, asked)) = *last {
        let _ = lease::keep(Thing::Calls, asked + KEPT);
    }
}

/// The calls recorded so far. A request prolongs a trace that is still on.
pub(super) fn trace(_: &Query) -> Result<Vec<(String, Json)>, String> {
    let w = match &mut *last() {
        Some((w, asked)) => {
            *asked = Instant::now();
            w.clone()
        }
        None => {
            return Ok(vec![
                ("on".into(), false.into()),
                ("set".into(), false.into()),
            ]);
        }
    };
    w.asked(UNREAD_TIME_LIMIT);
    let current = watch::current().is_some_and(|c| Arc::ptr_eq(&c, &w));
    let on = current && !w.is_over();
    let name = match w.arity {
        Some(a) => names::function(w.module, w.function, a),
        None => {
            let any = names::function(w.module, w.function, 0);
            any.trim_end_matches("/0").to_string()
        }
    };
    let left = w.until.saturating_duration_since(Instant::now());
    let calls: Vec<Json> = w.calls(|all| all.iter().map(told).collect());
    let pairs: [(&str, Json); 6] = [
        ("on", on.into()),
        // Whether the breakpoints are set, which may be so for a moment after the end.
        ("set", current.into()),
        ("function", name.into()),
        ("left_s", left.as_secs_f64().into()),
        ("count", calls.len().into()),
        ("calls", Json::List(calls)),
    ];
    Ok(pairs.map(|(k, v)| (k.to_string(), v)).into())
}

fn told(c: &Call) -> Json {
    let (m, f, a) = c.function;
    let caller = c.caller.as_ref();
    Json::object([
        ("pid", names::pid(c.pid).into()),
        ("function", names::function(m, f, a).into()),
        ("after_us", (c.after.as_micros() as u64).into()),
        ("arguments", c.arguments.clone().into()),
        (
            "caller",
            caller
                .map(|p| names::place(p.module, p.function, p.arity, p.line.as_ref()))
                .into(),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_read_as_people_write_them() {
        let a = atom::intern;
        for name in [
            "observed_m",
            "f",
            "Elixir.Observed.Mod",
            "go!",
            "/",
            "-f/1-fun-0-",
        ] {
            a(name);
        }
        let (m, f) = (a("observed_m"), a("f"));
        let elixir = a("Elixir.Observed.Mod");
        for (text, expected) in [
            ("observed_m:f/2", (m, f, Some(2))),
            (" observed_m:f ", (m, f, None)),
            ("'observed_m':'f'/0", (m, f, Some(0))),
            ("Observed.Mod.go!/1", (elixir, a("go!"), Some(1))),
            ("'Elixir.Observed.Mod':f/1", (elixir, f, Some(1))),
            ("observed_m:'-f/1-fun-0-'/3", (m, a("-f/1-fun-0-"), Some(3))),
            ("observed_m:'/'/2", (m, a("/"), Some(2))),
        ] {
            assert_eq!(function(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "f",
            "f/1",
            "observed_m:",
            ":f/1",
            "observed_m:f/256",
            "observed_m:_/1",
            "_:f/1",
            "not_there_at_all:f/1",
        ] {
            assert_eq!(function(text), None, "{text}");
        }
    }
}
