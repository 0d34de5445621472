//! A function of loaded code as compilers and printers need it: its instructions with operands,
//! parts and types, the frame and the live registers at each, and its lines.
//!
//! All of this follows from the words and the rows, so nothing has to store it. Sets of registers
//! are bit sets, as wide as the function needs.

use crate::codec::{Instruction, Members, Operands, Value};
use crate::contract::{PartArg, Stack, Xs};
use crate::ops::{Kind, NO_LIVE, Op, Role, SpecOp};
use crate::types::{Fact, Type};

/// The frame at the start of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Control never gets there.
    Unreached,
    None,
    /// It has this number of Y registers.
    Of(u32),
    /// Its size depends on the path, and is at least this: only code that raises follows.
    AtLeast(u32),
}

/// The code that a function is part of.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    /// All words of the module, or as many as the function needs.
    pub words: &'a [u64],
    /// Items of the line table, each with the offset at which it begins; sorted by offset.
    pub lines: &'a [(u32, u32)],
    /// Facts about registers; sorted by offset.
    pub facts: &'a [Fact],
    /// The types that the facts refer to.
    pub types: &'a [Type],
}

/// The extent of a function. Offsets are in words.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Offset of `func_info`.
    pub start: u32,
    /// Offset at which calls enter.
    pub entry: u32,
    pub end: u32,
    pub arity: u32,
}

/// An instruction of a function.
#[derive(Clone, Copy, Debug)]
pub struct OpView<'a> {
    /// Its offset in the module's code, in words.
    pub at: u32,
    pub instruction: Instruction<'a>,
    /// Item of the line table that applies to it.
    pub line: u32,
    pub frame: Frame,
}

/// A function. See the head of this file.
pub struct FunctionView<'a> {
    pub extent: Extent,
    /// Its instructions, `func_info` first.
    pub ops: Vec<OpView<'a>>,
    /// Index of the first instruction that calls run.
    pub entry: usize,
    code: Code<'a>,
    /// For each word from the start on, the index of the instruction that begins there.
    index: Vec<u32>,
    /// Words of a set of X registers, and of one of Y registers.
    width: (usize, usize),
    /// The live sets of each instruction, X before Y.
    live: Vec<u64>,
}

const NOTHING: u32 = u32::MAX;

impl<'a> FunctionView<'a> {
    /// Decodes the function at that extent; `None` if the words are no code.
    pub fn new(code: Code<'a>, extent: Extent) -> Option<FunctionView<'a>> {
        let (start, end) = (extent.start as usize, extent.end as usize);
        let words = code.words.get(..end)?;
        let mut ops = Vec::with_capacity((end.checked_sub(start)?) / 2);
        let mut index = vec![NOTHING; end - start];
        let mut line = code.lines.partition_point(|l| l.0 <= extent.start);
        let mut at = start;
        while at < end {
            let instruction = Instruction::at(words, at)?;
            while code.lines.get(line).is_some_and(|l| l.0 as usize <= at) {
                line += 1;
            }
            index[at - start] = ops.len() as u32;
            ops.push(OpView {
                at: at as u32,
                instruction,
                line: line.checked_sub(1).map_or(0, |i| code.lines[i].1),
                frame: Frame::Unreached,
            });
            at += instruction.words;
        }
        let entry = (extent.entry as usize).checked_sub(start)?;
        let entry = *index.get(entry).filter(|&&i| i != NOTHING)? as usize;
        let mut view = FunctionView {
            extent,
            ops,
            entry,
            code,
            index,
            width: (1, 1),
            live: Vec::new(),
        };
        let handlers = view.frames()?;
        view.liveness(&handlers)?;
        Some(view)
    }

    /// Returns the index of the instruction that a label of instruction `i` refers to.
    pub fn target(&self, i: usize, label: i32) -> Option<usize> {
        let at = i64::from(self.ops.get(i)?.at) + i64::from(label);
        let word = usize::try_from(at - i64::from(self.extent.start)).ok()?;
        let found = *self.index.get(word)?;
        (found != NOTHING).then_some(found as usize)
    }

    /// Returns the type of an operand at the start of instruction `i`, which reads it; `None` if
    /// nothing is known.
    pub fn type_of(&self, i: usize, operand: Value) -> Option<&'a Type> {
        let register = Fact::register(operand)?;
        let at = self.ops.get(i)?.at;
        let from = self.code.facts.partition_point(|f| f.at < at);
        let mut all = self.code.facts[from..].iter().take_while(|f| f.at == at);
        let fact = all.find(|f| f.register == register)?;
        self.code.types.get(fact.of as usize)
    }

    /// Whether a register may be read before it is written, from instruction `i` on.
    pub fn is_live(&self, i: usize, register: Value) -> bool {
        let all = self.live_at(i);
        match register {
            Value::X(n) => has(&all[..self.width.0], n as usize),
            Value::Y(n) => has(&all[self.width.0..], n as usize),
            _ => false,
        }
    }
    /// Returns the X registers that are live at the start of instruction `i`.
    pub fn live_x(&self, i: usize) -> impl Iterator<Item = u32> + '_ {
        bits(&self.live_at(i)[..self.width.0])
    }
    /// Returns the Y registers that are live at the start of instruction `i`.
    pub fn live_y(&self, i: usize) -> impl Iterator<Item = u32> + '_ {
        bits(&self.live_at(i)[self.width.0..])
    }
    fn live_at(&self, i: usize) -> &[u64] {
        let w = self.width.0 + self.width.1;
        &self.live[i * w..(i + 1) * w]
    }

    /// Returns the instructions that may run after `i`, without exception handlers and other
    /// functions.
    pub fn successors(&self, i: usize) -> Vec<usize> {
        let mut out = Vec::new();
        let Some(op) = self.ops.get(i) else {
            return out;
        };
        let row = op.instruction.row();
        if !row.effects.ends {
            out.push(i + 1);
        }
        if row.contract.skips.is_some() {
            out.push(i + 2);
        }
        let labels = labels(row, &op.instruction.operands);
        let listed = op
            .instruction
            .members()
            .map_or_else(Vec::new, |m| m.labels());
        out.extend(labels.chain(listed).filter_map(|l| self.target(i, l)));
        out.retain(|&t| t < self.ops.len());
        out
    }

    /// Computes the frame at each instruction. Returns the exception handlers that are active
    /// there, as lists of register and index.
    fn frames(&mut self) -> Option<Vec<Vec<(u32, usize)>>> {
        let n = self.ops.len();
        let mut handlers: Vec<Vec<(u32, usize)>> = vec![Vec::new(); n];
        let mut todo = Vec::new();
        self.ops[self.entry].frame = Frame::None;
        todo.push(self.entry);
        while let Some(i) = todo.pop() {
            let op = self.ops[i];
            let mut frame = op.frame;
            let mut marks = handlers[i].clone();
            let mut handler = None;
            for (part, operands) in op.instruction.parts() {
                let row = part.row();
                if marks
                    .iter()
                    .any(|m| written(row, &operands).any(|v| v == Value::Y(m.0)))
                {
                    marks.retain(|m| !written(row, &operands).any(|v| v == Value::Y(m.0)));
                }
                if let Some(k) = row.of_role(Role::Handler)
                    && let (Value::L(l), Some(Value::Y(y))) =
                        (operands[k], written(row, &operands).next())
                {
                    handler = Some(self.target(i, l)?);
                    marks.push((y, handler?));
                }
                frame = after(frame, row, &operands)?;
            }
            let mut reach = |ops: &mut Vec<OpView>, to: usize| {
                let old = (ops[to].frame, handlers[to].len());
                ops[to].frame = common_frame(old.0, frame);
                for m in &marks {
                    if !handlers[to].contains(m) {
                        handlers[to].push(*m);
                    }
                }
                if old != (ops[to].frame, handlers[to].len()) {
                    todo.push(to);
                }
            };
            for to in self.successors(i).into_iter().chain(handler) {
                reach(&mut self.ops, to);
            }
        }
        Some(handlers)
    }

    /// Computes the live registers, from the last instruction to the first, repeatedly until
    /// nothing changes.
    fn liveness(&mut self, handlers: &[Vec<(u32, usize)>]) -> Option<()> {
        let most = self.most_registers();
        self.width = (most.0.div_ceil(64).max(1), most.1.div_ceil(64).max(1));
        let (wx, w) = (self.width.0, self.width.0 + self.width.1);
        self.live = vec![0; self.ops.len() * w];
        let mut set = vec![0; w];
        let mut again = true;
        while again {
            again = false;
            for i in (0..self.ops.len()).rev() {
                set.fill(0);
                self.flow_back(i, handlers, &mut set, wx);
                let at = &mut self.live[i * w..(i + 1) * w];
                if at != &set[..] {
                    at.copy_from_slice(&set);
                    // Only a backward jump makes another round necessary.
                    again = true;
                }
            }
        }
        Some(())
    }

    /// Returns bounds on the numbers of X and of Y registers that the function names.
    fn most_registers(&self) -> (usize, usize) {
        // Arguments, and the registers that exceptions and natives use.
        let mut x = (self.extent.arity as usize).max(4);
        let mut y = 0;
        let mut note = |v: &Value| match *v {
            Value::X(n) => x = x.max(n as usize + 1),
            Value::Y(n) => y = y.max(n as usize + 1),
            _ => {}
        };
        let mut counted = 0;
        for op in &self.ops {
            let i = &op.instruction;
            i.operands.iter().for_each(&mut note);
            if let Some(m) = i.members() {
                m.reads().iter().chain(&m.writes()).for_each(&mut note);
            }
            for (o, v) in i.row().operands.iter().zip(&i.operands[..]) {
                if let (Kind::Live | Kind::Arity | Kind::Frame, Value::N(n)) = (o.kind, *v)
                    && n != NO_LIVE as u64
                {
                    counted = counted.max(n as usize);
                }
            }
        }
        // A call may read two registers after its arguments.
        (x.max(counted + 3).min(1024), y.max(counted).min(1024))
    }

    /// Computes the registers that are live at the start of instruction `i`, from those of the
    /// instructions after it.
    fn flow_back(&self, i: usize, handlers: &[Vec<(u32, usize)>], set: &mut [u64], wx: usize) {
        let op = &self.ops[i];
        let row = op.instruction.row();
        let join = |set: &mut [u64], to: usize| {
            let from = self.live_at(to);
            set.iter_mut().zip(from).for_each(|(a, b)| *a |= b);
        };
        let n = self.ops.len();
        let skipped = row.contract.skips.is_some();
        let next = i + 1 + usize::from(skipped);
        if (!row.effects.ends || skipped) && next < n {
            join(set, next);
        }
        let members = op.instruction.members();
        let parts: Vec<(Op, Operands)> = op.instruction.parts().collect();
        for (part_index, (part, operands)) in parts.iter().enumerate().rev() {
            let row = part.row();
            let c = &row.contract;
            let listed = members.as_ref().filter(|_| part_index + 1 == parts.len());
            let (x, y) = set.split_at_mut(wx);
            // Remove the registers that are written or lost.
            for v in written(row, operands) {
                remove(x, y, v);
            }
            for v in listed.map_or_else(Vec::new, Members::writes) {
                remove(x, y, v);
            }
            let live = surviving(row, operands);
            match (c.writes, row.effects) {
                (Xs::All, _) => x.fill(0),
                (_, e) if e.calls && !e.ends && live.is_none() => x.fill(0),
                (Xs::First(n), _) => (0..n.into()).for_each(|k| clear(x, k)),
                _ => {}
            }
            if let Some(n) = live {
                keep(x, n);
            }
            match c.stack {
                Stack::Same | Stack::Other => {}
                // The registers of a new frame are not live before it, and those of a dropped one
                // are not live after it.
                Stack::Push | Stack::Pop => y.fill(0),
                Stack::Trim => {
                    let n = counted(operands, row.frame()) as usize;
                    let old: Vec<u32> = bits(y).collect();
                    y.fill(0);
                    old.iter().for_each(|&k| add(y, k as usize + n));
                }
            }
            // Add the live registers of jump targets, which are reached before the op writes.
            for l in labels(row, operands) {
                if let Some(to) = self.target(i, l) {
                    join(set, to);
                }
            }
            for l in listed.map_or_else(Vec::new, Members::labels) {
                if let Some(to) = self.target(i, l) {
                    join(set, to);
                }
            }
            if skipped && i + 1 < n {
                join(set, i + 1);
            }
            let e = row.effects;
            if e.fails || e.calls || e.collects || e.yields {
                let (x, y) = set.split_at_mut(wx);
                for &(mark, to) in &handlers[i] {
                    let from = &self.live_at(to)[x.len()..];
                    y.iter_mut().zip(from).for_each(|(a, b)| *a |= b);
                    add(y, mark as usize);
                }
            }
            // Add the registers that are read.
            let (x, y) = set.split_at_mut(wx);
            for (o, &v) in row.operands.iter().zip(&operands[..]) {
                if matches!(o.kind.role(), Role::Read | Role::Changed) {
                    insert(x, y, v);
                }
            }
            for v in listed.map_or_else(Vec::new, Members::reads) {
                insert(x, y, v);
            }
            let arity = counted(operands, row.named("arity"));
            let read = match c.reads {
                Xs::None => 0,
                Xs::First(n) => n.into(),
                Xs::Arity(more) => arity + u32::from(more),
                Xs::Given | Xs::All => self.extent.arity,
            };
            (0..read as usize).for_each(|k| add(x, k));
            // Registers that a collection looks at must hold terms.
            if let Some(k) = row.of_role(Role::Live) {
                let n = operands[k].word() as usize;
                // An operand of kind `About` counts the registers that the op has written by then.
                let parts = op.instruction.row().contract.parts;
                let about = matches!(
                    parts.get(part_index).map(|p| p.args[k]),
                    Some(PartArg::About(_) | PartArg::AboutOperand(_))
                );
                let made = |k| about && written(row, operands).any(|v| v == Value::X(k as u32));
                if n != NO_LIVE {
                    (0..n).filter(|&k| !made(k)).for_each(|k| add(x, k));
                }
            }
        }
    }
}

/// Returns the labels among the operands, without other functions and handlers.
fn labels(row: &'static SpecOp, operands: &[Value]) -> impl Iterator<Item = i32> {
    row.operands
        .iter()
        .zip(operands)
        .filter_map(|(o, v)| match v {
            Value::L(l) if o.kind.role() == Role::Label && *l != 0 => Some(*l),
            _ => None,
        })
}

/// Returns the registers that operands name as written.
fn written(row: &'static SpecOp, operands: &[Value]) -> impl Iterator<Item = Value> {
    let all = row.operands.iter().zip(operands);
    all.filter(|(o, v)| o.kind.role() == Role::Written && v.is_register())
        .map(|(_, v)| *v)
}

/// Returns how many X registers still hold a value after the op, if it may lose some.
fn surviving(row: &SpecOp, operands: &[Value]) -> Option<usize> {
    match row.of_role(Role::Live) {
        Some(k) => Some(operands[k].word() as usize).filter(|&n| n != NO_LIVE),
        None => row.contract.keeps.map(usize::from),
    }
}

fn counted(operands: &[Value], at: Option<usize>) -> u32 {
    at.map_or(0, |k| operands[k].word() as u32)
}

/// Returns the frame after an op that runs with that frame.
fn after(frame: Frame, row: &SpecOp, operands: &[Value]) -> Option<Frame> {
    let n = counted(operands, row.frame());
    Some(match (row.contract.stack, frame) {
        (Stack::Same | Stack::Other, f) => f,
        (Stack::Push, _) => Frame::Of(n),
        (Stack::Pop, _) => Frame::None,
        (Stack::Trim, Frame::Of(all)) => Frame::Of(all.checked_sub(n)?),
        (Stack::Trim, _) => return None,
    })
}

/// Returns the frame where two paths meet.
fn common_frame(a: Frame, b: Frame) -> Frame {
    let size = |f| match f {
        Frame::Unreached | Frame::None => 0,
        Frame::Of(n) | Frame::AtLeast(n) => n,
    };
    match (a, b) {
        (Frame::Unreached, f) | (f, Frame::Unreached) => f,
        _ if a == b => a,
        _ => Frame::AtLeast(size(a).min(size(b))),
    }
}

fn has(set: &[u64], n: usize) -> bool {
    set.get(n / 64).is_some_and(|w| w >> (n % 64) & 1 != 0)
}
fn add(set: &mut [u64], n: usize) {
    if let Some(w) = set.get_mut(n / 64) {
        *w |= 1 << (n % 64);
    }
}
fn clear(set: &mut [u64], n: usize) {
    if let Some(w) = set.get_mut(n / 64) {
        *w &= !(1 << (n % 64));
    }
}
/// Keeps only the numbers below `n`.
fn keep(set: &mut [u64], n: usize) {
    for (i, w) in set.iter_mut().enumerate() {
        match n.saturating_sub(64 * i) {
            0 => *w = 0,
            k if k < 64 => *w &= (1 << k) - 1,
            _ => {}
        }
    }
}
fn insert(x: &mut [u64], y: &mut [u64], v: Value) {
    match v {
        Value::X(n) => add(x, n as usize),
        Value::Y(n) => add(y, n as usize),
        _ => {}
    }
}
fn remove(x: &mut [u64], y: &mut [u64], v: Value) {
    match v {
        Value::X(n) => clear(x, n as usize),
        Value::Y(n) => clear(y, n as usize),
        _ => {}
    }
}
fn bits(set: &[u64]) -> impl Iterator<Item = u32> + '_ {
    set.iter().enumerate().flat_map(|(i, &w)| {
        let mut w = w;
        std::iter::from_fn(move || {
            let k = w.trailing_zeros();
            w &= w.wrapping_sub(1);
            (k < 64).then_some(i as u32 * 64 + k)
        })
    })
}
