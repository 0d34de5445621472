//! Registered names of processes and ports.
//!
//! A process has at most one name, and records it in its own cell. When another process registers
//! it, it may be out of reach, in a NIF: it has the name at once, and records it when it handles
//! its signals. Until then the name is also in the list of unrecorded names, which the exit of the
//! process consults.
//!
//! # Orderings
//! Those of [`super::named`], which has a model.

pub use super::named::Refused;
use super::named::{Names, Registry, Slot, Who};
use crate::sync::{AtomicUsize, RwLock};
use purlin_term::Term;
use std::collections::BTreeMap;

/// Number of names that can be looked up without the lock at most.
const SLOTS: usize = 2048;

static REGISTRY: Registry<SLOTS> = Registry {
    slots: [const { Slot::new() }; SLOTS],
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

/// Registers `name` for `who`, a local port or the running process.
pub fn register(name: Term, who: Term) -> Result<(), Refused> {
    REGISTRY.register(name.raw(), of(who))
}

/// Gives another process a name, which that is to note (see [`record`]).
pub fn register_for(name: Term, who: Term, alive: impl FnOnce() -> bool) -> Result<(), Refused> {
    REGISTRY.give(name.raw(), of(who), alive)
}

/// A process that was given a name notes it, or has ended. Whether the name is its own still.
pub fn record(name: Term, who: Term, ended: bool) -> bool {
    REGISTRY.noted(name.raw(), who.raw(), ended)
}

/// Removes the names that an exiting process was given and has not recorded.
#[inline]
pub(crate) fn forget_unrecorded(who: Term) {
    REGISTRY.ends(who.raw());
}

/// Unregisters `name` if `who` has it. Returns false, and changes nothing, if another has it by
/// now.
pub fn unregister_of(name: Term, who: Term) -> bool {
    REGISTRY.unregister(name.raw(), who.raw())
}

/// Returns the process or port with the name.
pub fn whereis(name: Term) -> Option<Term> {
    let w = REGISTRY.whereis(name.raw())?;
    // SAFETY: the word of a pid or port, which are immediates.
    Some(unsafe { Term::from_raw(w) })
}

/// Returns the name of a process.
pub fn name_of(pid: Term) -> Option<Term> {
    let w = REGISTRY.name_of(pid.raw())?;
    // SAFETY: the word of an atom.
    Some(unsafe { Term::from_raw(w) })
}

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
        assert_eq!(register_for(am::NORMAL, one, || false), Err(Refused::Ended));
        assert_eq!(register_for(am::NORMAL, one, || true), Ok(()));
        assert_eq!(
            register_for(am::NORMAL, other, || true),
            Err(Refused::Taken)
        );
        assert_eq!(register(am::TRUE, one), Err(Refused::HasName));
        assert!(whereis(am::NORMAL) == Some(one) && record(am::NORMAL, one, false));
        // The name is recorded, so the exit doesn't find it here.
        forget_unrecorded(one);
        assert!(unregister_of(am::NORMAL, one) && !unregister_of(am::NORMAL, one));
        // The name is not recorded yet, and is unregistered meanwhile.
        assert_eq!(register_for(am::NORMAL, one, || true), Ok(()));
        assert!(unregister_of(am::NORMAL, one));
        assert_eq!(register(am::NORMAL, other), Ok(()));
        assert!(!record(am::NORMAL, one, false) && whereis(am::NORMAL) == Some(other));
        assert!(unregister_of(am::NORMAL, other));
        // It ends before it has noted it.
        assert_eq!(register_for(am::NORMAL, one, || true), Ok(()));
        forget_unrecorded(one);
        assert!(whereis(am::NORMAL).is_none() && !record(am::NORMAL, one, true));
        assert_eq!(REGISTRY.given.load(Ordering::SeqCst), 0);
    }
}
