//! From generic instructions to specific ones: chooses variants, packs operands, resolves labels.
//!
//! Knowledge of the runtime (words of atoms and literals, addresses of exports, natives and fun
//! entries) comes from an [`Env`]. The result needs no relocation: it has absolute words and
//! relative jumps.

mod bits;
mod chain;
mod emit;
mod flow;
mod fuse;
mod records;

use crate::error::{Fault, LoadError};
use crate::file::BeamFile;
use crate::generic::{BigInt, GenericCode, Instr, Operand};
use emit::{Arg, Emitter, count};
pub use flow::{AtLabel, states};
use purlin_isa::genops::{self as g};
use purlin_isa::known::Way;
use purlin_isa::ops::{NO_LIVE, Op};
use purlin_isa::types::{Fact, Type};
use purlin_term::word::{SMALL_SHIFT, is_immed_word, is_small_word};
use std::collections::HashSet;

/// An imported function, as the runtime knows it.
#[derive(Clone, Copy, Debug)]
pub struct Callee {
    /// Address of its export.
    pub export: u64,
    /// Whether it is a native of any kind.
    pub built_in: bool,
    /// Address of its native, for calls that bypass the export.
    pub native: Option<u64>,
    /// Address of the native for instructions that can only call natives: one that raises `undef`
    /// if this runtime lacks it.
    pub guard: u64,
}

/// The services of the runtime that lowering needs. Words are term words.
pub trait Env {
    /// Returns the atom with that number in the file.
    fn atom(&mut self, number: u32) -> u64;
    /// Returns the literal with that index.
    fn literal(&mut self, index: u32) -> u64;
    /// Returns a bignum literal of that value (any integer).
    fn bigint(&mut self, value: &BigInt) -> u64;
    /// Returns the result of putting `keys` into the map of that word: a literal tuple of all its
    /// keys in the order of map keys, and the source of each value. `None` if it is no flat map, or
    /// a key is no immediate.
    fn map_keys(&mut self, map: u64, keys: &[u64]) -> Option<(u64, Vec<MapValue>)>;
    /// Returns the definition of the records of that name which the file declares: a literal tuple
    /// of their definition and a tuple of their defaults, each in a list of its own, or an empty
    /// one for none. `None`: it declares no such records.
    fn record(&mut self, name: u32) -> Option<u64>;
    /// Returns the words of the two atoms, if a term is a tuple of two.
    fn pair_of_atoms(&mut self, term: u64) -> Option<(u64, u64)>;
    /// Returns the import with that index.
    fn import(&mut self, index: u32) -> Callee;
    /// Returns the address of the fun entry of that lambda.
    fn lambda(&mut self, index: u32) -> u64;
    /// Returns the address of the module's string table, valid as long as the code lives.
    fn strings(&mut self) -> u64;
    /// Returns the address of the export of a function of this module for which the runtime has a
    /// native; then its code in the file doesn't run.
    fn own_native(&mut self, function: u32, arity: u32) -> Option<u64>;
    /// Returns the address of the slot of the function with that index: see [`Op::Nif`].
    fn nif_slot(&mut self, index: usize) -> u64;
    /// Returns the address of the counter of the function with that index, if functions are
    /// counted.
    fn function_counter(&mut self, index: usize) -> Option<u64>;
    /// Returns the address of the counter with that number, if lines are counted. There are fewer
    /// numbers than instructions `line` and `executable_line`.
    fn line_counter(&mut self, number: usize) -> Option<u64>;
    /// Whether lines are prepared for breakpoints.
    fn lines_can_break(&mut self) -> bool {
        false
    }
    /// Returns the address that marks the function with that index for profilers, if code is to
    /// show which function runs.
    fn mark(&mut self, index: usize) -> Option<u64>;
    /// Returns the names in a term that is a proper list of atoms; none for anything else.
    fn atoms_of(&mut self, term: u64) -> Vec<String>;
}

/// The source of a value of a map that is made as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapValue {
    /// The value for that one of the keys that are put.
    Put(usize),
    /// A constant: the word in the old map.
    Old(u64),
}

/// A function of the lowered code. Offsets are in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoweredFunction {
    /// Word of the name.
    pub name: u64,
    pub arity: u32,
    /// Offset of `func_info`.
    pub start: u32,
    /// Offset at which calls enter.
    pub entry: u32,
    pub end: u32,
    /// Whether a native library may replace it.
    pub nif: bool,
}

/// A line whose executions are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedLine {
    /// Number of its counter.
    pub counter: u32,
    /// Index of its function.
    pub function: u32,
    /// Item of the line table.
    pub item: u32,
    /// The compiler's name for it.
    pub id: u32,
}

/// A line that can have a breakpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DebugLine {
    /// Offset of its instruction, [`Op::DebugLine`], in words.
    pub at: u32,
    /// Index of its function.
    pub function: u32,
    /// Item of the line table.
    pub item: u32,
    /// Its number in the table of debug information, from 1.
    pub number: u32,
}

/// Code ready to be stored at an 8-aligned address.
#[derive(Default, Debug)]
pub struct Lowered {
    pub words: Vec<u64>,
    pub functions: Vec<LoweredFunction>,
    /// Offset of each label in words; `u32::MAX` for undefined labels.
    pub labels: Vec<u32>,
    /// Items of the line table, each with the offset at which it begins; sorted by offset.
    pub lines: Vec<(u32, u32)>,
    /// Facts about registers that instructions read; sorted by offset.
    pub facts: Vec<Fact>,
    /// The types that the facts refer to; empty if there are none.
    pub types: Vec<Type>,
    /// The counted lines, in order of their counters.
    pub counted: Vec<CountedLine>,
    /// The lines that can have breakpoints, in order of their offsets.
    pub debug_lines: Vec<DebugLine>,
    /// Entry of the function that runs when the module is loaded.
    pub on_load: Option<u32>,
}

/// Lowers the code of a file.
pub fn lower(file: &BeamFile, code: &GenericCode, env: &mut dyn Env) -> Result<Lowered, LoadError> {
    let lines_can_break = env.lines_can_break();
    let mut l = Lower {
        lines_can_break,
        entry: 0,
        types: file.type_table(),
        file,
        code,
        e: Emitter::new(code.labels.len()),
        env,
        out: Lowered::default(),
        live: 0,
        clear_frames: false,
        kept: flow::Kept::default(),
        guarded: Vec::new(),
        switched: Vec::new(),
        nif: false,
        places: 0,
        place: None,
        all_nifs: loads_library(file) && !code.instrs.iter().any(|i| i.op == g::NIF_START),
    };
    let arities = Arities::of(code);
    check_entries(file, &arities)?;
    for f in &code.functions {
        l.function(f, &arities)?;
    }
    if l.e.too_large || l.e.unfit {
        return Err(Fault::Encoding.into());
    }
    l.e.resolve();
    l.out.words = std::mem::take(&mut l.e.words);
    l.out.labels = std::mem::take(&mut l.e.labels);
    l.out.lines = std::mem::take(&mut l.e.lines);
    l.out.facts = std::mem::take(&mut l.e.facts);
    if !l.out.facts.is_empty() {
        l.out.types = l.types;
    }
    for (i, f) in code.functions.iter().enumerate() {
        l.out.functions[i].entry = l.out.labels[f.entry_label as usize];
    }
    Ok(l.out)
}

/// Whether other functions have run between the instruction and the next: it calls one, or catches
/// what one has thrown.
fn comes_back(i: &Instr) -> bool {
    let calls = matches!(
        i.op,
        g::CALL | g::CALL_EXT | g::CALL_FUN | g::CALL_FUN2 | g::APPLY
    );
    calls || matches!(i.op, g::TRY_CASE | g::CATCH_END)
}

/// Whether these are the operands of a `debug_line` for the head of a function, which can't have a
/// breakpoint.
fn is_function_line(file: &BeamFile, a: &[Operand]) -> bool {
    matches!(a[0], Operand::Atom(n) if file.atom(n) == "entry")
}

/// Whether it has a call of `erlang:load_nif/2`.
fn loads_library(file: &BeamFile) -> bool {
    let name = |n: u32| file.atoms.get((n as usize).wrapping_sub(1));
    let is = |n: u32, text: &str| name(n).is_some_and(|a| *a == text);
    file.imports
        .iter()
        .any(|i| i.arity == 2 && is(i.function, "load_nif") && is(i.module, "erlang"))
}

/// Arity of the function that starts at each entry label.
struct Arities(Vec<Option<u32>>);

impl Arities {
    fn of(code: &GenericCode) -> Arities {
        let mut all = vec![None; code.labels.len()];
        for f in &code.functions {
            all[f.entry_label as usize] = Some(f.arity);
        }
        Arities(all)
    }
    fn get(&self, label: u32) -> Option<u32> {
        *self.0.get(label as usize)?
    }
}

/// Checks that exports and funs refer to functions with the right number of arguments.
fn check_entries(file: &BeamFile, arities: &Arities) -> Result<(), LoadError> {
    let exports = file.exports.iter().map(|e| (e.label, e.arity));
    let lambdas = file.lambdas.iter().map(|l| (l.label, l.arity));
    for (label, arity) in exports.chain(lambdas) {
        if arities.get(label) != Some(arity) {
            return Err(Fault::NotFunction(label).into());
        }
    }
    Ok(())
}

struct Lower<'a> {
    /// See [`Env::lines_can_break`].
    lines_can_break: bool,
    /// Entry label of the function being lowered.
    entry: u32,
    types: Vec<Type>,
    file: &'a BeamFile<'a>,
    code: &'a GenericCode,
    e: Emitter,
    env: &'a mut dyn Env,
    out: Lowered,
    /// Arity of the function being lowered.
    live: u32,
    /// Whether its frames are cleared when they are made.
    clear_frames: bool,
    kept: flow::Kept,
    /// Its labels that control must not fall into.
    guarded: Vec<u32>,
    /// Its labels whose tests a preceding `type_switch` leads to.
    switched: Vec<u32>,
    /// Whether a native library may replace it.
    nif: bool,
    /// Number of places in the code with a `line` or `executable_line` of their own, as stock
    /// counts them.
    places: usize,
    /// Item of the line table of the last of them.
    place: Option<u32>,
    /// The module loads a library, and its compiler is of a version for which a library could
    /// replace any function.
    all_nifs: bool,
}

impl Lower<'_> {
    fn function(
        &mut self,
        f: &crate::generic::Function,
        arities: &Arities,
    ) -> Result<(), LoadError> {
        let start = self.e.here();
        self.e.barrier();
        self.live = f.arity;
        self.entry = f.entry_label;
        // Before its first `line`, the line of a function is unknown.
        self.e.line(0);
        let name = self.env.atom(f.name);
        let code = self.code;
        let instrs = &code.instrs[f.start as usize..f.end as usize];
        let breaks = self.lines_can_break;
        let flow = flow::check(self.file, code, f, arities, breaks, &mut self.kept)?;
        self.clear_frames = flow.clear_frames;
        self.guarded = flow.guarded;
        self.switched.clear();
        self.nif = false;
        let is_nif = self.all_nifs || instrs.iter().any(|i| i.op == g::NIF_START);
        let native = self.env.own_native(f.name, f.arity);
        let mut i = 0;
        while i < instrs.len() {
            let entry = instrs[i].op == g::LABEL
                && self.u(code.args(&instrs[i])[0]) == u64::from(f.entry_label);
            let used = self.instr(instrs, i)?;
            let came_back = instrs[i..i + used]
                .iter()
                .any(|i| comes_back(i) || breaks && i.op == g::DEBUG_LINE);
            i += used;
            if let (true, Some(export)) = (entry, native) {
                self.e
                    .op(Op::CallExtOnly, &[Arg::N(export), count(f.arity)]);
                continue;
            }
            if entry && is_nif {
                self.nif();
            }
            if entry && let Some(counter) = self.env.function_counter(self.out.functions.len()) {
                self.e.op(Op::CountRun, &[Arg::N(counter)]);
            }
            if (entry || came_back)
                && let Some(mark) = self.env.mark(self.out.functions.len())
            {
                self.e.op(Op::Running, &[Arg::N(mark)]);
            }
        }
        if flow.falls_off {
            self.e.op(Op::IfEnd, &[]);
        }
        self.out.functions.push(LoweredFunction {
            name,
            arity: f.arity,
            start,
            entry: start,
            end: self.e.here(),
            nif: self.nif,
        });
        Ok(())
    }

    /// Marks the place from which on a native library may replace the current function.
    fn nif(&mut self) {
        let slot = self.env.nif_slot(self.out.functions.len());
        self.e.op(Op::Nif, &[Arg::N(slot)]);
        self.e.barrier();
        self.nif = true;
    }

    /// Sets the item of the line table for the code that follows. It is a new place if `own`, or
    /// else part of the one before.
    fn place(&mut self, item: u32, own: bool) {
        if own || self.place != Some(item) {
            self.place = Some(item);
            self.places += 1;
        }
    }
    /// Begins a counted line, if lines are counted.
    fn count_line(&mut self, item: u32, id: u32) {
        let number = self.places - 1;
        let Some(counter) = self.env.line_counter(number) else {
            return;
        };
        self.e.op(Op::CountRun, &[Arg::N(counter)]);
        let line = CountedLine {
            counter: number as u32,
            function: self.out.functions.len() as u32,
            item,
            id,
        };
        match self.out.counted.last_mut() {
            // One counter for both: the last name counts.
            Some(last) if last.counter == line.counter => *last = line,
            _ => self.out.counted.push(line),
        }
    }

    /// Begins a line that can have a breakpoint. A breakpoint is set by the number of its
    /// instruction. So the instruction is not fused, and is not at the entry of a function, where
    /// tracing has its own breakpoints.
    fn debug_line(&mut self, a: &[Operand]) {
        let (item, number, live) = (self.u(a[1]) as u32, self.u(a[2]) as u32, self.h(a[3]));
        if self.e.labels[self.entry as usize] == self.e.here() {
            self.e.op(Op::DebugLine, &[live]);
        }
        self.e.barrier();
        self.e.line(item);
        self.out.debug_lines.push(DebugLine {
            at: self.e.here(),
            function: self.out.functions.len() as u32,
            item,
            number,
        });
        self.e.op(Op::DebugLine, &[live]);
        self.e.barrier();
    }

    /// Records the known types of registers that an instruction reads.
    fn note_types(&mut self, a: &[Operand]) {
        self.e.typed.clear();
        if self.types.is_empty() {
            return;
        }
        for o in a {
            self.note_type(*o);
            if let Operand::List { .. } = o {
                let code = self.code;
                for m in code.list(*o) {
                    self.note_type(*m);
                }
            }
        }
    }
    #[inline]
    fn note_type(&mut self, o: Operand) {
        let (register, of) = match o {
            Operand::TypedX(n, t) => (Arg::X(n), t),
            Operand::TypedY(n, t) => (Arg::Y(n), t),
            _ => return,
        };
        if let Ok(index) = u16::try_from(of)
            && self.types.get(of as usize).is_some_and(|t| !t.is_any())
        {
            self.e.typed.push((register, index));
        }
    }

    /// Returns a source as an operand.
    fn s(&mut self, o: Operand) -> Arg {
        match o.untyped() {
            Operand::X(n) => Arg::X(n),
            Operand::Y(n) => Arg::Y(n),
            Operand::Atom(n) => Arg::C(self.env.atom(n)),
            Operand::Nil => Arg::C(NIL),
            Operand::Int(v) => Arg::C(self.int(v)),
            Operand::BigInt(i) => Arg::C(self.env.bigint(&self.code.bigints[i as usize])),
            Operand::Literal(i) => Arg::C(self.env.literal(i)),
            Operand::U(n) => match i64::try_from(n) {
                Ok(v) => Arg::C(self.int(v)),
                Err(_) => Arg::C(self.env.bigint(&BigInt {
                    negative: false,
                    magnitude: n.to_le_bytes().to_vec(),
                })),
            },
            // A size that no memory holds: any bignum of that magnitude has the same effect.
            Operand::Huge => {
                let mut magnitude = vec![0; 9];
                magnitude[8] = 1;
                Arg::C(self.env.bigint(&BigInt {
                    negative: false,
                    magnitude,
                }))
            }
            Operand::Fr(n) => count(n * 8),
            Operand::Label(n) => Arg::L(n as i32),
            Operand::Alloc { .. }
            | Operand::List { .. }
            | Operand::TypedX(..)
            | Operand::TypedY(..) => Arg::C(NIL),
        }
    }
    fn int(&mut self, v: i64) -> u64 {
        if (-(1 << 59)..1 << 59).contains(&v) {
            return small(v);
        }
        let mut magnitude = v.unsigned_abs().to_le_bytes().to_vec();
        while magnitude.last() == Some(&0) {
            magnitude.pop();
        }
        self.env.bigint(&BigInt {
            negative: v < 0,
            magnitude,
        })
    }
    fn u(&self, o: Operand) -> u64 {
        match o {
            Operand::U(n) => n,
            _ => 0,
        }
    }
    /// Returns the words to reserve. A fun takes five words and its environment, which the compiler
    /// counts as words.
    fn heap(&self, o: Operand) -> Arg {
        match o {
            Operand::Alloc { .. } => count(alloc_words(o)),
            o => count(self.u(o) as u32),
        }
    }
    fn h(&self, o: Operand) -> Arg {
        count(self.u(o) as u32)
    }
    fn label(&self, o: Operand) -> Arg {
        match o {
            Operand::Label(n) => Arg::L(n as i32),
            _ => Arg::L(0),
        }
    }
    /// Returns a register for an op that takes registers only: constants pass through x1023, which
    /// no code uses across ops.
    fn r(&mut self, o: Operand) -> Arg {
        match self.s(o) {
            Arg::C(w) => {
                self.e.op(Op::Move, &[Arg::C(w), Arg::X(SCRATCH)]);
                Arg::X(SCRATCH)
            }
            a => a,
        }
    }
    fn list_words(&mut self, o: Operand) -> Vec<Arg> {
        let code = self.code;
        code.list(o).iter().map(|&m| self.s(m)).collect()
    }

    /// Whether a line between these two is ignored, as in stock: before a tail call of a function
    /// that is no native, if the first argument was moved just before.
    fn is_omitted_line(&mut self, before: Option<&Instr>, next: Option<&Instr>) -> bool {
        let (Some(b), Some(n)) = (before, next) else {
            return false;
        };
        if b.op != g::MOVE || self.code.args(b)[1] != Operand::X(0) {
            return false;
        }
        let a = self.code.args(n);
        match n.op {
            g::CALL_LAST | g::CALL_ONLY => true,
            g::CALL_EXT_LAST | g::CALL_EXT_ONLY => {
                self.apply(n, a).is_none() && !self.env.import(self.u(a[1]) as u32).built_in
            }
            _ => false,
        }
    }

    /// Lowers the instruction at `i`, perhaps together with following ones; returns their number.
    fn instr(&mut self, instrs: &[Instr], i: usize) -> Result<usize, LoadError> {
        let code = self.code;
        let ins = &instrs[i];
        let a = code.args(ins);
        let next = instrs.get(i + 1);
        let before = i.checked_sub(1).map(|k| &instrs[k]);
        self.note_types(a);
        if let Some(labels) = self.type_switch(before, ins) {
            let r = self.s(a[1]);
            let n = count(labels.len() as u32);
            self.e.op_list(Op::TypeSwitch, &[r, n], &labels);
        }
        match ins.op {
            g::LABEL => {
                let n = self.u(a[0]) as u32;
                // Control never falls into the entry of the function: `func_info` directly precedes
                // it, and never falls through.
                if n != self.entry && self.guarded.contains(&n) {
                    self.e.op(Op::IfEnd, &[]);
                }
                self.e.label(n as usize);
            }
            // Code after it without a line of its own gets the line of the code before it.
            g::LINE if self.is_omitted_line(before, next) => {}
            g::LINE => {
                let item = self.u(a[0]) as u32;
                self.e.line(item);
                // A function begins with a place of its own.
                self.place(item, next.is_some_and(|n| n.op == g::FUNC_INFO));
            }
            g::EXECUTABLE_LINE => {
                let (item, id) = (self.u(a[0]) as u32, self.u(a[1]) as u32);
                self.e.line(item);
                self.place(item, false);
                self.count_line(item, id);
            }
            g::FUNC_INFO => {
                let (m, f) = (self.s(a[0]), self.s(a[1]));
                self.e.op(
                    Op::FuncInfo,
                    &[Arg::N(m.word()), Arg::N(f.word()), self.h(a[2]), Arg::N(0)],
                );
            }
            g::INT_CODE_END | g::FCLEARERROR | g::FCHECKERROR => {}
            g::DEBUG_LINE => {
                if self.lines_can_break && !is_function_line(self.file, a) {
                    self.debug_line(a);
                }
            }
            g::ON_LOAD => {
                self.e.barrier();
                self.out.on_load = Some(self.e.here());
            }
            // The slot is at the entry of the function, wherever in the function this is.
            g::NIF_START => {}
            g::CALL => self.e.op(Op::Call, &[self.label(a[1]), self.h(a[0])]),
            g::CALL_LAST => self.e.op(
                Op::CallLast,
                &[self.label(a[1]), self.h(a[2]), self.h(a[0])],
            ),
            g::CALL_ONLY => self.e.op(Op::CallOnly, &[self.label(a[1]), self.h(a[0])]),
            g::CALL_EXT | g::CALL_EXT_ONLY | g::CALL_EXT_LAST => {
                let c = self.env.import(self.u(a[1]) as u32);
                let n = self.h(a[0]);
                let x = Arg::N(c.export);
                if let Some(op) = self.apply(ins, a) {
                    let frame = a.get(2).filter(|_| op != Op::Hibernate);
                    let frame = frame.map(|&f| self.h(f));
                    self.e.op(op, frame.as_slice());
                    return Ok(1);
                }
                match (ins.op, c.native) {
                    (g::CALL_EXT, None) => self.e.op(Op::CallExt, &[x, n]),
                    (g::CALL_EXT_ONLY, None) => self.e.op(Op::CallExtOnly, &[x, n]),
                    (_, None) => self.e.op(Op::CallExtLast, &[x, self.h(a[2]), n]),
                    (g::CALL_EXT, Some(f)) => {
                        let known = self.file.known(self.u(a[1]) as usize);
                        if let Some(Way::Before(op)) = known.map(|k| k.way) {
                            self.e.op(op, &[]);
                        }
                        self.e.op(Op::CallBif, &[x, Arg::N(f), n])
                    }
                    // The target of a native's trap returns to the frame: traces see it.
                    (g::CALL_EXT_ONLY, Some(f)) => {
                        self.e.op(Op::CallBifOnly, &[x, Arg::N(f), n]);
                        self.e.op(Op::DeallocateReturn, &[count(0)]);
                    }
                    (_, Some(f)) => {
                        let frame = self.h(a[2]);
                        self.e.op(Op::CallBifLast, &[x, Arg::N(f), frame, n]);
                        self.e.op(Op::DeallocateReturn, &[frame]);
                    }
                }
            }
            g::BIF0 => {
                let c = self.env.import(self.u(a[0]) as u32);
                let d = self.s(a[1]);
                self.e.op(Op::Bif0, &[Arg::N(c.guard), d]);
            }
            g::BIF1 => self.bif(Op::Bif1, a[0], a[1], &a[2..3], a[3], None),
            g::BIF2 => self.bif(Op::Bif2, a[0], a[1], &a[2..4], a[4], None),
            g::BIF3 => self.bif(Op::Bif3, a[0], a[1], &a[2..5], a[5], None),
            g::GC_BIF1 => self.bif(Op::Bif1, a[0], a[2], &a[3..4], a[4], Some(a[1])),
            g::GC_BIF2 => self.bif(Op::Bif2, a[0], a[2], &a[3..5], a[5], Some(a[1])),
            g::GC_BIF3 => self.bif(Op::Bif3, a[0], a[2], &a[3..6], a[6], Some(a[1])),
            g::ALLOCATE if !self.clear_frames => {
                self.e.op(Op::Allocate, &[self.h(a[0]), self.h(a[1])])
            }
            g::ALLOCATE | g::ALLOCATE_ZERO => {
                self.e.op(Op::AllocateZero, &[self.h(a[0]), self.h(a[1])])
            }
            g::ALLOCATE_HEAP if !self.clear_frames => self.e.op(
                Op::AllocateHeap,
                &[self.h(a[0]), self.heap(a[1]), self.h(a[2])],
            ),
            g::ALLOCATE_HEAP | g::ALLOCATE_HEAP_ZERO => self.e.op(
                Op::AllocateHeapZero,
                &[self.h(a[0]), self.heap(a[1]), self.h(a[2])],
            ),
            g::TEST_HEAP => self.e.op(Op::TestHeap, &[self.heap(a[0]), self.h(a[1])]),
            g::INIT => {
                let y = self.s(a[0]);
                self.e.op(Op::InitY, &[y]);
            }
            g::INIT_YREGS => {
                let ys = self.list_words(a[0]);
                if let &[y] = &ys[..] {
                    self.e.op(Op::InitY, &[y]);
                    return Ok(1);
                }
                let words = &ys;
                self.e
                    .op_list(Op::InitYs, &[count(words.len() as u32)], words);
            }
            g::DEALLOCATE => self.e.op(Op::Deallocate, &[self.h(a[0])]),
            g::TRIM => self.e.op(Op::Trim, &[self.h(a[0])]),
            g::RETURN => self.e.op(Op::Return, &[]),
            g::SEND => self.e.op(Op::Send, &[]),
            g::REMOVE_MESSAGE => self.e.op(Op::RemoveMessage, &[]),
            g::TIMEOUT => self.e.op(Op::Timeout, &[]),
            g::LOOP_REC => {
                let d = self.s(a[1]);
                self.e.op(Op::LoopRec, &[self.label(a[0]), d]);
            }
            g::LOOP_REC_END => self.e.op(Op::LoopRecEnd, &[self.label(a[0])]),
            g::WAIT => self.e.op(Op::Wait, &[self.label(a[0])]),
            g::WAIT_TIMEOUT => {
                let s = self.s(a[1]);
                self.e.op(Op::WaitTimeout, &[self.label(a[0]), s]);
            }
            // Markers without references (OTP 23 and before) only save time.
            g::RECV_MARK | g::RECV_SET => {}
            g::RECV_MARKER_BIND => self.ss(Op::RecvMarkerBind, &a[..2]),
            g::RECV_MARKER_CLEAR => self.ss(Op::RecvMarkerClear, &a[..1]),
            g::RECV_MARKER_RESERVE => self.ss(Op::RecvMarkerReserve, &a[..1]),
            g::RECV_MARKER_USE => self.ss(Op::RecvMarkerUse, &a[..1]),
            g::IS_LT => self.compare(Op::IsLt, a),
            g::IS_GE => self.compare(Op::IsGe, a),
            g::IS_EQ => self.compare(Op::IsEq, a),
            g::IS_NE => self.compare(Op::IsNe, a),
            g::IS_EQ_EXACT => self.exact(Op::IsEqExact, Op::IsEqImmed, a),
            g::IS_NE_EXACT => self.exact(Op::IsNeExact, Op::IsNeImmed, a),
            g::IS_INTEGER => self.test(Op::IsInteger, a),
            g::IS_FLOAT => self.test(Op::IsFloat, a),
            g::IS_NUMBER => self.test(Op::IsNumber, a),
            g::IS_ATOM => self.test(Op::IsAtom, a),
            g::IS_PID => self.test(Op::IsPid, a),
            g::IS_REFERENCE => self.test(Op::IsReference, a),
            g::IS_PORT => self.test(Op::IsPort, a),
            g::IS_NIL => self.test(Op::IsNil, a),
            g::IS_BINARY => self.test(Op::IsBinary, a),
            g::IS_BITSTR => self.test(Op::IsBitstr, a),
            g::IS_LIST => self.test(Op::IsList, a),
            g::IS_NONEMPTY_LIST => self.test(Op::IsNonemptyList, a),
            g::IS_BOOLEAN => self.test(Op::IsBoolean, a),
            g::IS_MAP => self.test(Op::IsMap, a),
            g::IS_FUNCTION => self.test(Op::IsFunction, a),
            g::IS_TUPLE => self.test(Op::IsTuple, a),
            g::TEST_ARITY => {
                let r = self.r(a[1]);
                let h = Arg::N(tuple_header(self.u(a[2])));
                self.e.op(Op::TestArity, &[self.label(a[0]), r, h]);
            }
            g::IS_TAGGED_TUPLE => {
                let r = self.r(a[1]);
                let tag = Arg::N(self.s(a[3]).word());
                self.e.op(
                    Op::IsTaggedTuple,
                    &[self.label(a[0]), r, Arg::N(tuple_header(self.u(a[2]))), tag],
                );
            }
            g::IS_FUNCTION2 => {
                let (f, n) = (self.s(a[1]), self.s(a[2]));
                self.e.op(Op::IsFunction2, &[self.label(a[0]), f, n]);
            }
            g::SELECT_VAL => self.select_val(a),
            g::SELECT_TUPLE_ARITY => {
                let r = self.r(a[0]);
                let words: Vec<Arg> = code
                    .list(a[2])
                    .iter()
                    .map(|&m| match m {
                        Operand::U(n) => Arg::N(tuple_header(n)),
                        o => self.label(o),
                    })
                    .collect();
                self.e.op_list(
                    Op::SelectArity,
                    &[r, self.label(a[1]), count(words.len() as u32)],
                    &words,
                );
            }
            g::JUMP if matches!(a[0], Operand::Label(l) if flow::is_handler(code, l)) => {
                self.e.op(Op::IfEnd, &[])
            }
            g::JUMP => self.e.op(Op::Jump, &[self.label(a[0])]),
            g::CATCH | g::TRY => {
                let y = self.s(a[0]);
                self.e.op(Op::Catch, &[y, self.label(a[1])]);
            }
            g::CATCH_END => self.ss(Op::CatchEnd, &a[..1]),
            g::TRY_END => self.ss(Op::TryEnd, &a[..1]),
            g::TRY_CASE => self.ss(Op::TryCase, &a[..1]),
            g::MOVE => self.ss(Op::Move, &a[..2]),
            g::SWAP => self.ss(Op::Swap, &a[..2]),
            g::GET_LIST => {
                let r = self.r(a[0]);
                let (h, t) = (self.s(a[1]), self.s(a[2]));
                self.e.op(Op::GetList, &[r, h, t]);
            }
            g::GET_HD => self.ss(Op::GetHd, &a[..2]),
            g::GET_TL => self.ss(Op::GetTl, &a[..2]),
            g::GET_TUPLE_ELEMENT => self.tuple_element(a),
            g::SET_TUPLE_ELEMENT => {
                let (v, t) = (self.s(a[0]), self.s(a[1]));
                let at = count(self.offset(self.u(a[2])));
                self.e.op(Op::SetTupleElement, &[v, t, at]);
            }
            g::PUT_LIST => self.ss(Op::PutList, &a[..3]),
            g::PUT_TUPLE => {
                let n = self.u(a[0]) as usize;
                let d = self.s(a[1]);
                let mut words = Vec::with_capacity(n);
                for k in 1..=n {
                    match instrs.get(i + k) {
                        Some(p) if p.op == g::PUT => {
                            let s = self.s(code.args(p)[0]);
                            // The elements are read before the tuple exists.
                            if s == d {
                                return Err(Fault::Operand(1).into());
                            }
                            words.push(s);
                        }
                        _ => return Err(Fault::FunctionStructure.into()),
                    }
                }
                self.put_tuple(d, &words);
                return Ok(1 + n);
            }
            g::PUT => return Err(Fault::FunctionStructure.into()),
            g::PUT_TUPLE2 => {
                let d = self.s(a[0]);
                let elements = self.list_words(a[1]);
                self.put_tuple(d, &elements);
            }
            g::UPDATE_RECORD => {
                let (s, d) = (self.s(a[2]), self.s(a[3]));
                let words: Vec<Arg> = code
                    .list(a[4])
                    .iter()
                    .map(|&m| match m {
                        Operand::U(n) => Arg::N(n),
                        o => self.s(o),
                    })
                    .collect();
                let n = count(words.len() as u32 / 2);
                let size = count(self.u(a[1]) as u32);
                self.e.op_list(Op::UpdateRecord, &[s, d, size, n], &words);
            }
            g::BADMATCH => self.ss(Op::Badmatch, &a[..1]),
            g::CASE_END => self.ss(Op::CaseEnd, &a[..1]),
            g::TRY_CASE_END => self.ss(Op::TryCaseEnd, &a[..1]),
            g::BADRECORD => self.ss(Op::Badrecord, &a[..1]),
            g::IF_END => self.e.op(Op::IfEnd, &[]),
            g::RAISE => self.ss(Op::Raise, &a[..2]),
            g::RAW_RAISE => self.e.op(Op::RawRaise, &[]),
            g::BUILD_STACKTRACE => self.e.op(Op::BuildStacktrace, &[]),
            g::CALL_FUN | g::CALL_FUN2 => {
                let new = ins.op == g::CALL_FUN2;
                let n = self.h(a[usize::from(new)]);
                let f = if new { self.s(a[2]) } else { n };
                // A call followed by a return is a tail call: a loop through a fun must not grow
                // the stack.
                let tail = next
                    .filter(|d| d.op == g::DEALLOCATE)
                    .filter(|_| instrs.get(i + 2).is_some_and(|r| r.op == g::RETURN));
                let frame = tail.map(|d| self.h(code.args(d)[0]));
                match (new, frame) {
                    (false, None) => self.e.op(Op::CallFun, &[n]),
                    (true, None) => self.e.op(Op::CallFun2, &[n, f]),
                    (false, Some(d)) => self.e.op(Op::CallFunLast, &[n, d]),
                    (true, Some(d)) => self.e.op(Op::CallFun2Last, &[n, f, d]),
                }
                return Ok(if frame.is_some() { 3 } else { 1 });
            }
            g::APPLY => self.e.op(Op::Apply, &[self.h(a[0])]),
            g::APPLY_LAST => self.e.op(Op::ApplyLast, &[self.h(a[1]), self.h(a[0])]),
            g::MAKE_FUN2 => {
                let n = self.u(a[0]) as u32;
                let free = self.file.lambdas[n as usize].num_free;
                let f = Arg::N(self.env.lambda(n));
                let words: Vec<Arg> = (0..free).map(Arg::X).collect();
                // Here the instruction itself reserves the words.
                self.e
                    .op(Op::TestHeap, &[count(FUN_WORDS + free), count(free)]);
                self.e
                    .op_list(Op::MakeFun, &[f, Arg::X(0), count(free)], &words);
            }
            g::MAKE_FUN3 => {
                let f = Arg::N(self.env.lambda(self.u(a[0]) as u32));
                let d = self.s(a[1]);
                let words = self.list_words(a[2]);
                self.e
                    .op_list(Op::MakeFun, &[f, d, count(words.len() as u32)], &words);
            }
            g::FMOVE => match (a[0], a[1]) {
                (Operand::Fr(x), Operand::Fr(y)) => {
                    self.e.op(Op::FMove, &[count(x * 8), count(y * 8)])
                }
                (Operand::Fr(_), _) => self.ss(Op::FStore, &a[..2]),
                (_, Operand::Fr(_)) => self.ss(Op::FLoad, &a[..2]),
                // It moves from or to a float register.
                _ => return Err(Fault::Operand(2).into()),
            },
            g::FCONV => self.ss(Op::FConv, &a[..2]),
            g::FADD => self.ss(Op::FAdd, &a[1..4]),
            g::FSUB => self.ss(Op::FSub, &a[1..4]),
            g::FMUL => self.ss(Op::FMul, &a[1..4]),
            g::FDIV => self.ss(Op::FDiv, &a[1..4]),
            g::FNEGATE => self.ss(Op::FNegate, &a[1..3]),
            g::PUT_MAP_ASSOC => self.put_map(Op::PutMapAssoc, a),
            g::PUT_MAP_EXACT => self.put_map(Op::PutMapExact, a),
            g::HAS_MAP_FIELDS => self.map_list(Op::HasMapFields, a),
            g::GET_MAP_ELEMENTS => self.map_list(Op::GetMapElements, a),
            g::BS_INIT2 | g::BS_INIT_BITS | g::BS_APPEND | g::BS_PRIVATE_APPEND
                if let Some(n) = bits::sequence(self, instrs, i) =>
            {
                return Ok(n);
            }
            op if bits::lower(self, op, a) => {}
            g::IS_ANY_NATIVE_RECORD
            | g::IS_NATIVE_RECORD
            | g::IS_RECORD_ACCESSIBLE
            | g::GET_RECORD_ELEMENTS
            | g::GET_RECORD_FIELD
            | g::PUT_RECORD => records::lower(self, ins.op, a)?,
            op => return Err(Fault::UnknownOpcode(op).into()),
        }
        Ok(1)
    }

    /// Returns the op of a tail call of `erlang:apply`, or of `erlang:hibernate`, which never
    /// returns: as an op of the caller it shows the caller in stack traces.
    fn apply(&self, ins: &Instr, a: &[Operand]) -> Option<Op> {
        let import = self.u(a[1]) as usize;
        let k = self.file.known(import)?;
        match (k.way, ins.op, k.arity) {
            (Way::Tail(op), _, _) => Some(op),
            (Way::Apply, g::CALL_EXT_ONLY, 3) => Some(Op::IApply),
            (Way::Apply, g::CALL_EXT_ONLY, _) => Some(Op::IApplyFun),
            (Way::Apply, g::CALL_EXT_LAST, 3) => Some(Op::IApplyLast),
            (Way::Apply, g::CALL_EXT_LAST, _) => Some(Op::IApplyFunLast),
            _ => None,
        }
    }

    /// Emits an op whose operands are sources and registers only.
    fn ss(&mut self, op: Op, a: &[Operand]) {
        let v: Vec<Arg> = a.iter().map(|&o| self.s(o)).collect();
        self.e.op(op, &v);
    }
    fn compare(&mut self, op: Op, a: &[Operand]) {
        let (x, y) = (self.s(a[1]), self.s(a[2]));
        self.e.op(op, &[self.label(a[0]), x, y]);
    }
    fn exact(&mut self, op: Op, immed: Op, a: &[Operand]) {
        let (x, y) = (self.s(a[1]), self.s(a[2]));
        match (x, y) {
            (Arg::X(_) | Arg::Y(_), Arg::C(w)) if is_immed_word(w) => {
                self.e.op(immed, &[self.label(a[0]), x, Arg::N(w)])
            }
            (Arg::C(w), Arg::X(_) | Arg::Y(_)) if is_immed_word(w) => {
                self.e.op(immed, &[self.label(a[0]), y, Arg::N(w)])
            }
            _ => self.e.op(op, &[self.label(a[0]), x, y]),
        }
    }
    fn test(&mut self, op: Op, a: &[Operand]) {
        let r = self.r(a[1]);
        self.e.op(op, &[self.label(a[0]), r]);
    }
    fn bif(
        &mut self,
        op: Op,
        fail: Operand,
        import: Operand,
        args: &[Operand],
        dst: Operand,
        live: Option<Operand>,
    ) {
        let index = self.u(import) as u32;
        // If the instruction doesn't say which registers are live, nothing is collected after it.
        let live = live.map_or(Arg::N(NO_LIVE as u64), |l| self.h(l));
        let v: Vec<Arg> = args.iter().map(|&o| self.s(o)).collect();
        let d = self.s(dst);
        let fail = self.label(fail);
        let known = self.file.known(index as usize);
        let known = known.filter(|k| usize::from(k.arity) == v.len());
        match known.map(|k| k.way) {
            Some(Way::Arith(n)) => {
                self.arith(n, &v, fail, d, live);
                return;
            }
            Some(way) => self.shortcut(way, &v, d),
            None => {}
        }
        let op = match known.map(|k| k.way) {
            Some(Way::Of(Op::FastLength)) => Op::Length,
            _ => op,
        };
        let c = self.env.import(index);
        let mut all = vec![fail, Arg::N(c.guard)];
        all.extend(v);
        all.extend([d, Arg::N(c.export), live]);
        self.e.op(op, &all);
    }
    /// Emits the op of operation `n` of [`purlin_isa::ops::arith`].
    fn arith(&mut self, n: usize, v: &[Arg], fail: Arg, d: Arg, live: Arg) {
        const ARITH: [Op; 10] = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::IntDiv,
            Op::Rem,
            Op::Band,
            Op::Bor,
            Op::Bxor,
            Op::Bsl,
            Op::Bsr,
        ];
        match (ARITH.get(n), v) {
            (Some(&op), &[x, y]) => self.e.op(op, &[fail, x, y, d, live]),
            (_, &[x]) => {
                let zero = Arg::C(small(0));
                let n = count(n as u32);
                self.e.op(Op::Arith, &[fail, zero, x, d, n, live]);
            }
            _ => {}
        }
    }
    /// Emits a shortcut before a `bif` op, if there is one for its operands.
    fn shortcut(&mut self, way: Way, v: &[Arg], d: Arg) {
        let reg = |a: Arg| matches!(a, Arg::X(_) | Arg::Y(_));
        match (way, v) {
            (Way::Element, &[Arg::C(n), t]) if reg(t) && is_small_word(n) => {
                let i = (n as i64) >> 4;
                if (1..8000).contains(&i) {
                    self.e.op(Op::FastElement, &[t, count(i as u32 * 8), d]);
                }
            }
            (Way::Element, &[n, t]) if reg(n) && reg(t) => {
                self.e.op(Op::FastElementOf, &[t, n, d]);
            }
            (Way::OfMap(op), &[k, m]) if reg(m) => self.e.op(op, &[m, k, d]),
            (Way::Compare(n), &[x, y]) => {
                self.e.op(Op::FastCompare, &[x, y, d, count(n as u32)]);
            }
            (Way::Of(op), &[t]) if reg(t) => self.e.op(op, &[t, d]),
            _ => {}
        }
    }
    /// Returns the offset of element `n` in a tuple, in bytes.
    fn offset(&mut self, n: u64) -> u32 {
        let at = n.checked_add(1).and_then(|n| n.checked_mul(8));
        match at.and_then(|at| u32::try_from(at).ok()) {
            Some(at) => at,
            None => {
                self.e.too_large = true;
                0
            }
        }
    }
    fn tuple_element(&mut self, a: &[Operand]) {
        let r = self.r(a[0]);
        let d = self.s(a[2]);
        let offset = self.offset(self.u(a[1]));
        match u16::try_from(offset) {
            Ok(at) => self.e.op(Op::GetTupleElement, &[r, count(at.into()), d]),
            Err(_) => self.e.op(Op::GetTupleElementFar, &[r, d, count(offset)]),
        }
    }
    fn put_tuple(&mut self, d: Arg, elements: &[Arg]) {
        match *elements {
            [x, y] => self.e.op(Op::PutTuple2, &[x, y, d]),
            [x, y, z] => self.e.op(Op::PutTuple3, &[x, y, z, d]),
            _ => {
                let words = elements;
                let n = count(words.len() as u32);
                self.e.op_list(Op::PutTuple, &[d, n], words);
            }
        }
    }
    fn select_val(&mut self, a: &[Operand]) {
        let code = self.code;
        let fail = self.label(a[1]);
        let members = code.list(a[2]);
        let mut pairs: Vec<(u64, Arg)> = Vec::with_capacity(members.len() / 2);
        for p in members.chunks(2) {
            pairs.push((self.s(p[0]).word(), self.label(p[1])));
        }
        // As in stock the first of two equal values wins.
        if pairs.iter().any(|p| !is_immed_word(p.0)) {
            let mut seen = HashSet::new();
            pairs.retain(|p| seen.insert(p.0));
            let s = self.s(a[0]);
            let words: Vec<Arg> = pairs.iter().flat_map(|p| [Arg::N(p.0), p.1]).collect();
            self.e.op_list(
                Op::SelectLinear,
                &[s, fail, count(words.len() as u32)],
                &words,
            );
            return;
        }
        pairs.sort_by_key(|p| p.0);
        pairs.dedup_by_key(|p| p.0);
        let r = self.r(a[0]);
        let smalls = pairs.iter().all(|p| is_small_word(p.0));
        if smalls && pairs.len() >= 3 {
            let vs: Vec<i64> = pairs.iter().map(|p| (p.0 as i64) >> SMALL_SHIFT).collect();
            let (lo, hi) = vs
                .iter()
                .fold((i64::MAX, i64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
            let span = (hi as i128 - lo as i128) as u128 + 1;
            // A table distinguishes characters without a branch that is hard to predict.
            let few = if pairs.len() > 3 { 64 } else { 0 };
            if span <= few.max(3 * pairs.len() as u128) {
                let mut table = vec![Arg::L(0); span as usize];
                for (v, p) in vs.iter().zip(&pairs) {
                    table[(v - lo) as usize] = p.1;
                }
                self.e.op_list(
                    Op::JumpTable,
                    &[r, fail, Arg::N(lo as u64), count(span as u32)],
                    &table,
                );
                return;
            }
        }
        let mut words: Vec<Arg> = pairs.iter().map(|p| Arg::N(p.0)).collect();
        words.extend(pairs.iter().map(|p| p.1));
        self.e
            .op_list(Op::SelectVal, &[r, fail, count(pairs.len() as u32)], &words);
    }
    fn put_map(&mut self, op: Op, a: &[Operand]) {
        let (s, d) = (self.s(a[1]), self.s(a[2]));
        let list = self.list_words(a[4]);
        let words = &list;
        if let (Op::PutMapAssoc, Arg::C(map)) = (op, s)
            && let Some(keys) = list
                .chunks_exact(2)
                .map(|pair| match pair[0] {
                    Arg::C(word) => Some(word),
                    _ => None,
                })
                .collect::<Option<Vec<u64>>>()
            && let Some((keys, order)) = self.env.map_keys(map, &keys)
        {
            let value = |v: &MapValue| match *v {
                MapValue::Put(i) => words[2 * i + 1],
                MapValue::Old(word) => Arg::N(word),
            };
            let values: Vec<Arg> = order.iter().map(value).collect();
            let n = count(values.len() as u32);
            self.e
                .op_list(Op::NewMap, &[Arg::C(keys), d, self.h(a[3]), n], &values);
            return;
        }
        let n = count(words.len() as u32);
        self.e
            .op_list(op, &[self.label(a[0]), s, d, self.h(a[3]), n], words);
    }
    fn map_list(&mut self, op: Op, a: &[Operand]) {
        let s = self.s(a[1]);
        let words = self.list_words(a[2]);
        let n = count(words.len() as u32);
        self.e.op_list(op, &[self.label(a[0]), s, n], &words);
    }
}

/// The X register that lowering itself uses within one instruction.
const SCRATCH: u32 = 1023;
const NIL: u64 = purlin_term::word::NIL_WORD;
const FUN_WORDS: u32 = purlin_term::layout::FUN_WORDS as u32;

/// Returns the words that an operand of kind `Alloc` reserves. Its decoder has bounded them.
fn alloc_words(o: Operand) -> u32 {
    match o {
        Operand::Alloc {
            words,
            floats,
            funs,
        } => words
            .saturating_add(floats.saturating_mul(2))
            .saturating_add(funs.saturating_mul(FUN_WORDS)),
        Operand::U(n) => u32::try_from(n).unwrap_or(u32::MAX),
        _ => 0,
    }
}

fn small(v: i64) -> u64 {
    ((v as u64) << 4) | purlin_term::word::TAG_SMALL
}
fn tuple_header(n: u64) -> u64 {
    purlin_term::word::header(purlin_term::word::Subtag::Tuple, n as usize)
}
