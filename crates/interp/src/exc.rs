//! Exceptions: raising, finding the handler, stack traces.
//!
//! While an exception is handled its trace is raw: a tuple `{Class, Kind, First, Info, Addresses}`.
//! `Addresses` is a block of code addresses under a bignum's header, so that the collector leaves
//! it alone. The first address is exact, the others are return addresses. The kinds are:
//! - 0: the first address gives the first entry.
//! - 1: `First` = {M, F, Args} replaces the function of the first address.
//! - 2: `First` is a native, which precedes the first address.
//! - 3: `First` is the whole trace, given by the program.
//! - 4: the first address gives the first entry, which shows the arguments `First`.
//! - 5: as 1, without a location.
//!
//! `Info` is added to the location of the first entry. It is a list, or the module that formats the
//! error; the list is then made when the trace is read.
//!
//! Raising collects nothing. The terms of a trace are made in fragments if the heap is full, and
//! registers keep their values until the exception is stored there. [`throw`] finds the innermost
//! catch mark by walking the stack from its top. It cuts the stack back to that frame, leaves the
//! exception in x1 to x3 and a mark in x0, and returns the handler's address. On the way it ends
//! the traced and the measured calls whose frames it drops. Without a handler the process ends,
//! with its exit reason in the context.

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
#[derive(Clone, Copy)]
pub enum First<'a> {
    /// The location of the instruction.
    None,
    /// The location of the instruction, a call, and the address to which it would have returned, as
    /// in stock.
    Call(*const u64),
    /// The native with its arguments, before the location of the instruction.
    Native(Term, Term, &'a [Term]),
    /// The location of the instruction, which has called a native that only raises its argument. If
    /// the instruction is null: the caller of the function that it stands for.
    Caller,
    /// The location of the instruction, with a cause for `erl_erts_errors:format_bs_fail/2`.
    Construct(Term),
    /// The function with its arguments, at the location of the instruction.
    Function(Term, Term, &'a [Term]),
    /// The same for a native library, which has no location.
    Library(Term, Term, &'a [Term]),
}

/// Returns the maximum number of entries of a stack trace. The first one is shown even if the flag
/// is 0.
pub fn depth() -> usize {
    code::stack::DEPTH.load(Ordering::Relaxed).max(1)
}

/// Returns the module that formats errors of natives of `m`.
fn format_module(m: Term) -> Option<Term> {
    modules::error_module(m)
}

/// Raises `fail` at the instruction `pc`. Returns the next instruction, or null if the exception is
/// not caught and the process ends.
///
/// # Safety
/// The heap's pointers in the context must be current, and `pc` must be an instruction of loaded
/// code.
#[inline(never)]
pub(crate) unsafe fn raise(cx: &mut Cx, pc: *const u64, fail: Fail, first: First) -> *const u64 {
    // First stores `fail` as the exception in the context: class, value, and a trace if the program
    // gave one.
    match fail {
        // It is in the context already.
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
    // `erlang:raise/3` and its like bring a trace, which is used as it is.
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

/// Returns the trace of an exception raised at `pc`. `info`: whether natives that have `error_info`
/// show it.
unsafe fn raw_trace(cx: &mut Cx, pc: *const u64, first: First, info: bool) -> Term {
    let class = cx.exc.class.atom();
    let native = match first {
        First::Native(m, f, args) => Some((m, f, args.len())),
        _ => None,
    };
    // `error/1`, `exit/1`, `throw/1` and their like: the trace shows their caller, not them.
    let shows_caller = matches!(first, First::Caller);
    let (kind, head, extra) = first_entry(cx, first, info);
    let mut depth = depth();
    if shows_caller {
        // The stub by which it was applied is not shown.
        depth += 1;
    }
    let mut pcs: SmallVec<[u64; 16]> = smallvec![pc as u64];
    if shows_caller && pc.is_null() {
        // Its caller is the first return address on the stack.
        pcs.clear();
    }
    if let First::Call(back) = first
        && depth > 1
    {
        pcs.push(back as u64);
    }
    // Each frame has its return address in its first slot. A walk over all slots finds them by
    // their tag; other first slots are 0.
    let (top, end) = (cx.heap.stop, cx.heap.hend);
    let mut p = top;
    while pcs.len() < depth {
        // A function that has called itself many times has as many frames with the same address:
        // they give one entry.
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
        // Consecutive calls from one address give one entry. So does the address from which a
        // native was called, together with the address where it returns. That does not hold for an
        // instruction that fails directly after a call of the same function: its frame shows
        // nothing, and the one below has this address.
        let repeated = pcs.last() == Some(&w)
            && (pcs.len() > 1 || p == top || shows_caller || native.is_some_and(is_called));
        if frame_words(w).is_none() && !repeated {
            pcs.push(w);
        }
        p = p.add(1);
    }
    let block = address_block(cx, &pcs);
    cx.tuple(&[class, Term::small(kind), head, extra, block])
}

/// Returns the first entry of a trace: its kind, the entry, and information for `erl_erts_errors`.
fn first_entry(cx: &mut Cx, first: First, info: bool) -> (i64, Term, Term) {
    match first {
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
        // Arguments are shown for errors only, as in stock.
        First::Library(m, f, args) => {
            let a = match cx.exc.class {
                Class::Error => cx.list(args),
                _ => Term::small(args.len() as i64),
            };
            (5, cx.tuple(&[m, f, a]), NIL)
        }
        First::Caller => {
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
    }
}

/// Returns a bignum whose digits are code addresses. A purge of the code leaves them dangling: they
/// are looked up, never dereferenced.
///
/// # Safety
/// The heap must be that of the running process, and valid.
unsafe fn address_block(cx: &mut Cx, pcs: &[u64]) -> Term {
    let block = cx.heap.alloc(1 + pcs.len());
    (block as *mut u64).write(header(Subtag::PosBig, pcs.len()));
    for (i, &a) in pcs.iter().enumerate() {
        (block as *mut u64).add(1 + i).write(a);
    }
    Term::boxed_at(block)
}

/// Whether that is a native which code calls, not an instruction.
fn is_called((m, f, arity): (Term, Term, usize)) -> bool {
    code::native(m, f, arity as u32).is_some_and(|n| n.1.kind != crate::bif::Kind::Guard)
}

/// Whether a native only raises its argument ([`First::Caller`]).
pub(super) fn raises(m: Term, f: Term, arity: usize) -> bool {
    // Each call by name comes here; all such natives are in one module.
    m == am::ERLANG && crate::bif::raises(f, arity as u32)
}

/// Returns the parts of a raw trace; `None` for anything that a program put in its place. A program
/// can make a tuple that looks like one, and then sees that forgery.
fn raw_parts(t: Term) -> Option<(&'static [Term], &'static [u64])> {
    let e = t.as_tuple().filter(|e| e.len() == 5)?;
    let (_, pcs) = e[4].as_big()?;
    (e[0].is_atom() && e[1].is_small()).then_some((e, pcs))
}

/// Returns the list form of a raw trace; anything else as it is.
pub(crate) fn build_trace(cx: &mut Cx, trace: Term) -> Term {
    let Some((parts, pcs)) = raw_parts(trace) else {
        return trace;
    };
    let kind = parts[1].small_value();
    if kind == 3 {
        return parts[2];
    }
    // A module stands for the list, so that it costs nothing unless the trace is read.
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
    // A native that was applied raised at the stub of its export, which is not shown: the first
    // entry is the caller. The stubs of `apply/2` and `apply/3` are shown.
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
    // Consecutive calls mostly are in one file.
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
        // Not even the failing address is known: shows the first function of the process instead.
        // SAFETY: exports are never freed.
        if let Some(x) = unsafe { cx.process().initial_call.as_ref() } {
            let arity = Term::small(i64::from(x.arity));
            let e = cx.tuple(&[x.module, x.function, arity, info]);
            entries.push(e);
        }
    }
    cx.list(&entries)
}

/// Whether any handler on the stack catches exceptions.
///
/// # Safety
/// The stack must be valid: frames as the interpreter makes them, from `heap.stop` on.
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

/// Enters the handler of the catch mark `mark`, in the frame whose first slot is `frame`, with the
/// exception in the context.
///
/// # Safety
/// Mark and frame must be on the stack.
unsafe fn handled(cx: &mut Cx, frame: *mut Term, mark: Term, trace: Term) -> *const u64 {
    cx.heap.stop = frame;
    // That frame has no active call any more.
    (frame as *mut u64).write(0);
    // By this `catch_end` knows that an exception led to it.
    cx.x[0] = Term::NON_VALUE;
    cx.x[1] = cx.exc.class.atom();
    cx.x[2] = cx.exc.value;
    cx.x[3] = trace;
    mark.catch_addr() as *const u64
}

/// Enters the innermost handler with the exception in the context.
///
/// # Safety
/// The exception must be in the context with its trace, and stack and heap must be valid.
unsafe fn throw(cx: &mut Cx, trace: Term) -> *const u64 {
    #[cfg(debug_assertions)]
    {
        cx.interp.raised = true;
    }
    let mut trace = trace;
    if cx.exc.class == Class::Throw && breakpoint::any() && !is_caught(cx) {
        // Tracers of the exceptions that end calls get the exit reason of the process.
        let st = build_trace(cx, trace);
        let v = cx.tuple(&[am::NOCATCH, cx.exc.value]);
        cx.exc.class = Class::Error;
        cx.exc.value = v;
        let block = address_block(cx, &[0]);
        trace = cx.tuple(&[am::ERROR, Term::small(3), st, NIL, block]);
    }
    let mut p = cx.heap.stop;
    if !breakpoint::any() {
        // Fast path: no dropped frame is traced.
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
    // The first slot of the frame that contains `p`: where the stack is cut if a mark is found.
    let mut frame = p;
    // The return address of the searched frame, if its return is traced.
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
            // The words after the mark belong to the tracing, and are no Y registers.
            if let Some(words) = traced {
                let call = [*p.add(1), *p.add(2), *p.add(3), *p.add(4), *p.add(5)];
                if call[3] == Term::small(kind::RETURN_TO) {
                    tells.push(call[4]);
                } else {
                    let (class, value) = (cx.exc.class.atom(), cx.exc.value);
                    sink().returned(cx, call, Some(class), value);
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
    // Not caught: class and trace become a part of the exit reason, as linked processes see it.
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

// The ops. All take (context, instruction) and return the next instruction.

/// Ops that raise `{Tag, Value}` at their own location.
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
/// Returns the class that an atom names.
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
/// Raises with class, reason and trace in x0 to x2. For any other class than the three it doesn't
/// fail: its result is `badarg`.
pub(super) unsafe fn raw_raise(cx: &mut Cx, pc: *const u64) -> *const u64 {
    match class_of(cx.x[0]) {
        Some(class) => {
            let (value, trace) = (cx.x[1], cx.x[2]);
            let _ = cx.error(value);
            cx.exc.class = class;
            // The program may have changed the class: the trace keeps it for those who raise again.
            let trace = match raw_parts(trace) {
                // As in stock, a failure to match a function clause loses the function with its
                // arguments.
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
/// Turns the raw trace in x0 into a list. May collect with x0 live.
pub(super) unsafe fn build_stacktrace(cx: &mut Cx, pc: *const u64) -> *const u64 {
    cx.x[0] = build_trace(cx, cx.x[0]);
    super::room::collect_after(cx, 1, Also::NONE);
    instr::BuildStacktrace::at(pc).next()
}
/// Computes the value of a `catch` whose exception is in x1 to x3.
///
/// # Safety
/// x1 to x3 must hold class, value and trace of an exception, and the heap must be valid.
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
