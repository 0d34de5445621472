//! The owner of machine code in memory: makes, publishes and takes it back.
//!
//! # Order
//! To publish writes the bytes, the return points, the word before the entry, and the number at the
//! entry, in this order. To take back goes the other way round. A thread that finds
//! `enter_compiled` at an entry finds the code, or the original number if the code was just taken
//! back.

mod chaos;
mod gdb;
mod memory;
mod names;
mod native_text;
pub mod report;
mod returns;
#[cfg(test)]
mod returns_tests;
mod unwinding;

pub use native_text::{NativeFunction, NativeModule, native_functions};
pub use purlin_jit::machine::Processor;

use crate::options::{EmulatorOptions, MachineCode};
use memory::Memory;
use names::{Named, Names};
use purlin_interp::compiled as engine;
use purlin_isa::ops::Op;
use purlin_jit::compiler::{Function, Refusal, compile};
use purlin_jit::decode::Instruction;
use purlin_jit::{Env, Helpers, Stubs, Template, operands};
use purlin_kernel::code::compiled::{Compiler, count_invalidation, number, set_compiler};
use purlin_kernel::code::entries::{self, entries};
use purlin_kernel::code::epochs::{Since, epochs};
use purlin_kernel::code::{self, Module};
use purlin_loader::lower::LoweredFunction;
use purlin_messages as messages;
use purlin_term::sync::Mutex;
use purlin_term::{Term, am, fun};
use returns::Returns;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Maximum size of machine code in bytes.
const MOST_CODE_BYTES: usize = 32 << 20;
/// Maximum number of callees that are compiled together with a function, each time it is found
/// running.
const CALLEES: usize = 16;
/// Number of functions after which a sample looks for no more callees. Several levels deep there
/// are thousands, most of which have machine code already or are never called.
const LOOKED_AT: usize = 96;
/// Reductions that a scheduler uses before it has anything compiled. Most code that runs at the
/// start does not run again, and a short program ends before compiling pays off.
const STARTS: u64 = 300_000;

/// The machine code of a function.
struct Object {
    at: usize,
    bytes: usize,
    returns: Vec<u64>,
    /// How long it took to make, in nanoseconds.
    nanos: u32,
    /// How often it was found running; saturates.
    seen: u8,
    /// Its name, if there is a log: its module may be gone before it.
    name: Option<Box<str>>,
}

struct State {
    memory: Memory,
    returns: Returns,
    /// Functions with machine code, by entry.
    objects: BTreeMap<usize, Object>,
    /// Machine code that was taken back, and since when: threads may still run it.
    leaving: Vec<(Since, usize, usize)>,
    /// Functions that stay interpreted, by entry, and why.
    refused: HashMap<usize, Refusal>,
    /// Functions that have no machine code because of chaos mode, by entry.
    left_out: Vec<usize>,
    names: Names,
    counts: report::Counts,
}

struct Owner {
    state: Mutex<State>,
    stubs: Stubs,
    steps: Vec<u64>,
    helpers: Helpers,
    /// Entries at which breakpoints were set. The innermost lock.
    forgotten: Mutex<Vec<usize>>,
    always: bool,
    chaos: bool,
    log: Option<report::Log>,
}

static OWNER: OnceLock<Owner> = OnceLock::new();

/// Whether a word says which functions get machine code. The empty word is the default.
fn is_mode(word: &str) -> bool {
    let chaos = |rest: &str| match rest.strip_prefix(':') {
        Some(seed) => seed.parse::<u64>().is_ok(),
        None => rest.is_empty(),
    };
    word.is_empty()
        || MachineCode::from_word(word).is_some()
        || word.strip_prefix("chaos").is_some_and(chaos)
}

/// Reports that all is interpreted. Called once the emulator has all it needs to start: where that
/// is refused, too, the emulator ends with one message.
pub(crate) fn report_refusal(why: Option<std::io::Error>) {
    if let Some(e) = why {
        let text = format!("the system allows no machine code ({e}): all is interpreted");
        purlin_term::say!("{}", messages::INTERPRETED.line(text));
    }
}

/// Enables machine code, if the machine and the options allow it. Must be called before any code is
/// named or loaded. Returns why the system refuses it, for [`report_refusal`].
pub(crate) fn start(o: &EmulatorOptions) -> Option<std::io::Error> {
    let flags = &o.flags.purlin;
    let asked = flags.machine_code.map_or("", MachineCode::word);
    let mode = match std::env::var_os("PURLIN_JIT") {
        None => asked.to_owned(),
        Some(word) => {
            let word = word.to_string_lossy().into_owned();
            if !is_mode(&word) {
                let text = format!("bad PURLIN_JIT \"{word}\": off, hot, always or chaos:SEED");
                purlin_term::say!("{}", messages::BAD_JIT_MODE.line(text));
                std::process::exit(1);
            }
            word
        }
    };
    if mode == "off" {
        return None;
    }
    // `perf` looks for names in its map only for memory without a file.
    let single = o.flags.jit.single_map || o.flags.jit.perf_map;
    let limit = flags
        .machine_code_mib
        .map_or(MOST_CODE_BYTES, |n| (n as usize) << 20);
    match Memory::new(limit, single) {
        Ok(memory) => {
            begin(o, &mode, memory);
            None
        }
        // A machine without machine code is not worth a message.
        Err(e) => (e.kind() != std::io::ErrorKind::Unsupported).then_some(e),
    }
}

/// Makes the stubs in that memory, and the owner of all machine code.
fn begin(o: &EmulatorOptions, mode: &str, mut memory: Memory) {
    let helpers = engine::helpers();
    let make = |at: u64| {
        purlin_jit::stubs::make(
            Processor::HOST,
            at,
            &engine::FIELDS,
            &helpers,
            engine::EXITS,
        )
    };
    // Their size does not depend on their address.
    let Some(size) = make(0).map(|m| m.0.len()) else {
        return;
    };
    let Some(at) = memory.allocate(names::room_for_stubs(size, o)) else {
        return;
    };
    let Some((bytes, stubs)) = make(at as u64) else {
        return;
    };
    if !memory.write(at, &bytes) {
        return;
    }
    let chaos = chaos::begin(mode);
    let log = report::log();
    if log.is_some() {
        crate::halt::on_end(report::at_end);
    }
    engine::set_enter(match chaos {
        true => chaos::enter_by(stubs.enter),
        false if log.is_some() => report::enter_by(stubs.enter),
        false => stubs.enter,
    });
    let mut names = Names::new(o, memory.range());
    names.shared(at as u64, &bytes, &stubs.frames);
    fun::set_uncompiled(stubs.local as u32);
    let owner = OWNER.get_or_init(|| Owner {
        state: Mutex::new(State {
            memory,
            returns: Returns::new(returns::FIRST),
            objects: BTreeMap::new(),
            leaving: Vec::new(),
            refused: HashMap::new(),
            left_out: Vec::new(),
            names,
            counts: report::Counts::default(),
        }),
        stubs,
        steps: engine::steps(),
        helpers,
        forgotten: Mutex::default(),
        always: mode == "always" || chaos,
        chaos,
        log,
    });
    set_compiler(owner);
    entries().install(owner, number(), fun::uncompiled());
}

impl Owner {
    /// Writes a line to the log, if there is one.
    fn log(&self, m: &Module, f: &LoweredFunction, what: std::fmt::Arguments) {
        if let Some(log) = &self.log {
            log.line(&report::name_of(m, f), what);
        }
    }
    fn env(&self) -> Env<'_> {
        env(self.helpers, self.stubs, &self.steps, self.chaos)
    }
    /// Compiles a function, unless it has machine code or is not to have any. Returns whether it
    /// did.
    fn make(&self, s: &mut State, m: &Module, f: &LoweredFunction) -> bool {
        let entry = m.at(f.entry);
        if s.objects.contains_key(&(entry as usize))
            || s.refused.contains_key(&(entry as usize))
            || m.debug.can_break
        {
            return false;
        }
        // SAFETY: the entry of a function whose module is held.
        if unsafe { entries().is_patched(entry) } {
            return false;
        }
        let function = function_of(m, f);
        let began = Instant::now();
        let made = match compile(function, &self.env()) {
            Ok(made) => made,
            Err(r) => {
                self.log(m, f, format_args!("refused: {}", r.why()));
                // The patch may be a breakpoint that was set just now.
                // SAFETY: the entry of a function whose module is held.
                if unsafe { !entries().is_patched(entry) } {
                    s.refused.insert(entry as usize, r);
                }
                return false;
            }
        };
        let (tables, bytes) = s.names.room_for(&made.code);
        let Some(at) = s.memory.allocate(bytes) else {
            s.counts.no_room += 1;
            self.log(m, f, format_args!("left: no room for {bytes} bytes more"));
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
        s.names.add(&Named {
            module: m,
            function: f,
            at: outer as u64,
            bytes: &code,
            tables,
            places: &made.places,
        });
        let nanos = began.elapsed().as_nanos() as u32;
        let object = Object {
            at,
            bytes,
            returns,
            nanos,
            seen: 0,
            name: self.log.is_some().then(|| report::name_of(m, f).into()),
        };
        // SAFETY: the entry of a function whose module is held.
        let published = unsafe { entries().publish(entry, outer as u32) };
        if !published {
            self.discard(s, object);
            return false;
        }
        s.objects.insert(entry as usize, object);
        s.counts.made += 1;
        s.counts.nanos += u64::from(nanos);
        let (us, words) = (nanos / 1000, f.end - f.entry);
        self.log(
            m,
            f,
            format_args!("compiled {us} us, {words} words, {bytes} bytes at {outer:#x}"),
        );
        true
    }
    /// Takes machine code back. Threads that run it continue until their time slice ends.
    fn take_back(&self, s: &mut State, entry: usize) {
        let Some(o) = s.objects.remove(&entry) else {
            return;
        };
        // SAFETY: the entry of a function whose module has not gone.
        unsafe {
            entries().withdraw(entry as *const u64);
        }
        self.lost(s, &o, "taken back");
        self.discard(s, o);
    }
    /// Records that a function has lost its machine code.
    fn lost(&self, s: &mut State, o: &Object, why: &str) {
        s.counts.taken_back += 1;
        if let (Some(log), Some(name)) = (&self.log, &o.name) {
            log.line(name, format_args!("{why}"));
        }
    }
    /// Frees machine code when the threads that may still run it have left it.
    fn discard(&self, s: &mut State, o: Object) {
        for pc in o.returns {
            s.returns.remove(pc);
        }
        s.names.remove(o.at as u64);
        s.leaving.push((epochs().since(), o.at, o.bytes));
    }
    /// Takes back the code of entries that were forgotten under the lock of entries.
    fn tidy(&self, s: &mut State) {
        s.returns.tidy();
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
                self.lost(s, &o, "taken back for a breakpoint");
                self.discard(s, o);
            }
        }
    }
    /// Compiles the function at an address, and its callees: at first those of its module, later
    /// those of others too, if the function is found again. Returns whether any of them got machine
    /// code.
    fn want(&self, pc: *const u64) -> bool {
        if pc.is_null() {
            return false;
        }
        let Some(m) = code::module_at(pc) else {
            return false;
        };
        let Some(f) = m.function_at(pc).copied() else {
            return false;
        };
        let entry = m.at(f.entry) as usize;
        let mut s = self.state.lock();
        self.tidy(&mut s);
        if s.refused.contains_key(&entry) {
            return false;
        }
        let itself = self.make(&mut s, &m, &f);
        // Servers are always sampled in their receive loop, so hot functions also compile deeper
        // callees.
        let levels = match s.objects.get_mut(&entry) {
            Some(o) if o.seen < u8::MAX => {
                o.seen += 1;
                match o.seen {
                    1 => 1,
                    n if n >= 4 && n.is_power_of_two() => n.ilog2(),
                    _ => return itself,
                }
            }
            _ => return itself,
        };
        let (mut seen, mut made) = (HashSet::from([entry]), 0);
        let mut callers = vec![(m, f)];
        for _ in 0..levels {
            let mut found = Vec::new();
            for (m, f) in callers {
                if seen.len() > LOOKED_AT {
                    return itself || made > 0;
                }
                for (m, g) in callees(&m, &f, levels > 1) {
                    if !seen.insert(m.at(g.entry) as usize) {
                        continue;
                    }
                    made += usize::from(self.make(&mut s, &m, &g));
                    if made == CALLEES {
                        return true;
                    }
                    found.push((m, g));
                }
            }
            callers = found;
        }
        itself || made > 0
    }
}

/// Returns a function as the compiler takes it.
fn function_of<'a>(m: &'a Module, f: &LoweredFunction) -> Function<'a> {
    Function {
        code: m.code.words(),
        base: m.code.as_ptr() as u64,
        start: f.start,
        entry: f.entry,
        end: f.end,
        arity: f.arity,
    }
}

/// Returns the compiler's information about this runtime.
fn env(helpers: Helpers, stubs: Stubs, steps: &[u64], chaos: bool) -> Env<'_> {
    Env {
        fields: engine::FIELDS,
        mail: engine::MAIL,
        helpers,
        stubs,
        steps,
        targets: engine::TARGETS,
        changes_code: &changes_code,
        native: &native,
        own_pid: own_pid(),
        natives_traced: code::breakpoint::natives_flag(),
        counted: purlin_term::region::counted_memory(),
        stressed: purlin_term::gc::stress(),
        annotated: false,
        chaos,
        no_value: Term::NON_VALUE.raw(),
        true_word: am::TRUE.raw(),
        false_word: am::FALSE.raw(),
    }
}

/// Returns the address of the native with the template [`Template::OwnPid`].
pub fn own_pid() -> u64 {
    static FOUND: OnceLock<u64> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let all = purlin_native::bif::all();
        let found = all
            .iter()
            .find(|b| b.traits.template == Some(Template::OwnPid));
        found.map_or(0, |b| b.entry() as usize as u64)
    })
}

/// Returns the template of the native behind an export, if it has one.
pub fn native_with_template(e: &fun::Export) -> Option<Template> {
    let (_, b) = code::native(e.module, e.function, e.arity)?;
    b.traits.template
}

fn native(export: u64) -> Option<Template> {
    // SAFETY: the operand of such a call is an export, which is never freed.
    native_with_template(unsafe { &*(export as *const fun::Export) })
}

/// Whether the native behind an export changes code.
fn changes_code(export: u64) -> bool {
    // SAFETY: the operand of an instruction that is the address of an export; exports are never
    // freed.
    let e = unsafe { &*(export as *const fun::Export) };
    code::native(e.module, e.function, e.arity).is_some_and(|(_, b)| b.traits.changes_code)
}

/// The target of a call.
enum Callee {
    Local(operands::Target),
    /// The address of an export.
    External(u64),
}

/// Returns the function that an instruction calls, if it names one.
fn callee(i: &Instruction) -> Option<Callee> {
    Some(match i.op {
        Op::Call => Callee::Local(operands::Call::of(i).to),
        Op::CallLast => Callee::Local(operands::CallLast::of(i).to),
        Op::CallOnly => Callee::Local(operands::CallOnly::of(i).to),
        Op::CallExt => Callee::External(operands::CallExt::of(i).export),
        Op::CallExtLast => Callee::External(operands::CallExtLast::of(i).export),
        Op::CallExtOnly => Callee::External(operands::CallExtOnly::of(i).export),
        _ => return None,
    })
}

/// Returns the callees of a function: those in its module, and on request those in others.
fn callees(
    m: &Arc<Module>,
    f: &LoweredFunction,
    others: bool,
) -> Vec<(Arc<Module>, LoweredFunction)> {
    let mut out = Vec::new();
    let mut at = f.entry;
    while at < f.end && out.len() < CALLEES {
        // SAFETY: an instruction of the module's code.
        let n = unsafe { code::opcode_at(m.at(at)) };
        let Some(i) = purlin_jit::decode::decode(m.code.words(), at, n) else {
            break;
        };
        at = i.next;
        if !i.op.row().effects.calls {
            continue;
        }
        let parts = purlin_jit::decode::parts(&i);
        let itself = (parts.len() == 0).then_some(i);
        for p in parts.chain(itself) {
            match callee(&p) {
                Some(Callee::Local(to)) => {
                    if let Some(to) = to.0
                        && let Some(g) = m.function_at(m.at(to))
                        && g.entry == to
                        && to != f.entry
                    {
                        out.push((m.clone(), *g));
                    }
                }
                Some(Callee::External(export)) if others => {
                    // SAFETY: the operand of such a call is an export, which is never freed.
                    let to = unsafe { &*(export as *const fun::Export) }.address();
                    if let Some(m) = code::module_at(to)
                        && let Some(g) = m.function_at(to).copied()
                        && m.at(g.entry) == to
                    {
                        out.push((m, g));
                    }
                }
                _ => {}
            }
        }
    }
    out
}

impl Compiler for Owner {
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
    fn settle(&self) {
        // Its return points are still in the table: returns to its frames continue in it.
        self.tidy(&mut self.state.lock());
    }
    fn begins(&self) -> Option<i64> {
        match self.chaos {
            true => self.by_chance(),
            false => None,
        }
    }
    fn starts(&self) -> u64 {
        match self.chaos || self.always {
            true => 0,
            false => STARTS,
        }
    }
    fn wanted(&self, pc: *const u64, caller: *const u64) -> bool {
        // SAFETY: the process was about to run the instruction at `pc`.
        let itself = !pc.is_null() && unsafe { code::fetch(pc) } != number() && self.want(pc);
        let caller = !caller.is_null() && self.want(caller.wrapping_sub(1));
        itself || caller
    }
    fn called(&self, pc: *const u64) -> bool {
        // In chaos mode some functions have none.
        if self.chaos {
            return false;
        }
        let Some(m) = code::module_at(pc) else {
            return false;
        };
        let Some(f) = m.function_at(pc).copied() else {
            return false;
        };
        let mut s = self.state.lock();
        self.tidy(&mut s);
        self.make(&mut s, &m, &f)
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

impl entries::Invalidated for Owner {
    fn invalidated(&self, entry: *const u64) {
        self.forgotten.lock().push(entry as usize);
        count_invalidation();
    }
}
