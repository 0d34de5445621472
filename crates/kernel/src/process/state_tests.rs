//! Tests of [`super::state`], one thread at a time. `crates/models` compiles the same file for its
//! models.

use super::state::*;

#[test]
fn a_wake_up_while_running_is_seen_before_waiting() {
    let s = State::free();
    s.publish_queued(Priority::Normal, false);
    let _ = s.start_running();
    assert_eq!(s.wake(), Wake::Seen);
    assert_eq!(s.try_wait(false), Wait::Awake);
    assert!(s.take_signals() && !s.take_signals());
    assert_eq!(s.try_wait(false), Wait::Waiting);
}

#[test]
fn exactly_one_waker_queues_a_waiting_process() {
    let s = State::free();
    s.publish_queued(Priority::High, false);
    let _ = s.start_running();
    assert_eq!(s.try_wait(false), Wait::Waiting);
    assert_eq!(s.wake(), Wake::Enqueue(Priority::High));
    assert_eq!(s.wake_by_timeout(), Wake::Seen);
    let _ = s.start_running();
    assert!(s.take_signals() && s.take_timeout() == Timeout::Fired);
}

#[test]
fn upkeep_takes_what_has_waited_since_it_was_seen() {
    let s = State::free();
    assert_eq!(s.age(), Age::Nothing);
    s.publish_queued(Priority::Normal, false);
    let _ = s.start_running();
    assert_eq!(s.age(), Age::Nothing);
    assert_eq!(s.try_wait(true), Wait::Waiting);
    assert_eq!(s.age(), Age::First);
    assert_eq!(s.wake(), Wake::Enqueue(Priority::Normal));
    assert_eq!(s.age(), Age::Nothing);
    let _ = s.start_running();
    assert!(s.take_signals());
    assert_eq!(s.try_wait(true), Wait::Waiting);
    assert_eq!((s.age(), s.age()), (Age::First, Age::Owned));
    assert_eq!(s.wake(), Wake::Seen);
    assert_eq!(s.try_wait(false), Wait::Awake);
}

#[test]
fn a_free_cell_is_never_queued() {
    let s = State::free();
    assert_eq!(s.wake(), Wake::Seen);
    s.publish_queued(Priority::Low, false);
    assert_eq!(s.priority(), Priority::Low);
}

#[test]
fn a_timeout_does_not_keep_a_suspended_process_running() {
    let s = State::free();
    s.publish_queued(Priority::Normal, false);
    let _ = s.start_running();
    s.suspend();
    assert_eq!(s.wake_by_timeout(), Wake::Seen);
    assert_eq!(s.try_suspend(), Wait::Waiting);
    assert_eq!(s.wake(), Wake::Enqueue(Priority::Normal));
    let _ = s.start_running();
    assert_eq!(s.try_suspend(), Wait::Awake);
    assert!(s.take_signals() && s.load().is_suspended() && s.take_timeout() == Timeout::Fired);
}

#[test]
fn what_was_sent_before_a_look_is_settled_or_seen() {
    let s = State::free();
    s.publish_queued(Priority::Normal, false);
    assert!(!s.load().runs_undisturbed());
    let _ = s.start_running();
    assert!(s.load().runs_undisturbed());
    // Messages disturb nothing.
    assert_eq!(s.wake(), Wake::Seen);
    assert!(s.load().runs_undisturbed());
    // The bit is set although `SIGNALS` was.
    assert_eq!(s.wake_for(true), Wake::Seen);
    assert!(!s.load().runs_undisturbed());
    // Signals may have arrived that are not fetched.
    s.settle_control();
    assert!(!s.load().runs_undisturbed());
    assert!(s.take_signals());
    assert!(!s.load().runs_undisturbed());
    s.settle_control();
    assert!(s.load().runs_undisturbed());
    s.suspend();
    assert!(!s.load().runs_undisturbed());
    s.resume();
    assert_eq!(s.try_wait(true), Wait::Waiting);
    // Upkeep runs no Erlang code of the process.
    assert!(matches!((s.age(), s.age()), (Age::First, Age::Owned)));
    assert!(!s.load().runs_undisturbed());
}

#[test]
fn completing_the_reason_to_leave_a_pool_is_reported() {
    let s = State::free();
    s.publish_queued(Priority::Normal, false);
    let _ = s.start_running();
    assert_eq!(s.requeue_dirty(true), Priority::Normal);
    assert!(!s.must_leave_pool());
    // A message is no reason to leave the pool.
    assert_eq!(s.wake(), Wake::Seen);
    assert_eq!(s.wake_by_timeout(), Wake::Seen);
    assert!(!s.must_leave_pool());
    assert_eq!(s.wake_for(true), Wake::Dirty(true));
    assert_eq!(s.wake_for(true), Wake::Seen);
    assert!(s.must_leave_pool());
    s.raise();
    let taken = s.start_fetching();
    assert!(taken.signals && taken.raised && taken.dirty == Some(true));
    // An unsettled control signal is a reason as soon as any signal arrives.
    assert_eq!(s.requeue_dirty(false), Priority::Normal);
    assert_eq!(s.wake_by_timeout(), Wake::Seen);
    assert_eq!(s.wake(), Wake::Dirty(false));
    let taken = s.start_running();
    assert!(taken.signals && !taken.raised && taken.dirty == Some(false));
    // The owner learns of it if it came before.
    let _ = s.requeue_dirty(false);
    assert!(s.must_leave_pool());
    assert_eq!(s.start_running().dirty, Some(false));
    let _ = s.requeue();
    assert_eq!(s.start_running().dirty, None);
}
