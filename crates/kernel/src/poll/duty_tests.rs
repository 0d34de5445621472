//! Tests of [`super::duty`].

use super::duty::*;

const MS: u64 = 1_000_000;

#[test]
fn many_events_within_a_window_are_frequent() {
    let d = Duty::new();
    for i in 0..100 {
        d.found(1, true, || i * MS);
    }
    assert!(!d.is_frequent());
    for i in 0..MANY as u64 {
        d.found(1, true, || 1000 * MS + i);
    }
    assert!(d.is_frequent());
    let d = Duty::new();
    d.found(MANY, false, || 5);
    assert!(!d.is_frequent());
}

#[test]
fn the_poll_thread_waits_again_after_quiet_naps_or_without_schedulers() {
    let d = Duty::new();
    d.set_frequent(true);
    let mut seen = Naps::default();
    for _ in 0..20 {
        d.took(1);
        d.found(FEW, true, || 0);
        assert_eq!(d.after_nap(&mut seen, false), Then::Nap);
    }
    for _ in 1..QUIET_NAPS {
        assert_eq!(d.after_nap(&mut seen, true), Then::Nap);
    }
    assert_eq!(d.after_nap(&mut seen, true), Then::Wait);
    assert!(!d.is_frequent());

    d.set_frequent(true);
    // The schedulers have polled since the last nap.
    assert_eq!(d.after_nap(&mut seen, false), Then::Nap);
    for _ in 1..BUSY_NAPS {
        d.found(FEW, true, || 0);
        assert_eq!(d.after_nap(&mut seen, false), Then::Poll);
        assert_eq!(d.found_itself(&mut seen, true), Then::Nap);
    }
    d.found(FEW, true, || 0);
    assert_eq!(d.after_nap(&mut seen, false), Then::Poll);
    assert_eq!(d.found_itself(&mut seen, true), Then::Wait);
    assert!(!d.is_frequent());
}
