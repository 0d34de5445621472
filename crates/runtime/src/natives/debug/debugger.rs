//! Natives of `erl_debugger` (OTP 28): line breakpoints, and the stack and registers of suspended
//! processes. Without `+D` its functions report that they are not available.
//!
//! An inspected process answers between two time slices, when all its registers are known, and only
//! while it is suspended.

use crate::code::debugger::{self, Debug};
use crate::code::stack::place;
use crate::code::{self, Module, permission};
use crate::cx::{BifResult, Cx, Fail};
use crate::natives::process::ask::ask_with;
use crate::natives::terms::inspect::flat_words;
use crate::process::table;
use crate::signal;
use crate::{bifs, lazy_atoms};
use purlin_loader::lower::DebugLine;
use purlin_loader::{DebugCall, DebugFrame, DebugValue};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, copy, map};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

lazy_atoms! {
    abort = "abort";
    already_exists = "already_exists";
    breakpoint_frame = "<breakpoint>";
    calls = "calls";
    catch = "catch";
    debugger_event = "debugger_event";
    entry = "entry";
    frame_size = "frame_size";
    hibernate = "hibernate";
    line_breakpoint = "line_breakpoint";
    normal_end = "<terminate process normally>";
    running = "running";
    slots = "slots";
    too_large = "too_large";
    unknown_function = "unknown function";
    unsupported = "unsupported";
    vars = "vars";
    x_register = "x";
    y_register = "y";
}

/// The debugger and its session number, if one is attached.
static ATTACHED: Mutex<Option<(Term, u32)>> = Mutex::new(None);

/// The debugger, if it is alive.
fn attached() -> Option<(Term, u32)> {
    ATTACHED.lock().filter(|a| table().find(a.0).is_some())
}

fn need_debugger() -> Result<(), Fail> {
    match debugger::enabled() {
        true => Ok(()),
        false => Err(Fail::Undef),
    }
}
fn need_pid(t: Term) -> Result<Term, Fail> {
    match t.is_local_pid() {
        true => Ok(t),
        false => Err(Fail::Badarg),
    }
}
/// A small number that isn't negative.
fn need_number(t: Term) -> Result<usize, Fail> {
    let n = t.as_small().and_then(|n| usize::try_from(n).ok());
    n.ok_or(Fail::Badarg)
}
fn failed<const N: usize>(cx: &mut Cx, reason: [Term; N]) -> BifResult {
    let reason = cx.tuple(&reason);
    Ok(cx.tuple(&[am::ERROR, reason]))
}
fn number<A: Alloc + ?Sized>(n: u32, _: &A) -> Term {
    Term::small(i64::from(n))
}

fn supported_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(Term::bool(debugger::enabled()))
}
fn instrumentations_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    need_debugger()?;
    let on = Term::bool(debugger::line_breakpoints());
    Ok(cx.flatmap(&[line_breakpoint()], &[on]))
}
fn toggle_instrumentations_1(_: &mut Cx, [toggles]: [Term; 1]) -> BifResult {
    need_debugger()?;
    let (keys, _) = toggles.as_flatmap().ok_or(Fail::Badarg)?;
    match map::get(toggles, line_breakpoint()) {
        None if keys.is_empty() => {}
        Some(on) if keys.len() == 1 => {
            debugger::set_line_breakpoints(on.as_bool().ok_or(Fail::Badarg)?)
        }
        _ => return Err(Fail::Badarg),
    }
    Ok(am::OK)
}

// The debugger.

/// A session number that cannot be guessed from the previous one.
fn session_number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let last = LAST.fetch_add(1, Ordering::Relaxed);
    let seed = (u64::from(last) << 32) ^ crate::clock::elapsed() as u64;
    (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}
fn register_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    need_debugger()?;
    need_pid(pid)?;
    let mut now = ATTACHED.lock();
    if now.is_some_and(|a| table().find(a.0).is_some()) {
        return Ok(cx.tuple(&[am::ERROR, already_exists()]));
    }
    let session = session_number();
    *now = Some((pid, session));
    let session = number(session, cx);
    Ok(cx.tuple(&[am::OK, session]))
}
fn unregister_2(_: &mut Cx, [pid, session]: [Term; 2]) -> BifResult {
    need_debugger()?;
    need_pid(pid)?;
    let session = session.as_small().ok_or(Fail::Badarg)?;
    let mut now = ATTACHED.lock();
    if let Some((by, its)) = *now
        && by == pid
    {
        if i64::from(its) != session {
            return Err(Fail::Badarg);
        }
        *now = None;
    }
    Ok(am::OK)
}
fn whereis_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    need_debugger()?;
    Ok(attached().map_or(am::UNDEFINED, |a| a.0))
}

/// A process has reached a breakpoint: `erts_internal:breakpoint/4` asks whether it should wait.
fn notify_breakpoint_hit_3(cx: &mut Cx, [mfa, line, resume]: [Term; 3]) -> BifResult {
    need_debugger()?;
    let is_function =
        matches!(mfa.as_tuple(), Some(&[m, f, a]) if m.is_atom() && f.is_atom() && a.is_small());
    let goes_on = resume.as_fun().is_some_and(|f| f.arity == 0);
    if !is_function || !line.is_small() || !goes_on {
        return Err(Fail::Badarg);
    }
    let me = cx.self_pid();
    let Some((to, session)) = *ATTACHED.lock() else {
        return Ok(am::NOPROC);
    };
    if to == me {
        return Ok(abort());
    }
    let told = signal::send_with(to, |b| {
        let (mfa, resume) = (copy::copy(mfa, b), copy::copy(resume, b));
        let event = b.tuple(&[am::BREAKPOINT, me, mfa, line, resume]);
        let session = number(session, b);
        b.tuple(&[debugger_event(), session, event])
    });
    Ok(if told { am::OK } else { am::NOPROC })
}

// Breakpoints.

fn breakpoint_3(cx: &mut Cx, [module, line, on]: [Term; 3]) -> BifResult {
    need_debugger()?;
    let wanted = line.as_small().filter(|&l| l > 0);
    let (true, Some(wanted), Some(on)) = (module.is_atom(), wanted, on.as_bool()) else {
        return Err(Fail::Badarg);
    };
    permission::wanted(cx)?;
    let Some(m) = code::current(module) else {
        return failed(cx, [am::BADKEY, module]);
    };
    if !m.debug.can_break {
        return failed(cx, [unsupported(), module]);
    }
    let of_line = |l: &&DebugLine| m.line_of(l.item).is_some_and(|l| i64::from(l) == wanted);
    let mut any = false;
    for l in m.debug.lines.iter().filter(of_line) {
        m.set_breakpoint(l, on);
        any = true;
    }
    cx.bump(m.debug.lines.len() / 16);
    if any {
        return Ok(am::OK);
    }
    match u32::try_from(wanted).is_ok_and(|l| m.has_line(l)) {
        true => failed(cx, [unsupported(), line]),
        false => failed(cx, [am::BADKEY, line]),
    }
}
/// The lines of a function that can have breakpoints, and whether they have one.
fn lines_of(cx: &mut Cx, m: &Module, function: usize) -> Term {
    let mut found = cx.flatmap(&[], &[]);
    let all = &m.debug.lines;
    let from = all.partition_point(|l| (l.function as usize) < function);
    for l in all[from..]
        .iter()
        .take_while(|l| l.function as usize == function)
    {
        if let Some(line) = m.line_of(l.item) {
            let key = number(line, cx);
            found = map::put(cx, found, key, Term::bool(m.has_breakpoint(l)));
        }
    }
    cx.bump(1);
    found
}
fn breakpoints_1(cx: &mut Cx, [module]: [Term; 1]) -> BifResult {
    need_debugger()?;
    if !module.is_atom() {
        return Err(Fail::Badarg);
    }
    let Some(m) = code::current(module) else {
        return Ok(cx.tuple(&[am::ERROR, am::BADKEY]));
    };
    let mut all = cx.flatmap(&[], &[]);
    for (i, (f, arity)) in m.function_names().enumerate() {
        let lines = lines_of(cx, &m, i);
        let arity = number(arity, cx);
        let key = cx.tuple(&[f, arity]);
        all = map::put(cx, all, key, lines);
    }
    Ok(cx.tuple(&[am::OK, all]))
}
fn breakpoints_3(cx: &mut Cx, [module, f, arity]: [Term; 3]) -> BifResult {
    need_debugger()?;
    let (true, true, Some(wanted)) = (module.is_atom(), f.is_atom(), arity.as_small()) else {
        return Err(Fail::Badarg);
    };
    let Some(m) = code::current(module) else {
        return failed(cx, [am::BADKEY, module]);
    };
    let is_it = |x: (Term, u32)| x.0 == f && i64::from(x.1) == wanted;
    match m.function_names().position(is_it) {
        Some(i) => {
            let lines = lines_of(cx, &m, i);
            Ok(cx.tuple(&[am::OK, lines]))
        }
        None => {
            let key = cx.tuple(&[f, arity]);
            failed(cx, [am::BADKEY, key])
        }
    }
}

// Suspended processes.

/// A slot of a frame.
enum Slot {
    Value(Term),
    /// The address that handles an exception.
    Catch(u64),
}

/// A frame of a stack.
struct Frame {
    /// The next instruction to run in it.
    pc: u64,
    slots: Vec<Slot>,
}

/// The frames of the process in the context, innermost first: the current function, then its
/// callers.
fn frames(cx: &Cx) -> Vec<Frame> {
    let frame = |pc| Frame {
        pc,
        slots: Vec::new(),
    };
    let mut top = frame(cx.bif_pc as u64);
    let mut below = Vec::new();
    let mut p = cx.heap.stop;
    while p < cx.heap.hend {
        // SAFETY: words of the stack, between its top and the end of the block.
        let w = unsafe { *p };
        let last = below.last_mut().unwrap_or(&mut top);
        if w.is_catch() {
            last.slots.push(Slot::Catch(w.catch_addr() as u64));
        } else if !w.is_header() {
            last.slots.push(Slot::Value(w));
        } else if w.raw() != 0 {
            below.push(frame(w.raw()));
        }
        // SAFETY: below `hend`.
        p = unsafe { p.add(1) };
    }
    below.insert(0, top);
    below
}

/// The function of a frame. With `returns`, `pc` is a return address.
fn function_at(cx: &mut Cx, to: &mut Fragment, pc: u64, returns: bool) -> Term {
    let stubs = code::stubs();
    let is = |stub: &[u64]| pc == stub.as_ptr() as u64;
    let named = |to: &mut Fragment, m, f, arity: u32, line| {
        let arity = number(arity, to);
        let mfa = to.tuple(&[m, f, arity]);
        let empty = to.flatmap(&[], &[]);
        let t = map::put(to, empty, am::FUNCTION, mfa);
        map::put(to, t, am::LINE, line)
    };
    if is(stubs.exit) {
        return normal_end();
    } else if is(stubs.line_resume) {
        return breakpoint_frame();
    } else if is(stubs.hibernated) {
        return named(to, am::ERLANG, hibernate(), 3, am::UNDEFINED);
    } else if is(stubs.apply) || is(stubs.apply_fun) || is(stubs.reapply_fun) {
        // SAFETY: exports live for ever.
        let x = unsafe { cx.process().initial_call.as_ref() };
        let (m, f, arity) = x.map_or((am::ERLANG, am::APPLY, 2), |x| {
            (x.module, x.function, x.arity)
        });
        return named(to, m, f, arity, am::UNDEFINED);
    }
    match place(usize::from(returns), pc) {
        None => unknown_function(),
        Some(p) => {
            let line = p.line.map_or(am::UNDEFINED, |l| number(l.1, to));
            named(to, p.module, p.function, p.arity, line)
        }
    }
}

/// `{value, Term}`, or the size of the term if it has more than `most` words.
fn shown(to: &mut Fragment, t: Term, most: usize) -> Term {
    let words = flat_words(t);
    if words > most {
        return to.tuple(&[too_large(), Term::small(words as i64)]);
    }
    let t = copy::copy(t, to);
    to.tuple(&[am::VALUE, t])
}
fn slot(cx: &mut Cx, to: &mut Fragment, s: &Slot, most: usize) -> Term {
    match *s {
        Slot::Value(t) => shown(to, t, most),
        Slot::Catch(pc) => {
            let at = function_at(cx, to, pc, false);
            to.tuple(&[catch(), at])
        }
    }
}

/// The inspected process, if it exists and is suspended.
fn if_suspended(cx: Option<&mut Cx>) -> Option<&mut Cx> {
    let cx = cx?;
    cx.process().state.load().is_suspended().then_some(cx)
}

/// Runs `f` in another process if that is suspended, and returns the answer.
fn ask_suspended(
    cx: &mut Cx,
    pid: Term,
    f: impl FnOnce(&mut Cx, &mut Fragment) -> Term + Send + 'static,
) -> BifResult {
    need_debugger()?;
    need_pid(pid)?;
    if pid == cx.self_pid() {
        return Err(Fail::Badarg);
    }
    ask_with(cx, pid, move |cx, answer| {
        let Some(cx) = if_suspended(cx) else {
            return answer(OwnedTerm::copy_of(running()));
        };
        let work: signal::Task = Box::new(move |cx| {
            let mut to = Fragment::new();
            // It may have been resumed meanwhile.
            let t = match if_suspended(cx) {
                Some(cx) => f(cx, &mut to),
                None => running(),
            };
            answer(OwnedTerm::from_parts(t, to));
        });
        let p = cx.process();
        let at = p.state.priority();
        p.ext_mut().deferred.push((at, work));
    })
}

fn stack_frames_2(cx: &mut Cx, [pid, most]: [Term; 2]) -> BifResult {
    need_debugger()?;
    let most = need_number(most)?;
    ask_suspended(cx, pid, move |cx, to| {
        let all = frames(cx);
        let mut list = NIL;
        for (n, f) in all.iter().rev().enumerate() {
            let mut its = NIL;
            for s in f.slots.iter().rev() {
                let s = slot(cx, to, s, most);
                its = to.cons(s, its);
            }
            let returns = n + 1 < all.len();
            let function = function_at(cx, to, f.pc, returns);
            let pc = to.uint(f.pc);
            let info = to.flatmap(&[], &[]);
            let info = map::put(to, info, slots(), its);
            let info = map::put(to, info, am::CODE, pc);
            let frame = to.tuple(&[Term::small(n as i64), function, info]);
            list = to.cons(frame, list);
        }
        list
    })
}
fn peek_stack_frame_slot_4(cx: &mut Cx, [pid, frame, n, most]: [Term; 4]) -> BifResult {
    need_debugger()?;
    let (frame, n, most) = (need_number(frame)?, need_number(n)?, need_number(most)?);
    ask_suspended(cx, pid, move |cx, to| {
        let all = frames(cx);
        let found = all.iter().rev().nth(frame).and_then(|f| f.slots.get(n));
        found.map_or(am::UNDEFINED, |s| slot(cx, to, s, most))
    })
}
fn xregs_count_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    ask_suspended(cx, pid, |cx, _| Term::small(cx.interp.live as i64))
}
fn peek_xreg_3(cx: &mut Cx, [pid, n, most]: [Term; 3]) -> BifResult {
    need_debugger()?;
    let (n, most) = (need_number(n)?, need_number(most)?);
    ask_suspended(cx, pid, move |cx, to| match n < cx.interp.live {
        true => shown(to, cx.x[n], most),
        false => am::UNDEFINED,
    })
}

// Debug information about variables.

fn known_value(cx: &mut Cx, d: &Debug, v: &DebugValue) -> Term {
    match v {
        DebugValue::X(n) => {
            let n = number(*n, cx);
            cx.tuple(&[x_register(), n])
        }
        DebugValue::Y(n) => {
            let n = number(*n, cx);
            cx.tuple(&[y_register(), n])
        }
        DebugValue::Constant(_) => {
            let c = constant(cx, d, v);
            cx.tuple(&[am::VALUE, c])
        }
    }
}
fn constant(cx: &mut Cx, d: &Debug, v: &DebugValue) -> Term {
    match v {
        DebugValue::Constant(c) => {
            let t = code::constant(c, &d.atoms, &d.literals, cx);
            // The literals belong to the module, which may be purged.
            copy::copy_whole(t, cx)
        }
        _ => known_value(cx, d, v),
    }
}
fn call(cx: &mut Cx, d: &Debug, c: &DebugCall) -> Term {
    match c {
        DebugCall::Value(v) => constant(cx, d, v),
        DebugCall::Local(f, arity) => {
            let f = constant(cx, d, f);
            let arity = number(*arity, cx);
            cx.tuple(&[f, arity])
        }
        DebugCall::Remote(m, f, arity) => {
            let m = constant(cx, d, m);
            let f = constant(cx, d, f);
            let arity = number(*arity, cx);
            cx.tuple(&[m, f, arity])
        }
    }
}
/// The debug information of each line that can have a breakpoint; `none` if the module's file has
/// none.
fn get_debug_info_1(cx: &mut Cx, [module]: [Term; 1]) -> BifResult {
    if !module.is_atom() {
        return Err(Fail::Badarg);
    }
    let m: Arc<Module> = code::current(module).ok_or(Fail::Badarg)?;
    let d = &m.debug;
    if !d.described {
        return Ok(am::NONE);
    }
    let mut by_number: Vec<Option<&DebugLine>> = vec![None; d.items.len()];
    for l in &d.lines {
        let at = (l.number as usize).wrapping_sub(1);
        if let Some(place) = by_number.get_mut(at) {
            *place = Some(l);
        }
    }
    let mut list = NIL;
    for (item, line) in d.items.iter().zip(by_number).rev() {
        let Some(line) = line else {
            continue;
        };
        let size = match item.frame {
            DebugFrame::None => am::NONE,
            DebugFrame::Entry => entry(),
            DebugFrame::Of(n) => number(n, cx),
        };
        let mut variables = NIL;
        for (name, place) in item.vars.iter().rev() {
            let name = constant(cx, d, name);
            let place = known_value(cx, d, place);
            let pair = cx.tuple(&[name, place]);
            variables = cx.cons(pair, variables);
        }
        let mut called = NIL;
        for c in item.calls.iter().rev() {
            let c = call(cx, d, c);
            called = cx.cons(c, called);
        }
        let mut known = cx.flatmap(&[], &[]);
        for (k, v) in [(frame_size(), size), (vars(), variables), (calls(), called)] {
            known = map::put(cx, known, k, v);
        }
        let line = number(m.line_of(line.item).unwrap_or(0), cx);
        let pair = cx.tuple(&[line, known]);
        list = cx.cons(pair, list);
    }
    cx.bump(d.items.len());
    Ok(list)
}

bifs! {
    Plain "code":"get_debug_info"/1 = get_debug_info_1 [since(28)];
    Plain "erl_debugger":"supported"/0 = supported_0;
    Plain "erl_debugger":"breakpoint"/3 = breakpoint_3 [changes_code];
    Plain "erl_debugger":"breakpoints"/1 = breakpoints_1;
    Plain "erl_debugger":"breakpoints"/3 = breakpoints_3;
    Plain "erl_debugger":"instrumentations"/0 = instrumentations_0;
    Plain "erl_debugger":"peek_stack_frame_slot"/4 = peek_stack_frame_slot_4;
    Plain "erl_debugger":"peek_xreg"/3 = peek_xreg_3;
    Plain "erl_debugger":"register"/1 = register_1;
    Plain "erl_debugger":"stack_frames"/2 = stack_frames_2;
    Plain "erl_debugger":"toggle_instrumentations"/1 = toggle_instrumentations_1;
    Plain "erl_debugger":"unregister"/2 = unregister_2;
    Plain "erl_debugger":"whereis"/0 = whereis_0;
    Plain "erl_debugger":"xregs_count"/1 = xregs_count_1;
    Plain "erts_internal":"notify_breakpoint_hit"/3 = notify_breakpoint_hit_3 [since(28)];
}
