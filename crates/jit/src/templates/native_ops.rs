//! Templates of natives, for simple operands.

use super::*;
use purlin_term::layout::{BIN_SIZE, SUB_BIN_BITS};
use purlin_term::word::TAG_PID;

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn bif0(&mut self, Bif0 { native, dst }: Bif0) {
        if native != self.env.own_pid {
            return self.step();
        }
        let mail = self.env.mail;
        self.a.load(RCX, at(CX, self.env.fields.proc));
        let d = self.dst(dst, RCX);
        self.a.load32(d, at(RCX, mail.pid));
        const PID_SHIFT: u8 = TAG4_MASK.count_ones() as u8;
        self.a.shift_i(Q, Shl, d, PID_SHIFT);
        self.a.alu_i(Q, Or, d, TAG_PID as i32);
        self.put(dst, d);
    }
    pub(super) fn bif1(&mut self, op: Bif1) {
        let Bif1 { a, dst, export, .. } = op;
        match (self.env.native)(export) {
            Some(Native::Abs) => self.abs(a, dst),
            Some(Native::Not) => self.not(a, dst),
            Some(Native::BitSize) => self.bit_size(a, dst),
            Some(Native::DictionaryValue) => self.dictionary_value(a, dst),
            _ => self.step(),
        }
    }
    pub(super) fn bif2(&mut self, op: Bif2) {
        let Bif2 {
            a, b, dst, export, ..
        } = op;
        match (self.env.native)(export) {
            // For a tuple in a register, a shortcut precedes it.
            Some(Native::Element) if matches!(b, Src::C(w) if !is_immediate(w)) => {
                self.element_of_constant(a, b, dst);
            }
            Some(Native::Divide) if !self.env.stressed => self.quotient(a, b, dst),
            Some(n @ (Native::And | Native::Or | Native::Xor)) => self.logic(n, a, b, dst),
            Some(n @ (Native::Min | Native::Max)) => self.least(n == Native::Min, a, b, dst),
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
    fn searches(&self, export: u64) -> Option<Native> {
        let n = (self.env.native)(export);
        n.filter(|n| {
            !self.env.stressed && matches!(n, Native::KeyFind | Native::KeyMember | Native::Member)
        })
    }
    /// X0 becomes the result of a search. Jumps to `other`, before anything has happened, if the
    /// native must be called.
    fn search_list(&mut self, n: Native, other: Label) {
        // The call counts as one of the native, which ends no time slice here.
        self.a.alu_i(Q, Cmp, REDS, 1);
        self.a.jcc(Cond::Le, other);
        self.a.mov_i(RCX, self.env.natives_traced);
        self.a.cmp8_mi(at(RCX, 0), 0);
        self.a.jcc(Cond::Ne, other);
        let list = match n {
            Native::Member => 1,
            _ => {
                // Small integers from 1 on; eight times the number.
                let place = self.get(Src::X(1), R11);
                self.a.mov(R11, place);
                self.if_not_small(R11, other);
                self.a.shift_i(Q, Sar, R11, SMALL_SHIFT as u8);
                self.a.alu_i(Q, Cmp, R11, 1);
                self.a.jcc(Cond::L, other);
                self.a.shift_i(Q, Shl, R11, 3);
                2
            }
        };
        let list = self.get(Src::X(list), R12);
        self.a.mov(R12, list);
        let what = self.get(Src::X(0), R10);
        self.a.mov(R10, what);
        let stub = match n {
            Native::Member => self.env.stubs.member,
            _ => self.env.stubs.find_key,
        };
        self.a.call_abs(stub);
        let none = self.env.no_value;
        self.cmp_word(RCX, none);
        self.a.jcc(Cond::E, other);
        self.a.dec(REDS);
        if n == Native::KeyMember {
            let (t, f) = (self.env.true_word, self.env.false_word);
            self.a.mov_i(R11, t);
            self.cmp_word(RCX, f);
            self.a.cmov(Cond::Ne, RCX, R11);
        }
        self.put(Dst::X(0), RCX);
    }
    /// A place where a library may have put a function. If the module names no functions, each of
    /// them has such a place, and most of the slots stay empty: the function's own code follows.
    pub(super) fn nif(&mut self, Nif { slot }: Nif) {
        let i = self.part;
        let Some(next) = self.label_at(i.next) else {
            return self.step();
        };
        self.a.mov_i(R10, slot);
        self.a.alu_mi(Q, Cmp, at(R10, 0), 0);
        self.a.jcc(Cond::E, next);
        let arity = u64::from(self.f.arity);
        self.returning_step(i, None, arity, false);
    }
    /// An element of a tuple in the code, as in lookup tables.
    fn element_of_constant(&mut self, index: Src, tuple: Src, dst: Dst) {
        let other = self.step_aside();
        let t = self.get(tuple, R10);
        self.if_not_tuple(t, other);
        self.element_at(index, t, dst, other);
    }
    /// An element of a term that is a tuple.
    pub(super) fn element_at(&mut self, index: Src, t: Reg, dst: Dst, other: Label) {
        let k = self.get(index, R12);
        self.if_no_small(index, k, other);
        self.a.load(R11, boxed(t, 0));
        self.a.shift_i(Q, Shr, R11, ARITY_SHIFT as u8);
        self.a.mov(RCX, k);
        self.a.shift_i(Q, Sar, RCX, SMALL_SHIFT as u8);
        self.a.dec(RCX);
        // Numbers below 1 are large unsigned ones.
        self.a.alu(Q, Cmp, RCX, R11);
        self.a.jcc(Cond::Ae, other);
        self.a.load(RCX, indexed(t, RCX, 8, 8 - TAG_BOXED as i32));
        self.put(dst, RCX);
    }
    fn abs(&mut self, src: Src, dst: Dst) {
        let other = self.step_aside();
        let done = self.a.label();
        let r = self.get(src, R10);
        self.if_no_small(src, r, other);
        self.a.mov(RCX, r);
        self.a.test(Q, r, r);
        self.a.jcc(Cond::Ns, done);
        // The tag is in both terms of the difference.
        self.a.mov_i(RCX, 2 * TAG_SMALL);
        self.a.alu(Q, Sub, RCX, r);
        // The least small integer.
        self.a.jcc(Cond::O, other);
        self.a.bind(done);
        self.put(dst, RCX);
    }
    /// The size of a binary or another bitstring; what the native takes beside these are left to
    /// it.
    fn bit_size(&mut self, src: Src, dst: Dst) {
        let other = self.step_aside();
        let (whole, done) = (self.a.label(), self.a.label());
        let r = self.get(src, R10);
        self.if_not_boxed(r, other);
        self.cmp_subtag(r, Subtag::HeapBin);
        self.a.jcc(Cond::E, whole);
        self.a
            .alu_i(D, Cmp, RCX, (Subtag::RefcBin as i32) << SUBTAG_SHIFT);
        self.a.jcc(Cond::E, whole);
        self.a
            .alu_i(D, Cmp, RCX, (Subtag::SubBin as i32) << SUBTAG_SHIFT);
        self.a.jcc(Cond::Ne, other);
        // Bits of an incomplete last byte.
        self.a.load8(R11, boxed(r, SUB_BIN_BITS));
        self.a.load(RCX, boxed(r, BIN_SIZE));
        self.a.shift_i(Q, Shl, RCX, 3);
        self.a.alu(Q, Add, RCX, R11);
        self.a.jmp(done);
        self.a.bind(whole);
        self.a.load(RCX, boxed(r, BIN_SIZE));
        self.a.shift_i(Q, Shl, RCX, 3);
        self.a.bind(done);
        self.put_small(dst);
    }
    /// `get/1`
    fn dictionary_value(&mut self, key: Src, dst: Dst) {
        let r = self.get(key, R10);
        self.a.mov(R10, r);
        self.leaf_helper(self.env.helpers.dictionary_value);
        self.put(dst, RCX);
    }
    /// `/`
    fn quotient(&mut self, a: Src, b: Src, dst: Dst) {
        let other = self.step_aside();
        let (pa, pb) = (self.get_or_constant(a, R10), self.get_or_constant(b, R12));
        self.operands(pa, pb);
        let stub = self.env.stubs.floats[3];
        self.a.call_abs(stub);
        self.a.test(D, RCX, RCX);
        self.a.jcc(Cond::E, other);
        self.put(dst, RCX);
    }
    fn not(&mut self, src: Src, dst: Dst) {
        let other = self.step_aside();
        let done = self.a.label();
        let r = self.get(src, R10);
        let (t, f) = (self.env.true_word, self.env.false_word);
        self.a.mov_i(RCX, f);
        self.cmp_word(r, t);
        self.a.jcc(Cond::E, done);
        self.cmp_word(r, f);
        self.a.jcc(Cond::Ne, other);
        self.a.mov_i(RCX, t);
        self.a.bind(done);
        self.put(dst, RCX);
    }
    fn if_not_boolean(&mut self, r: Reg, to: Label) {
        let (t, f) = (self.env.true_word, self.env.false_word);
        let is = self.a.label();
        self.cmp_word(r, t);
        self.a.jcc(Cond::E, is);
        self.cmp_word(r, f);
        self.a.jcc(Cond::Ne, to);
        self.a.bind(is);
    }
    fn logic(&mut self, n: Native, a: Src, b: Src, dst: Dst) {
        let other = self.step_aside();
        let (p, q) = (self.get(a, R10), self.get(b, R12));
        self.if_not_boolean(p, other);
        self.if_not_boolean(q, other);
        let (t, f) = (self.env.true_word, self.env.false_word);
        match n {
            Native::And | Native::Or => {
                // One of the two values of the first operand decides alone.
                self.a.mov(RCX, q);
                self.cmp_word(p, if n == Native::And { f } else { t });
                self.a.cmov(Cond::E, RCX, p);
            }
            _ => {
                self.a.mov_i(RCX, t);
                self.a.mov_i(R11, f);
                self.a.alu(Q, Cmp, p, q);
                self.a.cmov(Cond::E, RCX, R11);
            }
        }
        self.put(dst, RCX);
    }
    /// `min` and `max` of small integers.
    fn least(&mut self, min: bool, a: Src, b: Src, dst: Dst) {
        let other = self.step_aside();
        if Self::is_odd(a, b) {
            return self.a.jmp(other);
        }
        let (p, q) = (self.get(a, R10), self.get(b, R12));
        self.if_not_smalls((a, p), (b, q), other);
        self.a.mov(RCX, p);
        self.a.alu(Q, Cmp, q, p);
        self.a.cmov(if min { Cond::L } else { Cond::G }, RCX, q);
        self.put(dst, RCX);
    }
}
