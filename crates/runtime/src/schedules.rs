//! The start of an emulator whose schedules are chosen: what `purlin schedules` and `purlin replay` ask for.

use crate::options::EmulatorOptions;
use purlin_kernel::choice::deviation::Numbers;
pub use purlin_kernel::choice::folder;
use purlin_kernel::choice::fork::{self, Replay, Search};
use purlin_kernel::choice::plan::Strategy;
use purlin_kernel::choice::told::deviation;
pub use purlin_kernel::choice::told::{Recorded, deviation_text, read, told, write_private};
pub use purlin_kernel::choice::who::introduced;
use purlin_kernel::choice::{self, Sampling, report};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The variable of the environment that says what is asked for: lines of a key and a value. Programs don't see it.
pub const VARIABLE: &str = "PURLIN_SCHEDULES";

/// Whether a variable of the environment is for the runtime alone.
pub(crate) fn takes(variable: &(OsString, OsString)) -> bool {
    variable.0 == VARIABLE
}

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

/// The wall clock at the start of all runs, in nanoseconds since 1970: the day begins, but for less than a second that the seed draws.
/// So the same seed gives the same numbers to those who take them from the clock.
fn starts(now: i64, seed: u64) -> i64 {
    now - now % DAY + (Numbers(seed).draw() % 1_000_000_000) as i64
}

enum Asked {
    Search(Search),
    Replay(Replay),
}

/// What is asked for: `None` where nothing is.
pub(crate) struct Request {
    asked: Asked,
    started: i64,
    libraries: Vec<PathBuf>,
}

/// Deviations of one schedule that `delays:N` may ask for.
const MOST_DELAYS: usize = 1000;

fn strategy(word: &str) -> Option<Strategy> {
    Some(match word {
        "portfolio" => Strategy::Portfolio,
        "flips" => Strategy::Flips,
        "stalls" => Strategy::Stalls,
        "delays" => Strategy::Delays(2),
        "none" => Strategy::Base,
        _ => match word.strip_prefix("delays:") {
            Some(n) => Strategy::Delays(n.parse().ok().filter(|n| (1..=MOST_DELAYS).contains(n))?),
            None => Strategy::Sample(Sampling::named(word)?),
        },
    })
}

/// Whether there is a strategy of that name.
pub fn is_strategy(word: &str) -> bool {
    strategy(word).is_some()
}

/// The function of a text `Module:Function/Arity`. None: it is no such text.
pub fn function(text: &str) -> Option<(String, String, u32)> {
    let (name, arity) = text.rsplit_once('/')?;
    let (module, function) = name.rsplit_once(':')?;
    let arity = arity.parse().ok().filter(|n| *n < 256)?;
    let named = !module.is_empty() && !function.is_empty();
    named.then(|| (module.to_owned(), function.to_owned(), arity))
}

/// Tells the command that has started this emulator, by its descriptor of that number, that there is one.
fn says_so(descriptor: &str) {
    let own = descriptor.bytes().all(|b| b.is_ascii_digit());
    let file = std::fs::OpenOptions::new()
        .append(true)
        .open(format!("/proc/self/fd/{descriptor}"));
    if let Ok(mut f) = file
        && own
    {
        // Nobody is told if it cannot be.
        let _ = f.write_all(b"begun");
    }
}

/// Reads what is asked for, and puts the mode on. Called before anything else of the runtime.
pub(crate) fn begin(o: &EmulatorOptions) -> Option<Request> {
    let text = std::env::var(VARIABLE).ok()?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as i64);
    let mut search = Search {
        schedules: 1000,
        time: None,
        seed: now as u64 / 1000 % 100_000,
        strategy: Strategy::Portfolio,
        stall: 95_000_000,
        jobs: 1,
        to: None,
        json: false,
        strict: false,
        keep_going: false,
        any: false,
        first: Vec::new(),
        from: None,
        command: Vec::new(),
        release: o.otp.release,
    };
    let mut replay = None;
    let mut recorded = None;
    let (mut steps, mut live) = (false, false);
    let (mut copied, mut fresh) = (None, None);
    let mut libraries = vec![o.otp.root.join("lib")];
    for line in text.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "schedules" => search.schedules = value.parse().unwrap_or(search.schedules),
            "milliseconds" => search.time = value.parse().ok().map(Duration::from_millis),
            "seed" => search.seed = value.parse().unwrap_or(search.seed),
            "strategy" => search.strategy = strategy(value).unwrap_or(search.strategy),
            "stall" => search.stall = value.parse().unwrap_or(95) * 1_000_000,
            "jobs" => search.jobs = value.parse().unwrap_or(1),
            "to" => search.to = Some(PathBuf::from(value)),
            "json" => search.json = true,
            "strict" => search.strict = true,
            "keep-going" => search.keep_going = true,
            "delivery" => search.any = value == "any",
            "from" => search.from = function(value),
            "first" => search.first.extend(deviation(value)),
            "argument" => search.command.push(value.to_owned()),
            "library" => libraries.push(PathBuf::from(value)),
            "begun" => says_so(value),
            "steps" => steps = true,
            "live" => live = true,
            "copied" => copied = Some(PathBuf::from(value)),
            "folder" => fresh = Some(PathBuf::from(value)),
            "replay" => {
                let text = std::fs::read_to_string(value);
                match text.ok().as_deref().and_then(read) {
                    Some(r) => {
                        recorded = Some(r.started);
                        replay = Some(r.replay);
                    }
                    None => {
                        purlin_term::say!("purlin: {value}: not a file of a schedule");
                        std::process::exit(66);
                    }
                }
            }
            _ => {}
        }
    }
    if let (Some(from), Some(at)) = (copied, fresh)
        && let Err(e) = folder::begin(from, at)
    {
        purlin_term::say!("purlin: schedules: {e}");
        std::process::exit(71);
    }
    let started = recorded.unwrap_or_else(|| starts(now, search.seed));
    purlin_term::background_free::at_once();
    // How far a step of a large collection gets depends on the time that it takes, and what is collected later on that.
    purlin_term::gc::STEPS_ABOVE_WORDS.store(usize::MAX, Ordering::Relaxed);
    purlin_term::etf::fix_local();
    choice::begin(started);
    let asked = match replay {
        Some(r) => Asked::Replay(Replay {
            steps,
            outside: r.outside.filter(|_| !live),
            // What comes now may be written otherwise.
            wrote: if live { Vec::new() } else { r.wrote },
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

/// Goes on in a run of the program; the search itself ends with the emulator.
pub(crate) fn go(r: Request) {
    debug_assert!(purlin_kernel::os::single::started() == r.started);
    report::set_libraries(&r.libraries);
    // What is shared was found by where it lies, and what is copied costs reductions, in which virtual time is counted.
    purlin_kernel::signal::share::set_threshold(usize::MAX);
    match r.asked {
        Asked::Search(s) => fork::search(&s),
        Asked::Replay(p) => fork::replay(p),
    }
}
