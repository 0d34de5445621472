//! Orphans. Process 1 of a container inherits each process whose parent has ended, and it stays in the kernel's table until
//! somebody waits for it: who starts shells fills the table. So the emulator waits for them where it is process 1, or has said that
//! orphans are to be its own (`PR_SET_CHILD_SUBREAPER`).
//!
//! # Whose a child is
//! Programs of ports have who waits for them ([`super::spawn`]). A library may have made others, which are its own to wait for, and
//! nothing tells them from orphans. So only those are waited for here that ended [`PATIENCE`] ago and still are there.

use super::spawn;
use crate::os::child;
use std::collections::HashSet;
use std::time::Duration;

/// How long a child stays that has ended, for a library to wait for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether there are children at all, where there were none, or only those that others wait for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Starts the thread that waits for orphans, if the emulator gets any.
pub fn start() {
    if !child::inherits_orphans() || purlin_kernel::os::single::on() {
        return;
    }
    let t = std::thread::Builder::new()
        .name("orphans".into())
        .stack_size(256 * 1024)
        .spawn(|| {
            purlin_kernel::affinity::begin_unbound();
            loop {
                wait_for_some();
            }
        });
    if let Err(e) = t {
        eprintln!("purlin: cannot start the thread that waits for orphans: {e}");
        std::process::exit(1);
    }
}

/// Waits until a child has ended, and for all that have and that nobody has waited for in a while.
fn wait_for_some() {
    // It stays: whoever waits for it finds it.
    let first = match child::ended_child() {
        Some(pid) if !spawn::is_running(pid) => pid,
        _ => return std::thread::sleep(LOOK_EVERY),
    };
    let mut ended: HashSet<libc::pid_t> = child::ended_children().into_iter().collect();
    ended.insert(first);
    std::thread::sleep(PATIENCE);
    ended.into_iter().for_each(spawn::wait_for_stranger);
}
