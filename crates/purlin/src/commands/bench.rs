//! `bench FILE`: measures a program as `run` runs it and, in turn, the same file on a stock
//! emulator.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use purlin_diagnostics::explain::VARIABLE;
use purlin_diagnostics::json::Json;
use purlin_measure::Command;
use purlin_runtime::options::OtpInstall;

use super::elixir;
use super::explain::{self, Answer};
use super::measure::{Form, Plan, count};
use super::run::{Program, program};
use crate::context::Context;
use crate::explain::{number, text::bytes};
use crate::failure::{
    Failure, NO_INSTALLATION, bad_otp_root, cannot_make, no_own_executable, no_value,
};
use purlin_messages as messages;

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let mut plan = Plan {
        commands: Vec::new(),
        runs: 10,
        warmup: 1,
        any_status: false,
        form: Form::Table,
    };
    let (mut against, mut show) = (None, false);
    let mut rest = args;
    while let Some((option, after)) = rest.split_first() {
        let mut used = 1;
        let mut value = || {
            used = 2;
            let option = option.to_string_lossy();
            let missing = || no_value(format!("{option} needs a value"));
            after.first().cloned().ok_or_else(missing)
        };
        match option.to_str() {
            Some("--runs") => plan.runs = count(&value()?, "--runs", 1)?,
            Some("--warmup") => plan.warmup = count(&value()?, "--warmup", 0)?,
            Some("--against") => against = Some(value()?),
            Some("--any-status") => plan.any_status = true,
            Some("--show") => show = true,
            Some("--json") => plan.form = Form::Json,
            Some("--csv") => plan.form = Form::Csv,
            _ => break,
        }
        rest = &rest[used..];
    }
    // An error in the file is reported before anything runs.
    let how = program("bench", rest)?;
    let words = match rest {
        [first, rest @ ..] if first == "--" => rest,
        rest => rest,
    };
    let otp = context.otp()?;
    if let Some(against) = against {
        let other = match against.to_str() {
            Some("stock") => otp.clone(),
            _ => OtpInstall::open(Path::new(&against)).map_err(|error| {
                let against = against.to_string_lossy();
                bad_otp_root(format!("--against {against}"), error)
            })?,
        };
        plan.commands.push(on_stock(&other, how, show)?);
    }
    plan.commands.push(on_purlin(&otp, words, show)?);
    let report = plan.measure()?;
    // A run that was ended early may have left none.
    let spent = match report.ended_by {
        None => spent(plan.commands.last())?,
        Some(_) => None,
    };
    report.show(|| match plan.form {
        Form::Table => report.table() + &costs_text(spent.as_ref()),
        Form::Json => {
            let mut all = report.json();
            if let (Json::Object(pairs), Some(spent)) = (&mut all, spent) {
                pairs.push(("purlin".into(), spent));
            }
            format!("{all}\n")
        }
        Form::Csv => report.csv(),
    })
}

fn command(name: String, words: Vec<OsString>, show: bool) -> Command {
    Command {
        words,
        name,
        input: None,
        show,
        environment: Vec::new(),
    }
}

fn on_purlin(otp: &OtpInstall, words: &[OsString], show: bool) -> Result<Command, Failure> {
    let own = crate::linker::executable().map_err(|e| no_own_executable(&e))?;
    let mut all: Vec<OsString> = vec![own.into(), "--otp-root".into(), otp.root.clone().into()];
    all.push("run".into());
    all.extend(words.iter().cloned());
    Ok(command(format!("Purlin, OTP {}", otp.version), all, show))
}

/// The same with the programs of the installation.
fn on_stock(otp: &OtpInstall, how: Program, show: bool) -> Result<Command, Failure> {
    let programs = otp.root.join("bin");
    let (first, words) = match how {
        Program::Erl(words) => (programs.join("erl"), words),
        Program::Elixir(words) => {
            let context = Context::new(Some(otp.root.clone()), "elixir".into());
            (elixir::installed_scripts(&context)?.join("elixir"), words)
        }
        Program::Escript(words) => (programs.join("escript"), words),
    };
    let erl = programs.join("erl");
    if !erl.is_file() || is_own(&erl) {
        let root = otp.root.display();
        let text = format!("there is no stock emulator in {root}");
        return Err(Failure::new(messages::NO_STOCK, NO_INSTALLATION, text));
    }
    let mut all: Vec<OsString> = vec![first.into()];
    all.extend(words);
    let mut command = command(format!("stock, OTP {}", otp.version), all, show);
    // Makes scripts find the stock emulator first.
    let mut path = programs.into_os_string();
    if let Some(old) = std::env::var_os("PATH").filter(|old| !old.is_empty()) {
        path.push(":");
        path.push(old);
    }
    command.environment.push(("PATH".into(), path));
    Ok(command)
}

fn is_own(program: &Path) -> bool {
    let real = |p: PathBuf| std::fs::canonicalize(p).ok();
    let own = crate::linker::executable().ok().and_then(real);
    own.is_some() && own == real(program.to_path_buf())
}

/// The program's copies and shared terms, from an additional run that is not measured.
fn spent(command: Option<&Command>) -> Result<Option<Json>, Failure> {
    let file = Answer::new().map_err(|e| cannot_make("make a file for the answer", &e))?;
    let Some(command) = command else {
        return Ok(None);
    };
    let mut child = std::process::Command::new(&command.words[0]);
    child.args(&command.words[1..]).env(VARIABLE, &file.0);
    let null = std::process::Stdio::null;
    child.stdin(null()).stdout(null()).stderr(null());
    if child.status().is_err() || std::fs::metadata(&file.0).map_or(0, |m| m.len()) == 0 {
        return Ok(None);
    }
    let answer = explain::read(&file.0)?;
    let of = |path: &[&str]| Json::from(number(&answer, path));
    Ok(Some(Json::object([
        ("copied_bytes", of(&["copies", "bytes"])),
        ("moved_bytes", of(&["copies", "totals", "moved_bytes"])),
        ("shared_bytes", of(&["copies", "totals", "shared_bytes"])),
        ("allocated_bytes", of(&["allocation", "bytes"])),
        ("peak_bytes", of(&["memory", "peak_bytes"])),
    ])))
}

fn costs_text(spent: Option<&Json>) -> String {
    let Some(spent) = spent else {
        return String::new();
    };
    let of = |name: &str| bytes(number(spent, &[name]));
    format!(
        "\nOn Purlin: copied {}, moved to shared regions {}, shared without a copy {}, allocated on heaps {}\n",
        of("copied_bytes"),
        of("moved_bytes"),
        of("shared_bytes"),
        of("allocated_bytes")
    )
}
