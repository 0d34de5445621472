//! Faults that are planted, to see that what looks for faults finds them (`docs/storms.md`).
//! `PURLIN_PLANT=NAME` has builds with debug assertions do wrong, now and then, what the row of
//! that name says. Other builds have none of it.

/// What may be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// A process that ends keeps its name.
    NameStays,
    /// A monitor that has fired is there still, and fires again.
    DownTwice,
    /// An heir gets a table without its objects.
    HeirLoses,
    /// What a port has read is lost.
    PortDrops,
    /// A timer is said to be cancelled, and fires.
    CancelLies,
    /// The last byte of what is written at a position becomes zero.
    WriteSpoils,
}

/// What each is called in `PURLIN_PLANT`.
pub const NAMES: &[(&str, Plant)] = &[
    ("name_stays", Plant::NameStays),
    ("down_twice", Plant::DownTwice),
    ("heir_loses", Plant::HeirLoses),
    ("port_drops", Plant::PortDrops),
    ("cancel_lies", Plant::CancelLies),
    ("write_spoils", Plant::WriteSpoils),
];

/// Whether that is planted, and is to happen now, which is so once in `n` times.
#[cfg(debug_assertions)]
pub fn due(what: Plant, n: u64) -> bool {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static PLANTED: OnceLock<Option<Plant>> = OnceLock::new();
    static TIMES: AtomicU64 = AtomicU64::new(0);
    let planted = *PLANTED.get_or_init(|| {
        let name = std::env::var("PURLIN_PLANT").ok()?;
        Some(NAMES.iter().find(|(n, _)| *n == name)?.1)
    });
    planted == Some(what) && TIMES.fetch_add(1, Ordering::Relaxed) % n == n - 1
}

/// Nothing is planted in this build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn due(_: Plant, _: u64) -> bool {
    false
}
