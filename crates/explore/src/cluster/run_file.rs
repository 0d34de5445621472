//! The file of a failed run of a cluster: what decides it, and what it came to.

use super::coordinator::Plan;
use super::fault::Fault;
use super::story::Line;
use std::fmt::Write;

/// The first line.
const HEAD: &str = "purlin cluster 2";

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Recorded {
    pub made_by: String,
    pub command: Vec<String>,
    pub nodes: u32,
    pub plan: Plan,
    pub verdict: String,
    pub hash: u64,
    pub story: Vec<Line>,
}

/// Whether a text is such a file.
pub fn is_one(text: &str) -> bool {
    text.lines().next() == Some(HEAD)
}

impl Recorded {
    /// Writes it as a file.
    pub fn text(&self) -> String {
        let mut s = format!(
            "{HEAD}\nmade-by {}\nnodes {}\nseed {}\nhash {:016x}\nverdict {}\n",
            self.made_by, self.nodes, self.plan.seed, self.hash, self.verdict
        );
        for w in &self.command {
            let _ = writeln!(s, "argument {w}");
        }
        if self.plan.files {
            s.push_str("files reported\n");
        }
        for f in &self.plan.faults {
            let _ = writeln!(s, "fault {}", f.text());
        }
        for line in &self.story {
            let _ = writeln!(s, "story {}", line.text());
        }
        s
    }
}

/// Reads a file. Fails with the number of the line that means nothing.
pub fn read(text: &str) -> Result<Recorded, String> {
    let mut r = Recorded::default();
    for (i, line) in text.lines().enumerate().skip(1) {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let known = match key {
            "made-by" => {
                r.made_by = value.into();
                Some(())
            }
            "nodes" => value.parse().ok().map(|n| r.nodes = n),
            "seed" => value.parse().ok().map(|n| r.plan.seed = n),
            "hash" => u64::from_str_radix(value, 16).ok().map(|n| r.hash = n),
            "verdict" => {
                r.verdict = value.into();
                Some(())
            }
            "argument" => {
                r.command.push(value.into());
                Some(())
            }
            "files" => {
                r.plan.files = true;
                Some(())
            }
            "fault" => Fault::parse(value).map(|f| r.plan.faults.push(f)),
            "story" => Line::parse(value).map(|l| r.story.push(l)),
            _ => None,
        };
        known.ok_or_else(|| format!("line {} means nothing", i + 1))?;
    }
    match is_one(text) && !r.command.is_empty() && r.nodes > 0 {
        true => Ok(r),
        false => Err("it has no command or no number of nodes".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_survive_a_round_trip() {
        let fault = Fault::parse("packet 2 3 1 14 cut 2 3 5000000000").expect("a fault");
        let r = Recorded {
            made_by: "purlin 0.2.0".into(),
            command: vec!["run".into(), "a b.erl".into()],
            nodes: 3,
            plan: Plan {
                seed: 7,
                faults: vec![fault],
                files: true,
            },
            verdict: "n1 ends with status 1".into(),
            hash: u64::MAX,
            story: vec![Line {
                text: "n1 begins".into(),
                ..Line::default()
            }],
        };
        assert_eq!(read(&r.text()), Ok(r.clone()));
        assert!(is_one(&r.text()));
        assert!(read(&r.text().replace("cut", "rain")).is_err());
        assert!(read(HEAD).is_err());
    }
}
