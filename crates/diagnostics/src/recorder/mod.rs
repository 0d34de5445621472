//! The record of the last minute (`+Frecord`): a file that says how the runtime fared, should it be
//! killed. A run that halts removes its file.
//!
//! One thread takes the events of the kernel from their queue, adds a summary for each second in
//! which something happens, and writes both to a ring ([`format`]) in a folder of the user
//! ([`run_files`]). `purlin explain show` reads it.
//!
//! The file is written, not mapped. What was written outlives the process either way. But a store
//! to a mapping may make its thread wait for the disk, and kills the process if the disk is full.
//!
//! # Invariants
//! * Whatever goes wrong with the file ends recording, and nothing else. `purlin explain PID
//!   recorder` names the reason.
//! * Nothing is printed but one line at the start, on standard error, if the last run of the same
//!   command ended without a halt.
//! * A second takes at most a sixtieth of the file, so a minute always has room.

pub mod format;
mod run_files;
mod second;

use crate::explain::private::Private;
use crate::explain::{self, names, set_recorder};
use crate::fnv;
use crate::json::Json;
use format::{BLOCK, Writer};
use purlin_kernel::accounts::Frame;
use purlin_kernel::options::EmulatorOptions;
use purlin_kernel::process::registry;
use purlin_kernel::recorder::{self as events, Event, Function, Reason, Settings, Who};
use purlin_kernel::{clock, halt, sched};
use purlin_term::{Term, atom};
use second::Second;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Default size of the file in MiB.
const MIB: u32 = 4;
/// Pause after events were written, in which more are gathered.
const GATHER: Duration = Duration::from_millis(20);
/// Pause between two looks at the schedulers while one of them works.
const LOOK: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
/// Seconds without work after which the thread sleeps until there is some.
const IDLE_SECONDS: u32 = 3;
/// Time limit for writing the last records at an end that was not asked for.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// Milliseconds of a time slice that is recorded.
const LONG_SLICE_MS: u64 = 100;
/// Milliseconds of a collection that is recorded, and bytes by which it lets a heap grow.
const LONG_COLLECTION_MS: u64 = 20;
const LARGE_GROWTH: usize = 16 << 20;
/// Nanoseconds within which a supervisor's new child counts as the restart of one that failed.
const RESTART: i64 = 10_000_000_000;
/// Number of failures that are remembered for that.
const FAILURES: usize = 256;
/// Bytes of stack of the thread.
const STACK_BYTES: usize = 512 << 10;

/// The file of this run.
struct OwnFile {
    folder: Private,
    name: String,
    /// Stays open until the process ends, and with it the lock of a run that lives.
    file: Arc<File>,
}

/// Removed, or marked as that of a run that halted, by [`at_end`].
static FILE: OnceLock<OwnFile> = OnceLock::new();

/// Starts to record, unless the options forbid it, and reports the last run.
pub fn start(options: &EmulatorOptions) {
    let flag = &options.flags.purlin.record;
    if flag.off || purlin_kernel::os::exploring::on() {
        return refused("it is switched off (+Frecord off)");
    }
    let folder = match run_files::open(flag.folder.as_deref()) {
        Ok(folder) => folder,
        Err(e) => return refused(&format!("there is no folder for it: {e}")),
    };
    let key = key();
    if !flag.quiet
        && let Some(last) = run_files::last_run(&folder, &key)
    {
        report(&last);
    }
    let blocks = u64::from(flag.mib.unwrap_or(MIB)) * (1 << 20) / BLOCK as u64 - 1;
    // The system would end the process, unless the program handles the signal.
    if (1 + blocks) * BLOCK as u64 > run_files::largest() {
        return refused("files are limited to less than its size (ulimit -f)");
    }
    let made = run_files::create(&folder).and_then(|(file, name)| {
        let file = Arc::new(file);
        let writer = Writer::new(file.clone(), &head(options, &key, blocks), blocks);
        if writer.is_err() {
            let _ = folder.remove(&name);
        }
        Ok((writer?, OwnFile { folder, name, file }))
    });
    let (writer, own) = match made {
        Ok(made) => made,
        Err(e) => return refused(&format!("its file cannot be written: {e}")),
    };
    let state = explain::Recorder {
        file: Some(own.folder.shown(&own.name)),
        size: (1 + blocks) * BLOCK as u64,
        ..Default::default()
    };
    set_recorder(state.clone());
    let _ = FILE.set(own);
    halt::on_end(at_end);
    purlin_term::say::before_refusal(at_end);
    events::begin(Settings { terms: flag.terms });
    let recorder = Recorder::new(writer, state);
    let made = thread::Builder::new()
        .name("recorder".into())
        .stack_size(STACK_BYTES)
        .spawn(move || recorder.serve());
    if made.is_err() {
        events::stop();
        at_end();
        refused("its thread cannot be started");
    }
}

/// Notes why there is no record.
fn refused(why: &str) {
    set_recorder(explain::Recorder {
        why: Some(why.into()),
        ..Default::default()
    });
}

/// Reports the last run on standard error.
fn report(last: &run_files::LastRun) {
    let since = last
        .ended
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    let at = clock::DateTime::local(since as i64);
    let at = at.map_or_else(String::new, |d| {
        format!(
            " at {:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            d.year, d.month, d.day, d.hour, d.minute, d.second
        )
    });
    purlin_term::say!(
        "purlin: the last run (process {}) ended without a halt{at}: purlin explain show {}",
        last.pid,
        last.file.display()
    );
}

/// Removes the file of a run that halts. If the halt has a slogan or is an abort, the last records
/// are written, and the next start reports nothing: the end was asked for, and has a crash dump.
fn at_end() {
    let Some(own) = FILE.get() else {
        return;
    };
    match halt::is_orderly() {
        true => drop(own.folder.remove(&own.name)),
        false => {
            events::flush(LAST_WORDS);
            // Without the note, the next start reports it.
            let _ = run_files::note_halt(&own.file);
        }
    }
}

/// A number for the command: that of the node's name, or else of all arguments and the folder.
fn key() -> String {
    let args: Vec<_> = std::env::args_os().collect();
    let named = args
        .windows(2)
        .find(|w| w[0] == "-sname" || w[0] == "-name");
    let mut sum = fnv::EMPTY;
    let mut add = |bytes: &[u8]| sum = fnv::add(fnv::add(sum, bytes), &[0]);
    match named {
        Some(w) => w.iter().for_each(|w| add(w.as_bytes())),
        None => {
            args.iter().for_each(|a| add(a.as_bytes()));
            let folder = std::env::current_dir().unwrap_or_default();
            add(folder.as_os_str().as_bytes());
        }
    }
    format!("{sum:016x}")
}

/// Describes this run.
fn head(options: &EmulatorOptions, key: &str, blocks: u64) -> Json {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |d| d.as_millis() as u64);
    let began = now.saturating_sub(clock::elapsed().max(0) as u64 / 1_000_000);
    Json::object([
        ("pid", u64::from(std::process::id()).into()),
        ("began_ms", began.into()),
        ("purlin", env!("CARGO_PKG_VERSION").into()),
        ("otp", options.otp.version.as_str().into()),
        (
            "schedulers",
            u64::from(options.flags.schedulers.online).into(),
        ),
        ("blocks", blocks.into()),
        ("key", key.into()),
        ("reported", false.into()),
    ])
}

/// A process of a record.
pub(crate) fn who(w: &Who) -> Json {
    let initial = w
        .initial
        .map(|f| names::function(f.module, f.function, f.arity));
    described(w.pid, w.name, initial)
}

/// A process that is only known by its pid.
pub(crate) fn known(pid: Term) -> Json {
    described(pid, registry::name_of(pid), None)
}

fn described(pid: Term, name: Option<Term>, initial: Option<String>) -> Json {
    Json::object([
        ("pid", names::pid(pid).into()),
        ("name", name.map(atom::name).into()),
        ("initial", initial.into()),
    ])
}

/// A restart that may follow: the parent, the initial function, the time, and the process.
struct Failure {
    parent: u32,
    initial: Option<Function>,
    time: i64,
    who: Json,
}

/// Current time slice of a scheduler, as far as the recorder has seen it.
#[derive(Clone, Copy, Default)]
struct Slice {
    runs: Option<Term>,
    picks: usize,
    /// When it was first seen, in nanoseconds, and the length in milliseconds at which it is
    /// recorded next.
    since: i64,
    due_ms: u64,
}

struct Recorder {
    writer: Writer,
    state: explain::Recorder,
    failures: VecDeque<Failure>,
    slices: Vec<Slice>,
    second: Second,
    /// Bytes of records that may still be written in this second.
    left: i64,
    /// Number of events of this second that were left out.
    left_out: u64,
}

/// The record of an event of that kind, at that time.
fn record<const N: usize>(time: i64, event: &str, pairs: [(&str, Json); N]) -> Json {
    let mut all: Vec<(String, Json)> = vec![
        ("t".into(), (time.max(0) as u64 / 1_000_000).into()),
        ("e".into(), event.into()),
    ];
    let pairs = pairs.into_iter().filter(|p| p.1 != Json::Null);
    all.extend(pairs.map(|(k, v)| (k.to_string(), v)));
    Json::Object(all)
}

fn milliseconds(nanoseconds: u64) -> Json {
    (nanoseconds / 1_000_000).into()
}

impl Recorder {
    fn new(writer: Writer, state: explain::Recorder) -> Recorder {
        Recorder {
            left: share(state.size),
            writer,
            state,
            failures: VecDeque::new(),
            slices: Vec::new(),
            second: Second::new(),
            left_out: 0,
        }
    }

    /// Writes records until the end of the runtime, or until the file cannot be written.
    fn serve(mut self) {
        if let Some(own) = FILE.get() {
            run_files::clean(&own.folder);
        }
        if let Err(e) = self.serve_while_written() {
            events::stop();
            self.state.why = Some(format!("its file cannot be written: {e}"));
            set_recorder(self.state);
        }
    }

    fn serve_while_written(&mut self) -> io::Result<()> {
        let mut next = clock::elapsed();
        let mut idle = 0;
        loop {
            let until = Duration::from_nanos((next - clock::elapsed()).max(0) as u64);
            let limit = match sched::running().iter().any(Option::is_some) {
                true => Some(until.min(LOOK)),
                false => (idle < IDLE_SECONDS).then_some(until),
            };
            let events = events::wait(limit);
            if limit.is_none() {
                // What was recorded of the time before ended then.
                self.second.skip();
                next = clock::elapsed() + SECOND.as_nanos() as i64;
                idle = 0;
            }
            let some = !events.is_empty();
            for (time, e) in events {
                self.event(time, e)?;
            }
            self.look()?;
            let now = clock::elapsed();
            if now >= next {
                next = now + SECOND.as_nanos() as i64;
                events::next_round();
                idle = match self.summary(now)? {
                    true => 0,
                    false => idle + 1,
                };
            }
            self.writer.flush()?;
            events::written();
            if some {
                thread::sleep(GATHER);
            }
        }
    }

    /// Writes the summary of a second, if anything happened in it.
    fn summary(&mut self, now: i64) -> io::Result<bool> {
        self.left = share(self.state.size);
        let left_out = std::mem::take(&mut self.left_out);
        let Some(pairs) = self.second.summary(left_out) else {
            return Ok(false);
        };
        let mut r = record(now, "second", []);
        if let Json::Object(all) = &mut r {
            all.extend(pairs);
        }
        self.writer.add(&r)?;
        self.state.written = self.writer.bytes;
        set_recorder(self.state.clone());
        Ok(true)
    }

    /// Adds a record, if this second has room for it. Half of the room is for what is `rare`.
    fn add(&mut self, r: &Json, rare: bool) -> io::Result<()> {
        let least = match rare {
            true => 0,
            false => share(self.state.size) / 2,
        };
        if self.left <= least {
            self.left_out += 1;
            return Ok(());
        }
        let before = self.writer.bytes;
        self.writer.add(r)?;
        self.left -= (self.writer.bytes - before) as i64;
        Ok(())
    }

    fn event(&mut self, time: i64, event: Event) -> io::Result<()> {
        match event {
            Event::Started { who: w, parent } => {
                let by = known(Term::pid(parent));
                match self.failed_before(time, parent, w.initial) {
                    Some(f) => {
                        let after = milliseconds((time - f.time).max(0) as u64);
                        let r = [("p", who(&w)), ("by", by), ("of", f.who), ("ms", after)];
                        self.add(&record(time, "restart", r), true)
                    }
                    None => {
                        let r = [("p", who(&w)), ("by", by)];
                        self.add(&record(time, "start", r), false)
                    }
                }
            }
            Event::Ended {
                who: w,
                parent,
                reason,
                text,
                frames,
                heap,
            } => self.ended(time, &w, parent, (reason, text, frames), heap),
            Event::Collected {
                who: w,
                heap,
                binaries,
                nanoseconds,
                frames,
            } => {
                let at = names::site(&frames).map(names::frame);
                let grown = self.second.collected(&w, heap, binaries, at.clone());
                if grown < LARGE_GROWTH && nanoseconds / 1_000_000 < LONG_COLLECTION_MS {
                    return Ok(());
                }
                let r = [
                    ("p", who(&w)),
                    ("ms", milliseconds(nanoseconds)),
                    ("heap", heap.into()),
                    ("binaries", binaries.into()),
                    ("at", at.unwrap_or(Json::Null)),
                ];
                self.add(&record(time, "collection", r), true)
            }
            Event::Waited {
                who: w,
                kind,
                nanoseconds,
                frames,
            } => {
                let r = [
                    ("p", who(&w)),
                    ("for", explain::word(kind).into()),
                    ("ms", milliseconds(nanoseconds)),
                    ("at", names::site(&frames).map_or(Json::Null, names::frame)),
                ];
                self.add(&record(time, "wait", r), true)
            }
            Event::Mailbox {
                who: w,
                messages,
                bytes,
            } => match self.second.mailbox(&w, messages, bytes) {
                true => {
                    let r = [
                        ("p", who(&w)),
                        ("messages", messages.into()),
                        ("bytes", bytes.into()),
                    ];
                    self.add(&record(time, "mailbox", r), true)
                }
                false => Ok(()),
            },
            Event::Fault {
                signal,
                pid,
                function,
                library,
            } => {
                let r = [
                    ("signal", signal.into()),
                    ("p", pid.map_or(Json::Null, known)),
                    ("function", function.into()),
                    ("library", library.into()),
                ];
                self.add(&record(time, "fault", r), true)
            }
        }
    }

    /// Records the end of a process: why, the text of that, and where it was raised.
    fn ended(
        &mut self,
        time: i64,
        w: &Who,
        parent: u32,
        (reason, text, frames): (Reason, Option<String>, Vec<Frame>),
        heap: usize,
    ) -> io::Result<()> {
        self.second.ended(w.pid);
        let normal = reason == Reason::Normal;
        if !normal {
            self.failures.truncate(FAILURES - 1);
            self.failures.push_front(Failure {
                parent,
                initial: w.initial,
                time,
                who: who(w),
            });
        }
        let reason = match reason {
            Reason::Normal => Json::from("normal"),
            Reason::Class(name) => atom::name(name).trim_start_matches("Elixir.").into(),
            Reason::Other => Json::Null,
        };
        let r = [
            ("p", who(w)),
            ("reason", reason),
            ("text", text.into()),
            ("at", names::site(&frames).map_or(Json::Null, names::frame)),
            ("heap", heap.into()),
        ];
        self.add(&record(time, "end", r), !normal)
    }

    /// Returns and forgets the last failure of a process like that one, if it was not long ago.
    fn failed_before(&mut self, time: i64, parent: u32, f: Option<Function>) -> Option<Failure> {
        let found = self
            .failures
            .iter()
            .position(|e| e.parent == parent && e.initial == f && time - e.time < RESTART)?;
        self.failures.remove(found)
    }

    /// Looks for schedulers that have been in one time slice for long.
    fn look(&mut self) -> io::Result<()> {
        let turns = sched::turns();
        self.slices.resize(turns.len(), Slice::default());
        let now = clock::elapsed();
        for (i, (runs, picks)) in turns.into_iter().enumerate() {
            let s = self.slices[i];
            if s.runs != runs || s.picks != picks {
                self.slices[i] = Slice {
                    runs,
                    picks,
                    since: now,
                    due_ms: LONG_SLICE_MS,
                };
                continue;
            }
            let Some(pid) = runs else { continue };
            let ms = (now - s.since).max(0) as u64 / 1_000_000;
            if ms < s.due_ms {
                continue;
            }
            self.slices[i].due_ms = 4 * ms;
            let r = [
                ("p", known(pid)),
                ("scheduler", (i + 1).into()),
                ("ms", ms.into()),
            ];
            self.add(&record(now, "slice", r), true)?;
        }
        Ok(())
    }
}

/// Bytes of records that a second may have.
fn share(size: u64) -> i64 {
    // Blocks are not always filled, and a summary has room beside its share.
    (size / 80) as i64
}
