//! Ports that a connection to another node goes over: what comes in is handed to the connection, not to the owner, and
//! what goes out is taken from it as the port gets on.

use super::{Port, find};
use crate::msacc::{self, State};
use purlin_term::Term;
use purlin_term::iolist::IoSlice;
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// The parts of a packet that goes out.
pub type Packet = SmallVec<[IoSlice; 2]>;

/// Reads what is there, into the start of a place; that start, or an error of the system.
pub type Read<'r> = dyn for<'a> FnMut(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8], i32> + 'r;

/// The outcome of reading more of a packet.
pub enum More {
    /// So many bytes were read, or the system has failed.
    Read(Result<usize, i32>),
    /// The packet is no good, or the connection is gone: the port is to be killed.
    Bad,
}

/// A connection. All is called with the port's lock held.
pub trait Channel: Send + Sync {
    /// A packet has come in. False: it is no good, and the port is to be killed.
    fn input(&self, packet: &[u8]) -> bool;
    /// These bytes of a packet have come, and `left` are to come. True: the connection has a place for all of it, and has taken
    /// these; the others are read by [`Channel::more`].
    fn begins(&self, _packet: &[u8], _left: usize) -> bool {
        false
    }
    /// Has the next bytes be read, of which `left` are to come, to where they are to be, by `read`, which is called once. With the
    /// last of them the packet has come in.
    fn more(&self, left: usize, read: &mut Read<'_>) -> More;
    /// The port has so many bytes of a packet that is not complete. False: that is too much, and the port is to be killed.
    fn holds(&self, _bytes: usize) -> bool {
        true
    }
    /// The next packet that goes out.
    fn next(&self) -> Option<Packet>;
    /// The port has ended, for that reason.
    fn ended(&self, reason: Term);
}

/// Has a connection go over a port, if `enter` agrees, which is called while nothing else happens to the port. False: there
/// is no such port, it can't be used for that, or is already.
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

/// How often in a row what others have left to the holder of a port's lock is taken, before that is left to whoever waits for
/// descriptors.
const TURNS: usize = 16;

/// Has a port take what its connection has for it: at once, or, if somebody holds its lock, when that is given up.
pub fn pull(port: Term) {
    if let Some(p) = find(port) {
        p.asked.ask();
        p.pull_asked();
    }
}

/// Ends the port of a connection by force.
pub fn kill(port: Term) {
    if let Some(p) = find(port) {
        let _ = p.exit(port, purlin_term::am::KILL, false);
    }
}

impl Port {
    /// Takes what the connection has, if that is asked for and nobody holds the lock, who would do it.
    pub(super) fn pull_asked(&self) {
        let _state = msacc::within(State::Port);
        for turn in 0.. {
            let Some(mut core) = self.core.try_lock() else {
                return;
            };
            if self.asked.take() {
                match turn < TURNS {
                    true => self.pull(&mut core),
                    // Others have more all the while, and this thread has work of its own.
                    false => self.pull_later(&mut core),
                }
            }
            drop(core);
            if !self.asked.is_asked() {
                return;
            }
        }
    }
    /// Leaves what the connection has to whoever waits for descriptors.
    fn pull_later(&self, core: &mut super::Core) {
        if let (false, Some(d)) = (core.base.closing, &mut core.driver) {
            d.later(&mut core.base);
        }
    }
    /// Takes what the connection has.
    pub(super) fn pull(&self, core: &mut super::Core) {
        // Whatever was asked for until now is taken below.
        self.asked.take();
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
