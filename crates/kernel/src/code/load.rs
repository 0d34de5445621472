//! Loading in two steps: `prepare` does all the work and touches nothing that runs; `finish` makes
//! the module current.

use super::coverage::{self, Counters};
use super::debugger::{self, Debug};
use super::image::{self, Image};
use super::memory::Code;
use super::names::{How, Names, atoms_of, lowered, names};
pub use super::names::{LoadFailure, constant};
use super::perf;
use super::versions::{Module, current, finish_all, finish_on_load, was_loaded};
use crate::options::Coverage;
use purlin_isa::genops;
use purlin_loader::lower::Lowered;
use purlin_loader::{BeamFile, Fault, GenericCode, LoadError, Table};
use purlin_native::exports::CodeHooks;
use purlin_term::etf;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::fun::Export;
use purlin_term::{NIL, Term};
use std::sync::{Arc, OnceLock};

/// A module that is ready to be made current.
pub struct Prepared {
    module: Box<Module>,
}

impl Prepared {
    /// The module's name.
    pub fn name(&self) -> Term {
        self.module.name
    }
    pub(super) fn into_module(self) -> Module {
        *self.module
    }
    /// Whether it has an `on_load` function.
    pub fn has_on_load(&self) -> bool {
        self.module.on_load.is_some()
    }
}

/// Returns a module that was prepared earlier from these bytes, if there is one.
pub(crate) static MADE_BEFORE: std::sync::OnceLock<fn(&[u8]) -> Option<Prepared>> =
    std::sync::OnceLock::new();

/// Checks a module and generates its code.
pub fn prepare(bytes: &[u8]) -> Result<Prepared, LoadFailure> {
    if let Some(p) = MADE_BEFORE.get().and_then(|made| made(bytes)) {
        return Ok(p);
    }
    match usable_image(bytes) {
        Some(i) => prepare_from(bytes, Some(&i)),
        None => prepare_anew(bytes),
    }
}

/// Does the same as [`prepare`], but never uses code that was made earlier.
pub(crate) fn prepare_anew(bytes: &[u8]) -> Result<Prepared, LoadFailure> {
    prepare_from(bytes, None)
}

/// Returns the image of a module file, if there is one that can be used.
fn usable_image(bytes: &[u8]) -> Option<Image<'static>> {
    // Code with counters, line breakpoints or marks is generated anew.
    if coverage::mode() != Coverage::None || debugger::lines_can_break() || perf::on() {
        return None;
    }
    image::find(bytes)
}

/// Returns the environment of a file and its code, from its image if there is one.
fn code_of<'a>(
    file: &'a BeamFile<'a>,
    image: Option<&Image>,
) -> Result<(Names<'a>, (Lowered, Vec<u32>)), LoadFailure> {
    let how = |atoms: &[Term]| How {
        loaded_before: atoms.first().is_some_and(|&name| was_loaded(name)),
        lines_can_break: debugger::lines_can_break(),
    };
    if let Some(image) = image {
        let (atoms, n) = (image.atoms(), image.functions());
        let how = how(&atoms);
        let mut env = names(file, atoms, image.md5(), n, Counters::none(), how)?;
        let made = image::relocate(image, &mut env)?;
        return Ok((env, made));
    }
    let code = GenericCode::decode(file)?;
    let atoms = atoms_of(file)?;
    let how = how(&atoms);
    // Debuggers ask that table about a line that has a breakpoint.
    let has_lines = || code.instrs.iter().any(|i| i.op == genops::DEBUG_LINE);
    if how.lines_can_break && !file.has_debug && has_lines() {
        return Err(LoadError::from(Fault::Missing(Table::Debug)).into());
    }
    let counters = Counters::new(file, &code);
    let mut env = names(file, atoms, file.md5(), code.functions.len(), counters, how)?;
    let made = lowered(file, &code, &mut env)?;
    Ok((env, made))
}

/// Returns the items of the line table and the names of its files. The first file is the module's
/// own.
fn line_table(file: &BeamFile) -> (Vec<(u32, u32)>, Vec<String>) {
    let (items, mut files) = match &file.lines {
        Some(l) => (l.items.clone(), l.names.clone()),
        None => (Vec::new(), Vec::new()),
    };
    if let Some(f) = files.first_mut()
        && f.is_empty()
    {
        *f = format!("{}.erl", file.module());
    }
    (items, files)
}

/// Checks that the attributes and the compilation information decode.
fn check_attributes(file: &BeamFile) -> Result<(), LoadFailure> {
    for bytes in [file.attributes(), file.compile_info()]
        .into_iter()
        .flatten()
    {
        let mut f = Fragment::new();
        let decoded = etf::decode(bytes, &mut f, &CodeHooks, etf::Options::default());
        // Release its binaries and funs, whether it decodes or not.
        drop(OwnedTerm::from_parts(NIL, f));
        decoded.map_err(|e| LoadFailure::of(e, LoadFailure::Attributes))?;
    }
    Ok(())
}

/// Makes a module from a file, using its image if there is one.
fn prepare_from(bytes: &[u8], image: Option<&Image>) -> Result<Prepared, LoadFailure> {
    let file = BeamFile::parse(bytes)?;
    let (env, (made, exports)) = code_of(&file, image.filter(|i| i.fits(&file)))?;
    let name = env.atoms[0];
    let Lowered {
        mut words,
        functions,
        lines,
        facts,
        types,
        counted,
        debug_lines,
        on_load,
        ..
    } = made;
    let exports = file.exports.iter().zip(exports);
    let exports = exports
        .map(|(e, at)| (env.atoms[e.function as usize - 1], e.arity, at))
        .collect();
    let Names {
        atoms,
        literals,
        funs,
        records,
        regions,
        strings,
        md5,
        mut nifs,
        mut counters,
        lines_can_break,
        marks,
        ..
    } = env;
    let mut debug = Debug {
        can_break: lines_can_break,
        described: !file.debug.is_empty(),
        lines: debug_lines,
        ..Debug::default()
    };
    if !debug.lines.is_empty() {
        debug.items = file.debug.clone();
        (debug.atoms, debug.literals) = (atoms, literals);
    }
    counters.lines = counted;
    marks.write(name, &functions);
    if !functions.iter().any(|f| f.nif) {
        nifs = Box::default();
    }
    let (line_items, files) = line_table(&file);
    for f in &functions {
        super::compiled::clear_lead(&mut words, f);
    }
    let code = Code::new(&words);
    drop(words);
    let on_load = on_load.map(|at| {
        let to = code.as_ptr().wrapping_add(at as usize);
        Box::new(Export::new(name, purlin_term::am::ON_LOAD, 0, to))
    });
    check_attributes(&file)?;
    Ok(Prepared {
        module: Box::new(Module {
            name,
            code,
            functions,
            lines,
            facts,
            types,
            line_items,
            files,
            exports,
            funs,
            md5,
            attributes: file.attributes().unwrap_or_default().to_vec(),
            compile: file.compile_info().unwrap_or_default().to_vec(),
            literals: regions.all,
            records,
            strings,
            on_load,
            nifs,
            counters,
            debug,
            marks,
            library: OnceLock::new(),
        }),
    })
}

/// Makes a prepared module current; the version that was current becomes old. It does not run the
/// `on_load` function: this is for modules that the runtime itself loads before processes run.
pub fn finish(p: Prepared) -> Arc<Module> {
    let name = p.name();
    let held = p.has_on_load();
    let _ = finish_all(vec![p]);
    if held {
        finish_on_load(name, true);
    }
    // A module that already has old code is not replaced; then the current version is the result.
    current(name).unwrap_or_else(|| unreachable!("just made current"))
}

/// Loads one of the modules that exist before the first process. Stack traces do not show their
/// lines, as in stock.
pub fn load_preloaded(bytes: &[u8]) -> Result<Arc<Module>, LoadFailure> {
    let mut p = prepare(bytes)?;
    p.module.lines = Vec::new();
    Ok(finish(p))
}

/// Prepares a module and makes it current.
pub fn load(bytes: &[u8]) -> Result<Arc<Module>, LoadFailure> {
    Ok(finish(prepare(bytes)?))
}
