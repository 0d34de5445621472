//! Module `ets`: walks over tables with a match specification, and specifications by themselves.
//!
//! A walk sees at most [`BATCH`] objects at a time, then yields: it traps with a continuation term
//! that says how to continue. The continuations that programs get (of `select/3` and its like) have
//! the shape that `ets:repair_continuation/2` knows:
//!
//! ```text
//! hash table      {Tid, Bucket, Chunk, Spec, Results, Count}                  Bucket -1: the end
//! ordered table   {Tid, LastKey, End, Chunk, Spec, Results, Downwards, Count}
//! ```
//! The latest results come first. A yielding walk appends a 1 if it has fixed the table, else a 0.
//! Nothing in such a term is trusted, since programs may make one up.

use super::table_type;
use super::{there, weigh_growing, weigh_shrinking};
use crate::code::stack;
use crate::cx::{BifResult, Cx, Fail};
use crate::hash::{HashTable, Verdict, Visitor};
use crate::matchspec::compile::pattern_spec;
use crate::matchspec::execution::NoHost;
use crate::matchspec::{
    self, Action, Clause, Dialect, Host, Program, Runner, Shape, Subject, cmp_prefix, keeps_key,
    lint, reaches_beyond, variable,
};
use crate::native_state;
use crate::object::{Object, Owned};
use crate::signal::token;
use crate::tree::{Key, Span, TreeTable};
use crate::{Gone, Kind, Store, Table, Want, table};
use crate::{bifs, code, lazy_atoms};
use purlin_kernel::budgets;
use purlin_term::copy::copy_whole;
use purlin_term::frag::OwnedTerm;
use purlin_term::magic::MagicRef;
use purlin_term::release::{self, ETS_MAPS_LOOKED_UP};
use purlin_term::{Alloc, NIL, Term, am, compare};
use smallvec::SmallVec;
use std::cmp::Ordering;

lazy_atoms! {
    dollar_dollar = "$$";
    dollar_underscore = "$_";
    return_trace = "return_trace";
    exception_trace = "exception_trace";
    purlin = "purlin";
    ets_continue = "ets_continue";
}

/// Maximum number of objects that a walk sees before it yields.
const BATCH: usize = 1000;
/// Number of words that a walk writes before its table is weighed for a budget.
const WEIGHED_WORDS: usize = 1 << 14;

/// A compiled specification, as the value of a magic reference.
struct Spec(Program);

/// The specification behind a magic reference, if there is one.
pub fn specification(m: &MagicRef) -> Option<&Program> {
    m.value.downcast_ref::<Spec>().map(|s| &s.0)
}

/// The objects that can match, according to the heads.
enum Keys {
    All,
    /// Only those with these keys, in this order, no two the same.
    These(SmallVec<[Term; 4]>),
    /// Only those from the first key that the first pattern matches to the last key that the second
    /// matches (ordered tables).
    Span(Term, Term),
}

/// The keys that the clauses restrict a walk to. A map in a key pattern matches larger maps. The
/// objects looked at decide what is found, so the choice is that of stock in the release.
fn keys(t: &Table, clauses: &[Clause]) -> Keys {
    let ordered = t.options.kind == Kind::OrderedSet;
    let mut keys: SmallVec<[Term; 4]> = SmallVec::new();
    let mut all = Shape::default();
    for c in clauses {
        if c.head == am::UNDERSCORE || variable(c.head).is_some() {
            return Keys::All;
        }
        let Some(key) = c.head.as_tuple().and_then(|e| e.get(t.options.keypos - 1)) else {
            continue;
        };
        let shape = Shape::of(*key);
        let bare = *key == am::UNDERSCORE || variable(*key).is_some();
        if bare
            || shape.maps && (shape.variables || !release::has(ETS_MAPS_LOOKED_UP))
            || shape.variables && !ordered
        {
            return Keys::All;
        }
        all.maps |= shape.maps;
        all.variables |= shape.variables;
        keys.push(*key);
    }
    let same = |a: &Term, b: &Term| match ordered {
        true => compare::eq(*a, *b),
        false => compare::eq_exact(*a, *b),
    };
    if ordered && (all.variables || all.maps && keys.iter().any(|k| !same(k, &keys[0]))) {
        return span(&keys);
    }
    let within = extremes(&keys).filter(|_| ordered);
    let mut different = distinct(&keys, ordered);
    if let Some((least, most)) = within {
        different.retain(|&mut k| compare::cmp(k, least).is_ge() && compare::cmp(k, most).is_le());
    }
    Keys::These(different)
}

/// The keys without repetitions, in the order of their first occurrences. In an `ordered` table,
/// keys that compare equal are the same.
fn distinct(keys: &[Term], ordered: bool) -> SmallVec<[Term; 4]> {
    if keys.len() <= 1 {
        return keys.into();
    }
    let compare = |a: Term, b: Term| match ordered {
        true => compare::cmp(a, b),
        false => compare::cmp_exact(a, b),
    };
    let mut all: Vec<(usize, Term)> = keys.iter().copied().enumerate().collect();
    // A stable sort keeps the first of the same keys in front.
    all.sort_by(|a, b| compare(a.1, b.1));
    all.dedup_by(|b, a| compare(a.1, b.1).is_eq());
    all.sort_unstable_by_key(|k| k.0);
    all.into_iter().map(|k| k.1).collect()
}

/// The part of the order to look at for these patterns.
fn span(patterns: &[Term]) -> Keys {
    match extremes(patterns) {
        Some((least, most)) => Keys::Span(least, most),
        None => Keys::These(SmallVec::new()),
    }
}

/// The pattern whose keys begin first, and the one whose keys end last.
fn extremes(patterns: &[Term]) -> Option<(Term, Term)> {
    let farthest = |ends| {
        let all = patterns.iter().copied();
        all.reduce(|so_far, p| {
            if reaches_beyond(p, so_far, ends) {
                p
            } else {
                so_far
            }
        })
    };
    Some((farthest(false)?, farthest(true)?))
}

/// The action of a walk on a matching object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Select,
    Count,
    Delete,
    Replace,
}

/// One batch of a walk in progress.
struct Batch<'a> {
    cx: &'a mut Cx,
    program: &'a Program,
    runner: Runner,
    purpose: Purpose,
    keypos: usize,
    /// Results so far, latest first; and their number, or the number of objects counted, deleted or
    /// replaced.
    list: Term,
    got: usize,
    /// Number of results that suffices for now; 0 means no limit.
    chunk: usize,
    left: usize,
    /// Words of the objects that have replaced others.
    written: usize,
}

impl Batch<'_> {
    /// Ends the batch once much has been written, so that the table is weighed for its budget.
    fn weigh_soon(&mut self, o: &Owned) {
        self.written += o.copied_words();
        if self.written > WEIGHED_WORDS && budgets::on() {
            self.left = 0;
        }
    }
}

impl Visitor for Batch<'_> {
    fn object(&mut self, o: &Object) -> Verdict {
        self.left = self.left.saturating_sub(1);
        let Some(r) = self
            .runner
            .run(self.cx, self.program, Subject::Object(o), &mut NoHost)
        else {
            return Verdict::Keep;
        };
        match self.purpose {
            Purpose::Select => {
                self.list = self.cx.cons(r, self.list);
                self.got += 1;
            }
            Purpose::Count | Purpose::Delete if r != am::TRUE => {}
            Purpose::Count => self.got += 1,
            Purpose::Delete => {
                self.got += 1;
                return Verdict::Delete;
            }
            Purpose::Replace => {
                let key = r.as_tuple().and_then(|e| e.get(self.keypos - 1));
                if key.is_some_and(|k| compare::eq_exact(*k, o.element(self.keypos))) {
                    self.got += 1;
                    let o = Owned::new_shared(self.cx, r);
                    self.weigh_soon(&o);
                    return Verdict::Replace(o);
                }
            }
        }
        Verdict::Keep
    }
    fn go_on(&mut self) -> bool {
        self.left > 0 && (self.chunk == 0 || self.got < self.chunk)
    }
}

/// Where a walk continues.
enum Place {
    Bucket(usize),
    Key(Term),
}

/// A walk: the contents of a continuation.
struct Walk<'a> {
    table: &'a Table,
    purpose: Purpose,
    chunk: usize,
    list: Term,
    got: usize,
    /// Ordered tables: the direction in which objects are seen.
    downwards: bool,
    /// Ordered tables: the key pattern beyond which nothing matches, or nil. If it contains maps,
    /// something may match there. As in stock only the first batch keeps to it; the others check
    /// their position at the end.
    end: Term,
    /// Whether this walk has fixed the table.
    fixed: bool,
    /// Whether it is not the first batch.
    continued: bool,
    /// Keeps the bucket where the walk stopped in place until the walk has fixed the table.
    pin: Option<Pin<'a>>,
}

/// A fixation that a batch left behind.
struct Pin<'a>(&'a HashTable);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.unfix(1);
    }
}

/// How a batch ended.
enum Ended {
    /// Everything was seen.
    Done,
    /// There are enough results and more objects, or it is time to yield.
    At(Place),
}

impl<'a> Walk<'a> {
    fn new(table: &'a Table, purpose: Purpose, chunk: usize, downwards: bool) -> Walk<'a> {
        Walk {
            table,
            purpose,
            chunk,
            list: NIL,
            got: 0,
            downwards,
            end: NIL,
            fixed: false,
            continued: false,
            pin: None,
        }
    }

    fn writes(&self) -> bool {
        matches!(self.purpose, Purpose::Delete | Purpose::Replace)
    }

    /// Sees one batch from `from` on, restricted to `keys`.
    fn batch(
        &mut self,
        cx: &mut Cx,
        program: &Program,
        from: Option<Place>,
        keys: &Keys,
    ) -> Result<Ended, Fail> {
        let t = self.table;
        let only = match keys {
            Keys::These(keys) => Some(&keys[..]),
            _ => None,
        };
        let mut b = Batch {
            runner: Runner::new(program),
            program,
            purpose: self.purpose,
            keypos: t.options.keypos,
            list: self.list,
            got: self.got,
            chunk: self.chunk,
            left: BATCH,
            written: 0,
            cx,
        };
        let r = match (&t.store, only) {
            (Store::Hash(h), Some(keys)) => keys
                .iter()
                .try_for_each(|&k| {
                    if self.writes() {
                        h.scan_key_mut(k, &mut b, self.fixed as usize)
                    } else {
                        h.with_key(k, |m| {
                            m.for_each(|o| {
                                b.object(o);
                            })
                        })
                    }
                })
                .map(|()| Ended::Done),
            (Store::Hash(h), None) => {
                let from = match from {
                    Some(Place::Bucket(i)) => i,
                    _ => 0,
                };
                let r = if self.writes() {
                    h.scan_mut(from, &mut b, self.fixed as usize)
                } else {
                    h.scan(from, &mut b)
                };
                r.map(|next| match next {
                    Some(i) => {
                        self.pin = Some(Pin(h));
                        Ended::At(Place::Bucket(i))
                    }
                    None => Ended::Done,
                })
            }
            (Store::Tree(s), Some(keys)) => keys
                .iter()
                .try_for_each(|&k| {
                    if !self.writes() {
                        return s.with_key(k, |o| {
                            if let Some(o) = o {
                                b.object(o);
                            }
                        });
                    }
                    // One key is the span between its prefixes.
                    let span = Span {
                        low: Some(Key::before(k)),
                        high: Some(Key::after(k)),
                        downwards: false,
                    };
                    s.scan_mut(span, &mut b, &mut |_| ()).map(|_| ())
                })
                .map(|()| Ended::Done),
            (Store::Tree(s), None) => self.batch_in_order(s, &mut b, from, keys),
        };
        (self.list, self.got) = (b.list, b.got);
        b.cx.bump(BATCH - b.left);
        if b.written > 0 {
            weigh_growing(b.cx, t);
        }
        Ok(there!(cx, r))
    }

    /// Sees one batch of an ordered table from `from` on, in order.
    fn batch_in_order(
        &self,
        s: &TreeTable,
        b: &mut Batch,
        from: Option<Place>,
        keys: &Keys,
    ) -> Result<Ended, Gone> {
        let mut span = Span {
            low: None,
            high: None,
            downwards: self.downwards,
        };
        let end = Some(self.end).filter(|e| !e.is_nil());
        let soft = end.is_some_and(|e| Shape::of(e).maps);
        if let Keys::Span(least, most) = *keys {
            span.low = Some(Key::before(least));
            span.high = Some(Key::after(most));
        } else if let Some(end) = end.filter(|_| !soft) {
            match self.downwards {
                true => span.low = Some(Key::before(end)),
                false => span.high = Some(Key::after(end)),
            }
        }
        if let Some(Place::Key(k)) = from {
            if self.downwards {
                span.high = Some(Key::exact(k));
            } else {
                span.low = Some(Key::exact(k));
            }
        }
        let keypos = self.table.options.keypos;
        let mut last: Option<OwnedTerm> = None;
        let mut stopped = |o: &Object| {
            last = Some(OwnedTerm::copy_of(o.element(keypos)));
        };
        let r = if self.writes() {
            s.scan_mut(span, b, &mut stopped)
        } else {
            s.scan(span, b, &mut stopped)
        };
        let beyond = if self.downwards {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        // Walks with enough results check when they continue.
        let full = b.chunk > 0 && b.got >= b.chunk;
        let last =
            last.filter(|k| !soft || full || end.is_none_or(|e| cmp_prefix(e, k.term()) != beyond));
        r.map(|_| match last {
            Some(k) => Ended::At(Place::Key(copy_whole(k.term(), b.cx))),
            None => Ended::Done,
        })
    }

    /// Ends the walk's own fixation.
    fn release(&mut self, cx: &mut Cx) {
        if std::mem::take(&mut self.fixed) {
            let me = cx.self_pid();
            self.table.unfix(me);
        }
    }

    /// The term that says how to continue, for a continuation or a trap.
    fn continuation(
        &self,
        cx: &mut Cx,
        at: Term,
        spec: Term,
        rest: (Term, usize),
        trap: bool,
    ) -> BifResult {
        let tid = self.table.tid(cx).ok_or(Fail::Badarg)?;
        let chunk = Term::small(self.chunk as i64);
        let n = Term::small(rest.1 as i64);
        let mut v = match self.table.options.kind {
            Kind::OrderedSet => {
                let down = Term::small(self.downwards as i64);
                vec![tid, at, self.end, chunk, spec, rest.0, down, n]
            }
            _ => vec![tid, at, chunk, spec, rest.0, n],
        };
        if trap {
            v.push(Term::small(self.fixed as i64));
        }
        Ok(cx.tuple(&v))
    }

    /// The result of a `select` walk that has ended or is interrupted.
    fn result(
        mut self,
        cx: &mut Cx,
        spec: impl FnOnce(&mut Cx) -> Term,
        ended: Ended,
    ) -> BifResult {
        let ordered = self.table.options.kind == Kind::OrderedSet;
        let full = self.chunk > 0 && self.got >= self.chunk;
        let at = match ended {
            Ended::At(at) if !full => return self.interrupt(cx, spec, at),
            Ended::At(Place::Bucket(i)) => Some(Term::small(i as i64)),
            Ended::At(Place::Key(k)) => Some(k),
            Ended::Done => None,
        };
        self.release(cx);
        if self.chunk == 0 {
            return Ok(self.list);
        }
        // The latest results beyond the chunk wait for the next call.
        let mut list = self.list;
        let mut rest = Vec::new();
        while self.got - rest.len() > self.chunk {
            let Some((h, t)) = list.as_cons() else { break };
            rest.push(h);
            list = t;
        }
        if self.continued {
            // As in stock, where only the first batch keeps their order.
            rest.reverse();
        }
        if ordered {
            list = reversed(cx, list);
        }
        if at.is_none() && rest.is_empty() {
            return Ok(if list.is_nil() {
                am::END_OF_TABLE
            } else {
                cx.tuple(&[list, am::END_OF_TABLE])
            });
        }
        let n = rest.len();
        let rest = cx.list(&rest);
        let spec = spec(cx);
        let at = at.unwrap_or(Term::small(-1));
        let c = self.continuation(cx, at, spec, (rest, n), false)?;
        Ok(cx.tuple(&[list, c]))
    }

    /// Traps, to continue at `at`.
    fn interrupt(
        mut self,
        cx: &mut Cx,
        spec: impl FnOnce(&mut Cx) -> Term,
        at: Place,
    ) -> BifResult {
        let at = match at {
            Place::Bucket(i) => {
                if !self.fixed {
                    let me = cx.self_pid();
                    self.table.fix(me);
                    self.fixed = true;
                }
                Term::small(i as i64)
            }
            Place::Key(k) => k,
        };
        let spec = spec(cx);
        let rest = (self.list, self.got);
        let c = self.continuation(cx, at, spec, rest, true)?;
        let purpose = Term::small(self.purpose as i64);
        let arg = cx.cons(purpose, c);
        let target = code::export(purlin(), ets_continue(), 1);
        Err(cx.trap(target, &[arg]))
    }

    /// The result of a walk that only counts.
    fn counted(
        mut self,
        cx: &mut Cx,
        spec: impl FnOnce(&mut Cx) -> Term,
        ended: Ended,
    ) -> BifResult {
        match ended {
            Ended::At(at) => self.interrupt(cx, spec, at),
            Ended::Done => {
                self.release(cx);
                Ok(cx.uint(self.got as u64))
            }
        }
    }
}

fn reversed(cx: &mut Cx, list: Term) -> Term {
    list.list_iter().fold(NIL, |l, t| cx.cons(t, l))
}

fn make_spec(cx: &mut Cx, p: Program) -> Term {
    native_state::make(cx, Spec(p))
}

/// Starts a walk over a table.
fn start(cx: &mut Cx, mut w: Walk, spec: Term, backwards: bool) -> BifResult {
    if spec.is_nil() {
        // No clause matches nothing.
        return Ok(match (w.purpose, w.chunk) {
            (Purpose::Select, 0) => NIL,
            (Purpose::Select, _) => am::END_OF_TABLE,
            _ => Term::small(0),
        });
    }
    let compiled = matchspec::compile(spec, Dialect::Table).ok_or(Fail::Badarg)?;
    let keypos = w.table.options.keypos;
    if w.purpose == Purpose::Replace
        && !compiled
            .clauses
            .iter()
            .all(|c| keeps_key(keypos, c.head, c.body))
    {
        return Err(Fail::Badarg);
    }
    let ordered = w.table.options.kind == Kind::OrderedSet;
    if ordered {
        // Without chunks, the list comes out in order if objects are seen in reverse.
        let against = w.purpose == Purpose::Select && w.chunk == 0;
        w.downwards = backwards != against;
    }
    let mut keys = keys(w.table, &compiled.clauses);
    let program = compiled.program;
    match &mut keys {
        Keys::All | Keys::Span(..) => {}
        // Continuations of ordered tables cannot hold results beyond a chunk.
        Keys::These(k) if ordered && w.chunk > 0 && k.len() > w.chunk => keys = span(k),
        Keys::These(k) => {
            if ordered {
                k.sort_by(|a, b| compare::cmp(*a, *b));
                if w.downwards {
                    k.reverse();
                }
            }
        }
    }
    if let Keys::Span(least, most) = keys {
        w.end = if w.downwards { least } else { most };
    }
    let ended = w.batch(cx, &program, None, &keys)?;
    let make = |cx: &mut Cx| make_spec(cx, program);
    match w.purpose {
        Purpose::Select => w.result(cx, make, ended),
        _ => w.counted(cx, make, ended),
    }
}

/// Continues a walk. `trap`: the continuation is one of our own, which may have fixed the table.
fn go_on(cx: &mut Cx, purpose: Purpose, c: Term, trap: bool) -> BifResult {
    let e = c.as_tuple().filter(|e| !e.is_empty()).ok_or(Fail::Badarg)?;
    let want = match purpose {
        Purpose::Select | Purpose::Count => Want::Read,
        _ => Want::Write,
    };
    let t = table(cx, e[0], want)?;
    match purpose {
        Purpose::Replace => weigh_growing(cx, t),
        Purpose::Delete => weigh_shrinking(cx, t),
        Purpose::Select | Purpose::Count => {}
    }
    let ordered = t.options.kind == Kind::OrderedSet;
    let mut e = e;
    let mut fixed = false;
    if trap {
        fixed = e[e.len() - 1] == Term::small(1);
        e = &e[..e.len() - 1];
    }
    let size = |t: Term| {
        t.as_small()
            .and_then(|n| usize::try_from(n).ok())
            .ok_or(Fail::Badarg)
    };
    let (at, end, chunk, spec, list, down, n) = match (e, ordered) {
        (&[_, at, chunk, spec, list, n], false) => (at, NIL, chunk, spec, list, NIL, n),
        (&[_, at, end, chunk, spec, list, down, n], true) => (at, end, chunk, spec, list, down, n),
        _ => return Err(Fail::Badarg),
    };
    let program = &native_state::get::<Spec>(spec).ok_or(Fail::Badarg)?.0;
    let got = size(n)?;
    // Our own are sound, and long. A program's may be anything, but its list must have the stated
    // length.
    let sound = trap || list.list_iter().take(got).count() == got;
    if !list.is_list() || !sound {
        return Err(Fail::Badarg);
    }
    let mut w = Walk::new(t, purpose, size(chunk)?, down == Term::small(1));
    (w.list, w.got, w.end, w.fixed) = (list, got, end, fixed);
    w.continued = true;
    let exhausted = at == Term::small(-1) && !ordered;
    let full = w.chunk > 0 && w.got >= w.chunk;
    let place = if ordered {
        Place::Key(at)
    } else if exhausted {
        Place::Bucket(0)
    } else {
        let ix = size(at)?;
        match &t.store {
            Store::Hash(h) if ix < h.active() => Place::Bucket(ix),
            _ => return Err(Fail::Badarg),
        }
    };
    let ended = if exhausted {
        Ended::Done
    } else if full {
        Ended::At(place)
    } else {
        w.batch(cx, program, Some(place), &Keys::All)?
    };
    match purpose {
        Purpose::Select => w.result(cx, |_| spec, ended),
        _ => w.counted(cx, |_| spec, ended),
    }
}

/// `purlin:ets_continue([Purpose | Continuation])`: the target of walks that trap.
fn ets_continue_1(cx: &mut Cx, [arg]: [Term; 1]) -> BifResult {
    let (purpose, c) = arg.as_cons().ok_or(Fail::Badarg)?;
    let purpose = match purpose.as_small() {
        Some(1) => Purpose::Count,
        Some(2) => Purpose::Delete,
        Some(3) => Purpose::Replace,
        _ => Purpose::Select,
    };
    go_on(cx, purpose, c, true)
}

fn chunk_size(t: Term) -> Result<usize, Fail> {
    let n = t.as_small().filter(|&n| n > 0).ok_or(Fail::Badarg)?;
    Ok(n as usize)
}

/// `select` and its like. `spec` makes the specification once the other arguments are valid.
fn select(
    cx: &mut Cx,
    tab: Term,
    spec: impl FnOnce(&mut Cx) -> Term,
    chunk: Option<Term>,
    backwards: bool,
) -> BifResult {
    let t = table(cx, tab, Want::Read)?;
    let chunk = chunk.map_or(Ok(0), chunk_size)?;
    let spec = spec(cx);
    start(
        cx,
        Walk::new(t, Purpose::Select, chunk, false),
        spec,
        backwards,
    )
}

fn select_2(cx: &mut Cx, [tab, spec]: [Term; 2]) -> BifResult {
    select(cx, tab, |_| spec, None, false)
}
fn select_3(cx: &mut Cx, [tab, spec, n]: [Term; 3]) -> BifResult {
    select(cx, tab, |_| spec, Some(n), false)
}
fn select_reverse_2(cx: &mut Cx, [tab, spec]: [Term; 2]) -> BifResult {
    select(cx, tab, |_| spec, None, true)
}
fn select_reverse_3(cx: &mut Cx, [tab, spec, n]: [Term; 3]) -> BifResult {
    select(cx, tab, |_| spec, Some(n), true)
}
fn match_2(cx: &mut Cx, [tab, p]: [Term; 2]) -> BifResult {
    select(
        cx,
        tab,
        |cx| pattern_spec(cx, p, dollar_dollar()),
        None,
        false,
    )
}
fn match_3(cx: &mut Cx, [tab, p, n]: [Term; 3]) -> BifResult {
    select(
        cx,
        tab,
        |cx| pattern_spec(cx, p, dollar_dollar()),
        Some(n),
        false,
    )
}
fn match_object_2(cx: &mut Cx, [tab, p]: [Term; 2]) -> BifResult {
    select(
        cx,
        tab,
        |cx| pattern_spec(cx, p, dollar_underscore()),
        None,
        false,
    )
}
fn match_object_3(cx: &mut Cx, [tab, p, n]: [Term; 3]) -> BifResult {
    select(
        cx,
        tab,
        |cx| pattern_spec(cx, p, dollar_underscore()),
        Some(n),
        false,
    )
}
fn select_1(cx: &mut Cx, [c]: [Term; 1]) -> BifResult {
    if c == am::END_OF_TABLE {
        return Ok(c);
    }
    go_on(cx, Purpose::Select, c, false)
}

fn select_count_2(cx: &mut Cx, [tab, spec]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Read)?;
    start(cx, Walk::new(t, Purpose::Count, 0, false), spec, false)
}
fn internal_select_delete_2(cx: &mut Cx, [tab, spec]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    weigh_shrinking(cx, t);
    start(cx, Walk::new(t, Purpose::Delete, 0, false), spec, false)
}
fn select_replace_2(cx: &mut Cx, [tab, spec]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    weigh_growing(cx, t);
    if t.options.kind == Kind::Bag {
        return Err(cx.badarg_cause(table_type()));
    }
    start(cx, Walk::new(t, Purpose::Replace, 0, false), spec, false)
}

fn is_compiled_ms_1(_: &mut Cx, [t]: [Term; 1]) -> BifResult {
    Ok(Term::bool(native_state::get::<Spec>(t).is_some()))
}
fn match_spec_compile_1(cx: &mut Cx, [spec]: [Term; 1]) -> BifResult {
    let c = matchspec::compile(spec, Dialect::Table).ok_or(Fail::Badarg)?;
    Ok(make_spec(cx, c.program))
}

fn match_spec_run_r_3(cx: &mut Cx, [list, spec, acc]: [Term; 3]) -> BifResult {
    if !list.is_list() {
        return Err(Fail::Badarg);
    }
    let p = &native_state::get::<Spec>(spec).ok_or(Fail::Badarg)?.0;
    let mut r = Runner::new(p);
    let mut acc = acc;
    let mut it = list.list_iter();
    let mut n = 0;
    while n < BATCH {
        let Some(t) = it.next() else {
            cx.bump(n);
            return if it.tail().is_nil() {
                Ok(acc)
            } else {
                Err(Fail::Badarg)
            };
        };
        if let Some(t) = r.run(cx, p, Subject::Local(t), &mut NoHost) {
            acc = cx.cons(t, acc);
        }
        n += 1;
    }
    cx.bump(n);
    let name = purlin_term::atom::intern("match_spec_run_r");
    let target = code::export(purlin_term::atom::intern("ets"), name, 3);
    Err(cx.trap(target, &[it.tail(), spec, acc]))
}

/// The host of a trial run of a specification for tracing.
#[derive(Default)]
struct Trial {
    return_trace: bool,
    exception_trace: bool,
}

impl Host for Trial {
    fn action(&mut self, cx: &mut Cx, a: Action, args: &[Term]) -> Option<Term> {
        match a {
            Action::ReturnTrace => self.return_trace = true,
            Action::ExceptionTrace => self.exception_trace = true,
            Action::Display => {
                use purlin_term::print::{LONGEST_TEXT, Style, format_term};
                let text = format_term(args[0], Style::Display, LONGEST_TEXT);
                purlin_term::say::output(format_args!("{text}\n"));
            }
            // In a native there is no caller.
            Action::Caller | Action::CallerLine => return Some(am::UNDEFINED),
            Action::CurrentStacktrace => return Some(stack::stacktrace(cx, args.first().copied())),
            Action::IsSeqTrace => {
                return Some(Term::bool(token::token(cx.process()).is_some()));
            }
            Action::GetSeqToken => return Some(token::token_term(cx)),
            // A trial changes nothing: it returns the present value.
            Action::GetTcw | Action::SetTcw => {
                let w =
                    crate::matchspec::TRACE_CONTROL_WORD.load(std::sync::atomic::Ordering::Relaxed);
                return Some(Term::small(w.into()));
            }
            Action::Silent => return args.first().copied(),
            _ => return None,
        }
        Some(am::TRUE)
    }
}

fn match_spec_test_3(cx: &mut Cx, [against, spec, kind]: [Term; 3]) -> BifResult {
    let dialect = match kind {
        am::TRACE => Dialect::Trace,
        k if k == am::TABLE => Dialect::Table,
        _ => return Err(Fail::Badarg),
    };
    if dialect == Dialect::Trace && !against.is_list() {
        return Err(Fail::Badarg);
    }
    let Some(c) = matchspec::compile(spec, dialect) else {
        let mut l = NIL;
        for text in lint(spec, dialect).iter().rev() {
            let s = cx.string(text);
            let e = cx.tuple(&[am::ERROR, s]);
            l = cx.cons(e, l);
        }
        return Ok(cx.err(l));
    };
    let subject = match dialect {
        Dialect::Table => Subject::Local(against),
        Dialect::Trace => {
            let args: Vec<Term> = against.list_iter().collect();
            let (tuple, list) = (cx.tuple(&args), cx.list(&args));
            Subject::Call(tuple, list)
        }
    };
    let mut host = Trial::default();
    let r = Runner::new(&c.program).run(cx, &c.program, subject, &mut host);
    let mut flags = NIL;
    if r.is_some() {
        if host.exception_trace {
            flags = cx.cons(exception_trace(), flags);
        }
        if host.return_trace {
            flags = cx.cons(return_trace(), flags);
        }
    }
    Ok(cx.tuple(&[am::OK, r.unwrap_or(am::FALSE), flags, NIL]))
}

bifs! {
    Plain "ets":"select"/1 = select_1 [reads(Table)];
    Plain "ets":"select"/2 = select_2 [reads(Table)];
    Plain "ets":"select"/3 = select_3 [reads(Table)];
    Plain "ets":"select_reverse"/1 = select_1 [reads(Table)];
    Plain "ets":"select_reverse"/2 = select_reverse_2 [reads(Table)];
    Plain "ets":"select_reverse"/3 = select_reverse_3 [reads(Table)];
    Plain "ets":"match"/1 = select_1 [reads(Table)];
    Plain "ets":"match"/2 = match_2 [reads(Table)];
    Plain "ets":"match"/3 = match_3 [reads(Table)];
    Plain "ets":"match_object"/1 = select_1 [reads(Table)];
    Plain "ets":"match_object"/2 = match_object_2 [reads(Table)];
    Plain "ets":"match_object"/3 = match_object_3 [reads(Table)];
    Plain "ets":"select_count"/2 = select_count_2 [reads(Table)];
    Plain "ets":"internal_select_delete"/2 = internal_select_delete_2 [writes(Table)];
    Plain "ets":"select_replace"/2 = select_replace_2 [writes(Table)];
    Plain "ets":"is_compiled_ms"/1 = is_compiled_ms_1;
    Plain "ets":"match_spec_compile"/1 = match_spec_compile_1;
    Plain "ets":"match_spec_run_r"/3 = match_spec_run_r_3;
    Plain "erlang":"match_spec_test"/3 = match_spec_test_3;
    Plain "purlin":"ets_continue"/1 = ets_continue_1;
}
