//! Names of Erlang functions for `perf`: `+JPperf true` or `map`.
//!
//! `perf` identifies functions by code addresses. Erlang code here is data for the interpreter, and
//! its return addresses lie on heaps. So each function gets a *mark*: an address in a range that is
//! mapped as code and contains none. The file that `perf` reads (`perf-PID.map`, lines `START
//! LENGTH NAME` in hexadecimal, as documented in its `jit-interface.txt`) names the marks in the
//! way stock names its functions: `$module:function/arity`. Code that is loaded while this is on
//! has an instruction (`running`) that says which function runs, at its entry and behind each call.
//! The interpreter keeps that mark in its own frame, where a return address stands.
//!
//! # Invariants
//! * Nothing ever jumps to a mark.
//! * Marks are not reused: a function of a purged module keeps its name.
//! * If marks are off, no code has the instruction, and the cost is one look at a flag in a time
//!   slice.

use crate::options::{self, EmulatorOptions};
use crate::sync::Mutex;
use purlin_loader::lower::LoweredFunction;
use purlin_term::print::{Style, format_atom};
use purlin_term::{Term, sys};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Addresses that a mark covers, in bytes.
const MARK_BYTES: usize = 16;
/// Addresses of all marks, in bytes: marks of 16 million functions.
const RANGE_BYTES: usize = 256 << 20;

static ON: AtomicBool = AtomicBool::new(false);
/// Start of the next mark, and end of the range.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
static MAP: Mutex<Option<File>> = Mutex::new(None);

/// Whether loaded code announces the running function.
#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Opens the map and begins to hand out marks, if the options ask for it. Must be called before any
/// module is loaded. Returns an error text on failure; the runtime continues without.
pub fn start(o: &EmulatorOptions) -> Result<(), String> {
    let jit = &o.flags.jit;
    if !jit.perf_map {
        return Ok(());
    }
    let dir = jit.perf_directory.as_deref().unwrap_or("/tmp");
    let path = format!("{dir}/perf-{}.map", std::process::id());
    let file = private_file(&path).map_err(|e| format!("cannot write {path}: {e}"))?;
    // On other systems the interpreter cannot put a mark into its frame, and the map has machine
    // code alone.
    if !options::PERF_MARKS {
        *MAP.lock() = Some(file);
        return Ok(());
    }
    let start = sys::reserve_marks(RANGE_BYTES).ok_or("no addresses for names of functions")?;
    NEXT.store(start, Ordering::Relaxed);
    END.store(start + RANGE_BYTES, Ordering::Relaxed);
    *MAP.lock() = Some(file);
    ON.store(true, Ordering::Relaxed);
    Ok(())
}

/// Opens a file for a tool, empty, in a directory where everyone may write. The name can be
/// guessed: no link that someone put there is followed, and a file of another user is not used.
/// Only the user and root can read it.
pub fn private_file(path: &str) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let meta = file.metadata()?;
    // SAFETY: a system call without arguments, which cannot fail.
    let user = unsafe { libc::geteuid() };
    if !meta.is_file() || meta.uid() != user || meta.nlink() != 1 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.set_len(0)?;
    Ok(file)
}

/// Names machine code in the map, if there is one, by its address and size in bytes.
pub fn map(at: u64, bytes: usize, name: &str) {
    if let Some(file) = MAP.lock().as_mut() {
        // An error is ignored, as for marks.
        let _ = file.write_all(format!("{at:#x} {bytes:x} {name}\n").as_bytes());
    }
}

/// The marks of a module's functions.
pub(super) struct Marks {
    /// The first mark; 0 if there are none.
    start: usize,
}

impl Marks {
    /// Marks for a module with this many functions that is being loaded.
    pub(super) fn new(functions: usize) -> Marks {
        if !on() {
            return Marks { start: 0 };
        }
        let bytes = functions * MARK_BYTES;
        let fits = |next: usize| {
            let end = next.checked_add(bytes)?;
            (end <= END.load(Ordering::Relaxed)).then_some(end)
        };
        let start = NEXT.try_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        Marks {
            start: start.unwrap_or(0),
        }
    }
    /// Returns the mark of the function with that index: an address inside its range, as a return
    /// address would be.
    pub(super) fn of(&self, index: usize) -> Option<u64> {
        (self.start != 0).then(|| (self.start + index * MARK_BYTES + MARK_BYTES / 2) as u64)
    }
    /// Writes the names of the marks to the map.
    pub(super) fn write(&self, module: Term, functions: &[LoweredFunction]) {
        if self.start == 0 {
            return;
        }
        let mut text = String::new();
        for (i, f) in functions.iter().enumerate() {
            // SAFETY: the word of an atom.
            let name = unsafe { Term::from_raw(f.name) };
            let quoted = |t| format_atom(t, Style::Display);
            let shown = format!("${}:{}/{}", quoted(module), quoted(name), f.arity);
            let at = self.start + i * MARK_BYTES;
            text += &format!("{at:#x} {MARK_BYTES:x} {shown}\n");
        }
        if let Some(file) = MAP.lock().as_mut() {
            // On a full disk names are missing, nothing worse.
            let _ = file.write_all(text.as_bytes());
        }
    }
}
