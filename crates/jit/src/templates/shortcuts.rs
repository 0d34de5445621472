//! Shortcuts: what stands before the call of a native and steps over it where it knows the value.

use super::*;

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
        let k = self.get(a[1], R12);
        self.if_not_small(k, next);
        self.if_not_tuple(t, next);
        self.a.load(R11, boxed(t, 0));
        self.a.shift_i(Q, Shr, R11, 6);
        self.a.mov(RCX, k);
        self.a.shift_i(Q, Sar, RCX, 4);
        self.a.dec(RCX);
        // Numbers below 1 are large ones without a sign.
        self.a.alu(Q, Cmp, RCX, R11);
        self.a.jcc(Cond::Ae, next);
        self.a.load(RCX, indexed(t, RCX, 8, 8 - TAG_BOXED as i32));
        self.put(a[2], RCX);
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
    pub(super) fn fast_map_get(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let (pm, pk) = (
            self.get_or_constant(a[0], R10),
            self.get_or_constant(a[1], R12),
        );
        if let Arg::C(w) = a[1]
            && is_immediate(w)
        {
            let general = self.a.label();
            let m = self.get(a[0], R10);
            self.a.mov(R12, m);
            self.flat_map(R12, general);
            self.find_key(w, general);
            self.a.load(RCX, indexed(R12, RCX, 8, VALUES_BEFORE));
            self.put(a[2], RCX);
            self.a.jmp(over);
            self.a.bind(general);
        }
        let pm = match a[0] {
            Arg::C(_) => pm,
            _ => (a[0], self.get(a[0], R10)),
        };
        let pk = match a[1] {
            Arg::C(_) => pk,
            _ => (a[1], self.get(a[1], R12)),
        };
        self.operands(pm, pk);
        let (f, none) = (self.env.helpers.map_get, self.env.no_value);
        self.pure_helper(f);
        self.cmp_word(RCX, none);
        self.a.jcc(Cond::E, next);
        self.put(a[2], RCX);
        self.a.jmp(over);
    }
}
