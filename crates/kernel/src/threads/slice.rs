//! Running one process for a time slice: on a scheduler ([`normal`]), on a thread of its own
//! ([`own`]), or on a dirty thread ([`dirty`]).
//!
//! A slice takes the process from its queue, enters it into the thread's context, handles its
//! signals, and runs the engine until the process yields, waits or ends ([`run`]). [`finish`] turns
//! the engine's [`Exit`] into what happens next.
//!
//! # Invariants
//! - The thread owns the process from the moment at which it has taken it until a state word says
//!   that it waits, is queued or has ended. After that nothing here touches it.
//! - A process that this thread does not run is packed: its heap is in its control block, and not
//!   in the context.
//! - All reductions are counted once, by [`account`].

use super::Engine;
use super::throttle::{self, Runs};
use crate::budgets;
use crate::code::{compiled, epochs, sampling};
use crate::collect::{Also, Collect, Sweep, compact};
use crate::cx::{Cx, Exit};
use crate::events;
use crate::lifecycle::exit;
use crate::message::lengths;
use crate::msacc::{self, State};
use crate::process::Enter;
use crate::process::saved;
use crate::process::state::{Priority, Taken, Timeout, Wait};
use crate::process::task::Task;
use crate::process::{self, EXIT_PENDING, IN_RECEIVE, Process, TIMER};
use crate::profile;
use crate::recorder;
use crate::sched::{self, multi_scheduling};
use crate::signal::handle;
use crate::system::budget_memory;
use crate::waits;
use purlin_term::{Term, am, gc};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Reductions in a time slice.
pub const SLICE: i64 = sched::order::SLICE;
/// The same for a process whose budget limits processor time: others should not wait for it.
const LIMITED_SLICE: i64 = SLICE / 8;

/// Runs a process that was taken from a run queue, on a scheduler. Returns the reductions that it
/// used.
///
/// # Safety
/// `p` is a cell that the caller took from a run queue.
pub(crate) unsafe fn normal<E: Engine>(cx: &mut Cx, p: *mut Process) -> i64 {
    let runs = match budgets::on() {
        // SAFETY: the contract is the same.
        true => unsafe { throttle::look(p) },
        false => Runs::Freely,
    };
    if runs == Runs::Later {
        return 0;
    }
    sched::count_switch();
    // SAFETY: the process was queued, so no other thread owns it.
    unsafe {
        let taken = (*p).state.start_fetching();
        if taken.raised {
            return raised(cx, p, taken);
        }
        sched::set_running_priority((*p).state.priority());
        events::begins(&mut *p);
        cx.enter(p);
        let short = budgets::begins(p);
        waits::runs(cx, process::table().index(p), false);
        let mut slice_reds = match gc::stress() {
            true => short_slice(),
            false if short => LIMITED_SLICE,
            false => SLICE,
        };
        if profile::on() {
            slice_reds = profile::begins(slice_reds);
        }
        if runs == Runs::Briefly {
            slice_reds = 1;
        }
        cx.reds = slice_reds;
        cx.charged = slice_reds;
        msacc::change(State::Emulator);
        let watched = begin_events(p);
        choose_engine(cx);
        let slice = run::<E>(cx, taken.signals);
        if let Some(w) = watched {
            end_events(w, p, matches!(slice, After::Requeue | After::Dirty(_)));
        }
        msacc::change(State::Other);
        match slice {
            After::Gone => {}
            After::Requeue => {
                if lengths::on() {
                    lengths::count((*p).mailbox);
                }
                recorder::mailbox(&mut *p);
                // It is packed, and this thread's until it is queued. A process that yields early
                // lets others go first.
                let words = if cx.reds <= 0 {
                    (*p).heap_block_words()
                } else {
                    0
                };
                let prio = (*p).state.requeue();
                match words {
                    0 => sched::enqueue_last(p, prio),
                    n => sched::enqueue_used(p, prio, n),
                }
            }
            After::Dirty(io) => {
                let prio = (*p).state.requeue_dirty(io);
                sched::enqueue_dirty(p, prio, io);
            }
        }
        slice_reds - cx.reds
    }
}

/// Decides whether the process that begins its time slice runs machine code. One that saves its
/// calls is interpreted, since only the interpreter records them.
///
/// # Safety
/// The process in the context is this thread's.
#[inline]
unsafe fn choose_engine(cx: &mut Cx) {
    cx.sampling.held_back = 0;
    // SAFETY: by the contract, the process is this thread's.
    if unsafe { (*cx.proc.get()).has(process::SAVES) } {
        cx.compiled = false;
        saved::begin(cx);
    } else {
        sampling::begins(cx);
    }
}

/// Returns the reductions of a time slice in stress mode: natives trap, and processes yield,
/// wherever they may, with all registers that are live there.
#[cold]
fn short_slice() -> i64 {
    match gc::stress_below(3) {
        0 => SLICE,
        1 => 1 + gc::stress_below(40) as i64,
        _ => 1 + gc::stress_below(1000) as i64,
    }
}

/// Lets a process handle signals that was taken early from its run queue, or that has left its
/// place in a dirty pool. It then waits on for its turn. Returns the reductions that it used.
///
/// # Safety
/// As for [`normal`]; no process is in the context.
#[cold]
unsafe fn raised(cx: &mut Cx, p: *mut Process, taken: Taken) -> i64 {
    // SAFETY: the caller has become the owner of the process, and is until it is queued.
    unsafe {
        sched::set_running_priority((*p).state.priority());
        cx.enter(p);
        cx.reds = SLICE;
        cx.charged = SLICE;
        if (*p).has(process::TIMED) {
            waits::goes_on(cx, true);
        }
        msacc::change(State::Emulator);
        if !taken.signals || handle_signals(cx, (*p).pc, taken.dirty) {
            account(cx);
            let live = (*p).live as usize;
            cx.leave((*p).pc, live);
            match taken.dirty {
                Some(io) if !(*p).state.load().is_suspended() => {
                    (*p).state.settle_control();
                    let prio = (*p).state.requeue_dirty(io);
                    sched::enqueue_dirty_back(p, prio, io);
                }
                place => {
                    if let Some(io) = place {
                        sched::give_up_pool_place(p, io);
                    }
                    let prio = (*p).state.requeue();
                    sched::enqueue_back(p, prio);
                }
            }
        }
    }
    msacc::change(State::Other);
    SLICE - cx.reds
}

/// Runs a process with a thread of its own until it waits, ends or goes to a dirty pool.
///
/// # Safety
/// As for [`normal`]; the process was queued by [`crate::sched::own_threads::ring`].
pub unsafe fn own<E: Engine>(cx: &mut Cx, p: *mut Process) {
    loop {
        let _turn = multi_scheduling::turn(|_| ());
        sched::count_switch();
        // SAFETY: by the contract, `p` was taken from a queue, so no other thread owns it.
        unsafe {
            if let Some(io) = (*p).state.start_running().dirty {
                // It loses its place in the dirty pool, and will queue last.
                sched::give_up_pool_place(p, io);
            }
            cx.enter(p);
            budgets::begins(p);
            if (*p).has(process::TIMED) {
                waits::goes_on(cx, true);
            }
            cx.reds = SLICE;
            if profile::on() {
                cx.reds = profile::begins(SLICE);
            }
            cx.charged = cx.reds;
            let watched = begin_events(p);
            choose_engine(cx);
            let slice = run::<E>(cx, false);
            if let Some(w) = watched {
                end_events(w, p, matches!(slice, After::Requeue | After::Dirty(_)));
            }
            match slice {
                After::Gone => return,
                After::Requeue => {
                    let _ = (*p).state.requeue();
                    sched::rest_if_stopped();
                }
                After::Dirty(io) => {
                    let prio = (*p).state.requeue_dirty(io);
                    sched::enqueue_dirty(p, prio, io);
                    return;
                }
            }
        }
    }
}

/// Runs a process at a native that may block, on a thread of a dirty pool.
///
/// # Safety
/// As for [`normal`], for the queue of that pool.
pub unsafe fn dirty<E: Engine>(cx: &mut Cx, p: *mut Process) {
    // SAFETY: by the contract, `p` was taken from a queue, so no other thread owns it.
    unsafe {
        let _ = (*p).state.start_running();
        sched::set_running_priority((*p).state.priority());
        cx.enter(p);
        budgets::begins(p);
        waits::runs(cx, process::table().index(p), true);
        cx.reds = SLICE;
        cx.charged = SLICE;
        msacc::change(State::Emulator);
        let pc = (*p).pc;
        // Signals that have arrived while it waited for this thread may end it.
        if (*p).state.take_signals() {
            let goes_on = handle_signals(cx, pc, None);
            if !goes_on {
                return msacc::change(State::Other);
            }
            if (*p).state.load().is_suspended() {
                account(cx);
                let live = (*p).live as usize;
                cx.leave(pc, live);
                let prio = (*p).state.requeue();
                sched::enqueue(p, prio);
                return msacc::change(State::Other);
            }
        }
        (*p).state.settle_control();
        if profile::on() {
            profile::begins_dirty();
        }
        if (*p).has(process::TRACED) {
            events::sink().scheduled(&mut *p, true, pc);
        }
        let exit = E::run(cx, pc);
        account(cx);
        if profile::on() {
            profile::ran_dirty(cx, matches!(exit, Exit::Exited));
        }
        let next = finish(cx, exit);
        msacc::change(State::Other);
        if !matches!(next, Next::Gone) && (*p).has(process::TRACED) {
            events::sink().scheduled(&mut *p, false, (*p).pc);
        }
        match next {
            // Everything else runs on a scheduler.
            Next::Go(_) => {
                let prio = (*p).state.requeue();
                sched::enqueue(p, prio);
            }
            // It waits for work of another thread.
            Next::Wait => match (*p).state.try_wait(false) {
                Wait::Waiting => {}
                Wait::Awake => {
                    let prio = (*p).state.requeue();
                    sched::enqueue(p, prio);
                }
            },
            Next::Gone => {}
            Next::Dirty(io) => {
                let prio = (*p).state.requeue_dirty(io);
                sched::enqueue_dirty(p, prio, io);
            }
        }
    }
}

/// Data for the events of a time slice.
struct Watched {
    traced: bool,
    pid: Term,
    began: i64,
}

/// Begins a time slice for tracing, if the process is traced or long schedules are monitored.
///
/// # Safety
/// The caller owns the process.
#[inline]
unsafe fn begin_events(p: *mut Process) -> Option<Watched> {
    // SAFETY: by the contract, the caller owns the process.
    let traced = unsafe { (*p).has(process::TRACED) };
    if !traced && events::LONG_SCHEDULE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    if traced {
        // SAFETY: by the contract, the caller owns the process.
        unsafe { events::sink().scheduled(&mut *p, true, (*p).pc) };
    }
    Some(Watched {
        traced,
        // SAFETY: by the contract, the caller owns the process.
        pid: unsafe { (*p).pid() },
        began: crate::clock::elapsed(),
    })
}

/// Ends a time slice for tracing. `still` says whether the process still belongs to this thread.
///
/// # Safety
/// If `still` is true, the caller owns `p`. Otherwise `p` is not read.
#[inline]
unsafe fn end_events(w: Watched, p: *mut Process, still: bool) {
    if still && w.traced {
        // SAFETY: by the contract, the caller still owns the process.
        unsafe {
            if (*p).has(process::TRACED) {
                events::sink().scheduled(&mut *p, false, (*p).pc);
            }
        }
    }
    events::sink().ran(w.pid, crate::clock::elapsed() - w.began);
}

enum After {
    Gone,
    Requeue,
    Dirty(bool),
}

enum Next {
    /// Packed, to resume at its pc. True: the time slice is over.
    Go(bool),
    /// Packed, and waits for a signal.
    Wait,
    Gone,
    Dirty(bool),
}

/// Counts the reductions used since the last call, for the process in the context, if there is one,
/// and for the thread. Returns them.
///
/// # Safety
/// A process in the context is this thread's.
#[inline]
unsafe fn account(cx: &mut Cx) -> u64 {
    let used = (cx.charged - cx.reds).max(0) as u64;
    cx.charged = cx.reds;
    if !cx.proc.is_null() {
        // SAFETY: by the contract, the process is this thread's.
        unsafe { (*cx.proc.get()).reductions += used };
    }
    sched::count_reductions(used);
    crate::signal::share::count_words(cx);
    used
}

/// Normal tasks per task of low priority.
const TASKS_PER_LOW: usize = 8;

/// Sorts tasks by priority, as run queues do. Those of one priority keep their order.
fn in_turn(tasks: Vec<(Priority, Task)>) -> Vec<Task> {
    if tasks.len() < 2 {
        return tasks.into_iter().map(|t| t.1).collect();
    }
    let mut queues = [const { VecDeque::new() }; 4];
    for (prio, task) in tasks {
        queues[prio as usize].push_back(task);
    }
    let [low, normal, high, max] = &mut queues;
    let mut order: Vec<Task> = max.drain(..).chain(high.drain(..)).collect();
    while !normal.is_empty() || !low.is_empty() {
        order.extend(normal.drain(..normal.len().min(TASKS_PER_LOW)));
        order.extend(low.pop_front());
    }
    order
}

/// Makes the entered process handle its signals. Returns false if it has ended. `place` is the
/// dirty pool in which it has a place.
///
/// # Safety
/// A process is in the context, and this thread's. It is packed: `pc` is where it resumes, and its
/// live registers are those that [`Process`] says.
unsafe fn handle_signals(cx: &mut Cx, pc: *const u64, place: Option<bool>) -> bool {
    let p = cx.proc.get();
    // Tasks may collect: registers are roots.
    // SAFETY: by the contract, the process is this thread's.
    cx.interp.live = unsafe { (*p).live } as usize;
    cx.bif_pc = pc;
    handle::fetch_all(cx);
    // SAFETY: by the contract, the process is this thread's.
    let deferred = unsafe {
        match (*p).has(EXIT_PENDING) {
            true => None,
            false => (*p).ext().and_then(|e| e.rare()),
        }
    };
    if let Some(e) = deferred {
        for t in in_turn(std::mem::take(&mut e.deferred)) {
            t(Some(cx));
        }
    }
    // A process that was collected may have turned out to exceed its maximum heap size.
    // SAFETY: by the contract, the process is this thread's.
    let ends = unsafe { (*p).has(EXIT_PENDING) };
    if ends {
        if let Some(io) = place {
            // Once it has ended, its cell may belong to another process.
            sched::give_up_pool_place(p, io);
        }
        // SAFETY: by the contract, the process is this thread's, and it has `EXIT_PENDING`.
        unsafe { end(cx) };
    }
    !ends
}

/// Runs the entered process until it yields, waits, ends or moves to a dirty thread. `signals`:
/// some have arrived, and their bit has been cleared.
///
/// # Safety
/// A process is in the context, this thread's, and packed.
unsafe fn run<E: Engine>(cx: &mut Cx, mut signals: bool) -> After {
    let p = cx.proc.get();
    let mut looked_at = std::ptr::null();
    // SAFETY: by the contract, the process is this thread's. It stays so until this returns:
    // `handle_signals`, `finish` and the attempts to wait say when it no longer is.
    unsafe {
        let traced = (*p).has(process::TRACED);
        loop {
            let pc = (*p).pc;
            // It handles signals between time slices.
            if (std::mem::take(&mut signals) || (*p).state.take_signals())
                && !handle_signals(cx, pc, None)
            {
                return After::Gone;
            }
            let state = (*p).state.load();
            if state.is_suspended() {
                return suspend(cx, p, pc);
            }
            let pc = resume_at(p, pc, &mut looked_at);
            (*p).flags &= !process::WAITING;
            if state.has_control() {
                (*p).state.settle_control();
            }
            let Some(exit) = execute::<E>(cx, pc) else {
                let live = (*p).live as usize;
                cx.leave(pc, live);
                return After::Requeue;
            };
            let used = account(cx);
            if exit != Exit::Exited {
                sampling::sample(cx, used);
                crate::accounts::worked(cx, used, cx.interp.pc);
            }
            if profile::on() {
                profile::ran(cx, matches!(exit, Exit::Exited));
            }
            match finish(cx, exit) {
                Next::Gone => return After::Gone,
                Next::Dirty(io) => return After::Dirty(io),
                Next::Go(true) => return After::Requeue,
                Next::Go(false) => cx.enter(p),
                Next::Wait => {
                    if let Some(after) = wait(cx, p, traced) {
                        return after;
                    }
                }
            }
        }
    }
}

/// Packs a suspended process, to resume at `pc`, and lets it wait unless signals have arrived.
///
/// # Safety
/// `p` is the process in the context, this thread's, and packed.
unsafe fn suspend(cx: &mut Cx, p: *mut Process, pc: *const u64) -> After {
    // SAFETY: by the contract, the process is this thread's until it waits.
    unsafe {
        let live = (*p).live as usize;
        cx.leave(pc, live);
        events::waits(&mut *p);
        match (*p).state.try_suspend() {
            Wait::Waiting => After::Gone,
            Wait::Awake => After::Requeue,
        }
    }
}

/// Returns the address where a process resumes: `pc`, unless its receive timer has fired.
/// `looked_at` is the receive that was allowed to look at messages once more although its time was
/// up. A receive that matches no message at all never moves past the first one.
///
/// # Safety
/// The caller owns the process.
#[inline(always)]
unsafe fn resume_at(p: *mut Process, pc: *const u64, looked_at: &mut *const u64) -> *const u64 {
    // SAFETY: by the contract, the process is this thread's.
    unsafe {
        let timeout = (*p).state.take_timeout();
        if timeout == Timeout::None || !(*p).has(TIMER) {
            *looked_at = std::ptr::null();
            return pc;
        }
        (*p).flags &= !TIMER;
        if !(*p).has(IN_RECEIVE) {
            return pc;
        }
        // Messages that arrived before the time was up are examined first.
        let more =
            timeout == Timeout::Fired && (*p).mailbox.as_ref().is_some_and(|m| m.has_current());
        if more && *looked_at != pc {
            *looked_at = pc;
            // The time is up as soon as none of them matches.
            (*p).state.keep_timeout();
            (*p).flags |= TIMER;
            return pc;
        }
        (*p).timeout_pc
    }
}

/// Runs the engine until the process yields for good, waits or ends; `None` if it must let others
/// go first.
///
/// # Safety
/// A process is in the context, and this thread's. It resumes at `pc`.
#[inline(always)]
unsafe fn execute<E: Engine>(cx: &mut Cx, pc: *const u64) -> Option<Exit> {
    compiled::enter(cx);
    if multi_scheduling::must_yield() {
        epochs::leave(&cx.epoch);
        return None;
    }
    // SAFETY: by the contract; the process was entered.
    let mut exit = unsafe { E::run(cx, pc) };
    epochs::leave(&cx.epoch);
    while cx.sampling.held_back > 0 && exit == Exit::Yield && cx.reds <= 0 {
        sampling::resume(cx);
        compiled::enter(cx);
        if !multi_scheduling::must_yield() {
            // SAFETY: the engine has yielded at this address.
            exit = unsafe { E::run(cx, cx.interp.pc) };
        }
        epochs::leave(&cx.epoch);
        if multi_scheduling::must_yield() {
            break;
        }
    }
    Some(exit)
}

/// Lets a process wait, after it was compacted if that pays. Returns `None` if it is awake again
/// and entered, or else how its time slice ends. `traced`: it was traced when that began.
///
/// # Safety
/// `p` is the process in the context, this thread's, and packed.
#[inline(always)]
unsafe fn wait(cx: &mut Cx, p: *mut Process, traced: bool) -> Option<After> {
    // SAFETY: by the contract, the process is this thread's until it waits.
    unsafe {
        let traced = traced && (*p).has(process::TRACED);
        if traced {
            events::sink().scheduled(&mut *p, false, (*p).pc);
        }
        let mut grew = compact::pays(p) && (!compact::settles(p) || compact::settle(cx, p));
        if gc::stress() {
            grew = compact::stress_waiting(cx, p);
        }
        events::waits(&mut *p);
        waits::waits(&mut *p);
        if lengths::on() {
            lengths::count((*p).mailbox);
        }
        recorder::mailbox(&mut *p);
        match (*p).state.try_wait(grew) {
            Wait::Waiting => return Some(After::Gone),
            Wait::Awake => {}
        }
        if (*p).has(process::TIMED) {
            waits::goes_on(cx, false);
        }
        events::begins(&mut *p);
        if traced {
            events::sink().scheduled(&mut *p, true, (*p).pc);
        }
        if cx.reds <= 0 {
            return Some(After::Requeue);
        }
        cx.enter(p);
        None
    }
}

/// Handles the engine's reason for returning. The process is packed afterwards, or gone.
///
/// # Safety
/// A process is in the context, and this thread's. `E` has just returned from it: the context's
/// resume address and live registers are correct.
#[inline]
unsafe fn finish(cx: &mut Cx, exit: Exit) -> Next {
    let p = cx.proc.get();
    let (pc, live) = (cx.interp.pc, cx.interp.live);
    // SAFETY: by the contract, the process is this thread's. It is gone where this says so.
    unsafe {
        match exit {
            _ if (*p).has(EXIT_PENDING) => {
                end(cx);
                return Next::Gone;
            }
            Exit::Exited => {
                let reason = cx.interp.reason;
                crashed(cx, reason);
                exit::terminate(cx, reason);
                return Next::Gone;
            }
            Exit::WaitTimeout => {
                (*p).flags |= IN_RECEIVE;
                if !(*p).has(TIMER) {
                    (*p).flags |= TIMER;
                    (*p).timeout_pc = cx.interp.timeout_pc;
                    crate::timer::arm_receive(process::table().index(p), cx.interp.timeout);
                }
            }
            _ => {}
        }
    }
    let rests = matches!(exit, Exit::Yield | Exit::Wait | Exit::WaitTimeout);
    if rests && budgets::on() && (budgets::takes_collection(p) || budget_memory::is_over(cx, pc)) {
        // SAFETY: by the contract, the process is this thread's. The live registers, and those
        // alone, are used afterwards.
        unsafe {
            cx.collect(0, live, Also::NONE, Sweep::Full);
            if (*p).has(EXIT_PENDING) {
                end(cx);
                return Next::Gone;
            }
        }
    }
    let next = match exit {
        Exit::Wait | Exit::WaitTimeout => Next::Wait,
        Exit::DirtyIo => Next::Dirty(true),
        Exit::DirtyCpu => Next::Dirty(false),
        _ => Next::Go(true),
    };
    if matches!(next, Next::Dirty(_)) && budgets::on() {
        budgets::keeps_clean(p);
        // It may wait for a thread for long, with all that it has made so far.
        budget_memory::note(cx, pc);
    }
    if matches!(next, Next::Wait) {
        // SAFETY: by the contract, the process is this thread's. Where no register is live, all
        // terms that are used afterwards are roots.
        unsafe {
            (*p).flags |= process::WAITING;
            (*p).end_turn();
            cx.heap.waited = true;
            if live == 0 && gc::rest_pays(&cx.heap) && cx.may_rest() {
                cx.collect(0, 0, Also::NONE, Sweep::Rest);
            } else if live == 0
                && gc::settle_pays(&cx.heap)
                && cx.may_rest()
                && (*p).ext().is_none_or(|e| e.max_heap.is_none())
            {
                cx.collect(0, 0, Also::NONE, Sweep::Settle);
            } else if cx.heap.is_swept_in_steps() {
                cx.sweep_on();
            }
        }
    }
    // SAFETY: by the contract, the process is this thread's; the heap's pointers are current.
    unsafe {
        // Signals fetched by a receive may have left tasks to run between time slices.
        if (*p).ext().is_some_and(|e| !e.deferred.is_empty()) {
            (*p).state.keep_signals();
        }
        cx.leave(pc, live);
    }
    next
}

/// Ends the process with the reason that a signal has left.
///
/// # Safety
/// The process in the context is this thread's, and has [`EXIT_PENDING`]. It is not used
/// afterwards.
#[inline]
unsafe fn end(cx: &mut Cx) {
    // SAFETY: by the contract, the process is this thread's, and not used afterwards.
    unsafe {
        if (*cx.proc.get()).state.load().is_exiting() {
            // It has ended within a NIF.
            return exit::bury(cx);
        }
        let reason = (*cx.proc.get()).take_exit_reason();
        let t = reason.as_ref().map_or(am::NORMAL, |r| r.term());
        exit::terminate(cx, t);
    }
}

/// Reports a process that ended by an uncaught error.
///
/// # Safety
/// The process in the context is this thread's; `reason` is one of its terms.
#[inline]
unsafe fn crashed(cx: &mut Cx, reason: Term) {
    // SAFETY: by the contract, the process is this thread's.
    if cx.interp.crashed && !unsafe { (*cx.proc.get()).has(process::SYSTEM) } {
        // A large reason goes to the logger, and with the exit signals, as one copy.
        let (reason, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Exit, reason);
        crate::report::process_crash(cx, reason);
    }
}
