//! `erlang:system_info/1`: every item of stock 25, answered with what is so here. Items that ask about parts which
//! this runtime hasn't got answer what stock answers when it was built without them.

use super::{memory, system_flag};
use crate::cx::{BifResult, Cx, Fail};
use crate::options::{CpuCounts, CpuTopologyEntry, EmulatorOptions};
use crate::signal::share;
use crate::{bifs, clock, code, hooks, lazy_atoms, process, sched};
use purlin_term::sync::Ordering;
use purlin_term::{Alloc, NIL, Term, am, atom, gc, node};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::Relaxed;

lazy_atoms! {
    enabled = "enabled";
    disabled = "disabled";
    unknown = "unknown";
    emu = "emu";
    opt = "opt";
    debug = "debug";
    normal = "normal";
    dirty_cpu = "dirty_cpu";
    dirty_io = "dirty_io";
    unbound = "unbound";
    final_ = "final";
    logical = "logical";
    thread = "thread";
    core = "core";
    processor = "processor";
    node_ = "node";
    cpu = "cpu";
    unchanged = "unchanged";
    changed = "changed";
    big = "big";
}

/// Schedulers that there are: those of the command line, or more where the program has asked for more.
pub fn schedulers() -> usize {
    let asked = crate::start::try_options().map_or(1, |o| o.flags.schedulers.total as usize);
    sched::count().max(asked)
}

fn boolean(b: bool) -> Term {
    if b { am::TRUE } else { am::FALSE }
}

fn symbol(name: &str) -> Term {
    atom::intern(name)
}

fn count(n: usize) -> Term {
    Term::small(n as i64)
}

/// `name - version`, as in the greeting of the shell.
pub fn system_version() -> String {
    let o = crate::options();
    let s = &o.flags.schedulers;
    let (dirty_cpu, dirty_io) = sched::dirty_counts();
    let dirty_online = sched::dirty_cpu_online();
    format!(
        "Erlang/OTP {} [erts-{}] [{}-bit] [smp:{}:{}] [ds:{}:{}:{}] [async-threads:{}] [purlin-{}]{}\n",
        o.otp.release,
        o.otp.erts_version,
        usize::BITS,
        schedulers(),
        system_flag::schedulers_online(),
        dirty_cpu,
        dirty_online,
        dirty_io,
        s.async_threads,
        env!("CARGO_PKG_VERSION"),
        if cfg!(debug_assertions) {
            " [debug]"
        } else {
            ""
        },
    )
}

/// The triplet that stock is configured with on such a machine.
pub fn architecture() -> String {
    let machine = std::env::consts::ARCH;
    let vendor = match machine {
        "x86_64" | "x86" => "pc",
        _ => "unknown",
    };
    let machine = if machine == "x86" { "i686" } else { machine };
    if cfg!(target_os = "macos") {
        let machine = if machine == "aarch64" {
            "aarch64"
        } else {
            machine
        };
        return format!("{machine}-apple-darwin{}", os_release());
    }
    let env = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "gnu"
    };
    let os = std::env::consts::OS;
    if os == "linux" {
        format!("{machine}-{vendor}-{os}-{env}")
    } else {
        format!("{machine}-{vendor}-{os}{}", os_release())
    }
}

/// Release of the operating system: `6.1.0-18-amd64`.
fn os_release() -> String {
    // SAFETY: `uname` fills the structure with texts that end with 0.
    unsafe {
        let mut u: libc::utsname = std::mem::zeroed();
        libc::uname(&mut u);
        std::ffi::CStr::from_ptr(u.release.as_ptr())
            .to_string_lossy()
            .into_owned()
    }
}

fn os_version(cx: &mut Cx) -> Term {
    let r = os_release();
    let mut parts = r
        .split(|c: char| !c.is_ascii_digit())
        .map(|p| p.parse().unwrap_or(0));
    let mut next = || Term::small(parts.next().unwrap_or(0));
    let v = [next(), next(), next()];
    cx.tuple(&v)
}

/// Files that this process may have open.
fn max_files() -> u64 {
    // SAFETY: fills the structure.
    unsafe {
        let mut l: libc::rlimit = std::mem::zeroed();
        match libc::getrlimit(libc::RLIMIT_NOFILE, &mut l) {
            0 => l.rlim_cur as u64,
            _ => 1024,
        }
    }
}

/// Resolution of a clock in parts of a second.
fn resolution(id: libc::clockid_t) -> i64 {
    // SAFETY: fills the structure.
    unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        if libc::clock_getres(id, &mut t) != 0 {
            return clock::UNIT;
        }
        let ns = t.tv_sec as i64 * clock::UNIT + t.tv_nsec as i64;
        clock::UNIT / ns.max(1)
    }
}

fn pairs(cx: &mut Cx, items: &[(&str, Term)]) -> Term {
    let v: Vec<Term> = items
        .iter()
        .map(|&(k, t)| cx.tuple(&[atom::intern(k), t]))
        .collect();
    cx.list(&v)
}

fn time_source(cx: &mut Cx, monotonic: bool) -> Term {
    let (name, id, time) = if monotonic {
        (
            "CLOCK_MONOTONIC",
            libc::CLOCK_MONOTONIC,
            clock::perf_counter(),
        )
    } else {
        ("CLOCK_REALTIME", libc::CLOCK_REALTIME, clock::os_system())
    };
    let time = cx.int(time);
    let mut items = vec![
        ("function", symbol("clock_gettime")),
        ("clock_id", symbol(name)),
        ("resolution", Term::small(resolution(id))),
    ];
    if monotonic {
        items.push(("extended", symbol("no")));
    }
    items.push(("parallel", symbol("yes")));
    items.push(("time", time));
    pairs(cx, &items)
}

/// The topology that the operating system tells, processors in order.
fn detected() -> Vec<CpuTopologyEntry> {
    let read = |cpu: u32, file: &str| -> Option<i32> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let mut all = Vec::new();
    for cpu in 0..CpuCounts::detect().configured {
        let (Some(package), Some(core)) = (read(cpu, "physical_package_id"), read(cpu, "core_id"))
        else {
            return Vec::new();
        };
        all.push(CpuTopologyEntry {
            node: -1,
            processor: package,
            processor_node: -1,
            core,
            thread: 0,
            logical: cpu as i32,
        });
    }
    // Threads of a core are numbered in order of their processors.
    for i in 0..all.len() {
        let same = |e: &CpuTopologyEntry| e.processor == all[i].processor && e.core == all[i].core;
        let before = all[..i].iter().filter(|e| same(e)).count();
        all[i].thread = before as i32;
    }
    all.sort_by_key(|e| (e.processor, e.core, e.thread));
    all
}

fn topology(which: Term) -> Option<Vec<CpuTopologyEntry>> {
    let given = crate::options().flags.schedulers.cpu_topology.clone();
    match atom::name(which) {
        "defined" => Some(given.unwrap_or_default()),
        "detected" => Some(detected()),
        "used" => Some(given.unwrap_or_else(detected)),
        _ => None,
    }
}

/// The nested form of a topology: `[{processor, [{core, {logical, 0}}, …]}]`.
fn topology_term(cx: &mut Cx, all: &[CpuTopologyEntry]) -> Term {
    if all.is_empty() {
        return am::UNDEFINED;
    }
    level(cx, all, 0)
}

/// Levels from the outside in: how to tell the groups apart, and the name of a group.
fn level(cx: &mut Cx, all: &[CpuTopologyEntry], depth: usize) -> Term {
    type Key = fn(&CpuTopologyEntry) -> i32;
    let levels: [(Key, Term); 5] = [
        (|e| e.node, node_()),
        (|e| e.processor, processor()),
        (|e| e.processor_node, node_()),
        (|e| e.core, core()),
        (|e| e.thread, thread()),
    ];
    let Some(&(key, name)) = levels.get(depth) else {
        let id = all.first().map_or(0, |e| e.logical);
        return cx.tuple(&[logical(), Term::small(id.into())]);
    };
    let first = key(&all[0]);
    if first < 0 || (depth == 4 && all.len() == 1) {
        // Nothing is told of this level, or a core has one thread only.
        return level(cx, all, depth + 1);
    }
    let groups: Vec<Term> = all
        .chunk_by(|a, b| key(a) == key(b))
        .map(|g| {
            let inner = level(cx, g, depth + 1);
            cx.tuple(&[name, inner])
        })
        .collect();
    cx.list(&groups)
}

fn internal_topology(cx: &mut Cx, all: &[CpuTopologyEntry]) -> Term {
    if all.is_empty() {
        return am::UNDEFINED;
    }
    let items: Vec<Term> = all
        .iter()
        .map(|e| {
            let n = |v: i32| Term::small(v.into());
            cx.tuple(&[
                cpu(),
                n(e.node),
                n(e.processor),
                n(e.processor_node),
                n(e.core),
                n(e.thread),
                n(e.logical),
            ])
        })
        .collect();
    cx.list(&items)
}

/// Processors as they were when `update_cpu_info` was last asked for. None: as they were at the start.
static CPUS: std::sync::Mutex<Option<CpuCounts>> = std::sync::Mutex::new(None);

fn cpus(at_start: CpuCounts) -> CpuCounts {
    let known = CPUS.lock().unwrap_or_else(|e| e.into_inner());
    known.unwrap_or(at_start)
}

fn processors(n: u32) -> Term {
    if n == 0 {
        unknown()
    } else {
        Term::small(n.into())
    }
}

/// Modules with the bytes that their code takes, as text.
fn loaded(cx: &mut Cx) -> Term {
    use std::fmt::Write;
    let mut total = (0, 0);
    let mut lines = String::new();
    for name in code::loaded() {
        let (current, old) = code::with_versions(name, |v| {
            (
                v.current.as_ref().map_or(0, |m| m.bytes()),
                v.old.as_ref().map_or(0, |m| m.bytes()),
            )
        });
        total = (total.0 + current, total.1 + old);
        let name = purlin_term::print::format_atom(name, purlin_term::print::Style::Write);
        let _ = write!(lines, "{name} {current}");
        if old != 0 {
            let _ = write!(lines, " (old: {old})");
        }
        lines.push('\n');
    }
    let text = format!("Current code: {}\nOld code: {}\n{lines}", total.0, total.1);
    cx.binary(text.as_bytes())
}

fn dist(cx: &mut Cx) -> Term {
    let style = purlin_term::print::Style::Display;
    let name = purlin_term::print::format_atom(node::this_name(), style);
    let text = if super::node::is_alive() {
        format!("=node:{name}\n")
    } else {
        format!("=node:{name}\n=no_distribution\n")
    };
    cx.binary(text.as_bytes())
}

fn dump_text(cx: &mut Cx, f: fn(&mut Vec<u8>) -> std::io::Result<()>) -> Term {
    let mut v = Vec::new();
    // Writing to memory doesn't fail.
    let _ = f(&mut v);
    cx.binary(&v)
}

/// Items with one answer for the whole life of the runtime, and those that only read a counter.
fn item(cx: &mut Cx, name: &str, o: &EmulatorOptions) -> Option<BifResult> {
    let f = &o.flags;
    let s = &f.schedulers;
    let t = match name {
        "scheduler_id" => count(sched::current().max(1)),
        "compat_rel" => Term::small(f.compat_release.into()),
        "multi_scheduling" => system_flag::multi_scheduling(),
        "multi_scheduling_blockers" => {
            let pids = system_flag::multi_scheduling_blockers().0;
            system_flag::pids_once(cx, &pids)
        }
        "normal_multi_scheduling_blockers" => {
            let (all, normal) = system_flag::multi_scheduling_blockers();
            let pids: Vec<Term> = all.into_iter().chain(normal).collect();
            system_flag::pids_once(cx, &pids)
        }
        "build_type" | "emu_type" => {
            if cfg!(debug_assertions) {
                debug()
            } else {
                opt()
            }
        }
        "emu_flavor" => emu(),
        "machine" => cx.string("BEAM"),
        "otp_release" => cx.string(&o.otp.release.to_string()),
        "version" => cx.string(&o.otp.erts_version),
        "system_version" => cx.string(&system_version()),
        "system_architecture" => cx.string(&architecture()),
        "driver_version" => cx.string("3.3"),
        "nif_version" => cx.string("2.16"),
        "os_type" => cx.tuple(&[symbol("unix"), symbol(std::env::consts::OS)]),
        "os_version" => os_version(cx),
        "endian" => {
            if cfg!(target_endian = "big") {
                big()
            } else {
                am::LITTLE
            }
        }
        "sharing_threshold" => share::threshold_term(share::THRESHOLD.load(Relaxed)),
        "sharing" => share::info(cx),
        "wordsize" => Term::small(8),
        // What the atomics of modules `atomics` and `counters` are made of.
        "ethread_info" => {
            // What the runtime uses, of what processors have.
            let rows = [
                ("32-bit native atomics", "yes"),
                ("64-bit native atomics", "yes"),
                ("Double word native atomics", "no"),
            ]
            .map(|(what, used)| {
                let (what, used) = (cx.string(what), cx.string(used));
                cx.tuple(&[what, used, NIL])
            });
            cx.list(&rows)
        }
        "c_compiler_used" => cx.tuple(&[am::UNDEFINED, am::UNDEFINED]),
        "compile_info" => NIL,
        "time_offset" => final_(),
        "time_correction" => boolean(f.time.correction),
        "time_warp_mode" => atom::intern(f.time.warp.word()),
        "tolerant_timeofday" => boolean_state(f.time.correction),
        "os_monotonic_time_source" => time_source(cx, true),
        "os_system_time_source" => time_source(cx, false),
        "start_time" => cx.int(clock::START),
        "end_time" => cx.int(crate::timer::LAST_TICK as i64 * 1_000_000 + clock::START),
        "outstanding_system_requests_limit" => cx.uint(system_flag::outstanding_requests()),
        "hipe_architecture" => am::UNDEFINED,
        "trace_control_word" => {
            let w = system_flag::TRACE_CONTROL_WORD.load(std::sync::atomic::Ordering::Relaxed);
            Term::small(w.into())
        }
        "ets_realloc_moves" => boolean(f.ets.realloc_moves),
        "ets_always_compress" => boolean(f.ets.always_compress),
        "taints" => NIL,
        "snifs" => {
            let mut list = NIL;
            for b in super::TABLES.iter().copied().flatten() {
                // Continuations of natives are no functions of anybody's; `yield/0` is an instruction.
                let (m, f) = (atom::intern(b.module), atom::intern(b.name));
                let own = b.module == "purlin" || b.name == "yield";
                if !own && super::code::is_native(m, f, b.arity.into()) {
                    let mfa = cx.tuple(&[m, f, Term::small(b.arity.into())]);
                    list = cx.cons(mfa, list);
                }
            }
            let hibernate = cx.tuple(&[am::ERLANG, atom::intern("hibernate"), Term::small(3)]);
            cx.cons(hibernate, list)
        }
        "sequential_tracer" => {
            let t = super::trace::sequential_tracer();
            cx.tuple(&[symbol("sequential_tracer"), t])
        }
        "garbage_collection" => {
            let size = process::max_heap_flags().words;
            let d = &process::DEFAULTS;
            let items = [
                ("max_heap_size", count(size)),
                (
                    "min_bin_vheap_size",
                    Term::small(d.min_vheap_words.load(Ordering::Relaxed).into()),
                ),
                ("min_heap_size", Term::small(system_flag::min_heap_size())),
                (
                    "fullsweep_after",
                    Term::small(d.fullsweep_after.load(Ordering::Relaxed).into()),
                ),
            ];
            pairs(cx, &items)
        }
        "fullsweep_after" => {
            let n = process::DEFAULTS.fullsweep_after.load(Ordering::Relaxed);
            cx.tuple(&[am::FULLSWEEP_AFTER, Term::small(n.into())])
        }
        "min_heap_size" => {
            let n = system_flag::min_heap_size();
            cx.tuple(&[am::MIN_HEAP_SIZE, Term::small(n)])
        }
        "min_bin_vheap_size" => {
            let n = process::DEFAULTS.min_vheap_words.load(Ordering::Relaxed);
            cx.tuple(&[am::MIN_BIN_VHEAP_SIZE, Term::small(n.into())])
        }
        "max_heap_size" => system_flag::max_heap(cx, Some(process::max_heap_flags())),
        "message_queue_data" => {
            if process::default_off_heap_queue() {
                am::OFF_HEAP
            } else {
                am::ON_HEAP
            }
        }
        "process_count" => count(process::table().live()),
        "process_limit" => count(f.tables.process_limit() as usize),
        "port_count" => count(hooks::port_count()),
        "port_limit" => {
            let files = u32::try_from(max_files()).unwrap_or(u32::MAX);
            Term::small(f.tables.port_limit(files).into())
        }
        "atom_count" => Term::small(atom::count().into()),
        "atom_limit" => Term::small(f.tables.atoms.into()),
        "ets_count" => count(hooks::ets_totals().0),
        "ets_limit" => Term::small(f.ets.requested_tables.max(8192).into()),
        "info" => dump_text(cx, crate::crash_dump::info),
        "procs" => dump_text(cx, crate::crash_dump::processes),
        "loaded" => loaded(cx),
        "dist" => dist(cx),
        "dist_ctrl" => NIL,
        "allocator" => memory::allocator(cx),
        "alloc_util_allocators" => memory::names(cx),
        "allocated_areas" => memory::areas(cx),
        "thread_pool_size" => Term::small(s.async_threads.into()),
        "heap_sizes" => {
            let v: Vec<Term> = gc::heap_sizes().iter().map(|&n| count(n)).collect();
            cx.list(&v)
        }
        "heap_type" => am::PRIVATE,
        "cpu_topology" => {
            let all = topology(symbol("used")).unwrap_or_default();
            topology_term(cx, &all)
        }
        "update_cpu_info" => {
            let now = CpuCounts::detect();
            let mut known = CPUS.lock().unwrap_or_else(|e| e.into_inner());
            if known.replace(now).unwrap_or(s.cpus) == now {
                unchanged()
            } else {
                changed()
            }
        }
        "threads" | "smp_support" | "constant_pool_support" | "port_tasks" => am::TRUE,
        "io_thread" | "break_ignored" | "lock_checking" | "lock_counting" => am::FALSE,
        "dynamic_trace" => am::NONE,
        "dynamic_trace_probes" => am::FALSE,
        "debug_compiled" => boolean(cfg!(debug_assertions)),
        "creation" => Term::small(node::this_creation().into()),
        "logical_processors" => processors(cpus(s.cpus).configured),
        "logical_processors_online" => processors(cpus(s.cpus).online),
        "logical_processors_available" => processors(cpus(s.cpus).available),
        "cpu_quota" => s.cpus.quota.map_or(unknown(), |q| Term::small(q.into())),
        "scheduler_bind_type" => unbound(),
        "scheduler_bindings" => cx.tuple(&vec![unbound(); schedulers()]),
        "schedulers" | "schedulers_total" => count(schedulers()),
        "schedulers_online" => count(system_flag::schedulers_online()),
        "schedulers_active" => count(sched::online()),
        "schedulers_state" => {
            let v = [
                schedulers(),
                system_flag::schedulers_online(),
                sched::online(),
            ];
            cx.tuple(&v.map(count))
        }
        "all_schedulers_state" => {
            let (c, i) = sched::dirty_counts();
            let works = |n: usize| if sched::alone::blocked() { 0 } else { n };
            let v = [
                (
                    normal(),
                    [
                        schedulers(),
                        system_flag::schedulers_online(),
                        sched::online(),
                    ],
                ),
                (
                    dirty_cpu(),
                    [
                        c,
                        sched::dirty_cpu_online(),
                        works(sched::dirty_cpu_online()),
                    ],
                ),
                (dirty_io(), [i, i, works(i)]),
            ];
            let v = v.map(|(k, [a, b, c])| cx.tuple(&[k, count(a), count(b), count(c)]));
            cx.list(&v)
        }
        "dirty_cpu_schedulers" => count(sched::dirty_counts().0),
        "dirty_cpu_schedulers_online" => count(sched::dirty_cpu_online()),
        "dirty_io_schedulers" => count(sched::dirty_counts().1),
        "run_queues" => count(schedulers()),
        "port_parallelism" => boolean(s.port_parallelism),
        "context_reductions" => Term::small(sched::run::SLICE),
        "kernel_poll" => am::TRUE,
        "eager_check_io" => am::TRUE,
        "check_io" => check_io(cx),
        "modified_timing_level" => s
            .modified_timing
            .map_or(am::UNDEFINED, |n| Term::small(n.into())),
        "scheduling_statistics" | "total_scheduling_statistics" => NIL,
        "reader_groups_map" | "decentralized_counter_groups_map" => NIL,
        "dist_buf_busy_limit" => Term::small(f.dist.buffer_busy_limit_bytes.into()),
        "delayed_node_table_gc" => f
            .dist
            .node_table_gc_seconds
            .map_or(am::INFINITY, |n| Term::small(n.into())),
        "emu_args" => {
            let v: Vec<Term> = o
                .emu_args
                .iter()
                .map(|a| cx.string(&String::from_utf8_lossy(a.as_bytes())))
                .collect();
            cx.list(&v)
        }
        "beam_jump_table" => am::TRUE,
        "system_logger" => crate::report::system_logger(),
        _ => return None,
    };
    Some(Ok(t))
}

fn boolean_state(on: bool) -> Term {
    if on { enabled() } else { disabled() }
}

/// One poll set, which the poll thread waits on.
fn check_io(cx: &mut Cx) -> Term {
    let poll = if cfg!(target_os = "linux") {
        "epoll"
    } else {
        "kqueue"
    };
    let items = [
        ("name", symbol("erts_poll")),
        ("primary", symbol(poll)),
        ("kernel_poll", symbol(poll)),
        ("max_fds", Term::small(max_files().min(1 << 40) as i64)),
        ("poll_threads", Term::small(1)),
    ];
    let set = pairs(cx, &items);
    cx.list(&[set])
}

fn tuple_item(cx: &mut Cx, t: &[Term]) -> BifResult {
    let (Some(&key), Some(&arg)) = (t.first(), t.get(1)) else {
        return Err(Fail::Badarg);
    };
    if !key.is_atom() {
        return Err(Fail::Badarg);
    }
    match (atom::name(key), t.len()) {
        ("wordsize", 2) => {
            if arg.is_atom() && ["internal", "external"].contains(&atom::name(arg)) {
                return Ok(Term::small(8));
            }
            Err(Fail::Badarg)
        }
        ("cpu_topology", 2) if arg.is_atom() => {
            let all = topology(arg).ok_or(Fail::Badarg)?;
            Ok(topology_term(cx, &all))
        }
        ("internal_cpu_topology", 2) if arg.is_atom() => {
            let all = topology(arg).ok_or(Fail::Badarg)?;
            Ok(internal_topology(cx, &all))
        }
        ("memory_checker", 2) => {
            let known = |n| arg.is_atom() && atom::name(arg) == n;
            if known("test_leak") {
                Ok(am::OK)
            } else if known("test_overflow") {
                Ok(Term::small(0))
            } else {
                Err(Fail::Badarg)
            }
        }
        ("allocator" | "allocator_sizes" | "memory_internal", _) => memory::request(cx, t),
        _ => Err(Fail::Badarg),
    }
}

fn system_info_1(cx: &mut Cx, [what]: [Term; 1]) -> BifResult {
    if let Some(t) = what.as_tuple() {
        return tuple_item(cx, t);
    }
    if !what.is_atom() {
        return Err(Fail::Badarg);
    }
    item(cx, atom::name(what), crate::options()).unwrap_or(Err(Fail::Badarg))
}

bifs! {
    Plain "erlang":"system_info"/1 = system_info_1;
}
