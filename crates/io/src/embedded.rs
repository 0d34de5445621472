//! Embedded files: files that lie in the executable itself, behind the program, where `purlin
//! build` puts them.
//!
//! They appear below [`ROOT`], where no other file can be: that path is a file and no folder, so
//! the system itself would answer `enotdir` there. They can only be read. Most readers get the
//! mapped bytes. A reader that needs a descriptor (an open file, a native library, a program to
//! start) gets that of a file in memory ([`descriptor`]).
//!
//! # Invariants
//! * [`set`] is called once, before any other thread runs, or never.
//! * Names are sorted and unique. A folder exists wherever a name continues behind a slash.

use std::ffi::CString;
#[cfg(target_os = "linux")]
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

/// The path below which embedded files appear.
pub const ROOT: &str = "/proc/self/exe";

/// An embedded file: its name relative to the root, its bytes, and whether it can be executed.
pub struct EmbeddedFile {
    pub name: &'static str,
    pub bytes: &'static [u8],
    pub is_program: bool,
}

static FILES: OnceLock<Vec<EmbeddedFile>> = OnceLock::new();

/// Sets the files, which are sorted by name.
pub fn set(files: Vec<EmbeddedFile>) {
    debug_assert!(files.is_sorted_by(|a, b| a.name < b.name));
    let _ = FILES.set(files);
}

pub enum Found {
    File(&'static EmbeddedFile),
    Folder,
}

/// Returns the name that a path leads to, without `.`, `..` and doubled slashes. None if the path
/// leads elsewhere.
fn name_of(path: &[u8]) -> Option<Vec<u8>> {
    let rest = path.strip_prefix(ROOT.as_bytes())?;
    if !rest.is_empty() && rest[0] != b'/' {
        return None;
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in rest.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            // Leaves the root again: some other file.
            b".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join(&b'/'))
}

/// Index of the first file whose name is not before `name`.
fn place(files: &[EmbeddedFile], name: &[u8]) -> usize {
    files.partition_point(|f| f.name.as_bytes() < name)
}

/// Finds the file at a path. None if the path leads elsewhere or there are no embedded files; an
/// error number if nothing has that name.
pub fn find(path: &[u8]) -> Option<Result<Found, i32>> {
    let files = FILES.get()?;
    let name = name_of(path)?;
    let at = place(files, &name);
    match files.get(at) {
        Some(f) if f.name.as_bytes() == name => return Some(Ok(Found::File(f))),
        _ => {}
    }
    if !below(files, &name).is_empty() {
        return Some(Ok(Found::Folder));
    }
    // A name below a file.
    let above = name.iter().enumerate().filter(|(_, b)| **b == b'/');
    for (end, _) in above {
        let at = place(files, &name[..end]);
        if files
            .get(at)
            .is_some_and(|f| f.name.as_bytes() == &name[..end])
        {
            return Some(Err(libc::ENOTDIR));
        }
    }
    Some(Err(libc::ENOENT))
}

/// The files below a folder.
fn below<'a>(files: &'a [EmbeddedFile], name: &[u8]) -> &'a [EmbeddedFile] {
    if name.is_empty() {
        return files;
    }
    let from = place(files, &[name, b"/"].concat());
    // The byte after the slash sorts after every name that continues with a slash.
    let to = place(files, &[name, &[b'/' + 1]].concat());
    &files[from..to.max(from)]
}

/// The names in a folder, each once.
pub fn list(path: &[u8]) -> Option<Result<Vec<&'static str>, i32>> {
    match find(path)? {
        Err(e) => return Some(Err(e)),
        Ok(Found::File(_)) => return Some(Err(libc::ENOTDIR)),
        Ok(Found::Folder) => {}
    }
    let name = name_of(path)?;
    let skip = if name.is_empty() { 0 } else { name.len() + 1 };
    let mut names: Vec<&'static str> = below(FILES.get()?, &name)
        .iter()
        .map(|f| {
            let rest = &f.name[skip..];
            rest.split('/').next().unwrap_or(rest)
        })
        .collect();
    names.dedup();
    Some(Ok(names))
}

/// Returns the bytes of a file.
pub fn read(path: &[u8]) -> Option<Result<&'static [u8], i32>> {
    Some(match find(path)? {
        Ok(Found::File(f)) => Ok(f.bytes),
        Ok(Found::Folder) => Err(libc::EISDIR),
        Err(e) => Err(e),
    })
}

/// Returns a descriptor of a sealed file in memory with these bytes, which nobody can change.
#[cfg(target_os = "linux")]
pub fn descriptor(file: &EmbeddedFile) -> Result<OwnedFd, i32> {
    let errno = || {
        let e = std::io::Error::last_os_error();
        e.raw_os_error().unwrap_or(libc::EIO)
    };
    let short = file.name.rsplit('/').next().unwrap_or_default();
    let name =
        CString::new(short.get(..short.len().min(200)).unwrap_or_default()).unwrap_or_default();
    // SAFETY: a terminated string; the new descriptor belongs to nobody else.
    let owned = unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if fd < 0 {
            return Err(errno());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let fd = std::os::fd::AsRawFd::as_raw_fd(&owned);
    let mut left = file.bytes;
    while !left.is_empty() {
        // SAFETY: mapped bytes and an open descriptor.
        let n = unsafe { libc::write(fd, left.as_ptr().cast(), left.len()) };
        match n {
            n if n > 0 => left = &left[n as usize..],
            _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            _ => return Err(errno()),
        }
    }
    // SAFETY: plain calls on an open descriptor.
    unsafe {
        libc::fchmod(fd, if file.is_program { 0o555 } else { 0o444 });
        libc::lseek(fd, 0, libc::SEEK_SET);
        let seals =
            libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
        libc::fcntl(fd, libc::F_ADD_SEALS, seals);
    }
    Ok(owned)
}

/// Other systems have no files in memory.
#[cfg(not(target_os = "linux"))]
pub fn descriptor(_: &EmbeddedFile) -> Result<OwnedFd, i32> {
    Err(libc::ENOTSUP)
}

/// Returns a path by which the system can open an embedded file: that of a descriptor. The
/// descriptor stays open for the life of the process, because a library loader takes two libraries
/// of one path for the same. None if the path leads elsewhere.
pub fn system_path(path: &[u8]) -> Option<Result<CString, i32>> {
    use std::os::fd::IntoRawFd;
    Some(match find(path)? {
        Ok(Found::File(f)) => descriptor(f).map(|fd| {
            let path = format!("/proc/self/fd/{}", fd.into_raw_fd());
            CString::new(path).unwrap_or_default()
        }),
        Ok(Found::Folder) => Err(libc::EISDIR),
        Err(e) => Err(e),
    })
}

/// The result of `stat`.
pub fn status(path: &[u8]) -> Option<Result<libc::stat, i32>> {
    let found = match find(path)? {
        Ok(found) => found,
        Err(e) => return Some(Err(e)),
    };
    // SAFETY: all zeros are a valid value of it.
    let mut st: libc::stat = unsafe { std::mem::zeroed() };
    st.st_nlink = 1;
    match found {
        Found::File(f) => {
            st.st_mode = libc::S_IFREG | if f.is_program { 0o555 } else { 0o444 };
            st.st_size = f.bytes.len() as i64;
        }
        Found::Folder => st.st_mode = libc::S_IFDIR | 0o555,
    }
    Some(Ok(st))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let of = |p: &str| name_of(p.as_bytes()).map(|n| String::from_utf8(n).expect("is text"));
        assert_eq!(of("/proc/self/exe/lib/a"), Some("lib/a".into()));
        assert_eq!(of("/proc/self/exe//lib/./b/../a/"), Some("lib/a".into()));
        assert_eq!(of("/proc/self/exe"), Some(String::new()));
        assert_eq!(of("/proc/self/exe/../status"), None);
        assert_eq!(of("/proc/self/executable"), None);
        assert_eq!(of("/etc/passwd"), None);
    }

    #[test]
    fn files_and_folders() {
        let file = |name, bytes| EmbeddedFile {
            name,
            bytes,
            is_program: false,
        };
        set(vec![
            file("a-b/x", b"1"),
            file("a/b/x", b"22"),
            file("a/b/y", b""),
            file("a/c", b"3"),
            file("a0", b"4"),
        ]);
        let at = |p: &str| format!("{ROOT}/{p}").into_bytes();
        let names = |p: &str| list(&at(p)).expect("leads inside");
        assert_eq!(names(""), Ok(vec!["a-b", "a", "a0"]));
        assert_eq!(names("a"), Ok(vec!["b", "c"]));
        assert_eq!(names("a/b/"), Ok(vec!["x", "y"]));
        assert_eq!(names("a/c"), Err(libc::ENOTDIR));
        assert_eq!(names("a/d"), Err(libc::ENOENT));
        assert_eq!(read(&at("a/b/x")), Some(Ok(&b"22"[..])));
        assert_eq!(read(&at("a/b")), Some(Err(libc::EISDIR)));
        assert_eq!(read(&at("a/c/d")), Some(Err(libc::ENOTDIR)));
        assert_eq!(read(&at("z")), Some(Err(libc::ENOENT)));
        assert_eq!(read(b"/etc/passwd"), None);
        let st = status(&at("a/b/x"))
            .expect("leads inside")
            .expect("is there");
        assert_eq!((st.st_size, st.st_mode & libc::S_IFMT), (2, libc::S_IFREG));
        #[cfg(target_os = "linux")]
        {
            let path = system_path(&at("a/b/x"))
                .expect("leads inside")
                .expect("is made");
            let text = std::fs::read(path.to_str().expect("is text")).expect("is read");
            assert_eq!(text, b"22");
        }
    }
}
