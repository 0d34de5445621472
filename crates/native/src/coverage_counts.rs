//! Records which ops and natives have run, in builds with debug assertions. `PURLIN_COVERAGE=FILE`
//! appends a line to the file when one runs for the first time: `op NAME` or `bif
//! MODULE:NAME/ARITY`. The first process to write to an empty file lists all rows, each after `row
//! `. `scripts/coverage.sh` turns the file into a table.

use purlin_isa::ops::{OPS, Op};
use purlin_term::sync::Mutex;
use std::fmt::{Arguments, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// `MODULE:NAME/ARITY` of all natives of the release.
static NATIVES: OnceLock<Vec<String>> = OnceLock::new();

/// Sets the list of all natives. Must be called before the first one runs; later calls change
/// nothing.
pub fn natives(names: impl Iterator<Item = String>) {
    NATIVES.get_or_init(|| names.collect());
}

fn file() -> Option<&'static Mutex<File>> {
    static FILE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = std::env::var_os("PURLIN_COVERAGE")?;
        let mut file = File::options().create(true).append(true).open(path).ok()?;
        if file.metadata().ok()?.len() == 0 {
            let _ = file.write_all(rows().as_bytes());
        }
        Some(Mutex::new(file))
    })
    .as_ref()
}

fn rows() -> String {
    let mut out = String::new();
    for op in OPS {
        let _ = writeln!(out, "row op {}", op.name.trim_end_matches('_'));
    }
    for name in NATIVES.get().into_iter().flatten() {
        let _ = writeln!(out, "row bif {name}");
    }
    out
}

/// Records that something runs; `seen` says whether it has been recorded already.
pub fn note(seen: &AtomicBool, what: Arguments) {
    if seen.load(Ordering::Relaxed) || seen.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Some(file) = file() {
        // One write each: other processes append to the same file.
        let line = format!("{what}\n");
        let _ = file.lock().write_all(line.as_bytes());
    }
}

/// Records that an instruction of that variant runs.
pub fn op(number: u16) {
    static SEEN: [AtomicBool; OPS.len()] = [const { AtomicBool::new(false) }; OPS.len()];
    if let Some(op) = Op::of(number) {
        let name = op.row().name.trim_end_matches('_');
        note(&SEEN[op as usize], format_args!("op {name}"));
    }
}
