//! I/O lists: one walker that everything which reads them goes through, gathering for output, and the natives that
//! turn lists into binaries and back.
//!
//! The walker keeps its own stack, so depth and length of a list cost no native stack. Gathering never flattens a
//! whole list: neighbours below [`small_limit`] are merged, larger binaries are passed by reference.

use super::gather::{SMALL_LIMIT, max_parts, scratch_bytes, small_limit};
use super::long::{MANY, leave_if, leave_large};
use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, code, lazy_atoms};
use purlin_term::bin::RcBin;
use purlin_term::layout::{Bits, HEAP_BIN_LIMIT, heap_bin_limit};
use purlin_term::word::Subtag;
use purlin_term::{Alloc, NIL, Term};
use smallvec::SmallVec;

/// Bytes of work that count as one reduction.
const BYTES_PER_REDUCTION: usize = 256;
/// Elements of a list that count as one reduction.
const STEPS_PER_REDUCTION: usize = 32;

/// The term is no I/O list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIoList;

/// One element of an I/O list.
#[derive(Clone, Copy)]
pub enum Piece {
    Byte(u8),
    /// A bitstring: the term and its data.
    Bits(Term, Bits),
}

/// Walks an I/O list, yielding bytes and bitstrings in order. Can be left and taken up again at any element during
/// one native call.
pub struct IoWalk {
    at: Term,
    stack: SmallVec<[Term; 6]>,
    /// Whether bitstrings of a broken number of bytes are allowed.
    bits: bool,
}

impl IoWalk {
    /// Walks bytes and binaries; a bare binary is fine too.
    pub fn new(t: Term) -> IoWalk {
        IoWalk {
            at: t,
            stack: SmallVec::new(),
            bits: false,
        }
    }
    /// Walks a list that may hold any bitstrings.
    pub fn bits(t: Term) -> IoWalk {
        IoWalk {
            bits: true,
            ..IoWalk::new(t)
        }
    }
    /// Whether nothing is left; false if that isn't known without walking on.
    pub fn at_end(&self) -> bool {
        self.at.is_nil() && self.stack.is_empty()
    }
    /// How many lists are open.
    pub fn depth(&self) -> usize {
        self.stack.len()
    }
    /// What is left, as an I/O list.
    pub fn rest<A: Alloc + ?Sized>(&self, a: &mut A) -> Term {
        let all = self.stack.iter().copied().chain([self.at]);
        all.fold(NIL, |rest, t| match t.is_nil() {
            true => rest,
            false => a.cons(t, rest),
        })
    }
    fn piece(&self, t: Term) -> Result<Piece, BadIoList> {
        match t.as_bits() {
            Some(b) if self.bits || b.bit_len & 7 == 0 => Ok(Piece::Bits(t, b)),
            _ => Err(BadIoList),
        }
    }
    /// The next element, if it is a reference to a counted block: the term and its bytes. None says nothing: the element is
    /// of another kind, or there is none.
    #[inline]
    pub fn next_block<'a>(&mut self) -> Option<(Term, &'a [u8])> {
        let (h, t) = self.at.as_cons()?;
        let bytes = h.block_bytes()?;
        self.at = t;
        Some((h, bytes))
    }
    /// The next element: a byte, or what should be a bitstring; nil at the end.
    #[inline]
    pub fn next_item(&mut self) -> Result<Term, BadIoList> {
        loop {
            if let Some((h, t)) = self.at.as_cons() {
                self.at = t;
                if h.is_list_ptr() {
                    if !t.is_nil() {
                        self.stack.push(t);
                    }
                    self.at = h;
                } else if let Some(n) = h.as_small() {
                    return match n {
                        0..=255 => Ok(h),
                        _ => Err(BadIoList),
                    };
                } else if !h.is_nil() {
                    return Ok(h);
                }
            } else if self.at.is_nil() {
                match self.stack.pop() {
                    Some(t) => self.at = t,
                    None => return Ok(NIL),
                }
            } else {
                // Neither a whole list nor the end of one is a byte.
                if self.at.as_small().is_some() {
                    return Err(BadIoList);
                }
                return Ok(std::mem::replace(&mut self.at, NIL));
            }
        }
    }
    /// The next element; None at the end.
    #[inline]
    pub fn next_piece(&mut self) -> Result<Option<Piece>, BadIoList> {
        let t = self.next_item()?;
        if let Some(n) = t.as_small() {
            return Ok(Some(Piece::Byte(n as u8)));
        }
        match t.is_nil() {
            true => Ok(None),
            false => self.piece(t).map(Some),
        }
    }
}

/// Bits in an I/O list (whole bytes unless `walk` allows otherwise).
pub fn bit_size(mut walk: IoWalk) -> Result<usize, BadIoList> {
    let mut n = 0usize;
    loop {
        while let Some((_, s)) = walk.next_block() {
            n = n.checked_add(s.len() * 8).ok_or(BadIoList)?;
        }
        let Some(p) = walk.next_piece()? else {
            return Ok(n);
        };
        n = n
            .checked_add(match p {
                Piece::Byte(_) => 8,
                Piece::Bits(_, b) => b.bit_len,
            })
            .ok_or(BadIoList)?;
    }
}

/// Bytes in an I/O list that isn't long: None if it has more than `pieces` binaries that are not merged, or more than
/// `bytes` bytes of such that are.
pub fn size_unless_long(t: Term, pieces: usize, bytes: usize) -> Result<Option<usize>, BadIoList> {
    let limit = small_limit();
    let mut walk = IoWalk::new(t);
    let (mut large, mut merged, mut n) = (0, 0, 0usize);
    while large <= pieces && merged <= bytes {
        let len = match walk.next_block() {
            Some((_, s)) => s.len(),
            None => match walk.next_piece()? {
                Some(Piece::Byte(_)) => 1,
                Some(Piece::Bits(_, b)) => b.bit_len / 8,
                None => return Ok(Some(n)),
            },
        };
        n = n.checked_add(len).ok_or(BadIoList)?;
        match len < limit {
            true => merged += len,
            false => large += 1,
        }
    }
    Ok(None)
}

/// Bytes in an I/O list.
pub fn size(t: Term) -> Result<usize, BadIoList> {
    bit_size(IoWalk::new(t)).map(|n| n / 8)
}

/// Appends the bytes of an I/O list to `out`. `out` is as it was if this fails.
pub fn append_to(t: Term, out: &mut Vec<u8>) -> Result<(), BadIoList> {
    let start = out.len();
    let mut w = IoWalk::new(t);
    loop {
        match w.next_piece() {
            Ok(Some(Piece::Byte(b))) => out.push(b),
            Ok(Some(Piece::Bits(_, b))) => match b.as_bytes() {
                Some(s) => out.extend_from_slice(s),
                None => out.extend_from_slice(&b.shifted()),
            },
            Ok(None) => return Ok(()),
            Err(e) => {
                out.truncate(start);
                return Err(e);
            }
        }
    }
}

/// The bytes of an I/O list in one piece.
pub fn to_vec(t: Term) -> Result<Vec<u8>, BadIoList> {
    let mut v = Vec::new();
    append_to(t, &mut v)?;
    Ok(v)
}

/// Bytes that outlive the native call: a range of a counted block, of which this owns a count.
pub struct IoSlice {
    bin: *mut RcBin,
    at: *const u8,
    len: usize,
}

// SAFETY: the block is immutable where shared, and its count atomic.
unsafe impl Send for IoSlice {}
// SAFETY: as above.
unsafe impl Sync for IoSlice {}

impl IoSlice {
    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> IoSlice {
        let bin = RcBin::from_bytes(bytes);
        IoSlice {
            bin,
            // SAFETY: just made.
            at: unsafe { RcBin::bytes(bin) },
            len: bytes.len(),
        }
    }
    /// A copy of `bytes`, cut into parts of these lengths.
    pub fn cut_copy_of(bytes: &[u8], lengths: impl Iterator<Item = usize>) -> Vec<IoSlice> {
        let whole = IoSlice::copy_of(bytes);
        let mut at = 0;
        lengths
            .map(|len| {
                // SAFETY: the block is held by `whole`; each part gets a count of its own.
                unsafe { RcBin::retain(whole.bin) };
                let part = &whole.as_bytes()[at..at + len];
                at += len;
                IoSlice {
                    bin: whole.bin,
                    at: part.as_ptr(),
                    len,
                }
            })
            .collect()
    }
    /// The bytes of a binary: by reference where they are in a counted block and aligned, else a copy. None if
    /// `t` is no binary.
    pub fn of_binary(t: Term) -> Option<IoSlice> {
        let b = t.as_bits()?;
        let Some(s) = b.as_bytes() else {
            return (b.bit_len & 7 == 0).then(|| IoSlice::copy_of(&b.shifted()));
        };
        Some(match counted_block(t) {
            Some(bin) => {
                // SAFETY: the term in hand keeps the block alive.
                unsafe { RcBin::retain(bin) };
                IoSlice {
                    bin,
                    at: s.as_ptr(),
                    len: s.len(),
                }
            }
            None => IoSlice::copy_of(s),
        })
    }
    /// Whether the bytes of a binary are in a counted block.
    pub fn is_counted(t: Term) -> bool {
        counted_block(t).is_some()
    }
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the count held keeps the bytes.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Drops the first `n` bytes (at most all).
    pub fn advance(&mut self, n: usize) {
        let n = n.min(self.len);
        // SAFETY: stays within the range.
        self.at = unsafe { self.at.add(n) };
        self.len -= n;
    }
    /// A term with these bytes: a reference to the block where they are many.
    pub fn to_term<A: Alloc + ?Sized>(&self, a: &mut A) -> Term {
        if self.len <= heap_bin_limit() {
            return a.binary(self.as_bytes());
        }
        // SAFETY: a count is added for the new term; the offset lies within the block.
        unsafe {
            RcBin::retain(self.bin);
            let off = self.at.offset_from(RcBin::bytes(self.bin)) as usize;
            let whole = a.refc_bin(self.bin, off + self.len);
            if off == 0 {
                whole
            } else {
                a.sub_binary(whole, off * 8, self.len * 8)
            }
        }
    }
}

impl Drop for IoSlice {
    fn drop(&mut self) {
        // SAFETY: this owned a count.
        unsafe { RcBin::release(self.bin) }
    }
}

/// The counted block behind a binary; None for heap binaries. Blocks never move, and one with a second count is no
/// longer appended to in place, so a count is all it takes to keep the bytes.
fn counted_block(t: Term) -> Option<*mut RcBin> {
    let mut p = t.ptr();
    // SAFETY: layouts of binaries; a term in hand is well formed.
    unsafe {
        if t.subtag()? == Subtag::SubBin {
            p = (*p.add(4)).ptr();
        }
        match Term::boxed_at(p).subtag()? {
            Subtag::RefcBin => Some((*p.add(3)).raw() as *mut RcBin),
            _ => None,
        }
    }
}

/// An I/O list gathered for output that outlives the native call (port and driver queues).
#[derive(Default)]
pub struct IoVec {
    pub parts: std::collections::VecDeque<IoSlice>,
    /// Bytes in all parts.
    pub bytes: usize,
}

impl IoVec {
    /// Gathers an I/O list.
    pub fn gather(t: Term) -> Result<IoVec, BadIoList> {
        let mut v = IoVec::default();
        v.append(t)?;
        Ok(v)
    }
    /// Gathers an I/O list behind what is there; nothing is added if it fails.
    pub fn append(&mut self, t: Term) -> Result<(), BadIoList> {
        let limit = small_limit();
        let mut new = Vec::new();
        let mut scratch = Vec::new();
        let mut w = IoWalk::new(t);
        while let Some(p) = w.next_piece()? {
            match p {
                Piece::Byte(b) => scratch.push(b),
                Piece::Bits(t, b) => {
                    let n = b.bit_len / 8;
                    match b.as_bytes() {
                        Some(s) if n < limit => scratch.extend_from_slice(s),
                        None if n < limit => scratch.extend_from_slice(&b.shifted()),
                        _ => {
                            flush(&mut scratch, &mut new);
                            new.extend(IoSlice::of_binary(t));
                        }
                    }
                }
            }
            if scratch.len() >= scratch_bytes() {
                flush(&mut scratch, &mut new);
            }
        }
        flush(&mut scratch, &mut new);
        for s in new {
            self.push(s);
        }
        Ok(())
    }
    /// Adds a part at the end.
    pub fn push(&mut self, s: IoSlice) {
        if !s.is_empty() {
            self.bytes += s.len();
            self.parts.push_back(s);
        }
    }
    /// Drops the first `n` bytes (at most all): what the kernel has taken.
    pub fn advance(&mut self, mut n: usize) {
        while let Some(s) = self.parts.front_mut() {
            if n < s.len() {
                s.advance(n);
                self.bytes -= n;
                return;
            }
            n -= s.len();
            self.bytes -= s.len();
            self.parts.pop_front();
        }
    }
}

fn flush(scratch: &mut Vec<u8>, to: &mut Vec<IoSlice>) {
    if !scratch.is_empty() {
        to.push(IoSlice::copy_of(scratch));
        scratch.clear();
    }
}

/// A binary of `n` bytes that `fill` writes; it is given zeroed bytes.
pub fn build_binary(cx: &mut Cx, n: usize, fill: impl FnOnce(&mut [u8])) -> Term {
    if n <= HEAP_BIN_LIMIT.min(heap_bin_limit()) {
        let mut buf = [0u8; HEAP_BIN_LIMIT];
        fill(&mut buf[..n]);
        return cx.binary(&buf[..n]);
    }
    let bin = RcBin::alloc(n);
    // SAFETY: a fresh block of n bytes; they are initialised before the slice is made; its count goes to the term.
    unsafe {
        let p = RcBin::bytes(bin);
        std::ptr::write_bytes(p, 0, n);
        fill(std::slice::from_raw_parts_mut(p, n));
        cx.refc_bin(bin, n)
    }
}

/// Writes the bits of `b` at bit `at` of `out`, whose bits from there on are zero.
fn put_bits(out: &mut [u8], at: usize, b: &Bits) {
    if b.bit_len == 0 {
        return;
    }
    let src = b.shifted();
    let (mut i, s) = (at / 8, at % 8);
    if s == 0 {
        out[i..i + src.len()].copy_from_slice(&src);
        return;
    }
    for byte in src {
        out[i] |= byte >> s;
        i += 1;
        if let Some(o) = out.get_mut(i) {
            *o |= byte << (8 - s);
        }
    }
}

/// One binary with the bytes of an I/O list.
pub fn to_binary(cx: &mut Cx, t: Term) -> Result<Term, BadIoList> {
    let n = size(t)?;
    cx.bump(n / BYTES_PER_REDUCTION + 1);
    Ok(build_binary(cx, n, |out| {
        let mut w = IoWalk::new(t);
        let mut at = 0;
        while let Ok(Some(p)) = w.next_piece() {
            match p {
                Piece::Byte(b) => {
                    out[at] = b;
                    at += 1;
                }
                Piece::Bits(_, b) => {
                    let n = b.bit_len / 8;
                    match b.as_bytes() {
                        Some(s) => out[at..at + n].copy_from_slice(s),
                        None => out[at..at + n].copy_from_slice(&b.shifted()),
                    }
                    at += n;
                }
            }
        }
    }))
}

fn bad(_: BadIoList) -> Fail {
    Fail::Badarg
}

fn iolist_to_binary_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    if t.is_binary() {
        return Ok(t);
    }
    leave_large(cx, "erlang", "iolist_to_binary", &[t], t)?;
    to_binary(cx, t).map_err(bad)
}

fn list_to_binary_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    leave_large(cx, "erlang", "list_to_binary", &[t], t)?;
    if !t.is_list() {
        return Err(Fail::Badarg);
    }
    to_binary(cx, t).map_err(bad)
}

fn iolist_size_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let mut w = IoWalk::new(t);
    let (mut n, mut steps) = (0usize, 0usize);
    loop {
        while steps != MANY
            && let Some((_, s)) = w.next_block()
        {
            steps += 1;
            n += s.len();
        }
        let Some(p) = w.next_piece().map_err(bad)? else {
            break;
        };
        steps += 1;
        if steps == MANY || steps == MANY + 1 {
            leave_if(cx, "erlang", "iolist_size", &[t], || true)?;
        }
        n += match p {
            Piece::Byte(_) => 1,
            Piece::Bits(_, b) => b.bit_len / 8,
        };
    }
    cx.bump(steps / STEPS_PER_REDUCTION + 1);
    Ok(cx.uint(n as u64))
}

fn list_to_bitstring_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    leave_large(cx, "erlang", "list_to_bitstring", &[t], t)?;
    if !t.is_list() {
        return Err(Fail::Badarg);
    }
    let bits = bit_size(IoWalk::bits(t)).map_err(bad)?;
    cx.bump(bits / 8 / BYTES_PER_REDUCTION + 1);
    let b = build_binary(cx, bits.div_ceil(8), |out| {
        let mut w = IoWalk::bits(t);
        let mut at = 0;
        while let Ok(Some(p)) = w.next_piece() {
            match p {
                Piece::Byte(b) => {
                    let one = Bits {
                        base: &b,
                        bit_offset: 0,
                        bit_len: 8,
                    };
                    put_bits(out, at, &one);
                    at += 8;
                }
                Piece::Bits(_, b) => {
                    put_bits(out, at, &b);
                    at += b.bit_len;
                }
            }
        }
    });
    Ok(if bits & 7 == 0 {
        b
    } else {
        cx.sub_binary(b, 0, bits)
    })
}

fn binary_to_list_1(cx: &mut Cx, [b]: [Term; 1]) -> BifResult {
    let s = b.as_binary().ok_or(Fail::Badarg)?;
    cx.bump(s.len() / BYTES_PER_REDUCTION + 1);
    Ok(cx.byte_list(&s, NIL))
}

fn binary_to_list_3(cx: &mut Cx, [b, from, to]: [Term; 3]) -> BifResult {
    let bits = b.as_bits().ok_or(Fail::Badarg)?;
    let n = bits.bit_len / 8;
    let (from, to) = match (from.as_small(), to.as_small()) {
        (Some(f), Some(t)) if f >= 1 && f <= t && t as u64 <= n as u64 => (f as usize, t as usize),
        _ => return Err(Fail::Badarg),
    };
    let part = Bits {
        // SAFETY: within the bitstring.
        base: unsafe { bits.base.add(from - 1) },
        bit_len: (to - from + 1) * 8,
        ..bits
    };
    let s = part.to_bytes().ok_or(Fail::Badarg)?;
    cx.bump(s.len() / BYTES_PER_REDUCTION + 1);
    Ok(cx.byte_list(&s, NIL))
}

fn bitstring_to_list_1(cx: &mut Cx, [b]: [Term; 1]) -> BifResult {
    let bits = b.as_bits().ok_or(Fail::Badarg)?;
    let whole = bits.bit_len & !7;
    let tail = if bits.bit_len == whole {
        NIL
    } else {
        let t = cx.sub_binary(b, whole, bits.bit_len - whole);
        cx.cons(t, NIL)
    };
    let head = Bits {
        bit_len: whole,
        ..bits
    };
    let s = head.to_bytes().ok_or(Fail::Badarg)?;
    cx.bump(s.len() / BYTES_PER_REDUCTION + 1);
    Ok(cx.byte_list(&s, tail))
}

fn split_binary_2(cx: &mut Cx, [b, at]: [Term; 2]) -> BifResult {
    let bits = b.as_bits().ok_or(Fail::Badarg)?.bit_len;
    match at.as_small() {
        Some(n) if n >= 0 && n as u64 <= bits as u64 / 8 => {
            let n = n as usize * 8;
            let x = cx.sub_binary(b, 0, n);
            let y = cx.sub_binary(b, n, bits - n);
            Ok(cx.tuple(&[x, y]))
        }
        _ => Err(Fail::Badarg),
    }
}

/// Offset and length in bytes of the part `pos`, `len` (which may be negative) of something of `size` bytes.
pub fn part_range(size: usize, pos: Term, len: Term) -> Option<(usize, usize)> {
    let (pos, len) = (pos.as_small()?, len.as_small()?);
    let (from, n) = if len < 0 {
        (pos.checked_add(len)?, -len)
    } else {
        (pos, len)
    };
    if pos < 0 || from < 0 || from.checked_add(n)? > i64::try_from(size).ok()? {
        return None;
    }
    Some((from as usize, n as usize))
}

/// `binary_part/3`, shared with module `binary`.
pub fn binary_part_3(cx: &mut Cx, [b, pos, len]: [Term; 3]) -> BifResult {
    // Whole bytes in front of what a bitstring has left over are a part like any other.
    let bits = b.as_bits().ok_or(Fail::Badarg)?;
    let (at, n) = part_range(bits.bit_len / 8, pos, len).ok_or(Fail::Badarg)?;
    Ok(cx.part(b, at, n))
}

/// `binary_part/2`, shared with module `binary`.
pub fn binary_part_2(cx: &mut Cx, [b, pl]: [Term; 2]) -> BifResult {
    match pl.as_tuple() {
        Some(&[p, l]) => binary_part_3(cx, [b, p, l]),
        _ => Err(Fail::Badarg),
    }
}

/// The room from which on `iolist_to_iovec/1` goes on with another binary, as in stock: which parts there are is a result.
const STOCK_ROOM: usize = 32 * SMALL_LIMIT;

/// Bytes that become one binary of a vector.
struct Merged {
    bytes: Vec<u8>,
    limit: usize,
    /// The room that stock would have: it grows by doubling, up to [`STOCK_ROOM`].
    room: usize,
}

impl Merged {
    fn new() -> Merged {
        Merged {
            bytes: Vec::new(),
            limit: small_limit(),
            room: 0,
        }
    }
    fn reserve(&mut self, cx: &mut Cx, n: usize, out: &mut Vec<Term>) {
        let all = self.bytes.len() + n;
        if all <= self.room {
            return;
        }
        if self.room >= STOCK_ROOM {
            self.flush(cx, out);
        }
        self.room = match self.room {
            0 => n.max(self.limit),
            r => all.max(2 * r),
        };
    }
    fn flush(&mut self, cx: &mut Cx, out: &mut Vec<Term>) {
        if !self.bytes.is_empty() {
            out.push(cx.binary(&self.bytes));
            self.bytes.clear();
        }
        self.room = 0;
    }
}

lazy_atoms! {
    prim_file = "prim_file";
}

fn iolist_to_iovec_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    if let Some(b) = t.as_bits() {
        return match b.bit_len {
            0 => Ok(NIL),
            n if n & 7 == 0 => Ok(cx.list(&[t])),
            _ => Err(Fail::Badarg),
        };
    }
    // A file's module hands what it gets to a native that gathers any list, batch by batch, after it has looked at all of
    // it. So what is long isn't gathered here first, which would take memory for all there is.
    let long = !matches!(
        size_unless_long(t, max_parts(), scratch_bytes()),
        Ok(Some(_))
    );
    if long && code::module_at(cx.bif_pc).is_some_and(|m| m.name == prim_file()) {
        cx.bump(max_parts() / BYTES_PER_REDUCTION);
        return Ok(t);
    }
    leave_large(cx, "erlang", "iolist_to_iovec", &[t], t)?;
    let mut out: Vec<Term> = Vec::new();
    let mut merged = Merged::new();
    let limit = merged.limit;
    let mut w = IoWalk::new(t);
    let mut steps = 0;
    while let Some(p) = w.next_piece().map_err(bad)? {
        steps += 1;
        match p {
            Piece::Byte(b) => {
                merged.reserve(cx, 1, &mut out);
                merged.bytes.push(b);
            }
            Piece::Bits(_, b) if b.bit_len == 0 => {}
            Piece::Bits(t, b) => {
                let (n, before) = (b.bit_len / 8, merged.bytes.len());
                if n >= limit && (before == 0 || before >= limit) {
                    merged.flush(cx, &mut out);
                    out.push(t);
                    continue;
                }
                // What is behind too few bytes to stand alone gives them as many as they lack, if enough is left of it.
                let taken = if n < limit || n + before < 2 * limit {
                    n
                } else {
                    limit - before
                };
                merged.reserve(cx, taken, &mut out);
                match b.as_bytes() {
                    Some(s) => merged.bytes.extend_from_slice(&s[..taken]),
                    None => {
                        let head = Bits {
                            bit_len: taken * 8,
                            ..b
                        };
                        merged.bytes.extend_from_slice(&head.shifted());
                    }
                }
                if taken < n {
                    merged.flush(cx, &mut out);
                    out.push(cx.part(t, taken, n - taken));
                }
            }
        }
    }
    merged.flush(cx, &mut out);
    cx.bump(steps / BYTES_PER_REDUCTION + 1);
    Ok(cx.list(&out))
}

bifs! {
    Plain "erlang":"iolist_to_binary"/1 = iolist_to_binary_1;
    Plain "erlang":"list_to_binary"/1 = list_to_binary_1;
    Plain "erlang":"iolist_size"/1 = iolist_size_1;
    Plain "erlang":"iolist_to_iovec"/1 = iolist_to_iovec_1;
    Plain "erlang":"list_to_bitstring"/1 = list_to_bitstring_1;
    Plain "erlang":"binary_to_list"/1 = binary_to_list_1;
    Plain "erlang":"binary_to_list"/3 = binary_to_list_3;
    Plain "erlang":"bitstring_to_list"/1 = bitstring_to_list_1;
    Plain "erlang":"split_binary"/2 = split_binary_2;
    Guard "erlang":"binary_part"/2 = binary_part_2;
    Guard "erlang":"binary_part"/3 = binary_part_3;
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A deep list with bytes, small, large and unaligned binaries, and its bytes.
    pub fn sample(cx: &mut Cx) -> (Term, Vec<u8>) {
        let mut flat = Vec::new();
        let mut t = NIL;
        for i in (0..200_000usize).rev() {
            let item = match i % 7 {
                0 => cx.binary(&[i as u8; 40]),
                1 if i % 1000 == 1 => cx.binary(&[i as u8; 5000]),
                2 => {
                    let b = cx.binary(&[0xAB; 301]);
                    cx.sub_binary(b, 4, 2400)
                }
                _ => Term::small((i % 256) as i64),
            };
            // Nested to the left now and then, so that depth grows with length.
            let inner = cx.list(&[item]);
            t = if i % 3 == 0 {
                let l = cx.cons(inner, t);
                cx.cons(l, NIL)
            } else {
                cx.cons(item, t)
            };
        }
        append_to(t, &mut flat).expect("an I/O list");
        (t, flat)
    }

    #[test]
    fn gathering_keeps_every_byte_in_order() {
        let mut cx = Cx::boxed(0);
        let (t, flat) = sample(&mut cx);
        assert_eq!(size(t), Ok(flat.len()));
        let mut v = IoVec::gather(t).expect("an I/O list");
        assert_eq!(v.bytes, flat.len());
        let joined: Vec<u8> = (v.parts.iter())
            .flat_map(|p| p.as_bytes().to_vec())
            .collect();
        assert!(joined == flat);
        v.advance(flat.len() - 3);
        assert_eq!(v.bytes, 3);
    }

    #[test]
    fn what_is_no_io_list_is_refused() {
        let mut cx = Cx::boxed(0);
        for bad in [Term::small(256), Term::small(-1), am_ok()] {
            let l = cx.list(&[Term::small(1), bad]);
            assert_eq!(size(l), Err(BadIoList));
            assert!(IoVec::gather(l).is_err());
        }
        let improper = cx.cons(Term::small(1), Term::small(2));
        assert_eq!(size(improper), Err(BadIoList));
    }

    fn am_ok() -> Term {
        purlin_term::am::OK
    }
}
