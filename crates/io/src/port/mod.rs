//! Ports: what connects processes with the outside world.
//!
//! # Parts
//! A [`Port`] is an entry of the port table: a number, an owner, links and monitors, and a
//! [`Driver`], which does the work of one kind of port. The poll thread tells a port when its
//! descriptors are ready; processes tell it what to write.
//!
//! # Locking
//! All mutable state is under the port's lock. The thread that has something for the port does the
//! work itself: a process in a native, or the poll thread. Nobody waits inside: drivers never
//! block, and what cannot be written at once is queued and written when the poll thread reports
//! room. Messages and signals are sent with the lock held, so that they arrive in the order of the
//! events.
//! Order of locks: port, then port table, then those of the poll thread and of other modules.
//!
//! # Life
//! A port is open first. If something is queued when it is closed, it becomes closing: it has no
//! links, monitors or name any more, looks closed to every user, and only writes. Its owner learns
//! nothing of what happens then. At last it leaves the table.
//!
//! # Busy
//! A driver whose queue has passed its high mark sets its port busy. A sender then waits, and is
//! woken when the queue has fallen below the low mark. For long lists see [`long_lists`].

mod base;
pub mod channel;
pub mod driver;
pub mod drivers;
pub(crate) mod fd;
pub mod forker;
mod handoff;
#[cfg(test)]
mod inet_tests;
mod linebuf;
mod long_lists;
pub mod open;
pub mod orphans;
mod outbox;
pub mod settings;
mod spawn;
#[cfg(test)]
mod tests;
mod trace_file;
mod trace_ip;
pub mod traced;
pub mod watch;

pub use base::{Base, End};
pub use driver::{Driver, Reply};
use handoff::Handoff;
pub use long_lists::{
    Begun, begin_parts, leave_to_port, request_all_rests, request_rest, send_parts, sender_exited,
    sender_exiting,
};
use long_lists::{MAX_AT_ONCE, Pump};
use traced::Work;

use crate::cx::{Cx, Fail};
use crate::events::flag;
use crate::gather::{self, Gather};
use crate::msacc::{self, State};
use crate::os::descriptor;
use crate::process::registry;
use crate::{accounts, clock, halt, poll, report};
use purlin_kernel::budgets::{self, Charge, Counted, Paying};
use purlin_kernel::outside::Sent;
use purlin_kernel::waits;
use purlin_term::frag::OwnedTerm;
use purlin_term::iolist;
use purlin_term::print::{LONGEST_TEXT, Style, format_term};
use purlin_term::release::{self, REFERENCES_OF_SENDERS};
use purlin_term::sync::{Mutex, MutexGuard, RwLock};
use purlin_term::{Alloc, NIL, Term, am, atom, etf};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

/// Maximum port number that a local port identifier can hold.
const MAX_NUMBER: u32 = (1 << 28) - 1;
/// Reductions that a command to a port costs.
const COMMAND_REDUCTIONS: usize = 200;

/// See the module head.
pub struct Port {
    /// Its identifier.
    pub id: Term,
    /// The name that it was opened with, as `port_info(Port, name)` shows it.
    pub name: Box<[u8]>,
    /// Whether commands begin with the reference that their replies carry: see [`take_reference`].
    refers: bool,
    core: Mutex<Core>,
    /// Set when its connection to another node has something to send.
    handoff: Handoff,
    /// The data of `port_set_data`. They have a lock of their own, because setting them is no
    /// signal to the port.
    data: Mutex<Option<OwnedTerm>>,
    /// Its charge to the budget of its owner, while it is in the table.
    charge: Mutex<Option<Charge>>,
}

/// The part that the lock guards. If there is no driver, the port is gone.
struct Core {
    base: Base,
    driver: Option<Box<dyn Driver>>,
}

impl Core {
    /// Whether anything that was taken is not written yet.
    fn has_output(&self) -> bool {
        let of = self.driver.as_ref();
        of.is_some_and(|d| d.queued() > 0 || self.base.has_more())
    }
}

struct Table {
    ports: BTreeMap<u32, Arc<Port>>,
    next: u32,
    limit: usize,
}

/// The number of the port that exists from the start ([`forker`]).
const FIRST: u32 = 0;

static TABLE: RwLock<Table> = RwLock::new(Table {
    ports: BTreeMap::new(),
    next: FIRST + 1,
    limit: 65536,
});

/// Maximum number of descriptors that this process may have.
pub fn max_files() -> i64 {
    descriptor::max_files()
}

/// Sets the maximum number of ports (`+Q`).
pub fn set_limit(n: usize) {
    TABLE.write().limit = n;
}

/// Maximum number of ports.
pub fn limit() -> usize {
    TABLE.read().limit
}

/// Bytes that ports have read and written so far.
static TOTAL_IN: AtomicU64 = AtomicU64::new(0);
static TOTAL_OUT: AtomicU64 = AtomicU64::new(0);

/// Bytes that all ports have read and written so far.
pub fn total_bytes() -> (u64, u64) {
    (
        TOTAL_IN.load(Ordering::Relaxed),
        TOTAL_OUT.load(Ordering::Relaxed),
    )
}

/// Number of ports.
pub fn count() -> usize {
    TABLE.read().ports.len()
}

/// The identifiers of all ports.
pub fn all() -> Vec<Term> {
    let t = TABLE.read();
    t.ports.keys().map(|&n| Term::port(n)).collect()
}

/// The port with that local identifier, if it is open or closing.
pub fn find(id: Term) -> Option<Arc<Port>> {
    if !id.is_local_port() {
        return None;
    }
    let t = TABLE.read();
    t.ports.get(&id.pid_data()).cloned()
}

/// The port with that local identifier or registered name.
pub fn lookup(id_or_name: Term) -> Option<Arc<Port>> {
    if id_or_name.is_atom() {
        find(registry::whereis(id_or_name)?)
    } else {
        find(id_or_name)
    }
}

/// Enters a new port into the table, without a driver.
fn enter(name: &[u8], owner: Term) -> Result<Arc<Port>, settings::Error> {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| halt::on_halt(flush_all_at_halt));
    let mut t = TABLE.write();
    if t.ports.len() >= t.limit {
        return Err(settings::Error::SystemLimit);
    }
    while t.ports.contains_key(&t.next) {
        t.next = (t.next + 1) & MAX_NUMBER;
    }
    let n = t.next;
    t.next = (n + 1) & MAX_NUMBER;
    let charge = Charge::new(owner, Counted::Ports).ok_or(settings::Error::SystemLimit)?;
    let p = add(&mut t, n, name, owner);
    *p.charge.lock() = Some(charge);
    Ok(p)
}

/// Adds a port with that number, without a driver.
fn add(t: &mut Table, n: u32, name: &[u8], owner: Term) -> Arc<Port> {
    let id = Term::port(n);
    let p = Arc::new_cyclic(|me| Port {
        id,
        name: name.into(),
        refers: release::has(REFERENCES_OF_SENDERS) && settings::SOCKETS.contains(&name),
        core: Mutex::new(Core {
            base: Base::new(id, owner, me.clone()),
            driver: None,
        }),
        handoff: Handoff::new(),
        data: Mutex::new(None),
        charge: Mutex::new(None),
    });
    t.ports.insert(n, p.clone());
    p
}

fn remove(id: Term) {
    let mut t = TABLE.write();
    let gone = t.ports.remove(&id.pid_data());
    // This may be the last reference, and dropping it takes other locks.
    drop(t);
    let charge = gone.as_ref().and_then(|p| p.charge.lock().take());
    drop(charge);
    drop(gone);
}

/// The outcome of an operation on a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome {
    Done,
    /// There is no such port, or no longer.
    Gone,
    /// The port is busy, and the caller did not want to wait.
    Busy,
    /// The arguments are bad, or the sender is not the owner.
    Bad,
    /// The driver has no such operation.
    Unsupported,
    /// Nothing is written: the list must be sent in parts.
    Long,
}

/// How a command is given.
#[derive(Clone, Copy, Default)]
pub struct How {
    /// By a message, `Port ! …`, to which the sender gets no reply.
    pub message: bool,
    /// Even if the port is busy.
    pub force: bool,
    /// Without waiting if it is busy.
    pub no_suspend: bool,
    /// With the whole list in one call, however long it is.
    pub whole: bool,
}

/// A port's lock. Unlocking it serves the requests that were left to its holder ([`handoff`]).
struct Held<'a> {
    port: &'a Port,
    /// Present until this is dropped.
    core: Option<MutexGuard<'a, Core>>,
}

impl Deref for Held<'_> {
    type Target = Core;
    #[inline]
    fn deref(&self) -> &Core {
        match &self.core {
            Some(c) => c,
            None => unreachable!("it is held"),
        }
    }
}

impl DerefMut for Held<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Core {
        match &mut self.core {
            Some(c) => c,
            None => unreachable!("it is held"),
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        // Only a connection leaves requests.
        let may_be = self.base.channel.is_some();
        let told = self.base.traced.take_pending_tracers();
        self.core = None;
        for port in told {
            traced::deliver(port);
        }
        if may_be && self.port.handoff.is_requested() {
            self.port.pull_if_requested();
        }
    }
}

impl Port {
    /// Whether this is the port that nothing ends.
    fn is_first(&self) -> bool {
        self.id == Term::port(FIRST)
    }
    fn lock(&self) -> Held<'_> {
        Held {
            port: self,
            core: Some(waits::lock(&self.core)),
        }
    }
    /// Locks the port. None if another thread holds the lock.
    fn try_lock(&self) -> Option<Held<'_>> {
        let core = Some(self.core.try_lock()?);
        Some(Held { port: self, core })
    }
    /// Runs `f` on the driver and its base, as work of that kind. None if the port looks closed.
    fn with<R>(&self, work: Work, f: impl FnOnce(&mut dyn Driver, &mut Base) -> R) -> Option<R> {
        self.with_any(work, |d, b| (!b.closing).then(|| f(d, b)))?
    }
    /// As [`Port::with`], but on closing ports too. None if the port is gone.
    fn with_any<R>(
        &self,
        work: Work,
        f: impl FnOnce(&mut dyn Driver, &mut Base) -> R,
    ) -> Option<R> {
        let _state = msacc::within(State::Port);
        let mut core = self.turn(work);
        let c = &mut *core;
        let r = f(c.driver.as_deref_mut()?, &mut c.base);
        self.settle(&mut core);
        Some(r)
    }

    /// Writes `data` for the sender `from`. By message only the owner may write.
    ///
    /// Waits (`Fail::Wait`) if the port is busy, unless `how` says otherwise.
    fn output(
        &self,
        caller: Term,
        from: Term,
        (reference, data): (Reference, Term),
        how: How,
    ) -> Result<Outcome, Fail> {
        let _state = msacc::within(State::Port);
        accounts::writes_begin();
        let mut core = self.turn(Work::Command);
        if let Some(o) = self.refuses(&mut core, caller, how)? {
            return Ok(o);
        }
        let c = &mut *core;
        let Some(driver) = c.driver.as_deref_mut() else {
            return Ok(Outcome::Gone);
        };
        // Tracers see one command.
        let whole = c.base.traced_for(flag::RECEIVE);
        let in_parts = !how.message && !how.whole && driver.streams() && !whole;
        let most = match (driver.in_batches() && !whole, in_parts) {
            (true, _) => (gather::max_parts(), gather::batch_bytes()),
            (false, true) => MAX_AT_ONCE,
            (false, false) => (usize::MAX, usize::MAX),
        };
        let mut v = Gather::new(data);
        let r = v.next_batch(most.0, most.1).and_then(|_| {
            if v.is_last() {
                return Ok(false);
            }
            let most = match in_parts {
                true => MAX_AT_ONCE,
                false => (usize::MAX, usize::MAX),
            };
            // A list is sent only if it is valid to its end.
            let total = match driver.in_batches() {
                true => iolist::size_unless_long(data, most.0, most.1)?,
                false => None,
            };
            total.into_iter().for_each(|n| v.set_total(n));
            Ok(total.is_none())
        });
        match r {
            Ok(false) => {}
            Ok(true) => {
                // It will be gathered again.
                accounts::writes_begin();
                return Ok(Outcome::Long);
            }
            Err(_) => {
                bad_value(&self.name, caller);
                if how.message {
                    c.base.bad_signal();
                }
                return Ok(Outcome::Bad);
            }
        }
        if how.message && from != c.base.connected {
            c.base.bad_signal();
            return Ok(Outcome::Bad);
        }
        c.base.count_out(v.total());
        c.base.caller = if how.message { from } else { caller };
        match reference {
            Reference::None => {}
            Reference::Is(r) => c.base.refer(c.base.caller, r),
            Reference::Missing => {
                c.base.fail(libc::EINVAL);
                self.settle(&mut core);
                return Ok(Outcome::Done);
            }
        }
        c.base.trace_command(c.base.caller, &v, driver.vectored());
        driver.output(&mut c.base, &mut v);
        self.settle(&mut core);
        Ok(Outcome::Done)
    }

    /// Makes `to` the owner. A native also links the new owner to the port: `link` must enter the
    /// link at its end, and returns false if there is no such process.
    fn connect(&self, from: Term, to: Term, message: bool, link: impl FnOnce() -> bool) -> Outcome {
        let mut core = self.turn(Work::Connect);
        let base = &mut core.base;
        if base.closing {
            return Outcome::Gone;
        }
        if message {
            if !to.is_local_pid() || base.connected != from {
                base.bad_signal();
                return Outcome::Bad;
            }
            base.trace_connect(from, to);
            base.connected = to;
            self.charge_to(to);
            let id = base.id;
            base.message(from, |a| a.tuple(&[id, am::CONNECTED]));
            return Outcome::Done;
        }
        if !to.is_local_pid() {
            return Outcome::Bad;
        }
        if base.add_link(to) {
            if !link() {
                base.remove_link(to);
                return Outcome::Bad;
            }
            base.trace_link(to, true);
        }
        base.connected = to;
        self.charge_to(to);
        base.trace_connect(from, to);
        base.trace_connected(from);
        Outcome::Done
    }

    /// Makes the budget of the port pay for what this thread makes: what comes in, and is kept in
    /// the mailbox of the owner until that takes it.
    #[inline]
    fn pays(&self) -> Option<Paying> {
        budgets::on().then(|| {
            let charge = self.charge.lock();
            budgets::pays(charge.as_ref().map_or(budgets::ROOT, Charge::budget))
        })
    }

    /// Charges the budget of a new owner for the port.
    fn charge_to(&self, owner: Term) {
        if budgets::on() {
            let mut charge = self.charge.lock();
            *charge = charge.take().map(|c| c.moved_to(owner));
        }
    }

    /// Ends the port on request of `from`: `port_close`, `exit/2`, a message `close`.
    fn exit(&self, from: Term, reason: Term, message: bool) -> Outcome {
        let mut core = self.turn(Work::Close);
        if core.base.closing {
            return Outcome::Gone;
        }
        if message && from != core.base.connected {
            core.base.bad_signal();
            return Outcome::Bad;
        }
        if self.is_first() {
            return Outcome::Bad;
        }
        core.base.trace_close(from);
        core.base.send_closed = message;
        self.end(&mut core, reason, false);
        Outcome::Done
    }

    /// Carries out what a driver has requested.
    fn settle(&self, core: &mut Core) {
        if core.base.backlog.is_some() && !core.base.is_ending() {
            self.pump(core, Pump::UntilBusy);
        }
        while let Some(end) = core.base.ended.take() {
            if let End::Eof = end {
                core.base.flush_lines();
            }
            if core.base.closing {
                self.terminate(core);
                return;
            }
            match end {
                End::Eof if core.base.soft_eof => core.base.tell(am::EOF),
                End::Eof => self.end(core, am::NORMAL, true),
                End::Reason(r) => self.end(core, r, true),
            }
        }
        if core.base.closing && core.driver.is_some() && !core.has_output() {
            self.terminate(core);
        }
    }

    /// Removes the name, links and monitors of an open port and tells the other ends. The rest
    /// follows when the queue is empty, or at once if `now`.
    fn end(&self, core: &mut Core, reason: Term, now: bool) {
        let c = &mut *core;
        c.base.trace_closed(reason);
        let now = now || reason == am::KILL;
        let reason = if reason == am::KILL {
            am::KILLED
        } else {
            reason
        };
        c.base.closing = true;
        c.base.set_busy(false);
        c.base.wake_all();
        if let Some(name) = c.base.registered.take() {
            let _ = registry::unregister_of(name, self.id);
            c.base.trace_name(name, false);
        }
        if let Some(channel) = c.base.channel.take() {
            channel.ended(reason);
        }
        c.base.break_links(reason);
        let has_output = c.has_output();
        match &mut c.driver {
            Some(d) if !now && has_output => {
                c.base.flushing = true;
                c.base.trace_work(true, Work::Flush);
                d.flush(&mut c.base);
                c.base.trace_work(false, Work::Flush);
            }
            _ => {}
        }
        if now || !core.has_output() {
            self.terminate(core);
        }
    }

    fn terminate(&self, core: &mut Core) {
        let Some(mut d) = core.driver.take() else {
            return;
        };
        core.base.closing = true;
        d.stop(&mut core.base);
        drop(d);
        core.base.cut_short();
        core.base.wake_all();
        *self.data() = None;
        remove(self.id);
        if std::mem::take(&mut core.base.send_closed) {
            core.base.tell_closed();
        }
    }

    /// Writes the queue, until `until` at the latest. Returns whether something is left.
    fn write_out_at_halt(&self, until: Option<i64>) -> bool {
        let mut core = self.lock();
        loop {
            let c = &mut *core;
            let Some(d) = &mut c.driver else { return false };
            d.write_out(&mut c.base, until);
            if d.queued() > 0 {
                return true;
            }
            if c.base.backlog.is_none() {
                return false;
            }
            self.pump(&mut core, Pump::Turn);
        }
    }

    /// Runs the driver's timeout.
    fn timeout(&self, token: u32) {
        let _paying = self.pays();
        self.with(Work::Event, |d, b| {
            b.trace_timeout();
            d.timeout(b, token)
        });
    }

    /// Runs `f` on the base on behalf of the driver. Returns false if the driver has stopped. Waits
    /// for the port, so the caller must hold no port's lock.
    pub fn on_behalf(&self, f: impl FnOnce(&mut Base)) -> bool {
        let _state = msacc::within(State::Port);
        let _paying = self.pays();
        let mut core = self.turn(Work::Event);
        if core.driver.is_none() {
            return false;
        }
        f(&mut core.base);
        self.settle(&mut core);
        true
    }
    /// As [`Port::on_behalf`], if the port is free. Returns false, having done nothing, if it is
    /// not. For a stopped driver `f` is not called.
    pub fn try_on_behalf(&self, f: &mut dyn FnMut(&mut Base)) -> bool {
        let Some(mut core) = self.try_lock() else {
            return false;
        };
        if core.driver.is_some() {
            f(&mut core.base);
            self.settle(&mut core);
        }
        true
    }

    fn data(&self) -> MutexGuard<'_, Option<OwnedTerm>> {
        self.data.lock()
    }
    /// The child process behind the port has ended, with this status of wait(2).
    fn child_exited(&self, status: i32) {
        let mut core = self.turn(Work::Event);
        let c = &mut *core;
        if let Some(d) = &mut c.driver {
            d.child_exited(&mut c.base, status);
            self.settle(&mut core);
        }
    }
}

impl poll::Ready for Port {
    fn ready(&self, id: poll::Id, readable: bool, writable: bool) {
        let _state = msacc::within(State::Port);
        let _paying = self.pays();
        let mut core = self.turn(Work::Event);
        let c = &mut *core;
        if let Some(d) = &mut c.driver {
            d.ready(&mut c.base, id, readable, writable);
            self.settle(&mut core);
            self.pull(&mut core);
        }
    }
}

/// Logs that something other than an I/O list was sent to a port.
fn bad_value(name: &[u8], from: Term) {
    let name = String::from_utf8_lossy(name);
    let text = format!("Bad value on output port '{name}'\n");
    report::send(report::Level::Error, NIL, from, report::Text::Plain(&text));
}

/// The work of `port_command/2` for a native library, which cannot wait; on behalf of process
/// `from` if given. Returns false if there is no such port, if the data are no I/O list, or if the
/// port is busy and cannot be forced.
pub fn command_from_library(port: Term, from: Option<Term>, data: Term) -> bool {
    let Some(p) = find(port) else {
        return false;
    };
    let from = from.unwrap_or(NIL);
    let by = |data: Term, how: How| p.output(from, from, (Reference::None, data), how);
    let force = How {
        force: true,
        whole: true,
        ..How::default()
    };
    let no_suspend = How {
        no_suspend: true,
        whole: true,
        ..How::default()
    };
    match by(data, force) {
        Ok(Outcome::Unsupported) => by(data, no_suspend) == Ok(Outcome::Done),
        r => r == Ok(Outcome::Done),
    }
}

/// Sends a process's message to a port: `Port ! Message`. A message that is no command makes an
/// exit signal for the port's owner. Waits (`Fail::Wait`) while the port is busy, unless
/// `no_suspend`.
pub fn send(cx: &mut Cx, port: Term, msg: Term, no_suspend: bool) -> Result<Sent, Fail> {
    let Some(p) = find(port) else {
        return Ok(Sent::Done);
    };
    cx.bump(COMMAND_REDUCTIONS);
    waits::locks_begin();
    let how = How {
        message: true,
        no_suspend,
        ..How::default()
    };
    let me = cx.self_pid();
    if let Some(&[from, what]) = msg.as_tuple()
        && from.is_local_pid()
    {
        if what == atom::intern("close") {
            let _ = p.exit(from, am::NORMAL, true);
            return Ok(Sent::Done);
        }
        if let Some(&[op, arg]) = what.as_tuple() {
            if op == atom::intern("command") {
                let what = take_reference(cx, &p, arg);
                return Ok(match held(cx, p.output(me, from, what, how))? {
                    Outcome::Busy => Sent::Busy,
                    _ => Sent::Done,
                });
            }
            if op == atom::intern("connect") {
                let _ = p.connect(from, arg, true, || true);
                return Ok(Sent::Done);
            }
        }
    }
    let core = p.turn(Work::Command);
    if !core.base.closing {
        core.base.bad_signal();
    }
    Ok(Sent::Done)
}

/// `port_command`: writes an I/O list. Waits (`Fail::Wait`) if the port is busy, unless `how` says
/// otherwise.
pub fn command(cx: &mut Cx, port: Term, data: Term, how: How) -> Result<Outcome, Fail> {
    let Some(p) = lookup(port) else {
        return Ok(Outcome::Gone);
    };
    cx.bump(COMMAND_REDUCTIONS);
    waits::locks_begin();
    let me = cx.self_pid();
    let what = take_reference(cx, &p, data);
    held(cx, p.output(me, me, what, how))
}

/// The reference that the reply to a command carries: an external term.
enum Reference {
    /// Replies of this port carry none.
    None,
    Is(Box<[u8]>),
    /// The command should have begun with one.
    Missing,
}

/// Splits a command into the reference for its reply and the rest. Since OTP 26, commands to the
/// socket drivers begin with a length in two bytes and a reference of that length.
fn take_reference(cx: &mut Cx, port: &Port, data: Term) -> (Reference, Term) {
    if !port.refers {
        return (Reference::None, data);
    }
    let part = |bytes: &[u8]| {
        let (n, rest) = bytes.split_at_checked(2)?;
        let n = usize::from(u16::from_be_bytes([n[0], n[1]]));
        let (reference, rest) = rest.split_at_checked(n)?;
        Some((Reference::Is(reference.into()), rest.len()))
    };
    // The form in which the library builds it.
    if let Some((head, tail)) = data.as_cons()
        && let Some(bytes) = head.as_binary()
        && let Some((reference, 0)) = part(&bytes)
    {
        return (reference, tail);
    }
    let Ok(all) = iolist::to_vec(data) else {
        return (Reference::None, data);
    };
    match part(&all) {
        Some((reference, left)) => {
            let rest = cx.binary(&all[all.len() - left..]);
            (reference, rest)
        }
        None => (Reference::Missing, data),
    }
}

/// Records whether the process has to wait because a port is busy, and what it has written.
fn held<R>(cx: &mut Cx, r: Result<R, Fail>) -> Result<R, Fail> {
    accounts::wrote(cx);
    purlin_kernel::waits::locked(cx);
    let waits = matches!(r, Err(Fail::Wait));
    cx.process().set_flag(crate::process::BUSY, waits);
    r
}

/// Logs that something other than an I/O list was sent to the port.
pub fn bad_output(cx: &mut Cx, port: Term) {
    if let Some(p) = lookup(port) {
        bad_value(&p.name, cx.self_pid());
    }
}

/// `port_connect`: makes `to` the owner and links it to the port; `link` enters the link at its
/// end.
pub fn connect(port: &Port, caller: Term, to: Term, link: impl FnOnce() -> bool) -> Outcome {
    port.connect(caller, to, false, link)
}

/// `port_close`, and `exit(Port, Reason)`.
pub fn exit(port: &Port, from: Term, reason: Term) -> Outcome {
    port.exit(from, reason, false)
}

/// Handles the end of a linked local process `from` with `reason`. It ends the port unless the
/// reason is `normal` and `from` is not the owner.
pub fn link_broken(port: Term, from: Term, reason: Term) {
    let Some(p) = find(port).filter(|p| !p.is_first()) else {
        return;
    };
    let mut core = p.turn(Work::Close);
    let base = &mut core.base;
    if base.closing || !base.remove_link(from) {
        return;
    }
    base.trace_close(from);
    if reason == am::NORMAL && from != base.connected {
        return;
    }
    p.end(&mut core, reason, false);
}

/// Closes the ports of a budget that has been ended, and of those below it. What they have still to
/// write is lost: a program that does not read would hold them, and the budget, for ever.
pub fn end_of_budget(index: u32) {
    for p in all().into_iter().filter_map(find) {
        let payer = p.charge.lock().as_ref().map(Charge::budget);
        if payer.is_none_or(|b| b == budgets::ROOT || !budgets::is_within(b, index)) {
            continue;
        }
        let mut core = p.turn(Work::Close);
        match core.base.closing {
            true => p.terminate(&mut core),
            false => p.end(&mut core, am::KILL, true),
        }
    }
}

/// Links the local process `pid` at the port's end. Returns false if there is no such port.
pub fn link(port: Term, pid: Term) -> bool {
    find(port).is_some_and(|p| {
        let mut core = p.turn(Work::Link);
        if core.base.closing {
            return false;
        }
        if core.base.add_link(pid) {
            core.base.trace_link(pid, true);
        }
        true
    })
}

/// Removes a link at the port's end.
pub fn unlink(port: Term, pid: Term) {
    if let Some(p) = find(port) {
        let mut core = p.turn(Work::Unlink);
        if core.base.remove_link(pid) && !core.base.closing {
            core.base.trace_link(pid, false);
        }
    }
}

/// Adds a monitor of the local process `pid` at the port's end. `name` is the name by which it
/// asked, or nil. Returns false if there is no such port.
pub fn monitor(port: Term, pid: Term, reference: Term, name: Term) -> bool {
    find(port).is_some_and(|p| {
        let mut core = p.lock();
        if core.base.closing {
            return false;
        }
        core.base.add_watcher(pid, reference, name);
        true
    })
}

/// Removes a monitor at the port's end.
pub fn demonitor(port: Term, reference: Term) {
    if let Some(p) = find(port) {
        p.lock().base.remove_watcher(reference);
    }
}

/// Registers a port under a name. Returns false if there is no such port, if it has a name already,
/// or if the name is taken.
pub fn register(port: Term, name: Term) -> bool {
    find(port).is_some_and(|p| {
        let mut core = p.lock();
        if core.base.closing
            || core.base.registered.is_some()
            || registry::register(name, port).is_err()
        {
            return false;
        }
        core.base.registered = Some(name);
        core.base.trace_name(name, true);
        true
    })
}

/// Removes a port's registered name.
pub fn unregister(port: Term, name: Term) {
    if let Some(p) = find(port) {
        let mut core = p.lock();
        if core.base.registered == Some(name) {
            core.base.registered = None;
            core.base.trace_name(name, false);
        }
        let _ = registry::unregister_of(name, port);
    }
}

pub fn is_open(port: &Port) -> bool {
    !port.lock().base.closing
}

/// `port_control` by `caller`. None if the driver has no such operation or the port is gone.
pub fn control(port: &Port, caller: Term, op: u32, data: &[u8]) -> Option<Reply> {
    port.with_any(Work::Control, |d, b| {
        if b.closing && !d.answers_closing(op) {
            return None;
        }
        b.trace_operation(caller, Work::Control, op, data);
        b.caller = caller;
        let reply = d.control(b, op, data)?;
        b.trace_answer(caller, Work::Control, &reply.bytes);
        Some(reply)
    })
    .flatten()
}

/// `port_call` by `caller`: the reply. None if the driver has no such operation or the port is
/// gone.
pub fn call(port: &Port, caller: Term, op: u32, data: Term) -> Option<OwnedTerm> {
    let bytes = |t: Term| etf::encode(t, etf::encode::Options::default());
    port.with(Work::Call, |d, b| {
        if b.traced_for(flag::RECEIVE) {
            b.trace_operation(caller, Work::Call, op, &bytes(data));
        }
        b.caller = caller;
        let reply = d.call(b, op, data)?;
        if b.traced_for(flag::SEND) {
            b.trace_answer(caller, Work::Call, &bytes(reply.term()));
        }
        Some(reply)
    })
    .flatten()
}

/// `port_set_data`. Returns false if the port is gone or closing.
pub fn set_data(port: &Port, data: Term) -> bool {
    let owned = OwnedTerm::copy_of(data);
    let core = port.lock();
    if core.driver.is_none() || core.base.closing {
        return false;
    }
    let old = port.data().replace(owned);
    drop(core);
    drop(old);
    true
}

/// Runs `f` on the data set with [`set_data`], or on `undefined` if none was set. None if the port
/// is gone or closing. A closed socket is recognised by that while its queue is still written.
pub fn get_data<R>(port: &Port, f: impl FnOnce(Term) -> R) -> Option<R> {
    let core = port.lock();
    core.driver.as_ref().filter(|_| !core.base.closing)?;
    let d = port.data();
    Some(f(d.as_ref().map_or(am::UNDEFINED, |d| d.term())))
}

/// The items that `port_info` shows.
pub struct Info {
    pub registered: Option<Term>,
    pub links: Vec<Term>,
    pub monitored_by: Vec<Term>,
    /// The same, each with the reference as text.
    pub watched: Vec<(Term, String)>,
    pub connected: Term,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub os_pid: Option<i32>,
    /// Bytes.
    pub memory: usize,
    /// Bytes waiting to be written.
    pub queued: usize,
    /// Whether the driver's ports have a lock each, in stock.
    pub own_lock: bool,
    pub parallelism: bool,
    /// Processes that the driver monitors.
    pub watches: Vec<Term>,
    /// Processes that wait for something from the driver, besides the connected one.
    pub awaited_by: Vec<Term>,
}

/// The items that `port_info` shows. None if the port is gone.
pub fn info(port: &Port) -> Option<Info> {
    let data_bytes = port.data().as_ref().map_or(0, |d| d.words() * 8);
    // A closing port still has items to show.
    port.with_any(Work::Info, |d, b| Info {
        registered: b.registered,
        links: b.links().collect(),
        monitored_by: b.watchers().map(|w| w.0).collect(),
        watched: b
            .watchers()
            .map(|(by, reference)| (by, format_term(reference, Style::Display, 100)))
            .collect(),
        connected: b.connected,
        bytes_in: b.bytes_in,
        bytes_out: b.bytes_out,
        os_pid: d.os_pid(),
        memory: b.memory() + data_bytes,
        queued: d.queued() + b.coming(),
        own_lock: d.own_lock(),
        watches: d.watches(),
        awaited_by: d.awaited_by(),
        parallelism: b.parallelism,
    })
}

/// The addresses of a port that is a socket: its own and its peer's.
pub fn addresses(port: &Port) -> (Option<String>, Option<String>) {
    let ends = |fd| {
        let text = |a: Result<crate::os::sockaddr::SockAddr, i32>| a.ok().map(|a| a.text());
        let own = text(crate::os::sock::sock_name(fd));
        (own, text(crate::os::sock::peer_name(fd)))
    };
    let ends = port.with(Work::Info, |d, _| d.socket().map(ends));
    ends.flatten().unwrap_or((None, None))
}

/// As [`info`], but also None if the port is busy with something.
pub fn try_info(port: &Port) -> Option<Info> {
    drop(port.try_lock()?);
    info(port)
}

/// The parts of a port that crash dumps show besides its [`Info`].
pub struct Flags {
    pub binary: bool,
    pub soft_eof: bool,
    pub by_lines: bool,
    pub busy: bool,
    /// Processes that wait until the port is no longer busy.
    pub suspended: Vec<Term>,
    /// The term of `port_set_data`, as text.
    pub data: Option<String>,
}

/// The flags of a port; None if it is gone, or busy with something.
pub fn try_flags(port: &Port) -> Option<Flags> {
    drop(port.try_lock()?);
    let text = |d: &OwnedTerm| format_term(d.term(), Style::Display, LONGEST_TEXT);
    let data = port.data().as_ref().map(text);
    port.with_any(Work::Info, |_, b| Flags {
        binary: b.binary,
        soft_eof: b.soft_eof,
        by_lines: b.lines.is_some(),
        busy: b.busy(),
        suspended: b.suspended().collect(),
        data,
    })
}

/// Writes the queues of all ports when the runtime halts, as far as time allows.
pub(crate) fn flush_all_at_halt(limit: Option<Duration>) {
    let now = clock::elapsed();
    let ports: Vec<Arc<Port>> = all().into_iter().filter_map(find).collect();
    // Writes what can be written at once, on every port, before anything is waited for.
    let left = |p: &&Arc<Port>| p.write_out_at_halt(Some(now));
    let slow: Vec<&Arc<Port>> = ports.iter().filter(left).collect();
    if slow.is_empty() {
        return;
    }
    // As on stock, the other sockets are closed first: the peer that does not read may be this very
    // runtime.
    for p in &ports {
        let mut core = p.lock();
        let is_socket = core.driver.as_ref().is_some_and(|d| d.socket().is_some());
        if is_socket && !core.has_output() {
            p.terminate(&mut core);
        }
    }
    let until = limit.map(clock::after);
    for p in slow {
        p.write_out_at_halt(until);
    }
}

/// Runs `f` while no port reads from or writes to the terminal.
pub fn hold_terminal(f: impl FnOnce()) {
    let ports: Vec<Arc<Port>> = all().into_iter().filter_map(find).collect();
    let held: Vec<Held> = ports
        .iter()
        .map(|p| p.lock())
        .filter(|c| c.driver.as_ref().is_some_and(|d| d.on_terminal()))
        .collect();
    f();
    drop(held);
}
