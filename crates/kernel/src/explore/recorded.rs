//! Natives whose results are recorded as terms, files above all, and the environment variables and
//! atoms that a replay needs. Descriptors, programs and sockets are recorded where the system is
//! called: see [`replay_log`].
//!
//! In this mode natives whose rows say `recorded` are entered by [`native`], which calls the native
//! itself unless a replay has its result. Operations on files count if the program's code does
//! them, or a server for it: files from which code is loaded belong to the build. An open file of a
//! replay is a reference with nothing behind it.
//!
//! # Invariant
//! A replayed native takes as many reductions, and as much memory, as the recorded one.

use super::{explorer, operations};
use crate::code::{self, CodeHooks};
use crate::cx::{BifResult, Cx, Env, Fail};
use crate::os::failing;
use crate::os::replay_log::{self, Asked, Verb};
use crate::os::{filename, osenv};
use crate::process::table;
use purlin_explore::recording::Variable;
use purlin_native::bif::{Bif, Call, known_as};
use purlin_native::native_state;
use purlin_term::etf::{decode, encode};
use purlin_term::fun::Export;
use purlin_term::print::{self, Style};
use purlin_term::{Term, am, atom, iolist};
use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Maximum number of characters of a printed argument.
const ARGUMENT: usize = 60;

/// The export of the native that is about to be called.
static CALLED: AtomicPtr<Export> = AtomicPtr::new(std::ptr::null_mut());

/// Recorded open files, by the numbers of their references.
static FILES: Mutex<Option<HashSet<[u32; 3]>>> = Mutex::new(None);

/// Returns the function by which code enters a native in this mode, if it is not its own.
pub(super) fn entry(b: &Bif) -> Option<Call> {
    b.traits.recorded.then_some(native as Call)
}

/// Notes that the next instruction calls that native.
#[inline]
pub fn calls(e: &Export) {
    CALLED.store(&raw const *e as *mut Export, Ordering::Relaxed);
}

/// Calls a native, or returns its recorded result: see the module's head.
///
/// # Safety
/// As for [`Call`].
unsafe fn native(env: *mut Env, args: *const Term) -> BifResult {
    // SAFETY: exports are never freed; code is run by an engine that says what it calls.
    let e = unsafe { &*CALLED.load(Ordering::Relaxed) };
    let Some((_, b)) = code::native(e.module, e.function, e.arity) else {
        return Err(Fail::Undef);
    };
    // SAFETY: by the contract; the row has the number of arguments.
    let (cx, given) = unsafe {
        (
            known_as(env),
            std::slice::from_raw_parts(args, b.arity as usize),
        )
    };
    if b.module == "os" && b.name != "getpid" {
        reads_variable(given.first().copied());
        // SAFETY: by the contract.
        return unsafe { (b.call)(env, args) };
    }
    let counts = failing::is_on() && b.module == "prim_file" && is_recorded(cx, e, b, given);
    if !replay_log::is_on() || !is_recorded(cx, e, b, given) {
        // SAFETY: by the contract.
        let call = || unsafe { (b.call)(env, args) };
        if !counts {
            return call();
        }
        let r = failing::counting(call);
        if let Some(numbers) = r.as_ref().ok().and_then(|t| opened(*t)) {
            knows_file(numbers);
        }
        return r;
    }
    let before = cx.reds;
    if let Some(answer) = replay_log::ask(Verb::Native, None, asked(b, given)) {
        let answer = answer.unwrap_or_default();
        return replayed(cx, &answer).unwrap_or_else(|| replay_log::damaged());
    }
    // SAFETY: by the contract.
    let call = || unsafe { (b.call)(env, args) };
    let r = match counts {
        true => failing::counting(call),
        false => call(),
    };
    match bytes_of(before - cx.reds, &r) {
        Some(bytes) => replay_log::note(Ok(bytes)),
        None => {
            replay_log::no_answer();
            replay_log::cut("a call waits for an unknown process");
        }
    }
    r
}

/// Whether the result of a native is recorded.
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
    operations::index(e).is_some() && explorer().is_counted(cell)
}

/// Returns the call of a native as a question to the log.
fn asked(b: &Bif, args: &[Term]) -> Asked {
    let (mut texts, mut bytes) = (Vec::new(), Vec::new());
    for &a in args {
        texts.push(shown(a));
        bytes.push(encode::encode(a, encode::Options::default()));
    }
    Asked {
        text: format!("{}:{}({})", b.module, b.name, texts.join(", ")),
        ..Asked::data(bytes.iter().map(|b| &b[..]))
    }
}

/// Prints an argument for people: names as text, data by its length.
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

/// Results that are no value, with their letters in the log.
const FAILS: &[(u8, Fail)] = &[
    (b'b', Fail::Badarg),
    (b's', Fail::SystemLimit),
    (b'n', Fail::Notsup),
    (b'u', Fail::Undef),
    (b'd', Fail::Dirty),
    (b'a', Fail::Again),
];

/// Returns the recorded form of a result, and of the reductions that it took. None: it cannot be
/// replayed.
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

/// Returns the file in `{ok, File}`.
fn opened(t: Term) -> Option<[u32; 3]> {
    match t.as_tuple() {
        Some(&[ok, f]) if ok == am::OK => f.as_ref_view()?.local_nums(),
        _ => None,
    }
}

/// Records operations on that file from here on.
fn knows_file(numbers: [u32; 3]) {
    let mut files = FILES.lock().unwrap_or_else(|e| e.into_inner());
    files.get_or_insert_default().insert(numbers);
}

/// The resource of a file reference in a replay.
struct NoFile;

/// Reads a result written by [`bytes_of`]. None: it is damaged.
fn replayed(cx: &mut Cx, bytes: &[u8]) -> Option<BifResult> {
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
            let options = decode::Options::default();
            let (t, _) = decode::decode(rest, cx, &CodeHooks, options).ok()?;
            Ok(t)
        }
        letter => Err(FAILS.iter().find(|row| row.0 == *letter)?.1),
    })
}

/// The environment variables that this run reads, and all as they were when it began.
struct Variables {
    read: BTreeSet<Vec<u8>>,
    began: Vec<(Vec<u8>, Vec<u8>)>,
}

static VARIABLES: Mutex<Option<Variables>> = Mutex::new(None);

fn variables() -> std::sync::MutexGuard<'static, Option<Variables>> {
    VARIABLES.lock().unwrap_or_else(|e| e.into_inner())
}

/// Notes from here on which variables are read.
pub(super) fn note_variables() {
    *variables() = Some(Variables {
        read: BTreeSet::new(),
        began: osenv::all(),
    });
}

/// Notes that the variable of that name is read, or all are.
fn reads_variable(name: Option<Term>) {
    let mut v = variables();
    let Some(v) = v.as_mut() else { return };
    match name {
        None => {
            // The empty name stands for all.
            v.read.insert(Vec::new());
            v.read.extend(v.began.iter().map(|(n, _)| n.clone()));
        }
        Some(n) => {
            v.read.extend(filename::to_native(n));
        }
    }
}

/// Returns the variables that were read, as they were when the run began.
pub(super) fn variables_read() -> Vec<Variable> {
    let Some(v) = variables().take() else {
        return Vec::new();
    };
    let value = |n: &Vec<u8>| v.began.iter().find(|(b, _)| b == n).map(|(_, v)| v.clone());
    let variable = |n: &Vec<u8>| Variable {
        name: n.clone(),
        value: value(n),
    };
    v.read.iter().map(variable).collect()
}

/// Sets variables as a recorded run had them.
pub(super) fn set_variables(all: &[Variable]) {
    if all.iter().any(|v| v.name.is_empty()) {
        for (name, _) in osenv::all() {
            osenv::set(name, None);
        }
    }
    for v in all.iter().filter(|v| !v.name.is_empty()) {
        osenv::set(v.name.clone(), v.value.clone());
    }
}

/// The atoms that prepared modules made.
static ATOMS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Calls `make`, which prepares modules, and keeps the names of the atoms that it makes.
pub(super) fn keep_atoms(make: impl FnOnce()) {
    let before = atom::made();
    make();
    let made = (before..atom::made()).map(|i| atom::name(Term::atom(i)));
    *ATOMS.lock().unwrap_or_else(|e| e.into_inner()) = made.collect();
}

/// Returns the atoms that prepared modules made.
pub(super) fn prepared_atoms() -> Vec<String> {
    let atoms = ATOMS.lock().unwrap_or_else(|e| e.into_inner());
    atoms.iter().map(|a| (*a).to_owned()).collect()
}
