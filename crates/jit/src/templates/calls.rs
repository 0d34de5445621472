//! Frames and calls.

use super::*;
use purlin_term::layout::{FUN_ARITY_MASK, FUN_BY_NAME};

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn allocate(&mut self, frame: u64, heap: u64, live: u64, op: Op) {
        let n = frame + 1;
        self.room(n + heap, live);
        self.a.alu_i(Q, Sub, E, n as i32 * 8);
        self.a.store_i(at(E, 0), 0);
        if matches!(op, Op::AllocateZero | Op::AllocateHeapZero) {
            for k in 0..frame as u16 {
                self.a.store_i(y(k), NIL_WORD as i32);
            }
        }
    }
    /// A call of a fun of `n` arguments; `frame`: as the last thing, from a function with that frame.
    pub(super) fn call_fun(&mut self, n: u64, fun: Arg, frame: Option<u64>) {
        if n as usize >= FUN_STUBS {
            let pc = self.pc(self.whole.at);
            self.leave_to(pc);
            if frame.is_none()
                && let Some(l) = self.label_at(self.whole.next)
            {
                let next = self.pc(self.whole.next);
                self.returns.push((next, l));
            }
            return;
        }
        let exit = self.exit();
        let r = self.get(fun, R10);
        self.a.mov(R10, r);
        self.if_not_kind(R10, Subtag::Fun, exit);
        // Arity in the low byte, and whether it is a function by name.
        let (by_name, found) = (self.a.label(), self.a.label());
        self.a.load32(RCX, boxed(R10, FUN_BITS));
        self.a
            .alu_i(D, And, RCX, (FUN_BY_NAME | FUN_ARITY_MASK) as i32);
        self.a.alu_i(D, Cmp, RCX, n as i32);
        self.a.jcc(Cond::Ne, by_name);
        self.a.load(R11, boxed(R10, FUN_TARGET));
        // None while its module is purged, or when that has gone.
        let address = self.env.targets.fun_address;
        self.a.load(RCX, at(R11, address));
        self.a.test(Q, RCX, RCX);
        self.a.jcc(Cond::E, exit);
        self.a.load32(R11, at(RCX, -4));
        self.a.bind(found);
        let stub = self.env.stubs.fun[n as usize];
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
        // An export stands there in the place of a fun entry.
        self.later(move |g| {
            g.a.bind(by_name);
            g.a.alu_i(D, Cmp, RCX, (n | FUN_BY_NAME) as i32);
            g.a.jcc(Cond::Ne, exit);
            g.a.load(R11, boxed(R10, FUN_TARGET));
            g.a.load(RCX, at(R11, g.env.targets.export_address));
            g.a.load32(R11, at(RCX, -4));
            // Natives have none: the interpreter calls them sooner.
            g.a.alu_i(D, Cmp, R11, g.env.stubs.local as i32);
            g.a.jcc(Cond::E, exit);
            g.a.jmp(found);
        });
    }
}
