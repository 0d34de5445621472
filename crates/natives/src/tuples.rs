//! Natives of module `erlang` for tuples.

use super::iolist::{admit, admit_list};
use super::reschedule::{self, MANY, dirty_if, is_large};
use crate::cx::{BifResult, Env, Fail};
use crate::long;
use purlin_term::layout::object_words;
use purlin_term::word::{Subtag, header};
use purlin_term::{Alloc, NIL, Term};

/// Maximum size of a tuple that is made by its size, from a list or by `append_element/2`.
pub(crate) const MAX_ARITY: usize = (1 << 24) - 1;

/// Fails if the process may not make a tuple of `n` elements. The next collection copies it.
fn admit_tuple(n: usize) -> Result<(), Fail> {
    admit(n * 16)
}

/// Returns the zero-based position of the one-based `n` in a tuple of `len` elements.
#[inline]
fn position(n: Term, len: usize) -> Result<usize, Fail> {
    match n.as_small() {
        Some(v) if v >= 1 && v as u64 <= len as u64 => Ok(v as usize - 1),
        _ => Err(Fail::Badarg),
    }
}

/// Makes a tuple of the `n` elements of `parts`.
fn build(cx: &mut Env, n: usize, parts: impl Iterator<Item = Term>) -> Term {
    let p = cx.alloc(1 + n);
    // SAFETY: header and elements are written; missing elements are filled with an immediate.
    unsafe {
        p.write(Term::from_raw(header(Subtag::Tuple, n)));
        let mut written = 0;
        for t in parts.take(n) {
            written += 1;
            p.add(written).write(t);
        }
        for i in written + 1..=n {
            p.add(i).write(NIL);
        }
        debug_assert!(written == n && object_words(p) == 1 + n);
        Term::boxed_at(p)
    }
}

/// Makes a tuple of the elements of several slices in order.
fn joined<const N: usize>(cx: &mut Env, parts: [&[Term]; N]) -> Term {
    let n = parts.iter().map(|s| s.len()).sum();
    let p = cx.alloc(1 + n);
    // SAFETY: header and elements are written.
    unsafe {
        p.write(Term::from_raw(header(Subtag::Tuple, n)));
        let mut to = p.add(1);
        for s in parts {
            std::ptr::copy_nonoverlapping(s.as_ptr(), to, s.len());
            to = to.add(s.len());
        }
        debug_assert_eq!(object_words(p), 1 + n);
        Term::boxed_at(p)
    }
}

fn element_2(_cx: &mut Env, [n, t]: [Term; 2]) -> BifResult {
    let e = t.as_tuple().ok_or(Fail::Badarg)?;
    Ok(e[position(n, e.len())?])
}

fn setelement_3(cx: &mut Env, [n, t, v]: [Term; 3]) -> BifResult {
    let e = t.as_tuple().ok_or(Fail::Badarg)?;
    let i = position(n, e.len())?;
    admit_tuple(e.len())?;
    Ok(joined(cx, [&e[..i], &[v], &e[i + 1..]]))
}

fn append_element_2(cx: &mut Env, [t, v]: [Term; 2]) -> BifResult {
    let e = t.as_tuple().ok_or(Fail::Badarg)?;
    if e.len() >= MAX_ARITY {
        return Err(Fail::Badarg);
    }
    admit_tuple(e.len())?;
    Ok(joined(cx, [e, &[v]]))
}

fn insert_element_3(cx: &mut Env, [n, t, v]: [Term; 3]) -> BifResult {
    let e = t.as_tuple().ok_or(Fail::Badarg)?;
    // Without a limit, as in stock.
    let i = position(n, e.len() + 1)?;
    admit_tuple(e.len())?;
    Ok(joined(cx, [&e[..i], &[v], &e[i..]]))
}

fn delete_element_2(cx: &mut Env, [n, t]: [Term; 2]) -> BifResult {
    let e = t.as_tuple().ok_or(Fail::Badarg)?;
    let i = position(n, e.len())?;
    admit_tuple(e.len())?;
    Ok(joined(cx, [&e[..i], &e[i + 1..]]))
}

/// Returns an arity for a new tuple.
fn arity(n: Term) -> Result<usize, Fail> {
    match n.as_small() {
        Some(v) if (0..=MAX_ARITY as i64).contains(&v) => Ok(v as usize),
        _ => Err(Fail::Badarg),
    }
}

fn make_tuple_2(cx: &mut Env, [n, v]: [Term; 2]) -> BifResult {
    let n = arity(n)?;
    let args = [Term::small(n as i64), v];
    dirty_if(cx, long!("erlang":"make_tuple"/2).call(&args), || {
        n > 4 * MANY
    })?;
    admit_tuple(n)?;
    cx.bump(n / 64);
    Ok(build(cx, n, std::iter::repeat_n(v, n)))
}

fn make_tuple_3(cx: &mut Env, [n, v, init]: [Term; 3]) -> BifResult {
    let n = arity(n)?;
    let args = [Term::small(n as i64), v, init];
    dirty_if(cx, long!("erlang":"make_tuple"/3).call(&args), || {
        n > 4 * MANY || is_large(init)
    })?;
    // The items come first.
    admit(n * 24)?;
    let mut items = vec![v; n];
    let mut it = init.list_iter();
    let mut steps = 0;
    for p in it.by_ref() {
        steps += 1;
        let Some(&[i, x]) = p.as_tuple() else {
            return Err(Fail::Badarg);
        };
        items[position(i, n)?] = x;
    }
    cx.bump((n + steps) / 64);
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    Ok(cx.tuple(&items))
}

fn tuple_to_list_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let e = t.as_tuple().ok_or(Fail::Badarg)?;
    dirty_if(cx, long!("erlang":"tuple_to_list"/1).call(&[t]), || {
        e.len() > MANY
    })?;
    admit_list(e.len())?;
    cx.bump(e.len() / 64);
    Ok(cx.list(e))
}

fn list_to_tuple_1(cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    let n = reschedule::length(cx, l, long!("erlang":"list_to_tuple"/1).call(&[l]))?;
    if n > MAX_ARITY {
        return Err(Fail::Badarg);
    }
    admit_tuple(n)?;
    cx.bump(n / 64);
    Ok(build(cx, n, l.list_iter()))
}

fn tuple_size_1(_cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let e = t.as_tuple().ok_or(Fail::Badarg)?;
    Ok(Term::small(e.len() as i64))
}

crate::bifs! {
    Guard "erlang":"element"/2 = element_2 [template(Element)];
    Plain "erlang":"setelement"/3 = setelement_3;
    Plain "erlang":"append_element"/2 = append_element_2;
    Plain "erlang":"insert_element"/3 = insert_element_3;
    Plain "erlang":"delete_element"/2 = delete_element_2;
    Plain "erlang":"make_tuple"/2 = make_tuple_2 [long];
    Plain "erlang":"make_tuple"/3 = make_tuple_3 [long];
    Plain "erlang":"tuple_to_list"/1 = tuple_to_list_1 [long];
    Plain "erlang":"list_to_tuple"/1 = list_to_tuple_1 [long];
    Guard "erlang":"tuple_size"/1 = tuple_size_1;
}
