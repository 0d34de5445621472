//! Runs a [`Program`] against a term: an object of a table, a term, or the arguments of a call.
//!
//! Clauses are tried in turn. The first one whose pattern and guards match computes the result. An
//! operation that fails in a guard means that the clause does not match; in a body it has the value
//! [`FAILED`].
//!
//! # Invariant
//! A result shares nothing with an object of a table, since it outlives the table's lock.

use super::super::object::Object;
use super::{Action, Code, Op, Place, Program, Test, WHOLE};
use crate::cx::Cx;
use purlin_kernel::accounts::{self, Kind as Account};
use purlin_term::copy::{self, copy_whole};
use purlin_term::{Alloc, NIL, Term, am, compare, map};
use smallvec::{SmallVec, smallvec};

/// The term that a program is run against.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// An object in a locked table: the result is a copy.
    Object(&'a Object),
    /// A term on the caller's heap: the result may share with it.
    Local(Term),
    /// The arguments of a call, on the caller's heap, as a tuple and as a list.
    Call(Term, Term),
}

/// The services of tracing for programs of its dialect. The methods are called while a body runs.
pub trait Host {
    /// Performs an action. `None` if it fails.
    fn action(&mut self, cx: &mut Cx, action: Action, args: &[Term]) -> Option<Term>;
}

/// For the dialect of tables, whose programs contain no actions.
pub(crate) struct NoHost;

impl Host for NoHost {
    fn action(&mut self, _: &mut Cx, _: Action, _: &[Term]) -> Option<Term> {
        None
    }
}

/// The working memory of programs, kept from one term to the next.
#[derive(Default)]
pub struct Runner {
    slots: SmallVec<[Term; 8]>,
    vars: SmallVec<[Term; 8]>,
    stack: SmallVec<[Term; 8]>,
}

/// The value of an operation that fails in a body. In a guard, a failure is no match.
const FAILED: Term = am::EXIT_UC;

/// The whole subject; a copy of an object if `copy`.
#[inline]
fn whole(cx: &mut Cx, s: Subject, copy: bool) -> Term {
    match s {
        Subject::Object(o) if copy => {
            accounts::copied(cx, Account::TableOut, o.copied_words(), NIL);
            o.copy_to(cx)
        }
        Subject::Object(o) => o.tuple(),
        Subject::Local(t) | Subject::Call(_, t) => t,
    }
}

/// A clause gave no result.
struct NoMatch;

impl Runner {
    pub fn new(p: &Program) -> Runner {
        Runner {
            slots: smallvec![NIL; p.slots],
            vars: smallvec![NIL; p.vars],
            stack: SmallVec::new(),
        }
    }

    /// The result of the first clause whose head and guard hold. In the dialect of tracing, `true`
    /// if the body leaves no message.
    pub fn run(
        &mut self,
        cx: &mut Cx,
        p: &Program,
        s: Subject,
        host: &mut dyn Host,
    ) -> Option<Term> {
        for c in &p.clauses {
            if let Ok(t) = self.clause(cx, c, s, host) {
                return Some(t);
            }
        }
        None
    }

    #[inline]
    fn clause(
        &mut self,
        cx: &mut Cx,
        c: &Code,
        s: Subject,
        host: &mut dyn Host,
    ) -> Result<Term, NoMatch> {
        let root = match s {
            Subject::Object(o) => o.tuple(),
            Subject::Local(t) => t,
            Subject::Call(_, list) if c.single => list,
            Subject::Call(tuple, _) => tuple,
        };
        self.slots[0] = root;
        if !self.matches(&c.tests) {
            return Err(NoMatch);
        }
        let local = !matches!(s, Subject::Object(_));
        if !c.guard.is_empty() {
            let copy = c.guard_builds && !local;
            self.code(cx, c, &c.guard, s, true, copy, host)?;
        }
        self.code(cx, c, &c.body, s, false, !local, host)
    }

    fn matches(&mut self, tests: &[Test]) -> bool {
        let (slots, vars) = (&mut self.slots[..], &mut self.vars[..]);
        let value = |slots: &[Term], p: Place| {
            let t = slots[p.slot as usize];
            if p.word == WHOLE {
                return t;
            }
            // SAFETY: the slot was filled by a test that found a tuple or cons with such a word,
            // and the term is in hand.
            unsafe { *t.ptr().add(p.word as usize) }
        };
        for t in tests {
            match *t {
                Test::Tuple { at, arity, to } => {
                    let t = value(slots, at);
                    if t.as_tuple().map(|e| e.len()) != Some(arity) {
                        return false;
                    }
                    slots[to as usize] = t;
                }
                Test::Prefix { at, arity, to } => {
                    let t = value(slots, at);
                    if t.as_tuple().is_none_or(|e| e.len() < arity) {
                        return false;
                    }
                    slots[to as usize] = t;
                }
                Test::Cons { at, to } => {
                    let t = value(slots, at);
                    if !t.is_list_ptr() {
                        return false;
                    }
                    slots[to as usize] = t;
                }
                Test::Map { at, size, to } => {
                    let t = value(slots, at);
                    if t.map_size().is_none_or(|n| n < size) {
                        return false;
                    }
                    slots[to as usize] = t;
                }
                Test::Key { map: m, key, to } => match map::get(slots[m as usize], key) {
                    Some(v) => slots[to as usize] = v,
                    None => return false,
                },
                Test::Bind { at, var } => vars[var as usize] = value(slots, at),
                Test::Same { at, var } => {
                    if !compare::eq_exact(value(slots, at), vars[var as usize]) {
                        return false;
                    }
                }
                Test::Immed { at, is } => {
                    if value(slots, at) != is {
                        return false;
                    }
                }
                Test::Equal { at, to } => {
                    if !compare::eq_exact(value(slots, at), to) {
                        return false;
                    }
                }
                Test::Float { at, bits } => {
                    if value(slots, at).as_float().map(f64::to_bits) != Some(bits) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The value of a variable, on the caller's heap if `copy`; copied at most once.
    #[inline]
    fn var(&mut self, cx: &mut Cx, v: usize, copied: &mut u64, copy: bool) -> Term {
        let t = self.vars[v];
        if !copy || t.is_immed() {
            return t;
        }
        if v < 64 {
            if *copied >> v & 1 == 0 {
                *copied |= 1 << v;
                self.vars[v] = copy::copy(t, cx);
            }
            return self.vars[v];
        }
        copy::copy(t, cx)
    }

    /// Runs a guard, whose result is ignored, or a body. `copy`: parts of the subject are copied.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call site each for guard and body"
    )]
    fn code(
        &mut self,
        cx: &mut Cx,
        c: &Code,
        ops: &[Op],
        s: Subject,
        guard: bool,
        copy: bool,
        host: &mut dyn Host,
    ) -> Result<Term, NoMatch> {
        let mut copied = 0u64;
        let mut result = am::TRUE;
        self.stack.clear();
        let mut pc = 0;
        while let Some(&op) = ops.get(pc) {
            pc += 1;
            match op {
                Op::Const(t) => {
                    // A constant belongs to the program: a result that outlives the program cannot
                    // refer to it.
                    let t = if t.is_immed() || guard && !c.guard_builds {
                        t
                    } else {
                        copy_whole(t, cx)
                    };
                    self.stack.push(t);
                }
                Op::Var(v) => {
                    let t = self.var(cx, v as usize, &mut copied, copy);
                    self.stack.push(t);
                }
                Op::Whole => {
                    let t = whole(cx, s, copy);
                    self.stack.push(t);
                }
                Op::Bindings => {
                    let l = self.bindings(cx, c.bound.len(), &mut copied, copy);
                    self.stack.push(l);
                }
                Op::Cons => {
                    let t = self.pop();
                    let h = self.pop();
                    let l = cx.cons(h, t);
                    self.stack.push(l);
                }
                Op::Tuple(n) => {
                    let at = self.stack.len() - n;
                    let t = cx.tuple(&self.stack[at..]);
                    self.stack.truncate(at);
                    self.stack.push(t);
                }
                Op::Map(n) => {
                    let at = self.stack.len() - 2 * n;
                    let pairs: Vec<(Term, Term)> =
                        self.stack[at..].chunks(2).map(|p| (p[0], p[1])).collect();
                    let t = map::from_pairs(cx, &pairs);
                    self.stack.truncate(at);
                    self.stack.push(t);
                }
                Op::Call(f, n) => {
                    let at = self.stack.len() - n;
                    let r = f.call(cx, &self.stack[at..]);
                    self.stack.truncate(at);
                    self.push(r, guard)?;
                }
                Op::And(n) | Op::Or(n) => {
                    let r = self.and_or(n, matches!(op, Op::And(_)));
                    self.push(r, guard)?;
                }
                Op::AndAlso(to) | Op::OrElse(to) => {
                    let end = matches!(op, Op::OrElse(_));
                    match self.stack.last().and_then(|t| t.as_bool()) {
                        Some(b) if b == end => pc = to,
                        Some(_) => {
                            self.stack.pop();
                        }
                        None if guard => return Err(NoMatch),
                        None => {
                            self.stack.pop();
                            self.stack.push(FAILED);
                            pc = to;
                        }
                    }
                }
                Op::SelfPid => {
                    let t = cx.self_pid();
                    self.stack.push(t);
                }
                Op::Action(a, n) => {
                    let at = self.stack.len() - n;
                    let r = match a {
                        Action::Message => {
                            result = self.stack[at];
                            Some(am::TRUE)
                        }
                        _ => host.action(cx, a, &self.stack[at..]),
                    };
                    self.stack.truncate(at);
                    self.push(r, guard)?;
                }
                Op::Check => {
                    if self.pop() != am::TRUE {
                        return Err(NoMatch);
                    }
                }
                Op::Drop => {
                    self.stack.pop();
                }
                Op::Result => result = self.pop(),
            }
        }
        Ok(result)
    }

    /// Pushes the result of an operation, or handles its failure.
    #[inline]
    fn push(&mut self, r: Option<Term>, guard: bool) -> Result<(), NoMatch> {
        match r {
            Some(t) => self.stack.push(t),
            None if guard => return Err(NoMatch),
            None => self.stack.push(FAILED),
        }
        Ok(())
    }

    /// Takes `n` operands off the stack. Returns their conjunction or disjunction, `None` if one is
    /// no boolean.
    fn and_or(&mut self, n: usize, and: bool) -> Option<Term> {
        let at = self.stack.len() - n;
        let mut r = Some(and);
        for t in self.stack.drain(at..) {
            match t.as_bool() {
                Some(b) if b != and => r = r.map(|_| b),
                Some(_) => {}
                None => r = None,
            }
        }
        r.map(Term::bool)
    }

    /// The values of the first `n` variables as a list.
    fn bindings(&mut self, cx: &mut Cx, n: usize, copied: &mut u64, copy: bool) -> Term {
        let mut l = NIL;
        for v in (0..n).rev() {
            let t = self.var(cx, v, copied, copy);
            l = cx.cons(t, l);
        }
        l
    }

    #[inline(always)]
    fn pop(&mut self) -> Term {
        // The compiler emits no operation without its operands.
        self.stack.pop().unwrap_or(NIL)
    }
}
