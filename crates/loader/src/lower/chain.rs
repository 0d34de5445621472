//! Consecutive type tests of one register, as in the clauses of a function and in Elixir's
//! protocols: the label of each leads to the next. A `type_switch` before the first one jumps to
//! the first test that may succeed.
//!
//! The tests stay where they are, and the chosen one still runs: the switch only knows which tests
//! fail.

use super::emit::{Arg, count};
use super::lowering::Lower;
use crate::generic::{Instr, NO_INSTR, Operand};
use purlin_isa::genops as g;
use purlin_isa::ops::Op;
use purlin_term::word::{
    CLASS_ATOM, CLASS_LIST, CLASS_NIL, CLASS_PID, CLASS_PORT, CLASS_SMALL, Subtag, TYPE_CLASSES,
};

/// Minimum number of tests for a switch, which is an additional op if the first of them succeeds.
const MIN_TESTS: usize = 4;
/// Maximum number of tests in a chain.
const MOST_TESTS: usize = 32;
/// Length of the instruction before its list, in words: what follows it comes after both.
const SWITCH_WORDS: usize = Op::TypeSwitch.row().words();

impl Lower<'_> {
    /// Returns the labels of the switch to insert before `ins`, by class, if `ins` begins a chain
    /// of tests.
    pub(super) fn type_switch(&mut self, before: Option<&Instr>, ins: &Instr) -> Option<Vec<Arg>> {
        holds(ins.op, 0)?;
        let code = self.code;
        if let Some(b) = before.filter(|b| b.op == g::LABEL)
            && let Operand::U(l) = code.args(b)[0]
            && self.switched.contains(&(l as u32))
        {
            return None;
        }
        let register = code.args(ins)[1].untyped();
        if !register.is_reg() {
            return None;
        }
        let mut tests = Vec::new();
        let mut labels = Vec::new();
        let mut at = *ins;
        while tests.len() < MOST_TESTS {
            let Operand::Label(label @ 1..) = code.args(&at)[0] else {
                return None;
            };
            tests.push(at.op);
            labels.push(label);
            let defined = *code.labels.get(label as usize)?;
            if defined == NO_INSTR {
                return None;
            }
            // Directly after the label.
            match code.instrs.get(defined as usize + 1) {
                Some(n) if holds(n.op, 0).is_some() && code.args(n)[1].untyped() == register => {
                    at = *n
                }
                _ => break,
            }
        }
        if tests.len() < MIN_TESTS {
            return None;
        }
        self.switched.extend(&labels);
        let next = count((SWITCH_WORDS + TYPE_CLASSES) as u32);
        let to = |class| match tests.iter().position(|&t| holds(t, class) != Some(false)) {
            Some(0) => next,
            Some(k) => Arg::L(labels[k - 1] as i32),
            None => Arg::L(labels[labels.len() - 1] as i32),
        };
        Some((0..TYPE_CLASSES).map(to).collect())
    }
}

/// Whether a test may succeed for a term of that class; `None` if it is no type test.
fn holds(op: u8, class: usize) -> Option<bool> {
    let of = |subtags: &[Subtag]| subtags.iter().any(|&s| s as usize == class);
    Some(match op {
        g::IS_INTEGER => class == CLASS_SMALL || of(&[Subtag::PosBig, Subtag::NegBig]),
        g::IS_FLOAT => of(&[Subtag::Float]),
        g::IS_NUMBER => {
            class == CLASS_SMALL || of(&[Subtag::PosBig, Subtag::NegBig, Subtag::Float])
        }
        g::IS_ATOM | g::IS_BOOLEAN => class == CLASS_ATOM,
        g::IS_PID => class == CLASS_PID || of(&[Subtag::ExtPid]),
        g::IS_PORT => class == CLASS_PORT || of(&[Subtag::ExtPort]),
        g::IS_REFERENCE => of(&[Subtag::Ref, Subtag::ExtRef]),
        g::IS_NIL => class == CLASS_NIL,
        g::IS_NONEMPTY_LIST => class == CLASS_LIST,
        g::IS_LIST => class == CLASS_LIST || class == CLASS_NIL,
        g::IS_BINARY | g::IS_BITSTR => of(&[Subtag::RefcBin, Subtag::HeapBin, Subtag::SubBin]),
        g::IS_TUPLE | g::IS_TAGGED_TUPLE => of(&[Subtag::Tuple]),
        g::IS_FUNCTION => of(&[Subtag::Fun]),
        g::IS_MAP => of(&[Subtag::Map]),
        _ => return None,
    })
}
