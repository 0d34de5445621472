//! Messages between processes of two nodes of a world, as a node reports them to the coordinator:
//! places for faults, and lines of the story.
//!
//! # Invariant
//! What names a place does not depend on numbers of processes, references or lines: it names the
//! same in a program that was changed elsewhere.

use super::lines;
use super::operations::What;
use super::stack::own_place;
use crate::cx::Cx;
use crate::os::world;
use crate::os::world::messages::{Note, NoteStep, Switch};
use crate::process::table;
use crate::{code, os::exploring};
use purlin_explore::explorer::Switched;
use purlin_explore::operation::Touch;
use purlin_isa::natives::Touches;
use purlin_term::layout::RefView;
use purlin_term::print::{self, Style};
use purlin_term::{Term, atom, node};
use std::fmt::Write;

/// Maximum number of elements of a tuple, and of tuples in tuples, that a shape has.
const ELEMENTS: usize = 6;
const DEPTH: usize = 3;

/// Returns the name of the other node on which the process is that a term names.
fn node_of(t: Term) -> Option<Term> {
    if let Some((node, _)) = t.as_external() {
        return Some(node.name);
    }
    if let Some([name, at]) = t.as_tuple() {
        let is_other = name.is_atom() && at.is_atom() && *at != node::this_name();
        return is_other.then_some(*at);
    }
    match t.as_ref_view() {
        Some(RefView::External { node, .. }) => Some(node.name),
        _ => None,
    }
}

/// Returns what is common to all messages of a kind: tuples and atoms, without other values and
/// names of nodes.
fn shape(t: Term, depth: usize) -> String {
    if t.is_atom() && !atom::name(t).contains('@') {
        return print::format_atom(t, Style::Write);
    }
    let Some(all) = t.as_tuple().filter(|_| depth > 0) else {
        return "_".into();
    };
    let mut text = String::from("{");
    for (i, e) in all.iter().take(ELEMENTS).enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(text, "{comma}{}", shape(*e, depth - 1));
    }
    if all.len() > ELEMENTS {
        text.push_str(",...");
    }
    text.push('}');
    text
}

/// Returns the name of a function. A fun has that of the function in which it is.
fn named(function: &str, arity: u32) -> String {
    let within = function.strip_prefix('-').and_then(|f| f.split_once('-'));
    match within.filter(|(name, _)| name.contains('/')) {
        Some((name, _)) => name.to_owned(),
        None => format!("{function}/{arity}"),
    }
}

/// Returns the innermost function of the program on the stack, or of any module; and whether it is
/// one of the program's.
fn function(cx: &Cx, pc: *const u64) -> (String, bool) {
    let own = own_place(cx, pc);
    let is_own = own.is_some();
    let place = own.or_else(|| {
        let all = code::stack::addresses(cx, pc, 8);
        let mut places = all.iter().enumerate();
        places.find_map(|(i, a)| code::stack::place(i, *a))
    });
    let name = place.map_or(String::new(), |p| {
        let module = atom::name(p.module).trim_start_matches("Elixir.");
        format!("{module}:{}", named(atom::name(p.function), p.arity))
    });
    (name, is_own)
}

/// Tells the coordinator of an operation on a process of another node, which is done next. Some:
/// the process stops before it for that time, and comes here again.
pub(super) fn sends(cx: &mut Cx, pc: *const u64, what: What) -> Option<i64> {
    let native = what.native();
    let to = match native.and_then(|b| b.traits.touches) {
        None if what == What::Send => cx.x[0],
        Some(Touches::Process) => cx.x[0],
        Some(Touches::SecondProcess) => cx.x[1],
        _ => return None,
    };
    let other = node_of(to)?;
    let (by, is_own) = function(cx, pc);
    // What a server of the program answers is sent by its library.
    let is_program = is_own || super::is_program(cx);
    let shape = match native {
        Some(b) if !what.sends() => b.name.to_owned(),
        _ => shape(cx.x[1], DEPTH),
    };
    let name = match to.as_tuple() {
        Some([name, _]) => print::format_atom(*name, Style::Write),
        _ => "a process".into(),
    };
    let line = lines::line(cx, pc, what, (0, 0), Touch::end(0));
    let place = line.place.unwrap_or_default();
    tell(Note {
        step: NoteStep::Sends,
        is_program,
        other: atom::name(other).to_owned(),
        class: format!("{shape} to {name}, by {by}"),
        shape,
        pid: line.pid,
        name: line.name.unwrap_or_default(),
        text: line.call,
        place: file_and_line(&place),
    })
    .pause
}

/// Tells the coordinator that a process stops before an operation, or does one for which another
/// has waited.
pub(super) fn switches(cx: &mut Cx, pc: *const u64, what: What, switched: Switched) {
    let line = lines::line(cx, pc, what, (0, 0), Touch::end(0));
    let (at, text) = match switched {
        Switched::Waits(at, pid) => {
            let pid = pid.unwrap_or("a process that is not there".into());
            (Some(at), format!("waits for {pid} before {}", line.call))
        }
        Switched::Came(pid) => (None, format!("{}; {pid} has waited for that", line.call)),
    };
    world::tell_switch(Switch {
        at,
        pid: line.pid,
        name: line.name.unwrap_or_default(),
        text,
        place: file_and_line(&line.place.unwrap_or_default()),
    });
}

/// Tells the coordinator that a message from another node is about to be put into a mailbox here.
/// Some: it is late by that time.
#[cold]
pub fn gets(from: Term, to: Term, message: Term) -> Option<i64> {
    if !from.is_atom() {
        return None;
    }
    let shape = shape(message, DEPTH);
    let process = table().find(to);
    // SAFETY: the only thread; the process stays while this runs.
    let ext = process.and_then(|p| unsafe { (*p).ext() });
    let name = ext.map(|e| e.name).filter(|n| n.is_atom());
    let name = name.map(|n| print::format_atom(n, Style::Write));
    let noted = tell(Note {
        step: NoteStep::Gets,
        is_program: false,
        other: atom::name(from).to_owned(),
        class: format!("{shape} to {}", name.as_deref().unwrap_or("a process")),
        shape,
        pid: lines::short(to),
        name: name.unwrap_or_default(),
        text: lines::short(message),
        place: String::new(),
    });
    if let (Some(ns), Some(p)) = (noted.pause, process) {
        super::pause_receiver(table().index(p), ns);
    }
    noted.late
}

/// Returns the name of the file, without its folder, and the line of a place.
fn file_and_line(place: &str) -> String {
    let place = place.split("  ").next().unwrap_or_default();
    place.rsplit('/').next().unwrap_or_default().to_owned()
}

fn tell(note: Note) -> world::Noted {
    super::tell_order();
    let noted = world::note(note);
    if let Some(now) = noted.resumed {
        exploring::jump(now);
    }
    noted
}
