//! One executable with a program in it: the file format, and the start of such an executable.
//!
//!     Purlin's own program, stripped | zeros up to a page | contents of files | table | trailer
//!
//! The trailer is the end of the file: position and length of the table, and a magic number. The
//! table has name length, content length and position of each file, sorted by name; the manifest
//! comes first. Contents that are loaded are mapped, so they take memory once for all processes
//! that run the file. All numbers are little-endian.
//!
//! Modules come with the code that the loader would make ([`images`]), since making it takes most
//! of a short program's time.

pub mod images;
pub mod stage;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use purlin_diagnostics::json::{self, Json};
use purlin_runtime::io::embedded::{self, EmbeddedFile, ROOT};
use purlin_runtime::options::OtpInstall;
use purlin_runtime::options::erlexec::Environment;

use crate::commands::{erl, print};
use crate::context::Context;
use crate::failure::{Failure, NO_INPUT, SYSTEM, cannot_run, no_own_executable, reason};
use purlin_messages as messages;

const MARK: &[u8; 16] = b"purlin program 1";
/// Size of the trailer: position and length of the table, and the magic number.
const TRAILER: usize = 32;
/// The file that says how the program starts.
const MANIFEST: &str = "purlin.json";
/// The first argument that the runtime handles itself, not the program.
const VERSION_FLAG: &str = "--purlin-version";
/// Alignment of contents: the largest page size of any system.
const PAGE: usize = 65536;

/// A file to put into an executable.
pub struct Content {
    pub name: String,
    pub bytes: Vec<u8>,
    pub is_program: bool,
}

/// The way in which the program starts.
pub struct Manifest {
    /// Its name and version.
    pub name: String,
    pub version: String,
    pub otp: OtpInstall,
    /// Arguments of `erl`, before those of the program's user.
    pub args: Vec<String>,
    pub environment: Vec<(String, String)>,
}

impl Manifest {
    fn json(&self) -> Json {
        let text = |s: &str| Json::Text(s.to_string());
        let pairs = self.environment.iter();
        let environment = pairs.map(|(name, value)| Json::List(vec![text(name), text(value)]));
        Json::object([
            ("name", text(&self.name)),
            ("version", text(&self.version)),
            ("purlin", text(env!("CARGO_PKG_VERSION"))),
            ("release", text(&self.otp.release.to_string())),
            ("otp", text(&self.otp.version)),
            ("erts", text(&self.otp.erts_version)),
            (
                "args",
                Json::List(self.args.iter().map(|a| text(a)).collect()),
            ),
            ("environment", Json::List(environment.collect())),
        ])
    }
}

/// The bytes of an executable, which depend on the input only.
pub fn pack(program: Vec<u8>, manifest: &Manifest, mut files: Vec<Content>) -> Vec<u8> {
    files.push(Content {
        name: MANIFEST.into(),
        bytes: manifest.json().to_string().into_bytes(),
        is_program: false,
    });
    // An application may contain modules that are in the emulator as well.
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files.dedup_by(|a, b| a.name == b.name);
    let mut out = program;
    out.resize(out.len().next_multiple_of(PAGE), 0);
    let mut table = Vec::new();
    for file in &files {
        // Words of a module are read in place.
        out.resize(out.len().next_multiple_of(8), 0);
        table.extend_from_slice(&(file.name.len() as u32).to_le_bytes());
        table.extend_from_slice(&u32::from(file.is_program).to_le_bytes());
        table.extend_from_slice(&(out.len() as u64).to_le_bytes());
        table.extend_from_slice(&(file.bytes.len() as u64).to_le_bytes());
        table.extend_from_slice(file.name.as_bytes());
        out.extend_from_slice(&file.bytes);
    }
    let at = out.len() as u64;
    out.extend_from_slice(&table);
    out.extend_from_slice(&at.to_le_bytes());
    out.extend_from_slice(&(table.len() as u64).to_le_bytes());
    out.extend_from_slice(MARK);
    out
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// The files in an executable with the contents `file`; `None` if the table is damaged.
fn unpack(file: &'static [u8]) -> Option<Vec<EmbeddedFile>> {
    let trailer = file.len().checked_sub(TRAILER)?;
    let (at, length) = (number(file, trailer)?, number(file, trailer + 8)?);
    let mut table = file.get(at..at.checked_add(length)?)?;
    let mut files: Vec<EmbeddedFile> = Vec::new();
    while !table.is_empty() {
        let word = |at: usize| {
            let bytes = table.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let (name, is_program) = (word(0)? as usize, word(4)? != 0);
        let (from, length) = (number(table, 8)?, number(table, 16)?);
        let name = std::str::from_utf8(table.get(24..24 + name)?).ok()?;
        if files.last().is_some_and(|last| last.name >= name) {
            return None;
        }
        table = &table[24 + name.len()..];
        files.push(EmbeddedFile {
            name,
            bytes: file.get(from..from.checked_add(length)?)?,
            is_program,
        });
    }
    Some(files)
}

/// The files of the program in this very executable, if there is one, or the reason why it cannot
/// run.
pub fn own() -> Option<Result<Vec<EmbeddedFile>, Failure>> {
    let (path, file) = this_file()?;
    let length = file.metadata().ok()?.len();
    let mut trailer = [0; TRAILER];
    file.read_exact_at(&mut trailer, length.checked_sub(TRAILER as u64)?)
        .ok()?;
    if &trailer[16..] != MARK {
        return None;
    }
    let damaged = |why: &str| damaged_executable(format!("{}: {why}", path.display()));
    Some(match map(&file, length) {
        Err(e) => Err(damaged(&reason(&e))),
        Ok(bytes) => unpack(bytes).ok_or_else(|| damaged("the table of its files is damaged")),
    })
}

fn damaged_executable(text: String) -> Failure {
    Failure::new(messages::DAMAGED_EXECUTABLE, NO_INPUT, text)
}

/// The file that this process was started from.
fn this_file() -> Option<(PathBuf, File)> {
    match std::env::current_exe() {
        // Opened through the link, it is the running file even if another one has its name by now.
        Ok(path) => {
            let file = File::open(ROOT).or_else(|_| File::open(&path)).ok()?;
            Some((path, file))
        }
        Err(_) => file_by_name(),
    }
}

/// The same without `/proc`, by the name that the system has passed at the start.
#[cfg(target_os = "linux")]
fn file_by_name() -> Option<(PathBuf, File)> {
    // SAFETY: null or a string that the system keeps.
    let name = unsafe {
        let at = libc::getauxval(libc::AT_EXECFN) as *const libc::c_char;
        (!at.is_null()).then(|| std::ffi::CStr::from_ptr(at))
    }?;
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    let file = File::open(&path).ok()?;
    Some((path, file))
}
#[cfg(not(target_os = "linux"))]
fn file_by_name() -> Option<(PathBuf, File)> {
    None
}

/// Maps the whole file for the life of the process.
fn map(file: &File, length: u64) -> io::Result<&'static [u8]> {
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a private mapping that is never unmapped. A running file cannot be written to, and
    // one that is replaced stays as it is while it is open.
    unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        );
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts(at.cast(), length))
    }
}

/// Runs the program.
pub fn run(files: Vec<EmbeddedFile>, argv: &[OsString]) -> Result<u8, Failure> {
    let broken = |what: &str| damaged_executable(format!("the program's manifest: {what}"));
    let manifest = files
        .iter()
        .find(|f| f.name == MANIFEST)
        .ok_or_else(|| broken("it isn't there"))?;
    let text = std::str::from_utf8(manifest.bytes).map_err(|_| broken("it is no text"))?;
    let manifest = json::parse(text).map_err(|e| broken(&e.to_string()))?;
    let word = |name: &str| {
        manifest
            .get(name)
            .and_then(Json::text)
            .map(str::to_string)
            .ok_or_else(|| broken(&format!("there is no {name}")))
    };
    let (otp, erts) = (word("otp")?, word("erts")?);
    let args = argv.get(1..).unwrap_or_default();
    if args.first().is_some_and(|arg| arg == VERSION_FLAG) {
        return print(&format!(
            "{} {} (purlin {}, Erlang/OTP {otp}, erts {erts})\n",
            word("name")?,
            word("version")?,
            word("purlin")?
        ));
    }
    let root = Path::new(ROOT);
    let otp = OtpInstall {
        root: root.into(),
        release: word("release")?.parse().map_err(|_| broken("release"))?,
        version: otp,
        bindir: root.join(format!("erts-{erts}/bin")),
        erts_version: erts,
    };
    let list = |name: &str| manifest.get(name).map(Json::list).unwrap_or_default();
    let mut words: Vec<OsString> = list("args")
        .iter()
        .filter_map(Json::text)
        .map(OsString::from)
        .collect();
    if !words.iter().any(|word| word == "-extra") {
        words.push("-extra".into());
    }
    words.extend(args.iter().cloned());
    let mut environment = Environment::of_process();
    for pair in list("environment") {
        if let [name, value] = pair.list()
            && let (Some(name), Some(value)) = (name.text(), value.text())
            // The user's environment wins.
            && environment.get(name).is_none()
        {
            environment.set(name, OsStr::new(value));
        }
    }
    images::set(&files);
    embedded::set(files);
    erl::start(&otp, environment, &words)
}

/// Runs one of Purlin's own tools for `build`, and returns its output.
fn tool(
    context: &Context,
    dir: &Path,
    words: &[&OsStr],
    more: &[(&str, &str)],
) -> Result<(), Failure> {
    let own = crate::linker::executable().map_err(|e| no_own_executable(&e))?;
    let mut command = std::process::Command::new(own);
    if let Some(root) = context.otp_root() {
        command.arg("--otp-root").arg(root);
    }
    command
        .args(words)
        .current_dir(dir)
        .stdin(std::process::Stdio::null());
    command.envs(more.iter().copied());
    let first = words
        .first()
        .map(|w| w.to_string_lossy())
        .unwrap_or_default();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::new(
            messages::TOOL_FAILED,
            crate::failure::REFUSED,
            format!("{first} failed; see above"),
        )),
        Err(e) => Err(cannot_run(SYSTEM, first, &e)),
    }
}

/// A file name as shown in a message.
pub fn shown(path: &Path) -> String {
    String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed() -> Vec<u8> {
        let manifest = Manifest {
            name: "n".into(),
            version: "1".into(),
            otp: OtpInstall {
                root: "/".into(),
                release: 25,
                version: "25.2".into(),
                erts_version: "13.1".into(),
                bindir: "/bin".into(),
            },
            args: vec!["-noshell".into()],
            environment: Vec::new(),
        };
        let file = |name: &str, bytes: &[u8]| Content {
            name: name.into(),
            bytes: bytes.to_vec(),
            is_program: name == "b",
        };
        pack(
            b"program".to_vec(),
            &manifest,
            vec![file("b", b"2"), file("a/c", b"")],
        )
    }

    #[test]
    fn packed_and_unpacked() {
        let bytes: &'static [u8] = packed().leak();
        assert_eq!(packed(), bytes);
        let files = unpack(bytes).expect("is whole");
        let names: Vec<_> = files
            .iter()
            .map(|f| (f.name, f.bytes.len(), f.is_program))
            .collect();
        assert_eq!(names[..2], [("a/c", 0, false), ("b", 1, true)]);
        assert_eq!(names[2].0, MANIFEST);
    }

    #[test]
    fn damaged_tables_are_refused() {
        let bytes: &'static [u8] = packed().leak();
        for cut in [0, 1, TRAILER - 1, TRAILER, bytes.len() - 1] {
            let _ = unpack(&bytes[..cut]);
        }
        let table = number(bytes, bytes.len() - TRAILER).expect("has a table");
        for at in table..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 0xff;
            let _ = unpack(damaged.leak());
        }
    }
}
