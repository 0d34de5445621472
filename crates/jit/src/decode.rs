//! Decoded instructions for templates, with labels as offsets in the code. The codec and the rows
//! (`purlin_isa`) give an instruction and its parts; [`operands`](crate::operands) gives the
//! operands names.

use purlin_isa::codec::{self, Value, part_operands};
use purlin_isa::ops::{MachineCode, Op};

/// An instruction, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Instruction<'a> {
    pub op: Op,
    /// The number of its variant in the code.
    pub variant: u16,
    operands: [Value; codec::MOST_OPERANDS],
    count: u8,
    /// Its offset, in words.
    pub at: u32,
    /// Offset of the next instruction.
    pub next: u32,
    /// Its list.
    pub list: &'a [u64],
}

impl<'a> Instruction<'a> {
    /// Returns its operands, in the order of the row.
    pub fn operands(&self) -> &[Value] {
        &self.operands[..self.count as usize]
    }
    /// Returns the offsets that its labels refer to.
    pub fn labels(&self) -> impl Iterator<Item = u32> + '_ {
        self.operands().iter().filter_map(|&v| self.place(v))
    }
    /// Returns the offset that an operand refers to.
    pub fn place(&self, v: Value) -> Option<u32> {
        match v {
            Value::NO_LABEL => None,
            Value::L(n) => Some(self.at.wrapping_add_signed(n)),
            _ => None,
        }
    }
    /// Returns the offset that a word of its list refers to, if that is a label.
    pub fn place_of(&self, word: u64) -> Option<u32> {
        let d = i32::try_from(word as i64).ok()?;
        self.at.checked_add_signed(d)
    }
    /// Returns the same place with another op and its operands.
    fn with(mut self, op: Op, operands: &[Value]) -> Instruction<'a> {
        self.operands[..operands.len()].copy_from_slice(operands);
        self.op = op;
        self.count = operands.len() as u8;
        self
    }
}

/// Decodes the instruction at word `at` as variant `variant`, whatever number the code has there.
/// Returns `None` if there is none.
pub fn decode(code: &[u64], at: u32, variant: u16) -> Option<Instruction<'_>> {
    let i = codec::Instruction::of(code, at as usize, variant)?;
    let out = Instruction {
        op: i.op,
        variant,
        operands: [Value::N(0); codec::MOST_OPERANDS],
        count: 0,
        at,
        next: at + i.words as u32,
        list: i.list,
    };
    Some(out.with(i.op, &i.operands))
}

/// Calls `each` with the parts of an instruction in order, or with the instruction itself if it is
/// not fused. Only the first part may require a collection, fail, or exit before it has changed
/// anything.
pub fn parts<'a>(i: &Instruction<'a>, mut each: impl FnMut(Instruction<'a>)) {
    let row = i.op.row();
    if row.machine_code != MachineCode::fused {
        return each(*i);
    }
    for p in row.contract.parts {
        each(i.with(p.op, &part_operands(p, i.operands())));
    }
}

impl std::fmt::Display for Instruction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let row = self.op.row();
        f.write_str(row.name.trim_end_matches('_'))?;
        for (o, &v) in row.operands.iter().zip(self.operands()) {
            write!(f, " {}=", o.name)?;
            match v {
                Value::X(n) => write!(f, "x{n}")?,
                Value::Y(n) => write!(f, "y{n}")?,
                Value::C(w) => write!(f, "{w:#x}")?,
                Value::NO_LABEL => f.write_str("none")?,
                Value::L(n) => write!(f, "{n:+}")?,
                Value::N(n) => write!(f, "{n}")?,
            }
        }
        Ok(())
    }
}
