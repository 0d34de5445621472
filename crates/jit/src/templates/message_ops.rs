//! Messages: sending, and the receive loop.
//!
//! The usual cases have code here: a small message for a process of this node, the next message of
//! a receive that has looked at one, a message that was copied to the heap or is an immediate. All
//! other cases are steps: signals in transit, the first message, which is copied to the heap,
//! messages of other nodes, and events that a tracer or monitor receives. The race finder runs no
//! machine code.

use super::*;

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn send(&mut self, Send {}: Send) {
        let i = self.whole;
        self.a.mov_i(R10, self.pc(i.at));
        self.bif_helper(self.env.helpers.send, 2);
        let other = self.a.label();
        self.a.test8_i(RCX, 1);
        self.a.jcc(Cond::E, other);
        let next = self.a.here_label();
        self.later("no small message for a process here", move |g| {
            g.a.bind(other);
            g.whole = i;
            // The helper has left it in the context alone.
            g.a.load(X_REGS[1], x(1));
            g.step_of(i);
            g.a.jmp(next);
        });
    }
    pub(super) fn loop_rec(&mut self, op: LoopRec) {
        // A process that has waited here, or given way, goes on here.
        if let Some(here) = self.label_at(self.whole.at) {
            self.returns.push((self.pc(self.whole.at), here));
        }
        let mail = self.env.mail;
        let other = self.step_aside();
        self.mailbox(other);
        let walked = self.is_walked(&op);
        if walked {
            // The step applies the test that follows, where that has refused messages.
            self.a.cmp8_mi(at(RCX, mail.unfiltered), 0);
            self.a.jcc(Cond::E, other);
        }
        self.a.load(R11, at(RCX, mail.save));
        // The first message is copied, and so is the first behind a marker.
        self.a.lea(R10, at(RCX, mail.first));
        self.a.alu(Q, Cmp, R11, R10);
        self.a.jcc(Cond::E, other);
        self.a.cmp8_mi(at(RCX, mail.at_marker), 0);
        self.a.jcc(Cond::Ne, other);
        self.a.alu_mi(Q, Cmp, at(RCX, mail.undecoded), 0);
        self.a.jcc(Cond::Ne, other);
        self.a.load(R11, at(R11, 0));
        self.a.test(Q, R11, R11);
        self.a.jcc(Cond::E, other);
        if walked {
            self.a.load8(R10, at(RCX, mail.unfiltered));
            self.a.dec(R10);
            self.a.store8(at(RCX, mail.unfiltered), R10);
        }
        self.a.store_i(at(RCX, mail.copied_end), 0);
        // It is read where it is.
        self.a.store8_i(at(CX, self.env.fields.window), 1);
        let r = self.dst(op.dst, RCX);
        self.a.load(r, at(R11, mail.term));
        self.put(op.dst, r);
    }
    /// Whether the interpreter goes past messages by the test that follows, without running it: it
    /// does so for a test of a tuple's head or with a constant that leads to the end of this loop.
    fn is_walked(&self, op: &LoopRec) -> bool {
        let i = self.whole;
        let Some(test) = decode_at(&self.f, i.next) else {
            return false;
        };
        let (src, fail) = match test.op {
            Op::IsEqImmed => (IsEqImmed::of(&test).src, IsEqImmed::of(&test).fail),
            Op::IsTaggedTuple => (IsTaggedTuple::of(&test).src, IsTaggedTuple::of(&test).fail),
            Op::IsTupleOfArity => {
                let IsTupleOfArity { src, fail, .. } = IsTupleOfArity::of(&test);
                (src, fail)
            }
            Op::IsEqExact => match IsEqExact::of(&test) {
                IsEqExact {
                    a,
                    b: Src::C(w),
                    fail,
                } if !is_immediate(w) => (a, fail),
                _ => return false,
            },
            _ => return false,
        };
        let end = fail.0.and_then(|at| decode_at(&self.f, at));
        let back = end.filter(|e| e.op == Op::LoopRecEnd);
        matches!(src, Src::X(_))
            && op.dst.src() == src
            && back.is_some_and(|e| LoopRecEnd::of(&e).to.0 == Some(i.at))
    }
    pub(super) fn loop_rec_end(&mut self, LoopRecEnd { to }: LoopRecEnd) {
        let mail = self.env.mail;
        let other = self.step_aside();
        // A message that is gone past counts as a call.
        self.a.alu_i(Q, Cmp, REDS, 1);
        self.a.jcc(Cond::Le, other);
        self.mailbox(other);
        self.a.alu_mi(Q, Cmp, at(RCX, mail.copied_end), 0);
        self.a.jcc(Cond::Ne, other);
        self.a.alu_mi(Q, Cmp, at(RCX, mail.undecoded), 0);
        self.a.jcc(Cond::Ne, other);
        self.a.load(R11, at(RCX, mail.save));
        self.a.load(R11, at(R11, 0));
        self.a.test(Q, R11, R11);
        self.a.jcc(Cond::E, other);
        // Its link to the next one is its first word.
        self.a.store(at(RCX, mail.save), R11);
        self.a.dec(REDS);
        let to = self.to(to);
        self.a.jmp(to);
    }
    /// RCX: the mailbox of the process; to the label if it has none.
    fn mailbox(&mut self, none: Label) {
        self.a.load(RCX, at(CX, self.env.fields.proc));
        self.a.load(RCX, at(RCX, self.env.mail.mailbox));
        self.a.test(Q, RCX, RCX);
        self.a.jcc(Cond::E, none);
    }
    pub(super) fn remove_message(&mut self, RemoveMessage {}: RemoveMessage) {
        let other = self.step_aside();
        self.leaf_helper(self.env.helpers.remove_message);
        self.a.test8_i(RCX, 1);
        self.a.jcc(Cond::E, other);
    }
    pub(super) fn wait(&mut self, Wait { to }: Wait) {
        let Some(to) = to.0 else {
            return self.leaves();
        };
        self.a.mov_i(R10, self.pc(to));
        self.a.jmp_abs(self.env.stubs.waits);
    }
}
