//! Natives of the system as a whole: settings, statistics, memory, the operating system.

pub mod budget_natives;
pub mod halt;
pub mod limits;
pub mod memory;
pub mod os;
pub mod settings;
pub mod sharing;
pub mod statistics;
pub mod system_flag;
pub mod system_info;
pub mod system_monitor;

use purlin_native::bif::Bif;

/// The tables of natives in this folder.
pub const TABLES: &[&[Bif]] = &[
    budget_natives::BIFS,
    halt::BIFS,
    limits::BIFS,
    memory::BIFS,
    os::BIFS,
    settings::BIFS,
    sharing::BIFS,
    statistics::BIFS,
    system_flag::BIFS,
    system_info::BIFS,
    system_monitor::BIFS,
];
