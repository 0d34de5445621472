//! `exec -- COMMAND`: runs any command with Purlin as the `erl`, `erlc` and `escript` on its
//! `PATH`, and reports processes below it that run on another emulator.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{become_program_named, no_option};
use crate::context::Context;
use crate::descendants::Marks;
use crate::failure::{Failure, command_not_found, missing_argument, warn};
use crate::file_watch;
use purlin_messages as messages;

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let args = match args {
        [first, rest @ ..] if first == "--" => rest,
        args => {
            args.first().map_or(Ok(()), |a| no_option("exec", a))?;
            args
        }
    };
    let Some((program, args)) = args.split_first() else {
        let text = "exec needs a command: purlin exec -- COMMAND [ARGS]";
        return Err(missing_argument(text));
    };
    let otp = context.otp()?;
    let mut environment = context.environment_for_children(&otp)?;
    let marks = Marks::new();
    let (variable, mark) = marks.variable();
    environment.set(variable, mark);
    let found = if program.as_encoded_bytes().contains(&b'/') {
        Some(PathBuf::from(program))
    } else {
        // The new `PATH` counts, so that `purlin exec -- erl` is Purlin.
        std::env::split_paths(environment.get("PATH").unwrap_or_default())
            .map(|directory| directory.join(program))
            .find(|path| is_executable(path))
    };
    match found {
        Some(path) => {
            warn_of_release(&path);
            let name = name_for(&path, program, &otp.root);
            let emulators = [otp.bindir.join("beam.smp")];
            if file_watch::is_strict() {
                return file_watch::run_strict(
                    &path,
                    name,
                    args,
                    &environment.0,
                    &marks,
                    &emulators,
                );
            }
            if !file_watch::is_quiet() {
                file_watch::beside(&marks, &emulators);
            }
            Err(become_program_named(&path, name, args, &environment.0))
        }
        None => Err(command_not_found(program.to_string_lossy())),
    }
}

/// The name that a program sees as its own: the word that was typed, as from a shell.
///
/// OTP's launchers (`dialyzer`, `typer`, `ct_run`) look for `erl` in the directory of that name
/// before they search the `PATH`, so they get a name without a directory.
fn name_for<'a>(path: &'a Path, typed: &'a OsStr, root: &Path) -> &'a OsStr {
    let real = std::fs::canonicalize(path).unwrap_or_default();
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
    match path.file_name() {
        Some(name) if real.starts_with(root) => name,
        _ => typed,
    }
}

/// Warns if the command is a release with its own emulator, which it runs whatever the `PATH` says.
fn warn_of_release(path: &Path) {
    let real = std::fs::canonicalize(path).unwrap_or_default();
    let Some(root) = real.parent().and_then(Path::parent) else {
        return;
    };
    let Ok(entries) = std::fs::read_dir(root) else {
        return;
    };
    // Installations of OTP have an `erl` there, and are meant when named.
    if !root.join("releases").is_dir() || root.join("bin/erl").exists() {
        return;
    }
    let own = entries.flatten().any(|entry| {
        entry.file_name().as_encoded_bytes().starts_with(b"erts-")
            && is_executable(&entry.path().join("bin/beam.smp"))
    });
    if own {
        let text = format!(
            "{} has an emulator of its own, and runs on that: make it with include_erts: false, \
             or with what 'purlin erts' makes",
            root.display()
        );
        warn(messages::OWN_EMULATOR, text);
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
