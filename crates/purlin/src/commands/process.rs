//! Actions of commands on this process: writing to its standard output, and executing another
//! program in it.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::failure::{self, Failure, NOT_EXECUTABLE, NOT_FOUND, cannot_print, cannot_run};

/// Writes text to standard output. It is no error if the reader closes the pipe.
pub fn print(text: &str) -> Result<u8, Failure> {
    print_bytes(text.as_bytes())
}

/// As [`print`], for bytes.
pub fn print_bytes(bytes: &[u8]) -> Result<u8, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(cannot_print(&error)),
        _ => Ok(0),
    }
}

/// Replaces this process by `program`, which is called by `name`.
pub fn become_program_named(
    program: &Path,
    name: &OsStr,
    args: &[OsString],
    environment: &[(OsString, OsString)],
) -> Failure {
    let mut command = Command::new(program);
    command.arg0(name).args(args).env_clear();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let error = command.exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_EXECUTABLE
    };
    cannot_run(code, program.display(), &error)
}

/// Replaces this process by `program`.
pub fn become_program(
    program: &Path,
    args: &[OsString],
    environment: &[(OsString, OsString)],
) -> Failure {
    become_program_named(program, program.as_os_str(), args, environment)
}

/// Refuses a word that begins like an option where a command takes a name.
pub(super) fn no_option(command: &str, word: &OsStr) -> Result<(), Failure> {
    if !word.as_encoded_bytes().starts_with(b"-") {
        return Ok(());
    }
    Err(failure::no_option(command, word.to_string_lossy()))
}
