//! Events for the record of the last minute: beginnings and ends of processes, large collections,
//! long waits and long mailboxes.
//!
//! Threads put events into a queue; the thread of `purlin_diagnostics::recorder` writes them to a
//! file. No thread that runs processes touches the file, since the system may make it wait there
//! for the disk.
//!
//! # Invariants
//! * Per thread and second, at most [`MOST_A_SECOND`] events of each class are queued. Others cost
//!   a look at two words. So does everything while nothing is recorded.
//! * An event has names of code and registered names, no terms of the program. The text of an exit
//!   reason is the exception, if [`Settings::terms`] asks for it.
//! * The queue is bounded by [`QUEUED`]; events beyond it are counted.
//!
//! # Orderings
//! The queue is behind a lock. `ROUND`, `IDLE` and the counts publish nothing: a thread that sees
//! an old value queues an event more or less, or leaves the reader asleep until the next round of
//! upkeep. [`written`] releases what [`flush`] acquires, the writes to the file.

use super::accounts::{self, Frame, Kind};
use crate::clock;
use crate::cx::Cx;
use crate::process::Process;
use crate::sync::{Condvar, Mutex};
use purlin_native::lazy_atoms;
use purlin_term::print::{Style, format_term};
use purlin_term::{NIL, Term, am, atom, map};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Words of a heap from which its collections and its end are recorded: 1 MiB.
pub const LARGE_WORDS: usize = 1 << 17;
/// Messages of a mailbox from which it is recorded.
pub const LONG_MAILBOX: usize = 10_000;
/// Nanoseconds of a recorded wait for a scheduler, and of any other.
const LONG_READY: u64 = 50_000_000;
const LONG_WAIT: u64 = 100_000_000;
/// Maximum number of events in the queue.
const QUEUED: usize = 4096;
/// Characters of an exit reason.
const REASON: usize = 300;
/// Frames kept of a stack trace.
const FRAMES: usize = 8;

lazy_atoms! {
    initial_call = "$initial_call"; proc_lib = "proc_lib"; init_p = "init_p";
    gen_module = "gen"; init_it = "init_it"; struct_key = "__struct__"; shutdown = "shutdown";
}

/// Classes of events, each with a limit of its own.
#[derive(Clone, Copy)]
enum Class {
    Start,
    /// A process that `proc_lib` starts: what supervisors start.
    Child,
    End,
    Failure,
    Large,
    Wait,
    Mailbox,
}

/// Maximum number of events of each class per thread and second.
const MOST_A_SECOND: [u8; 7] = [32, 32, 32, 64, 250, 64, 16];

/// Settings of the record.
#[derive(Clone, Copy, Default, Debug)]
pub struct Settings {
    /// The text of exit reasons.
    pub terms: bool,
}

/// A function by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    pub module: Term,
    pub function: Term,
    pub arity: u32,
}

/// A process of an event.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    pub pid: Term,
    pub name: Option<Term>,
    /// The function that it was started with, according to `proc_lib` if that started it.
    pub initial: Option<Function>,
}

/// Kinds of exit reasons.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// `normal` or `shutdown`.
    Normal,
    /// A class of errors, or the module of an exception.
    Class(Term),
    /// A term of the program.
    Other,
}

/// An event.
#[derive(Clone, Debug)]
pub enum Event {
    Started {
        who: Who,
        /// Data bits of the parent's pid.
        parent: u32,
    },
    Ended {
        who: Who,
        parent: u32,
        reason: Reason,
        text: Option<String>,
        /// Where the error was raised, innermost frame first.
        frames: Vec<Frame>,
        /// Bytes of its heap.
        heap: usize,
    },
    /// A large heap was collected.
    Collected {
        who: Who,
        /// Bytes of the heap, and of the binaries that it refers to, afterwards.
        heap: usize,
        binaries: usize,
        nanoseconds: u64,
        /// The line that allocated last.
        frames: Vec<Frame>,
    },
    Waited {
        who: Who,
        kind: Kind,
        nanoseconds: u64,
        frames: Vec<Frame>,
    },
    /// A mailbox is long.
    Mailbox {
        who: Who,
        messages: usize,
        bytes: usize,
    },
    /// A native library has failed.
    Fault {
        signal: &'static str,
        pid: Option<Term>,
        function: String,
        library: String,
    },
}

struct Queue {
    events: Vec<(i64, Event)>,
    /// Whether the reader sleeps.
    asleep: bool,
    /// Whether the reader is to return at once.
    rung: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    events: Vec::new(),
    asleep: false,
    rung: false,
});
static BELL: Condvar = Condvar::new();
/// Number of events that found the queue full.
static LOST: AtomicU64 = AtomicU64::new(0);
/// The current second from 1; 0 while nothing is recorded.
static ROUND: AtomicU32 = AtomicU32::new(0);
static TERMS: AtomicBool = AtomicBool::new(false);
/// Whether the reader sleeps until something happens.
static IDLE: AtomicBool = AtomicBool::new(false);
/// Number of times that everything queued has been written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// How many more events of each class this thread may queue in that round.
#[derive(Clone, Copy)]
struct Left {
    round: u32,
    left: [u8; MOST_A_SECOND.len()],
}

thread_local! {
    static LEFT: Cell<Left> = const { Cell::new(Left { round: 0, left: MOST_A_SECOND }) };
}

/// Starts to record.
pub fn begin(settings: Settings) {
    TERMS.store(settings.terms, Ordering::Relaxed);
    ROUND.store(1, Ordering::Relaxed);
}

/// Stops recording, for instance because the file cannot be written.
pub fn stop() {
    ROUND.store(0, Ordering::Relaxed);
}

/// Begins another second: each thread may queue [`MOST_A_SECOND`] events again.
pub fn next_round() {
    let round = ROUND.load(Ordering::Relaxed);
    if round != 0 {
        ROUND.store(round.wrapping_add(1).max(1), Ordering::Relaxed);
    }
}

#[inline]
fn on() -> bool {
    ROUND.load(Ordering::Relaxed) != 0
}

/// Whether an event of that class is to be queued.
#[inline]
fn due(class: Class) -> bool {
    let round = ROUND.load(Ordering::Relaxed);
    if round == 0 {
        return false;
    }
    let mut l = LEFT.get();
    if l.round != round {
        l = Left {
            round,
            left: MOST_A_SECOND,
        };
    }
    let left = &mut l.left[class as usize];
    if *left == 0 {
        return false;
    }
    *left -= 1;
    LEFT.set(l);
    true
}

fn push(event: Event) {
    let mut q = QUEUE.lock();
    if q.events.len() >= QUEUED {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    q.events.push((clock::elapsed(), event));
    if q.asleep {
        q.asleep = false;
        drop(q);
        BELL.notify_one();
    }
}

/// Waits until there are events, [`ring`] is called, or that much time has passed; `None` for no
/// limit. Returns the events with their times, as [`clock::elapsed`].
pub fn wait(limit: Option<Duration>) -> Vec<(i64, Event)> {
    let mut q = QUEUE.lock();
    let until = limit.map(|l| Instant::now() + l);
    IDLE.store(limit.is_none(), Ordering::Relaxed);
    while q.events.is_empty() && !q.rung {
        q.asleep = true;
        q = match until {
            None => BELL.wait(q),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                BELL.wait_timeout(q, left)
            }
        };
    }
    IDLE.store(false, Ordering::Relaxed);
    q.asleep = false;
    q.rung = false;
    std::mem::take(&mut q.events)
}

/// Number of events lost so far because the queue was full.
pub fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Wakes the reader.
fn ring() {
    QUEUE.lock().rung = true;
    BELL.notify_one();
}

/// Called while programs run: a reader that has slept since they were idle continues.
#[inline]
pub(crate) fn goes_on() {
    if IDLE.load(Ordering::Relaxed) {
        ring();
    }
}

/// Notes that everything that [`wait`] returned is in the file.
pub fn written() {
    WRITTEN.fetch_add(1, Ordering::Release);
}

/// Asks for everything that is queued to be written, and waits for that, up to the limit.
pub fn flush(limit: Duration) {
    if !on() {
        return;
    }
    // The reader may be writing what it took before.
    let begun = WRITTEN.load(Ordering::Acquire);
    let end = Instant::now() + limit;
    while WRITTEN.load(Ordering::Acquire) < begun + 2 && Instant::now() < end {
        ring();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Records that a native library has failed, for the process `pid`, and has that written.
pub fn fault(signal: &'static str, pid: Option<Term>, function: String, library: &str) {
    if on() {
        push(Event::Fault {
            signal,
            pid,
            function,
            library: library.to_string(),
        });
        flush(Duration::from_millis(200));
    }
}

/// Records a new process, which is the caller's, and calls `m:f` with `args`.
#[inline]
pub(crate) fn started(p: &mut Process, m: Term, f: Term, args: Term) {
    let class = match on() && m == proc_lib() {
        true => Class::Child,
        false => Class::Start,
    };
    if due(class) {
        start(p, m, f, args);
    }
}

#[cold]
#[inline(never)]
fn start(p: &mut Process, m: Term, f: Term, args: Term) {
    let who = Who {
        initial: callback(m, f, args).or(exported(p)),
        ..who(p)
    };
    push(Event::Started {
        who,
        parent: p.parent,
    });
}

/// The function for which a process is started if that is not the one that it is spawned with:
/// that of a fun, the function that `proc_lib` calls, or the callback of a behaviour.
fn callback(m: Term, f: Term, args: Term) -> Option<Function> {
    let element = |list: Term, n: usize| list.list_iter().nth(n);
    if m == am::ERLANG && f == am::APPLY {
        return function_of(element(args, 0)?);
    }
    if m != proc_lib() || f != init_p() {
        return None;
    }
    let module = element(args, 2)?;
    let Some(function) = element(args, 3) else {
        return function_of(module);
    };
    let list = element(args, 4)?;
    if !module.is_atom() || !function.is_atom() {
        return None;
    }
    let n = list.list_iter().count();
    if module == gen_module() && function == init_it() {
        // The callback module stands before the arguments and options at the end.
        let module = n.checked_sub(3).and_then(|n| element(list, n))?;
        return module.is_atom().then_some(Function {
            module,
            function: atom::intern("init"),
            arity: 1,
        });
    }
    Some(Function {
        module,
        function,
        arity: n as u32,
    })
}

/// The function with the code of a fun, as `proc_lib` names it.
fn function_of(fun: Term) -> Option<Function> {
    let f = fun.as_fun()?;
    let entry = f.local()?;
    Some(Function {
        module: entry.module,
        function: entry.function(),
        arity: u32::from(entry.code_arity).checked_sub(f.env.len() as u32)?,
    })
}

/// The function that the process was spawned with.
fn exported(p: &Process) -> Option<Function> {
    // SAFETY: null or an export; exports are never freed.
    let e = unsafe { p.initial_call.as_ref() }?;
    Some(Function {
        module: e.module,
        function: e.function,
        arity: e.arity,
    })
}

/// A process, which is the caller's.
fn who(p: &mut Process) -> Who {
    let ext = p.ext();
    let noted = ext.and_then(|e| {
        let noted = e.dict.get(initial_call());
        let &[module, function, arity] = noted.and_then(|t| t.as_tuple())? else {
            return None;
        };
        Some(Function {
            module: module.is_atom().then_some(module)?,
            function: function.is_atom().then_some(function)?,
            arity: u32::try_from(arity.as_small()?).ok()?,
        })
    });
    let name = p.ext().and_then(|e| e.rare()).map(|r| r.name);
    Who {
        pid: p.pid(),
        name: name.filter(|&n| n != NIL),
        initial: noted.or(exported(p)),
    }
}

/// Bytes of the blocks of the heap in the context.
fn heap_bytes(cx: &Cx) -> usize {
    8 * (cx.heap.block_words() + cx.heap.old_block_words() + cx.heap.frag_words)
}

/// Records the end of the process in the context. Its heap is still there.
#[inline]
pub(crate) fn ended(cx: &mut Cx, reason: Term) {
    if !on() {
        return;
    }
    let class = match heap_bytes(cx) / 8 >= LARGE_WORDS {
        true => Class::Large,
        false if reason == am::NORMAL || reason == shutdown() => Class::End,
        false => Class::Failure,
    };
    if due(class) {
        end(cx, reason);
    }
}

#[cold]
#[inline(never)]
fn end(cx: &mut Cx, reason: Term) {
    let heap = heap_bytes(cx);
    let p = cx.process();
    let kind = self::reason(reason);
    let text = TERMS.load(Ordering::Relaxed) && kind != Reason::Normal;
    push(Event::Ended {
        who: who(p),
        parent: p.parent,
        text: text.then(|| format_term(reason, Style::Write, REASON)),
        frames: raised_at(reason),
        reason: kind,
        heap,
    });
}

/// Classes of errors of Erlang and OTP. Other reasons are terms of the program.
const CLASSES: &[&str] = &[
    "badarg",
    "badarith",
    "badarity",
    "badfun",
    "badkey",
    "badmap",
    "badmatch",
    "badrecord",
    "calling_self",
    "case_clause",
    "else_clause",
    "function_clause",
    "if_clause",
    "kill",
    "killed",
    "noconnection",
    "nocatch",
    "noproc",
    "notsup",
    "shutdown",
    "system_limit",
    "timeout",
    "timeout_value",
    "try_clause",
    "undef",
];

/// Levels of tuples at which a class is searched: `{{badmatch, Value}, Stack}` has two.
const LEVELS: usize = 3;

fn reason(mut t: Term) -> Reason {
    if t == am::NORMAL || t == shutdown() {
        return Reason::Normal;
    }
    for _ in 0..LEVELS {
        if t.is_atom() {
            break;
        }
        if let Some(module) = map::get(t, struct_key()) {
            // An exception of Elixir: its module is a name of code.
            return match module.is_atom() {
                true => Reason::Class(module),
                false => Reason::Other,
            };
        }
        match t.as_tuple().and_then(|e| e.first()) {
            Some(&first) => t = first,
            None => return Reason::Other,
        }
    }
    match t.is_atom() && CLASSES.contains(&atom::name(t)) {
        true => Reason::Class(t),
        false => Reason::Other,
    }
}

/// The stack trace of a reason `{Error, Stack}`, without arguments.
fn raised_at(reason: Term) -> Vec<Frame> {
    let Some(&[_, stack]) = reason.as_tuple() else {
        return Vec::new();
    };
    let frame = |t: Term| {
        let &[module, function, arity, place] = t.as_tuple()? else {
            return None;
        };
        let arity = match arity.as_small() {
            Some(n) => u32::try_from(n).ok()?,
            None => arity.list_iter().take(256).count() as u32,
        };
        let mut file = None;
        let mut line = None;
        for pair in place.list_iter().take(4) {
            match pair.as_tuple() {
                Some(&[key, value]) if key == am::FILE => file = name_of_file(value),
                Some(&[key, value]) if key == am::LINE => {
                    line = value.as_small().and_then(|n| u32::try_from(n).ok());
                }
                _ => {}
            }
        }
        Some(Frame {
            module: module.is_atom().then_some(module)?,
            function: function.is_atom().then_some(function)?,
            arity,
            line: file.zip(line),
        })
    };
    stack.list_iter().take(FRAMES).map_while(frame).collect()
}

/// A list of characters, as stack traces have it.
fn name_of_file(list: Term) -> Option<String> {
    let chars = list.list_iter().take(4096);
    chars
        .map(|c| char::from_u32(u32::try_from(c.as_small()?).ok()?))
        .collect()
}

/// Begins the collection of the heap in the context. Returns the time if it may be recorded.
#[inline]
pub(crate) fn collects(cx: &Cx) -> Option<i64> {
    let words = cx.heap.used_words() + cx.heap.frag_words;
    // The old block is looked at only by full sweeps, which leave more than the young block.
    (words >= LARGE_WORDS / 8 && on()).then(clock::elapsed)
}

/// Ends that collection.
#[inline]
pub(crate) fn collected(cx: &mut Cx, began: Option<i64>) {
    if let Some(began) = began
        && !cx.proc.is_null()
    {
        collection(cx, began);
    }
}

#[cold]
#[inline(never)]
fn collection(cx: &mut Cx, began: i64) {
    let heap = heap_bytes(cx);
    let binaries = cx.heap.off_heap.bytes + cx.heap.old_off_heap.bytes;
    if (heap + binaries) / 8 < LARGE_WORDS || !due(Class::Large) {
        return;
    }
    let took = clock::elapsed().saturating_sub(began).max(0) as u64;
    let frames = accounts::frames(&accounts::addresses_at(cx, cx.bif_pc));
    push(Event::Collected {
        who: who(cx.process()),
        heap,
        binaries,
        nanoseconds: took,
        frames,
    });
}

/// Records a wait of the process in the context, which continues at `pc`.
#[inline]
pub(super) fn waited(cx: &mut Cx, kind: Kind, nanoseconds: u64, pc: *const u64) {
    let least = match kind {
        Kind::Ready => LONG_READY,
        // Most processes wait for messages most of the time.
        Kind::Receive => u64::MAX,
        _ => LONG_WAIT,
    };
    if nanoseconds >= least && !cx.proc.is_null() && due(Class::Wait) {
        let frames = accounts::frames(&accounts::addresses_at(cx, pc));
        push(Event::Waited {
            who: who(cx.process()),
            kind,
            nanoseconds,
            frames,
        });
    }
}

/// Records the mailbox of a process that waits or yields, if it is long.
#[inline]
pub(crate) fn mailbox(p: &mut Process) {
    if p.queued_messages() >= LONG_MAILBOX {
        long_mailbox(p);
    }
}

#[cold]
#[inline(never)]
fn long_mailbox(p: &mut Process) {
    if due(Class::Mailbox) {
        push(Event::Mailbox {
            who: who(p),
            messages: p.queued_messages(),
            bytes: 8 * p.queued_words(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_term::Alloc;
    use purlin_term::frag::Fragment;

    #[test]
    fn each_class_has_its_limit_and_a_second_renews_it() {
        let count = || (0..1000).filter(|_| due(Class::Start)).count();
        assert_eq!(count(), 0);
        begin(Settings::default());
        assert_eq!((count(), count()), (MOST_A_SECOND[0].into(), 0));
        assert!(due(Class::Failure));
        next_round();
        assert_eq!(count(), MOST_A_SECOND[0].into());
        stop();
        next_round();
        assert_eq!(count(), 0);
    }

    #[test]
    fn reasons_have_classes_of_errors_and_no_terms() {
        let mut f = Fragment::new();
        let a = atom::intern;
        let secret = a("secret_of_the_program");
        let inner = f.tuple(&[a("badmatch"), secret]);
        let stack = f.list(&[]);
        let twice = f.tuple(&[inner, stack]);
        let own = f.tuple(&[secret, inner]);
        for (t, expected) in [
            (am::NORMAL, Reason::Normal),
            (a("killed"), Reason::Class(a("killed"))),
            (inner, Reason::Class(a("badmatch"))),
            (twice, Reason::Class(a("badmatch"))),
            (secret, Reason::Other),
            (own, Reason::Other),
            (Term::small(7), Reason::Other),
        ] {
            assert_eq!(reason(t), expected);
        }
    }
}
