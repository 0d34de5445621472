//! The families of metrics.
//!
//! Those of the virtual machine have the names that the library `prometheus.erl` and the
//! measurements of `telemetry_poller` give them, so that dashboards made for these work. These
//! names break the rules for the names of counters and gauges, so they have no type. Purlin's own
//! begin with `purlin_`.

use super::exposition::{Exposition, Format, Times, Type, Value};
use crate::explain::{resident, word};
use crate::protobuf::Message;
use purlin_io::port;
use purlin_io::socket;
use purlin_kernel::accounts::{self, LENGTHS};
use purlin_kernel::budgets::{self, Counted, NO_LIMIT};
use purlin_kernel::message::lengths::{self, CLASSES};
use purlin_kernel::message::sharing::{COPIED, MOVED, SHARED};
use purlin_kernel::sync::Mutex;
use purlin_kernel::{clock, msacc, options, process, sched};
use purlin_runtime::compiled::report;
use purlin_runtime::natives::system::memory::{Usage, usage};
use purlin_runtime::natives::system::system_info::cpus;
use purlin_term::{atom, gc, region};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// All metrics. `all_names`: also those of two names whose unit is not a base unit, which checkers
/// of metrics refuse.
pub fn all(format: Format, all_names: bool) -> String {
    let mut e = Exposition::new(format);
    fill(&mut e, all_names);
    e.finish()
}

/// All metrics as messages of OTLP.
pub fn messages(times: Times) -> Vec<Message> {
    let mut e = Exposition::otlp(times);
    fill(&mut e, true);
    e.metrics()
}

fn fill(e: &mut Exposition, all_names: bool) {
    let memory = usage();
    vm_memory(e, &memory);
    vm_statistics(e, all_names);
    vm_system_info(e);
    telemetry(e, &memory);
    resident_memory(e);
    sharing(e);
    collections(e);
    waits(e);
    schedulers(e);
    dirty_threads(e);
    unread_messages(e);
    resources(e);
    budget_use(e);
    machine_code(e);
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Families of `prometheus_vm_memory_collector`, which also counts the tables of `dets`. Only the
/// program knows these.
fn vm_memory(e: &mut Exposition, m: &Usage) {
    e.family(
        "erlang_vm_memory_bytes_total",
        Type::Unknown,
        "Memory in use by processes, and by everything else.",
    )
    .sample(&[("kind", "system")], m.system())
    .sample(&[("kind", "processes")], m.processes);
    e.family(
        "erlang_vm_memory_processes_bytes_total",
        Type::Unknown,
        "Memory of processes.",
    )
    .sample(&[("usage", "used")], m.processes_used)
    .sample(
        &[("usage", "free")],
        m.processes.saturating_sub(m.processes_used),
    );
    let named = [
        ("atom", m.atom),
        ("binary", m.binary),
        ("code", m.code),
        ("ets", m.ets),
    ];
    let other = named.iter().map(|n| n.1).sum();
    let mut system = e.family(
        "erlang_vm_memory_system_bytes_total",
        Type::Unknown,
        "Memory that no process holds, by use.",
    );
    for (usage, bytes) in named {
        system.sample(&[("usage", usage)], bytes);
    }
    system.sample(&[("usage", "other")], m.system().saturating_sub(other));
    e.family(
        "erlang_vm_memory_atom_bytes_total",
        Type::Unknown,
        "Memory of atoms.",
    )
    .sample(&[("usage", "used")], m.atom)
    .sample(&[("usage", "free")], 0_usize);
    e.one(
        "erlang_vm_memory_ets_tables",
        Type::Gauge,
        "Tables.",
        purlin_ets::totals().0,
    );
}

/// Families of `prometheus_vm_statistics_collector`.
fn vm_statistics(e: &mut Exposition, all_names: bool) {
    let (read, written) = port::total_bytes();
    let (collections, words) = gc::totals();
    let (cpu_queue, io_queue) = sched::dirty_lengths();
    let ready: usize = sched::queue_lengths().into_iter().sum();
    let families: [(&str, &str, Value); 10] = [
        (
            "bytes_output_total",
            "Bytes written to ports.",
            written.into(),
        ),
        (
            "bytes_received_total",
            "Bytes read from ports.",
            read.into(),
        ),
        (
            "context_switches",
            "Times that a process was given a scheduler.",
            sched::context_switches().into(),
        ),
        (
            "garbage_collection_number_of_gcs",
            "Garbage collections.",
            collections.into(),
        ),
        (
            "garbage_collection_words_reclaimed",
            "Words that collections reclaimed.",
            words.into(),
        ),
        (
            "garbage_collection_bytes_reclaimed",
            "Bytes that collections reclaimed.",
            words.saturating_mul(8).into(),
        ),
        (
            "reductions_total",
            "Reductions that processes used.",
            sched::reductions().into(),
        ),
        (
            "run_queues_length_total",
            "Processes that are ready to run.",
            ready.into(),
        ),
        (
            "dirty_cpu_run_queue_length",
            "Processes that wait for a dirty CPU thread.",
            cpu_queue.into(),
        ),
        (
            "dirty_io_run_queue_length",
            "Processes that wait for a dirty I/O thread.",
            io_queue.into(),
        ),
    ];
    for (name, help, value) in families {
        let name = format!("erlang_vm_statistics_{name}");
        e.one(&name, Type::Unknown, help, value);
    }
    // Later versions of the library give it this name.
    e.one(
        "erlang_vm_statistics_run_queues_length",
        Type::Gauge,
        "Processes that are ready to run.",
        ready,
    );
    let (runtime, wall) = (clock::cpu_time().max(0), clock::elapsed().max(0));
    if all_names {
        e.one(
            "erlang_vm_statistics_runtime_milliseconds",
            Type::Unknown,
            "Processor time of all threads.",
            runtime as u64 / 1_000_000,
        );
        e.one(
            "erlang_vm_statistics_wallclock_time_milliseconds",
            Type::Unknown,
            "Time since the start.",
            wall as u64 / 1_000_000,
        );
    }
    e.one(
        "purlin_processor_seconds",
        Type::Counter,
        "Processor time of all threads.",
        seconds(runtime as u64),
    );
    e.one(
        "purlin_uptime_seconds",
        Type::Gauge,
        "Time since the start.",
        seconds(wall as u64),
    );
}

/// Families of `prometheus_vm_system_info_collector`.
fn vm_system_info(e: &mut Exposition) {
    let Some(o) = options::try_current() else {
        return;
    };
    let cpus = cpus(o.flags.schedulers.cpus);
    let (dirty_cpu, dirty_io) = sched::dirty_counts();
    let families: [(&str, &str, Value); 20] = [
        ("atom_count", "Atoms.", (atom::count() as usize).into()),
        (
            "atom_limit",
            "Maximum number of atoms.",
            (atom::limit() as usize).into(),
        ),
        (
            "dirty_cpu_schedulers",
            "Dirty CPU threads.",
            dirty_cpu.into(),
        ),
        (
            "dirty_cpu_schedulers_online",
            "Dirty CPU threads that are online.",
            sched::dirty_cpu_online().into(),
        ),
        ("dirty_io_schedulers", "Dirty I/O threads.", dirty_io.into()),
        (
            "ets_limit",
            "Tables that are planned for.",
            u64::from(o.flags.ets.requested_tables.max(8192)).into(),
        ),
        (
            "logical_processors",
            "Processors that are configured.",
            u64::from(cpus.configured).into(),
        ),
        (
            "logical_processors_available",
            "Processors that the node may run on.",
            u64::from(cpus.available).into(),
        ),
        (
            "logical_processors_online",
            "Processors that are online.",
            u64::from(cpus.online).into(),
        ),
        ("port_count", "Ports.", port::count().into()),
        (
            "port_limit",
            "Maximum number of ports.",
            port::limit().into(),
        ),
        (
            "process_count",
            "Processes.",
            process::table().live().into(),
        ),
        (
            "process_limit",
            "Maximum number of processes.",
            process::table().limit().into(),
        ),
        ("schedulers", "Schedulers.", sched::count().into()),
        (
            "schedulers_online",
            "Schedulers that are online.",
            sched::online().into(),
        ),
        (
            "smp_support",
            "Whether several schedulers can run.",
            true.into(),
        ),
        ("threads", "Whether threads are supported.", true.into()),
        (
            "thread_pool_size",
            "Requested number of asynchronous threads.",
            u64::from(o.flags.schedulers.async_threads).into(),
        ),
        (
            "time_correction",
            "Whether monotonic time is corrected.",
            o.flags.time.correction.into(),
        ),
        ("wordsize_bytes", "Bytes of a word.", 8_usize.into()),
    ];
    for (name, help, value) in families {
        let name = format!("erlang_vm_{name}");
        e.one(&name, Type::Unknown, help, value);
    }
}

/// The measurements of `telemetry_poller`, by the names that exporters make of them.
fn telemetry(e: &mut Exposition, m: &Usage) {
    for (kind, bytes) in m.named() {
        let name = format!("vm_memory_{kind}");
        e.one(
            &name,
            Type::Unknown,
            "Bytes in use, as by erlang:memory/0.",
            bytes,
        );
    }
    let (cpu, io) = sched::dirty_lengths();
    let normal: usize = sched::queue_lengths().into_iter().sum();
    for (kind, length) in [
        ("total", normal + cpu + io),
        ("cpu", normal + cpu),
        ("io", io),
    ] {
        let name = format!("vm_total_run_queue_lengths_{kind}");
        e.one(
            &name,
            Type::Unknown,
            "Processes that are ready to run.",
            length,
        );
    }
    for (kind, count) in [
        ("process", process::table().live()),
        ("port", port::count()),
        ("atom", atom::count() as usize),
    ] {
        let name = format!("vm_system_counts_{kind}_count");
        e.one(&name, Type::Unknown, "Number of what the name says.", count);
    }
}

/// Resident memory by use, as it was when it was last looked at.
struct ResidentMemory {
    rows: Option<Vec<resident::Row>>,
    at: Instant,
    /// How long the look has taken.
    took: Duration,
}

/// How much longer than a look the time until the next one is: the system walks all pages for it.
const REST: u32 = 500;

/// Resident memory by use. The samples of the first family add up to all that was resident when it
/// was looked at.
fn resident_memory(e: &mut Exposition) {
    static LAST: Mutex<Option<ResidentMemory>> = Mutex::new(None);
    let mut last = LAST.lock();
    if last.as_ref().is_none_or(|l| l.at.elapsed() > l.took * REST) {
        let at = Instant::now();
        let rows = resident::rows();
        let took = at.elapsed();
        *last = Some(ResidentMemory { rows, at, took });
    }
    let Some(ResidentMemory {
        rows: Some(rows),
        at,
        ..
    }) = &*last
    else {
        return;
    };
    e.one(
        "purlin_resident_age_seconds",
        Type::Gauge,
        "Seconds since purlin_resident_bytes and purlin_accounted_bytes were measured.",
        at.elapsed().as_secs_f64(),
    );
    let mut f = e.family(
        "purlin_resident_bytes",
        Type::Gauge,
        "Resident memory by use, as the system counts it.",
    );
    for row in rows {
        f.sample(&[("use", row.what)], row.resident);
    }
    let mut f = e.family(
        "purlin_accounted_bytes",
        Type::Gauge,
        "Memory by use, as the runtime and its allocator count it.",
    );
    for row in rows {
        f.sample(&[("use", row.what)], row.known);
    }
}

/// Copies between processes, and what was shared instead.
fn sharing(e: &mut Exposition) {
    for (name, help, words) in [
        (
            "purlin_copied_bytes",
            "Bytes of large terms that were copied from process to process.",
            COPIED,
        ),
        (
            "purlin_moved_bytes",
            "Bytes that were copied to shared regions, which is done once.",
            MOVED,
        ),
        (
            "purlin_shared_bytes",
            "Bytes that were sent without a copy.",
            SHARED,
        ),
    ] {
        e.one(name, Type::Counter, help, words.sum().saturating_mul(8));
    }
    let mut by_kind: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (kind, sums) in accounts::sums() {
        if kind.is_copy() {
            by_kind.insert(word(kind), (sums.times, sums.copied.saturating_mul(8)));
        }
    }
    let mut f = e.family(
        "purlin_copies",
        Type::Counter,
        "Copies of terms by cause; small ones are estimated by samples.",
    );
    for (kind, sums) in &by_kind {
        f.sample(&[("cause", kind)], sums.0);
    }
    let mut f = e.family(
        "purlin_copies_bytes",
        Type::Counter,
        "Bytes of these copies.",
    );
    for (kind, sums) in &by_kind {
        f.sample(&[("cause", kind)], sums.1);
    }
    let (bytes, count) = region::counted_totals();
    e.one(
        "purlin_region_bytes",
        Type::Gauge,
        "Bytes of terms that several processes share.",
        bytes,
    );
    e.one(
        "purlin_regions",
        Type::Gauge,
        "Terms that are shared.",
        count,
    );
}

fn collections(e: &mut Exposition) {
    let (collections, words) = gc::totals();
    e.one(
        "purlin_collections",
        Type::Counter,
        "Garbage collections.",
        collections,
    );
    e.one(
        "purlin_reclaimed_bytes",
        Type::Counter,
        "Bytes that collections reclaimed.",
        words.saturating_mul(8),
    );
    e.one(
        "purlin_spawned_processes",
        Type::Counter,
        "Processes that were started.",
        sched::spawned(),
    );
}

/// Waits of processes. The latency of the schedulers is the kind `ready`.
fn waits(e: &mut Exposition) {
    let mut f = e.family(
        "purlin_wait_seconds",
        Type::Histogram,
        "Time that processes waited, by what for: ready is for a scheduler. Estimated by samples.",
    );
    for (kind, w) in &accounts::waits().0 {
        // Class n has the waits below 2^n microseconds; the last has no bound.
        let classes = (0..LENGTHS - 1).map(|n| ((1_u64 << n) as f64 / 1e6, w.lengths[n]));
        f.histogram(
            &[("for", word(*kind))],
            classes,
            w.lengths[LENGTHS - 1],
            Some(seconds(w.nanoseconds)),
        );
    }
}

fn schedulers(e: &mut Exposition) {
    let lengths = sched::queue_lengths();
    let mut f = e.family(
        "purlin_run_queue_processes",
        Type::Gauge,
        "Processes in the run queue of each scheduler.",
    );
    for (i, n) in lengths.iter().enumerate() {
        f.sample(&[("scheduler", &(i + 1).to_string())], *n);
    }
    let mut f = e.family(
        "purlin_scheduler_idle_seconds",
        Type::Counter,
        "Time that each scheduler was idle.",
    );
    for (i, n) in sched::idle_nanoseconds().into_iter().enumerate() {
        f.sample(&[("scheduler", &(i + 1).to_string())], seconds(n));
    }
    if msacc::on() {
        microstates(e);
    }
}

/// Families of `prometheus_vm_msacc_collector`, while microstate accounting is on.
fn microstates(e: &mut Exposition) {
    let threads = msacc::all();
    for (i, state) in msacc::NAMES.iter().enumerate() {
        let name = format!("erlang_vm_msacc_{state}_seconds");
        let mut f = e.family(&name, Type::Counter, "Time of each thread in this state.");
        for (kind, id, spent) in &threads {
            let labels = [("type", kind.name()), ("id", &*id.to_string())];
            f.sample(&labels, seconds(spent[i]));
        }
    }
}

fn dirty_threads(e: &mut Exposition) {
    let (cpu, io) = sched::dirty_counts();
    let (cpu_queue, io_queue) = sched::dirty_lengths();
    let [(cpu_busy, cpu_worked), (io_busy, io_worked)] = sched::dirty_work();
    let pools = [
        ("cpu", cpu, cpu_queue, cpu_busy, cpu_worked),
        ("io", io, io_queue, io_busy, io_worked),
    ];
    let mut of = |name: &str, kind, help: &str, value: fn(usize, usize, usize, u64) -> Value| {
        let mut f = e.family(name, kind, help);
        for (pool, threads, queue, busy, worked) in pools {
            f.sample(&[("pool", pool)], value(threads, queue, busy, worked));
        }
    };
    of(
        "purlin_dirty_threads",
        Type::Gauge,
        "Threads of the dirty pools.",
        |threads, _, _, _| threads.into(),
    );
    of(
        "purlin_dirty_busy_threads",
        Type::Gauge,
        "Threads of the dirty pools that work.",
        |_, _, busy, _| busy.into(),
    );
    of(
        "purlin_dirty_queue_processes",
        Type::Gauge,
        "Processes that wait for a thread of a dirty pool.",
        |_, queue, _, _| queue.into(),
    );
    of(
        "purlin_dirty_work_seconds",
        Type::Counter,
        "Time that the threads of the dirty pools have worked.",
        |_, _, _, worked| seconds(worked).into(),
    );
}

/// Counted when a process last waited or its time slice ended.
fn unread_messages(e: &mut Exposition) {
    if !lengths::on() {
        return;
    }
    let counts = lengths::counts();
    let unread: usize = counts.iter().sum();
    let none = process::table().live().saturating_sub(unread) as u64;
    // Class n has the lengths up to 2^(n+1) - 1.
    let classes = (0..CLASSES - 1).map(|n| (((2_u64 << n) - 1) as f64, counts[n] as u64));
    e.family(
        "purlin_unread_messages",
        Type::Histogram,
        "Processes by their number of unread messages, when each last ran.",
    )
    .histogram(
        &[],
        std::iter::once((0.0, none)).chain(classes),
        counts[CLASSES - 1] as u64,
        None,
    );
}

/// Maximum number of budgets that have samples.
const MOST_BUDGETS: usize = 200;

/// Use and limits of budgets, by their numbers. A budget without a limit has no sample of it.
fn budget_use(e: &mut Exposition) {
    if !budgets::on() {
        return;
    }
    let mut rows: Vec<(String, [[i64; 4]; Counted::ALL.len()], f64)> = Vec::new();
    budgets::each(|number, b| {
        if rows.len() < MOST_BUDGETS {
            let counts = Counted::ALL.map(|(what, _)| b.account(what));
            rows.push((number.to_string(), counts, b.cpu().1 as f64 / 1e9));
        }
    });
    for (name, kind, help, column) in [
        (
            "purlin_budget_limit",
            Type::Gauge,
            "Limits of budgets; bytes of memory.",
            0,
        ),
        (
            "purlin_budget_used",
            Type::Gauge,
            "Use of budgets; bytes of memory.",
            1,
        ),
        (
            "purlin_budget_reached",
            Type::Counter,
            "Number of times that a limit of a budget was reached.",
            3,
        ),
    ] {
        let mut f = e.family(name, kind, help);
        for (number, counts, _) in &rows {
            for ((_, of), account) in Counted::ALL.iter().zip(counts) {
                if account[column] != NO_LIMIT {
                    f.sample(&[("budget", number), ("of", of)], account[column] as f64);
                }
            }
        }
    }
    let mut f = e.family(
        "purlin_budget_cpu_seconds",
        Type::Counter,
        "Processor time of budgets.",
    );
    for (number, _, seconds) in &rows {
        f.sample(&[("budget", number)], *seconds);
    }
}

fn resources(e: &mut Exposition) {
    let (tables, table_bytes) = purlin_ets::totals();
    let (read, written) = port::total_bytes();
    for (name, help, n) in [
        ("purlin_tables", "Tables.", tables),
        (
            "purlin_table_objects",
            "Objects in tables.",
            purlin_ets::objects(),
        ),
        ("purlin_table_bytes", "Bytes of tables.", table_bytes),
        ("purlin_ports", "Ports.", port::count()),
        (
            "purlin_sockets",
            "Open sockets of module socket.",
            socket::open_count() as usize,
        ),
    ] {
        e.one(name, Type::Gauge, help, n);
    }
    e.one(
        "purlin_port_read_bytes",
        Type::Counter,
        "Bytes read from ports.",
        read,
    );
    e.one(
        "purlin_port_written_bytes",
        Type::Counter,
        "Bytes written to ports.",
        written,
    );
}

fn machine_code(e: &mut Exposition) {
    let Some((functions, bytes, limit)) = report::totals() else {
        return;
    };
    for (name, help, n) in [
        (
            "purlin_machine_code_functions",
            "Functions with machine code.",
            functions,
        ),
        ("purlin_machine_code_bytes", "Bytes of machine code.", bytes),
        (
            "purlin_machine_code_limit_bytes",
            "Maximum of these bytes.",
            limit,
        ),
    ] {
        e.one(name, Type::Gauge, help, n);
    }
}
