//! Natives of clocks and timers.

pub mod clocks;
pub mod timers;

use purlin_native::bif::Bif;

/// The tables of natives in this folder.
pub const TABLES: &[&[Bif]] = &[clocks::BIFS, timers::BIFS];
