//! Arithmetic of integers.

use super::*;
use purlin_isa::helpers::{IN_BODY, RESULT_IN_FRAME};

impl<'a, 'e> Gen<'a, 'e> {
    /// Whether the operands and the result are known to be small integers: the general case is never needed.
    fn is_sure(&self, i: &Instruction) -> bool {
        let a = i.args();
        let known = self.range(a[1]).is_some() && self.range(a[2]).is_some();
        known && !Self::is_odd(a[1], a[2]) && self.ranges.makes(i).is_some()
    }
    /// The general case of an operation, as a cold place: `n` is its number. It comes back with the result written. No code is made
    /// for it where the operation `is_sure`: nothing may lead there then.
    pub(super) fn arith_aside(
        &mut self,
        i: &Instruction,
        pa: (Arg, Reg),
        pb: (Arg, Reg),
        n: u64,
    ) -> Label {
        let (cold, next) = (self.a.label(), self.a.label());
        if self.is_sure(i) {
            return cold;
        }
        let a = i.args();
        let (fail, dst, live) = (a[0], a[3], a[4].n());
        let failed = self.to(fail);
        let pc = self.pc(self.whole.at);
        let (bif_pc, helper) = (self.env.fields.bif_pc, self.env.helpers.arith);
        let none = self.env.no_value;
        self.pending = Some(next);
        self.later(move |g| {
            g.a.bind(cold);
            let made = g.a.label();
            if n < 3 && !g.env.stressed {
                let floats = g.env.stubs.floats[n as usize];
                g.operands(pa, pb);
                g.a.call_abs(floats);
                g.a.test(D, RCX, RCX);
                g.a.jcc(Cond::Ne, made);
            }
            g.a.mov_i(R11, pc);
            g.a.store(at(CX, bif_pc), R11);
            g.operands(pa, pb);
            // The result is written before anything is collected: the register may be among those that are live then.
            let result = match dst {
                Arg::X(x) => u64::from(x) + 1,
                Arg::Y(y) => (u64::from(y) + 1) | RESULT_IN_FRAME,
                _ => 0,
            };
            let body = if fail.label().is_none() { IN_BODY } else { 0 };
            g.a.mov_i(R12, n | live << 8 | body | result << 32);
            g.helper(helper);
            g.cmp_word(RCX, none);
            g.a.jcc(Cond::E, failed);
            g.a.bind(made);
            g.put(dst, RCX);
            g.a.jmp(next);
        });
        cold
    }
    /// The end of a template with an `arith_aside`.
    pub(super) fn rejoin(&mut self) {
        if let Some(l) = self.pending.take() {
            self.a.bind(l);
        }
    }
    pub(super) fn arith_operands(&mut self, i: &Instruction) -> ((Arg, Reg), (Arg, Reg)) {
        let a = i.args();
        (
            self.get_or_constant(a[1], R10),
            self.get_or_constant(a[2], R12),
        )
    }
    /// Whether an operand is a constant that is no small integer, or both are constants: left to the general case.
    pub(super) fn is_odd(a: Arg, b: Arg) -> bool {
        let odd = |x: Arg| matches!(x, Arg::C(w) if !is_small_word(w));
        odd(a) || odd(b) || matches!((a, b), (Arg::C(_), Arg::C(_)))
    }
    pub(super) fn add_sub(&mut self, i: &Instruction) {
        let a = i.args();
        let sub = i.op == Op::Sub;
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, u64::from(sub));
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        match (a[1], a[2]) {
            (_, Arg::C(w)) => {
                let d = w.wrapping_sub(TAG_SMALL);
                self.a.mov(RCX, pa.1);
                match i32::try_from(d as i64) {
                    Ok(v) => self.a.alu_i(Q, if sub { Sub } else { Add }, RCX, v),
                    Err(_) => {
                        self.a.mov_i(R11, d);
                        self.a.alu(Q, if sub { Sub } else { Add }, RCX, R11);
                    }
                }
            }
            (Arg::C(w), _) => {
                self.a.mov_i(RCX, w);
                self.a.lea(R11, at(pb.1, -(TAG_SMALL as i32)));
                self.a.alu(Q, if sub { Sub } else { Add }, RCX, R11);
            }
            _ => {
                self.a.lea(R11, at(pb.1, -(TAG_SMALL as i32)));
                self.a.mov(RCX, pa.1);
                self.a.alu(Q, if sub { Sub } else { Add }, RCX, R11);
            }
        }
        if !self.is_sure(i) {
            self.a.jcc(Cond::O, cold);
        }
        self.put(a[3], RCX);
        self.rejoin();
    }
    pub(super) fn mul(&mut self, i: &Instruction) {
        let a = i.args();
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, 2);
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        // One factor without its tag, the other with zeros in its place.
        let (v, c) = match (a[1], a[2]) {
            (Arg::C(w), _) => (pb, Some(w)),
            (_, Arg::C(w)) => (pa, Some(w)),
            _ => (pa, None),
        };
        self.a.mov(RCX, v.1);
        match c.map(|w| i32::try_from((w as i64) >> SMALL_SHIFT)) {
            Some(Ok(k)) => {
                self.a.alu_i(Q, And, RCX, -16);
                self.a.imul_i(RCX, RCX, k);
            }
            Some(Err(_)) => {
                self.a.alu_i(Q, And, RCX, -16);
                self.a
                    .mov_i(R11, ((c.unwrap_or(0) as i64) >> SMALL_SHIFT) as u64);
                self.a.imul(RCX, R11);
            }
            None => {
                self.a.shift_i(Q, Sar, RCX, SMALL_SHIFT as u8);
                self.a.lea(R11, at(pb.1, -(TAG_SMALL as i32)));
                self.a.imul(RCX, R11);
            }
        }
        if !self.is_sure(i) {
            self.a.jcc(Cond::O, cold);
        }
        self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        self.put(a[3], RCX);
        self.rejoin();
    }
    pub(super) fn div_rem(&mut self, i: &Instruction) {
        let a = i.args();
        let n = if i.op == Op::IntDiv { 3 } else { 4 };
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, n);
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        // A power of two, where nothing is divided that is negative, takes no division.
        if let Arg::C(w) = a[2]
            && (w as i64) >> SMALL_SHIFT > 0
            && (((w as i64) >> SMALL_SHIFT) as u64).is_power_of_two()
        {
            let k = (((w as i64) >> SMALL_SHIFT) as u64).trailing_zeros();
            let (negative, done) = (self.a.label(), self.a.label());
            let natural = self.is_natural(a[1]);
            if !natural {
                self.a.test(Q, pa.1, pa.1);
                self.a.jcc(Cond::S, negative);
            }
            self.a.mov(RCX, pa.1);
            if n == 3 {
                self.a.shift_i(Q, Shr, RCX, k as u8);
                self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
                self.put(a[3], RCX);
            } else if k < 27 {
                self.a.alu_i(Q, And, RCX, ((1i64 << (k + 4)) - 1) as i32);
                self.put(a[3], RCX);
            } else {
                self.a.mov_i(R11, (1u64 << (k + 4)) - 1);
                self.a.alu(Q, And, RCX, R11);
                self.put(a[3], RCX);
            }
            self.a.bind(done);
            if natural {
                return self.rejoin();
            }
            let i = *i;
            self.later(move |g| {
                g.a.bind(negative);
                g.divide(&i, pa, pb, n, cold);
                g.a.jmp(done);
            });
            return self.rejoin();
        }
        self.divide(i, pa, pb, n, cold);
        self.rejoin();
    }
    /// Divides what is known to be small: X0 and X1 are out of their registers meanwhile.
    pub(super) fn divide(
        &mut self,
        i: &Instruction,
        pa: (Arg, Reg),
        pb: (Arg, Reg),
        n: u64,
        cold: Label,
    ) {
        let dst = i.args()[3];
        match pb.0 {
            Arg::C(w) => self.a.mov_i(RCX, ((w as i64) >> SMALL_SHIFT) as u64),
            _ => {
                self.a.mov(RCX, pb.1);
                self.a.shift_i(Q, Sar, RCX, SMALL_SHIFT as u8);
                self.a.jcc(Cond::E, cold);
            }
        }
        let minus_one = match pb.0 {
            Arg::C(w) => (w as i64) >> SMALL_SHIFT == -1 || (w as i64) >> SMALL_SHIFT == 0,
            _ => {
                if n == 3 {
                    // The least small integer by -1 is none.
                    self.a.alu_i(Q, Cmp, RCX, -1);
                    self.a.jcc(Cond::E, cold);
                }
                false
            }
        };
        if minus_one {
            return self.a.jmp(cold);
        }
        match pa.0 {
            Arg::C(w) => self.a.mov_i(R11, w),
            _ => self.a.mov(R11, pa.1),
        }
        self.a.store(x(0), RAX);
        self.a.store(x(1), RDX);
        self.a.mov(RAX, R11);
        self.a.shift_i(Q, Sar, RAX, SMALL_SHIFT as u8);
        self.a.cqo();
        self.a.idiv(RCX);
        self.a.mov(RCX, if n == 3 { RAX } else { RDX });
        self.a.load(RAX, x(0));
        self.a.load(RDX, x(1));
        self.a.shift_i(Q, Shl, RCX, SMALL_SHIFT as u8);
        self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        self.put(dst, RCX);
    }
    pub(super) fn bitwise(&mut self, i: &Instruction) {
        let a = i.args();
        let (op, n) = match i.op {
            Op::Band => (And, 5),
            Op::Bor => (Or, 6),
            _ => (Xor, 7),
        };
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, n);
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        let (v, c) = match (a[1], a[2]) {
            (Arg::C(w), _) => (pb.1, Some(w)),
            (_, Arg::C(w)) => (pa.1, Some(w)),
            _ => (pa.1, None),
        };
        self.a.mov(RCX, v);
        match c {
            Some(w) => match i32::try_from(w as i64) {
                Ok(k) => self.a.alu_i(Q, op, RCX, k),
                Err(_) => {
                    self.a.mov_i(R11, w);
                    self.a.alu(Q, op, RCX, R11);
                }
            },
            None => self.a.alu(Q, op, RCX, pb.1),
        }
        if op == Xor {
            self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        }
        self.put(a[3], RCX);
        self.rejoin();
    }
    pub(super) fn shift(&mut self, i: &Instruction) {
        let a = i.args();
        let left = i.op == Op::Bsl;
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, if left { 8 } else { 9 });
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        let most = if left { 60 } else { 64 };
        match pb.0 {
            Arg::C(w) => {
                let k = (w as i64) >> SMALL_SHIFT;
                if !(0..most).contains(&k) {
                    self.a.jmp(cold);
                    return self.rejoin();
                }
                // To the right what lies above the tag comes into it; to the left nothing is lost where that is known.
                if !left || self.is_sure(i) {
                    self.a.mov(RCX, pa.1);
                    if left {
                        self.a.alu_i(Q, And, RCX, -16);
                    }
                    self.a
                        .shift_i(Q, if left { Shl } else { Sar }, RCX, k as u8);
                    self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
                    self.put(a[3], RCX);
                    return self.rejoin();
                }
                self.a.mov_i(RCX, k as u64);
            }
            _ => {
                self.a.mov(RCX, pb.1);
                self.a.shift_i(Q, Sar, RCX, SMALL_SHIFT as u8);
                self.a.alu_i(Q, Cmp, RCX, most as i32);
                self.a.jcc(Cond::Ae, cold);
            }
        }
        match pa.0 {
            Arg::C(w) => self.a.mov_i(R11, w),
            _ => self.a.mov(R11, pa.1),
        }
        if left {
            self.a.alu_i(Q, And, R11, -16);
            // What comes back from a shift the other way must be the same.
            self.a.shift_cl(Q, Shl, R11);
            self.a.push(R11);
            self.a.shift_cl(Q, Sar, R11);
            match pa.0 {
                Arg::C(w) => self.a.mov_i(RCX, w & !15),
                _ => {
                    self.a.mov(RCX, pa.1);
                    self.a.alu_i(Q, And, RCX, -16);
                }
            }
            self.a.alu(Q, Cmp, R11, RCX);
            self.a.pop(RCX);
            self.a.jcc(Cond::Ne, cold);
        } else {
            self.a.shift_cl(Q, Sar, R11);
            self.a.mov(RCX, R11);
        }
        self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        self.put(a[3], RCX);
        self.rejoin();
    }
}
