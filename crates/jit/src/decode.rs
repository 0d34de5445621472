//! Instructions as templates want them: labels as places in the code. The codec and the rows (`purlin_isa`) say what stands there
//! and which parts an instruction has; [`operands`](crate::operands) gives the operands names.

use purlin_isa::codec::{self, Operands, Value, part_operands};
use purlin_isa::ops::{MachineCode, Op};

/// An instruction, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Instruction<'a> {
    pub op: Op,
    /// The number of the variant that stands in the code.
    pub variant: u16,
    operands: Operands,
    /// Where it stands, in words.
    pub at: u32,
    /// The instruction behind it.
    pub next: u32,
    /// Its list.
    pub list: &'a [u64],
}

impl<'a> Instruction<'a> {
    /// Its operands, in the order of the row.
    pub fn operands(&self) -> &[Value] {
        &self.operands
    }
    /// The places that its operands lead to.
    pub fn labels(&self) -> impl Iterator<Item = u32> + '_ {
        self.operands().iter().filter_map(|&v| self.place(v))
    }
    /// The place that an operand leads to.
    pub fn place(&self, v: Value) -> Option<u32> {
        match v {
            Value::NO_LABEL => None,
            Value::L(n) => Some(self.at.wrapping_add_signed(n)),
            _ => None,
        }
    }
    /// The place that a word of its list leads to, if that is a label.
    pub fn place_of(&self, word: u64) -> Option<u32> {
        let d = i32::try_from(word as i64).ok()?;
        self.at.checked_add_signed(d)
    }
}

/// The instruction at word `at`, of variant `variant` whatever number stands there. None: there is none.
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
