//! Registered names: of processes and of ports.
//!
//! A process has one name at most, and notes it. One that another process names may be where nothing reaches it, in a function of a
//! native library: it has its name at once, and notes it when it takes its signals. Until then the name is among those that are
//! given ([`give`]), where its end looks too.

use crate::sync::RwLock;
use purlin_native::hashing::Hashing;
use purlin_term::Term;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Maps {
    /// Atom word to the word of a local pid or port.
    names: HashMap<u64, u64, Hashing>,
    /// The words of local pids to those of their names.
    of: HashMap<u64, u64, Hashing>,
}

impl Maps {
    fn enter(&mut self, name: Term, who: Term) -> Result<(), Refused> {
        if self.of.contains_key(&who.raw()) {
            return Err(Refused::HasName);
        }
        if self.names.contains_key(&name.raw()) {
            return Err(Refused::Taken);
        }
        self.names.insert(name.raw(), who.raw());
        if who.is_local_pid() {
            self.of.insert(who.raw(), name.raw());
        }
        Ok(())
    }
    fn has(&self, name: Term, who: Term) -> bool {
        self.names.get(&name.raw()) == Some(&who.raw())
    }
    /// False: it has no such name.
    fn take(&mut self, name: Term, who: Term) -> bool {
        let has = self.has(name, who);
        if has {
            self.names.remove(&name.raw());
            self.of.remove(&who.raw());
        }
        has
    }
}

struct Names {
    maps: Option<Maps>,
    /// Who was given which name and has not noted that yet, and how many times: the words of both.
    given: BTreeMap<(u64, u64), usize>,
}

static NAMES: RwLock<Names> = RwLock::new(Names {
    maps: None,
    given: BTreeMap::new(),
});

/// How many names are given, or about to be. It is raised before a process is asked whether it lives, and read behind the mark that it
/// ends: so its end finds the name, or who gives it finds the end.
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// Why somebody doesn't get a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The process has ended.
    Ended,
    /// The process has one.
    HasName,
    Taken,
}

/// Gives `who` (a local port, or the process that runs) the name.
pub fn register(name: Term, who: Term) -> Result<(), Refused> {
    let mut n = NAMES.write();
    n.maps.get_or_insert_default().enter(name, who)
}

/// Gives another process a name, which that is to note (see [`noted`]).
pub fn give(name: Term, who: Term, alive: impl FnOnce() -> bool) -> Result<(), Refused> {
    GIVEN.fetch_add(1, Ordering::SeqCst);
    let mut n = NAMES.write();
    let entered = match alive() {
        true => n.maps.get_or_insert_default().enter(name, who),
        false => Err(Refused::Ended),
    };
    match entered {
        Ok(()) => {
            *n.given.entry((who.raw(), name.raw())).or_insert(0) += 1;
        }
        Err(_) => {
            GIVEN.fetch_sub(1, Ordering::SeqCst);
        }
    }
    entered
}

/// A process that was given a name notes it, or has ended. Whether the name is its own still.
pub fn noted(name: Term, who: Term, ended: bool) -> bool {
    let mut n = NAMES.write();
    let key = (who.raw(), name.raw());
    if let Some(times) = n.given.get_mut(&key) {
        *times -= 1;
        if *times == 0 {
            n.given.remove(&key);
        }
        GIVEN.fetch_sub(1, Ordering::SeqCst);
    }
    let Some(m) = n.maps.as_mut() else {
        return false;
    };
    match ended {
        true => m.take(name, who),
        false => m.has(name, who),
    }
}

/// A process ends: the name that it was given and has not noted is nobody's any more.
#[inline]
pub(crate) fn ends(who: Term) {
    if GIVEN.load(Ordering::SeqCst) != 0 {
        ends_given(who);
    }
}

#[cold]
fn ends_given(who: Term) {
    let mut n = NAMES.write();
    let Names { maps, given } = &mut *n;
    if let Some(m) = maps {
        let of_it = (who.raw(), 0)..=(who.raw(), u64::MAX);
        for (&(_, name), _) in given.range(of_it) {
            // SAFETY: the word of an atom.
            m.take(unsafe { Term::from_raw(name) }, who);
        }
    }
}

/// Takes a name away from `who`; if another has got it meanwhile it stays theirs, and the answer is false.
pub fn unregister_of(name: Term, who: Term) -> bool {
    let mut n = NAMES.write();
    n.maps.as_mut().is_some_and(|m| m.take(name, who))
}

/// The process or port that has the name.
pub fn whereis(name: Term) -> Option<Term> {
    let n = NAMES.read();
    let w = *n.maps.as_ref()?.names.get(&name.raw())?;
    // SAFETY: the word of a pid or port, which are immediates.
    Some(unsafe { Term::from_raw(w) })
}

/// All names.
pub fn names() -> Vec<Term> {
    let n = NAMES.read();
    let Some(m) = n.maps.as_ref() else {
        return Vec::new();
    };
    // SAFETY: words of atoms.
    m.names
        .keys()
        .map(|&w| unsafe { Term::from_raw(w) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_term::am;

    #[test]
    fn a_name_that_was_given_goes_with_its_process() {
        let (one, other) = (Term::pid(900_001), Term::pid(900_002));
        assert_eq!(give(am::NORMAL, one, || false), Err(Refused::Ended));
        assert_eq!(give(am::NORMAL, one, || true), Ok(()));
        assert_eq!(give(am::NORMAL, other, || true), Err(Refused::Taken));
        assert_eq!(register(am::TRUE, one), Err(Refused::HasName));
        assert!(whereis(am::NORMAL) == Some(one) && noted(am::NORMAL, one, false));
        // Noted: its end looks where it has noted it.
        ends(one);
        assert!(unregister_of(am::NORMAL, one) && !unregister_of(am::NORMAL, one));
        // Not noted yet, and taken away again meanwhile.
        assert_eq!(give(am::NORMAL, one, || true), Ok(()));
        assert!(unregister_of(am::NORMAL, one));
        assert_eq!(register(am::NORMAL, other), Ok(()));
        assert!(!noted(am::NORMAL, one, false) && whereis(am::NORMAL) == Some(other));
        assert!(unregister_of(am::NORMAL, other));
        // It ends before it has noted it.
        assert_eq!(give(am::NORMAL, one, || true), Ok(()));
        ends(one);
        assert!(whereis(am::NORMAL).is_none() && !noted(am::NORMAL, one, true));
        assert_eq!(GIVEN.load(Ordering::SeqCst), 0);
    }
}
