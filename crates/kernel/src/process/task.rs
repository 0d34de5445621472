//! Work that one process has another do, as a signal.

use super::Cx;
use crate::message::{Kind, Signal, blocks};
use purlin_term::Term;

/// Work that another process runs, between its instructions. It gets `None` where the process has ended. The first
/// `interp.live` registers hold terms of the process: none where the task came in the midst of a time slice. A task that collects
/// waits for the end of that ([`super::ext::Rare::deferred`]): there all registers are known.
pub type Task = Box<dyn FnOnce(Option<&mut Cx>) + Send>;

impl Signal {
    /// A signal that runs a task.
    #[inline]
    pub fn task(t: Task) -> *mut Signal {
        let raw = Box::into_raw(Box::new(t)) as u64;
        // SAFETY: the word is no term, and is not taken for one: the kind says so, and only `into_task` reads it.
        Signal::build(Kind::Run, 0, |_| unsafe { Term::from_raw(raw) })
    }
    /// The task of a [`Kind::Run`] signal, whose block is freed.
    ///
    /// # Safety
    /// `s` is owned by the caller, of that kind, and not used afterwards.
    #[inline]
    pub(crate) unsafe fn into_task(s: *mut Signal) -> Task {
        let t = Box::from_raw((*s).term.raw() as *mut Task);
        blocks::free(s, 0);
        *t
    }
}
