//! `erts DIR`: makes a folder `erts-VERSION` for `include_erts` of `mix release` and relx, so that
//! a release is shipped with Purlin.
//!
//! It holds the programs of the installation's own folder, with Purlin in place of the one that
//! starts the emulator, no emulator, and the modules that stock preloads. A release copies only
//! `bin`, so these are in there, too.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use purlin_runtime::options::OtpInstall;
use purlin_runtime::options::otp::{PRELOADED, VERSION_FILE};

use super::{no_option, print};
use crate::context::Context;
use crate::failure::{Failure, cannot_make, missing_argument};

/// The program that starts an emulator: here it is Purlin.
const STARTER: &str = "erlexec";

/// Scripts for it. relx replaces the first with the second, which OTP 29 no longer has; not every
/// relx knows that.
const SCRIPTS: [&str; 2] = ["erl", "dyn_erl"];

/// A script, not a link: tools that copy a release follow links, and would copy the program twice.
const LAUNCHER: &str = "#!/bin/sh
self=$0
while [ -h \"$self\" ]; do
  to=$(readlink \"$self\")
  case $to in
    /*) self=$to ;;
    *) self=${self%/*}/$to ;;
  esac
done
case $self in
  */*) self=${self%/*} ;;
  *) self=. ;;
esac
BINDIR=$(cd \"$self\" && pwd -P) || exit 1
ROOTDIR=${BINDIR%/*/bin}
EMU=beam
PROGNAME=${0##*/}
export BINDIR ROOTDIR EMU PROGNAME
exec \"$BINDIR/erlexec\" ${1+\"$@\"}
";

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let [dir] = args else {
        return Err(missing_argument("erts needs a directory: purlin erts DIR"));
    };
    no_option("erts", dir)?;
    let otp = context.otp()?;
    let made = Path::new(dir).join(format!("erts-{}", otp.erts_version));
    let failed = |error: io::Error| {
        let made = made.display();
        cannot_make(format!("make {made}"), &error)
    };
    fs::create_dir_all(dir).map_err(failed)?;
    // Never overwrites a folder, which a release may be using.
    fs::create_dir(&made).map_err(failed)?;
    fill(&made.join("bin"), &otp).map_err(failed)?;
    print(&format!("{}\n", made.display()))?;
    Ok(0)
}

fn fill(bin: &Path, otp: &OtpInstall) -> io::Result<()> {
    let preloaded = bin.join(PRELOADED);
    fs::create_dir_all(&preloaded)?;
    for entry in fs::read_dir(&otp.bindir)?.flatten() {
        let name = entry.file_name();
        let emulator = name.to_string_lossy().starts_with("beam.");
        let replaced = name == STARTER || SCRIPTS.iter().any(|s| name == *s);
        if emulator || replaced || !entry.path().is_file() {
            continue;
        }
        fs::copy(entry.path(), bin.join(name))?;
    }
    for entry in fs::read_dir(otp.preloaded_dir())?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "beam") {
            fs::copy(&path, preloaded.join(entry.file_name()))?;
        }
    }
    fs::write(bin.join(VERSION_FILE), format!("{}\n", otp.version))?;
    write_program(&bin.join(STARTER), &own_program()?)?;
    for script in SCRIPTS {
        write_program(&bin.join(script), LAUNCHER.as_bytes())?;
    }
    Ok(())
}

/// This very program, without what only debuggers read.
pub fn own_program() -> io::Result<Vec<u8>> {
    let file = fs::read(crate::linker::executable()?)?;
    Ok(crate::elf::stripped(&file).unwrap_or(file))
}

fn write_program(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
