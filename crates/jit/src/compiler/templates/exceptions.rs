//! Exception handlers.

use super::*;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn catch(&mut self, Catch { dst, to }: Catch) {
        let to = to.0.unwrap_or(self.part.at);
        // After an exception, machine code continues there.
        if let Some(l) = self.label_at(to) {
            self.returns.push((self.pc(to), l));
        }
        let w = purlin_term::Term::catch(self.pc(to)).raw();
        self.put_word(dst, w);
    }
    pub(super) fn try_end(&mut self, TryEnd { dst }: TryEnd) {
        self.put_word(dst, NIL_WORD);
    }
    pub(super) fn try_case(&mut self, TryCase { dst }: TryCase) {
        self.put_word(dst, NIL_WORD);
        for n in 0..3 {
            self.a.mov(X_REGS[n], X_REGS[n + 1]);
        }
    }
    pub(super) fn catch_end(&mut self, CatchEnd { dst }: CatchEnd) {
        self.put_word(dst, NIL_WORD);
        let caught = self.step_aside();
        let none = self.env.no_value;
        self.a.if_word(Cond::E, X_REGS[0], none, caught);
    }
}
