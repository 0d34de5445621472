//! The terminal of the system: its modes, its size, and the width of characters by the locale.

use super::descriptor::{check, lift};
use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Opens a terminal, or what else a driver is told to use as one.
pub(crate) fn open_terminal(path: &[u8]) -> io::Result<OwnedFd> {
    let path = CString::new(path)?;
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a valid path; the new descriptor is ours.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), flags))?;
        lift(OwnedFd::from_raw_fd(fd))
    }
}

/// The modes of a terminal.
#[derive(Clone, Copy)]
pub struct Modes(libc::termios);

/// Which modes a driver sets (true) or clears (false); None: as they are.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ModeChanges {
    /// Input by lines that the kernel edits.
    pub canonical: Option<bool>,
    pub echo: Option<bool>,
    /// Keys that make signals, and flow control.
    pub signals: Option<bool>,
}

impl Modes {
    /// Those that the terminal has.
    pub fn of(fd: RawFd) -> io::Result<Modes> {
        // SAFETY: an out parameter of the right type.
        unsafe {
            let mut t: libc::termios = std::mem::zeroed();
            check(libc::tcgetattr(fd, &mut t))?;
            Ok(Modes(t))
        }
    }
    /// Gives them to the terminal. May be called in a signal handler.
    pub fn set(&self, fd: RawFd) -> io::Result<()> {
        // SAFETY: modes that came from a terminal.
        check(unsafe { libc::tcsetattr(fd, libc::TCSANOW, &self.0) }).map(drop)
    }
    /// Makes the key that interrupts an ordinary one.
    pub(crate) fn pass_interrupt_key(&mut self) {
        self.0.c_cc[libc::VINTR] = 0;
    }
    /// These, changed.
    pub fn changed(&self, c: ModeChanges) -> Modes {
        fn bits(flags: &mut libc::tcflag_t, mask: libc::tcflag_t, on: bool) {
            if on {
                *flags |= mask;
            } else {
                *flags &= !mask;
            }
        }
        let mut t = self.0;
        t.c_iflag &= !libc::ISTRIP;
        if let Some(on) = c.canonical {
            bits(&mut t.c_iflag, libc::ICRNL, on);
            bits(&mut t.c_lflag, libc::ICANON, on);
            bits(&mut t.c_oflag, libc::OPOST, on);
            if !on {
                t.c_cc[libc::VMIN] = 1;
                t.c_cc[libc::VTIME] = 0;
            }
        }
        if let Some(on) = c.echo {
            bits(&mut t.c_lflag, libc::ECHO, on);
        }
        if let Some(on) = c.signals {
            let keys = libc::BRKINT | libc::IGNPAR | libc::ICRNL | libc::IXON | libc::IXANY;
            bits(&mut t.c_iflag, keys, on);
            bits(&mut t.c_lflag, libc::ISIG | libc::IEXTEN, on);
        }
        Modes(t)
    }
}

/// The knowledge of the environment's locale about characters.
pub struct SystemLocale(());

impl SystemLocale {
    /// Makes the locale of the environment the process's, for characters only.
    pub fn of_environment() -> SystemLocale {
        // SAFETY: a valid string; nothing else here depends on the locale's characters.
        unsafe { libc::setlocale(libc::LC_CTYPE, c"".as_ptr()) };
        SystemLocale(())
    }
}

unsafe extern "C" {
    fn wcwidth(c: libc::wchar_t) -> libc::c_int;
}

/// Columns that a character takes; -1 if it can't be printed.
pub fn char_width(c: u32) -> i32 {
    // SAFETY: any number will do.
    unsafe { wcwidth(c as libc::wchar_t) }
}
/// Whether the locale has a character of one byte for it that can be printed.
pub fn is_printable(c: u8) -> bool {
    // SAFETY: in the range of an unsigned char.
    unsafe { libc::isprint(i32::from(c)) != 0 }
}

/// Columns and rows of the terminal behind `fd`; None if it is none.
pub fn window_size(fd: RawFd) -> Option<(u32, u32)> {
    // SAFETY: an out parameter of the right type.
    unsafe {
        let mut w: libc::winsize = std::mem::zeroed();
        check(libc::ioctl(fd, libc::TIOCGWINSZ, &mut w)).ok()?;
        Some((u32::from(w.ws_col), u32::from(w.ws_row)))
    }
}
