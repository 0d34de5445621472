//! Reports of the runtime itself: messages to the `logger` process, or to standard error while
//! there is no logger.
//!
//! A report is the message `{log, Level, Format, Args, Metadata}` with `Metadata = #{gl, pid, time,
//! error_logger => #{emulator => true, tag}}`; absent `gl` and `pid` are left out. Its receiver is
//! set by `erlang:system_flag(system_logger, _)`: a pid, the name `logger`, or none.

use crate::cx::Cx;
use crate::process::registry;
use crate::{clock, lazy_atoms, post};
use purlin_term::frag::Fragment;
use purlin_term::print::{LONGEST_TEXT, Style, format_term};
use purlin_term::{Alloc, NIL, Term, am, copy};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

lazy_atoms! {
    log = "log";
    logger = "logger";
    emulator = "emulator";
    gl = "gl";
    time = "time";
    warning_msg = "warning_msg";
    info_msg = "info_msg";
}

/// Severity of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Error,
    Warning,
    Info,
}

impl Level {
    /// Level of the message, and the tag of `error_logger`.
    fn atoms(self) -> (Term, Term) {
        match self {
            Level::Error => (am::ERROR, am::ERROR),
            Level::Warning => (am::WARNING, warning_msg()),
            Level::Info => (am::INFO, info_msg()),
        }
    }
}

/// The word of the receiver of reports; 0 for the name `logger`.
static SYSTEM_LOGGER: AtomicU64 = AtomicU64::new(0);

/// The receiver of reports: a local pid, `logger` or `undefined`.
pub fn system_logger() -> Term {
    match SYSTEM_LOGGER.load(Ordering::Relaxed) {
        0 => logger(),
        // SAFETY: `set_system_logger` stores only immediates.
        w => unsafe { Term::from_raw(w) },
    }
}

/// Sets the receiver of reports and returns the previous one. None if `to` is neither a local pid,
/// `logger` nor `undefined`.
pub fn set_system_logger(to: Term) -> Option<Term> {
    if !to.is_local_pid() && to != logger() && to != am::UNDEFINED {
        return None;
    }
    let before = system_logger();
    SYSTEM_LOGGER.store(to.raw(), Ordering::Relaxed);
    Some(before)
}

/// The content of a report.
pub enum Text<'a> {
    /// Written as it is.
    Plain(&'a str),
    /// A format of `io:format`, and its arguments.
    Format(&'a str, &'a [Term]),
}

/// Sends a report on behalf of the process `from` with group leader `leader`, either of which may
/// be absent (nil).
pub fn send(level: Level, leader: Term, from: Term, text: Text) {
    let mut to = system_logger();
    if to == am::UNDEFINED {
        return;
    }
    let mut f = Fragment::new();
    let message = build(&mut f, level, leader, from, &text);
    let owned = purlin_term::frag::OwnedTerm::from_parts(message, f);
    if to.is_local_pid() {
        if post::send(to, owned.term()) {
            return;
        }
        // The receiver is gone: from now on it is the logger again.
        set_system_logger(logger());
        to = logger();
    }
    match registry::whereis(to).filter(|t| t.is_local_pid()) {
        // A logger that fails must not cause more work for itself.
        Some(pid) if pid == from => {}
        Some(pid) if post::send(pid, owned.term()) => {}
        _ => print(owned.term()),
    }
}

/// Sends a message of the runtime to a local process.
pub(crate) fn notify(to: Term, message: &purlin_term::frag::OwnedTerm) {
    post::send(to, message.term());
}

fn build(f: &mut Fragment, level: Level, leader: Term, from: Term, text: &Text) -> Term {
    let (level, tag) = level.atoms();
    let (format, args) = match text {
        Text::Plain(s) => {
            let s = f.string(s);
            (f.string("~s~n"), f.list(&[s]))
        }
        Text::Format(s, args) => {
            let args: Vec<Term> = args.iter().map(|&t| copy::copy(t, f)).collect();
            (f.string(s), f.list(&args))
        }
    };
    // Keys of flat maps are in term order, which for atoms is the order of their text.
    let inner = f.flatmap(&[emulator(), am::TAG], &[am::TRUE, tag]);
    let (mut keys, mut values) = (vec![am::ERROR_LOGGER], vec![inner]);
    if leader != NIL {
        keys.push(gl());
        values.push(copy::copy(leader, f));
    }
    if from != NIL {
        keys.push(am::PID);
        values.push(from);
    }
    keys.push(time());
    values.push(f.int(clock::os_system().div_euclid(1000)));
    let metadata = f.flatmap(&keys, &values);
    f.tuple(&[log(), level, format, args, metadata])
}

/// Writes text to standard error as the emulator does: with CR LF, as terminals in raw mode need
/// it, wherever it goes.
pub fn to_stderr(text: &str) {
    let text = text.replace('\n', "\r\n");
    // There is nobody left to report a failure to.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Writes a report to standard error, before there is a logger or after it is gone: the message, as
/// in stock.
fn print(message: Term) {
    let text = format_term(message, Style::Display, LONGEST_TEXT);
    to_stderr(&format!(
        "(no logger present) unexpected logger message: {text}\n"
    ));
}

/// Reports that the process in the context ends by an uncaught error, with that exit reason.
pub(crate) fn process_crash(cx: &mut Cx, reason: Term) {
    let me = cx.self_pid();
    let leader = crate::process::group_leader_of(cx);
    let text = "Error in process ~p with exit value:~n~p~n";
    let on_node = "Error in process ~p on node ~p with exit value:~n~p~n";
    if purlin_term::node::is_alive() {
        let node = purlin_term::node::this_name();
        send(
            Level::Error,
            leader,
            me,
            Text::Format(on_node, &[me, node, reason]),
        );
    } else {
        send(Level::Error, leader, me, Text::Format(text, &[me, reason]));
    }
}

/// Reports that the process in the context has grown while the node's memory limit is reached.
/// `bytes` are the limit, the memory in use, and the size of the process, or of the table that it
/// has inserted into.
pub(crate) fn memory_limit_reached(cx: &mut Cx, bytes: [usize; 3], table: Option<Term>) {
    const FIRST: &str = "     Process:            ~p~n\
        \x20    Context:            memory limit of the node reached~n\
        \x20    Memory Limit:       ~p~n     Memory Used:        ~p~n";
    const PROCESS: &str = "     Process Memory:     ~p~n";
    const TABLE: &str = "     Table:              ~p~n     Table Memory:       ~p~n";
    const REST: &str =
        "     Kill:               true~n     Message Queue Len:  ~p~n     GC Info:            ~p~n";
    let me = cx.self_pid();
    // Nothing may be allocated on the heap that is being collected.
    let mut f = Fragment::new();
    let info = crate::process::heap_info::gc_info(&mut f, &cx.heap, None);
    let [limit, used, mine] = bytes.map(|n| Term::small(n as i64));
    let mut args = vec![me, limit, used];
    args.extend(table);
    args.extend([
        mine,
        Term::small(cx.process().queued_messages() as i64),
        info,
    ]);
    let leader = match cx.process().group_leader {
        am::UNDEFINED => NIL,
        pid => pid,
    };
    let what = if table.is_some() { TABLE } else { PROCESS };
    let format = format!("{FIRST}{what}{REST}");
    send(Level::Error, leader, me, Text::Format(&format, &args));
    drop(purlin_term::frag::OwnedTerm::from_parts(info, f));
}

/// Reports that the process in the context, of `words` words in all, exceeds its `max_heap_size`.
pub(crate) fn max_heap_exceeded(cx: &mut Cx, limit: crate::process::ext::MaxHeap, words: usize) {
    const REST: &str = "~n     Context:            maximum heap size reached~n\
        \x20    Max Heap Size:      ~p~n     Total Heap Size:    ~p~n     Kill:               ~p~n\
        \x20    Error Logger:       ~p~n     Message Queue Len:  ~p~n     GC Info:            ~p~n";
    let me = cx.self_pid();
    // Nothing may be allocated on the heap that is being collected.
    let mut f = Fragment::new();
    let info = crate::process::heap_info::gc_info(&mut f, &cx.heap, None);
    let queue = cx.process().queued_messages();
    let boolean = |b| if b { am::TRUE } else { am::FALSE };
    let rest = [
        Term::small(limit.words as i64),
        Term::small(words as i64),
        boolean(limit.kill),
        am::TRUE,
        Term::small(queue as i64),
        info,
    ];
    let leader = match cx.process().group_leader {
        am::UNDEFINED => NIL,
        pid => pid,
    };
    let (first, mut args) = if purlin_term::node::is_alive() {
        let node = purlin_term::node::this_name();
        ("     Process:            ~p on node ~p", vec![me, node])
    } else {
        ("     Process:            ~p ", vec![me])
    };
    args.extend(rest);
    let format = format!("{first}{REST}");
    send(Level::Error, leader, me, Text::Format(&format, &args));
    drop(purlin_term::frag::OwnedTerm::from_parts(info, f));
}
