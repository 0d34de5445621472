//! `elixir`, `elixirc`, `iex`, `mix`: runs the installation's own scripts with Purlin as their
//! `erl`.
//!
//! The installation is found from the `elixir` on `PATH`, through links and version managers; its
//! scripts are then run directly. If the user names an OTP that is not the one on `PATH`, an Elixir
//! beside it, which was compiled for it, comes first.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::become_program;
use crate::context::Context;
use crate::failure::{Failure, NO_INSTALLATION};
use crate::{find_otp, shims};
use purlin_messages as messages;

pub fn elixir(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    script(context, "elixir", args)
}

pub fn elixirc(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    script(context, "elixirc", args)
}

pub fn iex(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    script(context, "iex", args)
}

/// `mix` is a script for `elixir`.
pub fn mix(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let mix = installed_scripts(context)?.join("mix");
    let args: Vec<_> = std::iter::once(mix.into_os_string())
        .chain(args.iter().cloned())
        .collect();
    script(context, "elixir", &args)
}

/// Runs a script of the Elixir installation.
pub fn script(context: &Context, name: &str, args: &[OsString]) -> Result<u8, Failure> {
    let scripts = installed_scripts(context)?;
    let otp = context.otp()?;
    let mut environment = context.environment_for_children(&otp)?;
    // A project's own scripts may look for Elixir again, and must find the same one.
    let mut path = OsString::new();
    for (at, entry) in
        std::env::split_paths(environment.get("PATH").unwrap_or_default()).enumerate()
    {
        if at > 0 {
            path.push(":");
        }
        path.push(entry);
        if at == 0 {
            path.push(":");
            path.push(&scripts);
        }
    }
    environment.set("PATH", path);
    Err(become_program(&scripts.join(name), args, &environment.0))
}

/// The directory of Elixir's own modules, if its location is known.
pub fn library(context: &Context) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = || {
        let programs = find_otp::programs(&path, "elixir");
        programs.iter().find_map(|p| by_place(p))
    };
    let scripts = beside_named(context).or_else(on_path)?;
    Some(scripts.join("../lib/elixir/ebin"))
}

/// The directory of the applications of Elixir, if its location is known.
pub fn folder_of_applications(context: &Context) -> Option<PathBuf> {
    let library = library(context)?;
    Some(library.parent()?.parent()?.to_owned())
}

/// The directory of the installation's scripts.
pub fn installed_scripts(context: &Context) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = || {
        let programs = find_otp::programs(&path, "elixir");
        programs
            .iter()
            .find_map(|program| by_place(program).or_else(|| by_asking(program)))
    };
    beside_named(context).or_else(on_path).ok_or_else(|| {
        Failure::new(
            messages::NO_ELIXIR,
            NO_INSTALLATION,
            "no Elixir found on PATH; install it, for example with 'apt install elixir'",
        )
    })
}

/// The scripts in `PREFIX/lib/elixir/bin`, if the user names the OTP in `PREFIX/lib/erlang` and
/// `PATH` leads to another one.
fn beside_named(context: &Context) -> Option<PathBuf> {
    if !context.names_otp() {
        return None;
    }
    let root = fs::canonicalize(context.otp().ok()?.root).ok()?;
    let scripts = fs::canonicalize(root.parent()?.join("elixir/bin")).ok()?;
    let is_on_path = || {
        let found = find_otp::installed().and_then(|otp| fs::canonicalize(otp.root).ok());
        found.is_some_and(|found| found == root)
    };
    (is_installation(&scripts) && !is_on_path()).then_some(scripts)
}

/// The directory of a real `elixir`, with links resolved.
fn by_place(program: &Path) -> Option<PathBuf> {
    let scripts = fs::canonicalize(program).ok()?.parent()?.to_path_buf();
    is_installation(&scripts).then_some(scripts)
}

fn is_installation(scripts: &Path) -> bool {
    scripts.join("../lib/elixir/ebin/elixir.app").is_file() && scripts.join("elixir").is_file()
}

/// The scripts of the Elixir behind a version manager's shim, found by asking it for its libraries.
fn by_asking(program: &Path) -> Option<PathBuf> {
    let mut command = Command::new(program);
    command
        .args(["-e", "0"])
        .env("ELIXIR_CLI_DRY_RUN", "1")
        .env(find_otp::PROBE, "1");
    command.env_remove(shims::VARIABLE);
    let answer = find_otp::ask(command)?;
    answer.split(u8::is_ascii_whitespace).find_map(|word| {
        let library = Path::new(OsStr::from_bytes(word));
        // The library is `<root>/lib/elixir/ebin`, or `<root>/lib` after `-elixir_root`.
        let mut above = library.ancestors().take(4).filter_map(|root| {
            fs::canonicalize(root.join("bin"))
                .ok()
                .filter(|scripts| is_installation(scripts))
        });
        word.starts_with(b"/").then(|| above.next()).flatten()
    })
}
