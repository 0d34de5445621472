//! Tracing of calls: breakpoints in functions.
//!
//! [`crate::code::breakpoint`] and [`crate::code::entries`] say what a breakpoint is and who puts it into code. Here is what it is
//! for. Breakpoints are set and cleared while other threads run the code; whoever comes by one that has just been cleared finds
//! what it was for all the same, since entries of the table stay.
//!
//! A call whose return is to be told gets a frame between its own and its caller's: the code that is returned to tells
//! it and returns in turn. Layout: address of that code, module, function, arity, kind (see [`kind`]), and who is
//! told: the tracer of the process (`[]`), that of a session (its number), or another tracer.
//!
//! Natives have no code of their own: the breakpoint stands in the stub of their export, and instructions that call
//! them directly go there while [`natives`] says that any of them has one.
//!
//! The wishes of sessions for a function stand beside what is wanted without one ([`All`]). Where one wants calls from other
//! modules only, and another all of them, both places have a breakpoint: who comes by the export is told to all, and goes on
//! behind the one of the entry, which tells calls from within.

use super::{Which, emit_unasked, flag, module, number_of, sequential, state};
pub use crate::code::breakpoint::*;
use crate::code::entries::entries;
use crate::code::{self, Module, breakpoint};
use crate::cx::Cx;
use crate::ets::matchspec::{Action, Dialect, Host, Runner, Subject, compile, run};
use crate::process::ext::Timed;
use crate::process::session::Session;
use crate::process::{self, TRACED};
use crate::tracer::Tracer;
use crate::{clock, lazy_atoms, signal};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::release::{self, SILENT_IF_TRACED};
use purlin_term::sync::{Mutex, RwLock};
use purlin_term::{Alloc, NIL, Term, am, atom, copy};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

lazy_atoms! {
    call_tag = "call";
    return_from = "return_from";
    return_to = "return_to";
    exception_from = "exception_from";
}

/// See [`Breakpoints::traced_apply`](crate::code::breakpoint::Breakpoints::traced_apply).
#[cold]
pub(crate) fn find_traced_apply() -> Option<*const u64> {
    let t = table().read();
    let key = (am::ERLANG.atom_index(), am::APPLY.atom_index(), 2);
    let entry = t.by_name.get(&key)?.entry as *const u64;
    // SAFETY: the entry of a function of a module that is never purged.
    unsafe { is_breakpoint(entry) }.then_some(entry)
}

/// A match specification with its program; no program: everything matches.
pub struct Spec {
    program: Option<crate::ets::matchspec::Program>,
    /// The specification itself.
    pub text: OwnedTerm,
}

// SAFETY: neither the program's constants nor the text change once they are made.
unsafe impl Send for Spec {}
unsafe impl Sync for Spec {}

impl Spec {
    /// Compiles a specification; `[]` and `true` match everything. None if it is none.
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
    /// Compiles a specification for messages, which allow less: what is about a call isn't there, and what changes the
    /// process only where it sends. None if it is none.
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

/// The wishes for the calls of a function.
#[derive(Default, Clone)]
pub struct Wanted {
    /// Calls by processes that are traced for calls: from within the module too (`true`) or not.
    pub call: Option<(Arc<Spec>, bool)>,
    /// Calls by any process, told to that tracer.
    pub meta: Option<(Tracer, Arc<Spec>)>,
    /// Calls counted so far; false: counting pauses.
    pub count: Option<(u64, bool)>,
    /// Calls and nanoseconds of each process; false: paused.
    pub time: Option<(HashMap<u64, (u64, u64)>, bool)>,
    /// Calls and words that were made, of each process; false: paused.
    pub memory: Option<(HashMap<u64, (u64, u64)>, bool)>,
    /// Calls go to the error handler of the process, `breakpoint/3`: the debugger runs the function.
    pub debug: bool,
    /// Calls are written down for an observer: see [`super::watch`].
    pub watched: bool,
}

impl Wanted {
    /// All that tracing wants is forgotten.
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

/// The wishes for the calls of a function, and whose they are.
#[derive(Default)]
struct All {
    /// Without a session.
    plain: Wanted,
    sessions: Vec<(Arc<Session>, Wanted)>,
}

impl All {
    /// Has a part changed; those of sessions that are over go, and those that want nothing.
    fn change(&mut self, which: Which, how: &dyn Fn(&mut Wanted)) {
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
    fn each_mut(&mut self) -> impl Iterator<Item = (Which<'_>, &mut Wanted)> {
        let sessions = self.sessions.iter_mut();
        let sessions = sessions.filter(|s| !s.0.is_over());
        std::iter::once((None, &mut self.plain)).chain(sessions.map(|(s, w)| (Some(&*s), w)))
    }
    fn nothing(&self) -> bool {
        self.each().all(Wanted::nothing)
    }
    /// Whether calls from within the module are wanted.
    fn local(&self) -> bool {
        self.each().any(Wanted::local)
    }
    /// Whether anybody wants calls from other modules only.
    fn global(&self) -> bool {
        self.each().any(|w| w.call.as_ref().is_some_and(|c| !c.1))
    }
}

struct Breakpoint {
    mfa: (Term, Term, u32),
    /// The entry of the function.
    entry: usize,
    /// All calls come by the stub of the export.
    native: bool,
    wanted: Mutex<All>,
}

#[derive(Default)]
struct Table {
    /// By entry address, and by the address of the word that an export leads to.
    at: HashMap<usize, Arc<Breakpoint>>,
    by_name: HashMap<(u32, u32, u32), Arc<Breakpoint>>,
}

fn table() -> &'static RwLock<Table> {
    static T: OnceLock<RwLock<Table>> = OnceLock::new();
    T.get_or_init(RwLock::default)
}

/// The code at these addresses is about to go.
pub fn forget(code: std::ops::Range<usize>) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut t = table().write();
    t.at.retain(|_, b| !code.contains(&b.entry));
    t.by_name.retain(|_, b| !code.contains(&b.entry));
}

/// The code at these addresses is no longer that of its module's functions: calls of it are neither told nor counted.
pub(crate) fn outdated(code: std::ops::Range<usize>) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut t = table().write();
    t.by_name.retain(|_, b| !code.contains(&b.entry));
    // A process that is about to run the word that an export led to is in no code of the module: nothing may lead it there
    // any more, since the purge wouldn't find it.
    t.at.retain(|&at, b| at == b.entry || !code.contains(&b.entry));
    for b in t.at.values().filter(|b| code.contains(&b.entry)) {
        *b.wanted.lock() = All::default();
        // SAFETY: the entry of a function of a module that isn't gone yet. A process that comes by now finds the former word.
        unsafe { entries().clear_breakpoint(b.entry as *const u64) };
    }
}

/// Changes what is wanted of the functions that match; how many there are. `m`, `f`: atoms, `_` for all; `arity`: None
/// for all.
///
/// With `exported`, only functions that other modules can call.
pub(crate) fn change(
    which: Which,
    m: Term,
    f: Term,
    arity: Option<u32>,
    exported: bool,
    how: &dyn Fn(&mut Wanted),
) -> usize {
    let modules = if m == am::UNDERSCORE {
        code::loaded()
    } else {
        vec![m]
    };
    let mut n = 0;
    for name in modules {
        // Under the lock of the versions: else its exports might lead to another one by now, and would be led back.
        code::with_versions(name, |v| {
            let Some(module) = &v.current else { return };
            for at in &module.functions {
                // SAFETY: the word of an atom.
                let function = unsafe { Term::from_raw(at.name) };
                if (f != am::UNDERSCORE && f != function) || arity.is_some_and(|a| a != at.arity) {
                    continue;
                }
                let called = |e: &(Term, u32, u32)| e.0 == function && e.1 == at.arity;
                if exported && !module.exports.iter().any(called) {
                    continue;
                }
                n += 1;
                set(which, module, (name, function, at.arity), at.entry, how);
            }
        });
    }
    n
}

/// The breakpoints of modules that are loaded from now on, and whether they are set only on functions that other modules
/// can call.
type OnLoad = (Box<dyn Fn(&mut Wanted) + Send>, bool);

static ON_LOAD: Mutex<Vec<(Option<Arc<Session>>, OnLoad)>> = Mutex::new(Vec::new());
static ANY_ON_LOAD: AtomicUsize = AtomicUsize::new(0);

/// Has `how` done to the functions of modules that are loaded from now on; None: nothing any more.
pub(crate) fn on_load(which: Which, how: Option<OnLoad>) {
    let mut all = ON_LOAD.lock();
    let number = number_of(which);
    match how {
        Some(_) if which.is_some_and(|s| s.is_over()) => {}
        Some(h) => all.push((which.cloned(), h)),
        None => all.retain(|(w, _)| number_of(w.as_ref()) != number),
    }
    ANY_ON_LOAD.store(all.len(), Ordering::Release);
}

/// Whether anything is done to modules that are loaded.
pub(crate) fn traces_loaded() -> bool {
    ANY_ON_LOAD.load(Ordering::Acquire) != 0
}

/// A module has become current.
pub fn loaded(module: &Module) {
    if !traces_loaded() {
        return;
    }
    let all = ON_LOAD.lock();
    for (which, (how, exported)) in all.iter() {
        for at in &module.functions {
            // SAFETY: the word of an atom.
            let function = unsafe { Term::from_raw(at.name) };
            let called = |e: &(Term, u32, u32)| e.0 == function && e.1 == at.arity;
            if !*exported || module.exports.iter().any(called) {
                let mfa = (module.name, function, at.arity);
                set(which.as_ref(), module, mfa, at.entry, how);
            }
        }
    }
}

/// Where calls of a function arrive: its code, or the stub of the export of a native.
fn arrival(module: &Module, mfa: (Term, Term, u32), entry: u32) -> (usize, bool) {
    match code::existing_export(mfa.0, mfa.1, mfa.2) {
        Some(e) if e.bif.load(Ordering::Relaxed) != 0 => (e.stub.as_ptr() as usize, true),
        _ => (module.at(entry) as usize, false),
    }
}

fn set(
    which: Which,
    module: &Module,
    mfa: (Term, Term, u32),
    entry: u32,
    how: &dyn Fn(&mut Wanted),
) {
    if code::native(mfa.0, mfa.1, mfa.2).is_some() {
        // Whoever refers to it later finds the breakpoint.
        code::export(mfa.0, mfa.1, mfa.2);
    }
    let (entry, native) = arrival(module, mfa, entry);
    let key = (mfa.0.atom_index(), mfa.1.atom_index(), mfa.2);
    let mut t = table().write();
    let known = t.by_name.get(&key).filter(|b| b.entry == entry).cloned();
    let b = known.unwrap_or_else(|| {
        Arc::new(Breakpoint {
            mfa,
            entry,
            native,
            wanted: Mutex::default(),
        })
    });
    let mut w = b.wanted.lock();
    let before = w.nothing();
    w.change(which, how);
    if before && w.nothing() {
        return;
    }
    if before {
        // Before anybody finds it: frames of trace are looked for from now on.
        COUNT.fetch_add(1, Ordering::Release);
    }
    // To the function's own code, where the breakpoint is.
    let own = (!w.nothing()).then_some(entry as *const u64);
    code::lead_to(mfa.0, mfa.1, mfa.2, own);
    let export = code::existing_export(mfa.0, mfa.1, mfa.2);
    let exported = export.filter(|e| {
        let to = e.address() as usize;
        to == entry || to == gate(e) as usize
    });
    t.at.insert(entry, b.clone());
    if let Some(e) = exported {
        let at = gate(e);
        t.at.insert(at as usize, b.clone());
        let to = if w.global() && !native {
            at as usize
        } else {
            entry
        };
        e.lead(to as *const u64);
    }
    let stops = w.local() || native && w.global();
    if native && stops {
        breakpoint::natives_are_traced();
    }
    let at = entry as *const u64;
    // SAFETY: the entry of a function of a module that is loaded, or the stub of an export.
    unsafe {
        match stops {
            true => entries().set_breakpoint(at),
            false => entries().clear_breakpoint(at),
        }
    }
    drop(w);
    t.by_name.insert(key, b);
}

/// The result of `look` on the wishes for the calls of a function; None if there is no such function.
fn look<T: Default>(m: Term, f: Term, arity: u32, look: impl FnOnce(&All) -> T) -> Option<T> {
    let module = code::with_versions(m, |v| v.current.clone())?;
    let at = module
        .functions
        .iter()
        .find(|x| x.name == f.raw() && x.arity == arity)?;
    let (entry, _) = arrival(&module, (m, f, arity), at.entry);
    let t = table().read();
    let key = (m.atom_index(), f.atom_index(), arity);
    Some(match t.by_name.get(&key).filter(|b| b.entry == entry) {
        Some(b) => look(&b.wanted.lock()),
        None => T::default(),
    })
}

/// The wishes for the calls of a function; None if there is no such function.
pub(crate) fn wanted(which: Which, m: Term, f: Term, arity: u32) -> Option<Wanted> {
    look(m, f, arity, |all| match which {
        None => all.plain.clone(),
        Some(s) => {
            let found = all.sessions.iter().find(|(t, _)| Arc::ptr_eq(t, s));
            found.map(|(_, w)| w.clone()).unwrap_or_default()
        }
    })
}

/// The numbers of those who want anything of the calls of a function (see [`number_of`]); None if there is no such function.
pub(crate) fn who_wants(m: Term, f: Term, arity: u32) -> Option<Vec<i64>> {
    look(m, f, arity, |all| {
        let sessions = all
            .sessions
            .iter()
            .filter(|(s, w)| !s.is_over() && !w.nothing());
        let mut numbers: Vec<i64> = sessions.map(|(s, _)| number_of(Some(s))).collect();
        let mut plain = all.plain.clone();
        (plain.debug, plain.watched) = (false, false);
        if !plain.nothing() {
            numbers.push(number_of(None));
        }
        numbers
    })
}

/// Whether anything is wanted of the functions that are loaded from now on.
pub(crate) fn wants_loaded(which: Which) -> bool {
    let all = ON_LOAD.lock();
    let number = number_of(which);
    all.iter().any(|(w, _)| number_of(w.as_ref()) == number)
}

/// The wishes for the calls of functions that are loaded from now on.
pub(crate) fn wanted_of_loaded(which: Which) -> Wanted {
    let all = ON_LOAD.lock();
    let number = number_of(which);
    let mut w = Wanted::default();
    for (_, (how, _)) in all.iter().filter(|(w, _)| number_of(w.as_ref()) == number) {
        how(&mut w);
    }
    w
}

/// A session is over: nothing is wanted any more.
pub(crate) fn end(session: &Arc<Session>) {
    on_load(Some(session), None);
    let of_session: Vec<(Term, Term, u32)> = {
        let t = table().read();
        let wants = |b: &&Arc<Breakpoint>| {
            let w = b.wanted.lock();
            w.sessions.iter().any(|(s, _)| Arc::ptr_eq(s, session))
        };
        t.by_name.values().filter(wants).map(|b| b.mfa).collect()
    };
    for (m, f, n) in of_session {
        change(Some(session), m, f, Some(n), false, &|w| {
            *w = Wanted::default()
        });
    }
}

/// The requests that a body has made while it ran.
pub(super) struct Effects {
    returns: i64,
    /// Where the call returns to.
    caller: *const u64,
    /// For whom it runs.
    which: Option<Arc<Session>>,
}

impl Effects {
    /// Where there is no call whose return could be told.
    pub(super) fn of_no_call(which: Which) -> Effects {
        Effects {
            returns: 0,
            caller: std::ptr::null(),
            which: which.cloned(),
        }
    }
}

/// A flag by its name.
fn flag_named(t: Term) -> Option<u32> {
    let name = t.is_atom().then(|| atom::name(t))?;
    let (_, f) = flag::NAMES.iter().find(|n| n.0 == name)?;
    Some(*f)
}

/// Flags and tracer from the list of a `trace` form; `choice`: whether it may name a tracer.
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

/// Takes flags from a process that the caller owns and gives it others, with that tracer; whether this changes anything.
pub(super) fn retrace(
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
    // Another tracer would be asked for leave.
    let gone = match before == tracer {
        true => flags & !now,
        false => u32::MAX,
    };
    super::change(p, which, false, gone, Tracer::Nobody);
    if now == 0 {
        return flags != 0 || !before.is_nobody();
    }
    super::change(p, which, true, now, tracer.clone());
    now != flags || before != tracer
}

impl Effects {
    /// The tracer of the session for which it runs, if it has one for all.
    fn own(&self) -> Option<Tracer> {
        self.which.as_ref().and_then(|s| s.tracer())
    }
    /// Flags of the process in the context, and the tracer that it has or gets.
    fn tracer(&self, cx: &mut Cx) -> (u32, Tracer) {
        let (flags, tracer) = state(cx.process(), self.which.as_ref());
        (flags, self.own().unwrap_or(tracer))
    }
    /// The pid that the argument of a form names; None: of the process in the context.
    fn whom(&self, cx: &mut Cx, whom: Option<Term>) -> Option<Term> {
        match whom {
            None => Some(cx.self_pid()),
            Some(t) if t.is_atom() => process::registry::whereis(t),
            Some(t) => Some(t),
        }
    }
    /// Does it to the process in the context, or to another that is there.
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
                // SAFETY: an address is looked up, not followed.
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
                    // In earlier releases also of one that nobody traces yet.
                    if flags != 0 || !release::has(SILENT_IF_TRACED) {
                        super::change(p, which, on, flag::SILENT, tracer);
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
                let text =
                    purlin_term::print::format_term(t, purlin_term::print::Style::Display, 100_000);
                purlin_term::say::error(format_args!("{text}\r\n"));
                Some(am::TRUE)
            }
            _ => None,
        }
    }
}

/// Whether arguments match, with the message that the body leaves.
pub(super) fn matches(cx: &mut Cx, spec: &Spec, args: &[Term], fx: &mut Effects) -> Option<Term> {
    let Some(p) = &spec.program else {
        return Some(am::TRUE);
    };
    let tuple = cx.tuple(args);
    let list = cx.list(args);
    run::Runner::run(&mut Runner::new(p), cx, p, Subject::Call(tuple, list), fx)
}

/// The quantities that are measured of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Measure {
    /// Nanoseconds.
    Time,
    /// Words that the process makes on its heap.
    Memory,
}

/// The measured quantity and the number of the session, as one number of a frame.
fn measure_number(what: Measure, whom: i64) -> i64 {
    whom * 2 + what as i64
}

/// The same from the number.
fn measure_of(number: i64) -> (Measure, i64) {
    match number.rem_euclid(2) {
        0 => (Measure::Time, number.div_euclid(2)),
        _ => (Measure::Memory, number.div_euclid(2)),
    }
}

/// Nothing is measured any more for whoever traces.
pub(super) fn stop_measuring(all: &mut Vec<Timed>, which: Which) {
    let whom = number_of(which);
    all.retain(|t| measure_of(t.number).1 != whom);
}

/// Words of the heap in the context that are used.
fn used_words(cx: &Cx) -> i64 {
    let h = &cx.heap;
    let old = h.old_words() - h.old_free_words();
    (h.used_words() + h.frag_words + old) as i64
}

/// The present reading of a measure: never 0, which stands for a pause.
fn reading(cx: &mut Cx, what: Measure) -> i64 {
    match what {
        Measure::Time => clock::elapsed().max(1),
        Measure::Memory => used_words(cx) + cx.process().ext().map_or(0, |e| e.words_made) + 1,
    }
}

/// A collection has left `after` of `before` words.
pub(crate) fn collected(p: &mut process::Process, before: i64, after: i64) {
    if let Some(e) = p.ext().filter(|e| !e.call_time.is_empty()) {
        // Words made before stay counted.
        e.words_made += before - after;
    }
}

/// From now on what the function at entry `to` does is measured (0: of none), in the process in the context; what was up to
/// now is that of the one before, whose entry is returned. `number`: what, and for whom.
fn switch(cx: &mut Cx, number: i64, to: usize) -> usize {
    let now = reading(cx, measure_of(number).0);
    let p = cx.process();
    let pid = p.pid();
    let all = &mut p.ext_mut().call_time;
    let before = all.iter().position(|t| t.number == number);
    let before = before.map(|at| all.swap_remove(at));
    if to != 0 {
        all.push(Timed {
            number,
            entry: to,
            since: now,
        });
    }
    let Some(before) = before else { return 0 };
    if before.since != 0 {
        account(before, pid, now);
    }
    before.entry
}

/// The time up to `now` belongs to the function that was measured.
fn account(of: Timed, pid: Term, now: i64) {
    let (what, whom) = measure_of(of.number);
    let t = table().read();
    if let Some(b) = t.at.get(&of.entry) {
        let mut w = b.wanted.lock();
        let part = w.each_mut().find(|(s, _)| number_of(*s) == whom);
        let rows = part.and_then(|(_, w)| match what {
            Measure::Time => w.time.as_mut(),
            Measure::Memory => w.memory.as_mut(),
        });
        if let Some((all, true)) = rows {
            all.entry(pid.raw()).or_default().1 += (now - of.since).max(0) as u64;
        }
    }
}

/// A process that the caller owns stops to run (`true`), or runs on: time that it waits isn't measured.
pub fn pause(p: &mut process::Process, stops: bool) {
    let pid = p.pid();
    let Some(e) = p.ext().filter(|e| !e.call_time.is_empty()) else {
        return;
    };
    let now = clock::elapsed().max(1);
    let timed = |t: &&mut Timed| measure_of(t.number).0 == Measure::Time;
    for t in e.call_time.iter_mut().filter(timed) {
        if stops && t.since != 0 {
            account(*t, pid, now);
        }
        t.since = if stops { 0 } else { now };
    }
}

/// See [`Passed`]. The call's arguments stand in the X registers; `caller`: where it returns to, trace frames aside.
#[cold]
pub(crate) fn pass(cx: &mut Cx, pc: *const u64, caller: *const u64) -> Option<Passed> {
    let b = {
        let t = table().read();
        t.at.get(&(pc as usize)).cloned()?
    };
    let mut passed = Passed {
        entry: b.entry as *const u64,
        mfa: b.mfa,
        return_to: SmallVec::new(),
        returns: SmallVec::new(),
        debug: false,
        time: SmallVec::new(),
    };
    let me = cx.self_pid();
    let sensitive = cx.process().has(process::SENSITIVE);
    let candidate = !sensitive && cx.process().has(TRACED);
    // By way of the export: then what is wanted of all calls is told here too.
    let outside = pc as usize != b.entry;
    let only_local = !outside && !b.native;
    let mut told: SmallVec<[Told; 2]> = SmallVec::new();
    let watched;
    {
        let mut w = b.wanted.lock();
        passed.debug = w.plain.debug;
        watched = w.plain.watched && !sensitive;
        for (which, w) in w.each_mut() {
            let traced = candidate && state_of_local(cx.process(), which) & flag::CALL != 0;
            if let Some((n, true)) = &mut w.count {
                *n += 1;
            }
            if let (true, Some((all, true))) = (traced, &mut w.time) {
                all.entry(me.raw()).or_default().0 += 1;
                let number = measure_number(Measure::Time, number_of(which));
                passed.time.push((0, number));
            }
            if let (true, Some((all, true))) = (traced, &mut w.memory) {
                all.entry(me.raw()).or_default().0 += 1;
                let number = measure_number(Measure::Memory, number_of(which));
                passed.time.push((0, number));
            }
            if let Some((tracer, _)) = &mut w.meta
                && !sensitive
                && let Tracer::Local(to) = *tracer
                && !super::lives(to)
            {
                *tracer = Tracer::Nobody;
            }
            let call = w.call.clone().filter(|c| traced && (c.1 || !only_local));
            let meta = w
                .meta
                .clone()
                .filter(|m| !sensitive && !m.0.is_nobody() && !m.0.is(me));
            if call.is_some() || meta.is_some() {
                told.push((which.cloned(), call, meta));
            }
        }
    }
    if watched {
        super::watch::seen(cx, b.mfa, caller);
    }
    for (before, number) in &mut passed.time {
        *before = switch(cx, *number, b.entry);
    }
    if told.is_empty() {
        return Some(passed);
    }
    let n = b.mfa.2 as usize;
    let args: SmallVec<[Term; 8]> = (0..n).map(|i| super::argument(cx, cx.x[i])).collect();
    for (which, call, meta) in told {
        if let Some((spec, local)) = call {
            pass_traced(cx, which.as_ref(), &mut passed, &spec, local, &args, caller);
        }
        if let Some((tracer, spec)) = meta {
            if let Tracer::Module(m) = &tracer {
                match module::wants_call(m, call_tag(), me, true) {
                    module::Answer::Trace => {}
                    module::Answer::Discard => continue,
                    module::Answer::Remove => {
                        forget_meta(&b, which.as_ref(), &tracer);
                        continue;
                    }
                }
            }
            let mut fx = Effects {
                returns: 0,
                caller,
                which: which.clone(),
            };
            if let Some(m) = matches(cx, &spec, &args, &mut fx) {
                if m != am::FALSE {
                    tell_call(cx, &tracer, flag::TIMESTAMP, b.mfa, &args, m);
                }
                if fx.returns != 0 {
                    passed.returns.push((fx.returns, Whom::Tracer(tracer)));
                }
            }
        }
    }
    Some(passed)
}

/// Those that are told of a call: the session, the wish for calls of traced processes, and the tracer of calls of all.
type Told = (
    Option<Arc<Session>>,
    Option<(Arc<Spec>, bool)>,
    Option<(Tracer, Arc<Spec>)>,
);

/// The word of a frame that says who is told.
fn word_of(which: Which) -> Term {
    which.map_or(NIL, |s| Term::small(s.number.into()))
}

/// A call of a function that is traced for it, by a process that is.
fn pass_traced(
    cx: &mut Cx,
    which: Which,
    passed: &mut Passed,
    spec: &Spec,
    local: bool,
    args: &[Term],
    caller: *const u64,
) {
    let mut fx = Effects {
        returns: 0,
        caller,
        which: which.cloned(),
    };
    // The body may change both.
    let (_, tracer) = state(cx.process(), which);
    if let Tracer::Module(m) = &tracer {
        let me = cx.self_pid();
        match module::wants_call(m, call_tag(), me, false) {
            module::Answer::Trace => {}
            module::Answer::Discard => return,
            module::Answer::Remove => return super::drop_tracer(cx.process(), which),
        }
    }
    let Some(m) = matches(cx, spec, args, &mut fx) else {
        return;
    };
    let (flags, _) = state(cx.process(), which);
    if flags & flag::SILENT != 0 {
        return;
    }
    if fx.returns != 0 {
        passed.returns.push((fx.returns, Whom::Own(word_of(which))));
    }
    if m != am::FALSE {
        if local && flags & flag::RETURN_TO != 0 {
            passed.return_to.push(word_of(which));
        }
        tell_call(cx, &tracer, flags, passed.mfa, args, m);
    }
}

/// Tells of a call that a tracer module has been asked about.
fn tell_call(
    cx: &mut Cx,
    tracer: &Tracer,
    flags: u32,
    (m, f, n): (Term, Term, u32),
    args: &[Term],
    message: Term,
) {
    let me = cx.self_pid();
    if tracer.is(me) {
        return;
    }
    let make = |a: &mut dyn Alloc, args: &[Term]| {
        let last = match flags & flag::ARITY != 0 {
            true => Term::small(n.into()),
            false => a.list(args),
        };
        a.tuple(&[m, f, last])
    };
    if let Tracer::Local(to) = tracer {
        super::tell(*to, |a| {
            let args: SmallVec<[Term; 8]> = match flags & flag::ARITY != 0 {
                true => SmallVec::new(),
                false => args.iter().map(|&t| copy::copy(t, a)).collect(),
            };
            let mfa = make(a, &args);
            let mut v = vec![am::TRACE, me, call_tag(), mfa];
            if message != am::TRUE {
                v.push(copy::copy(message, a));
            }
            super::stamp(a, flags, &mut v);
            a.tuple(&v)
        });
        return;
    }
    // It refers to what the registers hold: nothing moves before the tracer has it.
    let mut frag = Fragment::new();
    let mfa = make(&mut frag, args);
    emit_unasked(tracer, flags, me, flag::CALL, &[call_tag(), mfa], message);
    drop(OwnedTerm::from_parts(mfa, frag));
}

/// Flags of a process that the caller owns. Where its tracer is a process or port that has gone it is not traced any more; a module
/// is asked later, where no lock is held.
fn state_of_local(p: &mut process::Process, which: Which) -> u32 {
    match state(p, which) {
        (flags, Tracer::Module(_)) => flags,
        _ => super::live_state(p, which).0,
    }
}

/// A tracer of all calls doesn't want to be told any more.
fn forget_meta(b: &Breakpoint, which: Which, tracer: &Tracer) {
    let mut w = b.wanted.lock();
    let number = number_of(which);
    let mut all = w.each_mut();
    let found = all.find(|(s, _)| number_of(*s) == number);
    if let Some((_, w)) = found
        && let Some((t, _)) = &mut w.meta
        && t == tracer
    {
        *t = Tracer::Nobody;
    }
}

/// Flags and tracer by the word of a frame; None: the word is a tracer itself.
fn traced_by(cx: &mut Cx, word: Term) -> Option<(u32, Tracer)> {
    if word == NIL {
        return Some(state(cx.process(), None));
    }
    let number = word.as_small()?;
    let all = cx.process().ext().map(|e| e.sessions.clone());
    let mut all = all.unwrap_or_default().into_iter();
    let found = all.find(|t| i64::from(t.session.number) == number && !t.session.is_over());
    Some(found.map_or((0, Tracer::Nobody), |t| (t.flags, t.tracer)))
}

/// A call whose frame is `frame` (its words behind the address) returns `value`, or ends by an exception of that class.
#[cold]
pub(crate) fn returned(cx: &mut Cx, frame: [Term; 5], class: Option<Term>, value: Term) {
    let [m, f, arity, kind, tracer] = frame;
    let kind = kind.as_small().unwrap_or(0);
    if class.is_some() && kind != kind::EXCEPTION || cx.process().has(process::SENSITIVE) {
        return;
    }
    let mut frag = Fragment::new();
    let mfa = frag.tuple(&[m, f, arity]);
    let items = match class {
        None => [return_from(), mfa, value],
        Some(c) => {
            let v = copy::copy(value, &mut frag);
            [exception_from(), mfa, frag.tuple(&[c, v])]
        }
    };
    let me = cx.self_pid();
    const META: u32 = flag::CALL | flag::TIMESTAMP;
    match traced_by(cx, tracer) {
        Some((flags, tracer)) if flags & flag::CALL != 0 => {
            emit_unasked(&tracer, flags, me, flag::CALL, &items, am::TRUE);
        }
        Some(_) => {}
        None => match tracer.as_tuple() {
            Some(&[name, state]) => {
                super::emit_to_module((name, state), META, me, flag::CALL, &items, am::TRUE);
            }
            _ => {
                emit_unasked(
                    &Tracer::Local(tracer),
                    META,
                    me,
                    flag::CALL,
                    &items,
                    am::TRUE,
                );
            }
        },
    }
    drop(OwnedTerm::from_parts(mfa, frag));
}

/// A call that was measured has ended; `frame`: the words behind the address.
#[cold]
pub(crate) fn measured(cx: &mut Cx, [before, number]: [Term; 2]) {
    let before = before.as_small().unwrap_or(0) as usize * 8;
    switch(cx, number.as_small().unwrap_or(0), before);
}

/// The process goes on at `pc` after a call whose end is to be told; `whom`: the last word of the frame.
#[cold]
pub(crate) fn returned_to(cx: &mut Cx, whom: Term, pc: *const u64) {
    let Some((flags, tracer)) = traced_by(cx, whom) else {
        return;
    };
    if flags & flag::RETURN_TO == 0 || cx.process().has(process::SENSITIVE) {
        return;
    }
    let mut frag = Fragment::new();
    let place = match code::find(pc.wrapping_sub(1)) {
        Some(p) => frag.tuple(&[p.module, p.function, Term::small(p.arity.into())]),
        None => am::UNDEFINED,
    };
    let me = cx.self_pid();
    emit_unasked(
        &tracer,
        flags,
        me,
        flag::CALL,
        &[return_to(), place],
        am::TRUE,
    );
    drop(OwnedTerm::from_parts(place, frag));
}
