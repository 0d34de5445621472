//! Releases of OTP: the machine's own, and those that `scripts/roots.sh` has fetched.

use crate::environment::{Settings, root};
use std::path::PathBuf;

/// A release of OTP.
#[derive(Clone)]
pub struct Otp {
    /// `machine`, or the name of its root, such as `otp27`.
    pub name: String,
    /// Its root, unless it is the machine's own.
    pub root: Option<PathBuf>,
}

impl Otp {
    /// The release of that name: the machine's own, or that of a root in `ROOTS`.
    pub fn named(settings: &Settings, name: &str) -> Result<Otp, String> {
        let name = name.to_string();
        if name == "machine" {
            return Ok(Otp { name, root: None });
        }
        let root = roots(settings).join(&name);
        if !root.join("bin/erl").exists() {
            let root = root.display();
            return Err(format!(
                "{root} has no bin/erl: scripts/roots.sh makes such roots"
            ));
        }
        let root = std::fs::canonicalize(&root).unwrap_or(root);
        Ok(Otp {
            name,
            root: Some(root),
        })
    }

    /// The settings with which programs run on this release.
    pub fn settings(&self, settings: &Settings) -> Settings {
        let mut own = settings.clone();
        if let Some(root) = &self.root {
            let path = settings.get("PATH").unwrap_or_default();
            own.set("PATH", &format!("{}:{path}", root.join("bin").display()));
            let otp = root.join("usr/lib/erlang");
            own.set("PURLIN_OTP_ROOT", &otp.display().to_string());
        }
        own
    }
}

/// The folder of roots.
pub fn roots(settings: &Settings) -> PathBuf {
    settings.path("ROOTS", root().join("target/roots"))
}
