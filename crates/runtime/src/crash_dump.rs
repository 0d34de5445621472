//! `erl_crash.dump`: what the emulator looked like when it gave up, in the format that stock writes and its tools
//! (`crashdump_viewer`, `recon`) read.
//!
//! `ERL_CRASH_DUMP` names the file, `ERL_CRASH_DUMP_SECONDS` limits the time that writing may take (0: no dump), and
//! `ERL_CRASH_DUMP_BYTES` the size (0: no dump). Nobody else runs the processes that are shown: each is taken out of
//! the hands of the schedulers first, see [`crate::process::state`]; one that runs just then is shown without its
//! heap. The emulator ends after this.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// A file that takes no more than so many bytes.
struct Limited {
    to: File,
    left: u64,
}

impl Write for Limited {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = buf
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if n == 0 && !buf.is_empty() {
            return Err(io::Error::other("limit reached"));
        }
        let n = self.to.write(&buf[..n])?;
        self.left -= n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn create(path: &std::ffi::OsStr) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .open(path)
}

/// Writes the dump, if the environment allows one, and says so on standard error.
pub fn write(slogan: &str) {
    let Some(o) = crate::start::try_options() else {
        return;
    };
    let flags = &o.flags.crash_dump;
    if flags.seconds == Some(0) || flags.bytes == Some(0) {
        return;
    }
    if let Some(s) = flags.seconds.filter(|s| *s > 0) {
        // SAFETY: the default action of the signal ends the process, which is what the time limit is for.
        unsafe {
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::alarm(s.min(u32::MAX as i64) as u32);
        }
    }
    let default = std::ffi::OsString::from("erl_crash.dump");
    let path = flags.file.as_ref().unwrap_or(&default);
    let mut err = io::stderr();
    let _ = write!(
        err,
        "\nCrash dump is being written to: {}...",
        path.display()
    );
    let Ok(file) = create(path) else {
        return;
    };
    let left = flags
        .bytes
        .and_then(|b| u64::try_from(b).ok())
        .unwrap_or(u64::MAX);
    let mut w = BufWriter::with_capacity(1 << 16, Limited { to: file, left });
    // A full disk, or the limit: what is there so far is still of use.
    let _ = dump(&mut w, slogan).and_then(|()| w.flush());
    let _ = writeln!(err, "done");
}

fn dump(w: &mut impl Write, slogan: &str) -> io::Result<()> {
    let now = crate::clock::DateTime::local_now();
    writeln!(w, "=erl_crash_dump:0.5")?;
    writeln!(w, "{}", ctime(&now))?;
    writeln!(w, "Slogan: {slogan}")?;
    write!(
        w,
        "System version: {}",
        crate::bif::system_info::system_version()
    )?;
    writeln!(w, "Taints: ")?;
    writeln!(w, "Atoms: {}", purlin_term::atom::count())?;
    memory(w)?;
    writeln!(w, "=end")
}

/// `=memory` and what follows it: the state of the system as a whole.
pub fn info(w: &mut Vec<u8>) -> io::Result<()> {
    memory(w)
}

fn memory(w: &mut impl Write) -> io::Result<()> {
    let u = crate::bif::memory::usage();
    writeln!(w, "=memory")?;
    for (name, bytes) in [
        ("total", u.total),
        ("processes", u.processes),
        ("processes_used", u.processes_used),
        ("system", u.system()),
        ("atom", u.atom),
        ("atom_used", u.atom),
        ("binary", u.binary),
        ("code", u.code),
        ("ets", u.ets),
    ] {
        writeln!(w, "{name}: {bytes}")?;
    }
    Ok(())
}

/// All processes.
pub fn processes(w: &mut Vec<u8>) -> io::Result<()> {
    for pid in crate::process::table().pids() {
        let pid = purlin_term::print::format_term(pid, purlin_term::print::Style::Display, 100);
        writeln!(w, "=proc:{pid}")?;
    }
    Ok(())
}

/// A date as C's `ctime` writes it.
fn ctime(d: &crate::clock::DateTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let day = DAYS[d.to_posix().div_euclid(86_400).rem_euclid(7) as usize];
    let month = MONTHS[(d.month - 1).clamp(0, 11) as usize];
    format!(
        "{day} {month} {:2} {:02}:{:02}:{:02} {}",
        d.day, d.hour, d.minute, d.second, d.year
    )
}
