//! Selections among several labels.

use super::*;

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn select_val(&mut self, op: SelectVal) {
        let SelectVal {
            src, fail, arms, ..
        } = op;
        let r = self.get(src, R10);
        let to = self.to(fail);
        let arms: Vec<(u64, Label)> = arms.all().map(|(w, l)| (w, self.place(l))).collect();
        self.search(r, &arms, to);
    }
    /// Compares with sorted words, by binary search if there are many.
    fn search(&mut self, r: Reg, arms: &[(u64, Label)], other: Label) {
        if arms.len() <= IN_A_ROW {
            for &(w, l) in arms {
                self.cmp_word(r, w);
                self.a.jcc(Cond::E, l);
            }
            return self.a.jmp(other);
        }
        let mid = arms.len() / 2;
        let upper = self.a.label();
        self.cmp_word(r, arms[mid].0);
        self.a.jcc(Cond::Ae, upper);
        self.search(r, &arms[..mid], other);
        self.a.bind(upper);
        self.search(r, &arms[mid..], other);
    }
    pub(super) fn select_arity(&mut self, op: SelectArity) {
        let SelectArity {
            src, fail, arms, ..
        } = op;
        let r = self.get(src, R10);
        let to = self.to(fail);
        self.if_not_boxed(r, to);
        self.a.load(RCX, boxed(r, 0));
        for (header, place) in arms.all() {
            let l = self.place(place);
            self.cmp_word(RCX, header);
            self.a.jcc(Cond::E, l);
        }
        self.a.jmp(to);
    }
    pub(super) fn jump_table(&mut self, op: JumpTable) {
        let JumpTable {
            src,
            fail,
            first,
            table: places,
            ..
        } = op;
        let r = self.get(src, R10);
        let to = self.to(fail);
        self.if_no_small(src, r, to);
        self.a.mov(RCX, r);
        self.a.shift_i(Q, Sar, RCX, SMALL_SHIFT as u8);
        match i32::try_from(first as i64) {
            Ok(0) => {}
            Ok(v) => self.a.alu_i(Q, Sub, RCX, v),
            Err(_) => {
                self.a.mov_i(R11, first);
                self.a.alu(Q, Sub, RCX, R11);
            }
        }
        self.a.alu_i(Q, Cmp, RCX, places.all().len() as i32);
        self.a.jcc(Cond::Ae, to);
        let table = self.a.label();
        self.a.lea_label(R11, table);
        self.a.jmp_m(indexed(R11, RCX, 8, 0));
        let labels: Vec<Label> = places
            .all()
            .map(|place| match place {
                None => to,
                Some(place) => self.place(place),
            })
            .collect();
        self.later("the table", move |g| {
            g.a.align(8);
            g.a.bind(table);
            for l in labels {
                g.a.address_of(l);
            }
        });
    }
}
