//! Selections among several labels.

use super::*;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn select_val(&mut self, op: SelectVal) {
        let SelectVal {
            src, fail, arms, ..
        } = op;
        let r = self.get(src, A);
        let to = self.to(fail);
        let arms: Vec<(u64, Label)> = arms.all().map(|(w, l)| (w, self.place(l))).collect();
        self.search(r, &arms, to);
    }
    /// Compares with sorted words, by binary search if there are many.
    fn search(&mut self, r: Reg, arms: &[(u64, Label)], other: Label) {
        if arms.len() <= IN_A_ROW {
            for &(w, l) in arms {
                self.a.if_word(Cond::E, r, w, l);
            }
            return self.a.jmp(other);
        }
        let mid = arms.len() / 2;
        let upper = self.a.label();
        self.a.if_word(Cond::Ae, r, arms[mid].0, upper);
        self.search(r, &arms[..mid], other);
        self.a.bind(upper);
        self.search(r, &arms[mid..], other);
    }
    pub(super) fn select_arity(&mut self, op: SelectArity) {
        let SelectArity {
            src, fail, arms, ..
        } = op;
        let r = self.get(src, A);
        let to = self.to(fail);
        self.if_not_boxed(r, to);
        self.a.load(R, boxed(r, 0));
        for (header, place) in arms.all() {
            let l = self.place(place);
            self.a.if_word(Cond::E, R, header, l);
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
        let r = self.get(src, A);
        let to = self.to(fail);
        self.if_no_small(src, r, to);
        self.a.untag(R, r);
        match i32::try_from(first as i64) {
            Ok(0) => {}
            Ok(v) => self.a.alu_i(Q, Sub, R, v),
            Err(_) => {
                self.a.mov_i(B, first);
                self.a.alu(Q, Sub, R, B);
            }
        }
        self.a.if_i(Cond::Ae, Q, R, places.all().len() as i32, to);
        let table = self.a.label();
        self.a.jump_by_table(table);
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
                g.a.table_entry(l);
            }
        });
    }
}
