//! One thread that does everything: it runs processes, fires timers and polls descriptors. The mode
//! of [`crate::explore`].
//!
//! The work that other threads do in the usual mode is done here between two time slices, or at
//! once where it is due. Virtual time advances with the reductions that processes use, and jumps to
//! the next timer when no process can run. In a world (`os/world.rs`) the coordinator's clock
//! decides instead.
//!
//! # Invariant
//! Real time passes only while something from outside is awaited.
//!
//! # Orderings
//! `OUTSIDE` is loaded with acquire: what a thread outside did before it subtracted itself is
//! visible when the number is zero.

use super::{Engine, slice};
use crate::code::epochs::epochs;
use crate::cx::Cx;
use crate::explore::{self, collect};
use crate::os::exploring::{self, ASKED, OUTSIDE};
use crate::os::world;
use crate::process::table;
use crate::sched::{self, MAX_SCHEDULERS};
use crate::timer::NS_PER_TICK;
use crate::{later, msacc, poll, timer};
use std::sync::atomic::Ordering;

/// Milliseconds of real time that a program has to answer.
const ANSWER_MS: i32 = 2000;

/// Milliseconds of real time before the clock jumps while something from outside is awaited.
const OUTSIDE_MS: i32 = 2;

fn fire() {
    timer::run_due();
}

/// Runs processes with the engine `E` until the emulator ends.
pub fn run<E: Engine>() -> ! {
    sched::become_scheduler(1);
    later::begin_scheduler();
    msacc::begin_thread(msacc::Kind::Scheduler, 1);
    crate::message::blocks::keep();
    purlin_term::counts::take_share();
    let mut cx = Cx::boxed(0);
    let mut dirty = Cx::boxed(MAX_SCHEDULERS);
    dirty.dirty = true;
    let _member = epochs().join(&cx.epoch);
    let mut fired = i64::MIN;
    loop {
        collect();
        let Some((cell, may_block)) = explore::next() else {
            idle();
            continue;
        };
        let finds_code = explore::finds_code(cell);
        // SAFETY: the cell was in a run queue.
        unsafe {
            match may_block {
                true => slice::dirty::<E>(&mut dirty, table().cell(cell)),
                false => {
                    let used = slice::normal::<E>(&mut cx, table().cell(cell));
                    exploring::advance(if finds_code { 0 } else { used });
                }
            }
        }
        // Before `ran`, which forgets a process that has ended: the path of a new process begins
        // with that of its parent.
        collect();
        explore::ran(cell, finds_code);
        later::work();
        if world::is_over() {
            give_turn(None, true);
        }
        let tick = exploring::now() / NS_PER_TICK;
        if tick != fired {
            fired = tick;
            fire();
        }
    }
}

/// Gives the turn of a node in a world back: see [`poll::give_turn`].
fn give_turn(next: Option<i64>, over: bool) {
    explore::tell_order();
    let order = poll::give_turn(next, over);
    if !order.is_empty() {
        explore::set_order(&order);
    }
}

/// No process of a node in a world is ready: it gives its turn back.
fn idle_in_world() {
    let timer = timer::run_due();
    collect();
    if explore::is_runnable() {
        return;
    }
    let next = (timer != timer::NEVER).then(|| (timer as i64).saturating_mul(NS_PER_TICK));
    give_turn(next.into_iter().chain(explore::next_release()).min(), false);
    fire();
}

/// No process is ready, or all that are have stopped.
fn idle() {
    if explore::release() {
        return;
    }
    if world::is_on() && OUTSIDE.load(Ordering::Acquire) == 0 {
        if !poll::look(0) {
            idle_in_world();
        }
        return;
    }
    if poll::look(0) {
        return;
    }
    let outside = OUTSIDE.load(Ordering::Acquire) > 0;
    let awaited = poll::awaits();
    if outside {
        poll::look(1);
        return;
    }
    if awaited && ASKED.swap(false, Ordering::Relaxed) && poll::look(ANSWER_MS) {
        return;
    }
    if awaited && poll::look(OUTSIDE_MS) {
        return;
    }
    let timer = timer::run_due();
    let next = (timer != timer::NEVER).then(|| (timer as i64).saturating_mul(NS_PER_TICK));
    match next.into_iter().chain(explore::next_release()).min() {
        Some(t) if !awaited && explore::is_stuck(t) => explore::deadlock(),
        Some(_) if explore::hangs() => explore::hang(),
        Some(t) => {
            exploring::jump(t);
            fire();
        }
        None if awaited => {
            poll::look(-1);
        }
        None => {
            collect();
            if !explore::is_ready() {
                explore::deadlock();
            }
        }
    }
}
