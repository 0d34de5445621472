//! The folder of the records of runs.
//!
//! The file of a run is named after its process number: `4711`, or `4711-2` if there is one of an
//! earlier run, or of a run in another container, with that number. A run holds a lock on its file.
//! The system releases the lock however the run ends, and shows it in all containers. So a file
//! without a lock belongs to a run that has ended, whatever process has its number by now.
//!
//! The lock belongs to the open file: a run that looks at its own file, as at those of others, sees
//! it and does not lose it. (A lock of the process would be gone when the second descriptor is
//! closed.) Programs that a run starts do not have the descriptor.
//!
//! # Invariants
//! * Files and folders belong to the user, and others cannot read them. No link is followed.
//! * Nothing is removed but files that have such a name, no lock, and a head of a record or nothing
//!   in them. [`KEPT`] of them stay.

use super::format;
use crate::explain::private::Private;
use crate::explain::socket;
use crate::json::Json;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Number of files of ended runs that are kept.
const KEPT: usize = 16;
/// Number of names that are tried for a file.
const NAMES: u32 = 100;
/// Number of files that the start looks at.
const LOOKED_AT: usize = 64;

/// A folder that must exist, and the folders below it that are made if they are missing.
type Way = (PathBuf, &'static [&'static str]);

/// Folders where records may be, in order of preference.
fn folders() -> Vec<Way> {
    let variable = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|p| p.is_absolute())
    };
    let mut all: Vec<Way> = Vec::new();
    if let Some(cache) = variable("XDG_CACHE_HOME") {
        all.push((cache, &["purlin", "recorder"]));
    }
    if let Some(home) = variable("HOME") {
        all.push((home, &[".cache", "purlin", "recorder"]));
    }
    for folder in socket::folders() {
        if let (Some(above), Some(own)) = (folder.parent(), folder.file_name()) {
            let names: &'static [&'static str] = match own == "purlin" {
                true => &["purlin", "recorder"],
                false => &["recorder"],
            };
            let base = if own == "purlin" { above } else { &folder };
            all.push((base.to_path_buf(), names));
        }
    }
    all
}

/// Opens the folder for records: the given one, or the first that can be used.
pub fn open(given: Option<&Path>) -> io::Result<Private> {
    if let Some(folder) = given {
        return Private::make(folder);
    }
    let mut why = io::Error::from(io::ErrorKind::NotFound);
    for (base, names) in folders() {
        let mut folder = base.clone();
        let made = names.iter().enumerate().try_for_each(|(i, name)| {
            folder.push(name);
            match i + 1 == names.len() || folder.is_dir() {
                true => Ok(()),
                false => DirBuilder::new().mode(0o700).create(&folder),
            }
        });
        match made.and_then(|()| Private::make(&folder)) {
            Ok(made) => return Ok(made),
            Err(e) => why = e,
        }
    }
    Err(why)
}

/// A lock on a whole file.
fn lock() -> libc::flock {
    // SAFETY: a plain structure, for which zeros are valid.
    let mut l: libc::flock = unsafe { std::mem::zeroed() };
    l.l_type = libc::F_WRLCK as libc::c_short;
    l.l_whence = libc::SEEK_SET as libc::c_short;
    l
}

#[cfg(target_os = "linux")]
const SET: libc::c_int = libc::F_OFD_SETLK;
#[cfg(target_os = "linux")]
const GET: libc::c_int = libc::F_OFD_GETLK;
// Locks of the process. A run must not open its own file a second time there.
#[cfg(not(target_os = "linux"))]
const SET: libc::c_int = libc::F_SETLK;
#[cfg(not(target_os = "linux"))]
const GET: libc::c_int = libc::F_GETLK;

/// Takes the lock of a file, which is held until the file is closed or the process ends.
fn take(file: &File) -> bool {
    // SAFETY: an open descriptor, and a structure that outlives the call.
    unsafe { libc::fcntl(file.as_raw_fd(), SET, &lock()) == 0 }
}

/// Whether a run holds the lock of a file; true if the system does not say.
fn is_held(file: &File) -> bool {
    let mut l = lock();
    // SAFETY: an open descriptor, and a structure that the call fills.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), GET, &raw mut l) };
    asked != 0 || l.l_type != libc::F_UNLCK as libc::c_short
}

/// Maximum size of a file that this process may write.
pub fn largest() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: writes the limit to the variable.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } {
        0 => limit.rlim_cur,
        _ => u64::MAX,
    }
}

/// Makes the file of this run, and takes its lock.
pub fn create(folder: &Private) -> io::Result<(File, String)> {
    let pid = std::process::id();
    for n in 1..=NAMES {
        let name = match n {
            1 => pid.to_string(),
            n => format!("{pid}-{n}"),
        };
        match folder.create(&name) {
            Ok(file) if take(&file) => return Ok((file, name)),
            Ok(_) => {
                // There are no locks here, so that the run has ended could not be seen.
                let _ = folder.remove(&name);
                return Err(io::ErrorKind::Unsupported.into());
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Whether a file has a name that [`create`] gives.
fn is_ours(name: &str) -> bool {
    let number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    match name.split_once('-') {
        Some((pid, n)) => number(pid) && number(n),
        None => number(name),
    }
}

/// A file of a run that has ended.
struct Ended {
    name: String,
    file: File,
    written: SystemTime,
}

/// Returns files of runs that have ended, the latest first. Looks at `most` files.
fn ended(folder: &Private, most: usize) -> Vec<Ended> {
    let names = std::fs::read_dir(folder.path_of(".")).into_iter().flatten();
    let names = names
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok());
    let mut all: Vec<Ended> = names
        .filter(|n| is_ours(n))
        .take(most)
        .filter_map(|name| {
            let file = folder.open(&name).ok()?;
            let meta = file.metadata().ok()?;
            let ours = meta.is_file() && meta.uid() == crate::explain::private::user();
            (ours && !is_held(&file)).then_some(Ended {
                name,
                written: meta.modified().ok()?,
                file,
            })
        })
        .collect();
    all.sort_by_key(|e| std::cmp::Reverse(e.written));
    all
}

/// The last run of the same command, if it ended without a halt and was not reported.
pub struct LastRun {
    /// The path of its record.
    pub file: PathBuf,
    pub pid: u64,
    /// The time of its last record.
    pub ended: SystemTime,
}

/// Returns the last run whose head has that key, and notes in each such file that it was reported.
pub fn last_run(folder: &Private, key: &str) -> Option<LastRun> {
    let mut found = None;
    for e in ended(folder, LOOKED_AT) {
        let Some(head) = format::read_head(&e.file) else {
            continue;
        };
        let is_noted = |what| matches!(head.get(what), Some(Json::Bool(true)));
        if is_noted("reported")
            || is_noted("halted")
            || head.get("key").and_then(Json::text) != Some(key)
        {
            continue;
        }
        // Another start may be looking at it, too.
        let Ok(file) = folder.open_to_write(&e.name).and_then(|f| match take(&f) {
            true => Ok(f),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }) else {
            continue;
        };
        let pid = head.get("pid").and_then(Json::number).unwrap_or(0.0) as u64;
        if format::write_head(&file, &noted(head, "reported")).is_err() {
            continue;
        }
        // The time of the last record stays that of the file.
        let _ = file.set_modified(e.written);
        found = found.or(Some(LastRun {
            file: folder.shown(&e.name),
            pid,
            ended: e.written,
        }));
    }
    found
}

/// Notes in the file of a run that it halts with a slogan, or aborts: there is nothing to report.
/// Opens nothing, since the run may end because it has no descriptors left.
pub fn note_halt(file: &File) -> io::Result<()> {
    match format::read_head(file) {
        Some(head) => format::write_head(file, &noted(head, "halted")),
        None => Ok(()),
    }
}

/// A head with a note.
fn noted(mut head: Json, what: &str) -> Json {
    if let Json::Object(pairs) = &mut head {
        pairs.retain(|p| p.0 != what);
        pairs.push((what.into(), true.into()));
    }
    head
}

/// Removes the oldest files of ended runs beyond [`KEPT`].
pub fn clean(folder: &Private) {
    for e in ended(folder, usize::MAX).into_iter().skip(KEPT) {
        let empty = e.file.metadata().is_ok_and(|m| m.blocks() == 0);
        if empty || format::read_head(&e.file).is_some() {
            let _ = folder.remove(&e.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_run_keeps_its_lock_when_it_looks_at_its_file() {
        let path = std::env::temp_dir().join(format!("purlin-lock-{}", std::process::id()));
        let own = File::create(&path).expect("is made");
        assert!(take(&own));
        for _ in 0..2 {
            let seen = File::open(&path).expect("is there");
            assert!(is_held(&seen));
        }
        drop(own);
        assert!(!is_held(&File::open(&path).expect("is there")));
        std::fs::remove_file(&path).expect("is removed");
    }

    #[test]
    fn names_are_process_numbers() {
        for name in ["1", "4711", "4711-2"] {
            assert!(is_ours(name), "{name}");
        }
        for name in ["", "-", "1-", "-1", "1-2-3", "a", "4711.old", "notes"] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
