//! Gathering: turns an I/O list into parts for the kernel, batch by batch, without flattening it.
//!
//! A [`Gather`] lives within one native call and borrows what it gathers. Its parts are addresses
//! of the bytes of binaries, which need no reference count, and ranges of a scratch block, into
//! which neighbours below [`small_limit`] are merged. Parts that the kernel did not take can be
//! kept ([`Gather::keep`]); only then are references counted and the scratch block copied. What was
//! not gathered yet can be resumed later ([`Gather::rest`], or [`Remainder`] when the list belongs
//! to a port). So the memory for a write is bounded, however long the list.

use crate::accounts;
use purlin_term::frag::OwnedTerm;
use purlin_term::iolist::{BadIoList, IoSlice, IoVec, IoWalk, Plain, Stop, append};
pub use purlin_term::iolist::{
    MAX_PARTS, SMALL_LIMIT, batch_bytes, max_parts, scratch_bytes, set_max_parts,
    set_scratch_bytes, set_small_limit, small_limit,
};
use purlin_term::layout::Bits;
use purlin_term::{Alloc, NIL, Term};
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Where a part of a vector came from, for observers of writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// Copied into scratch, from one or more pieces.
    Merged,
    /// A binary on the process's heap.
    Heap,
    /// A reference to a counted block.
    Reference,
    /// Left over from an earlier write.
    Queued,
}

impl Origin {
    /// Its name in Erlang.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Merged => "merged",
            Origin::Heap => "heap",
            Origin::Reference => "reference",
            Origin::Queued => "queued",
        }
    }
}

/// A bitstring that is being shifted into the scratch block.
struct Held {
    term: Term,
    /// Bytes of it that are gathered already.
    done: usize,
}

/// The part of a list that is not gathered yet, with ownership of the list.
pub(crate) struct Remainder {
    walk: IoWalk,
    held: Option<Held>,
    /// The list that the walk points into.
    _list: OwnedTerm,
}

impl Remainder {
    /// All of a list.
    pub(crate) fn new(list: OwnedTerm) -> Remainder {
        Remainder {
            walk: IoWalk::new(list.term()),
            held: None,
            _list: list,
        }
    }
    /// Runs `f` with a gatherer that continues where the last one stopped.
    pub(crate) fn gather<R>(&mut self, f: impl FnOnce(&mut Gather) -> R) -> R {
        let mut g = Gather::new(NIL);
        std::mem::swap(&mut g.walk, &mut self.walk);
        std::mem::swap(&mut g.held, &mut self.held);
        let r = f(&mut g);
        std::mem::swap(&mut g.walk, &mut self.walk);
        std::mem::swap(&mut g.held, &mut self.held);
        r
    }
}

/// The vectors of a gatherer, kept for the next one on this thread.
#[derive(Default)]
struct Room {
    scratch: Vec<u8>,
    /// The parts, in the kernel's format. The base of a merged part is its offset in the scratch
    /// block until the batch is complete.
    parts: Vec<libc::iovec>,
    /// The binary behind each part; nil if the part is merged.
    terms: Vec<Term>,
    /// Indices of the merged parts.
    merged: Vec<u32>,
}

/// Largest room that is kept: bytes, parts.
const KEPT_ROOM: (usize, usize) = (1024 * 1024, 16 * 1024);

/// Returns the bytes of a part that is ready for the kernel.
///
/// # Safety
/// As for [`Gather`]: the native call that gathered the part is still running, and its batch has
/// not been replaced.
unsafe fn part_bytes<'a>(p: &libc::iovec) -> &'a [u8] {
    // SAFETY: by the contract.
    unsafe { std::slice::from_raw_parts(p.iov_base as *const u8, p.iov_len) }
}

thread_local! {
    static SPARE: Cell<Option<Room>> = const { Cell::new(None) };
}

/// See the module head.
pub struct Gather {
    walk: IoWalk,
    held: Option<Held>,
    ended: bool,
    room: Room,
    /// Number of parts of the batch that are taken, and how many bytes of the next part are taken.
    /// The entry of that part already excludes them.
    at: usize,
    skip: usize,
    /// Bytes of the batch that are not taken yet.
    bytes: usize,
    /// Bytes of the whole list, if the first batch is not all of it.
    total: Option<usize>,
}

impl Gather {
    /// Makes a gatherer of `t`, with an empty batch.
    pub fn new(t: Term) -> Gather {
        let mut room = SPARE.take().unwrap_or_default();
        room.clear();
        Gather {
            walk: IoWalk::new(t),
            held: None,
            ended: false,
            room,
            at: 0,
            skip: 0,
            bytes: 0,
            total: None,
        }
    }
    /// Sets the number of bytes of the whole list, for [`Gather::total`].
    pub(crate) fn set_total(&mut self, n: usize) {
        self.total = Some(n);
    }
    /// Bytes of the whole list if that was set, else of the batch.
    pub(crate) fn total(&self) -> usize {
        self.total.unwrap_or(self.bytes)
    }
    /// Collects the next batch and replaces the one before. A batch has at most about `max_parts`
    /// parts and `max_scratch` merged bytes. Returns false at the end of the list.
    pub(crate) fn next_batch(
        &mut self,
        max_parts: usize,
        max_scratch: usize,
    ) -> Result<bool, BadIoList> {
        self.room.clear();
        (self.at, self.skip, self.bytes) = (0, 0, 0);
        let small = small_limit().max(1);
        let max_parts = max_parts.max(2) - 1;
        while self.room.parts.len() < max_parts && self.room.scratch.len() < max_scratch {
            if let Some(h) = self.held.take() {
                self.shift(h, max_scratch);
                continue;
            }
            let room = &mut self.room;
            // Where the bytes begin that are merged but belong to no part yet.
            let mut merged = room.scratch.len();
            let mut large = 0;
            let stop = self.walk.each(|p| {
                match p {
                    Plain::Byte(b) => room.scratch.push(b),
                    Plain::Binary(term, s) if s.len() >= small => {
                        room.close(&mut merged, &mut self.bytes);
                        large += s.len();
                        room.parts.push(libc::iovec {
                            iov_base: s.as_ptr() as *mut libc::c_void,
                            iov_len: s.len(),
                        });
                        room.terms.push(term);
                    }
                    Plain::Binary(_, s) => append(&mut room.scratch, s),
                }
                room.parts.len() < max_parts && room.scratch.len() < max_scratch
            })?;
            self.room.close(&mut merged, &mut self.bytes);
            self.bytes += large;
            match stop {
                Stop::Early => {}
                Stop::End => {
                    self.ended = true;
                    break;
                }
                Stop::At(term) => {
                    term.as_bits()
                        .filter(|b| b.bit_len & 7 == 0)
                        .ok_or(BadIoList)?;
                    self.held = Some(Held { term, done: 0 });
                }
            }
        }
        self.room.seal();
        accounts::writes(|w| {
            w.bytes += self.bytes as u64;
            w.merged += self.room.scratch.len() as u64;
            w.parts += self.room.parts.len() as u64;
        });
        Ok(self.bytes > 0)
    }
    /// Whether the batch is the last one.
    pub(crate) fn is_last(&mut self) -> bool {
        // The list may have ended exactly where the batch became full.
        self.ended || (self.held.is_none() && self.walk.at_end())
    }
    #[inline]
    fn merge(&mut self, s: &[u8]) {
        self.bytes += s.len();
        self.room.merge(s);
    }
    /// Merges as much of an unaligned bitstring as there is room for.
    fn shift(&mut self, mut h: Held, max_scratch: usize) {
        let Some(bits) = h.term.as_bits() else { return };
        let left = bits.bit_len / 8 - h.done;
        let n = left.min(max_scratch - self.room.scratch.len());
        let now = Bits {
            // SAFETY: stays within the bitstring.
            base: unsafe { bits.base.add(h.done) },
            bit_len: n * 8,
            ..bits
        };
        self.merge(&now.shifted());
        h.done += n;
        if n < left {
            self.held = Some(h);
        }
    }
    /// Puts `bytes` before the batch, of which nothing may be taken yet.
    pub(crate) fn prefix(&mut self, bytes: &[u8]) {
        debug_assert!(self.at == 0 && self.skip == 0);
        if !bytes.is_empty() {
            self.room.prefix(bytes);
            self.bytes += bytes.len();
        }
    }
    /// Copies the rest of the batch into one vector.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut v = Vec::with_capacity(self.bytes);
        self.parts().for_each(|p| v.extend_from_slice(p));
        v
    }
    /// Moves the rest of the batch to the end of `to`: as references to counted blocks where
    /// possible, else as copies. Merged parts take the scratch block with them, unless most of it
    /// is written already.
    pub fn keep(&mut self, to: &mut IoVec) {
        accounts::writes(|w| w.queued += self.bytes as u64);
        let rest = &self.room.parts[self.at..];
        let terms = &self.room.terms[self.at..];
        let pairs = rest.iter().zip(terms);
        let merged = pairs.clone().filter(|(_, t)| t.is_nil());
        // SAFETY: parts of the current batch.
        let merged = merged.map(|(p, _)| unsafe { part_bytes(p) });
        let left: usize = merged.clone().map(<[u8]>::len).sum();
        let room = self.room.scratch.capacity();
        let goes = left > 0 && left >= room / 2;
        let blocks = if goes {
            let base = self.room.scratch.as_ptr().addr();
            let next = Vec::with_capacity(room);
            let block = IoSlice::of_vec(std::mem::replace(&mut self.room.scratch, next));
            // The bytes do not move.
            let part = |p: &libc::iovec| block.part(p.iov_base.addr() - base, p.iov_len);
            let merged = pairs.clone().filter(|(_, t)| t.is_nil());
            merged.map(|(p, _)| part(p)).collect()
        } else if left > 0 {
            let mut copy = Vec::with_capacity(left);
            merged.clone().for_each(|p| copy.extend_from_slice(p));
            IoSlice::cut_copy_of(&copy, merged.map(<[u8]>::len))
        } else {
            Vec::new()
        };
        let mut blocks = blocks.into_iter();
        for (i, (p, &t)) in pairs.enumerate() {
            if t.is_nil() {
                blocks.next().into_iter().for_each(|s| to.push(s));
            } else if let Some(mut s) = IoSlice::of_binary(t) {
                if i == 0 {
                    s.advance(self.skip);
                }
                debug_assert_eq!(s.len(), p.iov_len);
                to.push(s);
            }
        }
        (self.at, self.skip, self.bytes) = (self.room.parts.len(), 0, 0);
    }
    /// Returns the part of the list that is not gathered yet, as an I/O list.
    pub fn rest<A: Alloc + ?Sized>(&self, a: &mut A) -> Term {
        let rest = self.walk.rest(a);
        match &self.held {
            None => rest,
            Some(h) => {
                let all = h.term.as_bits().map_or(0, |b| b.bit_len);
                let left = all - h.done * 8;
                let part = a.sub_binary(h.term, h.done * 8, left);
                a.cons(part, rest)
            }
        }
    }
    /// Number of nested lists that are open at the end of the batch.
    pub fn depth(&self) -> usize {
        self.walk.depth()
    }
}

impl Room {
    fn clear(&mut self) {
        self.scratch.clear();
        self.parts.clear();
        self.terms.clear();
        self.merged.clear();
    }
    /// Appends `s` to the scratch block and merges it.
    #[inline]
    fn merge(&mut self, s: &[u8]) {
        let at = self.scratch.len();
        self.scratch.extend_from_slice(s);
        self.merged_at(at, s.len());
    }
    /// Merges the bytes of the scratch block from `from` on, if there are any. Adds them to `bytes`
    /// and moves `from` behind them.
    #[inline]
    fn close(&mut self, from: &mut usize, bytes: &mut usize) {
        let n = self.scratch.len() - *from;
        if n > 0 {
            self.merged_at(*from, n);
            *bytes += n;
            *from += n;
        }
    }
    /// Merges the last `n` bytes of the scratch block, which begin at `at`.
    #[inline]
    fn merged_at(&mut self, at: usize, n: usize) {
        match (self.parts.last_mut(), self.terms.last()) {
            (Some(p), Some(t)) if t.is_nil() => p.iov_len += n,
            _ => {
                self.merged.push(self.parts.len() as u32);
                self.parts.push(libc::iovec {
                    iov_base: std::ptr::without_provenance_mut(at),
                    iov_len: n,
                });
                self.terms.push(NIL);
            }
        }
    }
    /// Completes the batch: from now on the scratch block does not move.
    fn seal(&mut self) {
        for &i in &self.merged {
            let p = &mut self.parts[i as usize];
            // SAFETY: the offset of a part that was merged into the block.
            p.iov_base = unsafe { self.scratch.as_mut_ptr().add(p.iov_base.addr()) }.cast();
        }
    }
    /// Puts a merged part before the others of a complete batch.
    fn prefix(&mut self, s: &[u8]) {
        let base = self.scratch.as_ptr().addr();
        let at = self.scratch.len();
        self.scratch.extend_from_slice(s);
        for i in &mut self.merged {
            let p = &mut self.parts[*i as usize];
            p.iov_base = std::ptr::without_provenance_mut(p.iov_base.addr() - base);
            *i += 1;
        }
        self.merged.push(0);
        self.parts.insert(
            0,
            libc::iovec {
                iov_base: std::ptr::without_provenance_mut(at),
                iov_len: s.len(),
            },
        );
        self.terms.insert(0, NIL);
        self.seal();
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        let room = std::mem::take(&mut self.room);
        if room.scratch.capacity() <= KEPT_ROOM.0 && room.parts.capacity() <= KEPT_ROOM.1 {
            SPARE.set(Some(room));
        }
    }
}

/// Room for the parts of one system call.
pub(crate) type Vector = [MaybeUninit<libc::iovec>; MAX_PARTS];

/// Parts to write, which the kernel takes from the front.
pub(crate) trait Parts {
    /// Number of bytes left.
    fn bytes(&self) -> usize;
    /// The parts, in order.
    fn parts(&self) -> impl Iterator<Item = &[u8]>;
    /// Returns the first parts for the kernel, at most `max_parts` and [`MAX_PARTS`]. May build
    /// them in `room`.
    fn vector<'a>(&'a self, room: &'a mut Vector) -> &'a [libc::iovec] {
        let mut n = 0;
        for (p, to) in self.parts().take(max_parts()).zip(&mut *room) {
            to.write(libc::iovec {
                iov_base: p.as_ptr() as *mut libc::c_void,
                iov_len: p.len(),
            });
            n += 1;
        }
        // SAFETY: the loop has written `n` entries.
        unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), n) }
    }
    /// The origin of each part.
    fn origins(&self) -> impl Iterator<Item = Origin>;
    /// Drops the first `n` bytes, at most all of them.
    fn advance(&mut self, n: usize);
}

impl Parts for Gather {
    fn bytes(&self) -> usize {
        self.bytes
    }
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let rest = self.room.parts[self.at..].iter();
        // SAFETY: parts of the current batch, whose terms live as long as the native call.
        rest.map(|p| unsafe { part_bytes(p) })
    }
    fn vector<'a>(&'a self, _: &'a mut Vector) -> &'a [libc::iovec] {
        let rest = &self.room.parts[self.at..];
        &rest[..rest.len().min(max_parts())]
    }
    fn origins(&self) -> impl Iterator<Item = Origin> {
        self.room.terms[self.at..].iter().map(|&t| match t {
            NIL => Origin::Merged,
            t if IoSlice::is_counted(t) => Origin::Reference,
            _ => Origin::Heap,
        })
    }
    fn advance(&mut self, mut n: usize) {
        n = n.min(self.bytes);
        self.bytes -= n;
        while let Some(p) = self.room.parts.get_mut(self.at) {
            if n < p.iov_len {
                // SAFETY: stays within the part.
                p.iov_base = unsafe { p.iov_base.byte_add(n) };
                p.iov_len -= n;
                self.skip += n;
                return;
            }
            n -= p.iov_len;
            self.at += 1;
            self.skip = 0;
        }
    }
}

impl Parts for IoVec {
    fn bytes(&self) -> usize {
        self.bytes
    }
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|p| p.as_bytes())
    }
    fn origins(&self) -> impl Iterator<Item = Origin> {
        self.parts.iter().map(|_| Origin::Queued)
    }
    fn advance(&mut self, n: usize) {
        IoVec::advance(self, n);
    }
}

#[cfg(test)]
use purlin_term::iolist::append_to;

#[cfg(test)]
#[path = "../../term/src/iolist_sample.rs"]
mod iolist_sample;

#[cfg(test)]
mod tests {
    use super::iolist_sample::sample;
    use super::*;
    use crate::cx::Cx;
    use purlin_term::iolist::SCRATCH_BYTES;

    #[test]
    fn batches_are_bounded_and_keep_every_byte_in_order() {
        let mut cx = Cx::boxed(0);
        let (t, flat) = sample(&mut *cx);
        let mut g = Gather::new(t);
        let mut out = Vec::new();
        while g.next_batch(64, SCRATCH_BYTES).expect("an I/O list") {
            assert!(g.parts().count() <= 64 && g.room.scratch.len() < 2 * SCRATCH_BYTES);
            g.parts().for_each(|p| out.extend_from_slice(p));
        }
        assert!(out == flat);
    }

    #[test]
    fn what_is_not_taken_is_kept_and_what_is_not_gathered_taken_up_again() {
        let mut cx = Cx::boxed(0);
        let (t, flat) = sample(&mut *cx);
        for step in [1usize, 250, 40_000] {
            let mut rest = t;
            let mut out = Vec::new();
            let mut batches = 0;
            while batches < 50 {
                batches += 1;
                let mut g = Gather::new(rest);
                if !g.next_batch(100, 1000).expect("an I/O list") {
                    break;
                }
                // Takes this much at once, and the rest of the batch later.
                let before = g.bytes();
                let taken: Vec<u8> = g.to_vec()[..step.min(before)].to_vec();
                g.advance(step);
                out.extend(taken);
                let mut later = IoVec::default();
                g.keep(&mut later);
                later.parts.iter().for_each(|p| out.extend(p.as_bytes()));
                assert_eq!(g.bytes(), 0);
                rest = g.rest(&mut *cx);
            }
            assert!(flat.starts_with(&out) && out.len() > 1000, "{step}");
            assert_eq!(purlin_term::iolist::size(rest), Ok(flat.len() - out.len()));
        }
    }
}
