//! The settings of a port that is opened, and why it can't be.

use purlin_term::{Term, am, atom};
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;

/// The names of the drivers of sockets, whose commands begin with what their answers are to carry.
pub const SOCKETS: [&[u8]; 2] = [TCP.as_bytes(), UDP.as_bytes()];
pub(crate) const TCP: &str = "tcp_inet";
pub(crate) const UDP: &str = "udp_inet";

/// Why a port can't be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The settings are bad: `badarg` with a cause.
    BadSettings,
    BadArg,
    SystemLimit,
    /// The driver has failed for a reason that it can't tell.
    General,
    Errno(i32),
}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Error {
        Error::Errno(crate::posix::errno_of(&e))
    }
}

impl Error {
    /// The answer of `erts_internal:open_port/2`.
    pub fn term(self) -> Term {
        match self {
            Error::BadSettings => am::BADOPT,
            Error::BadArg => am::BADARG,
            Error::SystemLimit => am::SYSTEM_LIMIT,
            Error::General => atom::intern("einval"),
            Error::Errno(e) => crate::posix::errno_atom(e),
        }
    }
}

/// The kind of port that is opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A driver of that name, or else a program, by a line for the shell.
    Spawn,
    /// A driver.
    Driver,
    /// A program file, with arguments.
    Executable {
        args: Vec<CString>,
    },
    Fd(RawFd, RawFd),
    /// A file.
    File,
}

/// The settings.
pub struct Options {
    pub target: Target,
    /// 0: a stream.
    pub packet_bytes: usize,
    /// Longest line; 0: not by lines.
    pub line_bytes: usize,
    pub read: bool,
    pub write: bool,
    pub use_stdio: bool,
    pub stderr_to_stdout: bool,
    pub exit_status: bool,
    pub binary: bool,
    pub eof: bool,
    pub parallelism: bool,
    pub dir: Option<CString>,
    pub arg0: Option<CString>,
    /// Changes of the environment; later ones win.
    pub env: Vec<Variable>,
    /// Bytes in the queue at which the port becomes busy, and below which it is busy no longer.
    pub high_mark: usize,
    pub low_mark: usize,
    /// The marks were given.
    pub marks_set: bool,
}

const HIGH_MARK: usize = 8192;

impl Options {
    pub(super) fn new() -> Options {
        Options {
            target: Target::File,
            packet_bytes: 0,
            line_bytes: 0,
            read: false,
            write: false,
            use_stdio: true,
            stderr_to_stdout: false,
            exit_status: false,
            binary: false,
            eof: false,
            parallelism: false,
            dir: None,
            arg0: None,
            env: Vec::new(),
            high_mark: HIGH_MARK,
            low_mark: HIGH_MARK / 2,
            marks_set: false,
        }
    }
}

/// A variable of the environment to set, or (None) to unset.
pub(crate) type Variable = (Vec<u8>, Option<Vec<u8>>);
