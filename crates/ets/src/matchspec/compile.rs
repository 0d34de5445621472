//! Compiles a match specification to a [`Program`] ([`compile`]), or lists its errors ([`lint`]).
//!
//! Each clause becomes the tests of its head, then the operations of guard and body for a machine
//! with a stack. Heads and expressions are walked with lists of what is left to do, so no depth of
//! nesting costs native stack. Constant expressions are folded.
//!
//! # Invariants
//! - A program refers to no term of the specification: constants are copied to it.
//! - Errors are stock's messages, in stock's order. Stock processes operands from last to first,
//!   which shows in that order only, so [`lint`] does the same and drops the code.

use super::functions::Function;
use super::{
    Action, Code, Dialect, Op, Ops, Place, Program, Test, WHOLE, bindings, variable, whole,
};
use purlin_term::copy::copy_whole;
use purlin_term::frag::Fragment;
use purlin_term::print::{LONGEST_TEXT, Style, format_term};
use purlin_term::release::{self, PREFIXES_OF_ARGUMENTS, WIDER_MATCH_SPECS};
use purlin_term::{Alloc, NIL, Term, am, atom, map};
use smallvec::{SmallVec, smallvec};

/// One clause of a specification.
#[derive(Clone, Copy)]
pub struct Clause {
    pub head: Term,
    pub guard: Term,
    pub body: Term,
}

/// The clauses of a specification.
pub(crate) type Clauses = SmallVec<[Clause; 1]>;

/// A program, and the clauses it was made of.
pub struct Compiled {
    pub program: Program,
    pub clauses: Clauses,
}

/// Compiles a specification. `None` if it is invalid.
pub fn compile(spec: Term, dialect: Dialect) -> Option<Compiled> {
    let mut c = Compiler::new(dialect);
    let clauses = c.clauses(spec)?;
    // A specification is compiled only if a heap of this many words could hold it.
    let program = c.program(&clauses);
    c.errors.is_empty().then_some(Compiled { program, clauses })
}

/// The errors of a specification: stock's messages, in order.
pub fn lint(spec: Term, dialect: Dialect) -> Vec<String> {
    let mut c = Compiler::new(dialect);
    c.backwards = true;
    if let Some(clauses) = c.clauses(spec) {
        c.program(&clauses);
    }
    c.errors
}

struct Compiler {
    dialect: Dialect,
    errors: Vec<String>,
    constants: Fragment,
    // State of the present clause:
    guard: bool,
    bound: SmallVec<[u32; 8]>,
    ops: Ops,
    builds: bool,
    /// Whether operands are processed from last to first, as in stock, which shows in the order of
    /// errors. The resulting code is useless.
    backwards: bool,
}

/// The remaining work on an expression.
enum Work {
    Expr(Term),
    /// Folds or builds the values that the code from that position on produces.
    Cons(usize),
    Tuple(usize, usize),
    Map(usize, usize),
    Emit(Op),
    /// The next operand of a short-circuiting operator: patches come last.
    Branch {
        and: bool,
        jumps: usize,
    },
}

type Works = SmallVec<[Work; 8]>;

/// Parts of a head that are still to be looked at.
type Todo = SmallVec<[(Term, Place); 16]>;

fn show(t: Term) -> String {
    format_term(t, Style::Display, LONGEST_TEXT)
}

/// Whether a clause's head matches calls with these arguments and possibly more: a list that ends
/// in `'_'`.
fn is_prefix(head: Term) -> bool {
    if !release::has(PREFIXES_OF_ARGUMENTS) {
        return false;
    }
    let mut it = head.list_iter();
    it.by_ref().for_each(drop);
    it.tail() == am::UNDERSCORE
}

impl Compiler {
    fn new(dialect: Dialect) -> Compiler {
        Compiler {
            dialect,
            errors: Vec::new(),
            constants: Fragment::new(),
            guard: false,
            bound: SmallVec::new(),
            ops: SmallVec::new(),
            builds: false,
            backwards: false,
        }
    }

    fn error(&mut self, text: impl Into<String>) {
        self.errors.push(text.into());
    }

    /// Splits the specification into clauses.
    fn clauses(&mut self, spec: Term) -> Option<Clauses> {
        if !spec.is_list_ptr() {
            self.error("Match programs are not in a list.");
            return None;
        }
        let mut items: SmallVec<[Term; 4]> = SmallVec::new();
        let mut it = spec.list_iter();
        items.extend(it.by_ref());
        if !it.tail().is_nil() {
            self.error("Match programs are not in a proper list.");
            return None;
        }
        let mut out = SmallVec::with_capacity(items.len());
        for t in items {
            let Some(&[head, guard, body]) = t.as_tuple() else {
                self.error("Match program part is not a tuple of arity 3.");
                return None;
            };
            if self.dialect == Dialect::Trace
                && head.is_list_ptr()
                && head.list_to_vec().is_none()
                && !is_prefix(head)
            {
                self.error(format!(
                    "Match expression part {} is not a proper list.",
                    show(head)
                ));
                return None;
            }
            out.push(Clause { head, guard, body });
        }
        Some(out)
    }

    fn program(&mut self, clauses: &[Clause]) -> Program {
        let mut p = Program {
            clauses: SmallVec::with_capacity(clauses.len()),
            slots: 1,
            vars: 0,
            constants: Fragment::new(),
        };
        for c in clauses {
            let code = self.clause(c, &mut p.slots);
            if !self.errors.is_empty() {
                // As in stock, only one faulty clause is reported.
                break;
            }
            p.vars = p.vars.max(code.bound.len());
            p.clauses.push(code);
        }
        p.constants = std::mem::take(&mut self.constants);
        p
    }

    fn clause(&mut self, c: &Clause, slots: &mut usize) -> Code {
        self.bound = variables(c.head);
        let (tests, n) = self.head(c.head);
        *slots = (*slots).max(n);
        let single = c.head == am::UNDERSCORE || variable(c.head).is_some();
        let mut code = Code {
            tests,
            guard: SmallVec::new(),
            body: SmallVec::new(),
            bound: SmallVec::new(),
            guard_builds: false,
            single,
        };
        if self.dialect == Dialect::Trace && !single && !c.head.is_list() && !c.head.is_tuple() {
            self.error("Match head is invalid in this context.");
        }
        if !self.errors.is_empty() {
            return code;
        }
        self.builds = false;
        code.guard = self.code(c.guard, true);
        code.guard_builds = self.builds;
        if self.dialect == Dialect::Table && !c.body.is_list_ptr() {
            self.error("Body clause does not return anything.");
            return code;
        }
        code.body = self.code(c.body, false);
        code.bound = std::mem::take(&mut self.bound);
        code
    }

    fn constant(&mut self, t: Term) -> Term {
        copy_whole(t, &mut self.constants)
    }

    /// The tests of a head, and the number of slots they need. Arguments of a traced call are
    /// matched as a tuple.
    fn head(&mut self, head: Term) -> (SmallVec<[Test; 8]>, usize) {
        let mut tests = SmallVec::new();
        let mut seen: SmallVec<[bool; 16]> = smallvec![false; self.bound.len()];
        let mut slots = 1u32;
        let root = Place {
            slot: 0,
            word: WHOLE,
        };
        let mut todo: Todo = SmallVec::new();
        if self.dialect == Dialect::Trace && head.is_list() {
            let args: SmallVec<[Term; 8]> = head.list_iter().collect();
            let (at, arity, to) = (root, args.len(), slots);
            tests.push(match is_prefix(head) {
                true => Test::Prefix { at, arity, to },
                false => Test::Tuple { at, arity, to },
            });
            push_elements(&mut todo, &args, slots);
            slots += 1;
        } else {
            todo.push((head, root));
        }
        while let Some((t, at)) = todo.pop() {
            if let Some(v) = variable(t) {
                let var = self.var(v);
                let first = !std::mem::replace(&mut seen[var as usize], true);
                tests.push(if first {
                    Test::Bind { at, var }
                } else {
                    Test::Same { at, var }
                });
            } else if t == am::UNDERSCORE {
            } else if t.is_immed() {
                tests.push(Test::Immed { at, is: t });
            } else if let Some((h, tail)) = t.as_cons() {
                tests.push(Test::Cons { at, to: slots });
                let place = |word| Place { slot: slots, word };
                todo.push((tail, place(1)));
                todo.push((h, place(0)));
                slots += 1;
            } else if let Some(e) = t.as_tuple() {
                tests.push(Test::Tuple {
                    at,
                    arity: e.len(),
                    to: slots,
                });
                push_elements(&mut todo, e, slots);
                slots += 1;
            } else if let Some(size) = t.map_size() {
                tests.push(Test::Map {
                    at,
                    size,
                    to: slots,
                });
                let this = slots;
                slots += 1;
                for (k, v) in map::iter(t) {
                    if variable(k).is_some() {
                        self.error("Variable found in map key.");
                        continue;
                    } else if k == am::UNDERSCORE {
                        self.error("Underscore found in map key.");
                        continue;
                    }
                    let key = self.constant(k);
                    tests.push(Test::Key {
                        map: this,
                        key,
                        to: slots,
                    });
                    let at = Place {
                        slot: slots,
                        word: WHOLE,
                    };
                    todo.push((v, at));
                    slots += 1;
                }
            } else if let Some(f) = t.as_float() {
                tests.push(Test::Float {
                    at,
                    bits: f.to_bits(),
                });
            } else {
                let to = self.constant(t);
                tests.push(Test::Equal { at, to });
            }
        }
        (tests, slots as usize)
    }

    /// The index of a variable of the head.
    fn var(&self, v: u32) -> u32 {
        self.bound.binary_search(&v).unwrap_or(0) as u32
    }

    /// Code for the expressions of a guard or body.
    fn code(&mut self, list: Term, guard: bool) -> Ops {
        self.guard = guard;
        self.ops = SmallVec::new();
        if !list.is_list() {
            self.error("Match expression is not a list.");
            return SmallVec::new();
        }
        let mut it = list.list_iter();
        for t in it.by_ref() {
            self.expr(t);
            self.ops.push(if guard { Op::Check } else { Op::Drop });
        }
        if !it.tail().is_nil() {
            self.error("Match expression is not a proper list.");
        }
        if !guard
            && self.dialect == Dialect::Table
            && let Some(last) = self.ops.last_mut()
        {
            *last = Op::Result;
        }
        std::mem::take(&mut self.ops)
    }

    fn expr(&mut self, t: Term) {
        let mut work: Works = smallvec![Work::Expr(t)];
        // Positions of branches that are still open.
        let mut jumps: SmallVec<[usize; 4]> = SmallVec::new();
        while let Some(w) = work.pop() {
            match w {
                Work::Expr(t) => self.term(t, &mut work),
                Work::Emit(op) => self.ops.push(op),
                Work::Cons(from) => {
                    if let [Op::Const(h), Op::Const(t)] = self.ops[from..] {
                        self.ops.truncate(from);
                        let c = self.constants.cons(h, t);
                        self.ops.push(Op::Const(c));
                    } else {
                        self.builds = true;
                        self.ops.push(Op::Cons);
                    }
                }
                Work::Tuple(from, n) => match self.fold(from, n) {
                    Some(c) => {
                        let c = self.constants.tuple(&c);
                        self.ops.push(Op::Const(c));
                    }
                    None => {
                        self.builds = true;
                        self.ops.push(Op::Tuple(n));
                    }
                },
                Work::Map(from, n) => match self.fold(from, 2 * n) {
                    Some(c) => {
                        let pairs: Vec<_> = c.chunks(2).map(|p| (p[0], p[1])).collect();
                        let c = map::from_pairs(&mut self.constants, &pairs);
                        self.ops.push(Op::Const(c));
                    }
                    None => {
                        self.builds = true;
                        self.ops.push(Op::Map(n));
                    }
                },
                Work::Branch { and, jumps: n } => {
                    if n == usize::MAX {
                        jumps.push(self.ops.len());
                        self.ops
                            .push(if and { Op::AndAlso(0) } else { Op::OrElse(0) });
                    } else {
                        let to = self.ops.len();
                        for at in jumps.drain(jumps.len() - n..) {
                            if let Op::AndAlso(j) | Op::OrElse(j) = &mut self.ops[at] {
                                *j = to;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Takes back the code from `from` on and returns its values, if it pushes exactly `n`
    /// constants.
    fn fold(&mut self, from: usize, n: usize) -> Option<Vec<Term>> {
        let ops = &self.ops[from..];
        let c: Vec<Term> = ops
            .iter()
            .map_while(|o| match o {
                Op::Const(t) => Some(*t),
                _ => None,
            })
            .collect();
        if ops.len() != n || c.len() != n {
            return None;
        }
        self.ops.truncate(from);
        Some(c)
    }

    /// Emits, or plans, the code of one term.
    fn term(&mut self, t: Term, work: &mut Works) {
        let here = self.ops.len();
        if let Some((h, tail)) = t.as_cons() {
            work.push(Work::Cons(here));
            work.push(Work::Expr(tail));
            work.push(Work::Expr(h));
        } else if let Some(n) = t.map_size() {
            work.push(Work::Map(here, n));
            for (k, v) in map::iter(t) {
                work.push(Work::Expr(v));
                work.push(Work::Expr(k));
            }
        } else if let Some(e) = t.as_tuple() {
            match *e {
                [inner] if inner.is_tuple() => {
                    let e = inner.as_tuple().unwrap_or_default();
                    work.push(Work::Tuple(here, e.len()));
                    self.operands(e, work);
                }
                [f, ..] if f.is_atom() && variable(f).is_none() => self.call(t, f, &e[1..], work),
                _ => {
                    let text = format!(
                        "{} is neither a function call, nor a tuple (tuples are written {{{{ ... }}}}).",
                        show(t)
                    );
                    self.failed(text);
                }
            }
        } else if let Some(v) = variable(t) {
            if self.bound.binary_search(&v).is_ok() {
                self.ops.push(Op::Var(self.var(v)));
            } else {
                self.failed(format!("Variable ${v} is unbound."));
            }
        } else if t.is_immed() {
            self.ops.push(match () {
                () if t == whole() => Op::Whole,
                () if t == bindings() => {
                    self.builds = true;
                    Op::Bindings
                }
                () => Op::Const(t),
            });
        } else {
            let c = self.constant(t);
            self.ops.push(Op::Const(c));
        }
    }

    fn operands(&self, args: &[Term], work: &mut Works) {
        if self.backwards {
            work.extend(args.iter().map(|&x| Work::Expr(x)));
        } else {
            work.extend(args.iter().rev().map(|&x| Work::Expr(x)));
        }
    }

    /// Records an error, and emits a placeholder for what cannot be compiled.
    fn failed(&mut self, text: String) {
        self.error(text);
        self.ops.push(Op::Bindings);
    }

    /// A function call or special form.
    fn call(&mut self, t: Term, f: Term, args: &[Term], work: &mut Works) {
        let name = atom::name(f);
        let n = args.len();
        match name {
            "const" => {
                if n != 1 {
                    return self.failed(format!(
                        "Special form 'const' called with more than one argument in {}.",
                        show(t)
                    ));
                }
                let c = self.constant(args[0]);
                self.ops.push(Op::Const(c));
            }
            "and" | "or" => {
                if n == 0 {
                    return self.failed(format!(
                        "Special form '{name}' called without arguments in {}.",
                        show(t)
                    ));
                }
                work.push(Work::Emit(if name == "and" {
                    Op::And(n)
                } else {
                    Op::Or(n)
                }));
                self.operands(args, work);
            }
            "andalso" | "andthen" | "orelse" => {
                let and = name != "orelse";
                if n == 0 {
                    return self.failed(format!(
                        "Special form '{}' called without arguments in {}.",
                        if and { "andalso" } else { "orelse" },
                        show(t)
                    ));
                }
                work.push(Work::Branch { and, jumps: n - 1 });
                for (i, &x) in args.iter().enumerate().rev() {
                    if i + 1 < n {
                        work.push(Work::Branch {
                            and,
                            jumps: usize::MAX,
                        });
                    }
                    work.push(Work::Expr(x));
                }
            }
            "self" => {
                if n != 0 {
                    return self.failed(format!(
                        "Special form 'self' called with arguments in {}.",
                        show(t)
                    ));
                }
                self.ops.push(Op::SelfPid);
            }
            _ => match action(name) {
                Some((a, arities)) => self.action(t, name, a, arities, args, work),
                None => self.function(name, args, work),
            },
        }
    }

    fn function(&mut self, name: &str, args: &[Term], work: &mut Works) {
        let n = args.len();
        let trace_only = match (name, n) {
            ("get_tcw", 0) => Some(Action::GetTcw),
            ("set_tcw", 1) => Some(Action::SetTcw),
            _ => None,
        };
        if let Some(a) = trace_only {
            if self.dialect != Dialect::Trace || a == Action::SetTcw && self.guard {
                return self.failed(format!(
                    "Function {name}/{n} cannot be called in this context."
                ));
            }
            work.push(Work::Emit(Op::Action(a, n)));
        } else {
            let Some(f) = Function::find(name, n) else {
                let shown = purlin_term::print::format_atom(atom::intern(name), Style::Display);
                return self.failed(format!("Function {shown}/{n} does_not_exist."));
            };
            self.builds |= f.builds();
            work.push(Work::Emit(Op::Call(f, n)));
        }
        self.operands(args, work);
    }

    fn action(
        &mut self,
        t: Term,
        name: &str,
        a: Action,
        arities: &[usize],
        args: &[Term],
        work: &mut Works,
    ) {
        // Stock's messages name one of them differently.
        let said = if a == Action::SetSeqToken {
            "set_seq_trace"
        } else {
            name
        };
        let plain = matches!(
            a,
            Action::Message | Action::ReturnTrace | Action::ExceptionTrace | Action::Display
        );
        if self.dialect != Dialect::Trace {
            return self.failed(format!(
                "Special form '{}' used in wrong dialect.",
                if plain { name } else { said }
            ));
        }
        if self.guard && a != Action::IsSeqTrace {
            return self.failed(format!(
                "Special form '{}' called in guard context.",
                if plain { name } else { said }
            ));
        }
        if !arities.contains(&args.len()) {
            let what = if arities == [0] {
                "arguments"
            } else {
                "wrong number of arguments"
            };
            let end = if a == Action::CurrentStacktrace {
                ""
            } else {
                "."
            };
            return self.failed(format!(
                "Special form '{name}' called with {what} in {}{end}",
                show(t)
            ));
        }
        if let (Action::CurrentStacktrace, &[depth]) = (a, args) {
            let wrong = match depth.as_small() {
                None => "non small",
                Some(n) if n < 0 => "negative integer",
                Some(_) => "",
            };
            if !wrong.is_empty() {
                return self.failed(format!(
                    "Special form '{name}' called with {wrong} argument."
                ));
            }
        }
        work.push(Work::Emit(Op::Action(a, args.len())));
        self.operands(args, work);
    }
}

/// Special forms for tracing, and the numbers of arguments they take.
fn action(name: &str) -> Option<(Action, &'static [usize])> {
    Some(match name {
        "message" => (Action::Message, &[1]),
        "return_trace" => (Action::ReturnTrace, &[0]),
        "exception_trace" => (Action::ExceptionTrace, &[0]),
        "is_seq_trace" => (Action::IsSeqTrace, &[0]),
        "set_seq_token" => (Action::SetSeqToken, &[2]),
        "get_seq_token" => (Action::GetSeqToken, &[0]),
        "display" => (Action::Display, &[1]),
        "process_dump" => (Action::ProcessDump, &[0]),
        "enable_trace" => (Action::EnableTrace, &[1, 2]),
        "disable_trace" => (Action::DisableTrace, &[1, 2]),
        "trace" => (Action::Trace, &[2, 3]),
        "caller" => (Action::Caller, &[0]),
        "caller_line" => (Action::CallerLine, &[0]),
        "current_stacktrace" if release::has(WIDER_MATCH_SPECS) => {
            (Action::CurrentStacktrace, &[0, 1])
        }
        "silent" => (Action::Silent, &[1]),
        _ => return None,
    })
}

fn push_elements(todo: &mut Todo, e: &[Term], slot: u32) {
    let at = |i: usize| Place {
        slot,
        word: i as u32 + 1,
    };
    todo.extend(e.iter().enumerate().rev().map(|(i, &x)| (x, at(i))));
}

/// The numbers of the variables of a head, in order.
fn variables(head: Term) -> SmallVec<[u32; 8]> {
    let mut out = SmallVec::new();
    let mut todo: SmallVec<[Term; 16]> = smallvec![head];
    while let Some(t) = todo.pop() {
        if let Some((h, tail)) = t.as_cons() {
            todo.push(tail);
            todo.push(h);
        } else if let Some(e) = t.as_tuple() {
            todo.extend_from_slice(e);
        } else if t.is_map() {
            todo.extend(map::iter(t).map(|(_, v)| v));
        } else if let Some(v) = variable(t) {
            out.push(v);
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// The pattern of `match/2` as a specification.
pub(crate) fn pattern_spec<A: Alloc + ?Sized>(a: &mut A, pattern: Term, body: Term) -> Term {
    let body = a.list(&[body]);
    let clause = a.tuple(&[pattern, NIL, body]);
    a.list(&[clause])
}
