//! The request of a process that makes another.

use purlin_term::Term;
use purlin_term::frag::OwnedTerm;

/// How a parent hears of its child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// By the result of the call.
    Call,
    /// By a message `{Tag, Reference, ok, Pid}`, which comes before any other signal of the child.
    Message,
    Nothing,
}

/// The request of a process that makes another.
pub struct Request {
    /// Lives while the process is made.
    pub reference: Term,
    pub tag: OwnedTerm,
    /// The options as they were given, for those who trace.
    pub options: Option<OwnedTerm>,
    pub reply: Reply,
}
