//! `process_info/1,2`: what a process tells about itself. Another process is asked by a signal, so that it answers for
//! one moment between two of its instructions, after everything that the asking process did to it before.

use super::process::{ask_term, priority_atom};
use crate::code;
use crate::cx::{BifResult, Cx, Fail};
use crate::process::ext::{MaxHeap, Target};
use crate::process::state::{EXITING, SUSPENDED};
use crate::process::{self, OFF_HEAP_QUEUE, TRAP_EXIT, WAITING};
use crate::trace::sequential;
use crate::{bifs, lazy_atoms};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::fun::Export;
use purlin_term::layout::NEXT;
use purlin_term::word::{Subtag, header_subtag};
use purlin_term::{Alloc, NIL, Term, am, atom, copy, map};
use std::sync::atomic::Ordering;

lazy_atoms! {
    a_size = "size"; a_kill = "kill"; a_error_logger = "error_logger";
    a_include_shared_binaries = "include_shared_binaries";
}

/// The items of `process_info/1`, in its order.
const DEFAULT: &[&str] = &[
    "registered_name",
    "current_function",
    "initial_call",
    "status",
    "message_queue_len",
    "links",
    "dictionary",
    "trap_exit",
    "error_handler",
    "priority",
    "group_leader",
    "total_heap_size",
    "heap_size",
    "stack_size",
    "reductions",
    "garbage_collection",
    "suspending",
];

fn bool_term(b: bool) -> Term {
    if b { am::TRUE } else { am::FALSE }
}
fn int(n: usize) -> Term {
    Term::small(n as i64)
}

/// Code addresses from `pc` outwards, at most `depth`.
fn addresses(cx: &Cx, pc: *const u64, depth: usize) -> Vec<u64> {
    let mut v = vec![pc as u64];
    let mut p = cx.heap.stop;
    while p < cx.heap.hend && v.len() < depth {
        // SAFETY: words of the stack.
        let w = unsafe { (*p).raw() };
        if w & 3 == 0 && w != 0 && v.last() != Some(&w) {
            v.push(w);
        }
        // SAFETY: below `hend`.
        p = unsafe { p.add(1) };
    }
    v
}

fn place(i: usize, pc: u64) -> Option<code::Place> {
    code::find((if i == 0 { pc } else { pc - 8 }) as *const u64)
}

fn location<A: Alloc>(to: &mut A, p: &code::Place) -> Term {
    let loc = match &p.line {
        None => NIL,
        Some((file, line)) => {
            let s = to.string(file);
            let f = to.tuple(&[am::FILE, s]);
            let l = to.tuple(&[am::LINE, Term::small(i64::from(*line))]);
            to.list(&[f, l])
        }
    };
    to.tuple(&[p.module, p.function, Term::small(i64::from(p.arity)), loc])
}

fn current(cx: &Cx) -> Option<code::Place> {
    addresses(cx, cx.bif_pc, 8)
        .into_iter()
        .enumerate()
        .find_map(|(i, a)| place(i, a))
}

/// Whether the process is in a native of a dirty pool, or waits there for a call that another thread makes.
fn in_dirty_native(cx: &mut Cx) -> bool {
    cx.dirty || super::apart::waits(cx)
}

/// The native that such a process is in.
fn dirty_native(cx: &Cx) -> Option<&'static Export> {
    // SAFETY: it is at the call of a native, whose first operand is an export; these are never freed.
    unsafe {
        let operand = (cx.bif_pc as *const u16).add(1) as *const *const Export;
        operand.read_unaligned().as_ref()
    }
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
        (a_error_logger(), bool_term(m.error_logger)),
        (a_kill(), bool_term(m.kill)),
        (a_size(), int(m.words)),
    ];
    if crate::options().otp.release >= 27 {
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

/// Refc binaries on the heap: address, size and count of each.
fn binaries(cx: &Cx, to: &mut Fragment) -> Term {
    let mut v = Vec::new();
    let mut walk = |mut p: *mut Term| {
        while !p.is_null() {
            // SAFETY: objects on off-heap lists are well formed.
            unsafe {
                if matches!(header_subtag((*p).raw()), Subtag::RefcBin) {
                    let bin = (*p.add(3)).raw() as *const purlin_term::bin::RcBin;
                    let id = to.uint(bin as u64);
                    let n = (*p.add(1)).raw() as usize;
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

/// What a block of so many bytes takes with what the C library adds to it.
fn in_block(bytes: usize) -> usize {
    if bytes == 0 {
        0
    } else {
        (bytes + 8).next_multiple_of(16)
    }
}

/// Bytes that the process takes: its cell and all that hangs off it. Shared regions and refc binaries are not counted.
pub fn memory(cx: &mut Cx) -> usize {
    let mut n = process::table::BYTES_EACH;
    if !cx.heap.inline_block {
        n += in_block(cx.heap.block_words() * 8);
    }
    // The unused end of a mapped block takes no memory.
    let old = match cx.heap.old_block_words() {
        n if purlin_term::gc::is_mapped(n) => cx.heap.old_words(),
        n => n,
    };
    n += in_block(old * 8);
    n += cx
        .heap
        .frags
        .iter()
        .map(|f| f.capacity_words() * 8 + size_of::<Fragment>())
        .sum::<usize>();
    let p = cx.process();
    if p.has_boxed_heap() {
        n += in_block(size_of::<purlin_term::heap::Heap>());
    }
    // SAFETY: owned by this thread.
    if let Some(m) = unsafe { p.mailbox.as_ref() } {
        n += size_of::<crate::signal::mailbox::Mailbox>() + m.bytes();
    }
    if let Some(e) = p.ext() {
        n += in_block(e.bytes());
    }
    n
}

/// One item of the process in `cx`; `None` if there is no such item.
pub fn item(cx: &mut Cx, to: &mut Fragment, what: &str) -> Option<Term> {
    let state = cx.process().state.load();
    Some(match what {
        "registered_name" => match cx.process().ext().map(|e| e.name) {
            Some(n) if n != NIL => n,
            _ => NIL,
        },
        "current_function" if hibernates(cx) => {
            let f = atom::intern("hibernate");
            to.tuple(&[am::ERLANG, f, Term::small(3)])
        }
        "current_function" if in_dirty_native(cx) => match dirty_native(cx) {
            Some(x) => to.tuple(&[x.module, x.function, Term::small(i64::from(x.arity))]),
            None => am::UNDEFINED,
        },
        "current_function" => match current(cx) {
            Some(p) => to.tuple(&[p.module, p.function, Term::small(i64::from(p.arity))]),
            None => am::UNDEFINED,
        },
        "current_location" if in_dirty_native(cx) => match dirty_native(cx) {
            Some(x) => to.tuple(&[x.module, x.function, Term::small(i64::from(x.arity)), NIL]),
            None => am::UNDEFINED,
        },
        "current_location" => match current(cx) {
            Some(p) => location(to, &p),
            None => am::UNDEFINED,
        },
        "current_stacktrace" => {
            let depth = crate::interp::exc::DEPTH.load(Ordering::Relaxed);
            let v: Vec<Term> = addresses(cx, cx.bif_pc, depth + 2)
                .into_iter()
                .enumerate()
                .filter_map(|(i, a)| place(i, a))
                .take(depth)
                .map(|p| location(to, &p))
                .collect();
            to.list(&v)
        }
        "initial_call" => {
            // SAFETY: exports live for ever.
            match unsafe { cx.process().initial_call.as_ref() } {
                Some(x) => to.tuple(&[x.module, x.function, Term::small(i64::from(x.arity))]),
                None => am::UNDEFINED,
            }
        }
        "status" => atom::intern(if state & EXITING != 0 {
            "exiting"
        } else if in_dirty_native(cx) {
            // It is suspended as soon as the native has returned.
            "running"
        } else if state & SUSPENDED != 0 {
            "suspended"
        } else if cx.process().has(WAITING) {
            "waiting"
        } else {
            "running"
        }),
        "message_queue_len" => int(cx.process().queued_messages()),
        // A sensitive process shows what it is, not what it holds.
        "messages" | "dictionary" if cx.process().has(process::SENSITIVE) => NIL,
        "backtrace" if cx.process().has(process::SENSITIVE) => to.binary(&[]),
        "messages" => {
            let p: *const process::Process = cx.process();
            // SAFETY: owned by this thread.
            crate::signal::mailbox::messages_list(unsafe { &*p }, to)
        }
        "links" => {
            let v: Vec<Term> = match cx.process().ext() {
                Some(e) => e
                    .links
                    .iter()
                    .filter(|l| l.1.unlinking == 0)
                    .map(|l| l.0.term())
                    .collect(),
                None => Vec::new(),
            };
            to.list(&v)
        }
        "monitors" => {
            let v: Vec<Target> = match cx.process().ext() {
                Some(e) => e.monitors.iter().map(|m| m.1.target()).collect(),
                None => Vec::new(),
            };
            let node = purlin_term::node::this_name();
            let mut out = Vec::new();
            for t in v {
                let kind =
                    |t: Term| atom::intern(if t.is_local_port() { "port" } else { "process" });
                out.push(match t {
                    Target::Local(p) => to.tuple(&[kind(p), p]),
                    Target::Named(p, n) => {
                        let n = to.tuple(&[n, node]);
                        to.tuple(&[kind(p), n])
                    }
                    Target::Clock => continue,
                });
            }
            to.list(&out)
        }
        "monitored_by" => {
            let v: Vec<Term> = match cx.process().ext() {
                Some(e) => e.watchers.iter().map(|w| w.1.by()).collect(),
                None => Vec::new(),
            };
            to.list(&v)
        }
        "dictionary" => {
            let v: Vec<(Term, Term)> = match cx.process().ext().map(|e| &e.dict) {
                Some(d) => d.iter().collect(),
                None => Vec::new(),
            };
            let mut l = NIL;
            for (k, t) in v {
                let k = copy::copy(k, to);
                let (t, _held) = crate::signal::share::share(cx, t);
                let t = copy::copy(t, to);
                let p = to.tuple(&[k, t]);
                l = to.cons(p, l);
            }
            l
        }
        "trap_exit" => bool_term(cx.process().has(TRAP_EXIT)),
        "error_handler" => match cx.process().ext().map(|e| e.error_handler) {
            Some(t) if t != NIL => t,
            _ => am::ERROR_HANDLER,
        },
        "priority" => priority_atom(cx.process().state.priority()),
        "group_leader" => {
            let gl = cx.process().group_leader;
            if gl == am::UNDEFINED {
                let t = cx.process().ext().and_then(|e| e.group_leader.as_ref());
                t.map_or(am::UNDEFINED, |t| copy::copy(t.term(), to))
            } else {
                gl
            }
        }
        "parent" => {
            let (me, parent) = (cx.self_pid(), cx.process().parent);
            if me.pid_data() == 0 {
                am::UNDEFINED
            } else {
                Term::pid(parent)
            }
        }
        "total_heap_size" => {
            // Messages in the queue are part of the heap, where they aren't to be kept apart.
            let queued = match cx.process().has(OFF_HEAP_QUEUE) {
                true => 0,
                false => cx.process().queued_words(),
            };
            int(cx.heap.block_words() + cx.heap.old_block_words() + cx.heap.frag_words + queued)
        }
        "heap_size" => int(cx.heap.block_words()),
        "stack_size" => int(cx.heap.stack_words()),
        "memory" => int(memory(cx)),
        "reductions" => {
            let n = cx.process().reductions;
            let now = (cx.charged - cx.reds).max(0) as u64;
            int((n + now) as usize)
        }
        "min_heap_size" => int(process::reported_min_heap(cx.process())),
        "min_bin_vheap_size" => int(cx.heap.min_vheap_words),
        "fullsweep_after" => int(cx.heap.fullsweep_after as usize),
        "max_heap_size" => {
            let m = cx.process().ext().and_then(|e| e.max_heap);
            max_heap(to, m)
        }
        "garbage_collection" => {
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
        }
        "garbage_collection_info" => gc_info(to, &cx.heap),
        "suspending" => {
            let all = cx.process().ext().map_or(&[][..], |e| &e.suspending);
            let v: Vec<Term> = all
                .iter()
                .map(|(p, n, stopped)| {
                    // How often it is suspended, or is to be as soon as it has heard of it.
                    let (n, none) = (int(*n as usize), Term::small(0));
                    match stopped.load(Ordering::Acquire) {
                        true => to.tuple(&[*p, n, none]),
                        false => to.tuple(&[*p, none, n]),
                    }
                })
                .collect();
            to.list(&v)
        }
        "binary" => binaries(cx, to),
        "catchlevel" => {
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
        }
        "backtrace" => {
            let text = backtrace(cx);
            to.binary(text.as_bytes())
        }
        "last_calls" => crate::trace::saved::shown(cx.process(), to),
        "message_queue_data" => atom::intern(if cx.process().has(OFF_HEAP_QUEUE) {
            "off_heap"
        } else {
            "on_heap"
        }),
        "sequential_trace_token" => match sequential::token(cx.process()) {
            Some(t) => t.term(to),
            None => NIL,
        },
        "magic_ref" => NIL,
        "trace" => Term::small(cx.process().ext().map_or(0, |e| i64::from(e.trace_flags))),
        _ => return None,
    })
}

/// The stack as text: addresses, functions, and what the slots hold.
pub fn backtrace(cx: &mut Cx) -> String {
    use std::fmt::Write;
    let mut s = String::new();
    let name = |i: usize, a: u64| match place(i, a) {
        Some(p) => format!(
            "{}:{}/{} + {}",
            print(p.module),
            print(p.function),
            p.arity,
            0
        ),
        None => "terminate process normally".to_owned(),
    };
    let pc = cx.bif_pc as u64;
    let _ = writeln!(s, "Program counter: 0x{pc:016x} ({})", name(0, pc));
    let mut p = cx.heap.stop;
    let mut y = 0;
    while p < cx.heap.hend {
        // SAFETY: words of the stack.
        let w = unsafe { *p };
        if w.raw() & 3 == 0 {
            if w.raw() != 0 {
                let n = match place(1, w.raw()) {
                    Some(_) => format!("({})", name(1, w.raw())),
                    None => "(<terminate process normally>)".to_owned(),
                };
                let _ = writeln!(
                    s,
                    "\n0x{:016x} Return addr 0x{:016x} {n}",
                    p as u64,
                    w.raw()
                );
            }
            y = 0;
        } else if w.is_catch() {
            let a = w.catch_addr() as u64;
            let _ = writeln!(s, "y({y})     Catch 0x{a:016x} ({})", name(0, a));
            y += 1;
        } else {
            let _ = writeln!(s, "y({y})     {}", print(w));
            y += 1;
        }
        // SAFETY: below `hend`.
        p = unsafe { p.add(1) };
    }
    s
}

fn print(t: Term) -> String {
    purlin_term::print::format_term(t, purlin_term::print::Style::Write, 10_000)
}

/// What to answer.
#[derive(Clone)]
enum Wanted {
    /// The items of `process_info/1`.
    All,
    One(Term),
    Some(Vec<Term>),
}

fn answer(cx: &mut Cx, w: &Wanted) -> OwnedTerm {
    let mut to = Fragment::new();
    let mut named = |cx: &mut Cx, k: Term| {
        let v = item(cx, &mut to, atom::name(k)).unwrap_or(am::UNDEFINED);
        (k, v)
    };
    let made: Vec<(Term, Term)> = match w {
        Wanted::All => DEFAULT.iter().map(|k| named(cx, atom::intern(k))).collect(),
        Wanted::One(k) => vec![named(cx, *k)],
        Wanted::Some(v) => v.iter().map(|&k| named(cx, k)).collect(),
    };
    let registered = atom::intern("registered_name");
    let t = match w {
        Wanted::One(_) if made[0].0 == registered && made[0].1 == NIL => NIL,
        Wanted::One(_) => to.tuple(&[made[0].0, made[0].1]),
        _ => {
            let all = matches!(w, Wanted::All);
            let v: Vec<Term> = made
                .iter()
                .filter(|m| !(all && m.0 == registered && m.1 == NIL))
                .map(|m| to.tuple(&[m.0, m.1]))
                .collect();
            to.list(&v)
        }
    };
    OwnedTerm::from_parts(t, to)
}

const ITEMS: &[&str] = &[
    "registered_name",
    "current_function",
    "current_location",
    "current_stacktrace",
    "initial_call",
    "status",
    "message_queue_len",
    "messages",
    "links",
    "monitors",
    "monitored_by",
    "dictionary",
    "trap_exit",
    "error_handler",
    "priority",
    "group_leader",
    "parent",
    "total_heap_size",
    "heap_size",
    "stack_size",
    "memory",
    "reductions",
    "min_heap_size",
    "min_bin_vheap_size",
    "fullsweep_after",
    "max_heap_size",
    "garbage_collection",
    "garbage_collection_info",
    "suspending",
    "binary",
    "catchlevel",
    "backtrace",
    "last_calls",
    "message_queue_data",
    "sequential_trace_token",
    "magic_ref",
    "trace",
];

/// `garbage_collection_info` of a heap.
pub fn gc_info(to: &mut Fragment, h: &purlin_term::heap::Heap) -> Term {
    let used = |a: *mut Term, b: *mut Term| (b as usize - a as usize) / 8;
    let items = [
        ("old_heap_block_size", int(h.old_block_words())),
        ("heap_block_size", int(h.block_words())),
        ("mbuf_size", int(h.frag_words)),
        ("recent_size", int(used(h.heap, h.high_water))),
        ("stack_size", int(h.stack_words())),
        ("old_heap_size", int(used(h.old_heap, h.old_htop))),
        ("heap_size", int(h.used_words())),
        ("bin_vheap_size", int(h.off_heap.bytes / 8)),
        ("bin_vheap_block_size", int(h.vheap_bytes / 8)),
        ("bin_old_vheap_size", int(h.old_off_heap.bytes / 8)),
        ("bin_old_vheap_block_size", int(h.old_vheap_bytes / 8)),
    ];
    pairs(to, &items)
}

/// The names of all items.
pub fn all_items(cx: &mut Cx) -> Term {
    let names: Vec<Term> = ITEMS.iter().map(|n| atom::intern(n)).collect();
    cx.list(&names)
}

fn known(k: Term) -> bool {
    k.is_atom() && ITEMS.contains(&atom::name(k))
}

fn info(cx: &mut Cx, pid: Term, w: Wanted) -> BifResult {
    if !pid.is_local_pid() {
        return Err(Fail::Badarg);
    }
    if pid == cx.self_pid() {
        let queue = |k: &Term| {
            let n = atom::name(*k);
            n == "message_queue_len" || n == "messages"
        };
        let wants_queue = match &w {
            Wanted::All => true,
            Wanted::One(k) => queue(k),
            Wanted::Some(v) => v.iter().any(queue),
        };
        if wants_queue {
            crate::signal::handle::fetch(cx);
        }
        let t = answer(cx, &w);
        return Ok(copy::copy(t.term(), cx));
    }
    ask_term(cx, pid, move |cx| {
        if let Some(cx) = cx
            && !cx.process().has(process::EXIT_PENDING)
        {
            return answer(cx, &w);
        }
        OwnedTerm::copy_of(am::UNDEFINED)
    })
}

fn process_info_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    info(cx, pid, Wanted::All)
}
fn process_info_2(cx: &mut Cx, [pid, what]: [Term; 2]) -> BifResult {
    if what.is_atom() {
        if !known(what) {
            return Err(Fail::Badarg);
        }
        return info(cx, pid, Wanted::One(what));
    }
    let mut v = Vec::new();
    let mut it = what.list_iter();
    for k in it.by_ref() {
        if !known(k) {
            return Err(Fail::Badarg);
        }
        v.push(k);
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
    Plain "erlang":"process_info"/1 = process_info_1;
    Plain "erlang":"process_info"/2 = process_info_2;
}
