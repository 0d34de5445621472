//! Tuples and records.

use super::*;

/// Maximum size of a record that is copied word by word.
const WORDS_MOST: u64 = 32;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn get_tuple_element(&mut self, op: GetTupleElement) {
        let GetTupleElement { src, offset, dst } = op;
        self.element(src, offset, dst);
    }
    pub(super) fn get_tuple_element_far(&mut self, op: GetTupleElementFar) {
        let GetTupleElementFar { src, dst, offset } = op;
        self.element(src, offset, dst);
    }
    pub(super) fn element(&mut self, src: Src, offset: u64, dst: Dst) {
        let p = self.get(src, A);
        let d = self.dst(dst, R);
        self.a.load(d, at(p, offset as i32 - TAG_BOXED as i32));
        self.put(dst, d);
    }
    pub(super) fn get_tuple_elements_2(&mut self, op: GetTupleElements2) {
        let GetTupleElements2 {
            src,
            offset,
            dst,
            dst2,
        } = op;
        let p = self.get(src, A);
        let offset = offset as i32 - TAG_BOXED as i32;
        // Both are read before the first is written, if that is the tuple's own register.
        let first = match self.dst(dst, B) {
            d if d == p => B,
            d => d,
        };
        self.a.load(first, at(p, offset));
        let d = self.dst(dst2, R);
        self.a.load(d, at(p, offset + 8));
        if d != R && self.dst(dst, B) == d {
            self.put(dst2, d);
        } else {
            self.put(dst, first);
            self.put(dst2, d);
        }
    }
    /// Stores a word in a tuple that nothing else refers to. An old tuple would have to hold the
    /// region of a literal: a pointer into a counted one is left to the step.
    pub(super) fn set_tuple_element(&mut self, op: SetTupleElement) {
        let SetTupleElement { src, tuple, offset } = op;
        let to = |t: Reg| at(t, offset as i32 - TAG_BOXED as i32);
        match (src, tuple) {
            (_, Src::C(_)) => self.step(),
            (Src::C(w), _) if is_immediate(w) => {
                let t = self.get(tuple, A);
                self.store_word(to(t), w);
            }
            (Src::C(_), _) => self.step(),
            _ => {
                let other = self.step_aside();
                let put = self.a.label();
                let t = self.get(tuple, A);
                let v = self.get(src, K);
                let (start, bytes) = self.env.counted;
                self.if_immediate(v, put);
                self.a.mov_i(B, start);
                self.a.mov(R, v);
                self.a.alu(Q, Sub, R, B);
                self.a.if_word(Cond::B, R, bytes, other);
                self.a.bind(put);
                self.a.store(to(t), v);
            }
        }
    }
    pub(super) fn put_tuple(&mut self, PutTuple { dst, elements, .. }: PutTuple) {
        self.new_tuple(elements.all(), dst);
    }
    pub(super) fn put_tuple_2(&mut self, PutTuple2 { a, b, dst }: PutTuple2) {
        self.new_tuple([a, b].into_iter(), dst);
    }
    pub(super) fn put_tuple_3(&mut self, PutTuple3 { a, b, c, dst }: PutTuple3) {
        self.new_tuple([a, b, c].into_iter(), dst);
    }
    fn new_tuple(&mut self, elements: impl ExactSizeIterator<Item = Src>, dst: Dst) {
        let n = elements.len();
        self.a.store_word(new(0), header(Subtag::Tuple, n), A);
        for (k, e) in elements.enumerate() {
            self.store_arg(new(k + TUPLE_FIRST), e);
        }
        self.made(dst, TAG_BOXED, n as i32 + 1);
    }
    pub(super) fn update_record(&mut self, op: UpdateRecord) {
        let UpdateRecord {
            src,
            dst,
            size,
            updates,
            ..
        } = op;
        if size > WORDS_MOST {
            return self.step();
        }
        let size = size as usize;
        let r = self.get(src, A);
        // Only `R` is used for the words, and `B` for large ones.
        for k in 0..=size {
            let m = new(k);
            // If there are several values for an element, the last one counts.
            match updates.all().rev().find(|u| u.0 == k) {
                Some((_, value)) => self.store_arg(m, value),
                None => {
                    self.a.load(R, boxed(r, k));
                    self.a.store(m, R);
                }
            }
        }
        self.made(dst, TAG_BOXED, size as i32 + 1);
    }
    pub(super) fn is_tuple_of_arity(&mut self, op: IsTupleOfArity) {
        let IsTupleOfArity { fail, src, header } = op;
        let r = self.get(src, A);
        let to = self.to(fail);
        self.if_not_boxed(r, to);
        self.a.if_mem_word(Cond::Ne, boxed(r, 0), header, to);
    }
    pub(super) fn test_arity(&mut self, TestArity { fail, src, header }: TestArity) {
        let r = self.get(src, A);
        let to = self.to(fail);
        self.a.if_mem_word(Cond::Ne, boxed(r, 0), header, to);
    }
    pub(super) fn is_tagged_tuple(&mut self, op: IsTaggedTuple) {
        let IsTaggedTuple {
            fail,
            src,
            header,
            tag,
        } = op;
        let r = self.get(src, A);
        let to = self.to(fail);
        self.if_not_boxed(r, to);
        self.a.if_mem_word(Cond::Ne, boxed(r, 0), header, to);
        self.a.if_mem_word(Cond::Ne, boxed(r, TUPLE_FIRST), tag, to);
    }
}
