//! Orphans. Process 1 of a container inherits every process whose parent has ended. Such a process
//! stays in the kernel's table until it is reaped, so a program that starts shells would fill the
//! table. The emulator therefore reaps orphans if it is process 1, or if orphans become its
//! children by `PR_SET_CHILD_SUBREAPER`.
//!
//! # Which children are reaped Programs of ports are reaped elsewhere ([`super::spawn`]). A library
//! may have started children of its own, which look the same as orphans. So once there is a library
//! ([`may_make_others`]), only children are reaped here that ended [`REAP_DELAY`] ago and still
//! exist. Before that, each is reaped at once.
//!
//! # Orderings
//! `OTHERS` is a flag without data behind it. It is set before a library is loaded, and so before
//! any child of the library exists. The thread here loads it after the kernel has reported an ended
//! child. Its store and loads are sequentially consistent, so no reordering on either side can hide
//! the flag from a report of such a child.

use super::spawn;
use crate::os::child;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether a library may start children that are unknown here.
static OTHERS: AtomicBool = AtomicBool::new(false);

/// Announces that a library is about to be loaded, which may start children of its own.
pub fn may_make_others() {
    OTHERS.store(true, Ordering::SeqCst);
}

/// How long an ended child is left for a library to reap.
const REAP_DELAY: Duration = Duration::from_secs(1);
/// Pause before the next look for children, after a look that found none or only those that others
/// reap. The pause doubles up to the second value, so that an idle container is left alone.
const LOOK_FIRST: Duration = Duration::from_millis(500);
const LOOK_LAST: Duration = Duration::from_secs(16);

/// Starts the thread that reaps orphans, if the emulator inherits any.
pub fn start() {
    if !child::inherits_orphans() || purlin_kernel::os::exploring::on() {
        return;
    }
    purlin_kernel::os::thread::start("orphans", 256 * 1024, || {
        purlin_kernel::affinity::begin_unbound();
        let mut pause = LOOK_FIRST;
        loop {
            if wait_for_some() {
                pause = LOOK_FIRST;
            } else {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LOOK_LAST);
            }
        }
    });
}

/// Waits until a child has ended, and reaps the ended children that nobody else has reaped in time.
/// Returns false if there is no child, or if the one that ended is reaped elsewhere.
fn wait_for_some() -> bool {
    // The child is not reaped yet, so its parent's code still finds it.
    let first = match child::ended_child() {
        Some(pid) if !spawn::is_running(pid) => pid,
        _ => return false,
    };
    let mut ended: HashSet<libc::pid_t> = child::ended_children().into_iter().collect();
    ended.insert(first);
    if OTHERS.load(Ordering::SeqCst) {
        std::thread::sleep(REAP_DELAY);
    }
    ended.into_iter().for_each(spawn::wait_for_stranger);
    true
}
