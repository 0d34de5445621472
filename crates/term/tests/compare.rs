//! Equality and order of generated terms, compared with those of a simple model of the same terms.

use purlin_term::frag::Fragment;
use purlin_term::{Alloc, NIL, Term, am, compare, map};
use std::cmp::Ordering;

/// A model of a term. The order of the variants is that of types.
#[derive(Clone, Debug)]
enum Model {
    Integer(i64),
    Float(f64),
    Atom(&'static str),
    Tuple(Vec<Model>),
    /// Values of the keys 1, 2 and so on, shifted by the first field.
    Map(i64, Vec<Model>),
    List(Vec<Model>, Box<Model>),
    Nil,
    Bytes(Vec<u8>),
}
use Model::*;

struct Rng(u64);
impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

fn leaf(r: &mut Rng) -> Model {
    match r.below(6) {
        0 => Integer(r.below(5) as i64 - 2),
        1 => Integer((1 << 59) - 2 + r.below(4) as i64),
        2 => Float(r.below(5) as f64 / 2.0 - 1.0),
        3 => Atom(["error", "false", "ok", "true"][r.below(4)]),
        4 => Nil,
        _ => {
            let n = [0, 1, 3, 7, 8, 9, 16, 17, 30, 70][r.below(10)];
            Bytes((0..n).map(|_| [b'a', b'b', 0, 255][r.below(4)]).collect())
        }
    }
}

fn some(r: &mut Rng, depth: usize) -> Model {
    if depth == 0 || r.below(4) == 0 {
        return leaf(r);
    }
    let n = r.below(4);
    let parts = |r: &mut Rng| (0..n).map(|_| some(r, depth - 1)).collect();
    match r.below(3) {
        0 => Tuple(parts(r)),
        1 => Map(r.below(2) as i64, parts(r)),
        _ if n == 0 => Nil,
        _ => {
            let tail = if r.below(4) == 0 { leaf(r) } else { Nil };
            // Most strings have many equal heads.
            let all = match r.below(3) {
                0 => vec![Integer(97); 20 * n],
                _ => parts(r),
            };
            list(all, tail)
        }
    }
}

/// Lists in lists' tails are one list.
fn list(mut all: Vec<Model>, tail: Model) -> Model {
    match tail {
        List(more, tail) => {
            all.extend(more);
            List(all, tail)
        }
        tail => List(all, Box::new(tail)),
    }
}

/// Changes one place of a term.
fn change(m: &mut Model, r: &mut Rng) {
    match m {
        Tuple(all) | Map(_, all) if !all.is_empty() && r.below(8) > 0 => {
            let i = r.below(all.len());
            change(&mut all[i], r);
        }
        List(all, tail) => match r.below(all.len() + 1) {
            i if i < all.len() => change(&mut all[i], r),
            _ => {
                let all = std::mem::take(all);
                let mut tail = (**tail).clone();
                change(&mut tail, r);
                *m = list(all, tail);
            }
        },
        Bytes(all) if !all.is_empty() && r.below(3) > 0 => {
            let i = r.below(all.len());
            all[i] ^= 1 << r.below(8);
        }
        Integer(v) if r.below(2) == 0 => *m = Float(*v as f64),
        _ => *m = some(r, 1),
    }
}

/// The term of a model. `form` says which of the forms of a binary is made.
fn term(m: &Model, h: &mut Fragment, form: &mut Rng) -> Term {
    match m {
        Integer(v) => h.int(*v),
        Float(f) => h.float(*f),
        Atom("error") => am::ERROR,
        Atom("false") => am::FALSE,
        Atom("ok") => am::OK,
        Atom(_) => am::TRUE,
        Nil => NIL,
        Tuple(all) => {
            let all: Vec<Term> = all.iter().map(|e| term(e, h, form)).collect();
            h.tuple(&all)
        }
        Map(first, all) => {
            let pairs: Vec<(Term, Term)> = (*first..)
                .zip(all)
                .map(|(k, v)| (Term::small(k), term(v, h, form)))
                .collect();
            map::from_pairs(h, &pairs)
        }
        List(all, tail) => {
            let tail = term(tail, h, form);
            all.iter().rev().fold(tail, |tail, e| {
                let head = term(e, h, form);
                h.cons(head, tail)
            })
        }
        Bytes(all) => match form.below(3) {
            0 => {
                // Within a longer binary, behind a byte of another.
                let longer: Vec<u8> = [b"x", &all[..], &[7; 80]].concat();
                let of = h.binary(&longer);
                h.sub_binary(of, 8, all.len() * 8)
            }
            1 => {
                // What lies behind the bytes in their last word is not zero.
                let fill = h.binary(&[0xee; 64]);
                let made = h.binary(all);
                let _ = fill;
                made
            }
            _ => h.binary(all),
        },
    }
}

fn order_all(a: &[Model], b: &[Model], exact: bool) -> Ordering {
    let pairs = a.iter().zip(b).map(|(x, y)| order(x, y, exact));
    pairs.fold(Ordering::Equal, Ordering::then)
}

fn order(a: &Model, b: &Model, exact: bool) -> Ordering {
    let rank = |m: &Model| match m {
        Integer(_) | Float(_) => 0,
        Atom(_) => 1,
        Tuple(_) => 2,
        Map(..) => 3,
        Nil => 4,
        List(..) => 5,
        Bytes(_) => 6,
    };
    match (a, b) {
        (Integer(x), Integer(y)) => x.cmp(y),
        (Float(x), Float(y)) => x.partial_cmp(y).unwrap_or(Ordering::Equal),
        (Integer(_), Float(_)) if exact => Ordering::Less,
        (Float(_), Integer(_)) if exact => Ordering::Greater,
        // All floats are halves of small integers here, or an integer that was made a float.
        (Integer(x), Float(y)) => (2 * i128::from(*x)).cmp(&((2.0 * y) as i128)),
        (Float(_), Integer(_)) => order(b, a, exact).reverse(),
        (Atom(x), Atom(y)) => x.cmp(y),
        (Tuple(x), Tuple(y)) => x.len().cmp(&y.len()).then_with(|| order_all(x, y, exact)),
        (Map(f, x), Map(g, y)) => {
            let keys = if x.is_empty() {
                Ordering::Equal
            } else {
                f.cmp(g)
            };
            x.len()
                .cmp(&y.len())
                .then(keys)
                .then_with(|| order_all(x, y, exact))
        }
        (List(x, p), List(y, q)) => order_all(x, y, exact).then_with(|| {
            let rest = |all: &[Model], n: usize, tail: &Model| match all.len() > n {
                true => List(all[n..].to_vec(), Box::new(tail.clone())),
                false => tail.clone(),
            };
            match x.len() == y.len() {
                true => order(p, q, exact),
                false => {
                    let n = x.len().min(y.len());
                    order(&rest(x, n, p), &rest(y, n, q), exact)
                }
            }
        }),
        (Bytes(x), Bytes(y)) => x.cmp(y),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn check(a: &Model, b: &Model, forms: &mut Rng) {
    let mut h = Fragment::new();
    let (x, y) = (term(a, &mut h, forms), term(b, &mut h, forms));
    let context = || format!("{a:?}\n{b:?}");
    assert_eq!(compare::cmp(x, y), order(a, b, false), "{}", context());
    assert_eq!(compare::cmp(y, x), order(b, a, false), "{}", context());
    assert_eq!(compare::cmp_exact(x, y), order(a, b, true), "{}", context());
    assert_eq!(
        compare::eq(x, y),
        order(a, b, false).is_eq(),
        "{}",
        context()
    );
    assert_eq!(
        compare::eq_exact(x, y),
        order(a, b, true).is_eq(),
        "{}",
        context()
    );
    assert_eq!(
        compare::eq_exact(y, x),
        order(a, b, true).is_eq(),
        "{}",
        context()
    );
    // SAFETY: none of its terms is used any more.
    unsafe { h.destroy() };
}

#[test]
fn equality_and_order_are_those_of_the_model() {
    let mut r = Rng(0x9e37_79b9_7f4a_7c15);
    for i in 0..30_000 {
        let a = some(&mut r, i % 6);
        let mut b = a.clone();
        for _ in 0..r.below(3) {
            change(&mut b, &mut r);
        }
        check(&a, &b, &mut r);
        let c = some(&mut r, i % 4);
        check(&a, &c, &mut r);
    }
}

/// A term around `inner` with `depth` levels of which each has a rest behind the next one.
fn nested(inner: Model, depth: usize, r: &mut Rng) -> Model {
    (0..depth).fold(inner, |m, _| {
        let rest = leaf(r);
        match r.below(3) {
            0 => Tuple(vec![m, rest]),
            1 => Map(0, vec![m, rest]),
            _ => list(vec![m, rest], Nil),
        }
    })
}

/// Changes the last part of the term that lies `level` levels within `m`.
fn change_rest(m: &mut Model, level: usize) {
    if let Tuple(all) | Map(_, all) | List(all, _) = m
        && let Some(last) = all.len().checked_sub(1)
    {
        match level {
            0 => all[last] = Integer(77),
            _ => change_rest(&mut all[0], level - 1),
        }
    }
}

/// Whether what lies at all depths around those that comparisons keep in their frames is compared,
/// and so are the rests around it.
#[test]
fn every_level_is_compared() {
    let mut r = Rng(0x1234_5678_9abc_def1);
    for depth in 0..60 {
        for _ in 0..20 {
            let inner = some(&mut r, 2);
            let mut other = inner.clone();
            change(&mut other, &mut r);
            let seed = 1 + r.below(1 << 30) as u64;
            let a = nested(inner.clone(), depth, &mut Rng(seed));
            let b = nested(other, depth, &mut Rng(seed));
            check(&a, &a, &mut r);
            check(&a, &b, &mut r);
            // A difference in the rests alone.
            let mut c = a.clone();
            let level = r.below(depth + 1);
            change_rest(&mut c, level);
            check(&a, &c, &mut r);
            check(&c, &a, &mut r);
        }
    }
}
