//! Lines of the story: operations and events of processes as text, with their terms.
//!
//! # Invariant
//! Making a line changes nothing: a narrated run takes the same course as another.

use super::operations::What;
use super::stack::{elements, module_of, own_place};
use crate::cx::Cx;
use crate::os::exploring;
use crate::process::table;
use purlin_explore::operation::{Point, Touch};
use purlin_explore::story::Line;
use purlin_native::bif::Bif;
use purlin_term::print::{self, Style};
use purlin_term::{Term, atom};
use std::fmt::Write;

/// Maximum number of characters of a term.
const ARGUMENT: usize = 60;

/// Returns the line of an event that a process does not cause itself.
fn event(path: u64, pid: u32, call: String) -> Line {
    Line {
        path,
        op: 0,
        touch: Touch::end(Term::pid(pid).raw()),
        pid: short(Term::pid(pid)),
        call,
        place: None,
        stopped: None,
        at: exploring::now() / 1000,
        happens: true,
        name: None,
    }
}

/// Returns the line for the end of a process, with the processes that hear of it.
pub(super) fn end(path: u64, pid: u32, reason: Term) -> Line {
    let mut text = format!("ends: {}", short(reason));
    let ext = table().find(Term::pid(pid));
    // SAFETY: the only thread; the process is whole until all others know.
    let ext = ext.and_then(|p| unsafe { (*p).ext() });
    let (mut down, mut linked) = (Vec::new(), Vec::new());
    if let Some(e) = ext {
        down.extend(e.watchers.iter().map(|(_, w)| short(w.by())));
        linked.extend(e.links.iter().map(|(l, _)| short(l.term())));
    }
    for (whom, what) in [(linked, "an exit signal"), (down, "a 'DOWN'")] {
        if !whom.is_empty() {
            let _ = write!(text, "; {what} for {}", whom.join(", "));
        }
    }
    event(path, pid, text)
}

/// Returns the line for a timer that sends something to a process.
pub(super) fn timer_message(path: u64, to: Term, message: Term) -> Line {
    event(
        path,
        to.pid_data(),
        format!("gets {} from a timer", short(message)),
    )
}

/// Returns the line for a receive in which nothing has come in time.
pub(super) fn timeout(cx: &mut Cx, pc: *const u64, path: u64) -> Line {
    let mut l = event(
        path,
        cx.process().pid().pid_data(),
        "receive ... after: nothing has come in time".into(),
    );
    l.place = place(cx, pc);
    l
}

/// Describes the process that a native makes, which is about to be called.
pub(super) fn role(cx: &Cx, native: &Bif) -> Option<String> {
    let name = |m: Term| atom::name(m).trim_start_matches("Elixir.").to_owned();
    let fun = |t: Term| {
        let module = module_of(t)?;
        Some(format!("a fun of {}", name(module)))
    };
    if !native.name.starts_with("spawn") {
        return None;
    }
    if native.arity < 3 {
        return fun(cx.x[0]);
    }
    let (mut m, mut f, mut args) = (cx.x[0], cx.x[1], elements(cx.x[2]));
    if m.is_atom() && atom::name(m) == "proc_lib" {
        match args[..] {
            [_, _, g] => return fun(g),
            [_, _, n, g, a] => (m, f, args) = (n, g, elements(a)),
            _ => {}
        }
    }
    if !m.is_atom() || !f.is_atom() {
        return None;
    }
    match (atom::name(m), &args[..]) {
        ("erlang", [g, ..]) => fun(*g),
        ("gen", [kind, .., module, _, _]) if kind.is_atom() && module.is_atom() => {
            Some(format!("{} {}", atom::name(*kind), name(*module)))
        }
        _ => Some(format!("{}:{}", name(m), atom::name(f))),
    }
}

/// Prints a term, shortened.
pub(super) fn short(t: Term) -> String {
    print::format_term(t, Style::Write, ARGUMENT)
}

/// Returns the line for the operation at `pc`.
pub(super) fn line(
    cx: &mut Cx,
    pc: *const u64,
    what: What,
    (path, op): Point,
    touch: Touch,
) -> Line {
    let call = match what.native() {
        Some(b) => {
            let args = 0..usize::from(b.arity);
            let args: Vec<String> = args.map(|i| short(cx.x[i])).collect();
            format!("{}:{}({})", b.module, b.name, args.join(", "))
        }
        None if what == What::Receive => "receive".into(),
        None => format!("{} ! {}", short(cx.x[0]), short(cx.x[1])),
    };
    let name = cx.process().ext().map(|e| e.name).filter(|n| n.is_atom());
    Line {
        path,
        op,
        touch,
        pid: short(Term::pid(cx.process().pid().pid_data())),
        call,
        place: place(cx, pc),
        stopped: None,
        at: exploring::now() / 1000,
        happens: false,
        name: name.map(|n| atom::name(n).trim_start_matches("Elixir.").to_owned()),
    }
}

/// Returns `file:line`, and the function, of the program's code on the stack.
fn place(cx: &Cx, pc: *const u64) -> Option<String> {
    own_place(cx, pc).map(|p| {
        let function = format!(
            "{}:{}/{}",
            atom::name(p.module).trim_start_matches("Elixir."),
            atom::name(p.function),
            p.arity
        );
        match &p.line {
            Some((file, line)) => format!("{file}:{line}  {function}"),
            None => function,
        }
    })
}
