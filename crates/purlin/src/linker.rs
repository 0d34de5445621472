//! Roots with a C library of their own, as in an unpacked tree of another distribution's packages.
//!
//! Native libraries of such a root (`crypto`) are linked with libraries in its tree. A process has
//! one C library, so the emulator is started under the tree's dynamic linker, and finds its own
//! libraries there, too. This works only if the tree's C library is no older than the machine's,
//! with which this program was linked.
//!
//! Under such a linker `/proc/self/exe` is the linker, so [`executable`] finds Purlin's own file.

use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use purlin_runtime::options::OtpInstall;

/// Prefixes of the names of dynamic linkers.
const LINKER: &[u8] = b"ld-linux";
/// The text before the version in a C library's description of itself.
const BANNER: &[u8] = b"GNU C Library";

/// The file of this program.
pub fn executable() -> io::Result<PathBuf> {
    let file = std::env::current_exe()?;
    if !is_linker(&file) {
        return Ok(file);
    }
    mapped_at(
        executable as *const () as usize,
        &fs::read("/proc/self/maps")?,
    )
    .ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn is_linker(file: &Path) -> bool {
    file.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(LINKER))
}

/// The file mapped at an address, according to a table of mappings.
fn mapped_at(address: usize, maps: &[u8]) -> Option<PathBuf> {
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        let text = String::from_utf8_lossy(line);
        let (first, rest) = text.split_once('-')?;
        let (end, _) = rest.split_once(' ')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let within = (number(first)?..number(end)?).contains(&address);
        let path = line.iter().position(|byte| *byte == b'/')?;
        within.then(|| PathBuf::from(OsString::from_vec(line[path..].to_vec())))
    })
}

/// A dynamic linker, and the directory of its libraries.
#[derive(Debug, PartialEq, Eq)]
pub struct Linker {
    program: PathBuf,
    libraries: PathBuf,
}

impl Linker {
    /// The linker of the tree around an installation, if the emulator has to run under it and does
    /// not yet.
    pub fn of(otp: &OtpInstall) -> Option<Linker> {
        let linker = Linker::around(&otp.root)?;
        if std::env::current_exe().is_ok_and(|file| is_linker(&file)) {
            return None;
        }
        let theirs = version_in(&fs::read(linker.libraries.join("libc.so.6")).ok()?)?;
        (theirs >= version(own_version()?.to_bytes())?).then_some(linker)
    }

    /// The linker in the tree around `…/usr/lib/erlang`, unless that tree is the machine itself.
    fn around(root: &Path) -> Option<Linker> {
        let tree = root.to_str()?.strip_suffix("/usr/lib/erlang")?;
        if tree.is_empty() {
            return None;
        }
        let machine = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let libraries = Path::new(tree).join(machine);
        let program = fs::read_dir(&libraries)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| is_linker(path))?;
        Some(Linker { program, libraries })
    }

    /// The linker, and the arguments with which it runs this program under the name `name`.
    pub fn line(self, name: &OsStr, args: &[OsString]) -> io::Result<(PathBuf, Vec<OsString>)> {
        let mut line: Vec<OsString> = vec!["--library-path".into(), self.libraries.into()];
        line.extend(["--argv0".into(), name.to_os_string(), executable()?.into()]);
        line.extend_from_slice(args);
        Ok((self.program, line))
    }
}

/// The version of the C library of this process, if it is one that dynamic linkers of trees load.
#[cfg(target_env = "gnu")]
fn own_version() -> Option<&'static CStr> {
    // SAFETY: no preconditions; returns a string that stays.
    Some(unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) })
}
#[cfg(not(target_env = "gnu"))]
fn own_version() -> Option<&'static CStr> {
    None
}

/// The version in a C library's file.
fn version_in(file: &[u8]) -> Option<(u32, u32)> {
    let banner = file.windows(BANNER.len()).position(|w| w == BANNER)?;
    let line = file[banner..].split(|byte| *byte == b'\n').next()?;
    let word = b" version ";
    let at = line.windows(word.len()).position(|w| w == word)?;
    version(&line[at + word.len()..])
}

/// The first two numbers of a version.
fn version(text: &[u8]) -> Option<(u32, u32)> {
    let mut numbers = text
        .split(|byte| !byte.is_ascii_digit())
        .map(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let text =
            b"\0GNU C Library (Debian GLIBC 2.41-12) stable release version 2.41.\nCopyright 2.9\n";
        assert_eq!(version_in(text), Some((2, 41)));
        assert_eq!(version_in(b"GNU C Library\n version 2.41"), None);
        assert_eq!(version(b"2.36"), Some((2, 36)));
        assert_eq!(version(b"2"), None);
    }

    #[test]
    fn mappings() {
        let maps = b"1000-2000 r--p 00000000 fe:00 12   /lib/one\n2000-3000 r-xp 00001000 fe:00 12   /opt/t w/o\n7000-8000 rw-p 0 00:00 0 \n";
        assert_eq!(mapped_at(0x1fff, maps), Some("/lib/one".into()));
        assert_eq!(mapped_at(0x2000, maps), Some("/opt/t w/o".into()));
        assert_eq!(mapped_at(0x3000, maps), None);
        assert_eq!(mapped_at(0x7000, maps), None);
        let own = executable().expect("has a file");
        let maps = fs::read("/proc/self/maps").expect("is read");
        assert_eq!(
            mapped_at(executable as *const () as usize, &maps),
            Some(own)
        );
    }

    #[test]
    fn the_machine_is_no_tree() {
        assert_eq!(Linker::around("/usr/lib/erlang".as_ref()), None);
        assert_eq!(Linker::around("/opt/otp".as_ref()), None);
    }
}
