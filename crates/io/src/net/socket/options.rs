//! The table of options, and the natives that set and read them.
//!
//! Each level has a table. A row says how an option is set and how it is read. Programs may name an
//! option that the system lacks, or that the release does not support yet: the answer is that it is
//! not supported. [`NEW_NAMES`] and [`OLD_NAMES`] are unknown to some releases.

use super::base::*;
use super::message;
use super::state::{self, State, sock};
use super::values::{Get, Set, ask, encode};
use crate::cx::{BifResult, Cx, Fail};
use crate::os::kernel_numbers as has;
use crate::os::sock as sys;
use purlin_term::frag::OwnedTerm;
use purlin_term::release::{self, Feature, MORE_OF_SOCKETS, SERVICES_AS_MAPS, SOCKET_USER_TIMEOUT};
use purlin_term::{Alloc, Term, am, iolist};

/// An option of the system: name, number, how it is set and how it is read. An option without a
/// number and without either is not supported.
pub(crate) struct Opt(pub &'static str, pub i32, pub Set, pub Get);

/// Options of a level, in alphabetical order.
pub struct Level(pub i32, pub &'static [Opt]);

const fn flag(name: &'static str, n: i32) -> Opt {
    Opt(name, n, Set::Bool, Get::Bool)
}
const fn number(name: &'static str, n: i32) -> Opt {
    Opt(name, n, Set::Int, Get::Int)
}
const fn absent(name: &'static str) -> Opt {
    Opt(name, 0, Set::No, Get::No)
}
/// An option that the system has but that cannot be set or read here.
const fn listed(name: &'static str, n: i32) -> Opt {
    Opt(name, n, Set::No, Get::No)
}
/// An option of those systems that have its number.
const fn some(name: &'static str, n: Option<i32>, set: Set, get: Get) -> Opt {
    match n {
        Some(n) => Opt(name, n, set, get),
        None => absent(name),
    }
}
const fn some_flag(name: &'static str, n: Option<i32>) -> Opt {
    some(name, n, Set::Bool, Get::Bool)
}
const fn some_number(name: &'static str, n: Option<i32>) -> Opt {
    some(name, n, Set::Int, Get::Int)
}
const fn set_only(name: &'static str, n: i32, how: Set) -> Opt {
    Opt(name, n, how, Get::No)
}

/// Maximum bytes of an interface's name, and of a congestion algorithm's name with its final zero.
const INTERFACE_BYTES: usize = libc::IFNAMSIZ;
const ALGORITHM_BYTES: usize = 257;

const SOCKET: &[Opt] = &[
    flag("acceptconn", libc::SO_ACCEPTCONN),
    absent("acceptfilter"),
    some(
        "bindtodevice",
        has::SO_BINDTODEVICE,
        Set::Str(INTERFACE_BYTES),
        Get::Str(INTERFACE_BYTES + 1, false),
    ),
    flag("broadcast", libc::SO_BROADCAST),
    absent("bsp_state"),
    absent("busy_poll"),
    number("debug", libc::SO_DEBUG),
    some("domain", has::SO_DOMAIN, Set::No, Get::Domain),
    flag("dontroute", libc::SO_DONTROUTE),
    absent("error"),
    absent("exclusiveaddruse"),
    flag("keepalive", libc::SO_KEEPALIVE),
    Opt("linger", libc::SO_LINGER, Set::Linger, Get::Linger),
    absent("mark"),
    absent("max_msg_size"),
    absent("maxdg"),
    flag("oobinline", libc::SO_OOBINLINE),
    some_flag("passcred", has::SO_PASSCRED),
    some_number("peek_off", has::SO_PEEK_OFF),
    absent("peercred"),
    some_number("priority", has::SO_PRIORITY),
    some("protocol", has::SO_PROTOCOL, Set::No, Get::Protocol),
    number("rcvbuf", libc::SO_RCVBUF),
    absent("rcvbufforce"),
    number("rcvlowat", libc::SO_RCVLOWAT),
    absent("rcvtimeo"),
    flag("reuseaddr", libc::SO_REUSEADDR),
    flag("reuseport", libc::SO_REUSEPORT),
    absent("rxq_ovfl"),
    absent("setfib"),
    number("sndbuf", libc::SO_SNDBUF),
    absent("sndbufforce"),
    number("sndlowat", libc::SO_SNDLOWAT),
    absent("sndtimeo"),
    flag("timestamp", libc::SO_TIMESTAMP),
    some_flag("timestampns", has::SO_TIMESTAMPNS),
    Opt("type", libc::SO_TYPE, Set::No, Get::Type),
];
const IP: &[Opt] = &[
    set_only("add_membership", libc::IP_ADD_MEMBERSHIP, Set::Membership4),
    set_only(
        "add_source_membership",
        libc::IP_ADD_SOURCE_MEMBERSHIP,
        Set::Source4,
    ),
    set_only("block_source", libc::IP_BLOCK_SOURCE, Set::Source4),
    absent("dontfrag"),
    set_only(
        "drop_membership",
        libc::IP_DROP_MEMBERSHIP,
        Set::Membership4,
    ),
    set_only(
        "drop_source_membership",
        libc::IP_DROP_SOURCE_MEMBERSHIP,
        Set::Source4,
    ),
    some_flag("freebind", has::IP_FREEBIND),
    flag("hdrincl", libc::IP_HDRINCL),
    some_number("minttl", has::IP_MINTTL),
    some("msfilter", has::IP_MSFILTER, Set::Filter4, Get::No),
    some("mtu", has::IP_MTU, Set::No, Get::Int),
    some(
        "mtu_discover",
        has::IP_MTU_DISCOVER,
        Set::Discover,
        Get::Discover,
    ),
    some_flag("multicast_all", has::IP_MULTICAST_ALL),
    Opt(
        "multicast_if",
        libc::IP_MULTICAST_IF,
        Set::Interface4,
        Get::Interface4,
    ),
    flag("multicast_loop", libc::IP_MULTICAST_LOOP),
    number("multicast_ttl", libc::IP_MULTICAST_TTL),
    some_flag("nodefrag", has::IP_NODEFRAG),
    absent("options"),
    flag("pktinfo", libc::IP_PKTINFO),
    some("pktoptions", has::IP_PKTOPTIONS, Set::No, Get::Control),
    some_flag("recvdstaddr", has::IP_RECVDSTADDR),
    some_flag("recverr", has::IP_RECVERR),
    some_flag("recvif", has::IP_RECVIF),
    some_flag("recvopts", has::IP_RECVOPTS),
    some_flag("recvorigdstaddr", has::IP_RECVORIGDSTADDR),
    flag("recvtos", libc::IP_RECVTOS),
    flag("recvttl", libc::IP_RECVTTL),
    some_flag("retopts", has::IP_RETOPTS),
    some_number("router_alert", has::IP_ROUTER_ALERT),
    absent("sendsrcaddr"),
    Opt("tos", libc::IP_TOS, Set::Tos, Get::Tos),
    some_flag("transparent", has::IP_TRANSPARENT),
    number("ttl", libc::IP_TTL),
    set_only("unblock_source", libc::IP_UNBLOCK_SOURCE, Set::Source4),
];
const IPV6: &[Opt] = &[
    set_only("add_membership", has::IPV6_JOIN, Set::Membership6),
    some("addrform", has::IPV6_ADDRFORM, Set::Domain, Get::No),
    absent("auth_level"),
    some_flag("authhdr", has::IPV6_AUTHHDR),
    absent("checksum"),
    set_only("drop_membership", has::IPV6_LEAVE, Set::Membership6),
    some_flag("dstopts", has::IPV6_DSTOPTS),
    absent("esp_network_level"),
    absent("esp_trans_level"),
    absent("faith"),
    some_flag("flowinfo", has::IPV6_FLOWINFO),
    flag("hoplimit", libc::IPV6_HOPLIMIT),
    some_flag("hopopts", has::IPV6_HOPOPTS),
    absent("ipcomp_level"),
    absent("join_group"),
    absent("leave_group"),
    some_number("mtu", has::IPV6_MTU),
    some(
        "mtu_discover",
        has::IPV6_MTU_DISCOVER,
        Set::Discover,
        Get::Discover,
    ),
    Opt(
        "multicast_hops",
        libc::IPV6_MULTICAST_HOPS,
        Set::Hops,
        Get::Int,
    ),
    number("multicast_if", libc::IPV6_MULTICAST_IF),
    flag("multicast_loop", libc::IPV6_MULTICAST_LOOP),
    absent("pktoptions"),
    absent("portrange"),
    some_flag("recverr", has::IPV6_RECVERR),
    flag("recvhoplimit", libc::IPV6_RECVHOPLIMIT),
    flag("recvpktinfo", libc::IPV6_RECVPKTINFO),
    flag("recvtclass", libc::IPV6_RECVTCLASS),
    some_number("router_alert", has::IPV6_ROUTER_ALERT),
    some_flag("rthdr", has::IPV6_RTHDR),
    number("tclass", libc::IPV6_TCLASS),
    Opt("unicast_hops", libc::IPV6_UNICAST_HOPS, Set::Hops, Get::Int),
    absent("use_min_mtu"),
    flag("v6only", libc::IPV6_V6ONLY),
];
const SCTP: &[Opt] = &[
    listed("adaptation_layer", 7),
    absent("adaption_layer"),
    Opt("associnfo", 1, Set::SctpAssoc, Get::SctpAssoc),
    absent("auth_active_key"),
    absent("auth_chunk"),
    absent("auth_delete_key"),
    absent("auth_key"),
    number("autoclose", 4),
    absent("context"),
    listed("default_send_param", 10),
    absent("default_send_params"),
    absent("delayed_ack_time"),
    flag("disable_fragments", 8),
    set_only("events", 11, Set::SctpEvents),
    absent("explicit_eor"),
    absent("fragment_interleave"),
    listed("get_assoc_stats", 112),
    listed("get_peer_addr_info", 15),
    absent("hmac_ident"),
    listed("i_want_mapped_v4_addr", 12),
    Opt("initmsg", 2, Set::SctpInit, Get::SctpInit),
    absent("local_auth_chunks"),
    absent("maxburst"),
    number("maxseg", 13),
    flag("nodelay", 3),
    absent("partial_delivery"),
    absent("partial_delivery_point"),
    absent("peer_addr_params"),
    absent("peer_auth_chunks"),
    listed("primary_addr", 6),
    absent("reset_streams"),
    Opt("rtoinfo", 0, Set::SctpTimes, Get::SctpTimes),
    listed("set_peer_primary_addr", 5),
    listed("status", 14),
    absent("use_ext_recvinfo"),
];
const TCP: &[Opt] = &[
    some(
        "congestion",
        has::TCP_CONGESTION,
        Set::Str(ALGORITHM_BYTES),
        Get::Str(ALGORITHM_BYTES, true),
    ),
    some_flag("cork", has::TCP_CORK),
    absent("info"),
    number("keepcnt", libc::TCP_KEEPCNT),
    number("keepidle", has::TCP_IDLE),
    number("keepintvl", libc::TCP_KEEPINTVL),
    number("maxseg", libc::TCP_MAXSEG),
    absent("md5sig"),
    flag("nodelay", libc::TCP_NODELAY),
    absent("noopt"),
    absent("nopush"),
    absent("syncnt"),
    some("user_timeout", has::TCP_USER_TIMEOUT, Set::Uint, Get::Int),
];
const UDP: &[Opt] = &[some_flag("cork", has::UDP_CORK)];

const LEVELS: &[Level] = &[
    Level(libc::SOL_SOCKET, SOCKET),
    Level(libc::IPPROTO_IP, IP),
    Level(libc::IPPROTO_IPV6, IPV6),
    Level(libc::IPPROTO_SCTP, SCTP),
    Level(libc::IPPROTO_UDP, UDP),
    Level(libc::IPPROTO_TCP, TCP),
];

/// All levels that stock has on this system.
pub(crate) fn levels() -> impl Iterator<Item = &'static Level> {
    LEVELS
        .iter()
        .filter(|l| has::HAS_SCTP || l.0 != libc::IPPROTO_SCTP)
}

/// Options that not every release supports. Releases have their names nevertheless, except for the
/// names below.
const LATER: &[(Feature, &str)] = &[
    (MORE_OF_SOCKETS, "keepcnt"),
    (MORE_OF_SOCKETS, "keepidle"),
    (MORE_OF_SOCKETS, "keepintvl"),
    (SOCKET_USER_TIMEOUT, "user_timeout"),
    (SERVICES_AS_MAPS, "get_peer_addr_info"),
    (SERVICES_AS_MAPS, "i_want_mapped_v4_addr"),
    (SERVICES_AS_MAPS, "primary_addr"),
    (SERVICES_AS_MAPS, "set_peer_primary_addr"),
    (SERVICES_AS_MAPS, "status"),
];
/// Names that not every release has.
const NEW_NAMES: &[(Feature, &str)] = &[
    (MORE_OF_SOCKETS, "bsp_state"),
    (MORE_OF_SOCKETS, "exclusiveaddruse"),
    (MORE_OF_SOCKETS, "max_msg_size"),
    (MORE_OF_SOCKETS, "maxdg"),
    (SERVICES_AS_MAPS, "adaptation_layer"),
    (SERVICES_AS_MAPS, "default_send_param"),
    (SERVICES_AS_MAPS, "get_assoc_stats"),
    (SERVICES_AS_MAPS, "partial_delivery"),
    (SERVICES_AS_MAPS, "timestampns"),
];
/// Names that releases with a feature no longer have.
const OLD_NAMES: &[(Feature, &str)] = &[
    (SERVICES_AS_MAPS, "adaption_layer"),
    (SERVICES_AS_MAPS, "default_send_params"),
    (SERVICES_AS_MAPS, "partial_delivery_point"),
];

impl Opt {
    fn since(&self, table: &[(Feature, &str)]) -> Option<Feature> {
        Some(table.iter().find(|l| l.1 == self.0)?.0)
    }
    /// Whether the release supports the option.
    pub(crate) fn is_supported(&self) -> bool {
        let has = self.1 != 0 || self.2 != Set::No || self.3 != Get::No;
        has && self.is_named() && self.since(LATER).is_none_or(release::has)
    }
    /// Whether the release has the option's name.
    pub(crate) fn is_named(&self) -> bool {
        self.since(NEW_NAMES).is_none_or(release::has)
            && !self.since(OLD_NAMES).is_some_and(release::has)
    }
}

/// The option of that number. Number 0 marks options that the system lacks, so an option whose
/// number really is 0 is not found, as in stock.
fn find(level: i32, option: i32) -> Option<&'static Opt> {
    let l = levels().find(|l| l.0 == level)?;
    l.1.iter()
        .find(|o| option != 0 && o.1 == option && o.is_supported())
}

/// Numbers of the runtime's own options, as module `prim_socket` gives them.
mod own {
    pub(crate) const DEBUG: i32 = 1001;
    pub(crate) const IOW: i32 = 1002;
    pub(crate) const CTRL_PROC: i32 = 1003;
    pub(crate) const RCVBUF: i32 = 1004;
    pub(crate) const RCVCTRLBUF: i32 = 1006;
    pub(crate) const SNDCTRLBUF: i32 = 1007;
    pub const FD: i32 = 1008;
    pub(crate) const META: i32 = 1009;
    pub(crate) const USE_REGISTRY: i32 = 1010;
    pub(crate) const SELECT_READ: i32 = 1011;
    pub(crate) const DOMAIN: i32 = 1999;
}

pub(crate) fn setopt_5(cx: &mut Cx, [me, level, option, value, native]: [Term; 5]) -> BifResult {
    let sock = sock(me)?;
    let native = int(native).ok_or(Fail::Badarg)? != 0;
    let Some(opt) = in_range(option, int(option))? else {
        return Ok(out_of_range(cx, option));
    };
    let Some(l) = level_code(level) else {
        if level == purlin_term::atom::intern("otp") && !native {
            return set_own(cx, me, opt, value);
        }
        return match level.is_integer() {
            true => Ok(out_of_range(cx, level)),
            false => Err(Fail::Badarg),
        };
    };
    let s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let bytes = if native {
        let b = value.as_binary().map(|b| b.into_owned());
        let n = || int(value).or_else(|| value.as_bool().map(i32::from));
        let n = || n().map(|n| n.to_ne_bytes().to_vec());
        let list = || {
            let l = value.is_nil() || value.as_cons().is_some();
            l.then(|| iolist::to_vec(value).ok()).flatten()
        };
        match b.or_else(n).or_else(list) {
            Some(b) => b,
            None => return Ok(error_invalid(cx, am::VALUE)),
        }
    } else {
        match find(l, opt).filter(|o| o.2 != Set::No) {
            None => {
                let what = purlin_term::atom::intern("socket_option");
                return Ok(invalid(cx, what));
            }
            Some(o) => match encode(o.2, value) {
                Some(b) => b,
                None => return Ok(invalid(cx, am::VALUE)),
            },
        }
    };
    let r = sys::set_option_only(s.fd, l, opt, &bytes, true);
    done(cx, r)
}

fn no_such(cx: &mut Cx, opt: i32) -> Fail {
    let name = purlin_term::atom::intern("otp_socket_option");
    let what = cx.tuple(&[name, Term::small(opt.into())]);
    raise_invalid(cx, what)
}

/// A number of bytes, or None if the term is none.
fn buffer_size(t: Term, default: usize) -> Option<usize> {
    if t == am::DEFAULT {
        Some(default)
    } else {
        size_of_term(t).filter(|&n| n > 0)
    }
}

fn set_own(cx: &mut Cx, me: Term, opt: i32, value: Term) -> BifResult {
    let sock = sock(me)?;
    let mut s = sock.lock();
    match opt {
        own::DEBUG..=own::RCVBUF | own::RCVCTRLBUF | own::SNDCTRLBUF => {}
        own::META | own::USE_REGISTRY => {}
        own::SELECT_READ if release::has(SOCKET_USER_TIMEOUT) => {}
        _ => return Err(no_such(cx, opt)),
    }
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    if matches!(opt, own::CTRL_PROC | own::META) && s.owner != Some(cx.self_pid()) {
        return Ok(error_invalid(cx, not_owner()));
    }
    if opt == own::CTRL_PROC {
        if !value.is_local_pid() {
            return Ok(invalid(cx, am::VALUE));
        }
        s.owner = Some(value);
        let lives = s.involve(sock, value);
        drop(s);
        if !lives {
            state::close_for(sock, value);
        }
        return Ok(am::OK);
    }
    match assign(&mut s, me, opt, value) {
        Some(()) => Ok(am::OK),
        None => Ok(invalid(cx, am::VALUE)),
    }
}

fn assign(s: &mut State, me: Term, opt: i32, value: Term) -> Option<()> {
    match opt {
        own::DEBUG => s.debug = value.as_bool()?,
        own::IOW => s.wrap_messages = value.as_bool()?,
        own::SELECT_READ => s.keeps_selected = value.as_bool()?,
        own::RCVCTRLBUF => s.receive_control_bytes = buffer_size(value, state::CONTROL_BYTES)?,
        own::SNDCTRLBUF => s.send_control_bytes = buffer_size(value, state::CONTROL_BYTES)?,
        own::RCVBUF => {
            let (buffers, bytes) = match value.as_tuple() {
                Some(&[n, size]) => (
                    uint(n).filter(|&n| n > 0)?,
                    buffer_size(size, state::RECEIVE_BYTES)?,
                ),
                _ => (0, buffer_size(value, state::RECEIVE_BYTES)?),
            };
            s.buffers = buffers;
            s.receive_bytes = bytes;
        }
        own::META => {
            let old = std::mem::replace(&mut s.meta, OwnedTerm::copy_of(value));
            s.discard_term(old);
        }
        own::USE_REGISTRY => {
            if !value.as_bool()? {
                return None;
            }
            if !s.use_registry {
                s.register(me);
            }
        }
        _ => return None,
    }
    Some(())
}

fn get_own(cx: &mut Cx, me: Term, opt: i32) -> BifResult {
    let s = sock(me)?.lock();
    if opt == own::USE_REGISTRY {
        return Ok(cx.ok(Term::bool(s.use_registry)));
    }
    match opt {
        own::DEBUG..=own::RCVBUF | own::RCVCTRLBUF..=own::META | own::DOMAIN => {}
        own::SELECT_READ if release::has(SOCKET_USER_TIMEOUT) => {}
        _ => return Err(no_such(cx, opt)),
    }
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let v = match opt {
        own::DEBUG => Term::bool(s.debug),
        own::IOW => Term::bool(s.wrap_messages),
        own::SELECT_READ => Term::bool(s.keeps_selected),
        own::CTRL_PROC => s.owner.unwrap_or(am::UNDEFINED),
        own::RCVBUF => {
            let n = cx.uint(s.receive_bytes as u64);
            match s.buffers {
                0 => n,
                buffers => cx.tuple(&[Term::small(buffers.into()), n]),
            }
        }
        own::RCVCTRLBUF => cx.uint(s.receive_control_bytes as u64),
        own::SNDCTRLBUF => cx.uint(s.send_control_bytes as u64),
        own::FD => Term::small(s.fd.into()),
        own::META => crate::signal::handle::copy_in(cx, s.meta.term()),
        _ => domain_term(s.domain),
    };
    Ok(cx.ok(v))
}

/// Level and option. The level is None for the runtime's own. An error holds the result for the
/// caller.
fn which(cx: &mut Cx, level: Term, option: Term) -> Result<(Option<i32>, i32), BifResult> {
    let opt = match in_range(option, int(option)) {
        Err(f) => return Err(Err(f)),
        Ok(None) => return Err(Ok(out_of_range(cx, option))),
        Ok(Some(n)) => n,
    };
    match level_code(level) {
        Some(l) => Ok((Some(l), opt)),
        None if level == purlin_term::atom::intern("otp") => Ok((None, opt)),
        None if level.is_integer() => Err(Ok(out_of_range(cx, level))),
        None => Err(Err(Fail::Badarg)),
    }
}

pub(crate) fn getopt_3(cx: &mut Cx, [me, level, option]: [Term; 3]) -> BifResult {
    let sock = sock(me)?;
    let (l, opt) = match which(cx, level, option) {
        Ok((Some(l), o)) => (l, o),
        Ok((None, o)) => return get_own(cx, me, o),
        Err(answer) => return answer,
    };
    let s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let Some(o) = find(l, opt).filter(|o| o.3 != Get::No) else {
        let what = purlin_term::atom::intern("socket_option");
        return Ok(invalid(cx, what));
    };
    Ok(match ask(cx, o.3, s.fd, l, opt, &s) {
        Ok(v) => cx.ok(v),
        Err(e) => errno(cx, e),
    })
}

/// Reads an option, with `kind` saying what the last argument is (OTP 29). Only SCTP has options
/// that need a value to be read.
pub(crate) fn getopt_5(cx: &mut Cx, [me, level, option, kind, value]: [Term; 5]) -> BifResult {
    if kind.is_atom() && purlin_term::atom::name(kind) == "native" {
        return getopt_4(cx, [me, level, option, value]);
    }
    sock(me)?;
    Err(Fail::Notsup)
}
pub(crate) fn getopt_4(cx: &mut Cx, [me, level, option, spec]: [Term; 4]) -> BifResult {
    let sock = sock(me)?;
    let (l, opt) = match which(cx, level, option) {
        Ok((Some(l), o)) => (l, o),
        Ok((None, _)) => return Err(Fail::Badarg),
        Err(answer) => return answer,
    };
    let s = sock.lock();
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let how = match spec {
        _ if spec == am::INTEGER => Some(Get::Int),
        _ if spec == am::BOOLEAN => Some(Get::Bool),
        _ => None,
    };
    if let Some(how) = how {
        return Ok(match ask(cx, how, s.fd, l, opt, &s) {
            Ok(v) => cx.ok(v),
            Err(e) => errno(cx, e),
        });
    }
    let mut b = match (spec.as_binary(), int(spec).map(usize::try_from)) {
        (Some(b), _) => b.into_owned(),
        (None, Some(Ok(0))) => {
            let r = sys::touch_option(s.fd, l, opt);
            return done(cx, r);
        }
        (None, Some(Ok(n))) => vec![0; n.min(message::MOST_CONTROL_BYTES)],
        (None, Some(Err(_))) => return Ok(errno(cx, libc::EINVAL)),
        _ => return Ok(invalid(cx, am::VALUE)),
    };
    Ok(match sys::get_option(s.fd, l, opt, &mut b) {
        Ok(n) => {
            let v = cx.binary(&b[..n]);
            cx.ok(v)
        }
        Err(e) => errno(cx, e),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sorted_and_found_by_number() {
        for level in LEVELS {
            assert!(level.1.is_sorted_by(|a, b| a.0 < b.0), "level {}", level.0);
            for o in level.1.iter().filter(|o| o.1 != 0 && o.is_supported()) {
                assert_eq!(find(level.0, o.1).map(|f| f.0), Some(o.0));
            }
        }
        assert!(find(libc::SOL_SOCKET, 0).is_none());
    }
}
