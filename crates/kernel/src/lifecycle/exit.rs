//! The end of a process.
//!
//! # Orderings
//! `make_unreachable` sets `EXITING` and then looks for what belongs to the process: names, timers,
//! tables, links. `Table::is_alive` is called by threads that have just stored such a thing for the
//! process, and reads the state word. Each side has a `SeqCst` fence between its store and its
//! loads. So either the caller of `is_alive` sees `EXITING` and undoes its store, or the process
//! finds the store. With release and acquire alone both could miss the other, on any processor with
//! store buffers.

use crate::code;
use crate::cx::Cx;
use crate::events;
use crate::message::mailbox::Mailbox;
use crate::message::queue::Link;
use crate::outside::outside;
use crate::process::ext::Gone;
use crate::process::table::take_spare;
use crate::process::{self, Process, SEQUENTIAL, TRACED, ext, registry, table};
use crate::signal::handle::{drain_dead, send_demonitor, send_down};
use crate::signal::receive;
use crate::signal::send::{link_exit, link_exit_with_token};
use purlin_term::layout::RefWords;
use purlin_term::plants::{self, Plant};
use purlin_term::print::{Style, format_term};
use purlin_term::{NIL, Term, am, copy, delays, gc};

/// Characters of a system process's exit reason that are shown.
const MOST_OF_REASON: usize = 100_000;

/// Ends the running process: notifies everybody concerned and frees the cell. The process must not
/// be touched afterwards.
///
/// # Safety
/// The caller owns the process in `cx`, whose heap is expanded; `reason` may lie on that heap.
pub(crate) unsafe fn terminate(cx: &mut Cx, reason: Term) {
    // SAFETY: by the contract of this function.
    unsafe {
        tell_all(cx, reason);
        bury(cx);
    }
}

/// Ends the running process, which a signal has ended, as far as others can tell. Its memory stays
/// for the function of a native library that it still runs.
///
/// # Safety
/// The caller owns the process in `cx`, whose heap is expanded, and which has `EXIT_PENDING`. The
/// caller runs nothing more of the process until the end of its time slice.
pub unsafe fn end_within(cx: &mut Cx) {
    let p = cx.process();
    if !p.state.load().is_exiting() {
        let reason = p.take_exit_reason();
        let gone = Gone {
            pid: p.pid(),
            _keeps: Box::new(code::module_at(cx.bif_pc)),
        };
        cx.process().ext_mut().gone = Some(Box::new(gone));
        code::literal_areas::add_unaskable();
        // SAFETY: by the contract of this function; the reason is a copy that outlives the call.
        unsafe { tell_all(cx, reason.as_ref().map_or(am::NORMAL, |r| r.term())) };
    }
}

/// Makes the running process unreachable, and notifies everybody concerned that it has ended.
///
/// # Safety
/// The contract of [`terminate`] holds.
unsafe fn tell_all(cx: &mut Cx, reason: Term) {
    let p = cx.proc.get();
    // SAFETY: the caller owns the process.
    let me = unsafe { (*p).pid() };
    if process::is_system(me) {
        // The node cannot continue without it, least of all if it is the first process.
        let reason = format_term(reason, Style::Display, MOST_OF_REASON);
        crate::halt::halt_with_dump(&format!(
            "System process <0.{}.0> terminated: {reason}",
            me.pid_data()
        ));
    }
    outside().process_ends(cx);
    crate::recorder::ended(cx, reason);
    if crate::os::exploring::on() {
        crate::os::exploring::process_ends(me.pid_data(), reason);
    }
    // All receivers share one copy of a large reason. The heap is freed only after this.
    let (reason, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Exit, reason);
    crate::accounts::ended(cx);
    // SAFETY: by the contract of this function.
    let left = unsafe { make_unreachable(p, me, reason) };
    // SAFETY: by the contract of this function.
    unsafe { notify(cx, me, reason) };
    // After notifying those who had linked to it or monitored it earlier.
    // SAFETY: the caller owns the process. Signals that it has put off or not fetched are its own.
    unsafe {
        if let Some(e) = (*p).ext().and_then(|e| e.rare()) {
            for s in std::mem::take(&mut e.after_end) {
                drain_dead(me, s as *mut Link);
            }
        }
        drain_dead(me, left);
    }
}

/// Takes a process out of everything by which others could find it. Returns the signals that it has
/// not handled.
///
/// # Safety
/// The contract of [`terminate`] holds for the process.
unsafe fn make_unreachable(p: *mut Process, me: Term, reason: Term) -> *mut Link {
    // SAFETY: the caller owns the process, whose cell stays until it is buried.
    unsafe {
        (*p).state.begin_exit();
        delays::where_hot();
        // Pairs with the fence in `Table::is_alive`.
        crate::sync::fence(crate::sync::Ordering::SeqCst);
        if (*p).has(TRACED) {
            events::sink().exited(&mut *p, reason);
        }
        events::ends(&mut *p);
        receive::stop_timer(&mut *p);
        let _ = (*p).state.take_timeout();
        crate::timer::message::owner_exit(me);
        crate::sched::multi_scheduling::owner_exit(me);
        crate::sched::bind(p, 0);
        outside().owner_exit(me);
        delays::where_hot();
        registry::forget_unrecorded(me);
        // A process that no longer finds the name must not find the process's tables either.
        if let Some(e) = (*p).ext().and_then(|e| e.rare())
            && e.name != NIL
            && !plants::due(Plant::NameStays, 20)
        {
            let name = std::mem::replace(&mut e.name, NIL);
            if registry::unregister_of(name, me) {
                events::tie(&mut *p, events::Tie::Unregister, name);
            }
        }
        delays::where_hot();
        let left = (*p).in_transit.close();
        delays::where_hot();
        // A process that is notified of the end may spawn another in its place.
        if crate::budgets::on() {
            crate::budgets::leave_seat(table().index(p));
        }
        // A process that is notified of the end must find it gone.
        table().withdraw(p, take_spare());
        if crate::budgets::on()
            && let Some(s) = crate::budgets::seat(table().index(p))
        {
            crate::signal::bounds::ended(me, s);
        }
        delays::where_hot();
        left
    }
}

/// Notifies those who asked something of a process that has ended, or are tied to it.
///
/// # Safety
/// The contract of [`terminate`] holds.
unsafe fn notify(cx: &mut Cx, me: Term, reason: Term) {
    // SAFETY: the caller owns the process, whose cell stays until it is buried.
    unsafe {
        let p = cx.proc.get();
        if let Some(e) = (*p).ext() {
            // Deferred work: notify those who asked for it that the process is gone.
            if let Some(r) = e.rare() {
                let held = r.collections_held.take().unwrap_or_default();
                for (_, task) in std::mem::take(&mut r.deferred).into_iter().chain(held) {
                    task(None);
                }
            }
            // A process that is notified of the end of the node's controller must find the node
            // without a name.
            if let Some(ties) = e.rare().and_then(|r| r.remote.take()) {
                outside().remote_end(cx, me, *ties, reason);
            }
            if (*p).has(SEQUENTIAL)
                && let Some(e) = (*p).ext()
            {
                let links = e.links.drain();
                tell_with_token(&mut *p, me, links, reason);
            }
            if let Some(e) = (*p).ext() {
                let receivers = e.links.len() + e.watchers.len();
                if receivers != 0 && !reason.is_immed() {
                    let words = copy::size_of(reason) * receivers;
                    crate::accounts::copied(cx, crate::accounts::Kind::Exit, words, reason);
                }
            }
            if let Some(e) = (*p).ext() {
                tell(me, e, reason);
            }
        }
    }
}

/// Frees everything that the running process has, and its cell, after everybody was notified of its
/// end.
///
/// # Safety
/// The caller owns the process in `cx`, whose heap is expanded. It must not be touched afterwards.
pub(crate) unsafe fn bury(cx: &mut Cx) {
    // SAFETY: the caller owns the process. Nobody finds it any more, so its memory is this thread's
    // alone.
    unsafe {
        let p = cx.proc.get();
        let gone = (*p)
            .ext()
            .and_then(|e| e.rare())
            .and_then(|r| r.gone.take());
        gc::destroy(&mut cx.heap);
        if let Some(gone) = gone {
            code::literal_areas::remove_unaskable();
            // Defer the drop: it may unload the library.
            crate::later::add(Box::new(move || drop(gone)));
        }
        let me_mut = &mut *p;
        me_mut.drop_boxed_heap();
        if !me_mut.mailbox.is_null() {
            Mailbox::destroy(me_mut.mailbox);
            me_mut.mailbox = std::ptr::null_mut();
        }
        me_mut.drop_ext();
        cx.proc.clear();
        if me_mut.state.load().has_own_thread() {
            crate::sched::own_threads::ended(table().index(p));
        }
        me_mut.state.set_free();
        table().release_or_keep(p, crate::sched::current() != 0);
    }
}

/// Notifies the links of a process that has a token of sequential tracing.
#[cold]
fn tell_with_token(
    p: &mut Process,
    me: Term,
    links: ext::Drained<ext::Peer, ext::Link>,
    reason: Term,
) {
    for (other, link) in links {
        let other = other.term();
        if !other.is_local_pid() {
            outside().port_exit(other, me, reason);
        } else if link.unlinking == 0 {
            link_exit_with_token(p, me, other, reason);
        }
    }
}

/// Notifies links, watchers, and the processes that it watches.
fn tell(me: Term, e: &mut ext::Ext, reason: Term) {
    for (other, link) in e.links.drain() {
        let other = other.term();
        if !other.is_local_pid() {
            outside().port_exit(other, me, reason);
        } else if link.unlinking == 0 {
            link_exit(me, other, reason);
        }
    }
    for (k, w) in e.watchers.drain() {
        send_down(
            w.by(),
            RefWords::new(k.numbers()).term(),
            me,
            w.name(),
            reason,
        );
    }
    purlin_term::etf::aliases::process_ended(me);
    for (k, m) in e.monitors.drain() {
        match m.target() {
            ext::Target::Local(to) | ext::Target::Named(to, _) => {
                send_demonitor(me, to, RefWords::new(k.numbers()).term());
            }
            ext::Target::Remote => {
                if let Some(w) = m.watched() {
                    outside().remote_demonitor(me, w);
                }
            }
            ext::Target::Clock | ext::Target::Gone => {}
        }
    }
    if let Some(r) = e.rare() {
        for (pid, (n, _)) in r.suspending.drain() {
            for _ in 0..n {
                crate::signal::suspend::resume(me, pid.term());
            }
        }
    }
}
