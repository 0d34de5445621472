//! Exceptions: raising, finding the handler, stack traces.
//!
//! While an exception is handled its trace is raw: a tuple
//! `{Class, Kind, First, Info, Addresses}`, where `Addresses` is a block of code addresses under a bignum's header (so
//! that the collector leaves it alone), the first exact, the others return addresses. `Kind` 0: the address tells the
//! first entry; 1: `First` = {M, F, Args} replaces the function of the first address; 2: `First` is a native and stands
//! in front; 3: `First` is the whole trace, which a program gave; 4: the address tells the first entry, and `First` are
//! the arguments to show in it; 5: as 1, without a place. `Info` is what goes behind the first entry's place: a list, or the module
//! that formats the error, of which the list is made for who reads the trace.
//!
//! Raising collects nothing: the terms of a trace are made in fragments where the heap is full, and registers stay as they are
//! until the exception is put there. [`throw`] finds the innermost catch mark by walking the stack from its top. It cuts the stack
//! down to that frame, leaves the exception in x1 to x3 and a mark in x0, and gives the handler's address. Frames of traced and of
//! measured calls on the way are told that their call ends. Without a handler the process ends, and its reason stands in the
//! context.

use super::Exit;
use super::instr;
use crate::code;
use crate::code::breakpoint::{self, TIME_WORDS, frame_words, kind};
use crate::collect::Also;
use crate::cx::{Class, Cx, Fail};
use crate::events::sink;
use purlin_native::modules;
use purlin_term::release::{self, RETURNS_TO_ANY_HANDLER};
use purlin_term::word::{Subtag, header, is_header_word};
use purlin_term::{Alloc, NIL, Term, am, atom};
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::Ordering;

/// The first entry of a stack trace.
pub enum First<'a> {
    /// The place of the instruction.
    None,
    /// The place of the instruction, a call, and the address that it would have returned to: as stock has it.
    Call(*const u64),
    /// That native with those arguments, before the place of the instruction.
    Native(Term, Term, &'a [Term]),
    /// The place of the instruction, which has called a native that only raises what it is told to; or who called what the instruction
    /// stands for, if the instruction is null.
    Told,
    /// The place of the instruction, with a cause for `erl_erts_errors:format_bs_fail/2`.
    Construct(Term),
    /// That function with those arguments, at the place of the instruction.
    Function(Term, Term, &'a [Term]),
    /// The same, of a native library: it has no place.
    Library(Term, Term, &'a [Term]),
}

/// Most entries of a stack trace: where it starts is told even if the flag is 0.
pub fn depth() -> usize {
    code::stack::DEPTH.load(Ordering::Relaxed).max(1)
}

/// The module that formats errors of natives of `m`.
fn format_module(m: Term) -> Option<Term> {
    modules::error_module(m)
}

/// Raises `fail` at the instruction `pc`: the next instruction, or null if nobody catches it and the process ends.
///
/// # Safety
/// The heap's pointers in the context are current, and `pc` is an instruction of loaded code.
#[inline(never)]
pub(crate) unsafe fn raise(cx: &mut Cx, pc: *const u64, fail: Fail, first: First) -> *const u64 {
    // First whatever `fail` is becomes the exception in the context: class, value, and a trace if the program gave one.
    match fail {
        // It stands in the context already.
        Fail::Raised => {}
        Fail::Exited => {
            #[cfg(debug_assertions)]
            {
                cx.interp.raised = true;
            }
            cx.interp.exit = Exit::Exited;
            return std::ptr::null();
        }
        f => {
            let value = match f {
                Fail::Badarg => am::BADARG,
                Fail::Badarith => am::BADARITH,
                Fail::SystemLimit => am::SYSTEM_LIMIT,
                Fail::Undef => am::UNDEF,
                _ => am::NOTSUP,
            };
            let _ = cx.error(value);
        }
    }
    // `erlang:raise/3` and its like bring a trace, which is told as it is.
    let trace = if cx.exc.trace != Term::NON_VALUE {
        let given = cx.exc.trace;
        let block = address_block(cx, &[0]);
        let class = cx.exc.class.atom();
        cx.tuple(&[class, Term::small(3), given, NIL, block])
    } else {
        raw_trace(cx, pc, first, fail != Fail::Undef)
    };
    throw(cx, trace)
}

/// The trace of an exception raised at `pc`; `info`: natives that have one show `error_info`.
unsafe fn raw_trace(cx: &mut Cx, pc: *const u64, first: First, info: bool) -> Term {
    let class = cx.exc.class.atom();
    let native = match first {
        First::Native(m, f, args) => Some((m, f, args.len())),
        _ => None,
    };
    // `error/1`, `exit/1`, `throw/1` and their like: the trace shows their caller, not them.
    let told_to = matches!(first, First::Told);
    let (kind, head, extra) = match first {
        First::None | First::Call(_) => (0, NIL, NIL),
        First::Construct(cause) => {
            let fm = atom::intern("erl_erts_errors");
            let f = atom::intern("format_bs_fail");
            let map = cx.flatmap(&[am::CAUSE, am::FUNCTION, am::MODULE], &[cause, f, fm]);
            let pair = cx.tuple(&[am::ERROR_INFO, map]);
            (0, NIL, cx.list(&[pair]))
        }
        First::Function(m, f, args) => {
            let a = cx.list(args);
            (1, cx.tuple(&[m, f, a]), NIL)
        }
        // Arguments are shown for errors only, as stock does it.
        First::Library(m, f, args) => {
            let a = match cx.exc.class {
                Class::Error => cx.list(args),
                _ => Term::small(args.len() as i64),
            };
            (5, cx.tuple(&[m, f, a]), NIL)
        }
        First::Told => {
            let extra = if cx.exc.error_info {
                let map = cx.exc.cause;
                let pair = cx.tuple(&[am::ERROR_INFO, map]);
                cx.list(&[pair])
            } else {
                NIL
            };
            match cx.exc.args {
                Term::NON_VALUE => (0, NIL, extra),
                a => (4, a, extra),
            }
        }
        First::Native(m, f, args) => {
            let a = if cx.exc.args != Term::NON_VALUE {
                cx.exc.args
            } else {
                cx.list(args)
            };
            let error = cx.exc.class == Class::Error;
            let extra = match format_module(m).filter(|_| error && info) {
                None => NIL,
                Some(fm) if cx.exc.cause == Term::NON_VALUE => fm,
                Some(fm) => {
                    let cause = cx.exc.cause;
                    let map = cx.flatmap(&[am::CAUSE, am::MODULE], &[cause, fm]);
                    let pair = cx.tuple(&[am::ERROR_INFO, map]);
                    cx.list(&[pair])
                }
            };
            let a = if error {
                a
            } else {
                Term::small(args.len() as i64)
            };
            (2, cx.tuple(&[m, f, a]), extra)
        }
    };
    let mut depth = depth();
    if told_to {
        // The stub that it was applied by is no place to show.
        depth += 1;
    }
    let mut pcs: SmallVec<[u64; 16]> = smallvec![pc as u64];
    if told_to && pc.is_null() {
        // Its caller is the first that the stack tells.
        pcs.clear();
    }
    if let First::Call(back) = first
        && depth > 1
    {
        pcs.push(back as u64);
    }
    // Return addresses lie in the first slot of each frame. A walk over all slots finds them by their tag; slots that hold none
    // are 0.
    let (top, end) = (cx.heap.stop, cx.heap.hend);
    let mut p = top;
    while pcs.len() < depth {
        // A function that has called itself to any depth has as many frames of one place: all are told at once.
        let again = if pcs.len() > 1 { pcs[pcs.len() - 1] } else { 0 };
        while p < end {
            let w = (*p).raw();
            if is_header_word(w) && w != 0 && w != again {
                break;
            }
            p = p.add(1);
        }
        if p >= end {
            break;
        }
        let w = (*p).raw();
        // Calls from one place are told once. So is the place that a native was called from, where it returns to; but not an
        // instruction that fails right behind a call of the same function: its frame says nothing, the one below says this
        // place.
        let told = pcs.last() == Some(&w)
            && (pcs.len() > 1 || p == top || told_to || native.is_some_and(is_called));
        if frame_words(w).is_none() && !told {
            pcs.push(w);
        }
        p = p.add(1);
    }
    let block = address_block(cx, &pcs);
    cx.tuple(&[class, Term::small(kind), head, extra, block])
}

/// A bignum whose digits are code addresses. A purge of the code leaves them dangling: they are looked up, never followed.
///
/// # Safety
/// The heap is that of the process that runs, and in order.
unsafe fn address_block(cx: &mut Cx, pcs: &[u64]) -> Term {
    let block = cx.heap.alloc(1 + pcs.len());
    (block as *mut u64).write(header(Subtag::PosBig, pcs.len()));
    for (i, &a) in pcs.iter().enumerate() {
        (block as *mut u64).add(1 + i).write(a);
    }
    Term::boxed_at(block)
}

/// Whether that is a native which code calls, and no instruction.
fn is_called((m, f, arity): (Term, Term, usize)) -> bool {
    code::native(m, f, arity as u32).is_some_and(|n| n.1.kind != crate::bif::Kind::Guard)
}

/// Whether a native only raises what it was told to ([`First::Told`]).
pub(super) fn raises(m: Term, f: Term, arity: usize) -> bool {
    // Each call by name asks; all of them are of one module.
    m == am::ERLANG && crate::bif::raises(f, arity as u32)
}

/// Parts of a raw trace.
/// None of what a program put in its place. A program can make a tuple that looks like one, and sees its own lie then.
fn raw_parts(t: Term) -> Option<(&'static [Term], &'static [u64])> {
    let e = t.as_tuple().filter(|e| e.len() == 5)?;
    let (_, pcs) = e[4].as_big()?;
    (e[0].is_atom() && e[1].is_small()).then_some((e, pcs))
}

/// The list form of a raw trace; anything else as it is.
pub(crate) fn build_trace(cx: &mut Cx, trace: Term) -> Term {
    let Some((parts, pcs)) = raw_parts(trace) else {
        return trace;
    };
    let kind = parts[1].small_value();
    if kind == 3 {
        return parts[2];
    }
    // A module was noted for the list, which costs nothing unless somebody reads the trace.
    let info = match parts[3] {
        fm if fm.is_atom() => {
            let map = cx.flatmap(&[am::MODULE], &[fm]);
            let pair = cx.tuple(&[am::ERROR_INFO, map]);
            cx.list(&[pair])
        }
        list => list,
    };
    let mut entries: SmallVec<[Term; 16]> = SmallVec::new();
    let depth = depth();
    if kind == 2
        && let Some(&[m, f, a]) = parts[2].as_tuple()
    {
        let e = cx.tuple(&[m, f, a, info]);
        entries.push(e);
    }
    // A native that was applied raised at the stub of its export, which is no place to show: the first entry is then the
    // caller's. Those of `apply/2` and `apply/3` are.
    let stubs = code::stubs();
    let applies = [
        (stubs.apply_fun.as_ptr(), 2),
        (stubs.reapply_fun.as_ptr(), 2),
        (stubs.apply.as_ptr(), 3),
    ];
    let apply = |pc: u64| applies.iter().find(|a| a.0 as u64 == pc).map(|a| a.1);
    // A return address belongs to the call before it.
    let places = pcs.iter().enumerate();
    let places = places.map(|(i, &pc)| (if i == 0 { pc } else { pc - 8 }) as *const u64);
    // Calls that follow one another mostly are of one file.
    let mut last_name: SmallVec<[u8; 64]> = SmallVec::new();
    let mut last_file = NIL;
    let mut i = 0;
    code::find_each(places, |place| {
        let (pc, is_first) = (pcs[i], i == 0);
        i += 1;
        if entries.len() >= depth {
            return;
        }
        let first = (is_first && (kind == 1 || kind == 5)).then(|| parts[2].as_tuple());
        let first = first.flatten();
        let extra = match (entries.is_empty(), kind) {
            (true, 0 | 4) => info,
            _ => NIL,
        };
        let line = place.and_then(|p| p.line());
        let location = match line.filter(|_| first.is_none() || kind == 1) {
            None => extra,
            Some((file, line)) => {
                if last_file == NIL || last_name[..] != *file.as_bytes() {
                    last_name.clear();
                    last_name.extend_from_slice(file.as_bytes());
                    let s = cx.string(file);
                    last_file = cx.tuple(&[am::FILE, s]);
                }
                let l = cx.tuple(&[am::LINE, Term::small(i64::from(line))]);
                cx.list_tail(&[last_file, l], extra)
            }
        };
        let e = match (first, place) {
            (Some(&[m, f, a]), _) => cx.tuple(&[m, f, a, location]),
            (_, Some(p)) => {
                let args = match (entries.is_empty(), kind) {
                    (true, 4) => parts[2],
                    _ => Term::small(i64::from(p.arity)),
                };
                cx.tuple(&[p.module, p.function, args, location])
            }
            _ => match apply(pc) {
                Some(arity) => cx.tuple(&[am::ERLANG, am::APPLY, Term::small(arity), extra]),
                None => return,
            },
        };
        entries.push(e);
    });
    if entries.is_empty() && depth == 1 && !cx.proc.is_null() {
        // Not even the place of the failure: what the process began with is told for it.
        // SAFETY: exports are never freed.
        if let Some(x) = unsafe { cx.process().initial_call.as_ref() } {
            let arity = Term::small(i64::from(x.arity));
            let e = cx.tuple(&[x.module, x.function, arity, info]);
            entries.push(e);
        }
    }
    cx.list(&entries)
}

/// Whether anything on the stack catches exceptions.
///
/// # Safety
/// The stack is in order: frames as the interpreter makes them, from `heap.stop` on.
unsafe fn is_caught(cx: &Cx) -> bool {
    let mut p = cx.heap.stop;
    while p < cx.heap.hend {
        if let Some(words) = frame_words((*p).raw()) {
            p = p.add(words);
            continue;
        }
        if (*p).is_catch() {
            return true;
        }
        p = p.add(1);
    }
    false
}

/// The exception in the context leads to the handler of the catch mark `mark`, in the frame whose first slot is `frame`.
///
/// # Safety
/// They are of the stack.
unsafe fn handled(cx: &mut Cx, frame: *mut Term, mark: Term, trace: Term) -> *const u64 {
    cx.heap.stop = frame;
    // No call is under way from that frame any more.
    (frame as *mut u64).write(0);
    // `catch_end` tells by this that an exception led to it.
    cx.x[0] = Term::NON_VALUE;
    cx.x[1] = cx.exc.class.atom();
    cx.x[2] = cx.exc.value;
    cx.x[3] = trace;
    mark.catch_addr() as *const u64
}

/// Goes to the innermost handler with the exception in the context.
///
/// # Safety
/// The exception stands in the context with its trace, and stack and heap are in order.
unsafe fn throw(cx: &mut Cx, trace: Term) -> *const u64 {
    #[cfg(debug_assertions)]
    {
        cx.interp.raised = true;
    }
    let mut trace = trace;
    if cx.exc.class == Class::Throw && breakpoint::any() && !is_caught(cx) {
        // Those who are told of the exceptions that end calls hear of what the process ends by.
        let st = build_trace(cx, trace);
        let v = cx.tuple(&[am::NOCATCH, cx.exc.value]);
        cx.exc.class = Class::Error;
        cx.exc.value = v;
        let block = address_block(cx, &[0]);
        trace = cx.tuple(&[am::ERROR, Term::small(3), st, NIL, block]);
    }
    let mut p = cx.heap.stop;
    if !breakpoint::any() {
        // Nobody is to be told of frames that are dropped.
        let mut frame = p;
        while p < cx.heap.hend {
            let w = *p;
            if w.is_header() {
                frame = p;
            } else if w.is_catch() {
                return handled(cx, frame, w, trace);
            }
            p = p.add(1);
        }
    }
    // The first slot of the frame that `p` is in: where the stack is cut if a mark is found.
    let mut frame = p;
    // Where the frame that is searched goes on, if anybody is to be told when it does.
    let mut back: Option<u64> = None;
    let mut tells: SmallVec<[Term; 2]> = SmallVec::new();
    let mut whom: SmallVec<[Term; 2]> = SmallVec::new();
    while p < cx.heap.hend {
        let w = *p;
        if w.is_header() {
            frame = p;
            let traced = frame_words(w.raw());
            if traced == Some(TIME_WORDS) {
                sink().measured(cx, [*p.add(1), *p.add(2)]);
                p = p.add(TIME_WORDS);
                continue;
            }
            // The words behind the mark are the tracing's own, and no Y registers.
            if let Some(words) = traced {
                let told = [*p.add(1), *p.add(2), *p.add(3), *p.add(4), *p.add(5)];
                if told[3] == Term::small(kind::RETURN_TO) {
                    tells.push(told[4]);
                } else {
                    let (class, value) = (cx.exc.class.atom(), cx.exc.value);
                    sink().returned(cx, told, Some(class), value);
                }
                p = p.add(words);
                continue;
            }
            if !release::has(RETURNS_TO_ANY_HANDLER) {
                whom.clear();
            }
            for t in tells.drain(..) {
                if !whom.contains(&t) {
                    whom.push(t);
                }
            }
            back = (!whom.is_empty()).then_some(w.raw());
        } else if w.is_catch() {
            if let Some(to) = back {
                for w in whom {
                    sink().returned_to(cx, w, to as *const u64);
                }
            }
            return handled(cx, frame, w, trace);
        }
        p = p.add(1);
    }
    // Nobody catches it: class and trace become a part of the reason, as they are for those linked with the process.
    let value = cx.exc.value;
    cx.interp.crashed = cx.exc.class != Class::Exit;
    cx.interp.reason = match cx.exc.class {
        Class::Exit => value,
        Class::Error => {
            let st = build_trace(cx, trace);
            cx.tuple(&[value, st])
        }
        Class::Throw => {
            let st = build_trace(cx, trace);
            let v = cx.tuple(&[am::NOCATCH, value]);
            cx.tuple(&[v, st])
        }
    };
    cx.interp.exit = Exit::Exited;
    std::ptr::null()
}

/// Raises `error:value` at `pc`.
pub(crate) unsafe fn error(cx: &mut Cx, pc: *const u64, value: Term) -> *const u64 {
    let fail = cx.error(value);
    raise(cx, pc, fail, First::None)
}

// The ops. All take (context, instruction) and give the next instruction.

/// Ops that raise `{Tag, Value}` at their own place.
macro_rules! tagged {
    ($($name:ident = $op:ident, $tag:expr;)*) => {$(
        pub(super) unsafe fn $name(cx: &mut Cx, pc: *const u64) -> *const u64 {
            let v = instr::$op::at(pc).value().value(cx);
            let fail = cx.error2($tag, v);
            raise(cx, pc, fail, First::None)
        }
    )*};
}
tagged! {
    badmatch = Badmatch, am::BADMATCH;
    case_end = CaseEnd, am::CASE_CLAUSE;
    try_case_end = TryCaseEnd, am::TRY_CLAUSE;
    badrecord = Badrecord, am::BADRECORD;
}
pub(super) unsafe fn if_end(cx: &mut Cx, pc: *const u64) -> *const u64 {
    error(cx, pc, am::IF_CLAUSE)
}
/// The class that an atom names.
fn class_of(t: Term) -> Option<Class> {
    [Class::Error, Class::Exit, Class::Throw]
        .into_iter()
        .find(|c| c.atom() == t)
}
/// Raises again with a trace that was caught.
pub(super) unsafe fn raise_again(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::Raise::at(pc);
    let (trace, value) = (op.trace().value(cx), op.value().value(cx));
    let class = raw_parts(trace)
        .and_then(|p| class_of(p.0[0]))
        .unwrap_or(Class::Error);
    let _ = cx.error(value);
    cx.exc.class = class;
    throw(cx, trace)
}
/// Class, reason and trace in x0 to x2. Another class than the three is no failure: the op answers `badarg`.
pub(super) unsafe fn raw_raise(cx: &mut Cx, pc: *const u64) -> *const u64 {
    match class_of(cx.x[0]) {
        Some(class) => {
            let (value, trace) = (cx.x[1], cx.x[2]);
            let _ = cx.error(value);
            cx.exc.class = class;
            // The class may have been changed by the program: the trace says it to those who raise again.
            let trace = match raw_parts(trace) {
                // The place of a function without a fitting clause is lost, as in stock.
                Some((p, _)) if p[0] != class.atom() || p[1] == Term::small(1) => {
                    let kind = match p[1].small_value() {
                        1 => Term::small(5),
                        _ => p[1],
                    };
                    cx.tuple(&[class.atom(), kind, p[2], p[3], p[4]])
                }
                _ => trace,
            };
            throw(cx, trace)
        }
        None => {
            cx.x[0] = am::BADARG;
            instr::RawRaise::at(pc).next()
        }
    }
}
/// The raw trace in x0 becomes a list. May collect with x0 live.
pub(super) unsafe fn build_stacktrace(cx: &mut Cx, pc: *const u64) -> *const u64 {
    cx.x[0] = build_trace(cx, cx.x[0]);
    super::room::collect_after(cx, 1, Also::NONE);
    instr::BuildStacktrace::at(pc).next()
}
/// The value of a `catch` whose exception stands in x1 to x3.
///
/// # Safety
/// x1 to x3 hold class, value and trace of an exception, and the heap is in order.
pub(super) unsafe fn catch_value(cx: &mut Cx) {
    let (class, value, trace) = (cx.x[1], cx.x[2], cx.x[3]);
    cx.x[0] = if class == am::THROW {
        value
    } else if class == am::ERROR {
        let st = build_trace(cx, trace);
        let v = cx.tuple(&[value, st]);
        cx.tuple(&[am::EXIT_UC, v])
    } else {
        cx.tuple(&[am::EXIT_UC, value])
    };
    super::room::collect_after(cx, 1, Also::NONE);
}
