//! Calls that read and change names.
//!
//! Each call checks in the kernel's order: which error a call has where several fit depends on it.

use super::inodes::{Body, Caller, Change, Disk, Folder, InodeId, PATH_MAX, ROOT, Stat};
use super::walk::{Last, Place, Walk};
use crate::errno::{Answer, Errno, Refusal, fail};

impl Disk {
    /// Returns the state of what a path names; of a symbolic link itself unless `follows`.
    pub fn stat(&self, caller: &Caller, path: &[u8], follows: bool) -> Answer<Stat> {
        let id = Walk::new(self, caller).find(path, follows)?;
        self.stat_of(id)
    }

    /// Checks permissions: 4 reads, 2 writes, 1 executes, 0 asks for existence.
    pub fn access(&self, caller: &Caller, path: &[u8], wanted: u32) -> Answer<()> {
        if wanted & !7 != 0 {
            return fail(Errno::EINVAL);
        }
        let id = Walk::new(self, caller).find(path, true)?;
        self.permit(caller, id, wanted)
    }

    /// Sets permissions.
    pub fn chmod(&mut self, caller: &Caller, path: &[u8], mode: u32) -> Answer<()> {
        if mode & !0o777 != 0 {
            return Err(Refusal::NotModelled("set-id and sticky bits"));
        }
        let id = Walk::new(self, caller).find(path, true)?;
        self.inode_mut(id)?.mode = mode;
        Ok(())
    }

    /// Returns the folder that becomes the working directory.
    pub fn chdir(&self, caller: &Caller, path: &[u8]) -> Answer<InodeId> {
        let id = Walk::new(self, caller).find(path, true)?;
        self.folder(id)?;
        self.permit(caller, id, 1)?;
        Ok(id)
    }

    /// Returns the path of the working directory.
    pub fn getcwd(&self, caller: &Caller) -> Answer<Vec<u8>> {
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut id = caller.cwd;
        while id != ROOT {
            let folder = self.folder(id)?;
            if folder.removed {
                return fail(Errno::ENOENT);
            }
            let mut above = self.folder(folder.parent)?.names.iter();
            let name = above.find(|(_, child)| **child == id);
            parts.push(name.ok_or(Refusal::Errno(Errno::ENOENT))?.0);
            id = folder.parent;
        }
        if parts.is_empty() {
            return Ok(b"/".to_vec());
        }
        let mut path = Vec::new();
        for part in parts.into_iter().rev() {
            path.push(b'/');
            path.extend_from_slice(part);
        }
        Ok(path)
    }

    /// Returns the names in a folder, sorted: none if it was removed, as `readdir` has it.
    pub fn list(&self, caller: &Caller, path: &[u8]) -> Answer<Vec<Vec<u8>>> {
        let id = Walk::new(self, caller).find(path, true)?;
        let folder = self.folder(id)?;
        self.permit(caller, id, 4)?;
        Ok(folder.names.keys().cloned().collect())
    }

    /// Returns the text of a symbolic link.
    pub fn readlink(&self, caller: &Caller, path: &[u8]) -> Answer<Vec<u8>> {
        let id = Walk::new(self, caller).find(path, false)?;
        match &self.inode(id)?.body {
            Body::Link(text) => Ok(text.clone()),
            _ => fail(Errno::EINVAL),
        }
    }

    /// Finds the place of a name that is to be made. `folder` says that slashes may follow it.
    fn vacant(&self, caller: &Caller, path: &[u8], folder: bool) -> Answer<Place> {
        let mut walk = Walk::new(self, caller);
        let place = walk.place(caller.cwd, path)?;
        if place.last != Last::Name || walk.child(place.folder, &place.name)?.is_some() {
            return fail(Errno::EEXIST);
        }
        if place.slash && !folder {
            return fail(Errno::ENOENT);
        }
        self.permit(caller, place.folder, 3)?;
        Ok(place)
    }

    /// Makes a folder.
    pub fn mkdir(&mut self, caller: &Caller, path: &[u8], mode: u32) -> Answer<()> {
        if mode & !0o777 != 0 {
            return Err(Refusal::NotModelled("set-id and sticky bits"));
        }
        let place = self.vacant(caller, path, true)?;
        let body = Body::Folder(Folder::below(place.folder));
        let id = self.make(mode & !caller.umask, body);
        self.add_name(place.folder, &place.name, id)
    }

    /// Makes a symbolic link with a text.
    pub fn symlink(&mut self, caller: &Caller, text: &[u8], path: &[u8]) -> Answer<()> {
        if text.is_empty() {
            return fail(Errno::ENOENT);
        }
        if text.len() >= PATH_MAX {
            return fail(Errno::ENAMETOOLONG);
        }
        let place = self.vacant(caller, path, false)?;
        let id = self.make(0o777, Body::Link(text.to_vec()));
        self.add_name(place.folder, &place.name, id)
    }

    /// Gives a file another name.
    pub fn link(&mut self, caller: &Caller, from: &[u8], to: &[u8]) -> Answer<()> {
        let id = Walk::new(self, caller).find(from, false)?;
        let place = self.vacant(caller, to, false)?;
        if self.inode(id)?.is_folder() {
            return fail(Errno::EPERM);
        }
        self.add_name(place.folder, &place.name, id)
    }

    /// Checks that a name may be removed from its folder, to be one of a folder or of none.
    fn may_delete(&self, caller: &Caller, from: InodeId, id: InodeId, folder: bool) -> Answer<()> {
        self.permit(caller, from, 3)?;
        match (folder, self.inode(id)?.is_folder()) {
            (true, false) => fail(Errno::ENOTDIR),
            (false, true) => fail(Errno::EISDIR),
            _ => Ok(()),
        }
    }

    /// Removes the name of a file or symbolic link.
    pub fn unlink(&mut self, caller: &Caller, path: &[u8]) -> Answer<()> {
        let mut walk = Walk::new(self, caller);
        let place = walk.place(caller.cwd, path)?;
        if place.last != Last::Name {
            return fail(Errno::EISDIR);
        }
        let Some(id) = walk.child(place.folder, &place.name)? else {
            return fail(Errno::ENOENT);
        };
        if place.slash {
            let is_folder = self.inode(id)?.is_folder();
            return fail(if is_folder {
                Errno::EISDIR
            } else {
                Errno::ENOTDIR
            });
        }
        self.may_delete(caller, place.folder, id, false)?;
        self.remove_name(place.folder, &place.name, id)
    }

    /// Removes an empty folder.
    pub fn rmdir(&mut self, caller: &Caller, path: &[u8]) -> Answer<()> {
        let mut walk = Walk::new(self, caller);
        let place = walk.place(caller.cwd, path)?;
        match place.last {
            Last::Name => {}
            Last::Dot => return fail(Errno::EINVAL),
            Last::DotDot => return fail(Errno::ENOTEMPTY),
            Last::Root => return fail(Errno::EBUSY),
        }
        let Some(id) = walk.child(place.folder, &place.name)? else {
            return fail(Errno::ENOENT);
        };
        self.may_delete(caller, place.folder, id, true)?;
        if !self.folder(id)?.names.is_empty() {
            return fail(Errno::ENOTEMPTY);
        }
        self.remove_name(place.folder, &place.name, id)
    }

    /// Renames, in place of whatever has the new name.
    pub fn rename(&mut self, caller: &Caller, from: &[u8], to: &[u8]) -> Answer<()> {
        let old = Walk::new(self, caller).place(caller.cwd, from)?;
        let new = Walk::new(self, caller).place(caller.cwd, to)?;
        if old.last != Last::Name || new.last != Last::Name {
            return fail(Errno::EBUSY);
        }
        let walk = Walk::new(self, caller);
        let Some(id) = walk.child(old.folder, &old.name)? else {
            return fail(Errno::ENOENT);
        };
        let target = walk.child(new.folder, &new.name)?;
        let is_folder = self.inode(id)?.is_folder();
        if !is_folder && (old.slash || new.slash) {
            return fail(Errno::ENOTDIR);
        }
        let moves = old.folder != new.folder;
        if moves && self.is_above(id, new.folder)? {
            return fail(Errno::EINVAL);
        }
        if moves && target.is_some_and(|t| self.is_above(t, old.folder) == Ok(true)) {
            return fail(Errno::ENOTEMPTY);
        }
        if target == Some(id) {
            return Ok(());
        }
        self.may_delete(caller, old.folder, id, is_folder)?;
        match target {
            Some(target) => self.may_delete(caller, new.folder, target, is_folder)?,
            None => self.permit(caller, new.folder, 3)?,
        }
        if is_folder && moves {
            self.permit(caller, id, 2)?;
        }
        if let Some(target) = target
            && is_folder
            && !self.folder(target)?.names.is_empty()
        {
            return fail(Errno::ENOTEMPTY);
        }
        self.move_name(&old, &new, id, target)
    }

    /// Whether a folder is `below` or above it.
    fn is_above(&self, id: InodeId, below: InodeId) -> Answer<bool> {
        let mut at = below;
        loop {
            if at == id {
                return Ok(true);
            }
            let parent = self.folder(at)?.parent;
            if parent == at {
                return Ok(false);
            }
            at = parent;
        }
    }

    pub(super) fn add_name(&mut self, folder: InodeId, name: &[u8], id: InodeId) -> Answer<()> {
        self.folder_mut(folder)?.names.insert(name.to_vec(), id);
        self.inode_mut(id)?.links += 1;
        self.note(Change {
            names: vec![(folder, name.to_vec(), Some(id))],
            about: id,
            moves_folder: false,
        });
        Ok(())
    }

    /// Takes a living name from an inode.
    fn unname(&mut self, id: InodeId) -> Answer<()> {
        let inode = self.inode_mut(id)?;
        inode.links -= 1;
        if let Body::Folder(f) = &mut inode.body {
            f.removed = true;
        }
        Ok(())
    }

    fn remove_name(&mut self, folder: InodeId, name: &[u8], id: InodeId) -> Answer<()> {
        self.folder_mut(folder)?.names.remove(name);
        self.unname(id)?;
        self.note(Change {
            names: vec![(folder, name.to_vec(), None)],
            about: id,
            moves_folder: false,
        });
        self.release(id);
        Ok(())
    }

    fn move_name(
        &mut self,
        old: &Place,
        new: &Place,
        id: InodeId,
        target: Option<InodeId>,
    ) -> Answer<()> {
        self.folder_mut(old.folder)?.names.remove(&old.name);
        self.folder_mut(new.folder)?
            .names
            .insert(new.name.clone(), id);
        let mut moves_folder = false;
        if let Body::Folder(f) = &mut self.inode_mut(id)?.body {
            f.parent = new.folder;
            moves_folder = old.folder != new.folder;
        }
        if let Some(target) = target {
            self.unname(target)?;
        }
        self.note(Change {
            names: vec![
                (new.folder, new.name.clone(), Some(id)),
                (old.folder, old.name.clone(), None),
            ],
            about: id,
            moves_folder,
        });
        if let Some(target) = target {
            self.release(target);
        }
        Ok(())
    }
}
