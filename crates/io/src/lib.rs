//! Input and output: ports and their drivers, sockets, files, gathering writes, packets, signals of the operating system.
//!
//! Knows no natives of data, no tables, and of tracing only what it tells.
#![warn(unsafe_op_in_unsafe_fn)]

pub mod blocking;
pub mod decode_packet;
pub mod gather;
mod here;
mod iovec;
pub(crate) mod os;
pub mod os_signals;
pub mod packet;
pub mod port;
pub mod prim_file;
pub mod prim_file_names;
pub mod prim_net;
pub mod prim_tty;
pub mod socket;
mod terminfo;

use purlin_kernel::{
    accounts, code, cx, events, filename, halt, msacc, options, osenv, poll, posix, process,
    report, signal, timer,
};
use purlin_native::bif::Bif;
use purlin_native::{bifs, lazy_atoms, native_state, reschedule};
use purlin_term::{iolist, sync};

/// The tables of natives here.
pub const TABLES: &[&[Bif]] = &[
    decode_packet::BIFS,
    iovec::BIFS,
    prim_file::BIFS,
    prim_file_names::BIFS,
    prim_net::BIFS,
    prim_tty::BIFS,
    socket::BIFS,
];
