//! Matching of bitstrings.

use super::*;
use crate::commands::{Command, run_at};
use purlin_isa::bit_fields::flags::{LITTLE, SIGNED};
use purlin_term::am;
use purlin_term::layout::MATCH_BYTES;

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn bs_get_byte(&mut self, op: BsGetByte) {
        let BsGetByte { fail, context, dst } = op;
        let c = self.get(context, R10);
        let to = self.to(fail);
        self.a.load(R11, boxed(c, MATCH_POSITION));
        self.a.lea(RCX, at(R11, 8));
        self.a.alu_m(Q, Cmp, RCX, boxed(c, MATCH_END));
        self.a.jcc(Cond::A, to);
        let (odd, done) = (self.a.label(), self.a.label());
        self.a.test8_i(R11, 7);
        self.a.jcc(Cond::Ne, odd);
        self.a.store(boxed(c, MATCH_POSITION), RCX);
        self.a.shift_i(Q, Shr, R11, 3);
        self.a.load(RCX, boxed(c, MATCH_BYTES));
        self.a.load8(RCX, indexed(RCX, R11, 1, 0));
        self.a.bind(done);
        self.a.shift_i(D, Shl, RCX, SMALL_SHIFT as u8);
        self.a.alu_i(D, Or, RCX, TAG_SMALL as i32);
        self.put(dst, RCX);
        // If it does not begin at a byte, it takes the next byte as well.
        self.later("a byte that begins within a byte", move |g| {
            g.a.bind(odd);
            g.a.store(boxed(c, MATCH_POSITION), RCX);
            g.a.mov(R12, R11);
            g.a.shift_i(Q, Shr, R12, 3);
            g.a.load(RCX, boxed(c, MATCH_BYTES));
            g.a.alu(Q, Add, R12, RCX);
            g.a.mov(RCX, R11);
            g.a.load8(R11, at(R12, 0));
            g.a.load8(R12, at(R12, 1));
            g.a.shift_i(D, Shl, R11, 8);
            g.a.alu(D, Or, R11, R12);
            g.a.alu_i(D, And, RCX, 7);
            g.a.shift_cl(D, Shl, R11);
            g.a.mov32(RCX, R11);
            g.a.shift_i(D, Shr, RCX, 8);
            g.a.alu_i(D, And, RCX, 0xFF);
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
        let r = self.get(src, R10);
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
            g.a.mov(R10, r);
            let stub = g.env.stubs.context;
            g.a.call_abs(stub);
            g.a.test(Q, R10, R10);
            g.a.jcc(Cond::E, other);
            g.put(dst, R10);
            g.a.jmp(done);
        });
    }
    /// R11 becomes the `bits` bits at bit R12 of the string of the context in `c`, which has them,
    /// in its upper bits. Jumps if they can't be read at once. Uses RCX.
    fn read_bits(&mut self, c: Reg, bits: u64, other: Label) {
        if !matches!(bits, 8 | 16 | 32 | 64) {
            return self.read_within(c, bits, other);
        }
        // They mostly begin at a byte.
        let (odd, done) = (self.a.label(), self.a.label());
        self.a.test8_i(R12, 7);
        self.a.jcc(Cond::Ne, if bits > 56 { other } else { odd });
        self.a.mov(RCX, R12);
        self.a.shift_i(Q, Shr, RCX, 3);
        self.a.load(R11, boxed(c, MATCH_BYTES));
        let m = indexed(R11, RCX, 1, 0);
        match bits {
            8 => {
                self.a.load8(R11, m);
                self.a.shift_i(Q, Shl, R11, 56);
            }
            16 => {
                self.a.load16(R11, m);
                self.a.bswap(D, R11);
                self.a.shift_i(Q, Shl, R11, 32);
            }
            32 => {
                self.a.load32(R11, m);
                self.a.bswap(D, R11);
                self.a.shift_i(Q, Shl, R11, 32);
            }
            _ => {
                self.a.load(R11, m);
                self.a.bswap(Q, R11);
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
        self.a.lea(RCX, at(R12, 64));
        self.a.alu_i(Q, And, RCX, -8);
        self.a.alu_m(Q, Cmp, RCX, boxed(c, MATCH_END));
        let whole = bits.is_multiple_of(8);
        self.a.jcc(Cond::A, if whole { near_end } else { other });
        self.a.mov(RCX, R12);
        self.a.shift_i(Q, Shr, RCX, 3);
        self.a.load(R11, boxed(c, MATCH_BYTES));
        self.a.load(R11, indexed(R11, RCX, 1, 0));
        self.a.bswap(Q, R11);
        self.a.mov32(RCX, R12);
        self.a.alu_i(D, And, RCX, 7);
        self.a.shift_cl(Q, Shl, R11);
        self.a.bind(done);
        if !whole {
            return;
        }
        // Whole bytes, and nothing beyond them is read.
        self.later("fewer than eight bytes are left", move |g| {
            let n = (bits / 8) as i32;
            g.a.bind(near_end);
            g.a.test8_i(R12, 7);
            g.a.jcc(Cond::Ne, other);
            g.a.mov(RCX, R12);
            g.a.shift_i(Q, Shr, RCX, 3);
            g.a.load(R11, boxed(c, MATCH_BYTES));
            g.a.alu(Q, Add, R11, RCX);
            match n {
                1 => g.a.load8(RCX, at(R11, 0)),
                2 | 3 => {
                    g.a.load8(RCX, at(R11, 0));
                    g.a.shift_i(D, Shl, RCX, 16);
                    if n == 3 {
                        g.a.push(RCX);
                        g.a.load8(RCX, at(R11, 2));
                        g.a.alu_mr(Q, Or, at(RSP, 0), RCX);
                        g.a.load8(RCX, at(R11, 1));
                        g.a.shift_i(D, Shl, RCX, 8);
                        g.a.pop(R11);
                        g.a.alu(D, Or, RCX, R11);
                    } else {
                        g.a.load8(R11, at(R11, 1));
                        g.a.shift_i(D, Shl, R11, 8);
                        g.a.alu(D, Or, RCX, R11);
                        g.a.shift_i(D, Shr, RCX, 8);
                    }
                }
                _ => {
                    g.a.load32(RCX, at(R11, 0));
                    g.a.bswap(D, RCX);
                    if n > 4 {
                        // The last four; those that are in both are the same.
                        g.a.load32(R11, at(R11, n - 4));
                        g.a.bswap(D, R11);
                        g.a.shift_i(Q, Shl, RCX, (8 * (n - 4)) as u8);
                        g.a.alu(Q, Or, RCX, R11);
                    }
                }
            }
            g.a.mov(R11, RCX);
            g.a.shift_i(Q, Shl, R11, (64 - bits) as u8);
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
        let c = self.get(context, R10);
        self.a.load(R12, boxed(c, MATCH_POSITION));
        self.a.lea(RCX, at(R12, bits as i32));
        self.a.alu_m(Q, Cmp, RCX, boxed(c, MATCH_END));
        self.a.jcc(Cond::A, to);
        self.read_bits(c, bits, other);
        self.a.alu_i(Q, Add, R12, bits as i32);
        self.a.store(boxed(c, MATCH_POSITION), R12);
        // Leaves four more bits below, for the tag.
        self.a
            .shift_i(Q, Shr, R11, (64 - bits) as u8 - SMALL_SHIFT as u8);
        self.a.alu_i(Q, Or, R11, TAG_SMALL as i32);
        self.put(dst, R11);
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
    /// A character: of one byte here, of several by a helper.
    fn utf(&mut self, context: Src, encoding: u64, dst: Option<Dst>) {
        if encoding != 8 {
            return self.step();
        }
        let other = self.step_aside();
        let (long, done) = (self.a.label(), self.a.label());
        let c = self.get(context, R10);
        self.a.load(R11, boxed(c, MATCH_POSITION));
        self.a.test8_i(R11, 7);
        self.a.jcc(Cond::Ne, other);
        self.a.lea(RCX, at(R11, 8));
        self.a.alu_m(Q, Cmp, RCX, boxed(c, MATCH_END));
        self.a.jcc(Cond::A, other);
        self.a.mov(R12, RCX);
        self.a.shift_i(Q, Shr, R11, 3);
        self.a.load(RCX, boxed(c, MATCH_BYTES));
        self.a.load8(RCX, indexed(RCX, R11, 1, 0));
        self.a.test8_i(RCX, 0x80);
        self.a.jcc(Cond::Ne, long);
        self.a.store(boxed(c, MATCH_POSITION), R12);
        if let Some(d) = dst {
            self.a.shift_i(D, Shl, RCX, SMALL_SHIFT as u8);
            self.a.alu_i(D, Or, RCX, TAG_SMALL as i32);
            self.put(d, RCX);
        }
        self.a.bind(done);
        let (f, none) = (self.env.helpers.utf8, self.env.no_value);
        self.later("a character of several bytes", move |g| {
            g.a.bind(long);
            g.a.mov(R10, c);
            g.leaf_helper(f);
            g.cmp_word(RCX, none);
            g.a.jcc(Cond::E, other);
            if let Some(d) = dst {
                g.put(d, RCX);
            }
            g.a.jmp(done);
        });
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
        let c = self.get(context, R10);
        self.bits_of(size, unit, to, other);
        self.a.alu_m(Q, Add, R11, boxed(c, MATCH_POSITION));
        self.a.jcc(Cond::O, to);
        self.a.alu_m(Q, Cmp, R11, boxed(c, MATCH_END));
        self.a.jcc(Cond::A, to);
        self.a.store(boxed(c, MATCH_POSITION), R11);
    }
    /// Runs commands that make small integers and bitstrings; an op with others runs as a step.
    pub(super) fn bs_match(&mut self, op: BsMatch) {
        let BsMatch {
            fail,
            context,
            commands,
            ..
        } = op;
        let Some(commands) = Command::all(commands.words) else {
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
        let c = self.get(context, R10);
        // R12 is the position. It is stored when everything has matched. Terms that were made
        // before a failure are garbage.
        self.a.load(R12, boxed(c, MATCH_POSITION));
        let mut stored = false;
        let last = commands.len() - 1;
        // Number of bits that are known to be left.
        let mut sure = 0;
        // Commands before that index were compiled together with those before them.
        let mut read = 0;
        for (k, &command) in commands.iter().enumerate() {
            match command {
                Command::AtLeast(bits, unit) => {
                    self.a.load(R11, boxed(c, MATCH_END));
                    self.a.alu(Q, Sub, R11, R12);
                    self.a.alu_i(Q, Sub, R11, bits as i32);
                    self.a.jcc(Cond::B, to);
                    if unit > 1 {
                        self.a.test32_i(R11, unit as u32 - 1);
                        self.a.jcc(Cond::Ne, to);
                    }
                    sure = bits;
                }
                Command::Exactly(bits) => {
                    self.a.lea(R11, at(R12, bits as i32));
                    self.a.alu_m(Q, Cmp, R11, boxed(c, MATCH_END));
                    self.a.jcc(Cond::Ne, to);
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
                    self.a.mov_i(RCX, bits);
                    self.part_at(c, other);
                    self.a.alu_i(Q, Add, R12, bits as i32);
                    if k == last {
                        stored = true;
                        self.a.store(boxed(c, MATCH_POSITION), R12);
                    }
                    self.put(dst, RCX);
                }
                Command::Tail(dst) => {
                    self.a.load(RCX, boxed(c, MATCH_END));
                    self.a.alu(Q, Sub, RCX, R12);
                    self.part_at(c, other);
                    if k == last {
                        stored = true;
                        self.a.store(boxed(c, MATCH_POSITION), R12);
                    }
                    self.put(dst, RCX);
                }
                Command::Skip(bits) => {
                    if k < read {
                        continue;
                    }
                    self.enough(c, bits, &mut sure, to);
                    self.a.alu_i(Q, Add, R12, bits as i32);
                }
            }
        }
        if !stored {
            self.a.store(boxed(c, MATCH_POSITION), R12);
        }
    }
    /// Runs commands whose bits are the upper ones of R11, `all` of them; R12 is where they begin.
    /// After the last commands the position is stored before the last register, which may be the
    /// context's. Uses RCX.
    fn integers(&mut self, c: Reg, run: &[Command], all: u64, ends: bool, to: Label) {
        let last = run.len() - 1;
        let mut from = 0;
        self.a.alu_i(Q, Add, R12, all as i32);
        for (k, &command) in run.iter().enumerate() {
            let (bits, dst) = match command {
                Command::Integer(bits, _, dst) => (bits, Some(dst)),
                Command::Equals(bits, _) | Command::Skip(bits) => (bits, None),
                _ => (0, None),
            };
            if k == last && ends && !matches!(command, Command::Equals(..)) {
                self.a.store(boxed(c, MATCH_POSITION), R12);
            }
            // The last one needs nothing of the others.
            let d = match k == last {
                true => R11,
                false => dst.map_or(RCX, |dst| self.dst(dst, RCX)),
            };
            let begin = |g: &mut Self| {
                g.a.mov(d, R11);
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
                        Ok(v) => self.a.alu_i(Q, Cmp, d, v),
                        Err(_) => {
                            // The compared value is in RCX, or in R11 if that isn't used again.
                            let other = if d == RCX { R10 } else { RCX };
                            if other == R10 && c == R10 {
                                self.a.push(R11);
                                self.a.mov_i(R11, value);
                                self.a.alu(Q, Cmp, d, R11);
                                self.a.pop(R11);
                            } else {
                                self.a.mov_i(other, value);
                                self.a.alu(Q, Cmp, d, other);
                            }
                        }
                    }
                    self.a.jcc(Cond::Ne, to);
                    if k == last && ends {
                        self.a.store(boxed(c, MATCH_POSITION), R12);
                    }
                }
                _ => {}
            }
            from += bits;
        }
    }
    /// R11 becomes the number of bits of that many units. Jumps to `to` if there can't be as many,
    /// and to `other` if the size is no small integer. Uses R12.
    fn bits_of(&mut self, size: Src, unit: u64, to: Label, other: Label) {
        let n = self.get(size, R12);
        self.if_no_small(size, n, other);
        self.a.mov(R11, n);
        self.a.shift_i(Q, Sar, R11, SMALL_SHIFT as u8);
        if !self.is_natural(size) {
            self.a.jcc(Cond::S, to);
        }
        self.a.imul_i(R11, R11, unit as i32);
        self.a.jcc(Cond::O, to);
    }
    /// RCX becomes the bitstring of RCX bits at bit R12 of the context in `c`, which is R10 or a
    /// register that is kept. Uses R11.
    fn part_at(&mut self, c: Reg, other: Label) {
        self.a.mov(R10, c);
        self.a.mov(R11, R12);
        let stub = self.env.stubs.part;
        self.a.call_abs(stub);
        self.a.test(D, RCX, RCX);
        self.a.jcc(Cond::E, other);
    }
    /// All that is left. The context doesn't advance.
    pub(super) fn bs_get_tail(&mut self, BsGetTail { context, dst, .. }: BsGetTail) {
        if matches!(context, Src::C(_)) || self.env.stressed {
            return self.step();
        }
        let other = self.step_aside();
        let c = self.get(context, R10);
        self.a.load(R12, boxed(c, MATCH_POSITION));
        self.a.load(RCX, boxed(c, MATCH_END));
        self.a.alu(Q, Sub, RCX, R12);
        self.part_at(c, other);
        self.put(dst, RCX);
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
        let c = self.get(context, R10);
        if all {
            self.a.load(RCX, boxed(c, MATCH_END));
            self.a.alu_m(Q, Sub, RCX, boxed(c, MATCH_POSITION));
            if unit > 1 {
                self.a.test32_i(RCX, unit as u32 - 1);
                self.a.jcc(Cond::Ne, to);
            }
            self.a.mov(R11, RCX);
        } else if let Some(n) = constant {
            self.a.mov_i(R11, n);
        } else {
            self.bits_of(size, unit, to, other);
        }
        // R11: their number. RCX: their end.
        self.a.load(R12, boxed(c, MATCH_POSITION));
        self.a.mov(RCX, R12);
        self.a.alu(Q, Add, RCX, R11);
        self.a.jcc(Cond::O, to);
        self.a.alu_m(Q, Cmp, RCX, boxed(c, MATCH_END));
        self.a.jcc(Cond::A, to);
        self.a.push(RCX);
        self.a.mov(RCX, R11);
        self.a.mov(R10, c);
        self.a.mov(R11, R12);
        let stub = self.env.stubs.part;
        self.a.call_abs(stub);
        self.a.pop(R12);
        self.a.test(D, RCX, RCX);
        self.a.jcc(Cond::E, other);
        self.a.store(boxed(c, MATCH_POSITION), R12);
        self.put(dst, RCX);
    }
    pub(super) fn bs_get_position(&mut self, op: BsGetPosition) {
        let BsGetPosition { context, dst, .. } = op;
        let c = self.get(context, R10);
        self.a.load(RCX, boxed(c, MATCH_POSITION));
        self.put_small(dst);
    }
    pub(super) fn bs_set_position(&mut self, op: BsSetPosition) {
        let BsSetPosition { context, position } = op;
        let c = self.get(context, R10);
        let p = self.get(position, R11);
        let after = self.a.label();
        self.a.mov(RCX, p);
        self.a.shift_i(Q, Sar, RCX, SMALL_SHIFT as u8);
        self.a.alu_m(Q, Cmp, RCX, boxed(c, MATCH_END));
        self.a.jcc(Cond::A, after);
        self.a.store(boxed(c, MATCH_POSITION), RCX);
        self.a.bind(after);
    }
    pub(super) fn bs_skip_fixed(&mut self, op: BsSkipFixed) {
        let BsSkipFixed {
            fail,
            context,
            bits,
        } = op;
        let c = self.get(context, R10);
        let to = self.to(fail);
        self.a.load(R11, boxed(c, MATCH_POSITION));
        self.add_word(R11, bits);
        self.a.alu_m(Q, Cmp, R11, boxed(c, MATCH_END));
        self.a.jcc(Cond::A, to);
        self.a.store(boxed(c, MATCH_POSITION), R11);
    }
    pub(super) fn bs_test_tail(&mut self, op: BsTestTail) {
        let BsTestTail {
            fail,
            context,
            bits,
        } = op;
        let c = self.get(context, R10);
        let to = self.to(fail);
        self.bits_left(c);
        match i32::try_from(bits as i64) {
            Ok(n) => self.a.alu_i(Q, Cmp, R11, n),
            Err(_) => {
                self.a.mov_i(RCX, bits);
                self.a.alu(Q, Cmp, R11, RCX);
            }
        }
        self.a.jcc(Cond::Ne, to);
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
        let c = self.get(context, R10);
        let to = self.to(fail);
        self.bits_left(c);
        self.a.test32_i(R11, unit as u32 - 1);
        self.a.jcc(Cond::Ne, to);
    }
    /// R11 becomes the number of bits left.
    fn bits_left(&mut self, c: Reg) {
        self.a.load(R11, boxed(c, MATCH_END));
        self.a.alu_m(Q, Sub, R11, boxed(c, MATCH_POSITION));
    }
    /// Jumps unless that many bits are left.
    fn enough(&mut self, c: Reg, bits: u64, sure: &mut u64, to: Label) {
        if *sure >= bits {
            *sure -= bits;
            return;
        }
        *sure = 0;
        self.a.lea(R11, at(R12, bits as i32));
        self.a.alu_m(Q, Cmp, R11, boxed(c, MATCH_END));
        self.a.jcc(Cond::A, to);
    }
}
