//! The shapes of terms, by which a heap snapshot groups them: what a reader sees of a term without
//! what is in it.

use super::names;
use purlin_kernel::process::ext::Hashing;
use purlin_term::print::{Style, format_atom};
use purlin_term::word::Subtag;
use purlin_term::{Term, atom};
use std::collections::HashMap;

/// The kinds of nodes of a heap snapshot, by their numbers in V8's format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Hidden = 0,
    Array = 1,
    String = 2,
    Object = 3,
    Code = 4,
    Closure = 5,
    Number = 7,
    Native = 8,
    Synthetic = 9,
    BigInt = 13,
}

/// Number of elements that a shape shows, and of keys of a map.
const SHOWN: usize = 6;

/// The shapes met so far, by words that distinguish them.
#[derive(Default)]
pub(super) struct Shapes {
    known: HashMap<(u8, u64, u64), u32, Hashing>,
    /// The shape that was asked for last.
    last: Option<((u8, u64, u64), u32)>,
    all: Vec<(Kind, String)>,
}

fn name(t: Term) -> String {
    match atom::name(t).len() <= 60 {
        true => format_atom(t, Style::Write),
        false => "a long atom".into(),
    }
}

impl Shapes {
    /// The number of the shape of a term that is no immediate.
    pub fn of(&mut self, t: Term) -> u32 {
        let key = key(t);
        if let Some((last, n)) = self.last
            && last == key
        {
            return n;
        }
        if let Some(&n) = self.known.get(&key) {
            self.last = Some((key, n));
            return n;
        }
        let n = self.all.len() as u32;
        self.all.push(describe(t));
        self.known.insert(key, n);
        n
    }
    /// The kind and text of a shape.
    pub fn shown(&self, n: u32) -> (Kind, &str) {
        let (kind, text) = &self.all[n as usize];
        (*kind, text)
    }
}

/// The first atom of a tuple, if it is a tag.
fn tag(elements: &[Term]) -> Option<Term> {
    elements.first().copied().filter(|t| t.is_atom())
}

/// The keys of a map that is shown by them.
fn few_keys<'a>(t: Term) -> Option<&'a [Term]> {
    let (keys, _) = t.as_flatmap()?;
    (keys.len() <= SHOWN && keys.iter().all(|k| k.is_atom())).then_some(keys)
}

fn key(t: Term) -> (u8, u64, u64) {
    if t.is_list_ptr() {
        return (0, 0, 0);
    }
    let subtag = t.subtag().map_or(u8::MAX, |s| s as u8);
    let (a, b) = if let Some(e) = t.as_tuple() {
        let tag = tag(e).map_or(0, Term::raw);
        (e.len() as u64, tag)
    } else if let Some(keys) = few_keys(t) {
        let mix = |h: u64, k: &Term| (h ^ k.raw()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (keys.len() as u64, keys.iter().fold(1, mix))
    } else if t.is_map() {
        (u64::MAX, u64::from(t.as_flatmap().is_some()))
    } else if let Some(f) = t.as_fun() {
        (f.entry, u64::from(f.arity))
    } else if let Some(r) = t.as_record() {
        (r.definition.module().raw(), r.definition.name().raw())
    } else {
        (0, 0)
    };
    (subtag.wrapping_add(1), a, b)
}

fn describe(t: Term) -> (Kind, String) {
    if t.is_list_ptr() {
        return (Kind::Array, "list".into());
    }
    if let Some(e) = t.as_tuple() {
        let tag = tag(e).map(name);
        let rest = e.len() - usize::from(tag.is_some());
        let mut parts: Vec<String> = tag.into_iter().collect();
        match rest <= SHOWN {
            true => parts.extend((0..rest).map(|_| "_".into())),
            false => parts.push(format!("{rest} elements")),
        }
        return (Kind::Object, format!("{{{}}}", parts.join(", ")));
    }
    if let Some(keys) = few_keys(t) {
        let keys: Vec<String> = keys.iter().map(|k| name(*k)).collect();
        return (Kind::Object, format!("#{{{}}}", keys.join(", ")));
    }
    if t.is_map() {
        return (Kind::Object, "map".into());
    }
    if let Some(f) = t.as_fun() {
        let text = match f.local() {
            Some(entry) => names::function(entry.module, entry.function(), u32::from(f.arity)),
            None => "by its name".into(),
        };
        return (Kind::Closure, format!("fun {text}"));
    }
    if let Some(r) = t.as_record() {
        let text = format!("#{}", name(r.definition.name()));
        return (Kind::Object, text);
    }
    match t.subtag() {
        Some(Subtag::HeapBin) => (Kind::String, "binary".into()),
        Some(Subtag::RefcBin) => (Kind::String, "reference to a binary".into()),
        Some(Subtag::SubBin) => (Kind::String, "part of a binary".into()),
        Some(Subtag::MatchContext) => (Kind::String, "match context".into()),
        Some(Subtag::Ref | Subtag::ExtRef) => (Kind::Native, "reference".into()),
        Some(Subtag::ExtPid) => (Kind::Native, "pid of another node".into()),
        Some(Subtag::ExtPort) => (Kind::Native, "port of another node".into()),
        Some(Subtag::Map) => (Kind::Array, "nodes of a map".into()),
        _ if t.is_float() => (Kind::Number, "float".into()),
        _ if t.is_big() => (Kind::BigInt, "big integer".into()),
        _ => (Kind::Hidden, "other term".into()),
    }
}
