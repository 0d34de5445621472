//! Things that a program has forgotten: processes that cannot be woken, monitors and timers that
//! cannot be cancelled, atoms, binaries kept by small parts, tables that are not read.
//!
//! Processes, monitors and timers are looked at in a copy of the emulator (`waiting.rs`): all of
//! them at one moment. A process is reported only if two such looks agree.

use super::waiting::{self, Found, Pile, Stuck};
use super::{names, roots, survey};
use crate::json::Json;
use purlin_kernel::cx::Cx;
use purlin_kernel::process;
use purlin_kernel::threads::fork;
use purlin_term::frag::Fragment;
use purlin_term::print::{Style, format_term};
use purlin_term::reach::{Name, Reach};
use purlin_term::sync::Mutex;
use purlin_term::{Term, atom};
use std::collections::{HashMap, HashSet};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Maximum time for a look, and maximum number of bytes that it reports.
const LOOK_TIME_LIMIT: Duration = Duration::from_secs(6);
const MOST_BYTES: usize = 64 << 20;
/// Time for which processes may take to say what they know.
const ANSWER_TIME_LIMIT: Duration = Duration::from_secs(1);
/// Maximum number of looks until all processes could be looked at.
const LOOKS: usize = 3;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of processes that are remembered from one answer to the next, and that are asked
/// to describe themselves.
const REMEMBERED: usize = 100_000;
const DESCRIBED: usize = 1000;
/// Maximum number of processes that know a process and are listed with it.
const KNOWN_BY: usize = 5;
/// Number of atoms made by one line from which they are reported.
const ATOMS: u64 = 10_000;
/// Minimum size in bytes of a table that is reported if it is not read, and minimum time for that.
const TABLE: usize = 1 << 20;
const WATCHED: Duration = Duration::from_secs(10);
/// Time after which a new time without reads begins.
const AGAIN: Duration = Duration::from_secs(60);

fn word(t: u64) -> Term {
    // SAFETY: the word of a pid, a port or an atom.
    unsafe { Term::from_raw(t) }
}

/// The findings of a look, the number of processes that could not be looked at, and the time for
/// which processes were stopped.
fn look() -> Result<(Found, usize, Duration), String> {
    let (tell, told) = mpsc::channel();
    // Processes in natives on dirty threads cannot be looked at in the copy. They say what they
    // know before they do anything else.
    let mut asked = 0;
    let meanwhile = || {
        let (cpu, io) = purlin_kernel::sched::dirty_running();
        for pid in cpu.into_iter().chain(io).flatten() {
            let tell = tell.clone();
            let task = move |cx: Option<&mut Cx>| {
                let _ = tell.send(cx.map_or(Vec::new(), known));
            };
            purlin_kernel::signal::send::run_in(pid, Box::new(task));
            asked += 1;
        }
    };
    let answer = fork::ask(LOOK_TIME_LIMIT, MOST_BYTES, meanwhile, waiting::look)?;
    let found = Found::read(&answer.bytes);
    let mut found = found.ok_or("the copy of the emulator has failed")?;
    let until = Instant::now() + ANSWER_TIME_LIMIT;
    let mut alive = Vec::new();
    let mut silent = asked.max(found.running.len());
    for _ in 0..asked {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(pids) = told.recv_timeout(left) else {
            break;
        };
        alive.extend(pids);
        silent -= 1;
    }
    settle(&mut found, alive);
    Ok((found, silent, answer.stopped))
}

/// As [`look`]; looks again if there are processes that could not be looked at.
fn look_well() -> Result<(Found, usize, Duration), String> {
    let mut longest = Duration::ZERO;
    for more in (0..LOOKS).rev() {
        let (found, silent, stopped) = look()?;
        longest = longest.max(stopped);
        if silent == 0 || more == 0 {
            return Ok((found, silent, longest));
        }
        std::thread::sleep(PAUSE);
    }
    Err("no look was made".into())
}

/// Removes from the stuck processes those that are alive because these know them.
fn settle(found: &mut Found, mut todo: Vec<u32>) {
    let mut alive: HashSet<u32> = HashSet::new();
    let mut knows: HashMap<u32, Vec<u32>> = HashMap::new();
    for s in &found.stuck {
        for by in &s.known_by {
            knows.entry(*by).or_default().push(s.pid);
        }
    }
    while let Some(p) = todo.pop() {
        if alive.insert(p) {
            todo.extend(knows.get(&p).into_iter().flatten());
        }
    }
    found.stuck.retain(|s| !alive.contains(&s.pid));
}

/// The pids that the process in the context knows.
fn known(cx: &mut Cx) -> Vec<u32> {
    let mut reach = Reach::default();
    let mut all = Vec::new();
    let pc = cx.bif_pc;
    roots::each(cx, pc, &mut |_, t| {
        reach.visit(t, &mut |name| match name {
            Name::Pid(p) | Name::Ref(_, Some(p)) => all.push(p.pid_data()),
            _ => {}
        });
    });
    waiting::each_tie(cx.process(), &mut |t| {
        if t.is_local_pid() {
            all.push(t.pid_data());
        }
    });
    all
}

/// A process's description of itself.
struct Described {
    pid: Term,
    initial: String,
    waits_at: Json,
    called_from: Json,
    parent: u32,
    /// The first of its ancestors, if `proc_lib` has started it.
    ancestor: Option<String>,
    memory: usize,
}

fn describe(cx: &mut Cx) -> Described {
    let places: Vec<purlin_kernel::code::Place> =
        purlin_kernel::code::stack::addresses(cx, cx.bif_pc, 16)
            .into_iter()
            .enumerate()
            .filter_map(|(i, a)| purlin_kernel::code::stack::place(i, a))
            .collect();
    let shown = |p: &purlin_kernel::code::Place| {
        names::place(p.module, p.function, p.arity, p.line.as_ref())
    };
    let own = places.iter().position(|p| {
        names::is_own(&purlin_kernel::accounts::Frame {
            module: p.module,
            function: p.function,
            arity: p.arity,
            line: None,
        })
    });
    let ancestors = atom::intern("$ancestors");
    let ancestors = cx.process().ext().and_then(|e| e.dict.get(ancestors));
    Described {
        pid: cx.self_pid(),
        initial: survey::initial(cx),
        waits_at: places.first().map_or(Json::Null, shown),
        called_from: own
            .filter(|i| *i > 0)
            .map_or(Json::Null, |i| shown(&places[i])),
        parent: cx.process().parent,
        ancestor: ancestors
            .and_then(|l| l.list_iter().next())
            .filter(|t| t.is_atom() || t.is_local_pid())
            .map(|t| format_term(t, Style::Write, 100)),
        memory: purlin_runtime::natives::process::process_info::memory(cx),
    }
}

/// When each process was reported first.
static REPORTED: Mutex<Option<HashMap<u32, Instant>>> = Mutex::new(None);

/// Seconds since each of these processes was reported first.
fn reported(all: &[Stuck]) -> HashMap<u32, u64> {
    let mut known = REPORTED.lock();
    let before = known.take().unwrap_or_default();
    let now = Instant::now();
    let first = |pid: u32| before.get(&pid).copied().unwrap_or(now);
    let all = all.iter().take(REMEMBERED);
    let next: HashMap<u32, Instant> = all.map(|s| (s.pid, first(s.pid))).collect();
    let ages = next.iter().map(|(p, t)| (*p, t.elapsed().as_secs()));
    let ages = ages.collect();
    *known = Some(next);
    ages
}

fn processes(found: &Found, silent: usize, top: usize) -> Json {
    let ages = reported(&found.stuck);
    let stuck: HashMap<u32, &Stuck> = found.stuck.iter().map(|s| (s.pid, s)).collect();
    let pids: Vec<Term> = found.stuck.iter().map(|s| Term::pid(s.pid)).collect();
    let described = survey::ask(&pids[..pids.len().min(DESCRIBED)], describe);
    let parents: HashSet<u32> = described.iter().map(|d| d.parent).collect();
    let parents: Vec<Term> = parents
        .into_iter()
        .map(Term::pid)
        .filter(|p| process::table().is_alive(*p))
        .collect();
    let named = survey::ask(&parents, |cx| (cx.self_pid(), survey::initial(cx)));
    let parents: HashMap<u32, String> = named
        .into_iter()
        .map(|(p, initial)| {
            let name = survey::registered(p).unwrap_or(initial);
            (p.pid_data(), name)
        })
        .collect();
    let mut kinds: HashMap<(String, String), (usize, usize)> = HashMap::new();
    for d in &described {
        let at = d.waits_at.to_string();
        let kind = kinds.entry((d.initial.clone(), at)).or_default();
        kind.0 += 1;
        kind.1 += d.memory;
    }
    // One of each kind comes first: many are alike.
    let mut seen: HashSet<(&str, String)> = HashSet::new();
    let mut order: Vec<&Described> = described.iter().collect();
    order.sort_by_key(|d| d.pid.pid_data());
    let (mut first, rest): (Vec<&Described>, Vec<&Described>) = order
        .into_iter()
        .partition(|d| seen.insert((&d.initial, d.waits_at.to_string())));
    first.extend(rest);
    let list = first.into_iter().take(top).filter_map(|d| {
        let s = stuck.get(&d.pid.pid_data())?;
        let by = s.known_by.iter().take(KNOWN_BY);
        let by = by.map(|p| names::pid(Term::pid(*p)).into()).collect();
        let (alike, memory) = kinds
            .get(&(d.initial.clone(), d.waits_at.to_string()))
            .copied()
            .unwrap_or_default();
        Some(Json::object([
            ("pid", names::pid(d.pid).into()),
            ("initial_call", d.initial.clone().into()),
            ("waits_at", d.waits_at.clone()),
            ("called_from", d.called_from.clone()),
            ("alike", alike.into()),
            ("memory_bytes", d.memory.into()),
            ("alike_memory_bytes", memory.into()),
            ("waits_s", s.seconds.map(|s| s as usize).into()),
            ("reported_s", ages.get(&s.pid).map(|s| *s as usize).into()),
            ("spawned_by", names::pid(Term::pid(d.parent)).into()),
            ("spawned_by_name", parents.get(&d.parent).cloned().into()),
            ("ancestor", d.ancestor.clone().into()),
            ("known_by", Json::List(by)),
            ("known_by_count", s.known_by.len().into()),
            ("messages", s.messages.into()),
            ("monitors", s.monitors.into()),
            ("monitored_by", s.watchers.into()),
            ("links", s.links.into()),
        ]))
    });
    let list: Vec<Json> = list.collect();
    Json::object([
        ("count", found.processes.into()),
        ("looked_at", found.candidates.into()),
        ("stuck", found.stuck.len().into()),
        ("silent", silent.into()),
        ("objects", found.objects.into()),
        ("top", Json::List(list)),
    ])
}

fn piles(found: &Found, top: usize) -> (Json, Json) {
    let shown = |t: Term| match t.is_local_pid() {
        true => {
            let name = survey::registered(t).map(|n| format!(" {n}"));
            format!("{}{}", names::pid(t), name.unwrap_or_default())
        }
        false => format_term(t, Style::Write, 100),
    };
    let mut all: Vec<&Pile> = found.piles.iter().collect();
    all.sort_by_key(|p| std::cmp::Reverse(p.count));
    let monitors = all.iter().filter_map(|p| {
        Some(Json::object([
            ("by", shown(Term::pid(p.owner?)).into()),
            ("of", shown(word(p.target)).into()),
            ("monitors", p.count.into()),
        ]))
    });
    let timers = all.iter().filter(|p| p.owner.is_none()).map(|p| {
        Json::object([
            ("to", shown(word(p.target)).into()),
            ("timers", p.count.into()),
            ("registered", true.into()),
        ])
    });
    let nameless = found.nameless.iter().map(|(name, n)| {
        Json::object([
            ("to", shown(word(*name)).into()),
            ("timers", (*n).into()),
            ("registered", false.into()),
        ])
    });
    (
        Json::List(monitors.take(top).collect()),
        Json::List(nameless.chain(timers).take(top).collect()),
    )
}

fn atoms(top: usize) -> Json {
    let mut lines: HashMap<String, (Json, u64)> = HashMap::new();
    for (pc, n) in purlin_runtime::natives::atom_makers::all() {
        let place = match purlin_kernel::code::find(pc as *const u64) {
            Some(p) => names::place(p.module, p.function, p.arity, p.line.as_ref()),
            None => Json::Null,
        };
        lines.entry(place.to_string()).or_insert((place, 0)).1 += n;
    }
    let mut all: Vec<(Json, u64)> = lines.into_values().filter(|l| l.1 >= ATOMS).collect();
    all.sort_by_key(|l| std::cmp::Reverse(l.1));
    let list = all
        .into_iter()
        .take(top)
        .map(|(place, n)| Json::object([("site", place), ("made", n.into())]));
    Json::object([
        ("count", u64::from(atom::count()).into()),
        ("limit", u64::from(atom::limit()).into()),
        ("top", Json::List(list.collect())),
    ])
}

/// When the time without reads has begun that tables are judged by.
static FORGOT: Mutex<Option<Instant>> = Mutex::new(None);

fn tables(top: usize) -> Json {
    let mut forgot = FORGOT.lock();
    let watched = match *forgot {
        Some(t) => t.elapsed(),
        None => Duration::from_nanos(purlin_kernel::clock::elapsed().max(0) as u64),
    };
    let all = purlin_ets::all();
    let mut unread: Vec<_> = all
        .iter()
        .filter(|t| watched >= WATCHED && !t.was_read())
        .map(|t| (t, t.size_and_words()))
        .filter(|(_, (_, words))| words * 8 >= TABLE)
        .collect();
    unread.sort_by_key(|(_, (_, words))| std::cmp::Reverse(*words));
    let list: Vec<Json> = unread
        .iter()
        .take(top)
        .map(|(t, (objects, words))| {
            let show = |t| format_term(t, Style::Write, 100);
            let mut f = Fragment::new();
            let id = purlin_ets::id(t, &mut f).map(show);
            // SAFETY: nothing in it is used any more.
            unsafe { f.destroy() };
            let owner = t.owner();
            Json::object([
                ("name", show(t.name()).into()),
                ("id", id.into()),
                ("owner", names::pid(owner).into()),
                ("owner_name", survey::registered(owner).into()),
                ("objects", (*objects).into()),
                ("bytes", (words * 8).into()),
            ])
        })
        .collect();
    if watched >= AGAIN {
        all.iter().for_each(|t| t.forget_reads());
        *forgot = Some(Instant::now());
    }
    Json::object([
        ("count", all.len().into()),
        ("watched_s", watched.as_secs_f64().into()),
        ("unread", unread.len().into()),
        ("top", Json::List(list)),
    ])
}

pub fn leaks(top: usize) -> Vec<(String, Json)> {
    let mut pairs: Vec<(&str, Json)> = Vec::new();
    match found() {
        Ok((found, silent, stopped)) => {
            let (monitors, timers) = piles(&found, top);
            pairs.push(("stopped_s", stopped.as_secs_f64().into()));
            pairs.push(("processes", processes(&found, silent, top)));
            pairs.push(("monitors", monitors));
            pairs.push(("timers", timers));
        }
        Err(why) => pairs.push(("not_looked_at", why.into())),
    }
    let (binaries, more) = survey::wasted(top);
    pairs.push(("binaries", binaries));
    pairs.push(("binaries_more", more.into()));
    pairs.push(("tables", tables(top)));
    pairs.push(("atoms", atoms(top)));
    let pairs = pairs.into_iter();
    pairs.map(|(k, v)| (k.to_string(), v)).collect()
}

/// The findings that two looks agree on, the number of processes that could not be looked at, and
/// the longest time for which processes were stopped.
fn found() -> Result<(Found, usize, Duration), String> {
    let (before, silent, stopped) = look_well()?;
    if before.stuck.is_empty() && before.piles.is_empty() {
        return Ok((before, silent, stopped));
    }
    std::thread::sleep(PAUSE);
    let (mut found, again_silent, again) = look_well()?;
    let silent = silent.max(again_silent);
    let known: HashSet<u32> = before.stuck.iter().map(|s| s.pid).collect();
    found.stuck.retain(|s| known.contains(&s.pid));
    if silent > 0 {
        // They may know any of these.
        found.stuck.clear();
    }
    let same = |a: &Pile, b: &Pile| a.owner == b.owner && a.target == b.target;
    found
        .piles
        .retain(|p| before.piles.iter().any(|b| same(b, p)));
    Ok((found, silent, stopped.max(again)))
}
