//! Term words and everything that a pointer bit can mean: layouts, heaps, the collector, regions,
//! atoms.
//!
//! This crate is one of the walls behind which `unsafe` lives. Its contract with other crates is in
//! [`word`] (what holding a term means), [`alloc`] (making terms moves nothing) and [`heap`] (who
//! may collect).

pub mod alloc;
pub mod am;
pub mod arith;
pub mod atom;
pub mod atom_collection;
pub(crate) mod atom_names;
pub(crate) mod atom_room;
pub mod background_free;
pub mod bin;
pub mod binary_blocks;
pub mod bits;
pub mod blocks;
pub mod compare;
pub mod copy;
pub mod counts;
pub mod definition;
pub mod delays;
pub mod ending;
pub mod errno;
pub mod etf;
pub mod fence;
pub mod frag;
pub mod fun;
pub mod gc;
pub mod graph;
pub mod hash;
pub mod heap;
pub mod heap_halves;
pub mod iolist;
pub mod layout;
pub mod magic;
pub mod map;
pub mod node;
pub mod off_heap;
pub mod packed;
pub mod parts;
pub mod payer;
pub mod plants;
pub mod prefetch;
pub mod prefix;
pub mod pressure;
pub mod preview;
pub mod print;
pub mod reach;
pub mod readers;
pub mod record;
pub mod refcount;
pub mod refusal;
pub mod region;
pub mod region_set;
pub mod release;
pub mod retaining_paths;
pub mod say;
pub mod sent_terms;
mod short_bytes;
pub mod small_blocks;
#[cfg(target_os = "linux")]
pub(crate) mod snapshot;
mod stress;
pub mod sync;
pub mod sys;
pub mod test_modes;
pub mod unassigned_ids;
pub mod verify;
pub mod word;

pub use alloc::Alloc;
pub use purlin_isa::cache_lines;
pub use word::{NIL, Term};
