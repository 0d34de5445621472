//! Decoded instructions for templates, with labels as offsets in the code. The codec and the rows
//! (`purlin_isa`) give an instruction and its parts; [`operands`](crate::operands) gives the
//! operands names.

use purlin_isa::codec::{self, Operands, Value, part_operands};
use purlin_isa::ops::{MachineCode, Op};

/// An instruction, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Instruction<'a> {
    pub op: Op,
    /// The number of its variant in the code.
    pub variant: u16,
    operands: Operands,
    /// Where it stands, in words.
    pub at: u32,
    /// Offset of the next instruction.
    pub next: u32,
    /// Its list.
    pub list: &'a [u64],
}

impl<'a> Instruction<'a> {
    /// Returns its operands, in the order of the row.
    pub fn operands(&self) -> &[Value] {
        &self.operands
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
}

/// Decodes the instruction at word `at` as variant `variant`, whatever number the code has there.
/// Returns `None` if there is none.
pub fn decode(code: &[u64], at: u32, variant: u16) -> Option<Instruction<'_>> {
    let i = codec::Instruction::of(code, at as usize, variant)?;
    Some(Instruction {
        op: i.op,
        variant,
        operands: i.operands,
        at,
        next: at + i.words as u32,
        list: i.list,
    })
}

/// The parts of an instruction, in their order; none if it has code of its own. Only the first part
/// can need a collection, fail, or leave before it has changed anything.
pub fn parts<'a>(i: &Instruction<'a>) -> impl ExactSizeIterator<Item = Instruction<'a>> {
    let row = i.op.row();
    let all = match row.machine_code {
        MachineCode::fused => row.contract.parts,
        _ => &[],
    };
    all.iter().map(move |p| Instruction {
        op: p.op,
        operands: part_operands(p, i.operands()),
        ..*i
    })
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
