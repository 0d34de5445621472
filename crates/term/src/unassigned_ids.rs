//! Identifiers of this node that no process or port ever has here: others may hold and send such
//! identifiers.

use crate::alloc::Alloc;
use crate::node::{self, Node};
use crate::release::{self, WIDE_IDENTIFIERS};
use crate::word::{Subtag, Term};

/// A pid or port of this node that no process or port ever has here: its number or serial has more
/// bits than those that are given out. None if no node of this release has such an identifier.
pub fn unassigned_id<A: Alloc + ?Sized>(
    subtag: Subtag,
    number: u64,
    serial: u32,
    a: &mut A,
) -> Option<Term> {
    // Bits of the number of a pid, whose serial may be any, or of a port.
    let bits = if subtag == Subtag::ExtPid { 28 } else { 60 };
    if number >> bits != 0 || !release::has(WIDE_IDENTIFIERS) {
        return None;
    }
    let (name, creation) = node::this_node();
    let n = node::intern(name, creation);
    Some(a.external(subtag, n, number | u64::from(serial) << 32))
}

/// Whether a term is one that [`unassigned_id`] makes.
pub fn is_unassigned_id(t: Term) -> bool {
    let here = |n: &Node| (n.name, n.creation) == node::this_node();
    t.as_external().is_some_and(|(n, _)| here(n))
}
