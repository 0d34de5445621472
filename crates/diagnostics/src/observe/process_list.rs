//! A list of processes, which are asked one by one, then sorted, filtered and cut.
//!
//! If there are more than [`ASKED`] processes, a sample of them is asked: every second, third and
//! so on. `phase` selects the sample, so that a client that asks repeatedly sees all of them in
//! turn. Registered processes are always asked, and so are those in `also`: the ones that were at
//! the top of the list before.

use super::lease::{self, Thing};
use super::query::{Key, Query, sort};
use crate::explain::survey::ASKED;
use crate::explain::{names, survey};
use crate::json::Json;
use purlin_kernel::process;
use purlin_kernel::process::registry;
use purlin_runtime::natives::process::process_info;
use purlin_term::frag::Fragment;
use purlin_term::preview::preview;
use purlin_term::sync::Mutex;
use purlin_term::{Term, am, atom};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Maximum number of registered processes that are asked.
const NAMED: usize = 5_000;
/// Maximum number of processes in `also`.
const ALSO: usize = 100;
/// Cells of the table that are examined at a time.
const CELLS: u32 = 1 << 16;
/// Time for which reductions are remembered for comparison.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Characters kept of a name or label.
const NAME: usize = 120;

/// The answer of a process.
struct Row {
    pid: Term,
    initial: String,
    current: Option<(Term, Term, u32)>,
    label: String,
    status: &'static str,
    memory: usize,
    heap: usize,
    binaries: usize,
    messages: usize,
    reductions: u64,
    /// Reductions since the last look; `None` if the process was not seen then.
    recent: Option<u64>,
    name: String,
}

/// The time of the last look at processes, and their reductions then.
static BEFORE: Mutex<Option<(Instant, HashMap<u64, u64>)>> = Mutex::new(None);

/// Forgets the reductions of the last look if that was long ago.
pub(super) fn forget() {
    let mut before = BEFORE.lock();
    if before.as_ref().is_some_and(|b| b.0.elapsed() >= REMEMBERED) {
        *before = None;
    }
}

/// The answer of the process in the context.
fn row(cx: &mut purlin_kernel::cx::Cx) -> Row {
    let current = process_info::current(cx).map(|p| (p.module, p.function, p.arity));
    let mut f = Fragment::new();
    let status = process_info::item(cx, &mut f, "status").unwrap_or(am::UNDEFINED);
    let label = process_info::item(cx, &mut f, "label").unwrap_or(am::UNDEFINED);
    let label = match label {
        t if t == am::UNDEFINED || t.is_nil() => String::new(),
        t => preview(t, NAME),
    };
    let reductions = process_info::item(cx, &mut f, "reductions");
    let reductions = reductions.and_then(|t| t.as_small()).unwrap_or(0);
    // SAFETY: nothing in it is used any more: the label was formatted.
    unsafe { f.destroy() };
    let h = &cx.heap;
    let heap = 8 * (h.block_words() + h.old_block_words() + h.frag_words);
    let binaries = h.off_heap.bytes + h.old_off_heap.bytes;
    Row {
        pid: cx.self_pid(),
        initial: survey::initial(cx),
        current,
        label,
        status: atom::name(status),
        memory: process_info::memory(cx),
        heap,
        binaries,
        messages: cx.process().queued_messages(),
        reductions: reductions.max(0) as u64,
        recent: None,
        name: String::new(),
    }
}

/// Returns the sampled pids, the total, and the sampling stride.
pub(super) fn chosen(phase: usize, also: &[Term]) -> (Vec<Term>, usize, usize) {
    let table = process::table();
    let step = table.live().div_ceil(ASKED).max(1);
    let phase = phase % step;
    let mut pids = Vec::new();
    let (mut from, mut seen) = (0, 0);
    while let Some((part, next)) = table.range(from, CELLS) {
        for pid in part {
            if seen % step == phase && pids.len() < ASKED {
                pids.push(pid);
            }
            seen += 1;
        }
        from = next;
    }
    if step > 1 {
        let mut known: HashSet<u64> = pids.iter().map(|p| p.raw()).collect();
        let named = registry::names().into_iter().take(NAMED);
        let named = named.filter_map(registry::whereis);
        let more = also.iter().copied().chain(named);
        pids.extend(more.filter(|p| p.is_local_pid() && known.insert(p.raw())));
    }
    (pids, seen, step)
}

pub(super) fn processes(q: &Query) -> Result<Vec<(String, Json)>, String> {
    let sort_by = match q.text("sort") {
        "" => "memory",
        text => text,
    };
    let key: fn(&Row) -> Key = match sort_by {
        "pid" => |r| Key::Number(r.pid.pid_data().into()),
        "name" => |r| Key::Text(shown_name(r)),
        "initial" => |r| Key::Text(r.initial.clone()),
        "current" => |r| Key::Text(shown_current(r)),
        "status" => |r| Key::Text(r.status.to_string()),
        "memory" => |r| Key::Number(r.memory as u64),
        "heap" => |r| Key::Number(r.heap as u64),
        "binaries" => |r| Key::Number(r.binaries as u64),
        "messages" => |r| Key::Number(r.messages as u64),
        "reductions" => |r| Key::Number(r.reductions),
        "recent" => |r| Key::Number(r.recent.unwrap_or(0)),
        other => return Err(format!("processes cannot be sorted by '{other}'")),
    };
    let descends = q.descends()?;
    let filter = q.filter()?;
    let phase = q.number("phase", 0)?;
    let also: Vec<Term> = q
        .text("also")
        .split(',')
        .take(ALSO)
        .filter_map(crate::explain::pid)
        .collect();
    let (pids, count, step) = chosen(phase, &also);
    let asked = pids.len();
    let mut rows = survey::ask(&pids, row);
    let silent = asked.saturating_sub(rows.len());
    let named: HashMap<u64, Term> = registry::names()
        .into_iter()
        .filter_map(|n| Some((registry::whereis(n)?.raw(), n)))
        .collect();
    let since = compare(&mut rows, &named);
    let sum = |f: fn(&Row) -> usize| rows.iter().map(f).sum::<usize>();
    let (memory, messages) = (sum(|r| r.memory), sum(|r| r.messages));
    if !filter.is_empty() {
        rows.retain(|r| {
            let texts = [
                names::pid(r.pid),
                shown_name(r),
                r.initial.clone(),
                shown_current(r),
            ];
            texts.iter().any(|t| t.to_lowercase().contains(&filter))
        });
    }
    sort(&mut rows, descends, key);
    let found = rows.len();
    let rows = q.page(rows)?;
    let pairs: [(&str, Json); 10] = [
        ("count", count.into()),
        ("asked", asked.into()),
        ("each", step.into()),
        ("silent", silent.into()),
        ("found", found.into()),
        ("since_s", since.into()),
        ("memory_bytes", memory.into()),
        ("messages", messages.into()),
        ("sort", sort_by.into()),
        ("rows", Json::List(rows.iter().map(Row::json).collect())),
    ];
    Ok(pairs.map(|(k, v)| (k.to_string(), v)).into())
}

/// Adds names and reductions since the last look to rows. Returns the seconds since that look.
fn compare(rows: &mut [Row], named: &HashMap<u64, Term>) -> Option<f64> {
    let now = Instant::now();
    let mut before = BEFORE.lock();
    let last = before.take();
    for r in rows.iter_mut() {
        if let Some(name) = named.get(&r.pid.raw()) {
            r.name = preview(*name, NAME);
        }
        let old = last.as_ref().and_then(|l| l.1.get(&r.pid.raw()));
        r.recent = old.map(|old| r.reductions.saturating_sub(*old));
    }
    if lease::keep(Thing::Processes, now + REMEMBERED) {
        let all = rows.iter().map(|r| (r.pid.raw(), r.reductions));
        *before = Some((now, all.collect()));
    }
    last.map(|l| (now - l.0).as_secs_f64())
}

fn shown_name(r: &Row) -> String {
    match (r.name.is_empty(), r.label.is_empty()) {
        (false, _) => r.name.clone(),
        (true, false) => r.label.clone(),
        (true, true) => String::new(),
    }
}

fn shown_current(r: &Row) -> String {
    r.current
        .map_or(String::new(), |(m, f, a)| names::function(m, f, a))
}

impl Row {
    fn json(&self) -> Json {
        let name = Some(self.name.clone()).filter(|n| !n.is_empty());
        let label = Some(self.label.clone()).filter(|n| !n.is_empty());
        Json::object([
            ("pid", names::pid(self.pid).into()),
            ("name", name.into()),
            ("label", label.into()),
            ("initial", self.initial.clone().into()),
            ("current", shown_current(self).into()),
            ("status", self.status.into()),
            ("memory_bytes", self.memory.into()),
            ("heap_bytes", self.heap.into()),
            ("binary_bytes", self.binaries.into()),
            ("messages", self.messages.into()),
            ("reductions", self.reductions.into()),
            ("recent", self.recent.into()),
        ])
    }
}
