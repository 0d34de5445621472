//! Views of native records and their definitions. `definition.rs` makes them.
//!
//! ```text
//! record       hdr(1+n)    definition  values…
//! definition   a tuple     order  hash  module  name  exported  keys…
//! ```
//! Keys and values are in the order of the declaration. `order` is a tuple of the keys' positions,
//! from 0, in order of the atoms' numbers: where programs see an order of fields, it mostly is
//! that. `hash` is the portable hash of the tuple `{Module, Name, Exported, Key…}`. No program ever
//! holds a definition by itself: only records lead to one.

use crate::word::{Subtag, Term, header_arity, header_subtag};

/// Words of a record besides its values.
pub(crate) const RECORD_HEAD_WORDS: usize = 2;
/// Elements of a definition besides its keys.
pub(crate) const DEFINITION_HEAD: usize = 5;

/// The definition that a record is an instance of.
#[derive(Clone, Copy)]
pub struct Definition<'a> {
    term: Term,
    parts: &'a [Term],
}

impl<'a> Definition<'a> {
    /// A view of a definition; None if the term is none.
    #[inline]
    pub fn of(term: Term) -> Option<Definition<'a>> {
        let parts = term.as_tuple()?;
        (parts.len() >= DEFINITION_HEAD).then_some(Definition { term, parts })
    }
    /// The definition as a term.
    #[inline]
    pub fn term(self) -> Term {
        self.term
    }
    /// Positions of the keys in order of the atoms' numbers.
    pub fn order(self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + 'a {
        let places = self.parts[0].as_tuple().unwrap_or_default();
        places.iter().map(|p| p.small_value() as usize)
    }
    /// The portable hash of all of it.
    #[inline]
    pub(crate) fn hash(self) -> u32 {
        self.parts[1].small_value() as u32
    }
    /// The module that declares it.
    #[inline]
    pub fn module(self) -> Term {
        self.parts[2]
    }
    /// Its name.
    #[inline]
    pub fn name(self) -> Term {
        self.parts[3]
    }
    /// Whether other modules may access its records.
    #[inline]
    pub fn is_exported(self) -> bool {
        self.parts[4] == crate::am::TRUE
    }
    /// The names of its fields, in the order of the declaration.
    #[inline]
    pub fn keys(self) -> &'a [Term] {
        &self.parts[DEFINITION_HEAD..]
    }
    /// Module, name, whether it is exported, and the keys.
    pub(crate) fn identity(self) -> &'a [Term] {
        &self.parts[2..]
    }
    /// The position of a key; the search begins at `from`.
    #[inline]
    pub fn place(self, key: Term, from: usize) -> Option<usize> {
        let keys = self.keys();
        let from = from.min(keys.len());
        let at = |range: &[Term]| range.iter().position(|&k| k == key);
        at(&keys[from..])
            .map(|i| from + i)
            .or_else(|| at(&keys[..from]))
    }
    /// The key that stock reports, among those of `keys` that it does not have.
    pub fn least_unknown(self, keys: impl Iterator<Item = Term>) -> Option<Term> {
        keys.filter(|&k| self.place(k, 0).is_none())
            .min_by_key(|k| k.raw())
    }
}

/// A record.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// The definition that it is an instance of.
    pub definition: Definition<'a>,
    /// The values of its fields, in the order of the declaration.
    pub values: &'a [Term],
}

impl<'a> Record<'a> {
    /// The value of a field.
    #[inline]
    pub fn get(self, key: Term) -> Option<Term> {
        let at = self.definition.place(key, 0)?;
        self.values.get(at).copied()
    }
    /// Whether it has that name and module.
    #[inline]
    pub fn is(self, module: Term, name: Term) -> bool {
        self.definition.module() == module && self.definition.name() == name
    }
    /// Its values in order of the numbers of their keys' atoms.
    pub fn ordered(self) -> impl DoubleEndedIterator<Item = (Term, Term)> + 'a {
        let (keys, values) = (self.definition.keys(), self.values);
        self.definition.order().map(move |i| (keys[i], values[i]))
    }
}

impl Term {
    /// View of a native record; None for anything else.
    #[inline]
    pub fn as_record<'a>(self) -> Option<Record<'a>> {
        let h = self.boxed_header()?;
        if header_subtag(h) as u8 != Subtag::Record as u8 {
            return None;
        }
        // SAFETY: layout of records above; a term in hand is well formed.
        let (definition, values) = unsafe {
            let p = self.ptr();
            let n = header_arity(h) - 1;
            (
                *p.add(1),
                std::slice::from_raw_parts(p.add(RECORD_HEAD_WORDS), n),
            )
        };
        Some(Record {
            definition: Definition::of(definition)?,
            values,
        })
    }
}
