//! Sessions of tracing, as programs have them: who owns one, how it is named, and its end.

use super::{calls, messages, monitor};
use crate::cx::Cx;
pub(crate) use crate::process::session::{Made, Session, all, find};
use purlin_kernel::later;
use purlin_native::native_state;
use purlin_term::Term;
use std::sync::Arc;

/// The value that a reference owns: with the last copy of it the session is over.
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

/// The session that a pair of reference and name, or a name, names. By its name it is found until it is over.
pub(crate) fn named(t: Term) -> Option<Arc<Session>> {
    let &[first, second] = t.as_tuple()? else {
        return None;
    };
    if let Some(owner) = native_state::get::<Owner>(first) {
        return Some(owner.0.clone());
    }
    if !first.is_atom() {
        return None;
    }
    find(first, u32::try_from(second.as_small()?).ok()?)
}

/// Ends a session: nothing is told any more. False: it was over.
pub(crate) fn end(s: &Arc<Session>) -> bool {
    let first = s.end();
    if first {
        calls::end(s);
        messages::end(s);
        monitor::end(s.number);
    }
    first
}
