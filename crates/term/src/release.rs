//! The release of OTP whose behaviour is followed, as far as terms and natives depend on it: see
//! the table in crate `isa`.

pub use purlin_isa::release::*;
use std::sync::atomic::{AtomicU32, Ordering};

static CURRENT: AtomicU32 = AtomicU32::new(ASSUMED);

/// Sets the release, and makes the atoms that its emulator begins with. Called before there are any
/// terms.
pub fn settle(release: u32) {
    CURRENT.store(release, Ordering::Relaxed);
    if has(MAP_KEYS_BY_NUMBER) {
        crate::atom::make_first(purlin_isa::release::first_atoms(release));
    }
}

/// Whether the release has the feature.
#[inline(always)]
pub fn has(feature: Feature) -> bool {
    feature.is_in(CURRENT.load(Ordering::Relaxed))
}
