//! `measure -- COMMAND`: the costs of commands, each of which is run several times, in turn.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;

use purlin_diagnostics::json::Json;
use purlin_measure::statistics::{
    Comparison, Summary, Verdict, compare, confidence_of_each, least_runs,
};
use purlin_measure::{Command, Failed, QUANTITIES, Quantity, QuantityRow, Run};

use super::print;
use crate::context::Context;
use crate::failure::{
    Failure, NOT_EXECUTABLE, REFUSED, bad_value, cannot_read, cannot_run, command_not_found,
    lost_command, missing_argument, no_option, no_value, reason, surplus_argument, warn,
};
use purlin_messages as messages;

/// Maximum number of runs, and of rounds for warming up.
const MOST_RUNS: usize = 10_000;

/// The name of the JSON format.
pub const SCHEMA: &str = "purlin-measure/1";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Table,
    Json,
    Csv,
}

pub fn run(_context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let plan = Plan::of(args)?;
    let report = plan.measure()?;
    report.show(|| match plan.form {
        Form::Table => report.table(),
        Form::Json => format!("{}\n", report.json()),
        Form::Csv => report.csv(),
    })
}

impl Plan {
    /// Runs all commands in turn.
    pub fn measure(&self) -> Result<Report<'_>, Failure> {
        let plan = self;
        let run = purlin_measure::in_turn(&plan.commands, plan.warmup, plan.runs, |index, run| {
            if plan.any_status || run.status.success() {
                return Ok(());
            }
            let name = plan.commands[index].name.clone();
            let status = run.status;
            Err(Failed::Status { name, status })
        })
        .map_err(failure)?;
        let (runs, ended_by) = run;
        Ok(Report {
            plan,
            runs,
            ended_by,
        })
    }
}

fn failure(failed: Failed) -> Failure {
    match failed {
        Failed::Start { name, error } => {
            if error.kind() == std::io::ErrorKind::NotFound {
                return command_not_found(name);
            }
            cannot_run(NOT_EXECUTABLE, name, &error)
        }
        Failed::Input { file, error } => cannot_read(file.display(), &error),
        Failed::Status { name, status } => {
            let how = match (status.code(), status.signal()) {
                (Some(code), _) => format!("with status {code}"),
                (None, signal) => format!("by signal {}", signal.unwrap_or_default()),
            };
            let text = format!("{name} ended {how}; --any-status measures it nevertheless");
            Failure::new(messages::COMMAND_FAILED, REFUSED, text)
        }
        Failed::Wait(error) => {
            lost_command(format!("cannot wait for a command: {}", reason(&error)))
        }
    }
}

/// The parsed command line.
pub struct Plan {
    pub commands: Vec<Command>,
    pub runs: usize,
    pub warmup: usize,
    pub any_status: bool,
    pub form: Form,
}

const USE: &str = "purlin measure [OPTIONS] -- COMMAND [ARGS] [-- COMMAND [ARGS]]";

impl Plan {
    fn of(args: &[OsString]) -> Result<Plan, Failure> {
        let mut plan = Plan {
            commands: Vec::new(),
            runs: 10,
            warmup: 1,
            any_status: false,
            form: Form::Table,
        };
        let mut names: Vec<String> = Vec::new();
        let (mut input, mut show, mut separator) = (None, false, OsString::from("--"));
        let mut args = args.iter();
        loop {
            let Some(arg) = args.next() else {
                return Err(missing_argument(format!("measure needs a command: {USE}")));
            };
            if *arg == *separator {
                break;
            }
            let (option, glued) = split_option(arg);
            let mut value = || {
                let value = glued.clone().or_else(|| args.next().cloned());
                value.ok_or_else(|| no_value(format!("{} needs a value", option.to_string_lossy())))
            };
            match option.to_str() {
                Some("--runs") => plan.runs = count(&value()?, "--runs", 1)?,
                Some("--warmup") => plan.warmup = count(&value()?, "--warmup", 0)?,
                Some("--name") => names.push(value()?.to_string_lossy().into_owned()),
                Some("--input") => input = Some(value()?.into()),
                Some("--separator") => separator = value()?,
                Some("--any-status") if glued.is_none() => plan.any_status = true,
                Some("--show") if glued.is_none() => show = true,
                Some("--json") if glued.is_none() => plan.form = Form::Json,
                Some("--csv") if glued.is_none() => plan.form = Form::Csv,
                _ if arg.as_bytes().starts_with(b"-") => {
                    return Err(no_option("measure", arg.to_string_lossy()));
                }
                _ => {
                    let arg = arg.to_string_lossy();
                    return Err(surplus_argument(format!(
                        "'{arg}' stands before the first --: {USE}"
                    )));
                }
            }
        }
        let words: Vec<OsString> = args.cloned().collect();
        for words in words.split(|word| *word == separator) {
            if words.is_empty() || words[0].is_empty() {
                return Err(missing_argument(format!("a command is missing: {USE}")));
            }
            let index = plan.commands.len();
            let name = names.get(index).cloned().unwrap_or_else(|| {
                let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
                words.join(" ")
            });
            plan.commands.push(Command {
                words: words.to_vec(),
                name,
                input: input.clone(),
                show,
                environment: Vec::new(),
            });
        }
        if names.len() > plan.commands.len() {
            return Err(surplus_argument("there are more names than commands"));
        }
        Ok(plan)
    }
}

/// Splits `--option=value`.
fn split_option(arg: &OsStr) -> (OsString, Option<OsString>) {
    let bytes = arg.as_bytes();
    match bytes.iter().position(|b| *b == b'=') {
        Some(at) if bytes.starts_with(b"--") => (
            OsStr::from_bytes(&bytes[..at]).to_os_string(),
            Some(OsStr::from_bytes(&bytes[at + 1..]).to_os_string()),
        ),
        _ => (arg.to_os_string(), None),
    }
}

pub fn count(value: &OsStr, option: &str, least: usize) -> Result<usize, Failure> {
    let n = value.to_str().and_then(|text| text.parse::<usize>().ok());
    n.filter(|n| (least..=MOST_RUNS).contains(n))
        .ok_or_else(|| {
            let value = value.to_string_lossy();
            bad_value(format!(
                "{option} takes a number from {least} to {MOST_RUNS}, not '{value}'"
            ))
        })
}

/// The results.
pub struct Report<'a> {
    plan: &'a Plan,
    runs: Vec<Vec<Run>>,
    /// The signal that ended the runs early, if any.
    pub ended_by: Option<i32>,
}

/// The name of a verdict in JSON.
fn verdict(v: Verdict) -> &'static str {
    match v {
        Verdict::Less => "less",
        Verdict::More => "more",
        Verdict::Noise => "noise",
        Verdict::TooFew => "too few runs",
    }
}

impl Report<'_> {
    /// Prints the results, as `text` formats them. Returns the exit status of this process.
    pub fn show(&self, text: impl FnOnce() -> String) -> Result<u8, Failure> {
        let Some(signal) = self.ended_by else {
            return print(&text());
        };
        // The runs completed by then.
        if self.runs.iter().all(|runs| !runs.is_empty()) {
            print(&text())?;
        }
        let kept: usize = self.runs.iter().map(Vec::len).sum();
        let all = self.plan.runs * self.plan.commands.len();
        let text = format!("ended by signal {signal}, after {kept} of {all} runs");
        warn(messages::ENDED_EARLY, text);
        Ok(128u8.wrapping_add(signal as u8))
    }
    /// The numbers of one quantity and command; empty if any is missing.
    fn values(&self, command: usize, quantity: Quantity) -> Vec<f64> {
        let values: Option<Vec<f64>> = self.runs[command].iter().map(|r| r.get(quantity)).collect();
        values.unwrap_or_default()
    }

    fn confidence(&self) -> f64 {
        confidence_of_each(self.plan.commands.len().saturating_sub(1))
    }

    fn comparison(&self, command: usize, quantity: Quantity) -> Option<Comparison> {
        let bound = quantity == Quantity::Peak
            && [0, command]
                .iter()
                .any(|c| self.runs[*c].iter().any(|r| r.peak_is_bound));
        if command == 0 || bound {
            return None;
        }
        let (base, other) = (self.values(0, quantity), self.values(command, quantity));
        compare(&base, &other, self.confidence())
    }

    pub fn table(&self) -> String {
        let plan = self.plan;
        let several = plan.commands.len() > 1;
        let mut text = String::new();
        for (i, command) in plan.commands.iter().enumerate() {
            let _ = writeln!(text, "{}: {}", i + 1, printable(&command.name));
        }
        let turn = if several { " each, in turn" } else { "" };
        let _ = writeln!(
            text,
            "{} runs{turn}, {} before them to warm up\n\n{:<16}{:>12}{:>12}{:>12}{:>12}{:>9}",
            plan.runs, plan.warmup, "", "min", "median", "geo. mean", "max", "spread"
        );
        for row in QUANTITIES {
            for command in 0..plan.commands.len() {
                let label = match (command, several) {
                    (0, true) => format!("{:<13}1", row.title),
                    (0, false) => row.title.into(),
                    (n, _) => format!("{:>14}", n + 1),
                };
                let _ = write!(text, "{label:<16}");
                text.push_str(&self.line(command, row));
                text.push('\n');
            }
        }
        if several {
            let confidence = 100.0 * purlin_measure::statistics::CONFIDENCE;
            let _ = writeln!(
                text,
                "\nRatios are to command 1, with the interval that holds the true one with {confidence} per cent confidence; \
                 one that holds 1 is noise."
            );
            let least = least_runs(self.confidence());
            if plan.runs < least {
                let _ = writeln!(text, "A verdict takes {least} runs at least.");
            }
        }
        text
    }

    /// A line of the table.
    fn line(&self, command: usize, row: &QuantityRow) -> String {
        let values = self.values(command, row.quantity);
        let Some(s) = Summary::of(&values) else {
            return "   cannot be read here".into();
        };
        let show = |v: f64| {
            let bound = row.quantity == Quantity::Peak
                && self.runs[command].iter().any(|r| r.peak_is_bound);
            let at_most = if bound { "<= " } else { "" };
            format!("{at_most}{}", row.unit.shown(v))
        };
        let or_dash = |v: Option<String>| v.unwrap_or_else(|| "-".into());
        let mut line = format!(
            "{:>12}{:>12}{:>12}{:>12}{:>9}",
            show(s.min),
            show(s.median),
            or_dash(s.geometric_mean.map(show)),
            show(s.max),
            or_dash(s.spread.map(|s| format!("{:.1}%", 100.0 * s)))
        );
        if let Some(c) = self.comparison(command, row.quantity) {
            let _ = write!(line, "   {:.3}", c.ratio);
            if let Some((low, high)) = c.interval {
                let _ = write!(line, " ({low:.3} to {high:.3})");
            }
            let _ = write!(line, ": {}", verdict(c.verdict));
        }
        line
    }

    pub fn json(&self) -> Json {
        let commands = self.plan.commands.iter().enumerate().map(|(i, command)| {
            let words: Vec<Json> = command
                .words
                .iter()
                .map(|w| Json::from(w.to_string_lossy().into_owned()))
                .collect();
            let results = QUANTITIES.iter().map(|row| {
                let values = self.values(i, row.quantity);
                let result = Summary::of(&values).map_or(Json::Null, |s| {
                    Json::object([
                        ("values", values.into()),
                        ("min", s.min.into()),
                        ("median", s.median.into()),
                        ("geometric_mean", s.geometric_mean.into()),
                        ("max", s.max.into()),
                        ("spread", s.spread.into()),
                    ])
                });
                (row.key.to_string(), result)
            });
            let bound = self.runs[i].iter().any(|r| r.peak_is_bound);
            Json::object([
                ("name", command.name.clone().into()),
                ("words", Json::List(words)),
                ("peak_is_bound", bound.into()),
                ("results", Json::Object(results.collect())),
            ])
        });
        let mut comparisons = Vec::new();
        for command in 1..self.plan.commands.len() {
            for row in QUANTITIES {
                let Some(c) = self.comparison(command, row.quantity) else {
                    continue;
                };
                comparisons.push(Json::object([
                    ("quantity", row.key.into()),
                    ("command", command.into()),
                    ("base", 0usize.into()),
                    ("ratio", c.ratio.into()),
                    ("low", c.interval.map(|i| i.0).into()),
                    ("high", c.interval.map(|i| i.1).into()),
                    ("verdict", verdict(c.verdict).into()),
                ]));
            }
        }
        Json::object([
            ("schema", SCHEMA.into()),
            ("runs", self.plan.runs.into()),
            ("warmup", self.plan.warmup.into()),
            ("confidence", purlin_measure::statistics::CONFIDENCE.into()),
            ("commands", Json::List(commands.collect())),
            ("comparisons", Json::List(comparisons)),
        ])
    }

    /// One line for each run.
    pub fn csv(&self) -> String {
        let mut text = String::from("command,name,run,status");
        QUANTITIES.iter().for_each(|row| {
            let _ = write!(text, ",{}", row.key);
        });
        text.push('\n');
        for (i, command) in self.plan.commands.iter().enumerate() {
            let name = command.name.replace('"', "\"\"");
            for (number, run) in self.runs[i].iter().enumerate() {
                let status = run
                    .status
                    .code()
                    .unwrap_or(-run.status.signal().unwrap_or(0));
                let _ = write!(text, "{},\"{name}\",{},{status}", i + 1, number + 1);
                for row in QUANTITIES {
                    text.push(',');
                    if let Some(value) = run.get(row.quantity) {
                        let _ = write!(text, "{value}");
                    }
                }
                text.push('\n');
            }
        }
        text
    }
}

/// A name without line breaks, for a terminal.
fn printable(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
