//! Natives of budgets: `purlin:budget/1` and those that join, show, change and end one. See
//! `crates/kernel/src/accounting/budgets`.
//!
//! # Who may do what
//! A budget is known by a reference, and `budgets/0` lists only those that concern the caller: its
//! own, those above it and those below it. A process may give itself, and what it spawns, to a
//! budget below its own, and may change or end one below its own. So nothing leaves its budget or
//! raises its own limits.

use crate::bifs;
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::options::{BudgetFlag, OverMessages};
use crate::signal::send;
use purlin_kernel::budgets::{self, Counted, Held, Limits, NO_LIMIT, Over, ROOT, Whose};
use purlin_kernel::system::memory;
use purlin_term::frag::OwnedTerm;
use purlin_term::{Alloc, Term, am, atom, copy, map};
use std::sync::atomic::Ordering;

lazy_atoms! {
    name = "name";
    pub(crate) cpu = "cpu";
    cpu_weight = "cpu_weight";
    notify = "notify";
    messages = "messages";
    over_messages = "over_messages";
    wait = "wait";
    drop_ = "drop";
    parent = "parent";
    limits = "limits";
    use_ = "use";
    peak = "peak";
    reached = "reached";
    ended = "ended";
    waited = "waited";
    dropped = "dropped";
    exited = "exited";
    circles = "circles";
    cpu_ms = "cpu_ms";
}

/// Maximum percentage of a limit of processor time: that of a thousand processors.
const MOST_PERCENT: i64 = 100_000;

/// Maximum weight, as that of a control group.
const MOST_WEIGHT: i64 = 10_000;

/// The words of `over_messages`.
fn over_of(t: Term) -> Option<Over> {
    [
        (wait(), Over::Wait),
        (drop_(), Over::Drop),
        (am::EXIT, Over::Exit),
    ]
    .into_iter()
    .find(|o| o.0 == t)
    .map(|o| o.1)
}

fn over_atom(o: Over) -> Term {
    match o {
        Over::Wait => wait(),
        Over::Drop => drop_(),
        Over::Exit => am::EXIT,
    }
}

/// A limit: a number, or `infinity`.
fn limit_of(t: Term) -> Option<i64> {
    if t == am::INFINITY {
        return Some(NO_LIMIT);
    }
    t.as_small().filter(|&n| n >= 0)
}

fn limit_term<A: Alloc + ?Sized>(to: &mut A, n: i64) -> Term {
    match n {
        NO_LIMIT => am::INFINITY,
        n => to.int(n),
    }
}

/// Reads a map of limits. Returns them and the name, if there is one. `None` if a key is unknown or
/// a value is no limit.
fn read_limits(t: Term) -> Option<(Limits, Option<Term>)> {
    if !t.is_map() {
        return None;
    }
    let (mut l, mut called) = (Limits::default(), None);
    for (k, v) in map::iter(t) {
        if k == name() {
            called = Some(v);
        } else if k == messages() {
            l.messages = Some(limit_of(v)?);
        } else if k == cpu() {
            l.cpu =
                Some(limit_of(v).filter(|&n| (1..=MOST_PERCENT).contains(&n) || n == NO_LIMIT)?);
        } else if k == cpu_weight() {
            let weight = v.as_small().filter(|n| (1..=MOST_WEIGHT).contains(n))?;
            l.weight = Some(weight);
        } else if k == over_messages() {
            l.over = Some(over_of(v)?);
        } else if k == notify() {
            if !v.is_local_pid() && v != am::UNDEFINED {
                return None;
            }
            l.notify = Some(v);
        } else {
            let text = k.is_atom().then(|| atom::name(k))?;
            let (what, _) = Counted::ALL.iter().find(|c| c.1 == text)?;
            l.counted[*what as usize] = Some(limit_of(v)?);
        }
    }
    Some((l, called))
}

/// Returns the budget that a term stands for; `badarg` if there is none.
fn found(t: Term) -> Result<Held, Fail> {
    budgets::find(t).ok_or(Fail::Badarg)
}

/// Returns a budget below that of the caller.
fn below(cx: &mut Cx, t: Term) -> Result<Held, Fail> {
    let b = found(t)?;
    let mine = budgets::of(cx.proc.get());
    match b.index() != mine && budgets::is_within(b.index(), mine) {
        true => Ok(b),
        false => Err(Fail::Badarg),
    }
}

/// The reference of a budget; `undefined` for the root.
fn reference(cx: &mut Cx, index: u32) -> Term {
    match budgets::get(index).and_then(budgets::Budget::key) {
        Some(k) => cx.local_ref(k.numbers()),
        None => am::UNDEFINED,
    }
}

/// Prepares the C library for limits that a budget gets. What is freed must go back to the system:
/// the next block of one that grows does not fit where the last one was.
fn prepare(l: &Limits) {
    let memory = l.counted[Counted::Memory as usize];
    if memory.is_some_and(|n| n != NO_LIMIT) {
        memory::give_back_at_once();
    }
}

fn budget_1(cx: &mut Cx, [what]: [Term; 1]) -> BifResult {
    let (limits, called) = read_limits(what).ok_or(Fail::Badarg)?;
    let mine = budgets::of(cx.proc.get());
    let called = OwnedTerm::copy_of(called.unwrap_or(am::UNDEFINED));
    prepare(&limits);
    let (_, key) = budgets::make(mine, called, &limits).map_err(|_| Fail::SystemLimit)?;
    let r = cx.local_ref(key.numbers());
    Ok(cx.tuple(&[am::OK, r]))
}

fn join_budget_1(cx: &mut Cx, [which]: [Term; 1]) -> BifResult {
    let b = found(which)?;
    if !budgets::is_within(b.index(), budgets::of(cx.proc.get())) {
        return Err(Fail::Badarg);
    }
    match budgets::join(cx.proc.get(), b.index()) {
        true => Ok(am::TRUE),
        false => Err(Fail::SystemLimit),
    }
}

/// A map with these keys and values.
fn map_of(cx: &mut Cx, pairs: &[(Term, Term)]) -> Term {
    map::from_pairs(cx, pairs)
}

fn budget_info_1(cx: &mut Cx, [which]: [Term; 1]) -> BifResult {
    let held = found(which)?;
    let mine = budgets::of(cx.proc.get());
    let index = held.index();
    if !budgets::is_within(index, mine) && !budgets::is_within(mine, index) {
        return Err(Fail::Badarg);
    }
    let b = budgets::get(index).ok_or(Fail::Badarg)?;
    let mut columns: [Vec<(Term, Term)>; 4] = Default::default();
    for (what, text) in Counted::ALL {
        let key = atom::intern(text);
        for (column, n) in columns.iter_mut().zip(b.account(what)) {
            column.push((key, limit_term(cx, n)));
        }
    }
    let [mut limits_, mut used, peaks, mut reached_] = columns;
    let (percent, nanoseconds, throttled) = b.cpu();
    limits_.push((cpu(), limit_term(cx, percent)));
    limits_.push((cpu_weight(), cx.int(b.weight())));
    used.push((cpu_ms(), cx.int(nanoseconds / 1_000_000)));
    reached_.push((cpu(), cx.uint(throttled)));
    let (most, over) = b.messages();
    limits_.push((messages(), limit_term(cx, most)));
    limits_.push((over_messages(), over_atom(over)));
    let e = &b.events;
    for (key, n) in [
        (waited(), &e.waited),
        (dropped(), &e.dropped),
        (exited(), &e.exited),
        (circles(), &e.circles),
    ] {
        reached_.push((key, cx.uint(n.load(Ordering::Relaxed))));
    }
    let called = b.with_name(|t| copy::copy(t, cx));
    let above = match b.parent() {
        ROOT => am::UNDEFINED,
        p => reference(cx, p),
    };
    let parts = [
        (limits(), map_of(cx, &limits_)),
        (use_(), map_of(cx, &used)),
        (peak(), map_of(cx, &peaks)),
        (reached(), map_of(cx, &reached_)),
        (name(), called),
        (parent(), above),
        (notify(), b.notify().unwrap_or(am::UNDEFINED)),
        (ended(), Term::bool(b.has_ended())),
    ];
    Ok(map_of(cx, &parts))
}

fn budgets_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let mine = budgets::of(cx.proc.get());
    let mut v = Vec::new();
    for i in budgets::all() {
        if (budgets::is_within(i, mine) || budgets::is_within(mine, i))
            && let Some(k) = budgets::get(i).and_then(budgets::Budget::key)
        {
            v.push(cx.local_ref(k.numbers()));
        }
    }
    cx.bump(v.len());
    Ok(cx.list(&v))
}

fn set_budget_2(cx: &mut Cx, [which, what]: [Term; 2]) -> BifResult {
    let b = below(cx, which)?;
    let (limits, called) = read_limits(what).ok_or(Fail::Badarg)?;
    if called.is_some() {
        return Err(Fail::Badarg);
    }
    let b = budgets::get(b.index()).ok_or(Fail::Badarg)?;
    prepare(&limits);
    b.set(&limits);
    Ok(am::OK)
}

fn end_budget_1(cx: &mut Cx, [which]: [Term; 1]) -> BifResult {
    let b = below(cx, which)?;
    let ended = budgets::end(b.index());
    let me = cx.self_pid();
    let members = budgets::members(b.index());
    cx.bump(members.len());
    for pid in members {
        send::exit_signal(me, pid, am::KILL);
    }
    crate::port::end_of_budget(b.index());
    crate::ets::end_of_budget(b.index());
    budgets::release_ended(&ended);
    Ok(am::OK)
}

/// Makes the budgets that `+Fbudget` asks for.
pub fn begin(flags: &[BudgetFlag]) {
    atom::charged_by(budgets::charge_atom);
    for f in flags {
        let n = |n: Option<u64>| Some(n.map_or(NO_LIMIT, |n| n as i64));
        let mut l = Limits {
            counted: [Some(NO_LIMIT); Counted::ALL.len()],
            messages: n(f.messages),
            cpu: n(f.cpu),
            weight: f.cpu_weight.map(|w| w as i64),
            notify: None,
            over: Some(match f.over_messages {
                OverMessages::Wait => Over::Wait,
                OverMessages::Drop => Over::Drop,
                OverMessages::Exit => Over::Exit,
            }),
        };
        for (what, limit) in [
            (Counted::Memory, f.memory),
            (Counted::Processes, f.processes),
            (Counted::Atoms, f.atoms),
            (Counted::Ports, f.ports),
            (Counted::Tables, f.tables),
        ] {
            l.counted[what as usize] = n(limit);
        }
        prepare(&l);
        let called = atom::intern(&f.name);
        let whose = match f.application {
            true => Whose::Application,
            false => Whose::Name,
        };
        // A command line has no room for as many as there may be budgets.
        if let Ok((index, _)) = budgets::make(ROOT, OwnedTerm::copy_of(called), &l) {
            budgets::add_rule(whose, called, index);
        }
    }
}

bifs! {
    Plain "purlin":"budget"/1 = budget_1;
    Plain "purlin":"join_budget"/1 = join_budget_1;
    Plain "purlin":"budget_info"/1 = budget_info_1;
    Plain "purlin":"budgets"/0 = budgets_0;
    Plain "purlin":"set_budget"/2 = set_budget_2;
    Plain "purlin":"end_budget"/1 = end_budget_1;
}
