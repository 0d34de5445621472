//! Lists.

use super::*;

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn get_list(&mut self, src: Arg, hd: Arg, tl: Arg) {
        let p = self.get(src, R10);
        let (h, t) = (-(TAG_LIST as i32), CONS_TAIL as i32 * 8 - TAG_LIST as i32);
        let dh = self.dst(hd, R11);
        if dh == p {
            // The head goes where the cell stands: last.
            let dt = self.dst(tl, RCX);
            if dt == p {
                // Both: the tail is written after the head.
                self.a.load(dt, at(p, t));
                return;
            }
            self.a.load(dt, at(p, t));
            self.put(tl, dt);
            self.a.load(dh, at(p, h));
            return;
        }
        self.a.load(dh, at(p, h));
        let dt = self.dst(tl, RCX);
        self.a.load(dt, at(p, t));
        self.put(hd, dh);
        self.put(tl, dt);
    }
}
