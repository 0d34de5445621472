//! The story of a record of the last minute, in sentences.

use std::fmt::Write as _;

use purlin_diagnostics::json::Json;
use purlin_diagnostics::recorder::format::Recording;
use purlin_runtime::clock::DateTime;

use super::text::{bytes, count, line};
use super::{number, place, word};

/// Milliseconds of the story before the end, unless `--all` asks for everything.
const MINUTE: f64 = 60_000.0;
/// Share of all memory from which a process or table is named in each second, in percent.
const MUCH: f64 = 10.0;
/// Growth of a process in a second that the story has, in bytes.
const GREW: f64 = (4 << 20) as f64;

/// Tells the story: its last minute, with `top` lines of each second at most.
pub fn story(r: &Recording, top: usize) -> String {
    let mut text = String::new();
    let end = r.records.iter().map(time).fold(0.0, f64::max);
    let clock = Clock(number(&r.head, &["began_ms"]));
    line(
        &mut text,
        format_args!(
            "Process {}, Purlin {} with OTP {}, ran for {} and {}.",
            number(&r.head, &["pid"]),
            word(&r.head, &["purlin"]),
            word(&r.head, &["otp"]),
            duration(end),
            match r.head.get("halted") {
                Some(Json::Bool(true)) => "halted with a slogan, or aborted",
                _ => "ended without a halt: it was killed, or crashed",
            },
        ),
    );
    line(
        &mut text,
        format_args!(
            "It began {} {}; the last record is of {} {}.",
            clock.date(0.0),
            clock.time(0.0),
            clock.date(end),
            clock.time(end),
        ),
    );
    if r.records.is_empty() {
        text.push_str("Nothing was recorded: it ended within its first second.\n");
        return text;
    }
    verdict(&mut text, r);
    text.push('\n');
    let mut second = Vec::new();
    for record in r.records.iter().filter(|x| time(x) >= end - MINUTE) {
        match word(record, &["e"]) {
            "second" => {
                events(&mut text, &clock, &mut second, top);
                summary(&mut text, &clock, record);
            }
            _ => second.push(record),
        }
    }
    events(&mut text, &clock, &mut second, top);
    text
}

/// Milliseconds since the start.
fn time(record: &Json) -> f64 {
    number(record, &["t"])
}

/// The time of day of the run.
struct Clock(f64);

impl Clock {
    fn at(&self, t: f64) -> DateTime {
        let seconds = ((self.0 + t) / 1000.0) as i64;
        DateTime::local(seconds).unwrap_or_else(|| DateTime::from_posix(seconds))
    }
    fn date(&self, t: f64) -> String {
        let d = self.at(t);
        format!("{:04}-{:02}-{:02}", d.year, d.month, d.day)
    }
    fn time(&self, t: f64) -> String {
        let d = self.at(t);
        format!("{:02}:{:02}:{:02}", d.hour, d.minute, d.second)
    }
}

fn duration(ms: f64) -> String {
    let s = ms / 1000.0;
    match s {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A process: its name or initial function, and its pid.
fn process(p: Option<&Json>) -> String {
    let Some(p) = p else {
        return "a process".into();
    };
    let pid = word(p, &["pid"]);
    match (word(p, &["name"]), word(p, &["initial"])) {
        ("", "") => pid.to_string(),
        ("", initial) => format!("{pid} ({initial})"),
        (name, _) => format!("`{name}` {pid}"),
    }
}

/// ` by FUNCTION, FILE line N`, if the place is known.
fn by(p: Option<&Json>) -> String {
    match p {
        Some(p) if !word(p, &["function"]).is_empty() => match number(p, &["line"]) {
            0.0 => format!(" by `{}`", word(p, &["function"])),
            _ => format!(
                " by `{}` line {} ({})",
                word(p, &["function"]),
                number(p, &["line"]),
                word(p, &["file"])
            ),
        },
        _ => String::new(),
    }
}

/// One sentence on what the end looks like, if it looks like something.
fn verdict(text: &mut String, r: &Recording) {
    if let Some(f) = r.records.iter().rev().find(|x| word(x, &["e"]) == "fault") {
        line(
            text,
            format_args!(
                "A native library failed with {}: `{}` of {}, called by {}.",
                word(f, &["signal"]),
                word(f, &["function"]),
                word(f, &["library"]),
                process(f.get("p")),
            ),
        );
    }
    let Some(last) = r.records.iter().rev().find(|x| word(x, &["e"]) == "second") else {
        return;
    };
    let (resident, limit) = (number(last, &["resident"]), number(last, &["limit"]));
    if limit > 0.0 && resident >= 0.9 * limit {
        line(
            text,
            format_args!(
                "It had {} of its memory limit of {}.",
                bytes(resident),
                bytes(limit)
            ),
        );
    }
}

/// The summary of a second.
fn summary(text: &mut String, clock: &Clock, s: &Json) {
    let n = |name: &str| number(s, &[name]);
    let mut l = format!(
        "{}  At the end of the second: {} resident, {} processes ({} started, {} ended), {} ready, {} collections",
        clock.time(time(s)),
        bytes(n("resident")),
        count(n("processes")),
        count(n("started")),
        count(n("ended")),
        count(n("ready")),
        count(n("collections")),
    );
    if n("left_out") > 0.0 {
        let _ = write!(l, "; {} events left out", count(n("left_out")));
    }
    line(text, l);
    let total = n("total").max(n("resident")).max(1.0);
    for h in s.get("top").map_or(&[][..], Json::list) {
        let held = number(h, &["heap"]) + number(h, &["binaries"]) + number(h, &["message_bytes"]);
        let share = 100.0 * held / total;
        let grew = number(h, &["grew"]);
        let messages = number(h, &["messages"]);
        if share < MUCH && grew < GREW && messages < 1.0 {
            continue;
        }
        let mut l = format!(
            "          {} held {:.0} % ({}",
            process(h.get("p")),
            share.min(100.0),
            bytes(held)
        );
        if messages > 0.0 {
            let _ = write!(l, ", {} messages", count(messages));
        }
        let does = word(h, &["does"]);
        let _ = match does {
            "" => write!(l, ")"),
            does => write!(l, ", {does})"),
        };
        if grew >= GREW {
            let _ = write!(l, "; it grew by {}{}", bytes(grew), by(h.get("at")));
        }
        line(text, l);
    }
    if let Some(t) = s.get("table") {
        let held = number(t, &["bytes"]);
        if 100.0 * held / total >= MUCH {
            line(
                text,
                format_args!(
                    "          table `{}` of {} held {:.0} % ({}, {} objects)",
                    word(t, &["name"]),
                    process(t.get("owner")),
                    (100.0 * held / total).min(100.0),
                    bytes(held),
                    count(number(t, &["objects"])),
                ),
            );
        }
    }
}

/// Tells the events of a second in their order: `top` rare ones, and a third as many beginnings
/// and ends.
fn events(text: &mut String, clock: &Clock, second: &mut Vec<&Json>, top: usize) {
    let usual = |e: &Json| match word(e, &["e"]) {
        "start" => true,
        "end" => word(e, &["reason"]) == "normal",
        _ => false,
    };
    second.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let mut left = [top, top.div_ceil(3)];
    let mut more = [0; 2];
    for e in second.drain(..) {
        let part = usize::from(usual(e));
        match left[part].checked_sub(1) {
            None => more[part] += 1,
            Some(n) => {
                left[part] = n;
                let sentence = sentence(e);
                line(text, format_args!("{}  {sentence}", clock.time(time(e))));
            }
        }
    }
    for (more, kind) in more.into_iter().zip(["events", "beginnings and ends"]) {
        if more > 0 {
            line(text, format_args!("          and {more} more {kind}"));
        }
    }
}

/// The sentence on an event.
fn sentence(e: &Json) -> String {
    let p = process(e.get("p"));
    let ms = number(e, &["ms"]);
    let n = |name: &str| number(e, &[name]);
    match word(e, &["e"]) {
        "start" => format!("{p} started, by {}", process(e.get("by"))),
        "restart" => format!(
            "{} restarted {} as {p}, {ms} ms after its end",
            process(e.get("by")),
            process(e.get("of"))
        ),
        "end" => {
            let why = match (word(e, &["text"]), word(e, &["reason"])) {
                ("", "") => " with a reason of its own".into(),
                ("", "normal") => String::new(),
                ("", class) => format!(" with `{class}`"),
                (text, _) => format!(" with {text}"),
            };
            let heap = match n("heap") {
                heap if heap >= (1 << 20) as f64 => format!("; its heap had {}", bytes(heap)),
                _ => String::new(),
            };
            format!("{p} ended{why}{}{heap}", raised(e.get("at")))
        }
        "collection" => {
            let binaries = match n("binaries") {
                0.0 => String::new(),
                b => format!(" and {} of binaries", bytes(b)),
            };
            format!(
                "{p} was collected in {ms} ms; it kept a heap of {}{binaries}",
                bytes(n("heap"))
            )
        }
        "wait" => {
            let what = match word(e, &["for"]) {
                "ready" => "a scheduler",
                "busy" => "a port or a node that took no more",
                "dirty_queue" => "a dirty thread",
                "lock" => "a lock",
                other => other,
            };
            format!("{p} waited {ms} ms for {what}{}", raised(e.get("at")))
        }
        "mailbox" => format!(
            "{p} had {} unread messages ({})",
            count(n("messages")),
            bytes(n("bytes"))
        ),
        "slice" => format!("{p} kept scheduler {} for {ms} ms and more", n("scheduler")),
        "fault" => format!(
            "{p} called `{}` of {}, which failed with {}",
            word(e, &["function"]),
            word(e, &["library"]),
            word(e, &["signal"])
        ),
        other => format!("an event of another kind: {other}"),
    }
}

/// ` in PLACE`, if it is known.
fn raised(site: Option<&Json>) -> String {
    match site {
        Some(s) if !word(s, &["function"]).is_empty() => format!(" in {}", place(s)),
        _ => String::new(),
    }
}

pub fn json(r: &Recording) -> Json {
    Json::object([
        ("schema", "purlin-record/1".into()),
        ("run", r.head.clone()),
        ("is_part", r.is_part.into()),
        ("records", Json::List(r.records.clone())),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::at;
    use super::*;
    use purlin_diagnostics::json::parse;

    #[test]
    fn the_story_names_holders_lines_and_restarts() {
        let head = parse(r#"{"pid": 7, "began_ms": 1000, "purlin": "1", "otp": "25"}"#);
        let records = [
            r#"{"t": 100, "e": "end", "p": {"pid": "<0.9.0>", "initial": "shop:init/1"},
                "reason": "badarith", "at": {"function": "shop:put/2", "file": "shop.erl", "line": 8}}"#,
            r#"{"t": 103, "e": "restart", "p": {"pid": "<0.10.0>", "initial": "shop:init/1"},
                "by": {"pid": "<0.8.0>", "name": "shop_sup"}, "of": {"pid": "<0.9.0>"}, "ms": 3}"#,
            r#"{"t": 1000, "e": "second", "resident": 100000000, "total": 90000000, "processes": 1234,
                "top": [{"p": {"pid": "<0.10.0>", "name": "shop_cache"}, "heap": 61000000,
                "does": "running", "grew": 20000000,
                "at": {"function": "shop_cache:put/2", "file": "shop_cache.erl", "line": 88}}]}"#,
        ];
        let r = Recording {
            head: head.expect("is JSON"),
            records: records.iter().map(|r| parse(r).expect("is JSON")).collect(),
            is_part: false,
        };
        let text = story(&r, 10);
        for sentence in [
            "Process 7, Purlin 1 with OTP 25, ran for 1.0 s and ended without a halt",
            "<0.9.0> (shop:init/1) ended with `badarith` in shop.erl:8, shop:put/2",
            "`shop_sup` <0.8.0> restarted <0.9.0> as <0.10.0> (shop:init/1), 3 ms after its end",
            "1,234 processes",
            "`shop_cache` <0.10.0> held 61 %",
            "by `shop_cache:put/2` line 88 (shop_cache.erl)",
        ] {
            assert!(text.contains(sentence), "{sentence} in\n{text}");
        }
        assert_eq!(
            at(&json(&r), &["run", "pid"]).and_then(Json::number),
            Some(7.0)
        );
    }
}
