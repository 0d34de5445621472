//! Comparisons and type tests.
//!
//! A term is tested by its tag, a boxed one also by the subtag in its header. Immediates are
//! compared as words; whatever has to be compared by contents is left to a helper. Nothing is
//! allocated here, and no test changes an operand.

use super::*;
use purlin_term::word::{TAG_PID, TAG_PORT};

/// The bit of a subtag that differs between positive and negative integers.
const SIGN: i32 = Subtag::PosBig as i32 ^ Subtag::NegBig as i32;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    /// Loads `A` and `R`, the operands of a helper.
    pub(super) fn operands(&mut self, (a, ra): (Src, Reg), (b, rb): (Src, Reg)) {
        match b {
            Src::C(w) => self.a.mov_i(R, w),
            _ => self.a.mov(R, rb),
        }
        match a {
            Src::C(w) => self.a.mov_i(A, w),
            _ => self.a.mov(A, ra),
        }
    }
    /// Returns the machine register of an operand; a constant stays one.
    pub(super) fn get_or_constant(&mut self, a: Src, scratch: Reg) -> (Src, Reg) {
        match a {
            Src::C(_) => (a, scratch),
            _ => (a, self.get(a, scratch)),
        }
    }
    /// Returns two small integers, or any words, as the operands of a comparison, and whether they
    /// are exchanged. A constant may be loaded into its register.
    pub(super) fn compared(
        &mut self,
        (a, ra): (Src, Reg),
        (b, rb): (Src, Reg),
    ) -> (Operands, bool) {
        match (a, b) {
            (Src::C(v), Src::C(w)) => {
                self.a.mov_i(ra, v);
                (Operands::Word(ra, w), false)
            }
            (_, Src::C(w)) => (Operands::Word(ra, w), false),
            (Src::C(w), _) if i32::try_from(w as i64).is_ok() => (Operands::Word(rb, w), true),
            (Src::C(w), _) => {
                self.a.mov_i(ra, w);
                (Operands::Regs(ra, rb), false)
            }
            _ => (Operands::Regs(ra, rb), false),
        }
    }
    pub(super) fn is_lt(&mut self, IsLt { fail, a, b }: IsLt) {
        self.less(fail, a, b, true);
    }
    pub(super) fn is_ge(&mut self, IsGe { fail, a, b }: IsGe) {
        self.less(fail, a, b, false);
    }
    /// `<`, or `>=` if not `less`.
    fn less(&mut self, fail: Target, a: Src, b: Src, less: bool) {
        let to = self.to(fail);
        let (pa, pb) = (self.get_or_constant(a, A), self.get_or_constant(b, K));
        let constant = |x: Src| matches!(x, Src::C(w) if !is_small_word(w));
        let helper = self.env.helpers.less;
        let general = move |g: &mut Self, next: Option<Label>| {
            g.operands(pa, pb);
            g.a.mov_i(B, helper.0);
            let to_floats = g.env.stubs.less;
            g.a.call_stub(to_floats);
            g.a.if_bits(if less { Cond::E } else { Cond::Ne }, R, 1, to);
            if let Some(n) = next {
                g.a.jmp(n);
            }
        };
        if constant(a) || constant(b) {
            return general(self, None);
        }
        let (cold, next) = (self.a.label(), self.a.label());
        let both = self.range(a).is_some() && self.range(b).is_some();
        self.if_not_smalls(pa, pb, cold);
        let (compared, turned) = self.compared(pa, pb);
        // The condition under which it does not hold.
        let c = match (less, turned) {
            (true, false) => Cond::Ge,
            (false, false) => Cond::L,
            (true, true) => Cond::Le,
            (false, true) => Cond::G,
        };
        self.a.if_operands(c, compared, to);
        self.a.bind(next);
        if both {
            return;
        }
        self.later("no two small integers", move |g| {
            g.a.bind(cold);
            general(g, Some(next));
        });
    }
    pub(super) fn is_eq(&mut self, IsEq { fail, a, b }: IsEq) {
        self.equal(fail, a, b, false, true);
    }
    pub(super) fn is_ne(&mut self, IsNe { fail, a, b }: IsNe) {
        self.equal(fail, a, b, false, false);
    }
    pub(super) fn is_eq_exact(&mut self, IsEqExact { fail, a, b }: IsEqExact) {
        self.equal(fail, a, b, true, true);
    }
    pub(super) fn is_ne_exact(&mut self, IsNeExact { fail, a, b }: IsNeExact) {
        self.equal(fail, a, b, true, false);
    }
    pub(super) fn is_eq_immed(&mut self, IsEqImmed { fail, src, immed }: IsEqImmed) {
        self.is_word(fail, src, immed, Cond::Ne);
    }
    pub(super) fn is_ne_immed(&mut self, IsNeImmed { fail, src, immed }: IsNeImmed) {
        self.is_word(fail, src, immed, Cond::E);
    }
    pub(super) fn is_nil(&mut self, IsNil { fail, src }: IsNil) {
        self.is_word(fail, src, NIL_WORD, Cond::Ne);
    }
    /// Jumps if the comparison of a term with a word has that result.
    fn is_word(&mut self, fail: Target, src: Src, w: u64, unless: Cond) {
        let r = self.get(src, A);
        let to = self.to(fail);
        self.a.if_word(unless, r, w, to);
    }
    pub(super) fn is_in_range(&mut self, op: IsInRange) {
        let IsInRange {
            fail,
            src,
            least,
            most,
        } = op;
        let r = self.get(src, A);
        let to = self.to(fail);
        if self.range(src).is_none() {
            let other = self.step_aside();
            self.if_not_small(r, other);
        }
        self.a.if_word(Cond::L, r, least, to);
        self.a.if_word(Cond::G, r, most, to);
    }
    /// `==` and `/=`, or if `exact` `=:=` and `=/=`.
    fn equal(&mut self, fail: Target, a: Src, b: Src, exact: bool, wanted: bool) {
        let to = self.to(fail);
        let (pa, pb) = (self.get_or_constant(a, A), self.get_or_constant(b, K));
        let (cold, next) = (self.a.label(), self.a.label());
        let (is, is_not) = if wanted { (next, to) } else { (to, next) };
        let compared = self.compared(pa, pb).0;
        // A small integer is only exactly equal to itself, and equal to no other small integer.
        let (ka, kb) = (self.range(a).is_some(), self.range(b).is_some());
        if ka && kb || exact && (ka || kb) {
            let c = if wanted { Cond::Ne } else { Cond::E };
            self.a.if_operands(c, compared, to);
            return self.a.bind(next);
        }
        self.a.if_operands(Cond::E, compared, is);
        match exact {
            // An immediate only equals itself.
            true => {
                for (arg, r) in [pa, pb] {
                    match arg {
                        Src::C(w) if is_immediate(w) => self.a.jmp(is_not),
                        Src::C(_) => {}
                        _ => self.if_immediate(r, is_not),
                    }
                }
            }
            // Two immediates.
            false => match (a, b) {
                (Src::C(v), Src::C(w)) if is_immediate(v) && is_immediate(w) => self.a.jmp(is_not),
                (Src::C(_), Src::C(_)) => {}
                (Src::C(w), _) if is_immediate(w) => self.if_immediate(pb.1, is_not),
                (_, Src::C(w)) if is_immediate(w) => self.if_immediate(pa.1, is_not),
                (Src::C(_), _) | (_, Src::C(_)) => {}
                _ => {
                    self.a.if_both_immediate(pa.1, pb.1, is_not);
                }
            },
        }
        self.a.jmp(cold);
        self.a.bind(next);
        let helper = match exact {
            true => self.env.helpers.same,
            false => self.env.helpers.equal,
        };
        self.later("words that differ", move |g| {
            g.a.bind(cold);
            g.operands(pa, pb);
            g.leaf_helper(helper);
            g.a.if_bits(if wanted { Cond::E } else { Cond::Ne }, R, 1, to);
            g.a.jmp(next);
        });
    }
    /// Returns the register of the tested term, the label for a term of another type, and the label
    /// for one of the type, where the test ends.
    fn type_test(&mut self, fail: Target, src: Src) -> (Reg, Label, Label) {
        let r = self.get(src, A);
        let to = self.to(fail);
        (r, to, self.a.label())
    }
    /// Compares the subtag that [`Gen::if_subtag`] has loaded with one more.
    fn or_subtag(&mut self, c: Cond, s: Subtag, to: Label) {
        self.a.if_i(c, D, R, (s as i32) << SUBTAG_SHIFT, to);
    }
    pub(super) fn is_list(&mut self, IsList { fail, src }: IsList) {
        let (r, to, is) = self.type_test(fail, src);
        self.a.if_word(Cond::E, r, NIL_WORD, is);
        self.if_not_cons(r, to);
        self.a.bind(is);
    }
    pub(super) fn is_nonempty_list(&mut self, IsNonemptyList { fail, src }: IsNonemptyList) {
        let (r, to, _) = self.type_test(fail, src);
        self.if_not_cons(r, to);
    }
    pub(super) fn is_tuple(&mut self, IsTuple { fail, src }: IsTuple) {
        let (r, to, _) = self.type_test(fail, src);
        self.if_not_tuple(r, to);
    }
    pub(super) fn is_map(&mut self, IsMap { fail, src }: IsMap) {
        let (r, to, _) = self.type_test(fail, src);
        self.if_not_kind(r, Subtag::Map, to);
    }
    pub(super) fn is_float(&mut self, IsFloat { fail, src }: IsFloat) {
        let (r, to, _) = self.type_test(fail, src);
        self.if_not_kind(r, Subtag::Float, to);
    }
    pub(super) fn is_function(&mut self, IsFunction { fail, src }: IsFunction) {
        let (r, to, _) = self.type_test(fail, src);
        self.if_not_kind(r, Subtag::Fun, to);
    }
    pub(super) fn is_atom(&mut self, IsAtom { fail, src }: IsAtom) {
        let (r, to, _) = self.type_test(fail, src);
        self.a
            .if_masked(Cond::Ne, r, TAG6_MASK as u32, TAG_ATOM as u32, R, to);
    }
    pub(super) fn is_boolean(&mut self, IsBoolean { fail, src }: IsBoolean) {
        let (r, to, is) = self.type_test(fail, src);
        let (t, f) = (self.env.true_word, self.env.false_word);
        self.a.if_word(Cond::E, r, t, is);
        self.a.if_word(Cond::Ne, r, f, to);
        self.a.bind(is);
    }
    pub(super) fn is_integer(&mut self, IsInteger { fail, src }: IsInteger) {
        self.number(fail, src, false);
    }
    pub(super) fn is_number(&mut self, IsNumber { fail, src }: IsNumber) {
        self.number(fail, src, true);
    }
    /// Tests for an integer, or if `any` also for a float.
    fn number(&mut self, fail: Target, src: Src, any: bool) {
        if self.range(src).is_some() {
            return;
        }
        let (r, to, is) = self.type_test(fail, src);
        self.a.if_small(r, R, is);
        self.if_not_boxed(r, to);
        self.a.load32(R, boxed(r, 0));
        // The headers of positive and negative bignums differ in one bit.
        self.a.alu_i(D, And, R, i32::from(HEADER_MASK));
        if any {
            self.or_subtag(Cond::E, Subtag::Float, is);
        }
        self.a
            .alu_i(D, And, R, !(SIGN << SUBTAG_SHIFT) & KIND_MASK as i32);
        self.or_subtag(Cond::Ne, Subtag::PosBig, to);
        self.a.bind(is);
    }
    pub(super) fn is_pid(&mut self, IsPid { fail, src }: IsPid) {
        self.identifier(fail, src, TAG_PID, Subtag::ExtPid);
    }
    pub(super) fn is_port(&mut self, IsPort { fail, src }: IsPort) {
        self.identifier(fail, src, TAG_PORT, Subtag::ExtPort);
    }
    /// Tests for a pid or a port of this node, or of another one.
    fn identifier(&mut self, fail: Target, src: Src, here: u64, elsewhere: Subtag) {
        let (r, to, is) = self.type_test(fail, src);
        self.a
            .if_masked(Cond::E, r, TAG4_MASK as u32, here as u32, R, is);
        self.if_not_kind(r, elsewhere, to);
        self.a.bind(is);
    }
    pub(super) fn is_reference(&mut self, IsReference { fail, src }: IsReference) {
        let (r, to, is) = self.type_test(fail, src);
        self.if_not_boxed(r, to);
        self.if_subtag(Cond::E, r, Subtag::Ref, is);
        self.or_subtag(Cond::Ne, Subtag::ExtRef, to);
        self.a.bind(is);
    }
    pub(super) fn is_bitstr(&mut self, IsBitstr { fail, src }: IsBitstr) {
        let (r, to, is) = self.type_test(fail, src);
        self.if_not_boxed(r, to);
        self.if_subtag(Cond::E, r, Subtag::MatchContext, is);
        self.or_subtag(Cond::E, Subtag::HeapBin, is);
        self.or_subtag(Cond::E, Subtag::RefcBin, is);
        self.or_subtag(Cond::Ne, Subtag::SubBin, to);
        self.a.bind(is);
    }
    pub(super) fn is_binary(&mut self, IsBinary { fail, src }: IsBinary) {
        let (r, to, is) = self.type_test(fail, src);
        // A sub-binary may end within a byte: the handler decides.
        let part = self.step_aside();
        self.if_not_boxed(r, to);
        self.if_subtag(Cond::E, r, Subtag::HeapBin, is);
        self.or_subtag(Cond::E, Subtag::RefcBin, is);
        self.or_subtag(Cond::E, Subtag::SubBin, part);
        self.a.jmp(to);
        self.a.bind(is);
    }
}
