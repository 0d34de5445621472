//! Input and output: ports and their drivers, sockets, files, gathering writes, packets, and
//! signals of the operating system.
//!
//! This crate knows no natives on data and no tables. Of tracing it knows only the events that it
//! reports.

pub mod blocking;
pub mod embedded;
pub mod file;
pub mod gather;
mod iovec;
pub mod net;
pub mod os;
pub mod port;
pub mod terminal;

pub use file::{prim_file, prim_file_names};
pub use net::{prim_net, socket};
pub use os::signals as os_signals;
pub use terminal::prim_tty;

use purlin_kernel::{
    accounts, clock, code, cx, events, filename, halt, msacc, options, osenv, poll, posix, process,
    report, signal, timer,
};
use purlin_native::bif::Bif;
use purlin_native::{bifs, lazy_atoms, native_state, reschedule};
use purlin_term::{iolist, sync};

/// The tables of natives in this crate.
pub const TABLES: &[&[Bif]] = &[
    net::decode_packet::BIFS,
    iovec::BIFS,
    prim_file::BIFS,
    prim_file_names::BIFS,
    prim_net::BIFS,
    prim_tty::BIFS,
    socket::BIFS,
];
