//! Everything the emulator knows before it starts: the command line, the environment and the OTP
//! installation, parsed and checked into typed fields.
//!
//! The path of a command line is the one that OTP documents for `erl`:
//! 1. [`erlexec::parse_erl`] merges `ERL_AFLAGS` and its like and `-args_file`s, splits emulator
//!    flags (`+P 1000`) from the arguments of `init`, and lays out the emulator's argument vector;
//! 2. [`flags::FLAGS`], one row per emulator flag, checks and stores each flag;
//! 3. the result is one [`EmulatorOptions`], which is all that the runtime acts on. The recorder
//!    (`+Frecord`) copies the arguments of the process to its file.
//!
//! Invariants: parsing has no side effects (it reads argument files, and nothing else). Actions in
//! the process (environment, detaching, starting `epmd`) are described by the result, and the
//! caller performs them before the first thread exists. A value outside its documented range never
//! gets into [`EmulatorOptions`].

pub mod alloc;
mod budget_flag;
pub mod cpus;
pub mod erlexec;
pub mod flags;
mod groups;
pub mod memory;
pub mod otp;
pub mod topology;
mod values;

use purlin_isa::release;
use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::OnceLock;

pub use budget_flag::BudgetFlag;
pub use cpus::CpuCounts;
pub use erlexec::{Request, parse_erl};
pub use otp::OtpInstall;
pub use topology::CpuTopologyEntry;

static CURRENT: OnceLock<EmulatorOptions> = OnceLock::new();

/// Sets the options of the emulator. Only the first call has an effect.
pub fn start_with(options: EmulatorOptions) -> &'static EmulatorOptions {
    CURRENT.get_or_init(|| options)
}

/// Returns the options with which the emulator was started.
///
/// # Panics
/// If no emulator was started.
pub fn current() -> &'static EmulatorOptions {
    match CURRENT.get() {
        Some(o) => o,
        None => unreachable!("no emulator was started"),
    }
}

/// As [`current`]; `None` if no emulator was started.
pub fn try_current() -> Option<&'static EmulatorOptions> {
    CURRENT.get()
}

/// Whether the interpreter can show `perf` which function runs.
pub const PERF_MARKS: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

/// Everything that is settled before the first process runs.
#[derive(Clone, Debug)]
pub struct EmulatorOptions {
    /// The OTP installation whose libraries and boot files are used.
    pub otp: OtpInstall,
    /// Value of `init:get_argument(root)`.
    pub root: OsString,
    /// Value of `init:get_argument(bindir)`: the directory of `erl_child_setup`, `epmd`, `heart`.
    pub bindir: OsString,
    /// Value of `init:get_argument(progname)`.
    pub progname: OsString,
    /// Value of `init:get_argument(home)`; absent if `HOME` is not set.
    pub home: Option<OsString>,
    /// The emulator's whole argument vector, `argv[0]` included: `erlang:system_info(emu_args)`.
    pub emu_args: Vec<OsString>,
    /// The arguments that the boot module gets (`-root R -bindir B -progname P -- -home H -- …`),
    /// one binary each.
    pub init_args: Vec<OsString>,
    /// The module in which the first process starts (`+i`); `init` by default.
    pub boot_module: String,
    /// The process environment that Erlang code sees (`os:getenv/0`), in full.
    pub environment: Vec<(OsString, OsString)>,
    /// `-detached`: leave the terminal before the start.
    pub detached: bool,
    /// Shell command that starts the port mapper, to run before the emulator starts.
    pub start_epmd: Option<OsString>,
    /// `-emu_args`: print the vector before the start.
    pub announce: bool,
    /// The emulator's own flags.
    pub flags: EmulatorFlags,
}

/// Emulator flags (`+X`), each with the default that stock documents.
#[derive(Clone, Debug)]
pub struct EmulatorFlags {
    pub tables: TableFlags,
    pub heap: HeapFlags,
    pub schedulers: SchedulerFlags,
    pub poll: PollFlags,
    pub time: TimeFlags,
    pub ets: EtsFlags,
    pub dist: DistFlags,
    pub jit: JitFlags,
    pub debugger: DebuggerFlags,
    pub crash_dump: CrashDumpFlags,
    pub purlin: PurlinFlags,
    /// `+B`: the effect of Ctrl-C.
    pub break_mode: BreakMode,
    /// `+pc`: the characters that `io_lib` treats as printable.
    pub printable_chars: PrintableChars,
    /// `+fn`: the encoding of file names.
    pub filename_encoding: FilenameEncoding,
    /// `+fn…{w,i,e}`: the reaction to a wrongly encoded file name.
    pub filename_warning: FilenameWarning,
    /// `+W`: the level to which warnings of the logger are mapped.
    pub warnings: WarningMap,
    /// `+zhft`: how long a halt waits for output; `None` for as long as it takes.
    pub halt_flush_timeout_ms: Option<u32>,
    /// `+L`: do not load line information.
    pub no_line_info: bool,
    /// `+R`: the release to be compatible with; the installed one by default.
    pub compat_release: u32,
    /// `+n`: how signals to ports are delivered.
    pub port_signals: PortSignals,
    /// `+M…`: allocator settings as given, in order, checked. Those of the C library (`MYtt`,
    /// `MYtp`) are passed on to it; others have no effect.
    pub allocator: Vec<alloc::AllocSetting>,
    /// `+Mlimit`.
    pub memory_limit: memory::MemoryLimit,
}

/// Sizes of the tables that stock fixes at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFlags {
    /// `+P`: as given; stock rounds it up to a power of two unless the table is `legacy`.
    pub processes: u32,
    /// `+P legacy`.
    pub legacy_process_table: bool,
    /// `+Q` or `ERL_MAX_PORTS`: as given, rounded by stock like `+P`.
    pub ports: u32,
    /// Whether `ports` was given; if not, stock takes the limit of open files into account.
    pub ports_given: bool,
    /// `+Q legacy`.
    pub legacy_port_table: bool,
    /// `+t`: atoms.
    pub atoms: u32,
}

impl TableFlags {
    /// Returns the value of `erlang:system_info(process_limit)`.
    pub fn process_limit(&self) -> u32 {
        rounded_table(self.processes, self.legacy_process_table)
    }

    /// Returns the value of `erlang:system_info(port_limit)` if `max_files` descriptors may be
    /// open.
    pub fn port_limit(&self, max_files: u32) -> u32 {
        let ports = if self.ports_given {
            self.ports
        } else {
            self.ports.max(max_files.min(MAX_PORTS))
        };
        rounded_table(ports, self.legacy_port_table)
    }
}

/// Process and port tables have power-of-two sizes, up to 2^27 entries, unless they are `legacy`.
fn rounded_table(entries: u32, legacy: bool) -> u32 {
    if legacy {
        entries
    } else {
        entries.next_power_of_two().min((1 << 27) - 1)
    }
}

/// Range of `+P`.
pub(crate) const MIN_PROCESSES: u32 = 1024;
pub const MAX_PROCESSES: u32 = (1 << 27) - 1;
/// Range of `+Q`.
pub(crate) const MIN_PORTS: u32 = 1024;
pub(crate) const MAX_PORTS: u32 = (1 << 27) - 1;
/// Range of `+t`.
pub(crate) const MIN_ATOMS: u32 = 8192;
pub(crate) const MAX_ATOMS: u32 = i32::MAX as u32;
/// Maximum number of schedulers of each kind, and of poll threads.
pub const MAX_SCHEDULERS: u32 = 1024;
/// Range of `+a` and of the scheduler stacks (`+sss…`), in kilowords.
pub(crate) const ASYNC_STACK_KWORDS: std::ops::RangeInclusive<u32> = 16..=8192;
pub(crate) const SCHEDULER_STACK_KWORDS: std::ops::RangeInclusive<u32> = 20..=8192;
/// Maximum delay of `+zdntgc`, in seconds.
pub(crate) const MAX_NODE_TABLE_GC_SECONDS: u32 = 100_000_000;

/// Defaults for the heaps of new processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapFlags {
    /// `+hms`: words. Rounded up to the series of heap sizes at each use and in reports.
    pub min_heap_words: u32,
    /// `+hmbs`: words of the virtual binary heap, rounded likewise.
    pub min_bin_vheap_words: u32,
    /// `+hpds`: initial size of a process dictionary, a power of two.
    pub dictionary_size: u32,
    /// `+hmax`: words, 0 for no limit.
    pub max_heap_words: u64,
    /// `+hmaxk`: kill a process that grows beyond its limit.
    pub max_heap_kill: bool,
    /// `+hmaxel`: log it.
    pub max_heap_log: bool,
    /// `+hmaxib`: count binaries shared with others towards the limit.
    pub max_heap_include_binaries: bool,
    /// `+hmqd`.
    pub message_queue_data: MessageQueueData,
    /// `ERL_FULLSWEEP_AFTER`: minor collections before a full sweep.
    pub fullsweep_after: u16,
}

/// Threads and their scheduling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerFlags {
    /// The limits of the machine and the container; the base of the defaults and percentages below.
    pub cpus: CpuCounts,
    /// `+S`, `+SP`: schedulers, and how many of them are online at the start.
    pub total: u32,
    pub online: u32,
    /// Whether `+S` or `+SP` was given, so that a change of the processor quota is ignored.
    pub count_given: bool,
    /// `+SDcpu`, `+SDPcpu`.
    pub dirty_cpu: u32,
    pub dirty_cpu_online: u32,
    /// `+SDio`.
    pub dirty_io: u32,
    /// `+A` or `ERL_THREAD_POOL_SIZE`: at least 1.
    pub async_threads: u32,
    /// `+a`: kilowords.
    pub async_stack_kwords: u32,
    /// `+sss`, `+sssdcpu`, `+sssdio`: kilowords.
    pub stack_kwords: u32,
    pub dirty_cpu_stack_kwords: u32,
    pub dirty_io_stack_kwords: u32,
    /// `+sbt`, `+stbt`.
    pub bind_type: BindType,
    /// `+sbwt`, `+sbwtdcpu`, `+sbwtdio`.
    pub busy_wait: BusyWait,
    pub dirty_cpu_busy_wait: BusyWait,
    pub dirty_io_busy_wait: BusyWait,
    /// `+swt`, `+swtdcpu`, `+swtdio`.
    pub wakeup: WakeupThreshold,
    pub dirty_cpu_wakeup: WakeupThreshold,
    pub dirty_io_wakeup: WakeupThreshold,
    /// `+swct`.
    pub wake_cleanup: WakeCleanup,
    /// `+sws`.
    pub wakeup_strategy: WakeupStrategy,
    /// `+scl`.
    pub compact_load: bool,
    /// `+sub`.
    pub balance_utilization: bool,
    /// `+sfwi`: milliseconds, 0 for off.
    pub forced_wakeup_ms: u64,
    /// `+spp`.
    pub port_parallelism: bool,
    /// `+sct`: the topology that the user describes.
    pub cpu_topology: Option<Vec<CpuTopologyEntry>>,
    /// `+ssrct`, implied by `+sct`.
    pub skip_cpu_topology: bool,
    /// `+T`.
    pub modified_timing: Option<u8>,
    /// `+rg`.
    pub reader_groups: u32,
    /// `+dcg`.
    pub decentralized_counter_groups: u32,
}

/// Polling of descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollFlags {
    /// `+IOt`, `+IOPt`.
    pub threads: u32,
    /// `+IOp`, `+IOPp`.
    pub sets: u32,
    /// `+IOs`.
    pub scheduler_polling: bool,
}

/// Clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeFlags {
    /// `+c`.
    pub correction: bool,
    /// `+C`.
    pub warp: TimeWarp,
}

/// Tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtsFlags {
    /// `+e` or `ERL_MAX_ETS_TABLES`: as given, 0 if not.
    pub requested_tables: u32,
    /// `+ec`.
    pub always_compress: bool,
    /// `+r`.
    pub realloc_moves: bool,
    /// `+zebwt`.
    pub busy_wait: EtsBusyWait,
}

/// Distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistFlags {
    /// `+zdbbl`: bytes.
    pub buffer_busy_limit_bytes: u32,
    /// `+zdntgc`: seconds, `None` for never.
    pub node_table_gc_seconds: Option<u32>,
    /// `+zosrl`.
    pub outstanding_requests_limit: u32,
    /// `+pad`.
    pub async_dist: bool,
}

/// Machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitFlags {
    /// `+JDdump`.
    pub asm_dump: bool,
    /// `+JPperf`: write a `perf` dump of machine code; write a `perf` map; keep frame pointers,
    /// which has no effect here.
    pub perf_dump: bool,
    pub perf_map: bool,
    pub perf_frame_pointers: bool,
    /// `+JPperfdirectory`: the directory of those files; `/tmp` by default.
    pub perf_directory: Option<String>,
    /// `+JPcover`.
    pub coverage: Coverage,
    /// `+JMsingle`.
    pub single_map: bool,
}

impl Default for JitFlags {
    fn default() -> JitFlags {
        JitFlags {
            asm_dump: false,
            perf_dump: false,
            perf_map: false,
            perf_frame_pointers: false,
            perf_directory: None,
            coverage: Coverage::None,
            single_map: false,
        }
    }
}

/// Support for debuggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebuggerFlags {
    /// `+D`.
    pub enabled: bool,
    /// `+Dibpl`.
    pub line_breakpoints: bool,
}

impl Default for DebuggerFlags {
    fn default() -> DebuggerFlags {
        DebuggerFlags {
            enabled: false,
            line_breakpoints: true,
        }
    }
}

/// When and where `erl_crash.dump` is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashDumpFlags {
    /// `+d`: write only a core dump for internal errors of the runtime.
    pub only_core: bool,
    /// `ERL_CRASH_DUMP`: the file; `erl_crash.dump` by default.
    pub file: Option<OsString>,
    /// `ERL_CRASH_DUMP_SECONDS`: maximum time for writing. Negative: unlimited. 0: no dump. Absent:
    /// unlimited, but no dump under `heart`.
    pub seconds: Option<i64>,
    /// `ERL_CRASH_DUMP_BYTES`: size limit. Negative: none. 0: no dump.
    pub bytes: Option<i64>,
    /// `ERL_CRASH_DUMP_NICE`: niceness while writing.
    pub nice: Option<i32>,
}

/// A place where metrics are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsPlace {
    /// An address and port of this machine.
    Tcp(SocketAddr),
    /// A Unix socket, by its absolute path.
    Unix(PathBuf),
}

impl MetricsPlace {
    /// Returns the place for a value of `+Fmetrics`: `127.0.0.1:9568`, `[::1]:9568`, or an absolute
    /// path. A port without an address is none, so that no node serves other machines by mistake.
    pub fn from_word(word: &str) -> Option<Self> {
        if word.starts_with('/') {
            return Some(Self::Unix(word.into()));
        }
        word.parse().ok().map(Self::Tcp)
    }

    /// Whether only this machine can connect.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(a) => a.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for MetricsPlace {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Tcp(a) => a.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Settings of the record of the last minute (`+Frecord`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFlag {
    /// Nothing is recorded.
    pub off: bool,
    /// The start does not report that the last run ended without a halt.
    pub quiet: bool,
    /// Exit reasons are recorded as they are.
    pub terms: bool,
    /// Size of the file in MiB.
    pub mib: Option<u32>,
    /// The folder of the file, by its absolute path.
    pub folder: Option<PathBuf>,
}

impl RecordFlag {
    /// Maximum size in MiB.
    pub const MOST_MIB: u32 = 128;

    /// Adds the words of a value: `off`, `quiet`, `terms`, a size in MiB or an absolute path,
    /// separated by commas. Returns false, and changes nothing, if one of them is none of these.
    pub fn add(&mut self, words: &str) -> bool {
        let mut all = self.clone();
        for word in words.split(',') {
            match (word, word.parse()) {
                ("off", _) => all.off = true,
                ("quiet", _) => all.quiet = true,
                ("terms", _) => all.terms = true,
                (_, Ok(mib)) if (1..=Self::MOST_MIB).contains(&mib) => all.mib = Some(mib),
                (path, Err(_)) if path.starts_with('/') => all.folder = Some(path.into()),
                _ => return false,
            }
        }
        *self = all;
        true
    }
}

/// A server that is reached by HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl {
    /// A name, or an address without brackets.
    pub host: String,
    pub port: u16,
    /// Prefix of the paths of requests: empty, or `/…` without a slash at its end.
    pub path: String,
}

impl HttpUrl {
    /// Returns the server for `http://HOST[:PORT][/PATH]`. The error is the rest of a sentence.
    pub fn from_word(word: &str) -> Result<Self, &'static str> {
        const FORM: &str = "http://HOST:PORT is expected";
        if word
            .get(..8)
            .is_some_and(|w| w.eq_ignore_ascii_case("https://"))
        {
            return Err("notsup: no https; a collector on this machine can pass it on");
        }
        let rest = word.strip_prefix("http://").ok_or(FORM)?;
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let ok = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}#?@".contains(c);
        if !rest.chars().all(ok) {
            return Err(FORM);
        }
        let (host, port) = match place.strip_prefix('[') {
            Some(inner) => {
                let (host, port) = inner.split_once(']').ok_or(FORM)?;
                host.parse::<Ipv6Addr>().map_err(|_| FORM)?;
                match port {
                    "" => (host, None),
                    port => (host, Some(port.strip_prefix(':').ok_or(FORM)?)),
                }
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        if host.is_empty() {
            return Err(FORM);
        }
        let port = match port {
            None => 80,
            Some(port) => port.parse().ok().filter(|p| *p > 0).ok_or(FORM)?,
        };
        Ok(HttpUrl {
            host: host.to_string(),
            port,
            path: path.trim_end_matches('/').to_string(),
        })
    }

    /// Host and port, as a request names them.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Whether the host is this machine, as far as its name says so.
    pub fn is_local(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|a| a.to_canonical().is_loopback())
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

/// A collector that metrics and profiles are sent to (`+Fotlp`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpFlag {
    pub to: HttpUrl,
    /// Seconds between two times that something is sent.
    pub every: u32,
    pub metrics: bool,
    pub profiles: bool,
}

impl OtlpFlag {
    /// Seconds between two times, unless others are given; and the maximum.
    pub const EVERY: u32 = 10;
    pub const MOST_SECONDS: u32 = 3600;

    /// Returns the setting for a value: a URL, and any of `metrics`, `profiles` and a time like
    /// `10s`, separated by commas. The error is the rest of a sentence.
    pub fn from_words(words: &str) -> Result<Self, &'static str> {
        let mut words = words.split(',');
        let mut flag = OtlpFlag {
            to: HttpUrl::from_word(words.next().unwrap_or_default())?,
            every: Self::EVERY,
            metrics: true,
            profiles: true,
        };
        let mut named = (false, false);
        for word in words {
            match word {
                "metrics" => named.0 = true,
                "profiles" => named.1 = true,
                time => {
                    let seconds = time.strip_suffix('s').and_then(|n| n.parse().ok());
                    let fits = seconds.filter(|n| (1..=Self::MOST_SECONDS).contains(n));
                    flag.every = fits.ok_or("metrics, profiles or 1s to 3600s is expected")?;
                }
            }
        }
        if named != (false, false) {
            (flag.metrics, flag.profiles) = named;
        }
        Ok(flag)
    }
}

/// Purlin's own settings (`+F…`); `None` means the runtime's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurlinFlags {
    /// `+Fbudget`: budgets of applications and registered processes.
    pub budgets: Vec<BudgetFlag>,
    /// `+Fatoms`: whether dead atoms are collected; by default they are, where that is possible.
    pub atoms: Option<AtomCollection>,
    /// `+Fregion`: a term of at least this many words is shared in a region when sent; 0 for never.
    pub region_words: Option<u64>,
    /// `+Fleave`: maximum number of words that a full sweep copies out of a region to release it; 0
    /// for never.
    pub leave_words: Option<u64>,
    /// `+Fmerge`: neighbours in an I/O list of fewer bytes than this are merged before writing.
    pub write_merge_bytes: Option<u32>,
    /// `+Frefc`: binaries over this many bytes live off-heap.
    pub refc_binary_bytes: Option<u32>,
    /// `+Fiov`: maximum number of elements of one gathering write.
    pub iovec_entries: Option<u32>,
    /// `+Fcompact`: milliseconds that a process waits before its heap is compacted; 0 for never.
    pub idle_compaction_ms: Option<u64>,
    /// `+Fexplain false`: no accounts are kept, and `purlin explain` gets no answer.
    pub no_explain: bool,
    /// `+Fmetrics`: where metrics are served.
    pub metrics: Option<MetricsPlace>,
    /// `+Fotlp`: where metrics and profiles are sent.
    pub otlp: Option<OtlpFlag>,
    /// `+Frecord`: the record of the last minute.
    pub record: RecordFlag,
    /// `+Fjit`: which functions get machine code.
    pub machine_code: Option<MachineCode>,
    /// `+Fjitmem`: maximum size of machine code in MiB.
    pub machine_code_mib: Option<u32>,
}

/// Declares an enum whose variants have the spelling of the command line.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Returns the variant for a word of the command line.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }

            /// Returns the spelling on the command line.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words! {
    /// Whether dead atoms are collected.
    AtomCollection {
        /// All atoms are kept.
        Keep = "keep",
        /// They are, in cycles; it is an error if that is impossible.
        Collect = "collect",
        /// They are, with a cycle after every 1,000 new atoms.
        Stress = "stress",
    }
}

words! {
    /// Which functions get machine code.
    MachineCode {
        /// None.
        Off = "off",
        /// Those that are found running.
        Hot = "hot",
        /// All, when they are loaded.
        Always = "always",
    }
}

words! {
    /// Effect of a message beyond the limit of a budget.
    OverMessages {
        /// The sender waits.
        Wait = "wait",
        /// The message is dropped.
        Drop = "drop",
        /// The receiver ends.
        Exit = "exit",
    }
}

words! {
    /// Where messages wait.
    MessageQueueData { OnHeap = "on_heap", OffHeap = "off_heap" }
}
words! {
    /// How schedulers are bound to processors.
    BindType {
        Unbound = "u", NoSpread = "ns", ThreadSpread = "ts", ProcessorSpread = "ps", Spread = "s",
        NoNodeThreadSpread = "nnts", NoNodeProcessorSpread = "nnps",
        ThreadNoNodeProcessorSpread = "tnnps",
        /// Reported as `thread_no_node_processor_spread`.
        Default = "db",
    }
}
words! {
    /// How long a scheduler spins for work before it sleeps.
    BusyWait {
        None = "none", VeryShort = "very_short", Short = "short", Medium = "medium", Long = "long",
        VeryLong = "very_long",
    }
}
words! {
    /// How long a thread spins for an ETS lock.
    EtsBusyWait {
        None = "none", VeryShort = "very_short", Short = "short", Medium = "medium", Long = "long",
        VeryLong = "very_long", ExtremelyLong = "extremely_long",
    }
}
words! {
    /// How much work must wait before another scheduler is woken.
    WakeupThreshold {
        VeryLow = "very_low", Low = "low", Medium = "medium", High = "high", VeryHigh = "very_high",
    }
}
words! {
    /// How eagerly a scheduler is woken to clean up.
    WakeCleanup {
        VeryLazy = "very_lazy", Lazy = "lazy", Medium = "medium", Eager = "eager",
        VeryEager = "very_eager",
    }
}
words! {
    /// How the need for another scheduler is detected.
    WakeupStrategy { Default = "default", Legacy = "legacy" }
}
words! {
    /// How Erlang time follows system time.
    TimeWarp { No = "no_time_warp", Single = "single_time_warp", Multi = "multi_time_warp" }
}
words! {
    /// Range of characters that count as printable.
    PrintableChars { Latin1 = "latin1", Unicode = "unicode" }
}
words! {
    /// Encoding of file names.
    FilenameEncoding {
        Latin1 = "l", Utf8 = "u",
        /// UTF-8 if the locale says so, otherwise Latin-1.
        Locale = "a",
    }
}
words! {
    /// Reaction to a file name that is not properly encoded.
    FilenameWarning { Warning = "w", Ignore = "i", Error = "e" }
}
words! {
    /// The level at which warnings are logged.
    WarningMap { Info = "i", Warning = "w", Error = "e" }
}
words! {
    /// Delivery of signals to ports.
    PortSignals { Synchronous = "s", Asynchronous = "a", Default = "d" }
}
words! {
    /// The mode of native coverage.
    Coverage {
        None = "none", Function = "function", FunctionCounters = "function_counters",
        Line = "line", LineCounters = "line_counters",
    }
}
words! {
    /// The effect of Ctrl-C.
    BreakMode {
        /// Enters the break handler; the default, which has no flag.
        Handler = "handler",
        /// `+B` and `+Bd`: the signal's default action.
        Disabled = "d",
        /// `+Bc`: interrupts the shell's current command.
        Interrupt = "c",
        /// `+Bi`: nothing.
        Ignore = "i",
    }
}

/// Returns the default of `+P`.
pub fn default_processes(otp_release: u32) -> u32 {
    if release::MILLION_PROCESSES.is_in(otp_release) {
        1 << 20
    } else {
        1 << 18
    }
}

impl EmulatorFlags {
    /// Returns stock's defaults on a machine with these processors, for release `otp_release`.
    pub(crate) fn defaults(cpus: CpuCounts, otp_release: u32) -> EmulatorFlags {
        let (total, online) = (cpus.configured, cpus.usable());
        EmulatorFlags {
            tables: TableFlags {
                processes: default_processes(otp_release),
                legacy_process_table: false,
                ports: 1 << 16,
                ports_given: false,
                legacy_port_table: false,
                atoms: 1 << 20,
            },
            heap: HeapFlags {
                min_heap_words: 233,
                min_bin_vheap_words: 32768,
                dictionary_size: 8,
                max_heap_words: 0,
                max_heap_kill: true,
                max_heap_log: true,
                max_heap_include_binaries: false,
                message_queue_data: MessageQueueData::OnHeap,
                fullsweep_after: u16::MAX,
            },
            schedulers: SchedulerFlags {
                total,
                online,
                count_given: false,
                dirty_cpu: total,
                dirty_cpu_online: online,
                dirty_io: 10,
                async_threads: 1,
                async_stack_kwords: 16,
                stack_kwords: 128,
                dirty_cpu_stack_kwords: 40,
                dirty_io_stack_kwords: 40,
                bind_type: BindType::Unbound,
                busy_wait: BusyWait::Medium,
                dirty_cpu_busy_wait: BusyWait::Short,
                dirty_io_busy_wait: BusyWait::Short,
                wakeup: WakeupThreshold::Medium,
                dirty_cpu_wakeup: WakeupThreshold::Medium,
                dirty_io_wakeup: WakeupThreshold::Medium,
                wake_cleanup: WakeCleanup::Medium,
                wakeup_strategy: WakeupStrategy::Default,
                compact_load: true,
                balance_utilization: false,
                forced_wakeup_ms: 0,
                port_parallelism: false,
                cpu_topology: None,
                skip_cpu_topology: false,
                modified_timing: None,
                reader_groups: 64,
                decentralized_counter_groups: 64,
                cpus,
            },
            poll: PollFlags {
                threads: 1,
                sets: 1,
                scheduler_polling: true,
            },
            time: TimeFlags {
                correction: true,
                warp: if release::MULTI_TIME_WARP.is_in(otp_release) {
                    TimeWarp::Multi
                } else {
                    TimeWarp::No
                },
            },
            ets: EtsFlags {
                requested_tables: 0,
                always_compress: false,
                realloc_moves: false,
                busy_wait: EtsBusyWait::Medium,
            },
            dist: DistFlags {
                buffer_busy_limit_bytes: 1 << 20,
                node_table_gc_seconds: Some(60),
                outstanding_requests_limit: 2 * total,
                async_dist: false,
            },
            jit: JitFlags::default(),
            debugger: DebuggerFlags::default(),
            halt_flush_timeout_ms: None,
            crash_dump: CrashDumpFlags::default(),
            purlin: PurlinFlags::default(),
            break_mode: BreakMode::Handler,
            printable_chars: PrintableChars::Latin1,
            filename_encoding: FilenameEncoding::Locale,
            filename_warning: FilenameWarning::Warning,
            warnings: WarningMap::Warning,
            no_line_info: false,
            compat_release: otp_release,
            port_signals: PortSignals::Default,
            allocator: Vec::new(),
            memory_limit: memory::MemoryLimit::default(),
        }
    }
}

/// A refused command line: the text for standard error, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    /// One or more lines without the last newline, in stock's words if stock has any.
    pub message: String,
    pub exit_code: u8,
}

impl CliError {
    /// Makes an error with exit status 1, which `erl` uses for all of its own.
    pub fn new(message: impl Into<String>) -> CliError {
        CliError {
            message: message.into(),
            exit_code: 1,
        }
    }

    /// Adds the line that says where the accepted flags are listed.
    pub(crate) fn with_usage(mut self) -> CliError {
        self.message
            .push_str("\nUsage: erl [init flags] [+emulator flags] [-extra arguments]");
        self.message.push_str(" (listed by: purlin help erl)");
        self
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}
