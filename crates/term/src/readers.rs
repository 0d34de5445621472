//! The places in which threads announce the locks that they read ([`crate::sync::Readers`]).
//! Threads with a share have some ([`counts::take_share`]); others take the locks themselves.

use crate::counts::{self, SHARES};
use crate::sync::{Places, Readers};

static ALL: [Places; SHARES] = [const { Places::new() }; SHARES];

/// Returns all places, and the calling thread's.
#[inline]
pub fn readers() -> Readers<'static> {
    Readers {
        all: &ALL,
        taken: counts::shares_taken(),
        mine: counts::share().checked_sub(1).map(|i| &ALL[i]),
    }
}
