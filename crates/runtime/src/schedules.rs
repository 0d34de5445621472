//! The start of an emulator whose schedules are explored, as `purlin schedules` and `purlin replay`
//! ask for it.

use crate::options::EmulatorOptions;
use purlin_explore::Search;
pub use purlin_explore::cluster;
use purlin_explore::deviation::Deviation;
use purlin_explore::failing::Call;
use purlin_explore::file::Replay;
pub use purlin_explore::file::{Recorded, Unreadable, read};
pub use purlin_explore::fresh_dir;
use purlin_explore::numbers::Numbers;
pub use purlin_explore::processes::introduced;
pub use purlin_explore::report::write_private;
pub use purlin_explore::story::rendered;
use purlin_explore::strategy::Name;
use purlin_explore::sweep::{Span, Sweep};
use purlin_kernel::explore::{self, stack};
use purlin_kernel::os::world;
pub use purlin_kernel::os::world::VARIABLE as WORLD;
use purlin_kernel::os::world::messages::Welcome;
use purlin_messages as messages;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The environment variable with the request: lines of a key and a value. Programs do not see it.
pub const VARIABLE: &str = "PURLIN_SCHEDULES";

/// Whether a variable of the environment is for the runtime alone.
pub(crate) fn takes(variable: &(OsString, OsString)) -> bool {
    [VARIABLE, world::VARIABLE, world::WORD]
        .iter()
        .any(|name| variable.0 == *name)
}

/// Nanoseconds in a day.
const DAY: i64 = 86_400_000_000_000;

/// Returns the wall clock at the start of all runs, in nanoseconds since 1970: the start of the
/// day, and less than a second drawn from the seed. So programs that take numbers from the clock
/// get the same ones for the same seed.
fn start_time(now: i64, seed: u64) -> i64 {
    now - now % DAY + (Numbers(seed).draw() % 1_000_000_000) as i64
}

/// Returns the effective user of this process, to which fresh folders must belong.
pub fn user() -> u32 {
    // SAFETY: a plain call.
    unsafe { libc::geteuid() }
}

enum Asked {
    Search(Search),
    Replay(Replay),
    /// To run as a node of a world.
    Join,
}

/// A request to search or to replay.
pub(crate) struct Request {
    asked: Asked,
    started: i64,
    libraries: Vec<PathBuf>,
}

/// Whether there is a strategy of that name.
pub fn is_strategy(word: &str) -> bool {
    Name::parse(word).is_some()
}

/// Returns the names of the system calls that can be made to fail, if that text is no list of some.
pub fn no_calls(text: &str) -> Option<String> {
    Call::list(text).is_none().then(Call::names)
}

/// Whether calls can fail for a span of that name.
pub fn is_span(word: &str) -> bool {
    Span::named(word).is_some()
}

/// Reads exit statuses, separated by commas, or `any`.
pub fn statuses(text: &str) -> Option<Vec<i32>> {
    if text == "any" {
        return Some((0..=255).collect());
    }
    let status = |w: &str| w.parse::<u8>().ok().map(i32::from);
    text.split(',').map(status).collect()
}

/// Reads `Module:Function/Arity`.
pub fn function(text: &str) -> Option<(String, String, u32)> {
    let (name, arity) = text.rsplit_once('/')?;
    let (module, function) = name.rsplit_once(':')?;
    let arity = arity.parse().ok().filter(|n| *n < 256)?;
    let named = !module.is_empty() && !function.is_empty();
    named.then(|| (module.to_owned(), function.to_owned(), arity))
}

/// Tells the command that has started this emulator that it has begun, by the descriptor of that
/// number.
fn say_begun(descriptor: &str) {
    let own = descriptor.bytes().all(|b| b.is_ascii_digit());
    let file = std::fs::OpenOptions::new()
        .append(true)
        .open(format!("/proc/self/fd/{descriptor}"));
    if let Ok(mut f) = file
        && own
    {
        // There is nobody else to tell if that fails.
        let _ = f.write_all(b"begun");
    }
}

/// Number of schedules of a search.
const DEFAULT_SCHEDULES: usize = 1000;
/// Longest delay of a process in nanoseconds. A wait of 100 ms is then not over by a delay alone.
const DEFAULT_STALL: i64 = 95_000_000;
/// Number of seeds that are chosen from, so that a seed is short.
const SEEDS: u64 = 100_000;

/// Returns the search that a request without lines asks for. Its seed follows from the time, in
/// nanoseconds.
fn default_search(o: &EmulatorOptions, now: i64) -> Search {
    Search {
        schedules: DEFAULT_SCHEDULES,
        time: None,
        seed: now as u64 / 1000 % SEEDS,
        strategy: Name::Portfolio,
        stall: DEFAULT_STALL,
        jobs: 1,
        to: None,
        json: false,
        strict: false,
        keep_going: false,
        any_delivery: false,
        first: Vec::new(),
        sweep: None,
        from: None,
        command: Vec::new(),
        release: o.otp.release,
        made_by: String::new(),
    }
}

/// Makes this emulator a node of a world.
fn join(o: &EmulatorOptions, joined: Result<Welcome, String>) -> Request {
    let w = joined.unwrap_or_else(|why| {
        purlin_term::say!("{}", messages::WORLD_REFUSES.line(why));
        std::process::exit(71);
    });
    let started = w.started as i64;
    purlin_native::ids::begin_at(w.ids);
    begin_mode(started);
    explore::set_random(w.random);
    purlin_kernel::os::clock::skip_to(w.now as i64);
    Request {
        asked: Asked::Join,
        started,
        libraries: std::iter::once(o.otp.root.join("lib"))
            .chain(w.libraries.lines().map(PathBuf::from))
            .collect(),
    }
}

/// Turns the mode on.
fn begin_mode(started: i64) {
    purlin_term::background_free::at_once();
    // The length of a step of a large collection depends on real time, and later collections on
    // that.
    purlin_term::gc::STEPS_ABOVE_WORDS.store(usize::MAX, Ordering::Relaxed);
    purlin_term::etf::fix_local();
    explore::begin(started);
}

/// Reads the request, and turns the mode on. Called before anything else of the runtime. None:
/// there is no request.
pub(crate) fn begin(o: &EmulatorOptions) -> Option<Request> {
    if let Some(joined) = world::join() {
        return Some(join(o, joined));
    }
    let text = std::env::var(VARIABLE).ok()?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as i64);
    let mut search = default_search(o, now);
    let mut replay = None;
    let mut recorded = None;
    let (mut narrates, mut live) = (false, false);
    let mut fails = (None, Span::Both, Vec::new());
    let (mut copied, mut fresh) = (None, None);
    let mut libraries = vec![o.otp.root.join("lib")];
    for line in text.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "schedules" => search.schedules = value.parse().unwrap_or(search.schedules),
            "milliseconds" => search.time = value.parse().ok().map(Duration::from_millis),
            "seed" => search.seed = value.parse().unwrap_or(search.seed),
            "strategy" => search.strategy = Name::parse(value).unwrap_or(search.strategy),
            "stall" => search.stall = value.parse().unwrap_or(95) * 1_000_000,
            "jobs" => search.jobs = value.parse().unwrap_or(1),
            "to" => search.to = Some(PathBuf::from(value)),
            "json" => search.json = true,
            "strict" => search.strict = true,
            "keep-going" => search.keep_going = true,
            "delivery" => search.any_delivery = value == "any",
            "from" => search.from = function(value),
            "fail-nth" => fails.0 = Call::list(value),
            "fail-for" => fails.1 = Span::named(value).unwrap_or(fails.1),
            "expect" => fails.2 = statuses(value).unwrap_or_default(),
            "first" => search.first.extend(Deviation::parse(value)),
            "made-by" => search.made_by = value.to_owned(),
            "argument" => search.command.push(value.to_owned()),
            "library" => libraries.push(PathBuf::from(value)),
            "begun" => say_begun(value),
            "steps" => narrates = true,
            "live" => live = true,
            "copied" => copied = Some(PathBuf::from(value)),
            "folder" => fresh = Some(PathBuf::from(value)),
            "replay" => {
                let text = std::fs::read_to_string(value);
                let text = text.map_err(|_| Unreadable::NoReplayFile);
                match text.and_then(|t| read(&t)) {
                    Ok(r) => {
                        recorded = Some(r.started);
                        replay = Some(r.replay);
                    }
                    Err(why) => {
                        let text = format!("{value}: {why}");
                        purlin_term::say!("{}", messages::NO_REPLAY_FILE.line(text));
                        std::process::exit(66);
                    }
                }
            }
            _ => {}
        }
    }
    search.sweep = fails.0.map(|calls| Sweep {
        calls,
        span: fails.1,
        expected: fails.2,
    });
    if let (Some(from), Some(at)) = (copied, fresh)
        && let Err(e) = fresh_dir::begin(from, at, user())
    {
        let text = format!("schedules: {e}");
        purlin_term::say!("{}", messages::FRESH_FOLDER_LOST.line(text));
        std::process::exit(71);
    }
    let started = recorded.unwrap_or_else(|| start_time(now, search.seed));
    begin_mode(started);
    let asked = match replay {
        Some(r) => Asked::Replay(Replay {
            narrates,
            outside: r.outside.filter(|_| !live),
            // The output may depend on what comes from outside now.
            output: if live { Vec::new() } else { r.output },
            variables: if live { Vec::new() } else { r.variables },
            ..r
        }),
        None => Asked::Search(search),
    };
    Some(Request {
        asked,
        started,
        libraries,
    })
}

/// Searches or replays. Returns in a run of the program.
pub(crate) fn go(r: Request) {
    debug_assert!(purlin_kernel::os::exploring::started() == r.started);
    stack::set_libraries(&r.libraries);
    // Sharing would depend on addresses, and copying costs reductions, which are virtual time.
    purlin_kernel::signal::share::set_threshold(usize::MAX);
    match r.asked {
        Asked::Search(s) => explore::search(&s),
        Asked::Replay(p) => explore::replay(p),
        Asked::Join => {}
    }
}
