//! A random walk: any process may run, before each operation.
//!
//! It finds nearly as many bugs as PCT on small programs (Thomson, Donaldson, Betts: Concurrency
//! testing using controlled schedulers, TOPC 2016), and is biased towards orders with few
//! operations.
//!
//! # Invariant
//! Each waiting process has the same chance at each operation, whatever it did before.

use super::interface::{Sampler, draw_priority};
use crate::numbers::Numbers;
use crate::operation::Touch;

pub(super) struct Walk;

impl Sampler for Walk {
    fn priority(&mut self, _: u64, _: &Touch, _: u32, numbers: &mut Numbers) -> Option<u64> {
        Some(draw_priority(numbers))
    }

    fn redraws_all(&self) -> bool {
        true
    }
}
