//! The helpers that compiled code may call, as rows. The compiler takes their addresses and
//! contracts from here. The interpreter's crate has a function for each row, and the Rust compiler
//! checks its signature against the row.
//!
//! # The contract of a call
//! The first argument of each helper is the context, and the calling convention is the platform's
//! for C. A helper doesn't unwind: a panic ends the program. Before the call, all registers of
//! compiled code are stored in the context ([`crate::context`]): the X registers, the top of the
//! stack, the top of the heap, the reductions. After it they are loaded again. The effects say what
//! else a helper may do:
//! - `leaf`: it takes no words of the heap and never collects. It may write to the place that it is
//!   given, change a match context, count a reference and add an object to the off-heap list. Only
//!   X0 to X5 are stored before the call, and only those are loaded after it.
//! - `makes`: it may make terms and use reductions.
//! - `collects`: terms may have moved, so every term in a machine register is stale. The X
//!   registers below the given number and the Y registers are updated. The helper looks at the
//!   stack, so slot 0 of the topmost frame must be 0 or the return address, and each Y slot must
//!   hold a term.

/// The kind of a parameter or of the result of a helper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The address of an instruction.
    Pc,
    /// A term. A result may also be no value.
    Term,
    /// A number.
    Number,
    /// A truth value, in the low byte.
    Truth,
    /// No result.
    Nothing,
}

/// The effects of a helper. See the head of this module.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Effects {
    pub leaf: bool,
    pub makes: bool,
    pub collects: bool,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    /// The parameters after the context.
    pub parameters: &'static [(&'static str, Kind)],
    pub result: Kind,
    pub effects: Effects,
    pub doc: &'static str,
}

/// Calls `$m!` with every row: `name(parameter: Kind, …) -> Kind [effect …] "what it does";`.
#[macro_export]
macro_rules! for_each_helper {
    ($m:ident) => {
        $m! {
            room(pc: Pc, what: Number) -> Nothing [collects] "collects to make room for the instruction at `pc`; `what` is a packed [`Room`]";
            arith(a: Term, b: Term, what: Number) -> Term [makes collects] "the general case of an operation on integers; `what` is a packed \
             [`Arith`]; no value if the operation fails, or if it is in a body and so long that the interpreter does it";
            less(a: Term, b: Term) -> Truth [leaf] "whether `a < b`";
            equal(a: Term, b: Term) -> Truth [leaf] "whether `a == b`";
            same(a: Term, b: Term) -> Truth [leaf] "whether `a =:= b`";
            map_get(map: Term, key: Term) -> Term [leaf] "the value of the key, or no value; what is no map has no keys";
            dictionary_value(key: Term) -> Term [leaf] "the value of the key in the process dictionary, or `undefined`";
            callee(arity: Number) -> Pc [leaf] "the entry of the function that `apply` calls, whose module and name are in the X registers after the arguments; 0 if the interpreter must find it";
            make_fun(place: Number, entry: Number) -> Nothing [leaf] "writes a fun of `entry` at `place`; the caller has written its free variables, and their number to word 3";
            utf8(context: Term) -> Term [leaf] "reads a UTF-8 character from a match context and moves the context behind it; no value if there is none";
            put_utf8(to: Number, character: Term) -> Number [leaf] "writes a character in UTF-8, up to four bytes; returns the address behind it, or 0 if the term is no character";
            send(pc: Pc) -> Truth [makes] "sends x1 to x0 for the instruction at `pc`, if x0 is a local process and the message small enough to be copied; x0 becomes the message. False: nothing has happened";
            remove_message() -> Truth [leaf] "removes the current message if it has been copied to the heap and no trace or budget must learn of it. False: nothing has happened";
            put_bytes(to: Number, binary: Term, limit: Number) -> Number [leaf] "writes all bytes of a binary; returns the address behind them, or 0 if they would go beyond `limit`";
        }
    };
}

/// The room that the helper `room` makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    pub words: u32,
    /// Number of X registers that hold terms.
    pub live: u32,
}

impl Room {
    /// Returns it as one word: the words in the low half, the registers in the high half.
    #[inline(always)]
    pub const fn pack(self) -> u64 {
        self.words as u64 | (self.live as u64) << 32
    }
    /// The reverse of [`pack`](Room::pack).
    #[inline(always)]
    pub const fn unpack(what: u64) -> Room {
        Room {
            words: what as u32,
            live: (what >> 32) as u32,
        }
    }
}

/// The register for the result of `arith`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultRegister {
    X(u16),
    Y(u16),
}

/// The operation that `arith` performs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arith {
    /// Its number among the operations.
    pub number: u8,
    /// Number of X registers that hold terms.
    pub live: u16,
    /// It is not in a guard.
    pub in_body: bool,
    pub result: ResultRegister,
}

const LIVE_SHIFT: u32 = 8;
const IN_BODY: u64 = 1 << 31;
const RESULT_SHIFT: u32 = 32;
const RESULT_IN_FRAME: u64 = 1 << 63;

impl Arith {
    /// Returns it as one word: from the low bits the operation's number, the number of live
    /// registers, a bit for a body, and the register of the result with a bit for a frame.
    #[inline(always)]
    pub const fn pack(self) -> u64 {
        let result = match self.result {
            ResultRegister::X(n) => (n as u64) << RESULT_SHIFT,
            ResultRegister::Y(n) => (n as u64) << RESULT_SHIFT | RESULT_IN_FRAME,
        };
        let body = if self.in_body { IN_BODY } else { 0 };
        self.number as u64 | (self.live as u64) << LIVE_SHIFT | body | result
    }
    /// The reverse of [`pack`](Arith::pack).
    #[inline(always)]
    pub const fn unpack(what: u64) -> Arith {
        let n = (what >> RESULT_SHIFT) as u16;
        Arith {
            number: what as u8,
            live: (what >> LIVE_SHIFT) as u16,
            in_body: what & IN_BODY != 0,
            result: match what & RESULT_IN_FRAME {
                0 => ResultRegister::X(n),
                _ => ResultRegister::Y(n),
            },
        }
    }
}

/// The address of a helper that is a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Leaf(pub u64);

/// The address of a helper or a handler that may make terms, collect, or use reductions.
#[derive(Clone, Copy, Debug)]
pub struct Full(pub u64);

impl From<u64> for Leaf {
    fn from(address: u64) -> Leaf {
        Leaf(address)
    }
}

impl From<u64> for Full {
    fn from(address: u64) -> Full {
        Full(address)
    }
}

/// The type of a helper's address, from its effects.
macro_rules! address {
    (leaf) => {
        Leaf
    };
    ($($fx:ident)*) => {
        Full
    };
}

macro_rules! rows {
    ($( $name:ident($($p:ident: $k:ident),*) -> $r:ident [$($fx:ident)*] $doc:literal; )*) => {
        /// The rows.
        pub const HELPERS: &[Row] = &[$(Row {
            name: stringify!($name),
            parameters: &[$((stringify!($p), Kind::$k)),*],
            result: Kind::$r,
            effects: Effects { $($fx: true,)* ..NO_EFFECTS },
            doc: $doc,
        }),*];
        /// The address of each helper.
        #[derive(Clone, Copy, Debug)]
        pub struct Helpers { $(#[doc = $doc] pub $name: address!($($fx)*)),* }
    };
}
const NO_EFFECTS: Effects = Effects {
    leaf: false,
    makes: false,
    collects: false,
};
for_each_helper!(rows);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_words_are_unpacked() {
        let room = Room {
            words: u32::MAX,
            live: 1024,
        };
        assert_eq!(Room::unpack(room.pack()), room);
        for result in [
            ResultRegister::X(0),
            ResultRegister::X(1023),
            ResultRegister::Y(0),
            ResultRegister::Y(u16::MAX),
        ] {
            for in_body in [false, true] {
                let a = Arith {
                    number: 255,
                    live: u16::MAX,
                    in_body,
                    result,
                };
                assert_eq!(Arith::unpack(a.pack()), a);
            }
        }
    }

    /// The context and the parameters fit in registers, and a helper is either a leaf or says what
    /// it does.
    #[test]
    fn rows_make_sense() {
        for h in HELPERS {
            assert!(h.parameters.len() <= 3, "{}", h.name);
            let Effects {
                leaf,
                makes,
                collects,
            } = h.effects;
            assert!(leaf != (makes || collects), "{}", h.name);
        }
    }
}
