//! The limit of memory: what is left of it, and who ends when nothing is.
//!
//! [`measure`] reads what the control groups, or `+Mlimit`, grant and what is used ([`crate::options::memory`]). It is called by a
//! thread that does nothing else ([`crate::threads::watch`]), the more often the less is left, and by whoever asks for a large block
//! beyond what was left. It says
//! * from three quarters of the limit on that memory is short: nothing that was freed is kept, heaps grow by less;
//! * from four fifths on the alarm of `memsup`, where an `alarm_handler` is there;
//! * once a [`reserve`] is all that is left, that it is over.
//!
//! While it is over, a process that collects, or puts an object into a table, and has grown since memory was short, is held against a
//! size ([`least`]): the less is left, and the longer it is over, the smaller that is. So the larger ones end first. Its garbage is
//! collected first, and freed memory given back. If it is still over then the process ends as one does that exceeds its
//! `max_heap_size`, with a report. What has not grown ends only where the system would end the node otherwise. Neither `init` ends
//! so, nor what it has started itself, nor processes of the runtime, nor those that `kernel` needs ([`NEEDED`]).

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

/// Parts of the limit, in hundredths, from which on memory is short, and below which it isn't any more; the same for the alarm.
const SHORT: [usize; 2] = [75, 70];
const ALARM: [usize; 2] = [80, 75];
/// What is never used of a limit: such a part, but no more than this.
const RESERVE_PART: usize = 6;
const MOST_RESERVE: usize = 128 << 20;
/// The part of the limit that a process takes, at least, which ends as soon as it is over.
const LARGEST_PART: usize = 64;
/// The least size falls to half each time it was over for so long, and for each sixteenth of the reserve that is used.
const HALVING: i64 = 20_000_000;
/// What has not grown may end after it was over for so long, with three quarters of the reserve used.
const LAST_RESORT: i64 = 1_000_000_000;
/// Who asks whether it is over is told what was measured so long before, at most.
const FRESH: i64 = 500_000;
/// No process that takes less than a part of the limit is ended, by sixteenths of the reserve that are used: who only answers others is
/// smaller than those who grow, mostly. In the end few are spared.
const SPARED: [(i64, usize); 3] = [(8, 4096), (14, 8192), (i64::MAX, 32_768)];
/// Processes and tables that take less have always grown: their sizes are not noted.
const NOTED: usize = 64 << 10;
/// Processes below this are noted when they are looked at, whether they collect or not.
pub(crate) const SMALL: usize = 256 << 10;
/// They are noted from this part of the limit on, if that is more.
const NOTED_PART: usize = 4096;
/// Sizes that are noted at a time.
const MOST_NOTED: usize = 1 << 15;
/// The groups are looked for anew after so many nanoseconds: a process can be moved to others.
const GROUPS_FOR: i64 = 2_000_000_000;
/// Freed memory is given back so often, in nanoseconds, while it is over, and the oftener the more of the reserve is used.
const TRIM: i64 = 25_000_000;
/// Measuring and giving back wait so many times as long as they took the last time, at least: where the system is slow, whoever grows
/// would do nothing else under the lock, and nobody would end.
const PAUSE: i64 = 4;

/// Names of processes without which there is no node, or none that can be asked.
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

/// The limit and what was used of it when that was last measured; 0: there is no limit.
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
    /// When it came to be over, or somebody last ended for it; when memory was last given back.
    over: Option<i64>,
    trimmed: i64,
    /// Nanoseconds that measuring, and giving back, took the last time.
    measuring: i64,
    trimming: i64,
    /// Sixteenths of the reserve that are used.
    urgency: i64,
    /// Bytes of what has ended since, which are free, though not given back yet.
    freed: usize,
    /// Bytes of large processes, by their pids, and of tables, by their addresses, when they were first seen while memory is short;
    /// those of processes when they were last asked to collect themselves.
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

/// The limit and what is used of it, as last measured; None: there is no limit.
pub fn limit() -> Option<(usize, usize)> {
    match LIMIT.load(Ordering::Relaxed) {
        0 => None,
        limit => Some((limit, USED.load(Ordering::Relaxed))),
    }
}

/// Bytes that are left up to where it is over; None where nothing limits.
pub fn left() -> Option<isize> {
    limit().map(|(limit, used)| limit as isize - reserve(limit) as isize - used as isize)
}

/// What is left free of a limit: what others come to allocate before they are asked, and the system for the node.
fn reserve(limit: usize) -> usize {
    (limit / RESERVE_PART).min(MOST_RESERVE)
}

/// Sixteenths of the reserve that are used.
fn sixteenths(left: isize, reserve: usize) -> i64 {
    (-left.min(0) * 16 / reserve.max(1) as isize) as i64
}

/// Begins: who asks for more than is left has it measured.
pub fn begin() {
    set_arena();
    pressure::measured_by(measure);
    measure();
}

/// Measures what is used, and says so to whoever wants to know.
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
    // Where schedules are chosen nothing follows from what the rest of the machine takes, but for who ends in place of the runtime.
    let chosen = crate::os::single::on();
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

/// Tells the alarm handler, if there is one, as `memsup` does.
fn alarm(s: &mut State, on: bool) {
    if on == s.alarm {
        return;
    }
    let handler = registry::whereis(alarm_handler()).filter(|p| p.is_local_pid());
    // One that comes later is told then.
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

/// Bytes from which on a process, or a table, is held to be the reason why it is over.
#[inline]
pub fn least() -> usize {
    LEAST.load(Ordering::Relaxed)
}

/// Bytes of the process in the context: what is used of its heap, its messages, and the binaries that it holds. Room that was not
/// used yet takes no memory, and a heap grows into it without asking.
pub fn size(cx: &mut Cx) -> usize {
    let h = &cx.heap;
    let words = h.used_words() + h.stack_words() + h.old_words() + h.frag_words;
    let binaries = h.off_heap.bytes + h.old_off_heap.bytes;
    words * 8 + binaries + cx.process().queued_words() * 8
}

/// Whether the process in the context, which collects, is to get rid of its garbage now, lest it end.
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

/// Whether what has that key has grown since it was first seen while memory is short.
fn has_grown(key: u64, bytes: usize) -> bool {
    if bytes < NOTED.max(LIMIT.load(Ordering::Relaxed) / NOTED_PART) {
        return true;
    }
    let mut s = STATE.lock();
    let noted = bounded(&mut s.before);
    let before = *noted.entry(key).or_insert(bytes);
    bytes > before + (before / 16).max(least() / 16)
}

/// A map of sizes. Those who have ended stay in it, so it begins anew when there are many.
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

/// Whether the process in the context takes so many bytes, and more than when it was last asked to collect itself: it is asked now.
pub fn is_worth_asking(cx: &mut Cx, large: usize) -> bool {
    let bytes = size(cx);
    let key = cx.self_pid().raw();
    if bytes < large {
        // Many that are small and grow are all ended at their next collection, if what they had before is known by then.
        has_grown(key, bytes);
        return false;
    }
    let mut s = STATE.lock();
    let asked = s.asked.get_or_insert_default();
    asked
        .get(&key)
        .is_none_or(|&before| bytes > before + before / 8)
}

/// The process in the context has collected itself since it was asked to.
pub fn has_collected(cx: &mut Cx) {
    let (key, bytes) = (cx.self_pid().raw(), size(cx));
    bounded(&mut STATE.lock().asked).insert(key, bytes);
}

/// The process in the context [`is_pressed`], and has no garbage any more: it ends if it is still over.
#[cold]
pub fn hold_against(cx: &mut Cx) {
    if cx.proc.is_null() || cx.process().has(EXIT_PENDING) {
        return;
    }
    let bytes = size(cx);
    // What a small one had before was noted at any time, so only what is left without garbage tells whether it grows.
    let grown =
        bytes >= SMALL || has_grown(cx.self_pid().raw(), bytes) || is_last_resort(&STATE.lock());
    if grown && bytes >= least() && is_still_over() && !is_needed(cx) {
        end(cx, bytes, bytes, None);
    }
}

thread_local! {
    static PUT: Cell<u32> = const { Cell::new(0) };
}
/// Of so many puts into tables one is looked at while memory is short; all of them while it is over.
const PUTS: u32 = 32;

/// The process in the context puts something into a table, while memory is short. `table` gives its name, its address, its bytes
/// and whether the process owns it.
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

/// Whether it is over when what was freed has gone back to the system.
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

/// Gives freed memory back to the system, and measures what is used then. Who grows waits for it.
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

/// Bytes from which on the C library gives a freed block back to the system while memory is not short. Left to itself it comes to keep
/// blocks of up to 32 MiB, and twice as much at the end of each of its arenas.
static GIVEN_BACK_FROM: AtomicUsize = AtomicUsize::new(32 << 20);
/// The same while memory is short: a heap that grows leaves behind one that is too small for the next.
const GIVEN_BACK_IN_SHORT: usize = 64 << 10;

/// Has the C library return freed blocks of a megabyte and more to the system from now on.
pub(crate) fn give_back_at_once() {
    GIVEN_BACK_FROM.store(1 << 20, Ordering::Relaxed);
    // Under the lock, so that whoever says that memory is short doesn't come between.
    let s = STATE.lock();
    free_to_system(s.short);
}

/// Bytes at the end of an arena from which on the C library gives them back, and bytes that it takes beyond what is asked for, as it was
/// told last. At first these are its own.
static ARENA: [AtomicUsize; 2] = [AtomicUsize::new(128 << 10), AtomicUsize::new(0)];

/// What `+MYtt` and `+MYtp` say, or what the C library does without: bytes. See [`ARENA`].
pub fn arena() -> [usize; 2] {
    ARENA.each_ref().map(|n| n.load(Ordering::Relaxed))
}

/// Bytes that a setting of the command line gives, as it was said last.
fn given(setting: &str) -> Option<usize> {
    let all = &crate::options::current().flags.allocator;
    let kilobytes = all.iter().rev().find(|s| s.name == setting)?.value.parse();
    kilobytes.ok().map(|n: usize| n << 10)
}

/// Tells the C library what the command line says of its arenas.
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

/// Tells the C library which blocks to give back, where memory is short and where it isn't.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn free_to_system(short: bool) {
    let threshold = match short {
        true => GIVEN_BACK_IN_SHORT,
        false => GIVEN_BACK_FROM.load(Ordering::Relaxed),
    } as libc::c_int;
    // SAFETY: may be called at any time.
    unsafe {
        if short {
            // The system allows a process some 65,000 mappings.
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

/// Gives freed memory back to the system.
fn give_back() {
    for _ in 0..3 {
        purlin_term::blocks::release_unused();
        purlin_term::large::release_unused();
    }
    crate::message::blocks::clear();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Whether the process in the context is one that nothing goes on without. What `init` has started itself takes the node along.
fn is_needed(cx: &mut Cx) -> bool {
    let pid = cx.self_pid();
    cx.process().parent == Term::pid(0).pid_data()
        || crate::process::is_system(pid)
        || NEEDED
            .iter()
            .any(|name| registry::whereis(atom::intern(name)) == Some(pid))
}

/// Ends the process in the context. So many bytes are free then.
fn end(cx: &mut Cx, bytes: usize, freed: usize, table: Option<Term>) {
    {
        let mut s = STATE.lock();
        s.freed += freed;
        // What it had takes its time to be freed.
        s.over = s.over.map(|_| clock::elapsed());
    }
    if let Some((limit, used)) = limit() {
        report::memory_limit_reached(cx, [limit, used, bytes], table);
    }
    cx.process().mark_to_exit(am::KILLED);
    cx.reds = 0;
}
