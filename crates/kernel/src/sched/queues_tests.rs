//! Tests of [`super::queues`], one thread at a time. `crates/models` compiles the same file for its
//! models.

use super::queues::*;
use crate::process::state::Priority;

struct Alone;
impl Hooks for Alone {
    fn bound(&self, _: u32) -> usize {
        0
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

#[test]
fn a_single_process_of_high_priority_goes_to_a_worker_without() {
    let q = RunQueues::new(2, Alone);
    q.set_online(2, |_| true);
    q.put(1, Priority::Max, Cause::Spent, 1);
    q.put(2, Priority::High, Cause::Spent, 1);
    q.put(3, Priority::Normal, Cause::Spent, 2);
    assert_eq!(q.next(0, None), Some(1));
    assert_eq!(q.next(1, None), Some(2));
    assert_eq!(q.next(1, None), Some(3));
}

#[test]
fn what_waits_behind_a_process_of_high_priority_goes_to_a_worker_without() {
    let q = RunQueues::new(2, Alone);
    q.set_online(2, |_| true);
    for i in 0..20 {
        q.put(i, Priority::Normal, Cause::Spent, 1 + i as usize % 2);
    }
    q.put(100, Priority::High, Cause::Spent, 1);
    let mut ran = [false; 20];
    for _ in 0..5000 {
        let urgent = q.next(0, None).expect("it is queued again each time");
        assert_eq!(urgent, 100);
        let c = q.next(1, None).expect("there are more than enough");
        ran[c as usize] = true;
        q.put(c, Priority::Normal, Cause::Spent, 2);
        q.put(urgent, Priority::High, Cause::Spent, 1);
    }
    assert!(ran.iter().all(|&r| r));
}

#[test]
fn what_was_raised_is_put_back_before_its_equals() {
    let q = RunQueues::new(1, Alone);
    q.set_online(1, |_| true);
    q.put(1, Priority::Normal, Cause::Spent, 1);
    q.put(2, Priority::Normal, Cause::Spent, 1);
    let mut marked = false;
    q.raise(2, Priority::Max, || marked = true);
    assert!(marked);
    assert_eq!(q.next(0, None), Some(2));
    q.put_back(2, Priority::Normal, 1);
    assert_eq!(q.next(0, None), Some(2));
    assert_eq!(q.next(0, None), Some(1));
}

#[test]
fn a_thief_takes_half_of_each_level() {
    let q = RunQueues::new(2, Alone);
    q.set_online(2, |_| true);
    for i in 0..10 {
        q.put(i, Priority::Normal, Cause::Spent, 1);
        q.put(10 + i, Priority::Low, Cause::Spent, 1);
    }
    assert_eq!(q.next(1, None), Some(0));
    assert_eq!(q.lengths(), [10, 9]);
    let taken: Vec<u32> = (0..9).filter_map(|_| q.next(1, None)).collect();
    assert_eq!(taken.iter().filter(|&&c| c < 10).count(), 4);
    assert_eq!(taken.iter().filter(|&&c| c >= 10).count(), 5);
}

#[test]
fn a_thief_takes_nothing_along_with_what_is_urgent() {
    let q = RunQueues::new(2, Alone);
    q.set_online(2, |_| true);
    for i in 0..10 {
        q.put(i, Priority::Normal, Cause::Spent, 1);
    }
    q.put(100, Priority::High, Cause::Spent, 1);
    assert_eq!(q.next(1, None), Some(100));
    assert_eq!(q.lengths(), [10, 0]);
}
