//! The contract of an op, as data: everything that its operands don't show. See the rows of
//! [`crate::ops`].
//!
//! A row describes one op that stands by itself. The row of a fused op only lists its parts
//! ([`Part`]), and its effects follow from them, so nothing is written twice.

use crate::ops::{Kind, OPS, Op, Operand, Role, SpecOp};

/// The effects that an op may have. See the head of [`crate::ops`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Effects {
    pub collects: bool,
    pub fails: bool,
    pub yields: bool,
    pub calls: bool,
    pub ends: bool,
    pub looks: bool,
}

impl Effects {
    /// Whether anyone may walk the stack while the op runs: a collection, the trace of an error,
    /// another process while this one has yielded, or the op itself.
    pub const fn may_look(self) -> bool {
        self.collects || self.fails || self.yields || self.calls || self.looks
    }
}

/// X registers that no operand names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Xs {
    None,
    /// The first `n`, from x0 on.
    First(u8),
    /// As many as operand `arity` says, plus `n`.
    Arity(u8),
    /// The arguments that the function was called with.
    Given,
    /// Any of them.
    All,
}

/// Words that an op takes from the heap that an earlier op has reserved. An op that reserves its
/// own has the effect `collects`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Makes {
    Nothing,
    Words(u8),
    /// `n` words, plus one for each member of the list.
    List(u8),
    /// At most `n` words plus operand `size`.
    Size(u8),
    /// As many as it needs; nothing is left of the reserved words.
    Rest,
    /// None. The op may give back the words of a copied message, which nothing refers to any more.
    Back,
}

/// The change of the frame; operand `frame`, or `n`, is the number of Y registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stack {
    Same,
    /// A frame is made.
    Push,
    /// The frame is dropped.
    Pop,
    /// The first Y registers of the frame are dropped.
    Trim,
    /// It changes in another way, and control leaves the function.
    Other,
}

/// The source of an operand of a part. Operands of the whole are named by index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartArg {
    Operand(u8),
    /// A number: the operand plus a constant.
    Plus(u8, u8),
    /// X register of that number.
    X(u8),
    /// No label.
    None,
    Number(u8),
    /// The part may have any number there when it is fused; the whole uses this operand instead.
    AboutOperand(u8),
    /// The same, but the whole uses this number instead.
    About(u8),
}

/// One of the ops that a fused op consists of. Its list, if it has one, is that of the whole.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub op: Op,
    pub args: &'static [PartArg],
}

/// The contract of an op: what its row says besides operands and effects.
#[derive(Clone, Copy, Debug)]
pub struct Contract {
    /// X registers that are read.
    pub reads: Xs,
    /// X registers that are written.
    pub writes: Xs,
    /// Number of X registers that still hold a value after the op, for ops that may lose some and
    /// have no operand of role `Live`.
    pub keeps: Option<u8>,
    pub makes: Makes,
    pub stack: Stack,
    /// The op of the next instruction, which this op may skip. Control then continues after that
    /// instruction.
    pub skips: Option<Op>,
    /// The parts in order; empty if the op is not fused.
    pub parts: &'static [Part],
}

impl Contract {
    pub(crate) const PLAIN: Contract = Contract {
        reads: Xs::None,
        writes: Xs::None,
        keeps: None,
        makes: Makes::Nothing,
        stack: Stack::Same,
        skips: None,
        parts: &[],
    };
}

pub(crate) const fn index_of(operands: &[Operand], name: &str) -> u8 {
    let mut i = 0;
    while !crate::ops::is_same(operands[i].name, name) {
        i += 1;
    }
    i as u8
}

/// Parses the columns of a row that follow its effects.
#[macro_export]
#[doc(hidden)]
macro_rules! row_contract {
    ($c:ident reads $x:ident $($n:literal)?) => { $c.reads = $crate::contract::Xs::$x $(($n))?; };
    ($c:ident writes $x:ident $($n:literal)?) => { $c.writes = $crate::contract::Xs::$x $(($n))?; };
    ($c:ident keeps $n:literal) => { $c.keeps = Some($n); };
    ($c:ident makes $x:ident $($n:literal)?) => { $c.makes = $crate::contract::Makes::$x $(($n))?; };
    ($c:ident stack $x:ident) => { $c.stack = $crate::contract::Stack::$x; };
    ($c:ident skips $x:ident) => { $c.skips = Some(Op::$x); };
    ($c:ident parts $($op:ident($($a:tt),*))*) => {
        {
            const PARTS: &[$crate::contract::Part] =
                &[$($crate::contract::Part { op: Op::$op, args: &[$($crate::row_contract!(@ $a)),*] }),*];
            $c.parts = PARTS;
        }
    };
    (@ X0) => { $crate::contract::PartArg::X(0) };
    (@ NONE) => { $crate::contract::PartArg::None };
    (@ $n:literal) => { $crate::contract::PartArg::Number($n) };
    (@ ($o:ident + $n:literal)) => { $crate::contract::PartArg::Plus($crate::contract::index_of(OPERANDS, stringify!($o)), $n) };
    (@ (about $n:literal)) => { $crate::contract::PartArg::About($n) };
    (@ (about $o:ident)) => { $crate::contract::PartArg::AboutOperand($crate::contract::index_of(OPERANDS, stringify!($o))) };
    (@ $o:ident) => { $crate::contract::PartArg::Operand($crate::contract::index_of(OPERANDS, stringify!($o))) };
}

/// Two adjacent ops that are fused into one if their operands fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Join {
    pub first: Op,
    pub second: Op,
    pub whole: Op,
}

const MOST_JOINS: usize = 96;

/// Whether the parts `from..to` of `whole` are those of `op`.
const fn is_run(whole: &SpecOp, from: usize, to: usize, op: usize) -> bool {
    let parts = whole.contract.parts;
    let own = OPS[op].contract.parts;
    if own.is_empty() {
        return to == from + 1 && parts[from].op as usize == op;
    }
    if own.len() != to - from {
        return false;
    }
    let mut i = 0;
    while i < own.len() {
        if own[i].op as usize != parts[from + i].op as usize {
            return false;
        }
        i += 1;
    }
    true
}

/// Finds the op that has those parts.
const fn run_of(whole: usize, from: usize, to: usize, fused: &[u16]) -> Option<usize> {
    let row = &OPS[whole];
    if to == from + 1 {
        return Some(row.contract.parts[from].op as usize);
    }
    let mut i = 0;
    while i < fused.len() && fused[i] != u16::MAX {
        if fused[i] as usize != whole && is_run(row, from, to, fused[i] as usize) {
            return Some(fused[i] as usize);
        }
        i += 1;
    }
    None
}

/// Every join, sorted by first op.
const ALL_JOINS: ([Option<Join>; MOST_JOINS], usize) = {
    let mut fused = [u16::MAX; MOST_JOINS];
    let mut n = 0;
    let mut i = 0;
    while i < OPS.len() {
        if !OPS[i].contract.parts.is_empty() {
            fused[n] = i as u16;
            n += 1;
        }
        i += 1;
    }
    let mut found = [None; MOST_JOINS];
    let mut k = 0;
    let mut f = 0;
    while f < n {
        let whole = fused[f] as usize;
        let parts = OPS[whole].contract.parts.len();
        let mut at = 1;
        while at < parts {
            let first = run_of(whole, 0, at, &fused);
            let second = run_of(whole, at, parts, &fused);
            if let (Some(a), Some(b)) = (first, second) {
                found[k] = Some(Join {
                    first: Op::at(a),
                    second: Op::at(b),
                    whole: Op::at(whole),
                });
                k += 1;
            }
            at += 1;
        }
        f += 1;
    }
    // Sorts by the first op.
    let mut i = 1;
    while i < k {
        let mut j = i;
        while j > 0 && first(&found, j - 1) > first(&found, j) {
            let other = found[j];
            found[j] = found[j - 1];
            found[j - 1] = other;
            j -= 1;
        }
        i += 1;
    }
    (found, k)
};

const fn first(all: &[Option<Join>; MOST_JOINS], i: usize) -> usize {
    match all[i] {
        Some(j) => j.first as usize,
        None => usize::MAX,
    }
}

/// For each op, the range of the joins that begin with it.
const RANGES: [(u8, u8); OPS.len()] = {
    let mut out = [(0, 0); OPS.len()];
    let (all, n) = &ALL_JOINS;
    let mut i = 0;
    while i < *n {
        let op = first(all, i);
        let from = i;
        while i < *n && first(all, i) == op {
            i += 1;
        }
        out[op] = (from as u8, i as u8);
    }
    out
};

static JOINS: [Join; ALL_JOINS.1] = {
    let (all, n) = &ALL_JOINS;
    let Some(mut join) = all[0] else {
        panic!("no op has parts");
    };
    let mut out = [join; ALL_JOINS.1];
    let mut i = 0;
    while i < *n {
        if let Some(j) = all[i] {
            join = j;
        }
        out[i] = join;
        i += 1;
    }
    out
};

static RANGE_OF: [(u8, u8); OPS.len()] = RANGES;

/// Returns the joins that begin with an op.
#[inline]
pub fn joins(first: Op) -> &'static [Join] {
    let (from, to) = RANGE_OF[first as usize];
    &JOINS[from as usize..to as usize]
}

/// Returns the join that gives `whole` and ends in `second`.
pub fn join_of(whole: Op, second: Op) -> Option<&'static Join> {
    JOINS
        .iter()
        .find(|j| j.whole == whole && j.second == second)
}

impl SpecOp {
    /// Returns the index of the operand of that role.
    pub fn of_role(&self, role: Role) -> Option<usize> {
        self.operands.iter().position(|o| o.kind.role() == role)
    }
    /// Returns the index of the operand of that name.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|o| o.name == name)
    }
    /// Returns the index of the operand that counts Y registers.
    pub fn frame(&self) -> Option<usize> {
        self.operands.iter().position(|o| o.kind == Kind::Frame)
    }
    /// Whether it is fused from other ops.
    pub const fn is_fused(&self) -> bool {
        !self.contract.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_ops_by_themselves_with_all_their_operands() {
        for row in OPS {
            for part in row.contract.parts {
                let of = part.op.row();
                assert!(!of.is_fused(), "{} in {}", of.name, row.name);
                assert_eq!(
                    part.args.len(),
                    of.operands.len(),
                    "{} in {}",
                    of.name,
                    row.name
                );
                for (a, o) in part.args.iter().zip(of.operands) {
                    let label = o.kind.role() == Role::Label;
                    match *a {
                        PartArg::None => assert!(label, "{}", row.name),
                        PartArg::Operand(i) => {
                            let own = row.operands[i as usize].kind.role();
                            assert_eq!(own == Role::Label, label, "{}", row.name);
                        }
                        PartArg::About(_) | PartArg::AboutOperand(_) => {
                            assert_eq!(o.kind.role(), Role::Live, "{}", row.name)
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    #[test]
    fn effects_and_lists_are_those_of_the_parts() {
        for row in OPS.iter().filter(|r| r.is_fused()) {
            let mut all = Effects::default();
            for part in row.contract.parts {
                let e = part.op.row().effects;
                all.collects |= e.collects;
                all.fails |= e.fails;
                all.yields |= e.yields;
                all.calls |= e.calls;
                all.looks |= e.looks;
                all.ends = e.ends;
            }
            assert_eq!(row.effects, all, "{}", row.name);
            let last = row.contract.parts.last().and_then(|p| p.op.row().list);
            assert_eq!(row.list, last, "{}", row.name);
            let c = row.contract;
            let said = (c.reads, c.writes, c.keeps, c.makes, c.stack, c.skips);
            let nothing = (Xs::None, Xs::None, None, Makes::Nothing, Stack::Same, None);
            assert_eq!(said, nothing, "{}", row.name);
        }
    }

    #[test]
    fn each_op_of_parts_is_made_of_two() {
        for row in OPS.iter().filter(|r| r.is_fused()) {
            assert!(
                JOINS.iter().any(|j| j.whole.row().name == row.name),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn contracts_name_operands_that_are_there() {
        for row in OPS {
            let c = row.contract;
            if let Xs::Arity(_) = c.reads {
                assert!(row.named("arity").is_some(), "{}", row.name);
            }
            if let Makes::Size(_) = c.makes {
                assert!(row.named("size").is_some(), "{}", row.name);
            }
            if let Makes::List(_) = c.makes {
                assert!(row.list.is_some(), "{}", row.name);
            }
            if !matches!(c.stack, Stack::Same | Stack::Other) {
                assert!(row.frame().is_some(), "{}", row.name);
            }
            // The number of surviving registers comes from an operand or from the row, never from
            // both; each op that collects has one.
            let live = row.of_role(Role::Live).is_some();
            assert!(!(live && c.keeps.is_some()), "{}", row.name);
            let e = row.effects;
            let left = e.calls || e.ends || row.is_fused();
            let silent = ["put_map", "bs_match"];
            if e.collects && !left && !silent.contains(&row.name) {
                assert!(live || c.keeps.is_some(), "{}", row.name);
            }
        }
    }
}
