//! Funs.

use super::*;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn is_function2(&mut self, op: IsFunction2) {
        let IsFunction2 { fail, fun, arity } = op;
        let Some(n @ 0..=255) = Self::small(arity) else {
            return self.step();
        };
        let to = self.to(fail);
        let r = self.get(fun, A);
        self.if_not_kind(r, Subtag::Fun, to);
        // The arity is the low byte.
        self.a.load8(R, boxed(r, FUN_BITS));
        self.a.if_i(Cond::Ne, D, R, n as i32, to);
    }
    pub(super) fn make_fun(&mut self, op: MakeFun) {
        let MakeFun {
            entry,
            dst,
            environment,
            ..
        } = op;
        let n = environment.all().len();
        // Like the instruction, it uses only room that was made before.
        let other = self.step_aside();
        self.a.lea(R, new(FUN_WORDS + n));
        self.a.if_r(Cond::A, Q, R, E, other);
        // The helper reads the number of words of the environment there.
        self.a.store_i(new(FUN_BITS), n as i32);
        self.a.mov(A, HP);
        self.a.mov_i(R, entry);
        let f = self.env.helpers.make_fun;
        self.leaf_helper(f);
        for (k, v) in environment.all().enumerate() {
            self.store_arg(new(FUN_WORDS + k), v);
        }
        self.made(dst, TAG_BOXED, (FUN_WORDS + n) as i32);
    }
}
