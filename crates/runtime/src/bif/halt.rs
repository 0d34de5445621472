//! `erlang:halt/2`, which the other arities are written with.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, halt, lazy_atoms};
use purlin_term::{Term, am};

lazy_atoms! {
    a_abort = "abort";
}

/// Characters of a slogan that are kept.
const MAX_SLOGAN: usize = 1023;

/// The text of a character list, cut; None if it isn't one.
fn slogan(t: Term) -> Option<String> {
    let mut s = String::new();
    let mut it = t.list_iter();
    for (n, c) in it.by_ref().enumerate() {
        let c = u32::try_from(c.as_small()?).ok()?;
        let c = char::from_u32(c)?;
        if n < MAX_SLOGAN {
            s.push(c);
        }
    }
    it.tail().is_nil().then_some(s)
}

fn halt_2(cx: &mut Cx, [status, options]: [Term; 2]) -> BifResult {
    let mut flush = true;
    let mut it = options.list_iter();
    for o in it.by_ref() {
        flush = match o.as_tuple() {
            Some(&[key, value]) if key == am::FLUSH => match value.as_bool() {
                Some(b) => b,
                None => return Err(cx.badarg_cause(am::BADOPT)),
            },
            _ => return Err(cx.badarg_cause(am::BADOPT)),
        };
    }
    if !it.tail().is_nil() {
        return Err(cx.badarg_cause(am::BADOPT));
    }
    let bits = match (status.as_small(), status.as_big()) {
        (Some(n), _) if n >= 0 => Some(n as u64),
        (_, Some((false, digits))) => digits.first().copied(),
        _ => None,
    };
    if let Some(bits) = bits {
        halt::halt((bits & i32::MAX as u64) as i32, flush);
    }
    if status == a_abort() {
        halt::abort();
    }
    if !status.is_list() {
        return Err(Fail::Badarg);
    }
    let text = slogan(status).ok_or(Fail::Badarg)?;
    halt::halt_with_dump(&text)
}

bifs! {
    Plain "erlang":"halt"/2 = halt_2;
}
