//! Floats. A float register is in memory. Within a piece of code without jumps into it, it is in a
//! vector register as well.

use super::*;
use crate::machine::{self, Vector};
use purlin_term::layout::{FLOAT_BITS, FLOAT_WORDS};

/// Number of float registers that have a vector register.
const IN_VECTORS: u64 = 8;
/// The first of those: the ones below are scratch.
const FIRST: u8 = 4;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    fn fr(&self, Float(n): Float) -> Mem {
        at(CX, self.env.fields.fr + n as i32 * 8)
    }
    /// Returns the vector register of a float register.
    fn vector(Float(n): Float) -> Option<Vector> {
        (n < IN_VECTORS).then_some(Vector(FIRST + n as u8))
    }
    /// Returns the vector register that holds a float register, and loads it if it is its own.
    fn float_in(&mut self, a: Float) -> Vector {
        let m = self.fr(a);
        let Some(v) = Self::vector(a) else {
            self.a.load_float(Vector(1), m);
            return Vector(1);
        };
        if self.floats & 1 << (v.0 - FIRST) == 0 {
            self.a.load_float(v, m);
            self.floats |= 1 << (v.0 - FIRST);
        }
        v
    }
    /// Makes the vector register the value of the float register.
    fn float_out(&mut self, a: Float, from: Vector) {
        let m = self.fr(a);
        self.a.store_float(m, from);
        if let Some(v) = Self::vector(a) {
            if v != from {
                self.a.mov_float(v, from);
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
                    g.a.load_float(Vector(FIRST + n as u8), m);
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
        let v = Self::vector(dst).unwrap_or(Vector(0));
        if v != Vector(0) {
            self.floats |= 1 << (v.0 - FIRST);
        }
        let other = self.float_aside(done);
        let r = self.get(src, A);
        self.if_not_boxed(r, integer);
        self.if_subtag(Cond::Ne, r, Subtag::Float, other);
        self.a.load_float(v, boxed(r, FLOAT_BITS));
        self.float_out(dst, v);
        self.a.bind(done);
        let dst = self.fr(dst);
        self.later("an integer", move |g| {
            g.a.bind(integer);
            g.if_not_small(r, other);
            g.a.untag(R, r);
            g.a.to_float(v, R);
            g.a.store_float(dst, v);
            g.a.jmp(done);
        });
    }
    pub(super) fn fstore(&mut self, FStore { src, dst }: FStore) {
        let v = self.float_in(src);
        self.a.store_word(new(0), header(Subtag::Float, 1), A);
        self.a.store_float(new(FLOAT_BITS), v);
        self.made(dst, TAG_BOXED, FLOAT_WORDS as i32);
    }
    pub(super) fn fmove(&mut self, FMove { src, dst }: FMove) {
        let v = self.float_in(src);
        self.float_out(dst, v);
    }
    pub(super) fn fadd(&mut self, FAdd { a, b, dst }: FAdd) {
        self.float_operation(machine::Float::Add, a, b, dst);
    }
    pub(super) fn fsub(&mut self, FSub { a, b, dst }: FSub) {
        self.float_operation(machine::Float::Sub, a, b, dst);
    }
    pub(super) fn fmul(&mut self, FMul { a, b, dst }: FMul) {
        self.float_operation(machine::Float::Mul, a, b, dst);
    }
    pub(super) fn fdiv(&mut self, FDiv { a, b, dst }: FDiv) {
        self.float_operation(machine::Float::Div, a, b, dst);
    }
    fn float_operation(&mut self, op: machine::Float, a: Float, b: Float, dst: Float) {
        let exit = self.exit();
        let p = self.float_in(a);
        self.a.mov_float(Vector(0), p);
        let q = self.float_in(b);
        self.a.float(op, Vector(0), q);
        // All bits of the exponent are set: infinite, or not a number.
        self.a.if_not_finite(Vector(0), R, exit);
        self.float_out(dst, Vector(0));
    }
}
