//! The name server of a machine: the names and ports of its nodes, as `epmd` keeps them.
//!
//! A node registers over a connection that it leaves open; the name goes when the connection does.
//! Every other request has its answer and the end of the connection. The test `names_against_epmd`
//! compares the answers with those of an installed `epmd`.
//!
//! # Not modelled
//! Refused: the list with descriptors (`DUMP_REQ`), the end of the server by request (`KILL_REQ`
//! without names), names that are not UTF-8. Absent: the end of connections that send nothing for
//! a minute, and the limit on connections. Different: the first creation of a name is drawn.

use crate::errno::{Answer, Refusal};
use crate::streams::Stream;
use std::collections::BTreeMap;

const ALIVE2_REQ: u8 = b'x';
const ALIVE2_RESP: u8 = b'y';
const ALIVE2_X_RESP: u8 = b'v';
const PORT2_REQ: u8 = b'z';
const PORT2_RESP: u8 = b'w';
const NAMES_REQ: u8 = b'n';
const DUMP_REQ: u8 = b'd';
const KILL_REQ: u8 = b'k';

/// Length from which a request is too long, with the two bytes of its length.
const REQUESTS: usize = 3060;

/// The longest name, in characters.
const NAME_CHARS: usize = 255;

/// The longest data that a node registers beside its name, in bytes.
const EXTRA: usize = 255 * 4;

/// The version of the protocol from which creations have 32 bits.
const WIDE_CREATION: u16 = 6;

/// The bytes that the server answers to what it has received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    pub bytes: Vec<u8>,
    /// Whether the server closes the connection then.
    pub closes: bool,
}

/// A registered node.
#[derive(Clone, Debug)]
struct Node {
    connection: u64,
    name: Vec<u8>,
    port: u16,
    kind: u8,
    protocol: u8,
    highest: u16,
    lowest: u16,
    extra: Vec<u8>,
    creation: u32,
}

#[derive(Clone, Debug)]
struct Connection {
    received: Vec<u8>,
    is_local: bool,
    /// Whether the request was one that keeps the connection.
    keeps: bool,
}

/// The name server of a machine.
#[derive(Clone, Debug)]
pub struct NameServer {
    port: u16,
    /// The newest first.
    nodes: Vec<Node>,
    /// Last creations of names that are free again.
    former: BTreeMap<Vec<u8>, u32>,
    connections: BTreeMap<u64, Connection>,
    numbers: Stream,
}

/// Reads the number of 16 bits at a place.
fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

impl NameServer {
    /// Returns a server without names that listens on a port.
    pub fn new(port: u16, numbers: Stream) -> Self {
        NameServer {
            port,
            nodes: Vec::new(),
            former: BTreeMap::new(),
            connections: BTreeMap::new(),
            numbers,
        }
    }

    /// Returns the names and ports of the nodes, the newest first.
    pub fn names(&self) -> impl Iterator<Item = (&[u8], u16)> {
        self.nodes.iter().map(|n| (&n.name[..], n.port))
    }

    /// Begins a connection. Only those from the server's own machine may register.
    pub fn accept(&mut self, connection: u64, is_local: bool) {
        let new = Connection {
            received: Vec::new(),
            is_local,
            keeps: false,
        };
        self.connections.insert(connection, new);
    }

    /// Ends a connection; its name is free then.
    pub fn close(&mut self, connection: u64) {
        self.connections.remove(&connection);
        if let Some(at) = self.nodes.iter().position(|n| n.connection == connection) {
            let node = self.nodes.remove(at);
            self.former.insert(node.name, node.creation);
        }
    }

    /// Takes bytes that arrive on a connection.
    pub fn receive(&mut self, connection: u64, bytes: &[u8]) -> Answer<Reply> {
        let reply = self.answer(connection, bytes)?;
        if reply.closes {
            self.close(connection);
        }
        Ok(reply)
    }

    fn answer(&mut self, connection: u64, bytes: &[u8]) -> Answer<Reply> {
        let closes = Reply {
            bytes: Vec::new(),
            closes: true,
        };
        let Some(c) = self.connections.get_mut(&connection) else {
            return Ok(closes);
        };
        if c.keeps {
            return Ok(closes);
        }
        // Once the length is known the server reads no further than that.
        let known = number16(&c.received, 0).map(|len| usize::from(len) + 2);
        let missing = known.map_or(bytes.len(), |len| len - c.received.len());
        let (bytes, rest) = bytes.split_at(missing.min(bytes.len()));
        c.received.extend_from_slice(bytes);
        let waits = Reply {
            closes: false,
            ..closes.clone()
        };
        let Some(len) = number16(&c.received, 0).map(|len| usize::from(len) + 2) else {
            return Ok(waits);
        };
        if len == 2 || len >= REQUESTS || c.received.len() > len {
            return Ok(closes);
        }
        if c.received.len() < len {
            return Ok(waits);
        }
        let (request, is_local) = (c.received.split_off(2), c.is_local);
        let mut reply = self.request(connection, &request, is_local)?;
        // Bytes after a request that keeps the connection end it.
        reply.closes |= !rest.is_empty();
        Ok(reply)
    }

    fn request(&mut self, connection: u64, request: &[u8], is_local: bool) -> Answer<Reply> {
        let bytes = match request[0] {
            ALIVE2_REQ if is_local => return self.register(connection, request),
            PORT2_REQ => self.find(&request[1..])?,
            NAMES_REQ => self.list(),
            KILL_REQ if !is_local => Vec::new(),
            KILL_REQ if !self.nodes.is_empty() => b"NO".to_vec(),
            KILL_REQ => return Err(Refusal::NotModelled("KILL_REQ")),
            DUMP_REQ if is_local => return Err(Refusal::NotModelled("DUMP_REQ")),
            // So is STOP_REQ unless the server was started to allow it.
            _ => Vec::new(),
        };
        Ok(Reply {
            bytes,
            closes: true,
        })
    }

    fn register(&mut self, connection: u64, request: &[u8]) -> Answer<Reply> {
        let Some(mut node) = node_of(connection, request) else {
            return Ok(Reply {
                bytes: Vec::new(),
                closes: true,
            });
        };
        let chars = chars(&node.name)?;
        let taken = self.nodes.iter().any(|n| n.name == node.name);
        let wide = node.highest >= WIDE_CREATION;
        let mut bytes = vec![if wide { ALIVE2_X_RESP } else { ALIVE2_RESP }];
        let fails = taken || chars > NAME_CHARS || node.extra.len() > EXTRA;
        bytes.push(u8::from(fails));
        let creation = if fails {
            99
        } else {
            node.creation = match self.former.remove(&node.name) {
                Some(before) => before.wrapping_add(1).max(4),
                None => 4 + self.numbers.below(1 << 31) as u32,
            };
            if wide {
                node.creation
            } else {
                node.creation % 3 + 1
            }
        };
        if wide {
            bytes.extend(creation.to_be_bytes());
        } else {
            bytes.extend((creation as u16).to_be_bytes());
        }
        if !fails {
            self.nodes.insert(0, node);
        }
        if let Some(c) = self.connections.get_mut(&connection) {
            c.keeps = true;
        }
        Ok(Reply {
            bytes,
            closes: false,
        })
    }

    fn find(&self, name: &[u8]) -> Answer<Vec<u8>> {
        let name = name.strip_suffix(&[0]).unwrap_or(name);
        // `epmd` counts the zero byte that ends the name, too.
        if name.is_empty() || name.contains(&0) || chars(name)? >= NAME_CHARS {
            return Ok(Vec::new());
        }
        let Some(node) = self.nodes.iter().find(|n| n.name == name) else {
            return Ok(vec![PORT2_RESP, 1]);
        };
        let mut bytes = vec![PORT2_RESP, 0];
        bytes.extend(node.port.to_be_bytes());
        bytes.extend([node.kind, node.protocol]);
        bytes.extend(node.highest.to_be_bytes());
        bytes.extend(node.lowest.to_be_bytes());
        for part in [&node.name, &node.extra] {
            bytes.extend((part.len() as u16).to_be_bytes());
            bytes.extend(part);
        }
        Ok(bytes)
    }

    fn list(&self) -> Vec<u8> {
        let mut bytes = u32::from(self.port).to_be_bytes().to_vec();
        for (name, port) in self.names() {
            bytes.extend(b"name ");
            bytes.extend(name);
            bytes.extend(format!(" at port {port}\n").bytes());
        }
        bytes
    }
}

/// Returns the number of characters of a name.
fn chars(name: &[u8]) -> Answer<usize> {
    match std::str::from_utf8(name) {
        Ok(name) => Ok(name.chars().count()),
        Err(_) => Err(Refusal::NotModelled("a name that is not UTF-8")),
    }
}

/// Reads a request to register.
fn node_of(connection: u64, request: &[u8]) -> Option<Node> {
    if request.len() <= 13 {
        return None;
    }
    let len = usize::from(number16(request, 9)?);
    let name = request.get(11..11 + len)?;
    let extra = usize::from(number16(request, 11 + len)?);
    let extra = request.get(13 + len..13 + len + extra)?;
    (!name.contains(&0)).then_some(Node {
        connection,
        name: name.to_vec(),
        port: number16(request, 1)?,
        kind: request[3],
        protocol: request[4],
        highest: number16(request, 5)?,
        lowest: number16(request, 7)?,
        extra: extra.to_vec(),
        creation: 0,
    })
}
