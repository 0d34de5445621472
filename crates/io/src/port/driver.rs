//! The interface of a driver: the operations of one kind of port.

use super::base::Base;
use super::channel::Channel;
use super::settings::{Error, Options};
use crate::gather::Gather;
use crate::poll;
use purlin_term::Term;
use purlin_term::frag::OwnedTerm;
use std::os::fd::RawFd;
use std::time::Instant;

/// The answer of `port_control`.
pub struct Reply {
    pub bytes: Vec<u8>,
    /// As a binary, not as a list.
    pub binary: bool,
}

/// The work of one port. All is called with the port's lock held, and must not block.
pub trait Driver: Send {
    /// Takes what a process writes: everything that was gathered; with [`Driver::in_batches`] the first batch of it.
    fn output(&mut self, base: &mut Base, data: &mut Gather);
    /// Whether the driver gathers by itself what isn't in the first batch. The list has been walked then, and
    /// [`Gather::total`] says what it comes to.
    fn in_batches(&self) -> bool {
        false
    }
    /// Whether a long list may come in parts, by [`Driver::begin`] and [`Driver::output_part`]: the driver writes a plain stream,
    /// where nothing goes before or behind a list.
    fn streams(&self) -> bool {
        false
    }
    /// So many bytes follow in parts, whatever becomes of their sender. Until the last part [`Base::has_more`] says so; the driver
    /// calls [`Base::cut_short`] if nothing more can be sent, and tells the sender.
    fn begin(&mut self, _base: &mut Base, _bytes: usize) {}
    /// Takes a part. The next comes when the port isn't busy, unless there is no time.
    fn output_part(&mut self, _base: &mut Base, _data: &mut Gather, _last: bool) {}
    /// The rest of the list comes from the port itself: its sender goes on, and is told what it is told in stock when its list is
    /// queued.
    fn taken(&mut self, _base: &mut Base, _sender: Term) {}
    /// Whether senders wait for a limited time only, which the driver measures: what is sent must be queued then.
    fn has_deadline(&self) -> bool {
        false
    }
    /// Has the port told when more can be written, though nothing is queued.
    fn later(&mut self, _base: &mut Base) {}
    /// A descriptor that the driver registered is ready for what it wanted.
    fn ready(&mut self, base: &mut Base, id: poll::Id, readable: bool, writable: bool);
    /// A timer that the driver set has fired, or one that it cancelled too late.
    fn timeout(&mut self, _base: &mut Base, _token: u32) {}
    /// Whether a port still does that operation of `port_control` which is closing: it tells something, or sets how to go on.
    fn answers_closing(&self, _op: u32) -> bool {
        false
    }
    /// `port_control`; None: no such operation.
    fn control(&mut self, _base: &mut Base, _op: u32, _data: &[u8]) -> Option<Reply> {
        None
    }
    /// `port_call`; None: no such operation.
    fn call(&mut self, _base: &mut Base, _op: u32, _data: Term) -> Option<OwnedTerm> {
        None
    }
    /// Bytes taken and not written yet. A port that was closed goes on until there are none.
    fn queued(&self) -> usize {
        0
    }
    /// The port was closed while something is queued.
    fn flush(&mut self, _base: &mut Base) {}
    /// Writes everything that is queued, blocking, but not for longer than until then: the runtime halts.
    fn write_out(&mut self, _base: &mut Base, _until: Option<Instant>) {}
    /// Whether it reads from or writes to the terminal that the runtime was started on.
    fn on_terminal(&self) -> bool {
        false
    }
    /// The child process of the port has ended, with that status of wait(2).
    fn child_exited(&mut self, _base: &mut Base, _status: i32) {}
    /// Whether a connection to another node may go over its ports.
    fn may_be_channel(&self) -> bool {
        false
    }
    /// Takes packets from the connection that goes over the port, as many as can be sent now.
    fn pull(&mut self, _base: &mut Base, _channel: &dyn Channel) {}
    /// The port ends: the last call. Descriptors are forgotten and closed.
    fn stop(&mut self, base: &mut Base);
    /// Process number of the program behind the port.
    fn os_pid(&self) -> Option<i32> {
        None
    }
    /// The descriptor, where it is a socket.
    fn socket(&self) -> Option<RawFd> {
        None
    }
    /// Whether stock's driver takes what is written in pieces: tracers are told of it as a list then.
    fn vectored(&self) -> bool {
        false
    }
    /// Whether `port_command` may be forced while the port is busy.
    fn may_force(&self) -> bool {
        false
    }
    /// The processes that it watches.
    fn watches(&self) -> Vec<Term> {
        Vec::new()
    }
    /// Whether stock has a lock for each port of this driver.
    fn own_lock(&self) -> bool {
        false
    }
}

/// Starts a driver for a port that is being opened, `command` being what follows `spawn` or `spawn_driver`.
pub(crate) type Start = fn(&mut Base, &Options, command: &[u8]) -> Result<Box<dyn Driver>, Error>;

/// Starts a driver once, for a port that is being opened: see [`Start`].
pub type Starter = Box<dyn FnOnce(&mut Base, &Options, &[u8]) -> Result<Box<dyn Driver>, Error>>;
