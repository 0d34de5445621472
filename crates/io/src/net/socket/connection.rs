//! Opens, binds, connects, accepts and closes sockets; names of both ends; cancelled calls.

use super::addr::SockAddr;
use super::base::*;
use super::state::{self, ACCEPTING, BOUND, CONNECTED, CONNECTING, LISTENING, Request, Sock, sock};
use crate::cx::{BifResult, Cx, Fail};
use crate::os::kernel_numbers as numbers;
use crate::os::sock as sys;
use crate::posix::errno_atom;
use purlin_term::release::{self, ACCEPTED_CONNECTED, Feature, MORE_OF_SOCKETS};
use purlin_term::{Alloc, Term, am, atom, map};
use std::os::fd::IntoRawFd;

/// The file named by option `netns`, if it is a string of single bytes.
fn namespace(opts: Term) -> Option<std::ffi::CString> {
    let v = map::get(opts, netns()).filter(|_| numbers::HAS_NAMESPACES)?;
    let bytes = match v.as_binary() {
        Some(b) => b.into_owned(),
        None => latin1(v)?,
    };
    std::ffi::CString::new(bytes).ok()
}
pub(crate) fn open_4(cx: &mut Cx, [d, t, protocol, opts]: [Term; 4]) -> BifResult {
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
        match numbers::SO_PROTOCOL {
            Some(option) => sys::get_int(fd, libc::SOL_SOCKET, option).unwrap_or(0),
            None => 0,
        }
    } else {
        proto
    };
    let new = Sock::new(fd, domain, kind, real);
    new.settings(opts);
    let r = state::publish(cx, new);
    Ok(cx.ok(r))
}

pub(crate) fn open_2(cx: &mut Cx, [fd, opts]: [Term; 2]) -> BifResult {
    let Some(given) = in_range(fd, int(fd))? else {
        return Ok(out_of_range(cx, fd));
    };
    if !opts.is_map() {
        return Err(Fail::Badarg);
    }
    let own = |option| sys::get_int(given, libc::SOL_SOCKET, option).ok();
    let given_value = |key: Term, code: fn(Term) -> Option<i32>| map::get(opts, key).and_then(code);
    let Some(domain) =
        (numbers::SO_DOMAIN.and_then(own)).or_else(|| given_value(domain_atom(), domain_code))
    else {
        return Ok(invalid(cx, domain_atom()));
    };
    let Some(kind) = own(libc::SO_TYPE).or_else(|| given_value(am::TYPE, type_code)) else {
        return Ok(invalid(cx, am::TYPE));
    };
    let protocol = (numbers::SO_PROTOCOL.and_then(own))
        .or_else(|| given_value(protocol(), int))
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

pub(crate) fn bind_2(cx: &mut Cx, [s, a]: [Term; 2]) -> BifResult {
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

pub(crate) fn connect_3(cx: &mut Cx, [me, r, a]: [Term; 3]) -> BifResult {
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

/// Finishes a connect, of which the connecting process was notified.
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

pub(crate) fn connect_1(cx: &mut Cx, [me]: [Term; 1]) -> BifResult {
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

pub(crate) fn listen_2(cx: &mut Cx, [s, n]: [Term; 2]) -> BifResult {
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

/// A process that waits in accept may accept again; its pending `select` message is cancelled.
const ACCEPT_TAKES_OVER: Feature = MORE_OF_SOCKETS;

pub(crate) fn accept_2(cx: &mut Cx, [me, r]: [Term; 2]) -> BifResult {
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
            s.acceptors.enqueue(Request::new(caller, me, r));
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
            // Releases differ in which of the two sockets they call connected.
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
            let waited = s.selects_read();
            let selected = s.select_read(sock, &q);
            if !current {
                s.involve(sock, caller);
                s.acceptors.current = Some(q);
            } else if release::has(ACCEPT_TAKES_OVER) {
                // Tells the process that the message it waited for will not come.
                let old = s.acceptors.current.replace(q);
                if let Some(old) = old.as_ref().filter(|_| waited) {
                    old.abort(atom::intern("cancelled"));
                }
                s.discard(old);
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

pub(crate) fn close_1(cx: &mut Cx, [me]: [Term; 1]) -> BifResult {
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

pub(crate) fn finalize_close_1(cx: &mut Cx, [me]: [Term; 1]) -> BifResult {
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
    // Closing a lingering socket blocks, which is why this native is dirty.
    let r = match fd {
        Some(fd) => {
            let _ = sys::set_blocking(fd, true);
            // SAFETY: the descriptor was taken from the socket, which owned it.
            unsafe { sys::close(fd) }
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

pub(crate) fn shutdown_2(cx: &mut Cx, [s, how]: [Term; 2]) -> BifResult {
    let sock = sock(s)?;
    let how = match how {
        _ if how == am::READ => libc::SHUT_RD,
        _ if how == am::WRITE => libc::SHUT_WR,
        _ if how == atom::intern("read_write") => libc::SHUT_RDWR,
        _ => {
            let what = cx.tuple(&[atom::intern("how"), how]);
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
pub(crate) fn sockname_1(cx: &mut Cx, [s]: [Term; 1]) -> BifResult {
    name_of(cx, s, sys::sock_name)
}
pub(crate) fn peername_1(cx: &mut Cx, [s]: [Term; 1]) -> BifResult {
    name_of(cx, s, sys::peer_name)
}

pub(crate) fn cancel_3(cx: &mut Cx, [me, op, r]: [Term; 3]) -> BifResult {
    let sock = sock(me)?;
    if !op.is_atom() || !r.is_ref() {
        return Err(Fail::Badarg);
    }
    let mut s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let caller = cx.self_pid();
    match atom::name(op) {
        "connect" => Ok(s.cancel_connect(caller, r)),
        "accept" => Ok(s.cancel_accept(sock, caller, r)),
        "send" | "sendto" | "sendmsg" | "sendmmsg" | "sendv" | "sendfile" => {
            Ok(s.cancel_write(sock, caller, r))
        }
        "recv" | "recvfrom" | "recvmsg" | "recvmmsg" => Ok(s.cancel_read(sock, caller, r)),
        _ => Err(Fail::Badarg),
    }
}
