//! Running one process for a time slice.

use super::Engine;
use crate::code::{compiled, epochs, sampling};
use crate::collect::{Also, Collect, Sweep, compact};
use crate::cx::{Cx, Exit};
use crate::events;
use crate::lifecycle::exit;
use crate::msacc::{self, State};
use crate::process::Enter;
use crate::process::saved;
use crate::process::state::{Priority, Taken, Timeout, Wait};
use crate::process::task::Task;
use crate::process::{self, EXIT_PENDING, IN_RECEIVE, Process, TIMER};
use crate::profile;
use crate::sched::{self, multi_scheduling};
use crate::signal::handle;
use crate::waits;
use purlin_term::{Term, am, gc};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Reductions in a time slice.
pub const SLICE: i64 = sched::order::SLICE;

/// Runs a process that was taken from a run queue, on a scheduler. Gives the reductions that it used.
///
/// # Safety
/// `p` is a cell that the caller took from a run queue.
pub(crate) unsafe fn normal<E: Engine>(cx: &mut Cx, p: *mut Process) -> i64 {
    sched::count_switch();
    // SAFETY: the process was queued, so that nobody else owns it.
    unsafe {
        let taken = (*p).state.start_fetching();
        if taken.raised {
            return raised(cx, p, taken);
        }
        sched::set_running_priority((*p).state.priority());
        events::begins(&mut *p);
        cx.enter(p);
        waits::runs(cx, process::table().index(p), false);
        let mut slice_reds = if gc::stress() { short_slice() } else { SLICE };
        if profile::on() {
            slice_reds = profile::begins(slice_reds);
        }
        cx.reds = slice_reds;
        cx.charged = slice_reds;
        msacc::change(State::Emulator);
        let watched = watch(p);
        begins_compiled(cx);
        let slice = run::<E>(cx, taken.signals);
        if let Some(w) = watched {
            unwatch(w, p, matches!(slice, After::Requeue | After::Dirty(_)));
        }
        msacc::change(State::Other);
        match slice {
            After::Gone => {}
            After::Requeue => {
                // It is packed, and this thread's until it is queued. One that yields lets others go first.
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

/// Whether the process that begins its time slice runs machine code. One that saves its calls notes each of them, which only the
/// interpreter does.
///
/// # Safety
/// The process of the context is this thread's.
#[inline]
unsafe fn begins_compiled(cx: &mut Cx) {
    cx.sampling.held_back = 0;
    if (*cx.proc).has(process::SAVES) {
        cx.compiled = false;
        saved::begin(cx);
    } else {
        sampling::begins(cx);
    }
}

/// Reductions of a time slice in the stress mode: natives give way in the middle of what they do, and processes wherever they
/// may, with all registers that are live there.
#[cold]
fn short_slice() -> i64 {
    match gc::stress_below(3) {
        0 => SLICE,
        1 => 1 + gc::stress_below(40) as i64,
        _ => 1 + gc::stress_below(1000) as i64,
    }
}

/// A process was taken from its run queue before its turn, or has left its place in a dirty pool:
/// it does what signals ask of it, and waits on for its turn. Gives the reductions that it used.
///
/// # Safety
/// As for [`normal`]; no process is in the context.
#[cold]
unsafe fn raised(cx: &mut Cx, p: *mut Process, taken: Taken) -> i64 {
    sched::set_running_priority((*p).state.priority());
    cx.enter(p);
    cx.reds = SLICE;
    cx.charged = SLICE;
    if (*p).has(process::TIMED) {
        waits::goes_on(cx, true);
    }
    msacc::change(State::Emulator);
    if !taken.signals || obey(cx, (*p).pc, taken.dirty) {
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
                    sched::leaves_pool(p, io);
                }
                let prio = (*p).state.requeue();
                sched::enqueue_back(p, prio);
            }
        }
    }
    msacc::change(State::Other);
    SLICE - cx.reds
}

/// Runs a process that has this thread to itself until it waits, ends or goes to a dirty pool.
///
/// # Safety
/// As for [`normal`]; the process was queued by [`crate::sched::own::ring`].
pub unsafe fn own<E: Engine>(cx: &mut Cx, p: *mut Process) {
    loop {
        let _turn = multi_scheduling::turn(|_| ());
        sched::count_switch();
        // SAFETY: as in `normal`.
        unsafe {
            if let Some(io) = (*p).state.start_running().dirty {
                // It comes back to the end of that queue.
                sched::leaves_pool(p, io);
            }
            cx.enter(p);
            if (*p).has(process::TIMED) {
                waits::goes_on(cx, true);
            }
            cx.reds = SLICE;
            if profile::on() {
                cx.reds = profile::begins(SLICE);
            }
            cx.charged = cx.reds;
            let watched = watch(p);
            begins_compiled(cx);
            let slice = run::<E>(cx, false);
            if let Some(w) = watched {
                unwatch(w, p, matches!(slice, After::Requeue | After::Dirty(_)));
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
    // SAFETY: as in `normal`.
    unsafe {
        let _ = (*p).state.start_running();
        sched::set_running_priority((*p).state.priority());
        cx.enter(p);
        waits::runs(cx, process::table().index(p), true);
        cx.reds = SLICE;
        cx.charged = SLICE;
        msacc::change(State::Emulator);
        let pc = (*p).pc;
        // What has come while it waited for this thread may end it.
        if (*p).state.take_signals() {
            let goes_on = obey(cx, pc, None);
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
            // Whatever it does next it does on a scheduler.
            Next::Go(_) => {
                let prio = (*p).state.requeue();
                sched::enqueue(p, prio);
            }
            // A thread of its own does what it waits for.
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

/// The events of a time slice.
struct Watched {
    traced: bool,
    pid: Term,
    began: i64,
}

/// A time slice begins, of a process that is traced or while somebody wants to know of long ones.
///
/// # Safety
/// The caller owns the process.
#[inline]
unsafe fn watch(p: *mut Process) -> Option<Watched> {
    let traced = (*p).has(process::TRACED);
    if !traced && events::LONG_SCHEDULE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    if traced {
        events::sink().scheduled(&mut *p, true, (*p).pc);
    }
    Some(Watched {
        traced,
        pid: (*p).pid(),
        began: crate::clock::elapsed(),
    })
}

/// The time slice is over. Only if it is `still` this thread's the process may be looked at.
///
/// # Safety
/// If it is `still` this thread's, the caller owns the process; else `p` is not read.
#[inline]
unsafe fn unwatch(w: Watched, p: *mut Process, still: bool) {
    if still && w.traced && (*p).has(process::TRACED) {
        events::sink().scheduled(&mut *p, false, (*p).pc);
    }
    events::sink().ran(w.pid, crate::clock::elapsed() - w.began);
}

enum After {
    Gone,
    Requeue,
    Dirty(bool),
}

enum Next {
    /// Packed, to resume at its pc; true: the time slice is over.
    Go(bool),
    /// Packed, and waits for a signal.
    Wait,
    Gone,
    Dirty(bool),
}

/// Counts what has been used since this was last called, for the process, if one is in the context, and the thread. Gives the reductions.
///
/// # Safety
/// A process that is in the context is this thread's.
#[inline]
unsafe fn account(cx: &mut Cx) -> u64 {
    let used = (cx.charged - cx.reds).max(0) as u64;
    cx.charged = cx.reds;
    if !cx.proc.is_null() {
        (*cx.proc).reductions += used;
    }
    sched::count_reductions(used);
    crate::signal::share::count_words(cx);
    used
}

/// Normal tasks that are done for one of low priority.
const TASKS_PER_LOW: usize = 8;

/// Tasks in the order in which their priorities have their turns, those of one priority as they came.
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

/// The process that was entered does what signals ask of it. False: it has ended. `place`: the
/// dirty pool that it has a place in.
///
/// # Safety
/// A process is in the context and this thread's. It is packed: `pc` is where it goes on, its registers are those that [`Process`]
/// says are live.
unsafe fn obey(cx: &mut Cx, pc: *const u64, place: Option<bool>) -> bool {
    let p = cx.proc;
    // Tasks may collect: registers are roots.
    cx.interp.live = (*p).live as usize;
    cx.bif_pc = pc;
    handle::fetch_all(cx);
    if !(*p).has(EXIT_PENDING)
        && let Some(e) = (*p).ext().and_then(|e| e.rare())
    {
        for t in in_turn(std::mem::take(&mut e.deferred)) {
            t(Some(cx));
        }
    }
    // One that was collected may have turned out to be larger than it may be.
    let ends = (*p).has(EXIT_PENDING);
    if ends {
        if let Some(io) = place {
            // As soon as it has ended its cell may be another's.
            sched::leaves_pool(p, io);
        }
        end(cx);
    }
    !ends
}

/// Runs the process that was entered until it is over with it for now. `signals`: some have come, and their bit has been
/// cleared.
///
/// # Safety
/// A process is in the context and this thread's, and packed.
unsafe fn run<E: Engine>(cx: &mut Cx, mut signals: bool) -> After {
    let p = cx.proc;
    // Where it was let look at messages once more though its time was up. A receive that matches no message at all
    // never moves past the first one.
    let mut looked_at = std::ptr::null();
    let traced = (*p).has(process::TRACED);
    loop {
        let mut pc = (*p).pc;
        // Between time slices it does what signals ask of it.
        if (std::mem::take(&mut signals) || (*p).state.take_signals()) && !obey(cx, pc, None) {
            return After::Gone;
        }
        let state = (*p).state.load();
        if state.is_suspended() {
            let live = (*p).live as usize;
            cx.leave(pc, live);
            events::waits(&mut *p);
            match (*p).state.try_suspend() {
                Wait::Waiting => return After::Gone,
                Wait::Awake => return After::Requeue,
            }
        }
        let timeout = (*p).state.take_timeout();
        if timeout != Timeout::None && (*p).has(TIMER) {
            (*p).flags &= !TIMER;
            if (*p).has(IN_RECEIVE) {
                pc = (*p).timeout_pc;
                // Messages that came before the time was up are looked at first.
                let more = timeout == Timeout::Fired
                    && (*p).mailbox.as_ref().is_some_and(|m| m.has_current());
                if more && looked_at != (*p).pc {
                    pc = (*p).pc;
                    looked_at = pc;
                    // The time is up as soon as none of them matches.
                    (*p).state.keep_timeout();
                    (*p).flags |= TIMER;
                }
            }
        } else {
            looked_at = std::ptr::null();
        }
        (*p).flags &= !process::WAITING;
        if state.has_control() {
            (*p).state.settle_control();
        }
        compiled::enter(cx);
        if multi_scheduling::gives_way() {
            epochs::leave(&cx.epoch);
            let live = (*p).live as usize;
            cx.leave(pc, live);
            return After::Requeue;
        }
        let mut exit = E::run(cx, pc);
        epochs::leave(&cx.epoch);
        while cx.sampling.held_back > 0 && exit == Exit::Yield && cx.reds <= 0 {
            sampling::resume(cx);
            compiled::enter(cx);
            if !multi_scheduling::gives_way() {
                exit = E::run(cx, cx.interp.pc);
            }
            epochs::leave(&cx.epoch);
            if multi_scheduling::gives_way() {
                break;
            }
        }
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
            Next::Go(false) => {
                cx.enter(p);
                continue;
            }
            Next::Wait => {
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
                match (*p).state.try_wait(grew) {
                    Wait::Waiting => return After::Gone,
                    Wait::Awake => {
                        if (*p).has(process::TIMED) {
                            waits::goes_on(cx, false);
                        }
                        events::begins(&mut *p);
                        if traced {
                            events::sink().scheduled(&mut *p, true, (*p).pc);
                        }
                        if cx.reds <= 0 {
                            return After::Requeue;
                        }
                        cx.enter(p);
                    }
                }
            }
        }
    }
}

/// Acts on why the interpreter came back. The process is packed afterwards, or gone.
///
/// # Safety
/// A process is in the context and this thread's, and `E` has just come back from it: what the context says of where it goes on and
/// of live registers is so.
#[inline]
unsafe fn finish(cx: &mut Cx, exit: Exit) -> Next {
    let p = cx.proc;
    let (pc, live) = (cx.interp.pc, cx.interp.live);
    match exit {
        Exit::Exited => {
            if (*p).has(EXIT_PENDING) {
                end(cx);
            } else {
                let reason = cx.interp.reason;
                crashed(cx, reason);
                exit::terminate(cx, reason);
            }
            return Next::Gone;
        }
        _ if (*p).has(EXIT_PENDING) => {
            end(cx);
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
        Exit::Wait => {}
        _ => {}
    }
    let next = match exit {
        Exit::Wait | Exit::WaitTimeout => Next::Wait,
        Exit::DirtyIo => Next::Dirty(true),
        Exit::DirtyCpu => Next::Dirty(false),
        _ => Next::Go(true),
    };
    if matches!(next, Next::Wait) {
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
    // Signals fetched by a receive have left tasks that are run between time slices.
    if (*p).ext().is_some_and(|e| !e.deferred.is_empty()) {
        (*p).state.keep_signals();
    }
    cx.leave(pc, live);
    next
}

/// Ends the process by the reason that a signal left.
///
/// # Safety
/// The process in the context is this thread's, and has [`EXIT_PENDING`]. It is not used afterwards.
#[inline]
unsafe fn end(cx: &mut Cx) {
    if (*cx.proc).state.load().is_exiting() {
        // It has ended within a function of a library.
        return exit::bury(cx);
    }
    let reason = (*cx.proc).take_exit_reason();
    let t = reason.as_ref().map_or(am::NORMAL, |r| r.term());
    exit::terminate(cx, t);
}

/// Reports a process that ended by an error that nobody caught.
///
/// # Safety
/// The process in the context is this thread's; `reason` is a term of it.
#[inline]
unsafe fn crashed(cx: &mut Cx, reason: Term) {
    if cx.interp.crashed && !(*cx.proc).has(process::SYSTEM) {
        // A large reason goes to the logger, and with the exit signals, as one copy.
        let (reason, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Exit, reason);
        crate::report::process_crash(cx, reason);
    }
}
