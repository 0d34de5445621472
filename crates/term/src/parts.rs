//! The parts of identifiers and of maps that comparison, hashing, printing and the external term
//! format share.

use crate::layout::{self, MAP_FLAT, RefView};
use crate::node;
use crate::word::{PID_NUM_BITS, Subtag, Term};
use smallvec::SmallVec;

/// Number and serial of a pid, with the name and creation of its node.
pub fn pid_parts(t: Term) -> Option<(u32, u32, Term, u32)> {
    if t.is_local_pid() {
        let d = t.pid_data();
        let (name, creation) = node::this_node();
        let number = d & ((1 << PID_NUM_BITS) - 1);
        return Some((number, d >> PID_NUM_BITS, name, creation));
    }
    if t.subtag()? != Subtag::ExtPid {
        return None;
    }
    let (n, d) = t.as_external()?;
    Some((d as u32, (d >> 32) as u32, n.name, n.creation))
}

/// Number of a port, with the name and creation of its node.
pub fn port_parts(t: Term) -> Option<(u64, Term, u32)> {
    if t.is_local_port() {
        let (name, creation) = node::this_node();
        return Some((t.pid_data() as u64, name, creation));
    }
    if t.subtag()? != Subtag::ExtPort {
        return None;
    }
    let (n, d) = t.as_external()?;
    Some((d, n.name, n.creation))
}

/// Numbers of a reference, with the name and creation of its node.
pub fn ref_parts(t: Term) -> Option<(SmallVec<[u32; 5]>, Term, u32)> {
    Some(match t.as_ref_view()? {
        RefView::External { node, nums } => (SmallVec::from_slice(nums), node.name, node.creation),
        v => {
            let n = v.local_nums()?;
            let (name, creation) = node::this_node();
            (SmallVec::from_slice(&n), name, creation)
        }
    })
}

/// Keys and values of a map in the order that programs see: in a hash map, from the last child of
/// each node to the first.
pub fn hashmap_pairs(m: Term, out: &mut Vec<(Term, Term)>) {
    let mut todo: SmallVec<[Term; 64]> = SmallVec::new();
    todo.push(m);
    while let Some(t) = todo.pop() {
        if let Some((k, v)) = t.as_cons() {
            out.push((k, v));
            continue;
        }
        // SAFETY: layout of hash maps: children are cons cells (leaves) or boxed nodes. The last
        // child comes first.
        unsafe {
            let p = t.ptr();
            let h = (*p).raw();
            if layout::map_kind(h) == MAP_FLAT {
                if let Some((ks, vs)) = t.as_flatmap() {
                    out.extend(ks.iter().copied().zip(vs.iter().copied()));
                }
                continue;
            }
            let first = if layout::map_kind(h) == layout::MAP_NODE {
                1
            } else {
                2
            };
            for i in first..layout::map_words(p) {
                todo.push(*p.add(i));
            }
        }
    }
}
