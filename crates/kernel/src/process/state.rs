//! The state word of a process: which thread runs it, where it is queued, which events it has not
//! seen.
//!
//! # Bits
//! - `RUNNING`: a thread runs it (normal or dirty) and owns its cell. Set and cleared by that
//!   thread.
//! - `QUEUED`: it is in exactly one run queue. Set by the thread that queues it, cleared by the one
//!   that dequeues it.
//! - `SIGNALS`: its queue in transit may hold something new. Set by senders after the push, and by
//!   the owner for signals that it has put off; cleared by the owner before it fetches.
//! - `TIMEOUT`: its receive timer has fired. Set by the timer service, and by the owner to look at
//!   it once more; cleared by the owner.
//! - `OVER`: with `TIMEOUT`, the timer fired while it waited and had looked at all that had come.
//!   Set by the timer service, cleared by the owner.
//! - `SUSPENDED`: it runs no Erlang code, but handles signals. Set and cleared by the owner.
//! - `EXITING`: it handles nothing any more. Set by the owner, never cleared (the cell is made
//!   anew).
//! - `ALIVE`: the cell holds a process. Set by spawn, cleared by the owner at the very end.
//! - `GREW`: it waits, and compacting it may free memory. Set by the owner as it begins to wait,
//!   cleared by the next thread that takes it.
//! - `AGED`: it has waited with `GREW` since the last round of upkeep. Set by upkeep, cleared by
//!   the next thread that takes it.
//! - `RAISED`: it waits in a run queue above its priority, to handle signals. Set by the thread
//!   that puts it there, under the queue's lock; cleared by the thread that dequeues it.
//! - `SENSITIVE`: it is sensitive, so the sender of an exit signal emits no trace event. Set and
//!   cleared by the owner.
//! - `OWN_THREAD`: it runs on a thread of its own, never in a run queue. Set by spawn, never
//!   cleared.
//! - `LONG_QUEUE`: many signals were in transit when it last looked; senders yield sooner. Set and
//!   cleared by the owner.
//! - `DIRTY`: it is queued to run on a dirty thread. It waits in a pool, or has left its place
//!   there to handle signals. Set by the owner together with `QUEUED`, cleared by the thread that
//!   dequeues it.
//! - `DIRTY_IO`: with `DIRTY`, the pool is the one for input and output. Set by the owner together
//!   with `DIRTY`, cleared by the thread that dequeues it.
//! - `CONTROL`: a signal other than a message may be in transit, or not yet fully handled. Set by
//!   senders together with `SIGNALS`, and by upkeep, which runs the process for a while; cleared by
//!   the owner when all is handled and it runs code.
//! - Priority, 2 bits: 0 low, 1 normal, 2 high, 3 max. Set by the owner.
//!
//! A word of zeros is a free cell: the memory behind free cells may be given back to the system.
//!
//! # Rules
//! 1. Fields of a cell other than this word, the queue in transit and the id are touched by the
//!    owner alone: the thread that set `RUNNING`, or that holds the cell before it is published.
//! 2. A process that neither runs nor is queued waits. A thread that sets `SIGNALS` or `TIMEOUT`
//!    and sees it wait must queue it; the compare-and-swap that sets `QUEUED` elects one such
//!    thread.
//! 3. The owner that wants to wait clears `RUNNING` by compare-and-swap against a word without
//!    `SIGNALS` and `TIMEOUT`. If either is set, it keeps the process. So no wake-up is lost.
//! 4. A wake-up may hit a cell that belongs to another process by then. That process finds nothing
//!    new and waits again: wake-ups carry no meaning of their own.
//! 5. No process with a control signal waits for a dirty thread. The thread that sets the last of
//!    `DIRTY`, `SIGNALS` and `CONTROL` makes the process leave the pool for a run queue, keeping
//!    its place (`sched/pool.rs`). A sender learns of that from [`Wake::Dirty`]; the owner, which
//!    sets `DIRTY`, asks [`State::must_leave_pool`] under the lock of the pool.
//!
//! All transitions are methods. Each says who may call it and, in builds with debug assertions,
//! checks that against the word as it was.
//!
//! # Orderings
//! Changes of the word release and acquire. A thread that takes a process (sets `RUNNING` or clears
//! `QUEUED`) so sees what the last owner wrote to the cell. An owner that clears `SIGNALS` or
//! `TIMEOUT` sees what was pushed before the bit was set. [`State::load`] acquires; what it finds
//! may be old. The model is `models/tests/state.rs`.

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
const SENSITIVE: u32 = 1 << 15;
const CONTROL: u32 = 1 << 16;
const DIRTY: u32 = 1 << 17;
const DIRTY_IO: u32 = 1 << 18;
/// Bits that the thread that dequeues the process clears.
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

/// The duty of a thread that wakes a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Wake {
    /// The waker has set `QUEUED`: it must put the process into a run queue of that priority.
    Enqueue(Priority),
    /// A thread runs it or has queued it, and will see the bit.
    Seen,
    /// As `Seen`, and it has `LONG_QUEUE`.
    Behind,
    /// It waits in a dirty pool (true: for input and output). The waker must make it leave the
    /// pool; see rule 5.
    Dirty(bool),
}

/// State of a process's receive timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Timeout {
    /// It has not fired.
    None,
    /// It has fired. Messages that the process has not examined may have arrived before.
    Fired,
    /// It has fired, and all messages that the process has not examined arrived later.
    Over,
}

/// The outcome of an attempt to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Wait {
    /// The process waits. The caller no longer owns it.
    Waiting,
    /// A signal or a timeout came first. The caller still owns it.
    Awake,
}

/// State in which upkeep found a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Age {
    /// Upkeep has nothing to do for it.
    Nothing,
    /// Seen waiting for the first time.
    First,
    /// Has waited since it was last seen. The caller owns it now.
    Owned,
}

/// The word at one moment; it may have changed since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot(u32);

impl Snapshot {
    /// Whether the cell holds a process.
    #[inline]
    pub fn is_alive(self) -> bool {
        self.0 & ALIVE != 0
    }
    /// Whether a thread runs it.
    #[inline]
    pub fn is_running(self) -> bool {
        self.0 & RUNNING != 0
    }
    /// Whether it is in a run queue.
    #[inline]
    pub fn is_queued(self) -> bool {
        self.0 & QUEUED != 0
    }
    /// Whether it has not looked at a signal or a timeout.
    #[inline]
    pub(crate) fn has_news(self) -> bool {
        self.0 & (SIGNALS | TIMEOUT) != 0
    }
    /// Whether it runs, is queued, or has not looked at a signal or a timeout.
    #[inline]
    pub fn is_busy(self) -> bool {
        self.is_running() || self.is_queued() || self.has_news()
    }
    /// Whether it runs no Erlang code.
    #[inline]
    pub fn is_suspended(self) -> bool {
        self.0 & SUSPENDED != 0
    }
    /// Whether it runs code, and nothing that the caller sent before this look may still end it,
    /// suspend it or make it do anything else.
    #[inline]
    pub fn runs_undisturbed(self) -> bool {
        self.0 & (ALIVE | RUNNING | SUSPENDED | EXITING | CONTROL) == ALIVE | RUNNING
    }
    /// Whether it may have to do more than to move messages into its mailbox.
    #[inline]
    pub(crate) fn has_control(self) -> bool {
        self.0 & CONTROL != 0
    }
    /// Whether it handles nothing any more.
    #[inline]
    pub fn is_exiting(self) -> bool {
        self.0 & EXITING != 0
    }
    /// Whether it is sensitive.
    #[inline]
    pub(crate) fn is_sensitive(self) -> bool {
        self.0 & SENSITIVE != 0
    }
    /// Whether it has a thread to itself.
    #[inline]
    pub(crate) fn has_own_thread(self) -> bool {
        self.0 & OWN_THREAD != 0
    }
}

/// The bits that a scheduler found and cleared when it took a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Taken {
    /// Signals have arrived and must be fetched.
    pub(crate) signals: bool,
    /// It was taken early, to handle signals.
    pub(crate) raised: bool,
    /// It has a place in a dirty pool (true: for input and output).
    pub(crate) dirty: Option<bool>,
}

/// Returns the dirty pool that a word names.
#[inline]
fn pool(s: u32) -> Option<bool> {
    (s & DIRTY != 0).then_some(s & DIRTY_IO != 0)
}

/// See the module docs.
pub struct State(AtomicU32);

impl State {
    /// Returns the word of a cell without a process.
    #[inline]
    pub fn free() -> State {
        State(AtomicU32::new(0))
    }
    #[inline]
    fn bits(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
    /// Returns a snapshot, for threads that only look.
    #[inline]
    pub fn load(&self) -> Snapshot {
        Snapshot(self.bits())
    }
    /// Returns the priority in the word.
    #[inline]
    pub fn priority(&self) -> Priority {
        Priority::ALL[((self.bits() & PRIO_MASK) >> PRIO_SHIFT) as usize]
    }
    /// Sets the priority for the next time that it is queued. Called by the owner.
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
    /// Turns a free cell into a queued process. The spawner calls it, and then puts the process
    /// into a run queue or wakes its own thread.
    #[inline]
    pub(crate) fn publish_queued(&self, p: Priority, own_thread: bool) {
        let own = if own_thread { OWN_THREAD } else { 0 };
        let new = QUEUED | ALIVE | own | (p as u32) << PRIO_SHIFT;
        let before = self.0.swap(new, Ordering::AcqRel);
        debug_assert!(
            before & (ALIVE | RUNNING | QUEUED) == 0,
            "the cell was free"
        );
        // A sender that knew the pid has already sent something.
        if before & SIGNALS != 0 {
            self.set(SIGNALS | CONTROL);
        }
    }
    /// Tells the process that a signal has arrived. Any thread calls it, after it has pushed a
    /// signal.
    ///
    /// Nothing is written if `SIGNALS` is set already: the thread that clears it takes what is in
    /// transit after that, by an exchange. If the push came after the exchange, it has seen the bit
    /// cleared, and so does this look at the word. If it came before, the signal was taken. (A
    /// timeout is nothing but its bit, which is written in any case.)
    #[inline]
    pub fn wake(&self) -> Wake {
        self.wake_with(SIGNALS)
    }
    /// As [`State::wake`]. `control`: the signal is not a message.
    #[inline]
    pub(crate) fn wake_for(&self, control: bool) -> Wake {
        self.wake_with(SIGNALS | if control { CONTROL } else { 0 })
    }
    /// Tells the process that its receive timer has fired. Called by the timer service.
    #[inline]
    pub(crate) fn wake_by_timeout(&self) -> Wake {
        self.wake_with(TIMEOUT)
    }
    /// Whether a process with this word waits and has looked at all that has arrived.
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
    /// Sets whether many signals were in transit. Called by the owner.
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
    /// Makes the caller, which has dequeued the process, its owner.
    pub(crate) fn start_running(&self) -> Taken {
        self.start(0)
    }
    /// As [`State::start_running`], and clears `SIGNALS`. The new owner fetches the signals at
    /// once.
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
    /// Gives the process back as queued. The owner calls it, and then puts the process into a run
    /// queue of the returned priority.
    pub(crate) fn requeue(&self) -> Priority {
        self.requeue_with(0)
    }
    /// Gives the process back as queued for a dirty thread. The owner calls it, and then puts the
    /// process into that pool at the returned priority.
    pub(crate) fn requeue_dirty(&self, io: bool) -> Priority {
        self.requeue_with(DIRTY | if io { DIRTY_IO } else { 0 })
    }
    /// Whether a process must leave its dirty pool at once because control signals have arrived.
    /// The thread that puts it there calls this under the pool's lock.
    #[inline]
    pub(crate) fn must_leave_pool(&self) -> bool {
        self.bits() & (SIGNALS | CONTROL) == SIGNALS | CONTROL
    }
    /// Whether signals other than messages have arrived for a process that does not run.
    pub(crate) fn has_control_signals(&self) -> bool {
        self.must_leave_pool()
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
    /// Waits, unless a signal or a timeout is there. The owner calls it. `grew`: upkeep is to
    /// compact the process if it waits for long.
    #[inline]
    pub(crate) fn try_wait(&self, grew: bool) -> Wait {
        self.wait_unless(SIGNALS | TIMEOUT, grew)
    }
    /// Waits, unless a signal is there. The owner of a suspended process calls it. A timeout stays
    /// until the process is resumed.
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
    /// Marks a waiting process with `GREW`, or takes one that is marked already. Called by upkeep.
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
    /// Clears `SIGNALS` before the owner fetches. Returns whether any have arrived.
    #[inline]
    #[must_use]
    pub(crate) fn take_signals(&self) -> bool {
        self.take(SIGNALS)
    }
    /// Clears `CONTROL` unless a signal has arrived since. The owner calls it when it has handled
    /// its signals.
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
    /// Sets `SIGNALS` again because the owner has put off what the signals ask.
    #[inline]
    pub(crate) fn keep_signals(&self) {
        self.set(SIGNALS);
    }
    /// Clears `TIMEOUT` and `OVER`. The owner learns whether its receive timer has fired.
    #[inline]
    pub(crate) fn take_timeout(&self) -> Timeout {
        // Loading first keeps the cache line shared if nothing has arrived.
        if self.bits() & TIMEOUT == 0 {
            return Timeout::None;
        }
        match self.0.fetch_and(!(TIMEOUT | OVER), Ordering::AcqRel) & (TIMEOUT | OVER) {
            0 | OVER => Timeout::None,
            TIMEOUT => Timeout::Fired,
            _ => Timeout::Over,
        }
    }
    /// Sets `TIMEOUT` again so that the owner looks at it once more.
    #[inline]
    pub(crate) fn keep_timeout(&self) {
        self.set(TIMEOUT);
    }
    /// Stops the process from running Erlang code. Called by the owner.
    pub fn suspend(&self) {
        let before = self.set(SUSPENDED);
        debug_assert!(before & RUNNING != 0, "its owner suspends it");
    }
    /// Lets the process run Erlang code again. Called by the owner.
    pub(crate) fn resume(&self) {
        let _ = self.take(SUSPENDED);
    }
    /// Sets whether the process is sensitive. Called by the owner.
    pub fn set_sensitive(&self, on: bool) {
        if on {
            self.set(SENSITIVE);
        } else {
            let _ = self.take(SENSITIVE);
        }
    }
    /// Marks the process as handling nothing any more. Called by the owner.
    #[inline]
    pub(crate) fn begin_exit(&self) {
        let before = self.set(EXITING);
        let was = before & (ALIVE | RUNNING | EXITING);
        debug_assert!(was == ALIVE | RUNNING, "its owner ends it, once");
    }
    /// Marks a queued process as raised. The caller holds the lock of the queue from which it moves
    /// the process to another, or of the dirty pool that the process leaves.
    #[inline]
    pub(crate) fn raise(&self) {
        let before = self.set(RAISED);
        debug_assert!(before & QUEUED != 0, "it waits in a queue");
    }
    /// Clears a bit. Returns whether it was set.
    #[inline]
    fn take(&self, bit: u32) -> bool {
        // Loading first keeps the cache line shared if nothing has arrived.
        self.bits() & bit != 0 && self.0.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }
    /// Sets a bit. Returns the previous word.
    #[inline]
    fn set(&self, bit: u32) -> u32 {
        self.0.fetch_or(bit, Ordering::AcqRel)
    }
    /// Frees the cell. The owner calls it when the process has ended and the cell is empty.
    #[inline]
    pub(crate) fn set_free(&self) {
        debug_assert!(
            self.bits() & (EXITING | RUNNING) == EXITING | RUNNING,
            "its owner frees it"
        );
        self.0.store(0, Ordering::Release);
    }
}
