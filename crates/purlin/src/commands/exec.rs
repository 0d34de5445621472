//! `exec -- COMMAND`: any command, with Purlin as the `erl`, `erlc` and `escript` on its `PATH`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::become_program;
use crate::context::Context;
use crate::failure::{Failure, NOT_FOUND, USAGE};

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let args = match args {
        [first, rest @ ..] if first == "--" => rest,
        args => args,
    };
    let Some((program, args)) = args.split_first() else {
        return Err(Failure::new(
            USAGE,
            "purlin: exec needs a command: purlin exec -- COMMAND [ARGS]",
        ));
    };
    let environment = context.environment_for_children(&context.otp()?)?;
    let found = if program.as_encoded_bytes().contains(&b'/') {
        Some(PathBuf::from(program))
    } else {
        // The new PATH decides, so that `purlin exec -- erl` is Purlin.
        std::env::split_paths(environment.get("PATH").unwrap_or_default())
            .map(|directory| directory.join(program))
            .find(|path| is_executable(path))
    };
    match found {
        Some(path) => Err(become_program(&path, args, &environment.0)),
        None => {
            let program = program.to_string_lossy();
            Err(Failure::new(
                NOT_FOUND,
                format!("purlin: {program}: command not found"),
            ))
        }
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
