//! Natives of module `prim_tty` (OTP 26 and later): the terminal of the shell, or whatever standard
//! input and output are.
//!
//! The library edits lines. This file has reading, writing, the modes of the terminal, its size,
//! its description, and the width of characters. There is one terminal: a reference of [`Tty`]
//! stands for the standard descriptors. Its modes are those of [`tty`], which are restored when the
//! process that set them ends, or the emulator does.
//!
//! A waiting process gets one message, `{select, Tty, Ref, ready_input}`, for each request, as from
//! a select of a native library. Pending messages own a reference to the terminal and are dropped
//! without a lock held.
//!
//! # Orderings
//! `HELD`, `CONTROLLER` and `READER` are sequentially consistent, which is more than they need.
//! * `HELD` is cleared before [`hold`] takes the lock of [`Waiters`], and [`Input::ready`] loads it
//!   under that lock. If `ready` comes second, the lock makes it see false and it sends the
//!   message. If it comes first, `hold` finds the request and sends. A read that sees the old value
//!   registers its request afterwards, and the poll thread reports the input again.
//! * A process stores its own word in `CONTROLLER` or `READER` and compares it in its own
//!   [`owner_exit`], so the store happens before the load. The compare-exchange leaves the entry of
//!   a later process alone.

use super::terminfo::{self, Terminal, names};
use super::tty;
use crate::cx::{BifResult, Cx, Fail};
use crate::os::descriptor;
use crate::os::terminal::{self, ModeChanges, Modes, SystemLocale};
use crate::os_signals::{self, Action};
use crate::poll::{self, Ready};
use crate::posix::{errno_atom, errno_of};
use crate::{accounts, bifs, lazy_atoms, native_state, signal};
use purlin_term::frag::OwnedTerm;
use purlin_term::iolist::{IoVec, to_vec};
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, NIL, Term, am, atom, map};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Maximum number of bytes read at once.
const READ_BYTES: usize = 1024;
/// Maximum number of bytes written in one system call.
const WRITE_BYTES: usize = 1 << 20;

lazy_atoms! {
    stdin = "stdin";
    stdout = "stdout";
    stderr = "stderr";
    ebadf = "ebadf";
    closed = "closed";
    empty = "empty";
    not_printable = "not_printable";
    select = "select";
    ready_input = "ready_input";
    input = "input";
    raw = "raw";
    winch = "winch";
    cont = "cont";
}

/// A message that waits to be sent.
struct Waiting {
    to: Term,
    message: OwnedTerm,
}

/// The processes that wait for input and for signals.
#[derive(Default)]
struct Waiters {
    /// The registration of standard input.
    id: Option<poll::Id>,
    input: Option<Waiting>,
    /// Whether signals are kept for a process.
    signals: bool,
    signal: Option<Waiting>,
    arrived: Vec<Term>,
}

#[derive(Default)]
struct Input(Mutex<Waiters>);

impl Input {
    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.0.lock()
    }
}

/// Standard input, of which there is one, however many references there are.
fn standard_input() -> &'static Arc<Input> {
    static INPUT: OnceLock<Arc<Input>> = OnceLock::new();
    INPUT.get_or_init(Arc::default)
}

/// Whether something else reads from the terminal: the menu of Ctrl-C.
static HELD: AtomicBool = AtomicBool::new(false);

/// Withholds input from programs, or gives it back. A process that waits for input is then
/// notified.
pub fn hold(on: bool) {
    HELD.store(on, Ordering::SeqCst);
    if !on {
        let told = standard_input().lock().input.take();
        send(told);
    }
}

impl Ready for Input {
    fn ready(&self, id: poll::Id, _: bool, _: bool) {
        let mut w = self.lock();
        let told = if w.id == Some(id) && !HELD.load(Ordering::SeqCst) {
            w.input.take()
        } else {
            None
        };
        drop(w);
        send(told);
    }
}

fn send(w: Option<Waiting>) {
    if let Some(w) = w {
        signal::send(w.to, w.message.term());
    }
}

/// The words of the processes whose end matters here; 0 if there is none.
static CONTROLLER: AtomicU64 = AtomicU64::new(0);
static READER: AtomicU64 = AtomicU64::new(0);

/// Handles the end of a process: restores the modes that it set, and ends its reading.
pub fn owner_exit(pid: Term) {
    let ends = |of: &AtomicU64| {
        of.compare_exchange(pid.raw(), 0, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    };
    if CONTROLLER.load(Ordering::Relaxed) == pid.raw() && ends(&CONTROLLER) {
        tty::restore();
    }
    if READER.load(Ordering::Relaxed) == pid.raw() && ends(&READER) {
        let mut w = standard_input().lock();
        // Another process may have begun to read since.
        let is_of_other = |w: &Option<Waiting>| w.as_ref().is_some_and(|w| w.to != pid);
        if is_of_other(&w.input) || is_of_other(&w.signal) {
            return;
        }
        let id = w.id.take();
        let left = (w.input.take(), w.signal.take());
        let had_signals = std::mem::take(&mut w.signals);
        w.arrived.clear();
        drop(w);
        drop(left);
        id.into_iter().for_each(poll::forget);
        if had_signals {
            for s in [libc::SIGCONT, libc::SIGWINCH] {
                let _ = os_signals::set(s, Action::Default);
            }
        }
    }
}

/// Notifies the process that asked for signals: the window has another size, or the emulator
/// continues after it was stopped.
fn signalled(sig: i32) {
    let mut w = standard_input().lock();
    if !w.signals {
        return;
    }
    w.arrived.push(match sig {
        libc::SIGWINCH => winch(),
        _ => cont(),
    });
    let told = w.signal.take();
    drop(w);
    send(told);
}

/// The terminal behind a reference.
struct Tty {
    output: RawFd,
    state: Mutex<Modal>,
}

#[derive(Default)]
struct Modal {
    /// The modes before, if it is a terminal, and those to set.
    modes: Option<(Modes, Modes)>,
    /// Whether the terminal has been raw.
    was_raw: bool,
}

fn tty_of<'a>(t: Term) -> Result<&'a Tty, Fail> {
    native_state::get::<Tty>(t).ok_or(Fail::Badarg)
}

impl Tty {
    fn lock(&self) -> MutexGuard<'_, Modal> {
        self.state.lock()
    }
}

fn descriptor(name: Term) -> Result<RawFd, Fail> {
    [(stdin(), 0), (stdout(), 1), (stderr(), 2)]
        .into_iter()
        .find(|d| d.0 == name)
        .map(|d| d.1)
        .ok_or(Fail::Badarg)
}

/// `{error, {Call, Reason}}`
fn failed(cx: &mut Cx, call: &str, errno: i32) -> BifResult {
    let why = cx.tuple(&[atom::intern(call), errno_atom(errno)]);
    Ok(cx.err(why))
}
fn not_supported(cx: &mut Cx) -> BifResult {
    Ok(cx.err(am::ENOTSUP))
}

fn isatty_1(_: &mut Cx, [which]: [Term; 1]) -> BifResult {
    let fd = descriptor(which)?;
    if descriptor::is_terminal(fd) {
        return Ok(am::TRUE);
    }
    match errno_of(&io::Error::last_os_error()) {
        libc::EINVAL | libc::ENOTTY => Ok(am::FALSE),
        _ => Ok(ebadf()),
    }
}

fn create(cx: &mut Cx, output: RawFd, modes: Option<(Modes, Modes)>) -> BifResult {
    let state = Mutex::new(Modal {
        modes,
        was_raw: false,
    });
    let t = native_state::make(cx, Tty { output, state });
    Ok(cx.ok(t))
}
fn tty_create_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    create(cx, 1, None)
}
/// Since OTP 28: the argument names the output, from which a terminal is recognised.
fn tty_create_1(cx: &mut Cx, [output]: [Term; 1]) -> BifResult {
    let fd = descriptor(output)?;
    if fd == 0 {
        return Err(Fail::Badarg);
    }
    let modes = Modes::of(fd).ok().map(|m| (m, m));
    create(cx, fd, modes)
}

/// Up to OTP 27: chooses the modes by options; [`tty_set_1`] sets them.
fn tty_init_3(cx: &mut Cx, [t, fd, options]: [Term; 3]) -> BifResult {
    let fd = descriptor(fd)?;
    if !options.is_map() {
        return Err(Fail::Badarg);
    }
    let tty = tty_of(t)?;
    let before = match Modes::of(fd) {
        Ok(m) => m,
        Err(e) => return failed(cx, "tcgetattr", errno_of(&e)),
    };
    let option = |name: &str| {
        let v = map::get(options, atom::intern(name))?;
        [am::FALSE, am::TRUE]
            .iter()
            .position(|&b| b == v)
            .map(|on| on == 1)
    };
    let during = before.changed(ModeChanges {
        canonical: option("canon"),
        echo: option("echo"),
        signals: option("sig"),
    });
    tty.lock().modes = Some((before, during));
    Ok(am::OK)
}

/// Sets the terminal's modes until the running process ends.
fn take_over(cx: &mut Cx, fd: RawFd, modes: Option<(Modes, Modes)>) -> io::Result<()> {
    if let Some((before, during)) = modes {
        tty::begin(fd, before, during)?;
    }
    CONTROLLER.store(cx.self_pid().raw(), Ordering::SeqCst);
    Ok(())
}

fn tty_set_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let modes = tty_of(t)?.lock().modes;
    match take_over(cx, 0, modes) {
        Ok(()) => Ok(am::OK),
        Err(e) => failed(cx, "tcsetattr", errno_of(&e)),
    }
}

/// Since OTP 28: `input` says whether the terminal becomes raw.
fn tty_init_2(cx: &mut Cx, [t, options]: [Term; 2]) -> BifResult {
    if !options.is_map() {
        return Err(Fail::Badarg);
    }
    let tty = tty_of(t)?;
    let is_raw = map::get(options, input()).ok_or(Fail::Badarg)? == raw();
    let mut state = tty.lock();
    let Some((before, _)) = state.modes else {
        drop(state);
        return match is_raw {
            true => not_supported(cx),
            false => Ok(am::OK),
        };
    };
    if !is_raw && !state.was_raw {
        drop(state);
        CONTROLLER.store(cx.self_pid().raw(), Ordering::SeqCst);
        return Ok(am::OK);
    }
    let during = match is_raw {
        true => before.changed(ModeChanges {
            canonical: Some(false),
            echo: Some(false),
            signals: None,
        }),
        false => before,
    };
    state.modes = Some((before, during));
    state.was_raw |= is_raw;
    drop(state);
    match take_over(cx, tty.output, Some((before, during))) {
        Ok(()) => Ok(am::OK),
        Err(e) => failed(cx, "tcsetattr", errno_of(&e)),
    }
}

fn setlocale_1(_: &mut Cx, [_]: [Term; 1]) -> BifResult {
    let _ = SystemLocale::of_environment();
    Ok(Term::bool(crate::filename::locale_is_utf8()))
}

/// The message for a waiting process.
fn waiting(cx: &mut Cx, t: Term, reference: Term) -> Waiting {
    let to = cx.self_pid();
    let m = cx.tuple(&[select(), t, reference, ready_input()]);
    Waiting {
        to,
        message: OwnedTerm::copy_of(m),
    }
}

/// Notifies the process when there is input.
fn await_input(cx: &mut Cx, t: Term, reference: Term) -> io::Result<()> {
    let new = waiting(cx, t, reference);
    let to = standard_input();
    let mut w = to.lock();
    let id = match w.id {
        Some(id) => id,
        None => *w.id.insert(poll::register(0, to.clone())?),
    };
    let old = w.input.replace(new);
    drop(w);
    drop(old);
    poll::want(id, true, false);
    Ok(())
}
fn await_signal(cx: &mut Cx, t: Term, reference: Term) {
    let new = waiting(cx, t, reference);
    let mut w = standard_input().lock();
    let (now, old) = match w.arrived.is_empty() {
        true => (None, w.signal.replace(new)),
        false => (Some(new), w.signal.take()),
    };
    drop(w);
    drop(old);
    send(now);
}

fn begin_reading(cx: &mut Cx, t: Term, reference: Term) -> BifResult {
    READER.store(cx.self_pid().raw(), Ordering::SeqCst);
    match await_input(cx, t, reference) {
        Ok(()) => Ok(am::OK),
        Err(e) => failed(cx, "select", errno_of(&e)),
    }
}
fn tty_select_2(cx: &mut Cx, [t, reference]: [Term; 2]) -> BifResult {
    tty_of(t)?;
    begin_reading(cx, t, reference)
}
/// Up to OTP 27 signals come this way, too.
fn tty_select_3(cx: &mut Cx, [t, signals, reference]: [Term; 3]) -> BifResult {
    tty_of(t)?;
    standard_input().lock().signals = true;
    os_signals::add_terminal_handler(signalled);
    await_signal(cx, t, signals);
    for s in [libc::SIGCONT, libc::SIGWINCH] {
        if let Err(e) = os_signals::set(s, Action::Handle) {
            return failed(cx, "pipe", errno_of(&e));
        }
    }
    begin_reading(cx, t, reference)
}
fn tty_read_signal_2(cx: &mut Cx, [t, reference]: [Term; 2]) -> BifResult {
    tty_of(t)?;
    let mut w = standard_input().lock();
    if w.arrived.is_empty() {
        drop(w);
        return Ok(cx.err(empty()));
    }
    let sig = w.arrived.remove(0);
    drop(w);
    await_signal(cx, t, reference);
    Ok(cx.ok(sig))
}

/// Reads what is available, without waiting.
fn read(cx: &mut Cx, t: Term, reference: Term, most: usize) -> BifResult {
    tty_of(t)?;
    let mut buf = [0; READ_BYTES];
    let most = most.min(READ_BYTES);
    let n = match !HELD.load(Ordering::SeqCst) && descriptor::poll_one(0, false, 0) {
        true => match descriptor::read(0, &mut buf[..most]) {
            Ok(0) => return Ok(cx.err(closed())),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
            Err(e) => return failed(cx, "read", errno_of(&e)),
        },
        false => 0,
    };
    if let Err(e) = await_input(cx, t, reference) {
        return failed(cx, "select", errno_of(&e));
    }
    let b = cx.binary(&buf[..n]);
    Ok(cx.ok(b))
}
fn read_nif_2(cx: &mut Cx, [t, reference]: [Term; 2]) -> BifResult {
    read(cx, t, reference, READ_BYTES)
}
fn read_nif_3(cx: &mut Cx, [t, reference, n]: [Term; 3]) -> BifResult {
    tty_of(t)?;
    let n = purlin_term::arith::to_u64(n).ok_or(Fail::Badarg)?;
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    read(cx, t, reference, n)
}

/// Writes everything, and waits while the other side does not take it.
fn write_nif_2(cx: &mut Cx, [t, data]: [Term; 2]) -> BifResult {
    let fd = tty_of(t)?.output;
    let mut data = IoVec::gather(data).map_err(|_| Fail::Badarg)?;
    accounts::writes_begin();
    accounts::writes(|w| {
        w.bytes = data.bytes as u64;
        w.parts = data.parts.len() as u64;
    });
    while data.bytes > 0 {
        accounts::writes(|w| w.calls += 1);
        let parts = data.parts.iter().map(|p| p.as_bytes());
        match descriptor::write(fd, parts.take(crate::gather::max_parts()), WRITE_BYTES) {
            Ok(n) => data.advance(n),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                descriptor::poll_one(fd, true, -1);
            }
            Err(e) => {
                let why = errno_atom(errno_of(&e));
                return Ok(cx.err(why));
            }
        }
    }
    accounts::wrote(cx);
    Ok(am::OK)
}

fn tty_encoding_1(_: &mut Cx, [t]: [Term; 1]) -> BifResult {
    tty_of(t)?;
    Ok(am::UTF8)
}

fn tty_is_open_2(cx: &mut Cx, [t, which]: [Term; 2]) -> BifResult {
    tty_of(t)?;
    let fd = descriptor(which)?;
    match descriptor::hung_up(fd) {
        Ok(Some(gone)) => Ok(Term::bool(!gone)),
        Ok(None) => Err(Fail::Badarg),
        Err(e) => failed(cx, "tty_is_open", errno_of(&e)),
    }
}

fn tty_window_size_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let out = tty_of(t)?.output;
    let (w, h) = terminal::window_size(0)
        .or_else(|| terminal::window_size(out))
        .unwrap_or((0, 0));
    let side = |n: u32| Term::small(if n > 0 { i64::from(n) } else { -1 });
    if (w, h) == (0, 0) {
        return not_supported(cx);
    }
    let size = cx.tuple(&[side(w), side(h)]);
    Ok(cx.ok(size))
}

/// A number in the range of C's `int`.
fn int(t: Term) -> Result<i32, Fail> {
    t.as_small()
        .and_then(|n| i32::try_from(n).ok())
        .ok_or(Fail::Badarg)
}

fn isprint_1(_: &mut Cx, [c]: [Term; 1]) -> BifResult {
    Ok(Term::bool(terminal::is_printable(int(c)? as u8)))
}
fn wcwidth_1(cx: &mut Cx, [c]: [Term; 1]) -> BifResult {
    match terminal::char_width(int(c)? as u32) {
        -1 => Ok(cx.err(not_printable())),
        n => Ok(Term::small(n.into())),
    }
}
/// The width of characters given as C's `wchar_t`.
fn wcswidth_1(cx: &mut Cx, [chars]: [Term; 1]) -> BifResult {
    let bytes = to_vec(chars).map_err(|_| Fail::Badarg)?;
    let mut width = 0i64;
    for c in bytes.chunks_exact(size_of::<libc::wchar_t>()) {
        let c = c.iter().rev().fold(0u32, |n, &b| n << 8 | u32::from(b));
        if c == 0 {
            break;
        }
        match terminal::char_width(c) {
            -1 => return Ok(cx.err(not_printable())),
            n => width += i64::from(n),
        }
    }
    Ok(cx.ok(Term::small(width)))
}
fn sizeof_wchar_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(Term::small(size_of::<libc::wchar_t>() as i64))
}

// The terminal's description.

static TERMINAL: Mutex<Option<Arc<Terminal>>> = Mutex::new(None);

fn terminal() -> Option<Arc<Terminal>> {
    TERMINAL.lock().clone()
}
fn use_terminal(name: &[u8]) -> bool {
    let found = std::str::from_utf8(name).ok().and_then(Terminal::named);
    let there = found.is_some();
    if there {
        *TERMINAL.lock() = found.map(Arc::new);
    }
    there
}

/// The bytes up to the first zero, which ends a string in C.
fn c_string(t: Term) -> Result<Vec<u8>, Fail> {
    let mut s = to_vec(t).map_err(|_| Fail::Badarg)?;
    s.truncate(s.iter().position(|&b| b == 0).unwrap_or(s.len()));
    Ok(s)
}
fn name(t: Term) -> Result<String, Fail> {
    Ok(String::from_utf8_lossy(&c_string(t)?).into_owned())
}

fn tgetent_1(cx: &mut Cx, [n]: [Term; 1]) -> BifResult {
    match use_terminal(&c_string(n)?) {
        true => Ok(am::OK),
        false => failed(cx, "tgetent", libc::ENOENT),
    }
}
fn setupterm_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let n = crate::osenv::get(b"TERM").unwrap_or_else(|| b"unknown".to_vec());
    match use_terminal(&n) {
        true => Ok(am::OK),
        false => failed(cx, "setupterm", libc::ENOENT),
    }
}
fn number_1(_: &mut Cx, [code]: [Term; 1]) -> BifResult {
    let code = name(code)?;
    let n = terminal().map_or(-1, |t| t.number(&code));
    Ok(Term::small(n.into()))
}
fn flag_1(_: &mut Cx, [code]: [Term; 1]) -> BifResult {
    let code = name(code)?;
    Ok(Term::bool(terminal().is_some_and(|t| t.flag(&code))))
}
fn string_term(cx: &mut Cx, s: Option<&[u8]>) -> BifResult {
    match s {
        Some(s) => {
            let b = cx.binary(s);
            Ok(cx.ok(b))
        }
        None => Ok(am::FALSE),
    }
}
fn tgetstr_1(cx: &mut Cx, [code]: [Term; 1]) -> BifResult {
    let code = name(code)?;
    let t = terminal();
    string_term(cx, t.as_ref().and_then(|t| t.string_by_code(&code)))
}
fn tigetstr_1(cx: &mut Cx, [n]: [Term; 1]) -> BifResult {
    let n = name(n)?;
    let t = terminal().ok_or(Fail::Badarg)?;
    let s = t.string(&n).map_err(|()| Fail::Badarg)?;
    string_term(cx, s)
}

/// A capability in the form in which it is sent, with its parameters filled in.
fn sent(cx: &mut Cx, s: &[u8], parameters: [i64; 9]) -> BifResult {
    let s = terminfo::without_delays(&terminfo::fill_in(s, parameters));
    string_term(cx, Some(&s))
}
/// Moves the cursor. The first parameter is the column, which descriptions name second.
fn tgoto(cx: &mut Cx, s: Term, column: i32, row: i32) -> BifResult {
    let mut p = [0; 9];
    (p[0], p[1]) = (row.into(), column.into());
    sent(cx, &c_string(s)?, p)
}
fn tgoto_1(cx: &mut Cx, [s]: [Term; 1]) -> BifResult {
    tgoto(cx, s, 0, 0)
}
fn tgoto_2(cx: &mut Cx, [s, column]: [Term; 2]) -> BifResult {
    tgoto(cx, s, int(column)?, 0)
}
fn tgoto_3(cx: &mut Cx, [s, column, row]: [Term; 3]) -> BifResult {
    tgoto(cx, s, int(column)?, int(row)?)
}
fn tputs_2(cx: &mut Cx, [s, parameters]: [Term; 2]) -> BifResult {
    let s = c_string(s)?;
    let mut p = [0; 9];
    let mut n = 0;
    for x in parameters.list_iter() {
        *p.get_mut(n).ok_or(Fail::Badarg)? = purlin_term::arith::to_i64(x).ok_or(Fail::Badarg)?;
        n += 1;
    }
    if n > 0 {
        return sent(cx, &s, p);
    }
    let s = terminfo::without_delays(&s);
    string_term(cx, Some(&s))
}

fn tinfo_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let keys = ["name", "code", "full_name"].map(atom::intern);
    let mut list = |rows: &[names::Row]| {
        rows.iter().fold(NIL, |l, &(n, c, f)| {
            let mut m = cx.flatmap(&[], &[]);
            for (k, v) in keys.into_iter().zip([n, c, f]) {
                let v = cx.string(v);
                m = map::put(cx, m, k, v);
            }
            cx.cons(m, l)
        })
    };
    let values = [
        ("bool", list(names::FLAGS)),
        ("num", list(names::NUMBERS)),
        ("str", list(names::STRINGS)),
    ];
    let mut m = cx.flatmap(&[], &[]);
    for (k, v) in values {
        m = map::put(cx, m, atom::intern(k), v);
    }
    Ok(m)
}

bifs! {
    Plain "prim_tty":"isatty"/1 = isatty_1;
    Plain "prim_tty":"tty_create"/0 = tty_create_0;
    Plain "prim_tty":"tty_create"/1 = tty_create_1;
    Plain "prim_tty":"tty_init"/3 = tty_init_3;
    Plain "prim_tty":"tty_init"/2 = tty_init_2;
    Plain "prim_tty":"tty_set"/1 = tty_set_1;
    Plain "prim_tty":"setlocale"/1 = setlocale_1;
    Plain "prim_tty":"tty_select"/2 = tty_select_2;
    Plain "prim_tty":"tty_select"/3 = tty_select_3;
    Plain "prim_tty":"tty_read_signal"/2 = tty_read_signal_2;
    Plain "prim_tty":"tty_window_size"/1 = tty_window_size_1;
    Plain "prim_tty":"tty_encoding"/1 = tty_encoding_1;
    Plain "prim_tty":"tty_is_open"/2 = tty_is_open_2;
    DirtyIo "prim_tty":"write_nif"/2 = write_nif_2;
    Plain "prim_tty":"read_nif"/2 = read_nif_2;
    Plain "prim_tty":"read_nif"/3 = read_nif_3;
    Plain "prim_tty":"isprint"/1 = isprint_1;
    Plain "prim_tty":"wcwidth"/1 = wcwidth_1;
    Plain "prim_tty":"wcswidth"/1 = wcswidth_1;
    Plain "prim_tty":"sizeof_wchar"/0 = sizeof_wchar_0;
    Plain "prim_tty":"tgetent_nif"/1 = tgetent_1;
    Plain "prim_tty":"tgetnum_nif"/1 = number_1;
    Plain "prim_tty":"tgetflag_nif"/1 = flag_1;
    Plain "prim_tty":"tgetstr_nif"/1 = tgetstr_1;
    Plain "prim_tty":"tgoto_nif"/1 = tgoto_1;
    Plain "prim_tty":"tgoto_nif"/2 = tgoto_2;
    Plain "prim_tty":"tgoto_nif"/3 = tgoto_3;
    Plain "prim_tty":"setupterm_nif"/0 = setupterm_0;
    Plain "prim_tty":"tigetnum_nif"/1 = number_1;
    Plain "prim_tty":"tigetflag_nif"/1 = flag_1;
    Plain "prim_tty":"tigetstr_nif"/1 = tigetstr_1;
    Plain "prim_tty":"tinfo_nif"/0 = tinfo_0;
    Plain "prim_tty":"tputs_nif"/2 = tputs_2;
}
