//! Compares the model of sockets with the kernel's, on the loopback.
//!
//! Calls do not wait. After each, everything under way arrives: the model runs until nothing is
//! due, and the kernel is given time until all sockets have the readiness that the model says.

#![cfg(target_os = "linux")]

mod truth;

use purlin_world::net::{
    Direction, ERR, Epoll, Family, HUP, IN, MachineId, Net, OUT, RDHUP, SocketId, Watch,
};
use purlin_world::streams::Stream;
use purlin_world::{Answer, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{self as rnet, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use truth::Count;

/// The number of sockets that a program has.
const SLOTS: usize = 6;

/// Time that passes in the model after each call, in nanoseconds: less than any timer of it.
const STEP: u64 = 1_000_000;

/// Time that the kernel is given to deliver what is under way.
const PATIENCE: Duration = Duration::from_millis(200);

/// Number of times a program that differs is run again before that counts. The kernel may delay
/// packets, and other programs of the machine may take a port that has become free.
const TRIES: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Ip {
    Any,
    Own,
    /// The loopback of the other family.
    Other,
    /// An address that the machine does not have.
    Foreign,
}

/// An address; its port is free (0), or that which a slot had last.
#[derive(Clone, Copy, Debug)]
struct Place(Ip, Option<usize>);

#[derive(Clone, Debug)]
enum Call {
    Tcp(usize, Family),
    Udp(usize, Family),
    Bind(usize, Place),
    Listen(usize, usize),
    Connect(usize, Place),
    Accept(usize, usize),
    Send(usize, usize),
    SendTo(usize, usize, Place),
    Recv(usize, usize),
    Shutdown(usize, Direction),
    Close(usize),
    TakeError(usize),
    Name(usize),
    PeerName(usize),
    Reuse(usize, bool),
    Aborts(usize, bool),
    Add(usize, Watch),
    Modify(usize, Watch),
    Delete(usize),
    Wait,
}

/// The result of a call. Ports are compared by the pairs that they have been in before.
#[derive(PartialEq, Debug)]
enum Outcome {
    Done,
    Number(usize),
    Bytes(Vec<u8>),
    Address(SocketAddr),
    From(SocketAddr, Vec<u8>),
    Error(Option<purlin_world::Errno>),
    Ready(Vec<(usize, u32)>),
    Failed(purlin_world::Errno),
}

// ---- programs ----

fn one_of<T: Clone>(numbers: &mut Stream, all: &[T]) -> T {
    all[numbers.below(all.len() as u64) as usize].clone()
}

fn place(numbers: &mut Stream, port: bool) -> Place {
    let ip = match numbers.below(30) {
        0 => Ip::Other,
        1 => Ip::Foreign,
        2..10 => Ip::Any,
        _ => Ip::Own,
    };
    let slot = numbers.below(SLOTS as u64) as usize;
    Place(ip, port.then_some(slot))
}

fn call(numbers: &mut Stream, families: &[Family]) -> Call {
    let slot = numbers.below(SLOTS as u64) as usize;
    let other = numbers.below(SLOTS as u64) as usize;
    let watch = Watch {
        events: one_of(numbers, &[IN, OUT, IN | OUT, IN | RDHUP, IN | OUT | RDHUP]),
        edge: numbers.below(2) == 0,
        once: numbers.below(5) == 0,
    };
    match numbers.below(80) {
        0..5 => Call::Tcp(slot, one_of(numbers, families)),
        5 | 6 => Call::Udp(slot, one_of(numbers, families)),
        7..10 => {
            let port = numbers.below(3) == 0;
            Call::Bind(slot, place(numbers, port))
        }
        10..13 => Call::Listen(slot, one_of(numbers, &[0, 1, 5, 5, 5])),
        13..20 => Call::Connect(slot, place(numbers, true)),
        20..26 => Call::Accept(slot, other),
        26..38 => Call::Send(slot, 1 + numbers.below(900) as usize),
        38..40 => Call::SendTo(slot, numbers.below(900) as usize, place(numbers, true)),
        40..52 => Call::Recv(slot, 1 + numbers.below(1500) as usize),
        52..58 => {
            let all = [Direction::Reads, Direction::Writes, Direction::Both];
            Call::Shutdown(slot, one_of(numbers, &all))
        }
        58..63 => Call::Close(slot),
        63 | 64 => Call::TakeError(slot),
        65 => Call::Name(slot),
        66 => Call::PeerName(slot),
        67 => Call::Reuse(slot, numbers.below(4) > 0),
        68 | 69 => Call::Aborts(slot, numbers.below(4) > 0),
        70..73 => Call::Add(slot, watch),
        73 => Call::Modify(slot, watch),
        74 => Call::Delete(slot),
        _ => Call::Wait,
    }
}

/// Draws calls that make connections, so that there is something to use.
fn connections(numbers: &mut Stream, families: &[Family]) -> Vec<Call> {
    let family = one_of(numbers, families);
    let ip = one_of(numbers, &[Ip::Own, Ip::Any]);
    let mut calls = Vec::new();
    if numbers.below(4) == 0 {
        for n in 0..2 {
            calls.extend([Call::Udp(n, family), Call::Bind(n, Place(ip, None))]);
        }
        for n in 0..numbers.below(3) as usize {
            calls.push(Call::Connect(n, Place(Ip::Own, Some(1 - n))));
        }
        return calls;
    }
    calls.push(Call::Tcp(0, family));
    if numbers.below(2) == 0 {
        calls.push(Call::Reuse(0, true));
    }
    if numbers.below(2) == 0 {
        calls.push(Call::Bind(0, Place(ip, None)));
    }
    calls.push(Call::Listen(0, one_of(numbers, &[0, 1, 5, 5])));
    for n in 0..1 + numbers.below(3) as usize {
        let client = 1 + n * 2;
        calls.push(Call::Tcp(client, family));
        calls.push(Call::Connect(client, Place(Ip::Own, Some(0))));
        if client + 1 < SLOTS && numbers.below(5) > 0 {
            calls.push(Call::Accept(0, client + 1));
        }
    }
    calls
}

/// Whether a call does little: it fails, or it closes what a slot has.
fn is_useless(call: &Call, model: &mut Model) -> bool {
    let occupied = match call {
        Call::Tcp(n, _) | Call::Udp(n, _) => model.slots[*n].is_some(),
        Call::Accept(n, into) => n == into || model.slots[*into].is_some(),
        _ => false,
    };
    occupied || matches!(model.clone().run(call), Err(r) if r != PROGRESS)
}

fn program(numbers: &mut Stream, families: &[Family]) -> Vec<Call> {
    let mut calls = Vec::new();
    if numbers.below(8) > 0 {
        calls = connections(numbers, families);
    }
    let mut model = Model::new();
    for call in &calls {
        let _ = model.run(call);
        model.settle();
        model.note_ports();
    }
    for _ in 0..1 + numbers.below(40) {
        // Most calls that do little are drawn again.
        let mut next = call(numbers, families);
        let mut tries = 0;
        while tries < 4 && is_useless(&next, &mut model) && numbers.below(8) > 0 {
            tries += 1;
            next = call(numbers, families);
        }
        let _ = model.run(&next);
        model.settle();
        model.note_ports();
        calls.push(next);
    }
    calls
}

const PROGRESS: Refusal = Refusal::Errno(purlin_world::Errno::EINPROGRESS);
const BAD: Refusal = Refusal::Errno(purlin_world::Errno::EBADF);

fn address(family: Family, ip: Ip, port: u16) -> SocketAddr {
    let ip: IpAddr = match (ip, family) {
        (Ip::Any, Family::V4) => Ipv4Addr::UNSPECIFIED.into(),
        (Ip::Any, Family::V6) => Ipv6Addr::UNSPECIFIED.into(),
        (Ip::Own, Family::V4) | (Ip::Other, Family::V6) => Ipv4Addr::LOCALHOST.into(),
        (Ip::Own, Family::V6) | (Ip::Other, Family::V4) => Ipv6Addr::LOCALHOST.into(),
        // Addresses for documentation.
        (Ip::Foreign, Family::V4) => Ipv4Addr::new(203, 0, 113, 7).into(),
        (Ip::Foreign, Family::V6) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7).into(),
    };
    SocketAddr::new(ip, port)
}

/// Bytes that differ from those of other calls.
fn data(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|n| (n + number * 37) as u8).collect()
}

// ---- the model's side ----

#[derive(Clone)]
struct Model {
    net: Net,
    slots: [Option<(SocketId, Family)>; SLOTS],
    /// The port that each slot had last.
    ports: [u16; SLOTS],
    /// The family in which it was bound; none if `connect` has chosen it. Others may have such a
    /// port as well, in a connection with another address.
    owners: [Option<Family>; SLOTS],
    /// The same of the socket that a slot has.
    bound: [Option<Family>; SLOTS],
    epoll: Epoll,
    sent: usize,
}

const MACHINE: MachineId = MachineId(1);

impl Model {
    fn new() -> Self {
        let mut net = Net::new(Stream::from_state(0));
        net.add_machine(MACHINE, Vec::new());
        Model {
            net,
            slots: [None; SLOTS],
            ports: [0; SLOTS],
            owners: [None; SLOTS],
            bound: [None; SLOTS],
            epoll: Epoll::default(),
            sent: 0,
        }
    }

    fn settle(&mut self) {
        let until = self.net.now() + STEP;
        self.net.run_until(until);
    }

    /// Notes the ports that slots have.
    fn note_ports(&mut self) {
        for n in 0..SLOTS {
            let name = self.slots[n].map(|(id, _)| self.net.name(id));
            if let Some(Ok(name)) = name
                && name.port() != 0
            {
                self.ports[n] = name.port();
                self.owners[n] = self.bound[n];
            }
        }
    }

    fn slot(&self, n: usize) -> Answer<(SocketId, Family)> {
        self.slots[n].ok_or(BAD)
    }

    fn place(&self, family: Family, place: Place, connects: bool) -> Answer<SocketAddr> {
        if connects && matches!(place.0, Ip::Foreign) {
            return Err(Refusal::NotModelled("whatever the machine's routes are"));
        }
        let port = place.1.map_or(0, |slot| self.ports[slot]);
        if port != 0 && !connects && place.1.is_some_and(|n| self.owners[n] != Some(family)) {
            return Err(Refusal::NotModelled("whatever else has the port"));
        }
        Ok(address(family, place.0, port))
    }

    fn open(&mut self, n: usize, id: SocketId, family: Family) -> Answer<()> {
        self.bound[n] = None;
        match self.slots[n].replace((id, family)) {
            Some((before, _)) => self.net.close(before),
            None => Ok(()),
        }
    }

    fn run(&mut self, call: &Call) -> Answer<Outcome> {
        self.sent += 1;
        match call {
            Call::Tcp(n, family) => {
                let id = self.net.tcp(MACHINE, *family);
                self.open(*n, id, *family)?;
            }
            Call::Udp(n, family) => {
                let id = self.net.udp(MACHINE, *family);
                self.open(*n, id, *family)?;
            }
            Call::Bind(n, place) => {
                let (id, family) = self.slot(*n)?;
                let place = self.place(family, *place, false)?;
                self.net.bind(id, place)?;
                self.bound[*n] = Some(family);
            }
            Call::Listen(n, backlog) => {
                let (id, family) = self.slot(*n)?;
                self.net.listen(id, *backlog)?;
                self.bound[*n] = Some(family);
            }
            Call::Connect(n, place) => {
                let (id, family) = self.slot(*n)?;
                let place = self.place(family, *place, true)?;
                self.net.connect(id, place)?;
            }
            Call::Accept(n, into) => {
                let (id, family) = self.slot(*n)?;
                let (new, from) = self.net.accept(id)?;
                let bound = self.bound[*n];
                self.open(*into, new, family)?;
                self.bound[*into] = bound;
                return Ok(Outcome::Address(from));
            }
            Call::Send(n, len) => {
                let (id, _) = self.slot(*n)?;
                return Ok(Outcome::Number(self.net.send(id, &data(self.sent, *len))?));
            }
            Call::SendTo(n, len, place) => {
                let (id, family) = self.slot(*n)?;
                let place = self.place(family, *place, true)?;
                let data = data(self.sent, *len);
                let n = self.net.send_datagram(id, &data, Some(place))?;
                return Ok(Outcome::Number(n));
            }
            Call::Recv(n, len) => {
                let (id, _) = self.slot(*n)?;
                if self.net.is_datagram(id) {
                    let (from, data) = self.net.recv_datagram(id, *len)?;
                    return Ok(Outcome::From(from, data));
                }
                return Ok(Outcome::Bytes(self.net.recv(id, *len)?));
            }
            Call::Shutdown(n, what) => self.net.shutdown(self.slot(*n)?.0, *what)?,
            Call::Close(n) => {
                let (id, _) = self.slot(*n)?;
                self.slots[*n] = None;
                self.net.close(id)?;
            }
            Call::TakeError(n) => {
                return Ok(Outcome::Error(self.net.take_error(self.slot(*n)?.0)?));
            }
            Call::Name(n) => return Ok(Outcome::Address(self.net.name(self.slot(*n)?.0)?)),
            Call::PeerName(n) => {
                return Ok(Outcome::Address(self.net.peer_name(self.slot(*n)?.0)?));
            }
            Call::Reuse(n, reuse) => self.net.set_reuse(self.slot(*n)?.0, *reuse)?,
            Call::Aborts(n, aborts) => self.net.set_aborts(self.slot(*n)?.0, *aborts)?,
            Call::Add(n, watch) => self.epoll.add(&self.net, self.slot(*n)?.0, *watch)?,
            Call::Modify(n, watch) => self.epoll.modify(&self.net, self.slot(*n)?.0, *watch)?,
            Call::Delete(n) => {
                let (id, _) = self.slot(*n)?;
                self.epoll.delete(id)?;
            }
            Call::Wait => {
                let ready = self.epoll.wait(&self.net).into_iter();
                let slot = |id| self.slots.iter().position(|s| s.is_some_and(|s| s.0 == id));
                let mut ready: Vec<_> = ready
                    .map(|(id, bits)| (slot(id).expect("a slot"), bits))
                    .collect();
                ready.sort_unstable();
                return Ok(Outcome::Ready(ready));
            }
        }
        Ok(Outcome::Done)
    }

    /// Whether `found` has what `wait` gave and, beside that, sockets watched by edge that are as
    /// ready as it says. The kernel wakes them for steps that change nothing, like the
    /// acknowledgement of an end, which it sends when it likes to.
    fn allows(&self, expected: &Outcome, found: &[(usize, u32)]) -> bool {
        let Outcome::Ready(expected) = expected else {
            return false;
        };
        let fits = |(n, bits): &(usize, u32)| {
            let watch = self.slots[*n].and_then(|(id, _)| self.epoll.watch(id));
            watch.is_some_and(|w| w.edge && self.ready(*n) & (w.events | ERR | HUP) == *bits)
        };
        expected.iter().all(|e| found.contains(e))
            && found.iter().all(|f| expected.contains(f) || fits(f))
    }

    fn ready(&self, n: usize) -> u32 {
        let ready = self.slots[n].map(|(id, _)| self.net.ready(id));
        ready.map_or(0, |r| r.expect("a socket"))
    }
}

// ---- the kernel's side ----

struct Real {
    slots: [Option<(OwnedFd, Family, bool)>; SLOTS],
    ports: [u16; SLOTS],
    epoll: OwnedFd,
    sent: usize,
}

impl Drop for Real {
    /// Closes without a minute for which the kernel would keep the ports.
    fn drop(&mut self) {
        for (fd, ..) in self.slots.iter().flatten() {
            let _ = rnet::sockopt::set_socket_linger(fd, Some(Duration::ZERO));
        }
    }
}

fn std_address(address: Option<rnet::SocketAddrAny>) -> SocketAddr {
    address
        .and_then(|a| a.try_into().ok())
        .expect("an address of a socket")
}

fn flags(watch: Watch) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::from_bits_retain(watch.events);
    flags.set(epoll::EventFlags::ET, watch.edge);
    flags.set(epoll::EventFlags::ONESHOT, watch.once);
    flags
}

impl Real {
    fn new() -> Self {
        Real {
            slots: Default::default(),
            ports: [0; SLOTS],
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor"),
            sent: 0,
        }
    }

    fn open(&mut self, n: usize, family: Family, kind: SocketType) -> Result<(), Errno> {
        let domain = match family {
            Family::V4 => AddressFamily::INET,
            Family::V6 => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rnet::socket_with(domain, kind, flags, None)?;
        if family == Family::V6 {
            rnet::sockopt::set_ipv6_v6only(&fd, true)?;
        }
        if kind == SocketType::STREAM {
            // Else the kernel holds small writes back while others are not acknowledged.
            rnet::sockopt::set_tcp_nodelay(&fd, true)?;
        }
        self.slots[n] = Some((fd, family, kind == SocketType::DGRAM));
        Ok(())
    }

    fn slot(&self, n: usize) -> Result<&OwnedFd, Errno> {
        self.slots[n].as_ref().map(|s| &s.0).ok_or(Errno::BADF)
    }

    fn place(&self, n: usize, place: Place) -> SocketAddr {
        let family = self.slots[n].as_ref().map_or(Family::V4, |s| s.1);
        address(family, place.0, place.1.map_or(0, |slot| self.ports[slot]))
    }

    fn run(&mut self, call: &Call) -> Result<Outcome, Errno> {
        self.sent += 1;
        match call {
            Call::Tcp(n, family) => self.open(*n, *family, SocketType::STREAM)?,
            Call::Udp(n, family) => self.open(*n, *family, SocketType::DGRAM)?,
            Call::Bind(n, place) => rnet::bind(self.slot(*n)?, &self.place(*n, *place))?,
            Call::Listen(n, backlog) => rnet::listen(self.slot(*n)?, *backlog as i32)?,
            Call::Connect(n, place) => rnet::connect(self.slot(*n)?, &self.place(*n, *place))?,
            Call::Accept(n, into) => {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let (new, from) = rnet::acceptfrom_with(self.slot(*n)?, flags)?;
                let family = self.slots[*n].as_ref().expect("the slot just used").1;
                self.slots[*into] = Some((new, family, false));
                return Ok(Outcome::Address(std_address(from)));
            }
            Call::Send(n, len) => {
                let data = data(self.sent, *len);
                let n = rnet::send(self.slot(*n)?, &data, SendFlags::NOSIGNAL)?;
                return Ok(Outcome::Number(n));
            }
            Call::SendTo(n, len, place) => {
                let (data, to) = (data(self.sent, *len), self.place(*n, *place));
                let n = rnet::sendto(self.slot(*n)?, &data, SendFlags::NOSIGNAL, &to)?;
                return Ok(Outcome::Number(n));
            }
            Call::Recv(n, len) => {
                let mut data = vec![0; *len];
                let fd = self.slot(*n)?;
                let (got, _, from) = rnet::recvfrom(fd, &mut data[..], RecvFlags::empty())?;
                data.truncate(got);
                let is_datagram = self.slots[*n].as_ref().is_some_and(|s| s.2);
                return Ok(if is_datagram {
                    Outcome::From(std_address(from), data)
                } else {
                    Outcome::Bytes(data)
                });
            }
            Call::Shutdown(n, what) => {
                let what = match what {
                    Direction::Reads => rnet::Shutdown::Read,
                    Direction::Writes => rnet::Shutdown::Write,
                    Direction::Both => rnet::Shutdown::Both,
                };
                rnet::shutdown(self.slot(*n)?, what)?;
            }
            Call::Close(n) => drop(self.slots[*n].take().ok_or(Errno::BADF)?),
            Call::TakeError(n) => {
                let error = rnet::sockopt::socket_error(self.slot(*n)?)?.err();
                let error = error.map(|e| purlin_world::Errno(e.raw_os_error()));
                return Ok(Outcome::Error(error));
            }
            Call::Name(n) => {
                let name = rnet::getsockname(self.slot(*n)?)?;
                return Ok(Outcome::Address(std_address(Some(name))));
            }
            Call::PeerName(n) => {
                let name = rnet::getpeername(self.slot(*n)?)?;
                return Ok(Outcome::Address(std_address(name)));
            }
            Call::Reuse(n, on) => rnet::sockopt::set_socket_reuseaddr(self.slot(*n)?, *on)?,
            Call::Aborts(n, on) => {
                let time = on.then_some(Duration::ZERO);
                rnet::sockopt::set_socket_linger(self.slot(*n)?, time)?;
            }
            Call::Add(n, watch) => {
                let data = epoll::EventData::new_u64(*n as u64);
                epoll::add(&self.epoll, self.slot(*n)?, data, flags(*watch))?;
            }
            Call::Modify(n, watch) => {
                let data = epoll::EventData::new_u64(*n as u64);
                epoll::modify(&self.epoll, self.slot(*n)?, data, flags(*watch))?;
            }
            Call::Delete(n) => epoll::delete(&self.epoll, self.slot(*n)?)?,
            Call::Wait => {
                let mut events = Vec::with_capacity(SLOTS);
                let spare = rustix::buffer::spare_capacity(&mut events);
                epoll::wait(&self.epoll, spare, Some(&Timespec::default()))?;
                let ready = |e: &epoll::Event| ({ e.data }.u64() as usize, { e.flags }.bits());
                let mut ready: Vec<_> = events.iter().map(ready).collect();
                ready.sort_unstable();
                return Ok(Outcome::Ready(ready));
            }
        }
        Ok(Outcome::Done)
    }

    fn ready(&self) -> [u32; SLOTS] {
        let bits = [IN, OUT, ERR, HUP, RDHUP].iter().sum::<u32>();
        let wanted = PollFlags::from_bits_retain(bits as u16);
        let open = self.slots.iter().flatten();
        let mut fds: Vec<_> = open
            .map(|s| PollFd::from_borrowed_fd(s.0.as_fd(), wanted))
            .collect();
        poll(&mut fds, Some(&Timespec::default())).expect("readiness");
        let mut found = fds.iter().map(|f| u32::from(f.revents().bits()));
        let open = self.slots.each_ref().map(Option::is_some);
        open.map(|open| {
            if open {
                found.next().expect("each descriptor")
            } else {
                0
            }
        })
    }
}

// ---- both ----

/// Ports of the model and those of the kernel that stand for them.
#[derive(Default)]
struct Ports(BTreeMap<u16, u16>);

impl Ports {
    /// Puts the model's port in place of the kernel's, if the two go together.
    fn model(&mut self, model: &Outcome, real: Outcome) -> Outcome {
        let same = |model: &SocketAddr, real: SocketAddr, ports: &mut Self| {
            let (m, r) = (model.port(), real.port());
            let fits = (m == 0) == (r == 0) && *ports.0.entry(m).or_insert(r) == r;
            SocketAddr::new(real.ip(), if fits { m } else { r })
        };
        match (model, real) {
            (Outcome::Address(m), Outcome::Address(r)) => Outcome::Address(same(m, r, self)),
            (Outcome::From(m, _), Outcome::From(r, data)) => Outcome::From(same(m, r, self), data),
            (_, real) => real,
        }
    }
}

fn once(program: &[Call], count: &mut Count) -> Result<(), String> {
    let mut model = Model::new();
    let mut real = Real::new();
    let mut ports = Ports::default();
    for call in program {
        if !compare_call(&mut model, &mut real, &mut ports, call, count)? {
            break;
        }
        // The ports that slots have got.
        model.note_ports();
        for n in 0..SLOTS {
            let name = model.slots[n].map(|(id, _)| model.net.name(id));
            if let Some(Ok(name)) = name {
                model.sent -= 1;
                real.sent -= 1;
                let call = Call::Name(n);
                compare_call(
                    &mut model,
                    &mut real,
                    &mut ports,
                    &call,
                    &mut Count::default(),
                )?;
                if name.port() != 0 {
                    real.ports[n] = ports.0[&name.port()];
                }
            }
        }
    }
    Ok(())
}

/// Runs a call on both sides. The answer is whether the program can continue.
fn compare_call(
    model: &mut Model,
    real: &mut Real,
    ports: &mut Ports,
    call: &Call,
    count: &mut Count,
) -> Result<bool, String> {
    let expected = match model.run(call) {
        Ok(outcome) => outcome,
        Err(Refusal::Errno(e)) => Outcome::Failed(e),
        Err(Refusal::NotModelled(_)) => {
            real.sent += 1;
            count.refused();
            return Ok(true);
        }
    };
    let found = real.run(call);
    let error = found
        .as_ref()
        .err()
        .map(|e| purlin_world::Errno(e.raw_os_error()));
    count.call(call, error);
    let found = found.unwrap_or_else(|e| Outcome::Failed(purlin_world::Errno(e.raw_os_error())));
    let found = ports.model(&expected, found);
    if expected != found
        && let Outcome::Ready(found) = &found
        && model.allows(&expected, found)
    {
        return Ok(false);
    }
    if expected != found {
        return Err(format!(
            "{call:?}\n  model {expected:?}\n  kernel {found:?}"
        ));
    }
    model.settle();
    let ready: Vec<u32> = (0..SLOTS).map(|n| model.ready(n)).collect();
    let begun = Instant::now();
    loop {
        let found = real.ready();
        if found[..] == ready[..] {
            return Ok(true);
        }
        if begun.elapsed() > PATIENCE {
            return Err(format!(
                "after {call:?}\n  model ready {ready:x?}\n  kernel {found:x?}"
            ));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Results without which the programs show little.
const WANTED: &[(&str, &str)] = &[
    ("Accept", "ok"),
    ("Connect", "ECONNREFUSED"),
    ("Recv", "ok"),
    ("Recv", "ECONNREFUSED"),
    ("Recv", "ECONNRESET"),
    ("Send", "ok"),
    ("Send", "EPIPE"),
    ("Send", "ECONNRESET"),
    ("Shutdown", "ok"),
    ("Shutdown", "ENOTCONN"),
];

fn run(program: &[Call], count: &mut Count) -> Result<(), String> {
    let mut result = Ok(());
    for _ in 0..TRIES {
        let mut counted = Count::default();
        result = once(program, &mut counted);
        if result.is_ok() {
            count.add(counted);
            break;
        }
    }
    result
}

#[test]
fn sockets_answer_as_the_kernel_does() {
    let mut families = vec![Family::V4];
    // Containers may have no IPv6.
    if std::net::UdpSocket::bind("[::1]:0").is_ok() {
        families.push(Family::V6);
    }
    truth::compare(
        "sockets",
        1,
        WANTED,
        |numbers| program(numbers, &families),
        run,
    );
}
