//! The purposes for which calls of a function are traced.

use super::spec::Spec;
use crate::process::session::Session;
use crate::trace::frames::Which;
use crate::tracer::Tracer;
use std::collections::HashMap;
use std::sync::Arc;

/// The purposes for which a function's calls are traced.
#[derive(Default, Clone)]
pub struct Wanted {
    /// Calls by processes that are traced for calls; `true` includes calls from within the module.
    pub call: Option<(Arc<Spec>, bool)>,
    /// Calls by any process, reported to that tracer.
    pub meta: Option<(Tracer, Arc<Spec>)>,
    /// Number of calls; false while counting is paused.
    pub count: Option<(u64, bool)>,
    /// Calls and nanoseconds of each process; false while paused.
    pub time: Option<(HashMap<u64, (u64, u64)>, bool)>,
    /// Calls and words allocated, of each process; false while paused.
    pub memory: Option<(HashMap<u64, (u64, u64)>, bool)>,
    /// Calls go to `breakpoint/3` of the process's error handler, so that the debugger runs the
    /// function.
    pub debug: bool,
    /// Calls are recorded for an observer; see [`crate::trace::watch`].
    pub watched: bool,
}

impl Wanted {
    /// Clears everything that belongs to tracing.
    pub(crate) fn clear_trace(&mut self) {
        *self = Wanted {
            debug: self.debug,
            watched: self.watched,
            ..Wanted::default()
        };
    }
    pub(crate) fn nothing(&self) -> bool {
        self.call.is_none()
            && self.meta.is_none()
            && self.count.is_none()
            && self.time.is_none()
            && self.memory.is_none()
            && !self.debug
            && !self.watched
    }
    pub fn local(&self) -> bool {
        self.debug
            || self.watched
            || self.meta.is_some()
            || self.count.is_some()
            || self.time.is_some()
            || self.memory.is_some()
            || self.call.as_ref().is_some_and(|c| c.1)
    }
}

/// The purposes for which a function's calls are traced, with and without sessions.
#[derive(Default)]
pub(crate) struct All {
    /// Without a session.
    pub(crate) plain: Wanted,
    pub(crate) sessions: Vec<(Arc<Session>, Wanted)>,
}

impl All {
    /// Changes one part. Removes parts that want nothing, and those of sessions that are over.
    pub(crate) fn change(&mut self, which: Which, how: &dyn Fn(&mut Wanted)) {
        match which {
            None => how(&mut self.plain),
            Some(s) => {
                let at = self.sessions.iter().position(|(t, _)| Arc::ptr_eq(t, s));
                let at = at.unwrap_or_else(|| {
                    self.sessions.push((s.clone(), Wanted::default()));
                    self.sessions.len() - 1
                });
                how(&mut self.sessions[at].1);
            }
        }
        self.sessions.retain(|(s, w)| !s.is_over() && !w.nothing());
    }
    fn each(&self) -> impl Iterator<Item = &Wanted> {
        std::iter::once(&self.plain).chain(self.sessions.iter().map(|s| &s.1))
    }
    pub(crate) fn each_mut(&mut self) -> impl Iterator<Item = (Which<'_>, &mut Wanted)> {
        let sessions = self.sessions.iter_mut();
        let sessions = sessions.filter(|s| !s.0.is_over());
        std::iter::once((None, &mut self.plain)).chain(sessions.map(|(s, w)| (Some(&*s), w)))
    }
    pub(crate) fn nothing(&self) -> bool {
        self.each().all(Wanted::nothing)
    }
    /// Whether calls from within the module are wanted.
    pub(crate) fn local(&self) -> bool {
        self.each().any(Wanted::local)
    }
    /// Whether calls from other modules only are wanted by anyone.
    pub(crate) fn global(&self) -> bool {
        self.each().any(|w| w.call.as_ref().is_some_and(|c| !c.1))
    }
}
