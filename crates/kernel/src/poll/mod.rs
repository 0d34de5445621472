//! Polling: waiting for descriptors and reporting those that are ready. Two kinds of threads wait:
//! a scheduler that has nothing to run, one at a time (`place.rs`), which then runs the processes
//! that it wakes; and the poll thread, for the time when all schedulers are busy. Both wait in the
//! same set, and the system reports to the latest waiter, which is the scheduler if one waits. So
//! input for a waiting process wakes one thread, not two. While events are frequent, schedulers
//! also poll between processes, and the poll thread naps (`duty.rs`).
//!
//! # Protocol
//! [`register`] makes a descriptor known; [`want`] says what is waited for. A report clears what it
//! reports: a receiver that wants more says so again. [`forget`] ends the registration: no report
//! starts afterwards, though one may be in progress on another thread. So the receiver must know by
//! itself when it is over, under its own lock. The same holds for what it waits for: a report may
//! reach a receiver that no longer waits, so the receiver checks its own state, under its own lock,
//! before it reads anything.
//!
//! Reports are made without any lock of this module. Receivers may call anything here from within
//! one.
//!
//! Descriptors that the kernel can't wait for (regular files) always count as ready. A descriptor
//! that is registered twice is duplicated: both registrations get their reports.
//!
//! # Orderings
//! [`HELD`] is changed with `SeqCst` and loaded `Relaxed` before a report. A thread with a [`Hold`]
//! only relies on reports that have not begun: a report that misses the store counts as begun. The
//! waiting itself happens under the lock of [`RELEASED`], under which `HELD` is lowered, so no
//! notification is lost.

use crate::msacc::{self, State};
use crate::os::{exploring, replay_log, thread, world};
use crate::sync::{Condvar, Mutex, MutexGuard};
use purlin_native::hashing::Hashing;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

mod duty;
#[cfg(test)]
mod duty_tests;
mod kernel;
mod place;
mod wish;

use duty::{Duty, Naps, Then};
use kernel::{Kernel, Waiter};
use place::Place;
use wish::{Asked, How};

/// The receiver of the reports of a descriptor.
pub trait Ready: Send + Sync {
    /// Handles a report: `id` was readable or writable, as wanted, when the report was made. Called
    /// on the poll thread or a scheduler. The receiver may have stopped waiting since. An error or
    /// hang-up counts as both. If neither is set, there may be what [`want_or_error`] requested.
    /// Must not block.
    fn ready(&self, id: Id, readable: bool, writable: bool);
}

/// Identifies a registration. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Id(usize);

struct Entry {
    fd: RawFd,
    /// Duplicate of `fd`, if the duplicate was registered.
    own: Option<OwnedFd>,
    to: Arc<dyn Ready>,
    asked: Asked,
    /// Whether the kernel has no way to wait for it.
    always: bool,
    /// The thing that it stands for, if the coordinator of a world waits for it.
    thing: Option<u64>,
}

impl Entry {
    fn polled(&self) -> RawFd {
        self.own.as_ref().map_or(self.fd, |d| d.as_raw_fd())
    }
}

struct Table {
    entries: HashMap<usize, Entry, Hashing>,
    next: usize,
    /// Number of entries that are always ready and wanted.
    always: usize,
}

struct Service {
    kernel: Kernel,
    place: Place,
    duty: Duty,
    table: Mutex<Table>,
}

static SERVICE: OnceLock<io::Result<Service>> = OnceLock::new();

fn service() -> io::Result<&'static Service> {
    static STARTED: OnceLock<()> = OnceLock::new();
    let s = SERVICE.get_or_init(|| {
        Ok(Service {
            kernel: Kernel::new()?,
            place: Place::new(),
            duty: Duty::new(),
            table: Mutex::new(Table {
                entries: HashMap::default(),
                next: 0,
                always: 0,
            }),
        })
    });
    let s = s
        .as_ref()
        .map_err(|e| io::Error::from_raw_os_error(e.raw_os_error().unwrap_or(libc::EMFILE)))?;
    STARTED.get_or_init(|| {
        // The only thread polls by itself.
        if crate::os::exploring::on() {
            return;
        }
        thread::start("poll", 256 * 1024, move || {
            crate::affinity::begin_unbound();
            run(s)
        });
    });
    Ok(s)
}

/// Starts the thread, and ensures that the system can be asked. Otherwise the first registration
/// does.
pub fn start() -> io::Result<()> {
    service().map(|_| ())
}

impl Service {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
    /// Tells the kernel what is wanted of an entry.
    fn arm(&self, id: usize, e: &Entry, how: How) {
        if e.thing.is_some() {
            return;
        }
        let w = e.asked.wish;
        let wanted = (w.read, w.write, w.error);
        let _ = self.kernel.modify(e.polled(), id, wanted, how);
    }
}

/// Makes `fd` known. Nothing is wanted of it yet. The caller keeps it open until [`forget`].
pub fn register(fd: RawFd, to: Arc<dyn Ready>) -> io::Result<Id> {
    let s = service()?;
    let mut t = s.table();
    let id = t.next;
    let mut e = Entry {
        fd,
        own: None,
        to,
        asked: Asked::default(),
        always: false,
        thing: world::thing(fd),
    };
    if e.thing.is_some() {
        t.next += 1;
        t.entries.insert(id, e);
        return Ok(Id(id));
    }
    let mut r = s.kernel.add(fd, id);
    if matches!(&r, Err(x) if x.kind() == io::ErrorKind::AlreadyExists) {
        // SAFETY: duplicates an open descriptor; the new one is ours.
        let dup = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
        if dup < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor, which has no other owner.
        e.own = Some(unsafe { OwnedFd::from_raw_fd(dup) });
        r = s.kernel.add(dup, id);
    }
    match r {
        Ok(()) => {}
        Err(x) if x.raw_os_error() == Some(libc::EPERM) => e.always = true,
        Err(x) => return Err(x),
    }
    t.next += 1;
    t.entries.insert(id, e);
    Ok(Id(id))
}

/// Waits for `id` to become readable, writable or both, or (neither) stops waiting. Replaces what
/// was wanted before.
pub fn want(id: Id, read: bool, write: bool) {
    want_or_error(id, read, write, false);
}

/// As [`want`]. With `error`, waits for an error or urgent data too: if it is the only one, neither
/// input nor a hang-up ends the wait.
pub fn want_or_error(id: Id, read: bool, write: bool, error: bool) {
    let Ok(s) = service() else { return };
    let mut t = s.table();
    let Some(e) = t.entries.get_mut(&id.0) else {
        return;
    };
    let before = e.asked.wish.any();
    let lasts = !e.always && s.duty.is_frequent();
    let how = e.asked.replace((read, write, error), lasts);
    if !e.always {
        if let Some(how) = how {
            s.arm(id.0, e, how);
        }
        return;
    }
    match (before, read || write) {
        (false, true) => {
            t.always += 1;
            let _ = s.kernel.notify();
        }
        (true, false) => t.always -= 1,
        _ => {}
    }
}

/// Whether `id` is waited for to become readable, and writable: after a report, whether that was
/// requested again.
pub fn wants(id: Id) -> (bool, bool) {
    let Ok(s) = service() else {
        return (false, false);
    };
    let t = s.table();
    t.entries
        .get(&id.0)
        .map_or((false, false), |e| (e.asked.wish.read, e.asked.wish.write))
}

/// Returns the number of registered descriptors, of those that are waited for, and the bytes of the
/// table.
pub fn sizes() -> (usize, usize, usize) {
    let Some(Ok(s)) = SERVICE.get() else {
        return (0, 0, 0);
    };
    let t = s.table();
    let wanted = t.entries.values().filter(|e| e.asked.wish.any()).count();
    let bytes = t.entries.capacity() * size_of::<(usize, Entry)>();
    (t.entries.len(), wanted, bytes)
}

/// Ends a registration. The descriptor may be closed afterwards.
pub fn forget(id: Id) {
    let Ok(s) = service() else { return };
    let mut t = s.table();
    let Some(e) = t.entries.remove(&id.0) else {
        return;
    };
    if e.always {
        t.always -= usize::from(e.asked.wish.any());
    } else if e.thing.is_none() {
        let _ = s.kernel.delete(e.polled());
    }
    // Dropping the receiver may lead back here.
    drop(t);
    drop(e);
}

/// Length of a nap of the poll thread.
const NAP_MS: i32 = 1;

fn run(s: &'static Service) {
    let mut events = kernel::Events::new();
    let mut ready: Vec<kernel::Report> = Vec::new();
    let mut naps = Naps::default();
    msacc::begin_thread(msacc::Kind::Poll, 0);
    loop {
        let spin = s.table().always > 0;
        let frequent = s.duty.is_frequent() && !spin;
        msacc::asleep(!spin);
        if frequent && naps_on(s, &mut naps) {
            continue;
        }
        ready.clear();
        if let Err(e) = s.kernel.wait(&mut events, !spin && !frequent, &mut ready)
            && e.kind() != io::ErrorKind::Interrupted
        {
            purlin_term::say::refused(format_args!("polling failed: {e}"));
        }
        msacc::asleep(false);
        let _state = msacc::within(State::CheckIo);
        s.found(ready.len());
        if frequent {
            s.duty.found_itself(&mut naps, !ready.is_empty());
        }
        if spin {
            let t = s.table();
            ready.extend(
                t.entries
                    .iter()
                    .filter(|(_, e)| e.always)
                    .map(|(&id, _)| (id, (true, true, false))),
            );
        }
        for &(id, what) in &ready {
            report(s, id, what);
        }
    }
}

/// Naps while schedulers poll. Returns false if the poll thread must poll afterwards.
fn naps_on(s: &Service, naps: &mut Naps) -> bool {
    s.kernel.nap(NAP_MS);
    s.duty.after_nap(naps, s.place.waiter().is_some()) != Then::Poll
}

impl Service {
    /// Counts events that this thread has found.
    #[inline]
    fn found(&self, n: usize) {
        let now = || crate::clock::elapsed().max(0) as u64;
        self.duty.found(n, self.kernel.allows_beside(), now);
    }
    /// Takes the place for the calling scheduler, `me` (from 1), if it is free.
    #[inline]
    fn take_place(&self, me: usize) -> bool {
        let took = self.kernel.allows_beside() && self.place.take(Waiter::me().number());
        if took {
            self.duty.took(me);
        }
        took
    }
}

/// Takes the place beside the poll thread for the calling scheduler, `me` (from 1), if it is free
/// and there is anything to wait for; not if a scheduler for which `polls` is true polls anyway.
pub(crate) fn take_place(me: usize, polls: impl FnOnce(usize) -> bool) -> bool {
    let Some(Ok(s)) = SERVICE.get() else {
        return false;
    };
    if s.duty.leaves_to(me).is_some_and(polls) {
        return false;
    }
    s.take_place(me)
}

/// Returns the scheduler, from 1, that polls between processes, other than `me`; 0 for none.
#[inline]
pub(crate) fn polling_scheduler(me: usize) -> usize {
    match SERVICE.get() {
        Some(Ok(s)) => s.duty.leaves_to(me).unwrap_or(0),
        _ => 0,
    }
}

/// Ends the wait of the scheduler in the place.
pub(crate) fn ring() {
    if let Some(Ok(s)) = SERVICE.get()
        && let Some(n) = s.place.waiter()
    {
        Waiter::of(n).ring();
    }
}

/// The events that a wait beside the poll thread has found. They are lost unless passed to
/// [`report_all`].
#[must_use]
pub(crate) struct Found(SmallVec<[kernel::Report; kernel::FEW]>);

/// Waits until something is ready or a thread rings, then leaves the place, which the caller has
/// taken.
pub(crate) fn wait_beside() -> Found {
    beside(true)
}

/// Waits, if `wait`, and leaves the place, which the caller has taken.
fn beside(wait: bool) -> Found {
    let mut found = Found(SmallVec::new());
    if let Some(Ok(s)) = SERVICE.get() {
        s.kernel.wait_beside(wait, &mut found.0);
        s.place.leave();
        s.found(found.0.len());
    }
    found
}

/// Polls without waiting for the calling scheduler, `me` (from 1), if events are frequent and no
/// other scheduler polls, and reports what is ready. Returns whether there was anything.
#[inline]
pub(crate) fn glance(me: usize) -> bool {
    match SERVICE.get() {
        Some(Ok(s)) if s.duty.is_frequent() => glance_frequent(s, me),
        _ => false,
    }
}

fn glance_frequent(s: &'static Service, me: usize) -> bool {
    if !s.take_place(me) {
        return false;
    }
    let found = beside(false);
    let any = !found.0.is_empty();
    report_all(found);
    any
}

/// Reports what was found, on this thread.
pub(crate) fn report_all(found: Found) {
    let (Some(Ok(s)), false) = (SERVICE.get(), found.0.is_empty()) else {
        return;
    };
    let _state = msacc::within(State::CheckIo);
    for (id, what) in found.0 {
        report(s, id, what);
    }
}

/// Reports what is ready, on this thread, which is the only one. Waits for at most `timeout_ms`
/// milliseconds (-1: until there is something). Returns whether there was anything.
pub(crate) fn look(timeout_ms: i32) -> bool {
    if replay_log::replays() {
        return replayed_look(timeout_ms < 0);
    }
    let Some(Ok(s)) = SERVICE.get() else {
        replay_log::polled([].into_iter());
        if timeout_ms != 0 {
            std::thread::sleep(std::time::Duration::from_millis(
                timeout_ms.unsigned_abs().into(),
            ));
        }
        return false;
    };
    let mut events = kernel::Events::new();
    let mut ready: Vec<kernel::Report> = Vec::new();
    let always = s.table().always > 0;
    let timeout = if always { 0 } else { timeout_ms };
    if !world::is_on() {
        let _ = s.kernel.wait_for(&mut events, timeout, &mut ready);
    }
    if always {
        let t = s.table();
        let all = t.entries.iter();
        let all = all.filter(|(_, e)| e.always && (!world::is_on() || e.asked.wish.any()));
        ready.extend(all.map(|(&id, _)| (id, (true, true, false))));
    }
    // The order must not depend on a hash table.
    ready.sort_unstable_by_key(|r| r.0);
    replay_log::polled(
        ready
            .iter()
            .map(|&(id, (r, w, e))| (id, u8::from(r) | u8::from(w) << 1 | u8::from(e) << 2)),
    );
    for &(id, what) in &ready {
        report(s, id, what);
    }
    !ready.is_empty()
}

/// Gives the turn of a node in a world back, until `next` or until something is ready that is
/// waited for; with `over` until it may continue. Reports what is ready then. Returns the order in
/// which processes run from here on, if it changes.
pub(crate) fn give_turn(next: Option<i64>, over: bool) -> String {
    // Bits of readiness, as the protocol has them.
    use purlin_world::net::{ERR, HUP, IN, OUT};
    let mut wanted = Vec::new();
    if let Some(Ok(s)) = SERVICE.get() {
        let t = s.table();
        wanted.extend(t.entries.iter().filter_map(|(id, e)| {
            let w = e.asked.wish;
            let bits = if w.read { IN } else { 0 } | if w.write { OUT } else { 0 };
            e.thing.filter(|_| w.any()).map(|thing| (*id, thing, bits))
        }));
    }
    wanted.sort_unstable();
    let watched = wanted.iter().map(|(_, thing, bits)| (*thing, *bits));
    let turn = world::give_turn(next, over, watched.collect(), after_fork);
    exploring::jump(i64::try_from(turn.now).unwrap_or(i64::MAX));
    exploring::set_started(i64::try_from(turn.started).unwrap_or(i64::MAX));
    let Some(Ok(s)) = SERVICE.get() else {
        return turn.order;
    };
    for (id, thing, bits) in wanted {
        let Some((_, events)) = turn.ready.iter().find(|(t, _)| *t == thing) else {
            continue;
        };
        let has = |kind: u32| events & (kind | ERR | HUP) != 0;
        if events & (bits | ERR | HUP) != 0 {
            report(s, id, (has(IN), has(OUT), events & ERR != 0));
        }
    }
    turn.order
}

/// As [`look`], for what was ready when that was recorded.
fn replayed_look(for_ever: bool) -> bool {
    let ready = replay_log::replayed_poll(for_ever);
    if let Some(Ok(s)) = SERVICE.get() {
        for &(id, bits) in &ready {
            report(s, id, (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0));
        }
    }
    !ready.is_empty()
}

/// Whether any descriptor is waited for.
pub(crate) fn awaits() -> bool {
    let Some(Ok(s)) = SERVICE.get() else {
        return false;
    };
    let t = s.table();
    t.entries.values().any(|e| e.asked.wish.any())
}

/// Rebuilds what the system shares between parent and child. Called after a fork of the emulator,
/// by the only thread of the child.
pub(crate) fn after_fork() {
    let Some(Ok(s)) = SERVICE.get() else {
        return;
    };
    let mut t = s.table();
    if let Err(e) = s.kernel.renew() {
        let text = format!("polling failed: {e}");
        purlin_term::say!("{}", purlin_messages::RUN_CANNOT_POLL.line(text));
        std::process::exit(1);
    }
    let mut always = 0;
    // What stands for a thing of a world is nothing that the system reports.
    let real = t.entries.iter_mut().filter(|(_, e)| e.thing.is_none());
    for (&id, e) in real {
        e.always = s.kernel.add(e.polled(), id).is_err();
        if e.always {
            always += usize::from(e.asked.wish.any());
        } else {
            e.asked.forgotten();
            s.arm(id, e, How::Once);
        }
    }
    t.always = always;
}

/// Number of [`Hold`]s.
static HELD: AtomicUsize = AtomicUsize::new(0);
static RELEASED: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// Keeps reports from beginning until it is dropped.
#[must_use]
pub struct Hold(());

/// Keeps reports from beginning.
pub fn hold() -> Hold {
    HELD.fetch_add(1, Ordering::SeqCst);
    Hold(())
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _lock = RELEASED.0.lock();
        HELD.fetch_sub(1, Ordering::SeqCst);
        RELEASED.1.notify_all();
    }
}

#[cold]
fn wait_while_held() {
    let mut lock = RELEASED.0.lock();
    while HELD.load(Ordering::SeqCst) > 0 {
        lock = RELEASED.1.wait(lock);
    }
}

fn report(s: &Service, id: usize, events: wish::Events) {
    if HELD.load(Ordering::Relaxed) > 0 {
        wait_while_held();
    }
    let mut t = s.table();
    let Some(e) = t.entries.get_mut(&id) else {
        return;
    };
    let before = e.asked.wish.any();
    let ((r, w, f), again) = e.asked.take(events);
    let to = e.to.clone();
    if !e.always {
        if again {
            s.arm(id, e, How::Once);
        }
    } else if before && !e.asked.wish.any() {
        t.always -= 1;
    }
    drop(t);
    if r || w || f {
        to.ready(Id(id), r, w);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    struct Tell(Mutex<Sender<(bool, bool)>>);
    impl Ready for Tell {
        fn ready(&self, _: Id, r: bool, w: bool) {
            let _ = self.0.lock().send((r, w));
        }
    }
    fn teller() -> (Arc<Tell>, Receiver<(bool, bool)>) {
        let (s, r) = channel();
        (Arc::new(Tell(Mutex::new(s))), r)
    }
    const SOON: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(30);

    #[test]
    fn a_report_comes_once_per_wish() {
        let (mut a, mut b) = UnixStream::pair().expect("a pair");
        let (t, got) = teller();
        let id = register(a.as_raw_fd(), t).expect("registered");
        b.write_all(b"x").expect("written");
        assert!(got.recv_timeout(SHORT).is_err());
        want(id, true, false);
        assert_eq!(got.recv_timeout(SOON), Ok((true, false)));
        assert!(got.recv_timeout(SHORT).is_err());
        want(id, true, true);
        assert_eq!(got.recv_timeout(SOON), Ok((true, true)));
        let mut one = [0];
        a.read_exact(&mut one).expect("read");
        want(id, true, false);
        assert!(got.recv_timeout(SHORT).is_err());
        drop(b);
        assert_eq!(got.recv_timeout(SOON), Ok((true, false)));
        forget(id);
    }

    /// A receiver that waits for errors only gets neither input nor a hang-up, and meanwhile no
    /// thread spins on them.
    #[test]
    #[cfg(target_os = "linux")]
    fn errors_alone_are_waited_for() {
        let (a, mut b) = UnixStream::pair().expect("a pair");
        let (t, got) = teller();
        let id = register(a.as_raw_fd(), t).expect("registered");
        b.write_all(b"x").expect("written");
        want_or_error(id, false, false, true);
        drop(b);
        assert!(got.recv_timeout(SHORT).is_err());
        want_or_error(id, true, false, true);
        assert_eq!(got.recv_timeout(SOON), Ok((true, false)));
        assert!(got.recv_timeout(SHORT).is_err());
        forget(id);

        // A pipe without a reader has an error.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let (t, got) = teller();
        let id = register(writer.as_raw_fd(), t).expect("registered");
        want_or_error(id, false, true, true);
        assert_eq!(got.recv_timeout(SOON), Ok((false, true)));
        assert!(got.recv_timeout(SHORT).is_err());
        drop(reader);
        assert_eq!(got.recv_timeout(SOON), Ok((false, false)));
        assert!(got.recv_timeout(SHORT).is_err());
        want_or_error(id, false, false, true);
        assert_eq!(got.recv_timeout(SOON), Ok((false, false)));
        forget(id);
    }

    #[test]
    fn reports_wait_while_they_are_held() {
        let (a, mut b) = UnixStream::pair().expect("a pair");
        let (t, got) = teller();
        let id = register(a.as_raw_fd(), t).expect("registered");
        b.write_all(b"x").expect("written");
        let held = hold();
        want(id, true, false);
        assert!(got.recv_timeout(SHORT).is_err());
        drop(held);
        assert_eq!(got.recv_timeout(SOON), Ok((true, false)));
        forget(id);
    }

    /// A thread waits beside the poll thread, as a scheduler does, and is rung while descriptors
    /// are reported to either.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_waiter_beside_the_poll_thread_is_rung() {
        let (a, mut b) = UnixStream::pair().expect("a pair");
        let (t, got) = teller();
        let id = register(a.as_raw_fd(), t).expect("registered");
        b.write_all(b"x").expect("written");
        for _ in 0..100 {
            let over = Mutex::new(false);
            std::thread::scope(|threads| {
                let waits = threads.spawn(|| {
                    while !*over.lock() {
                        assert!(take_place(1, |_| false));
                        assert!(!take_place(2, |_| false));
                        // A ring from before the place was taken counts here.
                        if *over.lock() {
                            break;
                        }
                        report_all(wait_beside());
                    }
                    service().expect("is there").place.leave();
                });
                want(id, true, false);
                assert_eq!(got.recv_timeout(SOON), Ok((true, false)));
                *over.lock() = true;
                ring();
                waits.join().expect("ends");
            });
        }
        forget(id);
    }

    #[test]
    fn one_descriptor_twice_and_files() {
        let (a, mut b) = UnixStream::pair().expect("a pair");
        let ((t1, got1), (t2, got2)) = (teller(), teller());
        let one = register(a.as_raw_fd(), t1).expect("registered");
        let two = register(a.as_raw_fd(), t2).expect("registered again");
        b.write_all(b"x").expect("written");
        want(one, true, false);
        want(two, true, false);
        assert_eq!(got1.recv_timeout(SOON), Ok((true, false)));
        assert_eq!(got2.recv_timeout(SOON), Ok((true, false)));
        forget(one);
        forget(two);

        let f = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .expect("a file");
        let (t, got) = teller();
        let id = register(f.as_raw_fd(), t).expect("registered");
        assert!(got.recv_timeout(SHORT).is_err());
        for _ in 0..3 {
            want(id, true, false);
            assert_eq!(got.recv_timeout(SOON), Ok((true, false)));
        }
        assert!(got.recv_timeout(SHORT).is_err());
        forget(id);
    }
}
