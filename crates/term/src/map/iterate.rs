//! Iteration over pairs, keys and values, and the steps of `maps:next/1`.

use super::{node, size};
use crate::alloc::Alloc;
use crate::layout::*;
use crate::release::{self, MAPS_LISTED_FORWARD};
use crate::word::Term;
use smallvec::SmallVec;

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
