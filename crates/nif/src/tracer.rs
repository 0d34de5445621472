//! Tracer modules: functions of a library that receive the events of traced processes and ports
//! (module `erl_tracer` of OTP's documentation).
//!
//! They are called in the middle of the traced operation, with the environment of a callback:
//! nothing of the process moves, and their terms are freed when they return. Messages that they
//! send go out at once, as trace messages do, so that the order of events is kept; they are not
//! traced. Locks of the tracee may be held, so by the interface these functions do not query it.

use crate::env;
use crate::library::{Attached, Library, named_here};
use purlin_kernel::{code, later};
use purlin_term::{Term, atom};
use std::sync::Arc;

/// The kind of an event, which determines the function that receives it, if the library has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Send,
    Receive,
    Call,
    RunningProcs,
    RunningPorts,
    GarbageCollection,
    Procs,
    Ports,
    /// Events without a function of their own.
    Other,
}

const KINDS: usize = 9;

/// Suffixes of the functions' names, in the order of [`Kind`].
const NAMES: [&str; KINDS] = [
    "_send",
    "_receive",
    "_call",
    "_running_procs",
    "_running_ports",
    "_garbage_collection",
    "_procs",
    "_ports",
    "",
];

/// Indices of a tracer module's functions: `enabled` and `trace`.
pub(crate) struct Functions {
    enabled: [usize; KINDS],
    trace: [usize; KINDS],
}

/// Finds the functions in a library; None if a mandatory one is missing.
pub(crate) fn functions(library: &Library) -> Option<Functions> {
    let find = |name: &str, arity: u32| {
        let mut all = library.functions().iter().map(|f| &f.base);
        all.position(|f| f.arity == arity && atom::name(f.function) == name)
    };
    let all = |verb: &str, arity: u32| {
        let general = find(verb, arity)?;
        Some(NAMES.map(|n| find(&format!("{verb}{n}"), arity).unwrap_or(general)))
    };
    Some(Functions {
        enabled: all("enabled", 3)?,
        trace: all("trace", 5)?,
    })
}

/// The library of a tracer module, kept as long as this value lives.
pub struct TracerModule(Option<Arc<Library>>);

/// Returns the library of the current version of a module, if it has the functions of a tracer
/// module.
pub fn tracer_module(module: Term) -> Option<TracerModule> {
    let m = code::current(module)?;
    let library = m.library.get()?.downcast_ref::<Attached>()?.0.clone();
    // The module may have been purged meanwhile; drop it where no lock is held.
    if let Some(m) = Arc::into_inner(m) {
        later::add(Box::new(move || drop(m)));
    }
    let found = TracerModule(Some(library));
    found.functions().is_some().then_some(found)
}

impl TracerModule {
    fn functions(&self) -> Option<(&Library, &Functions)> {
        let l = self.0.as_deref()?;
        Some((l, l.tracer.get_or_init(|| functions(l)).as_ref()?))
    }
    /// Returns the result of the `enabled` function, normally an atom; [`Term::NON_VALUE`] on an
    /// exception.
    pub fn enabled(&self, kind: Kind, tag: Term, state: Term, tracee: Term) -> Term {
        match self.functions() {
            Some((l, f)) => {
                let args = [tag, state, tracee];
                call(l, f.enabled[kind as usize], &args, Term::NON_VALUE)
            }
            None => Term::NON_VALUE,
        }
    }
    /// Calls the `trace` function with tag, state, tracee, message and options. `who` is the
    /// process that the environment names, or [`Term::NON_VALUE`].
    pub fn trace(&self, kind: Kind, args: [Term; 5], who: Term) {
        if let Some((l, f)) = self.functions() {
            call(l, f.trace[kind as usize], &args, who);
        }
    }
}

impl Drop for TracerModule {
    fn drop(&mut self) {
        // The module may be gone; its library is notified where no lock is held.
        if let Some(l) = self.0.take().and_then(Arc::into_inner) {
            later::add(Box::new(move || drop(l)));
        }
    }
}

fn call(library: &Library, at: usize, args: &[Term], who: Term) -> Term {
    let Some(f) = library.functions().get(at) else {
        return Term::NON_VALUE;
    };
    env::callback(library, |env| {
        // SAFETY: the environment is new; by the library's table its function takes that many
        // arguments, and the library is open.
        unsafe {
            (*env).on_behalf = who;
            let value = named_here(f, |fptr| fptr(env, args.len() as i32, args.as_ptr()));
            match (*env).has_exception() {
                true => Term::NON_VALUE,
                false => value,
            }
        }
    })
}
