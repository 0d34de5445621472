//! Opening, and the calls on what is open.

use super::inodes::{Body, Caller, Disk, File, GONE, InodeId, OFFSETS, Stat, Unsynced};
use super::walk::{Last, Place, Step, Walk};
use crate::errno::{Answer, Errno, Refusal, fail};
use std::sync::Arc;

/// The access mode of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
    ReadWrite,
}

/// The flags of `open`. Flags that are not here are not modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    pub access: Access,
    /// `O_CREAT`.
    pub create: bool,
    /// `O_EXCL`, modelled with `create` only.
    pub exclusive: bool,
    /// `O_TRUNC`.
    pub truncate: bool,
    /// `O_APPEND`.
    pub append: bool,
    /// `O_DIRECTORY`.
    pub directory: bool,
    /// `O_NOFOLLOW`.
    pub no_follow: bool,
    /// `O_SYNC` or `O_DSYNC`: each write is synced.
    pub sync: bool,
}

impl How {
    /// Returns the flags of a descriptor with this access and nothing else.
    pub fn new(access: Access) -> Self {
        How {
            access,
            create: false,
            exclusive: false,
            truncate: false,
            append: false,
            directory: false,
            no_follow: false,
            sync: false,
        }
    }
}

/// An open file description.
#[derive(Clone, Debug)]
pub struct Opened {
    inode: InodeId,
    how: How,
    offset: u64,
    life: u64,
}

/// The place that `seek` counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whence {
    Set,
    Current,
    End,
}

/// Returns a length or an offset that the model has.
fn modelled(n: i64) -> Answer<u64> {
    match u64::try_from(n) {
        Ok(n) if n <= OFFSETS => Ok(n),
        Ok(_) => Err(Refusal::NotModelled("an offset above 1 TiB")),
        Err(_) => fail(Errno::EINVAL),
    }
}

impl Disk {
    /// Opens a path; `mode` is for a file that is created.
    pub fn open(&mut self, caller: &Caller, path: &[u8], how: How, mode: u32) -> Answer<Opened> {
        if how.exclusive && !how.create {
            return Err(Refusal::NotModelled("O_EXCL without O_CREAT"));
        }
        if how.create && how.directory {
            // EINVAL since Linux 6.4; before, the file was made, and then the call failed.
            return Err(Refusal::NotModelled("O_CREAT with O_DIRECTORY"));
        }
        if mode & !0o777 != 0 {
            return Err(Refusal::NotModelled("set-id and sticky bits"));
        }
        let (inode, is_new) = self.find_or_create(caller, path, how, mode)?;
        if !is_new {
            self.may_open(caller, inode, how)?;
            if how.truncate && matches!(self.inode(inode)?.body, Body::File(_)) {
                self.set_length(inode, 0)?;
            }
        }
        self.inode_mut(inode)?.opens += 1;
        Ok(Opened {
            inode,
            how,
            offset: 0,
            life: self.life,
        })
    }

    /// Returns the inode that `open` is about, and whether it was created.
    fn find_or_create(
        &mut self,
        caller: &Caller,
        path: &[u8],
        how: How,
        mode: u32,
    ) -> Answer<(InodeId, bool)> {
        let mut follows = !(how.no_follow || how.create && how.exclusive);
        let mut walk = Walk::new(self, caller);
        let mut place = walk.place(caller.cwd, path)?;
        let mut is_folder = how.directory;
        let id = loop {
            if place.last == Last::Name {
                if how.create && place.slash {
                    return fail(Errno::EISDIR);
                }
                is_folder |= place.slash;
                follows |= place.slash;
                let Some(id) = walk.child(place.folder, &place.name)? else {
                    if how.create {
                        return self.create(caller, &place, mode);
                    }
                    return fail(Errno::ENOENT);
                };
                match walk.step(id, place.folder, follows)? {
                    Step::Found(id) => break id,
                    Step::Onward(next) => place = next,
                }
            } else if place.last == Last::DotDot {
                break walk.disk().folder(place.folder)?.parent;
            } else {
                break place.folder;
            }
        };
        let inode = self.inode(id)?;
        if how.create {
            if how.exclusive {
                return fail(Errno::EEXIST);
            }
            if inode.is_folder() {
                return fail(Errno::EISDIR);
            }
        }
        if is_folder && !inode.is_folder() {
            return fail(Errno::ENOTDIR);
        }
        Ok((id, false))
    }

    fn create(&mut self, caller: &Caller, place: &Place, mode: u32) -> Answer<(InodeId, bool)> {
        self.permit(caller, place.folder, 3)?;
        let body = Body::File(File {
            live: Default::default(),
            durable: Default::default(),
            unsynced: Vec::new(),
        });
        let id = self.make(mode & !caller.umask, body);
        self.add_name(place.folder, &place.name, id)?;
        Ok((id, true))
    }

    /// Checks the permissions of what is opened.
    fn may_open(&self, caller: &Caller, id: InodeId, how: How) -> Answer<()> {
        let writes = how.access != Access::Read || how.truncate;
        match self.inode(id)?.body {
            Body::Link(_) => return fail(Errno::ELOOP),
            Body::Folder(_) if writes => return fail(Errno::EISDIR),
            _ => {}
        }
        let reads = if how.access == Access::Write { 0 } else { 4 };
        self.permit(caller, id, reads | if writes { 2 } else { 0 })
    }

    /// Closes a description.
    pub fn close(&mut self, opened: Opened) {
        if opened.life == self.life
            && let Some(inode) = self.inodes.get_mut(&opened.inode)
        {
            inode.opens -= 1;
            self.release(opened.inode);
        }
    }

    /// Returns the file that is open, if the access mode allows what is wanted.
    fn opened_file(&mut self, opened: &Opened, but: Access) -> Answer<&mut File> {
        if opened.life != self.life {
            return Err(GONE);
        }
        if opened.how.access == but {
            return fail(Errno::EBADF);
        }
        match &mut self.inode_mut(opened.inode)?.body {
            Body::File(f) => Ok(f),
            _ => fail(Errno::EISDIR),
        }
    }

    /// Reads from the offset on.
    pub fn read(&mut self, opened: &mut Opened, len: usize) -> Answer<Vec<u8>> {
        let at = opened.offset;
        let data = self.opened_file(opened, Access::Write)?.live.read(at, len);
        opened.offset += data.len() as u64;
        Ok(data)
    }

    /// Reads from a place.
    pub fn pread(&mut self, opened: &Opened, len: usize, at: i64) -> Answer<Vec<u8>> {
        let at = modelled(at)?;
        Ok(self.opened_file(opened, Access::Write)?.live.read(at, len))
    }

    /// Writes at the offset, or at the end, and returns the number of bytes written.
    pub fn write(&mut self, opened: &mut Opened, data: &[u8]) -> Answer<usize> {
        let (n, end) = self.write_at(opened, data, opened.offset)?;
        if n > 0 {
            opened.offset = end;
        }
        Ok(n)
    }

    /// Writes at a place; at the end if the description appends, as on Linux.
    pub fn pwrite(&mut self, opened: &Opened, data: &[u8], at: i64) -> Answer<usize> {
        let at = modelled(at)?;
        Ok(self.write_at(opened, data, at)?.0)
    }

    /// Writes, and returns the number of bytes and the place behind them.
    fn write_at(&mut self, opened: &Opened, data: &[u8], at: u64) -> Answer<(usize, u64)> {
        let free = self.limit.saturating_sub(self.used);
        let file = self.opened_file(opened, Access::Read)?;
        if data.is_empty() {
            return Ok((0, at));
        }
        let at = if opened.how.append {
            file.live.len()
        } else {
            at
        };
        if at + data.len() as u64 > OFFSETS {
            return Err(Refusal::NotModelled("an offset above 1 TiB"));
        }
        let n = file.live.fitting(at, data.len(), free);
        if n == 0 {
            return fail(Errno::ENOSPC);
        }
        let data: Arc<[u8]> = data[..n].into();
        let before = file.live.count();
        file.live.write(at, &data);
        let added = file.live.count() - before;
        file.unsynced.push(Unsynced::Write { at, data });
        self.used += added;
        if opened.how.sync {
            self.sync(opened.inode)?;
        }
        Ok((n, at + n as u64))
    }

    /// Moves the offset, and returns it.
    pub fn seek(&mut self, opened: &mut Opened, by: i64, whence: Whence) -> Answer<u64> {
        if opened.life != self.life {
            return Err(GONE);
        }
        let Body::File(file) = &self.inode(opened.inode)?.body else {
            return Err(Refusal::NotModelled("a seek in a folder"));
        };
        let from = match whence {
            Whence::Set => 0,
            Whence::Current => opened.offset,
            Whence::End => file.live.len(),
        };
        // Both are at most 2^40, or the sum does not overflow downwards.
        opened.offset = modelled((from as i64).saturating_add(by))?;
        Ok(opened.offset)
    }

    /// Sets the length of what is open.
    pub fn ftruncate(&mut self, opened: &Opened, len: i64) -> Answer<()> {
        let len = modelled(len)?;
        if opened.life != self.life {
            return Err(GONE);
        }
        if opened.how.access == Access::Read {
            return fail(Errno::EINVAL);
        }
        self.file_mut(opened.inode)?;
        self.set_length(opened.inode, len)
    }

    fn set_length(&mut self, id: InodeId, len: u64) -> Answer<()> {
        let file = self.file_mut(id)?;
        if file.live.len() == len {
            return Ok(());
        }
        let before = file.live.count();
        file.live.set_len(len);
        let freed = before - file.live.count();
        file.unsynced.push(Unsynced::Length(len));
        self.used -= freed;
        Ok(())
    }

    /// Returns the state of what is open.
    pub fn fstat(&self, opened: &Opened) -> Answer<Stat> {
        if opened.life != self.life {
            return Err(GONE);
        }
        self.stat_of(opened.inode)
    }

    /// Syncs what is open: contents and names (`fsync`, `fdatasync`).
    pub fn fsync(&mut self, opened: &Opened) -> Answer<()> {
        if opened.life != self.life {
            return Err(GONE);
        }
        self.sync(opened.inode)
    }
}
