//! `erlang:statistics/1`, and the natives that switch its counters on.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, clock, lazy_atoms, msacc, sched};
use purlin_kernel::os::world;
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, atom, gc, map};
use std::sync::atomic::{AtomicU64, Ordering};

lazy_atoms! {
    input = "input";
    output = "output";
}

/// Whether the program has switched scheduler wall time on, and the readings at that time.
struct WallTime {
    on: bool,
    since: i64,
    /// Idle nanoseconds of each scheduler, and work of the dirty pools.
    idle: Vec<u64>,
    worked: [u64; 2],
    /// The last report for each thread: active and total nanoseconds.
    told: Vec<(u64, u64)>,
}

static WALL_TIME: Mutex<WallTime> = Mutex::new(WallTime {
    on: false,
    since: 0,
    idle: Vec::new(),
    worked: [0; 2],
    told: Vec::new(),
});

/// A number, and its growth since the last request.
fn with_change(cx: &mut Cx, now: u64, before: &AtomicU64) -> Term {
    let change = now.saturating_sub(before.swap(now, Ordering::Relaxed));
    let pair = [cx.uint(now), cx.uint(change)];
    cx.tuple(&pair)
}

/// Lengths of the run queues: of schedulers, then of the requested dirty pools. With `active`,
/// running processes count, too.
fn queues(active: bool, dirty_io: bool) -> Vec<usize> {
    let mut v = sched::queue_lengths();
    let work = sched::dirty_work();
    let lengths = sched::dirty_lengths();
    if active {
        for (n, works) in v.iter_mut().zip(sched::working()) {
            *n += usize::from(works);
        }
    }
    let extra = |i: usize| if active { work[i].0 } else { 0 };
    v.push(lengths.0 + extra(0));
    if dirty_io {
        v.push(lengths.1 + extra(1));
    }
    v
}

fn numbers(v: &[usize]) -> Vec<Term> {
    v.iter().map(|&n| Term::small(n as i64)).collect()
}

fn wall_time(cx: &mut Cx, dirty_io: bool) -> Term {
    let mut w = WALL_TIME.lock();
    if !w.on {
        return am::UNDEFINED;
    }
    let total = (clock::elapsed() - w.since).max(0) as u64;
    let mut rows = Vec::new();
    for (i, idle) in sched::idle_nanoseconds().into_iter().enumerate() {
        let rest = idle.saturating_sub(w.idle.get(i).copied().unwrap_or(0));
        rows.push(total.saturating_sub(rest));
    }
    let (cpu, io) = sched::dirty_counts();
    let work = sched::dirty_work();
    // The threads of a pool share one queue, so each gets an equal share of the work.
    for (i, n) in [(0, cpu), (1, if dirty_io { io } else { 0 })] {
        let share = work[i].1.saturating_sub(w.worked[i]) / n.max(1) as u64;
        rows.extend(std::iter::repeat_n(share.min(total), n));
    }
    // Threads start and stop working while they are read, each a moment after the clock. So the
    // figures are clamped: between two reports, work neither shrinks nor exceeds the time that has
    // passed.
    let told = w.told.len().max(rows.len());
    w.told.resize(told, (0, 0));
    for (active, told) in rows.iter_mut().zip(&mut w.told) {
        let passed = total.saturating_sub(told.1);
        *active = (*active).clamp(told.0, told.0 + passed);
        *told = (*active, total);
    }
    drop(w);
    let rows: Vec<Term> = rows
        .into_iter()
        .enumerate()
        .map(|(i, active)| {
            let v = [Term::small(i as i64 + 1), cx.uint(active), cx.uint(total)];
            cx.tuple(&v)
        })
        .collect();
    cx.list(&rows)
}

fn small_map(cx: &mut Cx, keys: &[Term], values: &[Term]) -> Term {
    let pairs: Vec<(Term, Term)> = keys.iter().copied().zip(values.iter().copied()).collect();
    map::from_pairs(cx, &pairs)
}

/// A map for each thread: its type, its number, and the time spent in each state.
fn microstates(cx: &mut Cx) -> Term {
    let names = msacc::NAMES.map(atom::intern);
    let keys = ["counters", "id", "type"].map(atom::intern);
    let mut l = NIL;
    for (kind, id, spent) in msacc::all() {
        let times = spent.map(|ns| cx.uint(ns));
        let counters = small_map(cx, &names, &times);
        let values = [counters, Term::small(id as i64), atom::intern(kind.name())];
        let m = small_map(cx, &keys, &values);
        l = cx.cons(m, l);
    }
    l
}

/// Returns a number, or in a world one that its seed decides: how much the processes do that find
/// code depends on the files in the folders of the code path. `net_kernel` makes the numbers of its
/// handshakes from such numbers.
fn decided(number: impl FnOnce() -> u64) -> u64 {
    match world::is_on() {
        true => clock::elapsed().max(0) as u64 / 100,
        false => number(),
    }
}

fn statistics_1(cx: &mut Cx, [what]: [Term; 1]) -> BifResult {
    static REDUCTIONS: AtomicU64 = AtomicU64::new(0);
    static EXACT_REDUCTIONS: AtomicU64 = AtomicU64::new(0);
    static RUNTIME: AtomicU64 = AtomicU64::new(0);
    static WALL_CLOCK: AtomicU64 = AtomicU64::new(0);
    if !what.is_atom() {
        return Err(Fail::Badarg);
    }
    Ok(match atom::name(what) {
        "microstate_accounting" => microstates(cx),
        "scheduler_wall_time" => wall_time(cx, false),
        "scheduler_wall_time_all" => wall_time(cx, true),
        "total_active_tasks" => Term::small(queues(true, false).iter().sum::<usize>() as i64),
        "total_active_tasks_all" => Term::small(queues(true, true).iter().sum::<usize>() as i64),
        "total_run_queue_lengths" => Term::small(queues(false, false).iter().sum::<usize>() as i64),
        "total_run_queue_lengths_all" => {
            Term::small(queues(false, true).iter().sum::<usize>() as i64)
        }
        "active_tasks" => cx.list(&numbers(&queues(true, false))),
        "active_tasks_all" => cx.list(&numbers(&queues(true, true))),
        "run_queue_lengths" => cx.list(&numbers(&queues(false, false))),
        "run_queue_lengths_all" => cx.list(&numbers(&queues(false, true))),
        "run_queues" => cx.tuple(&numbers(&queues(false, true))),
        "run_queue" => Term::small(sched::queue_lengths().iter().sum::<usize>() as i64),
        "context_switches" => {
            let n = cx.uint(decided(sched::context_switches));
            cx.tuple(&[n, Term::small(0)])
        }
        "garbage_collection" => {
            // The seed of a world does not decide how often processes collect. `net_kernel` makes
            // the numbers of its handshakes from this.
            let (n, words) = match world::is_on() {
                true => (0, 0),
                false => gc::totals(),
            };
            let v = [cx.uint(n as u64), cx.uint(words as u64), Term::small(0)];
            cx.tuple(&v)
        }
        "reductions" => with_change(cx, decided(sched::reductions), &REDUCTIONS),
        "exact_reductions" => {
            // Reductions of this process since its scheduler last counted them.
            let since = (cx.charged - cx.reds).max(0) as u64;
            let all = decided(|| sched::reductions() + since);
            with_change(cx, all, &EXACT_REDUCTIONS)
        }
        "runtime" => with_change(cx, clock::cpu_time() as u64 / 1_000_000, &RUNTIME),
        "wall_clock" => with_change(cx, clock::elapsed() as u64 / 1_000_000, &WALL_CLOCK),
        "io" => {
            let (read, written) = crate::port::total_bytes();
            let (read, written) = (cx.uint(read), cx.uint(written));
            let (i, o) = (cx.tuple(&[input(), read]), cx.tuple(&[output(), written]));
            cx.tuple(&[i, o])
        }
        _ => return Err(Fail::Badarg),
    })
}

/// `erts_internal:scheduler_wall_time/1`: returns whether it was on before.
fn scheduler_wall_time_1(_: &mut Cx, [on]: [Term; 1]) -> BifResult {
    let mut w = WALL_TIME.lock();
    let before = w.on;
    match on.as_bool() {
        Some(true) if !before => {
            *w = WallTime {
                on: true,
                since: clock::elapsed(),
                idle: sched::idle_nanoseconds(),
                worked: sched::dirty_work().map(|d| d.1),
                told: Vec::new(),
            };
        }
        Some(on) => w.on = on,
        None => return Err(Fail::Badarg),
    }
    Ok(if before { am::TRUE } else { am::FALSE })
}

bifs! {
    Plain "erlang":"statistics"/1 = statistics_1;
    Plain "erts_internal":"scheduler_wall_time"/1 = scheduler_wall_time_1;
}
