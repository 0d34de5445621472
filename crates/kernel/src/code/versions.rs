//! Modules and their versions: current, old, and one whose `on_load` function hasn't been run yet; what lies where.
//!
//! One lock guards the versions of all modules, a second one the ranges of addresses. They are taken in that order.

use super::areas::Literals;
use super::coverage::Counters;
use super::debugger::Debug;
use super::memory::{self, Code};
use super::perf::Marks;
use crate::code::Prepared;
use crate::sync::{RwLock, RwLockWriteGuard};
use purlin_isa::types::{Fact, Type};
use purlin_isa::view::{self, Extent, FunctionView};
use purlin_loader::lower::LoweredFunction;
use purlin_native::exports::{export, is_builtin, reset_export};
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
    /// Name, arity and offset of what it exports.
    pub exports: Vec<(Term, u32, u32)>,
    pub funs: Vec<&'static FunEntry>,
    pub md5: [u8; 16],
    /// `Attr` and `CInf` chunks, in external term format.
    pub attributes: Vec<u8>,
    pub compile: Vec<u8>,
    pub(super) literals: Literals,
    /// The native records that it declares: their names, and what they are made of, a literal (see `Env::record`).
    pub records: Vec<(Term, Term)>,
    /// Read by code, by address.
    #[allow(dead_code)]
    pub(super) strings: Box<[u8]>,
    /// Leads to the function that runs at loading. In no table: only `erlang:call_on_load_function/1` calls it.
    pub on_load: Option<Box<Export>>,
    /// One for each function, if a native library may replace any.
    pub nifs: Box<[NifSlot]>,
    /// How often its functions or lines have run, if that is counted.
    pub counters: Counters,
    /// Its data for a debugger.
    pub debug: Debug,
    /// The marks by which those who look on from outside know its functions.
    pub(super) marks: Marks,
    /// Keeps the native library that has replaced some. Dropping it tells the library that the module goes.
    pub library: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Drop for Module {
    fn drop(&mut self) {
        super::breakpoint::breakpoints().forget(self.addresses());
        if let Some(c) = super::compiled::compiled() {
            c.forget(self.addresses());
        }
        super::entries::entries().forget(self.addresses());
        crate::accounts::forget_addresses();
    }
}

impl Module {
    /// Where its code lies.
    pub fn addresses(&self) -> std::ops::Range<usize> {
        self.code.addresses()
    }
    /// The function with that index, as a compiler of it wants it. `words` is the code of this module in which nothing is
    /// patched, at least up to the end of the function.
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
    /// Bytes that it takes, literals excepted, which are a region.
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
    /// All functions: name and arity.
    pub fn function_names(&self) -> impl Iterator<Item = (Term, u32)> + '_ {
        // SAFETY: names are words of atoms.
        self.functions
            .iter()
            .map(|f| (unsafe { Term::from_raw(f.name) }, f.arity))
    }
    /// Where a native library may put a function in the place of that one: an error if it is there, but isn't one of those.
    /// None: it isn't there.
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
    /// The functions that a native library has replaced: name and arity.
    pub fn replaced(&self) -> impl Iterator<Item = (Term, u32)> + '_ {
        self.function_names()
            .zip(&self.nifs)
            .filter(|(_, s)| !s.get().is_null())
            .map(|(f, _)| f)
    }
    /// Whether it exports that function.
    pub fn exports_function(&self, f: Term, arity: u32) -> bool {
        self.exports.iter().any(|e| e.0 == f && e.1 == arity)
    }
    /// Where the code of each fun starts; None where the table of funs names a function that isn't there.
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
    /// The function that holds an address.
    pub fn function_at(&self, pc: *const u64) -> Option<&LoweredFunction> {
        self.functions.get(self.index_at(pc)?)
    }
    /// Its index.
    pub(super) fn index_at(&self, pc: *const u64) -> Option<usize> {
        let at = ((pc as usize - self.code.as_ptr() as usize) / 8) as u32;
        let i = self
            .functions
            .partition_point(|f| f.start <= at)
            .checked_sub(1)?;
        self.functions.get(i).filter(|f| at < f.end).and(Some(i))
    }
    /// Line of an item of the line table; none of what has no place.
    pub fn line_of(&self, item: u32) -> Option<u32> {
        let &(_, line) = self.line_items.get(item as usize)?;
        (line != 0).then_some(line)
    }
    /// File and line of an address.
    pub fn line_at(&self, pc: *const u64) -> Option<(String, u32)> {
        let (file, line) = self.item_at(pc)?;
        Some((self.files.get(file as usize)?.clone(), line))
    }
    /// Number of the file, and the line, of an address.
    fn item_at(&self, pc: *const u64) -> Option<(u32, u32)> {
        let at = ((pc as usize - self.code.as_ptr() as usize) / 8) as u32;
        let i = self.lines.partition_point(|l| l.0 <= at).checked_sub(1)?;
        let &(file, line) = self.line_items.get(self.lines[i].1 as usize)?;
        (line != 0).then_some((file, line))
    }
}

/// A function whose module doesn't declare that a native library may replace it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotNif;

/// Versions of a module.
#[derive(Default, Clone)]
pub struct Versions {
    pub current: Option<Arc<Module>>,
    pub old: Option<Arc<Module>>,
    /// The versions that were to become old while `old` was there. One of them takes its place when that is purged, so that each
    /// is purged as any other is. An `on_load` function that takes its time makes such, if others load and delete its module
    /// meanwhile.
    pub older: Vec<Arc<Module>>,
    /// Loaded, but its `on_load` function hasn't returned yet: nobody can call it from outside.
    pub on_load: Option<Arc<Module>>,
}

impl Versions {
    /// Whether that version is one that is to be purged.
    pub fn is_old(&self, m: &Arc<Module>) -> bool {
        self.old
            .iter()
            .chain(&self.older)
            .any(|o| Arc::ptr_eq(o, m))
    }
    /// A version that is not current any more.
    pub(super) fn make_old(&mut self, m: Arc<Module>) {
        match self.old {
            None => self.old = Some(m),
            Some(_) => self.older.push(m),
        }
    }
}

/// What is loaded is told in its order, which nothing random decides.
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
/// Changes whenever the table does: once the lock is held, before anything is written.
static TABLE_VERSION: AtomicU64 = AtomicU64::new(0);

/// Modules that a thread remembers to be there or not: who calls a function by name often asks for its module each time.
const MODULES_REMEMBERED: usize = 64;

thread_local! {
    /// Numbers of atoms, whether they have a current version, and [`TABLE_VERSION`] when that was so.
    static LAST_MODULES: [Cell<(u32, bool, u64)>; MODULES_REMEMBERED] =
        const { [const { Cell::new((u32::MAX, false, 0)) }; MODULES_REMEMBERED] };
}
/// All versions that may run, sorted by the address of their code, which stands with them.
fn ranges() -> &'static RwLock<Vec<(usize, Arc<Module>)>> {
    static R: RwLock<Vec<(usize, Arc<Module>)>> = RwLock::new(Vec::new());
    &R
}
/// The version of a module whose code holds that address, if it is one of those.
fn in_ranges(ranges: &[(usize, Arc<Module>)], pc: *const u64) -> Option<&Arc<Module>> {
    let i = ranges.partition_point(|m| m.0 <= pc as usize);
    let (_, m) = ranges.get(i.checked_sub(1)?)?;
    m.contains(pc).then_some(m)
}

/// Runs `f` on the versions of a module (none, if it was never loaded).
pub fn with_versions<R>(name: Term, f: impl FnOnce(&Versions) -> R) -> R {
    let m = table().read();
    f(m.get(&name.atom_index()).unwrap_or(&Versions::default()))
}

/// Whether a version of the module was loaded before, current or not.
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
        // Nobody writes meanwhile.
        last.set((number, current, TABLE_VERSION.load(Ordering::Acquire)));
        current
    })
}

/// Whether the current version of a module exports a function that is written in it.
pub fn exports(module: Term, f: Term, arity: u32) -> bool {
    let m = table().read();
    let current = m.get(&module.atom_index()).and_then(|v| v.current.as_ref());
    current.is_some_and(|m| m.exports_function(f, arity))
}

/// The definition and defaults of the records of that name in the current version of a module, as `Env::record` tells them; with
/// `exported` only those that are.
///
/// The literal is the module's, as those that its code loads are: the process that asks may put it into its registers and heap, and
/// is asked for it when the module goes (see `areas.rs`).
pub fn record(module: Term, name: Term, exported: bool) -> Option<Term> {
    let m = current(module)?;
    let made = m.records.iter().find(|r| r.0 == name)?.1;
    let d = Definition::of(*made.as_tuple()?.first()?)?;
    (d.is_exported() || !exported).then_some(made)
}

/// Names of all modules that have a current or old version.
pub fn loaded() -> Vec<Term> {
    let m = table().read();
    m.iter()
        .filter(|(_, v)| v.current.is_some() || v.old.is_some())
        .map(|(&i, _)| Term::atom(i))
        .collect()
}

/// Makes the current version old. False if there is an old one already; `None` if the module was never loaded.
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
    Some(true)
}

/// Why modules can't be made current.
pub enum FinishFailure {
    /// These occur more than once.
    Duplicated(Vec<Term>),
    /// These have old code already.
    NotPurged(Vec<Term>),
    /// These are loaded, but their `on_load` functions have to run first.
    OnLoad(Vec<Term>),
}

/// Makes prepared modules current, all or none; versions that were current become old. A module with an `on_load`
/// function is put aside until [`finish_on_load`].
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
    match waiting.is_empty() {
        true => Ok(()),
        false => Err(FinishFailure::OnLoad(waiting)),
    }
}

/// The `on_load` function of a module has returned: with `keep` the version becomes current, else it stays for the
/// purge. False if there is no such version.
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
        // A native stays one, whatever its module's file says.
        if !is_builtin(m.name, f, a) {
            export(m.name, f, a).lead(m.at(at));
        }
    }
    super::breakpoint::breakpoints().loaded(&m);
    if let Some(c) = super::compiled::compiled() {
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

/// The version of a module whose code holds that address.
pub fn module_at(pc: *const u64) -> Option<Arc<Module>> {
    // Stubs and the words of exports are known at once, unless code had to be put outside of its range.
    if !memory::holds(pc) && !memory::any_apart() {
        return None;
    }
    in_ranges(&ranges().read(), pc).cloned()
}

/// The version of a module, and the index of its function, that an address is code of. None of stubs and of the words that exports
/// lead to.
pub fn function_at(pc: *const u64) -> Option<(Arc<Module>, usize)> {
    let m = module_at(pc)?;
    let i = m.index_at(pc)?;
    Some((m, i))
}

/// The mark of the function at an address, see [`super::perf`]; 0 if it has none.
pub fn mark_at(pc: *const u64) -> u64 {
    let found = function_at(pc).and_then(|(m, i)| m.marks.of(i));
    found.unwrap_or(0)
}

/// The function and line at an address; for return addresses give the word before.
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

/// A [`Place`] as traces of exceptions want it.
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
    /// File and line.
    pub fn line(&self) -> Option<(&str, u32)> {
        (self.line != 0).then_some((&*self.file, self.line))
    }
}

/// Changes whenever code comes or goes.
static RANGES_VERSION: AtomicU64 = AtomicU64::new(0);

/// What was found at an address, while [`RANGES_VERSION`] was that.
type Found = Option<(usize, u64, Spot)>;
/// Places that a thread remembers: programs raise exceptions at the same places again and again.
const REMEMBERED: usize = 64;

thread_local! {
    static LAST_SPOTS: RefCell<[Found; REMEMBERED]> = const { RefCell::new([const { None }; REMEMBERED]) };
}

/// Shows what is at each of these addresses, as [`find`] tells of one, to `each`, in order. `each` must not look for places itself.
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
