//! `schedules [OPTIONS] -- COMMAND`: runs a program again and again, each time in another order, until it fails. `replay FILE` repeats
//! a run that failed.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::path::PathBuf;

use purlin_runtime::schedules::{VARIABLE, is_strategy};

use super::{COMMANDS, become_program, elixir, print, schedules_page};
use crate::context::Context;
use crate::failure::{Failure, NO_INPUT, SYSTEM, USAGE, reason};

const USE: &str = "purlin schedules [--seeds N] [--for SECONDS] [--seed N] [--strategy NAME] [--stall MS] [--jobs N] [--to FILE] \
[--json] [--strict] -- COMMAND";

fn wrong(text: impl std::fmt::Display) -> Failure {
    Failure::new(USAGE, format!("purlin: {text}"))
}

/// `purlin schedules …`
pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    if args.first().is_some_and(|a| a == "show") {
        return show(&args[1..]);
    }
    let mut request = String::from("search\n");
    let mut rest = args;
    let mut to = false;
    loop {
        let Some((first, more)) = rest.split_first() else {
            return Err(wrong(format!("schedules needs a command: {USE}")));
        };
        rest = more;
        let option = first.to_string_lossy();
        let key = match &*option {
            "--" => break,
            "--json" | "--strict" => {
                let _ = writeln!(request, "{}", &option[2..]);
                continue;
            }
            "--seeds" => "schedules",
            "--for" => "milliseconds",
            "--seed" => "seed",
            "--strategy" => "strategy",
            "--stall" => "stall",
            "--jobs" => "jobs",
            "--to" => "to",
            _ => return Err(wrong(format!("schedules has no option '{option}': {USE}"))),
        };
        let Some((value, more)) = rest.split_first() else {
            return Err(wrong(format!("{option} needs a value: {USE}")));
        };
        rest = more;
        let value = value.to_string_lossy();
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| wrong(format!("{option}: '{value}' is no number")))
        };
        match key {
            "milliseconds" => {
                let seconds = value.trim_end_matches('s').parse::<f64>().ok();
                let Some(seconds) = seconds.filter(|s| *s > 0.0 && s.is_finite()) else {
                    return Err(wrong(format!(
                        "{option}: '{value}' is no number of seconds"
                    )));
                };
                let _ = writeln!(request, "{key} {}", (seconds * 1000.0) as u64);
            }
            "strategy" if !is_strategy(&value) => {
                return Err(wrong(format!(
                    "there is no strategy '{value}': portfolio, flips, pos, pct:D, surw, delays:N, stalls, random, none"
                )));
            }
            "strategy" => {
                let _ = writeln!(request, "{key} {value}");
            }
            "to" => {
                to = true;
                let _ = writeln!(request, "{key} {value}");
            }
            _ => {
                let _ = writeln!(request, "{key} {}", number()?);
            }
        }
    }
    let _ = to;
    if rest.is_empty() {
        return Err(wrong(format!("schedules needs a command: {USE}")));
    }
    start(context, request, rest)
}

/// `purlin replay FILE`
pub fn replay(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let (steps, args) = match args {
        [first, rest @ ..] if first == "--steps" => (true, rest),
        args => (false, args),
    };
    let [file] = args else {
        return Err(wrong("replay needs a file: purlin replay [--steps] FILE"));
    };
    let recorded = read(file)?;
    let file = std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file));
    let mut request = format!("replay {}\n", file.display());
    if steps {
        request.push_str("steps\n");
    }
    let words: Vec<OsString> = recorded.command.iter().map(OsString::from).collect();
    start(context, request, &words)
}

fn read(file: &OsStr) -> Result<purlin_runtime::schedules::Recorded, Failure> {
    let name = file.to_string_lossy();
    let text = std::fs::read_to_string(file).map_err(|e| {
        Failure::new(
            NO_INPUT,
            format!("purlin: cannot read {name}: {}", reason(&e)),
        )
    })?;
    purlin_runtime::schedules::read(&text).ok_or_else(|| {
        Failure::new(
            NO_INPUT,
            format!("purlin: {name}: not a file of a schedule"),
        )
    })
}

/// `purlin schedules show FILE`
fn show(args: &[OsString]) -> Result<u8, Failure> {
    let (file, html) = match args {
        [file] => (file, None),
        [file, option, html] if option == "--html" => (file, Some(html)),
        _ => return Err(wrong("purlin schedules show FILE [--html PAGE]")),
    };
    let r = read(file)?;
    if let Some(html) = html {
        let name = html.to_string_lossy();
        std::fs::write(html, schedules_page::page(&r)).map_err(|e| {
            Failure::new(
                SYSTEM,
                format!("purlin: cannot write {name}: {}", reason(&e)),
            )
        })?;
        return print(&format!("{name}: the story as a page\n"));
    }
    let mut text = format!(
        "{}\nended with status {}, {} deviation{}\n\n",
        r.command.join(" "),
        r.replay.status,
        r.replay.schedule.len(),
        if r.replay.schedule.len() == 1 {
            ""
        } else {
            "s"
        }
    );
    text.push_str(&purlin_runtime::schedules::told(&r.story));
    print(&text)
}

/// Turns this process into the command, whose emulator does what is asked for.
fn start(context: &Context, mut request: String, words: &[OsString]) -> Result<u8, Failure> {
    for w in words {
        let Some(w) = w.to_str().filter(|w| !w.contains('\n')) else {
            return Err(wrong("the command has words that are no text of one line"));
        };
        let _ = writeln!(request, "argument {w}");
    }
    if let Some(library) = elixir::library()
        && let Some(lib) = library.parent().and_then(|p| p.parent())
    {
        let _ = writeln!(request, "library {}", lib.display());
    }
    let otp = context.otp()?;
    let mut environment = context.environment_for_children(&otp)?;
    environment.set(VARIABLE, &request);
    // Code that is made while the program runs would lie in memory that all runs share.
    environment.set("PURLIN_JIT", "off");
    environment.set("PURLIN_EXEC", "quiet");
    same_addresses();
    let me = std::env::current_exe().map_err(|e| {
        Failure::new(
            SYSTEM,
            format!("purlin: cannot find itself: {}", reason(&e)),
        )
    })?;
    let own = words
        .first()
        .is_some_and(|w| COMMANDS.iter().any(|row| w == row.name));
    let mut args: Vec<OsString> = Vec::new();
    if !own {
        args.extend(["exec".into(), "--".into()]);
    }
    args.extend(words.iter().cloned());
    Err(become_program(&me, &args, &environment.0))
}

/// Has programs that this process turns into lie at the same addresses each time: nothing can depend on them then.
fn same_addresses() {
    #[cfg(target_os = "linux")]
    // SAFETY: a plain call.
    unsafe {
        let now = libc::personality(0xFFFF_FFFF);
        if now >= 0 {
            libc::personality(now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        }
    }
}
