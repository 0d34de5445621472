//! Tuples and records.

use super::*;

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn element(&mut self, src: Arg, offset: u64, dst: Arg) {
        let p = self.get(src, R10);
        let d = self.dst(dst, RCX);
        self.a.load(d, at(p, offset as i32 - TAG_BOXED as i32));
        self.put(dst, d);
    }
    pub(super) fn put_tuple(&mut self, elements: &[Arg], dst: Arg) {
        let n = elements.len();
        self.store_word_by(at(HP, 0), header(Subtag::Tuple, n), R10);
        for (k, &e) in elements.iter().enumerate() {
            self.store_arg(at(HP, (k as i32 + 1) * 8), e);
        }
        self.made(dst, TAG_BOXED, n as i32 + 1);
    }
    pub(super) fn update_record(&mut self, i: &Instruction) {
        let a = i.args();
        let size = a[2].n() as usize;
        if size > 32 {
            return self.step(i);
        }
        let list = self.list(i);
        let r = self.get(a[0], R10);
        // Only RCX is used for the words, and R11 for large ones.
        for k in 0..=size {
            let m = at(HP, k as i32 * 8);
            // The last of several values of an element counts.
            match list.chunks(2).rev().find(|u| u[0] as usize == k) {
                Some(u) => self.store_arg(m, source(u[1])),
                None => {
                    self.a.load(RCX, boxed(r, k as usize));
                    self.a.store(m, RCX);
                }
            }
        }
        self.made(a[1], TAG_BOXED, size as i32 + 1);
    }
}
