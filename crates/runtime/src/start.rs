//! Start of the emulator: tables, threads, preloaded modules, the first processes.
//!
//! The order matters: the release and the flags come first, then tables and natives, the preloaded
//! modules, and the processes that boot the system. Threads start last, so until then this thread
//! may use everything without locks.

use crate::diagnostics::{self, Diagnostics};
use crate::interp::{Exploring, Interpreter};
use crate::lifecycle::spawn::{self, Options};
use crate::options::{self, AtomCollection, EmulatorOptions, MessageQueueData};
use crate::outside::World;
use crate::process::ext::{MaxHeap, Settings};
use crate::process::state::Priority;
use crate::{clock, code, filename, natives, osenv, process, signal, threads, timer};
use purlin_io::gather;
use purlin_messages as messages;
use purlin_term::frag::Fragment;
use purlin_term::release::{self, MAY_LACK, PRELOADED};
use purlin_term::sync::Ordering;
use purlin_term::{Alloc, NIL, Term, atom, gc};
use std::os::unix::ffi::OsStrExt;

fn fatal(text: std::fmt::Arguments) -> ! {
    purlin_term::say::refused(text)
}

/// A file of the installation, which may be embedded in the executable.
fn read(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    match purlin_io::embedded::read(path.as_os_str().as_bytes()) {
        Some(Ok(bytes)) => Ok(bytes.to_vec()),
        Some(Err(errno)) => Err(std::io::Error::from_raw_os_error(errno)),
        None => std::fs::read(path),
    }
}

fn preload(o: &EmulatorOptions) {
    let dir = o.otp.preloaded_dir();
    let mut names = Vec::new();
    for &(with, m) in PRELOADED {
        if !release::has(with) {
            continue;
        }
        let path = dir.join(format!("{m}.beam"));
        let bytes = match read(&path) {
            Ok(b) => b,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && MAY_LACK.contains(&m) => continue,
            Err(e) => fatal(format_args!("cannot read {}: {e}", path.display())),
        };
        match code::load_preloaded(&bytes) {
            Ok(_) => names.push(atom::intern(m)),
            Err(e) => fatal(format_args!("cannot load {}: {e}", path.display())),
        }
    }
    // Nothing else has created this atom yet.
    if atom::existing("argument_list_decode_failure").is_some() {
        purlin_dist::input::end_arguments();
    }
    let _ = natives::code::loading::PRELOADED.set(names);
}

fn defaults(o: &EmulatorOptions) {
    let h = &o.flags.heap;
    let d = &process::DEFAULTS;
    // The documented default stands for as much as a process needs.
    let least = if h.min_heap_words == 233 {
        0
    } else {
        gc::heap_size_for(h.min_heap_words as usize) as u32
    };
    d.min_heap_words.store(least, Ordering::Relaxed);
    d.min_vheap_words.store(
        gc::heap_size_for(h.min_bin_vheap_words as usize),
        Ordering::Relaxed,
    );
    d.fullsweep_after
        .store(u32::from(h.fullsweep_after), Ordering::Relaxed);
    process::OFF_HEAP_DEFAULT.store(
        h.message_queue_data == MessageQueueData::OffHeap,
        std::sync::atomic::Ordering::Relaxed,
    );
    let words = o.flags.purlin.region_words.map(|n| n as usize);
    signal::share::set_threshold(words.unwrap_or(signal::share::DEFAULT_THRESHOLD));
    signal::receive::init();
    if let Some(n) = o.flags.purlin.refc_binary_bytes {
        purlin_term::layout::set_heap_bin_limit(n as usize);
    }
    if let Some(n) = o.flags.purlin.leave_words {
        purlin_term::gc::LEAVE_AT_MOST_WORDS
            .store(n as usize, std::sync::atomic::Ordering::Relaxed);
    }
    if let Some(n) = o.flags.purlin.write_merge_bytes {
        gather::set_small_limit(n as usize);
    }
    if let Some(n) = o.flags.purlin.iovec_entries {
        gather::set_max_parts(n as usize);
    }
    process::set_default_max_heap(MaxHeap {
        words: h.max_heap_words as usize,
        kill: h.max_heap_kill,
        error_logger: h.max_heap_log,
        include_shared_binaries: h.max_heap_include_binaries,
    });
}

fn system(m: &str, priority: Priority) -> Option<Term> {
    let o = Options {
        system: true,
        priority: Some(priority),
        settings: Settings::default(),
        ..Default::default()
    };
    let m = atom::intern(m);
    code::current(m)?;
    // SAFETY: no parent.
    unsafe { spawn::spawn(std::ptr::null_mut(), m, atom::intern("start"), NIL, o) }
        .ok()
        .map(|made| made.0)
}

/// Runs an emulator until it halts, and exits with the program's status.
pub fn start(options: EmulatorOptions, told_by: &'static dyn Diagnostics) -> ! {
    purlin_term::sys::spare_addresses();
    let o = options::start_with(options);
    diagnostics::set(told_by);
    release::settle(o.otp.release);
    code::image::begin(o.otp.release);
    let schedules = crate::schedules::begin(o);
    if let Err(text) = code::perf::start(o) {
        purlin_term::say!(
            "{}",
            messages::NO_PERF_MAP.line(format_args!("+JPperf: {text}"))
        );
    }
    let interpreted = crate::compiled::start(o);
    natives::install();
    connect_crates();
    set_environment(o, told_by);
    prepare_memory();
    told_by.prepare();
    purlin_term::atom::on_full(|line| crate::halt::halt_with_dump(&line));
    purlin_term::region::init();
    purlin_nif::fault::begin();
    purlin_native::ids::settle();
    make_process_table(o);
    defaults(o);
    preload(o);
    make_first_process(o);
    make_system_processes();
    timer::start();
    if !purlin_kernel::os::exploring::on()
        && let Err(e) = purlin_kernel::poll::start()
    {
        fatal(format_args!("cannot wait for descriptors: {e}"));
    }
    told_by.start(o);
    crate::os_signals::init(o.flags.break_mode, || {
        if let Some(d) = diagnostics::diagnostics() {
            d.interrupted();
        }
    });
    crate::port::orphans::start();
    purlin_term::atom::set_limit(o.flags.tables.atoms);
    // All threads of a search are one.
    if schedules.is_none() {
        collect_atoms(o);
    }
    natives::system::budget_natives::begin(&o.flags.purlin.budgets);
    let files = u32::try_from(crate::port::max_files()).unwrap_or(u32::MAX);
    crate::port::set_limit(o.flags.tables.port_limit(files) as usize);
    crate::port::forker::begin(Term::pid(0));
    let s = &o.flags.schedulers;
    purlin_native::bif::count_schedulers(s.total as usize);
    if s.count_given {
        threads::upkeep::count_chosen();
    }
    crate::sched::binding::start();
    if let Some(s) = schedules {
        crate::compiled::report_refusal(interpreted);
        crate::schedules::go(s);
        threads::start::<Exploring>(1, 1, 1);
        unreachable!("one thread runs everything");
    }
    threads::start::<Interpreter>(
        s.online as usize,
        s.dirty_cpu_online as usize,
        s.dirty_io as usize,
    );
    crate::compiled::report_refusal(interpreted);
    loop {
        std::thread::park();
    }
}

/// Turns the collection of dead atoms on, unless that was forbidden. By default all stay where it
/// is impossible.
fn collect_atoms(o: &EmulatorOptions) {
    let start = purlin_term::atom_collection::start;
    let started = match o.flags.purlin.atoms {
        None => return drop(start(None, false)),
        Some(AtomCollection::Keep) => return,
        Some(AtomCollection::Collect) => start(None, true),
        Some(AtomCollection::Stress) => start(Some(STRESSING_ATOMS), true),
    };
    if let Err(why) = started {
        fatal(format_args!("atoms cannot be collected: {why}"));
    }
}

/// New atoms between two cycles in the stress mode.
const STRESSING_ATOMS: u32 = 1000;

/// Gives lower crates the functions of higher ones that they call.
fn connect_crates() {
    purlin_kernel::outside::set_outside(&World);
    purlin_term::etf::aliases::on_many(signal::handle::prune_aliases);
    purlin_dist::input::set_options(natives::process::spawning::wanted_elsewhere);
    purlin_dist::distribution_natives::set_alive(natives::signals::monitors::is_alive);
    crate::events::set_sink(&crate::trace::Tracers);
    crate::code::breakpoint::set_breakpoints(&crate::trace::Tracers);
}

/// Sets the clock, the encoding of file names, and the environment that the program sees.
fn set_environment(o: &EmulatorOptions, told_by: &'static dyn Diagnostics) {
    clock::init();
    filename::configure(o.flags.filename_encoding, o.flags.filename_warning);
    let environment = o.environment.iter();
    let environment =
        environment.filter(|e| !told_by.takes_variable(&e.0) && !crate::schedules::takes(e));
    osenv::init(environment.cloned());
}

/// Prepares for the end of memory, for faults, and for reports of both.
fn prepare_memory() {
    purlin_term::sys::set_out_of_memory(crate::halt::out_of_memory);
    crate::halt::watch_faults();
    purlin_term::fence::init();
    crate::halt::on_end(purlin_term::fence::at_end);
    purlin_term::fence::name_code(|pc| {
        let p = code::find(pc)?;
        let line = p
            .line
            .map_or(String::new(), |(file, line)| format!(" ({file}:{line})"));
        let name = purlin_term::atom::name;
        let (module, function) = (name(p.module), name(p.function));
        Some(format!("{module}:{function}/{}{line}", p.arity))
    });
}

/// Makes the table of processes. It grows on demand; only an explicit setting limits it.
fn make_process_table(o: &EmulatorOptions) {
    let is_set = o.flags.tables.processes != options::default_processes(o.otp.release);
    let reported = o.flags.tables.process_limit() as usize;
    let most = if is_set {
        reported
    } else {
        process::table::MAX_PROCESSES
    };
    process::init_table(most, reported);
}

/// Makes the process that boots the system.
fn make_first_process(o: &EmulatorOptions) {
    let first = atom::intern("erl_init");
    if code::current(first).is_none() {
        fatal(format_args!(
            "no preloaded modules in {}",
            o.otp.preloaded_dir().display()
        ));
    }
    let mut f = Fragment::new();
    let args: Vec<Term> = o.init_args.iter().map(|a| f.binary(a.as_bytes())).collect();
    let args = f.list(&args);
    let module = atom::intern(&o.boot_module);
    let all = f.list(&[module, args]);
    // SAFETY: no parent. The processes are queued, and run once there are schedulers.
    let made = unsafe {
        spawn::spawn(
            std::ptr::null_mut(),
            first,
            atom::intern("start"),
            all,
            Options::default(),
        )
    };
    if made.is_err() {
        fatal(format_args!("cannot make the first process"));
    }
}

/// Makes the processes of the system, and counts them.
fn make_system_processes() {
    system("erts_code_purger", Priority::High);
    if let Some(pid) = system("erts_literal_area_collector", Priority::High) {
        code::literal_areas::set_collector(pid);
    }
    system("erts_trace_cleaner", Priority::High);
    for p in [Priority::Normal, Priority::High, Priority::Max] {
        system("erts_dirty_process_signal_handler", p);
    }
    process::SYSTEM_PROCESSES.store(
        process::table().live() as u32,
        std::sync::atomic::Ordering::Relaxed,
    );
}
