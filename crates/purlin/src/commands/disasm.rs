//! `disasm FILE.beam`: the code of a module file, as text on standard output.

use std::ffi::OsString;
use std::io::Write;

use purlin_loader::{BeamFile, disasm_generic};

use crate::context::Context;
use crate::failure::{Failure, NO_INPUT, SYSTEM, USAGE, reason};

pub fn run(_context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let mut file = None;
    let (mut generic, mut specific) = (false, false);
    for arg in args {
        match arg.to_str() {
            Some("--generic") => generic = true,
            Some("--specific") => specific = true,
            Some(option) if option.starts_with('-') => {
                return Err(Failure::new(
                    USAGE,
                    format!("purlin: disasm has no option '{option}'"),
                ));
            }
            _ if file.is_some() => {
                return Err(Failure::new(
                    USAGE,
                    "purlin: disasm shows one file at a time",
                ));
            }
            _ => file = Some(arg),
        }
    }
    let Some(file) = file else {
        return Err(Failure::new(
            USAGE,
            "purlin: disasm needs a file: purlin disasm FILE.beam",
        ));
    };
    let shown = file.to_string_lossy();
    let bytes = std::fs::read(file).map_err(|error| {
        Failure::new(
            NO_INPUT,
            format!("purlin: cannot read {shown}: {}", reason(&error)),
        )
    })?;
    let damaged =
        |error: &dyn std::fmt::Display| Failure::new(NO_INPUT, format!("purlin: {shown}: {error}"));
    let mut text = String::new();
    if generic || !specific {
        text = BeamFile::parse(&bytes)
            .and_then(|module| disasm_generic(&module))
            .map_err(|error| damaged(&error))?;
    }
    if specific {
        purlin_runtime::bif::install();
        text += &purlin_runtime::code::disasm_specific(&bytes).map_err(|error| damaged(&error))?;
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(Failure::new(
            SYSTEM,
            format!("purlin: cannot write: {}", reason(&error)),
        )),
        Ok(()) => Ok(0),
    }
}
