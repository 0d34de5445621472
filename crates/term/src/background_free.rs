//! A thread that gives back large pieces of memory, since that takes long enough for a scheduler's
//! processes to feel it.

use crate::sync::Mutex;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

type Work = Box<dyn FnOnce() + Send>;

/// Pieces of more bytes are worth the thread.
pub(crate) const ABOVE_BYTES: usize = 8 << 20;

/// Called by the thread as it begins.
static BEGINS_WITH: OnceLock<fn()> = OnceLock::new();

/// Sets the function that the thread calls as it begins, if it does not run yet. The first call
/// counts.
pub fn begin_with(f: fn()) {
    let _ = BEGINS_WITH.set(f);
}

static AT_ONCE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// From now on, the caller of [`run`] does all work of the thread at once: no other thread may
/// exist.
pub fn at_once() {
    AT_ONCE.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// Queues `work` for the thread; if there can be no thread, runs it here.
pub(crate) fn run(work: impl FnOnce() + Send + 'static) {
    if AT_ONCE.load(std::sync::atomic::Ordering::Relaxed) {
        return work();
    }
    static THREAD: OnceLock<Option<Mutex<Sender<Work>>>> = OnceLock::new();
    let thread = THREAD.get_or_init(|| {
        let (tx, rx) = channel::<Work>();
        let serve = move || {
            if let Some(f) = BEGINS_WITH.get() {
                f();
            }
            for work in rx {
                work();
            }
        };
        let thread = std::thread::Builder::new()
            .name("memory".into())
            .spawn(serve);
        thread.is_ok().then_some(Mutex::new(tx))
    });
    let work: Work = Box::new(work);
    let left = match thread {
        Some(tx) => {
            let tx = tx.lock();
            tx.send(work).err().map(|e| e.0)
        }
        None => Some(work),
    };
    if let Some(work) = left {
        work();
    }
}
