//! Making terms: the one interface between builders and the places where terms live.
//!
//! An [`Alloc`] gives out words that stay where they are: allocating never moves or frees a term
//! made before. A process heap that is full adds a heap fragment, and is collected only after the
//! native call is over (see [`crate::heap`]). So native code may hold any number of terms while it
//! builds others.

use crate::bin::RcBin;
use crate::ending;
use crate::layout::*;
use crate::magic::MagicRef;
use crate::node::Node;
use crate::off_heap::OffHeap;
use crate::short_bytes::word_of;
use crate::word::{MAX_SMALL, MIN_SMALL, NIL, Subtag, Term, header};

/// Words that [`list_of_pairs`] needs for each pair.
pub const LISTED_PAIR_WORDS: usize = 5;

/// Builds a list of tuples, the last pair first, in the words at `at`.
///
/// # Safety
/// There are [`LISTED_PAIR_WORDS`] fresh words for each of the pairs, and no others.
pub unsafe fn list_of_pairs(mut at: *mut Term, pairs: impl Iterator<Item = (Term, Term)>) -> Term {
    let mut l = NIL;
    // SAFETY: by the contract, there are five words for each pair; all of them are written.
    unsafe {
        for (k, v) in pairs {
            at.write(Term::from_raw(header(Subtag::Tuple, 2)));
            at.add(1).write(k);
            at.add(2).write(v);
            at.add(3).write(Term::boxed_at(at));
            at.add(4).write(l);
            l = Term::cons_at(at.add(3));
            at = at.add(LISTED_PAIR_WORDS);
        }
        l
    }
}

/// Builds the list of `of(item)` for each of `items`, in front of `tail`. Stops early if the
/// process that waits for it has ended.
///
/// # Safety
/// There are two fresh words at `p` for each item, and there is at least one item.
#[inline(always)]
unsafe fn cells<T>(p: *mut Term, items: &[T], of: impl Fn(&T) -> Term, tail: Term) -> Term {
    let mut at = p;
    // SAFETY: by the contract; each cell points at the next, the last at `tail`.
    unsafe {
        for part in items.chunks(ending::STEPS) {
            for t in part {
                at.write(of(t));
                at.add(1).write(Term::cons_at(at.add(2)));
                at = at.add(2);
            }
            if part.len() == ending::STEPS && ending::is_over() {
                break;
            }
        }
        at.sub(1).write(tail);
        Term::cons_at(p)
    }
}

/// Finishes an integer that was written with `n` digits: returns its term, and its number of digits
/// without leading zeros. The unneeded room remains as an object that nothing refers to.
///
/// # Safety
/// `p` has room for a header, and `n` written digits behind it.
#[inline(always)]
unsafe fn finish_big(p: *mut Term, negative: bool, n: usize) -> (Term, usize) {
    // SAFETY: by the contract. A header is written before each part of the room.
    unsafe {
        let digits = p.add(1) as *mut u64;
        let mut i = n;
        while i > 0 && digits.add(i - 1).read() == 0 {
            i -= 1;
        }
        if i < 2 {
            let d = if i == 0 { 0 } else { digits.read() };
            if d <= MAX_SMALL as u64 + u64::from(negative) {
                p.write(Term::from_raw(header(Subtag::PosBig, n)));
                let v = d as i64;
                return (Term::small(if negative { -v } else { v }), i);
            }
        }
        let subtag = match negative {
            true => Subtag::NegBig,
            false => Subtag::PosBig,
        };
        p.write(Term::from_raw(header(subtag, i)));
        if i < n {
            // The shortest integer has one digit; the shortest tuple has no element.
            let subtag = match n - i {
                1 => Subtag::Tuple,
                _ => Subtag::PosBig,
            };
            digits.add(i).write(header(subtag, n - i - 1));
        }
        (Term::boxed_at(p), i)
    }
}

/// Makes an integer of at most `n` digits, least significant first, written in place. Also returns
/// its number of digits.
#[inline(always)]
pub(crate) fn big_of<A: Alloc + ?Sized>(
    a: &mut A,
    negative: bool,
    n: usize,
    mut digit: impl FnMut(usize) -> u64,
) -> (Term, usize) {
    let p = a.alloc(1 + n);
    // SAFETY: `n` digits are written.
    unsafe {
        let to = p.add(1) as *mut u64;
        for i in 0..n {
            to.add(i).write(digit(i));
        }
        finish_big(p, negative, n)
    }
}

/// As [`big_of`], for `m + n`, where `m` is at least as long as `n`.
#[inline(always)]
pub(crate) fn big_sum<A: Alloc + ?Sized>(
    a: &mut A,
    negative: bool,
    m: &[u64],
    n: &[u64],
) -> (Term, usize) {
    // Few sums are longer than their longer operand.
    let longer = match (m.last(), n.last()) {
        (Some(x), Some(y)) if m.len() == n.len() => x.checked_add(*y).is_none_or(|s| s == u64::MAX),
        (x, _) => x == Some(&u64::MAX),
    };
    let p = a.alloc(1 + m.len() + usize::from(longer));
    let (low, high) = m.split_at(n.len());
    let mut carry = false;
    // SAFETY: as many digits are written as `m` has, and the carry if room was made for one.
    unsafe {
        let to = p.add(1) as *mut u64;
        for (i, (&x, &y)) in low.iter().zip(n).enumerate() {
            let (s, c1) = x.overflowing_add(y);
            let (s, c2) = s.overflowing_add(carry as u64);
            to.add(i).write(s);
            carry = c1 | c2;
        }
        for (i, &x) in high.iter().enumerate() {
            let s;
            (s, carry) = x.overflowing_add(carry as u64);
            to.add(n.len() + i).write(s);
        }
        if longer {
            to.add(m.len()).write(carry as u64);
        }
        finish_big(p, negative, m.len() + usize::from(longer))
    }
}

/// As [`big_of`], for `m - n`, where `m >= n`.
#[inline(always)]
pub(crate) fn big_difference<A: Alloc + ?Sized>(
    a: &mut A,
    negative: bool,
    m: &[u64],
    n: &[u64],
) -> (Term, usize) {
    let p = a.alloc(1 + m.len());
    let (low, high) = m.split_at(n.len());
    let mut borrow = false;
    // SAFETY: as many digits are written as `m` has.
    unsafe {
        let to = p.add(1) as *mut u64;
        for (i, (&x, &y)) in low.iter().zip(n).enumerate() {
            let (s, c1) = x.overflowing_sub(y);
            let (s, c2) = s.overflowing_sub(borrow as u64);
            to.add(i).write(s);
            borrow = c1 | c2;
        }
        for (i, &x) in high.iter().enumerate() {
            let s;
            (s, borrow) = x.overflowing_sub(borrow as u64);
            to.add(n.len() + i).write(s);
        }
        finish_big(p, negative, m.len())
    }
}

/// As [`big_of`], for `m * y`.
#[inline(always)]
pub(crate) fn big_product<A: Alloc + ?Sized>(
    a: &mut A,
    negative: bool,
    m: &[u64],
    y: u64,
) -> (Term, usize) {
    let p = a.alloc(2 + m.len());
    let mut carry = 0u64;
    // SAFETY: one digit more is written than `m` has.
    unsafe {
        let to = p.add(1) as *mut u64;
        for (i, &x) in m.iter().enumerate() {
            // At most (2^64-1)^2 + 2^64-1.
            let t = x as u128 * y as u128 + carry as u128;
            to.add(i).write(t as u64);
            carry = (t >> 64) as u64;
        }
        to.add(m.len()).write(carry);
        finish_big(p, negative, 1 + m.len())
    }
}

/// A place where terms can be made: a process heap, a fragment, a region under construction.
pub trait Alloc {
    /// Returns room for `words` words, uninitialised, at an 8-aligned address. Every word must be
    /// initialised (as one or more whole objects) before the next collection. `words` may be 0.
    fn alloc(&mut self, words: usize) -> *mut Term;
    /// The off-heap list: links the objects that own something outside the heap.
    fn off_heap(&mut self) -> &mut OffHeap;
    /// Called when the bytes on the off-heap list have grown: a process heap may now need a
    /// collection.
    #[inline]
    fn off_heap_grew(&mut self) {}

    /// `[head | tail]`
    #[inline]
    fn cons(&mut self, head: Term, tail: Term) -> Term {
        let p = self.alloc(2);
        // SAFETY: two fresh words.
        unsafe {
            p.write(head);
            p.add(1).write(tail);
            Term::cons_at(p)
        }
    }
    /// A proper list of `items`.
    fn list(&mut self, items: &[Term]) -> Term {
        self.list_tail(items, NIL)
    }
    /// `items` in front of `tail`.
    fn list_tail(&mut self, items: &[Term], tail: Term) -> Term {
        if items.is_empty() {
            return tail;
        }
        let p = self.alloc(2 * items.len());
        // SAFETY: two fresh words for each item.
        unsafe { cells(p, items, |&t| t, tail) }
    }
    /// A list of small integers, one for each byte.
    fn byte_list(&mut self, bytes: &[u8], tail: Term) -> Term {
        if bytes.is_empty() {
            return tail;
        }
        let p = self.alloc(2 * bytes.len());
        // SAFETY: two fresh words for each byte.
        unsafe { cells(p, bytes, |&b| Term::small(b as i64), tail) }
    }
    /// A list of the code points of `s`.
    fn string(&mut self, s: &str) -> Term {
        if s.is_ascii() {
            return self.byte_list(s.as_bytes(), NIL);
        }
        let v: Vec<Term> = s.chars().map(|c| Term::small(c as i64)).collect();
        self.list(&v)
    }
    /// `{items...}`
    #[inline]
    fn tuple(&mut self, items: &[Term]) -> Term {
        let p = self.alloc(1 + items.len());
        // SAFETY: header and elements are all written.
        unsafe {
            p.write(Term::from_raw(header(Subtag::Tuple, items.len())));
            for (i, &t) in items.iter().enumerate() {
                p.add(1 + i).write(t);
            }
            Term::boxed_at(p)
        }
    }
    /// A float. The caller ensures that it is finite.
    #[inline]
    fn float(&mut self, f: f64) -> Term {
        let p = self.alloc(FLOAT_WORDS);
        // SAFETY: both words are written.
        unsafe {
            p.write(Term::from_raw(header(Subtag::Float, 1)));
            (p.add(1) as *mut u64).write(f.to_bits());
            Term::boxed_at(p)
        }
    }
    /// An integer: small if it fits, else a bignum.
    #[inline]
    fn int(&mut self, v: i64) -> Term {
        match Term::try_small(v) {
            Some(t) => t,
            None => self.big(v < 0, &[v.unsigned_abs()]),
        }
    }
    /// An integer: small if it fits, else a bignum.
    #[inline]
    fn uint(&mut self, v: u64) -> Term {
        if v <= crate::word::MAX_SMALL as u64 {
            Term::small(v as i64)
        } else {
            self.big(false, &[v])
        }
    }
    /// An integer of this sign and magnitude (64-bit digits, least significant first; leading zeros
    /// are dropped). Returns a small if the value fits one.
    fn big(&mut self, negative: bool, digits: &[u64]) -> Term {
        let n = digits.iter().rposition(|&d| d != 0).map_or(0, |i| i + 1);
        if n == 0 {
            return Term::small(0);
        }
        if n == 1 {
            let d = digits[0];
            if negative && d <= MIN_SMALL.unsigned_abs() {
                return Term::small((d as i64).wrapping_neg());
            }
            if !negative && d <= MAX_SMALL as u64 {
                return Term::small(d as i64);
            }
        }
        let p = self.alloc(1 + n);
        // SAFETY: header and all digits are written.
        unsafe {
            p.write(Term::from_raw(header(
                if negative {
                    Subtag::NegBig
                } else {
                    Subtag::PosBig
                },
                n,
            )));
            std::ptr::copy_nonoverlapping(digits.as_ptr(), p.add(1) as *mut u64, n);
            Term::boxed_at(p)
        }
    }
    /// A binary with a copy of `bytes`: on the heap up to [`heap_bin_limit`], counted above.
    fn binary(&mut self, bytes: &[u8]) -> Term {
        if bytes.len() <= heap_bin_limit() {
            let (t, p) = self.heap_bin(bytes.len());
            // SAFETY: heap_bin made room for them, in whole words.
            unsafe {
                match word_of(bytes) {
                    Some(w) => (p as *mut u64).write(w.to_le()),
                    None => std::ptr::copy_nonoverlapping(bytes.as_ptr(), p, bytes.len()),
                }
            }
            t
        } else {
            // SAFETY: the new block's count is handed over.
            unsafe { self.refc_bin(RcBin::from_bytes(bytes), bytes.len()) }
        }
    }
    /// A bitstring of the first `bit_len` bits of `bytes`; surplus bits of the last byte must be 0.
    fn bitstring(&mut self, bytes: &[u8], bit_len: usize) -> Term {
        let b = self.binary(&bytes[..bit_len.div_ceil(8)]);
        if bit_len & 7 == 0 {
            b
        } else {
            self.sub_binary(b, 0, bit_len)
        }
    }
    /// A heap binary of `n` bytes, and the address to write them to. For ordinary binaries, `n` is
    /// at most [`heap_bin_limit`].
    fn heap_bin(&mut self, n: usize) -> (Term, *mut u8) {
        let w = n.div_ceil(8);
        let p = self.alloc(HEAP_BIN_HEAD_WORDS + w);
        // SAFETY: header, size, and zero in the last word so that padding bytes are defined.
        unsafe {
            p.write(Term::from_raw(header(Subtag::HeapBin, 1 + w)));
            (p.add(1) as *mut u64).write(n as u64);
            if w > 0 {
                (p.add(1 + w) as *mut u64).write(0);
            }
            (Term::boxed_at(p), p.add(2) as *mut u8)
        }
    }
    /// A refc binary of the first `size` bytes of `bin`.
    ///
    /// # Safety
    /// The caller owns a count of `bin`, which the new term takes over; the bytes are initialised.
    unsafe fn refc_bin(&mut self, bin: *mut RcBin, size: usize) -> Term {
        // SAFETY: by the contract; the bytes of a block live as long as it.
        unsafe { self.refc_bin_at(bin, RcBin::bytes(bin), size) }
    }
    /// As [`Alloc::refc_bin`], for the `size` bytes at `at`, which stay valid as long as `bin`
    /// lives.
    ///
    /// # Safety
    /// As for [`Alloc::refc_bin`].
    unsafe fn refc_bin_at(&mut self, bin: *mut RcBin, at: *const u8, size: usize) -> Term {
        let p = self.alloc(REFC_BIN_WORDS);
        let w = p as *mut u64;
        // SAFETY: all words are written (`link` writes the third); the count goes over to the new
        // object.
        unsafe {
            w.write(header(Subtag::RefcBin, REFC_BIN_WORDS - 1));
            w.add(1).write(size as u64);
            w.add(3).write(bin as u64);
            w.add(4).write(at as u64);
            w.add(5).write(0);
            self.off_heap().link(p);
            self.off_heap().bytes += size;
            self.off_heap_grew();
            Term::boxed_at(p)
        }
    }
    /// The `bit_len` bits of `of` from bit `bit_offset` on, by reference, never copied. `of` is any
    /// bitstring that long; a sub-binary is resolved to its original. Use [`Alloc::part`] where
    /// copying small parts is better.
    fn sub_binary(&mut self, of: Term, bit_offset: usize, bit_len: usize) -> Term {
        debug_assert!(
            of.as_bits()
                .is_some_and(|b| bit_offset + bit_len <= b.bit_len)
        );
        let mut orig = of;
        let mut off = bit_offset;
        if orig.subtag() == Some(Subtag::SubBin) {
            // SAFETY: layout of sub-binaries.
            unsafe {
                let q = orig.ptr();
                let start = (*q.add(SUB_BIN_BITS)).raw() >> SUB_BIN_START_SHIFT & 0xFF;
                off += (*q.add(SUB_BIN_OFFSET)).raw() as usize * 8 + start as usize;
                orig = *q.add(SUB_BIN_ORIGINAL);
            }
        }
        let p = self.alloc(SUB_BIN_WORDS);
        // SAFETY: all five words are written.
        unsafe {
            let w = p as *mut u64;
            w.write(header(Subtag::SubBin, SUB_BIN_WORDS - 1));
            w.add(1).write((bit_len >> 3) as u64);
            w.add(2).write((off >> 3) as u64);
            w.add(3)
                .write((bit_len & 7) as u64 | ((off & 7) as u64) << SUB_BIN_START_SHIFT);
            p.add(4).write(orig);
            Term::boxed_at(p)
        }
    }
    /// Bytes `offset..offset + len` of the binary `of`: copied if they fit a heap binary, else by
    /// reference.
    fn part(&mut self, of: Term, offset: usize, len: usize) -> Term {
        if len <= heap_bin_limit()
            && let Some(b) = of.as_bits().and_then(|b| b.as_bytes())
        {
            return self.binary(&b[offset..offset + len]);
        }
        self.sub_binary(of, offset * 8, len * 8)
    }
    /// A reference of this runtime with these numbers, which come from the runtime's counter.
    fn local_ref(&mut self, num: [u32; 3]) -> Term {
        let p = self.alloc(REF_WORDS);
        // SAFETY: all three words are written.
        unsafe {
            let w = p as *mut u64;
            w.write(REF_HEADER);
            w.add(1).write(REF_MARKER as u64 | (num[0] as u64) << 32);
            w.add(2).write(num[1] as u64 | (num[2] as u64) << 32);
            Term::boxed_at(p)
        }
    }
    /// A reference of this runtime that carries a local pid (aliases).
    fn pid_ref(&mut self, num: [u32; 3], pid: Term) -> Term {
        let p = self.alloc(PID_REF_WORDS);
        // SAFETY: all four words are written.
        unsafe {
            let w = p as *mut u64;
            w.write(PID_REF_HEADER);
            w.add(1).write(REF_MARKER as u64 | (num[0] as u64) << 32);
            w.add(2).write(num[1] as u64 | (num[2] as u64) << 32);
            p.add(3).write(pid);
            Term::boxed_at(p)
        }
    }
    /// A reference term that owns `m`; adds one to its count.
    ///
    /// # Safety
    /// `m` is alive.
    unsafe fn magic_ref(&mut self, m: *const MagicRef) -> Term {
        let p = self.alloc(MAGIC_REF_WORDS);
        let w = p as *mut u64;
        // SAFETY: all words are written (`link` writes the third), and `m` is alive.
        unsafe {
            w.write(header(Subtag::Ref, MAGIC_REF_WORDS - 1));
            w.add(1).write(m as u64);
            (*m).retain();
            self.off_heap().link(p);
            Term::boxed_at(p)
        }
    }
    /// A pid (`number | serial << 32`) or port of another node.
    fn external(&mut self, subtag: Subtag, node: &'static Node, data: u64) -> Term {
        debug_assert!(matches!(subtag, Subtag::ExtPid | Subtag::ExtPort));
        let p = self.alloc(EXT_PID_WORDS);
        // SAFETY: all four words are written (`link` writes the third).
        unsafe {
            let w = p as *mut u64;
            w.write(header(subtag, EXT_PID_WORDS - 1));
            w.add(1).write(node as *const Node as u64);
            w.add(3).write(data);
            self.off_heap().link(p);
            Term::boxed_at(p)
        }
    }
    /// A reference of another node, of 1 to 5 numbers.
    fn external_ref(&mut self, node: &'static Node, nums: &[u32]) -> Term {
        // The count takes half a word, as each number does.
        let dw = (1 + nums.len()).div_ceil(2);
        let p = self.alloc(EXTERNAL_HEAD_WORDS + dw);
        // SAFETY: all words are written (`link` writes the third).
        unsafe {
            let w = p as *mut u64;
            w.write(header(Subtag::ExtRef, EXTERNAL_HEAD_WORDS - 1 + dw));
            w.add(1).write(node as *const Node as u64);
            w.add(2 + dw).write(0);
            let half = w.add(3) as *mut u32;
            half.write(nums.len() as u32);
            for (i, &n) in nums.iter().enumerate() {
                half.add(1 + i).write(n);
            }
            self.off_heap().link(p);
            Term::boxed_at(p)
        }
    }
    /// A flat map. Keys must be distinct, in term order, and at most `FLATMAP_LIMIT`.
    fn flatmap(&mut self, keys: &[Term], values: &[Term]) -> Term {
        let k = self.tuple(keys);
        self.flatmap_with_keys(k, values)
    }
    /// A flat map that shares its tuple of keys.
    fn flatmap_with_keys(&mut self, keys: Term, values: &[Term]) -> Term {
        let p = self.alloc(3 + values.len());
        // SAFETY: all words are written.
        unsafe {
            let w = p as *mut u64;
            w.write(FLATMAP_HEADER);
            w.add(1).write(values.len() as u64);
            p.add(2).write(keys);
            for (i, &v) in values.iter().enumerate() {
                p.add(3 + i).write(v);
            }
            Term::boxed_at(p)
        }
    }
}
