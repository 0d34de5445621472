//! The run queues: how processes are queued and taken, and how schedulers sleep and are woken.
//! Processes are numbers here (the indices of their cells). [`super::order`] decides the order
//! within a queue.
//!
//! # The slot
//! A process that a scheduler's process wakes or spawns while that scheduler's queue is empty goes
//! into a slot beside the queue instead. Two processes that talk to each other, or a message that
//! goes around a ring, thus take neither lock nor queue. The slot counts as part of the queue for
//! everybody. Only its scheduler fills it; it and others empty it.
//!
//! # Processes in order
//! Processes that a connection to another node wakes go to one scheduler
//! ([`RunQueues::put_in_order`]), and while they are few they stay there: a process runs, or uses
//! up a slice, before the process that the connection woke next. That is no promise, but programs
//! come to rely on it. Anything else that arrives in that queue ends it, and so does a long
//! collection ([`RunQueues::let_others_steal`]).
//!
//! # Invariants
//! - A process that was put is in exactly one queue, or in the hands of one scheduler that is about
//!   to queue or to run it.
//! - A scheduler sleeps only after it has published that it is idle and then found every queue
//!   empty, except for those with one process whose scheduler is awake. A thread that queues a
//!   process looks at the idle schedulers after that. Two fences order this, so no process waits
//!   while all schedulers sleep.
//! - At most one sleeping scheduler sleeps outside, where other events wake it as well
//!   ([`crate::poll`]). It handles those events when it is no longer idle.
//! - A scheduler that was woken, or that found work while others considered it idle, wakes the next
//!   one if there is more to do: wake-ups for several schedulers may all have gone to this one.
//! - Locks of two queues are never held together. Under such a lock only [`Hooks::bound`] and the
//!   closure given to [`RunQueues::raise`] are called.
//!
//! # Orderings
//! * The slot is filled with release and emptied with acquire: who takes a process from it sees
//!   what the scheduler did to the process before. Queues have locks.
//! * A thread that has queued a process, and a scheduler that has published that it is idle, each
//!   pass a sequentially consistent fence and then look at what the other wrote. One of the two
//!   sees the other. The same holds for the figures that `w.stuck` and `in_order` change.
//! * `online`, `started` and `idle` of one scheduler are `SeqCst` where schedulers are started and
//!   stopped, which is rare; these need no more than to be in one order.
//!
//! The model is `models/tests/run_queues.rs`.

pub(crate) use super::order::Cause;
// The models have no use for it.
#[allow(unused_imports)]
pub(crate) use super::order::TURN_SLICES;
use super::order::{EQUAL, LEVELS, OWING, Queues, SLICE, STEAL_ORDER, URGENT_LEVELS, WOKEN};
use crate::process::state::Priority;
use crate::sync::{
    AtomicBool, AtomicU32, AtomicUsize, Condvar, Mutex, OnceSlice, Ordering, Spin, SpinGuard,
    constant, fence,
};
use purlin_isa::cache_lines::TwoLines;

/// Minimum work, in reductions, for which stealing from another scheduler or waking one pays; see
/// [`Queues::work`]. Either costs both schedulers some microseconds, as much as the start and end
/// of ten processes that do nothing.
const WORTH: usize = SLICE as usize / 2;

/// Number of looks that must find a scheduler at the same process before others steal the only
/// waiting one. A process that has just sent something often does little more before it waits, and
/// the process that it woke then continues where it was.
const LOOKS_AT_ONE: u32 = 6;

/// Maximum number of ordered processes that stay in one queue while others sleep; see
/// [`RunQueues::put_in_order`].
const FEW_IN_ORDER: usize = 4;

/// Number of processes that a scheduler takes from its queue between two balances.
const PICKS_PER_BALANCE: usize = 128;

/// Sleeping place of a scheduler, if it sleeps or is about to. A thread that wakes it replaces this
/// by `No`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parked {
    No,
    /// At its own condition variable.
    Here,
    /// Outside, where other events wake it too: [`Hooks::wait_outside`].
    Outside,
}

/// One scheduler as others see it, on cache lines of its own.
struct Scheduler {
    _lines: TwoLines,
    queue: Spin<Queues>,
    /// Length of the queue, for schedulers that look for work.
    len: AtomicUsize,
    /// Estimated work in the queue; see [`WORTH`].
    work: AtomicUsize,
    /// Estimated work of the process in the slot, if there is one.
    pace: AtomicUsize,
    /// Number of queued processes of high priority or above.
    urgent: AtomicUsize,
    /// Whether the process that it took from its queue last was of high priority or above.
    hogged: AtomicBool,
    /// Whether the process that it took last had used up a time slice before.
    used: AtomicBool,
    /// Whether the process that it took last came from its queue, and whether it is to be timed.
    /// Both are for this scheduler only.
    from_queue: AtomicBool,
    timed: AtomicBool,
    /// Cost of the last process from its queue, in reductions and, if it was timed, nanoseconds.
    /// `unreported` is set until the queue has been updated.
    unreported: AtomicBool,
    ran: AtomicUsize,
    took: AtomicUsize,
    /// It has run one process for so long that others may steal what waits; see
    /// [`RunQueues::rescue`].
    stuck: AtomicBool,
    /// The process in the slot, of normal priority, plus one; 0 for none.
    slot: AtomicU32,
    /// Whether the waiting processes and the running one have come in order from one source.
    in_order: AtomicBool,
    parked: Mutex<Parked>,
    unpark: Condvar,
    idle: AtomicBool,
    /// It sleeps outside, or is about to.
    outside: AtomicBool,
    /// Number of times it has looked for a process. Written by this scheduler only.
    picks: AtomicUsize,
}

impl Scheduler {
    fn new() -> Scheduler {
        Scheduler {
            _lines: TwoLines,
            queue: Spin::new(Queues::new()),
            len: AtomicUsize::new(0),
            work: AtomicUsize::new(0),
            pace: AtomicUsize::new(WORTH / 2),
            urgent: AtomicUsize::new(0),
            hogged: AtomicBool::new(false),
            used: AtomicBool::new(false),
            from_queue: AtomicBool::new(false),
            timed: AtomicBool::new(false),
            unreported: AtomicBool::new(false),
            ran: AtomicUsize::new(0),
            took: AtomicUsize::new(0),
            stuck: AtomicBool::new(false),
            slot: AtomicU32::new(0),
            in_order: AtomicBool::new(false),
            parked: Mutex::new(Parked::No),
            unpark: Condvar::new(),
            idle: AtomicBool::new(false),
            outside: AtomicBool::new(false),
            picks: AtomicUsize::new(0),
        }
    }
    #[inline]
    fn wake(&self, hooks: &impl Hooks) {
        let mut p = self.parked.lock();
        // The thread that replaces the mark wakes the scheduler. Until that runs, later wake-ups
        // find `No` and cost no system call.
        match std::mem::replace(&mut *p, Parked::No) {
            Parked::No => {}
            Parked::Here => {
                hooks.wakes();
                self.unpark.notify_one();
            }
            Parked::Outside => {
                hooks.wakes();
                drop(p);
                hooks.ring();
            }
        }
    }
    #[inline]
    fn lock(&self) -> SpinGuard<'_, Queues> {
        self.queue.lock()
    }
    #[inline]
    fn queued(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
    #[inline]
    fn len(&self) -> usize {
        self.queued() + usize::from(self.slot.load(Ordering::Relaxed) != 0)
    }
    /// Estimated work of what waits here.
    #[inline]
    fn work(&self) -> usize {
        let next = self.slot.load(Ordering::Relaxed) != 0;
        let next = if next {
            self.pace.load(Ordering::Relaxed)
        } else {
            0
        };
        self.work.load(Ordering::Relaxed) + next
    }
    /// Whether a single process waits here that is not short. Others steal it if this scheduler
    /// keeps running something else.
    #[inline]
    fn has_one(&self) -> bool {
        self.len() == 1 && self.work() >= WORTH / 2
    }
    /// Whether the waiting work would probably be done before another scheduler could have stolen
    /// it: it is short, or its scheduler is about to take it.
    #[inline]
    fn is_brief(&self) -> bool {
        (self.len() == 1 || self.work() < WORTH) && !self.stuck.load(Ordering::Relaxed)
    }
    /// Whether others leave the waiting processes to this scheduler.
    #[inline]
    fn keeps_order(&self) -> bool {
        self.in_order.load(Ordering::Relaxed) && self.len() <= FEW_IN_ORDER
    }
    /// Puts a process into the slot if nothing waits. Called by this scheduler.
    #[inline]
    fn fill_slot(&self, cell: u32) -> bool {
        let free = self.len() == 0;
        if free {
            self.slot.store(cell + 1, Ordering::Release);
        }
        free
    }
    /// Takes a particular process out of the slot. Any thread may call it.
    #[inline]
    fn take_from_slot(&self, cell: u32) -> bool {
        self.slot.load(Ordering::Relaxed) == cell + 1
            && self
                .slot
                .compare_exchange(cell + 1, 0, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }
    /// Takes the process out of the slot. Any thread may call it.
    #[inline]
    fn empty_slot(&self) -> Option<u32> {
        if self.slot.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.slot.swap(0, Ordering::Acquire).checked_sub(1)
    }
    /// Publishes the queue's figures. Must be called before the lock is released.
    #[inline]
    fn set_len(&self, q: &Queues) {
        self.len.store(q.len, Ordering::Relaxed);
        self.work.store(q.work(), Ordering::Relaxed);
        self.pace.store(q.pace(), Ordering::Relaxed);
        self.urgent.store(q.urgent(), Ordering::Relaxed);
    }
    fn take(&self) -> Option<u32> {
        if self.stuck.load(Ordering::Relaxed) {
            self.stuck.store(false, Ordering::Relaxed);
        }
        let next = self.empty_slot();
        if self.queued() == 0 {
            self.used.store(false, Ordering::Relaxed);
            self.from_queue.store(false, Ordering::Relaxed);
            self.timed.store(false, Ordering::Relaxed);
            if next.is_none() {
                self.in_order.store(false, Ordering::Relaxed);
            }
            return next;
        }
        let mut q = self.lock();
        if self.unreported.load(Ordering::Relaxed) {
            self.unreported.store(false, Ordering::Relaxed);
            let took = self.took.load(Ordering::Relaxed) as i64;
            q.ran(self.ran.load(Ordering::Relaxed) as i64, took);
        }
        if let Some(c) = next {
            // It arrived first, but processes of higher priority may wait by now.
            q.push_first(c, WOKEN);
        }
        self.hogged.store(q.urgent() != 0, Ordering::Relaxed);
        let c = q.pop();
        self.from_queue.store(c.is_some(), Ordering::Relaxed);
        self.used.store(q.used, Ordering::Relaxed);
        self.timed.store(q.timed, Ordering::Relaxed);
        self.set_len(&q);
        c
    }
    /// Appends processes that were taken from another queue.
    #[inline]
    fn add(&self, got: impl Iterator<Item = (u32, usize)>) {
        let mut q = self.lock();
        for (c, l) in got {
            q.levels[l].push_back(c);
            q.len += 1;
        }
        self.set_len(&q);
    }
}

/// Returns how many processes of each level a scheduler takes over, given the numbers waiting here
/// (`mine`) and there (`theirs`). `hogged`: a process of high priority or above runs there for
/// long.
fn shares_to_take(
    mine: &[usize; LEVELS],
    theirs: &[usize; LEVELS],
    hogged: bool,
) -> [usize; LEVELS] {
    let urgent = [Priority::High as usize, Priority::Max as usize];
    let calm = urgent.iter().all(|&l| mine[l] == 0);
    // All levels of normal priority count together: a process that has just had several slices is
    // one of them.
    let all = |of: &[usize; LEVELS]| EQUAL.iter().map(|&l| of[l]).sum::<usize>();
    let mut due = (all(theirs) + 2).saturating_sub(all(mine)) / 2;
    std::array::from_fn(|l| {
        let (mine, theirs) = (mine[l], theirs[l]);
        if urgent.contains(&l) {
            return (theirs.saturating_sub(mine) + usize::from(calm)) / 2;
        }
        if !calm || theirs == 0 {
            return 0;
        }
        // They wait there for as long as the process of high priority runs.
        if hogged {
            return theirs.div_ceil(2);
        }
        // One more process runs there, and none here. If they have one more, the other scheduler
        // gets it next time.
        let want = (theirs + 2).saturating_sub(mine) / 2;
        if !EQUAL.contains(&l) {
            return want;
        }
        let want = want.min(due);
        due -= want;
        want
    })
}

/// The services that the queues need from the runtime.
pub(crate) trait Hooks {
    /// Returns the number, from 1, of the only scheduler that a process may run on; 0 for any.
    fn bound(&self, cell: u32) -> usize;
    /// Notes that scheduler `i` has become idle. `idle` schedulers are idle now.
    fn rests(&self, i: usize, idle: usize);
    /// Notes that this thread is about to sleep, or has slept.
    fn sleeps(&self, on: bool);
    fn works(&self, i: usize, idle: usize);
    /// Notes that this thread is about to wake a sleeping scheduler.
    fn wakes(&self) {}
    /// Notes that this thread, scheduler `i`, has been woken.
    fn woken(&self, _i: usize) {}
    /// The events that a scheduler finds outside.
    type Found;
    /// Whether this scheduler, `i`, is to sleep where events from outside wake it too, as one
    /// scheduler may at a time. If so, [`Hooks::wait_outside`] follows. `awake` says whether a
    /// scheduler, from 0, is awake and will look for something to run again.
    fn may_wait_outside(&self, i: usize, awake: impl Fn(usize) -> bool) -> bool;
    /// Sleeps outside until an event arrives or a thread calls [`Hooks::ring`].
    fn wait_outside(&self) -> Self::Found;
    fn ring(&self);
}

/// See the module docs.
pub(crate) struct RunQueues<H> {
    /// Filled by the first use; see [`RunQueues::scheduler`].
    schedulers: OnceSlice<Scheduler>,
    most: usize,
    /// Number of schedulers that may run processes, and number that exist.
    online: AtomicUsize,
    started: AtomicUsize,
    idle: AtomicUsize,
    next: AtomicUsize,
    balances: AtomicUsize,
    pub hooks: H,
}

/// A look at another scheduler that has a single waiting process. The process is left to it unless
/// it keeps running something else.
pub(crate) type Glance = Option<Seen>;

/// See [`Glance`].
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// Number of times it has looked for a process.
    picks: usize,
    /// Number of consecutive looks that found the same.
    looks: u32,
}

impl Seen {
    /// Returns the same look, repeated for long enough to steal.
    #[allow(dead_code, reason = "in tests")]
    pub(crate) fn for_long(self) -> Seen {
        Seen {
            looks: u32::MAX,
            ..self
        }
    }
}

/// How a scheduler's rest ended.
pub(crate) enum Rest<F> {
    /// It found a process before it slept.
    Found(u32),
    /// It didn't sleep because another scheduler has a single waiting process that is new.
    Again,
    /// It slept.
    Woken,
    /// It slept outside, and found these events.
    Outside(F),
}

impl<H: Hooks> RunQueues<H> {
    constant! {
        /// Returns queues for at most `most` schedulers. None exists, and one is online.
        pub fn new(most: usize, hooks: H) -> RunQueues<H> {
            RunQueues {
                schedulers: OnceSlice::new(),
                most,
                online: AtomicUsize::new(1),
                started: AtomicUsize::new(0),
                idle: AtomicUsize::new(0),
                next: AtomicUsize::new(0),
                balances: AtomicUsize::new(0),
                hooks,
            }
        }
    }
    /// Returns scheduler `i`, from 0. Checks the index, as any access to a slice does, and looks
    /// for nothing else.
    #[inline]
    fn scheduler(&self, i: usize) -> &Scheduler {
        match self.schedulers.get(i) {
            Some(w) => w,
            None => self.first_use(i),
        }
    }
    #[cold]
    #[inline(never)]
    fn first_use(&self, i: usize) -> &Scheduler {
        let all = || (0..self.most).map(|_| Scheduler::new()).collect();
        self.schedulers.fill(all);
        &self.schedulers[i]
    }
    /// Returns the first `n` schedulers, or none before the first use.
    #[inline]
    fn first(&self, n: usize) -> &[Scheduler] {
        let all = &*self.schedulers;
        &all[..n.min(all.len())]
    }
    /// Number of schedulers that exist.
    #[inline]
    pub fn count(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }
    /// Number of schedulers that run processes.
    #[inline]
    pub(crate) fn online(&self) -> usize {
        self.online.load(Ordering::Relaxed)
    }
    /// Number of balances so far.
    #[inline]
    pub(crate) fn balances(&self) -> usize {
        self.balances.load(Ordering::Relaxed)
    }
    #[inline]
    fn started(&self) -> &[Scheduler] {
        self.first(self.count())
    }
    /// Returns the length of each queue.
    #[inline]
    pub fn lengths(&self) -> Vec<usize> {
        self.started().iter().map(|w| w.len()).collect()
    }
    /// Whether a process waits in any of them.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.started().iter().any(|w| w.len() > 0)
    }
    /// Number of times that scheduler `i` has looked for a process.
    #[inline]
    pub(crate) fn picks(&self, i: usize) -> usize {
        self.scheduler(i).picks.load(Ordering::Relaxed)
    }
    /// Whether scheduler `i` is idle.
    #[inline]
    pub(crate) fn is_idle(&self, i: usize) -> bool {
        self.scheduler(i).idle.load(Ordering::SeqCst)
    }
    /// Marks scheduler `i` as idle for good.
    #[inline]
    pub(crate) fn retire(&self, i: usize) {
        self.scheduler(i).idle.store(true, Ordering::SeqCst);
    }

    /// Lets others steal from schedulers that have taken nothing since the last call, however
    /// little waits there: a very long native is not interrupted at the end of a slice. `seen`
    /// keeps state for the next call.
    pub(crate) fn rescue(&self, seen: &mut Vec<usize>) {
        seen.resize(self.count(), usize::MAX);
        for (w, seen) in self.started().iter().zip(seen.iter_mut()) {
            let picks = w.picks.load(Ordering::Relaxed);
            let same = std::mem::replace(seen, picks) == picks;
            if same && w.len() != 0 && !w.idle.load(Ordering::Relaxed) {
                w.stuck.store(true, Ordering::Relaxed);
                // As in `put`.
                fence(Ordering::SeqCst);
                if self.idle.load(Ordering::Relaxed) != 0 {
                    self.wake_one();
                }
            }
        }
    }

    /// Whether the process that scheduler `i` took last is to be timed.
    #[inline]
    pub(crate) fn is_timed(&self, i: usize) -> bool {
        self.scheduler(i).timed.load(Ordering::Relaxed)
    }

    /// Records the reductions that the process which scheduler `i` took last has used, and the
    /// nanoseconds if it was timed.
    #[inline]
    pub(crate) fn ran(&self, i: usize, reductions: i64, nanoseconds: i64) {
        let w = self.scheduler(i);
        if w.from_queue.load(Ordering::Relaxed) {
            w.unreported.store(true, Ordering::Relaxed);
            w.ran.store(reductions.max(0) as usize, Ordering::Relaxed);
            w.took.store(nanoseconds.max(0) as usize, Ordering::Relaxed);
        }
    }

    /// Moves a queued process to a higher priority, if it waits in a queue. `mark` is called before
    /// anybody can take it from there.
    pub fn raise(&self, cell: u32, prio: Priority, mark: impl FnOnce()) {
        for w in self.started() {
            if w.len() == 0 {
                continue;
            }
            let mut q = w.lock();
            let next = prio > Priority::Normal && w.take_from_slot(cell);
            if next {
                q.push(cell, prio, Cause::Woken);
            }
            if next || q.raise(cell, prio) {
                w.set_len(&q);
                mark();
                return;
            }
        }
    }

    /// Whether scheduler `me`, from 1, runs a process of normal priority that had used up a time
    /// slice before.
    #[inline]
    pub(crate) fn took_used(&self, me: usize) -> bool {
        me != 0 && self.scheduler(me - 1).used.load(Ordering::Relaxed)
    }

    /// Queues a process of normal priority in the middle of its long time slice on scheduler `me`
    /// (counted from 1). It runs before all but woken processes. If it is stolen meanwhile, its
    /// next time slice is there.
    #[inline]
    pub(crate) fn go_on(&self, cell: u32, me: usize) {
        if me == 0 || me > self.online() {
            return self.put(cell, Priority::Normal, Cause::Spent, me);
        }
        self.put_first(cell, OWING, me);
    }

    /// Queues a process that scheduler `me`, from 1, has taken early. It goes before all others of
    /// its priority.
    #[inline]
    pub(crate) fn put_back(&self, cell: u32, prio: Priority, me: usize) {
        if me == 0 || me > self.online() {
            return self.put(cell, prio, Cause::Spent, me);
        }
        let level = match prio {
            Priority::Normal => WOKEN,
            p => p as usize,
        };
        self.put_first(cell, level, me);
    }

    fn put_first(&self, cell: u32, level: usize, me: usize) {
        let w = self.scheduler(me - 1);
        let brief = {
            let mut q = w.lock();
            q.push_first(cell, level);
            w.in_order.store(false, Ordering::Relaxed);
            w.set_len(&q);
            w.is_brief()
        };
        if brief {
            return;
        }
        // As in `put`.
        fence(Ordering::SeqCst);
        if self.idle.load(Ordering::Relaxed) != 0 {
            self.wake_one();
        }
    }

    /// Queues a process. `me` is the number of the scheduler that this thread is, from 1; 0 for
    /// none.
    pub fn put(&self, cell: u32, prio: Priority, cause: Cause, me: usize) {
        let online = self.online();
        let bound = self.hooks.bound(cell);
        let at = if bound != 0 {
            (bound - 1) % online
        } else if me != 0 && me <= online {
            me - 1
        } else {
            // From a thread that runs no processes: to an idle scheduler, or to each in turn.
            self.free(online)
                .unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed) % online)
        };
        let w = self.scheduler(at);
        let mine = at + 1 == me;
        let first = matches!(cause, Cause::Woken | Cause::New);
        let slot = mine && bound == 0 && first && prio == Priority::Normal;
        if slot && w.fill_slot(cell) {
            return;
        }
        let brief = {
            let mut q = w.lock();
            q.push(cell, prio, cause);
            w.in_order.store(false, Ordering::Relaxed);
            w.set_len(&q);
            w.is_brief()
        };
        if mine && brief {
            // This scheduler takes it soon after the running process. If that takes longer than a
            // slice, it is queued then and counts as work.
            return;
        }
        // Pairs with the fence in `rest`.
        fence(Ordering::SeqCst);
        if self.idle.load(Ordering::Relaxed) == 0 {
            return;
        }
        if !mine {
            if w.idle.load(Ordering::Relaxed) {
                w.wake(&self.hooks);
            } else {
                self.wake_one();
            }
        } else {
            // This scheduler takes one; others may take the rest.
            self.wake_one();
        }
    }

    /// Queues a process behind those that the same source has woken before, on their scheduler
    /// `home`, from 1 (0: there is none yet). If that scheduler has other work while another one is
    /// idle, the idle one gets it. Returns the number of the scheduler that gets it.
    pub(crate) fn put_in_order(
        &self,
        cell: u32,
        prio: Priority,
        cause: Cause,
        home: usize,
        me: usize,
    ) -> usize {
        if self.hooks.bound(cell) != 0 {
            self.put(cell, prio, cause, me);
            return home;
        }
        let online = self.online();
        let at = match (1..=online).contains(&me) {
            true => me - 1,
            false => self.home(home, online),
        };
        let w = self.scheduler(at);
        let mine = at + 1 == me;
        let len = {
            let mut q = w.lock();
            // Order begins with a process that finds nothing else.
            let first = w.len() == 0 && (mine || w.idle.load(Ordering::Relaxed));
            q.push(cell, prio, cause);
            if first {
                w.in_order.store(true, Ordering::Relaxed);
            }
            w.set_len(&q);
            w.len()
        };
        if mine && len == 1 {
            return at + 1;
        }
        // As in `put`.
        fence(Ordering::SeqCst);
        if self.idle.load(Ordering::Relaxed) != 0 {
            if !mine && w.idle.load(Ordering::Relaxed) {
                w.wake(&self.hooks);
            } else if !w.keeps_order() {
                self.wake_one();
            }
        }
        at + 1
    }

    /// Returns an idle scheduler, from 0, whose queue is empty; preferably one that doesn't wait
    /// outside.
    #[inline]
    fn free(&self, online: usize) -> Option<usize> {
        if self.idle.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let free = |w: &Scheduler| w.idle.load(Ordering::Relaxed) && w.len() == 0;
        let all = self.first(online);
        let inside = |w: &Scheduler| free(w) && !w.outside.load(Ordering::Relaxed);
        all.iter()
            .position(inside)
            .or_else(|| all.iter().position(free))
    }

    /// Returns the scheduler, from 0, for a process that follows those given to `home`, from 1.
    fn home(&self, home: usize, online: usize) -> usize {
        let idle = |w: &Scheduler| w.idle.load(Ordering::Relaxed);
        let stays = |w: &Scheduler| idle(w) || w.in_order.load(Ordering::Relaxed);
        if (1..=online).contains(&home) && stays(self.scheduler(home - 1)) {
            return home - 1;
        }
        let free = self.first(online).iter().position(idle);
        free.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed) % online)
    }

    /// Lets others steal the processes that wait behind the one that scheduler `me`, from 1, runs,
    /// because it will take long.
    pub(crate) fn let_others_steal(&self, me: usize) {
        let Some(w) = me.checked_sub(1).map(|i| self.scheduler(i)) else {
            return;
        };
        if !w.in_order.load(Ordering::Relaxed) {
            return;
        }
        w.in_order.store(false, Ordering::Relaxed);
        // As in `put`: a thread that has left a process to this scheduler did so before, or sees
        // that it doesn't keep it.
        fence(Ordering::SeqCst);
        if w.len() != 0 && self.idle.load(Ordering::Relaxed) != 0 {
            self.wake_one();
        }
    }

    /// Wakes an idle scheduler. The one that waits outside comes last, so that it may stay there.
    #[inline]
    fn wake_one(&self) {
        let mut outside = None;
        for w in self.first(self.online()) {
            if w.idle.load(Ordering::Relaxed) {
                if !w.outside.load(Ordering::Relaxed) {
                    w.wake(&self.hooks);
                    return;
                }
                outside = Some(w);
            }
        }
        if let Some(w) = outside {
            w.wake(&self.hooks);
        }
    }

    /// Wakes another scheduler if there is more work than scheduler `i` can do, which has just left
    /// its rest. Wake-ups for several schedulers may all have gone to this one.
    pub(crate) fn wake_another(&self, i: usize) {
        // Pairs with the fence in `put`: a thread that still considered this one idle has queued
        // its process by now.
        fence(Ordering::SeqCst);
        if self.idle.load(Ordering::Relaxed) != 0
            && self
                .started()
                .iter()
                .enumerate()
                .any(|(k, w)| match k == i {
                    // It was given several at once.
                    true => w.len() != 0 && w.work() >= WORTH / 2 && !w.keeps_order(),
                    false => !w.is_brief() && !w.keeps_order(),
                })
        {
            self.wake_one();
        }
    }

    /// Takes processes over from a scheduler that has more of the same priority. Without this, busy
    /// schedulers would keep whatever they happened to get. Of three processes on two schedulers,
    /// the third moves to and fro, so that all get their share in the end. If scheduler `i` has
    /// nothing of high priority or above, it also takes a single such process that waits for
    /// another scheduler, and what waits behind such processes.
    #[cold]
    #[inline(never)]
    fn balance(&self, i: usize) {
        self.balances.fetch_add(1, Ordering::Relaxed);
        let w = self.scheduler(i);
        let mine: [usize; LEVELS] = {
            let q = w.lock();
            std::array::from_fn(|l| q.levels[l].len())
        };
        let (high, max) = (Priority::High as usize, Priority::Max as usize);
        let calm = mine[high] + mine[max] == 0;
        let Some(other) = (0..self.online()).filter(|&k| k != i).max_by_key(|&k| {
            let v = self.scheduler(k);
            (calm && v.urgent.load(Ordering::Relaxed) != 0, v.len())
        }) else {
            return;
        };
        let mut got: Vec<(u32, usize)> = Vec::new();
        {
            let v = self.scheduler(other);
            let mut q = v.lock();
            let theirs = std::array::from_fn(|l| q.levels[l].len());
            let hogged = v.hogged.load(Ordering::Relaxed);
            for (l, want) in shares_to_take(&mine, &theirs, hogged)
                .into_iter()
                .enumerate()
            {
                for _ in 0..want {
                    // From the end, where processes have the longest wait ahead.
                    match q.levels[l].pop_back() {
                        Some(c) if self.hooks.bound(c) == 0 => {
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
            v.set_len(&q);
        }
        if !got.is_empty() {
            w.add(got.into_iter().rev());
        }
    }

    /// Hands the queue of scheduler `i`, which is offline, to those that are online. They might
    /// never come to look for it.
    #[cold]
    fn hand_over(&self, i: usize) {
        let w = self.scheduler(i);
        if w.len() == 0 {
            return;
        }
        let mut got: Vec<(u32, usize)> = Vec::new();
        got.extend(w.empty_slot().map(|c| (c, WOKEN)));
        {
            let mut q = w.lock();
            for l in 0..LEVELS {
                got.extend(q.levels[l].drain(..).map(|c| (c, l)));
            }
            q.len = 0;
            w.set_len(&q);
        }
        let online = self.online();
        for (k, (c, l)) in got.into_iter().enumerate() {
            let at = match self.hooks.bound(c) {
                0 => k % online,
                n => (n - 1) % online,
            };
            let to = self.scheduler(at);
            to.add(std::iter::once((c, l)));
            // As in `put`.
            fence(Ordering::SeqCst);
            if to.idle.load(Ordering::Relaxed) {
                to.wake(&self.hooks);
            }
        }
    }

    /// Looks at the first scheduler that has a single waiting process. `before` is the last look of
    /// scheduler `i`.
    #[inline]
    pub(crate) fn glance(&self, i: usize, before: Glance) -> Glance {
        let n = self.count();
        let v = (1..n)
            .map(|k| self.scheduler((i + k) % n))
            .find(|v| v.has_one())?;
        let picks = v.picks.load(Ordering::Relaxed);
        let same = before.filter(|b| b.picks == picks);
        let looks = same.map_or(0, |b| b.looks).saturating_add(1);
        Some(Seen { picks, looks })
    }

    /// Returns the next process for scheduler `i`, from its own queue or from another's. `glance`
    /// is its last look.
    pub fn next(&self, i: usize, glance: Glance) -> Option<u32> {
        let w = self.scheduler(i);
        let online = i < self.online();
        let picks = w.picks.load(Ordering::Relaxed);
        w.picks.store(picks.wrapping_add(1), Ordering::Relaxed);
        if picks.is_multiple_of(PICKS_PER_BALANCE) && online && w.len() != 0 {
            self.balance(i);
        }
        if !online {
            self.hand_over(i);
            return None;
        }
        if let Some(c) = w.take() {
            return Some(c);
        }
        self.steal(i, glance)
    }

    /// Whether a scheduler has run the same process for long.
    fn has_long_run(&self, v: &Scheduler, glance: Glance) -> bool {
        let same = |g: Seen| g.picks == v.picks.load(Ordering::Relaxed) && g.looks >= LOOKS_AT_ONE;
        v.has_one() && glance.is_some_and(same)
    }

    /// Steals half of another scheduler's processes, level by level, and returns the first. If
    /// there are some of high priority or above, it steals only those: others would wait behind
    /// them here.
    fn steal(&self, i: usize, glance: Glance) -> Option<u32> {
        let n = self.count();
        for k in 1..n {
            let v = self.scheduler((i + k) % n);
            let v_online = (i + k) % n < self.online();
            match v.len() {
                0 => continue,
                _ if v_online && v.keeps_order() => continue,
                // The process that runs there probably waits soon, for the one that waits here:
                // they would alternate on two processors, at a much higher price. If it keeps
                // running, the other is stolen a moment later. Short work isn't worth stealing at
                // all: a process that spawns many such ones has a slice for them.
                _ if v_online && v.is_brief() && !self.has_long_run(v, glance) => continue,
                _ => {}
            }
            // Half of them, so that the thief doesn't come back at once.
            let mut got: Vec<(u32, usize)> = Vec::new();
            {
                let mut q = v.lock();
                let most = q.len.div_ceil(2);
                for (k, l) in STEAL_ORDER.into_iter().enumerate() {
                    if k == URGENT_LEVELS && !got.is_empty() {
                        break;
                    }
                    let mut stay = Vec::new();
                    let want = most.min(got.len() + q.levels[l].len().div_ceil(2));
                    while got.len() < want {
                        match q.levels[l].pop_front() {
                            // Bound to a scheduler that is offline, a process runs where it can.
                            Some(c) if v_online && self.hooks.bound(c) != 0 => stay.push(c),
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
                v.set_len(&q);
            }
            // The process in the slot is stolen only if there is nothing else.
            if got.is_empty() {
                got.extend(v.empty_slot().map(|c| (c, WOKEN)));
            }
            let mut it = got.into_iter();
            let Some((first, _)) = it.next() else {
                continue;
            };
            if it.len() > 0 {
                self.scheduler(i).add(it);
            }
            return Some(first);
        }
        None
    }

    /// Puts scheduler `i`, which has found nothing, to sleep until it is woken, unless
    /// something has come meanwhile. `glanced` is its last look at the others. `patient`: it does
    /// not sleep while another has a single waiting process.
    pub fn rest(&self, i: usize, glanced: Glance, patient: bool) -> Rest<H::Found> {
        let w = self.scheduler(i);
        *w.parked.lock() = Parked::Here;
        w.idle.store(true, Ordering::Relaxed);
        let idle = self.idle.fetch_add(1, Ordering::Relaxed) + 1;
        self.hooks.rests(i, idle);
        // Pairs with the fence in `put`.
        fence(Ordering::SeqCst);
        let rest = if let Some(c) = self.next(i, glanced) {
            Rest::Found(c)
        } else if patient && i < self.online() && self.glance(i, glanced).is_some() {
            Rest::Again
        } else {
            self.sleep(i)
        };
        w.idle.store(false, Ordering::Relaxed);
        let idle = self.idle.fetch_sub(1, Ordering::Relaxed) - 1;
        self.hooks.works(i, idle);
        rest
    }

    /// Sleeps until the mark of scheduler `i` is gone, or an event arrives from outside.
    fn sleep(&self, i: usize) -> Rest<H::Found> {
        let w = self.scheduler(i);
        let mut p = w.parked.lock();
        let online = self.online();
        let awake = |k: usize| k < online && !self.scheduler(k).idle.load(Ordering::Relaxed);
        if *p == Parked::Here && i < online && self.hooks.may_wait_outside(i, awake) {
            *p = Parked::Outside;
            w.outside.store(true, Ordering::Relaxed);
            drop(p);
            self.hooks.sleeps(true);
            let found = self.hooks.wait_outside();
            self.hooks.sleeps(false);
            w.outside.store(false, Ordering::Relaxed);
            *w.parked.lock() = Parked::No;
            self.hooks.woken(i);
            return Rest::Outside(found);
        }
        self.hooks.sleeps(true);
        while *p != Parked::No {
            p = w.unpark.wait(p);
        }
        drop(p);
        self.hooks.sleeps(false);
        self.hooks.woken(i);
        Rest::Woken
    }

    /// Brings `n` schedulers online and `start`s those that don't exist; if that fails, there are
    /// fewer. The others rest after the process that they run, and the rest take what is in their
    /// queues. Returns the previous number.
    pub(crate) fn set_online(&self, n: usize, start: impl Fn(usize) -> bool) -> usize {
        let n = n.clamp(1, self.most);
        // The threads that start find the schedulers made.
        self.scheduler(0);
        let before = self.online.swap(n, Ordering::SeqCst);
        while self.count() < n {
            let i = self.started.fetch_add(1, Ordering::SeqCst);
            if !start(i) {
                self.started.fetch_sub(1, Ordering::SeqCst);
                self.online.store(i.max(1), Ordering::SeqCst);
                break;
            }
        }
        // Wakes those that came online, and those that must take over the work of the others.
        for w in self.started() {
            w.wake(&self.hooks);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_with_more_of_normal_priority_takes_none() {
        let (normal, low) = (Priority::Normal as usize, Priority::Low as usize);
        let taken = |mine: [(usize, usize); 2], theirs: [(usize, usize); 2]| {
            let of = |queued: [(usize, usize); 2]| {
                let mut n = [0; LEVELS];
                queued.into_iter().for_each(|(l, k)| n[l] = k);
                n
            };
            let n = shares_to_take(&of(mine), &of(theirs), false);
            EQUAL.iter().map(|&l| n[l]).sum::<usize>()
        };
        // Three that have had several slices here; one that runs soon on the other, beside many of
        // low priority.
        assert_eq!(taken([(OWING, 3), (low, 10)], [(normal, 1), (low, 10)]), 0);
        // One of three runs on the other: the one that waits there moves here.
        assert_eq!(taken([(normal, 1), (low, 0)], [(OWING, 1), (low, 0)]), 1);
        assert_eq!(taken([(normal, 0), (low, 1)], [(OWING, 4), (low, 1)]), 3);
    }
}
