//! Machine code in memory: made, published, forgotten.
//!
//! # Order
//! Published: the bytes; the return points; the word before the entry; the number at the entry. Forgotten: the other way round.
//! Whoever meets `enter_compiled` at an entry finds the code, or the original number if it was just taken back.

mod chaos;
mod memory;
mod returns;

use crate::options::{EmulatorOptions, MachineCode};
use memory::Memory;
use purlin_interp::compiled as engine;
use purlin_isa::ops::Op;
use purlin_jit::quick::{Function, Refusal, compile};
use purlin_jit::{Env, Helpers, Native, Stubs};
use purlin_kernel::code::compiled::{Compiled, lead, number, set_compiled, takes_back};
use purlin_kernel::code::entries::{self, entries};
use purlin_kernel::code::epochs::{Since, epochs};
use purlin_kernel::code::{self, Module};
use purlin_loader::lower::LoweredFunction;
use purlin_term::sync::Mutex;
use purlin_term::{Term, am, atom, fun};
use returns::Returns;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// Bytes of machine code that are kept at most.
const LIMIT: usize = 32 << 20;
/// Functions of a module that are compiled with one that calls them.
const CALLEES: usize = 16;

/// The machine code of a function.
struct Object {
    at: usize,
    bytes: usize,
    returns: Vec<u64>,
}

struct State {
    memory: Memory,
    returns: Returns,
    /// By entry.
    objects: BTreeMap<usize, Object>,
    /// Machine code that was taken back, and since when: threads may still run it.
    leaving: Vec<(Since, usize, usize)>,
    /// Functions that stay interpreted, by entry, and why.
    refused: HashMap<usize, Refusal>,
    /// Functions without machine code by chance, by entry.
    left_out: Vec<usize>,
}

struct Owner {
    state: Mutex<State>,
    stubs: Stubs,
    steps: Vec<u64>,
    helpers: Helpers,
    /// Entries that breakpoints were set at. Taken last of all locks.
    forgotten: Mutex<Vec<usize>>,
    always: bool,
    chaos: bool,
    log: Option<Mutex<File>>,
}

static OWNER: OnceLock<Owner> = OnceLock::new();

/// Makes machine code possible, if the machine and the options allow it. Before any code is named or loaded.
pub(crate) fn start(o: &EmulatorOptions) {
    let flags = &o.flags.purlin;
    let asked = flags.machine_code.map_or("", MachineCode::word);
    let mode = std::env::var("PURLIN_JIT").unwrap_or_else(|_| asked.into());
    // The interpreter says to `perf` which function runs; machine code does not yet.
    if mode == "off" || o.flags.jit.perf_map {
        return;
    }
    let limit = flags.machine_code_mib.map_or(LIMIT, |n| (n as usize) << 20);
    let mut memory = match Memory::new(limit, o.flags.jit.single_map) {
        Ok(m) => m,
        Err(e) => {
            // Machines that have no machine code are no news.
            if e.kind() != std::io::ErrorKind::Unsupported {
                eprintln!("purlin: the system allows no machine code ({e}): all is interpreted");
            }
            return;
        }
    };
    let helpers = engine::helpers();
    let make = |at: u64| {
        let (fields, exits, targets) = (&engine::FIELDS, engine::EXITS, engine::TARGETS);
        purlin_jit::stubs::make(at, fields, &helpers, exits, targets)
    };
    // They take as many bytes wherever they stand.
    let Some(size) = make(0).map(|m| m.0.len()) else {
        return;
    };
    let Some(at) = memory.allocate(size) else {
        return;
    };
    let Some((bytes, stubs)) = make(at as u64) else {
        return;
    };
    if !memory.write(at, &bytes) {
        return;
    }
    let chaos = chaos::begin(&mode);
    engine::set_enter(match chaos {
        true => chaos::enter_by(stubs.enter),
        false => stubs.enter,
    });
    fun::set_uncompiled(stubs.local as u32);
    let owner = OWNER.get_or_init(|| Owner {
        state: Mutex::new(State {
            memory,
            returns: Returns::new(),
            objects: BTreeMap::new(),
            leaving: Vec::new(),
            refused: HashMap::new(),
            left_out: Vec::new(),
        }),
        stubs,
        steps: engine::steps(),
        helpers,
        forgotten: Mutex::default(),
        always: mode == "always" || chaos,
        chaos,
        log: std::env::var_os("PURLIN_JIT_LOG")
            .and_then(|f| File::create(f).ok())
            .map(Mutex::new),
    });
    set_compiled(owner);
    entries().install(owner, number());
}

impl Owner {
    /// A line of the log, if one is kept.
    fn log(&self, m: &Module, f: &LoweredFunction, what: std::fmt::Arguments) {
        let Some(log) = &self.log else { return };
        // SAFETY: the word of an atom.
        let name = unsafe { Term::from_raw(f.name) };
        let _ = writeln!(
            log.lock(),
            "{}:{}/{} {what}",
            atom::name(m.name),
            atom::name(name),
            f.arity
        );
    }
    fn env(&self) -> Env<'_> {
        Env {
            fields: engine::FIELDS,
            helpers: self.helpers,
            stubs: self.stubs,
            steps: &self.steps,
            targets: engine::TARGETS,
            changes_code: &changes_code,
            native: &native,
            stressed: purlin_term::gc::stress(),
            chaos: self.chaos,
            no_value: Term::NON_VALUE.raw(),
            true_word: am::TRUE.raw(),
            false_word: am::FALSE.raw(),
        }
    }
    /// Compiles a function, unless it has machine code or is to have none.
    fn make(&self, s: &mut State, m: &Module, f: &LoweredFunction) -> bool {
        let entry = m.at(f.entry);
        if s.objects.contains_key(&(entry as usize))
            || s.refused.contains_key(&(entry as usize))
            || m.debug.can_break
        {
            return false;
        }
        // SAFETY: the entry of a function of a module that is held.
        if unsafe { entries().is_patched(entry) } {
            return false;
        }
        let function = Function {
            code: m.code.words(),
            base: m.code.as_ptr() as u64,
            start: f.start,
            entry: f.entry,
            end: f.end,
            arity: f.arity,
        };
        let began = self.log.as_ref().map(|_| std::time::Instant::now());
        let made = match compile(function, &self.env()) {
            Ok(made) => made,
            Err(r) => {
                self.log(m, f, format_args!("refused {r:?}"));
                // What was found there may be a breakpoint that was set just now.
                // SAFETY: as above.
                if unsafe { !entries().is_patched(entry) } {
                    s.refused.insert(entry as usize, r);
                }
                return false;
            }
        };
        let bytes = made.code.bytes.len();
        let Some(at) = s.memory.allocate(bytes) else {
            return false;
        };
        let outer = at;
        let Some(code) = made.code.place(outer as u64) else {
            s.memory.free(at, bytes);
            return false;
        };
        if !s.memory.write(at, &code) {
            // Pages in an unknown state are not used again.
            return false;
        }
        let mut returns = Vec::with_capacity(made.returns.len());
        for (pc, offset) in made.returns {
            s.returns.set(pc, outer as u64 + u64::from(offset));
            returns.push(pc);
        }
        let object = Object { at, bytes, returns };
        // SAFETY: as above.
        let published = unsafe {
            entries().publish(entry, || {
                lead(entry).store(outer as u32, Ordering::Release);
                true
            })
        };
        if !published {
            self.discard(s, object);
            return false;
        }
        s.objects.insert(entry as usize, object);
        if let Some(t) = began {
            let (us, words) = (t.elapsed().as_micros(), f.end - f.entry);
            self.log(
                m,
                f,
                format_args!("compiled {us} us, {words} words, {bytes} bytes at {outer:#x}"),
            );
        }
        true
    }
    /// Takes machine code back. Threads that run it go on until their time slice ends.
    fn take_back(&self, s: &mut State, entry: usize) {
        let Some(o) = s.objects.remove(&entry) else {
            return;
        };
        // SAFETY: the entry of a function whose module has not gone.
        unsafe {
            let pc = entry as *const u64;
            entries().withdraw(pc, || {
                lead(pc).store(fun::uncompiled(), Ordering::Release);
            });
        }
        self.discard(s, o);
    }
    /// Machine code that nobody comes to any more, save by what is under way.
    fn discard(&self, s: &mut State, o: Object) {
        for pc in o.returns {
            s.returns.remove(pc);
        }
        s.leaving.push((epochs().since(), o.at, o.bytes));
    }
    /// Takes back what has been forgotten under the lock of entries.
    fn tidy(&self, s: &mut State) {
        let memory = &mut s.memory;
        s.leaving.retain_mut(|(since, at, bytes)| {
            let gone = since.passed();
            if gone {
                if self.chaos {
                    let _ = memory.write(*at, &vec![chaos::TRAP; *bytes]);
                }
                memory.free(*at, *bytes);
            }
            !gone
        });
        for e in std::mem::take(&mut *self.forgotten.lock()) {
            if let Some(o) = s.objects.remove(&e) {
                self.discard(s, o);
            }
        }
    }
    /// The function at an address, and those of its module that it calls.
    fn want(&self, pc: *const u64) {
        if pc.is_null() {
            return;
        }
        let Some(m) = code::module_at(pc) else { return };
        let Some(f) = m.function_at(pc).copied() else {
            return;
        };
        let entry = m.at(f.entry) as usize;
        let mut s = self.state.lock();
        self.tidy(&mut s);
        if s.objects.contains_key(&entry) || s.refused.contains_key(&entry) {
            return;
        }
        self.make(&mut s, &m, &f);
        for g in callees(&m, &f) {
            self.make(&mut s, &m, &g);
        }
    }
}

/// The native behind an export, if machine code has a template for it.
fn native(export: u64) -> Option<Native> {
    // SAFETY: as in `changes_code`.
    let e = unsafe { &*(export as *const fun::Export) };
    if e.module != am::ERLANG {
        return None;
    }
    Some(match (atom::name(e.function), e.arity) {
        ("abs", 1) => Native::Abs,
        ("/", 2) => Native::Divide,
        ("not", 1) => Native::Not,
        ("and", 2) => Native::And,
        ("or", 2) => Native::Or,
        ("xor", 2) => Native::Xor,
        ("min", 2) => Native::Min,
        ("max", 2) => Native::Max,
        _ => return None,
    })
}

/// Whether the native behind an export changes code.
fn changes_code(export: u64) -> bool {
    // SAFETY: the operand of an instruction that is the address of an export, which are never freed.
    let e = unsafe { &*(export as *const fun::Export) };
    code::native(e.module, e.function, e.arity).is_some_and(|(_, b)| b.traits.changes_code)
}

/// Functions of the module that a function calls.
fn callees(m: &Module, f: &LoweredFunction) -> Vec<LoweredFunction> {
    let mut out = Vec::new();
    let mut at = f.entry;
    while at < f.end && out.len() < CALLEES {
        // SAFETY: an instruction of the module's code.
        let n = unsafe { code::opcode_at(m.at(at)) };
        let Some(i) = purlin_jit::decode::decode(m.code.words(), at, n) else {
            break;
        };
        purlin_jit::decode::parts(&i, |p| {
            if matches!(p.op, Op::Call | Op::CallLast | Op::CallOnly)
                && let Some(to) = p.args()[0].label()
                && let Some(g) = m.function_at(m.at(to))
                && g.entry == to
                && to != f.entry
            {
                out.push(*g);
            }
        });
        at = i.next;
    }
    out
}

impl Compiled for Owner {
    fn forget(&self, code: Range<usize>) {
        let mut s = self.state.lock();
        self.tidy(&mut s);
        let entries: Vec<usize> = s.objects.range(code.clone()).map(|(&e, _)| e).collect();
        for e in entries {
            self.take_back(&mut s, e);
        }
        s.refused.retain(|e, _| !code.contains(e));
        s.left_out.retain(|e| !code.contains(e));
    }
    fn bytes(&self) -> usize {
        self.state.lock().memory.taken()
    }
    fn begins(&self) -> (*const u64, Option<i64>) {
        let piece = match self.chaos {
            true => self.by_chance(),
            false => None,
        };
        (returns::now(), piece)
    }
    fn wanted(&self, pc: *const u64, caller: *const u64) {
        // SAFETY: the process was about to run the instruction at `pc`.
        if !pc.is_null() && unsafe { code::fetch(pc) } != number() {
            self.want(pc);
        }
        if !caller.is_null() {
            self.want(caller.wrapping_sub(1));
        }
    }
    fn loaded(&self, m: &Module) {
        if !self.always {
            return;
        }
        let mut s = self.state.lock();
        self.tidy(&mut s);
        for f in &m.functions {
            match self.chaos && chaos::one_in(4) {
                true => s.left_out.push(m.at(f.entry) as usize),
                false => _ = self.make(&mut s, m, f),
            }
        }
    }
}

impl entries::Compiled for Owner {
    fn forget(&self, entry: *const u64) {
        // SAFETY: the entry of a function whose module has not gone.
        unsafe { lead(entry).store(fun::uncompiled(), Ordering::Release) };
        self.forgotten.lock().push(entry as usize);
        takes_back();
    }
}
