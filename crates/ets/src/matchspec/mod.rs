//! Match specifications: compiled once (`compile`) into a small program, then run against many
//! terms (`run`).
//!
//! A *head* is a list of tests on places of the term, without tests for places where anything
//! matches. *Guard* and *body* are code for a stack machine. While head and guard run, nothing of
//! the term is copied, so it may lie in a locked table. The body builds its result on the caller's
//! heap and copies what it takes.
//!
//! Neither compiling nor running recurses: terms may be nested as deeply as memory allows.

pub mod compile;
pub mod execution;
mod functions;

pub use compile::{Clause, Compiled, compile, lint};
pub use execution::{Host, Runner, Subject};
pub use functions::Function;

use purlin_native::lazy_atoms;
use purlin_term::frag::Fragment;
use purlin_term::node::Node;
use purlin_term::{Term, am, atom, compare, gc, map, off_heap};
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;

lazy_atoms! {
    pub(crate) whole = "$_";
    pub(crate) bindings = "$$";
    element_name = "element";
}

/// The `trace_control_word`, which specifications read and set.
pub static TRACE_CONTROL_WORD: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// The purpose of a specification. It decides which functions it may call, and what its head is
/// matched against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Objects of tables, and terms in lists.
    Table,
    /// Arguments of traced calls. Heads are lists of arguments or one variable.
    Trace,
}

/// A place in the matched term.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Slot of the container found before.
    slot: u32,
    /// Word of the container, or [`WHOLE`] for the slot's own value.
    word: u32,
}
const WHOLE: u32 = u32::MAX;

/// One test of a head.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// A tuple of that arity, which goes to a slot.
    Tuple {
        at: Place,
        arity: usize,
        to: u32,
    },
    /// A tuple of at least that arity, likewise.
    Prefix {
        at: Place,
        arity: usize,
        to: u32,
    },
    Cons {
        at: Place,
        to: u32,
    },
    /// A map of at least that size.
    Map {
        at: Place,
        size: usize,
        to: u32,
    },
    /// The map in the slot has the key; its value goes to a slot.
    Key {
        map: u32,
        key: Term,
        to: u32,
    },
    Bind {
        at: Place,
        var: u32,
    },
    /// Equals the value of the variable.
    Same {
        at: Place,
        var: u32,
    },
    /// Is that immediate.
    Immed {
        at: Place,
        is: Term,
    },
    Equal {
        at: Place,
        to: Term,
    },
    /// A float of those bits: 0.0 is not -0.0 here.
    Float {
        at: Place,
        bits: u64,
    },
}

/// One instruction of a guard or body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Const(Term),
    Var(u32),
    /// The whole term.
    Whole,
    /// All bound variables, as a list.
    Bindings,
    Cons,
    Tuple(usize),
    /// Number of pairs: key, value…
    Map(usize),
    Call(Function, usize),
    And(usize),
    Or(usize),
    /// If the top is `false`, jumps with it; if it is `true`, drops it.
    AndAlso(usize),
    OrElse(usize),
    SelfPid,
    Action(Action, usize),
    /// In a guard: the top must be `true`.
    Check,
    Drop,
    /// In a body: the top is the result.
    Result,
}

/// The code of a guard or body.
pub(super) type Ops = SmallVec<[Op; 4]>;

/// The services of the runtime that bodies for tracing may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// `{message, M}`: M is the result.
    Message,
    ReturnTrace,
    ExceptionTrace,
    IsSeqTrace,
    SetSeqToken,
    GetSeqToken,
    Display,
    ProcessDump,
    EnableTrace,
    DisableTrace,
    Trace,
    Caller,
    CallerLine,
    /// The functions that the call returns to, at most as many as its argument says.
    CurrentStacktrace,
    Silent,
    GetTcw,
    SetTcw,
}

/// A compiled specification. Its constants lie in a fragment of its own.
///
/// Tables are often asked with specifications that were made for the question. So short ones are
/// compiled without an allocation for each of their parts.
pub struct Program {
    pub(super) clauses: SmallVec<[Code; 1]>,
    slots: usize,
    vars: usize,
    constants: Fragment,
}

impl Program {
    /// Calls `f` with the node of each term of another node in the program.
    pub fn each_node(&self, f: impl FnMut(&Node)) {
        // SAFETY: a program is immutable.
        unsafe { off_heap::each_node(&self.constants.off_heap, f) };
    }
    /// The services of the runtime that its guards and bodies use.
    pub fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        let ops = self
            .clauses
            .iter()
            .flat_map(|c| c.guard.iter().chain(&c.body));
        ops.filter_map(|op| match op {
            Op::Action(a, _) => Some(*a),
            _ => None,
        })
    }
}

/// A compiled clause.
pub(super) struct Code {
    tests: SmallVec<[Test; 8]>,
    guard: Ops,
    body: Ops,
    /// Variables of the head, by number.
    bound: SmallVec<[u32; 8]>,
    /// Whether the guard makes terms. Then what it takes of the subject must be copied first.
    guard_builds: bool,
    /// Whether the head is one variable or `_`.
    pub(super) single: bool,
}

// SAFETY: the terms in a program lie in its own fragment, and are only read once it is made.
unsafe impl Send for Program {}
// SAFETY: a program is only read once it is made.
unsafe impl Sync for Program {}

impl Drop for Program {
    fn drop(&mut self) {
        let f = std::mem::take(&mut self.constants);
        // SAFETY: the code that referred to them goes with them.
        unsafe {
            let mut f = f;
            gc::release_off_heap(&mut f.off_heap);
        }
    }
}

/// The number of a variable `$N`.
pub fn variable(t: Term) -> Option<u32> {
    if !t.is_atom() {
        return None;
    }
    let digits = atom::name(t).strip_prefix('$')?;
    if digits == "0" {
        return Some(0);
    }
    if digits.starts_with('0') || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // A number too large for a counter still names a variable: as in stock it wraps.
    Some(digits.bytes().fold(0u32, |n, b| {
        n.wrapping_mul(10).wrapping_add((b - b'0') as u32)
    }))
    .filter(|&n| n <= i32::MAX as u32)
}

/// The parts of a pattern that decide which keys can match.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// Whether it contains a variable or `_`.
    pub variables: bool,
    /// Whether it contains a map. Such a pattern matches maps with more pairs too, which neither
    /// order nor hash finds.
    pub maps: bool,
}

impl Shape {
    pub(crate) fn of(t: Term) -> Shape {
        let mut shape = Shape::default();
        let mut todo: SmallVec<[Term; 16]> = smallvec![t];
        while let Some(t) = todo.pop() {
            if let Some((h, tail)) = t.as_cons() {
                todo.push(tail);
                todo.push(h);
            } else if let Some(e) = t.as_tuple() {
                todo.extend_from_slice(e);
            } else if t.is_map() {
                shape.maps = true;
                for (k, v) in map::iter(t) {
                    todo.push(k);
                    todo.push(v);
                }
            } else {
                shape.variables |= is_variable(t);
            }
        }
        shape
    }
}

/// Whether a term matches anything.
fn is_variable(t: Term) -> bool {
    t.is_atom() && (t == am::UNDERSCORE || variable(t).is_some())
}

/// Compares `pattern`, up to its first variable, with `t`: `Equal` if `t` begins like it. No
/// pattern with a variable contains a map.
pub(crate) fn cmp_prefix(pattern: Term, t: Term) -> Ordering {
    // Most patterns are tuples whose elements before a variable contain no terms.
    if let (Some(a), Some(b)) = (pattern.as_tuple(), t.as_tuple())
        && a.len() == b.len()
    {
        for (&p, &e) in a.iter().zip(b) {
            if p.is_list_ptr() || p.is_tuple() {
                return cmp_nested_prefix(pattern, t);
            }
            if is_variable(p) {
                return Ordering::Equal;
            }
            match compare::cmp(p, e) {
                Ordering::Equal => {}
                o => return o,
            }
        }
        return Ordering::Equal;
    }
    cmp_nested_prefix(pattern, t)
}

/// As [`cmp_prefix`], for any shape.
fn cmp_nested_prefix(pattern: Term, t: Term) -> Ordering {
    let mut todo: SmallVec<[(Term, Term); 8]> = smallvec![(pattern, t)];
    while let Some((p, t)) = todo.pop() {
        if is_variable(p) {
            return Ordering::Equal;
        }
        if let (Some((ph, pt)), Some((h, tl))) = (p.as_cons(), t.as_cons()) {
            todo.push((pt, tl));
            todo.push((ph, h));
            continue;
        }
        if let (Some(a), Some(b)) = (p.as_tuple(), t.as_tuple())
            && a.len() == b.len()
        {
            todo.extend(a.iter().copied().zip(b.iter().copied()).rev());
            continue;
        }
        match compare::cmp(p, t) {
            Ordering::Equal => {}
            o => return o,
        }
    }
    Ordering::Equal
}

/// Whether the keys that pattern `a` matches begin before those of `b`, or (`ends`) end behind
/// them. The decision is stock's, because the objects looked at decide the result: equal numbers of
/// different kinds settle it as no, and a larger tuple, or (`ends`) a smaller one, does not settle
/// it.
pub(crate) fn reaches_beyond(a: Term, b: Term, ends: bool) -> bool {
    let beyond = match ends {
        true => Ordering::Greater,
        false => Ordering::Less,
    };
    let mut todo: SmallVec<[(Term, Term); 8]> = smallvec![(a, b)];
    while let Some((a, b)) = todo.pop() {
        if is_variable(a) {
            return !is_variable(b);
        }
        if is_variable(b) {
            return false;
        }
        if let (Some((ah, at)), Some((bh, bt))) = (a.as_cons(), b.as_cons()) {
            todo.push((at, bt));
            todo.push((ah, bh));
            continue;
        }
        if let (Some(ae), Some(be)) = (a.as_tuple(), b.as_tuple()) {
            match ae.len().cmp(&be.len()) {
                Ordering::Equal => todo.extend(ae.iter().copied().zip(be.iter().copied()).rev()),
                o if o == beyond => return true,
                _ => {}
            }
            continue;
        }
        match compare::cmp(a, b) {
            Ordering::Equal if !compare::eq_exact(a, b) && a.is_number() => return false,
            Ordering::Equal => {}
            o => return o == beyond,
        }
    }
    false
}

/// Whether a body certainly builds the very key that its head has matched, as `select_replace`
/// requires.
pub(crate) fn keeps_key(keypos: usize, head: Term, body: Term) -> bool {
    let Some((single, tail)) = body.as_cons() else {
        return false;
    };
    if !tail.is_nil() {
        return false;
    }
    let whole = whole();
    if single == whole {
        return true;
    }
    let element = |t: Term| t.as_tuple().and_then(|e| e.get(keypos - 1)).copied();
    let (Some(key), Some(e)) = (element(head), single.as_tuple()) else {
        return false;
    };
    let (inner, constant) = match *e {
        [am::CONST, inner] => (inner, true),
        [inner] => (inner, false),
        _ => return false,
    };
    let Some(built) = element(inner) else {
        return false;
    };
    if builds(key, built, constant) {
        return true;
    }
    // `{element, KeyPos, '$_'}` is the key too.
    !constant
        && matches!(built.as_tuple(), Some(&[f, pos, of])
            if f == element_name() && of == whole && pos == Term::small(keypos as i64))
}

/// Whether `body` certainly builds what `pattern` has matched. `constant`: `body` stands for
/// itself.
fn builds(pattern: Term, body: Term, constant: bool) -> bool {
    let mut todo = vec![(pattern, body, constant)];
    while let Some((a, b, constant)) = todo.pop() {
        if let Some((bh, bt)) = b.as_cons() {
            let Some((ah, at)) = a.as_cons() else {
                return false;
            };
            todo.push((at, bt, constant));
            todo.push((ah, bh, constant));
        } else if let Some(mut be) = b.as_tuple() {
            let mut constant = constant;
            if !constant {
                match *be {
                    [inner] if inner.is_tuple() => be = inner.as_tuple().unwrap_or_default(),
                    [am::CONST, inner] => {
                        constant = true;
                        let Some(e) = inner.as_tuple() else {
                            todo.push((a, inner, true));
                            continue;
                        };
                        be = e;
                    }
                    _ => return false,
                }
            }
            match a.as_tuple() {
                Some(ae) if ae.len() == be.len() => {
                    todo.extend(ae.iter().zip(be).map(|(&a, &b)| (a, b, constant)))
                }
                _ => return false,
            }
        } else if b.is_map() {
            // The matched map may have had other pairs.
            return false;
        } else if b.is_immed() {
            let special = a == am::UNDERSCORE
                || a == bindings()
                || a == whole()
                || constant && variable(a).is_some();
            if a != b || special {
                return false;
            }
        } else if !compare::eq_exact(a, b) {
            return false;
        }
    }
    true
}
