//! Tests of [`super::queues`], one thread at a time: the slot beside a run queue, from which any
//! scheduler may take the process, and processes in order.

use super::queues::{Cause, Hooks, RunQueues, Seen, TURN_SLICES};
use crate::process::state::Priority;

struct Here;

impl Hooks for Here {
    /// Processes from 100 on are bound to the first scheduler.
    fn bound(&self, cell: u32) -> usize {
        usize::from(cell >= 100)
    }
    fn rests(&self, _: usize, _: usize) {}
    fn sleeps(&self, _: bool) {}
    fn works(&self, _: usize, _: usize) {}
    type Found = ();
    fn may_wait_outside(&self, _: usize, _: impl Fn(usize) -> bool) -> bool {
        false
    }
    fn wait_outside(&self) {}
    fn ring(&self) {}
}

fn queues(online: usize) -> RunQueues<Here> {
    let q = RunQueues::new(2, Here);
    q.set_online(2, |_| true);
    q.set_online(online, |_| true);
    q
}

/// Returns the process that the first scheduler takes.
fn taken(q: &RunQueues<Here>) -> Vec<u32> {
    std::iter::from_fn(|| q.next(0, None)).collect()
}

#[test]
fn what_goes_next_keeps_its_place() {
    let q = queues(1);
    for c in 1..4 {
        q.put(c, Priority::Normal, Cause::Woken, 1);
    }
    assert_eq!(q.lengths(), [3, 0]);
    assert_eq!(taken(&q), [1, 2, 3]);
    // It came first of its priority, and goes behind others.
    q.put(1, Priority::Normal, Cause::Woken, 1);
    q.put(2, Priority::Normal, Cause::Woken, 0);
    q.put(3, Priority::Normal, Cause::Woken, 1);
    q.put(4, Priority::High, Cause::Woken, 0);
    assert_eq!(taken(&q), [4, 1, 2, 3]);
    q.put(1, Priority::Normal, Cause::Woken, 1);
    q.raise(1, Priority::Max, || ());
    q.put(4, Priority::High, Cause::Woken, 0);
    assert_eq!(taken(&q), [1, 4]);
    assert_eq!(q.lengths(), [0, 0]);
}

#[test]
fn what_was_made_or_woken_goes_in_the_order_in_which_it_came() {
    let q = queues(1);
    q.put(1, Priority::Normal, Cause::Spent, 1);
    q.put(2, Priority::Normal, Cause::New, 1);
    q.put(3, Priority::Normal, Cause::Woken, 1);
    q.put(4, Priority::Normal, Cause::New, 1);
    assert_eq!(taken(&q), [2, 3, 4, 1]);
}

/// Returns the number of slices of each of three processes out of a hundred thousand. Process 1 has
/// long turns.
#[test]
fn who_has_long_turns_gets_no_more_than_others() {
    let q = queues(1);
    let mut had = [0u32; 3];
    let mut turn = 0;
    for c in 0..3 {
        q.put(c, Priority::Normal, Cause::Long, 1);
    }
    for _ in 0..100_000 {
        let c = q.next(0, None).unwrap_or(9);
        had[c as usize] += 1;
        assert!(q.took_used(1));
        if c != 1 {
            q.put(c, Priority::Normal, Cause::Long, 1);
        } else if turn + 1 < TURN_SLICES {
            turn += 1;
            q.go_on(c, 1);
        } else {
            turn = 0;
            q.put(c, Priority::Normal, Cause::Owing, 1);
        }
    }
    assert!(had.iter().all(|n| n.abs_diff(33_333) < 100), "{had:?}");
}

/// Processes with long turns have them one after another, and woken processes run in between.
#[test]
fn long_turns_follow_each_other() {
    let q = queues(1);
    for c in 1..4 {
        q.put(c, Priority::Normal, Cause::Owing, 1);
    }
    assert_eq!(q.next(0, None), Some(1));
    q.go_on(1, 1);
    q.put(7, Priority::Normal, Cause::Woken, 0);
    assert_eq!(q.next(0, None), Some(7));
    assert_eq!(q.next(0, None), Some(1));
    q.put(1, Priority::Normal, Cause::Owing, 1);
    assert_eq!(taken(&q), [2, 3, 1]);
}

#[test]
fn what_goes_next_is_stolen_and_handed_over() {
    let q = queues(2);
    q.put(1, Priority::Normal, Cause::Woken, 1);
    assert_eq!(q.next(1, None), None);
    let glance = q.glance(1, None).map(Seen::for_long);
    assert_eq!(q.next(1, glance), Some(1));
    assert_eq!(q.lengths(), [0, 0]);
    // A bound process stays with its scheduler.
    q.put(100, Priority::Normal, Cause::Woken, 1);
    let glance = q.glance(1, None).map(Seen::for_long);
    assert_eq!(q.next(1, glance), None);
    assert_eq!(q.next(0, None), Some(100));
    // Others find the processes of a scheduler that goes offline.
    q.put(2, Priority::Normal, Cause::Woken, 2);
    q.set_online(1, |_| true);
    assert_eq!(q.next(1, None), None);
    assert_eq!(q.next(0, None), Some(2));
}

/// Queues a process behind those of the first scheduler. Returns the scheduler that got it.
fn behind(q: &RunQueues<Here>, cell: u32, me: usize) -> usize {
    q.put_in_order(cell, Priority::Normal, Cause::Woken, 1, me)
}

/// Returns the process that the second scheduler takes after enough looks.
fn stolen(q: &RunQueues<Here>) -> Option<u32> {
    let glance = q.glance(1, None).map(Seen::for_long);
    q.next(1, glance)
}

#[test]
fn what_comes_in_order_stays_in_order() {
    let q = queues(2);
    assert_eq!(behind(&q, 1, 1), 1);
    assert_eq!((behind(&q, 2, 0), stolen(&q)), (1, None));
    assert_eq!(q.next(0, None), Some(1));
    // Also while the first one runs, and if it was the only one.
    assert_eq!((behind(&q, 3, 0), stolen(&q)), (1, None));
    assert_eq!((q.next(0, None), q.next(0, None)), (Some(2), Some(3)));
    assert_eq!((behind(&q, 4, 0), stolen(&q)), (1, None));
    assert_eq!((q.next(0, None), q.next(0, None)), (Some(4), None));
    // The queue has run empty: others may take what arrives now,
    q.put(9, Priority::Normal, Cause::Woken, 1);
    assert_eq!(stolen(&q), Some(9));
}

#[test]
fn others_take_of_what_comes_in_order() {
    // if there are many,
    let q = queues(2);
    for c in 1..6 {
        assert_eq!(behind(&q, c, usize::from(c == 1)), 1);
    }
    assert_eq!(stolen(&q), Some(1));
    // if the scheduler lets others,
    let q = queues(2);
    for c in 1..4 {
        behind(&q, c, usize::from(c == 1));
    }
    q.let_others_steal(1);
    assert_eq!(stolen(&q), Some(1));
    // if a process has used up its slice,
    let q = queues(2);
    for c in 1..4 {
        behind(&q, c, usize::from(c == 1));
    }
    assert_eq!(q.next(0, None), Some(1));
    q.put(1, Priority::Normal, Cause::Spent, 1);
    assert_eq!(stolen(&q), Some(2));
    // and if the scheduler has gone offline. A bound process goes there.
    let q = queues(2);
    assert_eq!(q.put_in_order(1, Priority::Normal, Cause::Woken, 2, 2), 2);
    assert_eq!(q.put_in_order(100, Priority::Normal, Cause::Woken, 2, 0), 2);
    assert_eq!(q.lengths(), [1, 1]);
    q.set_online(1, |_| true);
    assert_eq!(q.next(1, None), None);
    assert_eq!(taken(&q), [100, 1]);
}

/// A trivial process is left to the scheduler that spawned it, until something has used up a slice
/// there.
#[test]
fn what_is_brief_is_left() {
    let q = queues(2);
    let make = |cells: std::ops::Range<u32>| {
        for c in cells {
            q.put(c, Priority::Normal, Cause::New, 1);
        }
    };
    for _ in 0..400 {
        make(1..3);
        while q.next(0, None).is_some() {
            let nanoseconds = if q.is_timed(0) { 100 } else { 0 };
            q.ran(0, 5, nanoseconds);
        }
    }
    make(1..9);
    assert_eq!(stolen(&q), None);
    // Others also take it if its scheduler takes nothing for very long,
    let mut seen = Vec::new();
    q.rescue(&mut seen);
    assert_eq!(stolen(&q), None);
    q.rescue(&mut seen);
    assert_eq!(stolen(&q), Some(2));
    // until that takes something again.
    assert!(q.next(0, None).is_some());
    while q.next(1, None).is_some() {}
    assert_ne!(q.lengths()[0], 0);
    q.put(9, Priority::Normal, Cause::Spent, 1);
    assert!(stolen(&q).is_some());
    // A process that takes long, although it counts few reductions, is taken.
    let q = queues(2);
    for _ in 0..400 {
        q.put(1, Priority::Normal, Cause::New, 1);
        q.put(2, Priority::Normal, Cause::New, 1);
        while q.next(0, None).is_some() {
            let nanoseconds = if q.is_timed(0) { 50_000 } else { 0 };
            q.ran(0, 5, nanoseconds);
        }
    }
    q.put(1, Priority::Normal, Cause::New, 1);
    assert_eq!(stolen(&q), Some(1));
}
