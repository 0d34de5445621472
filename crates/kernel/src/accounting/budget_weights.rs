//! Weights of budgets: how siblings divide processor time while it is scarce, as by `cpu.weight` of
//! a control group.
//!
//! # Clocks
//! A budget has a clock, which advances by the processor time of its processes, times 100 over its
//! weight. Siblings that are active have a common clock: where theirs would be if each had its
//! exact share. It advances by the time that all of them use, times 100 over the sum of their
//! weights, and is corrected by their clocks every [`SWEEP`]. A budget that is more than
//! [`LEAD`] ahead of it gives way until it is no longer ahead. It does so only while other
//! processes wait for a scheduler: no processor is idle for the sake of a weight.
//!
//! A budget is active while its processes run, and for [`ACTIVE`] afterwards. One that becomes
//! active begins at the common clock, so no budget saves up time.
//!
//! Until the first weight is set, no clock advances.

use crate::clock;
use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The weight of a budget for which none is set.
pub const DEFAULT: i64 = 100;
/// Nanoseconds of processor time by which a budget may be ahead.
const LEAD: i64 = 5_000_000;
/// Nanoseconds of processor time by which a budget may be behind: what it has missed beyond that is
/// lost.
const LAG: i64 = 50_000_000;
/// Nanoseconds after its last time slice in which a budget counts as active.
const ACTIVE: i64 = 50_000_000;
/// Nanoseconds after which a budget gets a time slice whatever the others have had, since their
/// clocks advance only while they run.
const MOST_HELD: i64 = 500_000_000;
/// Nanoseconds between two computations of the common clocks.
const SWEEP: i64 = 4_000_000;

/// Whether a weight has ever been set.
static ON: AtomicBool = AtomicBool::new(false);
/// The common clock of the budgets below the root.
pub static BELOW_ROOT: Common = Common::new();
/// The active budgets, each with the common clock of its siblings.
static ACTIVE_ONES: Mutex<Vec<(&Weighted, &Common)>> = Mutex::new(Vec::new());
/// Time of the last sweep.
static SWEPT: AtomicI64 = AtomicI64::new(0);

/// Whether weights are in use.
#[inline]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The common clock of the children of a budget.
pub struct Common {
    clock: AtomicI64,
    /// Sum of the weights of those that are active.
    weights: AtomicI64,
}

impl Common {
    const fn new() -> Common {
        Common {
            clock: AtomicI64::new(0),
            weights: AtomicI64::new(0),
        }
    }
}

/// The state of a budget.
pub struct Weighted {
    weight: AtomicI64,
    clock: AtomicI64,
    /// End of its last time slice.
    last: AtomicI64,
    active: AtomicBool,
    /// Whether it has used up a limit of its own.
    capped: AtomicBool,
    waits: AtomicBool,
    pub children: Common,
}

impl Default for Weighted {
    fn default() -> Weighted {
        Weighted {
            weight: AtomicI64::new(DEFAULT),
            clock: AtomicI64::new(0),
            last: AtomicI64::new(0),
            active: AtomicBool::new(false),
            capped: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            children: Common::new(),
        }
    }
}

impl Weighted {
    /// Prepares the state for another budget of the row.
    pub fn reset(&self) {
        self.weight.store(DEFAULT, Ordering::Relaxed);
        self.waits.store(false, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
    }
    pub fn weight(&self) -> i64 {
        self.weight.load(Ordering::Relaxed)
    }
    pub fn set(&self, weight: i64) {
        self.weight.store(weight.max(1), Ordering::Relaxed);
        ON.store(true, Ordering::Relaxed);
    }
    /// Nanoseconds of processor time by which it is ahead of the common clock.
    fn lead(&self, common: i64) -> i64 {
        let ahead = self.clock.load(Ordering::Relaxed) - common;
        ahead.saturating_mul(self.weight()) / DEFAULT
    }
    /// Whether its processes give way to others, if others wait. `siblings` is their common clock.
    pub fn gives_way(&self, siblings: &Common) -> bool {
        if !self.waits.load(Ordering::Relaxed) {
            return false;
        }
        let held = clock::elapsed() - self.last.load(Ordering::Relaxed);
        let ahead = self.lead(siblings.clock.load(Ordering::Relaxed)) > 0 && held < MOST_HELD;
        if !ahead {
            self.waits.store(false, Ordering::Relaxed);
        }
        ahead
    }
    /// Charges it with processor time. `capped` says whether it has used up a limit of its own, so
    /// that it is not in the way of its siblings.
    #[inline]
    pub fn charge(&'static self, siblings: &'static Common, nanoseconds: i64, capped: bool) {
        if on() {
            self.charge_weighted(siblings, nanoseconds, capped);
        }
    }
    #[inline(never)]
    fn charge_weighted(&'static self, siblings: &'static Common, nanoseconds: i64, capped: bool) {
        let now = clock::elapsed();
        self.last.store(now, Ordering::Relaxed);
        self.capped.store(capped, Ordering::Relaxed);
        let weight = self.weight();
        if !self.active.load(Ordering::Relaxed) {
            self.begin(siblings, weight);
        }
        self.clock
            .fetch_add(ticks(nanoseconds, weight), Ordering::Relaxed);
        let all = siblings.weights.load(Ordering::Relaxed).max(weight);
        let more = ticks(nanoseconds, all);
        let common = siblings.clock.fetch_add(more, Ordering::Relaxed) + more;
        if self.lead(common) > LEAD {
            self.waits.store(true, Ordering::Relaxed);
        }
        let before = SWEPT.load(Ordering::Relaxed);
        if now - before > SWEEP
            && SWEPT
                .compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            sweep(now);
        }
    }
    /// Enters it among the active ones.
    #[cold]
    fn begin(&'static self, siblings: &'static Common, weight: i64) {
        let mut all = ACTIVE_ONES.lock();
        if self.active.swap(true, Ordering::Relaxed) {
            return;
        }
        all.push((self, siblings));
        siblings.weights.fetch_add(weight, Ordering::Relaxed);
        let common = siblings.clock.load(Ordering::Relaxed);
        let clock = self.clock.load(Ordering::Relaxed);
        let clock = clock.clamp(common, common + ticks(LEAD, weight));
        self.clock.store(clock, Ordering::Relaxed);
    }
}

/// Time that `nanoseconds` of a budget with that weight advance its clock by.
fn ticks(nanoseconds: i64, weight: i64) -> i64 {
    nanoseconds.saturating_mul(DEFAULT) / weight.max(1)
}

/// Forgets budgets that are not active any more, and computes the common clocks from those of the
/// others.
fn sweep(now: i64) {
    let mut all = ACTIVE_ONES.lock();
    all.retain(|(w, _)| {
        let late = now - w.last.load(Ordering::Relaxed) > ACTIVE;
        let stays = !late && !w.capped.load(Ordering::Relaxed);
        w.active.store(stays, Ordering::Relaxed);
        stays
    });
    // By common clock: the sum of the weights, and of the clocks times the weights.
    let mut sums: HashMap<*const Common, (i64, i128)> = HashMap::new();
    for (w, siblings) in all.iter() {
        let weight = w.weight();
        let s = sums.entry(std::ptr::from_ref(*siblings)).or_default();
        s.0 += weight;
        s.1 += i128::from(w.clock.load(Ordering::Relaxed)) * i128::from(weight);
    }
    for (w, siblings) in all.iter() {
        let Some(&(weights, clocks)) = sums.get(&std::ptr::from_ref(*siblings)) else {
            continue;
        };
        let common = (clocks / i128::from(weights.max(1))) as i64;
        siblings.clock.store(common, Ordering::Relaxed);
        siblings.weights.store(weights, Ordering::Relaxed);
        let least = common - ticks(LAG, w.weight());
        w.clock.fetch_max(least, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time slices of a millisecond go to the first budget that does not give way.
    #[test]
    fn siblings_get_time_in_the_ratio_of_their_weights() {
        let siblings: &'static Common = Box::leak(Box::new(Common::new()));
        let all: [&'static Weighted; 3] = [100, 300, 50].map(|n| {
            let w: &'static Weighted = Box::leak(Box::default());
            w.set(n);
            w
        });
        let mut slices = [0i32; 3];
        for _ in 0..9000 {
            // All of them have processes that run now and then, whatever the weights say.
            all.iter().for_each(|w| w.charge(siblings, 0, false));
            let i = all.iter().position(|w| !w.gives_way(siblings)).unwrap_or(0);
            all[i].charge(siblings, 1_000_000, false);
            slices[i] += 1;
        }
        for (n, expected) in slices.into_iter().zip([2000, 6000, 1000]) {
            assert!((n - expected).abs() <= expected / 10, "{slices:?}");
        }
    }
}
