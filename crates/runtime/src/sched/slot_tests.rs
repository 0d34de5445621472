//! Of [`super::queues`], one thread at a time: the slot beside a run queue, whose process keeps its place and is everybody's to
//! take.

use super::queues::{Hooks, RunQueues};
use crate::process::state::Priority;

struct Here;

impl Hooks for Here {
    /// Processes from 100 on stay on the first worker.
    fn bound(&self, cell: u32) -> usize {
        usize::from(cell >= 100)
    }
    fn rests(&self, _: usize, _: usize) {}
    fn sleeps(&self, _: bool) {}
    fn works(&self, _: usize, _: usize) {}
}

fn queues(online: usize) -> RunQueues<Here> {
    let q = RunQueues::new(2, Here);
    q.set_online(2, |_| true);
    q.set_online(online, |_| true);
    q
}

/// What the first worker takes.
fn taken(q: &RunQueues<Here>) -> Vec<u32> {
    std::iter::from_fn(|| q.next(0, None)).collect()
}

#[test]
fn what_goes_next_keeps_its_place() {
    let q = queues(1);
    for c in 1..4 {
        q.put(c, Priority::Normal, true, 1);
    }
    assert_eq!(q.lengths(), [3, 0]);
    assert_eq!(taken(&q), [1, 2, 3]);
    // It came first of its priority, and goes behind others.
    q.put(1, Priority::Normal, true, 1);
    q.put(2, Priority::Normal, true, 0);
    q.put(3, Priority::Normal, true, 1);
    q.put(4, Priority::High, true, 0);
    assert_eq!(taken(&q), [4, 1, 2, 3]);
    q.put(1, Priority::Normal, true, 1);
    q.raise(1, Priority::Max, || ());
    q.put(4, Priority::High, true, 0);
    assert_eq!(taken(&q), [1, 4]);
    assert_eq!(q.lengths(), [0, 0]);
}

#[test]
fn what_goes_next_is_stolen_and_handed_over() {
    let q = queues(2);
    q.put(1, Priority::Normal, true, 1);
    assert_eq!(q.next(1, None), None);
    let glance = q.glance(1);
    assert_eq!(q.next(1, glance), Some(1));
    assert_eq!(q.lengths(), [0, 0]);
    // What is bound to its worker stays there.
    q.put(100, Priority::Normal, true, 1);
    let glance = q.glance(1);
    assert_eq!(q.next(1, glance), None);
    assert_eq!(q.next(0, None), Some(100));
    // What a worker leaves that goes offline the others find.
    q.put(2, Priority::Normal, true, 2);
    q.set_online(1, |_| true);
    assert_eq!(q.next(1, None), None);
    assert_eq!(q.next(0, None), Some(2));
}
