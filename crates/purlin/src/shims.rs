//! A private directory with links called `erl`, `erlc` and `escript` to this program.
//!
//! It comes first on the `PATH` of what Purlin starts, so that scripts that call `erl` get Purlin.
//! There is one directory per user and per Purlin executable, made when first needed and kept.
//! Root's is readable for all, since scripts started by root change to the users of their services;
//! if those cannot reach the executable, the directory has a copy of it.
//!
//! # Invariant
//! A directory is used only if it belongs to the user, nobody else may write to it, and nobody else
//! could replace it or its contents.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use purlin_diagnostics::explain::private::{is_safe_way, user};

use crate::failure::{Failure, SYSTEM, cannot_make, no_own_executable};
use purlin_messages as messages;

/// The variable that names the directory for child processes, which keep it first on their `PATH`.
pub const VARIABLE: &str = "PURLIN_SHIMS";

/// The tools that Purlin stands in for.
const TOOLS: [&str; 3] = ["erl", "erlc", "escript"];

/// The directory, which is created and checked.
pub fn directory() -> Result<PathBuf, Failure> {
    let executable = crate::linker::executable().map_err(|error| no_own_executable(&error))?;
    let mut last = None;
    for base in bases() {
        match prepare(&base, &executable) {
            Ok(directory) => return Ok(directory),
            Err(error) => last = Some((base, error)),
        }
    }
    Err(match last {
        Some((base, error)) => cannot_make(
            format!("make a directory of links below {}", base.display()),
            &error,
        ),
        None => Failure::new(
            messages::NO_FOLDER_FOR_LINKS,
            SYSTEM,
            "neither HOME nor a temporary directory is there",
        ),
    })
}

/// Possible places of the directory: for root, one that lasts as long as the machine runs; for
/// other users, the user's cache; and otherwise the folder for temporary files.
fn bases() -> Vec<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let temporary = std::env::temp_dir().join(format!("purlin-shims-{}", user()));
    if user() == 0 {
        let of_root = ["/run/purlin-shims", "/var/cache/purlin-shims"].map(PathBuf::from);
        return of_root.into_iter().chain([temporary]).collect();
    }
    let cache = variable("XDG_CACHE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".cache")))
        // A home that does not exist is not created.
        .filter(|cache| cache.parent().is_some_and(Path::is_dir))
        .map(|cache| cache.join("purlin"));
    cache.into_iter().chain([temporary]).collect()
}

fn prepare(base: &Path, executable: &Path) -> io::Result<PathBuf> {
    if !is_safe_way(base.parent().unwrap_or(base)) {
        return Err(io::Error::other("others could exchange what lies there"));
    }
    let mut hasher = DefaultHasher::new();
    executable.as_os_str().as_bytes().hash(&mut hasher);
    let directory = base.join(format!("shims-{:016x}", hasher.finish()));
    let (mode, all_reach) = match user() {
        0 => (0o755, is_reached_by_all(executable)),
        _ => (0o700, true),
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(&directory)?;
    for path in [base, &directory] {
        let meta = fs::symlink_metadata(path)?;
        if !meta.is_dir() || meta.uid() != user() || meta.mode() & 0o022 != 0 {
            return Err(io::Error::other("it is not the user's own directory"));
        }
        if meta.mode() & mode != mode {
            // The process's umask has removed permissions.
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
    }
    let target = match all_reach {
        true => executable.to_path_buf(),
        false => copied(executable, &directory)?,
    };
    for tool in TOOLS {
        let link = directory.join(tool);
        if fs::read_link(&link).is_ok_and(|to| to == target) {
            continue;
        }
        // Renaming replaces a wrong link atomically, even if others do the same.
        let fresh = directory.join(format!(".{tool}-{}", std::process::id()));
        match symlink(&target, &fresh) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => fs::rename(&fresh, &link)?,
        }
    }
    Ok(directory)
}

/// Whether every user may reach and execute a file.
fn is_reached_by_all(file: &Path) -> bool {
    // A missing file cannot be copied either.
    let Ok(real) = fs::canonicalize(file) else {
        return true;
    };
    let all_may = |path: &Path, bits: u32| {
        fs::symlink_metadata(path).is_ok_and(|meta| meta.mode() & bits == bits)
    };
    all_may(&real, 0o005) && real.ancestors().skip(1).all(|path| all_may(path, 0o001))
}

/// A copy of the executable that is not older than it.
fn copied(executable: &Path, directory: &Path) -> io::Result<PathBuf> {
    let copy = directory.join("purlin");
    let own = fs::metadata(executable)?;
    let is_same = fs::symlink_metadata(&copy).is_ok_and(|meta| {
        let newer = meta.modified().ok() >= own.modified().ok();
        meta.is_file() && meta.len() == own.len() && newer
    });
    if !is_same {
        let fresh = directory.join(format!(".purlin-{}", std::process::id()));
        fs::copy(executable, &fresh)?;
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755))?;
        fs::rename(&fresh, &copy)?;
    }
    Ok(copy)
}

/// `path` with `shims` at the front and nowhere else.
pub fn first_on_path(shims: &Path, path: Option<&OsStr>) -> OsString {
    let mut result = shims.as_os_str().to_os_string();
    for entry in path
        .unwrap_or_default()
        .as_bytes()
        .split(|byte| *byte == b':')
    {
        if entry != shims.as_os_str().as_bytes() && path.is_some() {
            result.push(":");
            result.push(OsStr::from_bytes(entry));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, expected) in [
            (None, "/s"),
            (Some("/bin"), "/s:/bin"),
            (Some("/s:/bin:/s:"), "/s:/bin:"),
            (Some("/bin:/s/erl"), "/s:/bin:/s/erl"),
        ] {
            assert_eq!(
                first_on_path("/s".as_ref(), path.map(OsStr::new)),
                expected,
                "{path:?}"
            );
        }
    }

    #[test]
    fn makes_and_repairs_links() {
        let base = std::env::temp_dir().join(format!("purlin-shims-{}", std::process::id()));
        let directory = prepare(&base, "/one".as_ref()).expect("makes the directory");
        assert_eq!(
            fs::read_link(directory.join("erlc")).expect("is a link"),
            Path::new("/one")
        );
        fs::remove_file(directory.join("erl")).expect("removes a link");
        symlink("/other", directory.join("erl")).expect("makes a wrong link");
        prepare(&base, "/one".as_ref()).expect("repairs the directory");
        assert_eq!(
            fs::read_link(directory.join("erl")).expect("is a link"),
            Path::new("/one")
        );
        assert_ne!(
            directory,
            prepare(&base, "/two".as_ref()).expect("makes another")
        );
        fs::remove_dir_all(&base).expect("cleans up");
    }
}
