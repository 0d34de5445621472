//! One thread that does everything: runs processes, fires timers, looks at descriptors. The mode of [`crate::choice`].
//!
//! What other threads do in the usual mode is done here between two time slices, or at once where it turns out to be due. Virtual time
//! passes with the reductions that processes use, and jumps to the next timer when nobody can run.

use super::{Engine, slice};
use crate::choice::{self, collect};
use crate::code::epochs::epochs;
use crate::cx::Cx;
use crate::os::single::{self, ASKED, OUTSIDE};
use crate::process::table;
use crate::sched::{self, MAX_SCHEDULERS};
use crate::{later, msacc, poll, timer};
use std::sync::atomic::Ordering;

/// Milliseconds of real time that a program has for its answer.
const ANSWER_MS: i32 = 2000;

/// Milliseconds of real time for which something from outside is waited for before the clock jumps.
const OUTSIDE_MS: i32 = 2;

/// Nanoseconds in a tick of the timers.
const NS_PER_TICK: i64 = 1_000_000;

fn fire() {
    timer::run_due();
}

/// Runs processes by the engine `E` until the emulator ends.
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
        let Some((cell, io)) = choice::next() else {
            idle();
            continue;
        };
        let finds_code = choice::finds_code(cell);
        // SAFETY: the cell was in a run queue.
        unsafe {
            match io {
                true => slice::dirty::<E>(&mut dirty, table().cell(cell)),
                false => {
                    let used = slice::normal::<E>(&mut cx, table().cell(cell));
                    single::advance(if finds_code { 0 } else { used });
                }
            }
        }
        // Its children get their paths while it is known.
        collect();
        choice::ran(cell, finds_code);
        later::work();
        let tick = single::now() / NS_PER_TICK;
        if tick != fired {
            fired = tick;
            fire();
        }
    }
}

/// Nobody is ready, or all that are have been stopped.
fn idle() {
    if choice::release_last() || choice::back::deliver_all() {
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
    match next.into_iter().chain(choice::next_release()).min() {
        Some(t) if !awaited && choice::is_stuck(t) => choice::deadlock(),
        Some(_) if choice::hangs() => choice::hang(),
        Some(t) => {
            single::jump(t);
            fire();
        }
        None if awaited => {
            poll::look(-1);
        }
        None => {
            collect();
            if !choice::is_ready() {
                choice::deadlock();
            }
        }
    }
}
