//! Shortcuts: they precede the call of a native, and skip it if they know the value.

use super::*;
use purlin_isa::ops::comparison::{
    EQUAL, GREATER, LESS, NOT_EQUAL, NOT_GREATER, NOT_LESS, NOT_SAME, SAME,
};
use purlin_term::layout::{BIN_SIZE, MAP_SIZE, SUB_BIN_BITS};

impl<'a, 'e> Gen<'a, 'e> {
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
        let r = self.get(tuple, R10);
        self.if_not_tuple(r, next);
        // The offset of an element in bytes is eight times its number.
        self.cmp_mem_word(boxed(r, 0), offset << (ARITY_SHIFT - 3));
        self.a.jcc(Cond::B, next);
        self.element(tuple, offset, dst);
        self.a.jmp(over);
    }
    pub(super) fn fast_element_of(&mut self, op: FastElementOf) {
        let FastElementOf { tuple, index, dst } = op;
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let t = self.get(tuple, R10);
        self.if_not_tuple(t, next);
        self.element_at(index, t, dst, next);
        self.a.jmp(over);
    }
    pub(super) fn fast_tuple_size(&mut self, FastTupleSize { src, dst }: FastTupleSize) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let r = self.get(src, R10);
        self.if_not_tuple(r, next);
        // The arity is above six bits of the header, which are 0.
        self.a.load(RCX, boxed(r, 0));
        self.a
            .shift_i(Q, Shr, RCX, (ARITY_SHIFT - SMALL_SHIFT) as u8);
        self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        self.put(dst, RCX);
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
        let (pa, pb) = (self.get_or_constant(a, R10), self.get_or_constant(b, R12));
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
        if equality {
            // Different words decide only if one of them, or for `==` both, are immediate. A word
            // that is no pointer.
            let known = self.a.label();
            self.cmp_args(pa, pb);
            self.a.jcc(Cond::E, known);
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
            // Compares again: the tests have used the flags.
            self.cmp_args(pa, pb);
        } else {
            self.if_not_smalls(pa, pb, next);
            if self.cmp_args(pa, pb) {
                c = match c {
                    Cond::L => Cond::G,
                    Cond::Ge => Cond::Le,
                    Cond::G => Cond::L,
                    _ => Cond::Ge,
                };
            }
        }
        self.a.mov_i(RCX, t);
        self.a.mov_i(R11, f);
        self.a.cmov(c.negated(), RCX, R11);
        self.put(dst, RCX);
        self.a.jmp(over);
    }
    /// `map_get(key, map)`.
    pub(super) fn fast_map_get(&mut self, FastMapGet { map, key, dst }: FastMapGet) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let m = self.get(map, R12);
        self.a.mov(R12, m);
        self.look_up(key, next);
        self.put(dst, RCX);
        self.a.jmp(over);
    }
    pub(super) fn fast_is_map_key(&mut self, FastIsMapKey { map, key, dst }: FastIsMapKey) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let m = self.get(map, R12);
        self.a.mov(R12, m);
        // A term that is no map has no keys; the native decides whether it is one.
        self.if_not_kind(R12, Subtag::Map, next);
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
        let r = self.get(src, R10);
        self.if_not_kind(r, Subtag::Map, next);
        // The same word for flat maps and tree maps.
        self.a.load(RCX, boxed(r, MAP_SIZE));
        self.put_small(dst);
        self.a.jmp(over);
    }
    pub(super) fn fast_byte_size(&mut self, FastByteSize { src, dst }: FastByteSize) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let is = self.a.label();
        let r = self.get(src, R10);
        self.if_not_boxed(r, next);
        self.cmp_subtag(r, Subtag::HeapBin);
        self.a.jcc(Cond::E, is);
        self.a
            .alu_i(D, Cmp, RCX, (Subtag::RefcBin as i32) << SUBTAG_SHIFT);
        self.a.jcc(Cond::E, is);
        self.a
            .alu_i(D, Cmp, RCX, (Subtag::SubBin as i32) << SUBTAG_SHIFT);
        self.a.jcc(Cond::Ne, next);
        // Bits of an incomplete last byte.
        self.a.load8(RCX, boxed(r, SUB_BIN_BITS));
        self.a.test(D, RCX, RCX);
        self.a.jcc(Cond::Ne, next);
        self.a.bind(is);
        self.a.load(RCX, boxed(r, BIN_SIZE));
        self.put_small(dst);
        self.a.jmp(over);
    }
    pub(super) fn fast_length(&mut self, FastLength { src, dst }: FastLength) {
        const MOST: i32 = 256;
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let r = self.get(src, R10);
        self.a.mov(R10, r);
        self.a.alu(D, Xor, R11, R11);
        let end = self.a.label();
        let more = self.a.here_label();
        self.if_not_cons(R10, end);
        self.a
            .load(R10, at(R10, CONS_TAIL as i32 * 8 - TAG_LIST as i32));
        self.a.inc(R11);
        self.a.alu_i(D, Cmp, R11, MOST);
        self.a.jcc(Cond::B, more);
        // Long ones are counted by the native, which charges reductions.
        self.a.bind(end);
        self.cmp_word(R10, NIL_WORD);
        self.a.jcc(Cond::Ne, next);
        self.a.mov(RCX, R11);
        self.put_small(dst);
        self.a.jmp(over);
    }
}
