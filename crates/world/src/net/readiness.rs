//! Readiness of sockets: `poll`, and `epoll` by level and by edge.

use super::sockets::{Net, Protocol};
use super::states::{SEND_BUFFER, SocketId, State, Tcp};
use crate::errno::{Answer, Errno, fail};
use std::collections::BTreeMap;

/// Bits of readiness, with the values of `poll` and `epoll`.
pub const IN: u32 = 1;
pub const OUT: u32 = 4;
pub const ERR: u32 = 8;
pub const HUP: u32 = 16;
pub const RDHUP: u32 = 0x2000;
/// Those that are reported although nobody asked for them.
pub const FAILED: u32 = ERR | HUP;

fn of_tcp(tcp: &Tcp) -> u32 {
    if tcp.state == State::Listen {
        return if tcp.queue.is_empty() { 0 } else { IN };
    }
    let mut ready = 0;
    if tcp.reads_shut && tcp.writes_shut || tcp.state == State::Closed {
        ready |= HUP;
    }
    if tcp.reads_shut {
        ready |= IN | RDHUP;
    }
    if tcp.state != State::SynSent {
        if !tcp.received.is_empty() {
            ready |= IN;
        }
        if tcp.writes_shut || tcp.unsent.len() <= SEND_BUFFER / 3 * 2 {
            ready |= OUT;
        }
    }
    ready
}

impl Net {
    /// Returns what a socket is ready for.
    pub fn ready(&self, id: SocketId) -> Answer<u32> {
        let socket = self.socket(id)?;
        let ready = match &socket.protocol {
            Protocol::Tcp(tcp) => of_tcp(tcp),
            Protocol::Udp(udp) if udp.received.is_empty() => OUT,
            Protocol::Udp(_) => OUT | IN,
        };
        Ok(ready | if socket.error.is_some() { ERR } else { 0 })
    }
}

/// The way in which a socket is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watch {
    /// Bits of readiness; [`ERR`] and [`HUP`] are always among them.
    pub events: u32,
    /// `EPOLLET`.
    pub edge: bool,
    /// `EPOLLONESHOT`.
    pub once: bool,
}

#[derive(Clone, Debug)]
struct Watched {
    watch: Watch,
    /// The socket's wakeups that `wait` has seen.
    seen: [u64; 3],
    /// Whether `wait` looks at it even without a wakeup.
    listed: bool,
    armed: bool,
}

/// A set of watched sockets.
///
/// A socket that is watched by edge is returned after each wakeup. The kernel has more wakeups, for
/// steps that change nothing that a process sees.
#[derive(Clone, Debug, Default)]
pub struct Epoll {
    watched: BTreeMap<SocketId, Watched>,
}

impl Epoll {
    /// Adds a socket.
    pub fn add(&mut self, net: &Net, id: SocketId, watch: Watch) -> Answer<()> {
        if self.watched.contains_key(&id) {
            return fail(Errno::EEXIST);
        }
        self.set(net, id, watch)
    }

    /// Changes how a socket is watched.
    pub fn modify(&mut self, net: &Net, id: SocketId, watch: Watch) -> Answer<()> {
        if !self.watched.contains_key(&id) {
            return fail(Errno::ENOENT);
        }
        self.set(net, id, watch)
    }

    fn set(&mut self, net: &Net, id: SocketId, watch: Watch) -> Answer<()> {
        let seen = net.socket(id)?.wakes;
        let watched = Watched {
            watch,
            seen,
            listed: true,
            armed: true,
        };
        self.watched.insert(id, watched);
        Ok(())
    }

    /// Returns how a socket is watched.
    pub fn watch(&self, id: SocketId) -> Option<Watch> {
        self.watched.get(&id).map(|w| w.watch)
    }

    /// Removes a socket.
    pub fn delete(&mut self, id: SocketId) -> Answer<()> {
        match self.watched.remove(&id) {
            Some(_) => Ok(()),
            None => fail(Errno::ENOENT),
        }
    }

    /// Returns the sockets that are ready, by their numbers. Closed ones leave the set.
    pub fn wait(&mut self, net: &Net) -> Vec<(SocketId, u32)> {
        self.watched
            .retain(|id, _| net.socket(*id).is_ok_and(|s| s.owned));
        let mut out = Vec::new();
        for (id, w) in &mut self.watched {
            let (Ok(socket), Ok(ready)) = (net.socket(*id), net.ready(*id)) else {
                continue;
            };
            let wanted = [IN, OUT, !0].map(|kind| kind & (w.watch.events | ERR | HUP) != 0);
            let woken = (0..3).any(|k| wanted[k] && socket.wakes[k] != w.seen[k]);
            w.seen = socket.wakes;
            w.listed |= woken || !w.watch.edge;
            if !w.listed || !w.armed {
                continue;
            }
            w.listed = false;
            let ready = ready & (w.watch.events | ERR | HUP);
            if ready != 0 {
                out.push((*id, ready));
                w.armed = !w.watch.once;
            }
        }
        out
    }
}
