//! Natives of module `prim_net`: names and addresses of hosts, services and interfaces.
//!
//! Lookups by the resolver block, so they run on dirty threads. All answers come from outside the
//! program: a replay gets the recorded ones.

use super::socket::addr::{SockAddr, encode};
use super::socket::{domain_term, type_term};
use crate::cx::{BifResult, Cx, Fail};
use crate::net::inet::ctl;
use crate::os::interfaces::{Interfaces, other_end};
use crate::os::kernel_numbers::{self as numbers, or_zero};
use crate::os::sock::in_namespace;
use crate::os::sockaddr;
use crate::posix::{errno_atom, last_errno};
use crate::{bifs, lazy_atoms};
use purlin_kernel::os::world;
use purlin_term::{Alloc, NIL, Term, am, atom, map};
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering};

lazy_atoms! {
    addr = "addr";
    debug = "debug";
    einval = "einval";
    family = "family";
    flags = "flags";
    name = "name";
    protocol = "protocol";
}

static DEBUG: AtomicBool = AtomicBool::new(false);

fn info_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let on = Term::bool(DEBUG.load(Ordering::Relaxed));
    Ok(map::from_pairs(cx, &[(debug(), on)]))
}

fn command_1(cx: &mut Cx, [c]: [Term; 1]) -> BifResult {
    match c.as_tuple() {
        Some(&[what, on]) if what == debug() => {
            if let Some(on) = on.as_bool() {
                DEBUG.store(on, Ordering::Relaxed);
                return Ok(am::OK);
            }
        }
        _ => {}
    }
    Ok(cx.err(einval()))
}

/// A string of single bytes without zeros.
fn c_string(t: Term) -> Option<CString> {
    let bytes = t
        .list_to_vec()?
        .into_iter()
        .map(|c| c.as_small().and_then(|n| u8::try_from(n).ok()))
        .collect::<Option<Vec<u8>>>()?;
    CString::new(bytes).ok()
}

/// The characters before the first zero.
fn string(cx: &mut Cx, b: &[libc::c_char]) -> Term {
    let b: Vec<u8> = b.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    cx.byte_list(&b, NIL)
}
/// # Safety
/// The string is terminated.
unsafe fn string_at(cx: &mut Cx, p: *const libc::c_char) -> Term {
    // SAFETY: by the contract of this function.
    unsafe { cx.byte_list(CStr::from_ptr(p).to_bytes(), NIL) }
}

/// Maximum bytes, with the final zero, of the name of a host, a service, an interface.
const HOST_BYTES: usize = 256;
const SERVICE_BYTES: usize = 256;
const INTERFACE_BYTES: usize = libc::IF_NAMESIZE;

fn gethostname_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    if world::is_on() {
        let s = cx.byte_list(world::HOST.as_bytes(), NIL);
        return Ok(cx.ok(s));
    }
    let mut b = [0 as libc::c_char; HOST_BYTES];
    // SAFETY: the room is one byte larger than stated, so that a zero follows.
    let r = unsafe { libc::gethostname(b.as_mut_ptr(), HOST_BYTES - 1) };
    if r < 0 {
        let e = errno_atom(last_errno());
        return Ok(cx.err(e));
    }
    let s = string(cx, &b);
    Ok(cx.ok(s))
}

/// The error tuple for an error of the resolver. `system` is the reason of a system error.
fn resolver_error(cx: &mut Cx, r: i32, system: Term) -> Term {
    let e = match r {
        libc::EAI_AGAIN => atom::intern("eagain"),
        libc::EAI_BADFLAGS => atom::intern("ebadflags"),
        libc::EAI_FAIL => atom::intern("efail"),
        libc::EAI_FAMILY => atom::intern("efamily"),
        libc::EAI_MEMORY => atom::intern("emem"),
        libc::EAI_NONAME => atom::intern("enoname"),
        libc::EAI_OVERFLOW => atom::intern("eoverflow"),
        libc::EAI_SERVICE => atom::intern("eservice"),
        libc::EAI_SOCKTYPE => atom::intern("esocktype"),
        libc::EAI_SYSTEM => system,
        // Extensions of some C libraries: no data, no address of the family.
        -5 => atom::intern("enodata"),
        -9 => atom::intern("eaddrfamily"),
        _ => einval(),
    };
    cx.err(e)
}

fn name_flags(t: Term) -> Option<i32> {
    if t == am::UNDEFINED {
        return Some(0);
    }
    if !t.is_list() {
        return None;
    }
    let mut n = 0;
    for f in t.list_iter() {
        n |= match atom::name(f.is_atom().then_some(f)?) {
            "namereqd" => libc::NI_NAMEREQD,
            "dgram" => libc::NI_DGRAM,
            "nofqdn" => libc::NI_NOFQDN,
            "numerichost" => libc::NI_NUMERICHOST,
            "numericserv" => libc::NI_NUMERICSERV,
            "idn" if cfg!(target_os = "linux") => 32,
            _ => return None,
        };
    }
    Some(n)
}

fn getnameinfo_2(cx: &mut Cx, [a, flags]: [Term; 2]) -> BifResult {
    let Some(a) = SockAddr::from_map(a) else {
        return Ok(cx.err(einval()));
    };
    let flags = name_flags(flags).ok_or(Fail::Badarg)?;
    let mut host = [0 as libc::c_char; HOST_BYTES];
    let mut service = [0 as libc::c_char; SERVICE_BYTES];
    // SAFETY: address and buffers are valid for the call and have the lengths given.
    let r = unsafe {
        libc::getnameinfo(
            a.ptr(),
            a.size(),
            host.as_mut_ptr(),
            HOST_BYTES as libc::socklen_t,
            service.as_mut_ptr(),
            SERVICE_BYTES as libc::socklen_t,
            flags,
        )
    };
    if r != 0 {
        let system = errno_atom(last_errno());
        return Ok(resolver_error(cx, r, system));
    }
    let pairs = [
        (atom::intern("host"), string(cx, &host)),
        (atom::intern("service"), string(cx, &service)),
    ];
    let m = map::from_pairs(cx, &pairs);
    Ok(cx.ok(m))
}

fn getaddrinfo_3(cx: &mut Cx, [host, service, _hints]: [Term; 3]) -> BifResult {
    let text = |t: Term| -> Result<Option<CString>, Fail> {
        if t == am::UNDEFINED {
            return Ok(None);
        }
        c_string(t).map(Some).ok_or(Fail::Badarg)
    };
    let (host, service) = (text(host)?, text(service)?);
    if host.is_none() && service.is_none() {
        return Err(Fail::Badarg);
    }
    if world::is_on() {
        world::left(
            "a name was resolved by the system: what it answers is not decided by the seed",
        );
    }
    let p = |s: &Option<CString>| s.as_ref().map_or(std::ptr::null(), |s| s.as_ptr());
    let mut first = std::ptr::null_mut();
    // SAFETY: terminated strings or null pointers, and room for a pointer.
    let r = unsafe { libc::getaddrinfo(p(&host), p(&service), std::ptr::null(), &mut first) };
    if r != 0 {
        let system = atom::intern("esystem");
        return Ok(resolver_error(cx, r, system));
    }
    let mut l = Vec::new();
    // SAFETY: the list comes from the call; each address has the length given; the list is freed
    // once.
    unsafe {
        let mut next = first.cast_const();
        while let Some(i) = next.as_ref() {
            let a = std::slice::from_raw_parts(i.ai_addr.cast::<u8>(), i.ai_addrlen as usize);
            let pairs = [
                (family(), domain_term(i.ai_family)),
                (am::TYPE, type_term(i.ai_socktype)),
                (protocol(), Term::small(i.ai_protocol.into())),
                (addr(), encode(cx, a)),
            ];
            l.push(map::from_pairs(cx, &pairs));
            next = i.ai_next;
        }
        libc::freeaddrinfo(first);
    }
    let l = cx.list(&l);
    Ok(cx.ok(l))
}

/// Flags of interfaces, in the order in which they are listed.
const FLAGS: &[(i32, &str)] = &[
    (libc::IFF_UP, "up"),
    (libc::IFF_BROADCAST, "broadcast"),
    (libc::IFF_DEBUG, "debug"),
    (libc::IFF_LOOPBACK, "loopback"),
    (libc::IFF_POINTOPOINT, "pointopoint"),
    (libc::IFF_NOTRAILERS, "notrailers"),
    (libc::IFF_RUNNING, "running"),
    (libc::IFF_NOARP, "noarp"),
    (libc::IFF_PROMISC, "promisc"),
    (or_zero(numbers::IFF_MASTER), "master"),
    (or_zero(numbers::IFF_SLAVE), "slave"),
    (libc::IFF_MULTICAST, "multicast"),
    (or_zero(numbers::IFF_PORTSEL), "portsel"),
    (or_zero(numbers::IFF_AUTOMEDIA), "automedia"),
    (or_zero(numbers::IFF_DYNAMIC), "dynamic"),
];

/// An interface address as a map.
///
/// # Safety
/// `i` is an entry of a list made by `getifaddrs`.
unsafe fn interface(cx: &mut Cx, i: &libc::ifaddrs) -> Term {
    // SAFETY: by the contract of this function.
    unsafe {
        let mut pairs = vec![(name(), string_at(cx, i.ifa_name))];
        let bits = i.ifa_flags as i32;
        let l: Vec<Term> = FLAGS
            .iter()
            .filter(|f| bits & f.0 != 0)
            .map(|f| atom::intern(f.1))
            .collect();
        pairs.push((flags(), cx.list(&l)));
        let end = other_end(i);
        let other = match bits {
            _ if end.is_null() => None,
            _ if bits & libc::IFF_POINTOPOINT != 0 => Some("dstaddr"),
            _ if bits & libc::IFF_BROADCAST != 0 => Some("broadaddr"),
            _ => None,
        };
        let all = [
            (Some("addr"), i.ifa_addr.cast_const()),
            (Some("netmask"), i.ifa_netmask.cast_const()),
            (other, end),
        ];
        for (key, a) in all {
            if let Some(key) = key
                && !a.is_null()
            {
                pairs.push((
                    atom::intern(key),
                    sockaddr::read(a, sockaddr::ROOM).to_map(cx),
                ));
            }
        }
        map::from_pairs(cx, &pairs)
    }
}

fn getifaddrs_1(cx: &mut Cx, [extra]: [Term; 1]) -> BifResult {
    if world::is_on() {
        world::left("the interfaces of the real machine were listed");
    }
    if !extra.is_map() {
        return Err(Fail::Badarg);
    }
    let netns = map::get(extra, atom::intern("netns")).filter(|_| numbers::HAS_NAMESPACES);
    let netns = match netns {
        None => None,
        Some(f) => Some(c_string(f).ok_or(Fail::Badarg)?),
    };
    let all = match &netns {
        Some(f) => in_namespace(f, Interfaces::list),
        None => Interfaces::list(),
    };
    let all = match all {
        Ok(f) => f,
        Err(e) => {
            let e = errno_atom(e);
            return Ok(cx.err(e));
        }
    };
    let mut l = Vec::new();
    for i in all.iter() {
        // SAFETY: an entry of the list.
        l.push(unsafe { interface(cx, i) });
    }
    let l = cx.list(&l);
    Ok(cx.ok(l))
}

/// The protocol of a service request; `any` means no particular one.
fn service_protocol(t: Term) -> Option<Option<CString>> {
    let name = c_string(t)?;
    Some((name.as_bytes() != b"any").then_some(name))
}
fn getservbyname_2(cx: &mut Cx, [name, protocol]: [Term; 2]) -> BifResult {
    let Some((name, protocol)) = c_string(name).zip(service_protocol(protocol)) else {
        return Ok(cx.err(einval()));
    };
    let protocol = protocol.as_ref().map(|p| p.as_bytes());
    match ctl::service_by_name(name.as_bytes(), protocol).as_deref() {
        Ok(&[high, low]) => Ok(cx.ok(Term::small(u16::from_be_bytes([high, low]).into()))),
        _ => Ok(cx.err(einval())),
    }
}
fn getservbyport_2(cx: &mut Cx, [port, protocol]: [Term; 2]) -> BifResult {
    let port = port.as_small().and_then(|n| u16::try_from(n).ok());
    let Some((port, protocol)) = port.zip(service_protocol(protocol)) else {
        return Ok(cx.err(einval()));
    };
    let protocol = protocol.as_ref().map(|p| p.as_bytes());
    match ctl::service_by_port(port, protocol) {
        Ok(name) => {
            let name = cx.byte_list(&name, NIL);
            Ok(cx.ok(name))
        }
        Err(_) => Ok(cx.err(einval())),
    }
}

fn if_name2index_1(cx: &mut Cx, [n]: [Term; 1]) -> BifResult {
    let Some(n) = c_string(n).filter(|n| (1..=INTERFACE_BYTES).contains(&n.as_bytes().len()))
    else {
        return Ok(cx.err(einval()));
    };
    // SAFETY: a terminated string.
    Ok(match unsafe { libc::if_nametoindex(n.as_ptr()) } {
        0 => {
            let e = errno_atom(last_errno());
            cx.err(e)
        }
        i => cx.ok(Term::small(i.into())),
    })
}

fn if_index2name_1(cx: &mut Cx, [i]: [Term; 1]) -> BifResult {
    let i = i
        .as_small()
        .and_then(|n| u32::try_from(n).ok())
        .ok_or(Fail::Badarg)?;
    let mut b = [0 as libc::c_char; INTERFACE_BYTES + 1];
    // SAFETY: room for the longest name.
    if unsafe { libc::if_indextoname(i, b.as_mut_ptr()) }.is_null() {
        let e = atom::intern("enxio");
        return Ok(cx.err(e));
    }
    let s = string(cx, &b);
    Ok(cx.ok(s))
}

fn if_names_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    // SAFETY: the call returns an array that ends with an entry of zeros; it is freed once.
    unsafe {
        let all = libc::if_nameindex();
        if all.is_null() {
            let e = errno_atom(last_errno());
            return Ok(cx.err(e));
        }
        let mut l = Vec::new();
        let mut at = all;
        while (*at).if_index != 0 && !(*at).if_name.is_null() {
            let s = string_at(cx, (*at).if_name);
            l.push(cx.tuple(&[Term::small((*at).if_index.into()), s]));
            at = at.add(1);
        }
        libc::if_freenameindex(all);
        let l = cx.list(&l);
        Ok(cx.ok(l))
    }
}

/// Natives that exist only on another operating system.
fn elsewhere_1(_: &mut Cx, [_]: [Term; 1]) -> BifResult {
    Err(Fail::Notsup)
}

bifs! {
    DirtyIo "prim_net":"nif_getservbyname"/2 = getservbyname_2 [since(27) recorded];
    DirtyIo "prim_net":"nif_getservbyport"/2 = getservbyport_2 [since(27) recorded];
    Plain "prim_net":"nif_info"/0 = info_0 [recorded];
    Plain "prim_net":"nif_command"/1 = command_1 [recorded];
    Plain "prim_net":"nif_gethostname"/0 = gethostname_0 [reads(All) recorded outside(OnSocket)];
    DirtyIo "prim_net":"nif_getnameinfo"/2 = getnameinfo_2 [reads(All) recorded outside(OnSocket)];
    DirtyIo "prim_net":"nif_getaddrinfo"/3 = getaddrinfo_3 [reads(All) recorded outside(OnSocket)];
    DirtyIo "prim_net":"nif_getifaddrs"/1 = getifaddrs_1 [reads(All) recorded outside(OnSocket)];
    Plain "prim_net":"nif_get_adapters_addresses"/1 = elsewhere_1 [recorded];
    Plain "prim_net":"nif_get_if_entry"/1 = elsewhere_1 [recorded];
    Plain "prim_net":"nif_get_interface_info"/1 = elsewhere_1 [recorded];
    Plain "prim_net":"nif_get_ip_address_table"/1 = elsewhere_1 [recorded];
    Plain "prim_net":"nif_if_name2index"/1 = if_name2index_1 [recorded];
    Plain "prim_net":"nif_if_index2name"/1 = if_index2name_1 [recorded];
    Plain "prim_net":"nif_if_names"/0 = if_names_0 [recorded];
}
