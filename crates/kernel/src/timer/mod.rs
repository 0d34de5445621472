//! The timer service: all deferred events.
//!
//! One thread sleeps until the next deadline and fires due timers; when it is late, schedulers fire
//! them. Any thread starts and stops timers, in constant time, under the lock of one of several
//! shards. A new timer wakes the thread only if it is due before all others. There are three kinds:
//! - receive timers ([`arm_receive`]): the timeout of a process's `receive`. A process has one; its
//!   16 bytes lie in an array beside the process cells, with the same index.
//! - message timers ([`message`]): `erlang:send_after/3` and its kin.
//! - calls ([`after`]): deferred work of the runtime itself.
//!
//! # Time
//! Timers count milliseconds of [`clock::elapsed`] ("ticks"). A timer of `n` milliseconds fires at
//! the first tick that is at least `n` milliseconds away, as in stock; never early.
//!
//! # Order
//! Nothing promises an order between a timer and other signals, but programs rely on the one that
//! stock nearly always has:
//! - Due timers fire tick by tick. Within a tick, receive timers fire first, then messages are sent
//!   in the order of deadlines, then woken processes may run. So `receive after T` ends before a
//!   message that `send_after(T)` sends is examined, and finds it in its mailbox afterwards.
//! - A message timer fires after what its process does in the same time slice, even if the system
//!   preempts that thread in between; see [`is_held`].
//! - A message timer whose deadline has passed when it is started fires at the end of the time
//!   slice.
//!
//! # Locks
//! One thread at a time fires timers ([`FIRING`]). A receive timer marks its process under the lock
//! of its shard, so that after [`disarm_receive`] it is settled whether the timer has fired. The
//! message of a timer is put into its receiver's queue under the lock of the timer's shard; see
//! [`shard`]. No thread takes the lock of a run queue while it holds one of these, except the
//! firing thread, which holds only [`FIRING`] then. Calls run without a lock.
//!
//! # Orderings
//! [`alarm`] has the protocol between the thread and those who start timers. [`LOOKS`] is stored
//! with `Release` by its scheduler and loaded with `Acquire` in [`is_held`]: a thread that sees a
//! new count also sees what the scheduler's process did before. `SeqCst` only occurs in tests.

mod alarm;
pub mod message;
mod shard;
mod wheel;

use crate::clock;
use crate::process::state::Wake;
use crate::sched::MAX_SCHEDULERS;
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering};
pub(crate) use alarm::NEVER;
use alarm::{Alarm, Due};
use purlin_isa::cache_lines::TwoLines;
use purlin_term::sys::Growing;
use std::sync::OnceLock;
use std::time::Duration;
use wheel::{Node, Nodes, Wheel};

pub(crate) const NS_PER_TICK: i64 = 1_000_000;
/// Last tick that a timer of a program may fire at: `erlang:system_info(end_time)`.
pub const LAST_TICK: u64 = ((i64::MAX / clock::UNIT - 1) * 1000) as u64;
const RECEIVE_SHARDS: usize = 16;

/// Returns the current tick.
pub(crate) fn now_tick() -> u64 {
    (clock::elapsed() / NS_PER_TICK) as u64
}

/// Returns the tick at which a timer of `ms` milliseconds, started now, fires.
pub fn tick_in(ms: u64) -> u64 {
    (((clock::elapsed() - 1).max(0) / NS_PER_TICK) as u64 + 1).saturating_add(ms)
}

/// Returns the milliseconds until tick `deadline`, rounded down as in stock; 0 once it is due.
pub(crate) fn ms_left(deadline: u64) -> u64 {
    let now = ((clock::elapsed() - 1).max(0) / NS_PER_TICK) as u64 + 1;
    deadline.saturating_sub(now)
}

pub(crate) fn locked<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock()
}

// ---- the thread ----

static ALARM: Alarm = Alarm(AtomicU64::new(Alarm::UNSET));

fn service() -> &'static std::thread::Thread {
    static THREAD: OnceLock<std::thread::Thread> = OnceLock::new();
    THREAD.get_or_init(|| crate::os::thread::start("timers", 256 << 10, serve))
}

/// Starts the service. Otherwise the first timer does.
pub fn start() {
    if crate::os::exploring::on() {
        return;
    }
    service();
}

fn serve() {
    loop {
        ALARM.looking();
        let next = run_due();
        if !ALARM.may_sleep(next) {
            continue;
        }
        if next == NEVER {
            std::thread::park();
            continue;
        }
        let wait = next as i64 * NS_PER_TICK - clock::elapsed();
        if wait > 0 {
            std::thread::park_timeout(Duration::from_nanos(wait as u64));
        }
    }
}

/// Ensures that a thread looks at tick `deadline`. Called after the timer is in its wheel, without
/// locks.
#[inline]
pub(crate) fn notify(deadline: u64) {
    if ALARM.must_ring(deadline) && !crate::os::exploring::on() {
        service().unpark();
    }
}

/// The cell of a process that was sent something, and what the wake-up requires.
type Woken = (u32, Wake);

/// Held by the thread that fires timers: the processes that it has woken so far.
static FIRING: Mutex<Vec<Woken>> = Mutex::new(Vec::new());

/// Performs what the wake-ups require.
fn enqueue(woken: &mut Vec<Woken>) {
    for (cell, wake) in woken.drain(..) {
        let p = crate::process::table().cell(cell);
        match wake {
            Wake::Enqueue(prio) => crate::sched::enqueue(p, prio),
            Wake::Dirty(io) => crate::sched::take_from_pool(p, io),
            Wake::Seen | Wake::Behind => {}
        }
    }
}

/// Fires due timers. Returns the tick of the next ones.
pub(crate) fn run_due() -> u64 {
    let now = now_tick();
    let next = fire(&mut locked(&FIRING), now);
    next.min(run_calls(now))
}

/// Fires due receive timers and sends due messages, tick by tick. Returns the tick of the next
/// ones.
fn fire(woken: &mut Vec<Woken>, now: u64) -> u64 {
    loop {
        let receive = RECEIVE_TIMERS.iter().map(|s| s.next.tick()).min();
        let tick = receive.unwrap_or(NEVER).min(message::next_due());
        if tick > now {
            return tick;
        }
        for shard in RECEIVE_TIMERS.iter().filter(|s| s.next.tick() <= tick) {
            shard.fire(tick, woken);
        }
        message::fire_due(tick, now + 1, woken);
        enqueue(woken);
    }
}

/// Returns the time before which no timer of a process is due, in nanoseconds since the start;
/// `i64::MAX` if none is set.
pub(crate) fn next_due() -> i64 {
    let receive = RECEIVE_TIMERS.iter().map(|s| s.next.tick()).min();
    let next = receive.unwrap_or(NEVER).min(message::next_due());
    match next {
        NEVER => i64::MAX,
        t => (t as i64).saturating_mul(NS_PER_TICK),
    }
}

/// Fires due timers if the thread is late because other threads have the processors. Schedulers
/// call it between time slices.
#[inline]
pub fn poll() {
    if ALARM.is_late(now_tick()) {
        fire_late();
    }
}

#[cold]
fn fire_late() {
    // The thread that holds the lock fires them.
    if let Some(mut woken) = FIRING.try_lock() {
        fire(&mut woken, now_tick());
    }
}

// ---- what is held ----

/// Number of times that a scheduler has checked timers. Alone on its cache lines.
struct Looks(AtomicU32, TwoLines);

static LOOKS: [Looks; MAX_SCHEDULERS] =
    [const { Looks(AtomicU32::new(0), TwoLines) }; MAX_SCHEDULERS];

/// Maximum number of ticks for which a timer is held.
const MOST_HELD: u64 = 10;

/// Records that scheduler `i` is between two processes, and idle or has done as much as a time
/// slice since the last time.
#[inline]
pub(crate) fn checked(i: usize) {
    let l = &LOOKS[i].0;
    // This scheduler is its only writer.
    l.store(l.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
}

/// The scheduler that starts a timer, from 1, and how often it had checked timers; 0 for other
/// threads.
type Mark = (u16, u32);

fn mark() -> Mark {
    let i = crate::sched::current();
    if i == 0 || i > MAX_SCHEDULERS || crate::os::exploring::on() {
        return (0, 0);
    }
    (i as u16, LOOKS[i - 1].0.load(Ordering::Relaxed))
}

/// Whether a due message timer must not fire yet. In stock, a scheduler fires its own timers when
/// it checks them. So what a process does right after it has started a timer comes before the
/// timer's message, even if the system preempts it in between. The same holds here, if that takes
/// at most [`MOST_HELD`] ticks.
fn is_held((scheduler, looks): Mark, deadline: u64, now: u64) -> bool {
    scheduler != 0
        && now < deadline.saturating_add(MOST_HELD)
        && LOOKS[scheduler as usize - 1].0.load(Ordering::Acquire) == looks
}

// ---- receive timers ----

/// Wakes the process in that cell, whose receive timer has fired.
#[cfg(not(test))]
fn receive_fired(cell: u32) -> Option<Woken> {
    let p = crate::process::table().cell(cell);
    // SAFETY: cells are never unmapped; the state word is an atomic.
    Some((cell, unsafe { (*p).state.wake_by_timeout() }))
}
#[cfg(test)]
use tests::receive_fired;

/// The nodes of all cells, in memory that grows with their number.
struct CellNodes;

static NODES: Growing = Growing::unclaimed();

/// Makes memory for the node of that cell. Called without locks, before the first timer of a
/// process in it.
#[inline]
pub(crate) fn make_room(cell: u32) {
    let bytes = (cell as usize + 1) * size_of::<Node>();
    if !NODES.try_ensure(bytes) {
        make_first_room(bytes);
    }
}

/// Takes addresses for the nodes of all cells, if there are none yet.
#[cold]
fn make_first_room(bytes: usize) {
    let cells = crate::process::table().most_cells();
    NODES.claim("timers", (cells + 1) * size_of::<Node>());
    NODES.ensure(bytes);
}

/// Gives the memory of the nodes of cells `from..to` back to the system; they read as zero, idle,
/// from then on. The cells are free, and the caller keeps them so.
pub(crate) fn release_nodes(from: u32, to: u32) {
    if NODES.most() == 0 {
        return;
    }
    let page = purlin_term::sys::page_bytes();
    let at = |i: u32| NODES.at() + i as usize * size_of::<Node>();
    let (from, to) = (at(from).next_multiple_of(page), at(to) / page * page);
    if from < to {
        // SAFETY: whole pages of nodes whose cells are free, and stay so.
        unsafe { purlin_term::sys::decommit(from, to - from) };
    }
}

impl Nodes for CellNodes {
    #[inline]
    fn node(&mut self, id: u32) -> &mut Node {
        // Only tests need this.
        make_room(id);
        let base = NODES.at();
        // SAFETY: within existing memory, which starts as zero, an idle node. A cell's node is only
        // touched under the lock of its shard, whose only `CellNodes` is behind `&mut self`.
        unsafe { &mut *(base as *mut Node).add(id as usize) }
    }
}

struct ReceiveShard {
    next: Due,
    inner: Mutex<(Wheel, CellNodes)>,
}

impl ReceiveShard {
    fn fire(&self, now: u64, woken: &mut Vec<Woken>) {
        let mut g = locked(&self.inner);
        let (wheel, nodes) = &mut *g;
        wheel.advance(nodes, now, |_, id| woken.extend(receive_fired(id)));
        self.next.set(wheel.next_event());
    }
}

static RECEIVE_TIMERS: [ReceiveShard; RECEIVE_SHARDS] = [const {
    ReceiveShard {
        next: Due::new(),
        inner: Mutex::new((Wheel::new(0), CellNodes)),
    }
}; RECEIVE_SHARDS];

fn receive_shard(cell_index: u32) -> &'static ReceiveShard {
    &RECEIVE_TIMERS[cell_index as usize % RECEIVE_SHARDS]
}

/// Starts the receive timer of a process, which the caller owns, to fire in `ms` milliseconds. A
/// running one is restarted.
pub(crate) fn arm_receive(cell_index: u32, ms: u64) {
    let deadline = tick_in(ms);
    let shard = receive_shard(cell_index);
    {
        let mut g = locked(&shard.inner);
        let (wheel, nodes) = &mut *g;
        wheel.cancel(nodes, cell_index);
        wheel.start(nodes, cell_index, deadline);
        shard.next.add(deadline);
    }
    notify(deadline);
}

/// Stops the receive timer of a process, which the caller owns. Returns false if it doesn't run:
/// then it has marked its process already.
pub(crate) fn disarm_receive(cell_index: u32) -> bool {
    let mut g = locked(&receive_shard(cell_index).inner);
    let (wheel, nodes) = &mut *g;
    wheel.cancel(nodes, cell_index)
}

/// Returns the milliseconds until the receive timer of a process fires; `None` if it doesn't run.
#[cfg(test)]
fn receive_left(cell_index: u32) -> Option<u64> {
    let mut g = locked(&receive_shard(cell_index).inner);
    let n = g.1.node(cell_index);
    n.is_active().then(|| ms_left(n.deadline()))
}

// ---- calls ----

/// Identifies a deferred call. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimerId {
    index: u32,
    generation: u32,
}

type Action = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Call {
    node: Node,
    generation: u32,
    action: Option<Action>,
}

#[derive(Default)]
struct Slab {
    entries: Vec<Call>,
    free: Vec<u32>,
}

impl Nodes for Slab {
    fn node(&mut self, id: u32) -> &mut Node {
        &mut self.entries[id as usize].node
    }
}

impl Slab {
    fn take(&mut self, index: u32) -> Option<Action> {
        let c = &mut self.entries[index as usize];
        c.generation = c.generation.wrapping_add(1);
        self.free.push(index);
        c.action.take()
    }
    fn find(&self, id: TimerId) -> Option<&Call> {
        self.entries
            .get(id.index as usize)
            .filter(|c| c.generation == id.generation && c.node.is_active())
    }
}

fn calls() -> &'static Mutex<(Wheel, Slab)> {
    static CALLS: OnceLock<Mutex<(Wheel, Slab)>> = OnceLock::new();
    CALLS.get_or_init(|| Mutex::new((Wheel::new(now_tick()), Slab::default())))
}

fn run_calls(now: u64) -> u64 {
    let (due, next) = {
        let mut g = locked(calls());
        let (wheel, slab) = &mut *g;
        let mut due = Vec::new();
        wheel.advance(slab, now, |slab, id| due.extend(slab.take(id)));
        (due, wheel.next_event().unwrap_or(NEVER))
    };
    if due.is_empty() {
        return next;
    }
    for action in due {
        action();
    }
    // An action may have started another timer.
    locked(calls()).0.next_event().unwrap_or(NEVER)
}

/// Makes the timer thread call `action` in `ms` milliseconds. It must be short: all timers wait for
/// it.
pub fn after(ms: u64, action: impl FnOnce() + Send + 'static) -> TimerId {
    at_tick(if ms == 0 { now_tick() } else { tick_in(ms) }, action)
}

/// As [`after`], at a point of Erlang monotonic time in native units (nanoseconds), or at the first
/// tick after it.
pub fn at(deadline_ns_monotonic: i64, action: impl FnOnce() + Send + 'static) -> TimerId {
    let ns = deadline_ns_monotonic.saturating_sub(clock::START).max(0) as u64;
    at_tick(ns.div_ceil(NS_PER_TICK as u64), action)
}

fn at_tick(deadline: u64, action: impl FnOnce() + Send + 'static) -> TimerId {
    let id = {
        let mut g = locked(calls());
        let (wheel, slab) = &mut *g;
        let index = slab.free.pop().unwrap_or_else(|| {
            slab.entries.push(Call::default());
            slab.entries.len() as u32 - 1
        });
        let c = &mut slab.entries[index as usize];
        c.action = Some(Box::new(action));
        let generation = c.generation;
        wheel.start(slab, index, deadline);
        TimerId { index, generation }
    };
    notify(deadline);
    id
}

/// Stops a call. Returns the milliseconds that were left, or `None` if it has begun (or was stopped
/// before).
pub fn cancel(id: TimerId) -> Option<u64> {
    let mut g = locked(calls());
    let (wheel, slab) = &mut *g;
    let left = ms_left(slab.find(id)?.node.deadline());
    wheel.cancel(slab, id.index);
    let action = slab.take(id.index);
    // Its destructor is the caller's code, and must not run under the lock.
    drop(g);
    drop(action);
    Some(left)
}

/// Returns the milliseconds until a call is made; `None` if it has begun.
pub fn left(id: TimerId) -> Option<u64> {
    locked(calls())
        .1
        .find(id)
        .map(|c| ms_left(c.node.deadline()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;
    use std::time::Instant;

    #[test]
    fn calls_are_made_in_order_and_never_early() {
        let (tx, rx) = mpsc::channel();
        let start = Instant::now();
        let base = tick_in(0) + 1;
        for ms in [700, 350, 300, 500, 320] {
            let tx = tx.clone();
            at_tick(base + ms, move || {
                let _ = tx.send((ms, start.elapsed()));
            });
        }
        let got: Vec<(u64, Duration)> = rx.iter().take(5).collect();
        assert!(got.is_sorted_by_key(|g| g.0), "{got:?}");
        for (ms, took) in got {
            assert!(took >= Duration::from_millis(ms), "{ms}: {took:?}");
        }
    }

    #[test]
    fn a_stopped_call_is_not_made() {
        let (tx, rx) = mpsc::channel();
        let long = after(100_000, || {});
        let id = after(50_000, move || {
            let _ = tx.send(());
        });
        assert!(left(id).is_some_and(|l| l <= 50_001));
        assert!(cancel(id).is_some_and(|l| l <= 50_001));
        assert_eq!((cancel(id), left(id)), (None, None));
        assert!(rx.recv().is_err());
        assert!(cancel(long).is_some_and(|l| l > 90_000));
    }

    static FIRED: AtomicUsize = AtomicUsize::new(0);

    /// Counts instead of waking a process.
    pub(super) fn receive_fired(_: u32) -> Option<Woken> {
        FIRED.fetch_add(1, Ordering::SeqCst);
        None
    }

    #[test]
    fn receive_timers_fire_once_unless_stopped() {
        const N: u32 = 200_000;
        for i in 0..N {
            arm_receive(i, if i % 2 == 0 { 3_600_000 } else { 20 });
        }
        assert!(receive_left(0).is_some_and(|l| l > 3_000_000));
        let limit = Instant::now() + Duration::from_secs(120);
        while FIRED.load(Ordering::SeqCst) < N as usize / 2 && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(FIRED.load(Ordering::SeqCst), N as usize / 2);
        for i in 0..N {
            assert_eq!(disarm_receive(i), i % 2 == 0);
        }
        // The first one would still run when the second is started, however slow the machine is.
        arm_receive(7, 3_600_000);
        arm_receive(7, 1);
        while receive_left(7).is_some() {
            std::thread::yield_now();
        }
        assert!(!disarm_receive(7));
        assert_eq!(FIRED.load(Ordering::SeqCst), N as usize / 2 + 1);
    }
}
