//! Natives of timers that send messages, based on the service in [`crate::timer`].

use crate::cx::{BifResult, Cx, Fail};
use crate::timer::message::{self, Fired, Message, RefNumbers};
use crate::timer::{LAST_TICK, tick_in};
use crate::{bifs, clock, ids, lazy_atoms, signal};
use purlin_term::{Alloc, Term, am, arith};

lazy_atoms! {
    abs = "abs";
    clock_service = "clock_service";
    time = "time";
    cancel_timer = "cancel_timer";
    read_timer = "read_timer";
}

struct Options {
    is_async: bool,
    info: bool,
    abs: bool,
}

/// Reads options, of which only those in `allowed` are valid.
fn options(list: Term, allowed: &[Term]) -> Option<Options> {
    let mut o = Options {
        is_async: false,
        info: true,
        abs: false,
    };
    let mut it = list.list_iter();
    for t in it.by_ref() {
        let &[key, value] = t.as_tuple()? else {
            return None;
        };
        let value = value.as_bool()?;
        if !allowed.contains(&key) {
            return None;
        }
        if key == am::ASYNC {
            o.is_async = value;
        } else if key == am::INFO {
            o.info = value;
        } else {
            o.abs = value;
        }
    }
    it.tail().is_nil().then_some(o)
}

/// The tick of a time argument.
fn deadline(t: Term, absolute: bool) -> Option<u64> {
    let ms = arith::to_i64(t)?;
    if absolute {
        let since_start = ms.checked_sub(clock::START / 1_000_000)?;
        u64::try_from(since_start).ok()
    } else {
        u64::try_from(ms).ok().map(tick_in)
    }
    .filter(|&tick| tick <= LAST_TICK)
}

fn start(cx: &mut Cx, [at, to, msg]: [Term; 3], opts: Option<Term>, wrapped: bool) -> BifResult {
    let absolute = match opts {
        None => false,
        Some(list) => match options(list, &[abs()]) {
            Some(o) => o.abs,
            None => return Err(cx.badarg_cause(am::BADOPT)),
        },
    };
    let Some(at) = deadline(at, absolute) else {
        return Err(cx.badarg_cause(time()));
    };
    if !to.is_local_pid() && !to.is_atom() {
        return Err(Fail::Badarg);
    }
    let numbers = ids::ref_numbers();
    if to.is_atom() || crate::process::table().find(to).is_some() {
        let (msg, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Timer, msg);
        let message = Message::keep(msg);
        let words = message.words();
        if words != 0 {
            crate::accounts::copied(cx, crate::accounts::Kind::Timer, words, msg);
        }
        let f = Fired {
            to,
            message,
            numbers,
            wrapped,
        };
        message::start(f, at);
        // No timer is left for a process that has ended or is ending, whichever came first.
        if to.is_local_pid() && !crate::process::table().is_alive(to) {
            message::cancel(&numbers);
        }
    }
    cx.bump(1);
    Ok(cx.local_ref(numbers))
}

fn send_after_3(cx: &mut Cx, args: [Term; 3]) -> BifResult {
    start(cx, args, None, false)
}
fn send_after_4(cx: &mut Cx, [t, to, msg, o]: [Term; 4]) -> BifResult {
    start(cx, [t, to, msg], Some(o), false)
}
fn start_timer_3(cx: &mut Cx, args: [Term; 3]) -> BifResult {
    start(cx, args, None, true)
}
fn start_timer_4(cx: &mut Cx, [t, to, msg, o]: [Term; 4]) -> BifResult {
    start(cx, [t, to, msg], Some(o), true)
}

/// The numbers of a reference that may be a timer's; `Ok(None)` for other references.
fn numbers(t: Term) -> Result<Option<RefNumbers>, Fail> {
    t.as_ref_view().map(|r| r.local_nums()).ok_or(Fail::Badarg)
}

fn result(cx: &mut Cx, left: Option<u64>) -> Term {
    match left {
        Some(ms) => cx.uint(ms),
        None => am::FALSE,
    }
}

fn access(
    cx: &mut Cx,
    timer: Term,
    opts: Option<(Term, &[Term])>,
    f: fn(&RefNumbers) -> Option<u64>,
    tag: Term,
) -> BifResult {
    let o = match opts {
        None => Options {
            is_async: false,
            info: true,
            abs: false,
        },
        Some((list, allowed)) => options(list, allowed).ok_or(Fail::Badarg)?,
    };
    let left = numbers(timer)?.and_then(|n| f(&n));
    if !o.info {
        return Ok(am::OK);
    }
    if !o.is_async {
        return Ok(result(cx, left));
    }
    let me = cx.self_pid();
    let left = result(cx, left);
    let msg = cx.tuple(&[tag, timer, left]);
    signal::send_from(clock_service(), me, msg);
    Ok(am::OK)
}

fn cancel_timer_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    access(cx, t, None, message::cancel, cancel_timer())
}
fn cancel_timer_2(cx: &mut Cx, [t, o]: [Term; 2]) -> BifResult {
    let allowed = [am::ASYNC, am::INFO];
    access(cx, t, Some((o, &allowed)), message::cancel, cancel_timer())
}
fn read_timer_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    access(cx, t, None, message::left, read_timer())
}
fn read_timer_2(cx: &mut Cx, [t, o]: [Term; 2]) -> BifResult {
    let allowed = [am::ASYNC];
    access(cx, t, Some((o, &allowed)), message::left, read_timer())
}

bifs! {
    Plain "erlang":"send_after"/3 = send_after_3 [reads(All) makes];
    Plain "erlang":"send_after"/4 = send_after_4 [reads(All) makes];
    Plain "erlang":"start_timer"/3 = start_timer_3 [reads(All) makes];
    Plain "erlang":"start_timer"/4 = start_timer_4 [reads(All) makes];
    Plain "erlang":"cancel_timer"/1 = cancel_timer_1 [writes(Cell)];
    Plain "erlang":"cancel_timer"/2 = cancel_timer_2 [writes(Cell)];
    Plain "erlang":"read_timer"/1 = read_timer_1 [reads(Cell)];
    Plain "erlang":"read_timer"/2 = read_timer_2 [reads(Cell)];
}
