//! Priority messages: the aliases, monitors and links whose messages overtake all others (OTP 28).
//!
//! Few processes have any. Entries of aliases, monitors and links that no longer exist are removed
//! once there are many.

use super::ext::{Ext, Peer};
use crate::keys::RefKey;
use purlin_native::hashing::Hashing;
use std::collections::HashSet;

/// References and links with priority.
#[derive(Default)]
pub struct Urgent {
    refs: HashSet<RefKey, Hashing>,
    links: HashSet<Peer, Hashing>,
    /// Number of entries at which stale ones are removed.
    limit: usize,
}

/// Initial number of entries at which stale ones are removed.
const FIRST_LIMIT: usize = 64;

impl Ext {
    /// Gives an alias or a monitor priority.
    pub fn prioritize(&mut self, k: RefKey) {
        self.tidy_urgent();
        self.urgent.get_or_insert_default().refs.insert(k);
    }
    /// Whether an alias or a monitor has priority.
    pub fn is_urgent(&self, k: &RefKey) -> bool {
        self.urgent.as_ref().is_some_and(|u| u.refs.contains(k))
    }
    /// As [`Ext::is_urgent`], for one that no longer exists. Removes the entry.
    pub fn take_urgent(&mut self, k: &RefKey) -> bool {
        let Some(u) = self.rare().and_then(|r| r.urgent.as_mut()) else {
            return false;
        };
        u.refs.remove(k)
    }
    /// Whether anything has priority.
    pub fn has_urgent(&mut self) -> bool {
        let remote = self.rare().and_then(|r| r.remote.as_ref());
        if remote.is_some_and(|r| r.links.values().any(|l| l.urgent && l.unlinking == 0)) {
            return true;
        }
        let Some(u) = self.rare().and_then(|r| r.urgent.take()) else {
            return false;
        };
        let any = u.refs.iter().any(|k| {
            self.monitors.contains(k) || self.rare().is_some_and(|r| r.aliases.contains(k))
        }) || u.links.iter().any(|p| {
            let link = self.links.get_mut(p);
            link.is_some_and(|l| l.unlinking == 0)
        });
        self.urgent = Some(u);
        any
    }
    /// Gives a link priority, or takes it away.
    pub fn prioritize_link(&mut self, with: Peer, on: bool) {
        if on {
            self.tidy_urgent();
            self.urgent.get_or_insert_default().links.insert(with);
        } else {
            self.take_urgent_link(with);
        }
    }
    /// Whether a link that no longer exists had priority. Removes the entry.
    pub fn take_urgent_link(&mut self, with: Peer) -> bool {
        let Some(u) = self.rare().and_then(|r| r.urgent.as_mut()) else {
            return false;
        };
        u.links.remove(&with)
    }
    /// Removes stale entries if there are many.
    fn tidy_urgent(&mut self) {
        let Some(r) = self.rare() else { return };
        let Some(mut u) = r.urgent.take() else { return };
        if u.refs.len() + u.links.len() < u.limit.max(FIRST_LIMIT) {
            r.urgent = Some(u);
            return;
        }
        u.refs.retain(|k| {
            self.monitors.contains(k) || self.rare().is_some_and(|r| r.aliases.contains(k))
        });
        u.links.retain(|p| self.links.contains(p));
        u.limit = 2 * (u.refs.len() + u.links.len());
        self.urgent = Some(u);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ext::Link;
    use purlin_term::Term;

    #[test]
    fn what_is_gone_does_not_pile_up() {
        let mut e = Ext::default();
        let kept = RefKey::new(1);
        e.aliases.insert(kept, false);
        e.prioritize(kept);
        let peer = Peer::of(Term::pid(7));
        assert!(e.has_urgent());
        e.links.insert(peer, Link { unlinking: 0 });
        e.prioritize_link(peer, true);
        for n in 2..10_000 {
            e.prioritize(RefKey::new(n));
            e.prioritize_link(Peer::of(Term::pid(n as u32 + 10)), true);
        }
        let u = e.urgent.as_ref().expect("there are some");
        assert!(u.refs.len() + u.links.len() <= 2 * FIRST_LIMIT);
        assert!(e.is_urgent(&kept) && e.take_urgent(&kept) && !e.is_urgent(&kept));
        assert!(e.take_urgent_link(peer) && !e.take_urgent_link(peer));
    }
}
