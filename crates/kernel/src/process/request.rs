//! A request to spawn a process.

use purlin_term::Term;
use purlin_term::frag::OwnedTerm;

/// How a parent learns of its child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// By the result of the call.
    Call,
    /// By a message `{Tag, Reference, ok, Pid}`, which arrives before any other signal of the
    /// child.
    Message,
    Nothing,
}

/// A request to spawn a process.
pub struct Request {
    /// Lives until the process is made.
    pub reference: Term,
    pub tag: OwnedTerm,
    /// The options as given, for tracing.
    pub options: Option<OwnedTerm>,
    pub reply: Reply,
}
