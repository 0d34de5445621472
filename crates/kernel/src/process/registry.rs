//! Registered names: of processes and of ports.
//!
//! A process has one name at most, and notes it. One that another process names may be where nothing reaches it, in a function of a
//! native library: it has its name at once, and notes it when it takes its signals. Until then the name is among those that are
//! given ([`give`]), where its end looks too.

pub use super::named::Refused;
use super::named::{Names, Registry, Who};
use crate::sync::{AtomicUsize, RwLock};
use purlin_term::Term;
use std::collections::BTreeMap;

static REGISTRY: Registry = Registry {
    names: RwLock::new(Names {
        maps: None,
        given: BTreeMap::new(),
    }),
    given: AtomicUsize::new(0),
};

fn of(t: Term) -> Who {
    Who {
        word: t.raw(),
        one_name: t.is_local_pid(),
    }
}

/// Gives `who` (a local port, or the process that runs) the name.
pub fn register(name: Term, who: Term) -> Result<(), Refused> {
    REGISTRY.register(name.raw(), of(who))
}

/// Gives another process a name, which that is to note (see [`noted`]).
pub fn give(name: Term, who: Term, alive: impl FnOnce() -> bool) -> Result<(), Refused> {
    REGISTRY.give(name.raw(), of(who), alive)
}

/// A process that was given a name notes it, or has ended. Whether the name is its own still.
pub fn noted(name: Term, who: Term, ended: bool) -> bool {
    REGISTRY.noted(name.raw(), who.raw(), ended)
}

/// A process ends: the name that it was given and has not noted is nobody's any more.
#[inline]
pub(crate) fn ends(who: Term) {
    REGISTRY.ends(who.raw());
}

/// Takes a name away from `who`; if another has got it meanwhile it stays theirs, and the answer is false.
pub fn unregister_of(name: Term, who: Term) -> bool {
    REGISTRY.unregister(name.raw(), who.raw())
}

/// The process or port that has the name.
pub fn whereis(name: Term) -> Option<Term> {
    let w = REGISTRY.whereis(name.raw())?;
    // SAFETY: the word of a pid or port, which are immediates.
    Some(unsafe { Term::from_raw(w) })
}

/// All names.
pub fn names() -> Vec<Term> {
    let all = REGISTRY.all().into_iter();
    // SAFETY: words of atoms.
    all.map(|w| unsafe { Term::from_raw(w) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Ordering;
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
        assert_eq!(REGISTRY.given.load(Ordering::SeqCst), 0);
    }
}
