//! Tracer modules: functions of a library that are told of events of traced processes and ports (module `erl_tracer` of OTP's
//! documentation).
//!
//! They are called in the midst of what the traced process does, with an environment of a callback: nothing of the process moves, and
//! what they make is freed as they return. What they send goes out at once, as trace messages do, so that the order of the events is
//! kept; it is not traced. Locks may be held that are the tracee's: they promise to ask nothing of it.

use crate::env;
use crate::library::{Attached, Library, named_here};
use purlin_kernel::{code, later};
use purlin_term::{Term, atom};
use std::sync::Arc;

/// The kind of an event: which function is told of it, if the library has one for it.
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
    /// There is no function but the general one.
    Other,
}

const KINDS: usize = 9;

/// The ends of the functions' names, in the order of [`Kind`].
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

/// Places of the functions of a library that a tracer module may have: those that are asked, and those that are told.
pub(crate) struct Functions {
    enabled: [usize; KINDS],
    trace: [usize; KINDS],
}

/// Those of a library; None: it hasn't those that a tracer module must have.
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

/// The library of a tracer module: it stays as long as this does.
pub struct TracerModule(Option<Arc<Library>>);

/// The library behind the current version of a module, if it has the functions of a tracer module.
pub fn tracer_module(module: Term) -> Option<TracerModule> {
    let m = code::current(module)?;
    let library = m.library.get()?.downcast_ref::<Attached>()?.0.clone();
    // The module may have been purged meanwhile: it ends where no lock is held.
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
    /// The answer of the function that is asked, which is an atom if it does what it should; [`Term::NON_VALUE`]: an exception.
    pub fn enabled(&self, kind: Kind, tag: Term, state: Term, tracee: Term) -> Term {
        match self.functions() {
            Some((l, f)) => {
                let args = [tag, state, tracee];
                call(l, f.enabled[kind as usize], &args, Term::NON_VALUE)
            }
            None => Term::NON_VALUE,
        }
    }
    /// Has the function told: tag, state, tracee, message, options. `who`: the process that the environment says it is in, or
    /// [`Term::NON_VALUE`].
    pub fn trace(&self, kind: Kind, args: [Term; 5], who: Term) {
        if let Some((l, f)) = self.functions() {
            call(l, f.trace[kind as usize], &args, who);
        }
    }
}

impl Drop for TracerModule {
    fn drop(&mut self) {
        // The module may have gone meanwhile. Its library is told so where no lock is held.
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
        // SAFETY: the environment was just made; the library says that its function takes so many arguments, and is open.
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
