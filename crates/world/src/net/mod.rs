//! Sockets of machines, and the links between them.
//!
//! `states` has what a socket and a packet is, `sockets` the machines with their ports, `links` and
//! `sending` the ways between them, `tcp` and `udp` the calls and the arrivals, `delivery` the
//! passing of time, `readiness` what `poll` and `epoll` say. The test `sockets_against_kernel`
//! compares all calls with the kernel's, once everything that was under way has arrived.
//!
//! # Not modelled
//! Refused: ports below 1024, multicast and broadcast, addresses of IPv4 in IPv6 sockets, a socket
//! that connects with itself or again within a minute, `shutdown` of datagram and listening
//! sockets and before a connection is made, `bind` and `getsockname` after a connection has ended,
//! datagram sockets that share a port. Absent: local sockets, urgent data, `SO_REUSEPORT`,
//! `SO_KEEPALIVE`, low-water marks, options of TCP, timeouts of data that is not acknowledged.
//! Different: buffers and windows have fixed sizes in bytes, where the kernel counts its own
//! memory; bytes leave at once, as with `TCP_NODELAY`; a connection counts against the backlog from
//! its request on; free ports count up.

mod delivery;
mod links;
mod readiness;
mod sending;
mod sockets;
mod states;
mod tcp;
mod udp;

pub use links::Speed;
pub use readiness::{ERR, Epoll, FAILED, HUP, IN, OUT, RDHUP, Watch};
pub use sockets::{FIRST_PORT, Family, Net};
pub use states::{MachineId, SocketId};
pub use tcp::Direction;
