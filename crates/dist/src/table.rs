//! The nodes that this one knows, and the state of the connection to each.
//!
//! # States
//! Idle; pending, from the first request for a connection until it is up or given up;
//! connected. Each connection has a number. [`Node::connection`] assigns it when the connection is
//! begun, and every event names it, so that no event of an older connection is taken for one of the
//! newer.
//!
//! # Ties
//! A process that has a link, a monitor or the like on a connection is in the set of its ties until
//! the connection ends. Then each such process gets a task that looks through its ties
//! ([`super::signals::lost`]). A process enters the set before the other node hears of the tie,
//! under the lock under which the connection ends. So either it is notified of the end, or it
//! learns at once that there is no connection.
//!
//! # Locks
//! A port's, then [`Node::input`], then [`Node::inner`]. Under the last one no code runs that takes
//! another.

use super::frame::Frame;
use super::full::Full;
use super::input::Input;
use super::port::channel::{self, Channel, More, Packet, Read};
use super::process::ext::{Hashing, RefKey};
use super::process::registry;
use super::report::{self, Level, Text};
use super::send_queue::Output;
use super::share::most_waiting;
use super::signal::token::Token;
use super::{clock, control, flags, ids, lazy_atoms, observers, options, signal, signals};
use purlin_term::frag::OwnedTerm;
use purlin_term::layout::RefWords;
use purlin_term::print::{Style, format_atom};
use purlin_term::sync::{Mutex, MutexGuard, RwLock};
use purlin_term::{Alloc, NIL, Term, am, copy, node};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

lazy_atoms! {
    auto_connect = "auto_connect";
    pub(crate) net_kernel = "net_kernel";
    pub(crate) dist_data = "dist_data";
    connection_closed = "connection_closed";
}

/// The carrier of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Controller {
    Nobody,
    Port(Term),
    Process(Term),
}

impl Controller {
    /// Its port or pid.
    pub fn term(self) -> Option<Term> {
        match self {
            Controller::Nobody => None,
            Controller::Port(t) | Controller::Process(t) => Some(t),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Idle,
    Pending,
    Connected,
}

/// See the module head.
pub struct Node {
    pub name: Term,
    /// The reference in its handles.
    handle: RefKey,
    inner: Mutex<Inner>,
    /// The input state: incomplete messages, and the atoms of the other side.
    pub input: Mutex<Input>,
    /// The scheduler of the processes that the node has woken: see
    /// [`purlin_kernel::sched::in_order`].
    pub home: AtomicUsize,
    /// The mailbox for which the connection is not read.
    pub full: Full,
}

// SAFETY: the terms in it are immediates.
unsafe impl Send for Node {}
// SAFETY: the terms in it are immediates, and all mutable state is behind locks.
unsafe impl Sync for Node {}

pub struct Inner {
    pub state: State,
    /// Number of the connection.
    pub id: u32,
    /// The capabilities that both nodes have.
    pub flags: u64,
    /// The creation of the node at the other end of the last connection.
    pub creation: u32,
    pub controller: Controller,
    /// The process that hands in the input, if a process controls the connection.
    pub input_handler: Term,
    /// `get_size`
    pub get_size: bool,
    /// Number of packets received by a process.
    pub received: u64,
    /// Local processes that have ties on the connection.
    ties: HashSet<u32, Hashing>,
    pub out: Output,
    /// Maximum bytes of output that may wait, and whether there are more, so that the connection is
    /// about to be ended.
    pub most: usize,
    pub too_much: bool,
    /// When the last connection ended, as the node's clock had it.
    ended: Option<i64>,
}

/// A connection that can be sent on.
#[derive(Clone, Copy)]
pub struct Ready {
    pub id: u32,
    pub flags: u64,
    pub pending: bool,
}

impl Ready {
    /// Whether both nodes have that capability.
    pub fn can(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
    /// Whether a token can be sent: a node may support only small numbers as labels.
    pub fn can_take(&self, t: &Token) -> bool {
        let label = t.label.term().as_small();
        self.can(flags::BIG_SEQTRACE_LABELS)
            || self.pending
            || label.is_some_and(|n| (-SMALL_LABEL..SMALL_LABEL).contains(&n))
    }
    /// Whether both nodes have all those capabilities.
    pub fn can_all(&self, flags: u64) -> bool {
        self.flags & flags == flags
    }
    /// Whether atoms go through the cache.
    pub fn cached(&self) -> bool {
        !self.pending && self.can(flags::DIST_HDR_ATOM_CACHE)
    }
}

/// Bound on the size of labels that all nodes support.
const SMALL_LABEL: i64 = 1 << 27;

#[derive(Default)]
struct Table {
    by_name: HashMap<u64, Arc<Node>, Hashing>,
    by_handle: HashMap<RefKey, Arc<Node>, Hashing>,
    /// Number of entries at which unused, unknown ones are removed.
    sweep_at: usize,
}

/// Entries that are never swept: a cluster of ordinary size.
const FEW: usize = 1024;

impl Table {
    /// Removes the entries of nodes that were only named: anybody who sends pids may cause entries
    /// by the replies.
    ///
    /// Entries are obtained only under the lock of the table, which the caller holds exclusively.
    /// So an entry that only the two maps refer to is used by nobody.
    fn sweep(&mut self) {
        let by_handle = &mut self.by_handle;
        self.by_name.retain(|_, n| {
            let stays = Arc::strong_count(n) > IN_TABLE || n.inner().is_known();
            if !stays {
                by_handle.remove(&n.handle);
            }
            stays
        });
        self.sweep_at = FEW.max(2 * self.by_name.len());
    }
}

/// How many references the table has to an entry.
const IN_TABLE: usize = 2;

static TABLE: RwLock<Option<Table>> = RwLock::new(None);

/// The node of that name, if it is known.
pub fn find(name: Term) -> Option<Arc<Node>> {
    let t = TABLE.read();
    t.as_ref()?.by_name.get(&name.raw()).cloned()
}

/// The node of that name, entered if necessary.
pub fn get(name: Term) -> Arc<Node> {
    if let Some(n) = find(name) {
        return n;
    }
    let mut t = TABLE.write();
    let t = t.get_or_insert_default();
    if let Some(n) = t.by_name.get(&name.raw()) {
        return n.clone();
    }
    if t.by_name.len() >= t.sweep_at.max(FEW) {
        t.sweep();
    }
    let handle = RefKey::new(ids::ref_bits());
    let n = Arc::new(Node {
        name,
        handle,
        inner: Mutex::new(Inner {
            state: State::Idle,
            // Differs between runs, so that no handle of another incarnation is taken for one of
            // this.
            id: ids::ref_bits() as u32 & 0x3F_FFFF,
            flags: 0,
            creation: 0,
            controller: Controller::Nobody,
            input_handler: am::UNDEFINED,
            get_size: false,
            received: 0,
            ties: HashSet::default(),
            out: Output::default(),
            most: most_waiting(),
            too_much: false,
            ended: None,
        }),
        input: Mutex::default(),
        home: AtomicUsize::new(0),
        full: Full::new(),
    });
    t.by_name.insert(name.raw(), n.clone());
    t.by_handle.insert(handle, n.clone());
    n
}

/// The node of a handle, and the connection that it names.
pub fn of_handle(t: Term) -> Option<(Arc<Node>, u32)> {
    let &[id, r] = t.as_tuple()? else { return None };
    let id = u32::try_from(id.as_small()?).ok()?;
    let key = RefKey::of(r)?;
    let table = TABLE.read();
    Some((table.as_ref()?.by_handle.get(&key)?.clone(), id))
}

/// All nodes.
pub fn all() -> Vec<Arc<Node>> {
    let t = TABLE.read();
    let all = t.iter().flat_map(|t| t.by_name.values());
    all.cloned().collect()
}

/// See [`set_delay`].
static DELAY_MS: AtomicI64 = AtomicI64::new(-1);

/// Sets for how many milliseconds a node stays known that nothing refers to and that has no
/// connection. None restores the value of `+zdntgc`.
pub fn set_delay(ms: Option<u64>) {
    let ms = ms.map_or(-1, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
    DELAY_MS.store(ms, Ordering::Relaxed);
}

/// The delay before an unused node is forgotten; None means for ever.
fn delay() -> Option<Duration> {
    match u64::try_from(DELAY_MS.load(Ordering::Relaxed)) {
        Ok(ms) => Some(Duration::from_millis(ms)),
        Err(_) => {
            let seconds = options::try_current().map_or(Some(DEFAULT_DELAY_SECONDS), |o| {
                o.flags.dist.node_table_gc_seconds
            });
            seconds.map(|s| Duration::from_secs(s.into()))
        }
    }
}

/// Default of `+zdntgc`.
const DEFAULT_DELAY_SECONDS: u32 = 60;

/// Default of `+zdbbl`, in bytes.
const DEFAULT_BUSY_LIMIT: usize = 1 << 20;

/// Bytes of waiting output from which on senders have to wait.
pub fn busy_limit() -> usize {
    options::try_current().map_or(DEFAULT_BUSY_LIMIT, |o| {
        o.flags.dist.buffer_busy_limit_bytes as usize
    })
}

/// The connection that a port carries, as the port sees it.
struct Over {
    node: Arc<Node>,
    id: u32,
}

impl Channel for Over {
    fn input(&self, packet: &[u8]) -> bool {
        super::input::packet(&self.node, self.id, packet)
    }
    fn begin_packet(&self, packet: &[u8], left: usize) -> bool {
        super::input::begin_packet(&self.node, self.id, packet, left)
    }
    fn read_more(&self, left: usize, read: &mut Read<'_>) -> More {
        super::input::read_more(&self.node, self.id, left, read)
    }
    fn report_held(&self, bytes: usize) -> bool {
        super::input::report_held(&self.node, self.id, bytes)
    }
    fn pause(&self) -> Option<u64> {
        self.node.full.pause()
    }
    fn next(&self) -> Option<Packet> {
        self.node.next(self.id)
    }
    fn ended(&self, reason: Term) {
        self.node.down(self.id, reason);
    }
}

impl Node {
    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
    /// The handle of a connection: `{Id, Reference}`.
    pub fn handle<A: Alloc + ?Sized>(&self, id: u32, a: &mut A) -> Term {
        let r = copy::copy(RefWords::new(self.handle.numbers()).term(), a);
        a.tuple(&[Term::small(id.into()), r])
    }
    /// The number of the connection, which is begun if there is none.
    pub fn connection(&self) -> u32 {
        let mut n = self.inner();
        n.begin();
        n.id
    }
    /// A connection that can be sent on. If there is none, begins one if `connect` and this node
    /// has a name; otherwise None.
    pub fn ready(&self, connect: bool) -> Option<Ready> {
        let mut n = self.inner();
        let mut begun = false;
        if n.state == State::Idle {
            if !connect || !node::is_alive() {
                return None;
            }
            n.begin();
            begun = true;
        }
        let r = Ready {
            id: n.id,
            flags: n.flags,
            pending: n.state == State::Pending,
        };
        drop(n);
        if begun {
            let asked = registry::whereis(net_kernel()).is_some_and(|k| {
                signal::send_with(k, |a| {
                    let handle = self.handle(r.id, a);
                    a.tuple(&[auto_connect(), self.name, handle])
                })
            });
            if !asked {
                self.down(r.id, am::NOCONNECTION);
                return None;
            }
        }
        Some(r)
    }
    /// Makes the process wait if too much output is queued on the connection. Returns whether it
    /// waits.
    pub fn is_busy(&self, waits: Option<Term>) -> bool {
        let mut n = self.inner();
        let limit = busy_limit();
        n.state != State::Idle
            && match waits {
                Some(pid) => n.out.waits(pid, limit),
                None => n.out.bytes() >= limit,
            }
    }
    /// Sends a frame on that connection, if it still exists.
    pub fn send(&self, id: u32, f: Frame) -> bool {
        if f.is_too_large() {
            // The reason of a process that has ended, which cannot be sent to the other node.
            self.kill(id);
            return false;
        }
        let mut n = self.inner();
        if n.state == State::Idle || n.id != id || n.too_much {
            return false;
        }
        let most = n.most;
        if !n.out.push(f, most) {
            n.too_much = true;
            let pending = n.state == State::Pending;
            drop(n);
            self.overflow(id, pending);
            return false;
        }
        let tell = n.controller_to_notify();
        drop(n);
        self.pull(tell);
        true
    }
    /// Ends a connection whose output takes too much memory. Replies, ends of processes and
    /// `async_dist` make nobody wait, and the other node may stop reading.
    #[cold]
    fn overflow(&self, id: u32, pending: bool) {
        let text = format!(
            "What waits to be sent to {} takes too much memory",
            format_atom(self.name, Style::Display)
        );
        report::send(Level::Error, NIL, NIL, Text::Plain(&text));
        let controller = self.inner().controller;
        match controller {
            // The thread that hands in the port's input has its lock and ends it.
            Controller::Port(p) if IN_PORT.get() == p.raw() => {}
            _ if pending => self.down(id, am::NOCONNECTION),
            _ => self.kill(id),
        }
    }
    /// Makes the controller take the output.
    fn pull(&self, controller: Controller) {
        match controller {
            Controller::Nobody => {}
            Controller::Port(p) if IN_PORT.get() == p.raw() => {}
            Controller::Port(p) if held(p) => {}
            Controller::Port(p) => channel::pull(p),
            Controller::Process(p) => {
                signal::send(p, dist_data());
            }
        }
    }
    /// The next packet of that connection.
    pub fn next(&self, id: u32) -> Option<Packet> {
        let mut n = self.inner();
        if n.state != State::Connected || n.id != id {
            return None;
        }
        let with = n.flags;
        n.out.next(with, busy_limit())
    }
    /// Records that a process has ties on that connection. Returns false if it is gone.
    pub fn tie(&self, id: u32, pid: Term) -> bool {
        let mut n = self.inner();
        let there = n.state != State::Idle && n.id == id;
        if there {
            n.ties.insert(pid.pid_data());
        }
        there
    }
    /// Removes the ties of a process that has ended from that connection.
    pub fn untie(&self, id: u32, pid: Term) {
        let mut n = self.inner();
        if n.id == id {
            n.ties.remove(&pid.pid_data());
        }
    }
    /// Number of processes with ties on the connection.
    pub fn tied(&self) -> usize {
        self.inner().ties.len()
    }
    /// Marks the connection as up, over a port or a process. `tell` informs those who must know
    /// first. None if it is not pending.
    pub fn connected(
        self: &Arc<Node>,
        controller: Controller,
        flags: u64,
        creation: u32,
        tell: impl FnOnce(),
    ) -> Option<u32> {
        let enter = |n: &mut Inner| {
            let pending = n.state == State::Pending && n.controller == Controller::Nobody;
            if pending {
                n.state = State::Connected;
                n.controller = controller;
                n.flags = flags;
                n.creation = creation;
                n.out
                    .keep(busy_limit(), |f| control::is_known(f.code(), flags));
                n.input_handler = controller.term().unwrap_or(am::UNDEFINED);
            }
            pending
        };
        let id = self.inner().id;
        let up = match controller {
            Controller::Port(port) => {
                let over = Over {
                    node: self.clone(),
                    id,
                };
                channel::connect(port, Arc::new(over), || {
                    let mut n = self.inner();
                    n.id == id && enter(&mut n)
                })
            }
            _ => {
                let mut n = self.inner();
                n.id == id && enter(&mut n)
            }
        };
        if !up {
            return None;
        }
        tell();
        observers::tell(observers::Event {
            up: true,
            name: self.name,
            connection: Some(id),
            visible: flags & flags::PUBLISHED != 0,
            reason: am::UNDEFINED,
        });
        let mut n = self.inner();
        // Processes that relied on an assumed capability learn that it is missing.
        let ties: Vec<u32> = match flags & flags::HOPED_FOR {
            flags::HOPED_FOR => Vec::new(),
            _ => n.ties.iter().copied().collect(),
        };
        let tell = n.controller_to_notify();
        drop(n);
        for data in ties {
            let node = self.clone();
            let task = move |cx: Option<&mut super::cx::Cx>| {
                if let Some(cx) = cx {
                    signals::lacks(cx, &node, id, flags);
                }
            };
            signal::send::run_in(Term::pid(data), Box::new(task));
        }
        self.pull(tell);
        Some(id)
    }
    /// Gives up a pending connection. Returns false if that one is not pending.
    pub fn abort(&self, id: u32) -> bool {
        let pending = {
            let n = self.inner();
            n.state == State::Pending && n.id == id
        };
        if pending {
            self.down(id, am::NOCONNECTION);
        }
        pending
    }
    /// Handles the end of the connection.
    pub fn down(&self, id: u32, reason: Term) {
        let mut n = self.inner();
        if n.state == State::Idle || n.id != id {
            return;
        }
        if purlin_kernel::os::world::is_on() {
            purlin_kernel::explore::overtaken::deliver_all();
        }
        let was_up = n.state == State::Connected;
        let visible = n.flags & flags::PUBLISHED != 0;
        n.state = State::Idle;
        n.flags = 0;
        n.controller = Controller::Nobody;
        n.input_handler = am::UNDEFINED;
        n.get_size = false;
        n.received = 0;
        n.too_much = false;
        n.ended = Some(clock::elapsed());
        let mut out = std::mem::take(&mut n.out);
        let ties = std::mem::take(&mut n.ties);
        drop(n);
        out.wake_all();
        drop(out);
        if let Some(mut input) = self.input.try_lock() {
            *input = Input::default();
        }
        for data in ties {
            let name = self.name;
            let task = move |cx: Option<&mut super::cx::Cx>| {
                if let Some(cx) = cx {
                    signals::lost(cx, name, id);
                }
            };
            signal::send::run_in(Term::pid(data), Box::new(task));
        }
        if was_up {
            let told = match reason {
                am::NORMAL => OwnedTerm::copy_of(connection_closed()),
                r => OwnedTerm::copy_of(r),
            };
            observers::tell(observers::Event {
                up: false,
                name: self.name,
                connection: Some(id),
                visible,
                reason: told.term(),
            });
        }
    }
    /// Kills the connection, because its input is malformed.
    pub fn kill(&self, id: u32) {
        let controller = {
            let n = self.inner();
            match n.state == State::Connected && n.id == id {
                true => n.controller,
                false => Controller::Nobody,
            }
        };
        match controller {
            Controller::Nobody => {}
            Controller::Port(p) => channel::kill(p),
            Controller::Process(p) => signal::send::exit_signal(p, p, am::KILL),
        }
    }
}

impl Inner {
    /// Whether the node is known even if no term names it: there is a connection, or was one
    /// recently.
    pub fn is_known(&self) -> bool {
        self.state != State::Idle
            || (self.ended).is_some_and(|at| {
                delay().is_none_or(|d| clock::elapsed() - at < d.as_nanos() as i64)
            })
    }
    fn begin(&mut self) {
        if self.state == State::Idle {
            self.state = State::Pending;
            // A small integer, never 0.
            self.id = (self.id + 1) & 0x3FF_FFFF;
            self.id = self.id.max(1);
            self.flags = flags::HOPED_FOR;
        }
    }
    /// The controller to notify that there is output.
    fn controller_to_notify(&mut self) -> Controller {
        if self.state != State::Connected || self.out.is_empty() {
            return Controller::Nobody;
        }
        match self.controller {
            Controller::Process(_) if !std::mem::take(&mut self.out.notify) => Controller::Nobody,
            c => c,
        }
    }
}

/// Runs `f`, and sends the output that this thread causes meanwhile together afterwards.
pub fn together(f: impl FnOnce()) {
    let before = HELD.replace(Some(Vec::new()));
    f();
    for p in HELD.replace(before).unwrap_or_default() {
        channel::pull(p);
    }
}

/// Whether a port takes its output later.
fn held(port: Term) -> bool {
    HELD.with_borrow_mut(|h| match h {
        Some(ports) => {
            if !ports.contains(&port) {
                ports.push(port);
            }
            true
        }
        None => false,
    })
}

thread_local! {
    /// Ports that have output to take when [`together`] ends.
    static HELD: std::cell::RefCell<Option<Vec<Term>>> = const { std::cell::RefCell::new(None) };
    /// The port that is handing in input, with its lock held. It takes its output afterwards.
    pub static IN_PORT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_term::atom;

    #[test]
    fn nodes_that_were_only_named_are_given_up() {
        let held = get(atom::intern("held@tests"));
        for i in 0..5 * FEW {
            get(atom::intern(&format!("named_{i}@tests")));
        }
        assert!(all().len() <= 2 * FEW + 100);
        assert!(Arc::ptr_eq(&held, &get(held.name)));
        let mut f = purlin_term::frag::Fragment::new();
        let handle = held.handle(5, &mut f);
        assert!(of_handle(handle).is_some_and(|(n, id)| Arc::ptr_eq(&n, &held) && id == 5));
    }
}
