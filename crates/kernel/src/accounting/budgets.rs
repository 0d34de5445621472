//! Budgets: limits that hold for a process and for everything that it starts.
//!
//! # The tree
//! Budgets form a tree below the root, which has no limits. Each process belongs to one budget and
//! inherits it to the processes that it spawns; a table and a port belong to the budget of their
//! owner. What is charged to a budget is charged to its parents too, so a child never gets more
//! than its parents have left.
//!
//! # Seats
//! A process's budget is not in its cell but in a [`Seat`], found by the index of the cell. Seats
//! exist in blocks, made when a cell of the block first gets a budget. A cell without a seat, or
//! with an empty one, belongs to the root. Until the first budget is made ([`on`]), seats are not
//! looked at, and a spawn costs one more load.
//!
//! # Life
//! A budget is a row of [`ROWS`], with the number of what holds it: one until it is ended, and one
//! for each process, table, port and child. When nothing holds it, the row is free for another
//! budget, which gets another reference.
//!
//! # Orderings
//! Counts are charged by `fetch_add` and taken back if they are beyond the limit, so concurrent
//! charges never exceed it together. [`Budget::end`] stores `ended` and then looks for processes;
//! a spawn opens its process's queue and then loads `ended`. Each side has a `SeqCst` fence between
//! the two, so the end finds the process or the spawner finds the end.

use crate::accounts::{self, Frame};
use crate::budget_weights::{BELOW_ROOT, Common, Weighted};
use crate::clock;
use crate::ids;
use crate::keys::RefKey;
use crate::lazy_atoms;
use crate::process::table::CELL_BYTES;
use crate::process::{Cx, Process, table};
use crate::sync::{Mutex, Rows, RwLock, fence};
use purlin_term::cache_lines::OneLine;
use purlin_term::frag::OwnedTerm;
use purlin_term::payer::{self, Ledger, Payer};
use purlin_term::{NIL, Term, pressure};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// The budget of everything that has no other. It has no limits and no counts.
pub const ROOT: u32 = 0;
/// Maximum number of budgets at a time.
const MOST_BUDGETS: usize = 1 << 16;
/// Maximum number of budgets from one up to the root.
const MOST_DEPTH: usize = 16;
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
    key: AtomicU64,
    holders: AtomicU32,
    ended: AtomicBool,
    name: Mutex<Option<OwnedTerm>>,
    limits: [AtomicI64; Counted::ALL.len()],
    used: [AtomicI64; Counted::ALL.len()],
    peak: [AtomicI64; Counted::ALL.len()],
    reached: [AtomicU64; Counted::ALL.len()],
    messages: AtomicI64,
    over: AtomicU8,
    pub events: Events,
    cpu: Share,
    /// Bytes that its processes pay for of blocks for which another budget is billed, too.
    shared: AtomicI64,
    weighted: Weighted,
    /// The time of its next report if reports were made at regular intervals; see [`may_report`].
    next_report: AtomicI64,
    /// Word of the pid that is notified before a process ends for a limit; 0 for none.
    notify: AtomicU64,
}

/// A share of processor time: what the processes of a budget have used is paid off at the rate of
/// the share. While more than a [`PERIOD`] of it is owed, they do not run until all is paid.
struct Share {
    /// Percentage of one processor; [`NO_LIMIT`] for none.
    percent: AtomicI64,
    /// Nanoseconds owed, and the time at which this was computed.
    owed: AtomicI64,
    at: AtomicI64,
    waits: AtomicBool,
    /// Nanoseconds used since the budget was made, and how often it has had to wait.
    used: AtomicI64,
    waited: AtomicU64,
}

/// Nanoseconds within which a budget may use its share at once.
const PERIOD: i64 = 20_000_000;

impl Share {
    fn new() -> Share {
        Share {
            percent: AtomicI64::new(NO_LIMIT),
            owed: AtomicI64::new(0),
            at: AtomicI64::new(0),
            waits: AtomicBool::new(false),
            used: AtomicI64::new(0),
            waited: AtomicU64::new(0),
        }
    }
    fn reset(&self) {
        self.percent.store(NO_LIMIT, Ordering::Relaxed);
        for n in [&self.owed, &self.at, &self.used] {
            n.store(0, Ordering::Relaxed);
        }
        self.waits.store(false, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
    }
    /// Pays off what is owed, as of now. Returns what is still owed, and the percentage; `None` if
    /// there is no limit.
    fn pay(&self) -> Option<(i64, i64)> {
        let percent = self.percent.load(Ordering::Relaxed);
        if percent == NO_LIMIT {
            return None;
        }
        let now = clock::elapsed();
        let past = (now - self.at.swap(now, Ordering::Relaxed)).max(0);
        let paid = past.saturating_mul(percent) / 100;
        let less = |n: i64| Some((n - paid).max(0));
        let before = self
            .owed
            .try_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let (Ok(before) | Err(before)) = before;
        Some(((before - paid).max(0), percent))
    }
    fn charge(&self, nanoseconds: i64) {
        self.used.fetch_add(nanoseconds, Ordering::Relaxed);
        if let Some((owed, percent)) = self.pay() {
            self.owed.fetch_add(nanoseconds, Ordering::Relaxed);
            if owed + nanoseconds > PERIOD / 100 * percent
                && !self.waits.swap(true, Ordering::Relaxed)
            {
                self.waited.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    fn has_to_wait(&self) -> bool {
        if !self.waits.load(Ordering::Relaxed) {
            return false;
        }
        let waits = self.pay().is_some_and(|(owed, _)| owed > 0);
        if !waits {
            self.waits.store(false, Ordering::Relaxed);
        }
        waits
    }
}

impl Budget {
    fn new() -> Budget {
        Budget {
            parent: AtomicU32::new(ROOT),
            key: AtomicU64::new(0),
            holders: AtomicU32::new(0),
            ended: AtomicBool::new(false),
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
            next_report: AtomicI64::new(0),
            notify: AtomicU64::new(0),
        }
    }
    /// Adds `n` to a count. Returns false if that exceeds the limit, and changes nothing then.
    fn add(&self, what: Counted, n: i64, forced: bool) -> bool {
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
    /// The common clock of the budgets with the same parent.
    fn siblings(&self) -> &'static Common {
        match get(self.parent()) {
            Some(b) => &b.weighted.children,
            None => &BELOW_ROOT,
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
    fn note_peak(&self, what: Counted, more: i64) {
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
        self.ended.load(Ordering::Relaxed)
    }
}

/// The table of budgets. The first row is that of the root.
static ROWS: Rows<Budget, MOST_BUDGETS> = Rows::new();

/// Which rows are in use.
struct Directory {
    by_key: Option<HashMap<u64, u32>>,
    free: Vec<u32>,
    /// Number of rows that have been used.
    rows: u32,
}

static DIRECTORY: RwLock<Directory> = RwLock::new(Directory {
    by_key: None,
    free: Vec::new(),
    rows: 1,
});

/// Whether there has ever been a budget beside the root.
static ON: Switch = Switch {
    on: AtomicBool::new(false),
    _line: OneLine,
};

/// A switch that all threads read all the time, in a cache line of its own: no thread writes to its
/// neighbours.
struct Switch {
    on: AtomicBool,
    _line: OneLine,
}

/// Whether budgets are in use.
#[inline(always)]
pub fn on() -> bool {
    ON.on.load(Ordering::Relaxed)
}

/// Turns budgets on: from now on, seats are looked at.
pub fn turn_on() {
    pressure::begin_allowances();
    payer::billed_by(Ledger {
        charge: bill,
        refund: unbill,
        change: rebill,
    });
    ON.on.store(true, Ordering::SeqCst);
}

/// Returns the budget with that index; `None` for the root.
#[inline]
pub fn get(index: u32) -> Option<&'static Budget> {
    if index == ROOT {
        return None;
    }
    ROWS.get(index as usize)
}

/// The budgets from `index` up to, and without, `to` or the root.
fn upwards(index: u32, to: u32) -> impl Iterator<Item = &'static Budget> {
    let mut at = index;
    std::iter::from_fn(move || {
        if at == to {
            return None;
        }
        let b = get(at)?;
        at = b.parent();
        Some(b)
    })
}

/// Whether budget `index` is `of` or below it.
pub fn is_within(index: u32, of: u32) -> bool {
    let mut at = index;
    loop {
        if at == of {
            return true;
        }
        match get(at) {
            Some(b) => at = b.parent(),
            None => return false,
        }
    }
}

/// Mean time in nanoseconds between reports about a budget, and how many of them may follow each
/// other at once: a budget whose processes end all the time must not keep the logger busy.
const BETWEEN_REPORTS: i64 = 100_000_000;
const REPORTS_AT_ONCE: i64 = 10;

/// Whether a process that ends for a limit of a budget is reported.
pub fn may_report(index: u32) -> bool {
    get(index).is_some_and(|b| {
        let now = clock::elapsed();
        let next = b.next_report.load(Ordering::Relaxed).max(now);
        let may = next - now <= BETWEEN_REPORTS * (REPORTS_AT_ONCE - 1);
        if may {
            b.next_report
                .store(next + BETWEEN_REPORTS, Ordering::Relaxed);
        }
        may
    })
}

/// The process that is notified before one of budget `index` ends: that of the budget, or of the
/// nearest one above it that has one.
pub fn notified(index: u32) -> Option<Term> {
    upwards(index, ROOT).find_map(Budget::notify)
}

/// There can be no further budget, or none so deep in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMany;

/// Makes a budget below `parent`, which the caller belongs to. Returns its index and its key.
pub fn make(parent: u32, name: OwnedTerm, limits: &Limits) -> Result<(u32, RefKey), TooMany> {
    if upwards(parent, ROOT).count() >= MOST_DEPTH {
        return Err(TooMany);
    }
    let bits = ids::ref_bits();
    let mut d = DIRECTORY.write();
    let index = match d.free.pop() {
        Some(i) => i,
        None if (d.rows as usize) < MOST_BUDGETS => {
            d.rows += 1;
            d.rows - 1
        }
        None => return Err(TooMany),
    };
    let b = ROWS.get_or_make(index as usize, || Box::new(Budget::new()));
    b.parent.store(parent, Ordering::Relaxed);
    b.ended.store(false, Ordering::Relaxed);
    b.holders.store(1, Ordering::Relaxed);
    *b.name.lock() = Some(name);
    for i in 0..Counted::ALL.len() {
        b.limits[i].store(NO_LIMIT, Ordering::Relaxed);
        b.used[i].store(0, Ordering::Relaxed);
        b.peak[i].store(0, Ordering::Relaxed);
        b.reached[i].store(0, Ordering::Relaxed);
    }
    b.messages.store(NO_LIMIT, Ordering::Relaxed);
    b.over.store(Over::Wait as u8, Ordering::Relaxed);
    let e = &b.events;
    for n in [&e.waited, &e.dropped, &e.exited, &e.circles] {
        n.store(0, Ordering::Relaxed);
    }
    b.cpu.reset();
    b.weighted.reset();
    b.next_report.store(0, Ordering::Relaxed);
    b.shared.store(0, Ordering::Relaxed);
    b.notify.store(0, Ordering::Relaxed);
    b.set(limits);
    // The caller belongs to the parent, so this holds it once more.
    hold(parent);
    b.key.store(bits, Ordering::Release);
    d.by_key.get_or_insert_default().insert(bits, index);
    drop(d);
    turn_on();
    Ok((index, RefKey::new(bits)))
}

/// A hold of a budget, which keeps its row from being used for another.
pub struct Held(u32);

impl Held {
    /// The index of the budget.
    pub fn index(&self) -> u32 {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let_go(self.0);
    }
}

/// Returns the budget that a reference stands for.
pub fn find(reference: Term) -> Option<Held> {
    let bits = ids::bits_of(reference.as_ref_view()?.local_nums()?)?;
    let d = DIRECTORY.read();
    let &index = d.by_key.as_ref()?.get(&bits)?;
    // Not `then_some`, which would also release what was not held.
    hold(index).then(|| Held(index))
}

/// Holds the budget of a process that the caller owns; `None` for the root.
pub fn held_by(p: *const Process) -> Option<Held> {
    let index = of(p);
    (index != ROOT && hold(index)).then_some(Held(index))
}

/// Holds a budget once more. Returns false if nothing holds it any more.
fn hold(index: u32) -> bool {
    let more = |n: u32| n.checked_sub(1).map(|_| n + 1);
    get(index).is_some_and(|b| {
        let held = &b.holders;
        held.try_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    })
}

/// The limit of unread messages of each process in a budget, what happens beyond it, and the
/// budget that sets it: the lowest limit up to the root. `None` if there is none.
pub fn bound(index: u32) -> Option<(i64, Over, u32)> {
    let mut at = index;
    let mut lowest: Option<(i64, Over, u32)> = None;
    while let Some(b) = get(at) {
        let (most, over) = b.messages();
        if most < lowest.map_or(NO_LIMIT, |l| l.0) {
            lowest = Some((most, over, at));
        }
        at = b.parent();
    }
    lowest
}

/// Calls `f` with each budget, without waiting for a lock: for dumps and metrics.
pub fn each(mut f: impl FnMut(u32, &Budget)) {
    for (i, b) in (1..).zip(ROWS.made(1)) {
        if b.key().is_some() {
            f(i, b);
        }
    }
}

/// The indices of all budgets, in the order in which their rows were first used.
pub fn all() -> Vec<u32> {
    let d = DIRECTORY.read();
    let mut v: Vec<u32> = d.by_key.iter().flat_map(|m| m.values().copied()).collect();
    v.sort_unstable();
    v
}

/// Gives up one hold of a budget. A budget that nothing holds leaves the table.
fn let_go(index: u32) {
    let mut at = index;
    while let Some(b) = get(at) {
        let before = b.holders.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(
            before > 0,
            "a budget is let go by one that does not hold it"
        );
        if before != 1 {
            return;
        }
        let parent = b.parent();
        let mut d = DIRECTORY.write();
        let bits = b.key.swap(0, Ordering::AcqRel);
        if let Some(m) = &mut d.by_key {
            m.remove(&bits);
        }
        d.free.push(at);
        drop(d);
        let name = b.name.lock().take();
        drop(name);
        at = parent;
    }
}

/// Charges `n` to `index` and the budgets above it, up to and without `to`. Returns false if one of
/// them has not so much left, or takes nothing more in; nothing has changed then.
fn charge(index: u32, to: u32, what: Counted, n: i64) -> bool {
    for (done, b) in upwards(index, to).enumerate() {
        if b.has_ended() || !b.add(what, n, false) {
            for b in upwards(index, to).take(done) {
                b.add(what, -n, true);
            }
            return false;
        }
    }
    true
}

/// Adds `n`, which may be negative, to the counts of `index` and the budgets above it, whatever
/// their limits.
fn count(index: u32, to: u32, what: Counted, n: i64) {
    for b in upwards(index, to) {
        b.add(what, n, true);
    }
}

/// Charges a resource that is made, and has it hold the budget. Returns false if there is not so
/// much left.
fn enter(index: u32, what: Counted) -> bool {
    if index == ROOT {
        return true;
    }
    if !hold(index) {
        return false;
    }
    let ok = memory_left(index).0 >= 0 && charge(index, ROOT, what, 1);
    if !ok {
        let_go(index);
    }
    ok
}

/// Takes a resource back that [`enter`] has charged.
fn leave(index: u32, what: Counted) {
    if index != ROOT {
        count(index, ROOT, what, -1);
        let_go(index);
    }
}

/// The state of the process in a cell that budgets need.
#[derive(Default)]
pub struct Seat {
    /// Its budget.
    budget: AtomicU32,
    /// The budget of what it spawns, if that is another; 0 for none.
    starts: AtomicU32,
    /// Bytes charged for it, and what they were when its budget was last below its limit.
    bytes: AtomicI64,
    calm: AtomicI64,
    /// Bytes among them for which another budget is billed, too.
    shared: AtomicI64,
    /// Whether it has just collected all of its garbage for a block that its budget refused.
    clean: AtomicBool,
    /// Bytes outside of its heap that it has made since then, without those that it has freed.
    made: AtomicI64,
    /// Number of messages in transit to it.
    pub transit: AtomicI32,
    /// Number of messages in its mailbox.
    pub queued: AtomicU32,
    /// The process whose mailbox has no room for its message, by the data of its pid plus one; 0
    /// for none.
    pub waits_for: AtomicU32,
    /// Whether it is in the list of that process. One that was woken is not, until it has looked
    /// for room.
    pub listed: AtomicBool,
    /// The process that it monitors and whose reply it waits for, in the same form, and the bits of
    /// the monitor's reference.
    pub awaits: AtomicU32,
    pub awaits_key: AtomicU64,
    /// Number of senders that wait for room in its mailbox.
    pub waiting: AtomicU32,
    /// Set when it is to end because of its mailbox.
    pub ends: AtomicBool,
    place: Place,
}

/// Where a process was when it last grew by much.
#[derive(Default)]
struct Place {
    /// Its size then, in bytes.
    bytes: AtomicI64,
    /// Code addresses, innermost first; 0 for none. They stand for what they did as long as no
    /// module has been freed since.
    addresses: [AtomicUsize; PLACE_FRAMES],
    freed: AtomicUsize,
}

/// Frames that are kept of the place of a process.
const PLACE_FRAMES: usize = 4;

impl Place {
    /// Records the place of the process in the context, which is at `pc` and has `bytes` bytes.
    #[cold]
    fn note(&self, cx: &Cx, pc: *const u64, bytes: i64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        let all = accounts::addresses_at(cx, pc);
        for (to, a) in self.addresses.iter().zip(all) {
            to.store(a, Ordering::Relaxed);
        }
        self.freed.store(accounts::freed(), Ordering::Relaxed);
    }
    fn frames(&self) -> Vec<Frame> {
        let freed = self.freed.load(Ordering::Relaxed);
        let all: [usize; PLACE_FRAMES] =
            std::array::from_fn(|i| self.addresses[i].load(Ordering::Relaxed));
        match freed == accounts::freed() {
            true => accounts::frames(&all),
            false => Vec::new(),
        }
    }
}

/// Number of seats in a block.
const BLOCK: usize = 1 << 12;
/// Number of blocks: enough for all cells.
const BLOCKS: usize = 1 << 15;

static SEATS: Rows<[Seat; BLOCK], BLOCKS> = Rows::new();

/// Returns the seat of a cell, if its block exists.
#[inline]
pub fn seat(cell: u32) -> Option<&'static Seat> {
    let block = SEATS.get(cell as usize / BLOCK)?;
    block.get(cell as usize % BLOCK)
}

/// Returns the seat of a cell, and makes its block if necessary.
pub fn seat_or_new(cell: u32) -> &'static Seat {
    let block = SEATS.get_or_make(cell as usize / BLOCK, || {
        // A block is too large for the stack.
        let seats: Vec<Seat> = (0..BLOCK).map(|_| Seat::default()).collect();
        let Ok(seats) = seats.try_into() else {
            unreachable!("there are {BLOCK}")
        };
        seats
    });
    &block[cell as usize % BLOCK]
}

impl Seat {
    /// The budget of the process.
    #[inline]
    pub fn budget(&self) -> u32 {
        self.budget.load(Ordering::Relaxed)
    }
}

/// Returns the budget of the process in a cell.
#[inline]
pub fn of_cell(cell: u32) -> u32 {
    seat(cell).map_or(ROOT, Seat::budget)
}

/// The lowest budget, from `index` on, whose processes have to wait because it has used up its
/// share of processor time, or is ahead of its siblings while others wait for a scheduler.
pub fn throttled(index: u32, others_wait: bool) -> Option<u32> {
    let mut at = index;
    while let Some(b) = get(at) {
        if b.cpu.has_to_wait() || others_wait && b.weighted.gives_way(b.siblings()) {
            return Some(at);
        }
        at = b.parent();
    }
    None
}

/// Whether the processor time of the process in a cell is limited to a share.
#[inline]
pub fn has_share(cell: u32) -> bool {
    on() && budget_has_share(of_cell(cell))
}

#[inline(never)]
fn budget_has_share(index: u32) -> bool {
    let limited = |b: &Budget| b.cpu.percent.load(Ordering::Relaxed) != NO_LIMIT;
    upwards(index, ROOT).any(limited)
}

/// Returns the budget of a process that the caller owns, or of a cell whose process may change.
#[inline]
pub fn of(p: *const Process) -> u32 {
    match on() {
        true => of_cell(table().index(p)),
        false => ROOT,
    }
}

/// Returns the budget of a local process; the root's if there is no such process.
pub fn of_pid(pid: Term) -> u32 {
    match on() {
        true => table()
            .find(pid)
            .map_or(ROOT, |p| of_cell(table().index(p))),
        false => ROOT,
    }
}

/// The budget that a process which `parent` spawns belongs to: the one that was asked for, or that
/// of the parent. `parent` is null or owned by the caller.
#[inline]
pub fn inherited(parent: *const Process, asked: Option<u32>) -> u32 {
    if !on() || parent.is_null() {
        return ROOT;
    }
    if let Some(b) = asked {
        return b;
    }
    match seat(table().index(parent)) {
        None => ROOT,
        Some(s) => match s.starts.load(Ordering::Relaxed) {
            0 => s.budget(),
            b => b,
        },
    }
}

/// Charges a process that is about to be made. Returns false if there may be no more.
#[inline]
pub fn admit(budget: u32) -> bool {
    enter(budget, Counted::Processes)
}

/// Takes an admission back: no process was made.
pub fn dismiss(budget: u32) {
    leave(budget, Counted::Processes);
}

/// Seats a new process, which was admitted.
pub fn take_seat(cell: u32, budget: u32) {
    if budget != ROOT {
        let s = seat_or_new(cell);
        s.budget.store(budget, Ordering::Relaxed);
        s.bytes.store(CELL_BYTES as i64, Ordering::Relaxed);
        count(budget, ROOT, Counted::Memory, CELL_BYTES as i64);
    }
}

/// A memory limit that is exceeded.
#[derive(Clone, Copy, Debug)]
pub struct Excess {
    pub budget: u32,
    pub limit: i64,
    pub used: i64,
}

/// The lowest budget, from `index` on, whose memory limit is exceeded.
fn excess(index: u32) -> Option<Excess> {
    let mut at = index;
    while let Some(b) = get(at) {
        let [limit, used, ..] = b.account(Counted::Memory);
        if used > limit {
            return Some(Excess {
                budget: at,
                limit,
                used,
            });
        }
        at = b.parent();
    }
    None
}

/// Bytes left up to the nearest memory limit of a budget and those above it, and that limit.
pub fn memory_left(index: u32) -> (isize, isize) {
    upwards(index, ROOT)
        .map(|b| b.account(Counted::Memory))
        .filter(|a| a[0] != NO_LIMIT)
        .map(|[limit, used, ..]| ((limit - used) as isize, limit as isize))
        .min()
        .unwrap_or((pressure::NO_LIMIT, pressure::NO_LIMIT))
}

/// Has this thread know how much the process that it runs, of that budget, may still make.
pub fn allow(index: u32) {
    let (left, limit) = memory_left(index);
    pressure::set_allowance(left, limit);
}

/// Lowers what the process that this thread runs, of that budget, may still make to what is left
/// now: something of the budget has been weighed.
pub fn lower_allowance(index: u32) {
    pressure::lower_allowance(memory_left(index).0);
}

/// Adds bytes for which another budget is billed, too.
fn share(index: u32, bytes: i64) {
    if let Some(b) = get(index) {
        b.shared.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Notes what the process that this thread runs has made outside of its heap. Returns the bytes
/// since its budget was last below its limit.
fn settle_net(s: &Seat) -> i64 {
    let net = payer::take_net() as i64;
    s.made.fetch_add(net, Ordering::Relaxed) + net
}

/// Counts bytes that the process that this thread runs had twice while a collection copied them.
pub fn note_copy(p: *const Process, bytes: usize) {
    let index = of(p);
    upwards(index, ROOT).for_each(|b| b.note_peak(Counted::Memory, bytes as i64));
}

/// Records where the process in the context is, at `pc`, if it has grown by an eighth since that
/// was last recorded.
pub fn note_place(s: &Seat, cx: &Cx, pc: *const u64, bytes: i64) {
    let before = s.place.bytes.load(Ordering::Relaxed);
    if bytes > before + before / 8 {
        s.place.note(cx, pc, bytes);
    } else if bytes < before / 2 {
        s.place.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Records the size of the process that this thread runs, and how much of it another budget is
/// billed for, too. Returns the bytes that it has made
/// outside of its heap, and whether it has grown, since its budget was last below its memory limit,
/// and the excess of that limit, if there is one.
pub fn weigh(s: &Seat, bytes: i64, shared: i64) -> (i64, bool, Option<Excess>) {
    let index = s.budget();
    let shared_before = s.shared.swap(shared, Ordering::Relaxed);
    if shared != shared_before {
        share(index, shared - shared_before);
    }
    let before = s.bytes.swap(bytes, Ordering::Relaxed);
    if bytes != before {
        count(index, ROOT, Counted::Memory, bytes - before);
    }
    let made = settle_net(s);
    let excess = excess(index);
    if excess.is_none() {
        s.calm.store(bytes, Ordering::Relaxed);
        s.made.store(0, Ordering::Relaxed);
        return (0, false, None);
    }
    let calm = s.calm.load(Ordering::Relaxed);
    (made, bytes > calm + calm / 64 || made > 0, excess)
}

/// Counts that a process was ended for a memory limit.
pub fn note_reached(index: u32) {
    if let Some(b) = get(index) {
        b.reached[Counted::Memory as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// A process of a budget: its size in bytes when it was last weighed, and where it was when it grew
/// to that, innermost first, if that is known.
pub struct Holder {
    pub pid: Term,
    pub bytes: i64,
    pub frames: Vec<Frame>,
}

/// The `most` largest processes of a budget and of those below it, the largest first.
pub fn largest(index: u32, most: usize) -> Vec<Holder> {
    let mut all: Vec<(Term, &Seat, i64)> = members(index)
        .into_iter()
        .filter_map(|pid| {
            let s = seat(table().index(table().find(pid)?))?;
            Some((pid, s, s.bytes.load(Ordering::Relaxed)))
        })
        .collect();
    all.sort_unstable_by_key(|x| std::cmp::Reverse(x.2));
    let first = all.into_iter().take(most);
    first
        .map(|(pid, s, bytes)| Holder {
            pid,
            bytes,
            frames: s.place.frames(),
        })
        .collect()
}

/// Whether the budget of a process ended while the process was made. Called after its queue has
/// been opened.
pub fn was_late(budget: u32) -> bool {
    fence(crate::sync::Ordering::SeqCst);
    upwards(budget, ROOT).any(Budget::has_ended)
}

/// Empties the seat of a process that ends.
pub fn leave_seat(cell: u32) {
    let Some(s) = seat(cell) else { return };
    s.transit.store(0, Ordering::Relaxed);
    s.queued.store(0, Ordering::Relaxed);
    s.calm.store(0, Ordering::Relaxed);
    s.made.store(0, Ordering::Relaxed);
    s.awaits.store(0, Ordering::Relaxed);
    s.awaits_key.store(0, Ordering::Relaxed);
    s.waiting.store(0, Ordering::Relaxed);
    s.ends.store(false, Ordering::Relaxed);
    s.place.bytes.store(0, Ordering::Relaxed);
    s.place.addresses[0].store(0, Ordering::Relaxed);
    let starts = s.starts.swap(0, Ordering::Relaxed);
    if starts != 0 {
        let_go(starts);
    }
    let b = s.budget.swap(ROOT, Ordering::Relaxed);
    let bytes = s.bytes.swap(0, Ordering::Relaxed);
    let shared = s.shared.swap(0, Ordering::Relaxed);
    if b != ROOT {
        share(b, -shared);
        count(b, ROOT, Counted::Memory, -bytes);
        leave(b, Counted::Processes);
    }
}

/// Moves a process that the caller owns to a budget below its own. Returns false, and moves
/// nothing, if there may be no more processes.
pub fn join(p: *const Process, to: u32) -> bool {
    let s = seat_or_new(table().index(p));
    let from = s.budget();
    if from == to {
        return true;
    }
    if !hold(to) {
        return false;
    }
    if !charge(to, from, Counted::Processes, 1) {
        let_go(to);
        return false;
    }
    count(to, from, Counted::Memory, s.bytes.load(Ordering::Relaxed));
    let shared = s.shared.load(Ordering::Relaxed);
    share(from, -shared);
    share(to, shared);
    s.budget.store(to, Ordering::Relaxed);
    settle_net(s);
    set_payer(to);
    if from != ROOT {
        let_go(from);
    }
    true
}

/// Has what a local process spawns from now on belong to a budget.
pub fn set_starts(pid: Term, budget: u32) {
    let Some(p) = table().find(pid).filter(|_| hold(budget)) else {
        return;
    };
    let s = seat_or_new(table().index(p));
    let before = s.starts.swap(budget, Ordering::Relaxed);
    if before != 0 {
        let_go(before);
    }
}

/// Has a budget, and those below it, take nothing more in. Returns their indices, without those
/// that had been ended before.
pub fn end(index: u32) -> Vec<u32> {
    let mut ended = Vec::new();
    for i in all().into_iter().filter(|&i| is_within(i, index)) {
        if let Some(b) = get(i)
            && !b.ended.swap(true, Ordering::SeqCst)
        {
            ended.push(i);
        }
    }
    fence(crate::sync::Ordering::SeqCst);
    ended
}

/// Gives up the hold that each budget has until it is ended. Called with the result of [`end`],
/// after the processes were found.
pub fn release_ended(ended: &[u32]) {
    ended.iter().for_each(|&i| let_go(i));
}

/// The pids of processes that belong to `index` or a budget below it.
pub fn members(index: u32) -> Vec<Term> {
    let all = table().pids();
    all.into_iter()
        .filter(|&p| {
            let b = of_pid(p);
            b != ROOT && is_within(b, index)
        })
        .collect()
}

/// The budget that a table or port belongs to. It is counted there until this is dropped.
pub struct Charge {
    budget: u32,
    what: Counted,
    /// Bytes charged for it.
    bytes: AtomicI64,
}

impl Charge {
    /// Charges a table or port of that owner. `None` if there may be no more.
    pub fn new(owner: Term, what: Counted) -> Option<Charge> {
        let budget = match owner.is_local_pid() {
            true => of_pid(owner),
            false => ROOT,
        };
        enter(budget, what).then(|| Charge {
            budget,
            what,
            bytes: AtomicI64::new(0),
        })
    }
    /// Charges it to the budget of another owner, whatever that has left, if it is within the one
    /// that pays. A budget pays on for what leaves it, until it has ended: else a process would get
    /// rid of its bill by giving away what it has made.
    pub fn moved_to(self, owner: Term) -> Charge {
        let to = match owner.is_local_pid() {
            true => of_pid(owner),
            false => ROOT,
        };
        let leaves = self.budget != ROOT && !is_within(to, self.budget);
        let stays = leaves && get(self.budget).is_some_and(|b| !b.has_ended());
        if to == self.budget || stays || !(to == ROOT || hold(to)) {
            return self;
        }
        count(to, ROOT, self.what, 1);
        count(to, ROOT, Counted::Memory, self.bytes());
        Charge {
            budget: to,
            what: self.what,
            bytes: AtomicI64::new(self.bytes()),
        }
    }
    /// The budget that it is charged to.
    pub fn budget(&self) -> u32 {
        self.budget
    }
    /// Records its size. Returns the excess of a memory limit, if there is one.
    pub fn weigh(&self, bytes: i64) -> Option<Excess> {
        if self.budget == ROOT {
            return None;
        }
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        count(self.budget, ROOT, Counted::Memory, bytes - before);
        excess(self.budget)
    }
    /// Bytes charged for it.
    pub fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.budget != ROOT {
            count(self.budget, ROOT, Counted::Memory, -self.bytes());
            leave(self.budget, self.what);
        }
    }
}

/// The budgets of applications that `+Fbudget` names, by the atom of the name.
static APPLICATIONS: RwLock<Option<HashMap<u64, u32>>> = RwLock::new(None);
/// The same for registered names.
static NAMES: RwLock<Option<HashMap<u64, u32>>> = RwLock::new(None);
/// Whether there are any such rules.
static RULES: AtomicBool = AtomicBool::new(false);

/// Whether `+Fbudget` has named applications or processes.
#[inline(always)]
pub fn has_rules() -> bool {
    on() && RULES.load(Ordering::Relaxed)
}

/// The holder of a budget of `+Fbudget`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// An application: its master, and so all of its processes.
    Application,
    /// A registered name: the budget is for what its process starts from then on.
    Name,
}

/// Has the processes of an application, or what a registered process starts, belong to a budget.
pub fn add_rule(whose: Whose, name: Term, budget: u32) {
    let rules = match whose {
        Whose::Application => &APPLICATIONS,
        Whose::Name => &NAMES,
    };
    let mut r = rules.write();
    r.get_or_insert_default().insert(name.raw(), budget);
    RULES.store(true, Ordering::Relaxed);
}

lazy_atoms! {
    proc_lib = "proc_lib";
    init_p = "init_p";
    application_master = "application_master";
    appl_data = "appl_data";
}

/// The budget of an application whose master is about to be spawned: `proc_lib` calls `init` of
/// `application_master`, one of whose arguments is the record of the application.
#[cold]
pub fn of_application([m, f, args]: [Term; 3]) -> Option<u32> {
    if m != proc_lib() || f != init_p() {
        return None;
    }
    let args: Vec<Term> = args.list_iter().collect();
    let &[_, _, module, _, init] = &args[..] else {
        return None;
    };
    if module != application_master() {
        return None;
    }
    let data = init.list_iter().find_map(|a| {
        let parts = a.as_tuple()?;
        (parts.first() == Some(&appl_data())).then_some(*parts.get(1)?)
    })?;
    APPLICATIONS.read().as_ref()?.get(&data.raw()).copied()
}

/// Called when a local process has got a registered name.
#[cold]
pub fn was_named(pid: Term, name: Term) {
    let rule = NAMES
        .read()
        .as_ref()
        .and_then(|r| r.get(&name.raw()).copied());
    if let Some(b) = rule {
        set_starts(pid, b);
    }
}

thread_local! {
    /// Whether the process that this thread runs had collected all of its garbage for a block.
    static WAS_CLEAN: Cell<bool> = const { Cell::new(false) };
    /// Processor time of this thread when it began to run a process with a budget; 0 for none.
    static BEGUN: Cell<i64> = const { Cell::new(0) };
}

/// A time slice of a process begins on this thread. Returns whether it should be short, since the
/// processor time of its budget is limited.
#[inline(always)]
pub fn begins(p: *const Process) -> bool {
    on() && begins_in_budget(p)
}

#[inline(never)]
fn begins_in_budget(p: *const Process) -> bool {
    {
        let seat = seat(table().index(p));
        let budget = seat.map_or(ROOT, Seat::budget);
        set_payer(budget);
        let clean = seat.is_none_or(|s| s.clean.swap(false, Ordering::Relaxed));
        WAS_CLEAN.set(clean);
        pressure::begin_slice(clean);
        BEGUN.set(match budget {
            ROOT => 0,
            _ => clock::thread_time(),
        });
        budget != ROOT && upwards(budget, ROOT).any(|b| b.cpu().0 != NO_LIMIT)
    }
}

/// Has the process that this thread runs, which goes on in another time slice with the same native,
/// not collect all of its garbage there again.
pub fn keeps_clean(p: *const Process) {
    if WAS_CLEAN.get()
        && let Some(s) = seat(table().index(p))
    {
        s.clean.store(true, Ordering::Relaxed);
    }
}

/// Whether the process that this thread runs has to collect all of its garbage now, for a block
/// that its budget refuses otherwise.
pub fn takes_collection(p: *const Process) -> bool {
    let wanted = pressure::takes_collection();
    if wanted && let Some(s) = seat(table().index(p)) {
        s.clean.store(true, Ordering::Relaxed);
    }
    wanted
}

/// A time slice ends on this thread.
#[inline(always)]
pub fn ends() {
    if on() {
        let begun = BEGUN.replace(0);
        if begun != 0 {
            let used = clock::thread_time() - begun;
            let mut at = payer::current();
            while let Some(b) = get(at) {
                b.cpu.charge(used);
                let capped = b.cpu.waits.load(Ordering::Relaxed);
                b.weighted.charge(b.siblings(), used, capped);
                at = b.parent();
            }
        }
        set_payer(ROOT);
    }
}

/// Bills a block outside of heaps. See [`Ledger`].
fn bill(index: u32, bytes: usize) -> bool {
    if !hold(index) {
        return false;
    }
    rebill(index, bytes as isize);
    true
}

fn unbill(index: u32, bytes: usize) {
    count(index, ROOT, Counted::Memory, -(bytes as i64));
    let_go(index);
}

fn rebill(index: u32, by: isize) {
    count(index, ROOT, Counted::Memory, by as i64);
    if index == payer::current() {
        pressure::lower_allowance(memory_left(index).0);
    }
}

/// The part of a block that a process of a budget pays for beside those who are billed for it:
/// nothing if the budget is billed itself, and an equal part otherwise. The only holder is billed
/// from now on.
pub fn part_of(index: u32, payer: &Payer, bytes: usize, holders: usize) -> usize {
    if is_within(payer.budget(), index) && payer.budget() != ROOT {
        return 0;
    }
    if holders <= 1 && (payer.budget() == ROOT || !is_within(index, payer.budget())) {
        payer.hand_to(index, bytes);
        return 0;
    }
    bytes / holders.max(1)
}

/// Has this thread make things on the account of a budget.
fn set_payer(budget: u32) {
    payer::set_current(budget);
    allow(budget);
}

/// The time in which a budget pays for what a thread makes that runs no process of a budget. It
/// ends when this is dropped.
pub struct Paying(bool);

/// Has budget `index` pay for what this thread makes, unless another one pays already.
#[inline]
pub fn pays(index: u32) -> Paying {
    let begins = index != ROOT && payer::current() == ROOT;
    if begins {
        set_payer(index);
    }
    Paying(begins)
}

impl Drop for Paying {
    #[inline]
    fn drop(&mut self) {
        if self.0 {
            set_payer(ROOT);
        }
    }
}

/// Charges a new atom to the budget of the process that this thread runs. Returns false if there
/// may be no more. Atoms stay, so they are never given back.
pub fn charge_atom() -> bool {
    let b = payer::current();
    b == ROOT || charge(b, ROOT, Counted::Atoms, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_term::am;

    fn budget(parent: u32, processes: i64) -> u32 {
        let mut l = Limits::default();
        l.counted[Counted::Processes as usize] = Some(processes);
        let made = make(parent, OwnedTerm::copy_of(am::OK), &l);
        made.expect("room for a budget").0
    }

    #[test]
    fn a_child_counts_for_its_parents_and_gets_no_more_than_they_have() {
        let a = budget(ROOT, 3);
        let b = budget(a, 100);
        assert!(is_within(b, a) && is_within(a, ROOT) && !is_within(a, b));
        assert!(admit(b) && admit(b) && admit(a));
        assert!(!admit(b) && !admit(a));
        let used = |i: u32| get(i).expect("in use").account(Counted::Processes);
        assert_eq!(used(b), [100, 2, 3, 0]);
        assert_eq!(used(a), [3, 3, 3, 2]);
        dismiss(b);
        assert!(admit(a));
        // A budget that has ended takes nothing in, and leaves when nothing holds it.
        let key = get(b).and_then(Budget::key).expect("has a key");
        let ended = end(b);
        assert_eq!(ended, [b]);
        assert!(!admit(b) && was_late(b) && !was_late(a));
        release_ended(&ended);
        assert_eq!(get(b).and_then(Budget::key), Some(key));
        dismiss(b);
        assert_eq!(get(b).and_then(Budget::key), None);
        dismiss(a);
        dismiss(a);
        release_ended(&end(a));
        assert_eq!(get(a).and_then(Budget::key), None);
    }
}
