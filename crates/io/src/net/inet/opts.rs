//! Options of sockets. A request encodes setting an option in 5 bytes (some options in more) and
//! reading one in a single byte.

use super::sock::{Sock, active, control};
use super::{Args, EINVAL, Error};
use crate::os::kernel_numbers as numbers;
use crate::os::sock as sys;
use crate::port::Base;
use purlin_term::release::{self, PACKETS_BEGIN_AGAIN, READ_AHEAD, REUSE_OF_PORTS};
use std::mem::size_of;

/// Numbers of options.
pub mod opt {
    pub(crate) const REUSEADDR: u8 = 0;
    pub(crate) const REUSEPORT: u8 = 17;
    pub(crate) const REUSEPORT_LB: u8 = 18;
    pub(crate) const KEEPALIVE: u8 = 1;
    pub(crate) const DONTROUTE: u8 = 2;
    pub(crate) const LINGER: u8 = 3;
    pub(crate) const BROADCAST: u8 = 4;
    pub(crate) const OOBINLINE: u8 = 5;
    pub(crate) const SNDBUF: u8 = 6;
    pub(crate) const RCVBUF: u8 = 7;
    pub(crate) const PRIORITY: u8 = 8;
    pub(crate) const TOS: u8 = 9;
    pub(crate) const NODELAY: u8 = 10;
    pub(crate) const MULTICAST_IF: u8 = 11;
    pub(crate) const MULTICAST_TTL: u8 = 12;
    pub(crate) const MULTICAST_LOOP: u8 = 13;
    pub(crate) const ADD_MEMBERSHIP: u8 = 14;
    pub(crate) const DROP_MEMBERSHIP: u8 = 15;
    pub(crate) const IPV6_V6ONLY: u8 = 16;
    pub(crate) const EXCLUSIVEADDRUSE: u8 = 19;
    pub(crate) const BUFFER: u8 = 20;
    pub const HEADER: u8 = 21;
    pub(crate) const ACTIVE: u8 = 22;
    pub(crate) const PACKET: u8 = 23;
    pub(crate) const MODE: u8 = 24;
    pub(crate) const DELIVER: u8 = 25;
    pub(crate) const EXIT_ON_CLOSE: u8 = 26;
    pub(crate) const HIGH_WATERMARK: u8 = 27;
    pub(crate) const LOW_WATERMARK: u8 = 28;
    pub(crate) const SEND_TIMEOUT: u8 = 30;
    pub(crate) const DELAY_SEND: u8 = 31;
    pub(crate) const PACKET_SIZE: u8 = 32;
    pub(crate) const READ_PACKETS: u8 = 33;
    pub(crate) const RAW: u8 = 34;
    pub(crate) const SEND_TIMEOUT_CLOSE: u8 = 35;
    pub(crate) const MSGQ_HIGH: u8 = 36;
    pub(crate) const MSGQ_LOW: u8 = 37;
    pub(crate) const NETNS: u8 = 38;
    pub(crate) const SHOW_ECONNRESET: u8 = 39;
    pub(crate) const LINE_DELIM: u8 = 40;
    pub(crate) const TCLASS: u8 = 41;
    pub(crate) const BIND_TO_DEVICE: u8 = 42;
    pub(crate) const RECVTOS: u8 = 43;
    pub(crate) const RECVTCLASS: u8 = 44;
    pub(crate) const PKTOPTIONS: u8 = 45;
    pub(crate) const TTL: u8 = 46;
    pub(crate) const RECVTTL: u8 = 47;
    pub(crate) const NOPUSH: u8 = 48;
    pub(crate) const READ_AHEAD: u8 = 49;
    pub(crate) const NON_BLOCK_SEND: u8 = 50;
    pub(crate) const KEEPCNT: u8 = 51;
    pub(crate) const KEEPIDLE: u8 = 52;
    pub(crate) const KEEPINTVL: u8 = 53;
    pub(crate) const USER_TIMEOUT: u8 = 54;
    pub(crate) const DEBUG: u8 = 99;
}

/// Options of streams only.
#[derive(Clone)]
pub struct StreamOpts {
    pub high: i32,
    pub low: i32,
    pub send_timeout: i32,
    pub send_timeout_close: i32,
    pub delay_send: bool,
    pub show_econnreset: bool,
    /// Whether one read may take more than the needed packet.
    pub read_ahead: bool,
    /// Whether closing discards unsent data.
    pub linger_zero: bool,
}

impl Default for StreamOpts {
    fn default() -> StreamOpts {
        StreamOpts {
            high: 8 * 1024,
            low: 4 * 1024,
            send_timeout: -1,
            send_timeout_close: 0,
            delay_send: false,
            show_econnreset: false,
            read_ahead: true,
            linger_zero: false,
        }
    }
}

/// The follow-up to setting options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    Nothing,
    /// Buffered packets must be delivered.
    Deliver,
    /// The same, from the beginning of the packet: it is of another type now.
    BeginAgain,
    /// Data must be read at once.
    Read,
    /// An active socket was found closed: the owner must be notified.
    Closed,
}

/// Maximum bytes of a reply, and the range of a message queue's limits.
const MAX_ANSWER: usize = 64 * 1024;
const MSGQ_LIMITS: std::ops::RangeInclusive<i32> = 1..=i32::MAX;
const IFNAME_ROOM: usize = libc::IFNAMSIZ;

/// Whether stock ignores an option here and reads it as 0, because the system lacks it.
fn is_ignored(o: u8) -> bool {
    match o {
        opt::PRIORITY => numbers::SO_PRIORITY.is_none(),
        opt::NOPUSH => numbers::TCP_CORK.is_none(),
        _ => false,
    }
}

/// Level and name of an option that is an `int` of the kernel, and whether failing to set it is an
/// error.
fn kernel_int(s: &Sock, o: u8) -> Option<(i32, i32, bool)> {
    use libc::*;
    Some(match o {
        opt::REUSEADDR => (SOL_SOCKET, SO_REUSEADDR, false),
        // The system's plain option already balances the load between sockets.
        opt::REUSEPORT | opt::REUSEPORT_LB if release::has(REUSE_OF_PORTS) => {
            (SOL_SOCKET, SO_REUSEPORT, false)
        }
        opt::KEEPALIVE => (SOL_SOCKET, SO_KEEPALIVE, false),
        opt::DONTROUTE => (SOL_SOCKET, SO_DONTROUTE, false),
        opt::BROADCAST => (SOL_SOCKET, SO_BROADCAST, false),
        opt::OOBINLINE => (SOL_SOCKET, SO_OOBINLINE, false),
        opt::SNDBUF => (SOL_SOCKET, SO_SNDBUF, false),
        opt::RCVBUF => (SOL_SOCKET, SO_RCVBUF, false),
        opt::PRIORITY => (SOL_SOCKET, numbers::SO_PRIORITY?, true),
        opt::TOS => (IPPROTO_IP, IP_TOS, true),
        opt::TCLASS => (IPPROTO_IPV6, IPV6_TCLASS, true),
        opt::TTL => (IPPROTO_IP, IP_TTL, true),
        opt::RECVTOS => (IPPROTO_IP, IP_RECVTOS, true),
        opt::RECVTCLASS => (IPPROTO_IPV6, IPV6_RECVTCLASS, true),
        opt::RECVTTL => (IPPROTO_IP, IP_RECVTTL, true),
        opt::NODELAY => (IPPROTO_TCP, TCP_NODELAY, false),
        opt::NOPUSH => (IPPROTO_TCP, numbers::TCP_CORK?, false),
        opt::KEEPCNT => (IPPROTO_TCP, TCP_KEEPCNT, true),
        opt::KEEPIDLE => (IPPROTO_TCP, numbers::TCP_IDLE, true),
        opt::KEEPINTVL => (IPPROTO_TCP, TCP_KEEPINTVL, true),
        opt::USER_TIMEOUT => (IPPROTO_TCP, numbers::TCP_USER_TIMEOUT?, true),
        opt::MULTICAST_TTL => (IPPROTO_IP, IP_MULTICAST_TTL, false),
        opt::MULTICAST_LOOP => (IPPROTO_IP, IP_MULTICAST_LOOP, false),
        opt::MULTICAST_IF if s.domain == AF_INET => (IPPROTO_IP, IP_MULTICAST_IF, false),
        opt::MULTICAST_IF if s.domain == AF_INET6 => (IPPROTO_IPV6, IPV6_MULTICAST_IF, false),
        opt::IPV6_V6ONLY => (IPPROTO_IPV6, IPV6_V6ONLY, true),
        _ => return None,
    })
}

/// Sets options in order until one fails. `stream` holds the options of a stream.
pub fn set(
    s: &mut Sock,
    mut stream: Option<&mut StreamOpts>,
    base: &Base,
    request: &[u8],
) -> Result<After, Error> {
    let mut args = Args(request);
    let before = (s.active, s.packet);
    let mut closed = false;
    while args.len() >= 5 {
        let o = args.u8()?;
        let v = args.i32()?;
        if o != opt::ACTIVE {
            set_one(s, stream.as_deref_mut(), o, v, &mut args)?;
            continue;
        }
        set_active(s, base, v, &mut args)?;
        closed = s.is_stream() && s.active != active::PASSIVE && s.state == 0;
        if closed && s.exit_on_close != 0 {
            break;
        }
    }
    Ok(match closed {
        true => After::Closed,
        false => follow_up(s, base, before),
    })
}

/// Sets option `active`. A counter follows in `args` if it counts.
fn set_active(s: &mut Sock, base: &Base, v: i32, args: &mut Args) -> Result<(), Error> {
    s.active = v;
    if v != active::MULTI {
        s.active_count = 0;
        return Ok(());
    }
    let n = s.active_count + args.u16()? as i16 as i32;
    if i16::try_from(n).is_err() {
        return Err(EINVAL);
    }
    s.active_count = n.max(0);
    if s.active_count == 0 {
        s.active = active::PASSIVE;
        s.tell_passive(base);
    }
    Ok(())
}

/// Sets an option other than `active`. Values of more than four bytes continue in `args`.
fn set_one(
    s: &mut Sock,
    stream: Option<&mut StreamOpts>,
    o: u8,
    v: i32,
    args: &mut Args,
) -> Result<(), Error> {
    match o {
        opt::HEADER => s.header = v as u32,
        opt::MODE => s.binary = v,
        opt::DELIVER => s.deliver = v,
        opt::BUFFER => {
            s.buffer = v.max(1);
            s.buffer_set = true;
        }
        opt::PACKET => s.packet = v,
        opt::PACKET_SIZE => s.packet_size = v as u32,
        opt::EXIT_ON_CLOSE => s.exit_on_close = v,
        opt::MSGQ_HIGH | opt::MSGQ_LOW if !MSGQ_LIMITS.contains(&v) => return Err(EINVAL),
        opt::MSGQ_HIGH => {
            s.msgq_high = v;
            s.msgq_low = s.msgq_low.min(v);
        }
        opt::MSGQ_LOW => {
            s.msgq_low = v;
            s.msgq_high = s.msgq_high.max(v);
        }
        opt::HIGH_WATERMARK
        | opt::LOW_WATERMARK
        | opt::SEND_TIMEOUT
        | opt::SEND_TIMEOUT_CLOSE
        | opt::DELAY_SEND
        | opt::SHOW_ECONNRESET => {
            if let Some(t) = stream {
                set_stream(t, o, v);
            }
        }
        opt::READ_PACKETS if s.kind == libc::SOCK_DGRAM && v <= 0 => return Err(EINVAL),
        opt::READ_PACKETS => {
            if s.kind == libc::SOCK_DGRAM {
                s.read_packets = v;
            }
        }
        opt::NETNS if numbers::HAS_NAMESPACES => {
            let n = usize::try_from(v).map_err(|_| EINVAL)?;
            s.netns = Some(args.take(n)?.to_vec());
        }
        // Means something for SCTP only, which has no driver here.
        opt::NON_BLOCK_SEND if release::has(READ_AHEAD) => {}
        // Means something on Windows only.
        opt::EXCLUSIVEADDRUSE if release::has(REUSE_OF_PORTS) => {}
        opt::READ_AHEAD if release::has(READ_AHEAD) => {
            if let Some(t) = stream {
                t.read_ahead = v != 0;
            }
        }
        opt::LINE_DELIM => s.delimiter = v as u8,
        opt::DEBUG => s.debug = (v != 0) as i32,
        opt::LINGER => {
            let time = args.i32()?;
            if let Some(t) = stream {
                t.linger_zero = v != 0 && time == 0;
            }
            let value = [v.to_ne_bytes(), time.to_ne_bytes()].concat();
            if let Ok(fd) = s.fd() {
                let _ = sys::set_option_only(fd, libc::SOL_SOCKET, libc::SO_LINGER, &value, false);
            }
        }
        opt::ADD_MEMBERSHIP | opt::DROP_MEMBERSHIP => {
            membership(s, o == opt::ADD_MEMBERSHIP, v, args)?
        }
        opt::RAW => {
            let name = args.i32()?;
            let n = usize::try_from(args.i32()?).map_err(|_| EINVAL)?;
            let value = args.take(n)?;
            if let Ok(fd) = s.fd() {
                let _ = sys::set_option_only(fd, v, name, value, false);
            }
        }
        opt::BIND_TO_DEVICE => {
            let n = usize::try_from(v).map_err(|_| EINVAL)?;
            let name = args.take(n)?;
            if n >= IFNAME_ROOM {
                return Err(EINVAL);
            }
            let mut room = [0; IFNAME_ROOM];
            room[..n].copy_from_slice(name);
            let option = numbers::SO_BINDTODEVICE.ok_or(EINVAL)?;
            sys::set_option_only(s.fd()?, libc::SOL_SOCKET, option, &room, true)
                .map_err(|_| EINVAL)?;
        }
        _ if is_ignored(o) => {}
        _ => set_int(s, o, v)?,
    }
    Ok(())
}

/// The follow-up to options that were set. Before, the socket had these values of `active` and
/// `packet`.
fn follow_up(s: &mut Sock, base: &Base, (old_active, old_packet): (i32, i32)) -> After {
    let live = if s.is_stream() {
        s.is_connected()
    } else {
        s.is_open()
    };
    if !live {
        return After::Nothing;
    }
    let counted = matches!(s.active, active::ONCE | active::MULTI);
    if s.is_stream() && old_active == active::PASSIVE && counted && s.packet == old_packet {
        return After::Read;
    }
    if s.active != old_active {
        s.select(base, Some(s.active != active::PASSIVE), None);
    }
    if !s.is_stream() || s.active == active::PASSIVE {
        return After::Nothing;
    }
    match (s.packet != old_packet, old_active == active::PASSIVE) {
        (true, _) if release::has(PACKETS_BEGIN_AGAIN) => After::BeginAgain,
        (false, false) => After::Nothing,
        _ => After::Deliver,
    }
}

fn set_stream(t: &mut StreamOpts, o: u8, v: i32) {
    match o {
        opt::HIGH_WATERMARK => {
            t.high = v.max(0);
            t.low = t.low.min(t.high);
        }
        opt::LOW_WATERMARK => {
            t.low = v.max(0);
            t.high = t.high.max(t.low);
        }
        opt::SEND_TIMEOUT => t.send_timeout = v,
        opt::SEND_TIMEOUT_CLOSE => t.send_timeout_close = v,
        opt::DELAY_SEND => t.delay_send = v != 0,
        _ => t.show_econnreset = v != 0,
    }
}

fn set_int(s: &mut Sock, o: u8, v: i32) -> Result<(), Error> {
    let (level, name, must) = kernel_int(s, o).ok_or(EINVAL)?;
    if o == opt::RCVBUF && !s.buffer_set {
        // The buffer must take what the kernel has; a datagram never exceeds 64 KB.
        if v > 1 << 16 && s.kind == libc::SOCK_DGRAM {
            s.buffer = 1 << 16;
        } else {
            s.buffer = s.buffer.max(v);
        }
    }
    // An interface is chosen by its address, in network byte order, or by its index.
    let by_address = o == opt::MULTICAST_IF && s.domain == libc::AF_INET;
    let v = if by_address { v.to_be() } else { v };
    let r = match s.fd() {
        Ok(fd) => sys::set_option_only(fd, level, name, &v.to_ne_bytes(), must),
        Err(_) => Err(libc::EBADF),
    };
    let bit = match o {
        opt::RECVTOS => control::TOS,
        opt::RECVTCLASS => control::TCLASS,
        opt::RECVTTL => control::TTL,
        _ => 0,
    };
    if r.is_ok() {
        if v != 0 {
            s.control_wanted |= bit;
        } else {
            s.control_wanted &= !bit;
        }
    }
    if must && r.is_err() {
        Err(EINVAL)
    } else {
        Ok(())
    }
}

fn membership(s: &Sock, add: bool, family: i32, args: &mut Args) -> Result<(), Error> {
    let index = args.i32()?;
    let fd = s.fd()?;
    if family == super::addr::family::INET as i32 && s.domain == libc::AF_INET {
        let group = args.take(4)?;
        let interface = args.take(4)?;
        // The kernel's structure: group, address of the interface, its index.
        let value = [group, interface, &index.to_ne_bytes()].concat();
        let name = if add {
            libc::IP_ADD_MEMBERSHIP
        } else {
            libc::IP_DROP_MEMBERSHIP
        };
        let _ = sys::set_option_only(fd, libc::IPPROTO_IP, name, &value, false);
        return Ok(());
    }
    if family == super::addr::family::INET6 as i32 && s.domain == libc::AF_INET6 {
        let group = args.take(16)?;
        let value = [group, &index.to_ne_bytes()].concat();
        let name = if add {
            numbers::IPV6_JOIN
        } else {
            numbers::IPV6_LEAVE
        };
        let _ = sys::set_option_only(fd, libc::IPPROTO_IPV6, name, &value, false);
        return Ok(());
    }
    Err(EINVAL)
}

/// The values of the requested options. Options that the socket does not have are omitted.
pub fn get(s: &Sock, stream: Option<&StreamOpts>, request: &[u8]) -> Result<Vec<u8>, Error> {
    let mut args = Args(request);
    let mut out = Vec::new();
    while !args.is_empty() {
        let o = args.u8()?;
        get_one(s, stream, o, &mut args, &mut out)?;
        if out.len() > MAX_ANSWER {
            return Err(EINVAL);
        }
    }
    Ok(out)
}

/// Appends the value of an option, if the socket has it. Some requests continue in `args`.
fn get_one(
    s: &Sock,
    stream: Option<&StreamOpts>,
    o: u8,
    args: &mut Args,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut put = |v: i32| {
        out.push(o);
        out.extend_from_slice(&v.to_be_bytes());
    };
    match o {
        opt::BUFFER => put(s.buffer),
        opt::HEADER => put(s.header as i32),
        opt::MODE => put(s.binary),
        opt::DELIVER => put(s.deliver),
        opt::ACTIVE => {
            put(s.active);
            if s.active == active::MULTI {
                out.extend_from_slice(&(s.active_count as i16).to_be_bytes());
            }
        }
        opt::PACKET => put(s.packet),
        opt::PACKET_SIZE => put(s.packet_size as i32),
        opt::EXIT_ON_CLOSE => put(s.exit_on_close),
        opt::MSGQ_HIGH => put(s.msgq_high),
        opt::MSGQ_LOW => put(s.msgq_low),
        opt::DEBUG => put(s.debug),
        opt::HIGH_WATERMARK
        | opt::LOW_WATERMARK
        | opt::SEND_TIMEOUT
        | opt::SEND_TIMEOUT_CLOSE
        | opt::DELAY_SEND
        | opt::SHOW_ECONNRESET => {
            if let Some(t) = stream.filter(|_| s.is_stream() || o == opt::SHOW_ECONNRESET) {
                put(stream_value(t, o));
            }
        }
        opt::EXCLUSIVEADDRUSE if release::has(REUSE_OF_PORTS) => put(0),
        opt::NON_BLOCK_SEND if release::has(READ_AHEAD) => put(0),
        opt::READ_AHEAD if release::has(READ_AHEAD) => {
            if let Some(t) = stream {
                put(t.read_ahead as i32);
            }
        }
        opt::READ_PACKETS => {
            if s.kind == libc::SOCK_DGRAM {
                put(s.read_packets);
            }
        }
        opt::NETNS if numbers::HAS_NAMESPACES => {
            if let Some(ns) = &s.netns {
                put(ns.len() as i32);
                out.extend_from_slice(ns);
            }
        }
        opt::LINGER => {
            let mut b = [0u8; 8];
            if get_kernel(s, libc::SOL_SOCKET, libc::SO_LINGER, &mut b).is_ok() {
                let word = |i: usize| i32::from_ne_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
                put(word(0));
                out.extend_from_slice(&word(4).to_be_bytes());
            }
        }
        opt::MULTICAST_IF => {
            let (level, name, _) = kernel_int(s, o).ok_or(EINVAL)?;
            let family = match s.domain {
                libc::AF_INET => super::addr::family::INET,
                _ => super::addr::family::INET6,
            };
            let mut b = [0u8; size_of::<i32>()];
            if get_kernel(s, level, name, &mut b).is_ok() {
                // An address is in network byte order, an index in that of the machine.
                put(match s.domain {
                    libc::AF_INET => i32::from_be_bytes(b),
                    _ => i32::from_ne_bytes(b),
                });
                out.extend_from_slice(&(family as i32).to_be_bytes());
            }
        }
        opt::RAW => raw_option(s, args, out)?,
        opt::BIND_TO_DEVICE => {
            if let Some(name) = bound_device(s)? {
                put(name.len() as i32);
                out.extend_from_slice(&name);
            }
        }
        opt::PKTOPTIONS => packet_options(s, out)?,
        _ if is_ignored(o) => put(0),
        _ => {
            let (level, name, _) = kernel_int(s, o).ok_or(EINVAL)?;
            let mut b = [0u8; size_of::<i32>()];
            if get_kernel(s, level, name, &mut b).is_ok() {
                put(i32::from_ne_bytes(b));
            }
        }
    }
    Ok(())
}

fn stream_value(t: &StreamOpts, o: u8) -> i32 {
    match o {
        opt::HIGH_WATERMARK => t.high,
        opt::LOW_WATERMARK => t.low,
        opt::SEND_TIMEOUT => t.send_timeout,
        opt::SEND_TIMEOUT_CLOSE => t.send_timeout_close,
        opt::DELAY_SEND => t.delay_send as i32,
        _ => t.show_econnreset as i32,
    }
}

fn get_kernel(s: &Sock, level: i32, name: i32, to: &mut [u8]) -> Result<usize, Error> {
    Ok(sys::get_option(s.fd()?, level, name, to)?)
}

fn raw_option(s: &Sock, args: &mut Args, out: &mut Vec<u8>) -> Result<(), Error> {
    let (level, name) = (args.i32()?, args.i32()?);
    let given = args.u8()? != 0;
    let n = args.u32()? as usize;
    if n > MAX_ANSWER {
        return Err(EINVAL);
    }
    let mut value = vec![0; n];
    if given {
        value.copy_from_slice(args.take(n)?);
    }
    if let Ok(n) = get_kernel(s, level, name, &mut value) {
        out.push(opt::RAW);
        for v in [level, name, n as i32] {
            out.extend_from_slice(&v.to_be_bytes());
        }
        out.extend_from_slice(&value[..n]);
    }
    Ok(())
}

/// The name of the interface that a socket is bound to.
fn bound_device(s: &Sock) -> Result<Option<Vec<u8>>, Error> {
    let option = numbers::SO_BINDTODEVICE.ok_or(EINVAL)?;
    let mut b = [0u8; IFNAME_ROOM];
    let read = get_kernel(s, libc::SOL_SOCKET, option, &mut b);
    Ok(read.ok().map(|n| {
        let name = b[..n].iter().take_while(|&&c| c != 0);
        name.copied().collect()
    }))
}

fn packet_options(s: &Sock, out: &mut Vec<u8>) -> Result<(), Error> {
    let (level, name) = match s.domain {
        libc::AF_INET => (libc::IPPROTO_IP, numbers::IP_PKTOPTIONS),
        libc::AF_INET6 => (libc::IPPROTO_IPV6, numbers::IPV6_OLD_PKTOPTIONS),
        _ => return Err(EINVAL),
    };
    let name = name.ok_or(EINVAL)?;
    let mut b = [0u8; 64];
    let Ok(n) = get_kernel(s, level, name, &mut b) else {
        return Ok(());
    };
    let mut list = Vec::new();
    for (level, kind, data) in sys::control_messages(&b[..n]) {
        if let Some(o) = control_option(level, kind) {
            list.push(o);
            list.extend_from_slice(&(control_value(data) as i32).to_be_bytes());
        }
    }
    out.push(opt::PKTOPTIONS);
    out.extend_from_slice(&(list.len() as u32).to_be_bytes());
    out.extend_from_slice(&list);
    Ok(())
}

/// The option that a control message is about.
pub(crate) fn control_option(level: i32, kind: i32) -> Option<u8> {
    match (level, kind) {
        (libc::IPPROTO_IP, libc::IP_TOS | libc::IP_RECVTOS) => Some(opt::TOS),
        (libc::IPPROTO_IP, libc::IP_TTL | libc::IP_RECVTTL) => Some(opt::TTL),
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS | libc::IPV6_RECVTCLASS) => Some(opt::TCLASS),
        _ => None,
    }
}

/// The number in a control message, of any size.
pub(crate) fn control_value(data: &[u8]) -> u32 {
    match *data {
        [a] => a as u32,
        [a, b] => u16::from_ne_bytes([a, b]) as u32,
        [a, b, c, d, ..] => u32::from_ne_bytes([a, b, c, d]),
        _ => 0,
    }
}
