//! The queue of one connection: frames that wait to go out, and processes that wait for it to become shorter.

use super::flags;
use super::frame::{AtomCache, FRAGMENT_BYTES, Fragments, Frame};
use super::process::ext::Hashing;
use super::signal;
use purlin_io::port::channel::Packet;
use purlin_term::Term;
use std::collections::{HashSet, VecDeque};

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
    own: usize,
    cache: AtomCache,
    /// Number of the sequence of fragments that was begun last.
    sequence: u64,
    /// The processes that wait for the queue to become shorter, in the order in which they came; and the same as a set.
    waiting: Vec<Term>,
    among: HashSet<u32, Hashing>,
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
    /// Adds a frame. False: more waits than may, which is `most` bytes of its own.
    pub fn push(&mut self, f: Frame, most: usize) -> bool {
        self.bytes += f.len();
        self.own += f.own();
        self.queue.push_back(f);
        self.own <= most
    }
    /// Drops the frames that `wanted` doesn't want: those of a pending connection that the other node can't take.
    pub fn keep(&mut self, wanted: impl Fn(&Frame) -> bool) {
        let (mut less, mut own) = (0, 0);
        self.queue.retain(|f| {
            let stays = wanted(f);
            if !stays {
                less += f.len();
                own += f.own();
            }
            stays
        });
        self.bytes -= less;
        self.own -= own;
    }
    /// Has a process woken when less than half of `limit` bytes wait.
    pub fn wait(&mut self, pid: Term) {
        if self.among.insert(pid.pid_data()) {
            self.waiting.push(pid);
        }
    }
    /// Wakes the waiting processes, if no more than half of `limit` bytes are queued.
    fn wake(&mut self, limit: usize) {
        if !self.waiting.is_empty() && self.bytes <= limit / 2 {
            self.wake_all();
        }
    }
    /// Has all that wait try again.
    pub fn wake_all(&mut self) {
        self.among.clear();
        for pid in std::mem::take(&mut self.waiting) {
            signal::send::wake(pid);
        }
    }
    /// The next packet, for a connection with these flags.
    pub fn next(&mut self, with: u64, limit: usize) -> Option<Packet> {
        let before = self.bytes;
        let p = self.next_packet(with)?;
        debug_assert!(self.bytes <= before);
        self.packets += 1;
        self.wake(limit);
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
            true => self.own -= g.own,
            false => self.fragments.push_back(g),
        }
        Some(p)
    }
    fn send(&mut self, f: Frame, with: u64) -> Packet {
        let bytes = f.len();
        let cache = (with & flags::DIST_HDR_ATOM_CACHE != 0).then_some(&mut self.cache);
        if with & flags::FRAGMENTS != 0 && f.payload && bytes - f.split > FRAGMENT_BYTES {
            self.sequence += 1;
            let (p, rest) = f.in_fragments(cache, self.sequence);
            self.bytes -= bytes - rest.len();
            match rest.is_empty() {
                true => self.own -= rest.own,
                false => self.fragments.push_back(rest),
            }
            return p;
        }
        self.bytes -= bytes;
        self.own -= f.own();
        if with & (flags::DIST_HDR_ATOM_CACHE | flags::FRAGMENTS) != 0 {
            f.with_header(cache)
        } else {
            f.plain()
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!((out.bytes(), out.own, out.is_empty()), (0, 0, true));
        let at = |kind: u8, of: u8| seen.iter().position(|&s| s == (kind, of));
        let last = |kind: u8, of: u8| seen.iter().rposition(|&s| s == (kind, of));
        // The small one of 2 overtakes, that of 1 doesn't.
        assert!(at(68, 2) < last(70, 1));
        assert!(at(68, 1) > last(70, 1));
        assert_eq!(seen.iter().filter(|s| s.1 == 1).count(), 6);
        assert_eq!(seen.iter().filter(|s| s.1 == 3).count(), 3);
    }
}
