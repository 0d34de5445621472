//! Ports that a connection to another node goes over: what comes in is handed to the connection, not to the owner, and
//! what goes out is taken from it as the port gets on.

use super::{Port, find};
use crate::msacc::{self, State};
use purlin_term::Term;
use purlin_term::iolist::IoSlice;
use smallvec::SmallVec;

/// The parts of a packet that goes out.
pub type Packet = SmallVec<[IoSlice; 2]>;

/// A connection. All is called with the port's lock held.
pub trait Channel: Send + Sync {
    /// A packet has come in. False: it is no good, and the port is to be killed.
    fn input(&self, packet: &[u8]) -> bool;
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

/// Has a port take what its connection has for it.
pub fn pull(port: Term) {
    if let Some(p) = find(port) {
        let _state = msacc::within(State::Port);
        p.pull(&mut p.lock());
    }
}

/// Ends the port of a connection by force.
pub fn kill(port: Term) {
    if let Some(p) = find(port) {
        let _ = p.exit(port, purlin_term::am::KILL, false);
    }
}

impl Port {
    /// Takes what the connection has.
    pub(super) fn pull(&self, core: &mut super::Core) {
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
