//! Records calls of a function for an observer outside the emulator, up to a number and a time.
//!
//! There is one watch at a time. It needs no tracer and no trace flags: the breakpoint of the
//! function reports to it. Tracing programs do not see it, and it does not see their tracing.
//!
//! # Invariants
//! * A call beyond the requested number or time is not recorded, whenever the breakpoint is
//!   removed.
//! * The record is bounded: calls by [`CALLS`], each by [`ARGUMENTS`].

use super::calls::table;
use crate::code;
use crate::cx::Cx;
use purlin_term::Term;
use purlin_term::preview::preview;
use purlin_term::sync::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of calls that may be requested.
pub const CALLS: usize = 1000;
/// Characters kept of an argument, and of all arguments of a call, approximately.
const ARGUMENT: usize = 200;
const ARGUMENTS: usize = 1000;

/// A recorded call.
pub struct Call {
    pub pid: Term,
    pub function: (Term, Term, u32),
    /// Time since the watch began.
    pub after: Duration,
    pub arguments: Vec<String>,
    /// The calling function, if it is known.
    pub caller: Option<code::Place>,
}

/// The record of the calls of a function.
pub struct Watch {
    pub module: Term,
    pub function: Term,
    /// `None`: all functions of that name.
    pub arity: Option<u32>,
    pub began: Instant,
    pub until: Instant,
    /// Calls that may still come.
    left: AtomicI64,
    /// End of the watch if nobody asks for it again, in milliseconds since it began.
    asked_ms: AtomicU64,
    /// Called when the maximum number of calls is recorded.
    full: fn(),
    calls: Mutex<Vec<Call>>,
}

static CURRENT: Mutex<Option<Arc<Watch>>> = Mutex::new(None);
/// Serializes beginnings and ends.
static CHANGES: Mutex<()> = Mutex::new(());

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock()
}

/// A request to a watch.
pub struct Wish {
    pub module: Term,
    pub function: Term,
    pub arity: Option<u32>,
    pub calls: usize,
    pub time: Duration,
    /// Duration of the watch if nobody asks for it again.
    pub patience: Duration,
}

/// Begins a watch and ends the one before; `None` if the loaded code has no such function. `full`
/// is called at the last call, in the process that makes it.
pub fn begin(wish: Wish, full: fn()) -> Option<Arc<Watch>> {
    let _one = lock(&CHANGES);
    clear();
    let began = Instant::now();
    let watch = Arc::new(Watch {
        module: wish.module,
        function: wish.function,
        arity: wish.arity,
        began,
        until: began + wish.time,
        left: AtomicI64::new(wish.calls.min(CALLS) as i64),
        asked_ms: AtomicU64::new(wish.patience.as_millis() as u64),
        full,
        calls: Mutex::default(),
    });
    // The first call may come before all breakpoints are set.
    *lock(&CURRENT) = Some(watch.clone());
    let n = table::change(
        None,
        watch.module,
        watch.function,
        watch.arity,
        false,
        &|w| w.watched = true,
    );
    if n == 0 {
        *lock(&CURRENT) = None;
        return None;
    }
    Some(watch)
}

/// The current watch, if any.
pub fn current() -> Option<Arc<Watch>> {
    lock(&CURRENT).clone()
}

/// Removes the breakpoints, if `only` is still the current watch.
pub fn end(only: &Arc<Watch>) {
    let _one = lock(&CHANGES);
    if current().is_some_and(|w| Arc::ptr_eq(&w, only)) {
        clear();
    }
}

/// Must be called with [`CHANGES`] locked.
fn clear() {
    let Some(w) = lock(&CURRENT).take() else {
        return;
    };
    table::change(None, w.module, w.function, w.arity, false, &|w| {
        w.watched = false
    });
}

impl Watch {
    /// The time at which it ends if nobody asks for it again.
    pub fn ends(&self) -> Instant {
        let asked = Duration::from_millis(self.asked_ms.load(Ordering::Relaxed));
        self.until.min(self.began + asked)
    }
    /// Extends the watch to `patience` from now, but not beyond its time limit. A watch that is
    /// over stays over.
    pub fn asked(&self, patience: Duration) {
        if self.is_over() {
            return;
        }
        let ms = (self.began.elapsed() + patience).as_millis() as u64;
        self.asked_ms.fetch_max(ms, Ordering::Relaxed);
    }
    /// Whether no more calls will be recorded.
    pub fn is_over(&self) -> bool {
        self.left.load(Ordering::Relaxed) <= 0 || Instant::now() >= self.ends()
    }
    /// Runs `f` on the calls so far.
    pub fn calls<R>(&self, f: impl FnOnce(&[Call]) -> R) -> R {
        f(&lock(&self.calls))
    }
}

/// Records a call of a watched function, whose arguments are in the X registers. `caller` is its
/// return address.
#[cold]
pub(super) fn seen(cx: &mut Cx, mfa: (Term, Term, u32), caller: *const u64) {
    let Some(w) = current() else { return };
    let (m, f, n) = mfa;
    if w.module != m || w.function != f || w.arity.is_some_and(|a| a != n) {
        return;
    }
    if Instant::now() >= w.ends() {
        return;
    }
    let left = w.left.fetch_sub(1, Ordering::Relaxed);
    if left <= 0 {
        return;
    }
    let mut arguments: Vec<String> = Vec::new();
    let mut room = ARGUMENTS;
    for i in 0..n as usize {
        if room == 0 {
            arguments.push("...".to_string());
            break;
        }
        let t = super::emit::argument(cx, cx.x[i]);
        let text = preview(t, ARGUMENT.min(room));
        room = room.saturating_sub(text.len());
        arguments.push(text);
    }
    let call = Call {
        pid: cx.self_pid(),
        function: mfa,
        after: w.began.elapsed(),
        arguments,
        caller: code::find(caller.wrapping_sub(1)),
    };
    lock(&w.calls).push(call);
    if left == 1 {
        (w.full)();
    }
}
