//! Names that one process gives another, while that ends, notes the name, or loses it: a process
//! that has ended keeps no name.

#[path = "../../kernel/src/process/named.rs"]
#[allow(dead_code)]
mod named;
use purlin_models::{explore, sync};

/// A hash without chance.
mod hashing {
    use std::hash::{BuildHasherDefault, DefaultHasher};
    pub type Hashing = BuildHasherDefault<DefaultHasher>;
}

use loom::sync::Arc;
use loom::thread;
use named::{Names, Refused, Registry, Slot, Who};
use std::collections::BTreeMap;
use sync::{AtomicBool, AtomicUsize, Ordering, RwLock, fence};

const NAME: u64 = 7;
const OTHER: u64 = 8;
const IT: Who = Who {
    word: 100,
    one_name: true,
};

struct World {
    registry: Registry<1>,
    /// The process has begun to end.
    ending: AtomicBool,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            registry: Registry {
                slots: [Slot::new()],
                names: RwLock::new(Names {
                    maps: None,
                    given: BTreeMap::new(),
                }),
                given: AtomicUsize::new(0),
            },
            ending: AtomicBool::new(false),
        })
    }
    /// As `Table::is_alive`.
    fn is_alive(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.ending.load(Ordering::Relaxed)
    }
    fn give(&self, name: u64) -> Result<(), Refused> {
        self.registry.give(name, IT, || self.is_alive())
    }
    /// As `lifecycle/exit.rs`, of a process that has noted that name.
    fn ends(&self, own: Option<u64>) {
        self.ending.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.registry.ends(IT.word);
        if let Some(name) = own {
            self.registry.unregister(name, IT.word);
        }
    }
    fn has_none(&self) {
        assert!(
            self.registry.all().is_empty(),
            "one that has ended has a name"
        );
    }
}

/// A name is given to a process that ends meanwhile.
#[test]
fn one_that_ends_keeps_no_name_that_is_given() {
    explore("one that ends keeps no name", None, || {
        let w = World::new();
        let giver = w.clone();
        let giver = thread::spawn(move || giver.give(NAME));
        w.ends(None);
        let given = giver.join().expect("runs");
        assert!(matches!(given, Ok(()) | Err(Refused::Ended)));
        w.has_none();
        if given.is_ok() {
            // What it would have noted comes back to the giver.
            assert!(!w.registry.noted(NAME, IT.word, true));
        }
        assert_eq!(w.registry.given.load(Ordering::Relaxed), 0);
    });
}

/// Two give it names, it notes the one that it gets, and ends.
#[test]
fn it_has_one_name_of_two() {
    explore("it has one name of two", Some(3), || {
        let w = World::new();
        let givers = [NAME, OTHER].map(|name| {
            let w = w.clone();
            thread::spawn(move || (name, w.give(name)))
        });
        // A signal tells it of a name that it was given.
        let own = [NAME, OTHER]
            .into_iter()
            .find(|&n| w.registry.whereis(n) == Some(IT.word));
        if let Some(name) = own {
            assert!(w.registry.noted(name, IT.word, false), "nobody takes it");
        }
        w.ends(own);
        let given = givers.map(|g| g.join().expect("runs"));
        let all = given.iter().filter(|(_, r)| r.is_ok());
        assert!(all.clone().count() <= 1, "two names");
        w.has_none();
        for (name, _) in all.filter(|(name, _)| Some(*name) != own) {
            assert!(!w.registry.noted(*name, IT.word, true));
        }
        assert_eq!(w.registry.given.load(Ordering::Relaxed), 0);
    });
}

/// A name is taken away that was given and is not noted yet, and goes to another.
#[test]
fn what_another_has_got_stays() {
    explore("what another has got stays", Some(3), || {
        let w = World::new();
        assert_eq!(w.give(NAME), Ok(()));
        let other = Who { word: 200, ..IT };
        let taker = w.clone();
        let taker = thread::spawn(move || {
            let taken = taker.registry.unregister(NAME, IT.word);
            taken && taker.registry.register(NAME, other).is_ok()
        });
        w.ends(None);
        let taken = taker.join().expect("runs");
        assert_eq!(w.registry.whereis(NAME), taken.then_some(other.word));
        assert!(!w.registry.noted(NAME, IT.word, true));
        assert_eq!(w.registry.given.load(Ordering::Relaxed), 0);
    });
}

/// A name is looked up while its slot goes to another name: it is found with its own process, or
/// not at all, and an end that was seen stays.
#[test]
fn a_look_up_finds_no_other() {
    explore("a look-up finds no other", Some(3), || {
        let w = World::new();
        let other = Who { word: 200, ..IT };
        assert_eq!(w.registry.register(NAME, IT), Ok(()));
        let writer = w.clone();
        let writer = thread::spawn(move || {
            assert!(writer.registry.unregister(NAME, IT.word));
            assert_eq!(writer.registry.register(OTHER, other), Ok(()));
        });
        let seen = [0; 2].map(|_| w.registry.whereis(NAME));
        assert!(seen.iter().all(|who| [None, Some(IT.word)].contains(who)));
        assert!(seen[0].is_some() || seen[1].is_none(), "it is back");
        let found = w.registry.whereis(OTHER);
        assert!([None, Some(other.word)].contains(&found));
        writer.join().expect("runs");
        assert_eq!(w.registry.whereis(OTHER), Some(other.word));
        assert_eq!(w.registry.whereis(NAME), None);
    });
}
