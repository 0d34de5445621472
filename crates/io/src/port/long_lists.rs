//! Long lists.
//!
//! A list larger than [`MAX_AT_ONCE`] that is sent to a plain stream is not queued whole, because
//! the queue would need its size once more. It goes out in parts while its sender waits, so that
//! memory stays bounded however long it is. Output that needs a length in front is always queued
//! whole.
//!
//! # Handing the rest to the port
//! Once a list has begun, all of it goes out before anything else does, as if it had been queued at
//! once. A sender that cannot continue leaves the rest to the port, which gathers it as the queue
//! shrinks:
//! * a process that ends, or is suspended, in the middle of its list;
//! * one that may not wait (`nosuspend`, `force`, a limited time);
//! * one whose list has made no progress for seconds ([`STALL_MS`]): it may be the one that should
//!   read it;
//! * every sender, when the emulator halts.
//!
//! The port gets the rest by reference. Large parts go once to a region that sender and port share,
//! like those of a message.
//!
//! # Invariants
//! * There is a transit or a backlog, never both, and nothing that came later is taken while there
//!   is one.
//! * The process of a transit is in [`IN_PARTS`] and stands at `purlin:continue_output(Port,
//!   Rest)`, with the port as an identifier. So its registers hold the rest whenever it does not
//!   run.
//! * A port that is closed with a transit or a backlog goes away when they are out.
//!
//! # Orderings
//! `SENDERS` is the size of [`IN_PARTS`], stored under its mutex, so its values follow the order of
//! the lock. Only the process itself, or a task that runs in it, asks for its own entry. Its
//! insertion happens before that load, because schedulers synchronise when a process moves between
//! them. Later stores by other processes count this entry too. So the load cannot read zero while
//! the entry exists, and sequential consistency is more than needed.

use super::{Core, How, Outcome, Port, Reference, held, lookup, outbox, take_reference};
use crate::cx::{Cx, Fail};
use crate::gather::{self, Gather, Parts, Remainder};
use crate::msacc::{self, State};
use crate::process::state::Priority;
use crate::{accounts, timer};
use purlin_kernel::waits;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::region::is_region_ptr;
use purlin_term::sync::Mutex;
use purlin_term::{Term, graph};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Maximum parts and merged bytes of a list that is queued at once; these take sixteen and
/// thirty-two megabytes. Up to that size a sender continues at once, as in stock. Programs that
/// read what they cause to be sent rely on it.
pub(super) const MAX_AT_ONCE: (usize, usize) = (512 * 1024, 32 << 20);
/// Maximum nesting depth of a list that is sent in parts, because open lists take room in the rest.
/// The rest of a deeper list is gathered at once.
const MAX_DEPTH: usize = 16 * 1024;
/// Number of bytes of a long list that are sent before other work gets a turn.
const TURN_BYTES: usize = 1 << 20;
/// Interval at which a list is checked for progress. Without progress it is left to the port.
const STALL_MS: u64 = 2_500;

/// A list that a waiting process sends in parts.
pub(super) struct Transit {
    pub sender: Term,
    /// Bytes that are not gathered yet.
    left: usize,
    number: u32,
    /// Bytes gathered and queued at the last check for progress.
    seen: (u64, usize),
}

/// A list that the port sends in parts by itself.
pub(super) struct Backlog {
    /// None while it is being gathered.
    rest: Option<Remainder>,
    /// Bytes that are not gathered yet.
    left: usize,
}

impl super::Base {
    /// Whether part of a list is not gathered yet.
    pub fn has_more(&self) -> bool {
        self.transit.is_some() || self.backlog.is_some()
    }
    /// Bytes that were sent and not gathered yet.
    pub fn coming(&self) -> usize {
        let transit = self.transit.as_ref().map_or(0, |t| t.left);
        transit + self.backlog.as_ref().map_or(0, |b| b.left)
    }
    /// Gives up the list that is being sent. Returns the process in the middle of it.
    pub fn cut_short(&mut self) -> Option<Term> {
        self.backlog = None;
        let sender = self.transit.take()?.sender;
        self.wake_all();
        Some(sender)
    }
    /// Gives up the rest that the port has taken over.
    pub fn drop_backlog(&mut self) {
        self.backlog = None;
    }
    /// The process that waits in the middle of a list.
    pub fn sender_of_list(&self) -> Option<Term> {
        self.transit.as_ref().map(|t| t.sender)
    }
    /// Counts gathered bytes of the list that is being sent.
    fn gathered(&mut self, n: usize) {
        if let Some(t) = &mut self.transit {
            t.left = t.left.saturating_sub(n);
        } else if let Some(b) = &mut self.backlog {
            b.left = b.left.saturating_sub(n);
        }
    }
    fn is_sent_by(&self, pid: Term) -> bool {
        self.transit.as_ref().is_some_and(|t| t.sender == pid)
    }
}

/// How much of a backlog to gather.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pump {
    /// Until the port is busy or the turn is over.
    UntilBusy,
    Turn,
    /// All of it.
    All,
}

/// The outcome of beginning a long list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    Gone,
    /// The port is busy, and the caller did not want to wait.
    Busy,
    /// The list goes out in parts.
    InParts,
    /// The list must be handed over whole.
    HandOver,
}

impl Port {
    /// The outcome of an output that the port does not take now, if so. Waits (`Fail::Wait`) if the
    /// port is busy, unless `how` says otherwise.
    pub(super) fn refuses(
        &self,
        core: &mut Core,
        caller: Term,
        how: How,
    ) -> Result<Option<Outcome>, Fail> {
        let c = &mut *core;
        let Some(driver) = c.driver.as_deref_mut().filter(|_| !c.base.closing) else {
            return Ok(Some(Outcome::Gone));
        };
        if how.force && !how.message && !driver.may_force() {
            return Ok(Some(Outcome::Unsupported));
        }
        // The output is queued behind the backlog.
        if c.base.backlog.is_some() && (how.force || driver.has_deadline()) {
            self.pump(core, Pump::All);
        }
        let base = &mut core.base;
        let blocked = match how.force {
            true => base.has_more(),
            false => base.busy() || base.has_more(),
        };
        if !blocked {
            return Ok(None);
        }
        if how.no_suspend && !how.force {
            return Ok(Some(Outcome::Busy));
        }
        if how.force
            && let Some(t) = &base.transit
        {
            outbox::ask_rest(t.sender, request_rest);
        }
        base.wait(caller);
        crate::events::sink().waits_for_port(caller, self.id);
        Err(Fail::Wait)
    }

    /// Begins to send a list of `bytes` bytes.
    fn begin_parts(
        self: &Arc<Self>,
        caller: Term,
        reference: Reference,
        bytes: usize,
        how: How,
    ) -> Result<Begun, Fail> {
        let _state = msacc::within(State::Port);
        let mut core = self.lock();
        match self.refuses(&mut core, caller, how)? {
            None => {}
            Some(Outcome::Busy) => return Ok(Begun::Busy),
            Some(_) => return Ok(Begun::Gone),
        }
        let c = &mut *core;
        let Some(driver) = c.driver.as_deref_mut() else {
            return Ok(Begun::Gone);
        };
        match reference {
            Reference::None => {}
            Reference::Is(r) => c.base.refer(caller, r),
            Reference::Missing => {
                c.base.fail(libc::EINVAL);
                self.settle(&mut core);
                return Ok(Begun::Gone);
            }
        }
        let now = how.no_suspend || how.force || (driver.has_deadline() && driver.queued() > 0);
        c.base.transits = c.base.transits.wrapping_add(1);
        let number = c.base.transits;
        c.base.transit = Some(Transit {
            sender: caller,
            left: bytes,
            number,
            seen: (c.base.bytes_out, driver.queued()),
        });
        c.base.caller = caller;
        driver.begin(&mut c.base, bytes);
        self.settle(&mut core);
        if now {
            return Ok(Begun::HandOver);
        }
        check_progress_later(Arc::downgrade(self), number);
        Ok(Begun::InParts)
    }

    /// Sends the next parts of a list. Returns the rest, or None at the end. Waits (`Fail::Wait`)
    /// while the port is busy.
    fn send_parts(&self, cx: &mut Cx, data: Term) -> Result<Option<Term>, Fail> {
        let caller = cx.self_pid();
        let _state = msacc::within(State::Port);
        accounts::writes_begin();
        let mut core = self.lock();
        let c = &mut *core;
        let Some(driver) = c.driver.as_deref_mut() else {
            return Ok(None);
        };
        if !c.base.is_sent_by(caller) {
            // Sending has failed and the sender knows it, or the port has the rest.
            return Ok(None);
        }
        if c.base.busy() {
            c.base.wait(caller);
            crate::events::sink().waits_for_port(caller, self.id);
            return Err(Fail::Wait);
        }
        c.base.caller = caller;
        let mut g = Gather::new(data);
        let mut turn = TURN_BYTES;
        let rest = loop {
            let most = match g.depth() > MAX_DEPTH {
                true => (usize::MAX, usize::MAX),
                false => (gather::max_parts(), gather::scratch_bytes()),
            };
            // It was walked before, so it is an I/O list.
            let _ = g.next_batch(most.0, most.1);
            let (n, last) = (g.bytes(), g.is_last());
            c.base.count_out(n);
            c.base.gathered(n);
            driver.output_part(&mut c.base, &mut g, last);
            turn = turn.saturating_sub(n.max(1));
            if last || c.base.transit.is_none() {
                c.base.transit = None;
                c.base.wake_waiting();
                break None;
            }
            if c.base.busy() || turn == 0 {
                break Some(g.rest(cx));
            }
        };
        self.settle(&mut core);
        cx.bump((TURN_BYTES - turn) / 1024);
        Ok(rest)
    }

    /// Takes over the rest of the list of `sender`.
    fn take_over(&self, sender: Term, list: OwnedTerm) {
        let _state = msacc::within(State::Port);
        let mut core = self.lock();
        let c = &mut *core;
        let (true, Some(driver)) = (c.base.is_sent_by(sender), c.driver.as_deref_mut()) else {
            return;
        };
        let left = c.base.coming();
        c.base.transit = None;
        c.base.count_out(left);
        c.base.backlog = Some(Backlog {
            rest: Some(Remainder::new(list)),
            left,
        });
        driver.taken(&mut c.base, sender);
        if driver.has_deadline() {
            self.pump(&mut core, Pump::All);
        }
        self.settle(&mut core);
    }

    /// Makes the driver take more of the backlog.
    pub(super) fn pump(&self, core: &mut Core, much: Pump) {
        let c = &mut *core;
        let Some(driver) = c.driver.as_deref_mut() else {
            return;
        };
        let taken = c.base.backlog.as_mut().and_then(|b| b.rest.take());
        let Some(mut rest) = taken else { return };
        let mut turn = TURN_BYTES;
        loop {
            if much == Pump::UntilBusy && c.base.busy() {
                break;
            }
            if much != Pump::All && turn == 0 {
                driver.later(&mut c.base);
                break;
            }
            let last = rest.gather(|g| {
                let _ = g.next_batch(gather::max_parts(), gather::scratch_bytes());
                let (n, last) = (g.bytes(), g.is_last());
                turn = turn.saturating_sub(n.max(1));
                c.base.gathered(n);
                driver.output_part(&mut c.base, g, last);
                last
            });
            if c.base.backlog.is_none() || c.base.is_ending() {
                // Nothing more can be sent.
                c.base.drop_backlog();
                return c.base.wake_waiting();
            }
            if last {
                c.base.drop_backlog();
                if !c.base.busy() {
                    c.base.wake_waiting();
                }
                return;
            }
        }
        if let Some(b) = &mut c.base.backlog {
            b.rest = Some(rest);
        }
    }

    /// Checks the list of that number for progress and asks its sender to leave it if there is
    /// none. Returns false if the list is over.
    fn makes_progress(&self, number: u32) -> bool {
        let mut core = self.lock();
        let c = &mut *core;
        let queued = c.driver.as_ref().map_or(0, |d| d.queued());
        let now = (c.base.bytes_out, queued);
        let Some(t) = c.base.transit.as_mut().filter(|t| t.number == number) else {
            return false;
        };
        if t.seen == now {
            outbox::ask_rest(t.sender, request_rest);
        }
        t.seen = now;
        true
    }
}

/// Schedules the next check for progress.
fn check_progress_later(port: Weak<Port>, number: u32) {
    timer::after(STALL_MS, move || {
        if port.upgrade().is_some_and(|p| p.makes_progress(number)) {
            check_progress_later(port, number);
        }
    });
}

/// The processes that are sending a list in parts, by the process's word, and the port that each
/// sends to.
static IN_PARTS: Mutex<BTreeMap<u64, (Term, Term)>> = Mutex::new(BTreeMap::new());
/// Number of entries in [`IN_PARTS`], so that other processes end and are suspended without taking
/// the lock.
static SENDERS: AtomicUsize = AtomicUsize::new(0);

/// Records that a process sends a list to that port in parts, or (None) that it no longer does.
fn sends_in_parts(pid: Term, port: Option<Term>) {
    let mut all = IN_PARTS.lock();
    match port {
        Some(p) => all.insert(pid.raw(), (pid, p)),
        None => all.remove(&pid.raw()),
    };
    SENDERS.store(all.len(), Ordering::SeqCst);
}

/// The port to which a process sends a list in parts.
fn sends_to(pid: Term) -> Option<Term> {
    if SENDERS.load(Ordering::SeqCst) == 0 {
        return None;
    }
    IN_PARTS.lock().get(&pid.raw()).map(|s| s.1)
}

/// Begins to send a list of `bytes` bytes. Must be called again while it says to wait. Returns the
/// outcome, the port, and the list that remains to be sent.
pub fn begin_parts(
    cx: &mut Cx,
    port: Term,
    data: Term,
    bytes: usize,
    how: How,
) -> Result<(Begun, Term, Term), Fail> {
    let Some(p) = lookup(port) else {
        return Ok((Begun::Gone, port, data));
    };
    waits::locks_begin();
    let me = cx.self_pid();
    let (reference, rest) = take_reference(cx, &p, data);
    let head = match &reference {
        Reference::Is(r) => 2 + r.len(),
        _ => 0,
    };
    let r = held(cx, p.begin_parts(me, reference, bytes - head, how))?;
    if r == Begun::InParts {
        sends_in_parts(me, Some(p.id));
    }
    Ok((r, p.id, rest))
}

/// Sends the next parts of a list and returns the rest. Waits (`Fail::Wait`) while the port is
/// busy.
pub fn send_parts(cx: &mut Cx, port: Term, data: Term) -> Result<Option<Term>, Fail> {
    waits::locks_begin();
    let r = match lookup(port) {
        Some(p) => p.send_parts(cx, data),
        None => Ok(None),
    };
    let r = held(cx, r);
    if r == Ok(None) {
        sends_in_parts(cx.self_pid(), None);
    }
    r
}

/// Leaves the rest of the running process's list to the port.
pub fn leave_to_port(cx: &mut Cx, port: Term, rest: Term) {
    let me = cx.self_pid();
    sends_in_parts(me, None);
    let list = owned(cx, rest);
    if let Some(p) = super::find(port) {
        p.take_over(me, list);
    }
}

/// A list that belongs to nobody else, though its parts may be shared.
fn owned(cx: &mut Cx, list: Term) -> OwnedTerm {
    if list.is_immed() || is_region_ptr(list.ptr()) {
        return OwnedTerm::copy_of(list);
    }
    let (list, region) = graph::to_region(list, &cx.heap);
    let mut place = Fragment::new();
    place.off_heap.regions.adopt(region);
    OwnedTerm::from_parts(list, place)
}

/// Makes the process in the context leave the rest of its list, if it sends one. The process does
/// not run, and its registers are in place.
fn leave(cx: &mut Cx) {
    let Some(port) = sends_to(cx.self_pid()) else {
        return;
    };
    let (at, rest) = (cx.x[0], cx.x[1]);
    debug_assert!(cx.interp.live == 2 && at == port, "see the module head");
    if cx.interp.live == 2 && at == port {
        leave_to_port(cx, port, rest);
    }
}

/// Called when the running process must stop, perhaps in the middle of a list. It leaves the rest
/// to the port as soon as its registers are known.
pub fn request_rest(cx: &mut Cx) {
    if sends_to(cx.self_pid()).is_some() {
        let task = |cx: Option<&mut Cx>| cx.into_iter().for_each(leave);
        let deferred = &mut cx.process().ext_mut().deferred;
        deferred.push((Priority::Normal, Box::new(task)));
    }
}

/// Called when the process in the context ends, perhaps in the middle of a list.
pub fn sender_exiting(cx: &mut Cx) {
    leave(cx);
}

/// Called when a process has ended. What it could not leave of a list is lost, and those who wait
/// for the end of the list are released.
pub fn sender_exited(pid: Term) {
    let Some(p) = sends_to(pid).and_then(super::find) else {
        return;
    };
    sends_in_parts(pid, None);
    let mut core = p.lock();
    if core.base.is_sent_by(pid) {
        core.base.cut_short();
        core.base.fail(libc::EPIPE);
        p.settle(&mut core);
    }
}

/// Asks all senders of lists in parts to leave them to their ports. Returns whether there are none.
pub fn request_all_rests() -> bool {
    let senders: Vec<Term> = IN_PARTS.lock().values().map(|s| s.0).collect();
    senders
        .iter()
        .for_each(|&pid| outbox::ask_rest(pid, request_rest));
    senders.is_empty()
}
