//! Building of bitstrings: segments of whole bytes, written one after another to the place of the
//! heap's next object, or after a binary that may be appended to in place. Nothing is made before
//! the last one is written; anything that is not simple runs as a step.

use super::*;
use purlin_isa::bit_fields::flags::{LITTLE, NATIVE};
use purlin_isa::bit_fields::{self, seg};
use purlin_isa::codec::Value;
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

/// Whether a segment is a whole binary: its size is the atom `all`.
fn is_whole(s: &bit_fields::Segment) -> bool {
    s.size == Value::C(am::ALL.raw()) && matches!(s.unit, 1 | 8)
}

impl Segment {
    fn of(s: &bit_fields::Segment) -> Option<Segment> {
        let (value, size) = (Src::of_value(s.value), Src::of_value(s.size));
        // All processors with machine code are little-endian.
        let little = s.flags & (LITTLE | NATIVE) != 0;
        let bits = || match size {
            Src::C(n) if is_small_word(n) => (n >> SMALL_SHIFT)
                .checked_mul(s.unit)
                .filter(|b| (1..=64).contains(b)),
            _ => None,
        };
        match s.kind {
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
            seg::STRING if s.size.word() <= MOST_OF_STRING => {
                Some(Segment::String(s.value.word(), s.size.word()))
            }
            seg::UTF8 if !matches!(value, Src::C(_)) => Some(Segment::Utf8(value)),
            seg::BINARY if is_whole(s) => Some(Segment::Binary(value)),
            _ => None,
        }
    }
    /// Returns the segments of a list, with integers joined if they fit into a word. `None`: some
    /// have no template.
    fn all(list: &[bit_fields::Segment]) -> Option<Vec<Segment>> {
        let mut out = Vec::new();
        let mut integers: Vec<(u64, Src)> = Vec::new();
        for s in list {
            match Segment::of(s)? {
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

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn bs_create_bin(&mut self, op: BsCreateBin) {
        let all = op.segments.all().unwrap_or_default();
        let appends =
            |s: &&bit_fields::Segment| matches!(s.kind, seg::APPEND | seg::PRIVATE_APPEND);
        let first = all.first().filter(appends);
        match Segment::all(&all[usize::from(first.is_some())..]) {
            Some(s) if !self.env.stressed && !s.is_empty() => match first {
                Some(first) => self.append(op, first, &s),
                None => self.heap_bin(op, &s),
            },
            _ => self.step(),
        }
    }
    /// Writes the segments at `K`, which becomes their end. The end of the room is at the top of
    /// the machine's stack if one of them is a binary; on failure that is dropped before the jump
    /// to `other`.
    fn segments(&mut self, list: &[Segment], pushed: bool, other: Label) {
        let fail = match pushed {
            false => other,
            true => {
                let l = self.a.label();
                self.later("it fails: the limit is dropped", move |g| {
                    g.a.bind(l);
                    g.a.restore(R);
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
                        self.a.store8(at(K, 0), B);
                    } else {
                        if bits < 64 {
                            self.a.shift_i(Q, Shl, B, (64 - bits) as u8);
                        }
                        self.a.bswap(Q, B);
                        self.a.store(at(K, 0), B);
                    }
                    self.a.alu_i(Q, Add, K, bits as i32 / 8);
                }
                Segment::Little(bits, v) => {
                    self.joined(&[(bits, v)], fail);
                    self.a.store(at(K, 0), B);
                    self.a.alu_i(Q, Add, K, bits as i32 / 8);
                }
                Segment::Float(v, little) => {
                    let r = self.get(v, A);
                    self.if_not_boxed(r, fail);
                    self.if_subtag(Cond::Ne, r, Subtag::Float, fail);
                    self.a.load(B, boxed(r, FLOAT_BITS));
                    if !little {
                        self.a.bswap(Q, B);
                    }
                    self.a.store(at(K, 0), B);
                    self.a.alu_i(Q, Add, K, 8);
                }
                Segment::String(from, n) => self.string(from, n),
                Segment::Utf8(v) => self.character(v, fail),
                Segment::Binary(v) => {
                    let r = self.get(v, R);
                    self.a.mov(R, r);
                    self.a.mov(A, K);
                    self.a.saved(K);
                    let f = self.env.helpers.put_bytes;
                    self.leaf_helper(f);
                    self.a.if_zero(Cond::E, Q, R, fail);
                    self.a.mov(K, R);
                }
            }
        }
        if pushed {
            self.a.restore(R);
        }
    }
    /// Copies the `n` bytes at an address to `K`, which becomes their end.
    fn string(&mut self, from: u64, n: u64) {
        self.a.mov_i(A, from);
        let mut k = 0;
        while k < n {
            let (m, to) = (at(A, k as i32), at(K, k as i32));
            if n - k >= 8 {
                self.a.load(R, m);
                self.a.store(to, R);
                k += 8;
            } else {
                self.a.load8(R, m);
                self.a.store8(to, R);
                k += 1;
            }
        }
        self.a.alu_i(Q, Add, K, n as i32);
    }
    /// Writes a character as UTF-8 to `K`, which becomes its end.
    fn character(&mut self, v: Src, fail: Label) {
        let (long, done) = (self.a.label(), self.a.label());
        let r = self.get(v, A);
        // A small integer of seven bits.
        self.a.mov(R, r);
        self.a.alu_i(Q, And, R, !0x7F0);
        self.a.if_i(Cond::Ne, Q, R, TAG_SMALL as i32, long);
        self.a.mov(R, r);
        self.a.shift_i(D, Shr, R, SMALL_SHIFT as u8);
        self.a.store8(at(K, 0), R);
        self.a.inc(K);
        self.a.bind(done);
        let f = self.env.helpers.put_utf8;
        self.later("a character of several bytes", move |g| {
            g.a.bind(long);
            g.a.mov(R, r);
            g.a.mov(A, K);
            g.leaf_helper(f);
            g.a.if_zero(Cond::E, Q, R, fail);
            g.a.mov(K, R);
            g.a.jmp(done);
        });
    }
    /// `B` becomes the concatenated integers, in its lower bits; the bits above them are undefined.
    /// Uses `A` and `R`.
    fn joined(&mut self, integers: &[(u64, Src)], fail: Label) {
        for (k, &(bits, v)) in integers.iter().enumerate() {
            let d = if k == 0 { B } else { R };
            let constant = Self::small(v);
            if let Some(n) = constant {
                let kept = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
                self.a.mov_i(d, n as u64 & kept);
            } else {
                let r = self.get(v, A);
                self.if_no_small(v, r, fail);
                self.a.mov(d, r);
            }
            if k == 0 {
                if constant.is_none() {
                    self.a.shift_i(Q, Sar, B, SMALL_SHIFT as u8);
                }
                continue;
            }
            self.a.shift_i(Q, Shl, B, bits as u8);
            let fits = |r: Range| r.lo >= 0 && r.hi >> bits == 0;
            if constant.is_none() {
                match self.range(v).is_some_and(fits) {
                    true => self.a.shift_i(Q, Shr, R, SMALL_SHIFT as u8),
                    false => {
                        self.a
                            .shift_i(Q, Shl, R, (64 - bits) as u8 - SMALL_SHIFT as u8);
                        self.a.shift_i(Q, Shr, R, (64 - bits) as u8);
                    }
                }
            }
            self.a.alu(Q, Or, B, R);
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
        self.a.lea(R, at(HP, words * 8));
        self.a.if_r(Cond::A, Q, R, E, other);
        self.a.lea(K, at(HP, head * 8));
        let pushed = Self::has_binary(list);
        if pushed {
            // The others need room after a binary as well.
            self.a.lea(R, at(HP, head * 8 + limit - most));
            self.a.save(R);
        }
        self.segments(list, pushed, other);
        // The rest of the last word is 0.
        self.a.store_i(at(K, 0), 0);
        if list.iter().all(|s| s.most().1) {
            let words = (most + 7) / 8;
            self.a
                .store_i(new(0), header(Subtag::HeapBin, 1 + words as usize) as i32);
            self.a.store_i(new(BIN_SIZE), most);
            return self.made(dst, TAG_BOXED, head + words);
        }
        self.a.alu(Q, Sub, K, HP);
        self.a.alu_i(Q, Sub, K, head * 8);
        // `R`: words after the header.
        self.a.lea(R, at(K, 15));
        self.a.shift_i(Q, Shr, R, 3);
        self.a.mov(B, R);
        self.a.shift_i(Q, Shl, B, ARITY_SHIFT as u8);
        self.a.alu_i(Q, Or, B, header(Subtag::HeapBin, 0) as i32);
        self.a.store(new(0), B);
        self.a.store(new(BIN_SIZE), K);
        self.a.lea(A, at(HP, TAG_BOXED as i32));
        self.a.lea(HP, indexed(HP, R, 8, 8));
        self.put(dst, A);
    }
    fn append(&mut self, op: BsCreateBin, first: &bit_fields::Segment, list: &[Segment]) {
        let BsCreateBin { dst, heap, .. } = op;
        let bin = Src::of_value(first.value);
        let private = first.kind == seg::PRIVATE_APPEND;
        if matches!(bin, Src::C(_)) || !is_whole(first) {
            return self.step();
        }
        let most: i32 = list.iter().map(|s| s.most().0).sum();
        let other = self.step_aside();
        let words = heap as i32 + SUB_BIN_WORDS as i32;
        self.a.lea(R, at(HP, words * 8));
        self.a.if_r(Cond::A, Q, R, E, other);
        // A part of a block from its first byte to the last one in use, which only this process
        // holds.
        let r = self.get(bin, A);
        self.if_not_kind(r, Subtag::SubBin, other);
        self.a
            .if_mi(Cond::Ne, boxed(r, SUB_BIN_BITS), WRITABLE, other);
        self.a.if_mi(Cond::Ne, boxed(r, SUB_BIN_OFFSET), 0, other);
        self.a.load(K, boxed(r, SUB_BIN_ORIGINAL));
        self.if_subtag(Cond::Ne, K, Subtag::RefcBin, other);
        self.a.load8(R, boxed(K, REFC_BIN_FLAGS));
        self.a.if_bits(Cond::E, R, PB_IS_WRITABLE as u8, other);
        self.a.load(B, boxed(K, REFC_BIN_BLOCK));
        self.a.if_count(Cond::Ne, at(B, BLOCK_COUNT), 1, other);
        self.a.load(K, at(B, BLOCK_USED));
        self.a.if_m(Cond::Ne, K, boxed(r, BIN_SIZE), other);
        self.a.lea(R, at(K, most + SLACK));
        self.a.if_m(Cond::A, R, at(B, BLOCK_CAPACITY), other);
        self.a.lea(K, indexed(B, K, 1, BLOCK_BYTES));
        let pushed = Self::has_binary(list);
        if pushed {
            self.a.alu_m(Add, B, at(B, BLOCK_CAPACITY));
            self.a.lea(R, at(B, BLOCK_BYTES - SLACK - most));
            self.a.save(R);
        }
        self.segments(list, pushed, other);
        // The binary now owns the bytes.
        let r = self.get(bin, A);
        self.a.load(B, boxed(r, SUB_BIN_ORIGINAL));
        self.a.load(R, boxed(B, REFC_BIN_BLOCK));
        self.a.alu(Q, Sub, K, R);
        self.a.alu_i(Q, Sub, K, BLOCK_BYTES);
        if list.iter().all(|s| !s.most().1) {
            // Nothing was written: the general case.
            self.a.if_m(Cond::E, K, at(R, BLOCK_USED), other);
        }
        self.a.if_m(Cond::B, K, boxed(B, BIN_SIZE), other);
        let f = self.env.fields;
        self.a.load(A, at(CX, f.off_heap_bytes));
        self.a.alu(Q, Add, A, K);
        self.a.alu_m(Sub, A, boxed(B, BIN_SIZE));
        self.a.if_m(Cond::A, A, at(CX, f.vheap_bytes), other);
        self.a.store(at(CX, f.off_heap_bytes), A);
        self.a.store(boxed(B, BIN_SIZE), K);
        self.a.store_i(boxed(B, REFC_BIN_FLAGS), BEING_WRITTEN);
        self.a.store(at(R, BLOCK_USED), K);
        let r = self.get(bin, A);
        if private {
            self.a.store(boxed(r, BIN_SIZE), K);
            return self.put(dst, r);
        }
        self.a.store_i(boxed(r, SUB_BIN_BITS), 0);
        self.a
            .store_i(new(0), header(Subtag::SubBin, SUB_BIN_WORDS - 1) as i32);
        self.a.store(new(BIN_SIZE), K);
        self.a.store_i(new(SUB_BIN_OFFSET), 0);
        self.a.store_i(new(SUB_BIN_BITS), WRITABLE);
        self.a.store(new(SUB_BIN_ORIGINAL), B);
        self.made(dst, TAG_BOXED, SUB_BIN_WORDS as i32);
    }
}
