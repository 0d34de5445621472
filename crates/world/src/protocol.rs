//! The messages between a node and the coordinator that owns its world.
//!
//! A node that runs has the turn. It asks, and waits for the answer; the answer to [`Call::Idle`]
//! and [`Call::Over`] is the next turn. A message is its length in four bytes and its fields; all
//! numbers are big-endian.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{IpAddr, SocketAddr};

/// The version of the protocol. A node of another build is refused.
pub const VERSION: u64 = 4;

/// Maximum number of bytes in a message.
const MOST_BYTES: usize = 64 << 20;

/// Something of the world that a descriptor of a node stands for: a socket, an end of a pipe, or
/// the end of a program. Numbers are counted for each node.
pub type Thing = u64;

/// The wish of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// The emulator that was started with that word has begun, as the process of that number.
    Hello {
        version: u64,
        word: String,
        process: u64,
    },
    /// Nothing can run before the time `next`, or before a thing is ready for its events.
    Idle {
        next: Option<u64>,
        watched: Vec<(Thing, u32)>,
    },
    /// The time of the turn is over. The next turn says what of the watched is ready.
    Over {
        watched: Vec<(Thing, u32)>,
    },
    /// The emulator ends with that status. The hash is that of its operations.
    Ended {
        status: u64,
        hash: u64,
    },
    /// The program has left the model.
    Left {
        how: String,
    },
    Socket {
        v6: bool,
        datagrams: bool,
    },
    Bind {
        of: Thing,
        to: SocketAddr,
    },
    Listen {
        of: Thing,
        backlog: u64,
    },
    Connect {
        of: Thing,
        to: SocketAddr,
    },
    Accept {
        of: Thing,
    },
    /// 0: what is read, 1: what is written, 2: both.
    Shutdown {
        of: Thing,
        how: u64,
    },
    Close {
        of: Thing,
    },
    Name {
        of: Thing,
    },
    PeerName {
        of: Thing,
    },
    Send {
        of: Thing,
        data: Vec<u8>,
    },
    Recv {
        of: Thing,
        room: u64,
    },
    /// Sends a datagram.
    SendTo {
        of: Thing,
        to: SocketAddr,
        data: Vec<u8>,
    },
    /// Receives a datagram: the length of its sender's address, the address, the data.
    RecvFrom {
        of: Thing,
        room: u64,
    },
    Reuse {
        of: Thing,
        on: bool,
    },
    Aborts {
        of: Thing,
        on: bool,
    },
    TakeError {
        of: Thing,
    },
    Ready {
        of: Thing,
    },
    /// Makes the pipes of a program: its input and its output.
    Pipes,
    /// The program with these pipes is about to be started.
    Start {
        input: Thing,
        output: Thing,
    },
    /// The program with that word runs as the process of that number.
    Started {
        word: String,
        process: u64,
    },
    /// The answer to this and the next is the time at which the node continues, if it was
    /// held meanwhile, and its wall clock, as [`Turn::started`], if that has changed.
    File(FileCall),
    Note(Note),
    /// The operations that processes did since the last call of this kind, while a sampler picks
    /// the process to run.
    Order {
        points: Vec<Point>,
    },
    Switch(Switch),
    /// Asks how the node has ended that this node started and whose end that thing is: its status,
    /// as by wait(2).
    EndOf {
        of: Thing,
    },
}

/// The path of a process, and the ordinal of an operation in it.
pub type Point = (u64, u32);

/// A process waits for another one before an operation, as the order of processes demands, or has
/// done an operation for which one has waited.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Switch {
    /// The operation before which it waits. `None`: it has done one.
    pub at: Option<Point>,
    pub pid: String,
    /// The registered name of the process.
    pub name: String,
    pub text: String,
    /// File and line.
    pub place: String,
}

/// The kind of a [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteStep {
    /// A process is about to send something to a process of the other node.
    Sends = 0,
    /// A message of the other node has arrived, and is about to be put into a mailbox.
    Gets = 1,
}

/// Something between the processes of two nodes: a place for faults, and a line of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub step: NoteStep,
    /// Whether code of the program does it.
    pub is_program: bool,
    /// The name of the other node.
    pub other: String,
    /// The message, without the parts that differ from one of its kind to the next.
    pub shape: String,
    /// To whom, and by which function: with the shape a name that survives changes of the program.
    pub class: String,
    pub pid: String,
    /// The registered name of the process.
    pub name: String,
    pub text: String,
    /// File and line.
    pub place: String,
}

/// The kind of a step that a node makes with files. See [`Welcome::files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStep {
    /// It is about to make a call, which takes room on the disk if `n` is 1. An error is the result
    /// of that call.
    Begins = 0,
    /// `path` was there before the node did anything with it, and has the contents `data`.
    Known = 1,
    /// `path` was opened for writing as `fd`. `n` has bits of [`open_bits`], and the mode above
    /// them.
    Opened = 2,
    /// `data` was written at the offset `n` of `fd`.
    Written = 3,
    /// `fd` has the length `n` now.
    Length = 4,
    Synced = 5,
    Closed = 6,
    /// `path` has the name `data` now.
    Renamed = 7,
    /// `path` has the name `data`, too.
    Linked = 8,
    /// `path` is a symbolic link with the text `data`.
    LinkedSoftly = 9,
    /// `path` is a new folder.
    MadeFolder = 10,
    /// The name of a file, or an empty folder, was removed.
    Removed = 11,
}

/// Bits of [`FileStep::Opened`].
pub mod open_bits {
    pub const TRUNCATED: u64 = 1;
    /// Each write is synced.
    pub const SYNC: u64 = 2;
    /// Position of the mode.
    pub const MODE: u32 = 8;
}

impl FileStep {
    const ALL: [FileStep; 12] = [
        FileStep::Begins,
        FileStep::Known,
        FileStep::Opened,
        FileStep::Written,
        FileStep::Length,
        FileStep::Synced,
        FileStep::Closed,
        FileStep::Renamed,
        FileStep::Linked,
        FileStep::LinkedSoftly,
        FileStep::MadeFolder,
        FileStep::Removed,
    ];
}

/// A step, and the fields that it has. Paths are whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCall {
    pub step: FileStep,
    pub fd: u64,
    pub n: u64,
    pub path: Vec<u8>,
    pub data: Vec<u8>,
}

/// A question of a node at its time, in nanoseconds since the world began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub now: u64,
    pub call: Call,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The time at which the turn ends.
    pub until: u64,
    /// The result of the call, or an error number.
    pub answer: std::result::Result<Vec<u8>, i32>,
}

/// The first turn of a node, and others: the answer to [`Call::Idle`] and its like.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Turn {
    pub now: u64,
    /// The wall clock when the world began, as the node's clock has it now.
    pub started: u64,
    /// Things with the events that they are ready for.
    pub ready: Vec<(Thing, u32)>,
    /// If this is no turn: the node makes a copy of itself, which begins with that word, and asks
    /// again.
    pub fork: String,
    /// The order in which processes run from here on, if it changes: a sampler and its seed, or
    /// `after`, and for each switch the point before which a process waits, and the one for which
    /// it does.
    pub order: String,
}

/// The first answer that a node gets.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Welcome {
    pub now: u64,
    /// The wall clock when the world began, in nanoseconds since 1970.
    pub started: u64,
    /// Numbers from which identifiers and random bytes follow.
    pub ids: u64,
    pub random: u64,
    /// The number that the program sees as its process's.
    pub process: u64,
    /// The ends of pipes that are standard input and output.
    pub pipes: Option<(Thing, Thing)>,
    /// Whether the node reports what it does with files.
    pub files: bool,
    /// Folders of libraries beside those of OTP, each a line.
    pub libraries: String,
}

// ---- writing and reading ----

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, n: u64) -> &mut Self {
        self.0.extend(n.to_be_bytes());
        self
    }
    fn bytes(&mut self, b: &[u8]) -> &mut Self {
        self.number(b.len() as u64);
        self.0.extend(b);
        self
    }
    fn address(&mut self, a: SocketAddr) -> &mut Self {
        match a.ip() {
            IpAddr::V4(ip) => self.bytes(&ip.octets()),
            IpAddr::V6(ip) => self.bytes(&ip.octets()),
        };
        self.number(a.port().into())
    }
    fn pairs(&mut self, all: &[(Thing, u32)]) -> &mut Self {
        self.number(all.len() as u64);
        for (thing, events) in all {
            self.number(*thing).number((*events).into());
        }
        self
    }
    fn points(&mut self, all: &[Point]) -> &mut Self {
        self.number(all.len() as u64);
        for (path, op) in all {
            self.number(*path).number((*op).into());
        }
        self
    }
    fn option(&mut self, n: Option<u64>) -> &mut Self {
        self.number(n.is_some().into()).number(n.unwrap_or(0))
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*head))
    }
    fn bytes(&mut self) -> Option<Vec<u8>> {
        let n = usize::try_from(self.number()?).ok()?;
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head.to_vec())
    }
    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }
    fn flag(&mut self) -> Option<bool> {
        Some(self.number()? != 0)
    }
    fn address(&mut self) -> Option<SocketAddr> {
        let ip = self.bytes()?;
        let ip: IpAddr = match ip.len() {
            4 => <[u8; 4]>::try_from(ip).ok()?.into(),
            _ => <[u8; 16]>::try_from(ip).ok()?.into(),
        };
        Some(SocketAddr::new(ip, u16::try_from(self.number()?).ok()?))
    }
    fn pairs(&mut self) -> Option<Vec<(Thing, u32)>> {
        let n = self.number()?;
        let mut all = Vec::new();
        for _ in 0..n {
            all.push((self.number()?, u32::try_from(self.number()?).ok()?));
        }
        Some(all)
    }
    fn points(&mut self) -> Option<Vec<Point>> {
        let n = self.number()?;
        let mut all = Vec::new();
        for _ in 0..n {
            all.push((self.number()?, u32::try_from(self.number()?).ok()?));
        }
        Some(all)
    }
    fn option(&mut self) -> Option<Option<u64>> {
        let is_some = self.flag()?;
        let n = self.number()?;
        Some(is_some.then_some(n))
    }
}

impl FileCall {
    fn read(r: &mut Reader<'_>) -> Option<FileCall> {
        Some(FileCall {
            step: *FileStep::ALL.get(usize::try_from(r.number()?).ok()?)?,
            fd: r.number()?,
            n: r.number()?,
            path: r.bytes()?,
            data: r.bytes()?,
        })
    }
}

impl Note {
    fn read(r: &mut Reader<'_>) -> Option<Note> {
        Some(Note {
            step: match r.number()? {
                0 => NoteStep::Sends,
                1 => NoteStep::Gets,
                _ => return None,
            },
            is_program: r.flag()?,
            other: r.text()?,
            shape: r.text()?,
            class: r.text()?,
            pid: r.text()?,
            name: r.text()?,
            text: r.text()?,
            place: r.text()?,
        })
    }

    /// Its texts, in the order in which they are written.
    fn texts(&self) -> [&String; 7] {
        [
            &self.other,
            &self.shape,
            &self.class,
            &self.pid,
            &self.name,
            &self.text,
            &self.place,
        ]
    }
}

impl Question {
    /// Writes it as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer(Vec::new());
        w.number(self.now);
        match &self.call {
            Call::Hello {
                version,
                word,
                process,
            } => w
                .number(0)
                .number(*version)
                .bytes(word.as_bytes())
                .number(*process),
            Call::Idle { next, watched } => w.number(1).option(*next).pairs(watched),
            Call::Over { watched } => w.number(2).pairs(watched),
            Call::Ended { status, hash } => w.number(3).number(*status).number(*hash),
            Call::Left { how } => w.number(4).bytes(how.as_bytes()),
            Call::Socket { v6, datagrams } => {
                w.number(5).number((*v6).into()).number((*datagrams).into())
            }
            Call::Bind { of, to } => w.number(6).number(*of).address(*to),
            Call::Listen { of, backlog } => w.number(7).number(*of).number(*backlog),
            Call::Connect { of, to } => w.number(8).number(*of).address(*to),
            Call::Accept { of } => w.number(9).number(*of),
            Call::Shutdown { of, how } => w.number(10).number(*of).number(*how),
            Call::Close { of } => w.number(11).number(*of),
            Call::Name { of } => w.number(12).number(*of),
            Call::PeerName { of } => w.number(13).number(*of),
            Call::Send { of, data } => w.number(14).number(*of).bytes(data),
            Call::Recv { of, room } => w.number(15).number(*of).number(*room),
            Call::SendTo { of, to, data } => w.number(23).number(*of).address(*to).bytes(data),
            Call::RecvFrom { of, room } => w.number(24).number(*of).number(*room),
            Call::Reuse { of, on } => w.number(16).number(*of).number((*on).into()),
            Call::Aborts { of, on } => w.number(17).number(*of).number((*on).into()),
            Call::TakeError { of } => w.number(18).number(*of),
            Call::Ready { of } => w.number(19).number(*of),
            Call::Pipes => w.number(20),
            Call::Start { input, output } => w.number(21).number(*input).number(*output),
            Call::Started { word, process } => w.number(22).bytes(word.as_bytes()).number(*process),
            Call::File(f) => w
                .number(25)
                .number(f.step as u64)
                .number(f.fd)
                .number(f.n)
                .bytes(&f.path)
                .bytes(&f.data),
            Call::Note(n) => {
                w.number(26).number(n.step as u64);
                w.number(n.is_program.into());
                for text in n.texts() {
                    w.bytes(text.as_bytes());
                }
                &mut w
            }
            Call::Order { points } => w.number(27).points(points),
            Call::Switch(s) => {
                let at: Vec<Point> = s.at.into_iter().collect();
                w.number(28).points(&at);
                for text in [&s.pid, &s.name, &s.text, &s.place] {
                    w.bytes(text.as_bytes());
                }
                &mut w
            }
            Call::EndOf { of } => w.number(29).number(*of),
        };
        w.0
    }

    /// Reads what [`Question::to_bytes`] has written.
    pub fn from_bytes(bytes: &[u8]) -> Option<Question> {
        let mut r = Reader(bytes);
        let now = r.number()?;
        let call = match r.number()? {
            0 => Call::Hello {
                version: r.number()?,
                word: r.text()?,
                process: r.number()?,
            },
            1 => Call::Idle {
                next: r.option()?,
                watched: r.pairs()?,
            },
            2 => Call::Over {
                watched: r.pairs()?,
            },
            3 => Call::Ended {
                status: r.number()?,
                hash: r.number()?,
            },
            4 => Call::Left { how: r.text()? },
            5 => Call::Socket {
                v6: r.flag()?,
                datagrams: r.flag()?,
            },
            20 => Call::Pipes,
            21 => Call::Start {
                input: r.number()?,
                output: r.number()?,
            },
            22 => Call::Started {
                word: r.text()?,
                process: r.number()?,
            },
            25 => Call::File(FileCall::read(&mut r)?),
            26 => Call::Note(Note::read(&mut r)?),
            27 => Call::Order {
                points: r.points()?,
            },
            28 => Call::Switch(Switch {
                at: r.points()?.first().copied(),
                pid: r.text()?,
                name: r.text()?,
                text: r.text()?,
                place: r.text()?,
            }),
            kind => {
                let of = r.number()?;
                match kind {
                    6 => Call::Bind {
                        of,
                        to: r.address()?,
                    },
                    7 => Call::Listen {
                        of,
                        backlog: r.number()?,
                    },
                    8 => Call::Connect {
                        of,
                        to: r.address()?,
                    },
                    9 => Call::Accept { of },
                    10 => Call::Shutdown {
                        of,
                        how: r.number()?,
                    },
                    11 => Call::Close { of },
                    12 => Call::Name { of },
                    13 => Call::PeerName { of },
                    14 => Call::Send {
                        of,
                        data: r.bytes()?,
                    },
                    15 => Call::Recv {
                        of,
                        room: r.number()?,
                    },
                    23 => Call::SendTo {
                        of,
                        to: r.address()?,
                        data: r.bytes()?,
                    },
                    24 => Call::RecvFrom {
                        of,
                        room: r.number()?,
                    },
                    16 => Call::Reuse { of, on: r.flag()? },
                    17 => Call::Aborts { of, on: r.flag()? },
                    18 => Call::TakeError { of },
                    19 => Call::Ready { of },
                    29 => Call::EndOf { of },
                    _ => return None,
                }
            }
        };
        r.0.is_empty().then_some(Question { now, call })
    }
}

impl Reply {
    /// Writes it as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer(Vec::new());
        w.number(self.until);
        match &self.answer {
            Ok(bytes) => w.number(0).bytes(bytes),
            Err(e) => w.number(1).number(*e as u64),
        };
        w.0
    }

    /// Reads what [`Reply::to_bytes`] has written.
    pub fn from_bytes(bytes: &[u8]) -> Option<Reply> {
        let mut r = Reader(bytes);
        Some(Reply {
            until: r.number()?,
            answer: match r.number()? {
                0 => Ok(r.bytes()?),
                _ => Err(r.number()? as i32),
            },
        })
    }
}

impl Turn {
    /// Writes it as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer(Vec::new());
        w.number(self.now).number(self.started).pairs(&self.ready);
        w.bytes(self.fork.as_bytes()).bytes(self.order.as_bytes());
        w.0
    }

    /// Reads what [`Turn::to_bytes`] has written.
    pub fn from_bytes(bytes: &[u8]) -> Option<Turn> {
        let mut r = Reader(bytes);
        Some(Turn {
            now: r.number()?,
            started: r.number()?,
            ready: r.pairs()?,
            fork: r.text()?,
            order: r.text()?,
        })
    }
}

impl Welcome {
    /// Writes it as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer(Vec::new());
        w.number(self.now)
            .number(self.started)
            .number(self.ids)
            .number(self.random)
            .number(self.process)
            .option(self.pipes.map(|p| p.0))
            .option(self.pipes.map(|p| p.1))
            .number(self.files.into())
            .bytes(self.libraries.as_bytes());
        w.0
    }

    /// Reads what [`Welcome::to_bytes`] has written.
    pub fn from_bytes(bytes: &[u8]) -> Option<Welcome> {
        let mut r = Reader(bytes);
        Some(Welcome {
            now: r.number()?,
            started: r.number()?,
            ids: r.number()?,
            random: r.number()?,
            process: r.number()?,
            pipes: r.option()?.zip(r.option()?),
            files: r.flag()?,
            libraries: r.text()?,
        })
    }
}

/// Writes things or other numbers as an answer.
pub fn numbers(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// Reads one of the numbers that [`numbers`] has written.
pub fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at * 8..at * 8 + 8)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

/// Writes an address as an answer.
pub fn address(a: SocketAddr) -> Vec<u8> {
    let mut w = Writer(Vec::new());
    w.address(a);
    w.0
}

/// Reads what [`address`] has written.
pub fn read_address(bytes: &[u8]) -> Option<SocketAddr> {
    Reader(bytes).address()
}

/// Sends a message.
pub fn send(to: &mut impl Write, message: &[u8]) -> Result<()> {
    let mut all = Vec::with_capacity(message.len() + 4);
    all.extend((message.len() as u32).to_be_bytes());
    all.extend(message);
    to.write_all(&all)
}

/// Receives a message.
pub fn receive(from: &mut impl Read) -> Result<Vec<u8>> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let n = u32::from_be_bytes(head) as usize;
    if n > MOST_BYTES {
        return Err(Error::from(ErrorKind::InvalidData));
    }
    let mut message = vec![0; n];
    from.read_exact(&mut message)?;
    Ok(message)
}

/// Receives a message after which its sender waits for an answer: nothing follows it, so a small
/// one comes with one call.
pub fn receive_last(from: &mut impl Read) -> Result<Vec<u8>> {
    let mut first = [0; 4096];
    let mut got = 0;
    while got < 4 {
        got += match from.read(&mut first[got..]) {
            Ok(0) => return Err(Error::from(ErrorKind::UnexpectedEof)),
            Err(e) if e.kind() == ErrorKind::Interrupted => 0,
            n => n?,
        };
    }
    let n = u32::from_be_bytes([first[0], first[1], first[2], first[3]]) as usize;
    if n > MOST_BYTES || got - 4 > n {
        return Err(Error::from(ErrorKind::InvalidData));
    }
    let mut message = vec![0; n];
    let (head, rest) = message.split_at_mut(got - 4);
    head.copy_from_slice(&first[4..got]);
    from.read_exact(rest)?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Call> {
        let to: SocketAddr = "10.0.0.1:4369".parse().expect("an address");
        let v6: SocketAddr = "[::1]:7".parse().expect("an address");
        vec![
            Call::Hello {
                version: VERSION,
                word: "n1".into(),
                process: 7,
            },
            Call::Idle {
                next: None,
                watched: vec![(3, 5)],
            },
            Call::Idle {
                next: Some(9),
                watched: vec![],
            },
            Call::Over { watched: vec![] },
            Call::Ended {
                status: 1,
                hash: u64::MAX,
            },
            Call::Left { how: "é".into() },
            Call::Socket {
                v6: true,
                datagrams: false,
            },
            Call::Bind { of: 1, to },
            Call::Listen { of: 1, backlog: 5 },
            Call::Connect { of: 1, to: v6 },
            Call::Accept { of: 2 },
            Call::Shutdown { of: 2, how: 1 },
            Call::Close { of: 2 },
            Call::Name { of: 2 },
            Call::PeerName { of: 2 },
            Call::Send {
                of: 2,
                data: vec![1, 2, 3],
            },
            Call::Recv { of: 2, room: 10 },
            Call::SendTo {
                of: 2,
                to,
                data: vec![4],
            },
            Call::RecvFrom { of: 2, room: 10 },
            Call::Reuse { of: 2, on: true },
            Call::Aborts { of: 2, on: false },
            Call::TakeError { of: 2 },
            Call::Ready { of: 2 },
            Call::Pipes,
            Call::Start {
                input: 1,
                output: 2,
            },
            Call::Started {
                word: "p1".into(),
                process: 3,
            },
            Call::File(FileCall {
                step: FileStep::Removed,
                fd: 4,
                n: 5,
                path: b"/a".to_vec(),
                data: vec![6],
            }),
            Call::Note(Note {
                step: NoteStep::Gets,
                is_program: true,
                other: "n2@world".into(),
                shape: "{ask,_}".into(),
                class: "{ask,_} to raft".into(),
                pid: "<0.9.0>".into(),
                name: String::new(),
                text: "{ask,1}".into(),
                place: "a.erl:4".into(),
            }),
            Call::Order {
                points: vec![(u64::MAX, 2), (3, u32::MAX)],
            },
            Call::Switch(Switch {
                at: Some((7, 8)),
                pid: "<0.9.0>".into(),
                ..Switch::default()
            }),
            Call::Switch(Switch::default()),
            Call::EndOf { of: 3 },
        ]
    }

    #[test]
    fn messages_survive_a_round_trip() {
        for call in all() {
            let q = Question { now: 5, call };
            let bytes = q.to_bytes();
            assert_eq!(Question::from_bytes(&bytes).as_ref(), Some(&q));
            // No part of a message is one.
            for n in 0..bytes.len() {
                assert_eq!(Question::from_bytes(&bytes[..n]), None, "{q:?} cut at {n}");
            }
        }
        for answer in [Ok(vec![1]), Err(11)] {
            let r = Reply { until: 3, answer };
            assert_eq!(Reply::from_bytes(&r.to_bytes()), Some(r));
        }
        for (n, step) in FileStep::ALL.into_iter().enumerate() {
            assert_eq!(step as usize, n);
        }
        let t = Turn {
            now: 4,
            started: 8,
            ready: vec![(1, 4)],
            fork: "f1".into(),
            order: "pos 7".into(),
        };
        assert_eq!(Turn::from_bytes(&t.to_bytes()), Some(t));
        let w = Welcome {
            pipes: Some((1, 2)),
            ids: 5,
            files: true,
            libraries: "/lib".into(),
            ..Welcome::default()
        };
        assert_eq!(Welcome::from_bytes(&w.to_bytes()), Some(w));
    }

    #[test]
    fn damaged_messages_are_refused() {
        let mut numbers = crate::streams::Stream::from_state(1);
        for call in all() {
            let bytes = Question { now: 5, call }.to_bytes();
            for _ in 0..200 {
                let mut b = bytes.clone();
                let at = numbers.below(b.len() as u64) as usize;
                b[at] = numbers.draw() as u8;
                // It is read as another message, or refused; nothing else.
                let _ = Question::from_bytes(&b);
            }
        }
        let mut long: &[u8] = &[0xff; 8];
        assert!(receive(&mut long).is_err());
        let mut more: &[u8] = &[0, 0, 0, 1, 7, 7];
        assert!(receive_last(&mut more).is_err());
    }

    #[test]
    fn messages_of_all_sizes_are_received() {
        for n in [0, 1, 4091, 4092, 4093, 10_000] {
            let mut sent = Vec::new();
            send(&mut sent, &vec![7; n]).expect("room");
            assert_eq!(
                receive(&mut sent.as_slice()).expect("a message"),
                vec![7; n]
            );
            assert_eq!(receive_last(&mut sent.as_slice()).expect("one"), vec![7; n]);
            sent.pop();
            assert!(receive(&mut sent.as_slice()).is_err());
            assert!(receive_last(&mut sent.as_slice()).is_err());
        }
    }
}
