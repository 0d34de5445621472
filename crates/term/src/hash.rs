//! Hashes of terms.
//!
//! - [`phash2`] is the portable hash of `erlang:phash2/1,2`: the same in every runtime, for ever.
//!   Its mixing function is Bob Jenkins' of 1996 ("lookup2").
//! - [`phash`] is the older portable hash of `erlang:phash/2`, a sum of bytes times primes.
//! - [`salted`] is for tables inside the runtime and for the tree of hash maps; [`map_key`] gives
//!   the hashes that levels of a tree need. It follows the release's function so that numbers,
//!   binaries, and lists and tuples of them have the same order in a hash map; atoms enter by their
//!   index in the atom table, and terms of other nodes by node name and creation. Up to OTP 25 it
//!   is [`narrow`], of 32 bits, by the function of [`phash2`]; then [`wide`], of 64, by Austin
//!   Appleby's MurmurHash3.
//!
//! Both add or multiply by known constants, so keys that collide can be constructed, with
//! [`narrow`] for any salt, such as `{{S,1,2,3,4,5,6},S}` and `{S,{1,2,3,4,5,6,S}}` for a certain
//! integer `S`: a tree of hash maps would grow without end below them. So from the third hash of a
//! key on, which other keys hardly ever need, [`map_key`] uses another function ([`apart`]), whose
//! input differs whenever terms differ.
//!
//! No function recurses; pending terms are kept on a stack.

use crate::atom;
use crate::layout::{self, Bits};
use crate::parts::{hashmap_pairs, pid_parts, port_parts, ref_parts};
use crate::record::Record;
use crate::release::{self, NATIVE_RECORDS, SIGNED_ZEROS, WIDE_HASHES};
use crate::word::{Subtag, Term};
use smallvec::SmallVec;

/// The golden ratio; constants for kinds of terms are multiples of it.
const GOLDEN: u32 = 0x9e37_79b9;
const fn k(n: u32) -> u32 {
    GOLDEN.wrapping_mul(n)
}
/// Separates internal hashes from portable ones.
const INTERNAL_SALT: u32 = 3_432_918_353;
/// The portable hash of nil as a whole term.
const NIL_HASH: u32 = 3_468_870_702;

#[inline(always)]
fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> 13);
    b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << 8);
    c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> 13);
    a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> 12);
    b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << 16);
    c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> 5);
    a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> 3);
    b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << 10);
    c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> 15);
    (a, b, c)
}

#[inline(always)]
fn mix2(hash: u32, x: u32, y: u32, con: u32) -> u32 {
    mix(con.wrapping_add(x), con.wrapping_add(y), hash).2
}

#[inline(always)]
fn mix1(hash: u32, x: u32, con: u32) -> u32 {
    mix2(hash, x, 0, con)
}

/// The hash of a block of bytes, continuing from `init`.
fn block(bytes: &[u8], init: u32) -> u32 {
    let (mut a, mut b, mut c) = (GOLDEN, GOLDEN, init);
    let le = |s: &[u8]| u32::from_le_bytes([s[0], s[1], s[2], s[3]]);
    let mut chunks = bytes.chunks_exact(12);
    for w in &mut chunks {
        (a, b, c) = mix(
            a.wrapping_add(le(w)),
            b.wrapping_add(le(&w[4..])),
            c.wrapping_add(le(&w[8..])),
        );
    }
    let mut last = [0u8; 12];
    let rest = chunks.remainder();
    last[..rest.len()].copy_from_slice(rest);
    c = c.wrapping_add(bytes.len() as u32);
    // The low byte of the third word is left to the length.
    let hi = u32::from_le_bytes([0, last[8], last[9], last[10]]);
    mix(
        a.wrapping_add(le(&last)),
        b.wrapping_add(le(&last[4..])),
        c.wrapping_add(hi),
    )
    .2
}

fn bits(b: &Bits, hash: u32) -> u32 {
    let con = k(13).wrapping_add(hash);
    if b.bit_len == 0 {
        return con;
    }
    let owned;
    let bytes: &[u8] = if b.bit_offset == 0 {
        // SAFETY: the bytes of a bitstring in hand.
        unsafe { std::slice::from_raw_parts(b.base, b.bit_len.div_ceil(8)) }
    } else {
        owned = b.shifted();
        &owned
    };
    let whole = b.bit_len / 8;
    // Portable hashes have always taken sizes modulo 2^32.
    let h = block(&bytes[..whole & 0xFFFF_FFFF], con);
    let left = b.bit_len as u32 & 7;
    if left > 0 {
        mix2(h, left, (bytes[whole] >> (8 - left)) as u32, k(15))
    } else {
        h
    }
}

fn big(negative: bool, digits: &[u64], mut hash: u32) -> u32 {
    let con = if negative { k(10) } else { k(11) };
    for &d in digits {
        hash = mix2(hash, d as u32, (d >> 32) as u32, con);
    }
    hash
}

/// Hashes a run of bytes at the start of list `t`, packed by fours. Returns the hash, and the first
/// tail that starts with no byte.
#[inline]
fn byte_run(mut t: Term, mut hash: u32, last: impl Fn(u32, u32, u32) -> u32) -> (u32, Term) {
    let (mut n, mut packed) = (0, 0u32);
    while let Some((h, tail)) = t.as_cons() {
        if !h.is_small() || h.small_value() as u64 > 255 {
            break;
        }
        packed = (packed << 8) + h.small_value() as u32;
        n += 1;
        if n == 4 {
            hash = mix1(hash, packed, k(4));
            n = 0;
            packed = 0;
        }
        t = tail;
    }
    if n > 0 {
        hash = last(hash, packed, n);
    }
    (hash, t)
}

/// As [`float_words`], for hashes that no other runtime sees: if the zeros are two values, they
/// have two hashes.
fn own_float_words(f: f64) -> (u32, u32) {
    if f == 0.0 && !release::has(SIGNED_ZEROS) {
        return (0, 0);
    }
    let w = f.to_bits();
    (w as u32, (w >> 32) as u32)
}

fn float_words(f: f64) -> (u32, u32) {
    // Both zeros hash alike: in most releases they are equal.
    let w = if f == 0.0 { 0 } else { f.to_bits() };
    (w as u32, (w >> 32) as u32)
}

enum Todo {
    Term(Term),
    /// End of a map: the hash and the sum of pairs before it.
    MapEnd(u32, u32),
    /// End of a pair of a map.
    Pair,
    /// The next term is the tail of a list.
    Tail,
}

/// The portable hash of a small integer, continuing from `hash`.
#[inline(always)]
fn small(v: i64, mut hash: u32) -> u32 {
    if !(-(1 << 27)..1 << 27).contains(&v) {
        return big(v < 0, &[v.unsigned_abs()], hash);
    }
    if v < 0 {
        hash = mix1(hash, (v as u32).wrapping_neg(), GOLDEN);
    }
    mix1(hash, v as u32, GOLDEN)
}

/// `erlang:phash2(T)` before it is reduced to a range: all 32 bits. `phash2/1` takes the low 27.
pub fn phash2(t: Term) -> u32 {
    if t.is_atom() {
        return atom::name_hash(t);
    }
    phash2_from(t, 0)
}

/// Mixes `t` into `hash` as [`phash2`] does, which begins with 0.
fn phash2_from(t: Term, mut hash: u32) -> u32 {
    let mut todo: SmallVec<[Todo; 16]> = SmallVec::new();
    let mut pairs = 0u32;
    let mut next = Some(t);
    loop {
        if let Some(t) = next.take() {
            if t.is_list_ptr() {
                let (h, rest) = byte_run(t, hash, |h, p, _| mix1(h, p, k(4)));
                hash = h;
                match rest.as_cons() {
                    Some((x, tail)) => {
                        todo.push(Todo::Term(tail));
                        next = Some(x);
                    }
                    None => next = Some(rest),
                }
                continue;
            }
            if t.is_small() {
                hash = small(t.small_value(), hash);
            } else if t.is_atom() {
                hash = if hash == 0 {
                    atom::name_hash(t)
                } else {
                    mix1(hash, atom::name_hash(t), k(3))
                };
            } else if t.is_nil() {
                // 2 is stock's number for the type of nil.
                hash = if hash == 0 {
                    NIL_HASH
                } else {
                    mix1(hash, 2, k(2))
                };
            } else if let Some(e) = t.as_tuple() {
                hash = mix1(hash, e.len() as u32, k(9));
                todo.extend(e.iter().rev().map(|t| Todo::Term(*t)));
            } else if let Some(r) = t.as_record() {
                hash = mix2(hash, r.values.len() as u32, r.definition.hash(), k(23));
                todo.extend(r.ordered().rev().map(|(_, v)| Todo::Term(v)));
            } else if let Some(n) = t.map_size() {
                hash = mix1(hash, n as u32, k(16));
                if n > 0 {
                    todo.push(Todo::MapEnd(hash, pairs));
                    hash = 0;
                    pairs = 0;
                    let mut kv = Vec::with_capacity(n);
                    hashmap_pairs(t, &mut kv);
                    // Pairs are combined by xor: their order does not matter.
                    for (key, v) in kv {
                        todo.push(Todo::Pair);
                        todo.push(Todo::Term(v));
                        todo.push(Todo::Term(key));
                    }
                }
            } else if let Some(b) = t.as_bits() {
                hash = bits(&b, hash);
            } else if let Some((neg, d)) = t.as_big() {
                hash = big(neg, d, hash);
            } else if let Some(f) = t.as_float() {
                let (lo, hi) = float_words(f);
                hash = mix2(hash, hi, lo, k(12));
            } else if let Some(f) = t.as_fun() {
                if let Some(e) = f.local() {
                    hash = mix2(hash, f.env.len() as u32, atom::name_hash(e.module), GOLDEN);
                    hash = mix2(hash, e.index, e.old_uniq as u32, GOLDEN);
                    todo.extend(f.env.iter().rev().map(|t| Todo::Term(*t)));
                } else if let Some(e) = f.export() {
                    hash = mix2(hash, e.arity, atom::name_hash(e.module), GOLDEN);
                    hash = mix1(hash, atom::name_hash(e.function), k(14));
                }
            } else if let Some((num, ..)) = pid_parts(t) {
                hash = mix1(hash, num, k(5));
            } else if let Some((num, ..)) = port_parts(t) {
                hash = mix2(hash, num as u32, (num >> 32) as u32, k(6));
            } else if let Some((nums, ..)) = ref_parts(t) {
                hash = mix1(hash, nums.first().copied().unwrap_or(0), k(7));
            }
        }
        match todo.pop() {
            None => return hash,
            Some(Todo::Term(t)) => next = Some(t),
            Some(Todo::Pair) => {
                pairs ^= hash;
                hash = 0;
            }
            Some(Todo::MapEnd(h, p)) => {
                hash = mix1(h, pairs, k(19));
                pairs = p;
            }
            Some(Todo::Tail) => {}
        }
    }
}

/// Depth to which [`phash2_of_few`] recurses.
const NESTED: u32 = 16;

/// [`phash2`] of a term that has at most `most` parts (cells, elements, cache lines of bytes) and
/// is not deeply nested, and the number of its parts. `None`: it has more, or is nested deeper.
pub fn phash2_of_few(t: Term, most: usize) -> Option<(u32, usize)> {
    let mut left = most;
    let hash = of_few(t, 0, NESTED, &mut left)?;
    Some((hash, most - left))
}

/// Mixes `t` into `hash` as [`phash2`] does. Takes its parts off `left`; recurses `depth` levels.
fn of_few(mut t: Term, mut hash: u32, depth: u32, left: &mut usize) -> Option<u32> {
    loop {
        if t.is_small() {
            return Some(small(t.small_value(), hash));
        }
        if t.is_atom() {
            let name = atom::name_hash(t);
            return Some(if hash == 0 {
                name
            } else {
                mix1(hash, name, k(3))
            });
        }
        if t.is_list_ptr() {
            let (mut n, mut packed) = (0, 0u32);
            while let Some((h, tail)) = t.as_cons() {
                let Some(byte) = h.as_small().filter(|v| (0..256).contains(v)) else {
                    break;
                };
                *left = left.checked_sub(1)?;
                packed = packed << 8 | byte as u32;
                n += 1;
                if n == 4 {
                    hash = mix1(hash, packed, k(4));
                    (n, packed) = (0, 0);
                }
                t = tail;
            }
            if n > 0 {
                hash = mix1(hash, packed, k(4));
            }
            if let Some((x, tail)) = t.as_cons() {
                *left = left.checked_sub(1)?;
                hash = of_few(x, hash, depth.checked_sub(1)?, left)?;
                t = tail;
            }
            continue;
        }
        if let Some(e) = t.as_tuple() {
            *left = left.checked_sub(e.len() + 1)?;
            hash = mix1(hash, e.len() as u32, k(9));
            let Some((&last, others)) = e.split_last() else {
                return Some(hash);
            };
            let depth = depth.checked_sub(1)?;
            for &x in others {
                hash = of_few(x, hash, depth, left)?;
            }
            t = last;
            continue;
        }
        if let Some(b) = t.as_bits() {
            *left = left.checked_sub(1 + b.bit_len / 512)?;
            return Some(bits(&b, hash));
        }
        if let Some((keys, values)) = t.as_flatmap() {
            *left = left.checked_sub(2 * keys.len() + 1)?;
            let depth = depth.checked_sub(1)?;
            hash = mix1(hash, keys.len() as u32, k(16));
            if keys.is_empty() {
                return Some(hash);
            }
            let mut pairs = 0;
            for (&key, &value) in keys.iter().zip(values) {
                let h = of_few(key, 0, depth, left)?;
                pairs ^= of_few(value, h, depth, left)?;
            }
            return Some(mix1(hash, pairs, k(19)));
        }
        // Terms of the other kinds that have no terms inside.
        let leaf = t.is_nil() || t.is_number() || t.is_pid() || t.is_ref();
        return leaf.then(|| phash2_from(t, hash));
    }
}

/// The hash that the tree of a hash map uses for `key` at nibble `8 * depth` and those that follow.
#[inline]
pub(crate) fn map_key(key: Term, depth: u32) -> u32 {
    if depth == 0 && key.is_immed() {
        let raw = key.raw();
        if release::has(WIDE_HASHES) {
            return mix_64(raw) as u32;
        }
        return mix2(INTERNAL_SALT, raw as u32, (raw >> 32) as u32, GOLDEN);
    }
    map_key_at(key, depth)
}

/// First depth at which [`map_key`] uses [`apart`].
const APART_FROM: u32 = 2;

fn map_key_at(key: Term, depth: u32) -> u32 {
    if depth >= APART_FROM {
        return apart(key, depth);
    }
    if release::has(WIDE_HASHES) {
        return (wide(key, 0) >> (32 * depth)) as u32;
    }
    let salt = if depth > 0 {
        mix2(0, depth, 1, k(22))
    } else {
        0
    };
    narrow(key, salt)
}

/// The hash for tables within this runtime.
#[inline]
pub fn internal(t: Term) -> u32 {
    salted(t, 0) as u32
}

/// All bits of [`internal`] that the release has, varied by `salt`.
#[inline]
pub fn salted(t: Term, salt: u64) -> u64 {
    if release::has(WIDE_HASHES) {
        wide(t, salt)
    } else {
        u64::from(narrow(t, salt as u32))
    }
}

/// The last step of MurmurHash3: each bit of `x` changes about half of the result's bits.
#[inline(always)]
fn mix_64(mut x: u64) -> u64 {
    for f in FINAL_FACTORS {
        x = (x ^ x >> FINAL_SHIFT).wrapping_mul(f);
    }
    x ^ x >> FINAL_SHIFT
}
/// Shift and factors of [`mix_64`].
pub const FINAL_SHIFT: u32 = 33;
pub const FINAL_FACTORS: [u64; 2] = [0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53];

/// Factors of [`Wide`].
const FIRST_FACTOR: u64 = 0x87C3_7B91_1142_53D5;
const SECOND_FACTOR: u64 = 0x4CF5_AD43_2745_937F;

/// The state of [`wide`]: the two halves of MurmurHash3's state. Words go into one or the other as
/// they come, not always in turn; their number is part of the result.
struct Wide {
    first: u64,
    second: u64,
    count: u64,
}

impl Wide {
    fn scrambled_first(x: u64) -> u64 {
        let x = x.wrapping_mul(FIRST_FACTOR).rotate_left(31);
        x.wrapping_mul(SECOND_FACTOR)
    }
    fn scrambled_second(x: u64) -> u64 {
        let x = x.wrapping_mul(SECOND_FACTOR).rotate_left(33);
        x.wrapping_mul(FIRST_FACTOR)
    }
    #[inline]
    fn first(&mut self, x: u64) {
        let h = (self.first ^ Self::scrambled_first(x)).rotate_left(27);
        let h = h.wrapping_add(self.second).wrapping_mul(5);
        self.first = h.wrapping_add(0x52DC_E729);
        self.count += 1;
    }
    #[inline]
    fn second(&mut self, x: u64) {
        let h = (self.second ^ Self::scrambled_second(x)).rotate_left(31);
        let h = h.wrapping_add(self.first).wrapping_mul(5);
        self.second = h.wrapping_add(0x3849_5AB5);
        self.count += 1;
    }
    /// Mixes in two numbers of 32 bits as one word.
    #[inline]
    fn first_pair(&mut self, low: u64, high: u64) {
        self.first(low | high << 32);
    }
    #[inline]
    fn second_pair(&mut self, low: u64, high: u64) {
        self.second(low | high << 32);
    }
    #[inline]
    fn immediate(&mut self, raw: u64) {
        self.first(kind::IMMEDIATE);
        self.second(raw);
    }
    /// Mixes in a part of a term: at once if it is immediate; otherwise it waits on the stack, and
    /// a mark of that is mixed in.
    #[inline]
    fn part(&mut self, t: Term, todo: &mut SmallVec<[Todo; 16]>) {
        if t.is_immed() {
            self.immediate(t.raw());
        } else {
            self.first(kind::PART);
            todo.push(Todo::Term(t));
        }
    }
    /// Mixes in all parts except the last, which is returned: it comes next, without waiting.
    fn parts(
        &mut self,
        mut all: impl Iterator<Item = Term>,
        todo: &mut SmallVec<[Todo; 16]>,
    ) -> Option<Term> {
        let mut last = all.next()?;
        for t in all {
            self.part(last, todo);
            last = t;
        }
        Some(last)
    }
    /// Mixes in a list up to the term that comes next, which is returned: its first compound
    /// element, the rest behind an immediate element that is no byte, or a tail that is no list.
    fn list(&mut self, mut t: Term, todo: &mut SmallVec<[Todo; 16]>) -> Term {
        let (mut n, mut packed) = (0, 0);
        while let Some((x, tail)) = t.as_cons() {
            let Some(byte) = x.as_small().filter(|v| (0..256).contains(v)) else {
                break;
            };
            packed = packed << 8 | byte as u64;
            n += 1;
            if n == 4 {
                self.first_pair(kind::BYTES | n << 8, packed);
                (n, packed) = (0, 0);
            }
            t = tail;
        }
        if n > 0 {
            self.first_pair(kind::BYTES | n << 8, packed);
        }
        let Some((x, tail)) = t.as_cons() else {
            return t;
        };
        if x.is_immed() {
            self.first_pair(kind::IMMEDIATE, kind::HEAD);
            self.second(x.raw());
            if !tail.is_list_ptr() {
                self.first(kind::TAIL);
            }
            return tail;
        }
        todo.push(Todo::Term(tail));
        if !tail.is_list_ptr() {
            todo.push(Todo::Tail);
        }
        self.first(kind::HEAD);
        x
    }
    fn map(&mut self, t: Term, missing: u64, todo: &mut SmallVec<[Todo; 16]>) -> Option<Term> {
        if let Some((ks, vs)) = t.as_flatmap() {
            self.first(kind::FLAT_MAP - missing);
            self.second(ks.len() as u64);
            return self.parts(ks.iter().zip(vs).flat_map(|(&k, &v)| [v, k]), todo);
        }
        // SAFETY: layout of maps; inner nodes have the same layout.
        let (kind, words) = unsafe {
            let p = t.ptr();
            let words = std::slice::from_raw_parts(p.cast_const(), layout::map_words(p));
            (layout::map_kind((*p).raw()), words)
        };
        let children = match kind {
            layout::MAP_NODE => {
                self.first(kind::NODE - missing);
                &words[1..]
            }
            root => {
                let full = root == layout::MAP_HEAD_ARRAY;
                let kind = if full { kind::FULL_ROOT } else { kind::ROOT };
                self.first(kind - missing);
                self.second(words[1].raw());
                &words[2..]
            }
        };
        for &c in children {
            match c.as_cons() {
                Some((key, value)) => {
                    self.part(value, todo);
                    self.part(key, todo);
                }
                None => todo.push(Todo::Term(c)),
            }
        }
        None
    }
    /// Mixes in a term of a rarer kind.
    fn other(&mut self, t: Term, missing: u64, todo: &mut SmallVec<[Todo; 16]>) -> Option<Term> {
        if t.is_map() {
            return self.map(t, missing, todo);
        }
        if let Some(r) = t.as_record() {
            self.first(kind::RECORD);
            self.second(r.values.len() as u64 + 1);
            self.part(Term::small(r.definition.hash().into()), todo);
            return self.parts(r.ordered().map(|(_, v)| v), todo);
        }
        if let Some((negative, digits)) = t.as_big() {
            let kind = if negative {
                kind::NEGATIVE
            } else {
                kind::POSITIVE
            };
            self.first_pair(kind - missing, digits.len() as u64);
            let mut pairs = digits.chunks_exact(2);
            for d in &mut pairs {
                self.first(d[0]);
                self.second(d[1]);
            }
            pairs.remainder().iter().for_each(|&d| self.second(d));
        } else if let Some(f) = t.as_float() {
            let (low, high) = own_float_words(f);
            self.first(kind::FLOAT - missing);
            self.second_pair(low.into(), high.into());
        } else if let Some(f) = t.as_fun() {
            if let Some(e) = f.local() {
                self.first_pair(kind::LOCAL_FUN - missing, f.env.len() as u64);
                self.second_pair(e.index.into(), (e.old_uniq as u32).into());
                self.immediate(e.module.raw());
                return self.parts(f.env.iter().copied(), todo);
            }
            if let Some(e) = f.export() {
                // Stock has the address of its export here.
                self.first(kind::EXTERNAL_FUN - missing);
                self.second(e.module.raw());
                self.first(e.function.raw());
                self.second(e.arity.into());
            }
        } else if let Some((nums, name, creation)) = ref_parts(t) {
            // Missing numbers count as 0.
            let n = |i: usize| u64::from(nums.get(i).copied().unwrap_or(0));
            if t.subtag() == Some(Subtag::ExtRef) {
                self.first(kind::REF_ELSEWHERE - missing);
                self.second_pair(n(0), n(1));
                self.second_pair(n(2), n(3));
                self.second(n(4));
                self.node(name, creation);
            } else {
                self.first_pair(kind::REF - missing, n(0));
                self.second_pair(n(1), n(2));
                if n(3) | n(4) != 0 {
                    self.first_pair(n(3), n(4));
                }
            }
        } else if let Some((num, serial, name, creation)) = pid_parts(t) {
            self.first(kind::PID_ELSEWHERE - missing);
            self.node(name, creation);
            self.first_pair(num.into(), serial.into());
        } else if let Some((num, name, creation)) = port_parts(t) {
            self.first(kind::PORT_ELSEWHERE - missing);
            self.node(name, creation);
            self.first(num);
        }
        None
    }
    /// Mixes in another node. Stock has the address of its entry here.
    fn node(&mut self, name: Term, creation: u32) {
        self.second(name.raw());
        self.first(creation.into());
    }
    fn bits(&mut self, b: &Bits, kind: u64) {
        self.first(kind);
        self.second(b.bit_len as u64);
        let bytes = match b.as_bytes() {
            Some(b) => std::borrow::Cow::Borrowed(b),
            None => std::borrow::Cow::Owned(b.shifted()),
        };
        let whole = b.bit_len / 8;
        let le = |s: &[u8]| {
            let mut w = [0; 8];
            w[..s.len()].copy_from_slice(s);
            u64::from_le_bytes(w)
        };
        let mut chunks = bytes[..whole].chunks_exact(16);
        for c in &mut chunks {
            self.first(le(&c[..8]));
            self.second(le(&c[8..]));
        }
        // The rest is scrambled, but not mixed.
        let rest = chunks.remainder();
        let (low, high) = rest.split_at(rest.len().min(8));
        if !high.is_empty() {
            self.second ^= Self::scrambled_second(le(high));
        }
        if !low.is_empty() {
            self.first ^= Self::scrambled_first(le(low));
        }
        let left = b.bit_len & 7;
        if left > 0 {
            self.first((bytes[whole] >> (8 - left)).into());
        }
    }
    fn finish(self) -> u64 {
        let (mut a, mut b) = (self.first ^ self.count, self.second ^ self.count);
        a = a.wrapping_add(b);
        b = b.wrapping_add(a);
        (a, b) = (mix_64(a), mix_64(b));
        a = a.wrapping_add(b);
        b = b.wrapping_add(a);
        a ^ b
    }
}

/// Stock's numbers for the kinds that [`Wide`] mixes in. Those after [`kind::RECORD`] are one less
/// without native records.
mod kind {
    pub const IMMEDIATE: u64 = 1;
    pub const PART: u64 = 2;
    pub const HEAD: u64 = 3;
    pub const TAIL: u64 = 4;
    pub const BYTES: u64 = 5;
    pub const TUPLE: u64 = 6;
    pub const RECORD: u64 = 7;
    pub const FLAT_MAP: u64 = 8;
    pub const FULL_ROOT: u64 = 9;
    pub const ROOT: u64 = 10;
    pub const NODE: u64 = 11;
    pub const BITS: u64 = 12;
    pub const LOCAL_FUN: u64 = 13;
    pub const EXTERNAL_FUN: u64 = 14;
    pub const NEGATIVE: u64 = 15;
    pub const POSITIVE: u64 = 16;
    pub const REF: u64 = 17;
    pub const REF_ELSEWHERE: u64 = 18;
    pub const PID_ELSEWHERE: u64 = 19;
    pub const PORT_ELSEWHERE: u64 = 20;
    pub const FLOAT: u64 = 21;
}

/// The 64-bit hash.
fn wide(t: Term, salt: u64) -> u64 {
    if t.is_immed() {
        return mix_64(t.raw().wrapping_add(salt));
    }
    wide_compound(t, salt)
}
#[inline(never)]
fn wide_compound(t: Term, salt: u64) -> u64 {
    let mut h = Wide {
        first: salt,
        second: salt,
        count: 0,
    };
    let missing = u64::from(!release::has(NATIVE_RECORDS));
    let mut todo: SmallVec<[Todo; 16]> = SmallVec::new();
    let mut t = t;
    loop {
        let at_once = if t.is_list_ptr() {
            Some(h.list(t, &mut todo))
        } else if t.is_immed() {
            h.immediate(t.raw());
            None
        } else if let Some(e) = t.as_tuple() {
            h.first(kind::TUPLE);
            h.second(e.len() as u64);
            h.parts(e.iter().copied(), &mut todo)
        } else if let Some(b) = t.as_bits() {
            h.bits(&b, kind::BITS - missing);
            None
        } else {
            h.other(t, missing, &mut todo)
        };
        if let Some(next) = at_once {
            t = next;
            continue;
        }
        t = loop {
            match todo.pop() {
                None => return h.finish(),
                Some(Todo::Term(t)) => break t,
                Some(Todo::Tail) => h.second(kind::TAIL),
                Some(Todo::Pair | Todo::MapEnd(..)) => {}
            }
        };
    }
}
/// Mixes the size of a map into `hash` for [`narrow`], and pushes its keys and values, or the
/// children of an inner node.
#[inline(always)]
fn map_head(t: Term, mut hash: u32, todo: &mut SmallVec<[Todo; 16]>) -> u32 {
    if let Some((ks, vs)) = t.as_flatmap() {
        for (key, v) in ks.iter().zip(vs).rev() {
            todo.push(Todo::Term(*v));
            todo.push(Todo::Term(*key));
        }
        return mix1(hash, ks.len() as u32, k(16));
    }
    // SAFETY: layout of maps; inner nodes have the same layout.
    unsafe {
        let p = t.ptr();
        let mut first = 1;
        if layout::map_kind((*p).raw()) != layout::MAP_NODE {
            first = 2;
            hash = mix1(hash, (*p.add(1)).raw() as u32, k(16));
        }
        for i in first..layout::map_words(p) {
            let c = *p.add(i);
            match c.as_cons() {
                Some((key, v)) => {
                    todo.push(Todo::Term(v));
                    todo.push(Todo::Term(key));
                }
                None => todo.push(Todo::Term(c)),
            }
        }
    }
    hash
}

/// The 32-bit hash.
pub(crate) fn narrow(t: Term, salt: u32) -> u32 {
    let mut hash = salt ^ INTERNAL_SALT;
    if t.is_immed() {
        return mix2(hash, t.raw() as u32, (t.raw() >> 32) as u32, GOLDEN);
    }
    let constant = |h: u32, c: u32| (h ^ c).rotate_left(17);
    let node_of =
        |h: u32, name: Term, creation: u32, con: u32| mix2(h, name.raw() as u32, creation, con);
    let mut todo: SmallVec<[Todo; 16]> = SmallVec::new();
    let mut next = Some(t);
    loop {
        if let Some(t) = next.take() {
            if t.is_list_ptr() {
                let (h, rest) = byte_run(t, hash, |h, p, n| mix2(h, p, n, k(22)));
                hash = h;
                match rest.as_cons() {
                    Some((x, tail)) => {
                        hash = constant(hash, k(17));
                        todo.push(Todo::Term(tail));
                        if !tail.is_list_ptr() {
                            todo.push(Todo::Tail);
                        }
                        next = Some(x);
                    }
                    None => next = Some(rest),
                }
                continue;
            }
            if t.is_immed() {
                hash = mix2(hash, t.raw() as u32, (t.raw() >> 32) as u32, GOLDEN);
            } else if let Some(e) = t.as_tuple() {
                hash = mix1(hash, e.len() as u32, k(9));
                todo.extend(e.iter().rev().map(|t| Todo::Term(*t)));
            } else if let Some(r) = t.as_record() {
                hash = mix2(hash, r.values.len() as u32, r.definition.hash(), k(23));
                todo.extend(r.values.iter().rev().map(|t| Todo::Term(*t)));
            } else if t.is_map() {
                hash = map_head(t, hash, &mut todo);
            } else if let Some(b) = t.as_bits() {
                hash = bits(&b, hash);
            } else if let Some((neg, d)) = t.as_big() {
                hash = big(neg, d, hash);
            } else if let Some(f) = t.as_float() {
                let (lo, hi) = own_float_words(f);
                hash = mix2(hash, lo, hi, k(12));
            } else if let Some(f) = t.as_fun() {
                if let Some(e) = f.local() {
                    hash = mix2(hash, f.env.len() as u32, e.module.raw() as u32, k(20));
                    hash = mix2(hash, e.index, e.old_uniq as u32, k(21));
                    todo.extend(f.env.iter().rev().map(|t| Todo::Term(*t)));
                } else if let Some(e) = f.export() {
                    hash = mix2(hash, e.module.raw() as u32, e.function.raw() as u32, k(14));
                    hash = mix1(hash, e.arity, k(14));
                }
            } else if let Some((nums, name, creation)) = ref_parts(t) {
                if t.subtag() == Some(Subtag::ExtRef) {
                    hash = node_of(hash, name, creation, k(7));
                }
                let n = |i: usize| nums.get(i).copied().unwrap_or(0);
                hash = mix1(hash, n(0), k(7));
                hash = mix2(hash, n(1), n(2), k(8));
                // Only references of other nodes have more than three numbers.
                if n(3) | n(4) != 0 {
                    hash = mix2(hash, n(3), n(4), k(8));
                }
            } else if let Some((num, serial, name, creation)) = pid_parts(t) {
                hash = node_of(hash, name, creation, k(5));
                hash = mix2(hash, num, serial, k(5));
            } else if let Some((num, name, creation)) = port_parts(t) {
                hash = node_of(hash, name, creation, k(6));
                hash = mix2(hash, num as u32, (num >> 32) as u32, k(6));
            }
        }
        match todo.pop() {
            None => return hash,
            Some(Todo::Term(t)) => next = Some(t),
            Some(Todo::Tail) => hash = constant(hash, k(18)),
            Some(Todo::Pair | Todo::MapEnd(..)) => {}
        }
    }
}

/// Hashes the size of a tree map for [`apart`], and pushes its keys and values, or the children of
/// an inner node.
fn hash_tree(t: Term, h: &mut impl std::hash::Hasher, todo: &mut SmallVec<[Term; 16]>) {
    // SAFETY: layout of maps; inner nodes have the same layout.
    unsafe {
        let p = t.ptr();
        let mut first = 1;
        if layout::map_kind((*p).raw()) != layout::MAP_NODE {
            first = 2;
            h.write_u8(4);
            h.write_u64((*p.add(1)).raw());
        }
        for i in first..layout::map_words(p) {
            let c = *p.add(i);
            match c.as_cons() {
                Some((k, v)) => todo.extend([v, k]),
                None => todo.push(c),
            }
        }
    }
}

/// A keyed hash of everything that `=:=` looks at: each part has its kind and size in front of it,
/// so that terms that differ are different input.
#[cold]
fn apart(t: Term, depth: u32) -> u32 {
    use std::hash::Hasher;
    let mut h = std::hash::DefaultHasher::new();
    h.write_u32(depth);
    let mut todo: SmallVec<[Term; 16]> = SmallVec::new();
    todo.push(t);
    while let Some(t) = todo.pop() {
        if t.is_immed() {
            h.write_u8(1);
            h.write_u64(t.raw());
        } else if let Some((x, tail)) = t.as_cons() {
            h.write_u8(2);
            todo.push(tail);
            todo.push(x);
        } else if let Some(e) = t.as_tuple() {
            h.write_u8(3);
            h.write_usize(e.len());
            todo.extend(e.iter().rev().copied());
        } else if let Some(r) = t.as_record() {
            h.write_u8(14);
            h.write_usize(r.values.len());
            r.definition
                .identity()
                .iter()
                .for_each(|t| h.write_u64(t.raw()));
            todo.extend(r.values.iter().rev().copied());
        } else if let Some((ks, vs)) = t.as_flatmap() {
            h.write_u8(4);
            h.write_usize(ks.len());
            todo.extend(ks.iter().zip(vs).flat_map(|(&k, &v)| [v, k]));
        } else if t.is_map() {
            hash_tree(t, &mut h, &mut todo);
        } else if let Some(b) = t.as_bits() {
            h.write_u8(5);
            h.write_usize(b.bit_len);
            match b.as_bytes() {
                Some(s) => h.write(s),
                None => h.write(&b.shifted()),
            }
        } else if let Some((neg, d)) = t.as_big() {
            h.write_u8(6 + neg as u8);
            h.write_usize(d.len());
            d.iter().for_each(|&d| h.write_u64(d));
        } else if let Some(f) = t.as_float() {
            let (lo, hi) = own_float_words(f);
            h.write_u8(8);
            h.write_u32(lo);
            h.write_u32(hi);
        } else if let Some(f) = t.as_fun() {
            if let Some(e) = f.local() {
                h.write_u8(9);
                h.write_u64(e.module.raw());
                h.write_u32(e.index);
                h.write_i64(e.old_uniq);
                h.write_usize(f.env.len());
                todo.extend(f.env.iter().rev().copied());
            } else if let Some(e) = f.export() {
                h.write_u8(10);
                h.write_u64(e.module.raw());
                h.write_u64(e.function.raw());
                h.write_u32(e.arity);
            }
        } else if let Some((nums, name, creation)) = ref_parts(t) {
            h.write_u8(11);
            if t.subtag() == Some(Subtag::ExtRef) {
                h.write_u64(name.raw());
                h.write_u32(creation);
            }
            // Missing numbers count as 0.
            (0..5).for_each(|i| h.write_u32(nums.get(i).copied().unwrap_or(0)));
        } else if let Some((num, serial, name, creation)) = pid_parts(t) {
            h.write_u8(12);
            h.write_u64(name.raw());
            for n in [creation, num, serial] {
                h.write_u32(n);
            }
        } else if let Some((num, name, creation)) = port_parts(t) {
            h.write_u8(13);
            h.write_u64(name.raw());
            h.write_u32(creation);
            h.write_u64(num);
        }
    }
    h.finish() as u32
}

/// Primes of the old portable hash, by their numbers in stock's list.
const PRIME: [u32; 16] = [
    0,
    268_440_163,
    268_439_161,
    268_435_459,
    268_436_141,
    268_438_633,
    268_437_017,
    268_438_039,
    268_437_511,
    268_439_627,
    268_440_479,
    268_440_577,
    268_440_581,
    268_440_593,
    268_440_611,
    268_440_629,
];

/// Adds the four bytes of `x`, lowest first, to the hash times a prime.
fn old_u32(hash: u32, x: u32, prime: u32) -> u32 {
    x.to_le_bytes()
        .iter()
        .fold(hash, |h, &b| h.wrapping_mul(prime).wrapping_add(b as u32))
}

/// Hashes the digits of an integer; upper halves only if there are any.
fn old_int(mut hash: u32, negative: bool, digits: &[u64]) -> u32 {
    for (i, &d) in digits.iter().enumerate() {
        hash = old_u32(hash, d as u32, PRIME[2]);
        if d >> 32 != 0 || i + 1 < digits.len() {
            hash = old_u32(hash, (d >> 32) as u32, PRIME[2]);
        }
    }
    hash.wrapping_mul(PRIME[if negative { 4 } else { 3 }])
}

enum OldTodo {
    Term(Term),
    /// The tail of a list whose element is hashed.
    Tail(Term),
    /// End of a list.
    ListEnd,
    /// End of a tuple of this arity.
    TupleEnd(u32),
    /// End of a native record of this many words.
    RecordEnd(u32),
}

/// Pushes a record as a tuple of its definition and its values, in order of the keys' atoms; the
/// definition as the tuple that stock has: the place of each key in that order, the hash, the
/// visible part, and the keys in that order.
fn push_record(r: Record, todo: &mut SmallVec<[OldTodo; 16]>) {
    let (d, n) = (r.definition, r.values.len());
    let small = |i: usize| OldTodo::Term(Term::small(i as i64));
    let mut places: SmallVec<[usize; 16]> = SmallVec::from_elem(0, n);
    d.order().enumerate().for_each(|(i, at)| places[at] = i);
    todo.push(OldTodo::RecordEnd(n as u32 + 1));
    todo.extend(r.ordered().rev().map(|(_, v)| OldTodo::Term(v)));
    todo.push(OldTodo::TupleEnd(n as u32 + 5));
    todo.extend(r.ordered().rev().map(|(k, _)| OldTodo::Term(k)));
    let identity = [Term::bool(d.is_exported()), d.name(), d.module()];
    todo.extend(identity.map(OldTodo::Term));
    todo.push(small(d.hash() as usize));
    todo.push(OldTodo::TupleEnd(n as u32));
    todo.extend(places.iter().rev().map(|&i| small(i)));
}

/// `erlang:phash(T, Range)` before it is reduced to a range: the result is this modulo the range,
/// plus one.
pub fn phash(t: Term) -> u32 {
    let step = |h: u32, prime: usize, x: u32| h.wrapping_mul(PRIME[prime]).wrapping_add(x);
    let mut todo: SmallVec<[OldTodo; 16]> = SmallVec::new();
    todo.push(OldTodo::Term(t));
    let mut hash = 0u32;
    while let Some(x) = todo.pop() {
        let (mut t, in_list) = match x {
            OldTodo::ListEnd => {
                hash = hash.wrapping_mul(PRIME[8]);
                continue;
            }
            OldTodo::TupleEnd(n) => {
                hash = step(hash, 9, n);
                continue;
            }
            OldTodo::Tail(t) => (t, true),
            OldTodo::RecordEnd(n) => {
                hash = step(hash, 15, n);
                continue;
            }
            OldTodo::Term(t) => (t, false),
        };
        if t.is_list_ptr() {
            // Bytes are hashed in a simpler way than other integers.
            while let Some((h, tail)) = t.as_cons() {
                if let Some(b) = h.as_small().filter(|v| (0..256).contains(v)) {
                    hash = step(hash, 2, b as u32);
                    t = tail;
                } else {
                    todo.push(OldTodo::Tail(tail));
                    todo.push(OldTodo::Term(h));
                    break;
                }
            }
            if !t.is_list_ptr() {
                todo.push(OldTodo::ListEnd);
                todo.push(OldTodo::Term(t));
            }
            continue;
        }
        if in_list {
            todo.push(OldTodo::ListEnd);
        }
        if let Some(v) = t.as_small() {
            hash = old_int(hash, v < 0, &[v.unsigned_abs()]);
        } else if let Some((neg, d)) = t.as_big() {
            hash = old_int(hash, neg, d);
        } else if t.is_nil() {
            hash = step(hash, 3, 1);
        } else if t.is_atom() {
            hash = step(hash, 1, atom::name_hash(t));
        } else if let Some(e) = t.as_tuple() {
            todo.push(OldTodo::TupleEnd(e.len() as u32));
            todo.extend(e.iter().rev().map(|t| OldTodo::Term(*t)));
        } else if let Some(b) = t.as_bits() {
            let bytes = b.shifted();
            let (whole, left) = (b.bit_len / 8, b.bit_len as u32 & 7);
            for &c in &bytes[..whole] {
                hash = step(hash, 1, c as u32);
            }
            if left > 0 {
                hash = step(hash, 1, (bytes[whole] >> (8 - left)) as u32);
                hash = step(hash, 12, left);
            }
            hash = step(hash, 4, whole as u32);
        } else if let Some(f) = t.as_float() {
            let (lo, hi) = float_words(f);
            hash = step(hash, 6, lo ^ hi);
        } else if let Some(r) = t.as_record() {
            push_record(r, &mut todo);
        } else if t.is_map() {
            hash = step(hash, 13, PRIME[14]).wrapping_add(phash2(t));
        } else if let Some(f) = t.as_fun() {
            if let Some(e) = f.local() {
                hash = step(hash, 10, f.env.len() as u32);
                hash = step(hash, 1, atom::name_hash(e.module));
                hash = step(hash, 2, e.index);
                hash = step(hash, 2, e.old_uniq as u32);
                todo.extend(f.env.iter().rev().map(|t| OldTodo::Term(*t)));
            } else if let Some(e) = f.export() {
                hash = step(hash, 11, e.arity);
                hash = step(hash, 1, atom::name_hash(e.module));
                hash = step(hash, 1, atom::name_hash(e.function));
            }
        } else if let Some((num, ..)) = pid_parts(t) {
            hash = old_u32(hash, num, PRIME[5]).wrapping_mul(PRIME[6]);
        } else if let Some((num, ..)) = port_parts(t) {
            if num >> 32 != 0 {
                hash = old_u32(hash, (num >> 32) as u32, PRIME[11]);
            }
            hash = old_u32(hash, num as u32, PRIME[9]).wrapping_mul(PRIME[10]);
        } else if let Some((nums, ..)) = ref_parts(t) {
            let n = nums.first().copied().unwrap_or(0);
            hash = old_u32(hash, n, PRIME[9]).wrapping_mul(PRIME[10]);
        }
    }
    hash
}
