//! Exports symbols of the executable: those that native libraries look up, those that `gdb` reads
//! for the names of machine code, and no others.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=enif_*");
    for of_drivers in [
        "driver_*",
        "erl_drv_*",
        "erl_errno_id",
        "set_busy_port",
        "set_port_control_flags",
        "get_port_flags",
        "add_driver_entry",
        "remove_driver_entry",
        "null_func",
    ] {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={of_drivers}");
    }
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=__jit_debug_*");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=PURLIN_BUILD={}", build());
}

/// Returns the name of this build for replay files: the version, and the commit if the source is a
/// git checkout.
fn build() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match commit() {
        Some(commit) => format!("Purlin {version} ({commit})"),
        None => format!("Purlin {version}"),
    }
}

/// Returns what git prints, if it is there.
fn git(args: &[&str]) -> Option<String> {
    let out = std::process::Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let text = text.trim();
    (out.status.success() && !text.is_empty()).then(|| text.to_owned())
}

/// Returns the current commit, if this source is a checkout of its own and not part of another one.
/// The build is repeated when the commit changes.
fn commit() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let own = std::path::Path::new("../..").canonicalize().ok()?;
    if std::path::Path::new(&top).canonicalize().ok()? != own {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        let path = std::path::PathBuf::from(git(&["rev-parse", "--git-path", file])?);
        // A file that does not exist would repeat the build each time.
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}
