//! System calls that are made to fail: their kinds, and the reasons for which they fail.
//!
//! A place is a kind and an ordinal: the Nth call of that kind which the program causes. It keeps
//! its name in all runs that are the same up to there, so a failed call is a deviation like any
//! other, at [`Call::point`].
//!
//! # Invariant
//! A reason is one that POSIX names for the call, and that happens: nothing handles the others.

use crate::checksum::checksum;
use crate::operation::Point;

/// The kind of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Call {
    /// Opens a file.
    Open,
    /// Reads from a file.
    Read,
    /// Writes to a file, or changes its length.
    Write,
    /// Writes what was written through to the disk.
    Sync,
    /// Closes a file.
    Close,
    /// Gives a file another name, or a further one.
    Rename,
    /// Removes the name of a file or a folder.
    Unlink,
    /// Makes a folder.
    Mkdir,
    /// Lists a folder.
    List,
    /// Asks for the properties of a file.
    Stat,
    /// Changes the owner, the mode or the times of a file.
    Chmod,
    /// Makes a socket.
    Socket,
    /// Connects a socket.
    Connect,
    /// Accepts a connection.
    Accept,
    /// Sends by a socket.
    Send,
    /// Receives from a socket.
    Recv,
    /// Starts a program.
    Spawn,
}

/// Why a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Reason {
    Eacces,
    Eagain,
    Econnaborted,
    Econnrefused,
    Econnreset,
    Eio,
    Emfile,
    Enobufs,
    Enomem,
    Enospc,
    Eperm,
    Etimedout,
    /// It does not fail: half of the bytes are transferred.
    Short,
}

use Call::*;
use Reason::*;

/// Reasons by their names.
const REASONS: [(Reason, &str); 13] = [
    (Eacces, "EACCES"),
    (Eagain, "EAGAIN"),
    (Econnaborted, "ECONNABORTED"),
    (Econnrefused, "ECONNREFUSED"),
    (Econnreset, "ECONNRESET"),
    (Eio, "EIO"),
    (Emfile, "EMFILE"),
    (Enobufs, "ENOBUFS"),
    (Enomem, "ENOMEM"),
    (Enospc, "ENOSPC"),
    (Eperm, "EPERM"),
    (Etimedout, "ETIMEDOUT"),
    (Short, "SHORT"),
];

/// A kind of calls: its name, the group that has it, and why a call fails, the likeliest reason
/// first.
type Row = (Call, &'static str, &'static str, &'static [Reason]);

const FILES: &str = "files";
const SOCKETS: &str = "sockets";
const ALL: &str = "all";

const CALLS: [Row; 17] = [
    (Open, "open", FILES, &[Emfile, Eacces]),
    (Read, "read", FILES, &[Eio, Short]),
    (Write, "write", FILES, &[Enospc, Eio, Short]),
    (Sync, "sync", FILES, &[Eio]),
    (Close, "close", FILES, &[Eio]),
    (Rename, "rename", FILES, &[Enospc, Eacces]),
    (Unlink, "unlink", FILES, &[Eacces]),
    (Mkdir, "mkdir", FILES, &[Enospc, Eacces]),
    (List, "list", FILES, &[Emfile, Eacces]),
    (Stat, "stat", FILES, &[Eacces]),
    (Chmod, "chmod", FILES, &[Eperm]),
    (Socket, "socket", SOCKETS, &[Emfile, Enobufs]),
    (Connect, "connect", SOCKETS, &[Econnrefused, Etimedout]),
    (Accept, "accept", SOCKETS, &[Emfile, Econnaborted]),
    (Send, "send", SOCKETS, &[Econnreset]),
    (Recv, "recv", SOCKETS, &[Econnreset, Etimedout]),
    (Spawn, "spawn", ALL, &[Eagain, Emfile, Enomem]),
];

impl Call {
    fn row(self) -> &'static Row {
        &CALLS[self as usize]
    }

    /// Returns its name on the command line and in replay files.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the call of that name.
    pub fn named(name: &str) -> Option<Call> {
        CALLS.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Reads a list of calls and groups, separated by commas. After a colon, each may have the one
    /// reason for which its calls fail. Returns the calls with their reasons, each pair once.
    pub fn list(text: &str) -> Option<Vec<(Call, Vec<Reason>)>> {
        let mut all: Vec<(Call, Vec<Reason>)> = Vec::new();
        for word in text.split(',') {
            let (word, reason) = match word.split_once(':') {
                Some((word, name)) => (word, Some(Reason::named(name)?)),
                None => (word, None),
            };
            let of = |row: &&Row| row.1 == word || row.2 == word || word == ALL;
            let fits = |r: &&Reason| reason.is_none_or(|wanted| wanted == **r);
            let mut any = false;
            for row in CALLS.iter().filter(of) {
                let reasons = row.3.iter().filter(fits);
                let place = all.iter().position(|(c, _)| *c == row.0);
                let mut known = place.map_or(Vec::new(), |i| all[i].1.clone());
                for &r in reasons {
                    any = true;
                    if !known.contains(&r) {
                        known.push(r);
                    }
                }
                match place {
                    Some(i) => all[i].1 = known,
                    None if known.is_empty() => {}
                    None => all.push((row.0, known)),
                }
            }
            if !any {
                return None;
            }
        }
        Some(all)
    }

    /// Returns the names of all calls and groups, for people.
    pub fn names() -> String {
        let mut all: Vec<&str> = CALLS.iter().map(|row| row.1).collect();
        all.extend([FILES, SOCKETS, ALL]);
        all.join(", ")
    }

    /// Returns the scheduling point of the Nth call of this kind.
    pub fn point(self, n: u32) -> Point {
        (checksum(format!("call {}", self.name()).as_bytes()), n)
    }
}

impl Reason {
    /// Returns its name, which is that of the error of the system.
    pub fn name(self) -> &'static str {
        REASONS[self as usize].1
    }

    /// Returns the reason of that name.
    pub fn named(name: &str) -> Option<Reason> {
        REASONS.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

/// A call that fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Failing {
    pub call: Call,
    pub reason: Reason,
    /// Whether all later calls of the kind fail, too.
    pub lasts: bool,
}

impl Failing {
    /// Writes it as replay files have it.
    pub fn text(self) -> String {
        let lasts = if self.lasts { "ever" } else { "once" };
        format!("{} {} {lasts}", self.call.name(), self.reason.name())
    }

    /// Reads the words of a text written by [`Failing::text`].
    pub fn parse<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Failing> {
        Some(Failing {
            call: Call::named(words.next()?)?,
            reason: Reason::named(words.next()?)?,
            lasts: match words.next()? {
                "ever" => true,
                "once" => false,
                _ => return None,
            },
        })
    }

    /// Says what happens to the Nth call.
    pub fn describe(self, n: u32) -> String {
        let name = self.call.name();
        match (self.reason, self.lasts) {
            (Short, false) => format!("{name} {n} transfers half of its bytes"),
            (Short, true) => format!("{name} {n} and all later ones transfer half of their bytes"),
            (r, false) => format!("{name} {n} fails with {}", r.name()),
            (r, true) => format!("{name} {n} and all later ones fail with {}", r.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_at_their_numbers() {
        assert!(CALLS.iter().enumerate().all(|(i, row)| row.0 as usize == i));
        assert!(
            REASONS
                .iter()
                .enumerate()
                .all(|(i, row)| row.0 as usize == i)
        );
        assert!(CALLS.iter().all(|row| !row.3.is_empty()));
    }

    #[test]
    fn groups_have_their_calls_once() {
        let calls = |text| {
            let list = Call::list(text)?;
            Some(list.into_iter().map(|(c, _)| c).collect::<Vec<_>>())
        };
        assert_eq!(calls("sync,write,sync"), Some(vec![Sync, Write]));
        assert_eq!(calls("sockets").map(|l| l.len()), Some(5));
        assert_eq!(calls("all").map(|l| l.len()), Some(CALLS.len()));
        assert_eq!(calls("write,files").map(|l| l[0]), Some(Write));
        assert_eq!(calls("fsync"), None);
        assert_eq!(calls(""), None);
    }

    #[test]
    fn lists_name_reasons() {
        let one = Call::list("write:EIO,write:ENOSPC,write:EIO");
        assert_eq!(one, Some(vec![(Write, vec![Eio, Enospc])]));
        let group = Call::list("files:SHORT");
        let both = vec![(Read, vec![Short]), (Write, vec![Short])];
        assert_eq!(group, Some(both));
        assert_eq!(Call::list("sync:ENOSPC"), None);
        assert_eq!(Call::list("sync:EWHY"), None);
        assert_eq!(Call::list("sync:"), None);
    }

    #[test]
    fn failing_calls_survive_a_round_trip() {
        for row in CALLS {
            for &reason in row.3 {
                for lasts in [false, true] {
                    let f = Failing {
                        call: row.0,
                        reason,
                        lasts,
                    };
                    assert_eq!(Failing::parse(&mut f.text().split(' ')), Some(f));
                }
            }
        }
        assert_eq!(Failing::parse(&mut "write EIO sometimes".split(' ')), None);
    }
}
