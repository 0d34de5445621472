//! System calls on sockets. Each returns the kernel's result or an error number.
//!
//! A call on a socket of a simulated world goes to [`world_sock`] instead. `sock_linux.rs` and
//! `sock_macos.rs` have what the systems name differently.

use super::descriptor::slices;
use super::sockaddr::SockAddr;
use super::{bytes, kernel_numbers as numbers, retry, unit, world_sock};
use purlin_kernel::os::failing::{self, Call};
use purlin_kernel::os::replay_log::{self, Answer, Asked, Verb};
use purlin_kernel::os::world;
use std::ffi::CStr;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

#[cfg(target_os = "linux")]
#[path = "sock_linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "sock_macos.rs"]
mod system;

/// Makes a call that takes something from a socket, unless it is to fail. A call that would find
/// nothing does not count: how many there are depends on real time.
#[inline(always)]
fn takes<T>(call: Call, fd: RawFd, real: impl FnOnce() -> Result<T, i32>) -> Result<T, i32> {
    if failing::is_on() && is_readable(fd) {
        failing::call(call, || Ok(()))?;
    }
    real()
}

/// Whether a call that reads from `fd` would not wait. Nothing is recorded.
#[cold]
fn is_readable(fd: RawFd) -> bool {
    let mut p = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&mut p, 1, 0) > 0 }
}

/// Makes a non-blocking socket.
pub(crate) fn socket(domain: i32, kind: i32, protocol: i32) -> Result<OwnedFd, i32> {
    if world::is_on() {
        return world_sock::socket(domain, kind, protocol);
    }
    let asked = || Asked::text(format!("a socket {domain} {kind} {protocol}"));
    let real = || system::socket(domain, kind, protocol);
    replay_log::opens(Verb::Socket, 's', asked, || {
        failing::call(Call::Socket, real)
    })
}

/// Runs `f` while this thread is in the network namespace that `file` names.
pub(crate) fn in_namespace<T>(file: &CStr, f: impl FnOnce() -> Result<T, i32>) -> Result<T, i32> {
    if world::is_on() {
        return world::refused("a network namespace");
    }
    system::in_namespace(file, f)
}

/// Duplicates a descriptor.
pub(crate) fn dup(fd: RawFd) -> Result<OwnedFd, i32> {
    let asked = || Asked::text("a descriptor");
    // SAFETY: a plain call; the new descriptor belongs to nobody else.
    replay_log::opens(Verb::Copy, 's', asked, || unsafe {
        let new = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0);
        unit(new)?;
        if world::knows(fd) {
            world::also(fd, new);
        }
        Ok(OwnedFd::from_raw_fd(new))
    })
}

/// Sets whether calls on a descriptor block.
pub(crate) fn set_blocking(fd: RawFd, on: bool) -> Result<(), i32> {
    // SAFETY: plain calls.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        unit(flags)?;
        let new = if on {
            flags & !libc::O_NONBLOCK
        } else {
            flags | libc::O_NONBLOCK
        };
        if new == flags {
            return Ok(());
        }
        unit(libc::fcntl(fd, libc::F_SETFL, new))
    }
}

/// Closes a descriptor.
///
/// # Safety
/// The caller owns the descriptor, and nothing uses it afterwards.
pub(crate) unsafe fn close(fd: RawFd) -> Result<(), i32> {
    // SAFETY: by the contract, nothing else uses it. The call is not repeated when interrupted,
    // because the descriptor is gone then too.
    let real = || unit(unsafe { libc::close(fd) });
    if world::knows(fd) {
        let r = real();
        world::close_unused();
        return r;
    }
    if replay_log::replays() {
        let answer = replay_log::call(Verb::Close, Some(fd), Asked::default, || Ok(()));
        // Closes the placeholder.
        let _ = real();
        return answer;
    }
    replay_log::call(Verb::Close, Some(fd), Asked::default, real)
}

/// An address in text form for people.
fn shown(a: &SockAddr) -> String {
    match a.domain() {
        libc::AF_INET => {
            let a = a.inet();
            let ip = std::net::Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
            format!("{ip}:{}", u16::from_be(a.sin_port))
        }
        libc::AF_INET6 => {
            let a = a.inet6();
            let ip = std::net::Ipv6Addr::from(a.sin6_addr.s6_addr);
            format!("[{ip}]:{}", u16::from_be(a.sin6_port))
        }
        _ => {
            let path = a.as_bytes().get(super::sockaddr::PATH_AT..);
            String::from_utf8_lossy(path.unwrap_or_default()).into_owned()
        }
    }
}

fn to(a: &SockAddr) -> Asked {
    Asked::text(format!("to {}", shown(a)))
}

/// Binds a socket to an address.
pub(crate) fn bind(fd: RawFd, a: &SockAddr) -> Result<(), i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::bind(of, a);
    }
    // SAFETY: the address is valid for the call and has the length given.
    let real = || unit(unsafe { libc::bind(fd, a.ptr(), a.size()) });
    replay_log::call(Verb::Bind, Some(fd), || Asked::text(shown(a)), real)
}
/// Begins to connect a socket.
pub(crate) fn connect(fd: RawFd, a: &SockAddr) -> Result<(), i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::connect(of, a);
    }
    // SAFETY: the address is valid for the call and has the length given.
    let real = || unit(unsafe { libc::connect(fd, a.ptr(), a.size()) });
    let real = || failing::call(Call::Connect, real);
    replay_log::call(Verb::Connect, Some(fd), || to(a), real)
}
/// Makes a socket listen, with at most `backlog` connections waiting.
pub(crate) fn listen(fd: RawFd, backlog: i32) -> Result<(), i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::listen(of, backlog);
    }
    // SAFETY: a plain call.
    let real = || unit(unsafe { libc::listen(fd, backlog) });
    replay_log::call(Verb::Listen, Some(fd), Asked::default, real)
}
/// Accepts the next connection of a listening socket, as a non-blocking socket, with its address.
pub(crate) fn accept(fd: RawFd) -> Result<(OwnedFd, SockAddr), i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::accept(of);
    }
    let real = || takes(Call::Accept, fd, || system::accept(fd));
    match replay_log::is_on() {
        false => real(),
        true => {
            let r = replay_log::call(Verb::Accept, Some(fd), Asked::default, || {
                real().map(|(s, a)| Accepted(s, a))
            })?;
            replay_log::name('s', &[r.0.as_raw_fd()]);
            Ok((r.0, r.1))
        }
    }
}

struct Accepted(OwnedFd, SockAddr);

impl Answer for Accepted {
    fn to_bytes(&self) -> Vec<u8> {
        self.1.to_bytes()
    }
    fn from_bytes(bytes: &[u8]) -> Option<Accepted> {
        Some(Accepted(
            replay_log::placeholder().ok()?,
            SockAddr::from_bytes(bytes)?,
        ))
    }
}
/// Shuts down one direction of a connection, or both.
pub(crate) fn shutdown(fd: RawFd, how: i32) -> Result<(), i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::shutdown(of, how);
    }
    // SAFETY: a plain call.
    let real = || unit(unsafe { libc::shutdown(fd, how) });
    replay_log::call(
        Verb::Shutdown,
        Some(fd),
        || Asked::text(how.to_string()),
        real,
    )
}
/// The address that a socket is bound to.
pub(crate) fn sock_name(fd: RawFd) -> Result<SockAddr, i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::sock_name(of);
    }
    replay_log::call(Verb::OwnName, Some(fd), Asked::default, || {
        // SAFETY: the room and its length are valid for the call.
        let (r, a) = SockAddr::filled(|p, len| unsafe { libc::getsockname(fd, p, len) });
        unit(r).map(|()| a)
    })
}
/// The address that a socket is connected to.
pub(crate) fn peer_name(fd: RawFd) -> Result<SockAddr, i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::peer_name(of);
    }
    replay_log::call(Verb::PeerName, Some(fd), Asked::default, || {
        // SAFETY: the room and its length are valid for the call.
        let (r, a) = SockAddr::filled(|p, len| unsafe { libc::getpeername(fd, p, len) });
        unit(r).map(|()| a)
    })
}

/// Receives at most `room` bytes to `to`.
///
/// # Safety
/// `to` is valid for writes of `room` bytes.
pub(crate) unsafe fn recv(fd: RawFd, to: *mut u8, room: usize, flags: i32) -> Result<usize, i32> {
    if let Some(of) = world::thing(fd) {
        // SAFETY: by the contract of this function.
        return unsafe { world_sock::recv_to(of, to, room, flags) }.map(|(n, _)| n);
    }
    // SAFETY: by the contract of this function.
    let real = || bytes(unsafe { libc::recv(fd, to.cast(), room, flags) });
    let real = || takes(Call::Recv, fd, real);
    // SAFETY: by the contract, there is room for that many bytes at `to`.
    unsafe { replay_log::fills(Verb::Read, fd, Asked::default, to, room, real) }
}
/// Receives into `to` without blocking. Returns how many bytes of it were filled.
pub(crate) fn recv_now(fd: RawFd, to: &mut [MaybeUninit<u8>]) -> Result<usize, i32> {
    // SAFETY: the slice has that many bytes.
    unsafe { recv(fd, to.as_mut_ptr().cast(), to.len(), libc::MSG_DONTWAIT) }
}
/// As [`recv_now`], but returns the bytes that were filled.
pub(crate) fn recv_front_now(fd: RawFd, to: &mut [MaybeUninit<u8>]) -> Result<&mut [u8], i32> {
    let n = recv_now(fd, to)?.min(to.len());
    // SAFETY: the system has written that many bytes of the slice.
    Ok(unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().cast(), n) })
}
/// As [`recv`], with the sender's address.
///
/// # Safety
/// As for [`recv`].
pub(crate) unsafe fn recv_from(
    fd: RawFd,
    to: *mut u8,
    room: usize,
    flags: i32,
) -> Result<(usize, SockAddr), i32> {
    if let Some(of) = world::thing(fd) {
        // SAFETY: by the contract of this function.
        let (n, from) = unsafe { world_sock::recv_to(of, to, room, flags) }?;
        return Ok((n, from.unwrap_or(SockAddr::none())));
    }
    let real = || {
        // SAFETY: the address and its length are valid for the call; the caller vouches for the
        // bytes.
        let (r, a) = SockAddr::filled(|p, len| unsafe {
            libc::recvfrom(fd, to.cast(), room, flags, p, len)
        });
        bytes(r).map(|n| (n, a))
    };
    let real = || takes(Call::Recv, fd, real);
    if !replay_log::is_on() {
        return real();
    }
    let whole = replay_log::call(Verb::Read, Some(fd), Asked::default, || {
        let (n, from) = real()?;
        // SAFETY: the system has filled that many bytes.
        let data = unsafe { std::slice::from_raw_parts(to, n.min(room)) }.to_vec();
        Ok(Whole::plain(n, data, from))
    })?;
    // SAFETY: by the contract of this function.
    unsafe { whole.put(to, room) };
    Ok((whole.bytes, whole.from))
}

/// A message as the log records it, with everything that comes with it.
struct Whole {
    /// Number of bytes by the system's count, which includes bytes that were cut off.
    bytes: usize,
    data: Vec<u8>,
    control: Vec<u8>,
    flags: i32,
    from: SockAddr,
}

impl Whole {
    fn plain(bytes: usize, data: Vec<u8>, from: SockAddr) -> Whole {
        Whole {
            bytes,
            data,
            control: Vec::new(),
            flags: 0,
            from,
        }
    }
    /// # Safety
    /// `to` is valid for writes of `room` bytes.
    unsafe fn put(&self, to: *mut u8, room: usize) {
        let n = self.data.len().min(room);
        // SAFETY: by the contract.
        unsafe { std::ptr::copy_nonoverlapping(self.data.as_ptr(), to, n) };
    }
}

impl Answer for Whole {
    fn to_bytes(&self) -> Vec<u8> {
        let from = self.from.to_bytes();
        let mut v = Vec::new();
        for n in [
            self.bytes as u64,
            self.flags as u64,
            self.control.len() as u64,
            from.len() as u64,
        ] {
            v.extend(n.to_be_bytes());
        }
        v.extend(&self.control);
        v.extend(from);
        v.extend(&self.data);
        v
    }
    fn from_bytes(b: &[u8]) -> Option<Whole> {
        let number = |i: usize| {
            let b: [u8; 8] = b.get(i * 8..i * 8 + 8)?.try_into().ok()?;
            usize::try_from(u64::from_be_bytes(b)).ok()
        };
        let rest = b.get(32..)?;
        let (control, rest) = rest.split_at_checked(number(2)?)?;
        let (from, data) = rest.split_at_checked(number(3)?)?;
        Some(Whole {
            bytes: number(0)?,
            data: data.to_vec(),
            control: control.to_vec(),
            flags: number(1)? as i32,
            from: SockAddr::from_bytes(from)?,
        })
    }
}

/// The parts of a received message beside its bytes.
pub(crate) struct Came {
    pub(crate) from: SockAddr,
    /// Number of bytes of control messages.
    pub(crate) control: usize,
    /// Flags that the kernel set.
    pub(crate) flags: i32,
}

impl Came {
    /// A message of a world has nothing beside its bytes and its sender; that of a connection has
    /// no sender.
    fn from(sender: Option<SockAddr>) -> Came {
        let none = || {
            // SAFETY: the length of an address, which is valid for the call.
            SockAddr::filled(|_, len| unsafe { *len = 0 }).1
        };
        Came {
            from: sender.unwrap_or_else(none),
            control: 0,
            flags: 0,
        }
    }
}

/// Receives a message of at most `room` bytes to `to`, with its sender's address and its control
/// messages. Repeats the call while signals interrupt it.
///
/// # Safety
/// `to` is valid for writes of `room` bytes.
pub(crate) unsafe fn recv_msg(
    fd: RawFd,
    to: *mut u8,
    room: usize,
    control: &mut [u8],
    flags: i32,
) -> Result<(usize, Came), i32> {
    if replay_log::is_on() {
        let room_of_control = control.len();
        let whole = replay_log::call(Verb::Read, Some(fd), Asked::default, || {
            // SAFETY: by the contract of this function.
            let (n, came) = unsafe { recv_msg_real(fd, to, room, control, flags) }?;
            // SAFETY: the system has filled that many bytes.
            let data = unsafe { std::slice::from_raw_parts(to, n.min(room)) }.to_vec();
            Ok(Whole {
                control: control[..came.control].to_vec(),
                flags: came.flags,
                ..Whole::plain(n, data, came.from)
            })
        })?;
        // SAFETY: by the contract of this function.
        unsafe { whole.put(to, room) };
        let n = whole.control.len().min(room_of_control);
        control[..n].copy_from_slice(&whole.control[..n]);
        let came = Came {
            from: whole.from,
            control: n,
            flags: whole.flags,
        };
        return Ok((whole.bytes, came));
    }
    // SAFETY: by the contract of this function.
    unsafe { recv_msg_real(fd, to, room, control, flags) }
}

/// The system call behind [`recv_msg`].
///
/// # Safety
/// As for [`recv_msg`].
unsafe fn recv_msg_real(
    fd: RawFd,
    to: *mut u8,
    room: usize,
    control: &mut [u8],
    flags: i32,
) -> Result<(usize, Came), i32> {
    if let Some(of) = world::thing(fd) {
        // SAFETY: by the contract of this function.
        let (n, from) = unsafe { world_sock::recv_to(of, to, room, flags) }?;
        return Ok((n, Came::from(from)));
    }
    takes(Call::Recv, fd, || Ok(()))?;
    let mut iov = libc::iovec {
        iov_base: to.cast(),
        iov_len: room,
    };
    let (mut control_len, mut came) = (0, 0);
    // SAFETY: all pointers in the header are valid for the call and have the lengths given; the
    // caller vouches for the bytes.
    let (n, from) = SockAddr::filled(|p, len| unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        m.msg_name = p.cast();
        m.msg_namelen = *len;
        m.msg_iov = &mut iov;
        m.msg_iovlen = 1;
        if !control.is_empty() {
            m.msg_control = control.as_mut_ptr().cast();
            m.msg_controllen = control.len() as _;
        }
        let n = retry(|| libc::recvmsg(fd, &mut m, flags));
        *len = m.msg_namelen;
        (control_len, came) = (m.msg_controllen as usize, m.msg_flags);
        n
    });
    let came = Came {
        from,
        control: control_len.min(control.len()),
        flags: came,
    };
    Ok((n?, came))
}

/// As [`recv_msg`], without blocking.
pub(crate) fn recv_msg_now(
    fd: RawFd,
    to: &mut [u8],
    control: &mut [u8],
) -> Result<(usize, Came), i32> {
    // SAFETY: the slice has that many bytes.
    unsafe { recv_msg(fd, to.as_mut_ptr(), to.len(), control, libc::MSG_DONTWAIT) }
}

/// Several messages that one call has received. Their data and their control messages lie one
/// behind the other.
pub(crate) struct Batch {
    data: Vec<u8>,
    control: Vec<u8>,
    room: usize,
    control_room: usize,
    /// For each message the number of its bytes and what came with it.
    came: Vec<(usize, Came)>,
}

impl Batch {
    /// Each message: its length, which may be that before it was cut, its data, what came with it,
    /// and its control messages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &[u8], &Came, &[u8])> {
        self.came.iter().enumerate().map(|(i, (n, came))| {
            let data = &self.data[i * self.room..][..(*n).min(self.room)];
            let control = &self.control[i * self.control_room..][..came.control];
            (*n, data, came, control)
        })
    }
}

/// Receives up to `count` available messages of at most `room` bytes each. Repeats the call while
/// signals interrupt it.
pub(crate) fn recv_msgs(
    fd: RawFd,
    count: usize,
    room: usize,
    control_room: usize,
    flags: i32,
) -> Result<Batch, i32> {
    if let Some(of) = world::thing(fd) {
        let (data, from) = world_sock::recv_from(of, room, flags)?;
        return Ok(Batch {
            came: vec![(data.len(), Came::from(from))],
            data,
            control: Vec::new(),
            room,
            control_room,
        });
    }
    let real = || system::recv_msgs(fd, count, room, control_room, flags);
    let real = || takes(Call::Recv, fd, real);
    if !replay_log::is_on() {
        return real();
    }
    let all = replay_log::call(Verb::Read, Some(fd), Asked::default, || {
        let batch = real()?;
        let whole = |(n, data, came, control): (usize, &[u8], &Came, &[u8])| Whole {
            control: control.to_vec(),
            flags: came.flags,
            ..Whole::plain(n, data.to_vec(), came.from)
        };
        Ok(Wholes(batch.iter().map(whole).collect()))
    })?;
    let mut batch = Batch {
        data: vec![0; all.0.len() * room],
        control: vec![0; all.0.len() * control_room],
        room,
        control_room,
        came: Vec::new(),
    };
    for (i, w) in all.0.into_iter().enumerate() {
        let (n, c) = (w.data.len().min(room), w.control.len().min(control_room));
        batch.data[i * room..][..n].copy_from_slice(&w.data[..n]);
        batch.control[i * control_room..][..c].copy_from_slice(&w.control[..c]);
        let came = Came {
            from: w.from,
            control: c,
            flags: w.flags,
        };
        batch.came.push((w.bytes, came));
    }
    Ok(batch)
}

/// Several messages as the log records them.
struct Wholes(Vec<Whole>);

impl Answer for Wholes {
    fn to_bytes(&self) -> Vec<u8> {
        let mut v = Vec::new();
        for w in &self.0 {
            let b = w.to_bytes();
            v.extend((b.len() as u64).to_be_bytes());
            v.extend(b);
        }
        v
    }
    fn from_bytes(mut b: &[u8]) -> Option<Wholes> {
        let mut all = Vec::new();
        while let Some((head, rest)) = b.split_at_checked(8) {
            let n = u64::from_be_bytes(head.try_into().ok()?);
            let (w, rest) = rest.split_at_checked(usize::try_from(n).ok()?)?;
            all.push(Whole::from_bytes(w)?);
            b = rest;
        }
        Some(Wholes(all))
    }
}

/// One of several messages that one call sends.
pub(crate) struct Message {
    /// Parts, at most `IOV_MAX`, which are valid for the call.
    pub(crate) parts: Vec<libc::iovec>,
    pub(crate) to: Option<SockAddr>,
    /// Control messages.
    pub(crate) control: Vec<u8>,
}

/// Sends as many messages as there is room for. Returns the number of bytes sent of each. Repeats
/// the call while signals interrupt it.
///
/// # Safety
/// The parts must name bytes that may be read.
pub(crate) unsafe fn send_msgs(
    fd: RawFd,
    messages: &mut [Message],
    flags: i32,
) -> Result<Vec<usize>, i32> {
    if let (Some(of), Some(first)) = (world::thing(fd), messages.first()) {
        let sent = world_sock::send(of, slices(&first.parts), first.to.as_ref())?;
        return Ok(vec![sent]);
    }
    if !replay_log::is_on() {
        // SAFETY: by the contract of this function.
        return unsafe { system::send_msgs(fd, messages, flags) };
    }
    let all: Vec<libc::iovec> = messages.iter().flat_map(|m| m.parts.clone()).collect();
    let asked = || Asked::data(slices(&all));
    let sent = replay_log::call(Verb::Write, Some(fd), asked, || {
        // SAFETY: by the contract of this function.
        let sent = unsafe { system::send_msgs(fd, messages, flags) }?;
        let bytes = sent.iter().flat_map(|n| (*n as u64).to_be_bytes());
        Ok(bytes.collect::<Vec<u8>>())
    })?;
    let number = |b: &[u8]| b.iter().fold(0, |n, b| n << 8 | usize::from(*b));
    Ok(sent.chunks(8).map(number).collect())
}

/// Sends bytes, to `to` if given.
pub(crate) fn send(
    fd: RawFd,
    data: &[u8],
    flags: i32,
    to: Option<&SockAddr>,
) -> Result<usize, i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::send(of, std::iter::once(data), to);
    }
    let flags = flags | libc::MSG_NOSIGNAL;
    let asked = || sent(std::iter::once(data), to);
    replay_log::call(Verb::Write, Some(fd), asked, || {
        failing::call(Call::Send, || Ok(()))?;
        // SAFETY: bytes and address are valid for the call.
        bytes(unsafe {
            match to {
                Some(a) => libc::sendto(
                    fd,
                    data.as_ptr().cast(),
                    data.len(),
                    flags,
                    a.ptr(),
                    a.size(),
                ),
                None => libc::send(fd, data.as_ptr().cast(), data.len(), flags),
            }
        })
    })
}

/// Describes bytes that are sent, for the log.
fn sent<'a>(parts: impl Iterator<Item = &'a [u8]>, to: Option<&SockAddr>) -> Asked {
    Asked {
        text: to.map_or(String::new(), |a| format!("for {}", shown(a))),
        ..Asked::data(parts)
    }
}

/// A part of a vector that is written.
pub(crate) fn iovec(bytes: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_ptr() as *mut libc::c_void,
        iov_len: bytes.len(),
    }
}

/// Sends parts, at most `IOV_MAX`, to `to` if given, with the control messages in `control`.
/// Repeats the call while signals interrupt it.
pub(crate) fn send_msg(
    fd: RawFd,
    iov: &[libc::iovec],
    to: Option<&SockAddr>,
    control: &[u8],
    flags: i32,
) -> Result<usize, i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::send(of, slices(iov), to);
    }
    // SAFETY: all pointers in the header are valid for the call and have the lengths given; nothing
    // is written through them.
    let real = || unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        if let Some(a) = to {
            m.msg_name = a.ptr() as *mut libc::c_void;
            m.msg_namelen = a.size();
        }
        m.msg_iov = iov.as_ptr() as *mut libc::iovec;
        m.msg_iovlen = iov.len() as _;
        if !control.is_empty() {
            m.msg_control = control.as_ptr() as *mut libc::c_void;
            m.msg_controllen = control.len() as _;
        }
        let flags = flags | libc::MSG_NOSIGNAL;
        retry(|| libc::sendmsg(fd, &m, flags))
    };
    let real = || failing::call(Call::Send, real);
    replay_log::call(Verb::Write, Some(fd), || sent(slices(iov), to), real)
}

/// As [`send_msg`], without blocking.
pub(crate) fn send_msg_now(
    fd: RawFd,
    iov: &[libc::iovec],
    to: Option<&SockAddr>,
    control: &[u8],
) -> Result<usize, i32> {
    send_msg(fd, iov, to, control, libc::MSG_DONTWAIT)
}

/// Sends at most `n` bytes of the file `from` from offset `*at`, and advances `*at`. Repeats the
/// call while signals interrupt it.
pub(crate) fn send_file(fd: RawFd, from: RawFd, at: &mut i64, n: usize) -> Result<usize, i32> {
    if world::knows(fd) {
        return world::refused("sending a file");
    }
    let asked = || Asked::text(format!("of a file, {n} bytes from {at}"));
    let begun = *at;
    let r = replay_log::call(Verb::Write, Some(fd), asked, || {
        failing::call(Call::Send, || Ok(()))?;
        system::send_file(fd, from, begun, n)
    });
    *at = begun + *r.as_ref().unwrap_or(&0) as i64;
    r
}

/// Sets an option of the kernel.
pub(crate) fn set_option(fd: RawFd, level: i32, name: i32, value: &[u8]) -> Result<(), i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::set_option(of, level, name, value);
    }
    let asked = || Asked {
        text: format!("{level} {name}"),
        ..Asked::data(std::iter::once(value))
    };
    replay_log::call(Verb::SetOption, Some(fd), asked, || {
        // SAFETY: the slice has that many bytes.
        unit(unsafe {
            libc::setsockopt(
                fd,
                level,
                name,
                value.as_ptr().cast(),
                value.len() as libc::socklen_t,
            )
        })
    })
}

/// Sets an option of the kernel without changing others. Setting one may reset priority and type of
/// service, which are restored. If `must`, a failure to restore them is an error.
pub(crate) fn set_option_only(
    fd: RawFd,
    level: i32,
    name: i32,
    value: &[u8],
    must: bool,
) -> Result<(), i32> {
    let priority = match numbers::SO_PRIORITY {
        Some(n) => get_int(fd, libc::SOL_SOCKET, n).map(|v| (n, v)),
        None => Err(libc::ENOPROTOOPT),
    };
    let tos = get_int(fd, libc::IPPROTO_IP, libc::IP_TOS);
    set_option(fd, level, name, value)?;
    if numbers::SO_PRIORITY == Some(name) {
        return Ok(());
    }
    let restore = |level, value: Result<(i32, i32), i32>| match value {
        Ok((name, v)) => set_option(fd, level, name, &v.to_ne_bytes()),
        Err(_) => Ok(()),
    };
    if name != libc::IP_TOS {
        let r = restore(libc::IPPROTO_IP, tos.map(|v| (libc::IP_TOS, v)));
        if must {
            r?;
        }
    }
    match restore(libc::SOL_SOCKET, priority) {
        // Some priorities cannot be set even by a socket that has them.
        Err(e) if must && e != libc::EPERM => Err(e),
        _ => Ok(()),
    }
}

/// Reads an option of the kernel into `to`. Returns its length in bytes.
pub(crate) fn get_option(fd: RawFd, level: i32, name: i32, to: &mut [u8]) -> Result<usize, i32> {
    if let Some(of) = world::thing(fd) {
        return world_sock::get_option(of, level, name, to);
    }
    let (room, to) = (to.len(), to.as_mut_ptr());
    let asked = || Asked::text(format!("{level} {name}"));
    let real = || {
        let mut len = room as libc::socklen_t;
        // SAFETY: the slice has that many bytes.
        unit(unsafe { libc::getsockopt(fd, level, name, to.cast(), &mut len) })?;
        Ok((len as usize).min(room))
    };
    // SAFETY: the slice has that many bytes.
    unsafe { replay_log::fills(Verb::GetOption, fd, asked, to, room, real) }
}

/// Reads an option that is an `int`. Short values are zero-extended.
pub(crate) fn get_int(fd: RawFd, level: i32, name: i32) -> Result<i32, i32> {
    let mut b = [0u8; size_of::<i32>()];
    get_option(fd, level, name, &mut b)?;
    Ok(i32::from_ne_bytes(b))
}

/// Rounds up to the alignment of control messages. Data begin behind the aligned header.
pub(crate) fn aligned(n: usize) -> usize {
    n.next_multiple_of(system::CONTROL_ALIGNMENT)
}

/// The control messages in a buffer that the kernel filled: level, type, data.
pub(crate) fn control_messages(buf: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    let head = size_of::<libc::cmsghdr>();
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = buf.get(at..)?;
        if rest.len() < head {
            return None;
        }
        // SAFETY: the bytes are as many as a header has; they are read unaligned.
        let h: libc::cmsghdr = unsafe { rest.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
        let len = h.cmsg_len as usize;
        let data = rest.get(aligned(head)..len)?;
        at += aligned(len);
        Some((h.cmsg_level, h.cmsg_type, data))
    })
}

/// Appends a control message that holds an `int`.
pub(crate) fn push_control(buf: &mut Vec<u8>, level: i32, kind: i32, value: i32) {
    let head = size_of::<libc::cmsghdr>();
    // SAFETY: plain integers, for which zeros are valid.
    let mut h: libc::cmsghdr = unsafe { std::mem::zeroed() };
    h.cmsg_level = level;
    h.cmsg_type = kind;
    h.cmsg_len = (aligned(head) + size_of::<i32>()) as _;
    // SAFETY: all bytes of the header, which has no padding here, are initialised.
    buf.extend_from_slice(unsafe { std::slice::from_raw_parts((&raw const h).cast::<u8>(), head) });
    buf.resize(aligned(buf.len()), 0);
    buf.extend_from_slice(&value.to_ne_bytes());
    buf.resize(aligned(buf.len()), 0);
}

/// Reads an option without room for its value.
pub(crate) fn touch_option(fd: RawFd, level: i32, name: i32) -> Result<(), i32> {
    if world::knows(fd) {
        return Err(libc::EFAULT);
    }
    let asked = || Asked::text(format!("{level} {name}"));
    // SAFETY: the kernel refuses null pointers that it would write through.
    let real = || {
        unit(unsafe {
            libc::getsockopt(fd, level, name, std::ptr::null_mut(), std::ptr::null_mut())
        })
    };
    replay_log::call(Verb::GetOption, Some(fd), asked, real)
}
