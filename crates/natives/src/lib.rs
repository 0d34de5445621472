//! Natives that only compute: on terms, bytes, numbers and values behind magic references.
//!
//! This crate knows no process, no loaded code, no port and no table.

pub mod atom_makers;
pub mod atomics;
pub mod binary;
pub mod checksum;
pub mod convert;
pub mod ext_term;
pub mod funs;
pub mod identifiers;
pub mod iolist;
pub mod lists;
pub mod maps;
pub mod math;
pub mod operators;
pub mod prim_buffer;
pub mod re;
mod re_syntax;
pub mod records;
pub mod tuples;
pub mod types;
pub mod unicode;
mod zlib;
mod zstd;

use purlin_native::bif::Bif;
use purlin_native::{
    bif, bifs, cx, errors, exports, ids, lazy_atoms, long, native_state, reschedule,
};

/// The tables of natives of this crate.
pub const TABLES: &[&[Bif]] = &[
    atomics::BIFS,
    binary::BIFS,
    checksum::BIFS,
    convert::BIFS,
    ext_term::BIFS,
    funs::BIFS,
    identifiers::BIFS,
    iolist::BIFS,
    lists::BIFS,
    reschedule::BIFS,
    maps::BIFS,
    math::BIFS,
    operators::BIFS,
    prim_buffer::BIFS,
    re::BIFS,
    records::BIFS,
    tuples::BIFS,
    types::BIFS,
    unicode::BIFS,
    zlib::BIFS,
    zstd::BIFS,
];
