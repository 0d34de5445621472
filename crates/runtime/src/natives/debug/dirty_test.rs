//! Natives of `erts_debug` for tests of dirty threads.

use super::internal_state::{wait, word};
use crate::cx::{BifResult, Cx, Fail};
use crate::signal;
use purlin_term::{Alloc, Term, am, arith, atom, copy};

/// Sends `{Tag, Pid}`.
fn tell(cx: &mut Cx, to: Term, tag: &str) {
    let me = cx.self_pid();
    signal::send_with(to, |a| a.tuple(&[atom::intern(tag), me]));
}

/// A debugging aid that the tests of dirty threads use. It runs on a dirty thread: `type` returns
/// the kind of thread, `wait` takes time, `error` raises, `copy` makes a thousand copies, `send`
/// sends `{ok, Pid}`, `reschedule` moves between the kinds, and the others report that they run,
/// and wait.
///
/// `call` is the name and arguments of the native called first; errors show it.
fn dirty_test(cx: &mut Cx, kind: &str, call: (&str, &[Term]), what: Term, arg: Term) -> BifResult {
    let r = match (word(what), word(arg)) {
        ("scheduler", "type") => Ok(atom::intern(kind)),
        ("error", "notsup") => Err(cx.error(am::NOTSUP)),
        ("error", "undef") => Err(cx.error(am::UNDEF)),
        ("error", "badarith") => Err(cx.error(am::BADARITH)),
        ("error", "system_limit") => Err(cx.error(am::SYSTEM_LIMIT)),
        ("error", "noproc") => Err(cx.error(am::NOPROC)),
        ("copy", _) => {
            let copies: Vec<Term> = (0..1000).map(|_| copy::copy(arg, cx)).collect();
            Ok(cx.list(&copies))
        }
        ("send", _) => {
            tell(cx, arg, "ok");
            Ok(am::OK)
        }
        ("wait", _) => match arith::to_u64(arg) {
            Some(ms) => {
                wait(cx, Some(ms));
                Ok(am::OK)
            }
            None => Err(cx.error(am::BADARG)),
        },
        ("ready_wait6_done", _) => {
            tell(cx, arg, "ready");
            wait(cx, Some(6000));
            tell(cx, arg, "done");
            Ok(am::OK)
        }
        ("alive_waitexiting" | "alive_waitexitingonly", _) => {
            tell(cx, arg, "alive");
            wait(cx, None);
            Ok(am::OK)
        }
        ("reschedule", _) => match arg.as_small() {
            Some(0) => Ok(am::OK),
            Some(n) if n > 0 => {
                let next = match kind {
                    _ if n % 4 != 0 => kind,
                    "dirty_cpu" => "dirty_io",
                    "dirty_io" => "normal",
                    _ => "dirty_cpu",
                };
                return Err(go_on(cx, next, call, what, Term::small(n - 2)));
            }
            _ => Err(cx.error(am::BADARG)),
        },
        _ => Err(cx.error(am::BADARG)),
    };
    r.map_err(|e| {
        cx.exc.native = Some((atom::intern("erts_debug"), atom::intern(call.0)));
        purlin_native::errors::with_args(cx, e, call.1)
    })
}

/// Continues on a thread of the other kind.
fn go_on(cx: &mut Cx, kind: &str, call: (&str, &[Term]), what: Term, arg: Term) -> Fail {
    let args = cx.list(call.1);
    let name = atom::intern(call.0);
    let state = cx.tuple(&[name, args, what, arg]);
    let f = atom::intern(kind);
    let target = crate::code::export(atom::intern("purlin"), f, 1);
    cx.trap(target, &[state])
}

fn resumed(cx: &mut Cx, kind: &str, state: Term) -> BifResult {
    let Some(&[name, args, what, arg]) = state.as_tuple() else {
        return Err(Fail::Badarg);
    };
    let args = args.list_to_vec().ok_or(Fail::Badarg)?;
    dirty_test(cx, kind, (word(name), &args), what, arg)
}

fn dirty_cpu_2(cx: &mut Cx, [what, arg]: [Term; 2]) -> BifResult {
    dirty_test(cx, "dirty_cpu", ("dirty_cpu", &[what, arg]), what, arg)
}

fn dirty_io_2(cx: &mut Cx, [what, arg]: [Term; 2]) -> BifResult {
    dirty_test(cx, "dirty_io", ("dirty_io", &[what, arg]), what, arg)
}

fn dirty_3(cx: &mut Cx, [kind, what, arg]: [Term; 3]) -> BifResult {
    let call = ("dirty", &[kind, what, arg][..]);
    match word(kind) {
        "normal" => dirty_test(cx, "normal", call, what, arg),
        k @ ("dirty_cpu" | "dirty_io") => Err(go_on(cx, k, call, what, arg)),
        _ => Err(Fail::Badarg),
    }
}

fn resumed_normal(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    resumed(cx, "normal", state)
}

fn resumed_cpu(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    resumed(cx, "dirty_cpu", state)
}

fn resumed_io(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    resumed(cx, "dirty_io", state)
}

crate::bifs! {
    Plain "erts_debug":"dirty"/3 = dirty_3;
    Plain "purlin":"normal"/1 = resumed_normal;
    DirtyCpu "purlin":"dirty_cpu"/1 = resumed_cpu;
    DirtyIo "purlin":"dirty_io"/1 = resumed_io;
    DirtyCpu "erts_debug":"dirty_cpu"/2 = dirty_cpu_2;
    DirtyIo "erts_debug":"dirty_io"/2 = dirty_io_2;
}
