//! Lowering of comparisons, type tests and selections.

use super::emit::{Arg, count};
use super::lowering::Lower;
use super::words::tuple_header;
use crate::generic::Operand;
use purlin_isa::genops::{self as g};
use purlin_isa::ops::Op;
use purlin_term::word::{SMALL_SHIFT, is_immed_word, is_small_word};
use std::collections::HashSet;

impl Lower<'_> {
    /// Lowers a comparison, a type test or a selection; returns `false` if it is none.
    pub(super) fn branch(&mut self, op: u8, a: &[Operand]) -> bool {
        let code = self.code;
        match op {
            g::IS_LT => self.compare(Op::IsLt, a),
            g::IS_GE => self.compare(Op::IsGe, a),
            g::IS_EQ => self.compare(Op::IsEq, a),
            g::IS_NE => self.compare(Op::IsNe, a),
            g::IS_EQ_EXACT => self.exact(Op::IsEqExact, Op::IsEqImmed, a),
            g::IS_NE_EXACT => self.exact(Op::IsNeExact, Op::IsNeImmed, a),
            g::IS_INTEGER => self.test(Op::IsInteger, a),
            g::IS_FLOAT => self.test(Op::IsFloat, a),
            g::IS_NUMBER => self.test(Op::IsNumber, a),
            g::IS_ATOM => self.test(Op::IsAtom, a),
            g::IS_PID => self.test(Op::IsPid, a),
            g::IS_REFERENCE => self.test(Op::IsReference, a),
            g::IS_PORT => self.test(Op::IsPort, a),
            g::IS_NIL => self.test(Op::IsNil, a),
            g::IS_BINARY => self.test(Op::IsBinary, a),
            g::IS_BITSTR => self.test(Op::IsBitstr, a),
            g::IS_LIST => self.test(Op::IsList, a),
            g::IS_NONEMPTY_LIST => self.test(Op::IsNonemptyList, a),
            g::IS_BOOLEAN => self.test(Op::IsBoolean, a),
            g::IS_MAP => self.test(Op::IsMap, a),
            g::IS_FUNCTION => self.test(Op::IsFunction, a),
            g::IS_TUPLE => self.test(Op::IsTuple, a),
            g::TEST_ARITY => {
                let r = self.r(a[1]);
                let h = Arg::N(tuple_header(self.u(a[2])));
                self.e.op(Op::TestArity, &[self.label(a[0]), r, h]);
            }
            g::IS_TAGGED_TUPLE => {
                let r = self.r(a[1]);
                let tag = Arg::N(self.s(a[3]).word());
                self.e.op(
                    Op::IsTaggedTuple,
                    &[self.label(a[0]), r, Arg::N(tuple_header(self.u(a[2]))), tag],
                );
            }
            g::IS_FUNCTION2 => {
                let (f, n) = (self.s(a[1]), self.s(a[2]));
                self.e.op(Op::IsFunction2, &[self.label(a[0]), f, n]);
            }
            g::SELECT_VAL => self.select_val(a),
            g::SELECT_TUPLE_ARITY => {
                let r = self.r(a[0]);
                let words: Vec<Arg> = code
                    .list(a[2])
                    .iter()
                    .map(|&m| match m {
                        Operand::U(n) => Arg::N(tuple_header(n)),
                        o => self.label(o),
                    })
                    .collect();
                self.e.op_list(
                    Op::SelectArity,
                    &[r, self.label(a[1]), count(words.len() as u32)],
                    &words,
                );
            }
            _ => return false,
        }
        true
    }

    fn compare(&mut self, op: Op, a: &[Operand]) {
        let (x, y) = (self.s(a[1]), self.s(a[2]));
        self.e.op(op, &[self.label(a[0]), x, y]);
    }
    fn exact(&mut self, op: Op, immed: Op, a: &[Operand]) {
        let (x, y) = (self.s(a[1]), self.s(a[2]));
        match (x, y) {
            (Arg::X(_) | Arg::Y(_), Arg::C(w)) if is_immed_word(w) => {
                self.e.op(immed, &[self.label(a[0]), x, Arg::N(w)])
            }
            (Arg::C(w), Arg::X(_) | Arg::Y(_)) if is_immed_word(w) => {
                self.e.op(immed, &[self.label(a[0]), y, Arg::N(w)])
            }
            _ => self.e.op(op, &[self.label(a[0]), x, y]),
        }
    }
    fn test(&mut self, op: Op, a: &[Operand]) {
        let r = self.r(a[1]);
        self.e.op(op, &[self.label(a[0]), r]);
    }
    fn select_val(&mut self, a: &[Operand]) {
        let code = self.code;
        let fail = self.label(a[1]);
        let members = code.list(a[2]);
        let mut pairs: Vec<(u64, Arg)> = Vec::with_capacity(members.len() / 2);
        for p in members.chunks(2) {
            pairs.push((self.s(p[0]).word(), self.label(p[1])));
        }
        // As in stock the first of two equal values wins.
        if pairs.iter().any(|p| !is_immed_word(p.0)) {
            let mut seen = HashSet::new();
            pairs.retain(|p| seen.insert(p.0));
            let s = self.s(a[0]);
            let words: Vec<Arg> = pairs.iter().flat_map(|p| [Arg::N(p.0), p.1]).collect();
            self.e.op_list(
                Op::SelectLinear,
                &[s, fail, count(words.len() as u32)],
                &words,
            );
            return;
        }
        pairs.sort_by_key(|p| p.0);
        pairs.dedup_by_key(|p| p.0);
        let r = self.r(a[0]);
        let smalls = pairs.iter().all(|p| is_small_word(p.0));
        if smalls && pairs.len() >= 3 {
            let vs: Vec<i64> = pairs.iter().map(|p| (p.0 as i64) >> SMALL_SHIFT).collect();
            let (lo, hi) = vs
                .iter()
                .fold((i64::MAX, i64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
            let span = (hi as i128 - lo as i128) as u128 + 1;
            // A table distinguishes characters without a branch that is hard to predict.
            let few = if pairs.len() > 3 { 64 } else { 0 };
            if span <= few.max(3 * pairs.len() as u128) {
                let mut table = vec![Arg::L(0); span as usize];
                for (v, p) in vs.iter().zip(&pairs) {
                    table[(v - lo) as usize] = p.1;
                }
                self.e.op_list(
                    Op::JumpTable,
                    &[r, fail, Arg::N(lo as u64), count(span as u32)],
                    &table,
                );
                return;
            }
        }
        let mut words: Vec<Arg> = pairs.iter().map(|p| Arg::N(p.0)).collect();
        words.extend(pairs.iter().map(|p| p.1));
        self.e
            .op_list(Op::SelectVal, &[r, fail, count(pairs.len() as u32)], &words);
    }
}
