//! Calls of functions, of funs and by name.

use super::*;
use purlin_isa::ops::BASE;
use purlin_term::fun::{LEAD_FLAGS, LEADS_ELSEWHERE};
use purlin_term::layout::{FUN_ARITY_MASK, FUN_BY_NAME};

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn call(&mut self, Call { to, .. }: Call) {
        self.push_return();
        self.call_local(to, false);
        self.returned();
    }
    pub(super) fn call_last(&mut self, CallLast { to, frame, .. }: CallLast) {
        self.drop_frame(frame);
        self.call_local(to, true);
    }
    pub(super) fn call_only(&mut self, CallOnly { to, .. }: CallOnly) {
        self.call_local(to, true);
    }
    pub(super) fn call_ext(&mut self, CallExt { export, .. }: CallExt) {
        self.push_return();
        self.export_target(export);
        self.a.call_code(B);
        self.returned();
    }
    pub(super) fn call_ext_last(&mut self, CallExtLast { export, frame, .. }: CallExtLast) {
        self.drop_frame(frame);
        self.export_target(export);
        self.a.jump_code(B);
    }
    pub(super) fn call_ext_only(&mut self, CallExtOnly { export, .. }: CallExtOnly) {
        self.export_target(export);
        self.a.jump_code(B);
    }
    pub(super) fn call_fun(&mut self, CallFun { arity }: CallFun) {
        self.call_of_fun(arity, Src::X(arity as u16), None);
    }
    pub(super) fn call_fun2(&mut self, CallFun2 { arity, fun }: CallFun2) {
        self.call_of_fun(arity, fun, None);
    }
    pub(super) fn call_fun_last(&mut self, CallFunLast { arity, frame }: CallFunLast) {
        self.call_of_fun(arity, Src::X(arity as u16), Some(frame));
    }
    pub(super) fn call_fun2_last(&mut self, CallFun2Last { arity, fun, frame }: CallFun2Last) {
        self.call_of_fun(arity, fun, Some(frame));
    }
    /// A call of a fun with `n` arguments; `frame`: as a tail call, from a function with that
    /// frame.
    fn call_of_fun(&mut self, n: u64, fun: Src, frame: Option<Frame>) {
        if n as usize >= FUN_STUBS {
            return self.leaves();
        }
        let exit = self.exit();
        let r = self.get(fun, A);
        self.a.mov(A, r);
        self.if_not_kind(A, Subtag::Fun, exit);
        // The low byte is the arity, and a bit says whether it is an external fun.
        let (by_name, found) = (self.a.label(), self.a.label());
        self.a.load32(R, boxed(A, FUN_BITS));
        self.a
            .alu_i(D, And, R, (FUN_BY_NAME | FUN_ARITY_MASK) as i32);
        self.a.if_i(Cond::Ne, D, R, n as i32, by_name);
        self.a.load(B, boxed(A, FUN_TARGET));
        // Null while its module is being purged, or when that is gone.
        let address = self.env.targets.fun_address;
        self.a.load(R, at(B, address));
        self.a.if_zero(Cond::E, Q, R, exit);
        self.a.load32(B, at(R, LEAD_CODE));
        self.a.bind(found);
        let stub = self.env.stubs.fun[n as usize];
        let next = self.next_place();
        match frame {
            None => {
                let pc = self.pc(self.whole.next);
                self.a.store_word(at(E, 0), pc, K);
                self.a.call_stub(stub);
                self.returned();
            }
            Some(frame) => {
                self.drop_frame(frame);
                self.a.tail_stub(stub);
            }
        }
        // It has an export in the place of a fun entry.
        self.later("a fun by its name, or one of another arity", move |g| {
            g.a.bind(by_name);
            g.a.if_i(Cond::Ne, D, R, (n | FUN_BY_NAME) as i32, exit);
            g.a.load(B, boxed(A, FUN_TARGET));
            g.a.load(R, at(B, g.env.targets.export_address));
            g.a.load32(B, at(R, LEAD_CODE));
            g.a.if_i(Cond::Ne, D, B, g.env.stubs.local as i32, found);
            // No machine code: a native, or a function that has none yet.
            g.native_of_fun(n, frame, next, exit);
        });
    }
    pub(super) fn apply(&mut self, Apply { arity }: Apply) {
        self.call_by_name(arity, None);
    }
    pub(super) fn apply_last(&mut self, ApplyLast { frame, arity }: ApplyLast) {
        self.call_by_name(arity, Some(frame));
    }
    /// A call of the function whose module and name are in the registers after its `n` arguments.
    fn call_by_name(&mut self, n: u64, frame: Option<Frame>) {
        let exit = self.exit();
        self.a.mov_i(A, n);
        let f = self.env.helpers.callee;
        self.leaf_helper(f);
        self.a.if_zero(Cond::E, Q, R, exit);
        self.a.load32(B, at(R, LEAD_CODE));
        let native = self.a.label();
        self.a
            .if_i(Cond::E, D, B, self.env.stubs.local as i32, native);
        let next = self.next_place();
        match frame {
            None => {
                let pc = self.pc(self.whole.next);
                self.a.store_word(at(E, 0), pc, K);
                self.a.call_code(B);
                self.returned();
            }
            Some(frame) => {
                self.drop_frame(frame);
                self.a.jump_code(B);
            }
        }
        self.later("a native, or a function without machine code", move |g| {
            g.a.bind(native);
            g.native_of_fun(n, frame, next, exit);
        });
    }
    /// Returns where a call returns to, as an address in bytecode and in machine code, and whether
    /// an exception may lead there, too.
    fn next_place(&self) -> Option<(u64, Label, bool)> {
        let at = self.whole.next;
        self.label_at(at)
            .map(|l| (self.pc(at), l, self.handlers.contains(&at)))
    }
    /// The call of a fun with `n` arguments whose code, at `R`, was not compiled: a native runs as
    /// a step of its instruction. `next`: [`next_place`](Self::next_place), unless it is a tail
    /// call. Anything else goes to `exit`.
    fn native_of_fun(
        &mut self,
        n: u64,
        frame: Option<Frame>,
        next: Option<(u64, Label, bool)>,
        exit: Label,
    ) {
        const { assert!(Op::CallBifOnly.row().variants() == 1) };
        let variant = BASE[Op::CallBifOnly as usize];
        let Some(step) = self.handler(variant) else {
            return self.a.jmp(exit);
        };
        self.a.load16(B, at(R, 0));
        self.a.if_i(Cond::Ne, D, B, i32::from(variant), exit);
        self.a.load8(B, at(R, LEAD_FLAGS));
        self.a.if_bits(Cond::Ne, B, LEADS_ELSEWHERE, exit);
        // The call itself counts, in addition to the native.
        self.a.if_i(Cond::Le, Q, REDS, 1, exit);
        self.a.dec(REDS);
        match (frame, next) {
            (Some(frame), _) => {
                self.drop_frame(frame);
                self.step_and_return(step, n, 0, None, None);
            }
            (None, Some((pc, l, handler))) => {
                self.a.store_word(at(E, 0), pc, K);
                self.a.mov(A, R);
                match handler {
                    true => self.helper(step),
                    false => self.bif_helper(step, n),
                }
                let out = self.a.label();
                self.a.if_word(Cond::Ne, R, pc, out);
                let flag = self.env.fields.gc_wanted;
                self.a.if_byte(Cond::E, at(CX, flag), 0, l);
                self.a.bind(out);
                let to = self.env.stubs.resume;
                self.a.leave_to(to);
            }
            (None, None) => self.a.jmp(exit),
        }
    }
}
