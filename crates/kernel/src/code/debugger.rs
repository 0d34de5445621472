//! Debug data of modules (`erl_debugger`), and breakpoints at lines.
//!
//! A line that can have a breakpoint begins with a special instruction that does nothing. Setting
//! the breakpoint stores another instruction number in its place. Modules that are loaded without
//! debugging have neither.

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

/// Allows a debugger to be attached from now on.
pub fn enable() {
    flags().enabled.store(true, Ordering::Relaxed);
}

/// Whether lines of modules that are loaded from now on can have breakpoints once a debugger may be
/// attached.
pub fn line_breakpoints() -> bool {
    flags().line_breakpoints.load(Ordering::Relaxed)
}

/// Sets whether they can.
pub fn set_line_breakpoints(on: bool) {
    flags().line_breakpoints.store(on, Ordering::Relaxed);
}

/// Whether lines of a module that is being loaded can have breakpoints.
pub(super) fn lines_can_break() -> bool {
    enabled() && line_breakpoints()
}

/// The debug data of one version of a module.
#[derive(Default)]
pub struct Debug {
    /// Whether its lines can have breakpoints.
    pub can_break: bool,
    /// Whether its file describes its lines.
    pub described: bool,
    /// Lines that can have breakpoints, sorted by offset.
    pub lines: Vec<DebugLine>,
    /// Descriptions of lines, by number.
    pub items: Vec<DebugItem>,
    /// The atoms and literals that the items name, numbered as in the file.
    pub atoms: Vec<Term>,
    pub literals: Vec<Term>,
}

impl Module {
    /// Whether the breakpoint of a line that can have one is set.
    pub fn has_breakpoint(&self, line: &DebugLine) -> bool {
        // SAFETY: the instruction of such a line, of code that stays while `self` is borrowed.
        unsafe { entries::has_line_breakpoint(self.at(line.at)) }
    }
    /// Sets or clears the breakpoint of a line that can have one.
    pub fn set_breakpoint(&self, line: &DebugLine, on: bool) {
        // SAFETY: the instruction of such a line, of code that stays while `self` is borrowed.
        unsafe { entries().set_line_breakpoint(self.at(line.at), on) };
    }
    /// Whether any of its code belongs to that line.
    pub fn has_line(&self, line: u32) -> bool {
        self.lines.iter().any(|l| self.line_of(l.1) == Some(line))
    }
}
