//! Machines, their sockets and their ports.

use super::links::{Link, Speed};
use super::states::{Attempt, Datagram, MachineId, Packet, SocketId, State, Tcp, Udp};
use crate::errno::{Answer, Errno, Refusal, fail};
use crate::event_queue::EventQueue;
use crate::streams::Stream;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The family of a socket's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    V4,
    /// Without addresses of IPv4: as with `IPV6_V6ONLY`.
    V6,
}

impl Family {
    pub(super) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        }
    }

    pub(super) fn any(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    fn loopback(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::LOCALHOST.into(),
            Family::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }
}

/// The first port that is given out: that of the range for private use (RFC 6335).
pub const FIRST_PORT: u16 = 49152;

/// The time for which a closed connection keeps its port, in nanoseconds.
pub(super) const TIME_WAIT: u64 = 60_000_000_000;

#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) addresses: Vec<IpAddr>,
    next_port: u16,
    pub(super) is_up: bool,
    /// Closed connections that keep their ports: addresses, whether they may be bound again, end.
    pub(super) waiting: Vec<(SocketAddr, SocketAddr, bool, u64)>,
}

#[derive(Clone, Debug)]
pub(super) enum Protocol {
    Tcp(Tcp),
    Udp(Udp),
}

#[derive(Clone, Debug)]
pub(super) struct Socket {
    pub(super) machine: MachineId,
    pub(super) family: Family,
    /// Whether a process has it open.
    pub(super) owned: bool,
    /// `SO_REUSEADDR`.
    pub(super) reuse: bool,
    /// The address that it has among the machine's ports.
    pub(super) bound: Option<SocketAddr>,
    /// Whether the process named the port, so that the socket keeps it when it closes.
    pub(super) keeps_port: bool,
    /// Whether the process named the address.
    pub(super) keeps_address: bool,
    /// The address that `getsockname` returns.
    pub(super) name: SocketAddr,
    pub(super) error: Option<Errno>,
    pub(super) protocol: Protocol,
    /// Number of wakeups by kind: readable, writable, any change.
    pub(super) wakes: [u64; 3],
}

/// Something that happens at its time.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Packet(Packet),
    Datagram(Datagram),
    /// A connection's request is sent again: the socket, and how many times it was.
    Again(SocketId, u32),
    /// A closed socket no longer waits for the other end.
    Forget(SocketId),
}

/// All machines, their links and their sockets.
#[derive(Clone, Debug)]
pub struct Net {
    pub(super) now: u64,
    pub(super) machines: BTreeMap<MachineId, Machine>,
    pub(super) links: BTreeMap<(MachineId, MachineId), Link<Event>>,
    pub(super) sockets: BTreeMap<SocketId, Socket>,
    pub(super) events: EventQueue<Event>,
    next: u64,
    /// Number of packets that have left.
    pub(super) packets: u64,
    pub(super) numbers: Stream,
}

impl Net {
    /// Returns a net without machines; `numbers` are for the jitter of links.
    pub fn new(numbers: Stream) -> Self {
        Net {
            now: 0,
            machines: BTreeMap::new(),
            links: BTreeMap::new(),
            sockets: BTreeMap::new(),
            events: EventQueue::default(),
            next: 0,
            packets: 0,
            numbers,
        }
    }

    /// Adds a machine with its addresses beside those of the loopback.
    pub fn add_machine(&mut self, id: MachineId, addresses: Vec<IpAddr>) {
        let machine = Machine {
            addresses,
            next_port: FIRST_PORT,
            is_up: true,
            waiting: Vec::new(),
        };
        self.machines.insert(id, machine);
    }

    /// Returns the world's time, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Makes a socket.
    pub(super) fn make(&mut self, machine: MachineId, family: Family, what: Protocol) -> SocketId {
        let id = SocketId(self.next);
        self.next += 1;
        let socket = Socket {
            machine,
            family,
            owned: true,
            reuse: false,
            bound: None,
            keeps_port: false,
            keeps_address: false,
            name: SocketAddr::new(family.any(), 0),
            error: None,
            protocol: what,
            wakes: [0; 3],
        };
        self.sockets.insert(id, socket);
        id
    }

    pub(super) fn socket(&self, id: SocketId) -> Answer<&Socket> {
        self.sockets.get(&id).ok_or(Errno::EBADF.into())
    }

    pub(super) fn socket_mut(&mut self, id: SocketId) -> Answer<&mut Socket> {
        self.sockets.get_mut(&id).ok_or(Errno::EBADF.into())
    }

    pub(super) fn link(&mut self, from: MachineId, to: MachineId) -> &mut Link<Event> {
        let speed = if from == to {
            Speed::LOOPBACK
        } else {
            Speed::NETWORK
        };
        self.links
            .entry((from, to))
            .or_insert_with(|| Link::new(speed))
    }

    /// Sets `SO_REUSEADDR`.
    pub fn set_reuse(&mut self, id: SocketId, reuse: bool) -> Answer<()> {
        self.socket_mut(id)?.reuse = reuse;
        Ok(())
    }

    /// Returns the pending error and clears it (`SO_ERROR`).
    pub fn take_error(&mut self, id: SocketId) -> Answer<Option<Errno>> {
        Ok(self.socket_mut(id)?.error.take())
    }

    /// Returns the machine that has an address, seen from another one.
    pub(super) fn owner(&self, from: MachineId, address: IpAddr) -> Option<MachineId> {
        if address.is_loopback() {
            return Some(from);
        }
        let has = |m: &Machine| m.addresses.contains(&address);
        let mut all = self.machines.iter();
        all.find(|(_, m)| has(m)).map(|(id, _)| *id)
    }

    /// Returns the address from which a machine reaches another address.
    pub(super) fn source(&self, from: MachineId, to: IpAddr) -> Answer<IpAddr> {
        if to.is_loopback() {
            return Ok(Family::of(to).loopback());
        }
        let Some(machine) = self.machines.get(&from) else {
            return fail(Errno::ENETUNREACH);
        };
        if machine.addresses.contains(&to) {
            return Ok(to);
        }
        let mut own = machine.addresses.iter();
        let own = own.find(|a| a.is_ipv4() == to.is_ipv4());
        own.copied().ok_or(Errno::ENETUNREACH.into())
    }

    /// Returns the address that is meant by one that may be unspecified, and checks its family.
    pub(super) fn target(&self, family: Family, to: SocketAddr) -> Answer<SocketAddr> {
        match (family, to) {
            (Family::V4, SocketAddr::V6(_)) => return fail(Errno::EAFNOSUPPORT),
            (Family::V6, SocketAddr::V4(_)) => return fail(Errno::EINVAL),
            (Family::V6, SocketAddr::V6(to)) if to.ip().to_ipv4_mapped().is_some() => {
                return Err(Refusal::NotModelled("an address of IPv4 in IPv6"));
            }
            _ => {}
        }
        if to.port() == 0 {
            return Err(Refusal::NotModelled("port 0 as a target"));
        }
        if to.ip().is_multicast() || to.ip() == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return Err(Refusal::NotModelled("an address of many"));
        }
        if to.ip().is_unspecified() {
            return Ok(SocketAddr::new(family.loopback(), to.port()));
        }
        Ok(SocketAddr::new(to.ip(), to.port()))
    }

    /// Binds a socket to an address; to a free port if the port is 0.
    pub fn bind(&mut self, id: SocketId, to: SocketAddr) -> Answer<()> {
        let socket = self.socket(id)?;
        match (socket.family, to) {
            (Family::V4, SocketAddr::V6(_)) => return fail(Errno::EAFNOSUPPORT),
            (Family::V6, SocketAddr::V4(_)) => return fail(Errno::EINVAL),
            _ => {}
        }
        let machine = socket.machine;
        let is_own = to.ip().is_unspecified()
            || to.ip().is_loopback()
            || self.machines[&machine].addresses.contains(&to.ip());
        if (1..1024).contains(&to.port()) {
            return Err(Refusal::NotModelled("a port below 1024"));
        }
        let busy = socket.bound.is_some() || socket.is_connected_or_listens();
        // The kernel's two families check in different orders.
        match (socket.family, is_own, busy) {
            (_, true, false) => {}
            (Family::V4, false, _) | (_, _, false) => return fail(Errno::EADDRNOTAVAIL),
            (_, _, true) => return fail(Errno::EINVAL),
        }
        if socket.was_connected() {
            return Err(Refusal::NotModelled("bind after a connection"));
        }
        let at = self.free_address(id, to)?;
        let socket = self.socket_mut(id)?;
        socket.bound = Some(at);
        socket.name = at;
        socket.keeps_port = to.port() != 0;
        socket.keeps_address = !to.ip().is_unspecified();
        Ok(())
    }

    /// Returns an address that the socket may have: with the port asked for, or a free one.
    pub(super) fn free_address(&mut self, id: SocketId, to: SocketAddr) -> Answer<SocketAddr> {
        if to.port() != 0 {
            return if self.conflicts(id, to)? {
                fail(Errno::EADDRINUSE)
            } else {
                Ok(to)
            };
        }
        let machine = self.socket(id)?.machine;
        for _ in FIRST_PORT..=u16::MAX {
            let Some(m) = self.machines.get_mut(&machine) else {
                break;
            };
            let at = SocketAddr::new(to.ip(), m.next_port);
            m.next_port = m.next_port.checked_add(1).unwrap_or(FIRST_PORT);
            if !self.port_is_used(id, at.port())? {
                return Ok(at);
            }
        }
        fail(Errno::EADDRINUSE)
    }

    /// Whether any socket of the machine has a port.
    fn port_is_used(&self, id: SocketId, port: u16) -> Answer<bool> {
        let socket = self.socket(id)?;
        let machine = &self.machines[&socket.machine];
        let mut others = self.sockets.values();
        Ok(
            others
                .any(|s| s.machine == socket.machine && s.bound.is_some_and(|b| b.port() == port))
                || machine
                    .waiting
                    .iter()
                    .any(|w| w.0.port() == port && w.3 > self.now),
        )
    }

    /// Whether another socket has an address in a way that `id` cannot have it, too.
    pub(super) fn conflicts(&self, id: SocketId, to: SocketAddr) -> Answer<bool> {
        let socket = self.socket(id)?;
        let overlaps = |other: SocketAddr| {
            let (a, b) = (other.ip(), to.ip());
            let any = a.is_unspecified() || b.is_unspecified();
            other.port() == to.port() && a.is_ipv4() == b.is_ipv4() && (any || a == b)
        };
        for (other, s) in &self.sockets {
            let same = s.machine == socket.machine && s.is_tcp() == socket.is_tcp();
            if *other == id || !same || !s.bound.is_some_and(overlaps) {
                continue;
            }
            if !socket.is_tcp() && (s.reuse || socket.reuse) {
                return Err(Refusal::NotModelled("datagram sockets that share a port"));
            }
            if !(s.reuse && socket.reuse) || s.listens() {
                return Ok(true);
            }
        }
        let waiting = &self.machines[&socket.machine].waiting;
        Ok(socket.is_tcp()
            && waiting
                .iter()
                .any(|w| overlaps(w.0) && w.3 > self.now && !(w.2 && socket.reuse)))
    }

    /// Returns the address of a socket (`getsockname`).
    pub fn name(&self, id: SocketId) -> Answer<SocketAddr> {
        let socket = self.socket(id)?;
        if socket.was_connected() && !socket.is_connected_or_listens() {
            return Err(Refusal::NotModelled(
                "the name of a socket whose connection has ended",
            ));
        }
        Ok(socket.name)
    }

    /// Returns the machine at the other end of a connection.
    pub fn peer_machine(&self, id: SocketId) -> Option<MachineId> {
        let socket = self.sockets.get(&id)?;
        let remote = socket.tcp().ok()?.remote?;
        self.owner(socket.machine, remote.ip())
    }

    /// Returns the connections of a machine with another one, by their ends at the first.
    pub fn between(&self, a: MachineId, b: MachineId) -> Vec<SocketId> {
        let of = |(id, s): (&SocketId, &Socket)| {
            let is_one = s.machine == a && s.tcp().is_ok_and(|t| t.peer.is_some());
            (is_one && self.peer_machine(*id) == Some(b)).then_some(*id)
        };
        self.sockets.iter().filter_map(of).collect()
    }

    /// Counts a wakeup: 0 of readers, 1 of writers, 2 of both.
    pub(super) fn wake(&mut self, id: SocketId, kind: usize) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.wakes[kind] += 1;
        }
    }
}

impl Socket {
    pub(super) fn listens(&self) -> bool {
        self.tcp().is_ok_and(|t| t.state == State::Listen)
    }

    /// Whether the socket has a connection, is about to have one, or listens.
    fn is_connected_or_listens(&self) -> bool {
        self.tcp().is_ok_and(|t| t.state != State::Closed)
    }

    /// Whether the socket has or had a connection or an attempt at one.
    fn was_connected(&self) -> bool {
        self.tcp()
            .is_ok_and(|t| t.attempt != Attempt::None || t.tried)
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.protocol, Protocol::Tcp(_))
    }

    pub(super) fn tcp(&self) -> Answer<&Tcp> {
        match &self.protocol {
            Protocol::Tcp(tcp) => Ok(tcp),
            Protocol::Udp(_) => fail(Errno::EOPNOTSUPP),
        }
    }

    pub(super) fn tcp_mut(&mut self) -> Answer<&mut Tcp> {
        match &mut self.protocol {
            Protocol::Tcp(tcp) => Ok(tcp),
            Protocol::Udp(_) => fail(Errno::EOPNOTSUPP),
        }
    }

    pub(super) fn udp_mut(&mut self) -> Answer<&mut Udp> {
        match &mut self.protocol {
            Protocol::Udp(udp) => Ok(udp),
            Protocol::Tcp(_) => fail(Errno::EOPNOTSUPP),
        }
    }
}
