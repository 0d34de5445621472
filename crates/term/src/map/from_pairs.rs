//! Maps from many pairs at once: sorted for a flat map, by their hashes for a tree.

use super::{cmp_keys, descend, hash_at, key_hash, make_node, put, size};
use crate::alloc::Alloc;
use crate::compare::eq_exact;
use crate::layout::*;
use crate::word::{NIL, Term};
use smallvec::SmallVec;

/// A flat map of distinct pairs, at most [`FLATMAP_LIMIT`].
pub(super) fn sorted_flat<A: Alloc + ?Sized>(a: &mut A, pairs: &mut [(Term, Term)]) -> Term {
    pairs.sort_by(|x, y| cmp_keys(x.0, y.0));
    let k: SmallVec<[Term; FLATMAP_LIMIT]> = pairs.iter().map(|p| p.0).collect();
    let v: SmallVec<[Term; FLATMAP_LIMIT]> = pairs.iter().map(|p| p.1).collect();
    a.flatmap(&k, &v)
}

/// A tree of distinct leaves, more than [`FLATMAP_LIMIT`].
pub(super) fn build_root<A: Alloc + ?Sized>(a: &mut A, mut leaves: Vec<(u32, Term)>) -> Term {
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
