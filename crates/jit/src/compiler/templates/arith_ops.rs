//! Arithmetic on integers.
//!
//! The template computes with small integers, whose tags stay on where the operation allows it. The
//! general case (large integers, floats, results that are not small) is a cold part, which calls a
//! helper and rejoins the template. If the compiler knows that operands and result are small
//! ([`ranges`](crate::ranges)), there is no cold part.
//!
//! # Invariant
//! Both operands are in their registers when the cold part is entered. A sum that has replaced one
//! of them makes it again first (`made_again`).

use super::*;
use purlin_isa::helpers::{Arith, ResultRegister};
use purlin_isa::ops::arith;

/// An operation on two integers: all of them have the same operands.
#[derive(Clone, Copy)]
struct Operation {
    op: Op,
    number: usize,
    fail: Target,
    a: Src,
    b: Src,
    dst: Dst,
    live: Live,
}

macro_rules! operations {
    ($($op:ident $name:ident $template:ident;)*) => {
        impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {$(
            pub(super) fn $name(&mut self, operands::$op { fail, a, b, dst, live }: operands::$op) {
                let op = Op::$op;
                let number = const { arith::number(Op::$op).expect("an operation on integers") };
                self.$template(Operation { op, number, fail, a, b, dst, live });
            }
        )*}
    };
}
operations! {
    Add add sum;
    Sub sub sum;
    Mul mul product;
    IntDiv int_div quotient_or_rest;
    Rem rem_ quotient_or_rest;
    Band band bitwise;
    Bor bor bitwise;
    Bxor bxor bitwise;
    Bsl bsl shift;
    Bsr bsr shift;
}

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    /// Whether operands and result are known to be small integers, so that the general case is
    /// never needed.
    fn is_sure(&self, o: Operation) -> bool {
        let known = self.range(o.a).is_some() && self.range(o.b).is_some();
        known && !Self::is_odd(o.a, o.b) && self.ranges.makes(self.part).is_some()
    }
    /// The general case of an operation, as a cold part. It rejoins the template with the result
    /// written. If the operation `is_sure` no code is made, and nothing may jump there.
    fn arith_aside(&mut self, o: Operation, pa: (Src, Reg), pb: (Src, Reg)) -> Label {
        let (cold, next) = (self.a.label(), self.a.label());
        if self.is_sure(o) {
            return cold;
        }
        let Operation {
            number,
            fail,
            dst,
            live,
            ..
        } = o;
        let failed = self.to(fail);
        let pc = self.pc(self.whole.at);
        let (bif_pc, helper) = (self.env.fields.bif_pc, self.env.helpers.arith);
        let none = self.env.no_value;
        self.pending = Some(next);
        self.later(
            "other numbers than small integers, or a result that is none",
            move |g| {
                g.a.bind(cold);
                let made = g.a.label();
                // The first three have stubs for floats.
                if number <= arith::MUL && !g.env.stressed {
                    let floats = g.env.stubs.floats[number];
                    g.operands(pa, pb);
                    g.a.call_stub(floats);
                    g.a.if_zero(Cond::Ne, D, R, made);
                }
                g.a.mov_i(B, pc);
                g.a.store(at(CX, bif_pc), B);
                g.operands(pa, pb);
                // The result is written before anything is collected: the register may be among
                // those that are live then.
                let what = Arith {
                    number: number as u8,
                    live: live.0 as u16,
                    in_body: fail.0.is_none(),
                    result: match dst {
                        Dst::X(x) => ResultRegister::X(x),
                        Dst::Y(y) => ResultRegister::Y(y),
                    },
                };
                g.a.mov_i(K, what.pack());
                g.helper(helper);
                g.a.if_word(Cond::E, R, none, failed);
                g.a.bind(made);
                g.put(dst, R);
                g.a.jmp(next);
            },
        );
        cold
    }
    /// Returns where a result that is too large leads to, unless there is none.
    fn overflow(&self, o: Operation, cold: Label) -> Option<Label> {
        (!self.is_sure(o)).then_some(cold)
    }
    /// The end of a template with an `arith_aside`.
    fn rejoin(&mut self) {
        if let Some(l) = self.pending.take() {
            self.a.bind(l);
        }
    }
    fn arith_operands(&mut self, o: Operation) -> ((Src, Reg), (Src, Reg)) {
        (self.get_or_constant(o.a, A), self.get_or_constant(o.b, K))
    }
    /// Whether an operand is a constant that is no small integer, or both are constants: left to
    /// the general case.
    pub(super) fn is_odd(a: Src, b: Src) -> bool {
        let odd = |x: Src| matches!(x, Src::C(w) if !is_small_word(w));
        odd(a) || odd(b) || matches!((a, b), (Src::C(_), Src::C(_)))
    }
    fn sum(&mut self, o: Operation) {
        let alu = if o.op == Op::Sub { Sub } else { Add };
        let (pa, pb) = self.arith_operands(o);
        let cold = self.arith_aside(o, pa, pb);
        if Self::is_odd(o.a, o.b) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        let overflow = self.overflow(o, cold);
        // Sums and differences are made with the tag of a small integer even if they overflow, so
        // the register of the result may have one when the general case collects.
        let to = match o.dst {
            Dst::X(n) if M::THREE_OPERANDS && n < IN_MEMORY => X_REGS[n as usize],
            _ => R,
        };
        let to = match o.a {
            // It is there before the other operand is read.
            Src::C(_) if to == pb.1 => R,
            _ => to,
        };
        let overflow = overflow.map(|l| match to == pa.1 || to == pb.1 {
            true => self.made_again(o, alu, to, (pa.1, pb.1), l),
            false => l,
        });
        self.if_not_smalls(pa, pb, cold);
        match (o.a, o.b) {
            (_, Src::C(w)) => {
                let d = w.wrapping_sub(TAG_SMALL);
                self.a.mov(to, pa.1);
                self.a.sum_i_or(alu, to, d, overflow);
            }
            (Src::C(w), _) => {
                self.a.mov_i(to, w);
                self.a.lea(B, at(pb.1, -(TAG_SMALL as i32)));
                self.a.sum_or(alu, to, B, overflow);
            }
            _ => {
                self.a.lea(B, at(pb.1, -(TAG_SMALL as i32)));
                self.a.mov(to, pa.1);
                self.a.sum_or(alu, to, B, overflow);
            }
        }
        if to == R {
            self.put_result(o.dst, R);
        }
        self.rejoin();
    }
    /// Where a sum that overflows leads to if it has replaced an operand, which is made again: `B`
    /// has the second one without its tag, unless that is a constant.
    fn made_again(
        &mut self,
        o: Operation,
        alu: crate::machine::Alu,
        to: Reg,
        (a, b): (Reg, Reg),
        cold: Label,
    ) -> Label {
        let l = self.a.label();
        let back = if alu == Sub { Add } else { Sub };
        self.later(
            "a sum that is too large has replaced an operand",
            move |g| {
                g.a.bind(l);
                match o.b {
                    Src::C(w) => g.a.sum_i_or(back, to, w.wrapping_sub(TAG_SMALL), None),
                    _ if to == b => g.a.lea(to, at(B, TAG_SMALL as i32)),
                    _ => {
                        debug_assert_eq!(to, a);
                        g.a.alu(Q, back, to, B);
                    }
                }
                g.a.jmp(cold);
            },
        );
        l
    }
    fn product(&mut self, o: Operation) {
        let (pa, pb) = self.arith_operands(o);
        let cold = self.arith_aside(o, pa, pb);
        if Self::is_odd(o.a, o.b) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        // One factor without its tag, the other with zeros in its place.
        let (v, c) = match (o.a, o.b) {
            (Src::C(w), _) => (pb, Some(w)),
            (_, Src::C(w)) => (pa, Some(w)),
            _ => (pa, None),
        };
        let overflow = self.overflow(o, cold);
        self.a.mov(R, v.1);
        match c.map(|w| i32::try_from((w as i64) >> SMALL_SHIFT)) {
            Some(Ok(k)) => {
                self.a.alu_i(Q, And, R, -16);
                self.a.mul_i_or(R, k, overflow);
            }
            Some(Err(_)) => {
                self.a.alu_i(Q, And, R, -16);
                self.a
                    .mov_i(B, ((c.unwrap_or(0) as i64) >> SMALL_SHIFT) as u64);
                self.a.mul_or(R, B, overflow);
            }
            None => {
                self.a.shift_i(Q, Sar, R, SMALL_SHIFT as u8);
                self.a.lea(B, at(pb.1, -(TAG_SMALL as i32)));
                self.a.mul_or(R, B, overflow);
            }
        }
        self.a.alu_i(Q, Or, R, TAG_SMALL as i32);
        self.put_result(o.dst, R);
        self.rejoin();
    }
    fn quotient_or_rest(&mut self, o: Operation) {
        let (pa, pb) = self.arith_operands(o);
        let cold = self.arith_aside(o, pa, pb);
        if Self::is_odd(o.a, o.b) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        // To divide a nonnegative number by a power of two takes no division.
        if let Src::C(w) = o.b
            && (w as i64) >> SMALL_SHIFT > 0
            && (((w as i64) >> SMALL_SHIFT) as u64).is_power_of_two()
        {
            let k = (((w as i64) >> SMALL_SHIFT) as u64).trailing_zeros();
            let (negative, done) = (self.a.label(), self.a.label());
            let natural = self.is_natural(o.a);
            if !natural {
                self.a.if_zero(Cond::S, Q, pa.1, negative);
            }
            self.a.mov(R, pa.1);
            if o.op == Op::IntDiv {
                self.a.shift_i(Q, Shr, R, k as u8);
                self.a.alu_i(Q, Or, R, TAG_SMALL as i32);
                self.put_result(o.dst, R);
            } else if k < 27 {
                self.a.alu_i(Q, And, R, ((1i64 << (k + 4)) - 1) as i32);
                self.put_result(o.dst, R);
            } else {
                self.a.mov_i(B, (1u64 << (k + 4)) - 1);
                self.a.alu(Q, And, R, B);
                self.put_result(o.dst, R);
            }
            self.a.bind(done);
            if natural {
                return self.rejoin();
            }
            self.later("a negative dividend", move |g| {
                g.a.bind(negative);
                g.divide(o, pa, pb, cold);
                g.a.jmp(done);
            });
            return self.rejoin();
        }
        self.divide(o, pa, pb, cold);
        self.rejoin();
    }
    /// Divides numbers that are known to be small.
    fn divide(&mut self, o: Operation, pa: (Src, Reg), pb: (Src, Reg), cold: Label) {
        let quotient = o.op == Op::IntDiv;
        match pb.0 {
            Src::C(w) => self.a.mov_i(R, ((w as i64) >> SMALL_SHIFT) as u64),
            _ => {
                self.a.mov(R, pb.1);
                self.a.untag_or(R, Cond::E, cold);
            }
        }
        let minus_one = match pb.0 {
            Src::C(w) => (w as i64) >> SMALL_SHIFT == -1 || (w as i64) >> SMALL_SHIFT == 0,
            _ => {
                if quotient {
                    // The least small integer divided by -1 is no small integer.
                    self.a.if_i(Cond::E, Q, R, -1, cold);
                }
                false
            }
        };
        if minus_one {
            return self.a.jmp(cold);
        }
        match pa.0 {
            Src::C(w) => self.a.mov_i(B, w),
            _ => self.a.mov(B, pa.1),
        }
        self.a.divide(quotient);
        self.a.tag(Q, R);
        self.put_result(o.dst, R);
    }
    fn bitwise(&mut self, o: Operation) {
        let op = match o.op {
            Op::Band => And,
            Op::Bor => Or,
            _ => Xor,
        };
        let (pa, pb) = self.arith_operands(o);
        let cold = self.arith_aside(o, pa, pb);
        if Self::is_odd(o.a, o.b) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        let (v, c) = match (o.a, o.b) {
            (Src::C(w), _) => (pb.1, Some(w)),
            (_, Src::C(w)) => (pa.1, Some(w)),
            _ => (pa.1, None),
        };
        self.a.mov(R, v);
        match c {
            Some(w) => match i32::try_from(w as i64) {
                Ok(k) => self.a.alu_i(Q, op, R, k),
                Err(_) => {
                    self.a.mov_i(B, w);
                    self.a.alu(Q, op, R, B);
                }
            },
            None => self.a.alu(Q, op, R, pb.1),
        }
        if op == Xor {
            self.a.alu_i(Q, Or, R, TAG_SMALL as i32);
        }
        self.put_result(o.dst, R);
        self.rejoin();
    }
    fn shift(&mut self, o: Operation) {
        let left = o.op == Op::Bsl;
        let (pa, pb) = self.arith_operands(o);
        let cold = self.arith_aside(o, pa, pb);
        if Self::is_odd(o.a, o.b) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        let most = if left { 60 } else { 64 };
        match pb.0 {
            Src::C(w) => {
                let k = (w as i64) >> SMALL_SHIFT;
                if !(0..most).contains(&k) {
                    self.a.jmp(cold);
                    return self.rejoin();
                }
                // To the right, bits from above the tag get into its place. To the left, nothing is
                // lost if that is known.
                if !left || self.is_sure(o) {
                    self.a.mov(R, pa.1);
                    if left {
                        self.a.alu_i(Q, And, R, -16);
                    }
                    self.a.shift_i(Q, if left { Shl } else { Sar }, R, k as u8);
                    self.a.alu_i(Q, Or, R, TAG_SMALL as i32);
                    self.put_result(o.dst, R);
                    return self.rejoin();
                }
                // Shifting back must give the same number.
                self.a.mov(B, pa.1);
                self.a.alu_i(Q, And, B, -16);
                self.a.mov(R, B);
                self.a.shift_i(Q, Shl, R, k as u8);
                self.a.mov(K, R);
                self.a.shift_i(Q, Sar, K, k as u8);
                self.a.if_r(Cond::Ne, Q, K, B, cold);
                self.a.alu_i(Q, Or, R, TAG_SMALL as i32);
                self.put_result(o.dst, R);
                return self.rejoin();
            }
            _ => {
                self.a.untag(R, pb.1);
                self.a.if_i(Cond::Ae, Q, R, most as i32, cold);
            }
        }
        match pa.0 {
            Src::C(w) => self.a.mov_i(B, w),
            _ => self.a.mov(B, pa.1),
        }
        if left {
            self.a.alu_i(Q, And, B, -16);
            // Shifting back must give the same number.
            self.a.shift_by_r(Q, Shl, B);
            self.a.save(B);
            self.a.shift_by_r(Q, Sar, B);
            match pa.0 {
                Src::C(w) => self.a.mov_i(R, w & !15),
                _ => {
                    self.a.mov(R, pa.1);
                    self.a.alu_i(Q, And, R, -16);
                }
            }
            self.a.if_r_restoring(Cond::Ne, B, R, cold);
        } else {
            self.a.shift_by_r(Q, Sar, B);
            self.a.mov(R, B);
        }
        self.a.alu_i(Q, Or, R, TAG_SMALL as i32);
        self.put_result(o.dst, R);
        self.rejoin();
    }
}
