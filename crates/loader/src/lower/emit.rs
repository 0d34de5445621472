//! Code under construction: instructions in order, fused where possible, with labels filled in at
//! the end.

use super::fuse::{fuse, split};
use purlin_isa::codec::{self, Unfit};
use purlin_isa::contract::PartArg;
use purlin_isa::ops::{Op, Operand, Role};
use purlin_isa::types::Fact;

/// An operand about to be packed; a label is given by its number.
pub(super) use purlin_isa::codec::Value as Arg;

/// Returns a number as an operand.
pub(super) fn count(n: u32) -> Arg {
    Arg::N(u64::from(n))
}

struct Fixup {
    /// Word of the instruction.
    at: u32,
    /// Unit in the code for the offset; in a list it is a whole word.
    unit: usize,
    whole: bool,
    label: u32,
}

/// Code under construction.
pub(crate) struct Emitter {
    pub words: Vec<u64>,
    /// Offset of each label in words.
    pub labels: Vec<u32>,
    /// Items of the line table, each with the offset at which it begins.
    pub lines: Vec<(u32, u32)>,
    /// An operand was too large for its field: the code must not run.
    pub too_large: bool,
    /// Whether an instruction has operands for which its row has no variant: the module is refused.
    pub unfit: bool,
    /// Facts about registers that instructions read; sorted by offset.
    pub facts: Vec<Fact>,
    /// The registers that the current generic instruction reads and that have a known type, with
    /// the indices of their types.
    pub typed: Vec<(Arg, u16)>,
    fixups: Vec<Fixup>,
    /// The last instruction, and where it starts; `None` after a label or a list.
    last: Option<(u32, Op, Vec<Arg>)>,
    /// The one before it, if there is nothing between them: the last one, fused with the next, may
    /// be fused with it.
    prior: Option<(u32, Op, Vec<Arg>)>,
}

impl Emitter {
    /// Begins code without instructions, with that many labels.
    pub fn new(labels: usize) -> Emitter {
        Emitter {
            words: Vec::new(),
            labels: vec![u32::MAX; labels],
            lines: Vec::new(),
            too_large: false,
            unfit: false,
            facts: Vec::new(),
            typed: Vec::new(),
            fixups: Vec::new(),
            last: None,
            prior: None,
        }
    }
    /// Returns the offset of the next instruction.
    pub fn here(&self) -> u32 {
        self.words.len() as u32
    }
    /// Places the label here.
    pub(crate) fn label(&mut self, label: usize) {
        self.labels[label] = self.here();
        self.barrier();
    }
    /// Prevents the next instruction from being fused with the one before it.
    pub fn barrier(&mut self) {
        self.last = None;
        self.prior = None;
    }
    /// Sets the item of the line table from here on.
    pub fn line(&mut self, item: u32) {
        let at = (self.here(), item);
        match self.lines.last_mut() {
            Some(last) if last.0 == at.0 => *last = at,
            _ => self.lines.push(at),
        }
    }
    /// Removes everything from `start` on, where the last instruction starts.
    fn take_back(&mut self, start: u32) {
        self.words.truncate(start as usize);
        while self.fixups.last().is_some_and(|f| f.at == start) {
            self.fixups.pop();
        }
        // A line before an instruction that is fused with the one before it, moves before that.
        if let Some(l) = self.lines.last().copied().filter(|l| l.0 > start) {
            self.lines.pop();
            match self.lines.last_mut() {
                Some(p) if p.0 == start => p.1 = l.1,
                _ => self.lines.push((start, l.1)),
            }
        }
    }
    /// Appends an instruction, or fuses it with the last one.
    ///
    /// # Panics
    /// If the number of operands differs from that of the row: a fault of the lowering, not of the
    /// module.
    pub fn op(&mut self, op: Op, args: &[Arg]) {
        let prior = self.prior.take();
        let Some((start, last, prev)) = self.last.take() else {
            return self.plain(op, args);
        };
        // An op that may fail must keep its line.
        let line_between = self.lines.last().is_some_and(|l| l.0 > start);
        let fixed = line_between && matches!(last, Op::Add | Op::Sub);
        if !fixed && let Some((op, args)) = fuse((last, &prev), (op, args)) {
            self.take_back(start);
            self.keep_facts(start, (last, &prev));
            self.last = prior;
            return self.op(op, &args);
        }
        if let Some((before, after)) = split(last, &prev, op)
            && let Some((op, args)) = fuse((after.0, &after.1), (op, args))
        {
            let here = self.lines.last().copied().filter(|l| l.0 > start);
            self.take_back(start);
            let known = self.split_facts(start, &before.1, &args);
            let typed = std::mem::take(&mut self.typed);
            if here.is_some() {
                // The line belongs to the call.
                let line = self.lines.pop().map_or(0, |l| l.1);
                self.plain(before.0, &before.1);
                self.line(line);
            } else {
                self.plain(before.0, &before.1);
            }
            // Registers of both the move and the call: there is nothing between them.
            self.typed = known.into_iter().chain(typed).collect();
            self.typed.retain(|&(r, _)| !writes(before.0, &before.1, r));
            return self.plain(op, &args);
        }
        self.plain(op, args);
        self.prior = Some((start, last, prev));
    }
    /// Fuses an instruction with `first`, which is at `start`. The types of registers that it reads
    /// are known at `start` too, unless the first one writes the registers.
    fn keep_facts(&mut self, start: u32, first: (Op, &[Arg])) {
        self.typed.retain(|&(r, _)| !writes(first.0, first.1, r));
        if self.facts.last().is_none_or(|f| f.at <= start) {
            return;
        }
        let from = self.facts.partition_point(|f| f.at <= start);
        let moved = self.facts.split_off(from);
        for f in moved {
            let n = u32::from(f.register / 2);
            let register = [Arg::X(n), Arg::Y(n)][usize::from(f.register % 2)];
            if !writes(first.0, first.1, register) {
                self.fact(start, register, f.of);
            }
        }
    }
    /// Splits the instruction at `start`: keeps the types of registers that its first part reads,
    /// and returns those of the second part.
    fn split_facts(&mut self, start: u32, first: &[Arg], second: &[Arg]) -> Vec<(Arg, u16)> {
        let from = self.facts.partition_point(|f| f.at < start);
        let all = self.facts.split_off(from);
        let is = |f: &Fact, args: &[Arg]| {
            args.iter()
                .find(|&&a| Fact::register(a) == Some(f.register))
                .copied()
        };
        let known = all
            .iter()
            .filter_map(|f| Some((is(f, second)?, f.of)))
            .collect();
        self.facts
            .extend(all.into_iter().filter(|f| is(f, first).is_some()));
        known
    }
    fn fact(&mut self, at: u32, register: Arg, of: u16) {
        let Some(register) = Fact::register(register) else {
            return;
        };
        let known = self.facts.iter().rev().take_while(|f| f.at == at);
        if !known.into_iter().any(|f| f.register == register) {
            self.facts.push(Fact { at, register, of });
        }
    }
    /// Records the types of registers that an instruction at `at` reads: those among its operands
    /// or in its list.
    fn note_facts(&mut self, at: u32, op: Op, args: &[Arg], list: &[Arg]) {
        if self.typed.is_empty() {
            return;
        }
        let typed = std::mem::take(&mut self.typed);
        for &(register, of) in &typed {
            let read = |(o, a): (&Operand, &Arg)| {
                *a == register && matches!(o.kind.role(), Role::Read | Role::Changed)
            };
            if op.row().operands.iter().zip(args).any(read) || list.contains(&register) {
                self.fact(at, register, of);
            }
        }
        self.typed = typed;
    }
    fn plain(&mut self, op: Op, args: &[Arg]) {
        self.note_facts(self.here(), op, args, &[]);
        self.last = Some((self.here(), op, args.to_vec()));
        let row = op.row();
        assert_eq!(row.operands.len(), args.len(), "operands of {}", row.name);
        let at = self.here();
        let fixups = &mut self.fixups;
        let label = |unit, label| {
            fixups.push(Fixup {
                at,
                unit,
                whole: false,
                label: label as u32,
            })
        };
        match codec::pack(op, args, &mut self.words, label) {
            Ok(()) => {}
            Err(Unfit::Size) => self.too_large = true,
            Err(Unfit::Form) => {
                debug_assert!(false, "no variant of {} for {args:?}", row.name);
                self.unfit = true;
            }
        }
    }
    /// Appends an instruction with a list of whole words.
    pub(crate) fn op_list(&mut self, op: Op, args: &[Arg], list: &[Arg]) {
        if let Some((start, last, prev)) = self.last.take()
            && let Some((op, args)) = fuse((last, &prev), (op, args))
        {
            self.take_back(start);
            self.keep_facts(start, (last, &prev));
            self.last = self.prior.take();
            return self.op_list(op, &args, list);
        }
        let at = self.here();
        self.plain(op, args);
        self.note_facts(at, op, args, list);
        self.barrier();
        for a in list {
            if let Arg::L(label) = *a
                && label != 0
            {
                let unit = self.words.len() * 4;
                self.fixups.push(Fixup {
                    at,
                    unit,
                    whole: true,
                    label: label as u32,
                });
            }
            self.words.push(a.source_word());
        }
    }
    /// Fills in the offsets of all labels.
    pub(crate) fn resolve(&mut self) {
        for f in &self.fixups {
            let d = self.labels[f.label as usize] as i64 - i64::from(f.at);
            if f.whole {
                self.words[f.unit / 4] = d as u64;
                continue;
            }
            codec::put_label(&mut self.words, f.unit, d as i32);
        }
        self.fixups.clear();
    }
}

/// Whether an instruction with these operands writes the register.
fn writes(op: Op, args: &[Arg], register: Arg) -> bool {
    let row = op.row();
    let written = |role| matches!(role, Role::Written | Role::Changed);
    let operand = |(o, a): (&Operand, &Arg)| *a == register && written(o.kind.role());
    row.operands.iter().zip(args).any(operand)
        || row.contract.parts.iter().any(|p| {
            let mut all = p.args.iter().zip(p.op.row().operands);
            all.any(|(&a, o)| match a {
                PartArg::X(n) => register == Arg::X(n.into()) && written(o.kind.role()),
                _ => false,
            })
        })
}
