//! Tasks: closures that one process has another run, sent as signals.

use super::Cx;
use crate::message::{Kind, Signal, blocks};
use purlin_term::Term;

/// Work that another process runs between its instructions. It gets `None` if the process has
/// ended. The first `interp.live` registers hold terms of the process: none, if the task arrives in
/// the middle of a time slice. A task that collects waits for the end of the slice
/// ([`super::ext::Rare::deferred`]), when all registers are known.
pub type Task = Box<dyn FnOnce(Option<&mut Cx>) + Send>;

impl Signal {
    /// Returns a signal that runs a task.
    #[inline]
    pub fn task(t: Task) -> *mut Signal {
        let raw = Box::into_raw(Box::new(t)) as u64;
        // SAFETY: the word is not a term and is never used as one. The kind says so, and only
        // `into_task` reads it.
        Signal::build(Kind::Run, 0, |_| unsafe { Term::from_raw(raw) })
    }
    /// Returns the task of a [`Kind::Run`] signal, and frees the signal's block.
    ///
    /// # Safety
    /// The caller owns `s`, which is of that kind and not used afterwards.
    #[inline]
    pub(crate) unsafe fn into_task(s: *mut Signal) -> Task {
        // SAFETY: by the contract, the signal is the caller's. `task` has made it, with a box as
        // its term and no further words.
        unsafe {
            let t = Box::from_raw((*s).term.raw() as *mut Task);
            blocks::free(s, 0);
            *t
        }
    }
}
