//! Folders that only their owner may change, in places that others may own.
//!
//! An environment is inherited: after `su` the variables of root may name a folder of somebody else, who could exchange what lies in
//! it for links, between a look at it and its use. So a folder is looked at once, through a descriptor that is held open, and all
//! that is done in it is done through that.
//!
//! # Invariants
//! * A [`Private`] belongs to the effective user, and nobody else may enter it.
//! * What it was made in belongs to that user or to root, and nobody else may rename what lies there. That holds of all that leads
//!   there, too: a link of somebody else's would choose the place.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The user that files are made as.
pub fn user() -> u32 {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether nobody but the user and root can exchange what lies in a folder of this kind.
fn is_safe_parent(meta: &fs::Metadata) -> bool {
    let shared = meta.mode() & 0o022 != 0;
    let sticky = meta.mode() & 0o1000 != 0;
    meta.is_dir() && (meta.uid() == user() || meta.uid() == 0) && (!shared || sticky)
}

/// Whether the way to a folder leads only through folders in which nobody but the user and root can exchange anything: as it is named,
/// for who may exchange a link chooses where it leads, and as it is without links. Folders that are not there yet don't count.
pub fn is_safe_way(path: &Path) -> bool {
    let there = path
        .ancestors()
        .find_map(|p| Some((p, fs::canonicalize(p).ok()?)));
    there.is_some_and(|(named, real)| {
        named
            .ancestors()
            .chain(real.ancestors())
            .filter(|p| !p.as_os_str().is_empty())
            .all(|p| fs::metadata(p).is_ok_and(|meta| is_safe_parent(&meta)))
    })
}

fn denied() -> io::Error {
    io::ErrorKind::PermissionDenied.into()
}

fn name(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// A call's result, or its error.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        n => Ok(n),
    }
}

/// A private folder that is held open.
pub struct Private {
    folder: OwnedFd,
    path: PathBuf,
}

impl Private {
    /// Makes the folder if it isn't there. What it is to lie in is there already, or it is refused.
    pub fn make(path: &Path) -> io::Result<Private> {
        let (Some(parent), Some(last)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if !is_safe_way(parent) {
            return Err(denied());
        }
        let parent = File::open(parent)?;
        if !is_safe_parent(&parent.metadata()?) {
            return Err(denied());
        }
        let last = name(last)?;
        // SAFETY: a descriptor in hand, and a text that ends.
        let made = checked(unsafe { libc::mkdirat(parent.as_raw_fd(), last.as_ptr(), 0o700) });
        match made {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let how = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: as above.
        let fd = checked(unsafe { libc::openat(parent.as_raw_fd(), last.as_ptr(), how) })?;
        // SAFETY: a descriptor that nobody else has.
        let folder = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let meta = folder.metadata()?;
        if meta.uid() != user() {
            return Err(denied());
        }
        if meta.mode() & 0o077 != 0 {
            // SAFETY: a descriptor in hand.
            checked(unsafe { libc::fchmod(folder.as_raw_fd(), 0o700) })?;
        }
        Ok(Private {
            folder: folder.into(),
            path: path.to_path_buf(),
        })
    }

    /// A path to what has that name in this very folder, whatever its own path leads to by now, where the system has such paths.
    pub fn path_of(&self, name: &str) -> PathBuf {
        let held = PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        match held.is_dir() {
            true => held.join(name),
            false => self.path.join(name),
        }
    }

    /// What there is of that name: the bits of its mode. A link is not followed.
    fn mode(&self, file: &str) -> Option<libc::mode_t> {
        let file = name(OsStr::new(file)).ok()?;
        let mut meta = std::mem::MaybeUninit::<libc::stat>::uninit();
        let (fd, to) = (self.folder.as_raw_fd(), meta.as_mut_ptr());
        // SAFETY: a descriptor in hand, a text that ends, and room for the answer.
        let found = unsafe { libc::fstatat(fd, file.as_ptr(), to, libc::AT_SYMLINK_NOFOLLOW) == 0 };
        // SAFETY: it was written.
        found.then(|| unsafe { meta.assume_init() }.st_mode)
    }

    /// Whether there is something of that name.
    pub fn has(&self, file: &str) -> bool {
        self.mode(file).is_some()
    }

    /// Whether that is a socket.
    pub fn is_socket(&self, file: &str) -> bool {
        self.mode(file)
            .is_some_and(|m| m & libc::S_IFMT == libc::S_IFSOCK)
    }

    /// Sets who may use a file that was made here.
    pub fn set_mode(&self, file: &str, mode: libc::mode_t) -> io::Result<()> {
        let file = name(OsStr::new(file))?;
        // SAFETY: a descriptor in hand, and a text that ends.
        checked(unsafe { libc::fchmodat(self.folder.as_raw_fd(), file.as_ptr(), mode, 0) })?;
        Ok(())
    }

    pub fn remove(&self, file: &str) -> io::Result<()> {
        let file = name(OsStr::new(file))?;
        // SAFETY: as above.
        checked(unsafe { libc::unlinkat(self.folder.as_raw_fd(), file.as_ptr(), 0) })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_is_held_whatever_its_name_leads_to_later() {
        let base = std::env::temp_dir().join(format!("purlin-private-{}", std::process::id()));
        fs::create_dir(&base).expect("makes a folder");
        let path = base.join("purlin");
        let p = Private::make(&path).expect("makes a private folder");
        fs::write(p.path_of("1"), "").expect("makes a file");
        p.set_mode("1", 0o600).expect("sets a mode");
        assert!(p.has("1") && path.join("1").exists());
        assert!(!p.is_socket("1") && !p.has("2"));
        let socket = std::os::unix::net::UnixListener::bind(p.path_of("2")).expect("binds");
        assert!(p.is_socket("2"));
        drop(socket);
        // Somebody who owns the place exchanges the folder.
        let victim = base.join("victim");
        fs::create_dir(&victim).expect("makes a folder");
        fs::write(victim.join("1"), "").expect("makes a file");
        fs::rename(&path, base.join("away")).expect("renames");
        symlink(&victim, &path).expect("makes a link");
        p.remove("1").expect("removes its own");
        assert!(victim.join("1").exists() && !base.join("away/1").exists());
        // A link is no folder, and a place that others may write to is none for folders.
        assert!(Private::make(&path).is_err());
        fs::set_permissions(&base, fs::Permissions::from_mode(0o777)).expect("sets a mode");
        assert!(Private::make(&base.join("other")).is_err());
        assert!(!is_safe_way(&base.join("other")));
        fs::set_permissions(&base, fs::Permissions::from_mode(0o1777)).expect("sets a mode");
        assert!(Private::make(&base.join("other")).is_ok());
        // Nobody may enter one that was open.
        let open = base.join("open");
        fs::create_dir(&open).expect("makes a folder");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("sets a mode");
        Private::make(&open).expect("takes it");
        let mode = fs::metadata(&open).expect("is there").mode();
        assert_eq!(mode & 0o777, 0o700);
        // One that belongs to somebody else is refused.
        if user() == 0 {
            let theirs = base.join("theirs");
            fs::create_dir(&theirs).expect("makes a folder");
            std::os::unix::fs::chown(&theirs, Some(65534), None).expect("gives it away");
            assert!(Private::make(&theirs).is_err());
            assert!(Private::make(&theirs.join("purlin")).is_err());
            assert!(!is_safe_way(&theirs.join("purlin")));
            // So is a good place that a link of theirs leads to.
            symlink(base.join("victim"), theirs.join("link")).expect("makes a link");
            assert!(Private::make(&theirs.join("link/purlin")).is_err());
            assert!(!base.join("victim/purlin").exists());
        }
        fs::remove_dir_all(&base).expect("cleans up");
    }
}
