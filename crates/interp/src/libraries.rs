//! Functions of native libraries, which are called where the Erlang code of the function would
//! begin.

use super::call::do_return;
use super::exc::{self, First};
use super::handler::{Flavour, go, go_on, op, out_of_line};
use super::room::collect_after;
use super::{Exit, instr};
use crate::collect::{Also, make_room_for_calls};
use crate::cx::{Cx, Fail};
use purlin_native::nif::{NifFunction, Pool};
use purlin_term::Term;
use smallvec::SmallVec;

op! {
    nif_apart => nif;
}

op!(
/// The place where a native library may replace code: runs its function, or the Erlang code if
/// there is none. For a function that schedulers call, and whose result needs no further work, the
/// cost is little more than that of the call.
fn op_nif(cx, pc, e, hp, reds) {
    let f = instr::Nif::at(pc).slot().get();
    // No library has filled the slot: the Erlang code of the function follows.
    if f.is_null() {
        go!(cx, instr::Nif::at(pc).next(), e, hp, reds)
    }
    // All other functions, and dirty threads, take the slow path.
    if !(*f).plain || (*cx).dirty {
        return nif_apart::<F>(cx, pc, e, hp, reds);
    }
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds - 1;
    (*cx).bif_pc = pc;
    // `f` may be gone after this.
    let t = ((*f).call)((*cx).env_ptr(), (*cx).x.as_ptr(), f);
    // A call that has used up the time slice yields at the next call, like any other.
    if t == Term::NON_VALUE || (*cx).heap.gc_wanted {
        return plain_nif_ended::<F>(cx, pc, t);
    }
    (*cx).x[0] = t;
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, (*cx).heap.htop, (*cx).reds)
});

/// Handles the result `t` of the function that was called at `pc`, if there is more to do than to
/// return it.
#[cold]
#[inline(never)]
unsafe fn plain_nif_ended<F: Flavour>(cx: *mut Cx, pc: *const u64, t: Term) -> F::Out {
    let next = out_of_line(&mut *cx, pc, |cx, pc| {
        let called = Called::of(&*instr::Nif::at(pc).slot().get());
        nif_ended(cx, pc, &called, t)
    });
    go_on::<F>(cx, next)
}

/// The names of a function of a library, for traces. The function itself may be gone after the
/// call, because it ends with the request that made it.
struct Called {
    module: Term,
    function: Term,
    arity: usize,
    /// Number of registers after the arguments, which belong to the function it replaces.
    more: usize,
}

impl Called {
    fn of(f: &NifFunction) -> Called {
        Called {
            module: f.module,
            function: f.function,
            arity: f.arity as usize,
            more: f.first as usize,
        }
    }
}

/// As [`op_nif`], for any function.
unsafe fn nif(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let f = instr::Nif::at(pc).slot().get();
    let called = Called::of(&*f);
    let pool = (*f).pool;
    if (pool != Pool::Normal) != cx.dirty {
        return other_thread(cx, pc, pool, called.arity + called.more);
    }
    cx.bif_pc = pc;
    cx.reds -= 1;
    let args = cx.x.as_ptr();
    let t = ((*f).call)(cx.env_ptr(), args, f);
    nif_ended(cx, pc, &called, t)
}

/// Handles the result `t` of a function of a library. Returns the next instruction, or null if the
/// time slice or the process has ended.
unsafe fn nif_ended(cx: &mut Cx, pc: *const u64, called: &Called, t: Term) -> *const u64 {
    if cx.dirty && cx.process().state.load().is_exiting() {
        // The process has ended within the function. Its code may be gone.
        cx.interp.live = 0;
        cx.interp.exit = Exit::Yield;
        return std::ptr::null();
    }
    // A function that requests another one again and again calls no code, so it yields here.
    let mut yields = false;
    let (next, live) = if t != Term::NON_VALUE {
        cx.x[0] = t;
        // The function found the heap full, and will be called again: see `make_room_for_calls`.
        if cx.heap.frag_words != 0 {
            make_room_for_calls(cx);
        }
        collect_after(cx, 1, Also::NONE);
        (do_return(cx), 1)
    } else if cx.failed == Fail::Scheduled {
        let Some(s) = cx.process().ext_mut().scheduled.as_mut() else {
            return exc::raise(cx, pc, Fail::Badarg, First::None);
        };
        // From here on the registers hold the arguments, and the collection below updates them.
        let args = std::mem::take(&mut s.args);
        let to = s.code.as_ptr();
        yields = cx.reds <= 0;
        cx.x[..args.len()].copy_from_slice(&args);
        collect_after(cx, args.len(), Also::NONE);
        (to, args.len())
    } else {
        // If it replaces another function, the trace names that one.
        let (n, more) = (called.arity, called.more);
        let shown = if more > 0 { n..n + more } else { 0..n };
        let args: SmallVec<[Term; 8]> = cx.x[shown].into();
        let first = First::Library(called.module, called.function, &args);
        let next = exc::raise(cx, pc, cx.failed, first);
        if next.is_null() {
            return next;
        }
        // The handler finds class, reason and trace in x1 to x3.
        (next, 4)
    };
    if !yields && !cx.dirty {
        return next;
    }
    cx.interp.pc = next;
    cx.interp.live = live;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}

/// Moves the call of the native library function at `pc` to a thread of that pool, to which this
/// one doesn't belong.
#[cold]
unsafe fn other_thread(cx: &mut Cx, pc: *const u64, pool: Pool, live: usize) -> *const u64 {
    super::traced::again(cx, pc);
    cx.interp.pc = pc;
    cx.interp.live = live;
    cx.interp.exit = match pool {
        Pool::Normal => Exit::Yield,
        Pool::DirtyCpu => Exit::DirtyCpu,
        Pool::DirtyIo => Exit::DirtyIo,
    };
    std::ptr::null()
}
