//! The Erlang modules that have natives, and the properties that all natives of a module share.
//! There is one row for each module; rows of natives refer to them.

use purlin_term::release::{ALWAYS, Feature, since};
use purlin_term::{Term, atom};
use std::sync::OnceLock;

/// An Erlang module that has natives.
pub struct BifModule {
    pub name: &'static str,
    /// The module that formats errors of its natives (`error_info`), if there is one.
    pub errors: Option<&'static str>,
    /// The library that they belong to.
    pub library: Library,
    /// The releases that have the module's natives.
    pub releases: Feature,
}

/// The library that natives of a module belong to, as Erlang code sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    /// The emulator itself.
    Emulator,
    /// A native library that is part of the emulator: `load_nif/2` of the module finds it.
    Static,
}

impl BifModule {
    /// Whether its natives count as functions of a native library.
    pub fn is_library(&self) -> bool {
        self.library == Library::Static
    }
}

const fn row(name: &'static str, errors: Option<&'static str>, library: Library) -> BifModule {
    BifModule {
        name,
        errors,
        library,
        releases: ALWAYS,
    }
}

/// Natives that a release introduced.
const fn from(release: u32, row: BifModule) -> BifModule {
    BifModule {
        releases: since(release),
        ..row
    }
}

use Library::{Emulator, Static};
const ERTS: Option<&str> = Some("erl_erts_errors");
const KERNEL: Option<&str> = Some("erl_kernel_errors");
const STDLIB: Option<&str> = Some("erl_stdlib_errors");

/// The rows, sorted by name.
static MODULES: &[BifModule] = &[
    row("atomics", ERTS, Emulator),
    row("binary", STDLIB, Emulator),
    row("code", KERNEL, Emulator),
    row("erl_ddll", None, Emulator),
    from(28, row("erl_debugger", None, Emulator)),
    row("erl_tracer", None, Static),
    row("erlang", ERTS, Emulator),
    row("error_logger", None, Emulator),
    row("erts_debug", None, Emulator),
    row("erts_internal", ERTS, Emulator),
    row("erts_literal_area_collector", None, Emulator),
    row("erts_trace_cleaner", None, Emulator),
    row("ets", STDLIB, Emulator),
    row("file", None, Emulator),
    row("io", None, Emulator),
    row("lists", STDLIB, Emulator),
    row("maps", STDLIB, Emulator),
    row("math", STDLIB, Emulator),
    row("net_kernel", None, Emulator),
    row("os", KERNEL, Emulator),
    row("persistent_term", ERTS, Emulator),
    row("prim_buffer", None, Static),
    row("prim_file", None, Static),
    row("prim_net", None, Static),
    row("prim_socket", None, Static),
    from(26, row("prim_tty", None, Static)),
    row("purlin", None, Emulator),
    row("re", STDLIB, Emulator),
    from(29, row("records", None, Emulator)),
    row("string", None, Emulator),
    row("unicode", STDLIB, Emulator),
    row("zlib", None, Static),
    from(28, row("zstd", None, Static)),
];

/// Returns the row of an atom, if that module has natives.
pub fn of(module: Term) -> Option<&'static BifModule> {
    Some(by_atom(module)?.1)
}

/// Returns the module that formats errors of the natives of `module`.
pub fn error_module(module: Term) -> Option<Term> {
    by_atom(module)?.2
}

/// Looks up a module by the word of its atom, since errors of natives do so each time. Returns its
/// row, and the atom of the module that formats its errors.
fn by_atom(module: Term) -> Option<&'static ByAtom> {
    static BY_ATOM: OnceLock<Box<[ByAtom]>> = OnceLock::new();
    let rows = BY_ATOM.get_or_init(|| {
        let mut rows: Vec<_> = MODULES
            .iter()
            .map(|m| (atom::intern(m.name).raw(), m, m.errors.map(atom::intern)))
            .collect();
        rows.sort_unstable_by_key(|r| r.0);
        rows.into()
    });
    let at = rows.binary_search_by_key(&module.raw(), |r| r.0).ok()?;
    Some(&rows[at])
}

type ByAtom = (u64, &'static BifModule, Option<Term>);

/// Returns the row of that name.
///
/// # Panics
/// If there is none, so that a table of natives with a wrong name doesn't compile.
pub const fn named(name: &str) -> &'static BifModule {
    let mut i = 0;
    while i < MODULES.len() {
        if is_same(MODULES[i].name, name) {
            return &MODULES[i];
        }
        i += 1;
    }
    panic!("the module has no row in native/src/modules.rs")
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

#[cfg(test)]
mod tests {
    use super::MODULES;

    #[test]
    fn rows_are_sorted() {
        assert!(MODULES.is_sorted_by_key(|m| m.name));
    }
}
