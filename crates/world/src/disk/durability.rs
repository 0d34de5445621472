//! State of a disk after its machine has lost power.
//!
//! A file keeps what was synced and a prefix of the writes after that, the last of them torn at 512
//! bytes. Changes of names persist in order, each whole: a rename is never half done. Contents and
//! names are independent: a file whose name has persisted may be empty.

use super::inodes::{Body, Change, Disk, File, InodeId, Journal, ROOT, Unsynced};
use crate::errno::{Answer, Errno, fail};
use crate::streams::Stream;
use std::collections::{BTreeMap, BTreeSet};

/// The unit that a disk writes as a whole, in bytes.
const SECTOR: u64 = 512;

/// The part of unsynced changes that a loss of power takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// A drawn part.
    Drawn,
    /// All of it.
    All,
}

impl File {
    fn settle(&mut self) {
        if !self.unsynced.is_empty() {
            // Sparse that have not changed are shared.
            self.durable = self.live.clone();
            self.unsynced.clear();
        }
    }

    /// Applies a drawn prefix of the changes since the last sync.
    fn lose(&mut self, numbers: &mut Stream) {
        let kept = numbers.below(self.unsynced.len() as u64 + 1) as usize;
        for change in &self.unsynced[..kept] {
            match change {
                Unsynced::Write { at, data } => self.durable.write(*at, data),
                Unsynced::Length(len) => self.durable.set_len(*len),
            }
        }
        if let Some(Unsynced::Write { at, data }) = self.unsynced.get(kept) {
            // Borders of sectors within the write; one draw more tears nothing off it.
            let first = at / SECTOR + 1;
            let borders = (at + data.len() as u64).div_ceil(SECTOR) - first;
            let border = numbers.below(borders + 1);
            if border < borders {
                let n = ((first + border) * SECTOR - at) as usize;
                self.durable.write(*at, &data[..n]);
            }
        }
    }
}

impl Disk {
    pub(super) fn note(&mut self, change: Change) {
        for id in change.names.iter().filter_map(|n| n.2) {
            if let Some(inode) = self.inodes.get_mut(&id) {
                inode.durable_links += 1;
            }
        }
        self.pending.push_back(change);
    }

    /// Syncs an inode: its contents, and the changes of names that lead to it or are in it.
    pub(super) fn sync(&mut self, id: InodeId) -> Answer<()> {
        let Some(inode) = self.inodes.get_mut(&id) else {
            return fail(Errno::EIO);
        };
        if let Body::File(f) = &mut inode.body {
            f.settle();
        }
        let concerns = |c: &Change| c.about == id || c.folders().any(|f| f == id);
        match self.journal {
            Journal::Whole if self.pending.iter().any(concerns) => self.persist_names(|_| true),
            Journal::Whole => {}
            Journal::PerFolder => self.persist_leading_to(id),
        }
        Ok(())
    }

    /// Syncs everything, as the kernel does from time to time.
    pub fn sync_all(&mut self) {
        for inode in self.inodes.values_mut() {
            if let Body::File(f) = &mut inode.body {
                f.settle();
            }
        }
        self.persist_names(|_| true);
    }

    /// Persists the changes that a sync of `id` must write: those about it or in it, those about
    /// the folders that they are in, and all before them in the same folders.
    fn persist_leading_to(&mut self, id: InodeId) {
        let mut about = BTreeSet::from([id]);
        let mut folders = BTreeSet::from([id]);
        let mut all_moves = false;
        let mut chosen = BTreeSet::new();
        for (n, change) in self.pending.iter().enumerate().rev() {
            let leads = about.contains(&change.about)
                || change.folders().any(|f| folders.contains(&f))
                || all_moves && change.moves_folder;
            if leads {
                chosen.insert(n);
                all_moves |= change.moves_folder;
                folders.extend(change.folders());
                about.extend(change.folders());
            }
        }
        self.persist_names(|n| chosen.contains(&n));
    }

    /// Applies the pending changes whose numbers are chosen to the names on the disk.
    fn persist_names(&mut self, chosen: impl Fn(usize) -> bool) {
        let pending = std::mem::take(&mut self.pending);
        for (n, change) in pending.into_iter().enumerate() {
            if chosen(n) {
                change.names.into_iter().for_each(|c| self.persist(c));
            } else {
                self.pending.push_back(change);
            }
        }
    }

    fn persist(&mut self, (folder, name, owner): (InodeId, Vec<u8>, Option<InodeId>)) {
        let Ok(folder) = self.folder_mut(folder) else {
            return;
        };
        let before = match owner {
            Some(id) => folder.durable.insert(name, id),
            None => folder.durable.remove(&name),
        };
        if let Some(id) = before {
            self.drop_durable(id);
        }
    }

    fn drop_durable(&mut self, id: InodeId) {
        if let Some(inode) = self.inodes.get_mut(&id) {
            inode.durable_links -= 1;
            self.release_unless_living(id);
        }
    }

    /// Frees an inode that has lost its last name on the disk, if it has no living one either.
    fn release_unless_living(&mut self, id: InodeId) {
        let gone = self.inodes.get(&id).is_some_and(|i| {
            i.links == 0 && i.opens == 0 && i.durable_links == 0 && !i.is_folder()
        });
        if gone {
            self.inodes.remove(&id);
        }
    }

    /// Loses the power: the disk is then as its machine finds it when it starts again. Everything
    /// that was open is refused from then on.
    pub fn power(&mut self, loss: Loss, numbers: &mut Stream) {
        if loss == Loss::Drawn {
            self.persist_drawn(numbers);
        }
        self.pending.clear();
        self.life += 1;
        for inode in self.inodes.values_mut() {
            inode.opens = 0;
            inode.links = 0;
            if let Body::File(f) = &mut inode.body {
                if loss == Loss::Drawn {
                    f.lose(numbers);
                }
                f.unsynced.clear();
                f.live = f.durable.clone();
            }
        }
        self.rebuild();
    }

    /// Persists a drawn part of the pending changes.
    fn persist_drawn(&mut self, numbers: &mut Stream) {
        let all = self.pending.len() as u64 + 1;
        if self.journal == Journal::Whole {
            let kept = numbers.below(all) as usize;
            return self.persist_names(|n| n < kept);
        }
        // For each folder an end is drawn. A change persists if it comes before the end of every
        // folder that it touches.
        let mut ends: BTreeMap<InodeId, usize> = BTreeMap::new();
        for change in &self.pending {
            for folder in change.folders() {
                ends.entry(folder)
                    .or_insert_with(|| numbers.below(all) as usize);
            }
        }
        let mut stopped: BTreeSet<InodeId> = BTreeSet::new();
        let mut moves_stopped = false;
        let mut chosen = BTreeSet::new();
        for (n, change) in self.pending.iter().enumerate() {
            let stops = change
                .folders()
                .any(|f| stopped.contains(&f) || n >= ends[&f])
                || change.moves_folder && moves_stopped;
            if stops {
                stopped.extend(change.folders());
                moves_stopped |= change.moves_folder;
            } else {
                chosen.insert(n);
            }
        }
        self.persist_names(|n| chosen.contains(&n));
    }

    /// Makes the living names those on the disk, and frees what has none.
    fn rebuild(&mut self) {
        let mut reached = BTreeMap::from([(ROOT, 1)]);
        let mut todo = vec![ROOT];
        while let Some(at) = todo.pop() {
            let Ok(folder) = self.folder_mut(at) else {
                continue;
            };
            folder.names = folder.durable.clone();
            folder.removed = false;
            for id in folder.durable.clone().into_values() {
                let links = reached.entry(id).or_insert(0);
                *links += 1;
                if *links == 1
                    && let Ok(child) = self.folder_mut(id)
                {
                    child.parent = at;
                    todo.push(id);
                }
            }
        }
        self.inodes.retain(|id, _| reached.contains_key(id));
        self.used = 0;
        for (id, inode) in &mut self.inodes {
            inode.links = reached[id];
            inode.durable_links = reached[id];
            if let Body::File(f) = &inode.body {
                self.used += f.live.count();
            }
        }
    }
}
