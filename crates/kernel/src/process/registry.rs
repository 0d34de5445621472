//! Registered names: of processes and of ports.

use crate::sync::RwLock;
use purlin_term::Term;
use std::collections::HashMap;

struct Names {
    /// Atom word to the word of a local pid or port.
    map: Option<HashMap<u64, u64>>,
}

static NAMES: RwLock<Names> = RwLock::new(Names { map: None });

/// Gives `who` (a local pid or port) the name. False if the name is taken.
pub fn register(name: Term, who: Term) -> bool {
    let mut n = NAMES.write();
    let map = n.map.get_or_insert_default();
    match map.entry(name.raw()) {
        std::collections::hash_map::Entry::Occupied(_) => false,
        std::collections::hash_map::Entry::Vacant(v) => {
            v.insert(who.raw());
            true
        }
    }
}

/// Takes a name away from `who`; if another has got it meanwhile it stays theirs, and the answer is false.
pub fn unregister_of(name: Term, who: Term) -> bool {
    let mut n = NAMES.write();
    let Some(m) = n.map.as_mut() else {
        return false;
    };
    let has = m.get(&name.raw()) == Some(&who.raw());
    if has {
        m.remove(&name.raw());
    }
    has
}

/// The process or port that has the name.
pub fn whereis(name: Term) -> Option<Term> {
    let n = NAMES.read();
    let w = *n.map.as_ref()?.get(&name.raw())?;
    // SAFETY: the word of a pid or port, which are immediates.
    Some(unsafe { Term::from_raw(w) })
}

/// All names.
pub fn names() -> Vec<Term> {
    let n = NAMES.read();
    let Some(m) = n.map.as_ref() else {
        return Vec::new();
    };
    // SAFETY: words of atoms.
    m.keys().map(|&w| unsafe { Term::from_raw(w) }).collect()
}
