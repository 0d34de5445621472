//! Handling of the signals that have arrived at a process. Runs on the thread that owns the
//! process, between two of its instructions (or in a native that waits).

use super::send::{link_exit, monitor_down};
use crate::cx::Cx;
use crate::events::{self, Tie};
use crate::keys::RefKey;
use crate::lazy_atoms;
use crate::message::external::Step;
use crate::message::queue::Link;
use crate::message::token::Token;
use crate::message::{Kind, Sequel, Signal};
use crate::outside::outside;
use crate::post::push_or_free;
use crate::process::ext::{self, AliasMode, Monitor, Peer, Target};
use crate::process::{EXIT_PENDING, Process, TRAP_EXIT, table};
use crate::remote::Remote;
use purlin_term::etf::aliases;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::layout::RefWords;
use purlin_term::plants::{self, Plant};
use purlin_term::{Alloc, NIL, Term, am, copy};
use smallvec::SmallVec;

/// Returns the key of a reference of this node.
#[inline]
pub fn ref_key(t: Term) -> Option<RefKey> {
    RefKey::of(t)
}

/// Takes the signals in transit and handles them. Returns whether messages have arrived that the
/// current receive has not seen.
#[inline]
pub fn fetch(cx: &mut Cx) -> bool {
    // A thread that has pushed a signal and not set the bit yet is about to.
    if !cx.process().state.take_signals() {
        return false;
    }
    // In the middle of a time slice it is unknown which registers hold terms: they contain what
    // returned code, or another process, has left. So a task that looks at registers finds none. A
    // process that hibernates knows its own, and waits with them.
    let live = std::mem::take(&mut cx.interp.live);
    let new = fetch_all(cx);
    cx.interp.live = live;
    new
}

/// As [`fetch`], for a process whose bit `SIGNALS` was set and has been cleared.
pub(crate) fn fetch_all(cx: &mut Cx) -> bool {
    let chain = cx.process().in_transit.take();
    if chain.is_null() {
        return false;
    }
    // SAFETY: the chain was taken.
    unsafe { handle_chain(cx, chain) }
}

/// Handles the signals of a chain, oldest first. Returns what [`fetch`] does.
///
/// # Safety
/// The chain was taken from the queue of the process in the context, which is this thread's.
pub(super) unsafe fn handle_chain(cx: &mut Cx, mut chain: *mut Link) -> bool {
    // SAFETY: the running process is owned by this thread.
    let p = unsafe { &mut *cx.proc.get() };
    let before = p.queued_messages();
    let (mut came, mut asked) = (0, false);
    let counts = crate::budgets::on();
    let mut messages = 0;
    let mut traced = p.has(crate::process::TRACED);
    while !chain.is_null() {
        let s = chain as *mut Signal;
        // SAFETY: the chain is ours; each signal is passed on once.
        unsafe {
            chain = (*s).link.next;
            came += 1;
            if counts && ((*s).kind.is_message() || (*s).kind == Kind::External) {
                messages += 1;
            }
            if (*s).kind == Kind::Message
                && (*s).sequel() != Sequel::Token
                && !(*s).sent_by
                && !traced
            {
                (*cx.proc.get()).mailbox_mut().append(s);
                continue;
            }
            (*s).link.next = std::ptr::null_mut();
            asked |= !(*s).kind.is_message();
            handle(cx, s);
            traced = (*cx.proc.get()).has(crate::process::TRACED);
        }
    }
    // SAFETY: the process in the context is this thread's.
    let p = unsafe { &mut *cx.proc.get() };
    p.state.set_long_queue(came > super::send::MANY_AT_ONCE);
    // A waiting process does not run code yet. It settles when it does.
    if asked
        && !p.has(EXIT_PENDING | crate::process::WAITING)
        && p.ext().is_none_or(|e| e.deferred.is_empty())
    {
        p.state.settle_control();
    }
    let queued = p.queued_messages();
    if counts {
        super::bounds::fetched(p, messages);
    }
    events::came(p, queued);
    !p.has(EXIT_PENDING) && queued > before
}

/// Handles a signal on behalf of the process in the context.
///
/// # Safety
/// The process in the context is this thread's. The signal is owned by the caller, in no chain, and
/// not used afterwards.
unsafe fn handle(cx: &mut Cx, s: *mut Signal) {
    // SAFETY: by the contract, process and signal are this thread's.
    let (p, kind, term) = unsafe { (&mut *cx.proc.get(), (*s).kind, (*s).term) };
    match kind {
        // SAFETY: the contract is the same.
        Kind::Message => return unsafe { message(cx, s, false) },
        // SAFETY: the contract is the same.
        Kind::AliasMessage | Kind::UrgentMessage => return unsafe { alias_message(cx, s) },
        // SAFETY: the contract is the same.
        Kind::LinkExit | Kind::Exit => return unsafe { exit(cx, s) },
        // SAFETY: the contract is the same.
        Kind::Down => return unsafe { down(cx, s) },
        // SAFETY: the contract is the same, and the kind is that of the function.
        Kind::External => return unsafe { external(cx, s) },
        Kind::Link | Kind::Monitor | Kind::Run if p.has(EXIT_PENDING) => {
            // SAFETY: the contract is the same.
            return unsafe { after_end(p, s) };
        }
        Kind::Run => {
            // SAFETY: the signal is the caller's, and of that kind.
            let task = unsafe { Signal::into_task(s) };
            return task(Some(cx));
        }
        Kind::Link => {
            events::tie(p, Tie::GettingLinked, term);
            link(p, term);
        }
        Kind::Unlink => {
            if let Some(&[from, id]) = term.as_tuple() {
                unlinked(p, from, id);
            }
        }
        Kind::UnlinkAck => {
            if let Some(&[from, id]) = term.as_tuple()
                && let Some(e) = p.ext()
            {
                let n = id.as_small().unwrap_or(0) as u32;
                if e.links
                    .get_mut(&Peer::of(from))
                    .is_some_and(|l| l.unlinking == n)
                {
                    e.links.remove(&Peer::of(from));
                }
            }
        }
        Kind::Monitor => {
            if let Some(&[r, by, name]) = term.as_tuple()
                && let Some(k) = ref_key(r)
            {
                p.ext_mut().watch(k, by, name);
            }
        }
        Kind::Demonitor => {
            if let Some(&[r, _]) = term.as_tuple()
                && let (Some(k), Some(e)) = (ref_key(r), p.ext())
            {
                e.watchers.remove(&k);
            }
        }
    }
    // SAFETY: it is the caller's, and its term is not used any more.
    unsafe { Signal::free(s) };
}

/// Keeps or answers a signal that has arrived behind the one that ends the process. The process
/// counts as gone; the sender is answered once its names and tables are gone too.
///
/// # Safety
/// `p` is this thread's; for the signal, as for [`handle`].
#[cold]
unsafe fn after_end(p: &mut Process, s: *mut Signal) {
    if p.state.load().is_exiting() {
        // SAFETY: by the contract, the signal is the caller's, a chain of one.
        unsafe { drain_dead(p.pid(), s as *mut Link) };
    } else {
        p.ext_mut().after_end.push(s);
    }
}

/// Puts a message into the mailbox; an `urgent` one before all without priority.
///
/// # Safety
/// As for [`handle`]; the signal's term is the message, wrapped as its marks (`sequel`, `sent_by`)
/// say.
unsafe fn message(cx: &mut Cx, s: *mut Signal, urgent: bool) {
    let mut from = None;
    // SAFETY: by the contract, the signal is the caller's.
    let msg = unsafe { &mut *s };
    if msg.sequel() == Sequel::Token
        && let Some((_, m)) = msg.term.as_cons()
    {
        msg.term = m;
    }
    if msg.sent_by {
        msg.sent_by = false;
        if let Some((who, m)) = msg.term.as_cons() {
            from = Some(who);
            msg.term = m;
        }
    }
    let term = msg.term;
    // SAFETY: by the contract, the process is this thread's.
    if unsafe { (*cx.proc.get()).has(crate::process::TRACED) } {
        events::sink().received(cx, from, term);
    }
    // SAFETY: the process in the context is this thread's, and the signal is a message now.
    unsafe {
        let m = (*cx.proc.get()).mailbox_mut();
        if urgent {
            m.put_first(s);
        } else {
            m.append(s);
        }
    }
}

/// Handles a message that was sent to an alias: receives it if the alias is active.
///
/// # Safety
/// As for [`handle`].
unsafe fn alias_message(cx: &mut Cx, s: *mut Signal) {
    // SAFETY: by the contract, process and signal are this thread's.
    unsafe {
        let p = &mut *cx.proc.get();
        let Some((r, msg)) = (*s).term.as_cons() else {
            return Signal::free(s);
        };
        let Some(urgent) = check_alias(p, r, (*s).kind == Kind::UrgentMessage) else {
            return Signal::free(s);
        };
        (*s).kind = Kind::Message;
        (*s).term = msg;
        message(cx, s, urgent);
    }
}

/// Returns `None` if the alias `r` is not active, or else whether the message has priority: if it
/// was sent so (`urgent`) and the alias has priority.
fn check_alias(p: &mut Process, r: Term, mut urgent: bool) -> Option<bool> {
    let k = ref_key(r)?;
    let mut ended = None;
    let active = match p.ext() {
        None => false,
        Some(e) => {
            let made = e.rare().is_some_and(|r| r.aliases.contains(&k));
            // Priority of a monitor does not extend to messages to its alias.
            urgent = urgent && made;
            let alias = e.rare().and_then(|r| {
                let once = r.aliases.get_mut(&k).copied()?;
                if once {
                    aliases::ended(|| k.numbers());
                    r.aliases.remove(&k);
                }
                Some(())
            });
            if alias.is_some() {
                urgent = urgent && e.is_urgent(&k);
                true
            } else if let Some(m) = e.monitors.get_mut(&k) {
                match m.alias() {
                    AliasMode::None => false,
                    AliasMode::ReplyDemonitor => {
                        aliases::ended(|| k.numbers());
                        ended = e.monitors.remove(&k);
                        true
                    }
                    _ => true,
                }
            } else {
                false
            }
        }
    };
    if let Some(m) = ended {
        end_monitor(p.pid(), &m, r);
    }
    active.then_some(urgent)
}

/// Puts a message of another node into the mailbox as it is. A tracer sees the decoded term.
///
/// # Safety
/// As for [`handle`]; the signal is a [`Kind::External`].
unsafe fn external(cx: &mut Cx, s: *mut Signal) {
    // SAFETY: by the contract, process and signal are this thread's.
    let (p, msg) = unsafe { (&mut *cx.proc.get(), &mut *s) };
    let mut urgent = false;
    if let Some(alias) = msg.take_alias() {
        match check_alias(p, alias.term(), msg.is_urgent()) {
            Some(first) => urgent = first,
            // SAFETY: it is the caller's, and not used any more.
            None => return unsafe { Signal::free(s) },
        }
    }
    if p.has(crate::process::TRACED) {
        let from = msg.origin();
        match msg.decode(usize::MAX).0 {
            Step::Whole(t) => events::sink().received(cx, from, t),
            Step::More | Step::Bad => {
                let u = msg.take_undecoded();
                // SAFETY: the signal is the caller's, and not used any more.
                unsafe { Signal::free(s) };
                u.iter().for_each(|u| u.refused());
                return;
            }
        }
    }
    // SAFETY: the mailbox is this thread's, and owns the message from then on.
    unsafe {
        let m = (*cx.proc.get()).mailbox_mut();
        if urgent {
            m.put_first(s);
        } else {
            m.append(s);
        }
        m.count_external(&*s);
    }
}

/// Tells the target of `m` that the process `me` no longer monitors it by `r`.
#[inline]
pub fn end_monitor(me: Term, m: &Monitor, r: Term) {
    match m.target() {
        Target::Local(to) | Target::Named(to, _) => send_demonitor(me, to, r),
        Target::Remote => {
            if let Some(w) = m.watched() {
                outside().remote_demonitor(me, w);
            }
        }
        Target::Clock | Target::Gone => {}
    }
}

/// Tells `to` that `from` no longer monitors it by `r`.
#[inline]
pub fn send_demonitor(from: Term, to: Term, r: Term) {
    if to.is_local_port() {
        outside().port_demonitor(to, r);
        return;
    }
    // SAFETY: a fresh signal.
    unsafe { push_or_free(to, Signal::tuple_of(Kind::Demonitor, &[r, from])) };
}

/// Handles an exit signal: turns it into a message, ends the process, or ignores it.
///
/// # Safety
/// As for [`handle`].
unsafe fn exit(cx: &mut Cx, s: *mut Signal) {
    // SAFETY: by the contract, process and signal are this thread's.
    let (p, signal) = unsafe { (&mut *cx.proc.get(), &mut *s) };
    let broken = signal.kind == Kind::LinkExit;
    let mut urgent = false;
    if signal.sequel() == Sequel::Token
        && let Some((_, exit)) = signal.term.as_cons()
    {
        signal.term = exit;
    }
    let Some(&[_, from, reason]) = signal.term.as_tuple() else {
        // SAFETY: it is the caller's, and not used any more.
        return unsafe { Signal::free(s) };
    };
    if broken {
        // Only an existing link that is not being removed breaks.
        let there = p.ext().is_some_and(|e| {
            e.links
                .get_mut(&Peer::of(from))
                .is_some_and(|l| l.unlinking == 0)
        });
        if let (true, Some(e)) = (there, p.ext()) {
            e.links.remove(&Peer::of(from));
            urgent = e.take_urgent_link(Peer::of(from));
            // A process that ends by it is traced as ending, and nothing else.
            if p.has(TRAP_EXIT) || reason == am::NORMAL {
                events::tie(p, Tie::GettingUnlinked, from);
            }
        } else {
            // SAFETY: it is the caller's, and not used any more.
            return unsafe { Signal::free(s) };
        }
    }
    // SAFETY: the contract is the same.
    unsafe { exited(cx, s, broken, urgent) };
}

/// Applies the exit signal of `from`, on another node, whose link has already been removed. It may
/// have come with a token.
pub fn remote_link_broke(
    cx: &mut Cx,
    from: Term,
    reason: Term,
    token: Option<&Token>,
    urgent: bool,
) {
    let s = match token {
        None => Signal::tuple_of(Kind::LinkExit, &[am::EXIT_UC, from, reason]),
        Some(t) => {
            let mut f = Fragment::new();
            let parts = [from, reason].map(|t| copy::copy(t, &mut f));
            let exit = f.tuple(&[am::EXIT_UC, parts[0], parts[1]]);
            let exit = OwnedTerm::from_parts(exit, f);
            Signal::with_token(None, t, None, exit.term())
        }
    };
    let p = cx.process();
    if p.has(TRAP_EXIT) || reason == am::NORMAL {
        events::tie(p, Tie::GettingUnlinked, from);
    }
    // SAFETY: a fresh signal.
    unsafe {
        match token {
            None => (*s).end_sequel(),
            Some(_) => {
                (*s).kind = Kind::LinkExit;
                if let Some((_, exit)) = (*s).term.as_cons() {
                    (*s).term = exit;
                }
            }
        }
        exited(cx, s, true, urgent);
    }
}

/// Applies an exit signal that was sent to an alias of the running process. It takes effect while
/// the alias is active, and has priority if it was sent so (`urgent`) and the alias has priority.
/// It is not a reply: an alias that ends with the first reply stays.
pub fn exit_by_alias(cx: &mut Cx, k: RefKey, from: Term, reason: Term, urgent: bool) {
    let Some(e) = cx.process().ext() else { return };
    let made = e.rare().and_then(|r| r.aliases.get_mut(&k).copied());
    let urgent = urgent && made.is_some() && e.is_urgent(&k);
    let monitor = e.monitors.get_mut(&k);
    if made.is_some() || monitor.is_some_and(|m| m.alias() != AliasMode::None) {
        apply_exit(cx, from, reason, urgent);
    }
}

/// Applies an exit signal of `from` as if it had just arrived. `urgent`: if it becomes a message,
/// that has priority.
pub fn apply_exit(cx: &mut Cx, from: Term, reason: Term, urgent: bool) {
    let s = Signal::tuple_of(Kind::Exit, &[am::EXIT_UC, from, reason]);
    // SAFETY: a fresh signal.
    unsafe {
        (*s).end_sequel();
        exited(cx, s, false, urgent);
    }
}

/// Breaks the link with `with`, which was never established.
pub fn link_refused(cx: &mut Cx, with: Term, reason: Term, urgent: bool) {
    let s = Signal::tuple_of(Kind::LinkExit, &[am::EXIT_UC, with, reason]);
    // SAFETY: a fresh signal.
    unsafe {
        (*s).end_sequel();
        exited(cx, s, true, urgent);
    }
}

/// Handles a signal for the running process that comes out of a task, as if it had just arrived.
///
/// # Safety
/// The signal is owned by the caller, and of a kind that takes nothing else from the running
/// process: a message, also to an alias, an exit signal, or the end of a monitored object.
pub unsafe fn handle_here(cx: &mut Cx, s: *mut Signal) {
    // SAFETY: by the contract, the signal is the caller's; the process in a context is its
    // thread's.
    unsafe {
        (*s).link.next = std::ptr::null_mut();
        handle(cx, s);
    }
}

/// Applies an exit signal whose link, if it has one, is removed already.
///
/// # Safety
/// As for [`handle`].
unsafe fn exited(cx: &mut Cx, s: *mut Signal, broken: bool, urgent: bool) {
    // SAFETY: by the contract, process and signal are this thread's.
    let (p, signal) = unsafe { (&mut *cx.proc.get(), &mut *s) };
    if let Some(&[_, from, reason]) = signal.term.as_tuple() {
        if !broken && reason == am::KILL {
            p.mark_to_exit(am::KILLED);
        } else if p.has(TRAP_EXIT) {
            signal.kind = Kind::Message;
            // SAFETY: the contract is the same; the tuple is the message.
            return unsafe { message(cx, s, urgent) };
        } else if reason != am::NORMAL || (!broken && from == p.pid()) {
            p.mark_to_exit(reason);
        }
    }
    // SAFETY: it is the caller's, and not used any more.
    unsafe { Signal::free(s) };
}

#[inline]
fn link(p: &mut Process, from: Term) {
    let e = p.ext_mut();
    // A link request that crosses one of our own makes one link.
    if !e.links.contains(&Peer::of(from)) {
        e.links.insert(Peer::of(from), ext::Link { unlinking: 0 });
    }
}

fn unlinked(p: &mut Process, from: Term, id: Term) {
    events::tie(p, Tie::GettingUnlinked, from);
    let me = p.pid();
    if let Some(e) = p.ext()
        && e.links
            .get_mut(&Peer::of(from))
            .is_some_and(|l| l.unlinking == 0)
    {
        e.links.remove(&Peer::of(from));
    }
    // SAFETY: a fresh signal.
    unsafe { push_or_free(from, Signal::tuple_of(Kind::UnlinkAck, &[me, id])) };
}

/// Ends the running process's monitor `r` of `object`, which has ended or counts as ended.
pub fn monitor_down_here(cx: &mut Cx, r: Term, object: Term, reason: Term) {
    let s = super::send::down_signal(r, am::PROCESS, object, reason);
    // SAFETY: a fresh signal; the process is the context's.
    unsafe { down(cx, s) };
}

/// Handles the end of a monitored object.
///
/// # Safety
/// As for [`handle`].
unsafe fn down(cx: &mut Cx, s: *mut Signal) {
    // SAFETY: by the contract, process and signal are this thread's.
    let (p, signal) = unsafe { (&mut *cx.proc.get(), &mut *s) };
    let Some(&[_, r, kind, object, reason]) = signal.term.as_tuple() else {
        // SAFETY: it is the caller's, and not used any more.
        return unsafe { Signal::free(s) };
    };
    let mut urgent = false;
    let m = ref_key(r).and_then(|k| {
        let e = p.ext()?;
        let m = e.monitors.remove(&k)?;
        urgent = e.take_urgent(&k);
        if m.alias() == AliasMode::Explicit {
            e.aliases.insert(k, false);
        } else {
            aliases::ended(|| k.numbers());
        }
        Some(m)
    });
    let Some(m) = m else {
        // SAFETY: it is the caller's, and not used any more.
        return unsafe { Signal::free(s) };
    };
    match m.tag() {
        None => {
            if plants::due(Plant::DownTwice, 100) {
                let again = Signal::tuple_of(Kind::Message, &[am::DOWN, r, kind, object, reason]);
                // SAFETY: a fresh signal.
                unsafe { message(cx, again, false) };
            }
            signal.kind = Kind::Message;
            // SAFETY: the contract is the same; the tuple is the message.
            unsafe { message(cx, s, urgent) };
        }
        Some(tag) => {
            let t = Signal::tuple_of(Kind::Message, &[tag, r, kind, object, reason]);
            // SAFETY: a fresh signal, which has copies of the terms of the old one.
            unsafe {
                if signal.sequel() == Sequel::Ends {
                    (*t).end_sequel();
                }
                Signal::free(s);
                message(cx, t, urgent);
            }
        }
    }
}

lazy_atoms! {
    a_change = "CHANGE"; a_clock_service = "clock_service";
}

/// Sends the running process the new time offset, once for each of its monitors of the clock, which
/// stay.
pub fn time_offset_changed(cx: &mut Cx, offset: i64) {
    // SAFETY: the process is the context's, and the signals are fresh.
    unsafe {
        let p = &mut *cx.proc.get();
        let Some(e) = p.ext() else { return };
        let mut f = Fragment::new();
        let offset = f.int(offset);
        let clocks = e
            .monitors
            .iter()
            .filter(|(_, m)| m.target() == Target::Clock);
        let all: SmallVec<[*mut Signal; 8]> = clocks
            .map(|(k, m)| {
                let r = RefWords::new(k.numbers());
                let tag = m.tag().unwrap_or(a_change());
                let message = [tag, r.term(), am::TIME_OFFSET, a_clock_service(), offset];
                Signal::tuple_of(Kind::Message, &message)
            })
            .collect();
        for s in all {
            message(cx, s, false);
        }
    }
}

/// Number of aliases from which on a live process is asked to check them.
const MANY_ALIASES: usize = 16;

/// Removes records of aliases that have left this runtime and are no longer active: those of
/// processes that have ended, and of processes that have many.
pub fn prune_aliases(all: &[(Term, usize)]) {
    for &(pid, n) in all {
        if table().find(pid).is_none() {
            aliases::process_ended(pid);
        } else if n >= MANY_ALIASES {
            let task = move |cx: Option<&mut Cx>| match cx {
                Some(cx) => aliases::keep(pid, |n| is_alias(cx.process(), n)),
                None => aliases::process_ended(pid),
            };
            super::send::run_in(pid, Box::new(task));
        }
    }
}

/// Whether the reference with these numbers is an alias of the process, or may become one.
fn is_alias(p: &mut Process, numbers: [u32; 3]) -> bool {
    let (Some(k), Some(e)) = (ref_key(RefWords::new(numbers).term()), p.ext()) else {
        return false;
    };
    let monitor = e.monitors.get_mut(&k);
    monitor.is_some_and(|m| m.alias() != AliasMode::None)
        || e.rare().is_some_and(|r| {
            let asked_for = |r: &Remote| r.spawns.contains_key(&k);
            r.aliases.contains(&k) || r.remote.as_deref().is_some_and(asked_for)
        })
}

/// Answers the signals that arrive at a process that has ended.
///
/// # Safety
/// The caller owns the chain.
pub(crate) unsafe fn drain_dead(me: Term, mut chain: *mut Link) {
    while !chain.is_null() {
        let s = chain as *mut Signal;
        // SAFETY: by the contract, the chain is the caller's.
        let (kind, term) = unsafe {
            chain = (*s).link.next;
            ((*s).kind, (*s).term)
        };
        match kind {
            Kind::Run => {
                // SAFETY: the signal is the caller's, and of that kind.
                let task = unsafe { Signal::into_task(s) };
                task(None);
                continue;
            }
            Kind::Link => {
                let from = term;
                if from.is_local_pid() {
                    link_exit(me, from, am::NOPROC);
                } else {
                    outside().port_exit(from, me, am::NOPROC);
                }
            }
            Kind::Unlink => {
                if let Some(&[from, id]) = term.as_tuple() {
                    // SAFETY: a fresh signal.
                    unsafe { push_or_free(from, Signal::tuple_of(Kind::UnlinkAck, &[me, id])) };
                }
            }
            Kind::Monitor => {
                if let Some(&[r, by, name]) = term.as_tuple() {
                    send_down(by, r, me, name, am::NOPROC);
                }
            }
            _ => {}
        }
        // SAFETY: the signal is the caller's, and not used any more.
        unsafe { Signal::free(s) };
    }
}

/// Tells a monitoring process that the process `me` has ended. `name` is the name that it monitored
/// by, or nil.
pub fn send_down(by: Term, r: Term, me: Term, name: Term, reason: Term) {
    if by == NIL {
        outside().watched_down(r, me);
    } else if name == NIL {
        monitor_down(by, r, am::PROCESS, me, reason);
    } else {
        let mut f = purlin_term::frag::Fragment::new();
        let node = purlin_term::node::this_name();
        let object = f.tuple(&[name, node]);
        let o = OwnedTerm::from_parts(object, f);
        monitor_down(by, r, am::PROCESS, o.term(), reason);
    }
}

/// Copies `t` to the context's heap.
#[inline]
pub fn copy_in(cx: &mut Cx, t: Term) -> Term {
    copy::copy(t, cx)
}
