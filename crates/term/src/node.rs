//! Names of other nodes, as external pids, ports and references hold them.

use crate::word::Term;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// One node in one life of it. Counted by the external terms that name it; interned, so equal nodes have one address.
pub struct Node {
    pub refc: AtomicU64,
    pub name: Term,
    pub creation: u32,
}

static NODES: Mutex<Vec<&'static Node>> = Mutex::new(Vec::new());

/// The node of that name and creation. Entries are kept for the life of the runtime: there are as many as there
/// ever were distinct peers.
pub fn intern(name: Term, creation: u32) -> &'static Node {
    let mut v = NODES.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(n) = v.iter().find(|n| n.name == name && n.creation == creation) {
        return n;
    }
    let n: &'static Node = Box::leak(Box::new(Node {
        refc: AtomicU64::new(0),
        name,
        creation,
    }));
    v.push(n);
    n
}

static THIS_NAME: AtomicU64 = AtomicU64::new(0);
static THIS_CREATION: AtomicU64 = AtomicU64::new(0);

/// The name of this node: `nonode@nohost` until distribution is started.
#[inline]
pub fn this_name() -> Term {
    match THIS_NAME.load(Ordering::Relaxed) {
        0 => crate::am::NONODE_AT_NOHOST,
        // SAFETY: only atoms are stored, see set_this.
        w => unsafe { Term::from_raw(w) },
    }
}
/// The creation of this node.
#[inline]
pub fn this_creation() -> u32 {
    THIS_CREATION.load(Ordering::Relaxed) as u32
}
/// Names this node. `name` must be an atom.
pub fn set_this(name: Term, creation: u32) {
    debug_assert!(name.is_atom());
    THIS_NAME.store(name.raw(), Ordering::Relaxed);
    THIS_CREATION.store(creation as u64, Ordering::Relaxed);
}
