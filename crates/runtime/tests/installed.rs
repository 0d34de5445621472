//! Prepares every module of the installed OTP and Elixir for loading.

use std::path::{Path, PathBuf};

fn beams(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for e in entries.flatten() {
        let p = e.path();
        match std::fs::metadata(&p) {
            Ok(m) if m.is_dir() => beams(&p, out),
            _ if p.extension().is_some_and(|x| x == "beam") => out.push(p),
            _ => {}
        }
    }
}

#[test]
fn all_installed_modules_can_be_prepared() {
    purlin_runtime::natives::install();
    purlin_term::region::init();
    let mut files = Vec::new();
    for root in ["/usr/lib/erlang", "/usr/lib/elixir"] {
        beams(Path::new(root), &mut files);
    }
    if files.is_empty() {
        println!("skipped: no OTP in /usr/lib");
        return;
    }
    let mut bad = Vec::new();
    for f in &files {
        let Ok(bytes) = std::fs::read(f) else {
            continue;
        };
        if let Err(e) = purlin_runtime::code::prepare(&bytes) {
            bad.push(format!("{}: {e}", f.display()));
        }
    }
    assert!(
        bad.is_empty(),
        "{} of {}:\n{}",
        bad.len(),
        files.len(),
        bad.join("\n")
    );
    println!("{} modules", files.len());
}

/// Every module has an image, which `make` compares with the code from the loader. A sample: each
/// module is lowered four times.
#[test]
fn installed_modules_have_images() {
    purlin_runtime::natives::install();
    let mut files = Vec::new();
    for root in ["/usr/lib/erlang", "/usr/lib/elixir"] {
        beams(Path::new(root), &mut files);
    }
    files.sort();
    for f in files.iter().step_by(9) {
        let Ok(bytes) = std::fs::read(f) else {
            continue;
        };
        let image = purlin_runtime::code::image::make(&bytes);
        assert!(image.is_some(), "{}", f.display());
    }
}

/// Damaged files end in an error or in code. No damaged byte causes a panic.
#[test]
fn damaged_modules_are_refused_or_prepared() {
    purlin_runtime::natives::install();
    purlin_term::region::init();
    let sound = include_bytes!("../../loader/tests/data/sample.beam");
    let mut prepared = 0;
    for i in 0..sound.len() {
        for change in [1u8, 0x10, 0x80, 0xFF] {
            let mut bytes = sound.to_vec();
            bytes[i] ^= change;
            prepared += usize::from(purlin_runtime::code::prepare(&bytes).is_ok());
        }
    }
    println!("{prepared} of {} still load", sound.len() * 4);
}
