//! Purging old code: one module at a time, by the code purger process.
//!
//! ```text
//! prepare   funs of the old code lead nowhere; a process that calls one waits until the purge ends
//! (check)   every process is asked whether it would return into the old code, see [`is_lingering`]
//! complete  the code is freed      or      abort   the funs lead to it again
//! ```
//!
//! # Orderings
//! `UNDER_WAY` is stored with release under the lock of purges, before the funs of the old code
//! lead nowhere, and after they lead to code again or the code is gone. Readers load it with
//! acquire. One that reads an old value acts as if it had come before the purge or after it.

use super::purge_count::PurgeCount;
use super::versions::{Module, remove_range, write};
use crate::cx::Cx;
use crate::sync::{Mutex, MutexGuard};
use purlin_term::Term;
use purlin_term::fun::FunEntry;
use purlin_term::heap::Heap;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

struct Purge {
    module: Term,
    /// The old version, put aside while the version of a failed `on_load` is purged in its place.
    saved_old: Option<Arc<Module>>,
    /// Funs that lead nowhere, with their former targets.
    funs: Vec<(&'static FunEntry, AtomicPtr<u64>)>,
    /// Processes that called one of them and are suspended until the purge ends.
    callers: Vec<Term>,
}

impl Purge {
    /// Makes the callers of its funs retry.
    fn resume_callers(&self) {
        for &pid in &self.callers {
            crate::signal::suspend::resume(pid, pid);
        }
    }
}

static PURGE: Mutex<Option<Purge>> = Mutex::new(None);
/// Index of the module's atom plus one during a purge, else 0.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// Number of purges that have begun.
pub(crate) static BEGUN: PurgeCount = PurgeCount(AtomicUsize::new(0));

fn state() -> MutexGuard<'static, Option<Purge>> {
    PURGE.lock()
}

/// Whether old code of that module is being purged. Its funs that have no code now get it back if
/// the purge is aborted.
pub fn under_way(module: Term) -> bool {
    UNDER_WAY.load(Ordering::Acquire) == module.atom_index() + 1
}

/// Makes the purge of that module resume `pid`, which is about to be suspended. Returns false if
/// the purge has ended.
pub fn add_caller(module: Term, pid: Term) -> bool {
    match state().as_mut().filter(|p| p.module == module) {
        Some(p) => {
            p.callers.push(pid);
            true
        }
        None => false,
    }
}

/// Starts to purge the old code of a module, or (`on_load`) the code whose `on_load` function has
/// failed. Returns `None` if another purge is under way, false if there is nothing to purge.
pub fn prepare(module: Term, on_load: bool) -> Option<bool> {
    let mut purge = state();
    if purge.is_some() {
        return None;
    }
    let mut table = write();
    let Some(v) = table.get_mut(&module.atom_index()) else {
        return Some(false);
    };
    let mut saved_old = None;
    if on_load {
        let Some(m) = v.on_load.take() else {
            return Some(false);
        };
        saved_old = v.old.replace(m);
    }
    let Some(old) = &v.old else {
        return Some(false);
    };
    UNDER_WAY.store(module.atom_index() + 1, Ordering::Release);
    BEGUN.begin();
    let mut funs = Vec::new();
    for &e in &old.funs {
        let at = e.address();
        if old.contains(at) {
            e.unlead();
            funs.push((e, AtomicPtr::new(at as *mut u64)));
        }
    }
    *purge = Some(Purge {
        module,
        saved_old,
        funs,
        callers: Vec::new(),
    });
    Some(true)
}

/// Aborts the purge. Returns false if that module is not being purged.
pub fn abort(module: Term) -> bool {
    let mut purge = state();
    let Some(mut p) = purge.take_if(|p| p.module == module) else {
        return false;
    };
    for (e, at) in &p.funs {
        e.lead(at.load(Ordering::Relaxed));
    }
    if let Some(old) = p.saved_old.take()
        && let Some(v) = write().get_mut(&module.atom_index())
    {
        v.make_old(old);
    }
    UNDER_WAY.store(0, Ordering::Release);
    p.resume_callers();
    true
}

/// Completes the purge: the old code is freed. Returns `None` if that module is not being purged.
///
/// # Safety
/// No process would return into the code, see [`is_lingering`].
pub unsafe fn complete(module: Term) -> Option<bool> {
    let mut purge = state();
    let mut p = purge.take_if(|p| p.module == module)?;
    let old = {
        let mut table = write();
        let v = table.entry(module.atom_index()).or_default();
        let next = p.saved_old.take().or_else(|| v.older.pop());
        std::mem::replace(&mut v.old, next)
    };
    if let Some(old) = &old {
        remove_range(old);
        old.literals.retire();
    }
    UNDER_WAY.store(0, Ordering::Release);
    p.resume_callers();
    // Unlock first: dropping the module notifies its native library, which may do anything.
    drop(purge);
    Some(old.is_some())
}

/// Does the same as [`is_lingering`] for the process in the context. A call that a native library
/// has scheduled counts too.
pub fn process_is_lingering(cx: &mut Cx, module: Term, pc: *const u64) -> bool {
    let scheduled = cx.process().ext().and_then(|e| e.rare());
    let scheduled = scheduled.and_then(|r| r.scheduled.as_ref().map(|s| s.module));
    is_lingering(module, &cx.heap, pc)
        || scheduled.is_some_and(|pc| {
            super::with_versions(module, |v| v.old.as_ref().is_some_and(|o| o.contains(pc)))
        })
}

/// Whether a process would return into the old code of a module, judged by its stack and the
/// address where it continues. Funs do not count, as in stock.
pub fn is_lingering(module: Term, heap: &Heap, pc: *const u64) -> bool {
    let Some(old) = super::with_versions(module, |v| v.old.clone()) else {
        return false;
    };
    if old.contains(pc) {
        return true;
    }
    let mut p = heap.stop as *const Term;
    while p < heap.hend {
        // SAFETY: a word of the stack.
        let w = unsafe { *p };
        let at = if w.is_catch() {
            w.catch_addr()
        } else if w.is_header() {
            w.raw()
        } else {
            0
        };
        if old.contains(at as *const u64) {
            return true;
        }
        // SAFETY: still at or below the end of the stack.
        p = unsafe { p.add(1) };
    }
    false
}
