//! The page of `purlin observe`: a server on the loopback device for the browser of the user who
//! started it.
//!
//! [`target`] asks the observed emulator, [`server`] answers the browser, using
//! [`http`](purlin_diagnostics::http) and [`guard`]. The page itself is in the folder `page`: one
//! file with its styles and its script.
//!
//! # Invariants
//! * The emulator is asked only on a request of the page: without an open page, nothing is done.
//! * All input from the network is bounded: size and duration of a request, number of connections.

pub mod guard;
mod peer;
pub mod server;
pub mod target;
