//! Natives of processes.

pub mod ask;
pub mod current;
pub mod dictionary;
pub mod group_leader;
pub mod listing;
pub mod names;
pub mod option_terms;
pub mod process_flag;
pub mod process_info;
pub mod spawning;
pub mod suspension;
pub mod tasks;

use purlin_native::bif::Bif;

/// The tables of natives in this folder.
pub const TABLES: &[&[Bif]] = &[
    current::BIFS,
    dictionary::BIFS,
    group_leader::BIFS,
    listing::BIFS,
    names::BIFS,
    process_flag::BIFS,
    process_info::BIFS,
    spawning::BIFS,
    suspension::BIFS,
    tasks::BIFS,
];
