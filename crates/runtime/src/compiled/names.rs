//! Names of machine code for tools that look at the process from outside: `perf` and `gdb`.
//!
//! - `+JPperf map`: a line for each function in the map that also has the marks of interpreted code
//!   (`purlin_kernel::code::perf`).
//! - `+JPperf dump`: a file in the format of `perf`'s jitdump, `jit-PID.dump`, with bytes, lines
//!   and, on x86-64, unwinding tables of each function (`unwinding.rs`). `perf record -k mono`
//!   finds it because one of its pages is mapped executable; `perf inject --jit` makes symbol files
//!   of it.
//! - `gdb` finds the names by its interface for compilers, in any case: see [`super::gdb`].
//!
//! # Invariants
//! - A failed write loses names, nothing else.
//! - A function is registered before any thread can run it.

use super::gdb::Symbols;
use super::unwinding::{self, Tables};
use crate::code::{self, Module};
use crate::options::EmulatorOptions;
use purlin_jit::Frames;
use purlin_jit::asm::Code;
use purlin_loader::lower::LoweredFunction;
use purlin_messages as messages;
use purlin_term::Term;
use purlin_term::print::{Style, format_atom};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

/// The tools to notify.
pub(super) struct Names {
    map: bool,
    dump: Option<Dump>,
    symbols: Symbols,
}

/// A function with new machine code, for tools that name it.
pub(super) struct Named<'a> {
    pub module: &'a Module,
    pub function: &'a LoweredFunction,
    /// Address of its machine code.
    pub at: u64,
    pub bytes: &'a [u8],
    pub tables: Option<Tables>,
    /// Start of the machine code of each word of the module; sorted.
    pub places: &'a [(u32, u32)],
}

/// Returns the name that stock gives a function for `perf`.
fn name_of(m: &Module, f: &LoweredFunction) -> String {
    // SAFETY: the word of an atom.
    let name = unsafe { Term::from_raw(f.name) };
    let quoted = |t| format_atom(t, Style::Display);
    format!("${}:{}/{}", quoted(m.name), quoted(name), f.arity)
}

/// Bytes of addresses behind the stubs that tools put their unwinding tables at.
const TABLES: usize = 2048;

/// Returns the bytes to take for the stubs: more, if tools put tables behind them.
pub(super) fn room_for_stubs(bytes: usize, o: &EmulatorOptions) -> usize {
    match UNWINDS && o.flags.jit.perf_dump {
        true => bytes.next_multiple_of(8) + TABLES,
        false => bytes,
    }
}

impl Names {
    /// Opens the files. `range` is the range of machine code.
    pub fn new(o: &EmulatorOptions, range: std::ops::Range<u64>) -> Names {
        let jit = &o.flags.jit;
        let dir = jit.perf_directory.as_deref().unwrap_or("/tmp");
        let dump = match jit.perf_dump.then(|| Dump::new(dir)) {
            Some(Err(e)) => {
                let pid = std::process::id();
                let text = format!("+JPperf: cannot write {dir}/jit-{pid}.dump: {e}");
                purlin_term::say!("{}", messages::NO_PERF_DUMP.line(text));
                None
            }
            other => other.and_then(Result::ok),
        };
        Names {
            map: jit.perf_map,
            dump,
            symbols: Symbols::new(range),
        }
    }
    /// Returns the unwinding tables of a function, if tools want them, and the bytes to take for
    /// code and tables.
    pub fn room_for(&self, code: &Code) -> (Option<Tables>, usize) {
        let bytes = code.bytes.len();
        match &self.dump {
            Some(_) if UNWINDS => {
                let t = unwinding::function(bytes, &code.depths);
                let room = bytes.next_multiple_of(8) + t.bytes.len();
                (Some(t), room)
            }
            _ => (None, bytes),
        }
    }
    /// Registers the stubs, which all functions share.
    pub fn shared(&mut self, at: u64, bytes: &[u8], frames: &Frames) {
        const NAME: &str = "$global::shared";
        if self.map {
            code::perf::map(at, bytes.len(), NAME);
        }
        if let Some(d) = &mut self.dump {
            if UNWINDS {
                d.unwinding(&unwinding::stubs(at, bytes.len(), frames));
            }
            d.code(at, bytes, NAME);
        }
        self.symbols.add(at, bytes.len(), NAME);
    }
    pub fn add(&mut self, n: &Named) {
        let name = name_of(n.module, n.function);
        if self.map {
            code::perf::map(n.at, n.bytes.len(), &name);
        }
        if let Some(d) = &mut self.dump {
            d.lines(n);
            n.tables.iter().for_each(|t| d.unwinding(t));
            d.code(n.at, n.bytes, &name);
        }
        self.symbols.add(n.at, n.bytes.len(), &name);
    }
    /// Removes the machine code at that address.
    pub fn remove(&mut self, at: u64) {
        self.symbols.remove(at);
    }
}

/// A file of machine code for `perf inject --jit`, in the format of Linux'
/// `jitdump-specification.txt`.
struct Dump {
    file: File,
    index: u64,
}

const LOAD: u32 = 0;
const DEBUG_INFO: u32 = 2;
const UNWINDING: u32 = 4;
/// `EM_AARCH64`, `EM_X86_64`.
const MACHINE: u32 = if cfg!(target_arch = "aarch64") {
    183
} else {
    62
};
/// Whether the dump has unwinding tables. They are those of x86-64.
const UNWINDS: bool = cfg!(target_arch = "x86_64");

/// Returns the time of the clock that `perf record -k mono` uses, in nanoseconds.
fn now() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a system call that fills in `t`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

impl Dump {
    fn new(dir: &str) -> std::io::Result<Dump> {
        let path = format!("{dir}/jit-{}.dump", std::process::id());
        let mut file = code::perf::private_file(&path)?;
        let mut head = Vec::new();
        for n in [0x4A69_5444u32, 1, 40, MACHINE, 0, std::process::id()] {
            head.extend(n.to_le_bytes());
        }
        head.extend(now().to_le_bytes());
        head.extend(0u64.to_le_bytes());
        file.write_all(&head)?;
        // `perf record` records this mapping, and so the file is found. The mapping stays. SAFETY:
        // a new mapping of a file of ours, which is never accessed through it.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        match mapped == libc::MAP_FAILED {
            true => Err(std::io::Error::last_os_error()),
            false => Ok(Dump { file, index: 0 }),
        }
    }
    fn record(&mut self, id: u32, body: &[u8]) {
        let mut all = Vec::with_capacity(16 + body.len());
        all.extend(id.to_le_bytes());
        all.extend((16 + body.len() as u32).to_le_bytes());
        all.extend(now().to_le_bytes());
        all.extend(body);
        let _ = self.file.write_all(&all);
    }
    /// Writes a function. Names in the dump have no `$` in front, as in stock.
    fn code(&mut self, at: u64, bytes: &[u8], name: &str) {
        let name = name.strip_prefix('$').unwrap_or(name);
        let pid = std::process::id();
        let tid = thread_number();
        let mut b = Vec::with_capacity(40 + name.len() + 1 + bytes.len());
        b.extend(pid.to_le_bytes());
        b.extend(tid.to_le_bytes());
        for n in [at, at, bytes.len() as u64, self.index] {
            b.extend(n.to_le_bytes());
        }
        b.extend(name.as_bytes());
        b.push(0);
        b.extend(bytes);
        self.index += 1;
        self.record(LOAD, &b);
    }
    /// Writes the unwinding tables of the next function.
    fn unwinding(&mut self, t: &Tables) {
        let mut b = Vec::with_capacity(24 + t.bytes.len());
        // The last is how much of it is behind the code in memory, as far as the reader knows.
        for n in [t.bytes.len(), t.header, t.bytes.len()] {
            b.extend((n as u64).to_le_bytes());
        }
        b.extend(&t.bytes);
        self.record(UNWINDING, &b);
    }
    /// Writes the lines of the next function.
    fn lines(&mut self, n: &Named) {
        let mut entries: Vec<u8> = Vec::new();
        let mut count = 0u64;
        let mut last = None;
        for &(offset, word) in n.places {
            let Some((file, line)) = n.module.line_at(n.module.at(word)) else {
                continue;
            };
            if last.as_ref() == Some(&(file.clone(), line)) {
                continue;
            }
            entries.extend((n.at + u64::from(offset)).to_le_bytes());
            entries.extend(line.to_le_bytes());
            entries.extend(0u32.to_le_bytes());
            entries.extend(file.as_bytes());
            entries.push(0);
            count += 1;
            last = Some((file, line));
        }
        if count == 0 {
            return;
        }
        let mut b = Vec::with_capacity(16 + entries.len());
        b.extend(n.at.to_le_bytes());
        b.extend(count.to_le_bytes());
        b.extend(entries);
        self.record(DEBUG_INFO, &b);
    }
}

/// The system's number of this thread.
#[cfg(target_os = "linux")]
fn thread_number() -> u32 {
    // SAFETY: a system call without arguments.
    unsafe { libc::gettid() as u32 }
}
/// The system's number of this thread, of which the dump has room for half.
#[cfg(target_os = "macos")]
fn thread_number() -> u32 {
    let mut n = 0;
    // SAFETY: thread 0 is the calling one, and there is room for its number.
    unsafe { libc::pthread_threadid_np(0, &mut n) };
    n as u32
}
