//! Natives of registered names.
//!
//! # Invariants
//! * The registry alone decides who has a name. A process keeps a copy of its own name for
//!   `process_info`, which only that process changes.
//! * A name given to another process, or taken from it, is valid at once; a task then updates its
//!   copy.

use crate::bifs;
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::process::registry;
use crate::signal::send;
use purlin_kernel::budgets;
use purlin_term::{Alloc, NIL, Term, am};

lazy_atoms! {
    a_notalive = "notalive";
}

fn register_2(cx: &mut Cx, [name, who]: [Term; 2]) -> BifResult {
    match register(cx, name, who)? {
        t if t == am::TRUE => Ok(t),
        cause => Err(cx.badarg_cause(cause)),
    }
}

/// Registers a name. Returns `true`, or the cause that the error reports.
fn register(cx: &mut Cx, name: Term, who: Term) -> BifResult {
    if !name.is_atom() || name == am::UNDEFINED {
        return Ok(am::NONE);
    }
    if who.is_local_port() {
        return Ok(if crate::port::register(who, name) {
            am::TRUE
        } else if registry::whereis(name).is_none() && crate::port::find(who).is_some() {
            am::REGISTERED_NAME
        } else {
            am::NONE
        });
    }
    if !who.is_local_pid() {
        return Ok(am::NONE);
    }
    if who == cx.self_pid() {
        match registry::register(name, who) {
            Ok(()) => {}
            Err(registry::Refused::HasName) => return Ok(am::REGISTERED_NAME),
            Err(_) => return Ok(am::NONE),
        }
        cx.process().ext_mut().name = name;
        named(who, name);
        crate::trace::tie(cx.process(), crate::trace::Tie::Register, name);
        return Ok(am::TRUE);
    }
    // The name is valid at once, wherever the other process runs; that process records it later.
    match registry::register_for(name, who, || crate::process::table().is_alive(who)) {
        Ok(()) => {}
        Err(registry::Refused::Ended) => return Ok(a_notalive()),
        Err(registry::Refused::HasName) => return Ok(am::REGISTERED_NAME),
        Err(registry::Refused::Taken) => return Ok(am::NONE),
    }
    named(who, name);
    send::run_in(
        who,
        Box::new(move |cx| {
            let has = registry::record(name, who, cx.is_none());
            if let Some(cx) = cx {
                let p = cx.process();
                if has {
                    p.ext_mut().name = name;
                }
                crate::trace::tie(p, crate::trace::Tie::Register, name);
            }
        }),
    );
    Ok(am::TRUE)
}

/// Applies what `+Fbudget` says of a name that a process has got.
#[inline]
fn named(who: Term, name: Term) {
    if budgets::has_rules() {
        budgets::was_named(who, name);
    }
}

fn unregister_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    if !name.is_atom() {
        return Err(Fail::Badarg);
    }
    let Some(who) = registry::whereis(name) else {
        return Err(Fail::Badarg);
    };
    if who == cx.self_pid() {
        if !registry::unregister_of(name, who) {
            return Err(Fail::Badarg);
        }
        cx.process().ext_mut().name = NIL;
        crate::trace::tie(cx.process(), crate::trace::Tie::Unregister, name);
        return Ok(am::TRUE);
    }
    if who.is_local_port() {
        crate::port::unregister(who, name);
        return Ok(am::TRUE);
    }
    if !registry::unregister_of(name, who) {
        // It has ended meanwhile, or lost its name, which may belong to another by now.
        return unregister_1(cx, [name]);
    }
    send::run_in(
        who,
        Box::new(move |cx| {
            // It may have registered itself under that name again.
            let Some(p) = cx.map(|c| c.process()) else {
                return;
            };
            if let Some(e) = p.ext()
                && e.name == name
                && registry::whereis(name) != Some(who)
            {
                e.name = NIL;
            }
            crate::trace::tie(p, crate::trace::Tie::Unregister, name);
        }),
    );
    Ok(am::TRUE)
}

fn whereis_1(_: &mut Cx, [name]: [Term; 1]) -> BifResult {
    if !name.is_atom() {
        return Err(Fail::Badarg);
    }
    Ok(registry::whereis(name).unwrap_or(am::UNDEFINED))
}

fn registered_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    let v = registry::names();
    Ok(cx.list(&v))
}

bifs! {
    Plain "erlang":"register"/2 = register_2 [writes(Name)];
    Plain "erlang":"unregister"/1 = unregister_1 [writes(Name)];
    Plain "erlang":"whereis"/1 = whereis_1 [reads(Name)];
    Plain "erlang":"registered"/0 = registered_0 [reads(All)];
}
