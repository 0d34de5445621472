//! Answers as text: causes, worst first, each with its line and advice.

use std::fmt::Write as _;

use purlin_diagnostics::json::Json;
use purlin_measure::Unit;

use super::{at, budget_text, leaks, machine_code, number, place, site, snapshots, time, word};

/// A number of bytes for people to read.
pub fn bytes(n: f64) -> String {
    match n {
        n if n < 1024.0 => format!("{n:.0} bytes"),
        n => Unit::Bytes.shown(n),
    }
}

/// A count with separators.
pub fn count(n: f64) -> String {
    let digits = format!("{n:.0}");
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// Where the last minute is recorded.
fn recorder(text: &mut String, answer: &Json) {
    match word(answer, &["file"]) {
        "" => line(
            text,
            format_args!("Nothing is recorded: {}", word(answer, &["why_not"])),
        ),
        file => {
            line(
                text,
                format_args!(
                    "The last minute is recorded in {file} ({}; {} written so far)",
                    bytes(number(answer, &["size_bytes"])),
                    bytes(number(answer, &["written_bytes"])),
                ),
            );
            let why = word(answer, &["why_not"]);
            if !why.is_empty() {
                line(text, format_args!("It has stopped: {why}"));
            }
        }
    }
}

/// Writes text without characters that a terminal cannot show.
pub(super) fn line(text: &mut String, shown: impl std::fmt::Display) {
    let clean = shown.to_string().replace(|c: char| c.is_control(), "?");
    text.push_str(clean.trim_end());
    text.push('\n');
}

pub fn shown(answer: &Json, top: usize) -> String {
    let mut text = String::new();
    match word(answer, &["topic"]) {
        "memory" => {
            kinds(&mut text, answer);
            processes(&mut text, answer, top, "memory_bytes");
            tables(&mut text, answer, top);
            parts(&mut text, answer);
        }
        "copies" => copies(&mut text, answer, top),
        "allocation" => allocation(&mut text, answer, top),
        "latency" => time::latency(&mut text, answer, top),
        "writes" => time::writes(&mut text, answer, top),
        "work" => time::work(&mut text, answer, top),
        "collections" => time::collections(&mut text, answer, top),
        "machine_code" => machine_code::machine_code(&mut text, answer, top),
        "recorder" => recorder(&mut text, answer),
        "budgets" => budget_text::budgets(&mut text, answer, top),
        "heap" => snapshots::holders(&mut text, answer, top),
        "leaks" => leaks::leaks(&mut text, answer, top),
        "mailbox" => {
            processes(&mut text, answer, top, "messages");
        }
        "binaries" => {
            line(
                &mut text,
                format_args!("Binaries: {} in all", bytes(number(answer, &["bytes"]))),
            );
            held(&mut text, answer, top);
            processes(&mut text, answer, top, "binary_bytes");
        }
        "run" => {
            let empty = Json::Null;
            let part = |name: &str| answer.get(name).unwrap_or(&empty).clone();
            // The report has every topic, so most of its lists are shorter.
            let (half, fourth) = (top.div_ceil(2), top.div_ceil(4));
            most(&mut text, answer);
            copies(&mut text, &part("copies"), top);
            allocation(&mut text, &part("allocation"), half);
            let some = |p: &Json| p.get("causes").is_some_and(|c| !c.list().is_empty());
            let work = part("work");
            if some(&work) {
                time::work(&mut text, &work, half);
            }
            let latency = part("latency");
            if some(&latency) {
                time::latency(&mut text, &latency, half);
            }
            let writes = part("writes");
            if some(&writes) {
                time::writes(&mut text, &writes, fourth);
            }
            kinds(&mut text, &part("memory"));
            for (when, words) in [("peak", "At the peak"), ("end", "At the end")] {
                holders(&mut text, at(answer, &["holders", when]), words, half);
            }
            started(&mut text, answer);
            parts(&mut text, &part("memory"));
        }
        "profile" => line(
            &mut text,
            "Stacks are shown by --collapsed, --speedscope and --pprof",
        ),
        other => line(
            &mut text,
            format_args!("An answer about '{other}' has no form as text here"),
        ),
    }
    if at(answer, &["accounts"]) == Some(&Json::Bool(false)) {
        line(&mut text, "No accounts were kept: +Fexplain false.");
    }
    text
}

/// Minimum share of copies, allocations, collections or work for a line to be at the top of the
/// report.
const LEADING_SHARE: f64 = 0.1;
/// Minimum share of the run's time for a wait to be at the top of the report.
const LEADING_WAIT: f64 = 0.1;

/// Shows the program's own line with the most of each kind, if that is much. Costs of the system's
/// start are left out.
fn most(text: &mut String, answer: &Json) {
    let mut rows = Vec::new();
    let own = |part: &str| {
        let causes = at(answer, &[part, "causes"]).map_or(&[][..], Json::list);
        causes
            .iter()
            .filter(|c| c.get("own") == Some(&Json::Bool(true)))
    };
    let share = |n: f64, all: f64| (n > 0.0 && n >= LEADING_SHARE * all).then_some(100.0 * n / all);
    // Moving to a region copies once.
    let copied = |c: &Json| number(c, &["bytes"]) + number(c, &["moved_bytes"]);
    let all =
        number(answer, &["copies", "bytes"]) + number(answer, &["copies", "totals", "moved_bytes"]);
    if let Some(c) = own("copies").max_by(|a, b| copied(a).total_cmp(&copied(b)))
        && let Some(part) = share(copied(c), all)
    {
        rows.push((
            "copied",
            format!("{} ({part:.0}%)", bytes(copied(c))),
            site(c),
        ));
    }
    for (what, part, field, sum) in [
        ("allocated", "allocation", "bytes", "bytes"),
        ("kept by collections", "collections", "bytes", "bytes"),
        ("computed", "work", "reductions", "sampled_reductions"),
        ("written", "writes", "bytes", "bytes"),
    ] {
        if let Some(c) = own(part).next()
            && let n = number(c, &[field])
            && let Some(part) = share(n, number(answer, &[part, sum]))
        {
            let n = match field {
                "bytes" => format!("{} ({part:.0}%)", bytes(n)),
                _ => format!("{part:.0}%"),
            };
            rows.push((what, n, site(c)));
        }
    }
    // A wait for a message is mostly explained by what computes meanwhile.
    let held_up = |c: &&Json| !["receive", "idle"].contains(&word(c, &["kind"]));
    if let Some(c) = own("latency").find(held_up)
        && number(c, &["seconds"]) >= LEADING_WAIT * number(answer, &["uptime_s"])
        && number(c, &["seconds"]) > 0.0
    {
        let n = Unit::Seconds.shown(number(c, &["seconds"]));
        rows.push(("waited", format!("{n}, {}", word(c, &["kind"])), site(c)));
    }
    if rows.is_empty() {
        return;
    }
    line(text, "The program's own lines with the most:");
    for (what, n, site) in rows {
        line(text, format_args!("    {what:<20} {n} at {site}"));
    }
    text.push('\n');
}

fn copies(text: &mut String, part: &Json, top: usize) {
    let list = part.get("causes").map_or(&[][..], Json::list);
    let total = number(part, &["bytes"]);
    let left_out = number(part, &["left_out"]) + list.len().saturating_sub(top) as f64;
    line(
        text,
        format_args!(
            "Copied: {}; moved to shared regions: {}; shared without a copy: {}",
            bytes(total),
            bytes(number(part, &["totals", "moved_bytes"])),
            bytes(number(part, &["totals", "shared_bytes"])),
        ),
    );
    for (i, cause) in list.iter().take(top).enumerate() {
        line(text, "");
        one_copy(text, i + 1, cause, total);
    }
    rest(text, left_out, "places");
}

pub(super) fn rest(text: &mut String, left_out: f64, what: &str) {
    if left_out > 0.0 {
        line(
            text,
            format_args!(
                "\u{20}   {} more {what}: --top N shows more",
                count(left_out)
            ),
        );
    }
    text.push('\n');
}

fn one_copy(text: &mut String, rank: usize, cause: &Json, total: f64) {
    let copied = number(cause, &["bytes"]);
    let (moved, shared) = (
        number(cause, &["moved_bytes"]),
        number(cause, &["shared_bytes"]),
    );
    let times = number(cause, &["times"]);
    let about = match at(cause, &["estimated"]) {
        Some(Json::Bool(true)) => "about ",
        _ => "",
    };
    let doing = match word(cause, &["kind"]) {
        "spawn" => "processes started",
        "message" => "messages sent",
        "exit" => "exit reasons sent",
        "timer" => "timers started",
        "table_in" => "objects inserted",
        "table_out" => "objects read from tables",
        "process_info" => "looks at a process",
        _ => "times",
    };
    let mut head = match copied > 0.0 {
        true => format!("{rank:>2}. {about}{} copied", bytes(copied)),
        false => format!("{rank:>2}. nothing copied"),
    };
    if total > 0.0 && copied > 0.0 {
        let _ = write!(head, " ({:.0}%)", 100.0 * copied / total);
    }
    line(text, format_args!("{head} at {}", site(cause)));
    let mut details = format!("    {}{} {doing}", about, count(times));
    if copied > 0.0 && times > 0.0 {
        let _ = write!(details, ", {} each", bytes(copied / times));
    }
    if moved > 0.0 {
        let _ = write!(details, "; {} moved to shared regions, once", bytes(moved));
    }
    if shared > 0.0 {
        let _ = write!(details, "; {} shared", bytes(shared));
    }
    line(text, details);
    if let Some(captured) = at(cause, &["captured"]).filter(|c| **c != Json::Null) {
        let variables = captured.get("variables").map_or(&[][..], Json::list);
        let names: Vec<String> = variables
            .iter()
            .filter_map(Json::text)
            .map(|n| format!("`{n}`"))
            .collect();
        let variable = match names.len() {
            0 => {
                let (index, count) = (number(captured, &["index"]), number(captured, &["count"]));
                format!("variable {} of {count}", index + 1.0)
            }
            _ => names.join(" or "),
        };
        line(
            text,
            format_args!(
                "    {variable}, captured by {}, is {} of it",
                word(captured, &["function"]),
                bytes(number(captured, &["bytes"]))
            ),
        );
    }
    if let Some(advice) = at(cause, &["advice"]).and_then(Json::text) {
        line(text, format_args!("    Do: {advice}"));
    }
}

fn allocation(text: &mut String, part: &Json, top: usize) {
    let list = part.get("causes").map_or(&[][..], Json::list);
    let total = number(part, &["bytes"]);
    line(
        text,
        format_args!("Allocated on heaps, by samples: {}", bytes(total)),
    );
    for (i, cause) in list.iter().take(top).enumerate() {
        let n = number(cause, &["bytes"]);
        let share = 100.0 * n / total.max(1.0);
        let samples = count(number(cause, &["times"]));
        line(
            text,
            format_args!(
                "{:>2}. {} ({share:.0}%, {samples} samples) at {}",
                i + 1,
                bytes(n),
                site(cause)
            ),
        );
    }
    let left_out = number(part, &["left_out"]) + list.len().saturating_sub(top) as f64;
    rest(text, left_out, "places");
}

fn kinds(text: &mut String, answer: &Json) {
    let resident = number(answer, &["resident_bytes"]);
    line(
        text,
        format_args!(
            "Resident: {}, at most {}; allocated: {}",
            bytes(resident),
            bytes(number(answer, &["peak_bytes"])),
            bytes(number(answer, &["allocated_bytes"]))
        ),
    );
    if let Some(Json::Object(kinds)) = answer.get("kinds") {
        let mut kinds: Vec<(&str, f64)> = kinds
            .iter()
            .map(|(name, n)| (name.as_str(), n.number().unwrap_or(0.0)))
            .collect();
        kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (name, n) in kinds {
            line(
                text,
                format_args!("    {:<16}{:>12}", name.replace('_', " "), bytes(n)),
            );
        }
    }
    text.push('\n');
}

/// The number of processes, and the peak divided by it.
fn started(text: &mut String, answer: &Json) {
    let of = |name: &str| number(answer, &["processes", name]);
    let (most, peak) = (of("most"), number(answer, &["memory", "peak_bytes"]));
    if most < 1.0 {
        return;
    }
    let mut told = format!(
        "Processes: {} started, at most {} at a time",
        count(of("started")),
        count(most)
    );
    if most >= MANY {
        let _ = write!(
            told,
            "; the peak is {} for each of these",
            bytes(peak / most)
        );
    }
    line(text, told);
    text.push('\n');
}

/// Number of processes from which on the memory per process is meaningful.
const MANY: f64 = 1000.0;

/// The table of accounted memory, compared with resident memory.
fn parts(text: &mut String, answer: &Json) {
    let Some(Json::Object(_)) = answer.get("parts") else {
        return;
    };
    let of = |name: &str| number(answer, &["parts", name]);
    line(
        text,
        format_args!("{:<28}{:>12}{:>12}", "Memory", "known", "resident"),
    );
    let rows = at(answer, &["parts", "rows"]).map_or(&[][..], Json::list);
    for row in rows {
        line(
            text,
            format_args!(
                "    {:<24}{:>12}{:>12}",
                word(row, &["what"]).replace('_', " "),
                bytes(number(row, &["known_bytes"])),
                bytes(number(row, &["resident_bytes"]))
            ),
        );
    }
    line(
        text,
        format_args!(
            "    {:<24}{:>12}{:>12}  {:+.1}%",
            "sum",
            bytes(of("known_bytes")),
            bytes(of("resident_bytes")),
            of("difference_percent")
        ),
    );
}

/// The held binaries and regions, and the paths to them.
fn held(text: &mut String, answer: &Json, top: usize) {
    let list = answer.get("held").map_or(&[][..], Json::list);
    for (i, row) in list.iter().take(top).enumerate() {
        let of = |name: &str| number(row, &[name]);
        let mut what = format!("{} {}", bytes(of("bytes")), word(row, &["what"]));
        if row.get("used_bytes").and_then(Json::number).is_some() {
            let _ = write!(what, ", of which {} are used", bytes(of("used_bytes")));
        }
        line(
            text,
            format_args!("{:>2}. {what}, held by {}", i + 1, word(row, &["holder"])),
        );
        let path = row.get("path").map_or(&[][..], Json::list);
        let path: Vec<&str> = path.iter().filter_map(Json::text).collect();
        line(text, format_args!("    {}", path.join(" -> ")));
        if of("holders") > 1.0 {
            line(
                text,
                format_args!("    and by {} others", count(of("holders") - 1.0)),
            );
        }
        if let Some(advice) = row.get("advice").and_then(Json::text) {
            line(text, format_args!("    Do: {advice}"));
        }
    }
    if answer.get("held_more") == Some(&Json::Bool(true)) {
        line(
            text,
            "    Not everything was looked through: there may be more, and shorter ways.",
        );
    }
    text.push('\n');
}

fn processes(text: &mut String, answer: &Json, top: usize, by: &str) {
    let Some(p) = answer.get("processes") else {
        return;
    };
    let number = |path: &[&str]| number(p, path);
    let mut head = format!(
        "Processes: {}, {}; {} messages wait, {}",
        count(number(&["count"])),
        bytes(number(&["memory_bytes"])),
        count(number(&["messages"])),
        bytes(number(&["message_bytes"]))
    );
    if number(&["asked"]) < number(&["count"]) {
        let _ = write!(head, "; {} of them were asked", count(number(&["asked"])));
    }
    if number(&["silent"]) > 0.0 {
        let _ = write!(head, "; {} did not answer", count(number(&["silent"])));
    }
    line(text, head);
    let list = p.get("top").map_or(&[][..], Json::list);
    for (i, row) in list.iter().take(top).enumerate() {
        let of = |name: &str| super::number(row, &[name]);
        let what = match by {
            "messages" => format!(
                "{} messages, {}",
                count(of("messages")),
                bytes(of("message_bytes"))
            ),
            by => bytes(of(by)),
        };
        let name = match word(row, &["name"]) {
            "" => String::new(),
            name => format!(" {name}"),
        };
        line(
            text,
            format_args!(
                "{:>2}. {what}: {}{name}, started with {}",
                i + 1,
                word(row, &["pid"]),
                word(row, &["initial_call"])
            ),
        );
        let now = place(row.get("current").unwrap_or(&Json::Null));
        let mut details = format!("    is at {now}");
        for (name, words) in [
            ("heap_bytes", "heap"),
            ("binary_bytes", "binaries"),
            ("region_bytes", "shared regions"),
        ] {
            if of(name) >= 1024.0 {
                let _ = write!(details, "; {words} {}", bytes(of(name)));
            }
        }
        line(text, details);
        let advice = match by {
            "messages" if of("messages") >= 1000.0 => {
                "it gets more than it does: bound what is sent to it, or let several share the work"
            }
            "binary_bytes" if of("binary_bytes") >= 1048576.0 => {
                "if it keeps small parts of large binaries, copy those (binary:copy/1) before they are stored"
            }
            _ => continue,
        };
        line(text, format_args!("    Do: {advice}"));
    }
    let kinds = p.get("kinds").map_or(&[][..], Json::list);
    if kinds.len() > 1 {
        line(text, "By the function that they were started with:");
        for kind in kinds.iter().take(top) {
            let sum = super::number(kind, &["sum"]);
            let sum = if by == "messages" {
                format!("{} messages", count(sum))
            } else {
                bytes(sum)
            };
            let n = count(super::number(kind, &["count"]));
            line(
                text,
                format_args!("    {sum:<14} {n:>9} of {}", word(kind, &["initial_call"])),
            );
        }
    }
    text.push('\n');
}

/// Minimum number of bytes for a holder to be listed.
const HELD: f64 = 1048576.0;

/// The holders of memory at one time of a run.
fn holders(text: &mut String, answer: Option<&Json>, when: &str, top: usize) {
    let Some(answer @ Json::Object(_)) = answer else {
        return;
    };
    let mut rows: Vec<(f64, String)> = Vec::new();
    for row in at(answer, &["processes", "top"]).map_or(&[][..], Json::list) {
        let of = |name: &str| number(row, &[name]);
        let mut told = word(row, &["pid"]).to_string();
        let name = word(row, &["name"]);
        if !name.is_empty() {
            let _ = write!(told, " {name}");
        }
        let now = place(row.get("current").unwrap_or(&Json::Null));
        let _ = write!(
            told,
            ", started with {}, at {now}",
            word(row, &["initial_call"])
        );
        for (name, words) in [
            ("heap_bytes", "heap"),
            ("binary_bytes", "binaries"),
            ("region_bytes", "shared regions"),
            ("message_bytes", "messages"),
        ] {
            if of(name) >= 1024.0 {
                let _ = write!(told, "; {words} {}", bytes(of(name)));
            }
        }
        rows.push((of("memory_bytes") + of("binary_bytes"), told));
    }
    for row in at(answer, &["tables", "top"]).map_or(&[][..], Json::list) {
        let told = format!(
            "table {}, {} objects, owned by {}",
            word(row, &["name"]),
            count(number(row, &["objects"])),
            word(row, &["owner"])
        );
        rows.push((number(row, &["bytes"]), told));
    }
    rows.retain(|r| r.0 >= HELD);
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    if rows.is_empty() {
        return;
    }
    line(
        text,
        format_args!(
            "{when}, {} allocated, held by:",
            bytes(number(answer, &["allocated_bytes"]))
        ),
    );
    for (i, (held, told)) in rows.iter().take(top).enumerate() {
        line(text, format_args!("{:>2}. {}: {told}", i + 1, bytes(*held)));
    }
    let silent = number(answer, &["processes", "silent"]);
    if silent > 1.0 {
        line(
            text,
            format_args!("    {} processes ran just then", count(silent)),
        );
    }
    text.push('\n');
}

fn tables(text: &mut String, answer: &Json, top: usize) {
    let Some(t) = answer.get("tables") else {
        return;
    };
    line(
        text,
        format_args!(
            "Tables: {}, {}",
            count(number(t, &["count"])),
            bytes(number(t, &["bytes"]))
        ),
    );
    let list = t.get("top").map_or(&[][..], Json::list);
    for (i, row) in list.iter().take(top).enumerate() {
        line(
            text,
            format_args!(
                "{:>2}. {}: {}, {} objects, owned by {}",
                i + 1,
                bytes(number(row, &["bytes"])),
                word(row, &["name"]),
                count(number(row, &["objects"])),
                word(row, &["owner"])
            ),
        );
    }
}
