//! Presentation of the runtime's answers: text, differences, checks, names of variables.
//!
//! Nothing here relies on an answer being complete: missing fields count as empty.

pub mod budget_text;
pub mod check;
pub mod leaks;
pub mod machine_code;
pub mod profile_report;
pub mod profiles;
pub mod recording;
pub mod snapshots;
pub mod text;
pub mod time;
pub mod variables;

use purlin_diagnostics::json::Json;

/// The field of an answer at the end of a path of field names.
pub fn at<'a>(answer: &'a Json, path: &[&str]) -> Option<&'a Json> {
    path.iter().try_fold(answer, |value, name| value.get(name))
}

pub fn number(answer: &Json, path: &[&str]) -> f64 {
    at(answer, path).and_then(Json::number).unwrap_or(0.0)
}

pub fn word<'a>(answer: &'a Json, path: &[&str]) -> &'a str {
    at(answer, path).and_then(Json::text).unwrap_or_default()
}

/// `file:line, function` of a site.
pub fn site(cause: &Json) -> String {
    place(cause.get("site").unwrap_or(&Json::Null))
}

pub fn place(site: &Json) -> String {
    let function = word(site, &["function"]);
    let name = if function.is_empty() {
        "an unknown place"
    } else {
        function
    };
    match (word(site, &["file"]), number(site, &["line"])) {
        ("", _) => name.to_string(),
        (file, line) => format!("{file}:{line}, {name}"),
    }
}

/// The causes of one topic in an answer: those of the answer itself, or of its part.
pub fn causes<'a>(answer: &'a Json, topic: &str) -> &'a [Json] {
    let part = match word(answer, &["topic"]) {
        "run" => answer.get(topic),
        own if own == topic => Some(answer),
        _ => None,
    };
    part.and_then(|p| p.get("causes")).map_or(&[], Json::list)
}
