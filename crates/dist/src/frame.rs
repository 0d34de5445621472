//! Frames: control messages with payloads, as one or several packets of a connection.
//!
//! Without a header a frame is `112`, the control message and its payload, each with its version.
//! With a header (if both nodes have the atom cache or fragments) it is `131, 68`, the atoms that
//! the message refers to, then both without a version. A long message is sent in fragments: the
//! first is `131, 69` with the number of the sequence and the number of fragments left, before the
//! atoms; the others are `131, 70` with the same numbers.

use purlin_io::port::channel::Packet;
use purlin_term::etf::VERSION;
use purlin_term::etf::encode::{ATOM_SLOTS, atom_slot};
use purlin_term::iolist::{IoSlice, IoVec};
use purlin_term::{NIL, Term, atom};

/// First byte of a frame without a header.
pub const PASS_THROUGH: u8 = 112;
/// Kinds of headers, behind the version.
pub const HEADER: u8 = 68;
pub const FRAGMENT: u8 = 69;
pub const MORE: u8 = 70;

/// A frame of at least this many bytes, without its counted binaries, is sent without a copy.
const LONG_BYTES: usize = 16 * 1024;

/// Number of bytes of a fragment.
pub const FRAGMENT_BYTES: usize = 64 * 1024;

/// An encoded control message with its payload.
pub struct Frame {
    /// Both, without the contents of counted binaries.
    pub bytes: Vec<u8>,
    /// The end of the control message.
    pub split: usize,
    /// Whether there is a payload.
    pub payload: bool,
    /// Counted binaries and parts shared with other frames, each with the index of the byte that it
    /// precedes. None of them is in the control message.
    pub binaries: Vec<(usize, IoSlice)>,
    /// The atoms that the frame refers to.
    pub atoms: Vec<Term>,
    /// The sender, whose messages keep their order, or 0 if no order matters.
    pub sender: u64,
}

impl Frame {
    /// Number of bytes, without any header.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.binaries.iter().map(|b| b.1.len()).sum::<usize>()
    }
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// Approximate number of bytes that belong to this frame alone.
    pub fn own(&self) -> usize {
        self.bytes.len() + size_of::<Frame>() + size_of_val(&*self.atoms)
    }
    /// Whether the frame is sent in fragments to a node that supports them.
    pub fn is_long(&self) -> bool {
        self.payload && self.len() - self.split > FRAGMENT_BYTES
    }
    /// Whether the frame cannot be sent, because lengths have four bytes.
    pub fn is_too_large(&self) -> bool {
        let most = u32::MAX as usize;
        self.bytes.len() > most || self.binaries.iter().any(|b| b.1.len() > most)
    }
    /// The number of the control message, behind the tag and size of its tuple and the tag of a
    /// number.
    pub fn code(&self) -> u8 {
        self.bytes.get(3).copied().unwrap_or(0)
    }
    /// The parts behind `head`, which the control message follows at once. `between` precedes the
    /// payload.
    fn parts(self, mut head: Vec<u8>, between: &[u8]) -> Packet {
        head.extend_from_slice(&self.bytes[..self.split]);
        if self.payload {
            head.extend_from_slice(between);
        }
        let mut parts = Packet::new();
        let mut at = self.split;
        if self.bytes.len() >= LONG_BYTES {
            // The bytes are sent from where they are.
            parts.push(IoSlice::copy_of(&head));
            let all = IoSlice::of_vec(self.bytes);
            for (before, b) in self.binaries {
                parts.push(all.part(at, before - at));
                parts.push(b);
                at = before;
            }
            parts.push(all.part(at, all.len() - at));
            parts.retain(|p| !p.is_empty());
            return parts;
        }
        for (before, b) in self.binaries {
            head.extend_from_slice(&self.bytes[at..before]);
            if !head.is_empty() {
                parts.push(IoSlice::copy_of(&head));
            }
            head.clear();
            parts.push(b);
            at = before;
        }
        head.extend_from_slice(&self.bytes[at..]);
        if !head.is_empty() {
            parts.push(IoSlice::copy_of(&head));
        }
        parts
    }
    /// The packet for a connection without headers.
    pub fn plain(self) -> Packet {
        self.parts(vec![PASS_THROUGH, VERSION], &[VERSION])
    }
    /// The packet for a connection with headers. `cache` holds the atoms that the other node knows.
    pub fn with_header(self, cache: Option<&mut AtomCache>) -> Packet {
        let mut head = vec![VERSION, HEADER];
        push_atoms(&self.atoms, cache, &mut head);
        self.parts(head, &[])
    }
    /// The first packet of the fragmented frame, and the other fragments.
    pub fn in_fragments(self, cache: Option<&mut AtomCache>, sequence: u64) -> (Packet, Fragments) {
        let head_bytes = self.split + FRAGMENT_BYTES;
        let rest = self.len().saturating_sub(head_bytes);
        let left = rest.div_ceil(FRAGMENT_BYTES) as u64;
        let mut head = vec![VERSION, FRAGMENT];
        head.extend(sequence.to_be_bytes());
        head.extend((left + 1).to_be_bytes());
        push_atoms(&self.atoms, cache, &mut head);
        let n = head.len() + head_bytes;
        let sender = self.sender;
        let own = self.own();
        let mut bytes = IoVec::default();
        for p in self.parts(head, &[]) {
            bytes.push(p);
        }
        let first = cut(&mut bytes, n);
        let rest = Fragments {
            bytes,
            sequence,
            left,
            sender,
            own,
        };
        (first, rest)
    }
}

/// Takes the first `n` bytes.
fn cut(from: &mut IoVec, mut n: usize) -> Packet {
    let mut to = Packet::new();
    while n > 0
        && let Some(p) = from.parts.front()
    {
        let part = p.front(n);
        n -= part.len();
        from.advance(part.len());
        to.push(part);
    }
    to
}

/// The unsent fragments of a message.
pub struct Fragments {
    bytes: IoVec,
    sequence: u64,
    left: u64,
    pub sender: u64,
    /// As [`Frame::own`], until the last fragment has been sent.
    pub own: usize,
}

impl Fragments {
    /// Number of bytes left.
    pub fn len(&self) -> usize {
        self.bytes.bytes
    }
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
    pub fn next_packet(&mut self) -> Packet {
        let mut head = vec![VERSION, MORE];
        head.extend(self.sequence.to_be_bytes());
        head.extend(self.left.to_be_bytes());
        self.left -= 1;
        let mut packet = Packet::new();
        packet.push(IoSlice::copy_of(&head));
        packet.extend(cut(&mut self.bytes, FRAGMENT_BYTES));
        packet
    }
}

/// The atoms that one side of a connection has sent to the other. Allocated with the first atom,
/// because many more nodes are only named than connected.
#[derive(Default)]
pub struct AtomCache(Option<Box<[Term; ATOM_SLOTS]>>);

impl AtomCache {
    fn slots(&mut self) -> &mut [Term; ATOM_SLOTS] {
        self.0.get_or_insert_with(|| Box::new([NIL; ATOM_SLOTS]))
    }
}

// Bits of a half byte of the header, one half byte per atom: the atom is new to the cache; the
// upper bits of its slot.
const NEW: u8 = 8;
const SLOT_HIGH: u8 = 7;
/// Bit of the half byte behind those: atoms have two-byte lengths.
const LONG: u8 = 1;

/// Writes the atoms that a message refers to.
fn push_atoms(atoms: &[Term], cache: Option<&mut AtomCache>, out: &mut Vec<u8>) {
    out.push(atoms.len() as u8);
    let Some(cache) = cache.filter(|_| !atoms.is_empty()) else {
        return;
    };
    let flags = out.len();
    let long = atoms.iter().any(|&a| atom::name(a).len() > 255);
    out.resize(flags + atoms.len() / 2 + 1, 0);
    let half = |out: &mut Vec<u8>, i: usize, v: u8| out[flags + i / 2] |= v << (4 * (i & 1));
    for (i, &a) in atoms.iter().enumerate() {
        let slot = atom_slot(a);
        let known = std::mem::replace(&mut cache.slots()[slot], a) == a;
        half(out, i, (slot >> 8) as u8 | if known { 0 } else { NEW });
        out.push(slot as u8);
        if !known {
            let name = atom::name(a);
            if long {
                out.extend((name.len() as u16).to_be_bytes());
            } else {
                out.push(name.len() as u8);
            }
            out.extend(name.as_bytes());
        }
    }
    half(out, atoms.len(), if long { LONG } else { 0 });
}

/// Reads the atoms that a message refers to. Returns them and the start of the message. None if the
/// bytes are malformed.
pub fn read_atoms(bytes: &[u8], cache: &mut AtomCache) -> Option<(Vec<Term>, usize)> {
    let (&n, rest) = bytes.split_first()?;
    let n = n as usize;
    if n == 0 {
        return Some((Vec::new(), 1));
    }
    let (flags, mut rest) = rest.split_at_checked(n / 2 + 1)?;
    let half = |i: usize| flags[i / 2] >> (4 * (i & 1)) & 15;
    let long = half(n) & LONG != 0;
    let mut atoms = Vec::with_capacity(n);
    let mut take = |n: usize| {
        let (a, b) = rest.split_at_checked(n)?;
        rest = b;
        Some(a)
    };
    for i in 0..n {
        let slot = ((half(i) & SLOT_HIGH) as usize) << 8 | take(1)?[0] as usize;
        if half(i) & NEW == 0 {
            atoms.push(Some(cache.slots()[slot]).filter(|a| a.is_atom())?);
            continue;
        }
        let len = match long {
            true => take(2).map(|b| u16::from_be_bytes([b[0], b[1]]) as usize)?,
            false => take(1)?[0] as usize,
        };
        let name = std::str::from_utf8(take(len)?).ok()?;
        let a = atom::try_intern(name).ok()?;
        cache.slots()[slot] = a;
        atoms.push(a);
    }
    Some((atoms, bytes.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms_are_told_once() {
        let names: Vec<Term> = (0..255)
            .map(|i| atom::intern(&format!("told_{i}")))
            .collect();
        let (mut out, mut inn) = (AtomCache::default(), AtomCache::default());
        let long = atom::intern(&"å".repeat(200));
        for some in [&names[..1], &names[..7], &names[3..9], &names, &[long], &[]] {
            let mut sizes = Vec::new();
            for _ in 0..2 {
                let mut bytes = Vec::new();
                push_atoms(some, Some(&mut out), &mut bytes);
                sizes.push(bytes.len());
                bytes.extend(b"rest");
                let read = read_atoms(&bytes, &mut inn);
                assert_eq!(read, Some((some.to_vec(), bytes.len() - 4)));
            }
            assert!(sizes[1] <= 2 + some.len() / 2 + some.len());
        }
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let mut cache = AtomCache::default();
        for bytes in [
            &[1][..],
            &[1, 0, 5],
            &[2, 8, 0, 1],
            &[1, 8, 0, 9, b'a'],
            &[1, 8, 0, 1, 255],
        ] {
            assert_eq!(read_atoms(bytes, &mut cache), None);
        }
    }
}
