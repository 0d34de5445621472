//! The race finder: which schedules of a program are tried, how a failing one is shrunk, narrated,
//! written to a file and repeated.
//!
//! It knows operations as numbers and names, never terms or processes. The kernel tells the
//! [`Explorer`] before each visible operation, when processes become ready and end, and asks it
//! which process runs; the traits of [`kernel`] are what the explorer asks in return.
//!
//! From the bottom: [`operation`] and [`deviation`] are the words, [`base`] is the profile from
//! which [`strategy`] and [`plan`] make schedules, [`shrink`] reduces one. [`explorer`] steers one
//! run; `branch` and `run` fork runs; `search` drives them all, and `sweeping` those in which a
//! system call fails ([`failing`]). [`story`], `report` and [`file`] are what is left for people
//! and for replays, with [`log`] and [`recording`] for what came from outside. [`cluster`] is the
//! same for several emulators in one world.
//!
//! # Invariants
//! * No unsafe code: what needs the operating system's calls is behind [`kernel::System`].
//! * A seed decides everything: no hash key, address or clock has an influence on a schedule.

#![forbid(unsafe_code)]

pub mod account;
pub mod base;
mod branch;
mod checksum;
pub mod cluster;
pub mod deviation;
pub mod explorer;
pub mod failing;
pub mod file;
pub mod fingerprint;
pub mod fresh_dir;
pub mod hang;
mod json;
pub mod kernel;
pub mod log;
pub mod numbers;
pub mod operation;
pub mod output;
pub mod plan;
pub mod premises;
pub mod processes;
pub mod recording;
pub mod report;
pub mod request;
pub mod run;
pub mod sampling;
mod search;
pub mod shrink;
pub mod steps;
pub mod story;
pub mod strategy;
pub mod sweep;
mod sweeping;

pub use checksum::checksum;
pub use explorer::Explorer;
pub use request::Search;
