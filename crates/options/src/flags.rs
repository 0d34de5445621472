//! The emulator's flags: one row each, with documentation, argument and effect.
//!
//! A flag is looked up by prefix, and the first match wins, as in stock: `+P1000` and `+P 1000` are
//! the same. So a row precedes every row whose name is a prefix of its own (checked by a test).
//! Errors have stock's words. Stock checks flags in several passes over the command line. [`parse`]
//! makes the same passes, so that of two errors the same one is reported.

use purlin_messages as messages;
use std::ffi::OsString;

use super::alloc;
use super::cpus::CpuCounts;
use super::memory::MemoryLimit;
use super::topology;
use super::values::*;
use super::*;
use purlin_isa::release::{self, Feature};

/// One emulator flag.
pub struct FlagRow {
    /// Name after the `+`.
    pub name: &'static str,
    /// Placeholder of its argument in help texts; empty if it has none.
    pub argument: &'static str,
    /// Whether the argument may be given as the next word; otherwise it is glued to the name.
    pub takes_next: bool,
    pass: Pass,
    /// One line for help texts.
    pub doc: &'static str,
    /// The feature of the releases that know the flag; others refuse it.
    pub with: Feature,
    set: fn(&mut Parsed, &str) -> Result<(), String>,
}

/// The pass that checks a flag. Before it looks at the settings of allocators and polling, stock
/// sizes thread pools. It checks everything else afterwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Early,
    Poll,
    Main,
}

/// The options that flags write.
pub(super) struct Parsed {
    pub flags: EmulatorFlags,
    pub boot_module: String,
    /// Lines for standard error that do not stop the start.
    pub notices: Vec<String>,
    otp_release: u32,
    /// Percentages of `+SP` and `+SDPcpu`, applied after all counts are known.
    scheduler_percentage: (i32, i32),
    dirty_cpu_percentage: (i32, i32),
    poll_threads: i32,
    poll_sets: i32,
    poll_threads_percentage: i32,
    poll_sets_percentage: i32,
}

const fn early(
    name: &'static str,
    argument: &'static str,
    doc: &'static str,
    set: fn(&mut Parsed, &str) -> Result<(), String>,
) -> FlagRow {
    FlagRow {
        name,
        argument,
        takes_next: true,
        pass: Pass::Early,
        doc,
        with: release::ALWAYS,
        set,
    }
}

const fn poll(
    name: &'static str,
    argument: &'static str,
    doc: &'static str,
    set: fn(&mut Parsed, &str) -> Result<(), String>,
) -> FlagRow {
    FlagRow {
        name,
        argument,
        takes_next: true,
        pass: Pass::Poll,
        doc,
        with: release::ALWAYS,
        set,
    }
}

const fn main(
    name: &'static str,
    argument: &'static str,
    doc: &'static str,
    set: fn(&mut Parsed, &str) -> Result<(), String>,
) -> FlagRow {
    FlagRow {
        name,
        argument,
        takes_next: !argument.is_empty(),
        pass: Pass::Main,
        doc,
        with: release::ALWAYS,
        set,
    }
}

/// Makes the row of a flag whose argument can only be glued to it.
const fn glued(row: FlagRow) -> FlagRow {
    FlagRow {
        takes_next: false,
        ..row
    }
}

/// Makes the row of a flag that a release introduced.
const fn since(with: Feature, row: FlagRow) -> FlagRow {
    FlagRow { with, ..row }
}

/// Every flag except `+M…` (see [`alloc`]), `+B` and `+c`, whose arguments follow rules of their
/// own.
pub static FLAGS: &[FlagRow] = &[
    main(
        "a",
        "SIZE",
        "stack of async threads, kilowords (16-8192)",
        |p, v| {
            p.flags.schedulers.async_stack_kwords =
                in_range(v, &ASYNC_STACK_KWORDS, "bad stack size for async threads")?;
            Ok(())
        },
    ),
    early("A", "N", "async threads (0-1024)", |p, v| {
        let threads = in_range(v, &(0..=1024), "bad number of async threads")?;
        p.flags.schedulers.async_threads = threads.max(1);
        Ok(())
    }),
    main(
        "C",
        "MODE",
        "no_time_warp, single_time_warp or multi_time_warp",
        |p, v| {
            p.flags.time.warp = word(TimeWarp::from_word, v, || {
                format!("Invalid time warp mode: {v}")
            })?;
            Ok(())
        },
    ),
    glued(early(
        "dcg",
        "N",
        "maximum number of decentralized counter groups",
        |p, v| {
            p.flags.schedulers.decentralized_counter_groups =
                limit(v, "bad decentralized counter groups limit:")?;
            Ok(())
        },
    )),
    main(
        "d",
        "",
        "no crash dump for internal errors of the runtime",
        |p, _| {
            p.flags.crash_dump.only_core = true;
            Ok(())
        },
    ),
    since(
        release::DEBUGGER,
        main(
            "Dibpl",
            "BOOL",
            "prepare loaded code for breakpoints on lines",
            |p, v| {
                p.flags.debugger.line_breakpoints = v
                    .parse()
                    .map_err(|_| format!("Dibpl expected `true' or `false' but got: `{v}'"))?;
                Ok(())
            },
        ),
    ),
    since(
        release::DEBUGGER,
        main("D", "", "allow a debugger to be attached", |p, _| {
            p.flags.debugger.enabled = true;
            Ok(())
        }),
    ),
    main("ec", "", "compress all ETS tables", |p, _| {
        p.flags.ets.always_compress = true;
        Ok(())
    }),
    main("e", "N", "number of ETS tables to make room for", |p, v| {
        p.flags.ets.requested_tables = in_range(
            v,
            &(0..=i32::MAX as u32),
            "bad maximum number of ets tables",
        )?;
        Ok(())
    }),
    glued(main(
        "fn",
        "{u|l|a}[w|i|e]",
        "encoding of file names: UTF-8, Latin-1, or the locale's",
        fn_set,
    )),
    main(
        "Fbudget",
        "WHO,LIMIT=N,...",
        "Purlin: budget of app:NAME, or of what name:NAME starts; see docs/budgets.md (repeatable)",
        |p, v| {
            let budget = super::budget_flag::read(v).ok_or_else(|| format!("bad budget {v}"))?;
            p.flags.purlin.budgets.push(budget);
            Ok(())
        },
    ),
    main(
        "Fatoms",
        "keep|collect|stress",
        "Purlin: keep all atoms, collect dead ones (the default), or do so after every 1,000",
        |p, v| {
            p.flags.purlin.atoms = Some(word(AtomCollection::from_word, v, || {
                format!("bad collection of atoms {v}")
            })?);
            Ok(())
        },
    ),
    main(
        "Fregion",
        "WORDS",
        "Purlin: size of terms that are shared instead of copied when sent; 0: never",
        |p, v| {
            p.flags.purlin.region_words = Some(natural(v, "bad region threshold")?);
            Ok(())
        },
    ),
    main(
        "Fleave",
        "WORDS",
        "Purlin: maximum words copied out of a shared term to release it; 0: never",
        |p, v| {
            p.flags.purlin.leave_words = Some(natural(v, "bad words to leave a region")?);
            Ok(())
        },
    ),
    main(
        "Fmerge",
        "BYTES",
        "Purlin: size below which pieces of I/O lists are merged when written",
        |p, v| {
            p.flags.purlin.write_merge_bytes =
                Some(bounded(v, 0..=1 << 30, "bad write merge size")?);
            Ok(())
        },
    ),
    main(
        "Frefc",
        "BYTES",
        "Purlin: size above which binaries are off-heap (0-65535; stock: 64)",
        |p, v| {
            p.flags.purlin.refc_binary_bytes =
                Some(bounded(v, 0..=65535, "bad off-heap binary threshold")?);
            Ok(())
        },
    ),
    main(
        "Fiov",
        "N",
        "Purlin: maximum number of elements of a gathering write (1-1024)",
        |p, v| {
            p.flags.purlin.iovec_entries = Some(bounded(v, 1..=1024, "bad vector length")?);
            Ok(())
        },
    ),
    main(
        "Fcompact",
        "MS",
        "Purlin: idle time after which a heap is compacted; 0: never",
        |p, v| {
            p.flags.purlin.idle_compaction_ms = Some(natural(v, "bad compaction delay")?);
            Ok(())
        },
    ),
    main(
        "Fexplain",
        "BOOL",
        "Purlin: keep accounts for purlin explain, and answer it (true)",
        |p, v| {
            p.flags.purlin.no_explain = !boolean(v, "bad choice of accounts")?;
            Ok(())
        },
    ),
    main(
        "Fmetrics",
        "ADDRESS",
        "Purlin: serve metrics at IP:PORT, or at a Unix socket by its absolute path",
        |p, v| {
            let place = word(MetricsPlace::from_word, v, || {
                format!("bad address of metrics {v}: IP:PORT or /PATH is expected")
            })?;
            p.flags.purlin.metrics = Some(place);
            Ok(())
        },
    ),
    main(
        "Fotlp",
        "URL[,TIME]",
        "Purlin: send metrics and profiles to http://HOST:PORT by OTLP, every TIME (10s)",
        |p, v| {
            let to = OtlpFlag::from_words(v).map_err(|why| format!("bad +Fotlp {v}: {why}"))?;
            p.flags.purlin.otlp = Some(to);
            Ok(())
        },
    ),
    main(
        "Frecord",
        "WORDS",
        "Purlin: the record of the last minute: off, quiet, terms, MIB (1-128; 4), /FOLDER",
        |p, v| {
            let known = p.flags.purlin.record.add(v);
            known.then_some(()).ok_or_else(|| {
                format!(
                    "bad words for the record {v}: off, quiet, terms, MIB or /FOLDER is expected"
                )
            })
        },
    ),
    // Before the row whose name is a prefix of its own.
    main(
        "Fjitmem",
        "MIB",
        "Purlin: maximum size of machine code, in MiB (1-64; 32)",
        |p, v| {
            p.flags.purlin.machine_code_mib =
                Some(bounded(v, 1..=64, "bad limit of machine code")?);
            Ok(())
        },
    ),
    main(
        "Fjit",
        "MODE",
        "Purlin: functions that get machine code: those that run (hot), none (off), all (always)",
        |p, v| {
            let mode = word(MachineCode::from_word, v, || {
                format!("bad choice of machine code {v}")
            })?;
            p.flags.purlin.machine_code = Some(mode);
            Ok(())
        },
    ),
    main(
        "hmbs",
        "WORDS",
        "minimum virtual binary heap of a process",
        |p, v| {
            p.flags.heap.min_bin_vheap_words = heap_size(v)?;
            Ok(())
        },
    ),
    main("hms", "WORDS", "minimum heap of a process", |p, v| {
        p.flags.heap.min_heap_words = heap_size(v)?;
        Ok(())
    }),
    main(
        "hpds",
        "N",
        "initial size of a process dictionary",
        |p, v| {
            let size = in_range(v, &(1..=1 << 30), "bad initial process dictionary size")?;
            p.flags.heap.dictionary_size = size.next_power_of_two();
            Ok(())
        },
    ),
    main(
        "hmqd",
        "MODE",
        "place of waiting messages: on_heap or off_heap",
        |p, v| {
            p.flags.heap.message_queue_data = word(MessageQueueData::from_word, v, || {
                format!("Invalid message_queue_data flag: {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "hmaxk",
        "BOOL",
        "kill a process that exceeds its heap limit",
        |p, v| {
            p.flags.heap.max_heap_kill = boolean(v, "bad max heap kill")?;
            Ok(())
        },
    ),
    main(
        "hmaxel",
        "BOOL",
        "log a process that exceeds its heap limit",
        |p, v| {
            p.flags.heap.max_heap_log = boolean(v, "bad max heap error logger")?;
            Ok(())
        },
    ),
    main(
        "hmaxib",
        "BOOL",
        "count shared binaries towards the heap limit",
        |p, v| {
            p.flags.heap.max_heap_include_binaries = boolean(v, "bad max heap include bins")?;
            Ok(())
        },
    ),
    main(
        "hmax",
        "WORDS",
        "heap limit of a process; 0: none",
        |p, v| {
            let words = c_long(v).filter(|words| (0..1 << 59).contains(words));
            p.flags.heap.max_heap_words =
                words.ok_or_else(|| format!("bad max heap size {v}"))? as u64;
            Ok(())
        },
    ),
    main("h", "WORDS", "the same as +hms", |p, v| {
        p.flags.heap.min_heap_words = heap_size(v)?;
        Ok(())
    }),
    main("H", "", "obsolete, without effect", |p, _| {
        p.notices
            .push("The undocumented +H option has been removed (R10B-6).\n".into());
        Ok(())
    }),
    poll("IOt", "N", "threads that poll for I/O", |p, v| {
        p.poll_threads = scan_range(v, 1..=MAX_SCHEDULERS as i32)
            .ok_or_else(|| format!("bad I/O poll threads number: {v}"))?;
        Ok(())
    }),
    poll("IOp", "N", "poll sets", |p, v| {
        p.poll_sets =
            scan_range(v, 1..=i32::MAX).ok_or_else(|| format!("bad I/O pollset number: {v}"))?;
        Ok(())
    }),
    poll(
        "IOPt",
        "PERCENT",
        "threads that poll for I/O, of the schedulers",
        |p, v| {
            p.poll_threads_percentage = scan_range(v, 0..=100)
                .ok_or_else(|| format!("bad I/O poll thread percentage number: {v}"))?;
            Ok(())
        },
    ),
    poll(
        "IOPp",
        "PERCENT",
        "poll sets, of the poll threads",
        |p, v| {
            p.poll_sets_percentage = scan_range(v, 0..=100)
                .ok_or_else(|| format!("bad I/O pollset percentage number: {v}"))?;
            Ok(())
        },
    ),
    poll("IOs", "BOOL", "schedulers poll too", |p, v| {
        p.flags.poll.scheduler_polling = boolean(v, "bad +IOs boolean argument:")?;
        Ok(())
    }),
    main(
        "i",
        "MODULE",
        "module in which the first process starts",
        |p, v| {
            p.boot_module = v.to_string();
            Ok(())
        },
    ),
    main(
        "JDdump",
        "BOOL",
        "write the machine code of loaded modules to files",
        |p, v| {
            p.flags.jit.asm_dump = boolean(v, "bad +JDdump flag")?;
            Ok(())
        },
    ),
    since(
        release::SINGLE_MAPPED_CODE,
        main(
            "JMsingle",
            "BOOL",
            "map machine code once, writable and executable in turn",
            |p, v| {
                p.flags.jit.single_map = boolean(v, "bad +JMsingle support flag")?;
                Ok(())
            },
        ),
    ),
    since(
        release::COVERAGE,
        main(
            "JPcover",
            "MODE",
            "true false function[_counters] line[_counters]",
            |p, v| {
                p.flags.jit.coverage = match v {
                    "true" => Coverage::LineCounters,
                    "false" => Coverage::None,
                    _ => word(Coverage::from_word, v, || format!("bad +JPcover flag {v}"))?,
                };
                Ok(())
            },
        ),
    ),
    since(
        release::PERF_DIRECTORY,
        main(
            "JPperfdirectory",
            "DIR",
            "directory of the files for perf",
            |p, v| {
                p.flags.jit.perf_directory = Some(v.to_string());
                Ok(())
            },
        ),
    ),
    main(
        "JPperf",
        "MODE",
        "true false dump map fp no_fp: let perf find machine code",
        |p, v| {
            let jit = &mut p.flags.jit;
            match v {
                "true" => (jit.perf_dump, jit.perf_map) = (true, true),
                "false" => (jit.perf_dump, jit.perf_map) = (false, false),
                "dump" => jit.perf_dump = true,
                "map" => jit.perf_map = true,
                "fp" if release::PERF_DIRECTORY.is_in(p.otp_release) => {
                    jit.perf_frame_pointers = true
                }
                "no_fp" if release::PERF_DIRECTORY.is_in(p.otp_release) => {
                    jit.perf_frame_pointers = false
                }
                _ => return Err(format!("bad +JPperf support flag {v}")),
            }
            Ok(())
        },
    ),
    poll("K", "BOOL", "kernel polling, which is always on", |_, _| {
        Ok(())
    }),
    main("L", "", "do not load line information", |p, _| {
        p.flags.no_line_info = true;
        Ok(())
    }),
    main(
        "n",
        "{s|a|d}",
        "signals to ports: synchronous, asynchronous, default",
        |p, v| {
            p.flags.port_signals =
                word(PortSignals::from_word, v, || format!("bad -n option {v}"))?;
            Ok(())
        },
    ),
    main(
        "pad",
        "BOOL",
        "processes signal other nodes asynchronously by default",
        |p, v| {
            p.flags.dist.async_dist = boolean(v, "bad default process async_dist flag")?;
            Ok(())
        },
    ),
    main(
        "pc",
        "RANGE",
        "printable characters: latin1 or unicode",
        |p, v| {
            p.flags.printable_chars = word(PrintableChars::from_word, v, || {
                format!("bad range of printable characters: {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "P",
        "N",
        "maximum number of processes (1024-134217727), or legacy",
        |p, v| {
            if v == "legacy" {
                p.flags.tables.legacy_process_table = true;
            } else {
                p.flags.tables.processes = in_range(
                    v,
                    &(MIN_PROCESSES..=MAX_PROCESSES),
                    "bad number of processes",
                )?;
            }
            Ok(())
        },
    ),
    main(
        "Q",
        "N",
        "maximum number of ports (1024-134217727), or legacy",
        |p, v| {
            if v == "legacy" {
                p.flags.tables.legacy_port_table = true;
            } else {
                p.flags.tables.ports =
                    in_range(v, &(MIN_PORTS..=MAX_PORTS), "bad number of ports")?;
                p.flags.tables.ports_given = true;
            }
            Ok(())
        },
    ),
    main(
        "R",
        "RELEASE",
        "release to be compatible with (this one and two before)",
        |p, v| {
            let releases = p.otp_release.saturating_sub(2)..=p.otp_release;
            p.flags.compat_release = in_range(v, &releases, "bad compatibility release number")?;
            Ok(())
        },
    ),
    early("rg", "N", "maximum number of reader lock groups", |p, v| {
        p.flags.schedulers.reader_groups = limit(v, "bad reader groups limit:")?;
        Ok(())
    }),
    main("r", "", "move ETS memory whenever it is resized", |p, _| {
        p.flags.ets.realloc_moves = true;
        Ok(())
    }),
    early(
        "SDPcpu",
        "P1:P2",
        "dirty CPU schedulers and those online, percent of processors",
        |p, v| {
            p.dirty_cpu_percentage = percentages(v)
                .ok_or_else(|| format!("bad dirty CPU schedulers percentage specifier {v}"))?;
            Ok(())
        },
    ),
    early(
        "SDcpu",
        "N1:N2",
        "dirty CPU schedulers and those online (1-1024)",
        dirty_cpu_set,
    ),
    early("SDio", "N", "dirty I/O schedulers (1-1024)", |p, v| {
        p.flags.schedulers.dirty_io = in_range(
            v,
            &(1..=MAX_SCHEDULERS),
            "bad number of dirty I/O schedulers",
        )?;
        Ok(())
    }),
    early(
        "SP",
        "P1:P2",
        "schedulers and those online, percent of processors",
        |p, v| {
            p.scheduler_percentage =
                percentages(v).ok_or_else(|| format!("bad schedulers percentage specifier {v}"))?;
            p.flags.schedulers.count_given = true;
            Ok(())
        },
    ),
    early(
        "S",
        "N1:N2",
        "schedulers and those online (1-1024)",
        schedulers_set,
    ),
    main(
        "sbt",
        "TYPE",
        "bind schedulers: u ns ts ps s nnts nnps tnnps db",
        |p, v| match bind_type_set(p, v)? {
            true => Ok(()),
            false => Err(format!(
                "setting scheduler bind type '{v}' failed: no cpu topology available"
            )),
        },
    ),
    main(
        "sbwtdcpu",
        "LEVEL",
        "like +sbwt for dirty CPU schedulers",
        |p, v| {
            p.flags.schedulers.dirty_cpu_busy_wait = word(BusyWait::from_word, v, || {
                format!("bad dirty CPU scheduler busy wait threshold: {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "sbwtdio",
        "LEVEL",
        "like +sbwt for dirty I/O schedulers",
        |p, v| {
            p.flags.schedulers.dirty_io_busy_wait = word(BusyWait::from_word, v, || {
                format!("bad dirty IO scheduler busy wait threshold: {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "sbwt",
        "LEVEL",
        "busy waiting: none very_short short medium long very_long",
        |p, v| {
            p.flags.schedulers.busy_wait = word(BusyWait::from_word, v, || {
                format!("bad scheduler busy wait threshold: {v}")
            })?;
            Ok(())
        },
    ),
    main("scl", "BOOL", "compact load onto few schedulers", |p, v| {
        let compact = quoted_boolean(v, "bad scheduler compact load value")?;
        p.flags.schedulers.compact_load = compact;
        if compact {
            p.flags.schedulers.balance_utilization = false;
        }
        Ok(())
    }),
    main(
        "sct",
        "TOPOLOGY",
        "processor topology, as L0-3c0-3p0",
        |p, v| {
            let topology =
                topology::parse(v).map_err(|reason| format!("bad cpu topology '{v}': {reason}"))?;
            p.flags.schedulers.cpu_topology = Some(topology);
            Ok(())
        },
    ),
    main(
        "secio",
        "BOOL",
        "eager check of I/O; obsolete, without effect",
        |_, _| Ok(()),
    ),
    main(
        "sfwi",
        "MS",
        "interval of forced wakeups; 0: off",
        |p, v| {
            p.flags.schedulers.forced_wakeup_ms =
                natural(v, "bad scheduler forced wakeup interval")?;
            Ok(())
        },
    ),
    main("spp", "BOOL", "ports run in parallel by default", |p, v| {
        p.flags.schedulers.port_parallelism = boolean(v, "bad port parallelism scheduling hint")?;
        Ok(())
    }),
    main("ssrct", "", "do not read the processor topology", |_, _| {
        // Checked before.
        Ok(())
    }),
    main(
        "sssdcpu",
        "SIZE",
        "stack of dirty CPU schedulers, kilowords (20-8192)",
        |p, v| {
            p.flags.schedulers.dirty_cpu_stack_kwords = in_range(
                v,
                &SCHEDULER_STACK_KWORDS,
                "bad stack size for dirty CPU scheduler threads",
            )?;
            Ok(())
        },
    ),
    main(
        "sssdio",
        "SIZE",
        "stack of dirty I/O schedulers, kilowords (20-8192)",
        |p, v| {
            p.flags.schedulers.dirty_io_stack_kwords = in_range(
                v,
                &SCHEDULER_STACK_KWORDS,
                "bad stack size for dirty IO scheduler threads",
            )?;
            Ok(())
        },
    ),
    main(
        "sss",
        "SIZE",
        "stack of schedulers, kilowords (20-8192)",
        |p, v| {
            p.flags.schedulers.stack_kwords = in_range(
                v,
                &SCHEDULER_STACK_KWORDS,
                "bad stack size for scheduler threads",
            )?;
            Ok(())
        },
    ),
    main(
        "stbt",
        "TYPE",
        "like +sbt, but continue if binding is impossible",
        |p, v| bind_type_set(p, v).map(|_| ()),
    ),
    main(
        "sub",
        "BOOL",
        "balance the utilization of schedulers",
        |p, v| {
            let balance = quoted_boolean(v, "bad scheduler utilization balancing  value")?;
            p.flags.schedulers.balance_utilization = balance;
            Ok(())
        },
    ),
    main(
        "swct",
        "LEVEL",
        "wake for cleaning: very_lazy lazy medium eager very_eager",
        |p, v| {
            p.flags.schedulers.wake_cleanup = word(WakeCleanup::from_word, v, || {
                format!("scheduler wake cleanup threshold: {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "swtdcpu",
        "LEVEL",
        "like +swt for dirty CPU schedulers",
        |p, v| {
            p.flags.schedulers.dirty_cpu_wakeup = word(WakeupThreshold::from_word, v, || {
                format!("dirty CPU scheduler wakeup threshold: {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "swtdio",
        "LEVEL",
        "like +swt for dirty I/O schedulers",
        |p, v| {
            p.flags.schedulers.dirty_io_wakeup = word(WakeupThreshold::from_word, v, || {
                format!("dirty IO scheduler wakeup threshold: {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "swt",
        "LEVEL",
        "waking others: very_low low medium high very_high",
        |p, v| {
            p.flags.schedulers.wakeup = word(WakeupThreshold::from_word, v, || {
                format!("scheduler wakeup threshold: {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "sws",
        "STRATEGY",
        "waking strategy: default or legacy",
        |p, v| {
            p.flags.schedulers.wakeup_strategy = word(WakeupStrategy::from_word, v, || {
                format!("scheduler wakeup strategy: {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "t",
        "N",
        "maximum number of atoms (8192-2147483647)",
        |p, v| {
            p.flags.tables.atoms = in_range(v, &(MIN_ATOMS..=MAX_ATOMS), "bad atom table size")?;
            Ok(())
        },
    ),
    main("T", "LEVEL", "modified timing (0-9)", |p, v| {
        let level = in_range(v, &(0..=9), "bad modified timing level")?;
        p.flags.schedulers.modified_timing = Some(level as u8);
        Ok(())
    }),
    main("v", "", "verbose output, in debug builds", |p, _| {
        p.notices
            .push("warning: -v (only in debug compiled code)".into());
        Ok(())
    }),
    main(
        "W",
        "{i|w|e}",
        "log warnings as info, warning or error",
        |p, v| {
            let letter = v.get(..1).unwrap_or("");
            p.flags.warnings = word(WarningMap::from_word, letter, || {
                format!("unrecognized warning_map option {v}")
            })?;
            Ok(())
        },
    ),
    main(
        "zdbbl",
        "KB",
        "busy limit of a distribution channel (1-2097151)",
        |p, v| {
            let kilobytes = scan_or_zero(v);
            if !(1..=i32::MAX / 1024).contains(&kilobytes) {
                return Err(format!("Invalid dbbl limit: {kilobytes}"));
            }
            p.flags.dist.buffer_busy_limit_bytes = kilobytes as u32 * 1024;
            Ok(())
        },
    ),
    main(
        "zdntgc",
        "SECONDS",
        "delay of collecting node names, or infinity",
        |p, v| {
            p.flags.dist.node_table_gc_seconds = match v {
                "infinity" => None,
                _ => Some(
                    v.parse()
                        .ok()
                        .filter(|seconds| *seconds <= MAX_NODE_TABLE_GC_SECONDS)
                        .ok_or_else(|| format!("Invalid delayed node table gc: {v}"))?,
                ),
            };
            Ok(())
        },
    ),
    main(
        "zebwt",
        "LEVEL",
        "busy waiting for ETS locks: none … extremely_long",
        |p, v| {
            p.flags.ets.busy_wait = word(EtsBusyWait::from_word, v, || {
                format!("Invalid ets busy wait threshold: {v}")
            })?;
            Ok(())
        },
    ),
    since(
        release::HALT_FLUSH_TIMEOUT,
        main(
            "zhft",
            "MS",
            "maximum time for halt to flush ports, or infinity",
            |p, v| {
                p.flags.halt_flush_timeout_ms = match v {
                    "infinity" => None,
                    _ => Some(in_range(
                        v,
                        &(0..=i32::MAX as u32),
                        "Invalid halt flush timeout",
                    )?),
                };
                Ok(())
            },
        ),
    ),
    main(
        "zosrl",
        "N",
        "outstanding requests of system processes (1-134217727)",
        |p, v| {
            p.flags.dist.outstanding_requests_limit = in_range(
                v,
                &(1..=MAX_PROCESSES),
                "Invalid outstanding requests limit",
            )?;
            Ok(())
        },
    ),
];

/// Flags that follow rules of their own: name, argument, documentation.
pub static OTHER_FLAGS: &[(&str, &str, &str)] = &[
    (
        "B",
        "[c|d|i]",
        "effect of Ctrl-C: interrupt the shell, the signal's default (also +B alone), ignore",
    ),
    ("c", "[BOOL]", "time correction; +c alone turns it off"),
    (
        "M…",
        "VALUE",
        "settings of memory allocators: checked and reported, without effect",
    ),
    (
        "Mlimit",
        "BYTES|off",
        "memory limit of the node, with k, m or g; default: limit of its control groups",
    ),
    ("V", "", "print the emulator's version and exit"),
];

/// Returns the row to which `text` (a flag without its sign) belongs in a release, and the text
/// that is glued to its name.
pub fn find(text: &str, release: u32) -> Option<(&'static FlagRow, &str)> {
    // These names must stand alone: otherwise they could not be distinguished from longer flags.
    let row = FLAGS
        .iter()
        .filter(|row| row.with.is_in(release))
        .find(|row| match row.name {
            "ec" | "D" => text == row.name,
            name => text.starts_with(name),
        })?;
    Some((row, &text[row.name.len()..]))
}

/// Why parsing stopped early.
pub(super) enum Stop {
    /// `+V`.
    Version,
    Refused(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Stop {
        Stop::Refused(message)
    }
}

/// The emulator's argument vector while it is parsed.
struct Arguments {
    words: Vec<String>,
    /// Later passes skip the words that an earlier one has used.
    used: Vec<bool>,
    /// Index of the `--` that ends the flags.
    end: usize,
}

impl Arguments {
    fn new(argv: &[OsString]) -> Arguments {
        let words: Vec<String> = argv
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect();
        let end = argv.iter().skip(1).position(|arg| arg == "--");
        Arguments {
            used: vec![false; words.len() + 1],
            end: end.map_or(words.len(), |at| at + 1),
            words,
        }
    }
    fn next(&self, at: usize) -> Option<&str> {
        self.words.get(at + 1).map(String::as_str)
    }
    /// Returns the value of the flag at `at`: the text that is glued to it, or the next word.
    fn value(&mut self, at: usize, glued: &str) -> Result<String, String> {
        self.used[at] = true;
        if !glued.is_empty() {
            return Ok(glued.to_string());
        }
        self.used[at + 1] = true;
        self.next(at)
            .map(str::to_string)
            .ok_or_else(|| "too few arguments".to_string())
    }
    /// Returns the next word, and uses it, if `accepts` holds for it.
    fn next_if(&mut self, at: usize, accepts: impl FnOnce(&str) -> bool) -> Option<String> {
        let next = self.next(at).filter(|next| accepts(next))?.to_string();
        self.used[at + 1] = true;
        Some(next)
    }
    /// Whether one of the flags begins with that text.
    fn any(&self, prefix: &str) -> bool {
        let mut flags = self.words.iter().take(self.end).skip(1);
        flags.any(|w| w.starts_with(prefix))
    }
}

/// Parses the emulator's argument vector (`argv[0]` included): flags with `-` for their sign up to
/// `--`. Returns the settings and the index of the first argument of `init`.
pub(super) fn parse(
    argv: &[OsString],
    environment: &[(OsString, OsString)],
    cpus: CpuCounts,
    otp_release: u32,
) -> Result<(Parsed, usize), Stop> {
    let mut parsed = Parsed {
        flags: EmulatorFlags::defaults(cpus, otp_release),
        boot_module: "init".into(),
        notices: Vec::new(),
        otp_release,
        scheduler_percentage: (100, 100),
        dirty_cpu_percentage: (100, 100),
        poll_threads: 0,
        poll_sets: 0,
        poll_threads_percentage: 0,
        poll_sets_percentage: 0,
    };
    parsed.read_environment(environment);
    let mut args = Arguments::new(argv);
    parsed.flags.schedulers.skip_cpu_topology = args.any("-sct") || args.any("-ssrct");
    parsed.pass(Pass::Early, &mut args)?;
    parsed.settle_schedulers()?;
    parsed.allocators(&mut args)?;
    parsed.pass(Pass::Poll, &mut args)?;
    parsed.settle_polling()?;
    for at in 1..args.end {
        if !args.used[at] {
            parsed.last_pass(at, &mut args)?;
        }
    }
    let end = args.end;
    let first_init = if args.used[end] { end } else { end + 1 };
    Ok((parsed, first_init.min(argv.len())))
}

impl Parsed {
    /// Applies the flags of an earlier pass than the last one.
    fn pass(&mut self, pass: Pass, args: &mut Arguments) -> Result<(), String> {
        for at in 1..args.end {
            if args.used[at] {
                continue;
            }
            let text = args.words[at].strip_prefix('-');
            let found = text.and_then(|text| find(text, self.otp_release));
            let Some((row, glued)) = found.filter(|(row, _)| row.pass == pass) else {
                continue;
            };
            let glued = glued.to_string();
            let value = args.value(at, &glued)?;
            (row.set)(self, &value)?;
        }
        Ok(())
    }

    /// Applies `+M…`.
    fn allocators(&mut self, args: &mut Arguments) -> Result<(), String> {
        for at in 1..args.end {
            let switch = args.words[at].strip_prefix("-M");
            let Some(switch) = switch.filter(|_| !args.used[at]).map(str::to_string) else {
                continue;
            };
            if let Some(glued) = switch.strip_prefix("limit") {
                let value = args.value(at, glued)?;
                let limit = MemoryLimit::parse(&value);
                self.flags.memory_limit = limit.ok_or_else(|| {
                    messages::BAD_MEMORY_LIMIT.mark(&format!("bad \"Mlimit\" value: {value}"))
                })?;
                continue;
            }
            let (setting, used_next) = alloc::parse(&switch, args.next(at))?;
            args.used[at] = true;
            args.used[at + 1] |= used_next;
            self.flags.allocator.push(setting);
        }
        Ok(())
    }

    /// Applies the flag at `at` in the last pass, which refuses anything else.
    fn last_pass(&mut self, at: usize, args: &mut Arguments) -> Result<(), Stop> {
        let (program, word) = (args.words[0].clone(), args.words[at].clone());
        let Some(text) = word.strip_prefix('-') else {
            return Err(Stop::Refused(format!("{program} stray argument {word}")));
        };
        match text.as_bytes().first() {
            Some(b'V') => return Err(Stop::Version),
            Some(b'B') => {
                let letter = match &text[1..] {
                    "" => args.next_if(at, |next| matches!(next, "i" | "c" | "d")),
                    glued => glued.get(..1).map(str::to_string),
                };
                self.flags.break_mode = letter
                    .and_then(|letter| BreakMode::from_word(&letter))
                    .unwrap_or(BreakMode::Disabled);
            }
            Some(b'c') => {
                self.flags.time.correction = match &text[1..] {
                    "true" => true,
                    "false" => false,
                    "" => {
                        let next = args.next_if(at, |next| matches!(next, "true" | "false"));
                        next.is_some_and(|next| next == "true")
                    }
                    other => {
                        // The misspelling is stock's.
                        return Err(Stop::Refused(format!(
                            "Invalid time correnction value: {other}"
                        )));
                    }
                };
            }
            _ => {
                let Some((row, glued)) = find(text, self.otp_release) else {
                    return Err(Stop::Refused(match text.as_bytes().first() {
                        Some(b's') => format!("bad scheduling option -{text}"),
                        Some(b'z') => format!("bad -z option -{text}"),
                        Some(b'J') => format!("invalid JIT option -{text}"),
                        Some(b'D') if release::DEBUGGER.is_in(self.otp_release) => {
                            format!("Unknown option {text}")
                        }
                        Some(b'F') => {
                            messages::NO_SUCH_FLAG.mark(&format!("bad -F option -{text}"))
                        }
                        _ => format!("{program} unknown flag {word}"),
                    }));
                };
                let argument = match row.argument {
                    "" => String::new(),
                    _ => args.value(at, glued)?,
                };
                let set = (row.set)(self, &argument);
                // A flag that stock has is refused in stock's words.
                set.map_err(|text| match row.name.starts_with('F') {
                    true => messages::BAD_FLAG_VALUE.mark(&text),
                    false => text,
                })?;
            }
        }
        Ok(())
    }
}

impl Parsed {
    fn read_environment(&mut self, environment: &[(OsString, OsString)]) {
        let variable = |name: &str| {
            environment
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        };
        let number =
            |name: &str| variable(name).map(|value| scan_or_zero(&value.to_string_lossy()));
        if let Some(threads) = number("ERL_THREAD_POOL_SIZE") {
            self.flags.schedulers.async_threads = threads.clamp(1, 1024) as u32;
        }
        if let Some(tables) = number("ERL_MAX_ETS_TABLES") {
            self.flags.ets.requested_tables = tables.max(0) as u32;
        }
        if let Some(collections) = number("ERL_FULLSWEEP_AFTER") {
            self.flags.heap.fullsweep_after = collections as u16;
        }
        if let Some(ports) = number("ERL_MAX_PORTS") {
            self.flags.tables.ports = (ports.max(0) as u32).clamp(MIN_PORTS, MAX_PORTS);
            self.flags.tables.ports_given = true;
        }
        self.flags.crash_dump.read_environment(variable);
    }

    /// Applies percentages, and limits dirty schedulers by the others.
    fn settle_schedulers(&mut self) -> Result<(), String> {
        let schedulers = &mut self.flags.schedulers;
        let of = |count: u32, percent: i32| {
            (u64::from(count) * percent as u64 / 100).min(i32::MAX as u64) as u32
        };
        let (percent, percent_online) = self.scheduler_percentage;
        if (percent, percent_online) != (100, 100) {
            schedulers.total = of(schedulers.total, percent).max(1);
            schedulers.online = of(schedulers.online, percent_online).max(1);
            let (total, online) = (schedulers.total, schedulers.online);
            if total > MAX_SCHEDULERS {
                return Err(format!(
                    "bad schedulers percentage {percent} (total amount of schedulers {total})"
                ));
            }
            if online > total {
                return Err(format!(
                    "bad schedulers online percentage {percent_online} \
                     (total amount of schedulers {total}, online {online})"
                ));
            }
        }
        let (percent, percent_online) = self.dirty_cpu_percentage;
        if (percent, percent_online) != (100, 100) {
            schedulers.dirty_cpu = of(schedulers.dirty_cpu, percent);
            schedulers.dirty_cpu_online = of(schedulers.dirty_cpu_online, percent_online);
        }
        schedulers.dirty_cpu = schedulers.dirty_cpu.clamp(1, schedulers.total);
        schedulers.dirty_cpu_online = schedulers.dirty_cpu_online.clamp(1, schedulers.online);
        self.flags.dist.outstanding_requests_limit = 2 * schedulers.total;
        Ok(())
    }

    fn settle_polling(&mut self) -> Result<(), String> {
        let schedulers = self.flags.schedulers.total as i32;
        if self.poll_threads == 0 {
            self.poll_threads = (schedulers * self.poll_threads_percentage / 100).max(1);
        }
        if self.poll_sets == 0 {
            self.poll_sets = (self.poll_threads * self.poll_sets_percentage / 100).max(1);
        }
        if self.poll_threads < self.poll_sets {
            return Err(format!(
                "number of IO poll threads has to be greater or equal to the number of \n\
                 IO pollsets. Current values are set to: \n  -IOt {} -IOp {}",
                self.poll_threads, self.poll_sets
            ));
        }
        self.flags.poll.threads = self.poll_threads as u32;
        self.flags.poll.sets = self.poll_sets as u32;
        Ok(())
    }
}

impl CrashDumpFlags {
    /// Applies the settings in the environment.
    pub fn read_environment(&mut self, variable: impl Fn(&str) -> Option<OsString>) {
        let number =
            |name: &str| variable(name).map(|value| scan_or_zero(&value.to_string_lossy()));
        self.file = variable("ERL_CRASH_DUMP");
        self.seconds = number("ERL_CRASH_DUMP_SECONDS").map(i64::from);
        self.bytes = variable("ERL_CRASH_DUMP_BYTES")
            .map(|value| c_long(&value.to_string_lossy()).unwrap_or(0));
        self.nice = number("ERL_CRASH_DUMP_NICE");
    }
}

/// Returns how many schedulers there are, and how many of them are online, by the value of a flag.
/// A count of 0 or below is relative to the number of processors. `online`: the number online if
/// the value doesn't give it. `what`: stock's name for them.
fn scheduler_counts(
    cpus: &CpuCounts,
    online: u32,
    v: &str,
    what: &str,
) -> Result<(u32, u32), String> {
    let (total, online) =
        counts(v, cpus.configured, online).ok_or_else(|| format!("bad amount of {what} {v}"))?;
    let all = relative(total, cpus.configured);
    let running = relative(online, cpus.usable());
    if !(1..=i64::from(MAX_SCHEDULERS)).contains(&all) {
        return Err(format!("bad amount of {what} {total}"));
    }
    if !(1..=all).contains(&running) {
        return Err(format!(
            "bad amount of {what} online {running} (total amount of {what} {all})"
        ));
    }
    Ok((all as u32, running as u32))
}

/// `+S`.
fn schedulers_set(p: &mut Parsed, v: &str) -> Result<(), String> {
    let s = &mut p.flags.schedulers;
    (s.total, s.online) = scheduler_counts(&s.cpus, s.online, v, "schedulers")?;
    s.count_given = true;
    Ok(())
}

fn dirty_cpu_set(p: &mut Parsed, v: &str) -> Result<(), String> {
    let s = &mut p.flags.schedulers;
    (s.dirty_cpu, s.dirty_cpu_online) =
        scheduler_counts(&s.cpus, s.dirty_cpu_online, v, "dirty CPU schedulers")?;
    Ok(())
}

/// Returns false if there is no topology to bind by. A later `+sct` doesn't count yet, while the
/// flag that disables asking the system counts wherever it is.
fn bind_type_set(p: &mut Parsed, v: &str) -> Result<bool, String> {
    let wanted = word(BindType::from_word, v, || {
        format!("setting scheduler bind type '{v}' failed: invalid type")
    })?;
    let s = &mut p.flags.schedulers;
    if wanted != BindType::Unbound && s.skip_cpu_topology && s.cpu_topology.is_none() {
        return Ok(false);
    }
    s.bind_type = wanted;
    Ok(true)
}

fn fn_set(p: &mut Parsed, v: &str) -> Result<(), String> {
    let mut letters = v.chars();
    let letter = letters.next().map(String::from).unwrap_or_default();
    p.flags.filename_encoding = word(FilenameEncoding::from_word, &letter, || {
        format!("bad filename encoding {v}, can be (l,u or a, optionally followed by w, i or e)")
    })?;
    p.flags.filename_warning = match (p.flags.filename_encoding, letters.next()) {
        (FilenameEncoding::Latin1, _) | (_, None) => FilenameWarning::Warning,
        (_, Some(letter)) => word(FilenameWarning::from_word, &letter.to_string(), || {
            format!(
                "bad type of warnings for wrongly coded filename: {}",
                &v[1..]
            )
        })?,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_is_hidden_by_one_before_it() {
        for (at, row) in FLAGS.iter().enumerate() {
            let hidden = FLAGS[..at].iter().find(|before| {
                !["ec", "D"].contains(&before.name) && row.name.starts_with(before.name)
            });
            assert!(hidden.is_none(), "+{} is never reached", row.name);
        }
    }
}
