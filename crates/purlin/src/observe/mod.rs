//! The page of `purlin observe`: a server on the loopback device, for the browser of the user who started it.
//!
//! [`target`] asks the emulator that is observed, [`server`] answers the browser, by [`http`] and [`guard`]. The page itself is in
//! the folder `page`: one file, with its styles and its script.
//!
//! # Invariants
//! * Nothing is asked of the emulator but by a request of the page: when none is open, nothing is done.
//! * All that comes from the network is bounded: bytes of a request, time for it, connections.

pub mod guard;
pub mod http;
mod peer;
pub mod server;
pub mod target;
