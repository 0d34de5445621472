//! Processes in a long native on a dirty thread, of a library or of this runtime. Their signals are
//! handled meanwhile.
//!
//! A NIF may run for long, and needs its process only when it calls functions of `erl_nif.h`. So
//! its thread lends the context for the call ([`lend`]), and each function of the interface that
//! accesses the process holds it ([`hold`]). A watcher looks at the lent contexts. If signals have
//! arrived, it takes the context and handles them, as the NIF does when it asks whether its process
//! is alive. A signal that ends the process ends it as far as others can tell
//! ([`exit::end_within`]). Nothing that the NIF may have pointers to moves: requests to collect the
//! process wait until the NIF has returned.
//!
//! A native of this runtime that sees no process, and only builds terms on its heap, need not hold
//! anything: the process is divided for the call ([`open`]). The native keeps its context, with one
//! half of the heap, and the watcher works in another context, with the other half
//! (`purlin_term::heap_halves`). If the process has ended, the native finds out by itself and stops
//! early (`purlin_term::ending`). If it is to be collected, a native that can continue later does
//! so, and the process comes back to a scheduler meanwhile (`purlin_native::reschedule`).
//!
//! # Orderings
//! A dirty thread stores `cx`, `divided` and `process` of its [`Slot`] before it lends the slot,
//! which is a `Release` store in [`Lend`]. The watcher loads `process` with `Acquire` to see
//! whether there is anything to do, and reads the rest only after it has taken the slot, which is
//! an `Acquire` exchange: it sees the values of the current call. A stale `process` does no harm:
//! cells are never unmapped, and the watcher works for the process in the context. `wishes` are
//! hints to the native, and `Relaxed`; the thread looks at the process itself once it has taken the
//! slot back. The fences of [`Parker`] order the store of `process` against the watcher's look
//! before it sleeps.

use crate::cx::Cx;
use crate::lifecycle::exit;
use crate::process::{EXIT_PENDING, Process};
use crate::sched::parker::Parker;
use crate::sched::{rest_if_stopped, stack_size};
use crate::signal::handle;
use crate::sync::lend::Lend;
use crate::sync::{AtomicPtr, Mutex, Ordering};
use purlin_native::cx::Env;
use purlin_native::reschedule::{self, Name};
use purlin_term::ending::{self, Wishes};
use purlin_term::heap::Heap;
use purlin_term::{Term, gc};
use std::cell::{Cell, RefCell};
use std::ptr::null_mut;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The context of a dirty thread.
struct Slot {
    lend: Lend,
    cx: AtomicPtr<Cx>,
    /// The process in a call; null if there is none.
    process: AtomicPtr<Process>,
    /// Whether `cx` is a twin, while a native of this runtime has its own context. The twin's first
    /// registers then name the native.
    divided: AtomicBool,
    /// Wishes of others for the native.
    wishes: Wishes,
}

/// The slots of all threads that have ever made such a call.
static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    /// The twin context of this dirty thread.
    static TWIN: RefCell<Option<Box<Cx>>> = const { RefCell::new(None) };
    /// Whether this thread is the watcher and works for a process in a native of this runtime.
    static WITHIN_NATIVE: Cell<bool> = const { Cell::new(false) };
}

/// Bounds of the watcher's sleep between two looks while calls are in progress. It grows while
/// there is nothing to do.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(8);
/// The same in stress mode.
const STRESSED: Duration = Duration::from_micros(100);
/// Number of looks without a call before the watcher sleeps until there is one.
const VAIN: u32 = 20;

static WATCHER: LazyLock<Parker> = LazyLock::new(|| {
    crate::os::thread::start("lent", stack_size(), watch);
    Parker::new()
});

#[cold]
fn new_slot() -> &'static Slot {
    let slot: &'static Slot = Box::leak(Box::new(Slot {
        lend: Lend::new(),
        cx: AtomicPtr::new(null_mut()),
        process: AtomicPtr::new(null_mut()),
        divided: AtomicBool::new(false),
        wishes: Wishes::new(),
    }));
    SLOTS.lock().push(slot);
    MINE.set(Some(slot));
    slot
}

/// Calls a NIF by `f`. The watcher may take the context meanwhile.
///
/// # Safety
/// `cx` is the context of this thread, a dirty one, at the call of a NIF, and is not lent yet. `f`
/// only touches it while it holds it.
pub unsafe fn lend<R>(cx: *mut Cx, f: impl FnOnce() -> R) -> R {
    let slot = MINE.get().unwrap_or_else(new_slot);
    slot.cx.store(cx, Ordering::Relaxed);
    // SAFETY: by the contract, the context is this thread's.
    slot.process
        .store(unsafe { (*cx).proc.get() }, Ordering::Release);
    slot.lend.lend();
    if !crate::os::exploring::on() {
        WATCHER.unpark();
    }
    let r = f();
    slot.lend.take_back();
    slot.process.store(null_mut(), Ordering::Relaxed);
    r
}

/// Runs `f`, a part of the native `name` of this runtime. The watcher may work for the process
/// meanwhile. Returns whether the process has ended as far as others can tell.
///
/// # Safety
/// As for [`lend`]; `f` touches nothing of the process except the heap in this context, on which it
/// only builds terms.
unsafe fn open(cx: *mut Env, name: Name, f: &mut dyn FnMut()) -> bool {
    let cx: *mut Cx = cx.cast();
    let slot = MINE.get().unwrap_or_else(new_slot);
    if !slot.process.load(Ordering::Relaxed).is_null() {
        // Within a NIF, which may have the process.
        f();
        return false;
    }
    // SAFETY: by the contract, the context is this thread's. It is not lent: the twin is.
    let mut twin = unsafe {
        let mut twin = TWIN.take().unwrap_or_else(|| Cx::boxed((*cx).sched));
        twin.proc.set((*cx).proc.get());
        twin.bif_pc = (*cx).bif_pc;
        (twin.reds, twin.charged) = ((*cx).reds, (*cx).reds);
        twin.heap = (*cx).heap.divide();
        twin
    };
    twin.dirty = true;
    twin.interp.live = 0;
    twin.x[..3].copy_from_slice(&[name.0, name.1, Term::small(name.2 as i64)]);
    slot.wishes.clear();
    slot.divided.store(true, Ordering::Relaxed);
    ending::set(Some(&slot.wishes));
    // SAFETY: the twin is this thread's, and `f` doesn't touch it.
    unsafe { lend(&raw mut *twin, f) };
    ending::set(None);
    slot.divided.store(false, Ordering::Relaxed);
    let others = std::mem::replace(&mut twin.heap, Heap::empty());
    // SAFETY: by the contract, the context is this thread's; the twin's heap is the other half of
    // its heap.
    let ended = unsafe {
        (*cx).heap.unite(others);
        (*cx).words_copied += std::mem::take(&mut twin.words_copied);
        (*(*cx).proc.get()).has(EXIT_PENDING)
    };
    twin.proc.clear();
    TWIN.set(Some(twin));
    ended
}

/// Lets natives of this runtime open their processes from now on.
pub(crate) fn begin() {
    reschedule::set_opener(open);
}

/// Returns the native of this runtime that the process in the context is in, if this thread is the
/// watcher and works for it.
pub fn within_native(cx: &Cx) -> Option<Name> {
    let [m, f, n] = [cx.x[0], cx.x[1], cx.x[2]];
    let arity = || n.as_small().unwrap_or(0) as usize;
    WITHIN_NATIVE.get().then(|| (m, f, arity()))
}

/// This thread's hold on the context that it has lent, until it is dropped.
pub struct Hold(Option<&'static Slot>);

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        if let Some(s) = self.0 {
            s.lend.lend();
        }
    }
}

/// Takes the context of this thread back for as long as the result lives. No effect if it isn't
/// lent.
pub fn hold() -> Hold {
    let slot = MINE.get().filter(|s| !s.lend.is_held());
    if let Some(s) = slot {
        s.lend.take_back();
    }
    Hold(slot)
}

fn watch() {
    crate::affinity::begin_unbound();
    let mut slots = Vec::new();
    let (mut pause, mut vain) = (SHORTEST, 0);
    loop {
        rest_if_stopped();
        slots.clear();
        slots.extend_from_slice(&SLOTS.lock());
        let (mut calls, mut acted) = (false, false);
        for s in &slots {
            // SAFETY: cells are never unmapped, and the state word is an atomic. A thread that has
            // taken a context may use it.
            unsafe {
                let p = s.process.load(Ordering::Acquire);
                if p.is_null() {
                    continue;
                }
                calls = true;
                if (*p).state.load().has_news() && s.lend.try_take() {
                    WITHIN_NATIVE.set(s.divided.load(Ordering::Relaxed));
                    acted |= act(&mut *s.cx.load(Ordering::Relaxed), &s.wishes);
                    WITHIN_NATIVE.set(false);
                    s.lend.give_back();
                }
            }
        }
        vain = if calls { 0 } else { vain + 1 };
        if vain > VAIN {
            let in_call = |s: &&Slot| !s.process.load(Ordering::Acquire).is_null();
            WATCHER.park(|| SLOTS.lock().iter().any(in_call));
            vain = 0;
        }
        pause = match acted {
            _ if gc::stress() => STRESSED,
            true => SHORTEST,
            false => (pause * 2).min(LONGEST),
        };
        std::thread::sleep(pause);
    }
}

/// Handles the signals of the process in a context that this thread has taken. Returns false if
/// there was nothing to do.
///
/// # Safety
/// A process is in the context, which this thread has taken and keeps while this runs.
unsafe fn act(cx: &mut Cx, wishes: &Wishes) -> bool {
    if cx.process().state.load().is_exiting() {
        return false;
    }
    let pending = cx.process().has(EXIT_PENDING);
    if !pending {
        handle::fetch(cx);
    }
    if cx.process().has(EXIT_PENDING) {
        // SAFETY: by the contract, the process is this thread's for now. It has `EXIT_PENDING`.
        unsafe { exit::end_within(cx) };
        wishes.end();
    } else if cx.process().ext().is_some_and(|e| !e.deferred.is_empty()) {
        // Such as requests for its collection.
        wishes.ask();
    }
    true
}
