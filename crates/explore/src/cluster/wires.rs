//! The answers to what nodes ask of the network, the name server and the pipes.
//!
//! All nodes have one host name. A port belongs to one node of the cluster, whose machine gets what
//! is sent to it; the machines have addresses and links of their own.

use super::fault::Node;
use super::members::{Member, Open, Pipe};
use purlin_world::name_server::NameServer;
use purlin_world::net::{
    Direction, ERR, FIRST_PORT, Family, HUP, IN, MachineId, Net, OUT, SocketId, Speed,
};
use purlin_world::protocol::{Call, Thing, address, numbers};
use purlin_world::streams::{Stream, Use};
use purlin_world::{Errno, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The port of the name server.
const EPMD: u16 = 4369;
/// The machine of the name server.
const NAMES: MachineId = MachineId(0);
/// Bytes in a pipe.
const PIPE: usize = 65_536;

/// Latencies between machines.
const SPEED: Speed = Speed {
    latency: 200_000,
    jitter: 50_000,
    bandwidth: 0,
};

/// The network, the pipes, and who has which port.
#[derive(Clone)]
pub(super) struct Wires {
    pub net: Net,
    names: NameServer,
    name_listener: Option<SocketId>,
    name_connections: Vec<(SocketId, u64)>,
    next_connection: u64,
    pub pipes: Vec<Pipe>,
    ports: BTreeMap<u16, MachineId>,
    next_port: u16,
    /// Addresses that programs have given their sockets.
    shown: BTreeMap<SocketId, SocketAddr>,
    machines: Vec<Node>,
    /// Number of packets by sender, receiver and connection.
    pub packets: BTreeMap<(Node, Node, u32), u64>,
    /// The connections by which a node has sent something to another, in this order.
    connections: BTreeMap<(Node, Node), Vec<SocketId>>,
    /// Sender and receiver of datagrams that are lost, and of those that arrive twice.
    pub lost: BTreeSet<(Node, Node)>,
    pub twice: BTreeSet<(Node, Node)>,
}

pub(super) type Answered = Result<Vec<u8>, Refusal>;

/// The addresses of a machine.
fn addresses(machine: MachineId) -> [IpAddr; 2] {
    let low = machine.0 as u16 + 10;
    let [high, low_byte] = low.to_be_bytes();
    [
        Ipv4Addr::new(10, 1, high, low_byte).into(),
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, low).into(),
    ]
}

impl Wires {
    pub fn new(seed: u64) -> Wires {
        let mut wires = Wires {
            net: Net::new(Stream::new(seed, 0, 0, Use::Links)),
            names: NameServer::new(EPMD, Stream::new(seed, 0, 0, Use::Ids)),
            name_listener: None,
            name_connections: Vec::new(),
            next_connection: 0,
            pipes: Vec::new(),
            ports: BTreeMap::new(),
            next_port: FIRST_PORT,
            shown: BTreeMap::new(),
            machines: Vec::new(),
            packets: BTreeMap::new(),
            connections: BTreeMap::new(),
            lost: BTreeSet::new(),
            twice: BTreeSet::new(),
        };
        wires.net.add_machine(NAMES, addresses(NAMES).to_vec());
        let net = &mut wires.net;
        let listener = net.tcp(NAMES, Family::V4);
        let at = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), EPMD);
        let listens = net
            .bind(listener, at)
            .and_then(|()| net.listen(listener, 128));
        wires.name_listener = listens.is_ok().then_some(listener);
        wires.ports.insert(EPMD, NAMES);
        wires
    }

    /// Adds the machine of a node.
    pub fn add_machine(&mut self, node: Node) {
        let id = MachineId(node);
        self.net.add_machine(id, addresses(id).to_vec());
        for other in self.machines.iter().chain([&NAMES.0]) {
            self.net.set_speed(id, MachineId(*other), SPEED);
            self.net.set_speed(MachineId(*other), id, SPEED);
        }
        self.machines.push(node);
    }

    /// Sets the time that packets of one direction take on top of the usual.
    pub fn set_late(&mut self, from: Node, to: Node, late: u64) {
        let speed = Speed {
            latency: SPEED.latency + late,
            ..SPEED
        };
        self.net.set_speed(MachineId(from), MachineId(to), speed);
    }

    /// Cuts one direction of the link of two nodes, or heals it.
    pub fn cut(&mut self, from: Node, to: Node, cut: bool) {
        match cut {
            true => self.net.cut(MachineId(from), MachineId(to)),
            false => self.net.heal(MachineId(from), MachineId(to)),
        }
    }

    /// Resets all connections of two nodes.
    pub fn reset(&mut self, a: Node, b: Node) {
        for id in self.net.between(MachineId(a), MachineId(b)) {
            let _ = self.net.reset(id);
        }
    }

    /// Has the machine of a node lose its power: the other ends of its connections do not learn it.
    /// What it has registered with the name server is gone.
    pub fn stop_machine(&mut self, node: Node) {
        let id = MachineId(node);
        let (net, names) = (&mut self.net, &mut self.names);
        self.name_connections.retain(|(socket, connection)| {
            let gone = net.peer_machine(*socket) == Some(id);
            if gone {
                names.close(*connection);
                let _ = net.close(*socket);
            }
            !gone
        });
        self.net.machine_stops(id);
    }

    /// Has the machine of a node start again.
    pub fn start_machine(&mut self, node: Node) {
        self.net.machine_starts(MachineId(node));
    }

    /// The nodes other than that one.
    pub fn others(&self, node: Node) -> Vec<Node> {
        let all = self.machines.iter().copied();
        all.filter(|n| *n != node).collect()
    }

    /// Advances the time.
    pub fn advance(&mut self, to: u64) {
        while let Some(t) = self.net.next_time().filter(|t| *t <= to) {
            self.net.run_until(t);
            self.serve_names();
        }
        self.net.run_until(to);
    }

    /// Has the name server answer what has arrived.
    fn serve_names(&mut self) {
        let Some(listener) = self.name_listener else {
            return;
        };
        while let Ok((id, _)) = self.net.accept(listener) {
            self.next_connection += 1;
            // All nodes have the host of the name server.
            self.names.accept(self.next_connection, true);
            self.name_connections.push((id, self.next_connection));
        }
        let (net, names) = (&mut self.net, &mut self.names);
        self.name_connections.retain(|(id, connection)| {
            let data = match net.recv(*id, 1 << 16) {
                Err(Refusal::Errno(Errno::EAGAIN)) => return true,
                Ok(data) if !data.is_empty() => data,
                // Its end, or a reset.
                _ => {
                    names.close(*connection);
                    let _ = net.close(*id);
                    return false;
                }
            };
            let reply = names.receive(*connection, &data);
            let closes = match reply {
                Ok(reply) => {
                    let _ = net.send(*id, &reply.bytes);
                    reply.closes
                }
                Err(_) => true,
            };
            if closes {
                names.close(*connection);
                let _ = net.close(*id);
            }
            !closes
        });
    }

    /// Returns what a thing is ready for.
    pub fn ready(&self, what: Open, ended: impl Fn(usize) -> bool) -> u32 {
        match what {
            Open::Socket(id) => self.net.ready(id).unwrap_or(ERR | HUP),
            Open::Reader(p) => {
                let p = &self.pipes[p];
                let input = if p.data.is_empty() { 0 } else { IN };
                input | if p.no_writer { HUP | IN } else { 0 }
            }
            Open::Writer(p) => {
                let p = &self.pipes[p];
                if p.no_reader {
                    return OUT | ERR;
                }
                if p.data.len() < PIPE - 4096 { OUT } else { 0 }
            }
            Open::End(None) => IN,
            Open::End(Some(m)) => {
                if ended(m) {
                    IN
                } else {
                    0
                }
            }
        }
    }

    /// Closes a thing.
    pub fn close(&mut self, what: Open) {
        match what {
            Open::Socket(id) => {
                self.shown.remove(&id);
                let _ = self.net.close(id);
            }
            Open::Reader(p) => {
                self.pipes[p].no_reader = true;
                self.pipes[p].data.clear();
            }
            Open::Writer(p) => self.pipes[p].no_writer = true,
            Open::End(_) => {}
        }
    }

    /// Returns where a connection to an address goes.
    fn target(&self, from: Node, to: SocketAddr) -> Result<SocketAddr, Refusal> {
        let is_ours = match to.ip() {
            ip if ip.is_loopback() || ip.is_unspecified() => true,
            IpAddr::V4(ip) => ip.octets()[0] == 10,
            IpAddr::V6(ip) => ip.segments()[0] == 0xfd00,
        };
        if !is_ours {
            return Err(Refusal::NotModelled("a connection to a host elsewhere"));
        }
        let machine = self.ports.get(&to.port()).copied();
        let [v4, v6] = addresses(machine.unwrap_or(MachineId(from)));
        let ip = if to.is_ipv4() { v4 } else { v6 };
        Ok(SocketAddr::new(ip, to.port()))
    }

    fn bind(&mut self, node: Node, id: SocketId, to: SocketAddr) -> Result<(), Refusal> {
        let mut at = to;
        if at.port() == 0 {
            while self.ports.contains_key(&self.next_port) {
                self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
            }
            at.set_port(self.next_port);
        } else if self.ports.get(&at.port()).is_some_and(|m| m.0 != node) {
            return Err(Errno::EADDRINUSE.into());
        }
        let [v4, v6] = addresses(MachineId(node));
        if !at.ip().is_unspecified() {
            at.set_ip(if at.is_ipv4() { v4 } else { v6 });
        }
        self.net.bind(id, at)?;
        self.ports.insert(at.port(), MachineId(node));
        self.shown.insert(id, SocketAddr::new(to.ip(), at.port()));
        Ok(())
    }

    /// Returns the node at the other end of a thing that is a connection.
    pub fn receiver(&self, what: Option<&Open>) -> Option<Node> {
        let Some(Open::Socket(id)) = what else {
            return None;
        };
        let machine = self.net.peer_machine(*id)?;
        (machine != NAMES).then_some(machine.0)
    }

    /// Returns the number of a connection among those by which a node has sent something to
    /// another, from 1 on. 0 for datagrams.
    pub fn connection(&mut self, from: Node, to: Node, what: Option<Open>) -> u32 {
        let Some(Open::Socket(id)) = what else {
            return 0;
        };
        let all = self.connections.entry((from, to)).or_default();
        let at = all.iter().position(|c| *c == id).unwrap_or_else(|| {
            all.push(id);
            all.len() - 1
        });
        at as u32 + 1
    }

    /// Returns the node that a datagram goes to.
    pub fn datagram_receiver(&self, to: SocketAddr) -> Option<Node> {
        let machine = self.ports.get(&to.port())?;
        (*machine != NAMES).then_some(machine.0)
    }

    /// Returns the node of that name, if the name server knows it.
    pub fn named(&self, name: &str) -> Option<Node> {
        let (short, _) = name.split_once('@')?;
        let mut all = self.names.names();
        let (_, port) = all.find(|(n, _)| *n == short.as_bytes())?;
        let machine = self.ports.get(&port)?;
        (*machine != NAMES).then_some(machine.0)
    }

    /// Answers a call on a thing of a member.
    pub fn answer(&mut self, member: &mut Member, call: &Call) -> Answered {
        match call {
            Call::Socket { v6, datagrams } => {
                let family = if *v6 { Family::V6 } else { Family::V4 };
                let machine = MachineId(member.node);
                let id = match datagrams {
                    true => self.net.udp(machine, family),
                    false => self.net.tcp(machine, family),
                };
                Ok(numbers(&[member.add(Open::Socket(id))]))
            }
            Call::SendTo { of, to, data } => {
                let id = socket(member, *of)?;
                let link = self.datagram_receiver(*to).map(|b| (member.node, b));
                let to = self.target(member.node, *to)?;
                if link.is_some_and(|l| self.lost.contains(&l)) {
                    return Ok(numbers(&[data.len() as u64]));
                }
                if link.is_some_and(|l| self.twice.contains(&l)) {
                    self.net.send_datagram(id, data, Some(to))?;
                }
                let sent = self.net.send_datagram(id, data, Some(to))?;
                if let Ok(at) = self.net.name(id) {
                    let own = MachineId(member.node);
                    self.ports.entry(at.port()).or_insert(own);
                }
                Ok(numbers(&[sent as u64]))
            }
            Call::RecvFrom { of, room } => {
                let id = socket(member, *of)?;
                let (from, data) = self.net.recv_datagram(id, *room as usize)?;
                let from = address(from);
                let mut bytes = numbers(&[from.len() as u64]);
                bytes.extend(from);
                bytes.extend(data);
                Ok(bytes)
            }
            Call::Pipes => {
                let first = self.pipes.len();
                self.pipes.extend([Pipe::default(), Pipe::default()]);
                let ends = [
                    Open::Reader(first),
                    Open::Writer(first),
                    Open::Reader(first + 1),
                    Open::Writer(first + 1),
                ];
                Ok(numbers(&ends.map(|e| member.add(e))))
            }
            Call::Close { of } => {
                if let Some(what) = member.things.remove(of) {
                    self.close(what);
                }
                Ok(Vec::new())
            }
            Call::Send { of, data } => match thing(member, *of)? {
                Open::Socket(id) => Ok(numbers(&[self.net.send(id, data)? as u64])),
                Open::Writer(p) => self.write(p, data),
                _ => Err(Errno::EBADF.into()),
            },
            Call::Recv { of, room } => match thing(member, *of)? {
                Open::Socket(id) => self.net.recv(id, *room as usize),
                Open::Reader(p) => self.read(p, *room as usize),
                _ => Err(Errno::EBADF.into()),
            },
            _ => self.answer_socket(member, call),
        }
    }

    /// Answers a call on a socket of a member.
    fn answer_socket(&mut self, member: &mut Member, call: &Call) -> Answered {
        let done = |()| Vec::new();
        match call {
            Call::Bind { of, to } => {
                let id = socket(member, *of)?;
                self.bind(member.node, id, *to).map(done)
            }
            Call::Connect { of, to } => {
                let id = socket(member, *of)?;
                let to = self.target(member.node, *to)?;
                self.net.connect(id, to).map(done)
            }
            Call::Listen { of, backlog } => {
                let id = socket(member, *of)?;
                self.net.listen(id, *backlog as usize)?;
                if let Ok(at) = self.net.name(id) {
                    self.ports.insert(at.port(), MachineId(member.node));
                }
                Ok(Vec::new())
            }
            Call::Accept { of } => {
                let (id, from) = self.net.accept(socket(member, *of)?)?;
                let mut bytes = numbers(&[member.add(Open::Socket(id))]);
                bytes.extend(address(from));
                Ok(bytes)
            }
            Call::Shutdown { of, how } => {
                let how = match how {
                    0 => Direction::Reads,
                    1 => Direction::Writes,
                    _ => Direction::Both,
                };
                self.net.shutdown(socket(member, *of)?, how).map(done)
            }
            Call::Name { of } => {
                let id = socket(member, *of)?;
                let name = match self.shown.get(&id) {
                    Some(shown) => *shown,
                    None => self.net.name(id)?,
                };
                Ok(address(name))
            }
            Call::PeerName { of } => Ok(address(self.net.peer_name(socket(member, *of)?)?)),
            Call::Reuse { of, on } => self.net.set_reuse(socket(member, *of)?, *on).map(done),
            Call::Aborts { of, on } => self.net.set_aborts(socket(member, *of)?, *on).map(done),
            Call::TakeError { of } => {
                let error = self.net.take_error(socket(member, *of)?)?;
                Ok(numbers(&[error.map_or(0, |e| e.0 as u64)]))
            }
            _ => Err(Refusal::NotModelled("a message that has no place here")),
        }
    }

    fn write(&mut self, p: usize, data: &[u8]) -> Answered {
        let pipe = &mut self.pipes[p];
        if pipe.no_reader {
            return Err(Errno::EPIPE.into());
        }
        let n = data.len().min(PIPE - pipe.data.len());
        if n == 0 && !data.is_empty() {
            return Err(Errno::EAGAIN.into());
        }
        pipe.data.extend(&data[..n]);
        Ok(numbers(&[n as u64]))
    }

    fn read(&mut self, p: usize, room: usize) -> Answered {
        let pipe = &mut self.pipes[p];
        if pipe.data.is_empty() && !pipe.no_writer {
            return Err(Errno::EAGAIN.into());
        }
        let n = room.min(pipe.data.len());
        Ok(pipe.data.drain(..n).collect())
    }
}

fn thing(member: &Member, of: Thing) -> Result<Open, Refusal> {
    member.things.get(&of).copied().ok_or(Errno::EBADF.into())
}

fn socket(member: &Member, of: Thing) -> Result<SocketId, Refusal> {
    match thing(member, of)? {
        Open::Socket(id) => Ok(id),
        _ => Err(Errno::ENOTSOCK.into()),
    }
}
