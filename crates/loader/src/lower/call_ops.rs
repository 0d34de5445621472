//! Lowering of calls: of functions, natives and funs.

use super::emit::{Arg, count};
use super::lowering::Lower;
use super::words::{FUN_WORDS, small};
use crate::generic::{Instr, Operand};
use purlin_isa::genops::{self as g};
use purlin_isa::known::Way;
use purlin_isa::ops::{NO_LIVE, Op};
use purlin_term::word::is_small_word;

impl Lower<'_> {
    /// Lowers the instruction at `i` if it calls something or makes a fun, perhaps together with
    /// following ones. Returns their number.
    pub(super) fn call(&mut self, instrs: &[Instr], i: usize) -> Option<usize> {
        let code = self.code;
        let ins = &instrs[i];
        let a = code.args(ins);
        let next = instrs.get(i + 1);
        match ins.op {
            g::CALL => self.e.op(Op::Call, &[self.label(a[1]), self.h(a[0])]),
            g::CALL_LAST => self.e.op(
                Op::CallLast,
                &[self.label(a[1]), self.h(a[2]), self.h(a[0])],
            ),
            g::CALL_ONLY => self.e.op(Op::CallOnly, &[self.label(a[1]), self.h(a[0])]),
            g::CALL_EXT | g::CALL_EXT_ONLY | g::CALL_EXT_LAST => {
                let c = self.env.import(self.u(a[1]) as u32);
                let n = self.h(a[0]);
                let x = Arg::N(c.export);
                if let Some(op) = self.apply(ins, a) {
                    let frame = a.get(2).filter(|_| op != Op::Hibernate);
                    let frame = frame.map(|&f| self.h(f));
                    self.e.op(op, frame.as_slice());
                    return Some(1);
                }
                match (ins.op, c.native) {
                    (g::CALL_EXT, None) => self.e.op(Op::CallExt, &[x, n]),
                    (g::CALL_EXT_ONLY, None) => self.e.op(Op::CallExtOnly, &[x, n]),
                    (_, None) => self.e.op(Op::CallExtLast, &[x, self.h(a[2]), n]),
                    (g::CALL_EXT, Some(f)) => {
                        let known = self.file.known(self.u(a[1]) as usize);
                        if let Some(Way::Before(op)) = known.map(|k| k.way) {
                            self.e.op(op, &[]);
                        }
                        self.e.op(Op::CallBif, &[x, Arg::N(f), n])
                    }
                    // The target of a native's trap returns to the frame: traces see it.
                    (g::CALL_EXT_ONLY, Some(f)) => {
                        self.e.op(Op::CallBifOnly, &[x, Arg::N(f), n]);
                        self.e.op(Op::DeallocateReturn, &[count(0)]);
                    }
                    (_, Some(f)) => {
                        let frame = self.h(a[2]);
                        self.e.op(Op::CallBifLast, &[x, Arg::N(f), frame, n]);
                        self.e.op(Op::DeallocateReturn, &[frame]);
                    }
                }
            }
            g::BIF0 => {
                let c = self.env.import(self.u(a[0]) as u32);
                let d = self.s(a[1]);
                self.e.op(Op::Bif0, &[Arg::N(c.guard), d]);
            }
            g::BIF1 => self.bif(Op::Bif1, a[0], a[1], &a[2..3], a[3], None),
            g::BIF2 => self.bif(Op::Bif2, a[0], a[1], &a[2..4], a[4], None),
            g::BIF3 => self.bif(Op::Bif3, a[0], a[1], &a[2..5], a[5], None),
            g::GC_BIF1 => self.bif(Op::Bif1, a[0], a[2], &a[3..4], a[4], Some(a[1])),
            g::GC_BIF2 => self.bif(Op::Bif2, a[0], a[2], &a[3..5], a[5], Some(a[1])),
            g::GC_BIF3 => self.bif(Op::Bif3, a[0], a[2], &a[3..6], a[6], Some(a[1])),
            g::CALL_FUN | g::CALL_FUN2 => {
                let new = ins.op == g::CALL_FUN2;
                let n = self.h(a[usize::from(new)]);
                let f = if new { self.s(a[2]) } else { n };
                // A call followed by a return is a tail call: a loop through a fun must not grow
                // the stack.
                let tail = next
                    .filter(|d| d.op == g::DEALLOCATE)
                    .filter(|_| instrs.get(i + 2).is_some_and(|r| r.op == g::RETURN));
                let frame = tail.map(|d| self.h(code.args(d)[0]));
                match (new, frame) {
                    (false, None) => self.e.op(Op::CallFun, &[n]),
                    (true, None) => self.e.op(Op::CallFun2, &[n, f]),
                    (false, Some(d)) => self.e.op(Op::CallFunLast, &[n, d]),
                    (true, Some(d)) => self.e.op(Op::CallFun2Last, &[n, f, d]),
                }
                return Some(if frame.is_some() { 3 } else { 1 });
            }
            g::APPLY => self.e.op(Op::Apply, &[self.h(a[0])]),
            g::APPLY_LAST => self.e.op(Op::ApplyLast, &[self.h(a[1]), self.h(a[0])]),
            g::MAKE_FUN2 => {
                let n = self.u(a[0]) as u32;
                let free = self.file.lambdas[n as usize].num_free;
                let f = Arg::N(self.env.lambda(n));
                let words: Vec<Arg> = (0..free).map(Arg::X).collect();
                // Here the instruction itself reserves the words.
                self.e
                    .op(Op::TestHeap, &[count(FUN_WORDS + free), count(free)]);
                self.e
                    .op_list(Op::MakeFun, &[f, Arg::X(0), count(free)], &words);
            }
            g::MAKE_FUN3 => {
                let f = Arg::N(self.env.lambda(self.u(a[0]) as u32));
                let d = self.s(a[1]);
                let words = self.list_words(a[2]);
                self.e
                    .op_list(Op::MakeFun, &[f, d, count(words.len() as u32)], &words);
            }
            _ => return None,
        }
        Some(1)
    }

    /// Returns the op of a tail call of `erlang:apply`, or of `erlang:hibernate`, which never
    /// returns: as an op of the caller it shows the caller in stack traces.
    pub(super) fn apply(&self, ins: &Instr, a: &[Operand]) -> Option<Op> {
        let import = self.u(a[1]) as usize;
        let k = self.file.known(import)?;
        match (k.way, ins.op, k.arity) {
            (Way::Tail(op), _, _) => Some(op),
            (Way::Apply, g::CALL_EXT_ONLY, 3) => Some(Op::IApply),
            (Way::Apply, g::CALL_EXT_ONLY, _) => Some(Op::IApplyFun),
            (Way::Apply, g::CALL_EXT_LAST, 3) => Some(Op::IApplyLast),
            (Way::Apply, g::CALL_EXT_LAST, _) => Some(Op::IApplyFunLast),
            _ => None,
        }
    }

    fn bif(
        &mut self,
        op: Op,
        fail: Operand,
        import: Operand,
        args: &[Operand],
        dst: Operand,
        live: Option<Operand>,
    ) {
        let index = self.u(import) as u32;
        // If the instruction doesn't say which registers are live, nothing is collected after it.
        let live = live.map_or(Arg::N(NO_LIVE as u64), |l| self.h(l));
        let v: Vec<Arg> = args.iter().map(|&o| self.s(o)).collect();
        let d = self.s(dst);
        let fail = self.label(fail);
        let known = self.file.known(index as usize);
        let known = known.filter(|k| usize::from(k.arity) == v.len());
        match known.map(|k| k.way) {
            Some(Way::Arith(n)) => {
                self.arith(n, &v, fail, d, live);
                return;
            }
            Some(way) => self.shortcut(way, &v, d),
            None => {}
        }
        let op = match known.map(|k| k.way) {
            Some(Way::Of(Op::FastLength)) => Op::Length,
            _ => op,
        };
        let c = self.env.import(index);
        let mut all = vec![fail, Arg::N(c.guard)];
        all.extend(v);
        all.extend([d, Arg::N(c.export), live]);
        self.e.op(op, &all);
    }
    /// Emits the op of operation `n` of [`purlin_isa::ops::arith`].
    fn arith(&mut self, n: usize, v: &[Arg], fail: Arg, d: Arg, live: Arg) {
        const ARITH: [Op; 10] = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::IntDiv,
            Op::Rem,
            Op::Band,
            Op::Bor,
            Op::Bxor,
            Op::Bsl,
            Op::Bsr,
        ];
        match (ARITH.get(n), v) {
            (Some(&op), &[x, y]) => self.e.op(op, &[fail, x, y, d, live]),
            (_, &[x]) => {
                let zero = Arg::C(small(0));
                let n = count(n as u32);
                self.e.op(Op::Arith, &[fail, zero, x, d, n, live]);
            }
            _ => {}
        }
    }
    /// Emits a shortcut before a `bif` op, if there is one for its operands.
    fn shortcut(&mut self, way: Way, v: &[Arg], d: Arg) {
        let reg = |a: Arg| matches!(a, Arg::X(_) | Arg::Y(_));
        match (way, v) {
            (Way::Element, &[Arg::C(n), t]) if reg(t) && is_small_word(n) => {
                let i = (n as i64) >> 4;
                if (1..8000).contains(&i) {
                    self.e.op(Op::FastElement, &[t, count(i as u32 * 8), d]);
                }
            }
            (Way::Element, &[n, t]) if reg(n) && reg(t) => {
                self.e.op(Op::FastElementOf, &[t, n, d]);
            }
            (Way::OfMap(op), &[k, m]) if reg(m) => self.e.op(op, &[m, k, d]),
            (Way::Compare(n), &[x, y]) => {
                self.e.op(Op::FastCompare, &[x, y, d, count(n as u32)]);
            }
            (Way::Of(op), &[t]) if reg(t) => self.e.op(op, &[t, d]),
            _ => {}
        }
    }
}
