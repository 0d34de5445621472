//! Frames: what goes over a connection as one packet, or as several.
//!
//! Without a header a frame is `112`, the control message and what comes behind it, each with its version. With a header
//! (where both nodes have the cache of atoms or fragments) it is `131, 68`, the atoms that the message refers to, then
//! both without a version. A message that is long goes in fragments: `131, 69` with the number of the sequence, and the number
//! of fragments left, before the atoms of the first, and `131, 70` with the same numbers before the others.

use purlin_io::port::channel::Packet;
use purlin_term::etf::VERSION;
use purlin_term::etf::encode::{ATOM_SLOTS, atom_slot};
use purlin_term::iolist::{IoSlice, IoVec};
use purlin_term::{NIL, Term, atom};

/// First byte of a frame that has no header.
pub const PASS_THROUGH: u8 = 112;
/// Behind the version, kinds of headers.
pub const HEADER: u8 = 68;
pub const FRAGMENT: u8 = 69;
pub const MORE: u8 = 70;

/// A frame of so many bytes, without its large binaries, isn't copied when it goes out.
const LONG_BYTES: usize = 16 * 1024;

/// Bytes of a fragment.
pub const FRAGMENT_BYTES: usize = 64 * 1024;

/// A control message and what comes behind it, encoded.
pub struct Frame {
    /// Both, without the contents of large binaries.
    pub bytes: Vec<u8>,
    /// Where the control message ends.
    pub split: usize,
    /// Whether there is something behind it.
    pub payload: bool,
    /// Large binaries and parts of terms that other frames have too, each with the index of the byte that it belongs in front of;
    /// none in the control message.
    pub binaries: Vec<(usize, IoSlice)>,
    /// Atoms that it refers to.
    pub atoms: Vec<Term>,
    /// The sender, whose messages keep their order; 0: no order has to be kept.
    pub sender: u64,
}

impl Frame {
    /// Bytes of it, without any header.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.binaries.iter().map(|b| b.1.len()).sum::<usize>()
    }
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// Bytes that nothing else has, about.
    pub fn own(&self) -> usize {
        self.bytes.len() + size_of::<Frame>() + size_of_val(&*self.atoms)
    }
    /// Whether it goes in fragments, if the other node knows them.
    pub fn is_long(&self) -> bool {
        self.payload && self.len() - self.split > FRAGMENT_BYTES
    }
    /// Whether it can't be sent: lengths are told in four bytes.
    pub fn is_too_large(&self) -> bool {
        let most = u32::MAX as usize;
        self.bytes.len() > most || self.binaries.iter().any(|b| b.1.len() > most)
    }
    /// The number of the control message: behind the tag and the size of its tuple, and the tag of a number.
    pub fn code(&self) -> u8 {
        self.bytes.get(3).copied().unwrap_or(0)
    }
    /// The parts behind `head`, which the control message follows at once; `between` comes before the payload.
    fn parts(self, mut head: Vec<u8>, between: &[u8]) -> Packet {
        head.extend_from_slice(&self.bytes[..self.split]);
        if self.payload {
            head.extend_from_slice(between);
        }
        let mut parts = Packet::new();
        let mut at = self.split;
        if self.bytes.len() >= LONG_BYTES {
            // Where they lie they are sent from.
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
    /// The packet of a connection without headers.
    pub fn plain(self) -> Packet {
        self.parts(vec![PASS_THROUGH, VERSION], &[VERSION])
    }
    /// The packet of a connection with headers; `cache` is what the other node knows.
    pub fn with_header(self, cache: Option<&mut AtomCache>) -> Packet {
        let mut head = vec![VERSION, HEADER];
        push_atoms(&self.atoms, cache, &mut head);
        self.parts(head, &[])
    }
    /// The first packet of those that it takes in fragments, and the others.
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

/// The rest of a message that goes in fragments.
pub struct Fragments {
    bytes: IoVec,
    sequence: u64,
    left: u64,
    pub sender: u64,
    /// As [`Frame::own`], until the last of it has gone out.
    pub own: usize,
}

impl Fragments {
    /// Bytes that are left.
    pub fn len(&self) -> usize {
        self.bytes.bytes
    }
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
    /// The next packet.
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

/// The atoms that one side of a connection has told the other: none until there is one, since there are many more nodes that were
/// named once than connections.
#[derive(Default)]
pub struct AtomCache(Option<Box<[Term; ATOM_SLOTS]>>);

impl AtomCache {
    fn slots(&mut self) -> &mut [Term; ATOM_SLOTS] {
        self.0.get_or_insert_with(|| Box::new([NIL; ATOM_SLOTS]))
    }
}

// Half bytes of the header, one for each atom: it isn't in the cache yet; the upper bits of its slot.
const NEW: u8 = 8;
const SLOT_HIGH: u8 = 7;
/// In the half byte behind those: lengths of atoms take two bytes.
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

/// Reads the atoms that a message refers to: those, and where the message begins. None: that is no such thing.
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
