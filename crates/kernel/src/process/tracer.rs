//! Tracers, the receivers of trace events: a process, a port, or functions of a native library.
//!
//! A tracer module (`erl_tracer` in OTP's documentation) comes with a state, any term, which is
//! passed to its functions with each event. The state is copied once, when the tracer is set. All
//! tracees that were set together share that copy.

use purlin_term::compare::eq_exact;
use purlin_term::frag::OwnedTerm;
use purlin_term::{Alloc, NIL, Term, copy};
use std::sync::Arc;

/// See the module documentation.
#[derive(Clone, Default)]
pub enum Tracer {
    #[default]
    Nobody,
    /// A local process or port, which may no longer exist.
    Local(Term),
    Module(Arc<OfModule>),
}

/// A module whose functions are in a native library, and its state.
pub struct OfModule {
    /// An atom.
    pub module: Term,
    state: OwnedTerm,
}

// SAFETY: immutable once made.
unsafe impl Send for OfModule {}
// SAFETY: immutable once made.
unsafe impl Sync for OfModule {}

impl OfModule {
    pub fn new(module: Term, state: Term) -> Arc<OfModule> {
        Arc::new(OfModule {
            module,
            state: OwnedTerm::copy_of(state),
        })
    }
    /// The state, valid while `self` is alive.
    pub fn state(&self) -> Term {
        self.state.term()
    }
    /// `{Module, State}`
    pub fn term(&self, to: &mut dyn Alloc) -> Term {
        let state = copy::copy(self.state(), to);
        to.tuple(&[self.module, state])
    }
}

impl Tracer {
    pub fn is_nobody(&self) -> bool {
        matches!(self, Tracer::Nobody)
    }
    /// Whether it is that process or port.
    pub fn is(&self, who: Term) -> bool {
        matches!(self, Tracer::Local(t) if *t == who)
    }
    pub fn is_port(&self) -> bool {
        matches!(self, Tracer::Local(t) if t.is_local_port())
    }
    /// The form that programs see: the process or port, or `{Module, State}`; `[]` for none.
    pub fn term(&self, to: &mut dyn Alloc) -> Term {
        match self {
            Tracer::Nobody => NIL,
            Tracer::Local(t) => *t,
            Tracer::Module(m) => m.term(to),
        }
    }
}

impl PartialEq for Tracer {
    fn eq(&self, other: &Tracer) -> bool {
        match (self, other) {
            (Tracer::Nobody, Tracer::Nobody) => true,
            (Tracer::Local(a), Tracer::Local(b)) => a == b,
            (Tracer::Module(a), Tracer::Module(b)) => {
                Arc::ptr_eq(a, b) || a.module == b.module && eq_exact(a.state(), b.state())
            }
            _ => false,
        }
    }
}
