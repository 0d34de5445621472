//! Calls of natives. A native whose row names a [`Template`] has code of its own for the operands
//! that occur most: immediates, small integers, short lists. All other calls run as a step, or, if
//! the native changes code, in the interpreter.

use super::*;
use purlin_term::layout::{BIN_SIZE, SUB_BIN_BITS};
use purlin_term::word::TAG_PID;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn bif0(&mut self, Bif0 { native, dst }: Bif0) {
        if native != self.env.own_pid {
            return self.step();
        }
        let mail = self.env.mail;
        self.a.load(R, at(CX, self.env.fields.proc));
        let d = self.dst(dst, R);
        self.a.load32(d, at(R, mail.pid));
        const PID_SHIFT: u8 = TAG4_MASK.count_ones() as u8;
        self.a.shift_i(Q, Shl, d, PID_SHIFT);
        self.a.alu_i(Q, Or, d, TAG_PID as i32);
        self.put(dst, d);
    }
    pub(super) fn bif1(&mut self, op: Bif1) {
        let Bif1 { a, dst, export, .. } = op;
        match (self.env.native)(export) {
            Some(Template::Abs) => self.abs(a, dst),
            Some(Template::Not) => self.not(a, dst),
            Some(Template::BitSize) => self.bit_size(a, dst),
            Some(Template::DictionaryValue) => self.dictionary_value(a, dst),
            _ => self.step(),
        }
    }
    pub(super) fn bif2(&mut self, op: Bif2) {
        let Bif2 {
            a, b, dst, export, ..
        } = op;
        match (self.env.native)(export) {
            // For a tuple in a register, a shortcut precedes it.
            Some(Template::Element) if matches!(b, Src::C(w) if !is_immediate(w)) => {
                self.element_of_constant(a, b, dst);
            }
            Some(Template::Divide) if !self.env.stressed => self.quotient(a, b, dst),
            Some(n @ (Template::And | Template::Or | Template::Xor)) => self.logic(n, a, b, dst),
            Some(n @ (Template::Min | Template::Max)) => self.least(n == Template::Min, a, b, dst),
            _ => self.step(),
        }
    }
    /// The call of a native: a stub searches short lists, anything else runs as a step.
    pub(super) fn call_bif(&mut self, CallBif { export, .. }: CallBif) {
        if (self.env.changes_code)(export) {
            return self.leaves();
        }
        match self.searches(export) {
            Some(n) => {
                let other = self.step_aside();
                self.search_list(n, other);
            }
            None => self.step(),
        }
    }
    pub(super) fn call_bif_last(&mut self, op: CallBifLast) {
        let CallBifLast {
            export,
            frame,
            arity,
            ..
        } = op;
        self.call_bif_returning(export, Some(frame), arity);
    }
    pub(super) fn call_bif_only(&mut self, op: CallBifOnly) {
        let CallBifOnly { export, arity, .. } = op;
        self.call_bif_returning(export, None, arity);
    }
    /// A tail call of a native in a function with that frame, or with none.
    fn call_bif_returning(&mut self, export: u64, frame: Option<Frame>, arity: u64) {
        if (self.env.changes_code)(export) {
            return self.leaves();
        }
        let i = self.part;
        let Some(n) = self.searches(export) else {
            return self.native_returning(i, frame, arity);
        };
        let other = self.a.label();
        self.search_list(n, other);
        if let Some(frame) = frame {
            self.drop_frame(frame);
        }
        self.ret();
        self.later("no short search: the native", move |g| {
            g.whole = i;
            g.a.bind(other);
            g.native_returning(i, frame, arity);
        });
    }
    /// The step of a tail call of a native.
    fn native_returning(&mut self, i: &Instruction, frame: Option<Frame>, arity: u64) {
        // If exceptions lead there as well, all registers are loaded.
        let direct = !self.handlers.contains(&i.next);
        self.returning_step(i, frame, arity, direct);
    }
    fn searches(&self, export: u64) -> Option<Template> {
        let n = (self.env.native)(export);
        n.filter(|n| {
            !self.env.stressed
                && matches!(
                    n,
                    Template::KeyFind | Template::KeyMember | Template::Member
                )
        })
    }
    /// X0 becomes the result of a search. Jumps to `other`, before anything has happened, if the
    /// native must be called.
    fn search_list(&mut self, n: Template, other: Label) {
        // The call counts as one of the native, which ends no time slice here.
        self.a.if_i(Cond::Le, Q, REDS, 1, other);
        self.a.mov_i(R, self.env.natives_traced);
        self.a.if_byte(Cond::Ne, at(R, 0), 0, other);
        let list = match n {
            Template::Member => 1,
            _ => {
                // Small integers from 1 on; eight times the number.
                let place = self.get(Src::X(1), B);
                self.a.mov(B, place);
                self.if_not_small(B, other);
                self.a.shift_i(Q, Sar, B, SMALL_SHIFT as u8);
                self.a.if_i(Cond::L, Q, B, 1, other);
                self.a.shift_i(Q, Shl, B, 3);
                2
            }
        };
        let list = self.get(Src::X(list), K);
        self.a.mov(K, list);
        let what = self.get(Src::X(0), A);
        self.a.mov(A, what);
        let stub = match n {
            Template::Member => self.env.stubs.member,
            _ => self.env.stubs.find_key,
        };
        self.a.call_stub(stub);
        let none = self.env.no_value;
        self.a.if_word(Cond::E, R, none, other);
        self.a.dec(REDS);
        if n == Template::KeyMember {
            let (t, f) = (self.env.true_word, self.env.false_word);
            self.a.mov_i(B, t);
            self.a.select(Cond::Ne, Operands::Word(R, f), R, B);
        }
        self.put(Dst::X(0), R);
    }
    /// A place where a library may have put a function. If the module names no functions, each of
    /// them has such a place, and most of the slots stay empty: the function's own code follows.
    pub(super) fn nif(&mut self, Nif { slot }: Nif) {
        let i = self.part;
        let Some(next) = self.label_at(i.next) else {
            return self.step();
        };
        self.a.mov_i(A, slot);
        self.a.if_mi(Cond::E, at(A, 0), 0, next);
        let arity = u64::from(self.f.arity);
        self.returning_step(i, None, arity, false);
    }
    /// An element of a tuple in the code, as in lookup tables.
    fn element_of_constant(&mut self, index: Src, tuple: Src, dst: Dst) {
        let other = self.step_aside();
        let t = self.get(tuple, A);
        self.if_not_tuple(t, other);
        self.element_at(index, t, dst, other);
    }
    /// An element of a term that is a tuple.
    pub(super) fn element_at(&mut self, index: Src, t: Reg, dst: Dst, other: Label) {
        let k = self.get(index, K);
        self.if_no_small(index, k, other);
        self.a.load(B, boxed(t, 0));
        self.a.shift_i(Q, Shr, B, ARITY_SHIFT as u8);
        self.a.untag(R, k);
        self.a.dec(R);
        // Numbers below 1 are large unsigned ones.
        self.a.if_r(Cond::Ae, Q, R, B, other);
        self.a.load(R, indexed(t, R, 8, 8 - TAG_BOXED as i32));
        self.put_result(dst, R);
    }
    fn abs(&mut self, src: Src, dst: Dst) {
        let other = self.step_aside();
        let done = self.a.label();
        let r = self.get(src, A);
        self.if_no_small(src, r, other);
        self.a.mov(R, r);
        self.a.if_zero(Cond::Ns, Q, r, done);
        // The tag is in both terms of the difference.
        self.a.mov_i(R, 2 * TAG_SMALL);
        // The least small integer has none.
        self.a.sum_or(Sub, R, r, Some(other));
        self.a.bind(done);
        self.put(dst, R);
    }
    /// The size of a binary or another bitstring; what the native takes beside these are left to
    /// it.
    fn bit_size(&mut self, src: Src, dst: Dst) {
        let other = self.step_aside();
        let (whole, done) = (self.a.label(), self.a.label());
        let r = self.get(src, A);
        self.if_not_boxed(r, other);
        self.if_subtag(Cond::E, r, Subtag::HeapBin, whole);
        self.a.if_i(
            Cond::E,
            D,
            R,
            (Subtag::RefcBin as i32) << SUBTAG_SHIFT,
            whole,
        );
        self.a.if_i(
            Cond::Ne,
            D,
            R,
            (Subtag::SubBin as i32) << SUBTAG_SHIFT,
            other,
        );
        // Bits of an incomplete last byte.
        self.a.load8(B, boxed(r, SUB_BIN_BITS));
        self.a.load(R, boxed(r, BIN_SIZE));
        self.a.shift_i(Q, Shl, R, 3);
        self.a.alu(Q, Add, R, B);
        self.a.jmp(done);
        self.a.bind(whole);
        self.a.load(R, boxed(r, BIN_SIZE));
        self.a.shift_i(Q, Shl, R, 3);
        self.a.bind(done);
        self.put_small(dst);
    }
    /// `get/1`
    fn dictionary_value(&mut self, key: Src, dst: Dst) {
        let r = self.get(key, A);
        self.a.mov(A, r);
        self.leaf_helper(self.env.helpers.dictionary_value);
        self.put(dst, R);
    }
    /// `/`
    fn quotient(&mut self, a: Src, b: Src, dst: Dst) {
        let other = self.step_aside();
        let (pa, pb) = (self.get_or_constant(a, A), self.get_or_constant(b, K));
        self.operands(pa, pb);
        let stub = self.env.stubs.floats[3];
        self.a.call_stub(stub);
        self.a.if_zero(Cond::E, D, R, other);
        self.put(dst, R);
    }
    fn not(&mut self, src: Src, dst: Dst) {
        let other = self.step_aside();
        let done = self.a.label();
        let r = self.get(src, A);
        let (t, f) = (self.env.true_word, self.env.false_word);
        self.a.mov_i(R, f);
        self.a.if_word(Cond::E, r, t, done);
        self.a.if_word(Cond::Ne, r, f, other);
        self.a.mov_i(R, t);
        self.a.bind(done);
        self.put(dst, R);
    }
    fn if_not_boolean(&mut self, r: Reg, to: Label) {
        let (t, f) = (self.env.true_word, self.env.false_word);
        let is = self.a.label();
        self.a.if_word(Cond::E, r, t, is);
        self.a.if_word(Cond::Ne, r, f, to);
        self.a.bind(is);
    }
    fn logic(&mut self, n: Template, a: Src, b: Src, dst: Dst) {
        let other = self.step_aside();
        let (p, q) = (self.get(a, A), self.get(b, K));
        self.if_not_boolean(p, other);
        self.if_not_boolean(q, other);
        let (t, f) = (self.env.true_word, self.env.false_word);
        match n {
            Template::And | Template::Or => {
                // One of the two values of the first operand decides alone.
                self.a.mov(R, q);
                let decides = if n == Template::And { f } else { t };
                self.a.select(Cond::E, Operands::Word(p, decides), R, p);
            }
            _ => {
                self.a.mov_i(R, t);
                self.a.mov_i(B, f);
                self.a.select(Cond::E, Operands::Regs(p, q), R, B);
            }
        }
        self.put(dst, R);
    }
    /// `min` and `max` of small integers.
    fn least(&mut self, min: bool, a: Src, b: Src, dst: Dst) {
        let other = self.step_aside();
        if Self::is_odd(a, b) {
            return self.a.jmp(other);
        }
        let (p, q) = (self.get(a, A), self.get(b, K));
        self.if_not_smalls((a, p), (b, q), other);
        self.a.mov(R, p);
        let c = if min { Cond::L } else { Cond::G };
        self.a.select(c, Operands::Regs(q, p), R, q);
        self.put(dst, R);
    }
}
