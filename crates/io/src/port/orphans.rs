//! Orphans. Process 1 of a container inherits each process whose parent has ended, and it stays in the kernel's table until
//! somebody waits for it: who starts shells fills the table. So the emulator waits for them where it is process 1, or has said that
//! orphans are to be its own (`PR_SET_CHILD_SUBREAPER`).
//!
//! # Whose a child is
//! Programs of ports have who waits for them ([`super::spawn`]). A library may have made others, which are its own to wait for, and
//! nothing tells them from orphans. So once there is a library ([`may_make_others`]) only those are waited for here that ended
//! [`PATIENCE`] ago and still are there; before, each at once.

use super::spawn;
use crate::os::child;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// There is somebody who may make children that are not known here.
static OTHERS: AtomicBool = AtomicBool::new(false);

/// A library is about to be loaded, which may make children of its own.
pub fn may_make_others() {
    OTHERS.store(true, Ordering::SeqCst);
}

/// How long a child stays that has ended, for a library to wait for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How soon it is looked again whether there are children at all, where there were none, or only those that others wait for; the
/// pause doubles while that stays so, up to the second, so that an idle container is left alone.
const LOOK_FIRST: Duration = Duration::from_millis(500);
const LOOK_LAST: Duration = Duration::from_secs(16);

/// Starts the thread that waits for orphans, if the emulator gets any.
pub fn start() {
    if !child::inherits_orphans() || purlin_kernel::os::single::on() {
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

/// Waits until a child has ended, and for all that have and that nobody has waited for in a while. False: there is no child, or one
/// that somebody else waits for.
fn wait_for_some() -> bool {
    // It stays: whoever waits for it finds it.
    let first = match child::ended_child() {
        Some(pid) if !spawn::is_running(pid) => pid,
        _ => return false,
    };
    let mut ended: HashSet<libc::pid_t> = child::ended_children().into_iter().collect();
    ended.insert(first);
    if OTHERS.load(Ordering::SeqCst) {
        std::thread::sleep(PATIENCE);
    }
    ended.into_iter().for_each(spawn::wait_for_stranger);
    true
}
