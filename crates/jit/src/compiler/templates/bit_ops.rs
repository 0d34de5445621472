//! Matching of bitstrings.
//!
//! A match context has a position in bits. 8, 16, 32 or 64 bits that begin at a byte are loaded as
//! they are. Up to 56 other bits come from the eight bytes that hold them. `bs_match` cuts several
//! values from one such read.
//!
//! # Invariants
//! * No byte beyond the string is read. Near its end, whole bytes are read without the ones behind
//!   them, and any other bits by the step.
//! * `bs_match` stores the position after its last test, and before it writes the last destination,
//!   which may be the register of the context.

use super::*;
use crate::commands::{Command, run_at};
use purlin_isa::bit_fields::flags::{LITTLE, SIGNED};
use purlin_term::am;
use purlin_term::layout::MATCH_BYTES;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn bs_get_byte(&mut self, op: BsGetByte) {
        let BsGetByte { fail, context, dst } = op;
        let c = self.get(context, A);
        let to = self.to(fail);
        self.a.load(B, boxed(c, MATCH_POSITION));
        self.a.lea(R, at(B, 8));
        self.a.if_m(Cond::A, R, boxed(c, MATCH_END), to);
        let (odd, done) = (self.a.label(), self.a.label());
        self.a.if_bits(Cond::Ne, B, 7, odd);
        self.a.store(boxed(c, MATCH_POSITION), R);
        self.a.shift_i(Q, Shr, B, 3);
        self.a.load(R, boxed(c, MATCH_BYTES));
        self.a.load8(R, indexed(R, B, 1, 0));
        self.a.bind(done);
        self.a.tag(D, R);
        self.put_result(dst, R);
        // If it does not begin at a byte, it takes the next byte as well.
        self.later("a byte that begins within a byte", move |g| {
            g.a.bind(odd);
            g.a.store(boxed(c, MATCH_POSITION), R);
            g.a.mov(K, B);
            g.a.shift_i(Q, Shr, K, 3);
            g.a.load(R, boxed(c, MATCH_BYTES));
            g.a.alu(Q, Add, K, R);
            g.a.mov(R, B);
            g.a.load8(B, at(K, 0));
            g.a.load8(K, at(K, 1));
            g.a.shift_i(D, Shl, B, 8);
            g.a.alu(D, Or, B, K);
            g.a.alu_i(D, And, R, 7);
            g.a.shift_by_r(D, Shl, B);
            g.a.mov32(R, B);
            g.a.shift_i(D, Shr, R, 8);
            g.a.alu_i(D, And, R, 0xFF);
            g.a.jmp(done);
        });
    }
    pub(super) fn bs_context(&mut self, BsContext { context, .. }: BsContext) {
        self.start_match(context.src(), context);
    }
    pub(super) fn bs_start_match(&mut self, op: BsStartMatch) {
        let BsStartMatch {
            src, dst, slots, ..
        } = op;
        match slots {
            0 => self.start_match(src, dst),
            _ => self.step(),
        }
    }
    /// Makes a match context of the term in `src`, in `dst`.
    fn start_match(&mut self, src: Src, dst: Dst) {
        let r = self.get(src, A);
        let other = self.step_aside();
        if self.env.stressed {
            self.if_not_kind(r, Subtag::MatchContext, other);
            if src != dst.src() {
                self.put(dst, r);
            }
            return;
        }
        let (new, done) = (self.a.label(), self.a.label());
        self.if_not_kind(r, Subtag::MatchContext, new);
        if src != dst.src() {
            self.put(dst, r);
        }
        self.a.bind(done);
        self.later("a match context is made", move |g| {
            g.a.bind(new);
            g.a.mov(A, r);
            let stub = g.env.stubs.context;
            g.a.call_stub(stub);
            g.a.if_zero(Cond::E, Q, A, other);
            g.put(dst, A);
            g.a.jmp(done);
        });
    }
    /// `B` becomes the `bits` bits at bit `K` of the string of the context in `c`, which has them,
    /// in its upper bits. Jumps if they can't be read at once. Uses `R`.
    fn read_bits(&mut self, c: Reg, bits: u64, other: Label) {
        if !matches!(bits, 8 | 16 | 32 | 64) {
            return self.read_within(c, bits, other);
        }
        // They mostly begin at a byte.
        let (odd, done) = (self.a.label(), self.a.label());
        self.a
            .if_bits(Cond::Ne, K, 7, if bits > 56 { other } else { odd });
        self.a.mov(R, K);
        self.a.shift_i(Q, Shr, R, 3);
        self.a.load(B, boxed(c, MATCH_BYTES));
        let m = indexed(B, R, 1, 0);
        match bits {
            8 => {
                self.a.load8(B, m);
                self.a.shift_i(Q, Shl, B, 56);
            }
            16 => {
                self.a.load16(B, m);
                self.a.bswap(D, B);
                self.a.shift_i(Q, Shl, B, 32);
            }
            32 => {
                self.a.load32(B, m);
                self.a.bswap(D, B);
                self.a.shift_i(Q, Shl, B, 32);
            }
            _ => {
                self.a.load(B, m);
                self.a.bswap(Q, B);
            }
        }
        self.a.bind(done);
        if bits > 56 {
            return;
        }
        self.later("bits that begin within a byte", move |g| {
            g.a.bind(odd);
            g.read_within(c, bits, other);
            g.a.jmp(done);
        });
    }
    /// The same for at most 56 bits, which may begin within a byte. Jumps unless they are whole
    /// bytes, or the eight bytes that hold them all belong to the string.
    fn read_within(&mut self, c: Reg, bits: u64, other: Label) {
        let (near_end, done) = (self.a.label(), self.a.label());
        self.a.lea(R, at(K, 64));
        self.a.alu_i(Q, And, R, -8);
        let whole = bits.is_multiple_of(8);
        let end = if whole { near_end } else { other };
        self.a.if_m(Cond::A, R, boxed(c, MATCH_END), end);
        self.a.mov(R, K);
        self.a.shift_i(Q, Shr, R, 3);
        self.a.load(B, boxed(c, MATCH_BYTES));
        self.a.load(B, indexed(B, R, 1, 0));
        self.a.bswap(Q, B);
        self.a.mov32(R, K);
        self.a.alu_i(D, And, R, 7);
        self.a.shift_by_r(Q, Shl, B);
        self.a.bind(done);
        if !whole {
            return;
        }
        // Whole bytes, and nothing beyond them is read.
        self.later("fewer than eight bytes are left", move |g| {
            let n = (bits / 8) as i32;
            g.a.bind(near_end);
            g.a.if_bits(Cond::Ne, K, 7, other);
            g.a.mov(R, K);
            g.a.shift_i(Q, Shr, R, 3);
            g.a.load(B, boxed(c, MATCH_BYTES));
            g.a.alu(Q, Add, B, R);
            match n {
                1 => g.a.load8(R, at(B, 0)),
                2 | 3 => {
                    g.a.load8(R, at(B, 0));
                    g.a.shift_i(D, Shl, R, 16);
                    if n == 3 {
                        g.a.save(R);
                        g.a.load8(R, at(B, 2));
                        g.a.or_saved(R);
                        g.a.load8(R, at(B, 1));
                        g.a.shift_i(D, Shl, R, 8);
                        g.a.restore(B);
                        g.a.alu(D, Or, R, B);
                    } else {
                        g.a.load8(B, at(B, 1));
                        g.a.shift_i(D, Shl, B, 8);
                        g.a.alu(D, Or, R, B);
                        g.a.shift_i(D, Shr, R, 8);
                    }
                }
                _ => {
                    g.a.load32(R, at(B, 0));
                    g.a.bswap(D, R);
                    if n > 4 {
                        // The last four; those that are in both are the same.
                        g.a.load32(B, at(B, n - 4));
                        g.a.bswap(D, B);
                        g.a.shift_i(Q, Shl, R, (8 * (n - 4)) as u8);
                        g.a.alu(Q, Or, R, B);
                    }
                }
            }
            g.a.mov(B, R);
            g.a.shift_i(Q, Shl, B, (64 - bits) as u8);
            g.a.jmp(done);
        });
    }
    pub(super) fn bs_get_small(&mut self, op: BsGetSmall) {
        let BsGetSmall {
            fail,
            context,
            bits,
            flags,
            dst,
        } = op;
        if flags != 0 {
            return self.step();
        }
        let to = self.to(fail);
        let other = self.step_aside();
        let c = self.get(context, A);
        self.a.load(K, boxed(c, MATCH_POSITION));
        self.a.lea(R, at(K, bits as i32));
        self.a.if_m(Cond::A, R, boxed(c, MATCH_END), to);
        self.read_bits(c, bits, other);
        self.a.alu_i(Q, Add, K, bits as i32);
        self.a.store(boxed(c, MATCH_POSITION), K);
        // Leaves four more bits below, for the tag.
        self.a
            .shift_i(Q, Shr, B, (64 - bits) as u8 - SMALL_SHIFT as u8);
        self.a.alu_i(Q, Or, B, TAG_SMALL as i32);
        self.put_result(dst, B);
    }
    pub(super) fn bs_get_utf(&mut self, op: BsGetUtf) {
        let BsGetUtf {
            context,
            encoding,
            dst,
            ..
        } = op;
        self.utf(context, encoding, Some(dst));
    }
    pub(super) fn bs_skip_utf(&mut self, op: BsSkipUtf) {
        let BsSkipUtf {
            context, encoding, ..
        } = op;
        self.utf(context, encoding, None);
    }
    /// A character: of one byte here, of two and most of three in a cold part, others by a helper.
    fn utf(&mut self, context: Src, encoding: u64, dst: Option<Dst>) {
        if encoding != 8 {
            return self.step();
        }
        let other = self.step_aside();
        let (long, done) = (self.a.label(), self.a.label());
        let c = self.get(context, A);
        self.a.load(B, boxed(c, MATCH_POSITION));
        self.a.if_bits(Cond::Ne, B, 7, other);
        self.a.lea(R, at(B, 8));
        self.a.if_m(Cond::A, R, boxed(c, MATCH_END), other);
        self.a.mov(K, R);
        self.a.shift_i(Q, Shr, B, 3);
        self.a.load(R, boxed(c, MATCH_BYTES));
        self.a.load8(R, indexed(R, B, 1, 0));
        self.a.if_bits(Cond::Ne, R, 0x80, long);
        self.a.store(boxed(c, MATCH_POSITION), K);
        if let Some(d) = dst {
            self.a.tag(D, R);
            self.put_result(d, R);
        }
        self.a.bind(done);
        let (f, none) = (self.env.helpers.utf8, self.env.no_value);
        self.later("a character of several bytes", move |g| {
            let helper = g.a.label();
            g.a.bind(long);
            g.long_character(c, helper);
            if let Some(d) = dst {
                g.a.tag(D, R);
                g.put_result(d, R);
            }
            g.a.jmp(done);
            g.a.bind(helper);
            g.a.mov(A, c);
            g.leaf_helper(f);
            g.a.if_word(Cond::E, R, none, other);
            if let Some(d) = dst {
                g.put(d, R);
            }
            g.a.jmp(done);
        });
    }
    /// `R` becomes a character of two or three bytes of the context in `c`, whose position goes
    /// behind it. `R` has the first byte, `B` its number, and `K` the position behind it. Jumps if
    /// it is none, or one of four bytes, or if its first byte alone does not say which follow.
    fn long_character(&mut self, c: Reg, other: Label) {
        /// First bytes: of two, of three, of four.
        const TWO: i32 = 0xC2;
        const THREE: i32 = 0xE0;
        const FOUR: i32 = 0xF0;
        /// Those behind which not all others may follow, and one whose characters end with two
        /// that are looked at more closely.
        const CLOSER: [i32; 3] = [0xE0, 0xED, 0xEF];
        /// The upper bits of a byte that is not the first.
        const UPPER: u8 = 0xC0;
        let (three, done) = (self.a.label(), self.a.label());
        self.a.alu_i(Q, Add, K, 8);
        self.a.if_m(Cond::A, K, boxed(c, MATCH_END), other);
        self.a.alu_m(Add, B, boxed(c, MATCH_BYTES));
        self.a.if_i(Cond::Ae, D, R, THREE, three);
        self.a.if_i(Cond::B, D, R, TWO, other);
        self.a.load8(B, at(B, 1));
        self.a.alu_i(D, Xor, B, 0x80);
        self.a.if_bits(Cond::Ne, B, UPPER, other);
        self.a.alu_i(D, And, R, 0x1F);
        self.a.shift_i(D, Shl, R, 6);
        self.a.alu(D, Or, R, B);
        self.a.store(boxed(c, MATCH_POSITION), K);
        self.a.jmp(done);
        self.a.bind(three);
        self.a.if_i(Cond::Ae, D, R, FOUR, other);
        for first in CLOSER {
            self.a.if_i(Cond::E, D, R, first, other);
        }
        self.a.alu_i(Q, Add, K, 8);
        self.a.if_m(Cond::A, K, boxed(c, MATCH_END), other);
        // The second byte is the lower one of the two.
        self.a.load16(B, at(B, 1));
        self.a.alu_i(D, Xor, B, 0x8080);
        self.a.if_bits(Cond::Ne, B, UPPER, other);
        self.a.alu_i(D, And, R, 0xF);
        self.a.shift_i(D, Shl, R, 6);
        self.a.mov(K, B);
        self.a.alu_i(D, And, K, 0x3F);
        self.a.alu(D, Or, R, K);
        self.a.shift_i(D, Shl, R, 6);
        self.a.shift_i(D, Shr, B, 8);
        self.a.if_bits(Cond::Ne, B, UPPER, other);
        self.a.alu(D, Or, R, B);
        self.a.load(K, boxed(c, MATCH_POSITION));
        self.a.alu_i(Q, Add, K, 24);
        self.a.store(boxed(c, MATCH_POSITION), K);
        self.a.bind(done);
    }
    /// Skips a size in a register, times a unit.
    pub(super) fn bs_skip_bits(&mut self, op: BsSkipBits) {
        let BsSkipBits {
            fail,
            context,
            size,
            unit,
        } = op;
        if unit > 256 || matches!(size, Src::C(_)) || matches!(context, Src::C(_)) {
            return self.step();
        }
        let to = self.to(fail);
        let other = self.step_aside();
        let c = self.get(context, A);
        self.bits_of(size, unit, to, other);
        self.a.add_m_or(B, boxed(c, MATCH_POSITION), to);
        self.a.if_m(Cond::A, B, boxed(c, MATCH_END), to);
        self.a.store(boxed(c, MATCH_POSITION), B);
    }
    /// Runs commands that make small integers and bitstrings; an op with others runs as a step.
    pub(super) fn bs_match(&mut self, op: BsMatch) {
        let BsMatch {
            fail,
            context,
            commands,
            ..
        } = op;
        let Some(commands) = Command::all(commands) else {
            return self.step();
        };
        let written = commands.iter().rev().map(|c| match *c {
            Command::Integer(_, _, d) | Command::Bits(_, d) | Command::Tail(d) => Some(d),
            _ => None,
        });
        // Only the last command may write to the context's register.
        let clash = written
            .skip(1)
            .any(|d| d == context.register() && d.is_some());
        let makes = commands
            .iter()
            .any(|c| matches!(c, Command::Bits(..) | Command::Tail(_)));
        if clash || matches!(context, Src::C(_)) || makes && self.env.stressed {
            return self.step();
        }
        let to = self.to(fail);
        let other = self.step_aside();
        let c = self.get(context, A);
        // `K` is the position. It is stored when everything has matched. Terms that were made
        // before a failure are garbage.
        self.a.load(K, boxed(c, MATCH_POSITION));
        let mut stored = false;
        let last = commands.len() - 1;
        // Number of bits that are known to be left.
        let mut sure = 0;
        // Commands before that index were compiled together with those before them.
        let mut read = 0;
        for (k, &command) in commands.iter().enumerate() {
            match command {
                Command::AtLeast(bits, unit) => {
                    self.a.load(B, boxed(c, MATCH_END));
                    self.a.alu(Q, Sub, B, K);
                    self.a.sub_i_or_below(B, bits as i32, to);
                    if unit > 1 {
                        self.a.if_bits32(Cond::Ne, B, unit as u32 - 1, to);
                    }
                    sure = bits;
                }
                Command::Exactly(bits) => {
                    self.a.lea(B, at(K, bits as i32));
                    self.a.if_m(Cond::Ne, B, boxed(c, MATCH_END), to);
                    sure = bits;
                }
                Command::Integer(..) | Command::Equals(..) => {
                    if k < read {
                        continue;
                    }
                    let (run, bits) = run_at(&commands[k..], sure);
                    read = k + run.len();
                    self.enough(c, bits, &mut sure, to);
                    self.read_bits(c, bits, other);
                    let ends = read == commands.len();
                    self.integers(c, run, bits, ends, to);
                    stored = ends;
                }
                Command::Bits(bits, dst) => {
                    self.enough(c, bits, &mut sure, to);
                    self.a.mov_i(R, bits);
                    self.part_at(c, other);
                    self.a.alu_i(Q, Add, K, bits as i32);
                    if k == last {
                        stored = true;
                        self.a.store(boxed(c, MATCH_POSITION), K);
                    }
                    self.put(dst, R);
                }
                Command::Tail(dst) => {
                    self.a.load(R, boxed(c, MATCH_END));
                    self.a.alu(Q, Sub, R, K);
                    self.part_at(c, other);
                    if k == last {
                        stored = true;
                        self.a.store(boxed(c, MATCH_POSITION), K);
                    }
                    self.put(dst, R);
                }
                Command::Skip(bits) => {
                    if k < read {
                        continue;
                    }
                    self.enough(c, bits, &mut sure, to);
                    self.a.alu_i(Q, Add, K, bits as i32);
                }
            }
        }
        if !stored {
            self.a.store(boxed(c, MATCH_POSITION), K);
        }
    }
    /// Runs commands whose bits are the upper ones of `B`, `all` of them; `K` is where they begin.
    /// After the last commands the position is stored before the last register, which may be the
    /// context's. Uses `R`.
    fn integers(&mut self, c: Reg, run: &[Command], all: u64, ends: bool, to: Label) {
        let last = run.len() - 1;
        let mut from = 0;
        self.a.alu_i(Q, Add, K, all as i32);
        for (k, &command) in run.iter().enumerate() {
            let (bits, dst) = match command {
                Command::Integer(bits, _, dst) => (bits, Some(dst)),
                Command::Equals(bits, _) | Command::Skip(bits) => (bits, None),
                _ => (0, None),
            };
            if k == last && ends && !matches!(command, Command::Equals(..)) {
                self.a.store(boxed(c, MATCH_POSITION), K);
            }
            // The last one needs nothing of the others.
            let d = match k == last {
                true => B,
                false => dst.map_or(R, |dst| self.dst(dst, R)),
            };
            let begin = |g: &mut Self| {
                g.a.mov(d, B);
                if from > 0 {
                    g.a.shift_i(Q, Shl, d, from as u8);
                }
            };
            let unused = (64 - bits) as u8;
            match command {
                Command::Integer(_, flags, dst) => {
                    begin(self);
                    if flags & LITTLE != 0 {
                        self.a.shift_i(Q, Shr, d, unused);
                        self.a.shift_i(Q, Shl, d, unused);
                        self.a.bswap(Q, d);
                        self.a.shift_i(Q, Shl, d, unused);
                    }
                    // Leaves four more bits below, for the tag.
                    let shift = if flags & SIGNED != 0 { Sar } else { Shr };
                    self.a.shift_i(Q, shift, d, unused - SMALL_SHIFT as u8);
                    self.a.alu_i(Q, Or, d, TAG_SMALL as i32);
                    self.put(dst, d);
                }
                Command::Equals(_, value) => {
                    begin(self);
                    self.a.shift_i(Q, Shr, d, unused);
                    match i32::try_from(value) {
                        Ok(v) => self.a.if_i(Cond::Ne, Q, d, v, to),
                        Err(_) => {
                            // The compared value is in `R`, or in `B` if that isn't used again.
                            let other = if d == R { A } else { R };
                            if other == A && c == A {
                                self.a.save(B);
                                self.a.mov_i(B, value);
                                self.a.if_r_restoring(Cond::Ne, d, B, to);
                            } else {
                                self.a.mov_i(other, value);
                                self.a.if_r(Cond::Ne, Q, d, other, to);
                            }
                        }
                    }
                    if k == last && ends {
                        self.a.store(boxed(c, MATCH_POSITION), K);
                    }
                }
                _ => {}
            }
            from += bits;
        }
    }
    /// `B` becomes the number of bits of that many units. Jumps to `to` if there can't be as many,
    /// and to `other` if the size is no small integer. Uses `K`.
    fn bits_of(&mut self, size: Src, unit: u64, to: Label, other: Label) {
        let n = self.get(size, K);
        self.if_no_small(size, n, other);
        if self.is_natural(size) {
            self.a.untag(B, n);
        } else {
            self.a.mov(B, n);
            self.a.untag_or(B, Cond::S, to);
        }
        self.a.mul_i_or(B, unit as i32, Some(to));
    }
    /// `R` becomes the bitstring of `R` bits at bit `K` of the context in `c`, which is `A` or a
    /// register that is kept. Uses `B`.
    fn part_at(&mut self, c: Reg, other: Label) {
        self.a.mov(A, c);
        self.a.mov(B, K);
        let stub = self.env.stubs.part;
        self.a.call_stub(stub);
        self.a.if_zero(Cond::E, D, R, other);
    }
    /// All that is left. The context doesn't advance.
    pub(super) fn bs_get_tail(&mut self, BsGetTail { context, dst, .. }: BsGetTail) {
        if matches!(context, Src::C(_)) || self.env.stressed {
            return self.step();
        }
        let other = self.step_aside();
        let c = self.get(context, A);
        self.a.load(K, boxed(c, MATCH_POSITION));
        self.a.load(R, boxed(c, MATCH_END));
        self.a.alu(Q, Sub, R, K);
        self.part_at(c, other);
        self.put(dst, R);
    }
    /// A part whose size is in a register or in the code, or all that is left.
    pub(super) fn bs_get_binary(&mut self, op: BsGetBinary) {
        let BsGetBinary {
            fail,
            context,
            size,
            unit,
            dst,
            ..
        } = op;
        let constant = Self::small(size)
            .map(|n| n as u64)
            .and_then(|n| n.checked_mul(unit));
        let all = size == Src::C(am::ALL.raw());
        let fits = match size {
            Src::C(_) if all => unit.is_power_of_two() && unit <= 128,
            Src::C(_) => constant.is_some_and(|n| n < 1 << 28),
            _ => unit <= 256,
        };
        if !fits || matches!(context, Src::C(_)) || self.env.stressed {
            return self.step();
        }
        let to = self.to(fail);
        let other = self.step_aside();
        let c = self.get(context, A);
        if all {
            self.a.load(R, boxed(c, MATCH_END));
            self.a.alu_m(Sub, R, boxed(c, MATCH_POSITION));
            if unit > 1 {
                self.a.if_bits32(Cond::Ne, R, unit as u32 - 1, to);
            }
            self.a.mov(B, R);
        } else if let Some(n) = constant {
            self.a.mov_i(B, n);
        } else {
            self.bits_of(size, unit, to, other);
        }
        // `B`: their number. `R`: their end.
        self.a.load(K, boxed(c, MATCH_POSITION));
        self.a.mov(R, K);
        self.a.sum_or(Add, R, B, Some(to));
        self.a.if_m(Cond::A, R, boxed(c, MATCH_END), to);
        self.a.save(R);
        self.a.mov(R, B);
        self.a.mov(A, c);
        self.a.mov(B, K);
        let stub = self.env.stubs.part;
        self.a.call_stub(stub);
        self.a.restore(K);
        self.a.if_zero(Cond::E, D, R, other);
        self.a.store(boxed(c, MATCH_POSITION), K);
        self.put(dst, R);
    }
    pub(super) fn bs_get_position(&mut self, op: BsGetPosition) {
        let BsGetPosition { context, dst, .. } = op;
        let c = self.get(context, A);
        self.a.load(R, boxed(c, MATCH_POSITION));
        self.put_small(dst);
    }
    pub(super) fn bs_set_position(&mut self, op: BsSetPosition) {
        let BsSetPosition { context, position } = op;
        let c = self.get(context, A);
        let p = self.get(position, B);
        let after = self.a.label();
        self.a.untag(R, p);
        self.a.if_m(Cond::A, R, boxed(c, MATCH_END), after);
        self.a.store(boxed(c, MATCH_POSITION), R);
        self.a.bind(after);
    }
    pub(super) fn bs_skip_fixed(&mut self, op: BsSkipFixed) {
        let BsSkipFixed {
            fail,
            context,
            bits,
        } = op;
        let c = self.get(context, A);
        let to = self.to(fail);
        self.a.load(B, boxed(c, MATCH_POSITION));
        self.add_word(B, bits);
        self.a.if_m(Cond::A, B, boxed(c, MATCH_END), to);
        self.a.store(boxed(c, MATCH_POSITION), B);
    }
    pub(super) fn bs_test_tail(&mut self, op: BsTestTail) {
        let BsTestTail {
            fail,
            context,
            bits,
        } = op;
        let c = self.get(context, A);
        let to = self.to(fail);
        self.bits_left(c);
        match i32::try_from(bits as i64) {
            Ok(n) => self.a.if_i(Cond::Ne, Q, B, n, to),
            Err(_) => {
                self.a.mov_i(R, bits);
                self.a.if_r(Cond::Ne, Q, B, R, to);
            }
        }
    }
    pub(super) fn bs_test_unit(&mut self, op: BsTestUnit) {
        let BsTestUnit {
            fail,
            context,
            unit,
        } = op;
        if !unit.is_power_of_two() || unit > 128 {
            return self.step();
        }
        let c = self.get(context, A);
        let to = self.to(fail);
        self.bits_left(c);
        self.a.if_bits32(Cond::Ne, B, unit as u32 - 1, to);
    }
    /// `B` becomes the number of bits left.
    fn bits_left(&mut self, c: Reg) {
        self.a.load(B, boxed(c, MATCH_END));
        self.a.alu_m(Sub, B, boxed(c, MATCH_POSITION));
    }
    /// Jumps unless that many bits are left.
    fn enough(&mut self, c: Reg, bits: u64, sure: &mut u64, to: Label) {
        if *sure >= bits {
            *sure -= bits;
            return;
        }
        *sure = 0;
        self.a.lea(B, at(K, bits as i32));
        self.a.if_m(Cond::A, B, boxed(c, MATCH_END), to);
    }
}
