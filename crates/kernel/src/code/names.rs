//! The environment in which the loader lowers a file: what its atoms, literals, imports, funs and
//! records are in this process.
//!
//! It also owns what the code refers to until the module takes it over: the regions of literals,
//! the string table, the slots of native functions, the counters and the marks.

use super::coverage::Counters;
use super::literal_areas::Literals;
use super::perf::Marks;
use crate::bif::Kind;
use crate::cx::{BifResult, Cx, Fail};
use purlin_loader::lower::{Callee, Env, Lowered, MapValue, lower};
use purlin_loader::{BeamFile, BigInt, FieldDefault, GenericCode, LoadError};
use purlin_messages::{self as messages, Code};
use purlin_native::bif::native;
use purlin_native::exports::{CodeHooks, called, fun_entry, is_builtin};
use purlin_native::nif::NifSlot;
use purlin_term::atom::AtomError;
use purlin_term::compare::eq_exact;
use purlin_term::etf;
use purlin_term::fun::{FunEntry, FunName};
use purlin_term::heap::Heap;
use purlin_term::layout::FLATMAP_LIMIT;
use purlin_term::region::Builder;
use purlin_term::word::{TAG_IMMED, TAG_MASK};
use purlin_term::{Alloc, NIL, Term, atom, copy, definition, map};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The reason why a module cannot be loaded.
#[derive(Debug)]
pub enum LoadFailure {
    /// The file is damaged, or of a kind that this runtime does not accept.
    File(LoadError),
    /// A literal does not decode.
    Literal(u32),
    /// A record has a field twice.
    Records,
    /// An atom is too long.
    Atom,
    /// There are too many atoms.
    AtomTableFull,
    /// The attributes or the compilation information do not decode.
    Attributes,
}

impl LoadFailure {
    /// Returns the failure of a load whose term does not decode: `otherwise`, unless the table of
    /// atoms is full.
    pub(super) fn of(e: etf::DecodeError, otherwise: LoadFailure) -> LoadFailure {
        match e {
            etf::DecodeError::AtomTableFull => LoadFailure::AtomTableFull,
            _ => otherwise,
        }
    }
}

impl From<LoadError> for LoadFailure {
    fn from(e: LoadError) -> Self {
        LoadFailure::File(e)
    }
}

impl LoadFailure {
    /// Returns the code of the message about it.
    pub fn code(&self) -> Code {
        match self {
            LoadFailure::File(e) => e.code(),
            _ => messages::DAMAGED_TABLE,
        }
    }
}

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadFailure::File(e) => write!(f, "{e}"),
            LoadFailure::Literal(i) => write!(f, "literal {i} does not decode"),
            LoadFailure::Records => write!(f, "a record has a field twice"),
            LoadFailure::Atom => write!(f, "an atom is too long"),
            LoadFailure::AtomTableFull => write!(f, "there are too many atoms"),
            LoadFailure::Attributes => write!(f, "attributes do not decode"),
        }
    }
}

/// Stand-in for natives that this runtime does not have.
fn missing(_: &mut Cx, _: *const Term) -> BifResult {
    Err(Fail::Undef)
}

pub(super) struct Names<'a> {
    file: &'a BeamFile<'a>,
    pub(super) atoms: Vec<Term>,
    pub(super) literals: Vec<Term>,
    /// Words of the literals, filled when the lowering first asks for the term of a word.
    known_literals: OnceCell<HashSet<u64>>,
    /// Names of the records that the file declares, with their definitions and defaults.
    pub(super) records: Vec<(Term, Term)>,
    bigints: HashMap<BigInt, Term>,
    /// Key tuples of flat maps, and the original position of each key.
    map_keys: HashMap<Vec<Term>, (Term, Vec<usize>)>,
    pub(super) regions: Regions,
    pub(super) funs: Vec<&'static FunEntry>,
    /// The string table, which the code refers to.
    pub(super) strings: Box<[u8]>,
    pub(super) md5: [u8; 16],
    /// One slot for each function.
    pub(super) nifs: Box<[NifSlot]>,
    pub(super) counters: Counters,
    pub(super) lines_can_break: bool,
    pub(super) marks: Marks,
}

impl Names<'_> {
    /// Returns the term of a word that the lowering hands back. None if no such term was handed
    /// out.
    fn given(&self, word: u64) -> Option<Term> {
        let literals = || self.literals.iter().map(|t| t.raw()).collect();
        let is = |t: &Term| t.raw() == word;
        let known = word & TAG_MASK == TAG_IMMED
            || self.known_literals.get_or_init(literals).contains(&word)
            || self.records.iter().any(|(name, made)| is(name) || is(made))
            || self.bigints.values().any(is)
            || self.map_keys.values().any(|(tuple, _)| is(tuple));
        // SAFETY: an immediate, or a term that this environment holds.
        known.then(|| unsafe { Term::from_raw(word) })
    }
    /// Number of functions that the file imports.
    pub(super) fn imports(&self) -> usize {
        self.file.imports.len()
    }
    /// Returns a literal of that value.
    pub(super) fn big(&mut self, value: &BigInt) -> Term {
        if let Some(&t) = self.bigints.get(value) {
            return t;
        }
        let digits = digits(&value.magnitude);
        // In a region of its own: such literals outside the literal chunk are rare.
        let mut b = self.regions.builder(digits.len() + 1);
        let t = b.big(value.negative, &digits);
        self.regions.all.add(b.finish());
        self.bigints.insert(value.clone(), t);
        t
    }
    /// See [`Env::map_keys`]. Returns the key tuple, and for each key the index of the value that
    /// is put, or the value that the map had.
    pub(super) fn keys_of(
        &mut self,
        map: u64,
        keys: &[u64],
    ) -> Option<(Term, Vec<Result<usize, Term>>)> {
        let (old_keys, old_values) = self.given(map)?.as_flatmap()?;
        let olds = old_values.iter().map(|&v| Err(v));
        let mut all: Vec<(Term, Result<usize, Term>)> =
            old_keys.iter().copied().zip(olds).collect();
        for (i, &w) in keys.iter().enumerate() {
            let (k, v) = (self.given(w)?, Ok(i));
            match all.iter_mut().find(|p| eq_exact(p.0, k)) {
                // The last of several values of a key counts.
                Some(pair) => pair.1 = v,
                None => all.push((k, v)),
            }
        }
        if all.len() > FLATMAP_LIMIT {
            return None;
        }
        // A map from each key to its index in `all` gives both the tuple and the order.
        let names: Vec<Term> = all.iter().map(|p| p.0).collect();
        if !self.map_keys.contains_key(&names) {
            let places = (0..).map(Term::small);
            let words: usize = names.iter().map(|&k| copy::size_of(k)).sum();
            let mut b = self.regions.builder(words + 2 * names.len() + 4);
            // Copies of the keys: a region refers to nothing outside.
            let keys = names.iter().map(|&k| copy::copy(k, &mut b));
            let pairs: Vec<(Term, Term)> = keys.zip(places).collect();
            let made = map::from_pairs_unique(&mut b, &pairs);
            let known = made.and_then(|m| {
                let places = m.as_flatmap()?.1.iter();
                let places = places.map(|p| p.small_value() as usize).collect();
                Some((map::tuple_keys(m)?, places))
            });
            self.regions.all.add(b.finish());
            self.map_keys.insert(names.clone(), known?);
        }
        let (tuple, places) = self.map_keys.get(&names)?;
        Some((*tuple, places.iter().map(|&i| all[i].1).collect()))
    }
    /// Decodes terms in the external format, as literals of this version.
    pub(super) fn decoded(&mut self, all: &[&[u8]]) -> Result<Vec<Term>, LoadFailure> {
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let mut heap = Heap::empty();
        let terms: Result<Vec<Term>, _> = (0..)
            .zip(all)
            .map(
                |(i, b)| match etf::decode(b, &mut heap, &CodeHooks, etf::Options::default()) {
                    Ok((t, _)) => Ok(t),
                    Err(e) => Err(LoadFailure::of(e, LoadFailure::Literal(i))),
                },
            )
            .collect();
        let out = terms.map(|made| self.regions.copies(&made));
        out.iter().flatten().for_each(|t| atom::keep(*t));
        // SAFETY: the region, if there is one, holds copies with counts of their own.
        unsafe { purlin_term::gc::destroy(&mut heap) };
        out
    }
}

impl Env for Names<'_> {
    fn atom(&mut self, number: u32) -> u64 {
        self.atoms
            .get((number as usize).wrapping_sub(1))
            .map_or(NIL.raw(), |t| t.raw())
    }
    fn literal(&mut self, index: u32) -> u64 {
        self.literals
            .get(index as usize)
            .map_or(NIL.raw(), |t| t.raw())
    }
    fn bigint(&mut self, value: &BigInt) -> u64 {
        self.big(value).raw()
    }
    fn map_keys(&mut self, map: u64, keys: &[u64]) -> Option<(u64, Vec<MapValue>)> {
        let (tuple, values) = self.keys_of(map, keys)?;
        let values = values.into_iter().map(|v| match v {
            Ok(put) => MapValue::Put(put),
            Err(old) => MapValue::Old(old.raw()),
        });
        Some((tuple.raw(), values.collect()))
    }
    fn record(&mut self, name: u32) -> Option<u64> {
        let name = self.atom(name);
        let known = self.records.iter().find(|r| r.0.raw() == name)?;
        Some(known.1.raw())
    }
    fn pair_of_atoms(&mut self, term: u64) -> Option<(u64, u64)> {
        match *self.given(term)?.as_tuple()? {
            [a, b] if a.is_atom() && b.is_atom() => Some((a.raw(), b.raw())),
            _ => None,
        }
    }
    fn import(&mut self, index: u32) -> Callee {
        let i = self.file.imports[index as usize];
        let atom = |n: u32| self.atoms[n as usize - 1];
        let (m, f) = (atom(i.module), atom(i.function));
        let e = called(m, f, i.arity);
        // Dirty natives are called only through the stub of their export, which switches the
        // thread.
        let found = native(m, f, i.arity);
        let native = found
            .filter(|(_, b)| matches!(b.kind, Kind::Guard | Kind::Plain))
            .map(|(_, b)| b.entry() as usize as u64);
        Callee {
            export: e as *const _ as u64,
            built_in: found.is_some(),
            native,
            guard: native.unwrap_or(missing as *const () as u64),
        }
    }
    fn lambda(&mut self, index: u32) -> u64 {
        self.funs[index as usize] as *const FunEntry as u64
    }
    fn own_native(&mut self, function: u32, arity: u32) -> Option<u64> {
        let (m, f) = (self.atoms[0], self.atoms[function as usize - 1]);
        is_builtin(m, f, arity).then(|| called(m, f, arity) as *const _ as u64)
    }
    fn strings(&mut self) -> u64 {
        self.strings.as_ptr() as u64
    }
    fn nif_slot(&mut self, index: usize) -> u64 {
        &raw const self.nifs[index] as u64
    }
    fn function_counter(&mut self, index: usize) -> Option<u64> {
        let counters = Some(&self.counters).filter(|c| c.of_functions());
        counters.and_then(|c| c.address(index))
    }
    fn line_counter(&mut self, number: usize) -> Option<u64> {
        let counters = Some(&self.counters).filter(|c| c.of_lines());
        counters.and_then(|c| c.address(number))
    }
    fn lines_can_break(&mut self) -> bool {
        self.lines_can_break
    }
    fn mark(&mut self, index: usize) -> Option<u64> {
        self.marks.of(index)
    }
    fn atoms_of(&mut self, term: u64) -> Vec<String> {
        let atoms = self.given(term).into_iter().flat_map(|t| t.list_iter());
        atoms
            .filter(|a| a.is_atom())
            .map(|a| atom::name(a).to_owned())
            .collect()
    }
}

/// The regions of a version's literals.
pub(super) struct Regions {
    /// Whether they can be released, see `literal_areas.rs`.
    counted: bool,
    pub(super) all: Literals,
}

impl Regions {
    fn builder(&self, words: usize) -> Builder {
        match self.counted {
            true => Builder::counted(words),
            false => Builder::new(words),
        }
    }
    /// Copies these terms into a region of their own.
    fn copies(&mut self, terms: &[Term]) -> Vec<Term> {
        let words: usize = terms.iter().map(|&t| copy::size_of(t)).sum();
        let mut b = self.builder(words);
        let out = terms.iter().map(|&t| copy::copy(t, &mut b)).collect();
        self.all.add(b.finish());
        out
    }
}

/// Returns the digits of an integer whose lowest byte comes first.
fn digits(magnitude: &[u8]) -> Vec<u64> {
    let chunks = magnitude.chunks(8);
    chunks
        .map(|c| c.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b)))
        .collect()
}

/// Builds a constant of a table of the file.
pub fn constant<A: Alloc>(c: &FieldDefault, atoms: &[Term], literals: &[Term], to: &mut A) -> Term {
    match c {
        FieldDefault::Nil => NIL,
        FieldDefault::Atom(n) => atoms[*n as usize - 1],
        FieldDefault::Int {
            negative,
            magnitude,
        } => to.big(*negative, &digits(magnitude)),
        FieldDefault::Literal(i) => literals[*i as usize],
    }
}

/// Builds the definitions and defaults of the records that the file declares: see `Env::record`.
fn records(
    file: &BeamFile,
    atoms: &[Term],
    literals: &[Term],
    heap: &mut Heap,
) -> Result<Vec<Term>, LoadFailure> {
    let atom = |n: u32| atoms[n as usize - 1];
    let mut made = Vec::with_capacity(file.records.len());
    for r in &file.records {
        let keys: Vec<Term> = r.fields.iter().map(|f| atom(f.0)).collect();
        let mut defaults = Vec::with_capacity(keys.len());
        for (_, default) in &r.fields {
            let Some(default) = default else {
                defaults.push(NIL);
                continue;
            };
            let value = constant(default, atoms, literals, heap);
            defaults.push(heap.cons(value, NIL));
        }
        let d = definition::define(heap, atoms[0], atom(r.name), r.exported, &keys);
        let d = d.ok_or(LoadFailure::Records)?;
        let defaults = heap.tuple(&defaults);
        made.push(heap.tuple(&[d, defaults]));
    }
    Ok(made)
}

/// Decodes the literals into one region, followed by the definitions of the file's records.
fn literals(
    file: &BeamFile,
    atoms: &[Term],
    regions: &mut Regions,
) -> Result<Vec<Term>, LoadFailure> {
    if file.literal_count() == 0 && file.records.is_empty() {
        return Ok(Vec::new());
    }
    // First into a heap, since a region is sized before it is filled.
    let mut heap = Heap::empty();
    let out = decoded(file, atoms, &mut heap).map(|made| regions.copies(&made));
    // Code holds them in words of its own.
    out.iter().flatten().for_each(|t| atom::keep(*t));
    // SAFETY: the region, if there is one, holds copies with counts of their own.
    unsafe { purlin_term::gc::destroy(&mut heap) };
    out
}

/// Builds the literals and the definitions of the file's records on that heap.
fn decoded(file: &BeamFile, atoms: &[Term], heap: &mut Heap) -> Result<Vec<Term>, LoadFailure> {
    let n = file.literal_count();
    let mut made = Vec::with_capacity(n);
    for i in 0..n as u32 {
        let bytes = file.literal(i).unwrap_or_default();
        match etf::decode(bytes, heap, &CodeHooks, etf::Options::default()) {
            Ok((t, _)) => made.push(t),
            Err(e) => return Err(LoadFailure::of(e, LoadFailure::Literal(i))),
        }
    }
    let declared = records(file, atoms, &made, heap)?;
    made.extend(declared);
    Ok(made)
}

/// Properties of the version that is being loaded.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Whether a version of the module was loaded before: then the literals are counted.
    pub(super) loaded_before: bool,
    /// Whether its lines can have breakpoints.
    pub(super) lines_can_break: bool,
}

/// Builds the environment for the code of a file with `functions` functions: regions of its
/// literals, its funs and its strings.
pub(super) fn names<'a>(
    file: &'a BeamFile<'a>,
    atoms: Vec<Term>,
    md5: [u8; 16],
    functions: usize,
    counters: Counters,
    how: How,
) -> Result<Names<'a>, LoadFailure> {
    let name = atoms.first().copied().ok_or(LoadFailure::Atom)?;
    let mut regions = Regions {
        counted: how.loaded_before,
        all: Literals::default(),
    };
    let mut lits = literals(file, &atoms, &mut regions)?;
    let made = lits.split_off(file.literal_count());
    let records: Vec<(Term, Term)> = file
        .records
        .iter()
        .map(|r| atoms[r.name as usize - 1])
        .zip(made)
        .collect();
    let funs: Vec<&'static FunEntry> = file
        .lambdas
        .iter()
        .map(|l| {
            let f = atoms[l.function as usize - 1];
            let arity = l.arity.saturating_sub(l.num_free) as u8;
            let fun = FunName {
                module: name,
                old_uniq: i64::from(l.old_uniq),
                old_index: l.index,
                uniq: md5,
                index: l.index,
                arity,
                num_free: l.num_free as u8,
            };
            fun_entry(fun, f)
        })
        .collect();
    Ok(Names {
        file,
        atoms,
        literals: lits,
        records,
        known_literals: OnceCell::new(),
        bigints: HashMap::new(),
        map_keys: HashMap::new(),
        regions,
        funs,
        strings: file.strings().into(),
        md5,
        nifs: (0..functions).map(|_| NifSlot::new()).collect(),
        counters,
        lines_can_break: how.lines_can_break,
        marks: Marks::new(functions),
    })
}

/// Makes the atoms that a file names.
pub(super) fn atoms_of(file: &BeamFile) -> Result<Vec<Term>, LoadFailure> {
    let atoms = file.atoms.iter().map(|a| atom::try_intern_to_stay(a));
    atoms.collect::<Result<_, _>>().map_err(|e| match e {
        AtomError::TooLong => LoadFailure::Atom,
        AtomError::TableFull => LoadFailure::AtomTableFull,
    })
}

/// Generates the code of a file. Also returns the offsets of its exported functions, in the order
/// of the export table.
pub(super) fn lowered(
    file: &BeamFile,
    code: &GenericCode,
    env: &mut dyn Env,
) -> Result<(Lowered, Vec<u32>), LoadFailure> {
    let made = lower(file, code, env)?;
    let exports = file.exports.iter();
    let exports = exports.map(|e| made.labels[e.label as usize]).collect();
    Ok((made, exports))
}
