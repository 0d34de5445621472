//! The ties of a process to other nodes. They belong to the owner of the process, like all of
//! [`crate::process::ext::Ext`].
//!
//! Each tie names the connection that it was made on. When the connection is lost, a signal tells
//! the process, which looks through its ties itself. So a connection only needs to know which
//! processes have any.

use crate::hashing::Hashing;
use crate::keys::{AliasMode, RefKey};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::layout::RefView;
use purlin_term::node::{Held, Node};
use purlin_term::word::Subtag;
use purlin_term::{Alloc, Term};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A process of another node, as a key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RemotePid {
    pub node: Held,
    data: u64,
}

impl RemotePid {
    /// Returns the key of an external pid; `None` for any other term.
    pub fn of(t: Term) -> Option<RemotePid> {
        let (node, data) = t.as_external()?;
        (t.subtag()? == Subtag::ExtPid).then(|| RemotePid {
            node: Held::of(node),
            data,
        })
    }
    /// Returns the pid.
    pub fn term<A: Alloc + ?Sized>(&self, a: &mut A) -> Term {
        a.external(Subtag::ExtPid, self.node.counted(), self.data)
    }
    /// Returns the pid, in a block of its own.
    pub fn owned(&self) -> OwnedTerm {
        let mut f = Fragment::new();
        let t = self.term(&mut f);
        OwnedTerm::from_parts(t, f)
    }
}

/// A reference of another node, as a key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RemoteRef {
    node: Held,
    numbers: SmallVec<[u32; 5]>,
}

impl RemoteRef {
    /// Returns the key of an external reference; `None` for any other term.
    pub fn of(t: Term) -> Option<RemoteRef> {
        match t.as_ref_view()? {
            RefView::External { node, nums } => Some(RemoteRef {
                node: Held::of(node),
                numbers: SmallVec::from_slice(nums),
            }),
            _ => None,
        }
    }
    /// Returns its node.
    pub fn node(&self) -> &Node {
        &self.node
    }
    /// Returns the reference, in a block of its own.
    pub fn owned(&self) -> OwnedTerm {
        let mut f = Fragment::new();
        let t = f.external_ref(self.node.counted(), &self.numbers);
        OwnedTerm::from_parts(t, f)
    }
}

/// A link with a process of another node.
pub struct Link {
    /// Number of the unlink operation whose acknowledgement this end awaits; 0 for none.
    pub unlinking: u64,
    pub connection: u32,
    /// Whether the exit signal has priority.
    pub urgent: bool,
}

/// A process of another node that monitors this one.
pub struct Watcher {
    pub by: RemotePid,
    /// The registered name that it monitors by, or nil.
    pub name: Term,
    pub connection: u32,
}

/// The target of a monitor on another node.
pub struct Watched {
    /// A pid, or `{Name, Node}`.
    pub object: OwnedTerm,
    /// The reference that the other node knows.
    pub reference: OwnedTerm,
    pub connection: u32,
}

/// A request to spawn on another node, not answered yet.
pub struct Spawn {
    /// Name of the node.
    pub node: Term,
    pub connection: u32,
    /// First element of the reply.
    pub tag: OwnedTerm,
    /// Whether the reply is wanted on success and on failure.
    pub on_success: bool,
    pub on_error: bool,
    pub link: bool,
    /// Alias mode and tag of the monitor.
    pub monitor: Option<(AliasMode, Option<Box<OwnedTerm>>)>,
    /// Whether the signals of the link and of the monitor have priority.
    pub urgent: (bool, bool),
    /// The reference that the other node knows.
    pub reference: OwnedTerm,
    /// Whether nobody waits for it any more.
    pub abandoned: bool,
}

/// A node that the process monitors.
pub struct NodeWatch {
    pub name: Term,
    pub connection: u32,
    /// Number of times it has asked.
    pub count: usize,
}

/// See the module docs.
#[derive(Default)]
pub struct Remote {
    /// Other nodes choose their pids, so this hash is keyed.
    pub links: HashMap<RemotePid, Link>,
    pub watchers: HashMap<RemoteRef, Watcher>,
    pub spawns: HashMap<RefKey, Spawn, Hashing>,
    pub nodes: Vec<NodeWatch>,
    /// The connections that list the process among those with ties: name of the node and number.
    /// Only the last one to each node is here; earlier ones have ended.
    pub tied: SmallVec<[(Term, u32); 1]>,
    /// Whether the end of the process ends one connection or all: it controls one, or is
    /// `net_kernel`.
    pub controls: bool,
}

impl Remote {
    /// Records that this connection to a node lists the process among those with ties.
    pub fn set_tied(&mut self, node: Term, connection: u32) {
        match self.tied.iter_mut().find(|t| t.0 == node) {
            Some(t) => t.1 = connection,
            None => self.tied.push((node, connection)),
        }
    }
    /// Whether there are no ties.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
            && self.watchers.is_empty()
            && self.spawns.is_empty()
            && self.nodes.is_empty()
            && !self.controls
    }
}
