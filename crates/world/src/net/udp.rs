//! Datagrams.

use super::sockets::{Event, Family, Net, Protocol};
use super::states::{Datagram, MachineId, SocketId, Udp};
use crate::errno::{Answer, Errno, Refusal, fail};
use std::net::SocketAddr;

/// Bytes that a socket holds unread; what arrives then is lost.
const BUFFER: usize = 200 << 10;

/// Length from which a datagram is too long.
const LENGTHS: usize = 65_508;

impl Net {
    /// Makes a datagram socket.
    pub fn udp(&mut self, machine: MachineId, family: Family) -> SocketId {
        self.make(machine, family, Protocol::Udp(Udp::default()))
    }

    /// Whether a socket is one of datagrams.
    pub fn is_datagram(&self, id: SocketId) -> bool {
        self.socket(id).is_ok_and(|s| !s.is_tcp())
    }

    /// Sets the only address that the socket sends to and receives from.
    pub(super) fn connect_datagrams(&mut self, id: SocketId, to: SocketAddr) -> Answer<()> {
        let target = self.datagram_target(self.socket(id)?.family, to, Errno::EAFNOSUPPORT);
        if let Err(Refusal::NotModelled(_)) = target {
            return target.map(drop);
        }
        if self.socket(id)?.bound.is_none() {
            self.autobind(id)?;
        }
        let to = target?;
        self.name_for(id, to)?;
        let socket = self.socket_mut(id)?;
        socket.udp_mut()?.remote = Some(to);
        Ok(())
    }

    /// Returns the address that is meant, or `other` for one of IPv4 with a socket of IPv6.
    fn datagram_target(&self, family: Family, to: SocketAddr, other: Errno) -> Answer<SocketAddr> {
        if family == Family::V6 && to.is_ipv4() {
            return fail(other);
        }
        self.target(family, to)
    }

    /// Gives a socket the address from which it reaches another, as `connect` does.
    fn name_for(&mut self, id: SocketId, to: SocketAddr) -> Answer<()> {
        let socket = self.socket(id)?;
        let source = self.source(socket.machine, to.ip())?;
        let socket = self.socket_mut(id)?;
        if let Some(at) = &mut socket.bound
            && at.ip().is_unspecified()
        {
            at.set_ip(source);
            socket.name = *at;
        }
        Ok(())
    }

    /// Sends a datagram to an address, or to that of `connect`. A stream ignores the address.
    pub fn send_datagram(
        &mut self,
        id: SocketId,
        data: &[u8],
        to: Option<SocketAddr>,
    ) -> Answer<usize> {
        if self.socket(id)?.is_tcp() {
            return self.send(id, data);
        }
        let (family, machine) = (self.socket(id)?.family, self.socket(id)?.machine);
        let target = to.map(|to| self.datagram_target(family, to, Errno::ENETUNREACH));
        if let Some(Err(Refusal::NotModelled(what))) = target {
            return Err(Refusal::NotModelled(what));
        }
        // The kernel binds the socket whether the call succeeds or not.
        if self.socket(id)?.bound.is_none() {
            self.autobind(id)?;
        }
        if data.len() >= LENGTHS {
            return fail(Errno::EMSGSIZE);
        }
        let to = match target {
            Some(to) => to?,
            None => match self.socket_mut(id)?.udp_mut()?.remote {
                Some(to) => to,
                None => return fail(Errno::EDESTADDRREQ),
            },
        };
        if let Some(error) = self.socket_mut(id)?.error.take() {
            return fail(error);
        }
        let Some(receiver) = self.owner(machine, to.ip()) else {
            return fail(Errno::EHOSTUNREACH);
        };
        let mut from = self.socket(id)?.name;
        if from.ip().is_unspecified() {
            from.set_ip(self.source(machine, to.ip())?);
        }
        self.transmit(Event::Datagram(Datagram {
            sender: machine,
            receiver,
            from,
            to,
            data: Some(data.to_vec()),
        }));
        // The datagram has left the buffer of its sender.
        self.wake(id, 1);
        Ok(data.len())
    }

    /// Receives a datagram, cut off at `len` bytes, and the address that it is from.
    pub fn recv_datagram(&mut self, id: SocketId, len: usize) -> Answer<(SocketAddr, Vec<u8>)> {
        let socket = self.socket_mut(id)?;
        if socket.is_tcp() {
            return Err(Refusal::NotModelled("the sender of bytes of a stream"));
        }
        if let Some(error) = socket.error.take() {
            return fail(error);
        }
        let udp = socket.udp_mut()?;
        let Some((from, mut data)) = udp.received.pop_front() else {
            return fail(Errno::EAGAIN);
        };
        udp.bytes -= data.len();
        data.truncate(len);
        Ok((from, data))
    }

    /// Returns the socket that takes what is from and to these addresses: one that is connected
    /// with the sender first, then one of this address, then one of all addresses.
    fn taker(&self, machine: MachineId, from: SocketAddr, to: SocketAddr) -> Option<SocketId> {
        let any = Family::of(to.ip()).any();
        let rate = |(id, s): (&SocketId, &super::sockets::Socket)| {
            let Protocol::Udp(udp) = &s.protocol else {
                return None;
            };
            let at = s.bound.filter(|_| s.machine == machine)?;
            let fits = at.port() == to.port() && (at.ip() == to.ip() || at.ip() == any);
            let connected = udp.remote.is_some();
            if !fits || udp.remote.is_some_and(|r| r != from) {
                return None;
            }
            Some((connected, at.ip() != any, *id))
        };
        self.sockets.iter().filter_map(rate).max().map(|r| r.2)
    }

    /// Delivers a datagram, or the answer that nothing took one.
    pub(super) fn datagram(&mut self, datagram: Datagram) {
        let Datagram {
            sender,
            receiver,
            from,
            to,
            data,
        } = datagram;
        let taker = self.taker(receiver, from, to);
        let Some(data) = data else {
            if let Some(id) = taker
                && let Ok(socket) = self.socket_mut(id)
                && socket.udp_mut().is_ok_and(|u| u.remote.is_some())
            {
                socket.error = Some(Errno::ECONNREFUSED);
                self.wake(id, 2);
            }
            return;
        };
        let Some(id) = taker else {
            return self.transmit(Event::Datagram(Datagram {
                sender: receiver,
                receiver: sender,
                from: to,
                to: from,
                data: None,
            }));
        };
        if let Ok(udp) = self.socket_mut(id).and_then(|s| s.udp_mut())
            && udp.bytes + data.len() <= BUFFER
        {
            udp.bytes += data.len();
            udp.received.push_back((from, data));
            self.wake(id, 0);
        }
    }
}
