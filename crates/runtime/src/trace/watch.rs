//! Calls of a function, written down for whoever observes the emulator from outside: so many, for so long, and then no more.
//!
//! There is one watch at a time. It needs no tracer and no flags of processes: the breakpoint of the function tells it. Programs
//! that trace don't see it, and it doesn't see their tracing.
//!
//! # Invariants
//! * A call beyond the last that was asked for, or later than that, is not written down, whenever the breakpoint goes.
//! * What is written down is bounded: calls by [`CALLS`], each by [`ARGUMENTS`].

use super::calls;
use crate::code;
use crate::cx::Cx;
use purlin_term::Term;
use purlin_term::preview::preview;
use purlin_term::sync::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Calls that may be asked for.
pub const CALLS: usize = 1000;
/// Characters of an argument that are kept, and of all arguments of a call, more or less.
const ARGUMENT: usize = 200;
const ARGUMENTS: usize = 1000;

/// A call.
pub struct Call {
    pub pid: Term,
    pub function: (Term, Term, u32),
    /// Since the watch began.
    pub after: Duration,
    pub arguments: Vec<String>,
    /// The function that called, if that is known.
    pub caller: Option<code::Place>,
}

/// The record of the calls of a function.
pub struct Watch {
    pub module: Term,
    pub function: Term,
    /// None: all functions of that name.
    pub arity: Option<u32>,
    pub began: Instant,
    pub until: Instant,
    /// Calls that may still come.
    left: AtomicI64,
    /// Until when it goes on if nobody asks for it, in milliseconds since it began.
    asked_ms: AtomicU64,
    /// The work to do at the last call.
    full: fn(),
    calls: Mutex<Vec<Call>>,
}

static CURRENT: Mutex<Option<Arc<Watch>>> = Mutex::new(None);
/// Beginnings and ends come one after the other.
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
    /// How long it goes on if nobody asks for it.
    pub patience: Duration,
}

/// Begins a watch, and ends the one before; None: there is no such function in the code that is loaded. `full` is called with
/// the last call, in the process that makes it.
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
    let n = calls::change(
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

/// The watch that is there, if any.
pub fn current() -> Option<Arc<Watch>> {
    lock(&CURRENT).clone()
}

/// Takes the breakpoints away. `only`: of this watch, if it still is the one that there is.
pub fn end(only: &Arc<Watch>) {
    let _one = lock(&CHANGES);
    if current().is_some_and(|w| Arc::ptr_eq(&w, only)) {
        clear();
    }
}

/// Under the lock of changes.
fn clear() {
    let Some(w) = lock(&CURRENT).take() else {
        return;
    };
    calls::change(None, w.module, w.function, w.arity, false, &|w| {
        w.watched = false
    });
}

impl Watch {
    /// Until when it goes on if nobody asks any more.
    pub fn ends(&self) -> Instant {
        let asked = Duration::from_millis(self.asked_ms.load(Ordering::Relaxed));
        self.until.min(self.began + asked)
    }
    /// Somebody asks: it goes on for so long from now, but not beyond its time. One that is over stays so.
    pub fn asked(&self, patience: Duration) {
        if self.is_over() {
            return;
        }
        let ms = (self.began.elapsed() + patience).as_millis() as u64;
        self.asked_ms.fetch_max(ms, Ordering::Relaxed);
    }
    /// Whether there are no more calls to come.
    pub fn is_over(&self) -> bool {
        self.left.load(Ordering::Relaxed) <= 0 || Instant::now() >= self.ends()
    }
    /// Runs `f` on the calls so far.
    pub fn calls<R>(&self, f: impl FnOnce(&[Call]) -> R) -> R {
        f(&lock(&self.calls))
    }
}

/// A call of a function that has a watch, with its arguments in the X registers. `caller`: where it returns to.
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
        let t = super::argument(cx, cx.x[i]);
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
