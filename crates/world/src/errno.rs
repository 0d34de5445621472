//! Error numbers, with the values that Linux has on all processors Purlin runs on.

use std::fmt;

/// An error number of a system call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($name:ident $number:literal)*) => {
        impl Errno {
            $(pub const $name: Errno = Errno($number);)*

            /// Returns the name of the number, as C has it.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    EPERM 1 ENOENT 2 EINTR 4 EIO 5 EBADF 9 EAGAIN 11 EACCES 13 EBUSY 16 EEXIST 17 ENOTDIR 20
    EISDIR 21 EINVAL 22 EMFILE 24 EFBIG 27 ENOSPC 28 EPIPE 32 ENAMETOOLONG 36 ENOTEMPTY 39
    ELOOP 40 ENOTSOCK 88 EDESTADDRREQ 89 EMSGSIZE 90 EPROTOTYPE 91 EOPNOTSUPP 95 EAFNOSUPPORT 97
    EADDRINUSE 98 EADDRNOTAVAIL 99 ENETUNREACH 101 ECONNABORTED 103 ECONNRESET 104 ENOBUFS 105
    EISCONN 106 ENOTCONN 107 ETIMEDOUT 110 ECONNREFUSED 111 EHOSTUNREACH 113 EALREADY 114
    EINPROGRESS 115
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

/// The reason why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The call fails as Linux would have it fail.
    Errno(Errno),
    /// The model does not know what Linux would do. The text says which call or argument it was.
    NotModelled(&'static str),
}

impl From<Errno> for Refusal {
    fn from(e: Errno) -> Self {
        Refusal::Errno(e)
    }
}

/// The result of a call.
pub type Answer<T> = Result<T, Refusal>;

/// Returns a failed call.
pub(crate) fn fail<T>(e: Errno) -> Answer<T> {
    Err(Refusal::Errno(e))
}
