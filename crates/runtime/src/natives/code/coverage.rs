//! Natives of code coverage: what the loaded modules count, and how often functions and lines have
//! run.

use crate::code::{self, Module, coverage};
use crate::cx::{BifResult, Cx, Fail};
use crate::options::Coverage;
use crate::{bifs, lazy_atoms};
use purlin_term::word::MAX_SMALL;
use purlin_term::{Alloc, Term, am, atom};
use std::sync::Arc;

lazy_atoms! {
    module_info = "module_info";
}

/// Largest count that is reported.
const MOST_COUNTED: u64 = MAX_SMALL as u64;

fn named(mode: Coverage) -> Term {
    atom::intern(mode.word())
}
/// The current version of a module.
fn module(name: Term) -> Result<Arc<Module>, Fail> {
    match name.is_atom() {
        true => code::current(name).ok_or(Fail::Badarg),
        false => Err(Fail::Badarg),
    }
}
fn counted(n: u64) -> Term {
    Term::small(n.min(MOST_COUNTED) as i64)
}

fn coverage_support_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(am::TRUE)
}
fn get_coverage_mode_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(named(coverage::mode()))
}
fn get_coverage_mode_1(_: &mut Cx, [name]: [Term; 1]) -> BifResult {
    Ok(named(module(name)?.counters.mode))
}
fn set_coverage_mode_1(_: &mut Cx, [mode]: [Term; 1]) -> BifResult {
    let name = Some(mode).filter(|m| m.is_atom()).map(atom::name);
    let mode = name.and_then(Coverage::from_word).ok_or(Fail::Badarg)?;
    Ok(named(coverage::set_mode(mode)))
}
fn reset_coverage_1(_: &mut Cx, [name]: [Term; 1]) -> BifResult {
    let m = module(name)?;
    if m.counters.mode == Coverage::None {
        return Err(Fail::Badarg);
    }
    m.counters.reset();
    Ok(am::OK)
}
fn get_coverage_2(cx: &mut Cx, [what, name]: [Term; 2]) -> BifResult {
    let m = module(name)?;
    match Some(what).filter(|t| t.is_atom()).map(atom::name) {
        Some("function") => functions(cx, &m),
        Some("line") => lines(cx, &m, |line, _| line),
        Some("cover_id_line") if m.counters.mode == Coverage::LineCounters => {
            lines(cx, &m, |_, id| id)
        }
        _ => Err(Fail::Badarg),
    }
}
/// Every function, except those that the compiler adds to all modules, with whether or how often it
/// has run.
fn functions(cx: &mut Cx, m: &Module) -> BifResult {
    if m.counters.mode == Coverage::None {
        return Err(Fail::Badarg);
    }
    let mut out = Vec::with_capacity(m.functions.len());
    let counts = m.counters.functions(m.functions.len());
    for ((f, arity), n) in m.function_names().zip(counts) {
        if f == module_info() && arity <= 1 {
            continue;
        }
        let value = match m.counters.mode {
            Coverage::FunctionCounters => counted(n),
            _ => Term::bool(n > 0),
        };
        let key = cx.tuple(&[f, Term::small(i64::from(arity))]);
        out.push(cx.tuple(&[key, value]));
    }
    cx.bump(out.len());
    Ok(cx.list(&out))
}
/// Every counted line, keyed by its number or the compiler's, with whether or how often it has run.
fn lines(cx: &mut Cx, m: &Module, key: fn(u32, u32) -> u32) -> BifResult {
    if !m.counters.of_lines() {
        return Err(Fail::Badarg);
    }
    let mut out = Vec::new();
    for (l, n) in m.counters.lines() {
        let Some(line) = m.line_of(l.item) else {
            continue;
        };
        let value = match m.counters.mode {
            Coverage::LineCounters => counted(n),
            _ => Term::bool(n > 0),
        };
        out.push(cx.tuple(&[Term::small(i64::from(key(line, l.id))), value]));
    }
    cx.bump(out.len());
    Ok(cx.list(&out))
}

bifs! {
    Plain "code":"coverage_support"/0 = coverage_support_0 [since(27)];
    Plain "code":"get_coverage"/2 = get_coverage_2 [since(27)];
    Plain "code":"get_coverage_mode"/0 = get_coverage_mode_0 [since(27)];
    Plain "code":"get_coverage_mode"/1 = get_coverage_mode_1 [since(27)];
    Plain "code":"reset_coverage"/1 = reset_coverage_1 [since(27)];
    Plain "code":"set_coverage_mode"/1 = set_coverage_mode_1 [since(27)];
}
