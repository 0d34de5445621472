//! Message timers: `erlang:send_after/3,4` and `erlang:start_timer/3,4`.
//!
//! A timer is found by its reference. Timers whose receiver is a process are in a list of that
//! process, and end with it; those with a registered name as receiver look the name up when they
//! fire.

pub use super::shard::RefNumbers;
use super::shard::{Owners, Shard, Ticket, timer_bytes};
use super::{Woken, is_held, mark, ms_left, notify, now_tick};
use purlin_isa::cache_lines::TwoLines;
use purlin_term::Term;
use purlin_term::frag::OwnedTerm;
use purlin_term::payer::Billed;
use purlin_term::plants::{self, Plant};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

const SHARDS: usize = 16;
/// Binary logarithm of the number of [`Owners`].
const OWNERS_BITS: u32 = 12;

/// The message that a timer sends.
pub struct Fired {
    /// A local pid or an atom.
    pub to: Term,
    pub message: Message,
    /// The numbers of the timer's reference.
    pub numbers: RefNumbers,
    /// Whether the message is `{timeout, Reference, Message}`.
    pub wrapped: bool,
}

/// A term kept by a timer, in place if it is an immediate.
pub enum Message {
    Immediate(Term),
    Owned(Box<OwnedTerm>),
}

impl Message {
    /// Keeps a copy of `t`.
    pub fn keep(t: Term) -> Message {
        if t.is_immed() {
            Message::Immediate(t)
        } else {
            Message::Owned(Box::new(OwnedTerm::copy_of(t)))
        }
    }
    /// Words copied to keep it.
    pub fn words(&self) -> usize {
        match self {
            Message::Immediate(_) => 0,
            Message::Owned(o) => o.words(),
        }
    }
    /// Returns the term, which lives as long as this.
    pub fn term(&self) -> Term {
        match self {
            Message::Immediate(t) => *t,
            Message::Owned(o) => o.term(),
        }
    }
}

/// A running timer.
struct Timer {
    fired: Fired,
    deadline: u64,
    /// Increases from timer to timer: those due at the same tick fire in the order in which they
    /// were started.
    started: u64,
    /// The scheduler that started it; see [`is_held`].
    by: super::Mark,
    /// The bill of its memory.
    _billed: Billed,
}

/// The number of timers that were started. Alone on its cache lines.
struct Started(AtomicU64, TwoLines);

static STARTED: Started = Started(AtomicU64::new(0), TwoLines);

struct Timers {
    shards: [Shard<Timer>; SHARDS],
    owners: Arc<Owners>,
}

fn timers() -> &'static Timers {
    static T: OnceLock<Timers> = OnceLock::new();
    T.get_or_init(|| {
        let owners = Arc::new(Owners::new(OWNERS_BITS));
        Timers {
            shards: std::array::from_fn(|_| Shard::new(now_tick(), owners.clone())),
            owners,
        }
    })
}

fn shards() -> &'static [Shard<Timer>; SHARDS] {
    &timers().shards
}

fn shard(n: &RefNumbers) -> &'static Shard<Timer> {
    // Threads take numbers in blocks of 4096, so they tend to use different shards.
    &shards()[(n[0] >> 12) as usize % SHARDS]
}

#[cfg(not(test))]
mod arrival {
    use super::super::Woken;
    use super::Fired;
    use crate::lazy_atoms;
    use crate::message::{Kind, Signal};
    use crate::process::registry;
    use crate::{events, post};
    use purlin_term::frag::{Fragment, OwnedTerm};
    use purlin_term::{Alloc, Term, am};

    lazy_atoms! {
        clock_service = "clock_service";
    }

    /// The message of a timer that has fired, and the process that gets it, if there is one.
    pub struct Arrival(Option<(Term, *mut Signal)>);

    impl Arrival {
        pub fn of(f: &Fired) -> Arrival {
            let to = match f.to.is_local_pid() {
                true => Some(f.to),
                false => registry::whereis(f.to).filter(|t| t.is_local_pid()),
            };
            let Some(to) = to else {
                return Arrival(None);
            };
            let wrapped = f.wrapped.then(|| {
                let mut frag = Fragment::new();
                let msg = purlin_term::copy::copy(f.message.term(), &mut frag);
                let r = frag.local_ref(f.numbers);
                let t = frag.tuple(&[am::TIMEOUT, r, msg]);
                OwnedTerm::from_parts(t, frag)
            });
            let msg = wrapped.as_ref().map_or(f.message.term(), OwnedTerm::term);
            let signal = match events::by_sender() {
                false => Signal::copy_of(Kind::Message, msg),
                true => Signal::sent(None, clock_service(), msg),
            };
            Arrival(Some((to, signal)))
        }
        /// Sends it. The caller performs what the wake-up requires.
        pub fn push(&mut self, woken: &mut Vec<Woken>) {
            let Some((to, signal)) = self.0.take() else {
                return;
            };
            // SAFETY: `of` has made the signal, and it is still here.
            match unsafe { post::push_only(to, signal) } {
                Some(w) => woken.push(w),
                // Dropped when the lock of the timer is free.
                None => self.0 = Some((to, signal)),
            }
        }
    }

    impl Drop for Arrival {
        fn drop(&mut self) {
            if let Some((_, signal)) = self.0.take() {
                // SAFETY: `of` has made the signal, and no one else has it.
                unsafe { Signal::free(signal) };
            }
        }
    }
}
#[cfg(not(test))]
use arrival::Arrival;
#[cfg(test)]
use tests::Arrival;

/// Starts a timer that fires at tick `deadline`. If the deadline has passed, and a process on a
/// scheduler starts it, it fires right after the time slice of that process.
pub fn start(fired: Fired, deadline: u64) {
    let (key, s) = (fired.numbers, shard(&fired.numbers));
    let owner = match fired.to.is_local_pid() {
        true => fired.to.raw(),
        false => 0,
    };
    if deadline <= now_tick() && crate::sched::current() != 0 {
        let ticket = s.start_due(key, owner);
        crate::later::add(Box::new(move || {
            let mut woken = Vec::new();
            fire(ticket, fired, &mut woken);
            super::enqueue(&mut woken);
        }));
        return;
    }
    let bytes = timer_bytes::<Timer>() + fired.message.words() * 8;
    let timer = Timer {
        fired,
        deadline,
        started: STARTED.0.fetch_add(1, Ordering::Relaxed),
        by: mark(),
        _billed: Billed::new(bytes),
    };
    s.start(key, owner, deadline, timer);
    notify(deadline);
}

/// Sends the message of a due timer, unless that has been stopped.
fn fire(ticket: Ticket, fired: Fired, woken: &mut Vec<Woken>) {
    if crate::os::exploring::on() {
        crate::os::exploring::timer_sends(fired.to, fired.message.term());
    }
    let mut arrival = Arrival::of(&fired);
    shard(&fired.numbers).arrive(ticket, || arrival.push(woken));
}

/// Returns the tick before which no timer fires.
pub(crate) fn next_due() -> u64 {
    let all = shards().iter().map(Shard::next);
    all.min().unwrap_or(super::NEVER)
}

/// Stops a timer. Returns the milliseconds that were left; `None` if there is no such timer, or its
/// message has been sent.
pub fn cancel(n: &RefNumbers) -> Option<u64> {
    if plants::due(Plant::CancelLies, 50) {
        return left(n);
    }
    let (deadline, _payload) = shard(n).stop(n)?;
    Some(deadline.map_or(0, ms_left))
}

/// Returns the milliseconds until a timer fires; `None` if there is no such timer, or its message
/// has been sent.
pub fn left(n: &RefNumbers) -> Option<u64> {
    let deadline = shard(n).deadline(n)?;
    Some(deadline.map_or(0, ms_left))
}

/// Removes the timers of a process that has ended.
pub fn owner_exit(pid: Term) {
    if !timers().owners.may_own(pid.raw()) {
        return;
    }
    for s in shards() {
        if s.count() != 0 {
            drop(s.owner_ends(pid.raw()));
        }
    }
}

/// Calls `f` with the receiver of each timer and the term that it keeps. It runs under a lock and
/// must not start or stop timers.
pub fn each(f: &mut dyn FnMut(Term, Term)) {
    for s in shards() {
        for (_, t) in s.lock().1.running() {
            f(t.fired.to, t.fired.message.term());
        }
    }
}

/// Calls `f` with the receiver of each timer, the numbers of its reference, and the milliseconds
/// until it fires. It runs under a lock and must not start or stop timers.
pub fn each_reference(f: &mut dyn FnMut(Term, RefNumbers, u64)) {
    for s in shards() {
        for (deadline, t) in s.lock().1.running() {
            f(t.fired.to, t.fired.numbers, ms_left(deadline));
        }
    }
}

/// Returns all timers for a dump: receiver, message as text, milliseconds left.
pub fn all() -> Vec<(Term, String, u64)> {
    let mut v = Vec::new();
    for s in shards() {
        for (deadline, t) in s.lock().1.running() {
            let style = purlin_term::print::Style::Display;
            let text = purlin_term::print::format_term(t.fired.message.term(), style, 10_000);
            v.push((t.fired.to, text, ms_left(deadline)));
        }
    }
    v
}

/// Returns the number of running timers, and their bytes without the messages.
pub fn usage() -> (usize, usize) {
    let n = shards().iter().map(Shard::count).sum();
    (n, n * timer_bytes::<Timer>())
}

/// Fires the timers due at tick `tick`, in the order of deadlines. Held ones become due again at
/// tick `again`.
pub(super) fn fire_due(tick: u64, again: u64, woken: &mut Vec<Woken>) {
    let mut due = Vec::new();
    for s in shards().iter().filter(|s| s.next() <= tick) {
        s.take_due(
            tick,
            again,
            |t| is_held(t.by, t.deadline, again),
            |ticket, t| due.push(((t.deadline, t.started), ticket, t.fired)),
        );
    }
    due.sort_unstable_by_key(|d| d.0);
    for (_, ticket, fired) in due {
        fire(ticket, fired, woken);
        if woken.len() > MOST_WOKEN {
            super::enqueue(woken);
        }
    }
}

/// Maximum number of woken processes that wait for all due messages to be sent before they run.
const MOST_WOKEN: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Mutex;
    use std::sync::mpsc;

    static SENT: OnceLock<Mutex<mpsc::Sender<(u64, u32)>>> = OnceLock::new();

    /// Records what fired instead of sending it.
    pub(super) struct Arrival((u64, u32));

    impl Arrival {
        pub fn of(f: &Fired) -> Arrival {
            Arrival((f.to.raw(), f.numbers[1]))
        }
        pub fn push(&mut self, _: &mut Vec<Woken>) {
            if let Some(s) = SENT.get() {
                let _ = s.lock().send(self.0);
            }
        }
    }

    fn timer(pid: u32, n: u32, ms: u64) {
        start(
            Fired {
                to: Term::pid(pid),
                message: Message::keep(Term::small(1)),
                numbers: [n << 12, n, 0],
                wrapped: false,
            },
            super::super::tick_in(ms),
        );
    }

    #[test]
    fn timers_of_an_ended_process_are_gone() {
        let (tx, rx) = mpsc::channel();
        let _ = SENT.set(Mutex::new(tx));
        for n in 0..300 {
            timer(n % 3, n, if n % 2 == 0 { 2_000 } else { 3_600_000 });
        }
        assert!(left(&[4 << 12, 4, 0]).is_some_and(|l| l <= 2_001));
        assert!(cancel(&[4 << 12, 4, 0]).is_some());
        assert_eq!(cancel(&[4 << 12, 4, 0]), None);
        owner_exit(Term::pid(2));
        assert_eq!(left(&[2 << 12, 2, 0]), None);
        let want = (0..300)
            .filter(|n| n % 2 == 0 && n % 3 != 2 && *n != 4)
            .count();
        let got: Vec<_> = (0..want)
            .map(|_| rx.recv_timeout(std::time::Duration::from_secs(60)).unwrap())
            .collect();
        assert!(
            got.iter()
                .all(|g| g.0 != Term::pid(2).raw() && g.1 % 2 == 0 && g.1 != 4)
        );
        owner_exit(Term::pid(0));
        owner_exit(Term::pid(1));
        assert_eq!(usage().0, 0);
        assert!(rx.try_recv().is_err());
    }
}
