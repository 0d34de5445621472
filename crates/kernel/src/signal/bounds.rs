//! Bounded mailboxes: the limit that a budget sets for the unread messages of each process in it.
//!
//! A plain message to a process with as many unread messages as it may have makes its sender wait,
//! is dropped, or ends the receiver. Unread messages are those in transit and those in the mailbox.
//! All are counted, but only plain messages of processes to a pid or a name are held back. Replies
//! through an alias, exits, down messages, and messages of ports, timers and the runtime always
//! arrive.
//!
//! A message from another node cannot be held back: it has left its sender. It arrives, and then
//! its connection is not read for some time ([`from_far`]), so that its senders wait as soon as the
//! connection is busy there.
//!
//! # A sender that waits
//! It is entered in [`Waiting`] under its receiver, and its native is called again whenever a
//! signal arrives, as for a busy port. It continues when there is room, when the receiver has
//! ended, or when it turns out that the receiver waits for it: directly, by the monitor whose
//! reference the receiver's `receive` selects, or in a circle. A receiver that takes a message
//! wakes as many senders as there is room for, the longest waiting ones first.
//!
//! # Orderings
//! A sender enters itself, and then looks at the receiver's counts; a receiver stores its count,
//! and then looks whether anyone waits. Two senders of a circle enter themselves and then walk
//! along it. Each side has a `SeqCst` fence between its store and its loads, so at least one of the
//! two sees the other.

use crate::budgets::{self, Over, ROOT, Seat};
use crate::cx::{Cx, Fail};
use crate::keys::RefKey;
use crate::outside::{How, Sent};
use crate::post;
use crate::process::ext::Target;
use crate::process::{self, Process, table};
use crate::sync::{Mutex, fence};
use crate::system::budget_memory::{self, end_here};
use crate::{ids, lazy_atoms};
use purlin_term::Term;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;

lazy_atoms! {
    messages = "messages";
    system = "system";
}

/// [`Seat::awaits`] of a process that waits for one of another node. No pid has this data.
const ELSEWHERE: u32 = u32::MAX;
/// Maximum number of processes that are followed in search of a circle.
const MOST_FOLLOWED: usize = 1000;

/// Senders that wait, by receiver. Both are words of pids.
type Waiting = HashMap<u64, VecDeque<u64>>;

const SHARDS: usize = 16;
static WAITING: [Mutex<Option<Waiting>>; SHARDS] = [const { Mutex::new(None) }; SHARDS];

fn shard(receiver: Term) -> &'static Mutex<Option<Waiting>> {
    &WAITING[receiver.pid_data() as usize % SHARDS]
}

/// Whether a message to a local process may be held back.
#[inline]
pub(crate) fn concerns(to: Term) -> bool {
    budgets::of_pid(to) != ROOT
}

/// Number of unread messages of the process in a seat.
fn unread(s: &Seat) -> i64 {
    let transit = s.transit.load(Ordering::Relaxed).max(0);
    i64::from(transit) + i64::from(s.queued.load(Ordering::Relaxed))
}

fn seat_of(pid: Term) -> Option<&'static Seat> {
    budgets::seat(table().index(table().find(pid)?))
}

/// Called before a process sends a plain message to a local process that [`concerns`] says may be
/// bounded. Returns the outcome of the send if nothing is sent; `None` if the message is to be
/// sent. Waits (`Fail::Wait`) if there is no room.
#[cold]
pub(crate) fn before(cx: &mut Cx, to: Term, msg: Term, how: How) -> Result<Option<Sent>, Fail> {
    let me = cx.self_pid();
    let mine = budgets::seat_or_new(table().index(cx.proc.get()));
    let mut waited = mine.waits_for.load(Ordering::Relaxed) != 0;
    if waited && mine.waits_for.load(Ordering::Relaxed) != to.pid_data() + 1 {
        // The name that it sends to is that of another process by now.
        give_up(me, mine);
        waited = false;
    }
    let outcome = decide(me, mine, to, msg, how, waited);
    if waited && outcome != Outcome::Wait {
        give_up(me, mine);
    }
    if waited || outcome == Outcome::Wait {
        cx.process()
            .set_flag(process::BUSY, outcome == Outcome::Wait);
    }
    match outcome {
        Outcome::Send => Ok(None),
        Outcome::Refuse => Ok(Some(Sent::Busy)),
        Outcome::Drop => Ok(Some(Sent::Done)),
        Outcome::Wait => Err(Fail::Wait),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Send,
    Refuse,
    Drop,
    Wait,
}

fn decide(me: Term, mine: &Seat, to: Term, msg: Term, how: How, waited: bool) -> Outcome {
    let Some(s) = seat_of(to) else {
        return Outcome::Send;
    };
    let Some((most, over, by)) = budgets::bound(s.budget()) else {
        return Outcome::Send;
    };
    if unread(s) < most || process::is_system(me) {
        return Outcome::Send;
    }
    let Some(b) = budgets::get(by).filter(|_| to == me || !is_expected(s, me, msg, by)) else {
        return Outcome::Send;
    };
    match over {
        // It would wait for itself: the smallest circle.
        Over::Wait if to == me => {
            b.events.circles.fetch_add(1, Ordering::Relaxed);
            Outcome::Send
        }
        Over::Drop => {
            b.events.dropped.fetch_add(1, Ordering::Relaxed);
            Outcome::Drop
        }
        Over::Exit => {
            end_full(to, s, most, by);
            Outcome::Drop
        }
        Over::Wait if how.no_suspend => Outcome::Refuse,
        Over::Wait => {
            enter(me, mine, to, s);
            fence(crate::sync::Ordering::SeqCst);
            if unread(s) < most || table().find(to).is_none() {
                give_up(me, mine);
                return Outcome::Send;
            }
            if leads_back(to, me) {
                b.events.circles.fetch_add(1, Ordering::Relaxed);
                give_up(me, mine);
                return Outcome::Send;
            }
            if !waited {
                b.events.waited.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Wait
        }
    }
}

/// Fate of a plain message from another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FromFar {
    Arrives,
    /// It arrives, and its connection waits.
    Waits,
    Dropped,
}

/// Called before a plain message from another node is sent to a local process.
#[cold]
pub fn from_far(to: Term) -> FromFar {
    let Some((s, most, over, by)) = full(to) else {
        return FromFar::Arrives;
    };
    let Some(b) = budgets::get(by) else {
        return FromFar::Arrives;
    };
    match over {
        Over::Wait => FromFar::Waits,
        Over::Drop => {
            b.events.dropped.fetch_add(1, Ordering::Relaxed);
            FromFar::Dropped
        }
        Over::Exit => {
            end_full(to, s, most, by);
            FromFar::Dropped
        }
    }
}

/// Counts that senders on another node wait for a local process.
#[cold]
pub fn count_wait(to: Term) {
    if let Some((.., by)) = full(to)
        && let Some(b) = budgets::get(by)
    {
        b.events.waited.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether senders of a local process wait until there is room in its mailbox. They do not while it
/// may wait for one of them.
#[cold]
pub fn is_full(to: Term) -> bool {
    full(to).is_some_and(|f| f.2 == Over::Wait)
}

/// Returns the seat of a process with a full mailbox, and its bound; `None` if there is room, or if
/// it may wait for an answer.
fn full(to: Term) -> Option<(&'static Seat, i64, Over, u32)> {
    let s = seat_of(to)?;
    let (most, over, by) = budgets::bound(s.budget())?;
    let waits = s.awaits.load(Ordering::Relaxed) != 0;
    (unread(s) >= most && !waits).then_some((s, most, over, by))
}

/// Ends a process whose mailbox is full.
fn end_full(to: Term, s: &Seat, most: i64, by: u32) {
    if s.ends.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Some(b) = budgets::get(by) {
        b.events.exited.fetch_add(1, Ordering::Relaxed);
    }
    budget_memory::tell(by, messages(), to, most, unread(s), None);
    end(to, messages());
}

/// Ends a local process with reason `{budget, Why}`, as a kill does.
pub(crate) fn end(pid: Term, why: Term) {
    super::send::run_in(
        pid,
        Box::new(move |cx| {
            if let Some(cx) = cx {
                end_here(cx, why);
            }
        }),
    );
}

/// Whether the receiver waits for this sender, or for this message: a reply with the reference that
/// it selects, or a message of `sys`. A sender outside of the budget `by` may be a server, which
/// no client should hold up, so any message of it that looks like a reply counts as one.
fn is_expected(s: &Seat, me: Term, msg: Term, by: u32) -> bool {
    if s.awaits.load(Ordering::Relaxed) == me.pid_data() + 1 {
        return true;
    }
    let Some(parts) = msg.as_tuple() else {
        return false;
    };
    if let &[tag, from, _] = parts
        && tag == system()
        && from.as_tuple().is_some_and(|f| f.len() == 2)
    {
        return true;
    }
    let key = s.awaits_key.load(Ordering::Relaxed);
    let outside = !budgets::is_within(budgets::of_pid(me), by);
    let is_tag = |t: &Term| {
        let numbers = t.as_ref_view().and_then(|r| r.local_nums());
        numbers.is_some_and(|n| outside || key != 0 && ids::bits_of(n) == Some(key))
    };
    parts.iter().take(3).any(is_tag)
}

/// Whether `from` waits, directly or along others, for `me`.
fn leads_back(from: Term, me: Term) -> bool {
    let mut at = from;
    for _ in 0..MOST_FOLLOWED {
        let Some(s) = seat_of(at) else { return false };
        let next = match s.waits_for.load(Ordering::Relaxed) {
            0 => s.awaits.load(Ordering::Relaxed),
            n => n,
        };
        if next == 0 || next == ELSEWHERE {
            return false;
        }
        at = Term::pid(next - 1);
        if at == me {
            return true;
        }
    }
    false
}

/// Enters a sender in the list of its receiver. One that is there keeps its place.
fn enter(me: Term, mine: &Seat, to: Term, s: &Seat) {
    let mut w = shard(to).lock();
    if mine.listed.swap(true, Ordering::Relaxed) {
        return;
    }
    let list = w.get_or_insert_default().entry(to.raw()).or_default();
    list.push_back(me.raw());
    mine.waits_for.store(to.pid_data() + 1, Ordering::Relaxed);
    s.waiting.store(list.len() as u32, Ordering::Relaxed);
}

/// Takes a sender that waits no more out of the list of its receiver.
fn give_up(me: Term, mine: &Seat) {
    let to = match mine.waits_for.swap(0, Ordering::Relaxed) {
        0 => return,
        n => Term::pid(n - 1),
    };
    let mut w = shard(to).lock();
    if !mine.listed.swap(false, Ordering::Relaxed) {
        return;
    }
    let Some(list) = w.as_mut().and_then(|w| w.get_mut(&to.raw())) else {
        return;
    };
    list.retain(|&x| x != me.raw());
    let left = list.len();
    if left == 0
        && let Some(w) = w.as_mut()
    {
        w.remove(&to.raw());
    }
    drop(w);
    if let Some(s) = seat_of(to) {
        s.waiting.store(left as u32, Ordering::Relaxed);
    }
}

/// Wakes the first `n` senders that wait for `to`, and takes them out of its list.
fn wake(to: Term, s: Option<&Seat>, n: usize) {
    let mut w = shard(to).lock();
    let Some(list) = w.as_mut().and_then(|w| w.get_mut(&to.raw())) else {
        return;
    };
    let n = n.min(list.len());
    // SAFETY: words of local pids.
    let pid = |w: u64| unsafe { Term::from_raw(w) };
    let first: Vec<Term> = list.drain(..n).map(pid).collect();
    for s in first.iter().filter_map(|&p| seat_of(p)) {
        s.listed.store(false, Ordering::Relaxed);
    }
    let left = list.len();
    if left == 0
        && let Some(w) = w.as_mut()
    {
        w.remove(&to.raw());
    }
    drop(w);
    if let Some(s) = s {
        s.waiting.store(left as u32, Ordering::Relaxed);
    }
    first.into_iter().for_each(post::wake);
}

/// Called when a process that the caller owns has fetched that many messages.
#[cold]
pub(crate) fn fetched(p: &mut Process, messages: usize) {
    let Some(s) = budgets::seat(table().index(p)) else {
        return;
    };
    if s.budget() == ROOT {
        return;
    }
    let fewer = |n: i32| Some((n - messages as i32).max(0));
    let _ = s
        .transit
        .try_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
    s.queued
        .store(p.queued_messages() as u32, Ordering::Relaxed);
    if budgets::bound(s.budget()).is_some() {
        // So that `took` is called.
        p.mailbox_mut().watched = true;
    }
}

/// Called when a process that the caller owns has taken a message.
#[cold]
pub(crate) fn took(p: &mut Process) {
    let Some(s) = budgets::seat(table().index(p)) else {
        return;
    };
    s.queued
        .store(p.queued_messages() as u32, Ordering::Relaxed);
    s.awaits.store(0, Ordering::Relaxed);
    s.awaits_key.store(0, Ordering::Relaxed);
    if budgets::bound(s.budget()).is_some() {
        p.mailbox_mut().watched = true;
    }
    fence(crate::sync::Ordering::SeqCst);
    if s.waiting.load(Ordering::Relaxed) != 0 {
        let most = budgets::bound(s.budget()).map_or(i64::MAX, |b| b.0);
        let room = (most - unread(s)).max(0);
        if room > 0 {
            wake(p.pid(), Some(s), room as usize);
        }
    }
}

/// Called when the process in the context has made a monitor, and when a receive of it selects
/// messages by a monitor's reference: until it takes a message, it may wait for the process that it
/// monitors by that.
#[cold]
pub fn awaits(cx: &mut Cx, k: RefKey) {
    let Some(s) = budgets::seat(table().index(cx.proc.get())) else {
        return;
    };
    let p = cx.process();
    let target = p
        .ext()
        .and_then(|e| e.monitors.get_mut(&k))
        .map(|m| m.target());
    if matches!(target, Some(Target::Remote)) {
        s.awaits.store(ELSEWHERE, Ordering::Relaxed);
        s.awaits_key.store(0, Ordering::Relaxed);
    } else if let Some(Target::Local(pid) | Target::Named(pid, _)) = target
        && pid.is_local_pid()
    {
        s.awaits.store(pid.pid_data() + 1, Ordering::Relaxed);
        s.awaits_key
            .store(ids::bits_of(k.numbers()).unwrap_or(0), Ordering::Relaxed);
        fence(crate::sync::Ordering::SeqCst);
        if s.waiting.load(Ordering::Relaxed) != 0 {
            // One of them may be that process, or wait in a circle now.
            wake(p.pid(), Some(s), usize::MAX);
        }
    }
}

/// Called when a local process has ended, with its seat: wakes those that wait for it.
pub(crate) fn ended(me: Term, s: &Seat) {
    let waited_for = s.waits_for.load(Ordering::Relaxed);
    give_up(me, s);
    wake(me, None, usize::MAX);
    if waited_for != 0 {
        // It may have been woken because there was room.
        let to = Term::pid(waited_for - 1);
        wake(to, seat_of(to), 1);
    }
}
