//! How the operating system is asked which descriptors are ready: by epoll on Linux, or by poll(2) where that is refused (a filter of
//! system calls does so), elsewhere by crate `polling`. A descriptor is reported once for each time that something is wanted of it.
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

#[cfg(target_os = "linux")]
mod with_epoll {
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
        set: Set,
        notify: Bell,
    }

    /// Who knows which descriptors are waited for.
    enum Set {
        Epoll(OwnedFd),
        Here(Listed),
    }

    /// A descriptor that can be made readable, and others by which that is done.
    struct Bell {
        ear: OwnedFd,
        /// None: it is the same.
        hand: Option<OwnedFd>,
    }

    impl Bell {
        /// An event descriptor, or a pipe where those are refused.
        fn new() -> io::Result<Bell> {
            // SAFETY: a plain call.
            let made = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
            if let Ok(ear) = owned(made) {
                return Ok(Bell { ear, hand: None });
            }
            let mut ends = [-1; 2];
            // SAFETY: room for two numbers.
            let r = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
            if r != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Bell {
                ear: owned(ends[0])?,
                hand: Some(owned(ends[1])?),
            })
        }
        fn ring(&self) {
            let one = 1u64.to_ne_bytes();
            let hand = self.hand.as_ref().unwrap_or(&self.ear);
            // SAFETY: eight bytes that are good for the call. Where there is no room for more it has been rung.
            unsafe { libc::write(hand.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        }
        /// Has it be heard no more, until it is rung again.
        fn quiet(&self) {
            let mut some = [0u8; 4096];
            // SAFETY: room for so many bytes; the call doesn't block.
            while unsafe { libc::read(self.ear.as_raw_fd(), some.as_mut_ptr().cast(), some.len()) }
                == some.len() as isize
            {}
        }
    }

    /// What is wanted of descriptors, where the system doesn't keep it. The flags of poll(2) are those of epoll.
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
        /// Waits, and gives what is ready, of which nothing is wanted from then on.
        fn wait(&self, bell: &Bell, timeout_ms: i32) -> io::Result<Vec<Report>> {
            let entry = |fd: RawFd, flags: u32| libc::pollfd {
                fd,
                events: flags as i16,
                revents: 0,
            };
            let mut asked = vec![entry(bell.ear.as_raw_fd(), libc::EPOLLIN as u32)];
            let mut told = Vec::new();
            {
                let all = self.0.lock();
                for (&fd, &(id, flags)) in all.iter().filter(|(_, e)| e.1 != 0) {
                    asked.push(entry(fd, flags));
                    told.push((id, flags));
                }
            }
            // SAFETY: so many entries.
            let n = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as _, timeout_ms) };
            if n < 0 {
                return Err(io::Error::last_os_error());
            }
            if asked[0].revents != 0 {
                bell.quiet();
            }
            let mut all = self.0.lock();
            let mut reports = Vec::new();
            for (a, told) in asked[1..].iter().zip(told).filter(|(a, _)| a.revents != 0) {
                // Whatever has changed meanwhile is looked at by the next wait, which the change has rung for.
                let Some((id, wanted)) = all.get_mut(&a.fd).filter(|e| **e == told) else {
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
        // SAFETY: just made, and nobody else's.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// The state of a registration that an event tells.
    fn report(e: &libc::epoll_event) -> Option<Report> {
        let (key, flags) = (e.u64, e.events);
        (key != NOTIFY).then(|| flagged(key as usize, flags))
    }

    fn flagged(id: usize, flags: u32) -> Report {
        let is = |what: u32| flags & what != 0;
        (id, (is(READ), is(WRITE), is(ERROR)))
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

    fn control(epoll: &OwnedFd, op: i32, fd: RawFd, events: u32, key: u64) -> io::Result<()> {
        let mut e = libc::epoll_event { events, u64: key };
        // SAFETY: the event is good for the call.
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
        // SAFETY: room for so many events; the set is good for the call, or there is none.
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

    /// A set in which the bell is waited for. It is reported until it is quiet, which only the poll thread makes it.
    fn epoll_with(bell: &Bell) -> io::Result<OwnedFd> {
        // SAFETY: a plain call.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let events = libc::EPOLLIN as u32;
        control(
            &epoll,
            libc::EPOLL_CTL_ADD,
            bell.ear.as_raw_fd(),
            events,
            NOTIFY,
        )?;
        // The system may refuse to wait.
        reports(&epoll, &mut Events::new().0[..1], 0, None)?;
        Ok(epoll)
    }

    impl Kernel {
        pub fn new() -> io::Result<Kernel> {
            hear()?;
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
        pub fn beside(&self) -> bool {
            matches!(self.set, Set::Epoll(_))
        }
        /// Makes a descriptor known, of which nothing is wanted.
        pub fn add(&self, fd: RawFd, id: usize) -> io::Result<()> {
            match &self.set {
                Set::Epoll(epoll) => {
                    let once = libc::EPOLLONESHOT as u32;
                    control(epoll, libc::EPOLL_CTL_ADD, fd, once, id as u64)
                }
                Set::Here(all) => all.add(fd, id),
            }
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
        /// Forgets it.
        pub fn delete(&self, fd: RawFd) -> io::Result<()> {
            match &self.set {
                Set::Epoll(epoll) => control(epoll, libc::EPOLL_CTL_DEL, fd, 0, 0),
                Set::Here(all) => {
                    all.0.lock().remove(&fd);
                    Ok(())
                }
            }
        }
        /// Ends the wait of the poll thread that is under way, or the next.
        pub fn notify(&self) -> io::Result<()> {
            self.notify.ring();
            Ok(())
        }
        /// Adds what is ready (registration, readable, writable), after waiting for something if `wait`.
        pub fn wait(
            &self,
            events: &mut Events,
            wait: bool,
            to: &mut Vec<Report>,
        ) -> io::Result<()> {
            self.wait_for(events, if wait { -1 } else { 0 }, to)
        }
        /// Adds what is ready, after waiting for something for so many milliseconds at most; -1: for as long as it takes.
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
                        self.notify.quiet();
                    }
                    to.extend(got.iter().filter_map(report));
                }
                Set::Here(all) => to.extend(all.wait(&self.notify, timeout_ms)?),
            }
            Ok(())
        }
        /// A set of its own, without any registration, in the place of one that another process has too.
        pub fn renew(&self) -> io::Result<()> {
            self.notify.quiet();
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
        /// Adds some of what is ready, after waiting for something beside the poll thread, which stays out of it: of those who
        /// wait the system tells whoever came last. Ends without where somebody rings this thread's [`Waiter`].
        pub fn wait_beside(&self, to: &mut impl Extend<Report>) {
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; FEW];
            let Set::Epoll(epoll) = &self.set else {
                return;
            };
            let got = MEANWHILE.with(|blocked| reports(epoll, &mut events, -1, Some(blocked)));
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

    /// There is none: see [`Kernel::beside`].
    pub struct Waiter(usize);

    impl Waiter {
        /// See [`Kernel::beside`].
        pub fn me() -> Waiter {
            Waiter(1)
        }
        /// See [`Kernel::beside`].
        pub fn ring(self) {}
        /// See [`Kernel::beside`].
        pub fn number(self) -> usize {
            self.0
        }
        /// See [`Kernel::beside`].
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
        /// Whether others may wait beside the poll thread.
        pub fn beside(&self) -> bool {
            false
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
        /// See [`Kernel::beside`].
        pub fn wait_beside(&self, _: &mut impl Extend<Report>) {}
    }
}
