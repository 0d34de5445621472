//! Holders of binaries and shared regions: the shortest path to each from a process, a table or a
//! persistent term.
//!
//! The processes that hold most binaries are asked, by tasks as in [`super::survey`], to search
//! what they have: registers, stack, dictionary, messages. Tables and persistent terms are searched
//! here, under their locks. Each search ends after [`LOOKED`] terms, and all of them after
//! [`ANSWER_TIME_LIMIT`].

use super::names;
use super::survey::{ANSWER_TIME_LIMIT, Survey};
use crate::json::Json;
use purlin_kernel::cx::Cx;
use purlin_kernel::signal::receive;
use purlin_term::frag::Fragment;
use purlin_term::print::{Style, format_term};
use purlin_term::retaining_paths::{Found, Held, Step, search};
use purlin_term::{Term, atom};
use std::collections::HashMap;
use std::sync::mpsc;
use std::time::Instant;

/// Maximum number of terms searched in a process or table, which takes some 20 milliseconds.
const LOOKED: usize = 200_000;
/// Maximum numbers of messages and objects, and of processes and tables, that are searched.
const MESSAGES: usize = 10_000;
const OBJECTS: usize = 50_000;
const PROCESSES: usize = 32;
const TABLES: usize = 1_000;
const PERSISTENT: usize = 10_000;
/// Minimum size in bytes that is reported, and maximum number of blocks reported for a holder.
const SMALL: usize = 1024;
const OF_ONE: usize = 1_000;
/// Maximum numbers of steps of a path, and of characters of a key.
const STEPS: usize = 12;
const KEY_CHARS: usize = 40;

/// A held block, and the path to it.
struct Way {
    region: bool,
    id: usize,
    bytes: usize,
    used: usize,
    times: usize,
    holder: String,
    path: Vec<String>,
}

/// Paths from one holder, and whether there may be more.
struct Ways {
    list: Vec<Way>,
    stopped: bool,
}

fn show(t: Term) -> String {
    format_term(t, Style::Write, KEY_CHARS)
}

fn step(s: &Step) -> String {
    match *s {
        Step::Element(n, Some(tag)) => format!("element {n} of a tuple {}", show(tag)),
        Step::Element(n, None) => format!("element {n} of a tuple"),
        Step::Item(n) => format!("item {n} of a list"),
        Step::Tail => "tail of a list".into(),
        Step::Value(key) => format!("key {}", show(key)),
        Step::Key => "a key of a map".into(),
        Step::Captured(n, module, function) => {
            let place = format!("{}:{}", atom::name(module), atom::name(function));
            format!("captured variable {n} of a fun of {place}")
        }
    }
}

fn ways(holder: &str, roots: &[String], found: Found) -> Ways {
    let mut held: Vec<Held> = found.held;
    held.retain(|h| h.bytes >= SMALL);
    held.sort_by_key(|h| std::cmp::Reverse(h.bytes));
    let more = held.len() > OF_ONE;
    held.truncate(OF_ONE);
    let list = held.into_iter().map(|h| {
        let mut path: Vec<String> = roots.get(h.root).cloned().into_iter().collect();
        path.extend(h.path.iter().take(STEPS).map(step));
        if h.path.len() > STEPS {
            path.push(format!("{} more steps", h.path.len() - STEPS));
        }
        Way {
            region: h.region,
            id: h.id,
            bytes: h.bytes,
            used: h.used,
            times: h.times,
            holder: holder.to_string(),
            path,
        }
    });
    Ways {
        list: list.collect(),
        stopped: found.stopped || more,
    }
}

/// The name of a frame, in which a reader looks for the variable.
fn frame(place: Option<&purlin_kernel::code::Place>) -> String {
    let Some(p) = place else {
        return "a stack frame".into();
    };
    match atom::name(p.module) {
        module @ ("gen_server" | "gen_statem" | "gen_event") if p.arity > 3 => {
            format!("state of the {module}")
        }
        _ => {
            let function = names::function(p.module, p.function, p.arity);
            match &p.line {
                Some((file, line)) => format!("a variable of {function} at {file}:{line}"),
                None => format!("a variable of {function}"),
            }
        }
    }
}

/// The binaries and regions that the process in the context holds. The process is between two time
/// slices, or at a receive or in a native, where its registers are unknown and count as empty.
fn of_process(cx: &mut Cx, holder: &str) -> Ways {
    let mut roots: Vec<Term> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    let mut place = purlin_kernel::code::find(cx.bif_pc);
    let mut words = Vec::new();
    let (mut p, end) = (cx.heap.stop, cx.heap.hend);
    while !p.is_null() && p < end {
        // SAFETY: words of the stack, between its top and the end of the block.
        words.push(unsafe { *p });
        p = p.wrapping_add(1);
    }
    let live = cx.interp.live.min(cx.x.len());
    for (n, &t) in cx.x[..live].iter().enumerate() {
        roots.push(t);
        said.push(format!("argument {} of what it calls next", n + 1));
    }
    // The first return address is that of the top frame, whose function is the current one.
    let mut first = true;
    let mut name = frame(place.as_ref());
    for t in words {
        let w = t.raw() as usize;
        if t.is_header() && w != 0 {
            if !first {
                name = frame(place.as_ref());
            }
            first = false;
            place = purlin_kernel::code::find((w - 8) as *const u64);
            continue;
        }
        if !t.is_immed() {
            roots.push(t);
            said.push(name.clone());
        }
    }
    if let Some(e) = cx.process().ext() {
        for (k, v) in e.dict.iter() {
            roots.push(v);
            said.push(format!("process dictionary, key {}", show(k)));
        }
    }
    let mut n = 0;
    receive::each_message(cx.process(), |t| {
        n += 1;
        if t != Term::NON_VALUE {
            roots.push(t);
            said.push(format!("message {n} in its mailbox"));
        }
        n < MESSAGES
    });
    ways(holder, &said, search(&roots, LOOKED))
}

fn of_tables(until: Instant) -> (Vec<Ways>, bool) {
    let mut all = Vec::new();
    let mut tables = purlin_ets::all();
    tables.sort_by_key(|t| std::cmp::Reverse(t.size_and_words().1));
    let mut stopped = tables.len() > TABLES;
    for t in tables.iter().take(TABLES) {
        if Instant::now() > until {
            stopped = true;
            break;
        }
        let mut left = LOOKED;
        let mut best: HashMap<usize, Way> = HashMap::new();
        let mut fragment = Fragment::new();
        let id = match t.name().is_atom() {
            true => show(t.name()),
            false => purlin_ets::id(t, &mut fragment).map_or_else(String::new, show),
        };
        // SAFETY: nothing in it is used any more.
        unsafe { fragment.destroy() };
        let holder = format!("table {id} of {}", names::pid(t.owner()));
        let key = t.options.keypos;
        let whole = purlin_ets::each(t, OBJECTS, &mut |object| {
            let found = search(&[object], left);
            left = left.saturating_sub(found.looked);
            stopped |= found.stopped;
            if found.held.is_empty() {
                return;
            }
            let root = object.as_tuple().and_then(|e| e.get(key - 1));
            let root = format!(
                "object with key {}",
                root.map_or_else(String::new, |k| show(*k))
            );
            for w in ways(&holder, &[root], found).list {
                let id = w.id << 1 | usize::from(w.region);
                if let Some(known) = best.get_mut(&id) {
                    known.times += w.times;
                } else if best.len() < OF_ONE {
                    best.insert(id, w);
                }
            }
        });
        all.push(Ways {
            list: best.into_values().collect(),
            stopped: !whole || left == 0,
        });
    }
    (all, stopped)
}

fn of_persistent_terms() -> Ways {
    let mut all = Ways {
        list: Vec::new(),
        stopped: false,
    };
    let mut n = 0;
    let mut left = LOOKED;
    purlin_runtime::natives::persistent::each(|k, v| {
        n += 1;
        let found = search(&[v], left);
        left = left.saturating_sub(found.looked);
        let root = format!("value of {}", show(k));
        let ways = ways("persistent term", &[root], found);
        all.stopped |= ways.stopped;
        all.list.extend(ways.list);
        n < PERSISTENT && left > 0
    });
    all.stopped |= left == 0;
    all
}

/// The held blocks, largest first, each with the shortest path to it and the number of other known
/// paths; and whether there may be more.
fn blocks(survey: &Survey) -> (Vec<(Way, usize)>, bool) {
    let until = Instant::now() + ANSWER_TIME_LIMIT;
    let (tell, told) = mpsc::channel();
    let mut under_way = 0;
    for (pid, holder) in survey.holders(PROCESSES) {
        let tell = tell.clone();
        let task = move |cx: Option<&mut Cx>| {
            let _ = tell.send(cx.map(|cx| of_process(cx, &holder)));
        };
        purlin_kernel::signal::send::run_in(pid, Box::new(task));
        under_way += 1;
    }
    drop(tell);
    let (mut all, mut stopped) = of_tables(until);
    all.push(of_persistent_terms());
    while under_way > 0 {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(ways) = told.recv_timeout(left) else {
            stopped = true;
            break;
        };
        under_way -= 1;
        all.extend(ways);
    }
    stopped |= all.iter().any(|w| w.stopped);
    let mut places: HashMap<(bool, usize), usize> = HashMap::new();
    let mut list: Vec<(Way, usize)> = Vec::new();
    for way in all.into_iter().flat_map(|w| w.list) {
        let i = *places.entry((way.region, way.id)).or_insert(list.len());
        match list.get_mut(i) {
            None => list.push((way, 1)),
            Some((known, holders)) => {
                *holders += 1;
                // Parts that several holders use may be the same.
                let used = known.used.max(way.used);
                if way.path.len() < known.path.len() {
                    *known = way;
                }
                known.used = used;
            }
        }
    }
    list.sort_by_key(|(w, _)| std::cmp::Reverse(w.bytes));
    (list, stopped)
}

/// The largest of these blocks, and whether there may be more.
pub fn held(survey: &Survey, top: usize) -> (Json, bool) {
    let (list, stopped) = blocks(survey);
    let list = list.iter().take(top).map(|(w, n)| json(w, *n));
    (Json::List(list.collect()), stopped)
}

/// Sum of unused bytes from which a holder counts as wasteful, and the ratio of kept to used bytes
/// of its blocks.
const WASTED: usize = 1 << 20;
const MUCH: usize = 16;

/// The holders of binaries of which they use small parts, worst first, and whether there may be
/// more.
pub fn wasted(survey: &Survey, top: usize) -> (Json, bool) {
    let (list, stopped) = blocks(survey);
    let mut holders: HashMap<String, (Way, usize)> = HashMap::new();
    for (way, _) in list {
        if way.region || way.used.saturating_mul(MUCH) >= way.bytes {
            continue;
        }
        match holders.get_mut(&way.holder) {
            None => drop(holders.insert(way.holder.clone(), (way, 1))),
            Some((sum, n)) => {
                sum.bytes += way.bytes;
                sum.used += way.used;
                *n += 1;
            }
        }
    }
    let mut all: Vec<(Way, usize)> = holders.into_values().collect();
    all.retain(|(w, _)| w.bytes - w.used >= WASTED);
    all.sort_by_key(|(w, _)| std::cmp::Reverse(w.bytes - w.used));
    let all = all.into_iter().take(top).map(|(w, n)| {
        let path = w.path.into_iter().map(Json::from).collect();
        Json::object([
            ("holder", w.holder.into()),
            ("binaries", n.into()),
            ("bytes", w.bytes.into()),
            ("used_bytes", w.used.into()),
            ("path", Json::List(path)),
        ])
    });
    (Json::List(all.collect()), stopped)
}

/// Ratio of kept to used bytes from which copying the used part pays.
const WASTE: usize = 4;

fn json(w: &Way, holders: usize) -> Json {
    let wasted = !w.region && w.used.saturating_mul(WASTE) < w.bytes;
    let advice = wasted.then_some("copy the part that is kept (binary:copy/1) before it is stored");
    let path = w.path.iter().map(|s| s.clone().into()).collect();
    Json::object([
        ("what", if w.region { "region" } else { "binary" }.into()),
        ("bytes", w.bytes.into()),
        ("used_bytes", (!w.region).then_some(w.used).into()),
        ("references", w.times.into()),
        ("holders", holders.into()),
        ("holder", w.holder.clone().into()),
        ("path", Json::List(path)),
        ("advice", advice.into()),
    ])
}
