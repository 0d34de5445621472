//! The largest holders of memory at its peak and at the end of a run, for `purlin explain run`.
//!
//! A thread watches memory usage. When usage is well above that of the last survey, or has been
//! somewhat above it for a while, processes are asked what they are and what they hold
//! (`survey.rs`). So there are few surveys even if a program grows fast, and the last one is not
//! far below the peak.

use super::{memory, survey};
use crate::json::Json;
use purlin_runtime::natives::system::memory::usage;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Interval between checks.
const EACH: Duration = Duration::from_millis(20);
/// Growth, in bytes and as a part of the total, after which processes are asked again.
const MORE: usize = 4 << 20;
const PART: usize = 8;
/// Growth in bytes after which they are asked again if the last survey was long ago.
const SOME: usize = 1 << 20;
const WHILE: Duration = Duration::from_millis(500);
/// Number of processes and tables in an answer.
const TOLD: usize = 10;

/// Memory in bytes at the last survey, and its answer.
static PEAK: Mutex<Option<(usize, Json)>> = Mutex::new(None);

fn with_bytes(bytes: usize, processes: Json) -> Json {
    Json::object([
        ("allocated_bytes", bytes.into()),
        ("processes", processes),
        ("tables", memory::tables(TOLD)),
    ])
}

/// Starts to watch.
pub fn watch() {
    let looks = || {
        let mut last = 0;
        let mut asked = Instant::now();
        loop {
            std::thread::sleep(EACH);
            let now = usage().total;
            if last == 0 {
                last = now;
            }
            let much = now > last + last / PART && now > last + MORE;
            if much || (now > last + SOME && asked.elapsed() > WHILE) {
                last = now;
                asked = Instant::now();
                let told = with_bytes(now, survey::holders(TOLD));
                if let Ok(mut peak) = PEAK.lock() {
                    *peak = Some((now, told));
                }
            }
        }
    };
    // Without a thread, the peak is not reported.
    let _ = std::thread::Builder::new()
        .name("holders".into())
        .spawn(looks);
}

/// The survey at the peak, and one of now. Nothing runs any more.
pub fn at_end() -> Json {
    let end = usage().total;
    let processes = survey::holders_at_end(TOLD);
    let peak = PEAK.try_lock().ok().and_then(|mut p| p.take());
    // If the peak was no higher than the end, it is reported once.
    let peak = peak.filter(|(bytes, _)| *bytes > end).map(|(_, told)| told);
    Json::object([
        ("end", with_bytes(end, processes)),
        ("peak", peak.unwrap_or(Json::Null)),
    ])
}
