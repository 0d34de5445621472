//! Putting packets on links, and cutting and healing links.
//!
//! A cut holds what connections send, since the kernel would send it again, and delivers it in
//! order once the cut ends. Requests for connections, resets and datagrams are lost in a cut.

use super::links::Speed;
use super::sockets::{Event, Net};
use super::states::{Body, MachineId, Packet, SocketId};
use std::collections::BTreeMap;

/// The order of deliveries at the same time: those to machines with lower numbers are first.
fn rank(event: &Event) -> u32 {
    match event {
        Event::Packet(p) => p.receiver.0,
        Event::Datagram(d) => d.receiver.0,
        Event::Again(..) | Event::Forget(_) => u32::MAX,
    }
}

/// The sender and the receiver of an event that is on a link.
fn ends(event: &Event) -> Option<(MachineId, MachineId)> {
    match event {
        Event::Packet(p) => Some((p.sender, p.receiver)),
        Event::Datagram(d) => Some((d.sender, d.receiver)),
        Event::Again(..) | Event::Forget(_) => None,
    }
}

/// Whether a cut loses an event rather than holding it.
fn is_lost_in_cut(event: &Event) -> bool {
    match event {
        Event::Packet(p) => matches!(p.body, Body::Request { .. } | Body::Reset),
        _ => true,
    }
}

fn packet(event: &Event) -> Option<&Packet> {
    match event {
        Event::Packet(packet) => Some(packet),
        _ => None,
    }
}

fn size(event: &Event) -> usize {
    match event {
        Event::Packet(Packet { body, .. }) => match body {
            Body::Data(data) => data.len(),
            _ => 0,
        },
        Event::Datagram(d) => d.data.as_ref().map_or(0, Vec::len),
        Event::Again(..) | Event::Forget(_) => 0,
    }
}

impl Net {
    /// Schedules an event for a time.
    pub(super) fn at(&mut self, time: u64, event: Event) {
        self.events.push(time, rank(&event), event);
    }

    /// Puts an event on its link.
    pub(super) fn transmit(&mut self, mut event: Event) {
        let Some((sender, receiver)) = ends(&event) else {
            return;
        };
        if let Event::Packet(p) = &mut event
            && p.number == 0
        {
            self.packets += 1;
            p.number = self.packets;
        }
        if self.hold(&event) {
            return;
        }
        let now = self.now;
        let mut numbers = self.numbers.clone();
        let mut time = self
            .link(sender, receiver)
            .arrival(now, size(&event), &mut numbers);
        self.numbers = numbers;
        if let Event::Packet(p) = &event
            && let Some(tcp) = self.sockets.get_mut(&p.from).and_then(|s| s.tcp_mut().ok())
        {
            time = time.max(tcp.last_arrival);
            tcp.last_arrival = time;
        }
        self.at(time, event);
    }

    /// Holds or loses an event if its link is cut, and says whether it is.
    pub(super) fn hold(&mut self, event: &Event) -> bool {
        let Some((sender, receiver)) = ends(event) else {
            return false;
        };
        let link = self.link(sender, receiver);
        if link.is_cut && !is_lost_in_cut(event) {
            link.held.push(event.clone());
        }
        link.is_cut
    }

    /// Sends a step of a connection from a socket to the other end.
    pub(super) fn send_packet(&mut self, from: SocketId, body: Body) {
        let Some(socket) = self.sockets.get(&from) else {
            return;
        };
        let sender = socket.machine;
        let Ok(Some(peer)) = socket.tcp().map(|t| t.peer) else {
            return;
        };
        // The other end may be gone already: its machine is that of its address.
        let remote = socket.tcp().ok().and_then(|t| t.remote);
        let Some(receiver) = remote.and_then(|r| self.owner(sender, r.ip())) else {
            return;
        };
        self.transmit(Event::Packet(Packet {
            from,
            to: Some(peer),
            sender,
            receiver,
            number: 0,
            body,
        }));
    }

    /// Sets the speed of one direction of a link.
    pub fn set_speed(&mut self, from: MachineId, to: MachineId, speed: Speed) {
        self.link(from, to).speed = speed;
    }

    /// Cuts one direction of a link.
    pub fn cut(&mut self, from: MachineId, to: MachineId) {
        self.link(from, to).is_cut = true;
    }

    /// Ends the cut of one direction of a link. Held packets arrive in order, a link's time later.
    pub fn heal(&mut self, from: MachineId, to: MachineId) {
        let link = self.link(from, to);
        link.is_cut = false;
        let mut events = std::mem::take(&mut link.held);
        let mut first: BTreeMap<SocketId, u64> = BTreeMap::new();
        for packet in events.iter().filter_map(packet) {
            let number = first.entry(packet.from).or_insert(packet.number);
            *number = packet.number.min(*number);
        }
        // Packets that are under way must not overtake those of their sender that were held.
        events.extend(self.events.extract(|event| {
            packet(event).is_some_and(|p| {
                let is_later = first.get(&p.from).is_some_and(|n| *n < p.number);
                is_later && (p.sender, p.receiver) == (from, to)
            })
        }));
        events.sort_by_key(|event| packet(event).map(|p| p.number));
        for event in events {
            self.transmit(event);
        }
    }

    /// Cuts both directions of all links between two sets of machines.
    pub fn part(&mut self, some: &[MachineId], others: &[MachineId]) {
        for (a, b) in pairs(some, others) {
            self.cut(a, b);
            self.cut(b, a);
        }
    }

    /// Ends the cuts between two sets of machines.
    pub fn join(&mut self, some: &[MachineId], others: &[MachineId]) {
        for (a, b) in pairs(some, others) {
            self.heal(a, b);
            self.heal(b, a);
        }
    }
}

fn pairs<'a>(
    some: &'a [MachineId],
    others: &'a [MachineId],
) -> impl Iterator<Item = (MachineId, MachineId)> + 'a {
    some.iter()
        .flat_map(move |a| others.iter().map(move |b| (*a, *b)))
}
