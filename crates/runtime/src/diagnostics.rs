//! The interface to the diagnostics of the running system, which the crate above implements.
//!
//! # Invariant
//! The runtime works without diagnostics: there are then no dumps, no answers to `purlin explain`
//! and no menu on Ctrl-C.

use crate::options::EmulatorOptions;
use std::ffi::OsStr;
use std::io;
use std::sync::OnceLock;

/// The text of a crash dump, as far as it is written.
pub type Text = Vec<u8>;

/// Crash dumps, answers to observers outside the emulator, and the menu on Ctrl-C.
pub trait Diagnostics: Sync {
    /// Reserves what a crash dump needs. Called before anything runs.
    fn prepare(&self);
    /// Starts to keep accounts and to answer requests. Called before the schedulers start.
    fn start(&self, options: &EmulatorOptions);
    /// Whether an environment variable is meant for the diagnostics and not for the program.
    fn takes_variable(&self, name: &OsStr) -> bool;
    /// Writes a crash dump, if the options allow one.
    fn crash_dump(&self, slogan: &str);
    /// Writes the general part of a crash dump.
    fn general(&self, to: &mut Text) -> io::Result<()>;
    /// Writes the processes of a crash dump.
    fn processes(&self, to: &mut Text) -> io::Result<()>;
    /// Handles Ctrl-C, on the thread that handles signals.
    fn interrupted(&self);
}

static DIAGNOSTICS: OnceLock<&dyn Diagnostics> = OnceLock::new();

/// The diagnostics passed to [`crate::start`].
pub fn diagnostics() -> Option<&'static dyn Diagnostics> {
    DIAGNOSTICS.get().copied()
}

/// Sets the diagnostics, once.
pub(crate) fn set(d: &'static dyn Diagnostics) {
    let _ = DIAGNOSTICS.set(d);
}
