//! Data that modules are loaded with for a debugger (`erl_debugger`), and the breakpoints of their lines.
//!
//! A line that can have a breakpoint begins with an instruction of its own, which does nothing; the breakpoint is another number in
//! its place. What is loaded without has neither.

use super::Module;
use super::entries::{self, entries};
use crate::options::{DebuggerFlags, try_current};
use purlin_loader::DebugItem;
use purlin_loader::lower::DebugLine;
use purlin_term::Term;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

struct Flags {
    enabled: AtomicBool,
    line_breakpoints: AtomicBool,
}

fn flags() -> &'static Flags {
    static FLAGS: OnceLock<Flags> = OnceLock::new();
    FLAGS.get_or_init(|| {
        let told = try_current().map_or_else(DebuggerFlags::default, |o| o.flags.debugger.clone());
        Flags {
            enabled: AtomicBool::new(told.enabled),
            line_breakpoints: AtomicBool::new(told.line_breakpoints),
        }
    })
}

/// Whether a debugger may be attached.
pub fn enabled() -> bool {
    flags().enabled.load(Ordering::Relaxed)
}

/// A debugger may be attached from now on.
pub fn enable() {
    flags().enabled.store(true, Ordering::Relaxed);
}

/// Whether the lines of modules that are loaded from now on can have breakpoints, if a debugger may be attached.
pub fn line_breakpoints() -> bool {
    flags().line_breakpoints.load(Ordering::Relaxed)
}

/// Says whether they can.
pub fn set_line_breakpoints(on: bool) {
    flags().line_breakpoints.store(on, Ordering::Relaxed);
}

/// Whether the lines of a module that is loaded now can have breakpoints.
pub(super) fn lines_can_break() -> bool {
    enabled() && line_breakpoints()
}

/// The data that a version of a module has for a debugger.
#[derive(Default)]
pub struct Debug {
    /// Whether its lines can have breakpoints.
    pub can_break: bool,
    /// Whether its file says anything about its lines.
    pub described: bool,
    /// Those that can, in order of their offsets.
    pub lines: Vec<DebugLine>,
    /// Their descriptions, by their numbers.
    pub items: Vec<DebugItem>,
    /// The atoms and literals that the items name, as numbered in the file.
    pub atoms: Vec<Term>,
    pub literals: Vec<Term>,
}

impl Module {
    /// Whether a line that can have one has a breakpoint.
    pub fn has_breakpoint(&self, line: &DebugLine) -> bool {
        // SAFETY: the instruction of such a line, of code that stays while `self` is borrowed.
        unsafe { entries::has_line_breakpoint(self.at(line.at)) }
    }
    /// Sets the breakpoint of a line that can have one, or clears it.
    pub fn set_breakpoint(&self, line: &DebugLine, on: bool) {
        // SAFETY: as above.
        unsafe { entries().set_line_breakpoint(self.at(line.at), on) };
    }
    /// Whether any of its code is on that line.
    pub fn has_line(&self, line: u32) -> bool {
        self.lines.iter().any(|l| self.line_of(l.1) == Some(line))
    }
}
