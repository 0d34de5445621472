//! Lowering of moves, lists, tuples, maps and floats.

use super::emit::{Arg, count};
use super::interface::MapValue;
use super::lowering::Lower;
use crate::error::{Fault, LoadError};
use crate::generic::{Instr, Operand};
use purlin_isa::genops::{self as g};
use purlin_isa::ops::Op;

impl Lower<'_> {
    /// Lowers the instruction at `i` if it moves, builds or reads terms, perhaps together with
    /// following ones. Returns their number.
    pub(super) fn data(&mut self, instrs: &[Instr], i: usize) -> Result<Option<usize>, LoadError> {
        let code = self.code;
        let ins = &instrs[i];
        let a = code.args(ins);
        match ins.op {
            g::MOVE => self.ss(Op::Move, &a[..2]),
            g::SWAP => self.ss(Op::Swap, &a[..2]),
            g::GET_LIST => {
                let r = self.r(a[0]);
                let (h, t) = (self.s(a[1]), self.s(a[2]));
                self.e.op(Op::GetList, &[r, h, t]);
            }
            g::GET_HD => self.ss(Op::GetHd, &a[..2]),
            g::GET_TL => self.ss(Op::GetTl, &a[..2]),
            g::GET_TUPLE_ELEMENT => self.tuple_element(a),
            g::SET_TUPLE_ELEMENT => {
                let (v, t) = (self.s(a[0]), self.s(a[1]));
                let at = count(self.offset(self.u(a[2])));
                self.e.op(Op::SetTupleElement, &[v, t, at]);
            }
            g::PUT_LIST => self.ss(Op::PutList, &a[..3]),
            g::PUT_TUPLE => {
                let n = self.u(a[0]) as usize;
                let d = self.s(a[1]);
                let mut words = Vec::with_capacity(n);
                for k in 1..=n {
                    match instrs.get(i + k) {
                        Some(p) if p.op == g::PUT => {
                            let s = self.s(code.args(p)[0]);
                            // The elements are read before the tuple exists.
                            if s == d {
                                return Err(Fault::Operand(1).into());
                            }
                            words.push(s);
                        }
                        _ => return Err(Fault::FunctionStructure.into()),
                    }
                }
                self.put_tuple(d, &words);
                return Ok(Some(1 + n));
            }
            g::PUT => return Err(Fault::FunctionStructure.into()),
            g::PUT_TUPLE2 => {
                let d = self.s(a[0]);
                let elements = self.list_words(a[1]);
                self.put_tuple(d, &elements);
            }
            g::UPDATE_RECORD => {
                let (s, d) = (self.s(a[2]), self.s(a[3]));
                let words: Vec<Arg> = code
                    .list(a[4])
                    .iter()
                    .map(|&m| match m {
                        Operand::U(n) => Arg::N(n),
                        o => self.s(o),
                    })
                    .collect();
                let n = count(words.len() as u32 / 2);
                let size = count(self.u(a[1]) as u32);
                self.e.op_list(Op::UpdateRecord, &[s, d, size, n], &words);
            }
            g::FMOVE => match (a[0], a[1]) {
                (Operand::Fr(x), Operand::Fr(y)) => {
                    self.e.op(Op::FMove, &[count(x * 8), count(y * 8)])
                }
                (Operand::Fr(_), _) => self.ss(Op::FStore, &a[..2]),
                (_, Operand::Fr(_)) => self.ss(Op::FLoad, &a[..2]),
                // An operand is a float register where a term is wanted.
                _ => return Err(Fault::Operand(2).into()),
            },
            g::FCONV => self.ss(Op::FConv, &a[..2]),
            g::FADD => self.ss(Op::FAdd, &a[1..4]),
            g::FSUB => self.ss(Op::FSub, &a[1..4]),
            g::FMUL => self.ss(Op::FMul, &a[1..4]),
            g::FDIV => self.ss(Op::FDiv, &a[1..4]),
            g::FNEGATE => self.ss(Op::FNegate, &a[1..3]),
            g::PUT_MAP_ASSOC => self.put_map(Op::PutMapAssoc, a),
            g::PUT_MAP_EXACT => self.put_map(Op::PutMapExact, a),
            g::HAS_MAP_FIELDS => self.map_list(Op::HasMapFields, a),
            g::GET_MAP_ELEMENTS => self.map_list(Op::GetMapElements, a),
            _ => return Ok(None),
        }
        Ok(Some(1))
    }

    /// Returns the offset of element `n` in a tuple, in bytes.
    fn offset(&mut self, n: u64) -> u32 {
        let at = n.checked_add(1).and_then(|n| n.checked_mul(8));
        match at.and_then(|at| u32::try_from(at).ok()) {
            Some(at) => at,
            None => {
                self.e.too_large = true;
                0
            }
        }
    }
    fn tuple_element(&mut self, a: &[Operand]) {
        let r = self.r(a[0]);
        let d = self.s(a[2]);
        let offset = self.offset(self.u(a[1]));
        match u16::try_from(offset) {
            Ok(at) => self.e.op(Op::GetTupleElement, &[r, count(at.into()), d]),
            Err(_) => self.e.op(Op::GetTupleElementFar, &[r, d, count(offset)]),
        }
    }
    fn put_tuple(&mut self, d: Arg, elements: &[Arg]) {
        match *elements {
            [x, y] => self.e.op(Op::PutTuple2, &[x, y, d]),
            [x, y, z] => self.e.op(Op::PutTuple3, &[x, y, z, d]),
            _ => {
                let words = elements;
                let n = count(words.len() as u32);
                self.e.op_list(Op::PutTuple, &[d, n], words);
            }
        }
    }
    fn put_map(&mut self, op: Op, a: &[Operand]) {
        let (s, d) = (self.s(a[1]), self.s(a[2]));
        let list = self.list_words(a[4]);
        let words = &list;
        if let (Op::PutMapAssoc, Arg::C(map)) = (op, s)
            && let Some(keys) = list
                .chunks_exact(2)
                .map(|pair| match pair[0] {
                    Arg::C(word) => Some(word),
                    _ => None,
                })
                .collect::<Option<Vec<u64>>>()
            && let Some((keys, order)) = self.env.map_keys(map, &keys)
        {
            let value = |v: &MapValue| match *v {
                MapValue::Put(i) => words[2 * i + 1],
                MapValue::Old(word) => Arg::N(word),
            };
            let values: Vec<Arg> = order.iter().map(value).collect();
            let n = count(values.len() as u32);
            self.e
                .op_list(Op::NewMap, &[Arg::C(keys), d, self.h(a[3]), n], &values);
            return;
        }
        let n = count(words.len() as u32);
        self.e
            .op_list(op, &[self.label(a[0]), s, d, self.h(a[3]), n], words);
    }
    pub(super) fn map_list(&mut self, op: Op, a: &[Operand]) {
        let s = self.s(a[1]);
        let words = self.list_words(a[2]);
        let n = count(words.len() as u32);
        self.e.op_list(op, &[self.label(a[0]), s, n], &words);
    }
}
