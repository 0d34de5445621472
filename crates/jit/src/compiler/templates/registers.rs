//! Moves between registers, and ops without code.

use super::*;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn move_(&mut self, Move { src, dst }: Move) {
        self.mov(src, dst);
    }
    pub(super) fn swap(&mut self, Swap { a, b }: Swap) {
        let p = self.get(a.src(), A);
        let q = self.get(b.src(), B);
        if p != A && q != B {
            self.a.mov(R, p);
            self.a.mov(p, q);
            self.a.mov(q, R);
        } else {
            // The one in memory is written first.
            self.a.mov(R, p);
            self.put(a, q);
            self.put(b, R);
        }
    }
    pub(super) fn init_y(&mut self, InitY { dst }: InitY) {
        self.put_word(dst, NIL_WORD);
    }
    pub(super) fn init_ys(&mut self, InitYs { ys, .. }: InitYs) {
        for y in ys.all() {
            self.put_word(y, NIL_WORD);
        }
    }
    /// No code: a function with lines for breakpoints has no machine code.
    pub(super) fn debug_line(&mut self, DebugLine { .. }: DebugLine) {}
    /// No code: the tests that it replaces follow.
    pub(super) fn type_switch(&mut self, TypeSwitch { .. }: TypeSwitch) {}
    /// Natives that are called here leave no other trace of their caller.
    pub(super) fn running(&mut self, Running { function }: Running) {
        let running = self.env.fields.running;
        self.a.load(B, at(CX, running));
        self.store_word(at(B, 0), function);
    }
}
