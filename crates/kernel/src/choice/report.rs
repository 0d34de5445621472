//! What people are told: the operations of a schedule as lines, and who waits for what in a deadlock.

use super::deviation::Kind;
use super::ops::{Touch, What};
use crate::code;
use crate::cx::Cx;
use crate::process::ext::Target;
use crate::process::{Enter, table};
use purlin_native::hashing::Hashing;
use purlin_term::print::{self, Style};
use purlin_term::{Term, atom};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// An operation as it is told.
#[derive(Clone, Debug)]
pub struct Line {
    pub path: u64,
    pub op: u32,
    pub touch: Touch,
    /// The pid, as it is written.
    pub pid: String,
    pub call: String,
    /// `file:line`, and the function, of the program's own code that does it, if there is any.
    pub place: Option<String>,
    /// The process stops before it.
    pub stopped: Option<Kind>,
    /// Microseconds of virtual time; and whether it happens to the process, which does nothing.
    pub at: i64,
    pub happens: bool,
    /// What the process is registered as.
    pub name: Option<String>,
}

/// What happens to a process.
fn happens(path: u64, pid: u32, call: String) -> Line {
    Line {
        path,
        op: 0,
        touch: Touch::end(pid),
        pid: short(Term::pid(pid)),
        call,
        place: None,
        stopped: None,
        at: super::now() / 1000,
        happens: true,
        name: None,
    }
}

/// The line for the end of a process, who is told of which now.
pub(super) fn ends(path: u64, pid: u32, reason: Term) -> Line {
    let mut text = format!("ends: {}", short(reason));
    let ext = table().find(Term::pid(pid));
    // SAFETY: the only thread; the process is whole until all were told.
    let ext = ext.and_then(|p| unsafe { (*p).ext() });
    let (mut down, mut linked) = (Vec::new(), Vec::new());
    if let Some(e) = ext {
        down.extend(e.watchers.iter().map(|(_, w)| short(w.by())));
        linked.extend(e.links.iter().map(|(l, _)| short(l.term())));
    }
    for (whom, what) in [(linked, "an exit signal"), (down, "a 'DOWN'")] {
        if !whom.is_empty() {
            let _ = write!(text, "; {what} for {}", whom.join(", "));
        }
    }
    happens(path, pid, text)
}

/// The line for a timer that sends something to a process.
pub(super) fn timer_sends(path: u64, to: Term, message: Term) -> Line {
    happens(
        path,
        to.pid_data(),
        format!("gets {} from a timer", short(message)),
    )
}

/// The line for a receive in which nothing has come in time.
pub(super) fn time_is_over(cx: &mut Cx, pc: *const u64, path: u64) -> Line {
    let mut l = happens(
        path,
        cx.process().pid().pid_data(),
        "receive ... after: nothing has come in time".into(),
    );
    l.place = place(cx, pc);
    l
}

/// What a process is that the native of that row makes, which is about to be called.
pub(super) fn role(cx: &Cx, native: u16) -> Option<String> {
    let name = |m: Term| atom::name(m).trim_start_matches("Elixir.").to_owned();
    let fun = |t: Term| {
        let module = module_of(t)?;
        Some(format!("a fun of {}", name(module)))
    };
    let (_, f, arity) = super::ops::row(native)?;
    if !f.starts_with("spawn") {
        return None;
    }
    if arity < 3 {
        return fun(cx.x[0]);
    }
    let (mut m, mut f, mut args) = (cx.x[0], cx.x[1], elements(cx.x[2]));
    if m.is_atom() && atom::name(m) == "proc_lib" {
        match args[..] {
            [_, _, g] => return fun(g),
            [_, _, n, g, a] => (m, f, args) = (n, g, elements(a)),
            _ => {}
        }
    }
    if !m.is_atom() || !f.is_atom() {
        return None;
    }
    match (atom::name(m), &args[..]) {
        ("erlang", [g, ..]) => fun(*g),
        ("gen", [kind, .., module, _, _]) if kind.is_atom() && module.is_atom() => {
            Some(format!("{} {}", atom::name(*kind), name(*module)))
        }
        _ => Some(format!("{}:{}", name(m), atom::name(f))),
    }
}

/// Entries of the stack that are looked through for the program's own code.
const DEPTH: usize = 60;
/// Characters of an argument that are told.
const ARGUMENT: usize = 60;

/// Folders whose modules are no program's own: those of OTP and Elixir.
static LIBRARIES: OnceLock<HashSet<String>> = OnceLock::new();

/// Says where the libraries are that are no program's own: `lib` folders with one folder for each application.
pub fn set_libraries(roots: &[PathBuf]) {
    let mut all = HashSet::new();
    let names = |dir: &PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|e| e.path()).collect()
    };
    for root in roots {
        for application in names(root) {
            for file in names(&application.join("ebin")) {
                if let (Some(stem), Some("beam")) = (
                    file.file_stem().and_then(|s| s.to_str()),
                    file.extension().and_then(|s| s.to_str()),
                ) {
                    all.insert(stem.to_owned());
                }
            }
        }
    }
    let _ = LIBRARIES.set(all);
}

/// Modules of compilers and loaders: what they do within the program's code is not the program's doing.
const MAKERS: &[&str] = &[
    "compile",
    "code",
    "code_server",
    "erl_prim_loader",
    "error_handler",
    "elixir_compiler",
    "elixir_module",
    "elixir_erl_compiler",
    "elixir_erl",
    "elixir_dispatch",
    "elixir_map",
    "elixir_expand",
    "elixir_code_server",
    "Elixir.Code",
    "Elixir.Module",
    "Elixir.Module.ParallelChecker",
    "Elixir.Kernel.ParallelCompiler",
    "Elixir.Kernel.LexicalTracker",
    "Elixir.Kernel.ErrorHandler",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Own,
    Library,
    Maker,
}

fn whose(module: Term) -> Whose {
    static SEEN: Mutex<Option<HashMap<u64, Whose, Hashing>>> = Mutex::new(None);
    let mut seen = SEEN.lock().unwrap_or_else(|e| e.into_inner());
    *seen
        .get_or_insert_default()
        .entry(module.raw())
        .or_insert_with(|| {
            let name = atom::name(module);
            let library = LIBRARIES.get().is_some_and(|l| l.contains(name));
            match (MAKERS.contains(&name), library) {
                (true, _) => Whose::Maker,
                (_, true) => Whose::Library,
                _ => Whose::Own,
            }
        })
}

/// Whether it is the body of a module of Elixir, which is run as the module is compiled.
fn is_body(p: &code::Place) -> bool {
    atom::name(p.module).starts_with("elixir_compiler_")
        && atom::name(p.function).contains("__MODULE__")
}

/// Whether it is the body of the script `mix`, which runs the program and is no part of it.
fn is_mix(p: &code::Place) -> bool {
    let mix = |file: &str| Path::new(file).file_name() == Some(OsStr::new("mix"));
    atom::name(p.function) == "__FILE__" && p.line.as_ref().is_some_and(|(file, _)| mix(file))
}

/// The innermost code of the program itself on the stack, if nothing that compiles or loads is above it.
fn own_place(cx: &Cx, pc: *const u64) -> Option<code::Place> {
    let all = code::stack::addresses(cx, pc, DEPTH);
    for (i, a) in all.iter().enumerate() {
        let Some(p) = code::stack::place(i, *a) else {
            continue;
        };
        match whose(p.module) {
            Whose::Own if is_body(&p) => return None,
            Whose::Own if is_mix(&p) => {}
            Whose::Own => return Some(p),
            Whose::Maker => return None,
            Whose::Library => {}
        }
    }
    None
}

/// Whether nothing on the stack compiles or loads code.
pub(super) fn makes_nothing(cx: &Cx, pc: *const u64) -> bool {
    let all = code::stack::addresses(cx, pc, DEPTH);
    let mut places = all
        .iter()
        .enumerate()
        .filter_map(|(i, a)| code::stack::place(i, *a));
    !places.any(|p| whose(p.module) == Whose::Maker)
}

/// Whether the operation at `pc` is the program's own: its code is on the stack, or the process was made by such code.
pub(super) fn is_own(cx: &Cx, pc: *const u64, program: bool) -> (bool, bool) {
    let own = own_place(cx, pc).is_some();
    (own || (program && makes_nothing(cx, pc)), own)
}

/// Whether the process that the native of that row makes, which is about to be called, is the program's whoever calls it: it
/// runs the program's code from the start, serves by such a module, or starts an application of the program.
pub(super) fn begins_program(cx: &Cx, native: u16) -> bool {
    let Some((_, _, arity)) = super::ops::row(native).filter(|_| super::ops::makes(native)) else {
        return false;
    };
    match arity {
        // `spawn(Fun)`, and with options.
        1 | 2 => is_own_fun(cx.x[0]),
        _ => {
            let (module, function) = (cx.x[0], cx.x[1]);
            if !module.is_atom() || !function.is_atom() {
                return false;
            }
            begins_by(module, function, &elements(cx.x[2]))
        }
    }
}

/// Elements of a list that are looked through.
const ARGUMENTS: usize = 8;

fn elements(mut list: Term) -> Vec<Term> {
    let mut v = Vec::new();
    while let Some((head, tail)) = list.as_cons().filter(|_| v.len() < ARGUMENTS) {
        v.push(head);
        list = tail;
    }
    v
}

fn module_of(t: Term) -> Option<Term> {
    let f = t.as_fun()?;
    match f.local() {
        Some(e) => Some(e.module),
        None => f.export().map(|e| e.module),
    }
}

fn is_own_fun(t: Term) -> bool {
    module_of(t).is_some_and(|m| whose(m) == Whose::Own)
}

/// The same, of a process that begins with that function and these arguments.
fn begins_by(module: Term, function: Term, args: &[Term]) -> bool {
    match (atom::name(module), atom::name(function), args) {
        ("erlang", "apply", [f, ..]) => is_own_fun(*f),
        ("proc_lib", _, [_, _, f]) => is_own_fun(*f),
        ("proc_lib", _, [_, _, m, f, args]) if m.is_atom() && f.is_atom() => {
            begins_by(*m, *f, &elements(*args))
        }
        // A server of `gen`: its module is behind its name, if it has one.
        ("gen", "init_it", [_, args @ ..]) => args
            .iter()
            .any(|a| a.is_atom() && code::current(*a).is_some() && whose(*a) == Whose::Own),
        // What the application's resource file says: its module, and what that is started with.
        ("application_master", _, args) => args.iter().filter_map(|a| a.as_tuple()).any(|data| {
            let of = |t: &Term| match t.as_tuple() {
                Some([m, _]) => m.is_atom() && whose(*m) == Whose::Own,
                _ => false,
            };
            data.first()
                .is_some_and(|t| t.is_atom() && atom::name(*t) == "appl_data")
                && data.iter().any(of)
        }),
        _ => whose(module) == Whose::Own,
    }
}

/// Whether a function of that name is on the stack: module, function, arity.
pub(super) fn is_within(cx: &Cx, pc: *const u64, name: (Term, Term, u32)) -> bool {
    let all = code::stack::addresses(cx, pc, DEPTH);
    let mut places = all
        .iter()
        .enumerate()
        .filter_map(|(i, a)| code::stack::place(i, *a));
    places.any(|p| (p.module, p.function, p.arity) == name)
}

/// Functions by which ExUnit and eunit run tests, by module and a part of the name.
const RUNNERS: &[(&str, &str)] = &[
    ("Elixir.ExUnit.Runner", "run_module"),
    ("Elixir.ExUnit.Runner", "run_setup_all"),
    ("Elixir.ExUnit.Runner", "spawn_test"),
    ("eunit_proc", ""),
];

/// Whether a runner of tests runs some.
pub(super) fn runs_tests(cx: &Cx, pc: *const u64) -> bool {
    let all = code::stack::addresses(cx, pc, DEPTH);
    let mut places = all
        .iter()
        .enumerate()
        .filter_map(|(i, a)| code::stack::place(i, *a));
    places.any(|p| {
        let (module, function) = (atom::name(p.module), atom::name(p.function));
        RUNNERS
            .iter()
            .any(|(m, f)| *m == module && function.contains(f))
    })
}

/// The pid of that data, as it is written.
pub(super) fn pid(data: u32) -> String {
    short(Term::pid(data))
}

fn short(t: Term) -> String {
    print::format_term(t, Style::Write, ARGUMENT)
}

/// The line for the operation at `pc`.
pub(super) fn line(
    cx: &mut Cx,
    pc: *const u64,
    what: &What,
    path: u64,
    op: u32,
    touch: Touch,
) -> Line {
    let (m, f, n) = what.name();
    let mut call = String::new();
    if f == "!" {
        let _ = write!(call, "{} ! {}", short(cx.x[0]), short(cx.x[1]));
    } else if m.is_empty() {
        call.push_str(f);
    } else {
        let args: Vec<String> = (0..n).map(|i| short(cx.x[i])).collect();
        let _ = write!(call, "{m}:{f}({})", args.join(", "));
    }
    let name = cx.process().ext().map(|e| e.name).filter(|n| n.is_atom());
    Line {
        path,
        op,
        touch,
        pid: short(Term::pid(cx.process().pid().pid_data())),
        call,
        place: place(cx, pc),
        stopped: None,
        at: super::now() / 1000,
        happens: false,
        name: name.map(|n| atom::name(n).trim_start_matches("Elixir.").to_owned()),
    }
}

/// `file:line`, and the function, of the program's own code on the stack.
fn place(cx: &Cx, pc: *const u64) -> Option<String> {
    own_place(cx, pc).map(|p| {
        let function = format!(
            "{}:{}/{}",
            atom::name(p.module).trim_start_matches("Elixir."),
            atom::name(p.function),
            p.arity
        );
        match &p.line {
            Some((file, line)) => format!("{file}:{line}  {function}"),
            None => function,
        }
    })
}

/// The line for a process that has become ready and is held.
pub(super) fn wake(cell: u32, path: u64, op: u32, touch: Touch, kind: Kind) -> Line {
    // SAFETY: cells are never unmapped.
    let pid = unsafe { (*table().cell(cell)).pid() };
    Line {
        path,
        op,
        touch,
        pid: short(Term::pid(pid.pid_data())),
        call: "it goes on with what has come".into(),
        place: None,
        stopped: Some(kind),
        at: super::now() / 1000,
        happens: false,
        name: None,
    }
}

/// Who waits where, as text, behind `what` has happened: processes that wait in the program's own code, and how many others there are.
pub(super) fn waiting(what: &str) -> String {
    let mut text = format!("purlin: {what}\n");
    let mut others = 0;
    let names = crate::process::registry::names();
    let mut cx = Cx::boxed(0);
    for pid in table().pids() {
        let Some(p) = table().find(pid) else { continue };
        // SAFETY: the process waits, and this is the only thread. It never runs again.
        let (pc, waiting) = unsafe {
            let waiting = (*p).flags & crate::process::WAITING != 0;
            if waiting {
                cx.enter(p);
            }
            ((*p).pc, waiting)
        };
        let Some(at) = code::find(pc).filter(|_| waiting) else {
            continue;
        };
        let own = own_place(&cx, pc);
        let Some(own) = own else {
            others += 1;
            continue;
        };
        let named = names
            .iter()
            .find(|n| crate::process::registry::whereis(**n) == Some(pid));
        let name = named.map_or(String::new(), |n| format!(" {}", atom::name(*n)));
        let function = |p: &code::Place| {
            let module = atom::name(p.module).trim_start_matches("Elixir.");
            let line = p
                .line
                .as_ref()
                .map_or(String::new(), |(f, l)| format!("  {f}:{l}"));
            format!("{module}:{}/{}{line}", atom::name(p.function), p.arity)
        };
        let within = match own.module == at.module && own.function == at.function {
            true => String::new(),
            false => format!(
                "{}:{}/{}, called by ",
                atom::name(at.module),
                atom::name(at.function),
                at.arity
            ),
        };
        // Whoever calls a server monitors it meanwhile.
        // SAFETY: as above.
        let whom = unsafe { (*p).ext() }.map_or(Vec::new(), |e| {
            let all = e.monitors.iter().map(|(_, m)| m.target());
            all.filter_map(|t| match t {
                Target::Local(t) | Target::Named(t, _) => Some(short(t)),
                _ => None,
            })
            .collect()
        });
        let whom = match whom.is_empty() {
            true => String::new(),
            false => format!("  (it monitors {})", whom.join(", ")),
        };
        // SAFETY: as above.
        let timer = match unsafe { (*p).has(crate::process::TIMER) } {
            true => ", until its timer",
            false => "",
        };
        let _ = writeln!(
            text,
            "  {}{name} waits in {within}{}{timer}{whom}",
            short(pid),
            function(&own)
        );
    }
    let _ = writeln!(text, "  and {others} in code of libraries");
    text
}
