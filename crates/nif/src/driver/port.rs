//! A port with a C driver.
//!
//! # Locks
//! C code is called with the port's lock held, as for all drivers, and in its driver's turn unless
//! the driver locks ports one by one ([`Code::turn`]). Its requests may come from any thread, or
//! concern another port than the one it was called for. They use [`State`], which has a lock of its
//! own; nothing is called under that. A request that needs the port itself is run at once by the
//! thread that is in the port, or by the caller if the port's lock is free, or later
//! ([`CPort::ask`]). Nobody waits for a port inside another.
//!
//! # Orderings
//! * `data` is stored with release and loaded with acquire before each call: the driver finds what
//!   it wrote behind the pointer.
//! * `number` and `connected` are words that nothing is read through. They are stored by the thread
//!   in the port; other threads may read the previous owner.
//! * `stopped` is stored with release before what the driver has asked for is ended under the
//!   locks. A request that loads it with acquire and finds it unset may come too late; those locks
//!   decide then.
//! * `flushing` is stored with release before the driver's callback; messages made within it find
//!   it set.

use super::abi::{Data, Event, Handle, IoVec, KEEP_BUFFER, USE};
use super::block::{Part, counted};
use super::code::Code;
use super::io_queue::Queue;
use super::shared::Shared;
use crate::abi::Monitor;
use purlin_io::gather::Gather;
use purlin_io::port::driver::Reply;
use purlin_io::port::{Base, Driver, Port, settings};
use purlin_kernel::process::ext::Hashing;
use purlin_kernel::signal::{Kind, Signal, send};
use purlin_kernel::timer::TimerId;
use purlin_kernel::{events, later, poll, process, timer};
use purlin_native::exports::CodeHooks;
use purlin_native::ids;
use purlin_term::bin::RcBin;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::layout::RefWords;
use purlin_term::sync::{Mutex, MutexGuard, RwLock};
use purlin_term::{NIL, Term, errno, etf};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Size in bytes of the runtime's buffer for the result of `control` or `call`.
const ANSWER_BYTES: usize = 64;
/// The queue limits that are returned by default.
const MSGQ_LIMITS: (usize, usize) = (4096, 8192);

/// A port from its driver's point of view.
pub struct CPort {
    number: AtomicU32,
    pub code: Arc<Code>,
    port: OnceLock<Weak<Port>>,
    data: AtomicPtr<c_void>,
    /// The owner, as of the last call of the driver.
    connected: AtomicU64,
    /// Whether the driver was stopped.
    stopped: AtomicBool,
    /// Whether it was closed and is writing its queue. Its owner gets no more messages.
    pub flushing: AtomicBool,
    state: Mutex<State>,
}

/// The part of a port that its driver sets.
pub struct State {
    pub queue: Queue,
    pub control_flags: c_int,
    /// The flags that `get_port_flags` returns.
    pub port_flags: c_int,
    pub os_pid: Option<i32>,
    pub msgq_limits: (usize, usize),
    /// The timer, and the number of earlier ones.
    timer: Option<TimerId>,
    timers: u32,
    selected: Selections,
    monitors: HashSet<[u32; 3], Hashing>,
    /// The lock made by `driver_pdl_create`.
    pub lock: Option<Shared>,
}

/// The descriptors that the driver has selected.
#[derive(Default)]
struct Selections {
    by_fd: HashMap<c_int, Selected>,
    fd_of: HashMap<poll::Id, c_int, Hashing>,
}

impl Selections {
    fn get_mut(&mut self, fd: c_int) -> Option<&mut Selected> {
        self.by_fd.get_mut(&fd)
    }
    fn insert(&mut self, fd: c_int, id: poll::Id) {
        let new = Selected {
            id,
            read: false,
            write: false,
            used: false,
        };
        self.by_fd.insert(fd, new);
        self.fd_of.insert(id, fd);
    }
    fn remove(&mut self, fd: c_int) -> Option<Selected> {
        let e = self.by_fd.remove(&fd)?;
        self.fd_of.remove(&e.id);
        Some(e)
    }
    /// Returns the descriptor with that registration.
    fn registered(&self, id: poll::Id) -> Option<(c_int, &Selected)> {
        let fd = *self.fd_of.get(&id)?;
        Some((fd, self.by_fd.get(&fd)?))
    }
}

/// A descriptor that the driver has selected.
struct Selected {
    id: poll::Id,
    read: bool,
    write: bool,
    used: bool,
}

static PORTS: RwLock<Option<HashMap<u32, Arc<CPort>>>> = RwLock::new(None);

/// The port that has selected each descriptor.
static OWNERS: Mutex<Option<HashMap<c_int, u32>>> = Mutex::new(None);

/// Monitors of drivers by the numbers of their references: the port, and the process that it
/// watches.
static WATCHES: Mutex<Option<HashMap<[u32; 3], (u32, Term)>>> = Mutex::new(None);

thread_local! {
    /// The ports that this thread calls C code for, the innermost one last.
    static HERE: RefCell<Vec<(u32, *mut Base)>> = const { RefCell::new(Vec::new()) };
}

/// Marks this thread as inside C code of a port.
struct Inside;

impl Inside {
    fn of(number: u32, base: *mut Base) -> Inside {
        HERE.with_borrow_mut(|h| h.push((number, base)));
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        HERE.with_borrow_mut(|h| h.pop());
    }
}

/// Returns the port of a handle, if it is open or closing.
pub fn of_handle(h: Handle) -> Option<Arc<CPort>> {
    let n = u32::try_from(h).ok()?;
    let all = PORTS.read();
    all.as_ref()?.get(&n).cloned()
}

/// Returns all ports of a driver.
pub fn all_of(code: &Arc<Code>) -> Vec<Arc<CPort>> {
    let all = PORTS.read();
    let mine = all.iter().flat_map(HashMap::values);
    mine.filter(|p| Arc::ptr_eq(&p.code, code))
        .cloned()
        .collect()
}

/// Starts a driver for a port that is being opened.
pub fn start(
    code: Arc<Code>,
    base: &mut Base,
    o: &settings::Options,
    command: &[u8],
) -> Result<Box<dyn Driver>, settings::Error> {
    let p = CPort::new(code, std::ptr::null_mut());
    p.enter(base);
    // Input that it delivers before it has started is a list.
    let (binary, lines) = (std::mem::take(&mut base.binary), base.lines.take());
    // The command contains no zeros.
    let line = CString::new(command).unwrap_or_default();
    let n = p.number();
    base.caller = base.connected;
    let (data, error) = match p.code.entry.start {
        // SAFETY: the driver's function, with the arguments that the interface specifies.
        Some(f) => p.inside(base, |_, _| unsafe {
            *errno::place() = 0;
            let d = f(n as Handle, line.as_ptr() as *mut c_char);
            (d, *errno::place())
        }),
        None => (std::ptr::null_mut(), 0),
    };
    (base.binary, base.lines) = (binary, lines);
    p.state().port_flags = c_int::from(o.binary) * super::abi::BINARY
        + c_int::from(o.line_bytes > 0) * super::abi::LINE;
    let error = match data as isize {
        -1 => Some(settings::Error::General),
        -2 => Some(settings::Error::Errno(error)),
        -3 => Some(settings::Error::BadArg),
        _ => None,
    };
    if let Some(e) = error {
        p.leave();
        return Err(e);
    }
    p.data.store(data, Ordering::Release);
    Ok(Box::new(CDriver(p)))
}

impl CPort {
    fn new(code: Arc<Code>, data: Data) -> Arc<CPort> {
        let limits = match code.entry.flags & super::abi::NO_BUSY_MSGQ != 0 {
            true => (usize::MAX, usize::MAX),
            false => MSGQ_LIMITS,
        };
        Arc::new(CPort {
            number: AtomicU32::new(0),
            code,
            port: OnceLock::new(),
            data: AtomicPtr::new(data),
            connected: AtomicU64::new(NIL.raw()),
            stopped: AtomicBool::new(false),
            flushing: AtomicBool::new(false),
            state: Mutex::new(State {
                queue: Queue::default(),
                control_flags: 0,
                port_flags: 0,
                os_pid: None,
                msgq_limits: limits,
                timer: None,
                timers: 0,
                selected: Selections::default(),
                monitors: HashSet::default(),
                lock: None,
            }),
        })
    }
    pub fn number(&self) -> u32 {
        self.number.load(Ordering::Acquire)
    }
    pub fn id(&self) -> Term {
        Term::port(self.number())
    }
    /// Returns the owner, as of the last call of the driver.
    pub fn owner(&self) -> Term {
        // SAFETY: the word of a pid, or nil.
        unsafe { Term::from_raw(self.connected.load(Ordering::Acquire)) }
    }
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
    pub fn set_data(&self, data: Data) {
        self.data.store(data, Ordering::Release);
    }
    fn enter(self: &Arc<CPort>, base: &Base) {
        let n = base.id.pid_data();
        self.number.store(n, Ordering::Release);
        self.connected
            .store(base.connected.raw(), Ordering::Release);
        let _ = self.port.set(base.port());
        let mut all = PORTS.write();
        all.get_or_insert_default().insert(n, self.clone());
    }
    /// Called when the driver has stopped or has failed to start: ends everything that it has asked
    /// for.
    fn leave(&self) {
        self.stopped.store(true, Ordering::Release);
        let n = self.number();
        let mut s = self.state();
        let selected = std::mem::take(&mut s.selected);
        let monitors = std::mem::take(&mut s.monitors);
        let queue = std::mem::take(&mut s.queue);
        let (timer, lock) = (s.timer.take(), s.lock.take());
        drop(s);
        drop(queue);
        for (fd, d) in selected.by_fd {
            poll::forget(d.id);
            disown(fd, n);
        }
        timer.into_iter().for_each(|t| {
            timer::cancel(t);
        });
        for num in monitors {
            stop_watching(num);
        }
        drop(lock);
        let mut all = PORTS.write();
        let gone = all.as_mut().and_then(|a| a.remove(&n));
        drop(all);
        drop(gone);
        self.code.closed();
    }
    /// Calls C code for the port, whose lock is held.
    fn inside<R>(&self, base: &mut Base, f: impl FnOnce(&CPort, Data) -> R) -> R {
        self.connected
            .store(base.connected.raw(), Ordering::Release);
        let _turn = self.code.turn();
        let _here = Inside::of(self.number(), base);
        f(self, self.data.load(Ordering::Acquire))
    }
    /// Runs `f` on the port's base if this thread is inside C code of this port.
    pub fn here<R>(&self, f: impl FnOnce(&mut Base) -> R) -> Option<R> {
        let n = self.number();
        let base = HERE.with_borrow(|h| h.iter().rev().find(|e| e.0 == n).map(|e| e.1))?;
        // SAFETY: the function that entered it is further down on this thread's stack. It holds the
        // port's lock and does not touch the base until C code returns. `f` calls no C code.
        Some(f(unsafe { &mut *base }))
    }
    /// Runs `f` on the port's base, at once if possible, else later.
    pub fn ask(&self, f: impl FnOnce(&mut Base) + Send + 'static) {
        if self.stopped.load(Ordering::Acquire) {
            return;
        }
        let mut f = Some(f);
        let done = self.here(|b| f.take().map(|f| f(b))).is_some();
        let Some(port) = self.port.get().and_then(Weak::upgrade) else {
            return;
        };
        if done || port.try_on_behalf(&mut |b| f.take().into_iter().for_each(|f| f(b))) {
            return;
        }
        later::add(Box::new(move || {
            port.on_behalf(|b| f.take().into_iter().for_each(|f| f(b)));
        }));
    }
    /// Calls a function of the driver when the port is free. Returns false if the port was gone
    /// before. Must not be called from C code of a port.
    pub fn call_when_free(
        self: &Arc<CPort>,
        f: impl FnOnce(&CPort, Data) + Send + 'static,
    ) -> bool {
        let Some(port) = self.port.get().and_then(Weak::upgrade) else {
            return false;
        };
        port.on_behalf(|b| self.inside(b, f))
    }

    /// Calls `timeout` of the driver in `ms` milliseconds, replacing an earlier timer.
    pub fn set_timer(self: &Arc<CPort>, ms: u64) {
        let mut s = self.state();
        s.timers = s.timers.wrapping_add(1);
        let (n, me) = (s.timers, Arc::downgrade(self));
        let new = timer::after(ms, move || {
            if let Some(p) = me.upgrade() {
                p.fired(n);
            }
        });
        let old = s.timer.replace(new);
        drop(s);
        old.into_iter().for_each(|t| {
            timer::cancel(t);
        });
    }
    pub fn cancel_timer(&self) {
        let mut s = self.state();
        s.timers = s.timers.wrapping_add(1);
        let old = s.timer.take();
        drop(s);
        old.into_iter().for_each(|t| {
            timer::cancel(t);
        });
    }
    /// Returns the remaining milliseconds of the timer.
    pub fn timer_left(&self) -> u64 {
        self.state().timer.and_then(timer::left).unwrap_or(0)
    }
    /// Called when timer number `n`, or one that was replaced too late, has fired.
    fn fired(self: &Arc<CPort>, n: u32) {
        let Some(port) = self.port.get().and_then(Weak::upgrade) else {
            return;
        };
        port.on_behalf(|b| {
            let mut s = self.state();
            if s.timers != n {
                return;
            }
            s.timer = None;
            drop(s);
            b.trace_own_timeout();
            if let Some(f) = self.code.entry.timeout {
                let id = b.id;
                events::port_runs(id, "timeout", || {
                    // SAFETY: the driver's function.
                    self.inside(b, |_, d| unsafe { f(d) });
                });
            }
        });
    }

    /// Selects a descriptor for events, or ends its selection. Returns false if that is impossible.
    pub fn select(self: &Arc<CPort>, event: Event, mode: c_int, on: bool) -> bool {
        let Ok(fd) = c_int::try_from(event as isize) else {
            return false;
        };
        if fd < 0 || i64::from(fd) >= purlin_io::port::max_files() {
            return false;
        }
        let (read, write) = (mode & super::abi::READ != 0, mode & super::abi::WRITE != 0);
        let uses = mode & USE != 0;
        if on && self.stopped.load(Ordering::Acquire) {
            return false;
        }
        // Without the callback only the named events end, and `USE` ends with the last of them.
        let whole = uses && mode & super::abi::NO_CALLBACK == 0;
        if on {
            steal(fd, self.number());
        } else if whole {
            // The driver may close it now, whichever of its ports has used it: the number may be
            // reused.
            take_away(fd, self.number());
        }
        let mut s = self.state();
        if on {
            if s.selected.get_mut(fd).is_none() {
                let Some(port) = self.port.get().and_then(Weak::upgrade) else {
                    return false;
                };
                let Ok(id) = poll::register(fd, port) else {
                    drop(s);
                    disown(fd, self.number());
                    return false;
                };
                s.selected.insert(fd, id);
            }
            if let Some(e) = s.selected.get_mut(fd) {
                e.read |= read;
                e.write |= write;
                e.used |= uses;
                poll::want(e.id, e.read, e.write);
            }
            return true;
        }
        if let Some(e) = s.selected.get_mut(fd) {
            e.read &= !(read || whole);
            e.write &= !(write || whole);
            e.used &= !uses || e.read || e.write;
            match e.read || e.write || e.used {
                true => poll::want(e.id, e.read, e.write),
                false => {
                    poll::forget(e.id);
                    s.selected.remove(fd);
                    disown(fd, self.number());
                }
            }
        }
        drop(s);
        if whole {
            self.stop_select(event);
        }
        true
    }
    /// Reports to the driver that a descriptor is no longer in use.
    fn stop_select(&self, event: Event) {
        if let Some(f) = self.code.entry.stop_select {
            // SAFETY: the driver's function.
            unsafe { f(event, std::ptr::null_mut()) };
        }
    }
    /// Drops a descriptor that another port has taken.
    fn lose(&self, fd: c_int) {
        let lost = self.state().selected.remove(fd);
        if let Some(e) = lost {
            poll::forget(e.id);
        }
    }

    /// Monitors a process for the driver. None if the process does not exist.
    pub fn watch(&self, pid: Term) -> Option<[u32; 3]> {
        if !pid.is_local_pid() {
            return None;
        }
        let num = ids::ref_numbers();
        self.state().monitors.insert(num);
        let mut all = WATCHES.lock();
        all.get_or_insert_default()
            .insert(num, (self.number(), pid));
        drop(all);
        let r = RefWords::new(num);
        // SAFETY: a new signal.
        let alive = process::table().is_alive(pid)
            && unsafe {
                send::push_or_free(pid, Signal::tuple_of(Kind::Monitor, &[r.term(), NIL, NIL]))
            };
        if alive {
            return Some(num);
        }
        self.forget(num);
        None
    }
    /// Forgets the monitor with that reference, and returns the watched process.
    fn forget(&self, num: [u32; 3]) -> Option<Term> {
        let was = self.state().monitors.remove(&num);
        was.then(|| unwatch(num)).flatten()
    }
    /// Ends a monitor. Returns false if there is none with that reference.
    pub fn demonitor(&self, num: [u32; 3]) -> bool {
        let Some(pid) = self.forget(num) else {
            return false;
        };
        let r = RefWords::new(num);
        // SAFETY: a new signal.
        unsafe { send::push_or_free(pid, Signal::tuple_of(Kind::Demonitor, &[r.term(), NIL])) };
        true
    }
    /// Returns the process that it watches by that reference.
    pub fn watched(&self, num: [u32; 3]) -> Option<Term> {
        let all = WATCHES.lock();
        let (by, pid) = *all.as_ref()?.get(&num)?;
        (by == self.number()).then_some(pid)
    }
    /// Opens another port with the same driver, owned by `owner`. None if that process does not
    /// exist, or there are too many ports.
    pub fn create(&self, base: &Base, name: &str, owner: Term, data: Data) -> Option<Handle> {
        let p = CPort::new(self.code.clone(), data);
        self.code.opened();
        let entered = p.clone();
        let made = base.sibling_with(name, owner, Box::new(CDriver(p.clone())), move |b| {
            b.binary = false;
            entered.enter(b);
        });
        match made {
            Some(_) => Some(p.number() as Handle),
            None => {
                self.code.closed();
                None
            }
        }
    }
}

/// Removes the monitor with that reference, and returns the watched process.
fn unwatch(num: [u32; 3]) -> Option<Term> {
    let mut all = WATCHES.lock();
    all.as_mut()?.remove(&num).map(|w| w.1)
}

fn stop_watching(num: [u32; 3]) {
    if let Some(pid) = unwatch(num) {
        let r = RefWords::new(num);
        // SAFETY: a new signal.
        unsafe { send::push_or_free(pid, Signal::tuple_of(Kind::Demonitor, &[r.term(), NIL])) };
    }
}

/// Handles the end of a process that a driver may watch by that reference.
pub fn watched_down(num: [u32; 3]) {
    let all = WATCHES.lock();
    let by = all.as_ref().and_then(|a| a.get(&num)).map(|w| w.0);
    drop(all);
    let Some(p) = by.and_then(|n| of_handle(n as Handle)) else {
        return;
    };
    later::add(Box::new(move || {
        if p.watched(num).is_none() {
            return;
        }
        let Some(f) = p.code.entry.process_exit else {
            return;
        };
        p.call_when_free(move |p, d| {
            let mut m = Monitor { num, rest: [0; 5] };
            // SAFETY: the driver's function.
            unsafe { f(d, &mut m) };
            p.forget(num);
        });
    }));
}

/// Returns the port whose driver monitors a process under that reference.
pub fn watched_by(num: [u32; 3]) -> Option<Term> {
    let all = WATCHES.lock();
    all.as_ref()?.get(&num).map(|w| Term::port(w.0))
}

/// Assigns a descriptor to a port.
fn steal(fd: c_int, number: u32) {
    let mut all = OWNERS.lock();
    let before = all.get_or_insert_default().insert(fd, number);
    drop(all);
    if let Some(p) = before
        .filter(|&n| n != number)
        .and_then(|n| of_handle(n as Handle))
    {
        p.lose(fd);
    }
}

/// Takes a descriptor from every port but that one.
fn take_away(fd: c_int, number: u32) {
    let mut all = OWNERS.lock();
    let Some(owners) = all.as_mut() else { return };
    let before = owners.get(&fd).copied().filter(|&n| n != number);
    if before.is_some() {
        owners.remove(&fd);
    }
    drop(all);
    if let Some(p) = before.and_then(|n| of_handle(n as Handle)) {
        p.lose(fd);
    }
}

/// Ends a port's ownership of a descriptor.
fn disown(fd: c_int, number: u32) {
    let mut all = OWNERS.lock();
    if let Some(a) = all.as_mut()
        && a.get(&fd) == Some(&number)
    {
        a.remove(&fd);
    }
}

/// A C driver, in the form of a driver written in Rust.
struct CDriver(Arc<CPort>);

impl CDriver {
    /// Returns the descriptor and its selected events, if it is still registered.
    fn waiting(&self, id: poll::Id) -> Option<(c_int, bool, bool)> {
        let s = self.0.state();
        let (fd, e) = s.selected.registered(id)?;
        Some((fd, e.read, e.write))
    }
}

impl Driver for CDriver {
    fn output(&mut self, base: &mut Base, data: &mut Gather) {
        let e = self.0.code.entry;
        if let Some(f) = e.outputv {
            let mut kept = purlin_term::iolist::IoVec::default();
            data.keep(&mut kept);
            let parts: Vec<Part> = kept
                .parts
                .drain(..)
                .map(|s| {
                    let (bin, at, n) = s.into_block();
                    // SAFETY: its count is passed on.
                    unsafe { Part::taken(bin, at, n) }
                })
                .collect();
            // The first place is for a head that the driver may add.
            let mut iov = vec![libc::iovec {
                iov_base: std::ptr::null_mut(),
                iov_len: 0,
            }];
            let mut blocks = vec![std::ptr::null_mut()];
            iov.extend(parts.iter().map(Part::vector));
            blocks.extend(parts.iter().map(Part::block));
            let mut v = IoVec {
                vsize: iov.len() as c_int,
                size: parts.iter().map(Part::len).sum(),
                iov: iov.as_mut_ptr(),
                blocks: blocks.as_mut_ptr(),
            };
            // SAFETY: the driver's function; the vector lives for the call.
            self.0.inside(base, |_, d| unsafe { f(d, &mut v) });
        } else if let Some(f) = e.output {
            let mut bytes = data.to_vec();
            let n = bytes.len();
            // SAFETY: the driver's function; the bytes live for the call.
            self.0
                .inside(base, |_, d| unsafe { f(d, bytes.as_mut_ptr().cast(), n) });
        } else {
            missing(base, &self.0, "output");
        }
    }
    fn ready(&mut self, base: &mut Base, id: poll::Id, readable: bool, writable: bool) {
        let e = self.0.code.entry;
        // A descriptor that was selected again since the report waits for the next report.
        let again = poll::wants(id);
        for (is, write) in [(readable, false), (writable, true)] {
            let Some((fd, r, w)) = self.waiting(id) else {
                return;
            };
            if !is || !(if write { w } else { r }) || base.is_ending() {
                continue;
            }
            if if write { again.1 } else { again.0 } {
                continue;
            }
            let (f, name) = match write {
                false => (e.ready_input, "ready_input"),
                true => (e.ready_output, "ready_output"),
            };
            match f {
                Some(f) => {
                    let (id, op) = (base.id, if write { "output" } else { "input" });
                    events::port_runs(id, op, || {
                        // SAFETY: the driver's function.
                        self.0
                            .inside(base, |_, d| unsafe { f(d, fd as isize as Event) });
                    });
                }
                None => {
                    missing(base, &self.0, name);
                    let mode = if write {
                        super::abi::WRITE
                    } else {
                        super::abi::READ
                    };
                    self.0.select(fd as isize as Event, mode, false);
                }
            }
        }
        if let Some((_, r, w)) = self.waiting(id) {
            poll::want(id, r, w);
        }
    }
    fn control(&mut self, base: &mut Base, op: u32, data: &[u8]) -> Option<Reply> {
        let f = self.0.code.entry.control?;
        let mut data = data.to_vec();
        let mut room = [0u8; ANSWER_BYTES];
        let own = room.as_mut_ptr() as *mut c_char;
        let mut to = own;
        // SAFETY: the driver's function; the bytes live for the call.
        let n = self.0.inside(base, |_, d| unsafe {
            let (p, len) = (data.as_mut_ptr() as *mut c_char, data.len());
            f(d, op, p, len, &mut to, ANSWER_BYTES)
        });
        let n = usize::try_from(n).ok()?;
        let binary = self.0.state().control_flags & super::abi::BINARY != 0;
        // SAFETY: by the interface the result is nothing, the given buffer, a block that is given
        // up, or memory to free.
        unsafe {
            if to.is_null() {
                return Some(Reply {
                    bytes: Vec::new(),
                    binary: false,
                });
            }
            if to == own {
                return Some(Reply {
                    bytes: room[..n.min(ANSWER_BYTES)].to_vec(),
                    binary,
                });
            }
            if binary {
                let bin = counted(to.cast());
                let len = (*to.cast::<super::abi::Block>()).size as usize;
                let bytes = std::slice::from_raw_parts(RcBin::bytes(bin), len.min((*bin).capacity))
                    .to_vec();
                RcBin::release(bin);
                return Some(Reply { bytes, binary });
            }
            let bytes = std::slice::from_raw_parts(to as *const u8, n).to_vec();
            libc::free(to.cast());
            Some(Reply { bytes, binary })
        }
    }
    fn call(&mut self, base: &mut Base, op: u32, data: Term) -> Option<OwnedTerm> {
        let f = self.0.code.entry.call?;
        let mut bytes = etf::encode::encode_all(data, etf::encode::Options::default())?;
        let mut room = vec![0u8; bytes.len().max(ANSWER_BYTES)];
        let own = room.as_mut_ptr() as *mut c_char;
        let (mut to, mut flags) = (own, 0);
        // SAFETY: the driver's function; the bytes live for the call.
        let n = self.0.inside(base, |_, d| unsafe {
            let (p, len) = (bytes.as_mut_ptr() as *mut c_char, bytes.len());
            f(d, op, p, len, &mut to, room.len(), &mut flags)
        });
        let n = usize::try_from(n).ok().filter(|&n| n > 0)?;
        if to.is_null() {
            return None;
        }
        let n = if to == own { n.min(room.len()) } else { n };
        let mut frag = Fragment::new();
        // SAFETY: the driver says how many bytes there are; in its own buffer no more than fit.
        let answer = unsafe { std::slice::from_raw_parts(to as *const u8, n) };
        let t = etf::decode(answer, &mut frag, &CodeHooks, etf::Options::default());
        if to != own && flags & KEEP_BUFFER == 0 {
            // SAFETY: the driver has allocated it for this.
            unsafe { libc::free(to.cast()) };
        }
        match t {
            Ok((t, _)) => Some(OwnedTerm::from_parts(t, frag)),
            Err(_) => {
                // SAFETY: nobody has seen it.
                unsafe { frag.destroy() };
                None
            }
        }
    }
    fn queued(&self) -> usize {
        self.0.state().queue.size()
    }
    fn flush(&mut self, base: &mut Base) {
        self.0.flushing.store(true, Ordering::Release);
        if let Some(f) = self.0.code.entry.flush {
            // SAFETY: the driver's function.
            self.0.inside(base, |_, d| unsafe { f(d) });
        }
    }
    fn stop(&mut self, base: &mut Base) {
        if let Some(f) = self.0.code.entry.stop {
            // SAFETY: the driver's function, for the last time for this port.
            self.0.inside(base, |_, d| unsafe { f(d) });
        }
        self.0.leave();
    }
    fn os_pid(&self) -> Option<i32> {
        self.0.state().os_pid
    }
    fn vectored(&self) -> bool {
        self.0.code.entry.outputv.is_some()
    }
    fn may_force(&self) -> bool {
        self.0.code.may_be_forced()
    }
    fn own_lock(&self) -> bool {
        self.0.code.has_port_locks()
    }
    fn watches(&self) -> Vec<Term> {
        let s = self.0.state();
        s.monitors
            .iter()
            .filter_map(|&m| self.0.watched(m))
            .collect()
    }
}

/// Reports that the driver lacks a function that is needed.
fn missing(base: &Base, p: &CPort, what: &str) {
    let name = String::from_utf8_lossy(&p.code.name);
    let port = purlin_term::print::format_term(base.id, purlin_term::print::Style::Display, 100);
    let text = format!("Missing driver callback {what}() in driver {name} of {port}\n");
    purlin_kernel::report::send(
        purlin_kernel::report::Level::Error,
        NIL,
        NIL,
        purlin_kernel::report::Text::Plain(&text),
    );
}
