//! Signals: all effects of one process on another.
//!
//! # Order
//! Signals of one sender to one receiver arrive in the order in which they were sent, whatever
//! their kinds, since all go through one queue. There is no other way to affect another process.

pub mod bounds;
pub mod handle;
pub mod own_signals;
pub mod receive;
mod repeated;
pub mod send;
pub mod share;
pub mod suspend;
pub mod token;

pub use crate::message::{HEAD_WORDS, Kind, Sequel, Signal};
pub use crate::process::task::Task;
pub use send::{deliver, send, send_from, send_with};
