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

use crate::alloc::Alloc;
use crate::atom;
use crate::compare::{cmp_exact, eq_exact};
use crate::hash::map_key;
use crate::layout::*;
use crate::release::{self, MAP_KEYS_BY_NUMBER, MAPS_LISTED_FORWARD};
use crate::word::{NIL, Subtag, Term, header};
use smallvec::SmallVec;
use std::cmp::Ordering;

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

/// A flat map of distinct pairs, at most [`FLATMAP_LIMIT`].
fn sorted_flat<A: Alloc + ?Sized>(a: &mut A, pairs: &mut [(Term, Term)]) -> Term {
    pairs.sort_by(|x, y| cmp_keys(x.0, y.0));
    let k: SmallVec<[Term; FLATMAP_LIMIT]> = pairs.iter().map(|p| p.0).collect();
    let v: SmallVec<[Term; FLATMAP_LIMIT]> = pairs.iter().map(|p| p.1).collect();
    a.flatmap(&k, &v)
}

/// A tree of distinct leaves, more than [`FLATMAP_LIMIT`].
fn build_root<A: Alloc + ?Sized>(a: &mut A, mut leaves: Vec<(u32, Term)>) -> Term {
    let size = leaves.len();
    leaves.sort_unstable_by_key(|l| tree_order(l.0));
    build(a, &mut leaves, 0, Some(size))
}

/// A number that orders hashes as their leaves lie in the tree from left to right: by the lowest
/// nibble, then the next.
fn tree_order(hash: u32) -> u32 {
    let b = hash.swap_bytes();
    (b & 0x0F0F_0F0F) << 4 | (b >> 4 & 0x0F0F_0F0F)
}

/// Builds a node of `leaves`, which are in [`tree_order`] of their hashes at `level`, except at a
/// level where keys are hashed anew.
///
/// Recurses once for each level of the tree, whose depth grows with the logarithm of the size: to
/// go eight levels deeper, keys must collide in 32 more bits of hash, and from level 16 on nobody
/// can construct keys that do.
fn build<A: Alloc + ?Sized>(
    a: &mut A,
    leaves: &mut [(u32, Term)],
    level: u32,
    size: Option<usize>,
) -> Term {
    if let (None, &mut [(_, leaf)]) = (size, &mut *leaves) {
        return leaf;
    }
    if level > 0 && level & 7 == 0 {
        leaves.sort_unstable_by_key(|l| tree_order(l.0));
    }
    let mut bm = 0u16;
    let mut children: SmallVec<[Term; 16]> = SmallVec::new();
    let mut start = 0;
    while start < leaves.len() {
        let nibble = leaves[start].0 & 15;
        let end = start + leaves[start..].partition_point(|l| l.0 & 15 == nibble);
        let group = &mut leaves[start..end];
        if group.len() > 1 {
            for (hx, leaf) in group.iter_mut() {
                if let Some((k, _)) = leaf.as_cons() {
                    *hx = descend(*hx, level + 1, k);
                }
            }
        }
        bm |= 1 << nibble;
        children.push(build(a, group, level + 1, None));
        start = end;
    }
    make_node(a, size, bm, children.into_iter())
}

/// A map of `pairs`; the last of those with the same key counts.
pub fn from_pairs<A: Alloc + ?Sized>(a: &mut A, pairs: &[(Term, Term)]) -> Term {
    let (map, _) = from_pairs_counting(a, pairs);
    map
}

/// A map of `pairs`; None if two have the same key.
pub fn from_pairs_unique<A: Alloc + ?Sized>(a: &mut A, pairs: &[(Term, Term)]) -> Option<Term> {
    let (map, unique) = from_pairs_counting(a, pairs);
    unique.then_some(map)
}

/// As [`from_pairs_unique`], for keys that are each followed by their value.
pub fn from_parts_unique<A: Alloc + ?Sized>(a: &mut A, parts: &[Term]) -> Option<Term> {
    let n = parts.len() / 2;
    let (pairs, _) = parts.as_chunks::<2>();
    if n <= FLATMAP_LIMIT && is_in_order(pairs.iter().map(|p| p[0])) {
        let (mut keys, mut values) = ([NIL; FLATMAP_LIMIT], [NIL; FLATMAP_LIMIT]);
        for (i, &[k, v]) in pairs.iter().enumerate() {
            keys[i] = k;
            values[i] = v;
        }
        return Some(a.flatmap(&keys[..n], &values[..n]));
    }
    let pairs: Vec<(Term, Term)> = pairs.iter().map(|p| (p[0], p[1])).collect();
    from_pairs_unique(a, &pairs)
}

/// Whether these are the keys of a flat map in their order there, as those of a map that was taken
/// apart mostly are.
fn is_in_order(mut keys: impl Iterator<Item = Term>) -> bool {
    let Some(mut last) = keys.next() else {
        return true;
    };
    keys.all(|k| {
        let before = std::mem::replace(&mut last, k);
        cmp_keys(before, k).is_lt()
    })
}

fn from_pairs_counting<A: Alloc + ?Sized>(a: &mut A, pairs: &[(Term, Term)]) -> (Term, bool) {
    if pairs.len() <= FLATMAP_LIMIT {
        let mut p: SmallVec<[(Term, Term); FLATMAP_LIMIT]> = SmallVec::from_slice(pairs);
        // Stable: the last of equal keys stays last.
        if !is_in_order(p.iter().map(|p| p.0)) {
            p.sort_by(|x, y| cmp_keys(x.0, y.0));
        }
        let mut k: SmallVec<[Term; FLATMAP_LIMIT]> = SmallVec::new();
        let mut v: SmallVec<[Term; FLATMAP_LIMIT]> = SmallVec::new();
        for &(key, value) in &p {
            match k.last() {
                Some(&l) if eq_exact(l, key) => {
                    // Keys may be equal and still differ, as zeros with and without a sign.
                    k.pop();
                    v.pop();
                    k.push(key);
                    v.push(value);
                }
                _ => {
                    k.push(key);
                    v.push(value);
                }
            }
        }
        return (a.flatmap(&k, &v), k.len() == pairs.len());
    }
    from_many(a, pairs.len(), || pairs.iter().copied())
}

/// As [`from_pairs`], for the `n` pairs that each iterator of `pairs` yields. It makes no copy of
/// them beside the map: for a million pairs that would take as much memory again.
pub fn from_iterators<A, I>(a: &mut A, n: usize, pairs: impl Fn() -> I) -> Term
where
    A: Alloc + ?Sized,
    I: Iterator<Item = (Term, Term)>,
{
    if n <= FLATMAP_LIMIT {
        let few: SmallVec<[(Term, Term); FLATMAP_LIMIT]> = pairs().collect();
        return from_pairs(a, &few);
    }
    from_many(a, n, pairs).0
}

/// A map of more than [`FLATMAP_LIMIT`] pairs, and whether all keys differ.
fn from_many<A, I>(a: &mut A, n: usize, pairs: impl Fn() -> I) -> (Term, bool)
where
    A: Alloc + ?Sized,
    I: Iterator<Item = (Term, Term)>,
{
    if n > u32::MAX as usize {
        let map = pairs().fold(None, |m, (k, v)| match m {
            None => Some(a.flatmap(&[k], &[v])),
            Some(m) => Some(put(a, m, k, v)),
        });
        let map = map.unwrap_or_else(|| a.flatmap(&[], &[]));
        return (map, size(map) == n);
    }
    // Pairs with equal hashes: the later ones come first.
    let mut codes: Vec<u64> = Vec::with_capacity(n);
    codes.extend(
        pairs()
            .enumerate()
            .map(|(i, p)| code_of(key_hash(p.0), i as u32)),
    );
    if !codes.is_sorted() {
        codes.sort_unstable();
    }
    let equal = codes
        .windows(2)
        .filter(|w| w[0] >> 32 == w[1] >> 32)
        .count();
    // Leaves lie in memory in the order of the pairs, which is often the one in which they are
    // looked up later. Leaves of pairs that a later one replaces are left to the collector, unless
    // there are many.
    let leaves = if equal <= n / 4 {
        let at = a.alloc(2 * n);
        for (i, (k, v)) in pairs().enumerate() {
            // SAFETY: room for n cells was just made; all are written.
            unsafe {
                at.add(2 * i).write(k);
                at.add(2 * i + 1).write(v);
            }
        }
        Leaves::All(at)
    } else {
        Leaves::Some(pairs().collect())
    };
    if equal > 0 {
        let mut kept = 0;
        for i in 0..codes.len() {
            let c = codes[i];
            let twin = codes[..kept]
                .iter()
                .rev()
                .take_while(|k| *k >> 32 == c >> 32)
                .any(|&k| eq_exact(leaves.key(k), leaves.key(c)));
            if !twin {
                codes[kept] = c;
                kept += 1;
            }
        }
        codes.truncate(kept);
    }
    let unique = codes.len() == n;
    if codes.len() <= FLATMAP_LIMIT {
        let mut p: SmallVec<[(Term, Term); FLATMAP_LIMIT]> =
            codes.iter().map(|&c| leaves.pair(c)).collect();
        return (sorted_flat(a, &mut p), unique);
    }
    let map = match &leaves {
        Leaves::All(at) => build_coded(a, &codes, &|c| leaf_at(*at, c), 0, Some(codes.len())),
        Leaves::Some(pairs) => {
            // The position of each pair's leaf among those that are made.
            let mut place = vec![u32::MAX; n];
            codes.iter().for_each(|&c| place[index_of(c)] = 0);
            let mut made = 0;
            let at = a.alloc(2 * codes.len());
            for (p, (k, v)) in place.iter_mut().zip(pairs) {
                if *p == 0 {
                    // SAFETY: room for as many cells as there are codes was just made; all are
                    // written.
                    unsafe {
                        at.add(2 * made).write(*k);
                        at.add(2 * made + 1).write(*v);
                    }
                    *p = made as u32;
                    made += 1;
                }
            }
            // SAFETY: cells that were just written.
            let leaf = |c| unsafe { Term::cons_at(at.add(2 * place[index_of(c)] as usize)) };
            build_coded(a, &codes, &leaf, 0, Some(codes.len()))
        }
    };
    (map, unique)
}

/// Pairs of a map that is being made.
enum Leaves {
    /// Cells, one for each pair, which are the leaves.
    All(*mut Term),
    Some(Vec<(Term, Term)>),
}

impl Leaves {
    fn pair(&self, code: u64) -> (Term, Term) {
        match self {
            // SAFETY: all cells were written.
            Leaves::All(at) => unsafe {
                let p = at.add(2 * index_of(code));
                (*p, *p.add(1))
            },
            Leaves::Some(v) => v[index_of(code)],
        }
    }
    fn key(&self, code: u64) -> Term {
        self.pair(code).0
    }
}

/// A number that orders pairs as their leaves lie in the tree, and pairs with the same hash by
/// their index, the last first.
fn code_of(hash: u32, index: u32) -> u64 {
    u64::from(tree_order(hash)) << 32 | u64::from(!index)
}
fn index_of(code: u64) -> usize {
    !(code as u32) as usize
}
fn leaf_at(cells: *mut Term, code: u64) -> Term {
    // SAFETY: the code is that of a pair that has a cell there.
    unsafe { Term::cons_at(cells.add(2 * index_of(code))) }
}

/// As [`build`], for leaves whose [`code_of`] are in order.
fn build_coded<A: Alloc + ?Sized>(
    a: &mut A,
    codes: &[u64],
    leaf: &impl Fn(u64) -> Term,
    level: u32,
    size: Option<usize>,
) -> Term {
    if let (None, &[c]) = (size, codes) {
        return leaf(c);
    }
    if level == 8 {
        let mut leaves: Vec<(u32, Term)> = codes
            .iter()
            .filter_map(|&c| {
                let l = leaf(c);
                l.as_cons().map(|(k, _)| (hash_at(level, k), l))
            })
            .collect();
        return build(a, &mut leaves, level, size);
    }
    let shift = 60 - 4 * level;
    let mut bm = 0u16;
    let mut children: SmallVec<[Term; 16]> = SmallVec::new();
    let mut start = 0;
    while start < codes.len() {
        let nibble = codes[start] >> shift & 15;
        let end = start + codes[start..].partition_point(|c| c >> shift & 15 == nibble);
        bm |= 1 << nibble;
        children.push(build_coded(a, &codes[start..end], leaf, level + 1, None));
        start = end;
    }
    make_node(a, size, bm, children.into_iter())
}

/// `maps:merge/2`: for keys in both, the value of `y` counts. Both must be maps.
pub fn merge<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Term {
    let (nx, ny) = (size(x), size(y));
    if nx == 0 || x == y {
        return y;
    }
    if ny == 0 {
        return x;
    }
    if nx.max(ny) <= FLATMAP_LIMIT
        && let Some(merged) = merge_flat(a, x, y)
    {
        return merged;
    }
    if nx.max(ny) > FLATMAP_LIMIT && few_are_put(nx, ny) {
        return if ny <= nx {
            iter(y).fold(x, |m, (k, v)| put(a, m, k, v))
        } else {
            iter(x).fold(
                y,
                |m, (k, v)| {
                    if contains(y, k) { m } else { put(a, m, k, v) }
                },
            )
        };
    }
    if nx.min(ny) > FLATMAP_LIMIT {
        let mut both = 0;
        let (bm, children) = merge_children(a, x, y, 0, &mut both);
        return make_node(a, Some(nx + ny - both), bm, children.into_iter());
    }
    let pairs: Vec<(Term, Term)> = iter(x).chain(iter(y)).collect();
    from_pairs(a, &pairs)
}

/// Whether to merge two maps of `nx` and `ny` pairs by putting those of the smaller into the other
/// one by one.
fn few_are_put(nx: usize, ny: usize) -> bool {
    nx.min(ny) * 8 <= nx.max(ny)
}

/// Number of pairs that [`merge`] looks at, for maps of `nx` and `ny` pairs.
pub fn merge_effort(nx: usize, ny: usize) -> usize {
    match few_are_put(nx, ny) {
        true => nx.min(ny),
        false => nx + ny,
    }
}

/// Number of pairs in a part of a tree.
fn pairs_in(t: Term) -> usize {
    match t.is_list_ptr() {
        true => 1,
        false => node(t).1.iter().map(|&c| pairs_in(c)).sum(),
    }
}

/// Bitmap and children of the merge of two nodes at `level`. Adds the number of keys in both to
/// `both`; they get the values of `y`.
fn merge_children<A: Alloc + ?Sized>(
    a: &mut A,
    x: Term,
    y: Term,
    level: u32,
    both: &mut usize,
) -> (u16, SmallVec<[Term; 16]>) {
    let ((bx, cx), (by, cy)) = (node(x), node(y));
    let mut children = SmallVec::new();
    let mut rest = bx | by;
    while rest != 0 {
        let bit = rest & rest.wrapping_neg();
        rest ^= bit;
        children.push(match (bx & bit != 0, by & bit != 0) {
            (true, false) => cx[slot_of(bx, bit)],
            (false, _) => cy[slot_of(by, bit)],
            _ => {
                let (p, q) = (cx[slot_of(bx, bit)], cy[slot_of(by, bit)]);
                merge_parts(a, p, q, level + 1, both)
            }
        });
    }
    (bx | by, children)
}

/// Merges two parts of trees at the same place, `level` levels below the roots. The result is one
/// of them if nothing of the other is in it.
fn merge_parts<A: Alloc + ?Sized>(
    a: &mut A,
    x: Term,
    y: Term,
    level: u32,
    both: &mut usize,
) -> Term {
    if x == y {
        *both += pairs_in(x);
        return y;
    }
    let (bm, children) = match (x.as_cons(), y.as_cons()) {
        (None, None) => merge_children(a, x, y, level, both),
        (Some((k, _)), Some((l, _))) => {
            if eq_exact(k, l) {
                *both += 1;
                return y;
            }
            let (p, q) = (hash_at(level, k) & 15, hash_at(level, l) & 15);
            let bm = 1u16 << p | 1 << q;
            let children: SmallVec<[Term; 16]> = match p.cmp(&q) {
                Ordering::Less => SmallVec::from_slice(&[x, y]),
                Ordering::Greater => SmallVec::from_slice(&[y, x]),
                Ordering::Equal => {
                    let below = merge_parts(a, x, y, level + 1, both);
                    SmallVec::from_slice(&[below])
                }
            };
            (bm, children)
        }
        // A leaf and a node: the leaf's key leads to one of the node's children, or to none.
        (at, _) => {
            let (leaf, tree) = if at.is_some() { (x, y) } else { (y, x) };
            let key = leaf.as_cons().map_or(NIL, |l| l.0);
            let bit = 1u16 << (hash_at(level, key) & 15);
            let (bm, there) = node(tree);
            let slot = slot_of(bm, bit);
            let mut children: SmallVec<[Term; 16]> = SmallVec::from_slice(there);
            if bm & bit == 0 {
                children.insert(slot, leaf);
            } else {
                let child = there[slot];
                let (p, q) = if at.is_some() {
                    (leaf, child)
                } else {
                    (child, leaf)
                };
                children[slot] = merge_parts(a, p, q, level + 1, both);
            }
            (bm | bit, children)
        }
    };
    for part in [y, x] {
        if part.is_boxed() && node(part) == (bm, &children[..]) {
            return part;
        }
    }
    make_node(a, None, bm, children.into_iter())
}

/// Merges two flat maps in one walk along both. If all keys are those of one of them, the result
/// shares that map or its keys. None if the result is not flat.
fn merge_flat<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Option<Term> {
    let ((kx, vx), (ky, vy)) = (x.as_flatmap()?, y.as_flatmap()?);
    let mut keys = [NIL; FLATMAP_LIMIT];
    let mut values = [NIL; FLATMAP_LIMIT];
    let (mut i, mut j, mut n) = (0, 0, 0);
    let mut more = false;
    while i < kx.len() || j < ky.len() {
        let order = match (kx.get(i), ky.get(j)) {
            (Some(&k), Some(&l)) if k == l => Ordering::Equal,
            (Some(&k), Some(&l)) => cmp_keys(k, l),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        if n == FLATMAP_LIMIT {
            return None;
        }
        if order == Ordering::Less {
            more = true;
            (keys[n], values[n]) = (kx[i], vx[i]);
        } else {
            (keys[n], values[n]) = (ky[j], vy[j]);
        }
        n += 1;
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    if !more {
        return Some(y);
    }
    let (keys, values) = (&keys[..n], &values[..n]);
    if keys == kx {
        // SAFETY: word 2 of a flat map is its tuple of keys.
        let of_x = unsafe { *x.ptr().add(2) };
        return Some(a.flatmap_with_keys(of_x, values));
    }
    Some(a.flatmap(keys, values))
}

/// Iterator over the pairs of a map in its own order: sorted keys in a flat map, hash order in a
/// tree.
pub struct Iter<'a> {
    flat: Option<(&'a [Term], &'a [Term])>,
    /// Children still to visit, for each level.
    stack: SmallVec<[&'a [Term]; 8]>,
}

/// The pairs of `map`; none if it is no map.
pub fn iter<'a>(map: Term) -> Iter<'a> {
    let flat = map.as_flatmap();
    let mut stack = SmallVec::new();
    if flat.is_none() && map.is_map() {
        stack.push(node(map).1);
    }
    Iter { flat, stack }
}

impl Iterator for Iter<'_> {
    type Item = (Term, Term);
    fn next(&mut self) -> Option<(Term, Term)> {
        if let Some((ks, vs)) = &mut self.flat {
            let (k, v) = (*ks.first()?, *vs.first()?);
            *ks = &ks[1..];
            *vs = &vs[1..];
            return Some((k, v));
        }
        loop {
            let top = self.stack.last_mut()?;
            match top.split_first() {
                None => {
                    self.stack.pop();
                }
                Some((&c, rest)) => {
                    *top = rest;
                    match c.as_cons() {
                        Some(pair) => return Some(pair),
                        None => self.stack.push(node(c).1),
                    }
                }
            }
        }
    }
}

fn listed<A: Alloc + ?Sized>(a: &mut A, map: Term, f: fn((Term, Term)) -> Term) -> Term {
    let mut v: Vec<Term> = iter(map).map(f).collect();
    if map.as_flatmap().is_none() && !release::has(MAPS_LISTED_FORWARD) {
        v.reverse();
    }
    a.list(&v)
}

/// `maps:keys/1`, in its order.
pub fn keys<A: Alloc + ?Sized>(a: &mut A, map: Term) -> Term {
    listed(a, map, |p| p.0)
}

/// `maps:values/1`, in its order.
pub fn values<A: Alloc + ?Sized>(a: &mut A, map: Term) -> Term {
    listed(a, map, |p| p.1)
}

/// The form of the result of [`next`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextKind {
    /// `{K, V, {K2, V2, ... none | [Path | Map]}}`
    Iterator,
    /// `{K, V}` pairs in front of this list, the last one first; if there are more, `Path` and
    /// `Map` in front of those. Since OTP 29 they are taken from the end of the map, so that the
    /// list is in the order of iteration.
    List(Term),
}

/// `erts_internal:map_next/3`: at most `max` pairs (at least one) of `map` from `path` on, and
/// their number. None means `badarg`. A path holds the child to take at each level, four bits each,
/// the root's lowest, counted in the direction in which pairs are taken. In a tree, the first step
/// (path 0) takes at most [`FLATMAP_LIMIT`] pairs.
pub fn next<A: Alloc + ?Sized>(
    a: &mut A,
    path: Term,
    map: Term,
    kind: NextKind,
    max: usize,
) -> Option<(Term, usize)> {
    if !map.is_map() {
        return None;
    }
    if let Some((keys, values)) = map.as_flatmap() {
        return next_flat(a, path, keys, values, kind);
    }
    let digits: SmallVec<[u64; 2]> = match (path.as_small(), path.as_big()) {
        (Some(v), _) => SmallVec::from_slice(&[u64::try_from(v).ok()?]),
        (_, Some((false, d))) => SmallVec::from_slice(d),
        _ => return None,
    };
    let mut max = max.max(1);
    if path == Term::small(0) {
        max = max.min(FLATMAP_LIMIT);
    }
    let backward = matches!(kind, NextKind::List(_)) && release::has(MAPS_LISTED_FORWARD);
    let child = |children: &[Term], i: usize| match backward {
        false => children.get(i).copied(),
        true => children.iter().rev().nth(i).copied(),
    };
    // For each level: the children, and the index of the next one.
    let mut stack: SmallVec<[(&[Term], usize); 8]> = SmallVec::new();
    let mut at = map;
    while !at.is_list_ptr() {
        let level = stack.len();
        let i = digits
            .get(level / 16)
            .map_or(0, |d| d >> (4 * (level % 16))) as usize
            & 15;
        let ch = node(at).1;
        at = child(ch, i)?;
        stack.push((ch, i));
    }
    let mut pairs: Vec<(Term, Term)> = Vec::with_capacity(max.min(size(map)));
    while let Some((ch, i)) = stack.last_mut() {
        let Some(c) = child(ch, *i) else {
            stack.pop();
            if let Some(parent) = stack.last_mut() {
                parent.1 += 1;
            }
            continue;
        };
        match c.as_cons() {
            Some(pair) => {
                if pairs.len() == max {
                    break;
                }
                pairs.push(pair);
                *i += 1;
            }
            None => {
                if pairs.len() == max {
                    break;
                }
                stack.push((node(c).1, 0));
            }
        }
    }
    let mut digits: SmallVec<[u64; 2]> = SmallVec::from_elem(0, stack.len() / 16 + 1);
    for (level, &(_, i)) in stack.iter().enumerate() {
        digits[level / 16] |= (i as u64) << (4 * (level % 16));
    }
    let more = !stack.is_empty();
    let path = a.big(false, &digits);
    let t = match kind {
        NextKind::Iterator => {
            let end = if more {
                a.cons(path, map)
            } else {
                crate::am::NONE
            };
            chain(a, &pairs, end)
        }
        NextKind::List(tail) => {
            let mut t = tail;
            for &(k, v) in &pairs {
                let p = a.tuple(&[k, v]);
                t = a.cons(p, t);
            }
            if more {
                t = a.cons(map, t);
                t = a.cons(path, t);
            }
            t
        }
    };
    Some((t, pairs.len()))
}

/// As [`next`], for a flat map: all pairs at once.
fn next_flat<A: Alloc + ?Sized>(
    a: &mut A,
    path: Term,
    keys: &[Term],
    values: &[Term],
    kind: NextKind,
) -> Option<(Term, usize)> {
    let n = usize::try_from(path.as_small()?).ok()?;
    if n > keys.len() {
        return None;
    }
    let pairs = keys.iter().zip(values).rev();
    let t = match kind {
        NextKind::Iterator => pairs.fold(crate::am::NONE, |rest, (&k, &v)| a.tuple(&[k, v, rest])),
        NextKind::List(tail) => pairs.fold(tail, |rest, (&k, &v)| {
            let pair = a.tuple(&[k, v]);
            a.cons(pair, rest)
        }),
    };
    Some((t, keys.len()))
}

fn chain<A: Alloc + ?Sized>(a: &mut A, pairs: &[(Term, Term)], end: Term) -> Term {
    pairs
        .iter()
        .rev()
        .fold(end, |t, &(k, v)| a.tuple(&[k, v, t]))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frag::Fragment;

    /// Keys constructed so that [`crate::hash::narrow`] gives them the same hash with any salt.
    #[test]
    fn keys_that_collide_in_all_hashes_have_a_tree_that_ends() {
        let mut f = Fragment::new();
        // Mixing the two halves of its word is the same as mixing the header of a 7-tuple.
        let s = Term::small(0xF1BB_CDC8_F1BB_CDCF_u64 as i64 >> 4);
        let n: Vec<Term> = (1..=6).map(Term::small).collect();
        let x = f.tuple(&[s, n[0], n[1], n[2], n[3], n[4], n[5]]);
        let x = f.tuple(&[x, s]);
        let y = f.tuple(&[n[0], n[1], n[2], n[3], n[4], n[5], s]);
        let y = f.tuple(&[s, y]);
        for salt in [0, 1, 77] {
            use crate::hash::narrow;
            assert_eq!(narrow(x, salt), narrow(y, salt));
        }
        let mut pairs: Vec<(Term, Term)> = (0..40).map(|i| (Term::small(i), NIL)).collect();
        pairs.extend([(x, Term::small(1)), (y, Term::small(2))]);
        let at_once = from_pairs(&mut f, &pairs);
        let rest = from_pairs(&mut f, &pairs[..40]);
        let one = put(&mut f, rest, x, Term::small(1));
        let both = put(&mut f, one, y, Term::small(2));
        assert!(eq_exact(at_once, both) && size(both) == 42);
        assert_eq!(get(both, x), Some(Term::small(1)));
        assert_eq!(get(both, y), Some(Term::small(2)));
        let less = remove(&mut f, both, y);
        assert!(eq_exact(less, one) && get(less, y).is_none());
        // SAFETY: no term of it is used afterwards.
        unsafe { f.destroy() };
    }

    #[test]
    fn small_keys_with_the_same_hash_are_told_apart() {
        let mut f = Fragment::new();
        let mut seen = std::collections::HashMap::new();
        let twins: Vec<(i64, i64)> = (0..400_000i64)
            .filter_map(|i| Some((seen.insert(key_hash(Term::small(i)), i)?, i)))
            .collect();
        assert!(!twins.is_empty());
        let others: Vec<(Term, Term)> = (-100..0).map(|i| (Term::small(i), NIL)).collect();
        let start = from_pairs(&mut f, &others);
        for &(a, b) in &twins {
            let (a, b) = (Term::small(a), Term::small(b));
            let one = put(&mut f, start, a, Term::small(1));
            assert_eq!((get(one, a), get(one, b)), (Some(Term::small(1)), None));
            assert!(update(&mut f, one, b, NIL).is_none());
            let both = put(&mut f, one, b, Term::small(2));
            assert_eq!(size(both), 102);
            assert_eq!(get(both, a), Some(Term::small(1)));
            assert_eq!(get(both, b), Some(Term::small(2)));
            let other = update(&mut f, both, a, NIL).unwrap_or(NIL);
            assert_eq!(get(other, a), Some(NIL));
            assert_eq!(get(other, b), Some(Term::small(2)));
            assert!(eq_exact(remove(&mut f, both, b), one));
        }
        // SAFETY: no term of it is used afterwards.
        unsafe { f.destroy() };
    }

    /// Values replaced and pairs added one by one give the same tree as all of them at once.
    #[test]
    fn trees_changed_in_one_piece_are_those_made_at_once() {
        let mut f = Fragment::new();
        let pairs = |n: i64, v: i64| -> Vec<(Term, Term)> {
            (0..n)
                .map(|i| (Term::small(i * 7919), Term::small(v + i)))
                .collect()
        };
        let mut map = from_pairs(&mut f, &pairs(40, 0));
        for (i, (k, v)) in pairs(3000, 5).into_iter().enumerate() {
            let there = i < 40;
            assert_eq!(update(&mut f, map, k, v).is_some(), there);
            let before = map;
            map = put(&mut f, map, k, v);
            assert_eq!(size(map), size(before) + usize::from(!there));
            assert_eq!(put(&mut f, map, k, v), map);
            assert_eq!(get(before, k).is_some(), there);
        }
        let whole = from_pairs(&mut f, &pairs(3000, 5));
        assert!(eq_exact(map, whole));
        let (a, b): (Vec<_>, Vec<_>) = (iter(map).collect(), iter(whole).collect());
        assert!(a.len() == 3000 && a == b);
        // SAFETY: no term of it is used afterwards.
        unsafe { f.destroy() };
    }

    /// Programs only get whole maps: a look-up in an inner node would read beyond its end.
    #[test]
    fn children_are_trees_with_a_size() {
        let mut f = Fragment::new();
        let pairs: Vec<(Term, Term)> = (0..500).map(|i| (Term::small(i), NIL)).collect();
        let map = from_pairs(&mut f, &pairs);
        let mut found = 0;
        let mut todo = vec![map];
        while let Some(t) = todo.pop() {
            if t.is_list_ptr() {
                found += 1;
                continue;
            }
            assert_eq!(size(t), iter(t).count());
            assert!(pairs.iter().all(|p| get(t, p.0).is_none_or(|v| v == NIL)));
            let below = children(&mut f, t);
            todo.extend(below.into_iter().flat_map(Term::list_iter));
        }
        assert_eq!(found, 500);
        // SAFETY: no term of it is used afterwards.
        unsafe { f.destroy() };
    }

    /// Pairs whose keys repeat more and more often, compared with one insertion after another.
    #[test]
    fn maps_of_many_pairs_are_those_of_one_pair_after_another() {
        for (n, keys) in [
            (33, 40),
            (40, 20),
            (5000, 1 << 40),
            (5000, 4000),
            (5000, 50),
        ] {
            let mut f = Fragment::new();
            let pairs: Vec<(Term, Term)> = (0..n)
                .map(|i: i64| {
                    let k = i.wrapping_mul(7919) % keys;
                    let t = Term::small(k);
                    let key = if k % 3 == 0 { f.tuple(&[t, NIL]) } else { t };
                    (key, Term::small(i))
                })
                .collect();
            let none = f.flatmap(&[], &[]);
            let mut differ = true;
            let one_by_one = pairs.iter().fold(none, |m, &(k, v)| {
                differ &= !contains(m, k);
                put(&mut f, m, k, v)
            });
            let at_once = from_pairs(&mut f, &pairs);
            let twice_walked = from_iterators(&mut f, pairs.len(), || pairs.iter().copied());
            assert_eq!(from_pairs_unique(&mut f, &pairs).is_some(), differ);
            for m in [at_once, twice_walked] {
                assert_eq!(size(m), size(one_by_one));
                assert!(eq_exact(m, one_by_one), "{n} pairs of {keys} keys");
                let order = |m| iter(m).map(|(_, v)| v).collect::<Vec<_>>();
                assert_eq!(order(m), order(one_by_one));
            }
            // SAFETY: no term of it is used afterwards.
            unsafe { f.destroy() };
        }
    }
}
