//! The ties of a process to other nodes. They belong to the owner of the process, as all of [`crate::process::ext::Ext`].
//!
//! Each tie names the connection that it was made on: when that is lost, the process hears of it by a signal, and looks
//! through its ties itself. So a connection only knows which processes have any.

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
    /// The pid of another node that a term is, if it is one.
    pub fn of(t: Term) -> Option<RemotePid> {
        let (node, data) = t.as_external()?;
        (t.subtag()? == Subtag::ExtPid).then(|| RemotePid {
            node: Held::of(node),
            data,
        })
    }
    /// Its pid.
    pub fn term<A: Alloc + ?Sized>(&self, a: &mut A) -> Term {
        a.external(Subtag::ExtPid, self.node.counted(), self.data)
    }
    /// Its pid, in a place of its own.
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
    /// The reference of another node that a term is, if it is one.
    pub fn of(t: Term) -> Option<RemoteRef> {
        match t.as_ref_view()? {
            RefView::External { node, nums } => Some(RemoteRef {
                node: Held::of(node),
                numbers: SmallVec::from_slice(nums),
            }),
            _ => None,
        }
    }
    /// Its node.
    pub fn node(&self) -> &Node {
        &self.node
    }
    /// The reference, in a place of its own.
    pub fn owned(&self) -> OwnedTerm {
        let mut f = Fragment::new();
        let t = f.external_ref(self.node.counted(), &self.numbers);
        OwnedTerm::from_parts(t, f)
    }
}

/// A link with a process of another node.
pub struct Link {
    /// Not 0: this end has unlinked, with that number, and waits for the acknowledgement.
    pub unlinking: u64,
    pub connection: u32,
    /// The message at the end has priority.
    pub urgent: bool,
}

/// A process of another node that watches this one.
pub struct Watcher {
    pub by: RemotePid,
    /// The name it watches by, or nil.
    pub name: Term,
    pub connection: u32,
}

/// The target of a monitor on another node.
pub struct Watched {
    /// A pid, or `{Name, Node}`.
    pub object: OwnedTerm,
    /// The reference as the other node knows it.
    pub reference: OwnedTerm,
    pub connection: u32,
}

/// A process that was asked for on another node, and is not there yet.
pub struct Spawn {
    /// The node's name.
    pub node: Term,
    pub connection: u32,
    /// First of the reply.
    pub tag: OwnedTerm,
    /// Whether the reply is wanted where there is a process, and where there is none.
    pub on_success: bool,
    pub on_error: bool,
    pub link: bool,
    /// Alias mode and tag of the monitor.
    pub monitor: Option<(AliasMode, Option<Box<OwnedTerm>>)>,
    /// Whether what comes of the link and the monitor has priority.
    pub urgent: (bool, bool),
    /// The reference as the other node knows it.
    pub reference: OwnedTerm,
    /// Nobody waits for it any more.
    pub abandoned: bool,
}

/// A node that the process wants to know the end of.
pub struct NodeWatch {
    pub name: Term,
    pub connection: u32,
    /// How many times it has asked.
    pub count: usize,
}

/// See the module head.
#[derive(Default)]
pub struct Remote {
    /// Another node chooses what its pids are, so the hash is a keyed one.
    pub links: HashMap<RemotePid, Link>,
    pub watchers: HashMap<RemoteRef, Watcher>,
    pub spawns: HashMap<RefKey, Spawn, Hashing>,
    pub nodes: Vec<NodeWatch>,
    /// The connections that have the process among those with ties: the node's name, and the number. Only the last one to
    /// each node: those before have ended.
    pub tied: SmallVec<[(Term, u32); 1]>,
    /// The end of the process ends a connection, or all: it controls one, or is `net_kernel`.
    pub controls: bool,
}

impl Remote {
    /// That connection to a node has the process among those with ties.
    pub fn is_tied(&mut self, node: Term, connection: u32) {
        match self.tied.iter_mut().find(|t| t.0 == node) {
            Some(t) => t.1 = connection,
            None => self.tied.push((node, connection)),
        }
    }
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
            && self.watchers.is_empty()
            && self.spawns.is_empty()
            && self.nodes.is_empty()
            && !self.controls
    }
}
