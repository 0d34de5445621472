//! `schedules --nodes N`: runs a command on several nodes in one world, and searches for faults
//! between them. The runs themselves are those of `purlin_explore::cluster`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use purlin_messages as messages;
use purlin_runtime::schedules::cluster::fault::{Class, Wanted};
use purlin_runtime::schedules::cluster::{self, Recorded, Request, Spec, story};

use super::{elixir, print};
use crate::context::Context;
use crate::failure::{Failure, SYSTEM, bad_value, do_not_fit, no_own_executable};

/// The options of a search in a world.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub nodes: Option<u32>,
    pub faults: Option<Vec<Wanted>>,
    pub schedules: Option<usize>,
    pub time: Option<Duration>,
    pub strict: bool,
    /// Whether messages of different processes may arrive in any order.
    pub any_delivery: bool,
}

/// The options that a search in a world takes.
const ALLOWED: [&str; 9] = [
    "--nodes",
    "--faults",
    "--delivery",
    "--seeds",
    "--for",
    "--seed",
    "--strict",
    "--to",
    "--html",
];

impl Options {
    /// Takes an option and its value, whatever it is for. Returns whether it is for worlds alone.
    pub fn take(&mut self, option: &str, value: &str) -> Result<bool, Failure> {
        match option {
            "--nodes" => {
                let n = value.parse().ok().filter(|n| (1..=32).contains(n));
                self.nodes = Some(n.ok_or_else(|| {
                    bad_value(format!("--nodes: '{value}' is no number from 1 to 32"))
                })?);
            }
            "--faults" => {
                self.faults = Some(Wanted::list(value).ok_or_else(|| {
                    bad_value(format!(
                        "--faults: '{value}' is no list of faults: {}; or of these in one place, \
                         as kill@n2, cut@n1-n2, cut@n1>n2 or cut@halves",
                        Class::NAMES
                    ))
                })?);
            }
            "--delivery" => {
                self.any_delivery = value == "any";
                return Ok(false);
            }
            "--seeds" => {
                self.schedules = value.parse().ok();
                return Ok(false);
            }
            "--for" => {
                let seconds = value.trim_end_matches('s').parse::<f64>().ok();
                let seconds = seconds.filter(|s| *s > 0.0);
                self.time = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Fails if an option was given that has no use here, or that has one here alone.
    pub fn check(&self, given: &[OsString]) -> Result<(), Failure> {
        let Some(nodes) = self.nodes else {
            return match self.faults {
                None => Ok(()),
                Some(_) => Err(do_not_fit("--faults is for --nodes")),
            };
        };
        let named = self.faults.iter().flatten().map(Wanted::highest).max();
        // One node may start others.
        if let Some(n) = named.filter(|n| *n > if nodes == 1 { 32 } else { nodes }) {
            return Err(bad_value(format!("--faults: there is no node n{n}")));
        }
        let given = given.iter().filter_map(|o| o.to_str());
        let mut other = given.filter(|o| o.starts_with("--") && !ALLOWED.contains(o));
        match other.next() {
            None => Ok(()),
            Some(o) => Err(do_not_fit(format!("{o} has no use with --nodes"))),
        }
    }
}

/// The command as each node runs it. `own`: whether it is one of Purlin.
fn spec(context: &Context, words: &[String], nodes: u32, own: bool) -> Result<Spec, Failure> {
    let otp = context.otp()?;
    let mut environment = context.environment_for_children(&otp)?;
    environment.set("PURLIN_JIT", "off");
    environment.set("PURLIN_EXEC", "quiet");
    let mut arguments: Vec<OsString> = Vec::new();
    if !own {
        arguments.extend(["exec".into(), "--".into()]);
    }
    arguments.extend(words.iter().map(OsString::from));
    Ok(Spec {
        program: std::env::current_exe().map_err(|e| no_own_executable(&e))?,
        arguments,
        environment: environment.0,
        nodes,
        libraries: elixir::folder_of_applications(context)
            .map_or(String::new(), |lib| lib.to_string_lossy().into_owned()),
    })
}

/// Names files by their whole paths, since each of several nodes has a folder of its own.
fn whole(words: &[OsString], nodes: u32) -> Vec<String> {
    let mut all = Vec::new();
    for w in words {
        let is_file = nodes > 1 && Path::new(w).is_file();
        let full = match is_file {
            true => std::path::absolute(w).map_or(w.clone(), PathBuf::into_os_string),
            false => w.clone(),
        };
        all.push(full.to_string_lossy().into_owned());
    }
    all
}

fn lost(why: String) -> Failure {
    Failure::new(messages::WORLD_LOST, SYSTEM, format!("schedules: {why}"))
}

/// Searches. The words of the command are text of one line each.
pub(super) fn search(
    context: &Context,
    o: &Options,
    seed: u64,
    to: PathBuf,
    made_by: &str,
    words: &[OsString],
    own: bool,
) -> Result<u8, Failure> {
    let nodes = o.nodes.unwrap_or(1);
    let command = whole(words, nodes);
    let request = Request {
        spec: spec(context, &command, nodes, own)?,
        seed,
        schedules: o.schedules.unwrap_or(1000),
        time: o.time,
        wanted: {
            let faults = o.faults.clone();
            let mut all = faults.unwrap_or_else(|| vec![Class::Delay.into()]);
            all.extend(o.any_delivery.then(|| Wanted::from(Class::Overtaken)));
            all
        },
        strict: o.strict,
        to,
        command,
        made_by: made_by.to_owned(),
    };
    let found = cluster::search(&request).map_err(lost)?;
    print(&found.text)?;
    Ok(found.status)
}

/// Returns what a file of a cluster says.
pub(super) fn shown(r: &Recorded) -> String {
    let mut text = format!("{}\n{}\n", r.command.join(" "), r.verdict);
    text.push_str(&cluster::listed(&r.plan.faults, &r.story));
    text.push('\n');
    text.push_str(&story::rendered(&r.story));
    text
}

/// Repeats a recorded run.
pub(super) fn replay(context: &Context, r: &Recorded, own: bool) -> Result<u8, Failure> {
    let spec = spec(context, &r.command, r.nodes, own)?;
    let found = cluster::replay(r, &spec).map_err(lost)?;
    print(&found.text)?;
    Ok(found.status)
}
