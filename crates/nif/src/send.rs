//! Messages to processes, commands to ports, and queries of names and liveness.

use crate::abi::Pid;
use crate::env::ErlNifEnv;
use purlin_kernel::cx::Cx;
use purlin_kernel::events;
use purlin_kernel::lifecycle::exit;
use purlin_kernel::outside::outside;
use purlin_kernel::process::{self, EXIT_PENDING, TRACED, registry};
use purlin_kernel::signal::{self, handle};
use purlin_term::{Term, am};
use std::ffi::c_int;

/// The value of `ErlNifPid` for no pid or port.
const UNDEFINED: Term = am::UNDEFINED;

/// Notes that a library knows a local pid from now on, and returns it.
fn known_outside(pid: Term) -> Term {
    process::exported::note(pid);
    pid
}

/// Stores a pid, if there is one, and returns whether there is.
///
/// # Safety
/// `to` may be written to.
unsafe fn store(to: *mut Pid, v: Option<Term>) -> c_int {
    match v {
        Some(v) => {
            // SAFETY: by the contract of this function.
            unsafe { to.write(v) };
            1
        }
        None => 0,
    }
}

/// Returns the process or port with the name `t`. A local pid or port stands for itself.
fn whereis(t: Term, is: fn(Term) -> bool) -> Option<Term> {
    let who = match t.is_atom() {
        true => registry::whereis(t)?,
        false => t,
    };
    is(who).then_some(who)
}

/// Returns the pid of the calling process, which may have ended meanwhile.
pub fn pid_of(cx: &mut Cx) -> Term {
    if cx.dirty
        && cx.process().state.load().is_exiting()
        && let Some(gone) = cx.process().ext().and_then(|e| e.gone.as_ref())
    {
        return gone.pid;
    }
    cx.self_pid()
}

/// Whether the calling process is alive. If an exit signal has arrived during the call, the process
/// now ends for all others.
///
/// # Safety
/// The context is this thread's, and a process runs in it.
unsafe fn is_alive(cx: &mut Cx) -> bool {
    if cx.dirty && !cx.process().has(EXIT_PENDING) {
        handle::fetch(cx);
    }
    let alive = !cx.process().has(EXIT_PENDING);
    if !alive && cx.dirty {
        // SAFETY: this thread owns the process in its context. After the library's function
        // returns, only the end of the process is left to do.
        unsafe { exit::end_within(cx) };
    }
    alive
}

exported! {
    /// Copies the message. A process sends it after its earlier signals; other threads send it at
    /// once.
    fn enif_send(env: *mut ErlNifEnv, to: *const Pid, own: *mut ErlNifEnv, msg: Term) -> c_int {
        let to = *to;
        if !to.is_local_pid() {
            return 0;
        }
        let caller = env.as_mut().and_then(|e| e.process());
        if !process::table().is_alive(to) {
            return 0;
        }
        match caller {
            Some(cx) => {
                if cx.process().has(EXIT_PENDING) {
                    // An exit signal has arrived during the call.
                    return 0;
                }
                if cx.process().has(TRACED) {
                    events::sink().sending(cx, to, msg);
                }
                signal::send::to_process(cx, to, None, msg);
            }
            None if !signal::send(to, msg) => return 0,
            None => {}
        }
        if !own.is_null() {
            crate::env::enif_clear_env(own);
        }
        1
    }
    fn enif_self(env: *mut ErlNifEnv, to: *mut Pid) -> *mut Pid {
        match (*env).process() {
            Some(cx) => {
                to.write(known_outside(pid_of(cx)));
                to
            }
            None if (*env).on_behalf != Term::NON_VALUE => {
                to.write((*env).on_behalf);
                to
            }
            None => std::ptr::null_mut(),
        }
    }
    fn enif_get_local_pid(_env: *mut ErlNifEnv, t: Term, to: *mut Pid) -> c_int {
        store(to, t.is_local_pid().then(|| known_outside(t)))
    }
    fn enif_get_local_port(_env: *mut ErlNifEnv, t: Term, to: *mut Pid) -> c_int {
        store(to, t.is_local_port().then_some(t))
    }
    fn enif_set_pid_undefined(to: *mut Pid) {
        to.write(UNDEFINED);
    }
    fn enif_is_pid_undefined(pid: *const Pid) -> c_int {
        c_int::from(*pid == UNDEFINED)
    }
    fn enif_is_process_alive(env: *mut ErlNifEnv, pid: *const Pid) -> c_int {
        if let Some(cx) = env.as_mut().and_then(|e| e.process())
            && cx.dirty
            && pid_of(cx) == *pid
        {
            return c_int::from(is_alive(cx));
        }
        c_int::from((*pid).is_local_pid() && process::table().is_alive(*pid))
    }
    fn enif_is_port_alive(_env: *mut ErlNifEnv, port: *const Pid) -> c_int {
        c_int::from((*port).is_local_port() && outside().port_is_open(*port))
    }
    fn enif_is_current_process_alive(env: *mut ErlNifEnv) -> c_int {
        let Some(cx) = (*env).process() else {
            return c_int::from((*env).on_behalf != Term::NON_VALUE);
        };
        c_int::from(is_alive(cx))
    }
    fn enif_whereis_pid(_env: *mut ErlNifEnv, name: Term, to: *mut Pid) -> c_int {
        store(to, whereis(name, Term::is_local_pid))
    }
    fn enif_whereis_port(_env: *mut ErlNifEnv, name: Term, to: *mut Pid) -> c_int {
        store(to, whereis(name, Term::is_local_port))
    }
    fn enif_port_command(
        env: *mut ErlNifEnv, port: *const Pid, own: *mut ErlNifEnv, msg: Term,
    ) -> c_int {
        let port = *port;
        let from = (*env).process().map(pid_of);
        if !port.is_local_port() || !outside().port_is_open(port) {
            return 0;
        }
        let done = purlin_io::port::command_from_library(port, from, msg);
        if done && !own.is_null() {
            crate::env::enif_clear_env(own);
        }
        c_int::from(done)
    }
}
