//! The bytes of an image.
//!
//! Numbers are little-endian and have four bytes unless stated otherwise; code is aligned to eight
//! bytes. The order of the parts is that of [`Image::parse`], and [`Image::to_bytes`] is its
//! inverse.

use super::addresses::{KINDS, Place};
use purlin_isa::types::{Fact, Type};
use purlin_loader::BeamFile;
use purlin_loader::lower::LoweredFunction;
use purlin_term::{Term, atom};

/// The first bytes of an image; the digit is the version of its format.
const MARK: u32 = u32::from_le_bytes(*b"Pim1");
/// In place of a number that is missing.
const NONE: u32 = u32::MAX;

/// Writes a sequence of numbers.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn n(&mut self, n: u32) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }
    pub(super) fn count(&mut self, n: usize) {
        self.n(n as u32);
    }
    fn long(&mut self, n: u64) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }
    pub(super) fn n(&mut self) -> Option<u32> {
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
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.n()? as usize;
        self.take(n)
    }
}

/// The image of a module.
pub struct Image<'a> {
    pub(super) words: &'a [u8],
    pub(super) md5: [u8; 16],
    pub(super) atoms: Vec<u32>,
    pub(super) places: Vec<Place>,
    pub(super) own: Vec<(u32, u32)>,
    pub(super) extras: Vec<&'a [u8]>,
    pub(super) functions: Vec<LoweredFunction>,
    pub(super) exports: Vec<u32>,
    pub(super) lines: Vec<(u32, u32)>,
    pub(super) facts: Vec<Fact>,
    pub(super) types: Vec<Type>,
    pub(super) on_load: Option<u32>,
}

impl<'a> Image<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Image<'a>> {
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
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.n(MARK);
        w.count(self.words.len() / 8);
        w.0.extend_from_slice(self.words);
        w.0.extend_from_slice(&self.md5);
        w.count(self.atoms.len());
        self.atoms.iter().for_each(|&n| w.n(n));
        w.count(self.places.len());
        for p in &self.places {
            w.n(p.unit);
            w.n(p.kind as u32);
            w.n(p.number);
        }
        w.count(self.own.len());
        for &(function, arity) in &self.own {
            w.n(function);
            w.n(arity);
        }
        w.count(self.extras.len());
        self.extras.iter().for_each(|t| w.bytes(t));
        w.count(self.functions.len());
        for f in &self.functions {
            w.long(f.name);
            for n in [f.arity, f.start, f.entry, f.end, u32::from(f.nif)] {
                w.n(n);
            }
        }
        w.count(self.exports.len());
        self.exports.iter().for_each(|&at| w.n(at));
        w.count(self.lines.len());
        for &(at, item) in &self.lines {
            w.n(at);
            w.n(item);
        }
        w.count(self.facts.len());
        for f in &self.facts {
            w.n(f.at);
            w.n(u32::from(f.register) | u32::from(f.of) << 16);
        }
        w.count(self.types.len());
        for t in &self.types {
            w.n(u32::from(t.kinds) | u32::from(t.unit) << 16);
            w.n(u32::from(t.least.is_some()) | u32::from(t.most.is_some()) << 1);
            w.long(t.least.unwrap_or(0) as u64);
            w.long(t.most.unwrap_or(0) as u64);
        }
        w.n(self.on_load.unwrap_or(NONE));
        w.0
    }
    /// Whether its tables are as long as those of the file and its atoms exist. An image of another
    /// file, or a damaged one, does not fit.
    pub(crate) fn fits(&self, file: &BeamFile) -> bool {
        self.atoms.len() == file.atoms.len()
            && self.exports.len() == file.exports.len()
            && self.atoms.iter().all(|&n| n < atom::made())
    }
    pub(crate) fn functions(&self) -> usize {
        self.functions.len()
    }
    pub(crate) fn md5(&self) -> [u8; 16] {
        self.md5
    }
    pub(crate) fn atoms(&self) -> Vec<Term> {
        self.atoms.iter().map(|&n| Term::atom(n)).collect()
    }
}
