//! A directory in which a test runs `purlin`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A fresh directory, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// `None` if there is no OTP.
    pub fn new() -> Option<Scratch> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = format!("purlin-scratch-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        fs::create_dir_all(&dir).expect("makes a scratch directory");
        let scratch = Scratch(dir);
        let version = scratch.purlin(&["version"]);
        if !String::from_utf8_lossy(&version.stdout).contains("Erlang/OTP") {
            println!("skipped: no OTP");
            return None;
        }
        Some(scratch)
    }

    /// A command in this directory, without input.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    pub fn purlin(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("runs")
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("writes a file");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
