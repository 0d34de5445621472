//! State shared by all commands: how Purlin was called, and where OTP is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use purlin_runtime::options::OtpInstall;
use purlin_runtime::options::erlexec::Environment;

use crate::failure::Failure;
use crate::{find_otp, shims};

#[derive(Clone)]
pub struct Context {
    otp_root: Option<PathBuf>,
    /// The name by which the command was called, as a stock tool sees it in `argv[0]`.
    pub invoked_as: OsString,
}

impl Context {
    pub fn new(otp_root: Option<PathBuf>, invoked_as: OsString) -> Context {
        Context {
            otp_root,
            invoked_as,
        }
    }

    /// The installation named on the command line.
    pub fn otp_root(&self) -> Option<&Path> {
        self.otp_root.as_deref()
    }

    /// Whether the user has named an installation.
    pub fn names_otp(&self) -> bool {
        self.otp_root.is_some()
            || std::env::var_os(find_otp::VARIABLE).is_some_and(|root| !root.is_empty())
    }

    /// The OTP installation to use.
    pub fn otp(&self) -> Result<OtpInstall, Failure> {
        find_otp::find(self.otp_root.as_deref())
    }

    /// The environment of this process, with Purlin's links first on `PATH` and the chosen OTP
    /// named, so that programs started with it use the same Purlin and the same OTP.
    pub fn environment_for_children(&self, otp: &OtpInstall) -> Result<Environment, Failure> {
        let mut environment = Environment::of_process();
        let shims = shims::directory()?;
        let path = shims::first_on_path(&shims, environment.get("PATH"));
        environment.set("PATH", path);
        environment.set(shims::VARIABLE, shims);
        environment.set(find_otp::VARIABLE, otp.root.as_os_str());
        Ok(environment)
    }
}
