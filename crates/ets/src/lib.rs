//! ETS: tables of objects that live outside processes.
//!
//! ```text
//!   tid (magic reference) ──> TableRef ──> Table ──> HashTable | TreeTable ──> Objects
//!   name ──────────────────────────────────> ↑
//! ```
//! A [`Table`] is found by its tid, by its name, and by its owner. Deleting it removes it from all
//! three and closes its store; the rest goes with the last tid. Operations that found the table
//! before find its store closed, and fail as if they had not found it.
//!
//! Terms leave a store only as copies: see `object`. Locks of a store are held within one call of a
//! method of [`hash::HashTable`] or [`tree::TreeTable`], and no code called meanwhile takes one.
//!
//! Other crates may use `matchspec` wherever they need match specifications.
//!
//! # Orderings
//! `Table::magic` is set with release in [`create`] after the magic reference is complete, and read
//! with acquire. [`end`] takes it with a swap that acquires and releases. All this happens under
//! the lock `admin` of a table that others know, so a thread either gets a reference that the table
//! still holds, or finds null. `alive`, `protection`, `owner` and `name` are released under that
//! lock and acquired without it; each may be out of date as soon as it is read, and the store's own
//! lock decides ([`Gone`]).

mod ahead;
pub mod fixation;
pub mod hash;
pub mod matchspec;
pub mod natives;
pub mod object;

pub mod tree;
mod try_lock;

use crate::cx::{Cx, Fail};
use crate::process::ext::{Hashing, Set};
use crate::process::resource_counts;
use hash::HashTable;
use object::Link;
use purlin_kernel::budgets::{self, Charge, Counted};
use purlin_kernel::{clock, code, cx, options, process, signal, sync};
use purlin_native::{bif, bifs, ids, lazy_atoms, native_state};
use purlin_term::frag::OwnedTerm;
use purlin_term::layout::RefView;
use purlin_term::magic::MagicRef;
use purlin_term::plants::{self, Plant};
use purlin_term::release::{self, TABLES_A_WORD_MORE};
use purlin_term::sync::{Mutex, MutexGuard, RwLock};
use purlin_term::{Alloc, Term, am};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use tree::TreeTable;

/// The table was deleted meanwhile.
#[derive(Debug)]
pub struct Gone;

/// Types of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Set,
    Bag,
    DuplicateBag,
    OrderedSet,
}

impl Kind {
    /// Its name in Erlang.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Set => "set",
            Kind::Bag => "bag",
            Kind::DuplicateBag => "duplicate_bag",
            Kind::OrderedSet => "ordered_set",
        }
    }
}

/// The protection of a table: the processes that may use it beside its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Protection {
    Private,
    /// All processes may read.
    Protected,
    Public,
}

impl Protection {
    /// Its name in Erlang.
    pub fn name(self) -> &'static str {
        match self {
            Protection::Private => "private",
            Protection::Protected => "protected",
            Protection::Public => "public",
        }
    }
}

/// The access that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// Information about the table, which everybody may have.
    Info,
    Read,
    Write,
}

/// `write_concurrency`, as requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteConcurrency {
    No,
    Yes,
    Auto,
    /// `{debug_hash_fixed_number_of_locks, N}`
    Locks(u32),
}

/// The options that a table was made with.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub kind: Kind,
    pub keypos: usize,
    pub protection: Protection,
    pub named: bool,
    pub compressed: bool,
    pub write_concurrency: WriteConcurrency,
    pub read_concurrency: bool,
    pub decentralized_counters: bool,
}

/// The heir: the process that gets the table when its owner ends.
pub struct Heir {
    pub pid: Term,
    /// The term in the message to the heir. None if there is no message.
    pub data: Option<OwnedTerm>,
}

/// The objects of a table.
pub enum Store {
    Hash(HashTable),
    Tree(TreeTable),
}

/// See the module head.
pub struct Table {
    pub options: Options,
    pub store: Store,
    /// The numbers of its tid.
    numbers: [u32; 3],
    /// The value of its tid, held while the table lives.
    magic: AtomicPtr<MagicRef>,
    alive: AtomicBool,
    /// Whether objects were read since it was made, or since [`Table::forget_reads`]. Written by
    /// readers that find it false, so the line of memory stays shared.
    read: AtomicBool,
    protection: AtomicU8,
    owner: AtomicU64,
    /// The index in its owner's list. Read and written under the lock of that list.
    owned_at: AtomicUsize,
    name: AtomicU64,
    /// Owner, heir, protection and name change under this lock, and the table ends under it. While
    /// nobody holds the lock, the table is on its owner's list (`Registry::owned`), except at the
    /// end of [`end`].
    admin: Mutex<Option<Heir>>,
    fixation: Mutex<fixation::Fixation>,
    /// Its charge to the budget of its owner, while it is alive.
    charge: Mutex<Option<Charge>>,
}

// SAFETY: the terms in it are immediates, and the heir's data, which lie in a fragment of their
// own.
unsafe impl Send for Heir {}

/// The value that a tid refers to.
struct TableRef(Arc<Table>);

/// Tables by some key, in shards so that threads that make tables do not contend. Every ending
/// process looks for its own in two of them. The runtime assigns the keys itself, so the hash need
/// not resist chosen keys.
struct Index<K, V>([RwLock<Shard<K, V>>; SHARDS]);
type Shard<K, V> = HashMap<K, V, Hashing>;
/// Number of locks of an index.
const SHARDS: usize = 16;

impl<K: std::hash::Hash + Eq, V> Index<K, V> {
    const fn new() -> Self {
        Index([const { RwLock::new(HashMap::with_hasher(Hashing::new())) }; SHARDS])
    }
    fn shard(&self, n: u64) -> &RwLock<Shard<K, V>> {
        &self.0[n as usize % SHARDS]
    }
}

/// The indices of atoms whose tables are in the same shard as those of `name`, in ascending order,
/// without `name`.
pub fn names_beside(name: Term) -> impl Iterator<Item = u32> {
    let own = name.atom_index();
    let first = own % SHARDS as u32;
    (first..).step_by(SHARDS).filter(move |i| *i != own)
}

struct Registry {
    all: Index<[u32; 3], Arc<Table>>,
    /// By the atom's index.
    names: Index<u32, Arc<Table>>,
    /// By the owner's word.
    owned: Index<u64, Vec<Arc<Table>>>,
    /// Tables that a process has fixed, by their addresses.
    fixed: Index<u64, Set<usize, Arc<Table>>>,
    /// Processes with access to everything, for `ets:info(T, binary)`.
    super_users: Mutex<HashSet<u64, Hashing>>,
    super_count: AtomicUsize,
}

static REGISTRY: Registry = Registry {
    all: Index::new(),
    names: Index::new(),
    owned: Index::new(),
    fixed: Index::new(),
    super_users: Mutex::new(HashSet::with_hasher(Hashing::new())),
    super_count: AtomicUsize::new(0),
};

/// Locks against writers and readers. A panic elsewhere leaves maps whole.
impl Table {
    /// The tid, as a term on some heap.
    pub(crate) fn tid<A: Alloc + ?Sized>(&self, to: &mut A) -> Option<Term> {
        // The lock keeps the table from being deleted, which gives up the value.
        let _admin = self.admin();
        let m = self.magic.load(Ordering::Acquire);
        if m.is_null() {
            return None;
        }
        // SAFETY: alive, since the table holds a reference to it.
        Some(unsafe { to.magic_ref(m) })
    }
    /// The term by which programs know the table: its name if it has one, else its tid.
    fn id<A: Alloc + ?Sized>(&self, to: &mut A) -> Option<Term> {
        if self.options.named {
            Some(self.name())
        } else {
            self.tid(to)
        }
    }
    pub fn kind(&self) -> Kind {
        self.options.kind
    }
    pub fn name(&self) -> Term {
        // SAFETY: the word of an atom.
        unsafe { Term::from_raw(self.name.load(Ordering::Acquire)) }
    }
    pub fn owner(&self) -> Term {
        // SAFETY: the word of a local pid.
        unsafe { Term::from_raw(self.owner.load(Ordering::Acquire)) }
    }
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }
    /// Notes that a program sees what is in the table.
    #[inline]
    pub(crate) fn note_read(&self) {
        if !self.read.load(Ordering::Relaxed) {
            self.read.store(true, Ordering::Relaxed);
        }
    }
    /// Whether a program has read what is in the table, at all or since [`Table::forget_reads`].
    pub fn was_read(&self) -> bool {
        self.read.load(Ordering::Relaxed)
    }
    /// Counts reads from now on.
    pub fn forget_reads(&self) {
        self.read.store(false, Ordering::Relaxed);
    }
    /// The process that gets the table when its owner ends.
    pub fn heir(&self) -> Option<Term> {
        self.admin().as_ref().map(|h| h.pid)
    }
    pub fn protection(&self) -> Protection {
        match self.protection.load(Ordering::Acquire) {
            0 => Protection::Private,
            1 => Protection::Protected,
            _ => Protection::Public,
        }
    }
    pub(crate) fn set_protection(&self, p: Protection) {
        self.protection.store(p as u8, Ordering::Release);
    }
    /// The heir, and the lock under which owner, heir, protection and name change.
    pub(crate) fn admin(&self) -> MutexGuard<'_, Option<Heir>> {
        self.admin.lock()
    }
    /// Whether the table has one object per key.
    pub fn is_set(&self) -> bool {
        matches!(self.options.kind, Kind::Set | Kind::OrderedSet)
    }
    /// Words of the table that its owner's budget pays for: all but those in shared regions.
    pub(crate) fn own_words(&self) -> usize {
        let shared = match &self.store {
            Store::Hash(h) => h.shared_words(),
            Store::Tree(t) => t.shared_words(),
        };
        // Others may be counting an object.
        self.size_and_words().1.saturating_sub_signed(shared)
    }
    /// Number of objects, and words of memory as stock counts them.
    pub fn size_and_words(&self) -> (usize, usize) {
        let (base, (n, words)) = match &self.store {
            Store::Hash(h) => (self.base_words() + h.bucket_words(), h.size()),
            Store::Tree(t) => (self.base_words(), t.size()),
        };
        // The data for the heir are kept like an object.
        let heir = match &*self.admin() {
            Some(Heir { data: Some(d), .. }) if !d.term().is_immed() => {
                d.words() + object::HEAD_WORDS
            }
            _ => 0,
        };
        (n, base + words + heir)
    }
    /// Words of an empty table: as in stock on a machine with one processor.
    fn base_words(&self) -> usize {
        let o = &self.options;
        let fine = o.write_concurrency != WriteConcurrency::No;
        let read = if o.read_concurrency && !fine { 32 } else { 0 };
        read + usize::from(release::has(TABLES_A_WORD_MORE))
            + match (o.kind, fine) {
                (Kind::OrderedSet, false) => 139,
                (Kind::OrderedSet, true) => 133,
                (_, false) => 305,
                (_, true) if o.decentralized_counters => 1395,
                (_, true) => 1361,
            }
    }

    #[inline]
    fn allows(&self, who: Term, want: Want) -> bool {
        let p = self.protection.load(Ordering::Acquire);
        match want {
            Want::Info => true,
            Want::Read if p >= Protection::Protected as u8 => true,
            Want::Write if p >= Protection::Public as u8 => true,
            _ => self.owner.load(Ordering::Acquire) == who.raw() || is_super_user(who),
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let m = *self.magic.get_mut();
        if !m.is_null() {
            // SAFETY: the reference that the table held.
            unsafe { MagicRef::release(m) };
        }
    }
}

/// Why a table was not found: the causes that stdlib knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotFound {
    /// Neither an atom nor a tid.
    Type,
    /// No such table.
    Id,
    Access,
}

crate::lazy_atoms! {
    id_cause = "id";
    access_cause = "access";
    ets_transfer = "ETS-TRANSFER";
}

impl NotFound {
    /// The `badarg` to raise.
    #[cold]
    pub fn raise(self, cx: &mut Cx) -> Fail {
        let cause = match self {
            NotFound::Type => am::TYPE,
            NotFound::Id => id_cause(),
            NotFound::Access => access_cause(),
        };
        cx.badarg_cause(cause)
    }
}

/// Number of named tables that a thread remembers, each in the place of its name.
const CACHED: usize = 64;

thread_local! {
    /// Named tables used last by this thread, by the low bits of the atom's index. An entry is
    /// valid as long as the table is alive and has that name, because then no other table can have
    /// it. Only named tables are here: other tables have names too, but are not found by them.
    static NAMED: RefCell<[Option<Arc<Table>>; CACHED]> = const { RefCell::new([const { None }; CACHED]) };
    /// The table that this thread found last by the numbers of its tid.
    static NUMBERED: RefCell<Option<Arc<Table>>> = const { RefCell::new(None) };
}

/// The table that `t` names, if `who` has the wanted access.
///
/// The reference is valid for the native call. The caller holds a tid. A table found by name or
/// numbers is held by this thread until it looks up another one that way, which natives do not do
/// while they use the first.
#[inline]
pub fn find<'a>(t: Term, who: Term, want: Want) -> Result<&'a Table, NotFound> {
    let table: &'a Table = if t.is_atom() {
        by_name(t).ok_or(NotFound::Id)?
    } else {
        match t.as_ref_view() {
            Some(RefView::Magic(m)) => &m.value.downcast_ref::<TableRef>().ok_or(NotFound::Type)?.0,
            Some(RefView::Local { num, .. }) => by_numbers(num).ok_or(NotFound::Type)?,
            _ => return Err(NotFound::Type),
        }
    };
    if !table.is_alive() {
        return Err(NotFound::Id);
    }
    if !table.allows(who, want) {
        return Err(NotFound::Access);
    }
    if want == Want::Read {
        table.note_read();
    }
    Ok(table)
}

/// As [`find`] for the running process, but raises the exception.
#[inline]
pub fn table<'a>(cx: &mut Cx, t: Term, want: Want) -> Result<&'a Table, Fail> {
    let me = cx.self_pid();
    purlin_kernel::waits::locks_begin();
    find(t, me, want).map_err(|e| e.raise(cx))
}

fn by_name<'a>(name: Term) -> Option<&'a Table> {
    NAMED.with(|c| {
        let slot = name.atom_index() as usize % CACHED;
        let mut c = c.borrow_mut();
        let hit = c[slot]
            .as_ref()
            .is_some_and(|t| t.name.load(Ordering::Acquire) == name.raw() && t.is_alive());
        if !hit {
            c[slot] = REGISTRY
                .names
                .shard(name.atom_index() as u64)
                .read()
                .get(&name.atom_index())
                .cloned();
        }
        // SAFETY: the cache holds the table until the slot is used for another name; see `find`.
        c[slot].as_ref().map(|t| unsafe { &*Arc::as_ptr(t) })
    })
}

/// Finds a table by a tid that has been through the external format and is an ordinary reference.
#[cold]
fn by_numbers<'a>(num: [u32; 3]) -> Option<&'a Table> {
    let t = REGISTRY
        .all
        .shard(num[0] as u64)
        .read()
        .get(&num)
        .cloned()?;
    NUMBERED.with(|c| {
        // SAFETY: the cache holds the table until another is found this way; see `find`.
        let found = unsafe { &*Arc::as_ptr(&t) };
        *c.borrow_mut() = Some(t);
        Some(found)
    })
}

/// The reason why a table is not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotMade {
    NameTaken,
    /// The budget of its owner has no table left.
    Budget,
}

/// Makes a table.
pub fn create(
    options: Options,
    name: Term,
    owner: Term,
    heir: Option<Heir>,
) -> Result<Arc<Table>, NotMade> {
    let o = &options;
    let charge = Charge::new(owner, Counted::Tables).ok_or(NotMade::Budget)?;
    let store = match o.kind {
        Kind::OrderedSet => Store::Tree(TreeTable::new(o.keypos, o.read_concurrency)),
        kind => {
            let stripes = match (o.protection, o.write_concurrency) {
                (Protection::Private, _) => 1,
                (_, WriteConcurrency::No) => 16,
                _ => hash::FINE_STRIPES,
            };
            Store::Hash(HashTable::new(kind, o.keypos, stripes, o.read_concurrency))
        }
    };
    let numbers = ids::ref_numbers();
    let table = Arc::new(Table {
        protection: AtomicU8::new(o.protection as u8),
        options,
        store,
        numbers,
        magic: AtomicPtr::new(std::ptr::null_mut()),
        alive: AtomicBool::new(true),
        read: AtomicBool::new(false),
        owner: AtomicU64::new(owner.raw()),
        owned_at: AtomicUsize::new(0),
        name: AtomicU64::new(name.raw()),
        admin: Mutex::new(heir),
        fixation: Mutex::new(Default::default()),
        charge: Mutex::new(Some(charge)),
    });
    let r = &REGISTRY;
    let mut names = table
        .options
        .named
        .then(|| r.names.shard(name.atom_index() as u64).write());
    if names
        .as_ref()
        .is_some_and(|n| n.contains_key(&name.atom_index()))
    {
        return Err(NotMade::NameTaken);
    }
    let m = MagicRef::new(numbers, Box::new(TableRef(table.clone())));
    // SAFETY: just made; the table holds this reference while it lives.
    unsafe { (*m).retain() };
    table.magic.store(m as *mut MagicRef, Ordering::Release);
    own(owner, &table);
    r.all
        .shard(numbers[0] as u64)
        .write()
        .insert(numbers, table.clone());
    // Last, because a thread that finds the table by its name may delete it at once.
    if let Some(n) = &mut names {
        n.insert(name.atom_index(), table.clone());
    }
    Ok(table)
}

fn own(owner: Term, t: &Arc<Table>) {
    resource_counts::enter(owner);
    let mut m = REGISTRY.owned.shard(owner.pid_data() as u64).write();
    let v = m.entry(owner.raw()).or_default();
    t.owned_at.store(v.len(), Ordering::Relaxed);
    v.push(t.clone());
}
fn disown(owner: Term, t: &Table) -> Option<Arc<Table>> {
    let mut m = REGISTRY.owned.shard(owner.pid_data() as u64).write();
    let v = m.get_mut(&owner.raw())?;
    // Another thread may have removed it from the list.
    let i = t.owned_at.load(Ordering::Relaxed);
    v.get(i).filter(|x| std::ptr::eq(&***x, t))?;
    let t = v.swap_remove(i);
    if let Some(moved) = v.get(i) {
        moved.owned_at.store(i, Ordering::Relaxed);
    }
    if v.is_empty() {
        m.remove(&owner.raw());
    }
    resource_counts::leave(owner, 1);
    Some(t)
}

/// The remains of deleted objects.
enum Garbage {
    #[expect(dead_code, reason = "kept to be dropped")]
    Chains(Vec<Vec<Link>>),
    #[expect(dead_code, reason = "kept to be dropped")]
    Tree(tree::Remains),
}

/// Maximum number of objects that are freed at once; more are freed by a thread of their own.
const FREED_AT_ONCE: usize = 10_000;

/// Frees the remains of `n` deleted objects.
fn discard(n: usize, g: Garbage) {
    if n <= FREED_AT_ONCE || purlin_kernel::os::exploring::on() {
        return;
    }
    static REAPER: OnceLock<Option<mpsc::Sender<Garbage>>> = OnceLock::new();
    let reaper = REAPER.get_or_init(|| {
        let (tx, rx) = mpsc::channel::<Garbage>();
        let t = std::thread::Builder::new().name("ets_reaper".into());
        let serve = move || {
            purlin_kernel::affinity::begin_unbound();
            rx.into_iter().for_each(drop);
        };
        t.spawn(serve).ok().map(|_| tx)
    });
    // Without a thread it is dropped here.
    if let Some(r) = reaper {
        let _ = r.send(g);
    }
}

impl Table {
    /// Deletes all objects. Returns their number.
    pub fn clear(&self) -> Result<usize, Gone> {
        let (n, g) = match &self.store {
            Store::Hash(h) => {
                let (n, chains) = h.clear()?;
                (n, Garbage::Chains(chains))
            }
            Store::Tree(t) => {
                let (n, rest) = t.clear()?;
                (n, Garbage::Tree(rest))
            }
        };
        discard(n, g);
        Ok(n)
    }
}

/// Deletes a table. Returns false if another process did.
pub fn delete(t: &Table) -> bool {
    let admin = t.admin();
    if !t.is_alive() {
        return false;
    }
    end(t, admin);
    true
}

/// Deletes a table that is alive, under its admin lock.
fn end(t: &Table, mut admin: MutexGuard<'_, Option<Heir>>) {
    t.alive.store(false, Ordering::Release);
    let magic = t.magic.swap(std::ptr::null_mut(), Ordering::AcqRel);
    let (owner, name, heir) = (t.owner(), t.name(), admin.take());
    drop(admin);
    drop(heir);
    let r = &REGISTRY;
    if t.options.named {
        let mut names = r.names.shard(name.atom_index() as u64).write();
        if names
            .get(&name.atom_index())
            .is_some_and(|x| std::ptr::eq(&**x, t))
        {
            names.remove(&name.atom_index());
        }
    }
    r.all.shard(t.numbers[0] as u64).write().remove(&t.numbers);
    // The last of these may be what keeps the table alive: it goes at the end.
    let keep = disown(owner, t);
    let charge = t.charge.lock().take();
    drop(charge);
    fixation::forget(t);
    let n = t.size_and_words().0;
    match &t.store {
        Store::Hash(h) => discard(n, Garbage::Chains(h.close())),
        Store::Tree(tree) => {
            if let Some(rest) = tree.close() {
                discard(n, Garbage::Tree(rest));
            }
        }
    }
    if !magic.is_null() {
        // SAFETY: the reference that the table held; the caller's tid, or `keep`, still holds the
        // table.
        unsafe { MagicRef::release(magic) };
    }
    drop(keep);
}

/// All tables.
pub fn all() -> Vec<Arc<Table>> {
    let mut v = Vec::new();
    for s in &REGISTRY.all.0 {
        v.extend(s.read().values().cloned());
    }
    v
}

/// Charges the budgets of their owners for the tables that processes of budget `index`, which has
/// ended, have given to others.
pub fn end_of_budget(index: u32) {
    for t in all() {
        let _admin = t.admin();
        let owner = t.owner();
        let mut charge = t.charge.lock();
        let budget = charge.as_ref().map_or(budgets::ROOT, Charge::budget);
        let left = budget != budgets::ROOT && budgets::is_within(budget, index);
        if left && !budgets::is_within(budgets::of_pid(owner), index) {
            *charge = charge.take().map(|c| c.moved_to(owner));
        }
    }
}

/// Calls `f` on the first object of a key, in place.
pub fn look<R>(t: &Table, key: Term, f: impl FnOnce(Term) -> R) -> Option<R> {
    match &t.store {
        Store::Hash(h) => h.with_key(key, |mut m| m.next().map(|o| f(o.tuple()))),
        Store::Tree(s) => s.with_key(key, |o| o.map(|o| f(o.tuple()))),
    }
    .ok()
    .flatten()
}

/// Shows objects, in place and under the table's lock, until about `most` were shown. Returns
/// whether those were all.
pub fn each(t: &Table, most: usize, f: &mut dyn FnMut(Term)) -> bool {
    struct Looks<'a> {
        left: usize,
        f: &'a mut dyn FnMut(Term),
    }
    impl hash::Visitor for Looks<'_> {
        fn object(&mut self, o: &object::Object) -> hash::Verdict {
            if self.left > 0 {
                self.left -= 1;
                (self.f)(o.tuple());
            }
            hash::Verdict::Keep
        }
        fn go_on(&mut self) -> bool {
            self.left > 0
        }
    }
    let mut v = Looks { left: most, f };
    match &t.store {
        Store::Hash(h) => match h.scan(0, &mut v) {
            Ok(Some(_)) => {
                h.unfix(1);
                false
            }
            Ok(None) => true,
            Err(Gone) => true,
        },
        Store::Tree(s) => {
            let all = tree::Span {
                low: None,
                high: None,
                downwards: false,
            };
            let stopped = s.scan(all, &mut v, &mut |_| ());
            !matches!(stopped, Ok(true))
        }
    }
}

/// The term by which programs know a table, on some heap.
pub fn id<A: Alloc + ?Sized>(t: &Table, to: &mut A) -> Option<Term> {
    t.id(to)
}

/// The table that a magic reference refers to; None if it refers to something else.
pub fn of_magic(m: &MagicRef) -> Option<&Table> {
    Some(&m.value.downcast_ref::<TableRef>()?.0)
}

/// The table with a tid of these numbers.
pub fn of_numbers(num: [u32; 3]) -> Option<Arc<Table>> {
    let all = REGISTRY.all.shard(num[0] as u64).read();
    all.get(&num).cloned()
}

/// Number of tables, and of bytes that they take.
pub fn totals() -> (usize, usize) {
    all()
        .iter()
        .fold((0, 0), |(n, b), t| (n + 1, b + 8 * t.size_and_words().1))
}

/// Number of objects in all tables.
pub fn objects() -> usize {
    all().iter().map(|t| t.size_and_words().0).sum()
}

/// Whether a table can be given to that process. Once this holds for a process that has just been
/// made an owner, the process will handle its tables when it ends.
pub(crate) fn may_own(pid: Term) -> bool {
    process::table().is_alive(pid)
}

/// Gives a table to another process, and tells it. The caller holds the table's admin lock and has
/// checked that the table is alive. After it has released the lock, it calls [`settle`].
pub(crate) fn transfer(t: &Table, from: Term, to: Term, gift: Option<Term>) {
    if let Some(t) = disown(from, t) {
        t.owner.store(to.raw(), Ordering::Release);
        own(to, &t);
        if budgets::on() {
            let mut charge = t.charge.lock();
            *charge = charge.take().map(|c| c.moved_to(to));
        }
    }
    let Some(gift) = gift else { return };
    // The lock is held, so the tid is made without it.
    let m = t.magic.load(Ordering::Acquire);
    signal::send_with(to, |a| {
        let id = if t.options.named || m.is_null() {
            t.name()
        } else {
            // SAFETY: alive, since the table is, under its lock.
            unsafe { a.magic_ref(m) }
        };
        let gift = purlin_term::copy::copy(gift, a);
        a.tuple(&[ets_transfer(), id, from, gift])
    });
}

/// Completes giving a table to a process. If the process ended before it was the owner, it may not
/// have found the table, which is then passed on here. The caller holds no table's lock.
pub fn settle(owner: Term) {
    if !may_own(owner) {
        pass_on(owner);
    }
}

/// Passes the tables of an ended process to their heirs, or deletes them. Any number of threads may
/// do this for the same process: each table is handled under its lock.
fn pass_on(pid: Term) {
    // Heirs that turned out to have ended, too.
    let mut ended = vec![pid];
    while let Some(pid) = ended.pop() {
        while let Some(t) = last_owned(pid) {
            let admin = t.admin();
            if !t.is_alive() {
                // Another thread is about to remove it from the list.
                drop(admin);
                disown(pid, &t);
                continue;
            }
            if t.owner() != pid {
                continue;
            }
            // An heir stays heir: it may give the table away, and get it again.
            let heir = match &*admin {
                Some(h) if h.pid != pid && may_own(h.pid) => {
                    Some((h.pid, h.data.as_ref().map(OwnedTerm::term)))
                }
                _ => None,
            };
            let Some((heir, gift)) = heir else {
                end(&t, admin);
                continue;
            };
            transfer(&t, pid, heir, gift);
            if plants::due(Plant::HeirLoses, 20) {
                let _ = t.clear();
            }
            drop(admin);
            if !may_own(heir) {
                ended.push(heir);
            }
        }
    }
}

/// The table that a process has owned for the shortest time.
fn last_owned(pid: Term) -> Option<Arc<Table>> {
    let shard = REGISTRY.owned.shard(pid.pid_data() as u64);
    let m = shard.read();
    m.get(&pid.raw())?.last().cloned()
}

/// Handles the end of a process: its tables go to their heirs or are deleted, and its fixations
/// end.
pub fn owner_exit(pid: Term) {
    if REGISTRY.super_count.load(Ordering::Relaxed) > 0 {
        set_super_user(pid, false);
    }
    if !resource_counts::any(pid) {
        return;
    }
    fixation::owner_exit(pid);
    pass_on(pid);
}

/// Renames a table. Returns false if the name is taken.
pub(crate) fn rename(t: &Table, name: Term) -> bool {
    let _admin = t.admin();
    // Deletion removes the name that the table has at that time.
    if !t.is_alive() {
        return false;
    }
    let old = t.name();
    if !t.options.named {
        t.name.store(name.raw(), Ordering::Release);
        return true;
    }
    let r = &REGISTRY;
    let arc = {
        let names = r.names.shard(old.atom_index() as u64).read();
        match names.get(&old.atom_index()) {
            Some(a) if std::ptr::eq(&**a, t) => a.clone(),
            _ => return false,
        }
    };
    {
        let mut names = r.names.shard(name.atom_index() as u64).write();
        if names.contains_key(&name.atom_index()) {
            return false;
        }
        names.insert(name.atom_index(), arc);
    }
    t.name.store(name.raw(), Ordering::Release);
    r.names
        .shard(old.atom_index() as u64)
        .write()
        .remove(&old.atom_index());
    true
}

#[inline]
fn is_super_user(who: Term) -> bool {
    let r = &REGISTRY;
    r.super_count.load(Ordering::Relaxed) > 0 && r.super_users.lock().contains(&who.raw())
}

/// Grants a process access to all tables, or revokes it.
pub(crate) fn set_super_user(who: Term, on: bool) {
    let r = &REGISTRY;
    let mut s = r.super_users.lock();
    if on {
        s.insert(who.raw());
    } else {
        s.remove(&who.raw());
    }
    r.super_count.store(s.len(), Ordering::Relaxed);
}

/// The heir, or the atom that stands for none.
pub(crate) fn heir_pid(h: &Option<Heir>) -> Term {
    h.as_ref().map_or(am::NONE, |h| h.pid)
}
