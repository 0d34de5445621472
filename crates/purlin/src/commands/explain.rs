//! `explain`: what a running emulator, or a program that is run for this, spends, and where.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use purlin_diagnostics::explain::{SCHEMA, TOPICS, VARIABLE, objects_beside, socket};
use purlin_diagnostics::json::{self, Json};
use purlin_diagnostics::recorder::format::{self, Recording};
use purlin_measure::Relay;

use super::{print, print_bytes};
use crate::context::Context;
use crate::explain::check::Check;
use crate::explain::profiles::Profile;
use crate::explain::{check, profile_report, profiles, recording, text, variables};
use crate::failure::{CHECK_FAILED, Failure, NO_ANSWER, NO_INPUT, SYSTEM, USAGE, reason, say};
use crate::temporary::{self, Folder};

/// Time limit for the answer of an emulator.
const PATIENCE: Duration = Duration::from_secs(15);
/// Maximum size of a file of answers, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Maximum number of entries of each kind in a profile, and in those of which differences are made.
const MOST_STACKS: usize = 1000;
const WINDOW_STACKS: usize = 20_000;

const USE: &str =
    "purlin explain PID [TOPIC] | run FILE | exec -- COMMAND | show FILE | diff FILE FILE";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    Collapsed,
    Speedscope,
    Pprof,
}

impl Form {
    /// Whether it shows stacks only.
    fn is_profile(self) -> bool {
        matches!(self, Form::Collapsed | Form::Speedscope | Form::Pprof)
    }
}

struct Options {
    form: Form,
    top: usize,
    to: Option<PathBuf>,
    checks: Vec<Check>,
    /// The time of a profile.
    window: Option<Duration>,
}

fn wrong(text: impl std::fmt::Display) -> Failure {
    Failure::new(USAGE, format!("purlin: {text}"))
}

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let (options, words) = options(args)?;
    let Some((what, rest)) = words.split_first() else {
        return Err(wrong(format!("explain needs to know what: {USE}")));
    };
    match what.to_str() {
        Some("run") if rest.is_empty() => Err(wrong(
            "explain run needs a file: purlin explain run FILE [ARGS]",
        )),
        Some("run") => run_and_report(context, &options, "run", rest),
        Some("exec") if rest.first().is_none_or(|w| w == "--" && rest.len() == 1) => Err(wrong(
            "explain exec needs a command: purlin explain exec -- COMMAND [ARGS]",
        )),
        Some("exec") => run_and_report(context, &options, "exec", rest),
        Some("show") => match rest {
            [file] => match recording_of(Path::new(file))? {
                Some(recording) => show_recording(&options, &recording),
                None => show(&options, &read(Path::new(file))?, false),
            },
            _ => Err(wrong("explain show needs a file: purlin explain show FILE")),
        },
        Some("diff") => match rest {
            [a, b] => match (profile_of(Path::new(a))?, profile_of(Path::new(b))?) {
                (Some(a), Some(b)) => profile_differences(&options, &a, &b),
                (None, None) => differences(&options, &read(Path::new(a))?, &read(Path::new(b))?),
                _ => Err(wrong("explain diff needs two profiles, or two answers")),
            },
            _ => Err(wrong(
                "explain diff needs two files: purlin explain diff BEFORE AFTER",
            )),
        },
        text => {
            let pid = text.and_then(|t| t.parse::<u32>().ok()).filter(|n| *n > 0);
            let Some(pid) = pid else {
                let what = what.to_string_lossy();
                return Err(wrong(format!("explain does not know '{what}': {USE}")));
            };
            let topic = match rest {
                [] if options.form.is_profile() || options.window.is_some() => "profile",
                [] => "memory",
                [topic] => known_topic(topic)?,
                _ => return Err(wrong("explain takes one topic at a time")),
            };
            if let Some(window) = options.window {
                return profile_for(pid, topic, window, options);
            }
            let top = match options.form.is_profile() {
                true => MOST_STACKS,
                false => options.top,
            };
            let answer = answer_of(pid, &format!("{topic} top={top}"))?;
            let mut answer =
                checked(answer).map_err(|why| Failure::new(NO_ANSWER, format!("purlin: {why}")))?;
            variables::name(context, &mut answer, options.top, None);
            show(&options, &answer, false)
        }
    }
}

/// Shows the profile of a window of time, for pprof unless the options name another form.
fn profile_for(
    pid: u32,
    topic: &str,
    window: Duration,
    mut options: Options,
) -> Result<u8, Failure> {
    if topic != "profile" {
        return Err(wrong("--for is for the topic profile"));
    }
    let request = format!("profile top={WINDOW_STACKS}");
    let ask = || {
        let answer = checked(answer_of(pid, &request)?);
        answer.map_err(|why| Failure::new(NO_ANSWER, format!("purlin: {why}")))
    };
    let before = ask()?;
    std::thread::sleep(window);
    let profile = profiles::between(&before, &ask()?);
    if options.form == Form::Text {
        options.form = Form::Pprof;
    }
    if options.to.is_none() && options.form == Form::Pprof && std::io::stdout().is_terminal() {
        return Err(wrong(
            "a profile for pprof is no text: name a file by --to FILE",
        ));
    }
    show(&options, &profile, false)
}

/// Reads a file if it is compressed, as profiles for pprof are. Another is left to [`read`].
fn profile_of(file: &Path) -> Result<Option<Profile>, Failure> {
    let shown = file.display();
    let cannot = |e: std::io::Error| {
        Failure::new(
            NO_INPUT,
            format!("purlin: cannot read {shown}: {}", reason(&e)),
        )
    };
    let opened = open(file)?;
    let mut first = [0; 2];
    if opened.read_exact_at(&mut first, 0).is_err() || !profiles::is_compressed(&first) {
        return Ok(None);
    }
    if opened.metadata().map_err(cannot)?.len() > MOST_BYTES {
        return Err(Failure::new(
            NO_INPUT,
            format!("purlin: {shown}: too large for a profile"),
        ));
    }
    let profile = Profile::read(opened);
    profile
        .map(Some)
        .map_err(|why| Failure::new(NO_INPUT, format!("purlin: {shown}: {why}")))
}

fn profile_differences(
    options: &Options,
    before: &Profile,
    after: &Profile,
) -> Result<u8, Failure> {
    let found = profiles::differences(before, after, options.top);
    if !options.checks.is_empty() {
        return Err(wrong("profiles have no measures for --fail-if"));
    }
    let text = match options.form {
        Form::Json => format!("{}\n", profiles::json(&found)),
        Form::Text => profiles::text(&found),
        _ => return Err(wrong("explain diff shows text or --json")),
    };
    write(options, text.as_bytes())?;
    Ok(0)
}

fn known_topic(topic: &OsStr) -> Result<&'static str, Failure> {
    let found = TOPICS.iter().find(|t| topic == t.name);
    found.map(|t| t.name).ok_or_else(|| {
        let names: Vec<_> = TOPICS.iter().map(|t| t.name).collect();
        let topic = topic.to_string_lossy();
        wrong(format!(
            "there is no topic '{topic}'; there are {}",
            names.join(", ")
        ))
    })
}

/// Splits options, which come before the first word and after a process number or file, from all
/// other words.
fn options(args: &[OsString]) -> Result<(Options, Vec<OsString>), Failure> {
    let mut options = Options {
        form: Form::Text,
        top: 10,
        to: None,
        checks: Vec::new(),
        window: None,
    };
    let mut words: Vec<OsString> = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        // Words after the file or command belong to the program.
        let program = words.first().is_some_and(|w| w == "run" || w == "exec");
        let text = arg.to_string_lossy();
        if (program && words.len() > 1) || !text.starts_with('-') || (program && text == "--") {
            words.push(arg.clone());
            continue;
        }
        let (name, glued) = match text.split_once('=') {
            Some((name, value)) => (name.to_string(), Some(value.to_string())),
            None => (text.to_string(), None),
        };
        let plain = glued.is_none();
        let mut value = || {
            let next = || args.next().map(|a| a.to_string_lossy().into_owned());
            glued
                .clone()
                .or_else(next)
                .ok_or_else(|| wrong(format!("{name} needs a value")))
        };
        match &*name {
            "--json" if plain => options.form = Form::Json,
            "--collapsed" if plain => options.form = Form::Collapsed,
            "--speedscope" if plain => options.form = Form::Speedscope,
            "--pprof" if plain => options.form = Form::Pprof,
            "--top" => {
                let n = value()?;
                let top = n.parse().ok().filter(|n| (1..=1000).contains(n));
                options.top = top.ok_or_else(|| {
                    wrong(format!("--top takes a number from 1 to 1000, not '{n}'"))
                })?;
            }
            "--for" => {
                let time = value()?;
                let window = profiles::duration(&time);
                options.window = Some(window.ok_or_else(|| {
                    wrong(format!(
                        "--for takes a time like 10s or 500ms, not '{time}'"
                    ))
                })?);
            }
            "--to" => options.to = Some(value()?.into()),
            "--fail-if" => options.checks.push(Check::of(&value()?).map_err(wrong)?),
            _ => return Err(wrong(format!("explain has no option '{text}'"))),
        }
    }
    Ok((options, words))
}

/// The answer of the emulator with that process number.
pub fn answer_of(pid: u32, request: &str) -> Result<Json, Failure> {
    let none = |text: String| Failure::new(NO_ANSWER, format!("purlin: {text}"));
    let mut refused = None;
    for path in socket::paths(pid) {
        match socket::ask(&path, request, PATIENCE) {
            Ok(answer) if answer.is_empty() => {
                return Err(none(format!(
                    "process {pid} has ended, or belongs to another user"
                )));
            }
            Ok(answer) => {
                let broken = |e| none(format!("process {pid} answered what is {e}"));
                return json::parse(&answer).map_err(broken);
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            // It was killed and could not remove its socket.
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => {}
            Err(e) => refused = Some(e),
        }
    }
    Err(none(match refused {
        Some(e) if e.kind() == ErrorKind::PermissionDenied => {
            format!("process {pid} is another user's")
        }
        Some(e) if e.kind() == ErrorKind::WouldBlock => format!("process {pid} does not answer"),
        Some(e) => format!("process {pid} cannot be asked: {}", reason(&e)),
        None if !Path::new(&format!("/proc/{pid}")).exists()
            && Path::new("/proc/self").exists() =>
        {
            format!("there is no process {pid}")
        }
        None => {
            format!("process {pid} is not a Purlin of this user that answers (+Fexplain false?)")
        }
    }))
}

/// The answer, unless it is an error.
fn checked(answer: Json) -> Result<Json, String> {
    if let Some(why) = answer.get("error").and_then(Json::text) {
        return Err(why.to_string());
    }
    match answer.get("schema").and_then(Json::text) {
        Some(SCHEMA) => Ok(answer),
        Some(other) => Err(format!("the answer is of form {other}, this is {SCHEMA}")),
        None => Err("this is no answer of purlin explain".into()),
    }
}

pub fn read(file: &Path) -> Result<Json, Failure> {
    let shown = file.display();
    let bad = |why: String| Failure::new(NO_INPUT, format!("purlin: {shown}: {why}"));
    let meta = std::fs::metadata(file).map_err(|e| {
        Failure::new(
            NO_INPUT,
            format!("purlin: cannot read {shown}: {}", reason(&e)),
        )
    })?;
    if meta.len() > MOST_BYTES {
        return Err(bad("too large for an answer".into()));
    }
    let bytes = std::fs::read(file).map_err(|e| {
        Failure::new(
            NO_INPUT,
            format!("purlin: cannot read {shown}: {}", reason(&e)),
        )
    })?;
    let text = String::from_utf8(bytes).map_err(|_| bad("not text".into()))?;
    checked(json::parse(&text).map_err(|e| bad(e.to_string()))?).map_err(bad)
}

/// Opens a file. A pipe is not waited for.
fn open(file: &Path) -> Result<File, Failure> {
    let shown = file.display();
    let bad = |why: &str| Failure::new(NO_INPUT, format!("purlin: {shown}: {why}"));
    let cannot = |e: std::io::Error| {
        Failure::new(
            NO_INPUT,
            format!("purlin: cannot read {shown}: {}", reason(&e)),
        )
    };
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(file)
        .map_err(cannot)?;
    let meta = opened.metadata().map_err(cannot)?;
    match meta.is_file() {
        true if meta.len() == 0 => Err(bad("empty")),
        true => Ok(opened),
        false => Err(bad("not a file")),
    }
}

/// Reads a file if it has the record of a run. A file of another kind is left to [`read`].
fn recording_of(file: &Path) -> Result<Option<Recording>, Failure> {
    let opened = open(file)?;
    let mut first = [0; 8];
    if opened.read_exact_at(&mut first, 0).is_err() || !format::is_recording(&first) {
        return Ok(None);
    }
    let shown = file.display();
    format::read(&opened)
        .map(Some)
        .map_err(|why| Failure::new(NO_INPUT, format!("purlin: {shown}: {why}")))
}

fn show_recording(options: &Options, recording: &Recording) -> Result<u8, Failure> {
    let text = match options.form {
        Form::Text => recording::story(recording, options.top),
        Form::Json => format!("{}\n", recording::json(recording)),
        _ => return Err(wrong("a record of a run is shown as text or with --json")),
    };
    if !options.checks.is_empty() {
        return Err(wrong("a record of a run has no measures for --fail-if"));
    }
    write(options, text.as_bytes())?;
    Ok(0)
}

/// Writes to the file that the options name, or to standard output.
fn write(options: &Options, bytes: &[u8]) -> Result<(), Failure> {
    let Some(file) = &options.to else {
        return print_bytes(bytes).map(drop);
    };
    std::fs::write(file, bytes).map_err(|e| {
        let file = file.display();
        Failure::new(
            SYSTEM,
            format!("purlin: cannot write {file}: {}", reason(&e)),
        )
    })
}

/// Runs `purlin COMMAND WORDS` and shows its costs. The status is the program's, unless a check
/// fails.
fn run_and_report(
    context: &Context,
    options: &Options,
    command: &str,
    words: &[OsString],
) -> Result<u8, Failure> {
    let system = |what: &str, e: std::io::Error| {
        Failure::new(SYSTEM, format!("purlin: cannot {what}: {}", reason(&e)))
    };
    let own = crate::linker::executable().map_err(|e| system("find Purlin's own executable", e))?;
    let file = Answer::new().map_err(|e| system("make a file for the answer", e))?;
    let objects = Folder::new(objects_beside(&file.0)).map_err(|e| system("make a folder", e))?;
    let mut child = Command::new(own);
    if let Some(root) = context.otp_root() {
        child.arg("--otp-root").arg(root);
    }
    child.arg(command).args(words).env(VARIABLE, &file.0);
    // A signal that ends this command is meant for the program, and its costs matter all the more.
    let relay = Relay::begin();
    let mut child = child.spawn().map_err(|e| system("run Purlin", e))?;
    relay.wait(child.id());
    let status = child
        .wait()
        .map_err(|e| system("wait for the program", e))?;
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128u8.wrapping_add(signal.unwrap_or(0) as u8),
    };
    if std::fs::metadata(&file.0).map_or(0, |m| m.len()) == 0 {
        // A program that could not be started has given the reason.
        if code == 0 || status.signal().is_some() {
            say(
                "purlin: the program left nothing to explain: it did not run on Purlin, or was killed",
            );
        }
        return Ok(if code == 0 { NO_ANSWER } else { code });
    }
    let mut answer = read(&file.0)?;
    variables::name(context, &mut answer, options.top, Some(&objects.0));
    let told = show(options, &answer, true)?;
    Ok(if told == 0 { code } else { told })
}

/// An empty file that only this user can read, removed when this is dropped.
pub struct Answer(pub PathBuf);

impl Answer {
    pub fn new() -> std::io::Result<Answer> {
        let (_, path) = temporary::file(&std::env::temp_dir(), "purlin-explain", 0o600)?;
        Ok(Answer(path))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Shows an answer on standard output, or on standard error if a program `ran`, which has standard
/// output for itself.
fn show(options: &Options, answer: &Json, ran: bool) -> Result<u8, Failure> {
    let text = match options.form {
        Form::Text => text::shown(answer, options.top).into_bytes(),
        Form::Json => format!("{answer}\n").into_bytes(),
        Form::Collapsed => profile_report::collapsed(answer).into_bytes(),
        Form::Speedscope => format!("{}\n", profile_report::speedscope(answer)).into_bytes(),
        Form::Pprof => profile_report::pprof(answer),
    };
    match ran && options.form == Form::Text && options.to.is_none() {
        true => say(String::from_utf8_lossy(&text).trim_end()),
        false => write(options, &text)?,
    }
    report_failed(
        options
            .checks
            .iter()
            .filter_map(|c| c.failed(answer, None).transpose()),
    )
}

fn differences(options: &Options, before: &Json, after: &Json) -> Result<u8, Failure> {
    let found = check::differences(before, after);
    match options.form {
        Form::Json => print(&format!(
            "{}\n",
            check::json(&found, before, after, options.top)
        ))?,
        Form::Text => print(&check::text(&found, before, after, options.top))?,
        _ => return Err(wrong("explain diff shows text or --json")),
    };
    report_failed(
        options
            .checks
            .iter()
            .filter_map(|c| c.failed(after, Some(before)).transpose()),
    )
}

/// Reports which checks failed.
fn report_failed(failed: impl Iterator<Item = Result<String, String>>) -> Result<u8, Failure> {
    let mut code = 0;
    for line in failed {
        say(format_args!("purlin: {}", line.map_err(wrong)?));
        code = CHECK_FAILED;
    }
    Ok(code)
}
