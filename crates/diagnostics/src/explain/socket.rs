//! The socket for `purlin explain`, named by the process number, in a folder that only its owner
//! may enter.
//!
//! The folder is `purlin` in `XDG_RUNTIME_DIR`, or `/tmp/purlin-USER` with the number of the user.
//! One thread answers, one request after the other. A request is a line; the answer is JSON, after
//! which the connection is closed.
//!
//! # Invariants
//! * A client runs as the emulator's user or root, according to the system. The client checks the
//!   same of the emulator.
//! * Files are created and removed in a folder that is [held open](Private), since variables may
//!   name a place of another user.
//! * A client that sends nothing, sends too much, or does not read is dropped after
//!   [`IO_TIME_LIMIT`].
//! * If the socket cannot be made, the emulator runs without it.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::private::{Private, user};

const IO_TIME_LIMIT: Duration = Duration::from_secs(5);
/// Maximum size of a request, in bytes.
const REQUEST: usize = 4096;

/// The folder of the socket, and the socket's name in it.
static MADE: OnceLock<(Private, String)> = OnceLock::new();

/// Folders where sockets may be, in order of preference.
pub fn folders() -> Vec<PathBuf> {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = PathBuf::from(format!("/run/user/{}", user()));
    let mut all: Vec<PathBuf> = [named.filter(|d| d.is_absolute()), Some(usual)]
        .into_iter()
        .flatten()
        .map(|d| d.join("purlin"))
        .collect();
    all.push(PathBuf::from(format!("/tmp/purlin-{}", user())));
    all.dedup();
    all
}

/// Possible paths of the socket of the emulator with that process number.
pub fn paths(pid: u32) -> Vec<PathBuf> {
    let mut all = folders();
    all.iter_mut().for_each(|d| d.push(pid.to_string()));
    all
}

/// The process numbers of this user's emulators that answer requests.
pub fn running() -> Vec<u32> {
    let mut all = Vec::new();
    for folder in folders() {
        let own = fs::symlink_metadata(&folder).is_ok_and(|m| m.is_dir() && m.uid() == user());
        let entries = own.then(|| fs::read_dir(&folder).ok()).flatten();
        for entry in entries.into_iter().flatten().flatten() {
            let pid = entry.file_name().to_str().and_then(|n| n.parse().ok());
            // A socket left behind by an emulator that has ended accepts no connection.
            if let Some(pid) = pid
                && UnixStream::connect(entry.path()).is_ok()
            {
                all.push(pid);
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Sends a request to a socket of this user and returns the whole answer.
pub fn ask(path: &Path, request: &str, patience: Duration) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    // In a place where anyone may create this folder, another user may have put a socket.
    if peer(&stream) != Some(user()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Creates the socket, and answers requests on a thread of its own.
pub(super) fn serve() {
    let Some(listener) = folders().iter().find_map(|d| listen(d).ok()) else {
        return;
    };
    purlin_kernel::halt::on_end(remove);
    let made = std::thread::Builder::new()
        .name("explain".into())
        .stack_size(512 << 10)
        .spawn(move || {
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) => drop(respond(stream)),
                    // There may be no descriptor left now, and one later.
                    Err(_) => std::thread::sleep(Duration::from_secs(1)),
                }
            }
        });
    if made.is_err() {
        remove();
    }
}

fn listen(folder: &Path) -> io::Result<UnixListener> {
    // Its parent must exist; otherwise the place is not for this user.
    let folder = Private::make(folder)?;
    let name = std::process::id().to_string();
    let path = folder.path_of(&name);
    if folder.has(&name) {
        // Left by an emulator with this number that ended without removing it. A live one (in
        // another container) keeps it.
        if UnixStream::connect(&path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        // An emulator does not create anything but a socket.
        if !folder.is_socket(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        folder.remove(&name)?;
    }
    let listener = UnixListener::bind(&path)?;
    if let Err(e) = folder.set_mode(&name, 0o600) {
        let _ = folder.remove(&name);
        return Err(e);
    }
    let _ = MADE.set((folder, name));
    Ok(listener)
}

/// Removes the socket when the emulator exits.
fn remove() {
    if let Some((folder, name)) = MADE.get() {
        let _ = folder.remove(name);
    }
}

fn respond(mut stream: UnixStream) -> io::Result<()> {
    if peer(&stream).is_none_or(|uid| uid != user() && uid != 0) {
        return Ok(());
    }
    stream.set_read_timeout(Some(IO_TIME_LIMIT))?;
    stream.set_write_timeout(Some(IO_TIME_LIMIT))?;
    let begun = Instant::now();
    let mut request = Vec::new();
    let mut part = [0; 512];
    while !request.contains(&b'\n') && request.len() < REQUEST && begun.elapsed() < IO_TIME_LIMIT {
        match stream.read(&mut part)? {
            0 => break,
            n => request.extend_from_slice(&part[..n]),
        }
    }
    let line = request.split(|b| *b == b'\n').next().unwrap_or_default();
    let answer = super::answer(&String::from_utf8_lossy(line));
    stream.write_all(format!("{answer}\n").as_bytes())
}

/// The user at the other end.
#[cfg(target_os = "linux")]
fn peer(stream: &UnixStream) -> Option<u32> {
    let mut who = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the option is defined for local sockets, and fills in the structure of the given
    // size.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &raw mut size,
        )
    };
    (done == 0).then_some(who.uid)
}

/// The user at the other end.
#[cfg(not(target_os = "linux"))]
fn peer(stream: &UnixStream) -> Option<u32> {
    let (mut uid, mut gid) = (u32::MAX, u32::MAX);
    // SAFETY: both pointers are to numbers of this frame.
    let done = unsafe { libc::getpeereid(stream.as_raw_fd(), &raw mut uid, &raw mut gid) };
    (done == 0).then_some(uid)
}
