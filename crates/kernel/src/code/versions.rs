//! Modules and their versions: current, old, and one whose `on_load` function has not run yet. Also
//! the map from addresses to modules.
//!
//! One lock guards the versions of all modules, a second one the address ranges. They are taken in
//! that order.
//!
//! # Orderings
//! * `TABLE_VERSION` is increased after the write lock is taken and before anything is written.
//!   [`is_current`] remembers it together with what it found under the read lock, which excludes
//!   writers. A thread that still loads the same number acts as if it had come before the writer.
//! * `RANGES_VERSION` is increased under the write lock. [`find_each`] loads it under the read lock
//!   before it remembers what it has found. A thread that learns an address from one that added or
//!   removed its range loads a newer number, and looks again.

use super::coverage::Counters;
use super::debugger::Debug;
use super::literal_areas::Literals;
use super::memory::{self, Code};
use super::perf::Marks;
use crate::code::Prepared;
use crate::sync::{RwLock, RwLockWriteGuard};
use purlin_isa::types::{Fact, Type};
use purlin_isa::view::{self, Extent, FunctionView};
use purlin_loader::lower::LoweredFunction;
use purlin_native::exports::{code_has_changed, export, is_builtin, reset_export};
use purlin_native::hashing::Hashing;
use purlin_native::nif::NifSlot;
use purlin_term::Term;
use purlin_term::fun::{Export, FunEntry};
use purlin_term::record::Definition;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A loaded version of a module.
pub struct Module {
    pub name: Term,
    pub code: Code,
    /// The extent of each function, from its `func_info` to its end, sorted.
    pub functions: Vec<LoweredFunction>,
    pub(super) lines: Vec<(u32, u32)>,
    /// Facts of the compiler about registers that instructions read, by offset.
    pub(super) facts: Vec<Fact>,
    /// The types that `facts` name.
    pub(super) types: Vec<Type>,
    pub(super) line_items: Vec<(u32, u32)>,
    pub(super) files: Vec<String>,
    /// Name, arity and offset of its exported functions.
    pub exports: Vec<(Term, u32, u32)>,
    pub funs: Vec<&'static FunEntry>,
    pub md5: [u8; 16],
    /// `Attr` and `CInf` chunks, in external term format.
    pub attributes: Vec<u8>,
    pub compile: Vec<u8>,
    pub(super) literals: Literals,
    /// Names of the native records that it declares, with literals of their definitions and
    /// defaults (see `Env::record`).
    pub records: Vec<(Term, Term)>,
    /// Read by code, by address.
    #[allow(dead_code)]
    pub(super) strings: Box<[u8]>,
    /// Leads to the `on_load` function. It is in no table: only `erlang:call_on_load_function/1`
    /// calls it.
    pub on_load: Option<Box<Export>>,
    /// One slot for each function, if a native library may replace any of them.
    pub nifs: Box<[NifSlot]>,
    /// Counts of how often its functions or lines have run, if counted.
    pub counters: Counters,
    /// Its data for a debugger.
    pub debug: Debug,
    /// The marks by which external profilers know its functions.
    pub(super) marks: Marks,
    /// Keeps the native library that has replaced functions. Dropping it tells the library that the
    /// module is unloaded.
    pub library: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Drop for Module {
    fn drop(&mut self) {
        super::breakpoint::breakpoints().forget(self.addresses());
        if let Some(c) = super::compiled::compiler() {
            c.forget(self.addresses());
        }
        super::entries::entries().forget(self.addresses());
        crate::accounts::forget_addresses();
    }
}

impl Module {
    /// The addresses of its code.
    pub fn addresses(&self) -> std::ops::Range<usize> {
        self.code.addresses()
    }
    /// Returns the function with that index in the form that a compiler wants. `words` is the code
    /// of this module without patches, at least up to the end of the function.
    pub fn function_view<'a>(&'a self, words: &'a [u64], index: usize) -> Option<FunctionView<'a>> {
        let f = self.functions.get(index)?;
        let code = view::Code {
            words,
            lines: &self.lines,
            facts: &self.facts,
            types: &self.types,
        };
        let extent = Extent {
            start: f.start,
            entry: f.entry,
            end: f.end,
            arity: f.arity,
        };
        FunctionView::new(code, extent)
    }
    /// Address of an offset in its code.
    pub fn at(&self, offset: u32) -> *const u64 {
        self.code.as_ptr().wrapping_add(offset as usize)
    }
    /// Bytes that it takes, without its literals, which are a region.
    pub fn bytes(&self) -> usize {
        size_of_val(self)
            + self.addresses().len()
            + self.functions.len() * size_of::<LoweredFunction>()
            + (self.lines.len() + self.line_items.len()) * size_of::<(u32, u32)>()
            + self.facts.len() * size_of::<Fact>()
            + self.types.len() * size_of::<Type>()
            + self.exports.len() * size_of::<(Term, u32, u32)>()
            + self.funs.len() * size_of::<FunEntry>()
            + self.files.iter().map(|f| f.len()).sum::<usize>()
            + self.attributes.len()
            + self.compile.len()
            + self.strings.len()
    }
    /// Whether an address lies in its code.
    pub fn contains(&self, pc: *const u64) -> bool {
        self.addresses().contains(&(pc as usize))
    }
    /// Iterates over all functions: name and arity.
    pub fn function_names(&self) -> impl Iterator<Item = (Term, u32)> + '_ {
        // SAFETY: names are words of atoms.
        self.functions
            .iter()
            .map(|f| (unsafe { Term::from_raw(f.name) }, f.arity))
    }
    /// Returns the slot by which a native library may replace a function; an error if the function
    /// is not declared as replaceable, None if it does not exist.
    pub fn nif_slot(&self, f: Term, arity: u32) -> Option<Result<&NifSlot, NotNif>> {
        let i = self
            .functions
            .iter()
            .position(|x| x.name == f.raw() && x.arity == arity)?;
        Some(match self.functions[i].nif {
            true => self.nifs.get(i).ok_or(NotNif),
            false => Err(NotNif),
        })
    }
    /// Iterates over the functions that a native library has replaced: name and arity.
    pub fn replaced(&self) -> impl Iterator<Item = (Term, u32)> + '_ {
        self.function_names()
            .zip(&self.nifs)
            .filter(|(_, s)| !s.get().is_null())
            .map(|(f, _)| f)
    }
    pub fn exports_function(&self, f: Term, arity: u32) -> bool {
        self.exports.iter().any(|e| e.0 == f && e.1 == arity)
    }
    /// Offsets of the code of all funs; None where the fun table names a function that does not
    /// exist.
    pub(super) fn fun_offsets(&self) -> Vec<Option<u32>> {
        let by_name: HashMap<(u64, u32), u32> = self
            .functions
            .iter()
            .map(|f| ((f.name, f.arity), f.entry))
            .collect();
        self.funs
            .iter()
            .map(|f| {
                let key = (f.function().raw(), u32::from(f.code_arity));
                by_name.get(&key).copied()
            })
            .collect()
    }
    /// Returns the function that contains an address.
    pub fn function_at(&self, pc: *const u64) -> Option<&LoweredFunction> {
        self.functions.get(self.index_at(pc)?)
    }
    pub(super) fn index_at(&self, pc: *const u64) -> Option<usize> {
        let at = ((pc as usize - self.code.as_ptr() as usize) / 8) as u32;
        let i = self
            .functions
            .partition_point(|f| f.start <= at)
            .checked_sub(1)?;
        self.functions.get(i).filter(|f| at < f.end).and(Some(i))
    }
    /// Returns the line of an item of the line table; None if the item has no position.
    pub fn line_of(&self, item: u32) -> Option<u32> {
        let &(_, line) = self.line_items.get(item as usize)?;
        (line != 0).then_some(line)
    }
    /// Returns file and line of an address.
    pub fn line_at(&self, pc: *const u64) -> Option<(String, u32)> {
        let (file, line) = self.item_at(pc)?;
        Some((self.files.get(file as usize)?.clone(), line))
    }
    /// Returns the number of the file, and the line, of an address.
    fn item_at(&self, pc: *const u64) -> Option<(u32, u32)> {
        let at = ((pc as usize - self.code.as_ptr() as usize) / 8) as u32;
        let i = self.lines.partition_point(|l| l.0 <= at).checked_sub(1)?;
        let &(file, line) = self.line_items.get(self.lines[i].1 as usize)?;
        (line != 0).then_some((file, line))
    }
}

/// The error for a function that its module does not declare as replaceable by a native library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotNif;

/// The versions of a module.
#[derive(Default, Clone)]
pub struct Versions {
    pub current: Option<Arc<Module>>,
    pub old: Option<Arc<Module>>,
    /// Versions that should have become old while there was an `old` version. When that is purged,
    /// one of them takes its place, so that each is purged in the usual way. This happens if an
    /// `on_load` function takes long and others load and delete its module meanwhile.
    pub older: Vec<Arc<Module>>,
    /// A version whose `on_load` function has not returned yet. Nobody can call it from outside.
    pub on_load: Option<Arc<Module>>,
}

impl Versions {
    /// Whether that version is waiting to be purged.
    pub fn is_old(&self, m: &Arc<Module>) -> bool {
        self.old
            .iter()
            .chain(&self.older)
            .any(|o| Arc::ptr_eq(o, m))
    }
    /// Adds a version that is no longer current.
    pub(super) fn make_old(&mut self, m: Arc<Module>) {
        match self.old {
            None => self.old = Some(m),
            Some(_) => self.older.push(m),
        }
    }
}

/// The order of iteration is visible to programs, so the hashing is deterministic.
type Table = HashMap<u32, Versions, Hashing>;

fn table() -> &'static RwLock<Table> {
    static T: OnceLock<RwLock<Table>> = OnceLock::new();
    T.get_or_init(RwLock::default)
}
pub(super) fn write() -> RwLockWriteGuard<'static, Table> {
    let t = table().write();
    TABLE_VERSION.fetch_add(1, Ordering::Release);
    t
}
/// Changes whenever the table does: after the lock is taken, before anything is written.
static TABLE_VERSION: AtomicU64 = AtomicU64::new(0);

/// Number of modules for which a thread caches whether they are loaded. Code that calls functions
/// by name often asks for the module each time.
const MODULES_REMEMBERED: usize = 64;

thread_local! {
    /// Atom number, whether the module has a current version, and the [`TABLE_VERSION`] at which
    /// that held.
    static LAST_MODULES: [Cell<(u32, bool, u64)>; MODULES_REMEMBERED] =
        const { [const { Cell::new((u32::MAX, false, 0)) }; MODULES_REMEMBERED] };
}
/// All versions that may run, sorted by the address of their code, which comes first.
fn ranges() -> &'static RwLock<Vec<(usize, Arc<Module>)>> {
    static R: RwLock<Vec<(usize, Arc<Module>)>> = RwLock::new(Vec::new());
    &R
}
/// Returns the version whose code contains that address.
fn in_ranges(ranges: &[(usize, Arc<Module>)], pc: *const u64) -> Option<&Arc<Module>> {
    let i = ranges.partition_point(|m| m.0 <= pc as usize);
    let (_, m) = ranges.get(i.checked_sub(1)?)?;
    m.contains(pc).then_some(m)
}

/// Runs `f` on the versions of a module (none if it was never loaded).
pub fn with_versions<R>(name: Term, f: impl FnOnce(&Versions) -> R) -> R {
    let m = table().read();
    f(m.get(&name.atom_index()).unwrap_or(&Versions::default()))
}

/// Whether any version of the module was ever loaded.
pub(crate) fn was_loaded(name: Term) -> bool {
    let m = table().read();
    m.contains_key(&name.atom_index())
}

/// The current version of a module.
pub fn current(name: Term) -> Option<Arc<Module>> {
    with_versions(name, |v| v.current.clone())
}

/// Whether a module has a current version.
pub fn is_current(name: Term) -> bool {
    let number = name.atom_index();
    LAST_MODULES.with(|last| {
        let last = &last[number as usize % MODULES_REMEMBERED];
        let (n, current, version) = last.get();
        if n == number && version == TABLE_VERSION.load(Ordering::Acquire) {
            return current;
        }
        let m = table().read();
        let current = m.get(&number).is_some_and(|v| v.current.is_some());
        // The read lock excludes writers.
        last.set((number, current, TABLE_VERSION.load(Ordering::Acquire)));
        current
    })
}

/// Whether the current version of a module exports a function that its file defines.
pub fn exports(module: Term, f: Term, arity: u32) -> bool {
    let m = table().read();
    let current = m.get(&module.atom_index()).and_then(|v| v.current.as_ref());
    current.is_some_and(|m| m.exports_function(f, arity))
}

/// Returns the definition and defaults of a record in the current version of a module, in the form
/// of `Env::record`; with `exported`, only if the record is exported.
///
/// The literal belongs to the module, as do those that its code loads. The calling process may put
/// it into its registers and heap, and is asked about it when the module is purged (see
/// `literal_areas.rs`).
pub fn record(module: Term, name: Term, exported: bool) -> Option<Term> {
    let m = current(module)?;
    let made = m.records.iter().find(|r| r.0 == name)?.1;
    let d = Definition::of(*made.as_tuple()?.first()?)?;
    (d.is_exported() || !exported).then_some(made)
}

/// Returns the names of all modules that have a current or old version.
pub fn loaded() -> Vec<Term> {
    let m = table().read();
    m.iter()
        .filter(|(_, v)| v.current.is_some() || v.old.is_some())
        .map(|(&i, _)| Term::atom(i))
        .collect()
}

/// Makes the current version old. Returns false if there is an old one already, `None` if the
/// module was never loaded.
pub fn delete(name: Term) -> Option<bool> {
    let mut m = write();
    let v = m.get_mut(&name.atom_index())?;
    if v.old.is_some() {
        return Some(false);
    }
    if let Some(cur) = v.current.take() {
        for &(f, a, _) in &cur.exports {
            reset_export(export(name, f, a));
        }
        super::breakpoint::breakpoints().outdated(cur.addresses());
        v.make_old(cur);
    }
    code_has_changed();
    Some(true)
}

/// The reason why modules cannot be made current.
pub enum FinishFailure {
    /// These occur more than once.
    Duplicated(Vec<Term>),
    /// These have old code already.
    NotPurged(Vec<Term>),
    /// These are loaded, but their `on_load` functions must run first.
    OnLoad(Vec<Term>),
}

/// Makes prepared modules current, all or none; the versions that were current become old. A module
/// with an `on_load` function is put aside until [`finish_on_load`].
pub fn finish_all(prepared: Vec<Prepared>) -> Result<(), FinishFailure> {
    let mut table = write();
    let names: Vec<Term> = prepared.iter().map(|p| p.name()).collect();
    let twice: Vec<Term> = (0..names.len())
        .filter(|&i| names[..i].contains(&names[i]))
        .map(|i| names[i])
        .collect();
    if !twice.is_empty() {
        return Err(FinishFailure::Duplicated(twice));
    }
    let stuck: Vec<Term> = names
        .iter()
        .copied()
        .filter(|n| {
            table
                .get(&n.atom_index())
                .is_some_and(|v| v.current.is_some() && v.old.is_some())
        })
        .collect();
    if !stuck.is_empty() {
        return Err(FinishFailure::NotPurged(stuck));
    }
    let mut waiting = Vec::new();
    for p in prepared {
        let m = Arc::new(p.into_module());
        let v = table.entry(m.name.atom_index()).or_default();
        add_range(&m);
        if m.on_load.is_some() {
            waiting.push(m.name);
            point_funs(&m);
            if let Some(before) = v.on_load.replace(m) {
                v.make_old(before);
            }
        } else {
            make_current(v, m);
        }
    }
    code_has_changed();
    match waiting.is_empty() {
        true => Ok(()),
        false => Err(FinishFailure::OnLoad(waiting)),
    }
}

/// Called when the `on_load` function of a module has returned. With `keep` the version becomes
/// current; otherwise it stays until it is purged. Returns false if there is no such version.
pub fn finish_on_load(name: Term, keep: bool) -> bool {
    let mut table = write();
    let Some(v) = table.get_mut(&name.atom_index()) else {
        return false;
    };
    if v.on_load.is_none() {
        return false;
    }
    if keep && let Some(m) = v.on_load.take() {
        make_current(v, m);
    }
    code_has_changed();
    true
}

fn add_range(m: &Arc<Module>) {
    let mut r = ranges().write();
    let start = m.addresses().start;
    let at = r.partition_point(|o| o.0 < start);
    r.insert(at, (start, m.clone()));
    RANGES_VERSION.fetch_add(1, Ordering::Release);
}

pub(super) fn remove_range(m: &Arc<Module>) {
    let mut r = ranges().write();
    r.retain(|o| !Arc::ptr_eq(&o.1, m));
    RANGES_VERSION.fetch_add(1, Ordering::Release);
}

fn point_funs(m: &Module) {
    for (e, at) in m.funs.iter().zip(m.fun_offsets()) {
        match at {
            Some(at) => e.lead(m.at(at)),
            None => e.unlead(),
        }
    }
}

fn make_current(v: &mut Versions, m: Arc<Module>) {
    point_funs(&m);
    if let Some(prev) = v.current.take() {
        let new: std::collections::HashSet<(Term, u32)> =
            m.exports.iter().map(|x| (x.0, x.1)).collect();
        for &(f, a, _) in &prev.exports {
            if !new.contains(&(f, a)) {
                reset_export(export(m.name, f, a));
            }
        }
        super::breakpoint::breakpoints().outdated(prev.addresses());
        v.make_old(prev);
    }
    for &(f, a, at) in &m.exports {
        // A native stays a native, even if the module's file defines the function.
        if !is_builtin(m.name, f, a) {
            export(m.name, f, a).lead(m.at(at));
        }
    }
    super::breakpoint::breakpoints().loaded(&m);
    if let Some(c) = super::compiled::compiler() {
        c.loaded(&m);
    }
    v.current = Some(m);
}

/// The function or stub at an address.
pub struct Place {
    /// The function's module, name and arity.
    pub module: Term,
    pub function: Term,
    pub arity: u32,
    pub line: Option<(String, u32)>,
}

/// Returns the version whose code contains that address.
pub fn module_at(pc: *const u64) -> Option<Arc<Module>> {
    // Stubs and the words of exports are excluded at once, unless some code lies outside the range.
    if !memory::holds(pc) && !memory::any_apart() {
        return None;
    }
    in_ranges(&ranges().read(), pc).cloned()
}

/// Returns the version whose code contains an address, with the index of the function. None for
/// stubs and for the words that exports lead to.
pub fn function_at(pc: *const u64) -> Option<(Arc<Module>, usize)> {
    let m = module_at(pc)?;
    let i = m.index_at(pc)?;
    Some((m, i))
}

/// Returns the mark of the function at an address, see [`super::perf`]; 0 if it has none.
pub fn mark_at(pc: *const u64) -> u64 {
    let found = function_at(pc).and_then(|(m, i)| m.marks.of(i));
    found.unwrap_or(0)
}

/// Returns the function and line at an address. For a return address, pass the word before it.
pub fn find(pc: *const u64) -> Option<Place> {
    let m = module_at(pc)?;
    let f = m.function_at(pc)?;
    Some(Place {
        module: m.name,
        // SAFETY: the word of an atom.
        function: unsafe { Term::from_raw(f.name) },
        arity: f.arity,
        line: m.line_at(pc),
    })
}

/// A [`Place`] in the form that stack traces of exceptions need.
#[derive(Clone)]
pub struct Spot {
    /// The function's module, name and arity.
    pub module: Term,
    pub function: Term,
    pub arity: u32,
    line: u32,
    file: Box<str>,
}

impl Spot {
    fn of(m: &Module, pc: *const u64) -> Option<Spot> {
        let f = m.function_at(pc)?;
        let item = m.item_at(pc);
        let line = item.and_then(|(file, line)| Some((m.files.get(file as usize)?, line)));
        Some(Spot {
            module: m.name,
            // SAFETY: the word of an atom.
            function: unsafe { Term::from_raw(f.name) },
            arity: f.arity,
            line: line.map_or(0, |l| l.1),
            file: line.map_or("", |l| l.0).into(),
        })
    }
    /// Its file and line.
    pub fn line(&self) -> Option<(&str, u32)> {
        (self.line != 0).then_some((&*self.file, self.line))
    }
}

/// Changes whenever code is added or removed.
static RANGES_VERSION: AtomicU64 = AtomicU64::new(0);

/// The result for an address, with the [`RANGES_VERSION`] at which it was found.
type Found = Option<(usize, u64, Spot)>;
/// Number of places that a thread caches: programs raise exceptions at the same places again and
/// again.
const REMEMBERED: usize = 64;

thread_local! {
    static LAST_SPOTS: RefCell<[Found; REMEMBERED]> =
        const { RefCell::new([const { None }; REMEMBERED]) };
}

/// Looks up each of these addresses, as [`find`] does, and passes the results to `each` in order.
/// `each` must not look up addresses itself.
pub fn find_each(pcs: impl Iterator<Item = *const u64>, mut each: impl FnMut(Option<&Spot>)) {
    LAST_SPOTS.with_borrow_mut(|last| {
        for pc in pcs {
            let at = pc as usize;
            let found = &mut last[(at >> 3) % REMEMBERED];
            let version = RANGES_VERSION.load(Ordering::Acquire);
            if !matches!(found, Some((a, v, _)) if (*a, *v) == (at, version)) {
                let r = ranges().read();
                let version = RANGES_VERSION.load(Ordering::Acquire);
                let spot = in_ranges(&r, pc).and_then(|m| Spot::of(m, pc));
                *found = spot.map(|s| (at, version, s));
            }
            each(found.as_ref().map(|f| &f.2));
        }
    })
}
