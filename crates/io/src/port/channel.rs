//! Ports that carry a connection to another node. Input goes to the connection, not to the owner,
//! and output is pulled from the connection as the port makes progress.

use super::{Port, find};
use crate::msacc::{self, State};
use purlin_term::Term;
use purlin_term::iolist::IoSlice;
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// The parts of an outgoing packet.
pub type Packet = SmallVec<[IoSlice; 2]>;

/// Reads available bytes into the front of a slice. Returns that front, or a system error.
pub type Read<'r> = dyn for<'a> FnMut(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8], i32> + 'r;

/// The outcome of reading more of a packet.
pub enum More {
    /// Number of bytes read, or a system error.
    Read(Result<usize, i32>),
    /// The packet is invalid or the connection is gone: the port must be killed.
    Bad,
}

/// A connection. All methods are called with the port's lock held.
pub trait Channel: Send + Sync {
    /// Takes a complete packet. Returns false if it is invalid; the port is killed then.
    fn input(&self, packet: &[u8]) -> bool;
    /// Offers the first bytes of a packet of which `left` bytes are missing. Returns true if the
    /// connection has a buffer for the whole packet and has taken these bytes. Then
    /// [`Channel::read_more`] reads the others.
    fn begin_packet(&self, _packet: &[u8], _left: usize) -> bool {
        false
    }
    /// Reads the next chunk of the packet into its destination. `left` bytes of the packet are
    /// missing; `read` is called once. The packet is complete when its last byte is read.
    fn read_more(&self, left: usize, read: &mut Read<'_>) -> More;
    /// Reports how many bytes of an incomplete packet the port holds. Returns false if that is too
    /// much; the port is killed then.
    fn report_held(&self, _bytes: usize) -> bool {
        true
    }
    /// Asks, after a packet, for how many milliseconds the port is to take no more of them. It asks
    /// again after that.
    fn pause(&self) -> Option<u64> {
        None
    }
    /// The next outgoing packet.
    fn next(&self) -> Option<Packet>;
    /// The port has ended for `reason`.
    fn ended(&self, reason: Term);
}

/// Makes a connection use a port, if `enter` agrees. `enter` is called with the port locked.
/// Returns false if there is no such port, or if it cannot carry a connection or already does.
pub fn connect(
    port: Term,
    channel: std::sync::Arc<dyn Channel>,
    enter: impl FnOnce() -> bool,
) -> bool {
    let Some(p) = find(port) else { return false };
    let mut core = p.lock();
    let c = &mut *core;
    let fits = c.driver.as_ref().is_some_and(|d| d.may_be_channel());
    if c.base.closing || !fits || c.base.channel.is_some() || !enter() {
        return false;
    }
    c.base.channel = Some(channel);
    true
}

/// Number of times in a row that a thread serves requests left to the holder of the port's lock.
/// Then the poll thread takes over.
const TURNS: usize = 16;

/// Makes a port pull what its connection has to send: at once, or when the current holder of its
/// lock unlocks.
pub fn pull(port: Term) {
    if let Some(p) = find(port) {
        p.handoff.request();
        p.pull_if_requested();
    }
}

/// Kills the port of a connection.
pub fn kill(port: Term) {
    if let Some(p) = find(port) {
        let _ = p.exit(port, purlin_term::am::KILL, false);
    }
}

impl Port {
    /// Pulls if that was requested, unless another thread holds the lock; that thread then does it.
    pub(super) fn pull_if_requested(&self) {
        let _state = msacc::within(State::Port);
        for turn in 0.. {
            let Some(mut core) = self.core.try_lock() else {
                return;
            };
            if self.handoff.take() {
                match turn < TURNS {
                    true => self.pull(&mut core),
                    // Others keep producing, and this thread has work of its own.
                    false => self.pull_later(&mut core),
                }
            }
            drop(core);
            if !self.handoff.is_requested() {
                return;
            }
        }
    }
    /// Leaves the pull to the poll thread.
    fn pull_later(&self, core: &mut super::Core) {
        if let (false, Some(d)) = (core.base.closing, &mut core.driver) {
            d.later(&mut core.base);
        }
    }
    /// Pulls what the connection has to send.
    pub(super) fn pull(&self, core: &mut super::Core) {
        // Everything requested until now is pulled below.
        self.handoff.take();
        let c = &mut *core;
        if c.base.closing {
            return;
        }
        if let (Some(channel), Some(d)) = (c.base.channel.clone(), &mut c.driver) {
            d.pull(&mut c.base, &*channel);
            self.settle(core);
        }
    }
}
