//! The answers to `purlin explain`: where memory goes, who copies, who waits; as JSON.
//!
//! A request is a line of words, the first of which names a topic ([`TOPICS`]); the answer is an object. Answers are bounded by
//! `top`, and each is made from a look at one thing after the other: no scheduler is stopped for it, and processes say what
//! they are like between two of their time slices.
//!
//! # Invariants
//! * Nothing is changed in the program: topics only read.
//! * An answer takes memory and time within bounds that are constants here and in `survey.rs`, whatever runs.

mod copies;
mod holders;
mod machine_code;
pub(crate) mod memory;
pub(crate) mod names;
pub mod private;
mod resident;
mod retention;
pub mod socket;
pub(crate) mod survey;
mod time;
mod writes;

use crate::accounts;
use crate::json::Json;
use crate::options::PurlinFlags;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

/// The form of answers. It grows by new fields; what a field means doesn't change.
pub const SCHEMA: &str = "purlin-explain/1";

/// The variable that names the file to which the answer of topic `run` is written at the end.
pub const VARIABLE: &str = "PURLIN_EXPLAIN_AT_END";

/// The folder for the modules of the program that is explained in that file: those that were compiled in memory have no file else.
pub fn objects_beside(answer: &Path) -> PathBuf {
    answer.with_extension("modules")
}

/// Entries of a list in an answer, if nothing else is asked for, and at most.
const TOP: usize = 10;
const MOST: usize = 1000;

/// Something that may be asked.
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
        "latency",
        "where processes wait: for their turn, for messages, ports, dirty threads and locks",
        time::latency,
    ),
    topic(
        "writes",
        "what is written, and what of it is copied together, or waits",
        writes::writes,
    ),
    topic("work", "which lines compute, by reductions", time::work),
    topic(
        "collections",
        "which lines have collections keep most",
        copies::collections,
    ),
    topic(
        "machine_code",
        "which functions have machine code, what it costs, and which stay interpreted",
        machine_code::machine_code,
    ),
    topic(
        "profile",
        "all stacks with what they cost, for flame graphs",
        copies::profile,
    ),
    topic(
        "run",
        "all of that without a look at processes",
        copies::run,
    ),
];

static STARTED: OnceLock<Instant> = OnceLock::new();

/// The function that answers requests which begin with `observe`: it gets the words behind that.
type Observer = fn(&str) -> Result<Json, String>;

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Says who answers what `purlin observe` asks.
pub(crate) fn set_observer(f: Observer) {
    let _ = OBSERVER.set(f);
}

/// Seconds since the start.
pub(crate) fn uptime() -> f64 {
    STARTED.get().map_or(0.0, |s| s.elapsed().as_secs_f64())
}

/// The answer to a request, or why there is none.
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
    let topic = TOPICS.iter().find(|t| t.name == name);
    let topic = topic.ok_or_else(|| format!("there is no topic '{name}'"))?;
    let mut top = TOP;
    for word in words {
        let value = word.strip_prefix("top=").and_then(|n| n.parse().ok());
        top = value.ok_or_else(|| format!("'{word}' is not understood"))?;
    }
    Ok(told(topic, top.clamp(1, MOST)))
}

fn told(topic: &Topic, top: usize) -> Json {
    let otp = crate::options::try_current().map_or("", |o| o.otp.version.as_str());
    let mut pairs: Vec<(String, Json)> = [
        ("schema", Json::from(SCHEMA)),
        ("topic", topic.name.into()),
        ("purlin", env!("CARGO_PKG_VERSION").into()),
        ("otp", otp.into()),
        ("pid", u64::from(std::process::id()).into()),
        ("uptime_s", uptime().into()),
        ("accounts", accounts::on().into()),
    ]
    .map(|(k, v)| (k.to_string(), v))
    .into();
    pairs.extend((topic.answer)(top));
    Json::Object(pairs)
}

/// Whether a variable of the environment is for here, and not for the program.
pub(crate) fn takes(name: &OsStr) -> bool {
    name == VARIABLE
}

/// Keeps accounts from now on, answers who asks, and tells at the end what was asked for before.
pub(crate) fn start(flags: &PurlinFlags) {
    let _ = STARTED.set(Instant::now());
    accounts::set_namer(|pc| {
        let p = crate::code::find(pc)?;
        Some(accounts::Frame {
            module: p.module,
            function: p.function,
            arity: p.arity,
            line: p.line,
        })
    });
    if flags.no_explain || purlin_kernel::os::single::on() {
        accounts::turn_off();
        return;
    }
    socket::serve();
    if let Some(file) = std::env::var_os(VARIABLE) {
        let folder = objects_beside(file.as_ref());
        if folder.is_dir() {
            crate::code::object_files::write_to(folder);
        }
        crate::halt::on_end(at_end);
        holders::watch();
    }
}

/// Writes what `purlin explain run` shows. Where that can't be done there is nobody to tell.
fn at_end() {
    let Some(file) = std::env::var_os(VARIABLE) else {
        return;
    };
    if let Some(topic) = TOPICS.iter().find(|t| t.name == "run") {
        let mut answer = told(topic, MOST);
        if let Json::Object(pairs) = &mut answer {
            pairs.push(("holders".into(), holders::at_end()));
        }
        let _ = std::fs::write(file, format!("{answer}\n"));
    }
}
