//! Maps.

use super::*;
use purlin_isa::context::KEY_HINTS;
use purlin_term::layout::MAP_SIZE;

/// Bytes from a map's term to the word before its first value.
const VALUES_BEFORE: i32 = (FLATMAP_HEAD_WORDS as i32 - 1) * 8 - TAG_BOXED as i32;

impl<'a, 'e> Gen<'a, 'e> {
    /// Jumps if a term is no flat map. RCX becomes its number of keys, R11 the tuple of them.
    pub(super) fn flat_map(&mut self, m: Reg, to: Label) {
        self.if_not_boxed(m, to);
        self.a.load32(RCX, boxed(m, 0));
        // The kind is above the mark: 0 for a flat one.
        self.a.alu_i(D, And, RCX, 0xFF);
        self.a
            .alu_i(D, Cmp, RCX, (Subtag::Map as i32) << SUBTAG_SHIFT);
        self.a.jcc(Cond::Ne, to);
        self.a.load(RCX, boxed(m, MAP_SIZE));
        self.a.load(R11, boxed(m, FLATMAP_KEYS));
    }
    /// RCX becomes the index, from 1, of the key among the keys in R11 of the flat map in R12; uses
    /// R10. Jumps if there is no such key. Tries the index of the last lookup first.
    pub(super) fn find_key(&mut self, key: u64, to: Label) {
        let (found, slow) = (self.a.label(), self.a.label());
        let wide = i32::try_from(key as i64).is_err();
        if wide {
            self.a.mov_i(R10, key);
        }
        let hint = self.hint();
        let m = indexed(R11, RCX, 8, -(TAG_BOXED as i32));
        let compare = move |g: &mut Self| match wide {
            true => g.a.alu_m(Q, Cmp, R10, m),
            false => g.a.alu_mi(Q, Cmp, m, key as i32),
        };
        self.a.load8(RCX, hint);
        self.a.alu_m(Q, Cmp, RCX, boxed(R12, MAP_SIZE));
        self.a.jcc(Cond::A, slow);
        // Index 0 is a header, which no key equals.
        compare(self);
        self.a.jcc(Cond::Ne, slow);
        self.a.bind(found);
        self.later(
            "the key is not where it was the last time: all keys",
            move |g| {
                let is = g.a.label();
                g.a.bind(slow);
                g.a.load(RCX, boxed(R12, MAP_SIZE));
                g.a.test(D, RCX, RCX);
                g.a.jcc(Cond::E, to);
                let again = g.a.here_label();
                compare(g);
                g.a.jcc(Cond::E, is);
                g.a.dec(RCX);
                g.a.jcc(Cond::Ne, again);
                g.a.jmp(to);
                g.a.bind(is);
                g.a.store8(hint, RCX);
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
    /// RCX becomes the value of the key in the map R12, which is kept. Jumps if there is none, or
    /// if R12 is no map. Uses R10 and R11.
    pub(super) fn look_up(&mut self, key: Src, missing: Label) {
        let (general, tree, done) = (self.a.label(), self.a.label(), self.a.label());
        let mut looked = true;
        match key {
            Src::C(w) if is_immediate(w) => {
                self.flat_map(R12, tree);
                self.find_key(w, missing);
            }
            Src::C(_) => looked = false,
            _ => {
                let r = self.get(key, R10);
                self.a.mov(R10, r);
                self.if_pointer(R10, general);
                self.flat_map(R12, tree);
                let found = self.a.label();
                self.a.test(D, RCX, RCX);
                self.a.jcc(Cond::E, missing);
                let again = self.a.here_label();
                let m = indexed(R11, RCX, 8, -(TAG_BOXED as i32));
                self.a.alu_m(Q, Cmp, R10, m);
                self.a.jcc(Cond::E, found);
                self.a.dec(RCX);
                self.a.jcc(Cond::Ne, again);
                self.a.jmp(missing);
                self.a.bind(found);
            }
        }
        let (f, none) = (self.env.helpers.map_get, self.env.no_value);
        let ask = move |g: &mut Self| {
            match key {
                Src::C(w) => g.a.mov_i(RCX, w),
                _ => {
                    let r = g.get(key, RCX);
                    g.a.mov(RCX, r);
                }
            }
            g.a.push(R12);
            g.a.mov(R10, R12);
            g.leaf_helper(f);
            g.a.pop(R12);
            g.cmp_word(RCX, none);
            g.a.jcc(Cond::E, missing);
        };
        if !looked {
            return ask(self);
        }
        self.a.load(RCX, indexed(R12, RCX, 8, VALUES_BEFORE));
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
                    Src::C(w) => g.a.mov_i(R10, w),
                    _ => {
                        let r = g.get(key, R10);
                        g.a.mov(R10, r);
                    }
                }
                let stub = g.env.stubs.tree;
                g.a.call_abs(stub);
                g.cmp_word(RCX, none);
                g.a.jcc(Cond::E, missing);
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
        let m = self.get(map, R12);
        self.a.mov(R12, m);
        for (key, dst) in pairs.all() {
            self.look_up(key, to);
            self.put(dst, RCX);
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
        let m = self.get(map, R12);
        self.a.mov(R12, m);
        for k in keys.all() {
            self.look_up(k, to);
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
        let immediate = |(key, value)| match key {
            Src::C(w) if is_immediate(w) => Some((w, value)),
            _ => None,
        };
        let all: Option<Vec<(u64, Src)>> = pairs.pairs().map(immediate).collect();
        let Some(all) = all.filter(|all| all.len() <= MAP_KEYS_MOST && !self.env.stressed) else {
            return self.step();
        };
        let other = self.step_aside();
        let m = self.get(map, R12);
        self.a.mov(R12, m);
        self.flat_map(R12, other);
        const HEAD: i32 = FLATMAP_HEAD_WORDS as i32 * 8;
        self.a.lea(R10, indexed(HP, RCX, 8, HEAD));
        self.a.alu(Q, Cmp, R10, E);
        self.a.jcc(Cond::A, other);
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
        let changes = |g: &mut Self, v: Src| {
            let r = g.get(v, R10);
            g.a.alu_m(Q, Cmp, r, indexed(R12, RCX, 8, VALUES_BEFORE));
        };
        changes(self, first.1);
        self.a.jcc(Cond::E, same);
        self.a.bind(copy);
        // Word by word from the last one on; R11 is free now.
        self.a.push(RCX);
        self.a.load(RCX, boxed(R12, MAP_SIZE));
        self.a.alu_i(Q, Add, RCX, FLATMAP_HEAD_WORDS as i32 - 1);
        let more = self.a.here_label();
        self.a.load(R11, indexed(R12, RCX, 8, -(TAG_BOXED as i32)));
        self.a.store(indexed(HP, RCX, 8, 0), R11);
        self.a.dec(RCX);
        self.a.jcc(Cond::Ns, more);
        self.a.pop(RCX);
        let r = self.get(first.1, R10);
        self.a.store(indexed(HP, RCX, 8, HEAD - 8), r);
        for &(key, v) in &others {
            self.a.load(R11, boxed(R12, FLATMAP_KEYS));
            self.find_key(key, other);
            let r = self.get(v, R10);
            self.a.store(indexed(HP, RCX, 8, HEAD - 8), r);
        }
        let whole = self.whole;
        self.later("the first value stays: do the others?", move |g| {
            g.whole = whole;
            g.a.bind(same);
            let again = g.a.label();
            for &(key, v) in &others {
                g.a.load(R11, boxed(R12, FLATMAP_KEYS));
                g.find_key(key, other);
                changes(g, v);
                g.a.jcc(Cond::Ne, again);
            }
            g.put(dst, R12);
            g.a.jmp(done);
            if !others.is_empty() {
                g.a.bind(again);
                g.a.load(R11, boxed(R12, FLATMAP_KEYS));
                g.find_key(first.0, other);
                g.a.jmp(copy);
            }
        });
        self.a.load(RCX, boxed(R12, MAP_SIZE));
        let d = self.dst(dst, R11);
        self.a.lea(d, at(HP, TAG_BOXED as i32));
        self.a.lea(HP, indexed(HP, RCX, 8, HEAD));
        self.put(dst, d);
        self.a.bind(done);
    }
}
