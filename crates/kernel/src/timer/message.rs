//! Message timers: `erlang:send_after/3,4` and `erlang:start_timer/3,4`.
//!
//! A timer is found by its reference. Timers whose receiver is a process are linked in a list of that process, and are
//! gone when the process is; those with a registered name as receiver look the name up when they fire.

use super::alarm::{Due, NEVER};
use super::wheel::{NONE, Node, Nodes, Wheel};
use super::{locked, ms_left, notify, now_tick};
use crate::sync::Mutex;
use purlin_term::Term;
use purlin_term::frag::OwnedTerm;
use purlin_term::plants::{self, Plant};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const SHARDS: usize = 16;

/// The numbers of a timer's reference.
pub type RefNumbers = [u32; 3];

/// The action of a timer when it fires.
pub struct Fired {
    /// A local pid or an atom.
    pub to: Term,
    pub message: Message,
    /// The numbers of the timer's reference.
    pub numbers: RefNumbers,
    /// The message is `{timeout, Reference, Message}`.
    pub wrapped: bool,
}

/// A term kept by a timer: small where it can be.
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
    /// Words that were copied to keep it.
    pub fn words(&self) -> usize {
        match self {
            Message::Immediate(_) => 0,
            Message::Owned(o) => o.words(),
        }
    }
    /// The term, good as long as this is.
    pub fn term(&self) -> Term {
        match self {
            Message::Immediate(t) => *t,
            Message::Owned(o) => o.term(),
        }
    }
}

struct Entry {
    node: Node,
    /// Neighbours among the timers of the receiver, in this shard.
    next: u32,
    prev: u32,
    /// Grows from timer to timer: those that are due at the same tick fire in the order in which they were started.
    started: u64,
    fired: Option<Fired>,
}

static STARTED: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Slab {
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_ref: HashMap<RefNumbers, u32>,
    /// First timer of each receiver.
    by_pid: HashMap<u64, u32>,
}

impl Nodes for Slab {
    fn node(&mut self, id: u32) -> &mut Node {
        &mut self.entries[id as usize].node
    }
}

impl Slab {
    fn insert(&mut self, f: Fired) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry {
                node: Node::default(),
                next: NONE,
                prev: NONE,
                started: 0,
                fired: None,
            });
            self.entries.len() as u32 - 1
        });
        self.by_ref.insert(f.numbers, index);
        let mut next = NONE;
        if f.to.is_local_pid()
            && let Some(head) = self.by_pid.insert(f.to.raw(), index)
        {
            self.entries[head as usize].prev = index;
            next = head;
        }
        let e = &mut self.entries[index as usize];
        (e.next, e.prev) = (next, NONE);
        e.started = STARTED.fetch_add(1, Ordering::Relaxed);
        e.fired = Some(f);
        index
    }
    fn remove(&mut self, index: u32) -> Option<Fired> {
        let e = &mut self.entries[index as usize];
        let (next, prev) = (e.next, e.prev);
        let f = e.fired.take()?;
        self.free.push(index);
        self.by_ref.remove(&f.numbers);
        if f.to.is_local_pid() {
            if next != NONE {
                self.entries[next as usize].prev = prev;
            }
            if prev != NONE {
                self.entries[prev as usize].next = next;
            } else if next != NONE {
                self.by_pid.insert(f.to.raw(), next);
            } else {
                self.by_pid.remove(&f.to.raw());
            }
        }
        Some(f)
    }
}

struct Shard {
    next: Due,
    count: AtomicUsize,
    inner: Mutex<(Wheel, Slab)>,
}

fn shards() -> &'static [Shard; SHARDS] {
    static S: OnceLock<[Shard; SHARDS]> = OnceLock::new();
    S.get_or_init(|| {
        std::array::from_fn(|_| Shard {
            next: Due::new(),
            count: AtomicUsize::new(0),
            inner: Mutex::new((Wheel::new(now_tick()), Slab::default())),
        })
    })
}

fn shard(n: &RefNumbers) -> &'static Shard {
    // Threads take numbers in blocks of 4096, so threads tend to use different shards.
    &shards()[(n[0] >> 12) as usize % SHARDS]
}

#[cfg(not(test))]
mod arrival {
    use super::Fired;
    use crate::lazy_atoms;
    use crate::process::registry;
    use purlin_term::frag::{Fragment, OwnedTerm};
    use purlin_term::{Alloc, am};

    lazy_atoms! {
        clock_service = "clock_service";
    }

    /// Sends the message of a timer that has fired.
    pub fn deliver(f: &Fired) {
        let to = if f.to.is_local_pid() {
            f.to
        } else {
            match registry::whereis(f.to) {
                Some(t) if t.is_local_pid() => t,
                _ => return,
            }
        };
        let wrapped = f.wrapped.then(|| {
            let mut frag = Fragment::new();
            let msg = purlin_term::copy::copy(f.message.term(), &mut frag);
            let r = frag.local_ref(f.numbers);
            let t = frag.tuple(&[am::TIMEOUT, r, msg]);
            OwnedTerm::from_parts(t, frag)
        });
        let msg = wrapped.as_ref().map_or(f.message.term(), OwnedTerm::term);
        crate::post::send_from(clock_service(), to, msg);
    }
}
#[cfg(not(test))]
use arrival::deliver;
#[cfg(test)]
use tests::deliver;

/// Starts a timer that fires at tick `deadline`.
pub fn start(f: Fired, deadline: u64) {
    let s = shard(&f.numbers);
    {
        let mut g = locked(&s.inner);
        let (wheel, slab) = &mut *g;
        let index = slab.insert(f);
        wheel.start(slab, index, deadline);
        s.count.fetch_add(1, Ordering::Relaxed);
        s.next.add(deadline);
    }
    notify(deadline);
}

/// The tick before which no timer fires.
pub(crate) fn next_due() -> u64 {
    let all = shards().iter().map(|s| s.next.tick());
    all.min().unwrap_or(super::NEVER)
}

/// Stops a timer: milliseconds that were left; None if there is no such timer, or not any more.
pub fn cancel(n: &RefNumbers) -> Option<u64> {
    if plants::due(Plant::CancelLies, 50) {
        return left(n);
    }
    let s = shard(n);
    if s.count.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut g = locked(&s.inner);
    let (wheel, slab) = &mut *g;
    let index = *slab.by_ref.get(n)?;
    let left = ms_left(slab.node(index).deadline());
    wheel.cancel(slab, index);
    let f = slab.remove(index);
    s.count.fetch_sub(1, Ordering::Relaxed);
    drop(g);
    drop(f);
    Some(left)
}

/// Milliseconds until a timer fires; None if there is no such timer, or not any more.
pub fn left(n: &RefNumbers) -> Option<u64> {
    let mut g = locked(&shard(n).inner);
    let slab = &mut g.1;
    let index = *slab.by_ref.get(n)?;
    Some(ms_left(slab.node(index).deadline()))
}

/// A process has ended: its timers are gone.
pub fn owner_exit(pid: Term) {
    for s in shards() {
        if s.count.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let mut gone = Vec::new();
        let mut g = locked(&s.inner);
        let (wheel, slab) = &mut *g;
        while let Some(&index) = slab.by_pid.get(&pid.raw()) {
            wheel.cancel(slab, index);
            gone.extend(slab.remove(index));
        }
        s.count.fetch_sub(gone.len(), Ordering::Relaxed);
        drop(g);
    }
}

/// Shows the receiver of each timer and the term that it keeps, under a lock: `f` starts and stops no timer.
pub fn each(f: &mut dyn FnMut(Term, Term)) {
    for s in shards() {
        let g = locked(&s.inner);
        for t in g.1.entries.iter().filter_map(|e| e.fired.as_ref()) {
            f(t.to, t.message.term());
        }
    }
}

/// All timers, for a dump: receiver, message as text, milliseconds that are left.
pub fn all() -> Vec<(Term, String, u64)> {
    let mut v = Vec::new();
    for s in shards() {
        let g = locked(&s.inner);
        for e in &g.1.entries {
            if let Some(f) = &e.fired {
                let style = purlin_term::print::Style::Display;
                let text = purlin_term::print::format_term(f.message.term(), style, 10_000);
                v.push((f.to, text, ms_left(e.node.deadline())));
            }
        }
    }
    v
}

/// Timers that run: their number, and bytes that they take without their messages.
pub fn usage() -> (usize, usize) {
    let n = shards()
        .iter()
        .map(|s| s.count.load(Ordering::Relaxed))
        .sum();
    (
        n,
        n * (size_of::<Entry>() + size_of::<(RefNumbers, u32)>() + 1),
    )
}

/// Fires what is due; the tick at which there is more to do. What is due at once, in whatever shard, fires in the order
/// of deadlines.
pub(super) fn run_due(now: u64) -> u64 {
    let mut due = Vec::new();
    let mut next = NEVER;
    for s in shards() {
        if s.next.tick() <= now {
            let mut g = locked(&s.inner);
            let (wheel, slab) = &mut *g;
            let before = due.len();
            wheel.advance(slab, now, |slab, id| {
                let e = &slab.entries[id as usize];
                let order = (e.node.deadline(), e.started);
                due.extend(slab.remove(id).map(|f| (order, f)));
            });
            s.count.fetch_sub(due.len() - before, Ordering::Relaxed);
            s.next.set(wheel.next_event());
        }
        next = next.min(s.next.tick());
    }
    due.sort_unstable_by_key(|d| d.0);
    if crate::os::single::on() {
        for (_, f) in &due {
            crate::os::single::timer_sends(f.to, f.message.term());
        }
    }
    due.iter().for_each(|d| deliver(&d.1));
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    static SENT: OnceLock<Mutex<mpsc::Sender<(u64, u32)>>> = OnceLock::new();

    /// Notes what fired in the place of sending it.
    pub(super) fn deliver(f: &Fired) {
        if let Some(s) = SENT.get() {
            let _ = locked(s).send((f.to.raw(), f.numbers[1]));
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
