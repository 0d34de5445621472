//! Waiting for descriptors, and telling those who asked. Two kinds of threads wait: a scheduler that has nothing to run, one at a
//! time (`place.rs`), which then runs what it has brought about; and the poll thread, always, for when all schedulers are busy.
//! Both wait in the same set, and the system tells whoever came last, which is the scheduler if one waits. So what comes in for a
//! process that waits takes one thread to be woken, not two.
//!
//! # Protocol
//! [`register`] makes a descriptor known; [`want`] says what is waited for. A report clears what it reports: who wants
//! more says so again. [`forget`] ends it: no report starts afterwards, though one may be under way on another thread.
//! So the receiver of reports must know by itself when it is over, which it does under its own lock.
//!
//! Who has read a lot, and not all that is there, says so ([`want_more`]). A scheduler goes on with that itself, once it has run what it
//! has woken and has nothing else to do ([`go_on`]), and the kernel isn't asked meanwhile: it would wake the poll thread at once, which
//! would go on beside the scheduler, and take a processor from whoever sends. If something else is to be run, or the process that was
//! woken takes long (an alarm tells), the kernel is asked ([`hand_over`]).
//!
//! Reports are made without any lock of this module held. Receivers may call anything here from within one.
//!
//! Descriptors that the kernel can't wait for (regular files) count as ready always. A descriptor that is registered
//! twice is duplicated: both registrations get their reports.

use crate::msacc::{self, State};
use crate::sync::{Condvar, Mutex, MutexGuard};
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

mod kernel;
mod place;

use kernel::{Kernel, Waiter};
use place::Place;

/// The receiver of the news that a descriptor is ready.
pub trait Ready: Send + Sync {
    /// Called on the poll thread or a scheduler: what was wanted of `id` can be done now. An error or hang-up counts as
    /// both. Neither: what [`want_or_error`] asked for may be there. Must not block.
    fn ready(&self, id: Id, readable: bool, writable: bool);
}

/// A registration. Never given out again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Id(usize);

struct Entry {
    fd: RawFd,
    /// Duplicate of `fd`, where it is the duplicate that was registered.
    own: Option<OwnedFd>,
    to: Arc<dyn Ready>,
    read: bool,
    write: bool,
    /// Errors and urgent data are waited for, whether or not anything else is.
    error: bool,
    /// The kernel has no way to wait for it.
    always: bool,
}

impl Entry {
    fn polled(&self) -> RawFd {
        self.own.as_ref().map_or(self.fd, |d| d.as_raw_fd())
    }
}

struct Table {
    entries: HashMap<usize, Entry>,
    next: usize,
    /// How many entries are always ready and wanted.
    always: usize,
    left: Option<Left>,
    /// Of what is left: how often there was something, and the number of that at the last alarm, if one is set.
    lefts: u64,
    alarm: Option<u64>,
}

/// An entry that is wanted, of which the kernel isn't told: a scheduler goes on with it.
struct Left {
    id: usize,
    /// The number of the scheduler's [`Waiter`].
    by: usize,
}

thread_local! {
    /// This thread is a scheduler that makes reports, and may go on with what there is more of.
    static MAY_LEAVE: Cell<bool> = const { Cell::new(false) };
    /// It has left something, which may have been taken from it by now.
    static HAS_LEFT: Cell<bool> = const { Cell::new(false) };
}

struct Service {
    kernel: Kernel,
    place: Place,
    table: Mutex<Table>,
}

static SERVICE: OnceLock<io::Result<Service>> = OnceLock::new();

fn service() -> io::Result<&'static Service> {
    static STARTED: OnceLock<()> = OnceLock::new();
    let s = SERVICE.get_or_init(|| {
        Ok(Service {
            kernel: Kernel::new()?,
            place: Place::new(),
            table: Mutex::new(Table {
                entries: HashMap::new(),
                next: 0,
                always: 0,
                left: None,
                lefts: 0,
                alarm: None,
            }),
        })
    });
    let s = s
        .as_ref()
        .map_err(|e| io::Error::from_raw_os_error(e.raw_os_error().unwrap_or(libc::EMFILE)))?;
    STARTED.get_or_init(|| {
        let t = std::thread::Builder::new()
            .name("poll".into())
            .stack_size(256 * 1024)
            .spawn(move || {
                crate::sched::binding::begin_unbound();
                run(s)
            });
        if let Err(e) = t {
            eprintln!("purlin: cannot start the poll thread: {e}");
            std::process::exit(1);
        }
    });
    Ok(s)
}

impl Service {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
    /// Tells the kernel what is wanted of an entry.
    fn arm(&self, id: usize, e: &Entry) {
        let _ = self
            .kernel
            .modify(e.polled(), id, (e.read, e.write, e.error));
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
        read: false,
        write: false,
        error: false,
        always: false,
    };
    let mut r = s.kernel.add(fd, id);
    if matches!(&r, Err(x) if x.kind() == io::ErrorKind::AlreadyExists) {
        // SAFETY: duplicating an open descriptor; the new one is ours.
        let dup = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
        if dup < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
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

/// Waits for `id` to become readable or writable, or both, or (neither) no longer. Replaces what was wanted before.
pub fn want(id: Id, read: bool, write: bool) {
    want_or_error(id, read, write, false);
}

/// The same. With `error` an error or urgent data is waited for too: if it is the only thing, neither input nor a hang-up ends
/// the wait.
pub fn want_or_error(id: Id, read: bool, write: bool, error: bool) {
    set(id, (read, write, error), false);
}

/// As [`want`]: there is more to read at once. The scheduler that makes this report goes on with it, if it can.
pub fn want_more(id: Id, read: bool, write: bool) {
    set(id, (read, write, false), read && !write && MAY_LEAVE.get());
}

fn set(id: Id, (read, write, error): (bool, bool, bool), leave: bool) {
    let Ok(s) = service() else { return };
    let mut table = s.table();
    let t = &mut *table;
    let Some(e) = t.entries.get_mut(&id.0) else {
        return;
    };
    if (e.read, e.write, e.error) == (read, write, error) {
        return;
    }
    let before = e.read || e.write;
    (e.read, e.write, e.error) = (read, write, error);
    if !e.always {
        let number = t.lefts.wrapping_add(1);
        if leave && t.left.is_none() && (t.alarm.is_some() || s.kernel.alarm()) {
            t.lefts = number;
            t.alarm.get_or_insert(number);
            t.left = Some(Left {
                id: id.0,
                by: Waiter::me().number(),
            });
            HAS_LEFT.set(true);
        } else {
            s.arm(id.0, e);
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

/// Whether `id` is waited for to become readable, and writable: after a report, whether somebody has asked again.
pub fn wants(id: Id) -> (bool, bool) {
    let Ok(s) = service() else {
        return (false, false);
    };
    let t = s.table();
    t.entries
        .get(&id.0)
        .map_or((false, false), |e| (e.read, e.write))
}

/// How many descriptors are registered, how many of them are waited for, and bytes that the table takes.
pub fn sizes() -> (usize, usize, usize) {
    let Some(Ok(s)) = SERVICE.get() else {
        return (0, 0, 0);
    };
    let t = s.table();
    let wanted = t.entries.values().filter(|e| e.read || e.write).count();
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
        t.always -= usize::from(e.read || e.write);
    } else {
        let _ = s.kernel.delete(e.polled());
    }
    // Dropping the receiver may lead back here.
    drop(t);
    drop(e);
}

fn run(s: &'static Service) {
    let mut events = kernel::Events::new();
    let mut ready: Vec<kernel::Report> = Vec::new();
    msacc::begin_thread(msacc::Kind::Poll, 0);
    loop {
        let spin = s.table().always > 0;
        msacc::asleep(!spin);
        ready.clear();
        if let Err(e) = s.kernel.wait(&mut events, !spin, &mut ready)
            && e.kind() != io::ErrorKind::Interrupted
        {
            eprintln!("purlin: polling failed: {e}");
            std::process::exit(1);
        }
        msacc::asleep(false);
        let _state = msacc::within(State::CheckIo);
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

/// Takes the place beside the poll thread for the calling scheduler, if it is free and there is anything to wait for.
pub(crate) fn take_place() -> bool {
    let Some(Ok(s)) = SERVICE.get() else {
        return false;
    };
    kernel::BESIDE && s.place.take(Waiter::me().number())
}

/// Ends the wait of the scheduler that has the place.
pub(crate) fn ring() {
    if let Some(Ok(s)) = SERVICE.get()
        && let Some(n) = s.place.waiter()
    {
        Waiter::of(n).ring();
    }
}

/// The events that a wait beside the poll thread has found. [`tell`] hands them on; without it nobody hears of them.
#[must_use]
pub(crate) struct Found(SmallVec<[kernel::Report; kernel::FEW]>);

/// Waits until something is ready, or somebody rings, and leaves the place, which the caller has taken.
pub(crate) fn wait_beside() -> Found {
    let mut found = Found(SmallVec::new());
    if let Some(Ok(s)) = SERVICE.get() {
        s.kernel.wait_beside(&mut found.0);
        s.place.leave();
    }
    found
}

/// Tells of what was found, on this thread, a scheduler. With `may_leave` it goes on with what there is more of: what it has left
/// ([`has_left`]) is to be gone on with or handed over soon.
pub(crate) fn tell(found: Found, may_leave: bool) {
    let (Some(Ok(s)), false) = (SERVICE.get(), found.0.is_empty()) else {
        return;
    };
    let _state = msacc::within(State::CheckIo);
    MAY_LEAVE.set(may_leave);
    for (id, what) in found.0 {
        report(s, id, what);
    }
    MAY_LEAVE.set(false);
}

/// Whether this thread has left something.
#[inline]
pub(crate) fn has_left() -> bool {
    HAS_LEFT.get()
}

/// What this thread has left, which is its own again; None: it was taken from it.
fn take_left(t: &mut Table) -> Option<usize> {
    HAS_LEFT.set(false);
    let me = Waiter::me().number();
    t.left.take_if(|l| l.by == me).map(|l| l.id)
}

/// This thread, a scheduler, goes on with what it has left; with `may_leave` as in [`tell`].
pub(crate) fn go_on(may_leave: bool) {
    let Some(Ok(s)) = SERVICE.get() else { return };
    let Some(id) = take_left(&mut s.table()) else {
        return;
    };
    let _state = msacc::within(State::CheckIo);
    MAY_LEAVE.set(may_leave);
    report(s, id, (true, false, false));
    MAY_LEAVE.set(false);
}

/// Has the kernel be asked for what this thread has left.
#[cold]
pub(crate) fn hand_over() {
    let Some(Ok(s)) = SERVICE.get() else { return };
    let mut t = s.table();
    if let Some(id) = take_left(&mut t) {
        ask_again(s, &t, id);
    }
}

fn ask_again(s: &Service, t: &Table, id: usize) {
    if let Some(e) = t.entries.get(&id)
        && (e.read || e.write)
    {
        s.arm(id, e);
    }
}

/// The alarm has gone off: has the kernel be asked for what was left when it was set, and looks again later if there is something else.
fn overdue(s: &Service) {
    let mut t = s.table();
    let seen = t.alarm.take();
    let Some(id) = t.left.as_ref().map(|l| l.id) else {
        return;
    };
    if seen != Some(t.lefts) && s.kernel.alarm() {
        t.alarm = Some(t.lefts);
        return;
    }
    t.left = None;
    ask_again(s, &t, id);
}

/// How many have reports wait.
static HELD: AtomicUsize = AtomicUsize::new(0);
static RELEASED: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// Reports that have not begun wait until this is dropped.
#[must_use]
pub struct Hold(());

/// Has reports wait.
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

fn report(s: &Service, id: usize, (readable, writable, failed): (bool, bool, bool)) {
    if id == kernel::ALARM {
        return overdue(s);
    }
    if HELD.load(Ordering::Relaxed) > 0 {
        wait_while_held();
    }
    let mut t = s.table();
    let Some(e) = t.entries.get_mut(&id) else {
        return;
    };
    let (r, w, f) = (readable && e.read, writable && e.write, failed && e.error);
    let before = e.read || e.write;
    e.read &= !r;
    e.write &= !w;
    e.error &= !f;
    let now = e.read || e.write;
    let to = e.to.clone();
    if !e.always {
        // Whoever waits for errors only is not asked again by what was no error: see `kernel.rs`.
        if now || (e.error && (r || w)) {
            s.arm(id, e);
        }
    } else if before && !now {
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

    /// A receiver that waits for errors only hears neither of input nor of a hang-up, and nobody looks for one all the time
    /// meanwhile.
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

        // A pipe that nobody reads any more has an error.
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

    /// What a scheduler has left it goes on with itself, or hands over, or the alarm does. Each time there is one report.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_left_is_reported_once() {
        struct Leaves(Mutex<Sender<bool>>);
        impl Ready for Leaves {
            fn ready(&self, id: Id, _: bool, _: bool) {
                let here = MAY_LEAVE.get();
                if here {
                    want_more(id, true, false);
                }
                let _ = self.0.lock().send(here);
            }
        }
        let (a, mut b) = UnixStream::pair().expect("a pair");
        let (s, got) = channel();
        let id = register(a.as_raw_fd(), Arc::new(Leaves(Mutex::new(s)))).expect("registered");
        b.write_all(b"x").expect("written");
        let begin = || {
            let s = service().expect("is there");
            if let Some(e) = s.table().entries.get_mut(&id.0) {
                e.read = true;
            }
            tell(
                Found(SmallVec::from_slice(&[(id.0, (true, false, false))])),
                true,
            );
            assert_eq!(got.try_recv(), Ok(true));
            assert!(has_left());
        };
        let mut here = 0;
        for _ in 0..100 {
            begin();
            go_on(true);
            if got.recv_timeout(SOON).expect("a report") {
                here += 1;
                hand_over();
                assert_eq!(got.recv_timeout(SOON), Ok(false));
            }
            assert!(!has_left());
        }
        // The alarm comes in between where the machine is busy.
        assert!(here > 0);
        begin();
        assert_eq!(got.recv_timeout(SOON), Ok(false));
        go_on(true);
        hand_over();
        assert!(got.recv_timeout(SHORT).is_err());
        // Of one that is forgotten nobody hears.
        begin();
        forget(id);
        go_on(true);
        assert!(got.recv_timeout(SHORT).is_err());
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

    /// A thread waits beside the poll thread, as a scheduler does, and is rung while descriptors are reported to either.
    #[test]
    #[cfg(target_os = "linux")]
    fn who_waits_beside_is_rung() {
        let (a, mut b) = UnixStream::pair().expect("a pair");
        let (t, got) = teller();
        let id = register(a.as_raw_fd(), t).expect("registered");
        b.write_all(b"x").expect("written");
        for _ in 0..100 {
            let over = Mutex::new(false);
            std::thread::scope(|threads| {
                let waits = threads.spawn(|| {
                    while !*over.lock() {
                        assert!(take_place());
                        assert!(!take_place());
                        // A ring from before the place was taken is heard of here.
                        if *over.lock() {
                            break;
                        }
                        tell(wait_beside(), false);
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
