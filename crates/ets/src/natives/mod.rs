//! Module `ets`: tables and single objects. Walks over tables are in `select.rs`, information about
//! them in `info.rs`.
//!
//! A bad table is reported by the cause that `error_info` carries (see [`crate::NotFound`]). Stdlib
//! finds the errors of other arguments itself, except for the causes that are raised here.

use crate::cx::{BifResult, Cx, Fail};
use crate::hash::{Change, Matches, Which};
use crate::object::{Object, Owned};
use crate::process::ext::Hashing;
use crate::signal::share;
use crate::tree::Span;
use crate::{
    Gone, Heir, Kind, NotFound, Options, Protection, Store, Table, Want, WriteConcurrency, table,
};
use crate::{bifs, lazy_atoms, signal};
use purlin_kernel::accounts::{self, Kind as Account};
use purlin_kernel::budgets;
use purlin_kernel::system::{budget_memory, memory};
use purlin_native::long;
use purlin_native::reschedule::{self, MANY, dirty_if};
use purlin_term::arith::{self, ArithError};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::gc::stress_roll;
use purlin_term::pressure::{self, Judged, is_short};
use purlin_term::release::{
    self, BAGS_FROM_BEHIND, ETS_POSITION_CAUSE, ETS_SOUND_DEFAULTS, SILENT_HEIRS,
};
use purlin_term::{Alloc, NIL, Term, am, compare, copy};
use smallvec::SmallVec;
use std::collections::HashMap;

pub mod info;
pub mod select;

use purlin_native::bif::Bif;

/// The tables of natives in this crate.
pub const TABLES: &[&[Bif]] = &[BIFS, info::BIFS, select::BIFS];

lazy_atoms! {
    pub(crate) table_type = "table_type";
    keypos_atom = "keypos";
    position = "position";
    owner_cause = "owner";
    not_owner = "not_owner";
    already_exists = "already_exists";
    named_table = "named_table";
    write_concurrency = "write_concurrency";
    read_concurrency = "read_concurrency";
    decentralized_counters = "decentralized_counters";
    pub(crate) debug_locks = "debug_hash_fixed_number_of_locks";
    pub(crate) auto = "auto";
    heir = "heir";
    protection = "protection";
}

/// Maximum number of locks that the debugging option may request.
const MAX_LOCKS: i64 = 32_768;

/// Raises that the table was deleted between finding it and using it.
#[cold]
pub(crate) fn gone(cx: &mut Cx) -> Fail {
    NotFound::Id.raise(cx)
}

/// Unwraps a store's result, or raises the error of a missing table. Charges the time spent waiting
/// for the store's locks to the process.
macro_rules! there {
    ($cx:ident, $e:expr) => {{
        let told = $e;
        purlin_kernel::waits::locked($cx);
        match told {
            Ok(v) => v,
            Err(Gone) => return Err($crate::natives::gone($cx)),
        }
    }};
}
pub(crate) use there;

fn new_2(cx: &mut Cx, [name, options]: [Term; 2]) -> BifResult {
    if !name.is_atom() {
        return Err(Fail::Badarg);
    }
    let mut o = Options {
        kind: Kind::Set,
        keypos: 1,
        protection: Protection::Protected,
        named: false,
        compressed: crate::options::try_current().is_some_and(|o| o.flags.ets.always_compress),
        write_concurrency: WriteConcurrency::No,
        read_concurrency: false,
        decentralized_counters: false,
    };
    let mut counters = None;
    let mut heir_is = None;
    let mut it = options.list_iter();
    for opt in it.by_ref() {
        match opt {
            am::SET => {}
            am::PROTECTED => {}
            am::BAG => o.kind = Kind::Bag,
            am::DUPLICATE_BAG => o.kind = Kind::DuplicateBag,
            am::ORDERED_SET => {
                o.kind = Kind::OrderedSet;
                o.decentralized_counters = true;
            }
            am::PUBLIC => o.protection = Protection::Public,
            am::PRIVATE => o.protection = Protection::Private,
            am::COMPRESSED => o.compressed = true,
            t if t == named_table() => o.named = true,
            t => option(cx, t, &mut o, &mut counters, &mut heir_is)?,
        }
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    o.decentralized_counters = counters.unwrap_or(o.decentralized_counters);
    if o.kind == Kind::OrderedSet && matches!(o.write_concurrency, WriteConcurrency::Locks(_)) {
        return Err(Fail::Badarg);
    }
    if o.protection == Protection::Private {
        o.write_concurrency = WriteConcurrency::No;
        o.read_concurrency = false;
    }
    if o.write_concurrency == WriteConcurrency::No {
        o.decentralized_counters = false;
    }
    let me = cx.self_pid();
    let heir = heir_is.and_then(|h| make_heir(cx, h));
    match crate::create(o, name, me, heir) {
        Ok(_) if o.named => Ok(name),
        Ok(t) => t.tid(cx).ok_or(Fail::SystemLimit),
        Err(crate::NotMade::NameTaken) => Err(cx.badarg_cause(already_exists())),
        Err(crate::NotMade::Budget) => Err(Fail::SystemLimit),
    }
}

/// The process that becomes heir, and the term in the message to it, if there is one.
type NewHeir = (Term, Option<Term>);

/// The option `heir`, unless it says `none`.
fn heir_of(option: &[Term]) -> Option<NewHeir> {
    match *option {
        [k, pid, data] if k == heir() && pid.is_local_pid() => Some((pid, Some(data))),
        [k, pid] if k == heir() && pid.is_local_pid() && release::has(SILENT_HEIRS) => {
            Some((pid, None))
        }
        _ => None,
    }
}

/// An heir, unless it has already ended.
fn make_heir(cx: &mut Cx, (pid, data): NewHeir) -> Option<Heir> {
    (pid == cx.self_pid() || crate::may_own(pid)).then(|| {
        let data = data.map(|data| {
            let (data, _held) = share::share(cx, Account::TableIn, data);
            OwnedTerm::copy_of(data)
        });
        Heir { pid, data }
    })
}

/// An option of `new/2` that is a tuple.
fn option(
    _cx: &mut Cx,
    t: Term,
    o: &mut Options,
    counters: &mut Option<bool>,
    heir_is: &mut Option<NewHeir>,
) -> Result<(), Fail> {
    let option = t.as_tuple().ok_or(Fail::Badarg)?;
    if let Some(h) = heir_of(option) {
        *heir_is = Some(h);
        return Ok(());
    }
    match *option {
        [k, v] if k == keypos_atom() => {
            let n = v.as_small().filter(|&n| n > 0).ok_or(Fail::Badarg)?;
            o.keypos = n as usize;
        }
        [k, v] if k == write_concurrency() => {
            o.write_concurrency = match v {
                am::TRUE => {
                    if o.kind != Kind::OrderedSet {
                        o.decentralized_counters = false;
                    }
                    WriteConcurrency::Yes
                }
                am::FALSE => WriteConcurrency::No,
                v if v == auto() => {
                    o.decentralized_counters = true;
                    WriteConcurrency::Auto
                }
                v => match v.as_tuple() {
                    Some(&[k, n]) if k == debug_locks() => {
                        let n = n.as_small().filter(|&n| (1..=MAX_LOCKS).contains(&n));
                        o.decentralized_counters = true;
                        WriteConcurrency::Locks(n.ok_or(Fail::Badarg)? as u32)
                    }
                    _ => return Err(Fail::Badarg),
                },
            };
        }
        [k, v] if k == read_concurrency() => {
            o.read_concurrency = v.as_bool().ok_or(Fail::Badarg)?;
        }
        [k, v] if k == decentralized_counters() => {
            *counters = Some(v.as_bool().ok_or(Fail::Badarg)?);
        }
        [k, am::NONE] if k == heir() => *heir_is = None,
        _ => return Err(Fail::Badarg),
    }
    Ok(())
}

fn delete_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let t = table(cx, t, Want::Write)?;
    if crate::delete(t) {
        Ok(am::TRUE)
    } else {
        Err(gone(cx))
    }
}

fn rename_2(cx: &mut Cx, [tab, name]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    if !name.is_atom() || !crate::rename(t, name) {
        return Err(Fail::Badarg);
    }
    Ok(if t.options.named { name } else { tab })
}

fn whereis_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    if !name.is_atom() {
        return Err(Fail::Badarg);
    }
    match crate::find(name, NIL, Want::Info) {
        Ok(t) => Ok(t.tid(cx).unwrap_or(am::UNDEFINED)),
        Err(_) => Ok(am::UNDEFINED),
    }
}

fn give_away_3(cx: &mut Cx, [tab, pid, gift]: [Term; 3]) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    if !pid.is_local_pid() || !crate::may_own(pid) {
        return Err(Fail::Badarg);
    }
    let me = cx.self_pid();
    let (gift, _held) = share::share(cx, Account::Message, gift);
    let admin = t.admin();
    if !t.is_alive() {
        drop(admin);
        return Err(gone(cx));
    }
    if t.owner() != me {
        drop(admin);
        return Err(cx.badarg_cause(not_owner()));
    }
    if pid == me {
        drop(admin);
        return Err(cx.badarg_cause(owner_cause()));
    }
    crate::transfer(t, me, pid, Some(gift));
    drop(admin);
    crate::settle(pid);
    Ok(am::TRUE)
}

fn setopts_2(cx: &mut Cx, [tab, options]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    let me = cx.self_pid();
    let list = if options.is_tuple() {
        vec![options]
    } else {
        options.list_to_vec().ok_or(Fail::Badarg)?
    };
    let mut new_heir: Option<Option<NewHeir>> = None;
    let mut new_protection = None;
    for o in list {
        let option = o.as_tuple().ok_or(Fail::Badarg)?;
        if let Some(h) = heir_of(option).filter(|_| new_heir.is_none()) {
            new_heir = Some(Some(h));
            continue;
        }
        match *option {
            [k, am::NONE] if k == heir() && new_heir.is_none() => new_heir = Some(None),
            [k, p] if k == protection() && new_protection.is_none() => {
                new_protection = Some(match p {
                    am::PRIVATE => Protection::Private,
                    am::PROTECTED => Protection::Protected,
                    am::PUBLIC => Protection::Public,
                    _ => return Err(Fail::Badarg),
                })
            }
            _ => return Err(Fail::Badarg),
        }
    }
    let new_heir = new_heir.map(|h| h.and_then(|h| make_heir(cx, h)));
    let mut admin = t.admin();
    // Setting data of a deleted table would leak them if they refer to the table.
    if !t.is_alive() {
        drop(admin);
        return Err(gone(cx));
    }
    if t.owner() != me {
        return Err(Fail::Badarg);
    }
    let old = new_heir.map(|h| std::mem::replace(&mut *admin, h));
    if let Some(p) = new_protection {
        t.set_protection(p);
    }
    drop(admin);
    drop(old);
    Ok(am::TRUE)
}

fn safe_fixtable_2(cx: &mut Cx, [tab, on]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Read)?;
    let me = cx.self_pid();
    match on {
        am::TRUE => t.fix(me),
        am::FALSE => t.unfix(me),
        _ => return Err(Fail::Badarg),
    }
    Ok(am::TRUE)
}

/// Whether `o` may be an object of the table.
#[inline]
fn is_object(t: &Table, o: Term) -> bool {
    o.as_tuple().is_some_and(|e| e.len() >= t.options.keypos)
}

fn put(t: &Table, o: Owned, new_only: bool) -> Result<bool, Gone> {
    match &t.store {
        Store::Hash(h) => h.put(o, new_only),
        Store::Tree(s) => s.put(o, new_only),
    }
}

/// Maximum number of objects that are inserted together on a scheduler: a few milliseconds.
const MOST_INSERTED: usize = MANY / 16;

fn insert(cx: &mut Cx, tab: Term, what: Term, new_only: bool) -> Result<bool, Fail> {
    let t = table(cx, tab, Want::Write)?;
    // Its result says what was there.
    if new_only {
        t.note_read();
    }
    if is_short() {
        grows(cx, t);
    }
    weigh_growing(cx, t);
    if is_object(t, what) {
        let o = Owned::new_shared(cx, what);
        let words = o.copied_words();
        cx.bump(words / 256);
        let done = there!(cx, put(t, o, new_only));
        if words > LARGE_WORDS {
            weigh_growing(cx, t);
        }
        return Ok(done);
    }
    let mut objects = Vec::new();
    let mut it = what.list_iter();
    for o in it.by_ref() {
        if !is_object(t, o) {
            return Err(Fail::Badarg);
        }
        objects.push(o);
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    if objects.is_empty() {
        return Ok(true);
    }
    let native = match new_only {
        true => long!("ets":"insert_new"/2),
        false => long!("ets":"insert"/2),
    };
    dirty_if(cx, native.call(&[tab, what]), || {
        objects.len() > MOST_INSERTED || stress_roll(16)
    })?;
    cx.bump(objects.len());
    if t.options.kind == Kind::Bag && release::has(BAGS_FROM_BEHIND) {
        objects.reverse();
    }
    let put_all = |objects| match &t.store {
        Store::Hash(h) => h.put_all(objects, new_only, || t.is_alive()),
        Store::Tree(s) => s.put_all(objects, new_only, || t.is_alive()),
    };
    let limited = budgets::on() && pressure::is_limited();
    if !cx.dirty {
        let (mut owned, mut words) = (Vec::with_capacity(objects.len()), 0);
        let mut billed_words = 0;
        for o in objects {
            let o = Owned::new_shared(cx, o);
            words += o.copied_words();
            billed_words += o.billed_words();
            owned.push(o);
            // Objects may have large parts in common, which they do not share in the table.
            if limited {
                match pressure::judge(billed_words * 8) {
                    Judged::Fits => {}
                    Judged::AfterCollection => return Err(Fail::Again),
                    Judged::Refused => return Err(Fail::SystemLimit),
                }
            }
        }
        let done = there!(cx, put_all(owned));
        if words > LARGE_WORDS {
            weigh_growing(cx, t);
        }
        return Ok(done);
    }
    // Others may access the process meanwhile, so nothing of it is shared.
    let (mut told, mut words, mut refused) = (Ok(false), 0, false);
    let mut billed_words = 0;
    // SAFETY: the context of a native that sees less of it.
    let env = unsafe { &mut *cx.env_ptr() };
    reschedule::open(env, native.mfa(), |_| {
        let mut owned = Vec::with_capacity(objects.len());
        for o in objects {
            let o = Owned::new(o);
            words += o.copied_words();
            billed_words += o.billed_words();
            owned.push(o);
            refused = limited && pressure::refuses(billed_words * 8);
            if refused {
                return Ok(am::FALSE);
            }
        }
        told = put_all(owned);
        Ok(am::TRUE)
    })?;
    if refused {
        return Err(Fail::SystemLimit);
    }
    weigh_growing(cx, t);
    accounts::copied(cx, Account::TableIn, words, what);
    Ok(there!(cx, told))
}

/// Reports an insertion while the node's memory limit is near.
#[cold]
fn grows(cx: &mut Cx, t: &Table) {
    let me = cx.self_pid();
    memory::table_grows(cx, || {
        let bytes = 8 * t.size_and_words().1;
        (
            t.name(),
            std::ptr::from_ref(t) as usize,
            bytes,
            t.owner() == me,
        )
    });
}

/// Objects of more words are weighed as soon as they are in the table, and not with what is written
/// next.
const LARGE_WORDS: usize = 1 << 12;

/// Weighs a table, which the process in the context writes to, for the budget of its owner. Ends
/// the process if the table exceeds a limit of its budget.
#[inline]
pub(super) fn weigh_growing(cx: &mut Cx, t: &Table) {
    if budgets::on() {
        weigh(cx, t, true);
    }
}
/// Weighs a table from which something is deleted.
#[inline]
pub(super) fn weigh_shrinking(cx: &mut Cx, t: &Table) {
    if budgets::on() {
        weigh(cx, t, false);
    }
}

#[cold]
fn weigh(cx: &mut Cx, t: &Table, grows: bool) {
    let bytes = 8 * t.own_words();
    let excess = t.charge.lock().as_ref().and_then(|c| c.weigh(bytes as i64));
    if grows && !cx.proc.is_null() {
        budgets::lower_allowance(budgets::of(cx.proc.get()));
    }
    if let Some(e) = excess.filter(|_| grows) {
        budget_memory::table_exceeds(cx, &e, t.name(), bytes);
    }
}

fn insert_2(cx: &mut Cx, [tab, what]: [Term; 2]) -> BifResult {
    insert(cx, tab, what, false)?;
    Ok(am::TRUE)
}
fn insert_new_2(cx: &mut Cx, [tab, what]: [Term; 2]) -> BifResult {
    Ok(Term::bool(insert(cx, tab, what, true)?))
}

/// A list of copies, in the order of insertion: tables hold the latest first.
fn copies(cx: &mut Cx, m: Matches, again: &mut bool) -> Term {
    let mut l = NIL;
    for o in m {
        *again |= o.looked_up();
        let t = o.copy_to(cx);
        cx.bump(o.copied_words() / 256);
        accounts::copied(cx, Account::TableOut, o.copied_words(), NIL);
        l = cx.cons(t, l);
    }
    l
}
fn copy_one(cx: &mut Cx, o: Option<&Object>, again: &mut bool) -> Term {
    match o {
        Some(o) => {
            *again |= o.looked_up();
            cx.bump(o.copied_words() / 256);
            let t = o.copy_to(cx);
            accounts::copied(cx, Account::TableOut, o.copied_words(), NIL);
            cx.cons(t, NIL)
        }
        None => NIL,
    }
}

fn lookup_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Read)?;
    let mut again = false;
    let found = match &t.store {
        Store::Hash(h) => there!(cx, h.with_key(key, |m| copies(cx, m, &mut again))),
        Store::Tree(s) => there!(cx, s.with_key(key, |o| copy_one(cx, o, &mut again))),
    };
    if again {
        settle(cx, t, key);
    }
    Ok(found)
}

/// Puts the larger parts of the object with that key in a region, since it is looked up repeatedly.
#[cold]
fn settle(cx: &mut Cx, t: &Table, key: Term) {
    if !t.is_set() {
        return;
    }
    let f = |o: &mut Owned| match o.is_settled() {
        true => (Change::None, ()),
        false => (Change::Replace(Owned::settled(cx, o.tuple())), ()),
    };
    // If the table has gone meanwhile, there is nothing to do.
    let _ = match &t.store {
        Store::Hash(h) => h.modify(key, None, f),
        Store::Tree(s) => s.modify(key, None, f),
    };
}

fn member_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Read)?;
    Ok(Term::bool(match &t.store {
        Store::Hash(h) => there!(cx, h.with_key(key, |mut m| m.next().is_some())),
        Store::Tree(s) => there!(cx, s.with_key(key, |o| o.is_some())),
    }))
}

fn lookup_element(
    cx: &mut Cx,
    tab: Term,
    key: Term,
    pos: Term,
    default: Option<Term>,
) -> BifResult {
    enum Found {
        Nothing,
        Short,
        Is(Term),
    }
    let t = table(cx, tab, Want::Read)?;
    let pos = pos.as_small().filter(|&p| p >= 1).ok_or(Fail::Badarg)? as usize;
    let is_set = t.is_set();
    let mut again = false;
    let mut element = |cx: &mut Cx, o: Option<&Object>| match o {
        None => Found::Nothing,
        Some(o) if pos > o.arity() => Found::Short,
        Some(o) => {
            again |= !o.element(pos).is_immed() && o.looked_up();
            Found::Is(o.copy_element(pos, cx))
        }
    };
    let found = match &t.store {
        Store::Tree(s) => there!(cx, s.with_key(key, |o| element(cx, o))),
        Store::Hash(h) => there!(
            cx,
            h.with_key(key, |mut m| {
                if is_set {
                    return element(cx, m.next());
                }
                let mut l = None;
                for o in m {
                    match element(cx, Some(o)) {
                        Found::Is(e) => l = Some(cx.cons(e, l.unwrap_or(NIL))),
                        other => return other,
                    }
                }
                l.map_or(Found::Nothing, Found::Is)
            })
        ),
    };
    if again {
        settle(cx, t, key);
    }
    match found {
        Found::Is(e) => Ok(e),
        Found::Short => Err(Fail::Badarg),
        Found::Nothing => match default {
            Some(d) => Ok(d),
            None => Err(cx.badarg_cause(am::BADKEY)),
        },
    }
}
fn lookup_element_3(cx: &mut Cx, [tab, key, pos]: [Term; 3]) -> BifResult {
    lookup_element(cx, tab, key, pos, None)
}
fn lookup_element_4(cx: &mut Cx, [tab, key, pos, default]: [Term; 4]) -> BifResult {
    lookup_element(cx, tab, key, pos, Some(default))
}

fn delete_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    weigh_shrinking(cx, t);
    match &t.store {
        Store::Hash(h) => there!(cx, h.erase(key, t.is_set(), |_| true, |_| ())),
        Store::Tree(s) => drop(there!(cx, s.erase(key, |_| true))),
    }
    Ok(am::TRUE)
}

fn delete_object_2(cx: &mut Cx, [tab, object]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    weigh_shrinking(cx, t);
    if !is_object(t, object) {
        return Err(Fail::Badarg);
    }
    let key = object.as_tuple().unwrap_or_default()[t.options.keypos - 1];
    let same = |o: &Object| o.is(object);
    match &t.store {
        Store::Hash(h) => {
            let once = t.options.kind != Kind::DuplicateBag;
            there!(cx, h.erase(key, once, same, |_| ()))
        }
        Store::Tree(s) => drop(there!(cx, s.erase(key, same))),
    }
    Ok(am::TRUE)
}

fn take_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    t.note_read();
    weigh_shrinking(cx, t);
    match &t.store {
        Store::Hash(h) => {
            let mut l = NIL;
            let see = |o: &Object| {
                let c = o.copy_to(cx);
                accounts::copied(cx, Account::TableOut, o.copied_words(), NIL);
                l = cx.cons(c, l);
            };
            let r = h.erase(key, t.is_set(), |_| true, see);
            there!(cx, r);
            Ok(l)
        }
        Store::Tree(s) => {
            let o = there!(cx, s.erase(key, |_| true));
            Ok(copy_one(cx, o.as_deref(), &mut false))
        }
    }
}

/// Why an update was refused.
enum Refused {
    Cause(Term),
    Badarg,
    SystemLimit,
}

impl Refused {
    fn raise(self, cx: &mut Cx) -> Fail {
        match self {
            Refused::Cause(c) => cx.badarg_cause(c),
            Refused::Badarg => Fail::Badarg,
            Refused::SystemLimit => Fail::SystemLimit,
        }
    }
}

/// New elements of a tuple by their positions, one for each.
#[derive(Default)]
struct Elements {
    list: SmallVec<[(usize, Term); 4]>,
    /// The index of a position in the list, once the list has more than [`SEARCHED`] entries.
    places: HashMap<usize, usize, Hashing>,
}

/// Length up to which a list of new elements is searched.
const SEARCHED: usize = 16;

impl Elements {
    fn place(&self, position: usize) -> Option<usize> {
        match self.list.len() > SEARCHED {
            true => self.places.get(&position).copied(),
            false => self.list.iter().position(|e| e.0 == position),
        }
    }
    fn get(&self, position: usize) -> Option<Term> {
        self.place(position).map(|i| self.list[i].1)
    }
    fn set(&mut self, position: usize, t: Term) {
        if let Some(i) = self.place(position) {
            self.list[i].1 = t;
            return;
        }
        self.list.push((position, t));
        if self.list.len() > SEARCHED {
            let first = self.places.len();
            let entered = self.list.iter().enumerate().skip(first);
            self.places.extend(entered.map(|(i, e)| (e.0, i)));
        }
    }
}

/// An object with some elements replaced: in place if that takes no memory.
fn with_elements(cx: &mut Cx, o: &mut Owned, new: &[(usize, Term)]) -> Change {
    let fits = |&(p, t): &(usize, Term)| t.is_immed() && o.element(p).is_immed();
    if new.iter().all(fits) {
        for &(p, t) in new {
            o.set_immediate(p, t);
        }
        return Change::None;
    }
    let mut e: SmallVec<[Term; 8]> = (1..=o.arity()).map(|p| o.element(p)).collect();
    for &(p, t) in new {
        e[p - 1] = t;
    }
    let mut f = Fragment::new();
    // The tuple only points to its elements, which do not move until it is copied.
    let t = f.tuple(&e);
    Change::Replace(Owned::new_shared(cx, t))
}

/// Changes the object with `key`, after inserting `default` if there is none.
fn modify<R>(
    cx: &mut Cx,
    t: &Table,
    key: Term,
    default: Option<Term>,
    f: impl FnOnce(&mut Cx, &mut Owned) -> (Change, R),
) -> Result<Option<R>, Fail> {
    let keypos = t.options.keypos;
    let mut make = default.map(|d| {
        move || {
            let mut e = d.as_tuple().unwrap_or_default().to_vec();
            e[keypos - 1] = key;
            let mut f = Fragment::new();
            Owned::new(f.tuple(&e))
        }
    });
    let default = make.as_mut().map(|m| m as &mut dyn FnMut() -> Owned);
    let r = match &t.store {
        Store::Hash(h) => h.modify(key, default, |o| f(cx, o)),
        Store::Tree(s) => s.modify(key, default, |o| f(cx, o)),
    };
    Ok(there!(cx, r))
}

/// One operation of `update_counter`: position, increment, and threshold with the value set beyond
/// it.
type Update = (i64, Term, Option<(Term, Term)>);

fn updates(ops: &[Term]) -> Option<SmallVec<[Update; 4]>> {
    ops.iter()
        .map(|t| match *t.as_tuple()? {
            [p, i] if i.is_integer() => Some((p.as_small()?, i, None)),
            [p, i, limit, set] if i.is_integer() && limit.is_integer() && set.is_integer() => {
                Some((p.as_small()?, i, Some((limit, set))))
            }
            _ => None,
        })
        .collect()
}

fn count_up(
    cx: &mut Cx,
    o: &mut Owned,
    ops: &[Update],
    keypos: usize,
) -> (Change, Result<SmallVec<[Term; 4]>, Refused>) {
    let refuse = |r| (Change::Abort, Err(r));
    for &(p, ..) in ops {
        if p == keypos as i64 {
            return refuse(Refused::Cause(keypos_atom()));
        }
        if p < 1 || p as usize > o.arity() {
            return refuse(Refused::Cause(position()));
        }
        if !o.element(p as usize).is_integer() {
            return refuse(Refused::Badarg);
        }
    }
    let mut new = Elements::default();
    let mut results = SmallVec::new();
    for &(p, incr, limit) in ops {
        let p = p as usize;
        let old = new.get(p).unwrap_or_else(|| o.element(p));
        let mut v = match arith::add(cx, old, incr) {
            Ok(v) => v,
            Err(ArithError::SystemLimit) => return refuse(Refused::SystemLimit),
            Err(_) => return refuse(Refused::Badarg),
        };
        // Adding nothing gives the very term that lies in the table.
        if v == old && !v.is_immed() {
            v = purlin_term::copy::copy_whole(v, cx);
        }
        if let Some((limit, set)) = limit {
            let down = compare::cmp(incr, Term::small(0)).is_lt();
            let beyond = compare::cmp(v, limit);
            if if down { beyond.is_lt() } else { beyond.is_gt() } {
                v = set;
            }
        }
        new.set(p, v);
        results.push(v);
    }
    (with_elements(cx, o, &new.list), Ok(results))
}

/// Position and increment of a usual operation: a small integer added to one element other than the
/// key.
#[inline]
fn plain_update(op: Term, keypos: usize) -> Option<(usize, i64)> {
    if let Some(by) = op.as_small() {
        return Some((keypos + 1, by));
    }
    match *op.as_tuple()? {
        [p, by] => {
            let p = p.as_small().filter(|&p| p > 0 && p != keypos as i64)?;
            Some((p as usize, by.as_small()?))
        }
        _ => None,
    }
}

/// Adds in place, if the element is a small integer and stays one.
#[inline]
fn add_small(o: &mut Owned, p: usize, by: i64) -> Option<Term> {
    if p > o.arity() {
        return None;
    }
    let v = Term::try_small(o.element(p).as_small()?.checked_add(by)?)?;
    o.set_immediate(p, v).then_some(v)
}

/// Since OTP 29 a default must be a valid object of the table even if it is not needed.
fn sound_default(cx: &mut Cx, t: &Table, default: Option<Term>) -> Result<(), Fail> {
    match default.is_some_and(|d| !is_object(t, d)) && release::has(ETS_SOUND_DEFAULTS) {
        true => Err(cx.badarg_cause(am::DEFAULT)),
        false => Ok(()),
    }
}

fn update_counter(cx: &mut Cx, tab: Term, key: Term, op: Term, default: Option<Term>) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    t.note_read();
    weigh_growing(cx, t);
    sound_default(cx, t, default)?;
    if default.is_some_and(|d| !d.is_tuple()) {
        return Err(Fail::Badarg);
    }
    if !t.is_set() {
        return Err(cx.badarg_cause(table_type()));
    }
    let keypos = t.options.keypos;
    if let Some((p, by)) = plain_update(op, keypos)
        && let Some(v) =
            modify(cx, t, key, None, |_, o| (Change::None, add_small(o, p, by)))?.flatten()
    {
        return Ok(v);
    }
    let default = default.filter(|d| is_object(t, *d));
    let single = op.is_integer() || op.is_tuple();
    // Errors in the operations matter only if there is an object, and positions and old values are
    // checked one by one. So the list is cut at the first invalid operation.
    let mut sound = true;
    let ops: SmallVec<[Update; 4]> = if op.is_integer() {
        SmallVec::from_slice(&[(keypos as i64 + 1, op, None)])
    } else if single {
        updates(&[op]).unwrap_or_else(|| {
            sound = false;
            SmallVec::new()
        })
    } else {
        let mut v = SmallVec::new();
        let mut it = op.list_iter();
        for o in it.by_ref() {
            match updates(&[o]) {
                Some(u) => v.extend(u),
                None => {
                    sound = false;
                    break;
                }
            }
        }
        sound &= it.tail().is_nil();
        v
    };
    let r = modify(cx, t, key, default, |cx, o| {
        if sound {
            return count_up(cx, o, &ops, keypos);
        }
        // The first error decides.
        let bad = ops.iter().find_map(|&(p, ..)| {
            if p == keypos as i64 {
                Some(Refused::Cause(keypos_atom()))
            } else if p < 1 || p as usize > o.arity() {
                Some(Refused::Cause(position()))
            } else {
                (!o.element(p as usize).is_integer()).then_some(Refused::Badarg)
            }
        });
        (Change::Abort, Err(bad.unwrap_or(Refused::Badarg)))
    })?;
    match r {
        None => Err(cx.badarg_cause(am::BADKEY)),
        Some(Err(r)) => Err(r.raise(cx)),
        Some(Ok(v)) if single => Ok(v[0]),
        Some(Ok(v)) => Ok(cx.list(&v)),
    }
}

fn update_counter_3(cx: &mut Cx, [tab, key, op]: [Term; 3]) -> BifResult {
    update_counter(cx, tab, key, op, None)
}
fn update_counter_4(cx: &mut Cx, [tab, key, op, default]: [Term; 4]) -> BifResult {
    update_counter(cx, tab, key, op, Some(default))
}

fn update_element(
    cx: &mut Cx,
    tab: Term,
    key: Term,
    spec: Term,
    default: Option<Term>,
) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    weigh_growing(cx, t);
    sound_default(cx, t, default)?;
    if !t.is_set() || default.is_some_and(|d| !d.is_tuple()) {
        return Err(Fail::Badarg);
    }
    let may_be_new = default.is_some();
    let default = default.filter(|d| is_object(t, *d));
    let keypos = t.options.keypos as i64;
    let list = if spec.is_tuple() {
        cx.cons(spec, NIL)
    } else {
        spec
    };
    let r = modify(cx, t, key, default, |cx, o| {
        let mut new = Elements::default();
        let mut it = list.list_iter();
        let mut check = |s: Term| {
            let Some(&[p, v]) = s.as_tuple() else {
                return Err(Refused::Badarg);
            };
            let p = p.as_small().ok_or(Refused::Badarg)?;
            if p == keypos {
                return Err(Refused::Cause(keypos_atom()));
            }
            if p < 1 || p as usize > o.arity() {
                return Err(match release::has(ETS_POSITION_CAUSE) {
                    true => Refused::Cause(position()),
                    false => Refused::Badarg,
                });
            }
            new.set(p as usize, v);
            Ok(())
        };
        for s in it.by_ref() {
            if let Err(e) = check(s) {
                return (Change::Abort, Err(e));
            }
        }
        if !it.tail().is_nil() {
            return (Change::Abort, Err(Refused::Badarg));
        }
        (with_elements(cx, o, &new.list), Ok(()))
    })?;
    match r {
        // An invalid default counts only if it is needed.
        None if may_be_new => Err(Fail::Badarg),
        None => Ok(am::FALSE),
        Some(Err(r)) => Err(r.raise(cx)),
        Some(Ok(())) => Ok(am::TRUE),
    }
}
fn update_element_3(cx: &mut Cx, [tab, key, spec]: [Term; 3]) -> BifResult {
    update_element(cx, tab, key, spec, None)
}
fn update_element_4(cx: &mut Cx, [tab, key, spec, default]: [Term; 4]) -> BifResult {
    update_element(cx, tab, key, spec, Some(default))
}

/// A copy of an object's key, or the end of the table if there is no object.
fn key_of(cx: &mut Cx, t: &Table, o: Option<&Object>) -> Term {
    match o {
        Some(o) => o.copy_element(t.options.keypos, cx),
        None => am::END_OF_TABLE,
    }
}

pub(super) fn end(cx: &mut Cx, tab: Term, downwards: bool, which: Which) -> BifResult {
    let t = table(cx, tab, Want::Read)?;
    Ok(match &t.store {
        Store::Hash(h) => {
            let k = there!(cx, h.first(which, |o| key_of(cx, t, Some(o))));
            k.unwrap_or(am::END_OF_TABLE)
        }
        Store::Tree(s) => {
            let span = Span {
                low: None,
                high: None,
                downwards,
            };
            there!(cx, s.first(span, |o| key_of(cx, t, o)))
        }
    })
}
fn first_1(cx: &mut Cx, [tab]: [Term; 1]) -> BifResult {
    end(cx, tab, false, Which::Live)
}
fn last_1(cx: &mut Cx, [tab]: [Term; 1]) -> BifResult {
    end(cx, tab, true, Which::Live)
}

pub(super) fn step(cx: &mut Cx, tab: Term, key: Term, downwards: bool, which: Which) -> BifResult {
    let t = table(cx, tab, Want::Read)?;
    match &t.store {
        Store::Hash(h) => match there!(cx, h.next(key, which, |o| key_of(cx, t, Some(o)))) {
            Some(k) => Ok(k.unwrap_or(am::END_OF_TABLE)),
            None => Err(Fail::Badarg),
        },
        // The mark that ends a walk is not a key to continue from, even if it is a key.
        Store::Tree(_) if key == am::END_OF_TABLE => Err(Fail::Badarg),
        Store::Tree(s) => Ok(there!(
            cx,
            s.step(key, downwards, |k| match k {
                Some(k) => copy::copy(k, cx),
                None => am::END_OF_TABLE,
            })
        )),
    }
}
fn next_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    step(cx, tab, key, false, Which::Live)
}
fn prev_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    step(cx, tab, key, true, Which::Live)
}

/// `{Key, Objects}` for the key that `find` returns. If several objects may have a key, they are
/// looked up after it was found. If all of them have gone meanwhile, it is searched again.
fn with_objects(cx: &mut Cx, tab: Term, find: impl Fn(&mut Cx) -> BifResult) -> BifResult {
    loop {
        let key = find(cx)?;
        if key == am::END_OF_TABLE {
            return Ok(key);
        }
        let objects = lookup_2(cx, [tab, key])?;
        if !objects.is_nil() {
            return Ok(cx.tuple(&[key, objects]));
        }
    }
}
fn first_lookup_1(cx: &mut Cx, [tab]: [Term; 1]) -> BifResult {
    with_objects(cx, tab, |cx| end(cx, tab, false, Which::Live))
}
fn last_lookup_1(cx: &mut Cx, [tab]: [Term; 1]) -> BifResult {
    with_objects(cx, tab, |cx| end(cx, tab, true, Which::Live))
}
fn next_lookup_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    with_objects(cx, tab, |cx| step(cx, tab, key, false, Which::Live))
}
fn prev_lookup_2(cx: &mut Cx, [tab, key]: [Term; 2]) -> BifResult {
    with_objects(cx, tab, |cx| step(cx, tab, key, true, Which::Live))
}

fn slot_2(cx: &mut Cx, [tab, ix]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Read)?;
    let ix = ix.as_small().filter(|&i| i >= 0).ok_or(Fail::Badarg)? as usize;
    match &t.store {
        Store::Hash(h) => {
            let found = h.slot(ix, |it| {
                it.fold(NIL, |l, o| {
                    let c = o.copy_to(cx);
                    cx.cons(c, l)
                })
            });
            match there!(cx, found) {
                Some(l) => Ok(l.unwrap_or(am::END_OF_TABLE)),
                None => Err(Fail::Badarg),
            }
        }
        Store::Tree(s) => {
            let found = s.slot(ix, |o| match o {
                Some(_) => copy_one(cx, o, &mut false),
                None => am::END_OF_TABLE,
            });
            there!(cx, found).ok_or(Fail::Badarg)
        }
    }
}

fn internal_delete_all_2(cx: &mut Cx, [tab, _]: [Term; 2]) -> BifResult {
    let t = table(cx, tab, Want::Write)?;
    let n = there!(cx, t.clear());
    weigh_shrinking(cx, t);
    Ok(cx.uint(n as u64))
}

/// `ets:all/0` sends a request and waits for a reply of each scheduler: the first contains
/// everything.
fn internal_request_all_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let r = crate::ids::make_ref(cx);
    let me = cx.self_pid();
    let tables = crate::all();
    for i in 0..crate::bif::schedulers() {
        signal::send_with(me, |a| {
            let mut l = NIL;
            if i == 0 {
                for t in &tables {
                    if let Some(id) = crate::id(t, a) {
                        l = a.cons(id, l);
                    }
                }
            }
            let r = purlin_term::copy::copy(r, a);
            a.tuple(&[r, l])
        });
    }
    Ok(r)
}

bifs! {
    Plain "ets":"new"/2 = new_2 [writes(Table)];
    Plain "ets":"delete"/1 = delete_1 [writes(Table)];
    Plain "ets":"rename"/2 = rename_2 [writes(Table)];
    Plain "ets":"whereis"/1 = whereis_1 [reads(Table)];
    Plain "ets":"give_away"/3 = give_away_3 [writes(Table) signals_unnamed];
    Plain "ets":"setopts"/2 = setopts_2 [writes(Table)];
    Plain "ets":"safe_fixtable"/2 = safe_fixtable_2 [reads(Table)];
    Plain "ets":"insert"/2 = insert_2 [long writes(Object)];
    Plain "ets":"insert_new"/2 = insert_new_2 [long writes(Object) may_do_nothing];
    Plain "ets":"lookup"/2 = lookup_2 [reads(Key)];
    Plain "ets":"member"/2 = member_2 [reads(Key)];
    Plain "ets":"lookup_element"/3 = lookup_element_3 [reads(Key)];
    Plain "ets":"lookup_element"/4 = lookup_element_4 [reads(Key) since(26)];
    Plain "ets":"delete"/2 = delete_2 [writes(Key)];
    Plain "ets":"delete_object"/2 = delete_object_2 [writes(Object)];
    Plain "ets":"take"/2 = take_2 [writes(Key) may_do_nothing];
    Plain "ets":"update_counter"/3 = update_counter_3 [writes(Key)];
    Plain "ets":"update_counter"/4 = update_counter_4 [writes(Key)];
    Plain "ets":"update_element"/3 = update_element_3 [writes(Key)];
    Plain "ets":"update_element"/4 = update_element_4 [writes(Key) since(27)];
    Plain "ets":"first_lookup"/1 = first_lookup_1 [reads(Table) since(27)];
    Plain "ets":"last_lookup"/1 = last_lookup_1 [reads(Table) since(27)];
    Plain "ets":"next_lookup"/2 = next_lookup_2 [reads(Table) since(27)];
    Plain "ets":"prev_lookup"/2 = prev_lookup_2 [reads(Table) since(27)];
    Plain "ets":"first"/1 = first_1 [reads(Table)];
    Plain "ets":"last"/1 = last_1 [reads(Table)];
    Plain "ets":"next"/2 = next_2 [reads(Table)];
    Plain "ets":"prev"/2 = prev_2 [reads(Table)];
    Plain "ets":"slot"/2 = slot_2 [reads(Table)];
    Plain "ets":"internal_delete_all"/2 = internal_delete_all_2 [writes(Table)];
    Plain "ets":"internal_request_all"/0 = internal_request_all_0;
}
