//! What a process seldom has. Everything here belongs to the owner of the process.

use super::dict::Dict;
use crate::process::state::Priority;
use purlin_term::frag::OwnedTerm;
use purlin_term::heap::Heap;
use purlin_term::{NIL, Term};
use std::any::Any;
use std::collections::HashMap;

/// Numbers of a reference, as a key.
pub type RefKey = [u32; 3];

/// Small sets of things, looked up by key: a vector up to a size, a hash map beyond.
pub struct Set<K, V> {
    few: Vec<(K, V)>,
    many: Option<Box<HashMap<K, V>>>,
}

const FEW: usize = 16;

impl<K: Eq + std::hash::Hash + Copy, V> Default for Set<K, V> {
    fn default() -> Self {
        Set {
            few: Vec::new(),
            many: None,
        }
    }
}

impl<K: Eq + std::hash::Hash + Copy, V> Set<K, V> {
    pub fn get_mut(&mut self, k: &K) -> Option<&mut V> {
        match &mut self.many {
            Some(m) => m.get_mut(k),
            None => self.few.iter_mut().find(|e| e.0 == *k).map(|e| &mut e.1),
        }
    }
    pub fn contains(&mut self, k: &K) -> bool {
        self.get_mut(k).is_some()
    }
    pub fn insert(&mut self, k: K, v: V) {
        if let Some(m) = &mut self.many {
            m.insert(k, v);
            return;
        }
        if let Some(e) = self.few.iter_mut().find(|e| e.0 == k) {
            e.1 = v;
            return;
        }
        if self.few.len() < FEW {
            // One at a time: most processes have one or two.
            self.few.reserve_exact(1);
            self.few.push((k, v));
            return;
        }
        let mut m: HashMap<K, V> = std::mem::take(&mut self.few).into_iter().collect();
        m.insert(k, v);
        self.many = Some(Box::new(m));
    }
    pub fn remove(&mut self, k: &K) -> Option<V> {
        if let Some(m) = &mut self.many {
            let v = m.remove(k);
            if m.is_empty() {
                self.many = None;
            } else if m.len() * 8 < m.capacity() {
                m.shrink_to_fit();
            }
            return v;
        }
        let i = self.few.iter().position(|e| e.0 == *k)?;
        // The order of what is left is kept: it shows in process_info.
        Some(self.few.remove(i).1)
    }
    pub fn len(&self) -> usize {
        self.many.as_ref().map_or(self.few.len(), |m| m.len())
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&K, &V)> + '_> {
        match &self.many {
            Some(m) => Box::new(m.iter()),
            None => Box::new(self.few.iter().map(|e| (&e.0, &e.1))),
        }
    }
    /// Empties it.
    pub fn drain(&mut self) -> Vec<(K, V)> {
        match self.many.take() {
            Some(m) => m.into_iter().collect(),
            None => std::mem::take(&mut self.few),
        }
    }
    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        self.many
            .as_ref()
            .map_or(self.few.capacity(), |m| m.capacity() * 8 / 7)
            * (size_of::<(K, V)>() + 1)
    }
}

/// A link as one end sees it.
#[derive(Clone, Copy)]
pub struct Link {
    /// Not 0: this end has unlinked, with that number, and waits for the acknowledgement.
    pub unlinking: u64,
}

/// What a monitor watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A local process or port.
    Local(Term),
    /// The same, monitored by that name.
    Named(Term, Term),
    /// `time_offset`
    Clock,
}

/// How a monitor's reference serves as an alias.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AliasMode {
    None,
    Explicit,
    /// Ends with the monitor.
    Demonitor,
    /// As `Demonitor`, and with the first message through it.
    ReplyDemonitor,
}

/// A monitor as the watching end sees it.
pub struct Monitor {
    pub target: Target,
    pub alias: AliasMode,
    /// `{tag, T}`
    pub tag: Option<Box<OwnedTerm>>,
    /// The process is being spawned by a request that has not been answered.
    pub spawning: bool,
}

/// A monitor as the watched end sees it.
#[derive(Clone, Copy)]
pub struct Watcher {
    /// Pid of who watches.
    pub by: Term,
    /// The name it watches by, or nil.
    pub name: Term,
}

/// Settings that differ from the runtime's.
#[derive(Clone, Copy, Default)]
pub struct Settings {
    pub min_heap_words: Option<u32>,
    pub min_vheap_words: Option<u32>,
    pub fullsweep_after: Option<u32>,
}

/// `max_heap_size`
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MaxHeap {
    /// Words; 0 is no limit.
    pub words: usize,
    pub kill: bool,
    pub error_logger: bool,
    pub include_shared_binaries: bool,
}

/// See the module head.
pub struct Ext {
    pub heap: Option<Box<Heap>>,
    pub regs: Vec<Term>,
    pub dict: Option<Box<Dict>>,
    /// By the word of the other end's pid or port.
    pub links: Set<u64, Link>,
    /// By reference.
    pub monitors: Set<RefKey, Monitor>,
    pub watchers: Set<RefKey, Watcher>,
    /// Aliases that are not monitors; true: ends with the first message.
    pub aliases: Set<RefKey, bool>,
    /// Registered name, or nil.
    pub name: Term,
    /// A group leader of another node.
    pub group_leader: Option<Box<OwnedTerm>>,
    /// Where `undefined_function` is called; nil: `error_handler`.
    pub error_handler: Term,
    pub settings: Settings,
    pub max_heap: Option<MaxHeap>,
    /// Why a signal has ended it.
    pub exit_reason: Option<Box<OwnedTerm>>,
    /// State of a native that waits.
    pub bif_state: Option<Box<dyn Any + Send>>,
    /// How many times it is suspended, by whom.
    pub suspended: Vec<(Term, u32)>,
    /// Whom it has suspended, and how many times.
    pub suspending: Vec<(Term, u32)>,
    /// Priority as set: what the state word has.
    pub priority: Priority,
    /// `Pid` of the process that the trace messages of this one go to; nil for none.
    pub tracer: Term,
    pub trace_flags: u32,
    /// The function whose time is being measured: its entry, and since when (0: it doesn't run).
    pub call_time: Option<(usize, i64)>,
    /// Entry of a traced function whose call has been told, and which begins anew: a native that waits, or 0.
    pub passed: usize,
    /// Calls of traced natives that are under way: the instruction that makes the call, which they return to, and the
    /// words of stack there.
    pub detours: Vec<(usize, usize)>,
    /// Timers and things that natives keep for it, dropped at exit.
    pub on_exit: Vec<Box<dyn FnOnce() + Send>>,
    pub gc_count: u64,
    /// Work to be done between time slices, when the live registers are known.
    pub deferred: Vec<crate::signal::Task>,
    pub save_calls: u32,
    pub async_dist: bool,
}

impl Ext {
    pub fn new() -> Ext {
        Ext {
            heap: None,
            regs: Vec::new(),
            dict: None,
            links: Set::default(),
            monitors: Set::default(),
            watchers: Set::default(),
            aliases: Set::default(),
            name: NIL,
            group_leader: None,
            error_handler: NIL,
            settings: Settings::default(),
            max_heap: None,
            exit_reason: None,
            bif_state: None,
            suspended: Vec::new(),
            suspending: Vec::new(),
            priority: Priority::Normal,
            tracer: NIL,
            trace_flags: 0,
            call_time: None,
            passed: 0,
            detours: Vec::new(),
            on_exit: Vec::new(),
            gc_count: 0,
            deferred: Vec::new(),
            save_calls: 0,
            async_dist: false,
        }
    }
    /// Puts the settings of this process into its heap.
    pub fn apply_settings(&self, h: &mut Heap) {
        if let Some(w) = self.settings.min_heap_words {
            h.min_heap_words = w as usize;
        }
        if let Some(w) = self.settings.min_vheap_words {
            h.min_vheap_words = w as usize;
            h.vheap_bytes = w as usize * 8;
            h.old_vheap_bytes = w as usize * 8;
        }
        if let Some(n) = self.settings.fullsweep_after {
            h.fullsweep_after = n;
        }
    }
}

impl Default for Ext {
    fn default() -> Self {
        Self::new()
    }
}
