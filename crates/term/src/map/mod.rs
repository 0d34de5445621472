//! Maps: flat up to [`FLATMAP_LIMIT`] pairs, above that trees on the key's hash (HAMT). Persistent,
//! sharing structure.
//!
//! Flat maps hold their keys in the term order that distinguishes `1` from `1.0` ([`cmp_exact`]);
//! since OTP 26 atoms among them are in the order of their numbers. In a tree, each level takes
//! four bits of the hash, lowest first. Every eight levels use another hash of the key: since OTP
//! 26 the upper half of the present one, otherwise one with another salt. A leaf is a cons cell of
//! key and value, placed as high as its hash prefix is unique, so the shape of a tree, and with it
//! the order of iteration, depends only on its keys. A tree always has more than [`FLATMAP_LIMIT`]
//! pairs.

mod from_pairs;
mod iterate;
#[cfg(test)]
mod map_tests;
mod merge;

use crate::alloc::Alloc;
use crate::atom;
use crate::compare::{cmp_exact, eq_exact};
use crate::hash::map_key;
use crate::layout::*;
use crate::release::{self, MAP_KEYS_BY_NUMBER};
use crate::word::{NIL, Subtag, Term, header};
use from_pairs::{build_root, sorted_flat};
use smallvec::SmallVec;
use std::cmp::Ordering;

pub use from_pairs::{from_iterators, from_pairs, from_pairs_unique, from_parts_unique};
pub use iterate::{Iter, NextKind, iter, keys, next, values};
pub use merge::{merge, merge_effort};

/// Bitmap and children of a tree's root or inner node.
#[inline(always)]
fn node<'a>(t: Term) -> (u16, &'a [Term]) {
    let p = t.ptr();
    // SAFETY: called only on boxed map nodes of a tree in hand; layout of map nodes.
    unsafe {
        let hdr = (*p).raw();
        let bm = map_bitmap(hdr);
        let head = if map_kind(hdr) == MAP_NODE { 1 } else { 2 };
        (
            bm,
            std::slice::from_raw_parts(p.add(head), bm.count_ones() as usize),
        )
    }
}

/// The hash at `level`, given that at the level above.
#[inline(always)]
fn descend(hx: u32, level: u32, key: Term) -> u32 {
    if level & 7 != 0 {
        hx >> 4
    } else {
        map_key(key, level >> 3)
    }
}

/// The hash of `key` at `level`.
fn hash_at(level: u32, key: Term) -> u32 {
    map_key(key, level >> 3) >> (4 * (level & 7))
}

#[inline(always)]
fn slot_of(bm: u16, bit: u16) -> usize {
    (bm & (bit - 1)).count_ones() as usize
}

/// Makes a node: a root if `size` is given. `children` yields as many terms as `bm` has bits.
fn make_node<A: Alloc + ?Sized>(
    a: &mut A,
    size: Option<usize>,
    bm: u16,
    children: impl Iterator<Item = Term>,
) -> Term {
    let n = bm.count_ones() as usize;
    let head = if size.is_some() { 2 } else { 1 };
    let p = a.alloc(head + n);
    // SAFETY: the head and n fresh words are all written; NIL fills in if the iterator is too
    // short.
    unsafe {
        let w = p as *mut u64;
        match size {
            Some(s) => {
                w.write(if bm == 0xFFFF {
                    HASHMAP_ARRAY_HEADER
                } else {
                    hashmap_root_header(bm)
                });
                w.add(1).write(s as u64);
            }
            None => w.write(hashmap_node_header(bm)),
        }
        let mut it = children;
        for i in 0..n {
            p.add(head + i).write(it.next().unwrap_or(NIL));
        }
        Term::boxed_at(p)
    }
}

fn find_flat(keys: &[Term], key: Term) -> Option<usize> {
    if key.is_immed() {
        return keys.iter().position(|&k| k == key);
    }
    // Binaries, such as the keys of documents, mostly differ in length.
    let Some(bytes) = whole_bytes(key) else {
        return match key.as_tuple() {
            Some(elements) => keys.iter().position(|&k| is_tuple_of(k, key, elements)),
            None if key.is_list_ptr() => keys.iter().position(|&k| is_list(k, key)),
            None => keys.iter().position(|&k| eq_exact(k, key)),
        };
    };
    keys.iter().position(|&k| match k.as_bits() {
        Some(b) => match b.as_bytes() {
            Some(x) => x == bytes,
            None => b.bit_len == bytes.len() * 8 && eq_exact(k, key),
        },
        None => false,
    })
}

/// Whether `k` equals the list `key`. Most lists that are keys have immediate elements.
#[inline]
fn is_list(mut k: Term, mut key: Term) -> bool {
    while k != key {
        let (Some((a, s)), Some((b, t))) = (k.as_cons(), key.as_cons()) else {
            return eq_exact(k, key);
        };
        if a != b && !eq_exact(a, b) {
            return false;
        }
        (k, key) = (s, t);
    }
    true
}

/// Whether `k` equals the tuple `key`, which has these elements. Most differing keys of a map
/// differ in an immediate element.
#[inline]
fn is_tuple_of(k: Term, key: Term, elements: &[Term]) -> bool {
    if k == key {
        return true;
    }
    let Some(other) = k.as_tuple() else {
        return false;
    };
    if other.len() != elements.len() {
        return false;
    }
    // Most differ in the last one: names come before numbers.
    if let (Some(a), Some(b)) = (other.last(), elements.last())
        && a != b
        && (a.is_immed() || b.is_immed())
    {
        return false;
    }
    let differs = other.iter().zip(elements).find(|(a, b)| a != b);
    match differs {
        None => true,
        Some((a, b)) => !a.is_immed() && !b.is_immed() && eq_exact(k, key),
    }
}

/// The bytes of a byte-aligned binary; None for any other term.
#[inline]
fn whole_bytes<'a>(t: Term) -> Option<&'a [u8]> {
    t.as_bits()?.as_bytes()
}

/// The hash by which tree maps find a key.
#[inline]
pub(crate) fn key_hash(key: Term) -> u32 {
    map_key(key, 0)
}

/// The value of `key`. None also if `map` is no map.
#[inline]
pub fn get(map: Term, key: Term) -> Option<Term> {
    if let Some((ks, vs)) = map.as_flatmap() {
        return find_flat(ks, key).map(|i| vs[i]);
    }
    if !map.is_map() {
        return None;
    }
    if !key.is_immed() {
        return get_tree(map, key, key_hash(key));
    }
    let at = get_immediate(map, key);
    // SAFETY: the value in a leaf.
    (!at.is_null()).then(|| unsafe { *at })
}

/// The address of the value of an immediate key in a tree; null if there is none. The fewer
/// instructions this takes, the sooner the processor comes to the next one that has to wait for
/// memory.
fn get_immediate(map: Term, key: Term) -> *const Term {
    // As in `get_tree`.
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has the instruction.
        return unsafe { get_immediate_popcnt(map, key) };
    }
    walk_immediate(map, key)
}

/// As [`walk_immediate`], compiled for processors that count bits in one instruction.
///
/// # Safety
/// The processor has the instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
unsafe fn get_immediate_popcnt(map: Term, key: Term) -> *const Term {
    walk_immediate(map, key)
}

#[inline(always)]
fn walk_immediate(map: Term, key: Term) -> *const Term {
    const NONE: *const Term = std::ptr::null();
    let mut hx = key_hash(key);
    // SAFETY: a map in hand is well formed: a node has a word for each bit of its bitmap.
    unsafe {
        let mut p = map.ptr().add(1) as *const Term;
        let mut bm = (*p.sub(1)).raw() >> 16;
        for _ in 0..LEVELS {
            let bit = 1u64 << (hx & 15);
            if bm & bit == 0 {
                return NONE;
            }
            // The children are behind the word at `p`, which is the size of a root and the header
            // of any other node.
            let at = *p.add(1 + (bm & (bit - 1)).count_ones() as usize);
            p = at.ptr();
            if at.is_list_ptr() {
                return if *p == key { p.add(1) } else { NONE };
            }
            bm = (*p).raw() >> 16;
            hx >>= 4;
        }
    }
    deep_immediate(map, key)
}

/// As [`walk_immediate`], for a key that shares all of its first hash with another.
#[cold]
#[inline(never)]
fn deep_immediate(map: Term, key: Term) -> *const Term {
    // SAFETY: a map in hand is well formed: a node has a word for each bit of its bitmap.
    unsafe {
        let mut p = map.ptr() as *const Term;
        let (mut head, mut level, mut hx) = (2, 0, key_hash(key));
        loop {
            let bm = map_bitmap((*p).raw());
            let bit = 1u16 << (hx & 15);
            if bm & bit == 0 {
                return std::ptr::null();
            }
            let at = *p.add(head + slot_of(bm, bit));
            p = at.ptr();
            if at.is_list_ptr() {
                return if *p == key {
                    p.add(1)
                } else {
                    std::ptr::null()
                };
            }
            head = 1;
            level += 1;
            hx = descend(hx, level, key);
        }
    }
}

fn get_tree(map: Term, key: Term, hx: u32) -> Option<Term> {
    // The first instruction set of this architecture counts bits in a dozen instructions, every
    // processor since 2008 in one; each step down the tree has such a count, and the next step
    // waits for it.
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has the instruction.
        return unsafe { get_tree_popcnt(map, key, hx) };
    }
    walk_tree(map, key, hx)
}

/// As [`walk_tree`], compiled for processors that count bits in one instruction.
///
/// # Safety
/// The processor has the instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
unsafe fn get_tree_popcnt(map: Term, key: Term, hx: u32) -> Option<Term> {
    walk_tree(map, key, hx)
}

#[inline(always)]
fn walk_tree(map: Term, key: Term, mut hx: u32) -> Option<Term> {
    // SAFETY: `map` is the root of a hash map: two words, then as many children as its bitmap has
    // bits. The bit that is looked at is set, so its child is one of them. Inner nodes have one
    // word before the children, leaves are cons cells.
    unsafe {
        let mut p = map.ptr();
        let mut head = 2;
        let mut level = 0;
        loop {
            let bm = u32::from(map_bitmap((*p).raw()));
            let bit = 1u32 << (hx & 15);
            if bm & bit == 0 {
                return None;
            }
            let at = *p.add(head + (bm & (bit - 1)).count_ones() as usize);
            p = at.ptr();
            if at.is_list_ptr() {
                let k = *p;
                return (k == key || !key.is_immed() && eq_exact(k, key)).then(|| *p.add(1));
            }
            head = 1;
            level += 1;
            hx = descend(hx, level, key);
        }
    }
}

pub fn contains(map: Term, key: Term) -> bool {
    get(map, key).is_some()
}

/// Number of pairs in `map`; 0 if it is no map.
#[inline]
pub fn size(map: Term) -> usize {
    map.map_size().unwrap_or(0)
}

/// `map` with `key` set to `value`. `map` must be a map.
pub fn put<A: Alloc + ?Sized>(a: &mut A, map: Term, key: Term, value: Term) -> Term {
    match map.as_flatmap() {
        Some((ks, vs)) => match find_flat(ks, key) {
            Some(i) => flat_set(a, map, vs, i, value),
            None => flat_insert(a, ks, vs, key, value),
        },
        None => tree_set(a, map, key, value, true).unwrap_or(map),
    }
}

/// `map` with the value of `key` replaced; None if the key is missing. `map` must be a map.
pub fn update<A: Alloc + ?Sized>(a: &mut A, map: Term, key: Term, value: Term) -> Option<Term> {
    match map.as_flatmap() {
        Some((ks, vs)) => find_flat(ks, key).map(|i| flat_set(a, map, vs, i, value)),
        None => tree_set(a, map, key, value, false),
    }
}

/// Returns `map` with the values of several keys put in, in their order, in one copy. None if it is
/// no flat map, would not be one afterwards, or (`exact`) if a key is missing; then nothing was
/// made.
pub fn put_all<A: Alloc + ?Sized>(
    a: &mut A,
    map: Term,
    pairs: &[(Term, Term)],
    exact: bool,
) -> Option<Term> {
    let (ks, vs) = map.as_flatmap()?;
    let mut values: SmallVec<[Term; FLATMAP_LIMIT]> = SmallVec::from_slice(vs);
    // All keys, if some are new.
    let mut keys: Option<SmallVec<[Term; FLATMAP_LIMIT]>> = None;
    for &(k, v) in pairs {
        let all = keys.as_deref().unwrap_or(ks);
        match find_flat(all, k) {
            Some(i) => values[i] = v,
            None if exact || all.len() >= FLATMAP_LIMIT => return None,
            None => {
                let i = place_of(all, k);
                keys.get_or_insert_with(|| SmallVec::from_slice(ks))
                    .insert(i, k);
                values.insert(i, v);
            }
        }
    }
    if let Some(keys) = keys {
        return Some(a.flatmap(&keys, &values));
    }
    if values[..] == *vs {
        return Some(map);
    }
    // SAFETY: word 2 of a flat map is its tuple of keys.
    let keys = unsafe { *map.ptr().add(2) };
    Some(a.flatmap_with_keys(keys, &values))
}

/// The position for a key that is not in a flat map.
fn place_of(keys: &[Term], key: Term) -> usize {
    if key.is_atom() && release::has(MAP_KEYS_BY_NUMBER) && keys.iter().all(|k| k.is_atom()) {
        let below = |&&k: &&Term| atom::cmp_made(k, key).is_lt();
        return keys.iter().filter(below).count();
    }
    keys.partition_point(|&k| cmp_keys(k, key) == Ordering::Less)
}

fn flat_set<A: Alloc + ?Sized>(a: &mut A, map: Term, vs: &[Term], i: usize, value: Term) -> Term {
    if vs[i] == value {
        return map;
    }
    let p = a.alloc(FLATMAP_HEAD_WORDS + vs.len());
    // SAFETY: as many fresh words as the map has are all written.
    unsafe {
        copy_few(map.ptr(), p, FLATMAP_HEAD_WORDS);
        let values = p.add(FLATMAP_HEAD_WORDS);
        copy_few(vs.as_ptr(), values, vs.len());
        values.add(i).write(value);
        Term::boxed_at(p)
    }
}

/// Copies a number of words for which a call of the C library would cost more.
///
/// # Safety
/// `from` has `n` words, and `to` room for them.
#[inline(always)]
unsafe fn copy_few(from: *const Term, to: *mut Term, n: usize) {
    for i in 0..n {
        // SAFETY: by the contract. Volatile, because the compiler turns a plain loop into that
        // call.
        unsafe { to.add(i).write_volatile(*from.add(i)) }
    }
}

/// Copies the words of `from` and inserts `word` as number `i`.
///
/// # Safety
/// `to` has room for one word more than `from` has.
#[inline(always)]
unsafe fn copy_with(from: &[Term], i: usize, word: Term, to: *mut Term) {
    let (before, behind) = from.split_at(i);
    // SAFETY: by the contract, `to` has room for one word more than `from` has.
    unsafe {
        copy_few(before.as_ptr(), to, i);
        to.add(i).write(word);
        copy_few(behind.as_ptr(), to.add(i + 1), behind.len());
    }
}

/// The order in which a flat map holds its keys.
#[inline]
pub fn cmp_keys(a: Term, b: Term) -> Ordering {
    if a.is_atom() && b.is_atom() {
        return match release::has(MAP_KEYS_BY_NUMBER) {
            true => atom::cmp_made(a, b),
            false => atom::cmp(a, b),
        };
    }
    if let (Some(x), Some(y)) = (a.as_tuple(), b.as_tuple()) {
        // Most differ in a small integer.
        let differ = x.iter().zip(y).find(|(p, q)| p != q);
        return match differ {
            Some((p, q)) if x.len() == y.len() && p.is_small() && q.is_small() => {
                p.small_value().cmp(&q.small_value())
            }
            _ => cmp_exact(a, b),
        };
    }
    if let (Some(x), Some(y)) = (whole_bytes(a), whole_bytes(b)) {
        return x.cmp(y);
    }
    cmp_exact(a, b)
}

fn flat_insert<A: Alloc + ?Sized>(
    a: &mut A,
    ks: &[Term],
    vs: &[Term],
    key: Term,
    value: Term,
) -> Term {
    if ks.len() >= FLATMAP_LIMIT {
        let mut leaves: Vec<(u32, Term)> = Vec::with_capacity(ks.len() + 1);
        for (&k, &v) in ks.iter().zip(vs) {
            leaves.push((key_hash(k), a.cons(k, v)));
        }
        leaves.push((key_hash(key), a.cons(key, value)));
        return build_root(a, leaves);
    }
    let (i, n) = (place_of(ks, key), ks.len() + 1);
    let p = a.alloc(1 + n + FLATMAP_HEAD_WORDS + n);
    // SAFETY: `n + 1` fresh words for the tuple of keys, and those of the map behind it, are all
    // written.
    unsafe {
        (p as *mut u64).write(header(Subtag::Tuple, n));
        copy_with(ks, i, key, p.add(1));
        let m = p.add(1 + n);
        (m as *mut u64).write(FLATMAP_HEADER);
        (m.add(MAP_SIZE) as *mut u64).write(n as u64);
        m.add(FLATMAP_KEYS).write(Term::boxed_at(p));
        copy_with(vs, i, value, m.add(FLATMAP_HEAD_WORDS));
        Term::boxed_at(m)
    }
}

/// The nodes from the root to a leaf: node, bit taken and slot.
type Path = SmallVec<[(Term, u16, usize); 8]>;

/// Levels that the first hash of a key covers.
const LEVELS: usize = MAP_LEVELS;

/// The nodes from a root to the place of a key.
struct Way {
    /// For each node its address, its words, and the index of the word to the next one.
    nodes: [(*const Term, usize, usize); LEVELS],
    count: usize,
    /// Words of all nodes.
    words: usize,
    /// The bits of the hash that are left after them.
    left: u32,
    end: End,
}

/// The end of a [`Way`], at its last node.
enum End {
    /// The leaf of the key, with its value.
    Value(Term),
    /// Nothing: the node has no child there.
    Gap,
    /// The leaf of another key.
    Leaf(Term),
    /// Another node.
    Node,
}

#[inline(always)]
fn walk_way(map: Term, key: Term, hx: u32) -> Way {
    let mut way = Way {
        nodes: [(std::ptr::null(), 0, 0); LEVELS],
        count: 0,
        words: 0,
        left: hx,
        end: End::Node,
    };
    // SAFETY: a map in hand is well formed: a node has a word for each bit of its bitmap.
    unsafe {
        let mut p = map.ptr() as *const Term;
        let mut head = 2;
        for place in &mut way.nodes {
            let bm = u32::from(map_bitmap((*p).raw()));
            let bit = 1u32 << (way.left & 15);
            let slot = head + (bm & (bit - 1)).count_ones() as usize;
            let words = head + bm.count_ones() as usize;
            *place = (p, words, slot);
            way.count += 1;
            way.words += words;
            if bm & bit == 0 {
                way.end = End::Gap;
                break;
            }
            way.left >>= 4;
            let at = *p.add(slot);
            p = at.ptr();
            if at.is_list_ptr() {
                let same = *p == key || !key.is_immed() && eq_exact(*p, key);
                way.end = if same {
                    End::Value(*p.add(1))
                } else {
                    End::Leaf(at)
                };
                break;
            }
            head = 1;
        }
    }
    way
}

/// As [`walk_way`], compiled for processors that count bits in one instruction.
///
/// # Safety
/// The processor has the instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
unsafe fn walk_way_popcnt(map: Term, key: Term, hx: u32) -> Way {
    walk_way(map, key, hx)
}

fn way_to(map: Term, key: Term, hx: u32) -> Way {
    // As in `get_tree`.
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has the instruction.
        return unsafe { walk_way_popcnt(map, key, hx) };
    }
    walk_way(map, key, hx)
}

/// The header of a node with one child more, at `bit` of its bitmap.
fn with_child(header: u64, bit: u16) -> u64 {
    let bm = map_bitmap(header) | bit;
    match map_kind(header) {
        MAP_NODE => hashmap_node_header(bm),
        _ if bm == 0xFFFF => HASHMAP_ARRAY_HEADER,
        _ => hashmap_root_header(bm),
    }
}

/// [`tree_set`] if the key's first hash leads to its place, and differs from that of the key whose
/// leaf is there. Then the nodes on the way are copied as they are, all at once. Otherwise the
/// outer `None`.
fn tree_set_at_once<A: Alloc + ?Sized>(
    a: &mut A,
    map: Term,
    key: Term,
    value: Term,
    insert: bool,
) -> Option<Option<Term>> {
    let way = way_to(map, key, key_hash(key));
    let mine = way.left & 15;
    // Words behind the nodes: a leaf, and new nodes beside it. Then the number of added pairs, and
    // the slot of the other leaf.
    let (more, grown, its) = match way.end {
        End::Value(v) if v == value => return Some(Some(map)),
        End::Value(_) => (2, 0, 0),
        _ if !insert && !matches!(way.end, End::Node) => return Some(None),
        End::Gap => (2 + 1, 1, 0),
        End::Leaf(at) if way.count < LEVELS => {
            let (other, _) = at.as_cons()?;
            let its = hash_at(way.count as u32, other) & 15;
            if its == mine {
                return None;
            }
            (2 + 3, 1, its)
        }
        _ => return None,
    };
    let start = a.alloc(way.words + more);
    // SAFETY: the fresh words are all written: each node on the way, pointing to what comes behind
    // it, then a new node if there is one, then the leaf. `at` is the leaf of another key.
    unsafe {
        let mut p = start;
        let gap = matches!(way.end, End::Gap);
        let last = way.count - 1;
        for (i, &(from, words, slot)) in way.nodes[..way.count].iter().enumerate() {
            let new = usize::from(gap && i == last);
            for w in 0..slot {
                p.add(w).write(*from.add(w));
            }
            // A replaced child is not copied; a new child has none in its place.
            for w in slot + 1 - new..words {
                p.add(w + new).write(*from.add(w));
            }
            if new == 1 {
                (p as *mut u64).write(with_child((*from).raw(), 1 << mine));
            }
            let next = p.add(words + new);
            p.add(slot).write(match way.end {
                End::Value(_) | End::Gap if i == last => Term::cons_at(next),
                _ => Term::boxed_at(next),
            });
            p = next;
        }
        *(start.add(1) as *mut u64) += grown;
        if let End::Leaf(at) = way.end {
            let leaf = Term::cons_at(p.add(3));
            (p as *mut u64).write(hashmap_node_header(1 << mine | 1 << its));
            p.add(1).write(if mine < its { leaf } else { at });
            p.add(2).write(if mine < its { at } else { leaf });
            p = p.add(3);
        }
        p.write(key);
        p.add(1).write(value);
        Some(Some(Term::boxed_at(start)))
    }
}

fn tree_set<A: Alloc + ?Sized>(
    a: &mut A,
    map: Term,
    key: Term,
    value: Term,
    insert: bool,
) -> Option<Term> {
    if let Some(done) = tree_set_at_once(a, map, key, value, insert) {
        return done;
    }
    let mut path = Path::new();
    let mut at = map;
    let mut hx = key_hash(key);
    let mut level = 0u32;
    let mut grown = 1;
    let mut new;
    loop {
        if let Some((k, v)) = at.as_cons() {
            if eq_exact(k, key) {
                if v == value {
                    return Some(map);
                }
                grown = 0;
                new = a.cons(key, value);
                break;
            }
            if !insert {
                return None;
            }
            // Both leaves go below this place, under one node for each nibble that they still
            // share.
            let mut shared: SmallVec<[u16; 8]> = SmallVec::new();
            let mut other = hash_at(level, k);
            while hx & 15 == other & 15 {
                shared.push(1 << (hx & 15));
                level += 1;
                hx = descend(hx, level, key);
                other = descend(other, level, k);
            }
            let leaf = a.cons(key, value);
            let both = if hx & 15 < other & 15 {
                [leaf, at]
            } else {
                [at, leaf]
            };
            let bm = 1u16 << (hx & 15) | 1 << (other & 15);
            new = make_node(a, None, bm, both.into_iter());
            for bit in shared.into_iter().rev() {
                new = make_node(a, None, bit, std::iter::once(new));
            }
            break;
        }
        let (bm, ch) = node(at);
        let bit = 1u16 << (hx & 15);
        let slot = slot_of(bm, bit);
        path.push((at, bit, slot));
        if bm & bit == 0 {
            if !insert {
                return None;
            }
            new = a.cons(key, value);
            break;
        }
        at = ch[slot];
        level += 1;
        hx = descend(hx, level, key);
    }
    let size = size(map) + grown;
    for (i, (n, bit, slot)) in path.into_iter().enumerate().rev() {
        let (bm, ch) = node(n);
        let skip = slot + (bm & bit != 0) as usize;
        let children = ch[..slot].iter().copied();
        let children = children.chain([new]).chain(ch[skip..].iter().copied());
        new = make_node(a, (i == 0).then_some(size), bm | bit, children);
    }
    Some(new)
}

/// The value of `key`, and `map` without it; None if the key is missing. `map` must be a map.
pub fn take<A: Alloc + ?Sized>(a: &mut A, map: Term, key: Term) -> Option<(Term, Term)> {
    if let Some((ks, vs)) = map.as_flatmap() {
        let i = find_flat(ks, key)?;
        let mut k: SmallVec<[Term; FLATMAP_LIMIT]> = SmallVec::from_slice(ks);
        let mut v: SmallVec<[Term; FLATMAP_LIMIT]> = SmallVec::from_slice(vs);
        k.remove(i);
        v.remove(i);
        return Some((vs[i], a.flatmap(&k, &v)));
    }
    let mut path = Path::new();
    let mut at = map;
    let mut hx = key_hash(key);
    let mut level = 0;
    let value = loop {
        if let Some((k, v)) = at.as_cons() {
            if !eq_exact(k, key) {
                return None;
            }
            break v;
        }
        let (bm, ch) = node(at);
        let bit = 1u16 << (hx & 15);
        if bm & bit == 0 {
            return None;
        }
        let slot = slot_of(bm, bit);
        path.push((at, bit, slot));
        at = ch[slot];
        level += 1;
        hx = descend(hx, level, key);
    };
    let size = size(map) - 1;
    if size <= FLATMAP_LIMIT {
        let mut pairs: SmallVec<[(Term, Term); FLATMAP_LIMIT]> =
            iter(map).filter(|&(k, _)| !eq_exact(k, key)).collect();
        return Some((value, sorted_flat(a, &mut pairs)));
    }
    // The replacement of the removed leaf: nothing, a leaf that moves up, or a new inner node.
    let mut rest: Option<Term> = None;
    for (i, (n, bit, slot)) in path.into_iter().enumerate().rev() {
        let (bm, ch) = node(n);
        let root = (i == 0).then_some(size);
        rest = match rest {
            Some(r) if root.is_none() && ch.len() == 1 && r.is_list_ptr() => Some(r),
            Some(r) => {
                let children = ch[..slot].iter().copied().chain([r]);
                let children = children.chain(ch[slot + 1..].iter().copied());
                Some(make_node(a, root, bm, children))
            }
            None if root.is_none() && ch.len() == 1 => None,
            None if root.is_none() && ch.len() == 2 && ch[1 - slot].is_list_ptr() => {
                Some(ch[1 - slot])
            }
            None => {
                let children = ch[..slot].iter().chain(&ch[slot + 1..]).copied();
                Some(make_node(a, root, bm & !bit, children))
            }
        };
    }
    rest.map(|m| (value, m))
}

/// `map` without `key`, or `map` itself if the key is missing. `map` must be a map.
pub fn remove<A: Alloc + ?Sized>(a: &mut A, map: Term, key: Term) -> Term {
    take(a, map, key).map_or(map, |(_, m)| m)
}

/// The tuple of keys of a flat map; None for anything else.
pub fn tuple_keys(map: Term) -> Option<Term> {
    // SAFETY: word 2 of a flat map is its tuple of keys.
    map.as_flatmap().map(|_| unsafe { *map.ptr().add(2) })
}

/// The children of a tree's root as a list, last one first
/// (`erts_internal:map_hashmap_children/1`); None for anything else. Inner nodes become trees of
/// their own: a program must not get a node that has no size where a root has it.
pub fn children<A: Alloc + ?Sized>(a: &mut A, map: Term) -> Option<Term> {
    if !map.is_map() || map.as_flatmap().is_some() {
        return None;
    }
    let mut v: SmallVec<[Term; 16]> = SmallVec::from_slice(node(map).1);
    v.reverse();
    for t in v.iter_mut().filter(|t| !t.is_list_ptr()) {
        let (bm, below) = node(*t);
        *t = make_node(a, Some(iter(*t).count()), bm, below.iter().copied());
    }
    Some(a.list(&v))
}

/// The shape of a tree.
#[derive(Default, Debug)]
pub struct Shape {
    /// Number of levels below the root.
    pub depth: usize,
    /// Roots with all sixteen children: one or none.
    pub full_roots: usize,
    /// Other nodes by the number of their children, less one.
    pub nodes: [usize; 16],
    /// Leaves by level; those below the last level count there.
    pub leaves: [usize; 16],
}

/// The shape of a tree map; None for a flat map.
pub fn shape(map: Term) -> Option<Shape> {
    if map.as_flatmap().is_some() {
        return None;
    }
    let mut s = Shape::default();
    let mut todo = vec![(map, 0)];
    while let Some((t, level)) = todo.pop() {
        s.depth = s.depth.max(level);
        if t.is_list_ptr() {
            s.leaves[level.min(15)] += 1;
            continue;
        }
        let (_, children) = node(t);
        match children.len() {
            16 if level == 0 => s.full_roots += 1,
            n => s.nodes[n.clamp(1, 16) - 1] += 1,
        }
        todo.extend(children.iter().map(|&c| (c, level + 1)));
    }
    Some(s)
}
