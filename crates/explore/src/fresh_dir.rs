//! A fresh folder for each run (`--fresh-dir`): a copy of the folder in which the search began, and
//! an empty one for temporary files. It has the same name in all runs and in a replay.
//!
//! Runs that are forked where a run of the base waits have the folder as it was then: it is kept
//! beside.
//!
//! # Invariant
//! Nothing is deleted but [`WORK`], [`PASSING`], what was kept and the lock, in a folder whose name
//! begins with [`BEGIN`], that belongs to this user, is no link, has nothing else in it, and whose
//! lock this process holds: its name may come from a replay file of somebody else.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The names within it: the folder in which runs begin, and the one for temporary files.
pub const WORK: &str = "work";
pub const PASSING: &str = "tmp";
const LOCK: &str = "lock";
/// The names of the copies of the two.
const KEPT_WORK: &str = "kept-work";
const KEPT_PASSING: &str = "kept-tmp";

/// The folders within it that have contents of runs.
const FOLDERS: [&str; 4] = [WORK, PASSING, KEPT_WORK, KEPT_PASSING];
/// The beginning of its name.
pub const BEGIN: &str = "purlin-fresh-";

struct Folder {
    /// The folder that is copied.
    from: PathBuf,
    at: PathBuf,
    _lock: File,
}

static FOLDER: OnceLock<Folder> = OnceLock::new();

/// Makes the folder `at`, with the two in it. It may exist if it belongs to that user.
fn make(at: &Path, user: u32) -> Result<()> {
    let name = at.file_name().and_then(|n| n.to_str());
    if !name.is_some_and(|n| n.starts_with(BEGIN)) {
        let text = format!("{} is not called {BEGIN}", at.display());
        return Err(Error::other(text));
    }
    let mut b = fs::DirBuilder::new();
    b.mode(0o700);
    for dir in std::iter::once(at.to_owned()).chain(FOLDERS.map(|f| at.join(f))) {
        match b.create(&dir) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            r => r?,
        }
        let m = fs::symlink_metadata(&dir)?;
        if !m.is_dir() || m.uid() != user {
            let text = format!("{} is not a folder of this user's", dir.display());
            return Err(Error::other(text));
        }
    }
    for e in fs::read_dir(at)? {
        let name = e?.file_name();
        if !FOLDERS.iter().chain([&LOCK]).any(|n| name == *n) {
            let text = format!("{} has something else in it", at.display());
            return Err(Error::other(text));
        }
    }
    Ok(())
}

/// Makes all runs that are forked from now on begin in `at`, with a copy of `from`. `user`: the
/// effective user of this process.
pub fn begin(from: PathBuf, at: PathBuf, user: u32) -> Result<()> {
    make(&at, user)?;
    let lock = File::create(at.join(LOCK))?;
    if lock.try_lock().is_err() {
        let text = format!("{} is in use by another search", at.display());
        return Err(Error::other(text));
    }
    let folder = Folder {
        from,
        at,
        _lock: lock,
    };
    let _ = FOLDER.set(folder);
    Ok(())
}

/// Whether there is such a folder.
pub(crate) fn any() -> bool {
    FOLDER.get().is_some()
}

/// Returns its name, if there is one.
pub(crate) fn name() -> Option<&'static Path> {
    FOLDER.get().map(|f| &*f.at)
}

/// Makes it fresh. Nothing runs in it.
pub fn renew() -> Result<()> {
    let Some(f) = FOLDER.get() else {
        return Ok(());
    };
    let (work, passing) = (f.at.join(WORK), f.at.join(PASSING));
    empty(&work)?;
    empty(&passing)?;
    copy(&f.from, &work, &f.at)
}

/// Keeps what is in it now.
pub(crate) fn keep() -> Result<()> {
    replace([(WORK, KEPT_WORK), (PASSING, KEPT_PASSING)])
}

/// Makes it as it was when [`keep`] was called. Nothing runs in it.
pub(crate) fn restore() -> Result<()> {
    replace([(KEPT_WORK, WORK), (KEPT_PASSING, PASSING)])
}

/// Gives the second folder of each pair the contents of the first.
fn replace(pairs: [(&str, &str); 2]) -> Result<()> {
    let Some(f) = FOLDER.get() else {
        return Ok(());
    };
    for (from, to) in pairs {
        let (from, to) = (f.at.join(from), f.at.join(to));
        empty(&to)?;
        copy(&from, &to, &f.at)?;
    }
    Ok(())
}

/// Deletes it. Nothing runs in it any more.
pub(crate) fn remove() {
    if let Some(f) = FOLDER.get() {
        // What cannot be deleted stays. The next search with that name empties it.
        for dir in FOLDERS {
            let _ = empty(&f.at.join(dir));
            let _ = fs::remove_dir(f.at.join(dir));
        }
        let _ = fs::remove_file(f.at.join(LOCK));
        let _ = fs::remove_dir(&f.at);
    }
}

fn empty(dir: &Path) -> Result<()> {
    for e in fs::read_dir(dir)? {
        let e = e?;
        match e.file_type()?.is_dir() {
            true => fs::remove_dir_all(e.path())?,
            false => fs::remove_file(e.path())?,
        }
    }
    Ok(())
}

/// Copies the contents of `from` into `to`, except `not`: files with their times, folders and
/// links, in the order of names.
fn copy(from: &Path, to: &Path, not: &Path) -> Result<()> {
    let mut all = fs::read_dir(from)?.collect::<Result<Vec<_>>>()?;
    all.sort_by_key(fs::DirEntry::file_name);
    for e in all {
        let (old, new, kind) = (e.path(), to.join(e.file_name()), e.file_type()?);
        if old == not {
            continue;
        }
        if kind.is_symlink() {
            symlink(fs::read_link(&old)?, &new)?;
        } else if kind.is_dir() {
            fs::create_dir(&new)?;
            copy(&old, &new, not)?;
        } else if kind.is_file() {
            fs::copy(&old, &new)?;
            let changed = e.metadata()?.modified()?;
            // A file that must not be written has the time of its copy.
            if let Ok(f) = File::options().write(true).open(&new) {
                f.set_modified(changed)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_and_emptied() {
        let top = std::env::temp_dir().join(format!("purlin-folder-{}", std::process::id()));
        let from = top.join("from");
        let at = from.join(format!("{BEGIN}7"));
        fs::create_dir_all(from.join("deep/er")).expect("makes");
        fs::write(from.join("deep/er/file"), "text").expect("writes");
        symlink("deep", from.join("link")).expect("links");
        let user = fs::metadata(&from).expect("a folder").uid();
        make(&at, user).expect("makes");
        let work = at.join(WORK);
        for _ in 0..2 {
            empty(&work).expect("empties");
            copy(&from, &work, &at).expect("copies");
            let text = fs::read_to_string(work.join("link/er/file")).expect("reads");
            assert_eq!(text, "text");
            assert!(!work.join(format!("{BEGIN}7")).exists());
            fs::write(work.join("deep/more"), "").expect("writes");
        }
        let other = top.join(format!("{BEGIN}8"));
        symlink(&at, &other).expect("links");
        assert!(make(&other, user).is_err());
        assert!(make(&top, user).is_err());
        fs::write(at.join("more"), "").expect("writes");
        assert!(make(&at, user + 1).is_err());
        assert!(make(&at, user).is_err());
        fs::remove_dir_all(&top).expect("removes");
    }
}
