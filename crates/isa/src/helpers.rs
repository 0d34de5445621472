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
            room(pc: Pc, what: Number) -> Nothing [collects] "makes room for the instruction at `pc`; \
             the low half of `what` is the number of words, the high half that of live X registers";
            arith(a: Term, b: Term, what: Number) -> Term [makes collects] "the general case of an operation on integers; \
             `what` has its number in the low byte, the number of live X registers in bits 8 to 30, and \
             the bit `IN_BODY`; its high half is the number of the X register of the result plus one, or \
             0, or the Y register with the bit `RESULT_IN_FRAME`; no value if it fails, or takes so long \
             in a body that it is left to the interpreter";
            less(a: Term, b: Term) -> Truth [leaf] "whether `a < b`";
            equal(a: Term, b: Term) -> Truth [leaf] "whether `a == b`";
            same(a: Term, b: Term) -> Truth [leaf] "whether `a =:= b`";
            map_get(map: Term, key: Term) -> Term [leaf] "the value of the key, or no value; what is no map has no keys";
            dictionary_value(key: Term) -> Term [leaf] "the value of the key in the process dictionary, or `undefined`";
            callee(arity: Number) -> Pc [leaf] "where a call goes of the function whose module and name are in the X registers behind so many arguments; 0 where that takes a closer look";
            make_fun(place: Number, entry: Number) -> Nothing [leaf] "writes a fun of the entry at the place, where word 3 counts the words of its environment, but for that";
            utf8(context: Term) -> Term [leaf] "the character of UTF-8 where the match context stands, which goes on behind it; no value where it takes a closer look";
            put_utf8(to: Number, character: Term) -> Number [leaf] "writes the character in UTF-8, up to four bytes; where it ends, or 0 if it is none";
            send(pc: Pc) -> Truth [makes] "x0 ! x1 for the instruction at `pc`, where that is a copy of a small message for a process of this node; x0 is the message then, and else nothing has happened";
            remove_message() -> Truth [leaf] "takes the current message out, where nobody is told of that and nothing of it is kept; else nothing has happened";
            put_bytes(to: Number, binary: Term, limit: Number) -> Number [leaf] "writes all bytes of the binary; where they end, or 0 if that would be behind the limit";
        }
    };
}

/// A bit of the operand of `arith`, in the half with the operation's number: the operation is not
/// in a guard.
pub const IN_BODY: u64 = 1 << 31;
/// A bit of the operand of `arith`, in the half with the register's number: the result goes to a Y
/// register.
pub const RESULT_IN_FRAME: u64 = 1 << 31;

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
