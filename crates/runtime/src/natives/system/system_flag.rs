//! `system_flag/2`, and the settings that it changes and `system_info/1` reports, as far as no
//! other part of the runtime owns them.

use super::system_info;
use crate::code::epochs::{Since, epochs};
use crate::cx::{BifResult, Cx, Fail};
use crate::options::{CpuTopologyEntry, TimeWarp, topology};
use crate::process::ext::MaxHeap;
use crate::sched::{binding, multi_scheduling};
use crate::signal::{handle, send, share};
use crate::{bifs, clock, code, lazy_atoms, msacc, process, report, sched, timer};
use purlin_term::sync::Ordering as TableOrdering;
use purlin_term::{Alloc, NIL, Term, am, arith, atom, gc};
use std::sync::atomic::{AtomicU64, Ordering};

lazy_atoms! {
    blocked = "blocked";
    blocked_normal = "blocked_normal";
    pub(crate) enabled = "enabled";
    final_ = "final"; preliminary = "preliminary";
    volatile = "volatile";
    pub(crate) unbound = "unbound";
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

/// Maximum number of entries of a stack trace.
const MAX_BACKTRACE: i64 = 64;

/// `outstanding_system_requests_limit`; 0 is the value of the command line.
static OUTSTANDING_REQUESTS: AtomicU64 = AtomicU64::new(0);

/// The value of `multi_scheduling`.
pub(crate) fn multi_scheduling() -> Term {
    match multi_scheduling::blocked_by() {
        (true, _) => blocked(),
        (false, true) => blocked_normal(),
        (false, false) => enabled(),
    }
}

/// Milliseconds between two checks whether the others have stopped.
const LOOK_MS: u64 = 1;

/// A process that has blocked others and waits until they have stopped.
struct Blocks {
    since: Since,
    normal: bool,
}

/// Blocks or unblocks. The blocking process continues when all others have stopped, on a scheduler
/// that is not blocked.
fn block(cx: &mut Cx, on: bool, normal: bool) -> BifResult {
    let me = cx.self_pid();
    let state = cx.process().ext().map(|e| &mut e.bif_state);
    if let Some(b) = state
        .and_then(|s| s.as_mut())
        .and_then(|s| s.downcast_mut::<Blocks>())
    {
        if b.since.passed() && (b.normal || multi_scheduling::others_stopped()) {
            if let Some(e) = cx.process().ext() {
                e.bif_state = None;
            }
            return Ok(multi_scheduling());
        }
    } else {
        multi_scheduling::set_blocker(me, on, normal);
        if !on {
            return Ok(multi_scheduling());
        }
        // A single thread runs everything, so all others have stopped.
        if purlin_kernel::os::exploring::on() {
            return Err(cx.yield_with(multi_scheduling()));
        }
        let since = epochs().since();
        cx.process().ext_mut().bif_state = Some(Box::new(Blocks { since, normal }));
    }
    timer::after(LOOK_MS, move || send::wake(me));
    Err(Fail::Wait)
}

/// Whether the offset between monotonic and system time may change.
pub(crate) fn time_offset() -> Term {
    match crate::options::current().flags.time.warp {
        TimeWarp::Multi => volatile(),
        TimeWarp::Single if !clock::is_settled() => preliminary(),
        _ => final_(),
    }
}

/// Notifies the processes that monitor the clock.
fn tell_offset(offset: i64) {
    for pid in process::table().pids() {
        let told = move |cx: Option<&mut Cx>| {
            if let Some(cx) = cx {
                handle::time_offset_changed(cx, offset);
            }
        };
        send::run_in(pid, Box::new(told));
    }
}

/// The value of `outstanding_system_requests_limit`.
pub(crate) fn outstanding_requests() -> u64 {
    match OUTSTANDING_REQUESTS.load(Ordering::Relaxed) {
        0 => crate::options::current()
            .flags
            .dist
            .outstanding_requests_limit
            .into(),
        n => n,
    }
}

/// The term of a `max_heap_size`.
pub(crate) fn max_heap(cx: &mut Cx, m: Option<MaxHeap>) -> Term {
    crate::natives::process::option_terms::max_heap_term(cx, m)
}

/// The minimum heap size that is reported for new processes.
pub(crate) fn min_heap_size() -> i64 {
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

/// A topology of tuples `{cpu, Node, Processor, ProcessorNode, Core, Thread, Logical}`.
fn topology_of(t: Term) -> Option<Vec<CpuTopologyEntry>> {
    let mut all = Vec::new();
    let mut rest = t;
    while let Some((h, t)) = rest.as_cons() {
        let [tag, ids @ ..] = h.as_tuple()? else {
            return None;
        };
        let ids: Vec<i32> = ids
            .iter()
            .map(|n| n.as_small().and_then(|n| i32::try_from(n).ok()))
            .collect::<Option<_>>()?;
        let &[node, processor, processor_node, core, thread, logical] = &ids[..] else {
            return None;
        };
        if *tag != atom::intern("cpu") {
            return None;
        }
        all.push(CpuTopologyEntry {
            node,
            processor,
            processor_node,
            core,
            thread,
            logical,
        });
        rest = t;
    }
    (rest.is_nil() && topology::check(&mut all).is_ok()).then_some(all)
}

fn warn(cx: &mut Cx, text: &str) {
    let (leader, me) = (crate::process::group_leader_of(cx), cx.self_pid());
    report::send(
        report::Level::Warning,
        leader,
        me,
        report::Text::Plain(text),
    );
}

/// A flag of `system_flag/2`.
pub struct Flag {
    /// Its names, all with the same meaning.
    pub names: &'static [&'static str],
    pub doc: &'static str,
    /// Sets the flag and returns its old value.
    set: fn(&mut Cx, Term) -> BifResult,
}

macro_rules! flags {
    ($($($name:literal)|+: $doc:literal => $set:expr;)*) => {
        /// The flags that `system_flag/2` sets.
        pub static FLAGS: &[Flag] = &[$(Flag { names: &[$($name),+], doc: $doc, set: $set }),*];
    };
}
flags! {
    "multi_scheduling": "Blocks all schedulers but one, or normal ones, or lets them run again." => |cx, value| match value {
            v if v == am::BLOCK => block(cx, true, false),
            v if v == unblock() => block(cx, false, false),
            v if v == block_normal() => block(cx, true, true),
            v if v == unblock_normal() => block(cx, false, true),
            _ => Err(Fail::Badarg),
        };
    "schedulers_online": "How many normal schedulers take part." => |cx, value| {
            let n = value.as_small().ok_or(Fail::Badarg)?;
            // The number may exceed that at start: threads are created on demand.
            if n < 1 || n as usize > sched::MAX_SCHEDULERS {
                return Err(Fail::Badarg);
            }
            crate::threads::upkeep::count_chosen();
            let n = n as usize;
            let before = multi_scheduling::set_online(n);
            // The pool of dirty CPU threads is kept in proportion.
            if n != before {
                let most = sched::dirty_counts().0;
                let dirty = sched::dirty_cpu_online() * n / before.max(1);
                sched::set_dirty_cpu_online(dirty.clamp(1, most.max(1)));
            }
            // The caller may be on a scheduler that is now offline, so it continues on an online
            // one.
            if n < before {
                return Err(cx.yield_with(Term::small(before as i64)));
            }
            Ok(Term::small(before as i64))
        };
    "dirty_cpu_schedulers_online": "How many dirty CPU schedulers take part." => |_, value| {
            let n = value.as_small().ok_or(Fail::Badarg)?;
            if n < 1 || n as usize > sched::dirty_counts().0 {
                return Err(Fail::Badarg);
            }
            Ok(Term::small(sched::set_dirty_cpu_online(n as usize) as i64))
        };
    "fullsweep_after": "Default of minor collections before a full sweep." => |_, value| {
            let n = natural(value)?.min(u16::MAX.into()) as u32;
            let before = process::DEFAULTS.fullsweep_after.swap(n, TableOrdering::Relaxed);
            Ok(Term::small(before.into()))
        };
    "min_heap_size": "Default of words of a heap." => |_, value| {
            let n = natural(value)?;
            let before = min_heap_size();
            // Stock's initial value stands for no more than is needed.
            let n = match heap_size(n) {
                233 => 0,
                n => n,
            };
            process::DEFAULTS.min_heap_words.store(n, TableOrdering::Relaxed);
            Ok(Term::small(before))
        };
    "min_bin_vheap_size": "Default of the virtual heap of binaries." => |_, value| {
            let n = gc::heap_size_for(natural(value)? as usize);
            let before = process::DEFAULTS.min_vheap_words.swap(n, TableOrdering::Relaxed);
            Ok(Term::small(before as i64))
        };
    "max_heap_size": "Default of the limit of heaps." => |cx, value| {
            let before = Some(process::max_heap_flags());
            let new = crate::natives::process::option_terms::max_heap(value, before).ok_or(Fail::Badarg)?;
            if new.words != 0 && (new.words as i64) < min_heap_size() {
                return Err(Fail::Badarg);
            }
            process::set_default_max_heap(new);
            Ok(max_heap(cx, before))
        };
    "sharing_threshold": "Words from which on a message is shared." => |_, value| {
            let words = match value {
                v if v == am::INFINITY => usize::MAX,
                v => v.as_small().filter(|&n| n > 0).ok_or(Fail::Badarg)? as usize,
            };
            Ok(share::threshold_term(share::set_threshold(words)))
        };
    "debug_flags": "Nothing." => |_, _| Ok(am::TRUE);
    "backtrace_depth": "Most entries of a stack trace." => |_, value| {
            let n = natural(value)?.min(MAX_BACKTRACE) as usize;
            let before = crate::code::stack::DEPTH.swap(n, Ordering::Relaxed);
            Ok(Term::small(before as i64))
        };
    "trace_control_word": "Word that match specifications of traces read." => |_, value| {
            let n = arith::to_u64(value)
                .and_then(|n| u32::try_from(n).ok())
                .ok_or(Fail::Badarg)?;
            let before = crate::ets::matchspec::TRACE_CONTROL_WORD.swap(n, Ordering::Relaxed);
            Ok(Term::small(before.into()))
        };
    "sequential_tracer": "The sequential tracer." => |cx, value| {
        let before = crate::trace::sequential::set_sequential_tracer(value).ok_or(Fail::Badarg)?;
        Ok(crate::trace::sequential::sequential_tracer_term(cx, &before))
    };
    "reset_seq_trace": "Drops the tokens of all processes." => |cx, _| {
            crate::natives::tracing::seq_trace::reset_tokens(cx);
            Ok(am::TRUE)
        };
    "microstate_accounting": "Measures what threads do, or forgets it." => |_, value| match value {
            am::TRUE | am::FALSE => Ok(Term::bool(msacc::set(value == am::TRUE))),
            v if v.is_atom() && atom::name(v) == "reset" => Ok(Term::bool(msacc::reset())),
            _ => Err(Fail::Badarg),
        };
    "scheduler_wall_time": "Measures how busy schedulers are." => |cx, value| {
            if value.as_bool().is_none() {
                return Err(Fail::Badarg);
            }
            let e = code::export(erts_internal(), system_flag_scheduler_wall_time(), 1);
            Err(cx.trap(e, &[value]))
        };
    "time_offset": "Ends the preliminary time offset." => |cx, value| {
            if value != finalize() {
                return Err(cx.badarg_cause(am::BADOPT));
            }
            // Has no effect once the offset is final, or where it may change at any time.
            let before = time_offset();
            if before == preliminary()
                && let Some(offset) = clock::settle()
            {
                tell_offset(offset);
            }
            Ok(before)
        };
    "outstanding_system_requests_limit": "Maximum number of requests of a kind in progress." => |cx, value| {
            let n = arith::to_u64(value)
                .filter(|n| (1..1 << 27).contains(n))
                .ok_or(Fail::Badarg)?;
            let before = outstanding_requests();
            OUTSTANDING_REQUESTS.store(n, Ordering::Relaxed);
            Ok(cx.uint(before))
        };
    "scheduling_statistics": "Nothing is counted." => |_, value| {
            if [enable(), disable(), clear()].contains(&value) {
                Ok(am::TRUE)
            } else {
                Err(Fail::Badarg)
            }
        };
    "cpu_topology": "The topology that schedulers are bound by; its nested form is taken apart in Erlang." => |cx, value| {
            warn(cx, CPU_TOPOLOGY);
            let set = code::export(am::ERLANG, atom::intern("set_cpu_topology"), 1);
            Err(cx.trap(set, &[value]))
        };
    "internal_cpu_topology": "The same as tuples `cpu`, or `undefined`." => |cx, value| {
            let before = binding::used();
            let wanted = match value == am::UNDEFINED {
                true => None,
                false => Some(topology_of(value).ok_or(Fail::Badarg)?),
            };
            binding::define(wanted);
            Ok(system_info::internal_topology(cx, &before))
        };
    "erts_alloc": "Not to be set." => |_, _| Err(Fail::Badarg);
    "scheduler_bind_type": "How schedulers are bound to processors." => |cx, value| {
            warn(cx, BIND_TYPE);
            let how = value.is_atom().then(|| system_info::bind_type_of(value)).flatten();
            let before = how.and_then(binding::set_bind_type).ok_or(Fail::Badarg)?;
            Ok(system_info::bind_type(before))
        };
    "system_logger": "The process that gets the emulator's log messages." => |_, value| report::set_system_logger(value).ok_or(Fail::Badarg);
}

fn system_flag_2(cx: &mut Cx, [flag, value]: [Term; 2]) -> BifResult {
    let name = flag.is_atom().then(|| atom::name(flag));
    let row = name.and_then(|n| FLAGS.iter().find(|f| f.names.contains(&n)));
    match row {
        Some(row) => (row.set)(cx, value),
        None => Err(cx.badarg_cause(am::BADOPT)),
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
    cx.reds = cx
        .reds
        .saturating_sub(n.min(crate::threads::slice::SLICE))
        .max(0);
    Ok(am::TRUE)
}

bifs! {
    Plain "erlang":"system_flag"/2 = system_flag_2;
    Plain "erlang":"bump_reductions"/1 = bump_reductions_1;
    Plain "erts_internal":"system_check"/1 = system_check_1;
}

/// The list of pids for `multi_scheduling_blockers`, each once.
pub(crate) fn pids_once(cx: &mut Cx, pids: &[Term]) -> Term {
    let mut seen: Vec<Term> = Vec::new();
    for &p in pids {
        if !seen.contains(&p) {
            seen.push(p);
        }
    }
    if seen.is_empty() { NIL } else { cx.list(&seen) }
}
