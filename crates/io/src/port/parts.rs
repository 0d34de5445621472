//! Long lists.
//!
//! A list that comes to more than [`MAX_AT_ONCE`] is not queued as it is sent to a plain stream: it would take its own size once
//! more. It goes out in parts, and its sender waits, so that memory stays bounded however long it is. What a length goes before is
//! always queued whole.
//!
//! # The rest is the port's
//! Once a list has begun, all of it goes out before anything else does, as if it had been queued at once. Whoever sends it and
//! can't go on leaves what is left to the port, which gathers it as the queue falls:
//! * a process that ends, or is suspended, in the middle of its list;
//! * one that may not wait (`nosuspend`, `force`, a limited time);
//! * one of whose list nothing is taken for seconds ([`STALL_MS`]): it may be who should read it;
//! * all, where the emulator halts.
//!
//! The port gets the rest by reference: large parts of it go to a region that sender and port share, once, as those of a
//! message do.
//!
//! # Invariants
//! * There is a transit or a backlog, never both, and nothing that came later is taken while there is one.
//! * The process of a transit is in [`IN_PARTS`], and stands at `purlin:continue_output(Port, Rest)`, the port by its identifier:
//!   so the rest is found in its registers whenever it doesn't run.
//! * A port that is closed with a transit or a backlog goes when they are out.

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

/// Most parts, and merged bytes, of a list that is queued at once, which takes sixteen megabytes and thirty-two. A sender gets on
/// at once then, as in stock, which programs rely on that read what they cause to be sent.
pub(super) const MAX_AT_ONCE: (usize, usize) = (512 * 1024, 32 << 20);
/// Open lists cost room in what is left: the rest of a list as deep as this goes at once.
const MAX_DEPTH: usize = 16 * 1024;
/// Bytes of a long list that are sent before somebody else gets a turn.
const TURN_BYTES: usize = 1 << 20;
/// How often it is looked whether anything of a list was taken; if not, it is left to the port.
const STALL_MS: u64 = 2_500;

/// A list that is sent in parts by a process which waits.
pub(super) struct Transit {
    pub sender: Term,
    /// Bytes that are not gathered yet.
    left: usize,
    number: u32,
    /// Bytes gathered and queued when the port looked whether it gets on.
    seen: (u64, usize),
}

/// A list that the port sends in parts by itself.
pub(super) struct Backlog {
    /// None while it is gathered.
    rest: Option<Remainder>,
    /// Bytes that are not gathered yet.
    left: usize,
}

impl super::Base {
    /// Whether there is more of a list than was gathered.
    pub fn has_more(&self) -> bool {
        self.transit.is_some() || self.backlog.is_some()
    }
    /// Bytes that were sent and not gathered yet.
    pub fn coming(&self) -> usize {
        let transit = self.transit.as_ref().map_or(0, |t| t.left);
        transit + self.backlog.as_ref().map_or(0, |b| b.left)
    }
    /// Nothing more can be sent of the list that is under way. The process that is in the middle of it.
    pub fn cut_short(&mut self) -> Option<Term> {
        self.backlog = None;
        let sender = self.transit.take()?.sender;
        self.wake_all();
        Some(sender)
    }
    /// The rest that the port has taken over can't be sent.
    pub fn drop_backlog(&mut self) {
        self.backlog = None;
    }
    /// The process that waits in the middle of a list.
    pub fn sender_of_list(&self) -> Option<Term> {
        self.transit.as_ref().map(|t| t.sender)
    }
    /// So many bytes of the list that is under way were gathered.
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

/// How much of a backlog is gathered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pump {
    /// The port takes more until it is busy, within a turn.
    UntilBusy,
    /// A turn.
    Turn,
    /// All of it.
    All,
}

/// The outcome of the beginning of a long list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    Gone,
    /// The port is busy, and the caller did not want to wait.
    Busy,
    /// It goes out in parts.
    InParts,
    /// It is to be handed over whole.
    HandOver,
}

impl Port {
    /// The outcome of an output to the port that isn't taken now. Waits (`Fail::Wait`) if the port is busy, unless `how` says
    /// otherwise.
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
        // It is queued behind what is there.
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
            outbox::ask_rest(t.sender, sender_stops);
        }
        base.wait(caller);
        crate::events::sink().waits_for_port(caller, self.id);
        Err(Fail::Wait)
    }

    /// Begins to send a list of so many bytes.
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
        look_again(Arc::downgrade(self), number);
        Ok(Begun::InParts)
    }

    /// Sends the next parts of a list: what is left of it, None when it is over. Waits (`Fail::Wait`) while the port is
    /// busy.
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
            // It has failed, and been told, or the port has the rest.
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
            // It was walked before, and is an I/O list.
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

    /// Takes over what is left of the list of `sender`.
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

    /// Has the driver take more of what the port has taken over.
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

    /// Looks whether the list of that number gets on, and has its sender leave it if it doesn't. False: it is over.
    fn gets_on(&self, number: u32) -> bool {
        let mut core = self.lock();
        let c = &mut *core;
        let queued = c.driver.as_ref().map_or(0, |d| d.queued());
        let now = (c.base.bytes_out, queued);
        let Some(t) = c.base.transit.as_mut().filter(|t| t.number == number) else {
            return false;
        };
        if t.seen == now {
            outbox::ask_rest(t.sender, sender_stops);
        }
        t.seen = now;
        true
    }
}

/// Has the port look in a while whether the list of that number gets on.
fn look_again(port: Weak<Port>, number: u32) {
    timer::after(STALL_MS, move || {
        if port.upgrade().is_some_and(|p| p.gets_on(number)) {
            look_again(port, number);
        }
    });
}

/// The processes in the midst of a list that is sent in parts, by the process's word; and the port that each sends to.
static IN_PARTS: Mutex<BTreeMap<u64, (Term, Term)>> = Mutex::new(BTreeMap::new());
/// How many they are, so that other processes end, and are suspended, without looking.
static SENDERS: AtomicUsize = AtomicUsize::new(0);

/// Notes that a process sends a list to that port in parts, or (None) that it does no longer.
fn sends_in_parts(pid: Term, port: Option<Term>) {
    let mut all = IN_PARTS.lock();
    match port {
        Some(p) => all.insert(pid.raw(), (pid, p)),
        None => all.remove(&pid.raw()),
    };
    SENDERS.store(all.len(), Ordering::SeqCst);
}

/// The port that a process sends a list to in parts.
fn sends_to(pid: Term) -> Option<Term> {
    if SENDERS.load(Ordering::SeqCst) == 0 {
        return None;
    }
    IN_PARTS.lock().get(&pid.raw()).map(|s| s.1)
}

/// Begins to send a list of so many bytes; to be called again while it says to wait. What came of it, the port, and what of
/// the list is to be sent.
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

/// Sends the next parts of a list: what is left of it. Waits (`Fail::Wait`) while the port is busy.
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

/// The running process leaves the rest of its list to the port.
pub fn hand_over(cx: &mut Cx, port: Term, rest: Term) {
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

/// The process in the context, which doesn't run and has its registers in place, leaves the rest of its list, if it sends one.
fn leave(cx: &mut Cx) {
    let Some(port) = sends_to(cx.self_pid()) else {
        return;
    };
    let (at, rest) = (cx.x[0], cx.x[1]);
    debug_assert!(cx.interp.live == 2 && at == port, "see the module head");
    if cx.interp.live == 2 && at == port {
        hand_over(cx, port, rest);
    }
}

/// The running process is to stop, maybe in the midst of a list: it leaves the rest to the port as soon as its registers are known.
pub fn sender_stops(cx: &mut Cx) {
    if sends_to(cx.self_pid()).is_some() {
        let task = |cx: Option<&mut Cx>| cx.into_iter().for_each(leave);
        let deferred = &mut cx.process().ext_mut().deferred;
        deferred.push((Priority::Normal, Box::new(task)));
    }
}

/// The process in the context ends, maybe in the midst of a list.
pub fn sender_ends(cx: &mut Cx) {
    leave(cx);
}

/// A process has ended. What it couldn't leave of a list is lost, and who waits for the end of that must not wait any longer.
pub fn sender_exit(pid: Term) {
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

/// Asks all who send lists in parts to leave them to their ports. Whether none does any more.
pub fn hand_all_over() -> bool {
    let senders: Vec<Term> = IN_PARTS.lock().values().map(|s| s.0).collect();
    senders
        .iter()
        .for_each(|&pid| outbox::ask_rest(pid, sender_stops));
    senders.is_empty()
}
