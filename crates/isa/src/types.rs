//! Types of values in registers, as found by the compiler of a module: its chunk `Type`.

/// Kinds of terms: bits of [`Type::kinds`].
pub mod kind {
    /// An atom.
    pub const ATOM: u16 = 1;
    /// A bitstring, which may be a match context.
    pub const BITSTRING: u16 = 1 << 1;
    /// A list that is not empty.
    pub const CONS: u16 = 1 << 2;
    /// A float.
    pub const FLOAT: u16 = 1 << 3;
    /// A fun.
    pub const FUN: u16 = 1 << 4;
    /// An integer of any size.
    pub const INTEGER: u16 = 1 << 5;
    /// A map.
    pub const MAP: u16 = 1 << 6;
    /// The empty list.
    pub const NIL: u16 = 1 << 7;
    /// A pid.
    pub const PID: u16 = 1 << 8;
    /// A port.
    pub const PORT: u16 = 1 << 9;
    /// A reference.
    pub const REFERENCE: u16 = 1 << 10;
    /// A tuple.
    pub const TUPLE: u16 = 1 << 11;
    /// A native record.
    pub const RECORD: u16 = 1 << 12;
    /// All kinds.
    pub const ANY: u16 = (1 << 13) - 1;
}

/// The type of a value, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type {
    /// The kinds that it may have: bits of [`kind`].
    pub kinds: u16,
    /// Lower bound, if it is a number.
    pub least: Option<i64>,
    /// Upper bound, if it is a number.
    pub most: Option<i64>,
    /// A divisor of its number of bits, if it is a bitstring.
    pub unit: u16,
}

impl Type {
    /// The type of any term.
    pub const ANY: Type = Type {
        kinds: kind::ANY,
        least: None,
        most: None,
        unit: 1,
    };
    /// Whether nothing is known.
    pub fn is_any(&self) -> bool {
        *self == Type::ANY
    }
    /// Whether it is certainly of one of these kinds.
    pub const fn is_of(&self, kinds: u16) -> bool {
        self.kinds & !kinds == 0
    }
    /// Whether it is certainly an integer between these two.
    pub fn is_within(&self, least: i64, most: i64) -> bool {
        self.is_of(kind::INTEGER)
            && self.least.is_some_and(|n| n >= least)
            && self.most.is_some_and(|n| n <= most)
    }
}

/// The type of a register at the start of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// Offset of the instruction in the code of its module, in words.
    pub at: u32,
    /// Number of the register, times two, plus 1 for a Y register.
    pub register: u16,
    /// Index into the module's table of types.
    pub of: u16,
}

impl Fact {
    /// Returns the number by which facts name a register.
    pub const fn register(v: crate::codec::Value) -> Option<u16> {
        match v {
            crate::codec::Value::X(n) => Some(n as u16 * 2),
            crate::codec::Value::Y(n) => Some(n as u16 * 2 + 1),
            _ => None,
        }
    }
}
