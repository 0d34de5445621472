//! System calls that may never return, such as reading a pipe that nobody writes to. A thread of
//! its own makes such a call while the process waits in its native. So the process still handles
//! signals, it can be killed, and the call occupies no dirty thread.
//!
//! # Invariants
//! * The thread works only with what it owns: it sees no term of the process.
//! * The native is called again after each signal, with the same arguments. It calls [`resumed`]
//!   first, before anything that must happen only once.
//! * There are at most [`MOST_THREADS`] such threads. When no further thread can be had, the thread
//!   that runs the native makes the call itself.
//! * The budget of the process pays for what the thread makes, and bounds it.
//! * The result of a call is dropped if the process has ended meanwhile. It owns what it holds
//!   (descriptors, bytes).
//!
//! # Orderings
//! `THREADS` only bounds a number, so it is relaxed. `OUTSIDE` of `os::exploring` is raised before
//! the thread is spawned and lowered after its result is stored and its process is woken. The
//! release half of that decrement pairs with the acquiring load in the race finder: when it reads
//! zero, it also sees every result and every wake-up that those threads left. A result itself
//! passes through the mutex in `Pending`.

use crate::cx::{BifResult, Cx, Fail};
use crate::signal::send;
use purlin_kernel::budgets;
use purlin_term::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of threads for blocking calls.
const MOST_THREADS: usize = 1024;

/// Current number of threads for blocking calls.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// A reservation in [`THREADS`], given back when dropped.
struct Counted;

impl Counted {
    fn take() -> Option<Counted> {
        let counted = Counted;
        purlin_kernel::os::exploring::OUTSIDE.fetch_add(1, Ordering::AcqRel);
        // When the reservation is refused, dropping `counted` gives it back.
        (THREADS.fetch_add(1, Ordering::Relaxed) < MOST_THREADS).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
        purlin_kernel::os::exploring::OUTSIDE.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Turns the result of a call into the native's result, in the process.
pub type Outcome = Box<dyn FnOnce(&mut Cx) -> BifResult + Send>;

/// Where the thread of a call in progress leaves its result for the process.
type Pending = Arc<Mutex<Option<Outcome>>>;

/// Whether the process waits for a call.
pub fn waits(cx: &mut Cx) -> bool {
    let state = cx.process().ext().and_then(|e| e.bif_state.as_ref());
    state.is_some_and(|s| s.is::<Pending>())
}

/// Returns the result of the call that the process waits for, or has it wait on. None if it waits
/// for no call.
pub(crate) fn resumed(cx: &mut Cx) -> Option<BifResult> {
    let state = cx.process().ext()?.bif_state.as_ref()?;
    let pending = state.downcast_ref::<Pending>()?.clone();
    let outcome = pending.lock().take();
    let Some(outcome) = outcome else {
        budgets::keeps_clean(cx.proc.get());
        return Some(Err(Fail::Wait));
    };
    if let Some(e) = cx.process().ext() {
        e.bif_state = None;
    }
    Some(outcome(cx))
}

/// Starts a call and has the process wait for it. Makes the call right here if no further thread
/// can be had.
pub fn call(cx: &mut Cx, work: impl FnOnce() -> Outcome + Send + 'static) -> BifResult {
    let Some(counted) = Counted::take() else {
        return work()(cx);
    };
    let pending = Pending::default();
    let work = Arc::new(Mutex::new(Some(work)));
    let me = cx.self_pid();
    let payer = budgets::held_by(cx.proc.get());
    let (theirs, to) = (work.clone(), pending.clone());
    let started = std::thread::Builder::new()
        .name("blocking".into())
        .stack_size(128 * 1024)
        .spawn(move || {
            purlin_kernel::affinity::begin_unbound();
            let _counted = counted;
            let _pays = payer.as_ref().map(|b| budgets::pays(b.index()));
            let work = theirs.lock().take();
            if let Some(work) = work {
                let outcome = work();
                *to.lock() = Some(outcome);
                send::wake(me);
            }
        });
    if started.is_err() {
        let work = work.lock().take();
        return match work {
            Some(work) => work()(cx),
            None => Err(Fail::Wait),
        };
    }
    cx.process().ext_mut().bif_state = Some(Box::new(pending));
    budgets::keeps_clean(cx.proc.get());
    Err(Fail::Wait)
}
