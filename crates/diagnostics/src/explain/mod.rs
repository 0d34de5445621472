//! The answers to `purlin explain`: where memory goes, who copies, who waits; as JSON.
//!
//! A request is a line of words. The first names a topic ([`TOPICS`]); the answer is an object.
//! Answers are bounded by `top`. An answer looks at one thing after the other: no scheduler is
//! stopped for it, and processes describe themselves between two of their time slices.
//!
//! # Invariants
//! * Nothing in the program is changed: topics only read.
//! * The memory and time for an answer are bounded by constants here and in `survey.rs`, whatever
//!   runs. Topics `leaks` and `heap` visit everything, in a copy of the emulator; their time is
//!   bounded too.

mod budgets;
mod copies;
mod heap_snapshot;
mod holders;
mod leaks;
mod machine_code;
pub(crate) mod memory;
pub(crate) mod names;
pub mod private;
mod recorder;
pub(crate) mod resident;
mod retention;
mod roots;
mod shapes;
pub mod socket;
pub(crate) mod survey;
mod time;
mod waiting;
mod window;
mod writes;

use crate::json::Json;
use purlin_kernel::accounts;
use purlin_kernel::options::PurlinFlags;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

/// The format of answers. It may gain fields; the meaning of a field does not change.
pub const SCHEMA: &str = "purlin-explain/1";

/// The variable that names the file for the answer to topic `run`, which is written at the end.
pub const VARIABLE: &str = "PURLIN_EXPLAIN_AT_END";

/// The folder beside that file for modules of the explained program. Modules compiled in memory are
/// in no other file.
pub fn objects_beside(answer: &Path) -> PathBuf {
    answer.with_extension("modules")
}

/// Number of entries of a list in an answer: default and maximum.
const DEFAULT_ENTRIES: usize = 10;
const MOST_ENTRIES: usize = 1000;
/// The same for the stacks of each kind in a profile.
const MOST_STACKS: usize = 20_000;

/// A topic of requests.
pub struct Topic {
    pub name: &'static str,
    pub doc: &'static str,
    answer: fn(usize) -> Vec<(String, Json)>,
}

const fn topic(
    name: &'static str,
    doc: &'static str,
    answer: fn(usize) -> Vec<(String, Json)>,
) -> Topic {
    Topic { name, doc, answer }
}

pub(crate) use copies::{value, word};
pub(crate) use recorder::{Recorder, set as set_recorder};
pub(crate) use window::pid;

pub static TOPICS: &[Topic] = &[
    topic(
        "memory",
        "what memory is used for, and by which processes and tables",
        memory::memory,
    ),
    topic(
        "copies",
        "which lines copy terms, and what they share",
        copies::copies,
    ),
    topic("allocation", "which lines fill heaps", copies::allocation),
    topic(
        "mailbox",
        "which processes have messages waiting",
        survey::mailbox,
    ),
    topic(
        "binaries",
        "which processes and tables hold binaries, and how",
        survey::binaries,
    ),
    topic(
        "heap",
        "what holds how much; with --to FILE, a snapshot for Chrome's DevTools",
        heap_snapshot::heap,
    ),
    topic(
        "leaks",
        "what a program has forgotten: processes that cannot be woken, monitors, timers, atoms, \
         parts of binaries, tables",
        leaks::leaks,
    ),
    topic(
        "latency",
        "where processes wait: for a scheduler, messages, ports, dirty threads and locks",
        time::latency,
    ),
    topic(
        "writes",
        "writes, and how much of them is batched, or waits",
        writes::writes,
    ),
    topic("work", "which lines compute, by reductions", time::work),
    topic(
        "collections",
        "which lines allocate what collections keep",
        copies::collections,
    ),
    topic(
        "machine_code",
        "which functions have machine code, what it costs, and which stay interpreted",
        machine_code::machine_code,
    ),
    topic(
        "budgets",
        "the limits of budgets, what is used of them, and by which processes",
        budgets::budgets,
    ),
    topic(
        "recorder",
        "where the last minute is recorded, or why it is not",
        recorder::recorder,
    ),
    topic(
        "profile",
        "all stacks with their costs, for flame graphs",
        copies::profile,
    ),
    topic(
        "run",
        "all topics that ask nothing of processes",
        copies::run,
    ),
];

static STARTED: OnceLock<Instant> = OnceLock::new();

/// The function that answers requests beginning with `observe`, from the words behind that.
type Observer = fn(&str) -> Result<Json, String>;

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Sets the function that answers the requests of `purlin observe`.
pub(crate) fn set_observer(f: Observer) {
    let _ = OBSERVER.set(f);
}

/// Seconds since the start.
pub(crate) fn uptime() -> f64 {
    STARTED.get().map_or(0.0, |s| s.elapsed().as_secs_f64())
}

/// The answer to a request, or the reason why there is none.
pub fn answer(request: &str) -> Json {
    match answered(request) {
        Ok(answer) => answer,
        Err(why) => Json::object([("schema", SCHEMA.into()), ("error", why.into())]),
    }
}

fn answered(request: &str) -> Result<Json, String> {
    let mut words = request.split_whitespace();
    let name = words.next().unwrap_or_default();
    if let (Some(observer), "observe") = (OBSERVER.get(), name) {
        return observer(request.trim_start().trim_start_matches(name));
    }
    if name == "window" {
        let answer = window::answer(request.trim_start().trim_start_matches(name))?;
        return Ok(match answer {
            window::Answer::Opened(n) => headed("window", vec![("window".into(), n.into())]),
            window::Answer::Closed(all, top) => {
                headed("profile", copies::stacks(all, top.clamp(1, MOST_STACKS)))
            }
        });
    }
    let topic = TOPICS.iter().find(|t| t.name == name);
    let topic = topic.ok_or_else(|| format!("there is no topic '{name}'"))?;
    let mut top = DEFAULT_ENTRIES;
    for word in words {
        let value = word.strip_prefix("top=").and_then(|n| n.parse().ok());
        top = value.ok_or_else(|| format!("'{word}' is not understood"))?;
    }
    let most = match name {
        "profile" => MOST_STACKS,
        _ => MOST_ENTRIES,
    };
    Ok(told(topic, top.clamp(1, most)))
}

fn told(topic: &Topic, top: usize) -> Json {
    headed(topic.name, (topic.answer)(top))
}

/// An answer with what all of them begin with.
fn headed(topic: &str, answer: Vec<(String, Json)>) -> Json {
    let otp = purlin_kernel::options::try_current().map_or("", |o| o.otp.version.as_str());
    let mut pairs: Vec<(String, Json)> = [
        ("schema", Json::from(SCHEMA)),
        ("topic", topic.into()),
        ("purlin", env!("CARGO_PKG_VERSION").into()),
        ("otp", otp.into()),
        ("pid", u64::from(std::process::id()).into()),
        ("uptime_s", uptime().into()),
        ("accounts", accounts::on().into()),
    ]
    .map(|(k, v)| (k.to_string(), v))
    .into();
    pairs.extend(answer);
    Json::Object(pairs)
}

/// Whether a variable of the environment is meant for this module and not for the program.
pub(crate) fn takes(name: &OsStr) -> bool {
    name == VARIABLE
}

/// Starts to keep accounts and to answer requests, and arranges for the answer at the end if
/// requested.
pub(crate) fn start(flags: &PurlinFlags) {
    let _ = STARTED.set(Instant::now());
    accounts::set_namer(|pc| {
        let p = purlin_kernel::code::find(pc)?;
        Some(accounts::Frame {
            module: p.module,
            function: p.function,
            arity: p.arity,
            line: p.line,
        })
    });
    if flags.no_explain || purlin_kernel::os::exploring::on() {
        accounts::turn_off();
        return;
    }
    purlin_term::etf::on_pid(purlin_kernel::process::exported::note);
    socket::serve();
    if let Some(file) = std::env::var_os(VARIABLE) {
        let folder = objects_beside(file.as_ref());
        if folder.is_dir() {
            purlin_kernel::code::object_files::write_to(folder);
        }
        purlin_kernel::halt::on_end(at_end);
        holders::watch();
    }
}

/// Writes the file that `purlin explain run` shows. Errors are ignored: there is no place to report
/// them.
fn at_end() {
    let Some(file) = std::env::var_os(VARIABLE) else {
        return;
    };
    if let Some(topic) = TOPICS.iter().find(|t| t.name == "run") {
        let mut answer = told(topic, MOST_ENTRIES);
        if let Json::Object(pairs) = &mut answer {
            pairs.push(("holders".into(), holders::at_end()));
        }
        let _ = std::fs::write(file, format!("{answer}\n"));
    }
}
