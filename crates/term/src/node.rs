//! Names of other nodes, as external pids, ports and references hold them.
//!
//! # Orderings
//! * `THIS` is stored with release and loaded with acquire: a reader sees the pair, and the entry
//!   of the atom.
//! * A count is subtracted with release, and loaded with acquire before an entry is freed: all use
//!   of it is over then. It is increased relaxed, since who does that holds a count or the lock.

use crate::sync::Mutex;
use crate::word::Term;
use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// One incarnation of a node. Counted by the external terms that name it; interned, so equal nodes
/// have one address.
pub struct Node {
    pub refc: AtomicU64,
    pub name: Term,
    pub creation: u32,
}

/// All nodes, by name and creation.
struct Nodes {
    all: Option<HashMap<(u64, u32), &'static Node>>,
    /// Number of entries at which unused ones are freed.
    sweep_at: usize,
}

/// Number of entries that are never swept: a cluster of ordinary size, in several incarnations of
/// each node.
const FEW: usize = 1024;

static NODES: Mutex<Nodes> = Mutex::new(Nodes {
    all: None,
    sweep_at: FEW,
});

/// The node with that name and creation, with one added to its count, which the caller owns: a term
/// that it makes, or a [`Held`].
///
/// An entry is freed only here, under the lock, if its count is 0: its holders were counted before.
pub fn intern(name: Term, creation: u32) -> &'static Node {
    let mut nodes = NODES.lock();
    let nodes = &mut *nodes;
    let all = nodes.all.get_or_insert_default();
    if let Some(&n) = all.get(&(name.raw(), creation)) {
        n.refc.fetch_add(1, Ordering::Relaxed);
        return n;
    }
    if all.len() >= nodes.sweep_at {
        all.retain(|_, n| {
            if n.refc.load(Ordering::Acquire) != 0 {
                return true;
            }
            // SAFETY: from `Box::leak` below. No term and no `Held` names it, and a new one is only
            // made from another, or under this lock.
            drop(unsafe { Box::from_raw((*n as *const Node).cast_mut()) });
            false
        });
        nodes.sweep_at = FEW.max(2 * all.len());
    }
    let n: &'static Node = Box::leak(Box::new(Node {
        refc: AtomicU64::new(1),
        name,
        creation,
    }));
    all.insert((name.raw(), creation), n);
    n
}

/// Name, creation and count of each node.
pub fn all() -> Vec<(Term, u32, u64)> {
    let nodes = NODES.lock();
    let all = nodes.all.iter().flat_map(|m| m.values());
    all.map(|n| (n.name, n.creation, n.refc.load(Ordering::Relaxed)))
        .collect()
}

/// A node, counted by the holder of this.
pub struct Held(&'static Node);

impl Held {
    /// The node that an external term names.
    pub fn of(n: &Node) -> Held {
        n.refc.fetch_add(1, Ordering::Relaxed);
        // SAFETY: entries live as long as they are counted, and this one was just counted once
        // more.
        Held(unsafe { &*(n as *const Node) })
    }
    /// The node with one added to its count, for a term that names it.
    pub fn counted(&self) -> &'static Node {
        self.0.refc.fetch_add(1, Ordering::Relaxed);
        self.0
    }
}

impl std::ops::Deref for Held {
    type Target = Node;
    #[inline]
    fn deref(&self) -> &Node {
        self.0
    }
}

impl Clone for Held {
    fn clone(&self) -> Held {
        Held(self.counted())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.refc.fetch_sub(1, Ordering::Release);
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Held {}
impl std::hash::Hash for Held {
    fn hash<H: std::hash::Hasher>(&self, h: &mut H) {
        h.write_usize(std::ptr::from_ref(self.0).addr());
    }
}

/// Name and creation of this node; null before it is named. Each naming leaves a pair for ever:
/// others may still read it, and the collection of atoms finds the name in it.
static THIS: AtomicPtr<(Term, u32)> = AtomicPtr::new(std::ptr::null_mut());

/// Whether this node has a name.
pub fn is_alive() -> bool {
    this_name() != crate::am::NONODE_AT_NOHOST
}

/// The name of this node: `nonode@nohost` until distribution is started.
#[inline]
pub fn this_name() -> Term {
    this_node().0
}
/// The creation of this node.
#[inline]
pub fn this_creation() -> u32 {
    this_node().1
}
/// The name and the creation of this node at one time.
#[inline]
pub fn this_node() -> (Term, u32) {
    // SAFETY: null, or a pair that stays and does not change; acquire orders what is in it, and the
    // entry of the atom, before.
    let named = unsafe { THIS.load(Ordering::Acquire).as_ref() };
    named.map_or((crate::am::NONODE_AT_NOHOST, 0), |&this| this)
}
/// Names this node. `name` must be an atom.
pub fn set_this(name: Term, creation: u32) {
    debug_assert!(name.is_atom());
    THIS.store(Box::into_raw(Box::new((name, creation))), Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_nobody_names_are_given_up() {
        let name = crate::atom::intern("swept@here");
        let held = Held::of(intern(name, 1));
        held.refc.fetch_sub(1, Ordering::Relaxed);
        let at = std::ptr::from_ref(&*held).addr();
        for creation in 2..5 * FEW as u32 {
            let n = intern(name, creation);
            n.refc.fetch_sub(1, Ordering::Relaxed);
        }
        assert!(all().len() <= 2 * FEW);
        let again = intern(name, 1);
        assert_eq!(std::ptr::from_ref(again).addr(), at);
        again.refc.fetch_sub(1, Ordering::Relaxed);
    }
}
