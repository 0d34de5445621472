//! The queue of one connection: frames that wait to go out, and processes that wait for it to become shorter.
//!
//! # Who waits
//! A process that finds more than the limit of bytes waits until there is half of it. But a long message is here as a whole, and nobody
//! is to wait for the end of another's: each time that as many bytes as the limit have gone out, those that have waited may send, once. A
//! process that has a long message here itself waits for the end of that. So of each process there is the rest of one, at most, and a
//! message beside. A process may also end with a long reason, which waits for nobody, and others be made that do the same: who waits
//! for the first time may only send while there are few long messages.

use super::flags;
use super::frame::{AtomCache, Fragments, Frame};
use super::process::ext::Hashing;
use super::share::Share;
use super::signal;
use purlin_io::port::channel::Packet;
use purlin_term::Term;
use std::collections::{HashMap, HashSet, VecDeque};

/// With so many long messages in the queue nobody may send who waits for the first time since it was half of the limit.
const FEW_LONG: usize = 4;

/// See the module head.
#[derive(Default)]
pub struct Output {
    queue: VecDeque<Frame>,
    /// Messages that go in fragments: those of several senders take turns.
    fragments: VecDeque<Fragments>,
    /// Fragments take turns with what is in the queue.
    whole_next: bool,
    /// Bytes of all, and those of them that are in memory for nothing else.
    bytes: usize,
    own: Share,
    cache: AtomCache,
    /// Number of the sequence of fragments that was begun last.
    sequence: u64,
    /// Senders of long messages that are here, and how many each has; and how many there are of
    /// all.
    long: HashMap<u64, usize, Hashing>,
    longs: usize,
    /// The processes that wait for the queue to become shorter, in the order in which they came; those that wait for a long message
    /// of theirs; and both as a set.
    waiting: Vec<Term>,
    behind_own: HashMap<u64, Term, Hashing>,
    among: HashSet<u32, Hashing>,
    /// Those that may send now, and all that might since the queue was half of the limit.
    may_send: HashSet<u32, Hashing>,
    known: HashSet<u32, Hashing>,
    /// Bytes that have gone out since the first of those who wait did.
    gone: usize,
    /// The process that controls the connection wants to be told when there is something.
    pub notify: bool,
    /// Packets that have gone out.
    pub packets: u64,
}

impl Output {
    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.fragments.is_empty()
    }
    /// Adds a frame. False: more waits than may: more than `most` bytes of its own, or [more](Share) than on all connections.
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
    /// Drops the frames that `wanted` doesn't want: those of a pending connection that the other node can't take. Who waits for them
    /// to be gone waits no longer.
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
            .for_each(|sender| self.long_one_gone(sender));
        if less > 0 {
            self.wake(less, limit);
        }
    }
    /// Has a process wait (true) that finds more than `limit` bytes, unless it has waited.
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
    /// Wakes processes that wait, after so many bytes have gone out.
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
                    self.lets_send(pid);
                } else {
                    self.waiting.push(pid);
                }
            }
        }
    }
    /// Has a process send that has waited.
    fn lets_send(&mut self, pid: Term) {
        let key = pid.pid_data();
        self.among.remove(&key);
        self.may_send.insert(key);
        self.known.insert(key);
        signal::send::wake(pid);
    }
    /// A long message of that sender is here no longer.
    fn long_one_gone(&mut self, sender: u64) {
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
            self.lets_send(pid);
        }
    }
    /// Has all that wait try again.
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
        // Frames of a sender in the midst of a long message wait for the end of that.
        let free = self.queue.front().is_some_and(|f| {
            self.fragments.is_empty()
                || (f.sender != 0 && self.fragments.iter().all(|g| g.sender != f.sender))
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
                self.long_one_gone(g.sender);
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
                    self.long_one_gone(sender);
                }
                false => self.fragments.push_back(rest),
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
            self.long_one_gone(sender);
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
        // The small one of 2 overtakes, that of 1 doesn't.
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
        // Its sender waits for the end of it, the others until the limit has gone out once.
        assert!(out.waits(long, limit) && out.waits(other, limit) && out.waits(small, limit));
        let mut packets = 0;
        while !out.may_send.contains(&small.pid_data()) {
            out.next(with, limit).expect("a packet");
            packets += 1;
        }
        assert!((4..=6).contains(&packets), "{packets}");
        assert!(out.waits(long, limit));
        assert!(!out.waits(small, limit) && !out.waits(other, limit));
        // Once.
        assert!(out.waits(small, limit));
        out.push(frame(50 * FRAGMENT_BYTES, other.raw()), usize::MAX);
        assert!(out.waits(other, limit));
        // Whose message ends first goes on first, while the other's fills the queue.
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
        // One more is as many as may be.
        assert!(!out.waits(pid(10), limit) && out.waits(pid(11), limit));
        assert!(long(&mut out, 10) && out.waits(pid(12), limit));
        let before = out.bytes();
        for _ in 0..20 {
            out.next(with, limit).expect("a packet");
        }
        assert!(before - out.bytes() > 2 * limit);
        assert!(out.waits(pid(11), limit) && out.waits(pid(12), limit));
        // One that has been let through goes on, once its own message has gone.
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
        // What is left is little: nobody waits, though nothing goes out.
        out.keep(limit, |f| f.sender == pid(2).raw());
        assert_eq!(out.bytes(), FRAGMENT_BYTES);
        assert!(out.among.is_empty() && out.waiting.is_empty() && out.behind_own.is_empty());
        assert!(!out.waits(pid(1), limit) && !out.waits(pid(2), limit));
        // Nobody goes on where all of it stays.
        out.push(of(5, 3), usize::MAX);
        assert!(out.waits(pid(1), limit));
        out.keep(limit, |_| true);
        assert!(out.waits(pid(1), limit) && out.among.len() == 1);
    }
}
