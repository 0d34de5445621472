//! Planted faults, to check that fault-finding tools find them (`docs/storms.md`).
//! `PURLIN_PLANT=NAME` makes builds with debug assertions misbehave now and then as the row of that
//! name says. Other builds have none of it.

/// Faults that may be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// A process that ends keeps its name.
    NameStays,
    /// A monitor that has fired stays, and fires again.
    DownTwice,
    /// An heir gets a table without its objects.
    HeirLoses,
    /// Data that a port has read is lost.
    PortDrops,
    /// A timer is reported as cancelled, and fires.
    CancelLies,
    /// The last byte written at a position becomes zero.
    WriteSpoils,
}

/// Names of the faults in `PURLIN_PLANT`.
pub const NAMES: &[(&str, Plant)] = &[
    ("name_stays", Plant::NameStays),
    ("down_twice", Plant::DownTwice),
    ("heir_loses", Plant::HeirLoses),
    ("port_drops", Plant::PortDrops),
    ("cancel_lies", Plant::CancelLies),
    ("write_spoils", Plant::WriteSpoils),
];

/// Whether the fault is planted and due now, which is once in `n` calls.
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
