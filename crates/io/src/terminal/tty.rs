//! The driver `tty_sl`: the terminal of the interactive shell. The shell says what to write, insert
//! and delete and where to move. The driver keeps the line on the screen ([`super::line`]) and
//! sends the terminal the bytes that update it.
//!
//! There is one terminal. Its modes are changed while a port uses it, and restored when the port
//! ends or the process exits, whichever comes first.

use super::line::{Caps, Decoded, Line, decode};
use super::terminfo::{Terminal, without_delays};
use crate::filename;
use crate::gather::Gather;
use crate::options::BreakMode;
use crate::os::descriptor;
use crate::os::terminal::{self, ModeChanges, Modes, SystemLocale};
use crate::os_signals::{self, Action};
use crate::port::fd::{CONTROL_BASE, GET_WINDOW_SIZE, Output};
use crate::port::settings::{Error, Options};
use crate::port::{Base, Driver, End, Reply};
use crate::{halt, poll};
use purlin_term::am;
use purlin_term::iolist::{IoSlice, IoVec};
use purlin_term::sync::Mutex;
use std::borrow::Cow;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// First byte of the shell's output.
mod op {
    pub(crate) const PUT: u8 = 0;
    pub(crate) const MOVE: u8 = 1;
    pub(crate) const INSERT: u8 = 2;
    pub(crate) const DELETE: u8 = 3;
    pub(crate) const BEEP: u8 = 4;
    pub(crate) const PUT_SYNC: u8 = 5;
}
/// Operations of `port_control`, beside [`GET_WINDOW_SIZE`].
const GET_UNICODE: u32 = 101;
const SET_UNICODE: u32 = 102;

const DEFAULT_COLUMNS: u32 = 80;
const DEFAULT_ROWS: u32 = 24;
/// Bytes in the queue beyond which the reply to a synchronous write is deferred.
const SYNC_BYTES: usize = 1024;
/// Maximum number of bytes read at once.
const READ_BYTES: usize = 1024;

/// The terminal in use, with its modes before and during use.
struct InUse {
    fd: RawFd,
    before: Modes,
    during: Modes,
}
static IN_USE: Mutex<Option<InUse>> = Mutex::new(None);

/// Restores the terminal's modes from before a port used it. The process is about to exit.
pub fn restore() {
    let mut t = IN_USE.lock();
    if let Some(t) = t.take() {
        let _ = t.before.set(t.fd);
    }
}

/// Set when the size of the window has changed.
static RESIZED: AtomicBool = AtomicBool::new(false);

/// Records that the size of the window has changed.
fn resized() {
    RESIZED.store(true, Ordering::Relaxed);
}

/// Handles a new window size, or that the emulator continues after it was stopped.
fn signalled(sig: i32) {
    match sig {
        libc::SIGWINCH => resized(),
        _ => set_shell_modes(),
    }
}

/// Sets the terminal's modes for the shell. Does nothing if there is no shell.
pub fn set_shell_modes() {
    let t = IN_USE.lock();
    if let Some(t) = &*t {
        let _ = t.during.set(t.fd);
    }
}

/// Restores the modes from before the shell used the terminal, until [`set_shell_modes`].
pub fn set_outer_modes() {
    let t = IN_USE.lock();
    if let Some(t) = &*t {
        let _ = t.before.set(t.fd);
    }
}

/// Whether a shell with line editing uses the terminal.
pub(crate) fn in_use() -> bool {
    IN_USE.lock().is_some()
}

/// The settings from the arguments in the port's name: `-c`, `+c`, `-e` …, and a terminal other
/// than standard input.
fn arguments(command: &[u8]) -> (ModeChanges, Option<&[u8]>) {
    let mut c = ModeChanges::default();
    let mut path = None;
    for a in command.split(|&b| b == b' ').skip(1) {
        let on = match a.first() {
            Some(b'+') => true,
            Some(b'-') => false,
            Some(_) => {
                path = Some(a);
                continue;
            }
            None => continue,
        };
        match a.get(1) {
            Some(b'c') => c.canonical = Some(on),
            Some(b'e') => c.echo = Some(on),
            Some(b's') => c.signals = Some(on),
            _ => {}
        }
    }
    (c, path)
}

/// The capabilities of the terminal named by `TERM`, and its columns. None if it is unknown or
/// cannot be used for editing.
fn capabilities() -> Option<(Caps, Option<u32>)> {
    let name = String::from_utf8(crate::osenv::get(b"TERM")?).ok()?;
    let t = Terminal::named(&name)?;
    let cap = |code| t.string_by_code(code).map(without_delays);
    let caps = Caps {
        up: cap("up")?,
        down: cap("do").unwrap_or_else(|| b"\n".to_vec()),
        left: b"\x08".to_vec(),
        right: cap("nd")?,
        glitch: t.flag("xn"),
    };
    Some((caps, u32::try_from(t.number("co")).ok()))
}

/// Sets modes that are restored when the use of the terminal or the process ends.
pub fn begin(fd: RawFd, before: Modes, during: Modes) -> io::Result<()> {
    during.set(fd)?;
    *IN_USE.lock() = Some(InUse { fd, before, during });
    static HOOKS: Once = Once::new();
    HOOKS.call_once(|| {
        halt::on_end(restore);
        os_signals::add_terminal_handler(signalled);
    });
    Ok(())
}

/// See the module head.
struct Tty {
    fd: RawFd,
    own: Option<OwnedFd>,
    id: poll::Id,
    /// None when stopped.
    out: Option<Output>,
    queue: IoVec,
    line: Line<SystemLocale>,
    /// Whether the owner waits for the reply to a synchronous write.
    owes_ok: bool,
    /// The beginning of a character that was not read completely.
    partial: Vec<u8>,
}

/// Starts the driver. Fails if there is no terminal, if it is unknown, or if it is already in use.
pub fn start(b: &mut Base, _: &Options, command: &[u8]) -> Result<Box<dyn Driver>, Error> {
    if in_use() || !descriptor::is_terminal(0) || !descriptor::is_terminal(1) {
        return Err(Error::General);
    }
    let (changes, path) = arguments(command);
    let own = match path {
        Some(p) => Some(terminal::open_terminal(p).map_err(|_| Error::General)?),
        None => None,
    };
    let fd = own.as_ref().map_or(0, |f| f.as_raw_fd());
    let (caps, columns) = capabilities().ok_or(Error::General)?;
    let before = Modes::of(fd).map_err(|_| Error::General)?;
    let mut during = before.changed(changes);
    let mode = crate::options::try_current().map(|o| o.flags.break_mode);
    if mode == Some(BreakMode::Interrupt) {
        during.pass_interrupt_key();
    }
    let id = b.register(fd).map_err(|_| Error::General)?;
    if begin(fd, before, during).is_err() {
        poll::forget(id);
        return Err(Error::General);
    }
    // Without these signals the terminal still works, only less well.
    let _ = os_signals::set(libc::SIGCONT, Action::Handle);
    let _ = os_signals::set(libc::SIGWINCH, Action::Handle);
    let columns = terminal::window_size(fd)
        .map(|w| w.0)
        .filter(|&n| n > 0)
        .or(columns)
        .unwrap_or(DEFAULT_COLUMNS);
    let locale = SystemLocale::of_environment();
    let utf8 = filename::locale_is_utf8();
    poll::want(id, true, false);
    Ok(Box::new(Tty {
        fd,
        own,
        id,
        out: Some(Output::shared(fd)),
        queue: IoVec::default(),
        line: Line::new(caps, locale, columns as usize, utf8),
        owes_ok: false,
        partial: Vec::new(),
    }))
}

impl Tty {
    fn size(&self) -> (u32, u32) {
        let (w, h) = terminal::window_size(self.fd).unwrap_or((0, 0));
        (
            if w > 0 { w } else { DEFAULT_COLUMNS },
            if h > 0 { h } else { DEFAULT_ROWS },
        )
    }
    fn write(&mut self, b: &mut Base) {
        let Some(out) = &mut self.out else { return };
        match out.write(b, &mut self.queue) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => {
                self.queue = IoVec::default();
                b.fail(crate::posix::errno_of(&e));
                return;
            }
        }
        if self.owes_ok && self.queue.bytes < SYNC_BYTES {
            self.owes_ok = false;
            b.tell(am::OK);
        }
        if self.queue.bytes > 0
            && let Err(e) = out.await_room(b)
        {
            self.queue = IoVec::default();
            b.fail(crate::posix::errno_of(&e));
        }
    }
    fn read(&mut self, b: &mut Base) {
        if !descriptor::poll_one(self.fd, false, 0) {
            poll::want(self.id, true, false);
            return;
        }
        let mut buf = std::mem::take(&mut self.partial);
        let at = buf.len();
        buf.resize(at + READ_BYTES, 0);
        match descriptor::read(self.fd, &mut buf[at..]) {
            Ok(0) => {
                // The rest of the character never comes.
                b.input(&latin1(&buf[..at]));
                b.end(End::Eof);
                return;
            }
            Ok(n) => {
                buf.truncate(at + n);
                let (typed, left) = typed(&buf, &mut self.line.utf8);
                if !typed.is_empty() {
                    b.input(&typed);
                }
                self.partial = left.to_vec();
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                buf.truncate(at);
                self.partial = buf;
            }
            Err(e) => {
                b.fail(crate::posix::errno_of(&e));
                return;
            }
        }
        poll::want(self.id, true, false);
    }
}

/// The characters in `bytes`, in UTF-8, and the beginning of one that is not complete. Clears
/// `utf8` at the first byte that is not UTF-8. From there on each byte is a character.
fn typed<'a>(bytes: &'a [u8], utf8: &mut bool) -> (Cow<'a, [u8]>, &'a [u8]) {
    let mut at = 0;
    while *utf8 && at < bytes.len() {
        match decode(&bytes[at..]) {
            Decoded::Char(_, n) => at += n,
            Decoded::Incomplete => return (bytes[..at].into(), &bytes[at..]),
            Decoded::Invalid => *utf8 = false,
        }
    }
    let (good, other) = bytes.split_at(at);
    match other {
        [] => (good.into(), other),
        _ => ([good, &latin1(other)].concat().into(), &[]),
    }
}

/// Latin-1 as UTF-8.
fn latin1(bytes: &[u8]) -> Vec<u8> {
    let text: String = bytes.iter().map(|&b| char::from(b)).collect();
    text.into_bytes()
}

impl Driver for Tty {
    fn output(&mut self, b: &mut Base, data: &mut Gather) {
        let bytes = data.to_vec();
        let Some((&what, rest)) = bytes.split_first() else {
            return;
        };
        if RESIZED.swap(false, Ordering::Relaxed) {
            self.line.columns = self.size().0 as usize;
        }
        let number = || match *rest {
            [high, low, ..] => i32::from(i16::from_be_bytes([high, low])),
            _ => 0,
        };
        match what {
            op::PUT | op::PUT_SYNC => self.line.put(rest),
            op::MOVE => self.line.step(number()),
            op::INSERT => self.line.insert(rest),
            op::DELETE => self.line.delete(number()),
            op::BEEP => self.line.beep(),
            _ => {}
        }
        let idle = self.queue.bytes == 0;
        if !self.line.out.is_empty() {
            self.queue.push(IoSlice::copy_of(&self.line.out));
            self.line.out.clear();
        }
        if what == op::PUT_SYNC {
            self.owes_ok = true;
        }
        if idle || self.owes_ok {
            self.write(b);
        }
    }

    fn ready(&mut self, b: &mut Base, id: poll::Id, readable: bool, writable: bool) {
        if writable && self.out.as_ref().is_some_and(|o| o.is(id)) {
            self.write(b);
        }
        if readable && id == self.id {
            self.read(b);
        }
    }

    fn control(&mut self, _: &mut Base, op: u32, data: &[u8]) -> Option<Reply> {
        let bytes = match op.wrapping_sub(CONTROL_BASE) {
            GET_WINDOW_SIZE => {
                let (w, h) = self.size();
                [w.to_ne_bytes(), h.to_ne_bytes()].concat()
            }
            GET_UNICODE => vec![u8::from(self.line.utf8)],
            SET_UNICODE => match data.first() {
                Some(&on) => {
                    let before = std::mem::replace(&mut self.line.utf8, on != 0);
                    vec![u8::from(before)]
                }
                None => Vec::new(),
            },
            _ => return None,
        };
        Some(Reply {
            bytes,
            binary: false,
        })
    }

    fn queued(&self) -> usize {
        self.queue.bytes
    }
    fn write_out(&mut self, b: &mut Base, until: Option<i64>) {
        if let Some(o) = &self.out {
            o.write_all(b, &mut self.queue, until);
        }
    }
    fn on_terminal(&self) -> bool {
        true
    }
    fn stop(&mut self, _: &mut Base) {
        restore();
        let _ = os_signals::set(libc::SIGCONT, Action::Default);
        let _ = os_signals::set(libc::SIGWINCH, Action::Default);
        poll::forget(self.id);
        if let Some(out) = self.out.take() {
            out.close();
        }
        self.own = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_in_the_name() {
        let (c, path) = arguments(b"tty_sl -c -e +s /dev/tty9");
        assert_eq!(
            (c.canonical, c.echo, c.signals, path),
            (
                Some(false),
                Some(false),
                Some(true),
                Some(&b"/dev/tty9"[..])
            )
        );
        assert_eq!(arguments(b"tty_sl"), (ModeChanges::default(), None));
    }

    /// The characters that reads of these bytes deliver, and whether the input is still UTF-8.
    fn read_in(parts: &[&[u8]]) -> (String, bool) {
        let (mut utf8, mut partial, mut all) = (true, Vec::new(), Vec::new());
        for p in parts {
            let buf = [&partial, *p].concat();
            let (characters, left) = typed(&buf, &mut utf8);
            all.extend_from_slice(&characters);
            partial = left.to_vec();
        }
        all.extend(latin1(&partial));
        (String::from_utf8(all).expect("characters"), utf8)
    }

    #[test]
    fn characters_may_be_cut_anywhere() {
        let text = "aé→😀z".as_bytes();
        for i in 0..=text.len() {
            for j in i..=text.len() {
                let read = read_in(&[&text[..i], &text[i..j], &text[j..]]);
                assert_eq!(read, ("aé→😀z".into(), true));
            }
        }
        // The rest of a character that never comes, and of one that is none.
        assert_eq!(read_in(&[b"a\xC3"]), ("aÃ".into(), true));
        assert_eq!(
            read_in(&["é".as_bytes(), b"\xE2\x86", b"z"]),
            ("éâ\u{86}z".into(), false)
        );
        assert_eq!(
            read_in(&["é\u{e9}".as_bytes(), b"\xFF\xC3\xA9"]),
            ("éé\u{ff}Ã©".into(), false)
        );
    }
}
