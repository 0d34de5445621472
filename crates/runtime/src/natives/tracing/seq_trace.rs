//! Natives of sequential tracing.

use crate::cx::{BifResult, Cx, Fail};
use crate::trace::sequential;
use crate::{bifs, lazy_atoms, process, signal};
use purlin_term::frag::OwnedTerm;
use purlin_term::{Alloc, NIL, Term, am, atom, copy};

lazy_atoms! {
    label = "label";
    serial = "serial";
}

/// Clears the trace tokens and counters of all processes.
pub(crate) fn reset_tokens(cx: &mut Cx) {
    let me = cx.self_pid();
    sequential::reset(cx.process());
    for pid in process::table().pids() {
        if pid != me {
            let task: signal::Task = Box::new(|cx| {
                if let Some(cx) = cx {
                    sequential::reset(cx.process());
                }
            });
            signal::send::run_in(pid, task);
        }
    }
}

fn seq_trace_2(cx: &mut Cx, [what, value]: [Term; 2]) -> BifResult {
    sequential::change(cx, what, value).ok_or(Fail::Badarg)
}

fn seq_trace_info_1(cx: &mut Cx, [what]: [Term; 1]) -> BifResult {
    let flag = sequential::named(what);
    let (is_label, is_serial) = (what == label(), what == serial());
    let token = sequential::token(cx.process());
    if token.is_none() && what.is_atom() && atom::name(what) == "spawn" {
        // As in stock, which does not know such a flag of a token.
        return Ok(cx.tuple(&[what, am::FALSE]));
    }
    if flag.is_none() && !is_label && !is_serial {
        return Err(Fail::Badarg);
    }
    let value = match token {
        None if flag.is_none() => return Ok(NIL),
        None => am::FALSE,
        Some(t) => match flag {
            Some(bit) => Term::bool(t.flags & bit != 0),
            None if is_label => {
                let l = OwnedTerm::copy_of(t.label.term());
                copy::copy(l.term(), cx)
            }
            None => {
                let pair = [Term::small(t.previous), Term::small(t.serial)];
                cx.tuple(&pair)
            }
        },
    };
    Ok(cx.tuple(&[what, value]))
}

fn seq_trace_print_1(cx: &mut Cx, [info]: [Term; 1]) -> BifResult {
    Ok(Term::bool(sequential::print(cx.process(), None, info)))
}

fn seq_trace_print_2(cx: &mut Cx, [label, info]: [Term; 2]) -> BifResult {
    Ok(Term::bool(sequential::print(
        cx.process(),
        Some(label),
        info,
    )))
}

bifs! {
    Plain "erlang":"seq_trace"/2 = seq_trace_2;
    Plain "erlang":"seq_trace_info"/1 = seq_trace_info_1;
    Plain "erlang":"seq_trace_print"/1 = seq_trace_print_1;
    Plain "erlang":"seq_trace_print"/2 = seq_trace_print_2;
}
