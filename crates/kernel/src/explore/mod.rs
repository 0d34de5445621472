//! The kernel's side of the race finder: the calls of the [explorer](purlin_explore), and the
//! answers to its questions that need terms, stacks and processes. Search, strategies and files are
//! in `crates/explore`.
//!
//! One thread runs everything in this mode (`threads/single.rs`), so the emulator can be forked.
//!
//! # Invariants
//! * Nothing here is called while the mode is off.
//! * Everything here is called by one thread.
//! * No implementation of the explorer's traits locks the explorer: it is locked while it asks.

mod deadlock;
pub mod far;
pub mod held;
mod lines;
pub(crate) mod modules;
pub mod operations;
mod outside;
pub mod overtaken;
pub mod recorded;
pub mod stack;
mod system;

use crate::code;
use crate::cx::Cx;
use crate::os::{exploring, world};
use crate::process::{NO_ID, Process, WAITING, registry, table};
use crate::sched::{DIRTY_CPU, DIRTY_IO, QUEUES};
use operations::What;
use purlin_explore::account::{self, Kind};
use purlin_explore::deviation::Sampling;
use purlin_explore::explorer::Ready;
use purlin_explore::failing::{Call, Reason};
use purlin_explore::file::Replay;
use purlin_explore::kernel::{Function, Kernel, Operation};
use purlin_explore::operation::{Point, Touch};
use purlin_explore::run::Stuck;
use purlin_explore::story::Line;
use purlin_explore::{Explorer, Search};
use purlin_term::{Term, atom};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

static EXPLORER: Mutex<Option<Explorer>> = Mutex::new(None);

/// The explorer, behind its lock.
struct Locked(MutexGuard<'static, Option<Explorer>>);

impl std::ops::Deref for Locked {
    type Target = Explorer;
    fn deref(&self) -> &Explorer {
        self.0.as_ref().expect("the mode is on")
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Explorer {
        self.0.as_mut().expect("the mode is on")
    }
}

fn explorer() -> Locked {
    Locked(EXPLORER.lock().unwrap_or_else(|e| e.into_inner()))
}

/// Turns the mode on, before anything runs. `started`: the wall clock at the start, in nanoseconds
/// since 1970.
pub fn begin(started: i64) {
    let explorer = Explorer::new(&Emulator, &system::Unix, started);
    *EXPLORER.lock().unwrap_or_else(|e| e.into_inner()) = Some(explorer);
    purlin_native::ids::begin_at(started as u64);
    let _ = code::load::MADE_BEFORE.set(modules::take);
    purlin_native::bif::enter_by(recorded::entry);
    exploring::begin(
        started,
        exploring::Hooks {
            ended: |status| ended(status, Stuck::No),
            process_ends,
            timer_sends,
        },
    );
}

/// Searches for a schedule that fails. Returns in a run of the program.
pub fn search(s: &Search) {
    explorer().search(s);
}

/// Repeats a schedule. Returns in the run of the program.
pub fn replay(r: Replay) {
    explorer().replay(r);
}

/// Returns the cell of the process in `cx`.
fn cell_of(cx: &mut Cx) -> u32 {
    table().index(cx.process() as *const Process)
}

/// The program makes a system call of that kind. Some: it fails, for that reason.
fn fails(call: Call) -> Option<Reason> {
    explorer().call(call)
}

/// The run ends.
fn ended(status: i32, stuck: Stuck) {
    tell_order();
    let mut explorer = explorer();
    world::ended(status, explorer.hash());
    explorer.ended(status, stuck);
}

/// Seeds the random bytes that the program gets.
pub fn set_random(seed: u64) {
    explorer().set_random(seed);
}

/// A process ends, and no other process knows yet.
fn process_ends(id: u32, reason: Term) {
    held::end(id);
    explorer().event(id, |path| lines::end(path, id, reason));
}

/// A timer sends a message to a process.
fn timer_sends(to: Term, message: Term) {
    if to.is_local_pid() {
        let line = |path| lines::timer_message(path, to, message);
        explorer().event(to.pid_data(), line);
    }
}

/// A receive of the process in `cx` ends at `pc`, since no message came in time.
pub fn timeout(cx: &mut Cx, pc: *const u64) {
    let id = cx.process().pid().pid_data();
    explorer().event(id, |path| lines::timeout(cx, pc, path));
}

/// Moves processes that have become ready from the run queues to the explorer.
pub(crate) fn collect() {
    held::deliver_due();
    overtaken::deliver_due();
    let some = std::iter::from_fn(|| QUEUES.next(0, None)).map(|c| (c, false));
    let dirty = std::iter::from_fn(|| {
        DIRTY_IO
            .pool
            .try_take()
            .or_else(|| DIRTY_CPU.pool.try_take())
    });
    for (cell, may_block) in some.chain(dirty.map(|c| (c, true))) {
        explorer().ready(cell, may_block);
    }
}

/// Returns the process that runs next. None: all that are ready have stopped, or none is ready.
pub fn next() -> Option<Ready> {
    explorer().next_process()
}

/// Lets a stopped process continue, or delivers messages that are held back, since no process can
/// run. False: there are none.
pub fn release() -> bool {
    let released = explorer().release_last();
    released || held::deliver_all()
}

/// Returns the virtual time at which the first stalled process continues, or a late message is
/// delivered.
pub fn next_release() -> Option<i64> {
    let of_process = explorer().next_release();
    of_process.into_iter().chain(overtaken::next()).min()
}

/// Whether no process without a registered name has done anything for long before that virtual
/// time.
pub fn is_stuck(ns: i64) -> bool {
    let named: Vec<u32> = registry::names()
        .into_iter()
        .filter_map(registry::whereis)
        .filter(|t| t.is_local_pid())
        .map(|t| t.pid_data())
        .collect();
    explorer().is_stuck(ns, |id| named.contains(&id))
}

/// Whether any process is ready, stopped or not.
pub fn is_ready() -> bool {
    explorer().is_ready()
}

/// Whether any process is ready that has not stopped.
pub fn is_runnable() -> bool {
    explorer().is_runnable()
}

/// Whether a process is one of OTP's two that find code. What they do depends on the files in the
/// folders of the code path, one of which is the current folder. So it takes no virtual time, and
/// is done in one go.
pub fn finds_code(cell: u32) -> bool {
    static NAMES: LazyLock<[Term; 2]> =
        LazyLock::new(|| ["code_server", "erl_prim_loader"].map(atom::intern));
    let id = Emulator.process(cell).0;
    let is = |n: &Term| registry::whereis(*n) == Some(Term::pid(id));
    id != NO_ID && NAMES.iter().any(is)
}

/// The process in a cell has run, and may have ended. `finds_code`: the result of [`finds_code`]
/// before.
pub fn ran(cell: u32, finds_code: bool) {
    // SAFETY: cells are never unmapped, and this is the only thread.
    let waits = unsafe { (*table().cell(cell)).flags & WAITING != 0 };
    explorer().ran(cell, waits, finds_code);
}

/// The process in `cx` is about to do an operation by the instruction at `pc`. True: it stops here,
/// and does it when it runs again.
pub fn before(cx: &mut Cx, pc: *const u64, what: What) -> bool {
    if held::any() {
        held::before(cx, what);
    }
    collect();
    let cell = cell_of(cx);
    let stops = explorer().before(cell, &mut Next { cx, pc, what });
    if world::is_on() {
        if HAS_ORDER.load(Ordering::Relaxed) {
            let switched = explorer().take_switch();
            if let Some(switched) = switched {
                far::switches(cx, pc, what, switched);
            }
        }
        if !stops && let Some(ns) = far::sends(cx, pc, what) {
            let until = exploring::now() + ns;
            explorer().pause(cell, until, &mut Next { cx, pc, what });
            return true;
        }
    }
    stops
}

/// The process in a cell, which has got a message from another node, stops for that time.
fn pause_receiver(cell: u32, ns: i64) {
    explorer().pause_waiting(cell, exploring::now() + ns);
}

/// Whether the process in `cx` belongs to the program, whatever it is doing.
fn is_program(cx: &mut Cx) -> bool {
    let cell = cell_of(cx);
    explorer().is_program(cell)
}

/// Whether this node, which is in a world, has an order of its processes.
static HAS_ORDER: AtomicBool = AtomicBool::new(false);

/// Tells the coordinator what processes have done, if a sampler picks them.
pub(crate) fn tell_order() {
    if HAS_ORDER.load(Ordering::Relaxed) {
        let order = explorer().take_order();
        if !order.is_empty() {
            world::tell_order(order);
        }
    }
}

/// Returns the switches of an order that names these.
fn switches(order: &str) -> Option<Vec<(Point, Point)>> {
    let mut words = order.strip_prefix("after ")?.split(' ');
    let mut all = Vec::new();
    while let Some(path) = words.next() {
        let at = (path.parse().ok()?, words.next()?.parse().ok()?);
        let awaited = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        all.push((at, awaited));
    }
    Some(all)
}

/// From here on, the processes of this node run in an order: see
/// [`purlin_world::protocol::Turn`].
pub(crate) fn set_order(order: &str) {
    HAS_ORDER.store(true, Ordering::Relaxed);
    if let Some(all) = switches(order) {
        return explorer().begin_switches(all.into_iter());
    }
    let read = || {
        let (name, seed) = order.split_once(' ')?;
        Some((Sampling::named(name)?, seed.parse().ok()?))
    };
    if let Some((name, seed)) = read() {
        explorer().begin_order(name, seed);
    }
}

/// The process in `cx` is about to call the function of a library in C at `pc`.
pub fn library_call(cx: &mut Cx, pc: *const u64) {
    let mut explorer = explorer();
    if !explorer.counts_libraries() {
        return;
    }
    let Some(at) = code::find(pc) else { return };
    let module = atom::name(at.module);
    let Some(kind) = account::library(module, atom::name(at.function)) else {
        return;
    };
    let cell = cell_of(cx);
    let is_own = |theirs| stack::owner(cx, pc, theirs).0;
    explorer.library_call(cell, kind, module, is_own);
}

/// Returns random bytes for a program that asks a library for them.
pub fn random_bytes(n: usize) -> Vec<u8> {
    explorer().random_bytes(n)
}

/// No process can run, no timer is set, and nothing from outside is awaited: ends the emulator with
/// a report.
pub fn deadlock() -> ! {
    end_stuck(
        Stuck::Deadlock,
        "deadlock: no process can run, and nothing is awaited that would wake one",
    )
}

/// Whether the run hangs, now that the clock is about to jump.
pub fn hangs() -> bool {
    explorer().hangs()
}

/// The run hangs: ends the emulator with a report.
pub fn hang() -> ! {
    let seconds = explorer().hang_bound() / 1_000_000_000;
    end_stuck(
        Stuck::Hang,
        &format!("hang: nothing but timers that repeat has moved for {seconds} s of virtual time"),
    )
}

fn end_stuck(how: Stuck, what: &str) -> ! {
    crate::report::to_stderr(&deadlock::waiting(what));
    ended(1, how);
    // SAFETY: no return; this is the only thread.
    unsafe { libc::_exit(1) }
}

/// Ends a replay that differs from the recorded run.
fn differs(how: String) -> ! {
    explorer().differ(how);
    ended(4, Stuck::No);
    // SAFETY: no return; this is the only thread.
    unsafe { libc::_exit(4) }
}

/// The emulator, as the explorer sees it.
struct Emulator;

impl Kernel for Emulator {
    fn now(&self) -> i64 {
        exploring::now()
    }
    fn next_timer(&self) -> i64 {
        crate::timer::next_due()
    }
    fn jump(&self, to: i64) {
        // In a world, the coordinator's clock decides.
        if !world::is_on() {
            exploring::jump(to);
        }
    }
    fn process(&self, cell: u32) -> (u32, u32) {
        let p = table().cell(cell);
        // SAFETY: cells are never unmapped, and only this thread writes them.
        unsafe { ((*p).id.load(Ordering::Relaxed), (*p).parent) }
    }
    fn is_free(&self, cell: u32) -> bool {
        self.process(cell).0 == NO_ID
    }
    fn object(&self, process: u32) -> u64 {
        Term::pid(process).raw()
    }
    fn pid(&self, process: u32) -> String {
        lines::short(Term::pid(process))
    }
    fn hold_back(&self, process: u32) {
        held::next_of(process);
    }
    fn done(&self, process: u32, touch: &Touch) {
        held::done(process, touch);
    }
}

/// The operation of the process in `cx` that follows.
struct Next<'a> {
    cx: &'a mut Cx,
    pc: *const u64,
    what: What,
}

impl Operation for Next<'_> {
    fn name(&self) -> Arc<str> {
        self.what.name()
    }
    fn is_receive(&self) -> bool {
        self.what == What::Receive
    }
    fn place(&self) -> usize {
        self.pc as usize
    }
    fn touch(&mut self) -> Touch {
        self.what.touch(self.cx)
    }
    fn owner(&mut self, program: bool) -> (bool, bool) {
        stack::owner(self.cx, self.pc, program)
    }
    fn begins_program(&mut self) -> bool {
        let native = self.what.native();
        native.is_some_and(|n| stack::begins_program(self.cx, n))
    }
    fn compiles(&mut self) -> bool {
        stack::compiles(self.cx, self.pc)
    }
    fn is_within(&mut self, function: &Function) -> bool {
        stack::is_within(self.cx, self.pc, function)
    }
    fn runs_tests(&mut self) -> bool {
        stack::runs_tests(self.cx, self.pc)
    }
    fn outside(&mut self) -> Option<Kind> {
        outside::kind(self.cx, self.what.native()?)
    }
    fn sets_variable(&self) -> bool {
        self.what.sets_variable()
    }
    fn role(&mut self) -> Option<String> {
        lines::role(self.cx, self.what.native()?)
    }
    fn line(&mut self, at: Point, touch: Touch) -> Line {
        lines::line(self.cx, self.pc, self.what, at, touch)
    }
}
