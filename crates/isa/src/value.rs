//! Operands as values, and the words and bits that they are.

use crate::ops::{Form, Kind};

/// An operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// X register of that number.
    X(u32),
    /// Y register of that number.
    Y(u32),
    /// A constant: the word of a term.
    C(u64),
    /// A label: words from the start of the instruction; 0 means none. Before labels are resolved:
    /// its number.
    L(i32),
    /// Anything else: a number, an address, the word of a term that has no variants. The kind of
    /// the operand says which.
    N(u64),
}

impl Value {
    /// The operand where no label is given.
    pub const NO_LABEL: Value = Value::L(0);

    /// Whether it is a register, X or Y.
    pub const fn is_register(self) -> bool {
        matches!(self, Value::X(_) | Value::Y(_))
    }
    /// Returns the word of a constant, or the number; 0 for anything else.
    pub const fn word(self) -> u64 {
        match self {
            Value::C(w) | Value::N(w) => w,
            _ => 0,
        }
    }
    /// Returns the word of form S: a source that is decoded at run time.
    pub const fn source_word(self) -> u64 {
        match self {
            Value::X(n) => source::x(n),
            Value::Y(n) => source::y(n),
            v => v.word(),
        }
    }
    /// Returns the register or constant of a word of form S.
    pub const fn of_source(w: u64) -> Value {
        match () {
            () if source::is_constant(w) => Value::C(w),
            () if source::is_y(w) => Value::Y((source::offset(w) as u32 / 8).wrapping_sub(1)),
            () => Value::X(source::offset(w) as u32 / 8),
        }
    }
    /// Returns the form of the value as an operand of that kind; `None` if the kind doesn't allow
    /// it.
    #[inline]
    pub const fn form(self, kind: Kind) -> Option<Form> {
        // Loading calls this for each operand, so the cases are few: the kind has one form, or the
        // forms of registers and constants.
        let forms = kind.forms();
        let own = match (forms[0], self) {
            (Form::D | Form::S, Value::X(_) | Value::Y(_)) => return Some(forms[0]),
            (Form::S, Value::C(_)) => return Some(Form::S),
            (Form::L, Value::L(_)) => return Some(Form::L),
            (Form::H | Form::W | Form::Q, Value::N(_)) => return Some(forms[0]),
            (Form::X, Value::X(_)) => 0,
            (Form::X, Value::Y(_)) => 1,
            (Form::X, Value::C(_)) => 2,
            _ => return None,
        };
        if own < forms.len() {
            Some(forms[own])
        } else {
            None
        }
    }
    /// Returns the bits of an operand of that form; `None` if it is too large for its field.
    #[inline]
    pub(crate) fn bits(self, form: Form) -> Option<u64> {
        let bits = match (form, self) {
            (Form::X, Value::X(n)) => u64::from(n) * 8,
            (Form::Y, Value::Y(n)) => (u64::from(n) + 1) * 8,
            (Form::D, Value::X(n)) => u64::from(n) * 8,
            (Form::D, Value::Y(n)) => ((u64::from(n) + 1) * 8) | dest::Y,
            (Form::L, Value::L(n)) => u64::from(n as u32),
            (Form::S, v) => v.source_word(),
            (_, v) => v.word(),
        };
        let width = form.units() as u32 * 16;
        (width == 64 || bits >> width == 0).then_some(bits)
    }
    /// Returns the operand with these bits.
    pub(crate) fn of_bits(form: Form, v: u64) -> Value {
        match form {
            Form::X => Value::X(v as u32 / 8),
            Form::Y => Value::Y((v as u32 / 8).wrapping_sub(1)),
            Form::D if v & dest::Y == 0 => Value::X(v as u32 / 8),
            Form::D => Value::Y((v as u32 / 8).wrapping_sub(1)),
            Form::C => Value::C(v),
            Form::S => Value::of_source(v),
            Form::L => Value::L(v as u32 as i32),
            Form::H | Form::W | Form::Q => Value::N(v),
        }
    }
}

/// Words of form S: a constant, or the offset of a register above four bits in which no constant
/// ends.
pub mod source {
    const CONSTANT: u64 = 3;
    const Y: u64 = 4;

    /// Returns the word of X register `n`.
    pub const fn x(n: u32) -> u64 {
        (n as u64 * 8) << 4
    }
    /// Returns the word of Y register `n`.
    pub const fn y(n: u32) -> u64 {
        ((n as u64 + 1) * 8) << 4 | Y
    }
    /// Whether a word is a constant.
    #[inline(always)]
    pub const fn is_constant(w: u64) -> bool {
        w & CONSTANT != 0
    }
    /// Whether a word that is no constant names a Y register.
    #[inline(always)]
    pub const fn is_y(w: u64) -> bool {
        w & Y != 0
    }
    /// Returns the offset of the register in bytes: in the X registers, or from the top of the
    /// stack.
    #[inline(always)]
    pub const fn offset(w: u64) -> usize {
        (w >> 4) as usize
    }
    /// Returns the same register in form D.
    #[inline(always)]
    pub const fn as_dest(w: u64) -> u16 {
        offset(w) as u16 | is_y(w) as u16
    }
}

/// Words of form D: the offset of a register, which is a multiple of 8, with a mark for Y
/// registers.
pub mod dest {
    pub(super) const Y: u64 = 1;
    /// The mark on the offset of an X register, and of a Y register.
    pub const MARK_X: u16 = 0;
    /// See [`MARK_X`].
    pub const MARK_Y: u16 = Y as u16;

    /// Whether it names a Y register.
    #[inline(always)]
    pub const fn is_y(d: u16) -> bool {
        d & MARK_Y != 0
    }
    /// Returns the offset of the register in bytes: in the X registers, or from the top of the
    /// stack.
    #[inline(always)]
    pub const fn offset(d: u16) -> usize {
        (d & !MARK_Y) as usize
    }
}
