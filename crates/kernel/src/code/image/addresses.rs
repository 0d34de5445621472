//! Addresses in code: how they are found, and what they are of.
//!
//! The code of a module is lowered twice, with environments ([`Recorder`]) that hand out artificial
//! addresses. Each of them encodes its kind and a number, below a top that differs between the two.
//! Comparing the results gives the places of all addresses ([`places`]).

use crate::code::names::Names;
use purlin_loader::BigInt;
use purlin_loader::lower::{Callee, Env, MapValue};
use purlin_term::Term;
use purlin_term::word::{TAG_IMMED, TAG_MASK};
use std::collections::HashMap;

/// The kind of an address in the code. The number that goes with it identifies the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Kind {
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

pub(super) const KINDS: [Kind; 8] = [
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
/// An environment that hands out artificial addresses, each of which encodes its target.
pub(super) struct Recorder<'e, 'f> {
    names: &'e mut Names<'f>,
    top: u64,
    /// Terms that were handed out, by the words that stand for them.
    given: HashMap<u64, Term>,
    pub(super) extras: Vec<Term>,
    pub(super) own: Vec<(u32, u32)>,
}

impl<'e, 'f> Recorder<'e, 'f> {
    /// Makes the environment of the first or second pass.
    pub(super) fn new(names: &'e mut Names<'f>, pass: usize) -> Recorder<'e, 'f> {
        Recorder {
            names,
            top: TOPS[pass],
            given: HashMap::new(),
            extras: Vec::new(),
            own: Vec::new(),
        }
    }
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
pub(super) struct Place {
    /// Its first 16-bit unit; it has three.
    pub(super) unit: u32,
    pub(super) kind: Kind,
    pub(super) number: u32,
}

fn unit(words: &[u64], at: usize) -> u64 {
    words[at / 4] >> (at % 4 * 16) & 0xFFFF
}

/// Stores 48 bits at a unit.
pub(super) fn put(words: &mut [u64], at: usize, value: u64) {
    for k in 0..3 {
        let (w, shift) = ((at + k) / 4, (at + k) % 4 * 16);
        words[w] = words[w] & !(0xFFFF << shift) | (value >> (16 * k) & 0xFFFF) << shift;
    }
}

/// Compares two codes generated with different artificial addresses, and returns the places that
/// hold addresses. `None` if they differ in anything else.
pub(super) fn places(a: &[u64], b: &[u64]) -> Option<Vec<Place>> {
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
}
