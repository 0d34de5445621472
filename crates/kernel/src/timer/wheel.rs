//! A hierarchical timing wheel over nodes that bring their own links: starting, cancelling and
//! firing a timer take constant time and allocate nothing.
//!
//! Time is counted in ticks (milliseconds) from the wheel's start. Level `l` has 64 slots of 64^l
//! ticks each. A timer sits in the level of the highest 6-bit digit in which its deadline differs
//! from the current tick, and moves down a level when the wheel gets there. Six levels span 2^36
//! ticks (two years); later timers sit in an overflow list that is scanned when the top level
//! turns. One occupancy bitmap per level gives the tick of the next event without walking the
//! slots.
//!
//! Nodes are named by `u32` ids, so that the links of a receive timer take eight bytes per process
//! cell.

/// No node.
pub const NONE: u32 = u32::MAX;
const LEVELS: usize = 6;
const SLOTS: usize = 64;
/// Slot number of the overflow list.
const OVERFLOW: u16 = (LEVELS * SLOTS) as u16;
/// In [`Node::when`]: the node is in no list.
const IDLE: u64 = 0;
const SLOT_BITS: u32 = 16;
/// The latest deadline, some nine thousand years after the start. Later ones fire then.
pub(crate) const MAX_TICK: u64 = (1 << (64 - SLOT_BITS)) - 1;

/// The data of a wheel in each node: 16 bytes. All zeros is an idle node, so that nodes may lie in
/// memory fresh from the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Node {
    /// Deadline in ticks << 16 | slot number + 1; the low half word is [`IDLE`] if the timer
    /// doesn't run.
    when: u64,
    next: u32,
    prev: u32,
}

impl Node {
    /// Whether the timer runs.
    pub(crate) fn is_active(&self) -> bool {
        self.when & ((1 << SLOT_BITS) - 1) != IDLE
    }
    /// Returns the tick at which it fires, fired, or would have fired.
    pub(crate) fn deadline(&self) -> u64 {
        self.when >> SLOT_BITS
    }
    fn slot(&self) -> u16 {
        (self.when as u16).wrapping_sub(1)
    }
    fn set(&mut self, deadline: u64, slot: u16) {
        self.when = deadline << SLOT_BITS | (u64::from(slot) + 1);
    }
    fn set_idle(&mut self) {
        self.when &= !((1 << SLOT_BITS) - 1);
    }
}

const _: () = assert!(size_of::<Node>() == 16);

/// The memory of a wheel's nodes.
pub trait Nodes {
    fn node(&mut self, id: u32) -> &mut Node;
}

/// See the module docs.
pub(crate) struct Wheel {
    /// All ticks before this one have been handled.
    now: u64,
    heads: [u32; LEVELS * SLOTS + 1],
    occupied: [u64; LEVELS],
    count: usize,
}

impl Wheel {
    /// Returns an empty wheel at tick `now`.
    pub const fn new(now: u64) -> Wheel {
        Wheel {
            now,
            heads: [NONE; LEVELS * SLOTS + 1],
            occupied: [0; LEVELS],
            count: 0,
        }
    }
    /// Number of running timers.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.count
    }
    fn slot_for(&self, deadline: u64) -> u16 {
        let d = deadline.max(self.now);
        let diff = d ^ self.now;
        let level = if diff == 0 {
            0
        } else {
            (63 - diff.leading_zeros() as usize) / 6
        };
        if level >= LEVELS {
            OVERFLOW
        } else {
            (level * SLOTS + (d >> (6 * level)) as usize % SLOTS) as u16
        }
    }
    fn link(&mut self, ns: &mut impl Nodes, id: u32) {
        let deadline = ns.node(id).deadline();
        let slot = self.slot_for(deadline);
        let head = self.heads[slot as usize];
        if head != NONE {
            ns.node(head).prev = id;
        }
        let n = ns.node(id);
        (n.next, n.prev) = (head, NONE);
        n.set(deadline, slot);
        self.heads[slot as usize] = id;
        if slot != OVERFLOW {
            self.occupied[slot as usize / SLOTS] |= 1 << (slot as usize % SLOTS);
        }
    }
    fn unlink(&mut self, ns: &mut impl Nodes, id: u32) {
        let n = *ns.node(id);
        let (next, prev, slot) = (n.next, n.prev, n.slot());
        if next != NONE {
            ns.node(next).prev = prev;
        }
        if prev != NONE {
            ns.node(prev).next = next;
        } else {
            self.heads[slot as usize] = next;
            if next == NONE && slot != OVERFLOW {
                self.occupied[slot as usize / SLOTS] &= !(1 << (slot as usize % SLOTS));
            }
        }
        ns.node(id).set_idle();
    }
    /// Starts the timer of node `id`, which must be idle, to fire when the wheel gets to tick
    /// `deadline`.
    pub fn start(&mut self, ns: &mut impl Nodes, id: u32, deadline: u64) {
        debug_assert!(!ns.node(id).is_active());
        ns.node(id).set(deadline.min(MAX_TICK), 0);
        self.link(ns, id);
        self.count += 1;
    }
    /// Stops a timer. Returns whether it ran.
    pub fn cancel(&mut self, ns: &mut impl Nodes, id: u32) -> bool {
        if !ns.node(id).is_active() {
            return false;
        }
        self.unlink(ns, id);
        self.count -= 1;
        true
    }
    /// Returns the tick before which [`Wheel::advance`] has nothing to do, at or before the
    /// earliest deadline; `None` if no timer runs.
    pub(crate) fn next_event(&self) -> Option<u64> {
        for l in 0..LEVELS {
            let at = (self.now >> (6 * l)) as usize % SLOTS;
            let ahead = self.occupied[l] >> at << at;
            if ahead != 0 {
                let slot = ahead.trailing_zeros() as u64;
                let base = self.now >> (6 * (l + 1)) << (6 * (l + 1));
                return Some((base + (slot << (6 * l))).max(self.now));
            }
        }
        (self.heads[OVERFLOW as usize] != NONE)
            .then(|| ((self.now >> (6 * LEVELS)) + 1) << (6 * LEVELS))
    }
    /// Moves the wheel to tick `now`, and calls `fire` with each node whose deadline is at or
    /// before it, in order of deadline (in any order within a tick). Fired nodes are idle.
    pub fn advance<N: Nodes>(&mut self, ns: &mut N, now: u64, mut fire: impl FnMut(&mut N, u32)) {
        while let Some(t) = self.next_event() {
            if t > now {
                break;
            }
            self.now = t;
            self.descend(ns);
            let slot = t as usize % SLOTS;
            while self.heads[slot] != NONE {
                let id = self.heads[slot];
                self.unlink(ns, id);
                self.count -= 1;
                fire(ns, id);
            }
            // The tick is done. The next event handles the step into a new slot of a higher level.
            self.now = t + 1;
            self.descend(ns);
        }
        if now >= self.now {
            self.now = now;
            self.descend(ns);
        }
    }
    /// Spreads the slots of higher levels that begin at the current tick over the levels below.
    fn descend(&mut self, ns: &mut impl Nodes) {
        let top = (self.now.trailing_zeros() as usize / 6).min(LEVELS);
        if top >= LEVELS || self.now == 0 {
            self.spill(ns, OVERFLOW as usize);
        }
        // The wheel may have jumped, so its digit may have changed in any level: the slot at that
        // digit belongs below.
        for l in (1..LEVELS).rev() {
            self.spill(ns, l * SLOTS + (self.now >> (6 * l)) as usize % SLOTS);
        }
    }
    fn spill(&mut self, ns: &mut impl Nodes, slot: usize) {
        let mut id = std::mem::replace(&mut self.heads[slot], NONE);
        if slot != OVERFLOW as usize {
            self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
        }
        while id != NONE {
            let next = ns.node(id).next;
            self.link(ns, id);
            id = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    struct Vn(Vec<Node>);
    impl Nodes for Vn {
        fn node(&mut self, id: u32) -> &mut Node {
            &mut self.0[id as usize]
        }
    }
    struct Rng(u64);
    impl Rng {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % n
        }
    }

    /// Random starts, cancels and advances, compared with a map from deadline to nodes.
    #[test]
    fn agrees_with_a_sorted_map() {
        for seed in 1..40 {
            let mut r = Rng(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
            let start = r.below(1 << 38);
            let mut w = Wheel::new(start);
            let mut ns = Vn(vec![Node::default(); 200]);
            let mut model: BTreeMap<(u64, u32), ()> = BTreeMap::new();
            let mut now = start;
            for _ in 0..3000 {
                let id = r.below(200) as u32;
                match r.below(4) {
                    0 | 1 if !ns.0[id as usize].is_active() => {
                        let span = 1u64 << r.below(40);
                        let d = now + r.below(span);
                        w.start(&mut ns, id, d);
                        model.insert((d, id), ());
                    }
                    2 => {
                        let d = ns.0[id as usize].deadline();
                        assert_eq!(w.cancel(&mut ns, id), model.remove(&(d, id)).is_some());
                    }
                    _ => {
                        let span = 1u64 << r.below(37);
                        // A timer that is overdue when it starts shares a tick with those due next.
                        let first = now + 1;
                        now += 1 + r.below(span);
                        let mut fired = vec![];
                        w.advance(&mut ns, now, |ns, id| {
                            fired.push((ns.0[id as usize].deadline(), id))
                        });
                        let later = model.split_off(&(now + 1, 0));
                        let mut want: Vec<_> =
                            std::mem::replace(&mut model, later).into_keys().collect();
                        assert!(
                            fired.is_sorted_by_key(|f| f.0.max(first)),
                            "in order of deadline"
                        );
                        fired.sort();
                        want.sort();
                        assert_eq!(fired, want, "seed {seed} now {now}");
                    }
                }
                assert_eq!(w.len(), model.len());
                if let (Some(e), Some((&(d, _), _))) = (w.next_event(), model.first_key_value()) {
                    assert!(
                        e <= d.max(now + 1),
                        "the next event is not late: {e} > {d} (now {now})"
                    );
                }
                assert_eq!(w.next_event().is_none(), model.is_empty());
            }
        }
    }
}
