//! `maps:merge/2`: subtrees that only one of both has are shared.

use super::from_pairs::from_pairs;
use super::iterate::iter;
use super::{cmp_keys, contains, hash_at, make_node, node, put, size, slot_of};
use crate::alloc::Alloc;
use crate::compare::eq_exact;
use crate::layout::*;
use crate::word::{NIL, Term};
use smallvec::SmallVec;
use std::cmp::Ordering;

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
/// of them itself if the other adds nothing.
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
