//! Images of modules: the output of the loader, kept in a file, so that a program built into an
//! executable starts without loading its modules anew.
//!
//! `purlin build` makes images ([`make`]) together with the runtime that goes into the executable;
//! the executable says where they are ([`set`]). An image is trusted in the same way as the program
//! itself. It belongs to one module file, whose bytes it was made from, and to one release. If
//! anything does not match, the module is loaded in the usual way.
//!
//! # How
//! * **Atoms are not looked up.** All atoms that the modules name are made first, in one order
//!   ([`Atoms`]). So they get the same numbers as when the image was made, and words of code and
//!   orders by atom number stay valid.
//! * **Addresses** of exports, natives, funs, literals and so on differ in each run. To find them,
//!   the code is generated twice, with an environment that hands out artificial addresses,
//!   different each time. The places that differ between the two are those that hold addresses.
//!   `make` checks that the first code becomes the second when these places are filled with the
//!   second's addresses.
//!
//! # Format
//! Numbers are little-endian and have four bytes unless stated otherwise; code is aligned to eight
//! bytes. The order of the parts is that of [`Image::parse`].

use super::coverage::Counters;
use super::load::{LoadFailure, Names, atoms_of, lowered, names};
use super::{coverage, debugger, perf};
use crate::options::Coverage;
use purlin_isa::types::{Fact, Type};
use purlin_loader::lower::{Callee, Env, Lowered, LoweredFunction, MapValue, lower};
use purlin_loader::{BeamFile, BigInt, Fault, GenericCode, LoadError};
use purlin_native::exports::called;
use purlin_term::etf;
use purlin_term::word::{TAG_IMMED, TAG_MASK};
use purlin_term::{Term, atom};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The kind of an address in the code. The number that goes with it identifies the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum Kind {
    /// A literal of the file.
    Literal,
    /// A term that the lowering asked for, kept with the image.
    Extra,
    /// The export of an import.
    Export,
    /// The native of an import, or its stand-in.
    Native,
    Fun,
    /// An offset in bytes into the string table.
    Strings,
    /// The export of a function of the module that is a native.
    Own,
    NifSlot,
}

const KINDS: [Kind; 8] = [
    Kind::Literal,
    Kind::Extra,
    Kind::Export,
    Kind::Native,
    Kind::Fun,
    Kind::Strings,
    Kind::Own,
    Kind::NifSlot,
];

/// Bits 32 to 47 of artificial addresses, for the first and the second pass; the kind is added.
const TOPS: [u64; 2] = [0x5100, 0x6200];
/// Shift of the number, which stands above the tag bits of a term.
const NUMBER_SHIFT: u32 = 4;
const MARK: u32 = 0x316d_6950;
const NONE: u32 = u32::MAX;

/// An environment that hands out artificial addresses, each of which encodes its target.
struct Recorder<'e, 'f> {
    names: &'e mut Names<'f>,
    top: u64,
    /// Terms that were handed out, by the words that stand for them.
    given: HashMap<u64, Term>,
    extras: Vec<Term>,
    own: Vec<(u32, u32)>,
}

impl Recorder<'_, '_> {
    fn address(&self, kind: Kind, number: usize) -> u64 {
        let top = (self.top + kind as u64) << 32;
        top | (number as u64 & 0x0FFF_FFFF) << NUMBER_SHIFT
    }
    /// Returns the word that stands for a term: its own word if it is an immediate.
    fn term(&mut self, kind: Kind, number: usize, t: Term) -> u64 {
        let tag = t.raw() & TAG_MASK;
        if tag == TAG_IMMED {
            return t.raw();
        }
        let word = self.address(kind, number) | tag;
        self.given.insert(word, t);
        word
    }
    fn extra(&mut self, t: Term) -> u64 {
        let known = self.extras.iter().position(|e| e.raw() == t.raw());
        let at = known.unwrap_or(self.extras.len());
        if known.is_none() {
            self.extras.push(t);
        }
        self.term(Kind::Extra, at, t)
    }
    /// Returns the real word of a term that was handed out.
    fn word(&self, word: u64) -> u64 {
        self.given.get(&word).map_or(word, |t| t.raw())
    }
}

impl Env for Recorder<'_, '_> {
    fn atom(&mut self, number: u32) -> u64 {
        self.names.atom(number)
    }
    fn literal(&mut self, index: u32) -> u64 {
        match self.names.literals.get(index as usize) {
            Some(&t) => self.term(Kind::Literal, index as usize, t),
            None => self.names.literal(index),
        }
    }
    fn bigint(&mut self, value: &BigInt) -> u64 {
        let t = self.names.big(value);
        self.extra(t)
    }
    fn map_keys(&mut self, map: u64, keys: &[u64]) -> Option<(u64, Vec<MapValue>)> {
        let keys: Vec<u64> = keys.iter().map(|&k| self.word(k)).collect();
        let (tuple, values) = self.names.keys_of(self.word(map), &keys)?;
        let values = values.into_iter().map(|v| match v {
            Ok(put) => MapValue::Put(put),
            Err(old) => MapValue::Old(self.extra(old)),
        });
        let values = values.collect();
        Some((self.extra(tuple), values))
    }
    // Files that declare records have no image.
    fn record(&mut self, _: u32) -> Option<u64> {
        None
    }
    fn pair_of_atoms(&mut self, term: u64) -> Option<(u64, u64)> {
        self.names.pair_of_atoms(self.word(term))
    }
    fn import(&mut self, index: u32) -> Callee {
        let c = self.names.import(index);
        let native = self.address(Kind::Native, index as usize);
        Callee {
            export: self.address(Kind::Export, index as usize),
            built_in: c.built_in,
            native: c.native.map(|_| native),
            guard: native,
        }
    }
    fn lambda(&mut self, index: u32) -> u64 {
        self.address(Kind::Fun, index as usize)
    }
    fn own_native(&mut self, function: u32, arity: u32) -> Option<u64> {
        self.names.own_native(function, arity)?;
        self.own.push((function, arity));
        Some(self.address(Kind::Own, self.own.len() - 1))
    }
    fn strings(&mut self) -> u64 {
        self.address(Kind::Strings, 0)
    }
    fn nif_slot(&mut self, index: usize) -> u64 {
        self.address(Kind::NifSlot, index)
    }
    fn function_counter(&mut self, _: usize) -> Option<u64> {
        None
    }
    fn line_counter(&mut self, _: usize) -> Option<u64> {
        None
    }
    fn mark(&mut self, _: usize) -> Option<u64> {
        None
    }
    fn atoms_of(&mut self, term: u64) -> Vec<String> {
        self.names.atoms_of(self.word(term))
    }
}

/// A place in code that holds an address.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its first 16-bit unit; it has three.
    unit: u32,
    kind: Kind,
    number: u32,
}

fn unit(words: &[u64], at: usize) -> u64 {
    words[at / 4] >> (at % 4 * 16) & 0xFFFF
}

/// Stores 48 bits at a unit.
fn put(words: &mut [u64], at: usize, value: u64) {
    for k in 0..3 {
        let (w, shift) = ((at + k) / 4, (at + k) % 4 * 16);
        words[w] = words[w] & !(0xFFFF << shift) | (value >> (16 * k) & 0xFFFF) << shift;
    }
}

/// Compares two codes generated with different artificial addresses, and returns the places that
/// hold addresses. `None` if they differ in anything else.
fn places(a: &[u64], b: &[u64]) -> Option<Vec<Place>> {
    if a.len() != b.len() {
        return None;
    }
    let mut out = Vec::new();
    let mut check = a.to_vec();
    for top in (0..a.len() * 4).filter(|&u| unit(a, u) != unit(b, u)) {
        let kind = *KINDS.get(unit(a, top).checked_sub(TOPS[0])? as usize)?;
        let start = top.checked_sub(2)?;
        let low = unit(a, start) | unit(a, start + 1) << 16;
        let number = match kind {
            Kind::Strings => low,
            _ => low >> NUMBER_SHIFT,
        };
        put(&mut check, start, (TOPS[1] + kind as u64) << 32 | low);
        out.push(Place {
            unit: start as u32,
            kind,
            number: number as u32,
        });
    }
    (check == b).then_some(out)
}

/// Writes a sequence of numbers.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn n(&mut self, n: u32) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }
    fn count(&mut self, n: usize) {
        self.n(n as u32);
    }
    fn long(&mut self, n: u64) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }
    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }
    fn n(&mut self) -> Option<u32> {
        let b = self.take(4)?;
        Some(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
    fn long(&mut self) -> Option<u64> {
        let (low, high) = (self.n()?, self.n()?);
        Some(u64::from(low) | u64::from(high) << 32)
    }
    /// Reads a sequence that is preceded by its length.
    fn all<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let n = self.n()? as usize;
        // No element takes less than a byte.
        let mut out = Vec::with_capacity(n.min(self.0.len()));
        for _ in 0..n {
            out.push(one(self)?);
        }
        Some(out)
    }
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.n()? as usize;
        self.take(n)
    }
}

/// Makes the image of a module file. Returns `None` if it cannot have one. [`Atoms::make`] must
/// have been called with the atoms of the file.
pub fn make(bytes: &[u8]) -> Option<Vec<u8>> {
    purlin_term::region::init();
    let file = BeamFile::parse(bytes).ok()?;
    let code = GenericCode::decode(&file).ok()?;
    if !file.records.is_empty() || Counters::new(&file, &code).mode != Coverage::None {
        return None;
    }
    let atoms = atoms_of(&file).ok()?;
    let md5 = file.md5();
    let n = code.functions.len();
    let mut env = names(&file, atoms, md5, n, Counters::none()).ok()?;
    let mut once = |top| {
        let mut r = Recorder {
            names: &mut env,
            top,
            given: HashMap::new(),
            extras: Vec::new(),
            own: Vec::new(),
        };
        let made = lower(&file, &code, &mut r).ok()?;
        Some((made, r.extras, r.own))
    };
    let (a, extras, own) = once(TOPS[0])?;
    let (b, others, _) = once(TOPS[1])?;
    let same = |x: &[Term], y: &[Term]| x.iter().map(|t| t.raw()).eq(y.iter().map(|t| t.raw()));
    if !same(&extras, &others) || !a.debug_lines.is_empty() || !a.counted.is_empty() {
        return None;
    }
    let places = places(&a.words, &b.words)?;
    let mut w = Writer::default();
    w.n(MARK);
    w.count(a.words.len());
    a.words.iter().for_each(|&x| w.long(x));
    w.0.extend_from_slice(&md5);
    w.count(env.atoms.len());
    env.atoms.iter().for_each(|t| w.n(t.atom_index()));
    w.count(places.len());
    for p in &places {
        w.n(p.unit);
        w.n(p.kind as u32);
        w.n(p.number);
    }
    w.count(own.len());
    for (function, arity) in own {
        w.n(function);
        w.n(arity);
    }
    w.count(extras.len());
    let options = etf::encode::Options {
        deterministic: true,
        ..Default::default()
    };
    for t in extras {
        w.bytes(&etf::encode(t, options));
    }
    w.count(a.functions.len());
    for f in &a.functions {
        w.long(f.name);
        for n in [f.arity, f.start, f.entry, f.end, u32::from(f.nif)] {
            w.n(n);
        }
    }
    w.count(file.exports.len());
    for e in &file.exports {
        w.n(*a.labels.get(e.label as usize)?);
    }
    w.count(a.lines.len());
    for &(at, item) in &a.lines {
        w.n(at);
        w.n(item);
    }
    w.count(a.facts.len());
    for f in &a.facts {
        w.n(f.at);
        w.n(u32::from(f.register) | u32::from(f.of) << 16);
    }
    w.count(a.types.len());
    for t in &a.types {
        w.n(u32::from(t.kinds) | u32::from(t.unit) << 16);
        w.n(u32::from(t.least.is_some()) | u32::from(t.most.is_some()) << 1);
        w.long(t.least.unwrap_or(0) as u64);
        w.long(t.most.unwrap_or(0) as u64);
    }
    w.n(a.on_load.unwrap_or(NONE));
    let (made, exports) = lowered(&file, &code, &mut env).ok()?;
    is_right(&w.0, &made, &exports, &mut env).then_some(w.0)
}

/// Whether an image reproduces this code and these exports for the names that they were made for.
fn is_right(image: &[u8], made: &Lowered, exports: &[u32], env: &mut Names) -> bool {
    let Some(image) = Image::parse(image) else {
        return false;
    };
    let Ok((mut again, at)) = image.lowered(env) else {
        return false;
    };
    let mut words = made.words.clone();
    // These terms were made for each of the two.
    let extras = image.places.iter().filter(|p| p.kind == Kind::Extra);
    for p in extras {
        for words in [&mut words, &mut again.words] {
            put(words, p.unit as usize, 0);
        }
    }
    again.words == words
        && at == exports
        && again.functions == made.functions
        && again.lines == made.lines
        && again.facts == made.facts
        && again.types == made.types
        && again.on_load == made.on_load
}

/// The image of a module.
pub struct Image<'a> {
    words: &'a [u8],
    md5: [u8; 16],
    atoms: Vec<u32>,
    places: Vec<Place>,
    own: Vec<(u32, u32)>,
    extras: Vec<&'a [u8]>,
    functions: Vec<LoweredFunction>,
    exports: Vec<u32>,
    lines: Vec<(u32, u32)>,
    facts: Vec<Fact>,
    types: Vec<Type>,
    on_load: Option<u32>,
}

impl<'a> Image<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Image<'a>> {
        let mut r = Reader(bytes);
        if r.n()? != MARK {
            return None;
        }
        let n = r.n()? as usize;
        Some(Image {
            words: r.take(n.checked_mul(8)?)?,
            md5: r.take(16)?.try_into().ok()?,
            atoms: r.all(Reader::n)?,
            places: r.all(|r| {
                Some(Place {
                    unit: r.n().filter(|&u| (u as usize + 3).div_ceil(4) <= n)?,
                    kind: *KINDS.get(r.n()? as usize)?,
                    number: r.n()?,
                })
            })?,
            own: r.all(|r| Some((r.n()?, r.n()?)))?,
            extras: r.all(Reader::bytes)?,
            functions: r.all(|r| {
                Some(LoweredFunction {
                    name: r.long()?,
                    arity: r.n()?,
                    start: r.n()?,
                    entry: r.n()?,
                    end: r.n()?,
                    nif: r.n()? != 0,
                })
            })?,
            exports: r.all(Reader::n)?,
            lines: r.all(|r| Some((r.n()?, r.n()?)))?,
            facts: r.all(|r| {
                let (at, of) = (r.n()?, r.n()?);
                Some(Fact {
                    at,
                    register: of as u16,
                    of: (of >> 16) as u16,
                })
            })?,
            types: r.all(|r| {
                let (kinds, has) = (r.n()?, r.n()?);
                let (least, most) = (r.long()? as i64, r.long()? as i64);
                Some(Type {
                    kinds: kinds as u16,
                    least: (has & 1 != 0).then_some(least),
                    most: (has & 2 != 0).then_some(most),
                    unit: (kinds >> 16) as u16,
                })
            })?,
            on_load: r.n().map(|n| (n != NONE).then_some(n))?,
        })
    }
    /// Whether its tables are as long as those of the file and its atoms exist. An image of another
    /// file, or a damaged one, does not fit.
    pub(super) fn fits(&self, file: &BeamFile) -> bool {
        self.atoms.len() == file.atoms.len()
            && self.exports.len() == file.exports.len()
            && self.atoms.iter().all(|&n| n < atom::count())
    }
    pub(super) fn functions(&self) -> usize {
        self.functions.len()
    }
    pub(super) fn md5(&self) -> [u8; 16] {
        self.md5
    }
    pub(super) fn atoms(&self) -> Vec<Term> {
        self.atoms.iter().map(|&n| Term::atom(n)).collect()
    }
    /// Returns the code, relocated for the names of this process, and the offsets of exported
    /// functions.
    pub(super) fn lowered(&self, env: &mut Names) -> Result<(Lowered, Vec<u32>), LoadFailure> {
        let mut words: Vec<u64> = Vec::with_capacity(self.words.len() / 8);
        let chunks = self.words.chunks_exact(8);
        words.extend(chunks.map(|c| u64::from_le_bytes(c.try_into().unwrap_or_default())));
        let extras = env.decoded(&self.extras)?;
        let mut imports: Vec<Option<Callee>> = vec![None; env.imports()];
        let damaged = || LoadFailure::File(LoadError::from(Fault::Encoding));
        for p in &self.places {
            let i = p.number as usize;
            let mut import = || {
                let known = imports.get_mut(i)?;
                Some(*known.get_or_insert_with(|| env.import(p.number)))
            };
            let value = match p.kind {
                Kind::Literal => env.literals.get(i).map(|t| t.raw()),
                Kind::Extra => extras.get(i).map(|t| t.raw()),
                Kind::Export => import().map(|c| c.export),
                Kind::Native => import().map(|c| c.guard),
                Kind::Fun => env.funs.get(i).map(|&f| std::ptr::from_ref(f) as u64),
                Kind::Strings => {
                    (i <= env.strings.len()).then(|| env.strings.as_ptr() as u64 + i as u64)
                }
                Kind::Own => self.own.get(i).and_then(|&(function, arity)| {
                    let f = env.atoms.get((function as usize).checked_sub(1)?)?;
                    Some(called(env.atoms[0], *f, arity) as *const _ as u64)
                }),
                Kind::NifSlot => env.nifs.get(i).map(|n| std::ptr::from_ref(n) as u64),
            };
            let value = value.filter(|v| v >> 48 == 0).ok_or_else(damaged)?;
            put(&mut words, p.unit as usize, value);
        }
        let made = Lowered {
            words,
            functions: self.functions.clone(),
            lines: self.lines.clone(),
            facts: self.facts.clone(),
            types: self.types.clone(),
            on_load: self.on_load,
            ..Lowered::default()
        };
        Ok((made, self.exports.clone()))
    }
}

/// The atoms of all modules that have images.
pub struct Atoms;

impl Atoms {
    /// Returns the names of the atoms of these files, in their order.
    pub fn named<'a>(files: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
        let mut known = std::collections::HashSet::new();
        let mut out = Vec::new();
        for f in files.filter_map(|f| BeamFile::parse(f).ok()) {
            for a in &f.atoms {
                if known.insert(a.to_string()) {
                    out.push(a.to_string());
                }
            }
        }
        out
    }
    /// Makes these atoms, as the first of an emulator of that release, and returns them as bytes.
    /// Must be called before there are any terms.
    pub fn make(release: u32, names: &[String]) -> Option<Vec<u8>> {
        purlin_term::release::settle(release);
        let mut w = Writer::default();
        w.n(release);
        w.count(names.len());
        for name in names {
            w.n(atom::try_intern(name).ok()?.atom_index());
            w.bytes(name.as_bytes());
        }
        Some(w.0)
    }
    /// Makes them again, and returns whether they got the same numbers.
    fn again(release: u32, bytes: &'static [u8]) -> Option<bool> {
        let mut r = Reader(bytes);
        if r.n()? != release {
            return Some(false);
        }
        for _ in 0..r.n()? {
            let index = r.n()?;
            let name = std::str::from_utf8(r.bytes()?).ok()?;
            if atom::try_intern_static(name).ok()?.atom_index() != index {
                return Some(false);
            }
        }
        Some(true)
    }
}

/// A module file and its image.
pub type Pair = (&'static [u8], &'static [u8]);

static IMAGES: OnceLock<Images> = OnceLock::new();

struct Images {
    atoms: &'static [u8],
    /// Files by their [`key`].
    files: HashMap<u64, Vec<Pair>>,
    fits: OnceLock<bool>,
}

/// Returns a hash of a few parts of the file.
fn key(bytes: &[u8]) -> u64 {
    let n = bytes.len();
    let parts = [n / 4, n / 2, n / 4 * 3, n.saturating_sub(16)];
    let part = |at: usize| {
        let part = bytes.get(at..at + 8).unwrap_or_default();
        part.try_into().map_or(0, u64::from_le_bytes)
    };
    let all = parts.into_iter().map(part);
    all.fold(n as u64, |h, p| (h ^ p).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Sets the images and the atoms that they depend on. Only the first call has an effect.
pub fn set(atoms: &'static [u8], pairs: impl Iterator<Item = Pair>) {
    let mut files: HashMap<u64, Vec<Pair>> = HashMap::new();
    for p in pairs {
        files.entry(key(p.0)).or_default().push(p);
    }
    let _ = IMAGES.set(Images {
        atoms,
        files,
        fits: OnceLock::new(),
    });
}

/// Makes the atoms, once the release is known and no atoms exist but those that its emulator begins
/// with.
pub fn begin(release: u32) {
    if let Some(i) = IMAGES.get() {
        let _ = i.fits.set(Atoms::again(release, i.atoms) == Some(true));
    }
}

/// Returns the image of a module file, if there is one that can be used.
pub(super) fn find(bytes: &[u8]) -> Option<Image<'static>> {
    let images = IMAGES.get()?;
    if !*images.fits.get()? {
        return None;
    }
    // Code with counters, line breakpoints or marks is generated anew.
    if coverage::mode() != Coverage::None || debugger::lines_can_break() || perf::on() {
        return None;
    }
    let all = images.files.get(&key(bytes))?;
    let (_, image) = all.iter().find(|p| p.0 == bytes)?;
    Image::parse(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_wherever_they_begin() {
        let address = |top: u64, kind: Kind, low: u64| (top + kind as u64) << 32 | low;
        for start in 0..8 {
            let fill = |top| {
                let mut words = [0x1234_5678_9ABC_DEF0_u64; 3];
                put(
                    &mut words,
                    start,
                    address(top, Kind::Fun, 7 << NUMBER_SHIFT),
                );
                words
            };
            let (a, b) = (fill(TOPS[0]), fill(TOPS[1]));
            let found = places(&a, &b).expect("differ there alone");
            assert_eq!(found.len(), 1, "{start}");
            let p = found[0];
            assert_eq!((p.unit, p.kind, p.number), (start as u32, Kind::Fun, 7));
            let mut other = b;
            other[2] ^= 1 << 60;
            assert!(places(&a, &other).is_none(), "{start}");
        }
        assert!(places(&[1], &[1, 2]).is_none());
    }

    const SAMPLE: &[u8] = include_bytes!("../../../loader/tests/data/sample.beam");

    /// An image may name atoms that do not exist, and its numbers may be out of range: the result
    /// is an error or code, never a panic.
    #[test]
    fn damaged_images_are_refused_or_read() {
        let sound = make(SAMPLE).expect("has an image");
        let file = BeamFile::parse(SAMPLE).expect("is sound");
        let code = Image::parse(&sound).expect("is sound").words.len();
        let mut read = 0;
        // The code itself is trusted.
        for at in (0..8).chain(8 + code..sound.len()) {
            for change in [1u8, 0x40, 0xFF] {
                let mut bytes = sound.clone();
                bytes[at] ^= change;
                let Some(image) = Image::parse(&bytes) else {
                    continue;
                };
                if !image.fits(&file) {
                    continue;
                }
                let n = image.functions().min(1000);
                let env = names(&file, image.atoms(), image.md5(), n, Counters::none());
                let mut env = env.expect("is sound");
                read += usize::from(image.lowered(&mut env).is_ok());
            }
        }
        assert!(read > 0);
        for cut in 0..sound.len() {
            assert!(Image::parse(&sound[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn atoms_are_made_in_their_order() {
        let names = Atoms::named([SAMPLE].into_iter());
        assert!(names.contains(&"sample".to_string()));
        let mut w = Writer::default();
        w.n(25);
        w.count(2);
        for name in ["image_test_a", "image_test_b"] {
            w.n(atom::intern(name).atom_index());
            w.bytes(name.as_bytes());
        }
        // Leaked, because an executable stays too.
        let again = |release, bytes: &[u8]| Atoms::again(release, bytes.to_vec().leak());
        assert_eq!(again(25, &w.0), Some(true));
        assert_eq!(again(26, &w.0), Some(false));
        assert_eq!(again(25, &w.0[..w.0.len() - 1]), None);
        w.0[8] ^= 1;
        assert_eq!(again(25, &w.0), Some(false));
    }
}
