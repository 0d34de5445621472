//! The tape: what a run of the mode with one thread (`single`) has got from outside, in order, and what it has asked for. A run that
//! notes writes each answer of the system to a file as it comes; one that plays gets these answers in place of the system's, and is
//! held against what was asked then.
//!
//! A door is a place where the system is asked: it asks [`ask`] first, whether the answer is known, and tells [`note`] its own otherwise,
//! or does both by [`call`]. Apart from what comes through doors nothing enters, so a run that plays comes to the same doors in the same order.
//! When nobody can run it is looked whether descriptors are ready: looks are counted, and those that have found something are on the tape.
//!
//! # Invariants
//! * While the tape is off a door costs a look at a flag, beside a call of the system.
//! * A run that plays opens, starts and writes nothing by a door: its descriptors are placeholders, on `/dev/null`.
//! * The tape has [`MOST_BYTES`] at most. What comes behind is not known: a run that plays ends there.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Bytes of a tape at most.
pub const MOST_BYTES: usize = 64 << 20;

/// What is asked: as a word on the tape, and as people are told it, before the thing that is asked.
macro_rules! verbs {
    ($($name:ident $word:literal $told:literal;)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Verb { $($name),* }
        const VERBS: &[(Verb, &str, &str)] = &[$((Verb::$name, $word, $told)),*];
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
    fn of(word: &str) -> Option<Verb> {
        VERBS.iter().find(|r| r.1 == word).map(|r| r.0)
    }
    fn row(self) -> &'static (Verb, &'static str, &'static str) {
        &VERBS[self as usize]
    }
}

/// What is asked, beside the verb and the descriptor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// As people are told it.
    pub text: String,
    /// Bytes that go out, by their number and sum.
    pub data: Option<(usize, u64)>,
}

impl Asked {
    /// Told so.
    pub fn text(text: impl Into<String>) -> Asked {
        Asked {
            text: text.into(),
            data: None,
        }
    }
    /// These bytes, one part behind the other.
    pub fn data<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Asked {
        let (mut n, mut sum) = (0, SUM);
        for p in parts {
            n += p.len();
            sum = added(sum, p);
        }
        Asked {
            text: String::new(),
            data: Some((n, sum)),
        }
    }
}

const SUM: u64 = 0xCBF2_9CE4_8422_2325;

/// The sum of bytes (FNV-1a): who has changed or lost some is told from who has not.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    added(SUM, bytes)
}

fn added(sum: u64, bytes: &[u8]) -> u64 {
    let byte = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01B3);
    bytes.iter().fold(sum, byte)
}

/// What a descriptor is, with its number among those of its kind: `socket 3`.
type Name = (char, u32);

/// The kinds of descriptors.
const KINDS: &[(char, &str)] = &[('s', "socket"), ('p', "program"), ('f', "file")];

fn told_name(n: Option<Name>) -> String {
    let Some((kind, number)) = n else {
        return String::new();
    };
    let row = KINDS.iter().find(|k| k.0 == kind);
    format!("{} {number}", row.map_or("descriptor", |k| k.1))
}

/// A question with its answer, or a look that has found something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    Answer {
        verb: Verb,
        of: Option<Name>,
        asked: Asked,
        /// Bytes, or the number of an error.
        answer: Result<Vec<u8>, i32>,
    },
    /// The number of the look, and what was ready: registrations, and for what (1 input, 2 output, 4 errors).
    Ready { look: u64, what: Vec<(usize, u8)> },
    /// Nothing was recorded from here on, for that reason.
    Cut(String),
}

impl Entry {
    /// As a line.
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
            Entry::Ready { look, what } => {
                let mut line = format!("ready {look}");
                for (id, bits) in what {
                    let _ = write!(line, " {id}:{bits}");
                }
                line
            }
            Entry::Cut(why) => format!("cut \"{}", escaped(why.as_bytes())),
        }
    }
    /// That of a line.
    pub fn of(line: &str) -> Option<Entry> {
        let (key, rest) = line.split_once(' ')?;
        match key {
            "ready" => {
                let mut w = rest.split(' ');
                let look = w.next()?.parse().ok()?;
                let pair = |p: &str| {
                    let (id, bits) = p.split_once(':')?;
                    Some((id.parse().ok()?, bits.parse().ok()?))
                };
                Some(Entry::Ready {
                    look,
                    what: w.map(pair).collect::<Option<_>>()?,
                })
            }
            "cut" => Some(Entry::Cut(plain_text(rest.strip_prefix('"')?)?)),
            word => {
                let verb = Verb::of(word)?;
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
    /// As people are told it.
    fn told(&self) -> String {
        match self {
            Entry::Answer {
                verb, of, asked, ..
            } => told(*verb, *of, asked),
            Entry::Ready { .. } => "something from outside to be ready".into(),
            Entry::Cut(why) => why.clone(),
        }
    }
}

/// A question, as people are told it.
fn told(verb: Verb, of: Option<Name>, asked: &Asked) -> String {
    let what = verb.row().2;
    let what = match (verb, asked.data) {
        (Verb::Write, Some((n, _))) => {
            format!("a write of {n} byte{} to", if n == 1 { "" } else { "s" })
        }
        _ => what.into(),
    };
    let parts = [what, told_name(of), asked.text.clone()];
    let there = parts.into_iter().filter(|p| !p.is_empty());
    there.collect::<Vec<_>>().join(" ")
}

/// Bytes as text of a line without blanks.
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

/// The bytes of such text.
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

/// The text that [`escaped`] was given.
pub fn plain_text(text: &str) -> Option<String> {
    String::from_utf8(plain(text)?).ok()
}

const OFF: u8 = 0;
const NOTES: u8 = 1;
const PLAYS: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(OFF);

/// Whether this run notes or plays.
#[inline(always)]
pub fn is_on() -> bool {
    MODE.load(Ordering::Relaxed) != OFF
}

/// Whether answers come from the tape.
#[inline(always)]
pub fn plays() -> bool {
    MODE.load(Ordering::Relaxed) == PLAYS
}

struct Tape {
    to: Option<File>,
    written: usize,
    /// The question whose answer is to be noted.
    asked: Option<(Verb, Option<Name>, Asked)>,
    entries: VecDeque<Entry>,
    /// Entries that were played.
    played: usize,
    looks: u64,
    names: Option<HashMap<RawFd, Name>>,
    numbers: [u32; KINDS.len()],
    /// Is called where a run goes another way than the one that was recorded.
    another_way: fn(String) -> !,
    /// The signal by which the run that was recorded was ended, since it did not end by itself.
    ended_by: Option<i32>,
}

static TAPE: Mutex<Tape> = Mutex::new(Tape {
    to: None,
    written: 0,
    asked: None,
    entries: VecDeque::new(),
    played: 0,
    looks: 0,
    names: None,
    numbers: [0; KINDS.len()],
    another_way: ends_at_once,
    ended_by: None,
});

/// Ends a run that goes another way where nobody has said how: none does before it is played.
fn ends_at_once(how: String) -> ! {
    let _ = writeln!(std::io::stderr(), "purlin: {how}");
    std::process::exit(4)
}

fn tape() -> MutexGuard<'static, Tape> {
    TAPE.lock().unwrap_or_else(|e| e.into_inner())
}

/// This run notes what comes from outside in that file.
pub fn begin_notes(to: File) {
    tape().to = Some(to);
    MODE.store(NOTES, Ordering::Relaxed);
}

/// This run gets these answers. `another_way` ends it where it asks something else. `ended_by`: the signal
/// by which the run that was recorded was ended, if it was.
pub fn begin_play(entries: Vec<Entry>, another_way: fn(String) -> !, ended_by: Option<i32>) {
    let mut t = tape();
    t.entries = entries.into();
    t.another_way = another_way;
    t.ended_by = ended_by;
    MODE.store(PLAYS, Ordering::Relaxed);
}

/// From here on nothing is recorded, for that reason. A run that plays ends when it comes here.
pub fn cut(why: &str) {
    if MODE.load(Ordering::Relaxed) == NOTES {
        tape().push(Entry::Cut(why.into()));
        MODE.store(OFF, Ordering::Relaxed);
    }
}

impl Tape {
    fn push(&mut self, e: Entry) {
        let Some(to) = &mut self.to else { return };
        let mut line = e.line();
        line.push('\n');
        if self.written + line.len() > MOST_BYTES && !matches!(e, Entry::Cut(_)) {
            let why = format!("more than {} MiB came from outside", MOST_BYTES >> 20);
            line = Entry::Cut(why).line();
            line.push('\n');
            MODE.store(OFF, Ordering::Relaxed);
        }
        self.written += line.len();
        if to.write_all(line.as_bytes()).is_err() {
            MODE.store(OFF, Ordering::Relaxed);
        }
    }
    fn name(&self, fd: RawFd) -> Option<Name> {
        self.names.as_ref()?.get(&fd).copied()
    }
    /// The run goes another way.
    fn differs(&self, expected: Option<&Entry>, got: &str) -> ! {
        let at = self.played + 1;
        let text = match expected {
            Some(Entry::Cut(why)) => {
                format!(
                    "outside, at event {at}: nothing is recorded from here on, since {why}; got {got}"
                )
            }
            Some(e) => format!("outside, at event {at}: expected {}, got {got}", e.told()),
            None => format!("outside, at event {at}: expected nothing more, got {got}"),
        };
        (self.another_way)(text)
    }
}

/// The descriptor is one of those that the tape knows, of that kind (`s`, `p`, `f`). Programs have two of one number.
pub fn name(kind: char, fds: &[RawFd]) {
    if !is_on() {
        return;
    }
    let mut t = tape();
    let i = KINDS.iter().position(|k| k.0 == kind).unwrap_or(0);
    t.numbers[i] += 1;
    let n = t.numbers[i];
    let names = t.names.get_or_insert_default();
    for fd in fds {
        names.insert(*fd, (kind, n));
    }
}

/// The number is not, or no longer, that of a descriptor that the tape knows.
pub fn unname(fd: RawFd) {
    if is_on()
        && let Some(names) = &mut tape().names
    {
        names.remove(&fd);
    }
}

/// Whether the tape knows the descriptor.
pub fn knows(fd: RawFd) -> bool {
    is_on() && tape().name(fd).is_some()
}

/// A door is about to ask that. Some: the answer, which the run gets in place of the system's. None: the system is to be asked, and its
/// answer [noted](note).
#[cold]
pub fn ask(verb: Verb, fd: Option<RawFd>, asked: Asked) -> Option<Result<Vec<u8>, i32>> {
    let mut t = tape();
    let of = fd.and_then(|fd| t.name(fd));
    match MODE.load(Ordering::Relaxed) {
        NOTES => t.asked = Some((verb, of, asked)),
        PLAYS => {
            let e = t.entries.pop_front();
            match e {
                Some(Entry::Answer {
                    verb: v,
                    of: o,
                    asked: a,
                    answer,
                }) if (v, o, &a) == (verb, of, &asked) => {
                    t.played += 1;
                    return Some(answer);
                }
                e => {
                    let mut got = told(verb, of, &asked);
                    if e.as_ref().is_some_and(|e| e.told() == got) {
                        got.push_str(", of other bytes");
                    }
                    t.differs(e.as_ref(), &got)
                }
            }
        }
        _ => {}
    }
    None
}

/// The answer of the system to what was asked last, to be noted where this run notes.
#[cold]
pub fn note(answer: Result<Vec<u8>, i32>) {
    let mut t = tape();
    if let Some((verb, of, asked)) = t.asked.take() {
        t.push(Entry::Answer {
            verb,
            of,
            asked,
            answer,
        });
    }
}

/// What was asked last has no answer that could be noted.
pub fn no_answer() {
    tape().asked = None;
}

/// A file of a schedule has an answer that means nothing to whom it is given.
pub fn damaged() -> ! {
    let t = tape();
    let at = t.played;
    (t.another_way)(format!(
        "outside, at event {at}: the file has an answer that means nothing"
    ))
}

/// What the answers of doors are.
pub trait Taped: Sized {
    fn to_bytes(&self) -> Vec<u8>;
    fn of_bytes(bytes: &[u8]) -> Option<Self>;
}

impl Taped for () {
    fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }
    fn of_bytes(_: &[u8]) -> Option<()> {
        Some(())
    }
}

impl Taped for bool {
    fn to_bytes(&self) -> Vec<u8> {
        vec![b'0' + u8::from(*self)]
    }
    fn of_bytes(bytes: &[u8]) -> Option<bool> {
        Some(bytes == b"1")
    }
}

impl Taped for Vec<u8> {
    fn to_bytes(&self) -> Vec<u8> {
        self.clone()
    }
    fn of_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Taped for $t {
            fn to_bytes(&self) -> Vec<u8> {
                self.to_string().into_bytes()
            }
            fn of_bytes(bytes: &[u8]) -> Option<$t> {
                std::str::from_utf8(bytes).ok()?.parse().ok()
            }
        }
    )*};
}
numbers! { usize i32 i64 }

impl<T: Taped> Taped for Option<T> {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_ref().map_or(Vec::new(), |t| {
            let mut v = vec![b'+'];
            v.extend(t.to_bytes());
            v
        })
    }
    fn of_bytes(bytes: &[u8]) -> Option<Option<T>> {
        match bytes {
            [] => Some(None),
            [_, rest @ ..] => Some(Some(T::of_bytes(rest)?)),
        }
    }
}

/// A descriptor: who plays gets a placeholder, which [`name`] is to be told of as of the one that was noted.
impl Taped for OwnedFd {
    fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }
    fn of_bytes(_: &[u8]) -> Option<OwnedFd> {
        placeholder().ok()
    }
}

/// A descriptor that nothing comes from.
pub fn placeholder() -> std::io::Result<OwnedFd> {
    let f = File::options().read(true).write(true).open("/dev/null")?;
    Ok(f.into())
}

/// A door that asks the system by `real`, or the tape.
#[inline(always)]
pub fn call<T: Taped>(
    verb: Verb,
    fd: Option<RawFd>,
    asked: impl FnOnce() -> Asked,
    real: impl FnOnce() -> Result<T, i32>,
) -> Result<T, i32> {
    match is_on() {
        false => real(),
        true => taped(verb, fd, asked(), real),
    }
}

#[cold]
#[inline(never)]
fn taped<T: Taped>(
    verb: Verb,
    fd: Option<RawFd>,
    asked: Asked,
    real: impl FnOnce() -> Result<T, i32>,
) -> Result<T, i32> {
    if let Some(answer) = ask(verb, fd, asked) {
        return answer.map(|b| T::of_bytes(&b).unwrap_or_else(|| damaged()));
    }
    let r = real();
    note(r.as_ref().map(T::to_bytes).map_err(|e| *e));
    r
}

/// As [`call`], of a door that opens a descriptor of that kind.
#[inline(always)]
pub fn opens(
    verb: Verb,
    kind: char,
    asked: impl FnOnce() -> Asked,
    real: impl FnOnce() -> Result<OwnedFd, i32>,
) -> Result<OwnedFd, i32> {
    let r = call(verb, None, asked, real);
    if is_on()
        && let Ok(fd) = &r
    {
        name(kind, &[fd.as_raw_fd()]);
    }
    r
}

/// Fills `to` by `real`, which gives the number of bytes, or from the tape.
///
/// # Safety
/// `to` has room for so many bytes.
#[inline(always)]
pub unsafe fn fills(
    verb: Verb,
    fd: RawFd,
    asked: impl FnOnce() -> Asked,
    to: *mut u8,
    room: usize,
    real: impl FnOnce() -> Result<usize, i32>,
) -> Result<usize, i32> {
    if !is_on() {
        return real();
    }
    if let Some(answer) = ask(verb, Some(fd), asked()) {
        return answer.map(|b| {
            let n = b.len().min(room);
            // SAFETY: by the contract of this function.
            unsafe { std::ptr::copy_nonoverlapping(b.as_ptr(), to, n) };
            n
        });
    }
    let r = real();
    // SAFETY: the call has filled as many bytes as it says, and a number that is greater tells of what was cut off.
    let bytes = |n: &usize| unsafe { std::slice::from_raw_parts(to, (*n).min(room)).to_vec() };
    note(r.as_ref().map(bytes).map_err(|e| *e));
    r
}

/// It was looked whether descriptors are ready, and these were.
pub fn looked(what: impl Iterator<Item = (usize, u8)>) {
    if MODE.load(Ordering::Relaxed) != NOTES {
        return;
    }
    let mut t = tape();
    t.looks += 1;
    let what: Vec<_> = what.collect();
    if !what.is_empty() {
        let look = t.looks;
        t.push(Entry::Ready { look, what });
    }
}

/// A run that plays looks whether descriptors are ready: those that were. `for_ever`: nothing else can happen.
pub fn look(for_ever: bool) -> Vec<(usize, u8)> {
    let mut t = tape();
    t.looks += 1;
    match t.entries.front() {
        Some(Entry::Ready { look, .. }) if *look == t.looks => {}
        Some(Entry::Ready { look, .. }) if *look < t.looks => {
            t.differs(t.entries.front(), "something else")
        }
        None if for_ever && t.ended_by.is_some() => {
            // That run did not come further, and was ended: so is this one.
            let signal = t.ended_by.unwrap_or(libc::SIGALRM);
            drop(t);
            // SAFETY: plain calls; this is the only thread, and the signal has its default action.
            unsafe {
                libc::raise(signal);
                libc::_exit(128 + signal)
            }
        }
        other if for_ever => t.differs(other, "a wait for something from outside"),
        _ => return Vec::new(),
    }
    t.played += 1;
    match t.entries.pop_front() {
        Some(Entry::Ready { what, .. }) => what,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_stand_in_their_rows() {
        for (i, row) in VERBS.iter().enumerate() {
            assert_eq!(row.0 as usize, i);
            assert_eq!(Verb::of(row.1), Some(row.0));
        }
    }

    #[test]
    fn entries_go_there_and_back() {
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
                Err(libc::ENOENT),
            ),
            answer(
                Verb::Write,
                Some(('p', 12)),
                Asked::data([&b"ab"[..], b"c"].into_iter()),
                Ok(Vec::new()),
            ),
            Entry::Ready {
                look: 7,
                what: vec![(1, 3), (20, 4)],
            },
            Entry::Cut("it was too much".into()),
        ] {
            let line = e.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Entry::of(&line), Some(e), "{line}");
        }
        for bad in [
            "",
            "read",
            "read - -",
            "read - - \" x",
            "nothing - - \" =",
            "ready x",
        ] {
            assert_eq!(Entry::of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_question_is_told() {
        let data = |b: &'static [u8]| Asked::data([b].into_iter());
        let socket = Some(('s', 3));
        assert_eq!(
            told(Verb::Write, socket, &data(&[b'x'; 38])),
            "a write of 38 bytes to socket 3"
        );
        assert_eq!(
            told(Verb::Read, socket, &Asked::default()),
            "a receive from socket 3"
        );
        let to = Asked::text("to 127.0.0.1:80");
        assert_eq!(
            told(Verb::Connect, socket, &to),
            "a connection of socket 3 to 127.0.0.1:80"
        );
        assert_ne!(data(b"ab"), data(b"ba"));
    }
}
