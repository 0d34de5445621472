//! Comparisons and tests of types.

use super::*;
use purlin_term::word::{TAG_PID, TAG_PORT};

/// The bit of a subtag that differs between integers of both signs.
const SIGN: i32 = Subtag::PosBig as i32 ^ Subtag::NegBig as i32;

impl<'a, 'e> Gen<'a, 'e> {
    /// R10 and RCX: the operands of a helper.
    pub(super) fn operands(&mut self, (a, ra): (Arg, Reg), (b, rb): (Arg, Reg)) {
        match b {
            Arg::C(w) => self.a.mov_i(RCX, w),
            _ => self.a.mov(RCX, rb),
        }
        match a {
            Arg::C(w) => self.a.mov_i(R10, w),
            _ => self.a.mov(R10, ra),
        }
    }
    /// The machine register of an operand; of a constant none, which stands for it.
    pub(super) fn get_or_constant(&mut self, a: Arg, scratch: Reg) -> (Arg, Reg) {
        match a {
            Arg::C(_) => (a, scratch),
            _ => (a, self.get(a, scratch)),
        }
    }
    /// Compares two small integers, or any words: sets the flags of `a` against `b`, or the other way round if the result says so.
    pub(super) fn cmp_args(&mut self, (a, ra): (Arg, Reg), (b, rb): (Arg, Reg)) -> bool {
        match (a, b) {
            (Arg::C(w), Arg::C(_)) => {
                self.a.mov_i(ra, w);
                self.cmp_word(ra, b.n());
                false
            }
            (_, Arg::C(w)) => {
                self.cmp_word(ra, w);
                false
            }
            (Arg::C(w), _) => match i32::try_from(w as i64) {
                Ok(v) => {
                    self.a.alu_i(Q, Cmp, rb, v);
                    true
                }
                Err(_) => {
                    self.a.mov_i(ra, w);
                    self.a.alu(Q, Cmp, ra, rb);
                    false
                }
            },
            _ => {
                self.a.alu(Q, Cmp, ra, rb);
                false
            }
        }
    }
    pub(super) fn less(&mut self, fail: Arg, a: Arg, b: Arg, less: bool) {
        let to = self.to(fail);
        let (pa, pb) = (self.get_or_constant(a, R10), self.get_or_constant(b, R12));
        let constant = |x: Arg| matches!(x, Arg::C(w) if !is_small_word(w));
        let helper = self.env.helpers.less;
        let general = move |g: &mut Self, next: Option<Label>| {
            g.operands(pa, pb);
            g.a.mov_i(R11, helper);
            let to_floats = g.env.stubs.less;
            g.a.call_abs(to_floats);
            g.a.test8_i(RCX, 1);
            g.a.jcc(if less { Cond::E } else { Cond::Ne }, to);
            if let Some(n) = next {
                g.a.jmp(n);
            }
        };
        if constant(a) || constant(b) {
            return general(self, None);
        }
        let (cold, next) = (self.a.label(), self.a.label());
        let both = self.range(a).is_some() && self.range(b).is_some();
        self.if_not_smalls(pa, pb, cold);
        let turned = self.cmp_args(pa, pb);
        // Where it does not hold.
        let c = match (less, turned) {
            (true, false) => Cond::Ge,
            (false, false) => Cond::L,
            (true, true) => Cond::Le,
            (false, true) => Cond::G,
        };
        self.a.jcc(c, to);
        self.a.bind(next);
        if both {
            return;
        }
        self.later(move |g| {
            g.a.bind(cold);
            general(g, Some(next));
        });
    }
    /// `==` and `/=`, or where `exact` `=:=` and `=/=`.
    pub(super) fn equal(&mut self, fail: Arg, a: Arg, b: Arg, exact: bool, wanted: bool) {
        let to = self.to(fail);
        let (pa, pb) = (self.get_or_constant(a, R10), self.get_or_constant(b, R12));
        let (cold, next) = (self.a.label(), self.a.label());
        let (is, is_not) = if wanted { (next, to) } else { (to, next) };
        self.cmp_args(pa, pb);
        // A small integer equals nothing exactly but itself, and no other small integer.
        let (ka, kb) = (self.range(a).is_some(), self.range(b).is_some());
        if ka && kb || exact && (ka || kb) {
            self.a.jcc(if wanted { Cond::Ne } else { Cond::E }, to);
            return self.a.bind(next);
        }
        self.a.jcc(Cond::E, is);
        match exact {
            // An immediate equals nothing but itself.
            true => {
                for (arg, r) in [pa, pb] {
                    match arg {
                        Arg::C(w) if is_immediate(w) => self.a.jmp(is_not),
                        Arg::C(_) => {}
                        _ => self.if_immediate(r, is_not),
                    }
                }
            }
            // Two immediates.
            false => match (a, b) {
                (Arg::C(v), Arg::C(w)) if is_immediate(v) && is_immediate(w) => self.a.jmp(is_not),
                (Arg::C(_), Arg::C(_)) => {}
                (Arg::C(w), _) if is_immediate(w) => self.if_immediate(pb.1, is_not),
                (_, Arg::C(w)) if is_immediate(w) => self.if_immediate(pa.1, is_not),
                (Arg::C(_), _) | (_, Arg::C(_)) => {}
                _ => {
                    self.a.mov32(RCX, pa.1);
                    self.a.alu(D, And, RCX, pb.1);
                    self.a.invert(RCX);
                    self.a.test8_i(RCX, TAG_MASK as u8);
                    self.a.jcc(Cond::E, is_not);
                }
            },
        }
        self.a.jmp(cold);
        self.a.bind(next);
        let helper = match exact {
            true => self.env.helpers.same,
            false => self.env.helpers.equal,
        };
        self.later(move |g| {
            g.a.bind(cold);
            g.operands(pa, pb);
            g.pure_helper(helper);
            g.a.test8_i(RCX, 1);
            g.a.jcc(if wanted { Cond::E } else { Cond::Ne }, to);
            g.a.jmp(next);
        });
    }
    pub(super) fn test_type(&mut self, i: &Instruction) {
        let a = i.args();
        let r = self.get(a[1], R10);
        let to = self.to(a[0]);
        let is = self.a.label();
        match i.op {
            Op::IsList => {
                self.cmp_word(r, NIL_WORD);
                self.a.jcc(Cond::E, is);
                self.if_not_cons(r, to);
            }
            Op::IsNonemptyList => self.if_not_cons(r, to),
            Op::IsTuple => self.if_not_tuple(r, to),
            Op::IsMap => self.if_not_kind(r, Subtag::Map, to),
            Op::IsFloat => self.if_not_kind(r, Subtag::Float, to),
            Op::IsFunction => self.if_not_kind(r, Subtag::Fun, to),
            Op::IsAtom => {
                self.a.mov32(RCX, r);
                self.a.alu_i(D, And, RCX, TAG6_MASK as i32);
                self.a.alu_i(D, Cmp, RCX, TAG_ATOM as i32);
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsBoolean => {
                let (t, f) = (self.env.true_word, self.env.false_word);
                self.cmp_word(r, t);
                self.a.jcc(Cond::E, is);
                self.cmp_word(r, f);
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsInteger | Op::IsNumber => {
                self.a.lea(RCX, at(r, 1));
                self.a.test8_i(RCX, TAG4_MASK as u8);
                self.a.jcc(Cond::E, is);
                self.if_not_boxed(r, to);
                self.a.load32(RCX, boxed(r, 0));
                // Both signs of large integers but for one bit.
                self.a.alu_i(D, And, RCX, i32::from(HEADER_MASK));
                if i.op == Op::IsNumber {
                    self.a
                        .alu_i(D, Cmp, RCX, (Subtag::Float as i32) << SUBTAG_SHIFT);
                    self.a.jcc(Cond::E, is);
                }
                self.a
                    .alu_i(D, And, RCX, !(SIGN << SUBTAG_SHIFT) & KIND_MASK as i32);
                self.a
                    .alu_i(D, Cmp, RCX, (Subtag::PosBig as i32) << SUBTAG_SHIFT);
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsPid | Op::IsPort => {
                let (tag, s) = match i.op {
                    Op::IsPid => (TAG_PID, Subtag::ExtPid),
                    _ => (TAG_PORT, Subtag::ExtPort),
                };
                self.a.mov32(RCX, r);
                self.a.alu_i(D, And, RCX, TAG4_MASK as i32);
                self.a.alu_i(D, Cmp, RCX, tag as i32);
                self.a.jcc(Cond::E, is);
                self.if_not_kind(r, s, to);
            }
            Op::IsReference => {
                self.if_not_boxed(r, to);
                self.cmp_subtag(r, Subtag::Ref);
                self.a.jcc(Cond::E, is);
                self.a
                    .alu_i(D, Cmp, RCX, (Subtag::ExtRef as i32) << SUBTAG_SHIFT);
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsBitstr => {
                self.if_not_boxed(r, to);
                self.cmp_subtag(r, Subtag::MatchContext);
                self.a.jcc(Cond::E, is);
                for (s, last) in [
                    (Subtag::HeapBin, false),
                    (Subtag::RefcBin, false),
                    (Subtag::SubBin, true),
                ] {
                    self.a.alu_i(D, Cmp, RCX, (s as i32) << SUBTAG_SHIFT);
                    match last {
                        false => self.a.jcc(Cond::E, is),
                        true => self.a.jcc(Cond::Ne, to),
                    }
                }
            }
            _ => {
                // A part of another may end within a byte: looked at by the handler.
                let part = self.step_aside();
                self.if_not_boxed(r, to);
                self.cmp_subtag(r, Subtag::HeapBin);
                self.a.jcc(Cond::E, is);
                self.a
                    .alu_i(D, Cmp, RCX, (Subtag::RefcBin as i32) << SUBTAG_SHIFT);
                self.a.jcc(Cond::E, is);
                self.a
                    .alu_i(D, Cmp, RCX, (Subtag::SubBin as i32) << SUBTAG_SHIFT);
                self.a.jcc(Cond::E, part);
                self.a.jmp(to);
            }
        }
        self.a.bind(is);
    }
}
