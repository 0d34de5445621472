//! Making native records and their definitions. Their layout is in `record.rs`.

use crate::alloc::Alloc;
use crate::hash;
use crate::record::{DEFINITION_HEAD, Definition, RECORD_HEAD_WORDS};
use crate::word::{Subtag, Term, header};
use smallvec::SmallVec;

/// The definition of a record with these fields, all atoms. None if one of them occurs twice.
pub fn define<A: Alloc + ?Sized>(
    a: &mut A,
    module: Term,
    name: Term,
    exported: bool,
    keys: &[Term],
) -> Option<Term> {
    let mut order: SmallVec<[usize; 16]> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|&i| keys[i].raw());
    if order.windows(2).any(|w| keys[w[0]] == keys[w[1]]) {
        return None;
    }
    let order: SmallVec<[Term; 16]> = order.iter().map(|&i| Term::small(i as i64)).collect();
    let order = a.tuple(&order);
    let mut parts: SmallVec<[Term; 24]> = SmallVec::new();
    parts.extend([order, Term::small(0), module, name, Term::bool(exported)]);
    parts.extend_from_slice(keys);
    let t = a.tuple(&parts);
    // The hash is that of the tuple of everything behind it: meanwhile its place holds that tuple's
    // header.
    //
    // SAFETY: a tuple that was just made, of which nobody else knows; the place of the hash holds a
    // small integer again before anybody looks at the tuple as a whole.
    unsafe {
        let place = t.ptr().add(2);
        let head = header(Subtag::Tuple, DEFINITION_HEAD - 2 + keys.len());
        place.write(Term::from_raw(head));
        let h = hash::phash2(Term::boxed_at(place));
        place.write(Term::small(i64::from(h)));
    }
    Some(t)
}

/// A record with this definition and these values, one for each of its keys.
///
/// # Panics
/// If there are more or fewer values than keys.
pub fn record<A: Alloc + ?Sized>(a: &mut A, definition: Definition, values: &[Term]) -> Term {
    assert_eq!(definition.keys().len(), values.len(), "values of a record");
    let p = a.alloc(RECORD_HEAD_WORDS + values.len());
    // SAFETY: header, definition and values are all written.
    unsafe {
        let n = RECORD_HEAD_WORDS - 1 + values.len();
        p.write(Term::from_raw(header(Subtag::Record, n)));
        p.add(1).write(definition.term());
        for (i, &v) in values.iter().enumerate() {
            p.add(RECORD_HEAD_WORDS + i).write(v);
        }
        Term::boxed_at(p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atom::intern;
    use crate::compare::{cmp, eq, eq_exact};
    use crate::frag::Fragment;
    use crate::{am, hash};
    use std::cmp::Ordering;

    fn made(f: &mut Fragment, name: &str, exported: bool, fields: &[(&str, i64)]) -> Term {
        let keys: Vec<Term> = fields.iter().map(|(k, _)| intern(k)).collect();
        let values: Vec<Term> = fields.iter().map(|&(_, v)| Term::small(v)).collect();
        let d = define(f, intern("m"), intern(name), exported, &keys).expect("no key twice");
        record(f, Definition::of(d).expect("a definition"), &values)
    }

    #[test]
    fn order_and_hash() {
        let f = &mut Fragment::new();
        let sorted = [
            made(f, "a", false, &[("x", 9), ("y", 9), ("z", 9)]),
            made(f, "r", false, &[]),
            made(f, "r", false, &[("x", 1), ("y", 2)]),
            made(f, "r", false, &[("x", 2), ("y", 1)]),
            made(f, "r", false, &[("y", 0), ("x", 0)]),
            made(f, "r", true, &[]),
            made(f, "s", false, &[]),
        ];
        for (i, &x) in sorted.iter().enumerate() {
            for (j, &y) in sorted.iter().enumerate() {
                assert_eq!(cmp(x, y), i.cmp(&j), "{i} {j}");
                assert_eq!(eq(x, y), i == j);
            }
        }
        let again = made(f, "r", false, &[("x", 1), ("y", 2)]);
        assert!(eq_exact(again, sorted[2]));
        assert_eq!(hash::phash2(again), hash::phash2(sorted[2]));
        assert_eq!(hash::internal(again), hash::internal(sorted[2]));
        let tuple = f.tuple(&[am::TRUE]);
        assert_eq!(cmp(sorted[0], tuple), Ordering::Greater);
        let map = f.flatmap(&[], &[]);
        assert_eq!(cmp(sorted[0], map), Ordering::Less);
    }

    #[test]
    fn fields() {
        let f = &mut Fragment::new();
        let r = made(f, "r", true, &[("zz", 1), ("true", 2), ("aa", 3)]);
        let v = r.as_record().expect("a record");
        assert_eq!(v.get(intern("true")), Some(Term::small(2)));
        assert_eq!(v.get(intern("nope")), None);
        let order: Vec<Term> = v.ordered().map(|(k, _)| k).collect();
        assert!(order.windows(2).all(|w| w[0].raw() < w[1].raw()));
        assert!(!r.is_tuple() && r.as_tuple().is_none() && !r.is_map());
        let x = intern("x");
        assert!(define(f, x, x, false, &[x, am::TRUE, x]).is_none());
    }
}
