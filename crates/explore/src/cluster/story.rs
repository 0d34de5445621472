//! The story of a run: what happened in the world, what nodes have written, and what passed between
//! their processes.
//!
//! What is sent to another node has a number, and its arrival has the same one.

use super::fault::{MS, Time};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The kind of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// A node begins or ends, or a fault is over.
    #[default]
    Event,
    Fault,
    /// Written by a program.
    Output,
    /// A process sends something to another node. Its number.
    Sends(u64),
    /// It arrives. 0: when it was sent is unknown.
    Gets(u64),
    /// A process waits for another one, as the order of processes has it, or does what one has
    /// waited for.
    Switch,
}

/// A line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Line {
    /// Nanoseconds.
    pub at: u64,
    pub kind: Kind,
    /// The node, with its life if it is not the first.
    pub node: String,
    pub pid: String,
    /// The registered name of the process.
    pub name: String,
    pub text: String,
    /// File and line.
    pub place: String,
    /// Whether code of the program has sent it.
    pub is_program: bool,
}

/// Lines about messages that are shown before and after each fault, and at the end.
const AROUND: usize = 8;
const LAST: usize = 16;

/// Number of the program's own messages from which on those of libraries are left out.
const ENOUGH: usize = 10;

impl Line {
    /// Writes it as a line of a replay file: fields separated by tabs.
    pub fn text(&self) -> String {
        let (kind, number) = match self.kind {
            Kind::Event => ("event", 0),
            Kind::Fault => ("fault", 0),
            Kind::Output => ("output", 0),
            Kind::Sends(n) => ("sends", n),
            Kind::Gets(n) => ("gets", n),
            Kind::Switch => ("switch", 0),
        };
        let clean = |t: &str| t.replace(['\t', '\n', '\r'], " ");
        format!(
            "{}\t{kind}\t{number}\t{}\t{}\t{}\t{}\t{}\t{}",
            self.at,
            self.node,
            clean(&self.pid),
            clean(&self.name),
            clean(&self.place),
            u8::from(self.is_program),
            clean(&self.text),
        )
    }

    /// Reads what [`Line::text`] has written.
    pub fn parse(text: &str) -> Option<Line> {
        let mut f = text.split('\t');
        let at = f.next()?.parse().ok()?;
        let kind = f.next()?;
        let number = f.next()?.parse().ok()?;
        let kind = match kind {
            "event" => Kind::Event,
            "fault" => Kind::Fault,
            "output" => Kind::Output,
            "sends" => Kind::Sends(number),
            "gets" => Kind::Gets(number),
            "switch" => Kind::Switch,
            _ => return None,
        };
        let mut next = || f.next().map(str::to_owned);
        let line = Line {
            at,
            kind,
            node: next()?,
            pid: next()?,
            name: next()?,
            place: next()?,
            is_program: next()? == "1",
            text: next()?,
        };
        f.next().is_none().then_some(line)
    }

    fn is_message(&self) -> bool {
        matches!(self.kind, Kind::Sends(_) | Kind::Gets(_))
    }

    /// Writes it for people.
    fn shown(&self) -> String {
        let at = Time(self.at / MS * MS).to_string();
        let node = &self.node;
        let name = match self.name.is_empty() {
            true => String::new(),
            false => format!(" {}", self.name),
        };
        let line = match self.kind {
            Kind::Event => self.text.clone(),
            Kind::Fault => format!("==== {}", self.text),
            Kind::Output => format!("{node} | {}", self.text),
            Kind::Switch => {
                let who = format!("{}{name}", self.pid);
                format!("{node:<4} {who:<20} {:<56} {}", self.text, self.place)
            }
            Kind::Sends(n) => {
                let text = format!("{} ->{n}", self.text);
                let who = format!("{}{name}", self.pid);
                format!("{node:<4} {who:<20} {text:<56} {}", self.place)
            }
            Kind::Gets(n) => {
                let text = match n {
                    0 => self.text.clone(),
                    n => format!("gets ->{n}: {}", self.text),
                };
                format!("{node:<4} {:<20} {text}", format!("{}{name}", self.pid))
            }
        };
        format!("{at:>10}  {}", line.trim_end())
    }
}

/// Returns the lines that people need: what happened in the world, what was written, and what the
/// program's processes have sent around faults and at the end, or any processes if those of the
/// program have sent next to nothing.
pub fn relevant(all: &[Line]) -> Vec<&Line> {
    let messages = (0..all.len()).filter(|&i| all[i].is_message());
    let (mut own, others): (Vec<usize>, Vec<usize>) = messages.partition(|&i| all[i].is_program);
    if own.len() < ENOUGH {
        own.extend(others);
        own.sort_unstable();
    }
    let mut wanted: BTreeSet<usize> = own.iter().rev().take(LAST).copied().collect();
    for (i, _) in all
        .iter()
        .enumerate()
        .filter(|(_, l)| l.kind == Kind::Fault)
    {
        let behind = own.partition_point(|&o| o < i);
        let from = behind.saturating_sub(AROUND);
        let to = (behind + AROUND).min(own.len());
        wanted.extend(&own[from..to]);
    }
    // Both ends of what is shown.
    let numbers: BTreeSet<u64> = wanted
        .iter()
        .filter_map(|&i| match all[i].kind {
            Kind::Sends(n) | Kind::Gets(n) if n > 0 => Some(n),
            _ => None,
        })
        .collect();
    let is_shown = |(i, l): (usize, &Line)| {
        let ends = matches!(l.kind, Kind::Sends(n) | Kind::Gets(n) if numbers.contains(&n));
        !l.is_message() || ends || wanted.contains(&i)
    };
    let all = all.iter().enumerate();
    all.filter(|(i, l)| is_shown((*i, l)))
        .map(|(_, l)| l)
        .collect()
}

/// Writes the story for people.
pub fn rendered(all: &[Line]) -> String {
    let messages = |l: &[&Line]| l.iter().filter(|l| l.is_message()).count();
    let shown = relevant(all);
    let mut text = String::new();
    for l in &shown {
        let _ = writeln!(text, "{}", l.shown());
    }
    let left_out = messages(&all.iter().collect::<Vec<_>>()) - messages(&shown);
    if left_out > 0 {
        let _ = writeln!(
            text,
            "{:>12}({left_out} lines about other messages are in the file)",
            ""
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: Kind, is_program: bool) -> Line {
        Line {
            at: 1_500 * MS,
            kind,
            node: "n1.2".into(),
            pid: "<0.9.0>".into(),
            name: "raft".into(),
            text: "{raft,n2} ! {ask,1}".into(),
            place: "a.erl:7".into(),
            is_program,
        }
    }

    #[test]
    fn lines_survive_a_round_trip() {
        for kind in [
            Kind::Event,
            Kind::Fault,
            Kind::Output,
            Kind::Sends(4),
            Kind::Gets(0),
            Kind::Switch,
        ] {
            let l = line(kind, true);
            assert_eq!(Line::parse(&l.text()), Some(l));
        }
        assert_eq!(Line::parse("1\tevent"), None);
        let mut l = line(Kind::Output, false);
        l.text = "a\tb".into();
        assert_eq!(Line::parse(&l.text()).map(|l| l.text), Some("a b".into()));
    }

    #[test]
    fn what_is_far_from_faults_is_left_out() {
        let mut all: Vec<Line> = (1..=100).map(|n| line(Kind::Sends(n), true)).collect();
        all.push(line(Kind::Fault, false));
        all.extend((101..=200).map(|n| line(Kind::Sends(n), true)));
        all.push(line(Kind::Gets(95), false));
        all.push(line(Kind::Gets(500), false));
        let shown = relevant(&all);
        let has = |n| shown.iter().any(|l| l.kind == Kind::Sends(n));
        assert!(!has(1) && has(95) && has(105) && !has(150) && has(200));
        assert!(shown.iter().any(|l| l.kind == Kind::Gets(95)));
        assert!(!shown.iter().any(|l| l.kind == Kind::Gets(500)));
        assert!(rendered(&all).contains("lines about other messages"));
    }
}
