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
use purlin_messages as messages;
use purlin_runtime::schedules::write_private;

use super::{print, print_bytes};
use crate::context::Context;
use crate::explain::check::Check;
use crate::explain::profiles::Profile;
use crate::explain::snapshots::{self, Snapshot};
use crate::explain::{check, profile_report, profiles, recording, text, variables};
use crate::failure::{
    self, CHECK_FAILED, Failure, NO_INPUT, SYSTEM, USAGE, bad_value, cannot_make, cannot_read,
    cannot_run, cannot_write, do_not_fit, lost_command, missing_argument, no_option,
    no_own_executable, no_topic, no_value, reason, say, surplus_argument, warn, wrong_file,
};
use crate::temporary::{self, Folder};

/// Time limit for the answer of an emulator.
const ANSWER_TIME_LIMIT: Duration = Duration::from_secs(15);
/// The same for the topics that look at everything.
const WHOLE_PATIENCE: Duration = Duration::from_secs(60);
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
    /// The processes of a profile, as the emulator reads them: `process NAME` and so on.
    whose: Option<String>,
}

/// Makes a failure of the reason that the emulator gives in place of an answer.
pub fn node_refuses(why: impl std::fmt::Display) -> Failure {
    Failure::new(messages::NODE_REFUSES, failure::NO_ANSWER, why)
}

fn broken_answer(status: u8, text: impl std::fmt::Display) -> Failure {
    Failure::new(messages::BROKEN_ANSWER, status, text)
}

fn bad_check(text: impl std::fmt::Display) -> Failure {
    Failure::new(messages::BAD_CHECK, USAGE, text)
}

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let (options, words) = options(args)?;
    let Some((what, rest)) = words.split_first() else {
        return Err(missing_argument(format!(
            "explain needs to know what: {USE}"
        )));
    };
    match what.to_str() {
        Some("run") if rest.is_empty() => Err(missing_argument(
            "explain run needs a file: purlin explain run FILE [ARGS]",
        )),
        Some("run") => run_and_report(context, &options, "run", rest),
        Some("exec") if rest.first().is_none_or(|w| w == "--" && rest.len() == 1) => Err(
            missing_argument("explain exec needs a command: purlin explain exec -- COMMAND [ARGS]"),
        ),
        Some("exec") => run_and_report(context, &options, "exec", rest),
        Some("show") => match rest {
            [file] => match recording_of(Path::new(file))? {
                Some(recording) => show_recording(&options, &recording),
                None => show(&options, &read(Path::new(file))?, false),
            },
            _ => Err(missing_argument(
                "explain show needs a file: purlin explain show FILE",
            )),
        },
        Some("diff") => match rest {
            [a, b] if is_snapshot(a.as_ref())? || is_snapshot(b.as_ref())? => {
                snapshot_differences(&options, a.as_ref(), b.as_ref())
            }
            [a, b] => match (profile_of(Path::new(a))?, profile_of(Path::new(b))?) {
                (Some(a), Some(b)) => profile_differences(&options, &a, &b),
                (None, None) => differences(&options, &read(Path::new(a))?, &read(Path::new(b))?),
                _ => Err(do_not_fit(
                    "explain diff needs two profiles, or two answers",
                )),
            },
            _ => Err(missing_argument(
                "explain diff needs two files: purlin explain diff BEFORE AFTER",
            )),
        },
        text => {
            let pid = text.and_then(|t| t.parse::<u32>().ok()).filter(|n| *n > 0);
            let Some(pid) = pid else {
                let what = what.to_string_lossy();
                return Err(no_topic(format!("explain does not know '{what}': {USE}")));
            };
            let topic = match rest {
                [] if options.form.is_profile()
                    || options.window.is_some()
                    || options.whose.is_some() =>
                {
                    "profile"
                }
                [] => "memory",
                [topic] => known_topic(topic)?,
                _ => return Err(surplus_argument("explain takes one topic at a time")),
            };
            if let Some(window) = options.window {
                return profile_for(pid, topic, window, options);
            }
            if let Some(whose) = &options.whose {
                let option = whose.split(' ').next().unwrap_or_default();
                return Err(do_not_fit(format!(
                    "--{option} needs the time of the profile: --for 10s"
                )));
            }
            if topic == "heap" {
                return heap_of(pid, &options);
            }
            let top = match options.form.is_profile() {
                true => MOST_STACKS,
                false => options.top,
            };
            let patience = match topic {
                "leaks" => WHOLE_PATIENCE,
                _ => ANSWER_TIME_LIMIT,
            };
            let answer = answer_within(pid, &format!("{topic} top={top}"), patience)?;
            let mut answer = checked(answer).map_err(|why| why.of_node())?;
            variables::name(context, &mut answer, options.top, None);
            show(&options, &answer, false)
        }
    }
}

/// Writes the heap snapshot to the file that the options name, and shows who holds most.
fn heap_of(pid: u32, options: &Options) -> Result<u8, Failure> {
    let answer = answer_within(pid, &format!("heap top={}", options.top), WHOLE_PATIENCE)?;
    let mut answer = checked(answer).map_err(|why| why.of_node())?;
    let why = answer.get("not_taken").and_then(Json::text);
    if let Some(why) = why {
        return Err(node_refuses(format_args!("there is no snapshot: {why}")));
    }
    let mut snapshot = None;
    if let Json::Object(pairs) = &mut answer
        && let Some(i) = pairs.iter().position(|(name, _)| name == "snapshot")
    {
        snapshot = Some(pairs.remove(i).1);
    }
    if let (Some(file), Some(snapshot)) = (&options.to, snapshot.as_ref().and_then(Json::text)) {
        // It says what a program keeps, so others may not read it. A link is replaced, not
        // followed.
        let written = write_private(file, snapshot.as_bytes());
        written.map_err(|e| {
            let file = file.display();
            cannot_write(file, &e)
        })?;
    }
    match options.form {
        Form::Text => print(&text::shown(&answer, options.top))?,
        Form::Json => print(&format!("{answer}\n"))?,
        _ => return Err(do_not_fit("explain heap shows text or --json")),
    };
    Ok(0)
}

/// Whether a file is a heap snapshot.
fn is_snapshot(file: &Path) -> Result<bool, Failure> {
    let mut first = [0; snapshots::BEGINNING];
    let read = open(file)?.read_exact_at(&mut first, 0);
    Ok(read.is_ok() && snapshots::is_snapshot(&first))
}

fn snapshot_differences(options: &Options, a: &Path, b: &Path) -> Result<u8, Failure> {
    if !options.checks.is_empty() {
        return Err(do_not_fit("heap snapshots have no measures for --fail-if"));
    }
    let snapshot = |file: &Path| {
        if !is_snapshot(file)? {
            return Err(do_not_fit("explain diff needs two heap snapshots"));
        }
        let snapshot = Snapshot::of(&parsed(file)?);
        snapshot.map_err(|why| wrong_file(file.display(), why))
    };
    let found = snapshots::differences(&snapshot(a)?, &snapshot(b)?);
    let text = match options.form {
        Form::Json => format!("{}\n", found.json(options.top)),
        Form::Text => found.text(options.top),
        _ => return Err(do_not_fit("explain diff shows text or --json")),
    };
    write(options, text.as_bytes())?;
    Ok(0)
}

/// Shows the profile of a window of time, for pprof unless the options name another form.
fn profile_for(
    pid: u32,
    topic: &str,
    window: Duration,
    mut options: Options,
) -> Result<u8, Failure> {
    if topic != "profile" {
        return Err(do_not_fit("--for is for the topic profile"));
    }
    let ask = |request: &str| {
        let answer = checked(answer_of(pid, request)?);
        answer.map_err(|why| why.of_node())
    };
    let whose = options.whose.as_deref().unwrap_or_default();
    let opened = ask(&format!("window begin {} {whose}", window.as_millis()))?;
    let all = format!("profile top={WINDOW_STACKS}");
    let profile = match whose {
        "" => {
            let before = ask(&all)?;
            std::thread::sleep(window);
            profiles::between(&before, &ask(&all)?)
        }
        _ => {
            std::thread::sleep(window);
            let number = opened
                .get("window")
                .map(Json::to_string)
                .unwrap_or_default();
            profiles::timed(
                ask(&format!("window end {number} {WINDOW_STACKS}"))?,
                window.as_secs_f64(),
            )
        }
    };
    if options.form == Form::Text {
        options.form = Form::Pprof;
    }
    if options.to.is_none() && options.form == Form::Pprof && std::io::stdout().is_terminal() {
        return Err(do_not_fit(
            "a profile for pprof is no text: name a file by --to FILE",
        ));
    }
    show(&options, &profile, false)
}

/// Reads a file if it is compressed, as profiles for pprof are. Another is left to [`read`].
fn profile_of(file: &Path) -> Result<Option<Profile>, Failure> {
    let shown = file.display();
    let cannot = |e: std::io::Error| cannot_read(&shown, &e);
    let opened = open(file)?;
    let mut first = [0; 2];
    if opened.read_exact_at(&mut first, 0).is_err() || !profiles::is_compressed(&first) {
        return Ok(None);
    }
    if opened.metadata().map_err(cannot)?.len() > MOST_BYTES {
        return Err(wrong_file(&shown, "too large for a profile"));
    }
    let profile = Profile::read(opened);
    profile.map(Some).map_err(|why| wrong_file(&shown, why))
}

fn profile_differences(
    options: &Options,
    before: &Profile,
    after: &Profile,
) -> Result<u8, Failure> {
    let found = profiles::differences(before, after, options.top);
    if !options.checks.is_empty() {
        return Err(do_not_fit("profiles have no measures for --fail-if"));
    }
    let text = match options.form {
        Form::Json => format!("{}\n", profiles::json(&found)),
        Form::Text => profiles::text(&found),
        _ => return Err(do_not_fit("explain diff shows text or --json")),
    };
    write(options, text.as_bytes())?;
    Ok(0)
}

fn known_topic(topic: &OsStr) -> Result<&'static str, Failure> {
    let found = TOPICS.iter().find(|t| topic == t.name);
    found.map(|t| t.name).ok_or_else(|| {
        let names: Vec<_> = TOPICS.iter().map(|t| t.name).collect();
        let topic = topic.to_string_lossy();
        no_topic(format!(
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
        whose: None,
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
                .ok_or_else(|| no_value(format!("{name} needs a value")))
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
                    bad_value(format!("--top takes a number from 1 to 1000, not '{n}'"))
                })?;
            }
            "--for" => {
                let time = value()?;
                let window = profiles::duration(&time);
                options.window = Some(window.ok_or_else(|| {
                    bad_value(format!(
                        "--for takes a time like 10s or 500ms, not '{time}'"
                    ))
                })?);
            }
            "--process" | "--application" | "--budget" => {
                let whose = value()?;
                if whose.is_empty() || whose.contains(char::is_control) {
                    return Err(bad_value(format!("{name} needs a name, not '{whose}'")));
                }
                let whose = format!("{} {whose}", &name[2..]);
                if options.whose.replace(whose).is_some() {
                    return Err(do_not_fit(
                        "a profile has one of --process, --application and --budget",
                    ));
                }
            }
            "--to" => options.to = Some(value()?.into()),
            "--fail-if" => options
                .checks
                .push(Check::of(&value()?).map_err(bad_check)?),
            _ => return Err(no_option("explain", text)),
        }
    }
    Ok((options, words))
}

/// The answer of the emulator with that process number.
pub fn answer_of(pid: u32, request: &str) -> Result<Json, Failure> {
    answer_within(pid, request, ANSWER_TIME_LIMIT)
}

fn answer_within(pid: u32, request: &str, patience: Duration) -> Result<Json, Failure> {
    let none = |code, text: String| Failure::new(code, failure::NO_ANSWER, text);
    let mut refused = None;
    for path in socket::paths(pid) {
        match socket::ask(&path, request, patience) {
            Ok(answer) if answer.is_empty() => {
                let text = format!("process {pid} has ended, or belongs to another user");
                return Err(other_user(text));
            }
            Ok(answer) => {
                return json::parse(&answer).map_err(|e| {
                    let text = format!("process {pid} answered what is {e}");
                    broken_answer(failure::NO_ANSWER, text)
                });
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            // It was killed and could not remove its socket.
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => {}
            Err(e) => refused = Some(e),
        }
    }
    Err(match refused {
        Some(e) if e.kind() == ErrorKind::PermissionDenied => {
            other_user(format!("process {pid} is another user's"))
        }
        Some(e) if e.kind() == ErrorKind::WouldBlock => none(
            messages::NO_ANSWER,
            format!("process {pid} does not answer"),
        ),
        Some(e) => none(
            messages::CANNOT_ASK,
            format!("process {pid} cannot be asked: {}", reason(&e)),
        ),
        None if !Path::new(&format!("/proc/{pid}")).exists()
            && Path::new("/proc/self").exists() =>
        {
            none(messages::NO_PROCESS, format!("there is no process {pid}"))
        }
        None => none(
            messages::NO_PURLIN,
            format!("process {pid} is not a Purlin of this user that answers (+Fexplain false?)"),
        ),
    })
}

fn other_user(text: String) -> Failure {
    Failure::new(messages::OTHER_USER, failure::NO_ANSWER, text)
}

/// Why an answer cannot be shown.
enum NotShown {
    /// The emulator's own reason.
    Refused(String),
    OtherForm(String),
}

impl NotShown {
    fn of_node(self) -> Failure {
        match self {
            NotShown::Refused(why) => node_refuses(why),
            NotShown::OtherForm(why) => broken_answer(failure::NO_ANSWER, why),
        }
    }
}

/// The answer, unless it is an error.
fn checked(answer: Json) -> Result<Json, NotShown> {
    if let Some(why) = answer.get("error").and_then(Json::text) {
        return Err(NotShown::Refused(why.to_string()));
    }
    let other = |why: String| Err(NotShown::OtherForm(why));
    match answer.get("schema").and_then(Json::text) {
        Some(SCHEMA) => Ok(answer),
        Some(form) => other(format!("the answer is of form {form}, this is {SCHEMA}")),
        None => other("this is no answer of purlin explain".into()),
    }
}

pub fn read(file: &Path) -> Result<Json, Failure> {
    checked(parsed(file)?).map_err(|why| match why {
        NotShown::Refused(why) => wrong_file(file.display(), why),
        NotShown::OtherForm(why) => {
            broken_answer(NO_INPUT, format_args!("{}: {why}", file.display()))
        }
    })
}

fn parsed(file: &Path) -> Result<Json, Failure> {
    let shown = file.display();
    let bad = |why: String| wrong_file(&shown, why);
    let meta = std::fs::metadata(file).map_err(|e| cannot_read(&shown, &e))?;
    if meta.len() > MOST_BYTES {
        return Err(bad("too large for an answer".into()));
    }
    let bytes = std::fs::read(file).map_err(|e| cannot_read(&shown, &e))?;
    let text = String::from_utf8(bytes).map_err(|_| bad("not text".into()))?;
    json::parse(&text).map_err(|e| bad(e.to_string()))
}

/// Opens a file. A pipe is not waited for.
fn open(file: &Path) -> Result<File, Failure> {
    let shown = file.display();
    let bad = |why: &str| wrong_file(&shown, why);
    let cannot = |e: std::io::Error| cannot_read(&shown, &e);
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
        .map_err(|why| wrong_file(&shown, why))
}

fn show_recording(options: &Options, recording: &Recording) -> Result<u8, Failure> {
    let text = match options.form {
        Form::Text => recording::story(recording, options.top),
        Form::Json => format!("{}\n", recording::json(recording)),
        _ => {
            return Err(do_not_fit(
                "a record of a run is shown as text or with --json",
            ));
        }
    };
    if !options.checks.is_empty() {
        return Err(do_not_fit(
            "a record of a run has no measures for --fail-if",
        ));
    }
    write(options, text.as_bytes())?;
    Ok(0)
}

/// Writes to the file that the options name, or to standard output. Other users may not read the
/// file: an answer may have keys and names of the program. A link is replaced, not followed.
fn write(options: &Options, bytes: &[u8]) -> Result<(), Failure> {
    let Some(file) = &options.to else {
        return print_bytes(bytes).map(drop);
    };
    write_private(file, bytes).map_err(|e| {
        let file = file.display();
        cannot_write(file, &e)
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
    let own = crate::linker::executable().map_err(|e| no_own_executable(&e))?;
    let file = Answer::new().map_err(|e| cannot_make("make a file for the answer", &e))?;
    let objects = Folder::new(objects_beside(&file.0));
    let objects = objects.map_err(|e| cannot_make("make a folder", &e))?;
    let mut child = Command::new(own);
    if let Some(root) = context.otp_root() {
        child.arg("--otp-root").arg(root);
    }
    child.arg(command).args(words).env(VARIABLE, &file.0);
    // A signal that ends this command is meant for the program, and its costs matter all the more.
    let relay = Relay::begin();
    let mut child = child
        .spawn()
        .map_err(|e| cannot_run(SYSTEM, "Purlin", &e))?;
    relay.wait(child.id());
    let status = child
        .wait()
        .map_err(|e| lost_command(format_args!("cannot wait for the program: {}", reason(&e))))?;
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128u8.wrapping_add(signal.unwrap_or(0) as u8),
    };
    if std::fs::metadata(&file.0).map_or(0, |m| m.len()) == 0 {
        // A program that could not be started has given the reason.
        if code == 0 || status.signal().is_some() {
            let text =
                "the program left nothing to explain: it did not run on Purlin, or was killed";
            warn(messages::NOTHING_LEFT, text);
        }
        return Ok(if code == 0 { failure::NO_ANSWER } else { code });
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
        _ => return Err(do_not_fit("explain diff shows text or --json")),
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
        warn(messages::CHECK_HOLDS, line.map_err(bad_check)?);
        code = CHECK_FAILED;
    }
    Ok(code)
}
