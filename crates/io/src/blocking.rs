//! System calls that may never return, such as reading a pipe that nobody writes to: a thread of their own makes them,
//! while the process waits in its native. So it does what signals ask of it meanwhile, it can be killed, and no thread of
//! the dirty pools is taken from others.
//!
//! # Invariants
//! * What the thread works with is its own: it knows no term of the process.
//! * The native is called again after each signal, with the same arguments. [`resumed`] comes first in it, before anything that
//!   is to be done once.
//! * There are at most [`MOST`] such threads. Where there can be no further one, the call is made by the thread that the native
//!   runs on.
//! * What a call gave is dropped if the process has ended meanwhile: it owns what it holds (descriptors, bytes).

use crate::cx::{BifResult, Cx, Fail};
use crate::signal::send;
use purlin_term::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads for calls at most.
const MOST: usize = 1024;

/// Threads for calls that there are.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// A thread that counts; its end takes it back.
struct Counted;

impl Counted {
    fn take() -> Option<Counted> {
        let counted = Counted;
        purlin_kernel::os::single::OUTSIDE.fetch_add(1, Ordering::AcqRel);
        // Refused, it is taken back by its end.
        (THREADS.fetch_add(1, Ordering::Relaxed) < MOST).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
        purlin_kernel::os::single::OUTSIDE.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Makes a result of what the call gave, in the process.
pub type Outcome = Box<dyn FnOnce(&mut Cx) -> BifResult + Send>;

/// The result that the thread of a call under way leaves for the process.
type Pending = Arc<Mutex<Option<Outcome>>>;

/// Whether the process waits for a call.
pub fn waits(cx: &mut Cx) -> bool {
    let state = cx.process().ext().and_then(|e| e.bif_state.as_ref());
    state.is_some_and(|s| s.is::<Pending>())
}

/// The result of the call that the process waits for, or that it waits on; None: it waits for none.
pub(crate) fn resumed(cx: &mut Cx) -> Option<BifResult> {
    let state = cx.process().ext()?.bif_state.as_ref()?;
    let pending = state.downcast_ref::<Pending>()?.clone();
    let outcome = pending.lock().take();
    let Some(outcome) = outcome else {
        return Some(Err(Fail::Wait));
    };
    if let Some(e) = cx.process().ext() {
        e.bif_state = None;
    }
    Some(outcome(cx))
}

/// Starts a call, for which the process waits. Where there can be no further thread it is made here.
pub fn call(cx: &mut Cx, work: impl FnOnce() -> Outcome + Send + 'static) -> BifResult {
    let Some(counted) = Counted::take() else {
        return work()(cx);
    };
    let pending = Pending::default();
    let work = Arc::new(Mutex::new(Some(work)));
    let me = cx.self_pid();
    let (theirs, to) = (work.clone(), pending.clone());
    let started = std::thread::Builder::new()
        .name("blocking".into())
        .stack_size(128 * 1024)
        .spawn(move || {
            purlin_kernel::affinity::begin_unbound();
            let _counted = counted;
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
    Err(Fail::Wait)
}
