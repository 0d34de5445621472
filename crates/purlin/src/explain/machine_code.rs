//! The answer about machine code, as text.

use purlin_diagnostics::json::Json;
use purlin_measure::Unit;

use super::text::{bytes, count, line, rest};
use super::{number, word};

pub fn machine_code(text: &mut String, answer: &Json, top: usize) {
    if word(answer, &["mode"]) == "off" {
        line(text, "There is no machine code: all is interpreted");
        return;
    }
    let n = |name: &str| number(answer, &[name]);
    line(
        text,
        format_args!(
            "Machine code ({}): {} functions, {} of at most {}",
            word(answer, &["mode"]),
            count(n("functions")),
            bytes(n("bytes")),
            bytes(n("limit_bytes")),
        ),
    );
    line(
        text,
        format_args!(
            "Made since the start: {} functions in {}; taken back: {}; left for want of room: {}",
            count(n("made")),
            Unit::Seconds.shown(n("made_s")),
            count(n("taken_back")),
            count(n("no_room")),
        ),
    );
    for (what, name) in [("Largest", "largest"), ("Longest in making", "slowest")] {
        let list = answer.get(name).map_or(&[][..], Json::list);
        if list.is_empty() {
            continue;
        }
        line(text, format_args!("{what}:"));
        for f in list.iter().take(top) {
            let cost = format!(
                "{} from {} words, {}",
                bytes(number(f, &["bytes"])),
                count(number(f, &["words"])),
                Unit::Seconds.shown(number(f, &["made_us"]) / 1e6),
            );
            let name = word(f, &["function"]);
            line(text, format_args!("    {name:<40} {cost}"));
        }
    }
    let refused = answer.get("refused").map_or(&[][..], Json::list);
    if n("refusals") > 0.0 {
        line(text, "Interpreted for good:");
    }
    for f in refused.iter().take(top) {
        let (name, why) = (word(f, &["function"]), word(f, &["why"]));
        line(text, format_args!("    {name:<40} {why}"));
    }
    let left_out = n("refusals") - refused.len().min(top) as f64;
    rest(text, left_out, "functions");
}
