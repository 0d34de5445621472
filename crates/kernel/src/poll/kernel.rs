//! How the operating system is asked which descriptors are ready: by epoll where there is one, elsewhere by crate
//! `polling`. A descriptor is reported once for each time that something is wanted of it.
//!
//! Crate `polling` isn't used for epoll: it makes five system calls of each wait, where one does, and lets one thread wait
//! at a time.

#[cfg(not(target_os = "linux"))]
pub use other::{Events, Kernel, Waiter};
#[cfg(target_os = "linux")]
pub use with_epoll::{Events, Kernel, Waiter};

/// A registration, and whether it is readable, is writable, and has an error or urgent data.
pub type Report = (usize, (bool, bool, bool));

/// Reports that [`Kernel::wait_beside`] gives at most.
pub const FEW: usize = 16;

/// Whether others may wait beside the poll thread.
pub const BESIDE: bool = cfg!(target_os = "linux");

#[cfg(target_os = "linux")]
mod with_epoll {
    use super::{FEW, Report};
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

    const READ: u32 =
        (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLPRI | libc::EPOLLHUP | libc::EPOLLERR)
            as u32;
    const WRITE: u32 = (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32;
    /// The events of errors and urgent data.
    const ERROR: u32 = (libc::EPOLLPRI | libc::EPOLLERR) as u32;
    /// The number by which the descriptor that ends a wait of the poll thread is known.
    const NOTIFY: u64 = u64::MAX;
    /// The signal that ends a wait beside it. It is one that nothing else is done with, and that debuggers pass on without a word.
    const RING: i32 = libc::SIGURG;
    /// Reports that one wait gives at most.
    const MANY: usize = 1024;

    /// Room for what a wait reports.
    pub struct Events(Vec<libc::epoll_event>);

    impl Events {
        pub fn new() -> Events {
            Events(vec![libc::epoll_event { events: 0, u64: 0 }; MANY])
        }
    }

    /// See the module head.
    pub struct Kernel {
        epoll: OwnedFd,
        notify: OwnedFd,
    }

    fn owned(fd: RawFd) -> io::Result<OwnedFd> {
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and nobody else's.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// The state of a registration that an event tells.
    fn report(e: &libc::epoll_event) -> Option<Report> {
        let (key, flags) = (e.u64, e.events);
        let is = |what: u32| flags & what != 0;
        (key != NOTIFY).then_some((key as usize, (is(READ), is(WRITE), is(ERROR))))
    }

    extern "C" fn rung(_: i32) {}

    /// Has the signal end a call of the system, and nothing else.
    fn hear() -> io::Result<()> {
        // SAFETY: zero is a value of these plain bits; the handler does nothing.
        unsafe {
            let mut how: libc::sigaction = std::mem::zeroed();
            how.sa_sigaction = rung as *const () as usize;
            match libc::sigaction(RING, &how, std::ptr::null_mut()) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    thread_local! {
        /// The signals that this thread blocks while it waits beside the poll thread: those that it blocks otherwise, but for [`RING`],
        /// which it blocks from now on whenever it doesn't wait so. Thus one that comes before the wait ends that.
        static MEANWHILE: libc::sigset_t = {
            // SAFETY: zero is a value of these plain bits; the calls write the sets that they are told.
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

    /// One who waits beside the poll thread, or is about to.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Waiter(libc::pthread_t);

    impl Waiter {
        /// This thread, which does not end.
        pub fn me() -> Waiter {
            MEANWHILE.with(|_| ());
            // SAFETY: a plain call.
            Waiter(unsafe { libc::pthread_self() })
        }
        /// Ends its wait, or its next.
        pub fn ring(self) {
            // SAFETY: whoever has waited does not end.
            unsafe { libc::pthread_kill(self.0, RING) };
        }
        /// As a number, which is not 0.
        pub fn number(self) -> usize {
            self.0 as usize
        }
        /// The waiter that has this [number](Waiter::number).
        pub fn of(number: usize) -> Waiter {
            Waiter(number as libc::pthread_t)
        }
    }

    impl Kernel {
        pub fn new() -> io::Result<Kernel> {
            // SAFETY: plain calls.
            let (epoll, notify) = unsafe {
                (
                    owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?,
                    owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?,
                )
            };
            let k = Kernel { epoll, notify };
            // Is reported until it is read, which only the poll thread does.
            let events = libc::EPOLLIN as u32;
            k.control(libc::EPOLL_CTL_ADD, k.notify.as_raw_fd(), events, NOTIFY)?;
            hear()?;
            Ok(k)
        }
        fn control(&self, op: i32, fd: RawFd, events: u32, key: u64) -> io::Result<()> {
            let mut e = libc::epoll_event { events, u64: key };
            // SAFETY: the event is good for the call.
            match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), op, fd, &mut e) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
        /// Makes a descriptor known, of which nothing is wanted.
        pub fn add(&self, fd: RawFd, id: usize) -> io::Result<()> {
            self.control(
                libc::EPOLL_CTL_ADD,
                fd,
                libc::EPOLLONESHOT as u32,
                id as u64,
            )
        }
        /// Says what is wanted of it: that it is readable, is writable, has an error or urgent data. A hang-up, which lasts, is
        /// reported to who wants nothing but the last as well: once, since only what changes is.
        pub fn modify(
            &self,
            fd: RawFd,
            id: usize,
            (read, write, error): (bool, bool, bool),
        ) -> io::Result<()> {
            let only = |yes: bool, what: u32| if yes { what } else { 0 };
            let how = match error && !read && !write {
                true => libc::EPOLLET as u32,
                false => libc::EPOLLONESHOT as u32,
            };
            let events = only(read, READ) | only(write, WRITE) | only(error, ERROR) | how;
            self.control(libc::EPOLL_CTL_MOD, fd, events, id as u64)
        }
        /// Forgets it.
        pub fn delete(&self, fd: RawFd) -> io::Result<()> {
            self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
        }
        /// Ends the wait of the poll thread that is under way, or the next.
        pub fn notify(&self) -> io::Result<()> {
            let one = 1u64.to_ne_bytes();
            // SAFETY: eight bytes that are good for the call. Where the count is full the wait ends without.
            unsafe { libc::write(self.notify.as_raw_fd(), one.as_ptr().cast(), one.len()) };
            Ok(())
        }
        fn reports<'a>(
            &self,
            events: &'a mut [libc::epoll_event],
            timeout_ms: i32,
            blocked: Option<&libc::sigset_t>,
        ) -> io::Result<&'a [libc::epoll_event]> {
            let most = events.len() as i32;
            // SAFETY: room for so many events; the set is good for the call, or there is none.
            let n = unsafe {
                libc::epoll_pwait(
                    self.epoll.as_raw_fd(),
                    events.as_mut_ptr(),
                    most,
                    timeout_ms,
                    blocked.map_or(std::ptr::null(), std::ptr::from_ref),
                )
            };
            let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
            Ok(&events[..n])
        }
        /// Takes note of what [`Self::notify`] has told.
        fn heard(&self) {
            let mut count = [0u8; 8];
            // SAFETY: eight bytes that are good for the call, which doesn't block.
            unsafe { libc::read(self.notify.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
        }
        /// Adds what is ready (registration, readable, writable), after waiting for something if `wait`.
        pub fn wait(
            &self,
            events: &mut Events,
            wait: bool,
            to: &mut Vec<Report>,
        ) -> io::Result<()> {
            let got = self.reports(&mut events.0, if wait { -1 } else { 0 }, None)?;
            if got.iter().any(|e| e.u64 == NOTIFY) {
                self.heard();
            }
            to.extend(got.iter().filter_map(report));
            Ok(())
        }
        /// Adds what is ready, after waiting for something for so many milliseconds at most; -1: for as long as it takes.
        pub fn wait_for(
            &self,
            events: &mut Events,
            timeout_ms: i32,
            to: &mut Vec<Report>,
        ) -> io::Result<()> {
            let got = self.reports(&mut events.0, timeout_ms, None)?;
            if got.iter().any(|e| e.u64 == NOTIFY) {
                self.heard();
            }
            to.extend(got.iter().filter_map(report));
            Ok(())
        }
        /// A set of its own, without any registration, in the place of one that another process has too.
        pub fn renew(&self) -> io::Result<()> {
            // SAFETY: plain calls; the new descriptor takes the number of the old one.
            unsafe {
                let fresh = owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
                let to = self.epoll.as_raw_fd();
                if libc::dup3(fresh.as_raw_fd(), to, libc::O_CLOEXEC) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            self.heard();
            let events = libc::EPOLLIN as u32;
            self.control(libc::EPOLL_CTL_ADD, self.notify.as_raw_fd(), events, NOTIFY)
        }
        /// Adds some of what is ready, after waiting for something beside the poll thread, which stays out of it: of those who
        /// wait the system tells whoever came last. Ends without where somebody rings this thread's [`Waiter`].
        pub fn wait_beside(&self, to: &mut impl Extend<Report>) {
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; FEW];
            let got = MEANWHILE.with(|blocked| self.reports(&mut events, -1, Some(blocked)));
            if let Ok(got) = got {
                to.extend(got.iter().filter_map(report));
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::Report;
    use polling::{Event, Poller};
    use std::io;
    use std::os::fd::{BorrowedFd, RawFd};
    use std::time::Duration;

    pub use polling::Events;

    /// See [`super::BESIDE`]: there is none.
    pub struct Waiter(usize);

    impl Waiter {
        /// See [`super::BESIDE`].
        pub fn me() -> Waiter {
            Waiter(1)
        }
        /// See [`super::BESIDE`].
        pub fn ring(self) {}
        /// See [`super::BESIDE`].
        pub fn number(self) -> usize {
            self.0
        }
        /// See [`super::BESIDE`].
        pub fn of(number: usize) -> Waiter {
            Waiter(number)
        }
    }

    /// See the module head.
    pub struct Kernel(Poller);

    impl Kernel {
        pub fn new() -> io::Result<Kernel> {
            Poller::new().map(Kernel)
        }
        /// Makes a descriptor known, of which nothing is wanted.
        pub fn add(&self, fd: RawFd, id: usize) -> io::Result<()> {
            // SAFETY: the descriptor is open until it is forgotten, by the contract of `register`.
            unsafe { self.0.add(fd, Event::none(id)) }
        }
        /// Says what is wanted of it.
        /// An error counts as input here.
        pub fn modify(
            &self,
            fd: RawFd,
            id: usize,
            (read, write, error): (bool, bool, bool),
        ) -> io::Result<()> {
            // SAFETY: as above.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            self.0.modify(fd, Event::new(id, read || error, write))
        }
        /// Forgets it.
        pub fn delete(&self, fd: RawFd) -> io::Result<()> {
            // SAFETY: as above.
            self.0.delete(unsafe { BorrowedFd::borrow_raw(fd) })
        }
        /// Adds what is ready, after waiting for something for so many milliseconds at most; -1: for as long as it takes.
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
        /// Not here: a set that is shared after a fork can't be replaced.
        pub fn renew(&self) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        /// Ends the wait that is under way, or the next.
        pub fn notify(&self) -> io::Result<()> {
            self.0.notify()
        }
        /// Adds what is ready (registration, readable, writable), after waiting for something if `wait`.
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
        /// See [`super::BESIDE`].
        pub fn wait_beside(&self, _: &mut impl Extend<Report>) {}
    }
}
