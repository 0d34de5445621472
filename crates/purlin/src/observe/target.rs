//! The observed emulator: its answers, and whether it still exists.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use purlin_diagnostics::json::Json;

use crate::commands::explain;
use crate::context::Context;
use crate::explain::variables;
use crate::failure::Failure;

/// Maximum share of a processor that a view may use.
const SHARE: f64 = 0.01;
/// Minimum time between two looks.
const LEAST_MS: f64 = 2000.0;
/// Number of answers that are kept, for requests that come too early.
const KEPT: usize = 16;

/// See the head of this module.
pub struct Target {
    pub pid: u32,
    context: Context,
    /// Its start time, so that another process with its number is not taken for it; `None` if the
    /// system does not report it.
    started: Option<String>,
    /// Recent answers, and until when they may be reused.
    kept: Mutex<Vec<(String, Instant, Json)>>,
}

/// The freshness of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Now,
    /// A recent answer, if a new one would cost too much.
    Soon,
}

/// The reason why there is no answer.
pub enum NoAnswer {
    /// The emulator rejects the request.
    Refused(String),
    /// The emulator does not answer.
    Silent(String),
    /// The emulator has exited.
    Ended,
}

impl Target {
    pub fn new(context: Context, pid: u32) -> Result<Target, Failure> {
        let started = started(pid);
        let target = Target {
            pid,
            context,
            started,
            kept: Mutex::default(),
        };
        explain::answer_of(pid, "observe overview")?;
        Ok(target)
    }

    /// Whether it still exists.
    pub fn is_there(&self) -> bool {
        match &self.started {
            Some(then) => started(self.pid).as_ref() == Some(then),
            None => explain::answer_of(self.pid, "observe trace").is_ok(),
        }
    }

    /// The answer to a request, with the time after which it makes sense to ask again.
    pub fn ask(&self, request: &str, wanted: Wanted) -> Result<Json, NoAnswer> {
        if wanted == Wanted::Soon
            && let Some(answer) = self.known(request)
        {
            return Ok(answer);
        }
        let began = Instant::now();
        let mut answer =
            explain::answer_of(self.pid, request).map_err(|f| match self.is_there() {
                true => NoAnswer::Silent(f.message),
                false => NoAnswer::Ended,
            })?;
        if let Some(why) = answer.get("error").and_then(Json::text) {
            return Err(NoAnswer::Refused(why.to_string()));
        }
        if !request.starts_with("observe ") {
            variables::name(&self.context, &mut answer, usize::MAX, None);
        }
        // The time that the emulator computed, if it reports it, without time spent waiting for a
        // processor.
        let computed = answer.get("cpu_ms").and_then(Json::number);
        let took = computed.unwrap_or_else(|| began.elapsed().as_secs_f64() * 1000.0);
        let again = (took / SHARE).max(LEAST_MS);
        if let Json::Object(pairs) = &mut answer {
            pairs.push(("again_ms".into(), again.into()));
        }
        let until = Instant::now() + Duration::from_secs_f64(again / 1000.0);
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        kept.retain(|(r, until, _)| r != request && *until > Instant::now());
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        // A little less, so that a client that waits for exactly this time gets a new answer.
        let slack = Duration::from_millis(LEAST_MS as u64 / 10);
        kept.push((request.to_string(), until - slack, answer.clone()));
        Ok(answer)
    }

    fn known(&self, request: &str) -> Option<Json> {
        let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        let now = Instant::now();
        let found = kept
            .iter()
            .find(|(r, until, _)| r == request && *until > now);
        found.map(|(_, _, answer)| answer.clone())
    }
}

/// When a process started, as the system counts. `None` if there is no such process, it is a
/// zombie, or the system does not report it.
fn started(pid: u32) -> Option<String> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name of the program may have any characters.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let state = *fields.first()?;
    let started = fields.get(19)?;
    (!matches!(state, "Z" | "X")).then(|| (*started).to_string())
}

/// The command line of a process, truncated.
pub fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).replace('\0', " ");
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().map(shown).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_are_there_have_a_start() {
        if !Path::new("/proc/self/stat").exists() {
            println!("skipped: the system doesn't tell of processes");
            return;
        }
        let own = std::process::id();
        assert!(started(own).is_some());
        assert_eq!(started(own), started(own));
        assert_eq!(started(u32::MAX), None);
        assert!(!command_line(own).is_empty());
    }
}
