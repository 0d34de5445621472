//! From generic instructions to specific ones: chooses variants, packs operands, resolves labels.
//!
//! Knowledge of the runtime (words of atoms and literals, addresses of exports, natives and fun
//! entries) comes from an [`Env`]. The result needs no relocation: it has absolute words and
//! relative jumps.

mod bit_ops;
mod branches;
mod call_ops;
mod chain;
mod control;
mod data;
mod emit;
mod flow;
mod fuse;
mod interface;
mod lowering;
mod record_ops;
mod words;

use crate::error::{Fault, LoadError};
use crate::file::BeamFile;
use crate::generic::{GenericCode, Instr, Operand};
use emit::{Arg, Emitter, count};
use flow::{Arities, is_function_line};
pub use flow::{AtLabel, states};
pub use interface::{Callee, CountedLine, DebugLine, Env, Lowered, LoweredFunction, MapValue};
use lowering::Lower;
use purlin_isa::genops::{self as g};
use purlin_isa::ops::Op;

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

/// Whether it has a call of `erlang:load_nif/2`.
fn loads_library(file: &BeamFile) -> bool {
    let name = |n: u32| file.atoms.get((n as usize).wrapping_sub(1));
    let is = |n: u32, text: &str| name(n).is_some_and(|a| *a == text);
    file.imports
        .iter()
        .any(|i| i.arity == 2 && is(i.function, "load_nif") && is(i.module, "erlang"))
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
            g::BS_INIT2 | g::BS_INIT_BITS | g::BS_APPEND | g::BS_PRIVATE_APPEND
                if let Some(n) = bit_ops::sequence(self, instrs, i) =>
            {
                return Ok(n);
            }
            _ if let Some(n) = self.call(instrs, i) => return Ok(n),
            _ if let Some(n) = self.data(instrs, i)? => return Ok(n),
            op if self.control(op, a) || self.branch(op, a) || bit_ops::lower(self, op, a) => {}
            g::IS_ANY_NATIVE_RECORD
            | g::IS_NATIVE_RECORD
            | g::IS_RECORD_ACCESSIBLE
            | g::GET_RECORD_ELEMENTS
            | g::GET_RECORD_FIELD
            | g::PUT_RECORD => record_ops::lower(self, ins.op, a)?,
            op => return Err(Fault::UnknownOpcode(op).into()),
        }
        Ok(1)
    }
}
