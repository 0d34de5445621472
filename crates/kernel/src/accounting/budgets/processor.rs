//! Limits of processor time: what the processes of a budget have used is paid off at the rate of
//! its share. Counts are those of several threads, so a budget may get a little more or less.

use super::row::NO_LIMIT;
use crate::clock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Nanoseconds within which a budget may use its share at once.
const PERIOD: i64 = 20_000_000;

/// A share of processor time: what the processes of a budget have used is paid off at the rate of
/// the share. While more than a [`PERIOD`] of it is owed, they do not run until all is paid.
pub(super) struct Share {
    /// Percentage of one processor; [`NO_LIMIT`] for none.
    pub(super) percent: AtomicI64,
    /// Nanoseconds owed, and the time at which this was computed.
    owed: AtomicI64,
    pub(super) at: AtomicI64,
    pub(super) waits: AtomicBool,
    /// Nanoseconds used since the budget was made, and how often it has had to wait.
    pub(super) used: AtomicI64,
    pub(super) waited: AtomicU64,
}

impl Share {
    pub(super) fn new() -> Share {
        Share {
            percent: AtomicI64::new(NO_LIMIT),
            owed: AtomicI64::new(0),
            at: AtomicI64::new(0),
            waits: AtomicBool::new(false),
            used: AtomicI64::new(0),
            waited: AtomicU64::new(0),
        }
    }
    pub(super) fn reset(&self) {
        self.percent.store(NO_LIMIT, Ordering::Relaxed);
        for n in [&self.owed, &self.at, &self.used] {
            n.store(0, Ordering::Relaxed);
        }
        self.waits.store(false, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
    }
    /// Pays off what is owed, as of now. Returns what is still owed, and the percentage; `None` if
    /// there is no limit.
    fn pay(&self) -> Option<(i64, i64)> {
        let percent = self.percent.load(Ordering::Relaxed);
        if percent == NO_LIMIT {
            return None;
        }
        let now = clock::elapsed();
        let past = (now - self.at.swap(now, Ordering::Relaxed)).max(0);
        let paid = past.saturating_mul(percent) / 100;
        let less = |n: i64| Some((n - paid).max(0));
        let before = self
            .owed
            .try_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let (Ok(before) | Err(before)) = before;
        Some(((before - paid).max(0), percent))
    }
    pub(super) fn charge(&self, nanoseconds: i64) {
        self.used.fetch_add(nanoseconds, Ordering::Relaxed);
        if let Some((owed, percent)) = self.pay() {
            self.owed.fetch_add(nanoseconds, Ordering::Relaxed);
            if owed + nanoseconds > PERIOD / 100 * percent
                && !self.waits.swap(true, Ordering::Relaxed)
            {
                self.waited.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    pub(super) fn has_to_wait(&self) -> bool {
        if !self.waits.load(Ordering::Relaxed) {
            return false;
        }
        let waits = self.pay().is_some_and(|(owed, _)| owed > 0);
        if !waits {
            self.waits.store(false, Ordering::Relaxed);
        }
        waits
    }
}
