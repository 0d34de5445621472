//! States of sockets, and what travels between them.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// Bytes that `send` takes before they can leave.
pub(super) const SEND_BUFFER: usize = 256 << 10;

/// A machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MachineId(pub u32);

/// A socket, or what is left of one that its process has closed. Numbers are never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SocketId(pub(super) u64);

/// The state of one end of a connection, with the names of RFC 9293.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// `FIN-WAIT-1`.
    FinWait,
    FinWait2,
    Closing,
    CloseWait,
    LastAck,
}

/// The state that a process's calls of `connect` depend on, beside that of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    None,
    /// `connect` has begun, and no later call has had its result.
    Begun,
    Made,
}

#[derive(Clone, Debug)]
pub(super) struct Tcp {
    pub(super) state: State,
    pub(super) attempt: Attempt,
    /// Whether an attempt has failed.
    pub(super) tried: bool,
    pub(super) remote: Option<SocketAddr>,
    pub(super) peer: Option<SocketId>,
    pub(super) backlog: usize,
    /// Connections that wait for `accept`.
    pub(super) queue: VecDeque<SocketId>,
    /// Connections whose last step of three has not arrived.
    pub(super) arriving: Vec<SocketId>,
    /// The listening socket of a connection that is arriving.
    pub(super) listener: Option<SocketId>,
    pub(super) received: VecDeque<u8>,
    pub(super) unsent: VecDeque<u8>,
    /// Bytes that have left and that the other end has not read.
    pub(super) outstanding: usize,
    /// Whether the end is to be sent after `unsent`.
    pub(super) end_unsent: bool,
    pub(super) reads_shut: bool,
    pub(super) writes_shut: bool,
    /// Whether the end of the other side has arrived.
    pub(super) ended: bool,
    /// Whether `close` resets the connection (`SO_LINGER` of 0).
    pub(super) aborts: bool,
    /// The time of the last arrival at the other end: nothing overtakes it.
    pub(super) last_arrival: u64,
}

impl Tcp {
    pub(super) fn new(state: State) -> Self {
        Tcp {
            state,
            attempt: Attempt::None,
            tried: false,
            remote: None,
            peer: None,
            backlog: 0,
            queue: VecDeque::new(),
            arriving: Vec::new(),
            listener: None,
            received: VecDeque::new(),
            unsent: VecDeque::new(),
            outstanding: 0,
            end_unsent: false,
            reads_shut: false,
            writes_shut: false,
            ended: false,
            aborts: false,
            last_arrival: 0,
        }
    }
}

/// A step of a connection on its way.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) from: SocketId,
    /// The socket it is for; a request has an address instead.
    pub(super) to: Option<SocketId>,
    pub(super) sender: MachineId,
    pub(super) receiver: MachineId,
    /// Its place among all packets of the net, from 1 on; 0 before it leaves.
    pub(super) number: u64,
    pub(super) body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Request {
        from: SocketAddr,
        to: SocketAddr,
    },
    Accept,
    Established,
    Data(Vec<u8>),
    /// The other end has read this many bytes.
    Taken(usize),
    End,
    EndTaken,
    Reset,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Udp {
    /// The address that `connect` has set.
    pub(super) remote: Option<SocketAddr>,
    pub(super) received: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Bytes in `received`.
    pub(super) bytes: usize,
}

/// A datagram, or the answer that nothing takes it.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) sender: MachineId,
    pub(super) receiver: MachineId,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// The data, or none: the port that `from` names has no socket.
    pub(super) data: Option<Vec<u8>>,
}
