//! The ops of small functions, compared with expectations.
//!
//! `tests/golden/NAME.erl` is compiled by the stock compiler, and `purlin disasm --specific` must
//! show what is in `NAME.code` beside it. `BLESS=1` rewrites these files, so that the diff shows
//! the changes.
//!
//! The first line of an expectation names the compiler that it was made with. With another compiler
//! nothing is compared, since generic code may differ.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

/// The standard output of a command. Panics if it fails.
fn output(command: &mut Command) -> String {
    let out = command.output().expect("the command can be run");
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {errors}");
    String::from_utf8(out.stdout).expect("text")
}

/// The text with addresses, which differ between runs, made equal.
fn without_addresses(text: &str) -> String {
    const SHORTEST: usize = 12;
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..]
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(rest.len() - at - 2);
        out.push_str(&rest[..at]);
        match digits >= SHORTEST {
            true => out.push_str("ADDRESS"),
            false => out.push_str(&rest[at..at + 2 + digits]),
        }
        rest = &rest[at + 2 + digits..];
    }
    out + rest
}

#[test]
fn specific_code_is_as_expected() {
    let bless = std::env::var_os("BLESS").is_some_and(|v| v != "0");
    let made = std::env::temp_dir().join(format!("purlin-golden-{}", std::process::id()));
    fs::create_dir_all(&made).expect("a directory for compiled modules");
    let version = "{ok, _} = application:ensure_all_started(compiler), \
        {_, _, V} = lists:keyfind(compiler, 1, application:loaded_applications()), io:put_chars(V), halt().";
    let compiler = output(Command::new("erl").args(["-noshell", "-eval", version]));
    let head = format!("compiler {compiler}");
    let mut sources: Vec<PathBuf> = fs::read_dir(directory())
        .expect("tests/golden")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "erl"))
        .collect();
    sources.sort();
    assert!(!sources.is_empty());
    let mut differ = Vec::new();
    for source in sources {
        let expected_at = source.with_extension("code");
        let expected = fs::read_to_string(&expected_at).unwrap_or_default();
        let other = expected.lines().next().is_some_and(|line| line != head);
        if other && !bless {
            eprintln!("{}: made with another compiler", expected_at.display());
            continue;
        }
        output(
            Command::new("erlc")
                .arg("+deterministic")
                .arg("-o")
                .arg(&made)
                .arg(&source),
        );
        let beam = made
            .join(source.file_stem().expect("a name"))
            .with_extension("beam");
        let mut disasm = Command::new(env!("CARGO_BIN_EXE_purlin"));
        let text = output(disasm.args(["disasm", "--specific"]).arg(beam));
        let text = format!("{head}\n{}", without_addresses(&text));
        if bless {
            fs::write(&expected_at, text).expect("the expectation can be written");
        } else if text != expected {
            let line = text.lines().zip(expected.lines()).position(|(a, b)| a != b);
            let line = line.unwrap_or(text.lines().count().min(expected.lines().count()));
            let of = |text: &str| text.lines().nth(line).unwrap_or("nothing").to_owned();
            differ.push(format!(
                "{}:{}: expected {:?}, got {:?}",
                expected_at.display(),
                line + 1,
                of(&expected),
                of(&text)
            ));
        }
    }
    let _ = fs::remove_dir_all(&made);
    assert!(
        differ.is_empty(),
        "{}\nBLESS=1 accepts this",
        differ.join("\n")
    );
}
