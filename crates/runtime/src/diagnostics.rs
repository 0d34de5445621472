//! The door to what tells about the running system. The crate above provides it; here it is known by a trait.
//!
//! # Invariant
//! The runtime works without: who provides nothing gets no dumps, no answers to `purlin explain` and no menu on Ctrl-C.

use crate::options::EmulatorOptions;
use std::ffi::OsStr;
use std::io;
use std::sync::OnceLock;

/// Text of a crash dump goes here.
pub type Text = Vec<u8>;

/// Dumps, answers to those who observe from outside, and the menu that Ctrl-C opens.
pub trait Diagnostics: Sync {
    /// Sets aside what a crash dump needs. Before anything runs.
    fn prepare(&self);
    /// Begins to keep accounts and to answer requests. Before the schedulers start.
    fn start(&self, options: &EmulatorOptions);
    /// Whether a variable of the environment is meant for the diagnostics, and not for the program.
    fn takes_variable(&self, name: &OsStr) -> bool;
    /// Writes a crash dump, if the options allow one.
    fn crash_dump(&self, slogan: &str);
    /// Writes the general part of a crash dump.
    fn general(&self, to: &mut Text) -> io::Result<()>;
    /// Writes the processes of a crash dump.
    fn processes(&self, to: &mut Text) -> io::Result<()>;
    /// Ctrl-C was pressed. Called on the thread that handles signals.
    fn interrupted(&self);
}

static DIAGNOSTICS: OnceLock<&dyn Diagnostics> = OnceLock::new();

/// Those that [`crate::start`] was given.
pub fn diagnostics() -> Option<&'static dyn Diagnostics> {
    DIAGNOSTICS.get().copied()
}

/// Sets them, once.
pub(crate) fn set(d: &'static dyn Diagnostics) {
    let _ = DIAGNOSTICS.set(d);
}
