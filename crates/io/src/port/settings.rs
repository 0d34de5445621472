//! The settings of a port to be opened, and why opening can fail.

use purlin_term::{Term, am, atom};
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;

/// The names of the socket drivers, whose commands begin with the reference for their replies.
pub const SOCKETS: [&[u8]; 2] = [TCP.as_bytes(), UDP.as_bytes()];
pub(crate) const TCP: &str = "tcp_inet";
pub(crate) const UDP: &str = "udp_inet";

/// Why a port cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The settings are bad: `badarg` with a cause.
    BadSettings,
    BadArg,
    SystemLimit,
    /// The driver failed without a specific reason.
    General,
    Errno(i32),
}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Error {
        Error::Errno(crate::posix::errno_of(&e))
    }
}

impl Error {
    /// The result of `erts_internal:open_port/2`.
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

/// The kind of port to open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A driver of that name, else a program given as a command line for the shell.
    Spawn,
    Driver,
    /// A program file, with arguments.
    Executable {
        args: Vec<CString>,
    },
    Fd(RawFd, RawFd),
    File,
}

/// The settings.
pub struct Options {
    pub target: Target,
    /// 0 means a stream.
    pub packet_bytes: usize,
    /// Maximum line length; 0 means not by lines.
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
    /// Bytes in the queue at which the port becomes busy, and below which it stops being busy.
    pub high_mark: usize,
    pub low_mark: usize,
    /// Whether the marks were given.
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
