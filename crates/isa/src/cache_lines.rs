//! Cache lines, and the alignment of what threads write beside each other. No other file has these
//! numbers.

/// Number of bytes of a cache line.
pub const CACHE_LINE: usize = align_of::<OneLine>();

/// Aligns the type that has it as a field to a cache line, and takes no room.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(
    not(all(target_arch = "aarch64", target_vendor = "apple")),
    repr(align(64))
)]
#[cfg_attr(
    all(target_arch = "aarch64", target_vendor = "apple"),
    repr(align(128))
)]
pub struct OneLine;

/// Aligns the type that has it as a field to two lines of 64 bytes, which x86-64 processors fetch
/// together, or to one of 128. It takes no room.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(128))]
pub struct TwoLines;

const _: () = assert!(size_of::<OneLine>() == 0 && size_of::<TwoLines>() == 0);
