//! The story of a schedule as an HTML page: one file that needs no network. It has a lane for each
//! process, in the order of first operations, a row for each operation, and marks at deviations.
//!
//! # Invariant
//! Everything from a file goes through [`escaped`], and the page has no script.

use purlin_runtime::schedules::{Recorded, rendered};
use std::fmt::Write;

const STYLE: &str = "body{font:14px/1.4 sans-serif;margin:2em}table{border-collapse:collapse}\
th,td{text-align:left;vertical-align:top;padding:.2em .8em;border-left:1px solid #ccc}\
td.s{background:#fde4e1;font-weight:bold}small{color:#666}code{font:13px monospace}";

/// Escapes text for HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut t = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => t.push_str("&lt;"),
            '>' => t.push_str("&gt;"),
            '&' => t.push_str("&amp;"),
            '"' => t.push_str("&quot;"),
            '\'' => t.push_str("&#39;"),
            c => t.push(c),
        }
    }
    t
}

/// Returns the page for a replay file.
pub fn page(r: &Recorded) -> String {
    let get = |f: &Vec<String>, i: usize| f.get(i).cloned().unwrap_or_default();
    let mut lanes: Vec<String> = Vec::new();
    for f in &r.story {
        let pid = get(f, 3);
        if !lanes.contains(&pid) {
            lanes.push(pid);
        }
    }
    let command = escaped(&r.command.join(" "));
    let mut t = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{command}</title><style>{STYLE}</style>\
<h1><code>{command}</code></h1><p>Ended with status {}; {} deviations. Marked: where a process leaves the usual order.</p><table><tr>",
        r.replay.status,
        r.replay.schedule.len()
    );
    for l in &lanes {
        let _ = write!(t, "<th><code>{}</code></th>", escaped(l));
    }
    t.push_str("</tr>\n");
    for f in &r.story {
        t.push_str("<tr>");
        let pid = get(f, 3);
        for l in &lanes {
            if *l != pid {
                t.push_str("<td></td>");
                continue;
            }
            let stopped = !get(f, 6).trim().is_empty();
            let text = match stopped {
                // The same as in the text.
                true => rendered(std::slice::from_ref(f))
                    .trim_matches(['-', ' ', '\n'])
                    .to_owned(),
                false => get(f, 4),
            };
            let class = if stopped { " class=\"s\"" } else { "" };
            let _ = write!(
                t,
                "<td{class}><code>{}</code><br><small>{}</small></td>",
                escaped(&text),
                escaped(&get(f, 5))
            );
        }
        t.push_str("</tr>\n");
    }
    t.push_str("</table></html>\n");
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_file_is_markup() {
        assert_eq!(
            escaped("<a b=\"'&\">"),
            "&lt;a b=&quot;&#39;&amp;&quot;&gt;"
        );
    }
}
