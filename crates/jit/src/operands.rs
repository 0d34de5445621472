//! The operands of instructions by name: one type per op, made from the rows of
//! [`purlin_isa::ops`].
//!
//! `Move::of(&i)` is instruction `i`, an op `move`; its fields are the operands in the row. Lists
//! are fields too. The interpreter has the same names for the same rows
//! (`crates/interp/src/instr.rs`).
//!
//! The types of operands are:
//!
//! | kind in the row | type |
//! | --- | --- |
//! | `Read`, `Value`, `Source`, `ChangeSource` | [`Src`] |
//! | `Write`, `Dest`, `Change` | [`Dst`] |
//! | `Label`, `Callee`, `Handler` | [`Target`] |
//! | `Live` | [`Live`] |
//! | `Frame` | [`Frame`] |
//! | `Float` | [`Float`] |
//! | others | `u64` |

use crate::decode::Instruction;
use purlin_isa::codec::Value;

/// A register or a constant that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Src {
    /// The number of an X register.
    X(u16),
    /// The number of a Y register.
    Y(u16),
    /// The word of a constant.
    C(u64),
}

/// A register that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dst {
    X(u16),
    Y(u16),
}

/// The target of a label, as an offset in the code in words; `None` if there is no label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target(pub Option<u32>);

/// The number of X registers that hold terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Live(pub u64);

/// A number of Y registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame(pub u64);

/// The number of a float register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Float(pub u64);

impl Src {
    /// Returns the operand of a word of form S.
    pub fn of_word(w: u64) -> Src {
        Src::of_value(Value::of_source(w))
    }
    /// Returns an operand. Numbers of registers have 16 bits in the code.
    pub(crate) fn of_value(v: Value) -> Src {
        match v {
            Value::X(n) => Src::X(n as u16),
            Value::Y(n) => Src::Y(n as u16),
            v => Src::C(v.word()),
        }
    }
    /// Returns the register, if it is one.
    pub fn register(self) -> Option<Dst> {
        match self {
            Src::X(n) => Some(Dst::X(n)),
            Src::Y(n) => Some(Dst::Y(n)),
            Src::C(_) => None,
        }
    }
}

impl Dst {
    /// Returns the register of a word of form S.
    pub fn of_word(w: u64) -> Dst {
        Dst::of_value(Value::of_source(w))
    }
    pub(crate) fn of_value(v: Value) -> Dst {
        match v {
            Value::Y(n) => Dst::Y(n as u16),
            Value::X(n) => Dst::X(n as u16),
            // The kinds with this type have no other forms.
            _ => {
                debug_assert!(false, "a register that is written: {v:?}");
                Dst::X(0)
            }
        }
    }
    /// Returns the operand that reads it.
    pub fn src(self) -> Src {
        match self {
            Dst::X(n) => Src::X(n),
            Dst::Y(n) => Src::Y(n),
        }
    }
}

/// A type of operands.
trait Operand {
    fn of(v: Value, i: &Instruction) -> Self;
}
impl Operand for Src {
    fn of(v: Value, _: &Instruction) -> Src {
        Src::of_value(v)
    }
}
impl Operand for Dst {
    fn of(v: Value, _: &Instruction) -> Dst {
        Dst::of_value(v)
    }
}
impl Operand for Target {
    fn of(v: Value, i: &Instruction) -> Target {
        Target(i.place(v))
    }
}
impl Operand for Live {
    fn of(v: Value, _: &Instruction) -> Live {
        Live(v.word())
    }
}
impl Operand for Frame {
    fn of(v: Value, _: &Instruction) -> Frame {
        Frame(v.word())
    }
}
impl Operand for Float {
    fn of(v: Value, _: &Instruction) -> Float {
        // The instruction has an offset in bytes.
        Float(v.word() / 8)
    }
}
impl Operand for u64 {
    fn of(v: Value, _: &Instruction) -> u64 {
        v.word()
    }
}

/// The type of each kind of operand, under its name.
mod kind {
    pub type Read = super::Src;
    pub type Value = super::Src;
    pub type Source = super::Src;
    pub type ChangeSource = super::Src;
    pub type Write = super::Dst;
    pub type Dest = super::Dst;
    pub type Change = super::Dst;
    pub type Label = super::Target;
    pub type Callee = super::Target;
    pub type Handler = super::Target;
    pub type Live = super::Live;
    pub type Frame = super::Frame;
    pub type Float = super::Float;
    pub type Arity = u64;
    pub type Heap = u64;
    pub type Count = u64;
    pub type Few = u64;
    pub type Element = u64;
    pub type FarElement = u64;
    pub type Number = u64;
    pub type Size = u64;
    pub type Integer = u64;
    pub type Term = u64;
    pub type Header = u64;
    pub type Export = u64;
    pub type Native = u64;
    pub type Entry = u64;
    pub type Bytes = u64;
    pub type Slot = u64;
    pub type Counter = u64;
    pub type Mark = u64;
}

/// The lists, under the names of their kinds.
pub mod list {
    use super::{Dst, Src};
    use crate::decode::Instruction;
    use purlin_isa::bit_fields::{Command, SEGMENT_WORDS, Segment};

    macro_rules! lists {
        ($($name:ident)*) => {$(
            #[doc = concat!("See [`List::", stringify!($name), "`](purlin_isa::ops::List::", stringify!($name), ").")]
            #[derive(Clone, Copy, Debug)]
            pub struct $name<'a> {
                /// The words in the code.
                #[allow(dead_code)]
                words: &'a [u64],
                #[allow(dead_code)]
                at: u32,
            }
            impl<'a> $name<'a> {
                pub(crate) fn of(i: &Instruction<'a>) -> $name<'a> {
                    $name { words: i.list, at: i.at }
                }
            }
        )*};
    }
    lists! { Sources Registers Fetches Labels Switch Arms ArityArms Updates Segments Commands }

    /// Returns the target of an offset from an instruction.
    fn place(at: u32, w: u64) -> u32 {
        at.wrapping_add_signed(w as i64 as i32)
    }

    impl<'a> Sources<'a> {
        /// Returns the members.
        pub fn all(self) -> impl ExactSizeIterator<Item = Src> + Clone + 'a {
            self.words.iter().map(|&w| Src::of_word(w))
        }
        /// Returns the members in pairs: keys and values.
        pub fn pairs(self) -> impl ExactSizeIterator<Item = (Src, Src)> + Clone + 'a {
            let pairs = self.words.chunks_exact(2);
            pairs.map(|p| (Src::of_word(p[0]), Src::of_word(p[1])))
        }
    }
    impl<'a> Registers<'a> {
        /// Returns the members.
        pub fn all(self) -> impl ExactSizeIterator<Item = Dst> + 'a {
            self.words.iter().map(|&w| Dst::of_word(w))
        }
    }
    impl<'a> Fetches<'a> {
        /// Returns the keys, and the destination of each value.
        pub fn all(self) -> impl ExactSizeIterator<Item = (Src, Dst)> + 'a {
            let pairs = self.words.chunks_exact(2);
            pairs.map(|p| (Src::of_word(p[0]), Dst::of_word(p[1])))
        }
    }
    impl<'a> Labels<'a> {
        /// Returns the targets; `None` stands for the instruction's label.
        pub fn all(self) -> impl ExactSizeIterator<Item = Option<u32>> + 'a {
            let at = self.at;
            let place = move |&w: &u64| (w as i64 as i32 != 0).then(|| place(at, w));
            self.words.iter().map(place)
        }
    }
    impl<'a> Switch<'a> {
        /// Returns sorted immediates, and the target of each.
        pub fn all(self) -> impl Iterator<Item = (u64, u32)> + 'a {
            let (at, (words, labels)) = (self.at, self.words.split_at(self.words.len() / 2));
            let labels = labels.iter().map(move |&w| place(at, w));
            words.iter().copied().zip(labels)
        }
    }
    impl<'a> ArityArms<'a> {
        /// Returns header words, and the target of each.
        pub fn all(self) -> impl Iterator<Item = (u64, u32)> + 'a {
            let at = self.at;
            let pairs = self.words.chunks_exact(2);
            pairs.map(move |p| (p[0], place(at, p[1])))
        }
    }
    impl<'a> Updates<'a> {
        /// Returns numbers of elements, and the value of each.
        pub fn all(self) -> impl DoubleEndedIterator<Item = (usize, Src)> + 'a {
            let pairs = self.words.chunks_exact(2);
            pairs.map(|p| (p[0] as usize, Src::of_word(p[1])))
        }
    }
    impl Segments<'_> {
        /// Returns the segments; `None` if one is of an unknown kind.
        pub fn all(self) -> Option<Vec<Segment>> {
            let words = self.words.chunks_exact(SEGMENT_WORDS);
            words.map(Segment::of).collect()
        }
    }
    impl Commands<'_> {
        /// Returns the commands; `None` if one is unknown.
        pub fn all(self) -> Option<Vec<Command>> {
            Command::all(self.words)
        }
    }
}

macro_rules! all {
    ($( $c:ident $name:ident {$($operands:tt)*} [$($fx:ident)*] $mc:ident $($what:ident($($w:tt)*))* $doc:literal; )*) => {
        $(all! { @one $c $doc $($operands)* })*
    };
    (@one $c:ident $doc:literal $($o:ident: $k:ident),*) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug)]
        pub struct $c { $(pub $o: kind::$k),* }
        #[allow(dead_code, unused_variables, unused_mut)]
        impl $c {
            /// Returns the operands of an instruction of this op.
            pub fn of(i: &Instruction) -> $c {
                debug_assert_eq!(i.op, purlin_isa::ops::Op::$c);
                let mut all = i.operands().iter().copied();
                $(let $o = Operand::of(all.next().unwrap_or(Value::N(0)), i);)*
                $c { $($o),* }
            }
        }
    };
    (@one $c:ident $doc:literal $($o:ident: $k:ident),*; $l:ident: $lk:ident) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug)]
        pub struct $c<'a> { $(pub $o: kind::$k,)* pub $l: list::$lk<'a> }
        #[allow(dead_code)]
        impl<'a> $c<'a> {
            /// Returns the operands of an instruction of this op, and its list.
            pub fn of(i: &Instruction<'a>) -> $c<'a> {
                debug_assert_eq!(i.op, purlin_isa::ops::Op::$c);
                let mut all = i.operands().iter().copied();
                $(let $o = Operand::of(all.next().unwrap_or(Value::N(0)), i);)*
                $c { $($o,)* $l: list::$lk::of(i) }
            }
        }
    };
}
purlin_isa::for_each_specific_op!(all);
