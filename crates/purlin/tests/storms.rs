//! A minute of `make storms` ([docs/storms.md](../../../docs/storms.md)): each storm runs for some
//! seconds, with delays where locks are released. In builds with debug assertions faults are
//! planted, too, which the storms must find.

use std::sync::Mutex;
use xtask::storms::storm;
use xtask::{Settings, root};

/// The names of the storms.
fn storms() -> Vec<String> {
    let files = std::fs::read_dir(root().join("tests/storms")).expect("tests/storms is there");
    let mut names: Vec<String> = files
        .filter_map(|f| f.ok()?.file_name().into_string().ok())
        .filter_map(|n| Some(n.strip_suffix(".erl")?.to_owned()))
        .filter(|n| n.starts_with("storm_"))
        .collect();
    names.sort();
    names
}

/// Runs storms for that many seconds, with these settings. Returns the status and the output.
fn run(seconds: u32, settings: &[(&str, &str)]) -> (i32, String) {
    let mut all = Settings::of_environment();
    all.set("PURLIN", env!("CARGO_BIN_EXE_purlin"));
    all.set("RELEASES", "machine");
    all.set("DELAYS", "always");
    settings
        .iter()
        .for_each(|(name, value)| all.set(name, value));
    let output = Mutex::new(Vec::new());
    let status = storm(&all, &[seconds.to_string()], &output).expect("storms run");
    let output = output.into_inner().expect("no panic");
    (status, String::from_utf8_lossy(&output).into_owned())
}

/// The number of runs, from the last line.
fn runs(text: &str) -> usize {
    let last = text.lines().rev().find(|l| l.contains(" runs, "));
    last.and_then(|l| l.split(' ').next()?.parse().ok())
        .unwrap_or(0)
}

#[test]
fn storms_find_nothing() {
    let names = storms();
    assert!(names.len() >= 8, "{names:?}");
    // Two at once, of some seconds each.
    let (status, text) = run(20, &[("EACH", "6"), ("JOBS", "2"), ("ALL", "1")]);
    assert_eq!(status, 0, "{text}");
    assert!(runs(&text) >= names.len(), "{text}");
}

/// A planted fault, and the storm that finds it.
#[cfg(debug_assertions)]
const PLANTED: &[(&str, &str, &str)] = &[
    (
        "name_stays",
        "storm_names",
        "the name of a process that has ended",
    ),
    ("down_twice", "storm_monitors", "twice"),
    ("heir_loses", "storm_tables", "objects lost"),
    ("port_drops", "storm_ports", ""),
    ("cancel_lies", "storm_timers", ""),
    ("write_spoils", "storm_files", ""),
];

#[cfg(debug_assertions)]
#[test]
fn storms_find_faults_that_are_planted() {
    for (plant, storm, says) in PLANTED {
        let settings = [("PURLIN_PLANT", *plant), ("ONLY", *storm), ("SEED", "1")];
        let (status, text) = run(30, &settings);
        assert_eq!(status, 1, "{plant}: {text}");
        // It is reported with the command that runs it again.
        let line = text.lines().find(|l| l.contains("cargo xtask storms"));
        let line = line.unwrap_or_else(|| panic!("{plant}: {text}"));
        assert!(
            line.contains("FAULT") && line.contains("SEED=1 "),
            "{plant}: {line}"
        );
        assert!(text.contains(says), "{plant}: {text}");
        println!("{plant}: {line}");
    }
}
