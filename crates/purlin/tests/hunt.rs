//! Ten seconds of `make hunt`: random programs that exercise memory, whose values all carry their
//! expected contents. Seeds that have found faults run first.

use xtask::{Settings, hunt};

#[test]
fn no_memory_is_damaged() {
    let mut settings = Settings::of_environment();
    settings.set("PURLIN", env!("CARGO_BIN_EXE_purlin"));
    settings.set("DEBUG", "/nonexistent");
    let (report, _) = hunt::hunt(&settings, &["10".to_string()]).expect("programs run");
    // Each fault was printed.
    assert_eq!(report.faults, 0);
    assert!(report.programs >= 1, "no program could run");
}
