//! Lists.

use super::*;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn get_list(&mut self, GetList { src, hd, tl }: GetList) {
        let p = self.get(src, A);
        let dh = self.dst(hd, B);
        if dh == p {
            // The head replaces the pointer to the cons cell, so it is loaded last.
            let dt = self.dst(tl, R);
            if dt == p {
                // Both: the tail is written after the head.
                self.a.load(dt, cons(p, CONS_TAIL));
                return;
            }
            self.a.load(dt, cons(p, CONS_TAIL));
            self.put(tl, dt);
            self.a.load(dh, cons(p, CONS_HEAD));
            return;
        }
        self.a.load(dh, cons(p, CONS_HEAD));
        let dt = self.dst(tl, R);
        self.a.load(dt, cons(p, CONS_TAIL));
        self.put(hd, dh);
        self.put(tl, dt);
    }
    pub(super) fn get_hd(&mut self, GetHd { src, dst }: GetHd) {
        let p = self.get(src, A);
        let d = self.dst(dst, R);
        self.a.load(d, cons(p, CONS_HEAD));
        self.put(dst, d);
    }
    pub(super) fn get_tl(&mut self, GetTl { src, dst }: GetTl) {
        let p = self.get(src, A);
        let d = self.dst(dst, R);
        self.a.load(d, cons(p, CONS_TAIL));
        self.put(dst, d);
    }
    pub(super) fn put_list(&mut self, PutList { hd, tl, dst }: PutList) {
        self.store_arg(new(CONS_HEAD), hd);
        self.store_arg(new(CONS_TAIL), tl);
        self.made(dst, TAG_LIST, 2);
    }
    /// `hd(list)` and `tl(list)`.
    pub(super) fn fast_hd(&mut self, FastHd { src, dst }: FastHd) {
        self.fast_word_of_cell(src, dst, CONS_HEAD);
    }
    pub(super) fn fast_tl(&mut self, FastTl { src, dst }: FastTl) {
        self.fast_word_of_cell(src, dst, CONS_TAIL);
    }
    fn fast_word_of_cell(&mut self, src: Src, dst: Dst, word: usize) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let r = self.get(src, A);
        self.if_not_cons(r, next);
        let d = self.dst(dst, R);
        self.a.load(d, cons(r, word));
        self.put(dst, d);
        self.a.jmp(over);
    }
}
