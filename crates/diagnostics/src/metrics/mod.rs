//! Metrics for Prometheus and others (`+Fmetrics`): a server of its own, which needs no code in the
//! program.
//!
//! `GET /metrics` is answered from counters that the runtime keeps as things happen. Nothing looks
//! at each process, so an answer takes as long with ten processes as with a million.
//!
//! # Invariants
//! * Nothing listens unless the flag is given, and only at the address that it names.
//! * A connection has one request without a body, and [`IO_TIME_LIMIT`] for it. There are at most
//!   [`MOST_CONNECTIONS`] at a time.
//! * A Unix socket may be opened by its owner only. Its place is never a link, and never another
//!   file.

mod exposition;
mod families;

use crate::http::{self, Answer, Request};
use exposition::Format;
pub(crate) use exposition::Times;
pub(crate) use families::messages;
use purlin_kernel::options::{EmulatorOptions, MetricsPlace};
use purlin_messages as messages;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Time limit for reading from or writing to a connection.
const IO_TIME_LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of connections.
const MOST_CONNECTIONS: usize = 64;
/// Bytes of stack of the threads here.
const STACK_BYTES: usize = 512 << 10;

/// Number of connections.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The Unix socket that is removed at the end.
static SOCKET: OnceLock<PathBuf> = OnceLock::new();

/// Serves metrics at the place that the options name, if they do. The error is a line for the user.
pub fn start(options: &EmulatorOptions) -> Result<(), String> {
    let Some(place) = &options.flags.purlin.metrics else {
        return Ok(());
    };
    let begun = match place {
        MetricsPlace::Tcp(address) => TcpListener::bind(address).and_then(|l| {
            let local = l.local_addr()?;
            serve(move || l.accept().map(|(s, _)| s))?;
            if local.port() != address.port() {
                purlin_term::say!("purlin: metrics are served at {local}");
            }
            Ok(())
        }),
        MetricsPlace::Unix(path) => {
            listen(path).and_then(|l| serve(move || l.accept().map(|(s, _)| s)))
        }
    };
    begun.map_err(|e| format!("metrics cannot be served at {place}: {e}"))?;
    if !place.is_local() {
        let text = format!("metrics at {place} can be read by other machines, without a password");
        purlin_term::say!("{}", messages::METRICS_ARE_OPEN.line(text));
    }
    purlin_kernel::message::lengths::turn_on();
    Ok(())
}

/// Makes a Unix socket. One that an emulator has left there is replaced.
fn listen(path: &Path) -> io::Result<UnixListener> {
    if let Ok(there) = fs::symlink_metadata(path) {
        if !there.file_type().is_socket() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fs::remove_file(path)?;
    }
    // No other user may connect, not even for a moment. The program does not run yet.
    // SAFETY: takes a number, and cannot fail.
    let mask = unsafe { libc::umask(0o177) };
    let made = UnixListener::bind(path);
    // SAFETY: takes a number, and cannot fail.
    unsafe { libc::umask(mask) };
    let made = made?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    let _ = SOCKET.set(path.to_path_buf());
    purlin_kernel::halt::on_end(|| {
        if let Some(path) = SOCKET.get() {
            let _ = fs::remove_file(path);
        }
    });
    Ok(made)
}

/// A connection.
trait Stream: Read + Write + Send + 'static {
    /// Limits the time of each read and write.
    fn limit(&self, time: Duration) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Stream for UnixStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// Answers connections on threads of their own.
fn serve<S: Stream>(accept: impl Fn() -> io::Result<S> + Send + 'static) -> io::Result<()> {
    let named = || {
        thread::Builder::new()
            .name("metrics".into())
            .stack_size(STACK_BYTES)
    };
    let listener = named().spawn(move || {
        loop {
            let Ok(mut stream) = accept() else {
                // There may be no descriptor left now, and one later.
                thread::sleep(Duration::from_secs(1));
                continue;
            };
            if OPEN.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                OPEN.fetch_sub(1, Ordering::Relaxed);
                // The buffer of a new connection has room for that.
                let full = Answer::text(503, "there are too many connections\n".into());
                let _ = stream
                    .limit(IO_TIME_LIMIT)
                    .and_then(|()| full.write(&mut stream));
                continue;
            }
            let made = named().spawn(move || {
                // A client that goes away early does no harm.
                let _ = connection(&mut stream);
                OPEN.fetch_sub(1, Ordering::Relaxed);
            });
            if made.is_err() {
                OPEN.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })?;
    drop(listener);
    Ok(())
}

fn connection(stream: &mut impl Stream) -> io::Result<()> {
    stream.limit(IO_TIME_LIMIT)?;
    match http::read(stream) {
        Ok(request) => answer(&request).write(stream),
        Err(Some((status, why))) => Answer::text(status, format!("{why}\n")).write(stream),
        Err(None) => Ok(()),
    }
}

fn answer(r: &Request) -> Answer {
    if r.path != "/metrics" {
        return Answer::text(404, "metrics are at /metrics\n".into());
    }
    if r.method != "GET" {
        return Answer::text(405, "metrics are read by GET\n".into());
    }
    let format = Format::accepted(r.header("accept"));
    Answer {
        kind: format.media_type(),
        ..Answer::text(200, families::all(format, r.query == "names=all"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_socket_is_replaced() {
        let folder = std::env::temp_dir().join(format!("purlin-metrics-{}", std::process::id()));
        fs::create_dir(&folder).expect("is made");
        let path = folder.join("socket");
        let other = folder.join("other");
        fs::write(&other, "kept").expect("is written");
        std::os::unix::fs::symlink(&other, &path).expect("is made");
        assert_eq!(
            listen(&path).map_err(|e| e.kind()).err(),
            Some(io::ErrorKind::AlreadyExists)
        );
        fs::remove_file(&path).expect("is removed");
        // What an ended emulator has left is replaced, and a living one is not.
        drop(UnixListener::bind(&path).expect("is made"));
        let made = listen(&path).expect("is made");
        let mode = fs::metadata(&path).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            listen(&path).map_err(|e| e.kind()).err(),
            Some(io::ErrorKind::AddrInUse)
        );
        drop(made);
        assert_eq!(fs::read_to_string(&other).expect("is there"), "kept");
        fs::remove_dir_all(&folder).expect("is removed");
    }
}
