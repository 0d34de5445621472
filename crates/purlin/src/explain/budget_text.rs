//! The answer about budgets, as text.

use purlin_diagnostics::json::Json;

use super::text::{bytes, count, line, rest as rest_of};
use super::{number, place, word};

pub fn budgets(text: &mut String, answer: &Json, top: usize) {
    let all = answer.get("budgets").map_or(&[][..], Json::list);
    if all.is_empty() {
        return line(text, "There are no budgets");
    }
    bill(text, answer);
    for b in all.iter().take(top) {
        one(text, b, top);
    }
    let left_out = number(answer, &["count"]) - all.len().min(top) as f64;
    rest_of(text, left_out, "budgets");
}

/// The bill of the node: what all budgets and the rest use, and what is resident.
fn bill(text: &mut String, answer: &Json) {
    let n = |name: &str| number(answer, &[name]);
    let (billed, twice) = (n("billed_bytes"), n("billed_twice_bytes"));
    line(
        text,
        format_args!(
            "All budgets: {}, of which {} are on two bills",
            bytes(billed),
            bytes(twice)
        ),
    );
    let rest = match answer.get("rest") {
        None | Some(Json::Null) => return,
        Some(rest) => rest,
    };
    let r = |name: &str| number(rest, &[name]);
    let (program, stacks) = (r("program_and_libraries"), r("stacks"));
    let (unused, other) = (r("unused_in_allocator"), r("other"));
    let all = program + stacks + unused + other;
    line(text, format_args!("The rest of the node: {}", bytes(all)));
    line(
        text,
        format_args!(
            "    program and libraries {}, stacks {}, free memory of the allocator {}, other {}",
            bytes(program),
            bytes(stacks),
            bytes(unused),
            bytes(other)
        ),
    );
    let (sum, resident) = (billed - twice + all, n("resident_bytes"));
    let apart = 100.0 * (sum - resident) / resident.max(1.0);
    line(
        text,
        format_args!(
            "Sum: {}; resident: {} ({apart:+.1}%)",
            bytes(sum),
            bytes(resident)
        ),
    );
}

fn one(text: &mut String, b: &Json, top: usize) {
    let below = match b.get("parent") {
        None | Some(Json::Null) => String::new(),
        Some(_) => format!(", below {}", count(number(b, &["parent"]))),
    };
    let ended = match b.get("ended") {
        Some(Json::Bool(true)) => ", ended",
        _ => "",
    };
    let (n, name) = (count(number(b, &["number"])), word(b, &["name"]));
    line(text, format_args!("Budget {n}, {name}{below}{ended}:"));
    let of = |limit: Option<&Json>, show: &dyn Fn(f64) -> String| match limit {
        None | Some(Json::Null) => String::new(),
        Some(n) => format!(" of {}", show(number(n, &[]))),
    };
    for c in b.get("counts").map_or(&[][..], Json::list) {
        let what = word(c, &["what"]);
        let show: &dyn Fn(f64) -> String = match what {
            "memory" => &bytes,
            _ => &count,
        };
        let n = |name: &str| number(c, &[name]);
        let limit = of(c.get("limit"), show);
        if limit.is_empty() && n("peak") == 0.0 {
            continue;
        }
        let used = format!("{}{limit}", show(n("used")));
        let peak = show(n("peak"));
        let reached = count(n("reached"));
        line(
            text,
            format_args!("    {what:<10} {used:<28} peak {peak:<12} limit reached {reached} times"),
        );
    }
    let seconds = number(b, &["cpu_s"]);
    let weight = match number(b, &["cpu_weight"]) {
        100.0 => String::new(),
        w => format!(", weight {}", count(w)),
    };
    let percent = of(b.get("cpu_percent_limit"), &|n| format!("{n:.0}%"));
    let waits = count(number(b, &["cpu_waits"]));
    line(
        text,
        format_args!("    cpu        {seconds:.2} s{percent}{weight}, had to wait {waits} times"),
    );
    let messages = of(b.get("messages_limit"), &count);
    if !messages.is_empty() {
        let n = |name: &str| count(number(b, &[name]));
        line(
            text,
            format_args!(
                "    messages  {messages} unread, then {}: {} senders waited, {} dropped, \
                 {} receivers ended, {} circles broken",
                word(b, &["over_messages"]),
                n("senders_waited"),
                n("messages_dropped"),
                n("receivers_ended"),
                n("circles_broken"),
            ),
        );
    }
    for p in b
        .get("largest")
        .map_or(&[][..], Json::list)
        .iter()
        .take(top)
    {
        let size = bytes(number(p, &["memory_bytes"]));
        let at = match p.get("at") {
            None | Some(Json::Null) => String::new(),
            Some(at) => place(at),
        };
        let row = format!("        {:<16} {size:<12} {at}", word(p, &["pid"]));
        line(text, row);
    }
}
