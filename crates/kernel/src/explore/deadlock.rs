//! The report of a deadlock or a hang: which process waits where.

use super::lines::short;
use super::stack::own_place;
use crate::code;
use crate::cx::Cx;
use crate::process::ext::Target;
use crate::process::{Enter, table};
use purlin_term::atom;
use std::fmt::Write;

/// Says what has happened, which processes wait in the program's code and where, and how many
/// others wait.
pub(super) fn waiting(what: &str) -> String {
    let mut text = format!("purlin: {what}\n");
    let mut others = 0;
    let names = crate::process::registry::names();
    let mut cx = Cx::boxed(0);
    for pid in table().pids() {
        let Some(p) = table().find(pid) else { continue };
        // SAFETY: the process waits, and this is the only thread. It never runs again.
        let (pc, waiting) = unsafe {
            let waiting = (*p).flags & crate::process::WAITING != 0;
            if waiting {
                cx.enter(p);
            }
            ((*p).pc, waiting)
        };
        let Some(at) = code::find(pc).filter(|_| waiting) else {
            continue;
        };
        let own = own_place(&cx, pc);
        let Some(own) = own else {
            others += 1;
            continue;
        };
        let named = names
            .iter()
            .find(|n| crate::process::registry::whereis(**n) == Some(pid));
        let name = named.map_or(String::new(), |n| format!(" {}", atom::name(*n)));
        let function = |p: &code::Place| {
            let module = atom::name(p.module).trim_start_matches("Elixir.");
            let line = p
                .line
                .as_ref()
                .map_or(String::new(), |(f, l)| format!("  {f}:{l}"));
            format!("{module}:{}/{}{line}", atom::name(p.function), p.arity)
        };
        let within = match own.module == at.module && own.function == at.function {
            true => String::new(),
            false => format!(
                "{}:{}/{}, called by ",
                atom::name(at.module),
                atom::name(at.function),
                at.arity
            ),
        };
        // A caller monitors its server meanwhile.
        // SAFETY: the process waits, and this is the only thread.
        let whom = unsafe { (*p).ext() }.map_or(Vec::new(), |e| {
            let all = e.monitors.iter().map(|(_, m)| m.target());
            all.filter_map(|t| match t {
                Target::Local(t) | Target::Named(t, _) => Some(short(t)),
                _ => None,
            })
            .collect()
        });
        let whom = match whom.is_empty() {
            true => String::new(),
            false => format!("  (it monitors {})", whom.join(", ")),
        };
        // SAFETY: the process waits, and this is the only thread.
        let timer = match unsafe { (*p).has(crate::process::TIMER) } {
            true => ", until its timer",
            false => "",
        };
        let _ = writeln!(
            text,
            "  {}{name} waits in {within}{}{timer}{whom}",
            short(pid),
            function(&own)
        );
    }
    let _ = writeln!(text, "  and {others} in code of libraries");
    text
}
