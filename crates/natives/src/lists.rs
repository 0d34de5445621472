//! Natives for lists: those of module `lists`, and `hd`, `tl`, `length`, `++` and `--` of module
//! `erlang`.

use super::iolist::admit_list;
use super::reschedule::{self, Long, MANY, dirty_if};
use crate::cx::{BifResult, Env, Fail};
use crate::errors::with_args;
use crate::exports;
use crate::long;
use purlin_term::compare::{cmp_exact, eq, eq_exact};
use purlin_term::region::{Count, list_length};
use purlin_term::{Alloc, NIL, Term, am, atom, gc};
use std::collections::BTreeMap;

fn hd_1(_cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    l.as_cons().map(|c| c.0).ok_or(Fail::Badarg)
}
fn tl_1(_cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    l.as_cons().map(|c| c.1).ok_or(Fail::Badarg)
}

/// Returns the number of elements of a proper list.
pub fn length(l: Term) -> Option<usize> {
    list_length(l).map(|(n, _)| n)
}

/// Number of cons cells that are counted for one reduction.
const CELLS_PER_REDUCTION: usize = 32;
/// Number of cons cells that are counted in any case, before others run.
const LEAST_CELLS: usize = 4096;

fn length_1(cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    let c = Count::of(l);
    if let Some(n) = c.known() {
        cx.bump(c.front / CELLS_PER_REDUCTION);
        return Ok(Term::small(n as i64));
    }
    go_on(cx, l, c)
}

/// `purlin:length(List, Start, Front, Rest, Cells)`: continues to count a list ([`Count`]).
fn length_5(cx: &mut Env, [l, start, front, rest, cells]: [Term; 5]) -> BifResult {
    let number = |t: Term| t.as_small().and_then(|n| usize::try_from(n).ok());
    let (Some(front), Some(cells)) = (number(front), number(cells)) else {
        return Err(Fail::Badarg);
    };
    let c = Count {
        start,
        front,
        rest,
        cells,
    };
    match go_on(cx, l, c) {
        Err(Fail::Badarg) => {
            let e = cx.error(am::BADARG);
            cx.exc.native = Some((am::ERLANG, atom::intern("length")));
            Err(with_args(cx, e, &[l]))
        }
        r => r,
    }
}

/// Counts for as long as the time slice lasts. If `length/1` is called in a guard, the instruction
/// itself calls the target of this trap.
fn go_on(cx: &mut Env, l: Term, mut c: Count) -> BifResult {
    let most = match cx.proc.is_null() || cx.dirty {
        true => usize::MAX,
        false if gc::stress_roll(2) => 300,
        false => usize::try_from(cx.reds).unwrap_or(0) * CELLS_PER_REDUCTION + LEAST_CELLS,
    };
    let before = c.cells;
    let counted = c.go_on(most);
    cx.bump((c.cells - before + c.front) / CELLS_PER_REDUCTION);
    match counted {
        Some(Some(n)) => Ok(Term::small(n as i64)),
        Some(None) => Err(Fail::Badarg),
        None => {
            let number = |n: usize| Term::small(n as i64);
            let state = [l, c.start, number(c.front), c.rest, number(c.cells)];
            let target = exports::export(atom::intern("purlin"), atom::intern("length"), 5);
            Err(cx.trap(target, &state))
        }
    }
}

fn reverse_2(cx: &mut Env, [l, tail]: [Term; 2]) -> BifResult {
    let n = reschedule::length(cx, l, long!("lists":"reverse"/2).call(&[l, tail]))?;
    admit_list(n)?;
    cx.bump(n / 16);
    if n == 0 {
        return Ok(tail);
    }
    let p = cx.alloc(2 * n);
    let mut res = tail;
    // SAFETY: 2n fresh words, of which each cons cell is written whole; the list has n elements.
    unsafe {
        for (i, h) in l.list_iter().enumerate() {
            let c = p.add(2 * i);
            c.write(h);
            c.add(1).write(res);
            res = Term::cons_at(c);
            reschedule::go_on_at(i)?;
        }
    }
    Ok(res)
}

fn member_2(cx: &mut Env, [e, l]: [Term; 2]) -> BifResult {
    let mut it = l.list_iter();
    let mut n = 0;
    let mut found = false;
    // An immediate only equals itself.
    if e.is_immed() {
        for x in it.by_ref() {
            n += 1;
            if n == MANY {
                dirty_if(cx, long!("lists":"member"/2).call(&[e, l]), || true)?;
            }
            reschedule::go_on_at(n)?;
            if x == e {
                found = true;
                break;
            }
        }
    } else {
        for x in it.by_ref() {
            n += 1;
            if n == MANY {
                dirty_if(cx, long!("lists":"member"/2).call(&[e, l]), || true)?;
            }
            reschedule::go_on_at(n)?;
            if eq_exact(x, e) {
                found = true;
                break;
            }
        }
    }
    cx.bump(n / 16);
    match found {
        true => Ok(am::TRUE),
        false if it.tail().is_nil() => Ok(am::FALSE),
        false => Err(Fail::Badarg),
    }
}

/// Returns the first tuple in `l` whose element `pos` is `==` to `key`.
fn find_key(cx: &mut Env, native: Long<3>, [key, pos, l]: [Term; 3]) -> Result<Option<Term>, Fail> {
    let at = match pos.as_small() {
        Some(v) if v >= 1 => v as usize - 1,
        _ => return Err(Fail::Badarg),
    };
    let mut it = l.list_iter();
    let mut n = 0;
    // Atoms, nil and local pids and ports are only `==` to themselves; a small integer may be `==`
    // to a float.
    let plain = key.is_immed() && !key.is_small();
    for t in it.by_ref() {
        n += 1;
        if n == MANY {
            dirty_if(cx, native.call(&[key, pos, l]), || true)?;
        }
        reschedule::go_on_at(n)?;
        if let Some(&x) = t.as_tuple().and_then(|e| e.get(at))
            && (x == key || (!plain && eq(x, key)))
        {
            cx.bump(n / 16);
            return Ok(Some(t));
        }
    }
    cx.bump(n / 16);
    if it.tail().is_nil() {
        Ok(None)
    } else {
        Err(Fail::Badarg)
    }
}

fn keymember_3(cx: &mut Env, [k, n, l]: [Term; 3]) -> BifResult {
    Ok(Term::bool(
        find_key(cx, long!("lists":"keymember"/3), [k, n, l])?.is_some(),
    ))
}
fn keyfind_3(cx: &mut Env, [k, n, l]: [Term; 3]) -> BifResult {
    Ok(find_key(cx, long!("lists":"keyfind"/3), [k, n, l])?.unwrap_or(am::FALSE))
}
fn keysearch_3(cx: &mut Env, [k, n, l]: [Term; 3]) -> BifResult {
    match find_key(cx, long!("lists":"keysearch"/3), [k, n, l])? {
        Some(t) => Ok(cx.tuple(&[am::VALUE, t])),
        None => Ok(am::FALSE),
    }
}

/// `A ++ B`
pub(crate) fn append_2(cx: &mut Env, [a, b]: [Term; 2]) -> BifResult {
    let n = reschedule::length(cx, a, long!("erlang":"++"/2).call(&[a, b]))?;
    if n == 0 || b.is_nil() {
        return Ok(if n == 0 { b } else { a });
    }
    admit_list(n)?;
    cx.bump(n / 16);
    let p = cx.alloc(2 * n);
    // SAFETY: 2n fresh words, of which each cons cell is written whole; the list has n elements.
    unsafe {
        for (i, h) in a.list_iter().enumerate() {
            reschedule::go_on_at(i)?;
            p.add(2 * i).write(h);
            let next = if i + 1 == n {
                b
            } else {
                Term::cons_at(p.add(2 * i + 2))
            };
            p.add(2 * i + 1).write(next);
        }
        Ok(Term::cons_at(p))
    }
}

/// A term in the order that distinguishes `1` from `1.0`, for trees.
struct Key(Term);
impl PartialEq for Key {
    fn eq(&self, o: &Key) -> bool {
        eq_exact(self.0, o.0)
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, o: &Key) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Key {
    fn cmp(&self, o: &Key) -> std::cmp::Ordering {
        if self.0 == o.0 {
            return std::cmp::Ordering::Equal;
        }
        cmp_exact(self.0, o.0)
    }
}

/// Maximum length of right-hand lists that are searched linearly.
const SHORT: usize = 16;
/// Number of pairs of elements of `A -- B` up to which comparing each pair takes less time than a
/// tree of the elements of `B`.
const FEW_PAIRS: usize = 1024;

/// `A -- B`: removes the first occurrence in `A` of each element of `B`.
pub(crate) fn subtract_2(cx: &mut Env, [a, b]: [Term; 2]) -> BifResult {
    let la = reschedule::length(cx, a, long!("erlang":"--"/2).call(&[a, b]))?;
    let lb = reschedule::length(cx, b, long!("erlang":"--"/2).call(&[a, b]))?;
    if la == 0 || lb == 0 {
        return Ok(a);
    }
    cx.bump((la + lb) / 8);
    let mut kept: smallvec::SmallVec<[Term; SHORT]> = smallvec::SmallVec::with_capacity(la);
    // From here on nothing is left to remove: the result shares the rest of `a`.
    let mut rest = a;
    let mut steps = 0;
    if lb <= SHORT || la.saturating_mul(lb) <= FEW_PAIRS {
        let mut todo: smallvec::SmallVec<[Term; SHORT]> = b.list_iter().collect();
        while let Some((h, t)) = rest.as_cons() {
            steps += 1;
            reschedule::go_on_at(steps)?;
            let found = match h.is_immed() {
                // It only equals itself.
                true => todo.iter().position(|&x| x == h),
                false => todo.iter().position(|&x| x == h || eq_exact(x, h)),
            };
            match found {
                Some(i) => {
                    todo.swap_remove(i);
                }
                None => kept.push(h),
            }
            rest = t;
            if todo.is_empty() {
                break;
            }
        }
    } else {
        // How often each element is to be removed.
        let mut todo: BTreeMap<Key, usize> = BTreeMap::new();
        for x in b.list_iter() {
            steps += 1;
            reschedule::go_on_at(steps)?;
            *todo.entry(Key(x)).or_insert(0) += 1;
        }
        let mut left = lb;
        while let Some((h, t)) = rest.as_cons() {
            steps += 1;
            reschedule::go_on_at(steps)?;
            match todo.get_mut(&Key(h)) {
                Some(n) if *n > 0 => {
                    *n -= 1;
                    left -= 1;
                }
                _ => kept.push(h),
            }
            rest = t;
            if left == 0 {
                break;
            }
        }
    }
    if kept.len() == la {
        return Ok(a);
    }
    admit_list(kept.len())?;
    let tail = if rest.is_list_ptr() { rest } else { NIL };
    Ok(cx.list_tail(&kept, tail))
}

crate::bifs! {
    Guard "erlang":"hd"/1 = hd_1;
    Guard "erlang":"tl"/1 = tl_1;
    Guard "erlang":"length"/1 = length_1;
    Plain "purlin":"length"/5 = length_5;
    Plain "erlang":"++"/2 = append_2 [long];
    Plain "erlang":"append"/2 = append_2 [long];
    Plain "erlang":"--"/2 = subtract_2 [long];
    Plain "erlang":"subtract"/2 = subtract_2 [long];
    Plain "lists":"reverse"/2 = reverse_2 [long];
    Plain "lists":"member"/2 = member_2 [long template(Member)];
    Plain "lists":"keymember"/3 = keymember_3 [long template(KeyMember)];
    Plain "lists":"keyfind"/3 = keyfind_3 [long template(KeyFind)];
    Plain "lists":"keysearch"/3 = keysearch_3 [long];
}
