//! Paths: from a text to the folder and the name that it leads to.

use super::inodes::{Body, Caller, Disk, Folder, InodeId, NAME_MAX, PATH_MAX, ROOT};
use crate::errno::{Answer, Errno, fail};

/// The highest number of symbolic links that a path may lead through.
const LINKS: u32 = 40;

/// The kind of the last component of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Last {
    Name,
    Dot,
    DotDot,
    /// There is none: the path is `/`.
    Root,
}

/// The place that a path leads to: a folder, and the last component, which may not exist.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: InodeId,
    pub(super) name: Vec<u8>,
    pub(super) last: Last,
    /// Whether slashes follow the last component.
    pub(super) slash: bool,
}

/// A walk along a path and the symbolic links that it meets.
pub(super) struct Walk<'a> {
    disk: &'a Disk,
    caller: &'a Caller,
    followed: u32,
}

/// A path, or the rest of a link's text, that is still to be walked.
struct Rest {
    text: Vec<u8>,
    at: usize,
}

impl Rest {
    fn new(text: Vec<u8>) -> Self {
        let mut rest = Rest { text, at: 0 };
        rest.skip_slashes();
        rest
    }

    fn skip_slashes(&mut self) {
        while self.text.get(self.at) == Some(&b'/') {
            self.at += 1;
        }
    }

    /// Takes a component and the slashes after it, and says whether there were any.
    fn take(&mut self) -> (Vec<u8>, bool) {
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|c| *c == b'/').unwrap_or(rest.len());
        let name = rest[..len].to_vec();
        self.at += len;
        let before = self.at;
        self.skip_slashes();
        (name, self.at > before)
    }

    fn is_empty(&self) -> bool {
        self.at == self.text.len()
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(disk: &'a Disk, caller: &'a Caller) -> Self {
        Walk {
            disk,
            caller,
            followed: 0,
        }
    }

    pub(super) fn disk(&self) -> &'a Disk {
        self.disk
    }

    /// Looks a name up.
    pub(super) fn child(&self, folder: InodeId, name: &[u8]) -> Answer<Option<InodeId>> {
        let Folder { names, removed, .. } = self.disk.folder(folder)?;
        if *removed {
            return fail(Errno::ENOENT);
        }
        if name.len() > NAME_MAX {
            return fail(Errno::ENAMETOOLONG);
        }
        Ok(names.get(name).copied())
    }

    /// Counts a symbolic link that is followed, and returns its text.
    fn text_of_link(&mut self, id: InodeId) -> Answer<Option<Vec<u8>>> {
        let Body::Link(text) = &self.disk.inode(id)?.body else {
            return Ok(None);
        };
        if self.followed == LINKS {
            return fail(Errno::ELOOP);
        }
        self.followed += 1;
        Ok(Some(text.clone()))
    }

    fn start(from: InodeId, text: &[u8]) -> InodeId {
        if text.starts_with(b"/") { ROOT } else { from }
    }

    /// Walks to the last component, which is not looked up.
    pub(super) fn place(&mut self, from: InodeId, path: &[u8]) -> Answer<Place> {
        if path.is_empty() {
            return fail(Errno::ENOENT);
        }
        if path.len() >= PATH_MAX {
            return fail(Errno::ENAMETOOLONG);
        }
        if path.contains(&0) {
            return Err(crate::Refusal::NotModelled("a path with a zero byte"));
        }
        let mut folder = Self::start(from, path);
        let mut rest = vec![Rest::new(path.to_vec())];
        loop {
            let depth = rest.len();
            // The last element is there until the path itself ends.
            let Some(text) = rest.last_mut() else { break };
            if text.is_empty() {
                rest.pop();
                continue;
            }
            self.disk.permit(self.caller, folder, 1)?;
            let (name, slash) = text.take();
            let last = match &name[..] {
                b"." => Last::Dot,
                b".." => Last::DotDot,
                _ => Last::Name,
            };
            if depth == 1 && text.is_empty() {
                return Ok(Place {
                    folder,
                    name,
                    last,
                    slash,
                });
            }
            match last {
                Last::DotDot => folder = self.disk.folder(folder)?.parent,
                Last::Name => {
                    let Some(id) = self.child(folder, &name)? else {
                        return fail(Errno::ENOENT);
                    };
                    match self.text_of_link(id)? {
                        Some(text) => {
                            folder = Self::start(folder, &text);
                            rest.push(Rest::new(text));
                        }
                        None => {
                            self.disk.folder(id)?;
                            folder = id;
                        }
                    }
                }
                Last::Dot | Last::Root => {}
            }
        }
        Ok(Place {
            folder,
            name: Vec::new(),
            last: Last::Root,
            slash: false,
        })
    }

    /// Follows the last component, if it is a symbolic link and `follows` says so.
    pub(super) fn step(&mut self, id: InodeId, from: InodeId, follows: bool) -> Answer<Step> {
        if follows && let Some(text) = self.text_of_link(id)? {
            return Ok(Step::Onward(self.place(from, &text)?));
        }
        Ok(Step::Found(id))
    }

    /// Returns the inode that a path names.
    pub(super) fn find(&mut self, path: &[u8], follows: bool) -> Answer<InodeId> {
        let mut place = self.place(self.caller.cwd, path)?;
        let mut is_folder = false;
        loop {
            let found = match place.last {
                Last::Name => {
                    is_folder |= place.slash;
                    let Some(id) = self.child(place.folder, &place.name)? else {
                        return fail(Errno::ENOENT);
                    };
                    self.step(id, place.folder, follows || is_folder)?
                }
                Last::DotDot => Step::Found(self.disk.folder(place.folder)?.parent),
                Last::Dot | Last::Root => Step::Found(place.folder),
            };
            match found {
                Step::Onward(next) => place = next,
                Step::Found(id) => {
                    if is_folder {
                        self.disk.folder(id)?;
                    }
                    return Ok(id);
                }
            }
        }
    }
}

/// The result of a step to the last component of a path.
pub(super) enum Step {
    Found(InodeId),
    /// It is a symbolic link that leads here.
    Onward(Place),
}
