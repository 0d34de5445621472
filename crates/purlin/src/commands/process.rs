//! Actions of commands on this process: writing to its standard output, and executing another
//! program in it.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND, SYSTEM, reason};

/// Writes text to standard output. It is no error if the reader closes the pipe.
pub fn print(text: &str) -> Result<u8, Failure> {
    print_bytes(text.as_bytes())
}

/// As [`print`], for bytes.
pub fn print_bytes(bytes: &[u8]) -> Result<u8, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(
            SYSTEM,
            format!("purlin: cannot write: {}", reason(&error)),
        )),
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
    Failure::new(
        code,
        format!(
            "purlin: cannot run {}: {}",
            program.display(),
            reason(&error)
        ),
    )
}

/// Replaces this process by `program`.
pub fn become_program(
    program: &Path,
    args: &[OsString],
    environment: &[(OsString, OsString)],
) -> Failure {
    become_program_named(program, program.as_os_str(), args, environment)
}
