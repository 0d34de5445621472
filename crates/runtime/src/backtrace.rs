//! The stack of an inspected process, as text and as calls with the contents of their slots.

use crate::code;
use crate::code::stack::place;
use crate::cx::Cx;
use purlin_term::Term;

/// The stack as text: addresses, functions, and the contents of slots.
pub fn backtrace(cx: &mut Cx) -> String {
    use std::fmt::Write;
    let mut s = String::new();
    let name = |i: usize, a: u64| match place(i, a) {
        Some(p) => format!(
            "{}:{}/{} + {}",
            print(p.module),
            print(p.function),
            p.arity,
            0
        ),
        None => "terminate process normally".to_owned(),
    };
    let resume = code::stubs().line_resume.as_ptr();
    let pc = cx.bif_pc as u64;
    let _ = writeln!(s, "Program counter: 0x{pc:016x} ({})", name(0, pc));
    let mut p = cx.heap.stop;
    let mut y = 0;
    while p < cx.heap.hend {
        // SAFETY: words of the stack.
        let w = unsafe { *p };
        if w.is_header() {
            if w.raw() != 0 {
                let n = match place(1, w.raw()) {
                    Some(_) => format!("({})", name(1, w.raw())),
                    None if std::ptr::eq(w.raw() as *const u64, resume) => {
                        "(<breakpoint>)".to_owned()
                    }
                    None => "(<terminate process normally>)".to_owned(),
                };
                let _ = writeln!(
                    s,
                    "\n0x{:016x} Return addr 0x{:016x} {n}",
                    p as u64,
                    w.raw()
                );
            }
            y = 0;
        } else if w.is_catch() {
            let a = w.catch_addr() as u64;
            let _ = writeln!(s, "y({y})     Catch 0x{a:016x} ({})", name(0, a));
            y += 1;
        } else {
            let _ = writeln!(s, "y({y})     {}", print(w));
            y += 1;
        }
        // SAFETY: below `hend`.
        p = unsafe { p.add(1) };
    }
    s
}

/// A call on the stack of a process.
pub struct StackFrame {
    pub place: code::Place,
    /// The terms in its slots, except catches.
    pub slots: Vec<Term>,
}

/// The calls on the stack of the process in the context, innermost first.
pub fn frames(cx: &Cx, most: usize) -> Vec<StackFrame> {
    let mut all: Vec<StackFrame> = Vec::new();
    // Slots of a frame that belongs to no function are skipped.
    let mut named = false;
    let mut begin = |all: &mut Vec<StackFrame>, i: usize, pc: u64| {
        let place = place(i, pc);
        named = place.is_some();
        let slots = Vec::new();
        all.extend(place.map(|place| StackFrame { place, slots }));
    };
    begin(&mut all, 0, cx.bif_pc as u64);
    let mut p = cx.heap.stop;
    while p < cx.heap.hend && all.len() <= most {
        // SAFETY: words of the stack, between its top and the end of the block.
        let w = unsafe { *p };
        if w.is_header() {
            if w.raw() != 0 {
                begin(&mut all, 1, w.raw());
            }
        } else if !w.is_catch()
            && let Some(frame) = all.last_mut()
        {
            frame.slots.push(w);
        }
        // SAFETY: below `hend`.
        p = unsafe { p.add(1) };
    }
    all.truncate(most);
    all
}

fn print(t: Term) -> String {
    purlin_term::print::format_term(t, purlin_term::print::Style::Write, 10_000)
}
