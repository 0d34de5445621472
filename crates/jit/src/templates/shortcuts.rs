//! Shortcuts: what stands before the call of a native and steps over it where it knows the value.

use super::*;
use purlin_term::layout::{BIN_SIZE, MAP_SIZE, SUB_BIN_BITS};

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn fast_element(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let r = self.get(a[0], R10);
        self.if_not_tuple(r, next);
        // The arity stands above six bits of the header; an element's offset in bytes is eight times its number.
        self.cmp_mem_word(boxed(r, 0), a[1].n() << 3);
        self.a.jcc(Cond::B, next);
        self.element(a[0], a[1].n(), a[2]);
        self.a.jmp(over);
    }
    pub(super) fn fast_element_of(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let t = self.get(a[0], R10);
        self.if_not_tuple(t, next);
        self.element_at(a[1], t, a[2], next);
        self.a.jmp(over);
    }
    pub(super) fn fast_compare(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        // "=:=", "=/=", "==", "/=", "<", ">=", ">", "=<"
        let n = a[3].n() & 7;
        let (pa, pb) = (
            self.get_or_constant(a[0], R10),
            self.get_or_constant(a[1], R12),
        );
        let (t, f) = (self.env.true_word, self.env.false_word);
        let odd = |x: Arg| matches!(x, Arg::C(w) if !is_small_word(w));
        if matches!((a[0], a[1]), (Arg::C(_), Arg::C(_))) || n >= 4 && (odd(a[0]) || odd(a[1])) {
            return self.step(i);
        }
        let mut c = match n {
            0 | 2 => Cond::E,
            1 | 3 => Cond::Ne,
            4 => Cond::L,
            5 => Cond::Ge,
            6 => Cond::G,
            _ => Cond::Le,
        };
        if n < 4 {
            // Different words tell only if one of them, or for `==` both, are immediate. A word that is no pointer.
            let known = self.a.label();
            self.cmp_args(pa, pb);
            self.a.jcc(Cond::E, known);
            match (a[0], a[1]) {
                (Arg::C(w), _) if is_immediate(w) => {
                    if n >= 2 {
                        self.if_pointer(pb.1, next);
                    }
                }
                (_, Arg::C(w)) if is_immediate(w) => {
                    if n >= 2 {
                        self.if_pointer(pa.1, next);
                    }
                }
                (Arg::C(_), _) => match n {
                    0 | 1 => self.if_pointer(pb.1, next),
                    _ => self.a.jmp(next),
                },
                (_, Arg::C(_)) => match n {
                    0 | 1 => self.if_pointer(pa.1, next),
                    _ => self.a.jmp(next),
                },
                _ => {
                    if n >= 2 {
                        self.if_pointer(pa.1, next);
                        self.if_pointer(pb.1, next);
                    } else {
                        self.if_immediate(pa.1, known);
                        self.if_pointer(pb.1, next);
                    }
                }
            }
            self.a.bind(known);
            // The flags anew: the tests have used them.
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
        self.put(a[2], RCX);
        self.a.jmp(over);
    }
    /// `map_get` and `is_map_key`.
    pub(super) fn fast_map_get(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let is = i.op == Op::FastIsMapKey;
        let m = self.get(a[0], R12);
        self.a.mov(R12, m);
        // What is no map has no keys; whether it is one the native says.
        if is {
            self.if_not_kind(R12, Subtag::Map, next);
        }
        let missing = self.a.label();
        self.look_up(a[1], if is { missing } else { next });
        if is {
            self.put_word(a[2], self.env.true_word);
            self.a.jmp(over);
            self.a.bind(missing);
            self.put_word(a[2], self.env.false_word);
        } else {
            self.put(a[2], RCX);
        }
        self.a.jmp(over);
    }
    pub(super) fn fast_map_size(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let r = self.get(a[0], R10);
        self.if_not_kind(r, Subtag::Map, next);
        // The same word of small and of large maps.
        self.a.load(RCX, boxed(r, MAP_SIZE));
        self.put_small(a[1]);
        self.a.jmp(over);
    }
    /// The number in RCX, as a term.
    fn put_small(&mut self, dst: Arg) {
        self.a.shift_i(Q, Shl, RCX, SMALL_SHIFT as u8);
        self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        self.put(dst, RCX);
    }
    pub(super) fn fast_byte_size(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let is = self.a.label();
        let r = self.get(a[0], R10);
        self.if_not_boxed(r, next);
        self.cmp_subtag(r, Subtag::HeapBin);
        self.a.jcc(Cond::E, is);
        self.a
            .alu_i(D, Cmp, RCX, (Subtag::RefcBin as i32) << SUBTAG_SHIFT);
        self.a.jcc(Cond::E, is);
        self.a
            .alu_i(D, Cmp, RCX, (Subtag::SubBin as i32) << SUBTAG_SHIFT);
        self.a.jcc(Cond::Ne, next);
        // Bits of a byte that is not whole.
        self.a.load8(RCX, boxed(r, SUB_BIN_BITS));
        self.a.test(D, RCX, RCX);
        self.a.jcc(Cond::Ne, next);
        self.a.bind(is);
        self.a.load(RCX, boxed(r, BIN_SIZE));
        self.put_small(a[1]);
        self.a.jmp(over);
    }
    pub(super) fn fast_length(&mut self, i: &Instruction) {
        const MOST: i32 = 256;
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let r = self.get(a[0], R10);
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
        // Long ones are counted by the native, which counts reductions.
        self.a.bind(end);
        self.cmp_word(R10, NIL_WORD);
        self.a.jcc(Cond::Ne, next);
        self.a.mov(RCX, R11);
        self.put_small(a[1]);
        self.a.jmp(over);
    }
}
