//! Natives for maps: those of module `maps`, and `map_size`, `map_get`, `is_map_key` of module
//! `erlang`.

use super::errors::{badkey, badmap};
use super::iolist::{admit, admit_list};
use super::reschedule::{self, MANY, dirty_if};
use crate::cx::{BifResult, Env, Fail};
use crate::long;
use purlin_term::{Alloc, Term, am, map};

/// Bytes of an entry of a new large map, its parts of the nodes and of what is sorted included, and
/// its part of the nodes alone.
const ENTRY_BYTES: usize = 32;
const NODE_BYTES: usize = 12;
/// Bytes of the nodes on the way to an entry that is put into a large map.
const PATH_BYTES: usize = 360;

/// Fails if the process may not make a map of `n` entries. The next collection copies it.
fn admit_map(n: usize) -> Result<(), Fail> {
    admit(n.saturating_mul(2 * ENTRY_BYTES))
}

/// Fails with `badmap` unless `m` is a map.
macro_rules! need_map {
    ($cx:expr, $args:expr, $m:expr) => {
        if !$m.is_map() {
            return Err(badmap($cx, $args, $m));
        }
    };
}

fn map_size_1(cx: &mut Env, [m]: [Term; 1]) -> BifResult {
    match m.map_size() {
        Some(n) => Ok(Term::small(n as i64)),
        None => Err(badmap(cx, &[m], m)),
    }
}
fn get_2(cx: &mut Env, [k, m]: [Term; 2]) -> BifResult {
    match map::get(m, k) {
        Some(v) => Ok(v),
        None if m.is_map() => Err(badkey(cx, &[k, m], k)),
        None => Err(badmap(cx, &[k, m], m)),
    }
}
fn is_key_2(cx: &mut Env, [k, m]: [Term; 2]) -> BifResult {
    need_map!(cx, &[k, m], m);
    Ok(Term::bool(map::contains(m, k)))
}
fn find_2(cx: &mut Env, [k, m]: [Term; 2]) -> BifResult {
    need_map!(cx, &[k, m], m);
    match map::get(m, k) {
        Some(v) => Ok(cx.ok(v)),
        None => Ok(am::ERROR),
    }
}
fn from_list_1(cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    reschedule::length(cx, l, long!("maps":"from_list"/1).call(&[l]))?;
    let pair = |t: Term| match t.as_tuple() {
        Some(&[k, v]) => Some((k, v)),
        _ => None,
    };
    let mut n = 0;
    let mut it = l.list_iter();
    for p in it.by_ref() {
        pair(p).ok_or(Fail::Badarg)?;
        n += 1;
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    admit_map(n)?;
    cx.bump(n / 4);
    Ok(map::from_iterators(cx, n, || {
        l.list_iter().filter_map(pair)
    }))
}
fn from_keys_2(cx: &mut Env, [l, v]: [Term; 2]) -> BifResult {
    reschedule::length(cx, l, long!("maps":"from_keys"/2).call(&[l, v]))?;
    let mut it = l.list_iter();
    let n = it.by_ref().count();
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    admit_map(n)?;
    cx.bump(n / 4);
    Ok(map::from_iterators(cx, n, || l.list_iter().map(|k| (k, v))))
}
fn keys_1(cx: &mut Env, [m]: [Term; 1]) -> BifResult {
    need_map!(cx, &[m], m);
    dirty_if(cx, long!("maps":"keys"/1).call(&[m]), || {
        map::size(m) > MANY
    })?;
    admit_list(map::size(m))?;
    cx.bump(map::size(m) / 8);
    Ok(map::keys(cx, m))
}
fn values_1(cx: &mut Env, [m]: [Term; 1]) -> BifResult {
    need_map!(cx, &[m], m);
    dirty_if(cx, long!("maps":"values"/1).call(&[m]), || {
        map::size(m) > MANY
    })?;
    admit_list(map::size(m))?;
    cx.bump(map::size(m) / 8);
    Ok(map::values(cx, m))
}
fn merge_2(cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
    need_map!(cx, &[x, y], x);
    need_map!(cx, &[x, y], y);
    let (m, n) = (map::size(x), map::size(y));
    let effort = map::merge_effort(m, n);
    // Entries are shared. Nodes are new, and copied; those on the way to an entry that is put are
    // new for each.
    admit(match effort < m + n {
        true => effort.saturating_mul(PATH_BYTES),
        false => effort.saturating_mul(2 * NODE_BYTES),
    })?;
    dirty_if(cx, long!("maps":"merge"/2).call(&[x, y]), || effort > MANY)?;
    cx.bump(effort / 8);
    Ok(map::merge(cx, x, y))
}
fn put_3(cx: &mut Env, [k, v, m]: [Term; 3]) -> BifResult {
    need_map!(cx, &[k, v, m], m);
    Ok(map::put(cx, m, k, v))
}
fn remove_2(cx: &mut Env, [k, m]: [Term; 2]) -> BifResult {
    need_map!(cx, &[k, m], m);
    Ok(map::remove(cx, m, k))
}
fn take_2(cx: &mut Env, [k, m]: [Term; 2]) -> BifResult {
    need_map!(cx, &[k, m], m);
    match map::take(cx, m, k) {
        Some((v, rest)) => Ok(cx.tuple(&[v, rest])),
        None => Ok(am::ERROR),
    }
}
fn update_3(cx: &mut Env, [k, v, m]: [Term; 3]) -> BifResult {
    need_map!(cx, &[k, v, m], m);
    match map::update(cx, m, k, v) {
        Some(t) => Ok(t),
        None => Err(badkey(cx, &[k, v, m], k)),
    }
}

crate::bifs! {
    Guard "erlang":"map_size"/1 = map_size_1;
    Guard "erlang":"map_get"/2 = get_2;
    Guard "erlang":"is_map_key"/2 = is_key_2;
    Plain "maps":"get"/2 = get_2;
    Plain "maps":"find"/2 = find_2;
    Plain "maps":"is_key"/2 = is_key_2;
    Plain "maps":"from_list"/1 = from_list_1 [long];
    Plain "maps":"from_keys"/2 = from_keys_2 [long];
    Plain "maps":"keys"/1 = keys_1 [long];
    Plain "maps":"values"/1 = values_1 [long];
    Plain "maps":"merge"/2 = merge_2 [long];
    Plain "maps":"put"/3 = put_3;
    Plain "maps":"remove"/2 = remove_2;
    Plain "maps":"take"/2 = take_2;
    Plain "maps":"update"/3 = update_3;
}
