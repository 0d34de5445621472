//! What `erlang:system_flag/2` sets and `erlang:system_info/1` tells, where no other part of the runtime owns it; and
//! `system_flag/2` itself.

use crate::cx::{BifResult, Cx, Fail};
use crate::process::ext::MaxHeap;
use crate::signal::share;
use crate::{bifs, code, lazy_atoms, msacc, process, report, sched};
use purlin_term::sync::Ordering as TableOrdering;
use purlin_term::{Alloc, NIL, Term, am, arith, atom, gc};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

lazy_atoms! {
    blocked = "blocked";
    blocked_normal = "blocked_normal";
    enabled = "enabled";
    final_ = "final";
    unbound = "unbound";
    block_normal = "block_normal";
    unblock = "unblock";
    unblock_normal = "unblock_normal";
    finalize = "finalize";
    enable = "enable";
    disable = "disable";
    clear = "clear";
    erts_internal = "erts_internal";
    system_flag_scheduler_wall_time = "system_flag_scheduler_wall_time";
}

/// Most entries of a stack trace.
const MAX_BACKTRACE: i64 = 64;

/// `trace_control_word`
pub static TRACE_CONTROL_WORD: AtomicU32 = AtomicU32::new(0);
/// `outstanding_system_requests_limit`; 0: as the command line says.
static OUTSTANDING_REQUESTS: AtomicU64 = AtomicU64::new(0);

/// Who blocks multi-scheduling, in order, once for each time; and how many schedulers run when nobody does.
#[derive(Default)]
pub struct Blockers {
    pub all: Vec<Term>,
    pub normal: Vec<Term>,
    online: usize,
}

static BLOCKERS: Mutex<Blockers> = Mutex::new(Blockers {
    all: Vec::new(),
    normal: Vec::new(),
    online: 0,
});

fn blockers() -> std::sync::MutexGuard<'static, Blockers> {
    BLOCKERS.lock().unwrap_or_else(|e| e.into_inner())
}

/// Those who block all schedulers but one, and those who block normal schedulers: pids.
pub fn multi_scheduling_blockers() -> (Vec<Term>, Vec<Term>) {
    let b = blockers();
    (b.all.clone(), b.normal.clone())
}

/// Schedulers that run processes when nobody blocks multi-scheduling.
pub fn schedulers_online() -> usize {
    let b = blockers();
    if b.all.is_empty() && b.normal.is_empty() {
        sched::online()
    } else {
        b.online
    }
}

/// `multi_scheduling`
pub fn multi_scheduling() -> Term {
    let b = blockers();
    match (b.all.is_empty(), b.normal.is_empty()) {
        (false, _) => blocked(),
        (true, false) => blocked_normal(),
        (true, true) => enabled(),
    }
}

/// A process that has ended blocks nothing any more.
pub fn owner_exit(pid: Term) {
    // Reading one word is all that nearly every process costs here.
    if ANY_BLOCKER.load(Ordering::Acquire) {
        unblock_where(|p| p == pid);
    }
}

static ANY_BLOCKER: AtomicBool = AtomicBool::new(false);

fn unblock_where(gone: impl Fn(Term) -> bool) {
    let mut b = blockers();
    if b.all.is_empty() && b.normal.is_empty() {
        return;
    }
    b.all.retain(|&p| !gone(p));
    b.normal.retain(|&p| !gone(p));
    settle(&mut b);
}

/// The processors that may be used have become `n`: as many schedulers run from now on, or as soon as nobody blocks
/// multi-scheduling.
pub fn follow(n: usize) {
    let mut b = blockers();
    if b.online != 0 {
        b.online = n;
    } else {
        sched::set_online(n);
    }
}

fn settle(b: &mut Blockers) {
    sched::alone::block(!b.all.is_empty());
    let any = !b.all.is_empty() || !b.normal.is_empty();
    ANY_BLOCKER.store(any, Ordering::Release);
    if !any && b.online != 0 {
        sched::set_online(b.online);
        b.online = 0;
    }
}

/// Blocks or unblocks. Other schedulers finish the time slice that they are in, and threads of the dirty pools the native.
fn block(cx: &mut Cx, on: bool, normal: bool) -> Term {
    let me = cx.self_pid();
    let mut b = blockers();
    let list = if normal { &mut b.normal } else { &mut b.all };
    if on {
        list.push(me);
        if b.online == 0 {
            b.online = sched::set_online(1);
        }
        ANY_BLOCKER.store(true, Ordering::Release);
        sched::alone::block(!b.all.is_empty());
    } else {
        if let Some(i) = list.iter().rposition(|&p| p == me) {
            list.remove(i);
        }
        settle(&mut b);
    }
    drop(b);
    multi_scheduling()
}

/// The value of `outstanding_system_requests_limit`.
pub fn outstanding_requests() -> u64 {
    match OUTSTANDING_REQUESTS.load(Ordering::Relaxed) {
        0 => crate::options()
            .flags
            .dist
            .outstanding_requests_limit
            .into(),
        n => n,
    }
}

/// The term of a `max_heap_size`.
pub fn max_heap(cx: &mut Cx, m: Option<MaxHeap>) -> Term {
    super::process::max_heap_term(cx, m)
}

/// The least heap size that is reported for new processes.
pub fn min_heap_size() -> i64 {
    match process::DEFAULTS
        .min_heap_words
        .load(TableOrdering::Relaxed)
    {
        0 => 233,
        n => n.into(),
    }
}

fn natural(t: Term) -> Result<i64, Fail> {
    t.as_small().filter(|&n| n >= 0).ok_or(Fail::Badarg)
}

fn heap_size(words: i64) -> u32 {
    u32::try_from(gc::heap_size_for(words as usize)).unwrap_or(u32::MAX)
}

const CPU_TOPOLOGY: &str = "A call to erlang:system_flag(cpu_topology, _) was made.\n\
    The cpu_topology argument is deprecated and scheduled\n\
    for removal in Erlang/OTP 18. For more information\n\
    see the erlang:system_flag/2 documentation.\n";
const BIND_TYPE: &str = "A call to erlang:system_flag(scheduler_bind_type, _) was\n\
    made. The scheduler_bind_type argument is deprecated and\n\
    scheduled for removal in Erlang/OTP 18. For more\n\
    information see the erlang:system_flag/2 documentation.\n";

fn warn(cx: &mut Cx, text: &str) {
    let (leader, me) = (super::process::group_leader_of(cx), cx.self_pid());
    report::send(
        report::Level::Warning,
        leader,
        me,
        report::Text::Plain(text),
    );
}

fn system_flag_2(cx: &mut Cx, [flag, value]: [Term; 2]) -> BifResult {
    if !flag.is_atom() {
        return Err(cx.badarg_cause(am::BADOPT));
    }
    let d = &process::DEFAULTS;
    let bad = Err(Fail::Badarg);
    match atom::name(flag) {
        "multi_scheduling" => match value {
            v if v == am::BLOCK => Ok(block(cx, true, false)),
            v if v == unblock() => Ok(block(cx, false, false)),
            v if v == block_normal() => Ok(block(cx, true, true)),
            v if v == unblock_normal() => Ok(block(cx, false, true)),
            _ => bad,
        },
        "schedulers_online" => {
            let n = value.as_small().ok_or(Fail::Badarg)?;
            // Beyond what the runtime started with, too: threads are made as they are asked for.
            if n < 1 || n as usize > sched::MAX_SCHEDULERS {
                return bad;
            }
            sched::upkeep::count_chosen();
            let mut b = blockers();
            let n = n as usize;
            let before = if b.online != 0 {
                std::mem::replace(&mut b.online, n)
            } else {
                sched::set_online(n)
            };
            // The dirty pool for the processor keeps its proportion.
            if n != before {
                let most = sched::dirty_counts().0;
                let dirty = sched::dirty_cpu_online() * n / before.max(1);
                sched::set_dirty_cpu_online(dirty.clamp(1, most.max(1)));
            }
            Ok(Term::small(before as i64))
        }
        "dirty_cpu_schedulers_online" => {
            let n = value.as_small().ok_or(Fail::Badarg)?;
            if n < 1 || n as usize > sched::dirty_counts().0 {
                return bad;
            }
            Ok(Term::small(sched::set_dirty_cpu_online(n as usize) as i64))
        }
        "fullsweep_after" => {
            let n = natural(value)?.min(u16::MAX.into()) as u32;
            let before = d.fullsweep_after.swap(n, TableOrdering::Relaxed);
            Ok(Term::small(before.into()))
        }
        "min_heap_size" => {
            let n = natural(value)?;
            let before = min_heap_size();
            // What stock starts with means here: no more than what is needed.
            let n = match heap_size(n) {
                233 => 0,
                n => n,
            };
            d.min_heap_words.store(n, TableOrdering::Relaxed);
            Ok(Term::small(before))
        }
        "min_bin_vheap_size" => {
            let n = heap_size(natural(value)?);
            let before = d.min_vheap_words.swap(n, TableOrdering::Relaxed);
            Ok(Term::small(before.into()))
        }
        "max_heap_size" => {
            let before = Some(process::max_heap_flags());
            let new = super::process::max_heap(value, before).ok_or(Fail::Badarg)?;
            if new.words != 0 && (new.words as i64) < min_heap_size() {
                return bad;
            }
            process::set_default_max_heap(Some(new));
            Ok(max_heap(cx, before))
        }
        "sharing_threshold" => {
            let words = match value {
                v if v == am::INFINITY => usize::MAX,
                v => v.as_small().filter(|&n| n > 0).ok_or(Fail::Badarg)? as usize,
            };
            Ok(share::threshold_term(share::set_threshold(words)))
        }
        "debug_flags" => Ok(am::TRUE),
        "backtrace_depth" => {
            let n = natural(value)?.min(MAX_BACKTRACE) as usize;
            let before = crate::interp::exc::DEPTH.swap(n, Ordering::Relaxed);
            Ok(Term::small(before as i64))
        }
        "trace_control_word" => {
            let n = arith::to_u64(value)
                .and_then(|n| u32::try_from(n).ok())
                .ok_or(Fail::Badarg)?;
            let before = TRACE_CONTROL_WORD.swap(n, Ordering::Relaxed);
            Ok(Term::small(before.into()))
        }
        "sequential_tracer" => super::trace::set_sequential_tracer(value).ok_or(Fail::Badarg),
        "reset_seq_trace" => {
            super::trace::reset_tokens(cx);
            Ok(am::TRUE)
        }
        "microstate_accounting" => match value {
            am::TRUE | am::FALSE => Ok(Term::bool(msacc::set(value == am::TRUE))),
            v if v.is_atom() && atom::name(v) == "reset" => Ok(Term::bool(msacc::reset())),
            _ => bad,
        },
        "scheduler_wall_time" => {
            if value.as_bool().is_none() {
                return bad;
            }
            let e = code::export(erts_internal(), system_flag_scheduler_wall_time(), 1);
            Err(cx.trap(e, &[value]))
        }
        "time_offset" if value == finalize() => Ok(final_()),
        "outstanding_system_requests_limit" => {
            let n = arith::to_u64(value)
                .filter(|n| (1..1 << 27).contains(n))
                .ok_or(Fail::Badarg)?;
            let before = outstanding_requests();
            OUTSTANDING_REQUESTS.store(n, Ordering::Relaxed);
            Ok(cx.uint(before))
        }
        "scheduling_statistics" => {
            if [enable(), disable(), clear()].contains(&value) {
                Ok(am::TRUE)
            } else {
                bad
            }
        }
        "cpu_topology" => {
            warn(cx, CPU_TOPOLOGY);
            bad
        }
        "internal_cpu_topology" | "erts_alloc" => bad,
        "scheduler_bind_type" => {
            warn(cx, BIND_TYPE);
            if value == unbound() || value == am::DEFAULT {
                Ok(unbound())
            } else {
                bad
            }
        }
        "system_logger" => report::set_system_logger(value).ok_or(Fail::Badarg),
        _ => Err(cx.badarg_cause(am::BADOPT)),
    }
}

/// `erts_internal:system_check/1`: nothing has to be asked of other schedulers.
fn system_check_1(_: &mut Cx, [what]: [Term; 1]) -> BifResult {
    if what.is_atom() && atom::name(what) == "schedulers" {
        return Ok(am::OK);
    }
    Err(Fail::Badarg)
}

fn bump_reductions_1(cx: &mut Cx, [n]: [Term; 1]) -> BifResult {
    let n = n.as_small().filter(|&n| n >= 0).ok_or(Fail::Badarg)?;
    cx.reds = cx.reds.saturating_sub(n.min(sched::run::SLICE)).max(0);
    Ok(am::TRUE)
}

bifs! {
    Plain "erlang":"system_flag"/2 = system_flag_2;
    Plain "erlang":"bump_reductions"/1 = bump_reductions_1;
    Plain "erts_internal":"system_check"/1 = system_check_1;
}

/// The list of pids, for `multi_scheduling_blockers`: each once.
pub fn pids_once(cx: &mut Cx, pids: &[Term]) -> Term {
    let mut seen: Vec<Term> = Vec::new();
    for &p in pids {
        if !seen.contains(&p) {
            seen.push(p);
        }
    }
    if seen.is_empty() { NIL } else { cx.list(&seen) }
}
