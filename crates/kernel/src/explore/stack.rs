//! Finds out from the stack whose operation it is: the program's, a library's, or a compiler's.
//!
//! # Invariant
//! A module belongs to a library if its file lies in a library folder, to the program otherwise.

use crate::code;
use crate::cx::Cx;
use purlin_explore::kernel::Function;
use purlin_native::bif::Bif;
use purlin_native::hashing::Hashing;
use purlin_term::{Term, atom};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// Maximum number of stack entries that are examined.
const DEPTH: usize = 60;

/// The modules that belong to OTP and Elixir, not to a program.
static LIBRARIES: OnceLock<HashSet<String>> = OnceLock::new();

/// Sets the folders of libraries: `lib` folders with one folder for each application.
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

/// Modules of compilers and loaders. What they do below the program's code is not the program's
/// doing.
const COMPILERS: &[&str] = &[
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

/// The owner of a module.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Own,
    Library,
    Compiler,
}

/// Returns the owner of a module.
fn whose(module: Term) -> Whose {
    static SEEN: Mutex<Option<HashMap<u64, Whose, Hashing>>> = Mutex::new(None);
    let mut seen = SEEN.lock().unwrap_or_else(|e| e.into_inner());
    *seen
        .get_or_insert_default()
        .entry(module.raw())
        .or_insert_with(|| {
            let name = atom::name(module);
            let library = LIBRARIES.get().is_some_and(|l| l.contains(name));
            match (COMPILERS.contains(&name), library) {
                (true, _) => Whose::Compiler,
                (_, true) => Whose::Library,
                _ => Whose::Own,
            }
        })
}

/// Whether it is the body of an Elixir module, which runs while the module is compiled.
fn is_body(p: &code::Place) -> bool {
    atom::name(p.module).starts_with("elixir_compiler_")
        && atom::name(p.function).contains("__MODULE__")
}

/// Whether it is the body of the script `mix`, which runs the program and does not belong to it.
fn is_mix(p: &code::Place) -> bool {
    let mix = |file: &str| Path::new(file).file_name() == Some(OsStr::new("mix"));
    atom::name(p.function) == "__FILE__" && p.line.as_ref().is_some_and(|(file, _)| mix(file))
}

/// Returns the innermost code of the program on the stack, if no compiler or loader is above it.
pub(super) fn own_place(cx: &Cx, pc: *const u64) -> Option<code::Place> {
    let all = code::stack::addresses(cx, pc, DEPTH);
    for (i, a) in all.iter().enumerate() {
        let Some(p) = code::stack::place(i, *a) else {
            continue;
        };
        match whose(p.module) {
            Whose::Own if is_body(&p) => return None,
            Whose::Own if is_mix(&p) => {}
            Whose::Own => return Some(p),
            Whose::Compiler => return None,
            Whose::Library => {}
        }
    }
    None
}

/// Whether a compiler or loader is on the stack.
pub(super) fn compiles(cx: &Cx, pc: *const u64) -> bool {
    let all = code::stack::addresses(cx, pc, DEPTH);
    let mut places = all
        .iter()
        .enumerate()
        .filter_map(|(i, a)| code::stack::place(i, *a));
    places.any(|p| whose(p.module) == Whose::Compiler)
}

/// Whether the program does the operation at `pc`, since its code is on the stack or has made the
/// process; and whether its code is on the stack.
pub(super) fn owner(cx: &Cx, pc: *const u64, program: bool) -> (bool, bool) {
    let own = own_place(cx, pc).is_some();
    (own || (program && !compiles(cx, pc)), own)
}

/// Whether a native, which is about to be called, makes a process that belongs to the program
/// whichever process makes it: it runs the program's code from the start, serves by such a module,
/// or starts an application of the program.
pub(super) fn begins_program(cx: &Cx, native: &Bif) -> bool {
    if !native.traits.makes {
        return false;
    }
    match native.arity {
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

/// Maximum number of elements of an argument list that are examined.
const ARGUMENTS: usize = 8;

/// Returns the first elements of a list.
pub(super) fn elements(mut list: Term) -> Vec<Term> {
    let mut v = Vec::new();
    while let Some((head, tail)) = list.as_cons().filter(|_| v.len() < ARGUMENTS) {
        v.push(head);
        list = tail;
    }
    v
}

/// Returns the module of a fun.
pub(super) fn module_of(t: Term) -> Option<Term> {
    let f = t.as_fun()?;
    match f.local() {
        Some(e) => Some(e.module),
        None => f.export().map(|e| e.module),
    }
}

/// Whether a term is a fun of the program.
fn is_own_fun(t: Term) -> bool {
    module_of(t).is_some_and(|m| whose(m) == Whose::Own)
}

/// Whether a process that begins with that function and these arguments belongs to the program.
fn begins_by(module: Term, function: Term, args: &[Term]) -> bool {
    match (atom::name(module), atom::name(function), args) {
        ("erlang", "apply", [f, ..]) => is_own_fun(*f),
        ("proc_lib", _, [_, _, f]) => is_own_fun(*f),
        ("proc_lib", _, [_, _, m, f, args]) if m.is_atom() && f.is_atom() => {
            begins_by(*m, *f, &elements(*args))
        }
        // A server of `gen`: its module follows its name, if it has one.
        ("gen", "init_it", [_, args @ ..]) => args
            .iter()
            .any(|a| a.is_atom() && code::current(*a).is_some() && whose(*a) == Whose::Own),
        // The application's resource file has its module, and the argument of its start.
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

/// Whether that function is on the stack.
pub(super) fn is_within(cx: &Cx, pc: *const u64, (m, f, arity): &Function) -> bool {
    let name = (atom::intern(m), atom::intern(f), *arity);
    let all = code::stack::addresses(cx, pc, DEPTH);
    let mut places = all
        .iter()
        .enumerate()
        .filter_map(|(i, a)| code::stack::place(i, *a));
    places.any(|p| (p.module, p.function, p.arity) == name)
}

/// Functions by which ExUnit and eunit run tests: modules, and parts of names.
const RUNNERS: &[(&str, &str)] = &[
    ("Elixir.ExUnit.Runner", "run_module"),
    ("Elixir.ExUnit.Runner", "run_setup_all"),
    ("Elixir.ExUnit.Runner", "spawn_test"),
    ("eunit_proc", ""),
];

/// Whether a test runner runs tests.
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
