//! Processes whose budgets have used up their share of processor time, or are ahead of their
//! siblings while others wait for a scheduler.
//!
//! Such a process is taken from its run queue as any other, but does not run: it is held here, with
//! the bit `QUEUED` still set, so that no other thread queues it. A thread, started with the first
//! such process, puts held processes back when their budget may run again, some at a time. One
//! with a control signal is put back earlier. It then handles its signals, in a time slice of one
//! reduction, since others may wait for the answer.
//!
//! Processes with a thread of their own and those of the runtime are not held, nor are those that
//! keep others from running.

use crate::code::permission;
use crate::os::thread;
use crate::process::{self, Process, table};
use crate::sched::{self, multi_scheduling};
use crate::sync::{Condvar, Mutex};
use crate::{budget_weights, budgets};
use purlin_term::Term;
use std::collections::{HashMap, VecDeque};
use std::sync::Once;
use std::time::Duration;

/// Time between two looks at the budgets of held processes.
const TICK: Duration = Duration::from_millis(2);
/// Number of ticks between two looks for control signals.
const LOOK_FOR_SIGNALS: u32 = 3;
/// Maximum number of processes of a budget that are put back in a tick.
const MOST_PUT_BACK: usize = 64;
/// Bytes of the thread's stack.
const STACK_BYTES: usize = 128 << 10;

/// The cells of held processes, by budget.
static HELD: Mutex<Option<HashMap<u32, VecDeque<u32>>>> = Mutex::new(None);
static SOME: Condvar = Condvar::new();

/// How a process that was taken from a run queue may run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    Freely,
    /// To handle its signals only.
    Briefly,
    /// Not now. It is held.
    Later,
}

/// Decides how a process that the caller has taken from a run queue may run. Its cell is not the
/// caller's any more if it is held.
///
/// # Safety
/// `p` is a cell that the caller took from a run queue.
pub(super) unsafe fn look(p: *mut Process) -> Runs {
    let others_wait = budget_weights::on() && sched::has_waiting();
    let Some(by) = budgets::throttled(budgets::of(p), others_wait) else {
        return Runs::Freely;
    };
    // SAFETY: a process taken from a run queue is alive and keeps its id.
    let (pid, state) = unsafe { ((*p).pid(), &(*p).state) };
    if process::is_system(pid) || crate::os::exploring::on() || keeps_others_waiting(pid) {
        return Runs::Freely;
    }
    if state.has_control_signals() {
        return Runs::Briefly;
    }
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        thread::start("budgets", STACK_BYTES, serve);
    });
    let mut held = HELD.lock();
    let all = held.get_or_insert_default();
    all.entry(by).or_default().push_back(table().index(p));
    drop(held);
    SOME.notify_one();
    Runs::Later
}

/// Whether a process that does not run keeps others from running: it has reserved the permission to
/// change code, or blocks schedulers. Locks are never held beyond a time slice.
fn keeps_others_waiting(pid: Term) -> bool {
    permission::is_holder(pid) || multi_scheduling::is_blocker(pid)
}

/// Body of the thread.
fn serve() {
    let mut tick = 0u32;
    loop {
        let mut held = HELD.lock();
        while held.as_ref().is_none_or(HashMap::is_empty) {
            held = SOME.wait(held);
        }
        drop(held);
        std::thread::sleep(TICK);
        tick = tick.wrapping_add(1);
        let mut ready = Vec::new();
        let none_idle = budget_weights::on() && sched::working().iter().all(|&w| w);
        if let Some(all) = HELD.lock().as_mut() {
            for (&budget, cells) in all.iter_mut() {
                if budgets::throttled(budget, none_idle).is_none() {
                    let n = cells.len().min(MOST_PUT_BACK);
                    ready.extend(cells.drain(..n));
                } else if tick.is_multiple_of(LOOK_FOR_SIGNALS) {
                    cells.retain(|&c| {
                        // SAFETY: cells are never unmapped; the state word is an atomic.
                        let asked = unsafe { (*table().cell(c)).state.has_control_signals() };
                        if asked {
                            ready.push(c);
                        }
                        !asked
                    });
                }
            }
            all.retain(|_, cells| !cells.is_empty());
        }
        for c in ready {
            let p = table().cell(c);
            // SAFETY: a held process is alive, and its word has its priority.
            let prio = unsafe { (*p).state.priority() };
            sched::enqueue(p, prio);
        }
    }
}
