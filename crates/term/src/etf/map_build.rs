//! A map out of decoded pairs, in any order.

use crate::alloc::Alloc;
use crate::compare::{cmp_exact, eq_exact};
use crate::hash;
use crate::layout::{
    FLATMAP_LIMIT, HASHMAP_ARRAY_HEADER, hashmap_node_header, hashmap_root_header,
};
use crate::word::Term;

/// Two keys were equal.
#[derive(Debug)]
pub struct DuplicateKey;

/// A map of `pairs`: flat up to [`FLATMAP_LIMIT`] pairs, else a hash map.
pub fn from_pairs<A: Alloc + ?Sized>(
    a: &mut A,
    pairs: &mut [(Term, Term)],
) -> Result<Term, DuplicateKey> {
    if pairs.len() <= FLATMAP_LIMIT {
        pairs.sort_by(|x, y| cmp_exact(x.0, y.0));
        if pairs.windows(2).any(|w| eq_exact(w[0].0, w[1].0)) {
            return Err(DuplicateKey);
        }
        let keys: Vec<Term> = pairs.iter().map(|p| p.0).collect();
        let values: Vec<Term> = pairs.iter().map(|p| p.1).collect();
        return Ok(a.flatmap(&keys, &values));
    }
    let mut leaves: Vec<(u32, Term, Term)> = pairs
        .iter()
        .map(|&(k, v)| (hash::map_key(k, 0), k, v))
        .collect();
    node(a, &mut leaves, 0, Some(pairs.len()))
}

/// Deepest level of a tree: keys whose hashes agree in 16 times 32 bits are taken for equal input.
const MAX_LEVEL: u32 = 16 * 8;

/// The node at `level` of the tree that holds `leaves`; the root where `size` is given. Recurses over levels, of
/// which there are [`MAX_LEVEL`] at most and in practice fewer than ten.
fn node<A: Alloc + ?Sized>(
    a: &mut A,
    leaves: &mut [(u32, Term, Term)],
    level: u32,
    size: Option<usize>,
) -> Result<Term, DuplicateKey> {
    let shift = 4 * (level & 7);
    let slot = |h: u32| h >> shift & 15;
    leaves.sort_by_key(|l| slot(l.0));
    let mut children: [Option<Term>; 16] = [None; 16];
    let mut bitmap = 0u16;
    let mut at = 0;
    while at < leaves.len() {
        let s = slot(leaves[at].0);
        let n = leaves[at..].iter().take_while(|l| slot(l.0) == s).count();
        let group = &mut leaves[at..at + n];
        children[s as usize] = Some(if n == 1 {
            a.cons(group[0].1, group[0].2)
        } else {
            if n == 2 && eq_exact(group[0].1, group[1].1) || level + 1 >= MAX_LEVEL {
                return Err(DuplicateKey);
            }
            if (level + 1) & 7 == 0 {
                // All bits are used up. Equal keys would go on forever; the rest is told apart by other hashes.
                let (first, rest) = match group.split_first() {
                    Some(x) => x,
                    None => return Err(DuplicateKey),
                };
                if rest.iter().any(|l| eq_exact(l.1, first.1)) {
                    return Err(DuplicateKey);
                }
                for l in group.iter_mut() {
                    l.0 = hash::map_key(l.1, (level + 1) >> 3);
                }
            }
            node(a, group, level + 1, None)?
        });
        bitmap |= 1 << s;
        at += n;
    }
    let head = match size {
        Some(_) if bitmap == 0xFFFF => HASHMAP_ARRAY_HEADER,
        Some(_) => hashmap_root_header(bitmap),
        None => hashmap_node_header(bitmap),
    };
    let n = bitmap.count_ones() as usize;
    let first = if size.is_some() { 2 } else { 1 };
    let p = a.alloc(first + n);
    // SAFETY: header, size and all children are written.
    unsafe {
        (p as *mut u64).write(head);
        if let Some(s) = size {
            (p.add(1) as *mut u64).write(s as u64);
        }
        for (i, c) in children.iter().flatten().enumerate() {
            p.add(first + i).write(*c);
        }
        Ok(Term::boxed_at(p))
    }
}
