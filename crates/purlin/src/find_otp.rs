//! Finds the OTP installation.
//!
//! The order is: what the user names, the `erl` on `PATH`, the places of distributions and of
//! self-compiled installations. The last covers container images in which a link to Purlin has
//! replaced the only `erl`.
//!
//! An `erl` on `PATH` may be a link into an installation, a script with a line `ROOTDIR=…`, or the
//! shim of a version manager, which can tell only when it runs, so it is run. A link to Purlin is
//! never taken for an `erl`; otherwise Purlin would look for itself.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use purlin_runtime::options::OtpInstall;
use purlin_runtime::options::otp::PRELOADED;

use crate::failure::{Failure, NO_INSTALLATION, bad_otp_root};
use crate::shims;
use purlin_messages as messages;

/// The variable that names the root to use.
pub const VARIABLE: &str = "PURLIN_OTP_ROOT";
/// The variable that is set while an unknown `erl` is asked for its root, so that Purlin does not
/// answer.
pub const PROBE: &str = "PURLIN_PROBE";

/// Time limit for an `erl` to report its root; version managers may be slow.
const PROBE_LIMIT: Duration = Duration::from_secs(10);
/// Length of the part of a script that is searched for `ROOTDIR`.
const SCRIPT_LIMIT: u64 = 64 * 1024;

const SYSTEM_ROOTS: [&str; 3] = [
    "/usr/lib/erlang",
    "/usr/lib64/erlang",
    "/usr/local/lib/erlang",
];

/// Finds the installation; `told` is the root given on the command line.
pub fn find(told: Option<&Path>) -> Result<OtpInstall, Failure> {
    if std::env::var_os(PROBE).is_some() {
        return Err(Failure::new(
            messages::SEARCH_IN_SEARCH,
            NO_INSTALLATION,
            "called by its own search for Erlang/OTP",
        ));
    }
    let variable = std::env::var_os(VARIABLE)
        .filter(|root| !root.is_empty())
        .map(PathBuf::from);
    let named = told.map(|root| ("--otp-root", root.to_path_buf()));
    if let Some((source, root)) = named.or_else(|| variable.map(|root| (VARIABLE, root))) {
        let absolute = std::path::absolute(&root).unwrap_or(root);
        return OtpInstall::open(&absolute).map_err(|error| bad_otp_root(source, error));
    }
    if let Some(otp) = around_this() {
        return Ok(otp);
    }
    installed().ok_or_else(|| {
        Failure::new(
            messages::NO_OTP,
            NO_INSTALLATION,
            format!(
                "no Erlang/OTP found (no erl on PATH, nothing in {}); install it, \
                 for example with 'apt install erlang', or name its root with --otp-root or {VARIABLE}",
                SYSTEM_ROOTS.join(", ")
            ),
        )
    })
}

/// The installation of the `erl` on `PATH`, else that of the system.
pub fn installed() -> Option<OtpInstall> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = programs(&path, "erl").into_iter();
    all.filter_map(|program| installation_of(&program))
        .next()
        .or_else(|| {
            let mut roots = SYSTEM_ROOTS.iter();
            roots.find_map(|root| OtpInstall::open(root.as_ref()).ok())
        })
}

/// The release that this program was shipped in; see `purlin erts`.
fn around_this() -> Option<OtpInstall> {
    let own = crate::linker::executable().ok()?;
    let bin = own.parent()?;
    if !bin.join(PRELOADED).is_dir() {
        return None;
    }
    OtpInstall::open(bin.parent()?.parent()?).ok()
}

/// The executables called `name` on `path`, in order, without Purlin's own links.
pub fn programs(path: &OsStr, name: &str) -> Vec<PathBuf> {
    let own = crate::linker::executable().ok();
    let shims = std::env::var_os(shims::VARIABLE);
    std::env::split_paths(path)
        .filter(|directory| Some(directory.as_os_str()) != shims.as_deref())
        .map(|directory| directory.join(name))
        .filter(|program| {
            let executable = fs::metadata(program)
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
            executable
                && fs::canonicalize(program).is_ok_and(|real| {
                    Some(&real) != own.as_ref() && real.file_name() != Some("purlin".as_ref())
                })
        })
        .collect()
}

fn installation_of(erl: &Path) -> Option<OtpInstall> {
    by_place(erl)
        .or_else(|| by_script(erl))
        .or_else(|| by_asking(erl))
}

/// The installation around `<root>/bin/erl` or `<root>/erts-…/bin/erl`, with links resolved.
fn by_place(erl: &Path) -> Option<OtpInstall> {
    let real = fs::canonicalize(erl).ok()?;
    let above = real.parent()?.parent()?;
    [Some(above), above.parent()]
        .into_iter()
        .flatten()
        .find_map(|root| OtpInstall::open(root).ok())
}

/// The installation named by the last `ROOTDIR=/…` of a script that leads to one.
fn by_script(erl: &Path) -> Option<OtpInstall> {
    let mut text = Vec::new();
    fs::File::open(erl)
        .ok()?
        .take(SCRIPT_LIMIT)
        .read_to_end(&mut text)
        .ok()?;
    if !text.starts_with(b"#!") {
        return None;
    }
    let roots = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let value = line.trim_ascii().strip_prefix(b"ROOTDIR=")?;
        let value = match value.first()? {
            quote @ (b'"' | b'\'') => value[1..].split(|byte| byte == quote).next()?,
            _ => value.split(u8::is_ascii_whitespace).next()?,
        };
        value
            .starts_with(b"/")
            .then(|| PathBuf::from(OsStr::from_bytes(value)))
    });
    roots
        .collect::<Vec<_>>()
        .iter()
        .rev()
        .find_map(|root| OtpInstall::open(root).ok())
}

/// The installation that the launcher behind `erl` reports, without starting an emulator.
fn by_asking(erl: &Path) -> Option<OtpInstall> {
    let mut command = Command::new(erl);
    command.arg("-emu_args_exit").env(PROBE, "1");
    let answer = ask(command)?;
    let mut lines = answer
        .split(|byte| *byte == b'\n')
        .skip_while(|line| line != b"-root");
    OtpInstall::open(OsStr::from_bytes(lines.nth(1)?).as_ref()).ok()
}

/// The standard output of a command that succeeds in time.
pub fn ask(mut command: Command) -> Option<Vec<u8>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output = child.stdout.take()?;
    // A thread reads, so that a child that runs for ever with its output open is noticed.
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        output.read_to_end(&mut text).map(|_| text)
    });
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if start.elapsed() < PROBE_LIMIT => {
                std::thread::sleep(Duration::from_millis(2));
            }
            _ => break None,
        }
    };
    match status {
        Some(status) if status.success() => reader.join().ok()?.ok(),
        Some(_) => None,
        None => {
            let _ = child.kill();
            let _ = child.wait();
            None
        }
    }
}
