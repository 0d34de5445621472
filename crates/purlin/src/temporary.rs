//! Files and folders under unused names that belong to this user.
//!
//! A guessed name may be taken by another user, who may have put a link there, or by a run that was
//! killed and had the same process number.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of names that are tried.
const TRIES: u32 = 16;

/// Calls `make` with paths in `folder` that begin with `begin`, until one is unused.
fn made<T>(
    folder: &Path,
    begin: &str,
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let mut last = io::Error::from(ErrorKind::AlreadyExists);
    for _ in 0..TRIES {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = now.map_or(0, |d| d.as_nanos());
        let path = folder.join(format!("{begin}-{}-{nanos:x}", std::process::id()));
        match make(&path) {
            Ok(done) => return Ok((done, path)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => last = e,
            Err(e) => return Err(e),
        }
    }
    Err(last)
}

/// A folder that is removed with this value.
pub struct Folder(pub PathBuf);

impl Folder {
    /// A folder in the system's folder for temporary files.
    ///
    /// # Errors
    /// The system cannot create it.
    pub fn temporary(begin: &str) -> io::Result<Folder> {
        let make = |path: &Path| DirBuilder::new().mode(0o700).create(path);
        made(&std::env::temp_dir(), begin, make).map(|((), path)| Folder(path))
    }
    /// A folder with that path.
    ///
    /// # Errors
    /// The path exists, or the system cannot create the folder.
    pub fn new(path: PathBuf) -> io::Result<Folder> {
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An empty file in `folder` with those permissions, and its path. It is not removed.
///
/// # Errors
/// The system cannot create it.
pub fn file(folder: &Path, begin: &str, mode: u32) -> io::Result<(File, PathBuf)> {
    made(folder, begin, |path| {
        let mut open = OpenOptions::new();
        open.write(true).create_new(true).mode(mode).open(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_is_taken_is_left_alone() {
        let folder = Folder::temporary("purlin-fresh").expect("is made");
        let mode = fs::metadata(&folder.0).expect("is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        // Another user's link has the first names that are tried.
        let target = folder.0.join("target");
        let mut taken = 0;
        let (_, path) = made(&folder.0, "name", |path| {
            if taken < 3 {
                taken += 1;
                symlink(&target, path)?;
            }
            OpenOptions::new().write(true).create_new(true).open(path)
        })
        .expect("is made in the end");
        assert!(!target.exists());
        assert!(fs::symlink_metadata(path).expect("is there").is_file());
        let (_, other) = file(&folder.0, "name", 0o600).expect("is made");
        assert!(other.starts_with(&folder.0));
        let never = made(&folder.0, "name", |_| {
            Err::<(), _>(ErrorKind::AlreadyExists.into())
        });
        assert_eq!(
            never.err().map(|e| e.kind()),
            Some(ErrorKind::AlreadyExists)
        );
        let gone = folder.0.clone();
        drop(folder);
        assert!(!gone.exists());
    }
}
