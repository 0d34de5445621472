//! The external term format: the one codec for literals, files, ports, distribution and
//! `term_to_binary`.
//!
//! The format's facts are those of the "External Term Format" chapter of the ERTS user's guide.
//! Input is hostile: every length is checked against the bytes that are left before anything is
//! allocated for it, nothing recurses, and both directions can stop after a budget of terms and
//! continue later.

pub mod aliases;
pub mod decode;
pub mod encode;

pub use decode::{DecodeError, Decoder, Hooks, NoHooks, Options, decode};
pub use encode::{Encoder, encode, external_size};

static NOTES: std::sync::OnceLock<fn(crate::Term)> = std::sync::OnceLock::new();

/// Sets a function that is called with each local pid that is encoded. Only the first call counts.
pub fn on_pid(f: fn(crate::Term)) {
    let _ = NOTES.set(f);
}

/// Notes that a local pid is encoded.
#[inline]
fn pid_leaves(pid: crate::Term) {
    if let Some(f) = NOTES.get() {
        f(pid);
    }
}

/// First byte of every external term.
pub const VERSION: u8 = 131;

/// Tags of the format.
#[allow(missing_docs)]
pub mod tag {
    pub const RECORD: u8 = 67;
    pub const BIT_BINARY: u8 = 77;
    pub const NEW_FLOAT: u8 = 70;
    pub const COMPRESSED: u8 = 80;
    pub const ATOM_CACHE_REF: u8 = 82;
    pub const NEW_PID: u8 = 88;
    pub const NEW_PORT: u8 = 89;
    pub const NEWER_REFERENCE: u8 = 90;
    pub const SMALL_INTEGER: u8 = 97;
    pub const INTEGER: u8 = 98;
    pub const FLOAT: u8 = 99;
    pub const ATOM: u8 = 100;
    pub const REFERENCE: u8 = 101;
    pub const PORT: u8 = 102;
    pub const PID: u8 = 103;
    pub const SMALL_TUPLE: u8 = 104;
    pub const LARGE_TUPLE: u8 = 105;
    pub const NIL: u8 = 106;
    pub const STRING: u8 = 107;
    pub const LIST: u8 = 108;
    pub const BINARY: u8 = 109;
    pub const SMALL_BIG: u8 = 110;
    pub const LARGE_BIG: u8 = 111;
    pub const NEW_FUN: u8 = 112;
    pub const EXPORT: u8 = 113;
    pub const NEW_REFERENCE: u8 = 114;
    pub const SMALL_ATOM: u8 = 115;
    pub const MAP: u8 = 116;
    pub const ATOM_UTF8: u8 = 118;
    pub const SMALL_ATOM_UTF8: u8 = 119;
    pub const V4_PORT: u8 = 120;
    pub const LOCAL: u8 = 121;
}

/// The hash in the head of a term that was encoded for this runtime only: no other runtime computes
/// the same hash of these bytes.
fn local_hash(bytes: &[u8]) -> u32 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
    static KEY: std::sync::OnceLock<RandomState> = std::sync::OnceLock::new();
    if LOCAL_IS_FIXED.load(std::sync::atomic::Ordering::Relaxed) {
        return BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes) as u32;
    }
    KEY.get_or_init(RandomState::new).hash_one(bytes) as u32
}

static LOCAL_IS_FIXED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Makes the bytes of terms encoded for this runtime only the same in every runtime, for runs that
/// are to be repeated.
pub fn fix_local() {
    LOCAL_IS_FIXED.store(true, std::sync::atomic::Ordering::Relaxed);
}
