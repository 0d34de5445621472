//! Floats.

use super::*;

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn fr(&self, a: Arg) -> Mem {
        at(CX, self.env.fields.fr + a.n() as i32)
    }
    pub(super) fn fload(&mut self, i: &Instruction) {
        let a = i.args();
        let dst = self.fr(a[1]);
        let other = self.step_aside();
        let r = self.get(a[0], R10);
        let (integer, done) = (self.a.label(), self.a.label());
        self.if_not_boxed(r, integer);
        self.cmp_subtag(r, Subtag::Float);
        self.a.jcc(Cond::Ne, other);
        self.a.load(RCX, boxed(r, 1));
        self.a.store(dst, RCX);
        self.a.bind(done);
        self.later(move |g| {
            g.a.bind(integer);
            g.if_not_small(r, other);
            g.a.mov(RCX, r);
            g.a.shift_i(Q, Sar, RCX, 4);
            g.a.cvtsi2sd(Xmm(0), RCX);
            g.a.movsd_store(dst, Xmm(0));
            g.a.jmp(done);
        });
    }
    pub(super) fn float(&mut self, i: &Instruction, op: Sse) {
        let a = i.args();
        let (p, q, d) = (self.fr(a[0]), self.fr(a[1]), self.fr(a[2]));
        let exit = self.exit();
        self.a.movsd_load(Xmm(0), p);
        self.a.sse_op_m(op, Xmm(0), q);
        // All bits of the exponent: infinite, or no number.
        self.a.movq_from(RCX, Xmm(0));
        self.a.shift_i(Q, Shr, RCX, 52);
        self.a.invert(RCX);
        self.a.test32_i(RCX, 0x7FF);
        self.a.jcc(Cond::E, exit);
        self.a.movsd_store(d, Xmm(0));
    }
}
