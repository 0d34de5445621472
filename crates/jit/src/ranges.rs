//! Analysis of which registers hold small integers, and of their ranges, in one forward pass over a
//! function.
//!
//! The knowledge before an instruction is what all paths to it have in common. All of them come
//! from earlier instructions, or else nothing is known there. The knowledge follows from the
//! meaning of the instructions alone, so it holds whether machine code, the interpreter or a helper
//! runs them.

use crate::commands::Command;
use crate::decode::Instruction;
use crate::operands::*;
use purlin_isa::bit_fields::Field;
use purlin_isa::bit_fields::flags::SIGNED;
use purlin_isa::codec::Value;
use purlin_isa::contract::{Stack, Xs};
use purlin_isa::ops::{List, Op, Role};
use purlin_term::word::{SMALL_SHIFT, is_small_word};

/// Small integers from `lo` to `hi`, inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub lo: i64,
    pub hi: i64,
}

/// Bits of a small integer without its sign.
const SMALL_BITS: u32 = 63 - SMALL_SHIFT;
const SMALLEST: i64 = -(1 << SMALL_BITS);
const LARGEST: i64 = (1 << SMALL_BITS) - 1;
/// Maximum number of registers with a known range.
const MOST_REGISTERS: usize = 12;
/// Numbers of elements, bytes and positions in memory.
const COUNT: Range = Range { lo: 0, hi: LARGEST };
/// The code points.
const CHARACTERS: Range = Range {
    lo: 0,
    hi: 0x10_FFFF,
};

impl Range {
    /// Returns the range; `None` if not all of it are small integers.
    fn of(lo: i128, hi: i128) -> Option<Range> {
        let (lo, hi) = (i64::try_from(lo).ok()?, i64::try_from(hi).ok()?);
        (lo >= SMALLEST && hi <= LARGEST && lo <= hi).then_some(Range { lo, hi })
    }
    fn below(bits: u64) -> Option<Range> {
        (bits <= u64::from(SMALL_BITS)).then(|| Range {
            lo: 0,
            hi: (1 << bits) - 1,
        })
    }
    /// Returns the range of integers of that many bits in a bitstring, by the flags of the segment.
    fn of_bits(bits: u64, flags: u64) -> Option<Range> {
        match flags & SIGNED {
            0 => Range::below(bits),
            _ => (1..=u64::from(SMALL_BITS)).contains(&bits).then(|| Range {
                lo: -(1 << (bits - 1)),
                hi: (1 << (bits - 1)) - 1,
            }),
        }
    }
    /// Returns the range of numbers with as many bits, if neither range has negative numbers.
    fn filled(self, other: Range) -> Option<Range> {
        (self.lo >= 0 && other.lo >= 0)
            .then(|| 64 - u64::from((self.hi | other.hi).leading_zeros()))
            .and_then(Range::below)
    }
    fn around(self, other: Range) -> Range {
        Range {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
        }
    }
    /// Returns the range of the results of `each` for all pairs of ends.
    fn corners(self, other: Range, each: impl Fn(i128, i128) -> i128) -> Option<Range> {
        let ends = |r: Range| [i128::from(r.lo), i128::from(r.hi)];
        let all = ends(self).map(|a| ends(other).map(|b| each(a, b)));
        let all = all.as_flattened();
        Range::of(*all.iter().min()?, *all.iter().max()?)
    }
}

/// The known ranges of registers at one place.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Known(Vec<(Dst, Range)>);

/// Returns the range of a constant that is a small integer.
fn of_word(w: u64) -> Option<Range> {
    let n = (w as i64) >> SMALL_SHIFT;
    is_small_word(w).then_some(Range { lo: n, hi: n })
}

impl Known {
    /// Returns the range of an operand; `None` if it may be anything.
    pub fn range(&self, a: Src) -> Option<Range> {
        match a {
            Src::C(w) => of_word(w),
            Src::X(_) | Src::Y(_) => self.of(a.register()?),
        }
    }
    /// Returns the range of a register.
    fn of(&self, r: Dst) -> Option<Range> {
        self.0.iter().find(|k| k.0 == r).map(|k| k.1)
    }
    /// Returns the registers with their ranges.
    pub fn all(&self) -> impl Iterator<Item = (Dst, Range)> + '_ {
        self.0.iter().copied()
    }
    fn forget(&mut self, a: Dst) {
        self.0.retain(|k| k.0 != a);
    }
    fn forget_x(&mut self, from: u16) {
        self.0.retain(|k| !matches!(k.0, Dst::X(n) if n >= from));
    }
    fn forget_y(&mut self) {
        self.0.retain(|k| !matches!(k.0, Dst::Y(_)));
    }
    fn set(&mut self, a: Dst, r: Option<Range>) {
        self.forget(a);
        if let Some(r) = r {
            if self.0.len() == MOST_REGISTERS {
                self.0.remove(0);
            }
            self.0.push((a, r));
        }
    }
    /// Keeps what holds in both.
    fn meet(&mut self, other: &Known) {
        self.0.retain_mut(|k| match other.of(k.0) {
            Some(r) => {
                k.1 = k.1.around(r);
                true
            }
            None => false,
        });
    }
    /// Narrows the range of an operand to that of a comparison which holds.
    fn narrow(&mut self, a: Src, r: Option<Range>) {
        let a = a.register();
        let known = self.0.iter_mut().find(|k| Some(k.0) == a);
        if let (Some(k), Some(r)) = (known, r) {
            let (lo, hi) = (k.1.lo.max(r.lo), k.1.hi.min(r.hi));
            // Otherwise control never gets here.
            if lo <= hi {
                k.1 = Range { lo, hi };
            }
        }
    }
    /// Records that `x` is at least `y` plus `more`.
    fn at_least(&mut self, x: Src, y: Src, more: i64) {
        if let (Some(rx), Some(ry)) = (self.range(x), self.range(y)) {
            let least = Range::of(i128::from(ry.lo) + i128::from(more), i128::from(LARGEST));
            let most = Range::of(i128::from(SMALLEST), i128::from(rx.hi) - i128::from(more));
            self.narrow(x, least);
            self.narrow(y, most);
        }
    }
}

/// A place to which no path has led so far.
const NOTHING: u32 = 0;
/// A place at which nothing is known.
const ANYTHING: u32 = 1;
/// A place with knowledge: this plus its index in `led`.
const LED: u32 = 2;

/// The pass.
pub struct Ranges {
    start: u32,
    /// The state of each word of the function: see [`LED`].
    before: Vec<u32>,
    /// The knowledge at the targets of jumps.
    led: Vec<Known>,
    /// Whether control falls through to the next instruction.
    goes_on: bool,
    now: Known,
    /// The result of the native after a shortcut.
    result: Option<Range>,
}

/// Calls `to` with every offset to which an instruction may lead, besides the next one. Some of
/// them may lead nowhere.
fn leads(i: &Instruction, mut to: impl FnMut(u32)) {
    i.labels().for_each(&mut to);
    let has_labels = i.op.row().list.is_some_and(|l| {
        matches!(
            l,
            List::Labels | List::Switch | List::Arms | List::ArityArms
        )
    });
    if has_labels {
        i.list
            .iter()
            .filter_map(|&w| i.place_of(w))
            .for_each(&mut to);
    }
}

impl Ranges {
    /// Begins the pass over a function from `start` to `end`; `over` returns the target of a
    /// shortcut.
    pub fn new(
        (start, end): (u32, u32),
        instructions: &[Instruction],
        over: impl Fn(&Instruction) -> Option<u32>,
    ) -> Ranges {
        let mut before = vec![NOTHING; (end - start) as usize + 1];
        let mut anything = |at: u32| {
            let b = at
                .checked_sub(start)
                .and_then(|k| before.get_mut(k as usize));
            if let Some(b) = b {
                *b = ANYTHING;
            }
        };
        if let Some(first) = instructions.first() {
            anything(first.at);
        }
        for i in instructions {
            leads(i, |to| {
                if to <= i.at {
                    anything(to);
                }
            });
            let row = i.op.row();
            for (o, &v) in row.operands.iter().zip(i.operands()) {
                if matches!(o.kind.role(), Role::Handler | Role::Callee)
                    && let Some(to) = i.place(v)
                {
                    anything(to);
                }
            }
            // Nothing is known after a tail call, where exceptions may lead, and where the target
            // of a native's trap returns.
            if row.effects.calls && (row.effects.ends || row.contract.stack != Stack::Same) {
                anything(i.next);
            }
            if let Some(to) = over(i)
                && to <= i.at
            {
                anything(to);
            }
        }
        Ranges {
            start,
            before,
            led: Vec::new(),
            goes_on: false,
            now: Known::default(),
            result: None,
        }
    }
    /// Returns the knowledge before the next part.
    pub fn now(&self) -> &Known {
        &self.now
    }
    fn place(&mut self, at: u32) -> Option<&mut u32> {
        let k = at.checked_sub(self.start)?;
        self.before.get_mut(k as usize)
    }
    /// Begins an instruction.
    pub fn begin(&mut self, at: u32) {
        let goes_on = std::mem::replace(&mut self.goes_on, true);
        let before = self.place(at).map_or(ANYTHING, |b| *b);
        let known = before
            .checked_sub(LED)
            .and_then(|k| self.led.get_mut(k as usize));
        match known.map(std::mem::take) {
            Some(k) if goes_on => self.now.meet(&k),
            Some(k) => self.now = k,
            None if goes_on && before == NOTHING => {}
            None => self.now = Known::default(),
        }
    }
    fn lead(&mut self, to: u32, known: &Known) {
        let led = self.led.len() as u32;
        match self.place(to) {
            Some(b @ &mut NOTHING) => {
                *b = led + LED;
                self.led.push(known.clone());
            }
            Some(&mut k) if k >= LED => {
                if let Some(k) = self.led.get_mut((k - LED) as usize) {
                    k.meet(known);
                }
            }
            _ => {}
        }
    }
    /// Records that a part of an instruction has run, or jumped; `over`: the target of a shortcut.
    pub fn after(&mut self, i: &Instruction, over: Option<u32>) {
        let row = i.op.row();
        let result = self.result(i);
        // If it jumps it may have written some of its destinations.
        let mut elsewhere = self.now.clone();
        for (o, &v) in row.operands.iter().zip(i.operands()) {
            match o.kind.role() {
                Role::Written | Role::Changed => forget_value(&mut elsewhere, v),
                // Others are dead after a collection.
                Role::Live => elsewhere.forget_x(v.word().min(u64::from(u16::MAX)) as u16),
                _ => {}
            }
        }
        let writes_list = matches!(
            row.list,
            Some(List::Registers | List::Fetches | List::Commands)
        );
        if writes_list {
            // Any word of a list that may be a register counts as one.
            for &w in i.list {
                forget_value(&mut elsewhere, Value::of_source(w));
            }
        }
        match row.contract.writes {
            Xs::None | Xs::Given => {}
            Xs::First(n) => (0..u16::from(n)).for_each(|n| elsewhere.forget(Dst::X(n))),
            Xs::Arity(_) | Xs::All => elsewhere.forget_x(0),
        }
        if row.effects.calls {
            elsewhere.forget_x(0);
        }
        if let Some(n) = row.contract.keeps {
            elsewhere.forget_x(u16::from(n));
        }
        if row.contract.stack != Stack::Same {
            elsewhere.forget_y();
        }
        leads(i, |to| {
            self.lead(to, &elsewhere);
        });
        // The native after a shortcut has the same result.
        let native = self.result.take();
        if let Some(to) = over {
            let mut known = elsewhere.clone();
            if let Some((dst, r)) = shortcut(i) {
                known.set(dst, Some(r));
                self.result = Some(r);
            }
            self.lead(to, &known);
        }
        let before = std::mem::replace(&mut self.now, elsewhere);
        let now = &mut self.now;
        match i.op {
            Op::Bif1 => now.set(Bif1::of(i).dst, native),
            Op::Length => now.set(Length::of(i).dst, native),
            Op::Swap => {
                let Swap { a, b } = Swap::of(i);
                now.set(a, before.of(b));
                now.set(b, before.of(a));
            }
            Op::BsMatch => {
                let BsMatch { commands, .. } = BsMatch::of(i);
                now.forget_x(live_behind(commands));
                for (dst, r) in integers_matched(commands) {
                    now.set(dst, r);
                }
            }
            Op::IsGe => {
                let IsGe { a, b, .. } = IsGe::of(i);
                now.at_least(a, b, 0);
            }
            Op::IsLt => {
                let IsLt { a, b, .. } = IsLt::of(i);
                now.at_least(b, a, 1);
            }
            Op::IsInRange => {
                let IsInRange {
                    src, least, most, ..
                } = IsInRange::of(i);
                if let (Some(lo), Some(hi)) = (of_word(least), of_word(most)) {
                    let (lo, hi) = (lo.lo, hi.hi);
                    now.narrow(src, (lo <= hi).then_some(Range { lo, hi }));
                }
            }
            Op::IsEqImmed => {
                let IsEqImmed { src, immed, .. } = IsEqImmed::of(i);
                if let (Some(r), Some(register)) = (of_word(immed), src.register()) {
                    now.set(register, Some(r));
                }
            }
            _ => {
                if let Some((dst, r)) = result {
                    now.set(dst, Some(r));
                }
            }
        }
        self.goes_on = !row.effects.ends;
    }
    /// Returns the range of an instruction's result, if it is known to be a small integer.
    pub fn makes(&self, i: &Instruction) -> Option<Range> {
        self.result(i).map(|r| r.1)
    }
    /// The same, with the register.
    fn result(&self, i: &Instruction) -> Option<(Dst, Range)> {
        let range = |a: Src| self.now.range(a);
        let both = |a: Src, b: Src| Some((range(a)?, range(b)?));
        let constant = |a: Src| range(a).filter(|_| matches!(a, Src::C(_)));
        let (dst, r) = match i.op {
            Op::Move => {
                let Move { src, dst } = Move::of(i);
                (dst, range(src))
            }
            Op::Add => {
                let Add { a, b, dst, .. } = Add::of(i);
                (
                    dst,
                    both(a, b).and_then(|(a, b)| a.corners(b, |a, b| a + b)),
                )
            }
            Op::Sub => {
                let Sub { a, b, dst, .. } = Sub::of(i);
                (
                    dst,
                    both(a, b).and_then(|(a, b)| a.corners(b, |a, b| a - b)),
                )
            }
            Op::Mul => {
                let Mul { a, b, dst, .. } = Mul::of(i);
                (
                    dst,
                    both(a, b).and_then(|(a, b)| a.corners(b, |a, b| a * b)),
                )
            }
            Op::IntDiv => {
                let IntDiv { a, b, dst, .. } = IntDiv::of(i);
                let by = constant(b).filter(|c| c.lo > 0)?;
                (dst, range(a)?.corners(by, |a, b| a / b))
            }
            Op::Rem => {
                let Rem { a, b, dst, .. } = Rem::of(i);
                // For any dividend.
                let most = constant(b).filter(|c| c.lo > 0)?.lo - 1;
                let least = match range(a) {
                    Some(r) if r.lo >= 0 => 0,
                    _ => -most,
                };
                let hi = range(a).map_or(most, |r| r.hi.clamp(0, most));
                (dst, Range::of(least.into(), hi.into()))
            }
            Op::Band => {
                let Band { a, b, dst, .. } = Band::of(i);
                // The result has no more bits than the operand that is known to be nonnegative.
                let masks = [range(a), range(b)];
                let most = masks.into_iter().flatten().filter(|r| r.lo >= 0);
                let hi = most.map(|r| r.hi).min()?;
                (dst, Some(Range { lo: 0, hi }))
            }
            Op::Bor => {
                let Bor { a, b, dst, .. } = Bor::of(i);
                (dst, both(a, b).and_then(|(a, b)| a.filled(b)))
            }
            Op::Bxor => {
                let Bxor { a, b, dst, .. } = Bxor::of(i);
                (dst, both(a, b).and_then(|(a, b)| a.filled(b)))
            }
            Op::Bsr => {
                let Bsr { a, b, dst, .. } = Bsr::of(i);
                let by = constant(b).filter(|c| (0..64).contains(&c.lo))?;
                (dst, range(a)?.corners(by, |a, b| a >> b))
            }
            Op::Bsl => {
                let Bsl { a, b, dst, .. } = Bsl::of(i);
                let by = constant(b).filter(|c| (0..i64::from(SMALL_BITS)).contains(&c.lo))?;
                (dst, range(a)?.corners(by, |a, b| a << b))
            }
            Op::BsGetByte => (BsGetByte::of(i).dst, Range::below(8)),
            Op::BsGetSmall => {
                let BsGetSmall {
                    bits, flags, dst, ..
                } = BsGetSmall::of(i);
                (dst, Range::of_bits(bits, flags))
            }
            Op::BsGetUtf => (BsGetUtf::of(i).dst, Some(CHARACTERS)),
            Op::BsGetPosition => (BsGetPosition::of(i).dst, Some(COUNT)),
            Op::BsGetInteger => {
                let BsGetInteger {
                    size,
                    unit,
                    flags,
                    dst,
                    ..
                } = BsGetInteger::of(i);
                let n = constant(size).filter(|c| c.lo >= 0)?.lo as u64;
                (dst, Range::of_bits(n.checked_mul(unit)?, flags))
            }
            _ => return None,
        };
        Some((dst, r?))
    }
}

/// Forgets a register that is written; does nothing for other values.
fn forget_value(known: &mut Known, v: Value) {
    if let Some(r) = Src::of_value(v).register() {
        known.forget(r);
    }
}

/// Returns the number of X registers that are live after a `bs_match` that has matched, if it makes
/// terms. If it has not matched, others are live too.
fn live_behind(commands: list::Commands) -> u16 {
    let Some(all) = commands.all() else { return 0 };
    let live = all.iter().filter_map(|c| c.field(Field::Live));
    live.map(|n| u16::try_from(n.word()).unwrap_or(u16::MAX))
        .min()
        .unwrap_or(u16::MAX)
}

/// Returns the range and destination of a shortcut and the native after it.
fn shortcut(i: &Instruction) -> Option<(Dst, Range)> {
    let dst = match i.op {
        Op::FastTupleSize => FastTupleSize::of(i).dst,
        Op::FastByteSize => FastByteSize::of(i).dst,
        Op::FastMapSize => FastMapSize::of(i).dst,
        Op::FastLength => FastLength::of(i).dst,
        _ => return None,
    };
    Some((dst, COUNT))
}

/// Returns the registers to which a `bs_match` writes integers, and their ranges.
fn integers_matched(commands: list::Commands) -> Vec<(Dst, Option<Range>)> {
    let made = Command::all(commands)
        .into_iter()
        .flatten()
        .map(|c| match c {
            Command::Integer(bits, flags, d) => Some((d, Range::of_bits(bits, flags))),
            Command::Bits(_, d) | Command::Tail(d) => Some((d, None)),
            _ => None,
        });
    made.flatten().collect()
}
