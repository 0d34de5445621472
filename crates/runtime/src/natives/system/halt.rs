//! `erlang:halt/2`, on which the other arities are built.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, clock, halt, lazy_atoms, port};
use purlin_term::release::{self, HALT_FLUSH_TIMEOUT};
use purlin_term::{Term, am, arith};
use std::sync::OnceLock;
use std::time::Duration;

lazy_atoms! {
    a_abort = "abort"; a_flush_timeout = "flush_timeout";
}

/// Characters of a slogan that are kept.
const MAX_SLOGAN: usize = 1023;

/// The text of a character list, truncated; `None` if the term is no character list.
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

/// Whether to flush output first, and the time limit for it.
struct Options {
    flush: bool,
    limit: Option<Duration>,
}

fn options(list: Term) -> Option<Options> {
    let mut o = Options {
        flush: true,
        limit: None,
    };
    let mut it = list.list_iter();
    for t in it.by_ref() {
        let &[key, value] = t.as_tuple()? else {
            return None;
        };
        if key == am::FLUSH {
            o.flush = value.as_bool()?;
        } else if key == a_flush_timeout() && release::has(HALT_FLUSH_TIMEOUT) {
            let ms = u32::try_from(arith::to_u64(value)?).ok()?;
            o.limit = Some(Duration::from_millis(ms.into()));
        } else {
            return None;
        }
    }
    it.tail().is_nil().then_some(o)
}

/// Maximum time for processes in the middle of output to hand the rest to their ports, which is
/// quick.
const SENDERS_TIME: Duration = Duration::from_secs(5);

/// Whether processes are in the middle of output. While this asks, they hand the rest to their
/// ports.
fn waits_for_senders() -> bool {
    static UNTIL: OnceLock<i64> = OnceLock::new();
    let until = || *UNTIL.get_or_init(|| clock::after(SENDERS_TIME));
    !port::request_all_rests() && clock::elapsed() < until()
}

fn halt_2(cx: &mut Cx, [status, list]: [Term; 2]) -> BifResult {
    let Some(o) = options(list) else {
        return Err(cx.badarg_cause(am::BADOPT));
    };
    let bits = match (status.as_small(), status.as_big()) {
        (Some(n), _) if n >= 0 => Some(n as u64),
        (_, Some((false, digits))) => digits.first().copied(),
        _ => None,
    };
    if let Some(bits) = bits {
        let status = (bits & i32::MAX as u64) as i32;
        match o.flush {
            true if waits_for_senders() => return Err(Fail::Again),
            true => halt::halt_flushed(status, o.limit),
            false => halt::halt(status),
        }
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
