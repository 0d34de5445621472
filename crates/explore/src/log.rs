//! The replay log: what a recorded run asked of the system, with the answers, in order.
//!
//! # Invariants
//! * Each entry is one line of text without blanks in its parts, so a log can be cut off after any
//!   line.
//! * A replay asks the same questions in the same order, or it ends with a message about the
//!   difference.

use crate::checksum::Checksum;
use std::collections::VecDeque;
use std::fmt::Write as _;

/// The questions: each with its word in the log, and its description in front of its object.
macro_rules! verbs {
    ($($name:ident $word:literal $described:literal;)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Verb { $($name),* }
        const VERBS: &[(Verb, &str, &str)] = &[$((Verb::$name, $word, $described)),*];
    };
}

verbs! {
    Native "native" "";
    Spawn "spawn" "the start of";
    Executable "executable" "a look whether one can execute";
    Folder "folder" "a look whether one can enter";
    Ended "ended" "a look whether it has ended at";
    Open "open" "the opening of";
    Read "read" "a receive from";
    Write "write" "a write to";
    Room "room" "a look for room at";
    Socket "socket" "the opening of";
    Copy "copy" "a copy of";
    Bind "bind" "an address for";
    Connect "connect" "a connection of";
    Listen "listen" "a listen at";
    Accept "accept" "an accept at";
    Shutdown "shutdown" "a shutdown of";
    Close "close" "a close of";
    OwnName "own-name" "the address of";
    PeerName "peer-name" "the peer of";
    SetOption "set-option" "the setting of an option of";
    GetOption "get-option" "a look at an option of";
    Host "host" "a look at the host's";
}

impl Verb {
    fn parse(word: &str) -> Option<Verb> {
        VERBS.iter().find(|r| r.1 == word).map(|r| r.0)
    }
    fn row(self) -> &'static (Verb, &'static str, &'static str) {
        &VERBS[self as usize]
    }
}

/// The arguments of a question, beside the verb and the descriptor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// A description for people.
    pub text: String,
    /// Bytes that go out, by their number and checksum.
    pub data: Option<(usize, u64)>,
}

impl Asked {
    /// Returns arguments with that description.
    pub fn text(text: impl Into<String>) -> Asked {
        Asked {
            text: text.into(),
            data: None,
        }
    }

    /// Returns arguments with these bytes, one part after the other.
    pub fn data<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Asked {
        let (mut n, mut sum) = (0, Checksum::default());
        for p in parts {
            n += p.len();
            sum.add(p);
        }
        Asked {
            text: String::new(),
            data: Some((n, sum.value())),
        }
    }
}

/// The name of a descriptor: its kind, and its number among those of that kind, as in `socket 3`.
pub type Name = (char, u32);

/// The kinds of descriptors.
pub const KINDS: &[(char, &str)] = &[('s', "socket"), ('p', "program"), ('f', "file")];

fn describe_name(n: Option<Name>) -> String {
    let Some((kind, number)) = n else {
        return String::new();
    };
    let row = KINDS.iter().find(|k| k.0 == kind);
    format!("{} {number}", row.map_or("descriptor", |k| k.1))
}

/// An entry of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A question with its answer.
    Answer {
        verb: Verb,
        of: Option<Name>,
        asked: Asked,
        /// Bytes, or an error number.
        answer: Result<Vec<u8>, i32>,
    },
    /// A poll that found something: its ordinal, and the ready registrations, each with its events
    /// (1 input, 2 output, 4 errors).
    Ready { poll: u64, what: Vec<(usize, u8)> },
    /// Nothing is recorded from here on, for that reason.
    Cut(String),
}

impl Entry {
    /// Writes the entry as a line.
    pub fn line(&self) -> String {
        match self {
            Entry::Answer {
                verb,
                of,
                asked,
                answer,
            } => {
                let of = of.map_or("-".into(), |(k, n)| format!("{k}{n}"));
                let data = match asked.data {
                    Some((n, sum)) => format!("{n}:{sum:x}"),
                    None => "-".into(),
                };
                let text = escaped(asked.text.as_bytes());
                let mut line = format!("{} {of} {data} \"{text} ", verb.row().1);
                match answer {
                    Ok(bytes) => {
                        line.push('=');
                        line.push_str(&escaped(bytes));
                    }
                    Err(e) => {
                        let _ = write!(line, "!{e}");
                    }
                }
                line
            }
            Entry::Ready { poll, what } => {
                let mut line = format!("ready {poll}");
                for (id, bits) in what {
                    let _ = write!(line, " {id}:{bits}");
                }
                line
            }
            Entry::Cut(why) => format!("cut \"{}", escaped(why.as_bytes())),
        }
    }

    /// Reads a line written by [`Entry::line`].
    pub fn parse(line: &str) -> Option<Entry> {
        let (key, rest) = line.split_once(' ')?;
        match key {
            "ready" => {
                let mut w = rest.split(' ');
                let poll = w.next()?.parse().ok()?;
                let pair = |p: &str| {
                    let (id, bits) = p.split_once(':')?;
                    Some((id.parse().ok()?, bits.parse().ok()?))
                };
                Some(Entry::Ready {
                    poll,
                    what: w.map(pair).collect::<Option<_>>()?,
                })
            }
            "cut" => Some(Entry::Cut(plain_text(rest.strip_prefix('"')?)?)),
            word => {
                let verb = Verb::parse(word)?;
                let mut w = rest.split(' ');
                let of = match w.next()? {
                    "-" => None,
                    n => {
                        let kind = n.chars().next()?;
                        Some((kind, n.get(kind.len_utf8()..)?.parse().ok()?))
                    }
                };
                let data = match w.next()? {
                    "-" => None,
                    d => {
                        let (n, sum) = d.split_once(':')?;
                        Some((n.parse().ok()?, u64::from_str_radix(sum, 16).ok()?))
                    }
                };
                let text = plain_text(w.next()?.strip_prefix('"')?)?;
                let answer = w.next()?;
                let answer = match (answer.strip_prefix('='), answer.strip_prefix('!')) {
                    (Some(b), _) => Ok(plain(b)?),
                    (_, Some(e)) => Err(e.parse().ok()?),
                    _ => return None,
                };
                Some(Entry::Answer {
                    verb,
                    of,
                    asked: Asked { text, data },
                    answer,
                })
            }
        }
    }

    /// Describes the entry.
    fn describe(&self) -> String {
        match self {
            Entry::Answer {
                verb, of, asked, ..
            } => describe(*verb, *of, asked),
            Entry::Ready { .. } => "something from outside to be ready".into(),
            Entry::Cut(why) => why.clone(),
        }
    }
}

/// Describes a question.
fn describe(verb: Verb, of: Option<Name>, asked: &Asked) -> String {
    let what = verb.row().2;
    let what = match (verb, asked.data) {
        (Verb::Write, Some((n, _))) => {
            format!("a write of {n} byte{} to", if n == 1 { "" } else { "s" })
        }
        _ => what.into(),
    };
    let parts = [what, describe_name(of), asked.text.clone()];
    let parts = parts.into_iter().filter(|p| !p.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

/// Writes bytes as text without blanks and line ends.
pub fn escaped(bytes: &[u8]) -> String {
    let mut t = String::with_capacity(bytes.len());
    for &b in bytes {
        match b {
            b'!'..=b'~' if b != b'%' => t.push(char::from(b)),
            b => {
                let _ = write!(t, "%{b:02x}");
            }
        }
    }
    t
}

/// Reads a text written by [`escaped`].
pub fn plain(text: &str) -> Option<Vec<u8>> {
    let mut v = Vec::with_capacity(text.len());
    let mut all = text.bytes();
    while let Some(b) = all.next() {
        match b {
            b'%' => {
                let mut digit = || char::from(all.next()?).to_digit(16);
                v.push((digit()? * 16 + digit()?) as u8);
            }
            b => v.push(b),
        }
    }
    Some(v)
}

/// Reads a text written by [`escaped`], if it is UTF-8.
pub fn plain_text(text: &str) -> Option<String> {
    String::from_utf8(plain(text)?).ok()
}

/// A question does not match the log: the description of the difference.
pub type Mismatch = String;

/// Result of a poll in a replay.
#[derive(Debug, PartialEq, Eq)]
pub enum Poll {
    /// These registrations, each with its events.
    Ready(Vec<(usize, u8)>),
    /// The recorded run came no further: it was ended by that signal.
    Ended(i32),
}

/// The log of a recorded run, which a replay gets in place of the system's answers.
///
/// # Invariant
/// A question is answered by the next entry or by none: entries are never skipped.
#[derive(Default)]
pub struct Playback {
    entries: VecDeque<Entry>,
    /// Number of entries that were played.
    played: usize,
    /// Number of polls so far.
    polls: u64,
    /// The signal that ended the recorded run, if it did not end by itself.
    ended_by: Option<i32>,
}

impl Playback {
    /// Begins with the first entry.
    pub fn new(entries: Vec<Entry>, ended_by: Option<i32>) -> Playback {
        Playback {
            entries: entries.into(),
            ended_by,
            ..Playback::default()
        }
    }

    /// Returns the number of entries that were played.
    pub fn played(&self) -> usize {
        self.played
    }

    /// Returns the recorded answer to a question.
    pub fn answer(
        &mut self,
        verb: Verb,
        of: Option<Name>,
        asked: &Asked,
    ) -> Result<Result<Vec<u8>, i32>, Mismatch> {
        match self.entries.pop_front() {
            Some(Entry::Answer {
                verb: v,
                of: o,
                asked: a,
                answer,
            }) if (v, o, &a) == (verb, of, asked) => {
                self.played += 1;
                Ok(answer)
            }
            expected => {
                let mut got = describe(verb, of, asked);
                if expected.as_ref().is_some_and(|e| e.describe() == got) {
                    got.push_str(", of other bytes");
                }
                Err(self.mismatch(expected.as_ref(), &got))
            }
        }
    }

    /// Returns what the poll finds that the replay does now. `for_ever`: nothing else can happen.
    pub fn poll(&mut self, for_ever: bool) -> Result<Poll, Mismatch> {
        self.polls += 1;
        match self.entries.front() {
            Some(Entry::Ready { poll, .. }) if *poll == self.polls => {}
            Some(e @ Entry::Ready { poll, .. }) if *poll < self.polls => {
                return Err(self.mismatch(Some(e), "something else"));
            }
            None if for_ever && self.ended_by.is_some() => {
                return Ok(Poll::Ended(self.ended_by.unwrap_or_default()));
            }
            other if for_ever => {
                return Err(self.mismatch(other, "a wait for something from outside"));
            }
            _ => return Ok(Poll::Ready(Vec::new())),
        }
        self.played += 1;
        Ok(Poll::Ready(match self.entries.pop_front() {
            Some(Entry::Ready { what, .. }) => what,
            _ => Vec::new(),
        }))
    }

    fn mismatch(&self, expected: Option<&Entry>, got: &str) -> Mismatch {
        let at = self.played + 1;
        match expected {
            Some(Entry::Cut(why)) => {
                format!(
                    "outside, at event {at}: nothing is recorded from here on, since {why}; got {got}"
                )
            }
            Some(e) => format!(
                "outside, at event {at}: expected {}, got {got}",
                e.describe()
            ),
            None => format!("outside, at event {at}: expected nothing more, got {got}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_verbs() {
        for (i, row) in VERBS.iter().enumerate() {
            assert_eq!(row.0 as usize, i);
            assert_eq!(Verb::parse(row.1), Some(row.0));
        }
    }

    #[test]
    fn entries_survive_a_round_trip() {
        let every: Vec<u8> = (0..=255).collect();
        let answer = |verb, of, asked, answer| Entry::Answer {
            verb,
            of,
            asked,
            answer,
        };
        for e in [
            answer(Verb::Read, Some(('s', 3)), Asked::default(), Ok(every)),
            answer(
                Verb::Spawn,
                None,
                Asked::text("/bin/sh -c \"x y\" ä"),
                Err(2),
            ),
            answer(
                Verb::Write,
                Some(('p', 12)),
                Asked::data([&b"ab"[..], b"c"].into_iter()),
                Ok(Vec::new()),
            ),
            Entry::Ready {
                poll: 7,
                what: vec![(1, 3), (20, 4)],
            },
            Entry::Cut("it was too much".into()),
        ] {
            let line = e.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Entry::parse(&line), Some(e), "{line}");
        }
        for bad in [
            "",
            "read",
            "read - -",
            "read - - \" x",
            "nothing - - \" =",
            "ready x",
        ] {
            assert_eq!(Entry::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_question_is_describe() {
        let data = |b: &'static [u8]| Asked::data([b].into_iter());
        let socket = Some(('s', 3));
        assert_eq!(
            describe(Verb::Write, socket, &data(&[b'x'; 38])),
            "a write of 38 bytes to socket 3"
        );
        assert_eq!(
            describe(Verb::Read, socket, &Asked::default()),
            "a receive from socket 3"
        );
        let to = Asked::text("to 127.0.0.1:80");
        assert_eq!(
            describe(Verb::Connect, socket, &to),
            "a connection of socket 3 to 127.0.0.1:80"
        );
        assert_ne!(data(b"ab"), data(b"ba"));
    }

    #[test]
    fn a_replay_gets_recorded_answers_in_order() {
        let entry = |text: &str| Entry::Answer {
            verb: Verb::Connect,
            of: Some(('s', 1)),
            asked: Asked::text(text),
            answer: Err(111),
        };
        let ready = Entry::Ready {
            poll: 2,
            what: vec![(4, 1)],
        };
        let mut p = Playback::new(vec![entry("to a"), ready], Some(14));
        let asked = Asked::text("to a");
        let answer = p.answer(Verb::Connect, Some(('s', 1)), &asked);
        assert_eq!(answer, Ok(Err(111)));
        assert_eq!(p.poll(false), Ok(Poll::Ready(Vec::new())));
        assert_eq!(p.poll(true), Ok(Poll::Ready(vec![(4, 1)])));
        assert_eq!(p.poll(false), Ok(Poll::Ready(Vec::new())));
        assert_eq!(p.poll(true), Ok(Poll::Ended(14)));
        let mut p = Playback::new(vec![entry("to a")], None);
        let other = p.answer(Verb::Listen, Some(('s', 1)), &Asked::default());
        let expected =
            "outside, at event 1: expected a connection of socket 1 to a, got a listen at socket 1";
        assert_eq!(other, Err(expected.into()));
    }
}
