//! Scheduling: which process runs where and when. Each scheduler has its own run queue and steals
//! from others when it is empty. Beside the schedulers there are pools of threads for natives that
//! block or compute for long. [`crate::threads`] has the loops of the threads.
//!
//! The protocols are in [`queues`], [`pool`] and [`parker`], which know nothing of processes; this
//! module connects them to clocks and cells. A process that is `QUEUED` is in exactly one queue:
//! the thread that sets the bit puts it there.
//!
//! # Orderings
//! - [`STOPPED`] and the idle flags of schedulers form a store-buffering pair. [`stop`] stores the
//!   former and loads the latter, all `SeqCst`. A scheduler that ends its rest clears its flag,
//!   passes the `SeqCst` fence of [`Parker::unpark`] in [`Hooks::works`], and then loads `STOPPED`.
//!   So [`stop`] waits for the scheduler, or the scheduler runs nothing more.
//! - [`COUNTS`], [`Resting`] and [`Dirty`] are statistics: all `Relaxed`. A scheduler is the only
//!   writer of its own counters, so load and store suffice there. The running processes in them are
//!   hints for crash dumps.
//! - [`ANY_BOUND`] and the processors in [`Here`] are `Relaxed` hints. The owner of a process binds
//!   it. A thread that queues the process later, or takes it from a queue, has synchronised with
//!   the owner through the state word or the queue's lock, and so sees the binding.

pub mod binding;
pub mod later;
pub mod multi_scheduling;
pub(crate) mod order;
#[cfg(test)]
mod order_tests;
pub mod own_threads;
pub mod parker;
pub mod pool;
#[cfg(test)]
mod pool_tests;
pub(crate) mod processor;
pub mod queues;
#[cfg(test)]
mod queues_tests;
#[cfg(test)]
mod slot_tests;

use crate::clock;
use crate::events;
use crate::msacc;
use crate::poll;
use crate::process::state::Priority;
use crate::process::{Process, table};
use crate::sync::Mutex;
use parker::Parker;
use pool::Pool;
use purlin_isa::cache_lines::TwoLines;
use purlin_term::Term;
use queues::{Cause, Hooks, RunQueues};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Entry functions of the threads of each kind.
pub(crate) struct Threads {
    pub(crate) scheduler: fn(usize),
    pub(crate) own: fn(u32, &own_threads::Thread),
}

/// See [`Threads`]. Empty until the schedulers are started.
pub(crate) static THREADS: OnceLock<Threads> = OnceLock::new();

/// Wakes the upkeep thread, which sleeps while the runtime is idle.
pub(crate) static UPKEEP: Parker = Parker::new();

/// Wakes the memory watch, which sleeps while the runtime is idle.
pub(crate) static WATCH: Parker = Parker::new();

/// Maximum number of schedulers.
pub const MAX_SCHEDULERS: usize = purlin_options::MAX_SCHEDULERS as usize;

/// Maximum number of threads of a dirty pool.
const MAX_DIRTY: usize = purlin_options::MAX_SCHEDULERS as usize;

/// The time that a thread has been idle.
pub(crate) struct Resting {
    /// Nanoseconds, without the current rest.
    total: AtomicU64,
    /// Start of the current rest, as [`crate::clock::elapsed`]; 0 while it works.
    since: AtomicU64,
}

impl Resting {
    const fn new() -> Resting {
        Resting {
            total: AtomicU64::new(0),
            since: AtomicU64::new(0),
        }
    }
    #[inline]
    pub(crate) fn begin(&self) {
        let now = crate::clock::elapsed().max(1) as u64;
        self.since.store(now, Ordering::Relaxed);
    }
    #[inline]
    pub(crate) fn end(&self) {
        let now = crate::clock::elapsed().max(1) as u64;
        let since = self.since.swap(0, Ordering::Relaxed);
        if since != 0 {
            self.total
                .fetch_add(now.saturating_sub(since), Ordering::Relaxed);
        }
    }
    #[inline]
    fn nanoseconds(&self) -> u64 {
        let now = crate::clock::elapsed().max(1) as u64;
        let total = self.total.load(Ordering::Relaxed);
        match self.since.load(Ordering::Relaxed) {
            0 => total,
            since => total + now.saturating_sub(since),
        }
    }
}

/// A pool of dirty threads, and its load.
pub(crate) struct Dirty {
    pub(crate) pool: Pool,
    /// Number of threads that run a process, and total nanoseconds of work.
    pub(crate) busy: AtomicUsize,
    pub(crate) worked: AtomicU64,
    /// Sum of the start times of the threads that work, in nanoseconds.
    pub(crate) started: AtomicU64,
    /// By thread, see [`Counts::runs`].
    runs: &'static [AtomicU64; MAX_DIRTY],
}

impl Dirty {
    const fn new(runs: &'static [AtomicU64; MAX_DIRTY]) -> Dirty {
        Dirty {
            pool: Pool::new(),
            busy: AtomicUsize::new(0),
            worked: AtomicU64::new(0),
            started: AtomicU64::new(0),
            runs,
        }
    }
    /// Records the process that thread `i` runs, or that it runs none.
    #[inline]
    pub(crate) fn set_running(&self, i: usize, pid: Option<Term>) {
        if let Some(r) = self.runs.get(i) {
            r.store(pid_word(pid), Ordering::Relaxed);
        }
    }
}

/// The services that the run queues need from the runtime.
pub(crate) struct Here;

/// By scheduler.
pub(crate) static RESTS: [Resting; MAX_SCHEDULERS] = [const { Resting::new() }; MAX_SCHEDULERS];
/// By scheduler: the processor that its thread was last seen on since it began to work, from 1; 0
/// while it rests.
static PLACES: [AtomicUsize; MAX_SCHEDULERS] = [const { AtomicUsize::new(0) }; MAX_SCHEDULERS];

impl Here {
    /// Records what the scheduler does that polls between processes, if there is one other than
    /// `i`: scheduler `i` is about to look for work before it rests.
    #[inline]
    pub(crate) fn watch_polling(&self, i: usize) {
        let other = poll::polling_scheduler(i + 1);
        let picks = if other == 0 {
            0
        } else {
            QUEUES.picks(other - 1)
        };
        WATCHED.set((other, picks));
    }
    /// Whether scheduler `k`, from 1, has looked for a process since [`Here::watch_polling`].
    fn is_at_new(&self, k: usize) -> bool {
        let (other, picks) = WATCHED.get();
        other != k || QUEUES.picks(k - 1) != picks
    }
    /// Returns the processors on which schedulers other than `i` work.
    fn taken(&self, i: usize) -> impl Iterator<Item = usize> {
        let others = PLACES[..count()].iter().enumerate();
        others
            .filter(move |&(k, _)| k != i)
            .filter_map(|(_, p)| p.load(Ordering::Relaxed).checked_sub(1))
    }
}

impl Hooks for Here {
    #[inline]
    fn bound(&self, cell: u32) -> usize {
        bound(cell)
    }
    #[inline]
    fn rests(&self, i: usize, idle: usize) {
        RESTS[i].begin();
        PLACES[i].store(0, Ordering::Relaxed);
        events::scheduler_is(i + 1, false, MAX_SCHEDULERS.saturating_sub(idle));
    }
    #[inline]
    fn sleeps(&self, on: bool) {
        msacc::asleep(on);
    }
    #[inline]
    fn works(&self, i: usize, idle: usize) {
        RESTS[i].end();
        crate::waits::rested();
        crate::profile::rested();
        UPKEEP.unpark();
        WATCH.unpark();
        events::scheduler_is(i + 1, true, MAX_SCHEDULERS.saturating_sub(idle));
    }
    fn wakes(&self) {
        if let Some(me) = current().checked_sub(1) {
            let at = processor::current().map_or(0, |p| p + 1);
            PLACES[me].store(at, Ordering::Relaxed);
        }
    }
    fn woken(&self, i: usize) {
        let mut at = processor::current();
        if at.is_some_and(|p| self.taken(i).any(|t| t == p)) {
            at = processor::leave(self.taken(i)).or(at);
        }
        PLACES[i].store(at.map_or(0, |p| p + 1), Ordering::Relaxed);
    }
    type Found = poll::Found;
    #[inline]
    fn may_wait_outside(&self, i: usize, awake: impl Fn(usize) -> bool) -> bool {
        poll::take_place(i + 1, |k| awake(k - 1) && self.is_at_new(k))
    }
    #[inline]
    fn wait_outside(&self) -> poll::Found {
        poll::wait_beside()
    }
    #[inline]
    fn ring(&self) {
        poll::ring();
    }
}

pub(crate) static QUEUES: RunQueues<Here> = RunQueues::new(MAX_SCHEDULERS, Here);
/// See [`Dirty::runs`].
static DIRTY_RUNS: [[AtomicU64; MAX_DIRTY]; 2] =
    [const { [const { AtomicU64::new(0) }; MAX_DIRTY] }; 2];
pub(crate) static DIRTY_IO: Dirty = Dirty::new(&DIRTY_RUNS[0]);
pub(crate) static DIRTY_CPU: Dirty = Dirty::new(&DIRTY_RUNS[1]);

/// Counters of frequent events. Each scheduler has its own, on cache lines of its own.
struct Counts {
    _lines: TwoLines,
    reductions: AtomicU64,
    switches: AtomicU64,
    spawned: AtomicU64,
    /// The running process, as [`pid_word`].
    runs: AtomicU64,
}

/// Returns a word for a process; 0 for none.
#[inline]
fn pid_word(pid: Option<Term>) -> u64 {
    pid.map_or(0, |p| u64::from(p.pid_data()) + 1)
}

fn pid_of(word: &AtomicU64) -> Option<Term> {
    let word = word.load(Ordering::Relaxed);
    word.checked_sub(1).map(|data| Term::pid(data as u32))
}

/// Returns the process that each scheduler runs.
pub fn running() -> Vec<Option<Term>> {
    COUNTS[..count()].iter().map(|c| pid_of(&c.runs)).collect()
}

/// Returns for each scheduler the process that it runs, and the number of times that it has looked
/// for one. If both stay the same, so does the time slice.
pub fn turns() -> Vec<(Option<Term>, usize)> {
    let counts = COUNTS[..count()].iter().enumerate();
    counts
        .map(|(i, c)| (pid_of(&c.runs), QUEUES.picks(i)))
        .collect()
}

/// Returns the process that each thread of the dirty pools runs: (processor, input and output).
pub fn dirty_running() -> (Vec<Option<Term>>, Vec<Option<Term>>) {
    let of = |d: &Dirty| {
        let threads = d.runs.iter().take(d.pool.threads());
        threads.map(pid_of).collect()
    };
    (of(&DIRTY_CPU), of(&DIRTY_IO))
}

/// By scheduler. The last entry belongs to all other threads, which update it atomically.
static COUNTS: [Counts; MAX_SCHEDULERS + 1] = [const {
    Counts {
        _lines: TwoLines,
        reductions: AtomicU64::new(0),
        switches: AtomicU64::new(0),
        spawned: AtomicU64::new(0),
        runs: AtomicU64::new(0),
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

#[inline]
fn sum(of: impl Fn(&Counts) -> &AtomicU64) -> u64 {
    let all = COUNTS[..count()].iter().chain(&COUNTS[MAX_SCHEDULERS..]);
    all.map(|c| of(c).load(Ordering::Relaxed)).sum()
}

/// Counts a context switch.
#[inline]
pub(crate) fn count_switch() {
    add(|c| &c.switches, 1);
}

/// Counts a spawned process.
#[inline]
pub(crate) fn count_spawn() {
    add(|c| &c.spawned, 1);
}

/// Number of spawned processes so far.
#[inline]
pub fn spawned() -> u64 {
    sum(|c| &c.spawned)
}

/// Number of context switches so far.
#[inline]
pub fn context_switches() -> u64 {
    sum(|c| &c.switches)
}

thread_local! {
    /// Scheduler of this thread plus one; 0 on other threads.
    static ME: Cell<usize> = const { Cell::new(0) };
    /// See [`running_priority`].
    static RUNS: Cell<Priority> = const { Cell::new(Priority::Low) };
    /// Dirty pool of this thread (true: for input and output), if it belongs to one.
    pub(crate) static POOL: Cell<Option<bool>> = const { Cell::new(None) };
    /// Whether the running process has spawned others in its time slice.
    static MADE: Cell<bool> = const { Cell::new(false) };
    /// Start of the running time slice, if it is timed or its process had used up one before.
    static BEGAN: Cell<i64> = const { Cell::new(0) };
    /// The process in a long turn on this thread, and how long it has run in it.
    static TURN: Cell<(u32, i64)> = const { Cell::new((0, 0)) };
    /// The polling scheduler that this one saw before it began to look for work, from 1 (0: none),
    /// and how often that had looked for a process.
    static WATCHED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// See [`in_order`].
    static IN_ORDER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Words from which on a heap is large, for [`enqueue_used`].
const LARGE_HEAP_WORDS: usize = 4096;
/// Nanoseconds after which a long turn ends, however few slices it had. A process that accesses a
/// large heap at random takes several times as long per reduction as one that accesses it in order.
/// With the same number of slices each, it would get most of the scheduler.
const TURN_NANOSECONDS: i64 = 1_000_000;

/// Counts reductions used in a time slice.
#[inline]
pub(crate) fn count_reductions(n: u64) {
    add(|c| &c.reductions, n);
}

/// Reductions of the whole runtime so far.
#[inline]
pub fn reductions() -> u64 {
    sum(|c| &c.reductions)
}

/// Number of schedulers that exist.
#[inline]
pub fn count() -> usize {
    QUEUES.count()
}

/// Number of schedulers that run processes.
#[inline]
pub fn online() -> usize {
    QUEUES.online()
}

/// Makes this thread that scheduler (from 1).
pub(crate) fn become_scheduler(number: usize) {
    ME.with(|m| m.set(number));
}

/// Returns the number of the scheduler that this thread is, from 1; 0 on other threads.
#[inline]
pub fn current() -> usize {
    ME.with(|m| m.get())
}

/// Returns the dirty pool that this thread belongs to (true: for input and output), if any.
#[inline]
pub fn dirty_kind() -> Option<bool> {
    POOL.get()
}

/// Returns the length of each run queue.
#[inline]
pub fn queue_lengths() -> Vec<usize> {
    QUEUES.lengths()
}

/// Whether a process waits in a run queue.
#[inline]
pub fn has_waiting() -> bool {
    QUEUES.has_waiting()
}

/// Returns the numbers of processes that wait for the dirty pools: (processor, input and output).
#[inline]
pub fn dirty_lengths() -> (usize, usize) {
    (DIRTY_CPU.pool.len(), DIRTY_IO.pool.len())
}

/// Returns, for each scheduler, whether it runs a process.
#[inline]
pub fn working() -> Vec<bool> {
    (0..count()).map(|i| !QUEUES.is_idle(i)).collect()
}

/// Returns the nanoseconds that each scheduler has been idle.
#[inline]
pub fn idle_nanoseconds() -> Vec<u64> {
    RESTS[..count()].iter().map(|r| r.nanoseconds()).collect()
}

/// Returns, for each dirty pool (processor; input and output), the number of working threads and
/// the nanoseconds of work of all threads.
#[inline]
pub fn dirty_work() -> [(usize, u64); 2] {
    let now = crate::clock::elapsed().max(0) as u64;
    [&DIRTY_CPU, &DIRTY_IO].map(|p| {
        let busy = p.busy.load(Ordering::Relaxed);
        // Slices in progress count for the time so far.
        let under_way = (busy as u64 * now).saturating_sub(p.started.load(Ordering::Relaxed));
        (busy, p.worked.load(Ordering::Relaxed) + under_way)
    })
}

/// Cells of processes that are bound to a scheduler, with its number.
static BOUND: Mutex<Option<HashMap<u32, usize>>> = Mutex::new(None);
static ANY_BOUND: AtomicUsize = AtomicUsize::new(0);

/// Binds a process that the caller owns to a scheduler (0: to none) from its next time slice on.
/// Returns the previous binding. The exit of the process must undo it, since the cell may get
/// another process.
pub fn bind(p: *mut Process, scheduler: usize) -> usize {
    if scheduler == 0 && ANY_BOUND.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let cell = table().index(p);
    let mut b = BOUND.lock();
    let all = b.get_or_insert_default();
    let before = match scheduler {
        0 => all.remove(&cell),
        n => all.insert(cell, n),
    };
    ANY_BOUND.store(all.len(), Ordering::Relaxed);
    before.unwrap_or(0)
}

/// Returns the scheduler that a process is bound to; 0 for none.
#[inline]
fn bound(cell: u32) -> usize {
    if ANY_BOUND.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    bound_among(cell)
}

#[cold]
fn bound_among(cell: u32) -> usize {
    let b = BOUND.lock();
    b.as_ref()
        .and_then(|all| all.get(&cell).copied())
        .unwrap_or(0)
}

/// Moves a queued process to a higher priority once, so that it handles signals.
#[inline]
pub fn raise(p: *mut Process, prio: Priority) {
    let cell = table().index(p);
    QUEUES.raise(cell, prio, || {
        // SAFETY: cells are never unmapped; the state word is an atomic.
        unsafe { (*table().cell(cell)).state.raise() }
    });
}

/// Puts a raised process, whose `QUEUED` bit the caller has set, back into this scheduler's run
/// queue.
#[inline]
pub(crate) fn enqueue_back(p: *mut Process, prio: Priority) {
    QUEUES.put_back(table().index(p), prio, current());
}

/// Returns the priority of the process that this thread runs; the lowest if it runs none.
#[inline]
pub fn running_priority() -> Priority {
    RUNS.with(|r| r.get())
}

/// Records the priority of the process that this thread runs.
#[inline]
pub(crate) fn set_running_priority(p: Priority) {
    RUNS.with(|r| r.set(p));
    MADE.with(|m| m.set(false));
}

/// Marks the running process to yield before its time slice is used up. It goes behind those that
/// wait for their turn, and before those that have used up theirs.
#[inline]
pub fn mark_early_yield() {
    MADE.with(|m| m.set(true));
}

/// Queues a woken process, whose `QUEUED` bit the caller has set.
#[inline]
pub(crate) fn enqueue(p: *mut Process, prio: Priority) {
    put(p, prio, Cause::Woken);
}

/// As [`enqueue`], for a new process.
#[inline]
pub(crate) fn enqueue_new(p: *mut Process, prio: Priority) {
    MADE.with(|m| m.set(true));
    put(p, prio, Cause::New);
}

/// As [`enqueue`], for a process that has used up its time slice. One that has spawned others goes
/// behind them: otherwise their number would grow while it has the turns of processes that only
/// compute.
#[inline]
pub(crate) fn enqueue_last(p: *mut Process, prio: Priority) {
    let cause = match MADE.with(|m| m.take()) {
        true => Cause::New,
        false => Cause::Spent,
    };
    put(p, prio, cause);
}

/// As [`enqueue_last`], for a process that this scheduler has run. A process with a large heap has
/// several slices in a turn: otherwise hundreds of others, such as the requests that a server works
/// on, would displace its heap from the processor's caches between two of them, and all of them
/// would have large heaps at the same time. Woken processes don't wait for it meanwhile, and in the
/// long run it gets no more than others do; see [`order`].
pub(crate) fn enqueue_used(p: *mut Process, prio: Priority, heap_words: usize) {
    let (me, cell) = (current(), table().index(p));
    if prio != Priority::Normal || MADE.with(|m| m.get()) {
        return enqueue_last(p, prio);
    }
    // SAFETY: cells are never unmapped; the state word is an atomic. The process is this thread's
    // until it is queued.
    let (own, (more, long)) = unsafe {
        let own = (*p).state.load().has_own_thread();
        (own, (*p).count_turn(queues::TURN_SLICES))
    };
    let large = heap_words > LARGE_HEAP_WORDS;
    let turns = large && !own && QUEUES.took_used(me) && QUEUES.hooks.bound(cell) == 0;
    if !turns {
        return put(p, prio, if long { Cause::Long } else { Cause::Spent });
    }
    let before = TURN.take();
    let ran = crate::clock::elapsed() - BEGAN.get() + if before.0 == cell { before.1 } else { 0 };
    if more && ran < TURN_NANOSECONDS {
        TURN.set((cell, ran));
        return QUEUES.go_on(cell, me);
    }
    // SAFETY: the process is this thread's until it is queued.
    unsafe { (*p).had_turn(queues::TURN_SLICES) };
    put(p, prio, Cause::Owing);
}

/// Starts the time slice of the process `pid`, which scheduler `i` has taken.
#[inline]
pub(crate) fn begin_slice(i: usize, pid: Term) {
    COUNTS[i].runs.store(pid_word(Some(pid)), Ordering::Relaxed);
    if QUEUES.took_used(i + 1) || QUEUES.is_timed(i) {
        BEGAN.set(crate::clock::elapsed());
    }
}

/// Ends that time slice, which has used `reductions`.
#[inline]
pub(crate) fn end_slice(i: usize, reductions: i64) {
    COUNTS[i].runs.store(0, Ordering::Relaxed);
    let took = match QUEUES.is_timed(i) {
        true => crate::clock::elapsed() - BEGAN.get(),
        false => 0,
    };
    QUEUES.ran(i, reductions, took);
}

/// Runs `f`. The processes that it wakes run in order, and behind those that an earlier call woke,
/// which returned `home` (0 for none). Returns the number for the next call.
pub fn in_order<R>(home: usize, f: impl FnOnce() -> R) -> (R, usize) {
    let before = IN_ORDER.replace(Some(home));
    let r = f();
    let home = IN_ORDER.replace(before).unwrap_or(home);
    (r, home)
}

/// Lets others steal the ordered processes behind the running one, which will take long; see
/// [`in_order`].
#[inline]
pub fn let_others_steal() {
    QUEUES.let_others_steal(current());
}

#[inline]
fn put(p: *mut Process, prio: Priority, cause: Cause) {
    // SAFETY: cells are never unmapped; the state word is an atomic.
    if unsafe { (*p).state.load() }.has_own_thread() {
        return own_threads::ring(table().index(p));
    }
    let cell = table().index(p);
    // Processes with a share of the processor, of which there may be thousands, go behind others
    // of normal priority that were woken.
    let (prio, cause) = match crate::budgets::has_share(cell) {
        true => (prio.min(Priority::Normal), Cause::Long),
        false => (prio, cause),
    };
    crate::waits::queued(cell);
    match IN_ORDER.get() {
        None => QUEUES.put(cell, prio, cause, current()),
        Some(home) => {
            let home = QUEUES.put_in_order(cell, prio, cause, home, current());
            IN_ORDER.set(Some(home));
        }
    }
}

/// Lets others steal from schedulers that have run the same process since the last call; see
/// [`queues`].
pub(crate) fn rescue(seen: &mut Vec<usize>) {
    QUEUES.rescue(seen);
}

/// Number of balances so far.
#[inline]
pub fn balances() -> u64 {
    QUEUES.balances() as u64
}

pub(crate) static STOPPED: AtomicBool = AtomicBool::new(false);

/// Stops schedulers and dirty threads from running further processes, and waits until schedulers
/// run none, at most for `limit`: the emulator is about to end. The calling thread may be one of
/// them.
#[inline]
pub fn stop(limit: std::time::Duration) {
    STOPPED.store(true, Ordering::SeqCst);
    let until = clock::after(limit);
    let me = current();
    let works = |i: usize| i + 1 != me && !QUEUES.is_idle(i);
    while (0..count()).any(works) && clock::elapsed() < until {
        clock::pause(std::time::Duration::from_millis(1));
    }
}

/// Parks the thread for ever if threads are to run nothing any more.
#[inline]
pub(crate) fn rest_if_stopped() {
    if STOPPED.load(Ordering::SeqCst) {
        loop {
            std::thread::park();
        }
    }
}

#[inline]
fn dirty(io: bool) -> &'static Pool {
    if io { &DIRTY_IO.pool } else { &DIRTY_CPU.pool }
}

/// Queues a process, which its owner has given back by `requeue_dirty`, for a thread that may block
/// (or compute for long). A process with control signals goes to a run queue first.
#[inline]
pub(crate) fn enqueue_dirty(p: *mut Process, prio: Priority, io: bool) {
    crate::waits::queued_dirty(table().index(p));
    enqueue_dirty_back(p, prio, io);
}

/// As [`enqueue_dirty`], for a process that has waited there before.
pub(crate) fn enqueue_dirty_back(p: *mut Process, prio: Priority, io: bool) {
    // SAFETY: cells are never unmapped; the state word is an atomic.
    let state = unsafe { &(*p).state };
    if !dirty(io).put(table().index(p), prio, || state.must_leave_pool()) {
        state.raise();
        enqueue(p, prio);
    }
}

/// Makes a process that waits for a dirty thread handle a control signal on a scheduler.
#[cold]
pub(crate) fn take_from_pool(p: *mut Process, io: bool) {
    if dirty(io).take_out(table().index(p)) {
        // SAFETY: cells are never unmapped; the state word is an atomic.
        let state = unsafe { &(*p).state };
        state.raise();
        enqueue(p, state.priority());
    }
}

/// Gives up the place in a dirty pool of a process that has left it for a while, and which the
/// caller owns.
pub(crate) fn give_up_pool_place(p: *mut Process, io: bool) {
    dirty(io).forget(table().index(p));
}

/// Bytes of each thread's native stack.
#[inline]
pub(crate) fn stack_size() -> usize {
    1 << 20
}

/// Number of dirty threads: (processor, input and output).
#[inline]
pub fn dirty_counts() -> (usize, usize) {
    (DIRTY_CPU.pool.threads(), DIRTY_IO.pool.threads())
}

/// Number of threads of the dirty processor pool that take processes.
#[inline]
pub fn dirty_cpu_online() -> usize {
    DIRTY_CPU.pool.online()
}

/// Sets how many threads of the dirty processor pool take processes. Returns the previous number.
#[inline]
pub fn set_dirty_cpu_online(n: usize) -> usize {
    let before = dirty_cpu_online();
    DIRTY_CPU.pool.set_online(n);
    before
}

/// Brings `n` schedulers online, and starts threads if there are too few. The others go to sleep
/// after the process that they run, and the rest take what is in their queues. Returns the previous
/// number.
pub(crate) fn set_online(n: usize) -> usize {
    set_online_or(n, |_, _| ())
}

/// As [`set_online`]. Calls `refused` if a thread can't be made.
pub(crate) fn set_online_or(n: usize, refused: impl Fn(&str, &std::io::Error)) -> usize {
    purlin_native::bif::count_schedulers(n);
    QUEUES.set_online(n, |i| {
        // The thread that the emulator starts with is the scheduler.
        if crate::os::exploring::on() {
            return i == 0;
        }
        let name = format!("sched{}", i + 1);
        let made = std::thread::Builder::new()
            .name(name.clone())
            .stack_size(stack_size())
            .spawn(move || {
                if let Some(t) = THREADS.get() {
                    (t.scheduler)(i);
                }
            });
        if let Err(e) = &made {
            refused(&name, e);
        }
        made.is_ok()
    })
}
