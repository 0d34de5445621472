//! Schedules from a seed: a mode in which one thread does everything, in an order that follows from what is recorded.
//!
//! The emulator runs all processes, timers and descriptors on the thread that it starts with (`threads/alone.rs`). Before each
//! *visible operation* (a native or a send by which a process touches what others see) it asks here whether the process goes on. By
//! itself it always does: that is the *base* schedule, in which processes run in the order of becoming ready. A *deviation* names a
//! process by its path, and an operation by its count within that process; there the process stops until nobody else can run, or for
//! some milliseconds of virtual time. A schedule is the base with a list of deviations, so that it can be cut down, written to a file
//! and repeated.
//!
//! Since there is one thread, the emulator may be forked: a schedule that deviates at an operation of the base begins with a fork of
//! the run of the base there ([`fork`]).
//!
//! # Invariants
//! * Nothing here is called while the mode is off.
//! * Everything here is touched by one thread.
//! * What a deviation names stays valid if earlier ones change: paths and counts depend on the process and its ancestors only.

pub mod fork;
pub(crate) mod modules;
pub mod ops;
pub mod plan;
pub mod report;

use crate::cx::Cx;
use crate::os::single;
use crate::process::{NO_ID, Process, table};
use ops::Touch;
use purlin_term::Term;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

pub use crate::os::single::{now, on, started};

/// For how long a process stops at most that stops until nobody else can run, in nanoseconds of virtual time.
const LAST_AT_MOST: i64 = 200_000_000;

/// The effect of a deviation on the process at its operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// It stops until nobody else can run.
    Last,
    /// It stops for so many nanoseconds of virtual time.
    Stall(i64),
}

/// A place at which a schedule leaves the base.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Deviation {
    /// The path of the process: a hash of its parent's and of its number among its parent's children.
    pub path: u64,
    /// Its visible operations so far, with the one before which it stops.
    pub op: u32,
    /// The effect there.
    pub kind: Kind,
}

/// A process that is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    No,
    /// Until nobody else can run, or until that time (somebody may ask again and again for what it is to do); those who stopped
    /// earlier go first.
    Last(u64, i64),
    Until(i64),
}

/// The facts about a process.
struct Known {
    id: u32,
    path: u64,
    ops: u32,
    children: u64,
    /// The program's own code runs in it, or has made it.
    program: bool,
    /// The operation at which it resumes was asked about already.
    passing: bool,
    hold: Hold,
    /// When it did its last operation.
    last: i64,
}

/// An operation of the schedule that runs.
#[derive(Clone, Debug)]
pub struct Op {
    pub path: u64,
    pub op: u32,
    pub touch: Touch,
    /// Code of the program is on the stack, and none of a compiler or loader above it.
    pub own: bool,
}

/// A process that is ready, and whether it is for a native that may block.
pub type Ready = (u32, bool);

#[derive(Default)]
struct State {
    known: HashMap<u32, Known>,
    ready: VecDeque<Ready>,
    deviations: HashMap<(u64, u32), Kind>,
    /// Deviations that were taken, in order.
    taken: Vec<Deviation>,
    stops: u64,
    hash: u64,
    ops: u64,
    /// Operations are noted for a profile of the base.
    profile: Option<Vec<Op>>,
    /// Operations are told as text.
    story: Option<Vec<report::Line>>,
    running: u32,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

struct Held(MutexGuard<'static, Option<State>>);

impl std::ops::Deref for Held {
    type Target = State;
    fn deref(&self) -> &State {
        self.0.as_ref().expect("the mode is on")
    }
}

impl std::ops::DerefMut for Held {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_mut().expect("the mode is on")
    }
}

fn state() -> Held {
    Held(STATE.lock().unwrap_or_else(|e| e.into_inner()))
}

/// Puts the mode on. `started`: the wall clock at the start, in nanoseconds since 1970. Called before anything runs.
pub fn begin(started: i64) {
    *STATE.lock().unwrap_or_else(|e| e.into_inner()) = Some(State {
        running: u32::MAX,
        ..State::default()
    });
    purlin_native::ids::begin_at(started as u64);
    let _ = crate::code::load::MADE_BEFORE.set(modules::take);
    single::begin(started, |status| fork::ended(status, false));
}

fn mixed(h: u64, n: u64) -> u64 {
    (h ^ n)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
        .wrapping_add(n)
}

impl State {
    /// The facts about the process in a cell; a new one gets its path.
    fn known(&mut self, cell: u32) -> &mut Known {
        let p = table().cell(cell);
        // SAFETY: cells are never unmapped; only this thread writes them.
        let (id, parent) = unsafe { ((*p).id.load(Ordering::Relaxed), (*p).parent) };
        if self.known.get(&cell).is_none_or(|k| k.id != id) {
            let by = self
                .known
                .values_mut()
                .find(|k| k.id == parent && parent != id);
            let (path, program) = match by {
                Some(k) => {
                    k.children += 1;
                    (mixed(k.path, k.children), k.program)
                }
                None => (mixed(1, u64::from(id)), false),
            };
            self.known.insert(
                cell,
                Known {
                    id,
                    path,
                    ops: 0,
                    children: 0,
                    program,
                    passing: false,
                    hold: Hold::No,
                    last: now(),
                },
            );
        }
        self.known.get_mut(&cell).expect("just made")
    }
}

/// Processes that have become ready, in that order.
pub fn add_ready(cells: impl Iterator<Item = Ready>) {
    let mut s = state();
    for (cell, dirty) in cells {
        s.known(cell);
        s.ready.push_back((cell, dirty));
    }
}

/// The process that runs next: the first that is not stopped. None: all that are ready are stopped, or none is.
pub fn next() -> Option<Ready> {
    let mut s = state();
    let now = now();
    let State { ready, known, .. } = &mut *s;
    let at = ready.iter().position(|(c, _)| match known.get(c) {
        Some(k) => match k.hold {
            Hold::No => true,
            Hold::Until(t) => t <= now,
            Hold::Last(_, t) => t <= now,
        },
        None => true,
    })?;
    let r = ready.remove(at)?;
    if let Some(k) = s.known.get_mut(&r.0) {
        k.hold = Hold::No;
    }
    s.running = r.0;
    Some(r)
}

/// Lets the process go on that stopped first until nobody else could run: nobody else can. False: there is none.
pub fn release_last() -> bool {
    let mut s = state();
    let State { ready, known, .. } = &mut *s;
    let first = ready
        .iter()
        .filter_map(|(c, _)| match known.get(c)?.hold {
            Hold::Last(n, _) => Some((n, *c)),
            _ => None,
        })
        .min();
    let Some((_, cell)) = first else { return false };
    if let Some(k) = known.get_mut(&cell) {
        k.hold = Hold::No;
    }
    true
}

/// When the first process goes on that is stopped for some time, in nanoseconds of virtual time.
pub fn next_release() -> Option<i64> {
    let s = state();
    let of = |c: &u32| match s.known.get(c)?.hold {
        Hold::Until(t) => Some(t),
        _ => None,
    };
    s.ready.iter().filter_map(|(c, _)| of(c)).min()
}

/// Virtual time, in nanoseconds, after which nothing has happened but what OTP's own servers do at times: nothing will.
const STUCK_AFTER: i64 = 6 * 3600 * 1_000_000_000;

/// Whether no process has done anything for long before `ns`, of those without a registered name.
pub fn is_stuck(ns: i64) -> bool {
    if ns < STUCK_AFTER {
        return false;
    }
    let named: Vec<u32> = crate::process::registry::names()
        .into_iter()
        .filter_map(crate::process::registry::whereis)
        .filter(|t| t.is_local_pid())
        .map(|t| t.pid_data())
        .collect();
    let s = state();
    let others = s.known.values().filter(|k| !named.contains(&k.id));
    others
        .map(|k| k.last)
        .max()
        .is_none_or(|last| ns - last > STUCK_AFTER)
}

/// Whether any process is ready, stopped or not.
pub fn is_ready() -> bool {
    !state().ready.is_empty()
}

/// The process in `cell` has run, and may have ended.
pub fn ran(cell: u32) {
    let mut s = state();
    s.running = u32::MAX;
    let p = table().cell(cell);
    // SAFETY: cells are never unmapped.
    let id = unsafe { (*p).id.load(Ordering::Relaxed) };
    let Some(k) = s.known.get(&cell) else { return };
    if k.id != id {
        let (path, op, was) = (k.path, k.ops + 1, k.id);
        if id == NO_ID {
            s.known.remove(&cell);
        }
        s.hash = mixed(s.hash, path ^ 0xE4D);
        if let Some(v) = &mut s.profile {
            v.push(Op {
                path,
                op,
                touch: Touch::end(was),
                own: false,
            });
        }
    }
}

/// The process that runs in `cx` is about to do something that others may see. True: it stops here, and does it when it runs again;
/// the caller has it yield. `pc`: the instruction.
pub fn asks(cx: &mut Cx, pc: *const u64, what: ops::What) -> bool {
    let cell = table().index(cx.process() as *const Process);
    let mut s = state();
    let k = s.known(cell);
    if std::mem::take(&mut k.passing) {
        let (path, op) = (k.path, k.ops);
        if s.story.is_some() {
            let touch = what.touch(cx);
            let line = report::line(cx, pc, &what, path, op, touch);
            if let Some(v) = &mut s.story {
                v.push(line);
            }
        }
        return false;
    }
    k.ops += 1;
    k.last = now();
    let (path, op) = (k.path, k.ops);
    let touch = what.touch(cx);
    s.ops += 1;
    s.hash = mixed(
        mixed(s.hash, path),
        u64::from(op) << 16 | u64::from(touch.native),
    );
    if s.profile.is_some() {
        let program = s.known(cell).program;
        let (own, code) = report::is_own(cx, pc, program);
        s.known(cell).program |= code;
        if let Some(v) = &mut s.profile {
            v.push(Op {
                path,
                op,
                touch,
                own,
            });
        }
    }
    if s.story.is_some() {
        let line = report::line(cx, pc, &what, path, op, touch);
        if let Some(v) = &mut s.story {
            v.push(line);
        }
    }
    drop(s);
    let kind = match fork::at(path, op) {
        Some(kind) => Some(kind),
        None => state().deviations.get(&(path, op)).copied(),
    };
    let Some(kind) = kind else { return false };
    let mut s = state();
    s.stops += 1;
    let stops = s.stops;
    s.taken.push(Deviation { path, op, kind });
    s.hash = mixed(s.hash, 0xDE71A7E);
    if let Some(v) = &mut s.story
        && let Some(l) = v.last_mut()
    {
        l.stopped = Some(kind);
    }
    let k = s.known(cell);
    k.passing = true;
    k.hold = match kind {
        Kind::Last => Hold::Last(stops, now() + LAST_AT_MOST),
        Kind::Stall(ns) => Hold::Until(now() + ns),
    };
    true
}

/// Has the run that begins now, or goes on, deviate so.
pub fn set_deviations(all: &[Deviation]) {
    let mut s = state();
    s.deviations = all.iter().map(|d| ((d.path, d.op), d.kind)).collect();
}

/// Notes the operations of this run.
pub fn set_profile() {
    state().profile = Some(Vec::new());
}

/// Tells the operations of this run.
pub fn set_story() {
    state().story = Some(Vec::new());
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The exit status.
    pub status: i32,
    /// It ended since nobody could run, and nothing was waited for.
    pub deadlock: bool,
    /// A hash of all operations in their order. Two runs are the same if these are.
    pub hash: u64,
    pub ops: u64,
    /// Virtual nanoseconds.
    pub took: i64,
    /// Deviations that were taken.
    pub taken: u32,
}

/// This run, which ends with `status`.
fn run(status: i32, deadlock: bool) -> Run {
    let s = state();
    Run {
        status,
        deadlock,
        hash: s.hash,
        ops: s.ops,
        took: now(),
        taken: s.taken.len() as u32,
    }
}

/// Nobody can run, no timer is set, and nothing from outside is waited for: tells who waits where, and ends the emulator.
pub fn deadlock() -> ! {
    let text = report::deadlock();
    crate::report::to_stderr(&text);
    fork::ended(1, true);
    // SAFETY: no return; this is the only thread.
    unsafe { libc::_exit(1) }
}

/// The receiver of a message, or whoever a term names, as a number.
pub(crate) fn pid_number(t: Term) -> u64 {
    if t.is_local_pid() {
        return t.raw();
    }
    if t.is_atom() {
        return crate::process::registry::whereis(t).map_or(t.raw(), |p| p.raw());
    }
    match t.as_ref_view() {
        Some(purlin_term::layout::RefView::Local { pid: Some(p), .. }) => p.raw(),
        _ => 0,
    }
}

/// The operations of this run, if they were noted.
fn profile() -> Vec<Op> {
    state().profile.take().unwrap_or_default()
}

/// The operations of this run as text, if they were told.
fn story() -> Vec<report::Line> {
    state().story.take().unwrap_or_default()
}
