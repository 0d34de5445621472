//! The door between processes and all else: ports, tables, files, nodes, dumps. The code below knows of them what is
//! written here, and no more.

use crate::cx::{Cx, Fail};
use crate::remote::{Remote, Watched};
use purlin_term::{Alloc, Term};
use std::sync::OnceLock;

/// How a message is sent: the options of `erlang:send/3`.
#[derive(Clone, Copy, Default)]
pub struct How {
    /// The list of options that the function was called with.
    pub options: Option<Term>,
    /// Makes no connection to another node.
    pub no_connect: bool,
    /// Does not wait for a port or a connection that is busy.
    pub no_suspend: bool,
    /// By an alias that has priority it comes before what waits.
    pub urgent: bool,
}

/// The outcome of sending a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Sent {
    Done,
    /// Nothing goes out, since there can be no connection. The sender gets no error.
    Nowhere,
    /// There is no connection, and none was to be made.
    NotConnected,
    /// The port or the connection is busy, and the sender does not wait.
    Busy,
}

/// The world beside processes: ports, nodes, tables. The methods do as if there was nothing.
pub trait Outside: Sync {
    /// A message to a port. Nobody is told where there is no such port. Waits while the port is busy, if `how` says nothing else.
    fn port_send(&self, _cx: &mut Cx, _port: Term, _msg: Term, _how: How) -> Result<Sent, Fail> {
        Ok(Sent::Done)
    }
    /// The exit signal of a process that was linked to a port.
    fn port_exit(&self, _port: Term, _from: Term, _reason: Term) {}
    /// A process does not watch a port any more.
    fn port_demonitor(&self, _port: Term, _reference: Term) {}
    /// Whether there is such a port, and it is open.
    fn port_is_open(&self, _port: Term) -> bool {
        false
    }
    /// A process that something outside watches by that reference has ended.
    fn watched_down(&self, _reference: Term, _pid: Term) {}
    /// The watcher with that reference, as those who ask the watched process are told.
    fn watched_by(&self, _reference: [u32; 3], _to: &mut dyn Alloc) -> Option<Term> {
        None
    }
    /// Adds what watches the process without a reference of its own, files and sockets, as those who ask the process are told.
    fn watching(&self, _pid: Term, _to: &mut dyn Alloc, _out: &mut Vec<Term>) {}
    /// The running process ends. Nobody knows yet, and its registers are as they were if a signal has ended it.
    fn process_ends(&self, _cx: &mut Cx) {}
    /// A process has ended: what it owned outside goes.
    fn owner_exit(&self, _pid: Term) {}
    /// A message to what is on another node, as `to` names it. Waits while the connection is busy, if `how` says nothing else.
    fn remote_send(&self, _cx: &mut Cx, _to: Term, _msg: Term, _how: How) -> Result<Sent, Fail> {
        Ok(Sent::Nowhere)
    }
    /// The process `me` does not watch something on another node any more.
    fn remote_demonitor(&self, _me: Term, _watched: &Watched) {}
    /// The running process, which was `me`, has ended, which had ties to other nodes.
    fn remote_end(&self, _cx: &mut Cx, _me: Term, _ties: Remote, _reason: Term) {}
    /// The emulator is about to end by force: a crash dump is written.
    fn crash_dump(&self, _slogan: &str) {}
}

struct Nothing;
impl Outside for Nothing {}

static OUTSIDE: OnceLock<&'static dyn Outside> = OnceLock::new();

/// Says what there is. Only the first call does.
pub fn set_outside(what: &'static dyn Outside) {
    let _ = OUTSIDE.set(what);
}

/// The installed world beside processes.
pub fn outside() -> &'static dyn Outside {
    OUTSIDE.get().copied().unwrap_or(&Nothing)
}
