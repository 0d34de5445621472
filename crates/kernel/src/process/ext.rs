//! The parts of a process that most processes do without: dictionary, links, monitors, and the
//! settings and states of rare features.
//!
//! A control block has one pointer to an [`Ext`], which is made when the first part is needed. The
//! rarest parts are in a second block, [`Rare`]. The sets of links and monitors take no memory
//! while they are empty, and are an array, then a hash table, as they grow ([`Set`]).
//!
//! # Invariants
//! - All of it belongs to the owner of the process: no other thread reads or writes it.
//! - Terms here are immediates, or in memory of their own ([`OwnedTerm`]). The exceptions are the
//!   dictionary, which is among the roots of collections, and the registers of a packed process.

use super::dense::Dense;
use super::dict::Dict;
use super::state::Priority;
use super::task::Task;
pub use crate::keys::{AliasMode, RefKey};
use crate::message::Signal;
use crate::message::sharing::Tally;
use crate::message::token::Sequence;
use crate::remote::{Remote, Watched};
use purlin_term::frag::OwnedTerm;
use purlin_term::heap::Heap;
use purlin_term::{NIL, Term};
use smallvec::SmallVec;
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A local process or port, as a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Peer(u32);

const PORT: u32 = 1 << 31;

impl Peer {
    /// Returns the key of a local pid or port. Any other term has a key that is in no set.
    #[inline]
    pub fn of(t: Term) -> Peer {
        if t.is_local_pid() {
            Peer(t.pid_data())
        } else if t.is_local_port() {
            Peer(t.pid_data() | PORT)
        } else {
            Peer(u32::MAX)
        }
    }
    /// Returns its pid or port.
    #[inline]
    pub fn term(self) -> Term {
        match self.0 & PORT {
            0 => Term::pid(self.0),
            _ => Term::port(self.0 & !PORT),
        }
    }
}

/// A small map: no entry or one in place, then a vector up to [`FEW`] entries, then a hash table.
pub struct Set<K, V>(Repr<K, V>);

// Nearly every process has at most one link or monitor. Those must not cost a block of memory.
enum Repr<K, V> {
    None,
    One(K, V),
    Few(Far<Vec<(K, V)>>),
    Many(Far<Dense<K, V, Mix>>),
}

/// A box that is aligned to four bytes only, so that it doesn't raise the alignment of [`Repr`].
#[repr(C, packed(4))]
struct Far<T>(*mut T);

// SAFETY: it owns its value, as a box does.
unsafe impl<T: Send> Send for Far<T> {}
// SAFETY: a reference to it only gives references to its value.
unsafe impl<T: Sync> Sync for Far<T> {}

impl<T> Far<T> {
    #[inline]
    fn new(t: T) -> Far<T> {
        Far(Box::into_raw(Box::new(t)))
    }
    #[inline]
    fn get(&self) -> &T {
        // SAFETY: from `Box::into_raw`, and this is its only owner.
        unsafe { &*{ self.0 } }
    }
    #[inline]
    fn get_mut(&mut self) -> &mut T {
        // SAFETY: from `Box::into_raw`, and this is its only owner, which is borrowed mutably.
        unsafe { &mut *{ self.0 } }
    }
    #[inline]
    fn take(self) -> T {
        let p = self.0;
        std::mem::forget(self);
        // SAFETY: from `Box::into_raw`, and this was its only owner, which is forgotten.
        unsafe { *Box::from_raw(p) }
    }
}

impl<T> Drop for Far<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`, and this is its only owner, which is not used afterwards.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

const FEW: usize = 16;

/// The former entries of a [`Set`].
pub(crate) type Drained<K, V> = SmallVec<[(K, V); 1]>;

pub use crate::hashing::{Hashing, Mix};

impl<K: Eq + std::hash::Hash + Copy, V> Default for Set<K, V> {
    #[inline]
    fn default() -> Self {
        Set(Repr::None)
    }
}

impl<K: Eq + std::hash::Hash + Copy, V> Set<K, V> {
    #[inline]
    pub fn get_mut(&mut self, k: &K) -> Option<&mut V> {
        match &mut self.0 {
            Repr::None => None,
            Repr::One(key, v) => (key == k).then_some(v),
            Repr::Few(f) => (f.get_mut().iter_mut())
                .find(|e| e.0 == *k)
                .map(|e| &mut e.1),
            Repr::Many(m) => m.get_mut().get_mut(k),
        }
    }
    #[inline]
    pub fn contains(&mut self, k: &K) -> bool {
        self.get_mut(k).is_some()
    }
    pub fn insert(&mut self, k: K, v: V) {
        if let Some(e) = self.get_mut(&k) {
            *e = v;
            return;
        }
        match &mut self.0 {
            Repr::Few(f) if f.get().len() < FEW => f.get_mut().push((k, v)),
            Repr::Many(m) => m.get_mut().insert_new(k, v),
            old => {
                self.0 = match std::mem::replace(old, Repr::None) {
                    Repr::One(k0, v0) => Repr::Few(Far::new(vec![(k0, v0), (k, v)])),
                    Repr::Few(f) => {
                        let mut m = Dense::from_entries(f.take());
                        m.insert_new(k, v);
                        Repr::Many(Far::new(m))
                    }
                    _ => Repr::One(k, v),
                };
            }
        }
    }
    pub fn remove(&mut self, k: &K) -> Option<V> {
        match &mut self.0 {
            Repr::None => None,
            Repr::One(key, _) => {
                if key != k {
                    return None;
                }
                match std::mem::replace(&mut self.0, Repr::None) {
                    Repr::One(_, v) => Some(v),
                    _ => None,
                }
            }
            // Removal keeps the order of the rest, which process_info shows.
            Repr::Few(f) => {
                let f = f.get_mut();
                let i = f.iter().position(|e| e.0 == *k)?;
                let v = f.remove(i).1;
                if f.is_empty() {
                    self.0 = Repr::None;
                }
                Some(v)
            }
            Repr::Many(m) => {
                let m = m.get_mut();
                let v = m.remove(k);
                if m.is_empty() {
                    self.0 = Repr::None;
                }
                v
            }
        }
    }
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::None => 0,
            Repr::One(..) => 1,
            Repr::Few(f) => f.get().len(),
            Repr::Many(m) => m.get().len(),
        }
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    #[inline]
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&K, &V)> + '_> {
        match &self.0 {
            Repr::None => Box::new(std::iter::empty()),
            Repr::One(k, v) => Box::new(std::iter::once((k, v))),
            Repr::Few(f) => Box::new(f.get().iter().map(|e| (&e.0, &e.1))),
            Repr::Many(m) => Box::new(m.get().iter()),
        }
    }
    /// Removes and returns all entries.
    #[inline]
    pub fn drain(&mut self) -> Drained<K, V> {
        match std::mem::replace(&mut self.0, Repr::None) {
            Repr::None => Drained::new(),
            Repr::One(k, v) => Drained::from_buf([(k, v)]),
            Repr::Few(f) => Drained::from_vec(f.take()),
            Repr::Many(m) => Drained::from_vec(m.take().into_entries()),
        }
    }
    /// Bytes allocated outside of the value itself.
    #[inline]
    pub fn bytes(&self) -> usize {
        let entry = size_of::<(K, V)>();
        match &self.0 {
            Repr::None | Repr::One(..) => 0,
            Repr::Few(f) => size_of::<Vec<(K, V)>>() + f.get().capacity() * entry,
            Repr::Many(m) => size_of::<Dense<K, V, Mix>>() + m.get().bytes(),
        }
    }
}

/// A [`Set`] behind a pointer, for large or very rare ones.
pub struct Lazy<K, V>(Option<Box<Set<K, V>>>);

impl<K, V> Default for Lazy<K, V> {
    #[inline]
    fn default() -> Self {
        Lazy(None)
    }
}

impl<K: Eq + std::hash::Hash + Copy, V> Lazy<K, V> {
    #[inline]
    pub fn get_mut(&mut self, k: &K) -> Option<&mut V> {
        self.0.as_mut()?.get_mut(k)
    }
    #[inline]
    pub fn contains(&mut self, k: &K) -> bool {
        self.get_mut(k).is_some()
    }
    #[inline]
    pub fn insert(&mut self, k: K, v: V) {
        self.0.get_or_insert_default().insert(k, v);
    }
    #[inline]
    pub fn remove(&mut self, k: &K) -> Option<V> {
        self.0.as_mut()?.remove(k)
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|s| s.is_empty())
    }
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + '_ {
        self.0.iter().flat_map(|s| s.iter())
    }
    /// Removes and returns all entries.
    #[inline]
    pub fn drain(&mut self) -> Drained<K, V> {
        self.0.take().map_or_else(Drained::new, |mut s| s.drain())
    }
    /// Bytes allocated outside of the value itself.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |s| size_of::<Set<K, V>>() + s.bytes())
    }
    /// Frees its memory if it is empty.
    #[inline]
    pub(crate) fn compact(&mut self) {
        if self.is_empty() {
            self.0 = None;
        }
    }
}

/// One end of a link.
#[derive(Clone, Copy)]
pub struct Link {
    /// Number of the unlink operation whose acknowledgement this end awaits; 0 for none.
    pub unlinking: u32,
}

/// The target of a monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A local process or port.
    Local(Term),
    /// A local process or port, monitored by name.
    Named(Term, Term),
    /// `time_offset`.
    Clock,
    /// A target that did not exist. The message that says so is in transit.
    Gone,
    /// On another node; see [`Monitor::watched`].
    Remote,
}

/// The monitoring end of a monitor. A process may have a million of them, so the struct is packed:
/// an entry of the set takes 20 bytes.
#[repr(C, packed(4))]
pub struct Monitor {
    /// Data bits of the pid or port, its kind ([`KIND`]) and the [`AliasMode`].
    what: u32,
    /// Null, or from `Box::into_raw`.
    more: *mut More,
}

/// Parts that most monitors don't have.
struct More {
    /// `{tag, T}`
    tag: Option<Box<OwnedTerm>>,
    /// The registered name that it monitors by, or nil.
    name: Term,
    /// The target, if it is on another node.
    watched: Option<Box<Watched>>,
}

// Fields of `Monitor::what`. Pids and ports have 28 data bits.
const DATA: u32 = (1 << 28) - 1;
const KIND: u32 = 3 << 28;
const KIND_PORT: u32 = 1 << 28;
/// The clock or, with [`GONE`] as data, a target that did not exist.
const KIND_OTHER: u32 = 2 << 28;
const GONE: u32 = 1;
const KIND_REMOTE: u32 = 3 << 28;
const ALIAS_SHIFT: u32 = 30;

const _: () = assert!(size_of::<(RefKey, Monitor)>() == 20);

impl Monitor {
    /// Returns a monitor of a local target.
    pub fn new(target: Target, alias: AliasMode, tag: Option<Box<OwnedTerm>>) -> Monitor {
        let (object, name) = match target {
            Target::Local(t) => (t, NIL),
            Target::Named(t, n) => (t, n),
            Target::Clock | Target::Gone | Target::Remote => (NIL, NIL),
        };
        let what = match object {
            t if t.is_local_pid() => t.pid_data(),
            t if t.is_local_port() => t.pid_data() | KIND_PORT,
            _ if target == Target::Gone => KIND_OTHER | GONE,
            _ => KIND_OTHER,
        };
        let more = match &tag {
            None if name.is_nil() => std::ptr::null_mut(),
            _ => Box::into_raw(Box::new(More {
                tag,
                name,
                watched: None,
            })),
        };
        let mut m = Monitor { what, more };
        m.set_alias(alias);
        m
    }
    /// Returns a monitor of a target on another node.
    pub fn remote(watched: Watched, alias: AliasMode, tag: Option<Box<OwnedTerm>>) -> Monitor {
        let more = More {
            tag,
            name: NIL,
            watched: Some(Box::new(watched)),
        };
        let mut m = Monitor {
            what: KIND_REMOTE,
            more: Box::into_raw(Box::new(more)),
        };
        m.set_alias(alias);
        m
    }
    /// Returns its target on another node.
    #[inline]
    pub fn watched(&self) -> Option<&Watched> {
        self.more()?.watched.as_deref()
    }
    #[inline]
    fn more(&self) -> Option<&More> {
        let more = self.more;
        // SAFETY: null or a box that belongs to this monitor.
        unsafe { more.as_ref() }
    }
    pub fn target(&self) -> Target {
        let object = match self.what & KIND {
            0 => Term::pid(self.what & DATA),
            KIND_PORT => Term::port(self.what & DATA),
            KIND_REMOTE => return Target::Remote,
            _ if self.what & DATA == GONE => return Target::Gone,
            _ => return Target::Clock,
        };
        match self.more() {
            Some(m) if !m.name.is_nil() => Target::Named(object, m.name),
            _ => Target::Local(object),
        }
    }
    /// Returns how its reference serves as an alias.
    #[inline]
    pub fn alias(&self) -> AliasMode {
        match self.what >> ALIAS_SHIFT {
            0 => AliasMode::None,
            1 => AliasMode::Explicit,
            2 => AliasMode::Demonitor,
            _ => AliasMode::ReplyDemonitor,
        }
    }
    /// Sets how its reference serves as an alias.
    #[inline]
    pub fn set_alias(&mut self, alias: AliasMode) {
        self.what = self.what & (DATA | KIND) | (alias as u32) << ALIAS_SHIFT;
    }
    /// Returns the tag of its down message, if it has one.
    #[inline]
    pub fn tag(&self) -> Option<Term> {
        self.more()?.tag.as_ref().map(|t| t.term())
    }
}

impl Drop for Monitor {
    #[inline]
    fn drop(&mut self) {
        let more = self.more;
        if !more.is_null() {
            // SAFETY: a box that belongs to this monitor, which is not used afterwards.
            drop(unsafe { Box::from_raw(more) });
        }
    }
}

/// Index of no atom.
const NO_NAME: u32 = u32::MAX;
/// [`Watcher::by`] of a watcher that is no process. No pid has this data.
const OUTSIDE: u32 = u32::MAX;

/// The monitored end of a monitor.
#[derive(Clone, Copy)]
pub struct Watcher {
    /// Data bits of the watching process's pid.
    by: u32,
    /// Index of the registered name that it monitors by, or [`NO_NAME`]. The atom itself is in
    /// [`Rare::watched_by`].
    name: u32,
}

impl Watcher {
    /// Returns a watcher: the local process `by`, which monitors by `name` or nil. A nil `by`
    /// stands for something outside of processes; see
    /// [`Outside::watched_down`](crate::outside::Outside::watched_down).
    fn new(by: Term, name: Term) -> Watcher {
        debug_assert!(by.is_local_pid() || by.is_nil());
        Watcher {
            by: if by.is_nil() { OUTSIDE } else { by.pid_data() },
            name: match name.is_atom() {
                true => name.atom_index(),
                false => NO_NAME,
            },
        }
    }
    /// Returns the watching pid; nil for something outside of processes.
    #[inline]
    pub fn by(&self) -> Term {
        match self.by {
            OUTSIDE => NIL,
            data => Term::pid(data),
        }
    }
    /// Returns the name that it monitors by, or nil.
    #[inline]
    pub fn name(&self) -> Term {
        match self.name {
            NO_NAME => NIL,
            n => Term::atom(n),
        }
    }
}

/// Settings that differ from the defaults of the runtime.
#[derive(Clone, Copy, Default)]
pub struct Settings {
    pub min_heap_words: Option<u32>,
    pub min_vheap_words: Option<usize>,
    pub fullsweep_after: Option<u32>,
}

/// `max_heap_size`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MaxHeap {
    /// Words; 0 means no limit.
    pub words: usize,
    pub kill: bool,
    pub error_logger: bool,
    pub include_shared_binaries: bool,
}

/// See the module docs. The rarest parts are in [`Rare`]: their fields read like fields of this
/// struct, and writing to one allocates the block.
#[derive(Default)]
pub struct Ext {
    pub dict: Dict,
    pub links: Set<Peer, Link>,
    /// Monitors by reference.
    pub monitors: Lazy<RefKey, Monitor>,
    /// Processes that monitor it; [`Ext::watch`] adds to them.
    pub watchers: Set<RefKey, Watcher>,
    rare: Option<Box<Rare>>,
}

/// A call whose time or memory is being measured.
#[derive(Clone, Copy)]
pub struct Timed {
    /// Number of the measured quantity and its session, as the tracing code numbers them.
    pub number: i64,
    pub entry: usize,
    /// Reading of the measure at the start; 0 if the process doesn't run.
    pub since: i64,
}

/// State of a process that has ended within a NIF.
pub struct Gone {
    /// The pid that it had.
    pub pid: Term,
    /// The module of the function. It keeps code and library loaded while the function runs.
    pub(crate) _keeps: Box<dyn std::any::Any + Send + Sync>,
}

/// Parts that hardly any process has.
pub struct Rare {
    pub regs: Vec<Term>,
    /// Aliases that are not monitors; true if the first message ends the alias.
    pub aliases: Set<RefKey, bool>,
    /// Registered name, or nil.
    pub name: Term,
    /// The names by which others monitor it, as words: a collection of atoms finds no numbers. It
    /// may have more than those of [`Ext::watchers`].
    watched_by: BTreeSet<u64>,
    /// Group leader on another node.
    pub group_leader: Option<Box<OwnedTerm>>,
    /// Module whose `undefined_function` is called; nil for `error_handler`.
    pub error_handler: Term,
    pub settings: Settings,
    pub max_heap: Option<MaxHeap>,
    /// Reason for which a signal has ended it.
    pub exit_reason: Option<Box<OwnedTerm>>,
    /// Set when it has ended within a NIF that still runs.
    pub gone: Option<Box<Gone>>,
    /// Signals behind the one that ends it. The exit answers them, once nobody finds the process
    /// any more.
    pub(crate) after_end: Vec<*mut Signal>,
    /// State of a native that waits.
    pub bif_state: Option<Box<dyn Any + Send>>,
    /// Suspending processes, and how many times each has suspended it.
    pub suspended: Set<Peer, u32>,
    /// Suspended processes: how many times each, and whether it has been notified.
    pub suspending: Set<Peer, (u32, Arc<AtomicBool>)>,
    /// Priority as set; the state word holds the same.
    pub priority: Priority,
    /// Tracer without a session.
    pub tracer: crate::tracer::Tracer,
    pub trace_flags: u32,
    /// Flags and tracers of the sessions that trace it.
    pub sessions: Vec<super::session::Tracing>,
    /// Monitors that were notified of its long message queue, and not yet of its end. They are
    /// session numbers, or -1 for `system_monitor` without a session.
    pub long_queue_notified: Vec<i64>,
    /// Calls whose time or memory is being measured.
    pub call_time: Vec<Timed>,
    /// Words that collections have freed from its heap during a measurement.
    pub words_made: i64,
    /// Entry of a traced native that waits and will be called again: its call has been traced
    /// already. 0 for none.
    pub passed: usize,
    pub gc_count: u64,
    /// Words of its heap after the last compaction.
    pub compacted_words: usize,
    pub hibernation: Hibernation,
    /// Work for the end of the time slice, when the live registers are known.
    pub deferred: Vec<(Priority, Task)>,
    /// Collection requests of others, held back while the process has collections disabled
    /// (`gc_state` in `erts_debug`, for tests). `None` if they are not held back.
    pub collections_held: Option<Vec<(Priority, Task)>>,
    /// State of sequential tracing.
    pub sequence: Option<Box<Sequence>>,
    /// Its last calls, if it saves them.
    pub saved: Option<Box<super::saved::Saved>>,
    /// Counters of sent words.
    pub tally: Tally,
    /// Whether it continues at once after sending to a busy connection; `None` for the default.
    pub async_dist: Option<bool>,
    /// NIF call that `enif_schedule_nif` has scheduled and that the process makes next.
    pub scheduled: Option<Box<purlin_native::nif::Scheduled>>,
    /// Links, monitors and requests across nodes.
    pub remote: Option<Box<Remote>>,
    /// Aliases, monitors and links with priority.
    pub urgent: Option<Box<super::priority_messages::Urgent>>,
}

/// Progress of hibernation with a large heap; see [`crate::collect::compact::hibernates`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hibernation {
    Not,
    /// Other processes run before it is compacted.
    GivesWay,
    /// Waits since that time ([`crate::clock::elapsed`]), not compacted.
    Uncompacted {
        since: i64,
    },
    /// Waits, and its large heap was compacted for that.
    Compacted,
}

impl Rare {
    const fn new() -> Rare {
        Rare {
            regs: Vec::new(),
            aliases: Set(Repr::None),
            name: NIL,
            watched_by: BTreeSet::new(),
            group_leader: None,
            error_handler: NIL,
            settings: Settings {
                min_heap_words: None,
                min_vheap_words: None,
                fullsweep_after: None,
            },
            max_heap: None,
            exit_reason: None,
            gone: None,
            after_end: Vec::new(),
            bif_state: None,
            suspended: Set(Repr::None),
            suspending: Set(Repr::None),
            priority: Priority::Normal,
            tracer: crate::tracer::Tracer::Nobody,
            trace_flags: 0,
            sessions: Vec::new(),
            long_queue_notified: Vec::new(),
            call_time: Vec::new(),
            words_made: 0,
            passed: 0,
            gc_count: 0,
            compacted_words: 0,
            hibernation: Hibernation::Not,
            deferred: Vec::new(),
            collections_held: None,
            sequence: None,
            saved: None,
            tally: Tally::NONE,
            async_dist: None,
            scheduled: None,
            remote: None,
            urgent: None,
        }
    }
}

/// Values that a process without a [`Rare`] reads.
struct Nothing(Rare);
// SAFETY: it holds no closures and no boxes, and is never written to.
unsafe impl Sync for Nothing {}
static NOTHING: Nothing = Nothing(Rare::new());

impl std::ops::Deref for Ext {
    type Target = Rare;
    #[inline]
    fn deref(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&NOTHING.0)
    }
}
impl std::ops::DerefMut for Ext {
    #[inline]
    fn deref_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_with(|| Box::new(Rare::new()))
    }
}

// A million tasks have a million of these, in blocks of a multiple of 16 bytes.
const _: () = assert!(size_of::<Ext>() == 56);

impl Ext {
    /// Notes that the local process `by`, or nil for something outside of processes, monitors it by
    /// `name`, or nil.
    pub fn watch(&mut self, k: RefKey, by: Term, name: Term) {
        self.watchers.insert(k, Watcher::new(by, name));
        if !name.is_atom() {
            return;
        }
        let (number, known) = (self.watchers.len(), self.watched_by.len());
        if known > 2 * number + 16 {
            let used = self.watchers.iter().filter(|(_, w)| w.name != NO_NAME);
            let used = used.map(|(_, w)| w.name().raw()).collect();
            self.watched_by = used;
        } else {
            self.watched_by.insert(name.raw());
        }
    }
    /// Returns the rarest parts, if there are any.
    #[inline]
    pub fn rare(&mut self) -> Option<&mut Rare> {
        self.rare.as_deref_mut()
    }
    /// Bytes of the struct and all that hangs off it, except heaps.
    pub fn bytes(&self) -> usize {
        let mut n = size_of::<Ext>()
            + self.links.bytes()
            + self.monitors.bytes()
            + self.watchers.bytes()
            + self.dict.bytes();
        if let Some(r) = &self.rare {
            n += size_of::<Rare>() + r.aliases.bytes() + r.regs.capacity() * 8;
        }
        n
    }
    /// Puts the settings of this process into its heap.
    pub(crate) fn apply_settings(&self, h: &mut Heap) {
        let Some(r) = &self.rare else { return };
        if let Some(w) = r.settings.min_heap_words {
            h.min_heap_words = w as usize;
        }
        if let Some(w) = r.settings.min_vheap_words {
            h.min_vheap_words = w;
            h.vheap_bytes = w * 8;
            h.old_vheap_bytes = w * 8;
        }
        if let Some(n) = r.settings.fullsweep_after {
            h.fullsweep_after = n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_set_behaves_as_a_map() {
        let mut s: Set<u64, u64> = Set::default();
        let mut m: HashMap<u64, u64> = HashMap::new();
        let mut r = 1u64;
        for i in 0..50_000u64 {
            r = r
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // Grows past every representation, and shrinks again.
            let most = if (i / 5000) % 2 == 0 { 3 } else { 40 };
            let k = (r >> 40) % most;
            if r & 3 == 0 {
                assert_eq!(s.remove(&k), m.remove(&k));
            } else {
                s.insert(k, i);
                m.insert(k, i);
            }
            assert_eq!(s.len(), m.len());
            assert_eq!(s.get_mut(&k).copied(), m.get(&k).copied());
        }
        let got: HashMap<u64, u64> = s.drain().into_iter().collect();
        assert!(s.is_empty() && got == m);
    }

    #[test]
    fn packed_keys_and_monitors_give_back_what_was_put_in() {
        use crate::ids;
        for bits in [0, 1, u64::MAX, 0x0123_4567_89AB_CDEF] {
            let k = RefKey::new(bits);
            assert_eq!(ids::bits_of(k.numbers()), Some(bits));
        }
        assert_eq!(ids::bits_of([1 << 18, 0, 0]), None);
        let [a, b, c] = ids::numbers_of(0);
        assert_eq!(ids::bits_of([a, b, c ^ 1 << 14]), None);
        let most = (1 << 28) - 1;
        for t in [
            Term::pid(0),
            Term::pid(most),
            Term::port(7),
            Term::port(most),
        ] {
            assert_eq!(Peer::of(t).term(), t);
            let name = purlin_term::am::NORMAL;
            for target in [
                Target::Local(t),
                Target::Named(t, name),
                Target::Clock,
                Target::Gone,
            ] {
                for alias in [
                    AliasMode::None,
                    AliasMode::Explicit,
                    AliasMode::Demonitor,
                    AliasMode::ReplyDemonitor,
                ] {
                    let tag = Box::new(OwnedTerm::copy_of(name));
                    let mut m = Monitor::new(target, alias, Some(tag));
                    assert!(m.target() == target && m.alias() == alias && m.tag() == Some(name));
                    m.set_alias(AliasMode::None);
                    assert!(m.target() == target && m.alias() == AliasMode::None);
                    assert!(Monitor::new(target, alias, None).tag().is_none());
                }
            }
        }
        assert_ne!(Peer::of(Term::pid(5)), Peer::of(Term::port(5)));
    }

    #[test]
    fn what_is_not_there_reads_as_nothing() {
        let mut e = Ext::default();
        assert!(e.max_heap.is_none() && e.name == NIL && e.rare().is_none());
        e.trace_flags = 1;
        assert!(e.rare().is_some_and(|r| r.trace_flags == 1));
    }
}
