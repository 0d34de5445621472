//! I/O lists: the one walker for all readers of I/O lists, and vectors of output.
//!
//! The walker keeps its own stack, so depth and length of a list cost no native stack. Nothing here
//! flattens a whole list: neighbours below [`small_limit`] are merged, larger binaries are passed
//! by reference.

use crate::bin::RcBin;
use crate::ending;
use crate::layout::{Bits, heap_bin_limit};
use crate::word::Subtag;
use crate::{Alloc, NIL, Term};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Default of [`small_limit`]: the size at which copying a piece costs as much as one more part of
/// a system call (benches/gather.erl).
pub const SMALL_LIMIT: usize = 256;
/// Default of [`max_parts`]: the maximum for one system call (`IOV_MAX`).
pub const MAX_PARTS: usize = 1024;
/// Default of [`scratch_bytes`].
pub const SCRATCH_BYTES: usize = 64 * 1024;

static SMALL: AtomicUsize = AtomicUsize::new(SMALL_LIMIT);
static PARTS: AtomicUsize = AtomicUsize::new(MAX_PARTS);
static SCRATCH: AtomicUsize = AtomicUsize::new(SCRATCH_BYTES);

/// Binaries of fewer bytes are merged with their neighbours when output is gathered. 0: none.
pub fn small_limit() -> usize {
    SMALL.load(Ordering::Relaxed)
}
/// Sets [`small_limit`], in bytes.
pub fn set_small_limit(n: usize) {
    SMALL.store(n, Ordering::Relaxed)
}
/// Maximum number of parts in one system call.
pub fn max_parts() -> usize {
    PARTS.load(Ordering::Relaxed)
}
/// Sets [`max_parts`], clamped to 2 to [`MAX_PARTS`].
pub fn set_max_parts(n: usize) {
    PARTS.store(n.clamp(2, MAX_PARTS), Ordering::Relaxed)
}
/// Number of bytes that are merged before they are written.
pub fn scratch_bytes() -> usize {
    SCRATCH.load(Ordering::Relaxed)
}
/// Number of bytes that are merged before a list is written that is queued whole if the kernel does
/// not take it: with several blocks at once a page of many small pieces takes one system call, like
/// one of a few large pieces.
pub fn batch_bytes() -> usize {
    scratch_bytes().saturating_mul(8)
}
/// Sets [`scratch_bytes`]: at least one.
pub fn set_scratch_bytes(n: usize) {
    SCRATCH.store(n.max(1), Ordering::Relaxed)
}

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

/// The elements of most I/O lists.
#[derive(Clone, Copy)]
pub enum Plain<B> {
    Byte(u8),
    /// A plain binary: the term, and the property that was asked for.
    Binary(Term, B),
}

/// The data of an element of an I/O list.
#[derive(Clone, Copy)]
pub enum Data<'a> {
    Byte(u8),
    Bytes(&'a [u8]),
}

/// The place at which [`IoWalk::each`] stopped.
pub enum Stop {
    /// Where its function returned false.
    Early,
    /// At the end.
    End,
    /// Behind an element that is not plain: an unaligned bitstring, or a term that is not allowed
    /// in an I/O list.
    At(Term),
}

/// Walks an I/O list, yielding bytes and bitstrings in order. The walk can be paused and resumed at
/// any element during one native call.
pub struct IoWalk {
    at: Term,
    stack: SmallVec<[Term; 6]>,
    /// Whether bitstrings with odd bits are allowed.
    bits: bool,
}

impl IoWalk {
    /// Walks bytes and binaries; a bare binary is allowed too.
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
    /// Whether nothing is left; false if that is not known without walking on.
    pub fn at_end(&self) -> bool {
        self.at.is_nil() && self.stack.is_empty()
    }
    /// Number of open lists.
    pub fn depth(&self) -> usize {
        self.stack.len()
    }
    /// The rest, as an I/O list.
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
    /// Passes plain elements to `f` as long as it returns true: bytes, and the bytes of binaries
    /// that lie in one piece.
    #[inline(always)]
    pub fn each<'a>(&mut self, f: impl FnMut(Plain<&'a [u8]>) -> bool) -> Result<Stop, BadIoList> {
        self.each_as(|t| t.front_bytes().or_else(|| t.as_bits()?.as_bytes()), f)
    }
    /// The same with the property `of` of each binary; a binary without that property is not plain.
    #[inline(always)]
    fn each_as<B: Copy>(
        &mut self,
        of: impl Fn(Term) -> Option<B>,
        mut f: impl FnMut(Plain<B>) -> bool,
    ) -> Result<Stop, BadIoList> {
        // Not in memory: a store for each element would cost as much as everything else.
        let mut at = self.at;
        let stop = loop {
            let item = if let Some((h, t)) = at.as_cons() {
                at = t;
                if h.is_list_ptr() {
                    if !t.is_nil() {
                        self.stack.push(t);
                    }
                    at = h;
                    continue;
                }
                // Binaries first: most elements are binaries.
                if !h.is_boxed() {
                    if let Some(n) = h.as_small() {
                        let byte = u8::try_from(n).map_err(|_| BadIoList)?;
                        if f(Plain::Byte(byte)) {
                            continue;
                        }
                        break Stop::Early;
                    }
                    if h.is_nil() {
                        continue;
                    }
                }
                h
            } else if at.is_nil() {
                match self.stack.pop() {
                    Some(t) => at = t,
                    None => break Stop::End,
                }
                continue;
            } else if at.as_small().is_some() {
                // Neither a whole list nor its tail may be a byte.
                return Err(BadIoList);
            } else {
                std::mem::replace(&mut at, NIL)
            };
            match of(item) {
                Some(s) if f(Plain::Binary(item, s)) => {}
                Some(_) => break Stop::Early,
                None => break Stop::At(item),
            }
        };
        self.at = at;
        Ok(stop)
    }
    /// Passes everything to `f`, including unaligned bitstrings.
    #[inline(always)]
    pub fn all(&mut self, mut f: impl FnMut(Data)) -> Result<(), BadIoList> {
        loop {
            let mut left = ending::STEPS;
            let stop = self.each(|p| {
                f(match p {
                    Plain::Byte(b) => Data::Byte(b),
                    Plain::Binary(_, s) => Data::Bytes(s),
                });
                left -= 1;
                left != 0
            })?;
            match stop {
                Stop::End => return Ok(()),
                Stop::Early if ending::is_over() => return Err(BadIoList),
                Stop::Early => {}
                Stop::At(t) => {
                    if let Piece::Bits(_, b) = self.piece(t)? {
                        f(Data::Bytes(&b.shifted()));
                    }
                }
            }
        }
    }
    /// The next element: a byte, or a term that should be a bitstring; nil at the end.
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
                // Neither a whole list nor its tail may be a byte.
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

/// Number of bits in an I/O list (whole bytes unless `walk` allows otherwise), and of its elements;
/// None if these are more than `most`. A list that names one long binary many times has more bits
/// than a machine word counts.
pub fn measure(mut walk: IoWalk, most: usize) -> Result<Option<(u128, usize)>, BadIoList> {
    // Number of times that the bytes have overflowed a word, and number of elements still allowed.
    let (mut bytes, mut words, mut left) = (0u64, 0u64, most);
    let (mut bits, mut too_many) = (0u128, false);
    loop {
        let stop = walk.each_as(Term::whole_bytes, |p| {
            let n = match p {
                Plain::Byte(_) => 1,
                Plain::Binary(_, n) => n as u64,
            };
            let (sum, over) = bytes.overflowing_add(n);
            bytes = sum;
            if over {
                words += 1;
            }
            match left.checked_sub(1) {
                Some(n) => left = n,
                None => {
                    too_many = true;
                    return false;
                }
            }
            !left.is_multiple_of(ending::STEPS)
        })?;
        match stop {
            Stop::Early if too_many => return Ok(None),
            Stop::Early if ending::is_over() => return Err(BadIoList),
            Stop::Early => {}
            Stop::End => {
                let bytes = u128::from(words) << 64 | u128::from(bytes);
                return Ok(Some((bits + bytes * 8, most - left)));
            }
            Stop::At(t) => {
                if let Piece::Bits(_, b) = walk.piece(t)? {
                    bits += b.bit_len as u128;
                }
                match left.checked_sub(1) {
                    Some(n) => left = n,
                    None => return Ok(None),
                }
            }
        }
    }
}

/// Number of bits in an I/O list, as for [`measure`].
pub fn bit_size(walk: IoWalk) -> Result<u128, BadIoList> {
    // No list has more elements than that.
    measure(walk, usize::MAX)?.map(|n| n.0).ok_or(BadIoList)
}

/// Number of bytes in an I/O list that is not long: None if it has more than `pieces` binaries that
/// are not merged, or more than `bytes` bytes in merged ones.
pub fn size_unless_long(t: Term, pieces: usize, bytes: usize) -> Result<Option<usize>, BadIoList> {
    let limit = small_limit();
    let mut walk = IoWalk::new(t);
    let (mut large, mut merged, mut n) = (0, 0, 0usize);
    // Returns whether it is not long so far. A sum beyond a machine word saturates, and is no size.
    let mut count = |len: usize| {
        n = n.saturating_add(len);
        match len < limit {
            true => merged += len,
            false => large += 1,
        }
        large <= pieces && merged <= bytes
    };
    loop {
        let stop = walk.each(|p| match p {
            Plain::Byte(_) => count(1),
            Plain::Binary(_, s) => count(s.len()),
        })?;
        match stop {
            Stop::Early => return Ok(None),
            Stop::End => break,
            Stop::At(t) => {
                if let Piece::Bits(_, b) = walk.piece(t)?
                    && !count(b.bit_len / 8)
                {
                    return Ok(None);
                }
            }
        }
    }
    match n {
        usize::MAX => Err(BadIoList),
        n => Ok(Some(n)),
    }
}

/// Number of bytes in an I/O list; more than fit a machine word are an error.
pub fn size(t: Term) -> Result<usize, BadIoList> {
    usize::try_from(bit_size(IoWalk::new(t))? / 8).map_err(|_| BadIoList)
}

/// Appends `s`, without a call if it is short, as most pieces of output are.
#[inline(always)]
pub fn append(out: &mut Vec<u8>, s: &[u8]) {
    let (n, at) = (s.len(), out.len());
    if n > SHORT || out.capacity() - at < SHORT {
        out.extend_from_slice(s);
        return;
    }
    // SAFETY: there is room for `SHORT` bytes behind the present ones, and all bytes up to the new
    // length are written.
    unsafe {
        copy_short(s, out.as_mut_ptr().add(at));
        out.set_len(at + n);
    }
}

/// Maximum number of bytes that [`copy_short`] copies.
const SHORT: usize = 16;

/// Copies at most [`SHORT`] bytes: by two overlapping words if they are no whole number of words.
///
/// # Safety
/// `to` may be written as far as `s` is long.
#[inline(always)]
unsafe fn copy_short(s: &[u8], to: *mut u8) {
    let (n, from) = (s.len(), s.as_ptr());
    // SAFETY: both ends of each copy lie within `s`, by its length.
    unsafe {
        if n >= 8 {
            let a = (from as *const u64).read_unaligned();
            let b = (from.add(n - 8) as *const u64).read_unaligned();
            (to as *mut u64).write_unaligned(a);
            (to.add(n - 8) as *mut u64).write_unaligned(b);
        } else if n >= 4 {
            let a = (from as *const u32).read_unaligned();
            let b = (from.add(n - 4) as *const u32).read_unaligned();
            (to as *mut u32).write_unaligned(a);
            (to.add(n - 4) as *mut u32).write_unaligned(b);
        } else if n > 0 {
            let (a, b, c) = (*from, *from.add(n / 2), *from.add(n - 1));
            *to = a;
            *to.add(n / 2) = b;
            *to.add(n - 1) = c;
        }
    }
}

/// Copies `s` to `out` from `at` on. Returns false if it has no room there.
#[inline(always)]
fn put(out: &mut [u8], at: usize, s: &[u8]) -> bool {
    let Some(to) = out.get_mut(at..).and_then(|o| o.get_mut(..s.len())) else {
        return false;
    };
    match s.len() <= SHORT {
        // SAFETY: `to` is as long as `s`.
        true => unsafe { copy_short(s, to.as_mut_ptr()) },
        false => to.copy_from_slice(s),
    }
    true
}

/// Writes the bytes of an I/O list to `out`, whose length is what [`size`] returns.
pub fn write_to(t: Term, out: &mut [u8]) -> Result<(), BadIoList> {
    let mut at = 0;
    IoWalk::new(t).all(|data| match data {
        Data::Byte(b) => {
            if let Some(to) = out.get_mut(at) {
                *to = b;
            }
            at += 1;
        }
        Data::Bytes(s) => {
            put(out, at, s);
            at += s.len();
        }
    })
}

/// Appends the bytes of an I/O list to `out`, which is unchanged on failure.
pub fn append_to(t: Term, out: &mut Vec<u8>) -> Result<(), BadIoList> {
    let start = out.len();
    let done = IoWalk::new(t).all(|data| match data {
        Data::Byte(b) => out.push(b),
        Data::Bytes(s) => append(out, s),
    });
    if done.is_err() {
        out.truncate(start);
    }
    done
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
// SAFETY: the block is immutable where shared, and its count atomic.
unsafe impl Sync for IoSlice {}

impl IoSlice {
    pub fn copy_of(bytes: &[u8]) -> IoSlice {
        let bin = RcBin::from_bytes(bytes);
        IoSlice {
            bin,
            // SAFETY: just made.
            at: unsafe { RcBin::bytes(bin) },
            len: bytes.len(),
        }
    }
    /// Takes these bytes, which do not move.
    pub fn of_vec(bytes: Vec<u8>) -> IoSlice {
        /// Frees the vector.
        ///
        /// # Safety
        /// `arg` is a boxed `Vec<u8>`, and not used afterwards.
        unsafe fn end(arg: *mut u8) {
            // SAFETY: as the function's contract says.
            drop(unsafe { Box::from_raw(arg as *mut Vec<u8>) });
        }
        let (at, len, keeps) = (bytes.as_ptr(), bytes.len(), bytes.capacity());
        let arg = Box::into_raw(Box::new(bytes));
        IoSlice {
            bin: RcBin::foreign(end, arg as *mut u8, keeps),
            at,
            len,
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
    /// The bytes of a binary: by reference if they are in a counted block and aligned, otherwise a
    /// copy. None if `t` is no binary.
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
    /// The block, the address of the bytes and their number. The count goes to the caller.
    pub fn into_block(self) -> (*mut RcBin, *const u8, usize) {
        let s = std::mem::ManuallyDrop::new(self);
        (s.bin, s.at, s.len)
    }
    /// The first `n` bytes (at most all), which share the block.
    pub fn front(&self, n: usize) -> IoSlice {
        // SAFETY: the block is held by `self`; the part gets a count of its own.
        unsafe { RcBin::retain(self.bin) };
        IoSlice {
            bin: self.bin,
            at: self.at,
            len: n.min(self.len),
        }
    }
    /// `n` bytes from `at` on (at most those that exist), which share the block.
    pub fn part(&self, at: usize, n: usize) -> IoSlice {
        let mut s = self.front(at.saturating_add(n));
        s.advance(at);
        s
    }
    /// Drops the first `n` bytes (at most all).
    pub fn advance(&mut self, n: usize) {
        let n = n.min(self.len);
        // SAFETY: stays within the range.
        self.at = unsafe { self.at.add(n) };
        self.len -= n;
    }
    /// A term with these bytes: a reference to the block if there are many.
    pub fn to_term<A: Alloc + ?Sized>(&self, a: &mut A) -> Term {
        if self.len <= heap_bin_limit() {
            return a.binary(self.as_bytes());
        }
        // SAFETY: a count is added for the new term; the offset lies within the block.
        unsafe {
            RcBin::retain(self.bin);
            if RcBin::is_foreign(self.bin) {
                return a.refc_bin_at(self.bin, self.at, self.len);
            }
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

/// Bytes that come in pieces and are gathered in one counted block.
pub struct Gathered {
    bin: *mut RcBin,
    len: usize,
}

// SAFETY: the block has no other holder.
unsafe impl Send for Gathered {}

impl Gathered {
    /// A copy of `bytes`, with room for `room` in all.
    pub fn new(bytes: &[u8], room: usize) -> Gathered {
        let least = bytes.len();
        let bin = RcBin::try_alloc(room.max(least)).unwrap_or_else(|| RcBin::alloc(least));
        let mut g = Gathered { bin, len: 0 };
        g.extend(bytes);
        g
    }
    /// Number of bytes so far.
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Total number of bytes that fit.
    pub fn room(&self) -> usize {
        // SAFETY: this holds a count.
        unsafe { (*self.bin).capacity }
    }
    /// Makes room for `n` bytes more.
    pub fn reserve(&mut self, n: usize) {
        let (all, room) = (self.len.saturating_add(n), self.room());
        if all > room {
            self.resize(all.max(room + room / 2));
        }
    }
    /// Adds bytes at the end.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        // SAFETY: this holds the only count; the bytes are written where there is room for them.
        unsafe {
            let end = RcBin::bytes(self.bin).add(self.len);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), end, bytes.len());
        }
        self.len += bytes.len();
    }
    /// Lets `fill` write to the start of the room for `n` bytes; adds what it wrote, which it
    /// returns. Returns the number of bytes.
    pub fn fill<E>(
        &mut self,
        n: usize,
        fill: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8], E>,
    ) -> Result<usize, E> {
        self.reserve(n);
        // SAFETY: this holds the only count, and there is room for `n` bytes.
        let end = unsafe { RcBin::bytes(self.bin).add(self.len) };
        // SAFETY: there is room for `n` bytes, which need not be initialised.
        let room = unsafe { std::slice::from_raw_parts_mut(end.cast::<MaybeUninit<u8>>(), n) };
        let filled = fill(room)?;
        // The bytes are initialised, but may be others than those of the room.
        let here = std::ptr::eq(filled.as_ptr(), end) && filled.len() <= n;
        let filled = if here { filled.len() } else { 0 };
        self.len += filled;
        Ok(filled)
    }
    fn resize(&mut self, capacity: usize) {
        // SAFETY: this holds the only count.
        self.bin = unsafe { RcBin::try_grow(self.bin, capacity) }
            .unwrap_or_else(|| crate::sys::out_of_memory("binary_realloc", capacity, "binary"));
    }
    /// All of the bytes. Gives back the room that was left.
    pub fn finish(mut self) -> IoSlice {
        if self.len < self.room() {
            self.resize(self.len);
        }
        let mut s = std::mem::ManuallyDrop::new(self);
        // SAFETY: the count passes to the result; nobody else sees the block yet.
        unsafe {
            *(*s.bin).used.get_mut() = s.len;
            IoSlice {
                bin: s.bin,
                at: RcBin::bytes(s.bin),
                len: s.len,
            }
        }
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        // SAFETY: this owned the only count.
        unsafe { RcBin::release(self.bin) }
    }
}

/// The counted block behind a binary; None for heap binaries. Blocks never move, and one with a
/// second count is no longer appended to in place, so a count is enough to keep the bytes.
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
    /// Gathers an I/O list behind what is there; adds nothing if it fails.
    pub(crate) fn append(&mut self, t: Term) -> Result<(), BadIoList> {
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
    /// Drops the first `n` bytes (at most all), which the kernel has taken.
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

#[cfg(test)]
#[path = "iolist_sample.rs"]
mod iolist_sample;

#[cfg(test)]
mod tests {
    use super::iolist_sample::sample;
    use super::*;
    use crate::heap::Heap;

    #[test]
    fn gathering_keeps_every_byte_in_order() {
        let mut cx = Heap::empty();
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
    fn a_list_is_measured_up_to_a_number_of_elements() {
        let mut cx = Heap::empty();
        let b = cx.binary(&[7; 10]);
        let part = cx.sub_binary(b, 4, 16);
        let inner = cx.list(&[Term::small(1), b]);
        let l = cx.list(&[inner, part, Term::small(2)]);
        let walk = || IoWalk::new(l);
        assert_eq!(measure(walk(), 4), Ok(Some((8 + 80 + 16 + 8, 4))));
        assert_eq!(measure(walk(), 3), Ok(None));
        assert_eq!(bit_size(walk()), Ok(112));
        let odd = cx.sub_binary(b, 0, 9);
        let l = cx.list(&[odd, Term::small(2)]);
        assert_eq!(bit_size(IoWalk::new(l)), Err(BadIoList));
        assert_eq!(bit_size(IoWalk::bits(l)), Ok(17));
    }

    #[test]
    fn what_is_no_io_list_is_refused() {
        let mut cx = Heap::empty();
        for bad in [Term::small(256), Term::small(-1), am_ok()] {
            let l = cx.list(&[Term::small(1), bad]);
            assert_eq!(size(l), Err(BadIoList));
            assert!(IoVec::gather(l).is_err());
        }
        let improper = cx.cons(Term::small(1), Term::small(2));
        assert_eq!(size(improper), Err(BadIoList));
    }

    fn am_ok() -> Term {
        crate::am::OK
    }
}
