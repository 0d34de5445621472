//! The output queue of one connection: frames to send, and processes that wait for the queue to
//! become shorter.
//!
//! # Flow control
//! A process that finds more than the limit of bytes waits until half of it is left. But a long
//! message is queued as a whole, and nobody should wait for the end of another process's message.
//! So each time that as many bytes as the limit have been sent, the processes that have waited may
//! send once. A process with a long message of its own in the queue waits for the end of that
//! message. So at most the rest of one long message and one other message of each process are
//! queued. A process may also end with a long reason, which waits for nobody, and new processes may
//! do the same. So first-time waiters are admitted only while few long messages are queued.

use super::flags;
use super::frame::{AtomCache, Fragments, Frame};
use super::process::ext::Hashing;
use super::share::Share;
use super::signal;
use purlin_io::port::channel::Packet;
use purlin_term::Term;
use std::collections::{HashMap, HashSet, VecDeque};

/// Maximum number of long messages before first-time waiters stay blocked. A process is no longer a
/// first-time waiter once it was admitted since the queue was half of the limit.
const FEW_LONG: usize = 4;

/// See the module head.
#[derive(Default)]
pub struct Output {
    queue: VecDeque<Frame>,
    /// Messages being sent in fragments. Those of several senders take turns.
    fragments: VecDeque<Fragments>,
    /// The senders of these.
    fragmented: HashSet<u64, Hashing>,
    /// Whether the next packet is a whole frame. Fragments take turns with the queue.
    whole_next: bool,
    /// Bytes of everything, and those that are in memory for nothing else.
    bytes: usize,
    own: Share,
    cache: AtomCache,
    /// Number of the fragment sequence that was begun last.
    sequence: u64,
    /// Number of queued long messages of each sender that has any, and of all.
    long: HashMap<u64, usize, Hashing>,
    longs: usize,
    /// The processes that wait for the queue to become shorter, in order of arrival; those that
    /// wait for a long message of theirs; and the set of both.
    waiting: Vec<Term>,
    behind_own: HashMap<u64, Term, Hashing>,
    among: HashSet<u32, Hashing>,
    /// The processes that may send now, and all that were admitted since the queue was half of the
    /// limit.
    may_send: HashSet<u32, Hashing>,
    known: HashSet<u32, Hashing>,
    /// Bytes sent since the first waiting process came.
    gone: usize,
    /// Whether the controlling process wants to know when there is something to send.
    pub notify: bool,
    /// Number of packets sent.
    pub packets: u64,
}

impl Output {
    /// Number of bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.fragments.is_empty()
    }
    /// Adds a frame. Returns false if the queue takes too much memory: more than `most` bytes of
    /// its own, or [too much](Share) on all connections.
    pub fn push(&mut self, f: Frame, most: usize) -> bool {
        self.bytes += f.len();
        let fits = self.own.add(f.own(), most);
        if f.is_long() {
            *self.long.entry(f.sender).or_insert(0) += 1;
            self.longs += 1;
        }
        self.queue.push_back(f);
        fits
    }
    /// Drops the frames that `wanted` rejects: those of a pending connection that the other node
    /// cannot handle. Processes that wait for them wait no longer.
    pub fn keep(&mut self, limit: usize, wanted: impl Fn(&Frame) -> bool) {
        let (mut less, mut own) = (0, 0);
        let mut gone = Vec::new();
        self.queue.retain(|f| {
            let stays = wanted(f);
            if !stays {
                less += f.len();
                own += f.own();
                gone.extend(f.is_long().then_some(f.sender));
            }
            stays
        });
        self.bytes -= less;
        self.own.give_back(own);
        gone.into_iter()
            .for_each(|sender| self.long_message_gone(sender));
        if less > 0 {
            self.wake(less, limit);
        }
    }
    /// Makes a process wait that finds more than `limit` bytes, unless it has been admitted.
    /// Returns whether it waits.
    pub fn waits(&mut self, pid: Term, limit: usize) -> bool {
        let key = pid.pid_data();
        if self.bytes < limit || self.may_send.remove(&key) {
            return false;
        }
        if self.among.insert(key) {
            if self.waiting.is_empty() {
                self.gone = 0;
            }
            if self.long.contains_key(&pid.raw()) {
                self.behind_own.insert(pid.raw(), pid);
            } else {
                self.waiting.push(pid);
            }
        }
        true
    }
    /// Wakes waiting processes after that many bytes have been sent.
    fn wake(&mut self, gone: usize, limit: usize) {
        self.gone += gone;
        if self.bytes <= limit / 2 {
            self.wake_all();
        } else if self.gone >= limit && !self.waiting.is_empty() {
            self.gone = 0;
            let mut few = FEW_LONG.saturating_sub(self.longs);
            for pid in std::mem::take(&mut self.waiting) {
                let known = self.known.contains(&pid.pid_data());
                if known || few > 0 {
                    few -= usize::from(!known);
                    self.admit(pid);
                } else {
                    self.waiting.push(pid);
                }
            }
        }
    }
    /// Admits a process that has waited.
    fn admit(&mut self, pid: Term) {
        let key = pid.pid_data();
        self.among.remove(&key);
        self.may_send.insert(key);
        self.known.insert(key);
        signal::send::wake(pid);
    }
    /// Records that a long message of that sender has left the queue.
    fn long_message_gone(&mut self, sender: u64) {
        let Some(n) = self.long.get_mut(&sender) else {
            return;
        };
        *n -= 1;
        self.longs -= 1;
        if *n > 0 {
            return;
        }
        self.long.remove(&sender);
        if let Some(pid) = self.behind_own.remove(&sender) {
            self.admit(pid);
        }
    }
    /// Wakes all waiting processes.
    pub fn wake_all(&mut self) {
        self.may_send.clear();
        self.known.clear();
        if self.among.is_empty() {
            return;
        }
        self.among.clear();
        let own = std::mem::take(&mut self.behind_own);
        for pid in std::mem::take(&mut self.waiting)
            .into_iter()
            .chain(own.into_values())
        {
            signal::send::wake(pid);
        }
    }
    /// The next packet, for a connection with these flags.
    pub fn next(&mut self, with: u64, limit: usize) -> Option<Packet> {
        let before = self.bytes;
        let p = self.next_packet(with)?;
        debug_assert!(self.bytes <= before);
        self.packets += 1;
        self.wake(before - self.bytes, limit);
        Some(p)
    }
    fn next_packet(&mut self, with: u64) -> Option<Packet> {
        // Frames of a sender wait for the end of its long message.
        let free = self.queue.front().is_some_and(|f| {
            self.fragments.is_empty() || (f.sender != 0 && !self.fragmented.contains(&f.sender))
        });
        if free && (self.whole_next || self.fragments.is_empty()) {
            self.whole_next = false;
            let f = self.queue.pop_front()?;
            return Some(self.send(f, with));
        }
        self.whole_next = true;
        let mut g = self.fragments.pop_front()?;
        let before = g.len();
        let p = g.next_packet();
        self.bytes -= before - g.len();
        match g.is_empty() {
            true => {
                self.own.give_back(g.own);
                self.fragmented.remove(&g.sender);
                self.long_message_gone(g.sender);
            }
            false => self.fragments.push_back(g),
        }
        Some(p)
    }
    fn send(&mut self, f: Frame, with: u64) -> Packet {
        let (bytes, sender, long) = (f.len(), f.sender, f.is_long());
        let cache = (with & flags::DIST_HDR_ATOM_CACHE != 0).then_some(&mut self.cache);
        if with & flags::FRAGMENTS != 0 && long {
            self.sequence += 1;
            let (p, rest) = f.in_fragments(cache, self.sequence);
            self.bytes -= bytes - rest.len();
            match rest.is_empty() {
                true => {
                    self.own.give_back(rest.own);
                    self.long_message_gone(sender);
                }
                false => {
                    self.fragmented.insert(sender);
                    self.fragments.push_back(rest);
                }
            }
            return p;
        }
        self.bytes -= bytes;
        self.own.give_back(f.own());
        let p = match with & (flags::DIST_HDR_ATOM_CACHE | flags::FRAGMENTS) {
            0 => f.plain(),
            _ => f.with_header(cache),
        };
        if long {
            self.long_message_gone(sender);
        }
        p
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::FRAGMENT_BYTES;
    use super::*;

    fn frame(n: usize, sender: u64) -> Frame {
        Frame {
            bytes: vec![sender as u8; n],
            split: 4,
            payload: true,
            binaries: Vec::new(),
            atoms: Vec::new(),
            sender,
        }
    }

    #[test]
    fn long_messages_let_others_pass_and_keep_the_order_of_their_sender() {
        let mut out = Output::default();
        let most = 8 * FRAGMENT_BYTES;
        assert!(out.push(frame(5 * FRAGMENT_BYTES, 1), most));
        assert!(out.push(frame(10, 2), most));
        assert!(!out.push(frame(3 * FRAGMENT_BYTES, 3), most));
        out.push(frame(10, 1), most);
        out.push(frame(10, 2), most);
        let with = flags::DIST_HDR_ATOM_CACHE | flags::FRAGMENTS;
        let mut seen = Vec::new();
        while let Some(p) = out.next(with, 1000) {
            let bytes: Vec<u8> = p.iter().flat_map(|p| p.as_bytes().to_vec()).collect();
            seen.push((bytes[1], *bytes.last().unwrap_or(&0)));
        }
        assert_eq!((out.bytes(), out.own.bytes(), out.is_empty()), (0, 0, true));
        let at = |kind: u8, of: u8| seen.iter().position(|&s| s == (kind, of));
        let last = |kind: u8, of: u8| seen.iter().rposition(|&s| s == (kind, of));
        // The small message of sender 2 overtakes; that of sender 1 does not.
        assert!(at(68, 2) < last(70, 1));
        assert!(at(68, 1) > last(70, 1));
        assert_eq!(seen.iter().filter(|s| s.1 == 1).count(), 6);
        assert_eq!(seen.iter().filter(|s| s.1 == 3).count(), 3);
    }

    #[test]
    fn nobody_waits_for_the_end_of_another_s_long_message() {
        let pid = Term::pid;
        let with = flags::DIST_HDR_ATOM_CACHE | flags::FRAGMENTS;
        let limit = 4 * FRAGMENT_BYTES;
        let mut out = Output::default();
        let (long, other, small) = (pid(1), pid(2), pid(3));
        assert!(!out.waits(long, limit));
        assert!(out.push(frame(100 * FRAGMENT_BYTES, long.raw()), usize::MAX));
        // Its sender waits for its end, the others until the limit has been sent once.
        assert!(out.waits(long, limit) && out.waits(other, limit) && out.waits(small, limit));
        let mut packets = 0;
        while !out.may_send.contains(&small.pid_data()) {
            out.next(with, limit).expect("a packet");
            packets += 1;
        }
        assert!((4..=6).contains(&packets), "{packets}");
        assert!(out.waits(long, limit));
        assert!(!out.waits(small, limit) && !out.waits(other, limit));
        // Only once.
        assert!(out.waits(small, limit));
        out.push(frame(50 * FRAGMENT_BYTES, other.raw()), usize::MAX);
        assert!(out.waits(other, limit));
        // The sender whose message ends first continues first, while the other's fills the queue.
        while !out.may_send.contains(&other.pid_data()) {
            out.next(with, limit).expect("a packet");
        }
        assert!(out.bytes() >= limit && out.waits(long, limit));
        while out.next(with, limit).is_some() {}
        assert!(!out.waits(long, limit) && out.among.is_empty() && out.long.is_empty());
        assert!(out.may_send.is_empty() && out.bytes() == 0);
    }

    #[test]
    fn who_waits_for_the_first_time_waits_behind_a_few_long_messages() {
        let with = flags::DIST_HDR_ATOM_CACHE | flags::FRAGMENTS;
        let limit = 4 * FRAGMENT_BYTES;
        let pid = Term::pid;
        let mut out = Output::default();
        let until = |out: &mut Output, who: Term| {
            while !out.may_send.contains(&who.pid_data()) {
                out.next(with, limit).expect("a packet");
            }
        };
        let long = |out: &mut Output, of: u32| {
            out.push(frame(100 * FRAGMENT_BYTES, pid(of).raw()), usize::MAX)
        };
        (1..FEW_LONG as u32).for_each(|of| assert!(long(&mut out, of)));
        assert!(out.waits(pid(10), limit) && out.waits(pid(11), limit));
        until(&mut out, pid(10));
        // One more is the maximum.
        assert!(!out.waits(pid(10), limit) && out.waits(pid(11), limit));
        assert!(long(&mut out, 10) && out.waits(pid(12), limit));
        let before = out.bytes();
        for _ in 0..20 {
            out.next(with, limit).expect("a packet");
        }
        assert!(before - out.bytes() > 2 * limit);
        assert!(out.waits(pid(11), limit) && out.waits(pid(12), limit));
        // An admitted process continues once its own message has gone.
        assert!(out.waits(pid(1), limit));
        until(&mut out, pid(1));
        assert!(out.bytes() >= limit && !out.waits(pid(1), limit));
        assert!(long(&mut out, 20) && long(&mut out, 21));
        assert!(out.waits(pid(1), limit));
        until(&mut out, pid(1));
        assert!(out.longs >= FEW_LONG && out.waiting.len() <= 2);
        while out.bytes() > limit / 2 {
            out.next(with, limit).expect("a packet");
        }
        assert!((1..13).all(|n| !out.waits(pid(n), limit)));
        assert!(out.waiting.is_empty() && out.known.is_empty() && out.among.is_empty());
    }

    #[test]
    fn who_waits_goes_on_where_what_waits_is_dropped() {
        let limit = 4 * FRAGMENT_BYTES;
        let pid = Term::pid;
        let mut out = Output::default();
        let of = |n, sender| frame(n * FRAGMENT_BYTES, pid(sender).raw());
        out.push(of(5, 1), usize::MAX);
        out.push(of(1, 2), usize::MAX);
        assert!(out.waits(pid(1), limit) && out.waits(pid(2), limit));
        // Little is left: nobody waits, though nothing is sent.
        out.keep(limit, |f| f.sender == pid(2).raw());
        assert_eq!(out.bytes(), FRAGMENT_BYTES);
        assert!(out.among.is_empty() && out.waiting.is_empty() && out.behind_own.is_empty());
        assert!(!out.waits(pid(1), limit) && !out.waits(pid(2), limit));
        // Nobody continues where all of it stays.
        out.push(of(5, 3), usize::MAX);
        assert!(out.waits(pid(1), limit));
        out.keep(limit, |_| true);
        assert!(out.waits(pid(1), limit) && out.among.len() == 1);
    }
}
