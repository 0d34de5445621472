//! Handlers of exceptions, messages, maps and float conversions.

use super::operands::*;
use super::{Exit, RECEIVE, Receive, collect_after, exc, go, slow_op};
use crate::cx::Cx;
use crate::process::collect::Also;
use crate::signal::mailbox;
use purlin_isa::ops::{BASE, Op};
use purlin_term::{NIL, Term, am, arith, map};

#[inline(always)]
unsafe fn label(pc: *const u64, unit: usize) -> *const u64 {
    pc.offset(((pc as *const u16).add(unit) as *const i32).read_unaligned() as isize)
}

pub unsafe fn op_catch<D: Dst>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let u = (pc as *const u16).add(1);
    D::set(cx, e, u, Term::catch(label(pc, 2) as u64));
    go!(cx, pc.add(words(3)), e, hp, reds)
}
pub unsafe fn op_try_end<D: Dst>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    D::set(cx, e, (pc as *const u16).add(1), NIL);
    go!(cx, pc.add(words(1)), e, hp, reds)
}
pub unsafe fn op_try_case<D: Dst>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    D::set(cx, e, (pc as *const u16).add(1), NIL);
    let x = (*cx).x.as_mut_ptr();
    x.write(*x.add(1));
    x.add(1).write(*x.add(2));
    x.add(2).write(*x.add(3));
    go!(cx, pc.add(words(1)), e, hp, reds)
}
pub unsafe fn op_catch_end<D: Dst>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    D::set(cx, e, (pc as *const u16).add(1), NIL);
    if (&(*cx).x)[0] == Term::NON_VALUE {
        return caught(cx, pc, e, hp, reds);
    }
    go!(cx, pc.add(words(1)), e, hp, reds)
}

slow_op! {
    caught => catch_value;
    op_badmatch => exc::badmatch;
    op_case_end => exc::case_end;
    op_try_case_end => exc::try_case_end;
    op_if_end => exc::if_end;
    op_badrecord => exc::badrecord;
    op_raise => exc::raise_again;
    op_raw_raise => exc::raw_raise;
    op_build_stacktrace => exc::build_stacktrace;
    op_system_limit => exc::system_limit;
    op_send => send;
    loop_rec_first => loop_rec;
    loop_rec_end_first => loop_rec_end;
    op_remove_message => remove_message;
    op_wait => wait;
    op_wait_timeout => wait_timeout;
    op_timeout => timeout;
    op_recv_marker_reserve => marker_reserve;
    op_recv_marker_bind => marker_bind;
    op_recv_marker_clear => marker_clear;
    op_recv_marker_use => marker_use;
    op_fload => fload;
    op_fconv => fconv;
    op_put_map_assoc => put_map_assoc;
    op_put_map_exact => put_map_exact;
    op_has_map_fields => has_map_fields;
    op_get_map_elements => get_map_elements;
}

unsafe fn catch_value(cx: &mut Cx, pc: *const u64) -> *const u64 {
    exc::catch_value(cx);
    pc.add(words(1))
}

// Messages.

/// A receive that walks a queue goes from message to message without leaving the interpreter.
pub unsafe fn op_loop_rec(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    if mailbox::walks((*cx).proc) {
        return walk(cx, pc, e, hp, reds);
    }
    loop_rec_first(cx, pc, e, hp, reds)
}

// Variants for X registers.
const IS_EQ_IMMED: u16 = BASE[Op::IsEqImmed as usize];
const IS_TAGGED_TUPLE: u16 = BASE[Op::IsTaggedTuple as usize];
const IS_TUPLE_OF_ARITY: u16 = BASE[Op::IsTupleOfArity as usize];
/// Of a register and a constant.
const IS_EQ_EXACT: u16 = BASE[Op::IsEqExact as usize] + 2;
const LOOP_REC_END: u16 = BASE[Op::LoopRecEnd as usize];

/// `loop_rec` of a receive that has looked at messages already. Where a simple test of the message follows, and leads to
/// the end of this loop if it fails, messages that fail it are gone past here.
#[inline(never)]
unsafe fn walk(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit {
    let d = *(pc as *const u16).add(3);
    let test = pc.add(words(3));
    let u = (test as *const u16).add(1);
    let number = *(test as *const u16);
    let is_test = matches!(
        number,
        IS_EQ_IMMED | IS_TAGGED_TUPLE | IS_TUPLE_OF_ARITY | IS_EQ_EXACT
    );
    let ends_here = is_test && *u.add(2) == d && {
        let end = label(test, 1);
        *(end as *const u16) == LOOP_REC_END && label(end, 1) == pc
    };
    let word = |unit: usize| (u.add(unit) as *const u64).read_unaligned();
    let p = (*cx).proc;
    let (found, reds) = match number {
        IS_EQ_IMMED if ends_here => {
            let w = word(3);
            mailbox::walk(p, reds, |t| t.raw() == w)
        }
        IS_TAGGED_TUPLE if ends_here => {
            let (w, tag) = (word(3), word(7));
            mailbox::walk(p, reds, |t| {
                t.is_boxed() && (*t.ptr()).raw() == w && (*t.ptr().add(1)).raw() == tag
            })
        }
        IS_TUPLE_OF_ARITY if ends_here => {
            let w = word(3);
            mailbox::walk(p, reds, |t| t.is_boxed() && (*t.ptr()).raw() == w)
        }
        // What begins as the tuple does is compared by the test.
        IS_EQ_EXACT
            if ends_here
                && Term::from_raw(word(3))
                    .as_tuple()
                    .is_some_and(|c| !c.is_empty()) =>
        {
            let c = Term::from_raw(word(3)).ptr();
            let (w, first) = ((*c).raw(), *c.add(1));
            mailbox::walk(p, reds, |t| {
                let same = |t: Term| t == first || !t.is_immed() || !first.is_immed();
                t.is_boxed() && (*t.ptr()).raw() == w && same(*t.ptr().add(1))
            })
        }
        _ => mailbox::walk(p, reds, |_| true),
    };
    match found {
        Some(t) => {
            // It is read where it is: see `crate::signal::mailbox`.
            (*cx).heap.window = true;
            set_dst(cx, e, d, t);
            go!(cx, test, e, hp, reds)
        }
        None => loop_rec_first(cx, pc, e, hp, reds),
    }
}
pub unsafe fn op_loop_rec_end(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    if reds > 1 && mailbox::walk_on((*cx).proc) {
        let to = pc.offset((pc as *const u16).add(1).cast::<i32>().read_unaligned() as isize);
        go!(cx, to, e, hp, reds - 1)
    }
    loop_rec_end_first(cx, pc, e, hp, reds)
}
/// The receive functions, or `None` where no processes are run (and so no message can come).
fn receive() -> Option<&'static Receive> {
    RECEIVE.get()
}

/// As many as in stock: about what it takes of time, measured by that of a call.
const SEND_REDUCTIONS: i64 = 4;

unsafe fn send(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let (to, msg) = (cx.x[0], cx.x[1]);
    let Some(r) = receive() else {
        return exc::error(cx, pc, am::NOTSUP);
    };
    cx.reds -= SEND_REDUCTIONS;
    cx.bif_pc = pc;
    match (r.send)(cx, to, msg) {
        Ok(t) => {
            cx.x[0] = t;
            collect_after(cx, 1, Also::NONE);
            pc.add(words(0))
        }
        Err(crate::cx::Fail::Trap) => {
            for i in 0..cx.trap.argc {
                cx.x[i] = cx.trap.args[i];
            }
            (cx.heap.stop as *mut u64).write(pc.add(words(0)) as u64);
            (*cx.trap.target)
                .address
                .load(std::sync::atomic::Ordering::Acquire)
        }
        Err(f @ (crate::cx::Fail::Again | crate::cx::Fail::Wait)) => {
            cx.interp.pc = pc;
            cx.interp.live = 2;
            cx.interp.exit = if f == crate::cx::Fail::Wait {
                Exit::Wait
            } else {
                Exit::Yield
            };
            std::ptr::null()
        }
        Err(f) => exc::raise(
            cx,
            pc,
            f,
            exc::First::Native(am::ERLANG, am::SEND, &[to, msg]),
        ),
    }
}
unsafe fn loop_rec(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let d = r.d();
    cx.bif_pc = pc;
    match receive().and_then(|f| (f.loop_rec)(cx)) {
        Some(t) => {
            set_dst(cx, cx.heap.stop, d, t);
            r.end()
        }
        None => pc.offset(to),
    }
}
unsafe fn loop_rec_end(cx: &mut Cx, pc: *const u64) -> *const u64 {
    if let Some(r) = receive() {
        (r.loop_rec_end)(cx);
    }
    let to = pc.offset(Rd::new(pc).l());
    cx.reds -= 1;
    if cx.reds > 0 {
        return to;
    }
    // A long mailbox must not keep others waiting.
    cx.interp.pc = to;
    cx.interp.live = 0;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}
unsafe fn remove_message(cx: &mut Cx, pc: *const u64) -> *const u64 {
    if let Some(r) = receive() {
        (r.remove_message)(cx);
    }
    pc.add(words(0))
}
unsafe fn timeout(cx: &mut Cx, pc: *const u64) -> *const u64 {
    if let Some(r) = receive() {
        (r.timeout)(cx);
    }
    pc.add(words(0))
}
unsafe fn wait(cx: &mut Cx, pc: *const u64) -> *const u64 {
    cx.interp.pc = pc.offset(Rd::new(pc).l());
    cx.interp.live = 0;
    cx.interp.exit = Exit::Wait;
    std::ptr::null()
}
unsafe fn wait_timeout(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let again = pc.offset(r.l());
    let time = r.q();
    if cx.process().has(crate::process::TIMER) {
        // Woken for something else than the timeout, which was read when the timer was set: a receive without
        // patterns comes back to this very instruction, and its register may hold nothing any more.
        cx.interp.pc = again;
        cx.interp.live = 0;
        cx.interp.exit = Exit::WaitTimeout;
        return std::ptr::null();
    }
    let t = source(cx, cx.heap.stop, time);
    let ms = match t.as_small() {
        Some(0) => return r.end(),
        Some(n) if (0..=0xFFFF_FFFF).contains(&n) => n as u64,
        _ if t == am::INFINITY => {
            cx.interp.pc = again;
            // No timer remembers this for the next round, so the X register that holds it has to last. Those before
            // it mean nothing while a process waits, and must not be old pointers.
            cx.interp.live = if time & 7 == 0 {
                (time >> 4) as usize / 8 + 1
            } else {
                0
            };
            let live = cx.interp.live;
            cx.x[..live].fill(am::INFINITY);
            cx.interp.exit = Exit::Wait;
            return std::ptr::null();
        }
        _ => {
            if let Some(f) = receive() {
                (f.restart)(cx);
            }
            return exc::error(cx, pc, am::TIMEOUT_VALUE);
        }
    };
    cx.interp.pc = again;
    cx.interp.live = 0;
    cx.interp.timeout = ms;
    cx.interp.timeout_pc = r.end();
    cx.interp.exit = Exit::WaitTimeout;
    std::ptr::null()
}
unsafe fn marker_reserve(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let d = r.d();
    let t = receive().map_or(NIL, |f| (f.marker_reserve)(cx));
    set_dst(cx, cx.heap.stop, d, t);
    r.end()
}
unsafe fn marker_bind(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let (m, x) = (r.s(cx), r.s(cx));
    if let Some(f) = receive() {
        (f.marker_bind)(cx, m, x);
    }
    r.end()
}
unsafe fn marker_clear(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let x = r.s(cx);
    if let Some(f) = receive() {
        (f.marker_clear)(cx, x);
    }
    r.end()
}
unsafe fn marker_use(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let x = r.s(cx);
    if let Some(f) = receive() {
        (f.marker_use)(cx, x);
    }
    r.end()
}

// Floats.

unsafe fn fload(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let t = r.s(cx);
    let d = r.h() as usize / 8;
    match t.as_float() {
        Some(f) => {
            cx.fr[d] = f;
            r.end()
        }
        None => fconv(cx, pc),
    }
}
unsafe fn fconv(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let t = r.s(cx);
    let d = r.h() as usize / 8;
    match arith::to_f64(t) {
        Some(f) => {
            cx.fr[d] = f;
            r.end()
        }
        None => exc::error(cx, pc, am::BADARITH),
    }
}

// Maps.

unsafe fn put_map(cx: &mut Cx, pc: *const u64, exact: bool) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let mut m = r.s(cx);
    let d = r.d();
    let live = r.h() as usize;
    let n = r.w() as usize;
    let list = r.end();
    let e = cx.heap.stop;
    if !m.is_map() {
        if to != 0 {
            return pc.offset(to);
        }
        let fail = cx.error2(am::BADMAP, m);
        return exc::raise(cx, pc, fail, exc::First::None);
    }
    for i in (0..n).step_by(2) {
        let k = source(cx, e, *list.add(i));
        let v = source(cx, e, *list.add(i + 1));
        if !exact {
            m = map::put(&mut cx.heap, m, k, v);
            continue;
        }
        match map::update(&mut cx.heap, m, k, v) {
            Some(t) => m = t,
            None if to != 0 => return pc.offset(to),
            None => {
                // Of several keys that are missing the least is named.
                let missing = (i..n)
                    .step_by(2)
                    .map(|i| source(cx, e, *list.add(i)))
                    .filter(|&k| !map::contains(m, k))
                    .min_by(|a, b| purlin_term::compare::cmp_exact(*a, *b));
                let fail = cx.error2(am::BADKEY, missing.unwrap_or(k));
                return exc::raise(cx, pc, fail, exc::First::None);
            }
        }
    }
    set_dst(cx, e, d, m);
    collect_after(cx, live, Also::dst(d));
    list.add(n)
}
unsafe fn put_map_assoc(cx: &mut Cx, pc: *const u64) -> *const u64 {
    put_map(cx, pc, false)
}
unsafe fn put_map_exact(cx: &mut Cx, pc: *const u64) -> *const u64 {
    put_map(cx, pc, true)
}
unsafe fn has_map_fields(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let m = r.s(cx);
    let n = r.w() as usize;
    let list = r.end();
    for i in 0..n {
        let k = source(cx, cx.heap.stop, *list.add(i));
        if !map::contains(m, k) {
            return pc.offset(to);
        }
    }
    list.add(n)
}
unsafe fn get_map_elements(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let m = r.s(cx);
    let n = r.w() as usize;
    let list = r.end();
    let e = cx.heap.stop;
    for i in (0..n).step_by(2) {
        let k = source(cx, e, *list.add(i));
        match map::get(m, k) {
            Some(v) => set_source(cx, e, *list.add(i + 1), v),
            None => return pc.offset(to),
        }
    }
    list.add(n)
}
