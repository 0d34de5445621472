//! `process_info/1,2`: information about a process.
//!
//! Another process is asked by a signal. It answers for a moment between two of its instructions,
//! after everything that the asking process did to it before.
//!
//! # Orderings
//! `stopped` is stored with release by the suspended process: see `suspension.rs`.

use super::ask::{ask_term, received_answer, runs_undisturbed};
use super::option_terms::a_include_shared_binaries;
use super::option_terms::priority_atom;
use crate::backtrace::backtrace;
use crate::code;
use crate::code::stack::{addresses, location, place};
use crate::cx::{BifResult, Cx, Fail};
use crate::process::ext::{MaxHeap, RefKey, Target, Watcher};
use crate::process::saved::Call;
use crate::process::{self, BUSY, OFF_HEAP_QUEUE, TRAP_EXIT, WAITING};
use crate::trace::sequential;
use crate::{bifs, lazy_atoms};
use purlin_isa::release::Feature;
use purlin_kernel::budgets;
use purlin_kernel::outside::outside;
use purlin_kernel::threads::dirty_calls;
use purlin_native::bif::{Kind, native};
use purlin_native::reschedule::{self, Name};
use purlin_natives::iolist::admit;
use purlin_natives::re;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::layout::{BIN_SIZE, NEXT, RefView};
use purlin_term::magic::MagicRef;
use purlin_term::pressure::{self, Judged};
use purlin_term::release::{
    self, ASYNC_DIST_TOLD, DICTIONARY_KEYS, PRIORITY_MESSAGES, PROCESS_LABELS,
    SHARED_BINARIES_IN_LIMIT,
};
use purlin_term::small_blocks::block_bytes;
use purlin_term::{Alloc, NIL, Term, am, atom, copy, map, unassigned_ids};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

lazy_atoms! {
    a_status = "status";
    a_process_label = "$process_label";
    bif_return_trap = "bif_return_trap";
}

fn bool_term(b: bool) -> Term {
    if b { am::TRUE } else { am::FALSE }
}
fn int(n: usize) -> Term {
    Term::small(n as i64)
}

pub fn current(cx: &Cx) -> Option<code::Place> {
    addresses(cx, cx.bif_pc, 8)
        .into_iter()
        .enumerate()
        .find_map(|(i, a)| place(i, a))
}

/// Whether the process is in a native on a dirty thread, or waits there for a call that another
/// thread makes.
fn in_dirty_native(cx: &mut Cx) -> bool {
    cx.dirty || purlin_io::blocking::waits(cx)
}

/// The native that the process waits to call on a dirty thread: that native's own name, not the
/// name of what it has trapped to.
fn awaited_native(cx: &Cx) -> Option<Name> {
    // SAFETY: the address at which the process continues.
    let x = unsafe { crate::interp::called_native(cx.bif_pc) }?;
    let row = native(x.module, x.function, x.arity as u32)?.1;
    if !matches!(row.kind, Kind::DirtyCpu | Kind::DirtyIo) {
        return None;
    }
    match row {
        row if reschedule::is_long(row) => reschedule::called(cx.x[0]),
        row if re::is_long(row) => Some(re::called(cx.x[2], cx.x[3])),
        _ => Some((x.module, x.function, x.arity as usize)),
    }
}

/// The native that such a process is in. `None` for a function of a library, which appears as code
/// of its module.
fn dirty_native(cx: &mut Cx) -> Option<Name> {
    if !in_dirty_native(cx) {
        return awaited_native(cx);
    }
    // SAFETY: it is at the call of a native or of such a function.
    dirty_calls::within_native(cx).or_else(|| {
        let x = unsafe { crate::interp::called_native(cx.bif_pc) }?;
        Some((x.module, x.function, x.arity as usize))
    })
}

/// Whether the process is to run a fun and has not begun.
fn starts(cx: &Cx) -> bool {
    let stub = code::stubs().apply_fun.as_ptr();
    // By its name, and where its calls are traced.
    let ways = code::existing_export(am::ERLANG, am::APPLY, 2)
        .map(|e| [e.address(), code::breakpoint::gate(e)]);
    cx.bif_pc == stub || ways.is_some_and(|w| w.contains(&cx.bif_pc))
}

/// Whether the process waits in `hibernate/3`.
fn hibernates(cx: &Cx) -> bool {
    std::ptr::eq(cx.bif_pc, code::stubs().hibernated.as_ptr())
}

/// Pairs of tag and value.
fn pairs(to: &mut Fragment, items: &[(&str, Term)]) -> Term {
    let v: Vec<Term> = items
        .iter()
        .map(|(k, t)| to.tuple(&[atom::intern(k), *t]))
        .collect();
    to.list(&v)
}

fn max_heap(to: &mut Fragment, m: Option<MaxHeap>) -> Term {
    let m = m.unwrap_or_else(process::max_heap_flags);
    let mut t = to.flatmap(&[], &[]);
    let mut items = vec![
        (am::ERROR_LOGGER, bool_term(m.error_logger)),
        (am::KILL, bool_term(m.kill)),
        (am::SIZE, int(m.words)),
    ];
    if release::has(SHARED_BINARIES_IN_LIMIT) {
        items.push((
            a_include_shared_binaries(),
            bool_term(m.include_shared_binaries),
        ));
    }
    for (k, v) in items {
        t = map::put(to, t, k, v);
    }
    t
}

/// Refc binaries of the heap: address, size and count of each.
fn binaries(cx: &Cx, to: &mut Fragment) -> Term {
    let mut v = Vec::new();
    let mut walk = |mut p: *mut Term| {
        while !p.is_null() {
            // SAFETY: objects on off-heap lists are well formed.
            unsafe {
                if let Some(bin) = Term::boxed_at(p).block() {
                    let id = to.uint(bin as u64);
                    let n = (*p.add(BIN_SIZE)).raw() as usize;
                    let count = (*bin).refc.load(Ordering::Relaxed) as usize;
                    v.push(to.tuple(&[id, int(n), int(count)]));
                }
                p = (*p.add(NEXT)).raw() as *mut Term;
            }
        }
    };
    walk(cx.heap.off_heap.first);
    walk(cx.heap.old_off_heap.first);
    for f in &cx.heap.frags {
        walk(f.off_heap.first);
    }
    to.list(&v)
}

/// References of the heap that hold something of the emulator: address, size and count of each.
fn magic_refs(cx: &Cx, to: &mut Fragment) -> Term {
    let mut v = Vec::new();
    let mut walk = |mut p: *mut Term| {
        while !p.is_null() {
            // SAFETY: objects on off-heap lists are well formed, and hold what they refer to.
            unsafe {
                if let Some(RefView::Magic(m)) = Term::boxed_at(p).as_ref_view() {
                    let id = to.uint(m as *const MagicRef as u64);
                    let n = size_of_val(&*m.value);
                    let count = m.refc.load(Ordering::Relaxed) as usize;
                    v.push(to.tuple(&[id, int(n), int(count)]));
                }
                p = (*p.add(NEXT)).raw() as *mut Term;
            }
        }
    };
    walk(cx.heap.off_heap.first);
    walk(cx.heap.old_off_heap.first);
    for f in &cx.heap.frags {
        walk(f.off_heap.first);
    }
    to.list(&v)
}

/// Bytes of the process: its cell and what belongs to it. Shared regions and refc binaries do not
/// count.
pub fn memory(cx: &mut Cx) -> usize {
    let mut n = process::table::BYTES_EACH;
    if !cx.heap.inline_block {
        n += block_bytes(cx.heap.block_words() * 8);
    }
    // The unused end of a mapped block takes no memory.
    let old = match cx.heap.old_block_words() {
        n if purlin_term::gc::is_mapped(n) => cx.heap.old_words(),
        n => n,
    };
    n += block_bytes(old * 8);
    n += cx
        .heap
        .frags
        .iter()
        .map(|f| f.capacity_words() * 8 + size_of::<Fragment>())
        .sum::<usize>();
    let p = cx.process();
    if p.has_boxed_heap() {
        n += block_bytes(size_of::<purlin_term::heap::Heap>());
    }
    // SAFETY: owned by this thread.
    if let Some(m) = unsafe { p.mailbox.as_ref() } {
        n += size_of::<crate::message::mailbox::Mailbox>() + m.bytes();
    }
    if let Some(e) = p.ext() {
        n += block_bytes(e.bytes());
    }
    n
}

/// An item of `process_info/1,2`.
pub struct Item {
    pub name: &'static str,
    pub doc: &'static str,
    /// Whether `process_info/1` reports it, too.
    pub default: bool,
    /// Whether a sensitive process hides it: it shows what the process is, not what it holds.
    pub private: bool,
    /// Whether it shows the contents of messages: those of other nodes are decoded first.
    pub decoded: bool,
    /// Whether answering takes the process a reduction, as on stock.
    pub works: bool,
    /// The releases that have the item; `None` if all do.
    since: Option<Feature>,
    /// Returns the item for the process in the context, which this thread owns. The term is made in
    /// the fragment, or is an immediate.
    get: fn(&mut Cx, &mut Fragment) -> Term,
}

macro_rules! items {
    ($($name:literal [$($flag:ident)*] $(since $feature:ident)? $doc:literal => $get:expr;)*) => {
        /// All items. Those that `process_info/1` reports are in its order.
        pub static ITEMS: &[Item] = &[$({
            #[allow(unused_mut)]
            let mut item = Item { name: $name, doc: $doc, default: false, private: false, decoded: false, works: false, since: None, get: $get };
            $(item.$flag = true;)*
            $(item.since = Some($feature);)?
            item
        }),*];
    };
}
items! {
    "registered_name" [default] "Its name, if it has one." => |cx, _| match cx.process().ext().map(|e| e.name) {
            Some(n) if n != NIL => n,
            _ => NIL,
        };
    "current_function" [default works] "The function that it is in." => |cx, to| {
            if hibernates(cx) { return {
            let f = atom::intern("hibernate");
            to.tuple(&[am::ERLANG, f, Term::small(3)])
        }; }
            if cx.process().has(BUSY) {
                return to.tuple(&[am::ERLANG, bif_return_trap(), Term::small(2)]);
            }
            if let Some((m, f, n)) = dirty_native(cx) {
                return to.tuple(&[m, f, int(n)]);
            }
            match current(cx) {
            Some(p) => to.tuple(&[p.module, p.function, Term::small(i64::from(p.arity))]),
            None if starts(cx) => to.tuple(&[am::ERLANG, am::APPLY, Term::small(2)]),
            None => am::UNDEFINED,
        }
        };
    "current_location" [works] "The same, with file and line." => |cx, to| {
            if cx.process().has(BUSY) {
                return to.tuple(&[am::ERLANG, bif_return_trap(), Term::small(2), NIL]);
            }
            if let Some((m, f, n)) = dirty_native(cx) {
                return to.tuple(&[m, f, int(n), NIL]);
            }
            match current(cx) {
            Some(p) => location(to, &p),
            None if starts(cx) => to.tuple(&[am::ERLANG, am::APPLY, Term::small(2), NIL]),
            None => am::UNDEFINED,
        }
        };
    "current_stacktrace" [works] "Its stack, as of an exception." => |cx, to| {
            let depth = code::stack::DEPTH.load(Ordering::Relaxed);
            let v: Vec<Term> = addresses(cx, cx.bif_pc, depth + 2)
                .into_iter()
                .enumerate()
                .filter_map(|(i, a)| place(i, a))
                .take(depth)
                .map(|p| location(to, &p))
                .collect();
            to.list(&v)
        };
    "initial_call" [default] "What it was started with." => |cx, to| {
            // SAFETY: exports live for ever.
            match unsafe { cx.process().initial_call.as_ref() } {
                Some(x) => to.tuple(&[x.module, x.function, Term::small(i64::from(x.arity))]),
                None => am::UNDEFINED,
            }
        };
    "status" [default] "Whether it runs, waits, is suspended or ends." => |cx, _| {
            let state = cx.process().state.load();
            atom::intern(if state.is_exiting() {
            "exiting"
        } else if in_dirty_native(cx)
            && !(state.is_suspended() && dirty_calls::within_native(cx).is_some())
        {
            // A requested suspension takes effect when the native has returned.
            "running"
        } else if state.is_suspended() || cx.process().has(BUSY) {
            "suspended"
        } else if cx.process().has(WAITING) {
            "waiting"
        } else {
            "running"
        })
        };
    "message_queue_len" [default] "Messages in its queue." => |cx, _| int(cx.process().queued_messages());
    "messages" [private decoded works] "The messages." => |cx, to| {
            let p: *const process::Process = cx.process();
            // SAFETY: owned by this thread.
            crate::signal::receive::messages_list(unsafe { &*p }, to)
        };
    "links" [default works] "Those it is linked with." => |cx, to| {
            let v: Vec<Term> = match cx.process().ext() {
                Some(e) => e
                    .links
                    .iter()
                    .filter(|l| l.1.unlinking == 0)
                    .map(|l| l.0.term())
                    .collect(),
                None => Vec::new(),
            };
            let mut v = v;
            if let Some(r) = cx.process().ext().and_then(|e| e.remote.as_ref()) {
                let active = r.links.iter().filter(|l| l.1.unlinking == 0);
                v.extend(active.map(|l| l.0.term(to)));
            }
            to.list(&v)
        };
    "monitors" [works] "Those it watches." => |cx, to| {
            let mut v: Vec<(Target, Term)> = Vec::new();
            let mut gone = HashSet::new();
            if let Some(e) = cx.process().ext() {
                for (k, m) in e.monitors.iter() {
                    if m.target() == Target::Gone {
                        gone.insert(*k);
                    }
                    let object = m.watched().map(|w| copy::copy(w.object.term(), to));
                    v.push((m.target(), object.unwrap_or(NIL)));
                }
            }
            let node = purlin_term::node::this_name();
            let mut out = Vec::new();
            for (t, object) in v {
                let kind =
                    |t: Term| atom::intern(if t.is_local_port() { "port" } else { "process" });
                out.push(match t {
                    Target::Local(p) => to.tuple(&[kind(p), p]),
                    Target::Named(p, n) => {
                        let n = to.tuple(&[n, node]);
                        to.tuple(&[kind(p), n])
                    }
                    Target::Remote => to.tuple(&[kind(object), object]),
                    Target::Clock => {
                        let what = [am::TIME_OFFSET, atom::intern("clock_service")];
                        to.tuple(&what)
                    }
                    Target::Gone => continue,
                });
            }
            if !gone.is_empty() {
                crate::signal::own_signals::each_of_nothing(cx.process(), |k, kind, object| {
                    if gone.contains(&k) {
                        let object = copy::copy(object, to);
                        out.push(to.tuple(&[kind, object]));
                    }
                });
            }
            to.list(&out)
        };
    "monitored_by" [works] "Those that watch it." => |cx, to| {
            let by = |(r, w): (&RefKey, &Watcher), to: &mut Fragment| match w.by() {
                NIL => outside().watched_by(r.numbers(), to),
                pid => Some(pid),
            };
            let v: Vec<Term> = match cx.process().ext() {
                Some(e) => e.watchers.iter().filter_map(|w| by(w, to)).collect(),
                None => Vec::new(),
            };
            let mut v = v;
            if let Some(r) = cx.process().ext().and_then(|e| e.remote.as_ref()) {
                v.extend(r.watchers.iter().map(|(_, w)| w.by.term(to)));
            }
            outside().watching(cx.self_pid(), to, &mut v);
            crate::signal::own_signals::without_noted(cx.process(), &mut v);
            to.list(&v)
        };
    "label" [private] since PROCESS_LABELS "The label that the program gave it." => |cx, to| {
            let label = cx.process().ext().and_then(|e| e.dict.get(a_process_label()));
            copy::copy(label.unwrap_or(am::UNDEFINED), to)
        };
    "async_dist" [] since ASYNC_DIST_TOLD "Whether a send to a busy connection returns at once." => |cx, _| bool_term(cx.process().is_async_dist());
    "priority_messages" [] since PRIORITY_MESSAGES "Whether anything that it has asked for has priority." => |cx, _| bool_term(cx.process().ext().is_some_and(|e| e.has_urgent()));
    "dictionary" [default private works] "Its dictionary." => |cx, to| {
            let v: Vec<(Term, Term)> = match cx.process().ext().map(|e| &e.dict) {
                Some(d) => d.iter().collect(),
                None => Vec::new(),
            };
            let mut l = NIL;
            for (k, t) in v {
                let k = copy::copy(k, to);
                let (t, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Asked, t);
                let t = copy::copy(t, to);
                let p = to.tuple(&[k, t]);
                l = to.cons(p, l);
            }
            l
        };
    "trap_exit" [default] "Whether exit signals become messages." => |cx, _| bool_term(cx.process().has(TRAP_EXIT));
    "error_handler" [default] "The module that is asked for functions that aren't there." => |cx, _| match cx.process().ext().map(|e| e.error_handler) {
            Some(t) if t != NIL => t,
            _ => am::ERROR_HANDLER,
        };
    "priority" [default] "Its priority." => |cx, _| priority_atom(cx.process().state.priority());
    "group_leader" [default] "Its group leader." => |cx, to| {
            let gl = cx.process().group_leader;
            if gl == am::UNDEFINED {
                let t = cx.process().ext().and_then(|e| e.group_leader.as_ref());
                t.map_or(am::UNDEFINED, |t| copy::copy(t.term(), to))
            } else {
                gl
            }
        };
    "parent" [] "Who started it." => |cx, _| {
            let (me, parent) = (cx.self_pid(), cx.process().parent);
            if me.pid_data() == 0 {
                am::UNDEFINED
            } else {
                Term::pid(parent)
            }
        };
    "total_heap_size" [default decoded works] "Words of all its heap." => |cx, _| {
            // Queued messages are part of the heap, unless they are kept off it.
            let queued = match cx.process().has(OFF_HEAP_QUEUE) {
                true => 0,
                false => cx.process().queued_words(),
            };
            int(cx.heap.block_words() + cx.heap.old_block_words() + cx.heap.frag_words + queued)
        };
    "heap_size" [default] "Words of the youngest part of the heap." => |cx, _| int(cx.heap.block_words());
    "stack_size" [default] "Words of the stack." => |cx, _| int(cx.heap.stack_words());
    "memory" [works] "Bytes that it takes." => |cx, _| int(memory(cx));
    "reductions" [default] "Reductions that it has used." => |cx, _| {
            let n = cx.process().reductions;
            let now = (cx.charged - cx.reds).max(0) as u64;
            int((n + now) as usize)
        };
    "min_heap_size" [] "Least words of its heap." => |cx, _| int(process::reported_min_heap(cx.process()));
    "min_bin_vheap_size" [] "Least size of its virtual heap of binaries." => |cx, _| int(cx.heap.min_vheap_words);
    "fullsweep_after" [] "Minor collections before a full sweep." => |cx, _| int(cx.heap.fullsweep_after as usize);
    "max_heap_size" [] "Limit of its heap." => |cx, to| {
            let m = cx.process().ext().and_then(|e| e.max_heap);
            max_heap(to, m)
        };
    "garbage_collection" [default] "Settings of its heap." => |cx, to| {
            let m = cx.process().ext().and_then(|e| e.max_heap);
            let m = max_heap(to, m);
            let least = process::reported_min_heap(cx.process());
            let items = [
                ("max_heap_size", m),
                ("min_bin_vheap_size", int(cx.heap.min_vheap_words)),
                ("min_heap_size", int(least)),
                ("fullsweep_after", int(cx.heap.fullsweep_after as usize)),
                ("minor_gcs", int(cx.heap.minor_gcs as usize)),
            ];
            pairs(to, &items)
        };
    "garbage_collection_info" [] "Sizes of the parts of its heap." => |cx, to| crate::process::heap_info::gc_info(to, &cx.heap, None);
    "suspending" [default works] "Those it suspends." => |cx, to| {
            let all = cx.process().ext().into_iter().flat_map(|e| e.suspending.iter());
            let v: Vec<Term> = all
                .map(|(peer, of_it)| (peer.term(), of_it))
                .filter(|s| process::table().find(s.0).is_some())
                .map(|(p, (n, stopped))| {
                    // How often it is suspended, including requests that it has not handled yet.
                    let (n, none) = (int(*n as usize), Term::small(0));
                    match stopped.load(Ordering::Acquire) {
                        true => to.tuple(&[p, n, none]),
                        false => to.tuple(&[p, none, n]),
                    }
                })
                .collect();
            to.list(&v)
        };
    "binary" [works] "Binaries that it refers to." => |cx, to| binaries(cx, to);
    "catchlevel" [] "Catches that are open." => |cx, _| {
            let mut n = 0;
            let mut p = cx.heap.stop;
            while p < cx.heap.hend {
                // SAFETY: words of the stack.
                unsafe {
                    n += usize::from((*p).is_catch());
                    p = p.add(1);
                }
            }
            int(n)
        };
    "backtrace" [private works] "Its stack as text." => |cx, to| {
            let text = backtrace(cx);
            to.binary(text.as_bytes())
        };
    "last_calls" [] "Calls that are remembered." => |cx, to| crate::process::saved::shown(cx.process(), to);
    "message_queue_data" [] "Where its messages are kept." => |cx, _| atom::intern(if cx.process().has(OFF_HEAP_QUEUE) {
            "off_heap"
        } else {
            "on_heap"
        });
    "sequential_trace_token" [] "Its token of sequential traces." => |cx, to| match sequential::token(cx.process()) {
            Some(t) => t.term(to),
            None => NIL,
        };
    "magic_ref" [works] "References that hold something of the emulator." => |cx, to| magic_refs(cx, to);
    "trace" [] "Its trace flags." => |cx, _| Term::small(cx.process().ext().map_or(0, |e| i64::from(e.trace_flags)));
}

/// The item with that name.
pub fn named(k: Term) -> Option<&'static Item> {
    let name = k.is_atom().then(|| atom::name(k))?;
    let item = ITEMS.iter().find(|i| i.name == name);
    item.filter(|i| i.is_known())
}

/// The value of the item `name` for the process in the context.
pub fn item(cx: &mut Cx, to: &mut Fragment, name: &str) -> Option<Term> {
    let item = ITEMS.iter().find(|i| i.name == name)?;
    Some(item.of(cx, to))
}

impl Item {
    /// Whether the emulated release has the item.
    fn is_known(&self) -> bool {
        self.since.is_none_or(release::has)
    }
    /// The value for the process in the context, which asks about itself.
    pub fn of(&self, cx: &mut Cx, to: &mut Fragment) -> Term {
        match self.private && cx.process().has(process::SENSITIVE) {
            true if self.name == "backtrace" => to.binary(&[]),
            true => NIL,
            false => (self.get)(cx, to),
        }
    }
    fn key(&self) -> Term {
        atom::intern(self.name)
    }
}

/// A requested item, or the dictionary's value for a key, whose item is the dictionary.
struct Asked {
    item: &'static Item,
    key: Option<OwnedTerm>,
}

impl Asked {
    /// From a name, or since OTP 26 from `{dictionary, Key}`.
    fn of(what: Term) -> Option<Asked> {
        if let Some(&[name, key]) = what.as_tuple() {
            let item = named(name).filter(|i| i.name == "dictionary")?;
            let key = Some(OwnedTerm::copy_of(key));
            return release::has(DICTIONARY_KEYS).then_some(Asked { item, key });
        }
        let item = named(what)?;
        Some(Asked { item, key: None })
    }
    /// The tag in the answer, and the value for the process in the context.
    fn answer(&self, cx: &mut Cx, to: &mut Fragment) -> (Term, Term) {
        let Some(key) = &self.key else {
            return (self.item.key(), self.item.of(cx, to));
        };
        let k = copy::copy(key.term(), to);
        let name = to.tuple(&[self.item.key(), k]);
        if self.item.private && cx.process().has(process::SENSITIVE) {
            return (name, am::UNDEFINED);
        }
        let value = cx.process().ext().and_then(|e| e.dict.get(key.term()));
        let (value, _held) = crate::signal::share::share(
            cx,
            crate::accounts::Kind::Asked,
            value.unwrap_or(am::UNDEFINED),
        );
        (name, copy::copy(value, to))
    }
}

/// The requested answer.
enum Wanted {
    /// The items of `process_info/1`.
    All,
    One(Asked),
    Some(Vec<Asked>),
}

impl Wanted {
    fn items(&self) -> Vec<&'static Item> {
        match self {
            Wanted::All => ITEMS.iter().filter(|i| i.default).collect(),
            Wanted::One(a) => vec![a.item],
            Wanted::Some(v) => v.iter().map(|a| a.item).collect(),
        }
    }
    fn answers(&self, cx: &mut Cx, to: &mut Fragment) -> Vec<(Term, Term)> {
        match self {
            Wanted::All => self
                .items()
                .iter()
                .map(|i| (i.key(), i.of(cx, to)))
                .collect(),
            Wanted::One(a) => vec![a.answer(cx, to)],
            Wanted::Some(v) => v.iter().map(|a| a.answer(cx, to)).collect(),
        }
    }
}

fn answer(cx: &mut Cx, w: &Wanted) -> OwnedTerm {
    if w.items().iter().any(|i| i.decoded) {
        crate::signal::receive::decode_all(cx);
    }
    let mut to = Fragment::new();
    let made = w.answers(cx, &mut to);
    // Without a registered name, that item is not reported on its own.
    let nameless = |m: &(Term, Term)| m.1 == NIL && m.0 == am::REGISTERED_NAME;
    let t = match w {
        Wanted::One(_) if nameless(&made[0]) => NIL,
        Wanted::One(_) => to.tuple(&[made[0].0, made[0].1]),
        _ => {
            let all = matches!(w, Wanted::All);
            let v: Vec<Term> = made
                .iter()
                .filter(|m| !(all && nameless(m)))
                .map(|m| to.tuple(&[m.0, m.1]))
                .collect();
            to.list(&v)
        }
    };
    OwnedTerm::from_parts(t, to)
}

/// The names of all items.
pub fn all_items(cx: &mut Cx) -> Term {
    let known = ITEMS.iter().filter(|i| i.is_known());
    let names: Vec<Term> = known.map(Item::key).collect();
    cx.list(&names)
}

/// Bytes that a copy of the messages of the process in the context takes until the process that
/// gets it has collected: twice as many as they have.
fn copied_messages(cx: &mut Cx) -> usize {
    cx.process().queued_words() * 16
}

/// Whether the budget of a process has room for an answer of `bytes` bytes.
fn has_room(asker: Term, bytes: usize) -> bool {
    let left = budgets::memory_left(budgets::of_pid(asker)).0;
    bytes <= pressure::ALWAYS_ALLOWED || isize::try_from(bytes).is_ok_and(|n| n <= left)
}

fn info(cx: &mut Cx, pid: Term, w: Wanted) -> BifResult {
    if pid.is_pid() && unassigned_ids::is_unassigned_id(pid) {
        return Ok(am::UNDEFINED);
    }
    if !pid.is_local_pid() {
        return Err(Fail::Badarg);
    }
    let copies = w.items().iter().any(|i| i.decoded);
    if pid == cx.self_pid() {
        crate::signal::own_signals::fetch(cx);
        if copies {
            admit(copied_messages(cx))?;
        }
        let t = answer(cx, &w);
        return Ok(cx.heap.take_over(t));
    }
    if let Wanted::One(Asked { item, key: None }) = &w
        && item.key() == a_status()
        && runs_undisturbed(cx, pid)
    {
        let running = atom::intern("running");
        return Ok(cx.tuple(&[item.key(), running]));
    }
    // On stock, others are read in place while their process neither runs nor has signals.
    let by_message = w.items().iter().any(|i| i.works);
    let me = cx.self_pid();
    let t = ask_term(cx, pid, move |cx| {
        if let Some(cx) = cx
            && !cx.process().has(process::EXIT_PENDING)
        {
            if copies && budgets::on() && !has_room(me, copied_messages(cx)) {
                return OwnedTerm::copy_of(am::SYSTEM_LIMIT);
            }
            let told = answer(cx, &w);
            cx.reds -= i64::from(w.items().iter().any(|i| i.works));
            return told;
        }
        OwnedTerm::copy_of(am::UNDEFINED)
    });
    if copies && budgets::on() {
        // If it has collected all of its garbage for the answer, it still has when that comes.
        budgets::keeps_clean(cx.proc.get());
    }
    let t = t?;
    if t == am::SYSTEM_LIMIT {
        return Err(match pressure::refused() {
            Judged::AfterCollection => Fail::Again,
            _ => Fail::SystemLimit,
        });
    }
    if by_message && t != am::UNDEFINED {
        let await_result = (atom::intern("erts_internal"), atom::intern("await_result"));
        let by = Call::Function(await_result.0, await_result.1, 1);
        received_answer(cx, t, Some(by));
    }
    Ok(t)
}

fn process_info_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    info(cx, pid, Wanted::All)
}
fn process_info_2(cx: &mut Cx, [pid, what]: [Term; 2]) -> BifResult {
    if !what.is_list() {
        let asked = Asked::of(what).ok_or(Fail::Badarg)?;
        return info(cx, pid, Wanted::One(asked));
    }
    let mut v = Vec::new();
    let mut it = what.list_iter();
    for k in it.by_ref() {
        v.push(Asked::of(k).ok_or(Fail::Badarg)?);
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    info(cx, pid, Wanted::Some(v))
}

/// `erts_internal:process_display/2`: writes the stack of a process to standard error.
fn process_display_2(cx: &mut Cx, [pid, what]: [Term; 2]) -> BifResult {
    if !what.is_atom() || atom::name(what) != "backtrace" {
        return Ok(am::BADOPT);
    }
    if !pid.is_local_pid() {
        return Ok(am::BADARG);
    }
    let show = |cx: &mut Cx| {
        if !cx.process().has(process::SENSITIVE) {
            crate::report::to_stderr(&backtrace(cx));
        }
    };
    if pid == cx.self_pid() {
        show(cx);
        return Ok(am::TRUE);
    }
    ask_term(cx, pid, move |cx| match cx {
        Some(cx) => {
            show(cx);
            OwnedTerm::copy_of(am::TRUE)
        }
        None => OwnedTerm::copy_of(am::BADARG),
    })
}

bifs! {
    Plain "erts_internal":"process_display"/2 = process_display_2;
    Plain "erlang":"process_info"/1 = process_info_1 [reads(Process)];
    Plain "erlang":"process_info"/2 = process_info_2 [reads(Process)];
}
