//! Lists.

use super::*;

/// Offsets from the term of a list to its head and to its tail, in bytes.
const HEAD: i32 = -(TAG_LIST as i32);
const TAIL: i32 = CONS_TAIL as i32 * 8 - TAG_LIST as i32;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn get_list(&mut self, GetList { src, hd, tl }: GetList) {
        let p = self.get(src, A);
        let dh = self.dst(hd, B);
        if dh == p {
            // The head replaces the pointer to the cons cell, so it is loaded last.
            let dt = self.dst(tl, R);
            if dt == p {
                // Both: the tail is written after the head.
                self.a.load(dt, at(p, TAIL));
                return;
            }
            self.a.load(dt, at(p, TAIL));
            self.put(tl, dt);
            self.a.load(dh, at(p, HEAD));
            return;
        }
        self.a.load(dh, at(p, HEAD));
        let dt = self.dst(tl, R);
        self.a.load(dt, at(p, TAIL));
        self.put(hd, dh);
        self.put(tl, dt);
    }
    pub(super) fn get_hd(&mut self, GetHd { src, dst }: GetHd) {
        let p = self.get(src, A);
        let d = self.dst(dst, R);
        self.a.load(d, at(p, HEAD));
        self.put(dst, d);
    }
    pub(super) fn get_tl(&mut self, GetTl { src, dst }: GetTl) {
        let p = self.get(src, A);
        let d = self.dst(dst, R);
        self.a.load(d, at(p, TAIL));
        self.put(dst, d);
    }
    pub(super) fn put_list(&mut self, PutList { hd, tl, dst }: PutList) {
        self.store_arg(new(0), hd);
        self.store_arg(new(CONS_TAIL), tl);
        self.made(dst, TAG_LIST, 2);
    }
    /// `hd(list)` and `tl(list)`.
    pub(super) fn fast_hd(&mut self, FastHd { src, dst }: FastHd) {
        self.fast_word_of_cell(src, dst, HEAD);
    }
    pub(super) fn fast_tl(&mut self, FastTl { src, dst }: FastTl) {
        self.fast_word_of_cell(src, dst, TAIL);
    }
    fn fast_word_of_cell(&mut self, src: Src, dst: Dst, offset: i32) {
        let Some((over, next)) = self.shortcut() else {
            return self.step();
        };
        let r = self.get(src, A);
        self.if_not_cons(r, next);
        let d = self.dst(dst, R);
        self.a.load(d, at(r, offset));
        self.put(dst, d);
        self.a.jmp(over);
    }
}
