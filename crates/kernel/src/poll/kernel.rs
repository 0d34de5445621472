//! The interface to the operating system: epoll on Linux, or poll(2) where that is refused (a
//! filter of system calls may do so); elsewhere crate `polling`. A descriptor is reported once for
//! each time that something is wanted of it.
//!
//! Crate `polling` isn't used for epoll: each of its waits takes five system calls instead of one,
//! and only one thread can wait at a time.

#[cfg(not(target_os = "linux"))]
pub use other::{Events, Kernel, Waiter};
#[cfg(target_os = "linux")]
pub use with_epoll::{Events, Kernel, Waiter};

/// A registration, and whether it is readable, is writable, and has an error or urgent data.
pub type Report = (usize, (bool, bool, bool));

/// Maximum number of reports of [`Kernel::wait_beside`].
pub const FEW: usize = 16;

#[cfg(target_os = "linux")]
mod with_epoll {
    use super::super::wish::How;
    use super::{FEW, Report};
    use crate::sync::Mutex;
    use std::collections::HashMap;
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

    const READ: u32 =
        (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLPRI | libc::EPOLLHUP | libc::EPOLLERR)
            as u32;
    const WRITE: u32 = (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32;
    /// The events of errors and urgent data.
    const ERROR: u32 = (libc::EPOLLPRI | libc::EPOLLERR) as u32;
    /// Key of the descriptor that ends a wait of the poll thread.
    const NOTIFY: u64 = u64::MAX;
    /// The signal that ends a wait beside it. Nothing else uses it, and debuggers pass it on
    /// silently.
    const RING: i32 = libc::SIGURG;
    /// Maximum number of reports of one wait.
    const MANY: usize = 1024;

    /// Room for the reports of a wait.
    pub struct Events(Vec<libc::epoll_event>);

    impl Events {
        pub fn new() -> Events {
            Events(vec![libc::epoll_event { events: 0, u64: 0 }; MANY])
        }
    }

    /// See the module docs.
    pub struct Kernel {
        set: Set,
        notify: Bell,
    }

    /// The set of descriptors that are waited for.
    enum Set {
        Epoll(OwnedFd),
        Here(Listed),
    }

    /// A descriptor that can be made readable, and the one to write to.
    struct Bell {
        read_end: OwnedFd,
        /// `None` if it is the same.
        write_end: Option<OwnedFd>,
    }

    impl Bell {
        /// Returns an event descriptor, or a pipe where those are refused.
        fn new() -> io::Result<Bell> {
            // SAFETY: a plain call.
            let made = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
            if let Ok(read_end) = owned(made) {
                return Ok(Bell {
                    read_end,
                    write_end: None,
                });
            }
            let mut ends = [-1; 2];
            // SAFETY: room for two numbers.
            let r = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
            if r != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Bell {
                read_end: owned(ends[0])?,
                write_end: Some(owned(ends[1])?),
            })
        }
        fn ring(&self) {
            let one = 1u64.to_ne_bytes();
            let write_end = self.write_end.as_ref().unwrap_or(&self.read_end);
            // SAFETY: eight bytes that live during the call. If there is no room for more, it has
            // been rung already.
            unsafe { libc::write(write_end.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        }
        /// Makes it unreadable until it is rung again.
        fn drain(&self) {
            let mut some = [0u8; 4096];
            // SAFETY: the buffer has room for that many bytes; the call doesn't block.
            while unsafe {
                libc::read(
                    self.read_end.as_raw_fd(),
                    some.as_mut_ptr().cast(),
                    some.len(),
                )
            } == some.len() as isize
            {}
        }
    }

    /// The wanted events of descriptors, where the system doesn't keep them. The flags of poll(2)
    /// are those of epoll.
    #[derive(Default)]
    struct Listed(Mutex<HashMap<RawFd, (usize, u32)>>);

    impl Listed {
        fn add(&self, fd: RawFd, id: usize) -> io::Result<()> {
            let mut all = self.0.lock();
            if all.contains_key(&fd) {
                return Err(io::Error::from_raw_os_error(libc::EEXIST));
            }
            all.insert(fd, (id, 0));
            Ok(())
        }
        /// Waits, and returns what is ready. Nothing is wanted of that from then on.
        fn wait(&self, bell: &Bell, timeout_ms: i32) -> io::Result<Vec<Report>> {
            let entry = |fd: RawFd, flags: u32| libc::pollfd {
                fd,
                events: flags as i16,
                revents: 0,
            };
            let mut asked = vec![entry(bell.read_end.as_raw_fd(), libc::EPOLLIN as u32)];
            let mut armed = Vec::new();
            {
                let all = self.0.lock();
                for (&fd, &(id, flags)) in all.iter().filter(|(_, e)| e.1 != 0) {
                    asked.push(entry(fd, flags));
                    armed.push((id, flags));
                }
            }
            // SAFETY: the pointer and the length are those of the vector.
            let n = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as _, timeout_ms) };
            if n < 0 {
                return Err(io::Error::last_os_error());
            }
            if asked[0].revents != 0 {
                bell.drain();
            }
            let mut all = self.0.lock();
            let mut reports = Vec::new();
            for (a, armed) in asked[1..].iter().zip(armed).filter(|(a, _)| a.revents != 0) {
                // The next wait handles what has changed meanwhile; the change has rung for it.
                let Some((id, wanted)) = all.get_mut(&a.fd).filter(|e| **e == armed) else {
                    continue;
                };
                *wanted = 0;
                let flags = match a.revents & libc::POLLNVAL {
                    0 => u32::from(a.revents as u16),
                    _ => libc::EPOLLERR as u32,
                };
                reports.push(flagged(*id, flags));
            }
            Ok(reports)
        }
    }

    fn owned(fd: RawFd) -> io::Result<OwnedFd> {
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and owned by nobody else.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Returns the report of an event, unless that is the bell's.
    fn report(e: &libc::epoll_event) -> Option<Report> {
        let (key, flags) = (e.u64, e.events);
        (key != NOTIFY).then(|| flagged(key as usize, flags))
    }

    fn flagged(id: usize, flags: u32) -> Report {
        let is = |what: u32| flags & what != 0;
        (id, (is(READ), is(WRITE), is(ERROR)))
    }

    extern "C" fn on_ring(_: i32) {}

    /// Installs a handler for the signal, which ends a system call and does nothing else.
    fn install_handler() -> io::Result<()> {
        // SAFETY: zero is a value of these plain bits; the handler does nothing.
        unsafe {
            let mut how: libc::sigaction = std::mem::zeroed();
            how.sa_sigaction = on_ring as *const () as usize;
            match libc::sigaction(RING, &how, std::ptr::null_mut()) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    thread_local! {
        /// The signal mask of this thread while it waits beside the poll thread: its ordinary mask
        /// without [`RING`], which it blocks from now on at all other times. So a signal that
        /// arrives before the wait ends it.
        static WAIT_MASK: libc::sigset_t = {
            // SAFETY: zero is a value of these plain bits; the calls write the sets that they are
            // given.
            unsafe {
                let (mut ring, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
                libc::sigemptyset(&mut ring);
                libc::sigaddset(&mut ring, RING);
                libc::pthread_sigmask(libc::SIG_BLOCK, &ring, &mut before);
                libc::sigdelset(&mut before, RING);
                before
            }
        };
    }

    /// A thread that waits beside the poll thread, or is about to.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Waiter(libc::pthread_t);

    impl Waiter {
        /// Returns the waiter of this thread, which must never end.
        pub fn me() -> Waiter {
            WAIT_MASK.with(|_| ());
            // SAFETY: a plain call.
            Waiter(unsafe { libc::pthread_self() })
        }
        /// Ends its wait, or its next one.
        pub fn ring(self) {
            // SAFETY: threads that have waited do not end.
            unsafe { libc::pthread_kill(self.0, RING) };
        }
        /// Returns its number, which is not 0.
        pub fn number(self) -> usize {
            self.0 as usize
        }
        /// Returns the waiter with that [number](Waiter::number).
        pub fn of(number: usize) -> Waiter {
            Waiter(number as libc::pthread_t)
        }
    }

    fn control(epoll: &OwnedFd, op: i32, fd: RawFd, events: u32, key: u64) -> io::Result<()> {
        let mut e = libc::epoll_event { events, u64: key };
        // SAFETY: the event lives during the call.
        match unsafe { libc::epoll_ctl(epoll.as_raw_fd(), op, fd, &mut e) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn reports<'a>(
        epoll: &OwnedFd,
        events: &'a mut [libc::epoll_event],
        timeout_ms: i32,
        blocked: Option<&libc::sigset_t>,
    ) -> io::Result<&'a [libc::epoll_event]> {
        let most = events.len() as i32;
        // SAFETY: room for that many events; the mask lives during the call, or there is none.
        let n = unsafe {
            libc::epoll_pwait(
                epoll.as_raw_fd(),
                events.as_mut_ptr(),
                most,
                timeout_ms,
                blocked.map_or(std::ptr::null(), std::ptr::from_ref),
            )
        };
        let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        Ok(&events[..n])
    }

    /// Returns a set that contains the bell. It is reported until it is quiet; only the poll thread
    /// quiets it.
    fn epoll_with(bell: &Bell) -> io::Result<OwnedFd> {
        // SAFETY: a plain call.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let events = libc::EPOLLIN as u32;
        control(
            &epoll,
            libc::EPOLL_CTL_ADD,
            bell.read_end.as_raw_fd(),
            events,
            NOTIFY,
        )?;
        // The system may refuse to wait.
        reports(&epoll, &mut Events::new().0[..1], 0, None)?;
        Ok(epoll)
    }

    impl Kernel {
        pub fn new() -> io::Result<Kernel> {
            install_handler()?;
            let notify = Bell::new()?;
            match epoll_with(&notify) {
                Ok(epoll) => Ok(Kernel {
                    set: Set::Epoll(epoll),
                    notify,
                }),
                Err(e) => match e.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => Err(e),
                    _ => Ok(Kernel {
                        set: Set::Here(Listed::default()),
                        notify,
                    }),
                },
            }
        }
        /// Whether others may wait beside the poll thread.
        pub fn allows_beside(&self) -> bool {
            matches!(self.set, Set::Epoll(_))
        }
        /// Makes a descriptor known. Nothing is wanted of it yet.
        pub fn add(&self, fd: RawFd, id: usize) -> io::Result<()> {
            match &self.set {
                Set::Epoll(epoll) => {
                    let once = libc::EPOLLONESHOT as u32;
                    control(epoll, libc::EPOLL_CTL_ADD, fd, once, id as u64)
                }
                Set::Here(all) => all.add(fd, id),
            }
        }
        /// Sets what is wanted of it, and how: that it is readable, is writable, has an error or
        /// urgent data. A hang-up, which lasts, is reported even if only the last is wanted: once,
        /// since only changes are reported then.
        pub fn modify(
            &self,
            fd: RawFd,
            id: usize,
            (read, write, error): (bool, bool, bool),
            how: How,
        ) -> io::Result<()> {
            let only = |yes: bool, what: u32| if yes { what } else { 0 };
            let how = match how {
                _ if error && !read && !write => libc::EPOLLET as u32,
                How::Once => libc::EPOLLONESHOT as u32,
                How::Lasting => 0,
            };
            let events = only(read, READ) | only(write, WRITE) | only(error, ERROR);
            match &self.set {
                Set::Epoll(epoll) => {
                    control(epoll, libc::EPOLL_CTL_MOD, fd, events | how, id as u64)
                }
                Set::Here(all) => {
                    all.0.lock().insert(fd, (id, events));
                    self.notify()
                }
            }
        }
        /// Removes it.
        pub fn delete(&self, fd: RawFd) -> io::Result<()> {
            match &self.set {
                Set::Epoll(epoll) => control(epoll, libc::EPOLL_CTL_DEL, fd, 0, 0),
                Set::Here(all) => {
                    all.0.lock().remove(&fd);
                    Ok(())
                }
            }
        }
        /// Ends the current wait of the poll thread, or the next one.
        pub fn notify(&self) -> io::Result<()> {
            self.notify.ring();
            Ok(())
        }
        /// Appends what is ready to `to`, after waiting for something if `wait`.
        pub fn wait(
            &self,
            events: &mut Events,
            wait: bool,
            to: &mut Vec<Report>,
        ) -> io::Result<()> {
            self.wait_for(events, if wait { -1 } else { 0 }, to)
        }
        /// Appends what is ready to `to`, after waiting for at most `timeout_ms` milliseconds (-1:
        /// without limit).
        pub fn wait_for(
            &self,
            events: &mut Events,
            timeout_ms: i32,
            to: &mut Vec<Report>,
        ) -> io::Result<()> {
            match &self.set {
                Set::Epoll(epoll) => {
                    let got = reports(epoll, &mut events.0, timeout_ms, None)?;
                    if got.iter().any(|e| e.u64 == NOTIFY) {
                        self.notify.drain();
                    }
                    to.extend(got.iter().filter_map(report));
                }
                Set::Here(all) => to.extend(all.wait(&self.notify, timeout_ms)?),
            }
            Ok(())
        }
        /// Replaces the set, which another process shares, by a new one without any registration.
        pub fn renew(&self) -> io::Result<()> {
            self.notify.drain();
            match &self.set {
                Set::Epoll(epoll) => {
                    let fresh = epoll_with(&self.notify)?;
                    let to = epoll.as_raw_fd();
                    // SAFETY: the new descriptor takes the number of the old one.
                    match unsafe { libc::dup3(fresh.as_raw_fd(), to, libc::O_CLOEXEC) } {
                        ..0 => Err(io::Error::last_os_error()),
                        _ => Ok(()),
                    }
                }
                Set::Here(all) => {
                    all.0.lock().clear();
                    Ok(())
                }
            }
        }
        /// Appends some of what is ready, beside the poll thread, and waits for it if `wait`. The
        /// poll thread is not woken, since the system reports to the latest waiter. The wait ends
        /// empty if a thread rings this thread's [`Waiter`].
        pub fn wait_beside(&self, wait: bool, to: &mut impl Extend<Report>) {
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; FEW];
            let Set::Epoll(epoll) = &self.set else {
                return;
            };
            let got = match wait {
                true => WAIT_MASK.with(|blocked| reports(epoll, &mut events, -1, Some(blocked))),
                false => reports(epoll, &mut events, 0, None),
            };
            if let Ok(got) = got {
                to.extend(got.iter().filter_map(report));
            }
        }
        /// Sleeps for `ms` milliseconds, or until it is notified.
        pub fn nap(&self, ms: i32) {
            let mut bell = libc::pollfd {
                fd: self.notify.read_end.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one entry, which lives during the call.
            unsafe { libc::poll(&mut bell, 1, ms) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::super::wish::How;
    use super::Report;
    use polling::{Event, Poller};
    use std::io;
    use std::os::fd::{BorrowedFd, RawFd};
    use std::time::Duration;

    pub use polling::Events;

    /// Placeholder; see [`Kernel::allows_beside`].
    pub struct Waiter(usize);

    impl Waiter {
        /// See [`Kernel::allows_beside`].
        pub fn me() -> Waiter {
            Waiter(1)
        }
        /// See [`Kernel::allows_beside`].
        pub fn ring(self) {}
        /// See [`Kernel::allows_beside`].
        pub fn number(self) -> usize {
            self.0
        }
        /// See [`Kernel::allows_beside`].
        pub fn of(number: usize) -> Waiter {
            Waiter(number)
        }
    }

    /// See the module docs.
    pub struct Kernel(Poller);

    impl Kernel {
        pub fn new() -> io::Result<Kernel> {
            Poller::new().map(Kernel)
        }
        /// Whether others may wait beside the poll thread.
        pub fn allows_beside(&self) -> bool {
            false
        }
        /// Makes a descriptor known. Nothing is wanted of it yet.
        pub fn add(&self, fd: RawFd, id: usize) -> io::Result<()> {
            // SAFETY: the descriptor is open until it is forgotten, by the contract of `register`.
            unsafe { self.0.add(fd, Event::none(id)) }
        }
        /// Sets what is wanted of it. An error counts as input here.
        pub fn modify(
            &self,
            fd: RawFd,
            id: usize,
            (read, write, error): (bool, bool, bool),
            _: How,
        ) -> io::Result<()> {
            // SAFETY: the descriptor is open until it is forgotten, by the contract of `register`.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            self.0.modify(fd, Event::new(id, read || error, write))
        }
        /// Removes it.
        pub fn delete(&self, fd: RawFd) -> io::Result<()> {
            // SAFETY: the descriptor is open until it is forgotten, by the contract of `register`.
            self.0.delete(unsafe { BorrowedFd::borrow_raw(fd) })
        }
        /// Appends what is ready to `to`, after waiting for at most `timeout_ms` milliseconds (-1:
        /// without limit).
        pub fn wait_for(
            &self,
            events: &mut Events,
            timeout_ms: i32,
            to: &mut Vec<Report>,
        ) -> io::Result<()> {
            let limit = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
            events.clear();
            self.0.wait(events, limit)?;
            to.extend(
                events
                    .iter()
                    .map(|e| (e.key, (e.readable, e.writable, false))),
            );
            Ok(())
        }
        /// Unsupported: a set that is shared after a fork can't be replaced.
        pub fn renew(&self) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        /// Ends the current wait, or the next one.
        pub fn notify(&self) -> io::Result<()> {
            self.0.notify()
        }
        /// Appends what is ready to `to`, after waiting for something if `wait`.
        pub fn wait(
            &self,
            events: &mut Events,
            wait: bool,
            to: &mut Vec<Report>,
        ) -> io::Result<()> {
            events.clear();
            self.0.wait(events, (!wait).then_some(Duration::ZERO))?;
            to.extend(
                events
                    .iter()
                    .map(|e| (e.key, (e.readable, e.writable, e.readable))),
            );
            Ok(())
        }
        /// See [`Kernel::allows_beside`].
        pub fn wait_beside(&self, _: bool, _: &mut impl Extend<Report>) {}
        /// See [`Kernel::allows_beside`].
        pub fn nap(&self, _: i32) {}
    }
}
