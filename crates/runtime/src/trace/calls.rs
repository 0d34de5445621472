//! Tracing of calls: breakpoints in functions.
//!
//! A breakpoint takes the place of the number of the instruction at a function's entry (its operands stay), or, for
//! calls from other modules only, stands in a word of its own that the export leads to. What stood there is kept here.
//! Breakpoints are set and cleared while other threads run the code: the number is one aligned 16-bit store, and
//! whoever comes by a breakpoint that has just been cleared finds what it stood for all the same, since entries stay.
//!
//! A call whose return is to be told gets a frame between its own and its caller's: the code that is returned to tells
//! it and returns in turn. Layout: address of that code, module, function, arity, kind (1: returns, 2: exceptions too).

use super::{emit, flag, state, timestamp};
use crate::code::{self, Module};
use crate::cx::Cx;
use crate::ets::matchspec::{Action, Dialect, Host, Runner, Subject, compile, run};
use crate::process::{self, TRACED};
use crate::{clock, lazy_atoms, signal};
use purlin_isa::ops::Op;
use purlin_term::frag::OwnedTerm;
use purlin_term::fun::Export;
use purlin_term::{Alloc, NIL, Term, am, copy};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

lazy_atoms! {
    call = "call";
    return_from = "return_from";
    exception_from = "exception_from";
    trace_ts = "trace_ts";
}

/// Words of the frame of a call whose return is told.
pub const FRAME_WORDS: usize = 5;

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

/// What is wanted of the calls of a function.
#[derive(Default, Clone)]
pub struct Wanted {
    /// Calls by processes that are traced for calls: from within the module too (`true`) or not.
    pub call: Option<(Arc<Spec>, bool)>,
    /// Calls by any process, told to that tracer.
    pub meta: Option<(Term, Arc<Spec>)>,
    /// Calls counted so far; false: counting pauses.
    pub count: Option<(u64, bool)>,
    /// Calls and nanoseconds of each process; false: paused.
    pub time: Option<(HashMap<u64, (u64, u64)>, bool)>,
}

impl Wanted {
    fn nothing(&self) -> bool {
        self.call.is_none() && self.meta.is_none() && self.count.is_none() && self.time.is_none()
    }
    fn local(&self) -> bool {
        self.meta.is_some()
            || self.count.is_some()
            || self.time.is_some()
            || self.call.as_ref().is_some_and(|c| c.1)
    }
}

struct Breakpoint {
    mfa: (Term, Term, u32),
    /// Number of the instruction that stood at the entry.
    original: u16,
    /// The entry of the function.
    entry: usize,
    wanted: Mutex<Wanted>,
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

/// Breakpoints that were made, so that unloading code without any costs nothing.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The code at these addresses is about to go.
pub fn forget(code: std::ops::Range<usize>) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut t = table().write().unwrap_or_else(|e| e.into_inner());
    t.at.retain(|_, b| !code.contains(&b.entry));
    t.by_name.retain(|_, b| !code.contains(&b.entry));
}

fn number() -> u16 {
    Op::Breakpoint.variant(&[]).unwrap_or(0)
}

unsafe fn patch(entry: usize, to: u16) {
    // The code of a module lies in memory of its own that the module owns.
    (*(entry as *const AtomicU16)).store(to, Ordering::Release);
}

/// The word with a breakpoint that an export leads to while calls from other modules are traced.
fn gate(e: &Export) -> &'static [u64; 1] {
    static GATES: Mutex<Option<HashMap<usize, &'static [u64; 1]>>> = Mutex::new(None);
    let mut g = GATES.lock().unwrap_or_else(|e| e.into_inner());
    let key = e as *const Export as usize;
    g.get_or_insert_default()
        .entry(key)
        .or_insert_with(|| Box::leak(Box::new([u64::from(number())])))
}

/// Changes what is wanted of the functions that match; how many there are. `m`, `f`: atoms, `_` for all; `arity`: None
/// for all.
///
/// With `exported`, only functions that other modules can call.
pub fn change(
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
        let Some(module) = code::with_versions(name, |v| v.current.clone()) else {
            continue;
        };
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
            set(&module, (name, function, at.arity), at.entry, how);
        }
    }
    n
}

/// What is done to the functions of modules that are loaded from now on, and whether only to those that other modules
/// can call.
type OnLoad = (Box<dyn Fn(&mut Wanted) + Send>, bool);

static ON_LOAD: Mutex<Vec<OnLoad>> = Mutex::new(Vec::new());
static ANY_ON_LOAD: AtomicUsize = AtomicUsize::new(0);

/// Has `how` done to the functions of modules that are loaded from now on; None: nothing any more.
pub fn on_load(how: Option<OnLoad>) {
    let mut all = ON_LOAD.lock().unwrap_or_else(|e| e.into_inner());
    match how {
        Some(h) => all.push(h),
        None => all.clear(),
    }
    ANY_ON_LOAD.store(all.len(), Ordering::Release);
}

/// Whether anything is done to modules that are loaded.
pub fn traces_loaded() -> bool {
    ANY_ON_LOAD.load(Ordering::Acquire) != 0
}

/// A module has become current.
pub fn loaded(module: &Module) {
    if !traces_loaded() {
        return;
    }
    let all = ON_LOAD.lock().unwrap_or_else(|e| e.into_inner());
    for (how, exported) in all.iter() {
        for at in &module.functions {
            // SAFETY: the word of an atom.
            let function = unsafe { Term::from_raw(at.name) };
            let called = |e: &(Term, u32, u32)| e.0 == function && e.1 == at.arity;
            if !*exported || module.exports.iter().any(called) {
                set(module, (module.name, function, at.arity), at.entry, how);
            }
        }
    }
}

fn set(module: &Module, mfa: (Term, Term, u32), entry: u32, how: &dyn Fn(&mut Wanted)) {
    let entry = module.at(entry) as usize;
    let key = (mfa.0.atom_index(), mfa.1.atom_index(), mfa.2);
    let mut t = table().write().unwrap_or_else(|e| e.into_inner());
    let known = t.by_name.get(&key).filter(|b| b.entry == entry).cloned();
    let b = known.unwrap_or_else(|| {
        // SAFETY: the entry of a function of a module that is loaded.
        let original = unsafe { (*(entry as *const AtomicU16)).load(Ordering::Acquire) };
        Arc::new(Breakpoint {
            mfa,
            original,
            entry,
            wanted: Mutex::default(),
        })
    });
    let mut w = b.wanted.lock().unwrap_or_else(|e| e.into_inner());
    let before = w.nothing();
    how(&mut w);
    if before && w.nothing() {
        return;
    }
    let export = code::existing_export(mfa.0, mfa.1, mfa.2);
    let exported = export.filter(|e| {
        let to = e.address.load(Ordering::Acquire) as usize;
        to == entry || to == gate(e).as_ptr() as usize
    });
    t.at.insert(entry, b.clone());
    if let Some(e) = exported {
        let at = gate(e).as_ptr();
        t.at.insert(at as usize, b.clone());
        let outside = w.call.as_ref().is_some_and(|c| !c.1) && !w.local();
        let to = if outside { at as usize } else { entry };
        e.address.store(to as *mut u64, Ordering::Release);
    }
    // SAFETY: as above.
    unsafe { patch(entry, if w.local() { number() } else { b.original }) };
    if before {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    drop(w);
    t.by_name.insert(key, b);
}

/// What is wanted of the calls of a function; None if there is no such function.
pub fn wanted(m: Term, f: Term, arity: u32) -> Option<Wanted> {
    let module = code::with_versions(m, |v| v.current.clone())?;
    let at = module
        .functions
        .iter()
        .find(|x| x.name == f.raw() && x.arity == arity)?;
    let entry = module.at(at.entry) as usize;
    let t = table().read().unwrap_or_else(|e| e.into_inner());
    let key = (m.atom_index(), f.atom_index(), arity);
    Some(match t.by_name.get(&key).filter(|b| b.entry == entry) {
        Some(b) => b.wanted.lock().unwrap_or_else(|e| e.into_inner()).clone(),
        None => Wanted::default(),
    })
}

/// What a body asks for while it runs.
struct Effects {
    returns: u8,
    caller: Option<(Term, Term, u32)>,
}

impl Host for Effects {
    fn action(&mut self, cx: &mut Cx, action: Action, args: &[Term]) -> Option<Term> {
        match action {
            Action::ReturnTrace => {
                self.returns = self.returns.max(1);
                Some(am::TRUE)
            }
            Action::ExceptionTrace => {
                self.returns = 2;
                Some(am::TRUE)
            }
            Action::Caller => Some(match self.caller {
                Some((m, f, a)) => cx.tuple(&[m, f, Term::small(a.into())]),
                None => am::UNDEFINED,
            }),
            Action::Silent => {
                if let Some(on) = args.first().and_then(|t| t.as_bool()) {
                    let p = cx.process();
                    let (_, tracer) = state(p);
                    super::change(p, on, flag::SILENT, tracer);
                }
                Some(am::TRUE)
            }
            Action::GetTcw => {
                let w = crate::bif::system_flag::TRACE_CONTROL_WORD.load(Ordering::Relaxed);
                Some(Term::small(w.into()))
            }
            Action::SetTcw => {
                let n = args
                    .first()?
                    .as_small()
                    .and_then(|n| u32::try_from(n).ok())?;
                let w = &crate::bif::system_flag::TRACE_CONTROL_WORD;
                Some(Term::small(w.swap(n, Ordering::Relaxed).into()))
            }
            Action::Display => {
                let t = *args.first()?;
                let text =
                    purlin_term::print::format_term(t, purlin_term::print::Style::Display, 100_000);
                eprint!("{text}\r\n");
                Some(am::TRUE)
            }
            _ => None,
        }
    }
}

/// Whether a call matches, with the message that the body leaves.
fn matches(cx: &mut Cx, spec: &Spec, args: &[Term], fx: &mut Effects) -> Option<Term> {
    let Some(p) = &spec.program else {
        return Some(am::TRUE);
    };
    let tuple = cx.tuple(args);
    let list = cx.list(args);
    run::Runner::run(&mut Runner::new(p), cx, p, Subject::Call(tuple, list), fx)
}

/// A call comes by the breakpoint at `pc`, its arguments in the X registers. The result is the number of the
/// instruction to run in its place and where, and whether the return is to be told (see [`FRAME_WORDS`]).
pub struct Passed {
    pub original: u16,
    pub entry: *const u64,
    pub returns: u8,
    pub mfa: (Term, Term, u32),
    /// The time of the call is measured: the entry of the function whose time was, or 0.
    pub time: Option<usize>,
}

/// Kind of a frame in [`returned`]: not a return to be told, but the end of a function whose time is measured.
pub const TIMED: i64 = 3;

/// From now on the time of the function at entry `to` is measured (0: of none), in a process that the caller owns; what
/// has passed is that of the one before, whose entry is returned.
fn switch(p: &mut process::Process, to: usize) -> usize {
    let now = clock::elapsed().max(1);
    let pid = p.pid();
    let e = p.ext_mut();
    let before = e.call_time.take();
    e.call_time = (to != 0).then_some((to, now));
    let Some((entry, since)) = before else {
        return 0;
    };
    if since != 0 {
        account(entry, pid, now - since);
    }
    entry
}

fn account(entry: usize, pid: Term, ns: i64) {
    let t = table().read().unwrap_or_else(|e| e.into_inner());
    if let Some(b) = t.at.get(&entry) {
        let mut w = b.wanted.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((all, true)) = &mut w.time {
            all.entry(pid.raw()).or_default().1 += ns.max(0) as u64;
        }
    }
}

/// A process that the caller owns stops to run (`true`), or runs on: time that it waits isn't measured.
pub fn pause(p: &mut process::Process, stops: bool) {
    let pid = p.pid();
    let Some(Some((entry, since))) = p.ext().map(|e| e.call_time) else {
        return;
    };
    let now = clock::elapsed().max(1);
    if stops && since != 0 {
        account(entry, pid, now - since);
    }
    if let Some(e) = p.ext() {
        e.call_time = Some((entry, if stops { 0 } else { now }));
    }
}

/// See [`Passed`]. `caller`: where the call returns to.
#[cold]
pub fn pass(cx: &mut Cx, pc: *const u64, caller: *const u64) -> Option<Passed> {
    let b = {
        let t = table().read().unwrap_or_else(|e| e.into_inner());
        t.at.get(&(pc as usize)).cloned()?
    };
    let mut passed = Passed {
        original: b.original,
        entry: b.entry as *const u64,
        returns: 0,
        mfa: b.mfa,
        time: None,
    };
    let me = cx.self_pid();
    let traced = cx.process().has(TRACED) && state(cx.process()).0 & flag::CALL != 0;
    let mut timed = false;
    let (call_spec, meta) = {
        let mut w = b.wanted.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((n, true)) = &mut w.count {
            *n += 1;
        }
        if let (true, Some((all, true))) = (traced, &mut w.time) {
            all.entry(me.raw()).or_default().0 += 1;
            timed = true;
        }
        (w.call.clone(), w.meta.clone())
    };
    if timed {
        passed.time = Some(switch(cx.process(), b.entry));
    }
    if cx.process().has(process::SENSITIVE) || (meta.is_none() && call_spec.is_none()) {
        return Some(passed);
    }
    let n = b.mfa.2 as usize;
    let args: Vec<Term> = cx.x[..n].to_vec();
    let caller = code::find(caller.wrapping_sub(1)).map(|p| (p.module, p.function, p.arity));
    if let Some((tracer, spec)) = meta {
        let mut fx = Effects { returns: 0, caller };
        if let Some(m) = matches(cx, &spec, &args, &mut fx) {
            if m != am::FALSE {
                tell_call(cx, tracer, flag::TIMESTAMP, b.mfa, &args, m);
            }
        }
    }
    if !cx.process().has(TRACED) {
        return Some(passed);
    }
    let (flags, tracer) = state(cx.process());
    if flags & flag::CALL == 0 {
        return Some(passed);
    }
    if let Some((spec, _)) = call_spec {
        let mut fx = Effects { returns: 0, caller };
        if let Some(m) = matches(cx, &spec, &args, &mut fx) {
            let (flags, _) = state(cx.process());
            if flags & flag::SILENT == 0 && m != am::FALSE {
                tell_call(cx, tracer, flags, b.mfa, &args, m);
            }
            passed.returns = fx.returns;
        }
    }
    Some(passed)
}

fn tell_call(
    cx: &mut Cx,
    tracer: Term,
    flags: u32,
    (m, f, n): (Term, Term, u32),
    args: &[Term],
    message: Term,
) {
    let me = cx.self_pid();
    if tracer == me {
        return;
    }
    let sent = signal::send_with(tracer, |a| {
        let last = if flags & flag::ARITY != 0 {
            Term::small(n.into())
        } else {
            let v: Vec<Term> = args.iter().map(|&t| copy::copy(t, a)).collect();
            a.list(&v)
        };
        let mfa = a.tuple(&[m, f, last]);
        let mut v = vec![am::TRACE, me, call(), mfa];
        if message != am::TRUE {
            v.push(copy::copy(message, a));
        }
        if let Some(t) = timestamp(a, flags) {
            v[0] = trace_ts();
            v.push(t);
        }
        a.tuple(&v)
    });
    if !sent {
        super::change(cx.process(), false, u32::MAX, NIL);
    }
}

/// A call whose frame is `frame` (its words behind the address) returns `value`, or ends by an exception of that class.
#[cold]
pub fn returned(cx: &mut Cx, frame: [Term; 4], class: Option<Term>, value: Term) {
    let [m, f, arity, kind] = frame;
    if kind == Term::small(TIMED) {
        let before = m.as_small().unwrap_or(0) as usize * 8;
        switch(cx.process(), before);
        return;
    }
    let (flags, tracer) = state(cx.process());
    if flags & flag::CALL == 0 || flags & flag::SILENT != 0 || cx.process().has(process::SENSITIVE)
    {
        return;
    }
    if class.is_some() && kind != Term::small(2) {
        return;
    }
    let mut frag = purlin_term::frag::Fragment::new();
    let mfa = frag.tuple(&[m, f, arity]);
    let me = cx.self_pid();
    let sent = match class {
        None => emit(tracer, flags, me, &[return_from(), mfa, value]),
        Some(c) => {
            let v = copy::copy(value, &mut frag);
            let pair = frag.tuple(&[c, v]);
            emit(tracer, flags, me, &[exception_from(), mfa, pair])
        }
    };
    drop(OwnedTerm::from_parts(mfa, frag));
    if !sent {
        super::change(cx.process(), false, u32::MAX, NIL);
    }
}
