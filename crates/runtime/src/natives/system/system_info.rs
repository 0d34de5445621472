//! `erlang:system_info/1`: every item of stock 25, with the values of this runtime.
//!
//! Items about parts that this runtime does not have answer as a stock built without these parts.

use super::budget_natives::cpu;
use super::system_flag::enabled;
use super::system_flag::unbound;
use super::{memory, system_flag};
use crate::cx::{BifResult, Cx, Fail};
use crate::diagnostics::{Diagnostics, Text, diagnostics};
use crate::options::{BindType, CpuCounts, CpuTopologyEntry, EmulatorOptions, TimeWarp};
use crate::sched::binding;
use crate::signal::share;
use crate::{bifs, clock, code, lazy_atoms, process, sched};
use purlin_isa::release::Feature;
use purlin_kernel::system::memory as kernel_memory;
use purlin_term::release::{
    self, ASYNC_DIST_TOLD, EMBEDDED_TOLD, HALT_FLUSH_TIMEOUT, SMALLER_INTEGERS,
    USED_RESOLUTION_TOLD,
};
use purlin_term::sync::Ordering;
use purlin_term::{Alloc, NIL, Term, am, atom, gc, map, node};
use std::os::unix::ffi::OsStrExt;

lazy_atoms! {
    disabled = "disabled";
    unknown = "unknown";
    emu = "emu";
    jit = "jit";
    opt = "opt";
    debug = "debug";
    dirty_cpu = "dirty_cpu";
    dirty_io = "dirty_io";
    unchanged = "unchanged";
    changed = "changed";
}

use purlin_native::bif::schedulers;

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
    let o = crate::options::current();
    let s = &o.flags.schedulers;
    let (dirty_cpu, dirty_io) = sched::dirty_counts();
    let dirty_online = sched::dirty_cpu_online();
    format!(
        "Erlang/OTP {} [erts-{}] [{}-bit] [smp:{}:{}] [ds:{}:{}:{}] [async-threads:{}] [purlin-{}]{}\n",
        o.otp.release,
        o.otp.erts_version,
        usize::BITS,
        schedulers(),
        sched::multi_scheduling::schedulers_online(),
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

/// The target triplet that stock is configured with on such a machine.
pub(crate) fn architecture() -> String {
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

/// Release of the operating system, such as `6.1.0-18-amd64`.
fn os_release() -> String {
    // SAFETY: `uname` fills the structure with strings that end with 0.
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

/// Maximum number of open files of this process.
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

/// Resolution of a clock, in ticks per second.
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
        if release::has(USED_RESOLUTION_TOLD) {
            items.push(("used_resolution", Term::small(resolution(id))));
        }
        items.push(("extended", symbol("no")));
    }
    items.push(("parallel", symbol("yes")));
    items.push(("time", time));
    pairs(cx, &items)
}

fn topology(which: Term) -> Option<Vec<CpuTopologyEntry>> {
    match atom::name(which) {
        "defined" => Some(binding::defined().unwrap_or_default()),
        "detected" => Some(binding::detected()),
        "used" => Some(binding::used()),
        _ => None,
    }
}

/// The name of an order in which schedulers are bound.
pub fn bind_type(how: BindType) -> Term {
    symbol(match how {
        BindType::Unbound => "unbound",
        BindType::NoSpread => "no_spread",
        BindType::ThreadSpread => "thread_spread",
        BindType::ProcessorSpread => "processor_spread",
        BindType::Spread => "spread",
        BindType::NoNodeThreadSpread => "no_node_thread_spread",
        BindType::NoNodeProcessorSpread => "no_node_processor_spread",
        BindType::ThreadNoNodeProcessorSpread | BindType::Default => {
            "thread_no_node_processor_spread"
        }
    })
}

/// The order that a name stands for.
pub fn bind_type_of(name: Term) -> Option<BindType> {
    Some(match atom::name(name) {
        "unbound" => BindType::Unbound,
        "no_spread" => BindType::NoSpread,
        "thread_spread" => BindType::ThreadSpread,
        "processor_spread" => BindType::ProcessorSpread,
        "spread" => BindType::Spread,
        "no_node_thread_spread" => BindType::NoNodeThreadSpread,
        "no_node_processor_spread" => BindType::NoNodeProcessorSpread,
        "thread_no_node_processor_spread" | "default_bind" => BindType::Default,
        _ => return None,
    })
}

/// The nested form of a topology (`[{processor, [{core, {logical, 0}}, …]}]`); Erlang code builds
/// it.
fn topology_term(cx: &mut Cx, all: &[CpuTopologyEntry]) -> BifResult {
    let tuples = internal_topology(cx, all);
    let format = code::export(am::ERLANG, symbol("format_cpu_topology"), 1);
    Err(cx.trap(format, &[tuples]))
}

pub fn internal_topology(cx: &mut Cx, all: &[CpuTopologyEntry]) -> Term {
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

/// Processors at the last request for `update_cpu_info`; `None`: as at start.
static CPUS: purlin_term::sync::Mutex<Option<CpuCounts>> = purlin_term::sync::Mutex::new(None);

/// The processors that are known now, from those at the start.
pub fn cpus(at_start: CpuCounts) -> CpuCounts {
    let known = CPUS.lock();
    known.unwrap_or(at_start)
}

fn processors(n: u32) -> Term {
    if n == 0 {
        unknown()
    } else {
        Term::small(n.into())
    }
}

/// Text that lists modules with the bytes of their code.
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
    let text = if purlin_term::node::is_alive() {
        format!("=node:{name}\n")
    } else {
        format!("=node:{name}\n=no_distribution\n")
    };
    cx.binary(text.as_bytes())
}

fn dump_text(cx: &mut Cx, f: fn(&dyn Diagnostics, &mut Text) -> std::io::Result<()>) -> Term {
    let mut v = Vec::new();
    if let Some(d) = diagnostics() {
        // Writing to memory doesn't fail.
        let _ = f(d, &mut v);
    }
    cx.binary(&v)
}

/// An item of `system_info/1`.
pub struct Item {
    /// Its names, all with the same meaning.
    pub names: &'static [&'static str],
    pub doc: &'static str,
    /// The releases that have the item; `None` if all do.
    since: Option<Feature>,
    get: fn(&mut Cx, &EmulatorOptions) -> Term,
}

macro_rules! items {
    ($($($name:literal)|+ $(since $feature:ident)?: $doc:literal => $get:expr;)*) => {
        /// The items of `system_info/1` that are atoms; for those that are tuples see `tuple_item`.
        pub static ITEMS: &[Item] = &[$({
            #[allow(unused_mut)]
            let mut item = Item { names: &[$($name),+], doc: $doc, since: None, get: $get };
            $(item.since = Some($feature);)?
            item
        }),*];
    };
}
items! {
    "scheduler_id": "The scheduler that the caller runs on." => |_, _| count(sched::current().max(1));
    "compat_rel": "The release requested by +R." => |_, o| Term::small(o.flags.compat_release.into());
    "multi_scheduling": "Whether schedulers run, are disabled or blocked." => |_, _| system_flag::multi_scheduling();
    "multi_scheduling_blockers": "Pids that block all schedulers but one." => |cx, _| {
            let pids = sched::multi_scheduling::blockers().0;
            system_flag::pids_once(cx, &pids)
        };
    "normal_multi_scheduling_blockers": "Pids that block normal schedulers alone." => |cx, _| {
            let pids = sched::multi_scheduling::blockers().1;
            system_flag::pids_once(cx, &pids)
        };
    "build_type" | "emu_type": "The type of the build." => |_, _| {
            if cfg!(debug_assertions) {
                debug()
            } else {
                opt()
            }
        };
    "emu_flavor": "The way in which code is executed." => |_, _| match crate::code::compiled::compiler() {
        Some(_) => jit(),
        None => emu(),
    };
    "machine": "Name of the abstract machine." => |cx, _| cx.string("BEAM");
    "otp_release": "The emulated release of OTP." => |cx, o| cx.string(&o.otp.release.to_string());
    "version": "The emulated version of ERTS." => |cx, o| cx.string(&o.otp.erts_version);
    "system_version": "The greeting of the shell." => |cx, _| cx.string(&system_version());
    "system_architecture": "Triple of processor, vendor and system." => |cx, _| cx.string(&architecture());
    "driver_version": "Version of the interface of drivers." => |cx, _| cx.string("3.3");
    "nif_version": "Version of the interface of NIFs." => |cx, o| {
        let release = o.otp.release;
        cx.string(&format!("2.{}", purlin_nif::minor_of(release)))
    };
    "os_type": "Family and name of the operating system." => |cx, _| cx.tuple(&[symbol("unix"), symbol(std::env::consts::OS)]);
    "os_version": "Version of the operating system's kernel." => |cx, _| os_version(cx);
    "endian": "Order of bytes in a word." => |_, _| {
            if cfg!(target_endian = "big") {
                am::BIG
            } else {
                am::LITTLE
            }
        };
    "sharing_threshold": "Words from which on a message is shared." => |_, _| share::threshold_term(share::asked_threshold());
    "sharing": "Counts of shared regions." => |cx, _| share::info(cx);
    "wordsize": "Bytes of a word." => |_, _| Term::small(8);
    "ethread_info": "Atomic operations in use." => |cx, _| {
            // Of the processor's features, those that the runtime uses.
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
        };
    "c_compiler_used": "The C compiler that built it: none." => |cx, _| cx.tuple(&[am::UNDEFINED, am::UNDEFINED]);
    "compile_info": "Options of the C compiler: none." => |_, _| NIL;
    "time_offset": "Whether the time offset may change." => |_, _| system_flag::time_offset();
    "time_correction": "Whether monotonic time is corrected." => |_, o| boolean(o.flags.time.correction);
    "time_warp_mode": "Mode of time warp." => |_, o| atom::intern(o.flags.time.warp.word());
    "tolerant_timeofday": "Whether time is corrected and its offset does not change." => |_, o| {
        boolean_state(o.flags.time.correction && o.flags.time.warp != TimeWarp::Multi)
    };
    "os_monotonic_time_source": "Clock that monotonic time is read from." => |cx, _| time_source(cx, true);
    "os_system_time_source": "Clock that system time is read from." => |cx, _| time_source(cx, false);
    "start_time": "Native monotonic time at the start." => |cx, _| cx.int(clock::START);
    "end_time": "Last native monotonic time." => |cx, _| cx.int(crate::timer::LAST_TICK as i64 * 1_000_000 + clock::START);
    "outstanding_system_requests_limit": "Maximum number of requests of a kind in progress." => |cx, _| cx.uint(system_flag::outstanding_requests());
    "hipe_architecture": "No native code of HiPE." => |_, _| am::UNDEFINED;
    "trace_control_word": "Word that match specifications of traces read." => |_, _| {
            let w = crate::ets::matchspec::TRACE_CONTROL_WORD.load(std::sync::atomic::Ordering::Relaxed);
            Term::small(w.into())
        };
    "ets_realloc_moves": "Flag +Mrmcbf of tables." => |_, o| boolean(o.flags.ets.realloc_moves);
    "ets_always_compress": "Whether each table is compressed." => |_, o| boolean(o.flags.ets.always_compress);
    "taints": "Modules that have loaded native libraries." => |cx, _| cx.list(&purlin_nif::taints());
    "snifs": "Functions that are native from the start." => |cx, _| {
            let mut list = NIL;
            for b in purlin_native::bif::all() {
                // Continuations of natives belong to no module; `yield/0` is an instruction.
                let (m, f) = (atom::intern(b.module), atom::intern(b.name));
                let own = b.module == "purlin" || b.name == "yield";
                if !own && crate::natives::code::loading::is_native(m, f, b.arity.into()) {
                    let mfa = cx.tuple(&[m, f, Term::small(b.arity.into())]);
                    list = cx.cons(mfa, list);
                }
            }
            let hibernate = cx.tuple(&[am::ERLANG, atom::intern("hibernate"), Term::small(3)]);
            cx.cons(hibernate, list)
        };
    "sequential_tracer": "The sequential tracer." => |cx, _| {
            let t = crate::trace::sequential::sequential_tracer();
            let t = crate::trace::sequential::sequential_tracer_term(cx, &t);
            cx.tuple(&[symbol("sequential_tracer"), t])
        };
    "garbage_collection": "Defaults of the heaps of processes." => |cx, _| {
            let size = process::max_heap_flags().words;
            let d = &process::DEFAULTS;
            let items = [
                ("max_heap_size", count(size)),
                (
                    "min_bin_vheap_size",
                    count(d.min_vheap_words.load(Ordering::Relaxed)),
                ),
                ("min_heap_size", Term::small(system_flag::min_heap_size())),
                (
                    "fullsweep_after",
                    Term::small(d.fullsweep_after.load(Ordering::Relaxed).into()),
                ),
            ];
            pairs(cx, &items)
        };
    "fullsweep_after": "Default of minor collections before a full sweep." => |cx, _| {
            let n = process::DEFAULTS.fullsweep_after.load(Ordering::Relaxed);
            cx.tuple(&[am::FULLSWEEP_AFTER, Term::small(n.into())])
        };
    "min_heap_size": "Default of words of a heap." => |cx, _| {
            let n = system_flag::min_heap_size();
            cx.tuple(&[am::MIN_HEAP_SIZE, Term::small(n)])
        };
    "min_bin_vheap_size": "Default of the virtual heap of binaries." => |cx, _| {
            let n = process::DEFAULTS.min_vheap_words.load(Ordering::Relaxed);
            cx.tuple(&[am::MIN_BIN_VHEAP_SIZE, count(n)])
        };
    "max_heap_size": "Default of the limit of heaps." => |cx, _| system_flag::max_heap(cx, Some(process::max_heap_flags()));
    "memory_limit": "Bytes that the node may use, by its control groups or `+Mlimit`." => |_, _| {
            kernel_memory::limit().map_or(am::UNDEFINED, |(limit, _)| count(limit))
        };
    "message_queue_data": "Default of where messages are kept." => |_, _| {
            if process::default_off_heap_queue() {
                am::OFF_HEAP
            } else {
                am::ON_HEAP
            }
        };
    "process_count": "Processes that exist." => |_, _| count(process::table().live());
    "process_limit": "Most processes." => |_, o| count(o.flags.tables.process_limit() as usize);
    "port_count": "Ports that are open." => |_, _| count(crate::port::count());
    "port_limit": "Most ports." => |_, o| {
            let files = u32::try_from(max_files()).unwrap_or(u32::MAX);
            Term::small(o.flags.tables.port_limit(files).into())
        };
    "atom_count": "Atoms that exist." => |_, _| Term::small(atom::count().into());
    "atom_limit": "Most atoms." => |_, o| Term::small(o.flags.tables.atoms.into());
    "ets_count": "Tables that exist." => |_, _| count(crate::ets::totals().0);
    "ets_limit": "Tables that are planned for." => |_, o| Term::small(o.flags.ets.requested_tables.max(8192).into());
    "info": "The general part of a crash dump." => |cx, _| dump_text(cx, |d, to| d.general(to));
    "procs": "The processes of a crash dump." => |cx, _| dump_text(cx, |d, to| d.processes(to));
    "loaded": "Modules and bytes of their code, as text." => |cx, _| loaded(cx);
    "dist": "Connections, as text." => |cx, _| dist(cx);
    "dist_ctrl": "Controllers of connections." => |cx, _| purlin_dist::distribution_natives::controllers(cx);
    "allocator": "Allocators and their settings." => |cx, _| memory::allocator(cx);
    "alloc_util_allocators": "Names of allocators." => |cx, _| memory::names(cx);
    "allocated_areas": "Bytes of areas of memory." => |cx, _| memory::areas(cx);
    "thread_pool_size": "Requested number of asynchronous threads." => |_, o| Term::small(o.flags.schedulers.async_threads.into());
    "heap_sizes": "Sizes that heaps grow by." => |cx, _| {
            let v: Vec<Term> = gc::heap_sizes().iter().map(|&n| count(n)).collect();
            cx.list(&v)
        };
    "heap_type": "Each process has its own heap." => |_, _| am::PRIVATE;
    "update_cpu_info": "Reads the processors again; whether they changed." => |_, o| {
            let now = CpuCounts::detect();
            let mut known = CPUS.lock();
            if known.replace(now).unwrap_or(o.flags.schedulers.cpus) == now {
                unchanged()
            } else {
                binding::replan();
                changed()
            }
        };
    "threads" | "smp_support" | "constant_pool_support" | "port_tasks": "Features of every build." => |_, _| am::TRUE;
    "io_thread" | "break_ignored" | "lock_checking" | "lock_counting": "Features of no build." => |_, _| am::FALSE;
    "dynamic_trace": "Probes of dynamic tracing: none." => |_, _| am::NONE;
    "dynamic_trace_probes": "Whether there are such probes." => |_, _| am::FALSE;
    "debug_compiled": "Whether it is a debug build." => |_, _| boolean(cfg!(debug_assertions));
    "creation": "The creation of this node." => |_, _| Term::small(node::this_creation().into());
    "logical_processors": "Processors that are configured." => |_, o| processors(cpus(o.flags.schedulers.cpus).configured);
    "logical_processors_online": "Processors that are online." => |_, o| processors(cpus(o.flags.schedulers.cpus).online);
    "logical_processors_available": "Processors that this may run on." => |_, o| processors(cpus(o.flags.schedulers.cpus).available);
    "cpu_quota": "Processors' worth of time that this may use." => |_, o| cpus(o.flags.schedulers.cpus).quota.map_or(unknown(), |q| Term::small(q.into()));
    "scheduler_bind_type": "How schedulers are bound to processors." => |_, _| bind_type(binding::bind_type());
    "scheduler_bindings": "The processor that each scheduler is bound to." => |cx, _| {
            let of = |p: Option<usize>| p.map_or(unbound(), count);
            let all: Vec<Term> = binding::bindings(schedulers()).into_iter().map(of).collect();
            cx.tuple(&all)
        };
    "schedulers" | "schedulers_total": "Normal schedulers." => |_, _| count(schedulers());
    "schedulers_online": "Normal schedulers that are online." => |_, _| count(sched::multi_scheduling::schedulers_online());
    "schedulers_active": "Normal schedulers that run." => |_, _| count(sched::online());
    "schedulers_state": "Total, online and active." => |cx, _| {
            let v = [
                schedulers(),
                sched::multi_scheduling::schedulers_online(),
                sched::online(),
            ];
            cx.tuple(&v.map(count))
        };
    "all_schedulers_state": "The same of each kind." => |cx, _| {
            let (c, i) = sched::dirty_counts();
            let works = |n: usize| if sched::multi_scheduling::blocked() { 0 } else { n };
            let v = [
                (
                    am::NORMAL,
                    [
                        schedulers(),
                        sched::multi_scheduling::schedulers_online(),
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
        };
    "dirty_cpu_schedulers": "Dirty CPU schedulers." => |_, _| count(sched::dirty_counts().0);
    "dirty_cpu_schedulers_online": "Those online." => |_, _| count(sched::dirty_cpu_online());
    "dirty_io_schedulers": "Dirty I/O schedulers." => |_, _| count(sched::dirty_counts().1);
    "run_queues": "Run queues." => |_, _| count(schedulers());
    "port_parallelism": "Default of ports." => |_, o| boolean(o.flags.schedulers.port_parallelism);
    "context_reductions": "Reductions of a time slice." => |_, _| Term::small(crate::threads::slice::SLICE);
    "kernel_poll": "Whether the system tells which files are ready." => |_, _| am::TRUE;
    "eager_check_io": "Files are polled at once." => |_, _| am::TRUE;
    "check_io": "The poll set." => |cx, _| check_io(cx);
    "modified_timing_level": "Flag +T." => |_, o| o.flags.schedulers
            .modified_timing
            .map_or(am::UNDEFINED, |n| Term::small(n.into()));
    "scheduling_statistics" | "total_scheduling_statistics": "Not counted." => |_, _| NIL;
    "reader_groups_map" | "decentralized_counter_groups_map": "No groups of readers." => |_, _| NIL;
    "dist_buf_busy_limit": "Bytes from which a connection is busy." => |_, o| Term::small(o.flags.dist.buffer_busy_limit_bytes.into());
    "async_dist" since ASYNC_DIST_TOLD: "Default of whether processes continue at once after a send to a busy connection." => |_, o| boolean(o.flags.dist.async_dist);
    "halt_flush_timeout" since HALT_FLUSH_TIMEOUT: "Milliseconds that a halt waits for output." => |_, o| o.flags
            .halt_flush_timeout_ms
            .map_or(am::INFINITY, |n| Term::small(n.into()));
    "embedded_3pps" since EMBEDDED_TOLD: "Third-party libraries inside the emulator." => |cx, _| {
            let list = |cx: &mut Cx, names: &[&str]| {
                let names: Vec<Term> = names.iter().map(|n| symbol(n)).collect();
                cx.list(&names)
            };
            let included = list(cx, &["pcre2", "zstd"]);
            let excluded = list(cx, &["asmjit", "ryu", "STL", "zlib"]);
            let pairs = [(symbol("included"), included), (symbol("excluded"), excluded)];
            map::from_pairs(cx, &pairs)
        };
    "max_integer" since SMALLER_INTEGERS: "The largest integer." => |cx, _| purlin_term::arith::max_integer(cx);
    "delayed_node_table_gc": "Seconds that unused nodes are kept." => |_, o| o.flags
            .dist
            .node_table_gc_seconds
            .map_or(am::INFINITY, |n| Term::small(n.into()));
    "emu_args": "Arguments of the command line." => |cx, o| {
            let v: Vec<Term> = o
                .emu_args
                .iter()
                .map(|a| cx.string(&String::from_utf8_lossy(a.as_bytes())))
                .collect();
            cx.list(&v)
        };
    "beam_jump_table": "Select instructions have tables." => |_, _| am::TRUE;
    "system_logger": "The process that gets the emulator's log messages." => |_, _| crate::report::system_logger();
}

fn item(name: &str) -> Option<&'static Item> {
    let item = ITEMS.iter().find(|i| i.names.contains(&name))?;
    item.since.is_none_or(release::has).then_some(item)
}

fn boolean_state(on: bool) -> Term {
    if on { enabled() } else { disabled() }
}

/// One poll set, which is polled by the poll thread and by a scheduler with nothing to run.
fn check_io(cx: &mut Cx) -> Term {
    let poll = if cfg!(target_os = "linux") {
        "epoll"
    } else {
        "kqueue"
    };
    let (registered, wanted, bytes) = crate::poll::sizes();
    let count = |n: usize| Term::small(n as i64);
    let items = [
        ("name", symbol("erts_poll")),
        ("primary", symbol(poll)),
        ("kernel_poll", symbol(poll)),
        ("memory_size", count(bytes)),
        ("total_poll_set_size", count(registered)),
        ("lazy_updates", am::FALSE),
        ("pending_updates", count(0)),
        ("batch_updates", am::FALSE),
        ("concurrent_updates", am::TRUE),
        ("fallback", am::FALSE),
        ("max_fds", Term::small(max_files().min(1 << 40) as i64)),
        ("active_fds", count(wanted)),
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
            topology_term(cx, &all)
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
    if atom::name(what) == "cpu_topology" {
        return topology_term(cx, &binding::used());
    }
    let item = item(atom::name(what)).ok_or(Fail::Badarg)?;
    Ok((item.get)(cx, crate::options::current()))
}

bifs! {
    Plain "erlang":"system_info"/1 = system_info_1;
}
