//! Connections to other nodes: the table of nodes, the protocol, and the natives of both.
//!
//! ```text
//!   process ── signals.rs ──> Node (table.rs) ── send_queue.rs ──> port, or controlling process
//!   process <── ties ── input <── frame.rs <───────────────── port, or controlling process
//! ```
//! Names, cookies, the handshake and ticks are Erlang code of the installation (`net_kernel`,
//! `dist_util`, `inet_tcp_dist`). The code here begins where that code calls `erlang:setnode/3`.
//! `docs/nodes.md` gives the reasons for the design.

pub mod control;
pub mod distribution_natives;
pub mod flags;
pub mod frame;
mod full;
pub mod input;
pub mod observers;
pub mod send_queue;
mod share;
pub mod signals;
pub mod table;

use purlin_io::port;
use purlin_kernel::{clock, cx, events, options, process, report, signal};
use purlin_native::bif::Bif;
use purlin_native::{bifs, exports, ids, lazy_atoms};

/// The tables of natives in this crate.
pub const TABLES: &[&[Bif]] = &[distribution_natives::BIFS];
