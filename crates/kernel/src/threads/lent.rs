//! Processes within a long function on dirty threads, of a library or of this runtime: what arrives at them is acted on meanwhile.
//!
//! Such a function may be long at work. It needs the process that calls it only where it asks the interface for something. So its thread
//! lends the context for the call ([`lend`]), and each function of the interface that looks at the process holds it ([`hold`]). A watcher
//! looks at the contexts that are lent. Where signals have arrived, it takes the context and acts on them, as the function has it done
//! when it asks whether its process is alive. A signal that ends the process ends it for all others then ([`exit::end_within`]). Nothing
//! that the function may know of moves: who wants the process collected waits until the function has returned.
//!
//! A native of this runtime that sees no process, and only makes terms on its heap, need not be
//! asked: the process is divided for the call ([`open`]). The native keeps its context, with one
//! half of the heap, and the watcher acts in another context, with the other half
//! (`purlin_term::heap_halves`). Where the process has ended the native asks for that itself, and breaks
//! off (`purlin_term::ending`).

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
use purlin_term::heap::Heap;
use purlin_term::{Term, ending, gc};
use std::cell::{Cell, RefCell};
use std::ptr::null_mut;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The context of a dirty thread.
struct Slot {
    lend: Lend,
    cx: AtomicPtr<Cx>,
    /// The process in a call; null: there is none.
    process: AtomicPtr<Process>,
    /// The context is one for others, while a native of this runtime has its own: its first registers name the native.
    divided: AtomicBool,
    /// The process has ended meanwhile.
    ended: AtomicBool,
}

/// Those of all threads that have ever made such a call.
static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    /// The context for others of this dirty thread.
    static TWIN: RefCell<Option<Box<Cx>>> = const { RefCell::new(None) };
    /// The watcher: it acts for a process within a native of this runtime.
    static WITHIN_NATIVE: Cell<bool> = const { Cell::new(false) };
}

/// The watcher sleeps so long between two looks while calls are under way: longer and longer while there is nothing to do.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(8);
/// In the stress mode.
const STRESSED: Duration = Duration::from_micros(100);
/// Looks in vain before it sleeps until there is a call.
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
        ended: AtomicBool::new(false),
    }));
    SLOTS.lock().push(slot);
    MINE.set(Some(slot));
    slot
}

/// Calls the function of a library by `f`; others may have the context meanwhile.
///
/// # Safety
/// `cx` is the context of this thread, a dirty one, at the call of a native function, and is not lent yet. `f` touches it only while it
/// holds it.
pub unsafe fn lend<R>(cx: *mut Cx, f: impl FnOnce() -> R) -> R {
    let slot = MINE.get().unwrap_or_else(new_slot);
    slot.cx.store(cx, Ordering::Relaxed);
    slot.process.store((*cx).proc, Ordering::Release);
    slot.lend.lend();
    if !crate::os::single::on() {
        WATCHER.unpark();
    }
    let r = f();
    slot.lend.take_back();
    slot.process.store(null_mut(), Ordering::Relaxed);
    r
}

/// Runs `f`, a part of the native `name` of this runtime; others may act for the process meanwhile. True: it has ended for all others.
///
/// # Safety
/// As for [`lend`]; `f` touches nothing of the process but the heap in this context, on which it only makes terms.
unsafe fn open(cx: *mut Env, name: Name, f: &mut dyn FnMut()) -> bool {
    let cx: *mut Cx = cx.cast();
    let slot = MINE.get().unwrap_or_else(new_slot);
    if !slot.process.load(Ordering::Relaxed).is_null() {
        // In the midst of a function of a library, which may have the process.
        f();
        return false;
    }
    let mut twin = TWIN.take().unwrap_or_else(|| Cx::boxed((*cx).sched));
    twin.proc = (*cx).proc;
    twin.dirty = true;
    twin.bif_pc = (*cx).bif_pc;
    twin.interp.live = 0;
    (twin.reds, twin.charged) = ((*cx).reds, (*cx).reds);
    twin.x[..3].copy_from_slice(&[name.0, name.1, Term::small(name.2 as i64)]);
    twin.heap = (*cx).heap.divide();
    slot.ended.store(false, Ordering::Relaxed);
    slot.divided.store(true, Ordering::Relaxed);
    ending::set(Some(&slot.ended));
    lend(&raw mut *twin, f);
    ending::set(None);
    slot.divided.store(false, Ordering::Relaxed);
    let others = std::mem::replace(&mut twin.heap, Heap::empty());
    (*cx).heap.unite(others);
    (*cx).words_copied += std::mem::take(&mut twin.words_copied);
    twin.proc = null_mut();
    TWIN.set(Some(twin));
    (*(*cx).proc).has(EXIT_PENDING)
}

/// Natives open their processes to others from now on.
pub(crate) fn begin() {
    reschedule::set_opener(open);
}

/// The native of this runtime that the process of the context, for which others act, is in the midst of.
pub fn within_native(cx: &Cx) -> Option<Name> {
    let [m, f, n] = [cx.x[0], cx.x[1], cx.x[2]];
    let arity = || n.as_small().unwrap_or(0) as usize;
    WITHIN_NATIVE.get().then(|| (m, f, arity()))
}

/// This thread has the context that it has lent, until this is dropped.
pub struct Hold(Option<&'static Slot>);

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        if let Some(s) = self.0 {
            s.lend.lend();
        }
    }
}

/// Takes the context of this thread back for as long as the result lives. Without effect where it isn't lent.
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
            // SAFETY: cells are never unmapped, and the state word is an atomic. Whoever has taken a context may use it.
            unsafe {
                let p = s.process.load(Ordering::Acquire);
                if p.is_null() {
                    continue;
                }
                calls = true;
                if (*p).state.load().has_news() && s.lend.try_take() {
                    WITHIN_NATIVE.set(s.divided.load(Ordering::Relaxed));
                    acted |= act(&mut *s.cx.load(Ordering::Relaxed), &s.ended);
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

/// Acts on what has arrived at the process in a context that this thread has taken. False: there was nothing.
///
/// # Safety
/// A process is in the context, which this thread has taken and holds while this runs.
unsafe fn act(cx: &mut Cx, ended: &AtomicBool) -> bool {
    if cx.process().state.load().is_exiting() {
        return false;
    }
    let pending = cx.process().has(EXIT_PENDING);
    if !pending {
        handle::fetch(cx);
    }
    if cx.process().has(EXIT_PENDING) {
        exit::end_within(cx);
        ended.store(true, Ordering::Relaxed);
    }
    true
}
