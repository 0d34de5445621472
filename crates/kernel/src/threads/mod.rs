//! The threads that run processes: schedulers, dirty threads, threads of single processes, and
//! upkeep. [`crate::sched`] decides which process runs where.

pub mod dirty_calls;
pub mod fork;
pub mod single;
pub mod slice;
mod throttle;
pub mod upkeep;
mod watch;

use crate::budgets;
use crate::code::epochs::epochs;
use crate::cx::{Cx, Exit};
use crate::later;
use crate::os::thread;
use crate::process::table;
use crate::sched::multi_scheduling;
use crate::sched::order;
use crate::sched::own_threads::Thread;
use crate::sched::queues::Rest;
use crate::sched::{
    self, DIRTY_CPU, DIRTY_IO, Dirty, MAX_SCHEDULERS, QUEUES, RESTS, STOPPED, THREADS,
};
use crate::sched::{POOL, Threads, rest_if_stopped, stack_size};
use crate::{msacc, poll, timer};
use std::sync::atomic::Ordering;

/// An engine, which runs code. The threads know no more about it.
pub trait Engine: 'static {
    /// Runs the process in the context from `entry` on, until it yields, waits or ends.
    ///
    /// # Safety
    /// `cx.heap` is the heap of a process whose stack fits the code at `entry`, and the registers
    /// that this code reads hold terms of the process.
    unsafe fn run(cx: &mut Cx, entry: *const u64) -> Exit;
}

/// Reductions after which a scheduler checks whether timers are due.
const REDUCTIONS_PER_POLL: i64 = slice::SLICE;

/// Looks for work, of about a microsecond each, before a scheduler sleeps. To sleep and to be woken
/// costs both sides more than some of these, and short-lived processes leave the schedulers of
/// their parents idle all the time.
const LOOKS: u32 = 12;

/// Looks of a dirty thread before it sleeps, for each one of a scheduler: a process that comes back
/// runs for a while on a scheduler before that.
const DIRTY_LOOKS: u32 = 2;

/// Number of consecutive rests in vain after which a scheduler looks seldom: what wakes it, such as
/// another node's answer, takes longer to arrive.
const VAIN: u32 = 16;

/// A scheduler that looks seldom makes all its looks in one of this many rests.
const SELDOM: u32 = 8;

/// Number of timer checks of a busy scheduler for each time that it polls, if schedulers poll.
const CHECKS_PER_GLANCE: u32 = 2;

/// Number of rests without sleep for the sake of another scheduler's only process.
const ROUNDS: u32 = 4;

/// Number of rests since looking for work was last successful.
#[derive(Default)]
struct Vain(u32);

impl Vain {
    /// Returns the number of looks that this rest is worth.
    fn looks(&self) -> u32 {
        if self.0 < VAIN || self.0.is_multiple_of(SELDOM) {
            LOOKS
        } else {
            1
        }
    }
    fn looked(&mut self, found: bool) {
        self.0 = if found { 0 } else { self.0.wrapping_add(1) };
    }
}

/// Returns the next process for scheduler `i`, and sleeps until there is one. `used` is the number
/// of reductions since the scheduler checked timers, and `checks` the number of such checks since
/// it polled; they are updated, like `vain`.
fn next_or_park(i: usize, used: &mut i64, checks: &mut u32, vain: &mut Vain) -> u32 {
    let q = &QUEUES;
    *used += order::PICK;
    let mut rounds = ROUNDS;
    let mut rested = false;
    let mut glanced = None;
    let cell = loop {
        if STOPPED.load(Ordering::Relaxed) {
            q.retire(i);
            rest_if_stopped();
        }
        if *used >= REDUCTIONS_PER_POLL {
            *used = 0;
            timer::checked(i);
            timer::poll();
            *checks += 1;
            if *checks >= CHECKS_PER_GLANCE && i < q.online() {
                *checks = 0;
                poll::glance(i + 1);
            }
        }
        if let Some(c) = q.next(i, None) {
            break c;
        }
        timer::checked(i);
        if i < q.online() && poll::glance(i + 1) {
            *checks = 0;
            if let Some(c) = q.next(i, None) {
                break c;
            }
        }
        q.hooks.watch_polling(i);
        // Looking for a moment costs less than to sleep and be woken.
        if i < q.online() {
            let mut found = None;
            for _ in 0..vain.looks() {
                glanced = q.glance(i, glanced);
                for _ in 0..64 {
                    std::hint::spin_loop();
                }
                found = q.next(i, glanced);
                if found.is_some() || STOPPED.load(Ordering::Relaxed) {
                    break;
                }
            }
            vain.looked(found.is_some());
            if let Some(c) = found {
                break c;
            }
        }
        *used = REDUCTIONS_PER_POLL;
        rested = true;
        match q.rest(i, glanced, rounds > 0) {
            Rest::Found(c) if !STOPPED.load(Ordering::Relaxed) => break c,
            Rest::Again => rounds -= 1,
            Rest::Outside(found) => {
                poll::report_all(found);
                rounds = ROUNDS;
            }
            _ => rounds = ROUNDS,
        }
    };
    if rested {
        q.wake_another(i);
    }
    cell
}

/// Starts `n` schedulers and the dirty pools, which run code by the engine `E`.
pub fn start<E: Engine>(n: usize, dirty_cpu: usize, dirty_io: usize) {
    THREADS.get_or_init(|| Threads {
        scheduler: work::<E>,
        own: own::<E>,
    });
    if crate::os::exploring::on() {
        sched::set_online(1);
        single::run::<E>();
    }
    // As in stock, a start with fewer than requested fails.
    sched::set_online_or(n, |name, e| thread::refused(name, e));
    dirty_calls::begin();
    sched::later::start();
    crate::system::memory::begin();
    watch::start();
    for i in 0..dirty_cpu.max(1) {
        start_dirty::<E>(&DIRTY_CPU, msacc::Kind::DirtyCpu, format!("dcpu{}", i + 1));
    }
    for i in 0..dirty_io.max(1) {
        start_dirty::<E>(&DIRTY_IO, msacc::Kind::DirtyIo, format!("dio{}", i + 1));
    }
    upkeep::start();
}

fn start_dirty<E: Engine>(d: &'static Dirty, kind: msacc::Kind, name: String) {
    let seat = d.pool.join();
    let index = seat.index;
    let id = MAX_SCHEDULERS + index;
    let serve = move || {
        crate::affinity::begin_unbound();
        msacc::begin_thread(kind, index + 1);
        POOL.set(Some(kind == msacc::Kind::DirtyIo));
        later::begin_thread();
        let mut cx: Option<Box<Cx>> = None;
        let mut vain = Vain::default();
        loop {
            let look = |any: &dyn Fn() -> bool| {
                let found = (0..DIRTY_LOOKS * vain.looks()).any(|_| {
                    for _ in 0..64 {
                        std::hint::spin_loop();
                    }
                    any()
                });
                vain.looked(found);
            };
            let cell = d.pool.take(&seat, look, msacc::asleep);
            let cx = cx.get_or_insert_with(|| {
                let mut c = Cx::boxed(id);
                c.dirty = true;
                c
            });
            let turn = multi_scheduling::dirty_turn(msacc::asleep);
            rest_if_stopped();
            let start = crate::clock::elapsed().max(0) as u64;
            d.started.fetch_add(start, Ordering::Relaxed);
            d.busy.fetch_add(1, Ordering::Relaxed);
            let p = table().cell(cell);
            // SAFETY: cells are never unmapped; the identifier is an atomic.
            d.set_running(index, Some(unsafe { (*p).pid() }));
            // SAFETY: the cell was in the queue of this pool.
            unsafe { slice::dirty::<E>(cx, p) };
            d.set_running(index, None);
            budgets::ends();
            d.busy.fetch_sub(1, Ordering::Relaxed);
            d.started.fetch_sub(start, Ordering::Relaxed);
            let took = (crate::clock::elapsed() as u64).saturating_sub(start);
            d.worked.fetch_add(took, Ordering::Relaxed);
            drop(turn);
            later::work();
        }
    };
    thread::start(&name, stack_size(), serve);
}

/// Body of a scheduler's thread.
fn work<E: Engine>(i: usize) {
    sched::become_scheduler(i + 1);
    later::begin_scheduler();
    msacc::begin_thread(msacc::Kind::Scheduler, i + 1);
    crate::message::blocks::keep();
    purlin_term::counts::take_share();
    let mut cx = Cx::boxed(i);
    let _member = epochs().join(&cx.epoch);
    let (mut used, mut checks, mut vain) = (0, 0, Vain::default());
    let mut plan = 0;
    loop {
        sched::binding::follow(i, &mut plan);
        let cell = next_or_park(i, &mut used, &mut checks, &mut vain);
        let _turn = multi_scheduling::turn(|on| {
            let rests = &RESTS[i];
            if on { rests.begin() } else { rests.end() }
        });
        let p = table().cell(cell);
        // SAFETY: cells are never unmapped; the identifier is an atomic.
        sched::begin_slice(i, unsafe { (*p).pid() });
        // SAFETY: the cell was in a run queue.
        let ran = unsafe { slice::normal::<E>(&mut cx, p) };
        budgets::ends();
        sched::end_slice(i, ran);
        used += ran;
        later::work();
    }
}

/// Body of the thread of a single process.
fn own<E: Engine>(cell: u32, t: &Thread) {
    crate::affinity::begin_unbound();
    let mut cx = Cx::boxed(MAX_SCHEDULERS);
    let _member = epochs().join(&cx.epoch);
    while t.wait() {
        // SAFETY: rung by the thread that set `QUEUED`, once for each time. No other thread takes
        // this process.
        unsafe { slice::own::<E>(&mut cx, table().cell(cell)) };
        budgets::ends();
    }
}
