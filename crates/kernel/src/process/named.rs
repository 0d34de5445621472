//! Names and those who have them, as words. [`registry`](super::registry) has the system's, as
//! terms.
//!
//! # Orderings
//! * The maps and the list of who was given a name stand under one lock.
//! * A process that names another races with the exit of that process. [`Registry::give`] raises
//!   `given` and then asks whether the process is alive. The exit marks the process as exiting and
//!   then reads `given` ([`Registry::ends`]). Each has a sequentially consistent fence between its
//!   two steps: in `Table::is_alive`, and in `lifecycle/exit.rs` after `begin_exit`. So either the
//!   giver sees the mark, or the exit sees that `given` is not 0; the exit then takes the lock and
//!   finds the name.
//! * `given` is lowered under the lock, or if no name was entered. An exit that reads 0 has no name
//!   to remove.
//! * A look-up reads a [`Slot`] without the lock. A slot has the name and who has it while that
//!   name is taken. It is written under the lock together with the maps. Its version is odd
//!   meanwhile; the writer's release fence and the reader's acquire fence see to it that a reader
//!   that met a new word also meets the new version. A name whose slot another name has is looked
//!   up under the lock.
//!
//! The model is `crates/models/tests/registry.rs`.

use crate::hashing::Hashing;
use crate::sync::{AtomicU64, AtomicUsize, Ordering, RwLock, constant, fence};
use std::collections::{BTreeMap, HashMap};

/// Bits of an atom's word below its number.
const ATOM_SHIFT: u32 = 6;

/// The names that are taken.
#[derive(Default)]
pub(crate) struct Maps {
    /// By name: who has it.
    names: HashMap<u64, u64, Hashing>,
    /// By process: its name.
    of: HashMap<u64, u64, Hashing>,
}

impl Maps {
    fn enter(&mut self, name: u64, who: Who) -> Result<(), Refused> {
        if self.of.contains_key(&who.word) {
            return Err(Refused::HasName);
        }
        if self.names.contains_key(&name) {
            return Err(Refused::Taken);
        }
        self.names.insert(name, who.word);
        if who.one_name {
            self.of.insert(who.word, name);
        }
        Ok(())
    }
    fn has(&self, name: u64, who: u64) -> bool {
        self.names.get(&name) == Some(&who)
    }
    /// False: it has no such name.
    fn take(&mut self, name: u64, who: u64) -> bool {
        let has = self.has(name, who);
        if has {
            self.names.remove(&name);
            self.of.remove(&who);
        }
        has
    }
}

/// A name and who has it, for look-ups without the lock; see the module head.
pub(crate) struct Slot {
    version: AtomicU64,
    /// 0 if no name has the slot.
    name: AtomicU64,
    who: AtomicU64,
}

impl Slot {
    constant! {
        pub(crate) fn new() -> Slot {
            Slot {
                version: AtomicU64::new(0),
                name: AtomicU64::new(0),
                who: AtomicU64::new(0),
            }
        }
    }
    /// Returns the process or port with the name, if the name has the slot.
    #[inline]
    fn find(&self, name: u64) -> Option<u64> {
        let version = self.version.load(Ordering::Acquire);
        let has = self.name.load(Ordering::Relaxed);
        let who = self.who.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let same = self.version.load(Ordering::Relaxed) == version;
        (same && version.is_multiple_of(2) && has == name).then_some(who)
    }
    /// Called under the lock.
    fn set(&self, name: u64, who: u64) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.name.store(name, Ordering::Relaxed);
        self.who.store(who, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }
    fn has(&self, name: u64) -> bool {
        self.name.load(Ordering::Relaxed) == name
    }
}

/// The state that the lock protects.
pub(crate) struct Names {
    /// None until there is a name.
    pub(crate) maps: Option<Maps>,
    /// Names that a process or port was given and has not recorded yet, with the number of times.
    pub(crate) given: BTreeMap<(u64, u64), usize>,
}

/// Why a name is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The process has ended.
    Ended,
    /// The process has one.
    HasName,
    Taken,
}

/// The process or port that is to get a name.
#[derive(Clone, Copy)]
pub(crate) struct Who {
    pub(crate) word: u64,
    /// It may have one name only: it is a process.
    pub(crate) one_name: bool,
}

/// See the module head.
pub(crate) struct Registry<const SLOTS: usize> {
    /// By the number of the name's atom.
    pub(crate) slots: [Slot; SLOTS],
    pub(crate) names: RwLock<Names>,
    /// Names that are given, or about to be.
    pub(crate) given: AtomicUsize,
}

impl<const SLOTS: usize> Registry<SLOTS> {
    #[inline]
    fn slot(&self, name: u64) -> &Slot {
        &self.slots[(name >> ATOM_SHIFT) as usize % SLOTS]
    }
    /// Enters a name, under the lock.
    fn enter(&self, n: &mut Names, name: u64, who: Who) -> Result<(), Refused> {
        n.maps.get_or_insert_default().enter(name, who)?;
        let slot = self.slot(name);
        if slot.has(0) {
            slot.set(name, who.word);
        }
        Ok(())
    }
    /// Takes a name away from `who`, under the lock. False: it has no such name.
    fn take(&self, n: &mut Names, name: u64, who: u64) -> bool {
        let taken = n.maps.as_mut().is_some_and(|m| m.take(name, who));
        let slot = self.slot(name);
        if taken && slot.has(name) {
            slot.set(0, 0);
        }
        taken
    }
    /// Gives `who` the name: a port, or the process that runs.
    pub(crate) fn register(&self, name: u64, who: Who) -> Result<(), Refused> {
        self.enter(&mut self.names.write(), name, who)
    }
    /// Gives another process a name, which that is to note ([`Registry::noted`]).
    pub(crate) fn give(
        &self,
        name: u64,
        who: Who,
        alive: impl FnOnce() -> bool,
    ) -> Result<(), Refused> {
        self.given.fetch_add(1, Ordering::SeqCst);
        let mut n = self.names.write();
        let entered = match alive() {
            true => self.enter(&mut n, name, who),
            false => Err(Refused::Ended),
        };
        match entered {
            Ok(()) => {
                *n.given.entry((who.word, name)).or_insert(0) += 1;
            }
            Err(_) => {
                self.given.fetch_sub(1, Ordering::SeqCst);
            }
        }
        entered
    }
    /// A process that was given a name notes it, or has ended. Whether the name is its own still.
    pub(crate) fn noted(&self, name: u64, who: u64, ended: bool) -> bool {
        let mut n = self.names.write();
        let key = (who, name);
        if let Some(times) = n.given.get_mut(&key) {
            *times -= 1;
            if *times == 0 {
                n.given.remove(&key);
            }
            self.given.fetch_sub(1, Ordering::SeqCst);
        }
        match ended {
            true => self.take(&mut n, name, who),
            false => n.maps.as_ref().is_some_and(|m| m.has(name, who)),
        }
    }
    /// A process ends: the name that it was given and has not noted is nobody's any more.
    #[inline]
    pub(crate) fn ends(&self, who: u64) {
        if self.given.load(Ordering::SeqCst) != 0 {
            self.ends_given(who);
        }
    }
    #[cold]
    fn ends_given(&self, who: u64) {
        let mut n = self.names.write();
        let given = n.given.range((who, 0)..=(who, u64::MAX));
        let names: Vec<u64> = given.map(|(&(_, name), _)| name).collect();
        for name in names {
            self.take(&mut n, name, who);
        }
    }
    /// Takes a name away from `who`. False: it has no such name; if another has got it meanwhile it
    /// stays theirs.
    pub(crate) fn unregister(&self, name: u64, who: u64) -> bool {
        self.take(&mut self.names.write(), name, who)
    }
    /// Returns the name of a process.
    pub(crate) fn name_of(&self, who: u64) -> Option<u64> {
        let n = self.names.read();
        n.maps.as_ref()?.of.get(&who).copied()
    }
    /// Returns the process or port that has the name.
    #[inline]
    pub(crate) fn whereis(&self, name: u64) -> Option<u64> {
        let found = self.slot(name).find(name);
        found.or_else(|| self.whereis_locked(name))
    }
    fn whereis_locked(&self, name: u64) -> Option<u64> {
        let n = self.names.read();
        n.maps.as_ref()?.names.get(&name).copied()
    }
    /// All names.
    pub(crate) fn all(&self) -> Vec<u64> {
        let n = self.names.read();
        let all = n.maps.as_ref().map(|m| m.names.keys().copied().collect());
        all.unwrap_or_default()
    }
}
