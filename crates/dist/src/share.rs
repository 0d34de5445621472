//! The memory that all connections take together: for output that waits, for incomplete fragmented
//! messages, and for packets that ports have not read completely.
//!
//! Other nodes decide how much that is: they may stop reading, or never finish a message. So all
//! connections together may take half of the available memory. The connection that asks for more
//! ends, unless its own share is small: a greedy connection does not end those that send little. If
//! the node has a memory limit, half of the limit counts instead.
//!
//! # Invariants
//! * The account is the sum of all shares: only shares change it, and a dropped share gives back
//!   what it has.
//! * It is exceeded by at most [`LITTLE_BYTES`] per connection.

use super::options;
use purlin_kernel::system::memory;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Smaller shares never end a connection.
const LITTLE_BYTES: usize = 1 << 20;

/// Maximum bytes that may wait on all connections, for output or for the rest of messages: half of
/// the available memory, or of the node's present memory limit.
pub fn most_waiting() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    let most = *MOST.get_or_init(|| options::memory::available().map_or(usize::MAX, |n| n / 2));
    memory::limit().map_or(most, |(limit, _)| most.min(limit / 2))
}

/// Bytes of all shares.
struct Account(AtomicUsize);

static ACCOUNT: Account = Account(AtomicUsize::new(0));

/// The bytes of one connection in one direction.
pub struct Share {
    account: &'static Account,
    bytes: usize,
}

impl Default for Share {
    fn default() -> Share {
        Share {
            account: &ACCOUNT,
            bytes: 0,
        }
    }
}

impl Share {
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Adds bytes. Returns false if that is too much for the share (`most`) or for all.
    #[must_use]
    pub fn add(&mut self, bytes: usize, most: usize) -> bool {
        // The bytes exist already, whether they are too many or not.
        self.bytes = self.bytes.saturating_add(bytes);
        let before = self.account.0.fetch_add(bytes, Ordering::Relaxed);
        let all = before.saturating_add(bytes);
        self.bytes <= most && (all <= most_waiting() || self.bytes < LITTLE_BYTES)
    }
    /// Adds bytes that do not exist yet. If that is too much, nothing changes, and others do not
    /// notice.
    #[must_use]
    pub fn add_if_it_fits(&mut self, bytes: usize, most: usize) -> bool {
        let own = self.bytes.saturating_add(bytes);
        let taken = self
            .account
            .0
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |before| {
                let all = before.saturating_add(bytes);
                let fits = own <= most && (all <= most_waiting() || own < LITTLE_BYTES);
                fits.then_some(all)
            });
        if taken.is_ok() {
            self.bytes = own;
        }
        taken.is_ok()
    }
    /// Gives bytes back.
    pub fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.account.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(account: &'static Account) -> Share {
        Share { account, bytes: 0 }
    }

    #[test]
    fn all_shares_together_are_bounded() {
        let most = most_waiting();
        if most == usize::MAX {
            return;
        }
        let account: &'static Account = Box::leak(Box::new(Account(AtomicUsize::new(0))));
        let (mut a, mut b, mut c) = (share(account), share(account), share(account));
        assert!(a.add(most / 2, most) && b.add(most - most / 2, most));
        // Neither exceeds its own limit, but both together do.
        assert!(!b.add(1, most) && !a.add(1, most));
        // A small share continues.
        assert!(c.add(LITTLE_BYTES - 1, most));
        assert!(!c.add(1, most));
        // A refused request does not affect others either.
        let all = account.0.load(Ordering::Relaxed);
        assert!(!share(account).add_if_it_fits(LITTLE_BYTES, most));
        assert!(!share(account).add_if_it_fits(usize::MAX, usize::MAX));
        assert!(share(account).add_if_it_fits(LITTLE_BYTES - 1, most));
        assert_eq!(account.0.load(Ordering::Relaxed), all);
        drop(a);
        assert!(c.add(1, most));
        b.give_back(usize::MAX);
        assert_eq!(b.bytes(), 0);
        drop((b, c));
        assert_eq!(account.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_share_has_a_bound_of_its_own() {
        let mut s = Share::default();
        assert!(s.add(10, 10) && !s.add(1, 10));
    }
}
