//! Information: the sockets, their counts, and the capabilities of the system.

use super::base::*;
use super::state::{self, ACCEPTING, BOUND, CONNECTED, CONNECTING, GLOBAL, LISTENING, sock};
use super::{ioctl, message, options};
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::os::kernel_numbers as numbers;
use purlin_term::release::{self, MORE_OF_SOCKETS, SERVICES_AS_MAPS, SOCKET_LEVEL_NUMBERS};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, atom, map};
use std::ffi::CStr;
use std::sync::atomic::Ordering;

lazy_atoms! {
    counters = "counters";
}

fn named(cx: &mut Cx, pairs: &[(&str, u64)]) -> Term {
    let pairs: Vec<(Term, Term)> = pairs
        .iter()
        .map(|&(k, v)| (atom::intern(k), cx.uint(v)))
        .collect();
    map::from_pairs(cx, &pairs)
}

pub(crate) fn info_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let c = *GLOBAL.open.lock();
    let numbers = [
        ("num_cnt_bits", 64),
        ("num_sockets", c.all),
        ("num_tdgrams", c.kinds[0]),
        ("num_tstreams", c.kinds[1]),
        ("num_tseqpkgs", c.kinds[2]),
        ("num_dlocal", c.domains[0]),
        ("num_dinet", c.domains[1]),
        ("num_dinet6", c.domains[2]),
        ("num_pip", c.protocols[0]),
        ("num_ptcp", c.protocols[1]),
        ("num_pudp", c.protocols[2]),
        ("num_psctp", c.protocols[3]),
    ];
    let numbers = named(cx, &numbers);
    let flag = |f: &std::sync::atomic::AtomicBool| Term::bool(f.load(Ordering::Relaxed));
    let mut pairs = vec![
        (atom::intern("debug"), flag(&GLOBAL.debug)),
        (atom::intern("socket_debug"), flag(&GLOBAL.socket_debug)),
        (use_registry(), flag(&GLOBAL.use_registry)),
        (atom::intern("iow"), am::FALSE),
        (counters(), numbers),
        (
            atom::intern("iov_max"),
            Term::small(message::MAX_PARTS as i64),
        ),
    ];
    if release::has(MORE_OF_SOCKETS) {
        // Stock's name for non-blocking sockets with readiness notification.
        let name = (atom::intern("name"), atom::intern("unix_essio"));
        let backend = map::from_pairs(cx, &[name]);
        pairs.extend([
            (atom::intern("eei"), am::TRUE),
            (atom::intern("io_backend"), backend),
        ]);
    }
    Ok(map::from_pairs(cx, &pairs))
}

/// The states of reading or writing, as a list of names.
fn states(cx: &mut Cx, bits: u32) -> Term {
    let names = [
        (BOUND, "bound"),
        (LISTENING, "listening"),
        (ACCEPTING, "accepting"),
        (CONNECTING, "connecting"),
        (CONNECTED, "connected"),
        (state::SELECTED, "selected"),
        (state::CLOSING, "closing"),
        (state::CLOSED, "closed"),
    ];
    let l: Vec<Term> = names
        .iter()
        .filter(|n| bits & n.0 != 0)
        .map(|n| atom::intern(n.1))
        .collect();
    cx.list(&l)
}

pub(crate) fn info_1(cx: &mut Cx, [me]: [Term; 1]) -> BifResult {
    let s = sock(me)?.lock();
    let c = s.counters;
    let mut numbers = vec![
        ("read_byte", c.read_byte),
        ("read_fails", c.read_fails),
        ("read_pkg", c.read_pkg),
        ("read_pkg_max", c.read_pkg_max),
        ("read_tries", c.read_tries),
        ("read_waits", c.read_waits),
        ("write_byte", c.write_byte),
        ("write_fails", c.write_fails),
        ("write_pkg", c.write_pkg),
        ("write_pkg_max", c.write_pkg_max),
        ("write_tries", c.write_tries),
        ("write_waits", c.write_waits),
        ("acc_success", c.acc_success),
        ("acc_fails", c.acc_fails),
        ("acc_tries", c.acc_tries),
        ("acc_waits", c.acc_waits),
    ];
    if let Some(f) = s.file_counters {
        numbers.extend([
            ("sendfile", f.calls),
            ("sendfile_byte", f.byte),
            ("sendfile_fails", f.fails),
            ("sendfile_max", f.max),
            ("sendfile_pkg", f.pkg),
            ("sendfile_pkg_max", f.pkg_max),
            ("sendfile_tries", f.tries),
            ("sendfile_waits", f.waits),
        ]);
    }
    let numbers = named(cx, &numbers);
    let from = match s.given.filter(|&fd| fd > 0) {
        None => am::NORMAL,
        Some(_) if !s.close_on_close => atom::intern("fromfd"),
        Some(fd) => {
            let name = atom::intern("fromfd");
            cx.tuple(&[name, Term::small(fd.into())])
        }
    };
    let small = |n: usize| Term::small(n as i64);
    let pairs = [
        (domain_atom(), domain_term(s.domain)),
        (am::TYPE, type_term(s.kind)),
        (protocol(), Term::small(s.protocol.into())),
        (atom::intern("owner"), s.owner.unwrap_or(am::UNDEFINED)),
        (atom::intern("rstates"), states(cx, s.read_state)),
        (atom::intern("wstates"), states(cx, s.write_state)),
        (atom::intern("ctype"), from),
        (counters(), numbers),
        (atom::intern("num_readers"), small(s.readers.len())),
        (atom::intern("num_writers"), small(s.writers.len())),
        (atom::intern("num_acceptors"), small(s.acceptors.len())),
    ];
    Ok(map::from_pairs(cx, &pairs))
}

pub(crate) fn command_1(cx: &mut Cx, [m]: [Term; 1]) -> BifResult {
    let get = |k: &str| m.is_map().then(|| map::get(m, atom::intern(k)))?;
    let command = get("command").ok_or(Fail::Badarg)?;
    let data = get("data").ok_or(Fail::Badarg)?;
    let name = if command.is_atom() {
        atom::name(command)
    } else {
        ""
    };
    let to = match name {
        "debug" => &GLOBAL.debug,
        "socket_debug" => &GLOBAL.socket_debug,
        "use_registry" => &GLOBAL.use_registry,
        _ => {
            let what = cx.tuple(&[atom::intern("command"), command]);
            return Err(raise_invalid(cx, what));
        }
    };
    match data.as_bool() {
        Some(on) => {
            to.store(on, Ordering::Relaxed);
            Ok(am::OK)
        }
        None => {
            let what = cx.tuple(&[am::DATA, data]);
            Err(raise_invalid(cx, what))
        }
    }
}

pub(crate) fn supports_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let features = [
        ("sctp", numbers::HAS_SCTP),
        ("ipv6", true),
        ("local", true),
        ("netns", numbers::HAS_NAMESPACES),
        ("sendfile", true),
    ];
    let l: Vec<Term> = features
        .iter()
        .map(|&(name, is)| cx.tuple(&[atom::intern(name), Term::bool(is)]))
        .collect();
    Ok(cx.list(&l))
}

fn table<T: Copy + Into<i64>>(cx: &mut Cx, rows: &[(&str, T)]) -> Term {
    let mut l = NIL;
    for &(name, n) in rows {
        let row = cx.tuple(&[atom::intern(name), Term::small(n.into())]);
        l = cx.cons(row, l);
    }
    l
}

/// The protocols of the system's database, with names and number, in reverse order, and the
/// protocols that always exist.
fn protocols(cx: &mut Cx) -> Term {
    /// The database has one position for the whole process.
    static DATABASE: Mutex<()> = Mutex::new(());
    let mut l = NIL;
    {
        let _one = DATABASE.lock();
        // SAFETY: entries and their strings stay valid until the next call, and all strings are
        // terminated.
        unsafe {
            setprotoent(1);
            while let Some(p) = getprotoent().as_ref() {
                let name = |s: *const libc::c_char| {
                    let s = CStr::from_ptr(s).to_string_lossy();
                    atom::try_intern(&s).ok()
                };
                let mut names = NIL;
                let mut alias = p.p_aliases;
                while !alias.is_null() && !(*alias).is_null() {
                    if let Some(n) = name(*alias) {
                        names = cx.cons(n, names);
                    }
                    alias = alias.add(1);
                }
                if let Some(n) = name(p.p_name) {
                    names = cx.cons(n, names);
                }
                let row = cx.tuple(&[names, Term::small(p.p_proto.into())]);
                l = cx.cons(row, l);
            }
            endprotoent();
        }
    }
    let always = [
        ("ip", libc::IPPROTO_IP),
        ("ipv6", libc::IPPROTO_IPV6),
        ("tcp", libc::IPPROTO_TCP),
        ("udp", libc::IPPROTO_UDP),
        ("sctp", libc::IPPROTO_SCTP),
    ];
    for (name, n) in always {
        if n == libc::IPPROTO_SCTP && !numbers::HAS_SCTP {
            continue;
        }
        let names = cx.list(&[atom::intern(name)]);
        let row = cx.tuple(&[names, Term::small(n.into())]);
        l = cx.cons(row, l);
    }
    l
}

unsafe extern "C" {
    fn setprotoent(stayopen: libc::c_int);
    fn getprotoent() -> *const libc::protoent;
    fn endprotoent();
}

/// The name of an option level.
fn level_name(level: i32) -> Term {
    atom::intern(match level {
        libc::SOL_SOCKET => "socket",
        libc::IPPROTO_IP => "ip",
        libc::IPPROTO_IPV6 => "ipv6",
        libc::IPPROTO_SCTP => "sctp",
        libc::IPPROTO_UDP => "udp",
        _ => "tcp",
    })
}

fn all_options(cx: &mut Cx) -> Term {
    let mut levels = NIL;
    for level in options::levels() {
        let mut l = NIL;
        for o in level.1.iter().filter(|o| o.is_named()) {
            let name = atom::intern(o.0);
            let row = if o.is_supported() {
                cx.tuple(&[name, Term::small(o.1.into())])
            } else {
                name
            };
            l = cx.cons(row, l);
        }
        let number = Term::small(level.0.into());
        let row = match release::has(SOCKET_LEVEL_NUMBERS) {
            true => cx.tuple(&[level_name(level.0), number, l]),
            false => cx.tuple(&[level_term(level.0), l]),
        };
        levels = cx.cons(row, levels);
    }
    levels
}

pub(crate) fn supports_1(cx: &mut Cx, [key]: [Term; 1]) -> BifResult {
    if !key.is_atom() {
        return Ok(NIL);
    }
    Ok(match atom::name(key) {
        "msg_flags" => {
            let later = release::has(SERVICES_AS_MAPS).then_some(message::NOTIFICATION);
            let flags: Vec<_> = message::FLAGS.iter().copied().chain(later).collect();
            table(cx, &flags)
        }
        "ioctl_flags" => {
            let later = match release::has(MORE_OF_SOCKETS) {
                true => ioctl::LATER_FLAGS,
                false => &[],
            };
            table(cx, &[ioctl::FLAGS, later].concat())
        }
        "ioctl_requests" => {
            let later = match release::has(MORE_OF_SOCKETS) {
                true => ioctl::COUNTS,
                false => &[],
            };
            let all: Vec<_> = ioctl::requests().chain(later.iter().copied()).collect();
            table(cx, &all)
        }
        "protocols" => protocols(cx),
        "options" => all_options(cx),
        _ => NIL,
    })
}
