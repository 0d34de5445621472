//! Building of bitstrings: segments of whole bytes, written one after another to the place of the
//! heap's next object, or after a binary that may be appended to in place. Nothing is made before
//! the last one is written; anything that is not simple runs as a step.

use super::*;
use purlin_isa::bit_fields::flags::{LITTLE, NATIVE};
use purlin_isa::bit_fields::seg;
use purlin_term::am;
use purlin_term::bin::RcBin;
use purlin_term::layout::{
    BIN_SIZE, FLOAT_BITS, HEAP_BIN_HEAD_WORDS, HEAP_BIN_LIMIT, PB_ACTIVE_WRITER, PB_IS_WRITABLE,
    REFC_BIN_BLOCK, REFC_BIN_FLAGS, SUB_BIN_BITS, SUB_BIN_OFFSET, SUB_BIN_ORIGINAL, SUB_BIN_WORDS,
    SUB_WRITABLE, heap_bin_limit,
};
use std::mem::offset_of;

/// Number of bytes that may be written beyond the last one of a segment.
const SLACK: i32 = 8;
/// Fields of a block of bytes: its reference count, its size, the number of used bytes, its first
/// byte.
const BLOCK_COUNT: i32 = offset_of!(RcBin, refc) as i32;
const BLOCK_CAPACITY: i32 = offset_of!(RcBin, capacity) as i32;
const BLOCK_USED: i32 = offset_of!(RcBin, used) as i32;
const BLOCK_BYTES: i32 = size_of::<RcBin>() as i32;
/// The bits of a sub-binary that may be appended to and consists of whole bytes.
const WRITABLE: i32 = SUB_WRITABLE as i32;
/// The flags of a counted binary that is being written.
const BEING_WRITTEN: i32 = (PB_IS_WRITABLE | PB_ACTIVE_WRITER) as i32;
/// Maximum number of bits of an integer that is written together with others.
const MOST_BITS: u64 = 56;
/// Maximum length of a string of the code that is written in place.
const MOST_OF_STRING: u64 = 16;

/// A segment that has a template.
#[derive(Clone)]
enum Segment {
    /// Integers, each with its bits, which are whole bytes together: 64 bits at most.
    Integers(Vec<(u64, Src)>),
    /// An integer of whole bytes, least significant one first: its bits.
    Little(u64, Src),
    /// A float of 64 bits, and whether it is little-endian.
    Float(Src, bool),
    /// Address and number of bytes.
    String(u64, u64),
    Utf8(Src),
    /// A whole binary.
    Binary(Src),
}

impl Segment {
    fn of(w: &[u64]) -> Option<Segment> {
        let (value, size) = (Src::of_word(w[3]), Src::of_word(w[4]));
        // All processors with machine code are little-endian.
        let little = w[2] & (LITTLE | NATIVE) != 0;
        let bits = || match size {
            Src::C(n) if is_small_word(n) => (n >> SMALL_SHIFT)
                .checked_mul(w[1])
                .filter(|b| (1..=64).contains(b)),
            _ => None,
        };
        match w[0] {
            seg::INTEGER => {
                let bits = bits()?;
                let fits = match value {
                    Src::C(v) => is_small_word(v),
                    _ => true,
                };
                match fits {
                    true if !little => Some(Segment::Integers(vec![(bits, value)])),
                    true if bits % 8 == 0 => Some(Segment::Little(bits, value)),
                    _ => None,
                }
            }
            seg::FLOAT if bits() == Some(64) && !matches!(value, Src::C(_)) => {
                Some(Segment::Float(value, little))
            }
            seg::STRING if w[4] <= MOST_OF_STRING => Some(Segment::String(w[3], w[4])),
            seg::UTF8 if !matches!(value, Src::C(_)) => Some(Segment::Utf8(value)),
            // The size is the atom `all`.
            seg::BINARY if size == Src::C(am::ALL.raw()) && matches!(w[1], 1 | 8) => {
                Some(Segment::Binary(value))
            }
            _ => None,
        }
    }
    /// Returns the segments of a list, with integers joined if they fit into a word. `None`: some
    /// have no template.
    fn all(list: &[u64]) -> Option<Vec<Segment>> {
        let mut out = Vec::new();
        let mut integers: Vec<(u64, Src)> = Vec::new();
        for w in list.chunks_exact(5) {
            match Segment::of(w)? {
                Segment::Integers(i) => integers.extend(i),
                s => {
                    Self::together(std::mem::take(&mut integers), &mut out)?;
                    out.push(s);
                }
            }
        }
        Self::together(integers, &mut out)?;
        Some(out)
    }
    /// Joins consecutive integers, as many as fit at a time. `None`: they are no whole bytes.
    fn together(integers: Vec<(u64, Src)>, out: &mut Vec<Segment>) -> Option<()> {
        let mut rest = &integers[..];
        while !rest.is_empty() {
            let mut bits = 0;
            let mut n = 0;
            for (k, i) in rest.iter().enumerate() {
                bits += i.0;
                if bits > 64 || k > 0 && (i.0 > MOST_BITS || rest[0].0 > MOST_BITS) {
                    break;
                }
                if bits % 8 == 0 {
                    n = k + 1;
                }
            }
            if n == 0 {
                return None;
            }
            out.push(Segment::Integers(rest[..n].to_vec()));
            rest = &rest[n..];
        }
        Some(())
    }
    /// Returns the maximum number of bytes, without those of a binary, and whether it always takes
    /// as many.
    fn most(&self) -> (i32, bool) {
        match *self {
            Segment::Integers(ref i) => (i.iter().map(|i| i.0).sum::<u64>() as i32 / 8, true),
            Segment::Little(bits, _) => (bits as i32 / 8, true),
            Segment::Float(..) => (8, true),
            Segment::String(_, n) => (n as i32, true),
            Segment::Utf8(_) => (4, false),
            Segment::Binary(_) => (0, false),
        }
    }
}

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn bs_create_bin(&mut self, op: BsCreateBin) {
        let list = op.segments.words;
        let appends = matches!(list.first(), Some(&(seg::APPEND | seg::PRIVATE_APPEND)));
        let rest = if appends { list.get(5..) } else { Some(list) };
        let segments = rest.and_then(Segment::all);
        match segments {
            Some(s) if !self.env.stressed && !s.is_empty() => match appends {
                true => self.append(op, list, &s),
                false => self.heap_bin(op, &s),
            },
            _ => self.step(),
        }
    }
    /// Writes the segments at R12, which becomes their end. The end of the room is at the top of
    /// the machine's stack if one of them is a binary; on failure that is dropped before the jump
    /// to `other`.
    fn segments(&mut self, list: &[Segment], pushed: bool, other: Label) {
        let fail = match pushed {
            false => other,
            true => {
                let l = self.a.label();
                self.later("it fails: the limit is dropped", move |g| {
                    g.a.bind(l);
                    g.a.pop(RCX);
                    g.a.jmp(other);
                });
                l
            }
        };
        for s in list {
            match *s {
                Segment::Integers(ref i) => {
                    let bits: u64 = i.iter().map(|i| i.0).sum();
                    self.joined(i, fail);
                    if bits == 8 {
                        self.a.store8(at(R12, 0), R11);
                    } else {
                        if bits < 64 {
                            self.a.shift_i(Q, Shl, R11, (64 - bits) as u8);
                        }
                        self.a.bswap(Q, R11);
                        self.a.store(at(R12, 0), R11);
                    }
                    self.a.alu_i(Q, Add, R12, bits as i32 / 8);
                }
                Segment::Little(bits, v) => {
                    self.joined(&[(bits, v)], fail);
                    self.a.store(at(R12, 0), R11);
                    self.a.alu_i(Q, Add, R12, bits as i32 / 8);
                }
                Segment::Float(v, little) => {
                    let r = self.get(v, R10);
                    self.if_not_boxed(r, fail);
                    self.cmp_subtag(r, Subtag::Float);
                    self.a.jcc(Cond::Ne, fail);
                    self.a.load(R11, boxed(r, FLOAT_BITS));
                    if !little {
                        self.a.bswap(Q, R11);
                    }
                    self.a.store(at(R12, 0), R11);
                    self.a.alu_i(Q, Add, R12, 8);
                }
                Segment::String(from, n) => {
                    self.a.mov_i(R10, from);
                    let mut k = 0;
                    while k < n {
                        let (m, to) = (at(R10, k as i32), at(R12, k as i32));
                        if n - k >= 8 {
                            self.a.load(RCX, m);
                            self.a.store(to, RCX);
                            k += 8;
                        } else {
                            self.a.load8(RCX, m);
                            self.a.store8(to, RCX);
                            k += 1;
                        }
                    }
                    self.a.alu_i(Q, Add, R12, n as i32);
                }
                Segment::Utf8(v) => {
                    let (long, done) = (self.a.label(), self.a.label());
                    let r = self.get(v, R10);
                    // A small integer of seven bits.
                    self.a.mov(RCX, r);
                    self.a.alu_i(Q, And, RCX, !0x7F0);
                    self.a.alu_i(Q, Cmp, RCX, TAG_SMALL as i32);
                    self.a.jcc(Cond::Ne, long);
                    self.a.mov(RCX, r);
                    self.a.shift_i(D, Shr, RCX, SMALL_SHIFT as u8);
                    self.a.store8(at(R12, 0), RCX);
                    self.a.inc(R12);
                    self.a.bind(done);
                    let f = self.env.helpers.put_utf8;
                    self.later("a character of several bytes", move |g| {
                        g.a.bind(long);
                        g.a.mov(RCX, r);
                        g.a.mov(R10, R12);
                        g.leaf_helper(f);
                        g.a.test(Q, RCX, RCX);
                        g.a.jcc(Cond::E, fail);
                        g.a.mov(R12, RCX);
                        g.a.jmp(done);
                    });
                }
                Segment::Binary(v) => {
                    let r = self.get(v, RCX);
                    self.a.mov(RCX, r);
                    self.a.mov(R10, R12);
                    self.a.load(R12, at(RSP, 0));
                    let f = self.env.helpers.put_bytes;
                    self.leaf_helper(f);
                    self.a.test(Q, RCX, RCX);
                    self.a.jcc(Cond::E, fail);
                    self.a.mov(R12, RCX);
                }
            }
        }
        if pushed {
            self.a.pop(RCX);
        }
    }
    /// R11 becomes the concatenated integers, in its lower bits; the bits above them are undefined.
    /// Uses R10 and RCX.
    fn joined(&mut self, integers: &[(u64, Src)], fail: Label) {
        for (k, &(bits, v)) in integers.iter().enumerate() {
            let d = if k == 0 { R11 } else { RCX };
            let constant = Self::small(v);
            if let Some(n) = constant {
                let kept = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
                self.a.mov_i(d, n as u64 & kept);
            } else {
                let r = self.get(v, R10);
                self.if_no_small(v, r, fail);
                self.a.mov(d, r);
            }
            if k == 0 {
                if constant.is_none() {
                    self.a.shift_i(Q, Sar, R11, SMALL_SHIFT as u8);
                }
                continue;
            }
            self.a.shift_i(Q, Shl, R11, bits as u8);
            let fits = |r: Range| r.lo >= 0 && r.hi >> bits == 0;
            if constant.is_none() {
                match self.range(v).is_some_and(fits) {
                    true => self.a.shift_i(Q, Shr, RCX, SMALL_SHIFT as u8),
                    false => {
                        self.a
                            .shift_i(Q, Shl, RCX, (64 - bits) as u8 - SMALL_SHIFT as u8);
                        self.a.shift_i(Q, Shr, RCX, (64 - bits) as u8);
                    }
                }
            }
            self.a.alu(Q, Or, R11, RCX);
        }
    }
    fn has_binary(list: &[Segment]) -> bool {
        list.iter().any(|s| matches!(s, Segment::Binary(_)))
    }
    fn heap_bin(&mut self, op: BsCreateBin, list: &[Segment]) {
        let BsCreateBin { dst, heap, .. } = op;
        let most: i32 = list.iter().map(|s| s.most().0).sum();
        let limit = heap_bin_limit().min(HEAP_BIN_LIMIT) as i32;
        if most > limit {
            return self.step();
        }
        let other = self.step_aside();
        let head = HEAP_BIN_HEAD_WORDS as i32;
        // The words that the op reserves for later ops must be free, too.
        let words = heap as i32 + head + (limit + SLACK) / 8 + 1;
        self.a.lea(RCX, at(HP, words * 8));
        self.a.alu(Q, Cmp, RCX, E);
        self.a.jcc(Cond::A, other);
        self.a.lea(R12, at(HP, head * 8));
        let pushed = Self::has_binary(list);
        if pushed {
            // The others need room after a binary as well.
            self.a.lea(RCX, at(HP, head * 8 + limit - most));
            self.a.push(RCX);
        }
        self.segments(list, pushed, other);
        // The rest of the last word is 0.
        self.a.store_i(at(R12, 0), 0);
        if list.iter().all(|s| s.most().1) {
            let words = (most + 7) / 8;
            self.a
                .store_i(new(0), header(Subtag::HeapBin, 1 + words as usize) as i32);
            self.a.store_i(new(BIN_SIZE), most);
            return self.made(dst, TAG_BOXED, head + words);
        }
        self.a.alu(Q, Sub, R12, HP);
        self.a.alu_i(Q, Sub, R12, head * 8);
        // RCX: words after the header.
        self.a.lea(RCX, at(R12, 15));
        self.a.shift_i(Q, Shr, RCX, 3);
        self.a.mov(R11, RCX);
        self.a.shift_i(Q, Shl, R11, ARITY_SHIFT as u8);
        self.a.alu_i(Q, Or, R11, header(Subtag::HeapBin, 0) as i32);
        self.a.store(new(0), R11);
        self.a.store(new(BIN_SIZE), R12);
        self.a.lea(R10, at(HP, TAG_BOXED as i32));
        self.a.lea(HP, indexed(HP, RCX, 8, 8));
        self.put(dst, R10);
    }
    fn append(&mut self, op: BsCreateBin, all: &[u64], list: &[Segment]) {
        let BsCreateBin { dst, heap, .. } = op;
        let bin = Src::of_word(all[3]);
        let private = all[0] == seg::PRIVATE_APPEND;
        let whole = Src::of_word(all[4]) == Src::C(am::ALL.raw());
        if matches!(bin, Src::C(_)) || !matches!(all[1], 1 | 8) || !whole {
            return self.step();
        }
        let most: i32 = list.iter().map(|s| s.most().0).sum();
        let other = self.step_aside();
        let words = heap as i32 + SUB_BIN_WORDS as i32;
        self.a.lea(RCX, at(HP, words * 8));
        self.a.alu(Q, Cmp, RCX, E);
        self.a.jcc(Cond::A, other);
        // A part of a block from its first byte to the last one in use, which only this process
        // holds.
        let r = self.get(bin, R10);
        self.if_not_kind(r, Subtag::SubBin, other);
        self.a.alu_mi(Q, Cmp, boxed(r, SUB_BIN_BITS), WRITABLE);
        self.a.jcc(Cond::Ne, other);
        self.a.alu_mi(Q, Cmp, boxed(r, SUB_BIN_OFFSET), 0);
        self.a.jcc(Cond::Ne, other);
        self.a.load(R12, boxed(r, SUB_BIN_ORIGINAL));
        self.cmp_subtag(R12, Subtag::RefcBin);
        self.a.jcc(Cond::Ne, other);
        self.a.load8(RCX, boxed(R12, REFC_BIN_FLAGS));
        self.a.test8_i(RCX, PB_IS_WRITABLE as u8);
        self.a.jcc(Cond::E, other);
        self.a.load(R11, boxed(R12, REFC_BIN_BLOCK));
        self.a.alu_mi(Q, Cmp, at(R11, BLOCK_COUNT), 1);
        self.a.jcc(Cond::Ne, other);
        self.a.load(R12, at(R11, BLOCK_USED));
        self.a.alu_m(Q, Cmp, R12, boxed(r, BIN_SIZE));
        self.a.jcc(Cond::Ne, other);
        self.a.lea(RCX, at(R12, most + SLACK));
        self.a.alu_m(Q, Cmp, RCX, at(R11, BLOCK_CAPACITY));
        self.a.jcc(Cond::A, other);
        self.a.lea(R12, indexed(R11, R12, 1, BLOCK_BYTES));
        let pushed = Self::has_binary(list);
        if pushed {
            self.a.alu_m(Q, Add, R11, at(R11, BLOCK_CAPACITY));
            self.a.lea(RCX, at(R11, BLOCK_BYTES - SLACK - most));
            self.a.push(RCX);
        }
        self.segments(list, pushed, other);
        // The binary now owns the bytes.
        let r = self.get(bin, R10);
        self.a.load(R11, boxed(r, SUB_BIN_ORIGINAL));
        self.a.load(RCX, boxed(R11, REFC_BIN_BLOCK));
        self.a.alu(Q, Sub, R12, RCX);
        self.a.alu_i(Q, Sub, R12, BLOCK_BYTES);
        if list.iter().all(|s| !s.most().1) {
            // Nothing was written: the general case.
            self.a.alu_m(Q, Cmp, R12, at(RCX, BLOCK_USED));
            self.a.jcc(Cond::E, other);
        }
        self.a.alu_m(Q, Cmp, R12, boxed(R11, BIN_SIZE));
        self.a.jcc(Cond::B, other);
        let f = self.env.fields;
        self.a.load(R10, at(CX, f.off_heap_bytes));
        self.a.alu(Q, Add, R10, R12);
        self.a.alu_m(Q, Sub, R10, boxed(R11, BIN_SIZE));
        self.a.alu_m(Q, Cmp, R10, at(CX, f.vheap_bytes));
        self.a.jcc(Cond::A, other);
        self.a.store(at(CX, f.off_heap_bytes), R10);
        self.a.store(boxed(R11, BIN_SIZE), R12);
        self.a.store_i(boxed(R11, REFC_BIN_FLAGS), BEING_WRITTEN);
        self.a.store(at(RCX, BLOCK_USED), R12);
        let r = self.get(bin, R10);
        if private {
            self.a.store(boxed(r, BIN_SIZE), R12);
            return self.put(dst, r);
        }
        self.a.store_i(boxed(r, SUB_BIN_BITS), 0);
        self.a
            .store_i(new(0), header(Subtag::SubBin, SUB_BIN_WORDS - 1) as i32);
        self.a.store(new(BIN_SIZE), R12);
        self.a.store_i(new(SUB_BIN_OFFSET), 0);
        self.a.store_i(new(SUB_BIN_BITS), WRITABLE);
        self.a.store(new(SUB_BIN_ORIGINAL), R11);
        self.made(dst, TAG_BOXED, SUB_BIN_WORDS as i32);
    }
}
