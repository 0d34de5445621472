//! Questions that a native asks of another process.
//!
//! The native sends a task and waits; the other process answers among its signals, so after
//! everything that the asking process has sent it before.
//!
//! # Invariants
//! * A process has at most one question in progress. It is kept in the process's native state until
//!   the answer has been returned, so a native that is called again finds its answer instead of
//!   asking again.
//! * Signals of the other process that came before the answer are handled before the native
//!   returns.
//!
//! # Orderings
//! The id of a cell is loaded with acquire after its state: the two are those of one process if the
//! id is the same as before.

use crate::cx::{BifResult, Cx, Fail};
use crate::ids;
use crate::process::{self, Process, saved, table};
use crate::signal::handle;
use crate::signal::send;
use purlin_kernel::{budgets, events};
use purlin_term::frag::OwnedTerm;
use purlin_term::payer::Billed;
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, Term};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Makes the process `who` compute an atom for this native, which waits for it. `f` gets `None` if
/// `who` has ended.
pub(super) fn ask(
    cx: &mut Cx,
    who: Term,
    f: impl FnOnce(Option<&mut Process>) -> Term + Send + 'static,
) -> BifResult {
    ask_term(cx, who, move |cx| {
        let p = cx.map(|c| c.process());
        OwnedTerm::copy_of(f(p))
    })
}

/// Whether a process runs code and has handled all signals that this one sent it before.
///
/// An answer that is the same for every such process need not be asked of it; it would answer only
/// after its current native returns.
pub(crate) fn runs_undisturbed(cx: &mut Cx, who: Term) -> bool {
    let asked = cx.process().ext().is_some_and(|e| e.bif_state.is_some());
    let Some(p) = table().find(who).filter(|_| !asked) else {
        return false;
    };
    // SAFETY: cells are never unmapped; both words are atomics. The cell belonged to that process
    // both before and after the look.
    unsafe {
        (*p).state.load().runs_undisturbed() && (*p).id.load(Ordering::Acquire) == who.pid_data()
    }
}

/// Tells a receive trace and the saved calls of the calling process of an answer that stock's
/// native receives as a message `{Reference, Answer}`.
pub(crate) fn received_answer(cx: &mut Cx, answer: Term, by: Option<saved::Call>) {
    if cx.process().has(process::TRACED) {
        let r = ids::make_ref(cx);
        let message = cx.tuple(&[r, answer]);
        events::sink().received(cx, None, message);
    }
    if cx.process().has(process::SAVES) {
        by.into_iter().for_each(|c| saved::note(cx.process(), c));
        saved::note(cx.process(), saved::Call::Receive);
    }
}

/// A large answer is on the bill of who has asked until it has been taken over.
type Answer = Arc<Mutex<Option<(OwnedTerm, Option<Billed>)>>>;

/// Words from which on an answer is billed on its way.
const BILLED_WORDS: usize = 1 << 12;

/// As `ask`, for terms of any kind.
pub(crate) fn ask_term(
    cx: &mut Cx,
    who: Term,
    f: impl FnOnce(Option<&mut Cx>) -> OwnedTerm + Send + 'static,
) -> BifResult {
    ask_with(cx, who, move |cx, answer| answer(f(cx)))
}

/// As [`ask_term`], where the answer may come later.
pub(crate) fn ask_with(
    cx: &mut Cx,
    who: Term,
    f: impl FnOnce(Option<&mut Cx>, Box<dyn FnOnce(OwnedTerm) + Send>) + Send + 'static,
) -> BifResult {
    let waiting = cx
        .process()
        .ext()
        .and_then(|e| e.bif_state.as_ref())
        .and_then(|s| s.downcast_ref::<Answer>())
        .cloned();
    let answer = match waiting {
        Some(a) => a,
        None => {
            let a: Answer = Arc::default();
            cx.process().ext_mut().bif_state = Some(Box::new(a.clone()));
            let to = a.clone();
            let me = cx.self_pid();
            send::run_in(
                who,
                Box::new(move |cx| {
                    let answer = move |t: OwnedTerm| {
                        let large = budgets::on() && t.words() >= BILLED_WORDS;
                        let billed = large.then(|| Billed::to(budgets::of_pid(me), t.words() * 8));
                        *to.lock() = Some((t, billed));
                        send::wake(me);
                    };
                    f(cx, Box::new(answer));
                }),
            );
            a
        }
    };
    let got = answer.lock().take();
    match got {
        None => Err(Fail::Wait),
        Some((t, _billed)) => {
            // Handles what the other process did to this one before it answered or ended.
            handle::fetch(cx);
            if cx.process().has(process::EXIT_PENDING) {
                return Err(Fail::Exited);
            }
            if let Some(e) = cx.process().ext() {
                e.bif_state = None;
            }
            Ok(cx.heap.take_over(t))
        }
    }
}
