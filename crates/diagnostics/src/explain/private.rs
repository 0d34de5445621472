//! Folders that only their owner may change, in places that others may own.
//!
//! The environment is inherited: after `su`, root's variables may name a folder of another user,
//! who could replace its contents with links between check and use. So a folder is checked once,
//! through a descriptor that stays open, and every access to it goes through that descriptor.
//!
//! # Invariants
//! * A [`Private`] belongs to the effective user, and nobody else may enter it.
//! * Its parent belongs to that user or to root, and nobody else may rename what is in it. The same
//!   holds for every folder on the path, since a link of another user would choose the place.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The user that owns new files.
pub fn user() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether only the user and root can replace entries of a folder with these attributes.
fn is_safe_parent(meta: &fs::Metadata) -> bool {
    let shared = meta.mode() & 0o022 != 0;
    let sticky = meta.mode() & 0o1000 != 0;
    meta.is_dir() && (meta.uid() == user() || meta.uid() == 0) && (!shared || sticky)
}

/// Whether only the user and root can replace any folder on the path. Checks the path both as
/// written, since a user who can replace a link chooses its target, and with links resolved.
/// Folders that do not exist yet do not count.
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

/// Turns the result of a system call into a value or its error.
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
    /// Opens the folder, and creates it if it is missing. Its parent must exist.
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
        // SAFETY: an open descriptor and a terminated string.
        let made = checked(unsafe { libc::mkdirat(parent.as_raw_fd(), last.as_ptr(), 0o700) });
        match made {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let how = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: an open descriptor and a terminated string.
        let fd = checked(unsafe { libc::openat(parent.as_raw_fd(), last.as_ptr(), how) })?;
        // SAFETY: a descriptor that nothing else owns.
        let folder = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let meta = folder.metadata()?;
        if meta.uid() != user() {
            return Err(denied());
        }
        if meta.mode() & 0o077 != 0 {
            // SAFETY: an open descriptor.
            checked(unsafe { libc::fchmod(folder.as_raw_fd(), 0o700) })?;
        }
        Ok(Private {
            folder: folder.into(),
            path: path.to_path_buf(),
        })
    }

    /// A path to the entry `name` of this very folder, wherever the folder's own path leads by now,
    /// if the system has such paths.
    pub fn path_of(&self, name: &str) -> PathBuf {
        let held = PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        match held.is_dir() {
            true => held.join(name),
            false => self.path.join(name),
        }
    }

    /// The mode bits of the entry with that name. Links are not followed.
    fn mode(&self, file: &str) -> Option<libc::mode_t> {
        let file = name(OsStr::new(file)).ok()?;
        let mut meta = std::mem::MaybeUninit::<libc::stat>::uninit();
        let (fd, to) = (self.folder.as_raw_fd(), meta.as_mut_ptr());
        // SAFETY: an open descriptor, a terminated string, and room for the result.
        let found = unsafe { libc::fstatat(fd, file.as_ptr(), to, libc::AT_SYMLINK_NOFOLLOW) == 0 };
        // SAFETY: the call has written it.
        found.then(|| unsafe { meta.assume_init() }.st_mode)
    }

    /// Whether there is an entry of that name.
    pub fn has(&self, file: &str) -> bool {
        self.mode(file).is_some()
    }

    /// Whether that entry is a socket.
    pub fn is_socket(&self, file: &str) -> bool {
        self.mode(file)
            .is_some_and(|m| m & libc::S_IFMT == libc::S_IFSOCK)
    }

    /// Sets the permissions of a file that was created here.
    pub fn set_mode(&self, file: &str, mode: libc::mode_t) -> io::Result<()> {
        let file = name(OsStr::new(file))?;
        // SAFETY: an open descriptor and a terminated string.
        checked(unsafe { libc::fchmodat(self.folder.as_raw_fd(), file.as_ptr(), mode, 0) })?;
        Ok(())
    }

    /// The path of an entry as people name it.
    pub fn shown(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens an entry. Links are not followed, and nothing waits for the other end of a pipe.
    fn open_with(&self, file: &str, how: libc::c_int) -> io::Result<File> {
        let file = name(OsStr::new(file))?;
        let how = how | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
        let mode: libc::c_uint = 0o600;
        // SAFETY: an open descriptor and a terminated string.
        let fd = unsafe { libc::openat(self.folder.as_raw_fd(), file.as_ptr(), how, mode) };
        let fd = checked(fd)?;
        // SAFETY: a descriptor that nothing else owns.
        Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Opens a file to read it.
    pub fn open(&self, file: &str) -> io::Result<File> {
        self.open_with(file, libc::O_RDONLY)
    }

    /// Opens a file to change it.
    pub fn open_to_write(&self, file: &str) -> io::Result<File> {
        self.open_with(file, libc::O_RDWR)
    }

    /// Creates a file that only the user can read. There must be none of that name.
    pub fn create(&self, file: &str) -> io::Result<File> {
        self.open_with(file, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)
    }

    pub fn remove(&self, file: &str) -> io::Result<()> {
        let file = name(OsStr::new(file))?;
        // SAFETY: an open descriptor and a terminated string.
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
        // The owner of the place replaces the folder.
        let victim = base.join("victim");
        fs::create_dir(&victim).expect("makes a folder");
        fs::write(victim.join("1"), "").expect("makes a file");
        fs::rename(&path, base.join("away")).expect("renames");
        symlink(&victim, &path).expect("makes a link");
        p.remove("1").expect("removes its own");
        assert!(victim.join("1").exists() && !base.join("away/1").exists());
        // A link is not accepted as a folder, nor a parent that others may write to.
        assert!(Private::make(&path).is_err());
        fs::set_permissions(&base, fs::Permissions::from_mode(0o777)).expect("sets a mode");
        assert!(Private::make(&base.join("other")).is_err());
        assert!(!is_safe_way(&base.join("other")));
        fs::set_permissions(&base, fs::Permissions::from_mode(0o1777)).expect("sets a mode");
        assert!(Private::make(&base.join("other")).is_ok());
        // A folder that was open to others is closed to them.
        let open = base.join("open");
        fs::create_dir(&open).expect("makes a folder");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("sets a mode");
        Private::make(&open).expect("takes it");
        let mode = fs::metadata(&open).expect("is there").mode();
        assert_eq!(mode & 0o777, 0o700);
        // A folder of another user is refused.
        if user() == 0 {
            let theirs = base.join("theirs");
            fs::create_dir(&theirs).expect("makes a folder");
            std::os::unix::fs::chown(&theirs, Some(65534), None).expect("gives it away");
            assert!(Private::make(&theirs).is_err());
            assert!(Private::make(&theirs.join("purlin")).is_err());
            assert!(!is_safe_way(&theirs.join("purlin")));
            // So is a good place behind a link of theirs.
            symlink(base.join("victim"), theirs.join("link")).expect("makes a link");
            assert!(Private::make(&theirs.join("link/purlin")).is_err());
            assert!(!base.join("victim/purlin").exists());
        }
        fs::remove_dir_all(&base).expect("cleans up");
    }
}
