//! Releases assembled by a command with stock's emulator in them.
//!
//! `mix release` and relx copy the emulator of the OTP that they run on, whatever runs them, unless
//! another folder is configured; relx ignores that setting when a mode follows it. Such a release
//! never runs on Purlin, so `purlin exec` reports it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of folders that are searched at each level.
const MOST_FOLDERS: usize = 100;

/// The folders in `dir` whose names begin with `prefix`.
fn folders(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries.filter(|e| {
        e.file_name()
            .as_encoded_bytes()
            .starts_with(prefix.as_bytes())
    });
    named
        .map(|e| e.path())
        .filter(|p| p.is_dir())
        .take(MOST_FOLDERS)
        .collect()
}

/// Releases in the project `dir` that have got an emulator since then.
pub fn releases_since(dir: &Path, since: SystemTime) -> Vec<PathBuf> {
    let since = since
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |t| t.as_secs() as i64);
    let mut found = Vec::new();
    for profile in folders(&dir.join("_build"), "") {
        for release in folders(&profile.join("rel"), "") {
            let has = |erts: PathBuf| {
                // A copy may keep the time of the contents, but not the change time of the file.
                fs::metadata(erts.join("bin/beam.smp")).is_ok_and(|meta| meta.ctime() >= since)
            };
            if folders(&release, "erts-").into_iter().any(has) {
                found.push(release);
            }
        }
    }
    found.sort();
    found
}

/// The note about such a release.
pub fn note(release: &Path) -> String {
    format!(
        "{} contains stock's emulator and will run on that: set include_erts to the folder \
         that 'purlin erts' makes, for relx after any {{mode, …}} and not beside one in a profile",
        release.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn new_emulators_are_found() {
        let dir = std::env::temp_dir().join(format!("purlin-assembled-{}", std::process::id()));
        let bin = dir.join("_build/prod/rel/one/erts-13.1.5/bin");
        fs::create_dir_all(&bin).expect("is made");
        let now = SystemTime::now() - Duration::from_secs(2);
        assert_eq!(releases_since(&dir, now), Vec::<PathBuf>::new());
        fs::write(bin.join("beam.smp"), "").expect("is written");
        assert_eq!(releases_since(&dir, now), [dir.join("_build/prod/rel/one")]);
        let later = now + Duration::from_secs(3600);
        assert_eq!(releases_since(&dir, later), Vec::<PathBuf>::new());
        fs::remove_dir_all(&dir).expect("cleans up");
        assert_eq!(releases_since(&dir, now), Vec::<PathBuf>::new());
    }
}
