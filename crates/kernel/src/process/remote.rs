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

/// A reference that another node has chosen for a monitor, as a key. It may be of any node, this
/// one included.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RemoteRef {
    home: Home,
    numbers: SmallVec<[u32; 5]>,
}

/// Where a reference was made.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Home {
    There(Held),
    /// On this node, perhaps with the pid of an alias.
    Here(Option<Term>),
}

impl RemoteRef {
    /// Returns the key of a reference; `None` for any other term.
    pub fn of(t: Term) -> Option<RemoteRef> {
        let view = t.as_ref_view()?;
        let (home, numbers) = match &view {
            RefView::External { node, nums } => {
                (Home::There(Held::of(node)), SmallVec::from_slice(nums))
            }
            RefView::Local { num, pid } => (Home::Here(*pid), SmallVec::from_slice(num)),
            RefView::Magic(m) => (Home::Here(None), SmallVec::from_slice(&m.num)),
        };
        Some(RemoteRef { home, numbers })
    }
    /// Returns its node; `None` for this one.
    pub fn node(&self) -> Option<&Node> {
        match &self.home {
            Home::There(node) => Some(node),
            Home::Here(_) => None,
        }
    }
    /// Returns the reference, in a block of its own.
    pub fn owned(&self) -> OwnedTerm {
        let mut f = Fragment::new();
        let t = match (&self.home, &self.numbers[..]) {
            (Home::There(node), numbers) => f.external_ref(node.counted(), numbers),
            (Home::Here(Some(pid)), &[a, b, c]) => f.pid_ref([a, b, c], *pid),
            (Home::Here(_), &[a, b, c, ..]) => f.local_ref([a, b, c]),
            (Home::Here(_), _) => unreachable!("references of this node have three numbers"),
        };
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

/// The processes of other nodes that monitor this one, by reference. A node may use one reference
/// several times.
#[derive(Default)]
pub struct Watchers {
    /// Other nodes choose the references, so this hash is keyed. No list is empty.
    by_reference: HashMap<RemoteRef, SmallVec<[Watcher; 1]>>,
    /// Number of all watchers.
    number: usize,
}

impl Watchers {
    pub fn len(&self) -> usize {
        self.number
    }
    pub fn is_empty(&self) -> bool {
        self.number == 0
    }
    pub fn insert(&mut self, reference: RemoteRef, w: Watcher) {
        self.by_reference.entry(reference).or_default().push(w);
        self.number += 1;
    }
    /// Removes the last watcher with that reference that `goes` accepts, if there is one.
    pub fn remove(&mut self, reference: &RemoteRef, goes: impl FnMut(&Watcher) -> bool) {
        let Some(list) = self.by_reference.get_mut(reference) else {
            return;
        };
        let Some(i) = list.iter().rposition(goes) else {
            return;
        };
        list.remove(i);
        self.number -= 1;
        if list.is_empty() {
            self.by_reference.remove(reference);
        }
    }
    pub fn retain(&mut self, mut stays: impl FnMut(&Watcher) -> bool) {
        self.by_reference.retain(|_, list| {
            let before = list.len();
            list.retain(|w| stays(w));
            self.number -= before - list.len();
            !list.is_empty()
        });
    }
    pub fn iter(&self) -> impl Iterator<Item = (&RemoteRef, &Watcher)> {
        let all = self.by_reference.iter();
        all.flat_map(|(r, list)| list.iter().map(move |w| (r, w)))
    }
    /// Removes all.
    pub fn drain(&mut self) -> impl Iterator<Item = (RemoteRef, Watcher)> {
        self.number = 0;
        let all = self.by_reference.drain();
        all.flat_map(|(r, list)| list.into_iter().map(move |w| (r.clone(), w)))
    }
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
    pub watchers: Watchers,
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
