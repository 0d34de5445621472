//! Metrics and profiles for collectors (`+Fotlp`, `purlin observe PID --otlp URL`), by OTLP over
//! HTTP: protocol buffers, sent at an interval.
//!
//! # Invariants
//! * Nothing is sent unless the flag is given, or a client asks for it by the socket of
//!   [`crate::explain`], which only the owner may open. What was asked for ends by itself.
//! * Each collector has a thread of its own, and nothing in the node waits for it. There are at
//!   most [`MOST_COLLECTORS`] of them.
//! * Memory is bounded: one message at a time, and what the accounts had at the last profile that
//!   was taken. If a profile is not taken, the next one has a longer time. Metrics are sums since
//!   the start, so that a lost one does no harm.
//! * A collector that does not answer gets one line on standard error, and rarer attempts.

mod client;
mod profiles;
mod resource;

use crate::metrics::{self, Times};
use crate::protobuf::{Field, Fields, Message, field};
use profiles::Source;
use purlin_kernel::clock;
use purlin_kernel::options::{EmulatorOptions, OtlpFlag};
use purlin_kernel::profile::{self, Use};
use purlin_kernel::sync::Mutex;
use purlin_messages as messages;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum number of collectors.
const MOST_COLLECTORS: usize = 4;
/// Bytes of stack of a thread here.
const STACK_BYTES: usize = 512 << 10;
/// Maximum time between two attempts while a collector does not answer, and while it refuses.
const LONGEST: Duration = Duration::from_secs(300);
const REFUSED: Duration = Duration::from_secs(600);
/// Maximum number of characters that are shown of what a collector says.
const SHOWN: usize = 200;

/// A kind of data that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Signal {
    Metrics,
    Profiles,
}

impl Signal {
    const ALL: [Signal; 2] = [Signal::Metrics, Signal::Profiles];

    fn name(self) -> &'static str {
        match self {
            Signal::Metrics => "metrics",
            Signal::Profiles => "profiles",
        }
    }
    fn path(self) -> &'static str {
        match self {
            Signal::Metrics => "/v1/metrics",
            Signal::Profiles => "/v1development/profiles",
        }
    }
    fn is_in(self, flag: &OtlpFlag) -> bool {
        match self {
            Signal::Metrics => flag.metrics,
            Signal::Profiles => flag.profiles,
        }
    }
}

/// Number of messages that a collector has taken, for a signal.
#[derive(Clone, Default, Debug)]
pub struct Fate {
    pub name: &'static str,
    /// Number of messages that were taken.
    pub taken: u64,
    /// Why the last one was not.
    pub why: Option<String>,
}

struct Exporter {
    flag: OtlpFlag,
    /// When it ends; `None` is for good.
    until: Mutex<Option<Instant>>,
    fates: Mutex<[Fate; Signal::ALL.len()]>,
    /// Whether the user knows that there is no answer.
    unanswered: AtomicBool,
}

static ALL: Mutex<Vec<Arc<Exporter>>> = Mutex::new(Vec::new());

/// Begins to send if the options say so.
pub fn start(options: &EmulatorOptions) {
    let Some(flag) = &options.flags.purlin.otlp else {
        return;
    };
    if !flag.to.is_local() {
        let text = format!(
            "{} gets what this node measures, without encryption",
            flag.to
        );
        purlin_term::say!("{}", messages::NOT_ENCRYPTED.line(text));
    }
    purlin_kernel::message::lengths::turn_on();
    if let Err(why) = begin(flag, None) {
        let text = format!("nothing is sent to {}: {why}", flag.to);
        purlin_term::say!("{}", messages::NOTHING_SENT.line(text));
    }
}

/// Sends to a collector until then, unless it is asked for again. Returns what has become of it so
/// far.
pub(crate) fn keep(flag: &OtlpFlag, until: Instant) -> Result<Vec<Fate>, String> {
    let e = begin(flag, Some(until))?;
    let fates = e.fates.lock();
    let sent = Signal::ALL.iter().filter(|s| s.is_in(flag));
    Ok(sent.map(|s| fates[*s as usize].clone()).collect())
}

fn begin(flag: &OtlpFlag, until: Option<Instant>) -> Result<Arc<Exporter>, String> {
    let mut all = ALL.lock();
    if let Some(e) = all.iter().find(|e| e.flag == *flag) {
        let mut old = e.until.lock();
        *old = old.and_then(|old| Some(until?.max(old)));
        return Ok(e.clone());
    }
    if all.len() >= MOST_COLLECTORS {
        return Err(format!("there are {MOST_COLLECTORS} collectors already"));
    }
    let fate = |s: Signal| Fate {
        name: s.name(),
        ..Fate::default()
    };
    let e = Arc::new(Exporter {
        flag: flag.clone(),
        until: Mutex::new(until),
        fates: Mutex::new(Signal::ALL.map(fate)),
        unanswered: AtomicBool::new(false),
    });
    if flag.profiles && !profile::keep(Use::Export, i64::MAX) {
        return Err("no thread can be started that samples time".into());
    }
    let mine = e.clone();
    let made = thread::Builder::new()
        .name("otlp".into())
        .stack_size(STACK_BYTES)
        .spawn(move || export(&mine));
    if let Err(e) = made {
        end_samples(&all);
        return Err(format!("no thread can be started: {e}"));
    }
    all.push(e.clone());
    Ok(e)
}

/// Ends the samples of time if none of these exporters needs them.
fn end_samples(all: &[Arc<Exporter>]) {
    if !all.iter().any(|e| e.flag.profiles) {
        profile::end(Use::Export);
    }
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| d.as_nanos() as u64)
}

/// The scope of what is sent: what has measured it.
fn scope() -> Message {
    let mut m = Message::default();
    m.text(1, "purlin").text(2, env!("CARGO_PKG_VERSION"));
    m
}

/// The next message of a signal.
struct Turn {
    signal: Signal,
    due: Instant,
    failures: u32,
}

impl Turn {
    /// The time until the next attempt after one more failure.
    fn longer(&mut self, every: Duration) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let longer = every.saturating_mul(1 << self.failures.min(12));
        longer.min(LONGEST).max(every)
    }
}

/// The body of a thread that sends.
fn export(e: &Exporter) {
    let every = Duration::from_secs(e.flag.every.into());
    let mut source = Source::new(now());
    let sent = Signal::ALL.iter().filter(|s| s.is_in(&e.flag));
    let mut turns: Vec<Turn> = sent
        .map(|&signal| Turn {
            signal,
            due: Instant::now() + every,
            failures: 0,
        })
        .collect();
    loop {
        let Some(due) = turns.iter().map(|t| t.due).min() else {
            return;
        };
        if !wait(e, due) {
            return;
        }
        for turn in turns.iter_mut().filter(|t| t.due <= Instant::now()) {
            let pause = send(e, turn, &mut source, every);
            turn.due = Instant::now() + pause;
        }
    }
}

/// Waits until then. Returns false if the exporter is over before.
fn wait(e: &Exporter, due: Instant) -> bool {
    loop {
        let now = Instant::now();
        {
            let mut all = ALL.lock();
            let until = *e.until.lock();
            if until.is_some_and(|u| u <= now) {
                all.retain(|other| !std::ptr::eq(&**other, e));
                end_samples(&all);
                return false;
            }
        }
        if due <= now {
            return true;
        }
        // The client may ask no longer.
        thread::sleep((due - now).min(Duration::from_secs(1)));
    }
}

/// Sends a message, and returns the time until the next.
fn send(e: &Exporter, turn: &mut Turn, source: &mut Source, every: Duration) -> Duration {
    let now = now();
    let (body, next) = match turn.signal {
        Signal::Metrics => (metrics_request(now), None),
        Signal::Profiles => match source.take(resource::resource(), now) {
            Some(taken) => (taken.request, Some(taken.next)),
            // Nothing was counted, or there are no accounts.
            None => return every,
        },
    };
    let result = client::post(&e.flag.to, turn.signal.path(), &body);
    let fate = Outcome::of(result);
    let mut fates = e.fates.lock();
    let mine = &mut fates[turn.signal as usize];
    match fate {
        Outcome::Taken(partly) => {
            if let Some(next) = next {
                *source = next;
            }
            turn.failures = 0;
            e.unanswered.store(false, Ordering::Relaxed);
            mine.taken += 1;
            if let Some(why) = &partly
                && mine.why != partly
            {
                tell(
                    e,
                    format_args!(
                        "{} are not taken by {}: {why}",
                        turn.signal.name(),
                        e.flag.to
                    ),
                );
            }
            mine.why = partly;
            every
        }
        Outcome::Failed { why, pause } => {
            if mine.why.as_ref() != Some(&why) {
                tell(
                    e,
                    format_args!(
                        "{} are not taken by {}: {why}",
                        turn.signal.name(),
                        e.flag.to
                    ),
                );
            }
            mine.why = Some(why);
            pause.map_or_else(|| turn.longer(every), |p| p.max(every))
        }
        Outcome::Unanswered(why) => {
            if !e.unanswered.swap(true, Ordering::Relaxed) {
                tell(
                    e,
                    format_args!("no collector answers at {}: {why}", e.flag.to),
                );
            }
            mine.why = Some(why);
            turn.longer(every)
        }
    }
}

/// Writes a line for the node's user. A client of the socket reads the fates instead.
fn tell(e: &Exporter, text: fmt::Arguments) {
    if e.until.lock().is_none() {
        purlin_term::say!("{}", messages::NOT_DELIVERED.line(text));
    }
}

/// Result of an attempt to send a message.
enum Outcome {
    /// It was taken. If not wholly, the text says why.
    Taken(Option<String>),
    Failed {
        why: String,
        /// The time until the next attempt, if the answer settles it.
        pause: Option<Duration>,
    },
    /// There is no answer.
    Unanswered(String),
}

impl Outcome {
    fn of(result: io::Result<client::Response>) -> Outcome {
        let r = match result {
            Ok(r) => r,
            Err(e) => return Outcome::Unanswered(e.to_string()),
        };
        let status = r.status;
        match status {
            200..=299 => Outcome::Taken(rejected(&r.body)),
            // The statuses that mean: again, later.
            429 | 502 | 503 | 504 => Outcome::Failed {
                why: format!("it answers with status {status}"),
                pause: r.retry_after,
            },
            _ => Outcome::Failed {
                why: format!("it answers with status {status}"),
                pause: Some(REFUSED),
            },
        }
    }
}

/// The reason that a collector gives for a part that it did not take.
fn rejected(body: &[u8]) -> Option<String> {
    let all = Fields::of(body).all()?;
    let part = all.iter().find_map(|f| match f {
        (1, Field::Bytes(b)) => Fields::of(b).all(),
        _ => None,
    })?;
    let n = field(&part, 1);
    let text = part.iter().find_map(|f| match f {
        (2, Field::Bytes(b)) => Some(String::from_utf8_lossy(b).into_owned()),
        _ => None,
    });
    let shown: String = text
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN)
        .collect();
    (n > 0).then(|| format!("{n} were rejected: {shown}"))
}

fn metrics_request(now: u64) -> Vec<u8> {
    let start = now.saturating_sub(clock::elapsed().max(0) as u64);
    let mut scoped = Message::default();
    scoped.message(1, scope());
    for m in metrics::messages(Times { start, now }) {
        scoped.message(2, m);
    }
    let mut resources = Message::default();
    resources
        .message(1, resource::resource())
        .message(2, scoped);
    let mut request = Message::default();
    request.message(1, resources);
    request.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rejected_is_read() {
        let mut part = Message::default();
        part.number(1, 3).text(2, "too\nmany");
        let mut m = Message::default();
        m.message(1, part);
        assert_eq!(
            rejected(&m.finish()).as_deref(),
            Some("3 were rejected: too many")
        );
        assert_eq!(rejected(b""), None);
        assert_eq!(rejected(b"{}"), None);
    }

    #[test]
    fn answers_settle_when_the_next_attempt_is() {
        let of = |status| {
            let r = client::Response {
                status,
                retry_after: Some(Duration::from_secs(7)),
                body: Vec::new(),
            };
            match Outcome::of(Ok(r)) {
                Outcome::Taken(_) => None,
                Outcome::Failed { pause, .. } => pause,
                Outcome::Unanswered(_) => None,
            }
        };
        assert_eq!(of(200), None);
        assert_eq!(of(503), Some(Duration::from_secs(7)));
        assert_eq!(of(404), Some(REFUSED));
    }
}
