//! Match specifications of traces.

use crate::ets::matchspec::{Action, Dialect, compile};
use purlin_term::frag::OwnedTerm;
use purlin_term::{NIL, Term, am};
use std::sync::Arc;

/// A match specification with its program; without a program, everything matches.
pub struct Spec {
    pub(crate) program: Option<crate::ets::matchspec::Program>,
    /// The specification as a term.
    pub text: OwnedTerm,
}

// SAFETY: neither the program's constants nor the text change once they are made.
unsafe impl Send for Spec {}

unsafe impl Sync for Spec {}

impl Spec {
    /// Compiles a specification; `[]` and `true` match everything. `None` if it is invalid.
    pub fn new(t: Term) -> Option<Arc<Spec>> {
        let program = if t == NIL || t == am::TRUE {
            None
        } else {
            Some(compile(t, Dialect::Trace)?.program)
        };
        let text = if t == am::TRUE { NIL } else { t };
        Some(Arc::new(Spec {
            program,
            text: OwnedTerm::copy_of(text),
        }))
    }
}

impl Spec {
    /// Compiles a specification for messages; `None` if it is invalid. These allow less: nothing
    /// about a call, and changes of the process only when it sends.
    pub(crate) fn of_messages(t: Term, receive: bool) -> Option<Arc<Spec>> {
        let program = compile(t, Dialect::Trace)?.program;
        let refused = |a: Action| match a {
            Action::Caller | Action::CallerLine | Action::CurrentStacktrace => true,
            Action::Message | Action::ReturnTrace | Action::ExceptionTrace => false,
            Action::Display | Action::GetTcw | Action::SetTcw => false,
            _ => receive,
        };
        if program.actions().any(refused) {
            return None;
        }
        Some(Arc::new(Spec {
            program: Some(program),
            text: OwnedTerm::copy_of(t),
        }))
    }
}
