//! POS: partial order sampling.
//!
//! Yuan, Yang, Gu: Partial order aware concurrency sampling, CAV 2018. Each operation has a
//! priority of its own. After an operation, those that race with it draw new ones. Its bound on the
//! chance of finding an order is exponentially better than that of a random walk.
//!
//! # Invariant
//! An operation keeps its priority until it is done, or an operation that races with it is done.

use super::interface::{Sampler, draw_priority};
use crate::numbers::Numbers;
use crate::operation::Touch;

pub(super) struct Pos;

impl Sampler for Pos {
    fn priority(&mut self, _: u64, _: &Touch, _: u32, numbers: &mut Numbers) -> Option<u64> {
        Some(draw_priority(numbers))
    }

    fn redraws_after(&self, pending: &Touch, done: &Touch) -> bool {
        pending.races(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racing_operations_draw_again() {
        let on = |object| Touch::end(object);
        assert!(Pos.redraws_after(&on(3), &on(3)));
        assert!(!Pos.redraws_after(&on(3), &on(4)));
    }
}
