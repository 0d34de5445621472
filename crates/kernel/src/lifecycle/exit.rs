//! The end of a process.

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

/// Characters of the reason for which a system process ends that are shown.
const MOST_OF_REASON: usize = 100_000;

/// Ends the running process: everybody who is to know is told, and the cell is given back. The process must not be
/// touched afterwards.
///
/// # Safety
/// The caller owns the process in `cx`, whose heap is expanded; `reason` may lie on that heap.
pub(crate) unsafe fn terminate(cx: &mut Cx, reason: Term) {
    tell_all(cx, reason);
    bury(cx);
}

/// Ends the running process, which a signal has ended, as far as others can tell. What it has stays, for the function of a library
/// that is under way.
///
/// # Safety
/// The caller owns the process in `cx`, whose heap is expanded, and which has `EXIT_PENDING`. It leaves the process to the end of its
/// time slice without running anything of it.
pub unsafe fn end_within(cx: &mut Cx) {
    let p = cx.process();
    if !p.state.load().is_exiting() {
        let reason = p.take_exit_reason();
        let gone = Gone {
            pid: p.pid(),
            _keeps: Box::new(code::module_at(cx.bif_pc)),
        };
        cx.process().ext_mut().gone = Some(Box::new(gone));
        code::areas::ends_within();
        tell_all(cx, reason.as_ref().map_or(am::NORMAL, |r| r.term()));
    }
}

/// Has everybody who is to know hear that the running process has ended: nobody finds it any more.
///
/// # Safety
/// As for [`terminate`].
unsafe fn tell_all(cx: &mut Cx, reason: Term) {
    let p = cx.proc;
    let me = (*p).pid();
    if process::is_system(me) {
        // Nothing goes on without them, least of all if it is the first process that has ended.
        let reason = format_term(reason, Style::Display, MOST_OF_REASON);
        crate::halt::halt_with_dump(&format!(
            "System process <0.{}.0> terminated: {reason}",
            me.pid_data()
        ));
    }
    outside().process_ends(cx);
    if crate::os::single::on() {
        crate::os::single::process_ends(me.pid_data(), reason);
    }
    // Everybody who hears of it gets the same large reason. The heap is only freed after this.
    let (reason, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Exit, reason);
    crate::accounts::ended(cx);
    (*p).state.begin_exit();
    delays::where_hot();
    // Against that in `Table::is_alive`.
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
    // Whoever no longer finds the name finds none of the process's tables either.
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
    // Whoever hears of its end finds it gone.
    table().withdraw(p, take_spare());
    delays::where_hot();
    if let Some(e) = (*p).ext() {
        // Work that was put off: whoever asked for it hears that the process has gone.
        if let Some(r) = e.rare() {
            let held = r.collections_held.take().unwrap_or_default();
            for (_, task) in std::mem::take(&mut r.deferred).into_iter().chain(held) {
                task(None);
            }
        }
        // A process that hears that the keeper of the node's name has ended finds that the node has none.
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
    // After those who had linked and monitored it before.
    if let Some(e) = (*p).ext().and_then(|e| e.rare()) {
        for s in std::mem::take(&mut e.after_end) {
            drain_dead(me, s as *mut Link);
        }
    }
    drain_dead(me, left);
}

/// Gives up what the running process has, and its cell, after all that are to know that it has ended have heard of it.
///
/// # Safety
/// The caller owns the process in `cx`, whose heap is expanded. It must not be touched afterwards.
pub(crate) unsafe fn bury(cx: &mut Cx) {
    let p = cx.proc;
    let gone = (*p)
        .ext()
        .and_then(|e| e.rare())
        .and_then(|r| r.gone.take());
    gc::destroy(&mut cx.heap);
    if let Some(gone) = gone {
        code::areas::ended_within();
        // That its library may be unloaded is for another moment.
        crate::later::add(Box::new(move || drop(gone)));
    }
    let me_mut = &mut *p;
    me_mut.drop_boxed_heap();
    if !me_mut.mailbox.is_null() {
        Mailbox::destroy(me_mut.mailbox);
        me_mut.mailbox = std::ptr::null_mut();
    }
    me_mut.drop_ext();
    cx.proc = std::ptr::null_mut();
    if me_mut.state.load().has_own_thread() {
        crate::sched::own::ended(table().index(p));
    }
    me_mut.state.set_free();
    table().release_or_keep(p, crate::sched::current() != 0);
}

/// Tells links of a process that has a token of sequential tracing.
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

/// Tells links and watchers, and those who are watched.
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
