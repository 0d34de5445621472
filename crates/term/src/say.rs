//! Output of the runtime itself, on standard error and standard output.
//!
//! It may be impossible to write: the disk is full, or the reader is gone. The text is then lost,
//! and nothing else happens. The macros of the standard library panic in that case, which ends the
//! runtime, so only tests may use them.

use std::fmt::{self, Write};
use std::sync::OnceLock;

/// Writes a line to standard error.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::say::error(::std::format_args!("{}\n", ::std::format_args!($($text)*)))
    };
}

/// Called before the runtime ends by [`refused`].
static BEFORE: OnceLock<fn()> = OnceLock::new();

/// Registers `f` to be called before the runtime ends by [`refused`]. Only the first call counts.
pub fn before_refusal(f: fn()) {
    let _ = BEFORE.set(f);
}

/// Ends the runtime with a line on standard error and status 1, because the system refuses what the
/// runtime cannot do without.
pub fn refused(text: fmt::Arguments) -> ! {
    say!("purlin: {text}");
    if let Some(f) = BEFORE.get() {
        f();
    }
    std::process::exit(1)
}

/// Writes to standard error. Allocates nothing, since there may be no memory left.
pub fn error(text: fmt::Arguments) {
    write(libc::STDERR_FILENO, text);
}

/// Writes to standard output.
pub fn output(text: fmt::Arguments) {
    write(libc::STDOUT_FILENO, text);
}

fn write(fd: i32, text: fmt::Arguments) {
    let mut to = Gathered {
        fd,
        bytes: [0; 1024],
        used: 0,
    };
    let _ = to.write_fmt(text);
    to.flush();
}

/// Collects bytes for a descriptor, so that a line of usual length stays whole among those of other
/// processes.
struct Gathered {
    fd: i32,
    bytes: [u8; 1024],
    used: usize,
}

impl Gathered {
    fn flush(&mut self) {
        let mut left = &self.bytes[..self.used];
        while !left.is_empty() {
            // SAFETY: the bytes are valid for the call.
            let n = unsafe { libc::write(self.fd, left.as_ptr().cast(), left.len()) };
            match usize::try_from(n) {
                Ok(n) if n > 0 => left = &left[n..],
                Err(_) if interrupted() => {}
                _ => break,
            }
        }
        self.used = 0;
    }
}

fn interrupted() -> bool {
    std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
}

impl fmt::Write for Gathered {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut text = text.as_bytes();
        while !text.is_empty() {
            if self.used == self.bytes.len() {
                self.flush();
            }
            let n = text.len().min(self.bytes.len() - self.used);
            self.bytes[self.used..self.used + n].copy_from_slice(&text[..n]);
            self.used += n;
            text = &text[n..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    #[test]
    fn long_text_is_written_whole() {
        let (mut from, to) = std::io::pipe().expect("a pipe");
        let long = "0123456789".repeat(1000);
        write(to.as_raw_fd(), format_args!("{long}{}\n", 7));
        drop(to);
        let mut all = String::new();
        from.read_to_string(&mut all).expect("text");
        assert_eq!(all, format!("{long}7\n"));
    }

    #[test]
    fn nobody_hears_it() {
        let (from, to) = std::io::pipe().expect("a pipe");
        drop(from);
        write(to.as_raw_fd(), format_args!("{}", "lost ".repeat(1000)));
        write(-1, format_args!("lost"));
    }
}
