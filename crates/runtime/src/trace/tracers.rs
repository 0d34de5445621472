//! The runtime's side of [`Sink`] and [`Breakpoints`]: passes events on to the parts of tracing.

use super::calls::{measures, pass, table};
use super::messages::receive;
use super::processes::{scheduled, tied};
use crate::code::Module;
use crate::code::breakpoint::{Breakpoints, Passed};
use crate::cx::Cx;
use crate::events::Sink;
use crate::events::Tie;
use crate::events::flag;
use crate::lazy_atoms;
use crate::process::Process;
use crate::process::session::Session;
use crate::trace::emit::{emit, encoded, event, event_of};
use crate::trace::messages;
use crate::trace::module;
use crate::trace::monitor;
use crate::trace::processes::spawn;
use crate::trace::profile;
use crate::trace::sequential;
use crate::tracer::{OfModule, Tracer};
use purlin_term::release::{self, PATTERNS_STOP_PORTS};
use purlin_term::{Term, am};
use std::sync::Arc;

lazy_atoms! {
    out_exited = "out_exited";
    gc_minor_start = "gc_minor_start";
    gc_minor_end = "gc_minor_end";
    gc_major_start = "gc_major_start";
    gc_major_end = "gc_major_end";
    old_heap_size = "old_heap_size";
    mbuf_size = "mbuf_size";
    heap_size = "heap_size";
}

/// Words in use of a heap, from the information before or after a collection.
fn used_of(info: Term) -> i64 {
    let rows = info.list_iter().filter_map(|t| t.as_tuple());
    let used = rows.filter_map(|t| match *t {
        [k, v] if [old_heap_size(), mbuf_size(), heap_size()].contains(&k) => v.as_small(),
        _ => None,
    });
    used.sum()
}

/// Notifies tracers, the system monitor, the profiler and the sequential tracer.
pub(crate) struct Tracers;

impl Sink for Tracers {
    fn tied(&self, p: &mut Process, what: Tie, other: Term) {
        tied(p, what, other);
    }
    fn timed_out(&self, p: &mut Process) {
        event(p, flag::RECEIVE, &[receive(), am::TIMEOUT]);
    }
    fn exited(&self, p: &mut Process, reason: Term) {
        event(p, flag::PROCS, &[am::EXIT, reason]);
        // A process exits in one go, so it has no other scheduling events meanwhile.
        event(p, flag::EXITING, &[out_exited(), Term::small(0)]);
    }
    unsafe fn spawned(
        &self,
        parent: *mut Process,
        child: &mut Process,
        linked: bool,
        mfa: [Term; 3],
    ) {
        // SAFETY: by the contract of this function.
        unsafe { spawn(parent, child, linked, mfa) }
    }
    fn scheduled(&self, p: &mut Process, starts: bool, pc: *const u64) {
        scheduled(p, starts, pc);
    }
    fn collected(&self, cx: &mut Cx, (before, after): (Term, Term), nanoseconds: i64, shown: bool) {
        measures::collected(cx.process(), used_of(before), used_of(after));
        if !shown {
            return;
        }
        // Whether it was a full sweep is known only now, so both events are reported now.
        let (start, end) = if cx.heap.minor_gcs == 0 {
            (gc_major_start(), gc_major_end())
        } else {
            (gc_minor_start(), gc_minor_end())
        };
        event(cx.process(), flag::GC, &[start, before]);
        event(cx.process(), flag::GC, &[end, after]);
        monitor::collected(cx, nanoseconds);
    }
    fn sending(&self, cx: &mut Cx, to: Term, msg: Term) {
        messages::sending(cx, to, msg);
    }
    fn received(&self, cx: &mut Cx, from: Option<Term>, msg: Term) {
        messages::received(cx, from, msg);
    }
    fn sequential(&self, token: &sequential::Token, what: Term, to: Term, msg: Term) {
        sequential::tell(token, what, to, msg);
    }
    fn ran(&self, pid: Term, nanoseconds: i64) {
        monitor::ran(pid, None, nanoseconds);
    }
    fn port_ran(&self, port: Term, op: &'static str, nanoseconds: i64) {
        monitor::ran(port, Some(op), nanoseconds);
    }
    fn queue_changed(&self, p: &mut Process) {
        monitor::queue_changed(p);
    }
    fn waits_for_port(&self, pid: Term, port: Term) {
        monitor::waits_for_port(pid, port);
    }
    fn waits_for_connection(&self, pid: Term, controller: Term) {
        monitor::waits_for_connection(pid, controller);
    }
    fn process_is(&self, p: &Process, active: bool, pc: Option<*const u64>) {
        profile::process_event(p, active, pc);
    }
    fn scheduler_is(&self, number: usize, busy: bool, count: usize) {
        profile::scheduler_event(number, busy, count);
    }
    fn port_event(
        &self,
        tracer: &Tracer,
        flags: u32,
        port: Term,
        wanted: u32,
        items: &[Term],
    ) -> bool {
        emit(tracer, flags, port, wanted, items, am::TRUE)
    }
    fn event_of_port(&self, flags: u32, port: Term, items: &[Term]) -> Vec<u8> {
        encoded(|a| event_of(a, flags, port, items, am::TRUE))
    }
    fn tells_of_sent(&self, session: Option<&Arc<Session>>) -> bool {
        !release::has(PATTERNS_STOP_PORTS)
            || !matches!(
                messages::pattern(session, false),
                messages::Pattern::Nothing
            )
    }
    fn tracer_lives(&self, tracer: &OfModule, tracee: Term) -> bool {
        module::lives(tracer.module, tracer.state(), tracee)
    }
    fn counts_sequence(&self, pid: Term) -> bool {
        sequential::counts(pid)
    }
    fn returned(&self, cx: &mut Cx, frame: [Term; 5], class: Option<Term>, value: Term) {
        pass::returned(cx, frame, class, value);
    }
    fn measured(&self, cx: &mut Cx, frame: [Term; 2]) {
        measures::measured(cx, frame);
    }
    fn returned_to(&self, cx: &mut Cx, whom: Term, pc: *const u64) {
        pass::returned_to(cx, whom, pc);
    }
}

impl Breakpoints for Tracers {
    fn forget(&self, code: std::ops::Range<usize>) {
        table::forget(code);
    }
    fn outdated(&self, code: std::ops::Range<usize>) {
        table::outdated(code);
    }
    fn loaded(&self, module: &Module) {
        table::loaded(module);
    }
    fn traced_apply(&self) -> Option<*const u64> {
        table::find_traced_apply()
    }
    fn passes(&self, cx: &mut Cx, pc: *const u64, caller: *const u64) -> Option<Passed> {
        pass::pass(cx, pc, caller)
    }
}
