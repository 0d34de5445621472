//! `corpus pack DIRECTORY FILE` and `corpus unpack FILE DIRECTORY`: converts a corpus between the
//! fuzzer's directory and the file in the repository.

use purlin_fuzz::{pack, unpack};
use std::io::{Error, Result};
use std::path::Path;
use std::process::ExitCode;

fn pack_directory(from: &Path, to: &Path) -> Result<()> {
    let mut inputs = Vec::new();
    for entry in std::fs::read_dir(from)? {
        inputs.push(std::fs::read(entry?.path())?);
    }
    std::fs::write(to, pack(inputs))
}

fn unpack_into(from: &Path, to: &Path) -> Result<()> {
    let kept = std::fs::read(from)?;
    std::fs::create_dir_all(to)?;
    let inputs = unpack(&kept).ok_or_else(|| Error::other("damaged"))?;
    for (i, input) in inputs.iter().enumerate() {
        std::fs::write(to.join(format!("kept{i}")), input)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let done = match &args[..] {
        [how, from, to] if how == "pack" => pack_directory(from.as_ref(), to.as_ref()),
        [how, from, to] if how == "unpack" => unpack_into(from.as_ref(), to.as_ref()),
        _ => {
            eprintln!("usage: corpus pack DIRECTORY FILE | corpus unpack FILE DIRECTORY");
            return ExitCode::from(64);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("corpus: {e}");
            ExitCode::FAILURE
        }
    }
}
