//! The system's terminal: its modes, its size, and the width of characters in the locale.

use super::descriptor::{check, lift};
use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Opens a terminal, or any other file that a driver uses as one.
pub(crate) fn open_terminal(path: &[u8]) -> io::Result<OwnedFd> {
    let path = CString::new(path)?;
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a valid path; the new descriptor belongs to nobody else.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), flags))?;
        lift(OwnedFd::from_raw_fd(fd))
    }
}

/// The modes of a terminal.
#[derive(Clone, Copy)]
pub struct Modes(libc::termios);

/// Modes that a driver sets (true) or clears (false). None leaves a mode as it is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ModeChanges {
    /// Input by lines that the kernel edits.
    pub canonical: Option<bool>,
    pub echo: Option<bool>,
    /// Keys that raise signals, and flow control.
    pub signals: Option<bool>,
}

impl Modes {
    /// Reads the terminal's modes.
    pub fn of(fd: RawFd) -> io::Result<Modes> {
        // SAFETY: an out parameter of the right type.
        unsafe {
            let mut t: libc::termios = std::mem::zeroed();
            check(libc::tcgetattr(fd, &mut t))?;
            Ok(Modes(t))
        }
    }
    /// Applies the modes to the terminal. May be called in a signal handler.
    pub fn set(&self, fd: RawFd) -> io::Result<()> {
        // SAFETY: modes that were read from a terminal.
        check(unsafe { libc::tcsetattr(fd, libc::TCSANOW, &self.0) }).map(drop)
    }
    /// Makes the interrupt key an ordinary key.
    pub(crate) fn pass_interrupt_key(&mut self) {
        self.0.c_cc[libc::VINTR] = 0;
    }
    /// Returns these modes with changes applied.
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

/// Proof that the locale of the environment is set.
pub struct SystemLocale(());

impl SystemLocale {
    /// Adopts the environment's locale for this process, for characters only.
    pub fn of_environment() -> SystemLocale {
        // SAFETY: a valid string; nothing else here depends on the locale's characters.
        unsafe { libc::setlocale(libc::LC_CTYPE, c"".as_ptr()) };
        SystemLocale(())
    }
}

unsafe extern "C" {
    fn wcwidth(c: libc::wchar_t) -> libc::c_int;
}

/// Number of columns that a character takes; -1 if it cannot be printed.
pub fn char_width(c: u32) -> i32 {
    // SAFETY: any number is allowed.
    unsafe { wcwidth(c as libc::wchar_t) }
}
/// Whether the locale has a printable character for this byte.
pub fn is_printable(c: u8) -> bool {
    // SAFETY: in the range of an unsigned char.
    unsafe { libc::isprint(i32::from(c)) != 0 }
}

/// Columns and rows of the terminal behind `fd`. None if it is no terminal.
pub fn window_size(fd: RawFd) -> Option<(u32, u32)> {
    // SAFETY: an out parameter of the right type.
    unsafe {
        let mut w: libc::winsize = std::mem::zeroed();
        check(libc::ioctl(fd, libc::TIOCGWINSZ, &mut w)).ok()?;
        Some((u32::from(w.ws_col), u32::from(w.ws_row)))
    }
}
