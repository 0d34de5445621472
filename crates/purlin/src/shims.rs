//! A private directory with links called `erl`, `erlc` and `escript` that lead to this program.
//!
//! It is put first on the `PATH` of what Purlin starts, so that scripts which call `erl` get Purlin.
//! One directory per user and per Purlin executable; it is made when first needed and stays.
//! Invariant: a directory is used only if it belongs to the user and nobody else may write to it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, SYSTEM, reason};

/// Names the directory to processes below, which keep it first on their `PATH`.
pub const VARIABLE: &str = "PURLIN_SHIMS";

/// The tools that Purlin stands in for.
const TOOLS: [&str; 3] = ["erl", "erlc", "escript"];

/// The directory, made and checked.
pub fn directory() -> Result<PathBuf, Failure> {
    let executable = crate::linker::executable()
        .map_err(|error| failure("find Purlin's own executable", &error))?;
    let mut last = None;
    for base in bases() {
        match prepare(&base, &executable) {
            Ok(directory) => return Ok(directory),
            Err(error) => last = Some((base, error)),
        }
    }
    Err(match last {
        Some((base, error)) => failure(
            &format!("make a directory of links below {}", base.display()),
            &error,
        ),
        None => Failure::new(
            SYSTEM,
            "purlin: neither HOME nor a temporary directory is there",
        ),
    })
}

fn failure(what: &str, error: &io::Error) -> Failure {
    Failure::new(SYSTEM, format!("purlin: cannot {what}: {}", reason(error)))
}

/// Where the directory may be: in the user's cache, else among temporary files.
fn bases() -> Vec<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = variable("XDG_CACHE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("purlin"));
    // SAFETY: geteuid has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    let temporary = std::env::temp_dir().join(format!("purlin-{user}"));
    cache.into_iter().chain([temporary]).collect()
}

fn prepare(base: &Path, executable: &Path) -> io::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    executable.as_os_str().as_bytes().hash(&mut hasher);
    let directory = base.join(format!("shims-{:016x}", hasher.finish()));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)?;
    for path in [base, &directory] {
        let meta = fs::symlink_metadata(path)?;
        // SAFETY: geteuid has no preconditions and cannot fail.
        let user = unsafe { libc::geteuid() };
        if !meta.is_dir() || meta.uid() != user || meta.mode() & 0o022 != 0 {
            return Err(io::Error::other("it is not the user's own directory"));
        }
    }
    for tool in TOOLS {
        let link = directory.join(tool);
        if fs::read_link(&link).is_ok_and(|target| target == executable) {
            continue;
        }
        // Renaming replaces a wrong link at once, also under the eyes of others who do the same.
        let fresh = directory.join(format!(".{tool}-{}", std::process::id()));
        match symlink(executable, &fresh) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => fs::rename(&fresh, &link)?,
        }
    }
    Ok(directory)
}

/// `path` with `shims` in front and nowhere else.
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
