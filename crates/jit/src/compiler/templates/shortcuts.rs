//! Shortcuts: ops that precede the call of a native, and skip it if they know the value.
//!
//! # Invariant
//! A shortcut raises nothing. Where the native would fail, or for a term that the shortcut does not
//! know, the call runs.

use super::*;
use purlin_isa::ops::comparison::{
    EQUAL, GREATER, LESS, NOT_EQUAL, NOT_GREATER, NOT_LESS, NOT_SAME, SAME,
};
use purlin_term::layout::{BIN_SIZE, MAP_SIZE, SUB_BIN_BITS};

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    /// Returns the label after the call of the native that the shortcut precedes, and that of the
    /// call.
    pub(super) fn shortcut(&self) -> Option<(Label, Label)> {
        let over = over(&self.f, self.part).and_then(|over| self.label_at(over))?;
        Some((over, self.label_at(self.part.next)?))
    }
    pub(super) fn fast_element(&mut self, op: FastElement) {
        let FastElement { tuple, offset, dst } = op;
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let r = self.get(tuple, A);
        self.if_not_tuple(r, next);
        // The offset of an element in bytes is eight times its number.
        self.a
            .if_mem_word(Cond::B, boxed(r, 0), offset << (ARITY_SHIFT - 3), next);
        self.element(tuple, offset, dst);
        self.a.jmp(over);
    }
    pub(super) fn fast_element_of(&mut self, op: FastElementOf) {
        let FastElementOf { tuple, index, dst } = op;
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let t = self.get(tuple, A);
        self.if_not_tuple(t, next);
        self.element_at(index, t, dst, next);
        self.a.jmp(over);
    }
    /// `setelement/3` of X0 to X2.
    pub(super) fn fast_setelement(&mut self, FastSetelement {}: FastSetelement) {
        const MOST_COPIED: i32 = 256;
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let other = self.step_aside();
        let (index, tuple, value) = (X_REGS[0], X_REGS[1], X_REGS[2]);
        // The general call is the one that a trace of the native sees.
        self.a.mov_i(R, self.env.natives_traced);
        self.a.if_byte(Cond::Ne, at(R, 0), 0, next);
        self.if_no_small(Src::X(0), index, next);
        self.if_not_boxed(tuple, next);
        self.a.load(B, boxed(tuple, 0));
        // The mark of tuples is 0.
        self.a.if_bits(Cond::Ne, B, HEADER_MASK, next);
        self.a.shift_i(Q, Shr, B, ARITY_SHIFT as u8);
        self.a.untag(R, index);
        self.a.dec(R);
        // Numbers below 1 are large unsigned ones.
        self.a.if_r(Cond::Ae, Q, R, B, next);
        self.a.if_i(Cond::Ae, Q, B, MOST_COPIED, next);
        self.a.lea(K, indexed(HP, B, 8, 8));
        self.a.if_r(Cond::A, Q, K, E, other);
        if self.env.stressed {
            let wanted = self.env.fields.gc_wanted;
            self.a.if_byte(Cond::Ne, at(CX, wanted), 0, other);
        }
        // From here on nothing fails, so X0 may change.
        self.a.untag(index, index);
        self.a.lea(A, boxed(tuple, 0));
        let more = self.a.here_label();
        self.a.load(R, indexed(A, B, 8, 0));
        self.a.store(indexed(HP, B, 8, 0), R);
        self.a.dec_if(Cond::Ns, B, more);
        self.a.store(indexed(HP, index, 8, 0), value);
        self.a.lea(index, at(HP, TAG_BOXED as i32));
        self.a.mov(HP, K);
        self.a.dec(REDS);
        self.a.jmp(over);
    }
    pub(super) fn fast_tuple_size(&mut self, FastTupleSize { src, dst }: FastTupleSize) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let r = self.get(src, A);
        self.if_not_tuple(r, next);
        // The arity is above six bits of the header, which are 0.
        self.a.load(R, boxed(r, 0));
        self.a.shift_i(Q, Shr, R, (ARITY_SHIFT - SMALL_SHIFT) as u8);
        self.a.alu_i(Q, Or, R, TAG_SMALL as i32);
        self.put_result(dst, R);
        self.a.jmp(over);
    }
    pub(super) fn fast_compare(&mut self, op: FastCompare) {
        let FastCompare {
            a,
            b,
            dst,
            comparison: n,
        } = op;
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let n = n as usize;
        let exact = matches!(n, SAME | NOT_SAME);
        let equality = exact || matches!(n, EQUAL | NOT_EQUAL);
        let (pa, pb) = (self.get_or_constant(a, A), self.get_or_constant(b, K));
        let (t, f) = (self.env.true_word, self.env.false_word);
        let constants = matches!((a, b), (Src::C(_), Src::C(_)));
        if constants || !equality && Self::is_odd(a, b) {
            return self.step();
        }
        let mut c = match n {
            SAME | EQUAL => Cond::E,
            NOT_SAME | NOT_EQUAL => Cond::Ne,
            LESS => Cond::L,
            NOT_LESS => Cond::Ge,
            GREATER => Cond::G,
            NOT_GREATER => Cond::Le,
            _ => return self.step(),
        };
        let compared = if equality {
            // Different words decide only if one of them, or for `==` both, are immediate. A word
            // that is no pointer.
            let known = self.a.label();
            let compared = self.compared(pa, pb).0;
            self.a.if_operands(Cond::E, compared, known);
            match (a, b) {
                (Src::C(w), _) if is_immediate(w) => {
                    if !exact {
                        self.if_pointer(pb.1, next);
                    }
                }
                (_, Src::C(w)) if is_immediate(w) => {
                    if !exact {
                        self.if_pointer(pa.1, next);
                    }
                }
                (Src::C(_), _) => match exact {
                    true => self.if_pointer(pb.1, next),
                    false => self.a.jmp(next),
                },
                (_, Src::C(_)) => match exact {
                    true => self.if_pointer(pa.1, next),
                    false => self.a.jmp(next),
                },
                _ => {
                    if !exact {
                        self.if_pointer(pa.1, next);
                        self.if_pointer(pb.1, next);
                    } else {
                        self.if_immediate(pa.1, known);
                        self.if_pointer(pb.1, next);
                    }
                }
            }
            self.a.bind(known);
            self.compared(pa, pb).0
        } else {
            self.if_not_smalls(pa, pb, next);
            let (compared, turned) = self.compared(pa, pb);
            if turned {
                c = c.turned();
            }
            compared
        };
        self.a.choose(c, compared, t, f);
        self.put(dst, R);
        self.a.jmp(over);
    }
    /// `map_get(key, map)`.
    pub(super) fn fast_map_get(&mut self, FastMapGet { map, key, dst }: FastMapGet) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let m = self.get(map, K);
        self.a.mov(K, m);
        match key {
            Src::C(w) if is_immediate(w) => self.look_up_all(vec![(w, Some(dst))], next),
            _ => {
                self.look_up(key, next);
                self.put(dst, R);
            }
        }
        self.a.jmp(over);
    }
    pub(super) fn fast_is_map_key(&mut self, FastIsMapKey { map, key, dst }: FastIsMapKey) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let m = self.get(map, K);
        self.a.mov(K, m);
        // A term that is no map has no keys; the native decides whether it is one.
        self.if_not_kind(K, Subtag::Map, next);
        let missing = self.a.label();
        self.look_up(key, missing);
        self.put_word(dst, self.env.true_word);
        self.a.jmp(over);
        self.a.bind(missing);
        self.put_word(dst, self.env.false_word);
        self.a.jmp(over);
    }
    pub(super) fn fast_map_size(&mut self, FastMapSize { src, dst }: FastMapSize) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let r = self.get(src, A);
        self.if_not_kind(r, Subtag::Map, next);
        // The same word for flat maps and tree maps.
        self.a.load(R, boxed(r, MAP_SIZE));
        self.put_small(dst);
        self.a.jmp(over);
    }
    pub(super) fn fast_byte_size(&mut self, FastByteSize { src, dst }: FastByteSize) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let is = self.a.label();
        let r = self.get(src, A);
        self.if_not_boxed(r, next);
        self.if_subtag(Cond::E, r, Subtag::HeapBin, is);
        self.a
            .if_i(Cond::E, D, R, (Subtag::RefcBin as i32) << SUBTAG_SHIFT, is);
        self.a.if_i(
            Cond::Ne,
            D,
            R,
            (Subtag::SubBin as i32) << SUBTAG_SHIFT,
            next,
        );
        // Bits of an incomplete last byte.
        self.a.load8(R, boxed(r, SUB_BIN_BITS));
        self.a.if_zero(Cond::Ne, D, R, next);
        self.a.bind(is);
        self.a.load(R, boxed(r, BIN_SIZE));
        self.put_small(dst);
        self.a.jmp(over);
    }
    pub(super) fn fast_length(&mut self, FastLength { src, dst }: FastLength) {
        const MOST_COUNTED: i32 = 256;
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let r = self.get(src, A);
        self.a.mov(A, r);
        self.a.zero(B);
        let end = self.a.label();
        let more = self.a.here_label();
        self.if_not_cons(A, end);
        self.a.load(A, cons(A, CONS_TAIL));
        self.a.inc(B);
        self.a.if_i(Cond::B, D, B, MOST_COUNTED, more);
        // Long ones are counted by the native, which charges reductions.
        self.a.bind(end);
        self.a.if_word(Cond::Ne, A, NIL_WORD, next);
        self.a.mov(R, B);
        self.put_small(dst);
        self.a.jmp(over);
    }
}
