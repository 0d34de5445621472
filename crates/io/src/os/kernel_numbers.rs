//! Numbers that not every system has: options of sockets, flags, requests, types of hardware.
//! `None` stands for a number that this system lacks. Programs meet such a one as an option, a flag
//! or a request that is not supported.

/// Numbers of Linux.
#[cfg(target_os = "linux")]
macro_rules! linux {
    ($kind:ty: $($name:ident)*) => {
        $(pub(crate) const $name: Option<$kind> = Some(libc::$name as $kind);)*
    };
}
#[cfg(not(target_os = "linux"))]
macro_rules! linux {
    ($kind:ty: $($name:ident)*) => { $(pub(crate) const $name: Option<$kind> = None;)* };
}
/// Numbers of macOS.
#[cfg(target_os = "macos")]
macro_rules! macos {
    ($kind:ty: $($name:ident)*) => {
        $(pub(crate) const $name: Option<$kind> = Some(libc::$name as $kind);)*
    };
}
#[cfg(not(target_os = "macos"))]
macro_rules! macos {
    ($kind:ty: $($name:ident)*) => { $(pub(crate) const $name: Option<$kind> = None;)* };
}

/// The number, or the 0 that stands for a missing one in a table of flags.
pub(crate) const fn or_zero(n: Option<i32>) -> i32 {
    match n {
        Some(n) => n,
        None => 0,
    }
}

/// Whether stock has SCTP here.
pub(crate) const HAS_SCTP: bool = cfg!(target_os = "linux");
/// Whether there are network namespaces.
pub(crate) const HAS_NAMESPACES: bool = cfg!(target_os = "linux");
/// Whether one call sends or receives several messages.
pub(crate) const HAS_BATCHES: bool = cfg!(target_os = "linux");

// Options of level `socket`.
linux! { i32:
    SO_BINDTODEVICE SO_DOMAIN SO_PASSCRED SO_PEEK_OFF SO_PRIORITY SO_PROTOCOL SO_TIMESTAMPNS
}

// Options of IPv4.
linux! { i32:
    IP_FREEBIND IP_MINTTL IP_MTU IP_MTU_DISCOVER IP_MULTICAST_ALL IP_NODEFRAG IP_ORIGDSTADDR
    IP_PKTOPTIONS IP_RECVERR IP_RECVOPTS IP_RECVORIGDSTADDR IP_RETOPTS IP_ROUTER_ALERT
    IP_TRANSPARENT
}
macos! { i32: IP_RECVDSTADDR IP_RECVIF }
/// `IP_MSFILTER` with the structure that [`Set::Filter4`](crate::net::socket) makes.
pub(crate) const IP_MSFILTER: Option<i32> = on_linux(41);

// Options of IPv6.
linux! { i32:
    IPV6_ADDRFORM IPV6_AUTHHDR IPV6_DSTOPTS IPV6_FLOWINFO IPV6_HOPOPTS IPV6_MTU IPV6_MTU_DISCOVER
    IPV6_RECVERR IPV6_ROUTER_ALERT IPV6_RTHDR
}
/// `IPV6_2292PKTOPTIONS` of the system's headers.
pub(crate) const IPV6_OLD_PKTOPTIONS: Option<i32> = on_linux(6);
/// Joins a group. RFC 3493 calls it `IPV6_JOIN_GROUP`.
#[cfg(target_os = "linux")]
pub(crate) const IPV6_JOIN: i32 = libc::IPV6_ADD_MEMBERSHIP;
#[cfg(not(target_os = "linux"))]
pub(crate) const IPV6_JOIN: i32 = libc::IPV6_JOIN_GROUP;
/// Leaves a group. RFC 3493 calls it `IPV6_LEAVE_GROUP`.
#[cfg(target_os = "linux")]
pub(crate) const IPV6_LEAVE: i32 = libc::IPV6_DROP_MEMBERSHIP;
#[cfg(not(target_os = "linux"))]
pub(crate) const IPV6_LEAVE: i32 = libc::IPV6_LEAVE_GROUP;

// Options of TCP and UDP.
linux! { i32: TCP_CONGESTION TCP_CORK TCP_USER_TIMEOUT }
/// Idle seconds before the first probe.
#[cfg(target_os = "linux")]
pub(crate) const TCP_IDLE: i32 = libc::TCP_KEEPIDLE;
#[cfg(not(target_os = "linux"))]
pub(crate) const TCP_IDLE: i32 = libc::TCP_KEEPALIVE;
pub(crate) const UDP_CORK: Option<i32> = on_linux(1);
linux! { i32: IPPROTO_MPTCP }

// Ways of finding the size of packets on a path.
linux! { i32: IP_PMTUDISC_WANT IP_PMTUDISC_DONT IP_PMTUDISC_DO IP_PMTUDISC_PROBE }

// Flags of messages, and types of control messages.
linux! { i32: MSG_CMSG_CLOEXEC MSG_CONFIRM MSG_ERRQUEUE MSG_MORE SCM_TIMESTAMPNS }
#[cfg(target_os = "linux")]
pub(crate) const SCM_CREDENTIALS: i32 = libc::SCM_CREDENTIALS;
#[cfg(not(target_os = "linux"))]
pub(crate) const SCM_CREDENTIALS: i32 = libc::SCM_CREDS;

// Flags of interfaces.
linux! { i32: IFF_MASTER IFF_SLAVE IFF_PORTSEL IFF_AUTOMEDIA IFF_DYNAMIC }
macos! { i32: IFF_OACTIVE IFF_SIMPLEX IFF_LINK0 IFF_LINK1 IFF_LINK2 }
pub(crate) const IFF_LOWER_UP: Option<i32> = on_linux(0x1_0000);
pub(crate) const IFF_DORMANT: Option<i32> = on_linux(0x2_0000);
pub(crate) const IFF_ECHO: Option<i32> = on_linux(0x4_0000);

// Requests.
linux! { u64:
    SIOCGIFNAME SIOCGIFINDEX SIOCGIFHWADDR SIOCSIFHWADDR SIOCGIFMAP SIOCGIFTXQLEN SIOCSIFTXQLEN
}
/// `SIOCATMARK` of the system's headers.
#[cfg(target_os = "linux")]
pub(crate) const SIOCATMARK: u64 = 0x8905;
#[cfg(not(target_os = "linux"))]
pub(crate) const SIOCATMARK: u64 = 0x4004_7307;

// Types of hardware.
linux! { u16:
    ARPHRD_NETROM ARPHRD_ETHER ARPHRD_EETHER ARPHRD_AX25 ARPHRD_PRONET ARPHRD_CHAOS ARPHRD_IEEE802
    ARPHRD_ARCNET ARPHRD_APPLETLK ARPHRD_DLCI ARPHRD_ATM ARPHRD_METRICOM ARPHRD_IEEE1394
    ARPHRD_EUI64 ARPHRD_INFINIBAND ARPHRD_TUNNEL ARPHRD_TUNNEL6 ARPHRD_LOOPBACK ARPHRD_LOCALTLK
    ARPHRD_NONE ARPHRD_VOID
}

/// A number of Linux for which libc has no name.
const fn on_linux(n: i32) -> Option<i32> {
    if cfg!(target_os = "linux") {
        Some(n)
    } else {
        None
    }
}
