//! Functions and lines as developers write them, and which of them are the program's own.

use crate::json::Json;
use purlin_kernel::accounts::Frame;
use purlin_kernel::process::registry;
use purlin_term::print::{Style, format_atom, format_term};
use purlin_term::release::PRELOADED;
use purlin_term::sync::Mutex;
use purlin_term::{Term, atom};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The applications of OTP and Elixir.
///
/// When a program calls one of their modules, the responsible place is the first frame outside of
/// these applications. The folder of a module does not tell them apart, since a release has all
/// applications in the same one.
const APPLICATIONS: &[&str] = &[
    "asn1",
    "common_test",
    "compiler",
    "crypto",
    "debugger",
    "dialyzer",
    "diameter",
    "edoc",
    "eex",
    "eldap",
    "elixir",
    "erl_docgen",
    "erl_interface",
    "erts",
    "et",
    "eunit",
    "ex_unit",
    "ftp",
    "iex",
    "inets",
    "jinterface",
    "kernel",
    "logger",
    "megaco",
    "mix",
    "mnesia",
    "observer",
    "odbc",
    "os_mon",
    "parsetools",
    "public_key",
    "reltool",
    "runtime_tools",
    "sasl",
    "snmp",
    "ssh",
    "ssl",
    "stdlib",
    "syntax_tools",
    "tftp",
    "tools",
    "wx",
    "xmerl",
];

/// Whether a code file belongs to one of these: `…/APPLICATION-VERSION/ebin/MODULE.beam`.
fn is_of_library(file: &str) -> bool {
    let mut parts = file.rsplit('/').skip(1);
    if parts.next() != Some("ebin") {
        return false;
    }
    let folder = parts.next().unwrap_or_default();
    let name = match folder.rsplit_once('-') {
        Some((name, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => name,
        _ => folder,
    };
    APPLICATIONS.contains(&name)
}

/// Whether the installation has a module of that name in an application of OTP or Elixir. Used when
/// an emulator has stopped and there is no code server to ask.
fn is_installed(module: &str) -> bool {
    static NAMES: OnceLock<HashSet<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| match purlin_kernel::options::try_current() {
        Some(o) => installed(&o.otp.root),
        None => HashSet::new(),
    });
    names.contains(module)
}

fn installed(root: &Path) -> HashSet<String> {
    let entries = |dir: &Path| {
        let all = std::fs::read_dir(dir).into_iter().flatten().flatten();
        all.map(|e| e.path()).collect::<Vec<PathBuf>>()
    };
    // Elixir is beside OTP.
    let libraries = [root.join("lib"), root.join("../elixir/lib")];
    let folders = libraries.iter().flat_map(|l| entries(l));
    let files = folders.flat_map(|f| entries(&f.join("ebin")));
    files
        .filter(|f| f.extension().is_some_and(|e| e == "beam"))
        .filter(|f| f.to_str().is_some_and(is_of_library))
        .filter_map(|f| Some(f.file_stem()?.to_str()?.to_string()))
        .collect()
}

/// Time for which the origin of a module is cached.
const BELIEVED: Duration = Duration::from_secs(2);

/// Whether a module belongs to OTP or Elixir. Those that the emulator starts with have no file.
fn is_library(module: Term) -> bool {
    static KNOWN: Mutex<Option<(Instant, HashMap<u64, bool>)>> = Mutex::new(None);
    if PRELOADED.iter().any(|p| p.1 == atom::name(module)) {
        return true;
    }
    if let Some((since, known)) = &*KNOWN.lock()
        && since.elapsed() < BELIEVED
        && let Some(answer) = known.get(&module.raw())
    {
        return *answer;
    }
    let answer = match registry::whereis(atom::intern("code_server")) {
        Some(_) => file(module).is_some_and(|f| is_of_library(&f)),
        None => is_installed(atom::name(module)),
    };
    let mut known = KNOWN.lock();
    if known.as_ref().is_none_or(|k| k.0.elapsed() >= BELIEVED) {
        *known = Some((Instant::now(), HashMap::new()));
    }
    if let Some((_, known)) = &mut *known {
        known.insert(module.raw(), answer);
    }
    answer
}

/// `module:function/arity`, or `Module.function/arity` for a module of Elixir.
pub fn function(module: Term, function: Term, arity: u32) -> String {
    let name = format_atom(function, Style::Write);
    let text = atom::name(module);
    match text.strip_prefix("Elixir.") {
        Some(short) => {
            let name = atom::name(function);
            format!("{short}.{name}/{arity}")
        }
        None => format!("{}:{name}/{arity}", format_atom(module, Style::Write)),
    }
}

/// The frame that a developer looks for, in a list that begins with the innermost.
pub fn site(frames: &[Frame]) -> Option<&Frame> {
    frames.iter().find(|f| is_own(f)).or(frames.first())
}

/// Whether a frame belongs to the program, or to a library that is not OTP's or Elixir's.
pub fn is_own(f: &Frame) -> bool {
    !is_library(f.module)
}

pub fn frame(f: &Frame) -> Json {
    place(f.module, f.function, f.arity, f.line.as_ref())
}

pub fn place(module: Term, name: Term, arity: u32, line: Option<&(String, u32)>) -> Json {
    Json::object([
        ("function", function(module, name, arity).into()),
        ("file", line.map(|l| l.0.clone()).into()),
        ("line", line.map(|l| u64::from(l.1)).into()),
    ])
}

/// Characters kept of a file's name.
const FILE_CHARS: usize = 4096;

/// The file that a module was loaded from, according to the code server's table. `None` if it came
/// from no file, or the table does not look as in the known releases.
pub fn file(module: Term) -> Option<String> {
    let server = registry::whereis(atom::intern("code_server"))?;
    // The code server's table is called `code_server` since OTP 26, before that `code`.
    let tables = [atom::intern("code"), atom::intern("code_server")];
    let all = purlin_ets::all();
    let mut table = all
        .iter()
        .filter(|t| t.owner() == server && tables.contains(&t.name()));
    purlin_ets::look(table.next()?, module, |object| {
        let mut text = String::new();
        for c in object.as_tuple()?.get(1)?.list_iter().take(FILE_CHARS) {
            text.push(char::from_u32(u32::try_from(c.as_small()?).ok()?)?);
        }
        // The code path may be relative to the current directory of the emulator.
        match text.starts_with('/') {
            true => Some(text),
            false => std::env::current_dir()
                .ok()?
                .join(text)
                .to_str()
                .map(str::to_string),
        }
    })?
}

/// A pid as the shell shows it.
pub fn pid(t: Term) -> String {
    format_term(t, Style::Write, 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_module_lies_says_whose_it_is() {
        for file in [
            "/usr/lib/erlang/lib/stdlib-4.2/ebin/lists.beam",
            "/srv/shop/lib/kernel-8.5.3/ebin/file.beam",
            "/proc/self/exe/lib/compiler-8.2/ebin/v3_core.beam",
            "/usr/lib/elixir/lib/elixir/ebin/Elixir.Enum.beam",
        ] {
            assert!(is_of_library(file), "{file}");
        }
        for file in [
            "/srv/shop/lib/shop-1.0.0/ebin/shop.beam",
            "/srv/shop/lib/cowboy-2.10.0/ebin/cowboy.beam",
            "/home/me/stdlib/lists.beam",
            "/home/me/my-kernel/ebin/file.beam",
            "/home/me/mine.beam",
            "mine.beam",
            "",
        ] {
            assert!(!is_of_library(file), "{file}");
        }
    }

    #[test]
    fn the_site_is_the_first_frame_outside_of_libraries() {
        let frame = |m: &str| Frame {
            module: atom::intern(m),
            function: atom::intern("f"),
            arity: 1,
            line: None,
        };
        let name = |v: &[&str]| {
            let frames: Vec<Frame> = v.iter().map(|m| frame(m)).collect();
            site(&frames).map(|f| atom::name(f.module).to_string())
        };
        assert_eq!(
            name(&["erlang", "prim_file", "mine", "erts_internal"]).as_deref(),
            Some("mine")
        );
        assert_eq!(name(&["erlang", "init"]).as_deref(), Some("erlang"));
        assert_eq!(name(&[]), None);
        let a = atom::intern;
        assert_eq!(function(a("Elixir.Foo.Bar"), a("a?"), 2), "Foo.Bar.a?/2");
        assert_eq!(function(a("m"), a("-f/1-fun-0-"), 2), "m:'-f/1-fun-0-'/2");
    }
}
