//! A row of the table of budgets: limits, counts, and what is set for one budget.
//!
//! # Orderings
//! A count is charged by `fetch_add` and taken back if that is beyond the limit, so concurrent
//! charges never exceed it together. `key` is stored with release after the rest of the row, and
//! read with acquire: who finds the key finds the row that belongs to it.

use super::ended::Ended;
use super::fullness::Fullness;
use super::processor::Share;
use crate::budget_weights::Weighted;
use crate::clock;
use crate::keys::RefKey;
use crate::sync::Mutex;
use purlin_term::frag::OwnedTerm;
use purlin_term::{NIL, Term};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The budget of everything that has no other. It has no limits and no counts.
pub const ROOT: u32 = 0;

/// No limit.
pub const NO_LIMIT: i64 = i64::MAX;

/// A kind of thing that is counted for a budget as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Bytes.
    Memory,
    Processes,
    Atoms,
    Ports,
    Tables,
}

impl Counted {
    /// All of them, with the names that maps of limits have for them.
    pub const ALL: [(Counted, &'static str); 5] = [
        (Counted::Memory, "memory"),
        (Counted::Processes, "processes"),
        (Counted::Atoms, "atoms"),
        (Counted::Ports, "ports"),
        (Counted::Tables, "tables"),
    ];
}

/// Effect of a plain message to a process with as many unread messages as it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// The sender waits.
    Wait,
    /// The message is dropped.
    Drop,
    /// The receiver ends.
    Exit,
}

/// Limits as they are set. `None` leaves a limit as it is.
#[derive(Clone, Copy, Default, Debug)]
pub struct Limits {
    pub counted: [Option<i64>; Counted::ALL.len()],
    pub messages: Option<i64>,
    pub over: Option<Over>,
    /// Percentage of one processor.
    pub cpu: Option<i64>,
    /// The share of processor time beside its siblings.
    pub weight: Option<i64>,
    /// The process that is notified before one ends for a limit; `undefined` for none.
    pub notify: Option<Term>,
}

/// Number of times that something happened to a budget.
#[derive(Default)]
pub struct Events {
    /// Senders that have waited, messages dropped, and receivers ended, for `messages`.
    pub waited: AtomicU64,
    pub dropped: AtomicU64,
    pub exited: AtomicU64,
    /// Senders that were let through because they waited in a circle.
    pub circles: AtomicU64,
}

/// A row of the table of budgets.
pub struct Budget {
    parent: AtomicU32,
    /// Bits of its reference; 0 while the row is free.
    pub(super) key: AtomicU64,
    pub(super) holders: AtomicU32,
    pub(super) ended: Ended,
    pub(super) name: Mutex<Option<OwnedTerm>>,
    limits: [AtomicI64; Counted::ALL.len()],
    pub(super) used: [AtomicI64; Counted::ALL.len()],
    peak: [AtomicI64; Counted::ALL.len()],
    pub(super) reached: [AtomicU64; Counted::ALL.len()],
    messages: AtomicI64,
    over: AtomicU8,
    pub events: Events,
    pub(super) cpu: Share,
    /// Bytes that its processes pay for of blocks for which another budget is billed, too.
    pub(super) shared: AtomicI64,
    pub(super) weighted: Weighted,
    /// The time of its next report if reports were made at regular intervals; see
    /// [`may_report`](super::may_report).
    pub(super) next_report: AtomicI64,
    /// Word of the pid that is notified before a process ends for a limit; 0 for none.
    notify: AtomicU64,
    pub(super) fullness: Fullness,
}

impl Budget {
    pub(super) fn new() -> Budget {
        Budget {
            parent: AtomicU32::new(ROOT),
            key: AtomicU64::new(0),
            holders: AtomicU32::new(0),
            ended: Ended(AtomicBool::new(false)),
            name: Mutex::new(None),
            limits: std::array::from_fn(|_| AtomicI64::new(NO_LIMIT)),
            used: Default::default(),
            peak: Default::default(),
            reached: Default::default(),
            messages: AtomicI64::new(NO_LIMIT),
            over: AtomicU8::new(Over::Wait as u8),
            events: Events::default(),
            cpu: Share::new(),
            shared: AtomicI64::new(0),
            weighted: Weighted::default(),
            fullness: Fullness::default(),
            next_report: AtomicI64::new(0),
            notify: AtomicU64::new(0),
        }
    }
    /// Makes a free row that of a new budget, which is found once it has its key.
    pub(super) fn begin(&self, parent: u32, name: OwnedTerm, limits: &Limits) {
        self.parent.store(parent, Ordering::Relaxed);
        self.ended.0.store(false, Ordering::Relaxed);
        self.holders.store(1, Ordering::Relaxed);
        *self.name.lock() = Some(name);
        for i in 0..Counted::ALL.len() {
            self.limits[i].store(NO_LIMIT, Ordering::Relaxed);
            self.used[i].store(0, Ordering::Relaxed);
            self.peak[i].store(0, Ordering::Relaxed);
            self.reached[i].store(0, Ordering::Relaxed);
        }
        self.messages.store(NO_LIMIT, Ordering::Relaxed);
        self.over.store(Over::Wait as u8, Ordering::Relaxed);
        let e = &self.events;
        for n in [&e.waited, &e.dropped, &e.exited, &e.circles] {
            n.store(0, Ordering::Relaxed);
        }
        self.cpu.reset();
        self.weighted.reset();
        self.fullness.reset();
        self.next_report.store(0, Ordering::Relaxed);
        self.shared.store(0, Ordering::Relaxed);
        self.notify.store(0, Ordering::Relaxed);
        self.set(limits);
    }
    /// Adds `n` to a count, whatever the limit if `forced`. Returns false if that exceeds the
    /// limit; then the count is as before, and `reached` is one more.
    pub(super) fn add(&self, what: Counted, n: i64, forced: bool) -> bool {
        let i = what as usize;
        let now = self.used[i].fetch_add(n, Ordering::Relaxed) + n;
        if n > 0 {
            if !forced && now > self.limits[i].load(Ordering::Relaxed) {
                self.reached[i].fetch_add(1, Ordering::Relaxed);
                self.used[i].fetch_sub(n, Ordering::Relaxed);
                return false;
            }
            self.peak[i].fetch_max(now, Ordering::Relaxed);
        }
        true
    }
    /// Bytes that its own processes, not those of budgets below it, pay for of blocks for which
    /// another budget is billed, too.
    pub fn shared(&self) -> i64 {
        self.shared.load(Ordering::Relaxed)
    }
    /// The index of its parent.
    pub fn parent(&self) -> u32 {
        self.parent.load(Ordering::Relaxed)
    }
    /// The limit, the use, the highest use so far, and how often the limit was reached.
    pub fn account(&self, what: Counted) -> [i64; 4] {
        let i = what as usize;
        [
            self.limits[i].load(Ordering::Relaxed),
            self.used[i].load(Ordering::Relaxed).max(0),
            self.peak[i].load(Ordering::Relaxed),
            self.reached[i].load(Ordering::Relaxed) as i64,
        ]
    }
    /// The limit of its processor time in percent, the time used in nanoseconds, and how often it
    /// has had to wait.
    pub fn cpu(&self) -> (i64, i64, u64) {
        (
            self.cpu.percent.load(Ordering::Relaxed),
            self.cpu.used.load(Ordering::Relaxed),
            self.cpu.waited.load(Ordering::Relaxed),
        )
    }
    /// Its own limit of unread messages, and what happens beyond it.
    pub fn messages(&self) -> (i64, Over) {
        let over = match self.over.load(Ordering::Relaxed) {
            o if o == Over::Drop as u8 => Over::Drop,
            o if o == Over::Exit as u8 => Over::Exit,
            _ => Over::Wait,
        };
        (self.messages.load(Ordering::Relaxed), over)
    }
    /// Sets limits. Those that are exceeded already hold for what comes.
    pub fn set(&self, to: &Limits) {
        for (limit, n) in self.limits.iter().zip(to.counted) {
            n.into_iter()
                .for_each(|n| limit.store(n, Ordering::Relaxed));
        }
        if let Some(n) = to.messages {
            self.messages.store(n, Ordering::Relaxed);
        }
        if let Some(n) = to.cpu {
            // What was used before the limit was set is not owed.
            self.cpu.at.store(clock::elapsed(), Ordering::Relaxed);
            self.cpu.percent.store(n, Ordering::Relaxed);
        }
        if let Some(o) = to.over {
            self.over.store(o as u8, Ordering::Relaxed);
        }
        if let Some(n) = to.weight {
            self.weighted.set(n);
        }
        if let Some(t) = to.notify {
            let word = if t.is_local_pid() { t.raw() } else { 0 };
            self.notify.store(word, Ordering::Relaxed);
        }
    }
    /// Its weight beside its siblings.
    pub fn weight(&self) -> i64 {
        self.weighted.weight()
    }
    /// The process that is notified before one of this budget ends for a limit.
    pub fn notify(&self) -> Option<Term> {
        match self.notify.load(Ordering::Relaxed) {
            0 => None,
            // SAFETY: `set` stores words of local pids only, which are immediate.
            w => Some(unsafe { Term::from_raw(w) }),
        }
    }
    /// Counts bytes that were in use for a moment only.
    pub(super) fn note_peak(&self, what: Counted, more: i64) {
        let i = what as usize;
        let now = self.used[i].load(Ordering::Relaxed) + more;
        self.peak[i].fetch_max(now, Ordering::Relaxed);
    }
    /// Calls `f` with its name. `None` if that is being changed.
    pub fn try_with_name<R>(&self, f: impl FnOnce(Term) -> R) -> Option<R> {
        let name = self.name.try_lock()?;
        Some(f(name.as_ref().map_or(NIL, |n| n.term())))
    }
    /// Calls `f` with its name.
    pub fn with_name<R>(&self, f: impl FnOnce(Term) -> R) -> R {
        f(self.name.lock().as_ref().map_or(NIL, |n| n.term()))
    }
    /// The key of its reference. `None` if the row is free.
    pub fn key(&self) -> Option<RefKey> {
        match self.key.load(Ordering::Acquire) {
            0 => None,
            bits => Some(RefKey::new(bits)),
        }
    }
    /// Whether it takes nothing more in.
    pub fn has_ended(&self) -> bool {
        self.ended.is_set()
    }
}
