//! Natives of loaded code.

pub mod coverage;
pub mod loading;
pub mod quiescence;

use purlin_native::bif::Bif;

/// The tables of natives in this folder.
pub const TABLES: &[&[Bif]] = &[coverage::BIFS, loading::BIFS, quiescence::BIFS];
