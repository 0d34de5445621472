//! Who held most when a run took most memory, and who does at its end: what `purlin explain run` tells.
//!
//! A thread of its own looks how much memory there is. Each time that it is a good part more than when it asked last, or has been more
//! for a while, processes are asked who they are and what they hold (`survey.rs`). So there are few surveys, however fast a program grows, and
//! the last one is not far below the peak.

use super::{memory, survey};
use crate::bif::memory::usage;
use crate::json::Json;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often is looked.
const EACH: Duration = Duration::from_millis(20);
/// Bytes, and the part of all, that there have to be more for processes to be asked again.
const MORE: usize = 4 << 20;
const PART: usize = 8;
/// Bytes that there have to be more if they were asked so long ago.
const SOME: usize = 1 << 20;
const WHILE: Duration = Duration::from_millis(500);
/// Processes and tables that are told.
const TOLD: usize = 10;

/// Bytes when processes were last asked, and their answer.
static PEAK: Mutex<Option<(usize, Json)>> = Mutex::new(None);

fn with_bytes(bytes: usize, processes: Json) -> Json {
    Json::object([
        ("allocated_bytes", bytes.into()),
        ("processes", processes),
        ("tables", memory::tables(TOLD)),
    ])
}

/// Looks from now on.
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
    // Where there can be no thread, nothing is told of the peak.
    let _ = std::thread::Builder::new()
        .name("holders".into())
        .spawn(looks);
}

/// What has been seen, and what there is now. Nothing runs after it.
pub fn at_end() -> Json {
    let end = usage().total;
    let processes = survey::holders_at_end(TOLD);
    let peak = PEAK.try_lock().ok().and_then(|mut p| p.take());
    // What is left at the end was not more before: told once.
    let peak = peak.filter(|(bytes, _)| *bytes > end).map(|(_, told)| told);
    Json::object([
        ("end", with_bytes(end, processes)),
        ("peak", peak.unwrap_or(Json::Null)),
    ])
}
