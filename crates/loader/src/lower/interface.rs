//! The services of the runtime that lowering needs, and its result.

use crate::generic::BigInt;
use purlin_isa::types::{Fact, Type};

/// An imported function, as the runtime knows it.
#[derive(Clone, Copy, Debug)]
pub struct Callee {
    /// Address of its export.
    pub export: u64,
    /// Whether it is a native of any kind.
    pub built_in: bool,
    /// Address of its native, for calls that bypass the export.
    pub native: Option<u64>,
    /// Address of the native for instructions that can only call natives: one that raises `undef`
    /// if this runtime lacks it.
    pub guard: u64,
}

/// The services of the runtime that lowering needs. Words are term words.
pub trait Env {
    /// Returns the atom with that number in the file.
    fn atom(&mut self, number: u32) -> u64;
    fn literal(&mut self, index: u32) -> u64;
    /// Returns a bignum literal of that value (any integer).
    fn bigint(&mut self, value: &BigInt) -> u64;
    /// Returns the result of putting `keys` into the map of that word: a literal tuple of all its
    /// keys in the order of map keys, and the source of each value. `None` if it is no flat map, or
    /// a key is no immediate.
    fn map_keys(&mut self, map: u64, keys: &[u64]) -> Option<(u64, Vec<MapValue>)>;
    /// Returns the definition of the records of that name which the file declares: a literal tuple
    /// of their definition and a tuple of their defaults, each in a list of its own, or an empty
    /// one for none. `None`: it declares no such records.
    fn record(&mut self, name: u32) -> Option<u64>;
    /// Returns the words of the two atoms, if a term is a tuple of two.
    fn pair_of_atoms(&mut self, term: u64) -> Option<(u64, u64)>;
    fn import(&mut self, index: u32) -> Callee;
    /// Returns the address of the fun entry of that lambda.
    fn lambda(&mut self, index: u32) -> u64;
    /// Returns the address of the module's string table, valid as long as the code lives.
    fn strings(&mut self) -> u64;
    /// Returns the address of the export of a function of this module for which the runtime has a
    /// native; then its code in the file doesn't run.
    fn own_native(&mut self, function: u32, arity: u32) -> Option<u64>;
    /// Returns the address of the slot of the function with that index: see
    /// [`Op::Nif`](purlin_isa::ops::Op::Nif).
    fn nif_slot(&mut self, index: usize) -> u64;
    /// Returns the address of the counter of the function with that index, if functions are
    /// counted.
    fn function_counter(&mut self, index: usize) -> Option<u64>;
    /// Returns the address of the counter with that number, if lines are counted. There are fewer
    /// numbers than instructions `line` and `executable_line`.
    fn line_counter(&mut self, number: usize) -> Option<u64>;
    /// Whether lines are prepared for breakpoints.
    fn lines_can_break(&mut self) -> bool {
        false
    }
    /// Returns the address that marks the function with that index for profilers, if code is to
    /// show which function runs.
    fn mark(&mut self, index: usize) -> Option<u64>;
    /// Returns the names in a term that is a proper list of atoms; none for anything else.
    fn atoms_of(&mut self, term: u64) -> Vec<String>;
}

/// The source of a value of a map that is made as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapValue {
    /// The value for that one of the keys that are put.
    Put(usize),
    /// A constant: the word in the old map.
    Old(u64),
}

/// A function of the lowered code. Offsets are in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoweredFunction {
    /// Word of the name.
    pub name: u64,
    pub arity: u32,
    /// Offset of `func_info`.
    pub start: u32,
    /// Offset at which calls enter.
    pub entry: u32,
    pub end: u32,
    /// Whether a native library may replace it.
    pub nif: bool,
}

/// A line whose executions are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedLine {
    /// Number of its counter.
    pub counter: u32,
    /// Index of its function.
    pub function: u32,
    /// Item of the line table.
    pub item: u32,
    /// The compiler's name for it.
    pub id: u32,
}

/// A line that can have a breakpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DebugLine {
    /// Offset of its instruction, [`Op::DebugLine`](purlin_isa::ops::Op::DebugLine), in words.
    pub at: u32,
    /// Index of its function.
    pub function: u32,
    /// Item of the line table.
    pub item: u32,
    /// Its number in the table of debug information, from 1.
    pub number: u32,
}

/// Code ready to be stored at an 8-aligned address.
#[derive(Default, Debug)]
pub struct Lowered {
    pub words: Vec<u64>,
    pub functions: Vec<LoweredFunction>,
    /// Offset of each label in words; `u32::MAX` for undefined labels.
    pub labels: Vec<u32>,
    /// Items of the line table, each with the offset at which it begins; sorted by offset.
    pub lines: Vec<(u32, u32)>,
    /// Facts about registers that instructions read; sorted by offset.
    pub facts: Vec<Fact>,
    /// The types that the facts refer to; empty if there are none.
    pub types: Vec<Type>,
    /// The counted lines, in order of their counters.
    pub counted: Vec<CountedLine>,
    /// The lines that can have breakpoints, in order of their offsets.
    pub debug_lines: Vec<DebugLine>,
    /// Entry of the function that runs when the module is loaded.
    pub on_load: Option<u32>,
}
