//! Compares settings made by flags and the environment with those that stock reports when it is
//! started with the same ones. Skipped with a printed line if there is no stock `erl`.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use purlin_options::erlexec::Environment;
use purlin_options::{CpuCounts, EmulatorOptions, OtpInstall, Request, parse_erl};

const ITEMS: &str = "[process_limit, atom_limit, schedulers, schedulers_online, \
    dirty_cpu_schedulers, dirty_cpu_schedulers_online, dirty_io_schedulers, thread_pool_size, \
    dist_buf_busy_limit, time_correction, time_warp_mode, modified_timing_level, compat_rel, \
    port_parallelism, fullsweep_after, otp_release, version, logical_processors_available]";

fn started(line: &str, environment: &[(&str, &str)], otp: &OtpInstall) -> Box<EmulatorOptions> {
    let words = std::iter::once("erl").chain(line.split_ascii_whitespace());
    let argv: Vec<OsString> = words.map(OsString::from).collect();
    let environment = environment
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    let environment = Environment(environment.collect());
    match parse_erl(&argv, environment, otp, CpuCounts::detect()) {
        Ok(Request::Start { options, .. }) => options,
        other => panic!("{line}: {other:?}"),
    }
}

/// Returns the report of stock for our settings.
fn report(options: &EmulatorOptions) -> Vec<String> {
    let flags = &options.flags;
    let s = &flags.schedulers;
    let level = s
        .modified_timing
        .map_or("undefined".to_string(), |level| level.to_string());
    vec![
        flags.tables.process_limit().to_string(),
        flags.tables.atoms.to_string(),
        s.total.to_string(),
        s.online.to_string(),
        s.dirty_cpu.to_string(),
        s.dirty_cpu_online.to_string(),
        s.dirty_io.to_string(),
        s.async_threads.to_string(),
        flags.dist.buffer_busy_limit_bytes.to_string(),
        flags.time.correction.to_string(),
        flags.time.warp.word().to_string(),
        level,
        flags.compat_release.to_string(),
        flags.schedulers.port_parallelism.to_string(),
        format!("{{fullsweep_after,{}}}", flags.heap.fullsweep_after),
        format!("\"{}\"", options.otp.release),
        format!("\"{}\"", options.otp.erts_version),
        s.cpus.available.to_string(),
    ]
}

#[test]
fn settings_are_those_that_stock_makes() {
    let root = Path::new("/usr/lib/erlang");
    let Ok(otp) = OtpInstall::open(root) else {
        println!("skipped: no stock OTP in {}", root.display());
        return;
    };
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("", &[]),
        (
            "+P 100000 +t 200000 +A 7 +zdbbl 2000 +C multi_time_warp +T 3 +spp true",
            &[],
        ),
        (
            "+P5000 +S 4:2 +SDcpu 3:1 +SDio 4 +c false +R 24 +hms 500",
            &[],
        ),
        ("+P legacy +S 2 +SP 100:50 +SDPcpu 50", &[]),
        ("+S :1 +c +A0", &[]),
        ("+S 0:0 +SDcpu 0:-1 +P 2000000", &[]),
        (
            "+C single_time_warp",
            &[("ERL_THREAD_POOL_SIZE", "5"), ("ERL_FULLSWEEP_AFTER", "20")],
        ),
        (
            "+A 3 +P 2048 -env ERL_FULLSWEEP_AFTER 9",
            &[("ERL_THREAD_POOL_SIZE", "5")],
        ),
    ];
    for (line, environment) in cases {
        let mut erl = Command::new(root.join("bin/erl"));
        erl.args(line.split_ascii_whitespace())
            .envs(environment.iter().copied());
        let code =
            format!("[io:format(\"~0p~n\", [erlang:system_info(I)]) || I <- {ITEMS}], halt().");
        let output = erl
            .args(["-noshell", "-eval", &code])
            .output()
            .expect("runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected: Vec<&str> = text.lines().collect();
        let got = report(&started(line, environment, &otp));
        assert_eq!(got, expected, "erl {line} {environment:?}");
    }
}

#[test]
fn flags_reach_their_fields() {
    let Ok(otp) = OtpInstall::open(Path::new("/usr/lib/erlang")) else {
        println!("skipped: no stock OTP");
        return;
    };
    let flags = |line: &str| format!("{:?}", started(line, &[], &otp).flags);
    let plain = flags("");
    for (line, field) in [
        ("+a 32", "async_stack_kwords: 32"),
        ("+Q 3000", "ports: 3000, ports_given: true"),
        ("+e 99", "requested_tables: 99"),
        ("+ec", "always_compress: true"),
        ("+r", "realloc_moves: true"),
        ("+zebwt extremely_long", "busy_wait: ExtremelyLong"),
        ("+hms 300", "min_heap_words: 300"),
        ("+h400", "min_heap_words: 400"),
        ("+hmbs 300", "min_bin_vheap_words: 300"),
        ("+hpds 9", "dictionary_size: 16"),
        ("+hmax 1000000000000", "max_heap_words: 1000000000000"),
        ("+hmaxk false", "max_heap_kill: false"),
        ("+hmaxel false", "max_heap_log: false"),
        ("+hmaxib true", "max_heap_include_binaries: true"),
        ("+hmqd off_heap", "message_queue_data: OffHeap"),
        ("+S 1", "count_given: true"),
        ("+sss 64", " stack_kwords: 64"),
        ("+sssdcpu 64", "dirty_cpu_stack_kwords: 64"),
        ("+sssdio 64", "dirty_io_stack_kwords: 64"),
        ("+sbt tnnps", "bind_type: ThreadNoNodeProcessorSpread"),
        ("+stbt u +stbt db", "bind_type: Default"),
        ("+sbwt very_long", " busy_wait: VeryLong"),
        ("+sbwtdcpu none", "dirty_cpu_busy_wait: None"),
        ("+sbwtdio very_short", "dirty_io_busy_wait: VeryShort"),
        ("+swt very_high", " wakeup: VeryHigh"),
        ("+swtdcpu low", "dirty_cpu_wakeup: Low"),
        ("+swtdio high", "dirty_io_wakeup: High"),
        ("+swct very_eager", "wake_cleanup: VeryEager"),
        ("+sws legacy", "wakeup_strategy: Legacy"),
        ("+scl false", "compact_load: false"),
        ("+sub true", "balance_utilization: true"),
        ("+sfwi 500", "forced_wakeup_ms: 500"),
        ("+sct L0c0", "cpu_topology: Some([CpuTopologyEntry"),
        ("+ssrct", "skip_cpu_topology: true"),
        ("+rg 8", "reader_groups: 8"),
        ("+dcg8", "decentralized_counter_groups: 8"),
        ("+IOt 4 +IOp 2", "threads: 4, sets: 2"),
        ("+IOs false", "scheduler_polling: false"),
        ("+zdntgc infinity", "node_table_gc_seconds: None"),
        ("+zdntgc 5", "node_table_gc_seconds: Some(5)"),
        ("+zosrl 77", "outstanding_requests_limit: 77"),
        ("+JPperf map", "perf_dump: false, perf_map: true"),
        ("+JDdump true", "asm_dump: true"),
        ("+d", "only_core: true"),
        ("+B", "break_mode: Disabled"),
        ("+Bi", "break_mode: Ignore"),
        ("+B c", "break_mode: Interrupt"),
        ("+pc unicode", "printable_chars: Unicode"),
        ("+fnue", "filename_encoding: Utf8, filename_warning: Error"),
        ("+fnl", "filename_encoding: Latin1"),
        ("+W e", "warnings: Error"),
        ("+L", "no_line_info: true"),
        ("+n s", "port_signals: Synchronous"),
        (
            "+MBas bf",
            "allocator: [AllocSetting { name: \"MBas\", value: \"bf\" }]",
        ),
        ("+Fregion 4096", "region_words: Some(4096)"),
        ("+Fleave 0", "leave_words: Some(0)"),
        ("+Fmerge 512", "write_merge_bytes: Some(512)"),
        ("+Frefc 128", "refc_binary_bytes: Some(128)"),
        ("+Fiov 16", "iovec_entries: Some(16)"),
        ("+Fcompact 0", "idle_compaction_ms: Some(0)"),
        (
            "+Fmetrics 127.0.0.1:9568",
            "metrics: Some(Tcp(127.0.0.1:9568))",
        ),
        ("+Fmetrics [::1]:0", "metrics: Some(Tcp([::1]:0))"),
        (
            "+Frecord quiet,16",
            "record: RecordFlag { off: false, quiet: true, terms: false, mib: Some(16), folder: None }",
        ),
        (
            "+Frecord off +Frecord terms,/run/r",
            "record: RecordFlag { off: true, quiet: false, terms: true, mib: None, folder: Some(\"/run/r\") }",
        ),
        (
            "+Fotlp http://[::1]:4318/otlp/,5s,metrics",
            "otlp: Some(OtlpFlag { to: HttpUrl { host: \"::1\", port: 4318, path: \"/otlp\" }, \
             every: 5, metrics: true, profiles: false })",
        ),
        (
            "+Fotlp http://collector",
            "otlp: Some(OtlpFlag { to: HttpUrl { host: \"collector\", port: 80, path: \"\" }, \
             every: 10, metrics: true, profiles: true })",
        ),
        ("+Fmetrics /run/m", "metrics: Some(Unix(\"/run/m\"))"),
        ("-env ERL_CRASH_DUMP /dump", "file: Some(\"/dump\")"),
        ("-env ERL_CRASH_DUMP_SECONDS -1", "seconds: Some(-1)"),
        ("-env ERL_CRASH_DUMP_BYTES 10", "bytes: Some(10)"),
        ("-env ERL_MAX_PORTS 9000", "ports: 9000, ports_given: true"),
        ("-env ERL_MAX_ETS_TABLES 10", "requested_tables: 10"),
    ] {
        assert!(!plain.contains(field), "{field} is the default");
        let set = flags(line);
        assert!(set.contains(field), "{line} {field}: {set}");
    }
    let later = OtpInstall {
        release: 28,
        ..otp.clone()
    };
    for (line, field) in [
        ("+pad true", "async_dist: true"),
        ("+zhft 100", "halt_flush_timeout_ms: Some(100)"),
        ("+D", "enabled: true"),
        ("+Dibpl false", "line_breakpoints: false"),
        ("+JPcover true", "coverage: LineCounters"),
        ("+JPcover function", "coverage: Function"),
        ("+JPperf fp", "perf_frame_pointers: true"),
        ("+JPperfdirectory /x", "perf_directory: Some(\"/x\")"),
        ("+JMsingle true", "single_map: true"),
    ] {
        let set = format!("{:?}", started(line, &[], &later).flags);
        assert!(set.contains(field), "{line} {field}: {set}");
    }
    let options = started("+i prim -detached -sname x -emu_args a -extra b", &[], &otp);
    assert_eq!(options.boot_module, "prim");
    assert!(options.detached && options.announce);
    let epmd = options.start_epmd.expect("is distributed");
    assert!(
        epmd.to_string_lossy().ends_with("/epmd\" -daemon"),
        "{epmd:?}"
    );
    let first = options.init_args.first().expect("has arguments");
    assert_eq!(first, "-root");
    let tail: Vec<_> = options
        .init_args
        .iter()
        .skip_while(|arg| *arg != "-sname")
        .collect();
    assert_eq!(tail, ["-sname", "x", "a", "-extra", "b"]);
}
