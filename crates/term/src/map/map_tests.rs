//! Trees whose keys collide, and maps made in several ways.

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
