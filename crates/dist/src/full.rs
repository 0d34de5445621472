//! Connections that are not read while a mailbox is full.
//!
//! A message from another node to a process whose budget bounds its mailbox arrives in any case. If
//! the mailbox is full, the connection is read no further until there is room, so the queue of the
//! other node grows until its senders wait, as for any busy connection. Whatever else comes over
//! the connection waits too. So the pause is short where the process takes nothing: after [`LOOKS`]
//! looks, some messages pass.
//!
//! A process that waits for an answer of another is not full ([`bounds::is_full`]): the answer may
//! come over the same connection.

use purlin_kernel::signal::bounds;
use purlin_term::Term;
use std::sync::atomic::{AtomicU32, Ordering};

/// Milliseconds between two looks at a full mailbox.
const PAUSE: u64 = 5;
/// Number of looks after which messages pass though there is no room.
const LOOKS: u32 = 10;
/// Number of these messages.
const PASS: u32 = 10;

/// No pid has this data.
const NONE: u32 = u32::MAX;

/// The full mailbox for which a connection waits. The lock of the node's input guards it.
pub struct Full {
    /// The data of its pid, or [`NONE`].
    receiver: AtomicU32,
    /// Looks so far, without room.
    looks: AtomicU32,
    /// Messages to full mailboxes that may still pass.
    pass: AtomicU32,
}

impl Full {
    pub const fn new() -> Full {
        Full {
            receiver: AtomicU32::new(NONE),
            looks: AtomicU32::new(0),
            pass: AtomicU32::new(0),
        }
    }
    /// Notes that a message came for a process whose mailbox is full.
    pub fn note(&self, to: Term) {
        let take = |n: u32| n.checked_sub(1);
        let order = Ordering::Relaxed;
        if self.pass.try_update(order, order, take).is_err() {
            let before = self.receiver.swap(to.pid_data(), Ordering::Relaxed);
            if before == NONE {
                bounds::count_wait(to);
            }
        }
    }
    /// Returns for how many milliseconds the connection is not read; `None` if it is.
    pub fn pause(&self) -> Option<u64> {
        let to = match self.receiver.load(Ordering::Relaxed) {
            NONE => return None,
            data => Term::pid(data),
        };
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        if looks < LOOKS && bounds::is_full(to) {
            return Some(PAUSE);
        }
        let pass = if looks < LOOKS { 0 } else { PASS };
        self.pass.store(pass, Ordering::Relaxed);
        self.looks.store(0, Ordering::Relaxed);
        self.receiver.store(NONE, Ordering::Relaxed);
        None
    }
}
