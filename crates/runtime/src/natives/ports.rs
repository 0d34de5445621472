//! Natives of ports, in modules `erlang` and `erts_internal`. Those of `erts_internal` return an
//! atom where `erlang` raises an error of that name.

use crate::cx::{BifResult, Cx, Fail};
use crate::natives::process::ask::received_answer;
use crate::port::{self, Begun, How, Outcome, Port};
use crate::process::ext::{Link, Peer};
use crate::process::{self, saved};
use crate::signal::send::push_or_free;
use crate::signal::{Kind, Signal, handle};
use crate::{bifs, code, lazy_atoms};
use purlin_natives::iolist::{self, IoWalk, Piece};
use purlin_term::{Alloc, NIL, Term, am, atom};
use std::sync::Arc;

/// Reductions charged for opening a port.
const OPEN_REDUCTIONS: usize = 400;
/// Elements of a long list that are walked in one call, and how many count as one reduction.
const STEPS_AT_ONCE: usize = 50_000;
const STEPS_PER_REDUCTION: usize = 32;

lazy_atoms! {
    purlin = "purlin";
    measure_output = "measure_output";
    begin_output = "begin_output";
    continue_output = "continue_output";
    bif_handle_signals_return = "bif_handle_signals_return";
}

/// Handles what has arrived, so that signals that the port sent before its answer come first.
fn answered(cx: &mut Cx) -> Result<(), Fail> {
    handle::fetch(cx);
    if cx.process().has(process::EXIT_PENDING) {
        return Err(Fail::Exited);
    }
    Ok(())
}

/// Adds a link with a port at the process's end.
fn add_link(cx: &mut Cx, port: Term) {
    let links = &mut cx.process().ext_mut().links;
    links.insert(Peer::of(port), Link { unlinking: 0 });
}

fn open_port_2(cx: &mut Cx, [name, settings]: [Term; 2]) -> BifResult {
    if !cx.dirty {
        cx.bump(OPEN_REDUCTIONS);
        if port::open::starts_program(name) && !purlin_kernel::os::exploring::on() {
            return Err(Fail::Dirty);
        }
    }
    let me = cx.self_pid();
    match port::open::open(me, name, settings) {
        Ok(p) => {
            add_link(cx, p.id);
            crate::trace::tie(cx.process(), crate::trace::Tie::Link, p.id);
            // Stock's forker answers by a message.
            if port::open::starts_program(name) {
                received_answer(cx, p.id, None);
            }
            Ok(p.id)
        }
        Err(e) => Ok(e.term()),
    }
}

fn port_command_3(cx: &mut Cx, [p, data, options]: [Term; 3]) -> BifResult {
    let Some(how) = command_options(options) else {
        return Ok(am::BADOPT);
    };
    let outcome = port::command(cx, p, data, how)?;
    answered(cx)?;
    Ok(match outcome {
        Outcome::Done => am::TRUE,
        Outcome::Busy => am::FALSE,
        Outcome::Unsupported => am::NOTSUP,
        Outcome::Gone | Outcome::Bad => am::BADARG,
        Outcome::Long => {
            let target = code::export(purlin(), measure_output(), 5);
            let args = [p, data, Term::small(0), data, options];
            return Err(cx.trap(target, &args));
        }
    })
}

/// The options of `port_command/3`; `None` if they are invalid.
fn command_options(options: Term) -> Option<How> {
    let mut how = How::default();
    for o in options.list_to_vec()? {
        match o {
            o if o == am::NOSUSPEND => how.no_suspend = true,
            o if o.is_atom() && atom::name(o) == "force" => how.force = true,
            _ => return None,
        }
    }
    Some(how)
}

/// `purlin:measure_output(Port, Rest, Size, All, Options)`: checks and measures a list that is too
/// long to be written at once. Works in steps: `Size` is the size of the elements before `Rest`.
fn measure_output_5(cx: &mut Cx, [p, rest, size, all, options]: [Term; 5]) -> BifResult {
    if cx.out_of_reds() {
        return Err(Fail::Again);
    }
    let mut w = IoWalk::new(rest);
    let mut n = size.as_small().ok_or(Fail::Badarg)? as usize;
    let mut steps = 0;
    loop {
        match w.next_piece() {
            Err(_) => {
                port::bad_output(cx, p);
                return Ok(am::BADARG);
            }
            Ok(None) => break,
            Ok(Some(Piece::Byte(_))) => n += 1,
            Ok(Some(Piece::Bits(_, b))) => n += b.bit_len / 8,
        }
        steps += 1;
        // Open sublists take room in `Rest`, so that the rest of a deep list is walked at once.
        if steps >= STEPS_AT_ONCE && w.depth() < STEPS_AT_ONCE {
            cx.bump(steps / STEPS_PER_REDUCTION);
            let rest = w.rest(cx);
            let target = code::export(purlin(), measure_output(), 5);
            return Err(cx.trap(target, &[p, rest, Term::small(n as i64), all, options]));
        }
    }
    let target = code::export(purlin(), begin_output(), 4);
    Err(cx.trap(target, &[p, all, Term::small(n as i64), options]))
}

/// `purlin:begin_output(Port, List, Size, Options)`: `port_command` of a long list continues here.
fn begin_output_4(cx: &mut Cx, [p, all, size, options]: [Term; 4]) -> BifResult {
    let size = size.as_small().ok_or(Fail::Badarg)? as usize;
    let how = command_options(options).ok_or(Fail::Badarg)?;
    match port::begin_parts(cx, p, all, size, how)? {
        (Begun::Gone, ..) => Ok(am::BADARG),
        (Begun::Busy, ..) => Ok(am::FALSE),
        (Begun::HandOver, id, rest) => {
            port::leave_to_port(cx, id, rest);
            Ok(am::TRUE)
        }
        (Begun::InParts, id, rest) => {
            let target = code::export(purlin(), continue_output(), 2);
            Err(cx.trap(target, &[id, rest]))
        }
    }
}

/// `purlin:continue_output(Port, Rest)`. `Rest` is an argument, so that it can be found if the
/// process has to hand the output to the port.
fn continue_output_2(cx: &mut Cx, [p, rest]: [Term; 2]) -> BifResult {
    if cx.out_of_reds() {
        return Err(Fail::Again);
    }
    match port::send_parts(cx, p, rest)? {
        None => Ok(am::TRUE),
        Some(rest) => {
            let target = code::export(purlin(), continue_output(), 2);
            Err(cx.trap(target, &[p, rest]))
        }
    }
}

fn done(o: Outcome) -> Term {
    if o == Outcome::Done {
        am::TRUE
    } else {
        am::BADARG
    }
}

fn port_connect_2(cx: &mut Cx, [p, to]: [Term; 2]) -> BifResult {
    let Some(p) = port::lookup(p) else {
        return Ok(am::BADARG);
    };
    let me = cx.self_pid();
    let id = p.id;
    let outcome = port::connect(&p, me, to, || {
        if to == me {
            add_link(cx, id);
            return true;
        }
        let s = Signal::copy_of(Kind::Link, id);
        // SAFETY: a fresh signal.
        unsafe { push_or_free(to, s) }
    });
    answered(cx)?;
    Ok(done(outcome))
}

fn port_close_1(cx: &mut Cx, [p]: [Term; 1]) -> BifResult {
    let Some(p) = port::lookup(p) else {
        return Ok(am::BADARG);
    };
    let me = cx.self_pid();
    let outcome = port::exit(&p, me, am::NORMAL);
    answered(cx)?;
    if cx.process().has(process::SAVES) {
        // Stock's native returns through this function.
        let call = saved::Call::Function(am::ERLANG, bif_handle_signals_return(), 2);
        saved::note(cx.process(), call);
    }
    Ok(done(outcome))
}

/// The operation of a control or call: an unsigned 32-bit integer.
fn operation(t: Term) -> Option<u32> {
    u32::try_from(t.as_small()?).ok()
}

fn port_control_3(cx: &mut Cx, [p, op, data]: [Term; 3]) -> BifResult {
    let (Some(p), Some(op)) = (port::lookup(p), operation(op)) else {
        return Ok(am::BADARG);
    };
    let Ok(data) = iolist::to_vec(data) else {
        return Ok(am::BADARG);
    };
    cx.bump(data.len() / 1024 + 20);
    let me = cx.self_pid();
    crate::waits::locks_begin();
    let answer = port::control(&p, me, op, &data);
    crate::waits::locked(cx);
    answered(cx)?;
    Ok(match answer {
        None => am::BADARG,
        Some(r) if r.binary => cx.binary(&r.bytes),
        Some(r) => cx.byte_list(&r.bytes, NIL),
    })
}

fn port_call_3(cx: &mut Cx, [p, op, data]: [Term; 3]) -> BifResult {
    let (Some(p), Some(op)) = (port::lookup(p), operation(op)) else {
        return Ok(am::BADARG);
    };
    let me = cx.self_pid();
    crate::waits::locks_begin();
    let answer = port::call(&p, me, op, data);
    crate::waits::locked(cx);
    answered(cx)?;
    Ok(match answer {
        None => am::BADARG,
        Some(t) => {
            let t = purlin_term::copy::copy(t.term(), cx);
            cx.ok(t)
        }
    })
}

/// The items of `port_info/1`, in order; the first only if it applies.
const SHOWN: [&str; 8] = [
    "registered_name",
    "name",
    "links",
    "id",
    "connected",
    "input",
    "output",
    "os_pid",
];

/// Bits of a slot in stock's port table, from which it computes the index that `id` shows.
const SLOT_BITS: u32 = 13;
const SLOTS_PER_LINE_BITS: u32 = 3;

/// `{Item, Value}`; `None` if there is no such item.
fn info_item(cx: &mut Cx, p: &Port, i: &port::Info, item: Term) -> Option<Term> {
    let v = match atom::name(item) {
        "registered_name" => match i.registered {
            Some(n) => n,
            None => return Some(NIL),
        },
        "name" => cx.byte_list(&p.name, NIL),
        "links" => newest_first(cx, &i.links),
        "id" => {
            let n = p.id.pid_data();
            let line = n & ((1 << SLOT_BITS) - 1);
            let within = (n >> SLOT_BITS) & ((1 << SLOTS_PER_LINE_BITS) - 1);
            Term::small(i64::from(line << SLOTS_PER_LINE_BITS | within))
        }
        "connected" => i.connected,
        "input" => cx.uint(i.bytes_in),
        "output" => cx.uint(i.bytes_out),
        "os_pid" => match i.os_pid {
            Some(n) => Term::small(i64::from(n)),
            None => am::UNDEFINED,
        },
        "monitors" => {
            let v: Vec<Term> = (i.watches.iter().rev())
                .map(|&w| cx.tuple(&[am::PROCESS, w]))
                .collect();
            cx.list(&v)
        }
        "monitored_by" => newest_first(cx, &i.monitored_by),
        "memory" => cx.uint(i.memory as u64),
        "queue_size" => cx.uint(i.queued as u64),
        "locking" => atom::intern(if i.own_lock {
            "port_level"
        } else {
            "driver_level"
        }),
        "parallelism" => Term::bool(i.parallelism),
        _ => return None,
    };
    Some(cx.tuple(&[item, v]))
}

fn newest_first(cx: &mut Cx, pids: &[Term]) -> Term {
    let v: Vec<Term> = pids.iter().rev().copied().collect();
    cx.list(&v)
}

/// The port to describe, or the answer if there is none.
fn shown(p: Term, bad: Term) -> Result<(Arc<Port>, port::Info), Term> {
    if p.is_atom() || p.is_local_port() {
        let p = port::lookup(p).ok_or(am::UNDEFINED)?;
        let i = port::info(&p).ok_or(am::UNDEFINED)?;
        return Ok((p, i));
    }
    Err(match p.as_external() {
        // A port of this node from before it got its name.
        Some((n, _)) if p.is_port() && n.name == purlin_term::node::this_name() => am::UNDEFINED,
        _ => bad,
    })
}

fn port_info_1(cx: &mut Cx, [p]: [Term; 1]) -> BifResult {
    let (p, i) = match shown(p, am::BADARG) {
        Ok(x) => x,
        Err(t) => return Ok(t),
    };
    answered(cx)?;
    let first = usize::from(i.registered.is_none());
    let mut v = Vec::with_capacity(SHOWN.len());
    for name in &SHOWN[first..] {
        v.extend(info_item(cx, &p, &i, atom::intern(name)));
    }
    Ok(cx.list(&v))
}

fn port_info_2(cx: &mut Cx, [p, item]: [Term; 2]) -> BifResult {
    let (p, i) = match shown(p, atom::intern("badtype")) {
        Ok(x) => x,
        Err(t) => return Ok(t),
    };
    if !item.is_atom() {
        return Ok(am::BADARG);
    }
    answered(cx)?;
    Ok(info_item(cx, &p, &i, item).unwrap_or(am::BADARG))
}

fn port_set_data_2(_: &mut Cx, [p, data]: [Term; 2]) -> BifResult {
    match port::lookup(p) {
        Some(p) if port::set_data(&p, data) => Ok(am::TRUE),
        _ => Err(Fail::Badarg),
    }
}

fn port_get_data_1(cx: &mut Cx, [p]: [Term; 1]) -> BifResult {
    port::lookup(p)
        .and_then(|p| port::get_data(&p, |t| purlin_term::copy::copy(t, cx)))
        .ok_or(Fail::Badarg)
}

/// `purlin:watch_writes(Who, Tracer)`; see [`port::watch`].
fn watch_writes_2(_: &mut Cx, [who, tracer]: [Term; 2]) -> BifResult {
    let who = match who {
        w if w.is_local_pid() || w.is_local_port() => w,
        w if w.is_atom() && atom::name(w) == "all" => NIL,
        _ => return Err(Fail::Badarg),
    };
    let to = match tracer {
        am::FALSE => None,
        // A tracer that watched itself would write about its own writes.
        t if t.is_local_pid() && t != who => Some(t),
        _ => return Err(Fail::Badarg),
    };
    port::watch::set(who, to);
    Ok(am::TRUE)
}

fn ports_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let v = port::all();
    Ok(cx.list(&v))
}

bifs! {
    DirtyIo "erts_internal":"open_port"/2 = open_port_2 [here reads(All) makes outside(Port)];
    Plain "erts_internal":"port_command"/3 = port_command_3 [writes(Cell)];
    Plain "purlin":"watch_writes"/2 = watch_writes_2;
    Plain "purlin":"measure_output"/5 = measure_output_5;
    Plain "purlin":"begin_output"/4 = begin_output_4;
    Plain "purlin":"continue_output"/2 = continue_output_2;
    Plain "erts_internal":"port_connect"/2 = port_connect_2 [writes(Cell)];
    Plain "erts_internal":"port_close"/1 = port_close_1 [writes(Cell)];
    Plain "erts_internal":"port_control"/3 = port_control_3 [writes(Cell)];
    Plain "erts_internal":"port_call"/3 = port_call_3 [writes(Cell)];
    Plain "erts_internal":"port_info"/1 = port_info_1 [reads(Cell)];
    Plain "erts_internal":"port_info"/2 = port_info_2 [reads(Cell)];
    Plain "erlang":"port_set_data"/2 = port_set_data_2 [writes(Cell)];
    Plain "erlang":"port_get_data"/1 = port_get_data_1 [reads(Cell)];
    Plain "erlang":"ports"/0 = ports_0 [reads(All)];
}
