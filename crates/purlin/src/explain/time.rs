//! Answers about computing, waiting, writing and collecting, as text.

use std::fmt::Write as _;

use purlin_diagnostics::json::Json;
use purlin_measure::Unit;

use super::text::{bytes, count, line, rest};
use super::{at, number, site, word};

fn seconds(n: f64) -> String {
    match n {
        0.0 => "0 s".into(),
        n => Unit::Seconds.shown(n),
    }
}

fn causes(part: &Json) -> &[Json] {
    part.get("causes").map_or(&[][..], Json::list)
}

fn about(cause: &Json) -> &'static str {
    match at(cause, &["estimated"]) {
        Some(Json::Bool(true)) => "about ",
        _ => "",
    }
}

fn left_out(part: &Json, top: usize) -> f64 {
    number(part, &["left_out"]) + causes(part).len().saturating_sub(top) as f64
}

fn advice(text: &mut String, cause: &Json) {
    if let Some(advice) = at(cause, &["advice"]).and_then(Json::text) {
        line(text, format_args!("    Do: {advice}"));
    }
}

pub fn work(text: &mut String, part: &Json, top: usize) {
    let list = causes(part);
    let sampled = number(part, &["sampled_reductions"]).max(1.0);
    line(
        text,
        format_args!(
            "Computed: {} reductions; where, by samples:",
            count(number(part, &["reductions"]))
        ),
    );
    for (i, cause) in list.iter().take(top).enumerate() {
        let n = number(cause, &["reductions"]);
        line(
            text,
            format_args!(
                "{:>2}. {:.0}% ({} samples) at {}",
                i + 1,
                100.0 * n / sampled,
                count(number(cause, &["times"])),
                site(cause)
            ),
        );
    }
    rest(text, left_out(part, top), "places");
}

/// The cause of a wait, in words.
fn waited(kind: &str) -> &str {
    match kind {
        "ready" => "ready to run, until a scheduler came",
        "receive" => "for a message",
        "connection" => "for the other side of a connection, or a file",
        "idle" => "for whatever comes",
        "busy" => "for a port or connection that takes no more",
        "dirty_queue" => "for a dirty thread",
        "lock" => "for a table or port that others used",
        other => other,
    }
}

/// Characters of the longest bar.
const BAR: f64 = 40.0;

/// Waits of one kind by duration, from the shortest to the longest that occurred.
fn histogram(text: &mut String, total: &Json) {
    let Some(Json::List(lengths)) = total.get("lengths") else {
        return;
    };
    let n: Vec<f64> = lengths.iter().map(|l| l.number().unwrap_or(0.0)).collect();
    let (Some(first), Some(last)) = (
        n.iter().position(|&n| n > 0.0),
        n.iter().rposition(|&n| n > 0.0),
    ) else {
        return;
    };
    let (sum, most) = (n.iter().sum::<f64>(), n.iter().copied().fold(0.0, f64::max));
    for (i, &n) in n.iter().enumerate().take(last + 1).skip(first) {
        let below = match i + 1 == lengths.len() {
            true => "longer".to_string(),
            false => format!("below {}", seconds((1u64 << i) as f64 / 1e6)),
        };
        // Anything above zero is visible.
        let bar = (BAR * n / most).ceil() as usize;
        let row = format!(
            "    {below:>16} {:>11} {:>5.1}% {}",
            count(n),
            100.0 * n / sum,
            "#".repeat(bar)
        );
        line(text, row);
    }
}

pub fn latency(text: &mut String, part: &Json, top: usize) {
    let schedulers = number(part, &["schedulers"]);
    line(
        text,
        format_args!("Waits, by samples ({} schedulers):", count(schedulers)),
    );
    if let Some(Json::Object(totals)) = part.get("totals") {
        for (kind, t) in totals {
            let of = |name: &str| number(t, &[name]);
            line(
                text,
                format_args!(
                    "    {:<12} {:>10} in {:>11} waits; half below {}, 99% below {}, longest {}",
                    kind,
                    seconds(of("seconds")),
                    count(of("times")),
                    seconds(of("half_below_s")),
                    seconds(of("p99_below_s")),
                    seconds(of("longest_s"))
                ),
            );
        }
    }
    if let Some(ready) = part.get("totals").and_then(|t| t.get("ready")) {
        line(text, "    Ready, until a scheduler came, by how long:");
        histogram(text, ready);
    }
    let queued = number(part, &["now", "run_queues"]);
    if queued > 0.0 {
        line(
            text,
            format_args!("    {} processes are ready now", count(queued)),
        );
    }
    for (i, cause) in causes(part).iter().take(top).enumerate() {
        let kind = word(cause, &["kind"]);
        line(text, "");
        line(
            text,
            format_args!(
                "{:>2}. {}{} {} at {}",
                i + 1,
                about(cause),
                seconds(number(cause, &["seconds"])),
                waited(kind),
                site(cause)
            ),
        );
        let times = number(cause, &["times"]);
        line(
            text,
            format_args!(
                "    {}{} waits, the longest {}",
                about(cause),
                count(times),
                seconds(number(cause, &["longest_s"]))
            ),
        );
        advice(text, cause);
    }
    rest(text, left_out(part, top), "places");
}

pub fn writes(text: &mut String, part: &Json, top: usize) {
    line(
        text,
        format_args!(
            "Written: {} in {} system calls, {} parts; copied together from small pieces: {}; kept for later: {}",
            bytes(number(part, &["bytes"])),
            count(number(part, &["calls"])),
            count(number(part, &["parts"])),
            bytes(number(part, &["merged_bytes"])),
            bytes(number(part, &["queued_bytes"])),
        ),
    );
    for (i, cause) in causes(part).iter().take(top).enumerate() {
        let of = |name: &str| number(cause, &[name]);
        line(
            text,
            format_args!(
                "{:>2}. {}{} at {}",
                i + 1,
                about(cause),
                bytes(of("bytes")),
                site(cause)
            ),
        );
        let mut details = format!(
            "    {}{} writes, {} system calls, {} parts; {} of it was copied together",
            about(cause),
            count(of("times")),
            count(of("calls")),
            count(of("parts")),
            bytes(of("merged_bytes"))
        );
        if of("queued_bytes") > 0.0 {
            let _ = write!(details, "; {} had to wait", bytes(of("queued_bytes")));
        }
        line(text, details);
        advice(text, cause);
    }
    rest(text, left_out(part, top), "places");
}

pub fn collections(text: &mut String, part: &Json, top: usize) {
    line(
        text,
        format_args!(
            "Kept by collections, by samples: {}",
            bytes(number(part, &["bytes"]))
        ),
    );
    for (i, cause) in causes(part).iter().take(top).enumerate() {
        let times = number(cause, &["times"]);
        let n = number(cause, &["bytes"]);
        line(
            text,
            format_args!(
                "{:>2}. {} in about {} collections, {} each, at {}",
                i + 1,
                bytes(n),
                count(times),
                bytes(n / times.max(1.0)),
                site(cause)
            ),
        );
    }
    rest(text, left_out(part, top), "places");
}
