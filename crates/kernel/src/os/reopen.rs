//! Reopens the files of a forked process. A descriptor that parent and child share has one position
//! for both, so one of them would miss what the other reads. The child opens its files anew, at the
//! positions that they had at the fork.
//!
//! # Invariant
//! The numbers of descriptors do not change. A file that cannot be opened stays shared.

use std::ffi::CString;

/// How the names of files in memory begin, which stay shared.
const MEMORY: &str = "/memfd:";

/// An open file, and its position.
pub(crate) struct Open {
    fd: i32,
    at: i64,
}

/// Returns the regular files that this process has open, except its standard input and output; none
/// if the system does not show a process its files.
pub(crate) fn open_files() -> Vec<Open> {
    let Ok(all) = std::fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let number = |e: std::io::Result<std::fs::DirEntry>| -> Option<i32> {
        e.ok()?.file_name().to_str()?.parse().ok()
    };
    let file = |fd: i32| {
        let memory = |p: std::path::PathBuf| p.to_str().is_some_and(|p| p.starts_with(MEMORY));
        if std::fs::read_link(name(fd)).is_ok_and(memory) {
            return None;
        }
        // SAFETY: plain calls, of which each says whether it has worked.
        unsafe {
            let mut s: libc::stat = std::mem::zeroed();
            if libc::fstat(fd, &raw mut s) != 0 || s.st_mode & libc::S_IFMT != libc::S_IFREG {
                return None;
            }
            let at = libc::lseek(fd, 0, libc::SEEK_CUR);
            (at >= 0).then_some(Open { fd, at })
        }
    };
    let numbers = all.filter_map(number).filter(|fd| *fd > 2);
    numbers.filter_map(file).collect()
}

/// Returns the name by which the system shows the file behind a descriptor.
fn name(fd: i32) -> String {
    format!("/proc/self/fd/{fd}")
}

/// Opens these files of this process anew.
pub(crate) fn reopen(all: &[Open]) {
    for f in all {
        if let Ok(name) = CString::new(name(f.fd)) {
            reopen_one(f, &name);
        }
    }
}

fn reopen_one(&Open { fd, at }: &Open, name: &CString) {
    // SAFETY: plain calls, of which each says whether it has worked; the descriptor is this
    // process's.
    unsafe {
        let (how, kept) = (
            libc::fcntl(fd, libc::F_GETFL),
            libc::fcntl(fd, libc::F_GETFD),
        );
        if how < 0 || kept < 0 {
            return;
        }
        let how = how & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC);
        let new = libc::open(name.as_ptr(), how | libc::O_CLOEXEC);
        if new < 0 {
            return;
        }
        if libc::lseek(new, at, libc::SEEK_SET) == at && libc::dup2(new, fd) == fd {
            libc::fcntl(fd, libc::F_SETFD, kept);
        }
        libc::close(new);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::os::fd::AsRawFd;

    /// A reopened descriptor has a position of its own; that of a copy stays where it was.
    #[test]
    fn a_reopened_file_has_its_own_position() {
        let path = std::env::temp_dir().join(format!("purlin-reopen-{}", std::process::id()));
        File::create(&path)
            .and_then(|mut f| f.write_all(b"abcdef"))
            .expect("writes");
        let mut one = File::open(&path).expect("opens");
        one.seek(SeekFrom::Start(2)).expect("seeks");
        let mut other = one.try_clone().expect("a copy");
        std::fs::remove_file(&path).expect("removes");
        let mut files = super::open_files();
        files.retain(|f| f.fd == other.as_raw_fd());
        // The other descriptor moves before the file is reopened.
        let mut two = [0; 2];
        one.read_exact(&mut two).expect("reads");
        super::reopen(&files);
        other.read_exact(&mut two).expect("reads");
        assert_eq!(&two, b"cd");
        one.read_exact(&mut two).expect("reads");
        assert_eq!(&two, b"ef");
    }
}
