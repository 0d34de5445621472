//! Pids that others than this emulator's processes, tables and messages may know: those that were
//! encoded in the external format (to another node, a file, a binary), and those that a native
//! library has asked for.
//!
//! Beside each cell is a word with the last process in it whose pid was noted. So a note costs a
//! look at that word, and needs no end.
//!
//! # Orderings
//! The words are hints for diagnostics and order nothing: all accesses are `Relaxed`.

use super::table;
use purlin_term::Term;
use purlin_term::sys::Growing;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The words, or none if there are no addresses for them.
fn words() -> Option<&'static Growing> {
    static WORDS: OnceLock<Option<Growing>> = OnceLock::new();
    WORDS
        .get_or_init(|| {
            let most = table().most_cells() + 1;
            Growing::reserve("exported", most * size_of::<AtomicU32>())
        })
        .as_ref()
}

/// The word beside the cell of a process that is alive.
fn word(pid: Term) -> Option<&'static AtomicU32> {
    let cell = table().index(table().find(pid)?) as usize;
    let words = words()?;
    if !words.try_ensure((cell + 1) * size_of::<AtomicU32>()) {
        return None;
    }
    // SAFETY: within usable memory, which starts as zero, is never unmapped, and is only used as
    // such words.
    Some(unsafe { &*(words.at() as *const AtomicU32).add(cell) })
}

/// Notes that a local pid leaves the emulator.
pub fn note(pid: Term) {
    if let Some(w) = word(pid) {
        // Nearly every pid that leaves has left before.
        let mark = pid.pid_data() + 1;
        if w.load(Ordering::Relaxed) != mark {
            w.store(mark, Ordering::Relaxed);
        }
    }
}

/// Whether a local pid was noted. True if that cannot be known.
pub fn is_noted(pid: Term) -> bool {
    word(pid).is_none_or(|w| w.load(Ordering::Relaxed) == pid.pid_data() + 1)
}
