//! Connections: the calls of processes, and the steps that arrive.
//!
//! Calls never wait: they fail with `EAGAIN` or `EINPROGRESS` as those of a socket with
//! `O_NONBLOCK`. A call that is to wait is made again when the socket has been woken.

use super::sockets::{Event, Family, Net, Protocol, TIME_WAIT};
use super::states::{Attempt, Body, MachineId, Packet, SEND_BUFFER, SocketId, State, Tcp};
use crate::errno::{Answer, Errno, Refusal, fail};
use std::net::SocketAddr;

/// Bytes that may be under way or unread at the other end.
const WINDOW: usize = 256 << 10;

/// Time after which a request for a connection is sent again, doubled each time.
const AGAIN: u64 = 1_000_000_000;

/// Number of times a request is sent again.
const AGAINS: u32 = 6;

/// Time for which a closed socket waits for the end of the other side.
const FORGET: u64 = 60_000_000_000;

/// The sender of the answer that a port has no socket.
const NO_SOCKET: SocketId = SocketId(u64::MAX);

/// The directions that `shutdown` ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Reads,
    Writes,
    Both,
}

impl Net {
    /// Makes a stream socket.
    pub fn tcp(&mut self, machine: MachineId, family: Family) -> SocketId {
        self.make(machine, family, Protocol::Tcp(Tcp::new(State::Closed)))
    }

    fn conn(&self, id: SocketId) -> Answer<&Tcp> {
        self.socket(id)?.tcp()
    }

    fn conn_mut(&mut self, id: SocketId) -> Answer<&mut Tcp> {
        self.socket_mut(id)?.tcp_mut()
    }

    /// Makes `close` reset the connection (`SO_LINGER` with a time of 0).
    pub fn set_aborts(&mut self, id: SocketId, aborts: bool) -> Answer<()> {
        if let Protocol::Tcp(tcp) = &mut self.socket_mut(id)?.protocol {
            tcp.aborts = aborts;
        }
        Ok(())
    }

    /// Begins to listen, or changes the backlog.
    pub fn listen(&mut self, id: SocketId, backlog: usize) -> Answer<()> {
        let tcp = self.conn(id)?;
        if tcp.attempt != Attempt::None {
            return fail(Errno::EINVAL);
        }
        match tcp.state {
            State::Listen => {}
            State::Closed => {
                let socket = self.socket(id)?;
                match socket.bound {
                    Some(at) if self.conflicts(id, at)? => return fail(Errno::EADDRINUSE),
                    Some(_) => {}
                    None => self.autobind(id)?,
                }
                self.conn_mut(id)?.state = State::Listen;
            }
            _ => return fail(Errno::EINVAL),
        }
        self.conn_mut(id)?.backlog = backlog;
        Ok(())
    }

    /// Binds a socket to a free port of the address that it has, or of all.
    pub(super) fn autobind(&mut self, id: SocketId) -> Answer<()> {
        let ip = self.socket(id)?.name.ip();
        let at = self.free_address(id, SocketAddr::new(ip, 0))?;
        let socket = self.socket_mut(id)?;
        socket.bound = Some(at);
        socket.name = at;
        Ok(())
    }

    /// Takes a connection that waits, and returns it with its remote address.
    pub fn accept(&mut self, id: SocketId) -> Answer<(SocketId, SocketAddr)> {
        let tcp = self.conn_mut(id)?;
        if tcp.state != State::Listen {
            return fail(Errno::EINVAL);
        }
        let Some(new) = tcp.queue.pop_front() else {
            return fail(Errno::EAGAIN);
        };
        let remote = self.conn(new)?.remote;
        Ok((new, remote.ok_or(Refusal::Errno(Errno::ENOTCONN))?))
    }

    /// Connects, or returns what has become of an attempt.
    pub fn connect(&mut self, id: SocketId, to: SocketAddr) -> Answer<()> {
        if !self.socket(id)?.is_tcp() {
            return self.connect_datagrams(id, to);
        }
        let tcp = self.conn_mut(id)?;
        match (tcp.attempt, tcp.state) {
            (Attempt::Begun, State::SynSent) => return fail(Errno::EALREADY),
            (Attempt::Begun, State::Closed) => return self.attempt_failed(id),
            (Attempt::Begun, _) => {
                tcp.attempt = Attempt::Made;
                return Ok(());
            }
            (Attempt::Made, _) => return fail(Errno::EISCONN),
            (Attempt::None, State::Closed) => {}
            (Attempt::None, _) => return fail(Errno::EISCONN),
        }
        self.begin(id, to)
    }

    /// Returns the error of an attempt; another may then begin.
    fn attempt_failed(&mut self, id: SocketId) -> Answer<()> {
        let socket = self.socket_mut(id)?;
        let error = socket.error.take().unwrap_or(Errno::ECONNABORTED);
        let tcp = socket.tcp_mut()?;
        tcp.attempt = Attempt::None;
        tcp.tried = true;
        tcp.remote = None;
        tcp.peer = None;
        tcp.received.clear();
        tcp.outstanding = 0;
        tcp.reads_shut = false;
        tcp.writes_shut = false;
        tcp.ended = false;
        if !socket.keeps_address {
            let any = socket.family.any();
            socket.name.set_ip(any);
            if let Some(at) = &mut socket.bound {
                at.set_ip(any);
            }
        }
        self.wake(id, 2);
        fail(error)
    }

    fn begin(&mut self, id: SocketId, to: SocketAddr) -> Answer<()> {
        let socket = self.socket(id)?;
        let (machine, bound) = (socket.machine, socket.bound);
        let own = socket.name.ip();
        let to = self.target(socket.family, to)?;
        let Some(receiver) = self.owner(machine, to.ip()) else {
            return fail(Errno::EHOSTUNREACH);
        };
        let source = if own.is_unspecified() {
            self.source(machine, to.ip())?
        } else if own.is_loopback() == to.ip().is_loopback() {
            own
        } else {
            return Err(Refusal::NotModelled(
                "a connection between the loopback and others",
            ));
        };
        let from = match bound {
            Some(at) => SocketAddr::new(source, at.port()),
            None => self.free_address(id, SocketAddr::new(source, 0))?,
        };
        if from == to {
            return Err(Refusal::NotModelled("a connection of a socket with itself"));
        }
        let waiting = &self.machines[&machine].waiting;
        if waiting
            .iter()
            .any(|w| (w.0, w.1) == (from, to) && w.3 > self.now)
        {
            return Err(Refusal::NotModelled("a connection again within a minute"));
        }
        let same = |s: &super::sockets::Socket| {
            let tcp = s.tcp().ok();
            let is_one = tcp.is_some_and(|t| t.state != State::Closed && t.remote == Some(to));
            is_one && s.machine == machine && s.name == from
        };
        if self.sockets.values().any(same) {
            return fail(Errno::EADDRNOTAVAIL);
        }
        let socket = self.socket_mut(id)?;
        socket.bound = Some(from);
        socket.name = from;
        let tcp = socket.tcp_mut()?;
        tcp.remote = Some(to);
        tcp.attempt = Attempt::Begun;
        tcp.state = State::SynSent;
        self.request(id, machine, receiver, from, to);
        self.at(self.now + AGAIN, Event::Again(id, 1));
        fail(Errno::EINPROGRESS)
    }

    fn request(
        &mut self,
        id: SocketId,
        sender: MachineId,
        receiver: MachineId,
        from: SocketAddr,
        to: SocketAddr,
    ) {
        self.transmit(Event::Packet(Packet {
            from: id,
            to: None,
            sender,
            receiver,
            number: 0,
            body: Body::Request { from, to },
        }));
    }

    /// Sends a request again that has had no answer, or gives up.
    pub(super) fn again(&mut self, id: SocketId, times: u32) {
        let Ok(socket) = self.socket(id) else { return };
        let (machine, from) = (socket.machine, socket.name);
        let Ok(Tcp {
            state: State::SynSent,
            remote: Some(to),
            ..
        }) = socket.tcp()
        else {
            return;
        };
        let to = *to;
        if times > AGAINS {
            return self.ends_with(id, Some(Errno::ETIMEDOUT), false);
        }
        if let Some(receiver) = self.owner(machine, to.ip()) {
            self.request(id, machine, receiver, from, to);
        }
        self.at(self.now + (AGAIN << times), Event::Again(id, times + 1));
    }

    /// Sends bytes, and returns how many were taken.
    pub fn send(&mut self, id: SocketId, data: &[u8]) -> Answer<usize> {
        if !self.socket(id)?.is_tcp() {
            return self.send_datagram(id, data, None);
        }
        let socket = self.socket_mut(id)?;
        let tcp = socket.tcp()?;
        if tcp.state == State::SynSent {
            return fail(Errno::EAGAIN);
        }
        let open = matches!(tcp.state, State::Established | State::CloseWait);
        if !open || tcp.writes_shut {
            return fail(socket.error.take().unwrap_or(Errno::EPIPE));
        }
        let tcp = socket.tcp_mut()?;
        let n = data.len().min(SEND_BUFFER - tcp.unsent.len());
        if n == 0 && !data.is_empty() {
            return fail(Errno::EAGAIN);
        }
        tcp.unsent.extend(&data[..n]);
        self.send_on(id);
        Ok(n)
    }

    /// Sends what the window allows, and the end after everything.
    fn send_on(&mut self, id: SocketId) {
        loop {
            let Ok(tcp) = self.conn_mut(id) else { return };
            let n = tcp.unsent.len().min(WINDOW.saturating_sub(tcp.outstanding));
            if n == 0 {
                break;
            }
            tcp.outstanding += n;
            let data = tcp.unsent.drain(..n).collect();
            self.send_packet(id, Body::Data(data));
        }
        let Ok(tcp) = self.conn_mut(id) else { return };
        if tcp.end_unsent && tcp.unsent.is_empty() {
            tcp.end_unsent = false;
            self.send_packet(id, Body::End);
        }
    }

    /// Receives at most `len` bytes; none at the end.
    pub fn recv(&mut self, id: SocketId, len: usize) -> Answer<Vec<u8>> {
        if !self.socket(id)?.is_tcp() {
            return Ok(self.recv_datagram(id, len)?.1);
        }
        let socket = self.socket_mut(id)?;
        let tcp = socket.tcp_mut()?;
        if tcp.state == State::Listen {
            return fail(Errno::ENOTCONN);
        }
        if !tcp.received.is_empty() {
            let n = len.min(tcp.received.len());
            let data: Vec<u8> = tcp.received.drain(..n).collect();
            self.send_packet(id, Body::Taken(n));
            return Ok(data);
        }
        if tcp.ended {
            return Ok(Vec::new());
        }
        let (shut, state) = (tcp.reads_shut, tcp.state);
        if let Some(error) = socket.error.take() {
            return fail(error);
        }
        match (shut, state) {
            (true, _) => Ok(Vec::new()),
            (false, State::Closed) => fail(Errno::ENOTCONN),
            (false, _) => fail(Errno::EAGAIN),
        }
    }

    /// Ends one direction or both.
    pub fn shutdown(&mut self, id: SocketId, what: Direction) -> Answer<()> {
        if !self.socket(id)?.is_tcp() {
            return Err(Refusal::NotModelled("shutdown of a datagram socket"));
        }
        let tcp = self.conn_mut(id)?;
        match tcp.state {
            State::SynSent => return Err(Refusal::NotModelled("shutdown of an attempt")),
            State::Closed if tcp.attempt != Attempt::Made => {
                return Err(Refusal::NotModelled("shutdown without a connection"));
            }
            State::Closed => {
                self.wake(id, 2);
                return fail(Errno::ENOTCONN);
            }
            State::Listen if what != Direction::Writes => {
                return Err(Refusal::NotModelled("shutdown of a listening socket"));
            }
            State::Listen => {}
            _ => {
                tcp.attempt = Attempt::Made;
                tcp.reads_shut |= what != Direction::Writes;
                if what != Direction::Reads {
                    tcp.writes_shut = true;
                    self.end(id);
                }
            }
        }
        self.wake(id, 2);
        Ok(())
    }

    /// Sends the end after what is unsent, if it was not sent.
    fn end(&mut self, id: SocketId) {
        let Ok(tcp) = self.conn_mut(id) else { return };
        tcp.state = match tcp.state {
            State::Established => State::FinWait,
            State::CloseWait => State::LastAck,
            _ => return,
        };
        tcp.end_unsent = true;
        self.send_on(id);
    }

    /// Closes a socket for its process.
    pub fn close(&mut self, id: SocketId) -> Answer<()> {
        let socket = self.socket_mut(id)?;
        if !socket.owned {
            return fail(Errno::EBADF);
        }
        let Ok(tcp) = socket.tcp_mut() else {
            self.sockets.remove(&id);
            return Ok(());
        };
        match tcp.state {
            State::Closed | State::SynSent => _ = self.sockets.remove(&id),
            State::Listen => {
                let children = tcp.queue.drain(..).chain(tcp.arriving.drain(..));
                for child in children.collect::<Vec<_>>() {
                    self.abort(child);
                }
                self.sockets.remove(&id);
            }
            _ if tcp.aborts || !tcp.received.is_empty() => self.abort(id),
            _ => {
                tcp.reads_shut = true;
                tcp.writes_shut = true;
                let waits = tcp.state == State::FinWait2;
                socket.owned = false;
                if waits {
                    self.at(self.now + FORGET, Event::Forget(id));
                }
                self.end(id);
            }
        }
        Ok(())
    }

    /// Resets a connection that its process no longer has.
    fn abort(&mut self, id: SocketId) {
        if self.conn(id).is_ok_and(|t| t.state != State::Closed) {
            self.send_packet(id, Body::Reset);
        }
        self.sockets.remove(&id);
    }

    /// Ends a connection, with an error or by the ends of both sides.
    pub(super) fn ends_with(&mut self, id: SocketId, error: Option<Errno>, waits: bool) {
        let until = self.now + TIME_WAIT;
        let Ok(socket) = self.socket_mut(id) else {
            return;
        };
        let (machine, name, reuse) = (socket.machine, socket.name, socket.reuse);
        socket.error = error.or(socket.error);
        if !socket.keeps_port {
            socket.bound = None;
        }
        let owned = socket.owned;
        let Ok(tcp) = socket.tcp_mut() else { return };
        tcp.state = State::Closed;
        tcp.reads_shut = true;
        tcp.writes_shut = true;
        tcp.unsent.clear();
        tcp.end_unsent = false;
        if waits
            && let Some(remote) = tcp.remote
            && let Some(machine) = self.machines.get_mut(&machine)
        {
            machine.waiting.retain(|w| w.3 > self.now);
            machine.waiting.push((name, remote, reuse, until));
        }
        self.wake(id, 2);
        if !owned {
            self.sockets.remove(&id);
        }
    }

    /// Forgets a closed socket whose other side has not ended.
    pub(super) fn forget(&mut self, id: SocketId) {
        let socket = self.socket(id);
        let waits = |t: &Tcp| t.state == State::FinWait2;
        if socket.is_ok_and(|s| !s.owned && s.tcp().is_ok_and(waits)) {
            self.sockets.remove(&id);
        }
    }

    /// Resets a connection from outside: each end learns it a link's time later.
    pub fn reset(&mut self, id: SocketId) -> Answer<()> {
        let tcp = self.conn(id)?;
        let Some(peer) = tcp.peer else {
            return fail(Errno::ENOTCONN);
        };
        self.send_packet(id, Body::Reset);
        self.send_packet(peer, Body::Reset);
        Ok(())
    }

    /// Returns the remote address (`getpeername`).
    pub fn peer_name(&self, id: SocketId) -> Answer<SocketAddr> {
        let socket = self.socket(id)?;
        let remote = match &socket.protocol {
            Protocol::Udp(udp) => udp.remote,
            Protocol::Tcp(tcp) => match tcp.state {
                State::Closed | State::SynSent | State::Listen => None,
                _ => tcp.remote,
            },
        };
        remote.ok_or(Errno::ENOTCONN.into())
    }

    // ---- arrivals ----

    /// Answers a step for which there is no connection.
    fn refuse(&mut self, packet: &Packet) {
        if matches!(packet.body, Body::Reset) {
            return;
        }
        self.transmit(Event::Packet(Packet {
            from: packet.to.unwrap_or(NO_SOCKET),
            to: Some(packet.from),
            sender: packet.receiver,
            receiver: packet.sender,
            number: 0,
            body: Body::Reset,
        }));
    }

    /// Delivers a segment.
    pub(super) fn arrive(&mut self, packet: Packet) {
        if let Body::Request { from, to } = packet.body {
            return self.requested(&packet, from, to);
        }
        let Some(id) = packet.to else { return };
        let Ok(tcp) = self.conn_mut(id) else {
            // What is still acknowledged to a socket that is gone needs no answer.
            if !matches!(packet.body, Body::Taken(_) | Body::EndTaken) {
                self.refuse(&packet);
            }
            return;
        };
        // A socket may connect again: steps of its former connection are none of this one.
        let concerns = match (&packet.body, tcp.state) {
            (Body::Accept, _) => true,
            (Body::Reset, State::SynSent) => packet.from == NO_SOCKET,
            _ => tcp.peer == Some(packet.from),
        };
        if !concerns {
            return self.refuse(&packet);
        }
        match packet.body {
            Body::Accept => self.accepted(id, &packet),
            Body::Established => self.established(id),
            Body::Data(data) => match tcp.state {
                State::Established => self.receive(id, data),
                State::FinWait | State::FinWait2 if !tcp.reads_shut => self.receive(id, data),
                State::FinWait | State::FinWait2 => {
                    self.send_packet(id, Body::Reset);
                    self.ends_with(id, Some(Errno::ECONNRESET), false);
                }
                _ => self.send_packet(id, Body::Reset),
            },
            Body::Taken(n) => {
                tcp.outstanding = tcp.outstanding.saturating_sub(n);
                let was_full = !tcp.unsent.is_empty();
                self.send_on(id);
                if was_full {
                    self.wake(id, 1);
                }
            }
            Body::End => self.ended(id),
            Body::EndTaken => match tcp.state {
                State::FinWait => {
                    tcp.state = State::FinWait2;
                    if self.socket(id).is_ok_and(|s| !s.owned) {
                        self.at(self.now + FORGET, Event::Forget(id));
                    }
                }
                State::Closing => self.ends_with(id, None, true),
                State::LastAck => self.ends_with(id, None, false),
                _ => {}
            },
            Body::Reset => self.was_reset(id),
            Body::Request { .. } => {}
        }
    }

    fn receive(&mut self, id: SocketId, data: Vec<u8>) {
        if let Ok(tcp) = self.conn_mut(id) {
            tcp.received.extend(data);
            self.wake(id, 0);
        }
    }

    fn requested(&mut self, packet: &Packet, from: SocketAddr, to: SocketAddr) {
        let machine = packet.receiver;
        let same = |t: &Tcp| {
            t.state != State::Closed && t.peer == Some(packet.from) && t.remote == Some(from)
        };
        let mut all = self.sockets.values();
        if all.any(|s| s.machine == machine && s.tcp().is_ok_and(same)) {
            // It was sent again while the answer was under way.
            return;
        }
        // A socket of this very address comes before one of all addresses.
        let listening = |at: SocketAddr| {
            let mut all = self.sockets.iter();
            let fits = |s: &super::sockets::Socket| {
                s.machine == machine && s.listens() && s.bound == Some(at)
            };
            all.find(|(_, s)| fits(s)).map(|(id, _)| *id)
        };
        let any = SocketAddr::new(Family::of(to.ip()).any(), to.port());
        let Some(listener) = listening(to).or_else(|| listening(any)) else {
            return self.refuse(packet);
        };
        let Ok(tcp) = self.conn(listener) else { return };
        if tcp.queue.len() + tcp.arriving.len() > tcp.backlog {
            // Lost; the other end sends it again.
            return;
        }
        let mut new = Tcp::new(State::SynReceived);
        new.attempt = Attempt::Made;
        new.remote = Some(from);
        new.peer = Some(packet.from);
        new.listener = Some(listener);
        new.aborts = tcp.aborts;
        let child = self.make(machine, Family::of(to.ip()), Protocol::Tcp(new));
        let Some(of) = self.sockets.get(&listener) else {
            return;
        };
        let (reuse, keeps_address) = (of.reuse, of.keeps_address);
        if let Ok(socket) = self.socket_mut(child) {
            socket.owned = false;
            socket.reuse = reuse;
            socket.keeps_address = keeps_address;
            socket.bound = Some(to);
            socket.name = to;
        }
        if let Ok(tcp) = self.conn_mut(listener) {
            tcp.arriving.push(child);
        }
        self.send_packet(child, Body::Accept);
    }

    fn accepted(&mut self, id: SocketId, packet: &Packet) {
        let Ok(tcp) = self.conn_mut(id) else { return };
        if tcp.state != State::SynSent {
            return self.refuse(packet);
        }
        tcp.state = State::Established;
        tcp.peer = Some(packet.from);
        self.send_packet(id, Body::Established);
        self.wake(id, 2);
    }

    fn established(&mut self, id: SocketId) {
        let Ok(tcp) = self.conn_mut(id) else { return };
        if tcp.state != State::SynReceived {
            return;
        }
        tcp.state = State::Established;
        let Some(listener) = tcp.listener.take() else {
            return;
        };
        if let Ok(socket) = self.socket_mut(id) {
            // The queue of its listener has it.
            socket.owned = true;
        }
        if let Ok(tcp) = self.conn_mut(listener) {
            tcp.arriving.retain(|child| *child != id);
            tcp.queue.push_back(id);
        }
        self.wake(listener, 0);
    }

    fn ended(&mut self, id: SocketId) {
        let Ok(tcp) = self.conn_mut(id) else { return };
        let both = match tcp.state {
            State::Established => {
                tcp.state = State::CloseWait;
                false
            }
            State::FinWait => {
                tcp.state = State::Closing;
                false
            }
            State::FinWait2 => true,
            _ => return,
        };
        tcp.ended = true;
        tcp.reads_shut = true;
        self.send_packet(id, Body::EndTaken);
        self.wake(id, 2);
        if both {
            self.ends_with(id, None, true);
        }
    }

    fn was_reset(&mut self, id: SocketId) {
        let Ok(tcp) = self.conn_mut(id) else { return };
        let error = match tcp.state {
            State::Closed | State::Listen => return,
            State::SynSent => Errno::ECONNREFUSED,
            State::CloseWait => Errno::EPIPE,
            _ => Errno::ECONNRESET,
        };
        if let Some(listener) = tcp.listener.take()
            && let Ok(listener) = self.conn_mut(listener)
        {
            listener.arriving.retain(|child| *child != id);
        }
        self.ends_with(id, Some(error), false);
    }
}
