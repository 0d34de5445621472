//! Natives of module `erlang` that raise exceptions on request.
//!
//! `exc.args` holds the arguments for the first entry of the stack trace. If `exc.error_info` is
//! set, `exc.cause` is the map of `error_info` as the program gave it. See `interp::exc`.

use crate::bifs;
use crate::cx::{BifResult, Class, Cx, Fail};
use purlin_term::{Alloc, NIL, Term, am};

fn error_1(cx: &mut Cx, [value]: [Term; 1]) -> BifResult {
    Err(cx.error(value))
}
fn error_2(cx: &mut Cx, [value, args]: [Term; 2]) -> BifResult {
    let f = cx.error(value);
    if args.is_list() {
        cx.exc.args = args;
    }
    Err(f)
}
fn error_3(cx: &mut Cx, [value, args, options]: [Term; 3]) -> BifResult {
    let f = cx.error(value);
    if args.is_list() {
        cx.exc.args = args;
    }
    let mut it = options.list_iter();
    for o in it.by_ref() {
        match o.as_tuple() {
            Some(&[am::ERROR_INFO, m]) if m.is_map() => {
                cx.exc.cause = m;
                cx.exc.error_info = true;
            }
            // As in stock, invalid options do not hide the error.
            _ => break,
        }
    }
    Err(f)
}
fn exit_1(cx: &mut Cx, [value]: [Term; 1]) -> BifResult {
    Err(cx.exit(value))
}
fn throw_1(cx: &mut Cx, [value]: [Term; 1]) -> BifResult {
    Err(cx.throw(value))
}
fn nif_error_1(cx: &mut Cx, [value]: [Term; 1]) -> BifResult {
    Err(cx.error(value))
}
fn nif_error_2(cx: &mut Cx, [value, _]: [Term; 2]) -> BifResult {
    Err(cx.error(value))
}

/// The stack trace given to `raise/3`, cut to the maximum depth; `None` if an entry is malformed.
fn given_trace(cx: &mut Cx, t: Term) -> Option<Term> {
    let depth = crate::interp::exc::depth();
    let mut out = Vec::new();
    let mut changed = false;
    let mut it = t.list_iter();
    for e in it.by_ref() {
        let entry = match *e.as_tuple()? {
            [m, f, _] if m.is_atom() && f.is_atom() => None,
            [m, f, _, l] if m.is_atom() && f.is_atom() && l.is_list() => Some(e),
            [f, a] if f.is_fun() && a.is_list() => None,
            [f, a, l] if f.is_fun() && a.is_list() && l.is_list() => Some(e),
            _ => return None,
        };
        if out.len() == depth {
            changed = true;
            continue;
        }
        changed |= entry.is_none();
        out.push(entry.unwrap_or_else(|| {
            let mut v = e.as_tuple().unwrap_or_default().to_vec();
            v.push(NIL);
            cx.tuple(&v)
        }));
    }
    if !it.tail().is_nil() {
        return None;
    }
    Some(if changed { cx.list(&out) } else { t })
}

fn raise_3(cx: &mut Cx, [class, value, trace]: [Term; 3]) -> BifResult {
    let class = match class {
        am::ERROR => Class::Error,
        am::EXIT => Class::Exit,
        am::THROW => Class::Throw,
        _ => return Ok(am::BADARG),
    };
    let Some(trace) = given_trace(cx, trace) else {
        return Ok(am::BADARG);
    };
    let f: Fail = cx.error(value);
    cx.exc.class = class;
    cx.exc.trace = trace;
    Err(f)
}

bifs! {
    Plain "erlang":"error"/1 = error_1 [raises];
    Plain "erlang":"error"/2 = error_2 [raises];
    Plain "erlang":"error"/3 = error_3 [raises];
    Plain "erlang":"exit"/1 = exit_1 [raises];
    Plain "erlang":"throw"/1 = throw_1 [raises];
    Plain "erlang":"raise"/3 = raise_3;
    Plain "erlang":"nif_error"/1 = nif_error_1;
    Plain "erlang":"nif_error"/2 = nif_error_2;
}
