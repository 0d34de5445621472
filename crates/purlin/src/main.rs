//! The command line of Purlin.
//!
//! `purlin COMMAND …` runs the command of that name from [`commands::COMMANDS`]. A link to this
//! program that is called `erl`, `erlc` or `escript` acts as that command. Data goes to standard
//! output, the program's own messages to standard error, and each exit status has its own meaning
//! ([`failure`]).
//!
//! The table of commands does not use a parser crate: most commands pass their arguments on
//! unchanged, as arbitrary bytes, to tools with their own rules for flags; and the start of a
//! runtime should cost no more than a few comparisons.

mod build;
mod bundled_emulators;
mod commands;
mod context;
mod descendants;
mod elf;
mod explain;
mod failure;
mod file_watch;
mod find_otp;
mod linker;
mod observe;
mod shims;
mod temporary;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use commands::COMMANDS;
use commands::table::HAND_ON;
use context::Context;
use failure::{Failure, USAGE, no_value, say, warn};
use purlin_messages as messages;

#[global_allocator]
static ALLOCATOR: purlin_runtime::Counted = purlin_runtime::Counted;

/// Minimum size of the main thread's stack, in bytes.
const LEAST_STACK: usize = 64 << 10;

fn main() -> ExitCode {
    if purlin_runtime::stack_limit().is_some_and(|n| n < LEAST_STACK) {
        let text = "the limit of the stack is too low: at least 64 kilobytes are needed";
        warn(messages::LOW_STACK, text);
        return ExitCode::FAILURE;
    }
    let argv: Vec<OsString> = std::env::args_os().collect();
    let ended = match build::own() {
        Some(program) => program.and_then(|files| build::run(files, &argv)),
        None => dispatch(&argv),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            say(&failure);
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(argv: &[OsString]) -> Result<u8, Failure> {
    let invoked = argv.first().and_then(|name| Path::new(name).file_name());
    if let Some(command) = COMMANDS
        .iter()
        .find(|row| row.stock && invoked == Some(row.name.as_ref()))
    {
        let context = Context::new(None, argv[0].clone());
        return (command.run)(&context, &argv[1..]);
    }

    // The name by which a release calls what `purlin erts` has made.
    if invoked.is_some_and(|name| name == "erlexec") {
        let root = std::env::var_os("ROOTDIR").filter(|root| !root.is_empty());
        let context = Context::new(root.map(Into::into), argv[0].clone());
        return commands::erl::run(&context, &argv[1..]);
    }

    let mut args = argv.get(1..).unwrap_or_default();
    let mut otp_root = None;
    loop {
        let Some((first, rest)) = args.split_first() else {
            let text = "no command; try: purlin --help";
            return Err(Failure::new(messages::NO_COMMAND, USAGE, text));
        };
        if first == "--otp-root" {
            let Some((root, rest)) = rest.split_first() else {
                return Err(no_value("--otp-root needs a directory"));
            };
            otp_root = Some(root.into());
            args = rest;
        } else if let Some(root) = strip_prefix(first, "--otp-root=") {
            otp_root = Some(root.into());
            args = rest;
        } else {
            break;
        }
    }
    let (name, args) = (&args[0], &args[1..]);
    let name = match name.to_str() {
        Some("-h" | "--help") => "help".as_ref(),
        Some("-V" | "--version") => "version".as_ref(),
        _ => name.as_os_str(),
    };
    match COMMANDS.iter().find(|row| name == row.name) {
        Some(command) => {
            let context = Context::new(otp_root, name.into());
            let asks = args.first().is_some_and(|a| a == "-h" || a == "--help");
            if asks && !HAND_ON.contains(&command.name) {
                return commands::help::help(&context, &[command.name.into()]);
            }
            (command.run)(&context, args)
        }
        None => {
            let kind = if name.as_encoded_bytes().starts_with(b"-") {
                "option"
            } else {
                "command"
            };
            let name = name.to_string_lossy();
            let likely = match commands::nearest(&name) {
                Some(likely) => format!("did you mean '{likely}'?"),
                None => "try: purlin --help".into(),
            };
            let text = format!("there is no {kind} '{name}'; {likely}");
            Err(Failure::new(messages::NO_SUCH_COMMAND, USAGE, text))
        }
    }
}

fn strip_prefix<'a>(text: &'a OsStr, prefix: &str) -> Option<&'a OsStr> {
    use std::os::unix::ffi::OsStrExt;
    text.as_bytes()
        .strip_prefix(prefix.as_bytes())
        .map(OsStr::from_bytes)
}
