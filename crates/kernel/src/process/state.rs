//! The state word of a process: who runs it, where it is queued, what waits for it.
//!
//! # Bits
//! | bit | meaning | set by | cleared by |
//! | --- | --- | --- | --- |
//! | `RUNNING` | a thread runs it (normal or dirty) and owns its cell | that thread | that thread |
//! | `QUEUED` | it is in exactly one run queue | whoever queues it | the thread that dequeues it |
//! | `SIGNALS` | its queue in transit may hold something new | senders, after the push; the owner, for what it has put off | the owner, before it fetches |
//! | `TIMEOUT` | its receive timer has fired | the timer service; the owner, to look at it once more | the owner |
//! | `OVER` | with `TIMEOUT`: the timer fired while it waited and had looked at all that had come | the timer service | the owner |
//! | `SUSPENDED` | it does not run Erlang code, but handles signals | the owner | the owner |
//! | `EXITING` | it handles nothing any more | the owner | never (the cell is made anew) |
//! | `ALIVE` | the cell holds a process | spawn | the owner, at the very end |
//! | `GREW` | it waits, and compacting it may give memory back | the owner, as it begins to wait | whoever takes it next |
//! | `AGED` | it has waited with `GREW` since the last round of upkeep | upkeep | whoever takes it next |
//! | `RAISED` | it waits in a run queue above its priority, to do what signals ask of it | whoever put it there, under the queue's lock | the thread that dequeues it |
//! | `QUIET` | it is sensitive: whoever sends it an exit signal doesn't tell those who trace | the owner | the owner |
//! | `OWN_THREAD` | it runs on a thread of its own, never in a run queue | spawn | never |
//! | `LONG_QUEUE` | much was in transit when it last looked: senders give way sooner | the owner | the owner |
//! | `DIRTY` | it is queued to run on a dirty thread: it waits in a pool, or has left its place there to do what signals ask of it | the owner, with `QUEUED` | the thread that dequeues it |
//! | `DIRTY_IO` | with `DIRTY`: the pool is that for input and output | the owner, with `DIRTY` | the thread that dequeues it |
//! | `CONTROL` | a signal that is no message may be in transit, or what it asks for not done yet | senders, with `SIGNALS`; upkeep, which runs it for a while | the owner, when all is done and it runs code |
//! | priority, 2 bits | 0 low, 1 normal, 2 high, 3 max | the owner | |
//!
//! A word of zeros is a free cell: the memory behind cells that are free may be given back to the system.
//!
//! # Rules
//! 1. Fields of a cell other than this word, the queue in transit and the id are touched by the owner alone: the
//!    thread that set `RUNNING`, or that holds the cell before it was published.
//! 2. A process that neither runs nor is queued waits. `SIGNALS` or `TIMEOUT` set by a thread that sees it wait obliges
//!    that thread to queue it; the compare-and-swap that sets `QUEUED` elects one.
//! 3. The owner that wants to wait clears `RUNNING` by compare-and-swap against a word without `SIGNALS` and `TIMEOUT`.
//!    If either is set it keeps the process. So no wake-up is lost.
//! 4. A wake-up may hit a cell that has been given to another process meanwhile. That process finds nothing new and
//!    waits again: wake-ups carry no meaning of their own.
//! 5. Nobody waits for a dirty thread with a control signal: whoever sets the last of `DIRTY`,
//!    `SIGNALS` and `CONTROL` has the process leave the pool for a run queue, keeping its place
//!    (`sched/pool.rs`). A sender learns of that from [`Wake::Dirty`]; the owner, which sets
//!    `DIRTY`, asks [`State::calls_from_pool`] under the lock of the pool.
//!
//! Nobody else flips a bit: each way from one state to another is a method, which says who may call it and, in builds with debug
//! assertions, holds it against the word as it was.

use crate::sync::{AtomicU32, Ordering};

const RUNNING: u32 = 1 << 0;
const QUEUED: u32 = 1 << 1;
const SIGNALS: u32 = 1 << 2;
const TIMEOUT: u32 = 1 << 3;
const SUSPENDED: u32 = 1 << 4;
const EXITING: u32 = 1 << 5;
const ALIVE: u32 = 1 << 6;
const GREW: u32 = 1 << 10;
const AGED: u32 = 1 << 11;
const OWN_THREAD: u32 = 1 << 12;
const RAISED: u32 = 1 << 13;
const LONG_QUEUE: u32 = 1 << 14;
const QUIET: u32 = 1 << 15;
const CONTROL: u32 = 1 << 16;
const DIRTY: u32 = 1 << 17;
const DIRTY_IO: u32 = 1 << 18;
/// Cleared by whoever dequeues the process.
const WAITED: u32 = QUEUED | GREW | AGED | RAISED | DIRTY | DIRTY_IO;
const OVER: u32 = 1 << 19;
const PRIO_SHIFT: u32 = 8;
const PRIO_MASK: u32 = 3 << PRIO_SHIFT;

/// Priorities, in the order in which they are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Priority {
    Low,
    Normal,
    High,
    Max,
}

impl Priority {
    const ALL: [Priority; 4] = [
        Priority::Low,
        Priority::Normal,
        Priority::High,
        Priority::Max,
    ];
}

/// The duty of a waker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Wake {
    /// The waker has set `QUEUED`: it must put the process into a run queue of that priority.
    Enqueue(Priority),
    /// Somebody runs it, or has queued it, and will see the bit.
    Seen,
    /// As `Seen`, and it has `LONG_QUEUE`.
    Behind,
    /// It waits in a dirty pool (true: for input and output). The waker must have it leave the
    /// pool: see rule 5.
    Dirty(bool),
}

/// What the receive timer of a process has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Timeout {
    /// It has not fired.
    None,
    /// It has fired. Messages may have come before, which the process has not looked at.
    Fired,
    /// It has fired, and all that the process has not looked at came later.
    Over,
}

/// The outcome of an attempt to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Wait {
    /// The process waits; the caller no longer owns it.
    Waiting,
    /// Signals or a timeout came first: the caller still owns it.
    Awake,
}

/// The state that upkeep found when it came by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Age {
    /// Nothing to be done about this one.
    Nothing,
    /// It has been seen waiting for the first time.
    First,
    /// It has waited since it was last seen: the caller owns it now.
    Owned,
}

/// A look at the word, which may be another one by now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot(u32);

impl Snapshot {
    /// The cell holds a process.
    #[inline]
    pub fn is_alive(self) -> bool {
        self.0 & ALIVE != 0
    }
    /// A thread runs it.
    #[inline]
    pub fn is_running(self) -> bool {
        self.0 & RUNNING != 0
    }
    /// It is in a run queue.
    #[inline]
    pub fn is_queued(self) -> bool {
        self.0 & QUEUED != 0
    }
    /// Something has come that it did not look at: a signal, or its timeout.
    #[inline]
    pub(crate) fn has_news(self) -> bool {
        self.0 & (SIGNALS | TIMEOUT) != 0
    }
    /// It runs, is to run, or something has come that it did not look at.
    #[inline]
    pub fn is_busy(self) -> bool {
        self.is_running() || self.is_queued() || self.has_news()
    }
    /// It runs no Erlang code.
    #[inline]
    pub fn is_suspended(self) -> bool {
        self.0 & SUSPENDED != 0
    }
    /// It runs code, and nothing that was sent to it before this look, by whoever looks, may yet end it, suspend it or have it do
    /// anything else.
    #[inline]
    pub fn runs_undisturbed(self) -> bool {
        self.0 & (ALIVE | RUNNING | SUSPENDED | EXITING | CONTROL) == ALIVE | RUNNING
    }
    /// There may be more to be done for it than to put messages into its mailbox.
    #[inline]
    pub(crate) fn has_control(self) -> bool {
        self.0 & CONTROL != 0
    }
    /// It handles nothing any more.
    #[inline]
    pub fn is_exiting(self) -> bool {
        self.0 & EXITING != 0
    }
    /// It is sensitive.
    #[inline]
    pub(crate) fn is_quiet(self) -> bool {
        self.0 & QUIET != 0
    }
    /// It has a thread to itself.
    #[inline]
    pub(crate) fn has_own_thread(self) -> bool {
        self.0 & OWN_THREAD != 0
    }
}

/// The bits that a scheduler has found and cleared as it took a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Taken {
    /// Signals have come, which are to be fetched.
    pub(crate) signals: bool,
    /// It was taken before its turn, to do what signals ask of it.
    pub(crate) raised: bool,
    /// It has a place in a dirty pool (true: for input and output).
    pub(crate) dirty: Option<bool>,
}

/// The pool of a word.
#[inline]
fn pool(s: u32) -> Option<bool> {
    (s & DIRTY != 0).then_some(s & DIRTY_IO != 0)
}

/// See the module head.
pub struct State(AtomicU32);

impl State {
    /// A cell without a process.
    #[inline]
    pub fn free() -> State {
        State(AtomicU32::new(0))
    }
    #[inline]
    fn bits(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
    /// A snapshot, for those who only look.
    #[inline]
    pub fn load(&self) -> Snapshot {
        Snapshot(self.bits())
    }
    /// The priority in the word.
    #[inline]
    pub fn priority(&self) -> Priority {
        Priority::ALL[((self.bits() & PRIO_MASK) >> PRIO_SHIFT) as usize]
    }
    /// Owner: sets the priority for the next time it is queued.
    pub fn set_priority(&self, p: Priority) {
        let mut s = self.bits();
        while let Err(now) = self.0.compare_exchange_weak(
            s,
            (s & !PRIO_MASK) | (p as u32) << PRIO_SHIFT,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            s = now;
        }
    }
    /// Spawner: makes a free cell a process that is queued. The spawner puts it into a run queue, or rings its own thread.
    #[inline]
    pub(crate) fn publish_queued(&self, p: Priority, own_thread: bool) {
        let own = if own_thread { OWN_THREAD } else { 0 };
        let new = QUEUED | ALIVE | own | (p as u32) << PRIO_SHIFT;
        let before = self.0.swap(new, Ordering::AcqRel);
        debug_assert!(
            before & (ALIVE | RUNNING | QUEUED) == 0,
            "the cell was free"
        );
        // Somebody who knew the pid already has sent it something.
        if before & SIGNALS != 0 {
            self.set(SIGNALS | CONTROL);
        }
    }
    /// Any thread, after it has pushed a signal.
    ///
    /// Where `SIGNALS` is set already nothing is written: whoever clears it takes what is in transit after that, by an
    /// exchange. If the push came behind the exchange it has seen the bit cleared, and so does this look at the word;
    /// if it came before, the signal was taken. (A timeout is nothing but its bit, which is written in any case.)
    #[inline]
    pub fn wake(&self) -> Wake {
        self.wake_with(SIGNALS)
    }
    /// As [`State::wake`]. `control`: it is no message.
    #[inline]
    pub(crate) fn wake_for(&self, control: bool) -> Wake {
        self.wake_with(SIGNALS | if control { CONTROL } else { 0 })
    }
    /// The timer service: its receive timer has fired.
    #[inline]
    pub(crate) fn wake_by_timeout(&self) -> Wake {
        self.wake_with(TIMEOUT)
    }
    /// Whether a process with that word waits, and has looked at all that has come.
    #[inline]
    fn has_looked(s: u32) -> bool {
        s & (RUNNING | QUEUED | SIGNALS | SUSPENDED | ALIVE) == ALIVE
    }
    #[inline]
    fn wake_with(&self, bits: u32) -> Wake {
        let mut s = self.bits();
        loop {
            let seen = match s & LONG_QUEUE {
                0 => Wake::Seen,
                _ => Wake::Behind,
            };
            if bits & SIGNALS != 0 && s & bits == bits {
                return seen;
            }
            let waits = s & (RUNNING | QUEUED | ALIVE) == ALIVE;
            let over = bits & TIMEOUT != 0 && State::has_looked(s);
            let new = s | bits | if waits { QUEUED } else { 0 } | if over { OVER } else { 0 };
            match self
                .0
                .compare_exchange_weak(s, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_)
                    if new & (DIRTY | SIGNALS | CONTROL) == DIRTY | SIGNALS | CONTROL
                        && s & (SIGNALS | CONTROL) != SIGNALS | CONTROL =>
                {
                    return Wake::Dirty(s & DIRTY_IO != 0);
                }
                Ok(_) if waits => {
                    return Wake::Enqueue(Priority::ALL[((s & PRIO_MASK) >> PRIO_SHIFT) as usize]);
                }
                Ok(_) => return seen,
                Err(now) => s = now,
            }
        }
    }
    /// Owner: says whether much was in transit.
    #[inline]
    pub(crate) fn set_long_queue(&self, long: bool) {
        if (self.0.load(Ordering::Relaxed) & LONG_QUEUE != 0) == long {
            return;
        }
        if long {
            self.0.fetch_or(LONG_QUEUE, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!LONG_QUEUE, Ordering::Relaxed);
        }
    }
    /// Scheduler or dirty thread, having dequeued it: becomes the owner.
    pub(crate) fn start_running(&self) -> Taken {
        self.start(0)
    }
    /// As [`State::start_running`], and clears `SIGNALS`, where the new owner fetches them at once.
    #[inline]
    pub(crate) fn start_fetching(&self) -> Taken {
        self.start(SIGNALS)
    }
    #[inline]
    fn start(&self, fetched: u32) -> Taken {
        let mut s = self.bits();
        while let Err(now) = self.0.compare_exchange_weak(
            s,
            (s & !(WAITED | fetched)) | RUNNING,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            s = now;
        }
        debug_assert!(s & QUEUED != 0 && s & RUNNING == 0);
        Taken {
            signals: s & SIGNALS != 0,
            raised: s & RAISED != 0,
            dirty: pool(s),
        }
    }
    /// Owner: gives the process back as queued; the caller puts it into a run queue of the priority returned.
    pub(crate) fn requeue(&self) -> Priority {
        self.requeue_with(0)
    }
    /// Owner: gives the process back as queued for a dirty thread; the caller puts it into that
    /// pool, at the priority returned.
    pub(crate) fn requeue_dirty(&self, io: bool) -> Priority {
        self.requeue_with(DIRTY | if io { DIRTY_IO } else { 0 })
    }
    /// Whoever puts it into a dirty pool, under the pool's lock: whether it is to leave that at
    /// once, since control signals have come.
    #[inline]
    pub(crate) fn calls_from_pool(&self) -> bool {
        self.bits() & (SIGNALS | CONTROL) == SIGNALS | CONTROL
    }
    fn requeue_with(&self, bits: u32) -> Priority {
        let mut s = self.bits();
        while let Err(now) = self.0.compare_exchange_weak(
            s,
            (s & !RUNNING) | QUEUED | bits,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            s = now;
        }
        debug_assert!(s & (RUNNING | QUEUED) == RUNNING, "its owner gives it back");
        Priority::ALL[((s & PRIO_MASK) >> PRIO_SHIFT) as usize]
    }
    /// Owner: waits, unless a signal or timeout is there. `grew`: upkeep is to compact it if it waits for long.
    #[inline]
    pub(crate) fn try_wait(&self, grew: bool) -> Wait {
        self.wait_unless(SIGNALS | TIMEOUT, grew)
    }
    /// Owner of a suspended process: waits, unless a signal is there. A timeout stays until the process is resumed.
    #[inline]
    pub(crate) fn try_suspend(&self) -> Wait {
        self.wait_unless(SIGNALS, false)
    }
    fn wait_unless(&self, bits: u32, grew: bool) -> Wait {
        let mut s = self.bits();
        loop {
            debug_assert!(s & (RUNNING | QUEUED) == RUNNING, "its owner waits");
            if s & bits != 0 {
                return Wait::Awake;
            }
            let new = (s & !RUNNING) | if grew { GREW } else { 0 };
            match self
                .0
                .compare_exchange_weak(s, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Wait::Waiting,
                Err(now) => s = now,
            }
        }
    }
    /// Upkeep: marks a process that waits with `GREW`, or takes one that was marked.
    pub(crate) fn age(&self) -> Age {
        let s = self.0.load(Ordering::Relaxed);
        if s & (ALIVE | GREW | RUNNING | QUEUED | SUSPENDED | EXITING) != ALIVE | GREW {
            return Age::Nothing;
        }
        let (new, age) = if s & AGED == 0 {
            (s | AGED, Age::First)
        } else {
            ((s & !(GREW | AGED)) | RUNNING | CONTROL, Age::Owned)
        };
        match self
            .0
            .compare_exchange(s, new, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => age,
            Err(_) => Age::Nothing,
        }
    }
    /// Owner: clears `SIGNALS`, before it fetches; whether some have come.
    #[inline]
    #[must_use]
    pub(crate) fn take_signals(&self) -> bool {
        self.take(SIGNALS)
    }
    /// Owner, when it has done what signals asked of it: clears `CONTROL`, if nothing has come since.
    pub(crate) fn settle_control(&self) {
        let mut s = self.bits();
        while s & (CONTROL | SIGNALS) == CONTROL {
            match self
                .0
                .compare_exchange_weak(s, s & !CONTROL, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return,
                Err(now) => s = now,
            }
        }
    }
    /// Owner: sets `SIGNALS` for itself, since it has put off what they ask.
    #[inline]
    pub(crate) fn keep_signals(&self) {
        self.set(SIGNALS);
    }
    /// Owner: clears `TIMEOUT` and `OVER`; whether its receive timer has fired.
    #[inline]
    pub(crate) fn take_timeout(&self) -> Timeout {
        // A plain look first keeps the line shared where nothing has come.
        if self.bits() & TIMEOUT == 0 {
            return Timeout::None;
        }
        match self.0.fetch_and(!(TIMEOUT | OVER), Ordering::AcqRel) & (TIMEOUT | OVER) {
            0 | OVER => Timeout::None,
            TIMEOUT => Timeout::Fired,
            _ => Timeout::Over,
        }
    }
    /// Owner: sets `TIMEOUT` for itself, to look at it once more.
    #[inline]
    pub(crate) fn keep_timeout(&self) {
        self.set(TIMEOUT);
    }
    /// Owner: it runs no Erlang code from now on.
    pub fn suspend(&self) {
        let before = self.set(SUSPENDED);
        debug_assert!(before & RUNNING != 0, "its owner suspends it");
    }
    /// Owner: it runs Erlang code again.
    pub(crate) fn resume(&self) {
        let _ = self.take(SUSPENDED);
    }
    /// Owner: says whether it is sensitive.
    pub fn set_quiet(&self, quiet: bool) {
        if quiet {
            self.set(QUIET);
        } else {
            let _ = self.take(QUIET);
        }
    }
    /// Owner: it handles nothing any more.
    #[inline]
    pub(crate) fn begin_exit(&self) {
        let before = self.set(EXITING);
        let was = before & (ALIVE | RUNNING | EXITING);
        debug_assert!(was == ALIVE | RUNNING, "its owner ends it, once");
    }
    /// Whoever holds the lock of the queue that it waits in and takes it to another, or has it
    /// leave a dirty pool.
    #[inline]
    pub(crate) fn raise(&self) {
        let before = self.set(RAISED);
        debug_assert!(before & QUEUED != 0, "it waits in a queue");
    }
    /// Clears a bit; tells whether it was set.
    #[inline]
    fn take(&self, bit: u32) -> bool {
        // A plain look first keeps the line shared where nothing has come.
        self.bits() & bit != 0 && self.0.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }
    /// Sets a bit; the word before.
    #[inline]
    fn set(&self, bit: u32) -> u32 {
        self.0.fetch_or(bit, Ordering::AcqRel)
    }
    /// Owner: the process has ended and the cell is empty.
    #[inline]
    pub(crate) fn set_free(&self) {
        debug_assert!(
            self.bits() & (EXITING | RUNNING) == EXITING | RUNNING,
            "its owner frees it"
        );
        self.0.store(0, Ordering::Release);
    }
}
