//! The helpers that compiled code may call, as rows. The compiler takes signatures and effects from here, the interpreter's crate
//! has a function for each row: the compiler of Rust holds it against the signature.
//!
//! # The contract of a call
//! Each helper gets the context first, and follows the platform's convention for C. Before the call the stack's top, the heap's top
//! and the reductions stand in the context ([`crate::context`]), and X registers that are live in theirs. After it they are taken
//! from the context again. What else a helper may do its effects say:
//! * `collects`: terms may have moved, so every term in a machine register is stale. The X registers up to the number that is
//!   given, or that the instruction names, and the Y registers are led on; and reductions may have been used.
//! * `looks`: it reads the stack, so slot 0 of the topmost frame must be 0 or the address to return to, and each Y slot a term.
//! * `goes`: the result is where to go on, or null: the process leaves with the exit that stands in the context. Anything but the
//!   instruction behind, or its label, is left to the interpreter.

/// What a helper takes and gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The address of an instruction.
    Pc,
    /// A number.
    Size,
    /// No result.
    Nothing,
}

/// See the head of this module.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Effects {
    pub collects: bool,
    pub looks: bool,
    pub goes: bool,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    /// Behind the context.
    pub parameters: &'static [(&'static str, Kind)],
    pub result: Kind,
    pub effects: Effects,
    pub doc: &'static str,
}

/// Calls `$m!` with every row: `Constant name(parameter: Kind, …) -> Kind [effect …] "what it does";`.
#[macro_export]
macro_rules! for_each_helper {
    ($m:ident) => {
        $m! {
            Collect collect(pc: Pc, need: Size, live: Size) -> Nothing [collects looks] "makes room for so many words, for the instruction at pc, with the first X registers live";
            Step step(pc: Pc, number: Size) -> Pc [collects looks goes] "runs the instruction at pc, whose variant has that number, whatever number stands there";
            Deliver deliver(pc: Pc) -> Pc [collects looks goes] "the send at pc: x0 gets the message in x1, which is then in x0";
        }
    };
}

macro_rules! rows {
    ($( $c:ident $name:ident($($p:ident: $k:ident),*) -> $r:ident [$($fx:ident)*] $doc:literal; )*) => {
        /// A helper; the value is the index of its row.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub enum Helper { $(#[doc = $doc] $c),* }
        /// The rows.
        pub const HELPERS: &[Row] = &[$(Row {
            name: stringify!($name),
            parameters: &[$((stringify!($p), Kind::$k)),*],
            result: Kind::$r,
            #[allow(unused_mut)]
            effects: {
                let mut e = NO_EFFECTS;
                $(e.$fx = true;)*
                e
            },
            doc: $doc,
        }),*];
    };
}
const NO_EFFECTS: Effects = Effects {
    collects: false,
    looks: false,
    goes: false,
};
for_each_helper!(rows);

impl Helper {
    /// The row.
    pub const fn row(self) -> &'static Row {
        &HELPERS[self as usize]
    }
}
