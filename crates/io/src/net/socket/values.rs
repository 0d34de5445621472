//! Values of options, converted between terms and the kernel's bytes. The formats are those of the
//! kernel's structures of the same names.

use super::addr::{in_addr, in_addr_term, in6_addr};
use super::base::*;
use super::{message, state};
use crate::cx::Cx;
use crate::lazy_atoms;
use crate::os::kernel_numbers as numbers;
use crate::os::sock as sys;
use purlin_term::release::{self, EVENTS_LEFT_OUT, MORE_OF_SOCKETS, SERVICES_AS_MAPS};
use purlin_term::{Alloc, Term, am, atom, map};

lazy_atoms! {
    do_atom = "do";
    dont = "dont";
    interface = "interface";
    linger = "linger";
    lowdelay = "lowdelay";
    mincost = "mincost";
    multiaddr = "multiaddr";
    null = "null";
    onoff = "onoff";
    probe = "probe";
    reliability = "reliability";
    sourceaddr = "sourceaddr";
    throughput = "throughput";
    want = "want";
}

/// Bits of a type of service, as in RFC 1349.
const TOS: [(fn() -> Term, i32); 4] = [
    (lowdelay, 0x10),
    (throughput, 0x08),
    (reliability, 0x04),
    (mincost, 0x02),
];
/// The bits of a type of service that the names are about.
const TOS_BITS: i32 = 0x1E;

/// A type of service: a name or a number, or since OTP 29 a map of its kind and its precedence.
pub(crate) fn tos_code(t: Term) -> Option<i32> {
    if t.is_map() && release::has(SERVICES_AS_MAPS) {
        let key = |name| map::get(t, atom::intern(name));
        return Some(kind_code(key("tos")?)? | precedence_code(key("precedence")?)?);
    }
    match TOS.iter().find(|r| (r.0)() == t) {
        Some(r) => Some(r.1),
        None if t.is_atom() && release::has(SERVICES_AS_MAPS) => {
            let point = CODE_POINTS.iter().find(|p| p.0 == atom::name(t))?;
            Some(point.1 << POINT_SHIFT)
        }
        None => int(t),
    }
}
/// The kind bits of a type of service in its traditional interpretation.
fn kind_code(t: Term) -> Option<i32> {
    let natural = || int(t).filter(|&n| n >= 0);
    match TOS.iter().find(|r| (r.0)() == t) {
        Some(r) => Some(r.1),
        None if t == am::DEFAULT => Some(0),
        None => natural().map(|n| n << 1 & TOS_BITS),
    }
}
/// The precedence bits. As in stock, every name means routine.
fn precedence_code(t: Term) -> Option<i32> {
    if t.is_atom() {
        return PRECEDENCES.contains(&atom::name(t)).then_some(0);
    }
    let n = int(t).filter(|&n| n >= 0)?;
    Some((n & PRECEDENCE_BITS) << PRECEDENCE_SHIFT)
}
const PRECEDENCES: [&str; 8] = [
    "routine",
    "priority",
    "immediate",
    "flash",
    "flashoverride",
    "critical_ecp",
    "internetcontrol",
    "netcontrol",
];
const PRECEDENCE_BITS: i32 = 7;

/// Code points of differentiated services, which are the upper bits of a type of service.
const CODE_POINTS: &[(&str, i32)] = &[
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("voice_admit", 44),
    ("le", 1),
    ("nqb", 45),
];
const POINT_SHIFT: i32 = 2;
/// Shift of the precedence bits.
const PRECEDENCE_SHIFT: i32 = 5;

/// A type of service as a name, or since OTP 29 as a map of its number and its traditional and new
/// interpretations.
pub(crate) fn tos_term(cx: &mut Cx, n: i32) -> Term {
    if !release::has(SERVICES_AS_MAPS) {
        return tos_name(n);
    }
    let n = n & 0xFF;
    let named = |name: Option<&str>, n: i32| name.map_or(Term::small(n.into()), atom::intern);
    let kind = match (n & TOS_BITS) >> 1 {
        0 => am::DEFAULT,
        bits => TOS
            .iter()
            .find(|r| r.1 >> 1 == bits)
            .map_or(Term::small(bits.into()), |r| (r.0)()),
    };
    let precedence = n >> PRECEDENCE_SHIFT;
    let precedence = named((precedence == 0).then_some("routine"), precedence);
    let old = [
        (atom::intern("tos"), kind),
        (atom::intern("precedence"), precedence),
    ];
    let old = map::from_pairs(cx, &old);
    let point = n >> POINT_SHIFT;
    let name = CODE_POINTS.iter().find(|p| p.1 == point).map(|p| p.0);
    let pairs = [
        (atom::intern("native"), Term::small(n.into())),
        (atom::intern("tos"), old),
        (atom::intern("dscp"), named(name, point)),
    ];
    map::from_pairs(cx, &pairs)
}
fn tos_name(n: i32) -> Term {
    match TOS.iter().find(|r| r.1 == n & TOS_BITS) {
        Some(r) => (r.0)(),
        None => Term::small(n.into()),
    }
}

const DISCOVER: [(fn() -> Term, Option<i32>); 4] = [
    (want, numbers::IP_PMTUDISC_WANT),
    (dont, numbers::IP_PMTUDISC_DONT),
    (do_atom, numbers::IP_PMTUDISC_DO),
    (probe, numbers::IP_PMTUDISC_PROBE),
];

/// How an option is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Set {
    No,
    Bool,
    Int,
    /// A number of 32 bits without a sign.
    Uint,
    /// A string of fewer than that many bytes.
    Str(usize),
    Linger,
    Discover,
    Interface4,
    Tos,
    Membership4,
    Source4,
    Filter4,
    Domain,
    Hops,
    Membership6,
    SctpAssoc,
    SctpEvents,
    SctpInit,
    SctpTimes,
}

/// How an option is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Get {
    No,
    Bool,
    Int,
    /// A string of at most that many bytes, and whether a final zero is removed.
    Str(usize, bool),
    Domain,
    Type,
    Protocol,
    Linger,
    Discover,
    Interface4,
    Tos,
    Control,
    SctpAssoc,
    SctpInit,
    SctpTimes,
}

/// Fields of a structure of integers: key and size in bytes.
type Fields = &'static [(&'static str, usize)];

const SCTP_ASSOC: Fields = &[
    ("assoc_id", 4),
    ("asocmaxrxt", 2),
    ("number_peer_destinations", 2),
    ("peer_rwnd", 4),
    ("local_rwnd", 4),
    ("cookie_life", 4),
];
const SCTP_INIT: Fields = &[
    ("num_outstreams", 2),
    ("max_instreams", 2),
    ("max_attempts", 2),
    ("max_init_timeo", 2),
];
const SCTP_TIMES: Fields = &[("assoc_id", 4), ("initial", 4), ("max", 4), ("min", 4)];
const SCTP_EVENTS: &[&str] = &[
    "data_io",
    "association",
    "address",
    "send_failure",
    "peer_error",
    "shutdown",
    "partial_delivery",
    "adaptation_layer",
    "authentication",
    "sender_dry",
];

fn fields_bytes(m: Term, fields: Fields) -> Option<Vec<u8>> {
    let mut b = Vec::new();
    for &(key, n) in fields {
        let v = map::get(m, atom::intern(key))?;
        // Numbers of associations may be negative.
        let v = uint(v).or_else(|| (key == "assoc_id").then(|| int(v).map(|i| i as u32))?)?;
        b.extend_from_slice(&v.to_ne_bytes()[..n]);
    }
    Some(b)
}
fn fields_term(cx: &mut Cx, fields: Fields, b: &[u8]) -> Term {
    let mut at = 0;
    let mut pairs = Vec::new();
    for &(key, n) in fields {
        let mut v = [0; 4];
        v[..n].copy_from_slice(&b[at..at + n]);
        at += n;
        pairs.push((atom::intern(key), Term::small(u32::from_ne_bytes(v).into())));
    }
    map::from_pairs(cx, &pairs)
}
fn fields_size(fields: Fields) -> usize {
    fields.iter().map(|f| f.1).sum()
}

/// The bytes of a value. None if the option has no such value.
pub fn encode(how: Set, v: Term) -> Option<Vec<u8>> {
    let int_bytes = |n: i32| n.to_ne_bytes().to_vec();
    let key = |k: Term| map::get(v, k);
    let is_map = v.is_map();
    Some(match how {
        Set::No => return None,
        Set::Bool => int_bytes(v.as_bool()?.into()),
        Set::Int => int_bytes(int(v)?),
        Set::Uint => uint(v)?.to_ne_bytes().to_vec(),
        Set::Str(room) => match v.as_binary().filter(|_| release::has(MORE_OF_SOCKETS)) {
            // As many bytes as fit, and a zero behind them.
            Some(b) => {
                let b = &b[..b.len().min(room - 1)];
                [b, &[0]].concat()
            }
            None => latin1(v).filter(|s| s.len() < room)?,
        },
        Set::Linger => {
            if v == abort() {
                return Some([1i32.to_ne_bytes(), 0i32.to_ne_bytes()].concat());
            }
            if !is_map {
                return None;
            }
            let on = key(onoff())?.as_bool()?;
            let seconds = key(linger()).and_then(int).filter(|&n| n >= 0)?;
            [i32::from(on).to_ne_bytes(), seconds.to_ne_bytes()].concat()
        }
        Set::Discover => int_bytes(match DISCOVER.iter().find(|r| (r.0)() == v) {
            Some(r) => r.1?,
            None => int(v)?,
        }),
        Set::Interface4 => in_addr(v)?.to_vec(),
        Set::Tos => int_bytes(tos_code(v)?),
        Set::Membership4 if is_map => {
            [in_addr(key(multiaddr())?)?, in_addr(key(interface())?)?].concat()
        }
        Set::Source4 if is_map => [
            in_addr(key(multiaddr())?)?,
            in_addr(key(interface())?)?,
            in_addr(key(sourceaddr())?)?,
        ]
        .concat(),
        Set::Filter4 if v == null() => Vec::new(),
        Set::Filter4 if is_map => {
            let mode: i32 = match atom::name(key(atom::intern("mode")).filter(|m| m.is_atom())?) {
                "include" => 1,
                "exclude" => 0,
                _ => return None,
            };
            let sources = key(atom::intern("slist"))?.list_to_vec()?;
            let mut b = [in_addr(key(multiaddr())?)?, in_addr(key(interface())?)?].concat();
            b.extend_from_slice(&mode.to_ne_bytes());
            b.extend_from_slice(&(sources.len() as u32).to_ne_bytes());
            for s in sources {
                b.extend_from_slice(&in_addr(s)?);
            }
            b
        }
        Set::Domain => int_bytes(domain_code(v)?),
        Set::Hops if v == am::DEFAULT => int_bytes(-1),
        Set::Hops => int_bytes(int(v).filter(|n| (0..=255).contains(n))?),
        Set::Membership6 if is_map => {
            let mut b = in6_addr(key(multiaddr())?)?.to_vec();
            b.extend_from_slice(&key(interface()).and_then(uint)?.to_ne_bytes());
            b
        }
        Set::SctpAssoc if is_map => fields_bytes(v, SCTP_ASSOC)?,
        Set::SctpInit if is_map => fields_bytes(v, SCTP_INIT)?,
        Set::SctpTimes if is_map => fields_bytes(v, SCTP_TIMES)?,
        Set::SctpEvents if is_map => SCTP_EVENTS
            .iter()
            .map(|e| match key(atom::intern(e)) {
                None => release::has(EVENTS_LEFT_OUT).then_some(0),
                Some(v) => v.as_bool().map(u8::from),
            })
            .collect::<Option<_>>()?,
        _ => return None,
    })
}

/// Reads a socket option from the kernel. Returns an errno if that fails.
pub fn ask(
    cx: &mut Cx,
    how: Get,
    fd: i32,
    level: i32,
    option: i32,
    s: &state::State,
) -> Result<Term, i32> {
    let number = || sys::get_int(fd, level, option);
    let bytes = |n: usize| {
        let mut b = vec![0; n];
        sys::get_option(fd, level, option, &mut b).map(|used| (b, used))
    };
    Ok(match how {
        Get::No => return Err(libc::ENOPROTOOPT),
        Get::Bool => Term::bool(number()? != 0),
        Get::Int => Term::small(number()?.into()),
        Get::Domain => domain_term(number()?),
        Get::Type => type_term(number()?),
        Get::Protocol => match number()? {
            0 if s.domain == libc::AF_UNIX => am::DEFAULT,
            n => Term::small(n.into()),
        },
        Get::Str(room, strip) => {
            let (b, mut n) = bytes(room)?;
            if strip && n > 0 && b[n - 1] == 0 {
                n -= 1;
            }
            cx.byte_list(&b[..n], purlin_term::NIL)
        }
        Get::Linger => {
            let (b, _) = bytes(8)?;
            let on = Term::bool(b[..4] != [0; 4]);
            let seconds = i32::from_ne_bytes([b[4], b[5], b[6], b[7]]);
            let pairs = [(onoff(), on), (linger(), Term::small(seconds.into()))];
            map::from_pairs(cx, &pairs)
        }
        Get::Discover => {
            let n = number()?;
            match DISCOVER.iter().find(|r| r.1 == Some(n)) {
                Some(r) => (r.0)(),
                None => Term::small(n.into()),
            }
        }
        Get::Interface4 => {
            let (b, _) = bytes(4)?;
            in_addr_term(cx, &b)
        }
        Get::Tos => tos_term(cx, number()?),
        Get::Control => {
            let (b, n) = bytes(s.receive_control_bytes.min(message::MOST_CONTROL_BYTES))?;
            message::control_term(cx, &b[..n])
        }
        Get::SctpAssoc | Get::SctpInit | Get::SctpTimes => {
            let fields = match how {
                Get::SctpAssoc => SCTP_ASSOC,
                Get::SctpInit => SCTP_INIT,
                _ => SCTP_TIMES,
            };
            let (b, _) = bytes(fields_size(fields))?;
            fields_term(cx, fields, &b)
        }
    })
}
