//! The answer about what a program has forgotten, as text.

use purlin_diagnostics::json::Json;

use super::text::{bytes, count, line, rest};
use super::{at, number, place, word};

fn list<'a>(answer: &'a Json, path: &[&str]) -> &'a [Json] {
    at(answer, path).map_or(&[], Json::list)
}

/// A number and what is counted.
fn many(n: f64, one: &str, more: &str) -> String {
    format!("{} {}", count(n), if n == 1.0 { one } else { more })
}

pub fn leaks(text: &mut String, answer: &Json, top: usize) {
    let before = text.len();
    let why = word(answer, &["not_looked_at"]);
    if !why.is_empty() {
        line(
            text,
            format_args!("Processes, monitors and timers were not looked at: {why}"),
        );
    }
    processes(text, answer, top);
    monitors(text, list(answer, &["monitors"]), top);
    timers(text, list(answer, &["timers"]), top);
    binaries(text, answer, top);
    tables(text, answer, top);
    atoms(text, answer, top);
    if text.len() == before {
        line(
            text,
            format_args!(
                "Nothing is forgotten: {} processes, {} objects, {} tables and {} atoms were \
                 looked at",
                count(number(answer, &["processes", "count"])),
                count(number(answer, &["processes", "objects"])),
                count(number(answer, &["tables", "count"])),
                count(number(answer, &["atoms", "count"])),
            ),
        );
    }
    if why.is_empty() {
        line(
            text,
            format_args!(
                "Processes were stopped for {:.1} ms.",
                1000.0 * number(answer, &["stopped_s"])
            ),
        );
    }
}

fn processes(text: &mut String, answer: &Json, top: usize) {
    let silent = number(answer, &["processes", "silent"]);
    if silent > 0.0 {
        line(
            text,
            format_args!(
                "Waiting processes are not judged: what {} in natives on dirty threads cannot be \
                 seen. Ask again later.",
                many(silent, "process knows", "processes know")
            ),
        );
    }
    let all = number(answer, &["processes", "stuck"]);
    if all == 0.0 {
        return;
    }
    line(
        text,
        format_args!(
            "{} for ever: all that could wake them do not know them",
            many(all, "process waits", "processes wait")
        ),
    );
    let shown = list(answer, &["processes", "top"]);
    for (i, p) in shown.iter().take(top).enumerate() {
        one_process(text, i + 1, p);
    }
    rest(text, all - shown.len().min(top) as f64, "processes");
}

fn one_process(text: &mut String, rank: usize, p: &Json) {
    let n = |name: &str| number(p, &[name]);
    line(
        text,
        format_args!(
            "{rank:>2}. {}, started with {}, {}",
            word(p, &["pid"]),
            word(p, &["initial_call"]),
            bytes(n("memory_bytes")),
        ),
    );
    line(
        text,
        format_args!(
            "    waits at {}{}",
            place(p.get("waits_at").unwrap_or(&Json::Null)),
            since(p)
        ),
    );
    if let Some(from @ Json::Object(_)) = p.get("called_from") {
        line(text, format_args!("    called from {}", place(from)));
    }
    let name = match (word(p, &["spawned_by_name"]), word(p, &["ancestor"])) {
        ("", "") => ", which has ended".to_string(),
        ("", ancestor) => format!(", which has ended; its ancestor is {ancestor}"),
        (name, _) => format!(", {name}"),
    };
    line(
        text,
        format_args!("    spawned by {}{name}", word(p, &["spawned_by"])),
    );
    let by: Vec<&str> = list(p, &["known_by"])
        .iter()
        .filter_map(Json::text)
        .collect();
    if !by.is_empty() {
        let more = n("known_by_count") - by.len() as f64;
        let more = match more > 0.0 {
            true => format!(" and {} others", count(more)),
            false => String::new(),
        };
        line(
            text,
            format_args!(
                "    only processes that wait for ever, too, know it: {}{more}",
                by.join(", ")
            ),
        );
    }
    let ties: Vec<String> = [
        ("messages", "message unread", "messages unread"),
        ("monitors", "other monitored", "others monitored"),
        ("monitored_by", "monitor of it", "monitors of it"),
        ("links", "link", "links"),
    ]
    .iter()
    .filter(|(name, ..)| n(name) > 0.0)
    .map(|(name, one, more)| many(n(name), one, more))
    .collect();
    if !ties.is_empty() {
        line(text, format_args!("    {}", ties.join(", ")));
    }
    if n("alike") > 1.0 {
        line(
            text,
            format_args!(
                "    one of {} alike, {} in all",
                count(n("alike")),
                bytes(n("alike_memory_bytes"))
            ),
        );
    }
}

/// For how long a process has waited, as far as that is known.
fn since(p: &Json) -> String {
    let waits = p.get("waits_s").and_then(Json::number);
    let reported = number(p, &["reported_s"]);
    match waits {
        Some(s) if s >= reported => format!(", for {} s", count(s)),
        _ if reported > 0.0 => format!(", for {} s at least", count(reported)),
        _ => String::new(),
    }
}

fn monitors(text: &mut String, all: &[Json], top: usize) {
    for m in all.iter().take(top) {
        line(
            text,
            format_args!(
                "{} monitors {} {} times, and the references are lost",
                word(m, &["by"]),
                word(m, &["of"]),
                count(number(m, &["monitors"])),
            ),
        );
        line(
            text,
            "    Do: call erlang:demonitor/2 with the reference before it is forgotten",
        );
    }
}

fn timers(text: &mut String, all: &[Json], top: usize) {
    for t in all.iter().take(top) {
        let n = many(number(t, &["timers"]), "timer runs", "timers run");
        let to = word(t, &["to"]);
        match t.get("registered") {
            Some(Json::Bool(false)) => line(
                text,
                format_args!("{n} for {to}, a name that no process has"),
            ),
            _ => {
                line(
                    text,
                    format_args!("{n} for {to}, and the references are lost"),
                );
                line(
                    text,
                    "    Do: cancel the last timer before the next one is started",
                );
            }
        }
    }
}

fn binaries(text: &mut String, answer: &Json, top: usize) {
    for b in list(answer, &["binaries"]).iter().take(top) {
        let n = |name: &str| number(b, &[name]);
        line(
            text,
            format_args!(
                "{} keeps {} in {} binaries, and uses {} of that",
                word(b, &["holder"]),
                bytes(n("bytes")),
                count(n("binaries")),
                bytes(n("used_bytes")),
            ),
        );
        let path: Vec<&str> = list(b, &["path"]).iter().filter_map(Json::text).collect();
        line(text, format_args!("    {}", path.join(" -> ")));
        line(
            text,
            "    Do: copy the part that is kept (binary:copy/1) before it is stored",
        );
    }
}

fn tables(text: &mut String, answer: &Json, top: usize) {
    for t in list(answer, &["tables", "top"]).iter().take(top) {
        let owner = match word(t, &["owner_name"]) {
            "" => word(t, &["owner"]).to_string(),
            name => format!("{} {name}", word(t, &["owner"])),
        };
        line(
            text,
            format_args!(
                "table {} of {owner}, {} objects, {}: not read in {} s",
                word(t, &["name"]),
                count(number(t, &["objects"])),
                bytes(number(t, &["bytes"])),
                count(number(answer, &["tables", "watched_s"]).floor()),
            ),
        );
    }
}

fn atoms(text: &mut String, answer: &Json, top: usize) {
    for a in list(answer, &["atoms", "top"]).iter().take(top) {
        line(
            text,
            format_args!(
                "{} atoms made at {}; there are {} of at most {}",
                count(number(a, &["made"])),
                place(a.get("site").unwrap_or(&Json::Null)),
                count(number(answer, &["atoms", "count"])),
                count(number(answer, &["atoms", "limit"])),
            ),
        );
    }
}
