//! `observe`: a page in the browser about a running emulator.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use purlin_diagnostics::explain::private::Private;
use purlin_diagnostics::explain::socket;
use purlin_diagnostics::json::Json;
use purlin_runtime::options::OtlpFlag;

use super::explain::{answer_of, node_refuses};
use super::print;
use crate::context::Context;
use crate::failure::{
    Failure, NO_ANSWER, SYSTEM, USAGE, bad_value, cannot_make, no_option, no_value, note, reason,
    surplus_argument, warn,
};
use crate::observe::server::Server;
use crate::observe::target::{Target, command_line};
use purlin_messages as messages;

const USE: &str = "purlin observe [PID] [--port N] [--no-open] [--otlp URL]";
/// Time between two requests that keep a node sending. It stops some seconds after the last.
const AGAIN: Duration = Duration::from_secs(3);
/// Maximum number of emulators that are listed.
const LISTED: usize = 50;

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    pid: Option<u32>,
    port: u16,
    no_open: bool,
    /// A collector, and what it gets, as `+Fotlp` has it.
    otlp: Option<String>,
}

fn options(args: &[OsString]) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut args = args.iter().map(|a| a.to_string_lossy().into_owned());
    while let Some(arg) = args.next() {
        let otlp = match arg.strip_prefix("--otlp=") {
            Some(value) => Some(value.to_string()),
            None if arg == "--otlp" => Some(
                args.next()
                    .ok_or_else(|| no_value("--otlp needs a value"))?,
            ),
            None => None,
        };
        if let Some(otlp) = otlp {
            OtlpFlag::from_words(&otlp)
                .map_err(|why| bad_value(format!("--otlp {otlp}: {why}")))?;
            options.otlp = Some(otlp);
            continue;
        }
        let port = match arg.strip_prefix("--port=") {
            Some(value) => Some(value.to_string()),
            None if arg == "--port" => Some(
                args.next()
                    .ok_or_else(|| no_value("--port needs a value"))?,
            ),
            None => None,
        };
        if let Some(port) = port {
            options.port = port.parse().map_err(|_| {
                bad_value(format!(
                    "--port takes a number from 0 to 65535, not '{port}'"
                ))
            })?;
        } else if arg == "--no-open" {
            options.no_open = true;
        } else if arg.starts_with('-') {
            return Err(no_option("observe", arg));
        } else if options.pid.is_some() {
            return Err(surplus_argument(format!(
                "observe takes one process at a time: {USE}"
            )));
        } else {
            let pid = arg.parse().ok().filter(|n| *n > 0);
            options.pid =
                Some(pid.ok_or_else(|| bad_value(format!("'{arg}' is no process number: {USE}")))?);
        }
    }
    Ok(options)
}

/// The only running emulator.
fn only() -> Result<u32, Failure> {
    match &socket::running()[..] {
        [] => Err(Failure::new(
            messages::NONE_RUNNING,
            NO_ANSWER,
            "no Purlin of this user is running that answers",
        )),
        [pid] => Ok(*pid),
        several => {
            let mut text = format!("there are several; name one: {USE}");
            for pid in several.iter().take(LISTED) {
                text.push_str(&format!("\n{pid:>10}  {}", command_line(*pid)));
            }
            Err(Failure::new(messages::SEVERAL_RUNNING, USAGE, text))
        }
    }
}

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let options = options(args)?;
    let pid = match options.pid {
        Some(pid) => pid,
        None => only()?,
    };
    if let Some(to) = &options.otlp {
        return keep_sending(pid, to);
    }
    let target = Target::new(context.clone(), pid)?;
    let refused = |e: std::io::Error| {
        let text = format!("cannot listen on port {}: {}", options.port, reason(&e));
        Failure::new(messages::CANNOT_LISTEN, SYSTEM, text)
    };
    let (server, listener) = Server::new(target, options.port).map_err(refused)?;
    let address = server.address(&listener).map_err(refused)?;
    print(&format!("{address}\n"))?;
    let page = match options.no_open {
        true => None,
        false => open(&address),
    };
    let served = server
        .serve(listener)
        .map_err(|e| cannot_make("start a thread", &e));
    if let Some((folder, name)) = page {
        let _ = folder.remove(&name);
    }
    served?;
    note(format_args!("process {pid} has ended"));
    Ok(0)
}

/// Makes a node send to a collector until it ends, or until this command does.
fn keep_sending(pid: u32, to: &str) -> Result<u8, Failure> {
    let encoded: String = to.bytes().map(|b| format!("%{b:02x}")).collect();
    let request = format!("observe otlp to={encoded}");
    let shown = to.split(',').next().unwrap_or_default();
    let mut begun = false;
    let mut known = BTreeMap::new();
    loop {
        let answer = match answer_of(pid, &request) {
            Ok(answer) => answer,
            Err(_) if begun && !Path::new(&format!("/proc/{pid}")).exists() => {
                note(format_args!("process {pid} has ended"));
                return Ok(0);
            }
            Err(why) => return Err(why),
        };
        if let Some(why) = answer.get("error").and_then(Json::text) {
            return Err(node_refuses(why));
        }
        if !begun {
            begun = true;
            note(format_args!("process {pid} sends to {shown}, until Ctrl-C"));
        }
        let now = not_taken(&answer);
        for (why, what) in now.iter().filter(|(why, _)| !known.contains_key(*why)) {
            let what = what.join(" and ");
            let text = format!("{what} are not taken by {shown}: {why}");
            warn(messages::NOT_TAKEN, text);
        }
        known = now;
        std::thread::sleep(AGAIN);
    }
}

/// Reasons why something is not taken, with what that is.
fn not_taken(answer: &Json) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in answer.get("sent").map_or(&[][..], Json::list) {
        let text = |key| one.get(key).and_then(Json::text).map(str::to_string);
        if let (Some(why), Some(what)) = (text("why_not"), text("what")) {
            all.entry(why).or_default().push(what);
        }
    }
    all
}

/// Opens the page if there is a desktop.
///
/// Other users may see the arguments of the started program, so these name a file that only the
/// user can read, which redirects to the address. Returns where that file is.
fn open(address: &str) -> Option<(Private, String)> {
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"];
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false
            if desktop
                .iter()
                .any(|v| std::env::var_os(v).is_some_and(|v| !v.is_empty())) =>
        {
            "xdg-open"
        }
        false => return None,
    };
    let (folder, path) = socket::folders()
        .into_iter()
        .find_map(|path| Some((Private::make(&path).ok()?, path)))?;
    let name = format!("observe-{}.html", std::process::id());
    let text = format!(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url={address}\">\n"
    );
    write_private(&folder.path_of(&name), &text).ok()?;
    let mut command = Command::new(program);
    command
        .arg(path.join(&name))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Without such a program the user still has the address.
    if let Ok(mut child) = command.spawn() {
        let _ = std::thread::Builder::new().spawn(move || child.wait());
    }
    Some((folder, name))
}

/// Writes a file that only the user can read, replacing one of that name.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_or_refused() {
        let of = |text: &str| {
            let args: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            options(&args).map_err(|f| f.message)
        };
        let expected = Options {
            pid: Some(12),
            port: 4040,
            no_open: true,
            otlp: None,
        };
        assert_eq!(of("12 --port 4040 --no-open"), Ok(expected));
        assert_eq!(of(""), Ok(Options::default()));
        for (text, why) in [
            ("x", "'x' is no process number"),
            ("0", "'0' is no process number"),
            ("1 2", "observe takes one process at a time"),
            ("--port", "--port needs a value"),
            ("--port=70000", "--port takes a number from 0 to 65535"),
            ("--otlp", "--otlp needs a value"),
            ("--otlp https://x", "--otlp https://x: notsup: no https"),
            ("--otlp x:1", "--otlp x:1: http://HOST:PORT is expected"),
            ("--open", "observe has no option '--open'"),
        ] {
            let found = of(text).expect_err(text);
            assert!(
                found.starts_with(&format!("purlin: {why}")),
                "{text}: {found}"
            );
        }
    }
}
