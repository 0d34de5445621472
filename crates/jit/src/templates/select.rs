//! Selections of one of several places.

use super::*;

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn select_val(&mut self, i: &Instruction) {
        let a = i.args();
        let r = self.get(a[0], R10);
        let to = self.to(a[1]);
        let list = self.list(i);
        let n = list.len() / 2;
        let mut arms = Vec::with_capacity(n);
        for k in 0..n {
            let label = (list[n + k] as i64 as i32).checked_add_unsigned(i.at);
            arms.push((list[k], self.place(label.unwrap_or(0) as u32)));
        }
        self.search(r, &arms, to);
    }
    /// Compares with sorted words, in halves where there are many.
    pub(super) fn search(&mut self, r: Reg, arms: &[(u64, Label)], other: Label) {
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
    pub(super) fn select_arity(&mut self, i: &Instruction) {
        let a = i.args();
        let r = self.get(a[0], R10);
        let to = self.to(a[1]);
        self.if_not_boxed(r, to);
        self.a.load(RCX, boxed(r, 0));
        for arm in self.list(i).chunks(2) {
            let label = (arm[1] as i64 as i32).checked_add_unsigned(i.at);
            let l = self.place(label.unwrap_or(0) as u32);
            self.cmp_word(RCX, arm[0]);
            self.a.jcc(Cond::E, l);
        }
        self.a.jmp(to);
    }
    pub(super) fn jump_table(&mut self, i: &Instruction) {
        let a = i.args();
        let r = self.get(a[0], R10);
        let to = self.to(a[1]);
        let list = self.list(i);
        self.if_no_small(a[0], r, to);
        self.a.mov(RCX, r);
        self.a.shift_i(Q, Sar, RCX, SMALL_SHIFT as u8);
        let first = a[2].n();
        match i32::try_from(first as i64) {
            Ok(0) => {}
            Ok(v) => self.a.alu_i(Q, Sub, RCX, v),
            Err(_) => {
                self.a.mov_i(R11, first);
                self.a.alu(Q, Sub, RCX, R11);
            }
        }
        self.a.alu_i(Q, Cmp, RCX, list.len() as i32);
        self.a.jcc(Cond::Ae, to);
        let table = self.a.label();
        self.a.lea_label(R11, table);
        self.a.jmp_m(indexed(R11, RCX, 8, 0));
        let labels: Vec<Label> = list
            .iter()
            .map(|&w| match w as i64 as i32 {
                0 => to,
                n => self.place(i.at.wrapping_add_signed(n)),
            })
            .collect();
        self.later(move |g| {
            g.a.align(8);
            g.a.bind(table);
            for l in labels {
                g.a.address_of(l);
            }
        });
    }
}
