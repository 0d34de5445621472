//! Coverage: counters of how often functions or lines have run.
//!
//! The mode in force when a module is loaded decides what its code counts; it holds for that
//! version.

use crate::options::{Coverage, try_current};
use purlin_isa::genops as g;
use purlin_isa::release::COVERAGE;
use purlin_loader::lower::CountedLine;
use purlin_loader::{BeamFile, GenericCode, Instr};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// All modes; the index of a mode is its number in [`MODE`].
const MODES: [Coverage; 5] = [
    Coverage::None,
    Coverage::Function,
    Coverage::FunctionCounters,
    Coverage::Line,
    Coverage::LineCounters,
];
/// No mode was set; the command line decides.
const UNSET: u8 = u8::MAX;

/// The counting mode of modules that are loaded from now on.
static MODE: AtomicU8 = AtomicU8::new(UNSET);

/// The counting mode of modules that are loaded from now on.
pub fn mode() -> Coverage {
    mode_of(MODE.load(Ordering::Relaxed))
}

/// Sets the counting mode of modules that are loaded from now on, and returns the previous mode.
pub fn set_mode(mode: Coverage) -> Coverage {
    let number = MODES.iter().position(|&m| m == mode).unwrap_or(0);
    mode_of(MODE.swap(number as u8, Ordering::Relaxed))
}

fn mode_of(number: u8) -> Coverage {
    let known = MODES.get(usize::from(number)).copied();
    known.unwrap_or_else(|| try_current().map_or(Coverage::None, |o| o.flags.jit.coverage))
}

/// The counters of a version of a module.
pub struct Counters {
    /// The counting mode.
    pub mode: Coverage,
    /// One counter for each function, or for each place that has a line. Code refers to them by
    /// address.
    pub(super) counts: Box<[AtomicU64]>,
    /// The counted lines, if lines are counted.
    pub(super) lines: Vec<CountedLine>,
}

impl Counters {
    /// No counters.
    pub(super) fn none() -> Counters {
        Counters {
            mode: Coverage::None,
            counts: Box::default(),
            lines: Vec::new(),
        }
    }
    /// Counters for a module that is being loaded.
    pub(super) fn new(file: &BeamFile, code: &GenericCode) -> Counters {
        let known = try_current().is_some_and(|o| COVERAGE.is_in(o.otp.release));
        let has = |op| code.instrs.iter().any(|i| i.op == op);
        let lines = file.lines.as_ref().filter(|_| has(g::EXECUTABLE_LINE));
        let mode = match mode() {
            _ if !known => Coverage::None,
            _ if lines.is_some_and(|l| l.always_counted) => Coverage::LineCounters,
            Coverage::Line | Coverage::LineCounters if lines.is_none() => Coverage::None,
            mode => mode,
        };
        let counts = match mode {
            Coverage::None => 0,
            Coverage::Function | Coverage::FunctionCounters => code.functions.len(),
            Coverage::Line | Coverage::LineCounters => {
                let place = |i: &&Instr| matches!(i.op, g::LINE | g::EXECUTABLE_LINE);
                code.instrs.iter().filter(place).count()
            }
        };
        Counters {
            mode,
            counts: (0..counts).map(|_| AtomicU64::new(0)).collect(),
            lines: Vec::new(),
        }
    }
    /// Whether functions rather than lines are counted.
    pub fn of_functions(&self) -> bool {
        matches!(self.mode, Coverage::Function | Coverage::FunctionCounters)
    }
    /// Whether lines rather than functions are counted.
    pub fn of_lines(&self) -> bool {
        matches!(self.mode, Coverage::Line | Coverage::LineCounters)
    }
    /// Address of a counter, valid as long as `self` lives.
    pub(super) fn address(&self, index: usize) -> Option<u64> {
        self.counts.get(index).map(|c| &raw const *c as u64)
    }
    /// Returns how often each of `count` functions has run. If lines are counted, it is the count
    /// of the line that has run most often.
    pub fn functions(&self, count: usize) -> Vec<u64> {
        if self.of_functions() {
            return (0..count as u32).map(|i| self.count(i)).collect();
        }
        let mut most = vec![0; count];
        for (line, n) in self.lines() {
            if let Some(m) = most.get_mut(line.function as usize) {
                *m = n.max(*m);
            }
        }
        most
    }
    fn count(&self, index: u32) -> u64 {
        let c = self.counts.get(index as usize);
        c.map_or(0, |c| c.load(Ordering::Relaxed))
    }
    /// All counted lines, and how often each has run.
    pub fn lines(&self) -> impl Iterator<Item = (CountedLine, u64)> + '_ {
        self.lines.iter().map(|l| (*l, self.count(l.counter)))
    }
    /// Sets all counters to zero.
    pub fn reset(&self) {
        for c in &self.counts {
            c.store(0, Ordering::Relaxed);
        }
    }
}
