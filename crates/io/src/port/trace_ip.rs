//! The driver `trace_ip_drv`: sends trace events to the client of a TCP port (`dbg:trace_port(ip,
//! …)`).
//!
//! A command is `Port Queue Flags`. One client at a time gets the events, in the format of
//! `trace_file`. Events that do not fit in the queue are dropped, and their number is sent in their
//! place.

use super::settings::{Error, Options};
use super::{Base, Driver, Reply};
use crate::gather::Gather;
use crate::poll;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// The name by which the driver is opened.
pub(crate) const NAME: &str = "trace_ip_drv";
/// The operation of `port_control` that returns the TCP port.
const LISTEN_PORT: u32 = b'p' as u32;

/// Events are queued while no client is connected. (Flag 1, to drop the oldest, is accepted and
/// ignored, as in stock.)
const FILL_ALWAYS: u32 = 2;
const KNOWN_FLAGS: u32 = 3;

const EVENT: u8 = 0;
const DROPPED: u8 = 1;

struct Queued {
    bytes: Vec<u8>,
    written: usize,
    /// Number of dropped events that this entry stands for.
    dropped: u32,
}

fn framed(kind: u8, number: u32, data: &[u8]) -> Vec<u8> {
    let mut v = Vec::with_capacity(data.len() + 5);
    v.push(kind);
    v.extend_from_slice(&number.to_be_bytes());
    v.extend_from_slice(data);
    v
}

struct Client {
    stream: TcpStream,
    id: poll::Id,
}

struct TraceIp {
    listener: TcpListener,
    id: poll::Id,
    number: u16,
    flags: u32,
    /// Maximum number of queue entries. The last is for the number of dropped events.
    most: usize,
    queue: VecDeque<Queued>,
    client: Option<Client>,
}

/// Starts the driver for a port that is opened.
pub fn start(base: &mut Base, _: &Options, command: &[u8]) -> Result<Box<dyn Driver>, Error> {
    let text = std::str::from_utf8(command).map_err(|_| Error::General)?;
    let numbers: Vec<u32> = text
        .split_ascii_whitespace()
        .skip(1)
        .map_while(|w| w.parse().ok())
        .collect();
    let &[port, queue, flags, ..] = &numbers[..] else {
        return Err(Error::General);
    };
    // Truncated as by a C conversion to 16 bits.
    let port = port as u16;
    if flags > KNOWN_FLAGS {
        return Err(Error::General);
    }
    let listen = || -> io::Result<(TcpListener, u16)> {
        let l = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
        l.set_nonblocking(true)?;
        let number = l.local_addr()?.port();
        Ok((l, number))
    };
    let (listener, number) = listen().map_err(|_| Error::General)?;
    let id = base.register(listener.as_raw_fd())?;
    poll::want(id, true, false);
    Ok(Box::new(TraceIp {
        listener,
        id,
        number,
        flags,
        most: queue as usize + 1,
        queue: VecDeque::new(),
        client: None,
    }))
}

impl TraceIp {
    fn enqueue(&mut self, event: &[u8]) {
        let room = self.most.saturating_sub(self.queue.len());
        if room > 1 {
            self.queue.push_back(Queued {
                bytes: framed(EVENT, event.len() as u32, event),
                written: 0,
                dropped: 0,
            });
            return;
        }
        let before = match self.queue.back() {
            // An entry that is partly sent cannot change any more.
            Some(q) if q.dropped > 0 && q.written == 0 => q.dropped,
            _ => 0,
        };
        if before > 0 {
            self.queue.pop_back();
        }
        let dropped = before.saturating_add(1);
        self.queue.push_back(Queued {
            bytes: framed(DROPPED, dropped, &[]),
            written: 0,
            dropped,
        });
    }
    /// Writes as much as the client takes.
    fn pump(&mut self) {
        let Some(c) = &mut self.client else { return };
        while let Some(q) = self.queue.front_mut() {
            match c.stream.write(&q.bytes[q.written..]) {
                Ok(n) => q.written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    poll::want(c.id, true, true);
                    return;
                }
                Err(_) => return self.drop_client(),
            }
            if q.written == q.bytes.len() {
                self.queue.pop_front();
            }
        }
        poll::want(c.id, true, false);
    }
    fn drop_client(&mut self) {
        if let Some(c) = self.client.take() {
            poll::forget(c.id);
        }
        if self.flags & FILL_ALWAYS == 0 {
            self.queue.clear();
        }
    }
    fn accept(&mut self, base: &mut Base) -> io::Result<()> {
        let stream = match self.listener.accept() {
            Ok((s, _)) => s,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(e),
        };
        if self.client.is_some() {
            // One client is enough: the other is dropped.
            return Ok(());
        }
        stream.set_nonblocking(true)?;
        let id = base.register(stream.as_raw_fd())?;
        self.client = Some(Client { stream, id });
        Ok(())
    }
}

impl Driver for TraceIp {
    fn output(&mut self, _: &mut Base, data: &mut Gather) {
        if self.client.is_none() && self.flags & FILL_ALWAYS == 0 {
            return;
        }
        self.enqueue(&data.to_vec());
        // A waiting queue is written when the poll thread reports room, else at once.
        if self.queue.len() == 1 {
            self.pump();
        }
    }
    fn ready(&mut self, base: &mut Base, id: poll::Id, readable: bool, _: bool) {
        if id == self.id {
            // A client that has closed the connection, or for which no descriptor is left, is not
            // accepted.
            let _ = self.accept(base);
            poll::want(self.id, true, false);
        } else if readable && let Some(c) = &mut self.client {
            // Nothing is expected from the client but the end of the connection.
            let mut buf = [0; 128];
            match c.stream.read(&mut buf) {
                Ok(0) => return self.drop_client(),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return self.drop_client(),
            }
        }
        self.pump();
    }
    fn control(&mut self, _: &mut Base, op: u32, _: &[u8]) -> Option<Reply> {
        (op == LISTEN_PORT).then(|| {
            let [high, low] = self.number.to_be_bytes();
            Reply {
                bytes: vec![0, high, low],
                binary: true,
            }
        })
    }
    fn stop(&mut self, _: &mut Base) {
        self.drop_client();
        poll::forget(self.id);
    }
}
