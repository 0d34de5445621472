//! Working directories that are gone afterwards, whatever ends the command.
//!
//! A second process, the janitor, has a pipe from this one and waits for its end. The end comes
//! when the directory is dropped, and when this process ends by any signal. Then the janitor ends
//! the processes that still run in the directory, unmounts what is mounted in it, and removes it.
//! It is in a process group of its own, so Ctrl-C does not reach it.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The hidden command that is the janitor.
pub const JANITOR: &str = "--janitor";

/// A directory that is removed when this is dropped.
pub struct WorkDir {
    path: PathBuf,
    janitor: Option<Child>,
}

impl WorkDir {
    /// Makes an empty directory in the folder for temporary files.
    pub fn new(name: &str) -> Result<WorkDir, String> {
        let mut made = Command::new("mktemp");
        made.args(["-d", "-t", &format!("purlin-{name}.XXXXXX")]);
        let out = made.output().map_err(|e| format!("mktemp: {e}"))?;
        let path = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim_end());
        if !out.status.success() || !path.is_dir() {
            return Err("mktemp makes no directory".to_string());
        }
        // In a test this executable is the test, which has no such command.
        let own = std::env::current_exe().ok();
        let own = own.filter(|p| p.file_name().is_some_and(|n| n == "xtask"));
        let janitor = own.and_then(|own| {
            let mut janitor = Command::new(own);
            janitor.arg(JANITOR).arg(&path).process_group(0);
            janitor.stdin(Stdio::piped()).spawn().ok()
        });
        Ok(WorkDir { path, janitor })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it.
    pub fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.path.join(name);
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(path),
            Err(e) => Err(format!("{}: {e}", path.display())),
        }
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        let Some(mut janitor) = self.janitor.take() else {
            clean(&self.path);
            return;
        };
        drop(janitor.stdin.take());
        let _ = janitor.wait();
    }
}

/// Waits for the end of standard input, then cleans the directory in the arguments.
pub fn janitor(arguments: &[String]) -> i32 {
    let [path] = arguments else { return 2 };
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
    clean(Path::new(path));
    0
}

/// Ends what runs in a directory, unmounts what is mounted in it, and removes it.
fn clean(dir: &Path) {
    for process in processes() {
        let own = ["exe", "cwd"].map(|l| fs::read_link(process.join(l)).unwrap_or_default());
        if own.iter().any(|p| p.starts_with(dir)) {
            let id = process.file_name().unwrap_or_default();
            let mut kill = Command::new("kill");
            let _ = kill.arg("-KILL").arg(id).stderr(Stdio::null()).status();
        }
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|l| l.split(' ').nth(1));
    // What was mounted last goes first.
    let mut below: Vec<&str> = points.filter(|p| Path::new(p).starts_with(dir)).collect();
    below.reverse();
    for point in below {
        let _ = Command::new("umount").args(["-l", point]).status();
    }
    let mut remove = Command::new("rm");
    let _ = remove.args(["-rf", "--one-file-system"]).arg(dir).status();
}

/// The folders of all processes in `/proc`.
pub fn processes() -> Vec<PathBuf> {
    let is_id = |p: &Path| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.map(|e| e.path()).filter(|p| is_id(p)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_with_what_runs_in_it() {
        let work = WorkDir::new("test").expect("a directory");
        let path = work.path().to_path_buf();
        let mut sleep = Command::new("sleep");
        let mut child = sleep.arg("60").current_dir(&path).spawn().expect("sleep");
        drop(work);
        assert!(!path.exists());
        let status = child.wait().expect("it ends");
        assert_eq!(crate::environment::status_number(status), 137);
    }
}
