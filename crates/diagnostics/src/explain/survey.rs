//! A survey of processes, each of which reports its memory, messages and binaries.
//!
//! Each process is asked by a task, as by `process_info/2`, and answers between two of its time
//! slices. The survey waits for [`ANSWER_TIME_LIMIT`] in total; a process that is in a long native
//! until then counts as silent. If there are more than [`ASKED`] processes, all registered ones are
//! asked and a sample of the others (every second, third and so on), each of which stands for
//! several in the sums.

use super::names;
use crate::json::Json;
use purlin_kernel::cx::Cx;
use purlin_kernel::process::registry;
use purlin_kernel::process::{self, Enter};
use purlin_kernel::sched;
use purlin_runtime::natives::process::process_info;
use purlin_term::print::{Style, format_term};
use purlin_term::{Term, atom};
use std::collections::HashSet;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Maximum number of processes that are asked, besides registered ones.
pub(crate) const ASKED: usize = 20_000;
/// Maximum number of tasks in progress.
const AT_ONCE: usize = 256;
/// Time until an answer is given with what is known then.
pub(super) const ANSWER_TIME_LIMIT: Duration = Duration::from_secs(3);
/// Time to wait, at the end, for schedulers to reach the end of their time slices.
const STOP: Duration = Duration::from_millis(200);

/// The answer of a process.
struct Row {
    pid: Term,
    /// Number of processes that it stands for, itself included.
    stands_for: usize,
    /// The function that it was started with.
    initial: String,
    /// The function that it is in.
    current: Json,
    memory: usize,
    heap: usize,
    binaries: usize,
    regions: usize,
    messages: usize,
    message_bytes: usize,
}

pub struct Survey {
    rows: Vec<Row>,
    processes: usize,
    asked: usize,
}

/// The answer of the process in the context.
fn row(cx: &mut Cx, stands_for: usize) -> Row {
    let current = process_info::current(cx).map_or(Json::Null, |p| {
        names::place(p.module, p.function, p.arity, p.line.as_ref())
    });
    let h = &cx.heap;
    let heap = 8 * (h.block_words() + h.old_block_words() + h.frag_words);
    let binaries = h.off_heap.bytes + h.old_off_heap.bytes;
    let regions = h.off_heap.regions.bytes() + h.old_off_heap.regions.bytes();
    Row {
        pid: cx.self_pid(),
        stands_for,
        initial: initial(cx),
        current,
        memory: process_info::memory(cx),
        heap,
        binaries,
        regions,
        messages: cx.process().queued_messages(),
        message_bytes: 8 * cx.process().queued_words(),
    }
}

/// The function that a process was started with: as recorded by `proc_lib`, if that started it.
pub(crate) fn initial(cx: &mut Cx) -> String {
    let key = atom::intern("$initial_call");
    let noted = cx.process().ext().and_then(|e| e.dict.get(key));
    if let Some(&[m, f, a]) = noted.and_then(|t| t.as_tuple())
        && m.is_atom()
        && f.is_atom()
        && let Some(a) = a.as_small().and_then(|a| u32::try_from(a).ok())
    {
        return names::function(m, f, a);
    }
    // SAFETY: null or an export, and exports are never freed.
    match unsafe { cx.process().initial_call.as_ref() } {
        Some(e) => names::function(e.module, e.function, e.arity),
        None => "unknown".into(),
    }
}

/// Asks processes, each by a task, with the value given beside it. Processes that have ended or do
/// not answer in time are left out.
fn ask_each<T: Copy + Send + 'static, R: Send + 'static>(
    pids: &[(Term, T)],
    f: fn(&mut Cx, T) -> R,
) -> Vec<R> {
    let deadline = Instant::now() + ANSWER_TIME_LIMIT;
    let mut rows = Vec::with_capacity(pids.len());
    let (tell, told) = mpsc::channel();
    let mut under_way = 0;
    let mut next = pids.iter();
    loop {
        while under_way < AT_ONCE
            && let Some(&(pid, with)) = next.next()
        {
            let tell = tell.clone();
            let task = move |cx: Option<&mut Cx>| {
                let _ = tell.send(cx.map(|cx| f(cx, with)));
            };
            purlin_kernel::signal::send::run_in(pid, Box::new(task));
            under_way += 1;
        }
        if under_way == 0 {
            return rows;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(row) = told.recv_timeout(left) else {
            return rows;
        };
        under_way -= 1;
        rows.extend(row);
    }
}

/// Asks processes, as [`ask_each`] does.
pub(crate) fn ask<R: Send + 'static>(pids: &[Term], f: fn(&mut Cx) -> R) -> Vec<R> {
    let each: Vec<_> = pids.iter().map(|&p| (p, f)).collect();
    ask_each(&each, |cx, f| f(cx))
}

fn survey() -> Survey {
    let processes = process::table().live();
    let step = processes.div_ceil(ASKED).max(1);
    // Registered processes are few, and each is of interest.
    let named: HashSet<Term> = registry::names()
        .into_iter()
        .filter_map(registry::whereis)
        .filter(|t| t.is_local_pid())
        .take(ASKED)
        .collect();
    let mut pids: Vec<(Term, usize)> = named.iter().map(|p| (*p, 1)).collect();
    let others = process::table().some_pids(step).into_iter();
    pids.extend(others.filter(|p| !named.contains(p)).map(|p| (p, step)));
    Survey {
        asked: pids.len(),
        rows: ask_each(&pids, row),
        processes,
    }
}

impl Survey {
    /// The processes that refer to most binaries and regions, and their names.
    pub fn holders(&self, most: usize) -> Vec<(Term, String)> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.retain(|r| r.binaries + r.regions > 0);
        rows.sort_by_key(|r| std::cmp::Reverse(r.binaries + r.regions));
        let name = |r: &Row| match registered(r.pid) {
            Some(name) => format!("{} {name} ({})", names::pid(r.pid), r.initial),
            None => format!("{} ({})", names::pid(r.pid), r.initial),
        };
        rows.into_iter()
            .take(most)
            .map(|r| (r.pid, name(r)))
            .collect()
    }

    /// The first `top` processes by a number that is not zero, their common properties, and sums.
    fn json(mut self, top: usize, by: fn(&Row) -> usize) -> Json {
        self.rows.sort_by_key(|r| std::cmp::Reverse(by(r)));
        let sum = |f: fn(&Row) -> usize| {
            let all = self.rows.iter();
            all.map(|r| f(r) * r.stands_for).sum::<usize>()
        };
        let list: Vec<Json> = self
            .rows
            .iter()
            .take(top)
            .take_while(|r| by(r) > 0)
            .map(Row::json)
            .collect();
        Json::object([
            ("count", self.processes.into()),
            ("asked", self.asked.into()),
            (
                "silent",
                (self.asked - self.rows.len().min(self.asked)).into(),
            ),
            ("memory_bytes", sum(|r| r.memory).into()),
            ("heap_bytes", sum(|r| r.heap).into()),
            ("binary_bytes", sum(|r| r.binaries).into()),
            ("messages", sum(|r| r.messages).into()),
            ("message_bytes", sum(|r| r.message_bytes).into()),
            ("top", Json::List(list)),
            ("kinds", self.kinds(top, by)),
        ])
    }

    /// Processes combined by the function that they were started with.
    fn kinds(&self, top: usize, by: fn(&Row) -> usize) -> Json {
        let mut kinds: Vec<(&str, usize, usize)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for r in &self.rows {
            let i = *places.entry(r.initial.as_str()).or_insert_with(|| {
                kinds.push((&r.initial, 0, 0));
                kinds.len() - 1
            });
            kinds[i].1 += r.stands_for;
            kinds[i].2 += by(r) * r.stands_for;
        }
        kinds.sort_by_key(|k| std::cmp::Reverse(k.2));
        let list = kinds
            .iter()
            .take(top)
            .filter(|k| k.2 > 0)
            .map(|(name, n, sum)| {
                Json::object([
                    ("initial_call", (*name).into()),
                    ("count", (*n).into()),
                    ("sum", (*sum).into()),
                ])
            });
        Json::List(list.collect())
    }
}

/// The name under which a process is registered.
pub(super) fn registered(pid: Term) -> Option<String> {
    let name = registry::names()
        .into_iter()
        .find(|n| registry::whereis(*n) == Some(pid));
    name.map(|n| format_term(n, Style::Write, 300))
}

impl Row {
    fn json(&self) -> Json {
        Json::object([
            ("pid", names::pid(self.pid).into()),
            ("name", registered(self.pid).into()),
            ("initial_call", self.initial.clone().into()),
            ("current", self.current.clone()),
            ("memory_bytes", self.memory.into()),
            ("heap_bytes", self.heap.into()),
            ("binary_bytes", self.binaries.into()),
            ("region_bytes", self.regions.into()),
            ("messages", self.messages.into()),
            ("message_bytes", self.message_bytes.into()),
        ])
    }
}

/// Bytes that a process keeps alive, binaries included, even if others hold them, too.
fn holds(r: &Row) -> usize {
    r.memory + r.binaries
}

/// The largest holders, with the binaries of each.
pub fn holders(top: usize) -> Json {
    survey().json(top, holds)
}

/// As [`holders`], at the exit of the emulator: schedulers have stopped for good. Processes that
/// are not running are looked at; the others are silent.
pub fn holders_at_end(top: usize) -> Json {
    sched::stop(STOP);
    let mut cx = Cx::boxed(0);
    let pids = process::table().some_pids(1);
    let mut rows = Vec::new();
    for pid in pids.iter().take(ASKED) {
        let Some(p) = process::table().find(*pid) else {
            continue;
        };
        // SAFETY: cells are never unmapped; the state word is an atomic.
        let state = unsafe { (*p).state.load() };
        if !state.is_alive() || state.is_running() || state.is_exiting() {
            continue;
        }
        // SAFETY: schedulers have stopped, so a process that is not running belongs to this thread.
        // It is left as it was.
        unsafe {
            let (pc, live) = ((*p).pc, (*p).live as usize);
            cx.enter(p);
            cx.bif_pc = pc;
            rows.push(row(&mut cx, 1));
            cx.leave(pc, live);
        }
    }
    let survey = Survey {
        rows,
        processes: pids.len(),
        asked: pids.len(),
    };
    survey.json(top, holds)
}

pub fn by_memory(top: usize) -> Json {
    survey().json(top, |r| r.memory)
}

/// The holders of binaries of which they use small parts, and whether there may be more.
pub fn wasted(top: usize) -> (Json, bool) {
    super::retention::wasted(&survey(), top)
}

pub fn mailbox(top: usize) -> Vec<(String, Json)> {
    vec![("processes".into(), survey().json(top, |r| r.messages))]
}

pub fn binaries(top: usize) -> Vec<(String, Json)> {
    let total = purlin_term::bin::total_bytes();
    let survey = survey();
    let (held, stopped) = super::retention::held(&survey, top);
    vec![
        ("bytes".into(), total.into()),
        ("held".into(), held),
        ("held_more".into(), stopped.into()),
        ("processes".into(), survey.json(top, |r| r.binaries)),
    ]
}
