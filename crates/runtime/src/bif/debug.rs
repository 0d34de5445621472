//! Natives of module `erts_debug`, and the tags of dynamic tracing.
//!
//! `get_internal_state/1` and `set_internal_state/2` accept only the items that this runtime can
//! answer or carry out truthfully; all others are a `badarg`. As in stock, both are `undef` until
//! `set_internal_state(available_internal_state, true)`.

use super::inspect::shared_words;
use super::link_lists::{self, What};
use super::system_info;
use crate::code;
use crate::cx::{BifResult, Cx, Fail};
use crate::ids;
use crate::process::{EXIT_PENDING, OFF_HEAP_QUEUE};
use crate::sched::{binding, multi_scheduling};
use crate::signal::{self, handle};
use purlin_native::hashing::Hashing;
use purlin_native::reschedule::{self, dirty_if_large};
use purlin_term::bits::BsWriter;
use purlin_term::frag::Fragment;
use purlin_term::graph::{Graph, Met};
use purlin_term::layout::{self, CONS_TAIL};
use purlin_term::print::{Style, format_term};
use purlin_term::release::{self, DEBUGGER};
use purlin_term::word::{MIN_SMALL, Subtag};
use purlin_term::{Alloc, NIL, Term, am, arith, atom, copy, etf, hash, region};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static AVAILABLE: AtomicBool = AtomicBool::new(false);

fn word(t: Term) -> &'static str {
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
        let slots = Term::small(super::persistent::slots() as i64);
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
        return Ok(super::process_info::all_items(cx));
    }
    // Descriptors in a bad state, descriptors in use, and who selected them: ports and libraries.
    if word(item) == "check_io_debug" {
        let (all, ..) = crate::poll::sizes();
        let of_libraries = purlin_nif::selected();
        let n = [0, all, all.saturating_sub(of_libraries), of_libraries];
        return Ok(cx.tuple(&n.map(|n| Term::small(n as i64))));
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
        for (name, bytes) in super::memory::usage().named().into_iter().rev() {
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
            Ok(purlin_dist::natives::controller_of(name).unwrap_or(am::UNDEFINED))
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
            let id = purlin_dist::natives::connection_of(name);
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
    while index >= atom::count() {
        atom::try_intern(&format!("am{:x}", atom::count())).map_err(|_| Fail::Badarg)?;
    }
    Ok(Term::atom(index))
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
            multi_scheduling::block(before);
            Ok(am::TRUE)
        }
        // Milliseconds for which an unused node entry is kept; below 0, the value of the command
        // line.
        ("node_tab_delayed_delete", _) => {
            let ms = value.as_small().ok_or(Fail::Badarg)?;
            purlin_dist::table::set_delay(u64::try_from(ms).ok());
            Ok(am::OK)
        }
        ("kill_dist_connection", _) => Ok(Term::bool(purlin_dist::natives::kill_connection(value))),
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
            std::thread::sleep(std::time::Duration::from_millis(ms));
            Ok(am::TRUE)
        }
        _ => Err(Fail::Badarg),
    }
}

/// `disassemble({M, F, A})`, or `disassemble(Address)` of an instruction. The result is
/// `{NextAddress, Text, {M, F, A}}` with the text of one op, `undef` if there is no such function,
/// or `false` if no instruction is there.
fn disassemble_1(cx: &mut Cx, [what]: [Term; 1]) -> BifResult {
    let pc = match what.as_tuple() {
        Some(&[m, f, a]) if m.is_atom() && f.is_atom() => {
            let arity = a.as_small().ok_or(Fail::Badarg)?;
            let found = code::current(m).and_then(|v| {
                let mut all = v.functions.iter();
                let one = all.find(|x| x.name == f.raw() && i64::from(x.arity) == arity)?;
                Some(v.at(one.start))
            });
            match found {
                Some(pc) => pc,
                None => return Ok(am::UNDEF),
            }
        }
        _ => arith::to_u64(what).ok_or(Fail::Badarg)? as *const u64,
    };
    let Some(d) = code::disasm_at(pc) else {
        return Ok(am::FALSE);
    };
    let next = cx.uint(d.next as u64);
    let text = cx.binary(format!("{pc:016p}: {}", d.text.trim_start()).as_bytes());
    let mfa = cx.tuple(&[d.module, d.function, Term::small(i64::from(d.arity))]);
    Ok(cx.tuple(&[next, text, mfa]))
}

/// Waits for that many milliseconds, or for ever, and handles signals meanwhile. Returns false if a
/// signal ends the process.
fn wait(cx: &mut Cx, ms: Option<u64>) -> bool {
    let step = Duration::from_micros(200);
    let until = ms.map(|n| Instant::now() + Duration::from_millis(n));
    loop {
        handle::fetch(cx);
        if cx.process().has(EXIT_PENDING) {
            return false;
        }
        match until.map(|t| t.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return true,
            left => std::thread::sleep(left.map_or(step, |l| l.min(step))),
        }
    }
}

/// Sends `{Tag, Pid}`.
fn tell(cx: &mut Cx, to: Term, tag: &str) {
    let me = cx.self_pid();
    signal::send_with(to, |a| a.tuple(&[atom::intern(tag), me]));
}

/// A debugging aid that the tests of dirty threads use. It runs on a dirty thread: `type` returns
/// the kind of thread, `wait` takes time, `error` raises, `copy` makes a thousand copies, `send`
/// sends `{ok, Pid}`, `reschedule` moves between the kinds, and the others report that they run,
/// and wait.
///
/// `call` is the name and arguments of the native called first; errors show it.
fn dirty_test(cx: &mut Cx, kind: &str, call: (&str, &[Term]), what: Term, arg: Term) -> BifResult {
    let r = match (word(what), word(arg)) {
        ("scheduler", "type") => Ok(atom::intern(kind)),
        ("error", "notsup") => Err(cx.error(am::NOTSUP)),
        ("error", "undef") => Err(cx.error(am::UNDEF)),
        ("error", "badarith") => Err(cx.error(am::BADARITH)),
        ("error", "system_limit") => Err(cx.error(am::SYSTEM_LIMIT)),
        ("error", "noproc") => Err(cx.error(am::NOPROC)),
        ("copy", _) => {
            let copies: Vec<Term> = (0..1000).map(|_| copy::copy(arg, cx)).collect();
            Ok(cx.list(&copies))
        }
        ("send", _) => {
            tell(cx, arg, "ok");
            Ok(am::OK)
        }
        ("wait", _) => match arith::to_u64(arg) {
            Some(ms) => {
                wait(cx, Some(ms));
                Ok(am::OK)
            }
            None => Err(cx.error(am::BADARG)),
        },
        ("ready_wait6_done", _) => {
            tell(cx, arg, "ready");
            wait(cx, Some(6000));
            tell(cx, arg, "done");
            Ok(am::OK)
        }
        ("alive_waitexiting" | "alive_waitexitingonly", _) => {
            tell(cx, arg, "alive");
            wait(cx, None);
            Ok(am::OK)
        }
        ("reschedule", _) => match arg.as_small() {
            Some(0) => Ok(am::OK),
            Some(n) if n > 0 => {
                let next = match kind {
                    _ if n % 4 != 0 => kind,
                    "dirty_cpu" => "dirty_io",
                    "dirty_io" => "normal",
                    _ => "dirty_cpu",
                };
                return Err(go_on(cx, next, call, what, Term::small(n - 2)));
            }
            _ => Err(cx.error(am::BADARG)),
        },
        _ => Err(cx.error(am::BADARG)),
    };
    r.map_err(|e| {
        cx.exc.native = Some((atom::intern("erts_debug"), atom::intern(call.0)));
        purlin_native::errors::with_args(cx, e, call.1)
    })
}

/// Continues on a thread of the other kind.
fn go_on(cx: &mut Cx, kind: &str, call: (&str, &[Term]), what: Term, arg: Term) -> Fail {
    let args = cx.list(call.1);
    let name = atom::intern(call.0);
    let state = cx.tuple(&[name, args, what, arg]);
    let f = atom::intern(kind);
    let target = crate::code::export(atom::intern("purlin"), f, 1);
    cx.trap(target, &[state])
}

fn resumed(cx: &mut Cx, kind: &str, state: Term) -> BifResult {
    let Some(&[name, args, what, arg]) = state.as_tuple() else {
        return Err(Fail::Badarg);
    };
    let args = args.list_to_vec().ok_or(Fail::Badarg)?;
    dirty_test(cx, kind, (word(name), &args), what, arg)
}

fn dirty_cpu_2(cx: &mut Cx, [what, arg]: [Term; 2]) -> BifResult {
    dirty_test(cx, "dirty_cpu", ("dirty_cpu", &[what, arg]), what, arg)
}
fn dirty_io_2(cx: &mut Cx, [what, arg]: [Term; 2]) -> BifResult {
    dirty_test(cx, "dirty_io", ("dirty_io", &[what, arg]), what, arg)
}
fn dirty_3(cx: &mut Cx, [kind, what, arg]: [Term; 3]) -> BifResult {
    let call = ("dirty", &[kind, what, arg][..]);
    match word(kind) {
        "normal" => dirty_test(cx, "normal", call, what, arg),
        k @ ("dirty_cpu" | "dirty_io") => Err(go_on(cx, k, call, what, arg)),
        _ => Err(Fail::Badarg),
    }
}
fn resumed_normal(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    resumed(cx, "normal", state)
}
fn resumed_cpu(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    resumed(cx, "dirty_cpu", state)
}
fn resumed_io(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    resumed(cx, "dirty_io", state)
}

/// The names of the instructions that the emulator executes.
fn instructions_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let mut l = NIL;
    for op in purlin_isa::ops::OPS.iter().rev() {
        let s = cx.string(op.name);
        l = cx.cons(s, l);
    }
    Ok(l)
}

/// Words of the boxed term `t`, and the terms in it.
///
/// # Safety
/// `t` is a live boxed term.
unsafe fn parts(t: Term) -> (usize, impl Iterator<Item = Term>) {
    // SAFETY: by the contract of this function.
    unsafe {
        let p = t.ptr();
        let (from, to) = layout::term_range(p);
        (layout::object_words(p), (from..to).map(move |i| *p.add(i)))
    }
}

fn is_empty_tuple(t: Term) -> bool {
    t.as_tuple().is_some_and(|e| e.is_empty())
}

/// Words of a sub-binary and its part of the original, as stock measures them. A sub-binary that
/// starts and ends at byte boundaries counts as the binary that a copy of it would be.
fn sub_binary_words(t: Term, original: Option<Term>) -> usize {
    let (odd, bytes) = t.as_bits().map_or((0, 0), |b| {
        (b.bit_offset as usize % 8 + b.bit_len % 8, b.bit_len / 8)
    });
    let own = if odd > 0 { layout::SUB_BIN_WORDS } else { 0 };
    own + match original.and_then(|o| o.subtag()) {
        Some(Subtag::RefcBin) => layout::REFC_BIN_WORDS,
        _ => layout::HEAP_BIN_HEAD_WORDS + (bytes + odd.div_ceil(8)).div_ceil(8),
    }
}

/// Words of a term. A subterm that is reached twice counts once. Literals, which belong to no
/// process, do not count.
fn size_shared_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    dirty_if_large(cx, "erts_debug", "size_shared", &[t], t)?;
    let mut met = Met::none(&cx.heap);
    let mut counts = |t: Term| {
        let literal = |p| region::is_region_ptr(p) && super::persistent::is_literal(p);
        // `first` goes before `literal`, which takes a lock, so each subterm is looked up once.
        met.first(t) && !literal(t.ptr())
    };
    // The binaries that large sub-binaries refer to.
    let mut wholes = HashSet::<_, Hashing>::default();
    let mut words = 0;
    let mut todo = vec![t];
    while let Some(mut t) = todo.pop() {
        while t.is_list_ptr() && counts(t) {
            words += 2;
            if let Some((h, tl)) = t.as_cons() {
                if !h.is_immed() {
                    todo.push(h);
                }
                t = tl;
            }
        }
        if t.is_boxed() && !is_empty_tuple(t) && counts(t) {
            // SAFETY: `t` is a live boxed term.
            let (n, mut inner) = unsafe { parts(t) };
            if let Some(n) = shared_words(t, |p| wholes.insert(p)) {
                words += n;
                if t.as_fun().is_some() {
                    todo.extend(inner);
                }
                continue;
            }
            if t.subtag() == Some(Subtag::SubBin) {
                words += sub_binary_words(t, inner.next());
                continue;
            }
            // Stock counts the nodes of large maps twice.
            words += match t.is_map() && t.as_flatmap().is_none() {
                true => 2 * n,
                false => n,
            };
            todo.extend(inner);
        }
    }
    cx.bump(words / 16);
    Ok(Term::small(words as i64))
}

/// Whether no subterm is reached twice, and the term's words. With `SHARE`, regions are left out.
fn reached_once<const SHARE: bool>(cx: &Cx, t: Term) -> (bool, usize) {
    let g = Graph::<SHARE>::whole(t, Some(&cx.heap));
    (!g.any_twice(), g.words())
}

/// Copies a term and keeps its sharing. Literals are copied on request.
fn copy_shared_2(cx: &mut Cx, [t, literals]: [Term; 2]) -> BifResult {
    let literals = literals.as_bool().ok_or(Fail::Badarg)?;
    dirty_if_large(
        cx,
        "erts_debug",
        "copy_shared",
        &[t, Term::bool(literals)],
        t,
    )?;
    let (once, words) = match literals {
        true => reached_once::<false>(cx, t),
        false => reached_once::<true>(cx, t),
    };
    if once {
        cx.bump(words / 4);
        return Ok(match literals {
            true => copy::copy_whole(t, cx),
            false => copy::copy(t, cx),
        });
    }
    let stays = |t: Term| t.is_immed() || (!literals && region::is_region_ptr(t.ptr()));
    let mut root = t;
    let mut copies: HashMap<*mut Term, Term, Hashing> = HashMap::default();
    // Slots that still hold a term of the original.
    let mut todo: Vec<*mut Term> = vec![&mut root];
    while let Some(slot) = todo.pop() {
        // SAFETY: slots are words of copies made below, or `root`; originals are live terms.
        unsafe {
            let t = *slot;
            if stays(t) {
                continue;
            }
            if let Some(&c) = copies.get(&t.ptr()) {
                *slot = c;
                continue;
            }
            let c = if let Some((h, tl)) = t.as_cons() {
                let c = cx.cons(h, tl);
                todo.push(c.ptr());
                todo.push(c.ptr().add(CONS_TAIL));
                c
            } else if matches!(
                t.subtag(),
                Some(Subtag::Tuple | Subtag::Record | Subtag::Map)
            ) {
                let n = layout::object_words(t.ptr());
                let p = cx.alloc(n);
                std::ptr::copy_nonoverlapping(t.ptr(), p, n);
                let (from, to) = layout::term_range(p);
                todo.extend((from..to).map(|i| p.add(i)));
                Term::boxed_at(p)
            } else {
                // The terms in a fun or behind a sub-binary are copied with it.
                match literals {
                    true => copy::copy_whole(t, cx),
                    false => copy::copy(t, cx),
                }
            };
            copies.insert(t.ptr(), c);
            *slot = c;
        }
    }
    cx.bump(copies.len());
    Ok(root)
}

/// The same bits after `offset` others, so that readers find them off byte boundaries.
fn unaligned_bitstring_2(cx: &mut Cx, [bits, offset]: [Term; 2]) -> BifResult {
    let offset = offset
        .as_small()
        .filter(|n| (1..8).contains(n))
        .ok_or(Fail::Badarg)? as usize;
    let bits = bits.as_bits().ok_or(Fail::Badarg)?;
    let len = bits.bit_len;
    let mut whole = BsWriter::new(cx, offset + len);
    if !(whole.integer(Term::small(0), offset, false) && whole.bits(&bits, len)) {
        return Err(Fail::Badarg);
    }
    cx.bump(len / 8192 + 1);
    Ok(cx.sub_binary(whole.term, offset, len))
}

// This build has no probes for dynamic tracing, so there are no tags.

fn dt_no_tag_0(_cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(am::UNDEFINED)
}
fn dt_put_tag_1(_cx: &mut Cx, [_]: [Term; 1]) -> BifResult {
    Ok(am::UNDEFINED)
}
fn dt_same_1(_cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    Ok(t)
}
fn dt_spread_tag_1(_cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    t.as_bool().map(|_| am::TRUE).ok_or(Fail::Badarg)
}
/// Accepts the result of `dt_spread_tag/1`.
fn dt_restore_tag_1(_cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    (t == am::TRUE).then_some(t).ok_or(Fail::Badarg)
}

crate::bifs! {
    Plain "erts_debug":"get_internal_state"/1 = get_internal_state_1;
    Plain "erts_debug":"set_internal_state"/2 = set_internal_state_2;
    Plain "erts_debug":"dirty"/3 = dirty_3;
    Plain "erts_debug":"instructions"/0 = instructions_0;
    Plain "purlin":"normal"/1 = resumed_normal;
    DirtyCpu "purlin":"dirty_cpu"/1 = resumed_cpu;
    DirtyIo "purlin":"dirty_io"/1 = resumed_io;
    Plain "erts_debug":"disassemble"/1 = disassemble_1;
    DirtyCpu "erts_debug":"dirty_cpu"/2 = dirty_cpu_2;
    DirtyIo "erts_debug":"dirty_io"/2 = dirty_io_2;
    Plain "erts_debug":"size_shared"/1 = size_shared_1 [long];
    Plain "erts_debug":"copy_shared"/2 = copy_shared_2 [long];
    Plain "erts_debug":"unaligned_bitstring"/2 = unaligned_bitstring_2 [since(29)];
    Plain "erlang":"dt_put_tag"/1 = dt_put_tag_1;
    Plain "erlang":"dt_get_tag"/0 = dt_no_tag_0;
    Plain "erlang":"dt_get_tag_data"/0 = dt_no_tag_0;
    Plain "erlang":"dt_prepend_vm_tag_data"/1 = dt_same_1;
    Plain "erlang":"dt_append_vm_tag_data"/1 = dt_same_1;
    Plain "erlang":"dt_spread_tag"/1 = dt_spread_tag_1;
    Plain "erlang":"dt_restore_tag"/1 = dt_restore_tag_1;
}
