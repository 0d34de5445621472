//! The run queues: who puts a process where, who takes it, and how schedulers sleep and are woken. Processes are numbers
//! here (the indices of their cells).
//!
//! The order within a queue is up to [`super::order`].
//!
//! # The next one
//! A process that a scheduler's process wakes or makes while nothing waits there does not go to the queue, but to a slot beside it: two
//! processes that talk to each other, or a message that goes around, take neither lock nor queue. The slot counts as part of the
//! queue for everybody. Only its scheduler fills it; it and others empty it.
//!
//! # One behind the other
//! Processes that a connection to another node wakes go to one scheduler ([`RunQueues::put_in_order`]), and while they are few
//! they stay there: what it brought first has run, or used up a slice, when what it brought next runs. That is no promise, but
//! programs come to rely on it. Whatever else comes to that queue ends it, and so does a long collection
//! ([`RunQueues::let_others`]).
//!
//! # Invariants
//! * What was put is in one queue, or in the hands of one scheduler that is about to queue or to run it.
//! * A scheduler sleeps only after it has published that it is idle and then found every queue empty (but for those with one
//!   process, whose scheduler is awake); whoever queues a process looks at the idle schedulers after that. Two fences order
//!   this. So no process waits while all schedulers sleep.
//! * One of those that sleep does so outside, where something else may wake it as well ([`crate::poll`]). It tells of what it
//!   has found there when it is no longer idle.
//! * A scheduler that was woken, or found something while others thought it idle, wakes the next one if there is more to
//!   do: what was meant to wake several may have woken it several times.
//! * Locks of queues are not held together, and nothing is called out to with one held but [`Hooks::bound`] and what
//!   [`RunQueues::raise`] is given.

pub(crate) use super::order::Comes;
// The models have no use for it.
#[allow(unused_imports)]
pub(crate) use super::order::TURN_SLICES;
use super::order::{EQUAL, LEVELS, OWING, Queues, SLICE, STEAL_ORDER, URGENT_LEVELS, WOKEN};
use crate::process::state::Priority;
use crate::sync::{
    AtomicBool, AtomicU32, AtomicUsize, Condvar, Mutex, Ordering, Spin, SpinGuard, fence,
};

/// Work, in reductions, that it pays to take over from another scheduler, or to wake one for: see [`Queues::work`]. To do so costs
/// both some microseconds, as much as the start and end of ten processes that do nothing.
const WORTH: usize = SLICE as usize / 2;

/// Looks for which a scheduler must have run the same process before others take the only one that waits. A process that has sent
/// something often has a little left to do before it waits, and what it woke goes on where it was.
const LOOKS_AT_ONE: u32 = 6;

/// Processes that wait one behind the other, in the queue of one scheduler, while others sleep: see [`RunQueues::put_in_order`].
const FEW_IN_ORDER: usize = 4;

/// Processes that a scheduler takes from its queue between two looks at the others'.
const PICKS_PER_BALANCE: usize = 128;

/// Where a scheduler sleeps, or is about to, until somebody takes this away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parked {
    No,
    /// At its own bell.
    Here,
    /// Where something from outside wakes it too: [`Hooks::wait_outside`].
    Outside,
}

/// One scheduler, as others see it. On cache lines of its own.
#[repr(align(128))]
struct Scheduler {
    queue: Spin<Queues>,
    /// Length of the queue, for those who look for work.
    len: AtomicUsize,
    /// The work of what is in it, as far as it is known: see [`WORTH`].
    work: AtomicUsize,
    /// The work of what goes next, if there is something.
    pace: AtomicUsize,
    /// Processes in it that are of high priority or above.
    urgent: AtomicUsize,
    /// The process that it took from its queue last was one of these.
    hogged: AtomicBool,
    /// The process that it took last came from among those that had used up a time slice.
    used: AtomicBool,
    /// The process that it took last was in its queue, and is to be timed. This and the next are for this scheduler only.
    from_queue: AtomicBool,
    timed: AtomicBool,
    /// The use of the last one from its queue, in reductions and, if it was timed, nanoseconds; the queue hasn't been told.
    untold: AtomicBool,
    ran: AtomicUsize,
    took: AtomicUsize,
    /// It runs one process for so long that what waits is for all to take: see [`RunQueues::rescue`].
    stuck: AtomicBool,
    /// The process that goes next, of normal priority, plus one; 0: none.
    slot: AtomicU32,
    /// The processes that wait here, and the one that runs, have come one behind the other from one source.
    in_order: AtomicBool,
    parked: Mutex<Parked>,
    unpark: Condvar,
    idle: AtomicBool,
    /// It sleeps outside, or is about to.
    outside: AtomicBool,
    /// Looks for a process, by this scheduler only.
    picks: AtomicUsize,
}

impl Scheduler {
    fn new() -> Scheduler {
        Scheduler {
            queue: Spin::new(Queues::default()),
            len: AtomicUsize::new(0),
            work: AtomicUsize::new(0),
            pace: AtomicUsize::new(WORTH / 2),
            urgent: AtomicUsize::new(0),
            hogged: AtomicBool::new(false),
            used: AtomicBool::new(false),
            from_queue: AtomicBool::new(false),
            timed: AtomicBool::new(false),
            untold: AtomicBool::new(false),
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
        // Whoever has taken the mark away has rung; until the scheduler comes to run that is as good, and costs no call of the
        // system for each process that is queued meanwhile.
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
    /// The work of what waits here, as far as it is known.
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
    /// A single process waits here that is not short: others take it where this scheduler goes on running something else.
    #[inline]
    fn has_one(&self) -> bool {
        self.len() == 1 && self.work() >= WORTH / 2
    }
    /// Something waits here which is likely to be done by the time that another scheduler had it: it is short, or its scheduler
    /// is about to take it.
    #[inline]
    fn is_brief(&self) -> bool {
        (self.len() == 1 || self.work() < WORTH) && !self.stuck.load(Ordering::Relaxed)
    }
    /// Whether others leave what waits here to this scheduler.
    #[inline]
    fn keeps(&self) -> bool {
        self.in_order.load(Ordering::Relaxed) && self.len() <= FEW_IN_ORDER
    }
    /// This scheduler: has a process go next, if nothing waits.
    #[inline]
    fn fill_slot(&self, cell: u32) -> bool {
        let free = self.len() == 0;
        if free {
            self.slot.store(cell + 1, Ordering::Release);
        }
        free
    }
    /// Whoever: takes that process, if it is what was to go next.
    #[inline]
    fn take_from_slot(&self, cell: u32) -> bool {
        self.slot.load(Ordering::Relaxed) == cell + 1
            && self
                .slot
                .compare_exchange(cell + 1, 0, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }
    /// Whoever: takes what was to go next.
    #[inline]
    fn empty_slot(&self) -> Option<u32> {
        if self.slot.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.slot.swap(0, Ordering::Acquire).checked_sub(1)
    }
    /// To be called before the lock is given back.
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
        if self.untold.load(Ordering::Relaxed) {
            self.untold.store(false, Ordering::Relaxed);
            let took = self.took.load(Ordering::Relaxed) as i64;
            q.ran(self.ran.load(Ordering::Relaxed) as i64, took);
        }
        if let Some(c) = next {
            // It came first; but there may be some of higher priority now.
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
    /// Puts processes where they were taken from another.
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

/// How many processes of each level a scheduler that has `mine` takes from one that has `theirs` waiting; `hogged`: what is of
/// high priority or above runs there for long.
fn to_take(mine: &[usize; LEVELS], theirs: &[usize; LEVELS], hogged: bool) -> [usize; LEVELS] {
    let urgent = [Priority::High as usize, Priority::Max as usize];
    let calm = urgent.iter().all(|&l| mine[l] == 0);
    // All of normal priority count together: what has just had several slices is one of them.
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
        // They wait there for as long as what is of high priority runs.
        if hogged {
            return theirs.div_ceil(2);
        }
        // One more runs there, and none here; if it is one by which they have more, it is the other's turn to have that.
        let want = (theirs + 2).saturating_sub(mine) / 2;
        if !EQUAL.contains(&l) {
            return want;
        }
        let want = want.min(due);
        due -= want;
        want
    })
}

/// The services that the queues ask of the runtime.
pub(crate) trait Hooks {
    /// The number, from 1, of the only scheduler that a process may run on; 0: any.
    fn bound(&self, cell: u32) -> usize;
    /// Scheduler `i` has nothing to do from now on (or again has); `idle` schedulers have not.
    fn rests(&self, i: usize, idle: usize);
    /// This thread is about to sleep, or has slept.
    fn sleeps(&self, on: bool);
    fn works(&self, i: usize, idle: usize);
    /// This thread is about to wake a scheduler that sleeps.
    fn wakes(&self) {}
    /// This thread is scheduler `i`, and has been woken.
    fn woken(&self, _i: usize) {}
    /// The finds of a scheduler outside.
    type Found;
    /// Whether this scheduler is to sleep where something from outside wakes it, too, as one of them may at a time. If so
    /// [`Hooks::wait_outside`] follows.
    fn may_wait_outside(&self) -> bool;
    /// Sleeps there until something has come, or somebody has called [`Hooks::ring`].
    fn wait_outside(&self) -> Self::Found;
    fn ring(&self);
}

/// See the module head.
pub(crate) struct RunQueues<H> {
    schedulers: Vec<Scheduler>,
    /// Schedulers that exist, and that may run processes.
    online: AtomicUsize,
    started: AtomicUsize,
    idle: AtomicUsize,
    next: AtomicUsize,
    /// Times that schedulers have compared their queues.
    balances: AtomicUsize,
    pub hooks: H,
}

/// A look at another scheduler, which has a single process that is left to it unless it goes on running something else.
pub(crate) type Glance = Option<Seen>;

/// See [`Glance`].
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// How often it has taken a process.
    picks: usize,
    /// Looks in a row that have found it so.
    looks: u32,
}

impl Seen {
    /// As if it had been so for long.
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
    /// It didn't sleep, since somebody has a single process that was not there before, or is another one now.
    Again,
    /// It slept.
    Woken,
    /// It slept outside, and has found that.
    Outside(F),
}

impl<H: Hooks> RunQueues<H> {
    /// Queues of at most `n` schedulers, of which none is there and one is online.
    pub fn new(n: usize, hooks: H) -> RunQueues<H> {
        RunQueues {
            schedulers: (0..n).map(|_| Scheduler::new()).collect(),
            online: AtomicUsize::new(1),
            started: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            balances: AtomicUsize::new(0),
            hooks,
        }
    }
    /// Schedulers that exist.
    #[inline]
    pub fn count(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }
    /// Schedulers that run processes.
    #[inline]
    pub(crate) fn online(&self) -> usize {
        self.online.load(Ordering::Relaxed)
    }
    /// Times that schedulers have compared their queues.
    #[inline]
    pub(crate) fn balances(&self) -> usize {
        self.balances.load(Ordering::Relaxed)
    }
    #[inline]
    fn started(&self) -> &[Scheduler] {
        &self.schedulers[..self.count()]
    }
    /// Processes in each queue.
    #[inline]
    pub fn lengths(&self) -> Vec<usize> {
        self.started().iter().map(|w| w.len()).collect()
    }
    /// Whether scheduler `i` has nothing to do.
    #[inline]
    pub(crate) fn is_idle(&self, i: usize) -> bool {
        self.schedulers[i].idle.load(Ordering::SeqCst)
    }
    /// Scheduler `i` runs nothing any more.
    #[inline]
    pub(crate) fn retire(&self, i: usize) {
        self.schedulers[i].idle.store(true, Ordering::SeqCst);
    }

    /// A process that waits for a scheduler which has taken nothing since the last call is for all to take, however brief it may be: a native that
    /// takes very long isn't interrupted at the end of a slice. `seen`: for the next call.
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
        self.schedulers[i].timed.load(Ordering::Relaxed)
    }

    /// The process that scheduler `i` took last has used so many reductions, and nanoseconds if it was timed.
    #[inline]
    pub(crate) fn ran(&self, i: usize, reductions: i64, nanoseconds: i64) {
        let w = &self.schedulers[i];
        if w.from_queue.load(Ordering::Relaxed) {
            w.untold.store(true, Ordering::Relaxed);
            w.ran.store(reductions.max(0) as usize, Ordering::Relaxed);
            w.took.store(nanoseconds.max(0) as usize, Ordering::Relaxed);
        }
    }

    /// A process that waits in a queue comes there at a higher priority, once. `mark` is called then, while nobody can take
    /// it from there.
    pub fn raise(&self, cell: u32, prio: Priority, mark: impl FnOnce()) {
        for w in self.started() {
            if w.len() == 0 {
                continue;
            }
            let mut q = w.lock();
            let next = prio > Priority::Normal && w.take_from_slot(cell);
            if next {
                q.push(cell, prio, Comes::Woken);
            }
            if next || q.raise(cell, prio) {
                w.set_len(&q);
                mark();
                return;
            }
        }
    }

    /// Whether scheduler `me`, from 1, has taken the process that it runs from among those of normal priority that had used up
    /// a time slice.
    #[inline]
    pub(crate) fn took_used(&self, me: usize) -> bool {
        me != 0 && self.schedulers[me - 1].used.load(Ordering::Relaxed)
    }

    /// Queues a process of normal priority that scheduler `me`, from 1, runs and whose long turn is not over: it goes on before
    /// all but those that were woken. Taken elsewhere meanwhile, it has its next turn there.
    #[inline]
    pub(crate) fn go_on(&self, cell: u32, me: usize) {
        if me == 0 || me > self.online() {
            return self.put(cell, Priority::Normal, Comes::Spent, me);
        }
        self.put_first(cell, OWING, me);
    }

    /// Queues a process that scheduler `me`, from 1, has taken from its queue before its turn: it goes before all others of
    /// its priority.
    #[inline]
    pub(crate) fn put_back(&self, cell: u32, prio: Priority, me: usize) {
        if me == 0 || me > self.online() {
            return self.put(cell, prio, Comes::Spent, me);
        }
        let level = match prio {
            Priority::Normal => WOKEN,
            p => p as usize,
        };
        self.put_first(cell, level, me);
    }

    fn put_first(&self, cell: u32, level: usize, me: usize) {
        let w = &self.schedulers[me - 1];
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

    /// Queues a process. `me`: number of the scheduler that this thread is, from 1; 0: none.
    pub fn put(&self, cell: u32, prio: Priority, comes: Comes, me: usize) {
        let online = self.online();
        let bound = self.hooks.bound(cell);
        let at = if bound != 0 {
            (bound - 1) % online
        } else if me != 0 && me <= online {
            me - 1
        } else {
            // From a thread that runs no processes: to one that has nothing to do, or spread.
            self.free(online)
                .unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed) % online)
        };
        let w = &self.schedulers[at];
        let mine = at + 1 == me;
        let first = matches!(comes, Comes::Woken | Comes::New);
        let slot = mine && bound == 0 && first && prio == Priority::Normal;
        if slot && w.fill_slot(cell) {
            return;
        }
        let brief = {
            let mut q = w.lock();
            q.push(cell, prio, comes);
            w.in_order.store(false, Ordering::Relaxed);
            w.set_len(&q);
            w.is_brief()
        };
        if mine && brief {
            // This scheduler comes to it soon when it is done with the process that runs. If that takes longer than a slice, it is
            // queued then, and counts as work.
            return;
        }
        // Against that in `rest`.
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

    /// Queues a process behind those that came from the same source before, whose scheduler was `home`, from 1 (0: none did yet).
    /// That one has it too, unless it has come to do something else while another has nothing to do. The number of the
    /// scheduler that has it.
    pub(crate) fn put_in_order(
        &self,
        cell: u32,
        prio: Priority,
        comes: Comes,
        home: usize,
        me: usize,
    ) -> usize {
        if self.hooks.bound(cell) != 0 {
            self.put(cell, prio, comes, me);
            return home;
        }
        let online = self.online();
        let at = match (1..=online).contains(&me) {
            true => me - 1,
            false => self.home(home, online),
        };
        let w = &self.schedulers[at];
        let mine = at + 1 == me;
        let len = {
            let mut q = w.lock();
            // It begins with what finds nothing.
            let first = w.len() == 0 && (mine || w.idle.load(Ordering::Relaxed));
            q.push(cell, prio, comes);
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
            } else if !w.keeps() {
                self.wake_one();
            }
        }
        at + 1
    }

    /// A scheduler, from 0, that has nothing to do and was given nothing yet; rather one that doesn't wait outside.
    #[inline]
    fn free(&self, online: usize) -> Option<usize> {
        if self.idle.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let free = |w: &Scheduler| w.idle.load(Ordering::Relaxed) && w.len() == 0;
        let all = &self.schedulers[..online];
        let inside = |w: &Scheduler| free(w) && !w.outside.load(Ordering::Relaxed);
        all.iter()
            .position(inside)
            .or_else(|| all.iter().position(free))
    }

    /// The scheduler, from 0, for what comes behind what `home`, from 1, was given.
    fn home(&self, home: usize, online: usize) -> usize {
        let idle = |w: &Scheduler| w.idle.load(Ordering::Relaxed);
        let stays = |w: &Scheduler| idle(w) || w.in_order.load(Ordering::Relaxed);
        if (1..=online).contains(&home) && stays(&self.schedulers[home - 1]) {
            return home - 1;
        }
        let free = self.schedulers[..online].iter().position(idle);
        free.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed) % online)
    }

    /// The process that scheduler `me`, from 1, runs will take long: those that wait behind it are for all to take.
    pub(crate) fn let_others(&self, me: usize) {
        let Some(w) = me.checked_sub(1).map(|i| &self.schedulers[i]) else {
            return;
        };
        if !w.in_order.load(Ordering::Relaxed) {
            return;
        }
        w.in_order.store(false, Ordering::Relaxed);
        // As in `put`: whoever has put something and left it to this scheduler did so before, or sees that it doesn't keep it.
        fence(Ordering::SeqCst);
        if w.len() != 0 && self.idle.load(Ordering::Relaxed) != 0 {
            self.wake_one();
        }
    }

    /// Wakes a scheduler that has nothing to do: the one that waits outside last, so that it may stay there.
    #[inline]
    fn wake_one(&self) {
        let mut outside = None;
        for w in &self.schedulers[..self.online()] {
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

    /// Scheduler `i` has come out of its rest with something to do: if there is more than one scheduler can do, another is to
    /// come. Wake-ups that were meant for several may all have gone to this one.
    pub(crate) fn pass_on(&self, i: usize) {
        // Against that in `put`: whoever has taken this one for idle after all has queued something by now.
        fence(Ordering::SeqCst);
        if self.idle.load(Ordering::Relaxed) != 0
            && self
                .started()
                .iter()
                .enumerate()
                .any(|(k, w)| match k == i {
                    // It has been given several at once.
                    true => w.len() != 0 && w.work() >= WORTH / 2 && !w.keeps(),
                    false => !w.is_brief() && !w.keeps(),
                })
        {
            self.wake_one();
        }
    }

    /// Scheduler `i`, which has enough to do, takes processes over from one that has more of the same priority: schedulers
    /// that never rest would otherwise go on with what they happened to get. Of three processes on two schedulers the third
    /// goes to and fro, so that each has its share in the end. Where this one has nothing of high priority or
    /// above, a single one that waits for another scheduler comes here too, and so does what waits behind such processes.
    #[cold]
    #[inline(never)]
    fn balance(&self, i: usize) {
        self.balances.fetch_add(1, Ordering::Relaxed);
        let w = &self.schedulers[i];
        let mine: [usize; LEVELS] = {
            let q = w.lock();
            std::array::from_fn(|l| q.levels[l].len())
        };
        let (high, max) = (Priority::High as usize, Priority::Max as usize);
        let calm = mine[high] + mine[max] == 0;
        let Some(other) = (0..self.online()).filter(|&k| k != i).max_by_key(|&k| {
            let v = &self.schedulers[k];
            (calm && v.urgent.load(Ordering::Relaxed) != 0, v.len())
        }) else {
            return;
        };
        let mut got: Vec<(u32, usize)> = Vec::new();
        {
            let v = &self.schedulers[other];
            let mut q = v.lock();
            let theirs = std::array::from_fn(|l| q.levels[l].len());
            let hogged = v.hogged.load(Ordering::Relaxed);
            for (l, want) in to_take(&mine, &theirs, hogged).into_iter().enumerate() {
                for _ in 0..want {
                    // From the end, which waits longest.
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

    /// Scheduler `i` is offline: what is in its queue goes to those that are not, which may never come to look for it.
    #[cold]
    fn hand_over(&self, i: usize) {
        let w = &self.schedulers[i];
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
            let to = &self.schedulers[at];
            to.add(std::iter::once((c, l)));
            // As in `put`.
            fence(Ordering::SeqCst);
            if to.idle.load(Ordering::Relaxed) {
                to.wake(&self.hooks);
            }
        }
    }

    /// A look of scheduler `i` at the first scheduler that has a single process; `before`: its last look.
    #[inline]
    pub(crate) fn glance(&self, i: usize, before: Glance) -> Glance {
        let n = self.count();
        let v = (1..n)
            .map(|k| &self.schedulers[(i + k) % n])
            .find(|v| v.has_one())?;
        let picks = v.picks.load(Ordering::Relaxed);
        let same = before.filter(|b| b.picks == picks);
        let looks = same.map_or(0, |b| b.looks).saturating_add(1);
        Some(Seen { picks, looks })
    }

    /// The next process for scheduler `i`: of its own queue, or of another's. `glance`: that of a moment ago.
    pub fn next(&self, i: usize, glance: Glance) -> Option<u32> {
        let w = &self.schedulers[i];
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

    /// Whether a scheduler runs the same process for long by now.
    fn has_long_run(&self, v: &Scheduler, glance: Glance) -> bool {
        let same = |g: Seen| g.picks == v.picks.load(Ordering::Relaxed) && g.looks >= LOOKS_AT_ONE;
        v.has_one() && glance.is_some_and(same)
    }

    /// Takes half of another's processes, of each level; the first is the answer. Where there are some of high priority or
    /// above it takes of these only: whatever else came along would wait behind them here.
    fn steal(&self, i: usize, glance: Glance) -> Option<u32> {
        let n = self.count();
        for k in 1..n {
            let v = &self.schedulers[(i + k) % n];
            let v_online = (i + k) % n < self.online();
            match v.len() {
                0 => continue,
                _ if v_online && v.keeps() => continue,
                // It is likely that the one that runs there is about to wait, for this one: as they would take turns on
                // two processors, at a much higher price. Where it goes on running the other is taken a moment later.
                // What is short isn't worth the way at all: one that makes others is at it for a slice.
                _ if v_online && v.is_brief() && !self.has_long_run(v, glance) => continue,
                _ => {}
            }
            // Half of what is there, so that thieves don't come again at once.
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
                            // Those of schedulers that are offline run where they can.
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
            // The process that goes next there, only where nothing else is.
            if got.is_empty() {
                got.extend(v.empty_slot().map(|c| (c, WOKEN)));
            }
            let mut it = got.into_iter();
            let Some((first, _)) = it.next() else {
                continue;
            };
            if it.len() > 0 {
                self.schedulers[i].add(it);
            }
            return Some(first);
        }
        None
    }

    /// Scheduler `i` has found nothing: it sleeps until somebody wakes it, unless something has come meanwhile. `glanced`:
    /// what it saw of the others before. `patient`: it does not sleep while somebody has a single process either.
    pub fn rest(&self, i: usize, glanced: Glance, patient: bool) -> Rest<H::Found> {
        let w = &self.schedulers[i];
        *w.parked.lock() = Parked::Here;
        w.idle.store(true, Ordering::Relaxed);
        let idle = self.idle.fetch_add(1, Ordering::Relaxed) + 1;
        self.hooks.rests(i, idle);
        // Against that in `put`.
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

    /// Scheduler `i` sleeps until its mark is gone, or something has come from outside.
    fn sleep(&self, i: usize) -> Rest<H::Found> {
        let w = &self.schedulers[i];
        let mut p = w.parked.lock();
        if *p == Parked::Here && i < self.online() && self.hooks.may_wait_outside() {
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

    /// Makes `n` schedulers run processes, and `start`s those that don't exist; where that fails there are fewer. The others
    /// rest when they are done with the process they run, and what is in their queues is taken by the rest. The number
    /// that was online before.
    pub(crate) fn set_online(&self, n: usize, start: impl Fn(usize) -> bool) -> usize {
        let n = n.clamp(1, self.schedulers.len());
        let before = self.online.swap(n, Ordering::SeqCst);
        while self.count() < n {
            let i = self.started.fetch_add(1, Ordering::SeqCst);
            if !start(i) {
                self.started.fetch_sub(1, Ordering::SeqCst);
                self.online.store(i.max(1), Ordering::SeqCst);
                break;
            }
        }
        // Those that came online, and those that have to find the work of the others.
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
    fn who_has_more_of_normal_priority_takes_none_whatever_their_levels() {
        let (normal, low) = (Priority::Normal as usize, Priority::Low as usize);
        let taken = |mine: [(usize, usize); 2], theirs: [(usize, usize); 2]| {
            let of = |queued: [(usize, usize); 2]| {
                let mut n = [0; LEVELS];
                queued.into_iter().for_each(|(l, k)| n[l] = k);
                n
            };
            let n = to_take(&of(mine), &of(theirs), false);
            EQUAL.iter().map(|&l| n[l]).sum::<usize>()
        };
        // Three that have had several slices, and one that runs soon on the other, besides many of low priority.
        assert_eq!(taken([(OWING, 3), (low, 10)], [(normal, 1), (low, 10)]), 0);
        // Of three, one runs on the other: the one that waits there comes here.
        assert_eq!(taken([(normal, 1), (low, 0)], [(OWING, 1), (low, 0)]), 1);
        assert_eq!(taken([(normal, 0), (low, 1)], [(OWING, 4), (low, 1)]), 3);
    }
}
