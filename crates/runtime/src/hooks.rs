//! Where processes meet what is not a process: ports, tables, code that is purged, nodes. One function for each
//! meeting, so that the signal code names nobody else.

use crate::cx::{BifResult, Cx, Fail};
use purlin_term::{Term, am};

/// A message to a port. Nobody is told where there is no such port. Waits while the port is busy.
pub fn port_send(cx: &mut Cx, port: Term, msg: Term) -> Result<(), Fail> {
    crate::port::send(cx, port, msg)
}
/// The exit signal of a process that was linked to a port.
pub fn port_exit(port: Term, from: Term, reason: Term) {
    crate::port::link_broken(port, from, reason);
}
/// `exit(Port, Reason)`
pub fn port_exit_2(cx: &mut Cx, port: Term, reason: Term) -> BifResult {
    if let Some(p) = crate::port::find(port) {
        let _ = crate::port::exit(&p, cx.self_pid(), reason);
    }
    Ok(am::TRUE)
}
/// `link(Port)`
pub fn port_link(cx: &mut Cx, port: Term) -> BifResult {
    let me = cx.self_pid();
    if crate::port::link(port, me) {
        let link = crate::process::ext::Link { unlinking: 0 };
        cx.process()
            .ext_mut()
            .links
            .insert(crate::process::ext::Peer::of(port), link);
        crate::trace::tie(cx.process(), crate::trace::Tie::Link, port);
        return Ok(am::TRUE);
    }
    if cx.process().has(crate::process::TRAP_EXIT) {
        crate::signal::send_with(me, |b| b.tuple(&[am::EXIT_UC, port, am::NOPROC]));
        return Ok(am::TRUE);
    }
    Err(cx.error(am::NOPROC))
}
/// `unlink(Port)`
pub fn port_unlink(cx: &mut Cx, port: Term) -> BifResult {
    let me = cx.self_pid();
    crate::port::unlink(port, me);
    let linked = cx.process().ext().is_some_and(|e| {
        e.links
            .remove(&crate::process::ext::Peer::of(port))
            .is_some()
    });
    if linked {
        crate::trace::tie(cx.process(), crate::trace::Tie::Unlink, port);
    }
    Ok(am::TRUE)
}
/// A process starts to watch a port. False: there is no such port.
pub fn port_monitor(port: Term, reference: Term, by: Term, name: Term) -> bool {
    crate::port::monitor(port, by, reference, name)
}
/// A process does not watch a port any more.
pub fn port_demonitor(port: Term, reference: Term) {
    crate::port::demonitor(port, reference);
}
/// Gives a port a name. False: it has one, or the name is taken.
pub fn port_register(port: Term, name: Term) -> bool {
    crate::port::register(port, name)
}
/// Takes a port's name away.
pub fn port_unregister(port: Term, name: Term) {
    crate::port::unregister(port, name);
}
/// A process has ended: what it owned elsewhere goes.
pub fn owner_exit(pid: Term) {
    crate::timer::message::owner_exit(pid);
    crate::ets::owner_exit(pid);
    crate::bif::prim_file::owner_exit(pid);
    crate::bif::socket::owner_exit(pid);
    crate::port::sender_exit(pid);
    crate::bif::system_flag::owner_exit(pid);
    crate::bif::node::owner_exit(pid);
}
/// `process_flag(monitor_nodes, …)`
pub fn monitor_nodes(cx: &mut Cx, flag: Term, value: Term) -> BifResult {
    crate::bif::node::monitor_nodes(cx, flag, value)
}
/// Whether the process that runs refers to the old code of a module.
pub fn check_process_code(cx: &mut Cx, module: Term) -> bool {
    let pc = cx.process().pc;
    crate::code::purge::is_lingering(module, &cx.heap, pc)
}
/// A process has ended by an error that nobody caught.
pub fn process_crash(cx: &mut Cx, reason: Term) {
    crate::report::process_crash(cx, reason);
}

/// A process is larger than its `max_heap_size` (`words` in all), and wants that logged.
pub fn max_heap_exceeded(cx: &mut Cx, limit: crate::process::ext::MaxHeap, words: usize) {
    crate::report::max_heap_exceeded(cx, limit, words);
}
/// Ports: how many there are.
pub fn port_count() -> usize {
    crate::port::count()
}
/// Bytes that ports have read and written.
pub fn port_bytes() -> (u64, u64) {
    crate::port::total_bytes()
}
/// Tables: how many there are, and bytes that they take.
pub fn ets_totals() -> (usize, usize) {
    crate::ets::totals()
}
