//! The interface of a driver: the operations of one kind of port.

use super::base::Base;
use super::channel::Channel;
use super::settings::{Error, Options};
use crate::gather::Gather;
use crate::poll;
use purlin_term::Term;
use purlin_term::frag::OwnedTerm;
use std::os::fd::RawFd;

/// The reply of `port_control`.
pub struct Reply {
    pub bytes: Vec<u8>,
    /// Whether the reply is a binary, not a list.
    pub binary: bool,
}

/// The work of one port. All methods are called with the port's lock held and must not block.
pub trait Driver: Send {
    /// Takes what a process writes: everything that was gathered, or with [`Driver::in_batches`]
    /// its first batch.
    fn output(&mut self, base: &mut Base, data: &mut Gather);
    /// Whether the driver gathers the batches after the first by itself. The list has been walked
    /// then, and [`Gather::total`] is its size.
    fn in_batches(&self) -> bool {
        false
    }
    /// Whether a long list may come in parts, by [`Driver::begin`] and [`Driver::output_part`].
    /// True if the driver writes a plain stream, in which nothing stands before or behind a list.
    fn streams(&self) -> bool {
        false
    }
    /// Announces that `bytes` bytes follow in parts, even if their sender ends. [`Base::has_more`]
    /// is true until the last part. If nothing more can be sent, the driver calls
    /// [`Base::cut_short`] and tells the sender.
    fn begin(&mut self, _base: &mut Base, _bytes: usize) {}
    /// Takes a part. The next one comes when the port is not busy, unless time has run out.
    fn output_part(&mut self, _base: &mut Base, _data: &mut Gather, _last: bool) {}
    /// The port has taken over the rest of the list. The sender continues and is told what stock
    /// tells it when its list is queued.
    fn taken(&mut self, _base: &mut Base, _sender: Term) {}
    /// Whether senders wait for a limited time, which the driver measures. Then everything that is
    /// sent must be queued.
    fn has_deadline(&self) -> bool {
        false
    }
    /// Asks the poll thread to report when more can be written, though nothing is queued.
    fn later(&mut self, _base: &mut Base) {}
    /// A registered descriptor is ready as requested.
    fn ready(&mut self, base: &mut Base, id: poll::Id, readable: bool, writable: bool);
    /// A timer of the driver has fired, perhaps one that it cancelled too late.
    fn timeout(&mut self, _base: &mut Base, _token: u32) {}
    /// Whether a closing port still performs this operation of `port_control`, because it only
    /// reads something or sets how to continue.
    fn answers_closing(&self, _op: u32) -> bool {
        false
    }
    /// `port_control`. None if there is no such operation.
    fn control(&mut self, _base: &mut Base, _op: u32, _data: &[u8]) -> Option<Reply> {
        None
    }
    /// `port_call`. None if there is no such operation.
    fn call(&mut self, _base: &mut Base, _op: u32, _data: Term) -> Option<OwnedTerm> {
        None
    }
    /// Number of bytes taken and not written yet. A closed port lives on until there are none.
    fn queued(&self) -> usize {
        0
    }
    /// The port was closed while something is queued.
    fn flush(&mut self, _base: &mut Base) {}
    /// Writes the queue, blocking, until `until` at the latest: the runtime halts.
    fn write_out(&mut self, _base: &mut Base, _until: Option<i64>) {}
    /// Whether the port reads from or writes to the terminal that the runtime was started on.
    fn on_terminal(&self) -> bool {
        false
    }
    /// The child process of the port has ended, with this status of wait(2).
    fn child_exited(&mut self, _base: &mut Base, _status: i32) {}
    /// Whether a connection to another node may use the ports of this driver.
    fn may_be_channel(&self) -> bool {
        false
    }
    /// Pulls packets from the connection that uses the port, as many as can be sent now.
    fn pull(&mut self, _base: &mut Base, _channel: &dyn Channel) {}
    /// Stops the driver; the last call. Unregisters and closes descriptors.
    fn stop(&mut self, base: &mut Base);
    /// Process number of the program behind the port.
    fn os_pid(&self) -> Option<i32> {
        None
    }
    /// The descriptor, if it is a socket.
    fn socket(&self) -> Option<RawFd> {
        None
    }
    /// Whether stock's driver takes output as a vector. Tracers then see it as a list.
    fn vectored(&self) -> bool {
        false
    }
    /// Whether `port_command` may be forced while the port is busy.
    fn may_force(&self) -> bool {
        false
    }
    /// The processes that the driver monitors.
    fn watches(&self) -> Vec<Term> {
        Vec::new()
    }
    /// The processes that wait for something from the driver, besides the connected one.
    fn awaited_by(&self) -> Vec<Term> {
        Vec::new()
    }
    /// Whether stock has one lock per port of this driver.
    fn own_lock(&self) -> bool {
        false
    }
}

/// Starts a driver for a port that is being opened. `command` is the text behind `spawn` or
/// `spawn_driver`.
pub(crate) type Start = fn(&mut Base, &Options, command: &[u8]) -> Result<Box<dyn Driver>, Error>;

/// Starts a driver once, for a port that is being opened. See [`Start`].
pub type Starter = Box<dyn FnOnce(&mut Base, &Options, &[u8]) -> Result<Box<dyn Driver>, Error>>;
