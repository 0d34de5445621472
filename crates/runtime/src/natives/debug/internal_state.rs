//! `erts_debug:get_internal_state/1` and `set_internal_state/2`.
//!
//! Both accept only the items that this runtime can answer or carry out truthfully; all others are
//! a `badarg`. As in stock, both are `undef` until `set_internal_state(available_internal_state,
//! true)`.

use super::link_lists::{self, What};
use crate::clock;
use crate::code;
use crate::cx::{BifResult, Cx, Fail};
use crate::ids;
use crate::natives::system::system_info;
use crate::process::{EXIT_PENDING, OFF_HEAP_QUEUE};
use crate::sched::{binding, multi_scheduling};
use crate::signal::handle;
use purlin_native::reschedule;
use purlin_term::frag::Fragment;
use purlin_term::layout;
use purlin_term::print::{Style, format_term};
use purlin_term::release::{self, DEBUGGER};
use purlin_term::word::MIN_SMALL;
use purlin_term::{Alloc, NIL, Term, am, arith, atom, atom_collection, copy, etf, hash};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static AVAILABLE: AtomicBool = AtomicBool::new(false);

pub(super) fn word(t: Term) -> &'static str {
    if t.is_atom() { atom::name(t) } else { "" }
}

fn get_internal_state_1(cx: &mut Cx, [item]: [Term; 1]) -> BifResult {
    if word(item) == "available_internal_state" {
        return Ok(Term::bool(AVAILABLE.load(Ordering::Relaxed)));
    }
    if !AVAILABLE.load(Ordering::Relaxed) {
        return Err(Fail::Undef);
    }
    // The order in which schedulers would be bound to the known processors, whether or not there
    // are as many schedulers.
    if let Some(&[what, how]) = item.as_tuple()
        && word(what) == "fake_scheduler_bindings"
    {
        let how = how.is_atom().then(|| system_info::bind_type_of(how));
        let how = how.flatten().ok_or(Fail::Badarg)?;
        let all = binding::order(&binding::used(), how);
        let all: Vec<Term> = all.iter().map(|&p| Term::small(p.into())).collect();
        return Ok(cx.tuple(&all));
    }
    if word(item) == "reds_left" {
        return Ok(Term::small(cx.reds.max(0)));
    }
    if word(item) == "persistent_term" {
        let slots = Term::small(crate::natives::persistent::slots() as i64);
        return Ok(cx.flatmap(&[am::TABLE], &[slots]));
    }
    // Natives always put the terms that they make where there is room.
    if word(item) == "force_heap_frags" {
        return Ok(am::FALSE);
    }
    // There is no build in which the keys of maps collide.
    if word(item) == "hashmap_collision_bonanza" {
        return Ok(am::FALSE);
    }
    if word(item) == "debugger_support" && release::has(DEBUGGER) {
        return Ok(Term::bool(code::debugger::enabled()));
    }
    if word(item) == "min_unique_monotonic_integer" {
        return Ok(Term::small(MIN_SMALL));
    }
    if word(item) == "unique_monotonic_integer_state" {
        return Ok(cx.uint(ids::last_monotonic()));
    }
    if word(item) == "nbalance" {
        return Ok(cx.uint(crate::sched::balances()));
    }
    if word(item) == "process_info_args" {
        return Ok(crate::natives::process::process_info::all_items(cx));
    }
    // Descriptors in a bad state, descriptors in use, and who selected them: ports and libraries.
    if word(item) == "check_io_debug" {
        let (all, ..) = crate::poll::sizes();
        let of_libraries = purlin_nif::selected();
        let n = [0, all, all.saturating_sub(of_libraries), of_libraries];
        return Ok(cx.tuple(&n.map(|n| Term::small(n as i64))));
    }
    if word(item) == "atom_collection" {
        return Ok(atom_collection(cx));
    }
    if word(item) == "monitoring_nodes" {
        return Ok(purlin_dist::observers::list(cx));
    }
    if word(item) == "node_and_dist_references" {
        return super::node_refs::references(cx);
    }
    if word(item) == "max_atom_out_cache_index" {
        return Ok(Term::small(etf::encode::ATOM_SLOTS as i64 - 1));
    }
    // The same figures as in a crash dump.
    if word(item) == "memory" {
        let mut l = NIL;
        for (name, bytes) in crate::natives::system::memory::usage()
            .named()
            .into_iter()
            .rev()
        {
            let pair = cx.tuple(&[atom::intern(name), Term::small(bytes as i64)]);
            l = cx.cons(pair, l);
        }
        return Ok(l);
    }
    if word(item) == "stack_check" {
        return native_stack_left().map(|n| cx.uint(n)).ok_or(Fail::Badarg);
    }
    match item.as_tuple() {
        Some(&[k, name]) if word(k) == "dist_ctrl" => {
            Ok(purlin_dist::distribution_natives::controller_of(name).unwrap_or(am::UNDEFINED))
        }
        Some(&[k, whose]) if word(k) == "link_list" => link_lists::list(cx, What::Links, whose),
        Some(&[k, whose]) if word(k) == "monitor_list" => {
            link_lists::list(cx, What::Monitors, whose)
        }
        Some(&[k, t]) if word(k) == "atom_out_cache_index" && t.is_atom() => {
            let slot = etf::encode::atom_slot(t);
            Ok(Term::small(slot as i64))
        }
        Some(&[k, name]) if word(k) == "connection_id" => {
            let id = purlin_dist::distribution_natives::connection_of(name);
            Ok(id.map_or(am::FALSE, |id| Term::small(id.into())))
        }
        Some(&[k, pid]) if word(k) == "process_status" && pid.is_local_pid() => {
            Ok(process_status(pid))
        }
        Some(&[k, t]) if word(k) == "binary_info" && t.as_bits().is_some() => {
            Ok(binary_info(cx, t))
        }
        Some(&[k, t]) if word(k) == "internal_hash" => Ok(cx.uint(hash::salted(t, 0))),
        Some(&[k, t]) if word(k) == "atom" => {
            let index = arith::to_u64(t).and_then(|n| u32::try_from(n).ok());
            atom_at(index.filter(|n| *n < atom::limit()).ok_or(Fail::Badarg)?)
        }
        _ => Err(Fail::Badarg),
    }
}

/// The state of a process; `undefined` if there is none.
fn process_status(pid: Term) -> Term {
    let Some(p) = crate::process::table().find(pid) else {
        return am::UNDEFINED;
    };
    // SAFETY: cells are never unmapped; the state word is an atomic.
    let state = unsafe { (*p).state.load() };
    atom::intern(if state.is_exiting() {
        "exiting"
    } else if state.is_suspended() {
        "suspended"
    } else if state.is_running() {
        "running"
    } else if state.is_queued() {
        "runnable"
    } else {
        "waiting"
    })
}

/// The atom with that index. Atoms up to that index are created if they are missing, with names
/// that say what they are.
fn atom_at(index: u32) -> BifResult {
    while index >= atom::made() {
        atom::try_intern(&format!("am{:x}", atom::made())).map_err(|_| Fail::Badarg)?;
    }
    let t = Term::atom(index);
    atom::is_known(t).then_some(t).ok_or(Fail::Badarg)
}

/// The figures of the collection of atoms, in microseconds and bytes; after a cycle that begins and
/// ends now.
fn atom_collection(cx: &mut Cx) -> Term {
    atom_collection::collect_now();
    let f = atom_collection::figures();
    let all = [
        ("cycles", f.cycles),
        ("failures", f.failures),
        ("removed", f.removed),
        ("pages", f.pages),
        ("bytes", f.bytes),
        ("longest_stop", f.longest_stop.as_micros() as u64),
        ("longest_cycle", f.longest_cycle.as_micros() as u64),
    ];
    let mut l = NIL;
    for (name, n) in all.into_iter().rev() {
        let n = cx.uint(n);
        let pair = cx.tuple(&[atom::intern(name), n]);
        l = cx.cons(pair, l);
    }
    l
}

/// Bytes left of this thread's native stack.
#[cfg(target_os = "linux")]
fn native_stack_left() -> Option<u64> {
    let here = 0u8;
    // SAFETY: the attributes are filled in by the call and freed; addresses are only compared.
    unsafe {
        let mut attr = std::mem::zeroed::<libc::pthread_attr_t>();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attr) != 0 {
            return None;
        }
        let (mut lowest, mut bytes) = (std::ptr::null_mut(), 0);
        let r = libc::pthread_attr_getstack(&attr, &mut lowest, &mut bytes);
        libc::pthread_attr_destroy(&mut attr);
        (r == 0).then(|| (&raw const here as u64).saturating_sub(lowest as u64))
    }
}

#[cfg(not(target_os = "linux"))]
fn native_stack_left() -> Option<u64> {
    None
}

/// The storage of a bitstring: `heap_binary`, or `{refc_binary, Size, {binary, Capacity}, Flags}`.
fn binary_info(cx: &mut Cx, t: Term) -> Term {
    let whole = t.whole();
    let Some(block) = whole.block() else {
        return atom::intern("heap_binary");
    };
    // SAFETY: the layout of counted binaries; the block lives as long as the term.
    let (size, flags, capacity) = unsafe {
        let word = |n: usize| (*whole.ptr().add(n)).raw();
        (
            word(layout::BIN_SIZE),
            word(layout::REFC_BIN_FLAGS),
            (*block).capacity,
        )
    };
    let room = cx.uint(capacity as u64);
    let room = cx.tuple(&[am::BINARY, room]);
    let size = cx.uint(size);
    let flags = cx.uint(flags);
    cx.tuple(&[atom::intern("refc_binary"), size, room, flags])
}

fn set_internal_state_2(cx: &mut Cx, [item, value]: [Term; 2]) -> BifResult {
    if word(item) == "available_internal_state" {
        let on = value.as_bool().ok_or(Fail::Badarg)?;
        return Ok(Term::bool(AVAILABLE.swap(on, Ordering::Relaxed)));
    }
    if !AVAILABLE.load(Ordering::Relaxed) {
        return Err(Fail::Undef);
    }
    match (word(item), word(value)) {
        ("reds_left", _) => {
            cx.reds = arith::to_i64(value)
                .filter(|n| *n >= 0)
                .ok_or(Fail::Badarg)?;
            Ok(am::TRUE)
        }
        // Memory is freed at once; destructors of resources run between time slices.
        ("wait", "deallocations" | "thread_progress" | "aux_work" | "timer_cancellations") => {
            match purlin_kernel::later::all_done() {
                true => Ok(am::OK),
                false => Err(Fail::Again),
            }
        }
        ("binary_loop_limit" | "unicode_loop_limit", _) => {
            let limit = match word(item) {
                "binary_loop_limit" => &reschedule::BINARY,
                _ => &reschedule::UNICODE,
            };
            let n = match word(value) {
                "default" => 0,
                _ => arith::to_u64(value).ok_or(Fail::Badarg)?,
            };
            Ok(cx.uint(limit.set(n as usize) as u64))
        }
        // Matching yields by reductions, not by a count of loop iterations.
        ("re_loop_limit", "default") => Ok(Term::small(0)),
        ("re_loop_limit", _) => arith::to_u64(value)
            .map(|_| Term::small(0))
            .ok_or(Fail::Badarg),
        // Natives of tables trap by reductions only, and a tree is never split.
        ("ets_force_trap" | "ets_force_split" | "ets_debug_random_split_join", _) => Ok(am::NOTSUP),
        _ => set_memory_state(cx, item, value),
    }
}

/// Sets an item about the memory of the calling process, or one of [`set_system_state`].
fn set_memory_state(cx: &mut Cx, item: Term, value: Term) -> BifResult {
    match (word(item), word(value)) {
        // Looks the named process up, but the caller is the one that collects.
        ("force_gc", _) => {
            let found = value.is_local_pid() && crate::process::table().find(value).is_some();
            if found {
                cx.heap.need_fullsweep = true;
                cx.heap.gc_wanted = true;
            }
            Ok(Term::bool(found))
        }
        // Turns the rest of the heap into garbage, so that the next allocation collects.
        ("fill_heap", how) => {
            let left = cx.heap.free_words();
            if left > 1 {
                cx.big(false, &vec![1; left - 1]);
            }
            cx.heap.need_fullsweep |= how == "true";
            Ok(am::OK)
        }
        // Requests of other processes wait; the process itself still collects when it must.
        ("gc_state", _) => {
            let on = value.as_bool().ok_or(Fail::Badarg)?;
            let e = cx.process().ext_mut();
            let was = e.collections_held.is_none();
            if !on && was {
                e.collections_held = Some(Vec::new());
            } else if on {
                let held = e.collections_held.take().unwrap_or_default();
                e.deferred.extend(held);
            }
            Ok(Term::bool(was))
        }
        // A copy of the term in a heap fragment of its own.
        ("mbuf", _) => {
            let mut f = Fragment::with_capacity(copy::size_whole(value));
            let t = copy::copy_whole(value, &mut f);
            if f.used_words() > 0 {
                cx.heap.frag_words += f.used_words();
                cx.heap.frags.push(f);
            }
            Ok(t)
        }
        _ => set_system_state(cx, item, value),
    }
}

/// Sets an item about the whole system.
fn set_system_state(cx: &mut Cx, item: Term, value: Term) -> BifResult {
    match (word(item), word(value)) {
        // No process runs for that many milliseconds, and no input arrives.
        ("block", _) => {
            let ms = arith::to_u64(value).ok_or(Fail::Badarg)?;
            let before = multi_scheduling::blocked();
            multi_scheduling::block(true);
            // The process that blocks already runs alone.
            let turn = match before {
                true => None,
                false => multi_scheduling::turn(|_| {}),
            };
            let held = crate::poll::hold();
            std::thread::sleep(Duration::from_millis(ms));
            drop((held, turn));
            if !before {
                multi_scheduling::unblock();
            }
            Ok(am::TRUE)
        }
        // Milliseconds for which an unused node entry is kept; below 0, the value of the command
        // line.
        ("node_tab_delayed_delete", _) => {
            let ms = value.as_small().ok_or(Fail::Badarg)?;
            purlin_dist::table::set_delay(u64::try_from(ms).ok());
            Ok(am::OK)
        }
        ("kill_dist_connection", _) => Ok(Term::bool(
            purlin_dist::distribution_natives::kill_connection(value),
        )),
        // `{Name, Count}`: that many atoms which, as table names, share the lock of `Name`.
        ("colliding_names", _) => {
            let Some(&[name, count]) = value.as_tuple() else {
                return Err(Fail::Badarg);
            };
            let count = count.as_small().and_then(|n| u32::try_from(n).ok());
            let count = count.filter(|_| name.is_atom()).ok_or(Fail::Badarg)?;
            let mut l = NIL;
            for t in crate::ets::names_beside(name).take(count as usize) {
                l = cx.cons(atom_at(t)?, l);
            }
            Ok(l)
        }
        // Senders never wait for each other here, whatever the receiver. Stock gives parallel
        // buffers only to receivers with an off-heap message queue.
        ("proc_sig_buffers", "true") => Ok(Term::bool(cx.process().has(OFF_HEAP_QUEUE))),
        ("proc_sig_buffers", _) => Ok(am::NOTSUP),
        ("test_long_gc_sleep", _) => {
            let ms = value.as_small().and_then(|n| u32::try_from(n).ok());
            let ms = ms.ok_or(Fail::Badarg)?;
            crate::trace::GC_SLEEP_MS.store(ms, Ordering::Relaxed);
            Ok(am::TRUE)
        }
        ("debugger_support", on) if release::has(DEBUGGER) => {
            // It cannot be switched off.
            if on != "true" {
                return Ok(am::BADARG);
            }
            code::debugger::enable();
            Ok(am::OK)
        }
        // The emulator exits with a crash dump.
        ("broken_halt", _) => {
            let slogan = format_term(value, Style::Display, 10_000);
            crate::halt::halt_with_dump(&slogan)
        }
        // Keeps others from changing code or its tracing.
        ("code_write_permission" | "code_mod_permission", "true") => {
            code::permission::keep(cx)?;
            Ok(am::TRUE)
        }
        ("code_write_permission" | "code_mod_permission", "false") => {
            code::permission::give_back();
            Ok(am::TRUE)
        }
        // The last number from `unique_integer([monotonic])`; negative values are modulo 2^64.
        ("unique_monotonic_integer_state", _) => {
            let n = arith::to_u64(value).or_else(|| arith::to_i64(value).map(|n| n as u64));
            n.into_iter().for_each(ids::set_last_monotonic);
            Ok(Term::bool(n.is_some()))
        }
        ("sleep", _) => {
            let ms = arith::to_u64(value).ok_or(Fail::Badarg)?;
            std::thread::sleep(Duration::from_millis(ms));
            Ok(am::TRUE)
        }
        _ => Err(Fail::Badarg),
    }
}

/// Waits for that many milliseconds, or for ever, and handles signals meanwhile. Returns false if a
/// signal ends the process.
pub(super) fn wait(cx: &mut Cx, ms: Option<u64>) -> bool {
    let step = Duration::from_micros(200);
    let until = ms.map(|n| clock::after(Duration::from_millis(n)));
    loop {
        handle::fetch(cx);
        if cx.process().has(EXIT_PENDING) {
            return false;
        }
        match until.map(clock::left_until) {
            Some(Duration::ZERO) => return true,
            left => clock::pause(left.map_or(step, |l| l.min(step))),
        }
    }
}

crate::bifs! {
    Plain "erts_debug":"get_internal_state"/1 = get_internal_state_1;
    Plain "erts_debug":"set_internal_state"/2 = set_internal_state_2;
}
