//! Inodes: files, folders and symbolic links, with their names and permissions.
//!
//! # Invariants
//! * An inode exists as long as a name or a descriptor leads to it, or may do so again after a loss
//!   of power.
//! * A removed folder stays as long as the disk.

use super::sparse::{BLOCK, Sparse};
use crate::errno::{Answer, Errno, Refusal, fail};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A file, folder or symbolic link. Numbers are never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InodeId(u64);

impl InodeId {
    /// Returns the number that `stat` shows.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The root folder of every disk.
pub const ROOT: InodeId = InodeId(2);

/// The highest offset that is modelled.
pub(super) const OFFSETS: u64 = 1 << 40;

/// The longest name, in bytes.
pub(super) const NAME_MAX: usize = 255;

/// The length from which a path is too long.
pub(super) const PATH_MAX: usize = 4096;

/// The process that makes a call, as far as paths and permissions depend on it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The working directory, from `chdir` or [`ROOT`].
    pub cwd: InodeId,
    pub umask: u32,
    /// Whether permissions hold no call back, as for root.
    pub privileged: bool,
}

/// The kind of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    File,
    Folder,
    Link,
}

/// The result of `stat`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    pub inode: InodeId,
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    pub links: u32,
    /// Size in bytes. Folders have 4096.
    pub size: u64,
}

#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) live: Sparse,
    /// The contents that are on the disk for sure.
    pub(super) durable: Sparse,
    /// Changes since, in order: `live` is `durable` with all of them.
    pub(super) unsynced: Vec<Unsynced>,
}

#[derive(Clone, Debug)]
pub(super) enum Unsynced {
    Write { at: u64, data: Arc<[u8]> },
    Length(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Folder {
    /// The folder above. A removed folder keeps it, as on Linux.
    pub(super) parent: InodeId,
    pub(super) names: BTreeMap<Vec<u8>, InodeId>,
    /// The names that are on the disk for sure.
    pub(super) durable: BTreeMap<Vec<u8>, InodeId>,
    pub(super) removed: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    File(File),
    Folder(Folder),
    Link(Vec<u8>),
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) mode: u32,
    /// Names in living folders.
    pub(super) links: u32,
    /// Descriptors.
    pub(super) opens: u32,
    /// Names on the disk or in changes that are not there yet.
    pub(super) durable_links: u32,
    pub(super) body: Body,
}

impl Inode {
    pub(super) fn is_folder(&self) -> bool {
        matches!(self.body, Body::Folder(_))
    }
}

/// A file system.
#[derive(Clone, Debug)]
pub struct Disk {
    pub(super) inodes: BTreeMap<InodeId, Inode>,
    next: u64,
    pub(super) journal: Journal,
    /// Changes of names that are not on the disk, in order.
    pub(super) pending: VecDeque<Change>,
    /// Number of blocks that files may have.
    pub(super) limit: u64,
    pub(super) used: u64,
    /// Number of times the power went.
    pub(super) life: u64,
}

impl Disk {
    /// Returns an empty file system of `bytes` that syncs names as `journal` says.
    pub fn new(bytes: u64, journal: Journal) -> Self {
        let root = Inode {
            mode: 0o755,
            links: 1,
            opens: 0,
            durable_links: 1,
            body: Body::Folder(Folder::below(ROOT)),
        };
        Disk {
            inodes: BTreeMap::from([(ROOT, root)]),
            next: ROOT.0 + 1,
            journal,
            pending: VecDeque::new(),
            limit: bytes / BLOCK,
            used: 0,
            life: 0,
        }
    }

    /// Returns the bytes that files take, in whole blocks.
    pub fn used(&self) -> u64 {
        self.used * BLOCK
    }

    pub(super) fn inode(&self, id: InodeId) -> Answer<&Inode> {
        self.inodes.get(&id).ok_or(GONE)
    }

    pub(super) fn inode_mut(&mut self, id: InodeId) -> Answer<&mut Inode> {
        self.inodes.get_mut(&id).ok_or(GONE)
    }

    pub(super) fn folder(&self, id: InodeId) -> Answer<&Folder> {
        match &self.inode(id)?.body {
            Body::Folder(f) => Ok(f),
            _ => fail(Errno::ENOTDIR),
        }
    }

    pub(super) fn folder_mut(&mut self, id: InodeId) -> Answer<&mut Folder> {
        match &mut self.inode_mut(id)?.body {
            Body::Folder(f) => Ok(f),
            _ => fail(Errno::ENOTDIR),
        }
    }

    pub(super) fn file_mut(&mut self, id: InodeId) -> Answer<&mut File> {
        match &mut self.inode_mut(id)?.body {
            Body::File(f) => Ok(f),
            _ => fail(Errno::EINVAL),
        }
    }

    /// Makes an inode without a name.
    pub(super) fn make(&mut self, mode: u32, body: Body) -> InodeId {
        let id = InodeId(self.next);
        self.next += 1;
        let inode = Inode {
            mode,
            links: 0,
            opens: 0,
            durable_links: 0,
            body,
        };
        self.inodes.insert(id, inode);
        id
    }

    /// Frees an inode that nothing leads to any more. Folders stay as long as the disk: working
    /// directories and `..` of other removed folders may lead to them.
    pub(super) fn release(&mut self, id: InodeId) {
        let Some(inode) = self.inodes.get_mut(&id) else {
            return;
        };
        if inode.links > 0 || inode.opens > 0 {
            return;
        }
        match &mut inode.body {
            Body::Folder(_) => {}
            // The space is free, though the disk may still have the file after a loss of power.
            Body::File(f) => {
                self.used -= f.live.count();
                f.live = Sparse::default();
                if inode.durable_links == 0 {
                    self.inodes.remove(&id);
                }
            }
            Body::Link(_) if inode.durable_links == 0 => _ = self.inodes.remove(&id),
            Body::Link(_) => {}
        }
    }

    /// Whether the caller has the permissions `wanted` (4 reads, 2 writes, 1 executes).
    pub(super) fn permit(&self, caller: &Caller, id: InodeId, wanted: u32) -> Answer<()> {
        let inode = self.inode(id)?;
        let executes = wanted & 1 != 0;
        let allowed = if caller.privileged {
            !executes || inode.is_folder() || inode.mode & 0o111 != 0
        } else {
            // A link's permissions are never asked for.
            matches!(inode.body, Body::Link(_)) || inode.mode >> 6 & wanted == wanted
        };
        if allowed { Ok(()) } else { fail(Errno::EACCES) }
    }

    pub(super) fn stat_of(&self, id: InodeId) -> Answer<Stat> {
        let inode = self.inode(id)?;
        let (kind, size, links) = match &inode.body {
            Body::File(f) => (Kind::File, f.live.len(), inode.links),
            Body::Link(to) => (Kind::Link, to.len() as u64, inode.links),
            Body::Folder(f) if f.removed => (Kind::Folder, 4096, 0),
            Body::Folder(f) => {
                let folders = f.names.values().filter(|id| {
                    let inode = self.inodes.get(id);
                    inode.is_some_and(Inode::is_folder)
                });
                (Kind::Folder, 4096, 2 + folders.count() as u32)
            }
        };
        Ok(Stat {
            inode: id,
            kind,
            mode: inode.mode,
            links,
            size,
        })
    }
}

impl Folder {
    pub(super) fn below(parent: InodeId) -> Self {
        Folder {
            parent,
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            removed: false,
        }
    }
}

/// The answer about an inode that no longer exists: a descriptor or working directory from before
/// the power went.
pub(super) const GONE: Refusal = Refusal::NotModelled("an inode from before a loss of power");

/// The order in which changes of names reach the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Journal {
    /// One order for all folders, as ext4 has: a sync that writes one change writes all before it.
    Whole,
    /// An order for each folder: a sync writes the changes that lead to what is synced, and those
    /// before them in the same folders. Any file system that keeps POSIX may do that.
    PerFolder,
}

/// A change of names that persists whole or not at all.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Folders, names and new owners of the names.
    pub(super) names: Vec<(InodeId, Vec<u8>, Option<InodeId>)>,
    /// The inode that gets or loses a name.
    pub(super) about: InodeId,
    /// Whether a folder moves to another one. Such changes persist in order among each other, so
    /// that no folder gets below itself.
    pub(super) moves_folder: bool,
}

impl Change {
    pub(super) fn folders(&self) -> impl Iterator<Item = InodeId> {
        self.names.iter().map(|n| n.0)
    }
}
