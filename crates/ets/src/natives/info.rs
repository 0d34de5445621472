//! Module `ets`: natives that return information about tables; and the natives of `erts_internal`
//! that look at their binaries.

use super::auto;
use super::debug_locks;
use super::{end, step, there};
use crate::cx::{BifResult, Cx, Fail};
use crate::hash::Which;
use crate::{Gone, Kind, NotFound, Protection, Store, Table, Want, WriteConcurrency, table};
use crate::{bifs, code, lazy_atoms};
use purlin_term::{Alloc, NIL, Term, am, atom, map, node};

lazy_atoms! {
    erts_internal = "erts_internal";
    ets_info_binary = "ets_info_binary";
}

/// The items of `info/1`, last first.
const FIELDS: [&str; 15] = [
    "protection",
    "keypos",
    "type",
    "named_table",
    "node",
    "size",
    "name",
    "heir",
    "owner",
    "memory",
    "compressed",
    "write_concurrency",
    "read_concurrency",
    "decentralized_counters",
    "id",
];

/// The table to describe. `None` if there is none of that name or identity.
fn subject<'a>(cx: &mut Cx, t: Term) -> Result<Option<&'a Table>, Fail> {
    match crate::find(t, NIL, Want::Info) {
        Ok(t) => Ok(Some(t)),
        Err(NotFound::Id) => Ok(None),
        Err(e) => Err(e.raise(cx)),
    }
}

fn info_1(cx: &mut Cx, [tab]: [Term; 1]) -> BifResult {
    let Some(t) = subject(cx, tab)? else {
        return Ok(am::UNDEFINED);
    };
    let mut l = NIL;
    for f in FIELDS {
        let Some(v) = field(cx, t, f) else {
            return Ok(am::UNDEFINED);
        };
        let p = cx.tuple(&[atom::intern(f), v]);
        l = cx.cons(p, l);
    }
    Ok(l)
}

fn info_2(cx: &mut Cx, [tab, item]: [Term; 2]) -> BifResult {
    if item == am::BINARY {
        let target = code::export(erts_internal(), ets_info_binary(), 1);
        return Err(cx.trap(target, &[tab]));
    }
    let Some(t) = subject(cx, tab)? else {
        return Ok(am::UNDEFINED);
    };
    if !item.is_atom() {
        return Err(Fail::Badarg);
    }
    field(cx, t, atom::name(item)).ok_or(Fail::Badarg)
}

/// One item. `None` if it does not exist.
fn field(cx: &mut Cx, t: &Table, name: &str) -> Option<Term> {
    let o = &t.options;
    Some(match name {
        "protection" => match t.protection() {
            Protection::Private => am::PRIVATE,
            Protection::Protected => am::PROTECTED,
            Protection::Public => am::PUBLIC,
        },
        "keypos" => Term::small(o.keypos as i64),
        "type" => match o.kind {
            Kind::Set => am::SET,
            Kind::Bag => am::BAG,
            Kind::DuplicateBag => am::DUPLICATE_BAG,
            Kind::OrderedSet => am::ORDERED_SET,
        },
        "named_table" => Term::bool(o.named),
        "node" => node::this_name(),
        "size" => cx.uint(t.size_and_words().0 as u64),
        "name" => t.name(),
        "heir" => crate::heir_pid(&t.admin()),
        "owner" => t.owner(),
        "memory" => cx.uint(t.size_and_words().1 as u64),
        "compressed" => Term::bool(o.compressed),
        "write_concurrency" => match o.write_concurrency {
            WriteConcurrency::No => am::FALSE,
            WriteConcurrency::Yes => am::TRUE,
            WriteConcurrency::Auto => auto(),
            WriteConcurrency::Locks(n) => {
                let n = 1i64 << n.ilog2().max(6);
                cx.tuple(&[debug_locks(), Term::small(n)])
            }
        },
        "read_concurrency" => Term::bool(o.read_concurrency),
        "decentralized_counters" => Term::bool(o.decentralized_counters),
        "id" => t.tid(cx).unwrap_or(am::UNDEFINED),
        "fixed" => Term::bool(t.is_fixed()),
        "safe_fixed" | "safe_fixed_monotonic_time" => {
            let (by, (monotonic, offset)) = t.fixations();
            if by.is_empty() {
                return Some(am::FALSE);
            }
            let mut l = NIL;
            for (pid, n) in by {
                let p = cx.tuple(&[pid, Term::small(n as i64)]);
                l = cx.cons(p, l);
            }
            let time = if name == "safe_fixed" {
                let micros = monotonic.wrapping_add(offset) / 1000;
                let part = |d: i64, m: i64| Term::small(micros / d % m);
                let (s, u) = (part(1_000_000, 1_000_000), part(1, 1_000_000));
                cx.tuple(&[Term::small(micros / 1_000_000_000_000), s, u])
            } else {
                cx.int(monotonic)
            };
            cx.tuple(&[time, l])
        }
        "stats" => match &t.store {
            Store::Hash(h) => {
                let (mean, dev, expected, min, max, kept) = h.chain_stats();
                let locks = match o.write_concurrency {
                    WriteConcurrency::No => 1,
                    _ => crate::hash::FINE_STRIPES as i64,
                };
                let f = [mean, dev, expected].map(|f| cx.float(f));
                let n = |n: usize| Term::small(n as i64);
                cx.tuple(&[
                    n(h.active()),
                    f[0],
                    f[1],
                    f[2],
                    n(min),
                    n(max),
                    n(kept),
                    Term::small(locks),
                ])
            }
            Store::Tree(_) => am::FALSE,
        },
        _ => return None,
    })
}

/// `{Id, Size, Count}` for each counted binary that the objects with a key refer to.
fn ets_lookup_binary_info_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Read)?;
    let mut found: Vec<(u64, usize, u64)> = Vec::new();
    match &t.store {
        Store::Hash(h) => there!(cx, h.each_kept(key, |o| binaries(o.tuple(), &mut found))),
        Store::Tree(s) => there!(
            cx,
            s.with_key(key, |o| {
                if let Some(o) = o {
                    binaries(o.tuple(), &mut found);
                }
            })
        ),
    }
    let mut l = NIL;
    for (id, size, count) in found {
        let id = cx.uint(id);
        let (size, count) = (cx.uint(size as u64), cx.uint(count));
        let t = cx.tuple(&[id, size, count]);
        l = cx.cons(t, l);
    }
    Ok(l)
}

/// Finds the counted binaries in a term: identity, bytes, holders.
fn binaries(t: Term, out: &mut Vec<(u64, usize, u64)>) {
    let mut todo = vec![t];
    while let Some(t) = todo.pop() {
        if let Some((h, tail)) = t.as_cons() {
            todo.push(tail);
            todo.push(h);
        } else if let Some(e) = t.as_tuple() {
            todo.extend_from_slice(e);
        } else if t.is_map() {
            todo.extend(map::iter(t).flat_map(|(k, v)| [k, v]));
        } else if let Some(f) = t.as_fun() {
            todo.extend_from_slice(f.env);
        } else if let Some(block) = t.block()
            && let Some(b) = t.as_bits()
        {
            // SAFETY: the block lives as long as the term.
            let count = unsafe { (*block).refc.load(std::sync::atomic::Ordering::Relaxed) };
            out.push((block as u64, b.bit_len / 8, count as u64));
        }
    }
}

/// The natives `ets_raw_…` step through a table as `ets` does, but also see objects deleted while
/// it is fixed.
fn ets_raw_first_1(cx: &mut Cx, [tab]: [Term; 1]) -> BifResult {
    end(cx, tab, false, Which::Kept)
}
fn ets_raw_next_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    step(cx, tab, key, false, Which::Kept)
}
fn ets_super_user_1(cx: &mut Cx, [on]: [Term; 1]) -> BifResult {
    let me = cx.self_pid();
    crate::set_super_user(me, on.as_bool().ok_or(Fail::Badarg)?);
    Ok(am::OK)
}

bifs! {
    Plain "ets":"info"/1 = info_1 [reads(Table)];
    Plain "ets":"info"/2 = info_2 [reads(Table)];
    Plain "erts_internal":"ets_lookup_binary_info"/2 = ets_lookup_binary_info_2;
    Plain "erts_internal":"ets_raw_first"/1 = ets_raw_first_1;
    Plain "erts_internal":"ets_raw_next"/2 = ets_raw_next_2;
    Plain "erts_internal":"ets_super_user"/1 = ets_super_user_1;
}
