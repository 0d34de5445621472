//! The interface from processes to everything else: ports, tables, files, nodes, dumps. Code below
//! knows no more of these than is written here.

use crate::cx::{Cx, Fail};
use crate::remote::{Remote, Watched};
use purlin_term::{Alloc, Term};
use std::sync::OnceLock;

/// Options of `erlang:send/3`.
#[derive(Clone, Copy, Default)]
pub struct How {
    /// The list of options that the function was called with.
    pub options: Option<Term>,
    /// Do not connect to another node.
    pub no_connect: bool,
    /// Do not wait for a port or a connection that is busy.
    pub no_suspend: bool,
    /// Sent by an alias with priority: goes before the messages that wait.
    pub urgent: bool,
}

/// The outcome of sending a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Sent {
    Done,
    /// Nothing is sent, since there can be no connection. The sender gets no error.
    Nowhere,
    /// There is no connection, and none was to be made.
    NotConnected,
    /// The port or the connection is busy, and the sender does not wait.
    Busy,
}

/// Ports, nodes and tables. The default methods behave as if there were none.
pub trait Outside: Sync {
    /// Sends a message to a port. A port that does not exist is ignored. Waits while the port is
    /// busy, unless `how` says otherwise.
    fn port_send(&self, _cx: &mut Cx, _port: Term, _msg: Term, _how: How) -> Result<Sent, Fail> {
        Ok(Sent::Done)
    }
    /// Sends a port the exit signal of a process that was linked to it.
    fn port_exit(&self, _port: Term, _from: Term, _reason: Term) {}
    /// Ends a process's monitor of a port.
    fn port_demonitor(&self, _port: Term, _reference: Term) {}
    /// Whether the port exists and is open.
    fn port_is_open(&self, _port: Term) -> bool {
        false
    }
    /// Reports the end of a process that something outside watches by that reference.
    fn watched_down(&self, _reference: Term, _pid: Term) {}
    /// Returns the watcher with that reference, in the form in which the watched process's
    /// information shows it.
    fn watched_by(&self, _reference: [u32; 3], _to: &mut dyn Alloc) -> Option<Term> {
        None
    }
    /// Adds files and sockets that watch the process without a reference of their own, in the form
    /// in which the process's information shows them.
    fn watching(&self, _pid: Term, _to: &mut dyn Alloc, _out: &mut Vec<Term>) {}
    /// Called when the running process ends, before others know. If a signal has ended it, its
    /// registers are unchanged.
    fn process_ends(&self, _cx: &mut Cx) {}
    /// Called when a process has ended: frees what it owned outside.
    fn owner_exit(&self, _pid: Term) {}
    /// Sends a message to `to` on another node. Waits while the connection is busy, unless `how`
    /// says otherwise.
    fn remote_send(&self, _cx: &mut Cx, _to: Term, _msg: Term, _how: How) -> Result<Sent, Fail> {
        Ok(Sent::Nowhere)
    }
    /// Ends a monitor that process `me` has on another node.
    fn remote_demonitor(&self, _me: Term, _watched: &Watched) {}
    /// Called when the running process, which was `me` and had ties to other nodes, has ended.
    fn remote_end(&self, _cx: &mut Cx, _me: Term, _ties: Remote, _reason: Term) {}
    /// Writes a crash dump before the emulator ends by force.
    fn crash_dump(&self, _slogan: &str) {}
}

struct Nothing;
impl Outside for Nothing {}

static OUTSIDE: OnceLock<&'static dyn Outside> = OnceLock::new();

/// Installs the implementation. Only the first call has an effect.
pub fn set_outside(what: &'static dyn Outside) {
    let _ = OUTSIDE.set(what);
}

/// The installed implementation.
pub fn outside() -> &'static dyn Outside {
    OUTSIDE.get().copied().unwrap_or(&Nothing)
}
