//! Natives that send exit signals, to processes, ports and aliases.

use crate::bifs;
use crate::cx::{BifResult, Cx, Fail};
use crate::process;
use crate::signal::handle;
use crate::signal::handle::ref_key;
use crate::signal::send::{self, Destination};
use purlin_dist::signals as remote;
use purlin_native::errors::with_args;
use purlin_native::long;
use purlin_term::frag::OwnedTerm;
use purlin_term::release::{self, EXIT_BY_ALIAS};
use purlin_term::{NIL, Term, am};

/// `exit(Port, Reason)`
fn port_exit_2(cx: &mut Cx, port: Term, reason: Term) -> BifResult {
    if let Some(p) = crate::port::find(port) {
        let _ = crate::port::exit(&p, cx.self_pid(), reason);
    }
    Ok(am::TRUE)
}

fn exit_process(cx: &mut Cx, [to, reason]: [Term; 2]) -> BifResult {
    let me = cx.self_pid();
    if to.is_local_port() {
        return port_exit_2(cx, to, reason);
    }
    if !to.is_pid() {
        return Err(Fail::Badarg);
    }
    if !to.is_local_pid() {
        return remote::exit(cx, to, reason, long!("erlang":"exit"/2));
    }
    let (reason, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Exit, reason);
    send::exit_signal(me, to, reason);
    // One that becomes a message is handled with the others.
    if to == me && !(reason != am::KILL && cx.process().has(crate::process::TRAP_EXIT)) {
        // The signal to itself takes effect before anything else.
        handle::fetch(cx);
        if cx.process().has(crate::process::EXIT_PENDING) {
            return Err(Fail::Exited);
        }
    }
    Ok(am::TRUE)
}

/// Reads the options of a signal: whether it has priority.
pub(super) fn signal_options(cx: &mut Cx, args: &[Term]) -> Result<bool, Fail> {
    let mut it = args[args.len() - 1].list_iter();
    let sound = it.by_ref().all(|o| o == am::PRIORITY);
    if sound && it.tail().is_nil() {
        return Ok(args[args.len() - 1] != NIL);
    }
    let f = cx.badarg_cause(am::BADOPT);
    Err(with_args(cx, f, args))
}

/// Sends an exit signal to the process that created an alias, if the alias is active on arrival.
fn exit_by_alias(cx: &mut Cx, pid: Term, alias: Term, reason: Term, urgent: bool) {
    let me = cx.self_pid();
    let Some(k) = ref_key(alias) else { return };
    let reason = OwnedTerm::copy_of(reason);
    send::run_in(
        pid,
        Box::new(move |cx| {
            if let Some(cx) = cx {
                handle::exit_by_alias(cx, k, me, reason.term(), urgent);
            }
        }),
    );
}

/// Since OTP 28 an alias may be the target: the signal has an effect while the alias is active.
fn exit_2(cx: &mut Cx, [to, reason]: [Term; 2]) -> BifResult {
    exit_with(cx, [to, reason], false)
}

fn exit_with(cx: &mut Cx, [to, reason]: [Term; 2], urgent: bool) -> BifResult {
    if to.is_ref() && release::has(EXIT_BY_ALIAS) {
        return match send::destination(to) {
            Destination::Alias(pid) => {
                exit_by_alias(cx, pid, to, reason, urgent);
                Ok(am::TRUE)
            }
            Destination::Remote(_) => {
                remote::exit_by_alias(cx, to, reason, urgent, long!("erlang":"exit"/3))
            }
            _ => Ok(am::TRUE),
        };
    }
    exit_process(cx, [to, reason])
}

fn exit_3(cx: &mut Cx, [to, reason, options]: [Term; 3]) -> BifResult {
    if !to.is_pid() && !to.is_port() && !to.is_ref() {
        return Err(Fail::Badarg);
    }
    let urgent = signal_options(cx, &[to, reason, options])?;
    exit_with(cx, [to, reason], urgent)
}

/// Whether a process sends itself the signal that only `exit/2` would end it with.
fn is_nothing(cx: &mut Cx, to: Term, reason: Term) -> bool {
    to == cx.self_pid() && reason == am::NORMAL && !cx.process().has(process::TRAP_EXIT)
}

fn exit_signal_2(cx: &mut Cx, [to, reason]: [Term; 2]) -> BifResult {
    match is_nothing(cx, to, reason) {
        true => Ok(am::TRUE),
        false => exit_2(cx, [to, reason]),
    }
}

fn exit_signal_3(cx: &mut Cx, [to, reason, options]: [Term; 3]) -> BifResult {
    if is_nothing(cx, to, reason) {
        signal_options(cx, &[to, reason, options])?;
        return Ok(am::TRUE);
    }
    exit_3(cx, [to, reason, options])
}

bifs! {
    Plain "erlang":"exit"/2 = exit_2 [long writes(Process)];
    Plain "erlang":"exit_signal"/2 = exit_signal_2 [writes(Process)];
    Plain "erlang":"exit_signal"/3 = exit_signal_3 [since(29) writes(Process)];
    Plain "erlang":"exit"/3 = exit_3 [long writes(Process) since(28)];
}
