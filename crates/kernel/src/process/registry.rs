//! Registered names of processes and ports.
//!
//! A process has at most one name, and records it in its own cell. When another process registers
//! it, it may be out of reach, in a NIF: it has the name at once, and records it when it handles
//! its signals. Until then the name is also in the list of unrecorded names ([`register_for`]),
//! which the exit of the process consults.
//!
//! # Orderings
//! [`GIVEN`] and the state word of a process form a store-buffering pair. [`register_for`]
//! increments `GIVEN`, then asks whether the process is alive; the exit marks the process as
//! exiting, then loads `GIVEN` in [`forget_unrecorded`]. At least one side must see the other's
//! store, or a dead process would keep a name. `SeqCst` on `GIVEN` alone does not order it against
//! the state word, whose accesses are weaker: the fences in [`super::table::Table::is_alive`] and
//! in the exit of a process do. The two lists themselves are only accessed under the lock.

use crate::sync::RwLock;
use purlin_native::hashing::Hashing;
use purlin_term::Term;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Maps {
    /// Word of an atom to the word of a local pid or port.
    names: HashMap<u64, u64, Hashing>,
    /// Word of a local pid to the word of its name.
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
    /// Removes the name; false if `who` doesn't have it.
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
    /// Names that processes were given and have not recorded yet, with their number: words of pid
    /// and name.
    given: BTreeMap<(u64, u64), usize>,
}

static NAMES: RwLock<Names> = RwLock::new(Names {
    maps: None,
    given: BTreeMap::new(),
});

/// Number of names that are given and not recorded, or about to be. [`register_for`] raises it
/// before it asks whether the process is alive, and the exit reads it after it has marked the
/// process as exiting. So the exit finds the name, or [`register_for`] finds the exit.
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// The reason for which a name is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The process has ended.
    Ended,
    /// The process has a name already.
    HasName,
    Taken,
}

/// Registers `name` for `who`, a local port or the running process.
pub fn register(name: Term, who: Term) -> Result<(), Refused> {
    let mut n = NAMES.write();
    n.maps.get_or_insert_default().enter(name, who)
}

/// Registers a name for another process, which is to record it (see [`record`]).
pub fn register_for(name: Term, who: Term, alive: impl FnOnce() -> bool) -> Result<(), Refused> {
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

/// Removes a name from the unrecorded ones, because its process records it or has ended. Returns
/// whether the process still has the name.
pub fn record(name: Term, who: Term, ended: bool) -> bool {
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

/// Removes the names that an exiting process was given and has not recorded.
#[inline]
pub(crate) fn forget_unrecorded(who: Term) {
    if GIVEN.load(Ordering::SeqCst) != 0 {
        forget_given(who);
    }
}

#[cold]
fn forget_given(who: Term) {
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

/// Unregisters `name` if `who` has it. Returns false, and changes nothing, if another has it by
/// now.
pub fn unregister_of(name: Term, who: Term) -> bool {
    let mut n = NAMES.write();
    n.maps.as_mut().is_some_and(|m| m.take(name, who))
}

/// Returns the process or port with the name.
pub fn whereis(name: Term) -> Option<Term> {
    let n = NAMES.read();
    let w = *n.maps.as_ref()?.names.get(&name.raw())?;
    // SAFETY: the word of a pid or port, which are immediates.
    Some(unsafe { Term::from_raw(w) })
}

/// Returns all names.
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
        // The process ends before it has recorded the name.
        assert_eq!(register_for(am::NORMAL, one, || true), Ok(()));
        forget_unrecorded(one);
        assert!(whereis(am::NORMAL).is_none() && !record(am::NORMAL, one, true));
        assert_eq!(GIVEN.load(Ordering::SeqCst), 0);
    }
}
