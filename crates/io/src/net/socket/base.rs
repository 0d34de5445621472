//! The basis of `prim_socket`: its atoms, its results, integers of the kernel's width, numbers of
//! domains, types and levels. It knows no socket.

use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::posix::errno_atom;
use purlin_term::{Alloc, Term, am, arith, map};

lazy_atoms! {
    pub(crate) abort = "abort";
    pub(crate) already = "already";
    pub(crate) closed = "closed";
    pub(crate) ctrl = "ctrl";
    pub(crate) dgram = "dgram";
    pub(crate) domain_atom = "domain";
    pub(crate) dup_atom = "dup";
    pub(crate) family = "family";
    pub(crate) flags_atom = "flags";
    pub(crate) inet = "inet";
    pub(crate) inet6 = "inet6";
    pub(crate) invalid_atom = "invalid";
    pub(crate) integer_range = "integer_range";
    pub(crate) iov = "iov";
    pub(crate) level_atom = "level";
    pub(crate) more = "more";
    pub(crate) netns = "netns";
    pub(crate) not_found = "not_found";
    pub(crate) not_owner = "not_owner";
    pub(crate) path_atom = "path";
    pub(crate) protocol = "protocol";
    pub(crate) raw = "raw";
    pub(crate) rdm = "rdm";
    pub(crate) sec = "sec";
    pub(crate) select = "select";
    pub(crate) select_sent = "select_sent";
    pub(crate) seqpacket = "seqpacket";
    pub(crate) sockaddr = "sockaddr";
    pub(crate) socket_atom = "socket";
    pub(crate) state_atom = "state";
    pub(crate) stream = "stream";
    pub(crate) tag = "$socket";
    pub(crate) unspec = "unspec";
    pub(crate) usec = "usec";
    pub(crate) use_registry = "use_registry";
    pub(crate) zero = "zero";
}

/// `{error, Name}`
pub(crate) fn errno(cx: &mut Cx, e: i32) -> Term {
    let e = errno_atom(e);
    cx.err(e)
}
pub(crate) fn done(cx: &mut Cx, r: Result<(), i32>) -> BifResult {
    Ok(match r {
        Ok(()) => am::OK,
        Err(e) => errno(cx, e),
    })
}
/// `{error, closed}`
pub(crate) fn error_closed(cx: &mut Cx) -> Term {
    cx.err(closed())
}
/// `{invalid, What}`
pub(crate) fn invalid(cx: &mut Cx, what: Term) -> Term {
    cx.tuple(&[invalid_atom(), what])
}
/// `{error, {invalid, What}}`
pub(crate) fn error_invalid(cx: &mut Cx, what: Term) -> Term {
    let i = invalid(cx, what);
    cx.err(i)
}
/// Raises `{invalid, What}`.
pub(crate) fn raise_invalid(cx: &mut Cx, what: Term) -> Fail {
    cx.error2(invalid_atom(), what)
}
/// The result for an integer that the system has no room for.
pub(crate) fn out_of_range(cx: &mut Cx, t: Term) -> Term {
    let t = cx.tuple(&[integer_range(), t]);
    invalid(cx, t)
}

pub(crate) fn int(t: Term) -> Option<i32> {
    t.as_small().and_then(|n| i32::try_from(n).ok())
}
pub(crate) fn uint(t: Term) -> Option<u32> {
    t.as_small().and_then(|n| u32::try_from(n).ok())
}
/// The value of an integer that must be in range. `None` means that the result is [`out_of_range`].
pub(crate) fn in_range<T>(t: Term, v: Option<T>) -> Result<Option<T>, Fail> {
    match v {
        None if !t.is_integer() => Err(Fail::Badarg),
        v => Ok(v),
    }
}
/// A size that fits the system's signed sizes.
pub(crate) fn size_of_term(t: Term) -> Option<usize> {
    arith::to_u64(t)
        .and_then(|n| isize::try_from(n).ok())
        .map(|n| n as usize)
}
pub(crate) fn bool_of(m: Term, key: Term, default: bool) -> bool {
    map::get(m, key)
        .and_then(|v| v.as_bool())
        .unwrap_or(default)
}

/// The kernel's number of a domain. Integers are passed through.
pub(crate) fn domain_code(t: Term) -> Option<i32> {
    match t {
        _ if t == inet() => Some(libc::AF_INET),
        _ if t == inet6() => Some(libc::AF_INET6),
        _ if t == am::LOCAL => Some(libc::AF_UNIX),
        _ if t == unspec() => Some(libc::AF_UNSPEC),
        _ => int(t),
    }
}
/// The name of a domain, or its number if it has none.
pub(crate) fn domain_term(code: i32) -> Term {
    match code {
        libc::AF_INET => inet(),
        libc::AF_INET6 => inet6(),
        libc::AF_UNIX => am::LOCAL,
        libc::AF_UNSPEC => unspec(),
        n => Term::small(n.into()),
    }
}
pub(crate) fn type_code(t: Term) -> Option<i32> {
    match t {
        _ if t == stream() => Some(libc::SOCK_STREAM),
        _ if t == dgram() => Some(libc::SOCK_DGRAM),
        _ if t == raw() => Some(libc::SOCK_RAW),
        _ if t == seqpacket() => Some(libc::SOCK_SEQPACKET),
        _ => int(t),
    }
}
/// The name of a socket type, or its number if it has none.
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
pub(crate) fn level_code(t: Term) -> Option<i32> {
    if t == socket_atom() {
        Some(libc::SOL_SOCKET)
    } else {
        int(t)
    }
}
pub(crate) fn level_term(code: i32) -> Term {
    if code == libc::SOL_SOCKET {
        socket_atom()
    } else {
        Term::small(code.into())
    }
}

/// The bytes of a string of characters below 256.
pub(crate) fn latin1(t: Term) -> Option<Vec<u8>> {
    t.list_to_vec()?
        .into_iter()
        .map(|c| c.as_small().and_then(|n| u8::try_from(n).ok()))
        .collect()
}
