//! Control messages: their numbers, and how one is made for a connection.

use super::flags;
use super::frame::Frame;
use purlin_term::etf::encode::{AtomRefs, encode_bare};
use purlin_term::etf::tag;
use purlin_term::iolist::IoSlice;
use purlin_term::{Term, arith};
use std::cell::Cell;

/// First elements of control messages, numbered as in the description of the protocol.
#[allow(missing_docs)]
pub mod op {
    pub const LINK: u8 = 1;
    pub const SEND: u8 = 2;
    pub const EXIT: u8 = 3;
    pub const UNLINK: u8 = 4;
    pub const REG_SEND: u8 = 6;
    pub const GROUP_LEADER: u8 = 7;
    pub const EXIT2: u8 = 8;
    pub const SEND_TT: u8 = 12;
    pub const EXIT_TT: u8 = 13;
    pub const REG_SEND_TT: u8 = 16;
    pub const EXIT2_TT: u8 = 18;
    pub const MONITOR_P: u8 = 19;
    pub const DEMONITOR_P: u8 = 20;
    pub const MONITOR_P_EXIT: u8 = 21;
    pub const SEND_SENDER: u8 = 22;
    pub const SEND_SENDER_TT: u8 = 23;
    pub const PAYLOAD_EXIT: u8 = 24;
    pub const PAYLOAD_EXIT_TT: u8 = 25;
    pub const PAYLOAD_EXIT2: u8 = 26;
    pub const PAYLOAD_EXIT2_TT: u8 = 27;
    pub const PAYLOAD_MONITOR_P_EXIT: u8 = 28;
    pub const SPAWN_REQUEST: u8 = 29;
    pub const SPAWN_REQUEST_TT: u8 = 30;
    pub const SPAWN_REPLY: u8 = 31;
    pub const SPAWN_REPLY_TT: u8 = 32;
    pub const ALIAS_SEND: u8 = 33;
    pub const ALIAS_SEND_TT: u8 = 34;
    pub const UNLINK_ID: u8 = 35;
    pub const UNLINK_ID_ACK: u8 = 36;
    pub const ALTACT_SIG_SEND: u8 = 37;
}

/// Bits of the second element of an [`op::ALTACT_SIG_SEND`].
pub mod altact {
    /// With priority.
    pub const PRIORITY: u64 = 1;
    /// A token follows the receiver.
    pub const TOKEN: u64 = 2;
    /// The receiver is an alias.
    pub const ALIAS: u64 = 4;
    /// The receiver is a registered name.
    pub const NAME: u64 = 8;
    /// An exit signal, not a message.
    pub const EXIT: u64 = 16;
    pub const ALL: u64 = 31;
}

/// Whether a node with the capabilities `with` knows control messages of that number.
pub fn is_known(code: u8, with: u64) -> bool {
    let needed = match code {
        op::MONITOR_P | op::DEMONITOR_P | op::MONITOR_P_EXIT | op::PAYLOAD_MONITOR_P_EXIT => {
            flags::MONITORS
        }
        op::SPAWN_REQUEST | op::SPAWN_REQUEST_TT => flags::SPAWN,
        op::ALIAS_SEND | op::ALIAS_SEND_TT => flags::ALIAS,
        op::UNLINK_ID | op::UNLINK_ID_ACK => flags::UNLINK_ID,
        op::ALTACT_SIG_SEND => flags::ALTACT_SIG,
        _ => 0,
    };
    with & needed == needed
}

/// Binaries of at least this many bytes are sent by reference, without a copy.
const BY_REFERENCE: usize = 1024;

/// An element of a control message.
#[derive(Clone, Copy)]
pub enum Arg {
    Term(Term),
    /// A number, which may be larger than a small integer.
    Number(u64),
    /// The empty atom, for an element that is ignored.
    Unused,
}

impl From<Term> for Arg {
    fn from(t: Term) -> Arg {
        Arg::Term(t)
    }
}

thread_local! {
    /// The atoms of the message being made, kept for the next one.
    static REFS: Cell<Option<AtomRefs>> = const { Cell::new(None) };
}

/// Makes a control message with its payload. `cached`: atoms go through the connection's cache.
/// `sender`: the word of the process whose messages keep their order, or 0.
///
/// A term that contains a binary larger than the format can express cannot be sent: see
/// [`Frame::is_too_large`].
pub fn frame(op: u8, args: &[Arg], payload: Option<Term>, cached: bool, sender: u64) -> Frame {
    let mut refs = cached.then(|| REFS.take().unwrap_or_default());
    let mut bytes = Vec::with_capacity(128);
    let mut binaries = Vec::new();
    bytes.extend([
        tag::SMALL_TUPLE,
        args.len() as u8 + 1,
        tag::SMALL_INTEGER,
        op,
    ]);
    for arg in args {
        match *arg {
            Arg::Term(t) => {
                refs = encode_bare(t, &mut bytes, &mut binaries, usize::MAX, refs);
            }
            Arg::Number(n) => number(n, &mut bytes),
            Arg::Unused => bytes.extend([tag::SMALL_ATOM_UTF8, 0]),
        }
    }
    let split = bytes.len();
    if let Some(t) = payload {
        refs = encode_bare(t, &mut bytes, &mut binaries, BY_REFERENCE, refs);
    }
    let binaries = binaries
        .into_iter()
        .filter_map(|(at, t)| Some((at, whole_bytes(t)?)))
        .collect();
    let atoms = refs.as_mut().map_or_else(Vec::new, AtomRefs::take);
    REFS.set(refs);
    Frame {
        bytes,
        split,
        payload: payload.is_some(),
        binaries,
        atoms,
        sender,
    }
}

/// Encoded terms of fewer bytes are copied into each frame.
const SHARED_BYTES: usize = 1024;

/// A payload of several control messages, encoded once and in memory once.
pub struct Payload {
    parts: Vec<IoSlice>,
    atoms: Vec<Term>,
}

impl Payload {
    pub fn new(t: Term, cached: bool) -> Payload {
        let mut refs = cached.then(|| REFS.take().unwrap_or_default());
        let (mut bytes, mut binaries) = (Vec::new(), Vec::new());
        refs = encode_bare(t, &mut bytes, &mut binaries, BY_REFERENCE, refs);
        let atoms = refs.as_mut().map_or_else(Vec::new, AtomRefs::take);
        REFS.set(refs);
        let all = IoSlice::of_vec(bytes);
        let mut parts = Vec::new();
        let mut at = 0;
        for (before, t) in binaries {
            parts.push(all.part(at, before - at));
            parts.extend(whole_bytes(t));
            at = before;
        }
        parts.push(all.part(at, all.len() - at));
        parts.retain(|p| !p.is_empty());
        Payload { parts, atoms }
    }
}

/// As [`frame`], with a payload that was encoded for such connections.
pub fn frame_before(op: u8, args: &[Arg], payload: &Payload, cached: bool, sender: u64) -> Frame {
    let mut refs = cached.then(|| REFS.take().unwrap_or_default());
    if let Some(r) = &mut refs {
        r.put_back(&payload.atoms);
    }
    REFS.set(refs);
    let mut f = frame(op, args, None, cached, sender);
    f.payload = true;
    for p in &payload.parts {
        // Bytes behind a part that is not copied must not precede it.
        if f.binaries.is_empty() && p.len() < SHARED_BYTES {
            f.bytes.extend_from_slice(p.as_bytes());
        } else {
            f.binaries.push((f.bytes.len(), p.part(0, p.len())));
        }
    }
    f
}

/// The whole bytes of a bitstring that starts at a byte.
fn whole_bytes(t: Term) -> Option<IoSlice> {
    let b = t.as_bits()?;
    if b.bit_len & 7 == 0 {
        return IoSlice::of_binary(t);
    }
    // SAFETY: a bitstring in hand, which starts at a byte.
    let bytes = unsafe { std::slice::from_raw_parts(b.base, b.bit_len / 8) };
    Some(IoSlice::copy_of(bytes))
}

/// Encodes a number.
fn number(n: u64, out: &mut Vec<u8>) {
    match n {
        0..=0xFF => out.extend([tag::SMALL_INTEGER, n as u8]),
        0x100..=0x7FFF_FFFF => {
            out.push(tag::INTEGER);
            out.extend((n as u32).to_be_bytes());
        }
        _ => {
            let bytes = n.to_le_bytes();
            let used = 8 - n.leading_zeros() as usize / 8;
            out.extend([tag::SMALL_BIG, used as u8, 0]);
            out.extend(&bytes[..used]);
        }
    }
}

/// The value of a term that is a non-negative number.
pub fn to_number(t: Term) -> Option<u64> {
    arith::to_u64(t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_term::etf::decode::{Decoder, NoHooks, Options};
    use purlin_term::frag::Fragment;

    #[test]
    fn numbers_are_read_back() {
        for n in [0, 255, 256, 0x7FFF_FFFF, 0x8000_0000, 1 << 40, u64::MAX] {
            let mut out = Vec::new();
            number(n, &mut out);
            let mut f = Fragment::new();
            let t = Decoder::bare(&out, Options::default()).step(&mut f, &NoHooks, usize::MAX);
            assert_eq!(t.ok().flatten().and_then(to_number), Some(n));
        }
    }
}
