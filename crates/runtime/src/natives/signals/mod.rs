//! Natives that send signals: messages, links, monitors, exit signals; and aliases.

pub mod aliases;
pub mod exit_signals;
pub mod links;
pub mod monitors;
pub mod sending;

use purlin_native::bif::Bif;

/// The tables of natives in this folder.
pub const TABLES: &[&[Bif]] = &[
    aliases::BIFS,
    exit_signals::BIFS,
    links::BIFS,
    monitors::BIFS,
    sending::BIFS,
];
