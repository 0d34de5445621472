//! Names of operating-system errors, as Erlang programs know them: `enoent`, `eacces` and so on.

use purlin_term::release::{self, ERRORS_NAMED};
use purlin_term::{Term, atom};

/// Rows of error names, without those that this system does not have or has as aliases.
macro_rules! errors {
    ($($name:ident)*) => {
        &[$((libc::$name, stringify!($name))),*]
    };
}

const ERRORS: &[(i32, &str)] = errors! {
    E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBADMSG EBUSY ECHILD
    ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EDOM EDQUOT EEXIST EFAULT EFBIG
    EHOSTDOWN EHOSTUNREACH EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR ELOOP EMFILE
    EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENETDOWN ENETRESET ENETUNREACH ENFILE ENOBUFS ENODATA
    ENODEV ENOENT ENOEXEC ENOLCK ENOLINK ENOMEM ENOMSG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS
    ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTSOCK ENOTSUP ENOTTY ENXIO EOPNOTSUPP EOVERFLOW EPERM
    EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMOTE EROFS ESHUTDOWN
    ESOCKTNOSUPPORT ESPIPE ESRCH ESTALE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUSERS EXDEV
};

#[cfg(target_os = "linux")]
const SYSTEM: &[(i32, &str)] = errors! {
    EADV EBADE EBADFD EBADR EBADRQC EBADSLT EBFONT ECHRNG ECOMM EDOTDOT EISNAM EL2HLT EL2NSYNC
    EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG ENAVAIL ENOANO ENOCSI ENONET
    ENOPKG ENOTNAM ENOTUNIQ EREMCHG EREMOTEIO ESRMNT EUCLEAN EUNATCH EXFULL
};
#[cfg(not(target_os = "linux"))]
const SYSTEM: &[(i32, &str)] = &[];

/// Errors without a name in releases that do not name every error.
const LATER: &[(i32, &str)] = errors! { ECANCELED ENOTRECOVERABLE EOWNERDEAD };
#[cfg(target_os = "linux")]
const LATER_SYSTEM: &[(i32, &str)] = errors! {
    EHWPOISON EKEYEXPIRED EKEYREJECTED EKEYREVOKED EMEDIUMTYPE ENOKEY ENOMEDIUM ERESTART ERFKILL
    ESTRPIPE
};
#[cfg(not(target_os = "linux"))]
const LATER_SYSTEM: &[(i32, &str)] = &[];

/// Returns the atom for `errno`. A number without a name is `unknown` or, in releases that name
/// every error, `errno_` and the number.
pub fn errno_atom(errno: i32) -> Term {
    let all = release::has(ERRORS_NAMED);
    let later = LATER.iter().chain(LATER_SYSTEM).filter(|_| all);
    let mut known = ERRORS.iter().chain(SYSTEM).chain(later);
    match known.find(|e| e.0 == errno) {
        Some((_, name)) => atom::intern(&name.to_ascii_lowercase()),
        None if all => atom::intern(&format!("errno_{errno}")),
        None => atom::intern("unknown"),
    }
}

/// Returns the error of the last failed call of the C library on this thread.
pub fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Returns the error number of a standard library error; EINVAL for errors of its own.
pub fn errno_of(e: &std::io::Error) -> i32 {
    e.raw_os_error().unwrap_or(libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_errors() {
        for (errno, name) in [
            (libc::ENOENT, "enoent"),
            (libc::EAGAIN, "eagain"),
            (libc::ENOTSUP, "enotsup"),
            (-1, "unknown"),
        ] {
            assert_eq!(atom::name(errno_atom(errno)), name);
        }
    }
}
