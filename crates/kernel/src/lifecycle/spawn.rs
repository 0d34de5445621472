//! Spawning processes.
//!
//! A spawn reserves a cell and a pid, copies the arguments to the new heap, and opens the queue:
//! from then on others may send to the process. Link and monitor follow. At last the process
//! becomes ready.
//!
//! # Invariants
//! * The cell is the spawning thread's until the process is ready. Others only push signals.
//! * Until the queue is open, others take the process for one that has ended.

use crate::budgets;
use crate::code;
use crate::code::breakpoint;
use crate::events;
use crate::keys::RefKey;
use crate::lazy_atoms;
use crate::message::{Kind, Signal};
use crate::post::push_or_free;
use crate::process::ext::{AliasMode, Link, MaxHeap, Monitor, Peer, Settings, Target};
pub use crate::process::request::{Reply, Request};
use crate::process::state::Priority;
use crate::process::table::take_spare;
use crate::process::{self, INLINE_WORDS, OFF_HEAP_QUEUE, Process, SEQUENTIAL, SYSTEM, table};
use crate::signal::token;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::off_heap::OffHeap;
use purlin_term::{Alloc, Term, am, copy, gc};

lazy_atoms! {
    erts_internal = "erts_internal"; spawn_init = "spawn_init";
}

/// Options of a new process.
#[derive(Default)]
pub struct Options {
    pub link: bool,
    /// Reference, alias mode and tag of the parent's monitor.
    pub monitor: Option<(RefKey, AliasMode, Option<Box<OwnedTerm>>)>,
    pub priority: Option<Priority>,
    pub settings: Settings,
    pub max_heap: Option<MaxHeap>,
    pub off_heap_queue: bool,
    /// `{async_dist, Bool}`
    pub async_dist: Option<bool>,
    /// Number of the only scheduler that may run it; 0 for any.
    pub scheduler: usize,
    pub system: bool,
    /// `{thread, own}`
    pub own_thread: bool,
    /// `{budget, Budget}`
    pub budget: Option<budgets::Held>,
    /// Set if the parent gets a reply by a message, or has a token of sequential tracing.
    pub request: Option<Box<Request>>,
}

/// The reason why a process could not be spawned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpawnError {
    /// The process table is full, or the system cannot start a thread for it.
    SystemLimit,
    /// The budget of the process has no more left.
    Budget,
}

struct Block {
    at: *mut Term,
    off_heap: OffHeap,
}

impl Alloc for Block {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut Term {
        let p = self.at;
        // SAFETY: the block was sized for everything that is allocated in it.
        self.at = unsafe { p.add(words) };
        p
    }
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.off_heap
    }
}

/// Maximum number of registers that a process starts with; more arguments are passed as a list.
const ARGS: usize = 6;

const _: () = assert!(crate::code::start::APPLY_LIVE <= ARGS);

/// Returns the start address, and fills the registers.
fn entry(m: Term, f: Term, args: Term, regs: &mut [Term; ARGS]) -> (*const u64, usize) {
    // Call a fun directly: the list of its arguments would take memory.
    if m == am::ERLANG
        && f == am::APPLY
        && let Some((fun, rest)) = args.as_cons()
        && let Some((a, end)) = rest.as_cons()
        && fun.is_fun()
        && end.is_nil()
    {
        regs[0] = fun;
        regs[1] = a;
        // Report the call where `erlang:apply/2` is traced. Calls that are instructions are not
        // reported.
        let start = breakpoint::traced_apply().unwrap_or(code::stubs().apply_fun.as_ptr());
        return (start, 2);
    }
    let mut n = 0;
    let mut it = args.list_iter();
    for a in it.by_ref() {
        if n == ARGS {
            // With many arguments the list is smaller.
            regs[0] = m;
            regs[1] = f;
            regs[2] = args;
            return (
                crate::code::start::apply_start(),
                crate::code::start::APPLY_LIVE,
            );
        }
        regs[n] = a;
        n += 1;
    }
    let e = code::export(m, f, n as u32);
    (e.address(), n)
}

/// Spawns a process that calls `m:f` with `args` (two atoms and a proper list). Returns its pid and
/// the number of words copied for it. `parent` is the spawning process, if there is one.
///
/// # Safety
/// `parent` is null or owned by the caller.
pub unsafe fn spawn(
    parent: *mut Process,
    m: Term,
    f: Term,
    args: Term,
    mut o: Options,
) -> Result<(Term, usize), SpawnError> {
    let (budget, p, pid) = reserve(parent, [m, f, args], &o)?;
    crate::timer::make_room(table().index(p));
    budgets::take_seat(table().index(p), budget);
    crate::sched::count_spawn();
    // SAFETY: null or owned by the caller.
    let (gl, parent_data) = match unsafe { parent.as_ref() } {
        Some(q) => (q.group_leader, q.pid().pid_data()),
        None => (pid, pid.pid_data()),
    };
    // SAFETY: the reserved cell is this thread's until the process is published.
    let me = unsafe {
        Process::init(p, gl, parent_data);
        &mut *p
    };
    if gl == am::UNDEFINED {
        // SAFETY: without a parent the group leader is a pid; the caller owns the parent.
        let copy = unsafe { (*parent).ext() }
            .and_then(|e| e.group_leader.as_ref())
            .map(|t| Box::new(OwnedTerm::copy_of(t.term())));
        me.ext_mut().group_leader = copy;
    }
    let mut regs = [purlin_term::NIL; ARGS];
    let purges = code::purge::BEGUN.begun();
    let (pc, live) = entry(m, f, args, &mut regs);
    let arity = args.list_iter().count();
    me.initial_call = code::export(m, f, arity as u32);
    // SAFETY: the process is new, and the arguments stay for the call.
    let words = unsafe { fill(me, pc, &regs[..live], &o) };
    crate::recorder::started(me, m, f, args);
    if o.system {
        me.flags |= SYSTEM;
    }
    // A process that is notified of the new one may send to it at once.
    me.in_transit.open();
    // SAFETY: the parent is null or owned by the caller, and the new process is this thread's.
    unsafe {
        if events::watches_spawn(parent.as_ref()) {
            report(parent, me, [m, f, args], &o);
        }
    }
    let mut token = None;
    // SAFETY: null or owned by the caller.
    if let Some(q) = unsafe { parent.as_mut() }.filter(|q| q.has(SEQUENTIAL)) {
        token::inherit(q, me);
        if let Some(r) = &o.request {
            token = token::spawned(q, me, [m, f, args], r);
        }
    }
    if o.off_heap_queue {
        me.flags |= OFF_HEAP_QUEUE;
    }
    if o.async_dist.is_some() {
        me.ext_mut().async_dist = o.async_dist;
    }
    if o.scheduler != 0 {
        crate::sched::bind(p, o.scheduler);
    }
    // SAFETY: null or owned by the caller.
    if let Some(q) = unsafe { parent.as_mut() } {
        tie(q, me, pid, &mut o);
    }
    if o.max_heap.is_some() {
        me.ext_mut().max_heap = o.max_heap;
    }
    // SAFETY: null or owned by the caller.
    if let (Some(q), Some(r)) = (unsafe { parent.as_ref() }, &o.request)
        && r.reply == Reply::Message
    {
        reply(q.pid(), r, pid, token);
    }
    let prio = o.priority.unwrap_or(Priority::Normal);
    // A purge that began before the queue was open may have taken this process for one that had
    // ended. Later purges ask it like all others whether it would run old code.
    if !code::purge::BEGUN.unchanged(purges) {
        me.pc = entry(m, f, args, &mut regs).0;
    }
    me.state.publish_queued(prio, o.own_thread);
    crate::sched::enqueue_new(p, prio);
    if budget != budgets::ROOT && budgets::was_late(budget) {
        crate::signal::send::exit_signal(pid, pid, am::KILL);
    }
    Ok((pid, words))
}

/// Reserves a cell and a pid for a new process, and has its budget pay for it.
#[inline]
fn reserve(
    parent: *const Process,
    mfa: [Term; 3],
    o: &Options,
) -> Result<(u32, *mut Process, Term), SpawnError> {
    let budget = budget_of(parent, mfa, o);
    if !budgets::admit(budget) {
        return Err(SpawnError::Budget);
    }
    let Ok((p, pid)) = table().reserve(take_spare()) else {
        budgets::dismiss(budget);
        return Err(SpawnError::SystemLimit);
    };
    if o.own_thread && !crate::sched::own_threads::start(table().index(p)) {
        budgets::dismiss(budget);
        // SAFETY: the reserved cell is this thread's, and was never seen by others.
        unsafe {
            table().withdraw(p, None);
            table().release(p);
        }
        return Err(SpawnError::SystemLimit);
    }
    Ok((budget, p, pid))
}

/// Returns the budget of a new process.
#[inline]
fn budget_of(parent: *const Process, mfa: [Term; 3], o: &Options) -> u32 {
    let asked = o.budget.as_ref().map(budgets::Held::index);
    let inherited = budgets::inherited(parent, asked);
    if budgets::has_rules() && asked.is_none() {
        return budgets::of_application(mfa).unwrap_or(inherited);
    }
    inherited
}

/// Reports the spawn to those who trace the parent or new processes.
///
/// # Safety
/// `parent` is null or owned by the caller, who also owns `me`.
#[cold]
unsafe fn report(parent: *mut Process, me: &mut Process, mfa: [Term; 3], o: &Options) {
    let mut place = Fragment::new();
    let mfa = match &o.request {
        // A process spawned by a request starts in an internal function of stock's.
        Some(r) if r.reply != Reply::Call => {
            let mfa = place.tuple(&mfa);
            [erts_internal(), spawn_init(), place.list(&[mfa])]
        }
        _ => mfa,
    };
    // SAFETY: by the contract of this function.
    unsafe { events::sink().spawned(parent, me, o.link, mfa) };
}

/// Links the parent to the new process, and makes its monitor, if the options ask for them.
#[inline]
fn tie(parent: &mut Process, me: &mut Process, pid: Term, o: &mut Options) {
    if o.link {
        me.ext_mut()
            .links
            .insert(Peer::of(parent.pid()), Link { unlinking: 0 });
        parent
            .ext_mut()
            .links
            .insert(Peer::of(pid), Link { unlinking: 0 });
    }
    if let Some((k, alias, tag)) = o.monitor.take() {
        me.ext_mut().watch(k, parent.pid(), purlin_term::NIL);
        parent
            .ext_mut()
            .monitors
            .insert(k, Monitor::new(Target::Local(pid), alias, tag));
    }
}

/// Sends the parent the reply that the process exists.
fn reply(to: Term, r: &Request, pid: Term, token: Option<token::Token>) {
    let mut f = Fragment::new();
    let tag = copy::copy(r.tag.term(), &mut f);
    let reference = copy::copy(r.reference, &mut f);
    let msg = f.tuple(&[tag, reference, am::OK, pid]);
    let msg = OwnedTerm::from_parts(msg, f);
    let s = match &token {
        Some(t) => Signal::with_token(None, t, None, msg.term()),
        None => Signal::copy_of(Kind::Message, msg.term()),
    };
    // SAFETY: a new signal.
    unsafe {
        if token.is_none() {
            (*s).end_sequel();
        }
        push_or_free(to, s);
    }
}

/// Makes the heap with the terms of the registers, and the bottom of the stack. Returns the number
/// of words of the terms.
///
/// # Safety
/// `me` is a new process, whose queue is not open and which has no heap yet. `regs` are at most
/// [`ARGS`] terms, which stay valid for the duration of the call.
unsafe fn fill(me: &mut Process, pc: *const u64, regs: &[Term], o: &Options) -> usize {
    let words: usize = regs.iter().map(|&t| copy::size_of(t)).sum();
    let need = words + regs.len() + crate::code::start::BOTTOM_WORDS;
    let s = &o.settings;
    let custom =
        s.min_heap_words.is_some() || s.min_vheap_words.is_some() || s.fullsweep_after.is_some();
    if custom {
        me.ext_mut().settings = *s;
    }
    let least = s.min_heap_words.unwrap_or_else(|| {
        process::DEFAULTS
            .min_heap_words
            .load(purlin_term::sync::Ordering::Relaxed)
    }) as usize;
    let (mut block, mut size) = (me.inline_words(), INLINE_WORDS);
    // With the fence on, no heap lies in a cell, since cells are reused.
    let inline = need <= INLINE_WORDS && least <= INLINE_WORDS && !purlin_term::fence::on();
    if !inline {
        size = gc::heap_size_for(need.max(least));
        block = gc::alloc_block(size);
    }
    let mut b = Block {
        at: block,
        off_heap: OffHeap::default(),
    };
    let mut copies = [purlin_term::NIL; ARGS];
    for (c, &t) in copies.iter_mut().zip(regs) {
        *c = copy::copy(t, &mut b);
    }
    for (i, c) in copies[..regs.len()].iter().enumerate() {
        // SAFETY: the block has room for the terms and the registers behind them.
        unsafe { b.at.add(i).write(*c) };
    }
    me.live = regs.len() as u16;
    me.pc = pc;
    // SAFETY: the block has `size` words, the last of which are free for the bottom of the stack,
    // and the process has no other heap.
    unsafe {
        let stop = block.add(size - crate::code::start::BOTTOM_WORDS);
        (stop as *mut u64).write(code::stubs().exit.as_ptr() as u64);
        me.set_first_block(block..block.add(size), b.at, stop, b.off_heap);
    }
    words
}
