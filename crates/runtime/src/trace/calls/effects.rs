//! Actions in the bodies of match specifications: what they change in the traced process and in
//! others.

use super::spec::Spec;
use crate::code;
use crate::code::breakpoint::*;
use crate::cx::Cx;
use crate::ets::matchspec::{Action, Host, Runner, Subject, execution};
use crate::events::flag;
use crate::process;
use crate::process::session::Session;
use crate::signal;
use crate::trace::frames::Which;
use crate::trace::module;
use crate::trace::sequential;
use crate::trace::state::state;
use crate::tracer::Tracer;
use purlin_term::print::{LONGEST_TEXT, Style, format_term};
use purlin_term::release::{self, SILENT_IF_TRACED};
use purlin_term::{Alloc, Term, am, atom};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The requests of a match specification's body while it runs.
pub(crate) struct Effects {
    pub(crate) returns: i64,
    /// Return address of the call.
    caller: *const u64,
    /// The side on whose behalf it runs.
    which: Option<Arc<Session>>,
}

impl Effects {
    /// For events that are not calls, so that no return can be traced.
    pub(crate) fn of_no_call(which: Which) -> Effects {
        Effects {
            returns: 0,
            caller: std::ptr::null(),
            which: which.cloned(),
        }
    }
    /// For a call that returns to `caller`.
    pub(super) fn of_call(which: Which, caller: *const u64) -> Effects {
        Effects {
            returns: 0,
            caller,
            which: which.cloned(),
        }
    }
}

/// The flag of that name.
fn flag_named(t: Term) -> Option<u32> {
    let name = t.is_atom().then(|| atom::name(t))?;
    let (_, f) = flag::NAMES.iter().find(|n| n.0 == name)?;
    Some(*f)
}

/// Flags and tracer from the list of a `trace` form. `choice` allows it to name a tracer.
fn flag_list(t: Term, tracer: &mut Tracer, choice: bool) -> Option<u32> {
    let mut flags = 0;
    let mut it = t.list_iter();
    for o in it.by_ref() {
        match o.as_tuple() {
            Some(&[k, v])
                if choice
                    && k.is_atom()
                    && atom::name(k) == "tracer"
                    && (v.is_local_pid() || v.is_local_port()) =>
            {
                *tracer = Tracer::Local(v);
            }
            Some(&[k, module, state])
                if choice && k.is_atom() && atom::name(k) == "tracer" && module.is_atom() =>
            {
                *tracer = module::named(module, state)?;
            }
            _ if o == am::ALL => flags |= flag::ALL,
            _ => flags |= flag_named(o)?,
        }
    }
    it.tail().is_nil().then_some(flags)
}

/// Removes flags from a process that the caller owns and adds others, with that tracer. Returns
/// whether this changes anything.
pub(crate) fn retrace(
    p: &mut process::Process,
    which: Which,
    tracer: Tracer,
    off: u32,
    on: u32,
) -> bool {
    let (flags, before) = state(p, which);
    let now = if tracer.is_nobody() {
        0
    } else {
        (flags & !off) | on
    };
    // A different tracer would have to be asked for permission.
    let gone = match before == tracer {
        true => flags & !now,
        false => u32::MAX,
    };
    crate::trace::state::change(p, which, false, gone, Tracer::Nobody);
    if now == 0 {
        return flags != 0 || !before.is_nobody();
    }
    crate::trace::state::change(p, which, true, now, tracer.clone());
    now != flags || before != tracer
}

impl Effects {
    /// The tracer of everything that the session traces, if it has one.
    fn own(&self) -> Option<Tracer> {
        self.which.as_ref().and_then(|s| s.tracer())
    }
    /// Flags of the process in the context, and the tracer that it has or would get.
    fn tracer(&self, cx: &mut Cx) -> (u32, Tracer) {
        let (flags, tracer) = state(cx.process(), self.which.as_ref());
        (flags, self.own().unwrap_or(tracer))
    }
    /// The pid that the argument of a form names; `None` for the process in the context.
    fn whom(&self, cx: &mut Cx, whom: Option<Term>) -> Option<Term> {
        match whom {
            None => Some(cx.self_pid()),
            Some(t) if t.is_atom() => process::registry::whereis(t),
            Some(t) => Some(t),
        }
    }
    /// Applies a `trace` form to the process in the context, or to another that exists.
    fn retrace(
        &self,
        cx: &mut Cx,
        whom: Option<Term>,
        tracer: Tracer,
        off: u32,
        on: u32,
    ) -> Option<bool> {
        let pid = self.whom(cx, whom)?;
        if pid == cx.self_pid() {
            return Some(retrace(cx.process(), self.which.as_ref(), tracer, off, on));
        }
        if !pid.is_local_pid() || process::table().find(pid).is_none() {
            return None;
        }
        let which = self.which.clone();
        signal::send::run_in(
            pid,
            Box::new(move |cx| {
                if let Some(cx) = cx {
                    retrace(cx.process(), which.as_ref(), tracer, off, on);
                }
            }),
        );
        Some(true)
    }
}

impl Host for Effects {
    fn action(&mut self, cx: &mut Cx, action: Action, args: &[Term]) -> Option<Term> {
        match action {
            Action::ReturnTrace => {
                self.returns = self.returns.max(kind::RETURN);
                Some(am::TRUE)
            }
            Action::ExceptionTrace => {
                self.returns = kind::EXCEPTION;
                Some(am::TRUE)
            }
            Action::Caller | Action::CallerLine => {
                // SAFETY: the address is looked up, not dereferenced.
                let place = code::find(self.caller.wrapping_sub(1));
                let Some(p) = place else {
                    return Some(am::UNDEFINED);
                };
                let arity = Term::small(p.arity.into());
                if action == Action::Caller {
                    return Some(cx.tuple(&[p.module, p.function, arity]));
                }
                let line = match &p.line {
                    Some((file, line)) => {
                        let f = cx.string(file);
                        cx.tuple(&[f, Term::small(i64::from(*line))])
                    }
                    None => am::UNDEFINED,
                };
                Some(cx.tuple(&[p.module, p.function, arity, line]))
            }
            Action::CurrentStacktrace => Some(code::stack::stacktrace(cx, args.first().copied())),
            Action::Silent => {
                if let Some(on) = args.first().and_then(|t| t.as_bool()) {
                    let p = cx.process();
                    let which = self.which.as_ref();
                    let (flags, tracer) = state(p, which);
                    // Earlier releases also silence a process that is not traced yet.
                    if flags != 0 || !release::has(SILENT_IF_TRACED) {
                        crate::trace::state::change(p, which, on, flag::SILENT, tracer);
                    }
                }
                args.first().copied()
            }
            Action::EnableTrace | Action::DisableTrace => {
                let f = flag_named(*args.last()?)?;
                let whom = (args.len() == 2).then(|| args[0]);
                let (_, tracer) = self.tracer(cx);
                let (off, on) = match action {
                    Action::EnableTrace => (0, f),
                    _ => (f, 0),
                };
                self.retrace(cx, whom, tracer, off, on)?;
                Some(am::TRUE)
            }
            Action::Trace => {
                let (whom, lists) = match *args {
                    [off, on] => (None, [off, on]),
                    [whom, off, on] => (Some(whom), [off, on]),
                    _ => return None,
                };
                let (_, mut tracer) = self.tracer(cx);
                let choice = self.own().is_none();
                let off = flag_list(lists[0], &mut tracer, choice)?;
                let on = flag_list(lists[1], &mut tracer, choice)?;
                if !tracer.is_nobody() && !tracer.lives(self.whom(cx, whom)?) {
                    return None;
                }
                self.retrace(cx, whom, tracer, off, on).map(Term::bool)
            }
            Action::IsSeqTrace => Some(Term::bool(sequential::token(cx.process()).is_some())),
            Action::GetSeqToken => Some(sequential::token_term(cx)),
            Action::SetSeqToken => {
                let &[what, value] = args else { return None };
                sequential::change(cx, what, value).map(|_| am::TRUE)
            }
            Action::ProcessDump => {
                let text = crate::backtrace::backtrace(cx);
                Some(cx.binary(text.as_bytes()))
            }
            Action::GetTcw => {
                let w = crate::ets::matchspec::TRACE_CONTROL_WORD.load(Ordering::Relaxed);
                Some(Term::small(w.into()))
            }
            Action::SetTcw => {
                let n = args
                    .first()?
                    .as_small()
                    .and_then(|n| u32::try_from(n).ok())?;
                let w = &crate::ets::matchspec::TRACE_CONTROL_WORD;
                Some(Term::small(w.swap(n, Ordering::Relaxed).into()))
            }
            Action::Display => {
                let t = *args.first()?;
                let text = format_term(t, Style::Display, LONGEST_TEXT);
                purlin_term::say::error(format_args!("{text}\r\n"));
                Some(am::TRUE)
            }
            _ => None,
        }
    }
}

/// Whether arguments match, with the message that the body leaves.
pub(crate) fn matches(cx: &mut Cx, spec: &Spec, args: &[Term], fx: &mut Effects) -> Option<Term> {
    let Some(p) = &spec.program else {
        return Some(am::TRUE);
    };
    let tuple = cx.tuple(args);
    let list = cx.list(args);
    execution::Runner::run(&mut Runner::new(p), cx, p, Subject::Call(tuple, list), fx)
}
