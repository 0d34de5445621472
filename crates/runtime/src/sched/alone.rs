//! Multi-scheduling that is blocked: threads run processes one at a time, whichever kind they are of.
//!
//! # Invariants
//! * A thread that began to run a process while nobody blocked goes on until it is done with that.
//! * Turns go round: a thread that wants one waits for those that wanted theirs before. No thread waits for anything else
//!   with a turn of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Tickets: the next to be given, and the one whose turn it is.
struct Tickets {
    next: u64,
    serving: u64,
}

static BLOCKED: AtomicBool = AtomicBool::new(false);
static TICKETS: Mutex<Tickets> = Mutex::new(Tickets {
    next: 0,
    serving: 0,
});
static CALLED: Condvar = Condvar::new();

fn tickets() -> MutexGuard<'static, Tickets> {
    TICKETS.lock().unwrap_or_else(|e| e.into_inner())
}

/// Has threads take turns from now on, or not any more.
pub fn block(on: bool) {
    BLOCKED.store(on, Ordering::Relaxed);
}

/// Whether threads take turns.
#[inline]
pub fn blocked() -> bool {
    BLOCKED.load(Ordering::Relaxed)
}

/// A thread's turn, which ends when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Turn(());

impl Drop for Turn {
    fn drop(&mut self) {
        tickets().serving += 1;
        CALLED.notify_all();
    }
}

/// Waits for this thread's turn; None where threads need none. `waits` is told before and after, if it has to.
#[inline]
pub fn turn(waits: impl Fn(bool)) -> Option<Turn> {
    blocked().then(|| wait(waits))
}

#[cold]
fn wait(waits: impl Fn(bool)) -> Turn {
    let mut t = tickets();
    let mine = t.next;
    t.next += 1;
    if t.serving != mine {
        waits(true);
        while t.serving != mine {
            t = CALLED.wait(t).unwrap_or_else(|e| e.into_inner());
        }
        waits(false);
    }
    Turn(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn one_at_a_time() {
        static INSIDE: AtomicUsize = AtomicUsize::new(0);
        assert!(turn(|_| ()).is_none());
        block(true);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..1000 {
                        let t = turn(|_| ());
                        assert_eq!(INSIDE.fetch_add(1, Ordering::SeqCst), 0);
                        INSIDE.fetch_sub(1, Ordering::SeqCst);
                        drop(t);
                    }
                });
            }
        });
        block(false);
    }
}
