//! Maps.

use super::*;

impl<'a, 'e> Gen<'a, 'e> {
    /// Jumps where a term is no small map. RCX: how many keys it has, R11 the tuple of them.
    pub(super) fn flat_map(&mut self, m: Reg, to: Label) {
        self.if_not_boxed(m, to);
        self.a.load32(RCX, boxed(m, 0));
        // The kind stands above the mark: 0 for a flat one.
        self.a.alu_i(D, And, RCX, 0xFF);
        self.a.alu_i(D, Cmp, RCX, (Subtag::Map as i32) << 2);
        self.a.jcc(Cond::Ne, to);
        self.a.load(RCX, boxed(m, 1));
        self.a.load(R11, boxed(m, 2));
    }
    /// RCX: the place of the key among the keys in R11, from 1 on; R10 is used. Jumps where it isn't among them.
    pub(super) fn find_key(&mut self, key: u64, to: Label) {
        let found = self.a.label();
        let wide = i32::try_from(key as i64).is_err();
        if wide {
            self.a.mov_i(R10, key);
        }
        self.a.test(D, RCX, RCX);
        self.a.jcc(Cond::E, to);
        let again = self.a.here_label();
        let m = indexed(R11, RCX, 8, -(TAG_BOXED as i32));
        match wide {
            true => self.a.alu_m(Q, Cmp, R10, m),
            false => self.a.alu_mi(Q, Cmp, m, key as i32),
        }
        self.a.jcc(Cond::E, found);
        self.a.dec(RCX);
        self.a.jcc(Cond::Ne, again);
        self.a.jmp(to);
        self.a.bind(found);
    }
    pub(super) fn get_map_elements(&mut self, i: &Instruction) {
        let a = i.args();
        let list = self.list(i);
        let plain = list.chunks(2).all(|p| is_immediate(p[0]));
        if !plain || list.len() > 2 * MAP_KEYS_MOST || matches!(a[1], Arg::C(_)) {
            return self.step(i);
        }
        let to = self.to(a[0]);
        let other = self.step_aside();
        let m = self.get(a[1], R12);
        self.a.mov(R12, m);
        for (k, pair) in list.chunks(2).enumerate() {
            if k == 0 {
                self.flat_map(R12, other);
            } else {
                self.a.load(RCX, boxed(R12, 1));
                self.a.load(R11, boxed(R12, 2));
            }
            self.find_key(pair[0], to);
            let dst = source(pair[1]);
            let d = self.dst(dst, RCX);
            self.a.load(d, indexed(R12, RCX, 8, VALUES_BEFORE));
            self.put(dst, d);
        }
    }
}
