//! The table of drivers by name.

use super::driver::{Start, Starter};
use super::{trace_file, trace_ip};
use crate::file::ram_file;
use crate::net::inet::{tcp, udp};
use crate::terminal::tty;
use std::sync::OnceLock;

/// The function that finds drivers that were loaded from files.
static LOADED: OnceLock<fn(&[u8]) -> Option<Starter>> = OnceLock::new();

/// Sets the function that finds loaded drivers by the text behind `spawn`. Only the first call
/// counts.
pub fn set_loaded(find: fn(&[u8]) -> Option<Starter>) {
    let _ = LOADED.set(find);
}

/// The drivers that `{spawn, Name}` and `{spawn_driver, Name}` find by the first word of the name.
const DRIVERS: &[(&str, Start)] = &[
    ("tty_sl", tty::start),
    (tcp::NAME, tcp::start),
    (udp::NAME, udp::start),
    (ram_file::NAME, ram_file::start),
    (trace_file::NAME, trace_file::start),
    (trace_ip::NAME, trace_ip::start),
];

/// Names of all drivers.
pub fn names() -> impl Iterator<Item = &'static str> {
    DRIVERS.iter().map(|d| d.0)
}

/// Finds the starter of the driver that a command names.
pub(crate) fn find(command: &[u8]) -> Option<Starter> {
    let name = command.split(|&b| b == b' ').next().unwrap_or_default();
    match DRIVERS.iter().find(|d| d.0.as_bytes() == name) {
        Some(d) => Some(Box::new(d.1)),
        None => LOADED.get().and_then(|f| f(command)),
    }
}
