//! An OTP installation on disk: its release, and the places of its parts.
//!
//! Everything that depends on the release is read from the installation; neither this file nor its
//! callers know a release by number.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use purlin_isa::release::KNOWN;

/// Folder of the preloaded modules, beside programs that were taken out of an installation.
pub const PRELOADED: &str = "preloaded";
/// File there with their version of OTP, `25.2.3`.
pub const VERSION_FILE: &str = "OTP_VERSION";

/// A readable OTP installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtpInstall {
    /// The value of `code:root_dir/0`.
    pub root: PathBuf,
    /// Number of the release, `25`.
    pub release: u32,
    /// Version of the whole, `25.2.3`, from the release's `OTP_VERSION` file; the release number if
    /// there is no such file.
    pub version: String,
    /// Version of its runtime system, `13.1.5`, as in the names of the `erts-…` directories.
    pub erts_version: String,
    /// `<root>/erts-…/bin`.
    pub bindir: PathBuf,
}

/// Why a directory is not a usable installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOtp {
    pub root: PathBuf,
    pub reason: String,
}

impl fmt::Display for NotOtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not an Erlang/OTP installation: {}",
            self.root.display(),
            self.reason
        )
    }
}

impl std::error::Error for NotOtp {}

impl OtpInstall {
    /// Reads the installation at `root`: `releases/start_erl.data` if it exists, otherwise the
    /// highest `erts-*` directory and the highest numbered directory in `releases`.
    pub fn open(root: &Path) -> Result<OtpInstall, NotOtp> {
        let fail = |reason: String| NotOtp {
            root: root.to_path_buf(),
            reason,
        };
        let releases = root.join("releases");
        let data = fs::read_to_string(releases.join("start_erl.data")).unwrap_or_default();
        let mut fields = data.split_ascii_whitespace().map(str::to_string);
        let erts_version = match fields.next() {
            Some(version) if root.join(format!("erts-{version}")).is_dir() => version,
            _ => highest(root, "erts-").ok_or_else(|| fail("it has no erts-* directory".into()))?,
        };
        let bindir = root.join(format!("erts-{erts_version}")).join("bin");
        // Beside programs that were taken out of an installation, for a release of a user's system.
        let full_version = fs::read_to_string(bindir.join(VERSION_FILE)).ok();
        let full_version = full_version.map(|text| text.trim().to_string());
        let numbered = |version: &str| {
            version.starts_with(|c: char| c.is_ascii_digit())
                && version.bytes().all(|b| b.is_ascii_graphic())
        };
        let major = |version: &str| version.split('.').next()?.parse().ok();
        // A release of a user's system has any name, so the number may have to be searched for.
        let named = fields.next().and_then(|name| name.parse().ok());
        let release: u32 = match full_version.as_deref().and_then(major).or(named) {
            Some(number) => number,
            None => highest(&releases, "")
                .and_then(|name| major(&name))
                .ok_or_else(|| fail("it has no releases/NN directory".into()))?,
        };
        let file = match full_version {
            Some(_) => bindir.join(VERSION_FILE),
            None => releases.join(release.to_string()).join(VERSION_FILE),
        };
        let version = full_version.unwrap_or_else(|| match fs::read(&file) {
            Ok(text) => String::from_utf8_lossy(&text).trim().to_string(),
            Err(_) => release.to_string(),
        });
        if !numbered(&version) {
            return Err(fail(format!("{} holds no version", file.display())));
        }
        let otp = OtpInstall {
            root: root.to_path_buf(),
            release,
            version,
            erts_version,
            bindir,
        };
        if !KNOWN.contains(&release) {
            let (first, last) = (KNOWN.start(), KNOWN.end());
            let text = format!(
                "its release is {}, and those known are {first} to {last}",
                otp.version
            );
            return Err(fail(text));
        }
        for module in ["init", "erl_init", "erlang"] {
            let dir = otp.preloaded_dir();
            if !dir.join(format!("{module}.beam")).is_file() {
                return Err(fail(format!("{} has no {module}.beam", dir.display())));
            }
        }
        for library in ["kernel-", "stdlib-"] {
            if highest(&root.join("lib"), library).is_none() {
                return Err(fail(format!("it has no lib/{library}* directory")));
            }
        }
        Ok(otp)
    }

    /// Returns the directory of the modules that are loaded before any code server runs.
    pub fn preloaded_dir(&self) -> PathBuf {
        let beside = self.bindir.join(PRELOADED);
        if beside.is_dir() {
            return beside;
        }
        self.root
            .join("lib")
            .join(format!("erts-{}", self.erts_version))
            .join("ebin")
    }
}

/// Finds the entry of `dir` that starts with `prefix`, continues with a version number, and has the
/// highest one. Returns the rest of its name.
fn highest(dir: &Path, prefix: &str) -> Option<String> {
    let versions = fs::read_dir(dir).ok()?.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let version = name.strip_prefix(prefix)?.to_string();
        let key: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
        Some((key?, version))
    });
    versions.max().map(|(_, version)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_installation() {
        let root = std::env::temp_dir().join(format!("purlin-otp-{}", std::process::id()));
        let make = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("has a parent")).expect("makes a directory");
            fs::write(path, text).expect("writes a file");
        };
        make("erts-9.3/bin/erlexec", "");
        assert!(OtpInstall::open(&root).is_err());
        make("erts-13.1.5/bin/erlexec", "");
        for module in ["init", "erl_init", "erlang"] {
            make(&format!("lib/erts-13.1.5/ebin/{module}.beam"), "");
        }
        make("lib/kernel-8.5/ebin/kernel.app", "");
        assert!(OtpInstall::open(&root).is_err());
        make("lib/stdlib-4.2/ebin/stdlib.app", "");
        make("releases/25/OTP_VERSION", "25.2.3\n");
        make("releases/24/OTP_VERSION", "24.3\n");
        let otp = OtpInstall::open(&root).expect("found by its directories");
        assert_eq!((otp.release, otp.version.as_str()), (25, "25.2.3"));
        assert_eq!(otp.erts_version, "13.1.5");
        for damaged in ["", "twenty-five", "25.2\n.3", "25 \x1b[31m"] {
            make("releases/25/OTP_VERSION", damaged);
            let error = OtpInstall::open(&root)
                .expect_err("has no version")
                .to_string();
            assert!(error.ends_with("releases/25/OTP_VERSION holds no version"));
        }
        make("releases/start_erl.data", "13.1.5 24");
        let otp = OtpInstall::open(&root).expect("found by its data file");
        assert_eq!((otp.release, otp.version.as_str()), (24, "24.3"));
        make("releases/start_erl.data", "13.1.5 99");
        let error = OtpInstall::open(&root).expect_err("is not known");
        assert!(
            error
                .to_string()
                .contains("its release is 99, and those known")
        );
        fs::remove_dir_all(&root).expect("cleans up");
        let error = OtpInstall::open(&root).expect_err("is gone");
        assert!(
            error
                .to_string()
                .contains("is not an Erlang/OTP installation")
        );
    }
}
