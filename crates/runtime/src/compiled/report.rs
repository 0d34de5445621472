//! Reports about machine code: a log, and the data for `purlin explain` and `purlin observe`.
//!
//! With `PURLIN_JIT_LOG=FILE` the file gets a line for each function that is compiled, refused or
//! taken back. The log also counts how often machine code is entered, and at which instructions it
//! exits to the interpreter, and ends with these counts. Without a log nothing is counted.

use super::{OWNER, Owner, State};
use crate::code::{self, Module};
use purlin_isa::ops::{Op, VARIANTS};
use purlin_kernel::cx::{Cx, Exit};
use purlin_loader::lower::LoweredFunction;
use purlin_messages as messages;
use purlin_term::Term;
use purlin_term::print::{Style, format_atom};
use purlin_term::sync::Mutex;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// A file with lines about machine code.
pub(super) struct Log {
    file: Mutex<File>,
    began: Instant,
}

/// Opens the log that `PURLIN_JIT_LOG` asks for.
pub(super) fn log() -> Option<Log> {
    let name = std::env::var_os("PURLIN_JIT_LOG")?;
    match File::create(&name) {
        Ok(file) => Some(Log {
            file: Mutex::new(file),
            began: Instant::now(),
        }),
        Err(e) => {
            let name = name.to_string_lossy();
            let text = format!("PURLIN_JIT_LOG: cannot write {name}: {e}");
            purlin_term::say!("{}", messages::NO_JIT_LOG.line(text));
            None
        }
    }
}

impl Log {
    pub fn line(&self, name: &str, what: std::fmt::Arguments) {
        let _ = writeln!(self.file.lock(), "{name} {what}");
    }
}

/// `module:function/arity`.
pub(super) fn name_of(m: &Module, f: &LoweredFunction) -> String {
    // SAFETY: the word of an atom.
    let name = unsafe { Term::from_raw(f.name) };
    let quoted = |t| format_atom(t, Style::Write);
    format!("{}:{}/{}", quoted(m.name), quoted(name), f.arity)
}

// Counts.

static ENTER: AtomicUsize = AtomicUsize::new(0);
/// Number of entries, of exits because the process had used up its reductions, and of exits because
/// it waits and the like.
static ENTERED: AtomicU64 = AtomicU64::new(0);
static YIELDED: AtomicU64 = AtomicU64::new(0);
static STOPPED: AtomicU64 = AtomicU64::new(0);
/// Exits at an instruction without a template, by its variant.
static LEFT: [AtomicU64; VARIANTS] = [const { AtomicU64::new(0) }; VARIANTS];
/// Exits at the entry of a function, and at other places: an instruction of another function that
/// is returned to, or an exception handler.
static CALLED: AtomicU64 = AtomicU64::new(0);
static WENT: AtomicU64 = AtomicU64::new(0);
/// The former by the entry of the function.
static CALLEES: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());
/// Maximum number of functions in the list of those.
const LISTED: usize = 20;

/// Returns the function that enters machine code and counts, instead of the stub at that address.
pub(super) fn enter_by(stub: u64) -> u64 {
    ENTER.store(stub as usize, Ordering::Relaxed);
    enter as *const () as u64
}

/// # Safety
/// As for the stub that it replaces.
unsafe extern "C" fn enter(cx: *mut Cx, at: u64) -> u64 {
    let add = |n: &AtomicU64| _ = n.fetch_add(1, Ordering::Relaxed);
    add(&ENTERED);
    // SAFETY: called like the stub, whose address this is.
    let (next, exit) = unsafe {
        let stub: extern "C" fn(*mut Cx, u64) -> u64 =
            std::mem::transmute(ENTER.load(Ordering::Relaxed));
        let next = stub(cx, at);
        (next, (*cx).interp.exit)
    };
    let pc = (next & !1) as *const u64;
    match next {
        0 if exit == Exit::Yield => add(&YIELDED),
        0 => add(&STOPPED),
        // SAFETY: the instruction that the interpreter is about to run.
        n if n & 1 == 1 => match LEFT.get(unsafe { code::opcode_at(pc) } as usize) {
            Some(n) => add(n),
            None => add(&WENT),
        },
        _ => match code::module_at(pc).and_then(|m| Some(m.at(m.function_at(pc)?.entry))) {
            Some(entry) if entry == pc => {
                add(&CALLED);
                *CALLEES.lock().entry(pc as usize).or_default() += 1;
            }
            _ => add(&WENT),
        },
    }
    next
}

/// Writes the last lines of the log.
pub(super) fn at_end() {
    let Some(owner) = OWNER.get() else { return };
    let Some(log) = &owner.log else { return };
    let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
    let ms = log.began.elapsed().as_secs_f64() * 1000.0;
    let mut file = log.file.lock();
    let _ = writeln!(
        file,
        "entered {} times in {ms:.0} ms: {:.1} a millisecond; {} left at the end of a time slice, {} to wait or end, {} for a \
         function without machine code, {} for other code without any",
        of(&ENTERED),
        of(&ENTERED) as f64 / ms.max(0.001),
        of(&YIELDED),
        of(&STOPPED),
        of(&CALLED),
        of(&WENT),
    );
    let mut ops: Vec<(u64, &str)> = Vec::new();
    for (v, n) in LEFT.iter().enumerate() {
        let n = of(n);
        let Some(op) = Op::of(v as u16).filter(|_| n > 0) else {
            continue;
        };
        let name = op.row().name.trim_end_matches('_');
        match ops.iter_mut().find(|o| o.1 == name) {
            Some(o) => o.0 += n,
            None => ops.push((n, name)),
        }
    }
    let mut callees: Vec<(u64, usize)> = CALLEES.lock().iter().map(|(&e, &n)| (n, e)).collect();
    callees.sort_by_key(|c| std::cmp::Reverse(*c));
    for (n, entry) in callees.into_iter().take(LISTED) {
        // A function whose module is gone has no name.
        if let Some(f) = function(entry, 0, 0) {
            let _ = writeln!(file, "left {n} times for {}", f.name);
        }
    }
    ops.sort_by_key(|o| std::cmp::Reverse(o.0));
    for (n, name) in ops {
        let _ = writeln!(file, "left {n} times at {name}");
    }
}

// Reports.

/// A function with or without machine code.
pub struct Function {
    /// `module:function/arity`.
    pub name: String,
    /// Length of its bytecode in words.
    pub words: u32,
    /// Size of its machine code in bytes, and microseconds that it took to make.
    pub bytes: usize,
    pub micros: f64,
}

/// The state of machine code.
pub struct Report {
    /// Bytes in use, and their maximum.
    pub bytes: usize,
    pub limit: usize,
    /// Number of functions that have machine code now; how many got it and lost it again since the
    /// start.
    pub functions: usize,
    pub made: u64,
    pub taken_back: u64,
    /// Microseconds that all of them took.
    pub micros: f64,
    /// Number of functions that were not compiled because there was no room.
    pub no_room: u64,
    /// The functions with most machine code, and those that took longest.
    pub largest: Vec<Function>,
    pub slowest: Vec<Function>,
    /// Functions that stay interpreted, and why; their number.
    pub refused: Vec<(Function, &'static str)>,
    pub refusals: usize,
}

/// Counts since the start.
#[derive(Default)]
pub(super) struct Counts {
    pub made: u64,
    pub taken_back: u64,
    pub nanos: u64,
    pub no_room: u64,
}

fn function(entry: usize, bytes: usize, nanos: u64) -> Option<Function> {
    let (m, i) = code::function_at(entry as *const u64)?;
    let f = &m.functions[i];
    Some(Function {
        name: name_of(&m, f),
        words: f.end - f.entry,
        bytes,
        micros: nanos as f64 / 1000.0,
    })
}

impl Owner {
    fn report(&self, s: &State, top: usize) -> Report {
        let listed = |by: fn(&super::Object) -> u64| {
            let mut all: Vec<_> = s.objects.iter().map(|(&e, o)| (by(o), e, o)).collect();
            all.sort_by_key(|o| std::cmp::Reverse((o.0, o.1)));
            all.into_iter()
                .take(top)
                .filter_map(|(_, e, o)| function(e, o.bytes, o.nanos.into()))
                .collect()
        };
        let refused: Vec<_> = s
            .refused
            .iter()
            .filter_map(|(&e, r)| Some((function(e, 0, 0)?, r.why())))
            .take(top)
            .collect();
        Report {
            bytes: s.memory.taken(),
            limit: s.memory.limit(),
            functions: s.objects.len(),
            made: s.counts.made,
            taken_back: s.counts.taken_back,
            micros: s.counts.nanos as f64 / 1000.0,
            no_room: s.counts.no_room,
            largest: listed(|o| o.bytes as u64),
            slowest: listed(|o| o.nanos.into()),
            refused,
            refusals: s.refused.len(),
        }
    }
}

/// Returns the state of machine code, with at most `top` functions of each kind; `None` if
/// everything is interpreted.
pub fn report(top: usize) -> Option<Report> {
    let owner = OWNER.get()?;
    let s = owner.state.lock();
    Some(owner.report(&s, top))
}

/// Returns the number of functions with machine code, their bytes, and the maximum of bytes.
pub fn totals() -> Option<(usize, usize, usize)> {
    let s = OWNER.get()?.state.lock();
    Some((s.objects.len(), s.memory.taken(), s.memory.limit()))
}

/// Returns how machine code is made.
pub fn mode() -> &'static str {
    match OWNER.get() {
        None => "off",
        Some(o) if o.chaos => "chaos",
        Some(o) if o.always => "always",
        Some(_) => "hot",
    }
}
