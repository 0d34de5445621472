//! Natives: calls of all kinds, guard natives, and what a native may request instead of returning a
//! value.
//!
//! A native collects nothing. It makes fragments, and the op collects afterwards, with x0 or its
//! destination live. A traced native is called through the stub of its export, where the breakpoint
//! is.

use super::call::{call_of, do_return};
use super::exc::{self, First};
use super::handler::op;
use super::operands::Label;
use super::room::{collect, collect_after};
use super::{Exit, instr};
use crate::code;
use crate::collect::Also;
use crate::cx::{Cx, Fail};
use crate::process::{SAVES, saved};
use purlin_isa::ops::{Op, dirty};
use purlin_native::lazy_atoms;
use purlin_term::fun::Export;
use purlin_term::release::{self, INCREMENTS_SHOWN};
use purlin_term::{NIL, Term, am, atom, gc};
use smallvec::SmallVec;

lazy_atoms! {
    a_yield = "yield";
}

op! {
    op_call_bif => call_bif;
    op_call_bif_last => call_bif_last;
    op_call_bif_only => call_bif_only;
    op_call_dirty => call_dirty;
    op_bif0 => bif0;
    op_bif1 => bif1;
    op_bif2 => bif2;
    op_bif3 => bif3;
    op_length => length;
}

// The common part of the ops that call natives.
const _: () = {
    let export = Op::CallBif.row().unit("export");
    let native = Op::CallBif.row().unit("native");
    let all = [Op::CallBifLast, Op::CallBifOnly, Op::CallDirty];
    let mut i = 0;
    while i < all.len() {
        assert!(all[i].row().unit("export") == export && all[i].row().unit("native") == native);
        i += 1;
    }
};

/// How to continue after a native.
enum After {
    /// Its value is in x0.
    Value,
    /// Go there instead.
    Jump(*const u64),
    /// As [`After::Jump`], returning to the instruction after the call, even if that was a tail
    /// call.
    Trap(*const u64),
    /// Its value is in x0, and the time slice ends.
    Yield,
}

/// Calls the native of any `call_bif` op.
#[inline(always)]
unsafe fn native(cx: &mut Cx, pc: *const u64, n: usize) -> After {
    // All of them have export and native at the same offset.
    let op = instr::CallBif::at(pc);
    let (export, f) = (op.export(), op.native());
    cx.bif_pc = pc;
    // Charges the call itself; the native may charge more for its work.
    cx.reds -= 1;
    // The native is called all the same. The next call of code ends the time slice.
    if cx.reds <= 0 {
        bif_used_up(cx, pc, export);
    }
    let args = cx.x.as_ptr();
    match f(cx.env_ptr(), args) {
        Ok(t) => {
            // The arguments are dead now; fragments that the native made become a part of the heap.
            cx.x[0] = t;
            collect_after(cx, 1, Also::NONE);
            After::Value
        }
        Err(fail) => native_failed(cx, pc, export, n, fail),
    }
}

/// Handles a call of a native that uses up the reductions of the time slice; the native is called
/// nevertheless.
#[cold]
#[inline(never)]
unsafe fn bif_used_up(cx: &mut Cx, pc: *const u64, export: &Export) {
    // A call that came through the export has been recorded. To stock, a call of `yield/0` by its
    // name is an instruction.
    let noted = pc == export.stub.as_ptr() as *const u64;
    let call = call_of(export);
    let unseen = noted || call == saved::Call::Function(am::ERLANG, a_yield(), 0);
    saved::continue_slice(cx, (!unseen).then_some(call));
}

/// Handles the failure of a native. The arguments are still in x: `n` of them are live if it is
/// called again.
///
/// # Safety
/// As for the instruction at `pc`, which has called the native of `export` with the first `n` X
/// registers, with the result `fail`.
#[inline(never)]
unsafe fn native_failed(
    cx: &mut Cx,
    pc: *const u64,
    export: &Export,
    n: usize,
    fail: Fail,
) -> After {
    match fail {
        Fail::Trap => {
            // Arguments of the continuation are roots from here on, since the collection below may
            // move them.
            let argc = cx.trap.argc;
            for i in 0..argc {
                cx.x[i] = cx.trap.args[i];
            }
            collect_after(cx, argc, Also::NONE);
            After::Trap((*cx.trap.target).address())
        }
        Fail::Again | Fail::Wait | Fail::Dirty => {
            collect_after(cx, n, Also::NONE);
            // A call through the export's stub was recorded before the stub, which runs again.
            if cx.process().has(SAVES) && pc != export.stub.as_ptr() as *const u64 {
                saved::retract(cx.process(), call_of(export));
            }
            // The same instruction runs again, on this thread or another: its call was traced
            // already.
            super::traced::again(cx, pc);
            cx.interp.pc = pc;
            cx.interp.live = n;
            cx.interp.exit = match fail {
                Fail::Wait => Exit::Wait,
                Fail::Dirty => Exit::DirtyIo,
                _ => Exit::Yield,
            };
            After::Jump(std::ptr::null())
        }
        // The process has ended within the native: its exit reason is in the context.
        Fail::Exited => {
            cx.interp.exit = Exit::Exited;
            After::Jump(std::ptr::null())
        }
        Fail::Yield => {
            cx.x[0] = cx.trap.args[0];
            After::Yield
        }
        _ => {
            let other = cx.exc.native.filter(|_| fail == Fail::Raised);
            if other.is_none() && exc::raises(export.module, export.function, n) {
                return After::Jump(exc::raise(cx, pc, fail, First::Caller));
            }
            // Raising writes x1 to x3, and the trace shows the arguments.
            let args: SmallVec<[Term; 8]> = (0..n)
                .map(|i| crate::bif::arguments::<1>(&cx.x[i])[0])
                .collect();
            let (m, f) = other.unwrap_or((export.module, export.function));
            After::Jump(exc::raise(cx, pc, fail, First::Native(m, f, &args)))
        }
    }
}

/// Returns the stub of the native that the instruction at `pc` calls, if it is traced.
///
/// # Safety
/// There must be an instruction at `pc` that calls a native.
#[inline(always)]
unsafe fn detour(pc: *const u64) -> Option<*const u64> {
    if !crate::code::breakpoint::natives() {
        return None;
    }
    super::traced::traced_native(instr::CallBif::at(pc).export()).filter(|&s| s != pc)
}

/// As [`detour`], for a tail call of a native. As if it weren't traced, the frame of the calling
/// function stays. The native returns to the instruction after the call, where the frame is
/// dropped.
#[inline(always)]
unsafe fn last_detour(cx: &mut Cx, pc: *const u64, framed: bool) -> Option<After> {
    if !crate::code::breakpoint::natives() {
        return None;
    }
    last_detour_slow(cx, pc, framed)
}

#[cold]
#[inline(never)]
unsafe fn last_detour_slow(cx: &mut Cx, pc: *const u64, framed: bool) -> Option<After> {
    let to = detour(pc)?;
    let back = match framed {
        true => instr::CallBifLast::at(pc).next(),
        false => instr::CallBifOnly::at(pc).next(),
    };
    if !framed {
        // A function without a frame has no slot for the return address: one is made, for which
        // there may be no room.
        let live = instr::CallBifOnly::at(pc).arity();
        if cx.heap.free_words() < 1 + cx.heap.stack_reserve + live {
            collect(cx, 1 + live, live);
        }
        cx.heap.stop = cx.heap.stop.sub(1);
    }
    (cx.heap.stop as *mut u64).write(back as u64);
    Some(After::Jump(to))
}

/// Calls a native and stores its value in x0. May collect with x0 live, raise, trap, and leave for
/// later or for a dirty thread.
unsafe fn call_bif(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::CallBif::at(pc);
    // A traced native is called through the stub of its export, where the breakpoint is.
    if let Some(to) = detour(pc) {
        (cx.heap.stop as *mut u64).write(op.next() as u64);
        return to;
    }
    match native(cx, pc, op.arity()) {
        After::Value => op.next(),
        After::Jump(to) => to,
        After::Trap(to) => {
            (cx.heap.stop as *mut u64).write(op.next() as u64);
            trapped(cx, to)
        }
        After::Yield => go_on_later(cx, op.next()),
    }
}

/// Goes on at `to`, the target of a native's trap, in the next time slice if this one is used up. A
/// native that only traps to natives meets no call of code, where that would show.
///
/// # Safety
/// `to` must be code that takes what the native has left in the registers.
unsafe fn trapped(cx: &mut Cx, to: *const u64) -> *const u64 {
    if cx.reds > 0 || saved::continue_slice(cx, None) {
        return to;
    }
    cx.interp.pc = to;
    cx.interp.live = cx.trap.argc;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}

/// Ends the time slice before the instruction at `pc`, to which a native has returned.
unsafe fn go_on_later(cx: &mut Cx, pc: *const u64) -> *const u64 {
    cx.interp.pc = pc;
    // The value, in x0.
    cx.interp.live = 1;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}

/// Calls a native of a dirty pool, reached through the stub of its export: the return address is on
/// the stack already.
unsafe fn call_dirty(cx: &mut Cx, pc: *const u64) -> *const u64 {
    // There are three cases: a native of a dirty pool that begins here and moves there if
    // necessary; one that is sent to its pool; and the call on a thread of the pool, after which
    // the process goes back to a scheduler in any case.
    let op = instr::CallDirty::at(pc);
    let n = op.arity();
    if !cx.dirty && op.pool() == dirty::IO_LATER as usize {
        return match native(cx, pc, n) {
            After::Value => do_return(cx),
            After::Yield => {
                let to = do_return(cx);
                go_on_later(cx, to)
            }
            After::Trap(to) | After::Jump(to) => to,
        };
    }
    if !cx.dirty {
        super::traced::again(cx, pc);
        cx.interp.pc = pc;
        cx.interp.live = n;
        cx.interp.exit = if op.pool() == dirty::CPU as usize {
            Exit::DirtyCpu
        } else {
            Exit::DirtyIo
        };
        return std::ptr::null();
    }
    let (next, live) = match native(cx, pc, n) {
        After::Value | After::Yield => (do_return(cx), 1),
        After::Trap(to) => (to, cx.trap.argc),
        After::Jump(to) if to.is_null() => return to,
        // The handler finds class, reason and trace in x1 to x3.
        After::Jump(to) => (to, 4),
    };
    cx.interp.pc = next;
    cx.interp.live = live;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}

/// Calls a native as a tail call with a frame. The frame stays until the native has returned: it
/// may trap, and the target of the trap returns to the op after this one, which drops the frame.
unsafe fn call_bif_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::CallBifLast::at(pc);
    let after = match last_detour(cx, pc, true) {
        Some(a) => a,
        None => native(cx, pc, op.arity()),
    };
    match after {
        After::Value => {
            // Now that the native has returned the frame can be dropped.
            cx.heap.stop = cx.heap.stop.add(op.frame() + 1);
            do_return(cx)
        }
        After::Jump(to) => to,
        After::Trap(to) => {
            (cx.heap.stop as *mut u64).write(op.next() as u64);
            trapped(cx, to)
        }
        After::Yield => {
            cx.heap.stop = cx.heap.stop.add(op.frame() + 1);
            let to = do_return(cx);
            go_on_later(cx, to)
        }
    }
}

/// As [`call_bif_last`], without a frame: if the native traps, a slot is made for the return
/// address.
unsafe fn call_bif_only(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::CallBifOnly::at(pc);
    let after = match last_detour(cx, pc, false) {
        Some(a) => a,
        None => native(cx, pc, op.arity()),
    };
    match after {
        After::Value => do_return(cx),
        After::Jump(to) => to,
        After::Trap(to) => {
            // A stub has no location of its own.
            if pc != op.export().stub.as_ptr() as *const u64 {
                let live = cx.trap.argc;
                if cx.heap.free_words() < 1 + cx.heap.stack_reserve + live {
                    collect(cx, 1 + live, live);
                }
                cx.heap.stop = cx.heap.stop.sub(1);
                (cx.heap.stop as *mut u64).write(op.next() as u64);
            }
            trapped(cx, to)
        }
        After::Yield => {
            let to = do_return(cx);
            go_on_later(cx, to)
        }
    }
}

/// Raises for a native called by a `bif` op, or jumps to its label.
///
/// # Safety
/// As for the instruction at `pc`, which has called the native of `x` with `args`, with the result
/// `fail`.
#[cold]
unsafe fn bif_failed(
    cx: &mut Cx,
    pc: *const u64,
    label: Label,
    x: &Export,
    args: &[Term],
    fail: Fail,
) -> *const u64 {
    if let Some(to) = label.given() {
        return to;
    }
    // Stock has an instruction for unary plus, which it doesn't show as a native, or shows as a sum
    // with zero.
    let with_zero = [args.first().copied().unwrap_or(NIL), Term::small(0)];
    let first = match (x.function, args.len()) {
        (am::PLUS, 1) if release::has(INCREMENTS_SHOWN) => {
            First::Native(am::ERLANG, am::PLUS, &with_zero)
        }
        (am::PLUS, 1) => First::None,
        _ => First::Native(x.module, x.function, args),
    };
    exc::raise(cx, pc, fail, first)
}

/// A guard native without arguments: `dst` gets its value. It has no label, and makes nothing that
/// requires a collection.
unsafe fn bif0(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::Bif0::at(pc);
    let args = cx.x.as_ptr();
    match (op.native())(cx.env_ptr(), args) {
        Ok(t) => {
            op.dst().put(cx, t);
            op.next()
        }
        Err(fail) => exc::raise(cx, pc, fail, First::None),
    }
}

/// Guard natives in guards and bodies. Arguments are copied out of the registers, so that `dst` may
/// be one of them. May collect with `live` and the result. A failure jumps to the label, or raises
/// if there is none.
macro_rules! bif_ops {
    ($($name:ident = $op:ident($($a:ident),*);)*) => {$(
        unsafe fn $name(cx: &mut Cx, pc: *const u64) -> *const u64 {
            let op = instr::$op::at(pc);
            let args = [$(op.$a().value(cx)),*];
            cx.bif_pc = pc;
            match (op.native())(cx.env_ptr(), args.as_ptr()) {
                Ok(t) => {
                    op.dst().put(cx, t);
                    collect_after(cx, op.live(), op.dst().also());
                    op.next()
                }
                Err(fail) => bif_failed(cx, pc, op.fail(), op.export(), &args, fail),
            }
        }
    )*};
}

bif_ops! {
    bif1 = Bif1(a);
    bif2 = Bif2(a, b);
    bif3 = Bif3(a, b, c);
}

/// Number of arguments of the trap of `length/1`; the first is the list itself.
const COUNT: usize = 5;

/// `length/1` in guards and bodies, like any other guard native. But a long list may take more than
/// one time slice to count. Meanwhile the state of the count is in the registers after the live
/// ones, and this instruction continues with it.
///
/// The process does not yield while it looks at a message of a receive, because such a message must
/// not outlast the time slice.
unsafe fn length(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::Length::at(pc);
    let live = op.live();
    cx.bif_pc = pc;
    let resumes = cx.proc.as_mut().is_some_and(|p| p.take_resume_mark(pc));
    let (list, mut result) = match resumes {
        true => {
            let state = std::array::from_fn(|i| cx.x[live + i]);
            (state[0], count_on(cx, &state))
        }
        false => {
            let list = op.a().value(cx);
            (list, (op.native())(cx.env_ptr(), [list].as_ptr()))
        }
    };
    while let Err(Fail::Trap) = result {
        let may_leave = live + COUNT <= cx.x.len()
            && !cx.heap.window
            && (op.fail().given().is_none() || cx.process().is_outside_receive());
        let state: [Term; COUNT] = std::array::from_fn(|i| cx.trap.args[i]);
        let over = cx.reds <= 0 && !saved::continue_slice(cx, None);
        if may_leave && (over || gc::stress_roll(2)) {
            cx.x[live..live + COUNT].copy_from_slice(&state);
            cx.process().set_resume_mark(pc);
            cx.interp.pc = pc;
            cx.interp.live = live + COUNT;
            cx.interp.exit = Exit::Yield;
            return std::ptr::null();
        }
        result = count_on(cx, &state);
    }
    match result {
        Ok(t) => {
            op.dst().put(cx, t);
            collect_after(cx, live, op.dst().also());
            op.next()
        }
        Err(_) => bif_failed(cx, pc, op.fail(), op.export(), &[list], Fail::Badarg),
    }
}

/// Continues to count a list.
///
/// # Safety
/// `state` must be the arguments with which `length/1`, or this function, has trapped, at their
/// present addresses.
unsafe fn count_on(cx: &mut Cx, state: &[Term; COUNT]) -> crate::cx::BifResult {
    let name = (atom::intern("purlin"), atom::intern("length"));
    match code::native(name.0, name.1, COUNT as u32) {
        Some((_, b)) => (b.call)(cx.env_ptr(), state.as_ptr()),
        None => Err(Fail::Undef),
    }
}

/// Returns the export of the native that the instruction at `pc` calls, if it calls one.
///
/// # Safety
/// There must be an instruction.
pub unsafe fn called_native(pc: *const u64) -> Option<&'static purlin_term::fun::Export> {
    let (row, _) = purlin_isa::ops::lookup(code::opcode_at(pc))?;
    let calls = matches!(
        row.name,
        "call_bif" | "call_bif_last" | "call_bif_only" | "call_dirty"
    );
    calls.then(|| instr::CallBif::at(pc).export())
}
