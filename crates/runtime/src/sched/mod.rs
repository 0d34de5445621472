//! Schedulers: worker threads that run processes, each from a run queue of its own, stealing from others when it is
//! empty; and pools of threads for natives that block or compute long.
//!
//! # Who goes first
//! Among processes of normal priority those that were woken go before those that have used up a time slice (and those
//! that were just made, which queue behind their parents' other children); but after [`WOKEN_IN_A_ROW`] of them one of
//! the others has its turn. So a process that answers a message or a timer need not wait until each of a thousand busy
//! ones has had its slice, and none of these starves.
//!
//! # Invariants
//! * A process that is `QUEUED` is in exactly one run queue; whoever set the bit puts it there.
//! * A worker parks only after it has published that it is idle and then found every queue empty; whoever queues a
//!   process looks at the idle workers after that. So no process waits while a worker sleeps.

pub mod own;
pub mod run;
pub mod upkeep;
pub mod wheel;

use crate::msacc;
use crate::poll;
use crate::process::state::{OWN_THREAD, Priority};
use crate::process::{Process, table};
use crate::trace::profile;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, OnceLock};

/// Most schedulers.
pub const MAX_SCHEDULERS: usize = 1024;

/// Levels of a run queue: low, normal, high, max as in [`Priority`], then those of normal priority that were woken.
const LEVELS: usize = 5;
const WOKEN: usize = 4;
/// The order in which a worker without work takes from another's levels.
const STEAL_ORDER: [usize; LEVELS] = [
    Priority::Max as usize,
    Priority::High as usize,
    WOKEN,
    Priority::Normal as usize,
    Priority::Low as usize,
];

/// Woken processes that go before one that has used up its slice.
const WOKEN_IN_A_ROW: u32 = 16;

#[derive(Default)]
struct Queues {
    levels: [VecDeque<u32>; LEVELS],
    woken_in_a_row: u32,
    /// Times that normal processes went before waiting low ones.
    low_skipped: u32,
    len: usize,
}

/// Normal processes that go before a low one that waits.
const NORMAL_PER_LOW: u32 = 8;

impl Queues {
    fn push(&mut self, cell: u32, p: Priority, woken: bool) {
        let l = match p {
            Priority::Normal if woken => WOKEN,
            _ => p as usize,
        };
        self.levels[l].push_back(cell);
        self.len += 1;
    }
    /// Moves a process up, if it is here at a lower priority.
    fn raise(&mut self, cell: u32, to: Priority) -> bool {
        let lower = (0..to as usize).chain((to > Priority::Normal).then_some(WOKEN));
        for l in lower {
            if let Some(i) = self.levels[l].iter().position(|&c| c == cell) {
                self.levels[l].remove(i);
                self.levels[to as usize].push_back(cell);
                return true;
            }
        }
        false
    }
    fn pop_normal(&mut self) -> Option<u32> {
        if (self.woken_in_a_row < WOKEN_IN_A_ROW
            || self.levels[Priority::Normal as usize].is_empty())
            && let Some(c) = self.levels[WOKEN].pop_front()
        {
            self.woken_in_a_row += 1;
            return Some(c);
        }
        self.woken_in_a_row = 0;
        self.levels[Priority::Normal as usize].pop_front()
    }
    fn pop_level(&mut self, p: Priority) -> Option<u32> {
        match p {
            Priority::Normal => self.pop_normal(),
            _ => self.levels[p as usize].pop_front(),
        }
    }
    fn pop(&mut self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let l = |p: Priority| p as usize;
        let low_waits = !self.levels[l(Priority::Low)].is_empty();
        let low_first = low_waits && self.low_skipped >= NORMAL_PER_LOW;
        let order = if low_first {
            [
                Priority::Max,
                Priority::High,
                Priority::Low,
                Priority::Normal,
            ]
        } else {
            [
                Priority::Max,
                Priority::High,
                Priority::Normal,
                Priority::Low,
            ]
        };
        for p in order {
            if let Some(c) = self.pop_level(p) {
                match p {
                    Priority::Low => self.low_skipped = 0,
                    Priority::Normal if low_waits => self.low_skipped += 1,
                    _ => {}
                }
                self.len -= 1;
                return Some(c);
            }
        }
        None
    }
}

/// One worker, as others see it.
struct Worker {
    queue: Mutex<Queues>,
    /// Length of the queue, for those who look for work.
    len: AtomicUsize,
    parked: Mutex<bool>,
    unpark: Condvar,
    idle: AtomicBool,
    rest: Rest,
    /// Looks for a process, by this worker only.
    picks: AtomicUsize,
}

/// For how long a thread had nothing to do.
struct Rest {
    /// Nanoseconds, the current rest excepted.
    total: AtomicU64,
    /// When the current rest began, as [`crate::clock::elapsed`]; 0: it works.
    since: AtomicU64,
}

impl Rest {
    const fn new() -> Rest {
        Rest {
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

impl Worker {
    fn new() -> Worker {
        Worker {
            queue: Mutex::default(),
            len: AtomicUsize::new(0),
            parked: Mutex::new(false),
            unpark: Condvar::new(),
            idle: AtomicBool::new(false),
            picks: AtomicUsize::new(0),
            rest: Rest::new(),
        }
    }
    fn wake(&self) {
        let mut p = self.parked.lock().unwrap_or_else(|e| e.into_inner());
        *p = false;
        self.unpark.notify_one();
    }
}

struct Pool {
    queue: Mutex<VecDeque<u32>>,
    ready: Condvar,
    threads: AtomicUsize,
    /// Threads that take processes.
    online: AtomicUsize,
    /// Threads that run a process, and nanoseconds for which they have.
    busy: AtomicUsize,
    worked: AtomicU64,
    /// Sum of the times at which those that are at work began, in nanoseconds.
    started: AtomicU64,
}

impl Pool {
    const fn new() -> Pool {
        Pool {
            queue: Mutex::new(VecDeque::new()),
            ready: Condvar::new(),
            threads: AtomicUsize::new(0),
            online: AtomicUsize::new(usize::MAX),
            busy: AtomicUsize::new(0),
            worked: AtomicU64::new(0),
            started: AtomicU64::new(0),
        }
    }
    /// There is something in the queue.
    fn wake(&self) {
        if self.online.load(Ordering::Relaxed) >= self.threads.load(Ordering::Relaxed) {
            self.ready.notify_one();
        } else {
            // The one that is woken might be one that takes nothing.
            self.ready.notify_all();
        }
    }
}

struct Schedulers {
    workers: Vec<Worker>,
    /// Workers that exist, and that may run processes.
    online: AtomicUsize,
    started: AtomicUsize,
    idle: AtomicUsize,
    next: AtomicUsize,
}

static SCHEDULERS: OnceLock<Schedulers> = OnceLock::new();
static DIRTY_IO: Pool = Pool::new();
static DIRTY_CPU: Pool = Pool::new();

/// Reductions of processes that have ended, and context switches.
static REDUCTIONS: AtomicU64 = AtomicU64::new(0);
/// See [`REDUCTIONS`].
pub static CONTEXT_SWITCHES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// This thread's worker plus one; 0 on other threads.
    static ME: Cell<usize> = const { Cell::new(0) };
    /// See [`running_priority`].
    static RUNS: Cell<Priority> = const { Cell::new(Priority::Low) };
}

fn schedulers() -> &'static Schedulers {
    SCHEDULERS.get_or_init(|| Schedulers {
        workers: (0..MAX_SCHEDULERS).map(|_| Worker::new()).collect(),
        online: AtomicUsize::new(1),
        started: AtomicUsize::new(0),
        idle: AtomicUsize::new(0),
        next: AtomicUsize::new(0),
    })
}

/// Counts the reductions of a process that has ended.
pub fn count_exit(_reductions: u64) {}

/// Counts reductions used in a time slice.
pub fn count_reductions(n: u64) {
    REDUCTIONS.fetch_add(n, Ordering::Relaxed);
}

/// Reductions so far in the whole runtime.
pub fn reductions() -> u64 {
    REDUCTIONS.load(Ordering::Relaxed)
}

/// Schedulers that exist.
pub fn count() -> usize {
    schedulers().started.load(Ordering::Relaxed)
}

/// Schedulers that run processes.
pub fn online() -> usize {
    schedulers().online.load(Ordering::Relaxed)
}

/// Number of the scheduler that this thread is, from 1; 0 for other threads.
pub fn current() -> usize {
    ME.with(|m| m.get())
}

/// Processes in each run queue.
pub fn queue_lengths() -> Vec<usize> {
    let s = schedulers();
    s.workers[..count()]
        .iter()
        .map(|w| w.len.load(Ordering::Relaxed))
        .collect()
}

/// Processes waiting for a thread of the dirty pools: (processor, input and output).
pub fn dirty_lengths() -> (usize, usize) {
    let n = |p: &Pool| p.queue.lock().unwrap_or_else(|e| e.into_inner()).len();
    (n(&DIRTY_CPU), n(&DIRTY_IO))
}

/// Of each scheduler: whether it runs a process.
pub fn working() -> Vec<bool> {
    let s = schedulers();
    s.workers[..count()]
        .iter()
        .map(|w| !w.idle.load(Ordering::Relaxed))
        .collect()
}

/// Of each scheduler: nanoseconds for which it had nothing to do.
pub fn idle_nanoseconds() -> Vec<u64> {
    let s = schedulers();
    s.workers[..count()]
        .iter()
        .map(|w| w.rest.nanoseconds())
        .collect()
}

/// Of the dirty pools (processor, input and output): threads that are at work, and nanoseconds of work of all threads.
pub fn dirty_work() -> [(usize, u64); 2] {
    let now = crate::clock::elapsed().max(0) as u64;
    [&DIRTY_CPU, &DIRTY_IO].map(|p| {
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
fn bound(cell: u32) -> usize {
    if ANY_BOUND.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let b = BOUND.lock().unwrap_or_else(|e| e.into_inner());
    b.as_ref()
        .and_then(|all| all.get(&cell).copied())
        .unwrap_or(0)
}

/// A process that waits in a run queue for its turn comes there at a higher priority, once.
pub fn raise(p: *mut Process, prio: Priority) {
    let cell = table().index(p);
    let s = schedulers();
    for w in &s.workers[..count()] {
        if w.len.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let mut q = w.queue.lock().unwrap_or_else(|e| e.into_inner());
        if q.raise(cell, prio) {
            return;
        }
    }
}

/// The priority of the process that this thread runs; the lowest where it runs none.
pub fn running_priority() -> Priority {
    RUNS.with(|r| r.get())
}

/// This thread runs a process of that priority.
pub(super) fn set_running_priority(p: Priority) {
    RUNS.with(|r| r.set(p));
}

/// Puts a process that was woken, whose `QUEUED` bit the caller has set, into a run queue.
pub fn enqueue(p: *mut Process, prio: Priority) {
    put(p, prio, true);
}

/// As [`enqueue`], for a process that has used up its time slice or has just been made.
pub fn enqueue_last(p: *mut Process, prio: Priority) {
    put(p, prio, false);
}

fn put(p: *mut Process, prio: Priority, woken: bool) {
    // SAFETY: cells are never unmapped; the state word is an atomic.
    if unsafe { (*p).state.load() } & OWN_THREAD != 0 {
        return own::ring(table().index(p));
    }
    let s = schedulers();
    let online = s.online.load(Ordering::Relaxed);
    let me = current();
    let at = if let n @ 1.. = bound(table().index(p)) {
        (n - 1) % online
    } else if me != 0 && me <= online {
        me - 1
    } else {
        // From a thread that runs no processes: spread.
        s.next.fetch_add(1, Ordering::Relaxed) % online
    };
    let w = &s.workers[at];
    let len = {
        let mut q = w.queue.lock().unwrap_or_else(|e| e.into_inner());
        q.push(table().index(p), prio, woken);
        w.len.store(q.len, Ordering::Relaxed);
        q.len
    };
    fence(Ordering::SeqCst);
    if s.idle.load(Ordering::Relaxed) == 0 {
        return;
    }
    if at + 1 != me {
        if w.idle.load(Ordering::Relaxed) {
            w.wake();
        } else {
            wake_one(s);
        }
    } else if len > 1 {
        // This worker takes one when it is done with the process that runs; others may take the rest.
        wake_one(s);
    }
}

fn wake_one(s: &Schedulers) {
    let online = s.online.load(Ordering::Relaxed);
    for w in &s.workers[..online] {
        if w.idle.load(Ordering::Relaxed) {
            w.wake();
            return;
        }
    }
}

/// Times that schedulers have compared their queues.
static BALANCES: AtomicU64 = AtomicU64::new(0);

/// See [`BALANCES`].
pub fn balances() -> u64 {
    BALANCES.load(Ordering::Relaxed)
}

/// Processes that a scheduler takes from its queue between two looks at the others'.
const PICKS_PER_BALANCE: usize = 128;

/// Worker `i`, which has enough to do, takes processes over from one that has more of the same priority: schedulers
/// that never rest would otherwise go on with what they happened to get.
#[cold]
#[inline(never)]
fn balance(i: usize) {
    BALANCES.fetch_add(1, Ordering::Relaxed);
    let s = schedulers();
    let w = &s.workers[i];
    let len = |k: usize| s.workers[k].len.load(Ordering::Relaxed);
    let online = s.online.load(Ordering::Relaxed);
    let Some(other) = (0..online).filter(|&k| k != i).max_by_key(|&k| len(k)) else {
        return;
    };
    let lock = |w: &'static Worker| w.queue.lock().unwrap_or_else(|e| e.into_inner());
    let mine: [usize; LEVELS] = {
        let q = lock(w);
        std::array::from_fn(|l| q.levels[l].len())
    };
    let mut got: Vec<(u32, usize)> = Vec::new();
    {
        let v = &s.workers[other];
        let mut q = lock(v);
        for (l, &mine) in mine.iter().enumerate() {
            let theirs = q.levels[l].len();
            for _ in 0..theirs.saturating_sub(mine) / 2 {
                // From the end, which waits longest.
                match q.levels[l].pop_back() {
                    Some(c) if bound(c) == 0 => {
                        q.len -= 1;
                        got.push((c, l));
                    }
                    Some(c) => {
                        q.levels[l].push_back(c);
                        break;
                    }
                    None => break,
                }
            }
        }
        v.len.store(q.len, Ordering::Relaxed);
    }
    if !got.is_empty() {
        let mut q = lock(w);
        for (c, l) in got.into_iter().rev() {
            q.levels[l].push_back(c);
            q.len += 1;
        }
        w.len.store(q.len, Ordering::Relaxed);
    }
}

/// Worker `i` is offline: what is in its queue goes to those that are not, which may never come to look for it.
#[cold]
fn hand_over(i: usize) {
    let s = schedulers();
    let w = &s.workers[i];
    if w.len.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut got: Vec<(u32, usize)> = Vec::new();
    {
        let mut q = w.queue.lock().unwrap_or_else(|e| e.into_inner());
        for l in 0..LEVELS {
            got.extend(q.levels[l].drain(..).map(|c| (c, l)));
        }
        q.len = 0;
        w.len.store(0, Ordering::Relaxed);
    }
    let online = s.online.load(Ordering::Relaxed);
    for (k, (c, l)) in got.into_iter().enumerate() {
        let at = match bound(c) {
            0 => k % online,
            n => (n - 1) % online,
        };
        let to = &s.workers[at];
        {
            let mut q = to.queue.lock().unwrap_or_else(|e| e.into_inner());
            q.levels[l].push_back(c);
            q.len += 1;
            to.len.store(q.len, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        if to.idle.load(Ordering::Relaxed) {
            to.wake();
        }
    }
}

/// What worker `i` sees of another from which it might take its only process: how often that has taken one itself.
/// `None` where there is no such worker.
fn glance(i: usize) -> Option<usize> {
    let s = schedulers();
    let n = s.started.load(Ordering::Relaxed);
    (1..n)
        .map(|k| &s.workers[(i + k) % n])
        .find(|v| v.len.load(Ordering::Relaxed) == 1)
        .map(|v| v.picks.load(Ordering::Relaxed))
}

/// The next process for worker `i`: of its own queue, or of another's. `glance`: that of a moment ago, from [`glance`] of a moment ago.
fn next(i: usize, glance: Option<usize>) -> Option<u32> {
    let s = schedulers();
    if s.workers[i]
        .picks
        .fetch_add(1, Ordering::Relaxed)
        .is_multiple_of(PICKS_PER_BALANCE)
        && i < s.online.load(Ordering::Relaxed)
        && s.workers[i].len.load(Ordering::Relaxed) != 0
    {
        balance(i);
    }
    let take = |w: &Worker| {
        if w.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut q = w.queue.lock().unwrap_or_else(|e| e.into_inner());
        let c = q.pop();
        w.len.store(q.len, Ordering::Relaxed);
        c
    };
    if i < s.online.load(Ordering::Relaxed) {
        if let Some(c) = take(&s.workers[i]) {
            return Some(c);
        }
    } else {
        hand_over(i);
        return None;
    }
    let n = s.started.load(Ordering::Relaxed);
    for k in 1..n {
        let v = &s.workers[(i + k) % n];
        match v.len.load(Ordering::Relaxed) {
            0 => continue,
            // It is likely that the one that runs there is about to wait, for this one: as they would take turns on two
            // processors, at a much higher price. Where it goes on running the other is taken a moment later.
            1 if glance.is_none_or(|g| g != v.picks.load(Ordering::Relaxed)) => continue,
            _ => {}
        }
        // Half of what is there, so that thieves don't come again at once.
        let mut got: Vec<(u32, usize)> = Vec::new();
        let v_online = (i + k) % n < online();
        {
            let mut q = v.queue.lock().unwrap_or_else(|e| e.into_inner());
            let want = q.len.div_ceil(2);
            for l in STEAL_ORDER {
                let mut stay = Vec::new();
                while got.len() < want {
                    match q.levels[l].pop_front() {
                        // Those of schedulers that are offline run where they can.
                        Some(c) if v_online && bound(c) != 0 => stay.push(c),
                        Some(c) => {
                            q.len -= 1;
                            got.push((c, l));
                        }
                        None => break,
                    }
                }
                for c in stay.into_iter().rev() {
                    q.levels[l].push_front(c);
                }
            }
            v.len.store(q.len, Ordering::Relaxed);
        }
        let mut it = got.into_iter();
        let Some((first, _)) = it.next() else {
            continue;
        };
        let w = &s.workers[i];
        let mut q = w.queue.lock().unwrap_or_else(|e| e.into_inner());
        for (c, l) in it {
            q.levels[l].push_back(c);
            q.len += 1;
        }
        w.len.store(q.len, Ordering::Relaxed);
        return Some(first);
    }
    None
}

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Has schedulers and dirty threads run no process any more, and waits for that, but not longer than `limit`: the
/// emulator is about to end. The calling thread may be one of them.
pub fn stop(limit: std::time::Duration) {
    STOPPED.store(true, Ordering::SeqCst);
    let s = schedulers();
    let started = std::time::Instant::now();
    let me = current();
    let works = |i: usize| i + 1 != me && !s.workers[i].idle.load(Ordering::SeqCst);
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

/// Looks, in vain, at the only process of another worker before it is left to that.
const ROUNDS: u32 = 4;

/// The next process for worker `i`; sleeps until there is one. `used`: reductions of this worker since it looked at
/// timers, which is brought up to date.
fn next_or_park(i: usize, used: &mut i64) -> u32 {
    let s = schedulers();
    let w = &s.workers[i];
    *used += REDUCTIONS_PER_PICK;
    let mut rounds = ROUNDS;
    loop {
        if STOPPED.load(Ordering::Relaxed) {
            w.idle.store(true, Ordering::SeqCst);
            rest_if_stopped();
        }
        if *used >= REDUCTIONS_PER_POLL {
            *used = 0;
            crate::timer::poll();
        }
        if let Some(c) = next(i, None) {
            return c;
        }
        // A moment of looking costs less than to sleep and be woken.
        let mut glanced = None;
        if i < s.online.load(Ordering::Relaxed) {
            glanced = glance(i);
            for _ in 0..64 {
                std::hint::spin_loop();
            }
            if let Some(c) = next(i, glanced) {
                return c;
            }
            // What it has sent may have come by now.
            if poll::look()
                && let Some(c) = next(i, glanced)
            {
                return c;
            }
        }
        *used = REDUCTIONS_PER_POLL;
        *w.parked.lock().unwrap_or_else(|e| e.into_inner()) = true;
        w.idle.store(true, Ordering::Relaxed);
        w.rest.begin();
        let idle = s.idle.fetch_add(1, Ordering::Relaxed) + 1;
        let busy = |idle: usize| s.workers.len().saturating_sub(idle);
        profile::scheduler_is(i + 1, false, busy(idle));
        fence(Ordering::SeqCst);
        let found = next(i, glanced);
        if found.is_none() && rounds > 0 && glance(i).is_some() && i < online() {
            // Somebody's only process, that was not there yet or is another one now.
            rounds -= 1;
        } else if found.is_none() {
            rounds = ROUNDS;
            let mut p = w.parked.lock().unwrap_or_else(|e| e.into_inner());
            msacc::asleep(true);
            while *p {
                p = w.unpark.wait(p).unwrap_or_else(|e| e.into_inner());
            }
            msacc::asleep(false);
        }
        w.idle.store(false, Ordering::Relaxed);
        w.rest.end();
        upkeep::stir();
        let idle = s.idle.fetch_sub(1, Ordering::Relaxed) - 1;
        profile::scheduler_is(i + 1, true, busy(idle));
        if let Some(c) = found.filter(|_| !STOPPED.load(Ordering::Relaxed)) {
            return c;
        }
    }
}

/// Queues a process, whose `QUEUED` bit is set, for a thread that may block (or compute long).
pub fn enqueue_dirty(p: *mut Process, io: bool) {
    let pool = if io { &DIRTY_IO } else { &DIRTY_CPU };
    let mut q = pool.queue.lock().unwrap_or_else(|e| e.into_inner());
    q.push_back(table().index(p));
    drop(q);
    pool.wake();
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
    (
        DIRTY_CPU.threads.load(Ordering::Relaxed),
        DIRTY_IO.threads.load(Ordering::Relaxed),
    )
}

/// Threads of the dirty processor pool that take processes.
pub fn dirty_cpu_online() -> usize {
    let p = &DIRTY_CPU;
    p.online
        .load(Ordering::Relaxed)
        .min(p.threads.load(Ordering::Relaxed))
}

/// Has so many threads of the dirty processor pool take processes; how many did before.
pub fn set_dirty_cpu_online(n: usize) -> usize {
    let before = dirty_cpu_online();
    DIRTY_CPU.online.store(n.max(1), Ordering::Relaxed);
    DIRTY_CPU.ready.notify_all();
    before
}

fn start_dirty(pool: &'static Pool, kind: msacc::Kind, name: String) {
    let index = pool.threads.fetch_add(1, Ordering::Relaxed);
    let id = MAX_SCHEDULERS + index;
    let made = std::thread::Builder::new()
        .name(name)
        .stack_size(stack_size())
        .spawn(move || {
            msacc::begin_thread(kind, index + 1);
            let mut cx: Option<Box<crate::cx::Cx>> = None;
            loop {
                let cell = {
                    let mut q = pool.queue.lock().unwrap_or_else(|e| e.into_inner());
                    loop {
                        if index < pool.online.load(Ordering::Relaxed)
                            && let Some(c) = q.pop_front()
                        {
                            break c;
                        }
                        msacc::asleep(true);
                        q = pool.ready.wait(q).unwrap_or_else(|e| e.into_inner());
                    }
                };
                msacc::asleep(false);
                let cx = cx.get_or_insert_with(|| {
                    let mut c = crate::cx::Cx::boxed(id);
                    c.dirty = true;
                    c
                });
                rest_if_stopped();
                let start = crate::clock::elapsed().max(0) as u64;
                pool.started.fetch_add(start, Ordering::Relaxed);
                pool.busy.fetch_add(1, Ordering::Relaxed);
                // SAFETY: the cell was in the queue of this pool.
                unsafe { run::dirty(cx, table().cell(cell)) };
                pool.busy.fetch_sub(1, Ordering::Relaxed);
                pool.started.fetch_sub(start, Ordering::Relaxed);
                let took = (crate::clock::elapsed() as u64).saturating_sub(start);
                pool.worked.fetch_add(took, Ordering::Relaxed);
            }
        });
    if made.is_err() {
        pool.threads.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Makes `n` workers run processes, starting threads if there are too few; the others go to sleep when they are done
/// with the process they run, and what is in their queues is taken by the rest. The number that was online before.
pub fn set_online(n: usize) -> usize {
    let s = schedulers();
    let n = n.clamp(1, MAX_SCHEDULERS);
    let before = s.online.swap(n, Ordering::SeqCst);
    while s.started.load(Ordering::Relaxed) < n {
        let i = s.started.fetch_add(1, Ordering::SeqCst);
        let made = std::thread::Builder::new()
            .name(format!("sched{}", i + 1))
            .stack_size(stack_size())
            .spawn(move || {
                ME.with(|m| m.set(i + 1));
                msacc::begin_thread(msacc::Kind::Scheduler, i + 1);
                let mut cx = crate::cx::Cx::boxed(i);
                let mut used = 0;
                loop {
                    let cell = next_or_park(i, &mut used);
                    // SAFETY: the cell was in a run queue.
                    used += unsafe { run::normal(&mut cx, table().cell(cell)) };
                }
            });
        if made.is_err() {
            s.started.fetch_sub(1, Ordering::SeqCst);
            s.online.store(i.max(1), Ordering::SeqCst);
            break;
        }
    }
    // Those that came online, and those that have to find the work of the others.
    for w in &s.workers[..s.started.load(Ordering::Relaxed)] {
        w.wake();
    }
    before
}
