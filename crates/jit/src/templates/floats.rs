//! Floats. A float register is in memory. Within a piece of code without jumps into it, it is in a
//! vector register as well.

use super::*;
use purlin_term::layout::{FLOAT_BITS, FLOAT_WORDS};

/// Number of float registers that have a vector register.
const IN_VECTORS: u64 = 8;
/// The first of those: the ones below are scratch.
const FIRST: u8 = 4;

impl<'a, 'e> Gen<'a, 'e> {
    fn fr(&self, Float(n): Float) -> Mem {
        at(CX, self.env.fields.fr + n as i32 * 8)
    }
    /// Returns the vector register of a float register.
    fn vector(Float(n): Float) -> Option<Xmm> {
        (n < IN_VECTORS).then_some(Xmm(FIRST + n as u8))
    }
    /// Returns the vector register that holds a float register, and loads it if it is its own.
    fn float_in(&mut self, a: Float) -> Xmm {
        let m = self.fr(a);
        let Some(v) = Self::vector(a) else {
            self.a.movsd_load(Xmm(1), m);
            return Xmm(1);
        };
        if self.floats & 1 << (v.0 - FIRST) == 0 {
            self.a.movsd_load(v, m);
            self.floats |= 1 << (v.0 - FIRST);
        }
        v
    }
    /// Makes the vector register the value of the float register.
    fn float_out(&mut self, a: Float, from: Xmm) {
        let m = self.fr(a);
        self.a.movsd_store(m, from);
        if let Some(v) = Self::vector(a) {
            if v != from {
                self.a.movapd(v, from);
            }
            self.floats |= 1 << (v.0 - FIRST);
        }
    }
    /// Runs the step of the instruction in a cold part that returns to `to`, with the vector
    /// registers as they are then.
    fn float_aside(&mut self, to: Label) -> Label {
        let (l, i, floats) = (self.a.label(), self.whole, self.floats);
        self.later("a step of the whole", move |g| {
            g.a.bind(l);
            g.whole = i;
            g.step_of(i);
            for n in 0..IN_VECTORS {
                if floats & 1 << n != 0 {
                    let m = g.fr(Float(n));
                    g.a.movsd_load(Xmm(FIRST + n as u8), m);
                }
            }
            g.a.jmp(to);
        });
        l
    }
    pub(super) fn fload(&mut self, FLoad { src, dst }: FLoad) {
        self.float_of(src, dst);
    }
    pub(super) fn fconv(&mut self, FConv { src, dst }: FConv) {
        self.float_of(src, dst);
    }
    fn float_of(&mut self, src: Src, dst: Float) {
        let (integer, done) = (self.a.label(), self.a.label());
        let v = Self::vector(dst).unwrap_or(Xmm(0));
        if v != Xmm(0) {
            self.floats |= 1 << (v.0 - FIRST);
        }
        let other = self.float_aside(done);
        let r = self.get(src, R10);
        self.if_not_boxed(r, integer);
        self.cmp_subtag(r, Subtag::Float);
        self.a.jcc(Cond::Ne, other);
        self.a.movsd_load(v, boxed(r, FLOAT_BITS));
        self.float_out(dst, v);
        self.a.bind(done);
        let dst = self.fr(dst);
        self.later("an integer", move |g| {
            g.a.bind(integer);
            g.if_not_small(r, other);
            g.a.mov(RCX, r);
            g.a.shift_i(Q, Sar, RCX, SMALL_SHIFT as u8);
            g.a.cvtsi2sd(v, RCX);
            g.a.movsd_store(dst, v);
            g.a.jmp(done);
        });
    }
    pub(super) fn fstore(&mut self, FStore { src, dst }: FStore) {
        let v = self.float_in(src);
        self.store_word_by(new(0), header(Subtag::Float, 1), R10);
        self.a.movsd_store(new(FLOAT_BITS), v);
        self.made(dst, TAG_BOXED, FLOAT_WORDS as i32);
    }
    pub(super) fn fmove(&mut self, FMove { src, dst }: FMove) {
        let v = self.float_in(src);
        self.float_out(dst, v);
    }
    pub(super) fn fadd(&mut self, FAdd { a, b, dst }: FAdd) {
        self.float_operation(Sse::Add, a, b, dst);
    }
    pub(super) fn fsub(&mut self, FSub { a, b, dst }: FSub) {
        self.float_operation(Sse::Sub, a, b, dst);
    }
    pub(super) fn fmul(&mut self, FMul { a, b, dst }: FMul) {
        self.float_operation(Sse::Mul, a, b, dst);
    }
    pub(super) fn fdiv(&mut self, FDiv { a, b, dst }: FDiv) {
        self.float_operation(Sse::Div, a, b, dst);
    }
    fn float_operation(&mut self, op: Sse, a: Float, b: Float, dst: Float) {
        let exit = self.exit();
        let p = self.float_in(a);
        self.a.movapd(Xmm(0), p);
        let q = self.float_in(b);
        self.a.sse_op(op, Xmm(0), q);
        // All bits of the exponent are set: infinite, or not a number.
        self.a.movq_from(RCX, Xmm(0));
        self.a.shift_i(Q, Shr, RCX, 52);
        self.a.invert(RCX);
        self.a.test32_i(RCX, 0x7FF);
        self.a.jcc(Cond::E, exit);
        self.float_out(dst, Xmm(0));
    }
}
