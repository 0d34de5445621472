//! Encoding and decoding of instructions. The head of [`crate::ops`] says how operands are packed.
//!
//! [`pack`] encodes an instruction and [`Instruction::at`] decodes one. [`Instruction::parts`]
//! splits a fused one into its parts, and [`Members`] is its list. Everything here is plain data:
//! terms and addresses are words that are never followed. For words that no packer wrote the result
//! is `None` or a nonsensical instruction; nothing here panics on them.

use crate::bit_fields::{Command, SEGMENT_WORDS, Segment};
use crate::contract::{Part, PartArg};
use crate::ops::{Form, Kind, List, OPS, Op, SpecOp, VARIANTS};
pub use crate::value::{Value, dest, source};

/// Maximum number of operands of an instruction.
pub const MOST_OPERANDS: usize = 10;

const _: () = {
    let mut i = 0;
    while i < crate::ops::OPS.len() {
        assert!(crate::ops::OPS[i].operands.len() <= MOST_OPERANDS);
        i += 1;
    }
};

/// Maximum length of an instruction with operands of the largest form, in words, plus one.
const MOST_WORDS: usize = MOST_OPERANDS + 2;

// The number of a variant counts forms in the order of `Form`.
const _: () = assert!(Form::Y as u8 == Form::X as u8 + 1 && Form::C as u8 == Form::X as u8 + 2);

/// Operands of an instruction, in the order of its row.
#[derive(Clone, Copy)]
pub struct Operands {
    all: [Value; MOST_OPERANDS],
    len: u8,
}

impl Operands {
    const NONE: Operands = Operands {
        all: [Value::N(0); MOST_OPERANDS],
        len: 0,
    };
    fn push(&mut self, v: Value) {
        self.all[self.len as usize] = v;
        self.len += 1;
    }
}

impl std::ops::Deref for Operands {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        &self.all[..self.len as usize]
    }
}

impl std::fmt::Debug for Operands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self[..].fmt(f)
    }
}

/// The reason why an instruction can't be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The row has no variant for these operands.
    Form,
    /// A number is too large for its field.
    Size,
}

/// Appends an instruction without its list. Calls `label` for each label other than
/// [`Value::NO_LABEL`], with the unit of its bits, counted from the start of `out`, and the operand
/// itself.
///
/// An operand that is too large is truncated, and the result is [`Unfit::Size`].
pub fn pack(
    op: Op,
    operands: &[Value],
    out: &mut Vec<u64>,
    mut label: impl FnMut(usize, i32),
) -> Result<(), Unfit> {
    let row = op.row();
    if row.operands.len() != operands.len() {
        return Err(Unfit::Form);
    }
    let at = out.len();
    // The variant number is stored at the end: it follows from the forms, and the first operand's
    // form varies slowest.
    let (mut variant, mut unit, mut result) = (0, 1, Ok(()));
    let mut words = [0u64; MOST_WORDS];
    for (o, &v) in row.operands.iter().zip(operands) {
        let Some(form) = v.form(o.kind) else {
            return Err(Unfit::Form);
        };
        let forms = o.kind.forms();
        if forms.len() > 1 {
            variant = variant * forms.len() + (form as usize - forms[0] as usize);
        }
        let bits = v.bits(form).unwrap_or_else(|| {
            result = Err(Unfit::Size);
            0
        });
        if let Value::L(n) = v
            && n != 0
        {
            label(at * 4 + unit, n);
        }
        // An operand may begin in one word and end in the next.
        let shift = unit % 4 * 16;
        words[unit / 4] |= bits << shift;
        if shift != 0 {
            words[unit / 4 + 1] |= bits >> (64 - shift);
        }
        unit += form.units();
    }
    words[0] |= u64::from(crate::ops::BASE[op as usize]) + variant as u64;
    out.extend_from_slice(&words[..unit.div_ceil(4)]);
    result
}

/// Writes the distance of a label, in words, at a unit that [`pack`] reported.
pub fn put_label(code: &mut [u64], unit: usize, words: i32) {
    for (i, half) in [words as u16, (words >> 16) as u16].into_iter().enumerate() {
        let (word, shift) = ((unit + i) / 4, (unit + i) % 4 * 16);
        code[word] = code[word] & !(0xFFFF << shift) | u64::from(half) << shift;
    }
}

/// Returns the words of an instruction that has no list and no label.
pub fn packed(op: Op, operands: &[Value]) -> Result<Vec<u64>, Unfit> {
    let mut out = Vec::new();
    pack(op, operands, &mut out, |_, _| ())?;
    Ok(out)
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction<'a> {
    pub op: Op,
    /// Number of its variant, which is its first unit.
    pub number: u16,
    pub operands: Operands,
    /// Length in words, with the list.
    pub words: usize,
    /// The list as stored in the code.
    pub list: &'a [u64],
}

/// Reads `n` units, at most four, starting at unit `from`.
fn units(code: &[u64], from: usize, n: usize) -> Option<u64> {
    let (word, shift) = (from / 4, from % 4 * 16);
    let mut v = code.get(word)? >> shift;
    if from % 4 + n > 4 {
        v |= code.get(word + 1)? << (64 - shift);
    }
    Some(if n < 4 { v & ((1 << (16 * n)) - 1) } else { v })
}

/// A variant: its op, and the forms of its operands.
#[derive(Clone, Copy)]
struct Variant {
    op: Op,
    forms: [Form; MOST_OPERANDS],
}

/// All variants by number, so that decoding takes one lookup.
static VARIANTS_BY_NUMBER: [Variant; VARIANTS] = {
    let none = Variant {
        op: Op::at(0),
        forms: [Form::H; MOST_OPERANDS],
    };
    let mut out = [none; VARIANTS];
    let (mut row, mut number) = (0, 0);
    while row < OPS.len() {
        let op = Op::at(row);
        let mut v = 0;
        while v < OPS[row].variants() {
            out[number].op = op;
            // The form of the first operand varies slowest.
            let (mut rest, mut i) = (v, OPS[row].operands.len());
            while i > 0 {
                i -= 1;
                let forms = OPS[row].operands[i].kind.forms();
                out[number].forms[i] = forms[rest % forms.len()];
                rest /= forms.len();
            }
            v += 1;
            number += 1;
        }
        row += 1;
    }
    out
};

impl<'a> Instruction<'a> {
    /// Decodes the instruction at word `at`; `None` if there is none.
    pub fn at(code: &'a [u64], at: usize) -> Option<Instruction<'a>> {
        Instruction::of(code, at, *code.get(at)? as u16)
    }
    /// Decodes the instruction at word `at` as if it began with `number`: the stored first unit may
    /// be a patch.
    pub fn of(code: &'a [u64], at: usize, number: u16) -> Option<Instruction<'a>> {
        let variant = VARIANTS_BY_NUMBER.get(usize::from(number))?;
        let op = variant.op;
        let row = op.row();
        let mut unit = at * 4 + 1;
        let mut operands = Operands::NONE;
        for &form in &variant.forms[..row.operands.len()] {
            operands.push(Value::of_bits(form, units(code, unit, form.units())?));
            unit += form.units();
        }
        let fixed = unit.div_ceil(4) - at;
        let members = match (row.list, operands.last()) {
            (Some(list), Some(&Value::N(count))) => list.words(usize::try_from(count).ok()?),
            _ => 0,
        };
        let list = code.get(at + fixed..)?.get(..members)?;
        Some(Instruction {
            op,
            number,
            operands,
            words: fixed + members,
            list,
        })
    }
    pub fn row(&self) -> &'static SpecOp {
        self.op.row()
    }
    pub fn operand(&self, name: &str) -> Option<Value> {
        self.operands.get(self.row().named(name)?).copied()
    }
    /// Returns the parts of a fused instruction in order, or the instruction itself. Labels count
    /// from the start of this instruction. The list, if there is one, belongs to the last part.
    pub fn parts(&self) -> impl Iterator<Item = (Op, Operands)> + use<'_, 'a> {
        let parts = self.row().contract.parts;
        let itself = parts.is_empty().then_some((self.op, self.operands));
        let made = parts
            .iter()
            .map(|p| (p.op, part_operands(p, &self.operands)));
        itself.into_iter().chain(made)
    }
    /// Returns its list, decoded.
    pub fn members(&self) -> Option<Members> {
        Members::of(self.row().list?, self.list)
    }
}

/// Returns the operands of a part, given those of the whole instruction.
pub fn part_operands(part: &Part, whole: &[Value]) -> Operands {
    let mut out = Operands::NONE;
    for (&a, o) in part.args.iter().zip(part.op.row().operands) {
        out.push(part_operand(a, o.kind, whole));
    }
    out
}

/// Returns one operand of a part, which has that kind there.
pub fn part_operand(a: PartArg, kind: Kind, whole: &[Value]) -> Value {
    let own = |i: u8| whole[i as usize];
    let v = match a {
        PartArg::Operand(i) | PartArg::AboutOperand(i) => own(i),
        PartArg::Plus(i, n) => Value::N(own(i).word() + u64::from(n)),
        PartArg::X(n) => Value::X(u32::from(n)),
        PartArg::None => Value::NO_LABEL,
        PartArg::Number(n) | PartArg::About(n) => Value::N(u64::from(n)),
    };
    match v {
        // A term that has no variants in the whole instruction.
        Value::N(w) if kind.forms().contains(&Form::C) || kind.forms() == [Form::S] => Value::C(w),
        v => v,
    }
}

/// The list of an instruction. Labels are words from its start; 0 means none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Members {
    Sources(Vec<Value>),
    Registers(Vec<Value>),
    /// Key and register.
    Fetches(Vec<(Value, Value)>),
    Labels(Vec<i32>),
    /// Sorted immediates, each with its label.
    Switch(Vec<(u64, i32)>),
    /// Constants, each with its label.
    Arms(Vec<(u64, i32)>),
    /// Header words, each with its label.
    ArityArms(Vec<(u64, i32)>),
    /// Indexes of elements, from 1, and their new values.
    Updates(Vec<(u64, Value)>),
    Segments(Vec<Segment>),
    Commands(Vec<Command>),
}

impl Members {
    /// Decodes a list of that kind; `None` if the words are no such list.
    pub fn of(list: List, words: &[u64]) -> Option<Members> {
        let source = Value::of_source;
        let sources = || words.iter().map(|&w| source(w));
        let pairs = || words.chunks_exact(2).map(|p| (p[0], p[1]));
        let arms = || pairs().map(|(w, l)| (w, l as i32)).collect();
        Some(match list {
            List::Sources => Members::Sources(sources().collect()),
            List::Registers => Members::Registers(sources().collect()),
            List::Fetches => {
                Members::Fetches(pairs().map(|(k, r)| (source(k), source(r))).collect())
            }
            List::Labels => Members::Labels(words.iter().map(|&w| w as i32).collect()),
            List::Switch => {
                let (values, labels) = words.split_at(words.len() / 2);
                let labels = labels.iter().map(|&l| l as i32);
                Members::Switch(values.iter().copied().zip(labels).collect())
            }
            List::Arms => Members::Arms(arms()),
            List::ArityArms => Members::ArityArms(arms()),
            List::Updates => Members::Updates(pairs().map(|(i, v)| (i, source(v))).collect()),
            List::Segments => {
                let all = words.chunks_exact(SEGMENT_WORDS).map(Segment::of);
                Members::Segments(all.collect::<Option<_>>()?)
            }
            List::Commands => Members::Commands(Command::all(words)?),
        })
    }
    /// Returns the registers and constants that are read.
    pub fn reads(&self) -> Vec<Value> {
        match self {
            Members::Sources(all) => all.clone(),
            Members::Fetches(all) => all.iter().map(|p| p.0).collect(),
            Members::Updates(all) => all.iter().map(|p| p.1).collect(),
            Members::Segments(all) => all.iter().flat_map(|s| s.reads()).collect(),
            _ => Vec::new(),
        }
    }
    /// Returns the registers that are written.
    pub fn writes(&self) -> Vec<Value> {
        match self {
            Members::Registers(all) => all.clone(),
            Members::Fetches(all) => all.iter().map(|p| p.1).collect(),
            Members::Commands(all) => all.iter().filter_map(|c| c.write()).collect(),
            _ => Vec::new(),
        }
    }
    pub fn labels(&self) -> Vec<i32> {
        let all: Vec<i32> = match self {
            Members::Labels(all) => all.clone(),
            Members::Switch(all) | Members::Arms(all) | Members::ArityArms(all) => {
                all.iter().map(|p| p.1).collect()
            }
            _ => Vec::new(),
        };
        all.into_iter().filter(|&l| l != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::lookup;

    fn sample(form: Form, i: u32) -> Value {
        match form {
            Form::X => Value::X(i),
            Form::Y => Value::Y(i),
            Form::C => Value::C(u64::from(i) << 4 | 15),
            Form::S => [Value::X(i), Value::Y(i), Value::C(u64::from(i) << 4 | 3)][i as usize % 3],
            Form::D => [Value::X(i), Value::Y(i)][i as usize % 2],
            Form::L => Value::L(-(i as i32) - 1),
            Form::H => Value::N(u64::from(i)),
            Form::W => Value::N(u64::from(i) << 8),
            Form::Q => Value::N(u64::from(i) << 40 | 7),
        }
    }

    #[test]
    fn what_is_packed_is_read_again() {
        for number in 0..VARIANTS as u16 {
            let (row, v) = lookup(number).unwrap();
            let mut operands: Vec<Value> = row
                .forms(v)
                .into_iter()
                .zip(1000..)
                .map(|(f, i)| sample(f, i))
                .collect();
            if row.list.is_some() {
                *operands.last_mut().unwrap() = Value::N(2);
            }
            let mut code = vec![7];
            let mut labels = Vec::new();
            pack(Op::of(number).unwrap(), &operands, &mut code, |u, l| {
                labels.push((u, l))
            })
            .unwrap();
            for (unit, l) in labels {
                put_label(&mut code, unit, l);
            }
            let fixed = code.len();
            code.extend([0; 4]);
            let i = Instruction::at(&code, 1).unwrap();
            assert_eq!(i.number, number, "{}", row.name);
            assert_eq!(i.operands[..], operands, "{}", row.name);
            assert_eq!(i.words, fixed - 1 + i.list.len());
        }
    }

    #[test]
    fn parts_are_instructions_that_can_be_packed() {
        for (row, i) in OPS.iter().zip(0..).filter(|(r, _)| r.is_fused()) {
            let whole: Vec<Value> = row.forms(0).into_iter().map(|f| sample(f, 5)).collect();
            for part in row.contract.parts {
                let operands = part_operands(part, &whole);
                let made = packed(part.op, &operands);
                assert!(made.is_ok(), "{i} {} {operands:?}", part.op.row().name);
            }
        }
    }

    #[test]
    fn a_number_larger_than_its_field_is_reported() {
        let large = Value::N(1 << 16);
        assert_eq!(packed(Op::Deallocate, &[large]), Err(Unfit::Size));
        assert_eq!(packed(Op::Deallocate, &[Value::X(1)]), Err(Unfit::Form));
        assert_eq!(packed(Op::Deallocate, &[]), Err(Unfit::Form));
    }

    #[test]
    fn words_that_are_no_code_are_refused() {
        assert!(Instruction::at(&[], 0).is_none());
        assert!(Instruction::at(&[0xFFFF], 0).is_none());
        let count = packed(Op::InitYs, &[Value::N(u64::from(u32::MAX))]).unwrap();
        assert!(Instruction::at(&count, 0).is_none());
    }
}
