//! `escript`: runs a script, whose second or third line may hold flags for the emulator (`%%! …`).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;

use purlin_runtime::options::erlexec::Environment;

use super::{become_program, erl};
use crate::context::Context;
use crate::failure::{Failure, REFUSED};

/// Maximum length of a line. A script may be a megabyte of archive without a line end.
const LINE_LIMIT: u64 = 64 * 1024;

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let options = args
        .iter()
        .take_while(|arg| arg.as_bytes().starts_with(b"-"))
        .count();
    let (options, args) = args.split_at(options);
    let Some((script, args)) = args.split_first() else {
        return Err(Failure::of_tool(REFUSED, "escript: Missing filename"));
    };
    let flags = emulator_flags(script)?;

    let mut line: Vec<OsString> = ["+B", "-boot", "no_dot_erlang", "-noshell"]
        .map(OsString::from)
        .to_vec();
    line.extend(flags);
    line.extend(["-run", "escript", "start"].map(OsString::from));
    line.extend(
        options
            .iter()
            .map(|option| OsStr::from_bytes(&option.as_bytes()[1..]).into()),
    );
    line.extend([OsString::from("-extra"), script.clone()]);
    line.extend(args.iter().cloned());

    let mut environment = Environment::of_process();
    environment.set("ESCRIPT_NAME", script.clone());
    match environment.get("ESCRIPT_EMULATOR").map(OsStr::to_os_string) {
        Some(program) => Err(become_program(program.as_ref(), &line, &environment.0)),
        None => erl::start(&context.otp()?, environment, &line),
    }
}

/// The words after `%%!`, separated by spaces only.
fn emulator_flags(script: &OsStr) -> Result<Vec<OsString>, Failure> {
    let unreadable = |_| {
        let script = script.to_string_lossy();
        Failure::of_tool(REFUSED, format!("escript: Failed to open file: {script}"))
    };
    let mut file = BufReader::new(File::open(script).map_err(unreadable)?);
    for number in 1..=3 {
        let mut line = Vec::new();
        file.by_ref()
            .take(LINE_LIMIT)
            .read_until(b'\n', &mut line)
            .map_err(unreadable)?;
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        if let (2..=3, Some(flags)) = (number, line.strip_prefix(b"%%!")) {
            let words = flags
                .split(|byte| *byte == b' ')
                .filter(|word| !word.is_empty());
            return Ok(words
                .map(|word| OsStr::from_bytes(word).to_os_string())
                .collect());
        }
    }
    Ok(Vec::new())
}
