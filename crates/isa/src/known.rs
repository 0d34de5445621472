//! The functions of module `erlang` that the loader knows by name, a row for each: which op
//! replaces a call, and what is known about its effects. The loader works without natives, so this
//! is said apart from their rows; the test `known_functions_agree_with_their_rows` (crate
//! `runtime`) compares both. No other file looks at the name of an import.

use crate::ops::{COMPARISONS, Op, arith};

/// How a call is translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// To a plain call.
    Call,
    /// To one op, with this number in [`arith`].
    Arith(usize),
    /// To a shortcut with two sources and a destination, with this number in [`COMPARISONS`].
    Compare(usize),
    /// To a shortcut with a register and a destination.
    Of(Op),
    /// To a shortcut with a key, a map in a register, and a destination.
    OfMap(Op),
    /// As `element/2`, whose shortcuts differ by the kind of the index.
    Element,
    /// To a call after a shortcut without operands.
    Before(Op),
    /// As `apply/2` and `apply/3`, whose tail calls are ops.
    Apply,
    /// To a call, or to this op if it is a tail call.
    Tail(Op),
}

/// One function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    pub name: &'static str,
    pub arity: u8,
    pub way: Way,
    /// It takes no words of the heap if it succeeds.
    pub makes_nothing: bool,
    /// It always raises.
    pub raises: bool,
}

/// The module of all rows.
pub const MODULE: &str = "erlang";

const fn row(name: &'static str, arity: u8) -> Known {
    Known {
        name,
        arity,
        way: Way::Call,
        makes_nothing: false,
        raises: false,
    }
}
const fn way(name: &'static str, arity: u8, way: Way) -> Known {
    Known {
        way,
        ..row(name, arity)
    }
}
const fn nothing(k: Known) -> Known {
    Known {
        makes_nothing: true,
        ..k
    }
}
const fn raises(name: &'static str, arity: u8) -> Known {
    Known {
        raises: true,
        ..row(name, arity)
    }
}

/// Functions other than arithmetic and comparisons, which have tables of their own.
const OTHERS: &[Known] = &[
    way("apply", 2, Way::Apply),
    way("apply", 3, Way::Apply),
    way("hibernate", 3, Way::Tail(Op::Hibernate)),
    way("setelement", 3, Way::Before(Op::FastSetelement)),
    raises("error", 1),
    raises("error", 2),
    raises("error", 3),
    raises("exit", 1),
    raises("throw", 1),
    way("byte_size", 1, Way::Of(Op::FastByteSize)),
    way("length", 1, Way::Of(Op::FastLength)),
    way("map_size", 1, Way::Of(Op::FastMapSize)),
    nothing(way("element", 2, Way::Element)),
    nothing(way("hd", 1, Way::Of(Op::FastHd))),
    nothing(way("is_map_key", 2, Way::OfMap(Op::FastIsMapKey))),
    nothing(way("map_get", 2, Way::OfMap(Op::FastMapGet))),
    nothing(way("tl", 1, Way::Of(Op::FastTl))),
    nothing(way("tuple_size", 1, Way::Of(Op::FastTupleSize))),
    nothing(row("and", 2)),
    nothing(row("get", 1)),
    nothing(row("is_atom", 1)),
    nothing(row("is_binary", 1)),
    nothing(row("is_bitstring", 1)),
    nothing(row("is_boolean", 1)),
    nothing(row("is_float", 1)),
    nothing(row("is_function", 1)),
    nothing(row("is_function", 2)),
    nothing(row("is_integer", 1)),
    nothing(row("is_integer", 3)),
    nothing(row("is_list", 1)),
    nothing(row("is_map", 1)),
    nothing(row("is_number", 1)),
    nothing(row("is_pid", 1)),
    nothing(row("is_port", 1)),
    nothing(row("is_record", 2)),
    nothing(row("is_record", 3)),
    nothing(row("is_reference", 1)),
    nothing(row("is_tuple", 1)),
    nothing(row("max", 2)),
    nothing(row("min", 2)),
    nothing(row("node", 0)),
    nothing(row("node", 1)),
    nothing(row("not", 1)),
    nothing(row("or", 2)),
    nothing(row("self", 0)),
    nothing(row("xor", 2)),
];

const N: usize = OTHERS.len() + COMPARISONS.len() + arith::OPS.len();

/// All rows, sorted by name and arity.
static KNOWN: [Known; N] = {
    let mut all = [row("", 0); N];
    let mut n = 0;
    let mut i = 0;
    while i < OTHERS.len() {
        all[n] = OTHERS[i];
        (i, n) = (i + 1, n + 1);
    }
    i = 0;
    while i < COMPARISONS.len() {
        all[n] = nothing(way(COMPARISONS[i], 2, Way::Compare(i)));
        (i, n) = (i + 1, n + 1);
    }
    i = 0;
    while i < arith::OPS.len() {
        let (name, arity) = arith::OPS[i];
        all[n] = way(name, arity, Way::Arith(i));
        (i, n) = (i + 1, n + 1);
    }
    // An insertion sort: there are few rows, and nothing else sorts at compile time.
    i = 1;
    while i < N {
        let mut k = i;
        while k > 0 && is_less(&all[k], &all[k - 1]) {
            (all[k], all[k - 1]) = (all[k - 1], all[k]);
            k -= 1;
        }
        i += 1;
    }
    all
};

const fn is_less(a: &Known, b: &Known) -> bool {
    let (x, y) = (a.name.as_bytes(), b.name.as_bytes());
    let mut i = 0;
    while i < x.len() && i < y.len() {
        if x[i] != y[i] {
            return x[i] < y[i];
        }
        i += 1;
    }
    match x.len() == y.len() {
        true => a.arity < b.arity,
        false => x.len() < y.len(),
    }
}

/// All rows.
pub fn all() -> &'static [Known] {
    &KNOWN
}

/// Returns the row of a function; `None` if the loader does not treat it specially.
pub fn known(module: &str, name: &str, arity: u32) -> Option<&'static Known> {
    if module != MODULE {
        return None;
    }
    let by = |k: &Known| k.name.cmp(name).then(u32::from(k.arity).cmp(&arity));
    KNOWN.binary_search_by(by).ok().map(|i| &KNOWN[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_found_once() {
        assert!(KNOWN.windows(2).all(|w| is_less(&w[0], &w[1])));
        for k in &KNOWN {
            assert_eq!(known(MODULE, k.name, k.arity.into()), Some(k));
            assert_eq!(known("lists", k.name, k.arity.into()), None);
        }
        assert_eq!(known(MODULE, "is_map_key", 3), None);
        assert_eq!(known(MODULE, "", 0), None);
    }
}
