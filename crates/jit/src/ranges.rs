//! Which registers hold small integers, and how large those are, as one pass forward over a function finds out.
//!
//! What holds before an instruction is what holds behind each instruction that leads to it: all of those stand before it, or
//! nothing is known there. It follows from what the instructions mean alone, so it holds whoever runs them: machine code, the
//! interpreter, a helper.

use crate::commands::Command;
use crate::decode::{Arg, Instruction, source};
use purlin_isa::bits::flags::SIGNED;
use purlin_isa::contract::{Stack, Xs};
use purlin_isa::ops::{List, Op, Role};
use purlin_term::word::{SMALL_SHIFT, is_small_word};

/// Small integers from `lo` to `hi`, which count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub lo: i64,
    pub hi: i64,
}

/// Bits of a small integer beside its sign.
const SMALL_BITS: u32 = 63 - SMALL_SHIFT;
const SMALLEST: i64 = -(1 << SMALL_BITS);
const LARGEST: i64 = (1 << SMALL_BITS) - 1;
/// Registers that something is known of at a time.
const MOST: usize = 12;
/// Elements, bytes, places: what counts things that are in memory.
const COUNT: Range = Range { lo: 0, hi: LARGEST };
/// The largest character.
const CHARACTER: i64 = 0x10_FFFF;

impl Range {
    /// None: not all of them are small integers.
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
    /// Integers of so many bits in a bit string, by the flags of the segment.
    fn of_bits(bits: u64, flags: u64) -> Option<Range> {
        match flags & SIGNED {
            0 => Range::below(bits),
            _ => (1..=u64::from(SMALL_BITS)).contains(&bits).then(|| Range {
                lo: -(1 << (bits - 1)),
                hi: (1 << (bits - 1)) - 1,
            }),
        }
    }
    /// Numbers of as many bits, where none is negative.
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
    /// Those of all that `each` makes of two ends.
    fn corners(self, other: Range, each: impl Fn(i128, i128) -> i128) -> Option<Range> {
        let ends = |r: Range| [i128::from(r.lo), i128::from(r.hi)];
        let all = ends(self).map(|a| ends(other).map(|b| each(a, b)));
        let all = all.as_flattened();
        Range::of(*all.iter().min()?, *all.iter().max()?)
    }
}

/// What is known of registers at one place.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Known(Vec<(Arg, Range)>);

impl Known {
    /// The range of an operand; None: it may be anything.
    pub fn range(&self, a: Arg) -> Option<Range> {
        match a {
            Arg::C(w) if is_small_word(w) => {
                let n = (w as i64) >> SMALL_SHIFT;
                Some(Range { lo: n, hi: n })
            }
            Arg::X(_) | Arg::Y(_) => self.0.iter().find(|k| k.0 == a).map(|k| k.1),
            _ => None,
        }
    }
    /// Registers and what they hold.
    pub fn all(&self) -> impl Iterator<Item = (Arg, Range)> + '_ {
        self.0.iter().copied()
    }
    fn forget(&mut self, a: Arg) {
        self.0.retain(|k| k.0 != a);
    }
    fn forget_x(&mut self, from: u16) {
        self.0.retain(|k| !matches!(k.0, Arg::X(n) if n >= from));
    }
    fn forget_y(&mut self) {
        self.0.retain(|k| !matches!(k.0, Arg::Y(_)));
    }
    fn set(&mut self, a: Arg, r: Option<Range>) {
        self.forget(a);
        if let Some(r) = r
            && matches!(a, Arg::X(_) | Arg::Y(_))
        {
            if self.0.len() == MOST {
                self.0.remove(0);
            }
            self.0.push((a, r));
        }
    }
    /// What holds here and there.
    fn meet(&mut self, other: &Known) {
        self.0.retain_mut(|k| match other.range(k.0) {
            Some(r) => {
                k.1 = k.1.around(r);
                true
            }
            None => false,
        });
    }
    /// Where the comparison holds, what it says of an operand whose range is known.
    fn narrow(&mut self, a: Arg, r: Option<Range>) {
        let known = self.0.iter_mut().find(|k| k.0 == a);
        if let (Some(k), Some(r)) = (known, r) {
            let (lo, hi) = (k.1.lo.max(r.lo), k.1.hi.min(r.hi));
            // Else nobody comes here.
            if lo <= hi {
                k.1 = Range { lo, hi };
            }
        }
    }
}

/// Of a place: nothing has led there so far.
const NOTHING: u32 = 0;
/// Of a place: nothing is known there.
const ANYTHING: u32 = 1;
/// Of a place: the first index in `led`.
const LED: u32 = 2;

/// The pass.
pub struct Ranges {
    start: u32,
    /// By the words of the function: see [`LED`].
    before: Vec<u32>,
    /// What is known where something leads to.
    led: Vec<Known>,
    /// Whether what runs last leads to the next instruction.
    goes_on: bool,
    now: Known,
    /// What the native behind a shortcut gives.
    result: Option<Range>,
}

/// Calls `to` with the places that an instruction leads to beside the next one: none is missing, some lead nowhere.
fn leads(code: &[u64], i: &Instruction, mut to: impl FnMut(u32)) {
    i.args().iter().filter_map(|a| a.label()).for_each(&mut to);
    let (from, n) = (i.list.0 as usize, i.list.1 as usize);
    let has_labels = i.op.row().list.is_some_and(|l| {
        matches!(
            l,
            List::Labels | List::Switch | List::Arms | List::ArityArms
        )
    });
    if has_labels {
        for &w in code.get(from..from + n).unwrap_or_default() {
            let d = i32::try_from(w as i64).ok();
            d.and_then(|d| i.at.checked_add_signed(d))
                .into_iter()
                .for_each(&mut to);
        }
    }
}

impl Ranges {
    /// Of a function from `start` to `end` in `code`; `over` gives the place that a shortcut steps to.
    pub fn new(
        code: &[u64],
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
            leads(code, i, |to| {
                if to <= i.at {
                    anything(to);
                }
            });
            let row = i.op.row();
            for (o, a) in row.operands.iter().zip(i.args()) {
                if matches!(o.kind.role(), Role::Handler | Role::Callee)
                    && let Some(to) = a.label()
                {
                    anything(to);
                }
            }
            // Where exceptions lead behind a call; what runs on behind what is called without a return.
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
    /// What is known before the part that comes next.
    pub fn now(&self) -> &Known {
        &self.now
    }
    fn place(&mut self, at: u32) -> Option<&mut u32> {
        let k = at.checked_sub(self.start)?;
        self.before.get_mut(k as usize)
    }
    /// An instruction begins.
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
    /// A part of an instruction has run, or led elsewhere; `over`: where a shortcut steps to.
    pub fn after(&mut self, code: &[u64], i: &Instruction, over: Option<u32>) {
        let row = i.op.row();
        let words = |code: &[u64]| -> Vec<Arg> {
            let (from, n) = (i.list.0 as usize, i.list.1 as usize);
            let words = code.get(from..from + n).unwrap_or_default();
            words.iter().map(|&w| source(w)).collect()
        };
        let result = self.result(i);
        // Where it leads elsewhere it may have written some of what it writes.
        let mut elsewhere = self.now.clone();
        for (o, &a) in row.operands.iter().zip(i.args()) {
            match o.kind.role() {
                Role::Written | Role::Changed => elsewhere.forget(a),
                // A collection leaves nothing in the others that anybody may read.
                Role::Live => elsewhere.forget_x(a.n().min(u64::from(u16::MAX)) as u16),
                _ => {}
            }
        }
        let writes_list = matches!(
            row.list,
            Some(List::Registers | List::Fetches | List::Commands)
        );
        if writes_list {
            words(code).into_iter().for_each(|a| elsewhere.forget(a));
        }
        match row.contract.writes {
            Xs::None | Xs::Given => {}
            Xs::First(n) => (0..u16::from(n)).for_each(|n| elsewhere.forget(Arg::X(n))),
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
        leads(code, i, |to| {
            self.lead(to, &elsewhere);
        });
        // The native behind a shortcut gives the same as that.
        let native = self.result.take();
        if let Some(to) = over {
            let mut known = elsewhere.clone();
            if let Some(&dst) = i.args().last() {
                known.set(dst, shortcut(i.op));
            }
            self.lead(to, &known);
            self.result = shortcut(i.op);
        }
        let swapped = (i.op == Op::Swap).then(|| {
            let a = i.args();
            [(a[0], self.now.range(a[1])), (a[1], self.now.range(a[0]))]
        });
        self.now = elsewhere;
        let a = i.args();
        match i.op {
            Op::Bif1 | Op::Length => self.now.set(a[3], native),
            Op::Swap => {
                for (r, known) in swapped.into_iter().flatten() {
                    self.now.set(r, known);
                }
            }
            Op::BsMatch => {
                self.now.forget_x(live_behind(i, code));
                for (dst, r) in integers_matched(i, code) {
                    self.now.set(dst, r);
                }
            }
            Op::IsGe | Op::IsLt => {
                let strict = i128::from(i.op == Op::IsLt);
                let (x, y) = match i.op {
                    Op::IsGe => (a[1], a[2]),
                    _ => (a[2], a[1]),
                };
                // x is at least y, or above.
                if let (Some(rx), Some(ry)) = (self.now.range(x), self.now.range(y)) {
                    let least = Range::of(i128::from(ry.lo) + strict, i128::from(LARGEST));
                    let most = Range::of(i128::from(SMALLEST), i128::from(rx.hi) - strict);
                    self.now.narrow(x, least);
                    self.now.narrow(y, most);
                }
            }
            Op::IsInRange => {
                let (lo, hi) = (self.now.range(term(a[2])), self.now.range(term(a[3])));
                if let (Some(lo), Some(hi)) = (lo, hi) {
                    let (lo, hi) = (lo.lo, hi.hi);
                    self.now
                        .narrow(a[1], (lo <= hi).then_some(Range { lo, hi }));
                }
            }
            Op::IsEqImmed => {
                let r = self.now.range(term(a[2]));
                if r.is_some() {
                    self.now.set(a[1], r);
                }
            }
            _ => {
                if let Some((dst, r)) = result {
                    self.now.set(dst, Some(r));
                }
            }
        }
        self.goes_on = !row.effects.ends;
    }
    /// The range of what an instruction writes, if it is known to be a small integer.
    pub fn makes(&self, i: &Instruction) -> Option<Range> {
        self.result(i).map(|r| r.1)
    }
    /// The same, with the register.
    fn result(&self, i: &Instruction) -> Option<(Arg, Range)> {
        let a = i.args();
        let range = |k: usize| a.get(k).and_then(|&a| self.now.range(a));
        let both = || Some((range(1)?, range(2)?));
        let constant = |k: usize| range(k).filter(|_| matches!(a[k], Arg::C(_)));
        let (dst, r) = match i.op {
            Op::Move => (a[1], range(0)),
            Op::Add => (a[3], both().and_then(|(a, b)| a.corners(b, |a, b| a + b))),
            Op::Sub => (a[3], both().and_then(|(a, b)| a.corners(b, |a, b| a - b))),
            Op::Mul => (a[3], both().and_then(|(a, b)| a.corners(b, |a, b| a * b))),
            Op::IntDiv => {
                let by = constant(2).filter(|c| c.lo > 0)?;
                (a[3], range(1)?.corners(by, |a, b| a / b))
            }
            Op::Rem => {
                // Whatever is divided.
                let most = constant(2).filter(|c| c.lo > 0)?.lo - 1;
                let least = match range(1) {
                    Some(r) if r.lo >= 0 => 0,
                    _ => -most,
                };
                let hi = range(1).map_or(most, |r| r.hi.clamp(0, most));
                (a[3], Range::of(least.into(), hi.into()))
            }
            Op::Band => {
                // No more bits than the one that is known to have no sign.
                let masks = [range(1), range(2)];
                let most = masks.into_iter().flatten().filter(|r| r.lo >= 0);
                let hi = most.map(|r| r.hi).min()?;
                (a[3], Some(Range { lo: 0, hi }))
            }
            Op::Bor | Op::Bxor => (a[3], both().and_then(|(a, b)| a.filled(b))),
            Op::Bsr => {
                let by = constant(2).filter(|c| (0..64).contains(&c.lo))?;
                (a[3], range(1)?.corners(by, |a, b| a >> b))
            }
            Op::Bsl => {
                let by = constant(2).filter(|c| (0..i64::from(SMALL_BITS)).contains(&c.lo))?;
                (a[3], range(1)?.corners(by, |a, b| a << b))
            }
            Op::BsGetByte => (a[2], Range::below(8)),
            Op::BsGetSmall => (a[4], Range::of_bits(a[2].n(), a[3].n())),
            Op::BsGetUtf => (
                a[4],
                Some(Range {
                    lo: 0,
                    hi: CHARACTER,
                }),
            ),
            Op::BsGetPosition => (a[1], Some(COUNT)),
            Op::BsGetInteger => {
                let n = constant(2).filter(|c| c.lo >= 0)?.lo as u64;
                let bits = n.checked_mul(a[3].n())?;
                (a[5], Range::of_bits(bits, a[4].n()))
            }
            _ => return None,
        };
        Some((dst, r?))
    }
}

/// An operand that is always a term, as one that may be.
fn term(a: Arg) -> Arg {
    Arg::C(a.n())
}

/// X registers that hold something behind a `bs_match` that has matched, where it makes something: where it has not, others do, too.
fn live_behind(i: &Instruction, code: &[u64]) -> u16 {
    let (from, n) = (i.list.0 as usize, i.list.1 as usize);
    let list = code.get(from..from + n).unwrap_or_default();
    let mut least = u16::MAX;
    let mut k = 0;
    while k < list.len() {
        // Words of each command, and whether the first behind its number says how many are live.
        let (words, makes) = match list[k] {
            0 | 6 => (3, false),
            1 | 4 => (2, false),
            2 | 3 => (5, true),
            5 => (4, true),
            _ => return 0,
        };
        if makes {
            let live = list.get(k + 1).copied().unwrap_or(0);
            least = least.min(u16::try_from(live).unwrap_or(u16::MAX));
        }
        k += words;
    }
    least
}

/// What a shortcut and the native behind it give.
fn shortcut(op: Op) -> Option<Range> {
    matches!(
        op,
        Op::FastTupleSize | Op::FastByteSize | Op::FastMapSize | Op::FastLength
    )
    .then_some(COUNT)
}

/// The registers that a `bs_match` writes integers to, and what those may be.
fn integers_matched(i: &Instruction, code: &[u64]) -> Vec<(Arg, Option<Range>)> {
    let (from, n) = (i.list.0 as usize, i.list.1 as usize);
    let commands = Command::all(code.get(from..from + n).unwrap_or_default());
    let made = commands.into_iter().flatten().map(|c| match c {
        Command::Integer(bits, flags, d) => Some((d, Range::of_bits(bits, flags))),
        Command::Bits(_, d) | Command::Tail(d) => Some((d, None)),
        _ => None,
    });
    made.flatten().collect()
}
