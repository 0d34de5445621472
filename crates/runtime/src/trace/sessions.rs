//! Trace sessions as programs see them: ownership, names and end.

use super::calls::table;
use super::{messages, monitor};
use crate::cx::Cx;
pub(crate) use crate::process::session::{Made, Session, all, find};
use purlin_kernel::later;
use purlin_native::native_state;
use purlin_term::Term;
use std::sync::Arc;

/// The value behind a reference that owns a session. With its last copy the session is over.
struct Owner(Arc<Session>);

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.0.is_over() {
            // This may run while a process is being collected.
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

/// The session named by a pair of reference and name, or by a name, which names it until it is
/// over.
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

/// Ends a session: nothing more is reported. Returns false if it was over.
pub(crate) fn end(s: &Arc<Session>) -> bool {
    let first = s.end();
    if first {
        table::end(s);
        messages::end(s);
        monitor::end(s.number);
    }
    first
}
