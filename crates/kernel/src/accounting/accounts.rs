//! Counts of copied, shared and allocated words, by the place in the program that caused them.
//!
//! A place is a stack of code addresses, which is recorded as functions and lines when it is first
//! seen. Copies of [`EXACT_WORDS`] and more are counted one by one. For smaller copies and for
//! allocations on heaps, each thread takes a sample about every [`SAMPLED_WORDS`] and charges all
//! words since the last sample to the place of this one. So sums are right, and the shares of
//! places get more exact with more samples.
//!
//! # Invariants
//! * Whatever is not sampled costs a subtraction and a comparison. No thread writes to memory that
//!   another thread writes to.
//! * Each thread has a table of its own behind a lock, which others take only to read it. The table
//!   is bounded: see [`PLACES`].
//! * Addresses are keys only until a module is freed: [`forget_addresses`].

use super::selection;
use crate::process::Cx;
use crate::sync::{Mutex, MutexGuard};
use purlin_native::cx::NOT_STARTED;
use purlin_term::word::is_header_word;
use purlin_term::{Term, copy};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Words between two samples: 512 KiB.
pub const SAMPLED_WORDS: usize = 1 << 16;
/// Copies of at least this many words (8 KiB) are all counted.
pub const EXACT_WORDS: usize = 1 << 10;
/// Writes of at least this many bytes are all counted. Smaller writes are charged to the place of
/// every `SMALL_WRITES`th.
pub const EXACT_BYTES: u64 = 8 * EXACT_WORDS as u64;
const SMALL_WRITES: u64 = 64;
/// Reductions between two samples.
pub const SAMPLED_REDUCTIONS: usize = 16_000;
/// Minimum duration in nanoseconds of a wait for a message, and of any other wait, that is recorded
/// with its place.
const MIN_RECEIVE: u64 = 1_000_000;
const MIN_WAIT: u64 = 100_000;
/// The same for a lock. The waiting thread has slept anyway, so recording costs little in
/// comparison.
const MIN_LOCK: u64 = 1_000;
/// Maximum number of frames of a place.
pub const FRAMES: usize = 12;
/// Words of the stack that are searched for them.
const STACK_WORDS: usize = 400;
/// Number of places in a thread's table that are distinguished by all of their frames. Beyond twice
/// as many they are not distinguished at all.
pub const PLACES: usize = 1 << 11;
/// Frames of a place beyond [`PLACES`].
const FRAMES_OF_MANY: usize = 4;
/// Number of terms that are searched for a closure.
const SEARCHED: usize = 64;
/// Closure variables larger than this are not measured further.
const MEASURED_WORDS: usize = 1 << 24;

/// The kind of work done at a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A message was sent.
    Message,
    /// A process was started: its arguments, and what its fun captured.
    Spawn,
    /// An exit reason was sent to others.
    Exit,
    /// A timer was started, with a message.
    Timer,
    /// An object was inserted into a table.
    TableIn,
    /// An object was read from a table.
    TableOut,
    /// A process was asked about itself.
    Asked,
    /// Words were allocated on a heap.
    Allocation,
    /// A collection kept words: it moved or traversed them.
    Collection,
    /// Reductions were used.
    Work,
    /// Data was written to a file, a socket or a program: see [`Written`]. Sums are bytes.
    Write,
    /// The process ran. Sampled only while someone wants it: see [`crate::profile`]. Sums of this
    /// kind and those below are nanoseconds.
    Time,
    /// The process was ready but did not run.
    Ready,
    /// The process waited for a message, or for a timeout.
    Receive,
    /// The process waited until a port, or the connection to another node, accepted more.
    Busy,
    /// The process waited for a dirty thread.
    DirtyQueue,
    /// The process, and its scheduler, waited for a table or port that others used.
    Lock,
}

impl Kind {
    /// Whether terms are copied.
    pub fn is_copy(self) -> bool {
        self < Kind::Allocation
    }
    /// Whether a process waits.
    pub fn is_wait(self) -> bool {
        self >= Kind::Ready
    }
}

/// A function and a line in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    pub module: Term,
    pub function: Term,
    pub arity: u32,
    /// File and line.
    pub line: Option<(String, u32)>,
}

/// The largest variable that a closure has captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured {
    /// The function with the closure's code. Its arity, `arity`, includes captured variables.
    pub module: Term,
    pub function: Term,
    pub arity: u32,
    /// Its index among `count` captured variables, from 0.
    pub index: usize,
    pub count: usize,
    /// Its size in words, shared parts included.
    pub words: usize,
}

/// Sums for a place, in words unless its kind says otherwise.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sums {
    /// Number of times; an estimate where copies are small.
    pub times: u64,
    /// Words copied, allocated, used or waited. For writes: bytes merged from small parts.
    pub copied: u64,
    /// Words copied to regions, which happens once. For writes: bytes queued because the other side
    /// did not accept them at once.
    pub moved: u64,
    /// Words not copied because they were in regions. For writes: bytes passed to the system in
    /// place.
    pub shared: u64,
    /// The largest copy.
    pub largest: u64,
    /// Number of samples among them; with 0, nothing is estimated.
    pub samples: u64,
    /// For writes: the number of system calls, and of the parts passed to them.
    pub calls: u64,
    pub parts: u64,
}

impl Sums {
    /// Adds other sums.
    pub fn add(&mut self, o: &Sums) {
        self.times += o.times;
        self.copied += o.copied;
        self.moved += o.moved;
        self.shared += o.shared;
        self.largest = self.largest.max(o.largest);
        self.samples += o.samples;
        self.calls += o.calls;
        self.parts += o.parts;
    }
}

/// The account of a place. The first frame is the innermost.
#[derive(Clone, Debug)]
pub struct Entry {
    pub kind: Kind,
    pub frames: Vec<Frame>,
    pub sums: Sums,
    pub captured: Option<Captured>,
}

/// Addresses from the innermost outwards; ends with 0.
type Key = (Kind, [usize; FRAMES]);
type Place = (Kind, Vec<Frame>);

#[derive(Default)]
pub(super) struct Table {
    by_address: HashMap<Key, usize>,
    by_frames: HashMap<Place, usize>,
    entries: Vec<Entry>,
    waits: Waits,
    /// Number of freed modules when the keys were made.
    freed: usize,
}

static ON: AtomicBool = AtomicBool::new(true);
static FREED: AtomicUsize = AtomicUsize::new(0);
static NAMER: OnceLock<fn(*const u64) -> Option<Frame>> = OnceLock::new();
static TABLES: Mutex<Vec<Arc<Mutex<Table>>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: RefCell<Option<Arc<Mutex<Table>>>> = const { RefCell::new(None) };
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock()
}

/// Sets the function that names code addresses. Before that nothing is counted by place.
pub fn set_namer(f: fn(*const u64) -> Option<Frame>) {
    let _ = NAMER.set(f);
}

/// Turns counting off. Must be called before there are schedulers.
pub fn turn_off() {
    ON.store(false, Ordering::Relaxed);
}

/// Whether anything is counted.
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Called before code is freed: its addresses may soon mean something else.
pub fn forget_addresses() {
    FREED.fetch_add(1, Ordering::Relaxed);
}

/// Counts a copy of `words` words made by the process in the context. `what` is the copied term,
/// which is searched for closures.
#[inline]
pub fn copied(cx: &mut Cx, kind: Kind, words: usize, what: Term) {
    if words >= EXACT_WORDS {
        large(cx, kind, words, what);
        return;
    }
    cx.until_sample.copied -= words as i64;
    if cx.until_sample.copied < 0 {
        small(cx, kind, words, what);
    }
}

#[cold]
#[inline(never)]
fn large(cx: &mut Cx, kind: Kind, words: usize, what: Term) {
    let n = words as u64;
    let sums = Sums {
        times: 1,
        copied: n,
        largest: n,
        ..Default::default()
    };
    record(cx, kind, sums, what);
}

#[cold]
#[inline(never)]
fn small(cx: &mut Cx, kind: Kind, words: usize, what: Term) {
    let Some(n) = sampled(&mut cx.until_sample.copied, SAMPLED_WORDS) else {
        return;
    };
    record(cx, kind, like(n, words), what);
}

/// Sums for `n` words, one sample of which had `words`.
fn like(n: u64, words: usize) -> Sums {
    Sums {
        times: (n / words.max(1) as u64).max(1),
        copied: n,
        largest: words as u64,
        samples: 1,
        ..Default::default()
    }
}

/// Restarts an amount that is used up. Returns the amount used since the last sample, or None if
/// this was the first look and not a sample.
#[inline]
fn sampled(left: &mut i64, every: usize) -> Option<u64> {
    let overdrawn = *left;
    let first = overdrawn < -(NOT_STARTED / 2);
    if !on() {
        *left = i64::MAX;
        return None;
    }
    *left = every as i64;
    // A context starts far below zero, so that its first copy comes here even if nothing is
    // counted.
    (!first).then_some(every as u64 + overdrawn.unsigned_abs())
}

/// Counts words that were moved to regions or found there. Small amounts are sampled, as copies
/// are.
pub fn shared(cx: &mut Cx, kind: Kind, moved: u64, shared: u64, what: Term) {
    let words = (moved + shared) as usize;
    if words < EXACT_WORDS {
        cx.until_sample.copied -= words as i64;
        if cx.until_sample.copied < 0 {
            shared_small(cx, kind, (moved, words as u64), what);
        }
        return;
    }
    let sums = Sums {
        times: 1,
        moved,
        shared,
        ..Default::default()
    };
    record(cx, kind, sums, what);
}

/// `moved` of `words` words went to regions.
#[cold]
#[inline(never)]
fn shared_small(cx: &mut Cx, kind: Kind, (moved, words): (u64, u64), what: Term) {
    let Some(n) = sampled(&mut cx.until_sample.copied, SAMPLED_WORDS) else {
        return;
    };
    let moved = (u128::from(n) * u128::from(moved) / u128::from(words.max(1))) as u64;
    let sums = Sums {
        times: (n / words.max(1)).max(1),
        moved,
        shared: n - moved,
        samples: 1,
        ..Default::default()
    };
    record(cx, kind, sums, what);
}

/// Counts words that the process in the context has allocated on its heap.
#[inline]
pub fn allocated(cx: &mut Cx, words: usize) {
    cx.until_sample.allocated -= words as i64;
    if cx.until_sample.allocated < 0 {
        allocation(cx, words);
    }
}

#[cold]
#[inline(never)]
fn allocation(cx: &mut Cx, words: usize) {
    let Some(n) = sampled(&mut cx.until_sample.allocated, SAMPLED_WORDS) else {
        return;
    };
    let sums = Sums {
        times: 1,
        copied: n,
        largest: words as u64,
        samples: 1,
        ..Default::default()
    };
    record(cx, Kind::Allocation, sums, Term::small(0));
}

/// Does the same as [`allocated`] for a process that ends, charging the words to its initial
/// function. A process that was never collected most likely has no more than its arguments, which
/// count as a copy.
#[inline]
pub fn ended(cx: &mut Cx) {
    if std::ptr::eq(cx.heap.high_water, cx.heap.heap) {
        return;
    }
    let words = cx.heap.fresh_words();
    cx.until_sample.allocated -= words as i64;
    if cx.until_sample.allocated < 0 {
        // Its last address may be anywhere.
        cx.bif_pc = std::ptr::null();
        allocation(cx, words);
    }
}

/// Counts words that a collection of the process in the context has kept.
#[inline]
pub(crate) fn kept(cx: &mut Cx, words: usize) {
    cx.until_sample.kept -= words as i64;
    if cx.until_sample.kept < 0
        && let Some(n) = sampled(&mut cx.until_sample.kept, SAMPLED_WORDS)
    {
        record(cx, Kind::Collection, like(n, words), Term::small(0));
    }
}

/// Counts reductions that the process in the context has used until it stopped at `pc`. Its stack
/// is valid.
#[inline]
pub(crate) fn worked(cx: &mut Cx, reductions: u64, pc: *const u64) {
    cx.until_sample.worked -= reductions as i64;
    if cx.until_sample.worked < 0 {
        work(cx, pc);
    }
}

#[cold]
#[inline(never)]
fn work(cx: &mut Cx, pc: *const u64) {
    let Some(n) = sampled(&mut cx.until_sample.worked, SAMPLED_REDUCTIONS) else {
        return;
    };
    cx.bif_pc = pc;
    let sums = Sums {
        times: 1,
        copied: n,
        samples: 1,
        ..Default::default()
    };
    record(cx, Kind::Work, sums, Term::small(0));
}

/// Counts nanoseconds for which the process in the context has run until it stopped at
/// `cx.interp.pc` with its stack intact, or with its stack gone (`ended`).
#[cold]
#[inline(never)]
pub(crate) fn ran(cx: &mut Cx, nanoseconds: u64, ended: bool) {
    cx.bif_pc = cx.interp.pc;
    let sums = Sums {
        times: 1,
        copied: nanoseconds,
        largest: nanoseconds,
        samples: 1,
        ..Default::default()
    };
    record_at(cx, Kind::Time, sums, Term::small(0), ended);
}

/// Counts a wait, with the given weight, of the process in the context, which continues at `pc`.
/// Its stack is valid.
pub(crate) fn waited(cx: &mut Cx, kind: Kind, nanoseconds: u64, weight: u64, pc: *const u64) {
    with_table(|t| t.waits.add(kind, nanoseconds, weight));
    super::recorder::waited(cx, kind, nanoseconds, pc);
    let least = match kind {
        Kind::Receive => MIN_RECEIVE,
        Kind::Lock => MIN_LOCK,
        _ => MIN_WAIT,
    };
    if nanoseconds < least {
        return;
    }
    cx.bif_pc = pc;
    let sums = Sums {
        times: weight,
        copied: nanoseconds.saturating_mul(weight),
        largest: nanoseconds,
        samples: u64::from(weight > 1),
        ..Default::default()
    };
    record(cx, kind, sums, Term::small(0));
}

/// The writes of a process since the last query: bytes, and how they went out.
#[derive(Clone, Copy, Default, Debug)]
pub struct Written {
    pub bytes: u64,
    /// Bytes among these that were merged from small parts.
    pub merged: u64,
    /// Bytes among these that were queued because the other side did not accept them at once.
    pub queued: u64,
    pub parts: u64,
    pub calls: u64,
}

thread_local! {
    /// The write under way on this thread.
    static WRITTEN: Cell<Written> = const {
        Cell::new(Written { bytes: 0, merged: 0, queued: 0, parts: 0, calls: 0 })
    };
    /// Number and sums of small writes that are not counted yet.
    static SMALL: Cell<(u64, Sums)> = const { Cell::new((0, NOTHING)) };
}

const NOTHING: Sums = Sums {
    times: 0,
    copied: 0,
    moved: 0,
    shared: 0,
    largest: 0,
    samples: 0,
    calls: 0,
    parts: 0,
};

/// Adds to the write under way on this thread. [`wrote`] charges it to a process.
#[inline]
pub fn writes(f: impl FnOnce(&mut Written)) {
    let mut w = WRITTEN.get();
    f(&mut w);
    WRITTEN.set(w);
}

/// Resets the write of this thread, before something is written for a process.
#[inline]
pub fn writes_begin() {
    WRITTEN.set(Written::default());
}

/// Charges what was written since [`writes_begin`] to the process in the context.
pub fn wrote(cx: &mut Cx) {
    let w = WRITTEN.take();
    if w.bytes == 0 || !on() {
        return;
    }
    let one = Sums {
        times: 1,
        copied: w.merged,
        moved: w.queued,
        shared: w.bytes.saturating_sub(w.merged),
        largest: w.bytes,
        samples: 0,
        calls: w.calls,
        parts: w.parts,
    };
    if w.bytes >= EXACT_BYTES {
        record(cx, Kind::Write, one, Term::small(0));
        return;
    }
    let (n, mut sums) = SMALL.take();
    sums.add(&one);
    if n + 1 < SMALL_WRITES {
        SMALL.set((n + 1, sums));
        return;
    }
    sums.samples = 1;
    record(cx, Kind::Write, sums, Term::small(0));
}

/// Sums of waits, by kind.
#[derive(Clone, Default, Debug)]
pub struct Waits(pub BTreeMap<Kind, Wait>);

/// Waits of one kind. `lengths` counts them by duration: below 1, 2, 4 microseconds and so on; the
/// last has no bound.
#[derive(Clone, Copy, Default, Debug)]
pub struct Wait {
    pub times: u64,
    pub nanoseconds: u64,
    pub longest: u64,
    pub lengths: [u64; LENGTHS],
}

/// See [`Wait`].
pub const LENGTHS: usize = 32;

impl Waits {
    fn add(&mut self, kind: Kind, nanoseconds: u64, weight: u64) {
        let w = self.0.entry(kind).or_default();
        w.times += weight;
        w.nanoseconds = w
            .nanoseconds
            .saturating_add(nanoseconds.saturating_mul(weight));
        w.longest = w.longest.max(nanoseconds);
        let place = u64::BITS - (nanoseconds / 1000).leading_zeros();
        w.lengths[(place as usize).min(LENGTHS - 1)] += weight;
    }
}

/// Returns the sums of all threads' waits.
pub fn waits() -> Waits {
    let tables: Vec<_> = lock(&TABLES).clone();
    let mut all = Waits::default();
    for t in tables {
        for (kind, w) in &lock(&t).waits.0 {
            let sum = all.0.entry(*kind).or_default();
            sum.times += w.times;
            sum.nanoseconds = sum.nanoseconds.saturating_add(w.nanoseconds);
            sum.longest = sum.longest.max(w.longest);
            for (a, b) in sum.lengths.iter_mut().zip(w.lengths) {
                *a += b;
            }
        }
    }
    all
}

/// Returns the addresses of the process in the context, innermost first: the running instruction,
/// then return addresses, each as the word before it, which belongs to the call.
fn addresses(cx: &Cx) -> [usize; FRAMES] {
    addresses_at(cx, cx.bif_pc)
}

/// Does the same as [`addresses`] for a process that is at `pc`; null if that is unknown.
pub(crate) fn addresses_at(cx: &Cx, pc: *const u64) -> [usize; FRAMES] {
    let mut v = [0; FRAMES];
    v[0] = pc as usize;
    let mut n = usize::from(!pc.is_null());
    let mut p = cx.heap.stop;
    let words = (cx.heap.hend as usize).saturating_sub(p as usize) / 8;
    for _ in 0..words.min(STACK_WORDS) {
        // SAFETY: a word of the stack, between its top and the end of the block.
        let w = unsafe { (*p).raw() };
        if is_header_word(w) && w != 0 {
            v[n] = w as usize - 8;
            n += 1;
            if n == FRAMES {
                break;
            }
        }
        p = p.wrapping_add(1);
    }
    v
}

/// Number of modules freed so far.
pub(crate) fn freed() -> usize {
    FREED.load(Ordering::Relaxed)
}

/// Returns the functions at addresses, up to the first 0.
pub(crate) fn frames(addresses: &[usize]) -> Vec<Frame> {
    let Some(namer) = NAMER.get() else {
        return Vec::new();
    };
    let used = addresses.iter().take_while(|a| **a != 0);
    used.filter_map(|a| namer(*a as *const u64)).collect()
}

/// Returns the initial function of the process in the context.
pub(crate) fn initial(cx: &mut Cx) -> Vec<Frame> {
    // SAFETY: null or an export; exports are never freed.
    let e = unsafe { cx.process().initial_call.as_ref() };
    let frame = e.map(|e| Frame {
        module: e.module,
        function: e.function,
        arity: e.arity,
        line: None,
    });
    frame.into_iter().collect()
}

#[cold]
#[inline(never)]
fn record(cx: &mut Cx, kind: Kind, sums: Sums, what: Term) {
    // At an exit, the stack is gone.
    record_at(cx, kind, sums, what, kind == Kind::Exit);
}

/// Records at the place where the process in the context is, or, if its stack is gone, at its
/// initial function.
fn record_at(cx: &mut Cx, kind: Kind, sums: Sums, what: Term, gone: bool) {
    let Some(&namer) = NAMER.get().filter(|_| on() && !cx.proc.is_null()) else {
        return;
    };
    let addresses = match gone {
        true => [0; FRAMES],
        false => addresses(cx),
    };
    let counted = Counted {
        kind,
        sums,
        what,
        addresses,
        gone,
    };
    with_table(|t| enter(cx, t, namer, &counted));
    if selection::any() {
        selection::record(cx, |cx, t| enter(cx, t, namer, &counted));
    }
}

/// An event that is entered in a table.
struct Counted {
    kind: Kind,
    sums: Sums,
    what: Term,
    addresses: [usize; FRAMES],
    /// Whether the stack is gone.
    gone: bool,
}

/// Calls `f` with the table of this thread.
fn with_table<R>(f: impl FnOnce(&mut Table) -> R) -> R {
    let mine = MINE.with(|m| {
        let mut m = m.borrow_mut();
        let table = m.get_or_insert_with(|| {
            let table = Arc::<Mutex<Table>>::default();
            lock(&TABLES).push(table.clone());
            table
        });
        table.clone()
    });
    f(&mut lock(&mine))
}

fn enter(cx: &mut Cx, t: &mut Table, namer: fn(*const u64) -> Option<Frame>, counted: &Counted) {
    let &Counted {
        kind,
        sums,
        what,
        addresses,
        gone,
    } = counted;
    let freed = FREED.load(Ordering::Relaxed);
    if t.freed != freed {
        t.freed = freed;
        t.by_address.clear();
    }
    let found = match gone {
        true => None,
        false => t.by_address.get(&(kind, addresses)).copied(),
    };
    let index = found.unwrap_or_else(|| {
        let mut frames: Vec<Frame> = match gone {
            true => initial(cx),
            false => addresses
                .iter()
                .take_while(|a| **a != 0)
                .filter_map(|a| namer(*a as *const u64))
                .collect(),
        };
        if frames.is_empty() {
            frames = initial(cx);
        }
        // A new place in a table of many is known by its innermost frames only, and finally not at
        // all.
        for (most, kept) in [(PLACES, FRAMES_OF_MANY), (2 * PLACES, 0)] {
            let known = || t.by_frames.contains_key(&(kind, frames.clone()));
            if t.entries.len() >= most && !known() {
                frames.truncate(kept);
            }
        }
        let place = (kind, frames);
        let index = t.by_frames.get(&place).copied().unwrap_or_else(|| {
            t.entries.push(Entry {
                kind,
                frames: place.1.clone(),
                sums: Sums::default(),
                captured: None,
            });
            let index = t.entries.len() - 1;
            t.by_frames.insert(place, index);
            index
        });
        if !gone && t.by_address.len() < 4 * PLACES {
            t.by_address.insert((kind, addresses), index);
        }
        index
    });
    let e = &mut t.entries[index];
    let before = e.sums.times;
    e.sums.add(&sums);
    // Finding and measuring closures costs about as much as the copy, so it is done rarely.
    if matches!(kind, Kind::Message | Kind::Spawn)
        && before.leading_zeros() != e.sums.times.leading_zeros()
        && let Some(c) = captured(what)
        && e.captured.is_none_or(|old| old.words <= c.words)
    {
        e.captured = Some(c);
    }
}

/// Returns the largest variable of the outermost closure in a term.
fn captured(t: Term) -> Option<Captured> {
    let mut todo: SmallVec<[Term; SEARCHED]> = SmallVec::new();
    todo.push(t);
    let mut next = 0;
    while next < todo.len() && next < SEARCHED {
        let t = todo[next];
        next += 1;
        if let Some(f) = t.as_fun() {
            let Some(entry) = f.local() else { continue };
            let sizes = f
                .env
                .iter()
                .map(|&v| copy::size_whole_within(v, MEASURED_WORDS).unwrap_or(MEASURED_WORDS));
            let Some((index, words)) = sizes.enumerate().max_by_key(|s| s.1) else {
                continue;
            };
            return Some(Captured {
                module: entry.module,
                function: entry.function(),
                arity: u32::from(entry.code_arity),
                index,
                count: f.env.len(),
                words,
            });
        }
        let room = SEARCHED.saturating_sub(todo.len());
        if let Some(e) = t.as_tuple() {
            todo.extend(e.iter().copied().filter(|e| !e.is_immed()).take(room));
        } else if let Some((head, tail)) = t.as_cons() {
            todo.extend(
                [head, tail]
                    .into_iter()
                    .filter(|e| !e.is_immed())
                    .take(room),
            );
        }
    }
    None
}

impl Table {
    /// The places.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// Returns the sums of all places by kind.
pub fn sums() -> BTreeMap<Kind, Sums> {
    let tables: Vec<_> = lock(&TABLES).clone();
    let mut all: BTreeMap<Kind, Sums> = BTreeMap::new();
    for t in tables {
        for e in &lock(&t).entries {
            all.entry(e.kind).or_default().add(&e.sums);
        }
    }
    all
}

/// Returns the places of all threads, with equal ones merged.
pub fn snapshot() -> Vec<Entry> {
    let tables: Vec<_> = lock(&TABLES).clone();
    let mut all: HashMap<Place, Entry> = HashMap::new();
    for t in tables {
        // Cloned under the lock, which the thread may wait for; merged without it.
        let entries = lock(&t).entries.clone();
        for e in entries {
            let place = (e.kind, e.frames.clone());
            match all.entry(place) {
                std::collections::hash_map::Entry::Vacant(v) => {
                    v.insert(e);
                }
                std::collections::hash_map::Entry::Occupied(mut o) => {
                    let sum = o.get_mut();
                    sum.sums.add(&e.sums);
                    let words = |c: &Option<Captured>| c.map_or(0, |c| c.words);
                    if words(&e.captured) > words(&sum.captured) {
                        sum.captured = e.captured;
                    }
                }
            }
        }
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_all_words_since_the_last_one() {
        let mut left = -NOT_STARTED;
        let every = SAMPLED_WORDS;
        assert_eq!(sampled(&mut left, every), None);
        assert_eq!(left, every as i64);
        left -= every as i64 + 5;
        assert_eq!(sampled(&mut left, every), Some(every as u64 + 5));
        assert_eq!(left, every as i64);
    }

    #[test]
    fn waits_are_sorted_by_their_length() {
        let mut w = Waits::default();
        w.add(Kind::Ready, 999, 4);
        w.add(Kind::Ready, 1_000, 1);
        w.add(Kind::Ready, u64::MAX, 2);
        let r = w.0[&Kind::Ready];
        assert_eq!((r.times, r.longest), (7, u64::MAX));
        assert_eq!(
            (r.lengths[0], r.lengths[1], r.lengths[LENGTHS - 1]),
            (4, 1, 2)
        );
    }
}
