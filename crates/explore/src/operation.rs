//! Visible operations: what each one touches and whether it changes that. Two operations of two
//! processes race if they touch the same thing and at least one of them changes it.
//!
//! The kernel knows terms; here things are numbers. A native is the checksum of its name, so its
//! number stays the same when other natives are added.

use crate::checksum::checksum;

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// `Receiver ! Message`
    Send,
    /// A call of the native with that number: see [`Operation::native`].
    Native(u64),
    /// A process waits for a message for a limited time.
    Receive,
    /// A process that waited has become ready.
    Wake,
    /// A process ends.
    End,
}

impl Operation {
    /// Returns the call of the native of that name, written as `module:function/arity`.
    pub fn native(name: &str) -> Operation {
        Operation::Native(checksum(name.as_bytes()))
    }

    /// Returns a number for fingerprints. It depends on the operation alone, not on the build.
    pub fn number(self) -> u64 {
        match self {
            Operation::Send => 0,
            Operation::Receive => 1,
            Operation::Wake => 2,
            Operation::End => 3,
            Operation::Native(n) => n,
        }
    }

    /// Writes the operation as a word.
    pub fn text(self) -> String {
        match self {
            Operation::Send => "send".into(),
            Operation::Receive => "receive".into(),
            Operation::Wake => "wake".into(),
            Operation::End => "end".into(),
            Operation::Native(n) => format!("{n:x}"),
        }
    }

    /// Reads a word written by [`Operation::text`].
    pub fn parse(word: &str) -> Option<Operation> {
        Some(match word {
            "send" => Operation::Send,
            "receive" => Operation::Receive,
            "wake" => Operation::Wake,
            "end" => Operation::End,
            n => Operation::Native(u64::from_str_radix(n, 16).ok()?),
        })
    }
}

/// The thing that an operation touches, and how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Touch {
    pub operation: Operation,
    /// A number for the table, process, name or the like that is touched; 0 if it is unknown.
    pub object: u64,
    /// The key within a table; 0 for the whole table.
    pub key: u64,
    pub changes: bool,
    pub effects: Effects,
}

/// Properties of an operation that do not depend on its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Effects {
    /// Whether it sends a message to the process that it touches.
    pub sends: bool,
    /// Whether it makes a process or a port, or starts a timer.
    pub makes: bool,
    /// Whether a write may find that there is nothing to write, such as a request for a lock.
    pub may_do_nothing: bool,
}

impl Touch {
    /// Returns the end of the process with that number.
    pub fn end(process: u64) -> Touch {
        Touch {
            operation: Operation::End,
            object: process,
            key: 0,
            changes: true,
            effects: Effects::default(),
        }
    }

    /// Returns the event that the process with that number becomes ready.
    pub fn wake(process: u64) -> Touch {
        Touch {
            operation: Operation::Wake,
            ..Touch::end(process)
        }
    }

    /// Whether two operations of different processes race.
    pub fn races(&self, other: &Touch) -> bool {
        self.object != 0
            && self.object == other.object
            && (self.changes || other.changes)
            && (self.key == 0 || other.key == 0 || self.key == other.key)
    }
}

/// A scheduling point, named in a way that other schedules share: the path of a process, which is a
/// hash of its parent's path and its ordinal among its siblings, and the ordinal of one of its
/// operations.
pub type Point = (u64, u32);

/// An operation of the base, as the profile of the base has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    pub path: u64,
    pub op: u32,
    pub touch: Touch,
    /// Whether the program does it: program code is on the stack or made the process, and no
    /// compiler or loader stands above that code.
    pub own: bool,
    /// Whether program code is on the stack.
    pub code: bool,
    /// Whether the function from which on schedules are tried has been called.
    pub begun: bool,
    /// Number of program processes that could run instead.
    pub others: u32,
    /// Whether there are such processes, or a server that works for the program could run.
    pub served: bool,
    /// Virtual time, and the time at which the next known timer is due.
    pub at: i64,
    pub due: i64,
    /// Whether a test runner has begun its tests.
    pub tests: bool,
    /// Whether its effect outlasts the run, or is shared with runs that are forked from it later.
    pub lasts: bool,
}

impl Op {
    /// Returns the place of the operation in a schedule.
    pub fn point(&self) -> Point {
        (self.path, self.op)
    }

    /// Writes the operation as a line.
    pub fn text(&self) -> String {
        let t = &self.touch;
        let flags = [
            t.changes,
            t.effects.sends,
            t.effects.makes,
            t.effects.may_do_nothing,
            self.own,
            self.code,
            self.begun,
            self.served,
            self.tests,
            self.lasts,
        ];
        let flags: String = flags.iter().map(|f| if *f { '1' } else { '0' }).collect();
        format!(
            "{} {} {} {} {} {flags} {} {} {}",
            self.path,
            self.op,
            t.operation.text(),
            t.object,
            t.key,
            self.others,
            self.at,
            self.due
        )
    }

    /// Reads a line written by [`Op::text`].
    pub fn parse(line: &str) -> Option<Op> {
        let mut w = line.split(' ');
        let (path, op) = (w.next()?.parse().ok()?, w.next()?.parse().ok()?);
        let operation = Operation::parse(w.next()?)?;
        let (object, key) = (w.next()?.parse().ok()?, w.next()?.parse().ok()?);
        let flags: Vec<bool> = w.next()?.bytes().map(|b| b == b'1').collect();
        let [
            changes,
            sends,
            makes,
            may_do_nothing,
            own,
            code,
            begun,
            served,
            tests,
            lasts,
        ] = flags[..]
        else {
            return None;
        };
        Some(Op {
            path,
            op,
            touch: Touch {
                operation,
                object,
                key,
                changes,
                effects: Effects {
                    sends,
                    makes,
                    may_do_nothing,
                },
            },
            own,
            code,
            begun,
            others: w.next()?.parse().ok()?,
            served,
            at: w.next()?.parse().ok()?,
            due: w.next()?.parse().ok()?,
            tests,
            lasts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_survive_a_round_trip() {
        for operation in [
            Operation::Send,
            Operation::Receive,
            Operation::Wake,
            Operation::End,
            Operation::native("ets:insert/2"),
        ] {
            let op = Op {
                path: u64::MAX,
                op: 7,
                touch: Touch {
                    operation,
                    object: 9,
                    key: 1,
                    changes: true,
                    effects: Effects {
                        makes: true,
                        ..Effects::default()
                    },
                },
                own: true,
                code: false,
                begun: true,
                others: 3,
                served: true,
                at: -1,
                due: i64::MAX,
                tests: false,
                lasts: true,
            };
            assert_eq!(Op::parse(&op.text()), Some(op));
        }
        assert_eq!(Op::parse("1 2 send 3 4 01 5 6 7"), None);
    }

    #[test]
    fn reads_do_not_race_with_reads() {
        let write = Touch {
            operation: Operation::Send,
            ..Touch::end(5)
        };
        let read = Touch {
            changes: false,
            ..write
        };
        assert!(write.races(&read) && !read.races(&read));
        let unknown = Touch { object: 0, ..write };
        assert!(!unknown.races(&unknown));
    }
}
