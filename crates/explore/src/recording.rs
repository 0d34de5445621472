//! The outside of a run, as a replay file keeps it: the replay log, environment variables, and the
//! atoms and the program path that the run began with.
//!
//! The order of the keys of some maps follows from the order in which atoms were made. Runs of a
//! search have the atoms of prepared modules, which a replay with a log does not prepare, so it
//! makes them first.
//!
//! # Invariant
//! Everything is text in lines, escaped so that bytes of the outside cannot form a line of their
//! own.

use crate::log::{Entry, Verb, escaped, plain, plain_text};
use std::collections::{BTreeMap, HashSet};

/// An environment variable, and its value, if it had one. All variables were read if the name is
/// empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

impl Variable {
    /// Writes it as replay files have it.
    pub fn text(&self) -> String {
        let name = escaped(&self.name);
        match &self.value {
            Some(v) => format!("={name} ={}", escaped(v)),
            None => format!("={name}"),
        }
    }

    /// Reads a text written by [`Variable::text`].
    pub fn parse(text: &str) -> Option<Variable> {
        let mut w = text.split(' ').map(|w| plain(w.strip_prefix('=')?));
        let name = w.next()??;
        let value = match w.next() {
            None => None,
            Some(value) => Some(value?),
        };
        Some(Variable { name, value })
    }
}

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub atoms: Vec<String>,
    pub path: Option<String>,
    pub events: Vec<Entry>,
}

/// Writes the lines of a recording. `events`: the lines of the log.
pub fn text(atoms: &[String], path: Option<&str>, events: &str) -> String {
    let names = atoms.iter().map(|a| format!(" ={}", escaped(a.as_bytes())));
    let mut text = format!("atoms{}\n", names.collect::<String>());
    if let Some(path) = path {
        text.push_str(&format!("path {}\n", escaped(path.as_bytes())));
    }
    for l in events.lines() {
        text.push_str("outside ");
        text.push_str(l);
        text.push('\n');
    }
    text
}

impl Recording {
    /// Reads a line written by [`text`]. None: it is damaged.
    pub fn read(&mut self, key: &str, rest: &str) -> Option<()> {
        match key {
            "atoms" => {
                for w in rest.split(' ').filter(|w| !w.is_empty()) {
                    self.atoms.push(plain_text(w.strip_prefix('=')?)?);
                }
            }
            "path" => self.path = Some(plain_text(rest)?),
            "outside" => self.events.push(Entry::parse(rest)?),
            _ => return None,
        }
        Some(())
    }

    /// Describes what was recorded.
    pub fn describe(&self) -> Vec<String> {
        describe_all(self.events.iter().cloned()).0
    }
}

/// Writes `1 operation`, `4,211 operations`.
fn number(n: usize, one: &str, many: &str) -> String {
    let digits = n.to_string();
    let mut t = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            t.push(',');
        }
        t.push(c);
    }
    format!("{t} {}", if n == 1 { one } else { many })
}

/// Describes the events of a log, and why it was cut off, if it was.
pub fn describe(events: &str) -> (Vec<String>, Option<String>) {
    describe_all(events.lines().filter_map(Entry::parse))
}

fn describe_all(events: impl Iterator<Item = Entry>) -> (Vec<String>, Option<String>) {
    let mut connections: BTreeMap<String, usize> = BTreeMap::new();
    let (mut programs, mut accepted, mut files) = (0, 0, 0);
    let (mut came, mut went, mut others) = (0, 0, 0);
    // OTP asks one for the host's own name when it starts.
    let mut resolvers = HashSet::new();
    let mut started = 0;
    let mut cut = None;
    for e in events {
        let Entry::Answer {
            verb,
            of,
            asked,
            answer,
        } = e
        else {
            if let Entry::Cut(why) = e {
                cut = Some(why);
            }
            continue;
        };
        let done = answer.as_ref();
        if of.is_some_and(|n| resolvers.contains(&n)) {
            continue;
        }
        match verb {
            Verb::Spawn if done.is_ok() => {
                started += 1;
                match asked.text.contains("/inet_gethost ") {
                    true => drop(resolvers.insert(('p', started))),
                    false => programs += 1,
                }
            }
            Verb::Accept if done.is_ok() => accepted += 1,
            Verb::Connect => {
                let to = asked.text.trim_start_matches("to ").to_owned();
                *connections.entry(to).or_default() += 1;
            }
            Verb::Read => came += done.map_or(0, Vec::len),
            Verb::Write => {
                let n = done.map(|b| String::from_utf8_lossy(b).parse().unwrap_or(0));
                went += n.unwrap_or(0);
            }
            Verb::Native if asked.text.starts_with("prim_file:") => files += 1,
            Verb::Native => others += 1,
            _ => {}
        }
    }
    let mut all = Vec::new();
    let mut count = |n: usize, one: &str, many: &str| {
        if n > 0 {
            all.push(number(n, one, many));
        }
    };
    count(files, "call about files", "calls about files");
    count(programs, "program", "programs");
    for (to, n) in connections {
        let (one, many) = (
            format!("connection to {to}"),
            format!("connections to {to}"),
        );
        count(n, &one, &many);
    }
    count(
        accepted,
        "connection from outside",
        "connections from outside",
    );
    count(came, "byte in", "bytes in");
    count(went, "byte out", "bytes out");
    count(
        others,
        "question about the host",
        "questions about the host",
    );
    (all, cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Asked;

    #[test]
    fn recordings_are_described() {
        let asked = |verb, text: &str, answer: Result<&[u8], i32>| {
            let e = Entry::Answer {
                verb,
                of: Some(('s', 1)),
                asked: Asked::text(text),
                answer: answer.map(<[u8]>::to_vec),
            };
            e.line() + "\n"
        };
        let text = [
            asked(Verb::Connect, "to 127.0.0.1:5432", Err(115)),
            asked(Verb::Spawn, "/bin/inet_gethost 4", Ok(b"5")),
            asked(Verb::Spawn, "/bin/sh -c x", Ok(b"5")),
            asked(Verb::Write, "", Ok(b"5")),
            asked(Verb::Read, "", Ok(&[b'x'; 4211])),
            asked(Verb::Native, "prim_file:open_nif(x)", Ok(b"0 f")),
            Entry::Cut("of that".into()).line(),
        ]
        .concat();
        let (all, cut) = describe(&text);
        let expected = [
            "1 call about files",
            "1 program",
            "1 connection to 127.0.0.1:5432",
            "4,211 bytes in",
            "5 bytes out",
        ];
        assert_eq!(all, expected);
        assert_eq!(cut.as_deref(), Some("of that"));
    }

    #[test]
    fn variables_survive_a_round_trip() {
        for (name, value) in [
            (&b"A"[..], Some(&b"x = y\n"[..])),
            (b"B C", Some(b"")),
            (b"D", None),
        ] {
            let v = Variable {
                name: name.to_vec(),
                value: value.map(<[u8]>::to_vec),
            };
            assert_eq!(Variable::parse(&v.text()), Some(v));
        }
        assert_eq!(Variable::parse("x"), None);
    }

    #[test]
    fn recordings_survive_a_round_trip() {
        let e = Entry::Cut("a b".into());
        let atoms = ["x y".to_owned(), String::new()];
        let mut r = Recording::default();
        for l in text(&atoms, Some("/bin"), &(e.line() + "\n")).lines() {
            let (key, rest) = l.split_once(' ').unwrap_or((l, ""));
            assert_eq!(r.read(key, rest), Some(()), "{l}");
        }
        assert_eq!((r.events, r.atoms), (vec![e], atoms.to_vec()));
        assert_eq!(r.path.as_deref(), Some("/bin"));
        assert_eq!(Recording::default().read("outside", "x"), None);
    }
}
