//! Where processes meet what is not a process: ports, tables, code that is purged, nodes. One function for each
//! meeting, so that the signal code names nobody else.

use crate::cx::{BifResult, Cx, Fail};
use purlin_term::{Term, am};

/// A message to a port. Nobody is told where there is no such port.
pub fn port_send(_cx: &mut Cx, _port: Term, _msg: Term) -> Result<(), Fail> {
    Ok(())
}
/// The exit signal of a process that was linked to a port.
pub fn port_exit(_port: Term, _from: Term, _reason: Term) {}
/// `exit(Port, Reason)`
pub fn port_exit_2(_cx: &mut Cx, _port: Term, _reason: Term) -> BifResult {
    Ok(am::TRUE)
}
/// `link(Port)`
pub fn port_link(cx: &mut Cx, port: Term) -> BifResult {
    if cx.process().has(crate::process::TRAP_EXIT) {
        let me = cx.self_pid();
        crate::signal::send_with(me, |b| b.tuple(&[am::EXIT_UC, port, am::NOPROC]));
        return Ok(am::TRUE);
    }
    Err(cx.error(am::NOPROC))
}
/// `unlink(Port)`
pub fn port_unlink(_cx: &mut Cx, _port: Term) -> BifResult {
    Ok(am::TRUE)
}
/// A process starts to watch a port. False: there is no such port.
pub fn port_monitor(_port: Term, _reference: Term, _by: Term, _name: Term) -> bool {
    false
}
/// A process does not watch a port any more.
pub fn port_demonitor(_port: Term, _reference: Term) {}
/// Gives a port a name. False: it has one, or the name is taken.
pub fn port_register(_port: Term, _name: Term) -> bool {
    false
}
/// Takes a port's name away.
pub fn port_unregister(_port: Term, name: Term) {
    crate::process::registry::unregister(name);
}
/// A process has ended: what it owned elsewhere goes.
pub fn owner_exit(pid: Term) {
    crate::timer::message::owner_exit(pid);
}
/// `process_flag(monitor_nodes, …)`: nodes never come up while distribution isn't there, so that only the arguments
/// matter.
pub fn monitor_nodes(_cx: &mut Cx, _flag: Term, _value: Term) -> BifResult {
    Err(Fail::Notsup)
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
