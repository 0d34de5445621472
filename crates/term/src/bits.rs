//! Bit strings: copying, matching and building at any bit position, and binaries that grow in
//! place.
//!
//! A position is a byte address and a bit number counted from its most significant bit; bit numbers
//! may exceed 7. Writing is sequential: a write keeps the bits before its position and clears those
//! behind its end in the last byte it touches, so fresh memory needs no clearing and padding is
//! always zero.
//!
//! # Binaries that grow
//! An append makes a sub-binary marked writable whose original is a refc binary with spare room.
//! The next append to that very sub-binary writes behind its end and passes the mark on. It happens
//! in place only while this heap holds the only count of the block, and the block never moves: a
//! full block is replaced by a larger one under a new refc binary, and the old one stays for terms
//! that refer to it (match contexts hold addresses of bytes).
//!
//! # Orderings
//! The count of a block is loaded with acquire and pairs with the release by which others gave up
//! theirs: who finds a count of 1 may write, since no other thread reads any more.

use crate::alloc::Alloc;
use crate::arith::{self, Arith};
use crate::bin::RcBin;
use crate::layout::*;
use crate::word::{Subtag, Term, header};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

/// Reads bits `pos..pos + n` from `base` as a number; `n` is at most 64.
///
/// # Safety
/// All bytes that hold those bits are readable.
#[inline]
pub unsafe fn read_bits(base: *const u8, pos: usize, n: usize) -> u64 {
    debug_assert!(n <= 64);
    if n == 0 {
        return 0;
    }
    // SAFETY: by the contract: these are the bytes that hold the bits.
    unsafe {
        let p = base.add(pos >> 3);
        let off = pos & 7;
        let bytes = (off + n).div_ceil(8);
        if off == 0 && n == 8 {
            return *p as u64;
        }
        let mut v = 0u128;
        for i in 0..bytes {
            v = v << 8 | *p.add(i) as u128;
        }
        let v = (v >> (bytes * 8 - off - n)) as u64;
        if n == 64 { v } else { v & ((1 << n) - 1) }
    }
}

/// Writes the low `n` (at most 64) bits of `v` at bit `pos` from `base`, sequentially (module
/// head).
///
/// # Safety
/// All bytes that hold those bits are writable, and the first one is initialised if `pos` is not on
/// a byte boundary.
#[inline]
pub unsafe fn write_bits(base: *mut u8, pos: usize, n: usize, v: u64) {
    debug_assert!(n <= 64);
    if n == 0 {
        return;
    }
    // SAFETY: by the contract, the bytes of these bits are writable.
    let p = unsafe { base.add(pos >> 3) };
    let off = pos & 7;
    let bytes = (off + n).div_ceil(8);
    let v = if n == 64 { v } else { v & ((1 << n) - 1) };
    let mut w = (v as u128) << (bytes * 8 - off - n);
    // SAFETY: by the contract: these are the bytes that hold the bits; the first is read only if it
    // is initialised.
    unsafe {
        if off != 0 {
            w |= ((*p & !(0xFF >> off)) as u128) << (bytes * 8 - 8);
        }
        for i in (0..bytes).rev() {
            *p.add(i) = w as u8;
            w >>= 8;
        }
    }
}

/// Copies `n` bits from bit `spos` of `src` to bit `dpos` of `dst`, sequentially (module head).
///
/// # Safety
/// As for [`read_bits`] and [`write_bits`]; the two do not overlap.
pub unsafe fn copy_bits(src: *const u8, spos: usize, dst: *mut u8, dpos: usize, n: usize) {
    let (mut spos, mut dpos, mut n) = (spos, dpos, n);
    // SAFETY: by the contract of both sides; a ninth byte is read only if it holds some of the
    // bits.
    unsafe {
        if dpos & 7 != 0 {
            let k = n.min(8 - (dpos & 7));
            write_bits(dst, dpos, k, read_bits(src, spos, k));
            spos += k;
            dpos += k;
            n -= k;
        }
        let mut s = src.add(spos >> 3);
        let mut d = dst.add(dpos >> 3);
        let off = spos & 7;
        if off == 0 {
            std::ptr::copy_nonoverlapping(s, d, n >> 3);
            s = s.add(n >> 3);
            d = d.add(n >> 3);
            n &= 7;
        } else {
            while n >= 64 {
                // 64 bits that do not start on a byte boundary end in a ninth byte.
                let v = u64::from_be((s as *const u64).read_unaligned());
                let v = v << off | (*s.add(8) >> (8 - off)) as u64;
                (d as *mut u64).write_unaligned(v.to_be());
                s = s.add(8);
                d = d.add(8);
                n -= 64;
            }
        }
        write_bits(d, 0, n, read_bits(s, off, n));
    }
}

/// The integer in `n` bits from bit `pos` on. `SystemLimit` if it is too large for a bignum.
///
/// # Safety
/// As for [`read_bits`].
pub unsafe fn get_integer<A: Alloc + ?Sized>(
    a: &mut A,
    base: *const u8,
    pos: usize,
    n: usize,
    signed: bool,
    little: bool,
) -> Arith {
    if n <= 64 {
        if n == 0 {
            return Ok(Term::small(0));
        }
        // SAFETY: by the contract, the bytes of these bits are readable.
        let mut v = unsafe { read_bits(base, pos, n) };
        if little {
            v = swap_partial(v, n, true);
        }
        return Ok(if signed {
            a.int((v << (64 - n)) as i64 >> (64 - n))
        } else {
            a.uint(v)
        });
    }
    // All of the field is readable: it may be longer than any number can be, as long as the number
    // is not.
    let pad = n.wrapping_neg() & 7;
    let mut buf = vec![0u8; n.div_ceil(8)];
    let last = buf.len() - 1;
    // SAFETY: by the contract; the buffer has room for `n` bits and the padding.
    unsafe {
        if little {
            copy_bits(base, pos, buf.as_mut_ptr(), 0, n);
            buf[last] >>= pad;
        } else {
            copy_bits(base, pos, buf.as_mut_ptr(), pad, n);
            buf.reverse();
        }
    }
    if signed && pad > 0 && buf[last] >> (7 - pad) & 1 != 0 {
        buf[last] |= 0xFF << (8 - pad);
    }
    arith::from_le_bytes(a, &buf, signed)
}

/// Reverses the bytes of a little-endian field of `n` bits, whose last byte may be partial: the
/// field has its whole bytes first, and then its most significant bits. Converts the field to its
/// value if `read`, otherwise the value to the field.
fn swap_partial(v: u64, n: usize, read: bool) -> u64 {
    let (whole, rest) = (n & !7, n & 7);
    let swap = |x: u64| {
        if whole == 0 {
            0
        } else {
            x.swap_bytes() >> (64 - whole)
        }
    };
    let mask = |bits: usize| {
        if bits == 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        }
    };
    if rest == 0 {
        swap(v)
    } else if read {
        swap(v >> rest & mask(whole)) | (v & mask(rest)) << whole
    } else {
        swap(v & mask(whole)) << rest | v >> whole & mask(rest)
    }
}

/// Writes the low `n` bits of an integer at bit `pos`. False if `x` is no integer (nothing is
/// written).
///
/// # Safety
/// As for [`write_bits`].
pub unsafe fn put_integer(dst: *mut u8, pos: usize, n: usize, x: Term, little: bool) -> bool {
    if n <= 64 {
        let v = match x.as_small() {
            Some(v) => v as u64,
            None => {
                let mut b = [0; 8];
                if !arith::to_le_bytes(x, &mut b) {
                    return false;
                }
                u64::from_le_bytes(b)
            }
        };
        let v = if little && n > 8 {
            swap_partial(v, n, false)
        } else {
            v
        };
        // SAFETY: by the contract, the bytes of these bits are writable.
        unsafe {
            write_bits(dst, pos, n, v);
        }
        return true;
    }
    let pad = n.wrapping_neg() & 7;
    let mut buf: SmallVec<[u8; 64]> = SmallVec::from_elem(0, n.div_ceil(8));
    if !arith::to_le_bytes(x, &mut buf) {
        return false;
    }
    // SAFETY: by the contract; the buffer has `n` bits and the padding.
    unsafe {
        if little {
            if let Some(l) = buf.last_mut() {
                *l <<= pad;
            }
            copy_bits(buf.as_ptr(), 0, dst, pos, n);
        } else {
            buf.reverse();
            copy_bits(buf.as_ptr(), pad, dst, pos, n);
        }
    }
    true
}

fn f16_to_f64(h: u16) -> f64 {
    let sign = if h >> 15 != 0 { -1.0 } else { 1.0 };
    let (e, m) = ((h >> 10 & 31) as i32, (h & 1023) as f64);
    sign * match e {
        0 => m * 2f64.powi(-24),
        31 if m == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + m) * 2f64.powi(e - 25),
    }
}

/// Rounds to the nearest half float, ties to even; infinite if out of range.
fn f16_from_f64(f: f64) -> u16 {
    let sign = (f.to_bits() >> 48 & 0x8000) as u16;
    let x = f.abs();
    if x >= 65520.0 {
        return sign | 0x7C00;
    }
    // The step between half floats of this magnitude; scaling by powers of two is exact.
    let e = ((x.to_bits() >> 52) as i32 - 1023).max(-14);
    let m = (x * 2f64.powi(10 - e)).round_ties_even() as u32;
    // A mantissa rounded up to the next power carries into the exponent by itself.
    sign | (((e + 14) as u32) << 10).wrapping_add(m) as u16
}

/// The float in `n` bits from bit `pos` on. None if `n` is not 0, 16, 32 or 64 or the value is not
/// finite.
///
/// # Safety
/// As for [`read_bits`].
pub unsafe fn get_float(base: *const u8, pos: usize, n: usize, little: bool) -> Option<f64> {
    let mut v = match n <= 64 {
        // SAFETY: by the contract, the bytes of these bits are readable.
        true => unsafe { read_bits(base, pos, n) },
        false => 0,
    };
    if little {
        v = swap_partial(v, n.min(64), true);
    }
    let f = match n {
        0 => 0.0,
        16 => f16_to_f64(v as u16),
        32 => f32::from_bits(v as u32) as f64,
        64 => f64::from_bits(v),
        _ => return None,
    };
    f.is_finite().then_some(f)
}

/// Writes a number as a float of `n` bits at bit `pos`. Returns false if `x` is no number or an
/// integer too large for a float, or if `n` is not 16, 32 or 64.
///
/// # Safety
/// As for [`write_bits`].
pub unsafe fn put_float(dst: *mut u8, pos: usize, n: usize, x: Term, little: bool) -> bool {
    let Some(f) = arith::to_f64(x) else {
        return false;
    };
    let v = match n {
        16 => {
            // Stock writes infinity if a number is too large for 16 or 32 bits.
            f16_from_f64(f) as u64
        }
        32 => (f as f32).to_bits() as u64,
        64 => f.to_bits(),
        _ => return false,
    };
    let v = if little { swap_partial(v, n, false) } else { v };
    // SAFETY: by the contract, the bytes of these bits are writable.
    unsafe { write_bits(dst, pos, n, v) };
    true
}

/// The code point in a term: 0 to 16#10FFFF without surrogates; None for anything else.
pub fn code_point(x: Term) -> Option<u32> {
    let v = u32::try_from(x.as_small()?).ok()?;
    char::from_u32(v).map(|c| c as u32)
}

/// The character in UTF-8 at bit `pos` of `avail` bits, and its size in bits. None if there is no
/// valid one.
///
/// # Safety
/// As for [`read_bits`], for all `avail` bits.
pub unsafe fn get_utf8(base: *const u8, pos: usize, avail: usize) -> Option<(u32, usize)> {
    if avail < 8 {
        return None;
    }
    // SAFETY: by the contract, for the first 8 of `avail` bits.
    let b0 = unsafe { read_bits(base, pos, 8) } as u32;
    let (n, least) = match b0 {
        0..=0x7F => return Some((b0, 8)),
        0xC2..=0xDF => (2, 0x80),
        0xE0..=0xEF => (3, 0x800),
        0xF0..=0xF4 => (4, 0x10000),
        _ => return None,
    };
    if avail < n * 8 {
        return None;
    }
    let mut c = b0 & (0x7F >> n);
    for i in 1..n {
        // SAFETY: by the contract, since `avail` covers all `n` bytes.
        let b = unsafe { read_bits(base, pos + 8 * i, 8) } as u32;
        if b & 0xC0 != 0x80 {
            return None;
        }
        c = c << 6 | b & 0x3F;
    }
    (c >= least && char::from_u32(c).is_some()).then_some((c, n * 8))
}

/// The character in UTF-16 at bit `pos` of `avail` bits, and its size in bits. None if there is no
/// valid one.
///
/// # Safety
/// As for [`read_bits`], for all `avail` bits.
pub unsafe fn get_utf16(
    base: *const u8,
    pos: usize,
    avail: usize,
    little: bool,
) -> Option<(u32, usize)> {
    let unit = |at: usize| {
        // SAFETY: by the contract, since `unit` is called only for bits within `avail`.
        let v = unsafe { read_bits(base, at, 16) } as u16;
        (if little { v.swap_bytes() } else { v }) as u32
    };
    if avail < 16 {
        return None;
    }
    let hi = unit(pos);
    match hi {
        0xD800..=0xDBFF if avail >= 32 => match unit(pos + 16) {
            lo @ 0xDC00..=0xDFFF => Some((0x10000 + ((hi & 0x3FF) << 10) + (lo & 0x3FF), 32)),
            _ => None,
        },
        0xD800..=0xDFFF => None,
        _ => Some((hi, 16)),
    }
}

/// The character in UTF-32 at bit `pos` of `avail` bits. None if there is no valid one.
///
/// # Safety
/// As for [`read_bits`], for all `avail` bits.
pub unsafe fn get_utf32(base: *const u8, pos: usize, avail: usize, little: bool) -> Option<u32> {
    if avail < 32 {
        return None;
    }
    // SAFETY: by the contract, for the first 32 of `avail` bits.
    let v = unsafe { read_bits(base, pos, 32) } as u32;
    char::from_u32(if little { v.swap_bytes() } else { v }).map(|c| c as u32)
}

/// Number of bits of a code point in UTF-8.
pub const fn utf8_bits(c: u32) -> usize {
    match c {
        0..=0x7F => 8,
        0x80..=0x7FF => 16,
        0x800..=0xFFFF => 24,
        _ => 32,
    }
}

/// Number of bits of a code point in UTF-16.
pub const fn utf16_bits(c: u32) -> usize {
    if c < 0x10000 { 16 } else { 32 }
}

/// Writes a valid code point in UTF-8; returns its size in bits.
///
/// # Safety
/// As for [`write_bits`].
pub unsafe fn put_utf8(dst: *mut u8, pos: usize, c: u32) -> usize {
    let n = utf8_bits(c);
    let c = c as u64;
    let tail = |shift: u32| 0x80 | c >> shift & 0x3F;
    let v = match n {
        8 => c,
        16 => (0xC0 | c >> 6) << 8 | tail(0),
        24 => (0xE0 | c >> 12) << 16 | tail(6) << 8 | tail(0),
        _ => (0xF0 | c >> 18) << 24 | tail(12) << 16 | tail(6) << 8 | tail(0),
    };
    // SAFETY: by the contract, the bytes of these bits are writable.
    unsafe {
        write_bits(dst, pos, n, v);
    }
    n
}

/// Writes a valid code point in UTF-16; returns its size in bits.
///
/// # Safety
/// As for [`write_bits`].
pub unsafe fn put_utf16(dst: *mut u8, pos: usize, c: u32, little: bool) -> usize {
    let unit = |at: usize, v: u32| {
        let v = v as u16;
        let v = if little { v.swap_bytes() } else { v };
        // SAFETY: by the contract, the bytes of these bits are writable.
        unsafe { write_bits(dst, at, 16, v.into()) };
    };
    if c < 0x10000 {
        unit(pos, c);
        return 16;
    }
    unit(pos, 0xD800 | (c - 0x10000) >> 10);
    unit(pos + 16, 0xDC00 | (c - 0x10000) & 0x3FF);
    32
}

/// Writes a code point in UTF-32.
///
/// # Safety
/// As for [`write_bits`].
pub unsafe fn put_utf32(dst: *mut u8, pos: usize, c: u32, little: bool) {
    let c = if little { c.swap_bytes() } else { c };
    // SAFETY: by the contract, the bytes of these bits are writable.
    unsafe { write_bits(dst, pos, 32, c.into()) };
}

/// A bit string under construction: its size is known, and segments are written in order.
pub struct BsWriter {
    /// The whole bit string. Valid once all segments are written.
    pub term: Term,
    dst: *mut u8,
    /// Next bit to write.
    pos: usize,
    end: usize,
}

impl BsWriter {
    /// A new bit string of `bits` bits.
    pub fn new<A: Alloc + ?Sized>(a: &mut A, bits: usize) -> BsWriter {
        let bytes = bits.div_ceil(8);
        let (whole, dst) = if bytes <= heap_bin_limit() {
            a.heap_bin(bytes)
        } else {
            let b = RcBin::alloc(bytes);
            // SAFETY: a fresh block, whose count the term takes over; the writer fills it before
            // the term is used.
            unsafe { (a.refc_bin(b, bytes), RcBin::bytes(b)) }
        };
        let term = if bits & 7 == 0 {
            whole
        } else {
            a.sub_binary(whole, 0, bits)
        };
        BsWriter {
            term,
            dst,
            pos: 0,
            end: bits,
        }
    }
    /// Reserves a segment of `n` bits; None if it does not fit.
    fn step(&mut self, n: usize) -> Option<usize> {
        let pos = self.pos;
        if n > self.end - pos {
            return None;
        }
        self.pos += n;
        Some(pos)
    }
    /// Bits still to write.
    pub fn left(&self) -> usize {
        self.end - self.pos
    }
    /// Writes the low `n` bits of an integer. Returns false if `x` is none, or if there is no room.
    pub fn integer(&mut self, x: Term, n: usize, little: bool) -> bool {
        // SAFETY: `step` keeps the segment inside the block.
        self.step(n)
            .is_some_and(|pos| unsafe { put_integer(self.dst, pos, n, x, little) })
    }
    /// Writes a float of `n` bits. Returns false if `x` cannot be one, or if there is no room.
    pub fn float(&mut self, x: Term, n: usize, little: bool) -> bool {
        // SAFETY: `step` keeps the segment inside the block.
        self.step(n)
            .is_some_and(|pos| unsafe { put_float(self.dst, pos, n, x, little) })
    }
    /// Writes the first `n` bits of `bits`. Returns false if there are fewer, or no room.
    pub fn bits(&mut self, bits: &Bits, n: usize) -> bool {
        if n > bits.bit_len {
            return false;
        }
        self.step(n).is_some_and(|pos| {
            // SAFETY: `step` keeps the segment inside the block; the source has n bits and is
            // another object.
            unsafe { copy_bits(bits.base, bits.bit_offset as usize, self.dst, pos, n) };
            true
        })
    }
    /// Writes literal bytes. Returns false if there is no room.
    pub fn bytes(&mut self, b: &[u8]) -> bool {
        self.step(b.len() * 8).is_some_and(|pos| {
            // SAFETY: `step` keeps the segment inside the block; the slice is another object.
            unsafe { copy_bits(b.as_ptr(), 0, self.dst, pos, b.len() * 8) };
            true
        })
    }
    /// Writes a code point in UTF-8. Returns false if there is no room.
    pub fn utf8(&mut self, c: u32) -> bool {
        self.step(utf8_bits(c)).is_some_and(|pos| {
            // SAFETY: `step` keeps the segment inside the block.
            unsafe { put_utf8(self.dst, pos, c) };
            true
        })
    }
    /// Writes a code point in UTF-16. Returns false if there is no room.
    pub fn utf16(&mut self, c: u32, little: bool) -> bool {
        self.step(utf16_bits(c)).is_some_and(|pos| {
            // SAFETY: `step` keeps the segment inside the block.
            unsafe { put_utf16(self.dst, pos, c, little) };
            true
        })
    }
    /// Writes a code point in UTF-32. Returns false if there is no room.
    pub fn utf32(&mut self, c: u32, little: bool) -> bool {
        self.step(32).is_some_and(|pos| {
            // SAFETY: `step` keeps the segment inside the block.
            unsafe { put_utf32(self.dst, pos, c, little) };
            true
        })
    }
}

/// Reason why an append fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendError {
    /// It is not a bit string: `badarg`.
    Type,
    /// Its size is no multiple of the unit: `badarg`.
    Unit,
    /// Too large: `system_limit`.
    Size,
}

/// Minimum number of bytes of a block that is to grow.
const MIN_WRITABLE: usize = 256;

/// A new writable block with room for `capacity` bytes, of which `size` count as used, under a refc
/// binary and a writable sub-binary of `bits` bits.
///
/// # Safety
/// The caller fills the first `bits` bits before the term is used.
unsafe fn new_writable<A: Alloc + ?Sized>(
    a: &mut A,
    bits: usize,
    capacity: usize,
) -> (Term, *mut u8) {
    let size = bits.div_ceil(8);
    let b = RcBin::alloc(capacity.max(size));
    // SAFETY: the block is new and its count goes over to the term; word 5 of a refc binary is its
    // flags.
    unsafe {
        (*b).used.store(size, Ordering::Relaxed);
        let whole = a.refc_bin(b, size);
        (whole.ptr().add(5) as *mut u64).write(PB_IS_WRITABLE | PB_ACTIVE_WRITER);
        (writable_sub(a, whole, bits), RcBin::bytes(b))
    }
}

/// A writable sub-binary of the first `bits` bits of `whole`.
///
/// # Safety
/// `whole` is a counted binary that its writer may append to, and has at least `bits` bits.
unsafe fn writable_sub<A: Alloc + ?Sized>(a: &mut A, whole: Term, bits: usize) -> Term {
    let t = a.sub_binary(whole, 0, bits);
    // SAFETY: a sub-binary was just made, whose word 3 has the flag.
    unsafe {
        *(t.ptr().add(3) as *mut u64) |= SUB_WRITABLE;
        t
    }
}

/// An empty writable binary with room for `capacity` bytes. A compiler that knows the size asks for
/// exactly that.
pub fn init_writable<A: Alloc + ?Sized>(a: &mut A, capacity: usize) -> Term {
    // SAFETY: no bits to fill.
    unsafe { new_writable(a, 0, capacity).0 }
}

/// Extends `bin` by `extra` bits; returns the result, and the address and bit position to write
/// them to. The size of `bin` must be a multiple of `unit`. Works in place if the module head
/// allows it, otherwise in a copy with room to grow.
pub fn append<A: Alloc + ?Sized>(
    a: &mut A,
    bin: Term,
    extra: usize,
    unit: usize,
) -> Result<(Term, *mut u8, usize), AppendError> {
    let bits = bin.as_bits().ok_or(AppendError::Type)?;
    let old = bits.bit_len;
    if unit > 1 && old % unit != 0 {
        return Err(AppendError::Unit);
    }
    let new = old
        .checked_add(extra)
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or(AppendError::Size)?;
    if extra == 0 {
        return Ok((bin, bits.base as *mut u8, old));
    }
    let size = new.div_ceil(8);
    // SAFETY: a sub-binary marked writable has a refc binary as its original (see new_writable);
    // layouts.
    unsafe {
        if let Some((whole, block)) = writable_parts(bin)
            && size <= (*block).capacity
        {
            let sub = bin.ptr().add(3) as *mut u64;
            *sub &= !SUB_WRITABLE;
            extend(a, whole, block, size);
            return Ok((writable_sub(a, whole, new), RcBin::bytes(block), old));
        }
        let (t, dst) = new_writable(a, new, room_for(size));
        copy_bits(bits.base, bits.bit_offset as usize, dst, 0, old);
        Ok((t, dst, old))
    }
}

/// As [`append`], if nothing else refers to `bin`: the sub-binary itself is extended, and gets
/// another block if its own has no room. Some code of OTP 29's compiler continues with the source
/// of the instruction instead of its destination, so both must be the same term.
pub fn private_append<A: Alloc + ?Sized>(
    a: &mut A,
    bin: Term,
    extra: usize,
    unit: usize,
) -> Result<(Term, *mut u8, usize), AppendError> {
    let old = bin.as_bits().ok_or(AppendError::Type)?.bit_len;
    let new = old.checked_add(extra).ok_or(AppendError::Size)?;
    // SAFETY: a sub-binary marked writable has a refc binary as its original; layouts.
    unsafe {
        if let Some((whole, block)) = writable_parts(bin) {
            let size = new.div_ceil(8);
            if new <= isize::MAX as usize && (unit <= 1 || old % unit == 0) {
                let block = match size <= (*block).capacity {
                    true => block,
                    false => move_to_larger(whole, block, size),
                };
                extend(a, whole, block, size);
                let w = bin.ptr() as *mut u64;
                w.add(1).write((new >> 3) as u64);
                w.add(3).write((new & 7) as u64 | SUB_WRITABLE);
                return Ok((bin, RcBin::bytes(block), old));
            }
        }
    }
    append(a, bin, extra, unit)
}

/// Bytes of the block that has to be made to append `extra` bits to `bin`; 0 for none.
pub fn append_needs(bin: Term, extra: usize) -> usize {
    let Some(old) = bin.as_bits().map(|b| b.bit_len) else {
        return 0;
    };
    let size = old.saturating_add(extra).div_ceil(8);
    // SAFETY: a live term; the block is one that it holds.
    let room = unsafe { writable_parts(bin).map_or(0, |(_, block)| (*block).capacity) };
    match size <= room {
        true => 0,
        false => room_for(size),
    }
}

/// Room for a writable binary of `size` bytes: twice as many, or little more if memory is scarce.
fn room_for(size: usize) -> usize {
    let twice = size.saturating_mul(2).max(MIN_WRITABLE);
    match crate::pressure::refuses(twice) {
        true => size.saturating_add(size / 16),
        false => twice,
    }
}

/// Gives a refc binary to which only its front refers another block, with room for `size` bytes and
/// as many more.
///
/// # Safety
/// `whole` and `block` are those of [`writable_parts`].
#[cold]
unsafe fn move_to_larger(whole: Term, block: *mut RcBin, size: usize) -> *mut RcBin {
    // SAFETY: by the contract: the only holder of the block, whose refc binary has block and
    // address in words 3 and 4.
    unsafe {
        let used = (*block).used.load(Ordering::Relaxed);
        let larger = RcBin::alloc(room_for(size));
        std::ptr::copy_nonoverlapping(RcBin::bytes(block), RcBin::bytes(larger), used);
        (*larger).used.store(used, Ordering::Relaxed);
        let w = whole.ptr() as *mut u64;
        w.add(3).write(larger as u64);
        w.add(4).write(RcBin::bytes(larger) as u64);
        RcBin::release(block);
        larger
    }
}

/// Largest part in bytes that stock copies since OTP 27.
const SMALL_PART_BYTES: usize = 64;

/// Whether it is a part that stock copies since OTP 27: short, and not the front of a block that
/// was appended to.
pub fn is_small_part(bin: Term) -> bool {
    let small = |b: Bits| b.bit_len <= SMALL_PART_BYTES * 8;
    if bin.subtag() != Some(Subtag::SubBin) || !bin.as_bits().is_some_and(small) {
        return false;
    }
    let p = bin.ptr();
    // SAFETY: layouts of sub-binaries and refc binaries.
    let appended = unsafe {
        let whole = *p.add(4);
        let front = (*p.add(2)).raw() == 0;
        front
            && whole.subtag() == Some(Subtag::RefcBin)
            && (*whole.ptr().add(5)).raw() & PB_IS_WRITABLE != 0
    };
    !appended
}

/// The refc binary and block under a sub-binary that may be appended to in place.
#[inline]
fn writable_parts(bin: Term) -> Option<(Term, *mut RcBin)> {
    if bin.subtag() != Some(Subtag::SubBin) {
        return None;
    }
    let p = bin.ptr();
    // SAFETY: layouts of sub-binaries and refc binaries. The mark is set only on sub-binaries that
    // start at the first bit of their block; only the holder of the only count changes `used`.
    unsafe {
        let mark = (*p.add(3)).raw();
        let whole = *p.add(4);
        if mark & SUB_WRITABLE == 0 || whole.subtag() != Some(Subtag::RefcBin) {
            return None;
        }
        let q = whole.ptr();
        let block = (*q.add(3)).raw() as *mut RcBin;
        let end = ((*p.add(1)).raw() + (mark & 0xFF).div_ceil(8)) as usize;
        let ok = (*q.add(5)).raw() & PB_IS_WRITABLE != 0
            && (*p.add(2)).raw() == 0
            && (mark >> SUB_BIN_START_SHIFT) & 0xFF == 0
            && (*block).refc.load(Ordering::Acquire) == 1
            && (*block).used.load(Ordering::Relaxed) == end;
        ok.then_some((whole, block))
    }
}

/// The room behind a binary that may be appended to in place.
#[derive(Clone, Copy)]
pub struct Room {
    /// The address behind the last byte of the binary.
    pub start: *mut u8,
    whole: Term,
    block: *mut RcBin,
    used: usize,
}

impl Room {
    /// Number of bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        // SAFETY: the block lives as long as the binary, which is in hand.
        unsafe { (*self.block).capacity - self.used }
    }
}

/// The room behind a binary that may be appended to in place; None for any other, and for one that
/// ends within a byte. Bytes written there belong to nobody until [`grow_by`] makes them part of
/// the binary.
#[inline]
pub fn room_behind(bin: Term) -> Option<Room> {
    let (whole, block) = writable_parts(bin)?;
    // SAFETY: a writable sub-binary (see `writable_parts`), whose last bits are counted in word 3;
    // `used` bytes of its block belong to it.
    unsafe {
        if (*bin.ptr().add(3)).raw() & 7 != 0 {
            return None;
        }
        let used = (*block).used.load(Ordering::Relaxed);
        Some(Room {
            start: RcBin::bytes(block).add(used),
            whole,
            block,
            used,
        })
    }
}

/// Extends `bin` by the `n` bytes that were written behind it. If it is `private` nothing else
/// refers to it, and the sub-binary itself is extended.
///
/// # Safety
/// [`room_behind`] has just returned `room` for `bin`, and `n` bytes are written there, at least
/// one.
#[inline]
pub unsafe fn grow_by<A: Alloc + ?Sized>(
    a: &mut A,
    bin: Term,
    room: Room,
    n: usize,
    private: bool,
) -> Term {
    let size = room.used + n;
    // SAFETY: by the contract: a writable sub-binary and its original; all words of the new
    // sub-binary are written.
    unsafe {
        extend(a, room.whole, room.block, size);
        let w = bin.ptr() as *mut u64;
        if private {
            w.add(1).write(size as u64);
            return bin;
        }
        *w.add(3) &= !SUB_WRITABLE;
        let p = a.alloc(SUB_BIN_WORDS);
        let w = p as *mut u64;
        w.write(header(Subtag::SubBin, SUB_BIN_WORDS - 1));
        w.add(1).write(size as u64);
        w.add(2).write(0);
        w.add(3).write(SUB_WRITABLE);
        p.add(4).write(room.whole);
        Term::boxed_at(p)
    }
}

/// Makes the first `size` bytes of the block part of `whole`.
///
/// # Safety
/// `whole` is a counted binary of `block`, and the only one that writes behind its end. The block
/// has at least `size` bytes, which are initialised.
#[inline]
unsafe fn extend<A: Alloc + ?Sized>(a: &mut A, whole: Term, block: *mut RcBin, size: usize) {
    let w = whole.ptr() as *mut u64;
    // SAFETY: by the contract: words 1 and 5 of a refc binary are its size and its flags, and no
    // one else uses `used`.
    unsafe {
        let before = w.add(1).read() as usize;
        w.add(1).write(size as u64);
        w.add(5).write(PB_IS_WRITABLE | PB_ACTIVE_WRITER);
        (*block).used.store(size, Ordering::Relaxed);
        a.off_heap().bytes += size.saturating_sub(before);
        a.off_heap_grew();
    }
}
