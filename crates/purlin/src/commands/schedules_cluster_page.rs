//! The story of a cluster as an HTML page: one file that needs no network. It has a lane for each
//! process that has sent something to another node or got something, grouped by node, arrows from
//! one to the other, and a band for each fault.
//!
//! # Invariant
//! Everything from a file goes through [`escaped`], and the page has no script.

use super::schedules_page::escaped;
use purlin_runtime::schedules::cluster::story::{Kind, Line, relevant};
use purlin_runtime::schedules::cluster::{self, Recorded};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Sizes in pixels: of a lane, a row, the column of times, and the names of lanes.
const LANE: usize = 230;
const ROW: usize = 30;
const TIMES: usize = 90;
const HEAD: usize = 64;

/// Characters of a label, which has its whole text as its title.
const LABEL: usize = 30;

const STYLE: &str = "body{font:14px/1.4 sans-serif;margin:2em}text{font:12px monospace}\
.n{font-weight:bold;font-size:14px}.f{fill:#fde4e1}.ft{fill:#a00;font-weight:bold}\
.e{fill:#666}.l{stroke:#ddd}.a{stroke:#36c;fill:none}.p{fill:#36c}.o{fill:#060}";

/// A process: its node, with the life, and its number.
type Lane<'a> = (&'a str, &'a str);

/// Shortens a text to that many characters.
fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns number and life of a node, by which lanes are sorted.
fn rank(node: &str) -> (u32, u32) {
    let mut parts = node.trim_start_matches('n').split('.');
    let mut next = || parts.next().and_then(|p| p.parse().ok());
    (next().unwrap_or(0), next().unwrap_or(1))
}

/// Returns the lanes in order, with the names of the processes.
fn lanes<'a>(all: &[&'a Line]) -> Vec<(Lane<'a>, &'a str)> {
    let mut lanes: Vec<(Lane, &str)> = Vec::new();
    for l in all.iter().filter(|l| !l.pid.is_empty()) {
        let lane = (l.node.as_str(), l.pid.as_str());
        match lanes.iter_mut().find(|(of, _)| *of == lane) {
            Some((_, name)) if name.is_empty() => *name = &l.name,
            Some(_) => {}
            None => lanes.push((lane, &l.name)),
        }
    }
    lanes.sort_by_key(|((node, _), _)| rank(node));
    lanes
}

/// Returns the page for a replay file.
pub fn page(r: &Recorded) -> String {
    let all = relevant(&r.story);
    let lanes = lanes(&all);
    let places: BTreeMap<Lane, usize> = lanes
        .iter()
        .enumerate()
        .map(|(i, (lane, _))| (*lane, TIMES + LANE * i + 20))
        .collect();
    let width = TIMES + LANE * lanes.len().max(3) + 40;
    let height = HEAD + ROW * (all.len() + 1);
    let command = escaped(&r.command.join(" "));
    let mut t = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{command}</title>\
<style>{STYLE}</style><h1><code>{command}</code></h1><p>{}; seed {}, {} nodes.</p><ul>",
        escaped(&r.verdict),
        r.plan.seed,
        r.nodes
    );
    for text in cluster::listed(&r.plan.faults, &r.story).lines() {
        let _ = write!(t, "<li>{}</li>", escaped(text.trim_start()));
    }
    let _ = writeln!(
        t,
        "</ul><svg width=\"{width}\" height=\"{height}\" xmlns=\"http://www.w3.org/2000/svg\">\
<defs><marker id=\"m\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\">\
<path class=\"p\" d=\"M0,0 L8,4 L0,8 z\"/></marker></defs>"
    );
    let mut node = "";
    for ((of, pid), name) in &lanes {
        let x = places[&(*of, *pid)];
        if *of != node {
            node = of;
            let of = escaped(of);
            let _ = write!(t, "<text class=\"n\" x=\"{x}\" y=\"20\">{of}</text>");
        }
        let (who, bottom) = (escaped(&format!("{pid} {name}")), height - ROW);
        let _ = writeln!(
            t,
            "<text x=\"{x}\" y=\"42\">{who}</text>\
<line class=\"l\" x1=\"{x}\" y1=\"50\" x2=\"{x}\" y2=\"{bottom}\"/>"
        );
    }
    // Where each message was sent.
    let mut sent: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for (i, l) in all.iter().enumerate() {
        let y = HEAD + ROW * i + ROW / 2;
        let base = y + 4;
        let seconds = l.at as f64 / 1e9;
        let _ = write!(
            t,
            "<text class=\"e\" x=\"0\" y=\"{base}\">{seconds:.4}</text>"
        );
        let x = places.get(&(l.node.as_str(), l.pid.as_str())).copied();
        let wide = |class: &str, text: &str| {
            let text = escaped(text);
            format!("<text class=\"{class}\" x=\"{TIMES}\" y=\"{base}\">{text}</text>")
        };
        match l.kind {
            Kind::Fault => {
                let top = y - ROW / 2;
                let _ = write!(
                    t,
                    "<rect class=\"f\" x=\"{}\" y=\"{top}\" width=\"{width}\" height=\"{ROW}\"/>",
                    TIMES - 10
                );
                t.push_str(&wide("ft", &l.text));
            }
            Kind::Event => t.push_str(&wide("e", &l.text)),
            Kind::Output => t.push_str(&wide("o", &format!("{} | {}", l.node, l.text))),
            Kind::Switch => t.push_str(&label(l, x.unwrap_or(TIMES), y, &l.text)),
            Kind::Sends(n) => {
                let x = x.unwrap_or(TIMES);
                sent.insert(n, (x, y));
                t.push_str(&label(l, x, y, &l.text));
            }
            Kind::Gets(n) => {
                let x = x.unwrap_or(TIMES);
                if let Some((from, at)) = sent.get(&n) {
                    let _ = write!(
                        t,
                        "<line class=\"a\" marker-end=\"url(#m)\" x1=\"{from}\" y1=\"{at}\" \
x2=\"{x}\" y2=\"{y}\"/>"
                    );
                }
                t.push_str(&label(l, x, y, &format!("gets {}", l.text)));
            }
        }
        t.push('\n');
    }
    t.push_str("</svg></html>\n");
    t
}

/// Returns a point on a lane, and its text.
fn label(l: &Line, x: usize, y: usize, text: &str) -> String {
    let title = escaped(&format!("{text} {}", l.place));
    let text = escaped(&short(text, LABEL));
    format!(
        "<circle class=\"p\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>\
<text x=\"{}\" y=\"{}\">{text}<title>{title}</title></text>",
        x + 8,
        y + 4
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(node: &str, kind: Kind, text: &str) -> Line {
        Line {
            kind,
            node: node.into(),
            pid: "<0.9.0>".into(),
            text: text.into(),
            is_program: true,
            ..Line::default()
        }
    }

    #[test]
    fn lanes_are_grouped_by_node_and_arrows_cross_them() {
        let r = Recorded {
            command: vec!["run".into(), "<a>".into()],
            story: vec![
                line("n2.2", Kind::Sends(1), "{raft,n1} ! <b>"),
                line("n1", Kind::Gets(1), "<b>"),
                line("n2", Kind::Sends(2), "{raft,n1} ! c"),
            ],
            ..Recorded::default()
        };
        let all = relevant(&r.story);
        let order: Vec<&str> = lanes(&all).iter().map(|((node, _), _)| *node).collect();
        assert_eq!(order, ["n1", "n2", "n2.2"]);
        let t = page(&r);
        assert_eq!(t.matches("class=\"a\"").count(), 1);
        assert!(!t.contains("<a>") && !t.contains("<b>"));
    }
}
