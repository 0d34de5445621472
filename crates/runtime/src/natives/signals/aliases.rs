//! Natives of process aliases.

use crate::cx::{BifResult, Cx, Fail};
use crate::process::ext::{AliasMode, RefKey};
use crate::process::{SAVES, saved};
use crate::signal::handle::ref_key;
use crate::{bifs, ids, lazy_atoms};
use purlin_term::etf::aliases;
use purlin_term::release::{self, PRIORITY_MESSAGES};
use purlin_term::{Alloc, Term, am};

lazy_atoms! {
    a_reply = "reply";
}

fn alias_with(cx: &mut Cx, once: bool, urgent: bool) -> BifResult {
    let k = RefKey::new(ids::ref_bits());
    let me = cx.self_pid();
    let e = cx.process().ext_mut();
    e.aliases.insert(k, once);
    if urgent {
        e.prioritize(k);
    }
    Ok(cx.pid_ref(k.numbers(), me))
}

fn alias_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    if cx.process().has(SAVES) {
        // Stock has it in Erlang.
        let call = saved::Call::Function(am::ERLANG, am::ALIAS, 1);
        saved::note(cx.process(), call);
    }
    alias_with(cx, false, false)
}

fn alias_1(cx: &mut Cx, [opts]: [Term; 1]) -> BifResult {
    let (mut once, mut urgent) = (false, false);
    let mut it = opts.list_iter();
    for o in it.by_ref() {
        if o == a_reply() {
            once = true;
        } else if o == am::EXPLICIT_UNALIAS {
            once = false;
        } else if o == am::PRIORITY && release::has(PRIORITY_MESSAGES) {
            urgent = true;
        } else {
            return Err(Fail::Badarg);
        }
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    alias_with(cx, once, urgent)
}

fn unalias_1(cx: &mut Cx, [r]: [Term; 1]) -> BifResult {
    if r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    // Messages sent through it that are still in transit are dropped, as on stock.
    let Some(k) = ref_key(r) else {
        return Ok(am::FALSE);
    };
    let Some(e) = cx.process().ext() else {
        return Ok(am::FALSE);
    };
    if e.rare().is_some_and(|r| r.aliases.remove(&k).is_some()) {
        e.take_urgent(&k);
        aliases::ended(|| k.numbers());
        return Ok(am::TRUE);
    }
    Ok(match e.monitors.get_mut(&k) {
        Some(m) if m.alias() != AliasMode::None => {
            m.set_alias(AliasMode::None);
            aliases::ended(|| k.numbers());
            am::TRUE
        }
        _ => am::FALSE,
    })
}

bifs! {
    Plain "erlang":"alias"/0 = alias_0 [in_place reads(All)];
    Plain "erlang":"alias"/1 = alias_1 [reads(All)];
    Plain "erlang":"unalias"/1 = unalias_1 [writes(Cell) signals_unnamed];
}
