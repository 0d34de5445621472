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

pub mod back;
pub mod deviation;
pub mod folder;
pub mod fork;
pub mod given;
pub(crate) mod modules;
pub mod ops;
pub(crate) mod outside;
pub mod plan;
mod quiet;
pub mod record;
pub mod report;
pub mod sample;
pub mod told;
mod trunk;
mod way;
pub mod who;
mod wrote;

use crate::code;
use crate::cx::Cx;
use crate::os::{single, tape};
use crate::process::{NO_ID, Process, WAITING, table};
use crate::sched::{DIRTY_CPU, DIRTY_IO, QUEUES};
use ops::Touch;
use purlin_native::hashing::Hashing;
use purlin_term::{Term, atom};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{LazyLock, Mutex, MutexGuard};

pub use crate::os::single::{now, on, started};
pub use deviation::{Deviation, Kind, Op, Sampling};

/// For how long a process stops at most that stops until nobody else can run, in nanoseconds of virtual time.
const LAST_AT_MOST: i64 = 50_000_000;

/// Operations in a row that change nothing, after which who stops until nobody else can run goes on: somebody asks again and again for
/// what it is to do.
const IN_VAIN: u32 = 500;

/// Operations from this number on are wakes: a process that waited has become ready. The number below it counts them.
pub const WAKE: u32 = 1 << 31;

/// Operations of a process before its first of the program's own code have numbers below.
const OWN: u32 = 1 << 20;

/// A process that is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    No,
    /// Until nobody else can run, or until that time (somebody may ask again and again for what it is to do); those who stopped
    /// earlier go first.
    Last(u64, i64),
    Until(i64),
    /// As `Last`, or until that operation is done.
    After(u64, i64, u64, u32),
}

/// What is known of a process.
struct Known {
    id: u32,
    path: u64,
    ops: u32,
    children: u64,
    /// The program's own code runs in it, or has made it.
    program: bool,
    /// The same, as far as this run has shown it.
    shown: bool,
    /// The operation at which it resumes was asked about already.
    passing: bool,
    hold: Hold,
    /// When it did its last operation.
    last: i64,
    /// How often it has become ready after it waited.
    wakes: u32,
    /// What it is about to do, if it has stopped there; its priority for a sampler.
    pending: Option<Touch>,
    priority: u64,
    /// Its operation is the program's own, which is known only where somebody asks.
    own: bool,
    /// It has stopped at a receive, which it begins anew: if it comes there again it waits.
    again: bool,
    /// What it does is done for the program: see [`outside`].
    serves: bool,
    /// The process that it is about to make is the program's.
    begins: bool,
    /// The program's own code has come to an operation in it: see [`State::comes_to_own`].
    counted: bool,
    /// The operation that it is about to do is counted in the account: see [`record`].
    outside: bool,
}

/// A process that is ready, and whether it is for a native that may block.
pub type Ready = (u32, bool);

#[derive(Default)]
struct State {
    /// By cell: those that are walked over draw in this order.
    known: BTreeMap<u32, Known>,
    ready: VecDeque<Ready>,
    deviations: HashMap<(u64, u32), Kind, Hashing>,
    /// Deviations that were taken, in order.
    taken: Vec<Deviation>,
    stops: u64,
    hash: u64,
    /// The same, of operations of the program alone: a replay has the same where how the program is compiled is another.
    own_hash: u64,
    /// The program's own code has come to an operation.
    at_work: bool,
    ops: u64,
    /// Operations are noted for a profile of the base.
    profile: Option<Vec<Op>>,
    /// The function before whose first operation nothing is tried: module, function, arity. None: it has begun.
    from: Option<(Term, Term, u32)>,
    /// A runner of tests has begun with them, as far as a profile of the base shows it.
    tests: bool,
    /// Operations are told as text.
    story: Option<Vec<report::Line>>,
    running: u32,
    /// Paths of processes that are the program's own in the base.
    programs: BTreeSet<u64>,
    /// Operations are noted, or held against those of a file; where they differ first.
    steps: given::Steps,
    another_way: Option<String>,
    sampler: Option<sample::Sampler>,
    /// Has the next turn, and the others wait for it: what it stopped for has been done.
    handed: Option<u32>,
    /// Processes that have stopped until somebody has done something, at most.
    awaits: usize,
    /// Operations in a row that changed nothing, as far as it is known; those among them that may have, by process and operation.
    in_vain: u32,
    again: HashSet<(u64, Touch), Hashing>,
    outside: outside::Account,
    drawn: Option<deviation::Numbers>,
    quiet: quiet::Quiet,
    who: who::Who,
    /// Variables of the environment that the run has set.
    put: HashSet<u64, Hashing>,
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
    purlin_native::bif::enter_by(record::entry);
    single::begin(
        started,
        |status| fork::ended(status, Stuck::No),
        ends,
        timer_sends,
    );
}

/// A process ends with that reason, and nobody has been told yet.
fn ends(pid_data: u32, reason: Term) {
    back::ends(pid_data);
    let mut s = state();
    if s.story.is_none() {
        return;
    }
    let Some(k) = s.known.values().find(|k| k.id == pid_data && k.program) else {
        return;
    };
    let line = report::ends(k.path, pid_data, reason);
    s.tells(line);
}

/// A timer sends that to a process.
fn timer_sends(to: Term, message: Term) {
    let mut s = state();
    if s.story.is_none() {
        return;
    }
    let known = s
        .known
        .values()
        .find(|k| Term::pid(k.id) == to && k.program);
    let Some(path) = known.map(|k| k.path) else {
        return;
    };
    let line = report::timer_sends(path, to, message);
    s.tells(line);
}

/// A receive of the process in `cx` ends at `pc`, since nothing has come in time.
pub fn time_is_over(cx: &mut Cx, pc: *const u64) {
    let mut s = state();
    if s.story.is_none() {
        return;
    }
    let cell = table().index(cx.process() as *const Process);
    let k = s.known(cell);
    if k.program {
        let line = report::time_is_over(cx, pc, k.path);
        s.tells(line);
    }
}

fn mixed(h: u64, n: u64) -> u64 {
    (h ^ n)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
        .wrapping_add(n)
}

impl State {
    /// What is known of the process in a cell; a new one gets its path.
    fn known(&mut self, cell: u32) -> &mut Known {
        let p = table().cell(cell);
        // SAFETY: cells are never unmapped; only this thread writes them.
        let (id, parent) = unsafe { ((*p).id.load(Ordering::Relaxed), (*p).parent) };
        if self.known.get(&cell).is_none_or(|k| k.id != id) {
            let by = self
                .known
                .values_mut()
                .find(|k| k.id == parent && parent != id);
            let (path, program, shown, serves) = match by {
                Some(k) => {
                    k.children += 1;
                    let begins = std::mem::take(&mut k.begins);
                    let path = mixed(k.path, k.children);
                    (path, k.program || begins, k.shown || begins, k.serves)
                }
                None => (mixed(1, u64::from(id)), false, false, false),
            };
            let program = program || self.programs.contains(&path);
            if self.story.is_some() {
                self.who.comes(id, parent);
            }
            let priority = self.sampler.as_mut().map_or(u64::MAX, |s| s.begins(path));
            self.known.insert(
                cell,
                Known {
                    id,
                    path,
                    ops: 0,
                    children: 0,
                    program,
                    shown,
                    passing: false,
                    hold: Hold::No,
                    last: now(),
                    wakes: 0,
                    pending: None,
                    priority,
                    own: false,
                    again: false,
                    serves,
                    begins: false,
                    counted: false,
                    outside: false,
                },
            );
        }
        self.known.get_mut(&cell).expect("just made")
    }
}

/// Takes those that have become ready from the queues.
pub(crate) fn collect() {
    back::deliver_due();
    let some = std::iter::from_fn(|| QUEUES.next(0, None)).map(|c| (c, false));
    let dirty = std::iter::from_fn(|| {
        DIRTY_IO
            .pool
            .try_take()
            .or_else(|| DIRTY_CPU.pool.try_take())
    });
    add_ready(some.chain(dirty.map(|c| (c, true))));
}

/// Processes that have become ready, in that order.
fn add_ready(cells: impl Iterator<Item = Ready>) {
    for (cell, dirty) in cells {
        let mut s = state();
        let running = s.running;
        let k = s.known(cell);
        let waited = cell != running && k.pending.is_none() && !dirty;
        // They are counted though nobody knows yet that it is the program's: the count is the same in all runs.
        k.wakes += u32::from(waited);
        let program = k.program;
        s.ready.push_back((cell, dirty));
        if waited && program {
            drop(s);
            wakes(cell);
        }
    }
}

/// A process of the program that waited, or is new, has become ready.
fn wakes(cell: u32) {
    let mut s = state();
    let k = s.known(cell);
    let (path, op) = (k.path, WAKE | k.wakes);
    let touch = Touch::wake(k.id);
    if s.profile.is_some() {
        // Whoever has woken it may go on first.
        let running = s.running;
        let by = s.known.get(&running).is_some_and(|k| k.program);
        let (others, due) = (s.others(cell) + u32::from(by), crate::timer::next_due());
        let begun = s.from.is_none();
        let tests = s.tests;
        if let Some(v) = &mut s.profile {
            v.push(Op {
                path,
                op,
                touch,
                own: true,
                code: false,
                begun,
                others,
                served: others > 0,
                tests,
                at: now(),
                due,
                lasts: false,
            });
        }
    }
    drop(s);
    let Some(kind) = kind_at(path, op) else {
        return;
    };
    let mut s = state();
    if let Some(hold) = s.deviates(path, op, kind) {
        let line = s
            .story
            .is_some()
            .then(|| report::wake(cell, path, op, touch, kind));
        if let Some(l) = line {
            s.tells(l);
        }
        s.known(cell).hold = hold;
    }
}

/// What happens at that operation, if anything does. Where schedules begin here they are forked.
fn kind_at(path: u64, op: u32) -> Option<Kind> {
    match fork::at(path, op) {
        Some(kind) => Some(kind),
        None => state().deviations.get(&(path, op)).copied(),
    }
}

impl State {
    /// The run does that operation: it is noted, or held against what was to come. `told`: what it is, as text.
    fn steps_to(&mut self, path: u64, native: u16, told: impl FnOnce() -> String) {
        let Some((at, was)) = self.steps.does(given::Step { path, native }) else {
            return;
        };
        let expected = was.map_or("the end of the program".into(), |w| {
            let by = self.known.values().find(|k| k.path == w.path);
            let by = by.map_or("a process that is not there".into(), |k| report::pid(k.id));
            format!("{} from {by}", given::name(w.native))
        });
        self.another_way.get_or_insert(format!(
            "at operation {at}: expected {expected}, got {}",
            told()
        ));
    }
    /// A line of the story, if this run is told: none for what goes on for long without a move.
    fn tells(&mut self, line: report::Line) {
        if self.quiet.is_long(now()) || (line.happens && !self.who.is_own(&line.pid)) {
            return;
        }
        if let Some(v) = &mut self.story {
            self.who.tells(&line);
            v.push(line);
        }
    }
    /// The program's own code comes to an operation in that process. What the process does from here on is counted anew: how long the program is, and
    /// what was done to compile it, makes no difference.
    fn comes_to_own(&mut self, cell: u32) {
        let k = self.known(cell);
        if std::mem::replace(&mut k.counted, true) {
            return;
        }
        (k.ops, k.wakes, k.children) = (OWN, OWN, u64::from(OWN));
        self.at_work = true;
    }
    /// Processes of the program that could run instead of that one.
    fn others(&self, cell: u32) -> u32 {
        let can = |c: &u32| {
            *c != cell
                && self
                    .known
                    .get(c)
                    .is_some_and(|k| k.program && k.hold == Hold::No)
        };
        self.ready.iter().filter(|(c, _)| can(c)).count() as u32
    }
    /// Whether another process than that one is ready, or runs, that does what the program has asked for.
    fn serving(&self, cell: u32) -> bool {
        let serves = |c: &u32| {
            *c != cell
                && self
                    .known
                    .get(c)
                    .is_some_and(|k| k.serves && k.hold == Hold::No)
        };
        self.ready.iter().any(|(c, _)| serves(c))
    }
    /// A process deviates from the base: how it is held, if it is.
    fn deviates(&mut self, path: u64, op: u32, kind: Kind) -> Option<Hold> {
        self.stops += 1;
        self.taken.push(Deviation { path, op, kind });
        self.hash = mixed(self.hash, 0xDE71A7E);
        self.own_hash = mixed(self.own_hash, 0xDE71A7E);
        let until = now() + LAST_AT_MOST;
        match kind {
            Kind::Last => Some(Hold::Last(self.stops, until)),
            Kind::Back => None,
            Kind::Stall(ns) => Some(Hold::Until(now() + ns)),
            Kind::After(p, o) => {
                self.awaits += 1;
                Some(Hold::After(self.stops, until, p, o))
            }
            Kind::Sample(sampling, seed) => {
                let mut sampler = sample::Sampler::new(sampling, seed);
                for k in self.known.values_mut() {
                    k.priority = sampler.begins(k.path);
                    // A run that is told knows it already, one of a search does not.
                    k.own = false;
                }
                self.sampler = Some(sampler);
                None
            }
        }
    }
}

/// The process that runs next: the first that is not stopped; with a sampler, the one that it puts first. None: all that are ready
/// are stopped, or none is.
pub fn next() -> Option<Ready> {
    let mut s = state();
    let now = now();
    let handed = s.handed.take();
    let State {
        ready,
        known,
        sampler,
        ..
    } = &mut *s;
    let goes = |c: &u32| match known.get(c) {
        Some(k) => match k.hold {
            Hold::No => true,
            Hold::Until(t) | Hold::Last(_, t) | Hold::After(_, t, ..) => t <= now,
        },
        None => true,
    };
    let at = match handed.and_then(|h| ready.iter().position(|(c, _)| *c == h)) {
        Some(at) => at,
        None if sampler.is_some() => {
            // The highest priority; among equals the first. Whoever is at no operation goes on to one.
            let priority = |c: &u32| match known.get(c) {
                Some(k) if k.pending.is_some() => k.priority,
                _ => u64::MAX,
            };
            let all = ready.iter().enumerate().filter(|(_, (c, _))| goes(c));
            all.max_by_key(|(i, (c, _))| (priority(c), usize::MAX - i))?
                .0
        }
        None => ready.iter().position(|(c, _)| goes(c))?,
    };
    let r = ready.remove(at)?;
    if let Some(k) = s.known.get_mut(&r.0) {
        k.hold = Hold::No;
    }
    s.running = r.0;
    Some(r)
}

/// Lets the process go on that stopped first until nobody else could run: nobody else can. False: there is none.
pub fn release_last() -> bool {
    state().release_last()
}

/// When the first process goes on that is stopped for some time, in nanoseconds of virtual time.
pub fn next_release() -> Option<i64> {
    state().next_release()
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

/// Whether a process is one of OTP's two that find code: what they have to do follows from the files that lie in the folders of the
/// code path, one of which is the current folder, so it takes no virtual time, and is done in one go.
pub fn finds_code(cell: u32) -> bool {
    static NAMES: LazyLock<[Term; 2]> =
        LazyLock::new(|| ["code_server", "erl_prim_loader"].map(atom::intern));
    // SAFETY: cells are never unmapped.
    let id = unsafe { (*table().cell(cell)).id.load(Ordering::Relaxed) };
    let is = |n: &Term| crate::process::registry::whereis(*n) == Some(Term::pid(id));
    id != NO_ID && NAMES.iter().any(is)
}

/// The process in `cell` has run, and may have ended. `finds_code`: what [`finds_code`] said before.
pub fn ran(cell: u32, finds_code: bool) {
    let mut s = state();
    s.running = u32::MAX;
    let p = table().cell(cell);
    // SAFETY: cells are never unmapped, and this is the only thread.
    let (id, waits) = unsafe { ((*p).id.load(Ordering::Relaxed), (*p).flags & WAITING != 0) };
    let Some(k) = s.known.get_mut(&cell) else {
        return;
    };
    k.serves &= !waits;
    let goes_on = finds_code && !waits && k.id == id && k.hold == Hold::No;
    let ended = (k.id != id).then_some((k.path, k.ops + 1, k.id));
    if goes_on {
        s.handed.get_or_insert(cell);
    }
    if let Some((path, op, was)) = ended {
        if id == NO_ID {
            s.known.remove(&cell);
        }
        s.hash = mixed(s.hash, path ^ 0xE4D);
        if s.at_work && s.programs.contains(&path) {
            s.own_hash = mixed(s.own_hash, path ^ 0xE4D);
            s.steps_to(path, ops::END, || {
                format!("the end of {}", report::pid(was))
            });
        }
        if let Some(v) = &mut s.profile {
            v.push(Op {
                path,
                op,
                touch: Touch::end(was),
                own: false,
                code: false,
                begun: false,
                others: 0,
                served: false,
                tests: false,
                at: now(),
                due: i64::MAX,
                lasts: false,
            });
        }
    }
}

/// The process that runs in `cx` is about to do something that others may see. True: it stops here, and does it when it runs again;
/// the caller has it yield. `pc`: the instruction.
pub fn asks(cx: &mut Cx, pc: *const u64, what: ops::What) -> bool {
    let cell = table().index(cx.process() as *const Process);
    if back::any() {
        back::before(cx.process().pid().pid_data(), &what.touch(cx));
    }
    collect();
    let mut s = state();
    let k = s.known(cell);
    if std::mem::take(&mut k.passing) {
        let (path, op) = (k.path, k.ops);
        k.pending = None;
        if s.story.is_some() {
            let touch = what.touch(cx);
            let line = report::line(cx, pc, &what, path, op, touch);
            s.tells(line);
        }
        let touch = what.touch(cx);
        s.does(cell, path, op, touch);
        return false;
    }
    k.pending = None;
    if std::mem::take(&mut k.again) && what == ops::What::Receive {
        let (path, op) = (k.path, k.ops);
        let touch = what.touch(cx);
        s.does(cell, path, op, touch);
        return false;
    }
    let (path, program, shown) = (k.path, k.program, k.shown);
    // What a program's own code has not yet run in is no program's in the account, whatever comes of it later.
    let account = s.profile.is_some() || s.story.is_some() || tape::is_on();
    // A run that is held against another looks where that one, which was told, has looked.
    let looks = s.sampler.is_some() || account || s.steps.are_held();
    let (mut own, mut code) = (false, false);
    if looks || s.programs.contains(&path) {
        (own, code) = report::is_own(cx, pc, program);
    }
    if code {
        s.comes_to_own(cell);
    }
    let k = s.known(cell);
    k.ops += 1;
    k.last = now();
    k.outside = false;
    let begins = !program && report::begins_program(cx, what.row());
    let k = s.known(cell);
    k.begins = begins;
    let (path, op) = (k.path, k.ops);
    let touch = what.touch(cx);
    s.ops += 1;
    s.quiet.does(pc as usize, now());
    let of_op = u64::from(op) << 16 | u64::from(touch.native);
    s.hash = mixed(mixed(s.hash, path), of_op);
    if own && s.at_work {
        // Their numbers are not in it: a process may also compile between two of them.
        s.own_hash = mixed(mixed(s.own_hash, path), u64::from(touch.native));
        s.steps_to(path, touch.native, || {
            let l = report::line(cx, pc, &what, path, op, touch);
            let place = l.place.map_or(String::new(), |p| format!(" at {p}"));
            format!("{} from {}{place}", l.call, l.pid)
        });
    }
    let mut lasts = false;
    if looks {
        let k = s.known(cell);
        k.program |= code;
        k.shown |= code;
        k.own = own;
        let serves = k.serves;
        if account {
            let counted = s.accounts(cx, pc, code || (own && shown), serves, touch);
            s.known(cell).outside = counted.is_some();
            lasts = counted.is_some_and(outside::Kind::lasts);
        }
    }
    if let Some(from) = s.from.filter(|_| s.profile.is_some())
        && report::is_within(cx, pc, from)
    {
        s.from = None;
    }
    s.tests |= s.profile.is_some() && !s.tests && report::runs_tests(cx, pc);
    if s.profile.is_some() {
        let (others, due) = (s.others(cell), crate::timer::next_due());
        let served = others > 0 || s.serving(cell);
        let begun = s.from.is_none();
        let tests = s.tests;
        if let Some(v) = &mut s.profile {
            v.push(Op {
                path,
                op,
                touch,
                own,
                code,
                begun,
                others,
                served,
                tests,
                at: now(),
                due,
                lasts,
            });
        }
    }
    let mut told = false;
    if s.story.is_some() {
        let line = report::line(cx, pc, &what, path, op, touch);
        if ops::makes(touch.native) {
            let role = report::role(cx, touch.native);
            s.who.makes(cx.process().pid().pid_data(), role, &line);
        }
        told = !s.quiet.is_long(now());
        s.tells(line);
    }
    drop(s);
    let kind = kind_at(path, op);
    let mut s = state();
    let hold = match kind {
        Some(kind) => {
            if let Some(v) = &mut s.story
                && let Some(l) = v.last_mut().filter(|_| told)
            {
                l.stopped = Some(kind);
            }
            if kind == Kind::Back {
                back::next_of(cx.process().pid().pid_data());
            }
            s.deviates(path, op, kind)
        }
        None => None,
    };
    own &= !matches!(kind, Some(Kind::Sample(..)));
    let mut stops = hold;
    if stops.is_none() && s.handed.is_some_and(|c| c != cell) {
        // Somebody waited for what this process did last.
        stops = Some(Hold::No);
    }
    if stops.is_none() && own && s.samples(cell, touch) {
        stops = Some(Hold::No);
    }
    let Some(hold) = stops else {
        s.does(cell, path, op, touch);
        return false;
    };
    // Of what a process does again from the start it is asked anew.
    let again = matches!(what, ops::What::Receive);
    let k = s.known(cell);
    k.passing = !again;
    k.again = again;
    k.pending = Some(touch);
    k.hold = hold;
    true
}

impl State {
    /// Enters an operation in the account, if it is done by the program or for it, and has whoever is sent something by it serve the
    /// program. Some: of which kind it is, if it is counted.
    fn accounts(
        &mut self,
        cx: &Cx,
        pc: *const u64,
        own: bool,
        serves: bool,
        touch: Touch,
    ) -> Option<outside::Kind> {
        let kind = outside::kind(cx, touch.native);
        if ops::sets_variable(touch.native) {
            self.put.insert(touch.key);
        }
        // What the run itself has put there is decided by the seed.
        if kind == Some(outside::Kind::Variable) && self.put.contains(&touch.key) {
            return None;
        }
        let sends = ops::sends(touch.native);
        if kind.is_none() && !sends {
            return None;
        }
        let theirs = own || (serves && report::makes_nothing(cx, pc));
        if let Some(kind) = kind.filter(|k| theirs || *k == outside::Kind::Node) {
            self.outside.count(kind, "");
            return Some(kind);
        }
        if sends && theirs {
            let to = touch.object;
            if let Some(k) = self
                .known
                .values_mut()
                .find(|k| Term::pid(k.id).raw() == to)
            {
                k.serves = true;
            }
        }
        None
    }
    /// Whether a process stops before an operation for others, since a sampler puts one of them first.
    fn samples(&mut self, cell: u32, touch: Touch) -> bool {
        let path = self.known(cell).path;
        let State {
            ready,
            known,
            sampler,
            ..
        } = self;
        let Some(sampler) = sampler else { return false };
        let Some(mine) = sampler.comes(path, touch) else {
            return false;
        };
        let mut best = 0;
        for (c, dirty) in ready.iter() {
            let Some(k) = known.get_mut(c).filter(|k| k.program && k.hold == Hold::No) else {
                continue;
            };
            if *dirty {
                continue;
            }
            match k.pending {
                Some(_) => {
                    if sampler.redraws() {
                        k.priority = sampler.draw();
                    }
                    best = best.max(k.priority);
                }
                None => best = u64::MAX,
            }
        }
        let k = self.known(cell);
        k.priority = mine;
        best > mine
    }
    fn next_release(&self) -> Option<i64> {
        let of = |c: &u32| match self.known.get(c)?.hold {
            Hold::Until(t) => Some(t),
            _ => None,
        };
        self.ready.iter().filter_map(|(c, _)| of(c)).min()
    }
    fn release_last(&mut self) -> bool {
        let State { ready, known, .. } = self;
        let first = ready
            .iter()
            .filter_map(|(c, _)| match known.get(c)?.hold {
                Hold::Last(n, _) | Hold::After(n, ..) => Some((n, *c)),
                _ => None,
            })
            .min();
        let Some((_, cell)) = first else { return false };
        if let Some(k) = known.get_mut(&cell) {
            k.hold = Hold::No;
        }
        true
    }
    /// A process does an operation now.
    fn does(&mut self, cell: u32, path: u64, op: u32, touch: Touch) {
        if self.sampler.is_some() {
            let k = self.known(cell);
            let (own, serves) = (k.own, k.serves);
            let State { known, sampler, .. } = self;
            if let Some(s) = sampler.as_mut().filter(|_| serves && !own) {
                // Nothing is drawn by it: only runs that are told know who serves.
                s.order.push((path, op));
            }
            if let Some(s) = sampler.as_mut().filter(|_| own) {
                s.done(path, op, touch);
                for k in known.values_mut() {
                    if let Some(t) = &k.pending
                        && s.draws_after(t, &touch)
                    {
                        k.priority = s.draw();
                    }
                }
            }
        }
        // Of who asks for a lock again and again only the first time counts as a change.
        let changes =
            touch.changes && (!ops::may_fail(touch.native) || self.again.insert((path, touch)));
        self.in_vain = if changes { 0 } else { self.in_vain + 1 };
        if self.in_vain >= IN_VAIN {
            self.in_vain = 0;
            self.again.clear();
            // Or for what is late, or waits for a timer: the time until then passes.
            if !self.release_last()
                && let Some(t) = self.next_release()
            {
                single::jump(t.min(crate::timer::next_due()));
            }
        }
        let id = self.known(cell).id;
        back::done(id, &touch);
        let waits = |k: &Known| matches!(k.hold, Hold::After(_, _, p, o) if (p, o) == (path, op));
        if self.awaits > 0
            && let Some((c, k)) = self.known.iter_mut().find(|(_, k)| waits(k))
        {
            k.hold = Hold::No;
            self.handed = Some(*c);
            self.awaits -= 1;
        }
    }
}

/// Has the run that begins now, or goes on, deviate so.
pub fn set_deviations(all: &[Deviation]) {
    let mut s = state();
    s.deviations = all.iter().map(|d| ((d.path, d.op), d.kind)).collect();
}

/// Bytes at random for a program that asks a library for them.
pub fn random_bytes(n: usize) -> Vec<u8> {
    let mut s = state();
    let numbers = s
        .drawn
        .get_or_insert(deviation::Numbers(single::started() as u64));
    let mut v = Vec::with_capacity(n + 8);
    while v.len() < n {
        v.extend(numbers.draw().to_le_bytes());
    }
    v.truncate(n);
    v
}

/// The function of a library in C at `pc` runs: it is the program's, or runs for it.
pub fn library(cx: &mut Cx, pc: *const u64) {
    let mut s = state();
    if s.profile.is_none() && s.story.is_none() {
        return;
    }
    let Some(at) = code::find(pc) else { return };
    let module = atom::name(at.module);
    let Some(kind) = outside::library(module, atom::name(at.function)) else {
        return;
    };
    let k = s.known(table().index(cx.process() as *const Process));
    let (shown, serves) = (k.shown, k.serves);
    if report::is_own(cx, pc, shown || serves).0 {
        s.outside.count(kind, module);
    }
}

/// The operations whose order a sampler has chosen.
pub fn sampled() -> Vec<(u64, u32)> {
    state().sampler.take().map_or(Vec::new(), |s| s.order)
}

/// Nothing is tried before the first operation of this function, or of what it calls.
fn set_from(name: &(String, String, u32)) {
    let (m, f, a) = name;
    state().from = Some((atom::intern(m), atom::intern(f), *a));
}

/// Notes the operations of this run.
pub fn set_profile() {
    state().profile = Some(Vec::new());
}

/// Tells the operations of this run.
pub fn set_story() {
    state().story = Some(Vec::new());
}

/// What a run has come to.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The exit status.
    pub status: i32,
    /// It ended since nothing would have come any more.
    pub stuck: Stuck,
    /// Of all operations in their order. Two runs are the same if these are.
    pub hash: u64,
    /// The same, of the program's own.
    pub own_hash: u64,
    pub ops: u64,
    /// Virtual nanoseconds.
    pub took: i64,
    /// Deviations that were taken.
    pub taken: u32,
    /// What the program did that no seed decides, where the run was to tell its operations.
    pub outside: outside::Account,
    /// The longest virtual time in which nothing moved but timers: see [`quiet`].
    pub quiet: i64,
    /// What has failed in it: see [`way`].
    pub ways: BTreeSet<u64>,
}

/// Whether a run has ended by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stuck {
    /// It has.
    #[default]
    No,
    /// Nobody could run, and nothing was waited for.
    Deadlock,
    /// Nothing but timers moved.
    Hang,
}

impl Stuck {
    /// That of such a number.
    fn of(text: &str) -> Option<Stuck> {
        Some(match text {
            "0" => Stuck::No,
            "1" => Stuck::Deadlock,
            "2" => Stuck::Hang,
            _ => return None,
        })
    }
}

impl Run {
    /// Whether nothing has failed.
    pub fn passes(&self) -> bool {
        self.status == 0 && self.stuck == Stuck::No
    }
}

/// This run, which ends with `status`.
fn run(status: i32, stuck: Stuck) -> Run {
    let s = state();
    Run {
        // Of more than these the system does not tell whoever waits for a program.
        status: status & 0xFF,
        stuck,
        hash: s.hash,
        own_hash: s.own_hash,
        ops: s.ops,
        took: now(),
        taken: s.taken.len() as u32,
        outside: s.outside.clone(),
        quiet: s.quiet.longest(now()),
        ways: BTreeSet::new(),
    }
}

/// Nobody can run, no timer is set, and nothing from outside is waited for: tells who waits where, and ends the emulator.
pub fn deadlock() -> ! {
    is_stuck_so(
        Stuck::Deadlock,
        "deadlock: no process can run, and nothing is awaited that would wake one",
    )
}

/// Whether nothing has moved but timers, for so long that nothing else will.
pub fn hangs() -> bool {
    state().quiet.jumps(now())
}

/// Nothing but timers moves: tells who waits where, and ends the emulator.
pub fn hang() -> ! {
    let seconds = state().quiet.most() / 1_000_000_000;
    is_stuck_so(
        Stuck::Hang,
        &format!("hang: nothing but timers that repeat has moved for {seconds} s of virtual time"),
    )
}

fn is_stuck_so(how: Stuck, what: &str) -> ! {
    let text = report::waiting(what);
    crate::report::to_stderr(&text);
    fork::ended(1, how);
    // SAFETY: no return; this is the only thread.
    unsafe { libc::_exit(1) }
}

/// The operations of this run, if they were noted.
fn profile() -> Vec<Op> {
    state().profile.take().unwrap_or_default()
}

/// All runs that are forked from now on are given this.
fn lay_down(given: &given::Given) {
    let mut s = state();
    s.programs = given.programs.clone();
    s.quiet.set_most(given.quiet);
    drop(s);
    sample::set_shown(given.shown.clone());
}

/// Notes the operations of the run that begins now, or holds them against those of a file.
fn set_steps(expected: Option<Vec<given::Step>>) {
    state().steps = match expected {
        None => given::Steps::Noted(Vec::new()),
        Some(expected) => given::Steps::Held { expected, next: 0 },
    };
}

/// This run has gone another way than the one that it is held against.
fn goes_another_way(how: String) {
    state().another_way.get_or_insert(how);
}

/// What the operations of this run tell a file, or where they differ from those of one.
fn steps() -> String {
    let mut s = state();
    if let Some(way) = s.another_way.take() {
        return format!("another {}\n", way.replace('\n', " "));
    }
    match std::mem::take(&mut s.steps) {
        given::Steps::Off => String::new(),
        given::Steps::Noted(v) => given::steps_text(&v),
        given::Steps::Held { expected, next } => match expected.get(next) {
            None => String::new(),
            Some(e) => format!(
                "another at operation {}: expected {}, got the end of the program\n",
                next + 1,
                given::name(e.native)
            ),
        },
    }
}

/// Who the processes of this run are, as lines, if it was told.
fn who() -> String {
    state().who.lines()
}

/// The operations of this run as text, if they were told.
fn story() -> Vec<report::Line> {
    state().story.take().unwrap_or_default()
}
