//! Sessions of tracing, as programs have them: who owns one, how it is named, and its end.

use super::{calls, messages};
use crate::cx::Cx;
pub(crate) use crate::process::session::{Made, Session, all, find};
use purlin_kernel::later;
use purlin_native::native_state;
use purlin_term::{Term, atom};
use std::sync::Arc;

/// What a reference owns: with the last copy of it the session is over.
struct Owner(Arc<Session>);

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.0.is_over() {
            // Where this is due a process may be being collected.
            let s = self.0.clone();
            later::add(Box::new(move || {
                end(&s);
            }));
        }
    }
}

/// A reference that owns a session.
pub(crate) fn reference(cx: &mut Cx, s: Arc<Session>) -> Term {
    native_state::make(cx, Owner(s))
}

/// What a term names.
pub(crate) enum Named {
    /// Tracing without a session.
    Plain,
    Session(Arc<Session>),
    /// A session that there is not, or not any more.
    Gone,
}

/// What a pair of reference and name, or a name, names; None: it is neither.
pub(crate) fn named(t: Term) -> Option<Named> {
    let &[first, second] = t.as_tuple()? else {
        return None;
    };
    if let Some(owner) = native_state::get::<Owner>(first) {
        return Some(Named::Session(owner.0.clone()));
    }
    if !first.is_atom() {
        return None;
    }
    if let Some(n) = second.as_small() {
        let found = u32::try_from(n).ok().and_then(|n| find(first, n));
        return Some(found.map_or(Named::Gone, Named::Session));
    }
    let plain = second.is_atom() && (atom::name(first), atom::name(second)) == ("legacy", "default");
    plain.then_some(Named::Plain)
}

/// Ends a session: nothing is told any more. False: it was over.
pub(crate) fn end(s: &Arc<Session>) -> bool {
    let first = s.end();
    if first {
        calls::end(s);
        messages::end(s);
    }
    first
}
