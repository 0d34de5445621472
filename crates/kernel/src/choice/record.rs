//! What came from outside in the run that stands in the file of a schedule, recorded there and given to a replay: see [`tape`], which
//! has the events, and the doors of descriptors, programs and sockets. Here are the natives whose results are recorded as terms, files
//! above all, and what goes on between the processes of a search.
//!
//! # Natives
//! In this mode the natives whose rows say `recorded` are entered by [`native`], which calls the native
//! itself unless a replay has its result. Of
//! the files those count that the program's own code works with, or servers for it, as the account has it ([`super::outside`]): files
//! that code is loaded from belong to the build. An open file is a reference; one of a replay has nothing behind it.
//!
//! # Atoms
//! The order of some maps' keys follows from that in which atoms were made. Runs of a search have those of the modules that were
//! prepared before, which a replay that is given everything does not: so a file has their names.

use super::{ops, state};
use crate::code::{self, CodeHooks};
use crate::cx::{BifResult, Cx, Env, Fail};
use crate::os::tape::{self, Asked, Entry, Verb};
use crate::os::{filename, osenv};
use crate::process::table;
use purlin_native::bif::{Bif, Call, known_as};
use purlin_native::native_state;
use purlin_term::etf::{decode, encode};
use purlin_term::fun::Export;
use purlin_term::print::{self, Style};
use purlin_term::{Term, am, atom, iolist};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Characters of an argument that are told.
const ARGUMENT: usize = 60;

/// The native that is about to be called, by its export.
static CALLED: AtomicPtr<Export> = AtomicPtr::new(std::ptr::null_mut());

/// Open files that are recorded, by the numbers of their references.
static FILES: Mutex<Option<HashSet<[u32; 3]>>> = Mutex::new(None);

/// The function by which code enters a native in this mode, where that is another than its own.
pub(super) fn entry(b: &Bif) -> Option<Call> {
    b.traits.recorded.then_some(native as Call)
}

/// The instruction that runs next calls that native.
#[inline]
pub fn calls(e: &Export) {
    CALLED.store(&raw const *e as *mut Export, Ordering::Relaxed);
}

/// See the module head.
///
/// # Safety
/// As for [`Call`].
unsafe fn native(env: *mut Env, args: *const Term) -> BifResult {
    // SAFETY: exports are never freed; code is run by an engine that says what it calls.
    let e = unsafe { &*CALLED.load(Ordering::Relaxed) };
    let Some((_, b)) = code::native(e.module, e.function, e.arity) else {
        return Err(Fail::Undef);
    };
    // SAFETY: by the contract; the row tells how many arguments there are.
    let (cx, given) = unsafe {
        (
            known_as(env),
            std::slice::from_raw_parts(args, b.arity as usize),
        )
    };
    if b.module == "os" && b.name != "getpid" {
        asks_for(given.first().copied());
        // SAFETY: by the contract.
        return unsafe { (b.call)(env, args) };
    }
    if !tape::is_on() || !is_recorded(cx, e, b, given) {
        // SAFETY: by the contract.
        return unsafe { (b.call)(env, args) };
    }
    let before = cx.reds;
    if let Some(answer) = tape::ask(Verb::Native, None, asked(b, given)) {
        let answer = answer.unwrap_or_default();
        return played(cx, &answer).unwrap_or_else(|| tape::damaged());
    }
    // SAFETY: by the contract.
    let r = unsafe { (b.call)(env, args) };
    match bytes_of(before - cx.reds, &r) {
        Some(bytes) => tape::note(Ok(bytes)),
        None => {
            tape::no_answer();
            tape::cut("a call waits for somebody who is not known");
        }
    }
    r
}

/// Whether what the native gives is recorded.
fn is_recorded(cx: &mut Cx, e: &'static Export, b: &Bif, args: &[Term]) -> bool {
    if b.module != "prim_file" {
        return true;
    }
    let file = args.first().and_then(|t| t.as_ref_view());
    if let Some(numbers) = file.and_then(|v| v.local_nums()) {
        let files = FILES.lock().unwrap_or_else(|e| e.into_inner());
        return files.as_ref().is_some_and(|f| f.contains(&numbers));
    }
    let cell = table().index(cx.process());
    ops::row_of(e).is_some() && state().known(cell).outside
}

fn asked(b: &Bif, args: &[Term]) -> Asked {
    let (mut told, mut bytes) = (Vec::new(), Vec::new());
    for &a in args {
        told.push(shown(a));
        bytes.push(encode::encode(a, encode::Options::default()));
    }
    Asked {
        text: format!("{}:{}({})", b.module, b.name, told.join(", ")),
        ..Asked::data(bytes.iter().map(|b| &b[..]))
    }
}

/// An argument, as people are told it: names as text, and what is written by its length.
fn shown(a: Term) -> String {
    if let Some(b) = a.as_binary() {
        let name = b.strip_suffix(&[0]).unwrap_or(&b);
        if let Ok(text) = std::str::from_utf8(name)
            && !text.chars().any(char::is_control)
        {
            return format!("{text:?}");
        }
    }
    match iolist::size(a) {
        Ok(n) if a.is_list() => format!("{n} bytes"),
        _ => print::format_term(a, Style::Write, ARGUMENT),
    }
}

/// Results that are no value, by the letter that they have on the tape.
const FAILS: &[(u8, Fail)] = &[
    (b'b', Fail::Badarg),
    (b's', Fail::SystemLimit),
    (b'n', Fail::Notsup),
    (b'u', Fail::Undef),
    (b'd', Fail::Dirty),
    (b'a', Fail::Again),
];

/// What a native has given, and the reductions that it took. None: it cannot be given again.
fn bytes_of(reductions: i64, r: &BifResult) -> Option<Vec<u8>> {
    let mut v = format!("{reductions} ").into_bytes();
    match r {
        Err(f) => v.push(FAILS.iter().find(|row| row.1 == *f)?.0),
        Ok(t) => match opened(*t) {
            Some(numbers) => {
                knows_file(numbers);
                v.push(b'f');
            }
            None => {
                v.push(b't');
                v.extend(encode::encode(*t, encode::Options::default()));
            }
        },
    }
    Some(v)
}

/// The file in `{ok, File}`.
fn opened(t: Term) -> Option<[u32; 3]> {
    match t.as_tuple() {
        Some(&[ok, f]) if ok == am::OK => f.as_ref_view()?.local_nums(),
        _ => None,
    }
}

fn knows_file(numbers: [u32; 3]) {
    let mut files = FILES.lock().unwrap_or_else(|e| e.into_inner());
    files.get_or_insert_default().insert(numbers);
}

/// Stands behind the reference of a file that a replay has.
struct NoFile;

/// The result that [`bytes_of`] has told. None: it is none.
fn played(cx: &mut Cx, bytes: &[u8]) -> Option<BifResult> {
    let at = bytes.iter().position(|b| *b == b' ')?;
    let reductions: i64 = std::str::from_utf8(&bytes[..at]).ok()?.parse().ok()?;
    cx.reds -= reductions;
    let (how, rest) = bytes[at + 1..].split_first()?;
    Some(match how {
        b'f' => {
            // It takes as much room as one with a file behind it.
            let f = native_state::make(cx, NoFile);
            knows_file(f.as_ref_view()?.local_nums()?);
            Ok(cx.ok(f))
        }
        b't' => {
            let options = decode::Options {
                safe: false,
                atom_cache: &[],
            };
            let (t, _) = decode::decode(rest, cx, &CodeHooks, options).ok()?;
            Ok(t)
        }
        letter => Err(FAILS.iter().find(|row| row.0 == *letter)?.1),
    })
}

/// Where the next run that is told records; what it has recorded.
static TAPE: Mutex<Option<File>> = Mutex::new(None);

fn file() -> std::sync::MutexGuard<'static, Option<File>> {
    TAPE.lock().unwrap_or_else(|e| e.into_inner())
}

/// The next run that is told records in that file.
pub(super) fn next_in(f: Option<File>) {
    *file() = f;
}

/// This is that run.
pub(super) fn begin() {
    if let Some(f) = file().take() {
        tape::begin_notes(f);
    }
}

/// The events that that run has recorded, each a line.
pub(super) fn taken() -> String {
    let mut text = String::new();
    if let Some(mut f) = file().take()
        && f.seek(SeekFrom::Start(0)).is_ok()
    {
        let mut bytes = Vec::new();
        let _ = f.read_to_end(&mut bytes);
        text = String::from_utf8_lossy(&bytes).into_owned();
        // A run that was ended may have left half a line.
        text.truncate(text.rfind('\n').map_or(0, |i| i + 1));
    }
    text
}

/// This run gets these events in place of what comes from outside. `status`: that of the run which was recorded.
pub(super) fn play(r: Recording, status: i32) {
    if let Some(path) = r.path {
        osenv::set(PATH.to_vec(), Some(path.into_bytes()));
    }
    fn ends(text: String) -> ! {
        super::goes_another_way(text);
        super::fork::ended(4, super::Stuck::No);
        // SAFETY: no return; this is the only thread.
        unsafe { libc::_exit(4) }
    }
    let ended = super::fork::is_endless(status).then_some(-status);
    tape::begin_play(r.events, ends, ended);
}

/// A variable of the environment, and its value, if it had one.
pub type Variable = (Vec<u8>, Option<Vec<u8>>);

/// Variables that a run which is told asks for; all as they were when it began.
struct Asks {
    names: BTreeSet<Vec<u8>>,
    began: Vec<(Vec<u8>, Vec<u8>)>,
}

static ASKS: Mutex<Option<Asks>> = Mutex::new(None);

fn asks() -> std::sync::MutexGuard<'static, Option<Asks>> {
    ASKS.lock().unwrap_or_else(|e| e.into_inner())
}

/// This run notes which variables are asked for.
pub(super) fn notes_variables() {
    *asks() = Some(Asks {
        names: BTreeSet::new(),
        began: osenv::all(),
    });
}

/// The variable of that name is asked for, or all are.
fn asks_for(name: Option<Term>) {
    let mut a = asks();
    let Some(a) = a.as_mut() else { return };
    match name {
        None => {
            // A variable without a name: there are no others.
            a.names.insert(Vec::new());
            a.names.extend(a.began.iter().map(|(n, _)| n.clone()));
        }
        Some(n) => {
            a.names.extend(filename::to_native(n));
        }
    }
}

/// The variables that this run has asked for, as lines.
pub(super) fn variables() -> String {
    let Some(a) = asks().take() else {
        return String::new();
    };
    let value = |n: &Vec<u8>| a.began.iter().find(|(b, _)| b == n).map(|(_, v)| v.clone());
    let all = a
        .names
        .iter()
        .map(|n| variable_text(&(n.clone(), value(n))));
    all.map(|t| format!("variable {t}\n")).collect()
}

fn variable_text((name, value): &Variable) -> String {
    let name = tape::escaped(name);
    match value {
        Some(v) => format!("={name} ={}", tape::escaped(v)),
        None => format!("={name}"),
    }
}

/// The variable of such a text.
pub(super) fn variable(text: &str) -> Option<Variable> {
    let mut w = text.split(' ').map(|w| tape::plain(w.strip_prefix('=')?));
    let name = w.next()??;
    match w.next() {
        None => Some((name, None)),
        Some(value) => Some((name, Some(value?))),
    }
}

/// The run that begins finds these as they were.
pub(super) fn set_variables(all: &[Variable]) {
    if all.iter().any(|(name, _)| name.is_empty()) {
        for (name, _) in osenv::all() {
            osenv::set(name, None);
        }
    }
    for (name, value) in all.iter().filter(|(name, _)| !name.is_empty()) {
        osenv::set(name.clone(), value.clone());
    }
}

/// Atoms that there were before modules were prepared.
static ATOMS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Has `make` prepare modules, and keeps the names of the atoms that it makes.
pub(super) fn keeps_atoms(make: impl FnOnce()) {
    let before = atom::count();
    make();
    let made = (before..atom::count()).map(|i| atom::name(Term::atom(i)));
    *ATOMS.lock().unwrap_or_else(|e| e.into_inner()) = made.collect();
}

/// Where programs are looked for, which it is recorded that they were found.
const PATH: &[u8] = b"PATH";

/// Lines for the file of a schedule: atoms, the path of programs, and events.
pub(super) fn lines(events: &str) -> String {
    let atoms = ATOMS.lock().unwrap_or_else(|e| e.into_inner());
    let names = atoms
        .iter()
        .map(|a| format!(" ={}", tape::escaped(a.as_bytes())));
    let mut text = format!("atoms{}\n", names.collect::<String>());
    if let Some(path) = osenv::get(PATH) {
        let path = String::from_utf8_lossy(&path);
        text.push_str(&format!("path {}\n", tape::escaped(path.as_bytes())));
    }
    for l in events.lines() {
        text.push_str("outside ");
        text.push_str(l);
        text.push('\n');
    }
    text
}

/// What a file of a schedule has recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub atoms: Vec<String>,
    pub path: Option<String>,
    pub events: Vec<Entry>,
}

impl Recording {
    /// Takes a line that [`lines`] has made. None: it is damaged.
    pub(super) fn takes(&mut self, key: &str, rest: &str) -> Option<()> {
        match key {
            "atoms" => {
                for w in rest.split(' ').filter(|w| !w.is_empty()) {
                    self.atoms.push(tape::plain_text(w.strip_prefix('=')?)?);
                }
            }
            "path" => self.path = Some(tape::plain_text(rest)?),
            "outside" => self.events.push(Entry::of(rest)?),
            _ => return None,
        }
        Some(())
    }
    /// What was recorded, as people are told it.
    pub fn told(&self) -> Vec<String> {
        told_of(self.events.iter().cloned()).0
    }
    /// Makes the atoms.
    pub(super) fn make_atoms(&self) {
        for a in &self.atoms {
            atom::intern(a);
        }
    }
}

/// `1 operation`, `4,211 operations`.
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

/// What was recorded, as people are told it; and why there is nothing from some place on.
pub(super) fn told(events: &str) -> (Vec<String>, Option<String>) {
    told_of(events.lines().filter_map(Entry::of))
}

fn told_of(events: impl Iterator<Item = Entry>) -> (Vec<String>, Option<String>) {
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

    #[test]
    fn what_was_recorded_is_told() {
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
            asked(Verb::Connect, "to 127.0.0.1:5432", Err(libc::EINPROGRESS)),
            asked(Verb::Spawn, "/bin/inet_gethost 4", Ok(b"5")),
            asked(Verb::Spawn, "/bin/sh -c x", Ok(b"5")),
            asked(Verb::Write, "", Ok(b"5")),
            asked(Verb::Read, "", Ok(&[b'x'; 4211])),
            asked(Verb::Native, "prim_file:open_nif(x)", Ok(b"0 f")),
            Entry::Cut("of that".into()).line(),
        ]
        .concat();
        let (all, cut) = told(&text);
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
    fn variables_go_there_and_back() {
        for v in [
            (b"A".to_vec(), Some(b"x = y\n".to_vec())),
            (b"B C".to_vec(), Some(Vec::new())),
            (b"D".to_vec(), None),
        ] {
            assert_eq!(variable(&variable_text(&v)), Some(v));
        }
        assert_eq!(variable("x"), None);
    }

    #[test]
    fn lines_go_there_and_back() {
        let e = Entry::Cut("a b".into());
        let mut r = Recording::default();
        for l in lines(&(e.line() + "\n")).lines() {
            let (key, rest) = l.split_once(' ').unwrap_or((l, ""));
            assert_eq!(r.takes(key, rest), Some(()), "{l}");
        }
        assert_eq!(r.events, [e]);
        assert_eq!(Recording::default().takes("outside", "x"), None);
    }
}
