//! Ten seconds of `make hunt`: random programs that exercise memory, whose values all carry their
//! expected contents. Seeds that have found faults run first.

use std::process::Command;

#[test]
fn no_memory_is_damaged() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let out = Command::new("sh")
        .args(["scripts/hunt.sh", "10"])
        .current_dir(root)
        .env("PURLIN", env!("CARGO_BIN_EXE_purlin"))
        .env("DEBUG", "/nonexistent")
        .output()
        .expect("sh runs");
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{text}");
    // None would mean that the programs could not be written or run.
    let programs = String::from_utf8_lossy(&out.stdout)
        .lines()
        .last()
        .and_then(|l| l.split(' ').next()?.parse::<u32>().ok());
    assert!(programs.is_some_and(|n| n >= 1), "{text}");
}
