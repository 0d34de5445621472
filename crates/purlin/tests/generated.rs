//! A sample of the comparisons of `scripts/generated.sh`: random calls of natives and random
//! programs, on both runtimes.

use std::process::Command;

#[test]
fn random_calls_and_programs_agree() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let out = Command::new("sh")
        .arg("scripts/generated.sh")
        .current_dir(root)
        .env("PURLIN", env!("CARGO_BIN_EXE_purlin"))
        .envs([("SEED", "1"), ("COUNT", "300")])
        .output()
        .expect("sh runs");
    let text = String::from_utf8_lossy(&out.stdout);
    let compared = text
        .lines()
        .last()
        .and_then(|l| l.split(' ').next())
        .and_then(|n| n.parse::<u32>().ok());
    assert!(out.status.success(), "{text}");
    // Fewer lines would mean that programs end before they have done anything.
    assert!(compared.is_some_and(|n| n > 4000), "{text}");
}
