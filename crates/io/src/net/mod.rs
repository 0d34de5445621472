//! The network: the drivers behind `gen_tcp` and `gen_udp` (`inet/`), the modules `prim_socket` and
//! `prim_net`, and packets.
//!
//! # Invariant
//! Nothing blocks: sockets are in non-blocking mode.

pub mod decode_packet;
pub mod inet;
pub mod packet;
pub mod prim_net;
pub mod socket;
