//! Natives that set flags of processes. Each returns the old value.

use super::option_terms::{
    asked_collections, asked_heap, asked_vheap, erl_flag, max_heap, max_heap_term, priority_atom,
    priority_of,
};
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::process::saved;
use crate::process::{self, OFF_HEAP_QUEUE, SENSITIVE, TRAP_EXIT, table};
use crate::signal::send;
use crate::{bifs, ids};
use purlin_term::frag::OwnedTerm;
use purlin_term::release::{self, ASYNC_DIST_TOLD};
use purlin_term::{NIL, Term, am, copy};

lazy_atoms! {
    a_sensitive = "sensitive";
    a_save_calls = "save_calls";
    a_monitor_nodes = "monitor_nodes";
    pub(crate) a_async_dist = "async_dist";
    pub(crate) a_scheduler = "scheduler";
    a_badtype = "badtype";
}

/// Sets a flag of the heap; `None` if `flag` is none of these.
fn heap_flag(cx: &mut Cx, flag: Term, value: Term) -> Option<BifResult> {
    Some(match flag {
        f if f == am::MIN_HEAP_SIZE => set_min_heap(cx, value),
        f if f == am::MIN_BIN_VHEAP_SIZE => set_min_vheap(cx, value),
        f if f == am::FULLSWEEP_AFTER => set_fullsweep_after(cx, value),
        f if f == am::MAX_HEAP_SIZE => set_max_heap(cx, value),
        _ => return None,
    })
}

fn set_min_heap(cx: &mut Cx, value: Term) -> BifResult {
    let n = value.as_small().filter(|n| (0..1 << 31).contains(n));
    let n = n.ok_or(Fail::Badarg)? as usize;
    let old = process::reported_min_heap(cx.process());
    let asked = asked_heap(n);
    cx.process().ext_mut().settings.min_heap_words = asked;
    cx.heap.min_heap_words = asked.map_or_else(process::default_min_heap, |n| n as usize);
    Ok(Term::small(old as i64))
}

fn set_min_vheap(cx: &mut Cx, value: Term) -> BifResult {
    let n = value.as_small().and_then(|n| usize::try_from(n).ok());
    let n = asked_vheap(n.ok_or(Fail::Badarg)?);
    let old = cx.heap.min_vheap_words;
    cx.process().ext_mut().settings.min_vheap_words = Some(n);
    cx.heap.min_vheap_words = n;
    Ok(Term::small(old as i64))
}

fn set_fullsweep_after(cx: &mut Cx, value: Term) -> BifResult {
    let n = value.as_small().and_then(asked_collections);
    let n = n.ok_or(Fail::Badarg)?;
    let old = cx.heap.fullsweep_after;
    cx.process().ext_mut().settings.fullsweep_after = Some(n);
    cx.heap.fullsweep_after = n;
    Ok(Term::small(i64::from(old)))
}

fn set_max_heap(cx: &mut Cx, value: Term) -> BifResult {
    let old = cx.process().ext().and_then(|e| e.max_heap);
    let new = max_heap(value, old).ok_or(Fail::Badarg)?;
    if new.words != 0 && new.words < process::reported_min_heap(cx.process()) {
        return Err(Fail::Badarg);
    }
    let t = max_heap_term(cx, old);
    cx.process().ext_mut().max_heap = Some(new);
    Ok(t)
}

fn process_flag_2(cx: &mut Cx, [flag, value]: [Term; 2]) -> BifResult {
    if flag == am::TRAP_EXIT {
        let on = erl_flag(value).ok_or(Fail::Badarg)?;
        // Signals in transit follow the new setting, as on stock.
        let p = cx.process();
        let old = p.has(TRAP_EXIT);
        p.set_flag(TRAP_EXIT, on);
        return Ok(if old { am::TRUE } else { am::FALSE });
    }
    if flag == am::ERROR_HANDLER {
        if !value.is_atom() {
            return Err(Fail::Badarg);
        }
        let e = cx.process().ext_mut();
        let old = std::mem::replace(&mut e.error_handler, value);
        return Ok(if old == NIL { am::ERROR_HANDLER } else { old });
    }
    if flag == am::PRIORITY {
        let new = priority_of(value).ok_or(Fail::Badarg)?;
        let old = cx.process().state.priority();
        cx.process().state.set_priority(new);
        return Ok(priority_atom(old));
    }
    if let Some(result) = heap_flag(cx, flag, value) {
        return result;
    }
    if flag == am::MESSAGE_QUEUE_DATA {
        let on = match value {
            v if v == am::ON_HEAP => false,
            v if v == am::OFF_HEAP => true,
            _ => return Err(Fail::Badarg),
        };
        let old = cx.process().has(OFF_HEAP_QUEUE);
        cx.process().set_flag(OFF_HEAP_QUEUE, on);
        return Ok(if old { am::OFF_HEAP } else { am::ON_HEAP });
    }
    if flag == a_sensitive() {
        let on = erl_flag(value).ok_or(Fail::Badarg)?;
        let old = cx.process().has(SENSITIVE);
        cx.process().set_flag(SENSITIVE, on);
        cx.process().state.set_sensitive(on);
        // As on stock, where the setting takes effect when the process is scheduled in.
        cx.end_slice();
        return Ok(if old { am::TRUE } else { am::FALSE });
    }
    if flag == a_async_dist() && release::has(ASYNC_DIST_TOLD) {
        let on = erl_flag(value).ok_or(Fail::Badarg)?;
        let old = cx.process().is_async_dist();
        cx.process().ext_mut().async_dist = Some(on);
        return Ok(Term::bool(old));
    }
    if flag == a_save_calls() {
        let Some(n) = value.as_small().filter(|n| (0..=10_000).contains(n)) else {
            return Err(cx.badarg_cause(am::NONE));
        };
        let old = saved::set(cx.process(), n as usize);
        let old = Term::small(old as i64);
        // Machine code does not record calls: the interpreter continues in the next slice.
        return if n == 0 {
            Ok(old)
        } else {
            Err(cx.yield_with(old))
        };
    }
    if flag == a_scheduler() {
        let n = value
            .as_small()
            .and_then(|n| usize::try_from(n).ok())
            .filter(|&n| n <= crate::sched::count())
            .ok_or(Fail::Badarg)?;
        let before = crate::sched::bind(cx.proc.get(), n);
        // The code that follows must run on the other scheduler.
        return Err(cx.yield_with(Term::small(before as i64)));
    }
    if flag == a_monitor_nodes()
        || flag
            .as_tuple()
            .is_some_and(|t| t.len() == 2 && t[0] == a_monitor_nodes())
    {
        return purlin_dist::distribution_natives::monitor_nodes(cx, flag, value);
    }
    Err(cx.badarg_cause(am::BADOPT))
}

fn process_flag_3(cx: &mut Cx, [pid, flag, value]: [Term; 3]) -> BifResult {
    if !pid.is_local_pid() {
        return Ok(a_badtype());
    }
    if pid != cx.self_pid() && table().find(pid).is_none() {
        return Ok(a_badtype());
    }
    if flag != a_save_calls() {
        return Ok(am::BADARG);
    }
    if pid == cx.self_pid() {
        return match process_flag_2(cx, [flag, value]) {
            Ok(old) => Ok(old),
            Err(Fail::Yield) => Err(Fail::Yield),
            Err(_) => Ok(am::BADARG),
        };
    }
    let Some(n) = value.as_small().filter(|n| (0..=10_000).contains(n)) else {
        return Ok(am::BADARG);
    };
    let r = ids::make_ref(cx);
    let (me, key) = (cx.self_pid(), OwnedTerm::copy_of(r));
    send::run_in(
        pid,
        Box::new(move |cx| {
            let old = cx.map(|c| {
                let old = saved::set(c.process(), n as usize);
                if n != 0 {
                    saved::begin(c);
                    // Machine code does not record calls. It exits where a collection is due.
                    c.compiled = false;
                    c.heap.gc_wanted = true;
                }
                old
            });
            send::send_with(me, |b| {
                let r = copy::copy(key.term(), b);
                b.tuple(&[r, old.map_or(am::BADARG, |n| Term::small(n as i64))])
            });
        }),
    );
    Ok(r)
}

bifs! {
    Plain "erlang":"process_flag"/2 = process_flag_2 [reads(All)];
    Plain "erts_internal":"process_flag"/3 = process_flag_3 [writes(Process)];
}
