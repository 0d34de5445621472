//! Tests of [`super::pool`], one thread at a time. `crates/models` compiles the same file for its
//! models.

use super::pool::Pool;
use crate::process::state::Priority;

fn with(cells: &[u32]) -> Pool {
    let p = Pool::new();
    for &c in cells {
        assert!(p.put(c, Priority::Normal, || false));
    }
    p
}

fn rest(p: &Pool) -> Vec<u32> {
    std::iter::from_fn(|| p.try_take()).collect()
}

#[test]
fn who_leaves_and_comes_back_keeps_its_place() {
    let p = with(&[1, 2, 3, 4]);
    assert!(p.take_out(2) && !p.take_out(2) && !p.take_out(9));
    assert_eq!(p.try_take(), Some(1));
    assert!(p.put(2, Priority::Normal, || false));
    assert_eq!(rest(&p), [2, 3, 4]);
    assert!(p.is_empty() && !p.take_out(2));
}

#[test]
fn who_comes_back_behind_its_turn_goes_first() {
    let p = with(&[1, 2, 3, 4]);
    assert!(p.take_out(1) && p.take_out(2));
    assert_eq!(p.try_take(), Some(3));
    assert!(p.put(2, Priority::Normal, || false));
    assert!(p.put(5, Priority::Normal, || false));
    assert_eq!(rest(&p), [2, 4, 5]);
    // No other process waits for the first one.
    assert_eq!(p.try_take(), None);
    assert!(p.put(1, Priority::Normal, || false));
    assert_eq!(rest(&p), [1]);
}

#[test]
fn who_leaves_at_once_has_a_place_too() {
    let p = with(&[1]);
    assert!(!p.put(2, Priority::Normal, || true));
    assert!(p.put(3, Priority::Normal, || false));
    assert!(!p.put(2, Priority::Normal, || true));
    assert!(p.put(2, Priority::Normal, || false));
    assert_eq!(rest(&p), [1, 2, 3]);
}

#[test]
fn a_number_that_is_given_up_may_name_another() {
    let p = with(&[1, 2, 3]);
    assert!(p.take_out(1) && p.take_out(2));
    p.forget(1);
    assert_eq!(p.len(), 2);
    assert!(p.put(1, Priority::Normal, || false));
    // A thread has reached the place of the other one.
    assert_eq!(p.try_take(), Some(3));
    p.forget(2);
    p.forget(2);
    assert!(p.put(2, Priority::Normal, || false));
    assert_eq!(rest(&p), [1, 2]);
}
