//! Diagnostics of a running system: crash dumps, the menu on Ctrl-C, metrics, what collectors get,
//! the record of the last minute, and the answers to `purlin explain` and `purlin observe`.
//!
//! # Invariant
//! Diagnostics read, and change nothing in the program. The runtime knows this crate only as
//! [`purlin_runtime::diagnostics::Diagnostics`].

mod break_handler;
mod crash_dump;
pub mod explain;
mod fnv;
pub mod http;
pub mod json;
mod metrics;
mod observe;
mod otlp;
pub mod protobuf;
pub mod recorder;

use purlin_kernel::options;
use purlin_messages as messages;
use purlin_runtime::diagnostics::{Diagnostics, Text};
use std::ffi::OsStr;
use std::io;

/// The diagnostics to pass to [`purlin_runtime::start`].
pub static ALL: &dyn Diagnostics = &All;

struct All;

impl Diagnostics for All {
    fn prepare(&self) {
        crash_dump::reserve();
    }
    fn start(&self, options: &options::EmulatorOptions) {
        observe::start();
        explain::start(&options.flags.purlin);
        metrics::start(options).unwrap_or_else(|why| {
            purlin_term::say!("{}", messages::METRICS_NOT_SERVED.line(why));
            std::process::exit(1)
        });
        otlp::start(options);
        recorder::start(options);
    }
    fn takes_variable(&self, name: &OsStr) -> bool {
        explain::takes(name)
    }
    fn crash_dump(&self, slogan: &str) {
        crash_dump::write(slogan);
    }
    fn general(&self, to: &mut Text) -> io::Result<()> {
        crash_dump::info(to)
    }
    fn processes(&self, to: &mut Text) -> io::Result<()> {
        crash_dump::processes(to)
    }
    fn interrupted(&self) {
        break_handler::requested();
    }
}
