//! The memory limit: what is left of it, and which processes end when nothing is.
//!
//! [`measure`] reads the limit of the control groups, or `+Mlimit`, and the memory in use
//! ([`crate::options::memory`]). A dedicated thread ([`crate::threads::watch`]) calls it, more
//! often the less is left. So does a thread that asks for a large block beyond what was left. There
//! are three thresholds:
//!
//! * From three quarters of the limit on, memory is short: freed memory is not kept, and heaps grow
//!   by less.
//! * From four fifths on, the alarm of `memsup` is set, if an `alarm_handler` exists.
//! * When only a [`reserve`] is left, the limit is reached.
//!
//! While the limit is reached, a process that collects, or puts an object into a table, and that
//! has grown since memory became short, is compared with a minimum size ([`least`]). That size
//! shrinks the less is left and the longer this lasts, so the larger processes end first. First the
//! garbage of the process is collected and freed memory returned to the system. If the limit is
//! still reached, the process ends like one that exceeds its `max_heap_size`, with a report. A
//! process that has not grown ends only if the system would otherwise kill the node. Exempt are
//! `init`, the processes that it has started itself, processes of the runtime, and those that
//! `kernel` needs ([`NEEDED`]).

use crate::cx::Cx;
use crate::options::memory::{Groups, MemoryLimit};
use crate::process::{EXIT_PENDING, registry};
use crate::{clock, lazy_atoms, post, report};
use purlin_term::pressure::{self, is_over};
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{NIL, Term, am, atom};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

lazy_atoms! {
    alarm_handler = "alarm_handler";
    notify = "notify";
    set_alarm = "set_alarm";
    clear_alarm = "clear_alarm";
    watermark = "system_memory_high_watermark";
}

/// Percentages of the limit at which memory becomes short and ceases to be; the same for the alarm.
const SHORT: [usize; 2] = [75, 70];
const ALARM: [usize; 2] = [80, 75];
/// The reserve, as a fraction of the limit, and its upper bound.
const RESERVE_PART: usize = 6;
const MOST_RESERVE: usize = 128 << 20;
/// The fraction of the limit that a process must at least take to end as soon as the limit is
/// reached.
const LARGEST_PART: usize = 64;
/// The minimum size halves each time this many nanoseconds have passed, and for each sixteenth of
/// the reserve in use.
const HALVING: i64 = 20_000_000;
/// Time in nanoseconds after which processes that have not grown may end, if three quarters of the
/// reserve are in use.
const LAST_RESORT: i64 = 1_000_000_000;
/// Maximum age in nanoseconds of a measurement that is still used.
const FRESH: i64 = 500_000;
/// No process smaller than this fraction of the limit is ended, by sixteenths of the reserve in
/// use. A process that only answers others is usually smaller than those that grow. In the end few
/// are spared.
const SPARED: [(i64, usize); 3] = [(8, 4096), (14, 8192), (i64::MAX, 32_768)];
/// Smaller processes and tables always count as grown: their sizes are not recorded.
const NOTED: usize = 64 << 10;
/// The sizes of processes below this are recorded when they are looked at, whether they collect or
/// not.
pub(crate) const SMALL: usize = 256 << 10;
/// Sizes are recorded from this fraction of the limit on, if that is more than [`NOTED`].
const NOTED_PART: usize = 4096;
/// Maximum number of recorded sizes.
const MOST_NOTED: usize = 1 << 15;
/// Nanoseconds after which the control groups are looked up again: a process can be moved to
/// others.
const GROUPS_FOR: i64 = 2_000_000_000;
/// Nanoseconds between returning freed memory to the system while the limit is reached; less the
/// more of the reserve is in use.
const TRIM: i64 = 25_000_000;
/// Minimum pause before measuring, or returning memory, again, as a multiple of the last duration.
/// On a slow system growing processes would otherwise do nothing else under the lock, and none
/// would end.
const PAUSE: i64 = 4;

/// Names of processes without which there is no node, or none that responds.
const NEEDED: [&str; 26] = [
    "init",
    "erl_prim_loader",
    "erl_signal_server",
    "logger",
    "logger_proxy",
    "logger_sup",
    "logger_std_h_default",
    "error_logger",
    "application_controller",
    "kernel_sup",
    "kernel_safe_sup",
    "code_server",
    "file_server_2",
    "user",
    "user_drv",
    "rex",
    "global_name_server",
    "global_group",
    "inet_db",
    "net_sup",
    "net_kernel",
    "auth",
    "erl_epmd",
    "socket_registry",
    "standard_error",
    "standard_error_sup",
];

/// The limit and the use at the last measurement; 0 if there is no limit.
static LIMIT: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
/// See [`least`].
static LEAST: AtomicUsize = AtomicUsize::new(0);

struct State {
    groups: Option<Groups>,
    found: i64,
    short: bool,
    alarm: bool,
    measured: i64,
    /// Time at which the limit was reached, or at which a process last ended for it; time at which
    /// memory was last returned.
    over: Option<i64>,
    trimmed: i64,
    /// Duration of the last measurement, and of the last return of memory, in nanoseconds.
    measuring: i64,
    trimming: i64,
    /// Sixteenths of the reserve in use.
    urgency: i64,
    /// Bytes of processes that have ended since: free, but not returned to the system yet.
    freed: usize,
    /// Sizes in bytes of large processes, by pid, and of tables, by address, when first seen while
    /// memory is short; sizes of processes when they were last asked to collect.
    before: Option<HashMap<u64, usize>>,
    asked: Option<HashMap<u64, usize>>,
}

static STATE: Mutex<State> = Mutex::new(State {
    groups: None,
    found: 0,
    short: false,
    alarm: false,
    measured: 0,
    over: None,
    trimmed: 0,
    measuring: 0,
    trimming: 0,
    urgency: 0,
    freed: 0,
    before: None,
    asked: None,
});

/// Returns the limit and the use at the last measurement; None if there is no limit.
pub fn limit() -> Option<(usize, usize)> {
    match LIMIT.load(Ordering::Relaxed) {
        0 => None,
        limit => Some((limit, USED.load(Ordering::Relaxed))),
    }
}

/// Returns the bytes left until the limit is reached; None if there is no limit.
pub fn left() -> Option<isize> {
    limit().map(|(limit, used)| limit as isize - reserve(limit) as isize - used as isize)
}

/// Part of a limit that is left free: for allocations before processes are asked, and for the
/// system's use on behalf of the node.
fn reserve(limit: usize) -> usize {
    (limit / RESERVE_PART).min(MOST_RESERVE)
}

/// Sixteenths of the reserve in use.
fn sixteenths(left: isize, reserve: usize) -> i64 {
    (-left.min(0) * 16 / reserve.max(1) as isize) as i64
}

/// Starts measuring: requests for more than is left trigger a measurement.
pub fn begin() {
    set_arena();
    pressure::measured_by(measure);
    measure();
}

/// Measures the memory in use and publishes the result.
pub fn measure() {
    measure_with(&mut STATE.lock());
}

fn measure_with(s: &mut MutexGuard<State>) {
    let now = clock::elapsed();
    let how = crate::options::current().flags.memory_limit;
    if s.groups.is_none() || now - s.found > GROUPS_FOR {
        s.groups = Some(match how {
            MemoryLimit::Off => Groups::none(),
            _ => Groups::own(),
        });
        s.found = now;
    }
    let Some(grant) = s.groups.as_ref().and_then(|g| g.look(how)) else {
        LIMIT.store(0, Ordering::Relaxed);
        pressure::set_left(pressure::NO_LIMIT);
        pressure::set_short(false, false);
        if std::mem::take(&mut s.short) {
            free_to_system(false);
        }
        s.over = None;
        s.before = None;
        s.asked = None;
        alarm(s, false);
        return;
    };
    LIMIT.store(grant.limit, Ordering::Relaxed);
    USED.store(grant.used, Ordering::Relaxed);
    s.measured = clock::elapsed();
    s.measuring = s.measured - now;
    let reserve = reserve(grant.limit);
    let left = grant.limit as isize - reserve as isize - grant.used as isize;
    let beyond = |marks: [usize; 2], before: bool| {
        grant.used / 100 >= grant.limit / 10_000 * marks[usize::from(before)]
    };
    // Under the race finder nothing may depend on the rest of the machine, except which process
    // ends so that the runtime does not.
    let chosen = crate::os::exploring::on();
    let short = left <= 0 || (!chosen && beyond(SHORT, s.short));
    if short != s.short {
        s.short = short;
        free_to_system(short);
    }
    if !s.short {
        s.before = None;
        s.asked = None;
    }
    let over = left + (s.freed.min(reserve / 8) as isize) <= 0;
    pressure::set_left(left);
    pressure::set_short(s.short, over);
    if over {
        let since = *s.over.get_or_insert(now);
        let used = sixteenths(left, reserve);
        let shift = (now - since) / HALVING + used;
        let least = (grant.limit / LARGEST_PART) >> shift.clamp(0, 32);
        let part = SPARED.iter().find(|&&(to, _)| used < to);
        let floor = part.map_or(0, |&(_, part)| grant.limit / part);
        LEAST.store(least.max(floor), Ordering::Relaxed);
        s.urgency = used;
    } else {
        s.over = None;
    }
    let on = !chosen && beyond(ALARM, s.alarm);
    alarm(s, on);
}

/// Sets or clears the alarm as `memsup` does, if there is an alarm handler.
fn alarm(s: &mut State, on: bool) {
    if on == s.alarm {
        return;
    }
    let handler = registry::whereis(alarm_handler()).filter(|p| p.is_local_pid());
    // A handler that is started later gets it then.
    let Some(handler) = handler else { return };
    s.alarm = on;
    post::send_with(handler, |to| {
        let what = match on {
            true => {
                let alarm = to.tuple(&[watermark(), NIL]);
                to.tuple(&[set_alarm(), alarm])
            }
            false => to.tuple(&[clear_alarm(), watermark()]),
        };
        to.tuple(&[notify(), what])
    });
}

/// Minimum size in bytes of a process or table that is held responsible for reaching the limit.
#[inline]
pub fn least() -> usize {
    LEAST.load(Ordering::Relaxed)
}

/// Returns the size of the process in the context in bytes: the used part of its heap, its
/// messages, and the binaries that it holds. Unused room takes no memory, and a heap grows into it
/// without asking.
pub fn size(cx: &mut Cx) -> usize {
    let h = &cx.heap;
    let words = h.used_words() + h.stack_words() + h.old_words() + h.frag_words;
    let binaries = h.off_heap.bytes + h.old_off_heap.bytes;
    words * 8 + binaries + cx.process().queued_words() * 8
}

/// Whether the process in the context, which collects, must drop its garbage now so as not to end.
#[inline]
pub fn is_pressed(cx: &mut Cx) -> bool {
    pressure::is_short() && !cx.proc.is_null() && is_pressed_in_short(cx)
}

#[cold]
fn is_pressed_in_short(cx: &mut Cx) -> bool {
    let bytes = size(cx);
    let key = cx.self_pid().raw();
    let grown = has_grown(key, bytes);
    is_over() && bytes >= least() && (grown || is_last_resort(&STATE.lock()))
}

/// Whether the process or table with that key has grown since it was first seen while memory is
/// short.
fn has_grown(key: u64, bytes: usize) -> bool {
    if bytes < NOTED.max(LIMIT.load(Ordering::Relaxed) / NOTED_PART) {
        return true;
    }
    let mut s = STATE.lock();
    let noted = bounded(&mut s.before);
    let before = *noted.entry(key).or_insert(bytes);
    bytes > before + (before / 16).max(least() / 16)
}

/// Returns a map of sizes. Entries of processes that have ended stay, so a full map is cleared.
fn bounded(sizes: &mut Option<HashMap<u64, usize>>) -> &mut HashMap<u64, usize> {
    let sizes = sizes.get_or_insert_default();
    if sizes.len() >= MOST_NOTED {
        sizes.clear();
    }
    sizes
}

fn is_last_resort(s: &State) -> bool {
    let reserve = reserve(LIMIT.load(Ordering::Relaxed));
    let since = s.over.map_or(0, |since| clock::elapsed() - since);
    since > LAST_RESORT && left().is_some_and(|left| sixteenths(left, reserve) >= 12)
}

/// Whether the process in the context is at least `large` bytes and has grown since it was last
/// asked to collect. If so, it is asked now.
pub fn is_worth_asking(cx: &mut Cx, large: usize) -> bool {
    let bytes = size(cx);
    let key = cx.self_pid().raw();
    if bytes < large {
        // Many small processes that grow can end at their next collection if their earlier size is
        // known by then.
        has_grown(key, bytes);
        return false;
    }
    let mut s = STATE.lock();
    let asked = s.asked.get_or_insert_default();
    asked
        .get(&key)
        .is_none_or(|&before| bytes > before + before / 8)
}

/// Records that the process in the context has collected after it was asked to.
pub fn has_collected(cx: &mut Cx) {
    let (key, bytes) = (cx.self_pid().raw(), size(cx));
    bounded(&mut STATE.lock().asked).insert(key, bytes);
}

/// Ends the process in the context, which [`is_pressed`] and has no garbage, if the limit is still
/// reached.
#[cold]
pub fn hold_against(cx: &mut Cx) {
    if cx.proc.is_null() || cx.process().has(EXIT_PENDING) {
        return;
    }
    let bytes = size(cx);
    // The earlier size of a small process was recorded at an arbitrary time, so only its size
    // without garbage tells whether it grows.
    let grown =
        bytes >= SMALL || has_grown(cx.self_pid().raw(), bytes) || is_last_resort(&STATE.lock());
    if grown && bytes >= least() && is_still_over() && !is_needed(cx) {
        end(cx, bytes, bytes, None);
    }
}

thread_local! {
    static PUT: Cell<u32> = const { Cell::new(0) };
}
/// While memory is short, one of this many insertions into tables is checked; all of them while the
/// limit is reached.
const PUTS: u32 = 32;

/// Called when the process in the context puts something into a table while memory is short.
/// `table` returns its name, its address, its bytes and whether the process owns it.
#[cold]
pub fn table_grows(cx: &mut Cx, table: impl FnOnce() -> (Term, usize, usize, bool)) {
    let n = PUT.get().wrapping_add(1);
    PUT.set(n);
    if cx.proc.is_null()
        || cx.process().has(EXIT_PENDING)
        || (!is_over() && !n.is_multiple_of(PUTS))
    {
        return;
    }
    let (name, at, bytes, owned) = table();
    // No pid has this bit.
    let grown = has_grown(at as u64 | 1 << 63, bytes);
    if grown && is_over() && bytes >= least() && is_still_over() && !is_needed(cx) {
        let freed = size(cx) + if owned { bytes } else { 0 };
        end(cx, bytes, freed, Some(name));
    }
}

/// Whether the limit is still reached after freed memory was returned to the system.
fn is_still_over() -> bool {
    let mut s = STATE.lock();
    if clock::elapsed() - s.measured > FRESH.max(s.measuring * PAUSE) {
        measure_with(&mut s);
    }
    let pause = (TRIM / (1 + s.urgency)).max(s.trimming * PAUSE);
    if s.over.is_some() && clock::elapsed() - s.trimmed > pause {
        relieve_with(&mut s);
    }
    s.over.is_some()
}

/// Returns freed memory to the system and measures again. Growing processes wait for it.
pub fn relieve() {
    relieve_with(&mut STATE.lock());
}

fn relieve_with(s: &mut MutexGuard<State>) {
    let begun = clock::elapsed();
    give_back();
    s.trimmed = clock::elapsed();
    s.trimming = s.trimmed - begun;
    s.freed = 0;
    measure_with(s);
}

/// Size in bytes of freed blocks that the C library returns to the system at once while memory is
/// not short. By default it ends up keeping blocks of up to 32 MiB, and twice as much at the end of
/// each arena.
static GIVEN_BACK_FROM: AtomicUsize = AtomicUsize::new(32 << 20);
/// The same while memory is short: a growing heap leaves blocks behind that are too small for the
/// next one.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const GIVEN_BACK_IN_SHORT: usize = 64 << 10;

/// Makes the C library return freed blocks of a megabyte and more to the system from now on.
pub fn give_back_at_once() {
    if GIVEN_BACK_FROM.swap(1 << 20, Ordering::Relaxed) == 1 << 20 {
        return;
    }
    // Under the lock, so that a change of `short` does not come between.
    let s = STATE.lock();
    free_to_system(s.short);
}

/// The C library's trim threshold and top pad in bytes, as last set. The initial values are its
/// defaults.
static ARENA: [AtomicUsize; 2] = [AtomicUsize::new(128 << 10), AtomicUsize::new(0)];

/// Returns the values of `+MYtt` and `+MYtp` in bytes, or the C library's defaults. See [`ARENA`].
pub fn arena() -> [usize; 2] {
    ARENA.each_ref().map(|n| n.load(Ordering::Relaxed))
}

/// Returns the value of a setting of the command line in bytes; the last one counts.
fn given(setting: &str) -> Option<usize> {
    let all = &crate::options::current().flags.allocator;
    let kilobytes = all.iter().rev().find(|s| s.name == setting)?.value.parse();
    kilobytes.ok().map(|n: usize| n << 10)
}

/// Passes the command line's settings of arenas to the C library.
fn set_arena() {
    let (trim, pad) = (given("MYtt"), given("MYtp"));
    for (to, n) in ARENA.iter().zip([trim, pad]) {
        n.into_iter().for_each(|n| to.store(n, Ordering::Relaxed));
    }
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: may be called at any time. The numbers fit: the flags were checked.
    unsafe {
        if let Some(n) = trim {
            libc::mallopt(libc::M_TRIM_THRESHOLD, n as libc::c_int);
        }
        if let Some(n) = pad {
            libc::mallopt(libc::M_TOP_PAD, n as libc::c_int);
        }
    }
}

/// Sets the thresholds above which the C library returns blocks, depending on whether memory is
/// short.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn free_to_system(short: bool) {
    let threshold = match short {
        true => GIVEN_BACK_IN_SHORT,
        false => GIVEN_BACK_FROM.load(Ordering::Relaxed),
    } as libc::c_int;
    // SAFETY: may be called at any time.
    unsafe {
        if short {
            // The system allows a process about 65,000 mappings.
            libc::mallopt(libc::M_MMAP_MAX, 20_000);
        }
        libc::mallopt(libc::M_MMAP_THRESHOLD, threshold);
        let trim = match given("MYtt").filter(|_| !short) {
            Some(n) => n as libc::c_int,
            None => threshold,
        };
        libc::mallopt(libc::M_TRIM_THRESHOLD, trim);
        ARENA[0].store(trim as usize, Ordering::Relaxed);
    }
}
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn free_to_system(_short: bool) {}

/// Returns freed memory to the system, and what this thread keeps.
pub(crate) fn give_back_kept() {
    purlin_term::blocks::release_warm();
    give_back();
}

/// Returns freed memory to the system.
fn give_back() {
    for _ in 0..3 {
        purlin_term::blocks::release_unused();
        purlin_term::binary_blocks::release_unused();
    }
    crate::message::blocks::clear();
    purlin_term::small_blocks::return_free_memory();
}

/// Whether the node cannot continue without the process in the context. If a process that `init`
/// has started ends, the node ends.
fn is_needed(cx: &mut Cx) -> bool {
    let pid = cx.self_pid();
    cx.process().parent == Term::pid(0).pid_data()
        || crate::process::is_system(pid)
        || NEEDED
            .iter()
            .any(|name| registry::whereis(atom::intern(name)) == Some(pid))
}

/// Ends the process in the context, which frees `freed` bytes.
fn end(cx: &mut Cx, bytes: usize, freed: usize, table: Option<Term>) {
    {
        let mut s = STATE.lock();
        s.freed += freed;
        // It takes time until its memory is freed.
        s.over = s.over.map(|_| clock::elapsed());
    }
    if let Some((limit, used)) = limit() {
        report::memory_limit_reached(cx, [limit, used, bytes], table);
    }
    cx.process().mark_to_exit(am::KILLED);
    cx.reds = 0;
}
