//! `build FILE|PROJECT -o OUT`: one executable with the runtime, the modules and everything else
//! that a program needs.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::erts::own_program;
use crate::build::{images, pack, shown, stage};
use crate::context::Context;
use crate::failure::{
    Failure, cannot_read, cannot_write, missing_argument, no_option, no_value, surplus_argument,
};
use crate::temporary;

const USE: &str = "purlin build FILE|PROJECT -o OUT [--apps A,B]";

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let text = |what: &str| format!("build {what}: {USE}");
    let (mut input, mut out, mut apps) = (None, None, String::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("-o" | "--output") => {
                out = Some(
                    args.next()
                        .ok_or_else(|| no_value(text("-o needs a value")))?,
                )
            }
            Some("--apps") => {
                let value = args
                    .next()
                    .ok_or_else(|| no_value(text("--apps needs a value")))?;
                apps = value.to_string_lossy().into_owned();
            }
            _ if arg.as_bytes().starts_with(b"-") => {
                return Err(no_option("build", arg.to_string_lossy()));
            }
            _ if input.is_some() => {
                return Err(surplus_argument(text("takes one file or project")));
            }
            _ => input = Some(arg),
        }
    }
    let input = input.ok_or_else(|| missing_argument(text("needs a file or a project")))?;
    let out =
        PathBuf::from(out.ok_or_else(|| missing_argument(text("needs to know what to make")))?);
    let program = own_program().map_err(|e| cannot_read("Purlin's own executable", &e))?;
    let (manifest, mut files) = stage::stage(context, Path::new(input), &apps)?;
    images::add(&manifest.otp, &mut files);
    let bytes = pack(program, &manifest, files);
    // A running program keeps the old file.
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let written = |e| cannot_write(shown(&out), &e);
    let (mut file, fresh) = temporary::file(folder, ".purlin-build", 0o600).map_err(written)?;
    let done = file
        .write_all(&bytes)
        .and_then(|()| file.set_permissions(fs::Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&fresh, &out));
    if let Err(e) = done {
        let _ = fs::remove_file(&fresh);
        return Err(written(e));
    }
    Ok(0)
}
