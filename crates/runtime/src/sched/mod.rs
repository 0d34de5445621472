//! Schedulers: worker threads that run processes, each from a run queue of its own, stealing from others when it is
//! empty; and pools of threads for natives that block or compute long.
//!
//! The protocols are in [`queues`], [`pool`] and [`nap`], which know nothing of processes; here they meet threads, clocks
//! and cells. A process that is `QUEUED` is in exactly one queue; whoever set the bit puts it there.

pub mod alone;
pub mod nap;
pub mod own;
pub mod pool;
pub mod queues;
#[cfg(test)]
mod queues_tests;
pub mod run;
#[cfg(test)]
mod slot_tests;
pub mod upkeep;
pub mod wheel;

use crate::msacc;
use crate::poll;
use crate::process::state::{OWN_THREAD, Priority, RAISED};
use crate::process::{Process, table};
use crate::trace::profile;
use pool::Pool;
use queues::{Comes, Hooks, Rest, RunQueues};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

/// Most schedulers.
pub const MAX_SCHEDULERS: usize = 1024;

/// For how long a thread had nothing to do.
struct Resting {
    /// Nanoseconds, the current rest excepted.
    total: AtomicU64,
    /// When the current rest began, as [`crate::clock::elapsed`]; 0: it works.
    since: AtomicU64,
}

impl Resting {
    const fn new() -> Resting {
        Resting {
            total: AtomicU64::new(0),
            since: AtomicU64::new(0),
        }
    }
    fn begin(&self) {
        let now = crate::clock::elapsed().max(1) as u64;
        self.since.store(now, Ordering::Relaxed);
    }
    fn end(&self) {
        let now = crate::clock::elapsed().max(1) as u64;
        let since = self.since.swap(0, Ordering::Relaxed);
        if since != 0 {
            self.total
                .fetch_add(now.saturating_sub(since), Ordering::Relaxed);
        }
    }
    fn nanoseconds(&self) -> u64 {
        let now = crate::clock::elapsed().max(1) as u64;
        let total = self.total.load(Ordering::Relaxed);
        match self.since.load(Ordering::Relaxed) {
            0 => total,
            since => total + now.saturating_sub(since),
        }
    }
}

/// A pool of threads, and how busy they are.
struct Dirty {
    pool: Pool,
    /// Threads that run a process, and nanoseconds for which they have.
    busy: AtomicUsize,
    worked: AtomicU64,
    /// Sum of the times at which those that are at work began, in nanoseconds.
    started: AtomicU64,
}

impl Dirty {
    fn new() -> Dirty {
        Dirty {
            pool: Pool::new(),
            busy: AtomicUsize::new(0),
            worked: AtomicU64::new(0),
            started: AtomicU64::new(0),
        }
    }
}

/// What the run queues ask of the runtime.
struct Here {
    rests: Vec<Resting>,
}

impl Hooks for Here {
    #[inline]
    fn bound(&self, cell: u32) -> usize {
        bound(cell)
    }
    fn rests(&self, i: usize, idle: usize) {
        self.rests[i].begin();
        profile::scheduler_is(i + 1, false, MAX_SCHEDULERS.saturating_sub(idle));
    }
    fn sleeps(&self, on: bool) {
        msacc::asleep(on);
    }
    fn works(&self, i: usize, idle: usize) {
        self.rests[i].end();
        upkeep::stir();
        profile::scheduler_is(i + 1, true, MAX_SCHEDULERS.saturating_sub(idle));
    }
}

static QUEUES: LazyLock<RunQueues<Here>> = LazyLock::new(|| {
    let rests = (0..MAX_SCHEDULERS).map(|_| Resting::new()).collect();
    RunQueues::new(MAX_SCHEDULERS, Here { rests })
});
static DIRTY_IO: LazyLock<Dirty> = LazyLock::new(Dirty::new);
static DIRTY_CPU: LazyLock<Dirty> = LazyLock::new(Dirty::new);

/// What happens all the time is counted by each worker for itself, on cache lines of its own.
#[repr(align(128))]
struct Counts {
    reductions: AtomicU64,
    switches: AtomicU64,
    spawned: AtomicU64,
}

/// By worker; the last is that of all other threads, which add to it atomically.
static COUNTS: [Counts; MAX_SCHEDULERS + 1] = [const {
    Counts {
        reductions: AtomicU64::new(0),
        switches: AtomicU64::new(0),
        spawned: AtomicU64::new(0),
    }
}; MAX_SCHEDULERS + 1];

#[inline]
fn add(of: impl Fn(&Counts) -> &AtomicU64, n: u64) {
    match current() {
        0 => {
            of(&COUNTS[MAX_SCHEDULERS]).fetch_add(n, Ordering::Relaxed);
        }
        me => {
            let c = of(&COUNTS[me - 1]);
            c.store(c.load(Ordering::Relaxed) + n, Ordering::Relaxed);
        }
    }
}

fn sum(of: impl Fn(&Counts) -> &AtomicU64) -> u64 {
    let all = COUNTS[..count()].iter().chain(&COUNTS[MAX_SCHEDULERS..]);
    all.map(|c| of(c).load(Ordering::Relaxed)).sum()
}

/// Counts a process that begins to run.
#[inline]
pub fn count_switch() {
    add(|c| &c.switches, 1);
}

/// Counts a process that is made.
pub fn count_spawn() {
    add(|c| &c.spawned, 1);
}

/// Processes made so far.
pub fn spawned() -> u64 {
    sum(|c| &c.spawned)
}

/// Context switches so far.
pub fn context_switches() -> u64 {
    sum(|c| &c.switches)
}

thread_local! {
    /// This thread's worker plus one; 0 on other threads.
    static ME: Cell<usize> = const { Cell::new(0) };
    /// See [`running_priority`].
    static RUNS: Cell<Priority> = const { Cell::new(Priority::Low) };
    /// The process that this thread runs has made others since its time slice began.
    static MADE: Cell<bool> = const { Cell::new(false) };
}

/// Words of a heap that is large in the sense of [`enqueue_used`].
const LARGE_HEAP_WORDS: usize = 4096;

/// Counts the reductions of a process that has ended.
pub fn count_exit(_reductions: u64) {}

/// Counts reductions used in a time slice.
#[inline]
pub fn count_reductions(n: u64) {
    add(|c| &c.reductions, n);
}

/// Reductions so far in the whole runtime.
pub fn reductions() -> u64 {
    sum(|c| &c.reductions)
}

/// Schedulers that exist.
pub fn count() -> usize {
    QUEUES.count()
}

/// Schedulers that run processes.
pub fn online() -> usize {
    QUEUES.online()
}

/// Number of the scheduler that this thread is, from 1; 0 for other threads.
pub fn current() -> usize {
    ME.with(|m| m.get())
}

/// Processes in each run queue.
pub fn queue_lengths() -> Vec<usize> {
    QUEUES.lengths()
}

/// Processes waiting for a thread of the dirty pools: (processor, input and output).
pub fn dirty_lengths() -> (usize, usize) {
    (DIRTY_CPU.pool.len(), DIRTY_IO.pool.len())
}

/// Of each scheduler: whether it runs a process.
pub fn working() -> Vec<bool> {
    (0..count()).map(|i| !QUEUES.is_idle(i)).collect()
}

/// Of each scheduler: nanoseconds for which it had nothing to do.
pub fn idle_nanoseconds() -> Vec<u64> {
    let rests = &QUEUES.hooks.rests[..count()];
    rests.iter().map(|r| r.nanoseconds()).collect()
}

/// Of the dirty pools (processor, input and output): threads that are at work, and nanoseconds of work of all threads.
pub fn dirty_work() -> [(usize, u64); 2] {
    let now = crate::clock::elapsed().max(0) as u64;
    [&*DIRTY_CPU, &*DIRTY_IO].map(|p| {
        let busy = p.busy.load(Ordering::Relaxed);
        // What is under way counts as far as it has come.
        let under_way = (busy as u64 * now).saturating_sub(p.started.load(Ordering::Relaxed));
        (busy, p.worked.load(Ordering::Relaxed) + under_way)
    })
}

/// Cells of processes that run on one scheduler only, with its number.
static BOUND: Mutex<Option<HashMap<u32, usize>>> = Mutex::new(None);
static ANY_BOUND: AtomicUsize = AtomicUsize::new(0);

/// Has a process that the caller owns run on that scheduler only from its next time slice on (0: on any); what was set
/// before.
pub fn bind(p: *mut Process, scheduler: usize) -> usize {
    if scheduler == 0 && ANY_BOUND.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let cell = table().index(p);
    let mut b = BOUND.lock().unwrap_or_else(|e| e.into_inner());
    let all = b.get_or_insert_default();
    let before = match scheduler {
        0 => all.remove(&cell),
        n => all.insert(cell, n),
    };
    ANY_BOUND.store(all.len(), Ordering::Relaxed);
    before.unwrap_or(0)
}

/// As [`bind`], and until the process ends: its cell may be another's then.
///
/// # Safety
/// The caller owns the process.
pub unsafe fn bind_until_exit(p: *mut Process, scheduler: usize) -> usize {
    let before = bind(p, scheduler);
    if before == 0 && scheduler != 0 {
        let at = p as usize;
        let undo = Box::new(move || {
            bind(at as *mut Process, 0);
        });
        // SAFETY: the caller owns the process.
        unsafe { (*p).ext_mut().on_exit.push(undo) };
    }
    before
}

/// The scheduler that a process is bound to; 0 if to none.
#[inline]
fn bound(cell: u32) -> usize {
    if ANY_BOUND.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    bound_among(cell)
}

#[cold]
fn bound_among(cell: u32) -> usize {
    let b = BOUND.lock().unwrap_or_else(|e| e.into_inner());
    b.as_ref()
        .and_then(|all| all.get(&cell).copied())
        .unwrap_or(0)
}

/// A process that waits in a run queue for its turn comes there at a higher priority, once, to do what signals ask of it.
pub fn raise(p: *mut Process, prio: Priority) {
    let cell = table().index(p);
    QUEUES.raise(cell, prio, || {
        // SAFETY: cells are never unmapped; the state word is an atomic.
        unsafe { (*table().cell(cell)).state.set(RAISED) }
    });
}

/// Puts a process that was raised, whose `QUEUED` bit the caller has set, back into this scheduler's run queue.
fn enqueue_back(p: *mut Process, prio: Priority) {
    QUEUES.put_back(table().index(p), prio, current());
}

/// The priority of the process that this thread runs; the lowest where it runs none.
pub fn running_priority() -> Priority {
    RUNS.with(|r| r.get())
}

/// This thread runs a process of that priority.
#[inline]
pub(super) fn set_running_priority(p: Priority) {
    RUNS.with(|r| r.set(p));
    MADE.with(|m| m.set(false));
}

/// Puts a process that was woken, whose `QUEUED` bit the caller has set, into a run queue.
pub fn enqueue(p: *mut Process, prio: Priority) {
    put(p, prio, Comes::Woken);
}

/// As [`enqueue`], for a process that has just been made.
pub fn enqueue_new(p: *mut Process, prio: Priority) {
    MADE.with(|m| m.set(true));
    put(p, prio, Comes::New);
}

/// As [`enqueue`], for a process that has used up its time slice. One that has made others goes behind these, so that they
/// don't become more and more while it has the turns of those that only compute.
fn enqueue_last(p: *mut Process, prio: Priority) {
    let comes = match MADE.with(|m| m.take()) {
        true => Comes::New,
        false => Comes::Spent,
    };
    put(p, prio, comes);
}

/// As [`enqueue_last`], for a process that has used up its time slice, which this scheduler has run. One that has a large
/// heap has several slices in a turn: between two of them hundreds of others, such as the requests that a server works on, would
/// displace the heap from the processor's caches, and all of them would have their heaps at the same time. Those that are
/// woken meanwhile don't wait for it, and in the long run it gets no more than others do: see [`queues`].
pub(super) fn enqueue_used(p: *mut Process, prio: Priority, heap_words: usize) {
    let (me, cell) = (current(), table().index(p));
    let made = MADE.with(|m| m.get());
    let large = heap_words > LARGE_HEAP_WORDS && prio == Priority::Normal;
    if !large || made || !QUEUES.took_used(me) || QUEUES.hooks.bound(cell) != 0 {
        return enqueue_last(p, prio);
    }
    // SAFETY: cells are never unmapped; the state word is an atomic. Until it is queued the process is this thread's.
    let (own, more) = unsafe {
        let own = (*p).state.load() & OWN_THREAD != 0;
        (own, (*p).count_turn(queues::TURN_SLICES))
    };
    match more && !own {
        true => QUEUES.go_on(cell, me),
        false => put(p, prio, Comes::Owing),
    }
}

fn put(p: *mut Process, prio: Priority, comes: Comes) {
    // SAFETY: cells are never unmapped; the state word is an atomic.
    if unsafe { (*p).state.load() } & OWN_THREAD != 0 {
        return own::ring(table().index(p));
    }
    QUEUES.put(table().index(p), prio, comes, current());
}

/// Times that schedulers have compared their queues.
pub fn balances() -> u64 {
    QUEUES.balances() as u64
}

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Has schedulers and dirty threads run no process any more, and waits for that, but not longer than `limit`: the
/// emulator is about to end. The calling thread may be one of them.
pub fn stop(limit: std::time::Duration) {
    STOPPED.store(true, Ordering::SeqCst);
    let started = std::time::Instant::now();
    let me = current();
    let works = |i: usize| i + 1 != me && !QUEUES.is_idle(i);
    while (0..count()).any(works) && started.elapsed() < limit {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Where threads end up that are to run nothing any more.
fn rest_if_stopped() {
    if STOPPED.load(Ordering::SeqCst) {
        loop {
            std::thread::park();
        }
    }
}

/// Reductions after which a worker looks whether timers are due, and what it counts for taking a process.
const REDUCTIONS_PER_POLL: i64 = run::SLICE;
const REDUCTIONS_PER_PICK: i64 = 100;

/// Looks for work, of about a microsecond each, before a worker sleeps: to sleep and to be woken costs both sides more than
/// some of these, and processes that end soon leave their makers' workers idle all the time.
const LOOKS: u32 = 12;

/// Looks, in vain, at the only process of another worker before it is left to that.
const ROUNDS: u32 = 4;

/// The next process for worker `i`; sleeps until there is one. `used`: reductions of this worker since it looked at
/// timers, which is brought up to date.
fn next_or_park(i: usize, used: &mut i64) -> u32 {
    let q = &*QUEUES;
    *used += REDUCTIONS_PER_PICK;
    let mut rounds = ROUNDS;
    let mut rested = false;
    let cell = loop {
        if STOPPED.load(Ordering::Relaxed) {
            q.retire(i);
            rest_if_stopped();
        }
        if *used >= REDUCTIONS_PER_POLL {
            *used = 0;
            crate::timer::poll();
        }
        if let Some(c) = q.next(i, None) {
            break c;
        }
        // A moment of looking costs less than to sleep and be woken.
        let mut glanced = None;
        if i < q.online() {
            let mut found = None;
            for _ in 0..LOOKS {
                glanced = q.glance(i);
                for _ in 0..64 {
                    std::hint::spin_loop();
                }
                found = q.next(i, glanced);
                if found.is_some() || STOPPED.load(Ordering::Relaxed) {
                    break;
                }
            }
            if let Some(c) = found {
                break c;
            }
            // What it has sent may have come by now.
            if poll::look()
                && let Some(c) = q.next(i, glanced)
            {
                break c;
            }
        }
        *used = REDUCTIONS_PER_POLL;
        rested = true;
        match q.rest(i, glanced, rounds > 0) {
            Rest::Found(c) if !STOPPED.load(Ordering::Relaxed) => break c,
            Rest::Again => rounds -= 1,
            _ => rounds = ROUNDS,
        }
    };
    if rested {
        q.pass_on(i);
    }
    cell
}

/// Queues a process, whose `QUEUED` bit is set, for a thread that may block (or compute long).
pub fn enqueue_dirty(p: *mut Process, prio: Priority, io: bool) {
    let dirty = if io { &DIRTY_IO } else { &DIRTY_CPU };
    dirty.pool.put(table().index(p), prio);
}

fn stack_size() -> usize {
    1 << 20
}

/// Starts `n` workers and the dirty pools.
pub fn start(n: usize, dirty_cpu: usize, dirty_io: usize) {
    set_online(n);
    for i in 0..dirty_cpu.max(1) {
        start_dirty(&DIRTY_CPU, msacc::Kind::DirtyCpu, format!("dcpu{}", i + 1));
    }
    for i in 0..dirty_io.max(1) {
        start_dirty(&DIRTY_IO, msacc::Kind::DirtyIo, format!("dio{}", i + 1));
    }
    upkeep::start();
}

/// Dirty threads: (processor, input and output).
pub fn dirty_counts() -> (usize, usize) {
    (DIRTY_CPU.pool.threads(), DIRTY_IO.pool.threads())
}

/// Threads of the dirty processor pool that take processes.
pub fn dirty_cpu_online() -> usize {
    DIRTY_CPU.pool.online()
}

/// Has so many threads of the dirty processor pool take processes; how many did before.
pub fn set_dirty_cpu_online(n: usize) -> usize {
    let before = dirty_cpu_online();
    DIRTY_CPU.pool.set_online(n);
    before
}

fn start_dirty(d: &'static Dirty, kind: msacc::Kind, name: String) {
    let index = d.pool.join();
    let id = MAX_SCHEDULERS + index;
    let made = std::thread::Builder::new()
        .name(name)
        .stack_size(stack_size())
        .spawn(move || {
            msacc::begin_thread(kind, index + 1);
            let mut cx: Option<Box<crate::cx::Cx>> = None;
            loop {
                let cell = d.pool.take(index, msacc::asleep);
                let cx = cx.get_or_insert_with(|| {
                    let mut c = crate::cx::Cx::boxed(id);
                    c.dirty = true;
                    c
                });
                let turn = alone::turn(msacc::asleep);
                rest_if_stopped();
                let start = crate::clock::elapsed().max(0) as u64;
                d.started.fetch_add(start, Ordering::Relaxed);
                d.busy.fetch_add(1, Ordering::Relaxed);
                // SAFETY: the cell was in the queue of this pool.
                unsafe { run::dirty(cx, table().cell(cell)) };
                d.busy.fetch_sub(1, Ordering::Relaxed);
                d.started.fetch_sub(start, Ordering::Relaxed);
                let took = (crate::clock::elapsed() as u64).saturating_sub(start);
                d.worked.fetch_add(took, Ordering::Relaxed);
                drop(turn);
            }
        });
    if made.is_err() {
        d.pool.leave();
    }
}

/// Makes `n` workers run processes, starting threads if there are too few; the others go to sleep when they are done
/// with the process they run, and what is in their queues is taken by the rest. The number that was online before.
pub fn set_online(n: usize) -> usize {
    QUEUES.set_online(n, |i| {
        std::thread::Builder::new()
            .name(format!("sched{}", i + 1))
            .stack_size(stack_size())
            .spawn(move || {
                ME.with(|m| m.set(i + 1));
                msacc::begin_thread(msacc::Kind::Scheduler, i + 1);
                crate::signal::blocks::keep();
                purlin_term::counts::take_share();
                let mut cx = crate::cx::Cx::boxed(i);
                let mut used = 0;
                loop {
                    let cell = next_or_park(i, &mut used);
                    let _turn = alone::turn(|on| {
                        let rests = &QUEUES.hooks.rests[i];
                        if on { rests.begin() } else { rests.end() }
                    });
                    // SAFETY: the cell was in a run queue.
                    used += unsafe { run::normal(&mut cx, table().cell(cell)) };
                }
            })
            .is_ok()
    })
}
