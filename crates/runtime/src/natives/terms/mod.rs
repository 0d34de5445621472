//! Natives that inspect terms, and that make identifiers from text.

pub mod identifiers;
pub mod inspect;

use purlin_native::bif::Bif;

/// The tables of natives in this folder.
pub const TABLES: &[&[Bif]] = &[identifiers::BIFS, inspect::BIFS];
