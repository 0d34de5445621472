//! Calls of functions, of funs and by name.

use super::*;
use purlin_isa::ops::BASE;
use purlin_term::fun::{LEAD_FLAGS, LEADS_ELSEWHERE};
use purlin_term::layout::{FUN_ARITY_MASK, FUN_BY_NAME};

impl<'a, 'e> Gen<'a, 'e> {
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
        self.a.call_r(R11);
        self.returned();
    }
    pub(super) fn call_ext_last(&mut self, CallExtLast { export, frame, .. }: CallExtLast) {
        self.drop_frame(frame);
        self.export_target(export);
        self.a.jmp_r(R11);
    }
    pub(super) fn call_ext_only(&mut self, CallExtOnly { export, .. }: CallExtOnly) {
        self.export_target(export);
        self.a.jmp_r(R11);
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
        let r = self.get(fun, R10);
        self.a.mov(R10, r);
        self.if_not_kind(R10, Subtag::Fun, exit);
        // The low byte is the arity, and a bit says whether it is an external fun.
        let (by_name, found) = (self.a.label(), self.a.label());
        self.a.load32(RCX, boxed(R10, FUN_BITS));
        self.a
            .alu_i(D, And, RCX, (FUN_BY_NAME | FUN_ARITY_MASK) as i32);
        self.a.alu_i(D, Cmp, RCX, n as i32);
        self.a.jcc(Cond::Ne, by_name);
        self.a.load(R11, boxed(R10, FUN_TARGET));
        // Null while its module is being purged, or when that is gone.
        let address = self.env.targets.fun_address;
        self.a.load(RCX, at(R11, address));
        self.a.test(Q, RCX, RCX);
        self.a.jcc(Cond::E, exit);
        self.a.load32(R11, at(RCX, LEAD_CODE));
        self.a.bind(found);
        let stub = self.env.stubs.fun[n as usize];
        let next = self.next_place();
        match frame {
            None => {
                let pc = self.pc(self.whole.next);
                self.store_word_by(at(E, 0), pc, R12);
                self.a.call_abs(stub);
                self.returned();
            }
            Some(frame) => {
                self.drop_frame(frame);
                self.a.jmp_abs(stub);
            }
        }
        // It has an export in the place of a fun entry.
        self.later("a fun by its name, or one of another arity", move |g| {
            g.a.bind(by_name);
            g.a.alu_i(D, Cmp, RCX, (n | FUN_BY_NAME) as i32);
            g.a.jcc(Cond::Ne, exit);
            g.a.load(R11, boxed(R10, FUN_TARGET));
            g.a.load(RCX, at(R11, g.env.targets.export_address));
            g.a.load32(R11, at(RCX, LEAD_CODE));
            g.a.alu_i(D, Cmp, R11, g.env.stubs.local as i32);
            g.a.jcc(Cond::Ne, found);
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
        self.a.mov_i(R10, n);
        let f = self.env.helpers.callee;
        self.leaf_helper(f);
        self.a.test(Q, RCX, RCX);
        self.a.jcc(Cond::E, exit);
        self.a.load32(R11, at(RCX, LEAD_CODE));
        let native = self.a.label();
        self.a.alu_i(D, Cmp, R11, self.env.stubs.local as i32);
        self.a.jcc(Cond::E, native);
        let next = self.next_place();
        match frame {
            None => {
                let pc = self.pc(self.whole.next);
                self.store_word_by(at(E, 0), pc, R12);
                self.a.call_r(R11);
                self.returned();
            }
            Some(frame) => {
                self.drop_frame(frame);
                self.a.jmp_r(R11);
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
    /// The call of a fun with `n` arguments whose code, at RCX, was not compiled: a native runs as
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
        let Some(&step) = self.env.steps.get(usize::from(variant)) else {
            return self.a.jmp(exit);
        };
        self.a.load16(R11, at(RCX, 0));
        self.a.alu_i(D, Cmp, R11, i32::from(variant));
        self.a.jcc(Cond::Ne, exit);
        self.a.load8(R11, at(RCX, LEAD_FLAGS));
        self.a.test8_i(R11, LEADS_ELSEWHERE);
        self.a.jcc(Cond::Ne, exit);
        // The call itself counts, in addition to the native.
        self.a.alu_i(Q, Cmp, REDS, 1);
        self.a.jcc(Cond::Le, exit);
        self.a.dec(REDS);
        match (frame, next) {
            (Some(frame), _) => {
                self.drop_frame(frame);
                self.step_and_return(step, n, 0, None, None);
            }
            (None, Some((pc, l, handler))) => {
                self.store_word_by(at(E, 0), pc, R12);
                self.a.mov(R10, RCX);
                match handler {
                    true => self.helper(step),
                    false => self.bif_helper(step, n),
                }
                let out = self.a.label();
                self.cmp_word(RCX, pc);
                self.a.jcc(Cond::Ne, out);
                let flag = self.env.fields.gc_wanted;
                self.a.cmp8_mi(at(CX, flag), 0);
                self.a.jcc(Cond::E, l);
                self.a.bind(out);
                let to = self.env.stubs.resume;
                self.a.jmp_abs(to);
            }
            (None, None) => self.a.jmp(exit),
        }
    }
}
