//! Messages: sending, and the receive loop.
//!
//! The usual cases have code here: a small message for a process of this node, the next message of
//! a receive that has looked at one, a message that was copied to the heap or is an immediate. All
//! other cases are steps: signals in transit, the first message, which is copied to the heap,
//! messages of other nodes, and events that a tracer or monitor receives. The race finder runs no
//! machine code.

use super::*;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn send(&mut self, Send {}: Send) {
        let i = self.whole;
        self.a.mov_i(A, self.pc(i.at));
        self.bif_helper(self.env.helpers.send, 2);
        let other = self.a.label();
        self.a.if_bits(Cond::E, R, 1, other);
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
        // A process that has waited here, or given way, continues here.
        if let Some(here) = self.label_at(self.whole.at) {
            self.returns.push((self.pc(self.whole.at), here));
        }
        let mail = self.env.mail;
        let other = self.step_aside();
        self.mailbox(other);
        let walked = self.is_walked(&op);
        if walked {
            // The step applies the test that follows, where that has refused messages.
            self.a.if_byte(Cond::E, at(R, mail.unfiltered), 0, other);
        }
        self.a.load(B, at(R, mail.save));
        // The first message is copied, and so is the first behind a marker.
        self.a.lea(A, at(R, mail.first));
        self.a.if_r(Cond::E, Q, B, A, other);
        self.a.if_byte(Cond::Ne, at(R, mail.at_marker), 0, other);
        self.a.if_mi(Cond::Ne, at(R, mail.undecoded), 0, other);
        self.a.load(B, at(B, 0));
        self.a.if_zero(Cond::E, Q, B, other);
        let looks = self.a.here_label();
        self.looks.push((self.whole.at, walked, looks));
        if walked {
            self.a.load8(A, at(R, mail.unfiltered));
            self.a.dec(A);
            self.a.store8(at(R, mail.unfiltered), A);
        }
        self.a.store_i(at(R, mail.copied_end), 0);
        // It is read where it is.
        self.a.store8_i(at(CX, self.env.fields.window), 1);
        let r = self.dst(op.dst, R);
        self.a.load(r, at(B, mail.term));
        self.put(op.dst, r);
    }
    /// Whether the interpreter goes past messages by the test that follows, without running it: it
    /// does so for a test of a tuple's head or with a constant that leads to the end of this loop.
    /// The same question as that of `walk` in `crates/interp/src/messages.rs`, about operands that
    /// are decoded already. `loop_rec` would take other steps than the interpreter's if the two
    /// disagreed.
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
        self.a.if_i(Cond::Le, Q, REDS, 1, other);
        self.mailbox(other);
        self.a.if_mi(Cond::Ne, at(R, mail.copied_end), 0, other);
        self.a.if_mi(Cond::Ne, at(R, mail.undecoded), 0, other);
        self.a.load(B, at(R, mail.save));
        self.a.load(B, at(B, 0));
        self.a.if_zero(Cond::E, Q, B, other);
        // Its link to the next one is its first word.
        self.a.store(at(R, mail.save), B);
        self.a.dec(REDS);
        let back = self.to(to);
        let looks = to.0.and_then(|at| self.looks.iter().find(|l| l.0 == at));
        if let Some(&(_, walked, looks)) = looks {
            // The next message is not the first one, and no marker was used meanwhile: it only has
            // to be there.
            if walked {
                self.a.if_byte(Cond::E, at(R, mail.unfiltered), 0, back);
            }
            self.a.load(B, at(B, 0));
            self.a.if_zero(Cond::Ne, Q, B, looks);
        }
        self.a.jmp(back);
    }
    /// R: the mailbox of the process; to the label if it has none.
    fn mailbox(&mut self, none: Label) {
        self.a.load(R, at(CX, self.env.fields.proc));
        self.a.load(R, at(R, self.env.mail.mailbox));
        self.a.if_zero(Cond::E, Q, R, none);
    }
    pub(super) fn remove_message(&mut self, RemoveMessage {}: RemoveMessage) {
        let other = self.step_aside();
        self.leaf_helper(self.env.helpers.remove_message);
        self.a.if_bits(Cond::E, R, 1, other);
    }
    pub(super) fn wait(&mut self, Wait { to }: Wait) {
        let Some(to) = to.0 else {
            return self.leaves();
        };
        self.a.mov_i(A, self.pc(to));
        self.a.leave_to(self.env.stubs.waits);
    }
}
