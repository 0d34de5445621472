//! Instructions as templates want them: labels as places in the code. What stands there and what its parts are say the codec
//! and the rows (`purlin_isa`).

use purlin_isa::codec::{self, Value, part_operands};
use purlin_isa::ops::Op;

/// An operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// The number of an X register.
    X(u16),
    /// The number of a Y register.
    Y(u16),
    /// The word of a constant.
    C(u64),
    /// A place in the code, in words; none where the op has no label.
    L(Option<u32>),
    /// Whatever else.
    N(u64),
}

impl Arg {
    /// The operand of an instruction at that word. Numbers of registers have 16 bits in the code.
    fn of(v: Value, at: u32) -> Arg {
        match v {
            Value::X(n) => Arg::X(n as u16),
            Value::Y(n) => Arg::Y(n as u16),
            Value::C(w) => Arg::C(w),
            Value::NO_LABEL => Arg::L(None),
            Value::L(n) => Arg::L(Some(at.wrapping_add_signed(n))),
            Value::N(n) => Arg::N(n),
        }
    }
    /// The same as the codec has it.
    fn value(self, at: u32) -> Value {
        match self {
            Arg::X(n) => Value::X(n.into()),
            Arg::Y(n) => Value::Y(n.into()),
            Arg::C(w) => Value::C(w),
            Arg::L(None) => Value::NO_LABEL,
            Arg::L(Some(to)) => Value::L(to.wrapping_sub(at) as i32),
            Arg::N(n) => Value::N(n),
        }
    }
    /// The number that it is; 0 for a term or a label.
    pub fn n(self) -> u64 {
        match self {
            Arg::N(n) | Arg::C(n) => n,
            _ => 0,
        }
    }
    /// The place that it leads to.
    pub fn label(self) -> Option<u32> {
        match self {
            Arg::L(l) => l,
            _ => None,
        }
    }
}

/// An instruction, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub op: Op,
    /// The number of the variant that stands in the code.
    pub variant: u16,
    args: [Arg; codec::MOST_OPERANDS],
    count: u8,
    /// Where it stands, in words.
    pub at: u32,
    /// The instruction behind it.
    pub next: u32,
    /// The list: first word and words.
    pub list: (u32, u32),
}

impl Instruction {
    /// Its operands.
    pub fn args(&self) -> &[Arg] {
        &self.args[..self.count as usize]
    }
    /// The same place with another op and its operands.
    fn with(mut self, op: Op, operands: &[Value]) -> Instruction {
        for (arg, &v) in self.args.iter_mut().zip(operands) {
            *arg = Arg::of(v, self.at);
        }
        self.op = op;
        self.count = operands.len() as u8;
        self
    }
}

/// A word of form S.
pub fn source(w: u64) -> Arg {
    Arg::of(Value::of_source(w), 0)
}

/// The instruction at word `at`, of variant `variant` whatever number stands there. None: there is none.
pub fn decode(code: &[u64], at: u32, variant: u16) -> Option<Instruction> {
    let i = codec::Instruction::of(code, at as usize, variant)?;
    let next = at + i.words as u32;
    let listed = i.list.len() as u32;
    let out = Instruction {
        op: i.op,
        variant,
        args: [Arg::N(0); codec::MOST_OPERANDS],
        count: 0,
        at,
        next,
        list: (next - listed, listed),
    };
    Some(out.with(i.op, &i.operands))
}

/// Ops that do the work of several and have a template of their own.
const WHOLE: [Op; 3] = [Op::GetTupleElements2, Op::IsInRange, Op::IsTupleOfArity];

/// Calls `each` with the parts of an instruction, in their order; with itself if it is not fused. Only the
/// first part can need a collection, fail, or leave before it has changed anything.
pub fn parts(i: &Instruction, mut each: impl FnMut(Instruction)) {
    let parts = i.op.row().contract.parts;
    if parts.is_empty() || WHOLE.contains(&i.op) {
        return each(*i);
    }
    let mut whole = [Value::N(0); codec::MOST_OPERANDS];
    for (v, a) in whole.iter_mut().zip(i.args()) {
        *v = a.value(i.at);
    }
    for p in parts {
        each(i.with(p.op, &part_operands(p, &whole[..i.args().len()])));
    }
}
