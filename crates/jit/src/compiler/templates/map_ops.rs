//! Maps: lookups and updates.
//!
//! A key that is an immediate is compared with the keys of a flat map, first with the one at the
//! index at which this code found it the last time (the hint, a byte of the context). Tree maps are
//! searched by a stub, other keys by a helper.
//!
//! # Invariant
//! A hint may be that of any code: its index is compared with the size, and its key with the key,
//! before it is used.

use super::*;
use purlin_isa::context::KEY_HINTS;
use purlin_term::layout::MAP_SIZE;

/// Bytes from a map's term to the word before its first value.
const VALUES_BEFORE: i32 = (FLATMAP_HEAD_WORDS as i32 - 1) * 8 - TAG_BOXED as i32;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    /// Jumps if a term is no flat map. `B` becomes the tuple of its keys; uses `R`.
    pub(super) fn flat_map(&mut self, m: Reg, to: Label) {
        self.if_not_boxed(m, to);
        self.a.load32(R, boxed(m, 0));
        // The kind is above the mark: 0 for a flat one.
        self.a.alu_i(D, And, R, 0xFF);
        self.a
            .if_i(Cond::Ne, D, R, (Subtag::Map as i32) << SUBTAG_SHIFT, to);
        self.a.load(B, boxed(m, FLATMAP_KEYS));
    }
    /// Looks up keys that are immediates in the map `K`, which is kept: their values go to the
    /// destinations, if they have some. Jumps if one is missing, or if `K` is no map. Uses `A`, `B`
    /// and `R`.
    pub(super) fn look_up_all(&mut self, keys: Vec<(u64, Option<Dst>)>, missing: Label) {
        let (tree, done) = (self.a.label(), self.a.label());
        self.flat_map(K, tree);
        for &(key, dst) in &keys {
            self.find_key(key, missing);
            if let Some(dst) = dst {
                let d = self.dst(dst, R);
                self.a.load(d, indexed(K, R, 8, VALUES_BEFORE));
                self.put(dst, d);
            }
        }
        self.a.bind(done);
        let (stub, none) = (self.env.stubs.tree, self.env.no_value);
        self.later("a map of another kind", move |g| {
            g.a.bind(tree);
            for (key, dst) in keys {
                g.a.mov_i(A, key);
                g.a.call_stub(stub);
                g.a.if_word(Cond::E, R, none, missing);
                if let Some(dst) = dst {
                    g.put(dst, R);
                }
            }
            g.a.jmp(done);
        });
    }
    /// `R` becomes the index, from 1, of the key among the keys in `B` of the flat map in `K`; uses
    /// `A`. Jumps if there is no such key. Tries the index of the last lookup first.
    pub(super) fn find_key(&mut self, key: u64, to: Label) {
        let (found, slow) = (self.a.label(), self.a.label());
        let wide = i32::try_from(key as i64).is_err();
        if wide {
            self.a.mov_i(A, key);
        }
        let hint = self.hint();
        let m = indexed(B, R, 8, -(TAG_BOXED as i32));
        let compare = move |g: &mut Self, c: Cond, l: Label| match wide {
            true => g.a.if_m(c, A, m, l),
            false => g.a.if_mi(c, m, key as i32, l),
        };
        self.a.load8(R, hint);
        self.a.if_m(Cond::A, R, boxed(K, MAP_SIZE), slow);
        // Index 0 is a header, which no key equals.
        compare(self, Cond::Ne, slow);
        self.a.bind(found);
        self.later(
            "the key is not where it was the last time: all keys",
            move |g| {
                let is = g.a.label();
                g.a.bind(slow);
                g.a.load(R, boxed(K, MAP_SIZE));
                g.a.if_zero(Cond::E, D, R, to);
                let again = g.a.here_label();
                compare(g, Cond::E, is);
                g.a.dec_if(Cond::Ne, R, again);
                g.a.jmp(to);
                g.a.bind(is);
                g.a.store8(hint, R);
                g.a.jmp(found);
            },
        );
    }
    /// Returns the place of the hint in the context for the next key lookup of this code.
    fn hint(&mut self) -> Mem {
        self.hints += 1;
        let n = self.pc(self.whole.at).wrapping_add(self.hints);
        let n = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - KEY_HINTS.trailing_zeros());
        at(CX, self.env.fields.key_hints + n as i32)
    }
    /// `R` becomes the value of the key in the map `K`, which is kept. Jumps if there is none, or
    /// if `K` is no map. Uses `A` and `B`.
    pub(super) fn look_up(&mut self, key: Src, missing: Label) {
        let (general, tree, done) = (self.a.label(), self.a.label(), self.a.label());
        let mut looked = true;
        match key {
            Src::C(w) if is_immediate(w) => {
                self.flat_map(K, tree);
                self.find_key(w, missing);
            }
            Src::C(_) => looked = false,
            _ => {
                let r = self.get(key, A);
                self.a.mov(A, r);
                self.if_pointer(A, general);
                self.flat_map(K, tree);
                let found = self.a.label();
                self.a.load(R, boxed(K, MAP_SIZE));
                self.a.if_zero(Cond::E, D, R, missing);
                let again = self.a.here_label();
                let m = indexed(B, R, 8, -(TAG_BOXED as i32));
                self.a.if_m(Cond::E, A, m, found);
                self.a.dec_if(Cond::Ne, R, again);
                self.a.jmp(missing);
                self.a.bind(found);
            }
        }
        let (f, none) = (self.env.helpers.map_get, self.env.no_value);
        let ask = move |g: &mut Self| {
            match key {
                Src::C(w) => g.a.mov_i(R, w),
                _ => {
                    let r = g.get(key, R);
                    g.a.mov(R, r);
                }
            }
            g.a.save(K);
            g.a.mov(A, K);
            g.leaf_helper(f);
            g.a.restore(K);
            g.a.if_word(Cond::E, R, none, missing);
        };
        if !looked {
            return ask(self);
        }
        self.a.load(R, indexed(K, R, 8, VALUES_BEFORE));
        self.a.bind(done);
        self.later(
            "a map of another kind, or a key that is no immediate",
            move |g| {
                if !matches!(key, Src::C(_)) {
                    g.a.bind(general);
                    ask(g);
                    g.a.jmp(done);
                }
                g.a.bind(tree);
                match key {
                    Src::C(w) => g.a.mov_i(A, w),
                    _ => {
                        let r = g.get(key, A);
                        g.a.mov(A, r);
                    }
                }
                let stub = g.env.stubs.tree;
                g.a.call_stub(stub);
                g.a.if_word(Cond::E, R, none, missing);
                g.a.jmp(done);
            },
        );
    }
    pub(super) fn get_map_elements(&mut self, op: GetMapElements) {
        let GetMapElements {
            fail, map, pairs, ..
        } = op;
        if pairs.all().len() > MAP_KEYS_MOST {
            return self.step();
        }
        let to = self.to(fail);
        let m = self.get(map, K);
        self.a.mov(K, m);
        let known = |(key, dst)| Self::immediate(key).map(|w| (w, Some(dst)));
        if let Some(keys) = pairs.all().map(known).collect() {
            return self.look_up_all(keys, to);
        }
        for (key, dst) in pairs.all() {
            self.look_up(key, to);
            self.put_result(dst, R);
        }
    }
    pub(super) fn has_map_fields(&mut self, op: HasMapFields) {
        let HasMapFields {
            fail, map, keys, ..
        } = op;
        if keys.all().len() > MAP_KEYS_MOST {
            return self.step();
        }
        let to = self.to(fail);
        let m = self.get(map, K);
        self.a.mov(K, m);
        let known = |key| Self::immediate(key).map(|w| (w, None));
        if let Some(keys) = keys.all().map(known).collect() {
            return self.look_up_all(keys, to);
        }
        for k in keys.all() {
            self.look_up(k, to);
        }
    }
    /// Returns the word of a constant that is an immediate.
    fn immediate(a: Src) -> Option<u64> {
        match a {
            Src::C(w) if is_immediate(w) => Some(w),
            _ => None,
        }
    }
    /// Whether a source is a register that a collection with that many live ones does not keep.
    fn is_dead(a: Src, live: Live) -> bool {
        matches!(a, Src::X(n) if u64::from(n) >= live.0)
    }
    pub(super) fn new_map(&mut self, op: NewMap) {
        let NewMap {
            keys,
            dst,
            live,
            values,
            ..
        } = op;
        let n = values.all().len();
        if n > FLATMAP_LIMIT || values.all().any(|v| Self::is_dead(v, live)) {
            return self.step();
        }
        let words = FLATMAP_HEAD_WORDS + n;
        self.room(words as u64, live);
        self.a.store_i(new(0), FLATMAP_HEADER as i32);
        self.a.store_i(new(MAP_SIZE), n as i32);
        self.store_arg(new(FLATMAP_KEYS), keys);
        for (k, v) in values.all().enumerate() {
            self.store_arg(new(FLATMAP_HEAD_WORDS + k), v);
        }
        self.made(dst, TAG_BOXED, words as i32);
    }
    pub(super) fn put_map_assoc(&mut self, op: PutMapAssoc) {
        let PutMapAssoc {
            map, dst, pairs, ..
        } = op;
        self.put_map(map, dst, pairs);
    }
    pub(super) fn put_map_exact(&mut self, op: PutMapExact) {
        let PutMapExact {
            map, dst, pairs, ..
        } = op;
        self.put_map(map, dst, pairs);
    }
    /// A flat map with other values for keys that it has, which are immediates in the code;
    /// anything else runs as a step.
    fn put_map(&mut self, map: Src, dst: Dst, pairs: list::Sources) {
        let immediate = |(key, value)| Self::immediate(key).map(|w| (w, value));
        let all: Option<Vec<(u64, Src)>> = pairs.pairs().map(immediate).collect();
        let Some(all) = all.filter(|all| all.len() <= MAP_KEYS_MOST && !self.env.stressed) else {
            return self.step();
        };
        let other = self.step_aside();
        let m = self.get(map, K);
        self.a.mov(K, m);
        self.flat_map(K, other);
        self.a.load(R, boxed(K, MAP_SIZE));
        const HEAD: i32 = FLATMAP_HEAD_WORDS as i32 * 8;
        self.a.lea(A, indexed(HP, R, 8, HEAD));
        self.a.if_r(Cond::A, Q, A, E, other);
        let done = self.a.label();
        let copy = self.a.label();
        let Some((&first, others)) = all.split_first() else {
            return self.step();
        };
        let others = others.to_vec();
        // The result is the map itself if nothing changes. Usually the first value alone decides
        // that; if it is the same, a cold part compares the others.
        self.find_key(first.0, other);
        let same = self.a.label();
        let compare = |g: &mut Self, v: Src, c: Cond, l: Label| {
            let r = g.get(v, A);
            g.a.if_m(c, r, indexed(K, R, 8, VALUES_BEFORE), l);
        };
        compare(self, first.1, Cond::E, same);
        self.a.bind(copy);
        // Word by word from the last one on; `B` is free now.
        self.a.save(R);
        self.a.load(R, boxed(K, MAP_SIZE));
        self.a.alu_i(Q, Add, R, FLATMAP_HEAD_WORDS as i32 - 1);
        let more = self.a.here_label();
        self.a.load(B, indexed(K, R, 8, -(TAG_BOXED as i32)));
        self.a.store(indexed(HP, R, 8, 0), B);
        self.a.dec_if(Cond::Ns, R, more);
        self.a.restore(R);
        let r = self.get(first.1, A);
        self.a.store(indexed(HP, R, 8, HEAD - 8), r);
        for &(key, v) in &others {
            self.a.load(B, boxed(K, FLATMAP_KEYS));
            self.find_key(key, other);
            let r = self.get(v, A);
            self.a.store(indexed(HP, R, 8, HEAD - 8), r);
        }
        let whole = self.whole;
        self.later("the first value stays: do the others?", move |g| {
            g.whole = whole;
            g.a.bind(same);
            let again = g.a.label();
            for &(key, v) in &others {
                g.a.load(B, boxed(K, FLATMAP_KEYS));
                g.find_key(key, other);
                compare(g, v, Cond::Ne, again);
            }
            g.put(dst, K);
            g.a.jmp(done);
            if !others.is_empty() {
                g.a.bind(again);
                g.a.load(B, boxed(K, FLATMAP_KEYS));
                g.find_key(first.0, other);
                g.a.jmp(copy);
            }
        });
        self.a.load(R, boxed(K, MAP_SIZE));
        let d = self.dst(dst, B);
        self.a.lea(d, at(HP, TAG_BOXED as i32));
        self.a.lea(HP, indexed(HP, R, 8, HEAD));
        self.put(dst, d);
        self.a.bind(done);
    }
}
