//! Natives of module `prim_socket`, which module `socket` of the library stands on.
//!
//! # A socket
//! A reference to a socket is a magic reference to a [`Handle`], which owns a share of a [`Sock`]. Nothing here blocks:
//! descriptors are in non-blocking mode. A call that would have to wait answers `select`, and its caller gets
//! `{'$socket', Socket, select, Ref}` when it is worth calling again, or `{'$socket', Socket, abort, {Ref, Reason}}`
//! when that will not come.
//!
//! # Parts
//! [`state`] is what a socket is and who waits for it; this file opens, connects and closes; [`io`] sends and receives
//! bytes, [`message`] messages with what the kernel says about them, [`batch`] several at once, [`sendfile`] files; [`sctp`] is
//! about associations, which have several addresses; [`options`] has the table of
//! options, [`values`] their values; [`addr`] stands between addresses as maps and as the kernel has them; [`ioctl`]
//! asks about interfaces; [`info`] tells what there is. The operating system is called by [`crate::os`].

pub mod addr;
mod batch;
mod info;
mod io;
mod ioctl;
mod message;
mod options;
mod sctp;
mod sendfile;
mod state;
mod values;

use crate::cx::{BifResult, Cx, Fail};
use crate::native_state;
use crate::os::sock as sys;
use crate::posix::errno_atom;
use crate::{bifs, lazy_atoms};
use addr::SockAddr;
use purlin_term::release::{self, ACCEPTED_CONNECTED};
use purlin_term::{Alloc, Term, am, arith, map};
use state::{ACCEPTING, BOUND, CONNECTED, CONNECTING, Handle, LISTENING, Request, Sock};
pub use state::{open_count, owner_exit};
use std::os::fd::IntoRawFd;
use std::sync::Arc;

lazy_atoms! {
    abort = "abort";
    already = "already";
    closed = "closed";
    ctrl = "ctrl";
    dgram = "dgram";
    domain_atom = "domain";
    dup_atom = "dup";
    family = "family";
    flags_atom = "flags";
    inet = "inet";
    inet6 = "inet6";
    invalid_atom = "invalid";
    integer_range = "integer_range";
    iov = "iov";
    level_atom = "level";
    more = "more";
    netns = "netns";
    not_found = "not_found";
    not_owner = "not_owner";
    path_atom = "path";
    raw = "raw";
    rdm = "rdm";
    select = "select";
    select_sent = "select_sent";
    seqpacket = "seqpacket";
    sockaddr = "sockaddr";
    socket_atom = "socket";
    state_atom = "state";
    stream = "stream";
    tag = "$socket";
    unspec = "unspec";
    use_registry = "use_registry";
    zero = "zero";
}

/// `prim_socket` has been loaded: takes over what it was given (the registry, whether sockets are told to it, whether
/// debugging is on).
pub fn on_load(extra: Term) {
    state::configure(extra);
}

/// The socket behind a reference.
fn sock<'a>(t: Term) -> Result<&'a Arc<Sock>, Fail> {
    native_state::get::<Handle>(t)
        .map(|h| &h.0)
        .ok_or(Fail::Badarg)
}

/// `{error, Name}`
fn errno(cx: &mut Cx, e: i32) -> Term {
    let e = errno_atom(e);
    cx.err(e)
}
fn done(cx: &mut Cx, r: Result<(), i32>) -> BifResult {
    Ok(match r {
        Ok(()) => am::OK,
        Err(e) => errno(cx, e),
    })
}
/// `{error, closed}`
fn error_closed(cx: &mut Cx) -> Term {
    cx.err(closed())
}
/// `{invalid, What}`
fn invalid(cx: &mut Cx, what: Term) -> Term {
    cx.tuple(&[invalid_atom(), what])
}
/// `{error, {invalid, What}}`
fn error_invalid(cx: &mut Cx, what: Term) -> Term {
    let i = invalid(cx, what);
    cx.err(i)
}
/// Raises `{invalid, What}`.
fn raise_invalid(cx: &mut Cx, what: Term) -> Fail {
    cx.error2(invalid_atom(), what)
}
/// The answer to an integer that the system has no room for.
fn out_of_range(cx: &mut Cx, t: Term) -> Term {
    let t = cx.tuple(&[integer_range(), t]);
    invalid(cx, t)
}

fn int(t: Term) -> Option<i32> {
    t.as_small().and_then(|n| i32::try_from(n).ok())
}
fn uint(t: Term) -> Option<u32> {
    t.as_small().and_then(|n| u32::try_from(n).ok())
}
/// The value of an integer that must be in range; `None`: to be answered by [`out_of_range`].
fn in_range<T>(t: Term, v: Option<T>) -> Result<Option<T>, Fail> {
    match v {
        None if !t.is_integer() => Err(Fail::Badarg),
        v => Ok(v),
    }
}
/// A size that fits the system's signed sizes.
fn size_of_term(t: Term) -> Option<usize> {
    arith::to_u64(t)
        .and_then(|n| isize::try_from(n).ok())
        .map(|n| n as usize)
}
fn bool_of(m: Term, key: Term, default: bool) -> bool {
    map::get(m, key)
        .and_then(|v| v.as_bool())
        .unwrap_or(default)
}

/// The kernel's code of a domain. Integers are passed on.
fn domain_code(t: Term) -> Option<i32> {
    match t {
        _ if t == inet() => Some(libc::AF_INET),
        _ if t == inet6() => Some(libc::AF_INET6),
        _ if t == am::LOCAL => Some(libc::AF_UNIX),
        _ if t == unspec() => Some(libc::AF_UNSPEC),
        _ => int(t),
    }
}
/// The name of a domain, or its code where it has none.
pub(crate) fn domain_term(code: i32) -> Term {
    match code {
        libc::AF_INET => inet(),
        libc::AF_INET6 => inet6(),
        libc::AF_UNIX => am::LOCAL,
        libc::AF_UNSPEC => unspec(),
        n => Term::small(n.into()),
    }
}
fn type_code(t: Term) -> Option<i32> {
    match t {
        _ if t == stream() => Some(libc::SOCK_STREAM),
        _ if t == dgram() => Some(libc::SOCK_DGRAM),
        _ if t == raw() => Some(libc::SOCK_RAW),
        _ if t == seqpacket() => Some(libc::SOCK_SEQPACKET),
        _ => int(t),
    }
}
/// The name of a type of sockets, or its code where it has none.
pub(crate) fn type_term(code: i32) -> Term {
    match code {
        libc::SOCK_STREAM => stream(),
        libc::SOCK_DGRAM => dgram(),
        libc::SOCK_RAW => raw(),
        libc::SOCK_SEQPACKET => seqpacket(),
        libc::SOCK_RDM => rdm(),
        n => Term::small(n.into()),
    }
}
fn level_code(t: Term) -> Option<i32> {
    if t == socket_atom() {
        Some(libc::SOL_SOCKET)
    } else {
        int(t)
    }
}
fn level_term(code: i32) -> Term {
    if code == libc::SOL_SOCKET {
        socket_atom()
    } else {
        Term::small(code.into())
    }
}

/// The file named by option `netns`, if it is a string of single bytes.
fn namespace(opts: Term) -> Option<std::ffi::CString> {
    let v = map::get(opts, netns())?;
    let bytes = match v.as_binary() {
        Some(b) => b.into_owned(),
        None => latin1(v)?,
    };
    std::ffi::CString::new(bytes).ok()
}
/// The bytes of a string of characters below 256.
fn latin1(t: Term) -> Option<Vec<u8>> {
    t.list_to_vec()?
        .into_iter()
        .map(|c| c.as_small().and_then(|n| u8::try_from(n).ok()))
        .collect()
}

fn open_4(cx: &mut Cx, [d, t, protocol, opts]: [Term; 4]) -> BifResult {
    let Some(proto) = in_range(protocol, int(protocol))? else {
        return Ok(out_of_range(cx, protocol));
    };
    if !opts.is_map() {
        return Err(Fail::Badarg);
    }
    let Some(domain) = domain_code(d) else {
        return Ok(invalid(cx, domain_atom()));
    };
    let Some(kind) = type_code(t) else {
        return Ok(invalid(cx, am::TYPE));
    };
    let opened = match namespace(opts) {
        Some(file) => sys::in_namespace(&file, || sys::socket(domain, kind, proto)),
        None => sys::socket(domain, kind, proto),
    };
    let opened = opened.map(IntoRawFd::into_raw_fd);
    let fd = match opened {
        Ok(fd) => fd,
        Err(e) => return Ok(errno(cx, e)),
    };
    let real = if proto == 0 {
        sys::get_int(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL).unwrap_or(0)
    } else {
        proto
    };
    let new = Sock::new(fd, domain, kind, real);
    new.settings(opts);
    let r = state::publish(cx, new);
    Ok(cx.ok(r))
}

fn open_2(cx: &mut Cx, [fd, opts]: [Term; 2]) -> BifResult {
    let Some(given) = in_range(fd, int(fd))? else {
        return Ok(out_of_range(cx, fd));
    };
    if !opts.is_map() {
        return Err(Fail::Badarg);
    }
    let own = |option| sys::get_int(given, libc::SOL_SOCKET, option).ok();
    let told = |key: Term, code: fn(Term) -> Option<i32>| map::get(opts, key).and_then(code);
    let Some(domain) = own(libc::SO_DOMAIN).or_else(|| told(domain_atom(), domain_code)) else {
        return Ok(invalid(cx, domain_atom()));
    };
    let Some(kind) = own(libc::SO_TYPE).or_else(|| told(am::TYPE, type_code)) else {
        return Ok(invalid(cx, am::TYPE));
    };
    let protocol = own(libc::SO_PROTOCOL)
        .or_else(|| told(options::protocol(), int))
        .unwrap_or(0);
    let dup = bool_of(opts, dup_atom(), true);
    let fd = if dup {
        match sys::dup(given) {
            Ok(fd) => fd.into_raw_fd(),
            Err(e) => return Ok(errno(cx, e)),
        }
    } else {
        given
    };
    let _ = sys::set_blocking(fd, false);
    let new = Sock::new(fd, domain, kind, protocol);
    {
        let mut s = new.lock();
        s.given = Some(given);
        s.close_on_close = dup;
        if sys::peer_name(fd).is_ok() {
            s.write_state |= CONNECTED;
        }
    }
    new.settings(opts);
    let r = state::publish(cx, new);
    Ok(cx.ok(r))
}

fn bind_2(cx: &mut Cx, [s, a]: [Term; 2]) -> BifResult {
    let sock = sock(s)?;
    let Some(a) = SockAddr::from_map(a) else {
        return Ok(invalid(cx, sockaddr()));
    };
    let mut s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let r = sys::bind(s.fd, &a);
    if r.is_ok() {
        s.read_state |= BOUND;
    }
    done(cx, r)
}

fn connect_3(cx: &mut Cx, [me, r, a]: [Term; 3]) -> BifResult {
    let sock = sock(me)?;
    if !r.is_ref() {
        return Err(Fail::Badarg);
    }
    let Some(a) = SockAddr::from_map(a) else {
        return Ok(invalid(cx, sockaddr()));
    };
    let mut s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    if s.writers.current.is_some() {
        return Ok(error_invalid(cx, state_atom()));
    }
    if let Some(c) = &s.connector {
        if c.pid != cx.self_pid() {
            return Ok(cx.err(already()));
        }
        return finish_connect(cx, &mut s);
    }
    match sys::connect(s.fd, &a) {
        Ok(()) => {
            s.write_state |= CONNECTED;
            Ok(am::OK)
        }
        Err(libc::EAGAIN | libc::EINPROGRESS) => {
            let c = Request::new(cx.self_pid(), me, r);
            if let Err(e) = s.select_write(sock, &c) {
                return Ok(errno(cx, e));
            }
            s.involve(sock, c.pid);
            s.connector = Some(c);
            s.write_state |= CONNECTING | state::SELECTED;
            Ok(select())
        }
        Err(e) => Ok(errno(cx, e)),
    }
}

/// The process that connects has been told that it is done.
fn finish_connect(cx: &mut Cx, s: &mut state::State) -> BifResult {
    let c = s.connector.take();
    s.discard(c);
    s.write_state &= !CONNECTING;
    match sys::get_int(s.fd, libc::SOL_SOCKET, libc::SO_ERROR) {
        Ok(0) => {
            s.write_state |= CONNECTED;
            Ok(am::OK)
        }
        Ok(e) | Err(e) => Ok(errno(cx, e)),
    }
}

fn connect_1(cx: &mut Cx, [me]: [Term; 1]) -> BifResult {
    let mut s = sock(me)?.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    if s.writers.current.is_some() {
        return Ok(error_invalid(cx, state_atom()));
    }
    match &s.connector {
        Some(c) if c.pid == cx.self_pid() => finish_connect(cx, &mut s),
        _ => Err(raise_invalid(cx, state_atom())),
    }
}

fn listen_2(cx: &mut Cx, [s, n]: [Term; 2]) -> BifResult {
    let sock = sock(s)?;
    let Some(backlog) = in_range(n, int(n))? else {
        return Ok(out_of_range(cx, n));
    };
    let mut s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let r = sys::listen(s.fd, backlog);
    if r.is_ok() {
        s.read_state |= LISTENING;
    }
    done(cx, r)
}

fn accept_2(cx: &mut Cx, [me, r]: [Term; 2]) -> BifResult {
    let sock = sock(me)?;
    let mut s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    if s.readers.current.is_some() {
        return Ok(error_invalid(cx, state_atom()));
    }
    let caller = cx.self_pid();
    match &s.acceptors.current {
        Some(a) if a.pid != caller => {
            if s.acceptors.is_waiting(caller) {
                return Err(raise_invalid(cx, state_atom()));
            }
            s.involve(sock, caller);
            s.acceptors.waiting.push_back(Request::new(caller, me, r));
            return Ok(select());
        }
        _ => {}
    }
    let current = s.acceptors.current.is_some();
    s.counters.acc_tries += 1;
    match sys::accept(s.fd) {
        Ok((fd, _)) => {
            s.counters.acc_success += 1;
            if current {
                s.next_acceptor(sock);
            }
            let new = Sock::new(fd.into_raw_fd(), s.domain, s.kind, s.protocol);
            new.inherit(&s);
            // Which of the two is said to be connected.
            match release::has(ACCEPTED_CONNECTED) {
                true => new.lock().write_state |= CONNECTED,
                false => s.write_state |= CONNECTED,
            }
            drop(s);
            let r = state::publish(cx, new);
            Ok(cx.ok(r))
        }
        Err(libc::EAGAIN) => {
            if current {
                s.counters.acc_waits += 1;
            }
            let q = Request::new(caller, me, r);
            let selected = s.select_read(sock, &q);
            if !current {
                s.involve(sock, caller);
                s.acceptors.current = Some(q);
            } else {
                s.discard(Some(q));
            }
            if let Err(e) = selected {
                s.next_acceptor(sock);
                return Ok(errno(cx, e));
            }
            s.read_state |= ACCEPTING | state::SELECTED;
            Ok(select())
        }
        Err(e) => {
            s.counters.acc_fails += 1;
            if current {
                s.fail_acceptors(errno_atom(e));
            }
            Ok(errno(cx, e))
        }
    }
}

fn close_1(cx: &mut Cx, [me]: [Term; 1]) -> BifResult {
    let sock = sock(me)?;
    let mut s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let caller = cx.self_pid();
    s.involve(sock, caller);
    s.closer = Some(caller);
    s.stop();
    Ok(am::OK)
}

fn finalize_close_1(cx: &mut Cx, [me]: [Term; 1]) -> BifResult {
    let sock = sock(me)?;
    let mut s = sock.lock();
    if s.is_closed() {
        return Ok(error_closed(cx));
    }
    if !s.is_closing() || s.closer != Some(cx.self_pid()) {
        return Err(raise_invalid(cx, state_atom()));
    }
    s.closer = None;
    s.owner = None;
    let fd = s.take_fd();
    drop(s);
    // What lingers is waited for, which is what this dirty native is for.
    let r = match fd {
        Some(fd) => {
            let _ = sys::set_blocking(fd, true);
            sys::close(fd)
        }
        None => Ok(()),
    };
    sock.lock().unregister();
    Ok(match r {
        Ok(()) => am::OK,
        Err(libc::EAGAIN) => cx.err(am::TIMEOUT),
        Err(e) => errno(cx, e),
    })
}

fn shutdown_2(cx: &mut Cx, [s, how]: [Term; 2]) -> BifResult {
    let sock = sock(s)?;
    let how = match how {
        _ if how == am::READ => libc::SHUT_RD,
        _ if how == am::WRITE => libc::SHUT_WR,
        _ if how == purlin_term::atom::intern("read_write") => libc::SHUT_RDWR,
        _ => {
            let what = cx.tuple(&[purlin_term::atom::intern("how"), how]);
            return Err(raise_invalid(cx, what));
        }
    };
    let s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    done(cx, sys::shutdown(s.fd, how))
}

fn name_of(cx: &mut Cx, s: Term, ask: fn(i32) -> Result<SockAddr, i32>) -> BifResult {
    let s = sock(s)?.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    Ok(match ask(s.fd) {
        Ok(a) => {
            let a = a.to_map(cx);
            cx.ok(a)
        }
        Err(e) => errno(cx, e),
    })
}
fn sockname_1(cx: &mut Cx, [s]: [Term; 1]) -> BifResult {
    name_of(cx, s, sys::sock_name)
}
fn peername_1(cx: &mut Cx, [s]: [Term; 1]) -> BifResult {
    name_of(cx, s, sys::peer_name)
}

fn cancel_3(cx: &mut Cx, [me, op, r]: [Term; 3]) -> BifResult {
    let sock = sock(me)?;
    if !op.is_atom() || !r.is_ref() {
        return Err(Fail::Badarg);
    }
    let mut s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let caller = cx.self_pid();
    match purlin_term::atom::name(op) {
        "connect" => Ok(s.cancel_connect(caller, r)),
        "accept" => Ok(s.cancel_accept(sock, caller, r)),
        "send" | "sendto" | "sendmsg" | "sendmmsg" | "sendv" | "sendfile" => {
            Ok(s.cancel_write(sock, caller, r))
        }
        "recv" | "recvfrom" | "recvmsg" | "recvmmsg" => Ok(s.cancel_read(sock, caller, r)),
        _ => Err(Fail::Badarg),
    }
}

bifs! {
    Plain "prim_socket":"nif_info"/0 = info::info_0;
    Plain "prim_socket":"nif_info"/1 = info::info_1;
    Plain "prim_socket":"nif_supports"/0 = info::supports_0;
    Plain "prim_socket":"nif_supports"/1 = info::supports_1;
    Plain "prim_socket":"nif_command"/1 = info::command_1;
    Plain "prim_socket":"nif_open"/2 = open_2;
    Plain "prim_socket":"nif_open"/4 = open_4;
    Plain "prim_socket":"nif_bind"/2 = bind_2;
    Plain "prim_socket":"nif_bind"/3 = sctp::bind_3;
    Plain "prim_socket":"nif_peeloff"/2 = sctp::peeloff_2;
    Plain "prim_socket":"nif_connect"/1 = connect_1;
    Plain "prim_socket":"nif_connect"/3 = connect_3;
    Plain "prim_socket":"nif_listen"/2 = listen_2;
    Plain "prim_socket":"nif_accept"/2 = accept_2;
    Plain "prim_socket":"nif_send"/4 = io::send_4;
    Plain "prim_socket":"nif_sendto"/5 = io::sendto_5;
    Plain "prim_socket":"nif_sendmsg"/5 = message::sendmsg_5;
    Plain "prim_socket":"nif_sendmmsg"/4 = batch::sendmmsg_4;
    Plain "prim_socket":"nif_sendv"/3 = message::sendv_3;
    DirtyIo "prim_socket":"nif_sendfile"/5 = sendfile::sendfile_5;
    DirtyIo "prim_socket":"nif_sendfile"/4 = sendfile::sendfile_4;
    DirtyIo "prim_socket":"nif_sendfile"/1 = sendfile::sendfile_1;
    Plain "prim_socket":"nif_recv"/4 = io::recv_4;
    Plain "prim_socket":"nif_recvfrom"/4 = io::recvfrom_4;
    Plain "prim_socket":"nif_recvmsg"/5 = message::recvmsg_5;
    Plain "prim_socket":"nif_recvmmsg"/6 = batch::recvmmsg_6;
    Plain "prim_socket":"nif_close"/1 = close_1;
    DirtyIo "prim_socket":"nif_finalize_close"/1 = finalize_close_1;
    Plain "prim_socket":"nif_shutdown"/2 = shutdown_2;
    Plain "prim_socket":"nif_setopt"/5 = options::setopt_5;
    Plain "prim_socket":"nif_getopt"/3 = options::getopt_3;
    Plain "prim_socket":"nif_getopt"/4 = options::getopt_4;
    Plain "prim_socket":"nif_getopt"/5 = options::getopt_5;
    Plain "prim_socket":"nif_sockname"/1 = sockname_1;
    Plain "prim_socket":"nif_socknames"/2 = sctp::socknames_2;
    Plain "prim_socket":"nif_peername"/1 = peername_1;
    Plain "prim_socket":"nif_peernames"/2 = sctp::peernames_2;
    DirtyIo "prim_socket":"nif_ioctl"/2 = ioctl::ioctl_2;
    DirtyIo "prim_socket":"nif_ioctl"/3 = ioctl::ioctl_3;
    DirtyIo "prim_socket":"nif_ioctl"/4 = ioctl::ioctl_4;
    Plain "prim_socket":"nif_cancel"/3 = cancel_3;
}
