//! Loads every `.beam` file below the given directories and reports the speed.
//!
//! `beamstat DIR..` prints files that failed to load, sizes and throughput. `beamstat --md5 DIR..`
//! prints file and module checksum instead, to compare with `beam_lib:md5/1`. `beamstat --disasm
//! FILE` lists a module's generic code.

use purlin_loader::{BeamFile, GenericCode, disasm_generic};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (mode, paths) = match args.first().map(String::as_str) {
        Some(mode @ ("--md5" | "--disasm")) => (mode, &args[1..]),
        _ => ("", &args[..]),
    };
    let mut files = Vec::new();
    for path in paths {
        collect(Path::new(path), &mut files);
    }
    let files: Vec<(PathBuf, Vec<u8>)> = files
        .into_iter()
        .filter_map(|path| std::fs::read(&path).ok().map(|data| (path, data)))
        .collect();
    match mode {
        "--md5" => md5s(&files),
        "--disasm" => disasm(&files),
        _ => measure(&files),
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if let Ok(entries) = std::fs::read_dir(path) {
        entries
            .flatten()
            .for_each(|entry| collect(&entry.path(), files));
    } else if path.extension().is_some_and(|ext| ext == "beam") {
        files.push(path.to_owned());
    }
}

fn md5s(files: &[(PathBuf, Vec<u8>)]) -> ExitCode {
    for (path, data) in files {
        if let Ok(file) = BeamFile::parse(data) {
            let hex: String = file.md5().iter().map(|b| format!("{b:02x}")).collect();
            println!("{} {hex}", path.display());
        }
    }
    ExitCode::SUCCESS
}

fn disasm(files: &[(PathBuf, Vec<u8>)]) -> ExitCode {
    for (path, data) in files {
        match BeamFile::parse(data).and_then(|file| disasm_generic(&file)) {
            Ok(text) => print!("{text}"),
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn measure(files: &[(PathBuf, Vec<u8>)]) -> ExitCode {
    const ROUNDS: u32 = 5;
    let (mut failed, mut file_bytes, mut code_bytes, mut instrs) = (0, 0, 0, 0);
    let (mut parse, mut decode) = (Duration::MAX, Duration::MAX);
    let mut scratch = GenericCode::default();
    for round in 0..ROUNDS {
        let (mut parse_round, mut decode_round) = (Duration::ZERO, Duration::ZERO);
        for (path, data) in files {
            let start = Instant::now();
            let file = BeamFile::parse(data);
            parse_round += start.elapsed();
            let start = Instant::now();
            let result = file.and_then(|file| {
                let code = std::mem::take(&mut scratch).reuse(&file)?;
                decode_round += start.elapsed();
                let counts = (file.code().len(), code.instrs.len());
                scratch = code;
                Ok(counts)
            });
            if round > 0 {
                continue;
            }
            match result {
                Ok((bytes, count)) => {
                    code_bytes += bytes;
                    instrs += count;
                    file_bytes += data.len();
                }
                Err(error) => {
                    failed += 1;
                    println!("{}: {error}", path.display());
                }
            }
        }
        parse = parse.min(parse_round);
        decode = decode.min(decode_round);
    }
    let rate = |bytes: usize, time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!(
        "{} files, {failed} failed, best of {ROUNDS} rounds",
        files.len()
    );
    println!(
        "parse  {file_bytes:>10} bytes of file {parse:>10.1?} {:>7.0} MB/s",
        rate(file_bytes, parse)
    );
    println!(
        "decode {code_bytes:>10} bytes of code {decode:>10.1?} {:>7.0} MB/s",
        rate(code_bytes, decode)
    );
    println!(
        "{instrs} instructions, {:.1} ns each",
        decode.as_secs_f64() * 1e9 / instrs as f64
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
